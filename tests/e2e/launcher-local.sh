#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --local: records and files go through a directory of the node's own and are collected at the end; what was left there
# when everything was killed at once is complete up to the last sample, and hpcrun --collect brings it back. Many ranks
# with a writer each share both directories without a collision.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
mkdir local

cat >burn.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
    volatile unsigned long x = 0;
    clock_t begin = clock(); /* what the launcher used in this process counts as well */
    double seconds = argc > 1 ? atof(argv[1]) : 0.1;
    puts("ready");
    fflush(stdout);
    while ((double)(clock() - begin) / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < 100000; i++)
            x += (unsigned long)i;
    return 4;
}
END
$CC -O1 burn.c -o burn

# settled: no companion has anything in local.
settled() {
    await sh -c '[ -z "$(ls -A local)" ]'
}

# fates DIR OPTION...: the measurement is right.
fates() {
    local dir=$1
    shift
    python3 "$srcdir/tests/lib/check-fates.py" "$dir" "$@" || fail "$dir: the measurement is wrong"
}

# Normal ends: of one process, of a family, with a report right away.
expect_status 4 "$hpcrun" -e CPUTIME --local local -o normal ./burn 0.2
settled
fates normal --processes 1 --threads 1
HPCRUN_LOCAL=local expect_status 4 "$hpcrun" -e CPUTIME -t -o family sh -c './burn 0.1 & ./burn 0.1; wait; exec ./burn 0.1'
settled
[ "$(find family -name 'burn-*.hpcrun' | wc -l)" = 3 ] || fail "family: $(ls -A family)"
[ "$(find family -name 'burn-*.hpctrace' | wc -l)" = 3 ] || fail "family: no traces"
expect_status 0 "$hpcrun" -e CPUTIME@1000s --local local -o brief true
settled
expect_text <(cat brief/index-*) 'no samples'
expect_status 4 "$hpcrun" --report -e CPUTIME --local local -o reported ./burn 0.2
expect_text "$scratch/err" 'samples .*CPUTIME'
settled

# Ranks, each with its companion.
n_ranks=${LOCUS_RANKS:-16}
ranks=()
for ((rank = 0; rank < n_ranks; rank++)); do
    PMI_RANK=$rank "$hpcrun" -e CPUTIME --local local -o ranks ./burn 0.1 >/dev/null 2>"stderr-$rank" &
    ranks+=("$!")
done
for rank in "${ranks[@]}"; do
    status=0
    wait "$rank" || status=$?
    [ "$status" = 4 ] || fail "a rank ended with status $status"
done
settled
fates ranks --processes "$n_ranks"

# Killed with its companion: what it had recorded is in the file that was its memory.
# kill_together DIR: burn, measured into DIR for a second, and its companion are killed.
kill_together() {
    "$hpcrun" -e CPUTIME@f500 -ck CHECKPOINT_SECONDS=1000 --local local -o "$1" ./burn 60 >ready 2>/dev/null &
    started=$!
    await grep -q ready ready
    sleep 1
    kill -KILL "$(companion_of "$1")" "$started"
    wait "$started" 2>/dev/null || true
}

kill_together killed
status=0
"$builddir/hpcprof" -q -o killed.db killed >said 2>&1 || status=$?
[ "$status" = 1 ] || fail "hpcprof does not mind: $(cat said)"
if [ "$(find killed -name '*.hpcrun')" ]; then
    expect_text said "left out: what is still in .*local/locus-detour-.*hpcrun --collect killed"
fi
expect_status 0 "$hpcrun" --collect killed --local local
expect_text "$scratch/out" '^1 processes collected into .*/killed, 1 of them from records that were left behind'
fates killed --processes 1 --state killed --min-taken 20
"$builddir/hpcprof" -q -o killed.db killed || fail "hpcprof cannot read what was collected"
[ -z "$(ls -A local)" ] || fail "left behind: $(ls -A local)"
expect_status 0 "$hpcrun" --collect killed --local local
expect_text "$scratch/out" '^Nothing on this node is on its way'

# A collection that was interrupted is finished by the next one, without doubles; a directory of somebody who still
# lives is left alone.
kill_together again
"$hpcrun" -e CPUTIME --local local --append -o again ./burn 3 >/dev/null 2>&1 &
started=$!
await sh -c '[ "$(ls -d local/locus-detour-*/*/arena | wc -l)" = 2 ]'
expect_status 0 "$hpcrun" --collect again --local local
expect_text "$scratch/out" '^1 processes collected'
wait "$started" || true
settled
fates again --processes 2 --state complete,killed

# What cannot be used is refused before anything runs.
status=0
"$hpcrun" --strict --local no-such -o refused ./burn >said 2>&1 || status=$?
[ "$status" = 1 ] || fail "status $status with a local directory that does not exist"
expect_text said '--local: no-such: cannot be used: No such file'
finish
