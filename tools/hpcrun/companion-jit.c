/* SPDX-License-Identifier: BSD-3-Clause */
/* See companion-jit.h. A file counts when the process's user (or root) owns it and it was written after the process
 * began: process ids come again, and old maps stay. */
#include "companion-jit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

#define FILE_BYTES_MAX ((int64_t)512 << 20)
#define CLOCK_SLACK_NS 20000000 /* file times are those of the last tick */

/* As the process sees it, where that can be seen. */
static int open_seen(const struct companion_process *process, const char *path)
{
    char seen[ARENA_PATH_MAX + 64];
    (void)snprintf(seen, sizeof seen, "/proc/%ld/root%s", (long)process->peer_pid, path);
    int fd = input_open(AT_FDCWD, seen, O_NOFOLLOW, NULL);
    return fd >= 0 ? fd : input_open(AT_FDCWD, path, O_NOFOLLOW, NULL);
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A file that is there no more stays open. */
static void look_for(const struct companion_process *process, const char *path, int *fd)
{
    int found = open_seen(process, path);
    if (found < 0)
        return;
    if (*fd >= 0 && is_same_file(*fd, found)) {
        (void)close(found);
        return;
    }
    if (*fd >= 0)
        (void)close(*fd);
    *fd = found;
}

void companion_jit_look(struct companion_process *process)
{
    struct arena_header *arena = process->arena;
    char path[ARENA_PATH_MAX];
    (void)snprintf(path, sizeof path, "/tmp/perf-%u.map", process->pid);
    look_for(process, path, &process->map_fd);
    if (!atomic_load_explicit(&arena->has_jitdump, memory_order_acquire))
        return;
    (void)snprintf(path, sizeof path, "%.*s", ARENA_PATH_MAX - 1, arena->jitdump);
    if (path[0] == '/')
        look_for(process, path, &process->dump_fd);
}

/* Whether the file describes code of this process; why not goes into the log. */
static bool is_usable(const struct companion *c, const struct companion_process *process, const char *what,
                      const struct stat *info)
{
    uint64_t written_ns = (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;
    if (!S_ISREG(info->st_mode) || info->st_size <= 0)
        return false;
    if (info->st_uid != process->peer_uid && (process->is_foreign || info->st_uid != 0))
        companion_log(c, "The %s of process %u belongs to user %u: not used.", what, process->pid, info->st_uid);
    else if (written_ns + CLOCK_SLACK_NS < process->arena->start_ns)
        companion_log(c, "The %s of process %u is older than the process: not used.", what, process->pid);
    else if (info->st_size > FILE_BYTES_MAX)
        companion_log(c, "The %s of process %u has %lld bytes, at most %lld are read: not used.", what, process->pid,
                      (long long)info->st_size, (long long)FILE_BYTES_MAX);
    else
        return true;
    return false;
}

/* The file's content, malloc'ed; NULL when it is not usable. */
static char *read_whole(const struct companion *c, const struct companion_process *process, const char *what, int fd,
                        size_t *len_bytes)
{
    struct stat info;
    *len_bytes = 0;
    if (fd < 0 || fstat(fd, &info) != 0 || !is_usable(c, process, what, &info))
        return NULL;
    char *bytes = malloc((size_t)info.st_size);
    for (ssize_t n = 1; bytes && n > 0 && *len_bytes<(size_t)info.st_size; *len_bytes += n> 0 ? (size_t)n : 0)
        n = pread(fd, bytes + *len_bytes, (size_t)info.st_size - *len_bytes, (off_t)*len_bytes);
    return bytes;
}

struct jit_names *companion_jit_read(const struct companion *c, const struct companion_process *process)
{
    struct error err;
    size_t map_bytes, dump_bytes;
    int64_t n = 0, n_dumped = 0;
    char path[ARENA_PATH_MAX];
    (void)snprintf(path, sizeof path, "%.*s", ARENA_PATH_MAX - 1, process->arena->jitdump);
    char *map = read_whole(c, process, "map of generated code", process->map_fd, &map_bytes);
    char *dump = read_whole(c, process, "jitdump", process->dump_fd, &dump_bytes);
    struct jit_names *names = map || dump ? jit_names_new() : NULL;
    if (names && map)
        n = jit_names_add_map(names, map, map_bytes, &err);
    if (names && dump)
        n_dumped = jit_names_add_dump(names, dump, dump_bytes, path, &err);
    if (names && (n < 0 || n_dumped < 0 || jit_names_order(names, &err) != 0))
        companion_log(c, "Process %u: %s.", process->pid, err.text);
    free(map);
    free(dump);
    return names;
}

void companion_jit_close(struct companion_process *process)
{
    if (process->map_fd >= 0)
        (void)close(process->map_fd);
    if (process->dump_fd >= 0)
        (void)close(process->dump_fd);
    process->map_fd = process->dump_fd = -1;
}
