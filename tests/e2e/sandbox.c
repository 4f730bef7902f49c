/* SPDX-License-Identifier: BSD-3-Clause */
/* Enters a sandbox whose filter knows just the system calls that this way of going on makes by itself, and goes on. Any
 * other call ends the process by SIGSYS, whose handler says first which one it was; in the deadly ways at once.
 * usage: sandbox WAY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_VALUES 200000
#define CALLS_MAX 40
#define NONE (-1)

/* What the C library itself needs to print, to allocate and to end. */
static const int always[] = {SYS_write, SYS_exit_group, SYS_mmap, SYS_munmap, SYS_brk, SYS_fstat, SYS_newfstatat, NONE};
static double *values;

static double compute(int n_rounds)
{
    double sum = 0;
    for (int round = 0; round < n_rounds; round++)
        for (int i = 0; i < N_VALUES; i++)
            sum += values[i] += round;
    return sum;
}

static void on_refusal(int number, siginfo_t *info, void *context)
{
    char text[60];
    (void)number;
    (void)context;
    int len = snprintf(text, sizeof text, "system call %d was not expected\n", info->si_syscall);
    (void)!write(STDOUT_FILENO, text, (size_t)len);
    _exit(99);
}

static size_t add_calls(struct sock_filter *filter, size_t n, const int *calls)
{
    for (; *calls != NONE; calls++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)*calls, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    return n;
}

static void enter(const int *calls, unsigned action, bool by_syscall)
{
    struct sigaction refusal = {.sa_sigaction = on_refusal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sock_filter filter[2 * CALLS_MAX];
    size_t n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    n = add_calls(filter, add_calls(filter, n, always), calls);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    sigaction(SIGSYS, &refusal, NULL);
    long result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result == 0)
        result = by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                            : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    if (result != 0)
        _exit(77);
}

static int allocate(void)
{
    for (int i = 0; i < 40; i++) {
        char *large = malloc(1 << 20), *small = malloc(3000);
        memset(large, i, 1 << 20);
        compute(2);
        small = realloc(small, 9000);
        free(large);
        free(small);
    }
    return 4;
}

static const int for_signals[] = {SYS_rt_sigreturn, NONE};

static int way_return(void)
{
    enter(for_signals, SECCOMP_RET_TRAP, false);
    return allocate();
}

static int way_deadly(void)
{
    enter(for_signals, SECCOMP_RET_KILL_PROCESS, true);
    return allocate();
}

static int way_underscore(void)
{
    enter(for_signals, SECCOMP_RET_TRAP, true);
    compute(100);
    _exit(4);
}

static int way_raw_exit(void)
{
    enter(for_signals, SECCOMP_RET_TRAP, false);
    compute(100);
    return (int)syscall(SYS_exit_group, 4);
}

/* No handler of a signal can return here. */
static int way_no_signals(void)
{
    static const int nothing[] = {NONE};
    enter(nothing, SECCOMP_RET_KILL_PROCESS, false);
    return allocate();
}

/* The filters that the kernel brings. */
static int way_strict(void)
{
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    compute(100);
    return (int)syscall(SYS_exit, 4);
}

static int way_two_filters(void)
{
    static const int more[] = {SYS_rt_sigreturn, SYS_prctl, SYS_seccomp, SYS_rt_sigaction, SYS_rt_sigprocmask, NONE};
    enter(more, SECCOMP_RET_TRAP, false);
    compute(50);
    enter(for_signals, SECCOMP_RET_TRAP, true);
    return allocate();
}

static int way_mapping(void)
{
    int fd = memfd_create("mapped", 0);
    enter(for_signals, SECCOMP_RET_TRAP, false);
    void *p = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, fd, 0);
    void *q = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_mapped = p != MAP_FAILED && q != MAP_FAILED && munmap(p, 1 << 20) == 0 && munmap(q, 4 << 20) == 0;
    return is_mapped && sbrk(4096) != (void *)-1 ? allocate() : 91;
}

/* Without a clock that could be read. */
static int way_no_clock(void)
{
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
        return 77;
    return allocate();
}

static void *thread_main(void *argument)
{
    void *block = malloc(50000);
    compute(20);
    free(block);
    return argument;
}

static int way_threads(void)
{
    static const int calls[] = {SYS_rt_sigreturn, SYS_clone,    SYS_clone3,         SYS_set_robust_list,
                                SYS_rseq,         SYS_mprotect, SYS_rt_sigprocmask, SYS_madvise,
                                SYS_futex,        SYS_exit,     SYS_rt_sigaction,   NONE};
    pthread_t threads[3];
    enter(calls, SECCOMP_RET_TRAP, false);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, thread_main, NULL);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
    }
    return allocate();
}

/* A thread that was there before, and ends behind it. */
static _Atomic bool may_end;

static void *old_thread_main(void *argument)
{
    while (!may_end)
        compute(1);
    return argument;
}

static int way_old_threads(void)
{
    static const int calls[] = {SYS_rt_sigreturn, SYS_madvise, SYS_futex, SYS_exit, SYS_rt_sigprocmask, NONE};
    pthread_t thread;
    pthread_create(&thread, NULL, old_thread_main, NULL);
    compute(20);
    enter(calls, SECCOMP_RET_TRAP, true);
    compute(100);
    may_end = true;
    pthread_join(thread, NULL);
    return allocate();
}

static int way_fork(void)
{
    static const int calls[] = {SYS_rt_sigreturn, SYS_clone, SYS_wait4, SYS_set_robust_list, SYS_futex, NONE};
    int status = 0;
    enter(calls, SECCOMP_RET_TRAP, false);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            allocate();
            i ? _exit(5) : exit(5);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
            return 91;
    }
    return allocate();
}

static int way_exec(void)
{
    static const int calls[] = {SYS_rt_sigreturn, SYS_execve, NONE};
    char *arguments[] = {(char *)(uintptr_t) "none", NULL};
    enter(calls, SECCOMP_RET_TRAP, false);
    int result = execv("/none/there", arguments);
    return result == -1 && errno == ENOENT ? allocate() : 91;
}

/* What the loader and the C library call before main: a program that is started behind the filter makes no more. */
static const int for_starts[] = {SYS_rt_sigreturn,
                                 SYS_execve,
                                 SYS_arch_prctl,
                                 SYS_access,
                                 SYS_openat,
                                 SYS_read,
                                 SYS_pread64,
                                 SYS_close,
                                 SYS_mprotect,
                                 SYS_set_tid_address,
                                 SYS_prlimit64,
                                 SYS_set_robust_list,
                                 SYS_rseq,
                                 SYS_getrandom,
                                 SYS_vfork,
                                 SYS_clone,
                                 SYS_rt_sigprocmask,
                                 SYS_rt_sigaction,
                                 SYS_wait4,
                                 SYS_futex,
                                 SYS_clone3,
                                 SYS_dup2,
                                 NONE};

static int report_behind(void)
{
    const char *preloaded = getenv("LD_PRELOAD"), *kept = getenv("KEPT");
    printf("behind: preloaded: %s, kept: %s\n", preloaded ? preloaded : "nothing", kept ? kept : "nothing");
    return 4;
}

static const char *const behind[] = {"./sandbox", "behind", NULL};

static void enter_for_starts(void)
{
    setenv("KEPT", "this", 1);
    enter(for_starts, SECCOMP_RET_KILL_PROCESS, true);
    compute(50);
}

static int way_become(void)
{
    enter_for_starts();
    return execvp(behind[0], (char *const *)(uintptr_t)behind) == -1 ? 91 : 92;
}

static int wait_for(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4 ? allocate() : 91;
}

static int way_vfork(void)
{
    enter_for_starts();
    pid_t child = vfork();
    if (child == 0) {
        execve(behind[0], (char *const *)(uintptr_t)behind, environ);
        _exit(92);
    }
    return wait_for(child);
}

static int way_spawn(void)
{
    pid_t child;
    enter_for_starts();
    if (posix_spawn(&child, behind[0], NULL, NULL, (char *const *)(uintptr_t)behind, environ) != 0)
        return 92;
    return wait_for(child);
}

/* The filter is the child's alone. */
static int way_fork_become(void)
{
    pid_t child = fork();
    if (child == 0)
        exit(way_become());
    return wait_for(child);
}

static int way_dlopen(void)
{
    static const int calls[] = {SYS_rt_sigreturn, SYS_openat, SYS_read, SYS_pread64, SYS_close, SYS_mprotect, NONE};
    enter(calls, SECCOMP_RET_TRAP, false);
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    int result = allocate();
    return library && dlsym(library, "ns_name_ntop") && dlclose(library) == 0 ? result : 91;
}

static _Atomic int n_signals;

static void count_signal(int number)
{
    (void)number;
    n_signals++;
}

static int way_signals(void)
{
    static const int calls[] = {
        SYS_rt_sigreturn, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_getpid, SYS_gettid, SYS_tgkill, NONE};
    struct sigaction action = {.sa_handler = count_signal};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    enter(calls, SECCOMP_RET_TRAP, false);
    for (int i = 0; i < 2; i++) {
        int number = i ? SIGURG : SIGUSR1;
        sigaction(number, &action, NULL);
        raise(number);
        sigprocmask(SIG_BLOCK, &set, NULL);
        compute(20);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    return n_signals == 2 ? allocate() : 91;
}

static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"return", way_return},
    {"deadly", way_deadly},
    {"underscore", way_underscore},
    {"raw-exit", way_raw_exit},
    {"strict", way_strict},
    {"no-signals", way_no_signals},
    {"two-filters", way_two_filters},
    {"threads", way_threads},
    {"old-threads", way_old_threads},
    {"fork", way_fork},
    {"exec", way_exec},
    {"become", way_become},
    {"vfork", way_vfork},
    {"spawn", way_spawn},
    {"fork-become", way_fork_become},
    {"dlopen", way_dlopen},
    {"signals", way_signals},
    {"no-clock", way_no_clock},
    {"mapping", way_mapping},
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "behind") == 0)
        return report_behind();
    values = calloc(N_VALUES, sizeof *values);
    if (argc < 2) {
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            puts(ways[i].name);
        return 0;
    }
    compute(1000); /* some samples also by timers, of which there are 250 a second */
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    return 2;
}
