#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What hpcprof costs on made measurements (1000 profiles of 10,000 nodes and 25 metrics, 5 % of the values not zero, unless
# --profiles says otherwise): its time beside that of reading the inputs from the page cache and writing the database's bytes, memory,
# bytes per value, and what twice the profiles cost. Figures are printed; only the goals of size and memory can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
n_profiles=1000 n_nodes=10000 jobs=$(nproc)
case ${1-} in
    --profiles) n_profiles=$2 ;;
    '') ;;
    *) echo "usage: ${0##*/} [--profiles N]" && exit 2 ;;
esac
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-hpcprof.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# shellcheck source=tests/lib/many-profiles.sh
. "$srcdir/tests/lib/many-profiles.sh"

# seconds COMMAND...: wall-clock time of a command, the best of three.
seconds() {
    python3 - "$@" <<'PYTHON'
import subprocess
import sys
import time

best = 1e9
for _ in range(3):
    begin = time.monotonic()
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
    best = min(best, time.monotonic() - begin)
print(f"{best:.3f}")
PYTHON
}

# measure NAME: one run of hpcprof on all profiles there are; sets time_s, rss_mib and symbols_s.
measure() {
    rm -rf "$scratch/db"
    python3 - "$builddir/hpcprof" "$jobs" "$scratch" >"$scratch/figures" <<'PYTHON'
import re
import resource
import shutil
import subprocess
import sys
import time

best, symbols = 1e9, 0.0
for _ in range(3):
    shutil.rmtree(f"{sys.argv[3]}/db", ignore_errors=True)
    begin = time.monotonic()
    text = subprocess.run([sys.argv[1], "-v", "-j", sys.argv[2], "-o", f"{sys.argv[3]}/db", f"{sys.argv[3]}/measured"],
                          check=True, capture_output=True, text=True).stdout
    took = time.monotonic() - begin
    if took < best:
        best, symbols, phases = took, float(re.search(r"([0-9.]+) s looking up sources", text).group(1)), text
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{best:.3f} {usage.ru_maxrss / 1024:.0f} {symbols:.3f}")
print("".join(f"    {line}\n" for line in phases.splitlines() if " s " in line), file=sys.stderr, end="")
PYTHON
    read -r time_s rss_mib symbols_s <"$scratch/figures"
}

make_module
make_profiles 0 "$n_profiles" "$n_nodes"
inputs=$(du -sb "$scratch/measured" | cut -f1)
cat "$scratch"/measured/*.hpcrun >/dev/null
measure first
database=$(du -sb "$scratch/db" | cut -f1)
once_s=$time_s once_mib=$rss_mib once_symbols_s=$symbols_s
# shellcheck disable=SC2016
base_s=$(seconds bash -c 'cat "$1"/measured/*.hpcrun >/dev/null; head -c "$2" /dev/zero >"$1/bytes"; rm "$1/bytes"' \
    base "$scratch" "$database")
python3 - "$srcdir/tests/lib" "$scratch/db" "$inputs" "$database" "$once_s" "$once_symbols_s" "$base_s" "$once_mib" <<'PYTHON'
import struct
import sys

inputs, database, took, symbols, base, mib = map(float, sys.argv[3:])
with open(sys.argv[2] + "/profile.db", "rb") as f:
    place, n, stride = struct.unpack("<QIB", f.read(64)[48:61])
    f.seek(place)
    rows = [struct.unpack_from("<Q", f.read(stride))[0] for _ in range(n)]
with open(sys.argv[2] + "/cct.db", "rb") as f:
    n_contexts = struct.unpack_from("<I", f.read(64), 40)[0]
n_values = sum(rows[1:])
per_value = (database - 100 * n_contexts) / n_values
print(f"profiles {n - 1}, contexts {n_contexts}, stored values {n_values}")
print(f"inputs {inputs / 2**20:.0f} MiB, database {database / 2**20:.0f} MiB: {database / inputs:.2f} of them (limit 0.6)")
print(f"{per_value:.1f} bytes per stored value beside 100 per context (limit 25)")
print(f"cat and write {base:.2f} s, hpcprof {took:.2f} s, of it symbols {symbols:.2f} s: "
      f"{(took - symbols) / base:.2f} times without them (limit 5, goal 2.5)")
print(f"peak memory {mib:.0f} MiB (limit 512 and twice the merged tree)")
sys.exit(database / inputs > 0.6 or per_value > 25 or mib > 512 + 2 * n_contexts * 25 * 16 / 2**20)
PYTHON
make_profiles "$n_profiles" "$n_profiles" "$n_nodes"
cat "$scratch"/measured/*.hpcrun >/dev/null
measure second
python3 - "$once_s" "$time_s" "$once_mib" "$rss_mib" <<'PYTHON'
import sys

once, twice, once_mib, twice_mib = map(float, sys.argv[1:])
print(f"twice the profiles: {twice / once:.2f} times the time (limit 2.1), "
      f"{twice_mib / once_mib:.2f} times the memory ({twice_mib:.0f} instead of {once_mib:.0f} MiB; limit 1.05)")
sys.exit(twice_mib > 1.05 * once_mib)
PYTHON
