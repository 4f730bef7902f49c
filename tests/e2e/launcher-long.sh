#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# launcher-growth.sh, launcher-bounds.sh and launcher-many.sh at the size of real jobs: two minutes without a call of any
# library, twenty million samples and their trace in little memory, and 128 ranks that start at once.
status=0
LOCUS_GROWTH_SECONDS=120 bash "$LOCUS_SRCDIR/tests/e2e/launcher-growth.sh" || status=$?
LOCUS_BOUNDS_FAULTS=10000000 bash "$LOCUS_SRCDIR/tests/e2e/launcher-bounds.sh" || status=$?
LOCUS_RANKS=128 bash "$LOCUS_SRCDIR/tests/e2e/launcher-many.sh" || status=$?
LOCUS_RANKS=128 bash "$LOCUS_SRCDIR/tests/e2e/launcher-local.sh" || status=$?
exit "$status"
