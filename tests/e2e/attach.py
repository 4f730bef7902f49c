#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd perf
"""hpcrun --unsafe-attach: programs that run already are attached to and left at random moments, and what they print and
return is what they print and return without. What cannot be attached to is refused by name. Reports say since when, and name
the blocks of before by their mappings. Nothing is left in the program but an idle library.

usage: attach.py [--rounds N] [--seed N] [NAME...]"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
LIBRARY = BUILD / ".libs" / "libhpcrun-attach.so"
PYTHON = """import hashlib, json, re, sys
seen, kept = hashlib.sha256(), {}
for i in range(int(sys.argv[1]) * 5000):
    kept[i % 5000] = json.dumps({"a": i, "b": [str(i)] * 8})
    seen.update(re.sub(r"[0-9]", "x", kept[i % 5000]).encode())
print(seen.hexdigest())
"""
SOLVER = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    enum { N = 1 << 19 };
    double *x = calloc(N, sizeof *x), *b = malloc(N * sizeof *b), sum = 0;
    for (int i = 0; i < N; i++)
        b[i] = i % 7;
    for (int turn = 0; turn < 50 * atoi(argv[argc - 1]); turn++) {
        double *next = malloc(N * sizeof *next);
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++)
            next[i] = (b[i] + (i ? x[i - 1] : 0) + (i + 1 < N ? x[i + 1] : 0)) / 4;
        free(x);
        x = next;
    }
    for (int i = 0; i < N; i++)
        sum += x[i];
    printf("%.9f\n", sum);
    return 5;
}
"""
ONE_FILTERED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *work(void *none)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &all};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    for (;;)
        pause();
    return none;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    for (;;)
        pause();
}
"""
RANKS = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, n = 1 << 16;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 30 * atoi(argv[1]); turn++) {
        double *mine = malloc(n * sizeof *mine), *all = malloc(n * sizeof *all);
        for (int i = 0; i < n; i++)
            mine[i] = rank + i % 5 + turn;
        MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all[turn % n] + all[n - 1];
        free(mine);
        free(all);
    }
    if (!rank)
        printf("%.3f\n", sum);
    MPI_Finalize();
    return 0;
}
"""
NAMES = r"""
#include <stdlib.h>
#include <unistd.h>
static double table[1 << 20];
int main(void)
{
    volatile double *before = calloc(1 << 22, sizeof *before);
    for (unsigned x = 1;;) {
        volatile double *after = malloc(sizeof *after << 20);
        for (int i = 0; i < 1 << 20; i++) {
            x = x * 1664525 + 1013904223;
            before[x >> 10] += table[x >> 12];
        }
        for (int turn = 0; turn < 4; turn++)
            for (int i = 0; i < 1 << 20; i++)
                after[i] += turn;
        free((void *)after);
    }
}
"""
SLOW = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
static volatile double sum;
static void *load(void *name)
{
    return dlopen(name, RTLD_NOW);
}
int main(int argc, char **argv)
{
    pthread_t thread;
    double handle = argc;
    pthread_create(&thread, NULL, load, argv[1]);
    for (long i = 0; i < 800000000; i++)
        sum += handle;
    return 6;
}
"""
BUSY = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static volatile double sum;
static void stay(int number)
{
    while (number)
        pause();
}
static void *raise_it(void *unused)
{
    pthread_kill(pthread_self(), SIGUSR1);
    return unused;
}
__attribute__((noinline)) void dlange_(long n)
{
    for (long i = 0; i < n; i++)
        sum += i;
}
static void *work(void *unused)
{
    while (!unused)
        dlange_(100000);
    return unused;
}
int main(void)
{
    pthread_t thread;
    signal(SIGUSR1, stay);
    for (int i = 0; i < 20; i++)
        pthread_create(&thread, NULL, i == 15 ? work : raise_it, NULL);
    raise_it(NULL);
}
"""
STUCK = r"""
#include <signal.h>
static volatile double sum;
static void stay(int number)
{
    for (;;)
        sum += number;
}
int main(void)
{
    signal(SIGUSR1, stay);
    for (;;)
        sum += 1;
}
"""
failures = []
args = None
# One thread: a writer into a pipe whose reader is slow, and a waiter for events that do not come.
WAITS = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static char bytes[1 << 20];
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(int argc, char **argv)
{
    int ends[2], n_whole = 0, n_late = 0, events = epoll_create1(0);
    struct epoll_event event;
    if (pipe(ends) != 0)
        return 2;
    if (fork() == 0) {
        close(ends[1]);
        while (read(ends[0], bytes, 1 << 16) > 0)
            usleep(5000);
        _exit(0);
    }
    close(ends[0]);
    for (int i = 0; i < atoi(argv[argc - 1]); i++) {
        n_whole += write(ends[1], bytes, sizeof bytes) == sizeof bytes;
        n_late += epoll_wait(events, &event, 1, 60) == 0;
        for (double end = now() + 0.02; now() < end;)
            ;
    }
    close(ends[1]);
    wait(NULL);
    printf("%d %d %d\n", n_whole, n_late, errno);
    return 4;
}
"""

scratch = None


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)
        print("FAIL:", sentence, flush=True)


def compile_c(name, text, *options, compiler="gcc"):
    (scratch / f"{name}.c").write_text(text, encoding="utf-8")
    subprocess.run([compiler, "-O2", "-g", "-o", scratch / name, scratch / f"{name}.c", *options], check=True)
    return scratch / name


def attach(pid, seconds, *options):
    directory = scratch / "measured"
    shutil.rmtree(directory, ignore_errors=True)
    return subprocess.run([BUILD / "hpcrun", "--unsafe-attach", str(pid), "--duration", str(seconds), "-o", directory,
                           *options], capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL)


def start(command):
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "OMP_WAIT_POLICY": "passive"})


def finish(process):
    try:
        out, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it does not end"
    return process.returncode, out, err


def find_victim(process, name):
    """The process itself, or that of its children that runs the program of this name."""
    for _ in range(200):
        if not name:
            return process.pid
        found = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in found.splitlines()]
        below, size = {process.pid}, 0
        while len(below) != size:
            size = len(below)
            below |= {int(pid) for pid, parent, _ in rows if int(parent) in below}
        ours = [int(pid) for pid, _, comm in rows if int(pid) in below and comm.strip() == name]
        if ours:
            return random.choice(ours)
        time.sleep(0.01)
    return process.pid


def is_traced(pid):
    try:
        return "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


def attach_with_stops(pid, seconds):
    """Job control stops the program again and again, mostly while hpcrun has one of its threads."""
    shutil.rmtree(scratch / "stopped", ignore_errors=True)
    hpcrun = subprocess.Popen([BUILD / "hpcrun", "--unsafe-attach", str(pid), "--duration", str(seconds), "-o",
                               scratch / "stopped"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    n_stops, end = 0, time.monotonic() + 100
    while hpcrun.poll() is None and time.monotonic() < end:
        if not is_traced(pid) and random.random() > 0.002:
            continue
        time.sleep(random.choice((0, 0, 0.001, 0.003)))
        n_stops += is_traced(pid)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
            time.sleep(random.uniform(0.001, 0.02))
    return subprocess.CompletedProcess([], hpcrun.wait(), "", f"{hpcrun.stderr.read()} ({n_stops} stops of a traced one)")


def sized(command):
    """The command with as much work, its last word, as lasts a second or longer here, what it gives alone, and how long
    that takes."""
    for work in (10 << i for i in range(14)):
        begin = time.monotonic()
        expected = finish(start([*command, work]))
        seconds = time.monotonic() - begin
        if seconds >= 1:
            break
    return [*command, work], expected, seconds


def same(title, command, name=None, measure=attach):
    """Runs it alone, then so many times with hpcrun coming in the first quarter of its time."""
    command, expected, seconds = sized(command)
    n_measured = 0
    for number in range(args.rounds):
        process = start(command)
        time.sleep(random.uniform(0.01, seconds / 4))
        result = measure(find_victim(process, name), round(random.uniform(0.02, 0.4), 3))
        found = finish(process)
        n_measured += result.returncode == 0
        expect(found == expected, f"{title}, {number}: {found} instead of {expected}; hpcrun said: {result.stderr}")
        has_ended = "ended" in result.stderr or "no process" in result.stderr or "No such process" in result.stderr
        expect(result.returncode == 0 or has_ended or "safe point" in result.stderr, f"{title}, {number}: {result.stderr}")
    print(f"{title}: {args.rounds} times, {n_measured} measured", flush=True)
    expect(n_measured * 2 >= args.rounds or measure != attach, f"{title}: {n_measured} of {args.rounds} could be measured")


def compile_cases():
    return compile_c("attach-cases", (SOURCE / "tests/e2e/attach-cases.c").read_text(encoding="utf-8"), "-pthread", "-ldl")


def test_cases():
    program = compile_cases()
    for kinds in ("clmhfm", "Clmhf", "cLmhf", "clMhf", "clmHf", "lmhvf", "lmhVf"):
        same(kinds, [program, kinds])


def test_stops():
    program = compile_cases()
    for kinds in ("lmhf", "Fm"):
        same(f"stops, {kinds}", [program, kinds], measure=attach_with_stops)


def test_slow():
    """The loader is held for seconds, and hpcrun is told to end meanwhile: only after that it does."""
    compile_c("slow.so", "#include <unistd.h>\n__attribute__((constructor)) static void wait(void) { sleep(11); }\n",
              "-shared", "-fPIC")
    process = start([compile_c("slow", SLOW, "-pthread"), scratch / "slow.so"])
    time.sleep(0.5)
    hpcrun = subprocess.Popen([BUILD / "hpcrun", "--unsafe-attach", str(process.pid), "-o", scratch / "slowly"],
                              stderr=subprocess.PIPE, text=True, cwd=scratch)
    end = time.monotonic() + 5
    while not is_traced(process.pid) and time.monotonic() < end:
        pass
    time.sleep(0.5)
    hpcrun.send_signal(signal.SIGQUIT)
    said = hpcrun.communicate(timeout=100)[1]
    expect("in a call of ours for 10 s" in said, f"a slow loader: {said}")
    expect(hpcrun.returncode == -signal.SIGQUIT, f"a slow loader: hpcrun returns {hpcrun.returncode}")
    status = finish(process)[0]
    expect(status == 6, f"a slow loader: the program returns {status}")


def test_waits():
    """A thread that sleeps in a call which has done a part of its work, or that waits for a given time, notices nothing."""
    same("waits", [compile_c("waits", WAITS)])


def test_unread():
    """Nobody reads what hpcrun says: it leaves the program before it ends."""
    process = start([compile_c("unread", BUSY, "-pthread")])
    time.sleep(0.3)
    hpcrun = subprocess.Popen([BUILD / "hpcrun", "--unsafe-attach", str(process.pid), "-o", scratch / "unread-measured"],
                              stderr=subprocess.PIPE, text=True)
    hpcrun.stderr.readline()
    hpcrun.stderr.close()
    status = hpcrun.wait(timeout=120)
    expect(status != -signal.SIGPIPE, "hpcrun was ended by SIGPIPE")
    expect(process.poll() is None and not is_traced(process.pid), "the program has ended or is traced")
    expect((scratch / "unread-measured").is_dir(), "there is no measurement")
    process.kill()
    finish(process)


def test_points():
    """One thread of many is at a safe point, in a function with a name that begins as one of the loader's does."""
    process = start([compile_c("busy", BUSY, "-pthread")])
    time.sleep(0.3)
    result = attach(process.pid, 0.2)
    expect(result.returncode == 0, f"a function dlange_: {result.stderr}")
    process.kill()
    finish(process)


def test_stuck():
    """A program that comes to no safe point any more cannot be left: hpcrun says so, tries on, and pauses the sampling
    when it is told to give up."""
    process = start([compile_c("stuck", STUCK)])
    time.sleep(0.2)
    hpcrun = subprocess.Popen([BUILD / "hpcrun", "--unsafe-attach", str(process.pid), "-o", scratch / "stuck-measured"],
                              stderr=subprocess.PIPE, text=True)
    for words, number in (("attached", signal.SIGUSR1), ("cannot leave yet", None)):
        for line in hpcrun.stderr:
            if words in line:
                break
        else:
            expect(False, f"it does not say \"{words}\"")
        if number:
            process.send_signal(number)
            time.sleep(0.3)
        hpcrun.send_signal(signal.SIGINT)
    said = hpcrun.communicate(timeout=60)[1]
    expect(hpcrun.returncode == 1 and "the sampling is paused" in said, f"a program that is stuck: {said}")
    expect(process.poll() is None, "a program that is stuck has ended")
    process.kill()
    finish(process)


def test_python():
    (scratch / "work.py").write_text(PYTHON, encoding="utf-8")
    same("python3", [sys.executable, scratch / "work.py"])


def test_solver():
    same("solver", [compile_c("solver", SOLVER, "-fopenmp")])


def test_ranks():
    compiler = shutil.which("mpicc.mpich")
    if not compiler or not shutil.which("mpiexec.mpich"):
        print("SKIP (part): mpich is not installed")
        return
    program = compile_c("ranks", RANKS, compiler=compiler)
    same("ranks", ["mpiexec.mpich", "-n", "2", program], name="ranks")


def ask_redis(port, *lines):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("".join(f"{line}\r\n" for line in lines).encode())
        text, stream = [], connection.makefile("rb")
        for _ in lines:
            text.append(stream.readline())
        return text


def test_redis():
    if not shutil.which("redis-server"):
        print("SKIP (part): redis-server is not installed")
        return
    for number in range(args.rounds):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = start(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"])
        for _ in range(200):
            try:
                ask_redis(port, "PING")
                break
            except OSError:
                time.sleep(0.02)
        hpcrun = subprocess.Popen([BUILD / "hpcrun", "--unsafe-attach", str(server.pid), "--duration", "0.3", "-o",
                                   scratch / f"redis{number}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        n = 0
        while hpcrun.poll() is None or n < 1:
            keys = range(n * 500, n * 500 + 500)
            found = ask_redis(port, *[f"SET k{key} {'v' * (key % 200)}{key}" for key in keys])
            expect(found == [b"+OK\r\n"] * 500, f"redis, {number}: {found[:3]}")
            found = ask_redis(port, *[f"INCR n{key % 17}" for key in keys])
            expect(all(line.startswith(b":") for line in found), f"redis, {number}: {found[:3]}")
            n += 1
        expect(hpcrun.returncode == 0, f"redis, {number}: {hpcrun.stderr.read()}")
        expect(ask_redis(port, "DBSIZE") == [f":{n * 500 + 17}\r\n".encode()], f"redis, {number}: its size is another one")
        server.send_signal(signal.SIGTERM)
        expect(finish(server)[0] == 0, f"redis, {number}: its status is {server.returncode}")
    print(f"redis: {args.rounds} times", flush=True)


def seen_of(pid):
    """What a program could find out about itself."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    kept = [line for line in status if line.startswith(("Sig", "Shd", "Threads", "TracerPid", "Seccomp", "Umask"))
            and not line.startswith("SigQ")]
    return kept, sorted(os.listdir(f"/proc/{pid}/fd")), pathlib.Path(f"/proc/{pid}/limits").read_text(encoding="utf-8")


def test_report():
    process = start([compile_c("names", NAMES)])
    time.sleep(0.5)
    before = seen_of(process.pid)
    result = attach(process.pid, 3, "--report")
    expect(result.returncode == 0, f"--report: {result.stderr}")
    for words in (f"attached  to process {process.pid} at ", "mapping of ", "allocated before", "names of their mappings",
                  "after ", "main (names.c:9)"):
        expect(words in result.stderr, f"the report does not say \"{words}\": {result.stderr}")
    expect(seen_of(process.pid) == before, f"after it: {seen_of(process.pid)}, before: {before}")
    again = attach(process.pid, 1)
    expect(again.returncode == 1 and "attached to before" in again.stderr, f"the second time: {again.stderr}")
    process.kill()
    finish(process)


def test_ends():
    """A program that ends while it is measured, and hpcrun that is told to."""
    process = start([compile_cases(), "F", "100000"])
    time.sleep(0.2)
    result = attach(process.pid, 60)
    expect(finish(process)[0] == 3 and result.returncode == 0, f"a program that ends: {result.stderr}")
    expect(list((scratch / "measured").glob("*.hpcrun")), "a program that ends has no profile")
    process = start([compile_c("names", NAMES)])
    time.sleep(0.2)
    hpcrun = subprocess.Popen([BUILD / "hpcrun", "--unsafe-attach", str(process.pid), "-o", scratch / "interrupted"],
                              stderr=subprocess.PIPE, text=True)
    for line in hpcrun.stderr:
        if "attached" in line:
            break
    time.sleep(0.5)
    hpcrun.send_signal(signal.SIGINT)
    hpcrun.communicate(timeout=60)
    expect(hpcrun.returncode == 0 and process.poll() is None, "SIGINT does not end hpcrun alone")
    expect(list((scratch / "interrupted").glob("*.hpcrun")), "after SIGINT there is no profile")
    process.kill()
    finish(process)


def refused(command, words, prefix=()):
    process = start([*prefix, *command])
    time.sleep(0.3)
    victim = process.pid
    result = attach(victim, 1)
    expect(result.returncode == 1 and words in result.stderr, f"{command}: not \"{words}\" but: {result.stderr}")
    expect(process.poll() is None, f"{command}: has ended")
    process.kill()
    finish(process)


def test_name():
    for words in (["--attach", "4711"], ["--attach=4711"], ["--attach"]):
        result = subprocess.run([BUILD / "hpcrun", *words], capture_output=True, text=True, check=False)
        expect(result.returncode == 2 and "--unsafe-attach PID" in result.stderr, f"{words}: {result.stderr}")


def test_refusals():
    sleeper = "#include <unistd.h>\n%s\nint main(void) { %s for (;;) pause(); }\n"
    refused([compile_c("fixed", sleeper % ("", ""), "-static")], "statically linked")
    refused([compile_c("filtered", sleeper % ("#include <sys/prctl.h>\n#include <linux/seccomp.h>\n#include <linux/filter.h>",
             "struct sock_filter f = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); struct sock_fprog p = {1, &f};"
             "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);"))], "seccomp filter")
    refused([compile_c("one-filtered", ONE_FILTERED, "-pthread")], "seccomp filter")
    refused([compile_c("urgent", sleeper % ("#include <signal.h>\nstatic void handle(int n) { (void)n; }",
                                            "signal(SIGURG, handle);"))], "handles SIGURG")
    refused([compile_c("awaiting", sleeper % ("#include <signal.h>", "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGURG);"
             " sigprocmask(SIG_BLOCK, &s, NULL); int n; sigwait(&s, &n);"))], "reads SIGURG")
    refused([compile_c("reading", sleeper % ("#include <signal.h>\n#include <sys/signalfd.h>", "sigset_t s; sigemptyset(&s);"
             " sigaddset(&s, SIGURG); sigprocmask(SIG_BLOCK, &s, NULL); signalfd(-1, &s, 0);"))], "reads SIGURG")
    refused([compile_c("traced", sleeper % ("#include <sys/prctl.h>\n#include <sys/ptrace.h>", "if (fork() == 0) {"
             " prctl(PR_SET_PDEATHSIG, 9); ptrace(PTRACE_SEIZE, getppid(), 0, 0); }"), "-D_GNU_SOURCE")], "is traced by process")
    plain = compile_c("plain", sleeper % ("", ""))
    refused([plain], "is measured already", prefix=[BUILD / "hpcrun", "-o", scratch / "started"])
    if os.geteuid() == 0 and shutil.which("setpriv"):
        process = start([plain])
        time.sleep(0.2)
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BUILD / "hpcrun",
                                 "--unsafe-attach", str(process.pid)], capture_output=True, text=True, check=False, cwd="/")
        expect(result.returncode != 0 and ("only that user" in result.stderr or "ermission" in result.stderr),
               f"another user: {result.stderr}")
        process.kill()
        finish(process)
    result = attach(2 ** 22 - 3, 1)
    expect(result.returncode == 1 and "cannot be attached to" in result.stderr, f"no process: {result.stderr}")
    process = start([plain])
    for options, words in ((("-e", "REALTIME"), "cannot be measured"), (("-e", "BLOCKTIME"), "cannot"),
                           (("--delay", "1"), "do not go with --unsafe-attach")):
        result = attach(process.pid, 1, *options)
        expect(result.returncode != 0 and words in result.stderr, f"{options}: {result.stderr}")
    process.kill()
    finish(process)


def main():
    global args, scratch
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3 if os.environ.get("LOCUS_TEST_FULL") else 2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not LIBRARY.exists():
        print("SKIP: libhpcrun-attach.so has not been built")
        sys.exit(77)
    random.seed(args.seed)
    print(f"--seed {args.seed}")
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    with tempfile.TemporaryDirectory(prefix="locus-attach-") as directory:
        scratch = pathlib.Path(directory)
        for name, test in tests.items():
            if not args.names or name.removeprefix("test_") in args.names:
                test()
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
