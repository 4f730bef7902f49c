# SPDX-License-Identifier: BSD-3-Clause
"""The meta tests can fail: a small tree that breaks every rule once, and the sentence each test must say about it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree

LICENCE = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
WHAT = "/* What for. */\n"
FILES = {
    "src/base/up.c": LICENCE + WHAT + '#include "fmt/x.h"\n#include "../fmt/x.h"\n',
    "src/base/many.c": LICENCE + WHAT + "".join(f'#include "base/h{i}.h"\n' for i in range(11)),
    "src/base/last-sig.c": LICENCE + WHAT + '#include "base/x.h"\n',
    "src/base/x.h": LICENCE + WHAT + "#ifndef LOCUS_X_H\n#define LOCUS_X_H\n#endif\n",
    "src/odd/x.c": LICENCE + WHAT,
    "src/base/long.c": LICENCE + WHAT + "void f(void)\n{\n" + "    g();\n" * 101 + "}\n" + "\n" * 900,
    "src/base/wide.c": LICENCE + WHAT + "/* " + "x" * 120 + " */\n\tint tab;\n",
    "src/base/bare.c": WHAT,
    "src/base/silent.c": LICENCE + "int x;\n",
    "src/base/Camel_case.c": LICENCE + WHAT,
    "src/base/undocumented.h": LICENCE + WHAT + "#ifndef LOCUS_A_H\n#define LOCUS_A_H\n\nint f(void);\n#endif\n",
    "src/base/dead.c": LICENCE + WHAT + "#if 0\n#endif\ntypedef struct a a;\nvoid f(void)\n{\n"
                       "    /* x = f(1); */\n    exit(1);\n}\n",
    "src/base/voice.c": LICENCE + WHAT + "int f(void)\n{\n    return error_set(err, 1, \"%s: The file has gone\", p) +\n"
                        "           error_set(err, 1, \"failed to open the file\");\n}\n",
    "src/base/note.c": LICENCE + WHAT + "/* TO" "DO */\n",
    "src/export/export-a.c": LICENCE + WHAT + "const struct report_kind answer_a = {\n    .name = \"apples\",\n};\n",
    "src/answer/reports.c": LICENCE + WHAT + "answer_a\n",
    "tools/hpcquery/list.c": LICENCE + WHAT + "char *all = \"pears, apples\";\n",
    "src/export/other.c": LICENCE + WHAT + "answer_a\n",
    "src/fmt/wait.c": LICENCE + WHAT + "int f(void)\n{\n    return open(path, O_RDONLY);\n}\n",
    "src/base/obj-sig.c": "int printf(const char *, ...);\nint shared;\nint entry(void) { return printf(\"\"); }\n",
    "src/base/obj-hook.c": "void *malloc(unsigned long);\nvoid *obj_hook(void) { return malloc(1); }\n",
    "dev": LICENCE + "required=(gcc)\nfor_tests=(python3 procps)\n",
    "tests/meta/commands.tsv": "awk\tmawk\tbase\nperf\tlinux-perf\npgrep\tprocps\nodd\t-\nunused\tgcc\n",
    "tests/e2e/calls.sh": "x=$(seldom <in | awk -c) || if ! \"$hpcrun\" -o m -- rare \"$x\"; then pgrep; fi\n"
                          "f() {\n    shift\n    timeout 9 \"$@\"\n}\nf seven perf\ntrap 'odd; quaint' EXIT\n"
                          "# comment\ncat <<'END'\ndocument\nEND\ncase $x in pattern) again ;; esac\n",
    "tests/e2e/calls.py": "import subprocess\nsubprocess.run(['scarce', '-x'])\n",
    "CONTRIBUTING.md": "## A code tour\n\n1. `src/base/nowhere.c` `f`: here.\n2. `src/base/deep-sig.c` `nobody`: there.\n"
                       "3. somewhere\n",
    "debian/rules": "",
    "src/arena/arena.h": LICENCE + WHAT + "struct odd {\n    int a, b[2];\n};\n",
    "tests/Makefile.am": "a: b\n\t$(AM_V_GEN)unwonted $(X) >$@\n",
    "src/base/deep-sig.c": LICENCE + WHAT + "void g_sig(char *);\nvoid f_sig(void);\nvoid f_sig(void)\n"
                           "{\n    char big[5000];\n    g_sig(big);\n}\n"
                           "int r_sig(int n, int (*p)(int));\nint r_sig(int n, int (*p)(int))\n"
                           "{\n    return n ? p(r_sig(n - 1, p)) : 2;\n}\n",
    **{f"tests/golden/small/{i}": "" for i in range(1300)},
}
MUST_SAY = {
    "layering.py": ["up.c includes fmt/x.h", "write the path from src/", "has 11 own includes",
                    "last-sig.c: the last include", "folder src/odd is not"],
    "sizes.py": ["long.c has", "f has 101 lines", "columns, at most 120", "holds a tab", "tracked files: "],
    "style.py": ["bare.c has no SPDX", "silent.c does not say", "Camel_case.c: names", "f has no docstring",
                 "switched off", "typedef of a struct", "code in a comment", "ends the process", "note.c:3",
                 "calls.sh has the same log", "voice.c:5 an error goes on in lower case", "nothing of ours says: failed to"],
    "opens.py": ["wait.c opens by open(path, O_RDONLY)"],
    "one-row.py": ["answer_a occurs in", "tools/hpcquery/list.c names the report apples", "nothing runs tests/e2e/calls.sh"],
    "symbols.py": ["refers to printf", "refers to malloc", "global variable shared", "entry point entry of"],
    "commands.py": ["calls.sh:1 calls seldom,", "calls.sh:1 calls rare,", "calls.sh:6 calls perf of linux-perf",
                    "calls.sh:7 calls quaint,", "calls.sh:12 calls again,", "calls.py:2 calls scarce,",
                    "calls unwonted,", "odd is not in Debian 12", "nothing calls unused"],
    "layout.py": ["there is no SIZE(odd, ", "there is no FIELD(odd, b, "],
    "tour.py": ["there is no src/base/nowhere.c", "deep-sig.c does not define nobody", "names no file and function"],
    "stack.py": ["f_sig needs 5", "recursion: r_sig > r_sig", "r_sig calls through a pointer"],
}


def main():
    for needed in ("gcc", "git"):
        if not shutil.which(needed):
            tree.skip(f"{needed} is not installed")
    offenders = []
    with tempfile.TemporaryDirectory() as top:
        for name, text in FILES.items():
            path = pathlib.Path(top) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        subprocess.run(["git", "init", "-q", top], check=True)
        for name in ("obj-sig", "obj-hook"):
            subprocess.run(["gcc", "-c", f"src/base/{name}.c", "-o", f"src/base/{name}.o"], cwd=top, check=True)
        environment = dict(os.environ, LOCUS_SRCDIR=top, LOCUS_BUILDDIR=top)
        for test, sentences in MUST_SAY.items():
            done = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / test)], env=environment,
                                  capture_output=True, text=True, check=False)
            if done.returncode != 1:
                offenders.append(f"{test} ends with {done.returncode} on a tree full of faults: {done.stderr}")
            offenders += [f"{test} does not find: {s}" for s in sentences if s not in done.stdout]
    tree.finish(offenders, sum(map(len, MUST_SAY.values())))


main()
