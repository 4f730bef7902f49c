#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Habits of programs (habits.c) that profilers are known to trip over: output and status are those without hpcrun, there
# are complete files of every process, and every sample has a fate. Then programs in odd company: exceptions in C++,
# another preloaded library before and after ours, an audit library, split stacks, a setuid program.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/live.sh
. "$LOCUS_SRCDIR/tests/lib/live.sh"
need_runtime
need python3
cd "$scratch"
ulimit -c 0
chmod 755 "$scratch"
export XDG_CACHE_HOME=$scratch/cache

$CC -O2 -g -pthread "$srcdir/tests/e2e/habits.c" -o habits || {
    fail "habits.c does not build"
    finish
}
program=./habits
live c11 1 4
live raw-clone 1 1
live crowd 1 -
live daemon - -
live sandbox 1 -
live deadly-sandbox 1 -
live timers 1 1
live own-signals 1 1
live jumps 1 1
live namespaces 1 1
live jit 1 1
live small-limits 1 -
live self-exec 4 4

# Where one of the processes is killed, or ends as a program that is not measured, its files say another state.
for way in deathsig bare-exec; do
    native=0 measured=0
    (exec ./habits $way) 2>&1 >$way.native || native=$?
    (exec "$hpcrun" -e EADDR -o $way.m ./habits $way) 2>$way.err >$way.out || measured=$?
    [ "$native" = "$measured" ] || fail "$way: status $measured instead of $native"
    sed 's/^preload .*/preload none/' $way.out >$way.plain
    expect_same $way.native $way.plain
    expect_same $way.out $way.plain
done

if command -v "${CXX:-g++}" >/dev/null; then
    cat >throws.cc <<'END'
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
__attribute__((noinline)) static int deep(int n, int limit)
{
    std::vector<int> block(2000, n);
    if (n == limit)
        throw std::runtime_error(std::string(300, 'e'));
    return deep(n + 1, limit) + block[1999];
}
int main()
{
    unsigned long caught = 0;
    for (int i = 0; i < 3000; i++) {
        try {
            deep(0, i % 25);
        } catch (const std::exception &e) {
            caught += std::string(e.what()).size();
        }
    }
    std::printf("%lu\n", caught);
    return 3;
}
END
    "${CXX:-g++}" -O1 -g throws.cc -o throws
    program=./throws live throws 1 1
else
    skip_part "no C++ compiler"
fi

# Another library that wraps malloc, before libhpcrun.so by the user's LD_PRELOAD; and libhpcrun.so in a script's LD_PRELOAD.
cat >counter.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static unsigned long n_calls;
void *malloc(size_t n)
{
    static void *(*real)(size_t);
    if (!real)
        real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
    return real(n);
}
__attribute__((destructor)) static void tell(void)
{
    if (n_calls > 100)
        (void)!write(1, "counted\n", 8);
}
END
cat >mallocs.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    unsigned sum = 0;
    for (int i = 0; i < 3000; i++) {
        char *volatile block = malloc(5000 + i);
        memset(block, i, 5000);
        sum += (unsigned char)block[i];
        free(block);
    }
    printf("%u\n", sum);
    return 3;
}
END
$CC -O1 -g -shared -fPIC counter.c -o libcounter.so
$CC -O1 -g mallocs.c -o mallocs
LD_PRELOAD=$scratch/libcounter.so
export LD_PRELOAD
native=0 measured=0
./mallocs >preload.native || native=$?
"$hpcrun" -e datacentric -o preload.m ./mallocs >preload.out 2>/dev/null || measured=$?
unset LD_PRELOAD
[ "$native" = "$measured" ] || fail "with another preload: status $measured instead of $native"
expect_same preload.native preload.out
cat preload.m/mallocs-*.log >preload.log
expect_text preload.log 'blocks: [1-9][0-9]{3} recorded'

# An audit library sees every symbol that is bound, and ours works beside it.
cat >audit.c <<'END'
#define _GNU_SOURCE
#include <link.h>
unsigned la_version(unsigned version)
{
    return version;
}
unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
    (void)map, (void)lmid, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
END
$CC -shared -fPIC audit.c -o libaudit.so
measured=0
"$hpcrun" -e datacentric -o audit.m env LD_AUDIT="$scratch/libaudit.so" ./mallocs >audit.out 2>/dev/null || measured=$?
[ "$measured" = 3 ] || fail "under an audit library: status $measured"
python3 "$srcdir/tests/lib/check-fates.py" audit.m || fail "under an audit library: incomplete"

# Split stacks: every frame may lie on a stack of its own.
if $CC -O1 -g -fsplit-stack -pthread "$srcdir/tests/e2e/habits.c" -o split 2>/dev/null && ./split c11 >/dev/null 2>&1 ||
    [ $? = 4 ]; then
    program=./split
    rm -rf c11.m jumps.m
    live c11 1 4
    live jumps 1 1
else
    skip_part "no split stacks here"
fi

# A setuid program of somebody else: the loader preloads nothing into it; it runs, and nothing is measured.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && mkdir -m 777 public && cp mallocs public/suid &&
    chmod 4755 public/suid && chmod 755 "$scratch" 2>/dev/null; then
    measured=0
    (cd public && setpriv --reuid nobody --clear-groups env XDG_CACHE_HOME="$scratch/public" "$hpcrun" -e CPUTIME \
        -o suid.m ./suid >suid.out 2>suid.err) || measured=$?
    if grep -q 'Permission denied' public/suid.err; then
        skip_part "an ordinary user cannot reach the build directory"
    else
        [ "$measured" = 3 ] || fail "setuid program: status $measured: $(cat public/suid.err)"
        expect_same public/suid.out <(./mallocs)
        expect_text public/suid.err 'set-user-id'
    fi
else
    skip_part "no setuid program can be made here"
fi
finish
