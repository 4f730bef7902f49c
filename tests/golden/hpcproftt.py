# SPDX-License-Identifier: BSD-3-Clause
"""hpcproftt on the golden files: the dump is the expected one, binary - JSON - binary gives the same bytes, every
changed value of the JSON arrives in the binary, and bad input is refused with file, offset and reason."""
import copy
import filecmp
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
TOOL = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcproftt"
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402

GOLDEN = bundle.golden("formats")
NOT_WRITTEN = {"profile-04.00": "version '04.00' are not written", "log": "no log is made of it"}
CHANGED = ("profile-03.10", "profile-02.00-before-2017", "profile-03.10-epochs", "trace-01.01-datacentric",
           "metric-db", "objects", "objects-2", "objects-4", "events")
# Values that say how the others are laid out, or that the original readers would take for another layout.
MAY_BE_REFUSED = re.compile(r"/format$|/version$|/short_metrics$|/metrics/\d+/flags/(0|3|8|9|1\d)$"
                            r"|/epochs/\d+/flags$|^/flags$|/n_metrics$|/kind$|^/stride$|^/accesses/\d+/[35]$"
                            r"|^/records/\d+/1$")
failures = []


def tool(*arguments):
    return subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, check=False)


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def golden_cases():
    return sorted(p for p in GOLDEN.iterdir() if list(p.glob("input.*")))


def check_generator(scratch):
    """The committed files are what the generator makes; the text of its folder is the new formats.txt."""
    subprocess.run([sys.executable, str(SOURCE / "tests/golden/make-hpcrun.py"), str(scratch / "made")], check=True)
    made = sorted(p.relative_to(scratch / "made") for p in (scratch / "made").rglob("*") if p.is_file())
    expect(len(made) >= 2 * 15, "the generator makes fewer cases than it should")
    for path in made:
        expect((GOLDEN / path).exists() and filecmp.cmp(scratch / "made" / path, GOLDEN / path, shallow=False),
               f"{path} in tests/golden/formats.txt is not what make-hpcrun.py makes")


def write_json(scratch, text):
    """Makes a binary of JSON text: its result and its bytes."""
    source, target = scratch / "in.json", scratch / "out.bin"
    source.write_text(text, encoding="utf-8")
    target.unlink(missing_ok=True)
    result = tool("--from-json", "-o", target, source)
    return result, target.read_bytes() if target.exists() else None


def check_case(case, scratch):
    path = next(case.glob("input.*"))
    dump = tool(path)
    title = b"=" * 77 + b"\n" + str(path).encode() + b"\n" + b"=" * 77 + b"\n"
    expect(dump.returncode == 0 and dump.stderr == b"", f"{case.name}: the dump fails: {dump.stderr}")
    expected = title + (case / "expected.txt").read_bytes()
    expect(dump.stdout == expected, f"{case.name}: the dump is not the expected one")
    as_json = tool("--json", path)
    expect(as_json.returncode == 0, f"{case.name}: --json fails: {as_json.stderr}")
    json.loads(as_json.stdout)
    result, binary = write_json(scratch, as_json.stdout.decode())
    if case.name in NOT_WRITTEN:
        expect(result.returncode == 1 and NOT_WRITTEN[case.name] in result.stderr.decode() and binary is None,
               f"{case.name}: --from-json does not refuse: {result.stderr}")
    else:
        expect(binary == path.read_bytes(), f"{case.name}: binary - JSON - binary differs: {result.stderr}")


def leaves(value, path=""):
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], f"{path}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}/{index}")
    else:
        yield path, value


def put(root, path, value):
    *way, last = path.strip("/").split("/")
    for key in way:
        root = root[int(key)] if isinstance(root, list) else root[key]
    root[int(last) if isinstance(root, list) else last] = value


def other(value, path):
    if isinstance(value, float):
        return value / 2 + 1
    if isinstance(value, int):
        return value + 1 if value in (0, 1) else value - 1
    if path.endswith("/bytes"):
        return value + "fe"
    if value is None:
        return "named now"
    if value.isdigit() and len(value) > 15:
        return str(int(value) + (2 if int(value) < 2**64 - 2 else -2))
    return value + "\u00e9"


def check_changes(case, scratch):
    path = next(case.glob("input.*"))
    text = tool("--json", path).stdout.decode()
    original, n_arrived = json.loads(text), 0
    for place, value in list(leaves(original)):
        changed = copy.deepcopy(original)
        put(changed, place, other(value, place))
        result, binary = write_json(scratch, json.dumps(changed))
        where = f"{case.name}: {place}: {value!r} changed to {other(value, place)!r}"
        if result.returncode == 1 and MAY_BE_REFUSED.search(place):
            expect(b"hpcproftt: " in result.stderr and binary is None, f"{where} is refused without a message")
            continue
        expect(result.returncode == 0 and binary != path.read_bytes(), f"{where} does not arrive: {result.stderr}")
        target = scratch / f"again{path.suffix}"
        target.write_bytes(binary or b"")
        again = tool("--json", target)
        expect(again.returncode == 0 and json.loads(again.stdout) == changed, f"{where} arrives as something else")
        n_arrived += 1
    expect(n_arrived > 3, f"{case.name}: only {n_arrived} values arrived")
    return n_arrived


def refused(name, content, words, scratch, *options):
    path = scratch / name
    path.write_bytes(content)
    result = tool(*options, path)
    text = result.stderr.decode()
    expect(result.returncode == 1 and text.startswith(f"hpcproftt: {path}: ") and words in text
           and text.count("\n") == 1, f"{name}: exit {result.returncode}, expected a refusal with '{words}': {text}")


def check_bad_input(scratch):
    profile = (GOLDEN / "profile-03.10" / "input.hpcrun").read_bytes()
    refused("empty.hpcrun", b"", "offset 0: the file is empty", scratch)
    refused("begin.hpcrun", profile[:7], "offset 7: the file is truncated", scratch)
    refused("cut.hpcrun", profile[:-1], "truncated", scratch)
    refused("version.hpcrun", profile.replace(b"03.10b", b"05.00b"), "offset 23: profile version '05.00'", scratch)
    refused("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(64), "offset 0: not a profile", scratch)
    refused("cut-meta.db", b"HPCTOOLKITmeta\4\0" + bytes(64), "offset 72: the end mark _meta.db is missing", scratch)
    refused("experiment.xml", b"<?xml version='1.0'?>", "XML", scratch)
    refused("program", b"\x7fELF" + bytes(64), "program", scratch)
    refused("bad.log", b"SUMMARY: samples: none\n", "no number", scratch)
    refused("cut.objects", b'{"format": "locus-objects", "ver', "not valid JSON", scratch)
    back = ("--from-json", "-o", scratch / "x")
    refused("cut.json", b"{", "offset 1 (line 1, column 1): not valid JSON", scratch, *back)
    refused("none.json", b"{}", "format:", scratch, *back)
    full = subprocess.run(f"'{TOOL}' '{GOLDEN}/log/input.log' >/dev/full", shell=True, capture_output=True, check=False)
    expect(full.returncode == 1 and b"cannot be written" in full.stderr, f"a full device is not noticed: {full.stderr}")
    for name, words in (("missing", "cannot be read: No such file"), ("", "not a regular file")):
        result = tool(scratch / name)
        expect(result.returncode == 1 and words in result.stderr.decode(), f"'{name}' is not refused: {result.stderr}")
    mixed = tool(scratch / "missing", GOLDEN / "trace-01.00" / "input.hpctrace")
    expect(mixed.returncode == 1 and b"num-records: 2" in mixed.stdout, "a bad file keeps a good one from printing")
    existing = scratch / "there"
    existing.write_text("mine")
    result = tool("-o", existing, GOLDEN / "log" / "input.log")
    expect(result.returncode == 1 and existing.read_text() == "mine", "-o overwrites a file")
    for words in ([], ["--from-json", "x"], ["--jsonn", "x"], ["--log", "--from-json", "-o", "y", "x"]):
        expect(tool(*words).returncode == 2, f"the command line {words} is not refused as such")


def check_logs(scratch):
    folder = scratch / "measurements"
    folder.mkdir()
    (folder / "a-000000-000-00000000-1-0.log").write_bytes((GOLDEN / "log" / "input.log").read_bytes())
    (folder / "a-000000-000-00000000-2-0.log").write_bytes((GOLDEN / "log" / "input.log").read_bytes())
    (folder / "a-000000-000-00000000-3-0.log").write_bytes(b"[3, N]: hello\n")
    (folder / "other.txt").write_bytes(b"not a log\n")
    result = tool("--log", folder)
    text = result.stdout.decode()
    for line in ("LOGS: 3 (complete: 2)", f"    {folder}/a-000000-000-00000000-3-0.log", "EVENT EADDR@1000",
                 "             200  named: address found in a known variable",
                 "SUMMARY: samples: 240 (recorded: 230, blocked: 10, errant: 0, trolled: 2, yielded: 0),",
                 "MEMORY: segment size: 4.0 meg, num segments: 6, total allocation: 24.0 meg, reclaims: 0",
                 f"    {folder}/a-000000-000-00000000-3-0.log: [3, N]: hello"):
        expect(line in text.split("\n"), f"--log has no line '{line}':\n{text}")
    as_json = json.loads(tool("--log", "--json", folder).stdout)
    expect(as_json["samples"] == 240 and as_json["events"][0]["named"] == 200, "--log --json has other sums")
    (scratch / "empty").mkdir()
    result = tool("--log", scratch / "empty")
    expect(result.returncode == 1 and b"no logs" in result.stderr, "--log takes a directory without logs")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        check_generator(scratch)
        cases = golden_cases()
        for case in cases:
            check_case(case, scratch)
        n_arrived = sum(check_changes(GOLDEN / case, scratch) for case in CHANGED)
        check_bad_input(scratch)
        check_logs(scratch)
    for failure in failures[:40]:
        print("FAIL:", failure)
    print(f"{len(cases)} cases, {n_arrived} changed values arrived, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
