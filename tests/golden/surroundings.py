# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery, hpcprof and liblocus wherever they are started: in other languages, with standard streams closed or full, with outputs
that are links, inputs that may not be read, chains of very many steps, and names that other formats cannot hold."""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
SANITIZED = bool(os.environ.get("LOCUS_SANITIZER"))
PACKAGE = BUILD / ".libs" / "liblocus.so"
HAS_PACKAGE = PACKAGE.exists() and "LOCUS_EMULATED" not in os.environ
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import v4  # noqa: E402

LANGUAGES = (("de_DE.UTF-8", "de_DE", "UTF-8"), ("tr_TR.UTF-8", "tr_TR", "UTF-8"), ("tr_TR", "tr_TR", "ISO-8859-9"))
WORDS = (["filter", "time > 0.5 AND name IS NOT MISSING", ":", "csv", "v4"], ["filter", "MIN(time, 1.5) > 0.25", ":", "csv", "v4"],
         ["query", 'MATCH (".", p) WHERE NOT p."line" IS NAN', ":", "csv", "v4"], ["query", '[{"time": "> 0.5"}]', ":", "csv", "v4"],
         ["dot", "v4"], ["csv", "caliper.json"], ["csv", "gprof.dot"])
PROGRAM = """
import locale, sys
locale.setlocale(locale.LC_ALL, sys.argv[1])
import locus
frame = locus.Frame.open(sys.argv[2])
column = frame.columns[-1]
print([str(v) for v in frame.values(column)], frame.find('[{"%s": "> 1.5"}]' % column),
      frame.run("filter", "'%s' > 2.5 OR line IS MISSING" % column).names, frame.group("line").names)
"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(scratch, tool, *words, **options):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100", **options.pop("environment", {})}
    return subprocess.run([str(BUILD / tool), *words], cwd=scratch, capture_output=not {"stdout", "stderr"} & set(options),
                          check=False, env=environment, **options)


def make_inputs(scratch):
    for path in (bundle.golden("readers") / "inputs").iterdir():
        (scratch / path.name).symlink_to(path)
    v4.write_small(scratch / "v4")
    profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)])
    profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 7}, m.reason("DATACENTRIC_No_Compute"))
    profile.write(scratch / "measured")
    expect(run(scratch, "hpcprof", "-q", "-o", "ours", "measured").returncode == 0, "hpcprof makes no database")


# --- languages ---


def make_languages(folder):
    """Those whose words and numbers are not like in English."""
    if not shutil.which("localedef") or not pathlib.Path("/usr/share/i18n/locales/tr_TR").exists():
        print("SKIP: other languages: there is no localedef, or nothing that it could make them of")
        return []
    folder.mkdir()
    for name, source, charset in LANGUAGES:
        subprocess.run(["localedef", "-i", source, "-f", charset, str(folder / name)], capture_output=True, check=False)
    return [name for name, _, _ in LANGUAGES if (folder / name).exists()]


def check_languages(scratch):
    languages = make_languages(scratch / "languages")
    if not HAS_PACKAGE:
        print("SKIP (part): liblocus.so has not been built for this Python: the package is not asked")
    for name in languages:
        there = {"LC_ALL": name, "LOCPATH": str(scratch / "languages")}
        for words in WORDS:
            here, made = run(scratch, "hpcquery", *words), run(scratch, "hpcquery", *words, environment=there)
            expect(here.returncode == 0 and made.stdout == here.stdout, f"{words} in {name}: {made} and not {here}")
        for path in () if SANITIZED or not HAS_PACKAGE else ("v4", "caliper.json", "gprof.dot", "callgrind.out", "literal.json"):
            texts = [ask_package(scratch, language, path, there) for language in ("C", name)]
            expect(texts[0] and texts[0] == texts[1], f"liblocus on {path} in {name}: {texts}")


def ask_package(scratch, language, path, environment):
    more = {"PYTHONPATH": str(SOURCE / "python"), "LOCUS_LIBRARY": str(PACKAGE), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, language, path], cwd=scratch, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment, **more})
    expect(done.returncode == 0, f"{path} in {language}: {done.stderr}")
    return done.stdout


# --- streams and outputs ---


def check_closed(scratch):
    """A closed stream is nobody's file: what is written elsewhere has no word of it."""
    for words in (["vars", "ours"], ["csv", "v4"], ["export", "html", "ours"]):
        line = f'exec "{BUILD}/hpcquery" ' + " ".join(words)
        whole = run(scratch, "hpcquery", *words).stdout
        done = subprocess.run(["bash", "-c", line + " >&- 2>message"], cwd=scratch, check=False)
        message = (scratch / "message").read_text()
        expect(done.returncode == 1 and message.count("\n") == 1 and "Bad file descriptor" in message, f"{words} >&-: {message}")
        done = subprocess.run(["bash", "-c", line + " -o out <&- >&- 2>&-"], cwd=scratch, check=False)
        expect(done.returncode == 0 and (scratch / "out").read_bytes() == whole, f"{words} -o out without streams: {done}")
    for name, streams in (("with", ""), ("without", " <&- >&- 2>&-")):
        subprocess.run(["bash", "-c", f'exec "{BUILD}/hpcprof" -v -o {name} measured{streams}'], cwd=scratch, check=False,
                       capture_output=True)
    for path in sorted(path for path in (scratch / "with").rglob("*") if path.is_file()):
        other = scratch / "without" / path.relative_to(scratch / "with")
        expect(other.exists() and path.read_bytes() == other.read_bytes(), f"{path.name} is another one without streams")


def check_full(scratch):
    for tool, words in (("hpcquery", ["vars", "ours"]), ("hpcquery", ["--help"]), ("hpcquery", ["--list-metrics", "ours"]),
                        ("hpcprof", ["--version"]), ("hpcproftt", ["v4"]), ("hpcrun", ["--help"])):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = run(scratch, tool, *words, stdout=full, stderr=subprocess.PIPE)
        expect(done.returncode == 1 and done.stderr.count(b"\n") == 1, f"{tool} {words} to a full device: {done}")


def check_links(scratch):
    """What a link leads to is written, and the link stays: /dev/stdout is one. A file is replaced as a whole."""
    whole = run(scratch, "hpcquery", "csv", "v4").stdout
    (scratch / "target").write_text("before")
    (scratch / "link").symlink_to("target")
    done = run(scratch, "hpcquery", "csv", "-o", "link", "v4")
    expect(done.returncode == 0 and (scratch / "link").is_symlink() and (scratch / "target").read_bytes() == whole, f"-o link: {done}")
    (scratch / "stdout").symlink_to("/proc/self/fd/1")
    with open(scratch / "printed", "wb") as printed:
        done = run(scratch, "hpcquery", "csv", "-o", "stdout", "v4", stdout=printed, stderr=subprocess.PIPE)
    expect(done.returncode == 0 and (scratch / "stdout").is_symlink() and (scratch / "printed").read_bytes() == whole,
           f"-o a link to the standard output, which is a file: {done}")


def check_places(scratch):
    done = run(scratch, "hpcprof", "-q", "-o", "both", "--xml", "both/", "measured")
    expect(done.returncode == 1 and b"this is the database" in done.stderr and (scratch / "both" / "locus.db").exists(),
           f"--xml into the database: {done}")
    for name in ("frame.db", "meta.db", "experiment.xml"):
        folder = scratch / ("odd-" + name)
        folder.mkdir()
        os.mkfifo(folder / name)
        done = run(scratch, "hpcquery", "csv", str(folder))
        expect(done.returncode == 1 and name.encode() in done.stderr and b"not a regular file" in done.stderr, f"{folder}: {done}")


# --- very many, very odd ---


def check_chains(scratch):
    """Operations look at what they were made from only some steps back."""
    for step, n in ((["flat"], 60000), (["inclusive"], 30000), (["filter", "time >= 0"], 3000)):
        once, often = (run(scratch, "hpcquery", *(([*step, ":"]) * k), "csv", "literal.json") for k in (2, n))
        expect(once.returncode == 0 and often.stdout == once.stdout, f"{n} times {step}: {often.returncode} {often.stderr[:300]}")
    derived = [word for i in range(1, 1500) for word in ("--derive", f"a{i} = {'time' if i == 1 else f'a{i - 1}'} + 1")]
    some = run(scratch, "hpcquery", "csv", *derived[:1000], "literal.json")
    header, *rows = csv.reader(io.StringIO(some.stdout.decode()))
    sums = [(row[header.index("a500")], row[header.index("time")]) for row in rows if row[header.index("time")]]
    expect(sums and all(float(a) == float(time) + 500 for a, time in sums), f"a formula over 499 others: {some.stderr[:300]} {sums}")
    many = run(scratch, "hpcquery", "csv", *derived, "literal.json")
    expect(many.returncode == 1 and b"more than 1000 columns" in many.stderr, f"1499 formulas: {many.stderr[:300]}")


def check_names(scratch):
    names = ["main", " ", "", "(2)", "f" * 70000, "g;h", "\n", '"']
    tree = [{"frame": {"name": name, "type": "function"}, "metrics": {"time": 1}, "children": []} for name in names]
    (scratch / "odd.json").write_text(json.dumps([{"frame": {"name": "all", "type": "function"}, "metrics": {"time": 1}, "children": tree}]))
    with open(scratch / "odd.callgrind", "wb") as out:
        run(scratch, "hpcquery", "callgrind", "odd.json", stdout=out, stderr=subprocess.PIPE)
    back = run(scratch, "hpcquery", "csv", "odd.callgrind")
    expect(back.returncode == 0 and back.stdout.count(b"\n") == 1 + len(tree), f"names from callgrind's form: {back.stderr} {back.stdout}")
    drawn = run(scratch, "hpcquery", "dot", "odd.json").stdout
    longest = max(len(text) for text in drawn.split(b'"'))
    expect(1000 < longest < 16384, f"a text in DOT has {longest} bytes")


def main():
    with tempfile.TemporaryDirectory(prefix="locus-test.") as name:
        scratch = pathlib.Path(name)
        make_inputs(scratch)
        for check in (check_languages, check_closed, check_full, check_links, check_places, check_chains, check_names):
            check(scratch)
    for failure in failures[:20]:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
