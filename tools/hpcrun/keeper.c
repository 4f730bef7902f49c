/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher as parent; see keeper.h. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void block_all(sigset_t *before)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, before);
}

static void close_pair(int *read_fd, int *write_fd)
{
    if (*read_fd >= 0)
        (void)close(*read_fd);
    if (*write_fd >= 0)
        (void)close(*write_fd);
    *read_fd = *write_fd = -1;
}

static int open_pair(int *read_fd, int *write_fd)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    *read_fd = fds[0];
    *write_fd = fds[1];
    return 0;
}

int keeper_fork(struct keeper *keeper, struct error *err)
{
    sigset_t before;
    pid_t parent = getpid();
    *keeper = (struct keeper){.child_pidfd = -1, .start_read_fd = -1, .start_write_fd = -1, .done_read_fd = -1,
                              .done_write_fd = -1};
    if (open_pair(&keeper->start_read_fd, &keeper->start_write_fd) != 0 ||
        open_pair(&keeper->done_read_fd, &keeper->done_write_fd) != 0)
        return error_set(err, ERR_IO, "pipe failed: %s.", strerror(errno));
    block_all(&before);
    keeper->child = fork();
    if (keeper->child < 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return error_set(err, ERR_IO, "fork failed: %s.", strerror(errno));
    }
    if (keeper->child == 0) {
        keeper->is_child = true;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            (void)raise(SIGKILL);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return 0;
    }
    keeper->child_pidfd = (int)syscall(SYS_pidfd_open, keeper->child, 0);
    return 0;
}

bool keeper_wait_for_start(struct keeper *keeper)
{
    char is_measured = 0;
    (void)close(keeper->start_write_fd);
    keeper->start_write_fd = -1;
    (void)!read(keeper->start_read_fd, &is_measured, 1);
    close_pair(&keeper->start_read_fd, &keeper->start_write_fd);
    close_pair(&keeper->done_read_fd, &keeper->done_write_fd);
    return is_measured == 1;
}

/* A key press reaches the whole foreground group by itself; what was sent to us alone is the program's. */
static void forward(const struct keeper *keeper, const siginfo_t *info)
{
    bool is_from_terminal = info->si_code == SI_KERNEL;
    if (!is_from_terminal && info->si_pid != keeper->child)
        (void)kill(keeper->child, info->si_signo);
}

static void stop_with_child(const struct keeper *keeper)
{
    (void)raise(SIGSTOP);
    (void)kill(keeper->child, SIGCONT);
}

/* True when the child has ended; PID 1 also collects strangers. */
static bool collect(const struct keeper *keeper, int *wait_status)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        if (pid == keeper->child && WIFSTOPPED(status)) {
            stop_with_child(keeper);
        } else if (pid == keeper->child) {
            *wait_status = status;
            return true;
        }
    }
    return false;
}

/* Until its end of the pipe is closed; what it has to say it says there. */
static void wait_for_companion(int fd)
{
    char text[6000];
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    if (len)
        (void)fprintf(stderr, "hpcrun: %s\n", text);
}

int keeper_run(struct keeper *keeper, bool is_measured)
{
    sigset_t all;
    siginfo_t info;
    int wait_status = 0;
    char go = is_measured ? 1 : 2;
    if (keeper->child_pidfd >= 0)
        (void)close(keeper->child_pidfd);
    (void)close(keeper->done_write_fd);
    keeper->done_write_fd = -1;
    (void)!write(keeper->start_write_fd, &go, 1);
    close_pair(&keeper->start_read_fd, &keeper->start_write_fd);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigfillset(&all);
    while (!collect(keeper, &wait_status)) {
        int number = sigwaitinfo(&all, &info);
        if (number > 0 && number != SIGCHLD)
            forward(keeper, &info);
    }
    if (is_measured)
        wait_for_companion(keeper->done_read_fd);
    close_pair(&keeper->done_read_fd, &keeper->done_write_fd);
    return wait_status;
}

void keeper_end_like(int wait_status)
{
    static const struct rlimit no_core = {0, 0};
    sigset_t one;
    if (!WIFSIGNALED(wait_status))
        return;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(WTERMSIG(wait_status), SIG_DFL);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, WTERMSIG(wait_status));
    (void)raise(WTERMSIG(wait_status));
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int keeper_exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
