#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""Speedscope, as its users have it, opens the exports for it and the trace events for Perfetto, of threads of C++ measured here:
without an error on the console, every frame with the cost that it has in the folded stacks, by itself and with what it calls.

Speedscope is no part of this tree and nothing here needs it otherwise: LOCUS_SPEEDSCOPE names the directory of its npm package
(npm install speedscope; node_modules/speedscope). Without it this test is skipped."""
import base64
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import browser  # noqa: E402

PAGE = pathlib.Path(os.environ.get("LOCUS_SPEEDSCOPE", "/nonexistent")) / "dist" / "release" / "index.html"
UNITS = {"ns": 1e-9, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1}
HARMLESS = re.compile(r"WebGL|GL Driver|speedscope v|Importing as|import: ")
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *words):
    result = subprocess.run([str(BUILD / tool), *map(str, words)], capture_output=True, check=False, text=True, encoding="utf-8",
                            stdin=subprocess.DEVNULL, timeout=300)
    expect(result.returncode == 0, f"{tool} {words}: {result.stderr}")
    return result.stdout


def measured(scratch):
    source = SOURCE / "tests" / "e2e" / "programs" / "exports.cc"
    subprocess.run(["g++", "-O2", "-g", "-pthread", "-o", str(scratch / "threads"), str(source)], check=True)
    run("hpcrun", "-o", scratch / "measured", scratch / "threads", "0.5")
    run("hpcprof", "-q", "-o", scratch / "database", scratch / "measured")
    return scratch / "database"


def folded(database):
    """({name: its own cost}, {name: with what it calls}) in seconds."""
    own, inclusive = collections.Counter(), collections.Counter()
    for line in run("hpcquery", "export", "folded", database).splitlines():
        path, cost = line.rsplit(" ", 1)
        names = path.split(";")
        own[names[-1]] += float(cost)
        for name in set(names):
            inclusive[name] += float(cost)
    return own, inclusive


def seconds(text):
    found = re.match(r"([\d.,]+)\s*([^\W\d]+)", text)
    expect(found and found[2] in UNITS, f"the time {text!r}")
    return float(found[1].replace(",", "")) * UNITS[found[2]] if found else 0


def rows(page):
    """[(total, own, name)] of the table of the view called Sandwich."""
    page.press("3")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    table = page.value("[...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))")
    return [(seconds(total), seconds(own), name) for total, own, name in (row for row in table if len(row) == 3 and "%" in row[0])]


def opened(page, path, scratch):
    """Opens a file; returns how many profiles are in it."""
    script = scratch / "load.js"
    script.write_text(f"speedscope.loadFileFromBase64({path.name!r}, {base64.b64encode(path.read_bytes()).decode()!r})", encoding="utf-8")
    page.open("about:blank")
    page.open(f"{PAGE.as_uri()}#localProfilePath={script}")
    for _ in range(100):
        title = page.value("document.body.innerText")
        if "Export" in title:
            break
        time.sleep(.1)
    found = re.search(r"\(1/(\d+)\)", title)
    return int(found[1]) if found else 1


def check(page, form, database, scratch, skipped):
    """skipped: profiles that are the sum of the others."""
    path = scratch / f"threads-{form}.json"
    run("hpcquery", "export", form, "-o", path, database)
    n = opened(page, path, scratch)
    expect(n == 2 + skipped, f"{form}: {n} profiles")
    own, inclusive, wanted = collections.Counter(), collections.Counter(), folded(database)
    for i in range(n):
        found = rows(page)
        expect(len(found) > 3, f"{form}: profile {i} shows {found}")
        for total, alone, name in found if i >= skipped else []:
            name = name.split(' {"file":')[0]  # arguments of a trace event are part of its name there
            own[name] += alone
            inclusive[name] += total
        if i + 1 < n:
            page.press("n")
    for name in {*own, *wanted[0]}:
        expect(abs(own[name] - wanted[0][name]) < 2e-5, f"{form}: {name} has {own[name]} s, not {wanted[0][name]}")
        expect(abs(inclusive[name] - wanted[1][name]) < 2e-5, f"{form}: {name} has {inclusive[name]} s, not {wanted[1][name]}")
    troubles = [words for words in page.troubles if not HARMLESS.search(words)]
    expect(not troubles, f"{form}: on the console: {troubles}")


def main():
    if not PAGE.exists():
        print("SKIP: no speedscope (set LOCUS_SPEEDSCOPE)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        try:
            page = browser.Browser(scratch / "browser")
        except browser.Failure as failure:
            print(f"SKIP: {failure}")
            sys.exit(77)
        page.size(1400, 6000)  # the table has the rows that are in view
        database = measured(scratch)
        check(page, "speedscope", database, scratch, 1)
        check(page, "chrome", database, scratch, 0)
        page.close()
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
