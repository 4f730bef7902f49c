#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program (guest.c) within other tools, Valgrind, gdb and qemu, built with sanitizers, or started without our library:
# it runs as without hpcrun, and is measured, or leaves a line that says why it is not.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
ulimit -c 0
export XDG_CACHE_HOME=$scratch/cache
$CC -O1 -g -pthread "$srcdir/tests/e2e/guest.c" -o guest || {
    fail "guest.c does not build"
    finish
}
expected=0
./guest >native || expected=$?

# measured NAME COMMAND...: runs it under hpcrun into NAME.m; its status and output are the guest's.
measured() {
    local name=$1 status=0
    shift
    "$hpcrun" -e datacentric -o "$name.m" "$@" >"$name.out" 2>"$name.err" || status=$?
    [ "$status" = "$expected" ] || {
        fail "$name: status $status instead of $expected"
        sed 's/^/    | /' "$name.err" | head -20
    }
    expect_same native "$name.out"
    cat "$name.m"/index-* >"$name.index" 2>/dev/null || true
}

if command -v valgrind >/dev/null; then
    measured valgrind valgrind -q --error-exitcode=77 ./guest
    expect_text valgrind.index 'not measured: it runs under Valgrind'
    status=0
    valgrind -q "$hpcrun" -e datacentric -o inner.m ./guest >inner.out 2>inner.err || status=$?
    [ "$status" = "$expected" ] || fail "hpcrun under Valgrind: status $status instead of $expected"
    expect_same native inner.out
    expect_text inner.err 'hpcrun itself runs under Valgrind'
    ! grep -q unhandled inner.err || fail "hpcrun under Valgrind makes system calls that it does not know: $(cat inner.err)"
else
    skip_part "valgrind is not installed"
fi

if command -v gdb >/dev/null && gdb -q -nx -batch -ex run ./guest 2>&1 | grep -q 'exited with code 03'; then
    "$hpcrun" -e datacentric -o gdb.m gdb -q -nx -batch -ex run ./guest >gdb.out 2>&1 || fail "gdb: status $?"
    expect_text gdb.out 'exited with code 03'
    ! grep -q 'received signal' gdb.out || fail "gdb stops at our signals: $(grep received gdb.out)"
    ls gdb.m/guest-*.hpcrun >/dev/null || fail "the program within gdb is not measured"
else
    skip_part "gdb is not installed, or may not trace"
fi

for qemu in qemu-x86_64 qemu-x86_64-static; do
    if [ "$(uname -m)" = x86_64 ] && command -v $qemu >/dev/null; then
        measured $qemu $qemu ./guest
        ls $qemu.m/*.hpcrun >/dev/null 2>&1 || expect_text $qemu.err 'without being measured'
    else
        skip_part "$qemu is not installed"
    fi
done

# Built with sanitizers, and started by another program: so the launcher cannot know.
if $CC -O1 -g -pthread -fsanitize=address "$srcdir/tests/e2e/guest.c" -o guest-asan 2>/dev/null &&
    ./guest-asan >asan.native 2>&1 || [ $? = "$expected" ]; then
    measured asan sh -c './guest-asan; exit $?'
    ls asan.m/guest-asan-*.hpcrun >/dev/null || expect_text asan.index 'guest-asan not measured'
    ASAN_OPTIONS=exitcode=$expected measured asan-options sh -c 'echo "$ASAN_OPTIONS" >options; ./guest-asan; exit $?'
    expect_text options '^exitcode=3:'
else
    skip_part "no address sanitizer here"
fi
quiet=(setarch -R)
command -v setarch >/dev/null || quiet=()
if $CC -O1 -g -pthread -fsanitize=thread "$srcdir/tests/e2e/guest.c" -o guest-tsan 2>/dev/null &&
    "${quiet[@]}" ./guest-tsan >tsan.native 2>&1 || [ $? = "$expected" ]; then
    measured tsan sh -c "${quiet[*]} ./guest-tsan; exit \$?"
    expect_text tsan.index 'guest-tsan not measured: it is built with ThreadSanitizer'
else
    skip_part "no thread sanitizer here"
fi

# unmeasured NAME PROGRAM COMMAND...: runs it into NAME.m; PROGRAM, one of its processes, is named in the index and in the
# report as one that was not measured.
unmeasured() {
    local name=$1 program=$2 status=0
    shift 2
    "$hpcrun" -e datacentric -o "$name.m" "$@" >"$name.out" 2>"$name.err" || status=$?
    [ "$status" = 0 ] || fail "$name: status $status: $(cat "$name.err")"
    settle "$name.m" 30
    cat "$name.m"/index-* >"$name.index" 2>/dev/null || true
    expect_text "$name.index" "$program not measured: |no samples, replaced by .*$program, which was not measured"
    "$builddir/hpcprof" -q -o "$name.db" "$name.m" >"$name.said" 2>&1 || true
    "$builddir/hpcquery" vars "$name.db" >>"$name.said" 2>&1 || true
    tr -s ' \n' ' ' <"$name.said" >"$name.report"
    expect_text "$name.report" "not measured.*$program"
}

# A parent that adopts the orphans of its descendants gets one of ours, however much there was to do.
cat >adopt.py <<'END'
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
own = os.fork()
if not own:
    os.execvp(sys.argv[1], sys.argv[1:])
statuses = {}
while True:
    try:
        child, status = os.wait()
        statuses[child] = status
    except ChildProcessError:
        break
print("own", os.waitstatus_to_exitcode(statuses.pop(own)), "strangers", len(statuses), "with status", *set(statuses.values()))
END
python3 adopt.py "$hpcrun" -e datacentric -o adopted.m ./guest >adopted.out 2>adopted.err || fail "subreaper: status $?"
expect_text adopted.out "^own $expected strangers 1 with status 0\$"

# LD_PRELOAD without libhpcrun.so, and static programs, however they are started. The loop makes sure that the
# shell itself has samples.
library=$($CC -print-file-name=libm.so.6)
work='n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done'
unmeasured other /guest bash -c "$work; env LD_PRELOAD='$library' ./guest; :"
printf 'int main(void) { return 0; }\n' >still.c
if $CC -static still.c -o still 2>/dev/null; then
    printf 'all:\n\t./still\n' >Stillfile
    unmeasured spawned '\./still' make -s -f Stillfile
    unmeasured replaced /still bash -c "(cd . && $work; ./still; :)"
    unmeasured exec /still bash -c "$work; exec ./still"
    # Those that are measured are not named, however fast they are.
    printf 'all:\n\t/bin/true\n\t/bin/true\n\t/bin/true\n\t/bin/true\n\t/bin/true\n' >Truefile
    "$hpcrun" -e datacentric -o true.m make -s -f Truefile >/dev/null 2>&1 || fail "make: status $?"
    settle true.m 30
    ! grep 'not measured' true.m/index-* 2>/dev/null || fail "measured programs are taken for others"
else
    skip_part "no static program can be built"
fi
finish
