/* SPDX-License-Identifier: BSD-3-Clause */
/* From switches and wakings to times and counts: see schedule.h. */
#include "streams/schedule.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "streams/couplebreak.h"
#include "streams/parts.h"
#include "streams/readers.h"

#define NEVER INT64_MIN

/* A wait that ended in a run. */
struct schedule_wait {
    int64_t ns, end_ns;
    uint32_t task; /* index */
    uint16_t cpu;
};

const char *schedule_state_name(enum schedule_state state)
{
    static const char *const names[SCHEDULE_N_STATES] = {
        "unknown", "running", "woken", "preempted", "sleeping", "uninterruptible", "stopped", "off CPU", "dead"};
    return names[state];
}

/* --- tasks and CPUs --- */

static uint64_t task_hash(const void *item)
{
    const struct schedule_task *task = item;
    return (uint64_t)(uint32_t)task->task * 0x9e3779b97f4a7c15u >> 20;
}

static bool task_is_same(const void *a, const void *b)
{
    return ((const struct schedule_task *)a)->task == ((const struct schedule_task *)b)->task;
}

static const struct slots_kind task_kind = {sizeof(struct schedule_task), task_hash, task_is_same};

static struct schedule_task *task_put(struct schedule *sched, int32_t number)
{
    const struct schedule_task like = {.task = number,
                                       .last_cpu = -1,
                                       .from_cpu = -1,
                                       .known_ns = sched->begin_ns,
                                       .left_ns = NEVER,
                                       .woken_ns = NEVER};
    size_t i = slots_put(&sched->slots, &task_kind, &sched->tasks, &sched->n_tasks, &sched->cap_tasks, &like);
    sched->failed |= i == SLOTS_NONE;
    if (i < UINT32_MAX)
        sched->recent[(uint32_t)number % SCHEDULE_RECENT] = (struct schedule_place){number, (uint32_t)i + 1};
    return i == SLOTS_NONE ? NULL : &sched->tasks[i];
}

static inline struct schedule_task *task_get(struct schedule *sched, int32_t number)
{
    const struct schedule_place *place = &sched->recent[(uint32_t)number % SCHEDULE_RECENT];
    return place->behind && place->task == number ? &sched->tasks[place->behind - 1] : task_put(sched, number);
}

/* NULL: it was not met. */
static struct schedule_task *task_find(const struct schedule *sched, int32_t number)
{
    const struct schedule_place *place = &sched->recent[(uint32_t)number % SCHEDULE_RECENT];
    if (place->behind && place->task == number)
        return &sched->tasks[place->behind - 1];
    const struct schedule_task like = {.task = number};
    size_t i = slots_find(&sched->slots, &task_kind, sched->tasks, &like);
    return i == SLOTS_NONE ? NULL : &sched->tasks[i];
}

static struct schedule_cpu *cpu_get(struct schedule *sched, uint16_t number)
{
    if (number < sched->n_cpus)
        return &sched->cpus[number];
    if (!vec_reserve(&sched->cpus, &sched->cap_cpus, (size_t)number + 1, sizeof *sched->cpus)) {
        sched->failed = true;
        return NULL;
    }
    for (; sched->n_cpus <= number; sched->n_cpus++)
        sched->cpus[sched->n_cpus] = (struct schedule_cpu){.cpu = (uint16_t)sched->n_cpus,
                                                           .current = SCHEDULE_NOBODY,
                                                           .since_ns = sched->begin_ns,
                                                           .last_ns = sched->begin_ns};
    return &sched->cpus[number];
}

static bool is_inside(const struct schedule *sched, int64_t t_ns)
{
    return t_ns >= sched->window.from_ns && t_ns <= sched->window.to_ns;
}

/* What of a stretch lies in the window; false: nothing. */
static bool clip(const struct schedule *sched, int64_t *from_ns, int64_t *to_ns)
{
    *from_ns = *from_ns < sched->window.from_ns ? sched->window.from_ns : *from_ns;
    *to_ns = *to_ns > sched->window.to_ns ? sched->window.to_ns : *to_ns;
    return *from_ns < *to_ns;
}

static void put_piece(struct schedule *sched, struct schedule_piece piece)
{
    if (sched->sink && sched->sink->piece)
        sched->sink->piece(sched->sink->context, &piece);
}

/* --- what a task has done until now --- */

/* The task has been in its state until to_ns, as far as is known. */
static void task_close_for(struct schedule *sched, struct schedule_task *task, int64_t to_ns, uint8_t state,
                           uint16_t next_cpu)
{
    int64_t from_ns = task->since_ns;
    task->known_ns = to_ns > task->known_ns ? to_ns : task->known_ns;
    if (state == SCHEDULE_UNKNOWN || state == SCHEDULE_DEAD || !clip(sched, &from_ns, &to_ns))
        return;
    task->ns[state] += to_ns - from_ns;
    if (state == SCHEDULE_RUNNING && to_ns - from_ns > task->run_max_ns)
        task->run_max_ns = to_ns - from_ns;
    put_piece(sched, (struct schedule_piece){.from_ns = from_ns,
                                             .to_ns = to_ns,
                                             .task = task->task,
                                             .cpu = task->last_cpu < 0 ? STREAM_NO_CPU : (uint16_t)task->last_cpu,
                                             .next_cpu = next_cpu,
                                             .state = state});
}

static void task_close(struct schedule *sched, struct schedule_task *task, int64_t to_ns, uint8_t state)
{
    task_close_for(sched, task, to_ns, state, STREAM_NO_CPU);
}

static void task_set(const struct schedule *sched, struct schedule_task *task, uint8_t state, int64_t t_ns)
{
    task->state = state;
    task->since_ns = t_ns;
    task->n_gaps = sched->n_gaps;
}

/* Nothing is known of the task any more. */
static void task_forget(const struct schedule *sched, struct schedule_task *task, int64_t t_ns)
{
    task_set(sched, task, SCHEDULE_UNKNOWN, t_ns);
    task->left_ns = task->woken_ns = NEVER;
    task->last_cpu = -1;
}

/* Whatever a task that runs nowhere did, records that were lost may tell otherwise from then on. */
static void task_after_gaps(struct schedule *sched, struct schedule_task *task)
{
    if (task->n_gaps == sched->n_gaps || task->state == SCHEDULE_RUNNING || task->state == SCHEDULE_UNKNOWN)
        return;
    int64_t gap_ns = sched->gaps[task->n_gaps];
    task_close(sched, task, gap_ns, task->state);
    task_forget(sched, task, gap_ns);
}

static void put_run(const struct schedule *sched, const struct schedule_task *task, int64_t to_ns, int32_t next,
                    uint8_t state)
{
    const struct schedule_run run = {.from_ns = task->since_ns,
                                     .to_ns = to_ns,
                                     .off_ns = task->off_ns,
                                     .latency_ns = task->latency_ns,
                                     .task = task->task,
                                     .next = next,
                                     .from_cpu = task->from_cpu,
                                     .cpu = task->last_cpu < 0 ? STREAM_NO_CPU : (uint16_t)task->last_cpu,
                                     .state = state};
    if (sched->sink && sched->sink->run && run.from_ns <= sched->window.to_ns && run.to_ns >= sched->window.from_ns)
        sched->sink->run(sched->sink->context, &run);
}

/* --- what a CPU has done until now --- */

static void cpu_close(struct schedule *sched, struct schedule_cpu *cpu, int64_t to_ns)
{
    int64_t from_ns = cpu->since_ns;
    bool is_cut = clip(sched, &from_ns, &to_ns);
    if (is_cut && cpu->current == 0) {
        cpu->idle_ns += to_ns - from_ns;
        put_piece(sched, (struct schedule_piece){from_ns, to_ns, 0, cpu->cpu, STREAM_NO_CPU, SCHEDULE_RUNNING});
    } else if (is_cut && cpu->current != SCHEDULE_NOBODY) {
        cpu->running_ns += to_ns - from_ns;
    }
}

/* The task that the CPU runs, as far as is known, leaves it unseen: it has run until to_ns at least. */
static void cpu_lose(struct schedule *sched, struct schedule_cpu *cpu, int64_t to_ns, int64_t t_ns)
{
    struct schedule_task *task = cpu->current > 0 ? task_find(sched, cpu->current) : NULL;
    to_ns = to_ns < cpu->since_ns ? cpu->since_ns : to_ns;
    cpu_close(sched, cpu, to_ns);
    if (task && task->state == SCHEDULE_RUNNING) {
        task_close(sched, task, to_ns, SCHEDULE_RUNNING);
        put_run(sched, task, to_ns, SCHEDULE_NOBODY, SCHEDULE_UNKNOWN);
        task_forget(sched, task, t_ns);
    }
    cpu->current = SCHEDULE_NOBODY;
    cpu->since_ns = t_ns;
}

/* --- events --- */

void schedule_seen(struct schedule *sched, uint16_t cpu, int64_t t_ns)
{
    struct schedule_cpu *place = cpu == STREAM_NO_CPU ? NULL : cpu_get(sched, cpu);
    if (place)
        place->last_ns = t_ns;
}

/* Records of a CPU were lost: who runs there now, and what happened to those who ran nowhere, is not known. */
static void take_lost(struct schedule *sched, struct schedule_cpu *cpu, int64_t t_ns, bool is_counted)
{
    if (!vec_reserve(&sched->gaps, &sched->cap_gaps, sched->n_gaps + 1, sizeof *sched->gaps)) {
        sched->failed = true;
        return;
    }
    sched->gaps[sched->n_gaps++] = cpu->last_ns;
    cpu_lose(sched, cpu, cpu->last_ns, t_ns);
    cpu->n_lost_places += is_counted;
    cpu->last_ns = t_ns;
}

static void take_waking(struct schedule *sched, int32_t number, int64_t t_ns)
{
    struct schedule_task *task = number > 0 ? task_get(sched, number) : NULL;
    if (!task)
        return;
    sched->n_wakings += is_inside(sched, t_ns);
    task_after_gaps(sched, task);
    if (task->state == SCHEDULE_RUNNING || task->state == SCHEDULE_PREEMPTED || task->state == SCHEDULE_WOKEN)
        return; /* wakings of tasks that have not left yet, or go on already */
    task_close(sched, task, t_ns, task->state);
    if (task->state == SCHEDULE_DEAD)
        task_forget(sched, task, t_ns); /* another one has its number */
    task_set(sched, task, SCHEDULE_WOKEN, t_ns);
    task->woken_ns = t_ns;
}

/* Ends what a CPU has done until now, when a task leaves it (NULL: the idle one, or one that is not known). A CPU of
 * which nothing is known has run that task all the time, where the recording has all tasks. False when it ran another
 * one, or when who ran there is not known. */
static bool cpu_leave(struct schedule *sched, struct schedule_cpu *cpu, struct schedule_task *task,
                      const struct schedule_step *step)
{
    bool is_free =
        task && (task->state == SCHEDULE_UNKNOWN || (task->state == SCHEDULE_WOKEN && task->left_ns == NEVER));
    if (cpu->current == SCHEDULE_NOBODY && sched->knows_all_tasks && (step->prev == 0 || is_free)) {
        /* nobody else has come onto the CPU since records of it are complete */
        if (task) {
            task->last_cpu = cpu->cpu;
            task->off_ns = task->latency_ns = task->from_cpu = -1;
            task_set(sched, task, SCHEDULE_RUNNING, cpu->since_ns > task->known_ns ? cpu->since_ns : task->known_ns);
            cpu->since_ns = task->since_ns;
        }
        cpu->current = step->prev;
    }
    bool fits = cpu->current == step->prev;
    sched->n_contradictions += !fits && (cpu->current != SCHEDULE_NOBODY || sched->knows_all_tasks);
    if (!fits)
        cpu_lose(sched, cpu, cpu->last_ns, step->t_ns);
    cpu_close(sched, cpu, step->t_ns);
    cpu->since_ns = step->t_ns;
    cpu->current = SCHEDULE_NOBODY;
    return fits;
}

/* A task that is said to run on another CPU than where it was met has left that one unseen. */
static void leave_other(struct schedule *sched, struct schedule_task *task, const struct schedule_cpu *cpu,
                        int64_t t_ns)
{
    struct schedule_cpu *other = task->last_cpu < 0 ? NULL : cpu_get(sched, (uint16_t)task->last_cpu);
    sched->n_contradictions++;
    if (other && other != cpu && other->current == task->task)
        cpu_lose(sched, other, other->last_ns, t_ns);
    task_forget(sched, task, t_ns);
}

/* A task leaves its CPU (NULL: it is not known which). */
static void leave(struct schedule *sched, struct schedule_cpu *cpu, const struct schedule_step *step)
{
    struct schedule_task *task = step->prev > 0 ? task_get(sched, step->prev) : NULL;
    uint8_t state = step->state == SCHEDULE_UNKNOWN ? SCHEDULE_OFF : step->state;
    if (task)
        task_after_gaps(sched, task);
    if (cpu)
        (void)cpu_leave(sched, cpu, task, step);
    if (!task)
        return;
    if (task->state == SCHEDULE_RUNNING && task->last_cpu != (cpu ? cpu->cpu : -1))
        leave_other(sched, task, cpu, step->t_ns);
    if (task->state != SCHEDULE_RUNNING && task->left_ns != NEVER && is_inside(sched, step->t_ns)) {
        sched->n_unseen++;
        sched->unseen_ns += step->t_ns - task->left_ns;
        sched->n_unseen_wakings += task->state == SCHEDULE_WOKEN;
    }
    if (task->state == SCHEDULE_RUNNING) {
        task_close(sched, task, step->t_ns, SCHEDULE_RUNNING);
        put_run(sched, task, step->t_ns, step->then, state);
    }
    task_set(sched, task, state, step->t_ns);
    task->last_cpu = cpu ? cpu->cpu : -1;
    task->left_ns = step->t_ns;
    task->woken_ns = NEVER;
    bool is_counted = is_inside(sched, step->t_ns);
    task->n_switches += is_counted;
    task->n_preemptions += is_counted && state == SCHEDULE_PREEMPTED;
    if (cpu)
        cpu->n_preemptions += is_counted && state == SCHEDULE_PREEMPTED;
}

static void note_wait(struct schedule *sched, const struct schedule_task *task, const struct schedule_cpu *cpu,
                      int64_t t_ns)
{
    if (!vec_reserve(&sched->waits, &sched->cap_waits, sched->n_waits + 1, sizeof *sched->waits)) {
        sched->failed = true;
        return;
    }
    sched->waits[sched->n_waits++] = (struct schedule_wait){.ns = task->latency_ns,
                                                            .end_ns = t_ns,
                                                            .task = (uint32_t)(task - sched->tasks),
                                                            .cpu = cpu ? cpu->cpu : STREAM_NO_CPU};
}

/* The state in which a task has been that comes onto a CPU now, as far as that is known. */
static uint8_t state_until_run(const struct schedule_task *task)
{
    switch (task->state) {
    case SCHEDULE_SLEEPING:
    case SCHEDULE_UNINTERRUPTIBLE:
    case SCHEDULE_STOPPED:
        return SCHEDULE_OFF; /* nobody has seen it woken */
    default:
        return task->state;
    }
}

/* A task has waited for a CPU, if it has. */
static void cpu_waited(const struct schedule *sched, struct schedule_cpu *cpu, uint8_t state, int64_t from_ns,
                       int64_t to_ns)
{
    bool is_ready = state == SCHEDULE_WOKEN || state == SCHEDULE_PREEMPTED;
    if (is_ready && clip(sched, &from_ns, &to_ns))
        cpu->waited_ns += to_ns - from_ns;
}

/* A task comes onto a CPU (NULL: it is not known which). */
static void come(struct schedule *sched, struct schedule_cpu *cpu, int32_t number, int64_t t_ns)
{
    struct schedule_task *task = number > 0 ? task_get(sched, number) : NULL;
    if (cpu) {
        cpu->current = number;
        cpu->since_ns = t_ns;
    }
    if (!task)
        return;
    task_after_gaps(sched, task);
    if (task->state == SCHEDULE_RUNNING)
        leave_other(sched, task, cpu, t_ns);
    bool is_counted = is_inside(sched, t_ns);
    if (cpu)
        cpu_waited(sched, cpu, task->state, task->since_ns, t_ns);
    task_close_for(sched, task, t_ns, state_until_run(task), cpu ? cpu->cpu : STREAM_NO_CPU);
    task->off_ns = task->left_ns == NEVER ? -1 : t_ns - task->left_ns;
    task->latency_ns = task->state == SCHEDULE_WOKEN ? t_ns - task->woken_ns : -1;
    if (is_counted && task->latency_ns >= 0 && !(sched->sink && sched->sink->is_brief))
        note_wait(sched, task, cpu, t_ns);
    task->n_runs += is_counted;
    bool has_moved = cpu && task->last_cpu >= 0 && task->last_cpu != cpu->cpu;
    task->n_migrations += is_counted && has_moved;
    if (cpu)
        cpu->n_migrations += is_counted && has_moved;
    task->from_cpu = task->last_cpu;
    task->last_cpu = cpu ? cpu->cpu : -1;
    task_set(sched, task, SCHEDULE_RUNNING, t_ns);
}

static void take_switch(struct schedule *sched, struct schedule_cpu *cpu, const struct schedule_step *step)
{
    bool is_counted = is_inside(sched, step->t_ns);
    sched->n_switches += is_counted;
    if (cpu) {
        cpu->is_seen = true;
        cpu->n_switches += is_counted;
    }
    leave(sched, cpu, step);
    come(sched, cpu, step->next, step->t_ns);
}

void schedule_take(struct schedule *sched, const struct schedule_step *step)
{
    struct schedule_cpu *cpu = step->cpu == STREAM_NO_CPU ? NULL : cpu_get(sched, step->cpu);
    bool is_counted = is_inside(sched, step->t_ns);
    switch (step->kind) {
    case SCHEDULE_WAKING:
        take_waking(sched, step->next, step->t_ns);
        break;
    case SCHEDULE_LOST:
        sched->n_lost_places += is_counted;
        for (size_t i = 0; !cpu && i < sched->n_cpus; i++)
            take_lost(sched, &sched->cpus[i], step->t_ns, is_counted);
        if (cpu)
            take_lost(sched, cpu, step->t_ns, is_counted);
        break;
    default:
        if (step->prev != step->next)
            take_switch(sched, cpu, step);
    }
    if (cpu)
        cpu->last_ns = step->t_ns;
}

/* --- the end --- */

/* The value at place k of the n, were they sorted; changes their order. */
static int64_t select_value(int64_t *values, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        int64_t pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            int64_t value = values[i];
            values[i++] = values[j];
            values[j--] = value;
        }
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return values[k];
}

static void latency_add(struct schedule_latency *latency, const struct schedule_wait *wait)
{
    if (latency->n == 0 || wait->ns > latency->max_ns) {
        latency->max_ns = wait->ns;
        latency->max_at_ns = wait->end_ns;
    }
    latency->n++;
    latency->sum_ns += wait->ns;
}

/* 95 % of the waits of each task, or CPU. places [n_groups + 1]: where those of a group begin. */
static void set_percentiles(struct schedule *sched, bool by_cpu, int64_t *values, size_t *places)
{
    size_t n_groups = by_cpu ? sched->n_cpus : sched->n_tasks, at = 0;
    for (size_t i = 0; i < n_groups; i++) {
        places[i] = at;
        at += by_cpu ? sched->cpus[i].latency.n : sched->tasks[i].latency.n;
    }
    for (size_t i = 0; i < sched->n_waits; i++)
        if (!by_cpu || sched->waits[i].cpu != STREAM_NO_CPU)
            values[places[by_cpu ? sched->waits[i].cpu : sched->waits[i].task]++] = sched->waits[i].ns;
    for (size_t i = 0; i < n_groups; i++) {
        struct schedule_latency *latency = by_cpu ? &sched->cpus[i].latency : &sched->tasks[i].latency;
        size_t n = latency->n;
        if (n)
            latency->p95_ns = select_value(values + places[i] - n, n, (95 * n + 99) / 100 - 1);
    }
}

static bool finish_waits(struct schedule *sched)
{
    size_t n_groups = sched->n_tasks > sched->n_cpus ? sched->n_tasks : sched->n_cpus;
    int64_t *values = calloc(sched->n_waits + 1, sizeof *values);
    size_t *places = calloc(n_groups + 1, sizeof *places);
    bool ok = values && places;
    for (size_t i = 0; ok && i < sched->n_waits; i++) {
        latency_add(&sched->tasks[sched->waits[i].task].latency, &sched->waits[i]);
        if (sched->waits[i].cpu != STREAM_NO_CPU)
            latency_add(&sched->cpus[sched->waits[i].cpu].latency, &sched->waits[i]);
    }
    if (ok) {
        set_percentiles(sched, false, values, places);
        set_percentiles(sched, true, values, places);
    }
    free(values);
    free(places);
    return ok;
}

static int compare_tasks(const void *a, const void *b)
{
    const struct schedule_task *x = a, *y = b;
    return (x->task > y->task) - (x->task < y->task);
}

int schedule_finish(struct schedule *sched, struct error *err)
{
    for (size_t i = 0; i < sched->n_cpus; i++)
        cpu_lose(sched, &sched->cpus[i], sched->end_ns, sched->end_ns);
    for (size_t i = 0; i < sched->n_tasks; i++) {
        struct schedule_task *task = &sched->tasks[i];
        task_after_gaps(sched, task);
        if (task->state == SCHEDULE_RUNNING)
            put_run(sched, task, sched->end_ns, SCHEDULE_NOBODY, SCHEDULE_UNKNOWN);
        bool is_blocked = task->state == SCHEDULE_SLEEPING || task->state == SCHEDULE_UNINTERRUPTIBLE ||
                          task->state == SCHEDULE_STOPPED;
        task_close(sched, task, sched->end_ns,
                   is_blocked && !sched->knows_wakings ? (uint8_t)SCHEDULE_OFF : task->state);
    }
    int64_t from_ns = sched->begin_ns, to_ns = sched->end_ns;
    bool is_empty = !clip(sched, &from_ns, &to_ns);
    for (size_t i = 0; i < sched->n_cpus; i++) {
        struct schedule_cpu *cpu = &sched->cpus[i];
        cpu->unknown_ns = is_empty ? 0 : to_ns - from_ns - cpu->running_ns - cpu->idle_ns;
    }
    sched->failed |= !finish_waits(sched);
    if (sched->n_tasks)
        qsort(sched->tasks, sched->n_tasks, sizeof *sched->tasks, compare_tasks);
    slots_fini(&sched->slots);
    return sched->failed ? error_memory(err) : 0;
}

void schedule_close(struct schedule *sched)
{
    free(sched->tasks);
    free(sched->cpus);
    free(sched->gaps);
    free(sched->waits);
    slots_fini(&sched->slots);
    *sched = (struct schedule){0};
}

/* --- from a place within the stream, up to another one --- */

void schedule_stand_take(const struct schedule *sched, struct schedule_stand *stand)
{
    for (size_t i = 0; i < sched->n_tasks; i++) {
        const struct schedule_task *task = &sched->tasks[i];
        stand->tasks[i] = (struct schedule_task_stand){.task = task->task,
                                                       .last_cpu = task->last_cpu,
                                                       .from_cpu = task->from_cpu,
                                                       .since_ns = task->since_ns,
                                                       .known_ns = task->known_ns,
                                                       .left_ns = task->left_ns,
                                                       .woken_ns = task->woken_ns,
                                                       .off_ns = task->off_ns,
                                                       .latency_ns = task->latency_ns,
                                                       .n_gaps = task->n_gaps,
                                                       .end_cpu = STREAM_NO_CPU,
                                                       .state = task->state};
    }
    for (size_t i = 0; i < sched->n_cpus; i++) {
        const struct schedule_cpu *cpu = &sched->cpus[i];
        stand->cpus[i] = (struct schedule_cpu_stand){
            .since_ns = cpu->since_ns, .last_ns = cpu->last_ns, .current = cpu->current, .is_seen = cpu->is_seen};
    }
    stand->n_tasks = sched->n_tasks;
    stand->n_cpus = sched->n_cpus;
    stand->n_gaps = sched->n_gaps;
}

/* What a CPU ran at a place ends. */
static bool end_on_cpu(struct schedule_stand *stand, const struct schedule_piece *piece)
{
    struct schedule_cpu_stand *cpu = piece->cpu < stand->n_cpus ? &stand->cpus[piece->cpu] : NULL;
    if (piece->cpu == STREAM_NO_CPU)
        return true;
    if (!cpu || cpu->has_end || (cpu->current != piece->task && cpu->current != SCHEDULE_NOBODY))
        return false;
    cpu->has_end = true;
    cpu->end_current = piece->task;
    cpu->begin_ns = piece->from_ns;
    cpu->end_ns = piece->to_ns;
    return true;
}

/* What a task did at a place; NULL: it had not been met. */
static struct schedule_task_stand *stand_of(const struct schedule *sched, struct schedule_stand *stand, int32_t number)
{
    const struct schedule_task *task = task_find(sched, number);
    size_t i = task ? (size_t)(task - sched->tasks) : SIZE_MAX;
    return i < stand->n_tasks ? &stand->tasks[i] : NULL;
}

bool schedule_stand_piece(const struct schedule *sched, struct schedule_stand *stand,
                          const struct schedule_piece *piece)
{
    bool runs = piece->state == SCHEDULE_RUNNING;
    struct schedule_task_stand *at = piece->task ? stand_of(sched, stand, piece->task) : NULL;
    if (piece->task == 0)
        return end_on_cpu(stand, piece);
    if (!at || at->has_end)
        return false;
    bool is_known = at->state != SCHEDULE_UNKNOWN && at->state != SCHEDULE_DEAD &&
                    runs == (at->state == SCHEDULE_RUNNING) && piece->from_ns == at->since_ns;
    bool is_late = runs && (at->state == SCHEDULE_UNKNOWN || at->state == SCHEDULE_WOKEN);
    at->has_end = is_known || is_late;
    at->is_late = !is_known && is_late;
    at->begin_ns = piece->from_ns;
    at->end_ns = piece->to_ns;
    at->end_state = piece->state;
    at->end_cpu = runs ? piece->cpu : piece->next_cpu;
    return at->has_end && (!runs || end_on_cpu(stand, piece));
}

bool schedule_stand_run(const struct schedule *sched, struct schedule_stand *stand, const struct schedule_run *run)
{
    struct schedule_task_stand *at = stand_of(sched, stand, run->task);
    bool is_known = at && at->state == SCHEDULE_RUNNING && at->since_ns == run->from_ns;
    bool is_late = at && at->has_end && at->is_late && at->begin_ns == run->from_ns;
    if (!is_known && !is_late)
        return false;
    at->has_run = true;
    at->next = run->next;
    at->then_state = run->state;
    at->end_ns = run->to_ns;
    return true;
}

bool schedule_begin_at(struct schedule *sched, const struct schedule_stand *stand)
{
    for (size_t i = 0; i < stand->n_tasks && !sched->failed; i++) {
        const struct schedule_task_stand *at = &stand->tasks[i];
        struct schedule_task *task = task_put(sched, at->task);
        if (!task || task != &sched->tasks[i])
            return false;
        task->last_cpu = at->last_cpu;
        task->from_cpu = at->from_cpu;
        task->since_ns = at->since_ns;
        task->known_ns = at->known_ns;
        task->left_ns = at->left_ns;
        task->woken_ns = at->woken_ns;
        task->off_ns = at->off_ns;
        task->latency_ns = at->latency_ns;
        task->n_gaps = at->n_gaps;
        task->state = at->state;
    }
    for (size_t i = 0; i < stand->n_cpus && !sched->failed; i++) {
        struct schedule_cpu *cpu = cpu_get(sched, (uint16_t)i);
        if (!cpu)
            return false;
        cpu->since_ns = stand->cpus[i].since_ns;
        cpu->last_ns = stand->cpus[i].last_ns;
        cpu->current = stand->cpus[i].current;
        cpu->is_seen = stand->cpus[i].is_seen;
    }
    if (!vec_reserve(&sched->gaps, &sched->cap_gaps, stand->n_gaps + 1, sizeof *sched->gaps))
        return false;
    memcpy(sched->gaps, stand->gaps, stand->n_gaps * sizeof *sched->gaps);
    sched->n_gaps = stand->n_gaps;
    return !sched->failed;
}

/* What a task did at the place to which events were followed has ended as is noted there. */
static void task_end_at(struct schedule *sched, struct schedule_task *task, const struct schedule_task_stand *at)
{
    uint8_t state = task->state;
    if (at->is_late) {
        task->last_cpu = at->end_cpu;
        task->off_ns = task->latency_ns = task->from_cpu = -1;
        task->since_ns = at->begin_ns;
    }
    if (at->has_end && at->end_state != SCHEDULE_RUNNING && at->end_cpu != STREAM_NO_CPU && at->end_cpu < sched->n_cpus)
        cpu_waited(sched, &sched->cpus[at->end_cpu], state, task->since_ns, at->end_ns);
    if (at->has_end)
        task_close_for(sched, task, at->end_ns, at->end_state, at->end_cpu);
    if (at->has_run)
        put_run(sched, task, at->end_ns, at->next, at->then_state);
    task->state = SCHEDULE_UNKNOWN;
}

void schedule_end_at(struct schedule *sched, const struct schedule_stand *stand, const struct schedule_stand *last)
{
    for (size_t i = 0; i < last->n_cpus; i++) {
        struct schedule_cpu *cpu = cpu_get(sched, (uint16_t)i);
        const struct schedule_cpu_stand *at = i < stand->n_cpus ? &stand->cpus[i] : NULL;
        if (!cpu)
            return;
        cpu->is_seen = last->cpus[i].is_seen;
        if (at && at->has_end) {
            cpu->current = at->end_current;
            cpu->since_ns = at->begin_ns;
            cpu_close(sched, cpu, at->end_ns);
        }
        cpu->current = SCHEDULE_NOBODY;
        cpu->since_ns = sched->end_ns;
    }
    for (size_t i = 0; i < stand->n_tasks && i < sched->n_tasks; i++)
        task_end_at(sched, &sched->tasks[i], &stand->tasks[i]);
    for (size_t i = 0; i < sched->n_tasks; i++)
        sched->tasks[i].n_gaps = sched->n_gaps;
}

static bool task_comes_before(const void *context, size_t i)
{
    const struct schedule_task *const *search = context;
    return search[0][i].task < search[1]->task;
}

const struct schedule_task *schedule_task_of(const struct schedule *sched, int32_t task)
{
    struct schedule_task like = {.task = task};
    const struct schedule_task *search[] = {sched->tasks, &like};
    size_t i = search_where(sched->n_tasks, task_comes_before, search);
    return i < sched->n_tasks && sched->tasks[i].task == task ? &sched->tasks[i] : NULL;
}

const struct schedule_cpu *schedule_cpu_of(const struct schedule *sched, uint16_t cpu)
{
    return cpu < sched->n_cpus ? &sched->cpus[cpu] : NULL;
}

bool schedule_cpu_is_known(const struct schedule_cpu *cpu)
{
    return cpu->is_seen || cpu->running_ns || cpu->idle_ns;
}

int64_t schedule_off_ns(const struct schedule_task *task)
{
    return task->ns[SCHEDULE_WOKEN] + task->ns[SCHEDULE_PREEMPTED] + task->ns[SCHEDULE_SLEEPING] +
           task->ns[SCHEDULE_UNINTERRUPTIBLE] + task->ns[SCHEDULE_STOPPED] + task->ns[SCHEDULE_OFF];
}

/* --- the events of scheduling in a stream --- */

/* The type of a name, if the stream has events of it. */
static const struct stream_type *type_with_events(const struct stream *stream, const char *name, bool is_expected)
{
    const struct stream_type *type = stream_type_of(stream, stream_find_id(stream, name));
    return type && (is_expected || type->n_events) ? type : NULL;
}

/* is_expected: types are counted on of which there are no events yet. */
static void find_source(struct schedule_source *source, const struct stream *stream, bool is_expected)
{
    const struct stream_type *switches = type_with_events(stream, "sched/sched_switch", is_expected);
    const struct stream_type *wakings = type_with_events(stream, "sched/sched_waking", is_expected);
    const struct stream_type *news = type_with_events(stream, "sched/sched_wakeup_new", is_expected);
    if (!wakings)
        wakings = type_with_events(stream, "sched/sched_wakeup", is_expected);
    *source = (struct schedule_source){.stream = stream,
                                       .switch_id = switches ? switches->id : STREAM_ID_NONE,
                                       .waking_id = wakings ? wakings->id : STREAM_ID_NONE,
                                       .new_id = news ? news->id : STREAM_ID_NONE,
                                       .knows_next = stream->tier != STREAM_TIER_OWN || stream->is_synthesised,
                                       .knows_own = stream->tier == STREAM_TIER_PROGRAM};
    if (switches) {
        source->prev_pid = stream_field_of(switches, "prev_pid");
        source->prev_state = stream_field_of(switches, "prev_state");
        source->misc = stream_field_of(switches, SCHEDULE_MISC_FIELD);
        source->next_pid = stream_field_of(switches, "next_pid");
    }
    source->woken_pid = wakings ? stream_field_of(wakings, "pid") : NULL;
    source->new_pid = news ? stream_field_of(news, "pid") : NULL;
}

void schedule_source_init(struct schedule_source *source, const struct stream *stream)
{
    find_source(source, stream, false);
}

void schedule_source_expect(struct schedule_source *source, const struct stream *stream)
{
    find_source(source, stream, true);
}

int schedule_compare_runs(const void *a, const void *b)
{
    const struct schedule_run *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* The bytes of an event of scheduling. */
struct step_bytes {
    const unsigned char *at; /* NULL: it has none */
    size_t n;
};

/* The bytes of an event of a type of the stream, if there are any. */
static inline struct step_bytes bytes_of(const struct schedule_source *source, const struct stream_event *event)
{
    const struct stream *stream = source->stream;
    struct step_bytes bytes;
    bool is_plain = stream->reader && !stream->reader->payload && event->id >= 0;
    bool is_there = is_plain ? stream_plain_bytes(stream, event, &bytes.at, &bytes.n)
                             : stream_event_bytes(stream, event, &bytes.at, &bytes.n);
    return is_there ? bytes : (struct step_bytes){NULL, 0};
}

static inline __attribute__((always_inline)) bool number_in(const struct schedule_source *source,
                                                            const struct step_bytes *bytes,
                                                            const struct stream_field *field, int64_t *value)
{
    return field && bytes->at && stream_number_in(source->stream, bytes->at, bytes->n, field, value);
}

/* What a task does that left its CPU: the bits of prev_state as kernels since 4.14 have them. */
static uint8_t state_of(const struct schedule_source *source, const struct step_bytes *bytes)
{
    enum { UNINTERRUPTIBLE = 2, STOPPED = 4 | 8, GONE = 0x10 | 0x20, BLOCKED = 0xff }; /* 0x40: parked, 0x80: idle */
    int64_t bits;
    if (number_in(source, bytes, source->misc, &bits))
        return bits & SCHEDULE_MISC_GONE        ? SCHEDULE_DEAD
               : bits & SCHEDULE_MISC_PREEMPTED ? SCHEDULE_PREEMPTED
                                                : SCHEDULE_UNKNOWN;
    if (!number_in(source, bytes, source->prev_state, &bits))
        return SCHEDULE_UNKNOWN;
    if (!(bits & BLOCKED))
        return SCHEDULE_PREEMPTED;
    if (bits & GONE)
        return SCHEDULE_DEAD;
    return bits & STOPPED ? SCHEDULE_STOPPED : bits & UNINTERRUPTIBLE ? SCHEDULE_UNINTERRUPTIBLE : SCHEDULE_SLEEPING;
}

static int32_t task_in(const struct schedule_source *source, const struct step_bytes *bytes,
                       const struct stream_field *field)
{
    int64_t number;
    bool is_there = number_in(source, bytes, field, &number);
    return is_there && number >= 0 && number <= INT32_MAX ? (int32_t)number : SCHEDULE_NOBODY;
}

/* A task, SCHEDULE_NOBODY for one of which events are missing. */
static int32_t own_of(const struct schedule_source *source, int32_t number)
{
    if (!source->knows_own || number == SCHEDULE_NOBODY)
        return number;
    const struct stream_task *task = stream_task_of(source->stream, number);
    return task && task->is_own ? number : SCHEDULE_NOBODY;
}

bool schedule_source_step(const struct schedule_source *source, const struct stream_event *event,
                          struct schedule_step *step)
{
    struct step_bytes bytes;
    *step = (struct schedule_step){
        .t_ns = event->t_ns, .cpu = event->cpu, .prev = SCHEDULE_NOBODY, .next = SCHEDULE_NOBODY};
    if (event->id == STREAM_ID_LOST) {
        step->kind = SCHEDULE_LOST;
    } else if (event->id == STREAM_ID_NONE) {
        return false;
    } else if (event->id == source->switch_id) {
        bytes = bytes_of(source, event);
        step->kind = SCHEDULE_SWITCH;
        step->prev = task_in(source, &bytes, source->prev_pid);
        step->next = source->knows_next ? task_in(source, &bytes, source->next_pid) : SCHEDULE_NOBODY;
        step->then = step->next;
        step->state = state_of(source, &bytes);
        step->prev = own_of(source, step->prev);
        step->next = own_of(source, step->next);
    } else if (event->id == source->waking_id || event->id == source->new_id) {
        bytes = bytes_of(source, event);
        step->kind = SCHEDULE_WAKING;
        step->next = task_in(source, &bytes, event->id == source->new_id ? source->new_pid : source->woken_pid);
        step->next = own_of(source, step->next);
    } else {
        return false;
    }
    return true;
}

/* The first event of a kind at a time that is of a task: its waking, its coming, or (leaves) its leaving. */
static const struct stream_event *event_of(const struct schedule_source *source, enum schedule_kind kind, bool leaves,
                                           int32_t task, int64_t t_ns, struct schedule_step *step)
{
    const struct stream *stream = source->stream;
    for (size_t i = stream_at(stream, t_ns); i < stream->n_events && stream->events[i].t_ns == t_ns; i++)
        if (!couplebreak_is_twin(stream->events[i].id) && schedule_source_step(source, &stream->events[i], step) &&
            step->kind == kind && (leaves ? step->prev : step->next) == task)
            return &stream->events[i];
    return NULL;
}

const struct stream_event *schedule_waking_of(const struct schedule_source *source, int32_t task, int64_t t_ns)
{
    struct schedule_step step;
    return event_of(source, SCHEDULE_WAKING, false, task, t_ns, &step);
}

int32_t schedule_next_of(const struct schedule_source *source, int32_t task, int64_t t_ns)
{
    struct schedule_step step;
    return event_of(source, SCHEDULE_SWITCH, true, task, t_ns, &step) ? step.then : SCHEDULE_NOBODY;
}

int32_t schedule_previous_of(const struct schedule_source *source, int32_t task, int64_t t_ns)
{
    struct schedule_step step;
    const struct stream_event *event = event_of(source, SCHEDULE_SWITCH, false, task, t_ns, &step);
    if (event && step.prev != SCHEDULE_NOBODY)
        return step.prev;
    return event && event->task != STREAM_NO_TASK && event->task != task ? event->task : SCHEDULE_NOBODY;
}

void schedule_begin(struct schedule *sched, const struct schedule_source *source, const struct schedule_window *window,
                    const struct schedule_sink *sink, int64_t begin_ns)
{
    enum stream_tier tier = source->stream->tier;
    sched->window = window ? *window : (struct schedule_window){INT64_MIN, INT64_MAX};
    sched->begin_ns = begin_ns;
    sched->knows_wakings = source->waking_id != STREAM_ID_NONE;
    sched->knows_all_tasks = tier == STREAM_TIER_FULL || tier == STREAM_TIER_SWITCHES;
    sched->sink = sink;
}

void schedule_follow(struct schedule *sched, const struct stream_event *event, const struct schedule_step *step)
{
    if (sched->sink && sched->sink->event)
        sched->sink->event(sched->sink->context, event);
    if (event->id < 0 && couplebreak_is_twin(event->id))
        return;
    if (step)
        schedule_take(sched, step);
    else
        schedule_seen(sched, event->cpu, event->t_ns);
}

int schedule_analyse(const struct stream *stream, const struct schedule_window *window,
                     const struct schedule_sink *sink, struct schedule *sched, struct error *err)
{
    struct schedule_source source;
    schedule_source_init(&source, stream);
    schedule_begin(sched, &source, window, sink, stream->n_events ? stream->events[0].t_ns : 0);
    sched->end_ns = stream->n_events ? stream->events[stream->n_events - 1].t_ns : 0;
    size_t first = 0, end = stream->n_events;
    if (stream->part && !stream_part_begin(stream, &sched->window, sched, &first, &end))
        return error_memory(err);
    for (size_t i = first; i < end && !sched->failed; i++) {
        struct schedule_step step;
        stream_pass(stream, i);
        bool is_step = schedule_source_step(&source, &stream->events[i], &step);
        schedule_follow(sched, &stream->events[i], is_step ? &step : NULL);
    }
    if (end < stream->n_events && !stream_part_end(stream, end, sched))
        return error_memory(err);
    return schedule_finish(sched, err);
}

/* --- slices of time --- */

int64_t schedule_slice_ns(int64_t from_ns, int64_t to_ns, size_t n_slices, size_t i)
{
    __extension__ __int128 length = (__int128)to_ns - from_ns;
    return (int64_t)(from_ns + length * (__int128)i / (__int128)n_slices);
}

size_t schedule_slice_at(int64_t from_ns, int64_t to_ns, size_t n_slices, int64_t t_ns)
{
    __extension__ __int128 length = (__int128)to_ns - from_ns;
    size_t i = length > 0 ? (size_t)(((__int128)t_ns - from_ns) * (__int128)n_slices / length) : 0;
    i = i < n_slices ? i : n_slices - 1;
    while (i + 1 < n_slices && schedule_slice_ns(from_ns, to_ns, n_slices, i + 1) <= t_ns)
        i++;
    return i;
}
