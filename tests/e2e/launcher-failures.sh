#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What launcher and companion ask of the C library fails, one call after the other: the program runs and ends as it does
# natively each time, nothing hangs, and what is not measured is not passed over in silence. An argument is the largest
# number of calls of one function that are tried.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need gcc
limit=${1:-4}
cd "$scratch"
gcc -D_GNU_SOURCE -O1 -shared -fPIC -o fail-nth.so "$srcdir/tests/lib/fail-nth.c" -ldl || skip "the shim does not build"
cat >work.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    volatile double *a = malloc(1 << 16), sum = 0;
    for (int i = 0; i < 20000000; i++)
        sum += a[i & 4095] = i;
    printf("sum %g\n", sum);
    return 7;
}
END
gcc -O1 -g -o work work.c
LD_PRELOAD=$PWD/fail-nth.so ./work >native || [ "$?" = 7 ] || skip "programs do not run with the shim"

# has_said: a profile, or a word about why there is none: on the terminal, in the companion's log or in the index; or
# the files wait elsewhere, and hpcprof says where.
has_said() {
    [ -s err ] || [ -n "$(find m -name '*.hpcrun' -o -name 'companion-*' -o -name 'index-*' 2>/dev/null)" ] ||
        [[ $("$builddir/hpcprof" -o database m 2>&1) = *"measured for it is in "*"'hpcrun --collect m' brings it there"* ]]
}

# once CALL N: false when there are not so many calls.
once() {
    local status=0
    rm -rf m marks
    FAIL_IN=hpcrun FAIL_CALL=$1 FAIL_AT=$2 FAIL_ERRNO=12 FAIL_MARK=$PWD/marks LD_PRELOAD=$PWD/fail-nth.so \
        timeout -k 5 60 "$builddir/hpcrun" -e CPUTIME -o m ./work >out 2>err || status=$?
    [ "$status" = 7 ] || fail "$1, call $2: status $status instead of 7: $(cat err)"
    cmp -s native out || fail "$1, call $2: the program wrote something else"
    local waited=0
    until has_said || [ "$waited" = 100 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    has_said || fail "$1, call $2: neither a profile nor a word"
    n_runs=$((n_runs + 1))
    [ -s marks ]
}

n_runs=0
for call in setenv malloc realloc mmap open socket listen accept4 sendmsg ftruncate fallocate pipe2 dup2 mkdir fork read \
    pread poll; do
    n=1
    while [ "$n" -le "$limit" ] && once "$call" "$n"; do
        n=$((n + 1))
    done
done
echo "$n_runs runs"
finish
