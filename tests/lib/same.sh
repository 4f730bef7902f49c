# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # srcdir, builddir and scratch are common.sh's
# After common.sh: programs natively and under hpcrun, with the same bytes and status: as this user, as an unprivileged
# one, and with perf refused. Inputs lie in $scratch/input, of which every run has a copy of its own.
checker=$(command -v python3) || true

# sums DIR: what every file that the program wrote or changed holds; git's index knows times.
sums() {
    (cd "$1" && find . -type f ! -path '*/.git/index' -print0 | sort -z | xargs -0 sha256sum)
}

# once DIR PREFIX... -- COMMAND...: runs COMMAND in a copy of the inputs; leaves DIR.out, .err, .status and .sums.
once() {
    local dir=$1 prefix=() status=0
    shift
    while [ "$1" != -- ]; do
        prefix+=("$1")
        shift
    done
    shift
    cp -a "$scratch/input" "$dir"
    chmod -R a+rwX "$dir"
    [ "${user:-}" = "" ] || chown -R "$user" "$dir"
    (cd "$dir" && HOME=$base/home XDG_CACHE_HOME=$base/home/cache "${prefix[@]}" "$@" >"$dir.out" 2>"$dir.err") ||
        status=$?
    echo "$status" >"$dir.status"
    sed -E -i '/^hpcrun: (datacentric|warning): /d' "$dir.err"
    sums "$dir" >"$dir.sums"
    rm -rf "$dir"
}

# compare WAY NAME COMMAND...: natively and measured; in WAY the array prefix comes before both.
compare() {
    local way=$1 name=$2 base=$scratch/$1
    shift 2
    command -v "$1" >/dev/null || {
        skip_part "$1 is not installed"
        return 0
    }
    once "$base/here" "${prefix[@]}" -- "$@"
    local part
    for part in out err status sums; do
        mv "$base/here.$part" "$base/$name.native.$part"
    done
    once "$base/here" "${prefix[@]}" "$builddir/hpcrun" -o "$base/m-$name" -- "$@"
    for part in out err status sums; do
        cmp -s "$base/$name.native.$part" "$base/here.$part" || {
            fail "$way, $name: $part differs"
            diff "$base/$name.native.$part" "$base/here.$part" | head -n 10 || true
        }
    done
    "$checker" "$srcdir/tests/lib/check-fates.py" "$base/m-$name" --min-taken 0 >"$scratch/fates" ||
        fail "$way, $name: $(cat "$scratch/fates")"
    echo "$way, $name: status $(cat "$base/here.status"), $(wc -c <"$base/here.out") bytes; $(cat "$scratch/fates")"
}

# in_all_ways FUNCTION [too]: calls it with the name of each way; the arrays and variables that compare uses are set. too: also
# unprivileged and with perf refused at once.
in_all_ways() {
    prefix=(env)
    "$1" "this user"
    if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        prefix=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        if "${prefix[@]}" test -r "$builddir/hpcrun" -a -r "$srcdir/configure.ac"; then
            user=65534 "$1" "unprivileged"
        else
            skip_part "the build directory is closed to other users"
        fi
    else
        skip_part "only root can become another user"
    fi
    $CC -O2 "$srcdir/tests/lib/refuse-perf.c" -o "$scratch/refuse-perf" || fail "refuse-perf.c does not build"
    prefix=("$scratch/refuse-perf")
    if "$scratch/refuse-perf" true; then
        "$1" "perf refused"
        if [ "${2:-}" = too ] && [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
            prefix=(setpriv --reuid=65534 --regid=65534 --clear-groups "$scratch/refuse-perf")
            if "${prefix[@]}" test -r "$builddir/hpcrun" -a -r "$srcdir/configure.ac"; then
                user=65534 "$1" "unprivileged, perf refused"
            fi
        fi
    else
        skip_part "no filters of system calls here"
    fi
}
