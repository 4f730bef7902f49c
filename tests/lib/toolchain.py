# SPDX-License-Identifier: BSD-3-Clause
"""The compiler that the tree was configured for, and the binary utilities that belong to it."""
import os
import shlex
import subprocess

COMPILER = shlex.split(os.environ.get("CC", "gcc"))


def utility(name):
    """The compiler's own nm, objdump, strip ...: the native ones cannot read other architectures."""
    found = subprocess.run([*COMPILER, f"-print-prog-name={name}"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or name


def machine():
    """What the compiler compiles for: x86_64, aarch64, powerpc64le ..."""
    found = subprocess.run([*COMPILER, "-dumpmachine"], capture_output=True, text=True, check=True)
    return found.stdout.split("-")[0]
