/* SPDX-License-Identifier: BSD-3-Clause */
/* Things that can be looked at: a variable, a function, a line, a thread. Each has one identity as text,
 * "line:cg.c:52", which a question, a link and a kept state have in common, and says what it is called, where in the
 * source it is, and what stands for it as a thing of another kind, or why nothing does. A kind is one struct item_kind
 * in the file of its like (item-code.c, item-data.c, item-where.c) and one row in item.c. Ordinary code. */
#ifndef LOCUS_ANSWER_ITEM_H
#define LOCUS_ANSWER_ITEM_H

#include "analysis/report/code-table.h"
#include "table/table.h"

struct items;

/* One thing. Texts are string ids of the model, 0: not known. */
struct item {
    const char *name; /* unique in its kind; owned by the list */
    double value;     /* of the items' metric; NAN: not known */
    double most;      /* of those that are one thing by their name: the largest, whose place and ref it has */
    uint32_t function, file, line, module;
    uint64_t ref; /* what its kind knows it by: the row of a table, a scope, a thread */
};

struct item_list {
    struct item *items; /* [n] in the order of the kind: the largest first, threads by number; from other files
                         * items_at, where is_numbered */
    size_t n, cap;
    struct strtab names; /* those of the items, in the same order; where is_numbered, of those that are made */
    bool is_numbered;    /* names are the positions, and each item is made when it is looked at, named then */
    double total;        /* what values are a part of; 0: not known */
    bool failed;         /* out of memory */
};

#define ITEM_NONE SIZE_MAX

/* From a thing to what stands for it as another kind. */
struct item_link {
    const char *kind; /* the name of the other one; NULL ends a kind's links */
    size_t (*find)(struct items *items, const struct item *item, struct error *err); /* in the list of that kind;
                                                                                      * ITEM_NONE: nothing */
    const char *missing; /* why there may be nothing: "no line of it is known" */
};

struct item_kind {
    const char *name;  /* "variable" */
    const char *means; /* what a thing of the kind is: "a variable, or a row of the report that is none" */
    /* Adds the things of a database, in the order of the list, and sets its total. err: ERR_MEMORY */
    int (*make)(struct items *items, struct item_list *list, struct error *err);
    const struct item_link *links; /* the nearest kinds first; NULL: none */
    /* Appends the name that tells a thing from others that may be called the same, whether there are any; NULL: there
     * never are. */
    void (*put_full)(const struct items *items, const struct item *item, struct buf *out);
    /* The thing at a position of a list that is numbered, but for its name; NULL: its lists never are. */
    struct item (*at)(const struct items *items, size_t position);
};

/* The things of a database, made kind by kind when they are asked for. */
struct items {
    const struct model *model;
    size_t metric;
    struct report report;               /* of the metric, with everything that has samples */
    struct code_table functions, lines; /* CODE_FUNCTION, CODE_PLACE */
    uint32_t *first_of;                 /* by string id: 1 + the first of the functions of that name; 0: none */
    unsigned char *twins;               /* by string id: what functions of that name differ in */
    bool has_report, has_functions, has_lines;
    struct item_list *lists; /* [number of kinds] */
    bool *is_made;           /* [number of kinds] */
};

/* Begins; makes nothing yet. The model must live on.  err: ERR_MEMORY */
int items_init(struct items *items, const struct model *model, size_t metric, struct error *err);
void items_fini(struct items *items);

/* Kind i in the order of the manual, NULL behind the last one; the one with a name, NULL when there is none. */
const struct item_kind *item_kind_at(size_t i);
const struct item_kind *item_kind_find(const char *name);

/* All things of a kind. Valid as long as the items; NULL on an error.  err: ERR_MEMORY */
const struct item_list *items_list(struct items *items, const struct item_kind *kind, struct error *err);

/* Thing i of the list of a kind, which is made, i < n. Valid as long as the items; NULL on an error.  err: ERR_MEMORY
 */
const struct item *items_at(struct items *items, const struct item_kind *kind, size_t i, struct error *err);

/* The thing that an identity names, "KIND:NAME"; a file may lack directories where one thing ends so, and the name may
 * be full where that is not needed. In full (model.names_in_full) it stays the same while a measurement grows.  err:
 * ERR_NOT_FOUND (no such kind or thing; says which names are like it), ERR_MEMORY */
int items_find(struct items *items, const char *identity, const struct item_kind **kind, const struct item **item,
               struct error *err);

/* What stands for a thing as another kind, directly or through others by as few steps as possible: a field is in a
 * variable, and that was used most at a line. NULL with ERR_NOT_FOUND in err->code: nothing does, and err->text says
 * why; with ERR_UNSUPPORTED: nothing of the one kind ever stands for the other; or with ERR_MEMORY. The thing itself
 * for its own kind. */
const struct item *items_stand_in(struct items *items, const struct item_kind *kind, const struct item *item,
                                  const struct item_kind *wanted, struct error *err);

/* --- for kinds --- */

/* Adds a thing whose name is in name, and frees that. If there is one of that name, only the value is added to it: it
 * stays where it is in the list, and keeps the place and ref of the first. A kind that adds up so has to put its list
 * in order at the end. item->name is not used. */
void item_list_add(struct item_list *list, const struct item *item, struct buf *name);

/* Puts the things in the order of their values, the largest first: where values were added up. */
void item_list_order(struct item_list *list);

/* Position of a name in the list, ITEM_NONE when it is not there. */
size_t item_list_find(const struct item_list *list, const char *name);

/* The position in the list of a kind of a name that is made; frees that. ITEM_NONE: there is none, or on an error. */
size_t items_position(struct items *items, const char *kind, struct buf *name, struct error *err);

/* Tables that several kinds are made of; NULL on an error.  err: ERR_MEMORY */
struct report *items_report(struct items *items, struct error *err);
struct code_table *items_functions(struct items *items, struct error *err);
struct code_table *items_lines(struct items *items, struct error *err);

/* Appends what a report that is about a thing calls it: a function as annotate does, "FILE:NAME" if there are several.
 */
void item_put_subject(const struct items *items, const struct item_kind *kind, const struct item *item,
                      struct buf *out);

/* Append the name of a function, of a line, and of a row of the report: what kinds and links have in common. Functions
 * of one name add the module or file that they differ in. */
void item_put_function(struct items *items, uint32_t function, uint32_t file, uint32_t module, struct buf *out);
void item_put_line(const struct items *items, uint32_t file, uint32_t line, struct buf *out);
void item_put_row(const struct report_row *row, struct buf *out);

/* --- for reports, whose rows are things --- */

/* By string id: what tells functions of one name in this table apart, for item_put_twin; malloc'ed, NULL when out of
 * memory. *first_of, where it is not NULL, receives items.first_of in the same way. */
unsigned char *item_twins(const struct code_table *functions, uint32_t **first_of);

/* Appends the name of a function, as item_put_function does. */
void item_put_twin(const struct model *model, const unsigned char *twins, const struct code_row *row, struct buf *out);

/* Appends the identity of a row of functions or of lines, which has a line, as the next cell, absent where there is
 * none. twins: of functions; NULL: it is a line. */
void item_put_code_cell(const struct model *model, const unsigned char *twins, const struct code_row *row,
                        struct table *table);

/* The same of a row of variables; NULL: it is none. */
void item_put_row_cell(const struct report_row *row, struct table *table);

/* The column of such cells. */
#define ITEM_COLUMN                                                                                                    \
    {                                                                                                                  \
        "item", NULL, CELL_TEXT | COLUMN_PACKED                                                                        \
    }

#endif
