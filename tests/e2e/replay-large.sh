#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The replays of replay.sh with 100000 samples each.
export LOCUS_REPLAY_SAMPLES=100000
exec bash "${LOCUS_SRCDIR:?run the tests through make check or ./dev test}/tests/e2e/replay.sh"
