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

/* Where its chunks are, as far as that lies in the mapping; false: the collector says what is wrong. */
static bool find_chunks(struct companion_process *process)
{
    const struct arena_header *header = process->arena;
    uint64_t size = process->size_bytes, table = header->chunk_table_offset, data = header->chunk_data_offset;
    if (header->version != ARENA_VERSION || header->header_bytes != sizeof *header || table > size || data > size ||
        table % ARENA_UNIT || data % ARENA_UNIT)
        return false;
    uint64_t n_entries = (size - table) / sizeof(struct arena_chunk), n_data = (size - data) / ARENA_CHUNK_BYTES;
    uint64_t n = n_entries < n_data ? n_entries : n_data;
    process->table_offset = table;
    process->data_offset = data;
    process->chunk_limit = n < header->chunk_limit ? (uint32_t)n : header->chunk_limit;
    return true;
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
    if (find_chunks(&process))
        companion_times_guess(&process);
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
