# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the fuzzers, behind tests/lib/common.sh. The corpus of a fuzzer stays in DIRECTORY and grows from run to run;
# a crashing input is left there, and its name is printed.
# shellcheck disable=SC2154 # srcdir, builddir and scratch come from common.sh

fuzz_sanitizers=address,undefined
fuzz_flags=(-g -O1 -std=gnu17 -D_GNU_SOURCE -fno-sanitize-recover=undefined "-I$srcdir/src" "-I$srcdir/tools/hpcrun"
    "-I$builddir")

# fuzz_begin NAME SECONDS DIRECTORY: sets name, seconds, directory, corpus and fuzz_libraries; NAME-corpus.hex, where there is one, is
# the beginning of the corpus.
fuzz_begin() {
    name=$1 seconds=$2 directory=$3 corpus=$3/$1-corpus
    need clang python3
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$scratch/none.c"
    clang -fsanitize=fuzzer,$fuzz_sanitizers "$scratch/none.c" -o "$scratch/none" 2>/dev/null ||
        skip "clang cannot build fuzzers here"
    mkdir -p "$corpus"
    fuzz_libraries=("$directory/libfuzzed.a" -ljansson -lhwloc -ldw -lelf -lZydis -lpfm -lpthread -ldl -lm)
    ! grep -q 'HAVE_LIBZSTD 1' "$builddir/config.h" || fuzz_libraries+=(-lzstd)
    [ ! -e "$srcdir/tests/fuzz/$name-corpus.hex" ] ||
        python3 "$srcdir/tests/fuzz/corpus.py" unpack "$srcdir/tests/fuzz/$name-corpus.hex" "$corpus"
}

# fuzz_library: everything below src but what lives in a profiled program, under sanitizers, in DIRECTORY/libfuzzed.a.
# All fuzzers share it; it is made anew when a source is newer.
fuzz_library() {
    local library=$directory/libfuzzed.a objects=$directory/objects folders
    [ ! -e "$library" ] || [ -n "$(find "$srcdir/src" "$builddir/config.h" -newer "$library" -type f -print -quit)" ] ||
        return 0
    rm -rf "$objects" "$library"
    mkdir -p "$objects"
    folders=$(cd "$srcdir/src" && echo analysis base export fmt fnbounds sampling sampling/abi structure)
    # shellcheck disable=SC2016 # each shell has a folder of its own
    tr ' ' '\n' <<<"$folders" | xargs -P 2 -I {} bash -ec 'mkdir -p "$1/$3"; cd "$1/$3"; from=$2/src/$3; shift 3
        shopt -s nullglob; clang -c "$@" "$from"/*.[cS]' - "$objects" "$srcdir" {} "${fuzz_flags[@]}" \
        -fsanitize=fuzzer-no-link,$fuzz_sanitizers -DLOCUS_DATA='"/nonexistent"' &&
        find "$objects" -name '*.o' -exec ar qc "$library" {} +
}

# fuzz_build [SOURCE|FLAG]...: the target NAME-fuzz.c with the library. Sources that do not build are a failure.
fuzz_build() {
    if ! fuzz_library || ! clang "${fuzz_flags[@]}" -fsanitize=fuzzer,$fuzz_sanitizers \
        "$srcdir/tests/fuzz/$name-fuzz.c" "$@" "${fuzz_libraries[@]}" -o "$directory/$name-fuzz"; then
        fail "the fuzzer $name cannot be built"
        finish
    fi
}

# fuzz_run OPTION...: for the time given to fuzz_begin. What libdw and libelf leak on damaged files ends with the
# process that reads them; hwloc's plugins would be loaded for each input; freed memory comes back soon, because touching
# new memory takes longer than most readers.
fuzz_run() {
    printf 'leak:libelf.so\nleak:libdw.so\n' >"$scratch/leaks"
    HWLOC_PLUGINS_PATH=/nonexistent ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=8 \
        LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0 \
        "$directory/$name-fuzz" -max_total_time="$seconds" -rss_limit_mb=2500 -timeout=20 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$directory/$name-" "$@" "$corpus" >"$scratch/log" 2>&1 ||
        fail "an input breaks $name: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
    grep -E 'stat::number_of_executed_units' "$scratch/log" || true
}
