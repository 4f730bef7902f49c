/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion's main loop; see companion-loop.h. Everything is a descriptor: clients, pidfds, the bells of the
 * arenas, signals. What has no descriptor (growing arenas, checkpoints) is looked at between, the less often the less
 * happens. */
#include "companion-loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/vec.h"
#include "companion-jit.h"

#define LINGER_MS 500 /* a child that was just forked may still be on its way to us */
#define TICK_MIN_MS 50
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

static void watch_all(const struct companion *c, struct watches *w)
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
        if (p->state == PROCESS_LIVE)
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
        companion_strays_take(c, process);
        if (process->state == PROCESS_LIVE)
            companion_process_requests(c, process);
        break;
    }
    }
}

static void checkpoint(struct companion *c, struct companion_process *process)
{
    uint64_t n_taken = companion_arena_n_taken(process);
    if (process->is_checkpointing || process->is_arena_file || n_taken == process->n_taken_checkpointed)
        return;
    companion_times_settle(process);
    struct companion_job *job =
        companion_write_prepare(process) ? companion_job_add(c, JOB_CHECKPOINT, process, NULL) : NULL;
    if (!job || !job->pid) {
        /* Not queued: the final writing would have to wait for it. */
        if (job)
            job->has_ended = true;
        return;
    }
    process->is_checkpointing = true;
    process->n_taken_checkpointed = n_taken;
}

/* Notes what is live in the processes whose moment has come. */
static void mark_processes(struct companion *c, int64_t now_ms)
{
    struct timespec now;
    for (struct companion_process *p = c->processes; p; p = p->next) {
        if (p->state != PROCESS_LIVE || !p->mark_due_ms || now_ms < p->mark_due_ms)
            continue;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        arena_mark_chunks(companion_arena_table(p), companion_arena_data(p, 0), companion_arena_n_chunks(p));
        atomic_store(&p->arena->mark_ns, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
        p->mark_due_ms = 0;
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

/* What no descriptor tells. */
static void look_around(struct companion *c, int64_t now_ms)
{
    bool has_grown = false;
    if (c->is_launched && c->launched_pidfd < 0 && companion_is_gone(c->setup->launched_pid, &c->launched_start))
        see_launched_end(c);
    for (struct companion_process *p = c->processes; p; p = p->next) {
        if (!p->is_gone && p->pidfd < 0 && companion_is_gone(p->peer_pid, &p->start))
            companion_process_gone(c, p);
        if (p->state != PROCESS_LIVE)
            continue;
        has_grown |= companion_arena_back(c, p);
        companion_strays_take(c, p);
        companion_process_requests(c, p);
        companion_process_look(c, p, now_ms);
        if (p->state != PROCESS_LIVE)
            continue;
        companion_jit_look(p);
        if (c->must_checkpoint || now_ms >= p->checkpoint_due_ms)
            checkpoint(c, p);
    }
    companion_strays_look(c, now_ms, !is_any_alive(c));
    c->must_checkpoint = c->is_full = false;
    write_notes(c);
    companion_job_reap(c);
    c->tick_ms = has_grown ? TICK_MIN_MS : c->tick_ms * 2;
    if (c->tick_ms > TICK_MAX_MS)
        c->tick_ms = TICK_MAX_MS;
}

static bool is_writing(const struct companion *c)
{
    for (const struct companion_job *job = c->jobs; job; job = job->next)
        if (job->kind == JOB_WRITE || job->kind == JOB_CHECKPOINT || job->kind == JOB_GATHER || job->kind == JOB_NOTES)
            return true;
    return companion_has_notes(c);
}

/* Tells readers and a waiting launcher how far we are. */
static void publish_state(struct companion *c)
{
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

/* Every process on its way to us has inherited the way, and holds it open. */
static bool may_anybody_come(const struct companion *c)
{
    return c->setup->way_fd <= 0 || c->way_fd >= 0 || c->is_way_lost || c->connections;
}

static bool is_over(const struct companion *c, int64_t now_ms)
{
    bool has_work = c->is_launched || c->processes || c->strays || c->jobs || companion_has_notes(c);
    return !has_work && (!may_anybody_come(c) || now_ms - c->busy_ms >= LINGER_MS);
}

static int timeout_ms(const struct companion *c)
{
    int64_t timeout = !c->is_launched && !c->processes ? LINGER_MS / 4 : c->tick_ms, now_ms = 0;
    for (const struct companion_process *p = c->processes; p; p = p->next) {
        if (p->state != PROCESS_LIVE || !p->mark_due_ms)
            continue;
        now_ms = now_ms ? now_ms : companion_now_ms();
        int64_t rest_ms = p->mark_due_ms > now_ms ? p->mark_due_ms - now_ms : 0;
        timeout = rest_ms < timeout ? rest_ms : timeout;
    }
    if (companion_has_notes(c) && !c->is_launched && timeout > TICK_MIN_MS)
        timeout = TICK_MIN_MS;
    return (int)timeout;
}

void companion_turn(struct companion *c, int64_t now_ms)
{
    mark_processes(c, now_ms);
    bool is_last = !c->is_launched && (companion_has_notes(c) || c->strays);
    if (c->must_checkpoint || is_last || now_ms - c->looked_ms >= c->tick_ms) {
        look_around(c, now_ms);
        c->looked_ms = now_ms;
    }
    companion_process_sweep(c);
    companion_connections_sweep(c);
    publish_state(c);
}

/* In parts of which the limit allows each, without waiting. */
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

void companion_loop(struct companion *c)
{
    struct watches w = {0};
    c->looked_ms = companion_now_ms();
    c->tick_ms = TICK_MIN_MS;
    publish_state(c);
    while (!is_over(c, companion_now_ms())) {
        watch_all(c, &w);
        int n_ready = companion_poll(w.fds, w.n, timeout_ms(c));
        for (size_t i = 0; n_ready > 0 && i < w.n; i++)
            if (w.fds[i].revents)
                dispatch(c, &w.items[i]);
        int64_t now_ms = companion_now_ms();
        if (n_ready > 0)
            c->busy_ms = now_ms;
        companion_turn(c, now_ms);
    }
    free(w.fds);
    free(w.items);
}
