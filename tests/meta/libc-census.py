# SPDX-License-Identifier: BSD-3-Clause
"""Every function of glibc that starts, ends, duplicates or limits processes, threads, signals, descriptors or memory is
in libc-census.tsv: wrapped, or needing nothing for a reason. Names come from libc.so.6 and its headers, by patterns, so
that a new one shows up; what is wrapped is what libhpcrun.so exports."""
import fnmatch
import os
import re
import subprocess

import tree

TABLE = "tests/meta/libc-census.tsv"
PATTERNS = [
    r"sig|longjmp|setjmp|context$|poll|epoll|^(__)?p?select$|^(__)?(raise|kill|killpg|abort|pause|u?alarm)$",
    r"fork|exec|spawn|system$|popen|pclose|wordexp|daemon|clone|unshare|setns|pidfd|ptrace|login_tty|atexit|at_quick",
    r"^_?_?(exit|quick_exit)$|^_Exit$|^(__)?wait|^(__)?pthread_|^thrd_|^tss_|^mtx_|^cnd_|^call_once$",
    r"rlimit|^[uv]limit$|^vtimes$|^nice$|setpriority|^sched_|^acct$|umask|chroot|pivot_root|^f?chdir$|^vhangup$|^reboot$",
    r"^(__)?(open|openat|creat|close|dup|pipe|socket|accept|eventfd|timerfd_create|inotify_init|fcntl|memfd|shm_open|mq_open"
    r"|fanotify_init|userfaultfd|getdtable|fdopen|fclose|fcloseall|name_to_handle|posix_openpt|getpt$|fs(open|pick|mount)"
    r"|recvmm?sg|ioctl|tmpfile|mkstemp)",
    r"^(__)?(mmap|munmap|mremap|mprotect|madvise|m(un)?lock|msync|s?brk$|shm|remap_file|pkey_|posix_madvise|process_|mincore"
    r"|malloc|calloc|realloc|free$|cfree|memalign|aligned_alloc|posix_memalign|p?valloc|mallinfo|mallopt|mcheck|m(un)?trace"
    r"|mprobe)",
    r"^(__)?[sg]et(re?s?|e|fs)?[ug]id$|^(__)?[sg]et(groups|pgid|pgrp|sid|itimer)$|^timer_|prctl$|^personality$|^syscall$|^capset$",
    r"^_?dl|^__libc_(malloc|calloc|realloc|free|memalign|start|init|fork|system)|mq_notify|^aio_|^lio_listio|getaddrinfo_a",
    r"^(set|put|unset|clear)env$",
]
HEADERS = """dlfcn.h fcntl.h malloc.h mqueue.h poll.h pthread.h sched.h setjmp.h signal.h spawn.h stdio.h stdlib.h threads.h
    time.h ucontext.h unistd.h wordexp.h sys/epoll.h sys/eventfd.h sys/inotify.h sys/mman.h sys/mount.h sys/pidfd.h
    sys/prctl.h sys/ptrace.h sys/random.h sys/resource.h sys/select.h sys/shm.h sys/signalfd.h sys/socket.h sys/syscall.h
    sys/timerfd.h sys/time.h sys/wait.h""".split()
# What we export of other libraries and of our own.
OTHERS = re.compile(r"^(DATACENTRIC|GOMP_|MPI_|mpi_|hpctoolkit_|locus_|heaptrack_|__itt_|__kmpc_|InitializeInjection|_Z)")


def interesting(name):
    return any(re.search(pattern, name) for pattern in PATTERNS)


def names_of_libc():
    """Functions that libc.so.6 exports by default or in an older version, without those private to glibc."""
    compiler = os.environ.get("CC", "gcc").split()
    path = subprocess.run([*compiler, "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True).stdout
    if not os.path.isabs(path.strip()):
        tree.skip("the compiler does not say where libc.so.6 is")
    lines = subprocess.run(["nm", "-D", "--defined-only", path.strip()], capture_output=True, text=True, check=True).stdout
    names = set()
    for line in lines.splitlines():
        kind, name = line.split()[-2:]
        if kind in "TWi" and "GLIBC_PRIVATE" not in name:
            names.add(name.split("@")[0])
    return names


def names_of_headers():
    """Functions that the headers declare."""
    compiler = os.environ.get("CC", "gcc").split()
    text = "#define _GNU_SOURCE\n" + "".join(f"#if __has_include(<{h}>)\n#include <{h}>\n#endif\n" for h in HEADERS)
    out = subprocess.run([*compiler, "-E", "-P", "-x", "c", "-"], input=text, capture_output=True, text=True, check=True)
    return set(re.findall(r"\bextern\b[^;{}()]*?\b(\w+) *\(", out.stdout))


def read_table():
    rows = []
    for number, line in enumerate(tree.read(TABLE).splitlines(), 1):
        if line and not line.startswith("#"):
            fields = line.split("\t")
            rows.append((number, fields[0].split(), *fields[1:], *[""] * (4 - len(fields))))
    return rows


def check_rows(rows):
    for number, names, how, why, test in rows:
        if how not in ("wrapped", "nothing") or not why:
            yield f"{TABLE}:{number} has no verdict, or no reason"
        if test and not (tree.ROOT / test).exists():
            yield f"{TABLE}:{number} names {test}, which is not there"
        if how == "wrapped" and not test and names != ["chroot"]:
            yield f"{TABLE}:{number} names no test"
        if how == "wrapped" and any("*" in name for name in names):
            yield f"{TABLE}:{number} wraps names with *"


def main():
    rows = read_table()
    offenders = list(check_rows(rows))
    exports = {line.split()[0] for path in ("src/runtime/exports.txt", "src/alloc-wrap/exports.txt")
               for line in tree.read(path).splitlines() if line and not line.startswith("#")}
    exports = {name for name in exports if not OTHERS.match(name)}
    wrapped = {name for _, names, how, _, _ in rows if how == "wrapped" for name in names}
    offenders += [f"{name} is exported, but not `wrapped` in {TABLE}" for name in exports - wrapped]
    offenders += [f"{name} is `wrapped` in {TABLE}, but not exported" for name in wrapped - exports]
    libc, headers = names_of_libc(), names_of_headers()
    if len(libc) < 1000 or "sigaction" not in headers:
        offenders.append("the names of libc or of its headers could not be read")
    globs = [name for _, names, _, _, _ in rows for name in names]
    exact, used = {g for g in globs if "*" not in g}, set()
    compiled = [(g, re.compile(fnmatch.translate(g))) for g in globs if "*" in g]
    for name in libc | headers:
        found = [name] if name in exact else [g for g, pattern in compiled if pattern.match(name)]
        used.update(found)
        if interesting(name) and not found:
            offenders.append(f"{name} of glibc is not in {TABLE}: say how the profiler keeps out of its way")
    library = tree.BUILD / ".libs" / "libhpcrun.so"
    if library.exists():
        lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
        present = {line.split()[-1].split("@")[0] for line in lines.stdout.splitlines()}
        offenders += [f"{name} is not among the symbols of libhpcrun.so" for name in wrapped - present]
    print(f"{len([n for n in libc | headers if interesting(n)])} functions of glibc, {len(wrapped)} wrapped")
    tree.finish(sorted(offenders), len(globs))


main()
