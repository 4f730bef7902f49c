# SPDX-License-Identifier: BSD-3-Clause
"""What the pages name exists: files, links and their headings, options of our tools, variables of the environment."""
import re

import tree

FILE = re.compile(r"(?<![\w/.-])((?:src|tests|tools|doc)/[\w./*-]*[\w*])")
MADE_UP = re.compile(r"[A-Z]{3,}|/home/|-x\.c$")  # NAME.txt and the like stand for others
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
VARIABLE = re.compile(r"\b((?:HPCRUN|DATACENTRIC|LOCUS|HPCTOOLKIT|HPCFNBOUNDS)_[A-Z_]+)\b")
OPTION = re.compile(r"\b(hpc(?:run|prof|prof-mpi|query|proftt|struct|link|fnbounds|viewer))((?: [^`\n|&;<>]*)?)")
PROGRAM = re.compile(r" (?:\./|srun|--(?= ))")  # what follows belongs to the measured program


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def options_of(tool):
    page = tree.BUILD / f"doc/man/{tool}.1"
    return set(re.findall(r"\\fB(-[\w-]+)\\fR", page.read_text(encoding="utf-8").replace("\\-", "-"))) if page.exists() else None


def check_options(page, text, known):
    for tool, rest in OPTION.findall(text):
        if known.get(tool) is None:
            continue
        for option in re.findall(r"(?<= )(--[a-z][\w-]*)", PROGRAM.split(rest)[0]):
            if option not in known[tool]:
                yield f"{page}: {tool} has no {option}"


def check(page, source, known):
    text = tree.read(page)
    for name in sorted(set(FILE.findall(text))):
        if not MADE_UP.search(name) and not any(tree.ROOT.glob(name)) and not (tree.BUILD / name).exists():
            yield f"{page}: there is no {name}"
    for name, anchor in LINK.findall(text):
        target = (tree.ROOT / page).parent / name if name else tree.ROOT / page
        if not target.exists():
            yield f"{page}: the link to {name} leads nowhere"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{page}: {target.name} has no heading #{anchor}"
    for name in sorted(set(VARIABLE.findall(text))):
        if name not in source:
            yield f"{page}: nothing reads {name}"
    yield from check_options(page, text, known)


def main():
    pages = [path for path in tree.files() if path.suffix == ".md" and (len(path.parts) == 1 or path.parts[0] == "doc")]
    source = "\n".join(tree.read(path) for path in tree.files() if path.suffix in (".c", ".h", ".py", ".sh", ".sbatch"))
    known = {tool: options_of(tool) for tool in {found[0] for page in pages for found in OPTION.findall(tree.read(page))}}
    tree.finish([line for page in pages for line in check(page, source, known)], len(pages))


main()
