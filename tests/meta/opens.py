# SPDX-License-Identifier: BSD-3-Clause
"""What our tools read may have been put there by anybody: they open it with base/input.h, which neither waits for a pipe
nor touches a device. In the folders below no other call opens a file that is there already."""
import re

import tree

FOLDERS = ("src/arena", "src/collect", "src/companion", "src/fmt", "src/import", "src/measurement", "src/symnames", "src/frame", "src/streams",
           "src/analysis", "src/export", "src/face", "src/fnbounds", "src/structure", "tools/hpcprof", "tools/hpcquery",
           "tools/hpcproftt", "tools/hpcfnbounds", "tools/hpcrun", "tools/hpcstruct", "tools/hpcviewer")
CALL = re.compile(r"(?<![\w.>])(fopen|freopen|open|openat)\(((?:[^()]|\([^()]*\))*)\)")
# A call that makes the file, opens a directory (for which nobody waits) or writes; the one device that is harmless, and
# the kernel's files.
OTHER = re.compile(r'O_CREAT|O_TMPFILE|O_DIRECTORY|O_WRONLY|O_RDWR|"w|"/dev/null"|"/proc/')


def main():
    offenders, n_calls = [], 0
    for path in tree.sources(".c"):
        if not any(path.is_relative_to(folder) for folder in FOLDERS):
            continue
        for call in CALL.finditer(re.sub(r"/\*.*?\*/", "", tree.read(path), flags=re.S)):
            n_calls += 1
            if not OTHER.search(call[2]):
                offenders.append(f"{path} opens by {call[0]}: input_open or input_stream, please")
    tree.finish(offenders, n_calls)


main()
