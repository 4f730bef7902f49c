/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are looked at again and again: which ones there are; and asking their companions. Ordinary code. */
#include "running/running.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/clock.h"
#include "base/options.h"
#include "measurement/pending.h"

int running_watch_begin(struct running_watch *watch)
{
    struct error err;
    if (running_find(&watch->list, &err) != 0)
        return tool_error(watch->list.tool, "%s", err.text);
    int status = running_choose(&watch->list, watch->words, false);
    return status || watch->list.n ? status
                                   : tool_error(watch->list.tool, "no process of yours is being measured here");
}

/* What was seen of those that still run stays with them. */
static void take_over(struct running_list *from, struct running_list *to)
{
    for (size_t i = 0; i < to->n; i++) {
        for (size_t k = 0; k < from->n; k++) {
            struct running_process *old = &from->processes[k], *new = &to->processes[i];
            if (!old->arena || !running_is_same(old, new))
                continue;
            memcpy(new->past, old->past, sizeof new->past);
            new->n_past = old->n_past;
            new->names = old->names;
            memset(old->past, 0, sizeof old->past);
            old->n_past = 0;
            old->names = NULL;
        }
    }
}

/* --- those that have ended --- */

#define ENDED_S 10 /* for so long their last numbers stay */
#define ENDED_MAX 8

static double now_s(void)
{
    return (double)clock_now_ns(CLOCK_MONOTONIC) / (double)CLOCK_S_NS;
}

/* Moves a process, with what was seen of it, to the end of a list; its records are there as long as they are mapped. */
static void move(struct running_process *process, struct running_list *to)
{
    if (!vec_reserve(&to->processes, &to->capacity, to->n + 1, sizeof *to->processes))
        return;
    to->processes[to->n++] = *process;
    *process = (struct running_process){.arena = NULL};
}

/* Whether a process that no companion names has not ended: its companion has died, or says nothing. */
static bool is_alone(struct running_process *process, const struct running_list *found)
{
    if (process->ended_at_s > 0 || process->is_foreign || strtab_find(&found->answered, process->companion) >= 0 ||
        !running_is_alive(process))
        return false;
    process->is_kept_by = strtab_find(&found->silent, process->companion) >= 0 ? COMPANION_SILENT : COMPANION_DEAD;
    return true;
}

/* Those of the list before that are not in the new one have ended, or have lost their companion. */
static void keep_others(struct running_watch *watch, struct running_list *to)
{
    size_t n_found = to->n, n_ended = 0;
    for (size_t i = 0; i < watch->list.n; i++) {
        struct running_process *old = &watch->list.processes[i];
        bool is_found = false;
        for (size_t k = 0; k < n_found && !is_found; k++)
            is_found = running_is_same(old, &to->processes[k]);
        if (is_found)
            continue;
        if (is_alone(old, to)) {
            move(old, to);
            continue;
        }
        watch->n_ended += old->ended_at_s == 0;
        if (old->ended_at_s == 0)
            old->ended_at_s = now_s();
        if (watch->keeps_ended && n_ended < ENDED_MAX && now_s() - old->ended_at_s < ENDED_S) {
            move(old, to);
            n_ended++;
        }
    }
}

/* --- looking again --- */

/* A measurement whose first process has ended may have others; a process may have ended, and then its children stay:
 * those that were seen before are kept, whoever is their parent now. */
void running_watch_find(struct running_watch *watch)
{
    struct running_list list = {.tool = watch->list.tool, .were_silent = &watch->list.silent};
    struct error err;
    if (running_find(&list, &err) != 0)
        return;
    list.were_silent = NULL;
    (void)running_keep(&list, watch->words, &watch->list);
    take_over(&watch->list, &list);
    keep_others(watch, &list);
    running_fini(&watch->list);
    watch->list = list;
}

size_t running_watch_step(struct running_watch *watch, bool with_sums)
{
    struct error err;
    size_t n = 0;
    if (!watch->list.n || watch->list.processes[0].n_past)
        running_watch_find(watch);
    for (size_t i = 0; i < watch->list.n; i++)
        (void)running_look(&watch->list.processes[i], with_sums, &err);
    running_keep_readable(&watch->list);
    for (size_t i = 0; i < watch->list.n; i++)
        n += watch->list.processes[i].ended_at_s == 0;
    return n;
}

/* --- asking for something --- */

#define CONTROL_MS 120000 /* saving a large process may take long on a busy machine */

int running_control(const char *companion, pid_t pid, const char *command, char answer[ARENA_PATH_MAX],
                    struct error *err)
{
    struct companion_message message = {.magic = COMPANION_MAGIC,
                                        .version = COMPANION_VERSION,
                                        .kind = COMPANION_CONTROL,
                                        .pid = (uint32_t)getpid(),
                                        .exit_code = pid};
    struct pollfd wait = {.fd = running_dial(companion), .events = POLLIN};
    if (wait.fd < 0)
        return error_set(err, ERR_IO, "the companion process cannot be reached: %s", strerror(errno));
    (void)snprintf(message.text, sizeof message.text, "%s", command);
    bool ok = send(wait.fd, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message &&
              poll(&wait, 1, CONTROL_MS) > 0 &&
              recv(wait.fd, &message, sizeof message, MSG_DONTWAIT) == (ssize_t)sizeof message &&
              message.magic == COMPANION_MAGIC &&
              (message.kind == COMPANION_WRITTEN || message.kind == COMPANION_REFUSED);
    (void)close(wait.fd);
    if (!ok)
        return error_set(err, ERR_IO, "the companion process gave no answer; only the owner of a process may ask");
    (void)snprintf(answer, ARENA_PATH_MAX, "%.*s", ARENA_PATH_MAX - 1, message.text);
    return message.kind == COMPANION_WRITTEN
               ? 0
               : error_set(err, message.exit_code == COMPANION_MISUSED ? ERR_USAGE : ERR_UNSUPPORTED, "%.900s", answer);
}

int running_control_process(const struct running_process *process, const char *command, char answer[ARENA_PATH_MAX],
                            struct error *err)
{
    if (process->is_foreign)
        return error_set(err, ERR_UNSUPPORTED, "process %ld belongs to another user: only that user may control it",
                         (long)process->pid);
    return running_control(process->companion, process->pid, command, answer, err);
}

int running_save(const char *directory, struct error *err)
{
    char real[PATH_MAX], answer[ARENA_PATH_MAX];
    struct running_list list = {.tool = ""};
    struct strtab asked = {0};
    int n_saved = 0;
    if (pending_wait(directory, 0) == PENDING_NONE)
        return 0;
    if (!realpath(directory, real))
        return error_set(err, ERR_IO, "%s: %s", directory, strerror(errno));
    int code = running_find(&list, err);
    for (size_t i = 0; code == 0 && i < list.n; i++) {
        const struct running_process *process = &list.processes[i];
        if (strcmp(process->dir, real) != 0 || strtab_find(&asked, process->companion) >= 0)
            continue;
        (void)strtab_intern(&asked, process->companion);
        code = running_control(process->companion, 0, "snapshot", answer, err);
        n_saved += code == 0;
    }
    strtab_fini(&asked);
    running_fini(&list);
    return code != 0 ? code : n_saved;
}
