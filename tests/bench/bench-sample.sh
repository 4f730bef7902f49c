#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What sampling costs: one full sample against one with an empty handler, and the CPU time of whole programs sampled at
# 1 kHz against the same programs with an idle runtime; the last one, a compiler, runs through so much code that almost
# every sample lies in a function which was never sampled before. Ratios of one run; the noise of the machine is the same
# ratio of the baseline against itself.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
bench=$builddir/tests/bench/sample-bench
[ -x "$bench" ] || skip "sample-bench is for x86-64 only"

for kernel in compute chase; do
    python3 - "$hpcrun" "$bench" "$kernel" "$scratch" <<'END'
import statistics, subprocess, sys
hpcrun, bench, kernel, scratch = sys.argv[1:]
def gap(words, i):
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return int(out[0]), float(out[1])
empty, full, logged, none = [], [], [], []
for i in range(5):
    none.append(gap([bench, "none", kernel], i))
    empty.append(gap([bench, "empty", kernel], i))
    full.append(gap([hpcrun, "-o", f"{scratch}/{kernel}{i}", "-e", "EADDR", bench, "none", kernel], i))
    logged.append(gap([hpcrun, "-o", f"{scratch}/{kernel}{i}t", "-e", "EADDR", "-t", bench, "none", kernel], i))
def line(name, runs):
    print(f"{kernel:8} {name:15} median gap {statistics.median(g for _, g in runs):6.2f} us, {statistics.median(n for n, _ in runs):.0f} gaps in 3 s")
line("not sampled", none), line("empty handler", empty), line("full sample", full), line("with its log", logged)
base = statistics.median(g for _, g in empty)
noise = max(g for _, g in empty) / min(g for _, g in empty)
print(f"{kernel:8} full / empty = {statistics.median(g for _, g in full) / base:.2f} (goal 1.1; empty against itself up to {noise:.2f})")
END
done

# Whole programs: pairs of an idle runtime and 1 kHz, in turn.
CC=${CC:-gcc} "$srcdir/tests/e2e/build-kernels" "$scratch/kernels" matmul chase openmp
printf '#include <iostream>\n#include <map>\n#include <regex>\n%s\n' \
    'int main(int n, char **v) { std::map<std::string, bool> m; std::regex r(v[1]);
    for (int i = 2; i < n; i++) m[v[i]] = std::regex_search(v[i], r); std::cout << m.size(); }' >"$scratch/cold.cc"
compiler=$(${CXX:-g++} -print-prog-name=cc1plus)
"${CXX:-g++}" -E "$scratch/cold.cc" -o "$scratch/cold.ii" || true

# print_ratio PROGRAM...: of $event, pairs of an idle runtime and 1 kHz.
print_ratio() {
    python3 - "$hpcrun" "$scratch" "$event" "$@" <<'END'
import os, resource, shutil, statistics, subprocess, sys
hpcrun, scratch, event, *program = sys.argv[1:]
def cpu(words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
def once(*options):
    where = f"{scratch}/pair"
    shutil.rmtree(where, ignore_errors=True)
    return cpu([hpcrun, "-o", where, "-e", event, *options, *program])
ratios, noise = [], []
for _ in range(15):
    idle, sampled, again = once("-ds"), once(), once("-ds")
    ratios.append(sampled / idle)
    noise.append(again / idle)
print(f"{os.path.basename(program[0]):8} {event:11} CPU time at 1 kHz / idle runtime: median of 15 pairs {statistics.median(ratios):.3f} (goal 1.02); idle / idle {statistics.median(noise):.3f}, {min(noise):.3f}-{max(noise):.3f}")
END
}
event=datacentric
for program in "$scratch/kernels/matmul" "$scratch/kernels/chase" "$scratch/kernels/openmp"; do
    if [ -x "$program" ]; then
        print_ratio "$program"
    fi
done
if [ -x "$compiler" ] && [ -s "$scratch/cold.ii" ]; then
    for event in CPUTIME EADDR; do
        print_ratio "$compiler" -quiet -O2 -fpreprocessed "$scratch/cold.ii" -o /dev/null
    done
fi
finish
