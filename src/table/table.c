/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of typed cells: see table.h. */
#include "table/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "fmt/csv.h"
#include "fmt/json.h"

#define BLOCK_BYTES 4072 /* with what malloc needs, a page */

/* What cells point to lies in blocks of memory, the newest first. */
struct table_block {
    struct table_block *next;
    size_t n_used, n_bytes; /* of those that follow */
};

/* --- columns --- */

void column_list_add(struct column_list *list, const struct column *columns, size_t n)
{
    list->failed = list->failed || !vec_reserve(&list->items, &list->cap, list->n + n, sizeof *list->items);
    if (!list->failed && n)
        memcpy(&list->items[list->n], columns, n * sizeof *columns);
    list->n += list->failed ? 0 : n;
}

void column_list_make(struct column_list *list, const char *key, const char *title, uint64_t kind)
{
    int64_t of_key = strtab_intern(&list->words, key), of_title = title ? strtab_intern(&list->words, title) : 0;
    list->failed |= of_key < 0 || of_title < 0;
    if (!list->failed)
        column_list_add(
            list, &(struct column){list->words.strings[of_key], title ? list->words.strings[of_title] : NULL, kind}, 1);
}

void column_list_fini(struct column_list *list)
{
    free(list->items);
    strtab_fini(&list->words);
    *list = (struct column_list){0};
}

/* --- filling --- */

static enum cell_kind kind_of(const struct column *column)
{
    return (enum cell_kind)(column->kind & COLUMN_KIND);
}

void table_fail(struct table *table)
{
    for (; table; table = table->parent)
        table->failed = true;
}

/* Takes over what the cell points to. */
static void put_cell(struct table *table, struct table_cell cell)
{
    if (table->n_cells == table->cap_cells) {
        size_t wanted = table->cap_cells ? 2 * table->cap_cells : table->n_columns + 8;
        struct table_cell *grown = table->failed ? NULL : reallocarray(table->cells, wanted, sizeof *grown);
        if (!grown) {
            table_fail(table);
            return;
        }
        table->cells = grown;
        table->cap_cells = wanted;
    }
    table->cells[table->n_cells++] = cell;
}

/* Memory that lives as long as the outermost table; NULL when there is none. */
static void *take(struct table *table, size_t n_bytes)
{
    struct table *outermost = table;
    while (outermost->parent)
        outermost = outermost->parent;
    struct table_block *block = outermost->blocks;
    size_t n = (n_bytes + 7) & ~(size_t)7;
    if (table->failed)
        return NULL;
    if (!block || block->n_bytes - block->n_used < n) {
        size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;
        if (!(block = malloc(sizeof *block + size))) {
            table_fail(table);
            return NULL;
        }
        *block = (struct table_block){.next = outermost->blocks, .n_bytes = size};
        outermost->blocks = block;
    }
    block->n_used += n;
    return (char *)(block + 1) + block->n_used - n;
}

void table_put_text(struct table *table, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;
    char *copy = text ? take(table, n) : NULL;
    if (copy)
        memcpy(copy, text, n);
    put_cell(table, (struct table_cell){.is_known = copy != NULL, .text = copy});
}

void table_put_borrowed(struct table *table, const char *text)
{
    put_cell(table, (struct table_cell){.is_known = text, .text = text});
}

void table_put_name(struct table *table, const char *name)
{
    table_put_text(table, name && *name ? name : NULL);
}

void table_put_variable(struct table *table, const char *name, const char *class, const char *site)
{
    table_put_text(table, name);
    table_put_borrowed(table, class);
    table_put_name(table, site);
}

void table_put_place(struct table *table, const char *function, const char *file, uint32_t line)
{
    table_put_borrowed(table, *function ? function : NULL);
    table_put_borrowed(table, *file ? file : NULL);
    table_put_if(table, line > 0, line);
}

void table_put_count(struct table *table, int64_t count)
{
    put_cell(table, (struct table_cell){.is_known = true, .count = count});
}

void table_put_word(struct table *table, uint64_t word)
{
    put_cell(table, (struct table_cell){.is_known = true, .word = word});
}

void table_put_number(struct table *table, double number)
{
    put_cell(table, (struct table_cell){.is_known = !isnan(number), .number = number});
}

void table_put_flag(struct table *table, bool flag)
{
    table_put_count(table, flag);
}

void table_put_words(struct table *table, const uint64_t *words, size_t n_words)
{
    struct table_words *copy = take(table, sizeof *copy + n_words * sizeof *words);
    if (copy) {
        copy->n = n_words;
        memcpy(copy->items, words, n_words * sizeof *words);
    }
    put_cell(table, (struct table_cell){.is_known = copy != NULL, .words = copy});
}

void table_put_absent(struct table *table)
{
    put_cell(table, (struct table_cell){.is_known = false});
}

void table_put_absents(struct table *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        table_put_absent(table);
}

void table_put_made(struct table *table, struct buf *text)
{
    if (text->failed)
        table_fail(table);
    table_put_text(table, text->data ? text->data : "");
    buf_fini(text);
}

void table_put_if(struct table *table, bool is_known, int64_t count)
{
    put_cell(table, (struct table_cell){.is_known = is_known, .count = count});
}

void table_put_word_if(struct table *table, bool is_known, uint64_t word)
{
    put_cell(table, (struct table_cell){.is_known = is_known, .word = word});
}

struct table *table_put_table(struct table *table, const struct column *columns, size_t n_columns)
{
    static struct table nothing = {.failed = true};
    struct table *inner = take(table, sizeof *inner);
    if (inner)
        *inner = (struct table){.columns = columns, .n_columns = n_columns, .parent = table};
    put_cell(table, (struct table_cell){.is_known = inner != NULL, .table = inner});
    return table->failed ? &nothing : inner;
}

/* Also those of tables in cells: recursion is as deep as these are nested. */
static void free_cells(const struct table *table)
{
    for (size_t column = 0; column < table->n_columns; column++)
        for (size_t i = column; kind_of(&table->columns[column]) == CELL_TABLE && i < table->n_cells;
             i += table->n_columns)
            if (table->cells[i].is_known)
                free_cells(table->cells[i].table);
    free(table->cells);
}

void table_fini(struct table *table)
{
    free_cells(table);
    for (struct table_block *next, *block = table->blocks; block; block = next) {
        next = block->next;
        free(block);
    }
    *table = (struct table){.columns = table->columns, .n_columns = table->n_columns};
}

/* --- numbers --- */

void span_put(struct buf *out, int64_t ns)
{
    if (ns < 1000 && ns > -1000)
        buf_printf(out, "%" PRId64 " ns", ns);
    else if (ns < 1000000 && ns > -1000000)
        buf_printf(out, "%.1f us", (double)ns * 1e-3);
    else if (ns < 1000000000 && ns > -1000000000)
        buf_printf(out, "%.3f ms", (double)ns * 1e-6);
    else
        buf_printf(out, "%.3f s", (double)ns * 1e-9);
}

/* How far a time may be from the six digits that it stands in text as, to either side of zero. */
static void time_margins(enum time_form form, int64_t *toward_zero_ns, int64_t *away_ns)
{
    enum { HALF_NS = 500, WHOLE_NS = 1000 };
    *toward_zero_ns = form == TIME_ROUNDED ? HALF_NS : 0;
    *away_ns = form == TIME_ROUNDED ? HALF_NS - 1 : form == TIME_CUT ? WHOLE_NS - 1 : 0;
}

void time_put(struct buf *out, int64_t t_ns, enum time_form form)
{
    uint64_t size_ns = t_ns < 0 ? -(uint64_t)t_ns : (uint64_t)t_ns;
    int64_t toward_ns, away_ns;
    time_margins(form, &toward_ns, &away_ns);
    size_ns += (uint64_t)toward_ns;
    buf_printf(out, "%s%" PRIu64, t_ns < 0 ? "-" : "", size_ns / 1000000000);
    if (form == TIME_WHOLE)
        buf_printf(out, ".%09" PRIu64, size_ns % 1000000000);
    else
        buf_printf(out, ".%06" PRIu64, size_ns / 1000 % 1000000);
}

/* Digits as a number of so many digits behind the point; false when it is too large. */
static bool take_digits(const char **text, size_t n_max, uint64_t *number, size_t *n_taken)
{
    *n_taken = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++) {
        if (*n_taken == n_max || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(**text - '0'), number))
            return false;
        ++*n_taken;
    }
    return true;
}

bool time_take(const char *text, enum time_form form, int64_t *t_ns, int64_t *first_ns, int64_t *last_ns)
{
    enum { NS_DIGITS = 9, US_DIGITS = 6, DIGITS_MAX = 20 };
    bool is_negative = *text == '-';
    uint64_t size_ns = 0;
    size_t n_before, n_behind = 0;
    int64_t toward_ns, away_ns;
    text += is_negative;
    if (!take_digits(&text, DIGITS_MAX, &size_ns, &n_before))
        return false;
    bool is_ns = n_before && strcmp(text, "ns") == 0;
    text += is_ns ? 2 : 0;
    if (!is_ns && *text == '.' && (text++, !take_digits(&text, NS_DIGITS, &size_ns, &n_behind)))
        return false;
    for (size_t i = n_behind; i < NS_DIGITS && !is_ns; i++)
        if (__builtin_mul_overflow(size_ns, 10, &size_ns))
            return false;
    if (*text || !(n_before + n_behind) || size_ns > INT64_MAX - 1000)
        return false;
    time_margins(is_ns || n_behind > US_DIGITS ? TIME_WHOLE : form, &toward_ns, &away_ns);
    *t_ns = is_negative ? -(int64_t)size_ns : (int64_t)size_ns;
    int64_t near_ns = size_ns ? (int64_t)size_ns - toward_ns : -away_ns, far_ns = (int64_t)size_ns + away_ns;
    *first_ns = is_negative ? -far_ns : near_ns;
    *last_ns = is_negative ? -near_ns : far_ns;
    return true;
}

static void put_count(struct buf *out, int64_t count)
{
    buf_append(out, "-", count < 0);
    buf_put_word(out, count < 0 ? -(uint64_t)count : (uint64_t)count);
}

static void put_word(struct buf *out, uint64_t word, enum cell_kind kind)
{
    if (kind == CELL_ADDRESS)
        buf_printf(out, "0x%" PRIx64, word);
    else
        buf_put_word(out, word);
}

/* --- text --- */

static void put_text_cell(const struct table_cell *cell, enum cell_kind kind, enum time_form form, struct buf *out)
{
    if (!cell->is_known || kind == CELL_WORDS || kind == CELL_TABLE)
        buf_append(out, "-", 1);
    else if (kind == CELL_FLAG)
        buf_printf(out, cell->count ? "yes" : "no");
    else if (kind == CELL_TEXT)
        printable_put(out, cell->text);
    else if (kind == CELL_SPAN)
        span_put(out, cell->count);
    else if (kind == CELL_TIME)
        time_put(out, cell->count, form);
    else if (kind == CELL_PERCENT)
        buf_printf(out, "%.1f %%", cell->number);
    else if (kind == CELL_NUMBER)
        json_put_double(out, cell->number);
    else if (kind == CELL_COUNT)
        put_count(out, cell->count);
    else
        put_word(out, cell->word, kind);
}

/* Appends text in a column of so many characters; nothing follows the last one. */
static void put_padded(struct buf *out, const char *text, size_t width, bool is_right, bool is_last)
{
    size_t used = printable_chars(text), n_blanks = used < width ? width - used : 0;
    buf_printf(out, "%*s%s", is_right ? (int)n_blanks : 0, "", text);
    if (!is_last)
        buf_printf(out, "%*s  ", is_right ? 0 : (int)n_blanks, "");
}

/* A column's title in text; NULL: it is not there. */
static const char *title_of(const struct column *column)
{
    return column->kind & COLUMN_CSV_TITLE || kind_of(column) == CELL_OBJECT ? NULL : column->title;
}

/* Column of the last title that is shown. */
static size_t last_shown(const struct table *table)
{
    size_t last = 0;
    for (size_t i = 0; i < table->n_columns; i++)
        last = title_of(&table->columns[i]) ? i : last;
    return last;
}

static bool make_widths(const struct table *table, size_t *widths)
{
    struct buf text = {0};
    for (size_t i = 0; i < table->n_columns; i++)
        widths[i] = title_of(&table->columns[i]) ? strlen(title_of(&table->columns[i])) : 0;
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        if (!title_of(&table->columns[column]))
            continue;
        text.len_bytes = 0;
        put_text_cell(&table->cells[i], kind_of(&table->columns[column]), table->time_form, &text);
        size_t width = text.len_bytes ? printable_chars(text.data) : 0;
        widths[column] = width > widths[column] ? width : widths[column];
    }
    bool ok = !text.failed;
    buf_fini(&text);
    return ok;
}

void table_print_text(const struct table *table, struct buf *out)
{
    size_t *widths = calloc(table->n_columns, sizeof *widths), last = last_shown(table);
    struct buf text = {0};
    if (!widths || !make_widths(table, widths)) {
        out->failed = true;
        free(widths);
        return;
    }
    for (size_t i = 0; i < table->n_columns; i++)
        if (title_of(&table->columns[i]))
            put_padded(out, title_of(&table->columns[i]), widths[i], kind_of(&table->columns[i]) != CELL_TEXT,
                       i == last);
    buf_append(out, "\n", 1);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        text.len_bytes = 0;
        buf_append(&text, "", 0);
        if (title_of(&table->columns[column])) {
            put_text_cell(&table->cells[i], kind_of(&table->columns[column]), table->time_form, &text);
            put_padded(out, text.len_bytes ? text.data : "", widths[column],
                       kind_of(&table->columns[column]) != CELL_TEXT, column == last);
        }
        if (column + 1 == table->n_columns)
            buf_append(out, "\n", 1);
    }
    out->failed |= text.failed;
    buf_fini(&text);
    free(widths);
}

/* --- CSV --- */

static void put_csv_cell(const struct table_cell *cell, const struct column *column, struct buf *out)
{
    enum cell_kind kind = kind_of(column);
    int n_digits = column->kind & COLUMN_ALL_DIGITS ? 15
                   : column->kind & COLUMN_6_DIGITS ? 6
                   : column->kind & COLUMN_4_DIGITS ? 4
                                                    : 3;
    if (!cell->is_known)
        return;
    if (kind == CELL_TEXT && column->kind & COLUMN_QUOTED)
        csv_put_quoted(out, cell->text);
    else if (kind == CELL_TEXT)
        csv_put_text(out, cell->text);
    else if (kind == CELL_PERCENT || kind == CELL_NUMBER)
        buf_printf(out, column->kind & COLUMN_ALL_DIGITS ? "%.*g" : "%.*f", n_digits, cell->number);
    else if (kind == CELL_WORD || kind == CELL_ADDRESS)
        put_word(out, cell->word, kind);
    else
        put_count(out, cell->count);
}

static bool is_in_csv(const struct column *column)
{
    enum cell_kind kind = kind_of(column);
    bool is_aside = kind == CELL_WORDS || kind == CELL_TABLE || kind == CELL_OBJECT;
    return !(is_aside || column->kind & COLUMN_NO_CSV);
}

/* A column of CSV. */
struct csv_column {
    const struct column *column;
    size_t at; /* its cell in a row */
    uint64_t place;
    bool is_joined; /* the cell is one of the joined table */
};

/* Adds one behind those of its place and of lower ones. */
static void add_csv_column(struct csv_column *list, size_t *n, struct csv_column added)
{
    size_t at = (*n)++;
    for (; at && list[at - 1].place > added.place; at--)
        list[at] = list[at - 1];
    list[at] = added;
}

/* The columns of CSV in their order, malloc'ed, those of joined tables in the place of these; NULL when out of memory.
 */
static struct csv_column *make_csv_columns(const struct table *table, size_t *n)
{
    struct csv_column *list = calloc(table->n_columns + table->n_joined, sizeof *list);
    *n = 0;
    for (size_t i = 0; list && i < table->n_columns; i++) {
        const struct column *column = &table->columns[i];
        uint64_t place = column->kind >> COLUMN_SHIFT;
        if (is_in_csv(column))
            add_csv_column(list, n, (struct csv_column){column, i, place, false});
        for (size_t k = 0; column->kind & COLUMN_JOINED && k < table->n_joined; k++)
            if (is_in_csv(&table->joined[k]))
                add_csv_column(list, n, (struct csv_column){&table->joined[k], k, place, true});
    }
    return list;
}

/* The table in the cell of a row that has this flag; NULL: there is none. */
static const struct table *inner_of(const struct table *table, size_t row, unsigned flag)
{
    const struct table_cell *cells = &table->cells[row * table->n_columns];
    size_t i = 0;
    while (i < table->n_columns && !(table->columns[i].kind & flag))
        i++;
    return i < table->n_columns && cells[i].is_known ? cells[i].table : NULL;
}

/* A line of the cells of a row and of one of its joined table; of this nothing where inner is NULL. */
static void put_csv_line(const struct table_cell *outer, const struct table_cell *inner, const struct csv_column *list,
                         size_t n, struct buf *out)
{
    for (size_t k = 0; k < n; k++) {
        const struct table_cell *cells = list[k].is_joined ? inner : outer;
        buf_append(out, ",", k > 0);
        if (cells)
            put_csv_cell(&cells[list[k].at], list[k].column, out);
    }
    buf_append(out, "\n", 1);
}

/* Without titles. Recursion is as deep as the columns' tables are nested. */
static void put_csv_rows(const struct table *table, const struct csv_column *list, size_t n, struct buf *out)
{
    for (size_t row = 0; row < table_rows(table); row++) {
        const struct table_cell *cells = &table->cells[row * table->n_columns];
        const struct table *joined = inner_of(table, row, COLUMN_JOINED), *below = inner_of(table, row, COLUMN_FOLLOWS);
        size_t n_lines = joined ? table_rows(joined) : 0, n_below = 0;
        for (size_t line = 0; line < n_lines; line++)
            put_csv_line(cells, &joined->cells[line * joined->n_columns], list, n, out);
        if (!n_lines && (!joined || joined != inner_of(table, row, COLUMN_NO_EMPTY)))
            put_csv_line(cells, NULL, list, n, out);
        struct csv_column *list_below = below ? make_csv_columns(below, &n_below) : NULL;
        out->failed |= below && !list_below;
        if (list_below)
            put_csv_rows(below, list_below, n_below, out);
        free(list_below);
    }
}

void table_print_csv(const struct table *table, struct buf *out)
{
    size_t n = 0;
    struct csv_column *list = make_csv_columns(table, &n);
    out->failed |= !list;
    for (size_t k = 0; k < n; k++) {
        buf_append(out, ",", k > 0);
        csv_put_text(out, list[k].column->kind & COLUMN_CSV_TITLE ? list[k].column->title : list[k].column->key);
    }
    buf_append(out, "\n", 1);
    put_csv_rows(table, list, n, out);
    free(list);
}

/* --- JSON --- */

static void put_json_members(const struct table_cell *cells, const struct column *columns, size_t n, bool is_bare,
                             struct buf *out);
static void put_json_rows(const struct table *table, const char *line, bool is_bare, struct buf *out);

/* A cell of an object is followed by its members. Recursion is as deep as the columns' tables and objects are nested.
 */
static void put_json_cell(const struct table_cell *cell, const struct column *column, struct buf *out)
{
    enum cell_kind kind = kind_of(column);
    if (!cell->is_known)
        buf_printf(out, "null");
    else if (kind == CELL_TEXT)
        json_put_text(out, cell->text);
    else if (kind == CELL_PERCENT || kind == CELL_NUMBER)
        json_put_double(out, cell->number);
    else if (kind == CELL_WORD || kind == CELL_ADDRESS)
        json_put_word(out, cell->word);
    else if (kind == CELL_FLAG)
        buf_printf(out, cell->count ? "true" : "false");
    else if (kind == CELL_WORDS)
        json_put_words(out, cell->words->items, cell->words->n);
    else if (kind == CELL_TABLE)
        put_json_rows(cell->table,
                      column->kind & COLUMN_INDENTED ? "\n    "
                      : column->kind & COLUMN_LINES  ? "\n"
                                                     : "",
                      column->kind & COLUMN_BARE, out);
    else if (kind != CELL_OBJECT)
        put_count(out, cell->count);
    else {
        buf_append(out, "{", 1);
        put_json_members(cell + 1, column + 1, column->kind >> COLUMN_SHIFT, false, out);
        buf_append(out, "}", 1);
    }
}

/* The cells with their keys; bare: without. */
static void put_json_members(const struct table_cell *cells, const struct column *columns, size_t n, bool is_bare,
                             struct buf *out)
{
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        const struct column *column = &columns[i];
        if (!(column->kind & COLUMN_NO_JSON) && (cells[i].is_known || !(column->kind & COLUMN_LEFT_OUT))) {
            bool is_indented = column->kind & COLUMN_INDENTED;
            buf_printf(out, is_indented ? is_first ? "\n  " : ",\n  " : "");
            if (!is_bare)
                json_put_key(out, column->key, is_first || is_indented);
            else if (!is_first)
                buf_append(out, ", ", 2);
            put_json_cell(&cells[i], column, out);
            is_first = false;
        }
        i += kind_of(column) == CELL_OBJECT ? column->kind >> COLUMN_SHIFT : 0;
    }
}

static void put_json_rows(const struct table *table, const char *line, bool is_bare, struct buf *out)
{
    bool has_braces = !is_bare || table->n_columns > 1;
    buf_append(out, "[", 1);
    for (size_t row = 0; row < table_rows(table); row++) {
        buf_printf(out, "%s%s", !row ? "" : *line ? "," : ", ", line);
        buf_append(out, is_bare ? "[" : "{", has_braces);
        put_json_members(&table->cells[row * table->n_columns], table->columns, table->n_columns, is_bare, out);
        buf_append(out, is_bare ? "]" : "}", has_braces);
    }
    buf_append(out, "]", 1);
}

void table_print_cell(const struct table_cell *cell, const struct column *column, struct buf *out)
{
    put_json_cell(cell, column, out);
}

void table_print_members(const struct table *table, struct buf *out)
{
    if (table->n_cells)
        put_json_members(table->cells, table->columns, table->n_columns, false, out);
}

void table_print_json(const struct table *table, const char *line, struct buf *out)
{
    put_json_rows(table, line, false, out);
}
