/* SPDX-License-Identifier: BSD-3-Clause */
/* Merging by address: see rawstore.h. */
#include "analysis/rawstore.h"

#include <stdlib.h>

struct raw_store *raw_store_new(void)
{
    struct raw_store *store = calloc(1, sizeof *store);
    for (size_t i = 0; store && i < RAW_SHARDS; i++)
        (void)pthread_mutex_init(&store->shards[i].mutex, NULL);
    if (store)
        (void)pthread_mutex_init(&store->modules_mutex, NULL);
    return store;
}

void raw_store_free(struct raw_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < RAW_SHARDS; i++) {
        for (size_t b = 0; b < RAW_BLOCKS; b++)
            free(store->shards[i].blocks[b]);
        free(store->shards[i].slots);
        (void)pthread_mutex_destroy(&store->shards[i].mutex);
    }
    (void)pthread_mutex_destroy(&store->modules_mutex);
    strtab_fini(&store->modules);
    free(store);
}

uint32_t raw_store_module(struct raw_store *store, const char *path)
{
    (void)pthread_mutex_lock(&store->modules_mutex);
    int64_t id = strtab_intern(&store->modules, path);
    (void)pthread_mutex_unlock(&store->modules_mutex);
    return id < 0 ? 0 : (uint32_t)id + 1;
}

static uint64_t hash_of(uint32_t parent, uint32_t module, uint64_t ip)
{
    uint64_t hash = (ip ^ (uint64_t)module << 40) * 0x9e3779b97f4a7c15u + parent * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 29;
}

/* Block and place in it of the shard's node n. */
static uint32_t block_of(uint32_t n, uint32_t *place)
{
    uint32_t block = 31u - (uint32_t)__builtin_clz(n / RAW_FIRST_BLOCK + 1);
    *place = n - RAW_FIRST_BLOCK * ((1u << block) - 1);
    return block;
}

static struct raw_entry *entry_at(const struct raw_shard *shard, uint32_t n)
{
    uint32_t place, block = block_of(n, &place);
    return &shard->blocks[block][place];
}

struct raw_entry *raw_store_entry(const struct raw_store *store, uint32_t id)
{
    return entry_at(&store->shards[id % RAW_SHARDS], id / RAW_SHARDS);
}

static size_t slot_of(const struct raw_shard *shard, uint64_t hash, uint32_t parent, uint32_t module, uint64_t ip)
{
    size_t slot = (size_t)(hash >> 6) & (shard->n_slots - 1);
    for (; shard->slots[slot]; slot = (slot + 1) & (shard->n_slots - 1)) {
        const struct raw_entry *node = entry_at(shard, shard->slots[slot] - 1);
        if (node->parent == parent && node->module == module && node->ip == ip)
            break;
    }
    return slot;
}

static bool grow_slots(struct raw_shard *shard)
{
    if (shard->n_nodes * 2 < shard->n_slots)
        return true;
    size_t n_slots = shard->n_slots ? shard->n_slots * 2 : 256;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(shard->slots);
    shard->slots = slots;
    shard->n_slots = n_slots;
    for (uint32_t i = 0; i < shard->n_nodes; i++) {
        const struct raw_entry *node = entry_at(shard, i);
        slots[slot_of(shard, hash_of(node->parent, node->module, node->ip), node->parent, node->module, node->ip)] =
            i + 1;
    }
    return true;
}

/* Room for one more node of the shard. */
static struct raw_entry *new_entry(struct raw_shard *shard)
{
    uint32_t place, block = block_of(shard->n_nodes, &place);
    if (block >= RAW_BLOCKS || shard->n_nodes >= RAW_NONE / RAW_SHARDS)
        return NULL;
    if (!shard->blocks[block])
        shard->blocks[block] = calloc((size_t)RAW_FIRST_BLOCK << block, sizeof(struct raw_entry));
    return shard->blocks[block] ? &shard->blocks[block][place] : NULL;
}

/* The number in the shard; RAW_NONE when out of memory. */
static uint32_t find_or_add(struct raw_shard *shard, uint64_t hash, uint32_t parent, uint32_t module, uint64_t ip)
{
    if (!grow_slots(shard))
        return RAW_NONE;
    size_t slot = slot_of(shard, hash, parent, module, ip);
    if (shard->slots[slot])
        return shard->slots[slot] - 1;
    struct raw_entry *entry = new_entry(shard);
    if (!entry)
        return RAW_NONE;
    *entry = (struct raw_entry){.ip = ip, .parent = parent, .module = module};
    shard->slots[slot] = ++shard->n_nodes;
    return shard->n_nodes - 1;
}

uint32_t raw_store_child(struct raw_store *store, uint32_t parent, uint32_t module, uint64_t ip)
{
    uint64_t hash = hash_of(parent, module, ip);
    uint32_t number = (uint32_t)hash % RAW_SHARDS;
    struct raw_shard *shard = &store->shards[number];
    (void)pthread_mutex_lock(&shard->mutex);
    uint32_t n = find_or_add(shard, hash, parent, module, ip);
    (void)pthread_mutex_unlock(&shard->mutex);
    return n == RAW_NONE ? RAW_NONE : n * RAW_SHARDS + number;
}

void raw_store_mark(struct raw_store *store, uint32_t id, uint32_t flags)
{
    uint32_t *word = &raw_store_entry(store, id)->flags;
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & flags) != flags)
        (void)__atomic_fetch_or(word, flags, __ATOMIC_RELAXED);
}
