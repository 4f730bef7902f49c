#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reports about code on files of other tools: functions, lines, sources and machine code. Of a program under valgrind they have the
numbers of callgrind_annotate, as text, CSV, JSON and as viewers ask; what a file does not say is refused in one sentence."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import toolchain  # noqa: E402

PROGRAM = """#include <stdlib.h>
static inline int square(int x) { return x * x; }
__attribute__((noinline)) double work(const double *a, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (a[i] > 0.5)
            sum += a[i] * square(i);
    return sum;
}
int main(void)
{
    double *a = malloc(1000 * sizeof *a), sum = 0;
    for (int i = 0; i < 1000; i++)
        a[i] = (i * 7919 % 1000) / 1000.0;
    for (int k = 0; k < 5; k++)
        sum += work(a, 1000);
    return !(sum > 0);
}
"""
# Call paths with lines: main calls work at line 3, and that itself at 7.
PATHS = [{"frame": {"name": "main", "type": "function", "file": "/s/a.c", "line": 1}, "metrics": {"time": 1.0}, "children": [
    {"frame": {"name": "a.c:3", "type": "statement", "file": "/s/a.c", "line": 3}, "metrics": {"time": 2.0}, "children": [
        {"frame": {"name": "work", "type": "function", "file": "/s/a.c", "line": 5}, "metrics": {"time": 0.0}, "children": [
            {"frame": {"name": "a.c:7", "type": "statement", "file": "/s/a.c", "line": 7}, "metrics": {"time": 4.0}, "children": [
                {"frame": {"name": "work", "type": "function", "file": "/s/a.c", "line": 5}, "metrics": {"time": 0.0}, "children": [
                    {"frame": {"name": "a.c:7", "type": "statement", "file": "/s/a.c", "line": 7}, "metrics": {"time": 8.0}}]}]}]}]}]}]
EXPERIMENT = """<?xml version="1.0"?>
<HPCToolkitExperiment version="2.1"><Header n="app"/><SecCallPathProfile i="0" n="app"><SecHeader>
<MetricTable><Metric i="0" n="cycles (I)" v="final" t="inclusive" partner="1"/><Metric i="1" n="cycles (E)" v="final" t="exclusive" partner="0"/></MetricTable>
<LoadModuleTable><LoadModule i="1" n="/bin/app"/></LoadModuleTable><FileTable><File i="1" n="./src/a.c"/></FileTable>
<ProcedureTable><Procedure i="1" n="main"/><Procedure i="2" n="work"/></ProcedureTable></SecHeader><SecCallPathProfileData>
<PF i="2" s="1" n="1" lm="1" f="1" l="1"><M n="0" v="9"/><M n="1" v="2"/><C i="3" s="3" l="3"><M n="0" v="7"/><PF i="4" s="4" n="2" lm="1" f="1" l="5"><M n="0" v="7"/><M n="1" v="7"/>
<S i="5" s="5" l="6"><M n="0" v="7"/><M n="1" v="7"/></S></PF></C><S i="6" s="6" l="2"><M n="0" v="2"/><M n="1" v="2"/></S></PF>
</SecCallPathProfileData></SecCallPathProfile></HPCToolkitExperiment>
"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*words):
    result = subprocess.run([str(BUILD / "hpcquery"), *[str(word) for word in words]], capture_output=True, check=False, text=True)
    expect(result.returncode == 0, f"{words}: {result.stderr}")
    return result.stdout


def rows_of(*words):
    return list(csv.DictReader(io.StringIO(run(words[0], "--csv", *words[1:]))))


def refused(words, *path):
    result = subprocess.run([str(BUILD / "hpcquery"), *[str(word) for word in path]], capture_output=True, check=False, text=True)
    expect(result.returncode == 1 and words in result.stderr and result.stderr.count("\n") == 1, f"{path}: {result.returncode} {result.stderr}")


def ask(path, **request):
    result = subprocess.run([str(BUILD / "tests/lib/ask-packed"), "--json", str(path), json.dumps(request)], capture_output=True, check=False, text=True)
    expect(result.returncode == 0, f"{request}: {result.stderr}")
    return json.loads(result.stdout or "{}")


def annotated(path, source, *options):
    """{function: cost} and {line: cost} of callgrind_annotate."""
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", "--show=Ir", *options, str(path), str(source)], capture_output=True, check=True, text=True).stdout
    table, _, source = text.partition("User-annotated source")
    functions = {}
    for cost, name in re.findall(r"^ *([\d,]+) \([^)]*\) +\S+?:(.*?)(?: \[[^\]]*\])?$", table, re.M):
        functions[name] = functions.get(name, 0) + int(cost.replace(",", ""))
    lines = [line for line in source.split("\n") if re.match(r" *(\.|[\d,]+ \([^)]*\))  (?!=>)", line)]
    costs = [re.match(r" *([\d,]+)? ?", line)[1] for line in lines]
    return functions, {i + 1: int(cost.replace(",", "")) for i, cost in enumerate(costs[:PROGRAM.count("\n")]) if cost}


def check_machine_code(path, source, program):
    raw, listed = {}, rows_of("annotate", "--instructions", "work", path)
    code = subprocess.run([toolchain.utility("objdump"), "-d", "--no-show-raw-insn", str(program)], capture_output=True, check=True, text=True).stdout
    known = dict(re.findall(r"^ +([0-9a-f]+):\t(\S+)", code, re.M))
    for row in listed:
        raw[row["line"]] = raw.get(row["line"], 0) + float(row["own"])
        expect(known.get(row["address"][2:]) == row["instruction"].split()[0], f"objdump has {known.get(row['address'][2:])}: {row}")
    lines = {row["line"]: float(row["own"]) for row in rows_of("annotate", "work", path) if float(row["own"])}
    expect({line: cost for line, cost in raw.items() if cost} == lines and len(listed) > 10, f"instructions of lines: {raw} and {lines}")
    jumps = [row["instruction"] for row in listed if row["instruction"].startswith("j")]
    expect(any(target in {row["address"] for row in listed} for target in (jump.split()[1] for jump in jumps)), f"jumps: {jumps}")
    text = run("annotate", "--instructions", "work", path)
    expect("if (a[i] > 0.5)" in text and str(program) in text and "on data" not in text, f"machine code as text: {text}")
    answer = ask(path, report="annotate", subject="work", instructions=True)
    expect([row["own"] for row in answer["instructions"]] == [float(row["own"]) for row in listed], "viewers have other machine code")
    expect(ask(path, report="source", subject=str(source))["pieces"][0]["text"] == PROGRAM, "viewers have another source")


def check_valgrind(scratch):
    if not shutil.which("valgrind") or not shutil.which("callgrind_annotate") or toolchain.machine() != "x86_64":
        print("SKIP (part): there is no valgrind for this machine")
        return
    source, program, path = scratch / "work.c", scratch / "work", scratch / "cg.out"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run([*toolchain.COMPILER, "-g", "-O1", "-o", str(program), str(source)], check=True)
    valgrind = ["valgrind", "--tool=callgrind"]
    subprocess.run([*valgrind, "--dump-instr=yes", "--collect-jumps=yes", f"--callgrind-out-file={path}", str(program)], capture_output=True, check=True)
    own, lines = annotated(path, source)
    inclusive, _ = annotated(path, source, "--inclusive=yes")
    functions = rows_of("functions", path)
    have = {}
    for row in functions:
        have[row["function"]] = have.get(row["function"], 0) + float(row["own"])
    expect({name: cost for name, cost in have.items() if cost} == own, f"functions: {[(n, c, own.get(n)) for n, c in have.items() if c and own.get(n) != c][:5]}")
    for name in ("main", "work"):
        row = next(row for row in functions if row["function"] == name)
        expect(float(row["inclusive"]) == inclusive[name], f"{name} with what it calls: {row}, not {inclusive[name]}")
    here = {int(row["line"]): float(row["own"]) for row in rows_of("annotate", "work.c", path) if float(row["own"])}
    expect(here == lines and len(lines) > 8, f"lines: {here}, not {lines}")
    of_lines = {int(row["line"]): float(row["own"]) for row in rows_of("lines", path) if row["file"] == str(source) and float(row["own"])}
    expect(of_lines == lines, f"hpcquery lines: {of_lines}, not {lines}")
    levels = {row["name"]: float(row["Ir"]) for row in csv.DictReader(io.StringIO(run("hierarchy", "file line", ":", "csv", path))) if row["name"].startswith("work.c:")}
    expect(levels == {f"work.c:{line}": cost for line, cost in lines.items()}, f"hierarchy: {levels}")
    calls = next(row for row in rows_of("annotate", "main", path) if row["line"] == "17")
    expect(float(calls["inclusive"]) == own["work"] + float(calls["own"]), f"the line that calls work: {calls}")
    text = run("annotate", "work", path)
    expect("sum += a[i] * square(i);" in text and "square(int x)" in text, f"source: {text}")
    check_machine_code(path, source, program)
    state = json.loads(run("--at", "view=annotate&active=function:work", "--json", path))
    expect(state["functions"] == ["work"], f"--at: {state}")
    plain = scratch / "plain.out"
    subprocess.run([*valgrind, f"--callgrind-out-file={plain}", str(program)], capture_output=True, check=True)
    apart = scratch / "apart.out"
    subprocess.run([*valgrind, "--separate-threads=yes", f"--callgrind-out-file={apart}", str(program)], capture_output=True, check=True)
    expect(not apart.stat().st_size and "work" in [row["function"] for row in rows_of("functions", apart)], "parts beside a file that is empty")
    refused("--dump-instr=yes", "annotate", "--instructions", "work", plain)
    source.unlink()
    expect("cannot be read here" in run("annotate", "work", path), "a source that is gone")


def check_paths(scratch):
    """Recursion counts once; what a function costs beside its lines is at none."""
    path = scratch / "paths.json"
    path.write_text(json.dumps(PATHS), encoding="utf-8")
    lines = {(row["function"], row["line"]): (float(row["own"]), float(row["inclusive"])) for row in rows_of("lines", path)}
    expect(lines == {("work", "7"): (12, 12), ("main", "3"): (2, 14), ("main", ""): (1, 1)}, f"lines of call paths: {lines}")
    functions = {row["function"]: (float(row["own"]), float(row["inclusive"])) for row in rows_of("functions", path)}
    expect(functions == {"work": (12, 12), "main": (3, 15)}, f"functions of call paths: {functions}")
    directory = scratch / "database"
    directory.mkdir()
    (directory / "experiment.xml").write_text(EXPERIMENT, encoding="utf-8")
    lines = {(row["function"], row["line"]): (float(row["own"]), float(row["inclusive"])) for row in rows_of("lines", directory)}
    expect(lines == {("work", "6"): (7, 7), ("main", "2"): (2, 2), ("main", "3"): (0, 7)}, f"lines of HPCToolkit: {lines}")


def check_refused(scratch):
    path = scratch / "app.folded"
    path.write_text("main;work 4\nmain 1\n", encoding="utf-8")
    expect([row["function"] for row in rows_of("functions", path)] == ["work", "main"], "functions of stacks")
    refused("has no lines of sources: its costs are known by function alone", "lines", path)
    refused("has no data accesses", "vars", path)
    refused("does not say which thread", "functions", "--by", "thread", path)
    refused("has no metric 'cycles'", "functions", "-M", "cycles", path)
    refused("does not say at which addresses", "annotate", "--instructions", "work", path)


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        check_valgrind(scratch)
        check_paths(scratch)
        check_refused(scratch)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
