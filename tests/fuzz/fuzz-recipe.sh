#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the making of recipes: fuzz-recipe.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with pieces of a
# real program's code.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin recipe "$1" "$2"
need objcopy
fuzz_build
objcopy -O binary -j .text "$directory/recipe-fuzz" "$scratch/text"
for piece in {0..63}; do
    dd if="$scratch/text" of="$corpus/seed-$piece" bs=1024 skip=$((piece * 7)) count=1 status=none
done
fuzz_run -max_len=2048
finish
