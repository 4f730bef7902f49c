#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that was started through a symbolic link keeps the name that it was called by; for one of Debian's the report
# says which package has its debug information, as dpkg knows it, and for the user's own that it can be compiled with -g.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

# report NAME COMMAND...: measures a command and leaves its report, the details included, in out.
report() {
    local name=$1
    shift
    expect_status 0 "$builddir/hpcrun" -o "$name.m" "$@"
    expect_status 0 "$builddir/hpcprof" -o "$name.db" "$name.m"
    expect_status 0 "$builddir/hpcquery" vars -v "$name.db"
    tr -s ' \n' ' ' <out >text
}

cat >own.c <<'END'
static volatile unsigned words[1 << 16];
int main(void)
{
    for (unsigned i = 0; i < 1000000000; i++)
        words[i % (1 << 16)] += i;
    return 0;
}
END
$CC -O1 own.c -o own
ln -s own called
report own ./called
grep -q "^program  *called: " out || fail "the program's name is that of its link's target"
grep -q "^path .*/own$" out || fail "the path does not name the program itself"
grep -q "(compile with -g[^)]*): own" text || fail "nothing says that the program was compiled without -g"

# Where a shell runs it, advice about it names the program that was called, and the note about debug information only what
# has samples: not the library that does nothing but allocate.
cat >quiet.c <<'END'
#include <stdlib.h>
void *quiet_kept;
__attribute__((constructor)) static void quiet_begin(void)
{
    quiet_kept = malloc(100000);
}
END
$CC -O1 -shared -fPIC quiet.c -o libquiet.so
$CC -O1 own.c -o own -Wl,--no-as-needed -L. -lquiet -Wl,-rpath,"$scratch"
report shell sh -c './called; exit 0'
grep -q "(compile with -g[^)]*): own ([0-9]* %)\." text || fail "the note names more than what matters: $(grep 'Without debug' text)"
expect_status 0 "$builddir/hpcquery" advice --csv shell.db
python3 - out <<'PYTHON' || fail "the advice is not about the program that was called"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
print(rows)
sys.exit(not rows or any(row["program"] != "called" for row in rows if row["variable"] in ("words", "<compute>")))
PYTHON

# A caller without a name or line is none: neither its address nor the line of what it calls stands for it.
cat >churn.c <<'END'
#include <stdlib.h>
__attribute__((noipa)) void churn_turn(void *volatile *kept)
{
    for (int i = 0; i < 32; i++)
        kept[i] = malloc(48);
    for (int i = 0; i < 32; i++)
        free(kept[i]);
}
END
cat >churns.c <<'END'
void churn_turn(void *volatile *kept);
__attribute__((noipa)) static void churn_all(void *volatile *kept)
{
    for (int i = 0; i < 400000; i++)
        churn_turn(kept);
}
int main(void)
{
    void *kept[32];
    churn_all(kept);
    return 0;
}
END
$CC -O1 -g -shared -fPIC churn.c -o libchurn.so
$CC -O1 churns.c -o churns -L. -lchurn -Wl,-rpath,"$scratch"
strip churns
report churns ./churns
expect_status 0 "$builddir/hpcquery" advice --json churns.db
grep -q '"allocator' out || fail "there is no advice about the allocator: $(cat out)"
if grep -E 'func_0x[0-9a-f]+ \[churns\] \(churn\.c' out; then fail "a function is given the line of one that it calls"; fi

tool=$(readlink -f "$(command -v gzip || echo /nonexistent)")
package=$(dpkg -S "$tool" 2>/dev/null || dpkg -S "${tool#/usr}" 2>/dev/null || true)
package=${package%%:*}
if [ -n "$package" ] && ! readelf -S "$tool" | grep -q debug_info; then
    ln -s "$tool" squeeze
    head -c 20000000 /dev/urandom >random
    report squeeze ./squeeze -k random
    grep -q "^program  *squeeze: " out || fail "a program of the system has the name of its link's target"
    grep -q "Without debug information: [^.]*gzip[^:]*: apt install [^;]*$package-dbgsym" text ||
        fail "the debug package of gzip is not named: $(grep 'Without debug' text)"
    # Whether apt would find it here is said, too.
    if grep -rqs '^[^#]*debian-debug' /etc/apt/sources.list /etc/apt/sources.list.d || ! grep -q '^ID=debian' /etc/os-release; then
        if grep -q "apt's sources lack" text; then fail "the archive of debug packages is there, and the note denies it"; fi
    else
        grep -q "$package-dbgsym[^)]*(from deb.debian.org/debian-debug, which apt's sources lack here)" text ||
            fail "nothing says that apt does not know the debug packages"
    fi
else
    skip_part "gzip is no program of Debian's here, or has its debug information"
fi

# Without lines the calls in one function stay apart, by the place that each returns to, in their order; with their sizes.
cat >mesh.cc <<'END'
#include <cstdlib>
struct Mesh {
    double *x, *y, *z, *p, *q;
    __attribute__((noipa)) void init();
    __attribute__((noipa)) void sweep();
};
static double *make(std::size_t n) { return static_cast<double *>(std::malloc(n * sizeof(double))); }
void Mesh::init()
{
    x = make(100000), y = make(200000), z = make(300000), p = make(400000), q = make(500000);
}
void Mesh::sweep()
{
    for (int k = 0; k < 400; k++)
        for (int i = 0; i < 100000; i++)
            x[i] += 1, y[i] += 2, z[i] += 3, p[i] += 4, q[i] += 5;
}
int main()
{
    static Mesh mesh;
    mesh.init();
    mesh.sweep();
}
END
"${CXX:-g++}" -O1 mesh.cc -o mesh
report mesh ./mesh
expect_status 0 "$builddir/hpcquery" vars --csv --all mesh.db
python3 - out <<'PYTHON' || fail "the five arrays of Mesh::init are not five rows"
import csv, re, sys
rows = [row for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")) if row["variable"].startswith("Mesh::init")]
places = sorted((int(re.fullmatch(r"Mesh::init\+0x([0-9a-f]+)", row["variable"])[1], 16), int(row["size_bytes"]), row["alloc_site"]) for row in rows)
print(places)
sys.exit([size for _, size, _ in places] != [800000 * i for i in range(1, 6)] or
         [site for _, _, site in places] != [f"Mesh::init (call {i} of 5)" for i in range(1, 6)])
PYTHON
grep -q "Mesh::init+0x[0-9a-f]* .* Mesh::init (call [1-5] of 5)" text || fail "the report does not show which call it was"

# Of a stripped library the function that allocates has no name, but the exported one above it has. So it is for small
# blocks.
cat >part.c <<'END'
#include <stdlib.h>
char *part_kept[2];
__attribute__((noipa)) static int take(size_t n)
{
    part_kept[0] = malloc(n);
    return part_kept[0] == NULL;
}
__attribute__((noipa)) static int fill(size_t n)
{
    return take(n) + take(n + 8);
}
int part_open(size_t n)
{
    return fill(n) + 1;
}
struct node {
    struct node *next;
    long values[4];
};
__attribute__((noipa)) static struct node *make(struct node *next)
{
    struct node *node = calloc(1, sizeof *node);
    node->next = next;
    return node;
}
__attribute__((noipa)) static struct node *chain(void)
{
    struct node *first = NULL;
    for (int i = 0; i < 300000; i++)
        first = make(first);
    return first;
}
long part_walk(void)
{
    long sum = 0;
    struct node *first = chain();
    for (int i = 0; i < 200; i++)
        for (struct node *node = first; node; node = node->next)
            sum += node->values[2];
    return sum;
}
END
cat >user.c <<'END'
int part_open(unsigned long n);
long part_walk(void);
int main(void)
{
    return part_walk() ? 1 : part_open(5000000) - 1;
}
END
$CC -O1 -shared -fPIC part.c -o libpart.so
strip libpart.so
$CC -O1 -g user.c -o user -L. -lpart -Wl,-rpath,"$scratch"
expect_status 0 "$builddir/hpcrun" -e MEMLEAK -o user.m ./user
expect_status 0 "$builddir/hpcprof" -o user.db user.m
expect_status 0 "$builddir/hpcquery" leaks --all --csv user.db
grep -q '^"*part_open > func_0x[0-9a-f]*+0x[0-9a-f]* \[libpart.so\]' out ||
    fail "a block of a stripped library is not named by its exported function"
report user ./user
grep -q "blocks of 40 B from" text || fail "the small blocks of a stripped library are not shown as such"
expect_status 0 "$builddir/hpcquery" vars --csv user.db
grep -q '^"*blocks of 40 B from part_walk,' out ||
    fail "small blocks of a stripped library are not named by its exported function"

# Threads have the names that the program gives them: by themselves, from outside, living at the end, or killed; those that
# share a record what their names begin with.
cat >threads.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned words[1 << 16];
static void work(double seconds)
{
    struct timespec now;
    double end = 0;
    do {
        for (unsigned i = 0; i < 1 << 16; i++)
            words[i] += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        end = end > 0 ? end : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
    } while ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec < end);
}
static void *by_itself(void *name)
{
    pthread_setname_np(pthread_self(), name);
    work(0.2);
    return NULL;
}
static void *from_outside(void *unused)
{
    work(0.2);
    pause();
    return unused;
}
static void *nameless(void *unused)
{
    work(0.2);
    return unused;
}
static void *brief(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "brief-%d", *(int *)number);
    pthread_setname_np(pthread_self(), name);
    work(0.002);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t threads[3], other;
    pthread_create(&threads[0], NULL, by_itself, "ocean");
    pthread_create(&threads[1], NULL, nameless, NULL);
    pthread_create(&threads[2], NULL, from_outside, NULL);
    pthread_setname_np(threads[2], "sea (ice) \"");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    for (int i = 0; argc > 1 && strcmp(argv[1], "many") == 0 && i < 400; i++) {
        pthread_create(&other, NULL, brief, &i);
        pthread_join(other, NULL);
    }
    if (argc > 1 && strcmp(argv[1], "killed") == 0) {
        sleep(3);
        raise(SIGKILL);
    }
    if (argc > 1 && strcmp(argv[1], "waits") == 0)
        return 0;
    work(0.2);
    return 0;
}
END
$CC -O1 -g -pthread threads.c -o threads
for way in plain waits many killed; do
    status=0
    [ $way != killed ] || status=137
    expect_status $status "$builddir/hpcrun" -e EADDR -o "$way.m" ./threads $way
    settle "$way.m"
    expect_status 0 "$builddir/hpcprof" -q -o "$way.db" "$way.m"
    expect_status 0 "$builddir/hpcquery" vars --by thread --csv --min 0 "$way.db"
    python3 - out $way <<'END' || fail "$way: $(cat out)"
import csv, sys
names = {row["thread"] for row in csv.DictReader(open(sys.argv[1], encoding="utf-8"))}
names.discard("0")  # it may have nothing to do
brief = {name for name in names if "(brief-" in name}
expected = {"1 (ocean)", "2", '3 (sea (ice) ")'} | (brief if sys.argv[2] == "many" else set())
shared = [name for name in brief if name.endswith("(brief-*)")]
sys.exit(0 if names == expected and (sys.argv[2] != "many" or shared) else f"{names} instead of {expected}")
END
done
python3 - "$builddir/hpcquery" >out <<'END' || fail "$(cat out)"
import csv, io, json, subprocess, sys
def ask(*words):
    return subprocess.run([sys.argv[1], *words, "plain.db"], capture_output=True, text=True, check=True).stdout
def names(rows):
    return {row["thread"]: row.get("thread_name") for row in rows}
found = {
    "cpus --csv": {int(row["thread"]): row["thread_name"] or None for row in csv.DictReader(io.StringIO(ask("cpus", "--csv")))},
    "cpus --json": names(thread for row in json.loads(ask("cpus", "--json"))["rows"] for thread in row["threads"]),
    "patterns --json": names(thread for row in json.loads(ask("patterns", "--json"))["variables"] for thread in row["threads"]),
}
for what, threads in found.items():
    threads.pop(0, None)
    if threads != {1: "ocean", 2: None, 3: 'sea (ice) "'}:
        sys.exit(f"{what}: {threads}")
END
expect_status 0 "$builddir/hpcquery" export speedscope plain.db
grep -q '"name": *"[^"]*thread 1 (ocean)"' out || fail "the profiles of speedscope have no names: $(grep -o '"name": *"[^"]*thread[^"]*"' out)"
finish
