#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory that comes through layers of functions (as hypre's, in C) or through allocator objects (as Umpire's, in C++) is
# named by who asked for it, at three levels of optimisation.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cxx=${CXX:-g++}
cd "$scratch"

# check LANGUAGE COMPILER NAME:BYTES...: blocks of these names and sizes, and no others of the program's.
check() {
    local language=$1 compiler=$2 level
    shift 2
    for level in -O0 -O1 -O2; do
        "$compiler" $level -g -o "wrappers$language" "$srcdir/tests/e2e/wrappers.$language"
        rm -rf m d
        expect_status 0 "$builddir/hpcrun" -e MEMLEAK -o m "./wrappers$language"
        expect_status 0 "$builddir/hpcprof" -o d m
        expect_status 0 "$builddir/hpcquery" leaks --all --csv d
        python3 - out "wrappers.$language" "$@" <<'PYTHON' || fail "wrappers.$language $level"
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1], encoding="utf-8")) if sys.argv[2] in r["path"]]
found = sorted(f"{r['variable']}:{r['allocated_bytes']}" for r in rows)
assert found == sorted(sys.argv[3:]), found
assert not [r for r in rows if "hypre_" in r["alloc_site"] or "umpire" in r["alloc_site"]], rows
PYTHON
    done
}

check c "$CC" matrix:3200 'matrix->data:320000' 'matrix->i:160000' x_data:320000 rhs:320000 rhs:640000
if command -v "$cxx" >/dev/null; then
    check cc "$cxx" mesh.density:320000 mesh.energy:320000 pressure:320000 velocity:320000
else
    skip_part "no C++ compiler"
fi
finish
