/* SPDX-License-Identifier: BSD-3-Clause */
/* Reuse of memory that the handler may still be reading. Unlinked items are collected in batches; closing a batch
 * advances the epoch, and the batch is given back when every reader has left or has entered in a later epoch.
 * Runs inside the program's malloc; the caller holds the lock of the cache. */
#include "runtime/objmap/objmap.h"

#define FEW_READERS 4       /* so many are asked for each item */
#define BATCHES_WAIT_MAX 16 /* closed batches of a cache that wait until its readers are asked again */

/* The first reader from number *reader on that has ever been used; NULL when there is none. Sets *reader to the number
 * after it. */
static struct objmap_reader *next_reader(struct objmap_state *map, unsigned *reader)
{
    while (*reader < OBJMAP_READERS) {
        unsigned group = *reader / 64;
        uint64_t groups = atomic_load(&map->reader_groups[group / 64]) >> group % 64;
        if (!(groups & 1)) {
            unsigned n_skipped = groups ? (unsigned)__builtin_ctzll(groups) : 64 - group % 64;
            *reader = (group + n_skipped) * 64;
            continue;
        }
        uint64_t used = atomic_load(&map->readers_used[group]) >> *reader % 64;
        if (used) {
            *reader += (unsigned)__builtin_ctzll(used) + 1;
            return &map->readers[*reader - 1];
        }
        *reader = (group + 1) * 64;
    }
    return NULL;
}

/* The oldest epoch that some reader is in, UINT64_MAX when there is no reader. *n_readers: how many were asked. */
static uint64_t oldest_epoch(struct objmap_state *map, uint32_t *n_readers)
{
    uint64_t oldest = UINT64_MAX;
    const struct objmap_reader *reader;
    *n_readers = 0;
    for (unsigned at = 0; (reader = next_reader(map, &at)); ++*n_readers) {
        uint64_t epoch = atomic_load(&reader->epoch);
        if (epoch && epoch < oldest)
            oldest = epoch;
    }
    return oldest;
}

static void give_batch(struct objmap_cache *cache, struct objmap_batch *batch)
{
    for (uint64_t i = 0; i < batch->n; i++) {
        uintptr_t item = batch->items[i];
        objmap_give_hook(cache, (void *)(item & ~(uintptr_t)15), (unsigned)(item & 15));
    }
    atomic_fetch_sub_explicit(&objmap_state_sig()->n_pending, batch->n, memory_order_relaxed);
    objmap_give_hook(cache, batch, OBJMAP_CLASS_BATCH);
}

static void close_batch(struct objmap_state *map, struct objmap_cache *cache)
{
    struct objmap_batch *batch = cache->open;
    cache->open = NULL;
    batch->next = NULL;
    if (cache->oldest)
        cache->newest->next = batch;
    else
        cache->oldest = batch;
    cache->newest = batch;
    uint64_t n_pending = atomic_fetch_add_explicit(&map->n_pending, batch->n, memory_order_relaxed) + batch->n;
    uint64_t n_max = atomic_load_explicit(&map->n_pending_max, memory_order_relaxed);
    while (n_pending > n_max && !atomic_compare_exchange_weak(&map->n_pending_max, &n_max, n_pending))
        continue;
    batch->epoch = atomic_fetch_add(&map->epoch, 1);
}

void objmap_reclaim_hook(struct objmap_cache *cache)
{
    struct objmap_state *map = objmap_state_sig();
    if (cache->open)
        close_batch(map, cache);
    uint64_t oldest = oldest_epoch(map, &cache->n_readers);
    cache->n_closed = 0;
    while (cache->oldest && cache->oldest->epoch < oldest) {
        struct objmap_batch *batch = cache->oldest;
        cache->oldest = batch->next;
        give_batch(cache, batch);
    }
}

/* Whether there are few readers and none of them is in the map at this moment. The addition is a barrier, the writer's
 * side of what enter_epoch does: a reader that is not seen here sees what has been unlinked. */
static bool nobody_reads(const struct objmap_state *map, struct objmap_cache *cache)
{
    (void)atomic_fetch_add(&cache->n_retired, 1);
    uint32_t end = atomic_load(&map->readers_end);
    for (uint32_t i = 0; i < end; i++)
        if (end > FEW_READERS || atomic_load(&map->readers[i].epoch))
            return false;
    return true;
}

/* An item that is given back at once is still in the processor's caches when it is used again. */
void objmap_retire_hook(struct objmap_cache *cache, void *item, unsigned class)
{
    if (nobody_reads(objmap_state_sig(), cache)) {
        objmap_give_hook(cache, item, class);
        return;
    }
    if (!cache->open) {
        cache->open = objmap_take_hook(cache, OBJMAP_CLASS_BATCH);
        if (!cache->open) {
            /* There is no memory to remember the item: it stays unused and counts as pending for ever. */
            atomic_fetch_add_explicit(&objmap_state_sig()->n_pending, 1, memory_order_relaxed);
            return;
        }
        cache->open->n = 0;
    }
    cache->open->items[cache->open->n++] = (uintptr_t)item | class;
    if (cache->open->n < OBJMAP_BATCH_ITEMS)
        return;
    /* Where there are many readers, they are asked less often. */
    uint32_t n_wait = cache->n_readers / 256;
    if (cache->n_closed++ >= (n_wait < BATCHES_WAIT_MAX ? n_wait : BATCHES_WAIT_MAX))
        objmap_reclaim_hook(cache);
    else
        close_batch(objmap_state_sig(), cache);
}

void objmap_forget_readers_hook(void)
{
    struct objmap_state *map = objmap_state_sig();
    struct objmap_reader *reader;
    for (unsigned at = 0; (reader = next_reader(map, &at));)
        atomic_store(&reader->epoch, 0);
}
