/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion's messages: it has no terminal, so they go into files of the measurement directory. Each line is one
 * O_APPEND write, so that workers and several companions may write to the same file. A directory that is gone or full
 * loses the line and nothing else, one that is slow keeps a worker waiting. Ordinary code. */
#include "companion/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fmt/file.h"

#define NOTES_BYTES_MAX ((size_t)1 << 20)
#define FILE_BYTES_MAX ((off_t)64 << 20) /* the index of some 500000 processes */

int64_t companion_now_ms(void)
{
    return (int64_t)(clock_now_ns(CLOCK_MONOTONIC) / 1000000);
}

/* Not even a file of lines grows without limit; the last line says that it is full. */
static bool append_line(const char *path, const char *line, size_t len_bytes)
{
    static const char last[] = "This file is full: further lines are left out.\n";
    int fd = file_open_lines(path);
    if (fd < 0)
        return false;
    bool is_done = true;
    off_t size = lseek(fd, 0, SEEK_END);
    if (size + (off_t)len_bytes <= FILE_BYTES_MAX)
        is_done = write(fd, line, len_bytes) == (ssize_t)len_bytes;
    else if (size <= FILE_BYTES_MAX)
        (void)!write(fd, last, sizeof last - 1);
    (void)close(fd);
    return is_done;
}

/* A directory that does not take a line leaves it to the detour directory, where there is one. */
static bool append_note(const struct companion *c, const char *name, const char *text, size_t len_bytes)
{
    char path[DETOUR_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", companion_dir(c), name);
    if (append_line(path, text, len_bytes))
        return true;
    (void)snprintf(path, sizeof path, "%s/%s", c->detour.path, name);
    return c->detour.path[0] && append_line(path, text, len_bytes);
}

static bool write_log(const struct companion *c, const char *text, size_t len_bytes)
{
    char name[64];
    (void)snprintf(name, sizeof name, "companion-%08x-%ld.txt", c->host_id, (long)getsid(0));
    return append_note(c, name, text, len_bytes);
}

static bool write_index(const struct companion *c, const char *text, size_t len_bytes)
{
    char name[64];
    (void)snprintf(name, sizeof name, "index-%08x", c->host_id);
    return append_note(c, name, text, len_bytes);
}

static void queue(struct companion_notes *notes, struct buf *lines, const char *line, size_t len_bytes)
{
    if (lines->len_bytes + len_bytes > NOTES_BYTES_MAX)
        notes->n_lost++;
    else
        buf_append(lines, line, len_bytes);
}

bool companion_has_notes(const struct companion *c)
{
    return c->notes && (c->notes->log.len_bytes || c->notes->index.len_bytes);
}

int companion_notes_write(const struct companion *c)
{
    const struct buf *log = &c->notes->log, *index = &c->notes->index;
    bool is_done = !log->len_bytes || write_log(c, log->data, log->len_bytes);
    return (!index->len_bytes || write_index(c, index->data, index->len_bytes)) && is_done ? 0 : 1;
}

void companion_notes_clear(struct companion *c)
{
    uint64_t n_lost = c->notes->n_lost;
    buf_fini(&c->notes->log);
    buf_fini(&c->notes->index);
    c->notes->n_lost = 0;
    if (n_lost)
        companion_log(c, "%llu lines were left out, because the directory did not take them in time.",
                      (unsigned long long)n_lost);
}

void companion_log(const struct companion *c, const char *format, ...)
{
    char line[DETOUR_PATH_MAX + 2048];
    struct tm date;
    time_t now = time(NULL);
    va_list arguments;
    size_t len = strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S ", gmtime_r(&now, &date));
    va_start(arguments, format);
    int n = vsnprintf(line + len, sizeof line - len - 1, format, arguments);
    va_end(arguments);
    if (n < 0)
        return;
    len += (size_t)n < sizeof line - len - 1 ? (size_t)n : sizeof line - len - 2;
    line[len++] = '\n';
    if (c->is_worker || !c->notes)
        (void)write_log(c, line, len);
    else
        queue(c->notes, &c->notes->log, line, len);
}

void companion_index(const struct companion *c, const struct companion_process *process, const char *what)
{
    char line[2 * ARENA_PATH_MAX];
    const struct arena_header *arena = process->arena;
    int n = snprintf(line, sizeof line, "%u %s exit=%u threads=%u blocks=%llu %s: %s%s%s\n", process->pid,
                     arena->exe[0] ? arena->exe : "?", atomic_load(&arena->exit_code), atomic_load(&arena->n_threads),
                     (unsigned long long)atomic_load(&arena->n_blocks_recorded),
                     process->end_state ? process->end_state : "running", what, process->end_note[0] ? ", " : "",
                     process->end_note);
    size_t len = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    if (c->is_worker || !c->notes)
        (void)write_index(c, line, len);
    else
        queue(c->notes, &c->notes->index, line, len);
}

void companion_index_stray(const struct companion *c, const struct companion_stray *stray)
{
    char why[128] = "the companion had no descriptor left when it came";
    unsigned parent = stray->parent_pid;
    if (stray->state == CHILD_SANDBOXED)
        (void)snprintf(why, sizeof why, "it is in a sandbox that process %u entered", parent);
    else if (stray->state == CHILD_CLONED)
        (void)snprintf(why, sizeof why, "process %u made it by _Fork or clone, which no measurement follows", parent);
    else if (!stray->peer_pid)
        (void)snprintf(why, sizeof why, "process %u started it, and it was never heard of", parent);
    companion_index_refused(c, (pid_t)stray->pid, stray->name, why);
}

/* One line, whatever the program's path holds. Returns its length. */
static size_t unmeasured_line(char *line, size_t n_line, pid_t pid, const char *exe, const char *why)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%ld", (long)pid);
    int len = snprintf(line, n_line, "%s %s not measured: %s\n", pid ? id : "?", exe[0] ? exe : "?", why);
    for (char *at = line; *at; at++)
        if (((unsigned char)*at < ' ' && at[1]) || *at == 127)
            *at = '?';
    return (size_t)len < n_line ? (size_t)len : n_line - 1;
}

void companion_index_refused(const struct companion *c, pid_t pid, const char *exe, const char *why)
{
    char line[2 * ARENA_PATH_MAX];
    size_t len = unmeasured_line(line, sizeof line, pid, exe, why);
    if (c->notes && !c->notes->unmeasured[0])
        (void)snprintf(c->notes->unmeasured, sizeof c->notes->unmeasured, "%.*s", (int)len - 1, line);
    if (c->is_worker || !c->notes)
        (void)write_index(c, line, len);
    else
        queue(c->notes, &c->notes->index, line, len);
}

void companion_index_unfit(struct companion *c, pid_t pid, const char *exe, const char *why)
{
    if (c->notes && !c->n_unfit++)
        c->notes->unmeasured[0] = '\0'; /* this one is the first to be told */
    companion_index_refused(c, pid, exe, why);
}

void companion_index_unmeasured(const char *dir, uint32_t host_id, pid_t pid, const char *exe, const char *why)
{
    char path[ARENA_PATH_MAX + 64], line[2 * ARENA_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/index-%08x", dir, host_id);
    append_line(path, line, unmeasured_line(line, sizeof line, pid, exe, why));
}
