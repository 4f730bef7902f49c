#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# launcher-failures.sh for up to 60 calls of each function.
exec bash "$LOCUS_SRCDIR/tests/e2e/launcher-failures.sh" 60
