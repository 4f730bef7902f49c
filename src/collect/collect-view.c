/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading an arena that may be live, half filled, or garbage: every access goes through the lengths that were published
 * when the view was made. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "collect/collect-internal.h"

static int refuse(const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "The memory of a process cannot be read: %s.", reason);
}

static const char *header_fault(const struct arena_header *header, size_t size_bytes)
{
    if (size_bytes < sizeof *header || memcmp(header->magic, ARENA_MAGIC, sizeof header->magic) != 0)
        return "it is not an arena";
    if (header->version != ARENA_VERSION || header->header_bytes != sizeof *header)
        return "it is an arena of another version";
    if (header->chunk_table_offset % ARENA_UNIT || header->chunk_data_offset % ARENA_UNIT ||
        header->chunk_table_offset > size_bytes || header->chunk_data_offset > size_bytes)
        return "its chunks lie outside of it";
    return NULL;
}

/* Chunks that were handed out and lie inside the memory, table entry and data. */
static uint32_t count_chunks(const struct arena_header *header, size_t size_bytes)
{
    uint64_t n = __atomic_load_n((const uint32_t *)&header->n_chunks, __ATOMIC_ACQUIRE);
    uint64_t n_entries = (size_bytes - header->chunk_table_offset) / sizeof(struct arena_chunk);
    uint64_t n_data = (size_bytes - header->chunk_data_offset) / ARENA_CHUNK_BYTES;
    n = n < header->chunk_limit ? n : header->chunk_limit;
    n = n < n_entries ? n : n_entries;
    return (uint32_t)(n < n_data ? n : n_data);
}

static int compare_chunks(const void *a, const void *b)
{
    const struct view_chunk *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void copy_chunks(struct view *view)
{
    const struct arena_chunk *table = (const void *)(view->base + view->header->chunk_table_offset);
    for (uint32_t i = 0; i < view->n_chunks; i++) {
        uint32_t used = arena_run_used(&table[i], view->n_chunks - i);
        uint16_t behind = table[i].behind;
        view->chunks[i] = (struct view_chunk){.index = i,
                                              .thread = table[i].thread,
                                              .used_bytes = behind ? 0 : used,
                                              .kind = table[i].kind,
                                              .behind = behind};
        if (view->chunks[i].used_bytes)
            view->sorted[view->n_sorted++] = view->chunks[i];
    }
    qsort(view->sorted, view->n_sorted, sizeof *view->sorted, compare_chunks);
}

static int compare_modules(const void *a, const void *b)
{
    const struct view_module *x = a, *y = b;
    return x->ref < y->ref ? -1 : x->ref > y->ref;
}

/* A file that is mapped several times may have been found by several names: readers refuse a load map with both. */
static void name_once(struct view *view, size_t i)
{
    struct view_module *module = &view->modules[i];
    for (size_t k = 0; k < i && module->inode && module->table_id; k++)
        if (view->modules[k].inode == module->inode && view->modules[k].table_id == module->table_id) {
            module->path = view->modules[k].path;
            return;
        }
}

static bool list_modules(struct view *view)
{
    size_t capacity = 0;
    struct view_walk walk = {.kind = ARENA_MODULES, .record_bytes = sizeof(struct arena_module)};
    const struct arena_module *module;
    while ((module = view_next(view, &walk))) {
        const char *path = view_string(view, module->path);
        if (!vec_reserve(&view->modules, &capacity, view->n_modules + 1, sizeof *view->modules))
            return false;
        if (path && *path)
            view->modules[view->n_modules++] = (struct view_module){.ref = walk.ref,
                                                                    .id = module->id,
                                                                    .path = path,
                                                                    .bias = module->bias,
                                                                    .table_id = module->table_id,
                                                                    .inode = module->inode};
    }
    if (view->n_modules)
        qsort(view->modules, view->n_modules, sizeof *view->modules, compare_modules);
    for (size_t i = 1; i < view->n_modules; i++)
        name_once(view, i);
    return true;
}

int view_open(struct view *view, const void *arena, size_t size_bytes, struct error *err)
{
    *view = (struct view){.base = arena, .header = arena};
    const char *fault = header_fault(arena, size_bytes);
    if (fault)
        return refuse(fault, err);
    view->data_offset = view->header->chunk_data_offset;
    view->n_events = view->header->n_events < ARENA_EVENTS_MAX ? view->header->n_events : ARENA_EVENTS_MAX;
    view->n_chunks = count_chunks(view->header, size_bytes);
    view->chunks = calloc(view->n_chunks + 1, sizeof *view->chunks);
    view->sorted = calloc(view->n_chunks + 1, sizeof *view->sorted);
    if (view->chunks && view->sorted) {
        copy_chunks(view);
        if (list_modules(view))
            return 0;
    }
    view_close(view);
    return error_set(err, ERR_MEMORY, "Out of memory for a process with %u chunks of records.", view->n_chunks);
}

void view_close(struct view *view)
{
    free(view->chunks);
    free(view->sorted);
    free(view->modules);
    view->chunks = view->sorted = NULL;
    view->modules = NULL;
}

/* Published bytes from ref to the end of its run, 0 when ref is in no run of the kind. */
static size_t bytes_at(const struct view *view, uint32_t ref, enum arena_kind kind)
{
    uint64_t offset = (uint64_t)ref * ARENA_UNIT;
    if (!ref || offset < view->data_offset)
        return 0;
    uint64_t chunk = (offset - view->data_offset) / ARENA_CHUNK_BYTES;
    if (chunk >= view->n_chunks || view->chunks[chunk].behind > chunk)
        return 0;
    uint64_t first = chunk - view->chunks[chunk].behind;
    uint64_t inside = offset - view->data_offset - first * ARENA_CHUNK_BYTES;
    if (view->chunks[first].kind != kind || inside >= view->chunks[first].used_bytes)
        return 0;
    return view->chunks[first].used_bytes - inside;
}

const void *view_record(const struct view *view, uint32_t ref, enum arena_kind kind, size_t len_bytes)
{
    return bytes_at(view, ref, kind) >= len_bytes ? view->base + (uint64_t)ref * ARENA_UNIT : NULL;
}

const char *view_string(const struct view *view, uint32_t ref)
{
    size_t n_bytes = bytes_at(view, ref, ARENA_STRINGS);
    const struct arena_string *string = (const void *)(view->base + (uint64_t)ref * ARENA_UNIT);
    if (n_bytes <= sizeof *string || string->len_bytes >= n_bytes - sizeof *string)
        return NULL;
    return memchr(string->text, 0, n_bytes - sizeof *string) ? string->text : NULL;
}

const struct view_module *view_module_at(const struct view *view, uint32_t ref)
{
    const struct view_module key = {.ref = ref};
    return view->n_modules ? bsearch(&key, view->modules, view->n_modules, sizeof key, compare_modules) : NULL;
}

const struct view_module *view_module_with_id(const struct view *view, uint32_t id)
{
    for (size_t i = 0; i < view->n_modules; i++)
        if (view->modules[i].id == id)
            return &view->modules[i];
    return NULL;
}

/* First run of the thread and kind in the sorted table. */
static uint32_t first_chunk(const struct view *view, uint32_t thread, enum arena_kind kind)
{
    uint32_t low = 0, high = view->n_sorted;
    const struct view_chunk key = {.thread = thread, .kind = (uint16_t)kind};
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_chunks(&view->sorted[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The run that the walk is in, the next fitting one when it has left one; NULL at the end. */
static const struct view_chunk *walk_chunk(const struct view *view, struct view_walk *walk)
{
    const struct view_chunk *table = walk->thread ? view->sorted : view->chunks;
    uint32_t n_chunks = walk->thread ? view->n_sorted : view->n_chunks;
    for (; walk->chunk < n_chunks; walk->chunk++, walk->offset = 0) {
        const struct view_chunk *chunk = &table[walk->chunk];
        bool fits = chunk->kind == walk->kind && (!walk->thread || chunk->thread == walk->thread);
        if (walk->thread && !fits)
            return NULL;
        if (fits && chunk->used_bytes - walk->offset >= walk->record_bytes)
            return chunk;
    }
    return NULL;
}

const void *view_next(const struct view *view, struct view_walk *walk)
{
    if (walk->thread && !walk->ref)
        walk->chunk = first_chunk(view, walk->thread, walk->kind);
    const struct view_chunk *chunk = walk_chunk(view, walk);
    if (!chunk)
        return NULL;
    uint64_t offset = view->data_offset + (uint64_t)chunk->index * ARENA_CHUNK_BYTES + walk->offset;
    walk->offset += (walk->record_bytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT;
    walk->offset = walk->offset < chunk->used_bytes ? walk->offset : chunk->used_bytes;
    walk->ref = (uint32_t)(offset / ARENA_UNIT);
    return view->base + offset;
}

bool view_hit(const struct view *view, uint32_t ref, uint32_t newer, struct arena_hit *hit)
{
    const void *record = view_record(view, ref, ARENA_HITS, sizeof *hit);
    if (!record || (newer && ref >= newer))
        return false;
    memcpy(hit, record, sizeof *hit);
    return true;
}

uint64_t view_heap_of_site(const struct view *view, uint64_t var, const struct arena_site **site)
{
    *site = view_record(view, var_key_b(var), ARENA_SITES, sizeof **site);
    uint64_t path = *site ? __atomic_load_n((const uint64_t *)&(*site)->path, __ATOMIC_ACQUIRE) : 0;
    if (var_key_kind(path) == VAR_HEAP)
        return path;
    *site = NULL;
    return var_key(VAR_UNKNOWN, 0, UNKNOWN_SMALL_BLOCK);
}
