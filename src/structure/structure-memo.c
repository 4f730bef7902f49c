/* SPDX-License-Identifier: BSD-3-Clause */
/* What was found for a pointer before: libdw hands out the same string or DIE many times. */
#include <stdlib.h>
#include <string.h>

#include "structure/structure-internal.h"

#define CLEARED_MAX 256 /* a larger table is made anew rather than cleared for each use */

static struct memo *find_slot(struct memo *slots, size_t n_slots, const void *key)
{
    size_t slot = (size_t)(((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 20) & (n_slots - 1);
    while (slots[slot].key && slots[slot].key != key)
        slot = (slot + 1) & (n_slots - 1);
    return &slots[slot];
}

static bool grow(struct memo_table *table)
{
    size_t n = table->n_slots ? table->n_slots * 2 : 64;
    struct memo *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < table->n_slots; i++)
        if (table->slots[i].key)
            *find_slot(slots, n, table->slots[i].key) = table->slots[i];
    free(table->slots);
    table->slots = slots;
    table->n_slots = n;
    return true;
}

const void **memo_of(struct memo_table *table, const void *key)
{
    if (table->n_used * 2 >= table->n_slots && !grow(table))
        return NULL;
    struct memo *memo = find_slot(table->slots, table->n_slots, key);
    table->n_used += memo->key == NULL;
    memo->key = key;
    return &memo->value;
}

void memo_clear(struct memo_table *table)
{
    if (table->n_slots > CLEARED_MAX)
        memo_fini(table, NULL);
    else if (table->n_used)
        memset(table->slots, 0, table->n_slots * sizeof *table->slots);
    table->n_used = 0;
}

void memo_fini(struct memo_table *table, void (*free_value)(void *))
{
    for (size_t i = 0; free_value && i < table->n_slots; i++)
        free_value((void *)(uintptr_t)table->slots[i].value);
    free(table->slots);
    *table = (struct memo_table){0};
}
