# SPDX-License-Identifier: BSD-3-Clause
"""Small files, small functions, and not too many files: limits on lines, with medians so that the whole stays small and not
only the peaks. Tables of data (generated, or rows only) count as files but have no functions."""
import statistics

import tree

FILE_MEDIAN, FILE_MAX = 250, 1000
FUNCTION_MEDIAN, FUNCTION_P90, FUNCTION_MAX = 15, 45, 100
MAX_COLUMNS = 120
# FILES_MAX goes down with the number of files until it is at the goal.
FILES_GOAL, FILES_MAX = 1100, 1200


def check_number():
    """A sentence when there are too many files; without git nobody knows which of them are the project's."""
    n_files = len(tree.files()) if (tree.ROOT / ".git").exists() else 0
    print(f"tracked files: {n_files or 'not known without git'}, at most {FILES_MAX}, goal {FILES_GOAL}")
    return [f"there are {n_files} files, at most {FILES_MAX}: a test's many small ones can be one text "
            "(tests/lib/bundle.py)"] if n_files > FILES_MAX else []


def main():
    paths = tree.sources(".c", ".h", ".S", under=("src", "tools", "tests"))
    offenders, file_lines, lengths = check_number(), [], []
    for path in paths:
        text = tree.read(path)
        lines = text.split("\n")
        file_lines.append(len(lines) - 1)
        if len(lines) - 1 > FILE_MAX:
            offenders.append(f"{path} has {len(lines) - 1} lines, at most {FILE_MAX}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                offenders.append(f"{path}:{number} has {len(line)} columns, at most {MAX_COLUMNS}")
            if "\t" in line:
                offenders.append(f"{path}:{number} holds a tab")
        if path.suffix == ".c" and path.parts[0] != "tests":
            for name, first, n_lines in tree.functions(text):
                lengths.append(n_lines)
                if n_lines > FUNCTION_MAX:
                    offenders.append(f"{path}:{first} {name} has {n_lines} lines, at most {FUNCTION_MAX}")
    lengths.sort()
    p90 = lengths[len(lengths) * 9 // 10]
    print(f"files: median {statistics.median(file_lines)}, max {max(file_lines)} lines")
    print(f"functions: {len(lengths)}, median {statistics.median(lengths)}, p90 {p90}, max {lengths[-1]} lines")
    if statistics.median(file_lines) > FILE_MEDIAN:
        offenders.append(f"the median file is longer than {FILE_MEDIAN} lines")
    if statistics.median(lengths) > FUNCTION_MEDIAN:
        offenders.append(f"the median function is longer than {FUNCTION_MEDIAN} lines")
    if p90 > FUNCTION_P90:
        offenders.append(f"one function in ten is longer than {FUNCTION_P90} lines")
    tree.finish(offenders, len(paths))


main()
