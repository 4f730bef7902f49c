/* SPDX-License-Identifier: BSD-3-Clause */
/* What the companion has to say: it owns no terminal, so lines go into files of the measurement directory. Each line
 * is one O_APPEND write, so that workers and several companions may write to the same file. A directory that is gone
 * or full loses the line and nothing else. Ordinary code. */
#include "companion-state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((off_t)64 << 20) /* the index of some 500000 processes */

int64_t companion_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Not even a file of lines grows without limit; the last line says that it is full. */
static void append_line(const char *path, const char *line, size_t len_bytes)
{
    static const char last[] = "This file is full: what else there was to say is left out.\n";
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    off_t size = lseek(fd, 0, SEEK_END);
    if (size + (off_t)len_bytes <= FILE_BYTES_MAX)
        (void)!write(fd, line, len_bytes);
    else if (size <= FILE_BYTES_MAX)
        (void)!write(fd, last, sizeof last - 1);
    (void)close(fd);
}

void companion_log(const struct companion *c, const char *format, ...)
{
    char path[ARENA_PATH_MAX + 64], line[2048];
    struct tm date;
    time_t now = time(NULL);
    va_list arguments;
    (void)snprintf(path, sizeof path, "%s/companion-%08x-%ld.txt", c->setup->dir, c->host_id,
                   (long)getsid(0));
    size_t len = strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S ", gmtime_r(&now, &date));
    va_start(arguments, format);
    int n = vsnprintf(line + len, sizeof line - len - 1, format, arguments);
    va_end(arguments);
    if (n < 0)
        return;
    len += (size_t)n < sizeof line - len - 1 ? (size_t)n : sizeof line - len - 2;
    line[len++] = '\n';
    append_line(path, line, len);
}

void companion_index(const struct companion *c, const struct companion_process *process, const char *what)
{
    char path[ARENA_PATH_MAX + 64], line[2 * ARENA_PATH_MAX];
    const struct arena_header *arena = process->arena;
    (void)snprintf(path, sizeof path, "%s/index-%08x", c->setup->dir, c->host_id);
    int len = snprintf(line, sizeof line, "%u %s exit=%u threads=%u blocks=%llu %s: %s%s%s\n", process->pid,
                       arena->exe[0] ? arena->exe : "?", atomic_load(&arena->exit_code),
                       atomic_load(&arena->n_threads), (unsigned long long)atomic_load(&arena->n_blocks_recorded),
                       process->end_state, what, process->end_note[0] ? ", " : "", process->end_note);
    append_line(path, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

void companion_index_unmeasured(const char *dir, uint32_t host_id, pid_t pid, const char *exe, const char *why)
{
    char path[ARENA_PATH_MAX + 64], line[2 * ARENA_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/index-%08x", dir, host_id);
    int len = snprintf(line, sizeof line, "%ld %s not measured: %s\n", (long)pid, exe[0] ? exe : "?", why);
    append_line(path, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}
