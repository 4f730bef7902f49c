/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation events: walks the call path of each allocation, enters it in the thread's allocation tree, and keeps the
 * object map up to date. Runs inside the program's malloc: only our own locks, no malloc, no stdio. */
#include "runtime/allocs/alloc-events.h"

#include <fcntl.h>
#include <string.h>

#include "runtime/events/events.h"
#include "runtime/objmap/objmap.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/python.h"
#include "runtime/record/sample-path.h"
#include "runtime/record/sample.h"

/* What does not change from call to call. */
static struct {
    bool is_drained; /* rings of events are emptied before blocks change */
} any;

static bool sink_ready(void)
{
    struct thread_state *self = thread_self_sig();
    if (!self)
        return process_start_hook() && thread_adopt_sig();
    return !self->in_hook && process_is_ours_sig();
}

/* Walks the path at site, unless it is the one in path. */
static void walk_site(struct thread_state *self, const struct alloc_site *site, struct unwind_path *path)
{
    uint32_t generation = loadmap_generation_sig();
    if (unwind_is_same_sig(site->pc, site->sp, site->fp, &self->bounds, generation, path))
        return;
    struct unwind_start start = {.pc = site->pc, .known = (uint64_t)1 << UNWIND_FP | (uint64_t)1 << UNWIND_SP};
    start.gpr[UNWIND_FP] = site->fp;
    start.gpr[UNWIND_SP] = site->sp;
    struct unwind_bounds bounds = self->bounds;
    struct objmap_block block;
    if ((site->sp < bounds.low || site->sp >= bounds.high) && objmap_find_sig(self->reader, site->sp, &block)) {
        bounds.alt_low = block.start;
        bounds.alt_high = block.end;
    }
    (void)unwind_walk_sig(&start, &bounds, loadmap_find_code_sig, generation, path);
}

void alloc_events_walk_hook(struct thread_state *self, const struct alloc_site *site)
{
    walk_site(self, site, &self->alloc_path);
}

/* Node of the native call path, 0 when the arena is full. */
static uint32_t native_node(struct thread_state *self, const struct alloc_site *site)
{
    const struct unwind_path *path = &self->alloc_path;
    alloc_events_walk_hook(self, site);
    while (path->stop == UNWIND_NO_TABLE && path->n_frames && path->frames[path->n_frames - 1].module &&
           loadmap_await_table_sig(path->frames[path->n_frames - 1].module))
        alloc_events_walk_hook(self, site);
    uint32_t node = path->n_frames && path->n_reused == path->n_frames ? path->frames[0].node : 0;
    return node ? node : cct_insert_sig(&self->allocs, &self->alloc_path);
}

/* Node of the allocation's call path, 0 when the arena is full. */
static uint32_t path_node(struct thread_state *self, const struct alloc_site *site)
{
    return python_path_hook(self, native_node(self, site));
}

/* The path of node, of self's allocation tree, goes on where the work was opened that self does. */
static uint32_t worked_for(struct thread_state *self, const struct thread_work *work, uint32_t node)
{
    bool is_early;
    uint32_t opened = work_node_sig(self, work, &self->allocs, &self->alloc_path, &is_early);
    return opened ? cct_created_sig(&self->allocs, node, opened) : node;
}

uint32_t alloc_events_creator(struct thread_state *self, const struct alloc_site *site)
{
    const struct arena_header *header = arena_header_sig();
    const struct thread_work *work = work_of_sig(self);
    if (self->in_hook || self->ending || !header)
        return 0;
    self->in_hook = 1;
    uint32_t node = path_node(self, site);
    node = node && self->alloc_path.stop == UNWIND_COMPLETE
               ? cct_child_sig(&self->allocs, node, header->placeholders[PLACEHOLDER_CREATED] + 1,
                               header->libhpcrun_module)
               : 0;
    node = node && work ? worked_for(self, work, node) : node;
    self->in_hook = 0;
    return node;
}

#define TASK_PATHS_MAX 4096 /* of a thread: a recursion may make each of its tasks on a path of its own */
#define TASK_LEVELS_MAX 6

/* The task that self runs, whose creator this is, or the one that made it, and so on, was made at pc: its creator; the
 * given one where there are too many levels. 0: none was made there. */
static uint32_t made_at(uint32_t creator, uintptr_t pc)
{
    uint32_t level = creator;
    for (unsigned i = 0; i < TASK_LEVELS_MAX; i++) {
        const struct arena_node *node = arena_record_sig(level);
        uint64_t outer = node->flags & NODE_CREATED ? node->ip : 0;
        if (outer && node->parent)
            node = arena_record_sig(node->parent);
        if (node->ip == pc)
            return level;
        if (!outer || outer > UINT32_MAX)
            return 0;
        level = (uint32_t)outer;
    }
    return creator;
}

/* Walks the path at site, from the task on that self runs. */
static uint32_t task_node(struct thread_state *self, const struct alloc_site *site)
{
    struct unwind_path *path = &self->task_path;
    if (!self->regions.n_task_paths)
        path->n_frames = 0; /* those of another thread, or none */
    walk_site(self, site, path);
    if (path->stop != UNWIND_COMPLETE)
        return 0;
    uint32_t n_cut = path->n_cut;
    task_cut_sig(self, path);
    if (path->n_cut != n_cut)
        path->n_reused = 0;
    return cct_insert_sig(&self->allocs, path);
}

static uint32_t task_creator(struct thread_state *self, const struct alloc_site *site, uint32_t outer)
{
    const struct thread_work *work = work_of_sig(self);
    const char *position = self->allocs.nodes.position;
    uint32_t node = task_node(self, site);
    if (node && outer)
        node = cct_created_sig(&self->allocs, node, outer);
    else if (node && work)
        node = worked_for(self, work, node);
    self->regions.n_task_paths += self->allocs.nodes.position != position;
    return node;
}

uint32_t alloc_events_task_creator(struct thread_state *self, const struct alloc_site *site)
{
    uint32_t outer = task_creator_sig(self), known = outer ? made_at(outer, site->pc) : 0;
    int saved_errno;
    if (known)
        return known;
    if (self->regions.n_task_paths >= TASK_PATHS_MAX || self->in_hook || self->ending || !arena_header_sig() ||
        python_trust_sig() != PYTHON_NONE || !alloc_wrap_work_enter(&saved_errno))
        return outer;
    self->in_hook = 1;
    uint32_t node = task_creator(self, site, outer);
    self->in_hook = 0;
    alloc_wrap_work_leave(saved_errno);
    return node;
}

/* Adds to a counter that other threads may add to. is_alone: objmap_is_alone(). */
static inline void add(_Atomic uint64_t *counter, uint64_t n, bool is_alone)
{
    if (is_alone)
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Counts a block at its allocation path. The hit for frees is made at the same time, directly after it, so that any
 * thread finds it later without changing links. */
static void count_alloc(struct thread_state *self, uint64_t var, uint64_t n_blocks, uint64_t n_bytes)
{
    uint32_t node = var_key_b(var);
    struct arena_node *owner = arena_record_sig(node);
    struct arena_hit *hit = owner->hits ? arena_record_sig(owner->hits) : NULL;
    bool is_alone = objmap_is_alone();
    if (hit && hit->event == HIT_EVENT_ALLOC && hit->var == var) {
        add(&hit->count, n_blocks, is_alone);
        add(&hit->weight, n_bytes, is_alone);
    } else {
        struct cct_key key = {.event = HIT_EVENT_FREE, .var = var};
        if (!hit)
            (void)cct_hit_sig(&self->allocs, node, &key, 0, 0);
        key.event = HIT_EVENT_ALLOC;
        (void)cct_hit_sig(&self->allocs, node, &key, n_blocks, n_bytes);
    }
    struct arena_header *header = arena_header_sig();
    add(&header->n_blocks_recorded, n_blocks, is_alone);
    add(&header->bytes_recorded, n_bytes, is_alone);
}

/* Adds to one of the two hits of a variable's allocation path, from any thread. In a child of fork, paths of inherited
 * blocks have no hits: these blocks belong to its parent. */
static void count_at_path(uint64_t var, uint8_t event, uint64_t n_blocks, uint64_t n_bytes)
{
    enum var_kind kind = var_key_kind(var);
    if (kind != VAR_HEAP && kind != VAR_MMAP)
        return;
    bool is_alone = objmap_is_alone();
    const struct arena_node *owner = arena_record_sig(var_key_b(var));
    for (uint32_t ref = __atomic_load_n(&owner->hits, __ATOMIC_ACQUIRE); ref;) {
        struct arena_hit *hit = arena_record_sig(ref);
        if (hit->event == event) {
            add(&hit->count, n_blocks, is_alone);
            add(&hit->weight, n_bytes, is_alone);
            return;
        }
        ref = hit->next;
    }
}

/* How many blocks a recorded one stands for. */
static uint64_t blocks_of(const struct objmap_block *block)
{
    uint64_t n_bytes = block->end - block->start;
    return block->weight_bytes == n_bytes ? 1 : block->weight_bytes / n_bytes; /* a division takes its time */
}

/* Counts a block whose release was missed: once another block is in its place, it is gone. While it is being resized,
 * another thread may get its place before the end of the call is reported. */
static void count_dropped(const struct objmap_block *block)
{
    enum var_kind kind = var_key_kind(block->var);
    if ((kind == VAR_HEAP || kind == VAR_MMAP) &&
        !(atomic_load_explicit(&block->flags, memory_order_relaxed) & OBJMAP_RESIZING))
        atomic_fetch_add_explicit(&arena_header_sig()->n_freed_unseen, blocks_of(block), memory_order_relaxed);
    count_at_path(block->var, HIT_EVENT_FREE, blocks_of(block), block->weight_bytes);
}

/* Samples that waited for the allocator's result can be attributed now. */
static void settle_pending(struct thread_state *self)
{
    if (self->ending || !sample_has_parked_sig(self))
        return;
    self->tree_busy = 1;
    atomic_thread_fence(memory_order_seq_cst); /* the ending thread sets ending, then reads tree_busy */
    if (!self->ending)
        sample_resolve_parked_sig(self);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->tree_busy = 0;
}

/* The path of a block that a pool announces ends in the function that it called: readers see from that that a pool
 * allocated it. */
static uint32_t path_node_at(struct thread_state *self, uintptr_t at, const struct alloc_site *site)
{
    uint32_t node = path_node(self, site);
    if (node && at >= OBJMAP_POOL_LAYER)
        node = cct_child_sig(&self->allocs, node, (uintptr_t)locus_pool_alloc_event + 1,
                             arena_header_sig()->libhpcrun_module);
    return node;
}

static uintptr_t without_layer(uintptr_t at)
{
    return at >= OBJMAP_POOL_LAYER ? at - OBJMAP_POOL_LAYER : at;
}

/* The variable at an address before a block is recorded there: a pool's block lies in another block. */
static uint64_t var_before(const struct thread_state *self, uintptr_t at)
{
    struct objmap_block block;
    if (objmap_find_sig(self->reader, at, &block) || objmap_find_sig(self->reader, without_layer(at), &block))
        return block.var;
    return var_key(VAR_UNKNOWN, 0, UNKNOWN_NO_BLOCK);
}

/* Blocks that are too large for a note and below the threshold have a record, so that addresses in them are found; but
 * it names only the site, as a note would, and they are not counted. */
static bool has_site_only(size_t n_bytes)
{
    return n_bytes < arena_header_sig()->min_bytes && small_sites_sig() && !arena_header_sig()->sample_bytes;
}

/* The size from which blocks have a record. */
static uint64_t recorded_from(void)
{
    const struct arena_header *header = arena_header_sig();
    return header->min_bytes > SMALL_BYTES_MAX && has_site_only(SMALL_BYTES_MAX) ? SMALL_BYTES_MAX : header->min_bytes;
}

static void record_site(struct thread_state *self, uintptr_t at, size_t n_bytes, const struct alloc_site *site)
{
    uint32_t ref = small_site_hook(self, n_bytes, site);
    uintptr_t start = without_layer(at);
    if (!ref)
        return;
    uint64_t var = var_key(VAR_SMALL, 0, ref);
    if (block_changes_are_wanted_hook())
        block_changes_announce_hook(self, start, start + n_bytes, var_before(self, at));
    (void)objmap_insert_hook(at, n_bytes, var, self->ref, n_bytes);
}

static void record_counted(struct thread_state *self, enum var_kind kind, uintptr_t at, size_t n_bytes, double weight,
                           const struct alloc_site *site)
{
    const _Atomic uintptr_t *slot = objmap_warm_sig(at, at + n_bytes);
    uint32_t node = path_node_at(self, at, site);
    objmap_warm_more_sig(slot, at, at + n_bytes);
    if (!node)
        return;
    uint64_t n_blocks = weight > 1 ? (uint64_t)(weight + 0.5) : 1;
    uint64_t weight_bytes = n_blocks * n_bytes;
    uint64_t var = var_key(kind, 0, node);
    uintptr_t start = without_layer(at);
    if (block_changes_are_wanted_hook())
        block_changes_announce_hook(self, start, start + n_bytes, var_before(self, at));
    if (objmap_insert_hook(at, n_bytes, var, self->ref, weight_bytes))
        count_alloc(self, var, n_blocks, weight_bytes);
    DEBUG_NOTE_SIG(DEBUG_BLOCKS, 1, "block", {"at", at, NULL}, {"bytes", n_bytes, NULL}, {"path", node, NULL});
}

/* at: the address in its layer. */
static void record_block(struct thread_state *self, enum var_kind kind, uintptr_t at, size_t n_bytes, double weight,
                         const struct alloc_site *site)
{
    self->in_hook = 1;
    if (has_site_only(n_bytes))
        record_site(self, at, n_bytes, site);
    else
        record_counted(self, kind, at, n_bytes, weight, site);
    self->in_hook = 0;
    settle_pending(self);
}

static uintptr_t in_layer(enum alloc_kind kind, const void *p)
{
    return (uintptr_t)p + (kind == ALLOC_POOL ? OBJMAP_POOL_LAYER : 0);
}

static void sink_alloc(enum alloc_kind kind, void *p, size_t n_bytes, double weight, const struct alloc_site *site)
{
    struct thread_state *self = thread_self_sig();
    if (kind == ALLOC_MMAP || kind == ALLOC_SHM || kind == ALLOC_BRK)
        small_forget_hook((uintptr_t)p, n_bytes);
    if (self)
        record_block(self, kind == ALLOC_HEAP || kind == ALLOC_POOL ? VAR_HEAP : VAR_MMAP, in_layer(kind, p), n_bytes,
                     weight, site);
}

static bool sink_enter(void)
{
    struct thread_state *self = thread_self_sig();
    if (!self || self->in_hook || !process_is_ours_sig())
        return false;
    self->in_allocator = 1;
    return true;
}

static void sink_made(void *p, size_t n_bytes, const struct alloc_site *site)
{
    struct thread_state *self = thread_self_sig();
    if (!self)
        return;
    self->in_hook = 1;
    if (has_site_only(n_bytes))
        record_site(self, (uintptr_t)p, n_bytes, site);
    else
        record_counted(self, VAR_HEAP, (uintptr_t)p, n_bytes, 1, site);
    self->in_hook = 0;
    self->in_allocator = 0;
    settle_pending(self);
}

static void sink_small(void *p, size_t n_bytes, const struct alloc_site *site)
{
    struct thread_state *self = site && sink_ready() ? thread_self_sig() : NULL;
    small_alloc_hook(self, p, n_bytes, site);
}

static void sink_small_note(void *p, size_t n_bytes, uint64_t cells)
{
    struct thread_state *self = thread_self_sig();
    small_known_hook(self && sink_ready() ? self : NULL, p, n_bytes, cells);
}

static bool sink_maybe_recorded(const void *p)
{
    enum start_filter_says says = objmap_maybe_start_sig((uintptr_t)p);
    if (says == START_FILTER_ONE) {
        __builtin_prefetch((const char *)p - 2 * sizeof(size_t)); /* where most allocators keep what free needs */
        (void)objmap_warm_sig((uintptr_t)p, (uintptr_t)p + 1);
    }
    return says != START_FILTER_NONE;
}

/* Announces that a block that may be recorded at start is about to be released: other threads may have accessed it and
 * not yet read their records. False when no block is recorded there, which is found out without a lock; a thread that
 * is not registered cannot look it up. Where nobody wants to know and the filter is nearly sure, the lock costs less
 * than the search. */
static bool announce_release(uintptr_t start)
{
    const struct thread_state *self = thread_self_sig();
    struct objmap_block block;
    if (!self || (!block_changes_are_wanted_hook() && objmap_maybe_start_sig(start) == START_FILTER_ONE))
        return true;
    if (!objmap_find_sig(self->reader, start, &block) || block.start != start)
        return false;
    block_changes_announce_hook(self, without_layer(start), without_layer(start) + (block.end - block.start),
                                block.var);
    return true;
}

/* Records in a ring without signals are of accesses before now, and must be attributed to the blocks that exist now. */
static void drain_faults(void)
{
    struct thread_state *self = thread_self_sig();
    if (self && process_is_ours_sig())
        events_drain_all_sig(self);
}

/* A mapping that is cut in the middle continues as two blocks. */
static void cut_one(const struct objmap_block *block, uint64_t bytes_removed, void *context)
{
    const uintptr_t *cut = context; /* start and end */
    uintptr_t start = block->start > cut[0] ? block->start : cut[0];
    uintptr_t end = block->end < cut[1] ? block->end : cut[1];
    block_changes_announce_hook(thread_self_sig(), without_layer(start), without_layer(start) + (end - start),
                                block->var);
    uint64_t n_blocks = blocks_of(block);
    bool is_whole = bytes_removed >= block->end - block->start;
    if (block->start < cut[0] && cut[1] < block->end)
        count_at_path(block->var, HIT_EVENT_ALLOC, n_blocks, 0);
    count_at_path(block->var, HIT_EVENT_FREE, is_whole ? n_blocks : 0, n_blocks * bytes_removed);
}

/* Removes blocks that a pool has handed out of memory that is now gone. */
static void cut_pools(uintptr_t start, uintptr_t end)
{
    uintptr_t cut[2] = {start + OBJMAP_POOL_LAYER, end + OBJMAP_POOL_LAYER};
    if (objmap_has_pools_sig())
        objmap_cut_hook(cut[0], cut[1], cut_one, cut);
}

/* --- blocks that come and go too often --- */

#define CHURN_BLOCKS 1024  /* in a series */
#define CHURN_SERIES 12    /* so many in a row before anything changes */
#define CHURN_PER_S 250000 /* released blocks per second of the thread's CPU time; one costs about 200 ns */

static _Atomic uint64_t raised_bytes; /* what alloc_wrap_raise was told last; 0: nothing */

/* Records of blocks that come and go as fast as this take more than their share of the program's time, and say less
 * than the notes of small ones: so the smallest of them become small ones. Each step doubles the size, until what is
 * left comes seldom enough. Not in Python, whose lines only a record has.  ctx: hook */
static void raise_threshold(void)
{
    struct arena_header *header = arena_header_sig();
    uint64_t raised = atomic_load(&raised_bytes), from = raised ? raised : header->min_bytes, to = 2 * from;
    if (to > header->raise_most || !small_sites_sig() || python_trust_sig() != PYTHON_NONE ||
        !atomic_compare_exchange_strong(&raised_bytes, &raised, to))
        return;
    atomic_store(&header->raised_bytes, to);
    alloc_wrap_raise(to);
}

__attribute__((noinline, cold)) static void end_churn_series(struct thread_churn *churn)
{
    const uint64_t ns_at_most = (uint64_t)CHURN_BLOCKS * 1000000000u / CHURN_PER_S;
    struct arena_header *header = arena_header_sig();
    uint64_t now_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID); /* 0: a sandbox forbids reading it */
    uint64_t n_made = atomic_load_explicit(&header->n_blocks_recorded, memory_order_relaxed);
    /* a tree that is given up frees as fast, but then nobody makes blocks */
    bool is_fast = churn->since_ns && now_ns && now_ns - churn->since_ns < ns_at_most &&
                   n_made - churn->n_made >= CHURN_BLOCKS / 2;
    churn->since_ns = now_ns;
    churn->n_made = n_made;
    churn->n_blocks = 0;
    churn->n_fast = is_fast ? churn->n_fast + 1 : 0;
    if (churn->n_fast < CHURN_SERIES)
        return;
    churn->n_fast = 0;
    raise_threshold();
}

/* Counts the release of a block of malloc whose record might have been spared. */
static inline void count_churn(struct thread_state *self, const struct objmap_block *removed)
{
    if (removed->end - removed->start < ARENA_RAISE_BYTES && ++self->churn.n_blocks >= CHURN_BLOCKS)
        end_churn_series(&self->churn);
}

static void sink_release(enum alloc_kind kind, void *p)
{
    struct thread_state *self = thread_self_sig();
    struct objmap_block removed;
    if (kind == ALLOC_POOL && objmap_maybe_start_sig(in_layer(kind, p)) == START_FILTER_NONE)
        return;
    drain_faults();
    if (!process_is_ours_sig() || !announce_release(in_layer(kind, p)) ||
        !objmap_remove_hook(in_layer(kind, p), &removed))
        return;
    count_at_path(removed.var, HIT_EVENT_FREE, blocks_of(&removed), removed.weight_bytes);
    DEBUG_NOTE_SIG(DEBUG_BLOCKS, 2, "released", {"at", removed.start, NULL},
                   {"bytes", removed.end - removed.start, NULL});
    if (kind != ALLOC_POOL)
        cut_pools(removed.start, removed.end);
    if (self && kind == ALLOC_HEAP)
        count_churn(self, &removed);
}

/* A block of a table has no pool's blocks in it where there are no pools. */
static bool sink_release_quick(void *p)
{
    struct thread_state *self = thread_self_sig();
    struct objmap_block removed;
    if (!self || !process_is_ours_sig() || block_changes_are_wanted_hook() || objmap_has_pools_sig())
        return false;
    if (any.is_drained)
        events_drain_all_sig(self);
    if (!objmap_near_remove_hook((uintptr_t)p, &removed))
        return false;
    count_at_path(removed.var, HIT_EVENT_FREE, 1, removed.weight_bytes);
    DEBUG_NOTE_SIG(DEBUG_BLOCKS, 2, "released", {"at", removed.start, NULL},
                   {"bytes", removed.end - removed.start, NULL});
    count_churn(self, &removed);
    return true;
}

static bool sink_resize_begin(void *p)
{
    drain_faults();
    return process_is_ours_sig() && objmap_flag_hook((uintptr_t)p, true);
}

static void sink_resize_done(void *old_p, void *new_p, size_t n_bytes, const struct alloc_site *site)
{
    struct thread_state *self = thread_self_sig();
    struct objmap_block old;
    enum var_kind kind = VAR_HEAP;
    /* Another thread may own the old address by now; then its record is not the flagged one. */
    if (self && objmap_find_sig(self->reader, (uintptr_t)old_p, &old) &&
        atomic_load_explicit(&old.flags, memory_order_relaxed) & OBJMAP_RESIZING) {
        /* The copying out of it was sampled, too. */
        (void)objmap_flag_hook((uintptr_t)old_p, false);
        settle_pending(self);
        kind = var_key_kind(old.var) == VAR_MMAP ? VAR_MMAP : VAR_HEAP;
        sink_release(ALLOC_HEAP, old_p);
    }
    if (self && new_p && site && n_bytes >= recorded_from())
        record_block(self, kind, (uintptr_t)new_p, n_bytes, 1, site);
}

static void sink_resize_failed(void *old_p)
{
    (void)objmap_flag_hook((uintptr_t)old_p, false);
}

static void sink_unmapped(void *p, size_t n_bytes)
{
    drain_faults();
    uintptr_t cut[2] = {(uintptr_t)p, (uintptr_t)p + n_bytes};
    if (!process_is_ours_sig())
        return;
    objmap_cut_hook(cut[0], cut[1], cut_one, cut);
    cut_pools(cut[0], cut[1]);
}

static void sink_inside(bool entering)
{
    struct thread_state *self = thread_self_sig();
    if (!self)
        return;
    self->in_allocator = entering;
    if (!entering)
        settle_pending(self);
}

static void sink_mapped_file(void *p, size_t n_bytes, int fd, const struct alloc_site *site)
{
    char path[ARENA_PATH_MAX];
    (void)site;
    if (!descriptors_path_sig(fd, path, sizeof path))
        return;
    uint32_t name = 0;
    if (arena_shared_begin_sig()) {
        name = arena_shared_string_sig(path);
        arena_shared_end_sig();
    }
    struct thread_state *self = thread_self_sig();
    if (name && self)
        (void)objmap_insert_hook((uintptr_t)p, n_bytes, var_key(VAR_FILE, 0, name), self->ref, n_bytes);
}

/* A program announces a jitdump by mapping it: .../jit-PID.dump. The companion reads it. */
static void sink_mapped_code(int fd)
{
    struct arena_header *header = arena_header_sig();
    char path[ARENA_PATH_MAX];
    if (!descriptors_path_sig(fd, path, sizeof path))
        return;
    size_t len = strlen(path);
    const char *slash = strrchr(path, '/');
    if (!slash || strncmp(slash + 1, "jit-", 4) != 0 || strcmp(path + len - 5, ".dump") != 0)
        return;
    atomic_store_explicit(&header->has_jitdump, 0, memory_order_relaxed);
    memcpy(header->jitdump, path, len + 1);
    atomic_store_explicit(&header->has_jitdump, 1, memory_order_release);
}

/* The structures that were being changed when the code was left are not used again: the whole object map, and the
 * thread's trees. */
static bool sink_abandoned(uintptr_t frame, uintptr_t here)
{
    struct thread_state *self = thread_self_sig();
    if (!self || !process_is_ours_sig() || (here && !thread_is_on_own_stack(self, frame, here)))
        return false;
    if (objmap_abandon_hook())
        arena_log_sig("a signal handler jumped out of an allocation, or ended its thread, while the block was being "
                      "recorded: from then on no blocks are recorded");
    block_changes_abandon_hook();
    small_abandon_hook(self);
    if (here && (self->in_hook || self->tree_busy))
        thread_renew(self);
    return true;
}

static void sink_skipped(enum alloc_skip reason)
{
    struct arena_header *header = arena_header_sig();
    if (header && reason < 8)
        atomic_fetch_add_explicit(&header->n_alloc_unrecorded[reason], 1, memory_order_relaxed);
}

bool alloc_events_prepare(void)
{
    const struct arena_header *header = arena_header_sig();
    objmap_on_drop(count_dropped);
    return objmap_init_hook(header->min_bytes < 1024 || header->sample_bytes ? 14 : 16);
}

void alloc_events_connect(void)
{
    static struct alloc_sink sink = {
        .ready = sink_ready,
        .alloc = sink_alloc,
        .maybe_recorded = sink_maybe_recorded,
        .release = sink_release,
        .resize_begin = sink_resize_begin,
        .resize_done = sink_resize_done,
        .resize_failed = sink_resize_failed,
        .unmapped = sink_unmapped,
        .inside = sink_inside,
        .enter = sink_enter,
        .made = sink_made,
        .release_quick = sink_release_quick,
        .mapped_file = sink_mapped_file,
        .mapped_code = sink_mapped_code,
        .skipped = sink_skipped,
        .small = sink_small,
        .small_note = sink_small_note,
        .abandoned = sink_abandoned,
    };
    struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; i < header->n_events; i++)
        any.is_drained |= (header->events[i].flags & EVENT_DRAINED) != 0;
    sink.filter = objmap_start_filter_sig();
    if (header->has_small_sites && small_init_hook())
        sink.small_sites = small_sites_sig();
    python_find();
    alloc_wrap_connect(&sink, recorded_from(), header->sample_bytes);
    if (!process_is_attached_sig()) /* there, nothing is found by the loader's order */
        alloc_wrap_owners(header->allocator_owner);
}

void alloc_events_end(void)
{
    struct arena_header *header = arena_header_sig();
    struct objmap_stats stats = objmap_stats_sig();
    atomic_store(&header->n_retired_pending_max, stats.n_retired_pending_max);
    atomic_store(&header->n_blocks_live, stats.n_live);
}
