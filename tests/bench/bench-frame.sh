#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What frames cost: a made database of about 1e5 nodes and 64 profiles is opened and worked on, in seconds and as multiples of
# reading the database's bytes. Where LOCUS_HATCHET_PYTHON names an interpreter with Hatchet, a smaller one of 16 profiles (NODES_HATCHET
# nodes), which it can handle, is given to both. A file of callgrind is read beside callgrind_annotate. Then operations on made trees of
# 1e3 to 1e6 nodes: time per node, as multiples of that of the smallest one. And an answer of 1e6 rows: how long who asks waits for
# the first of them. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-frame.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make -s -C "$builddir" tests/bench/frame-bench tests/bench/table-bench

# shellcheck source=tests/lib/many-profiles.sh
. "$srcdir/tests/lib/many-profiles.sh"
make_module

# make_database NAME NODES PROFILES
make_database() {
    python3 "$srcdir/tests/lib/make-profiles.py" --module "$scratch/module.so" --first 0 --profiles "$3" --nodes "$2" \
        --metrics 2 --density 0.2 "$scratch/$1-measured" >/dev/null
    "$builddir/hpcprof" -q -o "$scratch/$1" "$scratch/$1-measured"
    cat "$scratch/$1"/*.db >/dev/null
}

make_database db "${NODES:-120000}" 64
"$builddir/tests/bench/frame-bench" "$scratch/db" >"$scratch/ours"

cat >"$scratch/to-pandas.py" <<'END'
import sys
import time

import locus


def memory():
    """Bytes of our own that are there, bytes of mapped files, which the system may take back, and the peak of both."""
    text = open("/proc/self/status", encoding="ascii").read()
    return [int(text.split(name + ":")[1].split()[0]) * 1024 for name in ("RssAnon", "RssFile", "VmHWM")]


import pandas  # noqa: E402, F401  # not counted

frame = locus.Frame.open(sys.argv[1])
frame.values()
before = memory()[0]
open("/proc/self/clear_refs", "w", encoding="ascii").write("5")  # the peak begins anew
begin = time.process_time()
nodes, profiles, values = frame.cells()
alone = time.process_time() - begin
del nodes, profiles, values
begin = time.process_time()
table = frame.to_pandas(by_profile=True)
took = time.process_time() - begin
_, mapped, peak = memory()
size = sum(table[name].memory_usage(index=False) for name in table) + sum(code.nbytes for code in table.index.codes)
print(f"to_pandas of {len(table)} rows of {len(table.columns)} columns: {took:.2f} s of CPU time (goal 2), {took / alone:.1f} x the cells of one "
      f"column; peak {(peak - mapped - before) / size:.2f} x its arrays (goal 1.5), and {mapped >> 20} MiB of mapped files")
END
pandas() { LOCUS_LIBRARY=$builddir/.libs/liblocus.so PYTHONPATH=$srcdir/python /usr/bin/python3 "$scratch/to-pandas.py" "$scratch/db"; }
if /usr/bin/python3 -c 'import pandas' 2>/dev/null; then pandas; else echo "to_pandas: no pandas"; fi

cat >"$scratch/theirs.py" <<'END'
import sys
import time

import hatchet


def timed(name, run):
    begin = time.monotonic()
    made = run()
    print(f"{name}\t{time.monotonic() - begin:.6f}", flush=True)
    return made


def opened():
    graph_frame = getattr(hatchet.GraphFrame, "from_hpctoolkit_latest", hatchet.GraphFrame.from_hpctoolkit)(sys.argv[1])
    graph_frame.drop_index_levels(sum)  # filter cannot do with ranks
    return graph_frame


gf = timed("open and first tree", opened)
timed("filter and squash", lambda: gf.filter(lambda row: "1" not in row["name"], num_procs=1))
timed("query and squash", lambda: gf.filter([{"name": ".*[02468]"}, "*"]))
timed("add", lambda: gf.deepcopy().add(gf.deepcopy()))
END
if [ -n "${LOCUS_HATCHET_PYTHON:-}" ]; then
    make_database db-hatchet "${NODES_HATCHET:-2000}" 16
    "$builddir/tests/bench/frame-bench" "$scratch/db-hatchet" >"$scratch/ours-hatchet"
    timeout 1800 "$LOCUS_HATCHET_PYTHON" "$scratch/theirs.py" "$scratch/db-hatchet" >"$scratch/theirs" || echo "Hatchet failed"
fi

# seconds COMMAND...: elapsed, the best of three.
seconds() {
    python3 -c 'import subprocess, sys, time
def once():
    begin = time.monotonic()
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin
print(f"{min(once() for _ in range(3)):.4f}")' "$@"
}

python3 - >"$scratch/callgrind.out" <<'END'
print("events: Ir Dr")
for f in range(4000):
    print(f"fl=(1) a.c\nfn=({f + 1}) function_{f}")
    for line in range(60):
        print(f"{line + 1} {line % 7 + 1} {line % 3}")
    for k in range(1, 9):
        if f * 2 + k < 4000:
            print(f"cfn=({f * 2 + k + 1}) function_{f * 2 + k}\ncalls=3 1\n{k} {4000 - f} {k}")
END
echo "callgrind file of $(($(wc -c <"$scratch/callgrind.out") >> 20)) MiB: a flat table takes hpcquery" \
    "$(seconds "$builddir/hpcquery" flat : table --top 20 "$scratch/callgrind.out") s"
if command -v callgrind_annotate >/dev/null; then
    echo "  and callgrind_annotate $(seconds callgrind_annotate "$scratch/callgrind.out") s"
fi
for form in folded flamegraph; do
    echo "export $form: $(seconds "$builddir/hpcquery" export "$form" -o "$scratch/out" "$scratch/db") s (goal of folded 0.2)"
done

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
ours, beside, theirs = read("ours"), read("ours-hatchet"), read("theirs")
n_bytes = sum(path.stat().st_size for path in (scratch / "db").glob("*.db"))
print(f"{ours.pop('nodes'):.0f} nodes, 64 profiles, {n_bytes / 2**20:.0f} MiB, which are read in {base:.3f} s; "
      f"peak memory {ours.pop('peak MiB'):.0f} MiB")
goals = {"open and first tree": 0.3}
for name, took in ours.items():
    print(f"{name}: {took:.3f} s (goal {goals.get(name, 0.15)}), {took / base:.1f} times reading")
if beside:
    print(f"{beside['nodes']:.0f} nodes, 16 profiles, beside Hatchet (goal: 100 times as fast):")
for name in theirs:
    print(f"  {name}: {beside[name]:.4f} s, Hatchet {theirs[name]:.2f} s: {theirs[name] / beside[name]:.0f} times")
sizes = [1000, 10000, 100000, 1000000]
made = [read(f"nodes-{n}") for n in sizes]
print("time per node of 1e3, 1e4, 1e5, 1e6 nodes, as multiples of the first (4 profiles):")
for name in made[0]:
    if name != "peak MiB":
        each = [m[name] / n for m, n in zip(made, sizes)]
        print(f"  {name}: {each[0] * 1e9:.0f} ns: " + " ".join(f"{e / each[0]:.2f}" for e in each))
PYTHON
"$builddir/tests/bench/table-bench" 1000000
