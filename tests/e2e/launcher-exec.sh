#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process that becomes a program which is not measured (static, setuid, without our environment) is complete up to
# there, and a message names what it became; an exec that fails, or one in a child of vfork, changes nothing.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

cat >work.h <<'END'
#include <time.h>
static inline void work(double seconds)
{
    volatile unsigned long x = 0;
    clock_t begin = clock(); /* what the launcher used in this process counts as well */
    while ((double)(clock() - begin) / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < 100000; i++)
            x += (unsigned long)i;
}
END
cat >become.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"
/* become WAY PROGRAM: works, then becomes PROGRAM. */
int main(int argc, char **argv)
{
    const char *way = argv[1], *path = argv[2];
    char *const words[] = {argv[2], (char *)"x", NULL};
    char *const nothing[] = {NULL};
    work(0.05);
    if (execlp("no-such-program", "no-such-program", "1", "2", (char *)NULL) != -1 || errno != ENOENT)
        return 90;
    if (!strcmp(way, "execl"))
        execl(path, path, "x", (char *)NULL);
    if (!strcmp(way, "execlp"))
        execlp(path, path, "x", (char *)NULL);
    if (!strcmp(way, "execle"))
        execle(path, path, "x", (char *)NULL, nothing);
    if (!strcmp(way, "execv"))
        execv(path, words);
    if (!strcmp(way, "execvp"))
        execvp(path, words);
    if (!strcmp(way, "execvpe"))
        execvpe(path, words, environ);
    if (!strcmp(way, "execve"))
        execve(path, words, environ);
    if (!strcmp(way, "fexecve"))
        fexecve(open(path, O_RDONLY | O_CLOEXEC), words, environ);
    if (!strcmp(way, "execveat"))
        execveat(AT_FDCWD, path, words, environ, 0);
    if (!strcmp(way, "system-call"))
        syscall(SYS_execve, path, words, environ);
    if (!strcmp(way, "vfork")) {
        int status = 0;
        pid_t child = vfork();
        if (child == 0) {
            execv(path, words);
            _exit(91);
        }
        waitpid(child, &status, 0);
        work(0.05);
        syscall(SYS_exit_group, WEXITSTATUS(status)); /* unseen */
    }
    return argc > 3 ? 92 : 93;
}
END
printf '#include "work.h"\nint main(int n, char **v) { work(0.02); return n == 2 && v[1][0] == 0x78 ? 7 : 8; }\n' >after.c
$CC -O1 become.c -o become
$CC -O1 after.c -o after
$CC -O1 -static after.c -o after-static 2>/dev/null || skip "no static program can be built"

# replaced WAY PROGRAM: becomes it; one complete measurement says so.
replaced() {
    local way=$1
    rm -rf m
    expect_status 7 "$hpcrun" -e CPUTIME@f1000 -o m ./become "$way" "./$2"
    settle m
    [ "$(find m -name '*.hpcrun' | wc -l)" = 1 ] || fail "$way: not one profile: $(ls -A m)"
    grep -q '"state": *"complete"' m/become-*.objects || fail "$way: not complete"
    cat m/become-*.log >log
    expect_text log "replaced by .*$2, which was not measured"
}

for way in execl execlp execle execv execvp execvpe execve fexecve execveat; do
    replaced "$way" after-static
done
replaced execle after
if [ "$(id -u)" = 0 ]; then
    cp after after-setuid
    chown 65534 after-setuid
    chmod 4755 after-setuid
    chmod 755 "$scratch"
    if findmnt -no OPTIONS --target . | grep -q nosuid; then
        skip_part "setuid programs do not work on this file system"
    else
        replaced execv after-setuid
    fi
else
    skip_part "only root can make a program of somebody else setuid"
fi

# Unseen by the runtime, but it runs long enough to be noticed.
printf '#include "work.h"\nint main(void) { work(1.2); return 7; }\n' >long.c
$CC -O1 -static long.c -o long-static
replaced system-call long-static

# A child of vfork is somebody else: its parent's mark is not touched.
rm -rf m
expect_status 7 "$hpcrun" -e CPUTIME@f1000 -o m ./become vfork ./after-static
settle m
cat m/become-*.log >log
! grep -q 'replaced by' log || fail "the parent of a child of vfork was not replaced: $(cat log)"

# Without samples the line in the index says it.
expect_status 7 "$hpcrun" -e CPUTIME@1000s -o none sh -c 'exec ./after-static x'
settle none
expect_text <(cat none/index-*) 'no samples, replaced by .*after-static, which was not measured'

# A measured program that becomes another one is one process with one thread, and both have profiles.
rm -rf m
$CC -O1 long.c -o long
expect_status 7 "$hpcrun" -e EADDR -o m ./become execv ./long
expect_status 0 "$builddir/hpcprof" -q -o db m
expect_status 0 "$builddir/hpcquery" vars db
[ "$(find m -name '*.hpcrun' | wc -l)" = 2 ] || fail "not two profiles: $(ls -A m)"
expect_text <(tr -s ' \n' '  ' <"$scratch/out") '1 process that ran 2 programs .*, 1 thread, '
finish
