#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The report accounts for the time: few samples are called few and stay those of the first event, time in the kernel and
# in waiting loops is separated from work, an allocator that is not seen is named, and processes count that outlive others.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "software addresses need x86-64"
need python3
cd "$scratch"
program=$srcdir/tests/e2e/programs/accounts.c
# A table of 16 MiB, where most of the time has to be at the table: one of 1 MiB is as large as the second-level cache of
# some processors, and what is not waited for is arithmetic.
large=-DN='(1u << 22)'
$CC -O2 -g -pthread "$program" -o accounts
$CC -O2 -g -pthread "$large" "$program" -o backoff
$CC -O2 -g -pthread -fopenmp "$large" "$program" -o gomp 2>/dev/null || skip_part "no libgomp"

# measured NAME COMMAND...: makes NAME.txt, the report, NAME.json, and NAME.said, the program's output.
measured() {
    local name=$1
    shift
    "$builddir/hpcrun" -e datacentric -o "m-$name" "$@" >"$name.said" 2>"$name.err" || fail "$name: the program failed"
    combined "$name"
}

# combined NAME: the same for the measurement m-NAME that is there.
combined() {
    local name=$1
    settle "m-$name" 30
    "$builddir/hpcprof" -o "d-$name" "m-$name" >/dev/null 2>&1 || fail "$name: hpcprof fails"
    "$builddir/hpcquery" vars -v "d-$name" >"$name.txt" || fail "$name: hpcquery fails"
    "$builddir/hpcquery" vars --json "d-$name" >"$name.json" || fail "$name: hpcquery --json fails"
}

# judge NAME EXPRESSION: true of the report r, the program's output s, the shares by class c, and those of waiting by site.
# waited(): of the user time that is not work, nearly all is waiting; how much that is depends on the machine.
judge() {
    python3 - "$1" "$2" <<'PYTHON' || fail "$1: not so: $2"
import collections, json, sys
r = json.load(open(sys.argv[1] + ".json", encoding="utf-8"))
try:
    s = json.load(open(sys.argv[1] + ".said", encoding="utf-8"))
except ValueError:
    s = {}
c, sites = collections.Counter(), collections.Counter()
for row in r["variables"]:
    c[row["class"]] += row["share"]
    if row["class"] == "waiting":
        sites[row["alloc_site"]] += row["share"]
def waited():
    expected = 100 * (s["user_s"] - s["worked_s"]) / s["user_s"]
    return expected - 25 < c["waiting"] < expected + 25 and c["unattributed"] < 10
sound = abs(sum(c.values()) - 100) < 0.1 or not c
for row in r["variables"]:  # what waited has rows of its own, in the figures by thread as well
    threads = row.get("threads")
    if threads and abs(threads["mean"] * threads["n"] - row["value"]) > 1e-6 * max(row["value"], 1):
        print(f"{row['variable']}: {threads} do not add up to {row['value']}")
        sound = False
if not (sound and eval(sys.argv[2])):
    print(f"{sys.argv[1]}: {dict(c)}, {dict(sites)}, {r['metric']}, {r.get('cpu_time')}, {s}")
    sys.exit(1)
PYTHON
}

measured short ./accounts short
judge short 'r["metric"].startswith("EADDR") and r["taken"] < 50 and r["has_too_few_samples"]'
expect_text short.txt 'too few for shares'
# A clock that counts ticks may see none in the kernel.
if python3 -c 'import json; t = json.load(open("short.json"))["cpu_time"]; exit(t["system_s"] < 0.01 * t["user_s"])'; then
    expect_text short.txt '^ +- +user code'
fi
if grep -Eq '^ *[0-9.]+ % .*heap' short.txt; then fail "few samples are given shares"; fi
measured kernel ./accounts kernel
# Many kernels split a process's time by what runs at each tick, and threads' times in another way.
judge kernel 'abs(r["cpu_time"]["system_s"] - s["system_s"]) < 0.15 + 0.15 * s["system_s"]'
judge kernel 'abs(r["cpu_time"]["user_s"] - s["user_s"]) < 0.15 + 0.15 * s["user_s"]'
judge kernel 'r["cpu_time"]["sampled_s"] < 0.7 * (s["user_s"] + s["system_s"]) and c["heap"] > 70'
# What hpcrun used before it became the program, and the runtime's start, are not the program's: the clock that it sees
# has them.
judge kernel 's["launcher_s"] > 0 and s["ended_s"] - s["begun_s"] - 0.02 < r["cpu_time"]["user_s"] + r["cpu_time"]["system_s"]'
judge kernel 'r["cpu_time"]["user_s"] + r["cpu_time"]["system_s"] < s["ended_s"] - 0.5 * s["launcher_s"]'
expect_text kernel.txt '<kernel> +of the CPU time'
expect_text <(tr -s ' \n' ' ' <kernel.txt) 'the samples stand for .* of the CPU time'
# Where another thread closes the main one, its times are in ticks, and less than what is left out of them.
measured exit ./accounts exit
judge exit '0.2 < r["cpu_time"]["user_s"] < 5 and r["cpu_time"]["system_s"] < 5'
# The profiler's own code has one row, whatever it touched, and the head says how much that is.
measured allocate ./accounts allocate
judge allocate 'sum(row["share"] for row in r["variables"] if row["variable"] == "<profiler>") > 2'
judge allocate 'not [row["variable"] for row in r["variables"] if row["variable"] != "<profiler>" and any("/src/alloc-wrap/" in
    (line["file"] or "") or "/src/runtime/" in (line["file"] or "") for line in row["lines"])]'
expect_text <(tr -s ' \n' ' ' <allocate.txt) " are the profiler's own work|the profiler took [0-9]+ % of the CPU time"
"$builddir/hpcquery" tree --csv --threshold 0 d-allocate >allocate.csv
grep -q '"<profiler>"' allocate.csv || fail "the tree says nothing of the profiler's own work"
if grep -Eq -- '/src/(alloc-wrap|runtime)/|-(hook|sig)\.[ch]' allocate.csv; then fail "the profiler's functions are in the tree"; fi
measured spinlock ./accounts spinlock
judge spinlock 'waited() and all("spin lock" in site for site in sites)'
measured backoff ./backoff backoff
judge backoff 'c["waiting"] < 5 and c["heap"] > 60'
measured yield ./accounts yield
judge yield 'not sites or all("sched_yield" in site for site in sites)'
for way in daemon heir; do
    measured $way ./accounts $way
    judge $way 'r["taken"] > 100 and c["heap"] > 60 and c["dropped"] < 5'
done
for killer in TERM KILL; do
    # When it has had 0.4 s of CPU time, however long that takes; nothing is started for the waiting.
    # shellcheck disable=SC2016 # for the shell that is measured
    measured killed-$killer bash -c './accounts endless & pid=$!
        exec {never}<> <(:)
        until read -r stat <"/proc/$pid/stat" && set -- $stat && [ "${14}" -ge 40 ]; do read -rt 0.1 -u "$never"; done
        kill -s "$0" "$pid"; wait; :' $killer
    judge killed-$killer 'r["cpu_time"]["user_s"] >= 0.95 * r["cpu_time"]["sampled_s"] > 0.1 and c["heap"] > 60'
    judge killed-$killer 'r["cpu_time"]["system_s"] < 0.6 * r["cpu_time"]["user_s"]'
done
# A process that becomes other programs is one process.
measured chain env A=1 nice -n1 ./accounts short
expect_text chain.txt '^program .*[: ]1 process(,| that ran [23] programs)'
measured shell bash -c './accounts short; ./accounts short; :'
expect_text shell.txt '^program .*[: ][23] processes(,| that ran 2 programs| \(bash, accounts\),)'
if [ -e gomp ]; then
    OMP_WAIT_POLICY=active measured gomp ./gomp openmp
    judge gomp 'waited() and all(site.startswith("libgomp: ") for site in sites)'
fi
if clang -O2 -g -pthread -fopenmp "$large" "$program" -o libomp 2>/dev/null; then
    KMP_BLOCKTIME=infinite measured libomp ./libomp openmp
    judge libomp 'waited() and all(site.startswith("libomp: ") for site in sites)'
else
    skip_part "no clang with libomp"
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for mpi in mpich openmpi; do
    case $mpi in
    mpich) launch="mpiexec.mpich -n 2" ;;
    openmpi) launch="mpirun.openmpi --oversubscribe -n 2" ;;
    esac
    if ! "mpicc.$mpi" -O2 -g "$srcdir/tests/e2e/programs/mpi-wait.c" -o "$mpi" 2>/dev/null; then
        skip_part "mpicc.$mpi is not installed"
        continue
    fi
    # shellcheck disable=SC2086 # words
    timeout 60 $launch "$builddir/hpcrun" -e datacentric -o "m-$mpi" "./$mpi" >"$mpi.said" 2>"$mpi.err" ||
        fail "$mpi: the program failed"
    combined "$mpi"
    judge "$mpi" 's["waited_s"] < 0.2 or c["waiting"] > 15 and any("MPI_Barrier" in site for site in sites)'
done
# An operator new of the program's own is named where its blocks are not seen, and only there.
cat >new.cc <<'END'
#include <cstdio>
#include <new>
#include <vector>
#include <sys/mman.h>
#ifdef POOL
void *operator new(std::size_t n) { return mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
void operator delete(void *) noexcept {}
void operator delete(void *p, std::size_t n) noexcept { munmap(p, n); }
#endif
int main()
{
    std::vector<unsigned> v(1 << 22); // larger than a core's caches, as above
    unsigned sum = 0;
    for (unsigned k = 0; k < 40; k++)
        for (unsigned i = 0; i < 1 << 22; i++)
            sum += v[i * 4099u & ((1 << 22) - 1)]++;
    std::printf("{\"sum\": %u}\n", sum);
}
END
if "${CXX:-g++}" -O2 -g -static-libstdc++ -rdynamic new.cc -o new 2>/dev/null && "${CXX:-g++}" -O2 -g -DPOOL -rdynamic new.cc -o pool; then
    measured new ./new
    ! grep 'has operator new from' new.txt || fail "the report denies blocks that are seen"
    judge new 'c["heap"] > 60'
    measured pool ./pool
    expect_text pool.txt '^hidden .*has operator new from'
    judge pool 'c["mmap"] > 60'
else
    skip_part "no static libstdc++"
fi
if $CC -O2 -g -pthread "$large" "$program" -Wl,-Bstatic -ljemalloc -Wl,-Bdynamic -ldl -lm -lstdc++ -o inside 2>/dev/null; then
    measured inside ./inside backoff
    expect_text inside.txt '^hidden .*inside .*jemalloc'
    judge inside 'c["mmap"] > 60'
else
    skip_part "no static jemalloc"
fi
finish
