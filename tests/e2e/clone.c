/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a child in a way that runs no handlers of fork, which computes or becomes another program.
 * usage: clone WAY [PROGRAM] */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *program;

static unsigned burn(void)
{
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 30000000; i++)
        sum = sum * 1664525u + i;
    return sum;
}

static int child_main(void *argument)
{
    char *const words[] = {program, NULL};
    (void)argument;
    if (program)
        execv(program, words);
    char *block = malloc(9000);
    memset(block, 1, 9000);
    unsigned sum = burn() + (unsigned)block[5];
    free(block);
    _exit(sum ? 7 : 0);
}

static pid_t by_underscore(void)
{
    pid_t child = _Fork();
    return child ? child : child_main(NULL);
}

/* The child ends with a signal pending that it has blocked. */
static pid_t by_underscore_held(void)
{
    pid_t child = _Fork();
    sigset_t set;
    if (child)
        return child;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGURG);
    sigpending(&set);
    _exit(sigismember(&set, SIGURG) ? 7 : 0);
}

static pid_t by_clone(void)
{
    static char stack[65536] __attribute__((aligned(64)));
    return clone(child_main, stack + sizeof stack, SIGCHLD, NULL);
}

static pid_t by_system_call(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    return child ? child : child_main(NULL);
}

static volatile pid_t of_handler;

static void on_signal(int number)
{
    (void)number;
    of_handler = by_underscore();
}

static pid_t by_handler(void)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    return of_handler;
}

static int thread_main(void *argument)
{
    (void)argument;
    return 7;
}

/* It shares our memory: vfork, as programs make it themselves. */
static pid_t by_sharing(void)
{
    static char stack[65536] __attribute__((aligned(64)));
    return clone(thread_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

static const struct {
    const char *name;
    pid_t (*make)(void);
} ways[] = {{"underscore", by_underscore},   {"held", by_underscore_held}, {"clone", by_clone},
            {"system-call", by_system_call}, {"handler", by_handler},      {"sharing", by_sharing}};

int main(int argc, char **argv)
{
    int status = 0;
    program = argc > 2 ? argv[2] : NULL;
    burn();
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) != 0)
            continue;
        pid_t child = ways[i].make();
        if (child <= 0 || waitpid(child, &status, 0) != child)
            return 90;
        burn();
        return WIFEXITED(status) ? WEXITSTATUS(status) : 91;
    }
    return argc > 1 ? 2 : 5;
}
