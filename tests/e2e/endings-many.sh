#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# endings.sh, each way two thousand times.
exec bash "$LOCUS_SRCDIR/tests/e2e/endings.sh" 2000
