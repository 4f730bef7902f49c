#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The step explorer at every instruction, and in loops at a later turn as well: at least 200,000 injections.
set -euo pipefail
export LOCUS_TEST_SECONDS=14400
exec bash "${LOCUS_SRCDIR:?run the tests through make check or ./dev test}/tests/explore/explore.sh" \
    --points 4000 --again 1 --least 200000 "$@"
