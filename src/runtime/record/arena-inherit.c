/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena of a child of fork, which continues from its parent's: paths, modules and names keep their references. The
 * child copies them itself from its parent's arena, which is still mapped in the child: by the time the companion hears
 * of the child, the parent may have ended or become another program. Ordinary code, without malloc. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/record/arena-writer.h"

static struct arena_chunk *chunk_table(const struct arena_header *header)
{
    return (struct arena_chunk *)(void *)((char *)(uintptr_t)header + header->chunk_table_offset);
}

static uint32_t n_used_chunks(const struct arena_header *header)
{
    uint32_t n = atomic_load(&((struct arena_header *)(uintptr_t)header)->n_chunks);
    return n < header->chunk_limit ? n : header->chunk_limit;
}

/* Bytes of an arena up to the end of its chunk n. */
static uint64_t end_of_chunks(const struct arena_header *header, uint32_t n)
{
    return header->chunk_data_offset + (uint64_t)n * ARENA_CHUNK_BYTES;
}

static void inherit_header(struct arena_header *to, const struct arena_header *from)
{
    atomic_store(&to->n_modules, atomic_load(&((struct arena_header *)(uintptr_t)from)->n_modules));
    to->libhpcrun_module = from->libhpcrun_module;
    atomic_store(&to->raised_bytes, atomic_load(&((struct arena_header *)(uintptr_t)from)->raised_bytes));
    memcpy(to->allocator_owner, from->allocator_owner, sizeof to->allocator_owner);
    memcpy(to->deep_name, from->deep_name, sizeof to->deep_name);
    for (int way = 0; way < DEEP_WAYS; way++)
        atomic_store(&to->n_deep[way], atomic_load(&((struct arena_header *)(uintptr_t)from)->n_deep[way]));
}

/* Threads are not inherited: they do not exist in the child, whose only thread becomes number 0 again. Nor are sums:
 * the parent reports its own, and their links might lead to records that it made during the copy. */
static bool is_inherited(enum arena_kind kind)
{
    return kind == ARENA_NODES || kind == ARENA_ALLOC_NODES || kind == ARENA_MODULES || kind == ARENA_STRINGS ||
           kind == ARENA_SITES;
}

/* Copies the first n chunks. Other threads of the parent may go on recording meanwhile, so only records that never
 * change once published are copied. */
static void inherit_chunks(struct arena_header *to, const struct arena_header *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct arena_chunk *chunk = chunk_table(to) + i, *parents = chunk_table(from) + i;
        enum arena_kind kind = (enum arena_kind)parents->kind;
        uint32_t used = is_inherited(kind) ? arena_run_used(parents, n - i) : 0;
        char *data = (char *)to + end_of_chunks(to, i);
        memcpy(data, (const char *)from + end_of_chunks(from, i), used);
        struct arena_node *nodes = (void *)data;
        for (uint32_t k = 0; (kind == ARENA_NODES || kind == ARENA_ALLOC_NODES) && k < used / sizeof *nodes; k++)
            nodes[k].hits = 0;
        chunk->kind = (uint16_t)kind;
        chunk->behind = parents->behind;
        chunk->thread = parents->thread;
        atomic_store_explicit(&chunk->used_bytes, used, memory_order_release);
    }
    atomic_store(&to->n_chunks, n);
}

/* References must stay valid, so the two arenas must have the same layout. */
static bool fits(const struct arena_header *to, const struct arena_header *from, uint32_t n_chunks)
{
    return memcmp(to->magic, ARENA_MAGIC, sizeof to->magic) == 0 && n_chunks <= to->chunk_limit &&
           to->chunk_table_offset == from->chunk_table_offset && to->chunk_data_offset == from->chunk_data_offset;
}

uint64_t arena_used_bytes(void)
{
    const struct arena_header *header = arena_header_sig();
    return end_of_chunks(header, n_used_chunks(header));
}

bool arena_inherit(int fd)
{
    const struct arena_header *from = arena_header_sig();
    uint32_t n_chunks = n_used_chunks(from);
    uint64_t n_bytes = end_of_chunks(from, n_chunks);
    if (!zone_reach_sig(ZONE_ARENA, n_bytes))
        return false;
    struct arena_header *to = (void *)own_mmap_sig(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if ((uintptr_t)to >= (uintptr_t)-4095)
        return false;
    bool is_fit = fits(to, from, n_chunks);
    if (is_fit) {
        inherit_header(to, from);
        inherit_chunks(to, from, n_chunks);
    }
    own_call_sig(SYS_munmap, to, n_bytes);
    return is_fit;
}
