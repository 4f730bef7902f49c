/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun --status: which processes are meant, two looks a second apart, and what to say when there are none. */
#include "status.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"

enum { STATUS_FAILED = 1, STATUS_USAGE = 2 };
enum { DEPTH_MAX = 256 };

static int fail(int status, const char *why)
{
    (void)fprintf(stderr, "hpcrun: %s\n", why);
    return status;
}

static pid_t parent_of(pid_t pid)
{
    struct proc_stat stat;
    (void)proc_stat_read(pid, &stat);
    return stat.parent;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
    for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
        if (pid == ancestor)
            return true;
        pid = parent_of(pid);
    }
    return false;
}

/* Keeps those that a test accepts. */
static void keep(struct status_list *list, bool (*accepts)(const struct status_process *, const void *),
                 const void *argument)
{
    struct status_list rest = *list;
    size_t n = 0;
    rest.processes = calloc(list->n + 1, sizeof *rest.processes);
    rest.n = 0;
    rest.skipped = (struct buf){0};
    for (size_t i = 0; i < list->n; i++) {
        bool is_kept = accepts(&list->processes[i], argument) || !rest.processes;
        if (is_kept)
            list->processes[n++] = list->processes[i];
        else
            rest.processes[rest.n++] = list->processes[i];
    }
    list->n = n;
    status_fini(&rest);
}

static bool has_pid(const struct status_process *process, const void *pid)
{
    return process->pid == *(const pid_t *)pid;
}

static bool is_below(const struct status_process *process, const void *pid)
{
    return descends_from(process->pid, *(const pid_t *)pid);
}

static bool is_in_directory(const struct status_process *process, const void *directory)
{
    return strcmp(process->dir, directory) == 0;
}

/* Why there is nothing to tell about a process. */
static int explain_pid(const struct status_list *list, pid_t pid)
{
    char path[64], text[256];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    if (stat(path, &status) != 0)
        (void)snprintf(text, sizeof text, "There is no process %ld.", (long)pid);
    else if (status.st_uid != geteuid() && geteuid() != 0)
        (void)snprintf(text, sizeof text,
                       "Process %ld belongs to another user (%lu): only that user and root may look "
                       "at its measurement.",
                       (long)pid, (unsigned long)status.st_uid);
    else if (list->n_silent)
        (void)snprintf(text, sizeof text,
                       "Process %ld is not known to be measured; %u companion process%s did not "
                       "answer.",
                       (long)pid, list->n_silent, list->n_silent == 1 ? "" : "es");
    else
        (void)snprintf(text, sizeof text, "Process %ld is not being measured, nor is any that it started.", (long)pid);
    return fail(STATUS_FAILED, text);
}

/* A process, or else those below it: hpcrun itself, a shell, srun, make. */
static int choose_pid(struct status_list *list, const char *operand)
{
    char *end;
    errno = 0;
    long value = strtol(operand, &end, 10);
    pid_t pid = (pid_t)value;
    if (errno || *end || value <= 0 || value != (long)pid)
        return fail(STATUS_USAGE, "--status takes a process id, a measurement directory, or nothing.");
    bool is_there = false;
    for (size_t i = 0; i < list->n; i++)
        is_there |= list->processes[i].pid == pid;
    keep(list, is_there ? has_pid : is_below, &pid);
    return list->n ? 0 : explain_pid(list, pid);
}

static int choose_directory(struct status_list *list, const char *operand, const char *real)
{
    char text[PATH_MAX + 64];
    keep(list, is_in_directory, real);
    (void)snprintf(text, sizeof text, "No running process is being measured into %s.", operand);
    return list->n ? 0 : fail(STATUS_FAILED, text);
}

static int choose(struct status_list *list, const char *operand)
{
    char real[PATH_MAX];
    struct stat status;
    if (!operand)
        return 0;
    if (strspn(operand, "0123456789") == strlen(operand))
        return choose_pid(list, operand);
    if (!realpath(operand, real) || stat(real, &status) != 0 || !S_ISDIR(status.st_mode)) {
        (void)fprintf(stderr, "hpcrun: %s is neither a process id nor a directory.\n", operand);
        return STATUS_USAGE;
    }
    return choose_directory(list, operand, real);
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_readable(const struct status_process *process, const void *unused)
{
    (void)unused;
    return process->is_readable;
}

/* Two looks, so that there is a rate. What cannot be read, as that of another version, leaves the list. */
static int look_twice(struct status_list *list, struct error *err)
{
    const struct timespec second = {.tv_sec = 1};
    bool was_empty = !list->n;
    for (size_t i = 0; i < list->n; i++) {
        struct status_process *process = &list->processes[i];
        process->seconds = -now_s();
        process->is_readable = live_look(process->arena, process->size_bytes, false, &process->before, err) == 0;
    }
    keep(list, is_readable, NULL);
    if (list->n)
        (void)nanosleep(&second, NULL);
    for (size_t i = 0; i < list->n; i++) {
        struct status_process *process = &list->processes[i];
        process->is_readable = live_look(process->arena, process->size_bytes, list->n == 1, &process->live, err) == 0;
        process->seconds += now_s();
    }
    keep(list, is_readable, NULL);
    return list->n || was_empty ? 0 : ERR_FORMAT;
}

static int print(const struct status_list *list, bool is_json, bool is_all, FILE *out)
{
    if (is_json)
        status_print_json(list, out);
    else if (list->n == 1 && !is_all)
        status_print_one(&list->processes[0], out);
    else if (list->n)
        status_print_list(list, out);
    else
        (void)fprintf(out, "No process of yours is being measured here.\n");
    if (list->n_silent)
        (void)fprintf(stderr, "hpcrun: %u companion process%s did not answer.\n", list->n_silent,
                      list->n_silent == 1 ? "" : "es");
    if (list->skipped.len_bytes)
        (void)fprintf(stderr, "hpcrun: %s", list->skipped.data);
    return fflush(out) == 0 ? 0 : fail(STATUS_FAILED, "The status cannot be written.");
}

int status_run(const char *operand, bool is_json, FILE *out)
{
    struct status_list list;
    struct error err;
    if (status_find(&list, &err) != 0)
        return fail(STATUS_FAILED, err.text);
    int status = choose(&list, operand);
    if (status == 0 && look_twice(&list, &err) != 0)
        status = fail(STATUS_FAILED, err.text);
    if (status == 0)
        status = print(&list, is_json, operand == NULL, out);
    status_fini(&list);
    return status;
}
