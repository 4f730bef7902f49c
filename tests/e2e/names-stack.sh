#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Slots of a stack frame are named by what the code puts there, where debug information is silent: a parameter by its name,
# values that the compiler puts aside as such. What remains is "stack of" the function: what calls and returns themselves
# take. Arrays have their names where the stack pointer is realigned and where their length varies, too. Steps of hpcquery
# have the same local variables as the table. Each metric goes to the local variables that its own samples fell on.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "the code of other machines is not read"
command -v gcc >/dev/null || skip "gcc is not installed"
need python3
cd "$scratch"

measure() {
    rm -rf m db
    expect_status 0 "$builddir/hpcrun" -o m ./program
    expect_status 0 "$builddir/hpcprof" -o db m
    expect_status 0 "$builddir/hpcquery" vars --csv db
}

for level in -O2 -O3; do
    gcc -g "$level" -o program "$srcdir/tests/e2e/programs/names-stack.c"
    measure
    python3 - "$scratch/out" <<'PYTHON' || fail "gcc $level"
import csv
import sys

shares = {}
for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")):
    shares[row["variable"]] = shares.get(row["variable"], 0) + float(row["share"])
least = {"fill()::seed": 8, "spill slot in mix": 3}
wrong = [f"{name} has {shares.get(name, 0):.1f} %" for name, share in least.items() if shares.get(name, 0) < share]
wrong += [f"{name} has {share:.1f} %" for name, share in shares.items() if name.startswith("stack of") and share > 5]
print("\n".join(wrong))
sys.exit(bool(wrong))
PYTHON
done

for how in "gcc -O0" "gcc -O2" "gcc -O3 -march=native" "clang -O2" "clang -O3 -march=native"; do
    read -ra compile <<<"$how"
    command -v "${compile[0]}" >/dev/null || continue
    "${compile[@]}" -g -o program "$srcdir/tests/e2e/programs/names-frames.c"
    measure
    for name in plain aligned itself variable recursive; do
        grep -q "^$name()::in_$name,stack," out || fail "$how: in_$name has no row"
    done
    awk -F, -v how="$how" '/^stack of/ && $7 > 10 { print how ": " $1 " has " $7 " %"; wrong = 1 } END { exit wrong }' out ||
        fail "$how: arrays without name"
    cp out vars.csv
    expect_status 0 "$builddir/hpcquery" group variable : csv db
    python3 - vars.csv out <<'PYTHON' || fail "$how: steps have other local variables than the table"
import csv
import re
import sys

table, steps = {}, {}
for path, sums, column in ((sys.argv[1], table, "value"), (sys.argv[2], steps, "EADDR (usec)")):
    for row in csv.DictReader(open(path, encoding="utf-8")):
        if row["class"] == "stack":
            sums[row["variable"]] = sums.get(row["variable"], 0) + float(row[column] or 0)
whole, least = sum(table.values()), 0.02 * sum(table.values())
wrong = [f"{name}: {steps.get(name, 0):g} in steps, {value:g} in the table" for name, value in table.items()
         if abs(steps.get(name, 0) - value) > least]
print("\n".join(wrong))
# A sample in a frame of malloc's is the allocator's in the table, and a slot of that frame in steps.
slots = re.compile(r"(spill slot in|stack of) (((__libc_|_int_|sys)?malloc|tcache_init)(\.part\.\d+)?)$")
others = {name: value for name, value in steps.items() if name not in table and value and not slots.match(name)}
print(f"not in the table: {others}")
all_of_steps = sum(steps.get(name, 0) for name in table) + sum(others.values())
sys.exit(bool(wrong) or not whole or abs(all_of_steps - whole) > 1e-6 * whole)
PYTHON
done

# Page faults are of the array that is touched once, time is of the one that is used again and again.
cat >program.c <<'END'
#include <stdio.h>
enum { PAGES = 64, WORDS = 512 };
__attribute__((noinline)) static double work(void)
{
    double once[PAGES * WORDS], hot[WORDS], sum = 0;
    for (int i = 0; i < PAGES * WORDS; i += WORDS)
        once[i] = i;
    for (int i = 0; i < WORDS; i++)
        hot[i] = i;
    for (int turn = 0; turn < 200000; turn++)
        for (int i = 0; i < WORDS; i++)
            sum += hot[i * 17 % WORDS];
    return sum + once[5 * WORDS];
}
int main(void)
{
    return printf("%g\n", work()) < 0;
}
END
gcc -g -O1 -o program program.c
rm -rf m db
if works rings; then
    expect_status 0 "$builddir/hpcrun" -e EADDR -e FAULTS@1 -o m ./program
    expect_status 0 "$builddir/hpcprof" -o db m
    expect_status 0 "$builddir/hpcquery" vars --csv -M FAULTS db
    cp out vars.csv
    expect_status 0 "$builddir/hpcquery" group variable : csv db
    python3 - vars.csv out <<'PYTHON' || fail "metrics of local variables"
import csv
import sys

table = {row["variable"]: float(row["value"]) for row in csv.DictReader(open(sys.argv[1], encoding="utf-8"))}
steps = {row["variable"]: row for row in csv.DictReader(open(sys.argv[2], encoding="utf-8"))}
once, hot = steps["work()::once"], steps["work()::hot"]
faults = [float(row["FAULTS"] or 0) for row in (once, hot)]
print("faults", faults, "time", once["time"], hot["time"], "in the table", table)
# stack pages that were there before do not fault, so that their number is not exact
sys.exit(not (faults[0] > 20 * faults[1] and float(hot["time"]) > 20 * float(once["time"] or 0) and
              abs(table["work()::once"] - faults[0]) < 1e-6 and abs(table.get("work()::hot", 0) - faults[1]) < 1e-6))
PYTHON
else
    skip_part "page faults cannot be sampled here: $why"
fi
finish
