/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of things that can be looked at: all of a kind, or one with what stands for it as each other kind. */
#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/item.h"

static const struct column columns[] = {
    {"share", "share", CELL_PERCENT | COLUMN_6_DIGITS},
    {"item", "item", CELL_TEXT},
    {"function", NULL, CELL_TEXT},
    {"file", NULL, CELL_TEXT},
    {"line", NULL, CELL_COUNT},
    {"module", NULL, CELL_TEXT},
    {"kind", "as a", CELL_TEXT},
    {"missing", "why there is none", CELL_TEXT},
};
enum { COLUMNS_OF_KIND = 6 }; /* without what is the same, or empty, in all rows */

/* Percent of what it is a part of; NAN: not known. Its list is there. */
static double share_of(struct items *items, const struct item_kind *kind, const struct item *item)
{
    const struct item_list *list = items_list(items, kind, NULL);
    return list && list->total > 0 ? 100 * item->value / list->total : NAN;
}

/* Adds a thing, or why there is none. */
static void fill_row(struct items *items, const struct item_kind *kind, const struct item *item, const char *missing,
                     struct table *table)
{
    static const struct item none = {0};
    const struct model *model = items->model;
    struct buf identity = {0};
    table_put_number(table, item ? share_of(items, kind, item) : NAN);
    if (item)
        buf_printf(&identity, "%s:%s", kind->name, item->name);
    table_put_text(table, identity.data);
    table->failed |= identity.failed;
    buf_fini(&identity);
    item = item ? item : &none;
    table_put_name(table, model_text(model, item->function));
    table_put_name(table, model_text(model, item->file));
    table_put_if(table, item->line, item->line);
    table_put_name(table, model_text(model, item->module));
    if (table->n_columns == COLUMNS_OF_KIND)
        return;
    table_put_borrowed(table, kind->name);
    table_put_text(table, missing);
}

static int fill_kind(const struct export_job *job, struct items *items, const struct item_kind *kind,
                     struct table *table, struct error *err)
{
    const struct item_list *list = items_list(items, kind, err);
    size_t n = 0;
    for (size_t i = 0; list && i < list->n; i++) {
        const struct item *item = items_at(items, kind, i, err);
        if (!item)
            return ERR_MEMORY;
        double share = share_of(items, kind, item);
        if (job_shows(job, share, n)) {
            fill_row(items, kind, item, NULL, table);
            n++;
        } else {
            table->n_more += job_shows(job, share, 0);
        }
    }
    return list ? 0 : err->code;
}

/* The thing, and what stands for it. */
static int fill_one(struct items *items, const char *identity, struct table *table, struct error *err)
{
    const struct item_kind *kind, *other;
    const struct item *item;
    int code = items_find(items, identity, &kind, &item, err);
    if (code != 0)
        return code;
    fill_row(items, kind, item, NULL, table);
    for (size_t i = 0; (other = item_kind_at(i)); i++) {
        if (other == kind)
            continue;
        struct error missing = {0};
        const struct item *found = items_stand_in(items, kind, item, other, &missing);
        if (!found && missing.code == ERR_MEMORY)
            return error_memory(err);
        if (!found && missing.code == ERR_UNSUPPORTED)
            continue;
        fill_row(items, other, found, found ? NULL : missing.text, table);
    }
    return 0;
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct items own, *items = job->items ? job->items : &own;
    const struct item_kind *kind = item_kind_find(job->subject);
    int code = job->items ? 0 : items_init(&own, job->model, job->metric, err);
    if (code != 0)
        return code;
    answer_begin(answer, "items", columns, kind ? COLUMNS_OF_KIND : sizeof columns / sizeof *columns);
    code = kind ? fill_kind(job, items, kind, &answer->rows, err) : fill_one(items, job->subject, &answer->rows, err);
    if (!job->items)
        items_fini(&own);
    return code;
}

static const char *const about[] = {ABOUT_ANY, NULL};

const struct report_kind answer_items = {
    .name = "items",
    .operands = "THING DB",
    .about = about,
    .summary = "a variable, function, line, thread ...: where it is, and what stands for it as another kind",
    .manual =
        "items prints the things that can be looked at. THING is a kind (variable, field, type, site, function, loop, "
        "line, instruction, file, module, region, node, thread, process, rank, cpu, numa-node or event), for all "
        "things of "
        "it, or one of them, KIND:NAME, such as line:cg.c:52. Of one thing it prints where it is in the source, and "
        "what stands for it as each other kind: of a variable the line that used it most, of that its function. Where "
        "nothing does, it says why. These names are also those of a kept state and of links.",
    .example = "items variable:grid hpctoolkit-app-database",
    .options = ASK_ROWS,
    .takes_items = true,
    .forms = {.make = make_answer},
};
