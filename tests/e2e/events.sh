#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The log of samples of real programs: every sample is in it once, those that had to wait for their variable too, in the
# order in which the program touched its blocks; what does not fit is thinned and counted; children have logs of their own.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need_machine rings # of page faults
cd "$scratch"

# logs DIR...: the logs agree with the files beside them.
logs() {
    python3 "$srcdir/tests/lib/check-events.py" "$@" >"$scratch/logs" || fail "$*: $(cat "$scratch/logs")"
    cat "$scratch/logs"
}

# Two blocks, page after page, one after the other, in each of two threads; calloc and realloc touch pages of blocks that
# nobody knows yet.
cat >walk.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define BYTES ((size_t)4 << 20)
static void *walk(void *unused)
{
    char *first = malloc(BYTES), *second = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i += 4096)
        *(volatile char *)(first + i) = 1;
    for (size_t i = 0; i < BYTES; i += 4096)
        *(volatile char *)(second + i) = 1;
    char *third = calloc(1, 100000), *fourth = realloc(malloc(5000), BYTES);
    *(volatile char *)third = *(volatile char *)fourth = 1;
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argv;
    pthread_create(&thread, NULL, walk, NULL);
    walk(NULL);
    pthread_join(thread, NULL);
    if (argc > 1 && fork() == 0)
        walk(NULL), _exit(0);
    while (wait(NULL) > 0)
        ;
    return 4;
}
END
$CC -O1 -g -pthread walk.c -o walk

GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1000000 expect_status 4 "$hpcrun" -e FAULTS@1 -t -o walked ./walk
logs walked
python3 - walked <<'END' || fail "the log does not show how the blocks were touched"
import collections
import json
import pathlib
import struct
import sys
paths = list(pathlib.Path(sys.argv[1]).glob("*.events"))
assert len(paths) == 2, paths
for path in paths:
    side = json.loads(path.with_suffix(".objects").read_text())
    data = path.read_bytes()
    n_accesses, n_records = struct.unpack_from(">IQ", data, 68)
    at = len(data) - 24 * n_records
    variables = [struct.unpack_from(">I", data, at - 16 * (n_accesses - i) + 4)[0] for i in range(n_accesses)]
    touched = collections.defaultdict(list)
    for i in range(n_records):
        time, access, _, place = struct.unpack_from(">QIIQ", data, at + 24 * i)
        touched[variables[access]].append((time, place >> 16))
    blocks = sorted(touched[row["node"]] for row in side["variables"]
                    if row["kind"] == "heap" and len(touched[row["node"]]) > 1000)
    assert len(blocks) >= 2, (path.name, {k: len(v) for k, v in touched.items()})
    for block in blocks[:2]:
        offsets = [offset for _, offset in block]
        walked = [offset for offset in offsets if offset % 4096 == offsets[5] % 4096]
        assert len(walked) > 1000 and walked == sorted(walked) and walked[-1] > (4 << 20) - 8192, (path.name, offsets)
    assert blocks[0][1000][0] < blocks[1][1][0], (path.name, "the second block was touched before the first one was done")
END

# All threads in the order of time. What another host recorded, whose clock began at another time, lies on the same axis.
"$builddir/hpcquery" events --csv walked >walked.csv || fail "hpcquery events failed"
cp -r walked hosts
python3 - hosts <<'END'
import pathlib
import struct
import sys
SHIFT = 3 * 10**12 + 17
for path in list(pathlib.Path(sys.argv[1]).glob("*.events")):
    data = bytearray(path.read_bytes())
    n_records = struct.unpack_from(">Q", data, 72)[0]
    for at in [len(data) - 24 * (n_records - i) for i in range(n_records)]:
        struct.pack_into(">Q", data, at, struct.unpack_from(">Q", data, at)[0] + SHIFT)
    struct.pack_into(">q", data, 24, struct.unpack_from(">q", data, 24)[0] - SHIFT)
    fields = path.name.rsplit("-", 3)
    path.with_name(f"{fields[0]}-0000beef-{fields[2]}-{fields[3]}").write_bytes(data)
END
"$builddir/hpcquery" events --csv hosts >hosts.csv || fail "hpcquery events failed for two hosts"
python3 - walked.csv hosts.csv <<'END' || fail "two hosts are not on one axis of time"
import collections
import csv
import sys
one, two = (list(csv.DictReader(open(path, encoding="utf-8"))) for path in sys.argv[1:])
assert len(one) > 4000 and len(two) == 2 * len(one)
times = [int(row["time_ns"]) for row in two]
assert times == sorted(times)
assert collections.Counter(times) == collections.Counter(2 * [int(row["time_ns"]) for row in one])
assert {row["host"] for row in two} == {"0000beef", one[0]["host"]} and {row["thread"] for row in two} == {"0", "1"}
assert sum(row["variable"].startswith("block") and row["offset"] != "" for row in one) > 4000
END
"$builddir/hpcquery" events --top 3 walked >walked.text || fail "hpcquery events failed as text"
expect_text walked.text '^[0-9]+ samples of 2 threads$'
expect_text walked.text '^ +0[.]000000 s  .* CPU .* FAULTS '
[ "$(wc -l <walked.text)" = 4 ] || fail "not three samples: $(cat walked.text)"
expect_status 1 "$builddir/hpcquery" events "$srcdir"
expect_text err 'no logs of samples are there'
mkdir made
touch made/locus.db
expect_status 1 "$builddir/hpcquery" events made
expect_text err 'made is a database: the log of samples is in the measurement'
expect_status 2 "$builddir/hpcquery" events --json walked

# As a stream: each sample is an event of its thread with what the log says of it, and nothing is known of scheduling. The
# export is one that trace-cmd shows, and whose fields it can filter by. Two hosts are not one stream.
"$builddir/hpcquery" sched events --csv walked >stream.csv || fail "hpcquery sched events failed"
"$builddir/hpcquery" sched events --top 3 walked >stream.text || fail "hpcquery sched events failed as text"
expect_text stream.text 'known: nothing of scheduling'
expect_text stream.text 'clock: monotonic'
"$builddir/hpcquery" topo --csv walked >topo.csv || fail "hpcquery topo failed"
"$builddir/hpcquery" sched trace-dat -o stream.dat walked || fail "hpcquery sched trace-dat failed"
expect_status 1 "$builddir/hpcquery" sched events hosts
expect_text err 'hosts: logs of several hosts \(.*0000beef'
trace_cmd=no
if command -v trace-cmd >/dev/null; then
    trace_cmd=yes
    trace-cmd report -t -i stream.dat >report 2>/dev/null || fail "trace-cmd cannot read the export"
    trace-cmd report -t -F 'sample: offset < 1000000' stream.dat >filtered 2>/dev/null || fail "trace-cmd cannot filter"
else
    skip_part "trace-cmd is not installed"
fi
python3 - "$trace_cmd" walked "$builddir/hpcproftt" <<'END' || fail "the stream is not what the log says"
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys
log = list(csv.DictReader(open("walked.csv", encoding="utf-8")))
stream = list(csv.DictReader(open("stream.csv", encoding="utf-8")))
assert len(stream) == len(log) > 4000, (len(stream), len(log))
sides = [json.loads(path.read_text()) for path in pathlib.Path(sys.argv[2]).glob("*.objects")]
tids = {str(side["thread_id"]): str(side["tid"]) for side in sides}
assert len(set(tids.values())) == 2, tids


def places_of(profile):
    """{node: where its code lies}."""
    epoch = json.loads(subprocess.run([sys.argv[3], "--json", profile], capture_output=True, check=True).stdout)["epochs"][0]
    modules = {m["id"]: pathlib.Path(m["path"]).name for m in epoch["modules"]}
    return {abs(n["id"]): f"{modules[n['module']]}+{n['ip']:#x}" for n in epoch["nodes"] if n["module"] in modules}


places = {json.loads(path.read_text())["thread_id"]: places_of(path.with_suffix(".hpcrun"))
          for path in pathlib.Path(sys.argv[2]).glob("*.objects")}


def info(row):
    """What a row of hpcquery events says, as the stream has to say it."""
    names = ("variable", "offset", "class", "event", "path_node", "latency", "metrics", "place")
    own = places[int(row["thread"])]
    block = re.fullmatch(r"block (\d+)", row["variable"])
    row = {**row, "place": own.get(int(row["path_node"]))}
    if block:
        row["variable"] = f"block at {own[int(block[1])]}"
    return " ".join(f"{name}={row[name]}" for name in names if row[name])


first = min(int(row["time_ns"]) for row in log)
start = min(int(row["time_ns"]) for row in stream)
def unnamed(text):
    """Without the names that reports give: of the variable, and of the place."""
    return re.sub(r"^variable=.*? (?=(offset|class)=)| place=.*", "", text)


wanted = [(int(r["time_ns"]) - first, r["cpu"], tids[r["thread"]], info(r)) for r in log]
found = [(int(r["time_ns"]) - start, r["cpu"], r["tid"], r["info"]) for r in stream]
one, two = (collections.Counter((*key, unnamed(text)) for *key, text in rows) for rows in (wanted, found))
assert one == two, list((one - two).items())[:2] + list((two - one).items())[:2]
# A block has one name, that of the variable it was made for; what is in none is called as in reports.
raw, names = {}, collections.defaultdict(set)
for *key, text in wanted:
    raw.setdefault((*key, unnamed(text)), set()).add(text.split(" class=")[0].split(" offset=")[0])
for *key, text in found:
    if len(raw[(*key, unnamed(text))]) == 1:
        names[next(iter(raw[(*key, unnamed(text))]))].add(text.split(" class=")[0].split(" offset=")[0])
blocks = {block: named for block, named in names.items() if " at " in block}
assert blocks and all(len(named) == 1 for named in blocks.values()), blocks
assert {"variable=first", "variable=second"} <= set().union(*blocks.values()), blocks
wanted = collections.Counter(wanted)
assert {row["event"] for row in stream} == {"locus/sample"}
if sys.argv[1] == "yes":
    line = re.compile(r"\s*(\S.*)-(\d+)\s+\[(\d+)\]\s*(?:\S+\s+)?(\d+)[.]?(\d{9}):\s+sample:\s+(.*)")
    lines = [line.match(text) for text in open("report", encoding="utf-8") if " sample: " in text]
    assert all(lines) and {match[1] for match in lines} == {"walk"}, open("report", encoding="utf-8").read()[:500]
    shown = collections.Counter((int(m[4]) * 10**9 + int(m[5]) - start, str(int(m[3])), m[2], m[6].strip()) for m in lines)
    assert shown == wanted, list((shown - wanted).items())[:2] + list((wanted - shown).items())[:2]
    n_near = sum(row["offset"] != "" and int(row["offset"]) < 1000000 for row in log)
    n_filtered = sum(" sample: " in text for text in open("filtered", encoding="utf-8"))
    assert 0 < n_near == n_filtered < len(log), (n_near, n_filtered)
END

# A child of fork goes on with a log of its own.
expect_status 4 "$hpcrun" -e FAULTS@1 -t -o forked ./walk fork
logs forked
[ "$(find forked -name 'walk-*.events' | wc -l)" = 3 ] || fail "not three logs: $(ls forked)"

# Events with an address and without, in one log.
expect_status 4 "$hpcrun" -e EADDR@f2000 -e FAULTS@1 -e CPUTIME@f500 -t -o several ./walk
logs several

# Full: every second sample stays, and so on.
cat >many.c <<'END'
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    char *pages = mmap(NULL, 256 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0, n = argc > 1 ? atol(argv[1]) : 0; i < n; i++) {
        if (i % 256 == 0)
            madvise(pages, 256 * 4096, MADV_DONTNEED);
        *(volatile char *)(pages + i % 256 * 4096) = 1;
    }
    return 4;
}
END
$CC -O1 many.c -o many
expect_status 4 "$hpcrun" -e FAULTS@1 -t --trace-size 256k -o thinned ./many 100000
logs thinned
cat thinned/many-*.log >log.thinned
expect_text log.thinned 'the log of samples was full .*: it has one of 16 samples, [0-9]+ are only in the profiles'
expect_text logs '16 stride'
[ "$(cat thinned/many-*.events | wc -c)" -le 280000 ] || fail "the log is larger than it may be: $(ls -l thinned)"
HPCRUN_TRACE_SIZE=512k expect_status 0 "$hpcrun" -e CPUTIME -o env env
expect_text out '^HPCRUN_TRACE_SIZE=524288$'
HPCRUN_TRACE_SIZE=much expect_status 2 "$hpcrun" -o wrong true
expect_status 2 "$hpcrun" --trace-size 1k -o wrong true
expect_text err 'log of samples of a process: at least 256k'
finish
