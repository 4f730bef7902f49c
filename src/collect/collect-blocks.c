/* SPDX-License-Identifier: BSD-3-Clause */
/* From the counts of allocations and frees to bytes by allocation path: allocated, freed, still there at the end, and
 * live at the mark. What is live is a difference of counts at one path, whichever threads freed the blocks. Ordinary
 * code. */
#include <stdlib.h>
#include <string.h>

#include "arena/arena-mark.h"
#include "collect/collect-internal.h"
#include "fmt/leak-columns.h"

/* Blocks and bytes of one allocation path. */
struct blocks {
    uint64_t n_allocated, bytes_allocated, n_freed, bytes_freed;
    uint64_t n_live, bytes_live, n_marked, bytes_marked;
};

static uint64_t rest_of(uint64_t n, uint64_t n_gone)
{
    return n > n_gone ? n - n_gone : 0;
}

/* False when the path has none. */
static bool sum_blocks(const struct view *view, const struct arena_node *node, struct blocks *blocks)
{
    struct arena_hit hit;
    uint64_t n_gone = 0, bytes_gone = 0; /* at the mark */
    *blocks = (struct blocks){0};
    for (uint32_t newer = 0, at = node->hits; view_hit(view, at, newer, &hit); newer = at, at = hit.next) {
        if (hit.event == HIT_EVENT_ALLOC) {
            blocks->n_allocated += hit.count;
            blocks->bytes_allocated += hit.weight;
            blocks->n_marked += arena_marked_blocks(&hit);
            blocks->bytes_marked += hit.latency;
        } else if (hit.event == HIT_EVENT_FREE) {
            blocks->n_freed += hit.count;
            blocks->bytes_freed += hit.weight;
            n_gone += arena_marked_blocks(&hit);
            bytes_gone += hit.latency;
        }
    }
    blocks->n_live = rest_of(blocks->n_allocated, blocks->n_freed);
    blocks->bytes_live = rest_of(blocks->bytes_allocated, blocks->bytes_freed);
    blocks->n_marked = rest_of(blocks->n_marked, n_gone);
    blocks->bytes_marked = rest_of(blocks->bytes_marked, bytes_gone);
    return blocks->n_allocated || blocks->n_freed;
}

void process_sum_blocks(struct process *process)
{
    struct view_walk walk = {.kind = ARENA_ALLOC_NODES, .record_bytes = sizeof(struct arena_node)};
    struct arena_node node;
    struct blocks blocks;
    for (const void *record; (record = view_next(process->view, &walk));) {
        memcpy(&node, record, sizeof node);
        if (!sum_blocks(process->view, &node, &blocks))
            continue;
        process->n_blocks += blocks.n_allocated;
        process->bytes_allocated += blocks.bytes_allocated;
        process->bytes_freed += blocks.bytes_freed;
        process->n_blocks_live += blocks.n_live;
        process->bytes_live += blocks.bytes_live;
        process->bytes_marked += blocks.bytes_marked;
    }
}

static int add_bytes_column(struct process *process, enum column_kind kind, const char *name, const char *description,
                            uint64_t bytes)
{
    if (!bytes)
        return -1;
    const struct column column = {
        .kind = kind, .format = HPCRUN_VALUE_INT, .period = 1, .scale = 1, .n_samples = process->n_blocks};
    return process_add_column(process, &column, name, description);
}

void process_add_size_column(struct process *process)
{
    process->size_column = add_bytes_column(process, COLUMN_SIZE, "Size (byte)", "Size (byte)", 1);
}

void process_add_leak_columns(struct process *process)
{
    process->allocated_column = add_bytes_column(process, COLUMN_ALLOCATED, LEAK_ALLOCATED_NAME,
                                                 "Bytes allocated in recorded blocks", process->bytes_allocated);
    process->freed_column = add_bytes_column(process, COLUMN_FREED, LEAK_FREED_NAME,
                                             "Bytes of recorded blocks freed again", process->bytes_freed);
    process->leaked_column = add_bytes_column(process, COLUMN_LEAKED, LEAK_LEAKED_NAME,
                                              "Bytes allocated and never freed", process->bytes_live);
    process->marked_column = add_bytes_column(process, COLUMN_MARKED, LEAK_MARKED_NAME,
                                              "Bytes allocated and not freed at the mark", process->bytes_marked);
}

static bool is_mapping(const struct process *process, uint32_t ref)
{
    size_t low = 0, high = process->n_mmap_nodes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (process->mmap_nodes[middle] < ref)
            low = middle + 1;
        else
            high = middle;
    }
    return low < process->n_mmap_nodes && process->mmap_nodes[low] == ref;
}

/* The totals of the ordinary and of the data-centric tree agree. */
static void add_bytes(struct thread *thread, uint32_t node, const struct blocks *blocks)
{
    const struct process *process = thread->process;
    tree_add(&thread->tree, node, process->size_column, blocks->bytes_allocated);
    tree_add(&thread->tree, node, process->allocated_column, blocks->bytes_allocated);
    tree_add(&thread->tree, node, process->freed_column, blocks->bytes_freed);
    tree_add(&thread->tree, node, process->leaked_column, blocks->bytes_live);
    tree_add(&thread->tree, node, process->marked_column, blocks->bytes_marked);
}

void thread_take_allocations(struct thread *thread, uint32_t ref, const struct arena_node *node)
{
    struct process *process = thread->process;
    struct blocks blocks;
    if (!sum_blocks(process->view, node, &blocks) ||
        !path_of(process->view, ref, ARENA_ALLOC_NODES, &thread->path))
        return;
    uint32_t parent = thread->path.is_partial ? TREE_PARTIAL : TREE_ROOT;
    uint32_t leaf = path_insert(thread, &thread->path, parent, HPCRUN_NODE_LEAF | HPCRUN_NODE_ALLOCATION);
    add_bytes(thread, leaf, &blocks);
    if (!process->has_variables)
        return;
    uint64_t var = var_key(is_mapping(process, ref) ? VAR_MMAP : VAR_HEAP, 0, ref);
    const struct declaration *declaration = thread_declare(thread, var, HIT_MEMORY);
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct objects_variable *row = &thread->variables[declaration->variable].row;
    row->n_blocks += blocks.n_allocated;
    row->bytes += blocks.bytes_allocated;
    row->n_blocks_freed += blocks.n_freed;
    row->bytes_freed += blocks.bytes_freed;
    row->n_blocks_marked += blocks.n_marked;
    row->bytes_marked += blocks.bytes_marked;
    add_bytes(thread, row->node, &blocks);
}
