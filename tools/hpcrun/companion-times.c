/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU time of processes that end without telling it: killed, or ended by a system call of their own. While a process
 * lives, the kernel tells what all its threads have used, in ticks; so that is looked at now and then, and once more at
 * the end, which comes too late where the parent has been faster. What was missed of the time in user mode, the samples
 * make up for: each stands for its period. Ordinary code. */
#include "companion-state.h"

#include <string.h>
#include <unistd.h>

#define TIME_UNIT " (usec)" /* at the end of a metric's name */

void companion_times_begin(struct companion_process *process)
{
    (void)proc_stat_read(process->peer_pid, &process->at_start);
    process->last_seen = process->at_start;
}

void companion_times_look(struct companion_process *process)
{
    struct proc_stat now;
    if (proc_stat_read(process->peer_pid, &now) && now.start == process->at_start.start)
        process->last_seen = now;
}

static uint64_t ns_between(unsigned long long from, unsigned long long to)
{
    long per_second = sysconf(_SC_CLK_TCK);
    return to > from && per_second > 0 ? (to - from) * (1000000000u / (unsigned long)per_second) : 0;
}

/* What the thread's samples stand for, ns; 0 when they do not measure time. *is_user_only: in user mode. */
static uint64_t sampled_ns(const struct companion_process *process, const struct arena_thread *thread,
                           bool *is_user_only)
{
    double most = 0;
    *is_user_only = true;
    for (uint32_t i = 0; i < process->arena->n_events && i < ARENA_EVENTS_MAX; i++) {
        const struct arena_event *event = &process->arena->events[i];
        size_t len = strnlen(event->metric, sizeof event->metric), n = sizeof TIME_UNIT - 1;
        if (len < n || memcmp(event->metric + len - n, TIME_UNIT, n) != 0 ||
            event->flags & (EVENT_WEIGHTED | EVENT_WALLCLOCK))
            continue;
        double ns = (double)atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->taken[i]) * event->scale * 1000;
        if (!(ns > most) || ns > 1e18)
            continue;
        most = ns;
        *is_user_only = event->attr.exclude_kernel;
    }
    return (uint64_t)most;
}

/* The thread may be telling its times just now: then these stand. */
static void raise_to(_Atomic uint64_t *word, uint64_t ns)
{
    uint64_t before = atomic_load(word);
    if (ns > before)
        (void)atomic_compare_exchange_strong(word, &before, ns);
}

struct account {
    uint64_t user_ns, system_ns; /* of those that have told */
    uint64_t n_taken;            /* of the others */
    uint64_t rest_user_ns, rest_system_ns;
};

static uint64_t n_taken(const struct arena_thread *thread)
{
    uint64_t n = 1; /* so that threads without samples have a share, too */
    for (int i = 0; i < ARENA_EVENTS_MAX; i++)
        n += atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->taken[i]);
    return n;
}

static void add_up(const struct companion_process *unused, struct arena_thread *thread, struct account *account)
{
    (void)unused;
    if (thread->end_ns) {
        account->user_ns += atomic_load(&thread->user_ns);
        account->system_ns += atomic_load(&thread->system_ns);
    } else {
        account->n_taken += n_taken(thread);
    }
}

static void give(const struct companion_process *process, struct arena_thread *thread, struct account *account)
{
    bool is_user_only;
    uint64_t sampled = sampled_ns(process, thread, &is_user_only);
    if (thread->end_ns || !account->n_taken)
        return;
    double share = (double)n_taken(thread) / (double)account->n_taken;
    uint64_t user = (uint64_t)(share * (double)account->rest_user_ns);
    uint64_t system = (uint64_t)(share * (double)account->rest_system_ns);
    uint64_t covered = is_user_only ? user : user + system;
    if (covered < sampled)
        user += sampled - covered;
    raise_to(&thread->user_ns, user);
    raise_to(&thread->system_ns, system);
    raise_to(&thread->cpu_time_ns, user + system);
}

typedef void thread_function(const struct companion_process *, struct arena_thread *, struct account *);

static void each_thread(struct companion_process *process, thread_function *call, struct account *account)
{
    uint32_t n_chunks = companion_arena_n_chunks(process);
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct arena_chunk *chunk = &companion_arena_table(process)[i];
        struct arena_thread *threads = (struct arena_thread *)(void *)companion_arena_data(process, i);
        uint32_t used = chunk->kind == ARENA_THREADS ? arena_run_used(chunk, n_chunks - i) : 0;
        for (uint32_t t = 0; t < used / sizeof *threads; t++)
            call(process, &threads[t], account);
    }
}

static uint64_t beyond(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

void companion_times_settle(struct companion_process *process)
{
    struct account account = {0};
    const struct proc_stat *from = &process->at_start, *to = &process->last_seen;
    if (!process->arena)
        return;
    each_thread(process, add_up, &account);
    account.rest_user_ns = beyond(ns_between(from->user_ticks, to->user_ticks), account.user_ns);
    account.rest_system_ns = beyond(ns_between(from->system_ticks, to->system_ticks), account.system_ns);
    each_thread(process, give, &account);
}
