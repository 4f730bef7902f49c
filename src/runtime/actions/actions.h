/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions: what a trial (src/trial) does to a program's data without its source. A preloaded library of its own,
 * liblocus-actions.so, reads the table of a trial: an action, and the places whose blocks, or the variables that, it is
 * for. Everything else stays as it is. One file and one row of actions_row() for each action; table.c reads the table
 * and does what is to be done at the start, sites-hook.c knows whether a call is one of a place, blocks-hook.c is the
 * memory that the blocks come from, wrap-actions-hook.c the functions that the program calls. All runs inside the
 * program, most of it in its malloc. */
#ifndef LOCUS_RUNTIME_ACTIONS_ACTIONS_H
#define LOCUS_RUNTIME_ACTIONS_ACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/own/arch.h"
#include "trial/effect.h"

#define ACTION_PAGE 4096u
#define ACTION_HUGE (2u << 20)
#define ACTION_LINE 64u
#define ACTION_LINES_APART 128u /* some processors fetch lines in pairs */

/* A system call, without libc: a result, or a negative errno. */
static inline long action_call(long number, long a, long b, long c, long d, long e, long f)
{
    return arch_call_sig(number, (const long[6]){a, b, c, d, e, f});
}

/* An action. A function that is NULL has nothing to do. */
struct action {
    const char *name;
    bool is_for_statics;
    uint32_t least_bytes; /* smaller blocks stay as they are: it is about whole pages */
    /* Slots: blocks of up to most_slot bytes lie one after the other in slots that are a multiple of slot_step; 0: they
     * have pages of their own. */
    uint32_t most_slot, slot_step, slot_extra; /* slot_extra: more bytes in each */
    /* The distance of block n of the action (from 0) from a boundary of 2 MiB, in bytes.  ctx: hook */
    size_t (*lead)(uint64_t n);
    /* Reads the argument; false: it is none.  ctx: ordinary */
    bool (*take)(const char *argument);
    /* [start, start + n_bytes) is about to be used, and has not been touched, if it is not a variable. May be called
     * again for memory that a block had before.  ctx: hook */
    void (*ready)(uintptr_t start, size_t n_bytes);
    /* Notes what became of a block that is about to go, or is there at the end; on a copy of nothing: may make system
     * calls.  ctx: hook */
    void (*look)(uintptr_t start, size_t n_bytes);
};

/* Row i of the table, NULL behind the last.  ctx: any */
const struct action *actions_row(unsigned i);

extern const struct action action_huge_pages, action_interleave, action_bind_to_users, action_first_touch_spread,
    action_pad, action_pool, action_offset, action_prefault;

/* --- table.c --- */

/* The action of this process, NULL: none; and the record, which is there in any case.  ctx: hook */
const struct action *action_hook(void);
struct trial_effect *action_effect_hook(void);

/* Whether there are places whose modules have not been loaded; looks whether they have been.  ctx: hook */
bool action_waits_for_places_hook(void);
void action_look_for_places_hook(void);

/* The process ends: looks at what is there, once.  ctx: hook */
void action_end_hook(void);

/* Notes that the kernel refused a call, if the result is negative. Returns whether it did not.  ctx: hook */
bool action_allowed_hook(long result);

/* Adds to one of the record's numbers.  ctx: hook */
static inline void action_count(_Atomic uint64_t *number, uint64_t n)
{
    atomic_fetch_add_explicit(number, n, memory_order_relaxed);
}

/* --- sites-hook.c --- */

/* A path of the table: return addresses, innermost first. */
struct action_path {
    unsigned n_frames;
    bool is_mmap;
    uintptr_t frames[TRIAL_FRAMES_MAX];
};

/* The places that lie in modules which are loaded; replaces those before. At most TRIAL_PLACES_MAX.  ctx: ordinary, no
 * call is being asked about in another thread, or the paths only grow */
void sites_set_hook(const struct action_path *paths, unsigned n_paths);

/* Whether a return address may be that of a place: a few instructions.  ctx: hook */
bool sites_may_hook(uintptr_t pc);

/* Whether the call is that of a place.  ctx: hook */
bool sites_match_hook(const struct alloc_site *site, bool is_mmap);

/* --- blocks-hook.c --- */

/* Reserves the range that all blocks come from, once. Without room for it there will be none.  ctx: ordinary */
void blocks_init_hook(void);

/* Whether p is the start of a block of ours, or lies in our range.  ctx: hook */
bool blocks_own_hook(const void *p);

/* A block as the action wants it; is_zero: of zeros. NULL: the program gets a plain one (counted).  ctx: hook */
void *blocks_make_hook(size_t n_bytes, size_t alignment, bool is_zero);

/* For blocks of ours. Their size is at least what was asked for.  ctx: hook */
size_t blocks_size_hook(const void *p);
void blocks_free_hook(void *p);

/* The block with another size, moved if need be; NULL: there is no room, and it stays as it is.  ctx: hook */
void *blocks_resize_hook(void *p, size_t n_bytes);

/* A mapping of the program's own, to be looked at at the end.  ctx: hook */
void blocks_note_mapping_hook(uintptr_t start, size_t n_bytes);

/* Looks at what is there at the end.  ctx: ordinary */
void blocks_look_at_all_hook(void);

/* wrap-actions-hook.c: a plain block of the program's own malloc.  ctx: hook */
void *alloc_wrap_plain_hook(size_t n_bytes);

/* Around a fork of the program: nobody else holds a lock of ours.  ctx: ordinary */
void blocks_before_fork_hook(void);
void blocks_after_fork_hook(void);

/* --- look-hook.c --- */

/* Adds to the record how much of [start, start + n_bytes) is in memory, and on huge pages (/proc/self/smaps).  ctx:
 * hook
 */
void look_at_huge_pages_hook(uintptr_t start, size_t n_bytes);

/* The same of some pages' nodes (move_pages); wanted: the node that a page at this offset should be on, UINT32_MAX:
 * any; NULL: any.  ctx: hook */
void look_at_nodes_hook(uintptr_t start, size_t n_bytes, uint32_t (*wanted)(size_t offset, size_t n_bytes));

/* The memory nodes that the process may use, a bit each.  ctx: hook */
uint64_t nodes_allowed_hook(void);

/* Sets the policy (MPOL_*) of the whole pages that begin in [start, start + n_bytes), and are not there yet.  ctx: hook
 */
void place_pages_hook(uintptr_t start, size_t n_bytes, int policy, uint64_t nodes);

#endif
