# SPDX-License-Identifier: BSD-3-Clause
"""What is extensible by one file and one row stays so: the identifier of a source, metric, exporter or operator occurs
in its own file and in the table, and nowhere else. A script of the tests is in a list of tests, or another one uses it."""
import re

import tree

# folder, file names of the things, file of the table, struct of a thing
KINDS = (
    ("src/sampling", r"source-(?!.*-sig)[\w-]+\.c$", "sources.c", "sample_source"),
    ("src/analysis", r"metric-[\w-]+\.c$", "metrics.c", "metric"),
    ("src/export/frames", r"form-[\w-]+\.c$", "forms.c", "frame_form"),
    ("src/frame", r"reader-[\w-]+\.c$", "readers.c", "frame_reader"),
    ("src/streams", r"reader-[\w-]+\.c$", "readers.c", "stream_reader"),
)

REPORTS = "src/answer/reports.c"
REPORT_ROOMS = ("src/answer", "src/table", "src/base", "tools/hpcquery")
COMMON = ("lines", "types", "functions", "numa", "advice")  # words of sentences
SCRIPTS = ("tests/e2e", "tests/explore", "tests/golden", "tests/unit")


def check_kind(texts, folder, pattern, table, struct):
    """(offenders, number of things found); texts: of each source, without comments."""
    offenders, n_found = [], 0
    for path, text in texts.items():
        if str(path.parent) != folder or not re.match(pattern, path.name):
            continue
        names = re.findall(rf"^(?:extern )?const struct {struct}\w* (\w+)(?:\[\])?\s*=", text, re.M)
        if not names:
            offenders.append(f"{path} defines no const struct {struct}")
        for name in names:
            n_found += 1
            users = {str(p) for p, t in texts.items() if name in t and re.search(rf"\b{name}\b", t)}
            if users != {str(path), f"{folder}/{table}"}:
                offenders.append(f"{name} occurs in {', '.join(sorted(users))}, not just in {path} and {table}")
    return offenders, n_found


def named_in(text, word):
    """Whether a literal of a source names a report: has its word, or is no more than it where people use the word, too."""
    literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)
    return any(word == literal or word not in COMMON and re.search(rf"(?<![\w-]){word}(?![\w-])", literal) for literal in literals)


def check_reports(texts):
    """The same of reports, which are where their columns are, a file for one or two of them. What prints any report, and
    the tool that asks for it, do not know its word either."""
    offenders, names = [], []
    said = {p: re.sub(r"/\*.*?\*/", "", tree.read(p), flags=re.S) for p in texts}
    for path, text in said.items():
        for name, word in re.findall(r'^const struct report_kind (answer_\w+) = \{(?:\s*\.name = "([\w-]+)")?', text, re.M):
            names.append(name)
            users = {str(p) for p, t in texts.items() if re.search(rf"\b{name}\b", t)}
            if users != {str(path), REPORTS}:
                offenders.append(f"{name} occurs in {', '.join(sorted(users))}, not just in {path} and {REPORTS}")
            is_form = (tree.ROOT / f"src/export/frames/form-{word}.c").exists()
            offenders += [f"{p} names the report {word}: reports.c has the list" for p, t in said.items() if word and not is_form
                          and str(p.parent) in REPORT_ROOMS and p != path and named_in(t, word)]
    return offenders, len(names)


def check_scripts():
    """(offenders, number of scripts): what nobody names never runs."""
    users = {p: tree.read(p) for p in tree.files() if p.suffix in (".am", ".sh", ".py", ".c") and p.parts[0] != "doc"}
    scripts = [p for p in users if p.suffix in (".sh", ".py") and p.parent.as_posix() in SCRIPTS]
    return [f"nothing runs {script}: it is in no list of tests" for script in scripts
            if not any(script.name in text and re.search(rf"(?<![\w-]){re.escape(script.name)}(?!\w)", text)
                       for user, text in users.items() if user != script)], len(scripts)


def main():
    offenders, checked = check_scripts()
    texts = {p: tree.without_comments(tree.read(p)) for p in tree.sources(".c")}
    if (tree.ROOT / REPORTS).exists():
        found, n_found = check_reports(texts)
        offenders += found
        checked += n_found
    for kind in KINDS:
        found, n_found = check_kind(texts, *kind)
        if not n_found and not found and (tree.ROOT / kind[0]).exists():
            offenders.append(f"{kind[0]} has no {kind[3]}: CONTRIBUTING.md says how to add one")
        offenders += found
        checked += n_found
    tree.finish(offenders, checked)


main()
