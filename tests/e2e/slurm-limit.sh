#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs that slurmctld ends at their time limit, which it looks at every half minute: with a signal to the tasks before it
# (complete), with one to the batch script, and by killing tasks that ignore SIGTERM (up to the last checkpoint; with
# --local up to the last sample). Each gives a database of four ranks.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
# shellcheck source=tests/lib/slurm.sh
. "$srcdir/tests/lib/slurm.sh"
# shellcheck source=tests/lib/ranks.sh
. "$srcdir/tests/lib/ranks.sh"
need python3
build_ranks mpich || skip "mpicc.mpich is not installed"
cd "$scratch"
export PATH=$builddir:$PATH XDG_CACHE_HOME=$scratch/cache
mkdir local
start_slurm linuxproc || {
    cat "$scratch/start"
    skip "Slurm does not start here"
}

# A little work all the time, so that four jobs of four tasks find processors.
cat >light.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static unsigned long *table;
int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    if (argc > 1 && !strcmp(argv[1], "stubborn"))
        signal(SIGTERM, SIG_IGN);
    table = calloc(1 << 20, sizeof *table);
    for (unsigned long i = 1;; i = i * 6364136223846793005u + 1442695040888963407u) {
        table[i >> 44] += i;
        if (i % 4096 == 1 || (i >> 20) % 1048576 == 0)
            nanosleep(&pause, NULL);
    }
}
END
$CC -O1 -g light.c -o light

# submit NAME OPTION... -- ARG...: a script of doc/slurm with options of sbatch; prints the job's id.
submit() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    sbatch --parsable --output="$name-%A.out" "${options[@]}" "$srcdir/doc/slurm/$name.sbatch" "$@"
}

# states JOB: "N STATE" for each state in the main threads' side files.
states() {
    sed -En 's/.*"state": *"([a-z]*)".*/\1/p' "locus-$1.m"/*-000-*.objects | sort | uniq -c | xargs
}

export LOCUS_MPI=none
warned=$(submit time-limit --time=2 -- ./light)
shell=$(submit time-limit-shell --time=2 -- ./light)
killed=$(submit job --time=1 -- ./light stubborn)
local=$(HPCRUN_LOCAL=$scratch/local submit job --time=1 -- ./light stubborn)

waited=0
while [ "$(squeue -h -t pending,running,completing)" ] && [ "$waited" -lt 300 ]; do
    sleep 1
    waited=$((waited + 1))
done
[ "$waited" -lt 300 ] || fail "jobs go on after five minutes: $(squeue -h -t all)"

# Those that were warned in time had a minute for their own databases.
for job in "$warned" "$shell"; do
    expect_ranks "locus-$job.db" 0 1 2 3
    [ "$(states "$job")" = "4 killed" ] || fail "job $job: $(states "$job")"
    python3 "$srcdir/tests/lib/check-fates.py" "locus-$job.m" --processes 4 --state killed || fail "job $job"
done
expect_text "time-limit-shell-$shell.out" 'The time is nearly over'

squeue -h -j "$killed,$local" -t all -o '%i %T'
[ "$(squeue -h -j "$killed,$local" -t all -o %T | sort -u)" = TIMEOUT ] || fail "no time limit has ended these jobs"
hpcprof -q -o killed.db "locus-$killed.m" || fail "the killed job cannot be read"
expect_ranks killed.db 0 1 2 3
[[ "$(states "$killed")" =~ ^[0-9\ a-z]*(checkpoint|killed)$ ]] || fail "killed: $(states "$killed")"

# What had its records in a directory of the node is whole, wherever the killing came.
hpcrun --collect "locus-$local.m" --local local || fail "not collected"
python3 "$srcdir/tests/lib/check-fates.py" "locus-$local.m" --processes 4 --state killed || fail "local: the measurement"
hpcprof -q -o local.db "locus-$local.m" || fail "the collected job cannot be read"
expect_ranks local.db 0 1 2 3
finish
