/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables about streams, filled once and printed as text, comma-separated values or JSON. What is not known is "-" in
 * text, nothing in CSV, null in JSON: never zero. Ordinary code. */
#ifndef LOCUS_EXPORT_STREAMS_STREAM_TABLE_H
#define LOCUS_EXPORT_STREAMS_STREAM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum cell_kind {
    CELL_TEXT,
    CELL_COUNT,
    CELL_SPAN, /* nanoseconds; in text with a unit that suits them */
    CELL_TIME, /* nanoseconds on an axis; in text as seconds */
    CELL_SHARE /* percent */
};

/* A column. key: its name in CSV and JSON; title: in text, NULL: it is not shown there. */
struct table_column {
    const char *key, *title;
    enum cell_kind kind;
};

/* A cell; text is owned by the table. */
struct table_cell {
    bool is_known;
    int64_t number;
    double share;
    char *text;
};

/* All zero but for columns and n_columns is empty. */
struct stream_table {
    const struct table_column *columns; /* [n_columns] borrowed */
    size_t n_columns;
    struct table_cell *cells; /* [n_cells] row by row */
    size_t n_cells, cap_cells;
    bool failed;   /* out of memory: the rest was ignored */
    size_t n_more; /* rows that were left out, because fewer were wanted */
};

/* Append the next cell; its kind is that of its column. _number also for spans and times. */
void table_put_text(struct stream_table *table, const char *text);
void table_put_number(struct stream_table *table, int64_t number);
void table_put_share(struct stream_table *table, double percent);
void table_put_absent(struct stream_table *table);

/* The number if it is known, else nothing. */
void table_put_if(struct stream_table *table, bool is_known, int64_t number);

/* How many whole rows it has. */
size_t table_rows(const struct stream_table *table);

/* Append all rows: as aligned lines with a head, as CSV with a head, as a JSON array of objects. */
void table_print_text(const struct stream_table *table, struct buf *out);
void table_print_csv(const struct stream_table *table, struct buf *out);
void table_print_json(const struct stream_table *table, struct buf *out);

/* Frees the cells and makes the table empty. */
void table_fini(struct stream_table *table);

/* Appends nanoseconds with a unit: "850 ns", "12.3 us", "1.234 ms", "2.500 s". */
void span_put(struct buf *out, int64_t ns);

/* Appends a time as seconds with six digits behind the point. */
void time_put(struct buf *out, int64_t t_ns);

/* Appends a line of times, to stand below a line of n_slices (> 0) characters from from_ns to to_ns: a bar at the first
 * character of a slice, and behind it when the slice begins, in seconds, as --from and --to take them. */
void ticks_put(struct buf *out, int64_t from_ns, int64_t to_ns, size_t n_slices);

#endif
