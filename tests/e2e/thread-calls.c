/* SPDX-License-Identifier: BSD-3-Clause */
/* thread-calls COMMAND...: runs the command under ptrace and prints how many system calls its first process made, all
 * threads together, and how many of them gave the processor away for a turn or a time. Calls of futex are left out of
 * the first sum: how often a join waits is chance. thread-calls - N AT_ONCE: creates and joins N threads, so many at a
 * time. thread-calls faults N: N threads alive at once, each with a block; prints how many page faults there were. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 8

static void *nothing(void *argument)
{
    return argument;
}

static int create(long n, int at_once)
{
    pthread_t threads[AT_ONCE];
    for (long i = 0; i < n; i += at_once) {
        for (int k = 0; k < at_once; k++)
            if (pthread_create(&threads[k], NULL, nothing, NULL) != 0)
                return 1;
        for (int k = 0; k < at_once; k++)
            pthread_join(threads[k], NULL);
    }
    return 0;
}

static pthread_barrier_t all_are_there;

static void *hold_block(void *argument)
{
    volatile char *block = malloc(5000);
    if (block)
        *block = 1;
    pthread_barrier_wait(&all_are_there);
    free((void *)block);
    return argument;
}

static int count_faults(unsigned n)
{
    struct rusage usage;
    pthread_attr_t small;
    pthread_t *threads = calloc(n, sizeof *threads);
    if (!threads || pthread_barrier_init(&all_are_there, NULL, n + 1) != 0 || pthread_attr_init(&small) != 0 ||
        pthread_attr_setstacksize(&small, 65536) != 0)
        return 1;
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], &small, hold_block, NULL) != 0)
            return 1;
    pthread_barrier_wait(&all_are_there);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 1;
    printf("%ld\n", usage.ru_minflt);
    return 0;
}

/* Of one stop at a system call: its number, -1 when it is over. */
static long number_of(pid_t thread)
{
    struct __ptrace_syscall_info info;
    long n_bytes = ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
    return n_bytes > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long)info.entry.nr : -1;
}

static int follow(pid_t first)
{
    long n_calls = 0, n_waits = 0;
    int status;
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0)
            break;
        if (!WIFSTOPPED(status)) {
            if (thread == first)
                break;
            continue;
        }
        int by = WSTOPSIG(status), passed_on = 0;
        if (by == (SIGTRAP | 0x80)) {
            long number = number_of(thread);
            n_calls += number >= 0 && number != SYS_futex;
            n_waits += number == SYS_sched_yield || number == SYS_nanosleep || number == SYS_clock_nanosleep;
        } else if (by != SIGTRAP && by != SIGSTOP) {
            passed_on = by;
        }
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)passed_on);
    }
    printf("%ld %ld\n", n_calls, n_waits);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "-") == 0)
        return create(atol(argv[2]), atoi(argv[3]) == 1 ? 1 : AT_ONCE);
    if (argc == 3 && strcmp(argv[1], "faults") == 0)
        return count_faults((unsigned)atoi(argv[2]));
    if (argc < 2)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || waitpid(child, NULL, __WALL) != child ||
        ptrace(PTRACE_SETOPTIONS, child, NULL,
               (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)) != 0)
        return 77;
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    return follow(child);
}
