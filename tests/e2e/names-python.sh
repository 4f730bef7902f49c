#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Blocks that Python code asks for are named by that code: by the variable or attribute that the line assigns to, else by
# function, file and line; in threads, generators, forked children and code of other alphabets as well, and where NumPy
# gives up the interpreter's lock to allocate. HPCRUN_PYTHON=0 leaves the interpreter alone.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
python=/usr/bin/python3
[ -x "$python" ] || skip "Debian's python3 is not installed"
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) or sys.implementation.name != "cpython")' ||
    skip "the interpreter is not CPython 3.11"
program=$srcdir/tests/e2e/programs/names-python.py
cd "$scratch"

# blocks [ARGUMENT...]: measures the program and leaves lines "bytes-of-a-block name" of all its blocks in blocks.
blocks() {
    rm -rf m db
    expect_status 0 "$builddir/hpcrun" -e MEMLEAK -o m "$python" "$program" "$@"
    expect_status 0 "$builddir/hpcprof" -o db m
    expect_status 0 "$builddir/hpcquery" leaks --all --json db
    "$python" -c '
import json, sys
for row in json.load(sys.stdin)["paths"]:
    if row["allocated_blocks"]:
        print(row["allocated_bytes"] // row["allocated_blocks"], row["variable"])' <out >blocks
}

# named BYTES NAME: there are blocks of about so many bytes (Python adds a header), all of this name.
named() {
    local found
    found=$(awk -v n="$1" '$1 >= n && $1 < n + 200 { $1 = ""; print substr($0, 2) }' blocks | sort -u)
    [ "$found" = "$2" ] || fail "the blocks of $1 bytes are '$found', not '$2'"
}

with=
if "$python" -c 'import numpy' 2>/dev/null; then
    with=--numpy
else
    skip_part "python3-numpy is not installed"
fi
blocks $with
named 3000000 buffer
named 3100000 "returned (names-python.py:$(grep -n 'return bytes' "$program" | cut -d: -f1))"
named 3200000 self.state
named 3300000 "generate (names-python.py:$(grep -n 'yield' "$program" | cut -d: -f1))"
named 3350000 länge
named 3450001 of_thread
named 3500001 "<module> (<string>:1)"
named 3510001 "<module> (?:1)"
named 3520001 "<module> (длинный.py:1)"
named 3530001 "<module> (😀.py:1)"
named 3540001 "<module> (a?b.py:1)"
named 3550001 "<module> (x.py:1)"
named 3570001 "$(printf 'д%.0s' {1..40}) (<string>:1)"
named 3580001 "<module> (<string>:2)"
named 3590001 "<module> (<string>:9)"
named 3600001 "<module> (<string>:4)
of_child"
for i in {0..9}; do
    named $((3800001 + 10000 * i)) "<module> (<string>:$((11 + i)))"
done
named 3700001 in_else
named 3710001 in_with
named 3720001 in_loop
line=$(grep -n 'first=' "$program" | cut -d: -f1)
named 3730001 "on_lines_with_keywords (names-python.py:$line)"
named 3740001 "on_lines_with_keywords (names-python.py:$((line + 1)))"
named 3750001 typed
named 3760001 "on_lines_with_keywords (names-python.py:$(grep -n 'if n == 0' "$program" | cut -d: -f1))"
grep -h 'Python: ' m/*.log && fail "the log says that code is left out where all of it is named"
if [ -n "$with" ]; then
    named 4004000 grid
    named 4800000 "field
main (names-python.py:$(grep -n 'field \* 2' "$program" | cut -d: -f1))"
fi

# What there is no room for is counted, in one line of the process's log; the names of the others stay.
blocks --many
n_named=$(grep -c '<module> (file[0-9]*\.py:1)' blocks)
[ "$n_named" -gt 8000 ] || fail "only $n_named of 24000 lines that allocate are named"
sentence='Python: [1-9][0-9]* blocks* [a-z]* named by native code, for lack of room'
grep -q "^\[[0-9]*, N\]: $sentence" m/*.log || fail "no log says that code was left out"
for log in m/*.log; do
    [ "$(grep -c "$sentence" "$log")" -le 1 ] || fail "$log says so more than once"
done

# As many blocks from one long function as from ten short ones cost about the same CPU time: the line table of a function
# is not read from its start for each of them.
cat >long.py <<'PYTHON'
import sys, time
n_lines, n_turns = int(sys.argv[1]), int(sys.argv[2])
names = {}
exec("def f():\n" + " a = bytearray(3000)\n" * n_lines, names)
start = time.process_time()
for turn in range(n_turns):
    names["f"]()
print(time.process_time() - start)
PYTHON
for lines in 1500 15000; do
    rm -rf m
    expect_status 0 "$builddir/hpcrun" -e datacentric -o m "$python" long.py "$lines" $((300000 / lines))
    cp out "cost.$lines"
done
awk 'NR == 1 { short = $1 } NR == 2 && $1 > 4 * short { exit 1 }' cost.1500 cost.15000 ||
    fail "blocks cost $(cat cost.15000) s in a long function and $(cat cost.1500) s in a short one"

# Blocks of several kinds come from one line of Python; each sample is at one variable all the same.
cat >kinds.py <<'PYTHON'
import json, decimal
def work(n):
    kept = [{"a": i, "b": [i, str(i)]} for i in range(n)]
    return sum(len(json.dumps(one)) for one in kept) + sum(one["a"] for one in kept)
print(sum(work(20000) for _ in range(8)))
PYTHON
rm -rf m db
expect_status 0 "$builddir/hpcrun" -e EADDR@f2000 -o m "$python" kinds.py
expect_status 0 "$builddir/hpcprof" -o db m
expect_status 0 "$builddir/hpcquery" vars --all --top 0 --csv db
"$python" -c '
import csv, sys
shares = [float(row["share"]) for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")) if row["share"]]
print(f"{len(shares)} rows have {sum(shares):.2f} % of the samples")
sys.exit(abs(sum(shares) - 100) > 0.1 or len(shares) < 3)' out || fail "the rows do not add up"

# The path to a block that Python code asked for is that of the code, each function with the line that calls the next one:
# in reports, in the terminal and in the page. It has no functions of the interpreter, and none without a name. What a
# library of Python without lines does with it is done at the line of Python that called the library.
cat >arrays.py <<'PYTHON'
import sys
def make_grid(n):
    return numpy.ones(n // 8) if numpy else bytearray(n)
def scan(grid):
    return numpy.add.reduce(grid) if numpy else grid.count(7)
def main():
    grid = make_grid(30000000)
    print(sum(scan(grid) for _ in range(80)))
numpy = None
if "--numpy" in sys.argv:
    import numpy
main()
PYTHON
cat >paths.py <<'PYTHON'
import json, pathlib, sys
sys.path.insert(0, sys.argv[1] + "/tests/lib")
import browser, terminal, viewer
rows = json.load(open("vars.json", encoding="utf-8"))["variables"]
row = next(row for row in rows if row["variable"].startswith("make_grid"))
lines = [("make_grid", 3), ("main", 7), ("<module>", 12)]
path = [(each["function"], each["line"]) for each in row["path"]]
where = [each for each in path if each in lines]
extra = [each for each in path if each not in lines and (each[0].startswith(("_Py", "Py", "func_0x")) or not each[1])]
failures = [] if where == lines and path[-1] == lines[-1] and not extra else [f"the report's path is {path}"]
first = row["lines"][0]
if (first["function"], first["line"]) != ("scan", 5) or first["value"] < .8 * row["value"]:
    failures.append(f"it is used at {row['lines'][:3]}")
screen = terminal.Terminal([sys.argv[2] + "/hpcviewer", "--tui", "db"], 160, 50)
screen.wait("q quit")
screen.write("3")
found = screen.wait("<module> > main > make_grid")
lines_of = [line.partition("│")[0] for line in screen.lines() if " allocated " in line]
if not found or not lines_of or any("Py" in line or "func_0x" in line for line in lines_of):
    failures.append(f"the terminal's path is {lines_of}")
screen.close()
try:
    page = viewer.Viewer(pathlib.Path("profile"))
except browser.Failure as failure:
    print("no page:", failure)
else:
    page.open(pathlib.Path("page.html").absolute().as_uri())
    page.value(f"location.hash = 'active=' + encodeURIComponent({json.dumps('variable:' + row['variable'])}) + '&data=items'; document.getElementById('tab-items').click()")
    page.wait("document.querySelector('#panel-items ol.path') !== null", 20)
    shown = page.value("[...document.querySelector('#panel-items ol.path').children].map((each) => each.innerText.trim())")
    if shown[-3:] != [f"{name} arrays.py:{line}" for name, line in lines] or any("Py" in each or "func_0x" in each for each in shown):
        failures.append(f"the page's path is {shown}")
    page.value("document.getElementById('tab-annotate').click()")
    page.wait("document.querySelector('#panel-annotate .grid-row.related') !== null", 20)
    used = page.value("document.querySelector('#panel-annotate .grid-row.related')?.innerText || ''")
    if not used.startswith("5") or "def" in used:
        failures.append(f"the source marks {used}")
    page.close()
sys.exit("\n".join(failures) or 0)
PYTHON
for more in "" $with; do
    rm -rf m db
    expect_status 0 "$builddir/hpcrun" -e datacentric -o m "$python" arrays.py "$more"
    expect_status 0 "$builddir/hpcprof" -o db m
    expect_status 0 "$builddir/hpcviewer" -o page.html db
    expect_status 0 "$builddir/hpcquery" vars --paths --top 0 --json db
    mv out vars.json
    expect_status 0 "$python" paths.py "$srcdir" "$builddir"
done

HPCRUN_PYTHON=0 blocks
grep -q 'buffer\|self.state' blocks && fail "HPCRUN_PYTHON=0 is not heeded"
finish
