/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading proc(5), work in a child process, and what a tool's main needs: see process.h. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
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

bool proc_status_line(pid_t pid, const char *name, char *text, size_t n)
{
    char path[64], line[512];
    bool is_found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = input_stream(path);
    while (file && !is_found && fgets(line, sizeof line, file)) {
        is_found = strncmp(line, name, strlen(name)) == 0;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(text, n, "%s", is_found ? line + strlen(name) + strspn(line + strlen(name), " \t") : "");
    }
    if (file)
        (void)fclose(file);
    return is_found;
}

/* --- work apart --- */

/* What the child sends through the pipe: this, then the bytes of the answer. */
struct apart_head {
    uint64_t len_bytes;
    int32_t code;
    uint32_t unused;
};

static void put_all(int fd, const void *bytes, size_t len_bytes)
{
    const char *rest = bytes;
    for (ssize_t n; len_bytes > 0; rest += n, len_bytes -= (size_t)n) {
        n = write(fd, rest, len_bytes);
        if (n < 0 && errno == EINTR)
            n = 0;
        if (n < 0)
            return;
    }
}

static _Noreturn void work_apart(apart_work *work, const void *input, unsigned limit_s, int out_fd)
{
    const struct rlimit no_core = {0, 0}, cpu = {limit_s, limit_s};
    struct buf answer = {0};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd >= 0) {
        (void)dup2(null_fd, STDOUT_FILENO);
        (void)dup2(null_fd, STDERR_FILENO);
    }
    struct apart_head head = {.code = work(input, &answer)};
    if (head.code == 0 && answer.failed)
        head.code = ERR_MEMORY;
    head.len_bytes = head.code == 0 ? answer.len_bytes : 0;
    put_all(out_fd, &head, sizeof head);
    put_all(out_fd, answer.data, head.len_bytes);
    for (;;)
        (void)raise(SIGKILL); /* not exit(): the exit handlers are the parent's */
}

/* False when fewer bytes came than expected, or too late. */
static bool take_all(int fd, void *bytes, size_t len_bytes, uint64_t end_ns)
{
    char *at = bytes;
    while (len_bytes > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
        int n_ready = now_ns < end_ns ? poll(&ready, 1, (int)((end_ns - now_ns) / 1000000 + 1)) : 0;
        if (n_ready < 0 && errno == EINTR)
            continue;
        ssize_t n = n_ready > 0 ? read(fd, at, len_bytes) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len_bytes -= (size_t)n;
    }
    return true;
}

static int take_answer(int fd, unsigned limit_s, size_t answer_max, struct buf *answer, struct error *err)
{
    struct apart_head head;
    uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + limit_s * CLOCK_S_NS;
    if (!take_all(fd, &head, sizeof head, end_ns) || head.len_bytes > answer_max)
        return error_set(err, ERR_FORMAT, "it could not be read");
    if (head.code != 0)
        return head.code == ERR_MEMORY ? error_memory(err) : error_set(err, head.code, "it could not be read");
    if (!vec_reserve(&answer->data, &answer->capacity, head.len_bytes + 1, 1))
        return error_memory(err);
    answer->len_bytes = head.len_bytes;
    if (take_all(fd, answer->data, head.len_bytes, end_ns))
        return 0;
    buf_fini(answer);
    return error_set(err, ERR_FORMAT, "it could not be read");
}

int apart_run(apart_work *work, const void *input, unsigned limit_s, size_t answer_max, struct buf *answer,
              struct error *err)
{
    int fds[2], ignored;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return error_set(err, ERR_IO, "no pipe can be made: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        work_apart(work, input, limit_s, fds[1]);
    int code = child > 0 ? 0 : error_set(err, ERR_IO, "no process can be started: %s", strerror(errno));
    (void)close(fds[1]);
    if (code == 0)
        code = take_answer(fds[0], limit_s, answer_max, answer, err);
    (void)close(fds[0]);
    if (child > 0)
        (void)kill(child, SIGKILL);
    while (child > 0 && waitpid(child, &ignored, 0) < 0 && errno == EINTR)
        ;
    return code;
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
