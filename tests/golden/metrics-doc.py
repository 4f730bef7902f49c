# SPDX-License-Identifier: BSD-3-Clause
"""The tables of doc/METRICS.md are those that list-metrics makes by asking the decoders, between the lines
<!-- made: NAME --> and <!-- end -->. With --write the document gets them."""
import os
import pathlib
import re
import subprocess
import sys

DOCUMENT = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "doc" / "METRICS.md"
MAKER = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "tests" / "golden" / "list-metrics"
PLACE = re.compile(r"(?<=<!-- made: )(\w+)( -->\n)(.*?)(?=<!-- end -->)", re.S)


def main():
    made = subprocess.run([str(MAKER)], capture_output=True, text=True, check=True).stdout
    tables = dict(part.split("\n", 1) for part in made.split("## ")[1:])
    text = DOCUMENT.read_text(encoding="utf-8")
    places = [found.group(1) for found in PLACE.finditer(text)]
    failures = [f"table {name} has no place in the document" for name in tables if places.count(name) != 1]
    failures += [f"nothing makes the table {name}" for name in places if name not in tables]
    if not failures and "--write" in sys.argv:
        text = PLACE.sub(lambda found: found.group(1) + found.group(2) + tables[found.group(1)], text)
        DOCUMENT.write_text(text, encoding="utf-8")
    failures += [f"table {found.group(1)} is not what the decoders say; {pathlib.Path(__file__).name} --write helps"
                 for found in PLACE.finditer(text) if found.group(3) != tables.get(found.group(1))]
    for failure in failures:
        print(f"FAIL: {failure}")
    print(f"{len(tables)} tables")
    sys.exit(1 if failures else 0)


main()
