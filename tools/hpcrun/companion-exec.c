/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that become other programs. One that is measured registers anew; one that is not (static, with more rights,
 * without our environment) is told by the runtime's mark in the arena and by its executable. Ordinary code. */
#include "companion-state.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLACED_MS 5000 /* a program that is measured has registered by then */

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
    (void)snprintf(process->end_note, sizeof process->end_note, "replaced by %s, which was not measured",
                   process->replaced_by[0] ? process->replaced_by : name[0] ? name : "another program");
    companion_process_end(c, process, "complete");
}

void companion_process_look(struct companion *c, struct companion_process *process, int64_t now_ms)
{
    if (!is_another(process))
        return;
    if (!process->replaced_ms) {
        process->replaced_ms = now_ms;
        read_name(process);
    } else if (now_ms - process->replaced_ms >= REPLACED_MS) {
        end_replaced(c, process);
    }
}

static void end_gone(struct companion *c, struct companion_process *process)
{
    /* A program in a sandbox cannot say farewell, but its last word stands in the arena. */
    if (atomic_load(&process->arena->state) == ARENA_ENDED)
        companion_process_end(c, process, "complete");
    else if (process->replaced_ms || is_marked(process))
        end_replaced(c, process);
    else
        companion_process_end(c, process, "killed");
}

void companion_process_gone(struct companion *c, struct companion_process *process)
{
    if (process->state == PROCESS_LIVE)
        end_gone(c, process);
    (void)close(process->pidfd);
    process->pidfd = -1;
}
