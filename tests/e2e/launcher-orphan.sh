#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The companion alone is killed: the program does not notice, what it and its children have recorded is recovered, and
# everybody says so.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
cat >burn.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void burn(double seconds)
{
    volatile unsigned long x = 0;
    double end = (double)clock() / CLOCKS_PER_SEC + seconds;
    while ((double)clock() / CLOCKS_PER_SEC < end)
        for (int i = 0; i < 100000; i++)
            x += i;
}
/* burn FILE: works until FILE exists, forks a child that works, and ends with 4. */
int main(int argc, char **argv)
{
    while (access(argv[1], F_OK) != 0)
        burn(0.02);
    burn(0.3);
    if (fork() == 0) {
        burn(0.1);
        exit(0);
    }
    wait(NULL);
    return argc == 2 ? 4 : 5;
}
END
$CC -O1 -w burn.c -o burn

# orphan DIR OPTION...: burn, whose companion is killed while it works.
orphan() {
    local dir=$1 status=0 started
    shift
    rm -f go
    "$@" -e CPUTIME@f500 -ck CHECKPOINT_SECONDS=1 -o "$dir" ./burn go >out 2>err &
    started=$!
    await compgen -G "$dir/.writing-*"
    [ "$dir" != checked ] || await compgen -G 'checked/burn-*.hpcrun'
    sleep 0.2
    kill -KILL "$(companion_of "$dir")"
    sleep 0.2
    touch go
    wait "$started" || status=$?
    [ "$status" = 4 ] || fail "$dir: exit status $status"
}

# recovered DIR: one process, with its samples, once; nothing else is left.
recovered() {
    python3 "$srcdir/tests/lib/check-fates.py" "$1" --processes 1 --min-taken 100 || fail "$1: the measurement is wrong"
    "$builddir/hpcprof" -q -o "$1.db" "$1" >said 2>&1 || fail "$1: hpcprof cannot read it: $(cat said)"
    [ "$(find "$1" -name 'burn-*.hpcrun' | wc -l)" = 1 ] || fail "$1: not one profile: $(ls -A "$1")"
    [ -z "$(find "$1" -name '.[a-z]*' ! -name .runs)" ] || fail "$1: left behind: $(ls -A "$1")"
}

orphan plain "$hpcrun"
[ ! -s err ] || fail "somebody wrote to the terminal: $(cat err)"
"$builddir/hpcprof" -q -o none.db plain >said 2>&1 && fail "hpcprof does not mind"
expect_text said 'companion.* had died.*hpcrun --collect plain'
expect_status 0 "$hpcrun" --collect plain
expect_text "$scratch/out" '^1 processes collected into .*, 1 of them'
recovered plain
# The child came when nobody was there to measure it.
expect_text <(cat plain/index-*) 'not measured: .*never heard of'

# What checkpoints had written is replaced, not added to.
orphan checked "$hpcrun"
"$builddir/hpcprof" -q -o none.db checked >said 2>&1 || true
expect_text said 'companion had died.*hpcrun --collect checked'
expect_status 0 "$hpcrun" --collect checked
recovered checked

# A launcher that has stayed does it by itself, and says so.
SLURM_JOB_ID=1 orphan kept "$hpcrun"
expect_text err '^hpcrun: the companion process died: the records that 1 process left behind have been written'
recovered kept
finish
