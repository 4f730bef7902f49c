/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a call of malloc is that of a place of the table. Nearly always it is not, which one look at its return
 * address tells. Where several paths begin with that address, the frames above decide. They are found by the unwinder
 * of the language's runtime library at first; then by the distance from frame to frame, which is the same each time
 * that a function calls from one place, unless it moves its stack pointer at will. See actions.h. */
#include "runtime/actions/actions.h"

#include <stdatomic.h>
#include <string.h>
#include <unwind.h>

#define SLOTS 1024 /* a power of two, at least four times the places */
#define LEARNED 8  /* walks that must agree before a distance is believed */
#define STEP_MAX (1 << 20)

/* Paths that begin with one address. */
struct slot {
    _Atomic uintptr_t pc; /* 0: none */
    uint16_t n_paths;
    uint16_t n_needed; /* frames that decide at most */
    uint16_t first;    /* index into order */
};

/* What is known of the frame of a function at a return address into it. */
struct step {
    _Atomic uintptr_t pc;
    _Atomic int64_t bytes;    /* to the frame around it; 0: not known yet, -1: not the same each time */
    _Atomic uint32_t n_agree; /* walks that found it */
};

/* One set of places. The old one stays as it is when a library is loaded: another thread may be reading it. */
struct sites {
    struct action_path paths[TRIAL_PLACES_MAX];
    struct slot slots[SLOTS];
    uint16_t order[TRIAL_PLACES_MAX]; /* paths by their first frame */
    unsigned n_paths;
};

static struct {
    struct sites sets[2];
    struct sites *_Atomic now;
    struct step steps[SLOTS];
} known;

static __thread bool is_walking __attribute__((tls_model("initial-exec")));

static unsigned slot_of(uintptr_t pc)
{
    return (unsigned)((pc * UINT64_C(0x9E3779B97F4A7C15)) >> 54); /* of SLOTS */
}

/* The slot of an address in a set, or the empty one where it would be. */
static struct slot *find_slot(struct sites *sites, uintptr_t pc)
{
    unsigned i = slot_of(pc);
    while (sites->slots[i].pc && sites->slots[i].pc != pc)
        i = (i + 1) % SLOTS;
    return &sites->slots[i];
}

void sites_set_hook(const struct action_path *paths, unsigned n_paths)
{
    struct sites *sites = atomic_load(&known.now) == &known.sets[0] ? &known.sets[1] : &known.sets[0];
    memset(sites, 0, sizeof *sites);
    sites->n_paths = n_paths < TRIAL_PLACES_MAX ? n_paths : TRIAL_PLACES_MAX;
    memcpy(sites->paths, paths, sites->n_paths * sizeof *paths);
    unsigned n_ordered = 0;
    for (unsigned i = 0; i < sites->n_paths; i++) {
        struct slot *slot = find_slot(sites, paths[i].frames[0]);
        if (slot->pc)
            continue;
        slot->pc = paths[i].frames[0];
        slot->first = (uint16_t)n_ordered;
        for (unsigned k = i; k < sites->n_paths; k++) {
            if (paths[k].frames[0] != paths[i].frames[0])
                continue;
            sites->order[n_ordered++] = (uint16_t)k;
            slot->n_paths++;
            slot->n_needed = slot->n_needed > paths[k].n_frames ? slot->n_needed : (uint16_t)paths[k].n_frames;
        }
    }
    atomic_store_explicit(&known.now, sites, memory_order_release);
}

bool sites_may_hook(uintptr_t pc)
{
    struct sites *sites = atomic_load_explicit(&known.now, memory_order_acquire);
    return sites && find_slot(sites, pc)->pc;
}

/* --- the frames above --- */

struct walk {
    uintptr_t frames[TRIAL_FRAMES_MAX];
    uintptr_t stack[TRIAL_FRAMES_MAX]; /* stack pointer of each, where it calls */
    unsigned n, n_wanted;
};

static struct step *step_of(uintptr_t pc)
{
    unsigned i = slot_of(pc);
    for (unsigned n = 0; n < 8; n++, i = (i + 1) % SLOTS) {
        uintptr_t none = 0;
        if (known.steps[i].pc == pc || atomic_compare_exchange_strong(&known.steps[i].pc, &none, pc) || none == pc)
            return &known.steps[i];
    }
    return NULL;
}

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    uintptr_t pc = (uintptr_t)_Unwind_GetIP(context);
    if (walk->n == 1 && walk->stack[0] == 0 && pc != walk->frames[0])
        return _URC_NO_REASON; /* still ours */
    unsigned i = walk->stack[0] ? walk->n++ : 0;
    walk->frames[i] = pc;
    walk->stack[i] = (uintptr_t)_Unwind_GetCFA(context);
    return walk->n < walk->n_wanted ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void learn(const struct walk *walk)
{
    for (unsigned i = 0; i + 1 < walk->n; i++) {
        struct step *step = step_of(walk->frames[i]);
        int64_t bytes = (int64_t)(walk->stack[i + 1] - walk->stack[i]);
        if (!step || step->bytes < 0)
            continue;
        if (bytes <= 0 || bytes > STEP_MAX || (step->bytes && step->bytes != bytes)) {
            step->bytes = -1;
            continue;
        }
        step->bytes = bytes;
        step->n_agree++;
    }
}

/* The frames of a call by what has been learned; false when something has not. */
static bool walk_fast(struct walk *walk)
{
#ifdef __x86_64__
    while (walk->n < walk->n_wanted) {
        const struct step *step = step_of(walk->frames[walk->n - 1]);
        int64_t bytes = step ? step->bytes : -1;
        if (bytes <= 0 || step->n_agree < LEARNED)
            return false;
        uintptr_t sp = walk->stack[walk->n - 1] + (uintptr_t)bytes;
        walk->frames[walk->n] = ((const uintptr_t *)sp)[-1]; /* pushed by the call */
        walk->stack[walk->n++] = sp;
    }
    return true;
#else
    (void)walk;
    return false;
#endif
}

/* The first n frames of a call, as far as there are so many. */
static void walk_from(const struct alloc_site *site, unsigned n, struct walk *walk)
{
    *walk = (struct walk){.frames = {site->pc}, .stack = {site->sp}, .n = 1, .n_wanted = n};
    if (walk_fast(walk))
        return;
    *walk = (struct walk){.frames = {site->pc}, .n = 1, .n_wanted = n};
    if (is_walking) /* the unwinder allocates */
        return;
    is_walking = true;
    (void)_Unwind_Backtrace(take_frame, walk);
    is_walking = false;
    learn(walk);
}

bool sites_match_hook(const struct alloc_site *site, bool is_mmap)
{
    struct sites *sites = atomic_load_explicit(&known.now, memory_order_acquire);
    const struct slot *slot = sites ? find_slot(sites, site->pc) : NULL;
    struct walk walk = {.frames = {site->pc}, .n = 1};
    if (!slot || !slot->pc)
        return false;
    if (slot->n_needed > 1)
        walk_from(site, slot->n_needed, &walk);
    for (unsigned i = 0; i < slot->n_paths; i++) {
        const struct action_path *path = &sites->paths[sites->order[slot->first + i]];
        if (path->is_mmap == is_mmap && path->n_frames <= walk.n &&
            memcmp(path->frames, walk.frames, path->n_frames * sizeof *path->frames) == 0)
            return true;
    }
    return false;
}
