#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs whose phases each read one field of one variable: the report names variable, field and type of every phase,
# and advises to split the arrays of structures. In C, C++ and Fortran, as users build theirs.
# usage: fields.sh [C-COMPILER FLAGS C++-COMPILER FORTRAN-COMPILER]; without arguments gcc -O2 and its kin, "" for none
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
need python3

programs=$srcdir/tests/e2e/programs
cc=${1-gcc} flags=${2--O2} cxx=${3-g++} fortran=${4-gfortran}

# check NAME [HPCRUN-OPTION]: a measured run of a program against its truth, lines "field share-of-the-variable type" on
# standard input. Every variable listed must have 4 % of all samples at least: its phase is a tenth or more of the run.
check() {
    local name=$1
    shift
    cat >"$scratch/truth"
    rm -rf "$scratch/m" "$scratch/db"
    expect_status 0 "$builddir/hpcrun" "$@" -e datacentric -o "$scratch/m" "$scratch/$name"
    expect_status 0 "$builddir/hpcprof" -o "$scratch/db" "$scratch/m"
    expect_status 0 "$builddir/hpcquery" vars --csv --fields "$scratch/db"
    cp "$scratch/out" "$scratch/fields.csv"
    expect_status 0 "$builddir/hpcquery" vars --json "$scratch/db"
    cp "$scratch/out" "$scratch/vars.json"
    python3 - "$scratch/fields.csv" "$scratch/vars.json" "$scratch/truth" <<'PYTHON' || fail "$name ($cc $flags)"
import collections
import csv
import json
import sys

rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
report = json.load(open(sys.argv[2], encoding="utf-8"))
of_variable = collections.Counter()
for row in rows:
    of_variable[row["variable"]] += float(row["samples"])
total = sum(of_variable.values())
wrong = 0
for line in open(sys.argv[3], encoding="utf-8"):
    field, share, kind = line.rstrip("\n").split(None, 2)
    found = [r for r in rows if r["field"] == field]
    samples = sum(float(r["samples"]) for r in found)
    variable = found[0]["variable"] if found else None
    ok = found and samples >= float(share) / 100 * of_variable[variable] and of_variable[variable] >= 0.04 * total
    ok = ok and {r["type"] for r in found} <= set(kind.split("|"))
    if not ok:
        wrong += 1
        print(f"{field}: {samples:.0f} samples of {of_variable[variable]:.0f} in its variable, of {total:.0f} in all; "
              f"type {[r['type'] for r in found]} instead of {kind}", file=sys.stderr)
if report["typed_percent"] < 60:
    wrong += 1
    print(f"only {report['typed_percent']} % typed", file=sys.stderr)
split = [v for v in report["variables"] if v["variable"] == "particles"]
if not split or "mass, 8 of 64 bytes" not in (split[0]["advice"] or ""):
    wrong += 1
    print(f"particles: the advice is {split and split[0]['advice']}", file=sys.stderr)
if wrong:
    for row in rows[:40]:
        print(" ", row["field"] or row["variable"], row["samples"], row["type"], file=sys.stderr)
sys.exit(wrong > 0)
PYTHON
}

if [ -n "$cc" ] && command -v "$cc" >/dev/null; then
    expect_status 0 "$cc" "$flags" -g -o "$scratch/fields" "$programs/fields.c"
    check fields -ds <<'END'
particles[].mass 90 double
cells[].field.y 90 double
planes->y[] 90 double
values[].u.real 90 double
packed[].middle 90 unsigned int
message->items[].value 90 double
header->(tail)[] 90 double
measured[].z 90 double
opaque[].z 90 double
with_locals()::local[].z 90 double
END
elif [ -n "$cc" ]; then
    skip_part "$cc is not installed"
fi
if [ -n "$cxx" ] && command -v "$cxx" >/dev/null; then
    expect_status 0 "$cxx" "$flags" -g -o "$scratch/fields-cxx" "$programs/fields-cxx.cc"
    check fields-cxx -ds <<'END'
particles[].mass 90 double
counters[].hits 90 long int|long
base->used[] 90 long int|long
cells.data_[].y 90 double
owned[].x 90 double
END
elif [ -n "$cxx" ]; then
    skip_part "$cxx is not installed"
fi
if [ -n "$fortran" ] && command -v "$fortran" >/dev/null; then
    expect_status 0 "$fortran" "$flags" -g -J "$scratch" -o "$scratch/fields-fortran" "$programs/fields-fortran.f90"
    check fields-fortran <<'END'
particles(:)%mass 90 real(kind=8)
grid%energy(:) 90 real(kind=8)
with_local()::local(:) 80 real(kind=8)
block/second(:) 60 real(kind=8)
END
elif [ -n "$fortran" ]; then
    skip_part "$fortran is not installed"
fi
finish
