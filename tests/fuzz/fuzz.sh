#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh NAME SECONDS DIRECTORY: the fuzzer NAME-fuzz.c for so long; fuzz.sh --names: which there are. The corpus of a
# fuzzer stays in DIRECTORY and grows from run to run; a crashing input is left there, and its name is printed. A function
# target_NAME below builds a fuzzer, makes the first inputs and runs it.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"

fuzz_sanitizers=address,undefined
fuzz_flags=(-g -O1 -std=gnu17 -D_GNU_SOURCE -fno-sanitize-recover=undefined "-I$srcdir/src" "-I$builddir")

# fuzz_begin NAME SECONDS DIRECTORY: sets name, seconds, directory, corpus and fuzz_libraries; what corpora.txt has of the
# name is the beginning of the corpus.
fuzz_begin() {
    name=$1 seconds=$2 directory=$3 corpus=$3/$1-corpus
    need clang python3
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$scratch/none.c"
    clang -fsanitize=fuzzer,$fuzz_sanitizers "$scratch/none.c" -o "$scratch/none" 2>/dev/null ||
        skip "clang cannot build fuzzers here"
    mkdir -p "$corpus"
    fuzz_libraries=("$directory/libfuzzed.a" -ljansson -lhwloc -ldw -lelf -lZydis -lpfm -lpthread -ldl -lm)
    ! grep -q 'HAVE_LIBZSTD 1' "$builddir/config.h" || fuzz_libraries+=(-lzstd)
    ! grep -q 'HAVE_ZLIB 1' "$builddir/config.h" || fuzz_libraries+=(-lz)
    [ ! -e /usr/include/traceevent/event-parse.h ] || fuzz_libraries+=(-ltraceevent)
    python3 "$srcdir/tests/fuzz/corpus.py" unpack "$name" "$corpus"
}

# fuzz_library: everything below src but what lives in a profiled program, and what stands in for a library that is missing
# (no-*.c), under sanitizers, in DIRECTORY/libfuzzed.a. All fuzzers share it; it is made anew when a source is newer.
fuzz_library() {
    local library=$directory/libfuzzed.a objects=$directory/objects folders
    [ ! -e "$library" ] || [ -n "$(find "$srcdir/src" "$builddir/config.h" -newer "$library" -type f -print -quit)" ] ||
        return 0
    rm -rf "$objects" "$library"
    mkdir -p "$objects"
    folders=$(cd "$srcdir/src" && find -- * -type d ! -path "runtime*" ! -path "alloc-wrap*")
    # shellcheck disable=SC2016 # each shell has a folder of its own
    printf '%s\n' "$folders" | xargs -P 2 -I {} bash -ec 'mkdir -p "$1/$3"; cd "$1/$3"; from=$2/src/$3; shift 3
        shopt -s nullglob; sources=("$from"/*.[cS]); ((!${#sources[@]})) || clang -c "$@" "${sources[@]}"' - "$objects" "$srcdir" {} "${fuzz_flags[@]}" \
        -fsanitize=fuzzer-no-link,$fuzz_sanitizers -DLOCUS_DATA='"/nonexistent"' &&
        find "$objects" -name '*.o' ! -name 'no-*' -exec ar qc "$library" {} +
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

# The collector, which reads what a process has left in its arena. The corpus begins with arenas of the tests' maker.
target_arena() {
    fuzz_build "$srcdir/tests/fuzz/arena-fill.c"
    if clang "${fuzz_flags[@]}" -fsanitize=$fuzz_sanitizers -I"$srcdir/tests/unit" "$srcdir"/tests/fuzz/arena-seeds.c \
        "$srcdir/tests/unit/arena-maker.c" "${fuzz_libraries[@]}" -lcmocka -o "$scratch/seeds" \
        2>"$scratch/seeds.err"; then
        ASAN_OPTIONS=detect_leaks=0 "$scratch/seeds" "$corpus"
    else
        skip_part "no seeds without cmocka"
    fi
    fuzz_run -max_len=16000
}

# The companion: its socket, the arenas that programs write, and what becomes of its workers.
target_companion() {
    fuzz_build -Wl,--wrap=fork,--wrap=waitpid
    python3 "$srcdir/tests/fuzz/companion-seeds.py" "$corpus"
    fuzz_run -max_len=12000
}

# database_seeds DATABASE_CORPUS EXTEND_CORPUS: measurements of a small program, and their databases.
database_seeds() {
    cat >"$scratch/app.c" <<'END'
#include <stdlib.h>
static double table[4000];
int main(int argc, char **argv)
{
    double *cells = malloc(100000 * sizeof *cells), sum = argc;
    for (int i = 0; i < 4000000; i++)
        sum += cells[i * 7919L % 100000] = table[i % 4000] += i;
    free(cells);
    return sum == 3 && argv;
}
END
    (
        cd "$scratch" || exit 1
        "${CC:-cc}" -O1 -g app.c -o app
        for events in "" "-e FAULTS" "-e CPUTIME -t" "-e MEMLEAK"; do
            # shellcheck disable=SC2086 # words of one option
            "$builddir/hpcrun" $events -o "m${events// /}" ./app 2>/dev/null || continue
            "$builddir/hpcprof" -o "d${events// /}" "m${events// /}" >/dev/null 2>&1 || true
        done
        python3 "$srcdir/tests/fuzz/database-seeds.py" m* d* "$1" "$2"
    )
}

# What hpcprof and hpcquery read. The corpus begins with measurements of a small program, and with their databases.
target_database() {
    fuzz_build "$srcdir/tests/fuzz/database-try.c" "$srcdir/tests/lib/json-database.c" "$builddir/src/export/frames/flames-text.c"
    mkdir "$scratch/extend"
    database_seeds "$corpus" "$scratch/extend"
    fuzz_run -max_len=30000 -malloc_limit_mb=256
}

# What hpcprof --extend reads. The corpus begins with databases of a small program, each with a measurement.
target_extend() {
    fuzz_build "$srcdir/tests/fuzz/database-try.c" "$builddir/src/export/frames/flames-text.c"
    mkdir "$scratch/database"
    database_seeds "$scratch/database" "$corpus"
    fuzz_run -max_len=60000 -malloc_limit_mb=256
}

# The readers of src/fmt. The corpus begins with the golden files and their JSON.
target_fmt() {
    fuzz_build
    for input in "$(unpack_golden formats)"/*/input.*; do
        case=$(basename "$(dirname "$input")")
        cp "$input" "$corpus/seed-$case"
        "$builddir/hpcproftt" --json "$input" >"$corpus/seed-$case.json"
    done

    python3 -c 'import pathlib, sys; sys.path.insert(0, sys.argv[1]); import v4; v4.write_small(pathlib.Path(sys.argv[2]))' \
        "$srcdir/tests/lib" "$scratch/v4"
    for input in "$scratch"/v4/*.db; do
        cp "$input" "$corpus/seed-v4-$(basename "$input")"
    done
    fuzz_run -max_len=12000
}

# The readers of frames. The corpus begins with the inputs of their golden test.
target_frame() {
    fuzz_build "$builddir/src/export/frames/flames-text.c"
    python3 "$srcdir/tests/fuzz/frame-seeds.py" "$corpus" "$builddir"
    fuzz_run -max_len=30000
}

# The decoders of hardware samples.
target_hardware() {
    fuzz_build
    fuzz_run -max_len=2048
}

# The readers of maps and jitdumps.
target_jit() {
    fuzz_build
    fuzz_run -max_len=2000
}

# The maker of module tables. The corpus begins with small ELF files.
target_modtab() {
    fuzz_build
    cat >"$scratch/seed.c" <<'END'
int numbers[40] = {1};
static char buffer[300];
__thread long counters[20];
int common_block[8] __attribute__((common));
int visible(int i) { int *p = __builtin_alloca(i); counters[i]++; p[0] = buffer[i & 7]++; return numbers[p[0]]; }
void _start(void) { visible(common_block[0]); }
END
    # shellcheck disable=SC2054 # the commas are the linker's
    flags=(-O1 -nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096)
    clang "${flags[@]}" -shared -fPIC "$scratch/seed.c" -o "$corpus/seed-library"
    clang "${flags[@]}" -no-pie "$scratch/seed.c" -Wl,--build-id -o "$corpus/seed-fixed"
    clang "${flags[@]}" -pie -fPIE -s "$scratch/seed.c" -o "$corpus/seed-stripped"
    fuzz_run -max_len=20000
}

# Options, events and descriptions of machines.
target_options() {
    fuzz_build "$srcdir"/tools/hpcrun/options.c
    python3 "$srcdir/tests/fuzz/options-seeds.py" "$srcdir" "$corpus"
    cd "$scratch"
    fuzz_run -max_len=6000
}

# The reader and the import of files of perf.
target_perf() {
    fuzz_build
    python3 - "$srcdir/tests/lib" "$corpus" <<'END'
import pathlib
import sys
sys.path.insert(0, sys.argv[1])
import perfdata as p
for name, order in (("little", "<"), ("big", ">")):
    loads = p.IDENTIFIER | p.IP | p.TID | p.TIME | p.ADDR | p.CPU | p.CALLCHAIN | p.WEIGHT_STRUCT | p.DATA_SRC
    file = p.File(order, [("mem-loads", loads, 100), ("page-faults", loads | p.PERIOD, 0)])
    file.comm(10, 5, 5, "app", is_exec=True)
    file.mmap(11, 5, 0x400000, 0x4000, 0, "/bin/true")
    file.mmap(12, 5, 0x10000, 0x9000, 0, "//anon", protection=0)
    file.mmap(13, 5, 0x11000, 0x8000, 0, "//anon", protection=3)
    file.fork(14, 5, 6, 5, 5)
    for i in range(6):
        file.sample(i % 2, 20 + i, 5, 5 + i % 2, 0x401000, addr=0x11000 + 4096 * i, period=3 + i,
                    chain=(p.CONTEXT_USER, 0x401000, 0x402000), weight=(300, 1, 2), data_src=0x2 | 2 << 5 | 1 << 33)
    file.lost(40, 0, 5, 6, 3)
    file.throttle(41, 1, 5, 5)
    pathlib.Path(sys.argv[2], f"seed-{name}").write_bytes(file.bytes())
    pathlib.Path(sys.argv[2], f"seed-{name}-pipe").write_bytes(file.piped())
END
    if command -v perf >/dev/null; then
        perf record -q -B -N -z -d -e page-faults -o "$corpus/seed-compressed" true >/dev/null 2>&1 || true
        perf record -q -B -N --intr-regs=ax,ip -g -e cpu-clock -c 100000 -o "$corpus/seed-registers" true >/dev/null 2>&1 ||
            true
    fi
    fuzz_run -max_len=16000
}

# Queries, conditions and formulas. The corpus begins with one of each kind.
target_query() {
    fuzz_build
    printf '\0["*", {"name": "ma.*", "time": ["> 1", "<= 4"]}, [2, {"time": {"any": "!= nan"}}], "+"]' >"$corpus/seed-object"
    printf '\0{"or": [[".", {"class": null}], {"not": [{"depth": 1}]}]}' >"$corpus/seed-sets"
    printf '\0{MATCH ("*", p)->(2)->(q) WHERE p."time" > 1 AND q.name STARTS WITH "m"} XOR NOT {MATCH (p) WHERE p IS LEAF}' \
        >"$corpus/seed-text"
    printf '\1any(time > 2 * mean(time)) and name =~ "^m[^a]*(?:in)+$" or class is not missing' >"$corpus/seed-condition"
    printf '\2children(time) / else(percentile(time, 50), 1) - min(depth, leaf) * -1.5e3' >"$corpus/seed-formula"
    printf '\3rank < 3 or not (host is missing)' >"$corpus/seed-profiles"
    fuzz_run -max_len=600
}

# The making of recipes. The corpus begins with pieces of a real program's code.
target_recipe() {
    need objcopy
    fuzz_build
    objcopy -O binary -j .text "$directory/recipe-fuzz" "$scratch/text"
    for piece in {0..63}; do
        dd if="$scratch/text" of="$corpus/seed-$piece" bs=1024 skip=$((piece * 7)) count=1 status=none
    done
    fuzz_run -max_len=2048
}

# The parser of perf records and rings.
target_record() {
    fuzz_build
    fuzz_run -max_len=2048
}

# The reader of the self-test's cache.
target_skid() {
    fuzz_build
    fuzz_run -max_len=600
}

# hpcrun --status: arenas that are looked at, and companions that answer. The corpus begins with the arenas of the other
# target.
target_status() {
    fuzz_build "$srcdir/tests/fuzz/arena-fill.c" "$srcdir"/tools/hpcrun/{status,status-print}.c
    mkdir "$scratch/arenas"
    python3 "$srcdir/tests/fuzz/corpus.py" unpack arena "$scratch/arenas"
    for arena in "$scratch"/arenas/*; do
        { printf '\0' && cat "$arena"; } >"$corpus/seed-arena-$(basename "$arena")"
    done
    python3 "$srcdir/tests/fuzz/companion-seeds.py" "$scratch" "$corpus"
    fuzz_run -max_len=16000
}

# Recordings of trace-cmd, scheduler records, topologies and sessions. The corpus begins with one of each kind.
target_stream() {
    fuzz_build
    python3 - "$srcdir/tests/lib" "$corpus" <<'END'
import pathlib
import struct
import sys
sys.path.insert(0, sys.argv[1])
import perfdata
import tracedat


def made(order="<", long_bytes=8, page=256, **more):
    recording = tracedat.Recording(2, order, long_bytes, page)
    recording.tasks = {7: "seven", 8: "eight"}
    recording.formats = [(system, b"name: x") for system, _ in recording.formats[:2]]
    recording.options = [(5, b"Linux host 6.1.0\0"), *more.get("options", ())]
    recording.switch(0, 1000, 0, 7)
    recording.waking(0, 1100, 7, 8, 1)
    recording.switch(1, 1 << 40, 0, 8, lost=3)
    recording.migrate(0, 1200, 7, 8, 1, 0)
    recording.add(0, 1300, 9, ("test", "mark"), value=5)
    recording.switch(1, (1 << 40) + 5, 8, 0, lost=0)
    return recording


for name, raw in (("6", made().version_6()), ("7", made().version_7()), ("zlib", made().version_7("zlib")),
                  ("big", made(">").version_6()), ("words", made(long_bytes=4).version_7()),
                  ("options", made(options=[(1, b"0x99\0"), (7, b"5\0"), (14, bytes(16)), (11, bytes(8))]).version_7())):
    pathlib.Path(sys.argv[2], f"seed-{name}").write_bytes(raw)


def perf(kind, order="<"):
    """Rounds in which the rings of the CPUs lie one behind the other."""
    recording = made(order)
    out = perfdata.Sched(order, kind, 2, recording if kind == "tracepoints" else None)
    out.comm(900, 7, 7, "seven")
    for at in (1000, 2000):
        for cpu in (1, 0):
            if kind == "tracepoints":
                for i, (_, raw, _) in enumerate(recording.events[cpu]):
                    key = next(k for k, number in tracedat.IDS.items() if raw[:2] in (number.to_bytes(2, "little"), number.to_bytes(2, "big")))
                    out.tracepoint(key, at + 100 * i + cpu, 7, cpu, raw)
            elif kind == "wide":
                out.wide(at + cpu, cpu, 7, True, 8, cpu == 0)
                out.wide(at + cpu, cpu, 8, False, 7)
            else:
                out.own(at + cpu, cpu, 7, True)
                out.own(at + cpu + 1000, cpu, 8, False)
        out.finished_round()
    out.lost(3000, 0, 7, 7, 3)
    return out


for kind in ("tracepoints", "wide", "own"):
    for order in "<>":
        name = "little" if order == "<" else "big"
        pathlib.Path(sys.argv[2], f"perf-{kind}-{name}").write_bytes(perf(kind, order).bytes())
    pathlib.Path(sys.argv[2], f"perf-{kind}-piped").write_bytes(perf(kind).piped())


def chunk(kind, layout, *values):
    """A chunk of scheduler records; texts have their lengths before them."""
    body = b"".join(struct.pack(">I", len(v)) + v if isinstance(v, bytes) else struct.pack(">" + c, v)
                    for c, v in zip(layout, values))
    return struct.pack(">BI", kind, len(body)) + body


def event(time, cpu, kind, raw):
    return struct.pack(">QHBH", time, cpu, kind, len(raw)) + raw


switch = struct.pack("<HBBi16siiq16sii", 300, 0, 0, 7, b"seven", 7, 120, 1, b"eight", 8, 120)
waking = struct.pack("<HBBi16siii", 303, 0, 0, 7, b"eight", 8, 120, 1)
out, back = struct.pack(">IIB", 7, 8, 3), struct.pack(">IIB", 8, 2 ** 32 - 1, 0)
for tier, events in ((1, ((900, 0, 1, waking), (1000, 0, 1, switch), (800, 1, 1, switch))),
                     (2, ((1000, 0, 2, out), (1100, 0, 2, back))), (3, ((1000, 1, 2, out), (1200, 1, 2, back))), (4, ())):
    parts = [chunk(1, "BBqqIISSSSS", tier, 0, 5, 0, 2, 7, b"0-1", b"host", b"boot", b"6.1 x", b"why" if tier > 1 else b""),
             chunk(2, "ISSS", 300, b"sched", b"sched_switch", b"name: x"), chunk(3, "QIIBS", 1, 7, 7, 1, b"seven"),
             chunk(3, "QIIBS", 1, 8, 7, 1, b"eight")]
    body = struct.pack(">I", len(events)) + b"".join(event(*e) for e in events)
    parts += [struct.pack(">BI", 4, len(body)) + body, chunk(5, "QQH", 950, 3, 0),
              chunk(6, "QQQQQQIIHB", 9, 8, 7, 6, 5, 4, 7, 7, 1, 1), chunk(7, "QQQQ", len(events) + 1, 1, 1300, 3)]
    whole = b"LOCUS-sched_______01.00b" + b"".join(parts)
    pathlib.Path(sys.argv[2], f"seed-sched-{tier}").write_bytes(whole)
    pathlib.Path(sys.argv[2], f"seed-sched-killed-{tier}").write_bytes(whole[:-40])


def part(kind, index, cpus, number, below="", more=""):
    sets = "".join(f' {of}="{cpus:#x}"' for of in ("cpuset", "complete_cpuset", "nodeset", "complete_nodeset"))
    return f'<object type="{kind}" os_index="{index}"{sets} gp_index="{number}"{more}>{below}</object>'


cores = "".join(part("Core", i, 1 << i, 2 + 3 * i, part("NUMANode", i, 1 << i, 3 + 3 * i, more=' subtype="DRAM" local_memory="4096"') +
                     part("PU", i, 1 << i, 4 + 3 * i)) for i in range(2))
machine = part("Machine", 0, 3, 1, cores, ' allowed_cpuset="0x3" allowed_nodeset="0x3"')
pathlib.Path(sys.argv[2], "seed-topology").write_text(
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">' + machine + "</topology>\n")
END
    cat >"$corpus/seed-session-2" <<'END'
{"format": "locus-session", "version": 2, "streams": [{"stream_id": 0, "file": "/dev/null", "couplebreak": true, "buffer": "b",
"offset_ns": "-9007199254740993", "filters": {"type": "kshark.config.filter", "hide event filter": ["sched/sched_waking"],
"show task filter": [4], "fields": ["sched/sched_switch:next_pid == 8"]}}], "NUMA TV": {"type": "kshark.config.topology", "topologies":
[{"stream_id": 0, "view": 1, "topology_xml_fpath": "/dev/null"}]}, "rows": [{"stream_id": 0, "cpu": 1, "pinned": true}, {"stream_id": 0, "task": 7, "hidden": true}],
"markers": {"active": "b", "a": {"ns": "7000000500"}, "b": {"row": "3"}}, "colors": "variable", "from_ns": 1, "to_ns": "9",
"task": "sev*", "cpu": "0-3", "event": "sched_*"}
END
    cat >"$corpus/seed-session-kernelshark" <<'END'
{"type": "kshark.config.session", "data streams": [{"type": "kshark.config.stream", "stream id": 0, "data": {"type":
"kshark.config.data", "file": "/dev/null", "name": "top buffer", "time": 1}, "filters": {"type": "kshark.config.filter",
"hide event filter": ["sched/sched_switch"], "filter mask": 7}, "couplebreak": true, "calib. array": [1500], "CPUPlots": [1, 0],
"TaskPlots": [7]}], "Model": {"type": "kshark.config.model", "range": [7000001000, 7000003400], "bins": 100}, "Markers": {"type":
"kshark.config.markers", "markA": {"isSet": true, "row": 2}, "markB": {"isSet": false}, "Active": "A"}, "ViewTop": 0}
END
    "$builddir/hpcquery" topo --topology "$corpus/seed-topology" --couplebreak --save-session "$corpus/seed-session" \
        "$corpus/seed-sched-3" >/dev/null
    fuzz_run -max_len=4096
}

# The reader of debug information and machine code. The corpus begins with small programs.
target_structure() {
    fuzz_build
    cat >"$scratch/seed.c" <<'END'
int table[40], sum;
static inline __attribute__((always_inline)) int add(const int *p, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += p[i];
    return s;
}
int visible(int n)
{
    for (int i = 0; i < n; i++)
        switch (table[i]) {
        case 0: sum++; break;
        case 1: sum += n; break;
        case 2: sum -= i; break;
        case 3: sum ^= i; break;
        case 4: sum |= i; break;
        default: sum += add(table, i);
        }
    return sum;
}
void _start(void) { visible(table[0]); __builtin_trap(); }
END
    # shellcheck disable=SC2054 # the commas are the linker's
    flags=(-nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -Wl,--build-id)
    clang -g -O1 "${flags[@]}" -no-pie "$scratch/seed.c" -o "$corpus/seed-fixed"
    clang -g -gdwarf-4 -O2 "${flags[@]}" -shared -fPIC "$scratch/seed.c" -o "$corpus/seed-4"
    gcc -g -O2 "${flags[@]}" -shared -fPIC "$scratch/seed.c" -o "$corpus/seed-gcc" 2>/dev/null || true
    clang -O1 "${flags[@]}" -pie -fPIE -s "$scratch/seed.c" -o "$corpus/seed-stripped"
    fuzz_run -max_len=30000
}

# What reads symbol tables and DWARF. The corpus begins with small programs of several compilers' debug information.
target_symbols() {
    fuzz_build
    cat >"$scratch/seed.c" <<'END'
struct grid { double *cells; int n; } grid;
static int numbers[40] = {1};
__thread long counters[20];
void *malloc(unsigned long n) { static char heap[4096]; return heap + n; }
static inline __attribute__((always_inline)) double *cells_of(int n) { return malloc(8ul * n); }
__attribute__((noinline)) int visit(int i) { volatile int near[8]; near[i & 7] = numbers[i]; counters[i]++; return near[1]; }
void _start(void) { grid.cells = cells_of(visit(3)); double *other = malloc(64); other[1] = visit(4); }
END
    # shellcheck disable=SC2054 # the commas are the linker's
    flags=(-O1 -nostdlib -fno-builtin -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -Wl,--build-id=none)
    for compiler in gcc clang; do
        command -v "$compiler" >/dev/null || continue
        for version in 4 5; do
            "$compiler" "${flags[@]}" -gdwarf-$version -no-pie "$scratch/seed.c" -o "$corpus/seed-$compiler-$version"
            "$compiler" "${flags[@]}" -gdwarf-$version -fPIC -shared "$scratch/seed.c" \
                -o "$corpus/seed-$compiler-$version-library"
        done
        "$compiler" "${flags[@]}" -g0 -no-pie "$scratch/seed.c" -o "$corpus/seed-$compiler-bare"
    done
    fuzz_run -max_len=20000
}

# What reads module tables. The corpus begins with tables of small programs.
target_table() {
    fuzz_build
    cat >"$scratch/seed.c" <<'END'
int numbers[40] = {1};
static char buffer[300];
__thread long counters[20];
int visible(int i) { counters[i]++; return numbers[buffer[i & 7]++]; }
void _start(void) { visible(1); }
END
    clang -O1 -nostdlib -shared -fPIC "$scratch/seed.c" -o "$scratch/library"
    clang -O1 -nostdlib -no-pie -Wl,--build-id "$scratch/seed.c" -o "$scratch/fixed"
    clang -O1 -nostdlib -pie -fPIE -s "$scratch/seed.c" -o "$scratch/stripped"
    for program in library fixed stripped; do
        table=$("$builddir/hpcfnbounds" --table "$scratch" "$scratch/$program" | head -n 1)
        cp "$table" "$corpus/seed-$program" || fail "no table of $program"
    done
    fuzz_run -max_len=8000
}

# The small readers of text. The first byte of an input chooses the reader: symbols of the kernel, a name of a file,
# a marker, a source file, a structure file.
target_text() {
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
}

# The model of types and locals. The corpus begins with small programs of gcc and clang in DWARF 4 and 5.
target_types() {
    fuzz_build
    cat >"$scratch/seed.c" <<'END'
struct vector { double x, y, z; };
typedef struct particle { struct vector at; unsigned a : 3, b : 9; union { int i; double d; } u; struct particle *next;
    int m[3][4]; } particle;
struct message { int n; struct vector items[]; };
static particle table[9];
__thread struct vector own;
struct message *message;
static inline double inner(particle *p, int n) { struct vector local[4]; local[n & 3] = p->at; own = local[n & 1];
    return p->next->at.x; }
int use(particle *p, int n) { int vla[n]; vla[0] = p->a; return (int)inner(p, n) + vla[0] + message->n + table[n].b; }
void _start(void) { use(table, 3); }
END
    # shellcheck disable=SC2054 # the commas are the linker's
    flags=(-nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -no-pie -fno-stack-protector)
    for version in 4 5; do
        clang "${flags[@]}" -O0 -gdwarf-$version "$scratch/seed.c" -o "$corpus/seed-clang-$version"
        ! command -v gcc >/dev/null ||
            gcc "${flags[@]}" -O2 -gdwarf-$version "$scratch/seed.c" -o "$corpus/seed-gcc-$version"
    done
    fuzz_run -max_len=24000
}

if [ "${1:-}" = --names ]; then
    declare -F | sed -n 's/^declare -f target_//p'
    finish
fi
[ $# = 3 ] && declare -F "target_$1" >/dev/null || {
    sed -n 3p "$0" | cut -c3- >&2
    exit 2
}
fuzz_begin "$@"
"target_$1"
finish
