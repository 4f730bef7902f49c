#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measurement directories in trouble: full, over quota, read-only, gone, not answering. The program goes on with its own
# output and exit status, what was measured is kept, one message says where, and hpcrun --collect brings it back.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
mkdir spare
export TMPDIR=$scratch/spare

cat >burn.c <<'END'
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* burn FILE: works until FILE exists, then a little more. */
int main(int argc, char **argv)
{
    volatile unsigned long x = 0;
    clock_t end = 0;
    while (!end || clock() < end) {
        for (int i = 0; i < 1000000; i++)
            x += (unsigned long)i;
        if (!end && argc > 1 && access(argv[1], F_OK) == 0)
            end = clock() + CLOCKS_PER_SEC / 5;
    }
    puts("done");
    return argc == 2 ? 4 : 5;
}
END
$CC -O1 burn.c -o burn
$CC -O1 -shared -fPIC "$srcdir/tests/lib/trouble.c" -o trouble.so

# start DIR OPTION...: burn, measured into DIR in the background, until it has a first checkpoint.
start() {
    local dir=$1
    shift
    rm -f go
    "$hpcrun" -e CPUTIME@f500 -ck CHECKPOINT_SECONDS=1 "$@" -o "$dir" ./burn go >out 2>err &
    started=$!
    await compgen -G "$dir/burn-*.hpcrun"
}

# stop NAME: the program ends as it should, and nobody but it has written anything.
stop() {
    local status=0
    touch go
    wait "$started" || status=$?
    [ "$status" = 4 ] || fail "$1: status $status"
    [ "$(cat out)" = "done" ] || fail "$1: output $(cat out)"
    [ ! -s err ] || fail "$1: somebody wrote to the terminal: $(cat err)"
}

# rescued NAME DIR: everything is in spare; hpcprof says so; afterwards it is in DIR, once and complete.
rescued() {
    local place
    await compgen -G 'spare/locus-detour-*/*/burn-*.hpcrun'
    place=$(compgen -G 'spare/locus-detour-*')
    await flock -n "$place/target" true
    [ "$(cat spare/locus-detour-*/companion-*.txt "$2"/companion-*.txt 2>/dev/null | grep -c 'hpcrun --collect')" = 1 ] ||
        fail "$1: not one message: $(cat spare/locus-detour-*/companion-*.txt "$2"/companion-*.txt)"
    "$builddir/hpcprof" -q -o "$1.db" "$2" >said 2>&1 && fail "$1: hpcprof does not mind"
    expect_text said "$(basename "$place").*hpcrun --collect"
}

# collected NAME DIR: hpcrun --collect brings the measurement back.
collected() {
    expect_status 0 "$hpcrun" --collect "$2"
    expect_text "$scratch/out" '^1 processes collected into'
    python3 "$srcdir/tests/lib/check-fates.py" "$2" --processes 1 --min-taken 20 || fail "$1: the measurement is wrong"
    "$builddir/hpcprof" -q -o "$1.db" "$2" || fail "$1: hpcprof cannot read it"
    [ -z "$(ls -A spare)" ] || fail "$1: left behind: $(ls -A spare)"
}

# fill: leaves no room, not even what others give back, until empty is called.
fill() {
    (while [ ! -e emptied ]; do
        cat /dev/zero 2>/dev/null >>full/filler || sleep 0.02
    done) &
    filler=$!
    sleep 0.5
}
empty() {
    touch emptied
    wait "$filler" || true
    rm -f emptied full/filler
}

# A disk that becomes full.
mkdir full
if mount -t tmpfs -o size=256k locus-test full 2>/dev/null; then
    clean_up() {
        umount -l "$scratch/full" 2>/dev/null
    }
    # What the process beside the program gives back itself may be enough, if it is quicker than who fills the disk: then
    # the measurement is complete where it belongs, at most lines of the index or the log wait elsewhere, and the disk
    # becomes full once more.
    for attempt in 1 2 3 4 5; do
        start full/m
        fill
        stop full
        await sh -c 'if [ -z "$(ls -A spare)" ]; then ! ls -A full/m | grep -q "^.writing"
            else flock -n spare/*/target true; fi'
        compgen -G 'spare/locus-detour-*/*/burn-*.hpcrun' >/dev/null && break
        empty
        expect_status 0 "$hpcrun" --collect full/m # what waits elsewhere
        python3 "$srcdir/tests/lib/check-fates.py" full/m --processes 1 || fail "full: brought back, but not whole"
        [ -z "$(ls -A spare)" ] || fail "full: left behind: $(ls -A spare)"
        rm -rf full/m
        [ "$attempt" != 5 ] || skip_part "the disk never stayed full"
    done
    if compgen -G 'spare/locus-detour-*/*/burn-*.hpcrun' >/dev/null; then
        rescued full full/m
        empty
        collected full full/m
    fi

    # Where hpcrun stays as the parent, the terminal shows it: once.
    rm -f go
    SLURM_JOB_ID=1 "$hpcrun" -e CPUTIME@f500 -o full/kept ./burn go >out 2>err &
    started=$! status=0
    await compgen -G 'full/kept/.writing-*'
    fill
    touch go
    wait "$started" || status=$?
    [ "$status" = 4 ] || fail "kept: status $status"
    [ "$(wc -l <err)" = 1 ] || fail "kept: not one line: $(cat err)"
    expect_text err '^hpcrun: .*(No space left|cannot).* kept in .*locus-detour-.*hpcrun --collect'
    empty
    # What others gave back meanwhile may have been enough.
    await sh -c '! ls -A full/kept | grep -q "^.writing"'
    await sh -c 'for lock in spare/*/target; do [ ! -e "$lock" ] || flock -n "$lock" true || exit 1; done'
    "$hpcrun" --collect full/kept >/dev/null || fail "kept: not collected"
    python3 "$srcdir/tests/lib/check-fates.py" full/kept --processes 1 || fail "kept: the measurement is wrong"

    # The records of the scheduler have no other place: the terminal says where they end, and why. With --strict a
    # program does not run if they cannot even begin.
    if works rings; then
        rm -rf full/kept
        cat /dev/zero 2>/dev/null >full/filler || true
        truncate -s $(($(stat -c %s full/filler) - 40960)) full/filler
        # shellcheck disable=SC2016 # for the shell that is measured
        expect_status 4 "$hpcrun" --report -e sched -o full/s sh -c 'for i in $(seq 600); do /bin/true; done; exit 4'
        expect_text "$scratch/err" '^hpcrun: What the scheduler does is not recorded any more: .*[.]sched: cannot write: No space left'
        [ "$(grep -c 'No space left' "$scratch/err")" = 1 ] || fail "sched: not one line: $(cat "$scratch/err")"
        cat /dev/zero 2>/dev/null >>full/filler || true
        expect_status 1 "$hpcrun" --strict --append -e sched -o full/s sh -c 'touch has-run'
        expect_text "$scratch/err" 'No space left'
        [ ! -e has-run ] || fail "the program ran in spite of --strict"
    else
        skip_part "the scheduler's records need rings: $why"
    fi
    await umount full 2>/dev/null # the companion of the program that did not run has ended
else
    skip_part "no file system may be mounted here"
fi

# A quota that is exceeded.
mkdir quota
TROUBLE_DIR=$scratch/quota TROUBLE_QUOTA=$scratch/exceeded LD_PRELOAD=$scratch/trouble.so start quota
touch exceeded
stop quota
rescued quota quota
expect_text <(cat spare/locus-detour-*/companion-*.txt) 'quota exceeded'
collected quota quota

# A directory that becomes read-only: for somebody who minds.
if [ "$(id -u)" = 0 ] && chmod 755 "$scratch" && setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$hpcrun"; then
    mkdir read-only
    chown 65534:65534 read-only spare
    as_user=$hpcrun
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups %s "$@"\n' "$as_user" >as-user
    chmod 755 as-user
    XDG_CACHE_HOME=$scratch/spare-cache hpcrun=$scratch/as-user start read-only
    chmod 555 read-only
    stop read-only
    await compgen -G 'spare/locus-detour-*/*/burn-*.hpcrun'
    place=$(compgen -G 'spare/locus-detour-*')
    await flock -n "$place/target" true
    expect_text <(cat spare/locus-detour-*/companion-*.txt) 'Permission denied.* kept in .*locus-detour'
    chmod 755 read-only
    "$scratch/as-user" --collect read-only >said || fail "read-only: not collected: $(cat said)"
    python3 "$srcdir/tests/lib/check-fates.py" read-only --processes 1 || fail "read-only: the measurement is wrong"
    chown 0:0 spare
else
    skip_part "only root can become a user who minds"
fi

# One that is read-only from the start: one message, and the program runs.
touch no-directory
expect_status 4 "$hpcrun" -o no-directory/m ./burn go
[ "$(wc -l <"$scratch/err")" = 2 ] || fail "not the reason and what follows: $(cat "$scratch/err")"
expect_text "$scratch/err" 'runs without being measured'

# A directory that vanishes.
start vanishing
rm -rf vanishing
stop vanishing
rescued vanishing vanishing
collected vanishing vanishing

# One that does not answer: the program does not wait for it, and nothing is lost.
mkdir slow
rm -f go
TROUBLE_DIR=$scratch/slow TROUBLE_GATE=$scratch/gate LD_PRELOAD=$scratch/trouble.so \
    "$hpcrun" -e CPUTIME@f500 -ck CHECKPOINT_SECONDS=1 -o slow sh -c './burn go; status=$?; true; exit $status' >out 2>err &
started=$!
await compgen -G 'slow/.writing-*'
sleep 1.5
stop slow
[ -z "$(find slow -name 'burn-*')" ] || fail "the directory answered"
touch gate
await sh -c '! ls -A slow | grep -q "^.writing"'
python3 "$srcdir/tests/lib/check-fates.py" slow --min-taken 20 || fail "slow: the measurement is wrong"
[ "$(find slow -name 'burn-*.hpcrun' | wc -l)" = 1 ] || fail "slow: $(ls -A slow)"
[ -n "$(find slow -name 'sh-*.hpcrun')" ] || expect_text <(cat slow/index-*) 'no samples'
[ -z "$(ls -A spare)" ] || fail "slow: left behind: $(ls -A spare)"
finish
