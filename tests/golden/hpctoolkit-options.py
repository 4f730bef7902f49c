# SPDX-License-Identifier: BSD-3-Clause
"""The options of HPCToolkit in the tables of doc/from-hpctoolkit.md: our tools take each of them, and those whose row says "no effect"
are named in one line. Groups of events, lists of events in the environment and --only-exe do what they say."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
# What may stand for an argument, so that it is a right one.
VALUES = {"EVENT": "CPUTIME", "EVENT,EVENT": "task-clock,page-faults", "N": "2", "X": "1/2", "OLD=NEW": "a=b"}
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *words, **environment):
    return subprocess.run([str(BUILD / tool), *map(str, words)], capture_output=True, check=False, text=True,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


def rows():
    """(tool, words of an option, what the row says) of the tables."""
    tools = []
    for line in (SOURCE / "doc" / "from-hpctoolkit.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            tools = [tool for tool in line[3:].split(", ") if tool != "hpcprof-mpi"]
        elif line.startswith("| `"):
            options, says = line.strip("| ").split(" | ")
            for option in re.findall(r"`([^`]+)`", options):
                for tool in tools:
                    yield tool, [VALUES.get(word, word) for word in option.split()], says


def check_rows():
    n, silent = 0, {"hpcrun": [], "hpcstruct": [], "hpcprof": [], "hpclink": []}
    for tool, words, says in rows():
        n += 1
        done = run(tool, *words, "--help")
        expect(done.returncode == 0 and not done.stderr, f"{tool} {' '.join(words)}: {done.returncode} {done.stderr}")
        expect("fails" not in says, f"{tool} {' '.join(words)} fails")
        if says.startswith("no effect") and words[0] not in ("-m", "--merge-threads", "-r", "--retain-recursion", "-fnb", "--fnbounds", "-N",
                                                             "--normalize", "--remove-redundancy", "--struct-id"):
            silent[tool].append(words)
    expect(n > 120, f"{n} options in the tables")
    return silent


def check_said(silent, scratch):
    """One line for all that have no effect, with the first name of each."""
    behind = {"hpcrun": ["--print-plan", "-e", "CPUTIME"], "hpcstruct": ["-o", "-", scratch / "nowhere"], "hpcprof": [scratch / "nowhere"],
              "hpclink": ["false"]}
    for tool, options in silent.items():
        done = run(tool, *(word for words in options for word in words), *behind[tool])
        said = [line for line in done.stderr.splitlines() if "no effect here: " in line]
        expect(len(said) == 1 and len(options) >= 4, f"{tool}: {done.stderr}")
        named = said[0].partition("here: ")[2].split(", ") if said else []
        expect(len(named) == len(set(named)) >= 4 and all(name in [o[0] for o in options] for name in named), f"{tool}: {said}")
        for words in options:
            alone = run(tool, *words, *behind[tool]).stderr
            expect("no effect here: -" in alone, f"{tool} {words}: {alone}")


def check_events():
    for events in ("task-clock,page-faults", "task-clock@1000000,page-faults@100"):
        plain, group = run("hpcrun", "--print-plan", "-e", events), run("hpcrun", "--print-plan", "-e", "{" + events + "}")
        expect(plain.stdout == group.stdout and plain.stderr == group.stderr and plain.stdout, f"{events}: {plain.stdout}, {plain.stderr}")
    one, two = (run("hpcrun", "--print-plan", HPCRUN_EVENT_LIST=text) for text in ("CPUTIME@f100;page-faults", "CPUTIME@f100 page-faults"))
    expect(one.stdout == two.stdout and one.stdout and one.returncode == two.returncode, f"semicolons: {one.stderr}")
    with tempfile.TemporaryDirectory() as name:
        done = run("hpcrun", "-o", pathlib.Path(name) / "m", "echo", "ran", HPCRUN_EVENT_LIST="NONE")
        expect(done.stdout == "ran\n" and done.returncode == 0 and "NONE" in done.stderr and not os.listdir(name), f"NONE: {done}")


def check_only_exe(scratch):
    made = scratch / "measured"
    subprocess.run([sys.executable, str(SOURCE / "tests" / "golden" / "make-hpcrun.py"), str(made)], check=False, capture_output=True)
    done = run("hpcprof", "--only-exe", "no-such-program", "-o", scratch / "db", scratch)
    expect(done.returncode == 1 and "holds no profile of a program that --only-exe names" in done.stderr, f"--only-exe: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        silent = check_rows()
        check_said(silent, scratch)
        check_events()
        check_only_exe(scratch)
    for sentence in failures[:30]:
        print("FAIL:", sentence[:1000])
    sys.exit(1 if failures else 0)


main()
