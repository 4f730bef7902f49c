#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that the OOM killer ends, in a memory cgroup with its companion: its measurement is complete up to its last
# sample, because the killer takes what is largest.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need_machine rings # of page faults
[ "$(id -u)" = 0 ] || skip "only root can make a memory cgroup"

# The group's directory and the names of its files, in either version.
version=2
root=$(findmnt -nt cgroup2 -o TARGET | head -n 1)
if ! { [ "$root" ] && grep -qw memory "$root/cgroup.subtree_control" 2>/dev/null; }; then
    version=1
    root=$(findmnt -nt cgroup -O memory -o TARGET | head -n 1)
fi
[ "$root" ] || skip "there is no memory cgroup here"
group=$root/locus-test-$$
mkdir "$group" 2>/dev/null || skip "no cgroup can be made in $root"
clean_up() {
    rmdir "$group" 2>/dev/null
}
limit=$((256 << 20))
if [ $version = 2 ]; then
    echo "$limit" >"$group/memory.max" || skip "the memory of a cgroup cannot be limited"
    echo 0 >"$group/memory.swap.max" 2>/dev/null || true
else
    echo "$limit" >"$group/memory.limit_in_bytes" || skip "the memory of a cgroup cannot be limited"
fi

cd "$scratch"
cat >grow.c <<'END'
#include <stdio.h>
#include <stdlib.h>
/* Takes a mebibyte after the other, works on it, and never gives any back. */
int main(void)
{
    volatile unsigned long x = 0;
    puts("before");
    fflush(stdout);
    for (;;) {
        char *block = malloc(1 << 20);
        for (size_t i = 0; block && i < 1 << 20; i += 64)
            block[i] = (char)i;
        for (int i = 0; i < 2000000; i++)
            x += (unsigned long)i;
    }
}
END
$CC -O1 -g -fno-builtin grow.c -o grow

# in_group COMMAND...: as a member of the group.
in_group() {
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

status=0
in_group ./grow >native || status=$?
[ "$status" = 137 ] || skip "status $status natively: the OOM killer does not come here"

for way in memory local; do
    options=()
    [ $way = memory ] || options=(--local "$scratch/local")
    mkdir -p local
    expect_status 137 in_group "$hpcrun" -e CPUTIME@f500 -e FAULTS@1 -ck CHECKPOINT_SECONDS=1000 "${options[@]}" \
        -o $way.m ./grow
    expect_same native "$scratch/out"
    waited=0
    while compgen -G "$way.m/.*-*" >/dev/null && [ "$waited" -lt 600 ]; do
        sleep 0.05
        waited=$((waited + 1))
    done
    # A page fault for each page that fits into the group.
    python3 "$srcdir/tests/lib/check-fates.py" $way.m --processes 1 --state killed --min-taken 20000 ||
        fail "$way: the measurement is not complete: $(ls -A $way.m)"
    "$builddir/hpcprof" -q -o $way.db $way.m || fail "$way: hpcprof cannot read it"
done

# On a machine that is new to it, the launcher measures the caches; not where it would take what the group may have.
kills() {
    awk '$1 == "oom_kill" { print $2 }' "$group/memory.$([ $version = 2 ] && echo events || echo oom_control)"
}
before=$(kills)
in_group env XDG_CACHE_HOME="$scratch/new" "$hpcrun" --doctor >doctor || true
grep -Eq '^caches +does not work: not measured: memory is short' doctor || fail "$(grep '^caches' doctor)"
[ -n "$before" ] && [ "$(kills)" = "$before" ] || fail "the OOM killer came: $before, then $(kills)"

# The companions end after their last file is in place; then nobody is in the group, and it can go.
waited=0
until rmdir "$group" 2>/dev/null || [ "$waited" = 600 ]; do
    sleep 0.05
    waited=$((waited + 1))
done
[ ! -e "$group" ] || fail "30 s after the measurements there still run: $(xargs <"$group/cgroup.procs")"
finish
