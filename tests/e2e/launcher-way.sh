#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# No process vanishes: those that change their network, their user, their root or their mounts are measured all the
# same, and those that cannot be are named in the index.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

cat >family.c <<'END'
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* family HOW SECONDS [DEPTH]: leaves the way to its measurement as HOW says, then forks a child that burns CPU time,
 * starts itself anew and burns, too. Exits with 0 when everybody has. */
static void burn(double seconds)
{
    volatile unsigned long x = 0;
    clock_t begin = clock(); /* what the launcher used in this process counts as well */
    while ((double)(clock() - begin) / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < 100000; i++)
            x += i;
}

static int leave(const char *how)
{
    if (!strcmp(how, "stay"))
        return 0;
    if (!strcmp(how, "network"))
        return unshare(CLONE_NEWNET);
    if (!strcmp(how, "mounts"))
        return unshare(CLONE_NEWNS);
    if (!strcmp(how, "root"))
        return chroot("/");
    if (!strcmp(how, "user"))
        return setgid(12345) || setuid(12345);
    if (!strcmp(how, "closed")) /* nothing is left: no descriptor, and no network to look for a name in */
        return unshare(CLONE_NEWNET) || close_range(3, ~0u, 0);
    return 1;
}

int main(int argc, char **argv)
{
    double seconds = atof(argv[2]);
    int status = 0, all = 0, depth = argc > 3 ? atoi(argv[3]) : 0;
    if (depth == 0 && leave(argv[1]) != 0)
        return 77;
    burn(seconds);
    if (depth == 1)
        return 0;
    if (fork() == 0) {
        burn(seconds);
        _exit(0);
    }
    if (vfork() == 0) {
        execl("/proc/self/exe", "family", argv[1], argv[2], "1", (char *)0);
        _exit(9);
    }
    while (wait(&status) > 0)
        all |= status;
    return all ? 1 : 0;
}
END
$CC -O1 -w family.c -o family
# What another user runs and loads has to be readable for that user.
chmod 755 . family
"$builddir/hpcrun" -e CPUTIME -o probe ./family stay 0.05 2>/dev/null || fail "the family does not end well"

# measured HOW N: all N processes of the family left a profile.
measured() {
    local status=0 n
    "$hpcrun" -e CPUTIME -o "way-$1" ./family "$1" 0.15 2>errors || status=$?
    if [ "$status" = 77 ]; then
        skip_part "$1: this user may not"
        return
    fi
    [ "$status" = 0 ] || fail "$1: exit status $status: $(cat errors)"
    settle "way-$1"
    n=$(find "way-$1" -name '*.hpcrun' | wc -l)
    [ "$n" = "$2" ] || fail "$1: $n of $2 processes were measured: $(ls -A "way-$1"; cat "way-$1"/index-* 2>/dev/null)"
}

measured stay 3
measured network 3
measured mounts 3
measured root 3
# Another user loads the library only where it may be read.
if [ "$(id -u)" = 0 ] && setpriv --reuid=12345 --regid=12345 --clear-groups test -r "$builddir/.libs/libhpcrun.so" &&
    setpriv --reuid=12345 --regid=12345 --clear-groups test -x "$scratch/family"; then
    measured user 3
else
    skip_part "a change of user, which takes root and a library that everybody may read"
fi

# Nothing leads to the companion any more: the process itself is measured, and its children are named.
status=0
"$hpcrun" -e CPUTIME -o way-closed ./family closed 0.15 2>errors || status=$?
if [ "$status" = 77 ]; then
    skip_part "closed: this user may not"
else
    [ "$status" = 0 ] || fail "closed: exit status $status"
    settle way-closed
    [ "$(find way-closed -name '*.hpcrun' | wc -l)" = 1 ] || fail "closed: $(ls -A way-closed) instead of one profile"
    [ "$(grep -c 'not measured: .* never heard of' way-closed/index-*)" = 2 ] ||
        fail "closed: the two children are not in the index: $(cat way-closed/index-* 2>/dev/null)"
    expect_text <(cat way-closed/*.log) 'children: [12] (was|were) not measured'
    "$builddir/hpcprof" -o closed.db way-closed >said 2>&1 || fail "closed: hpcprof: $(cat said)"
    "$builddir/hpcquery" vars closed.db >report 2>&1 || true
    expect_text <(cat said report) '2 processes were not measured'
fi
finish
