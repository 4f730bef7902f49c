/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the object map, from the kernel and never from malloc: slabs that are carved into size classes, a depot of
 * free items shared by all, and two magazines per class in each cache, so that an operation seldom leaves its cache.
 * Runs inside the program's malloc; the caller holds the lock of the cache. */
#include <errno.h>
#include <linux/futex.h>
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
#define SPINS 100 /* before a thread sleeps for a lock */
#define FIRST_SLEEP_MS 10

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

/* Sleeps until some thread gives the lock back, at most wait_ms; false after that time. Thousands of threads that
 * looked again and again would leave no CPU time to the one that holds it. */
static bool sleep_for(struct objmap_lock *lock, unsigned wait_ms)
{
    const struct timespec limit = {.tv_sec = wait_ms / 1000, .tv_nsec = (long)(wait_ms % 1000) * 1000000};
    uint32_t bed = atomic_load(&lock->bed);
    if (!atomic_load(&lock->owner))
        return true;
    errno = 0;
    if (own_call_sig(SYS_futex, &lock->bed, FUTEX_WAIT_PRIVATE, bed, &limit) == 0 || errno == EAGAIN || errno == EINTR)
        return true;
    if (errno != ETIMEDOUT) /* in a sandbox */
        own_call_sig(SYS_nanosleep, &limit, NULL);
    return false;
}

/* One wake-up at a time: the thread that it wakes clears is_waking, and gives the lock back in its turn. Where nobody
 * slept yet, nobody would clear it. */
void objmap_lock_wake_hook(struct objmap_lock *lock)
{
    int saved_errno = errno;
    if (atomic_exchange(&lock->is_waking, 1))
        return;
    atomic_fetch_add(&lock->bed, 1);
    if (own_call_sig(SYS_futex, &lock->bed, FUTEX_WAKE_PRIVATE, 1) != 1)
        atomic_store(&lock->is_waking, 0);
    errno = saved_errno;
}

/* Tries once; *is_vain: the owner itself holds the lock, or the map is broken. */
static bool try_lock(struct objmap_lock *lock, uintptr_t owner, bool *is_vain)
{
    uintptr_t holder = atomic_load_explicit(&lock->owner, memory_order_relaxed);
    *is_vain = (holder ^ owner) <= OBJMAP_FORKING ||
               atomic_load_explicit(&objmap_state_sig()->is_broken, memory_order_relaxed);
    return !*is_vain && !holder &&
           atomic_compare_exchange_strong_explicit(&lock->owner, &holder, owner, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void spin(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

bool objmap_lock_wait_hook(struct objmap_lock *lock, uintptr_t owner, unsigned wait_ms)
{
    int saved_errno = errno;
    bool is_vain = false, is_held = false;
    for (unsigned n_spins = 0; n_spins < SPINS && !is_held && !is_vain; n_spins++, spin())
        is_held = try_lock(lock, owner, &is_vain);
    atomic_fetch_add(&lock->n_waiting, 1);
    /* Each sleep may be as long as all before it. */
    for (unsigned slept_ms = 0; !is_held && !is_vain && slept_ms < wait_ms;) {
        unsigned next_ms = slept_ms ? slept_ms : FIRST_SLEEP_MS;
        slept_ms = sleep_for(lock, next_ms) ? 0 : slept_ms + next_ms;
        atomic_store(&lock->is_waking, 0);
        is_held = try_lock(lock, owner, &is_vain);
    }
    atomic_fetch_sub(&lock->n_waiting, 1);
    if (!is_held && wait_ms == OBJMAP_WAIT_MS && (atomic_load(&lock->owner) ^ owner) > OBJMAP_FORKING)
        objmap_break(objmap_state_sig());
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
    __builtin_prefetch(magazine->first, 1); /* it may be cold: the next call reads it */
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
