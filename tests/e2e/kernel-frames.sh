#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the kernel does with the samples of software events: two events that overflow at the same instant share one
# signal, and both have their samples; page faults of the handler itself are not counted as lost ones; functions of the
# kernel have names where it shows them, and are addresses with one note where it does not.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need_machine rings # of page faults
cd "$scratch"

cat >touch.c <<'END'
#include <time.h>
#include <unistd.h>
static volatile char area[256 * 4096] __attribute__((aligned(4096))); /* pages that nothing else has touched */
int main(void)
{
    const struct timespec shortly = {0, 100000};
    for (int i = 0; i < 256; i++)
        area[i * 4096] = 1;
    for (int i = 0; i < 30; i++)
        nanosleep(&shortly, NULL);
    return 3;
}
END
$CC -O1 -g touch.c -o touch

# count DIR EVENT FIELD: a field of the event's line in the log, 0 when it is not there.
count() {
    local value
    value=$(sed -n "/^EVENT SUMMARY:.* name: $2\$/s/.* $3: \([0-9]*\),.*/\1/p" "$1"/touch-*.log)
    echo "${value:-0}"
}

if [ "$(getconf PAGESIZE)" != 4096 ]; then
    skip_part "the pages here are not of 4096 bytes"
elif "$hpcrun" --print-plan -e page-faults@1 -e minor-faults@1 >/dev/null 2>&1; then
    expect_status 3 "$hpcrun" -e FAULTS@1 -e minor-faults@1 -o shared ./touch
    [ "$(count shared FAULTS named)" -ge 256 ] || fail "fewer addresses than pages: $(cat shared/touch-*.log)"
    for event in FAULTS minor-faults; do
        [ "$(count shared $event taken)" -ge 256 ] || fail "$event: fewer samples than pages: $(cat shared/touch-*.log)"
        own=$(count shared $event own-fault)
        [ "$own" -gt 0 ] || fail "$event: the handler had no page fault of its own: $(cat shared/touch-*.log)"
        [ "$(count shared $event overflows)" = \
            $(($(count shared $event taken) + own + $(count shared $event not-delivered))) ] ||
            fail "$event: the overflows are not all accounted for: $(cat shared/touch-*.log)"
        [ "$(count shared $event not-delivered)" -lt 10 ] || fail "$event: samples are lost: $(cat shared/touch-*.log)"
    done
else
    skip_part "page faults cannot be sampled: $("$hpcrun" --print-plan -e page-faults@1 -e minor-faults@1 2>&1)"
fi

# tree_of NAME: the tree of a measurement into the file NAME.
tree_of() {
    expect_status 0 "$builddir/hpcprof" -o "$1.db" "$1.out"
    expect_status 0 "$builddir/hpcquery" vars "$1.db"
    tr -s ' \n' ' ' <"$scratch/out" >"$1.vars"
    expect_status 0 "$builddir/hpcquery" tree --paths "$1.db"
    cp "$scratch/out" "$1.tree"
}

cat >hidden.sh <<'END'
echo "0000000000000000 T _text" >list
mount --bind list /proc/kallsyms || exit 77
exec "$1" -e context-switches -o hidden.out ./touch
END
if ! "$hpcrun" --print-plan -e context-switches >/dev/null 2>&1; then
    skip_part "context switches cannot be sampled: $("$hpcrun" --print-plan -e context-switches 2>&1)"
    finish
fi
if ! grep -q '^0*[1-9a-f][0-9a-f]* [tT] .*nanosleep$' /proc/kallsyms; then
    skip_part "the kernel shows no addresses of its functions here"
else
    expect_status 3 "$hpcrun" -e context-switches -o named.out ./touch
    tree_of named
    expect_text named.tree ' [a-z0-9_]*do_nanosleep( |$)'
    ! grep -q '0xffff.*\[kernel\]' named.tree || fail "kernel functions without a name: $(cat named.tree)"
    ! grep -q 'The kernel hid' named.vars || fail "a note that the kernel hides what it shows: $(cat named.vars)"
fi
status=0
unshare -m bash hidden.sh "$hpcrun" >/dev/null 2>err || status=$?
case $status in
    3)
        tree_of hidden
        expect_text hidden.tree ' 0x[0-9a-f]{16} \[kernel\]'
        ! grep -q 'do_nanosleep' hidden.tree || fail "a name that the kernel hides: $(cat hidden.tree)"
        [ "$(grep -o 'The kernel hid' hidden.vars | wc -l)" = 1 ] || fail "not one note: $(cat hidden.vars)"
        ;;
    77 | 1) skip_part "nothing can be mounted here" ;;
    *) fail "exit status $status where the kernel hides its functions: $(cat err)" ;;
esac
finish
