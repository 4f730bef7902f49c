#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One command describes the machine that it runs on: hpcrun plans the same from the description as on the machine.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -x "$builddir/hpcrun" ] || skip "hpcrun has not been built"
[ -z "${LOCUS_EMULATED:-}" ] || skip "under qemu-user /proc describes the host, not the machine that is emulated"
need python3
machine=$scratch/machine
expect_status 0 env HPCRUN="$builddir/hpcrun" bash "$srcdir/tests/golden/machines/record.sh" "$machine"
[ -s "$machine/opens" ] || fail "the capture has no answers of the kernel"
[ -s "$machine/README" ] || fail "the capture has no README"
[ -s "$machine/expected.txt" ] || fail "the capture has no expected text"
for event in datacentric EADDR FAULTS; do
    "$builddir/hpcrun" --print-plan -e "$event" >"$scratch/here" 2>&1 || true
    "$builddir/hpcrun" --machine "$machine" --print-plan -e "$event" >"$scratch/there" 2>&1 || true
    # The kernel's tick is the one thing that is not described.
    sed -i '/^timer_interval_ns=/d; s/[0-9]* samples per CPU second//g' "$scratch/here" "$scratch/there"
    cmp -s "$scratch/here" "$scratch/there" ||
        fail "-e $event: another plan on the described machine: $(diff "$scratch/here" "$scratch/there" | head -5)"
done
touch "$machine/marker"
expect_status 0 env HPCRUN="$builddir/hpcrun" bash "$srcdir/tests/golden/machines/record.sh" "$machine"
[ -e "$machine/marker" ] || fail "a description that exists was captured anew"
expect_status 2 bash "$srcdir/tests/golden/machines/record.sh"
finish
