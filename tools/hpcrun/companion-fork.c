/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena of a child of fork that goes on where its parent was: paths, modules and names keep their references, sums
 * stay behind, because the parent reports its own. The parent goes on recording meanwhile, so only records that never
 * change once published are taken over. Apart from companion-arena.c because it must know the kinds of records.
 * Ordinary code. */
#include "companion-state.h"

#include <string.h>

/* Sums stay behind: their links might lead to records that the parent made during the copy. */
static void clear_nodes(char *data, uint32_t used_bytes)
{
    struct arena_node *nodes = (struct arena_node *)(void *)data;
    for (uint32_t i = 0; i < used_bytes / sizeof *nodes; i++)
        nodes[i].hits = 0;
}

/* Bytes of a run that the child inherits: what its own records may refer to. Not the threads: they do not exist in
 * the child, whose own one becomes number 0 again. */
static uint32_t inherited_bytes(enum arena_kind kind, uint32_t used_bytes)
{
    bool is_inherited = kind == ARENA_NODES || kind == ARENA_ALLOC_NODES || kind == ARENA_MODULES ||
                        kind == ARENA_STRINGS;
    return is_inherited ? used_bytes : 0;
}

static void copy_header(struct arena_header *to, const struct arena_header *from)
{
    atomic_store(&to->n_modules, atomic_load(&((struct arena_header *)(uintptr_t)from)->n_modules));
    atomic_store(&to->rank, atomic_load(&((struct arena_header *)(uintptr_t)from)->rank));
    to->libhpcrun_module = from->libhpcrun_module;
    to->parent_pid = from->pid;
    memcpy(to->placeholders, from->placeholders, sizeof to->placeholders);
    memcpy(to->exe, from->exe, sizeof to->exe);
    memcpy(to->argv0, from->argv0, sizeof to->argv0);
    memcpy(to->allocator_owner, from->allocator_owner, sizeof to->allocator_owner);
}

void companion_arena_copy(struct companion_process *process, const struct companion_process *parent)
{
    struct arena_chunk *to_table = companion_arena_table(process), *from_table = companion_arena_table(parent);
    uint32_t n = companion_arena_n_chunks(parent);
    if (process->size_bytes != parent->size_bytes)
        return;
    copy_header(process->arena, parent->arena);
    for (uint32_t i = 0; i < n; i++) {
        uint16_t kind = from_table[i].kind;
        uint32_t used = arena_run_used(&from_table[i], n - i);
        char *data = companion_arena_data(process, i);
        used = inherited_bytes((enum arena_kind)kind, used);
        memcpy(data, companion_arena_data(parent, i), used);
        if (kind == ARENA_NODES || kind == ARENA_ALLOC_NODES)
            clear_nodes(data, used);
        to_table[i].kind = kind;
        to_table[i].behind = from_table[i].behind;
        to_table[i].thread = from_table[i].thread;
        atomic_store_explicit(&to_table[i].used_bytes, used, memory_order_release);
    }
    atomic_store(&process->arena->n_chunks, n);
}
