/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts records into an arena, one after the other: see perf-import.h. */
#include "analysis/load/perf-import.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/vec.h"
#include "sampling/abi/data-src.h"

#define CHUNKS_MAX 1048576u /* 4 GiB of address space; only the used part takes memory */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

int perf_arena_init(struct perf_arena *arena, uint32_t pid, struct error *err)
{
    uint64_t table = round_up(sizeof(struct arena_header), 4096);
    uint64_t data = round_up(table + CHUNKS_MAX * sizeof(struct arena_chunk), 4096);
    arena->size_bytes = data + (uint64_t)CHUNKS_MAX * ARENA_CHUNK_BYTES;
    void *base =
        mmap(NULL, arena->size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return error_set(err, ERR_MEMORY, "out of memory for the samples of process %u", pid);
    arena->base = base;
    struct arena_header *header = perf_arena_header(arena);
    memcpy(header->magic, ARENA_MAGIC, sizeof header->magic);
    header->version = ARENA_VERSION;
    header->header_bytes = sizeof *header;
    header->size_bytes = arena->size_bytes;
    header->chunk_table_offset = table;
    header->chunk_data_offset = data;
    header->chunk_limit = CHUNKS_MAX;
    header->pid = pid;
    header->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    atomic_store(&header->state, ARENA_ENDED);
    return 0;
}

void perf_arena_fini(struct perf_arena *arena)
{
    if (arena->base)
        (void)munmap(arena->base, arena->size_bytes);
    free(arena->threads);
    free(arena->children);
    slots_fini(&arena->slots);
    *arena = (struct perf_arena){0};
}

struct arena_header *perf_arena_header(const struct perf_arena *arena)
{
    return (struct arena_header *)(void *)arena->base;
}

/* Zeroed room for a record in the open chunk of its kind; NULL when the arena is full. owner 0: shared. */
static void *put_record(struct perf_arena *arena, uint32_t *open, uint32_t owner, enum arena_kind kind,
                        uint64_t n_bytes)
{
    struct arena_header *header = perf_arena_header(arena);
    struct arena_chunk *table = (struct arena_chunk *)(void *)(arena->base + header->chunk_table_offset);
    n_bytes = round_up(n_bytes, ARENA_UNIT);
    if (!*open || atomic_load(&table[*open - 1].used_bytes) + n_bytes > ARENA_RUN_BYTES) {
        uint32_t n_chunks = atomic_load(&header->n_chunks);
        if (n_chunks + ARENA_RUN_CHUNKS > CHUNKS_MAX || n_bytes > ARENA_RUN_BYTES) {
            arena->is_full = true;
            return NULL;
        }
        arena_run_begin(&table[n_chunks], ARENA_RUN_CHUNKS, kind, owner);
        atomic_store(&header->n_chunks, n_chunks + ARENA_RUN_CHUNKS);
        *open = n_chunks + 1;
    }
    struct arena_chunk *chunk = &table[*open - 1];
    uint32_t used = atomic_load(&chunk->used_bytes);
    atomic_store(&chunk->used_bytes, used + (uint32_t)n_bytes);
    return arena->base + header->chunk_data_offset + (uint64_t)(*open - 1) * ARENA_CHUNK_BYTES + used;
}

static void *put_shared(struct perf_arena *arena, enum arena_kind kind, uint64_t n_bytes)
{
    return put_record(arena, &arena->n_open_shared[kind], 0, kind, n_bytes);
}

static void *put_owned(struct perf_arena *arena, size_t thread, enum arena_kind kind, uint64_t n_bytes)
{
    struct perf_arena_thread *owner = &arena->threads[thread];
    return put_record(arena, &owner->n_open[kind], owner->ref, kind, n_bytes);
}

static uint32_t put_root(struct perf_arena *arena, size_t thread, uint32_t parent, uint64_t ip, uint32_t flags)
{
    struct arena_node *node = put_owned(arena, thread, ARENA_NODES, sizeof *node);
    if (!node)
        return 0;
    node->ip = ip;
    node->parent = parent;
    node->flags = flags;
    return arena_ref(arena->base, node);
}

size_t perf_arena_thread(struct perf_arena *arena, uint32_t tid)
{
    for (size_t i = arena->n_threads; i-- > 0;)
        if (arena->threads[i].tid == tid)
            return i;
    struct arena_thread *record = put_shared(arena, ARENA_THREADS, sizeof *record);
    if (!record || !vec_reserve(&arena->threads, &arena->cap_threads, arena->n_threads + 1, sizeof *arena->threads)) {
        arena->is_full = true;
        return SIZE_MAX;
    }
    size_t index = arena->n_threads++;
    arena->threads[index] = (struct perf_arena_thread){.tid = tid, .ref = arena_ref(arena->base, record)};
    record->id = (uint32_t)index;
    record->tid = tid;
    record->root = put_root(arena, index, 0, 0, NODE_ROOT);
    record->partial = put_root(arena, index, record->root, 1, NODE_PARTIAL);
    atomic_store(&perf_arena_header(arena)->n_threads, (uint32_t)arena->n_threads);
    return index;
}

struct arena_thread *perf_arena_thread_record(const struct perf_arena *arena, size_t thread)
{
    return arena_at(arena->base, arena->threads[thread].ref);
}

uint32_t perf_arena_partial(const struct perf_arena *arena, size_t thread)
{
    return perf_arena_thread_record(arena, thread)->partial;
}

uint32_t perf_arena_string(struct perf_arena *arena, const char *text)
{
    size_t len_bytes = strlen(text);
    struct arena_string *string = put_shared(arena, ARENA_STRINGS, sizeof *string + len_bytes + 1);
    if (!string)
        return 0;
    string->len_bytes = (uint32_t)len_bytes;
    memcpy(string->text, text, len_bytes + 1);
    return arena_ref(arena->base, string);
}

uint32_t perf_arena_module(struct perf_arena *arena, const char *path, uint64_t bias, uint64_t table_id, uint32_t *id)
{
    uint32_t string = perf_arena_string(arena, path);
    struct arena_module *module = put_shared(arena, ARENA_MODULES, sizeof *module);
    if (!module)
        return 0;
    module->id = *id = atomic_load(&perf_arena_header(arena)->n_modules) + 1;
    module->path = string;
    module->bias = bias;
    module->table_id = table_id;
    atomic_store(&module->sampled, 1);
    atomic_store(&perf_arena_header(arena)->n_modules, module->id);
    return arena_ref(arena->base, module);
}

static uint64_t hash_child(const void *item)
{
    const struct perf_arena_child *child = item;
    return child->ip ^ (uint64_t)child->parent << 32 ^ child->module;
}

static bool is_same_child(const void *a, const void *b)
{
    const struct perf_arena_child *x = a, *y = b;
    return x->parent == y->parent && x->module == y->module && x->ip == y->ip;
}

static const struct slots_kind by_address = {sizeof(struct perf_arena_child), hash_child, is_same_child};

uint32_t perf_arena_node(struct perf_arena *arena, size_t thread, uint32_t parent, uint32_t module, uint64_t ip)
{
    if (!parent)
        parent = perf_arena_thread_record(arena, thread)->root;
    struct perf_arena_child child = {.ip = ip, .parent = parent, .module = module};
    size_t index = slots_find(&arena->slots, &by_address, arena->children, &child);
    if (index != SLOTS_NONE)
        return arena->children[index].node;
    if (!slots_reserve(&arena->slots, &by_address, arena->children, arena->n_children) ||
        !vec_reserve(&arena->children, &arena->cap_children, arena->n_children + 1, sizeof child)) {
        arena->is_full = true;
        return 0;
    }
    struct arena_node *node = put_owned(arena, thread, ARENA_NODES, sizeof *node);
    if (!node)
        return 0;
    node->ip = ip;
    node->parent = parent;
    node->module = module;
    child.node = arena_ref(arena->base, node);
    arena->children[arena->n_children] = child;
    slots_add(&arena->slots, &by_address, arena->children, arena->n_children++);
    return child.node;
}

static struct arena_hit *find_hit(struct perf_arena *arena, size_t thread, struct arena_node *node,
                                  const struct arena_hit *like)
{
    struct arena_hit *hit;
    for (uint32_t ref = node->hits; ref; ref = hit->next) {
        hit = arena_at(arena->base, ref);
        if (hit->event == like->event && hit->class == like->class && hit->var == like->var &&
            hit->metrics == like->metrics)
            return hit;
    }
    hit = put_owned(arena, thread, ARENA_HITS, sizeof *hit);
    if (!hit)
        return NULL;
    hit->event = like->event;
    hit->class = like->class;
    hit->var = like->var;
    hit->metrics = like->metrics;
    hit->next = node->hits;
    node->hits = arena_ref(arena->base, hit);
    return hit;
}

static uint32_t bucket_of(uint64_t var, uint8_t event, uint32_t n_buckets)
{
    return (uint32_t)((var ^ (uint64_t)event << 48) * 0x9e3779b97f4a7c15u >> 32) % n_buckets;
}

static struct arena_sketch *find_sketch(struct perf_arena *arena, size_t thread, uint8_t event, uint64_t var)
{
    uint32_t bucket = bucket_of(var, event, ARENA_SKETCH_BUCKETS);
    uint32_t *first = &perf_arena_thread_record(arena, thread)->sketches[bucket];
    struct arena_sketch *sketch;
    for (uint32_t ref = *first; ref; ref = sketch->next) {
        sketch = arena_at(arena->base, ref);
        if (sketch->var == var && sketch->event == event)
            return sketch;
    }
    sketch = put_owned(arena, thread, ARENA_SKETCHES, sizeof *sketch);
    if (!sketch)
        return NULL;
    sketch->var = var;
    sketch->event = event;
    sketch->next = *first;
    *first = arena_ref(arena->base, sketch);
    return sketch;
}

/* Makes room for more offsets when a hit is full; false when there may or can be no more. */
static bool grow_offsets(struct perf_arena *arena, size_t thread, struct arena_hit *hit, uint32_t *capacity)
{
    uint32_t n_values = arena_offsets_next(*capacity);
    struct arena_offsets *record =
        n_values ? put_owned(arena, thread, ARENA_OFFSETS, sizeof *record + n_values * sizeof record->values[0]) : NULL;
    if (!record)
        return false;
    record->n_values = n_values;
    record->next = hit->offsets;
    hit->offsets = arena_ref(arena->base, record);
    *capacity = arena_offsets_capacity(n_values);
    return true;
}

/* Keeps offsets as the runtime does: all while there is room, then each with the same chance. */
static void add_offset(struct perf_arena *arena, size_t thread, struct arena_hit *hit, uint64_t offset)
{
    struct arena_offsets *record = hit->offsets ? arena_at(arena->base, hit->offsets) : NULL;
    uint32_t capacity = arena_offsets_capacity(record ? record->n_values : 0);
    uint64_t n = atomic_fetch_add(&hit->n_offsets, 1), slot = n;
    if (n >= capacity && !grow_offsets(arena, thread, hit, &capacity))
        slot = (((n + 1) * 0x9e3779b97f4a7c15u ^ offset * 0xbf58476d1ce4e5b9u) >> 20) % (n + 1);
    if (slot == 0)
        atomic_store(&hit->first_offset, offset);
    for (uint32_t ref = slot < capacity ? hit->offsets : 0; slot && ref; ref = record->next) {
        record = arena_at(arena->base, ref);
        uint32_t first = arena_offsets_capacity(record->n_values) - record->n_values;
        if (slot >= first) {
            atomic_store(&record->values[slot - first], offset);
            return;
        }
    }
}

void perf_arena_hit(struct perf_arena *arena, size_t thread, uint32_t node, const struct arena_hit *like,
                    uint64_t weight, uint64_t lat_cycles)
{
    struct arena_hit *hit = node ? find_hit(arena, thread, arena_at(arena->base, node), like) : NULL;
    if (!hit)
        return;
    atomic_fetch_add(&hit->count, 1);
    atomic_fetch_add(&hit->weight, weight);
    atomic_fetch_add(&hit->latency, lat_cycles);
    if (atomic_load(&like->n_offsets))
        add_offset(arena, thread, hit, atomic_load(&like->first_offset));
    struct arena_sketch *sketch = lat_cycles ? find_sketch(arena, thread, like->event, like->var) : NULL;
    if (sketch)
        atomic_fetch_add(&sketch->bins[mem_latency_bin_sig(lat_cycles)], 1);
}

void perf_arena_place(struct perf_arena *arena, size_t thread, uint8_t event, uint64_t var, uint16_t cpu)
{
    uint32_t *first = &perf_arena_thread_record(arena, thread)->places[bucket_of(var, event, ARENA_PLACE_BUCKETS)];
    struct arena_place *place;
    for (uint32_t ref = *first; ref; ref = place->next) {
        place = arena_at(arena->base, ref);
        if (place->var == var && place->event == event && place->cpu == cpu) {
            atomic_fetch_add(&place->count, 1);
            return;
        }
    }
    place = put_owned(arena, thread, ARENA_PLACES, sizeof *place);
    if (!place)
        return;
    place->var = var;
    place->event = event;
    place->cpu = cpu;
    atomic_store(&place->count, 1);
    place->next = *first;
    *first = arena_ref(arena->base, place);
}
