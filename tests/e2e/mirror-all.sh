#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What ordinary programs see of themselves, in all ways of mirror.sh.
exec bash "$LOCUS_SRCDIR/tests/e2e/mirror.sh" all
