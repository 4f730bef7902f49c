# SPDX-License-Identifier: BSD-3-Clause
"""What the objects refer to. A *-sig.o runs in signal handlers: it may call other *-sig.o and the few names of
SIGNAL_SAFE. A *-hook.o runs inside malloc: no allocation, no stdio. What runs inside the program calls no cancellation
point of libc, and makes system calls in one place. No object has a writable global."""
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile

import tree

# Memory and string leaves, raw system calls and POSIX async-signal-safe wrappers of them; _dl_find_object is
# documented as such by glibc. errno must be saved and restored, so its address is needed.
SIGNAL_SAFE = set("""
    memcpy memmove memset memcmp strlen strnlen strcmp __errno_location __stack_chk_fail _GLOBAL_OFFSET_TABLE_
    syscall clock_gettime sched_getcpu _dl_find_object
    """.split())
# Fortified and checked spellings of the same leaves.
SIGNAL_SAFE |= {f"__{name}_chk" for name in ("memcpy", "memmove", "memset")}

# Names that one object may use: a walk in a hook begins with the registers as they are, which is a system call.
SAFE_IN = {"unwind-libunwind-sig.o": {"getcontext"}}

NEVER_IN_HOOKS = re.compile(r"""^(
    malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|memalign|strn?dup|v?asprintf|getline|
    (v?[fsd]?n?|v?sn)printf|(__\w*printf_chk)|puts|fputs|fputc|putc|putchar|perror|f?open_memstream|
    fopen|fdopen|fclose|fread|fwrite|fflush|opendir|readdir|popen|qsort|setenv|putenv|
    stdout|stderr|stdin|syslog|_Zn[wa]\w+|_Zd[la]\w+)$""", re.X)

# pthreads(7) of Linux, both lists, as far as they name system calls; and what glibc makes one beyond them.
CANCELLATION_POINTS = set("""
    accept accept4 clock_nanosleep close closedir connect copy_file_range creat epoll_pwait epoll_pwait2 epoll_wait
    fallocate fcntl fdatasync fsync getentropy getmsg getpmsg getrandom lockf mq_receive mq_send mq_timedreceive
    mq_timedsend msgrcv msgsnd msync nanosleep open open_by_handle_at openat pause poll posix_fallocate ppoll pread
    preadv preadv2 pselect pthread_clockjoin_np pthread_cond_clockwait pthread_cond_timedwait pthread_cond_wait
    pthread_join pthread_testcancel pthread_timedjoin_np putmsg putpmsg pwrite pwritev pwritev2 read readv recv recvfrom
    recvmmsg recvmsg select sem_clockwait sem_timedwait sem_wait send sendmmsg sendmsg sendto sigpause sigsuspend
    sigtimedwait sigwait sigwaitinfo sleep splice sync_file_range syslog system tcdrain tee usleep vmsplice wait wait3
    wait4 waitid waitpid write writev
    """.split())
# Of libc, what runs inside the program may call: these make no system call, except a wait where another thread holds
# their lock.
NO_SYSTEM_CALL = re.compile(r"""^(
    _GLOBAL_OFFSET_TABLE_|_DYNAMIC|__errno_location|__stack_chk_fail|__tls_get_addr|environ|__libc_stack_end|__libc_single_threaded|__ehdr_start|__(start|stop)_(locus_text|wait_slots)|
    __(asan|tsan|msan|ubsan|sanitizer)_\w+|__real_\w+|__pthread_\w*cancel|__pthread_unwind_next|__sigsetjmp|
    (__)?mem\w+|(__)?str(len|nlen|n?cmp|verscmp|n?cpy|c?spn|r?chr|str|tol|error)(_chk)?|
    (__)?snprintf(_chk)?|__isoc23_strtol|pthread_(mutex_trylock|rwlock_try(rd|wr)lock)|
    sig(add|del|empty|fill)set|sigismember|getauxval|getpagesize|sysconf|gnu_get_libc_version|sched_getcpu|fileno|stdout|
    __rseq_(offset|size)|gnu_get_libc_release|dladdr1?|dlsym|dlerror|dl_iterate_phdr|_dl_find_object|
    at_quick_exit|atexit|pthread_atfork|pthread_attr_\w+|
    pthread_getattr_default_np|pthread_setcancelstate|posix_spawnattr_\w+|_r_debug|
    __longjmp_chk|_U\w+|_ULx86_64\w+|getcontext)$""", re.X)
# What else each object may call, and why not through own-call.h, which asks the filters of a sandbox before.
SYSTEM_CALLS = {
    "own-call-sig.o": {"syscall", "clock_gettime"},  # our system calls themselves; clocks read in user space
    "wrap-system.o": {"__waitpid"},  # system() is a cancellation point where it waits
    "wrap-process.o": {"syscall"},  # the program's own mlockall
    "real-hook.o": {"syscall"},  # the program's own mmap, before libc's is known
    "wrap-mmap-hook.o": {"shmctl"},  # after the program's own shmat
    "events.o": {"alarm"},  # at the start
    "start.o": {"getppid", "getuid", "readlink"},  # at the start, and in a child that has been measured anew
    # Before the start, alone in the process.
    "link-static.o": {"access", "execve", "execv", "getppid", "readlink", "setenv", "stat"},
}
# What the preloaded library imports although another library could interpose it, and why that does no harm; everything
# else that it needs of libc is in own-libc.c.
IMPORTS = re.compile(r"""^(
    environ|__environ|__libc_stack_end|__libc_single_threaded|_r_debug|__rseq_(offset|size)| # data
    gnu_get_libc_release| # its address only
    _dl_find_object| # of the loader; weak, because older ones have none, which a definition of ours would hide
    getcontext| # before a walk of libunwind's
    __sigsetjmp|__pthread_unwind_next| # return twice, or never; where the program's own functions are called
    __(asan|tsan|msan|ubsan|sanitizer)_\w+| # of the program or of a build with a sanitizer
    __cxa_finalize|__gmon_start__|_ITM_(de)?registerTMCloneTable| # the compiler's start and end of every library
    __stack_chk_fail)$""", re.X)
IN_PROGRAM = re.compile(r"src/(runtime|alloc-wrap|sampling/abi)/|recipe-eval-sig")


@functools.lru_cache(maxsize=None)
def symbols():
    """{object: [(name, nm's letter)]} of all objects, read by one nm."""
    paths = {str(path): path for path in tree.objects("*.o")}
    lines = subprocess.run(["nm", "-P", *paths], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {path: [] for path in paths.values()}
    names = next(iter(found.values()))  # of one object alone nm does not print the name
    for line in lines:
        if line.endswith(":") and line[:-1] in paths:
            names = found[paths[line[:-1]]]
        else:
            names.append(tuple(line.split()[:2]))
    return found


def undefined(path):
    return [name for name, letter in symbols()[path] if letter in "Uwv"]


def entries(paths):
    """What these objects define for others."""
    return {name for path in paths for name, letter in symbols()[path] if letter in "uiVW" or letter.isupper() and letter != "U"}


def short(path):
    return path.relative_to(tree.BUILD)


def check_signal_objects():
    objects = tree.objects("*-sig.o")
    defined = entries(objects)
    for path in objects:
        for name in undefined(path):
            own = set().union(*(names for end, names in SAFE_IN.items() if path.name.endswith(end)))
            if name not in SIGNAL_SAFE | own and name not in defined:
                yield f"{short(path)} refers to {name}, which is not known to be safe in a signal handler"
    for name in defined:
        if not name.endswith("_sig"):
            yield f"entry point {name} of a -sig file does not end in _sig"


def check_hook_objects():
    for path in tree.objects("*-hook.o"):
        for name in undefined(path):
            if NEVER_IN_HOOKS.match(name):
                yield f"{short(path)} refers to {name}, which must not be used inside malloc"


def allowed_calls(path):
    rows = SYSTEM_CALLS.items()
    return set().union(*(names for end, names in rows if re.search(rf"(^|-){re.escape(end)}$", path.name)))


def check_cancellation():
    for path in tree.objects("*.o"):
        if not IN_PROGRAM.search(str(short(path))):
            continue
        for name in undefined(path):
            leaf = re.sub(r"^(__)?(\w+?)(64)?(_2|_chk)?$", r"\2", name)
            if leaf in CANCELLATION_POINTS and name not in allowed_calls(path):
                yield f"{short(path)} refers to {name}, a cancellation point: make the system call itself"


def check_system_calls():
    objects = [path for path in tree.objects("*.o") if IN_PROGRAM.search(str(short(path)))]
    defined = entries(path for path in objects if not path.name.endswith("own-libc.o")) | {"own_libc_function"}
    for path in objects:
        own = allowed_calls(path)
        for name in undefined(path):
            if name not in defined | own and not NO_SYSTEM_CALL.match(name):
                yield (f"{short(path)} refers to {name}: if it enters the kernel, go through own-call.h, else add it "
                       "to NO_SYSTEM_CALL")


def check_imports():
    library = tree.BUILD / ".libs" / "libhpcrun.so"
    if not library.exists():
        print("SKIP (part): this build has no libhpcrun.so")
        return
    listed = subprocess.run(["nm", "-PD", "--undefined-only", str(library)], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        name = line.split()[0].split("@")[0]
        if not IMPORTS.match(name):
            yield (f"libhpcrun.so imports {name}: another preloaded library may interpose it, whose constructor has not "
                   "run yet; define it in own-libc.c")


def check_own_libc():
    """What each compiler at hand makes of the loops and comparisons of own-libc.c: no call of the function itself, and
    none of another name of libc."""
    source = tree.ROOT / "src" / "runtime" / "own" / "own-libc.c"
    for compiler in filter(shutil.which, ("gcc", "clang") if source.exists() else ()):
        for level in ("-O2", "-O3"):
            with tempfile.TemporaryDirectory() as scratch:
                made = pathlib.Path(scratch) / "own-libc.o"
                subprocess.run([compiler, level, "-w", "-std=gnu17", "-D_GNU_SOURCE", "-fPIC", f"-I{tree.ROOT / 'src'}",
                                "-c", str(source), "-o", str(made)], check=True)
                listed = subprocess.run(["nm", "-Pu", str(made)], capture_output=True, text=True, check=True).stdout
                code = subprocess.run(["objdump", "-dr", str(made)], capture_output=True, text=True, check=True).stdout
            for name in (line.split()[0] for line in listed.splitlines()):
                if not name.endswith("_sig") and name not in ("_GLOBAL_OFFSET_TABLE_", "_DYNAMIC") and not IMPORTS.match(name):
                    yield f"{compiler} {level} makes a call of {name} in own-libc.c: define it there"
            function = ""
            for line in code.splitlines():
                head = re.match(r"[0-9a-f]+ <(\w+)>:", line)
                function = head.group(1) if head else function
                if re.search(rf"R_\w+\s+{function}\b(?!\.)", line):
                    yield f"{compiler} {level} makes a call of itself in {function} of own-libc.c"


def writable_globals(path):
    """Names of objects with external linkage in writable or thread-local memory (tables of constants that only need
    relocation are .data.rel.ro and not meant)."""
    sections, found = {}, []
    text = subprocess.run(["readelf", "-SsW", str(path)], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        section = re.match(r"\s*\[\s*(\d+)\]\s+(\S+)", line)
        if section:
            sections[section.group(1)] = section.group(2)
        symbol = line.split()
        if len(symbol) == 8 and symbol[3] in ("OBJECT", "TLS") and symbol[4] != "LOCAL" and symbol[6] != "UND":
            name = sections.get(symbol[6], symbol[6])
            if re.match(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)|COM", name):
                found.append(symbol[7])
    return found


def main():
    paths = tree.objects("*.o")
    if not paths:
        tree.skip(f"no objects below {tree.BUILD}")
    offenders = list(check_signal_objects()) + list(check_hook_objects()) + list(check_cancellation())
    offenders += list(check_system_calls()) + list(check_imports())
    offenders += check_own_libc()
    for path in paths:
        offenders += [f"{short(path)} has the global variable {name}" for name in writable_globals(path)]
    for kind in ("sig", "hook"):
        if not tree.objects(f"*-{kind}.o"):
            print(f"SKIP (part): this build has no *-{kind}.o")
    tree.finish(sorted(offenders), len(paths))


main()
