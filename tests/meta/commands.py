# SPDX-License-Identifier: BSD-3-Clause
"""Every command that a script, a make rule or a Python test calls belongs to a package that ./dev installs, or to those
that every Debian has (base). commands.tsv says which package; where dpkg knows the command, the two are compared."""
import ast
import os
import re
import shutil
import subprocess
import sys

import shell
import tree

TABLE = "tests/meta/commands.tsv"
NOT_IN_DEBIAN = "-"
BASE = "base"
SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/games"
OWN = {"hpcrun", "hpcprof", "hpcprof-mpi", "hpcquery", "hpcstruct", "hpcfnbounds", "hpclink", "hpcproftt", "hpcviewer"}
STARTS_PROCESSES = re.compile(r"^(subprocess\.(run|Popen|call|check_call|check_output)|os\.(system|popen|exec\w+|spawn\w+))$")
FINDS_COMMANDS = re.compile(r"(^|\.)(which|utility)$")
# What may be called where, in the order of the rules: the lists of ./dev, after those of every test.
EXTRA_LISTS = ((r"dev$", ["for_lint", "for_full"]), (r"tests/suites/|tests/lib/bare-root|debian/", ["for_full"]))


# --- what is called -----------------------------------------------------------------------------------------------------


def is_shell(path):
    if path.suffix in (".sh", ".sbatch"):
        return True
    return not path.suffix and re.match(r"#!.*\b(ba)?sh\b", tree.read(path)) is not None


def shell_calls(paths):
    """{path: [(name, line)]} of the shell scripts, without what the scripts define themselves."""
    scans = {path: shell.commands(tree.read(path)) for path in paths}
    by_name = {path.name: path for path in paths}
    known = {path: set(scan[1]) for path, scan in scans.items()}
    for _ in range(3):  # files that read in others see their functions, and the other way round
        for path, (_, _, sourced) in scans.items():
            for name in sourced & by_name.keys():
                both = known[path] | known[by_name[name]]
                known[path], known[by_name[name]] = both, both
    shared = set().union(*(scan[1] for path, scan in scans.items() if path.parts[:2] == ("tests", "lib")))
    return {path: [(n, at) for n, at in calls if n not in known[path] | shared and n not in shell.BUILTINS]
            for path, (calls, _, _) in scans.items()}


def make_calls(text):
    """The commands of the rules of a makefile; what make itself expands is not known."""
    text = re.sub(r"\\\n", lambda _: " ", text)
    rules = "\n".join(re.sub(r"^[-@+]*", "", line[1:]) if line.startswith("\t") else "" for line in text.split("\n"))
    rules = re.sub(r"\$\(AM_V_\w+\)", "", rules)
    rules = re.sub(r"(?<!\$)\$[({][^(){}]*[)}]|(?<!\$)\$[@<*^?]", "@/", rules).replace("$$", "$")
    return [(name.lstrip("@-"), line) for name, line in shell.commands(rules)[0] if name not in shell.BUILTINS]


class PythonCalls(ast.NodeVisitor):
    """Constant names at the places where subprocess, or a helper around it, takes the command."""

    def __init__(self, module):
        self.found, self.helpers = [], {}
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef):
                self.note_helper(node.name, node.args, node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                self.note_helper(getattr(node.targets[0], "id", ""), node.value.args, node.value)
        self.visit(module)

    def note_helper(self, name, arguments, body):
        """A function whose parameter is the whole command, or the first word of it."""
        names = [a.arg for a in arguments.args] + ([arguments.vararg.arg] if arguments.vararg else [])
        for call in (n for n in ast.walk(body) if isinstance(n, ast.Call) and self.starts(n) and n.args):
            first = call.args[0]
            while isinstance(first, (ast.List, ast.Tuple)) and first.elts:
                first = first.elts[0]
            if isinstance(first, (ast.Starred, ast.ListComp)):
                first = first.value if isinstance(first, ast.Starred) else first.generators[0].iter
            if isinstance(first, ast.BinOp):
                first = first.left
            used = {n.id for n in ast.walk(first) if isinstance(n, ast.Name)}
            for position, parameter in enumerate(names):
                if parameter in used:
                    self.helpers[name] = position

    @staticmethod
    def starts(call):
        return bool(STARTS_PROCESSES.match(ast.unparse(call.func)))

    def take(self, node, in_shell=False):
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            words = [e.value if isinstance(e, ast.Constant) and isinstance(e.value, str) else "\0" for e in node.elts]
            self.take_words(words, node.lineno)
        elif isinstance(node, ast.BinOp):
            self.take(node.left)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if in_shell:
                self.found += shell.commands(node.value)[0]
            else:
                self.found.append((node.value, node.lineno))

    def take_words(self, words, line):
        quoted = " ".join("$x" if "\0" in w else "'" + w.replace("'", "") + "'" for w in words)
        self.found += [(name, line) for name, _ in shell.commands(quoted)[0]]

    def visit_Call(self, node):
        name = ast.unparse(node.func)
        if self.starts(node) and node.args:
            self.take(node.args[0], any(k.arg == "shell" for k in node.keywords) or name == "os.system")
        elif FINDS_COMMANDS.search(name) and node.args:
            self.take(node.args[0])
        elif name in self.helpers and self.helpers[name] < len(node.args):
            at = self.helpers[name]
            if isinstance(node.args[at], ast.Constant):
                self.take(ast.Tuple(node.args[at:], lineno=node.lineno))
            else:
                self.take(node.args[at])
        self.generic_visit(node)


def calls_of_tree():
    """[(path, line, name)] of all that is called by name."""
    paths = tree.files()
    found = [(p, line, n) for p, calls in shell_calls([p for p in paths if is_shell(p)]).items() for n, line in calls]
    for path in paths:
        if path.suffix == ".py" and path.parts[0] == "tests":
            found += [(path, line, n) for n, line in PythonCalls(ast.parse(tree.read(path))).found]
        elif path.suffix == ".am" or str(path) == "debian/rules":
            found += [(path, line, n) for n, line in make_calls(tree.read(path))]
    plain = re.compile(r"[\w.+-]+")
    return [(p, line, n) for p, line, n in found if plain.fullmatch(n) and not n.startswith("-")
            and n not in shell.BUILTINS and n not in OWN]


# --- where it comes from ------------------------------------------------------------------------------------------------


def dev_lists():
    text = tree.read("dev")
    lists = {}
    for name, packages in re.findall(r"(\w+)\+?=\(([^()$]*)\)", text):
        lists.setdefault(name, set()).update(re.sub(r"#.*", "", packages).split())
    return lists


def allowed(path, lists):
    """The packages that are there when a file of this path runs."""
    made_first = path.suffix == ".am" and path.parts[0] != "tests"
    extra = [name for pattern, names in EXTRA_LISTS if re.match(pattern, str(path)) for name in names]
    if str(path) in full_tests():
        extra += ["for_full"]
    base = ["required"] if made_first else ["required", "for_tests"]
    return set().union(*(lists.get(name, set()) for name in base + extra))


def full_tests():
    found = set()
    for path in (p for p in tree.files() if p.suffix == ".am"):
        text = tree.read(path).replace("\\\n", " ").replace("%D%", str(path.parent))
        for line in re.findall(r"^FULL_TESTS \+?=(.*)$", text, re.M):
            found.update(line.split())
    return found


def dpkg(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout.splitlines()


def of_every_debian():
    lines = dpkg("dpkg-query", "-W", "-f=${Package} ${Essential} ${Priority}\n")
    found = {line.split()[0] for line in lines if line.split()[1:2] == ["yes"] or line.endswith(" required")}
    return found | {"apt"}  # which installed everything else


def places_of(command):
    """The names under which dpkg may know a command: itself and what it is a link to, with and without /usr."""
    at, found = shutil.which(command, path=SYSTEM_PATH), []
    while at and len(found) < 8:
        bare = re.sub(r"^/usr(?=/s?bin/)", "", at)
        found += [bare, "/usr" + bare if re.match(r"/s?bin/", bare) else at]
        if not os.path.islink(at):
            break
        at = os.path.normpath(os.path.join(os.path.dirname(at), os.readlink(at)))
    return found


def owners_of(commands):
    """{command: packages} for those that dpkg knows on this machine."""
    places = {command: places_of(command) for command in commands}
    owners = {}
    for line in dpkg("dpkg", "-S", *sorted({p for ps in places.values() for p in ps})):
        packages, _, path = line.partition(": ")
        owners.setdefault(path, set()).update(p.split(":")[0] for p in packages.split(", ") if "diversion" not in p)
    found = {c: set().union(*(owners.get(p, set()) for p in ps)) for c, ps in places.items()}
    return {c: o for c, o in found.items() if o}


def needed_by(package):
    """What a package depends on: python3 is of python3-minimal, which comes with python3."""
    text = ",".join(dpkg("dpkg-query", "-W", "-f=${Pre-Depends},${Depends}", package))
    return {name.split()[0].split(":")[0] for name in re.split(r"[,|]", text) if name.strip()}


def check_table(rows):
    """The table itself, where there is dpkg."""
    for row in rows:
        if row[1] == NOT_IN_DEBIAN and len(row) < 3:
            yield f"{TABLE}: {row[0]} is not in Debian 12: what does the test do without it?"
    if not shutil.which("dpkg-query"):
        return
    every = of_every_debian()
    owners = owners_of([row[0] for row in rows])
    for name, package, *more in rows:
        if not owners.get(name, {package}) & {package, *needed_by(package)}:
            yield f"{TABLE}: {name} is of {', '.join(sorted(owners[name]))}, not of {package}"
        if more == [BASE] and package not in every:
            yield f"{TABLE}: {package} is not on every Debian"


def main():
    rows = [line.split("\t") for line in tree.read(TABLE).splitlines() if line and line[0] != "#"]
    table = {row[0]: row for row in rows}
    calls, lists = calls_of_tree(), dev_lists()
    offenders = list(check_table(rows))
    for path, line, name in calls:
        row = table.get(name)
        if row is None:
            offenders.append(f"{path}:{line} calls {name}, of which {TABLE} does not say the package")
        elif row[2:] != [BASE] and row[1] != NOT_IN_DEBIAN and row[1] not in allowed(path, lists):
            offenders.append(f"{path}:{line} calls {name} of {row[1]}, which ./dev does not install for it")
    if (tree.ROOT / "debian").exists():  # a tarball has not everything that calls
        offenders += [f"{TABLE}: nothing calls {name}" for name in sorted(table.keys() - {n for _, _, n in calls})]
    if "--list" in sys.argv:
        print("\n".join(sorted({f"{n}\t{p}:{line}" for p, line, n in calls})))
    tree.finish(sorted(set(offenders)), len(calls))


if __name__ == "__main__":
    main()
