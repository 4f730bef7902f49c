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

/* Whether there is a column, of a kind in the set. */
static bool is_of(const struct table *table, size_t column, unsigned kinds)
{
    return column < table->n_columns && kinds >> table_kind(table, column) & 1;
}

#define KIND(kind) (1u << (CELL_##kind))
#define REALS (KIND(NUMBER) | KIND(PERCENT))
#define WHOLES (KIND(COUNT) | KIND(SPAN) | KIND(TIME) | KIND(FLAG) | KIND(OBJECT))
#define WORDS (KIND(WORD) | KIND(ADDRESS))

static const struct table_cell *cell_at(const struct table *table, size_t row, size_t column)
{
    return &table->cells[row * table->n_columns + column];
}

bool table_get_numbers(const struct table *table, size_t column, double *numbers)
{
    bool is_real = is_of(table, column, REALS), is_word = is_of(table, column, WORDS);
    if (!is_of(table, column, REALS | WHOLES | WORDS))
        return false;
    for (size_t row = 0; row < table_rows(table); row++) {
        const struct table_cell *cell = cell_at(table, row, column);
        numbers[row] = !cell->is_known ? (double)NAN
                       : is_real       ? cell->number
                       : is_word       ? (double)cell->word
                                       : (double)cell->count;
    }
    return true;
}

bool table_get_counts(const struct table *table, size_t column, int64_t *counts, bool *known)
{
    if (!is_of(table, column, WHOLES))
        return false;
    for (size_t row = 0; row < table_rows(table); row++) {
        const struct table_cell *cell = cell_at(table, row, column);
        known[row] = cell->is_known;
        counts[row] = cell->is_known ? cell->count : 0;
    }
    return true;
}

bool table_get_words(const struct table *table, size_t column, uint64_t *words, bool *known)
{
    if (!is_of(table, column, WORDS))
        return false;
    for (size_t row = 0; row < table_rows(table); row++) {
        const struct table_cell *cell = cell_at(table, row, column);
        known[row] = cell->is_known;
        words[row] = cell->is_known ? cell->word : 0;
    }
    return true;
}

bool table_get_texts(const struct table *table, size_t column, const char **texts)
{
    if (!is_of(table, column, KIND(TEXT)))
        return false;
    for (size_t row = 0; row < table_rows(table); row++)
        texts[row] = cell_at(table, row, column)->is_known ? cell_at(table, row, column)->text : NULL;
    return true;
}

bool table_get_tables(const struct table *table, size_t column, const struct table **tables)
{
    if (!is_of(table, column, KIND(TABLE)))
        return false;
    for (size_t row = 0; row < table_rows(table); row++)
        tables[row] = cell_at(table, row, column)->is_known ? cell_at(table, row, column)->table : NULL;
    return true;
}

bool table_get_lists(const struct table *table, size_t column, const uint64_t **lists, size_t *lengths)
{
    if (!is_of(table, column, KIND(WORDS)))
        return false;
    for (size_t row = 0; row < table_rows(table); row++) {
        const struct table_cell *cell = cell_at(table, row, column);
        lists[row] = cell->is_known ? cell->words->items : NULL;
        lengths[row] = cell->is_known ? cell->words->n : 0;
    }
    return true;
}
