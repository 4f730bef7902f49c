/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing arrays, byte strings, sets by hash and interned strings: see vec.h. */
#include "base/vec.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static bool has_failed;

static bool fail(void)
{
    __atomic_store_n(&has_failed, true, __ATOMIC_RELAXED);
    return false;
}

bool vec_has_failed(void)
{
    return __atomic_load_n(&has_failed, __ATOMIC_RELAXED);
}

bool vec_reserve(void *items, size_t *capacity, size_t n_needed, size_t elem_bytes)
{
    void **array = items;
    if (n_needed <= *capacity)
        return true;
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < n_needed) {
        if (wanted > SIZE_MAX / 2)
            return fail();
        wanted *= 2;
    }
    char *grown = wanted > SIZE_MAX / elem_bytes ? NULL : realloc(*array, wanted * elem_bytes);
    if (!grown)
        return fail();
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

/* The locale C, which exists already and needs no memory; 0 if it does not, which leaves the present one. */
static locale_t plain_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double plain_number(const char *text, char **end)
{
    locale_t plain = plain_locale();
    return plain ? strtod_l(text, end, plain) : strtod(text, end);
}

int plain_compare(const char *a, const char *b, size_t n)
{
    locale_t plain = plain_locale();
    return plain ? strncasecmp_l(a, b, n, plain) : strncasecmp(a, b, n);
}

#define PRINTED_BYTES 64 /* more than most numbers and words take: what is longer is formatted twice */

/* Appends what the locale C makes of a format; sets failed when out of memory. */
static void put_formatted(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    locale_t before = uselocale(plain_locale());
    bool has_room = !buf->failed && vec_reserve(&buf->data, &buf->capacity, buf->len_bytes + PRINTED_BYTES, 1);
    int len = has_room ? vsnprintf(buf->data + buf->len_bytes, PRINTED_BYTES, format, args) : 0;
    if (len >= PRINTED_BYTES &&
        (has_room = vec_reserve(&buf->data, &buf->capacity, buf->len_bytes + (size_t)len + 1, 1)))
        (void)vsnprintf(buf->data + buf->len_bytes, (size_t)len + 1, format, again);
    (void)uselocale(before);
    va_end(again);
    if (!has_room || len < 0)
        buf->failed = !fail();
    else
        buf->len_bytes += (size_t)len;
}

/* Most formats put names together, and there are many: what comes before any other conversion than %s needs no printf.
 */
void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t n = strcspn(format, "%");
    if (!buf->failed)
        buf->failed = !vec_reserve(&buf->data, &buf->capacity, buf->len_bytes + PRINTED_BYTES, 1);
    buf_append(buf, format, n);
    for (format += n; format[0] == '%' && format[1] == 's'; format += n) {
        const char *text = va_arg(args, const char *);
        text = text ? text : "(null)";
        buf_append(buf, text, strlen(text));
        format += 2;
        n = strcspn(format, "%");
        buf_append(buf, format, n);
    }
    if (*format)
        put_formatted(buf, format, args);
    va_end(args);
}

void buf_put_word(struct buf *buf, uint64_t word)
{
    char digits[20], *first = digits + sizeof digits;
    do
        *--first = (char)('0' + word % 10);
    while (word /= 10);
    buf_append(buf, first, (size_t)(digits + sizeof digits - first));
}

void buf_put_base64(struct buf *buf, const void *bytes, size_t len_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = bytes;
    for (size_t i = 0; i < len_bytes; i += 3) {
        size_t n = len_bytes - i < 3 ? len_bytes - i : 3;
        uint32_t word = (uint32_t)in[i] << 16 | (n > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (n > 2 ? in[i + 2] : 0);
        char group[4];
        for (size_t k = 0; k < 4; k++)
            group[k] = k <= n ? digits[word >> (18 - 6 * k) & 63] : '=';
        buf_append(buf, group, sizeof group);
    }
}

void buf_fini(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

/* --- a set by hash --- */

/* Open addressing, at most half full. */

#define SLOTS_LEAST 256

static uint32_t mark_of(const struct slots_kind *kind, const void *item)
{
    return (uint32_t)(kind->hash(item) * 0x9e3779b97f4a7c15u >> 24);
}

/* The slot of the item with this key and its mark, or the empty one where it would be. */
static size_t slot_of(const struct slots *slots, const struct slots_kind *kind, const char *items, const void *like,
                      uint32_t mark)
{
    size_t slot = mark & (slots->n - 1);
    while (slots->at[slot].number && (slots->at[slot].mark != mark ||
                                      !kind->is_same(items + (slots->at[slot].number - 1) * kind->item_bytes, like)))
        slot = (slot + 1) & (slots->n - 1);
    return slot;
}

/* Moves what is in the table into a larger one. */
static void move_slots(const struct slots *from, struct slots *into)
{
    for (size_t i = 0; i < from->n; i++) {
        size_t slot = from->at[i].mark & (into->n - 1);
        if (!from->at[i].number)
            continue;
        while (into->at[slot].number)
            slot = (slot + 1) & (into->n - 1);
        into->at[slot] = from->at[i];
    }
}

bool slots_reserve(struct slots *slots, const struct slots_kind *kind, const void *items, size_t n_items)
{
    struct slots larger = {.n = slots->n ? slots->n : SLOTS_LEAST};
    if (n_items * 2 < slots->n)
        return true;
    while (n_items * 2 >= larger.n)
        larger.n *= 2;
    if (!(larger.at = calloc(larger.n, sizeof *larger.at)))
        return false;
    bool was_empty = slots->n == 0;
    move_slots(slots, &larger);
    free(slots->at);
    *slots = larger;
    for (size_t i = 0; was_empty && i < n_items; i++)
        slots_add(slots, kind, items, i);
    return true;
}

/* Index of the item with this key and its mark, SLOTS_NONE when there is none. */
static size_t find_marked(const struct slots *slots, const struct slots_kind *kind, const void *items, const void *like,
                          uint32_t mark)
{
    uint32_t found = slots->n ? slots->at[slot_of(slots, kind, items, like, mark)].number : 0;
    return found ? found - 1 : SLOTS_NONE;
}

size_t slots_find(const struct slots *slots, const struct slots_kind *kind, const void *items, const void *like)
{
    return slots->n ? find_marked(slots, kind, items, like, mark_of(kind, like)) : SLOTS_NONE;
}

/* Enters an item whose key is not in the table. */
static void add_marked(struct slots *slots, size_t index, uint32_t mark)
{
    size_t slot = mark & (slots->n - 1);
    while (slots->at[slot].number)
        slot = (slot + 1) & (slots->n - 1);
    slots->at[slot] = (struct slots_entry){(uint32_t)index + 1, mark};
}

void slots_add(struct slots *slots, const struct slots_kind *kind, const void *items, size_t index)
{
    add_marked(slots, index, mark_of(kind, (const char *)items + index * kind->item_bytes));
}

size_t slots_put(struct slots *slots, const struct slots_kind *kind, void *items, size_t *n_items, size_t *capacity,
                 const void *like)
{
    void **array = items;
    if (!slots_reserve(slots, kind, *array, *n_items))
        return SLOTS_NONE;
    uint32_t mark = mark_of(kind, like);
    size_t index = find_marked(slots, kind, *array, like, mark);
    if (index != SLOTS_NONE)
        return index;
    if (!vec_reserve(items, capacity, *n_items + 1, kind->item_bytes))
        return SLOTS_NONE;
    index = (*n_items)++;
    memcpy((char *)*array + index * kind->item_bytes, like, kind->item_bytes);
    add_marked(slots, index, mark);
    return index;
}

void slots_fini(struct slots *slots)
{
    free(slots->at);
    *slots = (struct slots){0};
}

/* --- interned strings --- */

/* The last bytes of a text of len > 0, at most 8 of them, some of them twice. */
static uint64_t last_word(const char *text, size_t len)
{
    uint64_t word = 0;
    uint32_t halves[2];
    if (len >= sizeof word) {
        memcpy(&word, text + len - sizeof word, sizeof word);
    } else if (len >= sizeof *halves) {
        memcpy(&halves[0], text, sizeof *halves);
        memcpy(&halves[1], text + len - sizeof *halves, sizeof *halves);
        word = (uint64_t)halves[1] << 32 | halves[0];
    } else if (len > 0) {
        word = (uint64_t)(unsigned char)text[len - 1] << 16 | (uint64_t)(unsigned char)text[len / 2] << 8 |
               (unsigned char)*text;
    }
    return word;
}

/* By words: names in C++ are long, and every step waits for the last one. */
static uint64_t hash_text(const void *item)
{
    const char *text = *(const char *const *)item;
    size_t len = strlen(text);
    uint64_t hash = BYTES_HASH_START ^ len, word;
    for (; len > sizeof word; len -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = bytes_mix(hash, word);
    }
    return bytes_mix(hash, last_word(text, len));
}

static bool is_same_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

static const struct slots_kind texts = {sizeof(char *), hash_text, is_same_text};

/* Where the strings of a table lie: a few large pieces instead of one of its own for each. */
struct strtab_piece {
    struct strtab_piece *older;
    size_t capacity, n; /* bytes */
    char bytes[];
};

enum { LEAST_PIECE = 200, LARGEST_PIECE = 1 << 16 };

/* A copy of a text in the table; NULL when out of memory. */
static char *copy_text(struct strtab *table, const char *text)
{
    struct strtab_piece *piece = table->pieces;
    size_t n = strlen(text) + 1;
    if (!piece || piece->capacity - piece->n < n) {
        size_t capacity = !piece ? LEAST_PIECE : piece->capacity < LARGEST_PIECE ? piece->capacity * 2 : LARGEST_PIECE;
        capacity = capacity < n ? n : capacity;
        if (!(piece = malloc(sizeof *piece + capacity)))
            return NULL;
        *piece = (struct strtab_piece){.older = table->pieces, .capacity = capacity};
        table->pieces = piece;
    }
    char *copy = piece->bytes + piece->n;
    piece->n += n;
    return memcpy(copy, text, n);
}

int64_t strtab_intern(struct strtab *table, const char *text)
{
    uint32_t mark = mark_of(&texts, &text);
    size_t found = find_marked(&table->slots, &texts, table->strings, &text, mark);
    if (found != SLOTS_NONE)
        return (int64_t)found;
    if (!slots_reserve(&table->slots, &texts, table->strings, table->n_strings) ||
        !vec_reserve(&table->strings, &table->capacity, table->n_strings + 1, sizeof *table->strings))
        return -1;
    if (!(table->strings[table->n_strings] = copy_text(table, text)))
        return -1;
    add_marked(&table->slots, table->n_strings, mark);
    return (int64_t)table->n_strings++;
}

int64_t strtab_find(const struct strtab *table, const char *text)
{
    size_t found = slots_find(&table->slots, &texts, table->strings, &text);
    return found != SLOTS_NONE ? (int64_t)found : -1;
}

void strtab_fini(struct strtab *table)
{
    for (struct strtab_piece *piece = table->pieces, *older; piece; piece = older) {
        older = piece->older;
        free(piece);
    }
    free(table->strings);
    slots_fini(&table->slots);
    *table = (struct strtab){0};
}
