#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One command describes the machine that it runs on: hpcrun plans the same from the description as on the machine.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -x "$builddir/hpcrun" ] || skip "hpcrun has not been built"
[ -z "${LOCUS_EMULATED:-}" ] || skip "under qemu-user /proc describes the host, not the machine that is emulated"
need python3
need_machine rings # a description says what opens, not that no ring can be mapped
bundle=$srcdir/tests/lib/bundle.py

# A text keeps a folder as it is, be it odd.
mkdir -p "$scratch/odd/a b/empty" "$scratch/odd/z"
cd "$scratch/odd"
printf 'config:0-7\n' >"a b/[x] = y"
printf '  indented\n' >"a b/indented"
printf '\n' >"a b/newline"
printf '|\n\n# no comment\n\\\n[z]\nno newline' >"a b/no%20newline"
cp "a b/no%20newline" z/again
: >z/nothing
printf '\0\1\377%0200d' 7 >z/binary
printf 'carriage return\r\n' >z/return
printf '#!/bin/sh\n' >z/program
chmod +x z/program
ln -s "../a b" z/link
ln -s nowhere dangling
cd "$scratch"
expect_status 0 python3 "$bundle" pack odd odd.txt "a b"
expect_status 0 python3 "$bundle" unpack odd.txt odd-again
expect_status 0 diff -r --no-dereference odd odd-again
list='find . -printf "%p %y %m %l\n" | sort'
expect_same <(cd odd && eval "$list") <(cd odd-again && eval "$list")
expect_text odd.txt '^again same-as a%20b/no%2520newline$|^no%2520newline same-as z/again$'
echo 'name without anything' >wrong.txt
expect_status 1 python3 "$bundle" unpack wrong.txt wrong
expect_text "$scratch/err" 'wrong.txt:1: not understood: name without anything'

expect_status 0 env HPCRUN="$builddir/hpcrun" bash "$srcdir/tests/golden/machines/record.sh" machine.txt
machine=$scratch/machine
expect_status 0 python3 "$bundle" unpack machine.txt "$machine"
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
cp machine.txt before.txt
touch "$machine/marker"
python3 "$bundle" pack "$machine" machine.txt expected.txt
expect_status 0 env HPCRUN="$builddir/hpcrun" bash "$srcdir/tests/golden/machines/record.sh" machine.txt
expect_text machine.txt '^marker =$'
expect_same before.txt <(sed '/^marker =$/d' machine.txt)
expect_status 2 bash "$srcdir/tests/golden/machines/record.sh"
finish
