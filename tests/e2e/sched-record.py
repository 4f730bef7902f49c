# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""hpcrun -e sched, tier by tier: as root, with CAP_PERFMON alone, as an ordinary user, and where perf is refused. A program
counts its own switches (getrusage), names its threads and children, and is told when to go on: what was recorded must have
each of them. Then a recorder that is killed, one that stands still until records are lost, and a program that is killed."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
HPCRUN, QUERY, TEXT = (BUILD / name for name in ("hpcrun", "hpcquery", "hpcproftt"))
ROUND_TRIPS = 300
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PERFMON = NOBODY + ["--inh-caps=+perfmon", "--ambient-caps=+perfmon"]
failures, skipped = [], []
# how often a thread says that it left its CPU, between two moments that are known so far
Told = collections.namedtuple("Told", "name switches preemptions from_after from_before to_after to_before")

# On one CPU, each round trip takes the CPU from the one and gives it to the other: two threads leave it at least once.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int there[2], back[2];
struct counts { /* and before and after which time they were taken */
    long all, involuntary;
    unsigned long long after, before;
};
static unsigned long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1000000000ull * time.tv_sec + time.tv_nsec;
}
static struct counts count(void)
{
    struct rusage usage;
    unsigned long long after = now_ns();
    getrusage(RUSAGE_THREAD, &usage);
    return (struct counts){usage.ru_nvcsw + usage.ru_nivcsw, usage.ru_nivcsw, after, now_ns()};
}
static void tell(const char *name, struct counts from)
{
    struct counts to = count();
    printf("thread %d %s %ld %ld %llu %llu %llu %llu\n", gettid(), name, to.all - from.all, to.involuntary - from.involuntary,
           from.after, from.before, to.after, to.before);
}
static void *answer(void *nothing)
{
    char byte;
    pthread_setname_np(pthread_self(), "answerer");
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
        ;
    tell("answerer", (struct counts){0});
    return nothing;
}
int main(int argc, char **argv)
{
    cpu_set_t one;
    pthread_t thread;
    char byte = 0, line[64];
    struct counts before;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n")) {
        before = count();
        if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
            return 1;
        for (int i = atoi(line); i > 0; i--)
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
                return 1;
        close(there[1]);
        pthread_join(thread, NULL);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
        pid_t other = fork();
        if (other == 0)
            execl("/bin/sleep", "sleep", "0.01", (char *)NULL);
        waitpid(other, NULL, 0);
        printf("child %d\nchild %d sleep\n", child, other);
        tell("pingpong", before);
        printf("done\n");
    }
    return argc > 5;
}
"""

# Touches pages in two threads, with sleeps between them.
TOUCHER = r"""
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static volatile char grid[64 * 4096], mesh[64 * 4096];
static void touch(volatile char *at)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 64; i++) {
        at[i * 4096] = 1;
        if (i % 16 == 15)
            nanosleep(&pause, NULL);
    }
}
static void *other(void *nothing)
{
    touch(mesh);
    return nothing;
}
int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL))
        return 1;
    touch(grid);
    return pthread_join(thread, NULL);
}
"""


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


class Run:
    """A launch, its program waiting for orders. words: what runs hpcrun."""

    def __init__(self, scratch, name, words, options=()):
        self.directory = scratch / name
        self.process = subprocess.Popen([*map(str, words), HPCRUN, "-e", "sched", *options, "-o", self.directory, scratch / "pingpong"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=scratch, env={**os.environ, "HOME": str(scratch), "XDG_CACHE_HOME": str(scratch / "cache")})
        expect(self.process.stdout.readline() == "ready\n", f"{name}: the program does not start")
        self.path = next(self.directory.glob("*.sched"), None)
        expect(self.path, f"{name}: there is no file of scheduler records when the program runs")

    def order(self, n_round_trips):
        """What the program says of its threads {tid: Told} and children {pid: name}."""
        threads, children = {}, {}
        self.process.stdin.write(f"{n_round_trips}\n")
        self.process.stdin.flush()
        for line in iter(self.process.stdout.readline, "done\n"):
            words = line.split()
            if not words:
                break
            if words[0] == "thread":
                threads[int(words[1])] = Told(words[2], *map(int, words[3:]))
            else:
                children[int(words[1])] = words[2] if len(words) > 2 else "pingpong"
        return threads, children

    def end(self):
        _, said = self.process.communicate("end\n")
        return said

    def recorder(self):
        """The process that has the file open."""
        for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if os.readlink(link) == str(self.path):
                    return int(link.parts[2])
            except OSError:
                pass
        return None

    def file(self):
        return json.loads(subprocess.run([TEXT, "--json", self.path], capture_output=True, text=True, check=True).stdout)

    def wait_for(self, is_so, what):
        """Looks at the growing file until something holds."""
        for _ in range(600):
            if is_so(self.file()):
                return
            time.sleep(0.1)
        failures.append(f"{self.directory.name}: after a minute there is not {what}")


def query(*words, status=0):
    done = subprocess.run([QUERY, "sched", *map(str, words)], capture_output=True, text=True, check=False)
    expect(done.returncode == status, f"sched {words}: {done.returncode} {done.stderr}")
    return done.stdout


def has_lost(stream, tier):
    """Whether other programs of this machine filled the rings before the recorder came to run; of the program's own
    threads alone there are too few records."""
    expect(tier != "own" or stream["lost"] == 0, f"lost records: {stream}")
    if stream["lost"]:
        skipped.append(f"{stream['lost']} records of {tier} were lost on this busy machine: nothing is compared")
    return stream["lost"] > 0


def check_rows(run, tier, threads, children):
    found = json.loads(query("--json", run.directory))
    rows, stream = {r["tid"]: r for r in found["rows"]}, found["streams"][0]
    expect(stream["tier"] == tier and stream["clock"] == "monotonic", f"{run.directory.name}: {stream}")
    if has_lost(stream, tier):
        return found
    runs = json.loads(query("runs", "--json", run.directory))["rows"]
    for tid, told in threads.items():
        row, ends = rows.get(tid), [(r["to_ns"], r["then"]) for r in runs if r["tid"] == tid and r["to_ns"]]
        expect(row and row["comm"] == told.name, f"{tier}: thread {tid} {told.name} is {row}")
        for count, which in ((told.switches, ends), (told.preemptions, [e for e in ends if e[1] == "preempted"])):
            surely = sum(told.from_before < e[0] < told.to_after for e in which)
            at_most = sum(told.from_after < e[0] < told.to_before for e in which)
            left_out = 1 + count // 100  # by kernels that leave out switches from the idle task, now and then one to it
            expect(surely <= count <= at_most + left_out, f"{tier}: {told} left {count} times by itself, recorded {surely} to {at_most}")
        expect(told.switches >= ROUND_TRIPS and row and row["runs"] >= ROUND_TRIPS and row["running_ns"] > 0 and
               row["migrations"] is not None, f"{tier}: {row}")
        expect(row and (row["woken_ns"] is None) == (tier in ("switches", "own")), f"{tier}: wakings: {row}")
    for tid, name in children.items():
        expect(tid in rows and rows[tid]["comm"] == name and rows[tid]["pid"] == tid, f"{tier}: child {tid} {name} is {rows.get(tid)}")
    if tier in ("program", "own"):
        expect(set(rows) <= set(threads) | set(children), f"{tier}: threads of others: {sorted(rows)}")
    return found


def check_tier(scratch, name, words, tier, options=()):
    run = Run(scratch, name, words, options)
    threads, children = run.order(ROUND_TRIPS)
    said = run.end()
    expect(f"sched: {'switches, wake-ups' if tier in ('program', 'full') else 'switches of all' if tier == 'switches' else 'when the'}" in said,
           f"{name}: {said}")
    check_rows(run, tier, threads, children)
    file = run.file()
    expect(file["end"] and file["end"][0] == len(file["events"]) and file["end"][1] == 0, f"{name}: {file['end']}")
    times = [e[0] for e in file["events"]]
    expect(len(times) > 2 * ROUND_TRIPS and file["pid"] in threads, f"{name}: {len(times)} events")
    return run, threads


def check_tracepoints(run, threads):
    """Wakings and migrations, and what displaced the program's threads; the timeline; trace.dat."""
    events = json.loads(query("events", "--json", run.directory))["rows"]
    kinds = {e["event"] for e in events}
    expect({"sched/sched_switch", "sched/sched_waking"} <= kinds, f"events: {kinds}")
    for event in events:
        pids = {int(p) for p in re.findall(r"(?:pid=|:)(\d+)", event["info"])} | {event["tid"]}
        expect(pids & set(threads) or event["event"] != "sched/sched_switch" or "pingpong" in event["info"] or "sleep" in event["info"] or
               "hpcrun" in event["info"], f"an event that concerns no thread of the program: {event}")
    slices = json.loads(query("timeline", "--json", run.directory))["rows"]
    expect({r["number"] for r in slices if r["row"] == "task"} >= set(threads), "the time line lacks threads")
    out = run.directory.parent / "out.dat"
    query("trace-dat", "-o", out, run.directory)
    again = {r["tid"]: r["switches"] for r in json.loads(query("--json", out))["rows"]}
    rows = {r["tid"]: r["switches"] for r in json.loads(query("--json", run.directory))["rows"]}
    expect(all(again.get(tid) == rows[tid] for tid in threads), f"trace.dat: {again} is not {rows}")


@contextlib.contextmanager
def busy_cpus():
    """Keeps the CPUs from being idle: some kernels do not record switches from the idle task."""
    spin = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.nice(19)\nprint(flush=True)\nwhile True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spin, str(cpu)], stdout=subprocess.PIPE) for cpu in os.sched_getaffinity(0)]
    try:
        for process in spinning:
            process.stdout.readline()
        yield
    finally:
        for process in spinning:
            process.kill()
            process.communicate()


def record_samples(directory, program):
    """Whether samples and all switches of the program were recorded; five tries."""
    for _ in range(5):
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([HPCRUN, "-t", "-e", "FAULTS@1", "-e", "sched", "-o", directory, program], check=True, capture_output=True)
        if "nobody recorded" not in query("tasks", directory):
            return True
    print("SKIP (part): this kernel left out switches five times")
    return False


def check_samples(scratch):
    """Samples fall into the stays of their threads, and stand for all of the time on CPUs."""
    directory = scratch / "samples"
    with busy_cpus():
        if not record_samples(directory, scratch / "toucher"):
            return
    found = json.loads(query("samples", "--json", directory))
    samples, runs = found["rows"], json.loads(query("runs", "--json", directory))["rows"]
    tasks = json.loads(query("tasks", "--json", directory))["rows"]
    expect(found["streams"][0]["kind"] == "samples and scheduler records", f"samples: {found['streams']}")
    if has_lost(found["streams"][0], "program"):
        return
    for variable in ("grid", "mesh"):
        own = [s for s in samples if s["variable"] == variable]
        expect(len(own) >= 62 and len({s["tid"] for s in own}) == 1, f"{len(own)} samples touch {variable}")
    for sample in samples:
        stays = [r for r in runs if r["tid"] == sample["tid"] and r["from_ns"] <= sample["time_ns"] <= (r["to_ns"] or sample["time_ns"])]
        expect(len(stays) == 1 and (stays[0]["from_ns"], stays[0]["to_ns"], stays[0]["cpu"], stays[0]["then"]) ==
               (sample["from_ns"], sample["to_ns"], sample["cpu"], sample["then"]), f"{sample} fell into {stays}")
    ran = sum(t["running_ns"] for t in tasks)
    for report in ("variables", "paths"):
        rows = json.loads(query(report, "--json", directory))["rows"]
        expect(sum(r["on_ns"] for r in rows) == ran and sum(r["samples"] for r in rows) == len(samples), f"{report}: not {ran} ns: {rows}")
        expect(sum(r["off_ns"] for r in rows) <= sum(t["off_ns"] for t in tasks), f"{report}: off CPU: {rows}")
        expect(all(r["off_ns"] >= r["runnable_ns"] + r["blocked_ns"] for r in rows), f"{report}: parts: {rows}")
        for key in ("preemptions", "migrations"):
            expect(sum(r[key] for r in rows) <= sum(t[key] for t in tasks), f"{report}: more {key} than threads have: {rows}")
    # names are those of the reports about the database, which has the records as well
    database = scratch / "samples-db"
    subprocess.run([BUILD / "hpcprof", "-q", "-o", database, directory], check=True, capture_output=True)
    own = {r["variable"] for r in json.loads(subprocess.run([QUERY, "vars", "--json", database], check=True, capture_output=True).stdout)["variables"]}
    rows = json.loads(query("variables", "--json", directory))["rows"]
    expect({r["variable"] for r in rows if r["variable"][0] not in "<("} <= own and {"grid", "mesh"} <= own, f"names: {rows} beside {own}")
    expect(len({(r["variable"], r["pid"]) for r in rows}) == len(rows) and {r["pid"] for r in rows} <= {t["pid"] for t in tasks},
           f"processes: {rows}")
    # events and trace events have the names of samples, and these are on the tracks of their tasks as well
    listed = [r for r in json.loads(query("events", "--json", "--event", "sample", directory))["rows"]]
    expect([(r["time_ns"], r["tid"]) for r in listed] == [(s["time_ns"], s["tid"]) for s in samples] and
           all(f"variable={s['variable']} " in r["info"] or s["variable"] == f"<{re.search('class=([a-z-]+)', r['info'])[1]}>"
               for r, s in zip(listed, samples)), f"names in events: {listed[:3]} {samples[:3]}")
    marks = [e for e in json.loads(query("chrome", directory))["traceEvents"] if e.get("cat") == "sample"]
    expect(sorted(e["name"] for e in marks if e["pid"] == 2) == sorted(s["variable"] for s in samples) and
           {(e["pid"], e["tid"]) for e in marks} >= {(2, s["tid"]) for s in samples} | {(1, s["cpu"]) for s in samples} and
           len({e["cname"] for e in marks if e["name"] == "mesh"}) == 1, f"samples in chrome: {marks[:3]}")
    topology = json.loads(subprocess.run([QUERY, "topo", "--json", "--view", "numatree", directory], check=True, capture_output=True).stdout)
    own = [str(path) for path in directory.glob("topology-*.xml")]
    expect([t["topology"] for t in topology["topologies"]] == own and len(own) == 1, f"its own topology: {topology['topologies']} {own}")
    places = {r["place"] for r in json.loads(query("paths", "--json", directory))["rows"]}
    expect(any(re.fullmatch(r"\w+ \(toucher\.c:\d+\)", place) for place in places), f"places: {places}")
    recorded, = directory.glob("*.sched")
    expect((database / recorded.name).read_bytes() == recorded.read_bytes(), "the database has other records")
    carried = {r["tid"]: r["runs"] for r in json.loads(query("--json", database))["rows"]}
    expect(carried == {t["tid"]: t["runs"] for t in tasks}, f"the database: {carried}")
    rows = {r["variable"]: r for r in json.loads(query("variables", "--json", directory))["rows"]}
    expect(rows["mesh"]["samples"] >= 62 and rows["mesh"]["off_ns"] > 0, f"variables: {rows}")
    # a second launch in the same directory: each file has the samples of its own
    subprocess.run([HPCRUN, "--append", "-t", "-e", "FAULTS@1", "-e", "sched", "-o", directory, scratch / "toucher"], check=True,
                   capture_output=True)
    refused = subprocess.run([QUERY, "sched", directory], capture_output=True, text=True, check=False)
    expect(refused.returncode == 1 and "of 2 launches" in refused.stderr and
           any(refused.stderr.endswith(f"such as {path}\n") for path in directory.glob("*.sched")), f"two launches: {refused.stderr}")
    for path in directory.glob("*.sched"):
        found = json.loads(query("samples", "--json", path))["rows"]
        expect(sum(s["variable"] == "mesh" for s in found) >= 62 and len({s["pid"] for s in found}) == 1, f"{path}: {len(found)} samples")
    done = subprocess.run([QUERY, "sched", "variables", scratch / "own"], capture_output=True, text=True, check=False)
    expect(done.returncode == 1 and done.stderr.count("\n") == 1, f"no samples: {done.stderr}")


def check_report(scratch):
    """hpcrun --report: of the scheduler alone its report, else behind the one about the data."""
    for name, events in (("alone", ["-e", "sched"]), ("both", ["-e", "FAULTS@1", "-e", "sched"])):
        text = scratch / f"{name}.txt"
        done = subprocess.run([HPCRUN, *events, f"--report={text}", "-o", scratch / name, scratch / "toucher"], capture_output=True, text=True,
                              check=False)
        said = text.read_text()
        expect(done.returncode == 0 and "\nTasks that ran longest:\n" in said and "\ntoucher:" in said, f"--report, {name}: {done.stderr} {said}")
        expect((" mesh " in said) == (name == "both") and said.find(" mesh ") < said.find("Tasks that"), f"--report, {name}: {said}")
        expect((scratch / f"{name}-database").exists() == (name == "both"), f"--report, {name}: a database")


def check_totals(scratch, words):
    """Where nothing better is allowed: what the kernel counts, while the program still runs."""
    run = Run(scratch, "totals", words)
    threads, _ = run.order(ROUND_TRIPS)
    main = next(tid for tid, told in threads.items() if told.name == "pingpong")
    run.wait_for(lambda file: any(t[6] == main and t[4] + t[5] >= threads[main].switches for t in file["totals"]), "the total of main")
    expect("sched: totals of threads alone" in run.end(), "the tier is not said")
    found = json.loads(query("--json", run.directory))
    row = next(r for r in found["rows"] if r["tid"] == main)
    expect(found["streams"][0]["tier"] == "none" and "perf_event_open: EACCES" in found["streams"][0]["note"], f"totals: {found['streams']}")
    expect(row["comm"] == "pingpong" and row["switches"] >= threads[main].switches and row["running_ns"] > 0 and row["woken_ns"] is None and
           row["migrations"] is None, f"totals: {row}")


def check_killed_recorder(scratch, words, name):
    run = Run(scratch, name, words)
    run.order(ROUND_TRIPS)
    run.wait_for(lambda file: len(file["events"]) > ROUND_TRIPS, "an event for each round trip")
    expect("the program still runs" in query(run.directory), f"{name}: it runs, and has {len(run.file()['events'])} events")
    os.kill(run.recorder(), signal.SIGKILL)
    threads, _ = run.order(ROUND_TRIPS)
    run.end()
    expect(run.process.returncode == 0 and threads, f"{name}: the program did not go on")
    found = json.loads(query("--json", run.directory))
    expect("the recorder was killed" in found["streams"][0]["note"] and run.file()["end"] == [], f"{name}: {found['streams']}")
    logs = "".join(p.read_text() for p in run.directory.glob("companion-*"))
    expect("recorder of the scheduler ended" in logs, f"{name}: the log says {logs}")


def check_losses(scratch, words):
    """The recorder stands still while more records come than the rings have room for."""
    run = Run(scratch, "losses", words)
    recorder = run.recorder()
    os.kill(recorder, signal.SIGSTOP)
    run.order(12000)
    os.kill(recorder, signal.SIGCONT)
    run.end()
    found = json.loads(query("--json", run.directory))
    file = run.file()
    expect(file["end"] and file["end"][3] > 0 and file["lost"], f"losses: {file['end']}")
    # of each round trip two threads leave and two come
    expect(len(file["events"]) + file["end"][3] >= 4 * 12000, f"losses: {len(file['events'])} and {file['end']}")
    expect(found["streams"][0]["lost"] == file["end"][3], f"losses: {found['streams']}")
    expect("missed_events" in query("events", "--event", "missed_events", run.directory), "lost records are no events")


def check_killed_companion(scratch, words):
    """The recorder ends its file by itself."""
    run = Run(scratch, "alone", words)
    run.order(ROUND_TRIPS)
    status = pathlib.Path(f"/proc/{run.recorder()}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(status[1]), signal.SIGKILL)
    run.wait_for(lambda file: file["end"], "an end")
    run.end()
    expect(run.process.returncode == 0 and len(run.file()["events"]) > ROUND_TRIPS, "without the companion")


def check_killed_program(scratch, words):
    run = Run(scratch, "killed", words)
    threads, children = run.order(ROUND_TRIPS)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.communicate()
    check_rows(run, "own", threads, children)
    expect(run.file()["end"], "the file has no end although the recorder lived")


def main():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("SKIP: needs root, which becomes other users, and setpriv")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        scratch.chmod(0o777)
        (scratch / "pingpong.c").write_text(PROGRAM)
        cc = os.environ.get("CC", "gcc")
        subprocess.run([cc, "-O1", "-pthread", "-o", scratch / "pingpong", scratch / "pingpong.c"], check=True)
        (scratch / "toucher.c").write_text(TOUCHER)
        subprocess.run([cc, "-O1", "-g", "-pthread", "-o", scratch / "toucher", scratch / "toucher.c"], check=True)
        subprocess.run([cc, "-O1", "-o", scratch / "refuse-perf", SOURCE / "tests/lib/refuse-perf.c"], check=True)
        paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
        first = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
        reach = [*NOBODY, "sh", "-c", '"$0" --version && [ -w "$1" ]', HPCRUN, scratch]
        if subprocess.run(reach, capture_output=True, check=False).returncode:
            skipped.append("other users cannot reach the build directory, or the scratch directory")
        else:
            if paranoid <= 2:
                check_tier(scratch, "own", NOBODY, "own" if paranoid > 0 else "switches")
                check_losses(scratch, NOBODY)
                check_killed_program(scratch, NOBODY)
                check_killed_recorder(scratch, NOBODY, "killed-own")
            else:
                skipped.append(f"perf_event_paranoid is {paranoid}: no records for ordinary users")
            check_totals(scratch, [*NOBODY, scratch / "refuse-perf"])
        if not first:
            skipped.append("not the first namespace of process ids: no records of all CPUs")
        else:
            run, threads = check_tier(scratch, "tracepoints", [], "program")
            check_tracepoints(run, threads)
            check_tier(scratch, "all", [], "full", ["-e", "sched,all"])
            both = [next((scratch / name).glob("*.sched")) for name in ("tracepoints", "all")]
            found = json.loads(query("--json", *both))
            expect([s["alignment"] for s in found["streams"]] == ["its own clock", "same clock"], f"two files: {found['streams']}")
            check_samples(scratch)
            check_report(scratch)
            check_killed_companion(scratch, [])
            inside = ["unshare", "--pid", "--fork", "--mount-proc"]
            if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0:
                run, _ = check_tier(scratch, "namespace", inside, "own")
                note = json.loads(query("--json", run.directory))["streams"][0]["note"]
                expect("not the first namespace" in note, f"in another namespace: {note}")
            else:
                skipped.append("no namespaces of process ids can be made here")
            check_killed_recorder(scratch, [], "killed-tracepoints")
            if "other users" not in "".join(skipped):
                check_tier(scratch, "switches", PERFMON, "switches")
    for sentence in failures[:30]:
        print("FAIL:", sentence)
    for reason in skipped:
        print("SKIP (part):", reason)
    sys.exit(bool(failures))


main()
