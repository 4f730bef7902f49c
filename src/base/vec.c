/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing arrays, byte strings and interned strings: see vec.h. */
#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool vec_reserve(void *items, size_t *capacity, size_t n_needed, size_t elem_bytes)
{
    void **array = items;
    if (n_needed <= *capacity)
        return true;
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < n_needed) {
        if (wanted > SIZE_MAX / 2)
            return false;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / elem_bytes)
        return false;
    char *grown = realloc(*array, wanted * elem_bytes);
    if (!grown)
        return false;
    memset(grown + *capacity * elem_bytes, 0, (wanted - *capacity) * elem_bytes);
    *array = grown;
    *capacity = wanted;
    return true;
}

void buf_append(struct buf *buf, const void *bytes, size_t len_bytes)
{
    if (buf->failed || !vec_reserve(&buf->data, &buf->capacity, buf->len_bytes + len_bytes + 1, 1)) {
        buf->failed = true;
        return;
    }
    if (len_bytes)
        memcpy(buf->data + buf->len_bytes, bytes, len_bytes);
    buf->len_bytes += len_bytes;
    buf->data[buf->len_bytes] = '\0';
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) {
        buf->failed = true;
        return;
    }
    buf_append(buf, text, (size_t)len);
    free(text);
}

void buf_fini(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* The slot that holds text, or the empty one where it belongs; the table has slots. */
static size_t find_slot(const struct strtab *table, const char *text)
{
    size_t slot = (size_t)hash_text(text) & (table->n_slots - 1);
    while (table->slots[slot] && strcmp(table->strings[table->slots[slot] - 1], text) != 0)
        slot = (slot + 1) & (table->n_slots - 1);
    return slot;
}

static bool grow_slots(struct strtab *table)
{
    if (table->n_strings * 2 < table->n_slots)
        return true;
    size_t n_slots = table->n_slots ? table->n_slots * 2 : 64;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    for (size_t i = 0; i < table->n_strings; i++)
        slots[find_slot(table, table->strings[i])] = (uint32_t)i + 1;
    return true;
}

int64_t strtab_intern(struct strtab *table, const char *text)
{
    if (!grow_slots(table))
        return -1;
    size_t slot = find_slot(table, text);
    if (table->slots[slot])
        return table->slots[slot] - 1;
    if (!vec_reserve(&table->strings, &table->capacity, table->n_strings + 1, sizeof *table->strings))
        return -1;
    char *copy = strdup(text);
    if (!copy)
        return -1;
    table->strings[table->n_strings++] = copy;
    table->slots[slot] = (uint32_t)table->n_strings;
    return (int64_t)table->n_strings - 1;
}

int64_t strtab_find(const struct strtab *table, const char *text)
{
    if (!table->n_slots)
        return -1;
    size_t slot = find_slot(table, text);
    return (int64_t)table->slots[slot] - 1;
}

void strtab_fini(struct strtab *table)
{
    for (size_t i = 0; i < table->n_strings; i++)
        free(table->strings[i]);
    free(table->strings);
    free(table->slots);
    *table = (struct strtab){0};
}

/* --- a set by hash --- */

/* Open addressing, at most half full; see vec.h. */

#define SLOTS_LEAST 256

/* The slot of the item with this key, or the empty one where it would be. */
static size_t slot_of(const struct slots *slots, const struct slots_kind *kind, const char *items, const void *like)
{
    size_t slot = (size_t)(kind->hash(like) * 0x9e3779b97f4a7c15u >> 24) & (slots->n - 1);
    while (slots->at[slot] && !kind->is_same(items + (slots->at[slot] - 1) * kind->item_bytes, like))
        slot = (slot + 1) & (slots->n - 1);
    return slot;
}

bool slots_reserve(struct slots *slots, const struct slots_kind *kind, const void *items, size_t n_items)
{
    size_t n = slots->n ? slots->n : SLOTS_LEAST;
    if (n_items * 2 < slots->n)
        return true;
    while (n_items * 2 >= n)
        n *= 2;
    uint32_t *at = calloc(n, sizeof *at);
    if (!at)
        return false;
    free(slots->at);
    *slots = (struct slots){at, n};
    for (size_t i = 0; i < n_items; i++)
        slots_add(slots, kind, items, i);
    return true;
}

size_t slots_find(const struct slots *slots, const struct slots_kind *kind, const void *items, const void *like)
{
    uint32_t found = slots->n ? slots->at[slot_of(slots, kind, items, like)] : 0;
    return found ? found - 1 : SLOTS_NONE;
}

void slots_add(struct slots *slots, const struct slots_kind *kind, const void *items, size_t index)
{
    const char *item = (const char *)items + index * kind->item_bytes;
    slots->at[slot_of(slots, kind, items, item)] = (uint32_t)index + 1;
}

void slots_fini(struct slots *slots)
{
    free(slots->at);
    *slots = (struct slots){0};
}
