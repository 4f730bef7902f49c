/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that the companion serves: registration, requests, end. Ordinary code. */
#include "companion-state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "companion-jit.h"
#include "companion-serve.h"
#include "companion-detour.h"

#define CHECKPOINT_S_DEFAULT 10

struct companion_process *companion_process_find(const struct companion *c, pid_t peer_pid)
{
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->peer_pid == peer_pid && p->state == PROCESS_LIVE)
            return p;
    return NULL;
}

static uint32_t next_generation(const struct companion *c, pid_t peer_pid)
{
    uint32_t n = 0;
    for (const struct companion_process *p = c->processes; p; p = p->next)
        if (p->peer_pid == peer_pid && p->generation >= n)
            n = p->generation + 1;
    return n;
}

bool companion_is_gone(pid_t pid, uint64_t *start)
{
    struct proc_stat now;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return true;
    if (!proc_stat_read(pid, &now))
        return false;
    if (!*start)
        *start = now.start;
    return now.state == 'Z' || now.state == 'X' || now.start != *start;
}

int64_t companion_checkpoint_ms(const struct companion *c)
{
    return 1000 * (int64_t)(c->setup->checkpoint_s ? c->setup->checkpoint_s : CHECKPOINT_S_DEFAULT);
}

static void process_free(struct companion_process *process)
{
    companion_arena_close(process);
    companion_jit_close(process);
    if (process->pidfd >= 0)
        (void)close(process->pidfd);
    if (process->shared)
        (void)munmap(process->shared, sizeof *process->shared);
    free(process->work_dir);
    free(process);
}

struct companion_process *companion_process_add(struct companion *c, const struct companion_message *hello,
                                                const struct ucred *peer, struct error *err)
{
    pid_t peer_pid = peer->pid;
    struct companion_process *earlier = companion_process_find(c, peer_pid);
    if (earlier)
        companion_process_end(c, earlier, "complete");
    struct companion_process *process = calloc(1, sizeof *process);
    if (!process) {
        (void)error_set(err, ERR_MEMORY, "The companion is out of memory.");
        return NULL;
    }
    if (!c->start_ns)
        c->start_ns = 1000000 * (uint64_t)companion_now_ms();
    process->pid = hello->pid;
    process->peer_pid = peer_pid;
    process->peer_uid = peer->uid;
    process->is_foreign = peer->uid != geteuid();
    process->arena_fd = process->bell_fd = process->map_fd = process->dump_fd = -1;
    process->generation = next_generation(c, peer_pid);
    process->checkpoint_due_ms = companion_now_ms() + companion_checkpoint_ms(c);
    process->mark_due_ms = c->setup->mark_ms ? companion_now_ms() + (int64_t)c->setup->mark_ms : 0;
    process->pidfd = (int)syscall(SYS_pidfd_open, peer_pid, 0);
    if (process->pidfd < 0 && companion_is_gone(peer_pid, &process->start)) {
        (void)error_set(err, ERR_IO, "Process %ld cannot be watched: %s.", (long)peer_pid, strerror(errno));
        process_free(process);
        return NULL;
    }
    companion_exec_note_start(process);
    companion_times_begin(process);
    /* A file could be cut short under our mapping; memory is sealed. */
    if (c->setup->local[0] && c->detour.path[0] && !process->is_foreign)
        (void)companion_detour_process(c, process);
    process->awaited_bytes = hello->kind == COMPANION_FORK ? hello->recipe_bytes : 0;
    if (companion_arena_create(c, process, hello->size_bytes, err) != 0) {
        process_free(process);
        return NULL;
    }
    process->next = c->processes;
    c->processes = process;
    return process;
}

static void note_end(struct arena_header *arena)
{
    struct timespec now;
    if (atomic_load(&arena->end_ns))
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    atomic_store(&arena->end_ns, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

static bool deserves_files(const struct companion *c, const struct companion_process *process)
{
    if (companion_arena_n_taken(process))
        return true;
    return c->setup->writes_memleak && atomic_load(&process->arena->n_blocks_recorded);
}

void companion_process_end(struct companion *c, struct companion_process *process, const char *end_state)
{
    if (process->state != PROCESS_LIVE)
        return;
    note_end(process->arena);
    companion_strays_take(c, process);
    companion_strays_look(c, companion_now_ms(), false);
    companion_jit_look(process);
    process->end_state = end_state;
    process->state = PROCESS_ENDING;
    if (deserves_files(c, process) || process->was_checkpointed) {
        if (companion_write_prepare(process) && companion_job_add(c, JOB_WRITE, process, NULL))
            return;
        companion_index(c, process, "lost: the companion is out of memory");
    } else {
        companion_index(c, process, "no samples");
        companion_detour_leave(process);
    }
    process->state = PROCESS_DONE;
    companion_arena_close(process);
    companion_answer_waiting(c, process, NULL, "");
}

bool companion_process_is_foreign(struct companion_process *process)
{
    char path[64], line[256];
    unsigned long ids[4] = {0, 0, 0, 0};
    if (process->is_foreign || geteuid() != 0)
        return process->is_foreign;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)process->peer_pid);
    FILE *file = input_stream(path);
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Uid: %lu %lu %lu %lu", &ids[0], &ids[1], &ids[2], &ids[3]) == 4)
            break;
    if (file)
        (void)fclose(file);
    process->is_foreign = ids[0] || ids[1] || ids[2] || ids[3];
    return process->is_foreign;
}

void companion_process_requests(struct companion *c, struct companion_process *process)
{
    char rings[512];
    if (process->bell_fd >= 0)
        (void)!read(process->bell_fd, rings, sizeof rings);
    for (uint32_t i = 0; i < ARENA_REQUESTS; i++) {
        struct arena_request *request = &process->arena->requests[i];
        if (atomic_load_explicit(&request->state, memory_order_acquire) != 2)
            continue;
        struct arena_request copy = {.kind = request->kind, .module = request->module, .func = request->func};
        atomic_store_explicit(&request->state, 3, memory_order_relaxed);
        bool is_done = companion_serve_request(c, process, &copy);
        atomic_store_explicit(&request->state, is_done ? 0 : 2, memory_order_release);
    }
}

static bool is_waited_for(const struct companion *c, const struct companion_process *process)
{
    for (const struct companion_connection *n = c->connections; n; n = n->next)
        if (n->waits_process == process)
            return true;
    for (const struct companion_job *j = c->jobs; j; j = j->next)
        if (j->process == process)
            return true;
    return false;
}

/* The process has gone on with another arena: this one only cost a descriptor for each call of exec. */
static bool is_superseded(const struct companion *c, const struct companion_process *process)
{
    for (const struct companion_process *p = c->processes; p; p = p->next)
        if (p->peer_pid == process->peer_pid && p->generation > process->generation)
            return true;
    return false;
}

void companion_process_sweep(struct companion *c)
{
    for (struct companion_process **link = &c->processes; *link;) {
        struct companion_process *process = *link;
        bool is_over = process->state == PROCESS_DONE && (process->is_gone || is_superseded(c, process));
        if (is_over && !is_waited_for(c, process)) {
            *link = process->next;
            process_free(process);
        } else {
            link = &process->next;
        }
    }
}
