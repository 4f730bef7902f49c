# SPDX-License-Identifier: BSD-3-Clause
"""Running the programs whose answer is known under hpcrun, and building them otherwise than the build has."""
import csv
import io
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
AS_BUILT = BUILD / "tests/e2e/kernels"


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def check_needs():
    for tool in ("hpcrun", "hpcprof", "hpcquery", ".libs/libhpcrun.so"):
        if not (BUILD / tool).exists():
            skip(f"{tool} has not been built")


def run(arguments, **options):
    """What the command printed; None where it does not run on this machine."""
    result = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL, check=False, **options)
    if result.returncode == 77:
        return None
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: exit status {result.returncode}: {result.stderr}")
    return result.stdout


def profile(command, scratch, is_delayed=True):
    """The rows of the report on a program, and what the profiled run printed; None and "" where the program does not
    run here. is_delayed: it is sampled only from where it calls for it itself."""
    measurements, database = scratch / "measurements", scratch / "database"
    for directory in (measurements, database):
        shutil.rmtree(directory, ignore_errors=True)
    delay = ["-ds"] if is_delayed else []
    printed = run([BUILD / "hpcrun", *delay, "-e", "datacentric", "-o", measurements, *command])
    if printed is None:
        return None, ""
    run([BUILD / "hpcprof", "-o", database, measurements])
    return list(csv.DictReader(io.StringIO(run([BUILD / "hpcquery", "vars", "--csv", database])))), printed


def build(command, scratch, *programs):
    """Builds the programs, or those that are named, with "COMPILER FLAGS"; returns their directory."""
    compiler, flags = command.split(" ", 1)
    directory = scratch / command.replace(" ", "")
    environment = dict(os.environ, CC=compiler, OPT=f"{flags} -g", CXX={"gcc": "g++", "clang": "clang++"}[compiler])
    if not shutil.which(compiler):
        skip(f"{compiler} is not installed")
    print(run([SOURCE / "tests/e2e/build-kernels", directory, *programs], env=environment), end="")
    return directory
