/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the object map, from the kernel and never from malloc: slabs that are carved into size classes, a depot of
 * free items shared by all, and two magazines per class in each cache, so that an operation seldom leaves its cache.
 * Runs inside the program's malloc; the caller holds the lock of the cache. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/objmap/objmap.h"
#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"

#define SLAB_BYTES ((size_t)256 << 10)
#define MAGAZINE_BYTES 2048
#define MAGAZINE_ITEMS 32
#define POISON 0xDB

/* A chain of free items in the depot; stored in its first item. */
struct chain {
    void *next_item;
    struct chain *next_chain;
    uint64_t n;
};

static const uint16_t class_bytes[OBJMAP_CLASSES] = {32,  48,  64,   96,   128,  192,  256, 384,
                                                     512, 768, 1024, 1536, 2048, 4096, 8192};

static struct {
    struct objmap_lock lock;
    char *next; /* rest of the current slab */
    size_t rest_bytes;
    struct chain *depot[OBJMAP_CLASSES];
    bool poison;
} memory;

bool objmap_lock_wait_hook(struct objmap_lock *lock, uintptr_t owner, unsigned n_sleeps)
{
    struct objmap_state *map = objmap_state_sig();
    int saved_errno = errno;
    bool is_held = false;
    for (unsigned n_tries = 0; !is_held && n_tries < 200 + n_sleeps; n_tries++) {
        uintptr_t holder = atomic_load_explicit(&lock->owner, memory_order_relaxed);
        if ((holder ^ owner) <= OBJMAP_FORKING || atomic_load_explicit(&map->is_broken, memory_order_relaxed))
            break;
        if (!holder) {
            is_held = atomic_compare_exchange_weak_explicit(&lock->owner, &holder, owner, memory_order_acquire,
                                                            memory_order_relaxed);
            continue;
        }
        /* The holder may be descheduled; with real-time priorities it would never run if we only yielded. */
        if (n_tries >= 200)
            own_call_sig(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL);
        else if (n_tries > 100)
            own_call_sig(SYS_sched_yield);
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    if (!is_held && n_sleeps == OBJMAP_SLEEPS && (atomic_load(&lock->owner) ^ owner) > OBJMAP_FORKING)
        objmap_break(map);
    errno = saved_errno;
    return is_held;
}

void *objmap_pages_hook(size_t len_bytes)
{
    int saved_errno = errno;
    void *pages = zone_pages_sig(len_bytes);
    errno = saved_errno;
    return pages;
}

/* The caller holds the lock of the memory. */
static void *carve(size_t len_bytes)
{
    if (memory.rest_bytes < len_bytes) {
        char *slab = objmap_pages_hook(SLAB_BYTES);
        if (!slab)
            return NULL;
        atomic_fetch_add_explicit(&objmap_state_sig()->bytes_memory, SLAB_BYTES, memory_order_relaxed);
        memory.next = slab;
        memory.rest_bytes = SLAB_BYTES;
    }
    void *start = memory.next;
    memory.next += len_bytes;
    memory.rest_bytes -= len_bytes;
    return start;
}

void *objmap_carve_hook(size_t len_bytes, uintptr_t owner)
{
    if (!objmap_lock_hook(&memory.lock, owner))
        return NULL;
    void *start = carve(len_bytes);
    objmap_unlock_hook(&memory.lock);
    return start;
}

unsigned objmap_class_of(size_t len_bytes)
{
    unsigned class = 0;
    while (class < OBJMAP_CLASSES && class_bytes[class] < len_bytes)
        class ++;
    return class;
}

size_t objmap_class_bytes(unsigned class)
{
    return class_bytes[class];
}

static uint32_t magazine_items(unsigned class)
{
    uint32_t n = (uint32_t)(MAGAZINE_BYTES / class_bytes[class]);
    return n < 1 ? 1 : n > MAGAZINE_ITEMS ? MAGAZINE_ITEMS : n;
}

static void *next_of(void *item)
{
    void *next;
    memcpy(&next, item, sizeof next);
    return next;
}

static void set_next(void *item, void *next)
{
    memcpy(item, &next, sizeof next);
}

/* Carves a run of items. Blocks of 64 bytes and their multiples stay aligned to their cache lines as long as runs are
 * multiples of 64. */
static void carve_magazine(struct objmap_magazine *magazine, unsigned class)
{
    uint32_t n = magazine_items(class);
    size_t run_bytes = ((size_t)n * class_bytes[class] + 63) & ~(size_t)63;
    char *run = carve(run_bytes);
    for (uint32_t i = 0; run && i < n; i++) {
        set_next(run + (size_t)i * class_bytes[class], magazine->first);
        magazine->first = run + (size_t)i * class_bytes[class];
        magazine->n++;
    }
}

static void refill(struct objmap_magazine *magazine, unsigned class, uintptr_t owner)
{
    if (!objmap_lock_hook(&memory.lock, owner))
        return;
    struct chain *chain = memory.depot[class];
    if (chain) {
        memory.depot[class] = chain->next_chain;
        magazine->first = chain;
        magazine->n = (uint32_t)chain->n;
    } else {
        carve_magazine(magazine, class);
    }
    objmap_unlock_hook(&memory.lock);
}

void *objmap_take_hook(struct objmap_cache *cache, unsigned class)
{
    struct objmap_magazine *magazine = &cache->current[class];
    if (magazine->n == 0) {
        struct objmap_magazine empty = *magazine;
        *magazine = cache->previous[class];
        cache->previous[class] = empty;
        if (magazine->n == 0)
            refill(magazine, class, objmap_cache_owner(cache));
        if (magazine->n == 0)
            return NULL;
    }
    void *item = magazine->first;
    magazine->first = next_of(item);
    magazine->n--;
    return item;
}

static void put_into_depot(struct objmap_magazine *magazine, unsigned class, uintptr_t owner)
{
    struct chain *chain = magazine->first;
    chain->n = magazine->n;
    if (objmap_lock_hook(&memory.lock, owner)) {
        chain->next_chain = memory.depot[class];
        memory.depot[class] = chain;
        objmap_unlock_hook(&memory.lock);
    }
    *magazine = (struct objmap_magazine){0};
}

void objmap_give_hook(struct objmap_cache *cache, void *item, unsigned class)
{
    struct objmap_magazine *magazine = &cache->current[class];
    if (memory.poison)
        memset(item, POISON, class_bytes[class]);
    if (magazine->n >= magazine_items(class)) {
        if (cache->previous[class].n > 0)
            put_into_depot(&cache->previous[class], class, objmap_cache_owner(cache));
        cache->previous[class] = *magazine;
        *magazine = (struct objmap_magazine){0};
    }
    set_next(item, magazine->first);
    magazine->first = item;
    magazine->n++;
}

void objmap_poison_hook(bool on)
{
    memory.poison = on;
}
