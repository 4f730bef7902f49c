# SPDX-License-Identifier: BSD-3-Clause
"""hpcproftt on version 4 databases: on a small one made here, and on those of HPCToolkit itself where they are at hand,
what it prints is what an independent reader finds; damaged files are refused by one message."""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
TOOL = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcproftt"
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "hpctoolkit"
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import v4  # noqa: E402

NAMES = ("meta.db", "profile.db", "cct.db", "trace.db")
failures = []


def tool(*arguments):
    return subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, check=False, timeout=60)


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def check_file(path):
    """The JSON is what the other reader finds; the number of values and records in the text, too."""
    result = tool("--json", path)
    expect(result.returncode == 0 and not result.stderr, f"{path}: {result.stderr.decode()}")
    ours = json.loads(result.stdout or "{}")
    theirs = v4.read(path)
    for key, value in theirs.items():
        ours_value = json.loads(json.dumps(ours.get(key)), parse_int=int)
        expect(normal(ours_value) == normal(value), f"{path}: {key}: {str(ours_value)[:200]} is not {str(value)[:200]}")
    expect({k for k in ours if not k.endswith("_columns")} == theirs.keys(), f"{path}: keys {sorted(ours)}")
    text = tool(path)
    lines = text.stdout.decode().split("\n")
    n_values = sum(line.startswith(("  context ", "  profile ")) for line in lines)
    n_wanted = sum(len(p["values"]) for p in theirs.get("profiles", []))
    n_wanted += sum(len(c) for c in theirs["contexts"]) if path.name == "cct.db" else 0
    expect(text.returncode == 0 and n_values == n_wanted, f"{path}: {n_values} values in the text, not {n_wanted}")
    if path.name == "meta.db":
        ids = [int(line.split("#")[1].split(":")[0]) for line in lines if line.lstrip().startswith("#")]
        wanted = [row[0] for row in theirs["entries"] + theirs["contexts"]]
        expect(sorted(ids) == sorted(wanted) and len(ids) > 2, f"{path}: contexts {ids}, not {wanted}")
    return theirs


def check_made_of_json(path, scratch):
    """The file that is made of its JSON holds the same, and making it once more changes nothing."""
    texts = [tool("--json", path).stdout]
    (scratch / "again").mkdir(exist_ok=True)
    for n in (1, 2):
        source, target = scratch / "again" / "file.json", scratch / "again" / f"file-{n}"
        source.write_bytes(texts[-1])
        target.unlink(missing_ok=True)
        result = tool("--from-json", "-o", target, source)
        expect(result.returncode == 0, f"{path}: --from-json: {result.stderr}")
        texts.append(tool("--json", target).stdout)
    expect(len(texts[0]) > 100 and texts[0] == texts[1] == texts[2], f"{path}: what is made of the JSON differs")
    expect((scratch / "again" / "file-1").read_bytes() == target.read_bytes(), f"{path}: made twice, it differs")


def check_bad_json(directory, scratch):
    """Each reference led astray, and other columns: refused by one line that names the place."""
    texts = {name: json.loads(tool("--json", directory / name).stdout) for name in NAMES}
    first = {name: text["contexts"][0] for name, text in texts.items() if name == "meta.db"}["meta.db"]
    for name, key, value, words in (
            ("meta.db", "contexts", [[*first[:1], 4000000, *first[2:]]], "level by level"),
            ("meta.db", "contexts", [[*first[:6], 99, *first[7:]]], "contexts[0]: function"),
            ("meta.db", "contexts", [first[:5]], "as many values as there are columns"),
            ("meta.db", "functions", [["f", 99, 0, 0, 0, 0]], "functions[0]: module"),
            ("meta.db", "function_columns", ["name"], "other columns"), ("meta.db", "more", 1, ""),
            ("meta.db", "file", "other.db", "is expected"), ("profile.db", "profiles", [{"flags": 0}], "profiles[0]"),
            ("profile.db", "profiles", [{"flags": 0, "ids": [], "values": [[2, 0, 1], [1, 0, 1]]}], ""),
            ("cct.db", "contexts", [7], "contexts[0]"), ("cct.db", "contexts", [[[1, 70000, 1]]], "metric"),
            ("trace.db", "traces", [{"profile": 1, "records": [[1]]}], "traces[0]")):
        (scratch / "bad.json").write_text(json.dumps({**texts[name], key: value}), encoding="utf-8")
        result = tool("--from-json", "-o", scratch / "bad.db", scratch / "bad.json")
        text = result.stderr.decode()
        expect(result.returncode == 1 and text.count("\n") == 1 and words in text and not (scratch / "bad.db").exists(),
               f"{name} with {key} {value}: {result.returncode} {text}")


def normal(value):
    """Integers beyond 2^53 are texts in our JSON."""
    if isinstance(value, list):
        return [normal(v) for v in value]
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    return int(value) if isinstance(value, str) and value.isdigit() else value


def check_database(directory, scratch):
    files = {name: check_file(directory / name) for name in NAMES if (directory / name).exists()}
    for name in files:
        check_made_of_json(directory / name, scratch)
    flat = {(p, c, m): v for p, profile in enumerate(files["profile.db"]["profiles"]) if not profile["flags"] & 1
            for c, m, v in profile["values"]}
    turned = {(p, c, m): v for c, cells in enumerate(files["cct.db"]["contexts"]) for p, m, v in cells}
    expect(flat == turned and len(flat) > 5, f"{directory}: profile.db and cct.db differ")
    whole = tool(directory)
    expect(whole.returncode == 0 and whole.stdout == b"".join(tool(directory / n).stdout for n in files),
           f"{directory}: the dump of the directory is not that of its files: {whole.stderr}")
    return len(flat)


def refused(path, words):
    result = tool(path)
    text = result.stderr.decode()
    expect(result.returncode == 1 and text.startswith(f"hpcproftt: {path}: offset ") and text.count("\n") == 1
           and words in text and len(result.stdout) == 0, f"{path.name}: exit {result.returncode}, not '{words}': {text}")


def change(data, offset, layout, value):
    changed = bytearray(data)
    struct.pack_into("<" + layout, changed, offset, value)
    return bytes(changed)


def check_damage(directory, scratch):
    """Each field that leads somewhere, led astray."""
    data = {name: (directory / name).read_bytes() for name in NAMES}
    path = scratch / "meta.db"
    tree = struct.unpack_from("<Q", data["meta.db"], 16 + 3 * 16 + 8)[0]
    entries = struct.unpack_from("<Q", data["meta.db"], tree)[0]
    size, main = struct.unpack_from("<QQ", data["meta.db"], entries)
    for content, words in (
            (data["meta.db"][:-1], "the end mark _meta.db is missing"),
            (change(data["meta.db"], 14, "B", 5), "version 5 of meta.db is not supported"),
            (change(data["meta.db"], 10, "4s", b"what"), "not one of meta.db"),
            (change(data["meta.db"], 24, "Q", 2**63), "section General Properties"),
            (change(data["meta.db"], tree, "Q", 2**64 - 8), "entry points"),
            (change(data["meta.db"], entries, "Q", size - 1), "longer than its list"),
            (change(change(data["meta.db"], main, "Q", size), main + 8, "Q", main), "their own parents"),
            (change(data["meta.db"], main + 32, "Q", 17), "leads to no element"),
            (change(data["meta.db"], main + 20, "B", 7), "its flags need 5")):
        path.write_bytes(content)
        refused(path, words)
    profiles = struct.unpack_from("<QQ", data["profile.db"], 16)[1]
    row = struct.unpack_from("<Q", data["profile.db"], profiles)[0]
    index = struct.unpack_from("<Q", data["profile.db"], row + 56 + 24)[0]
    path = scratch / "profile.db"
    for content, words in ((change(data["profile.db"], row, "Q", 2**60), "values"),
                           (change(data["profile.db"], profiles + 8, "I", 2**31), "profiles"),
                           (change(data["profile.db"], profiles + 12, "B", 8), "at least 44"),
                           (change(data["profile.db"], index + 12 + 4, "Q", 99), "index of values"),
                           (change(data["profile.db"], index, "I", 99), "index of values")):
        path.write_bytes(content)
        refused(path, words)
    path = scratch / "trace.db"
    traces = struct.unpack_from("<QQ", data["trace.db"], 16)[1]
    row = struct.unpack_from("<Q", data["trace.db"], traces)[0]
    path.write_bytes(change(data["trace.db"], row + 8, "Q", 1))
    refused(path, "where none of its records does")


def check_random_damage(directory, scratch):
    """Whatever byte is changed: printed or refused by one line."""
    source = random.Random(4)
    for name in NAMES:
        data = (directory / name).read_bytes()
        for _ in range(25):
            damaged = bytearray(data[:source.choice((len(data), source.randrange(len(data))))])
            if damaged:
                damaged[source.randrange(len(damaged))] = source.randrange(256)
            (scratch / name).write_bytes(damaged)
            result = tool("--json", scratch / name)
            lines = result.stderr.decode().count("\n")
            expect((result.returncode, lines) in ((0, 0), (1, 1)), f"{name}: {result.returncode} {result.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        v4.write_small(scratch / "small")
        n_values = check_database(scratch / "small", scratch)
        check_bad_json(scratch / "small", scratch)
        check_damage(scratch / "small", scratch)
        check_random_damage(scratch / "small", scratch)
        (scratch / "small" / "trace.db").unlink()
        check_database(scratch / "small", scratch)
        (scratch / "small" / "cct.db").unlink()
        result = tool(scratch / "small")
        expect(result.returncode == 1 and b"cct.db" in result.stderr, "a database without cct.db is taken")
        databases = sorted(p.parent for p in DATA.rglob("meta.db")) if DATA.is_dir() else []
        n_values += sum(check_database(directory, scratch) for directory in databases)
    if not databases:
        print(f"SKIP of one part: no databases of HPCToolkit in {DATA} (set LOCUS_SHARED_DATA)")
    for failure in failures[:20]:
        print("FAIL:", failure)
    print(f"1 database made here, {len(databases)} of HPCToolkit, {n_values} values, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
