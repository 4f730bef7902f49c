/* SPDX-License-Identifier: BSD-3-Clause */
/* Habits of programs that profilers are known to trip over: other kinds of threads, their own signals and timers, jumps
 * out of handlers, sandboxes, other namespaces of the loader, code made at run time. The first argument is the name of
 * one; every way computes for a while, prints what it saw and ends with a status of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"

#define BURN_MS 60
#define N_CROWD 400

static const char *own_path;

static int end_with(int status)
{
    say("burnt", burn(BURN_MS));
    return status;
}

static int burn_c11(void *argument)
{
    (void)argument;
    return burn(BURN_MS / 2) != 0;
}

static int way_c11(void)
{
    thrd_t threads[3];
    int result, sum = 0;
    for (int i = 0; i < 3; i++)
        if (thrd_create(&threads[i], burn_c11, NULL) != thrd_success)
            return 91;
    for (int i = 0; i < 3; i++)
        sum += thrd_join(threads[i], &result) == thrd_success ? result : 50;
    say("joined", (unsigned)sum);
    return end_with(4);
}

/* A thread as runtimes make them that know no pthreads: without a thread control block that libc knows of. */
static struct {
    _Atomic unsigned result;
    _Atomic int tid; /* cleared by the kernel at its end */
    char tls[4096];
} raw;

static int raw_main(void *argument)
{
    unsigned sum = 0;
    (void)argument;
    for (unsigned i = 0; i < 100000000; i++)
        sum = sum * 1664525u + i;
    atomic_store(&raw.result, sum);
    syscall(SYS_exit, 0);
    return 0;
}

static int way_raw_clone(void)
{
    size_t n_bytes = 256 * 1024;
    char *stack = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;
    char *tls = raw.tls + sizeof raw.tls / 2;
    memcpy(tls, &(void *){tls}, sizeof(void *)); /* fs:0 points to itself */
    atomic_store(&raw.tid, 1);
    if (clone(raw_main, stack + n_bytes, flags, NULL, NULL, tls, &raw.tid) < 0)
        return 91;
    say("burnt", burn(BURN_MS));
    while (atomic_load(&raw.tid) != 0)
        usleep(1000);
    say("raw thread", atomic_load(&raw.result));
    return 5;
}

static pthread_barrier_t crowd_barrier;

static void *crowd_main(void *argument)
{
    char *block = malloc(3000);
    memset(block, 1, 3000);
    pthread_barrier_wait(&crowd_barrier);
    *(unsigned *)argument = (unsigned)block[2999];
    free(block);
    return NULL;
}

static int way_crowd(void)
{
    static pthread_t threads[N_CROWD];
    static unsigned results[N_CROWD];
    pthread_attr_t attr;
    unsigned sum = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    pthread_barrier_init(&crowd_barrier, NULL, N_CROWD);
    for (int i = 0; i < N_CROWD; i++)
        if (pthread_create(&threads[i], &attr, crowd_main, &results[i]) != 0)
            return 91;
    for (int i = 0; i < N_CROWD; i++) {
        pthread_join(threads[i], NULL);
        sum += results[i];
    }
    say("crowd", sum);
    return end_with(6);
}

/* A daemon: two forks, a session of its own; what it found out comes through a pipe that the first process reads. */
static int way_daemon(void)
{
    int fds[2];
    char byte = 0;
    if (pipe(fds) != 0)
        return 91;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        (void)!chdir("/");
        umask(0);
        byte = burn(BURN_MS) != 0 ? 'd' : 'x';
        (void)!write(fds[1], &byte, 1);
        exit(0);
    }
    close(fds[1]);
    waitpid(child, NULL, 0);
    if (read(fds[0], &byte, 1) != 1)
        return 92;
    (void)!read(fds[0], &byte, 1); /* its end */
    say("daemon said", (unsigned)byte);
    return end_with(7);
}

static int way_deathsig(void)
{
    int fds[2];
    char byte = 0;
    if (pipe(fds) != 0)
        return 91;
    pid_t middle = fork();
    if (middle == 0) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)!write(fds[1], "r", 1);
            for (;;)
                burn(20);
        }
        while (read(fds[0], &byte, 1) != 1)
            ;
        burn(BURN_MS);
        _exit(0);
    }
    waitpid(middle, NULL, 0);
    close(fds[1]);
    say("end of pipe", (unsigned)read(fds[0], &byte, 1)); /* 0 once the grandchild is dead */
    return end_with(8);
}

#define DENY(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)

/* A sandbox that is entered in the middle of the run, and that knows nothing of profilers. */
static bool enter_sandbox(unsigned action)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(SYS_perf_event_open),
        DENY(SYS_socket),
        DENY(SYS_connect),
        DENY(SYS_ioctl),
        DENY(SYS_timer_create),
        DENY(SYS_nanosleep),
        DENY(SYS_openat),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int sandboxed(unsigned action, int status)
{
    thrd_t thread;
    int result = 0;
    say("before", burn(BURN_MS));
    if (!enter_sandbox(action))
        return 77;
    if (thrd_create(&thread, burn_c11, NULL) != thrd_success || thrd_join(thread, &result) != thrd_success)
        return 91;
    say("thread", (unsigned)result);
    return end_with(status);
}

static int way_sandbox(void)
{
    return sandboxed(SECCOMP_RET_ERRNO | EPERM, 9);
}

static int way_deadly_sandbox(void)
{
    return sandboxed(SECCOMP_RET_KILL_PROCESS, 10);
}

static _Atomic unsigned n_signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

/* Its own profiler: SIGPROF of an interval timer and of a POSIX timer of its own. */
static int way_timers(void)
{
    struct sigaction action = {.sa_handler = count_signal};
    struct itimerval interval = {{0, 2000}, {0, 2000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct itimerspec every = {{0, 2000000}, {0, 2000000}};
    timer_t timer;
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    setitimer(ITIMER_PROF, &interval, NULL);
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
        return 91;
    burn(4 * BURN_MS);
    timer_delete(timer);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    say("its signals came", atomic_load(&n_signals) > 5);
    return end_with(11);
}

/* SIGURG, SIGTRAP and SIGIO for itself, with handlers that see their own signals only. */
static int way_own_signals(void)
{
    static const int numbers[] = {SIGURG, SIGTRAP, SIGIO};
    struct sigaction action = {.sa_handler = count_signal}, back;
    for (int i = 0; i < 3; i++) {
        sigaction(numbers[i], &action, NULL);
        sigaction(numbers[i], NULL, &back);
        say("handler is mine", back.sa_handler == count_signal);
    }
    for (int round = 0; round < 30; round++) {
        burn(4);
        raise(numbers[round % 3]);
    }
    say("signals", atomic_load(&n_signals));
    return end_with(12);
}

static sigjmp_buf jump_back;

static void jump_out(int number)
{
    (void)number;
    siglongjmp(jump_back, 1);
}

static int way_jumps(void)
{
    static volatile unsigned n_jumps, n_rounds;
    struct sigaction action = {.sa_handler = jump_out};
    struct itimerval once = {{0, 0}, {0, 1500}};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    while (n_jumps < 40) {
        if (sigsetjmp(jump_back, 1)) {
            n_jumps++;
            continue;
        }
        if (n_jumps % 2)
            *(volatile int *)(uintptr_t)8 = 1;
        free(malloc(2000 + n_jumps));
        setitimer(ITIMER_REAL, &once, NULL);
        for (;;)
            n_rounds++;
    }
    say("jumps", n_jumps);
    return end_with(13);
}

static int way_namespaces(void)
{
    void *math = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
    double (*cosine)(double) = math ? (double (*)(double))dlsym(math, "cos") : NULL;
    if (!cosine)
        return 91;
    double sum = 0;
    for (int i = 0; i < 2000000; i++)
        sum += cosine(i);
    say("sum", (unsigned)(sum * 1000));
    dlclose(math);
    return end_with(14);
}

/* Code made at run time: lea eax,[rdi+1]; ret. */
static int way_jit(void)
{
#ifdef __x86_64__
    static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3};
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 91;
    memcpy(page, code, sizeof code);
    unsigned (*next)(unsigned) = (unsigned (*)(unsigned))(uintptr_t)page;
    unsigned value = 0;
    for (unsigned i = 0; i < 50000000; i++)
        value = next(value);
    say("value", value);
    munmap(page, 4096);
#endif
    return end_with(15);
}

static int way_bare_exec(void)
{
    pid_t child = fork();
    if (child == 0) {
        burn(BURN_MS);
        execle("/bin/sh", "sh", "-c", "echo \"preload ${LD_PRELOAD:-none}\"; exit 5", (char *)NULL,
               (char *[]){"PATH=/bin:/usr/bin", NULL});
        _exit(92);
    }
    int status = 0;
    waitpid(child, &status, 0);
    say("child", (unsigned)WEXITSTATUS(status));
    return end_with(16);
}

static int way_small_limits(void)
{
    struct rlimit limit = {.rlim_cur = 128 * 1024, .rlim_max = 128 * 1024};
    setrlimit(RLIMIT_STACK, &limit);
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_NPROC, &(struct rlimit){4000, 4000});
    return sandboxed(SECCOMP_RET_ALLOW, 17);
}

static int way_self_exec(void)
{
    static int depth;
    const char *text = getenv("HABITS_DEPTH");
    depth = text ? atoi(text) : 0;
    char next[16];
    say("depth", (unsigned)depth);
    burn(BURN_MS);
    if (depth == 3)
        return 18;
    snprintf(next, sizeof next, "%d", depth + 1);
    setenv("HABITS_DEPTH", next, 1);
    execl(own_path, own_path, "self-exec", (char *)NULL);
    return 92;
}

static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"c11", way_c11},
    {"raw-clone", way_raw_clone},
    {"crowd", way_crowd},
    {"daemon", way_daemon},
    {"deathsig", way_deathsig},
    {"sandbox", way_sandbox},
    {"deadly-sandbox", way_deadly_sandbox},
    {"timers", way_timers},
    {"own-signals", way_own_signals},
    {"jumps", way_jumps},
    {"namespaces", way_namespaces},
    {"jit", way_jit},
    {"bare-exec", way_bare_exec},
    {"small-limits", way_small_limits},
    {"self-exec", way_self_exec},
};

int main(int argc, char **argv)
{
    own_path = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    return 99;
}
