#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the reader and the import of files of perf: fuzz-perf.sh SECONDS DIRECTORY, see fuzz-common.sh.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin perf "$1" "$2"
fuzz_build

python3 - "$srcdir/tests/lib" "$corpus" <<'END'
import pathlib
import sys
sys.path.insert(0, sys.argv[1])
import perfdata as p
for name, order in (("little", "<"), ("big", ">")):
    loads = p.IDENTIFIER | p.IP | p.TID | p.TIME | p.ADDR | p.CPU | p.CALLCHAIN | p.WEIGHT_STRUCT | p.DATA_SRC
    file = p.File(order, [("mem-loads", loads, 100), ("page-faults", loads | p.PERIOD, 0)])
    file.comm(10, 5, 5, "app", is_exec=True)
    file.mmap(11, 5, 0x400000, 0x4000, 0, "/bin/true")
    file.mmap(12, 5, 0x10000, 0x9000, 0, "//anon", protection=0)
    file.mmap(13, 5, 0x11000, 0x8000, 0, "//anon", protection=3)
    file.fork(14, 5, 6, 5, 5)
    for i in range(6):
        file.sample(i % 2, 20 + i, 5, 5 + i % 2, 0x401000, addr=0x11000 + 4096 * i, period=3 + i,
                    chain=(p.CONTEXT_USER, 0x401000, 0x402000), weight=(300, 1, 2), data_src=0x2 | 2 << 5 | 1 << 33)
    file.lost(40, 0, 5, 6, 3)
    file.throttle(41, 1, 5, 5)
    pathlib.Path(sys.argv[2], f"seed-{name}").write_bytes(file.bytes())
    pathlib.Path(sys.argv[2], f"seed-{name}-pipe").write_bytes(file.piped())
END
if command -v perf >/dev/null; then
    perf record -q -B -N -z -d -e page-faults -o "$corpus/seed-compressed" true >/dev/null 2>&1 || true
    perf record -q -B -N --intr-regs=ax,ip -g -e cpu-clock -c 100000 -o "$corpus/seed-registers" true >/dev/null 2>&1 ||
        true
fi
fuzz_run -max_len=16000
finish
