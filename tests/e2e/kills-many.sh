#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# kills.py at 200 and 50 random moments.
exec python3 "$LOCUS_SRCDIR/tests/e2e/kills.py" --alone 200 --together 50
