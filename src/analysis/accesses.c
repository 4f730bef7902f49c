/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of accesses: filled through a hash while side files are read, then sorted. */
#include "analysis/accesses.h"

#include <stdlib.h>

#include "base/vec.h"

static bool is_same(const struct access *a, const struct access *b)
{
    return a->node == b->node && a->event == b->event && a->module == b->module && a->vaddr == b->vaddr;
}

static size_t slot_of(const struct access_table *table, const struct access *like)
{
    uint64_t key = like->vaddr ^ (uint64_t)like->node << 36 ^ (uint64_t)like->module << 24 ^ like->event;
    size_t slot = (size_t)(key * 0x9e3779b97f4a7c15u >> 24) & (table->n_slots - 1);
    while (table->slots[slot] && !is_same(&table->items[table->slots[slot] - 1], like))
        slot = (slot + 1) & (table->n_slots - 1);
    return slot;
}

static bool grow_slots(struct access_table *table)
{
    if (table->n * 2 < table->n_slots)
        return true;
    size_t n_slots = table->n_slots ? 2 * table->n_slots : 1024;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    for (size_t i = 0; i < table->n; i++)
        slots[slot_of(table, &table->items[i])] = (uint32_t)i + 1;
    return true;
}

bool accesses_add(struct access_table *table, const struct access *like, const struct spread *offsets)
{
    if (!grow_slots(table) || !vec_reserve(&table->items, &table->capacity, table->n + 1, sizeof *table->items))
        return false;
    size_t slot = slot_of(table, like);
    if (!table->slots[slot] && table->n == ACCESSES_MAX)
        return true;
    if (!table->slots[slot]) {
        table->items[table->n] = *like;
        table->items[table->n].n_samples = 0;
        table->items[table->n].offsets = (struct spread){0};
        table->slots[slot] = (uint32_t)++table->n;
    }
    struct access *access = &table->items[table->slots[slot] - 1];
    access->n_samples += like->n_samples;
    for (size_t i = 0; i < offsets->n; i++)
        if (!spread_add(&access->offsets, offsets->entries[i].offset, offsets->entries[i].count))
            return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct access *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

void accesses_sort(struct access_table *table)
{
    free(table->slots);
    table->slots = NULL;
    table->n_slots = 0;
    if (table->n)
        qsort(table->items, table->n, sizeof *table->items, compare);
    for (size_t i = 0; i < table->n; i++)
        spread_reduce(&table->items[i].offsets);
}

const struct access *accesses_of_node(const struct access_table *table, uint32_t node, size_t *n)
{
    size_t low = 0, high = table->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->items[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    for (*n = 0; low + *n < table->n && table->items[low + *n].node == node; (*n)++)
        ;
    return *n ? &table->items[low] : NULL;
}

void accesses_fini(struct access_table *table)
{
    for (size_t i = 0; i < table->n; i++)
        spread_fini(&table->items[i].offsets);
    free(table->items);
    free(table->slots);
    *table = (struct access_table){0};
}
