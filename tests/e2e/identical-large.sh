#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same bytes with and without hpcrun, on large inputs.
exec bash "$LOCUS_SRCDIR/tests/e2e/identical.sh" 8
