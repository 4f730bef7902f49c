#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a sample costs beyond its count: its place in its variable, its record in the log, and the question on which memory
# node its page is; and what of the run time these questions are, in the companion, which is told that one memory node is two.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
bench=$builddir/tests/bench/record-bench
[ -x "$bench" ] || skip "record-bench has not been built"
read -r reach log < <("$bench")
printf 'summary of places: %s ns a sample (goal 100)\n' "$reach"
printf 'log of samples: %s ns a sample with its clock (goal 60)\n' "$log"
# move_pages as the companion asks: 512 pages of another process at a time.
python3 - <<'END'
import ctypes, mmap, os, signal, statistics, time
libc = ctypes.CDLL(None, use_errno=True)
N, PAGE = 512, mmap.PAGESIZE
area = mmap.mmap(-1, 16 * N * PAGE)
for i in range(16 * N):
    area[i * PAGE] = 1
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
child = os.fork()
if child == 0:
    signal.pause()
pages, status, costs = (ctypes.c_void_p * N)(), (ctypes.c_int * N)(), []
for i in range(320):
    for k in range(N):
        pages[k] = start + ((i % 16) * N + k) * PAGE
    before = time.thread_time_ns()
    answer = libc.syscall(279, child, ctypes.c_ulong(N), pages, None, status, 0)  # move_pages of x86-64
    costs.append((time.thread_time_ns() - before) / N)
    if answer:
        print("homes: the kernel does not say where pages are:", os.strerror(ctypes.get_errno()))
        break
else:
    print(f"homes: {statistics.median(costs):.0f} ns a page, in batches of {N} (goal 200)")
os.kill(child, signal.SIGKILL)
END

# Whole programs: the companion becomes a child of the script, and its CPU time is known when it ends.
CC=${CC:-gcc} "$srcdir/tests/e2e/build-kernels" "$scratch/kernels" gups stream openmp
echo 0-1 >"$scratch/online"
if unshare -m mount --bind "$scratch/online" /sys/devices/system/node/online 2>/dev/null; then
    python3 - "$hpcrun" "$scratch" "${1:-3}" <<'END'
import ctypes, os, pathlib, shutil, statistics, subprocess, sys
hpcrun, scratch, n_rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
TOLD = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" /sys/devices/system/node/online; shift; exec "$@"', "sh", f"{scratch}/online"]

def run(program, prefix):
    """CPU seconds of the program and of what it left behind; whether pages were asked for."""
    where = pathlib.Path(scratch, "homes")
    shutil.rmtree(where, ignore_errors=True)
    first = subprocess.Popen([*prefix, hpcrun, "-o", where, program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own = others = 0
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        seconds = usage.ru_utime + usage.ru_stime
        if pid == first.pid:
            own, first.returncode = seconds, status
        else:
            others += seconds
    return own, others, any('"homes": [[' in path.read_text(encoding="utf-8").replace("\n", "") for path in where.glob("*.objects"))

for name in ("gups", "stream", "openmp"):
    program = pathlib.Path(scratch, "kernels", name)
    if not program.exists():
        continue
    parts = []
    for _ in range(n_rounds):
        own, with_questions, is_asked = run(program, TOLD)
        _, without, is_not = run(program, [])
        if not is_asked or is_not:
            print(f"homes, {name}: not measured: pages were {'' if is_asked else 'not '}asked for, and then {'' if is_not else 'not '}")
            break
        parts.append(100 * (with_questions - without) / own)
    else:
        print(f"homes, {name}: {statistics.median(parts):+.2f} % of the program's {own:.1f} s of CPU time, in the companion (goal 0.5; "
              f"{min(parts):+.2f} to {max(parts):+.2f} in {n_rounds} pairs)")
END
else
    skip_part "homes: nobody can be told here that there are two memory nodes"
fi
finish
