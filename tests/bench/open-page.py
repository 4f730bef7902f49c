#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""open-page.py PROFILE FILE...: how long Chromium takes from the address of a page to its first picture, and from there until it
can be used; medians of five. Prints why not where there is no Chromium."""
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browser  # noqa: E402

DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
READY = """(async () => {
    while (document.body.dataset.ready !== "1" && !document.querySelector(".failed"))
        await new Promise((done) => requestAnimationFrame(done));
    return performance.now();
})()"""


def main():
    try:
        page = browser.Browser(pathlib.Path(sys.argv[1]))
    except browser.Failure as failure:
        print(f"SKIP: {failure}")
        return
    page.size(1280, 900)
    for file in map(pathlib.Path, sys.argv[2:]):
        opened, ready = [], []
        for _ in range(5):
            page.open(file.resolve().as_uri())
            opened.append(page.value(DRAWN))
            ready.append(page.value(READY))
            if page.troubles:
                sys.exit(f"{file}: {page.troubles}")
        print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB: opens in {statistics.median(opened) / 1000:.2f} s, "
              f"can be used in {statistics.median(ready) / 1000:.2f} s")
    page.close()


main()
