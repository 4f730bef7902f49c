#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The report as a page for browsers: well-formed, refers to nothing outside, has the rows and words of the text, and shows
names that look like markup as the names that they are. Chromium, where it is there, builds the same page and runs nothing in
it. `hpcrun --report=FILE.html` writes one."""
import csv
import html.parser
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402

DATABASES = {"minicg": bundle.golden("report") / "minicg.json", "hardware": bundle.golden("hardware") / "locus.json"}
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;'\"</td>"
VOID = {"meta", "br", "img", "link", "input", "hr"}
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


class Page(html.parser.HTMLParser):
    """Elements with their attributes, the words of each row of the table, and whether the tags nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.rows, self.words, self.open, self.is_nested = [], [], [], [], True
        self.titles = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append("")
        if tag == "b" and self.rows:
            self.titles.append("")

    def handle_endtag(self, tag):
        self.is_nested = self.is_nested and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if "tr" in self.open:
            self.rows[-1] += data + " "
        if self.open[-1:] == ["b"] and self.titles:
            self.titles[-1] += data


def hpcquery(database, *options):
    result = subprocess.run([str(BUILD / "hpcquery"), "vars", *options, str(database)], capture_output=True, check=False,
                            text=True, encoding="utf-8", env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "4000"})
    expect(result.returncode == 0, f"{database} {options}: {result.stderr}")
    return result.stdout


def squeezed(text):
    return "".join(text.split())


def check_page(name, page, database):
    """page: as Page has read it."""
    tags = {tag for tag, _ in page.elements}
    expect(page.is_nested and not page.open, f"{name}: the tags do not nest: {page.open}")
    expect(not tags & {"script", "img", "link", "iframe", "object", "form", "base"}, f"{name}: {tags}")
    outside = [key for _, attributes in page.elements for key in attributes if key in ("src", "href", "action") or key[:2] == "on"]
    expect(not outside, f"{name}: attributes {outside}")
    rows = [row for row in csv.DictReader(io.StringIO(hpcquery(database, "--csv", "--top", "0"))) if row["class"] != "kernel"]
    table = [row for row in page.rows if "%" in row]
    expect(len(table) >= len(rows), f"{name}: {len(table)} rows of {len(rows)}")
    for row in rows:
        share = f"{float(row['share']):.1f} %"
        found = any(share in cells and squeezed(row["variable"]) in squeezed(cells) for cells in table)
        expect(found, f"{name}: no row {row['variable']} of {share}")
    everything = squeezed("".join(page.words))
    head = hpcquery(database).split("\n\n")[0].splitlines()
    for line in head + [row for row in hpcquery(database).splitlines() if row.startswith(("<", "note "))]:
        words = line[10:] if not line.startswith("<") else line.split(">: ")[1]
        expect(squeezed(words) in everything, f"{name}: the page lacks: {words}")


def make_hostile(data):
    """Every text that a program can choose."""
    for key in ("program", "command", "plan"):
        data[key] = "/tmp/" + HOSTILE
    data["strings"] = [text + HOSTILE if i and not text.startswith(("<", "/")) else text for i, text in enumerate(data["strings"])]
    data["notes"].append("A note on " + HOSTILE)
    for process in data["processes"]:
        process["exe"] = HOSTILE


def check_browser(name, text, page, scratch):
    """What a browser makes of the text has the rows that are in it."""
    if not shutil.which("chromium"):
        print("SKIP (part): no Chromium")
        return
    path = scratch / f"{name}.html"
    path.write_text(text, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch / 'browser'}", "--dump-dom",
               path.as_uri()]
    result = subprocess.run(command, capture_output=True, check=False, timeout=120, text=True, encoding="utf-8",
                            stdin=subprocess.DEVNULL)
    if result.returncode or "<main>" not in result.stdout:
        print(f"SKIP (part): Chromium does not run here: {result.stderr[-300:]}")
        return
    seen = Page(result.stdout)
    expect(seen.titles == page.titles, f"{name}: Chromium has the rows {seen.titles}, not {page.titles}")
    expect(len(seen.elements) == len(page.elements), f"{name}: Chromium makes {len(seen.elements)} elements of "
           f"{len(page.elements)}")
    expect("<title>taken" not in result.stdout, f"{name}: a script has run")


def check_run(scratch):
    if not (BUILD / ".libs/libhpcrun.so").exists():
        print("SKIP (part): libhpcrun.so has not been built")
        return
    target = scratch / "<script>x"
    target.mkdir()
    shutil.copy(shutil.which("sleep"), target / "sleep")
    file = scratch / "report.html"
    subprocess.run([str(BUILD / "hpcrun"), "-o", str(scratch / "m"), f"--report={file}", str(target / "sleep"), "0"],
                   capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
                   env={**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")})
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if not text:
        print("SKIP (part): nothing can be measured here")
        return
    expect(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"), f"--report=FILE.html: {text[:200]}")
    expect("<script" not in text and "&lt;script&gt;x" in text, "the path of the program is not escaped")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        texts = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in DATABASES.items()}
        texts["hostile"] = json.loads(DATABASES["minicg"].read_text(encoding="utf-8"))
        make_hostile(texts["hostile"])
        for case, data in texts.items():
            database = scratch / case
            database.mkdir()
            (database / "locus.json").write_text(json.dumps(data), encoding="utf-8")
            text = hpcquery(database, "--html", "--top", "0")
            page = Page(text)
            check_page(case, page, database)
            check_browser(case, text, page, scratch)
        expect(HOSTILE in " ".join(page.titles), "the names of variables are other ones")
        check_run(scratch)
        refused = subprocess.run([str(BUILD / "hpcquery"), "tree", "--html", str(scratch / "minicg")], capture_output=True,
                                 check=False, text=True)
        expect(refused.returncode == 2 and "--html" in refused.stderr, f"tree --html: {refused.returncode} {refused.stderr}")
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
