/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion's main loop and its start. Everything is a descriptor: clients, pidfds, the bells of the arenas,
 * signals. What has no descriptor (growing arenas, checkpoints) is checked in between, less often when little happens.
 * Ordinary code, one thread, no terminal. */
#include "companion/companion.h"

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
#include <time.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/clock.h"
#include "base/vec.h"
#include "companion/state.h"
#include "measurement/names.h"

#define LISTEN_MAX 1024 /* connections that wait to be accepted */
#define LINGER_MS 500   /* a child that was just forked may still be on its way to us */
#define TICK_MIN_MS 50
/* Requests of a process that has made a few are answered together: each wake costs as much as an answer. */
#define GATHER_MS 8
#define BELLS_AT_ONCE 16
#define TICK_MAX_MS 1000

enum watch_kind { WATCH_LISTEN, WATCH_WAY, WATCH_SIGNAL, WATCH_LAUNCHED, WATCH_CONNECTION, WATCH_PIDFD, WATCH_BELL };

struct watch {
    enum watch_kind kind;
    void *of; /* struct companion_connection or companion_process */
};

struct watches {
    struct pollfd *fds;
    size_t n, cap_fds;
    struct watch *items;
    size_t cap_items;
};

static void watch_add(struct watches *w, int fd, enum watch_kind kind, void *of)
{
    if (fd < 0 || !vec_reserve(&w->fds, &w->cap_fds, w->n + 1, sizeof *w->fds) ||
        !vec_reserve(&w->items, &w->cap_items, w->n + 1, sizeof *w->items))
        return;
    w->fds[w->n] = (struct pollfd){.fd = fd, .events = POLLIN};
    w->items[w->n++] = (struct watch){.kind = kind, .of = of};
}

static void watch_all(const struct companion *c, struct watches *w, int64_t now_ms)
{
    w->n = 0;
    watch_add(w, c->is_full ? -1 : c->listen_fd, WATCH_LISTEN, NULL);
    watch_add(w, c->is_full ? -1 : c->way_fd, WATCH_WAY, NULL);
    watch_add(w, c->signal_fd, WATCH_SIGNAL, NULL);
    watch_add(w, c->launched_pidfd, WATCH_LAUNCHED, NULL);
    for (struct companion_connection *n = c->connections; n; n = n->next)
        watch_add(w, n->fd, WATCH_CONNECTION, n);
    for (struct companion_process *p = c->processes; p; p = p->next) {
        watch_add(w, p->pidfd, WATCH_PIDFD, p);
        if (p->state == PROCESS_LIVE && now_ms >= p->bell_due_ms)
            watch_add(w, p->bell_fd, WATCH_BELL, p);
    }
}

static void read_signals(struct companion *c)
{
    struct signalfd_siginfo info;
    while (read(c->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM)
            c->must_checkpoint = true;
    companion_job_reap(c);
}

static void see_launched_end(struct companion *c)
{
    if (c->launched_pidfd >= 0)
        (void)close(c->launched_pidfd);
    c->launched_pidfd = -1;
    c->is_launched = false;
    c->must_checkpoint = true;
}

#define ROOM_MS 1000

/* Ends what helps us for a while, and tells the programs, which do not wait for its answers then. */
static void give_room(struct companion *c)
{
    c->lacks_room = false;
    companion_jobs_suspend(c);
    companion_recipes_suspend(c);
    c->room_until_ms = companion_now_ms() + ROOM_MS;
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE)
            atomic_store(&p->arena->room, ROOM_GIVEN);
}

/* The program has met the user's limit of processes: gives room, if process asks for that. */
static void make_room(struct companion *c, const struct companion_process *process)
{
    if (process->state == PROCESS_LIVE && atomic_load(&process->arena->room) == ROOM_WANTED)
        give_room(c);
}

static void take_room_back(struct companion *c, int64_t now_ms)
{
    if (!c->room_until_ms || now_ms < c->room_until_ms)
        return;
    c->room_until_ms = 0;
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE)
            atomic_store(&p->arena->room, ROOM_KEPT);
}

static void dispatch(struct companion *c, const struct watch *watch)
{
    switch (watch->kind) {
    case WATCH_LISTEN:
        companion_accept(c);
        break;
    case WATCH_WAY:
        companion_way_accept(c);
        break;
    case WATCH_SIGNAL:
        read_signals(c);
        break;
    case WATCH_LAUNCHED:
        see_launched_end(c);
        break;
    case WATCH_CONNECTION:
        companion_serve(c, watch->of);
        break;
    case WATCH_PIDFD:
        companion_process_gone(c, watch->of);
        break;
    case WATCH_BELL: {
        struct companion_process *process = watch->of;
        make_room(c, process);
        companion_strays_take(c, process);
        if (process->state == PROCESS_LIVE && companion_process_requests(c, process) &&
            process->n_bells++ >= BELLS_AT_ONCE)
            process->bell_due_ms = companion_now_ms() + GATHER_MS;
        break;
    }
    }
}

/* is_wanted: its owner has asked, and blocks alone are worth files. */
static void checkpoint(struct companion *c, struct companion_process *process, bool is_wanted)
{
    uint64_t n_taken = companion_arena_n_taken(process);
    bool has_news =
        n_taken != process->n_taken_checkpointed || (is_wanted && atomic_load(&process->arena->n_blocks_recorded));
    if (process->is_checkpointing || process->is_arena_file || !has_news)
        return;
    companion_times_settle(process);
    struct companion_job *job =
        companion_write_prepare(process) ? companion_job_add(c, JOB_CHECKPOINT, process, NULL) : NULL;
    if (!job || !job->pid) {
        /* Not queued: the final writing would have to wait for it. */
        if (job)
            job->has_ended = true;
        (void)snprintf(process->why_unsaved, sizeof process->why_unsaved, "too little memory, or too many processes");
        return;
    }
    process->is_checkpointing = true;
    process->n_taken_checkpointed = n_taken;
}

/* Makes the mark in the processes for which it is due. */
static void mark_processes(struct companion *c, int64_t now_ms)
{
    for (struct companion_process *p = c->processes; p; p = p->next) {
        if (p->state != PROCESS_LIVE || !p->mark_due_ms || now_ms < p->mark_due_ms)
            continue;
        arena_mark_chunks(companion_arena_table(p), companion_arena_data(p, 0), companion_arena_n_chunks(p));
        atomic_store(&p->arena->mark_ns, clock_now_ns(CLOCK_REALTIME));
        p->mark_due_ms = 0;
    }
}

/* Begins the snapshots that were asked for, each after the checkpoint that is under way. */
static void save_snapshots(struct companion *c)
{
    for (struct companion_process *p = c->processes; p; p = p->next) {
        if (p->state != PROCESS_LIVE || !p->wants_snapshot || p->is_checkpointing)
            continue;
        p->wants_snapshot = false;
        checkpoint(c, p, true);
    }
}

static bool is_under_way(const struct companion *c, enum job_kind kind)
{
    for (const struct companion_job *job = c->jobs; job; job = job->next)
        if (job->kind == kind && !job->has_ended)
            return true;
    return false;
}

static void write_notes(struct companion *c)
{
    if (!companion_has_notes(c) || is_under_way(c, JOB_NOTES))
        return;
    struct companion_job *job = companion_job_add(c, JOB_NOTES, NULL, NULL);
    if (job && job->pid)
        companion_notes_clear(c);
    else if (job)
        job->has_ended = true; /* tried again at the next look */
}

static bool is_any_alive(const struct companion *c)
{
    for (const struct companion_process *p = c->processes; p; p = p->next)
        if (p->state != PROCESS_DONE)
            return true;
    return c->is_launched;
}

/* Checks what has no descriptor. */
static void look_around(struct companion *c, int64_t now_ms)
{
    bool has_grown = false;
    take_room_back(c, now_ms);
    if (c->is_launched && c->launched_pidfd < 0 && companion_is_gone(c->setup->launched_pid, &c->launched_start))
        see_launched_end(c);
    for (struct companion_process *p = c->processes; p; p = p->next) {
        if (!p->is_gone && p->pidfd < 0 && companion_is_gone(p->peer_pid, &p->start))
            companion_process_gone(c, p);
        if (p->state != PROCESS_LIVE)
            continue;
        make_room(c, p);
        has_grown |= companion_arena_back(c, p);
        companion_strays_take(c, p);
        (void)companion_process_requests(c, p);
        companion_process_look(c, p, now_ms);
        if (p->state != PROCESS_LIVE)
            continue;
        companion_watchdog_look(c, p, now_ms);
        companion_jit_look(p);
        if (c->must_checkpoint || now_ms >= p->checkpoint_due_ms)
            checkpoint(c, p, false);
    }
    companion_strays_look(c, now_ms, !is_any_alive(c));
    c->must_checkpoint = c->is_full = false;
    write_notes(c);
    companion_job_reap(c);
    c->tick_ms = has_grown ? TICK_MIN_MS : c->tick_ms * 2;
    if (c->tick_ms > TICK_MAX_MS)
        c->tick_ms = TICK_MAX_MS;
}

/* Whether the job makes a file of the measurement. A topology that waits for room does not count: it may wait long. */
static bool is_writer(const struct companion *c, const struct companion_job *job)
{
    return job->kind == JOB_WRITE || job->kind == JOB_CHECKPOINT || job->kind == JOB_GATHER || job->kind == JOB_NOTES ||
           (job->kind == JOB_TOPOLOGY && (job->pid || !c->room_until_ms));
}

static bool is_writing(const struct companion *c)
{
    for (const struct companion_job *job = c->jobs; job; job = job->next)
        if (is_writer(c, job))
            return true;
    bool is_ending = c->sched_pid > 0 && c->sched_fd < 0;
    return is_ending || companion_has_notes(c);
}

/* When all is over: says that nothing was measured, or that limits kept processes from it, and why the first of them
 * was not. Where only a fraction is measured, nothing may be what was wished. */
static void tell_unmeasured(struct companion *c)
{
    char text[700];
    bool is_nothing = !c->has_measured && !(c->setup->fraction > 0);
    if (c->has_said_unmeasured || !c->notes || !(is_nothing || c->n_unfit))
        return;
    c->has_said_unmeasured = true;
    if (!c->notes->unmeasured[0])
        companion_index_refused(c, c->setup->launched_pid, c->setup->exe,
                                "nothing was heard of it; limits (ulimit) or a sandbox may keep it from speaking");
    if (is_nothing)
        (void)snprintf(text, sizeof text, "nothing was measured: process %s", c->notes->unmeasured);
    else
        (void)snprintf(text, sizeof text, "%u process%s could not be measured; the first: %s", c->n_unfit,
                       c->n_unfit == 1 ? "" : "es", c->notes->unmeasured);
    companion_say(c, text);
}

/* Tells readers and a waiting launcher how far we are. */
static void publish_state(struct companion *c)
{
    if (!is_any_alive(c) && !c->jobs && !c->strays)
        tell_unmeasured(c);
    bool writes = is_writing(c), is_idle = !writes && !is_any_alive(c);
    pid_t program = c->is_launched ? c->setup->launched_pid : 0;
    if (is_idle)
        detour_unpoint(&c->detour);
    if (is_idle)
        pending_mark_close(&c->mark);
    else if (c->mark.fd < 0 && !c->has_no_mark)
        c->has_no_mark = pending_mark_open(&c->mark, companion_dir(c), program, NULL) != 0;
    pending_mark_set(&c->mark, writes, program);
    companion_tell(c);
    if (!c->is_launched && !writes && c->done_fd >= 0) {
        (void)close(c->done_fd);
        c->done_fd = -1;
    }
}

/* Every process that may still come has inherited the way, and holds it open. */
static bool may_anybody_come(const struct companion *c)
{
    return c->setup->way_fd <= 0 || c->way_fd >= 0 || c->is_way_lost || c->connections;
}

static bool is_over(const struct companion *c, int64_t now_ms)
{
    bool has_work =
        c->is_launched || c->processes || c->strays || c->jobs || c->sched_pid > 0 || companion_has_notes(c);
    return !has_work && (!may_anybody_come(c) || now_ms - c->busy_ms >= LINGER_MS);
}

static int64_t sooner_ms(int64_t timeout_ms, int64_t due_ms, int64_t now_ms)
{
    int64_t rest_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    return rest_ms < timeout_ms ? rest_ms : timeout_ms;
}

static int timeout_ms(const struct companion *c, int64_t now_ms)
{
    int64_t timeout = !c->is_launched && !c->processes ? LINGER_MS / 4 : c->tick_ms;
    for (const struct companion_process *p = c->processes; p; p = p->next) {
        if (p->state == PROCESS_LIVE && p->mark_due_ms)
            timeout = sooner_ms(timeout, p->mark_due_ms, now_ms);
        if (p->state == PROCESS_LIVE && p->homes)
            timeout = sooner_ms(timeout, companion_homes_due(p), now_ms);
        if (p->state == PROCESS_LIVE && p->bell_due_ms > now_ms)
            timeout = sooner_ms(timeout, p->bell_due_ms, now_ms);
    }
    if (companion_has_notes(c) && !c->is_launched && timeout > TICK_MIN_MS)
        timeout = TICK_MIN_MS;
    return (int)timeout;
}

void companion_turn(struct companion *c, int64_t now_ms)
{
    mark_processes(c, now_ms);
    if (c->lacks_room)
        give_room(c);
    for (struct companion_process *p = c->processes; p && c->n_homes; p = p->next)
        companion_homes_look(c, p, now_ms);
    bool is_last = !c->is_launched && (companion_has_notes(c) || c->strays);
    if (c->must_checkpoint || is_last || now_ms - c->looked_ms >= c->tick_ms) {
        look_around(c, now_ms);
        c->looked_ms = now_ms;
    }
    save_snapshots(c);
    companion_answer_snapshots(c);
    companion_process_sweep(c);
    companion_connections_sweep(c);
    if (c->sched_pid > 0 && c->sched_fd >= 0 && !is_any_alive(c))
        companion_sched_end(c);
    if (c->is_tight && !is_any_alive(c))
        companion_jobs_drop(c);
    publish_state(c);
}

/* Polls in parts as large as the limit allows, without waiting. */
static int poll_parts(struct pollfd *fds, size_t n, size_t n_allowed)
{
    int n_ready = 0;
    for (size_t at = 0; at < n; at += n_allowed) {
        int n_part = poll(fds + at, n - at < n_allowed ? n - at : n_allowed, 0);
        n_ready += n_part > 0 ? n_part : 0;
    }
    return n_ready;
}

int companion_poll(struct pollfd *fds, size_t n, int timeout_ms)
{
    struct rlimit limit;
    int n_ready = poll(fds, n, timeout_ms);
    if (n_ready >= 0 || errno != EINVAL)
        return n_ready;
    for (size_t i = 0; i < n; i++)
        fds[i].revents = 0;
    n_ready = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur ? poll_parts(fds, n, limit.rlim_cur) : 0;
    return n_ready ? n_ready : poll(NULL, 0, timeout_ms < TICK_MIN_MS ? timeout_ms : TICK_MIN_MS);
}

/* Serves until the launched program and all registered processes are gone and written. */
static void companion_loop(struct companion *c)
{
    struct watches w = {0};
    c->looked_ms = companion_now_ms();
    c->tick_ms = TICK_MIN_MS;
    publish_state(c);
    for (int64_t now_ms = companion_now_ms(); !is_over(c, now_ms);) {
        watch_all(c, &w, now_ms);
        int n_ready = companion_poll(w.fds, w.n, timeout_ms(c, now_ms));
        for (size_t i = 0; n_ready > 0 && i < w.n; i++)
            if (w.fds[i].revents)
                dispatch(c, &w.items[i]);
        now_ms = companion_now_ms();
        if (n_ready > 0)
            c->busy_ms = now_ms;
        companion_turn(c, now_ms);
    }
    free(w.fds);
    free(w.items);
}

/* --- the start: socket, inherited way, session --- */

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
        listen(fd, LISTEN_MAX) != 0) {
        int saved = errno;
        if (fd >= 0)
            (void)close(fd);
        return error_set(err, ERR_IO, "the socket of the companion process cannot be opened: %s", strerror(saved));
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

/* Closes descriptors first..last; one by one where the kernel is older than close_range. */
static void close_between(unsigned first, unsigned last)
{
    long n_open = sysconf(_SC_OPEN_MAX);
    if (close_range(first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && (long)fd < n_open; fd++)
        (void)close((int)fd);
}

/* Whoever reads the program's output from a pipe waits for its end, so no inherited descriptor may stay open. */
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
    const int keep[] = {listen_fd, setup->launched_pidfd, setup->done_fd, setup->way_fd, setup->ready_fd};
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && null_fd >= 0; fd++)
        (void)dup2(null_fd, fd);
    close_others(keep, (int)(sizeof keep / sizeof *keep));
    (void)!chdir("/");
    (void)umask((umask(077) & 077) | 022); /* what the user's own umask allows, and never more than 0755 */
}

/* A process that is woken takes the processor from the one that woke it, unless it is a batch job. The program wakes us
 * from its signal handler, and would stand still there while the companion works, even if another processor is free. */
static void give_way(void)
{
    const struct sched_param none = {0};
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

/* What a companion that serves writes to ready_fd, before what it may not record; else it writes why it does not. */
#define READY '+'

/* Waits until whoever holds the other end of the pipe closes it. What is written there goes into text. */
static void read_to_end(int fd, char *text, size_t n_text)
{
    size_t len = 0;
    ssize_t n;
    while ((n = read(fd, text + len, n_text - 1 - len)) > 0 || (n < 0 && errno == EINTR))
        len += n > 0 ? (size_t)n : 0;
    text[len] = '\0';
}

static pid_t start_apart(const struct companion_setup *setup, int listen_fd, int pid_fd, int ready_fd)
{
    pid_t middle = fork();
    if (middle != 0)
        return middle;
    (void)setsid();
    pid_t companion = fork();
    if (companion == 0) {
        static struct companion_setup own; /* large */
        own = *setup;
        own.ready_fd = ready_fd;
        detach(&own, listen_fd);
        give_way();
        _exit(companion_run(&own, listen_fd));
    }
    if (companion < 0)
        companion = -errno;
    (void)!write(pid_fd, &companion, sizeof companion);
    _exit(0);
}

/* Whether the companion serves; *err: why not, else what it cannot record, if anything. */
static bool becomes_ready(int ready_fd, struct error *err)
{
    char text[sizeof err->text];
    read_to_end(ready_fd, text, sizeof text);
    if (text[0] == READY) {
        memcpy(err->text, text + 1, sizeof text - 1);
        return true;
    }
    (void)error_set(err, ERR_IO, "the companion process cannot serve: %s", text[0] ? text : "it ended at its start");
    return false;
}

static int pipe_failed(struct error *err)
{
    return error_set(err, ERR_IO, "pipe failed: %s%s", strerror(errno), errno == EMFILE ? "; see ulimit -n" : "");
}

pid_t companion_start(const struct companion_setup *setup, int listen_fd, struct error *err)
{
    int pid_fds[2], ready_fds[2];
    pid_t companion = -1;
    bool is_ready = false;
    err->text[0] = '\0';
    if (pipe2(pid_fds, O_CLOEXEC) != 0)
        return pipe_failed(err);
    if (pipe2(ready_fds, O_CLOEXEC) != 0) {
        (void)pipe_failed(err);
        (void)close(pid_fds[0]);
        (void)close(pid_fds[1]);
        return ERR_IO;
    }
    pid_t middle = start_apart(setup, listen_fd, pid_fds[1], ready_fds[1]);
    int saved = errno;
    (void)close(pid_fds[1]);
    (void)close(ready_fds[1]);
    if (middle > 0) {
        if (read(pid_fds[0], &companion, sizeof companion) != (ssize_t)sizeof companion)
            companion = -ECHILD;
        saved = companion < 0 ? -companion : 0;
        (void)waitpid(middle, NULL, 0);
        is_ready = companion > 0 && becomes_ready(ready_fds[0], err);
    }
    (void)close(pid_fds[0]);
    (void)close(ready_fds[0]);
    (void)close(listen_fd);
    if (setup->way_fd > 0)
        (void)close(setup->way_fd);
    if (companion > 0)
        return is_ready ? companion : ERR_IO;
    return error_set(err, ERR_IO, "the companion process cannot be forked: %s%s", strerror(saved),
                     saved == EAGAIN ? "; see ulimit -u" : "");
}

/* The user's limits are meant for the program; the companion raises its own as far as it may. */
static void raise_limit(int which)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit((__rlimit_resource_t)which, &limit);
}

#define TIGHT_PROCESSES 1024

/* Whether the user may have few processes. root may have any number. */
static bool is_limit_tight(void)
{
    struct rlimit limit;
    return geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < TIGHT_PROCESSES;
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

/* Starts to make what the program will need, before it asks. */
static void companion_prepare(struct companion *c)
{
    if (c->setup->exe[0] && c->setup->tables[0])
        (void)companion_job_add(c, JOB_PREPARE, NULL, c->setup->exe);
    if (c->setup->writes_topology)
        (void)companion_job_add(c, JOB_TOPOLOGY, NULL, NULL);
}

/* Where somebody else could put another directory in the place of ours, files are made through a descriptor. False when
 * it has been replaced already. */
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

/* What the companion opens for the first process: a connection, an arena with its mapping and bell, a pidfd, and the
 * pipes and files of its workers. */
#define DESCRIPTORS_NEEDED 8

/* Whether there is room for that; the program's limit is ours, too. */
static bool has_descriptors(const struct companion *c, struct error *err)
{
    int fds[DESCRIPTORS_NEEDED], n = 0;
    while (n < DESCRIPTORS_NEEDED && (fds[n] = fcntl(c->listen_fd, F_DUPFD_CLOEXEC, 0)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        (void)close(fds[i]);
    if (n == DESCRIPTORS_NEEDED)
        return true;
    (void)error_set(err, ERR_IO, "it needs more descriptors than the limit (ulimit -n) allows; raise it by %d",
                    DESCRIPTORS_NEEDED - n);
    return false;
}

/* Opens what no measurement can do without. */
static bool begin_serving(struct companion *c, struct error *err)
{
    if (!companion_enter(c)) {
        (void)error_set(err, ERR_IO, "%.1000s was replaced by another directory", c->setup->dir);
        return false;
    }
    c->has_no_mark = pending_mark_open(&c->mark, companion_dir(c), c->setup->launched_pid, NULL) != 0;
    if (has_descriptors(c, err) && companion_store_open(c, err))
        return true;
    pending_mark_close(&c->mark);
    return false;
}

/* Tells the launcher whether we serve. */
static void say_ready(const struct companion *c, const char *text)
{
    if (c->ready_fd >= 0)
        (void)!write(c->ready_fd, text, strlen(text));
}

int companion_run(const struct companion_setup *setup, int listen_fd)
{
    static const char ready[] = {READY, '\0'};
    struct error err;
    struct companion_notes notes = {0};
    struct companion c = {
        .setup = setup,
        .listen_fd = listen_fd,
        .way_fd = setup->way_fd > 0 ? setup->way_fd : -1,
        .launched_pidfd = setup->launched_pidfd,
        .is_launched = setup->launched_pidfd >= 0 || setup->launched_pid > 0,
        .done_fd = setup->done_fd,
        .recipes_fd = -1,
        .sched_fd = -1,
        .ready_fd = setup->ready_fd > 0 ? setup->ready_fd : -1,
        .host_id = names_host_id(),
        .n_homes = companion_homes_nodes(NULL),
        .busy_ms = companion_now_ms(),
    };
    c.notes = &notes;
    raise_limit(RLIMIT_FSIZE);
    raise_limit(RLIMIT_NOFILE);
    raise_limit(RLIMIT_AS);
    c.is_tight = is_limit_tight();
    setup_signals(&c);
    (void)listen(listen_fd, LISTEN_MAX); /* whoever connects then sees us behind the socket, and not the launcher */
    if (!begin_serving(&c, &err)) {
        say_ready(&c, err.text);
        return 1;
    }
    say_ready(&c, ready);
    if (setup->local[0])
        (void)companion_detour_start(&c, setup->local);
    companion_sched_start(&c);
    if (c.ready_fd >= 0)
        (void)close(c.ready_fd);
    c.ready_fd = -1;
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
