/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a process that runs on, made by somebody who looks at it: its companion and the process do nothing for them.
 * Ordinary code, in the process of who looks. */
#include "companion/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The topology of the host, which the companion has written, by a link; without it reports know no nodes. */
static bool link_topology(const char *from, const char *to)
{
    char name[64], old[ARENA_PATH_MAX + 80], new[ARENA_PATH_MAX + 80];
    topology_file_name(name, sizeof name);
    (void)snprintf(old, sizeof old, "%s/%s", from, name);
    (void)snprintf(new, sizeof new, "%s/%s", to, name);
    return access(old, R_OK) == 0 && (pending_share(old, new) || access(new, F_OK) == 0);
}

int companion_copy(const void *arena, size_t size_bytes, const char *from, const char *to, struct error *err)
{
    const struct arena_header *header = arena;
    if (size_bytes < sizeof *header || memcmp(header->magic, ARENA_MAGIC, sizeof header->magic) != 0)
        return error_set(err, ERR_FORMAT, "its records are of another version");
    struct companion_setup *setup = calloc(1, sizeof *setup);
    if (!setup)
        return error_memory(err);
    struct companion c = {.setup = setup, .host_id = names_host_id(), .is_worker = true};
    struct companion_process process = {.arena_fd = -1,
                                        .bell_fd = -1,
                                        .pidfd = -1,
                                        .map_fd = -1,
                                        .dump_fd = -1,
                                        .pid = header->pid,
                                        .peer_pid = (pid_t)header->pid,
                                        .peer_uid = geteuid(),
                                        .arena = (void *)(uintptr_t)arena,
                                        .size_bytes = size_bytes};
    (void)snprintf(setup->dir, sizeof setup->dir, "%s", to);
    (void)snprintf(setup->tables, sizeof setup->tables, "%.*s", (int)sizeof header->tables, header->tables);
    setup->writes_topology = link_topology(from, to);
    (void)proc_stat_read(process.peer_pid, &process.at_start);
    if (!arena_fault(header, size_bytes)) { /* else the collector says what is wrong */
        process.table_offset = header->chunk_table_offset;
        process.data_offset = header->chunk_data_offset;
        process.chunk_limit = arena_count_chunks(header, size_bytes);
        companion_times_guess(&process);
    }
    companion_jit_look(&process);
    int code = pending_copy_note(from, to, err);
    if (code == 0)
        code = !companion_write_prepare(&process) ? error_memory(err)
               : companion_write_files(&c, &process, true) == 0
                   ? 0
                   : error_set(err, ERR_IO, "%.900s", process.shared->trouble);
    companion_jit_close(&process);
    if (process.shared)
        (void)munmap(process.shared, sizeof *process.shared);
    free(setup);
    return code;
}
