#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Nothing is lost: programs that are killed, that fork, that exec; directories that vanish or are full; and a program
# whose companion dies runs on.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

build_burn

# files DIR PATTERN N: exactly N files match.
files() {
    local n
    n=$(find "$1" -name "$2" | wc -l)
    [ "$n" = "$3" ] || fail "$n files $2 in $1 instead of $3: $(ls -A "$1")"
}

# A normal end: complete as soon as the program has gone.
expect_status 4 "$hpcrun" -e CPUTIME -o normal ./burn 0.3
files normal 'burn-*.hpcrun' 1
settle normal
files normal 'topology-*.xml' 1
files normal 'companion-*.txt' 0

# A killed program.
"$hpcrun" -e CPUTIME -o killed ./burn 30 2>/dev/null &
started=$!
await test -e killed
sleep 1
kill -KILL "$started"
wait "$started" 2>/dev/null || true
settle killed
files killed 'burn-*.hpcrun' 1

# Checkpoints while it runs, replaced by the final files.
"$hpcrun" -e CPUTIME -ck CHECKPOINT_SECONDS=1 -o checked ./burn 4 2>/dev/null &
started=$!
await compgen -G 'checked/burn-*.hpcrun'
kill -0 "$started" 2>/dev/null || fail "the checkpoint came after the program's end"
wait "$started" || true
settle checked
files checked 'burn-*.hpcrun' 1

# Processes: each its own files.
expect_status 4 "$hpcrun" -e CPUTIME -o family bash -c './burn 0.3 & ./burn 0.3; true; exec ./burn 0.3'
settle family
files family 'burn-*.hpcrun' 3

# One without samples leaves a line: the first comes within 1000 seconds of its time.
expect_status 0 "$hpcrun" -e CPUTIME@1000s -o brief true
settle brief
files brief '*.hpcrun' 0
expect_text <(cat brief/index-*) 'no samples'

# The directory vanishes: the program does not notice.
"$hpcrun" -e CPUTIME -o vanishing ./burn 1 2>errors &
started=$! status=0
await compgen -G 'vanishing/.writing-*'
rm -rf vanishing
wait "$started" || status=$?
[ "$status" = 4 ] || fail "status $status after the directory vanished"
[ ! -s errors ] || fail "somebody wrote to the terminal: $(cat errors)"

# A full disk: nor that.
mkdir full
if mount -t tmpfs -o size=8k locus-test full 2>/dev/null; then
    head -c 100000 /dev/zero >full/filler 2>/dev/null || true
    expect_status 4 "$hpcrun" -e CPUTIME -o full/m ./burn 0.3
    settle full/m
    files full/m '*.hpcrun' 0
    umount full 2>/dev/null || umount -l full
else
    skip_part "no file system may be mounted here"
fi

# The companion is killed: the program runs on. As long as it lives it is a batch job (policy 3): when it is woken it
# must not take the processor from the program, whose handler rang.
"$hpcrun" -e CPUTIME -o orphan ./burn 2 2>/dev/null &
started=$! status=0
await compgen -G 'orphan/.writing-*'
companion=$(companion_of orphan)
policy=$(sed 's/.*) //' "/proc/$companion/stat" | cut -d ' ' -f 39)
[ "$policy" = 3 ] || fail "the companion has the scheduling policy $policy"
sleep 0.3
kill -KILL "$companion"
wait "$started" || status=$?
[ "$status" = 4 ] || fail "status $status after the companion was killed"

# The companion has no descriptor left when a process comes: that one waits until there is one again.
need prlimit mkfifo
mkfifo gate
"$hpcrun" -e CPUTIME -o full-table bash -c 'read -r _ <gate; ./burn 0.3' &
started=$! free=0 status=0
await compgen -G 'full-table/.writing-*'
companion=$(companion_of full-table)
await test -e "/proc/$companion/fd/8"
sleep 0.5
while [ -e "/proc/$companion/fd/$free" ]; do
    free=$((free + 1))
done
limit=$(awk '/^Max open files/ { print $4 }' "/proc/$companion/limits")
prlimit --pid "$companion" --nofile="$free:"
echo go >gate
sleep 1
prlimit --pid "$companion" --nofile="$limit:"
wait "$started" || status=$?
[ "$status" = 4 ] || fail "status $status of a program whose companion had no descriptor for it"
settle full-table
files full-table 'burn-*.hpcrun' 1
finish
