#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What hpcrun says, and how it ends, when it is given something wrong. Where the program can run, it runs.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
cd "$scratch"

# refused STATUS PATTERN ARGUMENT...: one message on stderr, nothing on stdout, nothing left behind.
refused() {
    local status=$1 pattern=$2
    shift 2
    expect_status "$status" "$hpcrun" "$@"
    expect_text "$scratch/err" "$pattern"
    [ "$(wc -l <"$scratch/err")" = 1 ] || fail "more than one line for: $*"
    [ ! -s "$scratch/out" ] || fail "output for: $*"
    [ -z "$(find . -name 'hpctoolkit-*')" ] || fail "a measurement directory is left by: $*"
}

# Words that cannot be understood: status 2, nothing is run.
touch "$scratch/marker"
refused 2 'hpcrun: no command is given' -e CPUTIME
refused 2 '--nonsense' --nonsense true
refused 2 "no event 'EADR'.*EADDR" -e EADR rm "$scratch/marker"
refused 2 'a period of 5 us is too short' -e CPUTIME@5 rm "$scratch/marker"
refused 2 'period of 0 is impossible' -e FAULTS@0 rm "$scratch/marker"
refused 2 'neither a period' -e CPUTIME@fast rm "$scratch/marker"
refused 2 'asked for twice' -e '{task-clock,task-clock}' rm "$scratch/marker"
DATACENTRIC_MIN_BYTES=abc refused 2 "DATACENTRIC_MIN_BYTES: 'abc' is not a size" -e CPUTIME rm "$scratch/marker"
DATACENTRIC_MIN_BYTES=4x refused 2 "DATACENTRIC_MIN_BYTES: '4x' is not a size" -e CPUTIME rm "$scratch/marker"
refused 2 "'x' is not a size" -ms x rm "$scratch/marker"
refused 2 "-js: '999999999999' is not a number from 1 to 1024" -js 999999999999 rm "$scratch/marker"
refused 2 "-js: '0' is not a number" -js 0 rm "$scratch/marker"
refused 2 "-m: '2' is not a number from 0 to 1" -m 2 rm "$scratch/marker"
refused 2 'CHECKPOINT_SECONDS: .99999999999. is not a whole number' -ck CHECKPOINT_SECONDS=99999999999 rm "$scratch/marker"
refused 2 "'4294967306' is not a signal" --start-signal 4294967306 rm "$scratch/marker"
refused 2 'SCHED:u: SCHED takes no modifiers' -e SCHED:u rm "$scratch/marker"
refused 2 'SCHED is no perf event and cannot be in a group' -e '{sched,CPUTIME}' rm "$scratch/marker"
refused 2 "no event 'NOPE' on this machine; hpcrun -L" -e NOPE rm "$scratch/marker"
refused 2 'not a fraction' -f 2 rm "$scratch/marker"
refused 2 'NAME=VALUE' -ck nonsense rm "$scratch/marker"
[ -e "$scratch/marker" ] || fail "a program ran although the options were wrong"

# Commands that cannot be run: as a shell would.
touch not-executable
refused 127 'no such command' no-such-command-here
refused 127 'cannot be run: No such file' ./no-such-file
refused 126 'cannot be run: it is not executable' ./not-executable
refused 126 'cannot be run: it is a directory' "$scratch"

# Programs that cannot be measured run all the same; with --strict they do not.
# stands_aside PATTERN ARGUMENT...
stands_aside() {
    local pattern=$1
    shift
    expect_status 7 "$hpcrun" "$@"
    expect_text "$scratch/err" "$pattern"
    expect_text "$scratch/err" 'runs without being measured'
    expect_status 1 "$hpcrun" --strict "$@"
    expect_text "$scratch/err" "$pattern"
}

echo 'int main(void) { return 7; }' >seven.c
if $CC -static seven.c -o seven-static 2>/dev/null; then
    stands_aside 'statically linked.*hpclink' ./seven-static
else
    skip_part "no static libc"
fi
if works ia32 && $CC -m32 seven.c -o seven-32 2>/dev/null; then
    stands_aside '32-bit program' ./seven-32
else
    # Enough of a header to be recognised; no kernel runs it.
    printf '\177ELF\001\001\001%090d' 0 >seven-32
    chmod +x seven-32
    expect_status 126 "$hpcrun" ./seven-32
    expect_text "$scratch/err" '32-bit program'
fi
$CC seven.c -o seven
if [ -e "$builddir/.libs/libhpcrun.so" ]; then
    echo text >file
    stands_aside 'file' -o file ./seven
    stands_aside 'file/dir' -o file/dir ./seven
    (
        ulimit -f 2000
        n_failures=0
        stands_aside 'ulimit -f' ./seven
        finish
    ) || fail "the limit of file sizes"
    mkdir -p 'a blank/.libs'
    cp "$builddir/hpcrun" 'a blank/' && ln -s "$builddir/.libs/libhpcrun.so" 'a blank/.libs/'
    hpcrun='a blank/hpcrun' stands_aside 'cannot be preloaded' ./seven
    if [ "$(id -u)" = 0 ]; then
        chown 1 seven && chmod u+s seven
        stands_aside 'raised privileges' ./seven
    fi
fi
finish
