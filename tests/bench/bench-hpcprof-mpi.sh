#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a second rank brings hpcprof-mpi, each with one thread, on made measurements (1000 profiles of 10,000 nodes and 25
# metrics unless --profiles says otherwise): elapsed time of one rank and of two, taken in turns, phase by phase as the
# leader sees them, and the memory of the larger rank. Goal: two ranks are 1.6 times as fast. Figures are printed; only
# other bytes can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
n_profiles=1000 rounds=3
case ${1-} in
    --profiles) n_profiles=$2 ;;
    '') ;;
    *) echo "usage: ${0##*/} [--profiles N]" && exit 2 ;;
esac
[ -x "$builddir/hpcprof-mpi" ] || { echo "SKIP: hpcprof-mpi has not been built" && exit 0; }
case $(ldd "$builddir/hpcprof-mpi") in
    *libmpich*) launch=mpiexec.mpich ;;
    *) launch="mpirun.openmpi --oversubscribe" ;;
esac
command -v "${launch%% *}" >/dev/null || launch=mpiexec
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-hpcprof-mpi.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/lib/many-profiles.sh
. "$srcdir/tests/lib/many-profiles.sh"
make_module
make_profiles 0 "$n_profiles" 10000
cat "$scratch"/measured/*.hpcrun >/dev/null

python3 - "$launch" "$builddir/hpcprof-mpi" "$scratch" "$rounds" <<'PYTHON'
import os
import re
import shutil
import subprocess
import sys
import time

launch, tool, scratch, rounds = sys.argv[1].split(), sys.argv[2], sys.argv[3], int(sys.argv[4])
best = {}
for _ in range(rounds):
    for n in (1, 2):
        shutil.rmtree(f"{scratch}/db-{n}", ignore_errors=True)
        command = [*launch, "-n", str(n), tool, "-v", "-j1", "-o", f"{scratch}/db-{n}", f"{scratch}/measured"]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        took = time.monotonic() - begin
        if status:
            sys.exit(f"{' '.join(command)} has failed")
        if n not in best or took < best[n][0]:
            phases = {name: float(s) for s, name in re.findall(r"^ *([0-9.]+) s (.+)$", text, re.M)}
            best[n] = took, phases, usage.ru_maxrss / 1024
print(f"{'phase':32} one rank      two ratio")
rows = [(name, best[1][1].get(name, 0.0), best[2][1].get(name, 0.0)) for name in {**best[2][1], **best[1][1]}]
own = [sum(best[n][1].values()) for n in (1, 2)]
rows.append(("all phases", *own))
rows.append(("the launcher's time", *(best[n][0] - sum(best[n][1].values()) for n in (1, 2))))
for name, one, two in rows:
    print(f"{name:32} {one:6.3f} s {two:6.3f} s {one / two if two else 0:5.2f}")
print(f"two ranks: {own[0] / own[1]:.2f} times as fast (goal 1.6), "
      f"{best[1][0] / best[2][0]:.2f} times with the launcher; "
      f"memory of the larger rank {best[2][2]:.0f} MiB instead of {best[1][2]:.0f}")
PYTHON
diff -r "$scratch/db-1" "$scratch/db-2" && echo "the databases are the same, byte for byte"
