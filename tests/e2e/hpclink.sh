#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpclink: what it links runs as before, is measured under hpcrun and alone, and what cannot be measured is refused with
# its reason. Compilers' own errors and lines that do not link are the compiler's. The tables are hpclink-tables.py's.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_machine memfd rings # rings: of page faults
[ -e "$builddir/libhpcrun-static.o" ] || skip "libhpcrun-static.o has not been built"
need python3 nm
hpclink=$builddir/hpclink
cd "$scratch"

echo 'int main(void) { return 0; }' >nothing.c
$CC -static nothing.c -o nothing 2>/dev/null || skip "$CC cannot link static programs here (libc.a is missing)"

cat >work.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *touch(void *memory)
{
    for (int k = 0; k < 100; k++)
        memset(memory, k, 4 << 20);
    return memory;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    char *shared = malloc(4 << 20);
    pthread_create(&thread, NULL, touch, shared);
    pthread_join(thread, NULL);
    printf("%s %d %d\n", argv[0], argc, shared[12345]);
    free(shared);
    return 7;
}
END

# check_measured DIR SAMPLED: one process whose block was recorded and whose samples all have a fate.
check_measured() {
    python3 "$srcdir/tests/lib/check-fates.py" "$1" --processes 1 --threads "$2" --state complete >fates || fail "$1: $(cat fates)"
    grep -qhE '^\[.*blocks: [1-9][0-9]* recorded' "$1"/*.log || fail "$1: no block was recorded"
}

# Each function that stands in for another knows the real one, except those that call none of their own name.
nm "$builddir/libhpcrun-static.o" >symbols
sed -n 's/.* T __wrap_//p' symbols | grep -vxE '_exit|_Exit|cfree|mmap64' | sort >wrapped
sed -n 's/.* [wU] __real_//p' symbols | sort >real
cmp wrapped real || fail "wrapped and real functions differ: $(diff wrapped real | tr '\n' ' ')"

for kind in -static -static-pie; do
    expect_status 0 "$hpclink" --datacentric "$CC" -O1 -g -pthread "$kind" work.c -o "work$kind"
    [ ! -s err ] || fail "hpclink $kind says: $(cat err)"
    expect_status 7 "./work$kind" one
    [ "$(cat out)" = "./work$kind 2 99" ] || fail "work$kind prints $(cat out)"
    expect_status 7 "$builddir/hpcrun" -e FAULTS -e EADDR -o "m$kind" "./work$kind" one
    [ "$(cat out)" = "./work$kind 2 99" ] || fail "work$kind under hpcrun prints $(cat out)"
    check_measured "m$kind" 2
done

# Alone: the environment asks for it; same name, arguments, status and output. Not asked, nothing is written.
expect_status 7 env HPCRUN_OUT_PATH=alone "HPCRUN_EVENT_LIST=FAULTS EADDR" HPCRUN_TRACE=1 ./work-static one
[ "$(cat out)" = "./work-static 2 99" ] || fail "alone, it prints $(cat out)"
check_measured alone 2
[ -n "$(find alone -name '*.hpctrace')" ] || fail "HPCRUN_TRACE was not heeded"
[ -z "$(find . -name 'hpctoolkit-*')" ] || fail "a program that was not asked to has measured"
# What cannot be measured runs all the same, once.
expect_status 7 env HPCRUN_OUT_PATH=/proc/none ./work-static one
[ "$(cat out)" = "./work-static 2 99" ] || fail "without a directory, it prints $(cat out)"
expect_text err "runs without being measured"
# Moved away from where it was when the program was linked, hpcrun is found in PATH, or a message says that it is not.
mkdir installed
cp "$hpclink" "$builddir/libhpcrun-static.o" installed
expect_status 0 installed/hpclink "$CC" -O1 -pthread -static work.c -o moved
expect_status 7 env HPCRUN_EVENT_LIST=FAULTS PATH="$builddir:$PATH" HPCRUN_OUT_PATH=by-path ./moved
[ -n "$(find by-path -name '*.hpcrun')" ] || fail "hpcrun was not found in PATH"
expect_status 7 env PATH=/usr/bin:/bin HPCRUN_OUT_PATH=nowhere ./moved
command -v hpcrun >/dev/null || expect_text err "hpcrun is neither at $scratch/installed/hpcrun nor in PATH"

# Lines that do not link, and the compiler's own verdict.
expect_status 0 "$hpclink" "$CC" -c work.c -o work.o
[ -e work.o ] || fail "hpclink does not compile"
echo 'int main(void) { return missing(); }' >wrong.c
status=0
$CC -static wrong.c -o wrong 2>/dev/null || status=$?
expect_status "$status" "$hpclink" "$CC" -static wrong.c -o wrong
expect_text err "undefined reference to .missing"
[ ! -e wrong ] || fail "a failed link left a program"
expect_status 2 "$hpclink"
expect_text err "link line is missing"
expect_status 1 "$hpclink" no-such-compiler -static work.c
expect_text err "no-such-compiler: cannot be run"
expect_status 0 "$hpclink" -o elsewhere -u drand48 "$CC" -pthread -static work.o -o unused
[ -x elsewhere ] && [ ! -e unused ] || fail "-o of hpclink is not heeded"
nm elsewhere >names
grep -q ' drand48$' names || fail "-u does not pull its symbol"

# What cannot be measured.
refused() {
    expect_status 1 "$hpclink" "${@:2}"
    expect_text err "^hpclink: .*$1"
    [ ! -e refused ] || fail "there is a program although it was refused: $*"
}
refused "dynamically linked" "$CC" -pthread work.c -o refused
refused "no program|not a program" "$CC" -shared -fPIC work.c -o refused
refused "without a symbol table" "$CC" -static -Wl,-S,-s -pthread work.c -o refused -Wl,--strip-all,-x
if command -v musl-gcc >/dev/null; then
    refused "musl C library" musl-gcc -static nothing.c -o refused
else
    skip_part "musl-gcc is not installed"
fi

# An allocator of the program's own: its callers are intercepted where they are in another file; where they are in the
# same one, or call it by another name, a message says so.
cat >own.c <<'END'
#include <stddef.h>
static char memory[32 << 20];
static size_t used;
void *malloc(size_t n_bytes) { void *p = memory + used; used += (n_bytes + 15) & ~(size_t)15; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size_bytes) { return malloc(n * size_bytes); }
void *realloc(void *p, size_t n_bytes) { (void)p; return malloc(n_bytes); }
#ifdef ALONE
int main(void) { volatile char *p = malloc(1 << 20); for (int i = 0; i < 1 << 20; i++) p[i] = 1; return p[5]; }
#endif
END
echo '#include <stdlib.h>
int main(void) { volatile char *p = malloc(1 << 20); for (int i = 0; i < 1 << 20; i++) p[i] = 1; return p[5]; }' >user.c
expect_status 0 "$hpclink" -v "$CC" -fno-builtin -static user.c own.c -o own
expect_text err "malloc is that of .*\.o"
if grep -q warning: err; then fail "a warning although malloc is intercepted"; fi
expect_status 1 "$builddir/hpcrun" -e FAULTS -o m-own ./own
grep -qhE 'blocks: [1-9]' m-own/*.log || fail "the program's own malloc was not intercepted"
expect_status 0 "$hpclink" "$CC" -fno-builtin -DALONE -static own.c -o own-alone
expect_text err "warning: only the C library in own-alone .*heap blocks will not be named"
expect_status 1 ./own-alone

# Most of this program's time is the profiler's, whose functions are the program's own: what they have on the stack is no
# variable of the program.
cat >blocks.c <<'END'
#include <stdlib.h>
int main(void)
{
    for (int i = 0; i < 1000000; i++)
        free(malloc(3000));
    return 0;
}
END
expect_status 0 "$hpclink" "$CC" -O1 -fno-builtin -static blocks.c -o blocks
if perf_works; then
    expect_status 0 "$builddir/hpcrun" -e EADDR -o m-blocks ./blocks
    expect_status 0 "$builddir/hpcprof" -o blocks.db m-blocks
    expect_status 0 "$builddir/hpcquery" vars --csv blocks.db
    expect_text out '^<profiler>,'
    if grep -E '^[^,]*,stack,[^,]*_(hook|sig|slow)\b' out; then fail "the profiler's stack is shown as the program's"; fi
    nm "$builddir/libhpcrun-static.o" | awk '$2 ~ /[bdBD]/ { print $3 }' >own.names
    [ "$(wc -l <own.names)" -gt 20 ] || fail "libhpcrun-static.o has no variables"
    awk -F, 'NR == FNR { own[$1]; next } $2 ~ /^(static|thread-local)$/ && $1 in own' own.names out >own.rows
    [ ! -s own.rows ] || fail "the profiler's variables are shown as the program's: $(cat own.rows)"
fi

# MPI: a compiler wrapper that adds its library. What Debian's mpich has cannot be linked static, so this is a stub.
cat >mpi.c <<'END'
int MPI_Init(int *argc, char ***argv) { return argc && argv ? 0 : 1; }
int MPI_Finalize(void) { return 0; }
END
cat >rank.c <<'END'
#include <stdlib.h>
#include <string.h>
int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    char *field = malloc(4 << 20);
    memset(field, argc, 4 << 20);
    int result = field[1000];
    free(field);
    return MPI_Finalize() ? 99 : result;
}
END
$CC -c mpi.c -o mpi.o && ar cr libmpi.a mpi.o
printf '#!/bin/sh\nexec %s "$@" -L%s -lmpi\n' "$CC" "$scratch" >mpicc
chmod +x mpicc
expect_status 0 "$hpclink" -v ./mpicc -static rank.c -o rank
last=$(grep '^\./mpicc' err | tail -1)
for name in malloc calloc realloc free memalign posix_memalign aligned_alloc valloc mmap munmap sigaction _exit; do
    [[ $last == *" -Wl,--wrap=$name "* ]] || fail "the link line does not wrap $name: $last"
done
[[ $last == "./mpicc "*"libhpcrun-static.o -static rank.c -o rank "* ]] || fail "the link line was changed: $last"
[[ $last != *"--wrap=_Znwm"* ]] || fail "operator new is wrapped in a program that has none"
expect_status 1 env PMI_RANK=3 "$builddir/hpcrun" -e FAULTS -o m-rank ./rank
[ -n "$(find m-rank -name 'rank-000003-*.hpcrun')" ] || fail "no measurement of rank 3: $(ls m-rank)"
finish
