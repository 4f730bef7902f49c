/* SPDX-License-Identifier: BSD-3-Clause */
/* The sites of small blocks: how they are distinguished, and their call paths. The key of a site is only its return
 * address as long as all its allocations come by one call path. When a second path is seen, it becomes an inner site:
 * its blocks are then distinguished by the next return address outwards as well. The unwind rows say where on the stack
 * that address lies: this is the site's hop, which the wrappers follow by themselves. Paths are compared at the first
 * allocations of a site and later now and then. Runs inside the program's malloc. */
#include "runtime/allocs/alloc-events.h"
#include "runtime/objmap/small.h"
#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/thread.h"

#define CHECKS 16     /* so many first allocations of a site have their path compared */
#define CHECKS_MANY 4 /* ... and of a site that is made after MANY_SITES others, most of which are cold */
#define MANY_SITES 1000
#define CHECKS_SURE 24    /* after so many with one path, nearly all earlier ones had it too */
#define DEEPEN_UNTIL 8192 /* sites; with more than this, no site is divided further */
#define LOCK_TRIES 1000
#define TURNS_MAX 16 /* sites of one slot that are searched */
#define RECORDS_AT_ONCE 64
#define CODES_EARLY 48     /* sites that are given codes when they are known; others when checks meet them: */
#define CODES_MET 64       /* so many when one does */
#define CODES_OFTEN 96     /* and so many at the second time; the rest at the fourth */
#define UNCODED_CHECK 8191 /* blocks of sites without codes from one check to the next */

struct site {
    struct small_slot *slot; /* if it has a hop, the site is an inner one */
    _Atomic uint8_t n_checks;
    uint8_t n_met;    /* checks by chance that met it, at most 4 */
    bool is_partial;  /* its path does not reach the outermost frame */
    bool is_mixed;    /* its path is the common part of several that cannot be distinguished */
    bool is_stale;    /* a module of its path is gone; another one may lie there */
    uint16_t next;    /* number of the next site that has had the slot, in a ring */
    uint64_t modules; /* bit id % 64 for each module of its path; 0: not worked out yet */
};

static struct {
    struct site *sites;         /* [SMALL_IDS] */
    uint32_t n_sites;           /* number of the newest site */
    _Atomic uint32_t n_uncoded; /* blocks of known sites without codes, about */
    _Atomic uint64_t spare; /* reserved records: reference of the first one << 32 | number; changed by single stores */
    const struct thread_state *_Atomic owner; /* of the lock for all that is written here and in the slots */
} table;

bool small_init_hook(void)
{
    table.sites = zone_pages_sig(SMALL_IDS * sizeof *table.sites);
    return table.sites && small_shadow_init_hook();
}

/* The current frame on the way outwards. */
struct site_caller {
    struct small_caller frame;
    unsigned depth; /* number of return addresses in its key */
};

static bool lock(const struct thread_state *self)
{
    const struct thread_state *nobody = NULL;
    for (int tries = 0; tries < LOCK_TRIES; tries++, nobody = NULL)
        if (atomic_compare_exchange_weak_explicit(&table.owner, &nobody, self, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
        else if (nobody == self)
            return false;
    return false;
}

static void unlock(void)
{
    atomic_store_explicit(&table.owner, NULL, memory_order_release);
}

void small_abandon_hook(const struct thread_state *self)
{
    if (atomic_load_explicit(&table.owner, memory_order_relaxed) == self)
        unlock();
}

void small_fork_child_hook(void)
{
    unlock();
}

/* The slot with this key, else the free slot where it belongs; NULL when there is no room. */
static struct small_slot *slot_of(uint64_t key)
{
    struct small_slot *slots = small_state_sig()->slots;
    for (size_t i = 0; i < SMALL_PROBES; i++) {
        struct small_slot *slot = &slots[small_slot_at(key, i)];
        uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (!found || found == key)
            return slot;
    }
    return NULL;
}

static struct arena_site *record_of(unsigned id)
{
    uint32_t ref = small_ref_sig(id);
    return ref ? arena_record_sig(ref) : NULL;
}

static uint64_t path_of_node(uint32_t node)
{
    return var_key(VAR_HEAP, 0, node);
}

/* Goes one frame outwards; false when that leaves the thread's stack. */
static bool hop(struct site_caller *at, uint64_t by, const struct unwind_bounds *bounds)
{
    const struct small_stack stack = {bounds->low, bounds->high};
    at->depth++;
    return small_caller_next(&at->frame, by, &stack);
}

/* The hop for return address pc; 0 when there is none. */
static uint64_t hop_at(uintptr_t pc)
{
    struct unwind_hop hop;
    if (!unwind_hop_sig(pc, loadmap_find_code_sig, loadmap_generation_sig(), &hop) ||
        hop.cfa_offset % (int)sizeof(uintptr_t) || (!hop.is_from_fp && hop.cfa_offset <= 0))
        return 0;
    int fp_lowest = hop.is_from_fp ? INT16_MIN : -hop.cfa_offset;
    if (hop.has_fp && (hop.fp_offset % (int)sizeof(uintptr_t) || hop.fp_offset >= 0 || hop.fp_offset < fp_lowest))
        return 0;
    return SMALL_HOP | (hop.is_from_fp ? SMALL_HOP_IS_FROM_FP : 0) | (hop.has_fp ? SMALL_HOP_HAS_FP : 0) |
           (uint64_t)(uint16_t)hop.fp_offset << SMALL_HOP_FP_SHIFT |
           (uint64_t)(uint32_t)hop.cfa_offset << SMALL_HOP_CFA_SHIFT;
}

/* Number of the site that has the slot, 0 when it has none. The site's data is complete once its number is seen: a slot
 * that already has a key may get another number. */
static unsigned id_of(const struct small_slot *slot)
{
    return small_id_sig(atomic_load_explicit(&slot->cells, memory_order_acquire));
}

/* --- with the lock held --- */

/* Lets the wrappers handle allocations of [least, most] bytes at the site without coming here. */
static void open_slot(struct small_slot *slot, uint32_t least, uint32_t most)
{
    least = least ? least : 1;
    atomic_store_explicit(&slot->min_bytes, least, memory_order_relaxed);
    atomic_store_explicit(&slot->n_sizes, least > most ? 0 : most - least + 1, memory_order_release);
}

/* The site has been met often, or by chance, which is likelier the more it allocates: gives it a code. What a program
 * does first must not take them all. */
static void give_code(unsigned id, bool is_time)
{
    struct site *site = &table.sites[id];
    struct small_slot *slot = site->slot;
    if (is_time && site->n_met < 4)
        site->n_met++;
    small_code_hook(id, !is_time          ? CODES_EARLY
                        : site->n_met < 2 ? CODES_MET
                        : site->n_met < 4 ? CODES_OFTEN
                                          : SMALL_OTHER);
    if (id_of(slot) == id)
        atomic_store_explicit(&slot->cells, small_cells_sig(id), memory_order_release);
}

/* Makes all allocations at the site come here; by: its hop. */
static void close_slot(struct small_slot *slot, uint64_t by)
{
    bool is_plain = by & SMALL_HOP && !(by & SMALL_HOP_IS_FROM_FP);
    atomic_store_explicit(&slot->n_sizes, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->min_bytes, is_plain ? (uint32_t)(by >> SMALL_HOP_CFA_SHIFT) : 0, memory_order_release);
    atomic_store_explicit(&slot->hop, by, memory_order_release);
}

/* Records are reserved by the dozen: each time takes two system calls, and a program that starts has thousands of new
 * sites. Those that are left have no path, and nothing refers to them. */
static uint64_t reserve_records(void)
{
    uint64_t n = RECORDS_AT_ONCE;
    if (!arena_shared_begin_sig())
        return 0;
    const struct arena_site *records = arena_shared_reserve_sig(ARENA_SITES, n * sizeof *records);
    if (!records) /* near its end the arena may have room for one */
        records = arena_shared_reserve_sig(ARENA_SITES, (n = 1) * sizeof *records);
    arena_shared_end_sig();
    return records ? (uint64_t)arena_ref_sig(records) << 32 | n : 0;
}

static uint32_t make_record(uint32_t node, size_t n_bytes)
{
    uint64_t spare = atomic_load_explicit(&table.spare, memory_order_relaxed);
    if (node && !spare)
        spare = reserve_records();
    if (!node || !spare)
        return 0;
    uint32_t ref = (uint32_t)(spare >> 32);
    struct arena_site *record = arena_record_sig(ref);
    spare = (uint32_t)spare > 1 ? (uint64_t)arena_ref_sig(record + 1) << 32 | ((uint32_t)spare - 1) : 0;
    atomic_store_explicit(&table.spare, spare, memory_order_relaxed);
    atomic_store_explicit(&record->path, path_of_node(node), memory_order_relaxed);
    atomic_store_explicit(&record->min_bytes, (uint32_t)n_bytes, memory_order_relaxed);
    atomic_store_explicit(&record->max_bytes, (uint32_t)n_bytes, memory_order_relaxed);
    return ref;
}

/* Gives the slot a number of its own, and a record that describes the site. 0: no room. */
static unsigned add_site(struct thread_state *self, struct small_slot *slot, uint64_t key, uint32_t node,
                         size_t n_bytes)
{
    unsigned id = table.n_sites + 1;
    uint32_t ref = id < SMALL_IDS ? make_record(node, n_bytes) : 0;
    if (!ref)
        return 0;
    table.sites[id].slot = slot;
    unsigned now = id_of(slot);
    table.sites[id].next = (uint16_t)(now ? table.sites[now].next : id);
    if (now)
        table.sites[now].next = (uint16_t)id;
    table.sites[id].is_partial = self->alloc_path.stop != UNWIND_COMPLETE;
    table.sites[id].modules = 0;
    atomic_store_explicit(&small_state_sig()->refs[id], ref, memory_order_release);
    table.n_sites = id;
    close_slot(slot, 0);
    atomic_store_explicit(&slot->cells, small_cells_sig(id), memory_order_release);
    atomic_store_explicit(&slot->key, key, memory_order_release);
    return id;
}

/* The path of the frames further in than frame number first_different, as a node of its own below the root. */
static uint32_t common_node(struct thread_state *self, uint32_t first_different)
{
    const struct unwind_path *path = &self->alloc_path;
    uint32_t node = self->allocs.root;
    for (uint32_t i = first_different; i-- > 0 && node;)
        node = cct_child_sig(&self->allocs, node, path->frames[i].pc,
                             path->frames[i].module ? path->frames[i].module->ref : 0);
    return node;
}

/* Blocks allocated so far may have come by any of the paths: names them by the part that all paths have in common. */
static void keep_common(struct thread_state *self, unsigned id, uint32_t first_different)
{
    uint32_t node = common_node(self, first_different);
    if (node)
        atomic_store_explicit(&record_of(id)->path, path_of_node(node), memory_order_release);
    table.sites[id].modules = 0;
}

/* Whether the return addresses of the first n hops from at outwards are those of the path. */
static bool hops_hold(const struct thread_state *self, struct site_caller at, uint32_t n)
{
    const struct unwind_path *path = &self->alloc_path;
    for (uint32_t last = at.depth - 1 + n; at.depth - 1 < last;) {
        uint64_t by = hop_at(at.frame.pc);
        if (!by || !hop(&at, by, &self->bounds) || at.frame.pc != path->frames[at.depth - 1].pc)
            return false;
    }
    return true;
}

/* The hop of an inner site; 0 for other sites. */
static uint64_t hop_of(unsigned id)
{
    return atomic_load_explicit(&table.sites[id].slot->hop, memory_order_acquire);
}

static void make_inner(unsigned id, uint64_t by)
{
    close_slot(table.sites[id].slot, by);
}

/* The site has two paths, which differ from frame first_different on: from now on its blocks are distinguished up to
 * that frame. Returns the site of the block that showed this. at: the site's frame, number at->depth - 1 of the path;
 * is_sure: all earlier blocks came by one path. */
static unsigned tell_apart(struct thread_state *self, unsigned id, struct site_caller at, uint32_t first_different,
                           bool is_sure, size_t n_bytes)
{
    struct site *site = &table.sites[id];
    uint32_t n_hops = first_different + 1 - at.depth;
    site->is_mixed = first_different >= SMALL_DEPTH_MAX || first_different >= self->alloc_path.n_frames ||
                     table.n_sites + n_hops >= DEEPEN_UNTIL || !hops_hold(self, at, n_hops);
    if (site->is_mixed || !is_sure)
        keep_common(self, id, first_different);
    if (site->is_mixed)
        return id;
    uint32_t common = common_node(self, first_different);
    for (;;) {
        uint64_t by = hop_at(at.frame.pc);
        make_inner(id, by);
        if (!hop(&at, by, &self->bounds))
            return 0;
        struct small_slot *slot = slot_of(at.frame.key);
        if (!slot || atomic_load(&slot->key))
            return 0;
        bool is_last = at.depth > first_different;
        unsigned next = add_site(self, slot, at.frame.key,
                                 is_last ? cct_insert_sig(&self->allocs, &self->alloc_path) : common, n_bytes);
        if (is_last || !next)
            return next;
        id = next;
    }
}

/* Number of the first frame, from the innermost outwards, in which the thread's path and that of a node differ;
 * UINT32_MAX when they are the same. */
static uint32_t first_difference(const struct unwind_path *path, uint32_t ref)
{
    const struct arena_node *node = arena_record_sig(ref);
    for (uint32_t i = 0;; i++) {
        bool is_end = node->flags & NODE_ROOT;
        if (is_end || i == path->n_frames)
            return is_end && i == path->n_frames ? UINT32_MAX : i;
        const struct unwind_frame *frame = &path->frames[i];
        if (node->ip != frame->pc || node->module != (frame->module ? frame->module->ref : 0))
            return i;
        node = arena_record_sig(node->parent);
    }
}

/* The return addresses of the site's key now belong to other modules. Modules may take turns there, like plugins that
 * are loaded and unloaded, so a site that has had the slot before gets it again. */
static unsigned replace_site(struct thread_state *self, unsigned id, uint64_t key, size_t n_bytes)
{
    struct small_slot *slot = table.sites[id].slot;
    uint32_t node = cct_insert_sig(&self->allocs, &self->alloc_path);
    unsigned old = table.sites[id].next;
    for (int i = 0; i < TURNS_MAX && old != id && node; i++, old = table.sites[old].next) {
        if (atomic_load_explicit(&record_of(old)->path, memory_order_relaxed) != path_of_node(node))
            continue;
        close_slot(slot, 0);
        atomic_store_explicit(&slot->cells, small_cells_sig(old), memory_order_release);
        return old;
    }
    return add_site(self, slot, key, node, n_bytes);
}

/* Compares the thread's path, which is that of an allocation at this site, with the site's known path. */
static unsigned compare(struct thread_state *self, unsigned id, const struct site_caller *at, size_t n_bytes)
{
    struct site *site = &table.sites[id];
    struct arena_site *record = record_of(id);
    struct unwind_path *path = &self->alloc_path;
    uint32_t known = var_key_b(atomic_load_explicit(&record->path, memory_order_relaxed));
    uint32_t first = first_difference(path, known);
    if (first < at->depth && first < path->n_frames) /* another module now lies at this address */
        return replace_site(self, id, at->frame.key, n_bytes);
    if (path->stop != UNWIND_COMPLETE && !site->is_partial && !(site->is_stale && first < path->n_frames))
        return id;
    bool was_stale = site->is_stale;
    site->is_stale = false;
    if (first == UINT32_MAX)
        return id;
    if (site->is_mixed) {
        const struct arena_node *node = arena_record_sig(known);
        for (uint32_t i = 0; i < first; i++)
            node = arena_record_sig(node->parent);
        if (!(node->flags & NODE_ROOT)) /* the common part is shorter than was known */
            keep_common(self, id, first);
        return id;
    }
    if (site->is_partial && path->stop == UNWIND_COMPLETE) {
        uint32_t node = cct_insert_sig(&self->allocs, path);
        if (node)
            atomic_store_explicit(&record->path, path_of_node(node), memory_order_release);
        site->is_partial = !node;
        site->modules = 0;
        return id;
    }
    bool is_sure = site->n_checks >= (was_stale ? CHECKS : CHECKS_SURE);
    return tell_apart(self, id, *at, first, is_sure, n_bytes);
}

/* --- one allocation --- */

/* Whether the block goes to another of our wrappers, which knows its site better: operator new has called malloc. */
static bool is_for_wrapper(const struct unwind_path *path)
{
    const struct unwind_module *module = path->frames[0].module;
    const struct modtab_header *functions = module ? atomic_load_explicit(&module->table, memory_order_acquire) : NULL;
    if (path->n_frames < 2 || !functions ||
        !loadmap_is_own_sig(loadmap_find_sig(path->frames[1].pc), path->frames[1].pc))
        return false;
    int64_t func = modtab_find_func(functions, path->frames[0].pc - 1 - module->bias);
    return func >= 0 && alloc_wrap_is_new(module->bias + functions->base_vaddr + modtab_funcs(functions)[func].start);
}

/* Makes a site, unless it is of no interest; returns its number. */
static unsigned make_site(struct thread_state *self, const struct site_caller *at, const struct alloc_site *where,
                          size_t n_bytes)
{
    unsigned id = 0;
    alloc_events_walk_hook(self, where);
    uint32_t node = cct_insert_sig(&self->allocs, &self->alloc_path);
    if (!lock(self))
        return 0;
    struct small_slot *slot = slot_of(at->frame.key);
    if (slot && atomic_load(&slot->key)) {
        id = id_of(slot);
    } else if (slot && at->depth == 1 && is_for_wrapper(&self->alloc_path)) {
        close_slot(slot, SMALL_HOP_NESTED);
        atomic_store_explicit(&slot->key, at->frame.key, memory_order_release);
    } else if (slot) {
        id = add_site(self, slot, at->frame.key, node, n_bytes);
    }
    unlock();
    return id;
}

static void note_size(struct arena_site *record, uint32_t n_bytes)
{
    uint32_t least = atomic_load_explicit(&record->min_bytes, memory_order_relaxed);
    uint32_t most = atomic_load_explicit(&record->max_bytes, memory_order_relaxed);
    while (n_bytes < least && !atomic_compare_exchange_weak(&record->min_bytes, &least, n_bytes))
        ;
    while (n_bytes > most && !atomic_compare_exchange_weak(&record->max_bytes, &most, n_bytes))
        ;
}

static uint8_t checks_of(unsigned id)
{
    return id > MANY_SITES ? CHECKS_MANY : CHECKS;
}

/* Handles an allocation at a known site that the wrappers sent here: one of its first, one of another size, or one
 * whose path is due for a check. */
static unsigned update_site(struct thread_state *self, unsigned id, const struct site_caller *at,
                            const struct alloc_site *where, size_t n_bytes, bool is_time)
{
    struct site *site = &table.sites[id];
    uint8_t n_checks = atomic_load_explicit(&site->n_checks, memory_order_relaxed);
    struct arena_site *record = record_of(id);
    note_size(record, (uint32_t)n_bytes);
    if (is_time || n_checks < checks_of(id) || site->is_stale) {
        alloc_events_walk_hook(self, where);
        if (!lock(self))
            return id;
        unsigned now = compare(self, id, at, n_bytes);
        unlock();
        if (now != id)
            return now;
        if (n_checks < CHECKS_SURE)
            atomic_store_explicit(&site->n_checks, n_checks + 1, memory_order_relaxed);
    }
    if (n_checks + 1 >= checks_of(id) && lock(self)) {
        if (!hop_of(id)) {
            give_code(id, is_time);
            open_slot(site->slot, atomic_load(&record->min_bytes), atomic_load(&record->max_bytes));
        }
        unlock();
    }
    return id;
}

static uint32_t id_of_module(const struct arena_node *node)
{
    const struct arena_module *module = node->module ? arena_record_sig(node->module) : NULL;
    return module ? module->id : 0;
}

static uint64_t modules_of(uint32_t ref)
{
    uint64_t modules = 0;
    for (const struct arena_node *node = arena_record_sig(ref); !(node->flags & NODE_ROOT);
         node = arena_record_sig(node->parent))
        modules |= (uint64_t)1 << id_of_module(node) % 64;
    return modules;
}

/* Whether a module of the path is gone. */
static bool has_gone(uint32_t ref, const struct loadmap_gone *gone)
{
    const struct arena_node *node = arena_record_sig(ref);
    for (; !(node->flags & NODE_ROOT); node = arena_record_sig(node->parent)) {
        uint32_t id = id_of_module(node);
        if (id >= LOADMAP_IDS_MAX || gone->ids[id / 64] >> id % 64 & 1)
            return true;
    }
    return false;
}

/* Programs try plugins by the hundred, and unload most of them: few sites may be touched for each. */
static void close_stale(const struct loadmap_gone *gone)
{
    uint64_t modules = 0;
    for (unsigned i = 0; i < LOADMAP_IDS_MAX / 64; i++)
        modules |= gone->ids[i];
    for (unsigned id = 1; id <= table.n_sites; id++) {
        struct site *site = &table.sites[id];
        if (!site->modules)
            site->modules = modules_of(var_key_b(atomic_load(&record_of(id)->path)));
        if (!(site->modules & modules) || id_of(site->slot) != id ||
            !has_gone(var_key_b(atomic_load(&record_of(id)->path)), gone))
            continue;
        site->is_stale = true;
        close_slot(site->slot, 0); /* the hop of an inner site came from the module */
    }
}

void small_modules_gone_hook(struct thread_state *self)
{
    static struct loadmap_gone gone; /* under the lock; large for a stack */
    struct shield shield;
    if (!small_sites_sig())
        return;
    shield_raise_sig(&shield); /* a handler might jump out of this */
    if (lock(self)) {
        if (loadmap_find_gone_sig(&gone))
            close_stale(&gone);
        unlock();
    }
    shield_lower_sig(&shield);
}

static unsigned site_of(struct thread_state *self, const struct alloc_site *where, size_t n_bytes)
{
    struct small_state *small = small_state_sig();
    bool is_time = atomic_load_explicit(&small->sites.slots, memory_order_relaxed) == small->empty;
    struct site_caller at = {{where->pc, where->pc, where->sp, where->fp}, 1};
    const struct small_slot *first = slot_of(at.frame.key);
    if (first && atomic_load_explicit(&first->hop, memory_order_acquire) & SMALL_HOP_NESTED)
        return 0; /* the check is for the outer wrapper, which comes next */
    if (is_time)
        atomic_store_explicit(&small->sites.slots, small->slots, memory_order_relaxed);
    for (;;) {
        const struct small_slot *slot = slot_of(at.frame.key);
        if (!slot)
            return 0;
        if (!atomic_load_explicit(&slot->key, memory_order_acquire))
            return make_site(self, &at, where, n_bytes);
        unsigned id = id_of(slot);
        if (!id)
            return 0;
        uint64_t by = hop_of(id);
        if (!by)
            return update_site(self, id, &at, where, n_bytes, is_time);
        if (!hop(&at, by, &self->bounds))
            return id; /* a stack that the program has made: the common part of the paths of all its callers */
    }
}

/* Sets how far the wrappers may read the stack by themselves: the page that sp is in is mapped and, if sp is on the
 * thread's stack, so is the stack from there upwards. */
static void set_known_stack(const struct unwind_bounds *bounds, uintptr_t sp)
{
    const uintptr_t page_mask = 4095; /* for the smallest page size */
    if (sp >= bounds->low && sp < bounds->high)
        alloc_wrap_stack_is(sp & ~page_mask, bounds->high);
}

uint32_t small_site_hook(struct thread_state *self, size_t n_bytes, const struct alloc_site *site)
{
    if (!small_sites_sig())
        return 0;
    set_known_stack(&self->bounds, site->sp);
    unsigned id = site_of(self, site, n_bytes < UINT32_MAX ? n_bytes : UINT32_MAX);
    return id ? small_ref_sig(id) : 0;
}

void small_alloc_hook(struct thread_state *self, void *p, size_t n_bytes, const struct alloc_site *site)
{
    unsigned id = 0;
    if (!small_sites_sig())
        return;
    if (self && site) {
        self->in_hook = 1;
        set_known_stack(&self->bounds, site->sp);
        id = site_of(self, site, n_bytes);
        self->in_hook = 0;
    }
    small_note_hook(p, n_bytes, id);
}

void small_known_hook(struct thread_state *self, void *p, size_t n_bytes, uint64_t cells)
{
    small_note_cells_hook(p, n_bytes, cells);
    if (!(cells & SMALL_UNCODED))
        return;
    uint32_t n = atomic_load_explicit(&table.n_uncoded, memory_order_relaxed) + 1;
    atomic_store_explicit(&table.n_uncoded, n, memory_order_relaxed);
    if (n % UNCODED_CHECK != 0 || !self)
        return;
    struct shield shield;
    shield_raise_sig(&shield); /* a handler might jump out of this */
    if (lock(self)) {
        give_code(small_id_sig(cells), true);
        unlock();
    }
    shield_lower_sig(&shield);
}
