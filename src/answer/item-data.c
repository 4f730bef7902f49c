/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of things that are data: variables, their fields, their types, and where they were allocated. */
#include <math.h>
#include <string.h>

#include "answer/item.h"

static const struct report_row *row_of(struct items *items, const struct item *item)
{
    return &items->report.rows[item->ref];
}

/* --- variables --- */

static int make_variables(struct items *items, struct item_list *list, struct error *err)
{
    const struct report *report = items_report(items, err);
    list->total = report ? report->total_value : 0;
    for (size_t i = 0; report && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        const struct variable *variable = row->variable;
        struct item item = {.value = row->value, .ref = i};
        struct buf name = {0};
        if (row->part) {
            item.file = row->part->file;
            item.line = row->part->line;
        } else if (variable) {
            item.function = variable->function;
            item.file = variable->file;
            item.line = variable->line;
        }
        item.module = variable ? variable->module : 0;
        item_put_row(row, &name);
        item_list_add(list, &item, &name);
    }
    return report ? 0 : ERR_MEMORY;
}

/* A field's name tells the variables apart as theirs do. */
static void put_field(const struct report_row *row, const struct report_field *field, struct buf *out)
{
    buf_printf(out, "%s%s%s", field->name, row->is_twin && row->site && *row->site ? " from " : "",
               row->is_twin && row->site ? row->site : "");
}

/* Of variables and fields. */
static void put_full_name(const struct items *items, const struct item *item, struct buf *out)
{
    const struct report_row *row = &items->report.rows[item->ref];
    bool is_full = row->is_twin || !row->site || !*row->site;
    buf_printf(out, "%s%s%s", item->name, is_full ? "" : " from ", is_full ? "" : row->site);
}

/* The line that took most of a variable. */
static size_t line_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct report_row *row = row_of(items, item);
    struct buf name = {0};
    if (!row->n_lines)
        return ITEM_NONE;
    item_put_line(items, row->lines[0].file, row->lines[0].line, &name);
    return items_position(items, "line", &name, err);
}

/* The function that took most of it, also where its lines are not known. */
static size_t function_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct report_row *row = row_of(items, item);
    const struct item_list *functions = items_list(items, item_kind_find("function"), err);
    for (size_t i = 0; functions && row->n_lines && i < functions->n; i++)
        if (functions->items[i].function == row->lines[0].function && functions->items[i].file == row->lines[0].file)
            return i;
    return ITEM_NONE;
}

static size_t loop_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct report_row *row = row_of(items, item);
    struct buf name = {0};
    if (!row->n_lines || !row->lines[0].loop.first)
        return ITEM_NONE;
    item_put_line(items, row->lines[0].loop.file, row->lines[0].loop.first, &name);
    return items_position(items, "loop", &name, err);
}

static void put_type(const struct report_row *row, struct buf *out)
{
    buf_printf(out, "%s", row->type);
}

static size_t type_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct report_row *row = row_of(items, item);
    struct buf name = {0};
    if (!row->type || !*row->type || report_is_special(row))
        return ITEM_NONE;
    put_type(row, &name);
    return items_position(items, "type", &name, err);
}

static size_t site_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct report_row *row = row_of(items, item);
    struct buf name = {0};
    if (!row->site || !*row->site)
        return ITEM_NONE;
    buf_printf(&name, "%s", row->site);
    return items_position(items, "site", &name, err);
}

static size_t field_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct report_row *row = row_of(items, item);
    struct buf name = {0};
    if (!row->n_fields)
        return ITEM_NONE;
    put_field(row, &row->fields[0], &name);
    return items_position(items, "field", &name, err);
}

/* Its subtree in the tree of data, the largest where there are several. */
static size_t node_of_variable(struct items *items, const struct item *item, struct error *err)
{
    const struct variable *variable = row_of(items, item)->variable;
    struct buf name = {0};
    if (!variable || !variable->n_scopes)
        return ITEM_NONE;
    buf_printf(&name, "%u", variable->scopes[0]);
    return items_position(items, "node", &name, err);
}

static const struct item_link variable_links[] = {
    {"line", line_of_variable, "the line that uses it most is not known"},
    {"loop", loop_of_variable, "what uses it most is in no loop that is known"},
    {"function", function_of_variable, "the function that uses it most is not known"},
    {"field", field_of_variable, "it has no fields that are known"},
    {"type", type_of_variable, "the type of its elements is not known"},
    {"site", site_of_variable, "where it comes from is not known"},
    {"node", node_of_variable, "it has no call paths"},
    {NULL, NULL, NULL},
};

const struct item_kind item_variable = {
    "variable",     "a variable, or a row of the report that is none, such as <compute>",
    make_variables, variable_links,
    put_full_name,  NULL};

/* The row of the report that the items of a list have their place from. */
static size_t variable_at(struct items *items, const struct item *item, struct error *err)
{
    struct buf name = {0};
    item_put_row(row_of(items, item), &name);
    return items_position(items, "variable", &name, err);
}

/* --- fields --- */

static int make_fields(struct items *items, struct item_list *list, struct error *err)
{
    const struct report *report = items_report(items, err);
    list->total = report ? report->total_value : 0;
    for (size_t i = 0; report && i < report->n_rows; i++)
        for (size_t j = 0; j < report->rows[i].n_fields; j++) {
            const struct report_field *field = &report->rows[i].fields[j];
            struct buf name = {0};
            put_field(&report->rows[i], field, &name);
            item_list_add(list, &(struct item){.value = report->rows[i].value * field->fraction, .ref = i}, &name);
        }
    item_list_order(list);
    return report ? 0 : ERR_MEMORY;
}

static const struct item_link field_links[] = {
    {"variable", variable_at, "it is in no variable"},
    {NULL, NULL, NULL},
};

const struct item_kind item_field = {
    "field", "a field of a variable's elements", make_fields, field_links, put_full_name, NULL};

/* --- types --- */

static int make_types(struct items *items, struct item_list *list, struct error *err)
{
    const struct report *report = items_report(items, err);
    list->total = report ? report->total_value : 0;
    for (size_t i = 0; report && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        struct buf name = {0};
        if (!row->type || !*row->type || report_is_special(row))
            continue;
        put_type(row, &name);
        item_list_add(list, &(struct item){.value = row->value, .ref = i}, &name);
    }
    item_list_order(list);
    return report ? 0 : ERR_MEMORY;
}

static const struct item_link type_links[] = {
    {"variable", variable_at, "no variable is of it"},
    {NULL, NULL, NULL},
};

const struct item_kind item_type = {"type", "the type of the elements of variables", make_types, type_links, NULL,
                                    NULL};

/* --- allocation sites --- */

static int make_sites(struct items *items, struct item_list *list, struct error *err)
{
    const struct report *report = items_report(items, err);
    list->total = report ? report->total_value : 0;
    for (size_t i = 0; report && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        const struct variable *variable = row->variable;
        struct buf name = {0};
        if (!variable || report_is_special(row) || !row->site || !*row->site)
            continue;
        buf_printf(&name, "%s", row->site);
        item_list_add(list,
                      &(struct item){.value = row->value,
                                     .function = variable->function,
                                     .file = variable->file,
                                     .line = variable->line,
                                     .module = variable->module,
                                     .ref = i},
                      &name);
    }
    item_list_order(list);
    return report ? 0 : ERR_MEMORY;
}

/* The line itself, where it has samples of its own. */
static size_t line_of_site(struct items *items, const struct item *item, struct error *err)
{
    struct buf name = {0};
    if (!item->line)
        return ITEM_NONE;
    item_put_line(items, item->file, item->line, &name);
    return items_position(items, "line", &name, err);
}

static size_t function_of_site(struct items *items, const struct item *item, struct error *err)
{
    struct buf name = {0};
    if (!item->function || !items_functions(items, err))
        return ITEM_NONE;
    item_put_function(items, item->function, item->file, item->module, &name);
    return items_position(items, "function", &name, err);
}

/* What it stands for is its own place, not that of who uses what comes from it. */
static const struct item_link site_links[] = {
    {"line", line_of_site, "its line took no samples of its own"},
    {"function", function_of_site, "its function took no samples of its own"},
    {"variable", variable_at, "no variable comes from it"},
    {NULL, NULL, NULL},
};

const struct item_kind item_site = {"site", "where variables are allocated or declared", make_sites, site_links, NULL,
                                    NULL};
