#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""SIGKILL at random moments of a busy program with several threads. Killed alone, its measurement is complete up to the
last sample, and every sample has its fate. Killed together with its companion, there is what the last checkpoint wrote,
which is no older than the interval of checkpoints. hpcprof reads each of them without being told.

usage: kills.py [--alone N] [--together N] [--seed N]"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
INTERVAL_S = 1
# A checkpoint is begun after the interval; on a crowded machine the companion waits for a processor and writes slowly.
SLACK_S = 2


def start(program, directory, options):
    """Starts it under hpcrun; returns the process (hpcrun becomes the program) once it is busy."""
    process = subprocess.Popen([BUILD / "hpcrun", "-o", directory, *options, program, "60"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if process.stdout.readline() != b"ready\n":
        process.kill()
        raise RuntimeError(f"{directory.name}: the program did not begin")
    return process


def writers(directory):
    return list(directory.glob(".writing-*"))


def settle(directory):
    for _ in range(600):
        if not writers(directory):
            return None
        time.sleep(0.05)
    return f"{directory.name} is still being written after 30 s"


def check_fates(directory, state):
    """Sentence about what is wrong, or None, and the number of samples."""
    result = subprocess.run([sys.executable, SOURCE / "tests/lib/check-fates.py", directory, "--state", state,
                             "--processes", "1"], capture_output=True, text=True, check=False)
    n_taken = sum(event["taken"] for path in directory.glob("*.objects")
                  for event in json.loads(path.read_text(encoding="utf-8"))["events"])
    return (f"{directory.name}: {result.stdout.strip()}" if result.returncode else None), n_taken


def check_logs(directory):
    """What is wrong with the logs of samples: of each thread one sample may be in the counts and not yet in the log."""
    result = subprocess.run([sys.executable, SOURCE / "tests/lib/check-events.py", "--slack", "1", directory],
                            capture_output=True, text=True, check=False)
    return f"{directory.name}: {result.stdout.strip()}" if result.returncode else None


def read_by_hpcprof(directory):
    database = directory.with_suffix(".db")
    result = subprocess.run([BUILD / "hpcprof", "-o", database, directory], capture_output=True, text=True, check=False)
    if result.returncode or not (database / "meta.db").exists():
        return f"{directory.name}: hpcprof: {result.stderr.strip()}"
    shutil.rmtree(database)
    return None


def kill_alone(program, scratch, number, delay_s):
    directory = scratch / f"alone-{number}"
    process = start(program, directory, ["-e", "datacentric", "-t", "--trace-size", "256k"])
    time.sleep(delay_s)
    process.kill()
    process.wait()
    wrong = settle(directory)
    fates, n_taken = check_fates(directory, "killed")
    wrong = wrong or fates or (n_taken and check_logs(directory)) or read_by_hpcprof(directory)
    shutil.rmtree(directory)
    return wrong, n_taken


def kill_together(program, scratch, number, delay_s):
    directory = scratch / f"together-{number}"
    process = start(program, directory, ["-e", "datacentric", "-ck", f"CHECKPOINT_SECONDS={INTERVAL_S}"])
    time.sleep(INTERVAL_S + SLACK_S / 2 + delay_s)
    companions = [int(path.name.rsplit("-", 1)[1]) for path in writers(directory)]
    for pid in companions:
        os.kill(pid, signal.SIGKILL)
    process.kill()
    killed_s = time.time()
    process.wait()
    if len(companions) != 1:
        return f"{directory.name}: {len(companions)} companions", 0
    profiles = list(directory.glob("*.hpcrun"))
    if not profiles:
        return f"{directory.name}: no checkpoint after {INTERVAL_S + SLACK_S / 2 + delay_s:.1f} s", 0
    age_s = killed_s - max(path.stat().st_mtime for path in profiles)
    if age_s > INTERVAL_S + SLACK_S:
        return f"{directory.name}: the last checkpoint was {age_s:.1f} s old", 0
    wrong = read_by_hpcprof(directory)
    for path in writers(directory):  # nobody is left who would remove it; hpcprof has seen that
        path.unlink()
    for path in directory.glob("*.tmp*"):
        path.unlink()
    fates, n_taken = check_fates(directory, "checkpoint")
    shutil.rmtree(directory)
    return wrong or fates, n_taken


def run_all(name, job, count, scratch, program, delays):
    wrong, n_samples = [], 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
        for sentence, n_taken in pool.map(lambda i: job(program, scratch, i, delays[i]), range(count)):
            n_samples += n_taken
            if sentence:
                wrong.append(sentence)
    print(f"{name}: {count - len(wrong)} of {count} complete, {n_samples} samples")
    if count >= 10 and n_samples == 0:
        wrong.append(f"{name}: no samples at all")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", type=int, default=20)
    parser.add_argument("--together", type=int, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if not (BUILD / ".libs/libhpcrun.so").exists():
        print("SKIP: libhpcrun.so has not been built")
        sys.exit(77)
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="locus-kills."))
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    program = scratch / "busy"
    subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-g", "-pthread", SOURCE / "tests/e2e/busy.c", "-o", program],
                   check=True)
    try:
        wrong = run_all("killed alone", kill_alone, options.alone, scratch, program,
                        [chance.uniform(0, 0.8) for _ in range(options.alone)])
        wrong += run_all("killed together", kill_together, options.together, scratch, program,
                         [chance.uniform(0, 2) for _ in range(options.together)])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    sys.exit(1 if wrong else 0)


main()
