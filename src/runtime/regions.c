/* SPDX-License-Identifier: BSD-3-Clause */
/* Entering and leaving regions: see regions.h. The program's own code calls this, often and on any thread: names are
 * found without a lock, and nothing is allocated but the arena's copy of each new name. */
#include "runtime/regions.h"

#include <string.h>
#include <unistd.h>

#include "runtime/events.h"
#include "runtime/loadmap.h"
#include "runtime/locus.h"
#include "runtime/process.h"
#include "runtime/wrap.h"

#define NAMES_MAX 4096 /* power of two */
#define NAME_BYTES_MAX 255
#define LOCK_TRIES 1000 /* a signal handler may have interrupted whoever holds it */

/* Hash of a name; 0: free. The reference is there before the hash. */
struct name {
    _Atomic uint64_t hash;
    uint32_t ref;
};

static struct {
    struct name names[NAMES_MAX];
} known;

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; name[i] && i < NAME_BYTES_MAX; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* The name's entry, or the free one where it belongs; NULL when the table is full. */
static struct name *find(uint64_t hash)
{
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        struct name *name = &known.names[(hash + i) & (NAMES_MAX - 1)];
        uint64_t found = atomic_load_explicit(&name->hash, memory_order_acquire);
        if (found == hash || !found)
            return name;
    }
    return NULL;
}

static bool lock(void)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (arena_shared_begin_sig())
            return true;
        own_call_sig(SYS_sched_yield);
    }
    return false;
}

/* Under the lock. */
static uint32_t add(const char *text, uint64_t hash)
{
    char copy[NAME_BYTES_MAX + 1];
    struct name *name = find(hash);
    if (!name)
        return 0;
    if (atomic_load_explicit(&name->hash, memory_order_relaxed))
        return name->ref;
    size_t len = strnlen(text, NAME_BYTES_MAX);
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!regions_module_sig())
        regions_set_module_sig(loadmap_pseudo_sig(REGION_MODULE, 0));
    name->ref = regions_module_sig() ? arena_shared_string_sig(copy) : 0;
    if (name->ref)
        atomic_store_explicit(&name->hash, hash, memory_order_release);
    return name->ref;
}

uint32_t regions_name(const char *text)
{
    if (!text || !text[0] || !process_is_ours_sig())
        return 0;
    uint64_t hash = hash_of(text);
    const struct name *name = find(hash);
    if (name && atomic_load_explicit(&name->hash, memory_order_acquire) == hash)
        return name->ref;
    if (!name || !lock())
        return 0;
    uint32_t ref = add(text, hash);
    arena_shared_end_sig();
    return ref;
}

/* The samples that a ring holds are of the time before the change. */
static struct thread_state *change_begin(void)
{
    struct thread_state *self = process_is_ours_sig() ? thread_self_sig() : NULL;
    if (self)
        events_drain_all_sig(self);
    return self;
}

static void change_end(struct thread_state *self)
{
    atomic_signal_fence(memory_order_seq_cst);
    self->regions.version++;
    atomic_signal_fence(memory_order_seq_cst);
}

void regions_enter(uint32_t name)
{
    struct thread_state *self = change_begin();
    if (!self)
        return;
    struct thread_regions *mine = &self->regions;
    if (!name)
        regions_count_sig(REGION_NAMELESS, 1);
    if (mine->n_beyond || mine->n == THREAD_REGIONS_MAX) {
        mine->n_beyond++;
        regions_count_sig(REGION_TOO_DEEP, 1);
        return;
    }
    mine->names[mine->n] = name;
    atomic_signal_fence(memory_order_seq_cst);
    mine->n++;
    change_end(self);
}

void regions_leave(void)
{
    struct thread_state *self = change_begin();
    if (!self)
        return;
    struct thread_regions *mine = &self->regions;
    if (mine->n_beyond) {
        mine->n_beyond--;
    } else if (!mine->n) {
        regions_count_sig(REGION_NOT_ENTERED, 1);
    } else {
        mine->n--;
        change_end(self);
    }
}

/* What the inline functions of locus.h call. */
WRAP_EXPORT void locus_region_begin_event(const char *name)
{
    regions_enter(regions_name(name));
}

WRAP_EXPORT void locus_region_end_event(void)
{
    regions_leave();
}
