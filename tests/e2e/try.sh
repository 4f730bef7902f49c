#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Trials (hpcrun --try): verdicts on numbers that follow from what an action does, whatever the machine's load; what is
# said of programs that fail, fork, differ or leave processes behind; and that nothing is left of an interrupted trial.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ -e "$builddir/.libs/liblocus-actions.so" ] || skip "liblocus-actions.so has not been built"
cd "$scratch"
${CC:-cc} -O2 -g -pthread -o try "$srcdir/tests/e2e/programs/try.c"
hpcquery=$builddir/hpcquery
events=(-e EADDR)
! works rings || events+=(-e FAULTS)

# measure MODE [N]: its database is MODE-db.
measure() {
    expect_status 0 "$hpcrun" "${events[@]}" -o "$1-m" ./try "$1" "${2:-0}"
    expect_status 0 "$builddir/hpcprof" -q -o "$1-db" "$1-m"
}

# try STATUS MODE OPTION...: tries $action (huge-pages) for the blocks of $variable (table) of the mode.
try() {
    local expected=$1 mode=$2 words
    shift 2
    words=("$@")
    expect_status "$expected" "$hpcrun" --try "$mode-db" --try "${action:-huge-pages}:${variable:-table}" "${words[@]}"
    [ ! -e "$mode-db/tried.new" ] || fail "$mode-db/tried.new was left behind"
}

measure same
# On a terminal it shows how long it will take.
if command -v script >/dev/null; then
    script -qec "'$hpcrun' --try same-db --try huge-pages:table ./try same" typescript >/dev/null || true
    grep -aq 'run 1 of 11: as it is' typescript || fail "no progress is shown"
    grep -aqE 'run [2-9] of 11, about [0-9]+ (s|min) left: ' typescript || fail "what is left is not shown"
fi
thp=/sys/kernel/mm/transparent_hugepage/enabled
if grep -Eq '\[(madvise|always)\]' "$thp" 2>/dev/null; then
    # Five hundred times fewer pages; five hundred times as much memory; and neither.
    measure gather
    try 0 gather --metric 'pages: ([0-9]+)' ./try gather
    expect_text out '^  verdict +worth it$'
    expect_text out '^  effect +1 block of 64.0 MiB in all; (9[0-9]|100) % of the memory was on huge pages'
    expect_status 0 "$hpcquery" advice gather-db
    expect_text out 'huge-pages( on table)?: 0.0[0-9] of the pages.*, worth it'
    [ "$(find gather-db/tried -name '*.out' | wc -l)" = 11 ] || fail "there are not 11 outputs"
    measure sparse
    try 3 sparse --metric 'resident: ([0-9]+)' ./try sparse
    expect_text out '^  verdict +worse$'
    # The more the better: the same figures, and the other verdict.
    try 0 sparse --metric 'higher:resident: ([0-9]+)' ./try sparse
    expect_text out '^  verdict +worth it$'
else
    skip_part "there are no huge pages for programs that ask for them ($thp)"
fi
try 3 same --metric 'work: ([0-9]+)' ./try same
expect_text out '^  verdict +no difference$'
expect_text out '^  measured +1\.00 of the work: .* by 5 pairs'
! grep -q 'output differs' out || fail "the output of the same program is said to differ"

# What is said of the output.
try 3 same --metric 'work: ([0-9]+)' ./try differs
expect_text out "output differs from run to run as it is"
try 3 same --metric 'work: ([0-9]+)' ./try betrays
expect_text out "output is another one with the action"

# Failing, with and without the action; no number; not there; nothing to try.
try 1 same ./try fails
expect_text err '^hpcrun: --try: the program failed as it is, with status 3, in run 1 of 11: nothing was kept$'
try 3 same ./try fails-with-action
expect_text out '^  verdict +failed$'
expect_text out 'failed with the action, with signal 6 .*, and not without it'
try 1 same --metric 'no such number: ([0-9]+)' ./try same
expect_text err "no number that matches 'no such number"
try 127 same ./nowhere
try 2 same --metric '(' ./try same
expect_status 2 "$hpcrun" --try same-db --try fly:table ./try same
expect_text err "'fly' is no action"
expect_status 1 "$hpcrun" --try same-db --try huge-pages:nothing ./try same
expect_text err "has no variable 'nothing'"
expect_status 2 "$hpcrun" --try same-db --pairs 3 ./try same
expect_status 2 "$hpcrun" --pairs 5 ./try same
expect_status 2 "$hpcrun" --try same-db --try huge-pages:table srun ./try same
expect_text err "CPU time is not known"
OMPI_COMM_WORLD_RANK=1 expect_status 2 "$hpcrun" --try same-db ./try same
expect_text err "before mpiexec or srun"

# Another program has none of the places.
cp try other
try 3 same --metric 'work: ([0-9]+)' ./other same
expect_text out '^  verdict +no effect$'

# Processes: children count, and what is left behind is ended.
try 3 same --metric 'child ([0-9])' ./try forks
expect_text out 'starts processes \(1 forks in a run\)'
try 3 same --metric 'work: ([0-9]+)' ./try leaves 1234
expect_text out "left processes behind .*: they were ended"
! pgrep -f 'try leaves 1234' >/dev/null || fail "a process of the program is left"

# Interrupted: one sentence, the signal's status, and the results of before.
cp same-db/tried/results.tsv before.tsv
status=0
"$hpcrun" --try=same-db --try=huge-pages:table --metric=wall ./try waits 4321 >out 2>err &
launcher=$!
await test -s same-db/tried.new/000-as-it-is.out
kill -TERM "$launcher"
wait "$launcher" || status=$?
[ "$status" = 143 ] || fail "an interrupted trial ended with status $status"
expect_text err '^hpcrun: --try: stopped by a signal in run 1 of 11: nothing of the trial was kept$'
[ ! -e same-db/tried.new ] || fail "same-db/tried.new was left behind"
expect_same before.tsv same-db/tried/results.tsv
! pgrep -f 'try waits 4321' >/dev/null || fail "a process of the program is left"

# The other actions, each by a number that it changes: steps of a list that lead far away; counters on lines of others;
# arrays that begin on the same lines; pages that are not there yet.
measure list
action=pool variable=nodes try 0 list --metric 'far: ([0-9]+)' ./try list
expect_text out '^  effect +99990 blocks of 3.8 MiB in all; (99|100) % of them right behind the one before'
measure counters
action=pad variable='made[i]' try 0 counters --metric 'shared: ([0-9]+)' ./try counters
expect_text out '^  effect +16 blocks .*; 100 % of them with cache lines of their own'
measure arrays
action=offset variable='made[i]' try 0 arrays --metric 'higher:lines: ([0-9]+)' ./try arrays
expect_text out '^             1 as it is, 16 with it$'
measure fresh
action=prefault try 0 fresh --metric 'missing: ([0-9]+)' ./try fresh
expect_text out '^  effect +1 block of 16.0 MiB in all; 4096 pages were there before they were used'
# On one memory node these can only be seen to be done at all.
measure nodes
for action in interleave first-touch-spread; do
    try 3 nodes --metric 'sum ([0-9]+)' ./try nodes
    expect_text out '^  effect +1 block of 8.0 MiB in all; of its pages on node 0: '
    variable=static_table try 3 nodes --metric 'sum ([0-9]+)' ./try nodes
    expect_text out '^  effect +1 block of 8.0 MiB in all; of its pages on node 0: '
done
unset action

# All that programs do with blocks, also while others do, and after a fork.
measure uses 1
for action in huge-pages pad pool offset prefault interleave; do
    for variable in ${LOCUS_TEST_FULL:+p} 'blocks[i]'; do
        try 3 uses --metric 'well: ([0-9]+)' ./try uses 2
        expect_text out '^  verdict +(no difference|no effect)$'
    done
done
finish
