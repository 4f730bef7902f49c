#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The stress for a minute and a half, and then five times for half a minute.
status=0
bash "$LOCUS_SRCDIR/tests/e2e/stress.sh" 90 || status=$?
bash "$LOCUS_SRCDIR/tests/e2e/stress.sh" 30 5 || status=$?
exit "$status"
