/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: everything that takes long or reads foreign files runs in a forked child of the companion. A worker that
 * crashes costs its own work only. Ordinary code. */
#include "companion-state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "companion-recipes.h"
#include "companion-detour.h"
#include "companion-work.h"

#define PARALLEL_MAX 4      /* module jobs at a time; measurements are never queued */
#define WAITING_MAX 1000    /* module jobs in the queue: who asks for more must ask again */
#define CHECKPOINT_SHARE 50 /* checkpoints take at most 1/50 of the time */

static int run_job(const struct companion *c, const struct companion_job *job)
{
    switch (job->kind) {
    case JOB_MODULE:
        if (job->is_foreign)
            return companion_work_foreign(c, &job->module, job->path);
        return companion_work_module(c, job->module_ref ? &job->module : NULL, job->path);
    case JOB_PREPARE:
        return companion_work_prepare(c, job->path);
    case JOB_TOPOLOGY:
        return companion_work_topology(c);
    case JOB_GATHER:
        return companion_detour_gather(c, job->process);
    case JOB_NOTES:
        return companion_notes_write(c);
    case JOB_CHECKPOINT:
        (void)setpriority(PRIO_PROCESS, 0, 10);
        return companion_write_files(c, job->process, true);
    case JOB_WRITE:
        return companion_write_files(c, job->process, false);
    }
    return 1;
}

static void finish(struct companion *c, struct companion_job *job, int status);

static bool job_start(struct companion *c, struct companion_job *job)
{
    job->start_ms = companion_now_ms();
    job->pid = fork();
    if (job->pid < 0) {
        job->pid = 0;
        if (job->kind != JOB_WRITE)
            return false;
        /* Better a companion that does not answer for a while than a measurement that is lost. */
        companion_log(c, "No worker could be forked: %s.", strerror(errno));
        finish(c, job, run_job(c, job) << 8);
    } else if (job->pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)close(c->listen_fd);
        if (c->way_fd >= 0)
            (void)close(c->way_fd);
        if (c->recipes_fd >= 0)
            (void)close(c->recipes_fd);
        c->is_worker = true;
        _exit(run_job(c, job));
    }
    return true;
}

static bool is_queued_kind(enum job_kind kind)
{
    return kind == JOB_MODULE || kind == JOB_PREPARE || kind == JOB_TOPOLOGY;
}

/* The final files replace those of a checkpoint, so they must not be written at the same time. */
static bool must_wait(const struct companion_job *job, int n_running)
{
    if (is_queued_kind(job->kind))
        return n_running >= PARALLEL_MAX;
    return job->kind == JOB_WRITE && job->process->is_checkpointing;
}

static void start_waiting(struct companion *c)
{
    int n_running = 0;
    for (const struct companion_job *job = c->jobs; job; job = job->next)
        n_running += job->pid != 0 && !job->has_ended && is_queued_kind(job->kind);
    for (struct companion_job *job = c->jobs; job; job = job->next) {
        if (job->pid != 0 || job->has_ended || must_wait(job, n_running))
            continue;
        if (!job_start(c, job))
            return;
        n_running += is_queued_kind(job->kind);
    }
}

/* Appends a job that is not started yet. */
static struct companion_job *job_queue(struct companion *c, enum job_kind kind, struct companion_process *process,
                                       const char *path)
{
    struct companion_job **end = &c->jobs;
    unsigned n_modules = 0;
    for (; *end; end = &(*end)->next) {
        if (kind == JOB_MODULE && (*end)->kind == kind && !(*end)->has_ended && (*end)->process == process &&
            !strcmp((*end)->path, path))
            return *end;
        n_modules += (*end)->kind == JOB_MODULE;
    }
    if (kind == JOB_MODULE && n_modules >= WAITING_MAX)
        return NULL;
    struct companion_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->kind = kind;
    job->process = process;
    job->is_foreign = kind == JOB_MODULE && process && companion_process_is_foreign(process);
    if (path)
        memccpy(job->path, path, '\0', sizeof job->path - 1);
    *end = job;
    return job;
}

struct companion_job *companion_job_add(struct companion *c, enum job_kind kind, struct companion_process *process,
                                        const char *path)
{
    struct companion_job *job = job_queue(c, kind, process, path);
    if (job)
        start_waiting(c);
    return job;
}

struct companion_job *companion_job_add_module(struct companion *c, struct companion_process *process,
                                               const struct companion_module *module, uint32_t module_ref,
                                               const char *path)
{
    struct companion_job *job = job_queue(c, JOB_MODULE, process, path);
    if (!job)
        return NULL;
    job->module = *module;
    job->module_ref = module_ref;
    start_waiting(c);
    return job;
}

static void describe(char text[128], int status)
{
    if (WIFSIGNALED(status))
        (void)snprintf(text, 128, "the worker was killed by signal %d", WTERMSIG(status));
    else
        (void)snprintf(text, 128, "the worker failed with status %d", WEXITSTATUS(status));
}

static const char *trouble_of(const struct companion_process *process, const char *otherwise)
{
    return process->shared && process->shared->trouble[0] ? process->shared->trouble : otherwise;
}

/* Where one directory does not take the files, the other may. */
static bool write_elsewhere(struct companion *c, struct companion_process *process)
{
    if (process->has_retried)
        return false;
    process->has_retried = true;
    bool is_local = process->work_dir != NULL;
    process->writes_past = is_local;
    if (!is_local && (!companion_detour_start(c, detour_default_place()) || !companion_detour_process(c, process)))
        return false;
    if (!is_local)
        companion_trouble(c, trouble_of(process, "The measurement directory cannot be written"));
    return companion_job_add(c, JOB_WRITE, process, NULL) != NULL;
}

static void finish_write(struct companion *c, struct companion_job *job, const char *failure)
{
    struct companion_process *process = job->process;
    if (failure && job->is_placeless && write_elsewhere(c, process))
        return;
    if (failure) {
        companion_log(c, "The measurement of process %u could not be written: %s.", process->pid,
                      trouble_of(process, failure));
        companion_index(c, process, failure);
    } else if (process->writes_past) {
        companion_detour_leave(process);
    } else {
        companion_detour_drop_arena(process);
    }
    if (!failure)
        companion_drop_left(c, process);
    process->state = PROCESS_DONE;
    companion_arena_close(process);
    companion_answer_waiting(c, process, NULL, failure ? failure : "");
    /* After trouble with the measurement directory there is one more try, at the very end. */
    if (!failure && process->work_dir && !c->has_said_trouble)
        (void)companion_job_add(c, JOB_GATHER, process, NULL);
}

static void finish_gather(struct companion *c, struct companion_process *process, const char *failure)
{
    if (failure)
        companion_trouble(c, trouble_of(process, failure));
    else
        companion_detour_leave(process);
}

/* For who recovers the arena when we die: these files are to be replaced then. */
static void note_claimed(const struct companion_process *process)
{
    struct names_file log = process->shared->name;
    log.thread = 0;
    (void)snprintf(log.suffix, sizeof log.suffix, "log");
    char *name = process->arena && !process->shared->is_name_local ? names_path(NULL, &log) : NULL;
    if (name)
        (void)snprintf(process->arena->claimed, sizeof process->arena->claimed, "%s", name);
    free(name);
}

static void finish_checkpoint(struct companion *c, struct companion_job *job, const char *failure)
{
    struct companion_process *process = job->process;
    int64_t now = companion_now_ms(), pause = (now - job->start_ms) * CHECKPOINT_SHARE;
    process->is_checkpointing = false;
    process->was_checkpointed |= !failure;
    if (!failure)
        note_claimed(process);
    process->checkpoint_due_ms = now + (pause > companion_checkpoint_ms(c) ? pause : companion_checkpoint_ms(c));
    if (failure && !c->has_said_checkpoint)
        companion_log(c, "The checkpoint of process %u failed, further ones may: %s.", process->pid,
                      trouble_of(process, failure));
    c->has_said_checkpoint |= failure != NULL;
}

/* Its samples need not wait for a table that will not come. */
static void finish_module(const struct companion_job *job, const char *failure)
{
    const struct companion_process *process = job->process;
    if (!process || !process->arena || !job->module_ref)
        return;
    struct arena_module *record = arena_at(process->arena, job->module_ref);
    atomic_store_explicit(&record->answer, failure ? MODULE_REFUSED : MODULE_MADE, memory_order_release);
}

static void finish(struct companion *c, struct companion_job *job, int status)
{
    char text[128];
    const char *failure = NULL;
    if (status != 0) {
        describe(text, status);
        failure = text;
    }
    job->has_ended = true;
    job->is_placeless = WIFEXITED(status) && WEXITSTATUS(status) == WRITE_NO_PLACE;
    if (job->kind == JOB_WRITE)
        finish_write(c, job, failure);
    else if (job->kind == JOB_CHECKPOINT)
        finish_checkpoint(c, job, failure);
    else if (job->kind == JOB_GATHER)
        finish_gather(c, job->process, failure);
    else if (job->kind == JOB_MODULE)
        finish_module(job, failure);
    if (job->kind != JOB_WRITE && job->kind != JOB_CHECKPOINT && job->kind != JOB_GATHER && failure &&
        WIFSIGNALED(status))
        companion_log(c, "%s: %s.", job->path[0] ? job->path : "The topology", failure);
    companion_answer_waiting(c, NULL, job, "");
}

static void remove_ended(struct companion *c)
{
    for (struct companion_job **link = &c->jobs; *link;) {
        struct companion_job *job = *link;
        if (job->has_ended) {
            *link = job->next;
            free(job);
        } else {
            link = &job->next;
        }
    }
}

void companion_job_reap(struct companion *c)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        companion_recipes_reaped(c, pid, status);
        struct companion_job *job = c->jobs;
        while (job && (job->pid != pid || job->has_ended))
            job = job->next;
        if (job)
            finish(c, job, status);
    }
    remove_ended(c);
    start_waiting(c);
}
