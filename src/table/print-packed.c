/* SPDX-License-Identifier: BSD-3-Clause */
/* A table as packed columns: see table_print_packed. A column's values are numbers of 4 or 8 bytes that lie in planes,
 * which deflate well, since numbers of a column are alike in their high bytes. */
#include "table/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "fmt/json.h"

#define ABSENT UINT32_MAX      /* of 32 bits */
#define PLACE (UINT32_MAX - 1) /* of identities: "line:FILE:LINE", of the columns "file" and "line" */
#define EXACT_MOST (1LL << 53) /* the largest of whole numbers that doubles hold */
#define KNOWN 1024             /* texts whose numbers are known by where they lie: most cells have one of few */
#define SCALES 12              /* parts of the least number that are tried as the scale of a column */

struct pack {
    const struct table *table;
    size_t n;           /* rows */
    struct buf columns; /* the header's list */
    struct buf data;    /* of all columns */
    struct strtab texts;
    uint64_t *values;        /* [n] of the column that is packed */
    unsigned char *plane;    /* [n] */
    unsigned char *is_there; /* [n] the objects that the column is in */
    bool failed;
    struct {
        const char *text;
        uint64_t number;
    } known[KNOWN];
};

static enum cell_kind kind_of(const struct column *column)
{
    return (enum cell_kind)(column->kind & COLUMN_KIND);
}

/* A cell, absent where an object around it is. */
static const struct table_cell *cell_at(const struct pack *pack, size_t column, size_t row)
{
    static const struct table_cell absent;
    return pack->is_there[row] ? &pack->table->cells[row * pack->table->n_columns + column] : &absent;
}

/* --- the bytes of a column --- */

/* Appends the values, of so many bytes, in planes: the lowest bytes of all, then the second ones. */
static void put_planes(struct pack *pack, unsigned n_bytes)
{
    static const char zeros[8];
    for (unsigned plane = 0; plane < n_bytes; plane++) {
        for (size_t i = 0; i < pack->n; i++)
            pack->plane[i] = (unsigned char)(pack->values[i] >> 8 * plane);
        buf_append(&pack->data, pack->plane, pack->n);
    }
    buf_append(&pack->data, zeros, -pack->data.len_bytes & 7);
}

static uint32_t difference_of(const struct pack *pack, size_t i)
{
    uint32_t before = i ? (uint32_t)pack->values[i - 1] : 0, by = (uint32_t)pack->values[i] - before;
    return by << 1 ^ (by >> 31 ? UINT32_MAX : 0);
}

/* How many of the four bytes are others than in the value before. */
static unsigned changes(uint32_t value, uint32_t before)
{
    uint32_t by = value ^ before;
    return !!(by & 0xff) + !!(by & 0xff00) + !!(by & 0xff0000) + !!(by >> 24);
}

/* Whether differences are the simpler ones to deflate. */
static bool is_smaller_as_differences(const struct pack *pack)
{
    size_t plain = 0, as_differences = 0;
    uint32_t before = 0;
    for (size_t i = 1; i < pack->n; i++) {
        uint32_t difference = difference_of(pack, i);
        plain += changes((uint32_t)pack->values[i], (uint32_t)pack->values[i - 1]);
        as_differences += changes(difference, before);
        before = difference;
    }
    return as_differences < plain;
}

/* Puts values of 32 bits; type: what they are, in JSON. */
static void put_words(struct pack *pack, const char *type)
{
    bool has_differences = is_smaller_as_differences(pack);
    buf_printf(&pack->columns, ",\"type\":%s%s", type, has_differences ? ",\"delta\":true" : "");
    for (size_t i = pack->n; has_differences && i-- > 0;)
        pack->values[i] = difference_of(pack, i);
    put_planes(pack, 4);
}

/* --- kinds of cells --- */

static double number_of(const struct table_cell *cell, enum cell_kind kind)
{
    return !cell->is_known                               ? (double)NAN
           : kind == CELL_PERCENT || kind == CELL_NUMBER ? cell->number
           : kind == CELL_WORD || kind == CELL_ADDRESS   ? (double)cell->word
                                                         : (double)cell->count;
}

/* Whether all numbers are so many times the scale, exactly. */
static bool are_times(const struct pack *pack, size_t column, double scale)
{
    bool are = true;
    for (size_t i = 0; are && i < pack->n; i++) {
        double number = number_of(cell_at(pack, column, i), CELL_NUMBER), times = nearbyint(number / scale);
        are = isnan(number) || (times >= 0 && times < ABSENT && times * scale == number && !signbit(number));
    }
    return are;
}

/* The cost of which all numbers are multiples; 0: there is none. */
static double scale_of(const struct pack *pack, size_t column)
{
    double least = INFINITY;
    for (size_t i = 0; i < pack->n; i++) {
        double number = number_of(cell_at(pack, column, i), CELL_NUMBER);
        least = number > 0 && number < least ? number : least;
    }
    if (are_times(pack, column, 1))
        return 1;
    for (int part = 1; isfinite(least) && part <= SCALES; part++)
        if (are_times(pack, column, least / part))
            return least / part;
    return 0;
}

static void put_doubles(struct pack *pack, size_t column)
{
    for (size_t i = 0; i < pack->n; i++) {
        double number = number_of(cell_at(pack, column, i), kind_of(&pack->table->columns[column]));
        memcpy(&pack->values[i], &number, sizeof number);
    }
    buf_printf(&pack->columns, ",\"type\":\"f64\"");
    put_planes(pack, 8);
}

static void pack_reals(struct pack *pack, size_t column)
{
    double scale = scale_of(pack, column);
    struct buf type = {0};
    if (scale <= 0) {
        put_doubles(pack, column);
        return;
    }
    for (size_t i = 0; i < pack->n; i++) {
        double number = number_of(cell_at(pack, column, i), CELL_NUMBER);
        pack->values[i] = isnan(number) ? ABSENT : (uint64_t)nearbyint(number / scale);
    }
    buf_printf(&type, "\"scaled\",\"scale\":");
    json_put_double(&type, scale);
    put_words(pack, type.data ? type.data : "");
    pack->failed |= type.failed;
    buf_fini(&type);
}

/* Sets value i to a text's number; NULL: absent. */
static void take_text(struct pack *pack, size_t i, const char *text)
{
    int64_t number = text ? strtab_intern(&pack->texts, text) : ABSENT;
    pack->failed |= number < 0 || (text && number >= PLACE);
    pack->values[i] = (uint64_t)number;
}

static void pack_json(struct pack *pack, size_t column)
{
    struct buf text = {0};
    for (size_t i = 0; i < pack->n; i++) {
        const struct table_cell *cell = cell_at(pack, column, i);
        text.len_bytes = 0;
        if (cell->is_known)
            table_print_cell(cell, &pack->table->columns[column], &text);
        take_text(pack, i, cell->is_known ? text.data : NULL);
    }
    pack->failed |= text.failed;
    buf_fini(&text);
    put_words(pack, "\"json\"");
}

/* Whole numbers: of 32 bits, as doubles, or where these cannot hold them as JSON. */
static void pack_wholes(struct pack *pack, size_t column)
{
    enum cell_kind kind = kind_of(&pack->table->columns[column]);
    bool fit_words = true, fit_doubles = true;
    for (size_t i = 0; i < pack->n; i++) {
        const struct table_cell *cell = cell_at(pack, column, i);
        bool has_sign = kind != CELL_WORD && kind != CELL_ADDRESS && cell->is_known && cell->count < 0;
        uint64_t size = has_sign ? -(uint64_t)cell->count : cell->word;
        fit_words = fit_words && (!cell->is_known || (!has_sign && size < ABSENT));
        fit_doubles = fit_doubles && (!cell->is_known || size <= EXACT_MOST);
        pack->values[i] = cell->is_known ? size : ABSENT;
    }
    if (fit_words)
        put_words(pack, "\"u32\"");
    else if (fit_doubles)
        put_doubles(pack, column);
    else
        pack_json(pack, column);
}

static void pack_flags(struct pack *pack, size_t column)
{
    for (size_t i = 0; i < pack->n; i++) {
        const struct table_cell *cell = cell_at(pack, column, i);
        pack->values[i] = cell->is_known ? cell->count != 0 : UINT8_MAX;
    }
    buf_printf(&pack->columns, ",\"type\":\"u8\"");
    put_planes(pack, 1);
}

/* Appends text whose bytes that are not UTF-8 have become U+FFFD. */
static void put_clean(const char *text, struct buf *out)
{
    out->len_bytes = 0;
    buf_append(out, "", 0);
    for (size_t len; *text; text += len ? len : 1) {
        len = printable_utf8(text);
        buf_append(out, len ? text : "\xef\xbf\xbd", len ? len : 3);
    }
}

/* Sets value i to a text's number, by way of `clean`. */
static void take_clean(struct pack *pack, size_t i, const char *text, struct buf *clean)
{
    size_t place = (uintptr_t)text / 8 % KNOWN;
    if (pack->known[place].text != text) {
        put_clean(text, clean);
        take_text(pack, i, clean->data);
        pack->known[place].text = text;
        pack->known[place].number = pack->values[i];
    }
    pack->values[i] = pack->known[place].number;
}

/* The column of a key, SIZE_MAX: there is none of this kind. */
static size_t column_of(const struct table *table, const char *key, enum cell_kind kind)
{
    size_t i = 0;
    while (i < table->n_columns && (strcmp(table->columns[i].key, key) != 0 || kind_of(&table->columns[i]) != kind))
        i++;
    return i < table->n_columns ? i : SIZE_MAX;
}

/* Whether a text is "line:FILE:LINE". */
static bool is_place(const char *text, const struct table_cell *file, const struct table_cell *line)
{
    static const char kind[] = "line:";
    if (!file->is_known || !line->is_known || strncmp(text, kind, sizeof kind - 1) != 0)
        return false;
    size_t n = strlen(file->text);
    char number[24];
    snprintf(number, sizeof number, ":%" PRId64, line->count);
    text += sizeof kind - 1;
    return strncmp(text, file->text, n) == 0 && strcmp(text + n, number) == 0;
}

static void pack_texts(struct pack *pack, size_t column)
{
    struct buf text = {0};
    bool is_item = strcmp(pack->table->columns[column].key, "item") == 0;
    size_t file = is_item ? column_of(pack->table, "file", CELL_TEXT) : SIZE_MAX;
    size_t line = is_item ? column_of(pack->table, "line", CELL_COUNT) : SIZE_MAX;
    for (size_t i = 0; i < pack->n; i++) {
        const struct table_cell *cell = cell_at(pack, column, i);
        if (cell->is_known && file != SIZE_MAX && line != SIZE_MAX &&
            is_place(cell->text, cell_at(pack, file, i), cell_at(pack, line, i))) {
            pack->values[i] = PLACE;
            continue;
        }
        if (cell->is_known)
            take_clean(pack, i, cell->text, &text);
        else
            take_text(pack, i, NULL);
    }
    pack->failed |= text.failed;
    buf_fini(&text);
    put_words(pack, "\"text\"");
}

/* --- columns --- */

static bool is_same_cell(const struct table_cell *a, const struct table_cell *b, enum cell_kind kind)
{
    if (!a->is_known || !b->is_known)
        return a->is_known == b->is_known;
    if (kind == CELL_TEXT)
        return a->text == b->text || strcmp(a->text, b->text) == 0;
    return kind != CELL_WORDS && kind != CELL_TABLE && a->word == b->word;
}

/* Whether one value stands for all rows. */
static bool is_same(const struct pack *pack, size_t column)
{
    enum cell_kind kind = kind_of(&pack->table->columns[column]);
    size_t i = 1;
    while (i < pack->n && is_same_cell(cell_at(pack, column, 0), cell_at(pack, column, i), kind))
        i++;
    if (pack->n == 0 || i < pack->n || !cell_at(pack, column, 0)->is_known)
        return i >= pack->n;
    return !(kind == CELL_NUMBER || kind == CELL_PERCENT) || isfinite(cell_at(pack, column, 0)->number);
}

static void put_same(struct pack *pack, size_t column)
{
    const struct table_cell *cell = pack->n ? cell_at(pack, column, 0) : NULL;
    struct buf text = {0};
    buf_printf(&pack->columns, ",\"type\":\"same\",\"value\":");
    if (cell && cell->is_known && kind_of(&pack->table->columns[column]) == CELL_TEXT) {
        put_clean(cell->text, &text);
        json_put_text(&pack->columns, text.data);
        pack->failed |= text.failed;
        buf_fini(&text);
    } else if (cell) {
        table_print_cell(cell, &pack->table->columns[column], &pack->columns);
    } else {
        buf_printf(&pack->columns, "null");
    }
}

static void pack_column(struct pack *pack, size_t number, const char *prefix)
{
    static const char *const kinds[] = {
        [CELL_TEXT] = "text",     [CELL_COUNT] = "count",     [CELL_WORD] = "word",   [CELL_ADDRESS] = "address",
        [CELL_NUMBER] = "number", [CELL_PERCENT] = "percent", [CELL_SPAN] = "span",   [CELL_TIME] = "time",
        [CELL_FLAG] = "flag",     [CELL_WORDS] = "words",     [CELL_TABLE] = "table", [CELL_OBJECT] = "object"};
    const struct column *column = &pack->table->columns[number];
    enum cell_kind kind = kind_of(column);
    struct buf key = {0};
    buf_printf(&key, "%s%s", prefix, column->key);
    buf_printf(&pack->columns, "%s{", pack->columns.len_bytes ? ",\n" : "");
    json_put_key(&pack->columns, "key", 1);
    json_put_text(&pack->columns, key.data);
    if (column->title && !(column->kind & COLUMN_CSV_TITLE))
        json_put_text_at(&pack->columns, "title", column->title);
    json_put_text_at(&pack->columns, "kind", kinds[kind]);
    if (is_same(pack, number))
        put_same(pack, number);
    else if (kind == CELL_TEXT)
        pack_texts(pack, number);
    else if (kind == CELL_NUMBER || kind == CELL_PERCENT)
        pack_reals(pack, number);
    else if (kind == CELL_FLAG)
        pack_flags(pack, number);
    else if (kind == CELL_WORDS || kind == CELL_TABLE)
        pack_json(pack, number);
    else
        pack_wholes(pack, number);
    buf_append(&pack->columns, "}", 1);
    pack->failed |= key.failed;
    buf_fini(&key);
}

static void pack_columns(struct pack *pack, size_t first, size_t n, const char *prefix);

/* The members of an object, which are absent where it is. */
static void pack_object(struct pack *pack, size_t column, const char *prefix)
{
    unsigned char *outer = pack->is_there, *inner = malloc(pack->n + 1);
    struct buf key = {0};
    buf_printf(&key, "%s%s.", prefix, pack->table->columns[column].key);
    for (size_t i = 0; inner && i < pack->n; i++)
        inner[i] = cell_at(pack, column, i)->is_known;
    pack->failed |= !inner || key.failed;
    if (inner && key.data) {
        pack->is_there = inner;
        pack_columns(pack, column + 1, pack->table->columns[column].kind >> COLUMN_SHIFT, key.data);
    }
    pack->is_there = outer;
    free(inner);
    buf_fini(&key);
}

/* Recursion is as deep as objects are nested. */
static void pack_columns(struct pack *pack, size_t first, size_t n, const char *prefix)
{
    for (size_t i = first; i < first + n; i++) {
        uint64_t kind = pack->table->columns[i].kind;
        bool is_object = (kind & COLUMN_KIND) == CELL_OBJECT;
        bool is_left_out = kind & COLUMN_NO_JSON && (kind & COLUMN_PACKED) != COLUMN_PACKED;
        if (!is_left_out && is_object)
            pack_object(pack, i, prefix);
        else if (!is_left_out)
            pack_column(pack, i, prefix);
        i += is_object ? kind >> COLUMN_SHIFT : 0;
    }
}

/* Appends the whole: both lengths and all that they are of. */
static void put_packed(const struct pack *pack, const struct buf *about, struct buf *out)
{
    struct buf header = {0};
    size_t text_bytes = 0;
    unsigned char length[4];
    for (size_t i = 0; i < pack->texts.n_strings; i++)
        text_bytes += strlen(pack->texts.strings[i]) + 1;
    buf_printf(&header, "{%s,\n\"rows\":%zu,\"more\":%zu,\"texts\":%zu,\"text_bytes\":%zu,\"columns\":[%s]}",
               about->data ? about->data : "", pack->n, pack->table->n_more, pack->texts.n_strings, text_bytes,
               pack->columns.data ? pack->columns.data : "");
    buf_append(&header, "       ", -header.len_bytes & 7);
    for (int i = 0; i < 4; i++)
        length[i] = (unsigned char)(header.len_bytes >> 8 * i);
    buf_append(out, "LOC1", 4);
    buf_append(out, length, sizeof length);
    buf_append(out, header.data, header.len_bytes);
    buf_append(out, pack->data.data, pack->data.len_bytes);
    for (size_t i = 0; i < pack->texts.n_strings; i++)
        buf_append(out, pack->texts.strings[i], strlen(pack->texts.strings[i]) + 1);
    out->failed |= header.failed || header.len_bytes > UINT32_MAX;
    buf_fini(&header);
}

void table_print_packed(const struct table *table, const struct buf *about, struct buf *out)
{
    struct pack pack = {.table = table, .n = table_rows(table)};
    pack.values = calloc(pack.n + 1, sizeof *pack.values);
    pack.plane = malloc(pack.n + 1);
    pack.is_there = malloc(pack.n + 1);
    pack.failed = !pack.values || !pack.plane || !pack.is_there;
    if (!pack.failed) {
        memset(pack.is_there, 1, pack.n);
        pack_columns(&pack, 0, table->n_columns, "");
        put_packed(&pack, about, out);
    }
    out->failed |= pack.failed || about->failed || pack.columns.failed || pack.data.failed;
    free(pack.is_there);
    free(pack.plane);
    free(pack.values);
    strtab_fini(&pack.texts);
    buf_fini(&pack.data);
    buf_fini(&pack.columns);
}
