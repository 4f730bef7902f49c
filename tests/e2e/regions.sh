#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that name the parts of their work (locus.h, ITT's tasks, NVTX's ranges): samples are shown by region, in both
# trees alike, whatever the program does wrong; without the profiler it runs the same.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
need python3
cd "$scratch"
cat >paths.py <<'END'
import csv
def paths(name):
    """The own value of each line of a tree, and the names from the root to it, functions without their parameters."""
    rows = {row["id"]: row for row in csv.DictReader(open(name, encoding="utf-8"))}
    for row in rows.values():
        path, up = [], row
        while row["kind"] == "line" and up:
            path.insert(0, up["name"].split("(")[0])
            up = rows.get(up["parent"])
        if path:
            yield float(row["exclusive"]), path
END

for api in 1 2 3; do
    $CC -O1 -g -w -pthread -DAPI=$api -I"$srcdir/src" "$srcdir/tests/e2e/regions.c" -o "regions$api" -ldl
    expect_status 5 "./regions$api"
    cp out native
    expect_status 5 "$builddir/hpcrun" -e EADDR@f1000 -o "m$api" "./regions$api"
    expect_same native out
    python3 "$srcdir/tests/lib/check-fates.py" "m$api" --processes 2 --threads 3 >out || fail "API $api: $(cat out)"
    expect_status 0 "$builddir/hpcprof" -o "db$api" "m$api"
    "$builddir/hpcquery" vars --by region --csv "db$api" >regions.csv || fail "API $api: no table of regions"
    "$builddir/hpcquery" vars --csv "db$api" >vars.csv
    "$builddir/hpcquery" tree --csv "db$api" >tree.csv
    "$builddir/hpcquery" datatree --csv "db$api" | tail -n +2 >>tree.csv
    python3 - "$api" >out 2>&1 <<'PYTHON' || fail "API $api: $(cat out)"
import collections, csv
rows = list(csv.DictReader(open("regions.csv", encoding="utf-8")))
share = collections.defaultdict(float)
for row in rows:
    share[row["region"], row["variable"]] += float(row["share"])
    share[row["region"]] += float(row["share"])
print(dict(share))
assert abs(sum(float(row["share"]) for row in rows) - 100) < 0.01
# The same sums by variable as without regions.
by_variable = collections.Counter()
for row in rows:
    by_variable[row["variable"]] += float(row["value"])
for row in csv.DictReader(open("vars.csv", encoding="utf-8")):
    if row["class"] != "kernel":  # no samples, so no regions
        by_variable[row["variable"]] -= float(row["value"])
assert all(abs(rest) < 1 for rest in by_variable.values()), by_variable
# Phases: setup 2 (one of the child), solve 2, smooth 1, other 1, odd 1, outside 2.
assert 10 < share["setup"] < 35 and share["setup", "grid"] > 0.7 * share["setup"], "setup"
assert 10 < share["solve"] < 35 and share["solve", "grid"] > 0.7 * share["solve"], "solve"
assert share["solve > smooth", "table"] > 0.6 * share["solve > smooth"] > 2, "smooth"
assert share["other, \"quoted\""] > 3, "other"
# A sample may also fall in between, while they are entered and left.
deep = [name for name in share if isinstance(name, str) and name.startswith("odd > 1 > 2")]
assert max(name.count(" > ") for name in deep) == 63, deep
assert sum(share[name] for name in deep if name.count(" > ") == 63) > 3, deep
assert 8 < share[""] < 35 and share["", "table"] > 0.6 * share[""], "outside"
assert share["left open"] == 0
# Both trees have the same regions with the same totals.
tree = list(csv.DictReader(open("tree.csv", encoding="utf-8")))
data, sums = set(), {False: collections.Counter(), True: collections.Counter()}
for row in tree:
    if row["name"] == "<datacentric>" or row["parent"] in data:
        data.add(row["id"])
    if row["name"].startswith("<region "):
        sums[row["id"] in data][row["name"]] += float(row["inclusive"])
assert sums[True] == sums[False] and len(sums[True]) >= 5, sums
PYTHON
    cat "m$api"/*.log >log
    expect_text log 'regions: 36 entered more than 64 deep'
    expect_text log 'regions: 1 left without having been entered'
    expect_text log 'regions: 1 without a name'
    expect_text log 'regions: 2 not left when their thread ended'
    expect_status 0 "$builddir/hpcquery" vars "db$api"
    expect_text out '^regions +.*(setup|solve) [0-9.]+ %'
    expect_status 0 "$builddir/hpcquery" vars --by region "db$api"
    expect_text out '%  +solve > smooth$'
    expect_text out '%  +outside of all regions$'
    "$builddir/hpcquery" vars --by region --json "db$api" | python3 -c 'import json, sys; json.load(sys.stdin)["regions"][0]["variables"][0]["value"]' || fail "API $api: JSON"
done
expect_status 2 "$builddir/hpcquery" vars --by file db1
expect_status 0 "$builddir/hpcquery" datatree --by region --csv db1
expect_text out '"<region solve>",.*,"solve",[0-9]'

# Names that nobody would give, and more than there is room for.
cat >many.cc <<'END'
#include <string>
#include "runtime/locus.h"
static volatile unsigned long numbers[4096];
static unsigned long use(int n)
{
    unsigned long sum = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 4096; i++)
            sum += numbers[i];
    return sum;
}
int main()
{
    unsigned long sum = 0;
    for (int i = 0; i < 6000; i++) {
        locus::region here(("name " + std::to_string(i)).c_str());
        sum += use(3);
    }
    for (const char *name : {"<a> \"b\" \\ \n \t \x01", "\xff\xfe", "caf\xc3\xa9"}) {
        locus::region here(name);
        sum += use(6000);
    }
    locus::region here(std::string(1000, 'l').c_str());
    sum += use(6000);
    return sum & 0;
}
END
"${CXX:-g++}" -O1 -g -I"$srcdir/src" many.cc -o many || fail "many.cc does not build"
expect_status 0 "$builddir/hpcrun" -e EADDR@f1000 -o many-m ./many
python3 "$srcdir/tests/lib/check-fates.py" many-m --processes 1 --threads 1 >out || fail "many: $(cat out)"
expect_status 0 "$builddir/hpcprof" -o many-db many-m
expect_status 0 "$builddir/hpcquery" vars --by region many-db
cat many-m/*.log >log
expect_text log 'regions: 19[0-9][0-9] without a name, or beyond the room'

# Threads stand below the call that made them: those of pthread_create, std::thread and std::async, a thread's own ones,
# those of a child of fork; of threads that share a record only where all were made on one path.
cat >creators.cc <<'END'
#include <future>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <threads.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned words[1 << 16];
__attribute__((noinline)) static void work(double seconds)
{
    double start = 0, now = 0;
    do {
        timespec time;
        for (unsigned i = 0; i < 1 << 14; i++)
            words[i] = words[i] + i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        now = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
        start = start > 0 ? start : now;
    } while (now < start + seconds);
}
static void *plain(void *unused)
{
    work(0.15);
    return unused;
}
static void *brief(void *unused)
{
    work(0.001);
    return unused;
}
static int c11(void *)
{
    work(0.15);
    return 0;
}
__attribute__((noinline)) static void run(void *(*start)(void *))
{
    pthread_t thread;
    pthread_create(&thread, nullptr, start, nullptr);
    pthread_join(thread, nullptr);
}
static void *nested(void *unused)
{
    run(plain);
    return unused;
}
__attribute__((noinline)) static void by_pthread() { run(plain); asm(""); }
__attribute__((noinline)) static void by_thread() { run(nested); asm(""); }
__attribute__((noinline)) static void by_std() { std::thread([] { work(0.15); }).join(); }
__attribute__((noinline)) static void by_async() { std::async(std::launch::async, [] { work(0.15); }).get(); }
__attribute__((noinline)) static void by_c11()
{
    thrd_t thread;
    thrd_create(&thread, c11, nullptr);
    thrd_join(thread, nullptr);
}
__attribute__((noinline)) static void by_child()
{
    if (fork() == 0) {
        run(plain);
        _exit(0);
    }
    wait(nullptr);
}
__attribute__((noinline)) static void one_path() { run(brief); asm(""); }
__attribute__((noinline)) static void other_path() { run(brief); asm(""); }
int main(int argc, char **)
{
    by_pthread();
    by_thread();
    by_std();
    by_async();
    by_c11();
    by_child();
    for (int i = 0; argc > 1 && i < 400; i++)
        i % 2 ? one_path() : other_path();
}
END
"${CXX:-g++}" -O1 -g -fno-optimize-sibling-calls -pthread creators.cc -o creators || fail "creators.cc does not build"
for event in EADDR CPUTIME; do
    expect_status 0 "$builddir/hpcrun" -e "$event" -o "creators-$event.m" ./creators
    expect_status 0 "$builddir/hpcprof" -q -o "creators-$event.db" "creators-$event.m"
    expect_status 0 "$builddir/hpcquery" tree --csv --min 0 "creators-$event.db"
    python3 - out <<'END' || fail "$event: threads are not below the calls that made them"
import sys
from paths import paths
expected = {"by_pthread": ["plain"], "by_thread": ["nested", "plain"], "by_std": [], "by_async": [], "by_c11": ["c11"],
            "by_child": ["plain"]}
found, outside = dict.fromkeys(expected, 0), 0
for value, path in paths(sys.argv[1]):
    if not any(name.startswith("work") for name in path):
        continue
    creator = next((name for name in path if name in expected), None)
    inner = [name for name in path if name in ("plain", "nested", "c11")]
    is_right = creator and inner == expected[creator] and path[:2] == ["<program root>", "main"] and "<thread root>" in path
    if is_right:
        found[creator] += value
    else:
        outside += value
        print(" > ".join(path)[:200])
print(found, "elsewhere", outside)
whole = sum(found.values()) + outside
sys.exit(not (min(found.values()) > 0.1 * whole and outside <= 0.05 * whole))
END
done
expect_status 0 "$builddir/hpcrun" -e EADDR -o merged.m ./creators many
expect_status 0 "$builddir/hpcprof" -q -o merged.db merged.m
expect_status 0 "$builddir/hpcquery" tree --csv --min 0 merged.db
python3 - out <<'END' || fail "threads that share a record stand below a call that did not make them"
import sys
from paths import paths
below = {}
for value, path in paths(sys.argv[1]):
    if any(name.startswith("brief") for name in path):
        creator = next((name for name in path if name in ("one_path", "other_path")), "none")
        below[creator] = below.get(creator, 0) + value
print(below)
sys.exit(not (below.get("one_path", 0) > 0 and below.get("other_path", 0) > 0 and below.get("none", 0) > 0))
END

# The workers of OpenMP's pool stand below the function that opened the region that they work on, like the thread that
# opened it: with two threads and with sixteen, in nested regions, in loops, and where one function is called from two.
cat >teams.c <<'END'
#include <omp.h>
#include <time.h>
static volatile unsigned words[1 << 12];
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
__attribute__((noinline)) static void work(double seconds)
{
    double end = now() + seconds;
    while (now() < end)
        for (unsigned i = 0; i < 1 << 12; i++)
            words[i] = words[i] + i;
}
__attribute__((noinline)) static void team(double seconds)
{
#pragma omp parallel
    work(seconds);
    __asm__ volatile("");
}
__attribute__((noinline)) static void first(double seconds) { team(seconds); __asm__ volatile(""); }
__attribute__((noinline)) static void second(double seconds) { team(seconds); __asm__ volatile(""); }
__attribute__((noinline)) static void loop(int n, double seconds)
{
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < n; i++)
        work(seconds);
    __asm__ volatile("");
}
__attribute__((noinline)) static void inner(double seconds)
{
#pragma omp parallel num_threads(2)
    work(seconds / 2);
    __asm__ volatile("");
}
__attribute__((noinline)) static void nested(double seconds)
{
#pragma omp parallel
    inner(seconds);
    __asm__ volatile("");
}
/* Compilers that pass each variable by itself pass 20 here. */
static int wide(int n)
{
    int a = n, b = n, c = n, d = n, e = n, f = n, g = n, h = n, i = n, j = n;
    int k = n, l = n, m = n, o = n, p = n, q = n, r = n, s = n, t = n, sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp critical
    {
        sum += a + b + c + d + e + f + g + h + i + j + k + l + m + o + p + q + r + s + t;
        a++, b++, c++, d++, e++, f++, g++, h++, i++, j++, k++, l++, m++, o++, p++, q++, r++, s++, t++;
    }
    return sum + a + b + c + d + e + f + g + h + i + j + k + l + m + o + p + q + r + s + t;
}
int main(void)
{
    int n = omp_get_max_threads();
    double seconds = 0.8 / n;
    if (wide(5) != 19 * (5 + 6 + 7))
        return 1;
    omp_set_max_active_levels(2);
    first(seconds);
    second(seconds);
    loop(n, seconds);
    nested(seconds);
    first(seconds);
    return 3;
}
END
# teams PROGRAM STATUS [LAUNCHER...]: measures it, which ends with this status, with 2 and with 16 threads.
teams() {
    local n
    for n in 2 16; do
        expect_status "$2" env OMP_NUM_THREADS=$n OMP_WAIT_POLICY=passive "${@:3}" "$builddir/hpcrun" -e EADDR \
            -o "$1-$n.m" "./$1"
        expect_status 0 "$builddir/hpcprof" -q -o "$1-$n.db" "$1-$n.m"
        expect_status 0 "$builddir/hpcquery" tree --csv --min 0 "$1-$n.db"
        cp out "$1-$n.csv"
    done
    python3 - "$1-2.csv" "$1-16.csv" <<'END' || fail "$1: workers are not below what opened their region"
import re, sys
from paths import paths
expected = {"first": ["team"], "second": ["team"], "loop": [], "nested": ["inner"]}
shares = []
for name in sys.argv[1:]:
    found, outside, whole = dict.fromkeys(expected, 0), 0, 0
    for value, path in paths(name):
        path = [up for up in path if up and up != "teams" and not up.startswith("loop at")]
        whole += value
        outside += value * (path[:2] != ["<program root>", "main"])
        if "work" not in path:
            continue
        path = [name for name in path[2:path.index("work")] if not re.search(r"omp_fn|omp_outlined", name)]
        if path and path[0] in expected and path[1:] == expected[path[0]]:
            found[path[0]] += value
        else:
            print(" > ".join(path)[:200], value)
    shares.append({name: 100 * value / whole for name, value in found.items()})
    print(shares[-1], "elsewhere", 100 * outside / whole)
    assert outside <= 0.05 * whole and sum(found.values()) >= 0.9 * whole
apart = max(abs(shares[0][name] - shares[1][name]) for name in expected)
assert apart <= 4 and abs(shares[0]["first"] - 40) < 6 and abs(shares[0]["nested"] - 20) < 5, apart
END
}

# Tasks stand below the function that made them, whichever thread runs them, and wherever it waited: tasks made by two
# callers of a function, by tasks, by a loop (libomp), and by a recursion, of which only one level is told apart.
cat >made.c <<'END'
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned words[16][1 << 12];
__attribute__((noinline)) static void work(double seconds)
{
    struct timespec time;
    double now, end = 0;
    volatile unsigned *mine = words[omp_get_thread_num() % 16];
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        now = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
        end = end > 0 ? end : now + seconds;
        for (unsigned i = 0; i < 1 << 12; i++)
            mine[i] = mine[i] + i;
    } while (now < end);
}
__attribute__((noinline)) static void make(int n)
{
    char name[8] = "task";
    for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(name)
        {
            if (name[0] != 't')
                abort();
            work(0.01);
        }
    }
    __asm__ volatile("");
}
__attribute__((noinline)) static void first(void) { make(40); __asm__ volatile(""); }
__attribute__((noinline)) static void second(void) { make(20); __asm__ volatile(""); }
__attribute__((noinline)) static void split(void)
{
    for (int i = 0; i < 5; i++)
#pragma omp task
        work(0.01);
    __asm__ volatile("");
}
__attribute__((noinline)) static void outer(void)
{
    for (int i = 0; i < 8; i++) {
#pragma omp task
        {
            split();
#pragma omp taskwait
        }
    }
    __asm__ volatile("");
}
__attribute__((noinline)) static void loop(void)
{
    unsigned char seen[40] = {0};
    int sum = 0;
#pragma omp taskloop num_tasks(20) shared(seen)
    for (int i = 0; i < 40; i++) {
        seen[i]++;
        work(0.01);
    }
    for (int i = 0; i < 40; i++)
        if (seen[i] != 1)
            abort();
#pragma omp taskloop num_tasks(20) reduction(+ : sum)
    for (int i = 0; i < 40; i++)
        sum += i;
    if (sum != 780)
        abort();
    __asm__ volatile("");
}
/* Each task makes two, and each of these is on a path of its own. */
__attribute__((noinline)) static void recurse(int n)
{
    if (n == 0) {
        work(0.001);
        return;
    }
#pragma omp task
    recurse(n - 1);
#pragma omp task
    recurse(n - 1);
#pragma omp taskwait
    __asm__ volatile("");
}
__attribute__((noinline)) static void all(void)
{
#pragma omp parallel
#pragma omp single
    {
        first();
        second();
        outer();
#ifdef LOOP
        loop();
#endif
        recurse(8);
    }
    __asm__ volatile("");
}
int main(void)
{
    all();
    return 3;
}
END
# made PROGRAM MS: measures it, with 2 and with 16 threads; its loop takes MS.
made() {
    local n
    for n in 2 16; do
        expect_status 3 env OMP_NUM_THREADS=$n OMP_WAIT_POLICY=passive "$builddir/hpcrun" -e EADDR -o "$1-$n.m" "./$1"
        expect_status 0 "$builddir/hpcprof" -q -o "$1-$n.db" "$1-$n.m"
        expect_status 0 "$builddir/hpcquery" tree --csv --min 0 "$1-$n.db"
        cp out "$1-$n.csv"
    done
    python3 - "$2" "$1-2.csv" "$1-16.csv" <<'END' || fail "$1: tasks are not below what made them"
import re, sys
from paths import paths
# what each is called by, and its share of the time
expected = {"first": (["make"], 400), "second": (["make"], 200), "outer": (["split"], 400), "loop": ([], int(sys.argv[1])),
            "recurse": (None, 256)}
whole = sum(ms for _, ms in expected.values())
expected = {name: (callers, 100 * ms / whole) for name, (callers, ms) in expected.items()}
shares = []
for name in sys.argv[2:]:
    found, astray, whole = dict.fromkeys(expected, 0), 0, 0
    for value, path in paths(name):
        path = [up for up in path if up and not re.search("^loop at|omp_fn|omp_outlined|omp_task_entry", up)]
        if "work" not in path:
            continue
        whole += value
        inner = path[3:path.index("work")]
        if path[:3] == ["<program root>", "main", "all"] and inner and inner[0] in expected and (
                set(inner) == {"recurse"} and len(inner) <= 12 or inner[1:] == expected[inner[0]][0]):
            found[inner[0]] += value
        else:
            astray += value
            print(" > ".join(path)[:200], value)
    shares.append({name: 100 * value / whole for name, value in found.items()})
    print(shares[-1], "elsewhere", 100 * astray / whole)
    assert astray <= 0.05 * whole
    assert all(abs(shares[-1][name] - share) < 5 for name, (_, share) in expected.items())
assert max(abs(shares[0][name] - shares[1][name]) for name in expected) <= 4
END
}

# Tasks in great number, and as deep as the stack goes: the program has the results that it has without us.
cat >tasks.c <<'END'
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *top;
static long deepest;
__attribute__((noinline)) static void dig(long left)
{
    char here[64];
    memset(here, 1, sizeof here);
    deepest++;
    if (left ? left == 1 : (size_t)(top - here) > (size_t)7 << 20)
        return;
#pragma omp task firstprivate(here, left)
    {
        here[1]++;
        dig(left ? left - 1 : 0);
    }
#pragma omp taskwait
    __asm__ volatile("" : : "r"(here));
}
/* The program's own loop of tasks, each with a part of it and a sum. */
static long in_loop(int n)
{
    long sum = 0, wrong = 0;
    unsigned char *seen = calloc((size_t)n, 1);
#pragma omp taskloop grainsize(1) shared(seen)
    for (int i = 0; i < n; i++)
        seen[i]++;
    for (int i = 0; i < n; i++)
        wrong += seen[i] != 1;
#pragma omp taskloop num_tasks(n) reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += i;
    free(seen);
    return wrong ? -wrong : sum;
}
int main(int argc, char **argv)
{
    char here;
    top = &here;
    if (argc > 1) {
        dig(atol(argv[1]));
        printf("%ld\n", deepest);
        return 0;
    }
    printf("%ld\n", in_loop(50000));
#pragma omp parallel
#pragma omp single
    printf("%ld\n", in_loop(50000));
    return 0;
}
END
tasks() {
    local depth
    ./tasks >native || fail "tasks.c does not run"
    "$builddir/hpcrun" -e EADDR -o tasks.m ./tasks >measured || fail "many tasks: status $?"
    cmp native measured || fail "many tasks: $(tr '\n' ' ' <measured) instead of $(tr '\n' ' ' <native)"
    depth=$(ulimit -s 8192 && ./tasks 0) || fail "tasks.c cannot recurse"
    (ulimit -s 8192 && "$builddir/hpcrun" -e EADDR -o tasks.m ./tasks "$depth" >measured) || fail "$depth levels of tasks: status $?"
    [ "$(cat measured)" = "$depth" ] || fail "$depth levels of tasks: $(cat measured)"
}

# Several threads open regions of the same function at a time: each worker stands below the one that it works for, also if
# it has worked for another.
cat >openers.c <<'END'
#include <pthread.h>
#include <time.h>
static volatile unsigned words[1 << 12];
__attribute__((noinline)) static void use(double seconds)
{
    struct timespec time;
    double now, end = 0;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        now = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
        end = end > 0 ? end : now + seconds;
        for (unsigned i = 0; i < 1 << 12; i++)
            words[i] = words[i] + i;
    } while (now < end);
}
__attribute__((noinline)) static void work_a(void) { use(0.01); __asm__ volatile(""); }
__attribute__((noinline)) static void work_b(void) { use(0.01); __asm__ volatile(""); }
__attribute__((noinline)) static void team(void (*work)(void))
{
#pragma omp parallel num_threads(3)
    work();
    __asm__ volatile("");
}
__attribute__((noinline)) static void *open_a(void *unused)
{
    for (int i = 0; i < 10; i++)
        team(work_a);
    return unused;
}
__attribute__((noinline)) static void *open_b(void *unused)
{
    for (int i = 0; i < 10; i++)
        team(work_b);
    return unused;
}
int main(void)
{
    pthread_t a, b;
    for (int i = 0; i < 2; i++) {
        pthread_create(&a, NULL, open_a, NULL);
        pthread_create(&b, NULL, open_b, NULL);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
    }
    return 3;
}
END
# openers PROGRAM: measures it.
openers() {
    expect_status 3 env OMP_WAIT_POLICY=passive "$builddir/hpcrun" -e EADDR -o "$1.m" "./$1"
    expect_status 0 "$builddir/hpcprof" -q -o "$1.db" "$1.m"
    expect_status 0 "$builddir/hpcquery" tree --csv --min 0 "$1.db"
    python3 - out <<'END' || fail "$1: workers are below a thread for which they did not work"
import sys
from paths import paths
right, wrong = {"a": 0, "b": 0}, 0
for value, path in paths(sys.argv[1]):
    for which in right:
        if f"work_{which}" in path:
            is_right = f"open_{which}" in path[:path.index(f"work_{which}")]
            right[which] += value * is_right
            wrong += value * (not is_right)
print(right, "elsewhere", wrong)
sys.exit(not (min(right.values()) > 0.3 * sum(right.values()) and wrong <= 0.05 * sum(right.values())))
END
}
if ${CC:-gcc} -O1 -g -fno-optimize-sibling-calls -fopenmp teams.c -o teams 2>err; then
    expect_status 3 ./teams
    teams teams 3
    ${CC:-gcc} -O1 -g -fno-optimize-sibling-calls -fopenmp openers.c -o openers
    openers openers
    ${CC:-gcc} -O1 -g -fno-optimize-sibling-calls -fopenmp made.c -o made
    made made 0
    ${CC:-gcc} -O1 -g -fopenmp tasks.c -o tasks
    tasks
    # The same in the processes of an MPI program.
    cat >ranks.c <<'END'
#include <mpi.h>
#define main teams
#include "teams.c"
#undef main
int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    int result = teams();
    MPI_Finalize();
    return result == 3 ? 0 : 1;
}
END
    if MPICH_CC=${CC:-gcc} mpicc.mpich -O1 -g -fno-optimize-sibling-calls -fopenmp ranks.c -o ranks 2>err; then
        teams ranks 0 mpiexec.mpich -n 2
    else
        skip_part "there is no MPICH"
    fi
else
    skip_part "the compiler has no OpenMP"
fi
if clang -O1 -g -fno-optimize-sibling-calls -fopenmp=libomp teams.c -o teams-libomp 2>err; then
    expect_status 3 ./teams-libomp
    teams teams-libomp 3
    clang -O1 -g -fno-optimize-sibling-calls -fopenmp=libomp openers.c -o openers-libomp
    openers openers-libomp
    clang -O1 -g -fno-optimize-sibling-calls -fopenmp=libomp -DLOOP made.c -o made-libomp
    made made-libomp 400
    clang -O1 -g -fopenmp=libomp tasks.c -o tasks
    tasks
    # code of gcc on libomp
    library=$(ldd ./tasks | awk '/libomp/ { print $3 }')
    ${CC:-gcc} -O1 -g -fopenmp tasks.c -o tasks
    LD_PRELOAD=$library tasks
else
    skip_part "there is no clang with libomp"
fi
# oneTBB: loops, a loop within a loop, a task group, a region that an exception leaves; and two threads with regions, of
# which nothing is said that may be wrong.
cat >tasks.cc <<'END'
#include <stdexcept>
#include <thread>
#include <time.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>
static volatile unsigned words[1 << 12];
__attribute__((noinline)) static void work(double seconds)
{
    double now, end = 0;
    do {
        timespec time;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        now = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
        end = end > 0 ? end : now + seconds;
        for (unsigned i = 0; i < 1 << 12; i++)
            words[i] = words[i] + i;
    } while (now < end);
}
__attribute__((noinline)) static void loop(int n, void (*body)(int))
{
    tbb::parallel_for(0, n, [=](int i) { body(i); });
    asm("");
}
__attribute__((noinline)) static void work_a(int) { work(0.01); asm(""); }
__attribute__((noinline)) static void work_b(int) { work(0.01); asm(""); }
__attribute__((noinline)) static void throws(int i)
{
    if (i == 7)
        throw std::runtime_error("7");
}
__attribute__((noinline)) static void first() { loop(40, work_a); asm(""); }
__attribute__((noinline)) static void fails()
{
    try {
        loop(20, throws);
    } catch (const std::runtime_error &) {
    }
    asm("");
}
__attribute__((noinline)) static void group()
{
    tbb::task_group tasks;
    for (int i = 0; i < 40; i++)
        tasks.run([] { work(0.01); });
    tasks.wait();
    asm("");
}
__attribute__((noinline)) static void nested() { loop(4, [](int) { loop(10, work_a); }); asm(""); }
__attribute__((noinline)) static void open_a() { loop(40, work_a); asm(""); }
__attribute__((noinline)) static void open_b() { loop(40, work_b); asm(""); }
__attribute__((noinline)) static void work_c(int) { work(0.01); asm(""); }
__attribute__((noinline)) static void last() { loop(40, work_c); asm(""); }
int main(int argc, char **)
{
    tbb::global_control four(tbb::global_control::max_allowed_parallelism, 4);
    first();
    fails();
    group();
    fails();
    nested();
    if (argc > 1) {
        std::thread other(open_b);
        open_a();
        other.join();
        last();
    }
    return 3;
}
END
if "${CXX:-g++}" -O1 -g -fno-optimize-sibling-calls -pthread tasks.cc -o tasks -ltbb 2>err; then
    for way in one "two threads"; do
        # shellcheck disable=SC2086 # words
        set -- ${way#one}
        expect_status 3 "$builddir/hpcrun" -e EADDR -o "tasks-$#.m" ./tasks "$@"
        expect_status 0 "$builddir/hpcprof" -q -o "tasks-$#.db" "tasks-$#.m"
        expect_status 0 "$builddir/hpcquery" tree --csv --min 0 "tasks-$#.db"
        python3 - out $# <<'END' || fail "oneTBB, $way: workers are not below what they worked for"
import sys
from paths import paths
openers, found, astray, wrong, whole = ("first", "group", "nested"), {}, 0, 0, 0
for value, path in paths(sys.argv[1]):
    whole += value
    if "work" not in path:
        continue
    opener = next((name for name in path if name in openers + ("open_a", "open_b", "last", "fails")), None)
    found[opener] = found.get(opener, 0) + value
    astray += value * (opener is None)
    wrong += value * (path[0] != "<program root>" and opener is not None)  # a region of oneTBB's own
    wrong += value * (opener == "fails" or {"open_a", "work_b"} <= set(path) or {"open_b", "work_a"} <= set(path) or
                      ("work_b" in path and opener not in (None, "open_b")) or
                      ("work_c" in path and opener not in (None, "last")))
print({name: value / whole for name, value in found.items()}, "astray", astray / whole, "wrong", wrong / whole)
assert wrong <= 0.02 * whole and min(found[name] for name in openers) > 0.1 * whole
assert sys.argv[2] != "0" or astray <= 0.05 * whole
END
    done
else
    skip_part "there is no oneTBB"
fi

# libgomp reads the data of a region with reductions of tasks before any thread runs it.
cat >reductions.c <<'END'
#include <stdio.h>
int main(void)
{
    long sum = 0;
#pragma omp parallel num_threads(2) reduction(task, + : sum)
    sum += 1;
    printf("%ld\n", sum);
    return 7;
}
END
${CC:-gcc} -O2 -fopenmp reductions.c -o reductions || fail "reductions.c does not build"
expect_status 7 "$builddir/hpcrun" -o reductions.m ./reductions
[ "$(cat out)" = 2 ] || fail "reductions of tasks: $(cat out)"
finish
