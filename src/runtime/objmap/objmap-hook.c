/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the object map: blocks begin, move and end. Runs inside the program's malloc. */
#include "runtime/objmap/objmap.h"

#include <unistd.h>

#include "runtime/own/own-call.h"

/* --- splay trees --- */

/* Splay trees of live blocks by their start (Sleator and Tarjan, top-down form). A search moves the record that it
 * found to the root, so a block that was just allocated is found at once when it is freed. Because searches change the
 * trees, the handler never walks them. Runs inside the program's malloc under the lock of the tree's shard. */

/* One step down to the left (start is smaller): returns the next node, after a rotation if two steps go the same way;
 * NULL at the end. */
static struct objmap_record *rotate_right(struct objmap_record *root, uintptr_t start)
{
    struct objmap_record *left = root->left;
    if (left && start < left->block.start) {
        root->left = left->right;
        left->right = root;
        return left;
    }
    return root;
}

static struct objmap_record *rotate_left(struct objmap_record *root, uintptr_t start)
{
    struct objmap_record *right = root->right;
    if (right && start > right->block.start) {
        root->right = right->left;
        right->left = root;
        return right;
    }
    return root;
}

/* Reorganises the tree so that its root is the record of start or a neighbour of it. */
static struct objmap_record *splay(struct objmap_record *root, uintptr_t start)
{
    struct objmap_record *smaller = NULL, *larger = NULL;
    struct objmap_record **smaller_end = &smaller, **larger_end = &larger;
    for (;;) {
        if (start < root->block.start) {
            root = rotate_right(root, start);
            if (!root->left)
                break;
            *larger_end = root;
            larger_end = &root->left;
            root = root->left;
        } else if (start > root->block.start) {
            root = rotate_left(root, start);
            if (!root->right)
                break;
            *smaller_end = root;
            smaller_end = &root->right;
            root = root->right;
        } else {
            break;
        }
    }
    *smaller_end = root->left;
    *larger_end = root->right;
    root->left = smaller;
    root->right = larger;
    return root;
}

/* Adds record; returns the record of the same start that it replaced, or NULL. */
static struct objmap_record *objmap_splay_insert_hook(struct objmap_record **root, struct objmap_record *record)
{
    struct objmap_record *old = *root ? splay(*root, record->block.start) : NULL;
    *root = record;
    record->left = NULL;
    record->right = NULL;
    if (!old)
        return NULL;
    record->left = old->left;
    record->right = old->right;
    if (old->block.start == record->block.start)
        return old;
    if (old->block.start < record->block.start) {
        record->left = old;
        old->right = NULL;
    } else {
        record->right = old;
        old->left = NULL;
    }
    return NULL;
}

/* The record that starts at start; it stays in the tree, at the root. NULL when there is none. */
static struct objmap_record *objmap_splay_find_hook(struct objmap_record **root, uintptr_t start)
{
    if (!*root)
        return NULL;
    *root = splay(*root, start);
    return (*root)->block.start == start ? *root : NULL;
}

/* Takes the root out of the tree and returns it. */
static struct objmap_record *objmap_splay_remove_root_hook(struct objmap_record **root)
{
    struct objmap_record *record = *root;
    if (!record->left) {
        *root = record->right;
    } else {
        /* Every record of the left tree is smaller: its largest becomes the root and has no right child. */
        *root = splay(record->left, record->block.start);
        (*root)->right = record->right;
    }
    return record;
}

/* --- the map --- */

/* The writing side of the object map: insert, remove, cut, flag, visit, fork. A block enters the page map first and its
 * splay tree last, and leaves in the opposite order: the thread that takes it out of the tree owns it, and no thread
 * can own a block that is not complete. Runs inside the program's malloc. */

static struct {
    void (*dropped)(const struct objmap_block *block);
} hooks;

/* What the calling thread is doing. The address of this variable marks the thread's locks as its own. */
static _Thread_local struct {
    pid_t fork_pid;     /* during fork: the process that called it */
    uint32_t is_inside; /* an operation */
} at __attribute__((tls_model("initial-exec")));

#define NESTED_WAIT_MS 100

/* One operation on the map. */
struct operation {
    struct objmap_cursor cursor;
    struct objmap_lock *wide; /* held, or NULL */
};

static inline __attribute__((always_inline)) bool begin(struct operation *operation)
{
    struct objmap_state *map = objmap_state_sig();
    operation->cursor.map = map;
    operation->cursor.owner = (uintptr_t)&at;
    operation->cursor.cache = NULL;
    operation->wide = NULL;
    if (!atomic_load_explicit(&map->ready, memory_order_acquire) || at.is_inside)
        return false;
    at.is_inside = 1;
    return true;
}

/* Called before an operation leaves the domain of start: fork waits for such an operation, so that no child inherits
 * half of one. False when the operation has to be given up. */
static bool begin_wide(struct operation *operation, uintptr_t start)
{
    unsigned shard = objmap_shard_index(operation->cursor.map, start);
    objmap_cursor_release_hook(&operation->cursor);
    struct objmap_lock *wide = &operation->cursor.map->wide[shard % OBJMAP_WIDE_LOCKS];
    if (!objmap_lock_hook(wide, operation->cursor.owner))
        return false;
    operation->wide = wide;
    return true;
}

static void finish(struct operation *operation)
{
    objmap_cursor_release_hook(&operation->cursor);
    if (operation->wide)
        objmap_unlock_hook(operation->wide);
    at.is_inside = 0;
}

/* Whether [start, end) is in more than one domain. */
static bool is_wide(const struct operation *operation, uintptr_t start, uintptr_t end)
{
    unsigned shift = operation->cursor.map->domain_shift;
    return start >> shift != (end - 1) >> shift;
}

/* Counters of a cache are written only under its lock; any thread may read them. */
static void count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

static void count_refused(const struct operation *operation)
{
    if (operation->cursor.cache)
        count(&operation->cursor.cache->n_refused);
}

static void count_live(struct objmap_cache *cache, int64_t change)
{
    int64_t n_live = atomic_load_explicit(&cache->n_live, memory_order_relaxed);
    atomic_store_explicit(&cache->n_live, n_live + change, memory_order_relaxed);
}

/* The splay tree of blocks that start there, with its lock taken; NULL when the lock cannot be taken. */
static struct objmap_record **hold_tree(struct operation *operation, uintptr_t start)
{
    const struct objmap_state *map = operation->cursor.map;
    int shard = objmap_cursor_hold_hook(&operation->cursor, start);
    if (shard < 0)
        return NULL;
    return &map->shards[shard].trees[objmap_tree_index(map, start)];
}

/* Maps everything of fixed size; untouched pages cost nothing. */
static bool map_tables(struct objmap_state *map)
{
    size_t node_bytes = sizeof(struct objmap_entry) << map->node_bits;
    map->top = objmap_pages_hook(node_bytes);
    map->shards = objmap_pages_hook(OBJMAP_SHARDS * sizeof *map->shards);
    _Atomic uint8_t *filter = objmap_pages_hook((size_t)OBJMAP_SHARDS << OBJMAP_FILTER_BITS);
    map->caches = objmap_pages_hook(OBJMAP_CACHES * sizeof *map->caches);
    map->readers = objmap_pages_hook(OBJMAP_READERS * sizeof *map->readers);
    uint64_t bytes = node_bytes + OBJMAP_SHARDS * sizeof *map->shards + ((size_t)OBJMAP_SHARDS << OBJMAP_FILTER_BITS) +
                     OBJMAP_CACHES * sizeof *map->caches + OBJMAP_READERS * sizeof *map->readers;
    atomic_fetch_add_explicit(&map->bytes_memory, bytes, memory_order_relaxed);
    if (!map->top || !map->shards || !filter || !map->caches || !map->readers)
        return false;
    if (map->granule_shift == 16) /* no block is smaller than a unit of these tables */
        map->near = objmap_pages_hook(OBJMAP_NEAR_REGIONS * sizeof *map->near);
    atomic_store(&map->filter.counts, filter);
    atomic_store_explicit(&map->filter.shift, map->domain_shift - OBJMAP_FILTER_BITS, memory_order_release);
    return true;
}

bool objmap_init_hook(unsigned granule_shift)
{
    struct objmap_state *map = objmap_state_sig();
    if (atomic_load_explicit(&map->ready, memory_order_acquire))
        return true;
    if ((granule_shift != 14 && granule_shift != 16) || atomic_load(&map->is_broken))
        return false;
    map->granule_shift = granule_shift;
    map->domain_shift = granule_shift + OBJMAP_DOMAIN_BITS;
    map->node_bits = (OBJMAP_ADDRESS_BITS - granule_shift - OBJMAP_LEAF_BITS) / 2;
    atomic_store(&map->epoch, 1);
    if (!map_tables(map))
        return false;
    atomic_store_explicit(&map->ready, true, memory_order_release);
    return true;
}

static struct objmap_edit edit_of(struct operation *operation, struct objmap_record *record)
{
    return (struct objmap_edit){.cursor = &operation->cursor, .record = record};
}

/* Takes the root of a tree out of it and the filter; the caller then owns it. */
static struct objmap_record *take_root(struct operation *operation, struct objmap_record **tree)
{
    struct objmap_record *record = objmap_splay_remove_root_hook(tree);
    objmap_filter_change(operation->cursor.map, record->block.start, false, objmap_is_alone());
    count_live(operation->cursor.cache, -1);
    return record;
}

/* Takes the record that starts at start out of its tree and the filter; the caller then owns it. */
static struct objmap_record *take_out(struct operation *operation, uintptr_t start)
{
    struct objmap_record **tree = hold_tree(operation, start);
    return tree && objmap_splay_find_hook(tree, start) ? take_root(operation, tree) : NULL;
}

/* Gives back a record that is in neither index. The lock of any cache will do; without one the record stays unused. */
static void retire_record(struct operation *operation, struct objmap_record *record)
{
    if (operation->cursor.cache)
        objmap_retire_hook(operation->cursor.cache, record, OBJMAP_CLASS_RECORD);
}

/* Removes an owned record from the page map and retires it. */
static void unlink_record(struct operation *operation, struct objmap_record *record)
{
    struct objmap_edit edit = edit_of(operation, record);
    objmap_pagemap_remove_hook(&edit);
    retire_record(operation, record);
}

void objmap_on_drop(void (*dropped)(const struct objmap_block *block))
{
    hooks.dropped = dropped;
}

/* Removes an owned record whose block was released without our noticing. */
static void drop_record(struct operation *operation, struct objmap_record *record)
{
    if (operation->cursor.cache)
        count(&operation->cursor.cache->n_replaced);
    if (hooks.dropped)
        hooks.dropped(&record->block);
    unlink_record(operation, record);
}

/* Last step of an insertion: from here on other threads may own the record. */
static void put_in(struct operation *operation, struct objmap_record *record)
{
    uintptr_t start = record->block.start;
    struct objmap_record **tree = hold_tree(operation, start);
    if (!tree)
        return;
    struct objmap_record *old = objmap_splay_insert_hook(tree, record);
    if (old) {
        drop_record(operation, old);
        return;
    }
    objmap_filter_change(operation->cursor.map, start, true, objmap_is_alone());
    count_live(operation->cursor.cache, 1);
}

static bool visit_overlap(struct objmap_visitor *visitor, struct objmap_record *record, uintptr_t base, uintptr_t end)
{
    (void)base;
    (void)end;
    if (record->block.start >= visitor->end || record->block.end <= visitor->start)
        return false;
    visitor->found_start = record->block.start;
    visitor->found_end = record->block.end;
    return true;
}

bool objmap_overlaps_hook(uintptr_t start, uintptr_t end)
{
    struct operation operation;
    struct objmap_visitor visitor = {.visit = visit_overlap, .start = start, .end = end};
    if (!begin(&operation))
        return true;
    bool overlaps = objmap_pagemap_visit_hook(&operation.cursor, &visitor, start, end);
    finish(&operation);
    return overlaps;
}

/* Takes the next block that overlaps [*start, end) out of its tree; NULL when none is left. *start moves beyond blocks
 * that another thread is adding or removing at this moment. */
static struct objmap_record *take_overlap(struct operation *operation, uintptr_t *start, uintptr_t end)
{
    while (*start < end) {
        struct objmap_visitor visitor = {.visit = visit_overlap, .start = *start, .end = end};
        if (!objmap_pagemap_visit_hook(&operation->cursor, &visitor, *start, end))
            return NULL;
        struct objmap_record *record = take_out(operation, visitor.found_start);
        if (record && record->block.end > *start)
            return record;
        if (record)
            put_in(operation, record);
        *start = visitor.found_end;
    }
    return NULL;
}

/* Removes records in the range of a new block, which a missed release has left behind. */
static void clear_range(struct operation *operation, uintptr_t start, uintptr_t end)
{
    struct objmap_record *record;
    while ((record = take_overlap(operation, &start, end)))
        drop_record(operation, record);
}

/* Enters a record that no other thread knows yet. On failure the record is given back. */
static bool enter_record(struct operation *operation, struct objmap_edit *edit)
{
    enum objmap_result result = objmap_pagemap_add_hook(edit);
    if (result == OBJMAP_CONFLICT) {
        objmap_pagemap_remove_hook(edit);
        clear_range(operation, edit->record->block.start, edit->record->block.end);
        edit->force = true;
        result = objmap_pagemap_add_hook(edit);
    }
    if (result == OBJMAP_OK) {
        put_in(operation, edit->record);
        return true;
    }
    objmap_pagemap_remove_hook(edit);
    retire_record(operation, edit->record);
    count_refused(operation);
    return false;
}

/* False when too many retired items wait for a reader, even after giving the reader some time to leave. */
static bool may_grow(struct operation *operation)
{
    for (unsigned n_tries = 0; n_tries < 64; n_tries++) {
        if (atomic_load_explicit(&operation->cursor.map->n_pending, memory_order_relaxed) < OBJMAP_PENDING_LIMIT)
            return true;
        objmap_reclaim_hook(operation->cursor.cache);
        own_call_sig(SYS_sched_yield);
    }
    return false;
}

static struct objmap_record *new_record(struct operation *operation, uintptr_t start, uintptr_t end)
{
    struct objmap_record *record =
        operation->cursor.cache ? objmap_take_hook(operation->cursor.cache, OBJMAP_CLASS_RECORD) : NULL;
    if (!record) {
        count_refused(operation);
        return NULL;
    }
    record->block.start = start;
    record->block.end = end;
    atomic_store_explicit(&record->block.flags, 0, memory_order_relaxed);
    return record;
}

static bool insert(uintptr_t start, size_t n_bytes, uint64_t var, uint32_t thread, uint64_t weight_bytes,
                   uint32_t flags)
{
    const uintptr_t limit = (uintptr_t)1 << OBJMAP_ADDRESS_BITS;
    struct operation operation;
    if (!begin(&operation))
        return false;
    bool done = false;
    struct objmap_record *record = NULL;
    bool is_in_range = start < limit && n_bytes <= limit - start;
    bool may_begin = !is_in_range || !is_wide(&operation, start, start + n_bytes) || begin_wide(&operation, start);
    if (may_begin && objmap_cursor_hold_hook(&operation.cursor, start) >= 0 && is_in_range && may_grow(&operation))
        record = new_record(&operation, start, start + n_bytes);
    else
        count_refused(&operation);
    if (record) {
        if (start >= OBJMAP_POOL_LAYER && !objmap_has_pools_sig())
            atomic_store(&operation.cursor.map->has_pools, true);
        record->block.var = var;
        record->block.thread = thread;
        record->block.weight_bytes = weight_bytes;
        atomic_store_explicit(&record->block.flags, flags, memory_order_relaxed);
        struct objmap_edit edit = edit_of(&operation, record);
        done = enter_record(&operation, &edit);
    }
    finish(&operation);
    return done;
}

static bool insert_moved(const struct objmap_block *block)
{
    return insert(block->start, block->end - block->start, block->var, block->thread, block->weight_bytes,
                  atomic_load_explicit(&block->flags, memory_order_relaxed));
}

bool objmap_insert_hook(uintptr_t start, size_t n_bytes, uint64_t var, uint32_t thread, uint64_t weight_bytes)
{
    if (n_bytes == 0 || objmap_near_insert_hook(start, n_bytes, var, thread, weight_bytes))
        return true;
    objmap_near_move_hook(start, start + n_bytes, insert_moved);
    return insert(start, n_bytes, var, thread, weight_bytes, 0);
}

static void copy_block(struct objmap_block *to, const struct objmap_block *from)
{
    to->start = from->start;
    to->end = from->end;
    to->var = from->var;
    to->thread = from->thread;
    to->weight_bytes = from->weight_bytes;
    atomic_store_explicit(&to->flags, atomic_load_explicit(&from->flags, memory_order_relaxed), memory_order_relaxed);
}

bool objmap_remove_hook(uintptr_t start, struct objmap_block *removed)
{
    struct operation operation;
    if (objmap_near_remove_hook(start, removed))
        return true;
    if (start >> OBJMAP_ADDRESS_BITS || !begin(&operation))
        return false;
    struct objmap_record **tree = hold_tree(&operation, start);
    struct objmap_record *record = tree ? objmap_splay_find_hook(tree, start) : NULL;
    if (record)
        objmap_warm_more_sig(objmap_slot_of_small(operation.cursor.map, &record->block), start, record->block.end);
    if (record && is_wide(&operation, start, record->block.end))
        record = begin_wide(&operation, start) ? take_out(&operation, start) : NULL;
    else if (record)
        record = take_root(&operation, tree);
    if (record) {
        if (removed)
            copy_block(removed, &record->block);
        unlink_record(&operation, record);
    }
    finish(&operation);
    return record != NULL;
}

/* Enters [start, end), what remains of an owned block. In slots from keep_below on it replaces the block. */
static void enter_rest(struct operation *operation, const struct objmap_record *whole, uintptr_t start, uintptr_t end,
                       uintptr_t keep_below)
{
    if (start >= end)
        return;
    struct objmap_record *rest = new_record(operation, start, end);
    if (!rest)
        return;
    uint64_t n_blocks = whole->block.weight_bytes / (whole->block.end - whole->block.start);
    copy_block(&rest->block, &whole->block);
    rest->block.start = start;
    rest->block.end = end;
    rest->block.weight_bytes = n_blocks * (end - start);
    struct objmap_edit edit = edit_of(operation, rest);
    edit.force = true;
    edit.replaces = whole;
    edit.keep_below = keep_below;
    enter_record(operation, &edit);
}

/* Cuts [start, end) out of an owned block. Readers find the remainders before the block disappears. */
static uint64_t cut_record(struct operation *operation, struct objmap_record *record, uintptr_t start, uintptr_t end)
{
    const struct objmap_block *block = &record->block;
    uintptr_t low = block->start > start ? block->start : start;
    uintptr_t high = block->end < end ? block->end : end;
    enter_rest(operation, record, high, block->end, low > block->start ? low : 0);
    enter_rest(operation, record, block->start, low, 0);
    return high - low;
}

void objmap_cut_hook(uintptr_t start, uintptr_t end,
                     void (*gone)(const struct objmap_block *block, uint64_t bytes_removed, void *ctx), void *ctx)
{
    const uintptr_t limit = (uintptr_t)1 << OBJMAP_ADDRESS_BITS;
    struct operation operation;
    objmap_near_move_hook(start, end, insert_moved);
    if (start >= end || start >= limit || !begin(&operation))
        return;
    struct objmap_record *record;
    uintptr_t from = start, to = end < limit ? end : limit;
    bool may_begin = begin_wide(&operation, start);
    while (may_begin && (record = take_overlap(&operation, &from, to))) {
        uint64_t n_bytes = cut_record(&operation, record, start, to);
        if (gone)
            gone(&record->block, n_bytes, ctx);
        from = record->block.end > from ? record->block.end : from;
        unlink_record(&operation, record);
    }
    finish(&operation);
}

bool objmap_flag_hook(uintptr_t start, bool resizing)
{
    struct operation operation;
    if (objmap_near_flag_hook(start, resizing))
        return true;
    if (start >> OBJMAP_ADDRESS_BITS || !begin(&operation))
        return false;
    struct objmap_record **tree = hold_tree(&operation, start);
    struct objmap_record *record = tree ? objmap_splay_find_hook(tree, start) : NULL;
    if (record && resizing)
        atomic_fetch_or(&record->block.flags, OBJMAP_RESIZING);
    else if (record)
        atomic_fetch_and(&record->block.flags, ~OBJMAP_RESIZING);
    finish(&operation);
    return record != NULL;
}

/* Visits each block once: in the slot or region in which it starts. */
static bool visit_start(struct objmap_visitor *visitor, struct objmap_record *record, uintptr_t base, uintptr_t end)
{
    if (record->block.start >= base && record->block.start < end)
        visitor->call(&record->block, visitor->ctx);
    return false;
}

void objmap_visit_hook(void (*visit)(const struct objmap_block *block, void *ctx), void *ctx)
{
    struct operation operation;
    objmap_near_move_hook(0, (uintptr_t)1 << OBJMAP_ADDRESS_BITS, insert_moved);
    if (!begin(&operation))
        return;
    struct objmap_visitor visitor = {.visit = visit_start, .call = visit, .ctx = ctx};
    objmap_pagemap_visit_hook(&operation.cursor, &visitor, 0, (uintptr_t)1 << OBJMAP_ADDRESS_BITS);
    finish(&operation);
}

/* Lock number index of all locks, in the order in which they are taken; NULL after the last one. */
static struct objmap_lock *lock_of_all(struct objmap_state *map, unsigned index)
{
    if (index < OBJMAP_WIDE_LOCKS)
        return &map->wide[index];
    index -= OBJMAP_WIDE_LOCKS;
    return index < OBJMAP_CACHES ? &map->caches[index].lock : NULL;
}

/* If a handler forks while it interrupts an operation of the same thread, other threads may wait for the locks of that
 * operation, so we do not wait for them for long. */
void objmap_fork_prepare_hook(void)
{
    struct objmap_state *map = objmap_state_sig();
    struct objmap_lock *lock;
    uintptr_t owner = (uintptr_t)&at | OBJMAP_FORKING;
    if (!atomic_load_explicit(&map->ready, memory_order_acquire))
        return;
    unsigned wait_ms = at.is_inside ? NESTED_WAIT_MS : OBJMAP_WAIT_MS;
    for (unsigned i = 0; (lock = lock_of_all(map, i)); i++)
        (void)objmap_lock_wait_hook(lock, owner, wait_ms);
    at.fork_pid = (pid_t)own_pid_sig();
}

/* In the child, a lock that another thread holds is never given back, because that thread does not exist there. */
void objmap_fork_done_hook(void)
{
    struct objmap_state *map = objmap_state_sig();
    struct objmap_lock *lock;
    if (!atomic_load_explicit(&map->ready, memory_order_acquire))
        return;
    bool is_child = (pid_t)own_pid_sig() != at.fork_pid;
    /* Threads that were in a lookup do not exist in the child; their slots would keep memory for ever. */
    if (is_child && !at.is_inside)
        objmap_forget_readers_hook();
    for (unsigned i = 0; (lock = lock_of_all(map, i)); i++) {
        uintptr_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);
        if (is_child)
            atomic_store(&lock->n_waiting, 0);
        if (owner == ((uintptr_t)&at | OBJMAP_FORKING))
            objmap_unlock_hook(lock);
        else if (is_child && owner && owner != (uintptr_t)&at)
            objmap_break(map);
    }
}

bool objmap_abandon_hook(void)
{
    bool was_inside = at.is_inside;
    if (was_inside)
        objmap_break(objmap_state_sig());
    at.is_inside = 0;
    return was_inside;
}
