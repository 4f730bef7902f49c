# SPDX-License-Identifier: BSD-3-Clause
"""hpcproftt, and hpcprof with structure files, on files that HPCToolkit itself wrote. They are other projects' and not part of this tree: they are looked
for in $LOCUS_SHARED_DATA, else in ../shared/data beside the source tree; without them this test is skipped."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
TOOL = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcproftt"
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "hpctoolkit"
DUMPED = {".hpcrun", ".hpctrace", ".metric-db", ".log", ".db"}
END = re.compile(rb"\(num-epochs: (\d+)\)\]\n?$")
failures = []


def tool(*arguments):
    return subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, check=False)


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def check_rewrite(path, scratch):
    """Binary - JSON - binary gives the same bytes."""
    source, target = scratch / "in.json", scratch / "out.bin"
    as_json = tool("--json", path)
    expect(as_json.returncode == 0, f"{path}: --json fails: {as_json.stderr}")
    source.write_bytes(as_json.stdout)
    target.unlink(missing_ok=True)
    result = tool("--from-json", "-o", target, source)
    same = target.exists() and target.read_bytes() == path.read_bytes()
    expect(same, f"{path}: binary - JSON - binary differs: {result.stderr}")


def check_text(path):
    """Our dump has every line of the original's; only the title (a path) and the words of the last line differ."""
    theirs = path.with_name(path.name + ".proftt.txt").read_bytes()
    ours = tool(path).stdout
    expect(theirs.split(b"\n")[3:-2] == ours.split(b"\n")[3:-2], f"{path}: the dump differs from the original's")
    ends = END.search(theirs), END.search(ours)
    expect(all(ends) and ends[0].group(1) == ends[1].group(1), f"{path}: the number of epochs differs")


def check_sums(path):
    """What the JSON holds of 04.00 profiles agrees with a count of the values in the file's own index."""
    raw = path.read_bytes()
    start = int.from_bytes(raw[-112 + 80:-112 + 88], "big")
    n_ids = int.from_bytes(raw[start:start + 2], "big")
    at = start + 2 + 18 * n_ids
    n_values, n_rows = int.from_bytes(raw[at:at + 8], "big"), int.from_bytes(raw[at + 8:at + 12], "big")
    nodes = json.loads(tool("--json", path).stdout)["epochs"][0]["nodes"]
    words = [sum(int(v) != 0 for v in node["values"]) for node in nodes]
    expect(n_values > 0 and sum(words) == n_values and sum(w > 0 for w in words) == n_rows,
           f"{path}: {sum(words)} values in {sum(w > 0 for w in words)} nodes, the file says {n_values} in {n_rows}")


def check_structure(name, scratch):
    """With the structure files of a measurement, functions and loops are those of the original's database."""
    database = scratch / "database"
    measured = DATA / "develop-meas" / f"{name}.m"
    made = subprocess.run([str(TOOL.with_name("hpcprof")), "-q", "-S", str(measured / "structs"), "-o", str(database),
                           str(measured)], capture_output=True, text=True, check=False)
    expect(made.returncode == 0, f"{name}: {made.stderr}")
    found = []
    for path in (DATA / "develop-dbase" / f"{name}.d", database):
        meta = json.loads(tool("--json", path / "meta.db").stdout)
        kind, line = (meta["context_columns"].index(column) for column in ("lexical", "line"))
        found.append(({(f[0], f[4]) for f in meta["functions"] if f[4]},
                      {row[line] for row in meta["contexts"] if row[kind] == 1 and row[line]}))
    expect(len(found[0][0]) > 2 and found[0] == found[1], f"{name}: functions and loops {found[1]}, not {found[0]}")


def check_any(path):
    result = tool(path)
    if path.suffix in DUMPED:
        expect(result.returncode == 0 and not result.stderr, f"{path}: not dumped: {result.stderr}")
    else:
        words = result.stderr.decode()
        expect(result.returncode == 1 and words.startswith(f"hpcproftt: {path}: offset ") and words.count("\n") == 1,
               f"{path}: not refused by a message: {words}")
    return path.suffix in DUMPED


def main():
    if not DATA.is_dir():
        print(f"SKIP: no files of HPCToolkit in {DATA} (set LOCUS_SHARED_DATA)")
        return 77
    paths = sorted(p for p in DATA.rglob("*") if p.is_file())
    n_dumped = sum(check_any(path) for path in paths)
    rewritten = [p for p in paths if p.suffix in DUMPED - {".log", ".db"} and "develop-meas" not in p.parts]
    rewritten += [p for p in paths if p.suffix == ".hpctrace" and "develop-meas" in p.parts]
    compared = [p for p in paths if p.with_name(p.name + ".proftt.txt").exists()]
    with tempfile.TemporaryDirectory() as name:
        for path in rewritten:
            check_rewrite(path, pathlib.Path(name))
        for measured in ("small", "loops-perf", "loops-cputime-t"):
            check_structure(measured, pathlib.Path(name))
    for path in compared:
        check_text(path)
    for path in (p for p in paths if p.suffix == ".hpcrun" and "develop-meas" in p.parts):
        check_sums(path)
    expect(len(compared) >= 5 and len(rewritten) >= 45, "files that this test is about are missing")
    for failure in failures[:40]:
        print("FAIL:", failure)
    print(f"{n_dumped} of {len(paths)} files dumped, {len(rewritten)} rewritten, {len(compared)} compared with the "
          f"original's text, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
