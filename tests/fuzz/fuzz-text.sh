#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the small readers of text: fuzz-text.sh SECONDS DIRECTORY, see fuzz-common.sh. The first byte of an input
# chooses the reader: symbols of the kernel, a name of a file, a marker, a source file, a structure file.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin text "$1" "$2"
fuzz_build

# seed NUMBER NAME TEXT
seed() {
    printf "%b$3" "\\0$1" >"$corpus/seed-$2"
}
seed 0 kernel 'ffffffff81000000 T startup_64\nffffffff81000040 t do_sys [mod]\nffffffff81000080 D data\n'
seed 1 profile 'dir/app-000001-002-007f0100-4711-0.hpcrun'
seed 1 odd 'a-b-000000-000-0-1-11.log'
seed 2 writing 'writing 4711\n'
seed 2 running 'running 0\n'
seed 3 statement '\n/* why */ s->cells = (double *)malloc(n * sizeof *s->cells); // x\n  return p;\n'
seed 3 cxx 'std::vector<int> v(12);\nauto *q = new (std::nothrow) Grid[3]{};\nlist.push_back(malloc(4));\n'
seed 3 fortran 'allocate(a(10), b%%c(n, m), &\n  stat=ierr)\nx = 3 ! comment\n'
seed 3 text 'char *a = "malloc(\\"", *b = '"'"'\\'"'"''"'"' ? strdup(a)\n : xmalloc(3); int rows[] = {1};\n'
seed 4 structure '<?xml version="1.0"?>\n<!DOCTYPE S [\n<!ELEMENT S (LM)*>\n]><S i="0"><LM i="2" n="/a/b">
<F i="3" n="a&lt;&#x41;.c"><V i="4" n="v" v="{[0x30-0x38)}"/><P i="5" n="f" ln="_f" l="7" v="{[0x1-0x2)}">
<S i="6" l="8" v="{[0x1-0x4) [0x8-0xa)}"/><L i="7" l="9-12" f="b.c" v="{[0x4-0x5)}" m="2" ir="1"><A i="8" l="3" n="">
<A i="9" l="1" f="c.h" n="g"><C i="10" l="2" v="{[0x4-0x6)}"/></A></A></L></P></F></LM></S>'
fuzz_run -max_len=3000
finish
