#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""KernelShark opens what `hpcquery sched trace-dat` writes, as an ordinary user on a display in memory: its window has the
file's name, and its graph the colours of tasks for a recording in which a task runs all the time, but none for one in which
nothing runs. What it says while it loads holds no complaint about the file."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests/lib"))
import tracedat  # noqa: E402
NOBODY = "65534"
MARKER = 4000  # coloured pixels of a button, at most
# Waits for the window with the file's name, then for a picture with many colours, or until it has had time for one.
SCRIPT = """
kernelshark -i "$1" --cpu 0,1 >words 2>&1 &
shark=$!
for i in $(seq 120); do
    xdotool search --onlyvisible --name "Kernel ?Shark.*$1" >/dev/null 2>&1 && break
    sleep 0.5
done
xdotool search --onlyvisible --name "Kernel ?Shark.*$1" getwindowname >title 2>/dev/null
for i in 1 2 3; do
    sleep 2
    import -window root -depth 8 "ppm:$i.ppm"
done
kill "$shark"
"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def write(directory, name, task):
    """A recording of two CPUs: one of them runs the task, and is left for nothing else; the other is idle."""
    made = tracedat.Recording(2)
    made.tasks = {7: "seven"}
    for i in range(200):
        made.switch(0, 1_000_000_000 + 2_000_000 * i, 0, task)
        made.switch(0, 1_000_000_000 + 2_000_000 * i + 1_900_000, task, 0)
    made.switch(1, 1_000_000_000, 0, 0)
    source = directory / f"{name}-made.dat"
    source.write_bytes(made.version_6())
    done = subprocess.run([str(BUILD / "hpcquery"), "sched", "trace-dat", "-o", str(directory / f"{name}.dat"), str(source)],
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{name}: hpcquery: {done.stderr}")
    return directory / f"{name}.dat"


def coloured(path):
    """Pixels of a picture that are neither grey nor nearly so."""
    raw = path.read_bytes()
    fields = raw.split(None, 4)
    width, height = int(fields[1]), int(fields[2])
    pixels = raw[-3 * width * height:]
    return sum(max(p) - min(p) > 100 for p in zip(pixels[0::3], pixels[1::3], pixels[2::3]))


def show(directory, name, task):
    """The coloured pixels of KernelShark's window, the most of its pictures."""
    source, home = write(directory, name, task), directory / f"{name}.home"
    (home / "run").mkdir(parents=True, mode=0o700)
    shutil.copy(source, home / f"{name}.dat")
    environment = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "TMPDIR": str(home), "LC_ALL": "C.UTF-8"}
    command = ["xvfb-run", "-a", "-s", "-screen 0 1000x700x24", "bash", "-c", SCRIPT, "bash", f"{name}.dat"]
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, int(NOBODY), int(NOBODY))
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    subprocess.run(command, cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False, timeout=300)
    pictures = sorted(home.glob("?.ppm"))
    title = (home / "title").read_text(encoding="utf-8") if (home / "title").exists() else ""
    words = (home / "words").read_text(encoding="utf-8", errors="replace") if (home / "words").exists() else ""
    expect(f"{name}.dat" in title, f"{name}: the window is called {title!r}; KernelShark: {words}")
    complaints = [line for line in words.split("\n") if line and not line.startswith("Loading") and "kvm_combo" not in line]
    expect(not complaints, f"{name}: KernelShark says {complaints}")
    expect(bool(pictures), f"{name}: no picture was taken")
    return max([coloured(p) for p in pictures], default=0)


def main():
    found = {"kernelshark": shutil.which("kernelshark"), "xvfb-run": shutil.which("xvfb-run"),
             "xdotool": shutil.which("xdotool"), "import": shutil.which("import"), "setpriv": shutil.which("setpriv")}
    missing = [program for program, path in found.items() if not path]
    if missing:
        print(f"SKIP: {' and '.join(missing)} not installed")
        return 77
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        busy, idle = (show(pathlib.Path(name), kind, task) for kind, task in (("busy", 7), ("idle", 0)))
    print(f"coloured pixels: {busy} with a task, {idle} without")
    expect(idle < MARKER and busy > idle + 1000, f"{busy} coloured pixels with a task, {idle} without")
    for failure in failures:
        print("FAIL:", failure)
    return 1 if failures else 0


sys.exit(main())
