/* SPDX-License-Identifier: BSD-3-Clause */
/* Reuse of memory that the handler may still be reading. Unlinked items are collected in batches; closing a batch
 * advances the epoch, and the batch is given back when every reader has left or has entered in a later epoch.
 * Runs inside the program's malloc; the caller holds the lock of the cache. */
#include "runtime/objmap/objmap.h"

/* The oldest epoch that some reader is in, UINT64_MAX when there is no reader. */
static uint64_t oldest_epoch(struct objmap_state *map)
{
    uint64_t oldest = UINT64_MAX;
    for (unsigned word = 0; word < OBJMAP_READER_GROUPS / 64; word++) {
        uint64_t groups = atomic_load(&map->reader_groups[word]);
        for (; groups; groups &= groups - 1) {
            unsigned group = word * 64 + (unsigned)__builtin_ctzll(groups);
            for (unsigned i = 0; i < 64; i++) {
                uint64_t epoch = atomic_load(&map->readers[group * 64 + i].epoch);
                if (epoch && epoch < oldest)
                    oldest = epoch;
            }
        }
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
    uint64_t oldest = oldest_epoch(map);
    while (cache->oldest && cache->oldest->epoch < oldest) {
        struct objmap_batch *batch = cache->oldest;
        cache->oldest = batch->next;
        give_batch(cache, batch);
    }
}

void objmap_retire_hook(struct objmap_cache *cache, void *item, unsigned class)
{
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
    if (cache->open->n == OBJMAP_BATCH_ITEMS)
        objmap_reclaim_hook(cache);
}

void objmap_forget_readers_hook(void)
{
    struct objmap_state *map = objmap_state_sig();
    for (unsigned word = 0; word < OBJMAP_READER_GROUPS / 64; word++) {
        uint64_t groups = atomic_load(&map->reader_groups[word]);
        for (; groups; groups &= groups - 1) {
            unsigned group = word * 64 + (unsigned)__builtin_ctzll(groups);
            for (unsigned i = 0; i < 64; i++)
                atomic_store(&map->readers[group * 64 + i].epoch, 0);
        }
    }
}
