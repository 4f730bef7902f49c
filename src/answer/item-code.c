/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of things that are code: functions, loops, lines, instructions, files, modules, regions of the program, and the
 * nodes of its tree. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer/item.h"

/* --- links that kinds share, by the place of a thing --- */

/* Where a thing is, by the texts that its place has: "" is no thing. */
static size_t find_text(struct items *items, const char *kind, uint32_t text, struct error *err)
{
    struct buf name = {0};
    if (!text)
        return ITEM_NONE;
    buf_printf(&name, "%s", model_text(items->model, text));
    return items_position(items, kind, &name, err);
}

static size_t file_at(struct items *items, const struct item *item, struct error *err)
{
    return find_text(items, "file", item->file, err);
}

static size_t module_at(struct items *items, const struct item *item, struct error *err)
{
    return find_text(items, "module", item->module, err);
}

static size_t line_at(struct items *items, const struct item *item, struct error *err)
{
    struct buf name = {0};
    if (!item->line)
        return ITEM_NONE;
    item_put_line(items, item->file, item->line, &name);
    return items_position(items, "line", &name, err);
}

static size_t find_function(struct items *items, uint32_t function, uint32_t file, uint32_t module, struct error *err)
{
    struct buf name = {0};
    if (!function || !items_functions(items, err))
        return ITEM_NONE;
    item_put_function(items, function, file, module, &name);
    return items_position(items, "function", &name, err);
}

static size_t function_at(struct items *items, const struct item *item, struct error *err)
{
    return find_function(items, item->function, item->file, item->module, err);
}

/* The nearest function around a scope, 0: none. */
static uint32_t function_around(const struct model *model, uint32_t scope)
{
    while (scope && !(model_is_procedure(&model->scopes[scope]) && model->scopes[scope].role == ROLE_NONE))
        scope = model->scopes[scope].parent;
    return scope;
}

/* The largest scope of the call tree that is a line, or where line is 0 a function, of a place; 0: none. */
static uint32_t find_scope(const struct items *items, const struct item *item, uint32_t line)
{
    const struct model *model = items->model;
    uint32_t end = model_data_root(model), found = 0;
    double most = 0;
    for (uint32_t i = 1; i < (end ? end : model->n_scopes); i++) {
        const struct scope *scope = &model->scopes[i];
        bool is_it = line ? scope->kind == SCOPE_LINE && scope->line == line && model_file_of(model, i) == item->file
                          : model_is_procedure(scope) && scope->name == item->function && scope->file == item->file &&
                                scope->module == item->module;
        double value = is_it ? model_value(model, i, items->metric) : 0;
        if (!is_it || (found && value <= most))
            continue;
        most = value;
        found = i;
    }
    return found;
}

static size_t find_node(struct items *items, uint64_t scope, struct error *err)
{
    struct buf name = {0};
    if (!scope)
        return ITEM_NONE;
    buf_printf(&name, "%llu", (unsigned long long)scope);
    return items_position(items, "node", &name, err);
}

/* The innermost loop around a scope. */
static size_t find_loop(struct items *items, uint32_t scope, struct error *err)
{
    const struct model *model = items->model;
    struct buf name = {0};
    while (scope && model->scopes[scope].kind != SCOPE_LOOP)
        scope = model_is_procedure(&model->scopes[scope]) ? 0 : model->scopes[scope].parent;
    if (!scope || !model->scopes[scope].line)
        return ITEM_NONE;
    item_put_line(items, model_file_of(model, scope), model->scopes[scope].line, &name);
    return items_position(items, "loop", &name, err);
}

/* The variable that a row of code used most. */
static size_t variable_of_row(struct items *items, const struct code_row *row, struct error *err)
{
    const struct report *report = items_report(items, err);
    if (!report || !row->n_data)
        return ITEM_NONE;
    const struct variable *wanted = &report->variables[report->variable_of[row->data[0].variable]];
    for (size_t i = 0; i < report->n_rows; i++) {
        struct buf name = {0};
        if (report->rows[i].variable != wanted)
            continue;
        item_put_row(&report->rows[i], &name);
        return items_position(items, "variable", &name, err);
    }
    return ITEM_NONE;
}

/* The largest function, or line, for which a place is the same. */
static size_t largest_in(struct items *items, const char *kind, size_t offset, uint32_t text, struct error *err)
{
    const struct item_list *list = items_list(items, item_kind_find(kind), err);
    for (size_t i = 0; list && i < list->n; i++)
        if (*(const uint32_t *)((const char *)&list->items[i] + offset) == text)
            return i;
    return ITEM_NONE;
}

/* The thing that a row of code is. */
static struct item item_of_row(const struct code_row *row, uint64_t ref)
{
    return (struct item){.value = row->own,
                         .function = row->function,
                         .file = row->file,
                         .line = row->line,
                         .module = row->module,
                         .ref = ref};
}

/* The largest thing of a kind that lies in a function. */
static size_t largest_in_function(struct items *items, const char *kind, const struct item *function, struct error *err)
{
    const struct item_list *list = items_list(items, item_kind_find(kind), err);
    for (size_t i = 0; list && i < list->n; i++)
        if (list->items[i].function == function->function && list->items[i].file == function->file)
            return i;
    return ITEM_NONE;
}

/* --- functions --- */

static int make_functions(struct items *items, struct item_list *list, struct error *err)
{
    const struct code_table *table = items_functions(items, err);
    list->total = table ? table->total : 0;
    for (size_t i = 0; table && i < table->n_rows; i++) {
        const struct code_row *row = &table->rows[i];
        const struct item item = item_of_row(row, i);
        struct buf name = {0};
        item_put_function(items, row->function, row->file, row->module, &name);
        item_list_add(list, &item, &name);
    }
    return table ? 0 : ERR_MEMORY;
}

/* The line of it that took most. */
static size_t line_of_function(struct items *items, const struct item *item, struct error *err)
{
    return largest_in_function(items, "line", item, err);
}

static size_t loop_of_function(struct items *items, const struct item *item, struct error *err)
{
    return largest_in_function(items, "loop", item, err);
}

static size_t node_of_function(struct items *items, const struct item *item, struct error *err)
{
    return find_node(items, find_scope(items, item, 0), err);
}

static size_t variable_of_function(struct items *items, const struct item *item, struct error *err)
{
    return variable_of_row(items, &items->functions.rows[item->ref], err);
}

static const struct item_link function_links[] = {
    {"line", line_of_function, "no line of it has samples: it was built without -g, or only calls"},
    {"loop", loop_of_function, "it has no loops that are known"},
    {"variable", variable_of_function, "it used no variable"},
    {"node", node_of_function, "it has no call paths"},
    {"file", file_at, "its file is not known"},
    {"module", module_at, "its module is not known"},
    {NULL, NULL, NULL},
};

static void put_full_function(const struct items *items, const struct item *item, struct buf *out)
{
    buf_printf(out, "%s@%s@%s", model_text(items->model, item->function), model_text(items->model, item->module),
               model_text(items->model, item->file));
}

const struct item_kind item_function = {
    "function", "a function, by what it costs itself", make_functions, function_links, put_full_function, NULL};

/* --- lines --- */

static int make_lines(struct items *items, struct item_list *list, struct error *err)
{
    const struct code_table *table = items_lines(items, err);
    list->total = table ? table->total : 0;
    for (size_t i = 0; table && i < table->n_rows; i++) {
        const struct code_row *row = &table->rows[i];
        const struct item item = item_of_row(row, i);
        struct buf name = {0};
        if (!row->line)
            continue;
        item_put_line(items, row->file, row->line, &name);
        item_list_add(list, &item, &name);
    }
    return table ? 0 : ERR_MEMORY;
}

static size_t variable_of_line(struct items *items, const struct item *item, struct error *err)
{
    return variable_of_row(items, &items->lines.rows[item->ref], err);
}

static size_t loop_of_line(struct items *items, const struct item *item, struct error *err)
{
    return find_loop(items, find_scope(items, item, item->line), err);
}

static size_t node_of_line(struct items *items, const struct item *item, struct error *err)
{
    return find_node(items, find_scope(items, item, item->line), err);
}

/* The instruction of it that took most. */
static size_t instruction_of_line(struct items *items, const struct item *item, struct error *err)
{
    const struct item_list *all = items_list(items, item_kind_find("instruction"), err);
    for (size_t i = 0; all && i < all->n; i++)
        if (all->items[i].line == item->line && all->items[i].file == item->file)
            return i;
    return ITEM_NONE;
}

static const struct item_link line_links[] = {
    {"function", function_at, "its function is not known"},
    {"loop", loop_of_line, "it is in no loop that is known"},
    {"instruction", instruction_of_line, "the database has no instructions (hpcprof --instructions)"},
    {"node", node_of_line, "it has no call paths"},
    {"variable", variable_of_line, "it used no variable"},
    {"file", file_at, "its file is not known"},
    {"module", module_at, "its module is not known"},
    {NULL, NULL, NULL},
};

const struct item_kind item_line = {"line", "a line of a file", make_lines, line_links, NULL, NULL};

/* --- loops --- */

/* The thing that a scope is, with the value of all below it. */
static struct item item_of_scope(const struct items *items, uint32_t scope)
{
    const struct model *model = items->model;
    const struct scope *at = &model->scopes[scope];
    uint32_t function = function_around(model, scope);
    return (struct item){.value = model_value(model, scope, items->metric),
                         .function = model->scopes[function].name,
                         .file = model_file_of(model, scope),
                         .line = at->line,
                         .module = at->module ? at->module : model->scopes[function].module,
                         .ref = scope};
}

/* Whether a scope lies in one that is the same loop, or region: in recursion, or where two are on a line. */
static bool is_repeated(const struct model *model, uint32_t scope)
{
    const struct scope *of = &model->scopes[scope];
    uint32_t file = model_file_of(model, scope);
    bool found = false;
    for (uint32_t up = of->parent; up && !found; up = model->scopes[up].parent) {
        const struct scope *above = &model->scopes[up];
        found = above->kind == of->kind && above->role == of->role && above->line == of->line &&
                above->name == of->name && model_file_of(model, up) == file;
    }
    return found;
}

static int make_loops(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    const struct model *model = items->model;
    uint32_t end = model_data_root(model);
    list->total = model_value(model, 0, items->metric);
    for (uint32_t i = 1; i < (end ? end : model->n_scopes); i++) {
        const struct scope *scope = &model->scopes[i];
        struct buf name = {0};
        if (scope->kind != SCOPE_LOOP || !scope->line || is_repeated(model, i))
            continue;
        struct item item = item_of_scope(items, i);
        item_put_line(items, item.file, item.line, &name);
        item_list_add(list, &item, &name);
    }
    item_list_order(list);
    return 0;
}

/* The line in the loop, or in loops in it, that took most. */
static size_t line_of_loop(struct items *items, const struct item *item, struct error *err)
{
    uint32_t last = items->model->scopes[item->ref].end_line;
    const struct item_list *lines = items_list(items, item_kind_find("line"), err);
    for (size_t i = 0; lines && i < lines->n; i++)
        if (lines->items[i].file == item->file && lines->items[i].line >= item->line &&
            lines->items[i].line <= (last > item->line ? last : item->line))
            return i;
    return ITEM_NONE;
}

static size_t node_of_scope(struct items *items, const struct item *item, struct error *err)
{
    return find_node(items, item->ref, err);
}

static const struct item_link loop_links[] = {
    {"line", line_of_loop, "no line of it has samples"},
    {"function", function_at, "its function is not known"},
    {"file", file_at, "its file is not known"},
    {"node", node_of_scope, "it has no call paths"},
    {NULL, NULL, NULL},
};

const struct item_kind item_loop = {"loop", "a loop, by its first line", make_loops, loop_links, NULL, NULL};

/* --- instructions --- */

static int make_instructions(struct items *items, struct item_list *list, struct error *err)
{
    struct code_table table;
    if (!model_has_instructions(items->model))
        return 0;
    int code = code_table_make(items->model, items->metric, CODE_INSTRUCTION, NULL, &table, err);
    list->total = code == 0 ? table.total : 0;
    for (size_t i = 0; code == 0 && i < table.n_rows; i++) {
        const struct code_row *row = &table.rows[i];
        const struct item item = item_of_row(row, row->vaddr);
        struct buf name = {0};
        if (!row->vaddr)
            continue;
        buf_printf(&name, "%s+0x%llx", model_text(items->model, row->module), (unsigned long long)row->vaddr);
        item_list_add(list, &item, &name);
    }
    if (code == 0)
        code_table_fini(&table);
    return code;
}

static const struct item_link instruction_links[] = {
    {"line", line_at, "its line is not known"},
    {"function", function_at, "its function is not known"},
    {"module", module_at, "its module is not known"},
    {NULL, NULL, NULL},
};

const struct item_kind item_instruction = {"instruction",
                                           "a machine instruction, where hpcprof --instructions kept them",
                                           make_instructions,
                                           instruction_links,
                                           NULL,
                                           NULL};

/* --- files and modules --- */

/* Adds the functions up by one of the texts of their place. */
static int make_by_text(struct items *items, struct item_list *list, size_t offset, struct error *err)
{
    const struct item_list *functions = items_list(items, item_kind_find("function"), err);
    list->total = functions ? functions->total : 0;
    for (size_t i = 0; functions && i < functions->n; i++) {
        const struct item *function = &functions->items[i];
        uint32_t text = *(const uint32_t *)((const char *)function + offset);
        struct item item = {.value = function->value, .module = function->module, .ref = text};
        struct buf name = {0};
        if (offset == offsetof(struct item, file))
            item.file = text;
        if (!text)
            continue;
        buf_printf(&name, "%s", model_text(items->model, text));
        item_list_add(list, &item, &name);
    }
    item_list_order(list);
    return functions ? 0 : ERR_MEMORY;
}

static int make_files(struct items *items, struct item_list *list, struct error *err)
{
    return make_by_text(items, list, offsetof(struct item, file), err);
}

static size_t function_of_file(struct items *items, const struct item *item, struct error *err)
{
    return largest_in(items, "function", offsetof(struct item, file), (uint32_t)item->ref, err);
}

static size_t line_of_file(struct items *items, const struct item *item, struct error *err)
{
    return largest_in(items, "line", offsetof(struct item, file), (uint32_t)item->ref, err);
}

static const struct item_link file_links[] = {
    {"line", line_of_file, "no line of it has samples"},
    {"function", function_of_file, "no function of it has samples"},
    {"module", module_at, "its module is not known"},
    {NULL, NULL, NULL},
};

const struct item_kind item_file = {"file", "a source file", make_files, file_links, NULL, NULL};

static int make_modules(struct items *items, struct item_list *list, struct error *err)
{
    return make_by_text(items, list, offsetof(struct item, module), err);
}

static size_t function_of_module(struct items *items, const struct item *item, struct error *err)
{
    return largest_in(items, "function", offsetof(struct item, module), (uint32_t)item->ref, err);
}

static const struct item_link module_links[] = {
    {"function", function_of_module, "no function of it has samples"},
    {NULL, NULL, NULL},
};

const struct item_kind item_module = {"module", "the program, or a library", make_modules, module_links, NULL, NULL};

/* --- regions of the program --- */

static int make_regions(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    uint32_t end = model_data_root(items->model);
    list->total = model_value(items->model, 0, items->metric);
    for (uint32_t i = 1; i < (end ? end : items->model->n_scopes); i++) {
        struct buf name = {0};
        if (items->model->scopes[i].role != ROLE_REGION || is_repeated(items->model, i))
            continue;
        buf_printf(&name, "%s", model_text(items->model, items->model->scopes[i].name));
        item_list_add(list, &(struct item){.value = model_value(items->model, i, items->metric), .ref = i}, &name);
    }
    item_list_order(list);
    return 0;
}

static const struct item_link region_links[] = {
    {"node", node_of_scope, "it has no call paths"},
    {NULL, NULL, NULL},
};

const struct item_kind item_region = {
    "region", "a part of the program that it marked itself", make_regions, region_links, NULL, NULL};

/* --- nodes of the trees --- */

/* There may be hundreds of thousands, and hardly any is looked at. */
static int make_nodes(struct items *items, struct item_list *list, struct error *err)
{
    list->total = model_value(items->model, 0, items->metric);
    list->n = items->model->n_scopes;
    list->items = calloc(list->n + 1, sizeof *list->items);
    list->is_numbered = true;
    return list->items ? 0 : error_memory(err);
}

static struct item node_at(const struct items *items, size_t position)
{
    return item_of_scope(items, (uint32_t)position);
}

/* The variable that the node, or one above it, is. */
static size_t variable_of_node(struct items *items, const struct item *item, struct error *err)
{
    const struct model *model = items->model;
    const struct report *report = items_report(items, err);
    uint32_t scope = (uint32_t)item->ref;
    while (scope && model->scopes[scope].role != ROLE_VARIABLE)
        scope = model->scopes[scope].parent;
    for (size_t i = 0; report && scope && i < report->n_rows; i++) {
        const struct variable *variable = report->rows[i].variable;
        for (size_t j = 0; variable && j < variable->n_scopes; j++) {
            struct buf name = {0};
            if (variable->scopes[j] != scope)
                continue;
            item_put_row(&report->rows[i], &name);
            return items_position(items, "variable", &name, err);
        }
    }
    return ITEM_NONE;
}

static size_t function_of_node(struct items *items, const struct item *item, struct error *err)
{
    uint32_t function = function_around(items->model, (uint32_t)item->ref);
    const struct scope *scope = &items->model->scopes[function];
    return function ? find_function(items, scope->name, scope->file, scope->module, err) : ITEM_NONE;
}

static size_t loop_of_node(struct items *items, const struct item *item, struct error *err)
{
    return find_loop(items, (uint32_t)item->ref, err);
}

static const struct item_link node_links[] = {
    {"line", line_at, "it has no line with samples"},
    {"loop", loop_of_node, "it is in no loop"},
    {"function", function_of_node, "it is in no function with samples of its own"},
    {"variable", variable_of_node, "it is in no variable's part of the tree"},
    {NULL, NULL, NULL},
};

const struct item_kind item_node = {
    "node", "a node of the tree of calls or of data, by its number", make_nodes, node_links, NULL, node_at};
