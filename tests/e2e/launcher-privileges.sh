#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A daemon that starts as root and becomes another user is measured as before: the tables of the libraries that it runs
# from then on come to where the other user may read them.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(id -u)" = 0 ] || skip "only root can become another user"
need python3
cd "$scratch"
chmod 755 .

cat >work.c <<'END'
#include <time.h>
double data[1 << 16];
double work(double seconds)
{
    double sum = 0;
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end)
        for (int round = 0; round < 20; round++)
            for (int i = 0; i < 1 << 16; i++)
                sum += data[i];
    return sum;
}
END
cat >daemon.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* daemon LIBRARY HOW: works before it leaves its rights (b), as a child (f), in effect only (e), for good otherwise. */
int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    void *library = dlopen(argv[1], RTLD_NOW);
    double (*work)(double) = (double (*)(double))dlsym(library, "work");
    if (strchr(how, 'b'))
        work(0.004);
    if (strchr(how, 'f') && fork() > 0) {
        while (wait(NULL) > 0 || errno == EINTR)
            ;
        return 0;
    }
    if (setgid(12346) != 0 || (strchr(how, 'e') ? seteuid(12346) : setuid(12346)) != 0)
        return 1;
    work(0.4);
    return 0;
}
END
$CC -O2 -w -shared -fPIC work.c -o work.so
$CC -O2 -w daemon.c -o daemon -ldl

# Without tables of an earlier run, and with them: then they are in root's cache, which the other user may not enter.
# Root's directory for temporary files may be closed as well.
mkdir -m 700 cache closed
export TMPDIR=$scratch/closed
export XDG_CACHE_HOME=$scratch/cache
for how in setuid before b f bf e be; do
    rm -rf m
    [ "$how" = before ] || rm -rf cache/*
    expect_status 0 "$hpcrun" -e EADDR -o m ./daemon ./work.so "$how"
    settle m
    python3 - "$how" m/*.log <<'END' || fail "$how: samples were lost: $(cat m/*.log)"
import re, sys
taken = lost = 0
for log in sys.argv[2:]:
    for line in open(log, errors="replace"):
        if line.startswith("EVENT SUMMARY"):
            taken += int(re.search(r"taken: (\d+)", line).group(1))
            lost += sum(int(n) for n in re.findall(r"(?:address-lost|dropped[-\w]*): (\d+)", line))
print(sys.argv[1], taken, lost)
sys.exit(taken < 100 or lost > taken / 4)
END
done
finish
