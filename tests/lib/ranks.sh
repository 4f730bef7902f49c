# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# For tests of MPI programs that have sourced common.sh: building ranks.c and judging its measurements.

# build_ranks MPI: ranks.c as $scratch/ranks.MPI; false when the compiler of that MPI is missing.
build_ranks() {
    command -v "mpicc.$1" >/dev/null || return 1
    "mpicc.$1" -O2 -g -I"$srcdir/tests/e2e" "$srcdir/tests/e2e/programs/ranks.c" -o "$scratch/ranks.$1"
}

# expect_ranks DATABASE RANK...: these are its processes, in order.
expect_ranks() {
    local database=$1 ranks
    shift
    ranks=$("$builddir/hpcquery" export json "$database" | python3 -c 'import json, sys
for process in json.load(sys.stdin)["processes"]:
    print(process["rank"])' | xargs)
    [ "$ranks" = "$*" ] || fail "$database: ranks $ranks instead of $*"
}

# expect_favourites DIR RANK...: in a rank's own profiles its array has most of the heap's samples: 70 in 100 by
# construction.
expect_favourites() {
    local names=(north east south west) dir=$1 rank
    shift
    for rank in "$@"; do
        "$builddir/hpcprof" -o "$dir.db-$rank" "$dir"/ranks.*-00000"$rank"-*.hpcrun >/dev/null ||
            fail "$dir: rank $rank cannot be read"
        "$builddir/hpcquery" vars --csv "$dir.db-$rank" >"$dir.csv-$rank"
        python3 - "$dir.csv-$rank" "${names[$rank]}" <<'CODE' || fail "$dir: the shares of rank $rank are wrong"
import csv, sys
names = ["north", "east", "south", "west"]
rows = {row["variable"]: float(row["share"]) for row in csv.DictReader(open(sys.argv[1], encoding="utf-8"))
        if row["class"] == "heap"}
whole = sum(rows.get(name, 0) for name in names)
parts = {name: 100 * rows.get(name, 0) / whole if whole else 0 for name in names}
print(" ".join(f"{name} {part:.0f} %" for name, part in parts.items()))
if not all(abs(parts[name] - (70 if name == sys.argv[2] else 10)) < 8 for name in names):
    sys.exit(f"70 % of {sys.argv[2]} and 10 % of each other array were due")
CODE
    done
}

# expect_measured DIR N: one database of N ranks with the right arrays, every sample with a fate.
expect_measured() {
    "$builddir/hpcprof" -o "$1.db" "$1" >"$1.said" 2>&1 || fail "$1 cannot be read: $(cat "$1.said")"
    # shellcheck disable=SC2046 # words
    expect_ranks "$1.db" $(seq 0 $(($2 - 1)))
    # shellcheck disable=SC2046 # words
    expect_favourites "$1" $(seq 0 $(($2 - 1)))
}
