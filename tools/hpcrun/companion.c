/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion's start and main loop; see companion.h. Ordinary code, one thread, never a terminal. */
#include "companion.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "companion-detour.h"
#include "companion-loop.h"
#include "companion-recipes.h"
#include "measurement/names.h"

int companion_listen(char name[COMPANION_NAME_MAX], struct error *err)
{
    uint64_t salt = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) != (ssize_t)sizeof salt)
        salt = (uint64_t)(uintptr_t)&address;
    (void)snprintf(name, COMPANION_NAME_MAX, COMPANION_PREFIX "%ld-%016llx", (long)getpid(), (unsigned long long)salt);
    size_t len = strlen(name);
    memcpy(address.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0 ||
        listen(fd, 1024) != 0) {
        int saved = errno;
        if (fd >= 0)
            (void)close(fd);
        return error_set(err, ERR_IO, "The socket of the companion process cannot be opened: %s.", strerror(saved));
    }
    return fd;
}

int companion_way_open(struct companion_setup *setup)
{
    static const int on = 1;
    int ends[2];
    setup->way_fd = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return -1;
    }
    setup->way_fd = ends[0];
    return ends[1];
}

void companion_way_keep(int way_fd, const char *name, char value[COMPANION_ENV_MAX])
{
    struct stat status;
    int fd = way_fd >= 0 ? fcntl(way_fd, F_DUPFD, COMPANION_FD) : -1;
    if (fd < 0 && way_fd >= 0)
        fd = fcntl(way_fd, F_DUPFD, COMPANION_FD_AWAY);
    (void)snprintf(value, COMPANION_ENV_MAX, "%s", name);
    if (fd >= 0 && fstat(fd, &status) == 0)
        (void)snprintf(value, COMPANION_ENV_MAX, "%s,%d,%llu,%llu", name, fd, (unsigned long long)status.st_dev,
                       (unsigned long long)status.st_ino);
}

/* Descriptors first..last; one by one where the kernel is older than close_range. */
static void close_between(unsigned first, unsigned last)
{
    long n_open = sysconf(_SC_OPEN_MAX);
    if (close_range(first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && (long)fd < n_open; fd++)
        (void)close((int)fd);
}

/* A pipe that the program's reader waits on must see its end, so nothing inherited may stay open. */
static void close_others(const int *keep, int n_keep)
{
    int next = 3;
    for (;;) {
        int lowest = -1;
        for (int i = 0; i < n_keep; i++)
            if (keep[i] >= next && (lowest < 0 || keep[i] < lowest))
                lowest = keep[i];
        if (lowest < 0)
            break;
        if (lowest > next)
            close_between((unsigned)next, (unsigned)lowest - 1);
        next = lowest + 1;
    }
    close_between((unsigned)next, ~0u);
}

static void detach(const struct companion_setup *setup, int listen_fd)
{
    const int keep[4] = {listen_fd, setup->launched_pidfd, setup->done_fd, setup->way_fd};
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && null_fd >= 0; fd++)
        (void)dup2(null_fd, fd);
    close_others(keep, 4);
    (void)!chdir("/");
    (void)umask((umask(077) & 077) | 022); /* what the user's own umask allows, and never more than 0755 */
}

/* A process that is woken takes the processor from the one that woke it, unless it is a batch job. The program rings
 * from its signal handler, and would stand still there while the companion works, beside a free processor. */
static void give_way(void)
{
    const struct sched_param none = {0};
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

pid_t companion_start(const struct companion_setup *setup, int listen_fd, struct error *err)
{
    int pipe_fds[2];
    pid_t companion = -1;
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return error_set(err, ERR_IO, "pipe failed: %s.", strerror(errno));
    pid_t middle = fork();
    if (middle == 0) {
        (void)setsid();
        companion = fork();
        if (companion == 0) {
            detach(setup, listen_fd);
            give_way();
            _exit(companion_run(setup, listen_fd));
        }
        (void)!write(pipe_fds[1], &companion, sizeof companion);
        _exit(0);
    }
    int saved = errno;
    (void)close(pipe_fds[1]);
    if (middle > 0) {
        if (read(pipe_fds[0], &companion, sizeof companion) != (ssize_t)sizeof companion)
            companion = -1;
        (void)waitpid(middle, NULL, 0);
    }
    (void)close(pipe_fds[0]);
    (void)close(listen_fd);
    if (setup->way_fd > 0)
        (void)close(setup->way_fd);
    if (companion > 0)
        return companion;
    return error_set(err, ERR_IO, "The companion process cannot be forked: %s.", strerror(saved));
}

/* Limits are the user's for the program; the companion takes what it may. */
static void raise_limit(int which)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit((__rlimit_resource_t)which, &limit);
}

static void setup_signals(struct companion *c)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGXFSZ, SIGXCPU,   SIGTSTP,
                                  SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF};
    sigset_t handled;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&handled);
    (void)sigaddset(&handled, SIGCHLD);
    (void)sigaddset(&handled, SIGTERM);
    (void)sigprocmask(SIG_SETMASK, &handled, NULL);
    c->signal_fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What the program will need, under way before it asks. */
static void companion_prepare(struct companion *c)
{
    if (c->setup->exe[0] && c->setup->tables[0])
        (void)companion_job_add(c, JOB_PREPARE, NULL, c->setup->exe);
    if (c->setup->writes_topology)
        (void)companion_job_add(c, JOB_TOPOLOGY, NULL, NULL);
}

/* Where somebody else could put another directory in the place of ours, files are made by way of a descriptor. False
 * when that has happened already. */
static bool companion_enter(struct companion *c)
{
    struct stat status;
    const struct companion_setup *setup = c->setup;
    int fd = open(setup->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_known = fd >= 0 && fstat(fd, &status) == 0;
    if (is_known && setup->dir_inode && (status.st_dev != setup->dir_device || status.st_ino != setup->dir_inode))
        return false;
    if (is_known && !names_directory_is_safe(setup->dir))
        (void)snprintf(c->dir, sizeof c->dir, "/proc/self/fd/%d", fd);
    else if (fd >= 0)
        (void)close(fd);
    return true;
}

int companion_run(const struct companion_setup *setup, int listen_fd)
{
    struct companion_notes notes = {0};
    struct companion c = {
        .setup = setup,
        .listen_fd = listen_fd,
        .way_fd = setup->way_fd > 0 ? setup->way_fd : -1,
        .launched_pidfd = setup->launched_pidfd,
        .is_launched = setup->launched_pidfd >= 0 || setup->launched_pid > 0,
        .done_fd = setup->done_fd,
        .host_id = names_host_id(),
        .busy_ms = companion_now_ms(),
    };
    c.notes = &notes;
    raise_limit(RLIMIT_FSIZE);
    raise_limit(RLIMIT_NOFILE);
    raise_limit(RLIMIT_AS);
    setup_signals(&c);
    if (!companion_enter(&c))
        return 1;
    companion_tables_open(&c);
    c.has_no_mark = pending_mark_open(&c.mark, companion_dir(&c), setup->launched_pid, NULL) != 0;
    if (!companion_store_open(&c))
        return 1;
    if (setup->local[0])
        (void)companion_detour_start(&c, setup->local);
    companion_recipes_start(&c);
    companion_prepare(&c);
    companion_loop(&c);
    companion_recipes_end(&c);
    companion_tables_close(&c);
    companion_detour_end(&c);
    companion_tell(&c);
    pending_mark_close(&c.mark);
    return 0;
}
