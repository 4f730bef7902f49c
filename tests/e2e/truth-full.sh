#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The bundled programs against their truth: five runs each, all of which must hold, as make check builds them, once more
# at another optimisation level and with another compiler.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3 gcc clang

python3 "$srcdir/tests/e2e/truth.py" --runs 5 || fail "as built"
python3 "$srcdir/tests/e2e/truth.py" --runs 5 --build "gcc -O3" --build "clang -O2" || fail "built otherwise"
finish
