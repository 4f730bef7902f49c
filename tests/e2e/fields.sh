#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs whose phases each read one field of one variable: the report names variable, field and type of every phase,
# and advises to split the arrays of structures. In C, C++ and Fortran, as users build theirs.
# usage: fields.sh [C-COMPILER FLAGS C++-COMPILER FORTRAN-COMPILER]; without arguments gcc -O2 and its kin, "" for none
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3

programs=$srcdir/tests/e2e/programs
cc=${1-gcc} flags=${2--O2} cxx=${3-g++} fortran=${4-gfortran}

# check NAME SOURCE [HPCRUN-OPTION]: a measured run of a program against its truth, lines "field class bytes-of-the-field
# offset-in-the-element share-of-the-variable type" on standard input. All other samples of the variable, but one, may be
# no more than the rest of the share. Every variable listed must have 2 % of all samples at least: its phase is more of
# the run. Nearly all of them lie in a loop of SOURCE whose first and last lines are those of the phases.
check() {
    local name=$1 source=$2
    shift 2
    cat >"$scratch/truth"
    rm -rf "$scratch/m" "$scratch/db"
    expect_status 0 "$builddir/hpcrun" "$@" -e datacentric -o "$scratch/m" "$scratch/$name"
    expect_status 0 "$builddir/hpcprof" -o "$scratch/db" "$scratch/m"
    expect_status 0 "$builddir/hpcquery" vars --csv --fields "$scratch/db"
    cp "$scratch/out" "$scratch/fields.csv"
    expect_status 0 "$builddir/hpcquery" vars --json "$scratch/db"
    cp "$scratch/out" "$scratch/vars.json"
    python3 - "$scratch/fields.csv" "$scratch/vars.json" "$scratch/truth" "$programs/$source" <<'PYTHON' || fail "$name ($cc $flags)"
import collections
import csv
import json
import re
import sys

rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
report = json.load(open(sys.argv[2], encoding="utf-8"))
source = open(sys.argv[4], encoding="utf-8").read().splitlines()
of_variable = collections.Counter()
for row in rows:
    of_variable[row["variable"]] += float(row["samples"])
total = sum(of_variable.values())
wrong = []
for line in open(sys.argv[3], encoding="utf-8"):
    field, kind, size, offset, share, types = line.rstrip("\n").split(None, 5)
    found = [r for r in rows if r["field"] == field]
    samples = sum(float(r["samples"]) for r in found)
    variable = found[0]["variable"] if found else None
    rest = of_variable[variable] - samples
    if not found or rest > max(1, (1 - float(share) / 100) * of_variable[variable]) or of_variable[variable] < 0.02 * total:
        wrong.append(f"{field}: {samples:.0f} samples of {of_variable[variable]:.0f} in its variable, of {total:.0f} in all")
    told = {(r["class"], r["size_bytes"], r["offset_bytes"]) for r in found}
    if found and (told != {(kind, size, offset)} or not {r["type"] for r in found} <= set(types.split("|"))):
        wrong.append(f"{field}: {told} of type {[r['type'] for r in found]} instead of {kind}, {size}, {offset}, {types}")
    # the loop: of the WALK that is one line in C, of the turns in the others, or the one around it where the compiler has
    # both begin with the same instruction
    in_loops = 0
    lines = [x for v in report["variables"] if v["variable"] == variable for x in v["lines"]]
    for loop in (x["loop"] and (x["loop"], x["value"]) for x in lines):
        if loop and re.search(r"WALK\(|for \(int turn|do turn|while \(kernel_now", source[loop[0]["line"] - 1]) and \
                re.search(r"WALK\(|\bi = |end do", source[loop[0]["end_line"] - 1]) and \
                loop[0]["end_line"] - loop[0]["line"] <= 3:
            in_loops += loop[1]
    if found and in_loops < 0.9 * sum(x["value"] for x in lines):
        wrong.append(f"{field}: not in the loop of its phase: {lines}")
if report["typed_percent"] < 60:
    wrong.append(f"only {report['typed_percent']} % typed")
split = [v for v in report["variables"] if v["variable"] == "particles"]
if not split or "mass, 8 of 64 bytes" not in (split[0]["advice"] or ""):
    wrong.append(f"particles: the advice is {split and split[0]['advice']}")
if wrong:
    print("\n".join(wrong), file=sys.stderr)
    for row in rows[:40]:
        print(" ", row["field"] or row["variable"], row["samples"], row["type"], file=sys.stderr)
sys.exit(bool(wrong))
PYTHON
}

if [ -n "$cc" ] && command -v "$cc" >/dev/null; then
    expect_status 0 "$cc" "$flags" -g -o "$scratch/fields" "$programs/fields.c"
    check fields fields.c -ds <<'END'
particles[].mass heap 8 48 98 double
cells[].field.y static 8 16 98 double
planes->y[] heap 262144 262144 98 double
fixed.z[] static 262144 524288 98 double
values[].u.real heap 8 8 98 double
counts[].u.whole static 8 8 98 long int|long
packed[].middle heap 4 0 98 unsigned int
low_bits[].low static 4 0 98 unsigned int
high_bits[].high static 4 0 98 unsigned int
matrices[].cells[][] heap 120 8 98 double
message->items[].value heap 8 16 98 double
header->(tail)[] heap 8 0 98 double
measured[].z heap 8 16 98 double
opaque[].z heap 8 16 98 double
with_locals()::local[].z stack 8 16 98 double
END
elif [ -n "$cc" ]; then
    skip_part "$cc is not installed"
fi
if [ -n "$cxx" ] && command -v "$cxx" >/dev/null; then
    expect_status 0 "$cxx" "$flags" -g -o "$scratch/fields-cxx" "$programs/fields-cxx.cc"
    check fields-cxx fields-cxx.cc -ds <<'END'
particles[].mass heap 8 48 98 double
counters[].hits heap 8 8 98 long int|long
base->used[] heap 262144 786448 98 long int|long
cells[].y heap 8 8 98 double
owned[].x heap 8 0 98 double
END
elif [ -n "$cxx" ]; then
    skip_part "$cxx is not installed"
fi
if [ -n "$fortran" ] && command -v "$fortran" >/dev/null; then
    expect_status 0 "$fortran" "$flags" -g -J "$scratch" -o "$scratch/fields-fortran" "$programs/fields-fortran.f90"
    check fields-fortran fields-fortran.f90 <<'END'
particles(:)%mass heap 8 48 90 real(kind=8)
grid%energy(:) heap 8 0 98 real(kind=8)
with_local()::local(:) stack 262144 0 98 real(kind=8)
block/second(:) static 262144 262144 90 real(kind=8)
END
elif [ -n "$fortran" ]; then
    skip_part "$fortran is not installed"
fi
finish
