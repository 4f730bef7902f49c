# SPDX-License-Identifier: BSD-3-Clause
"""Every record in shared memory or in a file that is read as it lies has its size and offsets written down, beside the
folder's code: a record or field without its line fails here, a line that is not true fails to compile. Processes of
different builds meet over these records. layout.py --write writes the lines anew after a change that is meant; then the
version of the format goes up as well."""
import re
import subprocess
import sys
import tempfile

import tree

# headers whose structures are all shared, and the file that holds their layout
LAYOUTS = {
    "src/arena/arena-layout.c": (["arena/arena.h"], "ARENA_VERSION or COMPANION_VERSION"),
    "src/fnbounds/modtab-layout.c": (["fnbounds/modtab.h", "fnbounds/recipe.h"], "MODTAB_VERSION or the store's magic"),
}


def structures(text):
    """{name: fields} of the structures that a header defines."""
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\}", tree.without_comments(text), re.M | re.S):
        for _ in range(2):  # members without a name of their own: theirs are the structure's
            body = re.sub(r"\b(?:union|struct) \{([^{}]*)\};", r"\1", body)
        body = re.sub(r"\{[^{}]*\}", "", body)
        names = [re.search(r"(\w+)\s*(?:\[[^;]*?\]\s*)*(?:__attribute__.*)?$", part)
                 for line in body.split(";") for part in re.sub(r"\[[^\]]*\]|\([^()]*\)", "", line).split(",")]
        found[name] = [m.group(1) for m in names if m]
    return found


def shared(headers):
    found = {}
    for header in headers:
        if (tree.ROOT / "src" / header).exists():
            found.update(structures(tree.read(f"src/{header}")))
    return found


def measured(headers, records):
    """The lines that are true for what gcc makes of the headers."""
    prints = "".join(f'    printf("SIZE({name}, %zu);\\n", sizeof(struct {name}));\n' + "".join(
        f'    printf("FIELD({name}, {field}, %zu);\\n", offsetof(struct {name}, {field}));\n' for field in fields)
        for name, fields in records.items())
    includes = "".join(f'#include "{header}"\n' for header in headers)
    with tempfile.TemporaryDirectory() as scratch:
        source = f"#include <stddef.h>\n#include <stdio.h>\n{includes}int main(void)\n{{\n{prints}    return 0;\n}}\n"
        command = ["gcc", "-std=gnu17", "-D_GNU_SOURCE", f"-I{tree.ROOT}/src", "-x", "c", "-", "-o", f"{scratch}/layout"]
        subprocess.run(command, input=source, text=True, check=True)
        return subprocess.run([f"{scratch}/layout"], capture_output=True, text=True, check=True).stdout


def write(path, headers, version):
    includes = "".join(f'#include "{header}"\n' for header in headers)
    lines = re.sub(r"(?<!^)^SIZE", "\nSIZE", measured(headers, shared(headers)), flags=re.M)
    (tree.ROOT / path).write_text(f"""/* SPDX-License-Identifier: BSD-3-Clause */
/* Where every field of the records that processes share lies: see tests/meta/layout.py, which writes this. After a
 * change that is meant, {version} goes up as well. */
#include <stddef.h>

{includes}
#define HINT ": if it is meant, run tests/meta/layout.py --write"
#define SIZE(record, bytes) _Static_assert(sizeof(struct record) == (bytes), "size of " #record HINT)
{"#define FIELD(record, field, bytes)":119}\\
    _Static_assert(offsetof(struct record, field) == (bytes), "place of " #field " in " #record HINT)

{lines}""", encoding="utf-8")


def main():
    offenders, n_checked = [], 0
    for path, (headers, version) in LAYOUTS.items():
        if "--write" in sys.argv:
            write(path, headers, version)
        if not (tree.ROOT / "src" / headers[0]).exists():
            continue
        lines = tree.read(path) if (tree.ROOT / path).exists() else ""
        for name, fields in shared(headers).items():
            wanted = [f"SIZE({name}, "] + [f"FIELD({name}, {field}, " for field in fields]
            offenders += [f"{path}: there is no {line}...); run tests/meta/layout.py --write, and raise {version}"
                          for line in wanted if line not in lines]
            n_checked += len(wanted)
    tree.finish(offenders, n_checked)


main()
