/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers as rows of typed cells, filled once and printed as text, comma-separated values or JSON. What is not known is
 * a state of a cell: "-" in text, nothing in CSV, null in JSON, never zero. A table knows no report. Ordinary code. */
#ifndef LOCUS_TABLE_TABLE_H
#define LOCUS_TABLE_TABLE_H

#include "base/vec.h"
#include "table/columns.h"

/* What else there is to a column, beside its kind. */
enum column_flag {
    COLUMN_KIND = 0xf, /* the bits of the kind */
    COLUMN_NO_CSV = 0x10,
    COLUMN_NO_JSON = 0x20,
    COLUMN_LEFT_OUT = 0x40,  /* of a JSON object, where it is not known */
    COLUMN_CSV_TITLE = 0x80, /* the title is the name in CSV, and the column is not in text */
    COLUMN_4_DIGITS = 0x100, /* behind the point, in CSV; else three */
    COLUMN_6_DIGITS = 0x200,
    COLUMN_ALL_DIGITS = 0x400, /* that are meaningful, at most 15 */
    COLUMN_QUOTED = 0x800,     /* text, in CSV always in quotes */
    COLUMN_LINES = 0x1000,     /* CELL_TABLE: a line for each row ... */
    COLUMN_INDENTED = 0x2000,  /* ... and one for its key, both indented */
    COLUMN_BARE = 0x4000,      /* CELL_TABLE: in JSON lists, or values if it has one column, instead of objects */
    COLUMN_JOINED = 0x8000,    /* CELL_TABLE: in CSV each of its rows makes a line, with the other cells around it */
    COLUMN_FOLLOWS = 0x10000,  /* CELL_TABLE: in CSV its rows follow, whose columns there are the same */
    COLUMN_NO_EMPTY = 0x20000, /* COLUMN_JOINED: no rows make no line; else one without them */
    COLUMN_PACKED = COLUMN_NO_CSV | COLUMN_NO_JSON /* only in packed form, for viewers */
};

/* CELL_OBJECT: how many of the columns that follow it holds. Of others: in CSV, columns of a lower place stand before
 * those of a higher one, and of the same in their order; none is 0. Less than 2^32. */
#define COLUMN_SHIFT 32
#define COLUMN_MEMBERS(n) ((uint64_t)(n) << COLUMN_SHIFT)
#define COLUMN_PLACE(place) ((uint64_t)(place) << COLUMN_SHIFT)

/* A column. key: its name in CSV and JSON; title: in text, NULL: it is not shown there; kind: of enum cell_kind, with
 * flags. */
struct column {
    const char *key, *title;
    uint64_t kind;
};

/* Columns that are chosen as a report is made. All zero is empty. */
struct column_list {
    struct column *items; /* [n] */
    size_t n, cap;
    struct strtab words; /* the keys and titles that were made */
    bool failed;         /* out of memory: the rest was ignored */
};

/* Append columns, whose words are borrowed; and one, of whose words copies are kept. */
void column_list_add(struct column_list *list, const struct column *columns, size_t n);
void column_list_make(struct column_list *list, const char *key, const char *title, uint64_t kind);
void column_list_fini(struct column_list *list);

/* How times of an axis stand in text, in seconds: as the tools do that people compare them with. */
enum time_form {
    TIME_ROUNDED, /* to microseconds: trace-cmd, KernelShark */
    TIME_CUT,     /* to microseconds: perf script */
    TIME_WHOLE    /* nine digits */
};

/* A list of words in a cell. */
struct table_words {
    size_t n;
    uint64_t items[];
};

/* A cell; what it points to is owned by the table. */
struct table_cell {
    bool is_known;
    union {
        int64_t count;
        uint64_t word;
        double number;
        const char *text;
        struct table_words *words;
        struct table *table;
    };
};

/* All zero but for columns and n_columns is empty. It must not move while cells hold tables. */
struct table {
    const struct column *columns; /* [n_columns] borrowed */
    size_t n_columns;
    struct table_cell *cells; /* [n_cells] row by row */
    size_t n_cells, cap_cells;
    const struct column
        *joined; /* [n_joined] borrowed: those of the tables of its joined column, of which it has one */
    size_t n_joined;
    struct table *parent;       /* in a cell of which it is, or NULL */
    struct table_block *blocks; /* what cells point to, also those of the tables in them */
    bool failed;                /* out of memory: the rest was ignored */
    size_t n_more;              /* rows that were left out, because fewer were wanted */
    enum time_form time_form;   /* of its times, in text */
};

/* Columns and how many; an empty table of them, of a list of chosen ones, and one with a joined column for
 * tables of others. */
#define COLUMNS(array) (array), sizeof(array) / sizeof *(array)
#define TABLE_OF(array)                                                                                                \
    {                                                                                                                  \
        .columns = (array), .n_columns = sizeof(array) / sizeof *(array)                                               \
    }
#define TABLE_OF_LIST(list)                                                                                            \
    {                                                                                                                  \
        .columns = (list).items, .n_columns = (list).n, .failed = (list).failed                                        \
    }
#define TABLE_JOINED(array, of_joined)                                                                                 \
    {                                                                                                                  \
        .columns = (array), .n_columns = sizeof(array) / sizeof *(array), .joined = (of_joined),                       \
        .n_joined = sizeof(of_joined) / sizeof *(of_joined)                                                            \
    }

/* Append the next cell; its kind is that of its column. _count also for spans and times, _word for addresses, _flag for
 * objects, which are there or not: their members have cells in any case. What says that nothing is known, text NULL and
 * a number that is NAN, is an absent cell. */
void table_put_text(struct table *table, const char *text);

/* The same of a text that lives longer than the table, such as one of the model's. */
void table_put_borrowed(struct table *table, const char *text);
void table_put_count(struct table *table, int64_t count);
void table_put_word(struct table *table, uint64_t word);
void table_put_number(struct table *table, double number);
void table_put_flag(struct table *table, bool flag);
void table_put_words(struct table *table, const uint64_t *words, size_t n_words);
void table_put_absent(struct table *table);
void table_put_absents(struct table *table, size_t n);

/* A text that is not known if it is empty, such as a name. */
void table_put_name(struct table *table, const char *name);

/* Columns that tell a variable, and a place in the program. */
#define VARIABLE_COLUMNS                                                                                               \
    {"variable", NULL, CELL_TEXT}, {"class", NULL, CELL_TEXT},                                                         \
    {                                                                                                                  \
        "alloc_site", NULL, CELL_TEXT                                                                                  \
    }
#define PLACE_COLUMNS                                                                                                  \
    {"function", NULL, CELL_TEXT}, {"file", NULL, CELL_TEXT},                                                          \
    {                                                                                                                  \
        "line", NULL, CELL_COUNT                                                                                       \
    }

/* Their cells: the class, and the texts of a place, live longer than the table; line 0 is not known. */
void table_put_variable(struct table *table, const char *name, const char *class, const char *site);
void table_put_place(struct table *table, const char *function, const char *file, uint32_t line);

/* What a function appended to a buffer, as text, "" for nothing, and frees the buffer. */
void table_put_made(struct table *table, struct buf *text);

/* The number if it is known, else nothing. */
void table_put_if(struct table *table, bool is_known, int64_t count);
void table_put_word_if(struct table *table, bool is_known, uint64_t word);

/* A table of these columns as the next cell, valid as long as the table; when out of memory, one that ignores what is
 * put there. */
struct table *table_put_table(struct table *table, const struct column *columns, size_t n_columns);

/* Notes that memory lacked for what belongs into the table: it is useless then, and those in whose cells it is. */
void table_fail(struct table *table);

/* Append all rows: as aligned lines with a head, as CSV with a head, as a JSON array of objects, each after `line`,
 * such as a line feed and blanks. */
void table_print_text(const struct table *table, struct buf *out);
void table_print_csv(const struct table *table, struct buf *out);
void table_print_json(const struct table *table, const char *line, struct buf *out);

/* Appends one cell as JSON, for an object with its members. */
void table_print_cell(const struct table_cell *cell, const struct column *column, struct buf *out);

/* Appends all rows as typed columns for a viewer: "LOC1", the length of a header in four bytes, the header (JSON,
 * padded with blanks to a multiple of eight), the data of the columns, each padded with zeros, and the texts, each with
 * a zero. All numbers are little endian. about: members of the header that stand first, as JSON without braces. The
 * header's "columns" say how each is packed, in "type": f64     8 bytes a row, in planes: all lowest bytes first;
 * absent is a NaN u32     4 bytes a row, in planes; absent is 2^32 - 1. "delta": each is the difference to the one
 * before, the first to 0, with the sign in the lowest bit (zigzag), modulo 2^32 scaled  as u32, times "scale" u8 0, 1,
 * absent 255 text    as u32: the number of a text; bytes that are not UTF-8 have become U+FFFD; in the column "item"
 * 2^32 - 2 is "line:FILE:LINE" of the row's columns "file" and "line" json    as text; the
 * text is the cell as JSON: lists, tables, whole numbers beyond 2^53 same    no data; "value" is that of each row
 * Members of objects are columns of their own, whose keys are "object.member". What JSON leaves out is not there. */
void table_print_packed(const struct table *table, const struct buf *about, struct buf *out);

/* Appends the members of the first row's object as JSON, without the braces around them. */
void table_print_members(const struct table *table, struct buf *out);

/* Frees the cells and makes the table empty. */
void table_fini(struct table *table);

/* Appends nanoseconds with a unit: "850 ns", "12.3 us", "1.234 ms", "2.500 s". */
void span_put(struct buf *out, int64_t ns);

/* Appends a time as seconds with six or nine digits behind the point. */
void time_put(struct buf *out, int64_t t_ns, enum time_form form);

/* The way back: a time in seconds, or in nanoseconds with "ns" behind. All times from *first_ns to *last_ns stand in
 * text as this one; with more than six digits, and in nanoseconds, it is one time alone. False: it is no time. */
bool time_take(const char *text, enum time_form form, int64_t *t_ns, int64_t *first_ns, int64_t *last_ns);

#endif
