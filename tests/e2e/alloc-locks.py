#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""The free of a block that is not recorded takes no lock, also where it is a neighbour of recorded ones. callgrind counts
the calls of a program that frees such blocks and of the same program that keeps them: the functions of the object map
that lock are called equally often. Where one recorded block is near, the filter of block starts knows that it is
another one; where several are, it lets the block through, and it is looked up."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

N_BLOCKS = 1000
PROGRAM = """
#include <stdlib.h>
int main(int argc, char **argv)
{
    static void *small[%d], *large[%d], *more[%d];
    size_t n_bytes = (size_t)atol(argv[1]);
    for (int i = 0; i < %d; i++) {
        small[i] = malloc(24);
        large[i] = malloc(n_bytes);
        more[i] = malloc(n_bytes);
    }
    for (int i = 0; argc > 2 && i < %d; i++)
        free(argv[2][0] == 's' ? small[i] : large[i]);
    return !small[0] || !large[0] || !more[0];
}
""" % ((N_BLOCKS,) * 5)
LOCKING = ("objmap_insert_hook", "objmap_remove_hook", "objmap_cut_hook", "objmap_flag_hook", "objmap_visit_hook",
           "objmap_lock_wait_hook", "objmap_take_hook", "objmap_retire_hook", "pthread_mutex_lock")


def calls(scratch, hpcrun, threshold, *arguments):
    """How often each function was called."""
    out = scratch / "callgrind.out"
    environment = dict(os.environ, DATACENTRIC_MIN_BYTES=str(threshold))
    shutil.rmtree(scratch / "m", ignore_errors=True)
    run = subprocess.run([hpcrun, "-e", "MEMLEAK", "-o", scratch / "m", "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                          scratch / "program", *arguments], capture_output=True, text=True, check=False,
                         env=environment)
    if run.returncode or not out.exists():
        print(f"SKIP: callgrind does not run here: {run.stderr[-300:]}")
        sys.exit(77)
    names, counts, callee = {}, {}, None
    for line in out.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line):
            if match.group(3):
                names[match.group(2)] = re.sub(r"@.*|'\d+$", "", match.group(3))
            callee = match.group(2) if match.group(1) else None
        elif (match := re.match(r"calls=(\d+)", line)) and callee:
            counts[callee] = counts.get(callee, 0) + int(match.group(1))
    by_name = {}
    for number, count in counts.items():
        by_name[names[number]] = by_name.get(names[number], 0) + count
    return by_name


def wrong_with(scratch, hpcrun, n_bytes, are_several_near):
    """What is wrong where the recorded blocks have n_bytes; are_several_near: so many that the filter cannot know."""
    kept, small, large = (calls(scratch, hpcrun, n_bytes, str(n_bytes), *words) for words in ([], ["small"], ["large"]))
    looked_at = small.get("sink_release", 0) - kept.get("sink_release", 0)
    removed = max(large.get(name, 0) - kept.get(name, 0) for name in ("objmap_remove_hook", "objmap_near_remove_hook"))
    different = {name: (kept.get(name, 0), small.get(name, 0)) for name in LOCKING
                 if kept.get(name, 0) != small.get(name, 0)}
    print(f"of {N_BLOCKS} unrecorded blocks {looked_at} were taken for recorded ones of {n_bytes} bytes; "
          f"{removed} recorded ones were removed")
    if are_several_near and looked_at < N_BLOCKS // 4:
        yield "the filter let too few blocks through to tell anything"
    if not are_several_near and looked_at:
        yield "the filter let blocks through though it knows the only recorded one near"
    if removed < N_BLOCKS:
        yield "recorded blocks were not removed, so that the calls tell nothing"
    if different:
        yield f"freeing unrecorded blocks called functions that lock: {different}"


def main():
    build = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
    if not shutil.which("valgrind") or not (build / ".libs/libhpcrun.so").exists():
        print("SKIP: valgrind is not installed, or libhpcrun.so has not been built")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="locus-test.") as directory:
        scratch = pathlib.Path(directory)
        (scratch / "program.c").write_text(PROGRAM, encoding="utf-8")
        subprocess.run([*os.environ.get("CC", "gcc").split(), "-O2", "-g", "-fno-builtin", scratch / "program.c", "-o",
                        scratch / "program"], check=True)
        wrong = [sentence for n_bytes, are_several_near in ((2048, False), (40, True))
                 for sentence in wrong_with(scratch, build / "hpcrun", n_bytes, are_several_near)]
    print("\n".join(f"FAIL: {sentence}" for sentence in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
