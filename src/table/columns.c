/* SPDX-License-Identifier: BSD-3-Clause */
/* A table column by column: see columns.h. */
#include "table/columns.h"

#include <math.h>

#include "table/table.h"

size_t table_rows(const struct table *table)
{
    return table->n_columns ? table->n_cells / table->n_columns : 0;
}

size_t table_columns(const struct table *table)
{
    return table->n_columns;
}

const char *table_key(const struct table *table, size_t column)
{
    return column < table->n_columns ? table->columns[column].key : NULL;
}

enum cell_kind table_kind(const struct table *table, size_t column)
{
    return column < table->n_columns ? (enum cell_kind)(table->columns[column].kind & COLUMN_KIND) : CELL_TEXT;
}

size_t table_members(const struct table *table, size_t column)
{
    return table_kind(table, column) == CELL_OBJECT ? table->columns[column].kind >> COLUMN_SHIFT : 0;
}

bool table_is_for_csv(const struct table *table, size_t column)
{
    return column < table->n_columns && table->columns[column].kind & COLUMN_NO_JSON;
}

#define KIND(kind) (1u << (CELL_##kind))
#define REALS (KIND(NUMBER) | KIND(PERCENT))
#define WHOLES (KIND(COUNT) | KIND(SPAN) | KIND(TIME) | KIND(FLAG) | KIND(OBJECT))
#define WORDS (KIND(WORD) | KIND(ADDRESS))

/* The first cell of n in a column of a kind in the set; NULL: there is none. The next one is a row's cells behind it.
 */
static const struct table_cell *find(const struct table *table, size_t column, size_t first, size_t n, unsigned kinds)
{
    static const struct table_cell none;
    size_t n_rows = table_rows(table);
    if (column >= table->n_columns || !(kinds >> table_kind(table, column) & 1) || first > n_rows || n > n_rows - first)
        return NULL;
    return n ? &table->cells[first * table->n_columns + column] : &none;
}

bool table_get_numbers(const struct table *table, size_t column, size_t first, size_t n, double *numbers)
{
    const struct table_cell *cell = find(table, column, first, n, REALS | WHOLES | WORDS);
    unsigned kind = 1u << table_kind(table, column);
    for (size_t i = 0; cell && i < n; i++, cell += table->n_columns)
        numbers[i] = !cell->is_known ? (double)NAN
                     : kind & REALS  ? cell->number
                     : kind & WORDS  ? (double)cell->word
                                     : (double)cell->count;
    return cell;
}

bool table_get_counts(const struct table *table, size_t column, size_t first, size_t n, int64_t *counts,
                      unsigned char *known)
{
    const struct table_cell *cell = find(table, column, first, n, WHOLES);
    for (size_t i = 0; cell && i < n; i++, cell += table->n_columns) {
        known[i] = cell->is_known;
        counts[i] = cell->is_known ? cell->count : 0;
    }
    return cell;
}

bool table_get_words(const struct table *table, size_t column, size_t first, size_t n, uint64_t *words,
                     unsigned char *known)
{
    const struct table_cell *cell = find(table, column, first, n, WORDS);
    for (size_t i = 0; cell && i < n; i++, cell += table->n_columns) {
        known[i] = cell->is_known;
        words[i] = cell->is_known ? cell->word : 0;
    }
    return cell;
}

bool table_get_texts(const struct table *table, size_t column, size_t first, size_t n, const char **texts)
{
    const struct table_cell *cell = find(table, column, first, n, KIND(TEXT));
    for (size_t i = 0; cell && i < n; i++, cell += table->n_columns)
        texts[i] = cell->is_known ? cell->text : NULL;
    return cell;
}

bool table_get_tables(const struct table *table, size_t column, size_t first, size_t n, const struct table **tables)
{
    const struct table_cell *cell = find(table, column, first, n, KIND(TABLE));
    for (size_t i = 0; cell && i < n; i++, cell += table->n_columns)
        tables[i] = cell->is_known ? cell->table : NULL;
    return cell;
}

bool table_get_lists(const struct table *table, size_t column, size_t first, size_t n, const uint64_t **lists,
                     size_t *lengths)
{
    const struct table_cell *cell = find(table, column, first, n, KIND(WORDS));
    for (size_t i = 0; cell && i < n; i++, cell += table->n_columns) {
        lists[i] = cell->is_known ? cell->words->items : NULL;
        lengths[i] = cell->is_known ? cell->words->n : 0;
    }
    return cell;
}
