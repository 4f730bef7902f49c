# SPDX-License-Identifier: BSD-3-Clause
# A whole measurement of a program of another architecture under qemu-user: sampled call paths in main, in a thread and
# in a plugin lead to the program's root, and allocations are found with their paths. There is no perf there, so the
# samples come from CPU-time timers, and no data addresses.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -n "${LOCUS_EMULATED:-}" ] || skip "this is for ./dev cross, where programs run under qemu-user"

# shellcheck disable=SC2086 # CC is a command with arguments
{
    $CC -O1 -g -fPIC -shared -DPLUGIN -o "$scratch/libemulated-plugin.so" "$srcdir/tests/e2e/emulated.c"
    $CC -O1 -g -o "$scratch/program" "$srcdir/tests/e2e/emulated.c" -Wl,--enable-new-dtags \
        -Wl,-rpath,"\$ORIGIN" -ldl -lpthread
}
# Databases are written by little-endian machines: there the measurements of others are read, too.
analysis=$builddir
[ "$LOCUS_EMULATED" != s390x ] || analysis=${LOCUS_NATIVE_BUILDDIR:?"./dev cross sets it"}
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache
"$builddir/hpcrun" -e CPUTIME -e MEMLEAK -t -o measurements ./program 2>err || {
    fail "hpcrun or the program failed"
    cat err
}
"$analysis/hpcprof" -o database measurements >out 2>&1 || {
    fail "hpcprof failed"
    cat out
}
"$analysis/hpcquery" tree --paths -M "CPUTIME (usec)" --threshold 5 database >cputime || fail "hpcquery failed"
"$analysis/hpcquery" tree --paths -M "Bytes Allocated" database >memleak || fail "hpcquery failed"

# expect_path FILE FUNCTION...: the tree has these functions one below the other.
expect_path() {
    local file=$1
    shift
    awk -v wanted="$*" '
        BEGIN { n = split(wanted, name, " "); at = 1 }
        { match($0, /% +/); split(substr($0, RSTART + 1), part, "%"); }
        { while (at <= n && index($0, name[at])) at++ }
        END { exit at <= n }' "$file" && return 0
    fail "$file has no path $*"
    cat "$file"
}
expect_path cputime main work_in_main sum_of
expect_path cputime main plugin_work
expect_path cputime work_in_thread sum_of
expect_path memleak main grid_new

# Nearly all walks reach the outermost frame.
log=$(cat measurements/*.log)
grep -Eq 'EVENT SUMMARY: taken: [1-9][0-9]{2,}' <<<"$log" || {
    fail "fewer than 100 samples were taken"
    cat measurements/*.log
}
expect_text cputime 'program root'
expect_text cputime 'thread root'
finish
