#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The fields of the programs of fields.sh, built by other compilers and at other levels of optimisation.
"$LOCUS_SRCDIR/tests/e2e/fields.sh" clang -O2 clang++ "" || exit
exec "$LOCUS_SRCDIR/tests/e2e/fields.sh" gcc -O3 g++ gfortran
