/* SPDX-License-Identifier: BSD-3-Clause */
/* Call trees in the arena: see cct.h. Runs in the signal handler (sample tree) and in malloc hooks (allocation tree).
 */
#include "runtime/cct.h"

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

/* Top-down splay: brings the node with the key, or its last neighbour on the way, to the root. root is not 0. */
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

bool cct_init_sig(struct cct_tree *tree, enum arena_kind kind, uint32_t thread, bool with_partial)
{
    *tree = (struct cct_tree){.kind = kind, .thread = thread};
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

uint32_t cct_insert_from_sig(struct cct_tree *tree, struct unwind_path *path, uint32_t first)
{
    uint32_t n_frames = path->n_frames;
    uint32_t start = n_frames - path->n_reused;
    uint32_t node = path->stop == UNWIND_COMPLETE || !tree->partial ? tree->below : tree->below_partial;
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
            candidate->flags == key->flags && candidate->metrics == key->metrics)
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

/* Makes room for more offsets; returns how many the hit can keep now. The last quarter of the arena is for samples. */
static uint32_t offsets_grow_sig(struct cct_tree *tree, struct arena_hit *hit, uint32_t capacity)
{
    const struct arena_header *header = arena_header_sig();
    uint32_t n_values = arena_offsets_next(capacity);
    if (atomic_load_explicit(&header->n_chunks, memory_order_relaxed) > header->chunk_limit - header->chunk_limit / 4)
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

/* Where the hit keeps offset number slot: 0 in itself, the later ones in newer records. */
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
    /* more than there is room for: number n is kept with probability capacity / (n + 1), in place of any of them */
    if (n >= capacity)
        slot = (((n + 1) * 0x9e3779b97f4a7c15u ^ offset_bytes * 0xbf58476d1ce4e5b9u) >> 20) % (n + 1);
    _Atomic uint64_t *kept = slot < capacity ? offset_slot_sig(hit, (uint32_t)slot) : NULL;
    if (kept)
        atomic_store_explicit(kept, offset_bytes, memory_order_relaxed);
    atomic_store_explicit(&hit->n_offsets, n + 1, memory_order_release);
}

bool cct_place_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned cpu)
{
    struct arena_thread *thread = arena_record_sig(tree->thread);
    uint64_t hash = (var ^ (uint64_t)cpu << 48 ^ (uint64_t)event << 40) * 0x9e3779b97f4a7c15u;
    uint32_t *bucket = &thread->places[hash >> 56];
    struct arena_place *place = NULL;
    for (uint32_t ref = *bucket; ref; ref = place->next) {
        place = arena_record_sig(ref);
        if (place->var == var && place->cpu == cpu && place->event == event) {
            atomic_fetch_add_explicit(&place->count, 1, memory_order_relaxed);
            return true;
        }
    }
    place = arena_reserve_sig(&tree->places, ARENA_PLACES, tree->thread, sizeof *place);
    if (!place)
        return false;
    place->var = var;
    place->cpu = (uint16_t)cpu;
    place->event = event;
    atomic_store_explicit(&place->count, 1, memory_order_relaxed);
    place->next = *bucket;
    arena_publish_sig(&tree->places);
    __atomic_store_n(bucket, arena_ref_sig(place), __ATOMIC_RELEASE);
    return true;
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
