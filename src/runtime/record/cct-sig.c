/* SPDX-License-Identifier: BSD-3-Clause */
/* Call trees in the arena: see cct.h. Runs in the signal handler (sample tree) and in malloc hooks (allocation tree).
 */
#include "runtime/record/cct.h"

#include <stddef.h>

#include "base/sigsafe.h"

static struct arena_node *node_at_sig(uint32_t ref)
{
    return arena_record_sig(ref);
}

/* Order of children: by ip, then by module. */
static int node_compare_sig(uint64_t ip, uint32_t module, const struct arena_node *node)
{
    if (ip != node->ip)
        return ip < node->ip ? -1 : 1;
    return module < node->module ? -1 : module > node->module;
}

/* Top-down splay: brings the node with the key, or the last node on the way to it, to the root. root is not 0. */
static uint32_t splay_sig(uint32_t root, uint64_t ip, uint32_t module)
{
    struct arena_node header = {0};
    struct arena_node *left = &header, *right = &header;
    uint32_t top = root;
    for (;;) {
        struct arena_node *node = node_at_sig(top);
        int order = node_compare_sig(ip, module, node);
        uint32_t next = order < 0 ? node->left : node->right;
        if (!order || !next)
            break;
        struct arena_node *child = node_at_sig(next);
        int child_order = node_compare_sig(ip, module, child);
        if (order < 0) {
            if (child_order < 0) { /* rotate right */
                node->left = child->right;
                child->right = top;
                top = next;
                node = child;
                if (!node->left)
                    break;
            }
            right->left = top;
            right = node;
            top = node->left;
        } else {
            if (child_order > 0) { /* rotate left */
                node->right = child->left;
                child->left = top;
                top = next;
                node = child;
                if (!node->right)
                    break;
            }
            left->right = top;
            left = node;
            top = node->right;
        }
    }
    struct arena_node *node = node_at_sig(top);
    left->right = node->left;
    right->left = node->right;
    node->left = header.right;
    node->right = header.left;
    return top;
}

static struct arena_node *node_new_sig(struct cct_tree *tree, uint32_t parent, uint64_t ip, uint32_t module)
{
    struct arena_node *node = arena_reserve_sig(&tree->nodes, tree->kind, tree->thread, sizeof *node);
    if (!node)
        return NULL;
    node->ip = ip;
    node->parent = parent;
    node->module = module;
    arena_publish_sig(&tree->nodes);
    return node;
}

/* Puts a new node above the splayed root of its siblings. order: of the new key against that root. */
static void node_link_sig(struct arena_node *node, uint32_t top, int order)
{
    if (!top)
        return;
    struct arena_node *old = node_at_sig(top);
    if (order < 0) {
        node->left = old->left;
        node->right = top;
        old->left = 0;
    } else {
        node->right = old->right;
        node->left = top;
        old->right = 0;
    }
}

uint32_t cct_child_sig(struct cct_tree *tree, uint32_t parent, uint64_t ip, uint32_t module)
{
    struct arena_node *above = node_at_sig(parent);
    uint32_t top = above->child;
    int order = 0;
    if (top) {
        top = splay_sig(top, ip, module);
        above->child = top;
        order = node_compare_sig(ip, module, node_at_sig(top));
        if (!order)
            return top;
    }
    struct arena_node *node = node_new_sig(tree, parent, ip, module);
    if (!node)
        return 0;
    node_link_sig(node, top, order);
    uint32_t ref = arena_ref_sig(node);
    __atomic_store_n(&above->child, ref, __ATOMIC_RELEASE);
    return ref;
}

/* The node's ip, in the profiler's module, is no code address. */
uint32_t cct_created_sig(struct cct_tree *tree, uint32_t parent, uint64_t creator)
{
    uint32_t ref = cct_child_sig(tree, parent, creator, arena_header_sig()->libhpcrun_module);
    if (ref)
        node_at_sig(ref)->flags = NODE_CREATED;
    return ref;
}

bool cct_init_in_sig(struct cct_tree *tree, enum arena_kind kind, uint32_t thread, bool with_partial,
                     struct arena_cursor *chunks)
{
    *tree = (struct cct_tree){.kind = kind, .thread = thread};
    arena_part_sig(chunks, &tree->nodes, kind, thread, 1);
    arena_part_sig(chunks, &tree->hits, ARENA_HITS, thread, 1);
    if (with_partial)
        arena_part_sig(chunks, &tree->places, ARENA_PLACES, thread, 1);
    struct arena_node *root = node_new_sig(tree, 0, 0, 0);
    if (!root)
        return false;
    root->flags = NODE_ROOT;
    tree->root = tree->below = arena_ref_sig(root);
    if (!with_partial)
        return true;
    tree->partial = cct_child_sig(tree, tree->root, 1, 0);
    if (!tree->partial)
        return false;
    node_at_sig(tree->partial)->flags = NODE_PARTIAL;
    tree->below_partial = tree->partial;
    return true;
}

bool cct_init_sig(struct cct_tree *tree, enum arena_kind kind, uint32_t thread, bool with_partial)
{
    struct arena_cursor none = {0};
    return cct_init_in_sig(tree, kind, thread, with_partial, &none);
}

uint32_t cct_insert_from_sig(struct cct_tree *tree, struct unwind_path *path, uint32_t first)
{
    uint32_t n_frames = path->n_frames - path->n_cut;
    uint32_t start = path->n_frames - path->n_reused;
    uint32_t node = path->stop == UNWIND_COMPLETE || !tree->partial ? tree->below : tree->below_partial;
    if (start > n_frames)
        start = n_frames;
    if (start < first)
        start = first;
    while (start < n_frames && !path->frames[start].node)
        start++;
    if (start < n_frames)
        node = path->frames[start].node;
    for (uint32_t i = start; i-- > first;) {
        struct unwind_frame *frame = &path->frames[i];
        node = node ? cct_child_sig(tree, node, frame->pc, frame->module ? frame->module->ref : 0) : 0;
        frame->node = node;
    }
    return node;
}

uint32_t cct_insert_sig(struct cct_tree *tree, struct unwind_path *path)
{
    return cct_insert_from_sig(tree, path, 0);
}

struct arena_hit *cct_hit_sig(struct cct_tree *tree, uint32_t node, const struct cct_key *key, uint64_t count,
                              uint64_t weight)
{
    struct arena_node *owner = node_at_sig(node);
    struct arena_hit *hit = NULL;
    for (uint32_t ref = owner->hits; ref && !hit;) {
        struct arena_hit *candidate = arena_record_sig(ref);
        if (candidate->var == key->var && candidate->event == key->event && candidate->class == key->class &&
            candidate->flags == key->flags && candidate->metrics == key->metrics && candidate->pattern == key->pattern)
            hit = candidate;
        ref = candidate->next;
    }
    if (!hit) {
        hit = arena_reserve_sig(&tree->hits, ARENA_HITS, tree->thread, sizeof *hit);
        if (!hit)
            return NULL;
        hit->var = key->var;
        hit->event = key->event;
        hit->class = key->class;
        hit->flags = key->flags;
        hit->metrics = key->metrics;
        hit->pattern = key->pattern;
        hit->next = owner->hits;
        arena_publish_sig(&tree->hits);
        /* Other threads that free blocks of this path walk the list. */
        __atomic_store_n(&owner->hits, arena_ref_sig(hit), __ATOMIC_RELEASE);
    }
    atomic_fetch_add_explicit(&hit->count, count, memory_order_relaxed);
    if (weight)
        atomic_fetch_add_explicit(&hit->weight, weight, memory_order_relaxed);
    return hit;
}

/* Whether there is room for offsets and lines: the last quarter of the arena is for samples. */
static bool has_room_sig(void)
{
    const struct arena_header *header = arena_header_sig();
    return atomic_load_explicit(&header->n_chunks, memory_order_relaxed) <=
           header->chunk_limit - header->chunk_limit / 4;
}

/* Makes room for more offsets; returns how many the hit can now keep. */
static uint32_t offsets_grow_sig(struct cct_tree *tree, struct arena_hit *hit, uint32_t capacity)
{
    uint32_t n_values = arena_offsets_next(capacity);
    if (!has_room_sig())
        return capacity;
    struct arena_offsets *record = arena_reserve_sig(&tree->offsets, ARENA_OFFSETS, tree->thread,
                                                     sizeof *record + n_values * sizeof record->values[0]);
    if (!record)
        return capacity;
    record->n_values = n_values;
    record->next = hit->offsets;
    arena_publish_sig(&tree->offsets);
    __atomic_store_n(&hit->offsets, arena_ref_sig(record), __ATOMIC_RELEASE);
    return arena_offsets_capacity(n_values);
}

/* Where the hit keeps offset number slot: number 0 in the hit itself, later ones in further records. */
static _Atomic uint64_t *offset_slot_sig(struct arena_hit *hit, uint32_t slot)
{
    if (slot == 0)
        return &hit->first_offset;
    for (uint32_t ref = hit->offsets; ref;) {
        struct arena_offsets *record = arena_record_sig(ref);
        uint32_t first = arena_offsets_capacity(record->n_values) - record->n_values;
        if (slot >= first)
            return &record->values[slot - first];
        ref = record->next;
    }
    return NULL;
}

void cct_offset_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t offset_bytes)
{
    uint64_t n = atomic_load_explicit(&hit->n_offsets, memory_order_relaxed), slot = n;
    const struct arena_offsets *newest = hit->offsets ? arena_record_sig(hit->offsets) : NULL;
    uint32_t capacity = arena_offsets_capacity(newest ? newest->n_values : 0);
    if (n >= capacity && capacity < ARENA_OFFSETS_MAX)
        capacity = offsets_grow_sig(tree, hit, capacity);
    /* no room for all: offset n is kept with probability capacity / (n + 1), in place of a random other */
    if (n >= capacity)
        slot = (((n + 1) * 0x9e3779b97f4a7c15u ^ offset_bytes * 0xbf58476d1ce4e5b9u) >> 20) % (n + 1);
    _Atomic uint64_t *kept = slot < capacity ? offset_slot_sig(hit, (uint32_t)slot) : NULL;
    if (kept)
        atomic_store_explicit(kept, offset_bytes, memory_order_relaxed);
    atomic_store_explicit(&hit->n_offsets, n + 1, memory_order_release);
}

static void lines_add_sig(struct arena_lines *lines, uint64_t place)
{
    unsigned hash = pattern_place_hash(place);
    atomic_fetch_add_explicit(&lines->slots[pattern_place_slot(place)], 1, memory_order_relaxed);
    if (lines->n_words)
        atomic_fetch_or_explicit(&lines->bits[hash / 64], UINT64_C(1) << hash % 64, memory_order_relaxed);
}

/* Counts a sample that keeps the pace of those before. */
static void lines_follow_sig(struct arena_lines *lines, uint64_t line)
{
    int64_t step = (int64_t)(line - atomic_load_explicit(&lines->line, memory_order_relaxed));
    int64_t change = step - atomic_load_explicit(&lines->step, memory_order_relaxed);
    uint64_t span = atomic_load_explicit(&lines->last_line, memory_order_relaxed) -
                    atomic_load_explicit(&lines->first_line, memory_order_relaxed);
    uint64_t distance = change < 0 ? -(uint64_t)change : (uint64_t)change;
    distance = distance >= span ? distance - span : distance;
    if (distance < span / 8 || (distance <= span && span - distance < span / 8))
        atomic_fetch_add_explicit(&lines->n_paced, 1, memory_order_relaxed);
    atomic_store_explicit(&lines->line, line, memory_order_relaxed);
    atomic_store_explicit(&lines->step, step, memory_order_relaxed);
}

/* Starts the count of lines of a hit that still keeps the places of all its samples. */
static void lines_begin_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t line)
{
    uint32_t n_words = pattern_has_footprint(hit->pattern) ? ARENA_LINES_WORDS : 0;
    struct arena_lines *lines = has_room_sig() ? arena_reserve_sig(&tree->lines, ARENA_LINES, tree->thread,
                                                                   sizeof *lines + n_words * sizeof lines->bits[0])
                                               : NULL;
    if (!lines)
        return;
    lines->n_words = n_words;
    atomic_store_explicit(&lines->first_line, line, memory_order_relaxed);
    atomic_store_explicit(&lines->last_line, line, memory_order_relaxed);
    atomic_store_explicit(&lines->line, line, memory_order_relaxed);
    for (uint32_t slot = 0; slot < ARENA_OFFSETS_MAX; slot++) {
        const _Atomic uint64_t *kept = offset_slot_sig(hit, slot);
        if (kept)
            lines_add_sig(lines, atomic_load_explicit(kept, memory_order_relaxed));
    }
    arena_publish_sig(&tree->lines);
    __atomic_store_n(&hit->lines, arena_ref_sig(lines), __ATOMIC_RELEASE);
}

void cct_line_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t address, uint64_t offset_bytes)
{
    uint64_t place = pattern_place(address, offset_bytes), line = address / PATTERN_LINE_BYTES;
    bool is_kept = pattern_has_contrast(hit->pattern) || pattern_has_footprint(hit->pattern);
    if (is_kept && atomic_load_explicit(&hit->n_offsets, memory_order_relaxed) == ARENA_OFFSETS_MAX)
        lines_begin_sig(tree, hit, line);
    cct_offset_sig(tree, hit, place);
    struct arena_lines *lines = hit->lines ? arena_record_sig(hit->lines) : NULL;
    if (!lines)
        return;
    lines_add_sig(lines, place);
    lines_follow_sig(lines, line);
    if (line < atomic_load_explicit(&lines->first_line, memory_order_relaxed))
        atomic_store_explicit(&lines->first_line, line, memory_order_relaxed);
    if (line > atomic_load_explicit(&lines->last_line, memory_order_relaxed))
        atomic_store_explicit(&lines->last_line, line, memory_order_relaxed);
}

struct arena_place *cct_place_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned cpu)
{
    struct arena_thread *thread = arena_record_sig(tree->thread);
    uint64_t hash = (var ^ (uint64_t)cpu << 48 ^ (uint64_t)event << 40) * 0x9e3779b97f4a7c15u;
    uint32_t *bucket = &thread->places[hash >> 56];
    struct arena_place *place = NULL;
    for (uint32_t ref = *bucket; ref; ref = place->next) {
        place = arena_record_sig(ref);
        if (place->var == var && place->cpu == cpu && place->event == event) {
            atomic_fetch_add_explicit(&place->count, 1, memory_order_relaxed);
            return place;
        }
    }
    place =
        arena_reserve_sig(&tree->places, ARENA_PLACES, tree->thread, arena_place_bytes(arena_header_sig()->n_homes));
    if (!place)
        return NULL;
    place->var = var;
    place->cpu = (uint16_t)cpu;
    place->event = event;
    atomic_store_explicit(&place->count, 1, memory_order_relaxed);
    place->next = *bucket;
    arena_publish_sig(&tree->places);
    __atomic_store_n(bucket, arena_ref_sig(place), __ATOMIC_RELEASE);
    return place;
}

/* Gives the thread its ring of pages and enters it into the list of all. NULL where there is no room. */
static struct arena_pages *pages_new_sig(struct cct_tree *tree, struct arena_thread *thread)
{
    struct arena_header *header = arena_header_sig();
    struct arena_pages *ring =
        has_room_sig() ? arena_reserve_sig(&tree->pages, ARENA_PAGES, tree->thread, sizeof *ring) : NULL;
    if (!ring)
        return NULL;
    arena_publish_sig(&tree->pages);
    uint32_t ref = arena_ref_sig(ring), first = atomic_load_explicit(&header->pages, memory_order_relaxed);
    do
        ring->next = first;
    while (!atomic_compare_exchange_weak_explicit(&header->pages, &first, ref, memory_order_release,
                                                  memory_order_relaxed));
    thread->pages = ref;
    return ring;
}

void cct_page_sig(struct cct_tree *tree, const struct arena_place *place, const struct arena_page *page)
{
    struct arena_thread *thread = arena_record_sig(tree->thread);
    struct arena_pages *ring = thread->pages ? arena_record_sig(thread->pages) : pages_new_sig(tree, thread);
    uint64_t head = ring ? atomic_load_explicit(&ring->head, memory_order_relaxed) : 0;
    if (!ring || head - atomic_load_explicit(&ring->tail, memory_order_acquire) >= ARENA_PAGES_MAX)
        return;
    struct arena_page *slot = &ring->pages[head % ARENA_PAGES_MAX];
    *slot = *page;
    slot->place = arena_ref_sig(place);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

bool cct_sketch_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned bin)
{
    struct arena_thread *thread = arena_record_sig(tree->thread);
    uint64_t hash = (var ^ (uint64_t)event << 40) * 0x9e3779b97f4a7c15u;
    uint32_t *bucket = &thread->sketches[(hash >> 56) % ARENA_SKETCH_BUCKETS];
    struct arena_sketch *sketch = NULL;
    for (uint32_t ref = *bucket; ref; ref = sketch->next) {
        sketch = arena_record_sig(ref);
        if (sketch->var == var && sketch->event == event) {
            atomic_fetch_add_explicit(&sketch->bins[bin], 1, memory_order_relaxed);
            return true;
        }
    }
    sketch = arena_reserve_sig(&tree->sketches, ARENA_SKETCHES, tree->thread, sizeof *sketch);
    if (!sketch)
        return false;
    sketch->var = var;
    sketch->event = event;
    atomic_store_explicit(&sketch->bins[bin], 1, memory_order_relaxed);
    sketch->next = *bucket;
    arena_publish_sig(&tree->sketches);
    *bucket = arena_ref_sig(sketch);
    return true;
}

/* The thread's record of the reach in a variable with bins of 2^shift bytes or more, NULL when there is none. */
static struct arena_reach *reach_find_sig(uint32_t ref, uint64_t var, unsigned shift)
{
    while (ref) {
        struct arena_reach *reach = arena_record_sig(ref);
        if (reach->var == var && reach->shift >= shift)
            return reach;
        ref = reach->next;
    }
    return NULL;
}

static struct arena_reach *reach_new_sig(struct cct_tree *tree, uint32_t *bucket, uint64_t var, unsigned shift)
{
    struct arena_reach *reach =
        has_room_sig() ? arena_reserve_sig(&tree->reaches, ARENA_REACHES, tree->thread, sizeof *reach) : NULL;
    if (!reach)
        return NULL;
    reach->var = var;
    reach->shift = (uint8_t)shift;
    reach->next = *bucket;
    atomic_store_explicit(&reach->first_offset, UINT64_MAX, memory_order_relaxed);
    arena_publish_sig(&tree->reaches);
    __atomic_store_n(bucket, arena_ref_sig(reach), __ATOMIC_RELEASE);
    return reach;
}

bool cct_reach_sig(struct cct_tree *tree, const struct arena_hit *hit, const struct reach_sample *sample,
                   uint64_t block_bytes)
{
    struct arena_thread *thread = arena_record_sig(tree->thread);
    uint32_t *bucket = &thread->reaches[hit->var * 0x9e3779b97f4a7c15u >> 56];
    unsigned shift = reach_shift(sample->offset < block_bytes ? block_bytes : sample->offset + 1);
    struct arena_reach *reach = reach_find_sig(*bucket, hit->var, shift);
    if (!reach && atomic_load_explicit(&hit->count, memory_order_relaxed) < CCT_REACH_LEAST)
        return true;
    if (!reach)
        reach = reach_new_sig(tree, bucket, hit->var, shift);
    if (reach)
        reach_add(reach, sample);
    return reach;
}
