/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that the blocks of an action come from: one reserved range of addresses, so that a block of ours is known
 * by its address alone, whoever frees it. It is cut into units of 2 MiB. A large block has units of its own; small
 * blocks share one, in slots of one size, in the order in which they are made. What is known of a unit lies in a table
 * beside the range. See actions.h. Runs inside the program's malloc. */
#include "runtime/actions/actions.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define UNIT ((size_t)ACTION_HUGE)
#define UNITS_MAX ((size_t)1 << 19) /* a tebibyte of addresses */
#define UNITS_MIN ((size_t)1 << 8)
#define SHARES 16                    /* of the small blocks, by thread */
#define CLASSES 512                  /* sizes of slots */
#define FREE_SPANS 256               /* runs of units that were given back and not joined to others */
#define KEPT_MOST ((size_t)32 << 20) /* a larger block gives its memory back when it is freed, as malloc's do ... */
#define KEPT_ALL ((size_t)64 << 20)  /* ... and so do all when so much is kept */
#define LOOKS_MOST 8                 /* blocks that are looked at when they are freed; then every 2^n-th */
#define MAPPINGS_MAX 64
#define SLOT_ALIGNMENT 16

/* A unit; of the units of a large block the first one counts. */
struct unit {
    uint32_t n_units;    /* of a large block; 0: none begins here */
    uint32_t slot_bytes; /* of small ones; 0: a large one */
    uint32_t lead;       /* of the large one */
    uint16_t share, class;
    size_t n_bytes; /* of the large one */
};

/* Units that are free; kept: they are still mapped as a block of ours left them. */
struct span {
    uint32_t first, n;
    bool is_kept;
};

/* Small blocks of one size for some of the threads. A free slot holds the address of the next one. */
struct slots {
    void *free;
    uintptr_t next, end; /* of the unit that is being filled */
};

struct share {
    atomic_flag lock;
    struct slots classes[CLASSES];
};

static struct {
    uintptr_t base;
    size_t n_units, n_used; /* n_used: have been handed out at least once */
    struct unit *units;
    atomic_flag lock;
    struct span spans[FREE_SPANS];
    unsigned n_spans;
    size_t kept_bytes;
    _Atomic uint64_t n_made, n_freed;
    struct share *shares; /* [SHARES] */
    struct {
        uintptr_t start;
        size_t n_bytes;
    } mappings[MAPPINGS_MAX];
    _Atomic unsigned n_mappings;
    _Atomic unsigned n_threads;
} all;

static __thread uint8_t my_share __attribute__((tls_model("initial-exec"))); /* 1 + index, 0: none yet */

static void lock_hook(atomic_flag *lock)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
        (void)action_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void unlock_hook(atomic_flag *lock)
{
    atomic_flag_clear_explicit(lock, memory_order_release);
}

/* Pages of zeros, or -1. fixed: where; NULL: anywhere. */
static uintptr_t map_hook(const void *fixed, size_t n_bytes, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0) | (protection == PROT_NONE ? MAP_NORESERVE : 0);
    long start = action_call(SYS_mmap, (long)fixed, (long)n_bytes, protection, flags, -1, 0);
    return start < 0 && start > -4096 ? (uintptr_t)-1 : (uintptr_t)start;
}

void blocks_init_hook(void)
{
    size_t n = UNITS_MAX;
    uintptr_t start;
    while ((start = map_hook(NULL, (n + 1) * UNIT, PROT_NONE)) == (uintptr_t)-1 && n > UNITS_MIN)
        n /= 4;
    uintptr_t table = map_hook(NULL, n * sizeof *all.units + SHARES * sizeof *all.shares, PROT_READ | PROT_WRITE);
    if (start == (uintptr_t)-1 || table == (uintptr_t)-1)
        return;
    all.units = (struct unit *)table;
    all.shares = (struct share *)(table + n * sizeof *all.units);
    all.n_units = n;
    all.base = (start + UNIT - 1) & ~(UNIT - 1);
}

bool blocks_own_hook(const void *p)
{
    return (uintptr_t)p - all.base < all.n_units * UNIT;
}

static uint32_t unit_of(const void *p)
{
    return (uint32_t)(((uintptr_t)p - all.base) / UNIT);
}

/* --- units --- */

/* Takes n units, those of a kept span if one has that length; sets *is_kept then. UINT32_MAX: there are none. */
static uint32_t take_units(size_t n, bool *is_kept)
{
    uint32_t first = UINT32_MAX;
    lock_hook(&all.lock);
    for (unsigned i = all.n_spans; i-- > 0 && first == UINT32_MAX;) {
        struct span *span = &all.spans[i];
        if (span->is_kept ? span->n != n : span->n < n)
            continue;
        first = span->first;
        *is_kept = span->is_kept;
        all.kept_bytes -= span->is_kept ? n * UNIT : 0;
        span->first += (uint32_t)n;
        span->n -= (uint32_t)n;
        if (!span->n)
            *span = all.spans[--all.n_spans];
    }
    if (first == UINT32_MAX && all.n_units - all.n_used >= n) {
        *is_kept = false;
        first = (uint32_t)all.n_used;
        all.n_used += n;
    }
    unlock_hook(&all.lock);
    return first;
}

/* Gives units back; where there is no room to note them their addresses are lost. */
static void give_units(uint32_t first, size_t n, bool is_kept)
{
    uintptr_t start = all.base + first * UNIT;
    if (!is_kept)
        (void)map_hook((const void *)start, n * UNIT, PROT_NONE);
    lock_hook(&all.lock);
    for (unsigned i = 0; !is_kept && i < all.n_spans; i++) {
        struct span *span = &all.spans[i];
        if (span->is_kept || (span->first + span->n != first && first + n != span->first))
            continue;
        first = first < span->first ? first : span->first;
        n += span->n;
        *span = all.spans[--all.n_spans];
        i = (unsigned)-1; /* the longer one may touch another one */
    }
    if (all.n_spans < FREE_SPANS) {
        all.spans[all.n_spans++] = (struct span){.first = first, .n = (uint32_t)n, .is_kept = is_kept};
        all.kept_bytes += is_kept ? n * UNIT : 0;
    }
    unlock_hook(&all.lock);
}

static bool can_keep(size_t n_bytes)
{
    return n_bytes <= KEPT_MOST && all.n_spans < FREE_SPANS / 2 && all.kept_bytes + n_bytes <= KEPT_ALL;
}

/* --- large blocks --- */

static void *make_large(const struct action *action, size_t n_bytes, size_t alignment, bool is_zero)
{
    struct trial_effect *effect = action_effect_hook();
    bool is_kept = false;
    size_t lead = action->lead ? action->lead(atomic_fetch_add(&all.n_made, 1)) : 0;
    action_count(&effect->n_apart, lead % ACTION_PAGE != 0);
    lead = alignment ? (lead + alignment - 1) / alignment * alignment : lead;
    size_t n = (lead + n_bytes + UNIT - 1) / UNIT;
    uint32_t first = alignment <= UNIT && n <= all.n_units ? take_units(n, &is_kept) : UINT32_MAX;
    if (first == UINT32_MAX)
        return NULL;
    uintptr_t start = all.base + first * UNIT;
    if (!is_kept && !action_allowed_hook(
                        action_call(SYS_mprotect, (long)start, (long)(n * UNIT), PROT_READ | PROT_WRITE, 0, 0, 0))) {
        give_units(first, n, false);
        return NULL;
    }
    all.units[first] = (struct unit){.n_units = (uint32_t)n, .lead = (uint32_t)lead, .n_bytes = n_bytes};
    if (is_kept && is_zero)
        memset((void *)(start + lead), 0, n_bytes);
    if (action->ready)
        action->ready(start + lead, n_bytes);
    action_count(&effect->n_blocks, 1);
    action_count(&effect->n_bytes, n_bytes);
    return (void *)(start + lead);
}

/* Whether a block that is being freed is looked at: the first ones, and fewer and fewer of the others. */
static bool is_worth_a_look(void)
{
    uint64_t n = atomic_fetch_add_explicit(&all.n_freed, 1, memory_order_relaxed);
    return n < LOOKS_MOST || !(n & (n - 1));
}

static void free_large(uint32_t first)
{
    struct unit unit = all.units[first];
    const struct action *action = action_hook();
    uintptr_t start = all.base + first * UNIT;
    if (action->look && is_worth_a_look())
        action->look(start + unit.lead, unit.n_bytes);
    all.units[first] = (struct unit){0};
    give_units(first, unit.n_units, can_keep(unit.n_units * UNIT));
}

/* --- small blocks --- */

static struct share *share_of_thread(uint16_t *index)
{
    if (!my_share)
        my_share = (uint8_t)(1 + atomic_fetch_add_explicit(&all.n_threads, 1, memory_order_relaxed) % SHARES);
    *index = (uint16_t)(my_share - 1);
    return &all.shares[*index];
}

/* A new unit for slots; the share is locked. */
static bool refill(struct slots *slots, uint16_t share, uint16_t class, size_t slot_bytes)
{
    bool is_kept = false;
    uint32_t first = take_units(1, &is_kept);
    if (first == UINT32_MAX)
        return false;
    uintptr_t start = all.base + first * UNIT;
    if (is_kept ||
        !action_allowed_hook(action_call(SYS_mprotect, (long)start, (long)UNIT, PROT_READ | PROT_WRITE, 0, 0, 0))) {
        give_units(first, 1, false);
        return false;
    }
    all.units[first] = (struct unit){.slot_bytes = (uint32_t)slot_bytes, .share = share, .class = class};
    slots->next = start;
    slots->end = start + UNIT / slot_bytes * slot_bytes;
    return true;
}

static void *make_small(const struct action *action, size_t n_bytes, size_t alignment, bool is_zero)
{
    struct trial_effect *effect = action_effect_hook();
    uint16_t index;
    size_t class = n_bytes ? (n_bytes - 1) / action->slot_step : 0,
           slot_bytes = (class + 1) * action->slot_step + action->slot_extra;
    struct share *share = share_of_thread(&index);
    bool is_new = false;
    if (class >= CLASSES || slot_bytes % alignment)
        return NULL;
    struct slots *slots = &share->classes[class];
    lock_hook(&share->lock);
    void *p = slots->free;
    if (p) {
        memcpy(&slots->free, p, sizeof slots->free);
    } else if (slots->next < slots->end || refill(slots, index, (uint16_t) class, slot_bytes)) {
        p = (void *)slots->next;
        is_new = slots->next % UNIT != 0; /* there is one before it */
        slots->next += slot_bytes;
    }
    unlock_hook(&share->lock);
    if (!p)
        return NULL;
    if (is_zero)
        memset(p, 0, n_bytes);
    action_count(&effect->n_blocks, 1);
    action_count(&effect->n_bytes, n_bytes);
    action_count(&effect->n_next, is_new);
    action_count(&effect->n_apart, slot_bytes % ACTION_LINES_APART == 0 || (uintptr_t)p % ACTION_PAGE != 0);
    return p;
}

static void free_small(void *p, const struct unit *unit)
{
    struct share *share = &all.shares[unit->share];
    struct slots *slots = &share->classes[unit->class];
    lock_hook(&share->lock);
    memcpy(p, &slots->free, sizeof slots->free);
    slots->free = p;
    unlock_hook(&share->lock);
}

/* --- all blocks --- */

void *blocks_make_hook(size_t n_bytes, size_t alignment, bool is_zero)
{
    const struct action *action = action_hook();
    void *p = NULL;
    alignment = alignment < SLOT_ALIGNMENT ? SLOT_ALIGNMENT : alignment;
    bool is_for_it = all.base && n_bytes >= action->least_bytes;
    if (is_for_it && action->slot_step && n_bytes <= action->most_slot)
        p = make_small(action, n_bytes, alignment, is_zero);
    if (is_for_it && !p && (!action->slot_step || action->lead))
        p = make_large(action, n_bytes, alignment, is_zero);
    if (!p)
        action_count(&action_effect_hook()->n_plain, 1);
    return p;
}

size_t blocks_size_hook(const void *p)
{
    const struct unit *unit = &all.units[unit_of(p)];
    return unit->slot_bytes ? unit->slot_bytes : unit->n_bytes;
}

void blocks_free_hook(void *p)
{
    const struct unit *unit = &all.units[unit_of(p)];
    if (unit->slot_bytes)
        free_small(p, unit);
    else if (unit->n_units) /* else it has been freed before, or never was a block */
        free_large(unit_of(p));
}

/* A block that does not fit is copied: moving its pages would leave a hole, in which other memory of the program may be
 * put meanwhile. */
void *blocks_resize_hook(void *p, size_t n_bytes)
{
    struct unit *unit = &all.units[unit_of(p)];
    size_t old_bytes = blocks_size_hook(p);
    const struct action *action = action_hook();
    bool is_similar = n_bytes > old_bytes / 2;
    if (unit->slot_bytes && n_bytes <= old_bytes && is_similar)
        return p;
    if (unit->n_units && n_bytes >= action->least_bytes && is_similar && unit->lead + n_bytes <= unit->n_units * UNIT) {
        unit->n_bytes = n_bytes;
        if (action->ready && n_bytes > old_bytes)
            action->ready((uintptr_t)p, n_bytes);
        return p;
    }
    void *made = blocks_make_hook(n_bytes, SLOT_ALIGNMENT, false);
    made = made ? made : alloc_wrap_plain_hook(n_bytes);
    if (!made)
        return NULL;
    memcpy(made, p, old_bytes < n_bytes ? old_bytes : n_bytes);
    blocks_free_hook(p);
    return made;
}

void blocks_note_mapping_hook(uintptr_t start, size_t n_bytes)
{
    unsigned i = atomic_fetch_add(&all.n_mappings, 1);
    if (i >= MAPPINGS_MAX)
        return;
    all.mappings[i].n_bytes = n_bytes;
    all.mappings[i].start = start;
}

void blocks_look_at_all_hook(void)
{
    const struct action *action = action_hook();
    unsigned n_looks = 0;
    for (size_t i = 0; action->look && i < all.n_used && n_looks < 256;
         i += all.units[i].n_units ? all.units[i].n_units : 1) {
        if (!all.units[i].n_units || all.units[i].slot_bytes)
            continue;
        action->look(all.base + i * UNIT + all.units[i].lead, all.units[i].n_bytes);
        n_looks++;
    }
    for (unsigned i = 0; action->look && i < MAPPINGS_MAX && all.mappings[i].start; i++)
        action->look(all.mappings[i].start, all.mappings[i].n_bytes);
}

void blocks_before_fork_hook(void)
{
    for (unsigned i = 0; all.base && i < SHARES; i++)
        lock_hook(&all.shares[i].lock);
    lock_hook(&all.lock);
}

void blocks_after_fork_hook(void)
{
    unlock_hook(&all.lock);
    for (unsigned i = 0; all.base && i < SHARES; i++)
        unlock_hook(&all.shares[i].lock);
}
