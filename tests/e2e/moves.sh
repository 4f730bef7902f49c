#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Records that lie in a ring while their block is freed by another thread, and its memory handed out again, are
# attributed to the block of their time.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need gcc
need_machine rings # of page faults
export XDG_CACHE_HOME=$scratch/cache
gcc -g -O1 -pthread -o "$scratch/moves" "$srcdir/tests/e2e/programs/moves.c"
expect_status 0 timeout 60 "$builddir/hpcrun" -o "$scratch/measured" -e FAULTS@ring "$scratch/moves"
expect_text "$scratch/out" '^1$'
expect_status 0 timeout 60 "$builddir/hpcprof" -o "$scratch/database" "$scratch/measured"
expect_status 0 "$builddir/hpcquery" vars --csv --all "$scratch/database"
expect_text "$scratch/out" '^"?first"?,"?heap"?,.*,1048576,1,25[4-7],'
! grep -Eq '^"?second"?,.*,1048576,1,[1-9]' "$scratch/out" || fail "the second block got samples: $(cat "$scratch/out")"
finish
