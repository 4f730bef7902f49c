# SPDX-License-Identifier: BSD-3-Clause
"""The tables of doc/METRICS.md and doc/guide.md are those that list-metrics makes by asking the decoders and the report's own
tables, between the lines <!-- made: NAME --> and <!-- end -->. With --write the documents get them; the legend in the man
page of hpcquery has the same rows."""
import os
import pathlib
import re
import subprocess
import sys

DOC = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "doc"
DOCUMENTS = (DOC / "METRICS.md", DOC / "guide.md")
PAGE = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "doc" / "man" / "hpcquery.1"
MAKER = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "tests" / "golden" / "list-metrics"
PLACE = re.compile(r"(?<=<!-- made: )(\w+)( -->\n)(.*?)(?=<!-- end -->)", re.S)


def main():
    made = subprocess.run([str(MAKER)], capture_output=True, text=True, check=True).stdout
    tables = dict(part.split("\n", 1) for part in made.split("## ")[1:])
    texts = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
    places = [found.group(1) for text in texts.values() for found in PLACE.finditer(text)]
    failures = [f"table {name} has no place in the documents" for name in tables if places.count(name) != 1]
    failures += [f"nothing makes the table {name}" for name in places if name not in tables]
    if not failures and "--write" in sys.argv:
        for path, text in texts.items():
            texts[path] = PLACE.sub(lambda found: found.group(1) + found.group(2) + tables[found.group(1)], text)
            path.write_text(texts[path], encoding="utf-8")
    failures += [f"table {found.group(1)} is not what the tool says; {pathlib.Path(__file__).name} --write helps"
                 for text in texts.values() for found in PLACE.finditer(text) if found.group(3) != tables.get(found.group(1))]
    page = PAGE.read_text(encoding="utf-8").replace("\\-", "-") if PAGE.exists() else None
    for name in re.findall(r"^\| `(<.*?>)` ", tables["special_rows"], re.M):
        if page is not None and f".B {name}\n" not in page:
            failures.append(f"the man page of hpcquery does not explain {name}")
    for failure in failures:
        print(f"FAIL: {failure}")
    print(f"{len(tables)} tables")
    sys.exit(1 if failures else 0)


main()
