/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading proc(5), and what a tool's main needs: see process.h. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/input.h"
#include "base/options.h"

bool proc_stat_read(pid_t pid, struct proc_stat *stat)
{
    char path[64], text[1024];
    *stat = (struct proc_stat){0};
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = input_stream(path);
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        (void)fclose(file);
    text[n] = '\0';
    const char *after_name = strrchr(text, ')'); /* which may hold anything */
    struct proc_stat found = {0};
    if (!after_name ||
        sscanf(after_name + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
               &found.state, &found.parent, &found.user_ticks, &found.system_ticks, &found.start) != 5)
        return false;
    *stat = found;
    return true;
}

/* --- a tool's main --- */

/* A separate stack for main, entered as a context; see process.h. */

#define GUARD_BYTES (1 << 16) /* one page of the largest size there is */

static struct {
    stack_main *body;
    int argc, status;
    char **argv;
    ucontext_t caller, callee;
} stack;

static void begin(void)
{
    stack.status = stack.body(stack.argc, stack.argv);
}

/* CLOEXEC: programs that a tool starts find them closed, as they were. */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", (fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
}

static bool is_roomy(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_BYTES;
}

static void make_threads_roomy(void)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return;
    if (pthread_attr_setstacksize(&attr, STACK_BYTES) == 0)
        (void)pthread_setattr_default_np(&attr);
    (void)pthread_attr_destroy(&attr);
}

/* What is printed last, such as --help, is only written when the process ends. */
static int end_output(int status)
{
    if (status == 0 && (ferror(stdout) || fflush(stdout) != 0))
        status = tool_error(program_invocation_short_name, "standard output cannot be written");
    return status;
}

static int run_roomy(stack_main *body, int argc, char **argv)
{
    if (is_roomy())
        return body(argc, argv);
    make_threads_roomy();
    char *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0 || getcontext(&stack.callee) != 0)
        return body(argc, argv);
    stack.body = body;
    stack.argc = argc;
    stack.argv = argv;
    stack.callee.uc_link = &stack.caller;
    stack.callee.uc_stack.ss_sp = memory + GUARD_BYTES;
    stack.callee.uc_stack.ss_size = STACK_BYTES;
    makecontext(&stack.callee, begin, 0);
    return swapcontext(&stack.caller, &stack.callee) == 0 ? stack.status : body(argc, argv);
}

int stack_run(stack_main *body, int argc, char **argv)
{
    hold_standard_streams();
    return end_output(run_roomy(body, argc, argv));
}
