/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that become other programs. One that is measured registers anew; one that is not (static, with more rights,
 * without our environment) is told by the runtime's mark in the arena and by its executable. Ordinary code. */
#include "companion-state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLACED_MS 5000                           /* a program that is measured has registered by then */
#define HEARD_MS 30000                             /* a parent has noted its child by then */
#define TURNED_AWAY_MS (2 * COMPANION_END_WAIT_MS) /* for one that has to come again, and waits for our answer */

static void path_of_exe(const struct companion_process *process, char path[64])
{
    (void)snprintf(path, 64, "/proc/%ld/exe", (long)process->peer_pid);
}

void companion_exec_note_start(struct companion_process *process)
{
    char path[64];
    struct stat status;
    path_of_exe(process, path);
    if (stat(path, &status) != 0)
        return;
    process->exe_device = status.st_dev;
    process->exe_inode = status.st_ino;
}

static bool is_another(const struct companion_process *process)
{
    char path[64];
    struct stat status;
    path_of_exe(process, path);
    return process->exe_inode && stat(path, &status) == 0 &&
           (status.st_ino != process->exe_inode || status.st_dev != process->exe_device);
}

static void read_name(struct companion_process *process)
{
    char path[64];
    path_of_exe(process, path);
    ssize_t n = readlink(path, process->replaced_by, sizeof process->replaced_by - 1);
    process->replaced_by[n > 0 ? n : 0] = '\0';
}

/* True when the last word in the arena is a call of exec, which did not come back. */
static bool is_marked(const struct companion_process *process)
{
    return process->arena && atomic_load(&process->arena->is_replaced);
}

static void end_replaced(struct companion *c, struct companion_process *process)
{
    char name[sizeof process->arena->replaced_by];
    memcpy(name, process->arena->replaced_by, sizeof name);
    name[sizeof name - 1] = '\0';
    const char *by = process->replaced_by[0] ? process->replaced_by : name[0] ? name : "another program";
    bool is_sandboxed = process->arena && atomic_load(&process->arena->is_replaced) == EXEC_UNMEASURED;
    (void)snprintf(process->end_note, sizeof process->end_note, "replaced by %s, which was not measured%s", by,
                   is_sandboxed ? ": it is in a sandbox" : "");
    companion_times_settle(process);
    companion_process_end(c, process, "complete");
    if (process->state != PROCESS_DONE) /* else the index says it already */
        companion_index_refused(c, process->peer_pid, by,
                                is_sandboxed ? "it is in a sandbox; the process became it by exec, and was measured up "
                                               "to there"
                                             : "the process became it by exec, and was measured up to there");
}

void companion_process_look(struct companion *c, struct companion_process *process, int64_t now_ms)
{
    if (!is_another(process)) {
        companion_times_look(process);
        return;
    }
    if (!process->replaced_ms) {
        process->replaced_ms = now_ms;
        read_name(process);
    } else if (now_ms - process->replaced_ms >= REPLACED_MS) {
        end_replaced(c, process);
    }
}

/* What the child becomes by exec may say HELLO. */
static bool may_be_heard(enum arena_child_state state)
{
    return state == CHILD_STARTED || state == CHILD_CLONED;
}

static void stray_add(struct companion *c, const struct companion_process *process, const struct arena_child *child,
                      enum arena_child_state state)
{
    struct companion_stray *stray = calloc(1, sizeof *stray);
    if (!stray)
        return;
    stray->pid = child->pid;
    stray->parent_pid = process->pid;
    stray->due_ms = companion_now_ms() + (may_be_heard(state) ? REPLACED_MS : 0);
    stray->state = state;
    (void)snprintf(stray->name, sizeof stray->name, "%.*s", (int)sizeof child->name - 1,
                   child->name[0] ? child->name : process->arena->exe);
    stray->next = c->strays;
    c->strays = stray;
}

/* Whether the child of a note has been heard of already. */
static bool take_heard(struct companion *c, uint32_t pid)
{
    int64_t now_ms = companion_now_ms();
    for (unsigned i = 0; i < HEARD_MAX; i++) {
        struct companion_heard *heard = &c->heard[i];
        if (heard->pid != pid || now_ms - heard->at_ms > HEARD_MS)
            continue;
        heard->pid = 0;
        return true;
    }
    return false;
}

static void add_heard(struct companion *c, uint32_t pid)
{
    c->heard[c->n_heard++ % HEARD_MAX] = (struct companion_heard){pid, companion_now_ms()};
}

void companion_strays_take(struct companion *c, struct companion_process *process)
{
    for (unsigned i = 0; process->arena && i < ARENA_CHILDREN; i++) {
        struct arena_child *child = &process->arena->children[i];
        uint32_t state = atomic_load_explicit(&child->state, memory_order_acquire);
        if (state == CHILD_NONE || state == CHILD_NOTING)
            continue;
        if (!may_be_heard((enum arena_child_state)state) || !take_heard(c, child->pid))
            stray_add(c, process, child, (enum arena_child_state)state);
        atomic_store_explicit(&child->state, CHILD_NONE, memory_order_release);
    }
}

void companion_strays_turned_away(struct companion *c, pid_t peer_pid)
{
    char link[64];
    struct companion_stray *stray = companion_process_find(c, peer_pid) ? NULL : calloc(1, sizeof *stray);
    if (!stray)
        return;
    stray->pid = (uint32_t)peer_pid;
    stray->peer_pid = peer_pid;
    stray->due_ms = companion_now_ms() + TURNED_AWAY_MS;
    (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)peer_pid);
    ssize_t n = readlink(link, stray->name, sizeof stray->name - 1);
    stray->name[n > 0 ? n : 0] = '\0';
    stray->next = c->strays;
    c->strays = stray;
}

void companion_strays_heard(struct companion *c, uint32_t pid, pid_t peer_pid)
{
    bool was_noted = false;
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE)
            companion_strays_take(c, p);
    for (struct companion_stray **link = &c->strays; *link;) {
        struct companion_stray *stray = *link;
        bool is_noted = !stray->peer_pid && (stray->pid == pid || stray->pid == (uint32_t)peer_pid);
        was_noted |= is_noted;
        if (stray->peer_pid ? stray->peer_pid == peer_pid : is_noted) {
            *link = stray->next;
            free(stray);
        } else {
            link = &stray->next;
        }
    }
    if (!was_noted)
        add_heard(c, pid);
    if (!was_noted && pid != (uint32_t)peer_pid)
        add_heard(c, (uint32_t)peer_pid);
}

/* The parent's log counts it, unless that is written already. */
static void stray_give_up(struct companion *c, const struct companion_stray *stray)
{
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE && stray->parent_pid && p->pid == stray->parent_pid)
            (void)atomic_fetch_add(&p->arena->n_children_lost, 1);
    companion_index_stray(c, stray);
}

void companion_strays_look(struct companion *c, int64_t now_ms, bool is_over)
{
    for (struct companion_stray **link = &c->strays; *link;) {
        struct companion_stray *stray = *link;
        bool is_dead = is_over && kill((pid_t)stray->pid, 0) != 0 && errno == ESRCH;
        if (now_ms < stray->due_ms && !is_dead) {
            link = &stray->next;
            continue;
        }
        *link = stray->next;
        stray_give_up(c, stray);
        free(stray);
    }
}

/* It could not tell its times. */
static void end_killed(struct companion *c, struct companion_process *process)
{
    companion_times_look(process);
    companion_times_settle(process);
    companion_process_end(c, process, "killed");
}

static void end_gone(struct companion *c, struct companion_process *process)
{
    /* A program in a sandbox cannot say farewell, but its last word stands in the arena. */
    if (atomic_load(&process->arena->state) == ARENA_ENDED)
        companion_process_end(c, process, "complete");
    else if (process->replaced_ms || is_marked(process))
        end_replaced(c, process);
    else
        end_killed(c, process);
}

void companion_process_gone(struct companion *c, struct companion_process *process)
{
    if (process->state == PROCESS_LIVE)
        end_gone(c, process);
    if (process->pidfd >= 0)
        (void)close(process->pidfd);
    process->pidfd = -1;
    process->is_gone = true;
}
