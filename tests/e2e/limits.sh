#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that set limits of their own (limits.c) meet them where they would without hpcrun: on locked memory, on the
# address space, on descriptors; and no descriptor of theirs is taken for one of ours.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
LOCKED_MORE_KB=256 # a mapping or two beside the program's, such as what its C library grows by
GROWN_MORE_KB=65536
cd "$scratch"
$CC -O2 -g -Wall -Werror -pthread "$srcdir/tests/e2e/limits.c" -o limits || {
    fail "limits.c does not build"
    finish
}

# measure WAY [STATES]: natively and measured; the same output, every sample with a fate, and processes that ended so.
measure() {
    local way=$1 native=0 measured=0
    ./limits "$way" >"$way.native" 2>"$way.native.err" || native=$?
    "$hpcrun" -e datacentric -o "$way.m" ./limits "$way" >"$way.out" 2>"$way.err" || measured=$?
    [ "$native" = "$measured" ] || fail "$way: status $measured instead of $native"
    expect_same "$way.native" "$way.out"
    python3 "$srcdir/tests/lib/check-fates.py" "$way.m" --min-taken 1 --state "${2:-complete}" >"$way.fates" || fail "$way: $(cat "$way.fates")"
    echo "$way: $(tr '\n' ';' <"$way.out") $(cat "$way.fates")"
}

# not_above WAY NAME MORE: the number NAME is at most MORE above that of the native run.
not_above() {
    local native measured
    native=$(awk -v name="$2" '$1 == name { print $2 }' "$1.native.err")
    measured=$(awk -v name="$2" '$1 == name { print $2 }' "$1.err")
    echo "$1: $2 $native kB natively, $measured kB measured"
    [ "$measured" -le $((native + $3)) ] || fail "$1: $2 $measured kB instead of $native"
}

# Locked memory: the program's alone; without the right to lock beyond the limit, too.
measure lock
for name in locked later current; do
    not_above lock "$name" $LOCKED_MORE_KB
done
not_above lock grown $GROWN_MORE_KB
measure lock-limited
for name in locked later current; do
    not_above lock-limited "$name" $LOCKED_MORE_KB
done
# The bare system call meets what the profiler has mapped, which is no more than it uses.
if [ "$(id -u)" = 0 ]; then
    measure lock-raw
    not_above lock-raw locked $GROWN_MORE_KB
fi

for way in space space-small space-outside data; do
    measure $way
done

# One that leaves no room beside our memory ends the measurement, and the program goes on.
for way in close-space close-space-again close-data; do
    measure $way
    cat "$way".m/limits-*.log >"$way.log"
    expect_text "$way.log" 'too small for the recording: the measurement ends there'
done
measure close-handler complete,killed # it kills a child, which may have samples by then
for when in "handler: recording 1" "question: recording 1" "another's: recording 1" "own: recording 0"; do
    expect_text close-handler.err "^$when\$"
done
# shellcheck disable=SC2016 # for the shell that is measured
array='(ulimit -v 16000; for ((i = 0; i < 20000; i++)); do a[i]=$i; done; echo ${#a[@]})'
expect_text <("$hpcrun" -o array.m bash -c "$array") '^20000$'

# A limit that a short run needs, and a little more, is enough for a long run: the profiler takes no more later, and nothing
# at all where that would be much of it.
for way in smallest-space smallest-data smallest-large-space smallest-large-data; do
    measure $way
    expect_text $way.out '^long run: 1$'
done
cat smallest-data.m/index-* >smallest.index
expect_text smallest.index 'limits not measured: its limit of address space or data'

# A stack of 64 KiB is the program's, not the tools'.
# roomy OUT COMMAND...: status 0.
roomy() {
    local out=$1
    shift
    (ulimit -s 64 && "$@") >"$out" 2>"$out.err" || fail "ulimit -s 64, $1 $2: status $?: $(cat "$out.err")"
}
# shellcheck disable=SC2016 # for the shell that is measured
roomy stack.limit "$hpcrun" -o stack.m sh -c 'ulimit -s'
expect_text stack.limit '^64$'
roomy stack.measured "$hpcrun" -o stack.m ./limits looks
roomy stack.doctor "$hpcrun" --doctor
roomy stack.structure "$builddir/hpcstruct" -o structure ./limits
roomy stack.database "$builddir/hpcprof" -q -S structure -o stack.db stack.m
roomy stack.variables "$builddir/hpcquery" vars stack.db

# Processes: what helps the companion makes room, the companion itself is one. The user is one that has no processes.
# threads N: as many of the program's threads fit under ulimit -u N.
threads() {
    setpriv --reuid=23457 --regid=23457 --clear-groups bash -c 'ulimit -u "$1"; shift; exec "$@"' threads "$@"
}
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && mkdir -m 777 crowd && chmod 755 . limits &&
    setpriv --reuid=23457 --regid=23457 --clear-groups test -r "$builddir/.libs/libhpcrun.so"; then
    read -r n_native _ < <(threads 20 ./limits threads)
    # What has ended counts until its parent has asked for it; on a busy machine init is late. So there are some attempts.
    n_measured=0
    for attempt in 1 2 3 4 5; do
        for _ in $(seq 100); do
            grep -qs "^Uid:.23457" /proc/[0-9]*/status || break
            sleep 0.1
        done
        (cd crowd && export XDG_CACHE_HOME=$PWD/cache && threads 20 "$hpcrun" -o "m$attempt" ../limits threads) >crowd.out 2>crowd.err
        read -r n_measured _ <crowd.out
        [ "$n_measured" -lt $((n_native - 1)) ] || break
    done
    echo "ulimit -u 20: $n_native threads natively, $n_measured measured"
    [ "$n_native" -ge 15 ] && [ "$n_measured" -ge $((n_native - 1)) ] || fail "$(cat crowd.out crowd.err)"
else
    skip_part "only root can become another user"
fi

# Whatever the limits are, the program runs as it does without hpcrun; it is measured, or a line says why not, and then
# --strict refuses it.
# tight EVENT COMMAND...: COMMAND runs hpcrun, whose arguments follow it, and may limit it first.
tight() {
    local event=$1 status=0 n
    shift
    rm -rf tight.m
    "$@" "$hpcrun" -e "$event" -o tight.m ./limits brief >tight.out 2>tight.err || status=$?
    echo "$event $*: $(ls tight.m/*.hpcrun 2>/dev/null || tail -n 2 tight.err)"
    [ "$status" = 7 ] && [ "$(cat tight.out)" = "burnt 1" ] || fail "$*: status $status: $(cat tight.out tight.err)"
    n=$(find tight.m -name '*.hpcrun' 2>/dev/null | wc -l)
    is_measured=$n
    [ "$n" -ge 1 ] || expect_text tight.err 'runs without being measured'
}
strict() {
    local status=0
    tight "$@"
    local event=$1
    shift
    "$@" "$hpcrun" --strict -e "$event" -o strict.m ./limits brief >strict.out 2>strict.err || status=$?
    [ "$is_measured" = 0 ] && [ "$status" = 1 ] && [ ! -s strict.out ] || fail "$* --strict: status $status"
    grep -q ' not measured: ' tight.m/index-* || fail "$*: the index has no line"
}
# limited OPTION VALUE COMMAND...
limited() {
    (ulimit "$1" "$2" && shift 2 && exec "$@")
}
for n in 4 5 6 7 9 11 12 14 15 16 17 18; do
    tight datacentric limited -n $n
done
strict datacentric limited -n 13
for n in 0 3; do
    tight datacentric limited -i $n
    strict REALTIME limited -i $n
done
tight datacentric limited -l 0
tight datacentric limited -s 64
strict datacentric limited -v 250000
tight datacentric limited -v 300000
tight datacentric limited -d 20000
strict datacentric ./limits refuse
expect_text tight.err 'memory files cannot be made'
# The same where the program is limited only on its way: the companion says it at the end.
for way in "-n 4" "-i 0"; do
    status=0
    "$hpcrun" --report -e REALTIME -o inner.m bash -c "ulimit $way; exec ./limits brief" >inner.out 2>inner.err ||
        status=$?
    [ "$status" = 7 ] || fail "$way on the way: status $status"
    # The shell has a profile, if it had a moment of CPU time.
    expect_text inner.err '^hpcrun: 1 process could not be measured; the first: [0-9]* .*limits not measured: |holds no profile .*; [0-9]+ .*limits not measured: '
    expect_text inner.err "$([ "$way" = "-i 0" ] && echo timers || echo 'no descriptors left')"
done
# What was measured before an exec stays, though the new program cannot be measured.
status=0
"$hpcrun" -e CPUTIME -o become.m ./limits become >become.out 2>become.err || status=$?
if [ "$status" = 77 ]; then
    skip_part "no network namespace can be made: a program that loses its descriptors before exec"
else
    [ "$status" = 7 ] || fail "become: status $status: $(cat become.out become.err)"
    [ "$(find become.m -name '*.hpcrun' | wc -l)" = 1 ] || fail "become: $(ls become.m) $(cat become.m/index-*)"
    grep -q ' not measured: it has no descriptors left' become.m/index-* || fail "become: $(cat become.m/index-*)"
fi

# Descriptors.
ulimit -S -n 1024
measure looks
measure crowd
cat crowd.m/*.log >crowd.log
! perf_works || expect_text crowd.log 'event EADDR: a timer replaces it on [0-9]+ threads'
measure bells
measure pipes
finish
