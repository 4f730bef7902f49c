# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""The time line of a measurement: which variable each stay worked on. The legend of a window, and what the window holds, is to the
nanosecond what hpcquery sched variables says of it, its axis begins and ends there, and its list has the samples that are counted;
pixels show variables that have time there, and those of both rows agree."""
import collections
import json
import os
import pathlib
import shutil
import random
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import packed  # noqa: E402

N_WINDOWS = 1000 if os.environ.get("LOCUS_TEST_FULL") else 50
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
double *left, *right;
enum { N = 1 << 20, ROUNDS = 12 };
static void *work(void *which)
{
    double *values = which ? left : right, sum = 0;
    for (int r = 0; r < ROUNDS; r++)
        for (long i = 0; i < N; i++)
            sum += values[i * 7919 & (N - 1)];
    *(volatile double *)values = sum;
    return NULL;
}
int main(void)
{
    pthread_t thread;
    left = calloc(N, sizeof *left);
    right = calloc(N, sizeof *right);
    if (!left || !right || pthread_create(&thread, NULL, work, left))
        return 1;
    work(NULL);
    return pthread_join(thread, NULL);
}
"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def ask(path, request):
    tool, text = BUILD / "tests" / "lib" / "ask-packed", json.dumps(request)
    plain = subprocess.run([tool, "--json", path, text], capture_output=True, text=True, check=False)
    expect(plain.returncode == 0, f"{text}: {plain.stderr}")
    return json.loads(plain.stdout) if plain.returncode == 0 else None


def variables(path, *words):
    done = subprocess.run([BUILD / "hpcquery", "sched", "variables", "--json", *words, path], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"sched variables {words}: {done.stderr}")
    sums, n_samples = collections.Counter(), 0
    for row in json.loads(done.stdout)["rows"] if done.returncode == 0 else []:
        sums[row["variable"]] += row["on_ns"]
        n_samples += row["samples"]
    return {name: ns for name, ns in sums.items() if ns}, n_samples


def check_windows(path, streams):
    dice, base, length = random.Random(7), streams["from_ns"], streams["length_ns"]
    samples = [row["time_ns"] - base for row in sched("samples", path, "--top", "0")]
    for i in range(N_WINDOWS):
        from_ns = dice.randrange(length) if i else 0
        to_ns = min(length, from_ns + dice.randrange(1, 10 ** dice.randrange(4, 10))) if i else length
        words = ["--from", f"{(base + from_ns) // 10**9}.{(base + from_ns) % 10**9:09}", "--to", f"{(base + to_ns) // 10**9}.{(base + to_ns) % 10**9:09}"]
        wanted, n_samples = variables(path, *words)
        answer = ask(path, {"report": "timeline", "by": "variable", "from": from_ns, "to": to_ns, "width": dice.choice([1, 100, 1200])})
        found = {key["name"]: key["ns"] for key in answer["keys"] if key["ns"]}
        expect(found == wanted, f"window {from_ns} {to_ns}: {found} are not {wanted}")
        expect((answer["from_ns"], answer["to_ns"]) == (from_ns, to_ns), f"window {from_ns} {to_ns}: the axis is from {answer['from_ns']} to {answer['to_ns']}")
        listed = ask(path, {"report": "events", "event": "locus/sample", "from": from_ns, "to": to_ns, "count": 100000})
        times = [event["time_ns"] for event in listed["events"]]
        expect(listed["found"] == len(times) == n_samples and times == [t for t in samples if from_ns <= t <= to_ns] and
               (listed["from_ns"], listed["to_ns"]) == (from_ns, to_ns), f"window {from_ns} {to_ns}: {n_samples} samples, listed at {times}")
        held = ask(path, {"report": "window", "by": "variable", "from": from_ns, "to": to_ns})
        expect({key["name"]: key["ns"] for key in held["keys"]} == wanted, f"window {from_ns} {to_ns} holds {held['keys']}")
        for pixel in answer["pixels"]:
            expect((pixel["key"] is None) == (pixel["run"] == 0), f"a pixel of nothing: {pixel}")


def check_rows(streams, answer):
    """Both variables are seen, on CPUs and on the two threads, each on one of these."""
    kinds, keys = {row["row"]: row["kind"] for row in streams["rows"]}, [key["name"] for key in answer["keys"]]
    seen = collections.defaultdict(set)
    for pixel in answer["pixels"]:
        if pixel["key"] is not None:
            seen[keys[pixel["key"]]].add(pixel["row"])
    for name in ("left", "right"):
        expect({kinds[row] for row in seen[name]} == {"cpu", "task"}, f"{name} is seen in rows {seen[name]}")
    expect(sum(row["samples"] for row in streams["rows"] if row["kind"] == "task") > 20, "samples of tasks")
    for row in streams["rows"]:
        expect(row["own"] or row["kind"] == "cpu" or not row["samples"], f"{row} has samples and is not of the program")
    expect(not any(row["own"] for row in streams["rows"] if row["kind"] == "cpu"), "a CPU is one of the program's tasks")


def sched(report, path, *words):
    done = subprocess.run([BUILD / "hpcquery", "sched", report, "--json", *words, path], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"sched {report} {words}: {done.stderr}")
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else []


def check_empty(path, streams):
    """A window without samples of a recording that has some is an empty table."""
    end = streams["from_ns"] + 1
    words = ["--to", f"{end // 10**9}.{end % 10**9:09}"]
    expect(not sched("samples", path, *words), "samples in a window of a nanosecond")
    sched("variables", path, *words)
    sched("paths", path, *words)


def check_displaced(scratch):
    """Who displaced threads is said by name, also of other programs' tasks, which have no rows on CPUs. All have to use one CPU."""
    cpu, path = min(os.sched_getaffinity(0)), scratch / "displaced-measurements"
    for _ in range(5):  # beside other programs that want the CPU, these displace the program instead
        shutil.rmtree(path, ignore_errors=True)
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        try:
            program = subprocess.Popen([BUILD / "hpcrun", "-e", "sched", "-o", path, scratch / "app"], stderr=subprocess.DEVNULL,
                                       preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
            expect(program.wait() == 0, "hpcrun has failed")
        finally:
            other.kill()
            other.wait()
        streams, wanted = ask(path, {"report": "streams"}), sched("displaced", path, "--top", "0")
        if any(row["by_tid"] == other.pid for row in wanted):
            break
    if streams["streams"][0]["tier"] != "program":
        return
    expect(any("hpcrun -e sched,all as root" in line["text"] for line in streams["lacking"]), f"lacking: {streams['lacking']}")
    names = [row["name"] for row in streams["rows"] if row["kind"] == "task" and row["number"] == program.pid]
    expect(names == [f"app:{program.pid}"], f"the first thread of app is called {names}")
    expect(any(row["by_tid"] == other.pid for row in wanted), f"{other.pid} displaced nobody: {wanted}")
    pairs = collections.Counter((pair["name"], pair["by"], pair["times"], pair["waited_ns"]) for pair in ask(path, {"report": "window"})["displaced"])
    listed = collections.Counter((row["name"], row["by_name"], row["times"], row["waited_ns"]) for row in wanted)
    expect(pairs == listed, f"only in the window: {[*(pairs - listed)]}, only in the list: {[*(listed - pairs)]}")
    names = {(row["kind"], row["number"]): row["row"] for row in streams["rows"]}
    runs = [run for run in sched("runs", path, "--top", "0") if run["then"] == "preempted" and run["next_tid"] == other.pid]
    for run in runs[:5]:
        for at, state in ((run["to_ns"] - 1, "running"), (run["to_ns"], "preempted")):
            stay = ask(path, {"report": "stay", "row": names["task", run["tid"]], "at": at - streams["from_ns"]})["stay"][0]
            expect(stay["state"] == state and (stay["next"] or "").endswith(f":{other.pid}"), f"{stay} is displaced by {other.pid}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "app.c").write_text(PROGRAM)
        subprocess.run([os.environ.get("CC", "gcc"), "-g", "-O1", "-pthread", "-o", scratch / "app", scratch / "app.c"], check=True)
        path = scratch / "app-measurements"
        subprocess.run([BUILD / "hpcrun", "-e", "datacentric", "-e", "sched", "-t", "-o", path, scratch / "app"], check=True, stderr=subprocess.DEVNULL)
        streams = ask(path, {"report": "streams"})
        if streams["streams"][0]["tier"] in ("none", "own"):
            print("SKIP: the kernel does not say when threads run")
            sys.exit(77)
        expect(streams["topology"] and not any("no samples" in line["text"] for line in streams["lacking"]), f"lacking: {streams['lacking']}")
        check_windows(path, streams)
        check_empty(path, streams)
        check_displaced(scratch)
        check_rows(streams, ask(path, {"report": "timeline", "by": "variable", "width": 400}))
        functions = ask(path, {"report": "timeline", "by": "function", "width": 1})
        expect("work" in [key["name"] for key in functions["keys"]], f"functions: {functions['keys']}")
        made = subprocess.run([BUILD / "tests/lib/ask-packed", path, '{"report":"timeline","by":"variable"}'], capture_output=True, check=True).stdout
        for sentence in packed.differences(packed.Answer(made), ask(path, {"report": "timeline", "by": "variable"})):
            expect(False, sentence)
    for sentence in failures[:20]:
        print("FAIL:", sentence[:700])
    sys.exit(bool(failures))


main()
