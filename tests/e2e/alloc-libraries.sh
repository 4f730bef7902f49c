#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs with other allocators, linked, preloaded or in the executable itself, run as without us; the log names the
# allocator and says what becomes of its blocks, and blocks are named by their users.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cd "$scratch"
source=$srcdir/tests/e2e/alloc-libraries.c

# run NAME LOG VARIABLES [VAR=VALUE...]: measures ./NAME; a line of its log matches, and so much of the bytes allocated
# belongs to these variables of 16 MiB.
run() {
    local name=$1 pattern=$2 variables=$3
    shift 3
    rm -rf m d
    expect_status 0 env "$@" "$builddir/hpcrun" -e MEMLEAK -o m "./$name" 0.1
    expect_text out '^done$'
    cat m/"$name"-*.log >log 2>/dev/null || true
    expect_text log "$pattern"
    expect_status 0 "$builddir/hpcprof" -o d m
    expect_status 0 "$builddir/hpcquery" leaks --all --csv d
    local variable
    for variable in $variables; do
        awk -F, -v name="$variable" '$1 == name && $7 >= 16777216 { n++ } END { exit n != 1 }' out ||
            fail "$name: no block of 16 MiB is $variable"
    done
}

$CC -O1 -g "$source" -o plain
for row in jemalloc:libjemalloc.so.2 tcmalloc:libtcmalloc_minimal.so.4 mimalloc:libmimalloc.so.2; do
    library=${row#*:}
    if env LD_PRELOAD="$library" true 2>&1 | grep -q .; then
        skip_part "$library is not installed"
    else
        run plain "allocator: ${row%%:*} \\(.*$library.*\\): calls of malloc and operator new go on to it" ordinary \
            LD_PRELOAD="$library"
    fi
done
if $CC -O1 -g "$source" -o with-jemalloc -l:libjemalloc.a -lpthread -ldl -lm 2>/dev/null; then
    expect_status 0 "$builddir/hpcrun" -e EADDR -e MEMLEAK -o static.m ./with-jemalloc 0.3
    cat static.m/with-jemalloc-*.log >log
    expect_text log 'malloc belongs to the executable \(jemalloc\): blocks it hands out are not seen'
else
    skip_part "libjemalloc.a is not installed"
fi
if $CC -O1 -g -DWITH_MEMKIND "$source" -o with-memkind -lmemkind 2>/dev/null; then
    run with-memkind 'allocator: memkind \(.*libmemkind.*\): its own functions are not followed' 'ordinary special'
else
    skip_part "libmemkind-dev is not installed"
fi
if $CC -O1 -g "$source" -o with-hugetlbfs -Wl,--no-as-needed -lhugetlbfs 2>/dev/null; then
    run with-hugetlbfs 'allocator: libhugetlbfs \(.*libhugetlbfs.*\)' ordinary
    run with-hugetlbfs 'allocator: libhugetlbfs \(.*libhugetlbfs.*\)' ordinary HUGETLB_MORECORE=thp
else
    skip_part "libhugetlbfs-dev is not installed"
fi
finish
