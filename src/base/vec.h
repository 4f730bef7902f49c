/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing arrays, byte strings, sets by hash and interned strings for ordinary code (never in the profiled program). */
#ifndef LOCUS_BASE_VEC_H
#define LOCUS_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Makes room for n_needed elements of elem_bytes each in the malloc'ed array *items (NULL allowed) whose
 * capacity in elements is *capacity. Grows by doubling; new elements are zeroed. Returns false when out of memory,
 * leaving both untouched. The caller frees *items. */
bool vec_reserve(void *items, size_t *capacity, size_t n_needed, size_t elem_bytes);

/* Whether memory has run out in a function of this file since the process began. Asked before a report is put out: a
 * text that many small buffers were joined to may lack one of them. Any thread. */
bool vec_has_failed(void);

/* Appends bytes; sets failed when out of memory. */
void buf_append(struct buf *buf, const void *bytes, size_t len_bytes);

/* Appends a printf-formatted text, with numbers as the locale C has them: a program may have another one. */
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a number in decimal digits. */
void buf_put_word(struct buf *buf, uint64_t word);

/* Appends bytes in base64, without breaks of lines.  src: RFC 4648, section 4 */
void buf_put_base64(struct buf *buf, const void *bytes, size_t len_bytes);

/* strtod(3) as in the locale C, whatever the program's: files and expressions have points, not commas. */
double plain_number(const char *text, char **end);

/* strncasecmp(3) as in the locale C: I and i are one letter in every language. */
int plain_compare(const char *a, const char *b, size_t n);

/* --- a set by hash --- */

/* A hash table that finds the items of an array by their keys. It lies beside the array, to which its owner appends
 * items. Ordinary code. */

/* The kind of the items. is_same: whether two have the same key; hash depends on the key alone. */
struct slots_kind {
    size_t item_bytes;
    uint64_t (*hash)(const void *item);
    bool (*is_same)(const void *a, const void *b);
};

/* All zero is empty. */
struct slots {
    struct slots_entry {
        uint32_t number; /* index of an item + 1, 0 empty */
        uint32_t mark;   /* of its hash: most others need not be compared, and none is hashed again */
    } * at;              /* [n] */
    size_t n;
};

#define SLOTS_NONE SIZE_MAX

/* Makes room for one item more than the n_items in items. Either all of these are in the table, or it is empty and they
 * are entered. False when out of memory. */
bool slots_reserve(struct slots *slots, const struct slots_kind *kind, const void *items, size_t n_items);

/* Index of the item with the same key, SLOTS_NONE when there is none. */
size_t slots_find(const struct slots *slots, const struct slots_kind *kind, const void *items, const void *like);

/* Enters items[index], whose key is not in the table, and for which there is room. */
void slots_add(struct slots *slots, const struct slots_kind *kind, const void *items, size_t index);

/* Index of the item with the same key as like in *items [*n_items], which is malloc'ed with room for *capacity (see
 * vec_reserve); where there is none, a copy of like is added to both. items: address of the pointer. SLOTS_NONE when
 * out of memory. */
size_t slots_put(struct slots *slots, const struct slots_kind *kind, void *items, size_t *n_items, size_t *capacity,
                 const void *like);

/* Frees the table and makes it empty; the items are not touched. */
void slots_fini(struct slots *slots);

/* --- interned strings --- */

/* Interns strings: equal strings get equal ids 0, 1, 2, ... in order of first use. All zero is empty. */
struct strtab {
    char **strings; /* [n_strings], in pieces */
    size_t n_strings;
    size_t capacity;
    struct strtab_piece *pieces; /* the newest first, with room for more behind what it holds */
    struct slots slots;
};

/* The id of text, added when new; -1 when out of memory. */
int64_t strtab_intern(struct strtab *table, const char *text);

/* The id of text, -1 when it is not in the table. */
int64_t strtab_find(const struct strtab *table, const char *text);

/* Frees all strings and makes the table empty. */
void strtab_fini(struct strtab *table);

#endif
