/* SPDX-License-Identifier: BSD-3-Clause */
/* From an arena to files in the measurement directory; runs in a worker. Ordinary code. */
#include "companion-state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_whole(int fd, const char *bytes, uint64_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, bytes, n_bytes < (1u << 30) ? n_bytes : 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        n_bytes -= (uint64_t)n;
    }
    return 0;
}

static uint64_t used_bytes(const struct arena_header *arena)
{
    uint32_t n = atomic_load(&((struct arena_header *)(uintptr_t)arena)->n_chunks);
    if (n > arena->chunk_limit)
        n = arena->chunk_limit;
    return arena->chunk_data_offset + (uint64_t)n * ARENA_CHUNK_BYTES;
}

int companion_write_files(const struct companion *c, const struct companion_process *process, bool is_checkpoint)
{
    char path[ARENA_PATH_MAX + 512], temporary[ARENA_PATH_MAX + 520];
    const struct arena_header *arena = process->arena;
    (void)snprintf(path, sizeof path, "%s/%.255s-%u-%u.arena", c->setup->dir,
                   arena->argv0[0] ? arena->argv0 : "unknown", process->pid, process->generation);
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool is_good = fd >= 0 && write_whole(fd, (const char *)arena, used_bytes(arena)) == 0;
    if (fd >= 0)
        is_good &= close(fd) == 0;
    if (is_good && rename(temporary, path) == 0)
        return 0;
    companion_log(c, "%s cannot be written%s: %s.", path, is_checkpoint ? " (checkpoint)" : "", strerror(errno));
    (void)unlink(temporary);
    return 1;
}
