/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of accesses: filled through a hash while side files are read, then sorted. */
#include "analysis/accesses.h"

#include <stdlib.h>

#include "base/vec.h"

static bool is_same(const void *one, const void *other)
{
    const struct access *a = one, *b = other;
    return a->node == b->node && a->event == b->event && a->module == b->module && a->vaddr == b->vaddr;
}

static uint64_t hash(const void *item)
{
    const struct access *access = item;
    return access->vaddr ^ (uint64_t)access->node << 36 ^ (uint64_t)access->module << 24 ^ access->event;
}

static const struct slots_kind by_instruction = {sizeof(struct access), hash, is_same};

bool accesses_add(struct access_table *table, const struct access *like, const struct spread *offsets)
{
    if (!slots_reserve(&table->slots, &by_instruction, table->items, table->n) ||
        !vec_reserve(&table->items, &table->capacity, table->n + 1, sizeof *table->items))
        return false;
    size_t index = slots_find(&table->slots, &by_instruction, table->items, like);
    if (index == SLOTS_NONE && table->n == ACCESSES_MAX)
        return true;
    if (index == SLOTS_NONE) {
        index = table->n++;
        table->items[index] = *like;
        table->items[index].n_samples = 0;
        table->items[index].offsets = (struct spread){0};
        slots_add(&table->slots, &by_instruction, table->items, index);
    }
    struct access *access = &table->items[index];
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
    slots_fini(&table->slots);
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
    slots_fini(&table->slots);
    *table = (struct access_table){0};
}
