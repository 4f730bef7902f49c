#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The step explorer at every instruction where an injection is cheap, of which there are at least 200,000, and at many
# where each costs a process or a new start of the program.
explore=${LOCUS_SRCDIR:?run the tests through make check or ./dev test}/tests/explore/explore.sh
status=0
bash "$explore" --points 8000 --inject malloc,cancel,sample,stop,beside --least 200000 || status=$?
[ "$status" = 0 ] || exit "$status"
bash "$explore" --points 160 --inject fork,longjmp,throw,exit,pthread-exit,fork-beside,exit-beside,kill
