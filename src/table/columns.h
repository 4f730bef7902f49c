/* SPDX-License-Identifier: BSD-3-Clause */
/* What a table of an answer holds, a column at a time, for programs of others. Tables belong to their answer, and all
 * that these functions give belongs to the table. Rows and columns are numbered from 0; a column that there is not has
 * no key. Rows first ... first + n - 1 of a column are read into arrays of the caller, of n elements each; what there
 * is not, or is of another kind, is not read: false. Ordinary code. */
#ifndef LOCUS_TABLE_COLUMNS_H
#define LOCUS_TABLE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct table;

/* What the cells of a column are. Any cell may be absent: then nothing is known, which is not zero. */
enum cell_kind {
    CELL_TEXT,
    CELL_COUNT,
    CELL_WORD,    /* 64 bits without a sign; in JSON a text where a double cannot hold it (fmt/json.h) */
    CELL_ADDRESS, /* the same; in CSV with 0x */
    CELL_NUMBER,
    CELL_PERCENT, /* 0 to 100 */
    CELL_SPAN,    /* nanoseconds; in text with a unit that suits them */
    CELL_TIME,    /* nanoseconds on an axis; in text as seconds */
    CELL_FLAG,    /* yes or no; in JSON true or false, in CSV 1 or 0 */
    CELL_WORDS,   /* a list of words, in JSON only */
    CELL_TABLE,   /* rows of its own, in JSON only unless COLUMN_JOINED or COLUMN_FOLLOWS */
    CELL_OBJECT   /* holds columns that follow, in JSON only: for text and CSV these are columns as others */
};

/* How many rows and columns it has. */
size_t table_rows(const struct table *table);
size_t table_columns(const struct table *table);

/* The name of a column, as in CSV and JSON, and enum cell_kind. Columns in different objects may have the same key. */
const char *table_key(const struct table *table, size_t column);
enum cell_kind table_kind(const struct table *table, size_t column);

/* How many of the columns behind an object it holds; 0 for others. */
size_t table_members(const struct table *table, size_t column);

/* Whether a column is for CSV alone: others say the same. */
bool table_is_for_csv(const struct table *table, size_t column);

/* Numbers of any kind as doubles, NAN where absent: counts, words, numbers, percent, nanoseconds, and 0 or 1 for flags.
 */
bool table_get_numbers(const struct table *table, size_t column, size_t first, size_t n, double *numbers);

/* Counts, nanoseconds, flags and objects (0 or 1) as they are, 0 where absent; known receives whether they are there.
 */
bool table_get_counts(const struct table *table, size_t column, size_t first, size_t n, int64_t *counts,
                      unsigned char *known);

/* The same for words and addresses. */
bool table_get_words(const struct table *table, size_t column, size_t first, size_t n, uint64_t *words,
                     unsigned char *known);

/* Texts, tables, and lists of words with their lengths; NULL where absent. */
bool table_get_texts(const struct table *table, size_t column, size_t first, size_t n, const char **texts);
bool table_get_tables(const struct table *table, size_t column, size_t first, size_t n, const struct table **tables);
bool table_get_lists(const struct table *table, size_t column, size_t first, size_t n, const uint64_t **lists,
                     size_t *lengths);

#ifdef __cplusplus
}
#endif

#endif
