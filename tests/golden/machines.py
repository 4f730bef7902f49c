# SPDX-License-Identifier: BSD-3-Clause
"""On each described machine hpcrun plans what is expected, to the last field of each perf_event_attr, and the doctor
says what is expected."""
import difflib
import os
import pathlib
import sys

FOLDER = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "golden" / "machines"
LAST = ("expected.txt",)
HPCRUN = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcrun"
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "lib")]
import bundle  # noqa: E402
import record  # noqa: E402


def check_form(text):
    """Sentences about how a text is written."""
    if bundle.pack(bundle.golden(f"machines/{text.stem}"), LAST) == text.read_text(encoding="utf-8"):
        return []
    return [f"{text.name} is not written as tests/golden/machines/record.sh writes it"]


def check(machine):
    """Sentences about what is wrong with a machine."""
    for name in ("opens", "README", "expected.txt"):
        if not (machine / name).exists():
            return [f"{machine.name} has no {name}; tests/golden/machines/README.md says what a machine needs"]
    expected = (machine / "expected.txt").read_text(encoding="utf-8").splitlines()
    found = record.describe(HPCRUN, machine).splitlines()
    if not any(line.startswith("$ hpcrun --print-plan") for line in found):
        return [f"{machine.name} has no case"]
    return list(difflib.unified_diff(expected, found, f"{machine.name}/expected.txt", "found", lineterm=""))


def main():
    if not HPCRUN.exists():
        print("SKIP: hpcrun has not been built")
        return 77
    texts = sorted(FOLDER.glob("*.txt"))
    machines = [machine for text in texts for machine in record.machines_of(bundle.golden(f"machines/{text.stem}"))]
    problems = [line for text in texts for line in check_form(text)]
    problems += [line for machine in machines for line in check(machine)]
    print("\n".join(problems))
    print(f"{len(machines)} machines")
    return 1 if problems or len(machines) < 8 else 0


sys.exit(main())
