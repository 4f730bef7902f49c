# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2154
# The program's own allocator stays its own: linked and preloaded jemalloc, tcmalloc and mimalloc, with every form of
# operator new; and where an allocator takes the calls before us, the owner is named.
. "$LOCUS_SRCDIR/tests/e2e/alloc-common.sh"
command -v "$cxx" >/dev/null || skip "no C++ compiler"
source=$srcdir/tests/e2e/alloc-operators.cc
ours='malloc=ours free=ours new=ours delete=ours'

build() {
    "$cxx" -std=c++17 -O1 -w -o "$scratch/operators" "$source" -Wl,--no-as-needed "$@" -lpthread -ldl 2>"$scratch/err"
}

# Debian's mimalloc is built as C and aborts where operator new should throw: without the failing part.
mode_of() {
    case $1 in *mimalloc*) echo no-failures ;; *) echo all ;; esac
}

# run WHAT EXPECTED MODE PRELOAD...: under the preloads, blocks reported EXPECTED times each.
run() {
    local what=$1 expected=$2 mode=$3
    shift 3
    expect_status 0 env LD_PRELOAD="$*" "$scratch/operators" "$expected" "$mode"
    expect_same "$scratch/native" "$scratch/out"
    [ "$expected" = 0 ] || check_counts "$what" "$ours"
}

build || skip "no C++ program can be linked"
"$scratch/operators" >"$scratch/native"
run "the C library's" 1 all "$sink"
ALLOC_SINK_SAMPLE=100 run "sampling" 1 no-small "$sink"

for library in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
    if ! env LD_PRELOAD="$library" true 2>&1 | grep -q .; then
        run "$library preloaded after us" 1 "$(mode_of $library)" "$sink" "$library"
        run "$library preloaded before us" 0 "$(mode_of $library)" "$library" "$sink"
        check_counts "$library preloaded before us" " heap=0 .*malloc=$library free=$library new=$library"
    else
        skip_part "$library is not installed"
    fi
done

for library in jemalloc tcmalloc_minimal tcmalloc mimalloc; do
    if build "-l$library"; then
        run "$library linked" 1 "$(mode_of $library)" "$sink"
    else
        skip_part "lib$library is not installed for linking"
    fi
done

if build -l:libjemalloc.a; then
    run "jemalloc linked statically" 0 all "$sink"
    check_counts "jemalloc linked statically" \
        'heap=0 .*malloc=the executable free=the executable new=the executable delete=the executable'
else
    skip_part "libjemalloc.a is not installed"
fi
finish
