#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What make install puts into a prefix works from there, without the build directory: tools, library, man pages.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need gcc make pkg-config

prefix=$scratch/prefix
expect_status 0 make -s -C "$builddir" install prefix="$prefix"
[ -e "$prefix/lib/locus/libhpcrun.so" ] || fail "no $prefix/lib/locus/libhpcrun.so"
[ ! -e "$builddir/libhpcrun-static.o" ] || [ -e "$prefix/lib/locus/libhpcrun-static.o" ] ||
    fail "no $prefix/lib/locus/libhpcrun-static.o"
for tool in hpcrun hpcprof hpcquery hpcproftt hpcviewer; do
    expect_status 0 "$prefix/bin/$tool" --version
    expect_text "$scratch/out" "^$tool \(Locus\) [0-9.]+$"
    [ -s "$prefix/share/man/man1/$tool.1" ] || fail "no man page of $tool"
    if strings -a "$prefix/bin/$tool" | grep -q "$scratch"; then
        fail "$tool holds the path of the scratch directory"
    fi
done
expect_status 0 "$prefix/bin/hpcrun" --machine "$(unpack_golden machines/knights-landing)" --print-plan -e PEBS
expect_text "$scratch/out" "^description=Loads by data address \(the installed event table"
if find "$prefix" -type f ! -path '*/bin/*' ! -path '*/include/*' ! -path '*/lib/*' ! -path '*/share/*' | grep .; then
    fail "files outside bin, include, lib and share were installed"
fi

cat >"$scratch/spin.c" <<'END'
#include <stdlib.h>
int main(void)
{
    size_t n = 1 << 24;
    unsigned *counts = calloc(n, sizeof *counts), at = 1;
    for (int i = 0; i < 20000000; i++)
        counts[(at = at * 1664525u + 1013904223u) >> 8]++;
    return counts[1] == 12345;
}
END
gcc -O1 -g -o "$scratch/spin" "$scratch/spin.c"
cd "$scratch"
mv "$prefix" "$scratch/moved"

# A program of somebody else, with what pkg-config says of the installed library.
cat >"$scratch/nodes.c" <<'END'
#include <locus/frame.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct frame *frame;
    struct error err;
    if (frame_open(argv[argc - 1], &frame, &err) != 0)
        return puts(err.text) * 0 + 1;
    printf("%zu nodes, first %s\n", frame_n_nodes(frame), frame_name(frame, 0));
    frame_close(frame);
    return 0;
}
END
export PKG_CONFIG_PATH=$scratch/moved/lib/pkgconfig LD_LIBRARY_PATH=$scratch/moved/lib
flags=$(pkg-config --define-variable=prefix="$scratch/moved" --define-variable=libdir="$scratch/moved/lib" \
    --define-variable=includedir="$scratch/moved/include" --cflags --libs liblocus) || fail "pkg-config does not know liblocus"
# shellcheck disable=SC2086 # options
gcc -Wall -Werror -o "$scratch/nodes" "$scratch/nodes.c" $flags || fail "a program does not build with $flags"
echo '[{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 1}}]' >"$scratch/one.json"
expect_status 0 "$scratch/nodes" "$scratch/one.json"
expect_text "$scratch/out" '^1 nodes, first main$'
[ -L "$scratch/moved/lib/liblocus.so" ] && [ -e "$scratch/moved/lib/liblocus.so.0" ] || fail "no liblocus.so.0"
[ -s "$scratch/moved/share/man/man3/liblocus.3" ] || fail "no man page of liblocus"
unset LD_LIBRARY_PATH
expect_status 0 env -u LOCUS_LIBRARY PYTHONPATH="$scratch/moved/lib/python3/dist-packages" python3 -c \
    "import locus; print(locus.Frame.open('$scratch/one.json'))"
expect_text "$scratch/out" '^<locus.Frame: 1 nodes, 1 profiles, columns time'
expect_status 0 env -u LOCUS_SRCDIR -u LOCUS_BUILDDIR "$scratch/moved/bin/hpcrun" --report -o m "$scratch/spin"
expect_text "$scratch/err" '% .* counts '
finish
