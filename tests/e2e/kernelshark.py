#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""KernelShark opens what `hpcquery sched trace-dat` writes, as an ordinary user on a display in memory: its window has the
file's name, and its graph the colours of tasks for a recording in which a task runs all the time, but none for one in which
nothing runs. What it says while it loads holds no complaint about the file. And of the same window it draws what our page draws:
the same CPUs in the same order, boxes of the same tasks where ours are, to a pixel, and nothing where ours have nothing."""
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests/lib"))
import tracedat  # noqa: E402
NOBODY = "65534"
N_CPUS, EDGE = 4, 2  # pixels beside the end of a box in which both may differ: KernelShark draws the last event of a pixel
MARKER = 4000  # coloured pixels of a button, at most
# Waits for the window with the file's name, then for a picture with many colours, or until it has had time for one.
SCRIPT = """
kernelshark -i "$1" --cpu "$2" >words 2>&1 &
shark=$!
for i in $(seq 120); do
    xdotool search --onlyvisible --name "Kernel ?Shark.*$1" >/dev/null 2>&1 && break
    sleep 0.5
done
xdotool search --onlyvisible --name "Kernel ?Shark.*$1" getwindowname >title 2>/dev/null
xdotool windowsize "$(xdotool search --onlyvisible --name "Kernel ?Shark.*$1" 2>/dev/null | head -n 1)" $3 2>/dev/null
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


def write_stays(directory):
    """A recording of some CPUs that run tasks of their own for many pixels each, with wakings, and are idle between them."""
    made, dice, path = tracedat.Recording(N_CPUS), random.Random(11), directory / "stays.dat"
    made.tasks = {10 * cpu + i: f"task{cpu}{i}" for cpu in range(N_CPUS) for i in range(1, 6)}
    for cpu in range(N_CPUS):
        t, now = 1_000_000_000, 0
        while t < 2_000_000_000:
            task = dice.choice([0, *(10 * cpu + i for i in range(1, 6))])
            if task != now:
                made.switch(cpu, t, now, task, prev_state=dice.choice([0, 1, 2]))
                now = task
            elif now:
                made.waking(cpu, t, now, 10 * cpu + 1 + dice.randrange(5), cpu)
            t += dice.randrange(4_000_000, 25_000_000)
        made.switch(cpu, 2_000_000_000, now, 0 if now else 10 * cpu + 1)
    path.write_bytes(made.version_6())
    return path


class Picture:
    """What KernelShark has drawn: its axis, below it the ground of each CPU, and of a pixel above that the colour, None: none."""

    def __init__(self, path):
        raw = path.read_bytes()
        fields = raw.split(None, 4)
        self.width, self.height = int(fields[1]), int(fields[2])
        self.pixels = raw[-3 * self.width * self.height:]

    def at(self, x, y):
        return tuple(self.pixels[3 * (y * self.width + x):][:3])

    def coloured(self):
        """Pixels that are neither grey nor nearly so."""
        return sum(max(p) - min(p) > 100 for p in zip(self.pixels[0::3], self.pixels[1::3], self.pixels[2::3]))

    def black(self, y):
        """The longest piece of a line that is black: where it begins and how long it is."""
        best, begin, black = (0, 0), None, bytes(3)
        line = self.pixels[3 * y * self.width:3 * (y + 1) * self.width] + b"\xff" * 3
        for x in range(self.width + 1):
            is_black = line[3 * x:3 * x + 3] == black
            begin = x if is_black and begin is None else begin
            if not is_black and begin is not None:
                best, begin = max(best, (x - begin, begin)), None
        return best[1], best[0]

    def rows(self):
        """The grounds of CPUs: black lines below the axis that are as long as it, but for some pixels; the last line of each."""
        lines = [(y, *self.black(y)) for y in range(self.height)]
        long = [line for line in lines if line[2] > self.width // 2]
        ends = [line for line, after in zip(long, [*long[1:], (0, 0, 0)]) if after[0] != line[0] + 1]
        return ends[1:]  # without the axis

    def colours(self, ground):
        """Of each pixel of a CPU's row: the colour of the box, None: there is none, or an event hides it."""
        y, first, n = ground
        found = []
        for x in range(first, first + n):
            colour = self.at(x, y - 5)
            found.append(colour if max(colour) - min(colour) > 40 else "event" if max(colour) < 60 else None)
        return found


def ours(path, width):
    """What our page draws in so many pixels: of each CPU and pixel the key of its box, None: there is none, and whether it fills it."""
    request = json.dumps({"report": "timeline", "width": width, "rows": list(range(N_CPUS))})
    done = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", "--json", path, request], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    rows = [[(None, False)] * width for _ in range(N_CPUS)]
    for pixel in answer["pixels"]:
        for x in range(pixel["x"], pixel["x"] + pixel["n"]):
            rows[pixel["row"]][x] = (answer["keys"][pixel["key"]]["name"] if pixel["key"] is not None else None, pixel["run"] in (0, 255))
    return rows


def check_same(directory):
    """Both draw the same stays of the same window."""
    path = write_stays(directory)
    picture = show(directory, path, ",".join(map(str, range(N_CPUS))), "1600 1000")
    grounds = picture.rows() if picture else []
    expect(len(grounds) == N_CPUS, f"KernelShark draws rows at {grounds}, not {N_CPUS}")
    if len(grounds) != N_CPUS:
        return
    pairs, n_compared = collections.defaultdict(collections.Counter), 0
    for cpu, (ground, row) in enumerate(zip(grounds, ours(path, grounds[0][2]))):
        theirs, wrong = picture.colours(ground), []
        for x, (key, is_whole) in enumerate(row):
            near = row[max(0, x - EDGE):x + EDGE + 1]
            if theirs[x] == "event" or not is_whole or any(other != (key, True) for other in near):
                continue
            n_compared += 1
            if (key is None) != (theirs[x] is None):
                wrong.append((x, key, theirs[x]))
            elif key is not None:
                pairs[key][theirs[x]] += 1
        expect(not wrong, f"CPU {cpu}: KernelShark and our page differ at {wrong[:5]} and {max(0, len(wrong) - 5)} other pixels")
    expect(n_compared > 0.6 * N_CPUS * grounds[0][2], f"only {n_compared} pixels were compared")
    expect(len(pairs) == 5 * N_CPUS and all(len(colours) == 1 for colours in pairs.values()), f"tasks with colours in KernelShark: {dict(pairs)}")
    colours = [next(iter(found)) for found in pairs.values()]
    print(f"same pixels: {n_compared} of {N_CPUS * grounds[0][2]}, {len(pairs)} tasks in {len(set(colours))} colours")


def show(directory, source, cpus, size):
    """KernelShark's window: of its pictures the one with most colours. None: it shows nothing."""
    name = source.stem
    home = directory / f"{name}.home"
    (home / "run").mkdir(parents=True, mode=0o700)
    shutil.copy(source, home / f"{name}.dat")
    environment = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "TMPDIR": str(home), "LC_ALL": "C.UTF-8"}
    command = ["xvfb-run", "-a", "-s", "-screen 0 1600x1000x24", "bash", "-c", SCRIPT, "bash", f"{name}.dat", cpus, size]
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, int(NOBODY), int(NOBODY))
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    subprocess.run(command, cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False, timeout=300)
    pictures = [Picture(path) for path in sorted(home.glob("?.ppm"))]
    title = (home / "title").read_text(encoding="utf-8") if (home / "title").exists() else ""
    words = (home / "words").read_text(encoding="utf-8", errors="replace") if (home / "words").exists() else ""
    expect(f"{name}.dat" in title, f"{name}: the window is called {title!r}; KernelShark: {words}")
    complaints = [line for line in words.split("\n") if line and not line.startswith("Loading") and "kvm_combo" not in line]
    expect(not complaints, f"{name}: KernelShark says {complaints}")
    expect(bool(pictures), f"{name}: no picture was taken")
    return max(pictures, key=Picture.coloured, default=None)


def main():
    found = {"kernelshark": shutil.which("kernelshark"), "xvfb-run": shutil.which("xvfb-run"),
             "xdotool": shutil.which("xdotool"), "import": shutil.which("import"), "setpriv": shutil.which("setpriv")}
    missing = [program for program, path in found.items() if not path]
    if missing:
        print(f"SKIP: {' and '.join(missing)} not installed")
        return 77
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        directory = pathlib.Path(name)
        shown = [show(directory, write(directory, kind, task), "0,1", "1000 700") for kind, task in (("busy", 7), ("idle", 0))]
        busy, idle = (picture.coloured() if picture else 0 for picture in shown)
        check_same(directory)
    print(f"coloured pixels: {busy} with a task, {idle} without")
    expect(idle < MARKER and busy > idle + 1000, f"{busy} coloured pixels with a task, {idle} without")
    for failure in failures:
        print("FAIL:", failure)
    return 1 if failures else 0


sys.exit(main())
