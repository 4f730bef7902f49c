#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files of callgrind, whole: lines, instructions, calls and jumps as nodes, code inlined from other files, and parts in files of their
own, as KCachegrind finds them. What is read and written again has the same nodes and values, of valgrind's own files with jumps, too;
what functions cost with their calls is what callgrind_annotate says, and circles do not count twice."""
import csv
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
WHOLE = """# callgrind format
version: 1
creator: by hand
cmd: ./app
positions: instr line
events: Ir Dr

ob=(1) /bin/app
fl=(1) a.c
fn=(1) main
0x10 1 10 1
+2 * 5
jcnd=2/3 0x18 3
* *
cob=(2) /lib/libx.so
cfi=(2) x.c
cfn=(2) work
calls=2 0x40 +4
+2 +1 50 4
jump=4 -2 *
* *
fi=(3) inline.h
+2 7 6
fe=(1)
+2 4 1 1
jfi=(2)
jfn=(2)
jump=1 0x44 6
* *
cfn=(3) even
calls=1 0x60 20
+2 5 40 2

ob=(2)
fl=(2)
fn=(2)
0x40 5 20 2
0x44 6 30 2

ob=(1)
fl=(1)
fn=(3)
0x60 20 10 1
cfn=(4) odd
calls=3 0x70 30
+2 21 30 1

fn=(4)
0x70 30 12
cfn=(3)
calls=2 0x60 20
+2 31 25 1
"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def nodes_of(path, *options):
    """Nodes as list-frame prints them, by depth, without their numbers."""
    result = subprocess.run([str(BUILD / "tests/golden/list-frame"), *options, str(path)], capture_output=True, check=False, text=True)
    expect(result.returncode == 0, f"{path.name}: {result.stderr}")
    return [re.sub(r" \^[\d ]+(?= |$)", "", re.sub(r"^\d+ ", "", line)) for line in result.stdout.splitlines() if re.match(r"\d+ (?!nodes, )", line)]


def table(*words):
    result = subprocess.run([str(BUILD / "hpcquery"), *map(str, words)], capture_output=True, check=False, text=True)
    expect(result.returncode == 0, f"hpcquery {words}: {result.stderr}")
    return list(csv.DictReader(io.StringIO(result.stdout)))


def in_order(nodes):
    """Nodes with their attributes by name: a frame has them in the order in which its file mentions them first."""
    return sorted(re.sub(r"(?: \w+=\S+)+", lambda found: "".join(sorted(re.findall(r" \w+=\S+", found[0]))), node) for node in nodes)


def written_again(path):
    again = path.with_name("again-" + path.name)
    subprocess.run([str(BUILD / "hpcquery"), "export", "callgrind", "-o", str(again), str(path)], check=True)
    return again


def check_whole(scratch):
    path = scratch / "whole.out"
    path.write_text(WHOLE, encoding="utf-8")
    text = "\n".join(line.strip() for line in nodes_of(path, "--parts"))
    for part in ("call 'call of work' a.c:2 [/bin/app] target_line=5 target_offset=64 | Ir (inc) 50 | Dr (inc) 4 | Ir (call) 50 | Dr (call) 4 | calls made 2",
                 "jump 'jump to 0x18' a.c:1 [/bin/app] target_line=3 target_offset=24 conditional=1 target_file=a.c | jumps 3 | jumps followed 2",
                 "jump 'jump to 0x12' a.c:2 [/bin/app] target_line=2 target_offset=18 target_file=a.c | jumps 4",
                 "instruction '0x16' inline.h:7 [/bin/app] offset=22 | Ir 6 | Ir (inc) 6",
                 "jump 'jump into work' a.c:4 [/bin/app] target_line=6 target_offset=68 target_file=x.c target_function=work | jumps 1",
                 "call 'call of odd' a.c:21 [/bin/app] target_line=30 target_offset=112 | Ir (call) 30 | Dr (call) 1 | calls made 3"):
        expect(part in text, f"there is no {part} in\n{text}")
    again = written_again(path)
    expect(sorted(nodes_of(path, "--parts")) == sorted(nodes_of(again, "--parts")), f"written again: {again.read_text(encoding='utf-8')}")
    flat = {row["name"]: (row["Ir"], row["Ir (inc)"]) for row in table("flat", ":", "csv", path)}
    expect(flat == {"main": ("22", "112"), "work": ("50", "50"), "even": ("10", "10"), "odd": ("12", "12")}, f"flat: {flat}")
    lines = {row["name"]: row["Ir"] for row in table("hierarchy", "line", ":", "csv", path) if float(row["Ir"] or 0)}
    expect(lines == {"a.c:1": "15", "inline.h:7": "6", "a.c:4": "1", "x.c:5": "20", "x.c:6": "30", "a.c:20": "10", "a.c:30": "12"}, f"lines: {lines}")
    rows = table("hierarchy", "file instruction", ":", "csv", path)
    expect({row["name"] for row in rows if row["Ir"] == "5"} == {"0x12"}, f"instructions: {rows}")


def check_events_again(scratch):
    """Events that are told anew behind jumps: what was counted before them is another part, with fewer events."""
    path = scratch / "again.out"
    names = [f"E{i}" for i in range(60)]
    path.write_text("events: Ir\nfl=a.c\nfn=main\njump=3 5\n2\njump=4 6\n3\nevents: Ir " + " ".join(names) + "\nfl=a.c\nfn=main\n4 1 " +
                    " ".join(str(i) for i in range(60)) + "\n", encoding="utf-8")
    text = "\n".join(nodes_of(path, "--parts"))
    for part in ("jumps 3", "jumps 4", "Ir 1 ", "E59 59"):
        expect(re.search(rf"\| {part}( |$)" if part[-1] != " " else rf"\| {part}", text, re.M), f"there is no {part} in\n{text}")


def check_shared(scratch):
    """A function that two others call: each of these has what it called of it, and not all."""
    path = scratch / "shared.out"
    path.write_text("events: Ir\nfl=a.c\nfn=main\n1 10\ncfn=a\ncalls=1 5\n2 50\ncfn=b\ncalls=1 9\n3 70\nfn=a\n5 10\ncfn=c\ncalls=2 20\n6 40\n"
                    "fn=b\n9 10\ncfn=c\ncalls=3 20\n10 60\nfn=c\n20 100\n", encoding="utf-8")
    flat = {row["name"]: row["Ir (inc)"] for row in table("flat", ":", "csv", path)}
    expect(flat == {"main": "130", "a": "50", "b": "70", "c": "100"}, f"a function with two callers: {flat}")


def check_parts(scratch):
    """Files whose names go on with numbers are parts, if they are of the same process and command."""
    def part(name, number, cost, process=7, command="./app"):
        (scratch / name).write_text(f"# callgrind format\npid: {process}\ncmd: {command}\npart: {number}\nthread: 1\nevents: Ir\nfn=(1) main\n1 {cost}\n",
                                    encoding="utf-8")
    part("cg.out.7.1", 1, 1)
    part("cg.out.7.2", 2, 20)
    part("cg.out.7.10-02", 10, 300)
    part("cg.out.7.3", 3, 4000, process=8)
    part("cg.out.7.4", 4, 50000, command="./other")
    part("cg.out.71", 1, 600000)
    (scratch / "cg.out.7.5").write_text("no profile", encoding="utf-8")
    (scratch / "cg.out.7.0").write_text("no profile, and first of all", encoding="utf-8")
    (scratch / "cg.out.7-1").mkdir()
    with open(scratch / "cg.out.7.6", "wb") as sparse: # not read as a whole
        sparse.truncate(1 << 40)
    base = scratch / "cg.out.7"
    for state in ("no file", "an empty file", "a part"):
        if state == "an empty file":
            base.write_text("", encoding="utf-8")
        elif state == "a part":
            part("cg.out.7", 11, 7000000)
        rows = table("csv", base)
        expect([row["Ir"] for row in rows] == ["7000321" if state == "a part" else "321"], f"parts beside {state}: {rows}")
    profiles = subprocess.run([str(BUILD / "tests/golden/list-frame"), str(base)], capture_output=True, check=True, text=True).stdout
    expect(re.findall(r"'part (\d+)", profiles) == ["11", "1", "2", "10"], f"profiles: {profiles}")
    one = table("csv", scratch / "cg.out.7.2")
    expect([row["Ir"] for row in one] == ["20"], f"one part: {one}")
    (scratch / "none").write_text("", encoding="utf-8")
    (scratch / "none-1").write_text("main 5\n", encoding="utf-8")
    result = subprocess.run([str(BUILD / "hpcquery"), "csv", str(scratch / "none")], capture_output=True, check=False, text=True)
    expect(result.returncode == 1 and "the file is empty" in result.stderr, f"an empty file: {result.stderr}")


def costs_of_annotate(path, *options):
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show=Ir", *options, str(path)], capture_output=True, check=True, text=True).stdout
    # it names the object that a function of this name was found in last
    return sorted(re.findall(r"^ *([\d,]+) \([^)]*\) +(\S+?:.*?)(?: \[[^\]]*\])?$", text, re.M))


class Jumps:
    """How often a file of callgrind says that was jumped, and followed, from where to where: {ends: [followed, jumps]}. It may say so in
    several records, one for each context of the function; n_records."""
    FILES, OBJECTS, FUNCTIONS = {"fl", "fi", "fe", "cfi", "cfl", "jfi"}, {"ob", "cob"}, {"fn", "cfn", "jfn"}

    def __init__(self, path):
        self.names, self.now, self.last, self.jump, self.ends, self.n_records = {}, {}, [0, 0], None, {}, 0
        for line in path.read_text(encoding="utf-8").splitlines():
            key, sign, value = line.partition("=")
            if sign and key in self.FILES | self.OBJECTS | self.FUNCTIONS:
                self.now[key] = self.name(key, value)
                self.now["file"] = self.now.get(key if key in ("fi", "fe") else "fl") if key in ("fl", "fn", "fi", "fe") else self.now.get("file")
            elif key in ("jump", "jcnd"):
                counts, *target = value.split()
                self.jump = (key, [int(n) for n in (counts.split("/") * 2)[:2]], self.position(target))
            elif re.match(r"[\d+*-]", line):
                self.last = self.position(line.split())
                self.end()

    def name(self, key, value):
        number, text = re.fullmatch(r"\((\d+)\)(?: (.*))?", value).groups()
        kind = "f" if key in self.FILES else "o" if key in self.OBJECTS else "n"
        return self.names.setdefault((kind, number), text)

    def position(self, words):
        """Of instruction and line; "*" is the same as before."""
        return [last if word == "*" else last + int(word, 0) if word[0] in "+-" else int(word, 0) for word, last in zip(words, self.last)]

    def end(self):
        other = self.now.pop("jfi", self.now.get("file")), self.now.pop("jfn", None)
        if self.jump:
            kind, counts, target = self.jump
            ends = (kind, *(self.now[k] for k in ("ob", "fl", "fn", "file")), *self.last, *other, *target)
            self.ends[ends] = [a + b for a, b in zip(self.ends.get(ends, [0, 0]), counts)]
            self.n_records += 1
        self.jump = None


def check_valgrind(scratch):
    if not shutil.which("valgrind") or not shutil.which("callgrind_annotate"):
        print("SKIP (part): there is no valgrind")
        return
    for name, options in (("one", []), ("threads", ["--separate-threads=yes"])):
        path = scratch / f"{name}.out"
        subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", "--cache-sim=yes", *options, f"--callgrind-out-file={path}",
                        "/bin/true"], capture_output=True, check=True)
        again = written_again(path)
        before, after = in_order(nodes_of(path, "--parts")), in_order(nodes_of(again, "--parts"))
        kinds = {kind: sum(node.strip().startswith(kind) for node in before) for kind in ("function", "line", "instruction", "call", "jump")}
        expect(all(n > 50 for n in kinds.values()), f"{name}: {kinds}")
        expect(before == after, f"{name}: {len(before)} and {len(after)} nodes, {[n for n in before if n not in set(after)][:3]}")
        totals = [re.search(r"^totals: (.*)", each.read_text(encoding="utf-8"), re.M)[1] for each in (path, again) if name == "one"]
        expect(len(set(totals)) <= 1, f"totals {totals}")
        if name == "one":
            jumps, jumps_again = Jumps(path), Jumps(again)
            expect(jumps.ends == jumps_again.ends and jumps_again.n_records == len(jumps.ends) > 100,
                   f"{len(jumps.ends)} jumps in {jumps.n_records} records, {len(jumps_again.ends)} in {jumps_again.n_records}")
            for of in ((), ("--inclusive=yes",)):
                expect(costs_of_annotate(path, *of) == costs_of_annotate(again, *of), f"callgrind_annotate {of} says something else of what was written again")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        check_whole(scratch)
        check_events_again(scratch)
        check_shared(scratch)
        check_parts(scratch)
        check_valgrind(scratch)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
