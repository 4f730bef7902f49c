# SPDX-License-Identifier: BSD-3-Clause
"""choice.py HPCQUERY DB REPORT...: --top and --min leave the same rows out of each form of a report, the rows that are
shown are those that --top 0 --min 0 has, in their order, and no row that is left out has a larger share than one that is
shown. Also a module: problems() gives a sentence for each difference."""
import csv
import io
import json
import os
import re
import subprocess
import sys

# A row is tried where a test of its report calls problems().
# What names a row in CSV, where one row can have several lines; the list of rows in JSON; whether a row of text begins
# with its share.
REPORTS = {
    "vars": (("variable", "class", "alloc_site"), "variables", True),
    "functions": (("function", "file", "line", "module"), "functions", True),
    "lines": (("function", "file", "line", "module"), "lines", True),
    "types": (("type", "size_bytes"), "types", False),
    "tree": (("id",), "nodes", False),
    "datatree": (("id",), "nodes", False),
    "advice": (("variable", "class", "alloc_site", "rule", "place"), "advice", True),
    "leaks": (("variable", "alloc_site", "path"), "paths", False),
    "cpus": (("host", "cpu"), "rows", True),
    "numa": (("variable", "class", "alloc_site"), "variables", False),
    "first-touch": (("variable", "class", "alloc_site"), "variables", True),
    "patterns": (("variable", "class", "alloc_site"), "variables", True),
    "alignment": (("variable", "class", "alloc_site"), "variables", True),
    "sharing": (("variable", "other_variable", "line_address", "offset", "process"), "lines", False),
}
# Rows that are about all of the CPU time, and are there whatever is chosen.
ALWAYS = ("<kernel>",)
CHOICES = (("--top", "1"), ("--top", "2"), ("--top", "3"), ("--min", "5"), ("--min", "20"), ("--min", "90"), ("--top", "2", "--min", "5"))


def ask(hpcquery, *words):
    done = subprocess.run([str(hpcquery), *map(str, words)], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C", "COLUMNS": "200"})
    if done.returncode:
        raise ValueError(f"{words}: status {done.returncode}: {done.stderr}")
    return done.stdout


def rows_of_csv(text, names):
    """The rows by what names them, in their order, each with its share where there is one."""
    rows = {}
    for line in csv.DictReader(io.StringIO(text)):
        share = max((float(line[key]) for key in ("share", "own_share", "percent") if line.get(key)), default=None)
        name = tuple(line.get(name) for name in names)
        if "cpu" in names and name in rows:  # a line for each thread and variable
            rows[name] += share
        elif line.get("variable") not in ALWAYS:
            rows.setdefault(name, share)
    return rows


def rows_of_text(text):
    return [line for line in text.splitlines() if re.match(r" {0,4}\d+\.\d %", line) and not
            re.search(r"\d more \(--|<kernel> |user code  |is no variable", line)]


def problems(hpcquery, database, reports=tuple(REPORTS)):
    for report in reports:
        names, key, is_text_known = REPORTS[report]
        whole = rows_of_csv(ask(hpcquery, report, "--csv", "--top", "0", "--min", "0", database), names)
        usual = rows_of_csv(ask(hpcquery, report, "--csv", "--top", "0", database), names)
        if not whole:
            yield f"{report} has no rows"
        for choice in CHOICES:
            chosen = rows_of_csv(ask(hpcquery, report, "--csv", *choice, database), names)
            in_json = [row for row in json.loads(ask(hpcquery, report, "--json", *choice, database))[key]
                       if row.get("variable") not in ALWAYS]
            in_text = rows_of_text(ask(hpcquery, report, *choice, *(() if "--top" in choice else ("--top", "0")), database))
            where = f"{report} {' '.join(choice)}"
            if len(in_json) != len(chosen):
                yield f"{where}: {len(chosen)} rows in CSV, {len(in_json)} in JSON"
            if is_text_known and len(in_text) != len(chosen):
                yield f"{where}: {len(chosen)} rows in CSV, {len(in_text)} in text: {in_text}"
            if list(chosen) != [name for name in whole if name in chosen]:
                yield f"{where}: {list(chosen)} is not a part of {list(whole)}"
            if "--top" in choice and len(chosen) > int(choice[1]):
                yield f"{where}: {len(chosen)} rows"
            if "--min" not in choice and len(chosen) != min(int(choice[1]), len(usual)):
                yield f"{where}: {len(chosen)} of {len(usual)} rows"
            if report == "advice" or "--min" in choice:  # in the order of what it may gain; code: with callees
                continue
            left = [share for name, share in whole.items() if name not in chosen and share is not None]
            shares = [share for share in chosen.values() if share is not None]
            if shares and left and max(left) > min(shares) + 1e-9:
                yield f"{where}: a row with {max(left)} % is left out, one with {min(shares)} % is shown"


def main():
    found = list(problems(sys.argv[1], sys.argv[2], sys.argv[3:] or tuple(REPORTS)))
    print(*found, sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
