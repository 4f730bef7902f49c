#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What frames cost: a made database of about 1e5 nodes and 64 profiles is opened and worked on, in seconds and as multiples of
# reading the database's bytes; where LOCUS_HATCHET_PYTHON names an interpreter with Hatchet, beside that. Then operations on made trees of
# 1e3 to 1e6 nodes: time per node, as multiples of that of the smallest one. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-frame.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make -s -C "$builddir" tests/bench/frame-bench

# shellcheck source=tests/lib/many-profiles.sh
. "$srcdir/tests/lib/many-profiles.sh"
make_module
python3 "$srcdir/tests/lib/make-profiles.py" --module "$scratch/module.so" --first 0 --profiles 64 --nodes "${NODES:-120000}" \
    --metrics 2 --density 0.2 "$scratch/measured" >/dev/null
"$builddir/hpcprof" -q -o "$scratch/db" "$scratch/measured"
cat "$scratch"/db/*.db >/dev/null
"$builddir/tests/bench/frame-bench" "$scratch/db" >"$scratch/ours"

cat >"$scratch/hatchet.py" <<'END'
import sys
import time

import hatchet


def timed(name, run):
    begin = time.monotonic()
    made = run()
    print(f"{name}\t{time.monotonic() - begin:.6f}", flush=True)
    return made


gf = timed("open and first tree", lambda: hatchet.GraphFrame.from_hpctoolkit_latest(sys.argv[1]))
timed("filter and squash", lambda: gf.filter(lambda row: row.name[0].depth != 3, squash=True))
timed("query and squash", lambda: gf.filter([{"name": "f.*[02468]"}, "*"], squash=True))
timed("add", lambda: gf.deepcopy().add(gf.deepcopy()))
END
if [ -n "${LOCUS_HATCHET_PYTHON:-}" ]; then
    timeout 1800 "$LOCUS_HATCHET_PYTHON" "$scratch/hatchet.py" "$scratch/db" >"$scratch/theirs" || echo "Hatchet failed"
fi

for n in 1000 10000 100000 1000000; do
    "$builddir/tests/bench/frame-bench" --nodes "$n" 4 >"$scratch/nodes-$n"
done

python3 - "$scratch" <<'PYTHON'
import pathlib
import sys
import time

scratch = pathlib.Path(sys.argv[1])


def read(name):
    path = scratch / name
    return {k: float(v) for k, v in (line.split("\t") for line in path.read_text().splitlines())} if path.exists() else {}


def reading():
    begin = time.monotonic()
    for path in (scratch / "db").glob("*.db"):
        path.read_bytes()
    return time.monotonic() - begin


base = min(reading() for _ in range(3))
ours, theirs = read("ours"), read("theirs")
n_bytes = sum(path.stat().st_size for path in (scratch / "db").glob("*.db"))
print(f"{ours.pop('nodes'):.0f} nodes, 64 profiles, {n_bytes / 2**20:.0f} MiB, which are read in {base:.3f} s; "
      f"peak memory {ours.pop('peak MiB'):.0f} MiB")
goals = {"open and first tree": 0.3}
for name, took in ours.items():
    hatchet = f", Hatchet {theirs[name]:.2f} s: {theirs[name] / took:.0f} times" if name in theirs else ""
    print(f"{name}: {took:.3f} s (goal {goals.get(name, 0.15)}), {took / base:.1f} times reading{hatchet}")
sizes = [1000, 10000, 100000, 1000000]
made = [read(f"nodes-{n}") for n in sizes]
print("time per node of 1e3, 1e4, 1e5, 1e6 nodes, as multiples of the first (4 profiles):")
for name in made[0]:
    if name != "peak MiB":
        each = [m[name] / n for m, n in zip(made, sizes)]
        print(f"  {name}: {each[0] * 1e9:.0f} ns: " + " ".join(f"{e / each[0]:.2f}" for e in each))
PYTHON
