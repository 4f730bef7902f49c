/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads and their turns, and teams of processes: see workers.h. */
#include "base/workers.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct worker {
    struct workers *workers;
    size_t number;
    pthread_t thread;
};

size_t workers_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (size_t)n : 1;
}

/* The number in a file of a control group, UINT64_MAX when there is none, or no limit. */
static uint64_t read_number(const char *root, int n_group, const char *group, const char *name)
{
    char path[512];
    unsigned long long number = UINT64_MAX;
    (void)snprintf(path, sizeof path, "%s%.*s/%s", root, n_group, group, name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%llu", &number) != 1)
        number = UINT64_MAX;
    if (file)
        (void)fclose(file);
    return number;
}

/* What the limits of a control group and of those around it leave; the mount may begin at any of them. */
static uint64_t room_in_group(const char *root, const char *group, const char *limit_name, const char *used_name)
{
    uint64_t room = UINT64_MAX;
    for (int n = (int)strlen(group); n >= 0; n--) {
        if (n && group[n] != '/' && group[n] != '\0')
            continue;
        uint64_t limit = read_number(root, n, group, limit_name), used = read_number(root, n, group, used_name);
        uint64_t left = limit == UINT64_MAX ? limit : used < limit ? limit - used : 0;
        room = left < room ? left : room;
    }
    return room;
}

/* src: cgroups(7), Linux admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst */
uint64_t workers_free_bytes(void)
{
    char line[512];
    long n_pages = sysconf(_SC_AVPHYS_PAGES);
    uint64_t room = n_pages > 0 ? (uint64_t)n_pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups && fgets(line, sizeof line, groups)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        uint64_t left = UINT64_MAX;
        if (!controllers[1])
            left = room_in_group("/sys/fs/cgroup", group, "memory.max", "memory.current");
        else if (strstr(controllers, "memory"))
            left = room_in_group("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes");
        room = left < room ? left : room;
    }
    if (groups)
        (void)fclose(groups);
    return room;
}

bool job_goes_on(const struct job *job, struct error *err)
{
    if (!job->stop || !job->stop(job->context))
        return true;
    (void)error_set(err, ERR_USAGE, "interrupted");
    return false;
}

void job_begin(const struct job *job, const char *phase)
{
    if (job->progress)
        job->progress(job->context, phase, 0, 1);
}

/* The next task, or SIZE_MAX when there is none left. */
static size_t take(struct workers *workers)
{
    struct error err;
    bool stopped = !job_goes_on(workers->job, &err);
    (void)pthread_mutex_lock(&workers->mutex);
    if (stopped && !workers->failed) {
        workers->failed = true;
        workers->error = err;
        (void)pthread_cond_broadcast(&workers->advanced);
    }
    size_t i = workers->failed || workers->next_task == workers->n_tasks ? SIZE_MAX : workers->next_task++;
    (void)pthread_mutex_unlock(&workers->mutex);
    return i;
}

/* Remembers the first failure; all threads stop at their next task. */
static void note_failure(struct workers *workers, const struct error *error)
{
    (void)pthread_mutex_lock(&workers->mutex);
    if (!workers->failed)
        workers->error = *error;
    workers->failed = true;
    (void)pthread_cond_broadcast(&workers->advanced);
    (void)pthread_mutex_unlock(&workers->mutex);
}

bool workers_turn(struct workers *workers, size_t i)
{
    (void)pthread_mutex_lock(&workers->mutex);
    while (workers->turn < i && !workers->failed)
        (void)pthread_cond_wait(&workers->advanced, &workers->mutex);
    bool mine = !workers->failed;
    (void)pthread_mutex_unlock(&workers->mutex);
    return mine;
}

void workers_turned(struct workers *workers, size_t i)
{
    (void)pthread_mutex_lock(&workers->mutex);
    if (workers->turn == i) {
        workers->turn = i + 1;
        (void)pthread_cond_broadcast(&workers->advanced);
    }
    (void)pthread_mutex_unlock(&workers->mutex);
}

static void count(struct workers *workers)
{
    const struct job *job = workers->job;
    (void)pthread_mutex_lock(&workers->mutex);
    workers->n_done++;
    if (job->progress)
        job->progress(job->context, workers->phase, workers->n_done, workers->n_tasks);
    (void)pthread_mutex_unlock(&workers->mutex);
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct workers *workers = worker->workers;
    for (size_t i; (i = take(workers)) != SIZE_MAX;) {
        struct error err = {0};
        if (workers->task(workers->context, workers, worker->number, i, &err) != 0)
            note_failure(workers, &err);
        else if (workers_turn(workers, i))
            workers_turned(workers, i);
        count(workers);
    }
    return NULL;
}

int workers_run(struct workers *workers, struct error *err)
{
    size_t n_threads = workers->job->n_threads, n = n_threads < workers->n_tasks ? n_threads : workers->n_tasks;
    size_t n_started = 1;
    struct worker *all = calloc(n + 1, sizeof *all);
    if (!all)
        return error_memory(err);
    (void)pthread_mutex_init(&workers->mutex, NULL);
    (void)pthread_cond_init(&workers->advanced, NULL);
    workers->next_task = workers->turn = workers->n_done = 0;
    workers->failed = false;
    if (workers->job->progress)
        workers->job->progress(workers->job->context, workers->phase, 0, workers->n_tasks);
    for (size_t i = 0; i <= n; i++)
        all[i] = (struct worker){.workers = workers, .number = i};
    /* with fewer threads than wanted it only takes longer */
    while (n_started < n && pthread_create(&all[n_started].thread, NULL, work, &all[n_started]) == 0)
        n_started++;
    (void)work(&all[0]);
    for (size_t i = 1; i < n_started; i++)
        (void)pthread_join(all[i].thread, NULL);
    (void)pthread_cond_destroy(&workers->advanced);
    (void)pthread_mutex_destroy(&workers->mutex);
    free(all);
    if (!workers->failed)
        return 0;
    if (err)
        *err = workers->error;
    return workers->error.code;
}

/* --- a team of processes --- */

/* Functions of all teams: see workers.h. */

/* By how much round k is rotated. */
static size_t turn_of(const struct team *team, size_t k)
{
    return (size_t)((uint64_t)k * 0x9e3779b97f4a7c15u >> 32) % team->n_ranks;
}

size_t team_owner(const struct team *team, size_t i)
{
    return (i % team->n_ranks + turn_of(team, i / team->n_ranks)) % team->n_ranks;
}

size_t team_item(const struct team *team, size_t k)
{
    return k * team->n_ranks + (team->rank + team->n_ranks - turn_of(team, k)) % team->n_ranks;
}

size_t team_count(const struct team *team, size_t n)
{
    size_t n_deals = n / team->n_ranks;
    return n_deals + (team_item(team, n_deals) < n);
}

int team_agree(const struct team *team, int code, struct error *err)
{
    if (!team_is_several(team))
        return code;
    int64_t worst = code;
    team->combine(team, &worst, 1, TEAM_LEAST);
    if (code != 0 || worst == 0)
        return code;
    return error_set(err, ERR_USAGE, TEAM_ENDED);
}
