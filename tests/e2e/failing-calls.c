/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens when the kernel refuses the profiler something while a thread begins and ends, a process forks or ends:
 * runs itself under ptrace again and again, and lets the n-th system call that libhpcrun.so makes then fail, for every
 * n. Arguments: the way (thread, fork, exit, leave) and the number of the error. Prints how many calls there were;
 * status 1 when some run did not end as it does when nothing fails. x86-64 only. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STATUS 3
#define CALLS_MAX 2000
#define PATIENCE_S 20

struct range {
    unsigned long low, high;
};

/* One run: what is traced, and which call fails. */
struct run {
    struct range library;
    pid_t pid;
    int wanted, error; /* the call to fail, and how */
    int n_calls;       /* of the library so far */
    long failed_call;  /* its number, -1: there was none */
    pid_t failing;     /* the thread that is in it, 0 none */
    bool is_started;
    int status; /* of the process */
};

static void *uses_memory(void *argument)
{
    free(malloc(5000));
    return argument;
}

static int way_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, uses_memory, NULL) != 0)
        return 90;
    pthread_join(thread, NULL);
    return STATUS;
}

static int way_fork(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        uses_memory(NULL);
        exit(6);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 6 ? STATUS : 91;
}

static int act(const char *way)
{
    if (strcmp(way, "thread") == 0)
        return way_thread();
    if (strcmp(way, "fork") == 0)
        return way_fork();
    if (strcmp(way, "leave") == 0)
        _exit(STATUS);
    return STATUS;
}

static void traced(const char *way)
{
    signal(SIGUSR1, SIG_IGN);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    raise(SIGUSR1); /* from here on calls are counted */
    exit(act(way));
}

static struct range find_library(void)
{
    struct range found = {0, 0};
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "libhpcrun.so") && strstr(line, "r-xp"))
            (void)sscanf(line, "%lx-%lx", &found.low, &found.high);
    if (maps)
        fclose(maps);
    return found;
}

/* Ends and masks are not refused by any kernel; memory that cannot be given back is only lost. */
static bool may_fail(long call)
{
    return call != SYS_exit_group && call != SYS_rt_sigprocmask && call != SYS_munmap && call != SYS_sched_yield;
}

/* At the entry of a call: the library's go through syscall(2), whose return address lies on top of the stack. */
static void at_entry(struct run *run, pid_t tid)
{
    struct user_regs_struct regs;
    ptrace(PTRACE_GETREGS, tid, NULL, &regs);
    unsigned long caller = (unsigned long)ptrace(PTRACE_PEEKDATA, tid, (void *)regs.rsp, NULL);
    if (caller < run->library.low || caller >= run->library.high || !may_fail((long)regs.orig_rax))
        return;
    if (run->n_calls++ != run->wanted)
        return;
    run->failed_call = (long)regs.orig_rax;
    run->failing = tid;
    regs.orig_rax = (unsigned long long)-1;
    ptrace(PTRACE_SETREGS, tid, NULL, &regs);
}

static void at_exit(struct run *run, pid_t tid)
{
    struct user_regs_struct regs;
    ptrace(PTRACE_GETREGS, tid, NULL, &regs);
    regs.rax = (unsigned long long)-run->error;
    ptrace(PTRACE_SETREGS, tid, NULL, &regs);
    run->failing = 0;
}

/* Handles one stop and lets the thread go on. */
static void handle_stop(struct run *run, pid_t tid, int status)
{
    int number = WSTOPSIG(status), deliver = 0;
    struct __ptrace_syscall_info info;
    if (number == (SIGTRAP | 0x80)) {
        ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && run->is_started)
            at_entry(run, tid);
        else if (info.op == PTRACE_SYSCALL_INFO_EXIT && run->failing == tid)
            at_exit(run, tid);
    } else if (number == SIGUSR1) {
        run->is_started = true;
    } else if (number != SIGSTOP && !(number == SIGTRAP && status >> 16)) {
        deliver = number;
    }
    ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(long)deliver);
}

static void be_woken(int signal_number)
{
    (void)signal_number;
}

/* Until nothing is left of the run; a run that takes too long is killed. */
static void follow(struct run *run)
{
    const struct itimerval patience = {.it_interval = {.tv_sec = 1}, .it_value = {.tv_sec = PATIENCE_S}}, none = {0};
    int status;
    setitimer(ITIMER_REAL, &patience, NULL);
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno != EINTR)
            break;
        if (tid < 0)
            kill(run->pid, SIGKILL);
        else if (WIFSTOPPED(status))
            handle_stop(run, tid, status);
        else if (tid == run->pid)
            run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    setitimer(ITIMER_REAL, &none, NULL);
}

int main(int argc, char **argv)
{
    int n_bad = 0, n_runs = 0;
    struct range library = find_library();
    if (argc != 3 || !library.high)
        return 99;
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = be_woken}, NULL); /* interrupts waitpid */
    setvbuf(stdout, NULL, _IOLBF, 0); /* nothing is left in it for the children to write again */
    for (; n_runs < CALLS_MAX; n_runs++) {
        struct run run = {
            .library = library, .wanted = n_runs, .error = atoi(argv[2]), .failed_call = -1, .status = -1};
        run.pid = fork();
        if (run.pid == 0)
            traced(argv[1]);
        waitpid(run.pid, NULL, 0);
        ptrace(PTRACE_SETOPTIONS, run.pid, NULL,
               PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACESYSGOOD);
        ptrace(PTRACE_SYSCALL, run.pid, NULL, NULL);
        follow(&run);
        if (run.status != STATUS)
            printf("%s: status %d when call %d (system call %ld) fails\n", argv[1], run.status, n_runs,
                   run.failed_call);
        n_bad += run.status != STATUS;
        if (run.failed_call < 0)
            break;
    }
    printf("%s: %d calls, %d of them end the run in another way when they fail\n", argv[1], n_runs, n_bad);
    return n_bad != 0;
}
