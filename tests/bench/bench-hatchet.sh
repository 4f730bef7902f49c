#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What users of Hatchet do with frames, in Python, by ours and by the Hatchet of the interpreter that LOCUS_HATCHET_PYTHON names: the
# same statements about the same literals of 22 and of NODES (1000) nodes, and a database of 16 profiles of NODES_HATCHET (500) nodes in
# the older form, which both read: of more nodes Hatchet takes many minutes. Seconds of CPU time of each operation, its values computed,
# and how many times as fast ours is. Where no Hatchet is named, ours alone. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-hatchet.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
if ! /usr/bin/python3 -c 'import numpy, pandas' 2>/dev/null; then
    echo "SKIP: no pandas"
    exit 77
fi

# shellcheck source=tests/lib/many-profiles.sh
. "$srcdir/tests/lib/many-profiles.sh"
make_module
python3 "$srcdir/tests/lib/make-profiles.py" --module "$scratch/module.so" --first 0 --profiles 16 --nodes "${NODES_HATCHET:-500}" \
    --metrics 2 --density 0.2 "$scratch/measured" >/dev/null
"$builddir/hpcprof" -q --xml "$scratch/xml" -o "$scratch/db" "$scratch/measured"

for n in 22 "${NODES:-1000}"; do
    of=()
    [ "$n" = 22 ] || of=("$scratch/xml")
    LOCUS_LIBRARY=$builddir/.libs/liblocus.so PYTHONPATH=$srcdir/python \
        /usr/bin/python3 "$srcdir/tests/bench/hatchet-ops.py" locus "$n" "${of[@]}" >"$scratch/ours-$n"
    if [ -n "${LOCUS_HATCHET_PYTHON:-}" ]; then
        timeout 3600 "$LOCUS_HATCHET_PYTHON" "$srcdir/tests/bench/hatchet-ops.py" hatchet "$n" "${of[@]}" >"$scratch/theirs-$n" || true
    fi
    python3 - "$scratch" "$n" <<'PYTHON'
import pathlib
import sys


def read(name):
    path = pathlib.Path(sys.argv[1]) / f"{name}-{sys.argv[2]}"
    return {k: float(v) for k, v in (line.split("\t") for line in path.read_text().splitlines())} if path.exists() else {}


ours, theirs = read("ours"), read("theirs")
print(f"{sys.argv[2]} nodes, us of CPU time" + (", Hatchet's, and times as fast (goal 40)" if theirs else ""))
for name, took in ours.items():
    print(f"  {name}: {took * 1e6:.0f}" + (f" {theirs[name] * 1e6:.0f} {theirs[name] / took:.1f}" if name in theirs else ""))
PYTHON
done
