# SPDX-License-Identifier: BSD-3-Clause
"""What hpcrun would do on the machine of a directory, as text: for each line of its file cases (arguments of hpcrun) the
plan, then what the doctor says. Run as a program (HPCRUN DIR) it writes expected.txt of each machine in DIR; see
README.md beside it."""
import os
import pathlib
import subprocess
import sys

# Of the machine that the test runs on, not of the described one; fields that are 0 are left out below.
NOT_KEPT = ("size=",)
CASES = "-e datacentric\n"


def hpcrun(tool, directory, arguments):
    """Lines that hpcrun prints about the machine, errors and status included. No settings of the user's take part."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("HPCRUN_", "XDG_", "LIBPFM_", "DATACENTRIC_"))}
    environment |= {"HOME": "/home/user", "LC_ALL": "C.UTF-8"}
    variables = [a for a in arguments if "=" in a and not a.startswith("-") and a.split("=")[0].isupper()]
    for variable in variables:
        name, value = variable.split("=", 1)
        environment[name] = value
    arguments = [a for a in arguments if a not in variables]
    done = subprocess.run([str(tool), "--machine", str(directory), *arguments], capture_output=True, text=True,
                          cwd=directory, env=environment, check=False, stdin=subprocess.DEVNULL)
    lines = (done.stdout + done.stderr).splitlines()
    return lines if done.returncode == 0 else lines + [f"(exit status {done.returncode})"]


def events(lines):
    """The plan with the fields of each attr that are not 0 (the others are 0, whatever the kernel headers know)."""
    for line in lines:
        value = line.partition("=")[2]
        if line.startswith(NOT_KEPT) or ("=" in line and value in ("0", "0x0", "")):
            continue
        yield line


def describe(tool, directory):
    directory = pathlib.Path(directory).resolve()
    cases = directory / "cases"
    text = []
    for case in (cases.read_text(encoding="utf-8") if cases.exists() else CASES).splitlines():
        if not case or case.startswith("#"):
            continue
        arguments = case.split() if "--doctor" in case else ["--print-plan", *case.split()]
        text += [f"$ hpcrun {' '.join(arguments)}", *events(hpcrun(tool, directory, arguments)), ""]
    text += ["$ hpcrun --doctor", *hpcrun(tool, directory, ["--doctor"])]
    return "\n".join(line.replace(str(directory), "DIR").rstrip() for line in text) + "\n"


def machines_of(directory):
    """The machine that a folder is, or those that it holds."""
    return [directory] if (directory / "opens").exists() else sorted(directory.iterdir())


if __name__ == "__main__":
    for machine in machines_of(pathlib.Path(sys.argv[2])):
        found = describe(pathlib.Path(sys.argv[1]).resolve(), machine)
        (machine / "expected.txt").write_text(found, encoding="utf-8")
