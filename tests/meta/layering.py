# SPDX-License-Identifier: BSD-3-Clause
"""Who may include whom. The table is the architecture: a folder sees its own headers and those of the folders listed
here, so that no cycle can arise."""
import re

import tree

MAY_SEE = {
    "src/base": [],
    "src/arena": ["base"],
    "src/fmt": ["base", "arena", "sampling/abi"],
    "src/measurement": ["base", "arena", "fmt"],
    "src/symnames": ["base"],
    "src/collect": ["base", "arena", "fmt", "measurement", "symnames", "sampling/abi"],
    "src/companion": ["base", "arena", "fmt", "measurement", "symnames", "collect", "fnbounds"],
    "src/import": ["base", "fmt", "sampling/abi"],
    "src/fnbounds": ["base"],
    "src/sampling": ["base"],
    "src/alloc-wrap": ["base"],
    "src/runtime": ["base", "arena", "fnbounds", "sampling", "alloc-wrap"],
    "src/structure": ["base", "fnbounds"],
    "src/analysis": ["base", "arena", "fmt", "measurement", "symnames", "collect", "import", "fnbounds", "sampling/abi",
                     "structure"],
    "src/export": ["base", "arena", "fmt", "measurement", "fnbounds", "structure", "analysis"],
    "tools": ["base", "arena", "fmt", "measurement", "symnames", "collect", "companion", "import", "fnbounds",
              "sampling", "structure", "analysis", "export"],
}
FOLDERS = [f.removeprefix("src/") for f in MAY_SEE if f.startswith("src/")]
OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
MAX_OWN_INCLUDES = 10


def folder_of(path):
    return path.parts[0] if path.parts[0] == "tools" else "/".join(path.parts[:2])


def allowed(path, included):
    if "/" not in included:
        return True
    folder = folder_of(path)
    own = folder.removeprefix("src/")
    return any(included.startswith(seen + "/") for seen in [own] + MAY_SEE[folder])


def check(path):
    text = tree.read(path)
    includes = OWN_INCLUDE.findall(text)
    for included in includes:
        if included.split("/")[0] in FOLDERS + ["tools"] and not allowed(path, included):
            yield f"{path} includes {included}; {folder_of(path)} may see only {MAY_SEE[folder_of(path)]}"
        if included.startswith(".."):
            yield f"{path} includes {included}: write the path from src/"
        local = (tree.ROOT / path).parent / included
        if "/" not in included and included != "config.h" and not local.exists():
            yield f"{path} includes {included}, which is not beside it"
    includes = [i for i in includes if i != "config.h"]
    if path.suffix == ".c" and len(includes) > MAX_OWN_INCLUDES:
        yield f"{path} has {len(includes)} own includes, at most {MAX_OWN_INCLUDES}"
    if path.name.endswith("-sig.c") and (not includes or includes[-1] != "base/sigsafe.h"):
        yield f"{path}: the last include of a -sig file is base/sigsafe.h"


def main():
    paths = tree.sources()
    unknown = {folder_of(p) for p in paths} - MAY_SEE.keys()
    offenders = [f"folder {f} is not in the table of layers" for f in sorted(unknown)]
    for path in paths:
        if folder_of(path) in MAY_SEE:
            offenders += check(path)
    tree.finish(offenders, len(paths))


main()
