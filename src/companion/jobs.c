/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: everything that takes long or reads foreign files runs in a forked child of the companion. A worker that
 * crashes costs its own work only. Here is what the small ones do (topology, module tables; profiles are written in
 * write.c), how all are started and reaped, and what requests of the runtime start. Ordinary code. */
#include "companion/state.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "fmt/file.h"
#include "fnbounds/modtab-cache.h"
#include "measurement/names.h"

void topology_file_name(char *name, size_t n_name)
{
    (void)snprintf(name, n_name, "topology-%08x.xml", names_host_id());
}

/* Through memory: on a full disk, half a file would be left under its name. */
static int export_xml(hwloc_topology_t topology, const char *path, struct error *err)
{
    char *text = NULL;
    int len = 0;
    if (hwloc_topology_export_xmlbuffer(topology, &text, &len, 0) != 0)
        return error_set(err, ERR_UNSUPPORTED, "hwloc cannot describe the topology of this machine: %s.",
                         strerror(errno));
    size_t n_bytes = len > 0 ? strnlen(text, (size_t)len) : 0;
    int status = file_replace(path, text, n_bytes, err);
    hwloc_free_xmlbuffer(topology, text);
    return status;
}

/* Writes the whole machine, disallowed CPUs and nodes included (the allowed sets are kept in the XML), into dir, once
 * per host: an existing file is left alone.  err: ERR_IO, ERR_UNSUPPORTED (hwloc cannot see this machine) */
static int topology_write(const char *dir, struct error *err)
{
    char name[64], path[4352];
    hwloc_topology_t topology;
    topology_file_name(name, sizeof name);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (access(path, F_OK) == 0)
        return 0;
    if (hwloc_topology_init(&topology) != 0)
        return error_set(err, ERR_UNSUPPORTED, "hwloc cannot be initialised.");
    int status = 0;
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(topology) != 0)
        status =
            error_set(err, ERR_UNSUPPORTED, "hwloc cannot read the topology of this machine: %s.", strerror(errno));
    else
        status = export_xml(topology, path, err);
    hwloc_topology_destroy(topology);
    return status;
}

/* --- module tables --- */

/* Writes the hwloc XML of this host into the measurement directory, unless it is there. */
static int companion_work_topology(const struct companion *c)
{
    struct error err;
    if (topology_write(companion_dir(c), &err) == 0)
        return 0;
    companion_log(c, "%s", err.text);
    return 1;
}

/* Puts the table of the module at path into the cache. module: NULL for one that no process has reported. */
static int companion_work_module(const struct companion *c, const struct companion_module *module, const char *path)
{
    struct error err = {0};
    char found[ARENA_PATH_MAX];
    bool is_there = !module || companion_module_find(module, path, found);
    if (!c->setup->tables[0])
        return 1;
    if (is_there && modtab_make(module ? found : path, c->setup->tables, NULL, &err) == 0)
        return 0;
    if (is_there)
        companion_log(c, "%s", err.text);
    else
        companion_log(c, "No addresses in %s: the file is gone or has been replaced.", path);
    return 1;
}

/* The same for another user's process, where it may read the table: only for modules that everybody may read, and only
 * root or our user can change. */
static int companion_work_foreign(const struct companion *c, const struct companion_module *module, const char *path)
{
    struct error err;
    struct stat status;
    bool is_everybodys = !strcmp(path, MODTAB_VDSO) || (stat(path, &status) == 0 && status.st_mode & S_IROTH);
    if (!is_everybodys || !companion_is_safe_path(path) || companion_work_module(c, module, path) != 0)
        return 1;
    return c->foreign_tables[0] && modtab_make(path, c->foreign_tables, NULL, &err) == 0 ? 0 : 1;
}

/* The same for the executable at path and what else every process needs at its start. Tables of other libraries are
 * made when a path or a sample meets them: most of the code that a program loads never runs. */
static int companion_work_prepare(const struct companion *c, const char *path)
{
    const char *const paths[] = {path, c->setup->loader, MODTAB_VDSO, c->setup->library};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i][0])
            (void)companion_work_module(c, NULL, paths[i]);
    return 0;
}

/* --- starting and reaping --- */

#define PARALLEL_MAX 4   /* module jobs at a time, if the program has more processors; measurements are never queued */
#define MODULE_NICE 5    /* a table is worth waiting for, but not for the program */
#define WAITING_MAX 1000 /* module jobs in the queue: requests beyond that have to be repeated */
#define CHECKPOINT_SHARE 50 /* checkpoints take at most 1/50 of the time */

static int run_job(const struct companion *c, const struct companion_job *job)
{
    switch (job->kind) {
    case JOB_MODULE:
        (void)setpriority(PRIO_PROCESS, 0, MODULE_NICE);
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
        c->lacks_room |= errno == EAGAIN;
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

/* So many of these at a time. The topology is soon done, and a launcher waits for it. */
static bool takes_turns(enum job_kind kind)
{
    return kind == JOB_MODULE || kind == JOB_PREPARE;
}

static bool is_queued_kind(enum job_kind kind)
{
    return takes_turns(kind) || kind == JOB_TOPOLOGY;
}

/* How many small jobs may run at a time: the program keeps a processor for itself. */
static int n_parallel(const struct companion *c)
{
    cpu_set_t cpus;
    int n_cpus = !c->is_tight && sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    int n = c->setup->n_jobs ? (int)c->setup->n_jobs : n_cpus > PARALLEL_MAX ? PARALLEL_MAX : n_cpus - 1;
    return c->is_tight || n < 1 ? 1 : n;
}

/* The final files replace those of a checkpoint, so they must not be written at the same time. */
static bool must_wait(const struct companion *c, const struct companion_job *job, int n_running)
{
    if (is_queued_kind(job->kind))
        return c->room_until_ms || (takes_turns(job->kind) && n_running >= n_parallel(c));
    return job->kind == JOB_WRITE && job->process->is_checkpointing;
}

/* When no process can be forked, the other jobs wait, but not final files, which the companion then writes itself: who
 * waits for them may be the process that has to end before another can be forked. */
static void start_waiting(struct companion *c)
{
    int n_running = 0;
    bool can_fork = true;
    for (const struct companion_job *job = c->jobs; job; job = job->next)
        n_running += job->pid != 0 && !job->has_ended && takes_turns(job->kind);
    for (struct companion_job *job = c->jobs; job; job = job->next) {
        if (job->pid != 0 || job->has_ended || must_wait(c, job, n_running) || (!can_fork && job->kind != JOB_WRITE))
            continue;
        can_fork = job_start(c, job) && can_fork;
        n_running += can_fork && takes_turns(job->kind);
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
    job->is_foreign = kind == JOB_MODULE && process && companion_process_is_foreign(c, process);
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

/* The same for a module that a process reports; the answer goes into its record in the process's arena, whose reference
 * is module_ref. */
static struct companion_job *companion_job_add_module(struct companion *c, struct companion_process *process,
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

/* For whoever recovers the arena if we die: these files will have to be replaced. */
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
    (void)snprintf(process->why_unsaved, sizeof process->why_unsaved, "%.150s",
                   failure ? trouble_of(process, failure) : "");
    if (!failure)
        note_claimed(process);
    else
        process->n_taken_checkpointed = UINT64_MAX; /* so that the next one is news */
    process->checkpoint_due_ms = now + (pause > companion_checkpoint_ms(c) ? pause : companion_checkpoint_ms(c));
    if (failure && !c->has_said_checkpoint)
        companion_log(c, "The checkpoint of process %u failed, later ones may fail too: %s.", process->pid,
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
        companion_sched_reaped(c, pid, status);
        struct companion_job *job = c->jobs;
        while (job && (job->pid != pid || job->has_ended))
            job = job->next;
        if (job)
            finish(c, job, status);
    }
    remove_ended(c);
    start_waiting(c);
}

void companion_jobs_suspend(struct companion *c)
{
    for (struct companion_job *job = c->jobs; job; job = job->next) {
        if (job->pid == 0 || job->has_ended || !is_queued_kind(job->kind))
            continue;
        (void)kill(job->pid, SIGKILL);
        (void)waitpid(job->pid, NULL, 0);
        job->pid = 0;
    }
}

void companion_jobs_drop(struct companion *c)
{
    companion_jobs_suspend(c);
    for (struct companion_job *job = c->jobs; job; job = job->next)
        if (!job->has_ended && is_queued_kind(job->kind))
            finish(c, job, 0);
    remove_ended(c);
}

/* --- requests --- */

/* Requests that the runtime posts in its arena. The program may be corrupt, so every reference is checked against the
 * arena's bounds before it is followed. */

/* The record at ref when it lies entirely inside the arena's data, else NULL. */
static const void *checked_record(const struct companion_process *process, uint32_t ref, size_t n_bytes)
{
    uint64_t offset = (uint64_t)ref * ARENA_UNIT;
    if (offset < process->data_offset || offset + n_bytes > process->size_bytes)
        return NULL;
    return (const char *)process->arena + offset;
}

/* The module at ref with its path copied; NULL when the arena does not hold one. What was checked is not read again:
 * the program may change it meanwhile. */
static const struct arena_module *module_at(const struct companion_process *process, uint32_t ref,
                                            char path[ARENA_PATH_MAX])
{
    const struct arena_module *module = checked_record(process, ref, sizeof *module);
    uint32_t path_ref = module ? __atomic_load_n(&module->path, __ATOMIC_RELAXED) : 0;
    const struct arena_string *string = module ? checked_record(process, path_ref, sizeof *string) : NULL;
    uint32_t len_bytes = string ? __atomic_load_n(&string->len_bytes, __ATOMIC_RELAXED) : 0;
    if (!string || len_bytes >= ARENA_PATH_MAX || !checked_record(process, path_ref, sizeof *string + len_bytes))
        return NULL;
    memcpy(path, string->text, len_bytes);
    path[len_bytes] = '\0';
    return module;
}

static bool is_safe(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || (status.st_uid != 0 && status.st_uid != geteuid()))
        return false;
    bool is_sticky = S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX;
    return (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) &&
           (is_sticky || !(status.st_mode & (S_IWGRP | S_IWOTH)));
}

bool companion_is_safe_path(const char *path)
{
    char *real = strcmp(path, MODTAB_VDSO) ? realpath(path, NULL) : NULL;
    bool is_all_safe = real ? is_safe("/") && is_safe(real) : !strcmp(path, MODTAB_VDSO);
    for (char *slash = real ? strchr(real + 1, '/') : NULL; slash && is_all_safe; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        is_all_safe = is_safe(real);
        *slash = '/';
    }
    free(real);
    return is_all_safe;
}

/* A wrong path for a module that others use as well would cost them its recipes. */
static bool is_safe_module(const char *path, uint64_t wanted)
{
    uint64_t id;
    return companion_is_safe_path(path) && modtab_identify(path, &id, NULL) == 0 && id == wanted;
}

/* Acts on one request of process's arena; anything that does not name a module of the arena is ignored. Returns false
 * when it must stay posted for a later look. Another user's memory and descriptors are not searched for the file. */
static bool companion_serve_request(struct companion *c, struct companion_process *process,
                                    const struct arena_request *request, bool is_foreign)
{
    char path[ARENA_PATH_MAX];
    const struct arena_module *record = module_at(process, request->module, path);
    if (!record)
        return true;
    const struct companion_module module = {.id = record->table_id,
                                            .start = record->start,
                                            .inode = record->inode,
                                            .pid = is_foreign ? 0 : process->peer_pid};
    if (request->kind == REQUEST_MODULE)
        return companion_job_add_module(c, process, &module, request->module, path) != NULL;
    if (request->kind == REQUEST_RECIPE && module.id && (!is_foreign || is_safe_module(path, module.id)))
        return companion_recipes_ask(c, &module, request->pc, path);
    return true;
}

/* All requests are taken before the process's user is looked up: it may change until the last one was posted. */
bool companion_process_requests(struct companion *c, struct companion_process *process)
{
    struct arena_request taken[ARENA_REQUESTS];
    uint16_t places[ARENA_REQUESTS];
    unsigned n = 0;
    char rings[512];
    if (process->bell_fd >= 0)
        (void)!read(process->bell_fd, rings, sizeof rings);
    for (uint32_t i = 0; i < ARENA_REQUESTS; i++) {
        struct arena_request *request = &process->arena->requests[i];
        if (atomic_load_explicit(&request->state, memory_order_acquire) != REQUEST_POSTED)
            continue;
        taken[n] = (struct arena_request){.kind = request->kind, .module = request->module, .pc = request->pc};
        places[n++] = (uint16_t)i;
        atomic_store_explicit(&request->state, REQUEST_TAKEN, memory_order_relaxed);
    }
    bool is_foreign = n && companion_process_is_foreign(c, process);
    for (unsigned k = 0; k < n; k++) {
        struct arena_request *request = &process->arena->requests[places[k]];
        bool is_done = companion_serve_request(c, process, &taken[k], is_foreign);
        atomic_store_explicit(&request->state, is_done ? REQUEST_EMPTY : REQUEST_POSTED, memory_order_release);
    }
    return n > 0;
}
