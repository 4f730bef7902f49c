#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""A program that runs, in Chromium: hpcviewer --live --no-browser serves a page whose numbers become newer while what is chosen stays;
Hold holds them, the end is told, and the last numbers are those of the whole measurement. --cost: what that takes of a processor, of
hpcviewer and of the companion, with 64 threads."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import browser  # noqa: E402
import viewer  # noqa: E402

PATIENCE_S = 120
WORDS = "(document.querySelector('#live span') || {}).textContent || ''"
failures = []


def expect(condition, sentence):
    if not condition:
        print("FAIL:", sentence)
        failures.append(sentence)


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def measured(place, n_threads):
    program = subprocess.Popen([BUILD / "hpcrun", "-e", "EADDR@f500", "-o", place / "m", place / "live", "3600", str(n_threads)],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        done = subprocess.run([BUILD / "hpcrun", "--status", "--json", str(program.pid)], capture_output=True, text=True, check=False)
        if done.returncode == 0 and json.loads(done.stdout)["processes"][0]["address_samples"] > 100:
            return program
        time.sleep(0.2)
    raise RuntimeError("the program has no samples")


def served(place, program):
    page = subprocess.Popen([BUILD / "hpcviewer", "--live", "--no-browser", str(program.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place / "tmp")})
    for line in page.stdout:
        if line.startswith("http:"):
            return page, line.strip()
    raise RuntimeError("no address: " + page.stderr.read())


def samples(page):
    """Those of red, as the detail of the variable has them."""
    text = page.value("document.getElementById('panel-items').innerText")
    words = text.replace(",", "").split()
    for i, word in enumerate(words):
        if word == "samples" and i + 1 < len(words):
            value = words[i + 1]
            factor = {"k": 1000, "M": 1000000}.get(words[i + 2] if i + 2 < len(words) else "", 1)
            return float(value.rstrip("kM")) * (1000 if value.endswith("k") else factor)
    return -1


def status_of(program):
    return json.loads(run(BUILD / "hpcrun", "--status", "--json", program.pid))["processes"][0]


def wait_for(holds, sentence):
    end = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < end:
        time.sleep(0.2)
    expect(holds(), sentence)


def press(page, label):
    page.value(f"[...document.querySelectorAll('#live button')].find((each) => each.textContent === {json.dumps(label)}).click()")


def begin_phase(page, name):
    press(page, "Phase")
    page.value(f"(() => {{ const form = document.querySelector('#offer form'); form.querySelector('input').value = {json.dumps(name)}; form.requestSubmit(); }})()")


def check_control(page, program, address):
    """Buttons and keys ask for what hpcrun --control does; nobody does who has not the page's secret."""
    press(page, "Pause sampling")
    wait_for(lambda: status_of(program)["paused"], "the button does not pause the sampling")
    expect(page.wait("document.getElementById('live-pause').textContent === 'Resume sampling'", PATIENCE_S), "the button does not offer to resume")
    expect(page.wait(f"({WORDS}).includes('sampling paused')", PATIENCE_S), "the pause is not told")
    page.value("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'P', bubbles: true}))")
    wait_for(lambda: not status_of(program)["paused"], "the key does not resume the sampling")
    page.value("(() => { const rate = document.querySelector('#live-control select'); rate.value = '100'; rate.dispatchEvent(new Event('change', {bubbles: true})); })()")
    wait_for(lambda: status_of(program)["rate_divisor"] > 1, "the rate does not change")
    begin_phase(page, "<b>")  # which is refused, with the reason
    expect(page.wait("document.getElementById('live-said').textContent.includes('without < and >')", PATIENCE_S), "a refusal is not told")
    begin_phase(page, "a & b")
    wait_for(lambda: status_of(program)["phase"] == "a & b", "the phase does not begin")
    expect(page.wait(f"({WORDS}).includes('phase a & b')", PATIENCE_S), "the phase is not told")
    press(page, "Save")
    expect(page.wait("document.getElementById('live-said').textContent.startsWith('saved')", PATIENCE_S), "it is not saved")
    port = address.split(":")[2].split("/")[0]
    for secret in ("", "Bearer 0123456789abcdef0123456789abcdef"):
        question = urllib.request.Request(f"http://127.0.0.1:{port}/ask", data=b'{"report":"live","control":"pause"}', headers={"Authorization": secret} if secret else {})
        try:
            urllib.request.urlopen(question, timeout=30).close()
            expect(False, "somebody without the secret may control it")
        except urllib.error.HTTPError as error:
            expect(error.code in (401, 403, 404), f"somebody without the secret gets {error.code}")
            error.close()
    expect(not status_of(program)["paused"], "somebody without the secret has paused it")


def check_page(place):
    program = measured(place, 2)
    server, address = served(place, program)
    page = viewer.Viewer(str(place / "profile"))
    expect(page.open(address, ""), "the page does not open")
    expect(page.wait(f"({WORDS}).startsWith('live ')", PATIENCE_S), "the page does not say that it is live")
    page.value("[...document.querySelectorAll('.list .grid-row')].find((row) => row.textContent.includes('red')).click()")
    page.value("document.getElementById('tab-items').click()")
    expect(page.wait("location.hash.includes('view=items')", PATIENCE_S), "the address does not say which view is open")
    page.settle()
    first, state = page.value("document.getElementById('panel-items').innerText"), page.value("location.hash")
    expect("red" in first and "variable:red" in state.replace("%3A", ":"), f"red is not chosen: {state} {first[:300]}")
    expect(page.wait(f"document.getElementById('panel-items').innerText !== {json.dumps(first)}", PATIENCE_S), "no newer numbers come")
    expect(page.value("location.hash") == state and page.are_states_one(), "newer numbers change what is chosen")
    page.value("document.querySelector('#live button').click()")
    expect(page.wait(f"({WORDS}).startsWith('held')", PATIENCE_S), "Hold does not hold it")
    page.settle()
    held = page.value("document.getElementById('panel-items').innerText")
    time.sleep(5)
    expect(page.value("document.getElementById('panel-items').innerText") == held, "held, the numbers change")
    page.value("document.querySelector('#live button').click()")
    expect(page.wait(f"document.getElementById('panel-items').innerText !== {json.dumps(held)}", PATIENCE_S), "it does not go on")
    check_control(page, program, address)
    page.value("document.getElementById('tab-trust').click()")
    page.settle()
    page.value("document.getElementById('tab-items').click()")
    expect(page.are_states_one(), "views do not show the state")
    program.stdin.close()
    expect(program.wait(PATIENCE_S) == 7, "the program ends in another way")
    expect(page.wait(f"({WORDS}).startsWith('has ended after')", PATIENCE_S), "the end is not told")
    run(BUILD / "hpcprof", "-q", "-o", place / "whole", place / "m")
    rows = json.loads(run(BUILD / "hpcquery", "vars", "--json", "--top", "0", place / "whole"))["variables"]
    share = next(row["share"] for row in rows if row["variable"] == "red")
    want = f"{share:.1f}"
    expect(page.wait(f"document.getElementById('panel-items').innerText.includes('{want}')", 30), f"the last share is not {want} %")
    troubles = [each for each in page.browser.troubles if "404" not in each]  # reports that have nothing here
    expect(not troubles, f"the console says {troubles[:3]}")
    page.browser.close()
    server.terminate()
    expect(server.wait(PATIENCE_S) == 0, "hpcviewer ends badly")
    expect(not list((place / "tmp").iterdir()), f"files are left: {list((place / 'tmp').iterdir())}")


def cpu_s(pid):
    """Of a process, and of its children that have ended."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")


def print_cost(place):
    program = measured(place, 64)
    mine = str(place / "m")
    companions = []
    for path in pathlib.Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0") if path.name.isdigit() else []
        except OSError:  # it has ended
            continue
        if words and words[0].endswith("hpcrun") and mine in words and int(path.name) != program.pid:
            companions.append(int(path.name))
    seconds = 30

    def spent():
        begin = [cpu_s(pid) for pid in companions]
        time.sleep(seconds)
        return sum(cpu_s(pid) - before for pid, before in zip(companions, begin)) / seconds

    without = spent()
    server = subprocess.Popen([BUILD / "hpcviewer", "--live", "--tui", "--plain", str(program.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    time.sleep(5)
    own = cpu_s(server.pid)
    during = spent()
    own = (cpu_s(server.pid) - own) / seconds
    print(f"64 threads: the companion ({len(companions)} processes) takes {without:.2%} of a processor without a viewer, {during:.2%} with one, which takes {own:.2%}")
    server.communicate(b"q\n")
    program.stdin.close()
    program.wait(PATIENCE_S)


def main():
    with tempfile.TemporaryDirectory(prefix="locus-live-page-", ignore_cleanup_errors=True) as name:
        place = pathlib.Path(name)
        (place / "tmp").mkdir()
        run("gcc", "-g", "-O1", "-pthread", "-o", place / "live", SOURCE / "tests" / "e2e" / "live.c")
        if sys.argv[1:] == ["--cost"]:
            print_cost(place)
            return
        try:
            check_page(place)
        except browser.Failure as failure:
            print("SKIP:", failure)
            sys.exit(77)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
