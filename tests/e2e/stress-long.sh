#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The stress for a minute, ten times of ten: two at a time, so that it ends within the limit of a test.
status=0
bash "$LOCUS_SRCDIR/tests/e2e/stress.sh" 60 5 &
other=$!
bash "$LOCUS_SRCDIR/tests/e2e/stress.sh" 60 5 || status=$?
wait "$other" || status=$?
exit "$status"
