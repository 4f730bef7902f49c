#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A hundred thousand threads, ten thousand of them alive at once.
exec bash "$LOCUS_SRCDIR/tests/e2e/many-threads.sh" 10000 10
