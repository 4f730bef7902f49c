#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""doc/cookbook.md works: each of its commands, run in order in a new directory, ends with success and prints what the
page shows, but for the numbers. Lines without numbers (titles of columns) are all there. Of lines with numbers, whose
order and small rows are those of one run, at least half are. Where nothing is left out (`...`), there are about as many.
Commands about MPI are left out where no MPI is, and what names a file that no command has made, with them. With --record
what no longer fits is written into the page anew, long outputs by their first lines: read the text around it."""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"]).resolve()
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"]).resolve()
PAGE = SOURCE / "doc" / "cookbook.md"
NUMBER = re.compile(r"^(?=.*\d)[-+<>(]*[\d.,]+(e[-+]?\d+)?[-\d]*[%);:,]*$|^-$|^unknown$")
BARS = re.compile(r"[\u2580-\u259f]+")
SHOWN_MOST = 24  # lines of an output that is recorded
failures = []
anew = {}  # what commands print now, where that no longer fits


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def blocks(text):
    """(command, lines shown) of each command of the page."""
    found = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif found and line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line:
            found.append((None, []))  # the text between two blocks
        elif found:
            found[-1][1].append("")
    return [(command, lines) for command, lines in found if command]


def mask(line):
    """The words of a line, # for numbers, and paths by their last part."""
    words = BARS.sub(" ", line).split()
    return " ".join("#" if NUMBER.match(word) else re.sub(r"^/\S*/|:\d+$", lambda m: "/" if m[0][0] == "/" else ":#", word)
                    for word in words)


def check_shape(command, shown, printed):
    wanted = [mask(line) for line in shown if line.strip()]
    got = [mask(line) for line in printed.splitlines() if line.strip()]
    is_whole = "..." not in wanted
    wanted = [line for line in wanted if line != "..."]
    if is_whole and abs(len(wanted) - len(got)) > 1 + len(wanted) // 4:
        failures.append(f"$ {command}\nprints {len(got)} lines, {len(wanted)} are shown:\n{printed}")
        anew[command] = printed
        return
    rows = [line for line in wanted if "#" in line]
    titles = [line for line in wanted if "#" not in line and line not in got]
    missing = [line for line in rows if line not in got]
    if titles or 2 * len(missing) > len(rows):
        failures.append(f"$ {command}\nno longer prints {titles + missing}, but:\n{printed}")
        anew[command] = printed


def record(scratch):
    """The page with what commands print now."""
    lines, is_old = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ ") or (line and not line.startswith("    ")):
            if is_old and not line.startswith("    $ "):
                lines.append("")
            is_old = False
        if not is_old:
            lines.append(line)
        if line.startswith("    $ ") and line[6:] in anew:
            printed = [row.rstrip() for row in anew[line[6:]].replace(str(scratch), "/home/me").rstrip().splitlines()]
            lines += [("    " + row).rstrip() for row in printed[:SHOWN_MOST]] + ["    ..."] * (len(printed) > SHOWN_MOST)
            is_old = True
    text = "\n".join(lines) + "\n"
    PAGE.write_text(text, encoding="utf-8")


def make_hardware(scratch, environment):
    """hw.db, the measurement with hardware of which the page speaks: a replay. False where that cannot be done."""
    def run(*words):
        return subprocess.run([str(word) for word in words], cwd=scratch, env=environment, capture_output=True, text=True,
                              check=False, timeout=120)
    if run("setarch", "-R", "true").returncode:
        return False
    run("gcc", "-g", "-O1", "-no-pie", "-o", "replay", SOURCE / "tests" / "e2e" / "programs" / "replay.c")
    (scratch / "places").write_text(run("setarch", "-R", "./replay").stdout)
    for n_samples in ("0", "3000"):  # the addresses under hpcrun, then the samples at these
        run(sys.executable, SOURCE / "tests" / "golden" / "make-replay.py", "pebs", "places", "ring", "expected", "--samples",
            n_samples)
        done = run("setarch", "-R", "hpcrun", "-ds", "-o", "hw.m", "-e", "REPLAY:ring", "./replay")
        (scratch / "places").write_text(done.stdout)
    done = run("hpcprof", "-o", "hw.db", "hw.m")
    if done.returncode:
        failures.append(f"hw.db cannot be made: {done.stderr}")
    return done.returncode == 0


def has_mpi(scratch, environment):
    """Whether four ranks start here."""
    words = "mpicc -x c - -o mpi-here <<< 'int main(void) { return 0; }' && mpiexec -n 4 ./mpi-here"
    return subprocess.run(["bash", "-c", words], cwd=scratch, env=environment, capture_output=True, check=False,
                          timeout=120).returncode == 0


def main():
    if platform.machine() != "x86_64":
        skip("software addresses need x86-64")
    if not (BUILD / ".libs" / "libhpcrun.so").exists() or not shutil.which("gcc") or not shutil.which("g++"):
        skip("libhpcrun.so or a compiler is missing")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for folder in ("tests", "src"):
            (scratch / folder).symlink_to(SOURCE / folder)
        environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", COLUMNS="100", XDG_CACHE_HOME=str(scratch / "cache"),
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_rmaps_base_oversubscribe="1")
        absent = [] if has_mpi(scratch, environment) else ["ranks"]
        absent += [] if make_hardware(scratch, environment) else ["hw.db"]
        n_run = 0
        for command, shown in blocks(PAGE.read_text(encoding="utf-8")):
            if any(word in command for word in absent):
                print(f"left out: {command}")
                continue
            done = subprocess.run(["bash", "-c", command], cwd=scratch, env=environment, capture_output=True, text=True,
                                  check=False, timeout=300, stdin=subprocess.DEVNULL)
            n_run += 1
            if done.returncode:
                failures.append(f"$ {command}\nexit status {done.returncode}: {done.stderr}")
            else:
                check_shape(command, shown, done.stdout)
        if "--record" in sys.argv:
            record(scratch)
    for failure in failures:
        print("FAIL:", failure)
    print(f"{n_run} commands, {len(failures)} failures")
    if n_run < 30:
        print("FAIL: the page has fewer commands than questions need")
    sys.exit(1 if failures or n_run < 30 else 0)


main()
