/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions and lines: one pass over the call tree for what they cost, one over the variables for what they touched. */
#include "analysis/report/code-table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/cpu-table.h"

/* A row that is open at some scope of the call tree: a function, or a line that calls. */
struct open_row {
    uint32_t row, end; /* end: the first scope behind it */
};

/* The pass over the call tree. */
struct counting {
    struct code_table *table;
    enum code_kind kind;
    uint32_t *n_open; /* [cap_open] by row: how many times it is open, with recursion */
    size_t cap_open;
    struct open_row *stack;
    size_t n_stack, cap_stack;
};

#define NO_ROW UINT32_MAX

static bool is_same_function(const void *one, const void *other)
{
    const struct code_row *a = one, *b = other;
    return a->function == b->function && a->file == b->file && a->module == b->module;
}

static bool is_same_line(const void *one, const void *other)
{
    const struct code_row *a = one, *b = other;
    return a->function == b->function && a->file == b->file && a->line == b->line;
}

/* Each number reaches the middle bits, which choose a slot, also where the others are all the same. */
static uint64_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
    return a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xc2b2ae3d27d4eb4f) ^ c * UINT64_C(0xd6e8feb86659fd93);
}

static uint64_t hash_of_function(const void *item)
{
    const struct code_row *row = item;
    return mixed(row->function, row->file, row->module);
}

static uint64_t hash_of_line(const void *item)
{
    const struct code_row *row = item;
    return mixed(row->function, row->file, row->line);
}

static bool is_same_place(const void *one, const void *other)
{
    const struct code_row *a = one, *b = other;
    return a->file == b->file && a->line == b->line;
}

static uint64_t hash_of_place(const void *item)
{
    const struct code_row *row = item;
    return mixed(0, row->file, row->line);
}

static bool is_same_instruction(const void *one, const void *other)
{
    const struct code_row *a = one, *b = other;
    return a->vaddr == b->vaddr && a->module == b->module && (a->vaddr || is_same_line(a, b));
}

static uint64_t hash_of_instruction(const void *item)
{
    const struct code_row *row = item;
    return row->vaddr ? mixed(row->module, (uint32_t)row->vaddr, (uint32_t)(row->vaddr >> 32)) : hash_of_line(row);
}

static const struct slots_kind kinds[] = {
    [CODE_FUNCTION] = {sizeof(struct code_row), hash_of_function, is_same_function},
    [CODE_LINE] = {sizeof(struct code_row), hash_of_line, is_same_line},
    [CODE_PLACE] = {sizeof(struct code_row), hash_of_place, is_same_place},
    [CODE_INSTRUCTION] = {sizeof(struct code_row), hash_of_instruction, is_same_instruction},
};

static bool is_function(const struct scope *scope)
{
    return scope->role == ROLE_PROFILER ||
           ((scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED) && scope->role == ROLE_NONE);
}

static bool is_wanted(const struct code_table *table, const struct scope *function)
{
    const struct code_functions *only = table->only;
    if (!only)
        return true;
    bool is_named = false;
    for (size_t i = 0; !is_named && i < only->n_names; i++)
        is_named = function->name == only->names[i];
    return is_named && function->file == only->file;
}

/* The function around a statement; 0: a profiler's node is nearer, or the table is not about this function. */
static uint32_t function_around(const struct code_table *table, uint32_t scope)
{
    const struct scope *scopes = table->model->scopes;
    while (scope && !is_function(&scopes[scope]))
        scope = scopes[scope].role == ROLE_NONE ? scopes[scope].parent : 0;
    return scope && is_wanted(table, &scopes[scope]) ? scope : 0;
}

/* A row with the key of a function's scope, or of a statement in it. */
static struct code_row row_like(const struct model *model, enum code_kind kind, uint32_t function, uint32_t statement)
{
    const struct scope *of = &model->scopes[function], *at = &model->scopes[statement];
    struct code_row like = {.function = of->name, .file = of->file, .module = of->module, .line = of->line};
    if (kind != CODE_FUNCTION) {
        like.file = at->file;
        like.line = at->line;
    }
    if (kind == CODE_INSTRUCTION && at->kind == SCOPE_INSTRUCTION)
        like.vaddr = at->vaddr;
    return like;
}

/* The row of a function's scope, or of a statement in it; added when new. NO_ROW when out of memory. */
static uint32_t row_of(struct code_table *table, enum code_kind kind, uint32_t function, uint32_t statement)
{
    const struct code_row like = row_like(table->model, kind, function, statement);
    size_t index = slots_put(&table->slots, &kinds[kind], &table->rows, &table->n_rows, &table->cap_rows, &like);
    if (index == SLOTS_NONE)
        return NO_ROW;
    if (like.line && (!table->rows[index].line || like.line < table->rows[index].line))
        table->rows[index].line = like.line; /* only of functions: of a line it is the same */
    return (uint32_t)index;
}

/* Adds the inclusive value of a function, or of a line that calls at the scope, unless the row is open already; and
 * opens it. */
static bool open_row(struct counting *counting, uint32_t function, uint32_t scope)
{
    struct code_table *table = counting->table;
    uint32_t row = row_of(table, counting->kind, function, scope);
    if (row == NO_ROW || !vec_reserve(&counting->n_open, &counting->cap_open, (size_t)row + 1, sizeof(uint32_t)) ||
        !vec_reserve(&counting->stack, &counting->cap_stack, counting->n_stack + 1, sizeof *counting->stack))
        return false;
    if (counting->n_open[row]++ == 0)
        table->rows[row].inclusive += model_value(table->model, scope, table->metric);
    counting->stack[counting->n_stack++] = (struct open_row){.row = row, .end = model_subtree_end(table->model, scope)};
    return true;
}

/* Opens the row that a scope begins, if it begins one. */
static bool open_scope(struct counting *counting, uint32_t scope)
{
    const struct scope *at = &counting->table->model->scopes[scope];
    if (counting->kind == CODE_FUNCTION)
        return !is_function(at) || open_row(counting, scope, scope);
    if ((at->kind != SCOPE_CALL && at->kind != SCOPE_POSITION) || !at->line)
        return true;
    uint32_t function = function_around(counting->table, scope);
    return !function || open_row(counting, function, scope);
}

static bool add_statement(struct counting *counting, uint32_t scope, double value)
{
    struct code_table *table = counting->table;
    uint32_t function = function_around(table, scope);
    uint32_t row = function ? row_of(table, counting->kind, function, scope) : 0;
    if (!function)
        return true;
    if (row == NO_ROW || !vec_reserve(&counting->n_open, &counting->cap_open, (size_t)row + 1, sizeof(uint32_t)))
        return false;
    table->rows[row].own += value;
    if (counting->kind != CODE_FUNCTION && counting->n_open[row] == 0)
        table->rows[row].inclusive += value;
    return true;
}

/* Scopes [first, end), parents before their children. */
static bool count_tree(struct counting *counting, uint32_t first, uint32_t end)
{
    const struct model *model = counting->table->model;
    bool ok = true;
    for (uint32_t i = first; ok && i < end; i++) {
        while (counting->n_stack && counting->stack[counting->n_stack - 1].end <= i)
            counting->n_open[counting->stack[--counting->n_stack].row]--;
        double value = model->own[i * model->n_metrics + counting->table->metric];
        ok = open_scope(counting, i);
        if (ok && value != 0)
            ok = add_statement(counting, i, value);
    }
    while (counting->n_stack)
        counting->n_open[counting->stack[--counting->n_stack].row]--;
    return ok;
}

static bool add_data(struct code_row *row, uint32_t variable, double value)
{
    size_t i = row->n_data;
    if (i && row->data[i - 1].variable == variable) { /* variables come one after the other */
        row->data[i - 1].value += value;
        return true;
    }
    if (!vec_reserve(&row->data, &row->cap_data, i + 1, sizeof *row->data))
        return false;
    row->data[row->n_data++] = (struct code_data){variable, value};
    return true;
}

/* What the statements touched that access one variable. */
static bool count_variable(struct code_table *table, enum code_kind kind, uint32_t index)
{
    const struct model *model = table->model;
    const struct variable *variable = &model->variables[index];
    bool ok = true;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; ok && i < end; i++) {
            double value = model->own[i * model->n_metrics + table->metric];
            uint32_t function = value != 0 ? function_around(table, i) : 0;
            uint32_t row = function ? row_of(table, kind, function, i) : 0;
            if (function)
                ok = row != NO_ROW && add_data(&table->rows[row], index, value);
        }
    }
    return ok;
}

/* The costs of a metric that only the data-centric tree has: of the paths below the variables. */
static bool count_accesses(struct counting *counting)
{
    const struct model *model = counting->table->model;
    bool ok = true;
    for (size_t v = 0; v < model->n_variables; v++)
        for (size_t k = 0; ok && k < model->variables[v].n_scopes; k++) {
            uint32_t first = model->variables[v].scopes[k];
            ok = count_tree(counting, first + 1, model_subtree_end(model, first));
        }
    return ok;
}

static int compare_data(const void *a, const void *b)
{
    const struct code_data *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->variable < y->variable ? -1 : x->variable > y->variable;
}

static int compare_rows(const void *a, const void *b)
{
    const struct code_row *x = a, *y = b;
    if (x->own != y->own)
        return x->own < y->own ? 1 : -1;
    if (x->inclusive != y->inclusive)
        return x->inclusive < y->inclusive ? 1 : -1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->file != y->file ? (x->file < y->file ? -1 : 1) : x->line < y->line ? -1 : x->line > y->line;
}

/* Leaves out what has no value, and puts the rest in order. */
static void order_rows(struct code_table *table)
{
    size_t n = 0;
    slots_fini(&table->slots);
    for (size_t i = 0; i < table->n_rows; i++) {
        struct code_row *row = &table->rows[i];
        if (row->own == 0 && row->inclusive == 0) {
            free(row->data);
            continue;
        }
        if (row->n_data)
            qsort(row->data, row->n_data, sizeof *row->data, compare_data);
        table->rows[n++] = *row;
    }
    table->n_rows = n;
    if (n)
        qsort(table->rows, n, sizeof *table->rows, compare_rows);
}

/* Whether the costs are those of the call trees, and not only of the data-centric one. */
static bool has_code(const struct model *model, size_t metric)
{
    uint32_t root = model_data_root(model);
    return model_value(model, 0, metric) > 0 || !root || model_value(model, root, metric) == 0;
}

int code_table_make(const struct model *model, size_t metric, enum code_kind kind, const struct code_functions *only,
                    struct code_table *table, struct error *err)
{
    *table = (struct code_table){.model = model, .metric = metric, .only = only};
    struct counting counting = {.table = table, .kind = kind};
    uint32_t root = model_data_root(model), root_end = root ? model_subtree_end(model, root) : 0;
    double of_code = model_value(model, 0, metric), of_data = root ? model_value(model, root, metric) : 0;
    table->total = of_code > of_data ? of_code : of_data;
    bool ok = has_code(model, metric) ? count_tree(&counting, 1, root ? root : (uint32_t)model->n_scopes) &&
                                            (!root || count_tree(&counting, root_end, (uint32_t)model->n_scopes))
                                      : count_accesses(&counting);
    for (uint32_t i = 0; ok && i < model->n_variables; i++)
        ok = model->variables[i].class >= CLASS_UNKNOWN || count_variable(table, kind, i);
    free(counting.n_open);
    free(counting.stack);
    if (!ok) {
        code_table_fini(table);
        return error_memory(err);
    }
    order_rows(table);
    return 0;
}

bool code_table_rows(const struct code_table *table, enum code_kind kind, uint32_t *row_of)
{
    const struct model *model = table->model;
    uint32_t root = model_data_root(model), end = root ? model_subtree_end(model, root) : 0;
    bool counts_code = has_code(model, table->metric);
    struct slots slots = {0};
    if (!slots_reserve(&slots, &kinds[kind], table->rows, table->n_rows))
        return false;
    for (uint32_t i = 1; i < model->n_scopes; i++) {
        bool is_data = root && i >= root && i < end;
        bool has_value = model->own[i * model->n_metrics + table->metric] != 0 && is_data != counts_code;
        uint32_t function = has_value ? function_around(table, i) : 0;
        if (!function)
            continue;
        const struct code_row like = row_like(model, kind, function, i);
        size_t index = slots_find(&slots, &kinds[kind], table->rows, &like);
        row_of[i] = index == SLOTS_NONE ? 0 : (uint32_t)index + 1;
    }
    slots_fini(&slots);
    return true;
}

int code_table_values(const struct code_table *table, enum code_kind kind, size_t metric, double *own,
                      double *inclusive, struct error *err)
{
    struct code_table other;
    struct slots slots = {0};
    int code = code_table_make(table->model, metric, kind, table->only, &other, err);
    if (code != 0)
        return code;
    if (!slots_reserve(&slots, &kinds[kind], table->rows, table->n_rows))
        code = error_memory(err);
    for (size_t i = 0; code == 0 && i < other.n_rows; i++) {
        size_t row = slots_find(&slots, &kinds[kind], table->rows, &other.rows[i]);
        if (row == SLOTS_NONE)
            continue;
        own[row] = other.rows[i].own;
        inclusive[row] = other.rows[i].inclusive;
    }
    slots_fini(&slots);
    code_table_fini(&other);
    return code;
}

void code_table_fini(struct code_table *table)
{
    for (size_t i = 0; i < table->n_rows; i++)
        free(table->rows[i].data);
    free(table->rows);
    slots_fini(&table->slots);
    *table = (struct code_table){0};
}

/* --- rows by thread, process, rank, CPU, core, package, NUMA node, region or function --- */

/* A statement belongs to one row, or to the parts of a stack frame; its value in each thread goes to these. */

#define NOTHING 1e-9 /* of a sum of values */
#define REGION_TITLE "<region "

static const struct {
    const char *name, *key;
    bool is_spread;
} bys[SPLIT_BYS] = {
    [SPLIT_THREAD] = {"thread", "thread", true},
    [SPLIT_PROCESS] = {"process", "process", true},
    [SPLIT_RANK] = {"rank", "rank", true},
    [SPLIT_CPU] = {"cpu", "CPU of the threads", true},
    [SPLIT_CORE] = {"core", "core of the threads", true},
    [SPLIT_PACKAGE] = {"package", "package of the threads", true},
    [SPLIT_NODE] = {"node", "NUMA node of the threads", true},
    [SPLIT_REGION] = {"region", "region", false},
    [SPLIT_FUNCTION] = {"function", "function", false},
};

enum split_by split_by_named(const char *name)
{
    for (int i = SPLIT_NONE + 1; i < SPLIT_BYS; i++)
        if (strcmp(bys[i].name, name) == 0)
            return (enum split_by)i;
    return SPLIT_NONE;
}

const char *split_by_name(enum split_by by)
{
    return bys[by].name;
}

bool split_by_is_place(enum split_by by)
{
    return by >= SPLIT_CPU && by <= SPLIT_NODE;
}

/* What happens to the value of a statement. */
struct share_of_row {
    double factor;
    uint32_t next; /* the row that gets the next part of it + 1, 0 = none */
};

struct splitting {
    struct split *split;
    const struct model *model;
    size_t metric;
    uint32_t *row_of;            /* [n_scopes] row + 1; 0: in none */
    struct share_of_row *shares; /* [n_rows] */
    bool *is_counted;            /* [n_scopes] part of the sums of the columns */
    uint32_t rest;               /* row + 1 that gets what is counted and in no row; 0 = none */
    double *sums;                /* [n_rows + 1] of the present column; the last: of all that is counted */
    uint32_t *above; /* [n_rows] row + 1 that the sums of the row are also part of, an earlier one; NULL: none are */
    uint32_t column;
    struct slots slots; /* of the cells, when columns change from statement to statement */
};

static bool make_room(struct splitting *splitting, size_t n_rows)
{
    size_t n = splitting->model->n_scopes;
    splitting->split->n_rows = n_rows;
    splitting->row_of = calloc(n + 1, sizeof *splitting->row_of);
    splitting->is_counted = calloc(n + 1, sizeof *splitting->is_counted);
    splitting->shares = calloc(n_rows + 1, sizeof *splitting->shares);
    splitting->sums = calloc(n_rows + 2, sizeof *splitting->sums);
    for (size_t i = 0; splitting->shares && i < n_rows; i++)
        splitting->shares[i].factor = 1;
    return splitting->row_of && splitting->is_counted && splitting->shares && splitting->sums;
}

static void splitting_fini(struct splitting *splitting)
{
    free(splitting->row_of);
    free(splitting->is_counted);
    free(splitting->shares);
    free(splitting->sums);
    free(splitting->above);
    slots_fini(&splitting->slots);
}

static double own_of(const struct splitting *splitting, size_t scope)
{
    return splitting->model->own[scope * splitting->model->n_metrics + splitting->metric];
}

/* --- one column after the other --- */

/* Adds the value of a statement to the sums of the column. */
static void add_value(struct splitting *splitting, uint32_t scope, double value)
{
    if (splitting->is_counted[scope])
        splitting->sums[splitting->split->n_rows] += value;
    for (uint32_t row = splitting->row_of[scope]; row; row = splitting->shares[row - 1].next)
        splitting->sums[row - 1] += value * splitting->shares[row - 1].factor;
}

static bool add_cell(struct split *split, uint32_t row, uint32_t column, double value)
{
    if (!vec_reserve(&split->cells, &split->cap_cells, split->n_cells + 1, sizeof *split->cells))
        return false;
    split->cells[split->n_cells++] = (struct split_cell){row, column, value};
    return true;
}

/* The sums of the column become cells. */
static bool end_column(struct splitting *splitting)
{
    struct split *split = splitting->split;
    double *sums = splitting->sums, in_rows = 0;
    bool ok = true;
    for (size_t i = 0; i < split->n_rows; i++)
        in_rows += sums[i];
    if (splitting->rest && sums[split->n_rows] - in_rows > NOTHING * sums[split->n_rows])
        sums[splitting->rest - 1] = sums[split->n_rows] - in_rows;
    if (in_rows > sums[split->n_rows])
        sums[split->n_rows] = in_rows;
    for (size_t i = split->n_rows; splitting->above && i > 0; i--)
        if (splitting->above[i - 1])
            sums[splitting->above[i - 1] - 1] += sums[i - 1];
    for (uint32_t i = 0; ok && i <= split->n_rows; i++)
        ok = sums[i] == 0 || add_cell(split, i, splitting->column, sums[i]);
    memset(sums, 0, (split->n_rows + 1) * sizeof *sums);
    return ok;
}

static int take_cells(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    struct splitting *splitting = context;
    (void)err;
    for (size_t i = 0; i < n_cells; i++)
        if (cells[i].metric == splitting->metric)
            add_value(splitting, cells[i].scope, cells[i].value);
    return 0;
}

/* Whether two entries of the list are one process, which has called exec. */
static bool is_same_process(const struct process *a, const struct process *b)
{
    return a == b || (a->birth && a->birth == b->birth && a->pid == b->pid && a->directory == b->directory &&
                      strcmp(a->host_id, b->host_id) == 0);
}

struct split_naming split_naming_of(const struct model *model)
{
    struct split_naming naming = {.by_rank = true, .has_one = true};
    for (size_t i = 1; i < model->n_processes; i++) {
        const struct process *one = &model->processes[i - 1], *next = &model->processes[i];
        if (is_same_process(one, next))
            continue;
        naming.has_one = false;
        naming.by_rank = naming.by_rank && one->rank != next->rank;
        naming.has_hosts = naming.has_hosts || strcmp(one->host_id, next->host_id) != 0;
        naming.has_repeats = naming.has_repeats || one->directory != next->directory;
    }
    return naming;
}

/* The name of the column that a thread belongs to. */
static void put_column_name(const struct model *model, const struct split_naming *naming, enum split_by by,
                            const struct thread *thread, struct buf *text)
{
    const struct process *process = &model->processes[thread->process];
    bool has_process = by != SPLIT_THREAD || !naming->has_one;
    if (by == SPLIT_RANK) {
        buf_printf(text, "%u", process->rank);
        return;
    }
    if (has_process && by == SPLIT_THREAD && naming->by_rank)
        buf_printf(text, "%u", process->rank);
    else if (has_process)
        buf_printf(text, "%u", process->pid);
    if (has_process && naming->has_hosts && !(by == SPLIT_THREAD && naming->by_rank))
        buf_printf(text, "@%s", process->host_id);
    if (has_process && naming->has_repeats)
        buf_printf(text, "#%u", process->directory);
    if (by == SPLIT_THREAD)
        buf_printf(text, "%s%u", has_process ? "." : "", thread->thread_id);
}

void split_put_thread(const struct model *model, const struct split_naming *naming, uint32_t thread, struct buf *out)
{
    put_column_name(model, naming, SPLIT_THREAD, &model->threads[thread], out);
}

const char *split_thread_key(const struct split_naming *naming)
{
    return naming->has_one ? "thread" : naming->by_rank ? "rank.thread" : "process.thread";
}

/* One column for each thread, process or rank. Threads are in the order of their processes, and these in that of their
 * ranks; what belongs to a column that is not the present one closes that one. */
static int split_by_thread(struct splitting *splitting, const struct value_source *values, struct error *err)
{
    const struct model *model = splitting->model;
    struct split *split = splitting->split;
    const struct split_naming naming = split_naming_of(model);
    int code = 0;
    bool ok = true;
    if (split->by == SPLIT_THREAD)
        split->key = split_thread_key(&naming);
    for (size_t i = 0; ok && code == 0 && i < model->n_threads; i++) {
        struct buf name = {0};
        put_column_name(model, &naming, split->by, &model->threads[i], &name);
        int64_t column = name.failed ? -1 : strtab_intern(&split->columns, name.data);
        buf_fini(&name);
        ok = column >= 0 && (i == 0 || column == splitting->column || end_column(splitting));
        splitting->column = (uint32_t)column;
        if (ok)
            code = values->visit(values->self, model->threads[i].profile, take_cells, splitting, err);
    }
    ok = ok && end_column(splitting);
    return ok || code ? code : error_memory(err);
}

/* --- columns that change from statement to statement --- */

static uint64_t hash_of_cell(const void *item)
{
    const struct split_cell *cell = item;
    return mixed(cell->row, cell->column, 0);
}

static bool is_same_cell(const void *one, const void *other)
{
    const struct split_cell *a = one, *b = other;
    return a->row == b->row && a->column == b->column;
}

static const struct slots_kind cell_kind = {sizeof(struct split_cell), hash_of_cell, is_same_cell};

static bool add_to_cell(struct splitting *splitting, uint32_t row, double value)
{
    struct split *split = splitting->split;
    const struct split_cell like = {row, splitting->column, value};
    if (!slots_reserve(&splitting->slots, &cell_kind, split->cells, split->n_cells))
        return false;
    size_t known = slots_find(&splitting->slots, &cell_kind, split->cells, &like);
    if (known != SLOTS_NONE) {
        split->cells[known].value += value;
        return true;
    }
    if (!add_cell(split, row, splitting->column, value))
        return false;
    slots_add(&splitting->slots, &cell_kind, split->cells, split->n_cells - 1);
    return true;
}

/* column_of [n_scopes]: the column of each statement. */
static int split_by_scope(struct splitting *splitting, const uint32_t *column_of, struct error *err)
{
    bool ok = true;
    for (uint32_t i = 1; ok && i < splitting->model->n_scopes; i++) {
        double value = own_of(splitting, i);
        splitting->column = column_of[i];
        if (value != 0 && splitting->is_counted[i])
            ok = add_to_cell(splitting, (uint32_t)splitting->split->n_rows, value);
        for (uint32_t row = splitting->row_of[i]; ok && value != 0 && row; row = splitting->shares[row - 1].next)
            ok = add_to_cell(splitting, row - 1, value * splitting->shares[row - 1].factor);
    }
    return ok ? 0 : error_memory(err);
}

/* The region inside another one: "outer > inner". */
static int64_t region_inside(struct strtab *names, uint32_t around, const char *title)
{
    struct buf text = {0};
    const char *outer = names->strings[around];
    size_t len = strlen(title), skip = strlen(REGION_TITLE);
    buf_printf(&text, "%s%s", outer, *outer ? " > " : "");
    if (strncmp(title, REGION_TITLE, skip) == 0 && title[len - 1] == '>')
        buf_append(&text, title + skip, len - skip - 1);
    else
        buf_printf(&text, "%s", title);
    int64_t index = text.failed ? -1 : strtab_intern(names, text.data);
    buf_fini(&text);
    return index;
}

/* The column of a scope whose parent has column `around`. */
static int64_t column_of_scope(struct splitting *splitting, const struct scope *scope, uint32_t around)
{
    struct split *split = splitting->split;
    const char *name = model_text(splitting->model, scope->name);
    if (split->by == SPLIT_REGION)
        return scope->role == ROLE_REGION ? region_inside(&split->columns, around, name) : around;
    bool is_function = scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED;
    return !is_function ? around : scope->role == ROLE_NONE ? strtab_intern(&split->columns, name) : 0;
}

static int split_by_place(struct splitting *splitting, struct error *err)
{
    const struct model *model = splitting->model;
    uint32_t *column_of = calloc(model->n_scopes + 1, sizeof *column_of);
    bool ok = column_of && strtab_intern(&splitting->split->columns, "") == 0;
    for (size_t i = 1; ok && i < model->n_scopes; i++) {
        int64_t column = column_of_scope(splitting, &model->scopes[i], column_of[model->scopes[i].parent]);
        ok = column >= 0;
        column_of[i] = (uint32_t)column;
    }
    int code = ok ? split_by_scope(splitting, column_of, err) : error_memory(err);
    free(column_of);
    return code;
}

/* --- what is split --- */

static int compare_cells(const void *a, const void *b)
{
    const struct split_cell *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

static int finish(struct split *split, struct error *err)
{
    size_t at = 0;
    if (split->n_cells)
        qsort(split->cells, split->n_cells, sizeof *split->cells, compare_cells);
    split->first = calloc(split->n_rows + 2, sizeof *split->first);
    for (size_t row = 0; split->first && row < split->n_rows + 2; row++) {
        while (at < split->n_cells && split->cells[at].row < row)
            at++;
        split->first[row] = at;
    }
    return split->first ? 0 : error_memory(err);
}

/* The rows of statements below a variable: those that waited are in rows of their own. */
static void give_variable(struct splitting *splitting, const struct report *report, const struct variable *variable,
                          uint32_t row, const uint32_t *row_of_wait)
{
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(report->model, first);
        for (uint32_t i = first; i < end; i++) {
            int64_t wait = own_of(splitting, i) != 0 ? report_wait(report, variable, i) : REPORT_NOT_WAITING;
            bool is_known = wait != REPORT_NOT_WAITING && (size_t)wait < report->n_waiting;
            splitting->row_of[i] = wait == REPORT_NOT_WAITING ? row : is_known ? row_of_wait[wait] : 0;
        }
    }
}

/* Says which row each statement in the data-centric tree belongs to. */
static bool give_variables(struct splitting *splitting, const struct report *report)
{
    size_t n_waits = report->n_waiting;
    uint32_t *row_of_wait = calloc(n_waits + 1, sizeof *row_of_wait);
    uint32_t *row_of = calloc(report->n_variables + 1, sizeof *row_of);
    bool ok = row_of_wait && row_of;
    for (size_t r = 0; ok && r < report->n_rows; r++) {
        const struct report_row *row = &report->rows[r];
        if (row->wait != REPORT_NOT_WAITING && (size_t)row->wait < n_waits)
            row_of_wait[row->wait] = (uint32_t)r + 1;
        else if (!row->variable && !row->fate)
            splitting->rest = (uint32_t)r + 1;
        if (!row->variable)
            continue;
        size_t variable = (size_t)(row->variable - report->variables);
        splitting->shares[r] = (struct share_of_row){row->part ? row->part->fraction : 1, row_of[variable]};
        row_of[variable] = (uint32_t)r + 1;
    }
    for (size_t v = 0; ok && v < report->n_variables; v++)
        give_variable(splitting, report, &report->variables[v], row_of[v], row_of_wait);
    free(row_of_wait);
    free(row_of);
    return ok;
}

/* The sums of columns are those of the call trees, or, for what only the data-centric tree has, of that. */
static void count_scopes(struct splitting *splitting)
{
    const struct model *model = splitting->model;
    uint32_t root = model_data_root(model), end = root ? model_subtree_end(model, root) : 0;
    bool has_code = model_value(model, 0, splitting->metric) > 0;
    for (uint32_t i = 1; i < model->n_scopes; i++)
        splitting->is_counted[i] = (root && i >= root && i < end) != has_code;
}

/* One column for each CPU, core, package or node: each row's value in the proportions of its variable's samples. */
static bool add_place_columns(struct splitting *splitting, const struct report *report, const struct cpu_table *table)
{
    struct split *split = splitting->split;
    double *all = calloc(report->n_variables + 1, sizeof *all), *here = calloc(report->n_variables + 1, sizeof *here);
    bool ok = all && here;
    for (size_t i = 0; ok && i < table->n_cells; i++)
        all[table->cells[i].variable] += (double)table->cells[i].n_samples;
    for (size_t place = 0; ok && place < table->n_rows; place++) {
        struct buf name = {0};
        cpu_table_put_name(table, place, &name);
        splitting->column = (uint32_t)place;
        ok = !name.failed && strtab_intern(&split->columns, name.data) == (int64_t)place;
        buf_fini(&name);
        memset(here, 0, report->n_variables * sizeof *here);
        for (size_t i = table->first[place]; i < table->first[place + 1]; i++)
            here[table->cells[i].variable] += (double)table->cells[i].n_samples;
        for (size_t r = 0; ok && r < report->n_rows; r++) {
            const struct report_row *row = &report->rows[r];
            size_t v = row->variable ? (size_t)(row->variable - report->variables) : report->n_variables;
            splitting->sums[r] = row->variable && !row->part && all[v] > 0 ? row->value * here[v] / all[v] : 0;
        }
        ok = ok && end_column(splitting);
    }
    free(all);
    free(here);
    return ok;
}

static int by_place(struct splitting *splitting, const struct report *report, struct error *err)
{
    static const enum cpu_by by[SPLIT_BYS] = {
        [SPLIT_CORE] = CPU_BY_CORE, [SPLIT_PACKAGE] = CPU_BY_PACKAGE, [SPLIT_NODE] = CPU_BY_NODE};
    struct cpu_table table;
    int code = cpu_table_make(report, by[splitting->split->by], NULL, &table, err);
    if (code != 0)
        return code;
    if (!add_place_columns(splitting, report, &table))
        code = error_memory(err);
    cpu_table_fini(&table);
    return code;
}

/* Of one host: older databases have these sums alone. */
static int by_node(struct splitting *splitting, const struct report *report, struct error *err)
{
    const struct model *model = report->model;
    bool ok = true;
    char name[16];
    for (uint32_t node = 0; ok && node < model->n_numa_nodes; node++) {
        (void)snprintf(name, sizeof name, "%u", node);
        splitting->column = node;
        ok = strtab_intern(&splitting->split->columns, name) == node;
        for (size_t r = 0; ok && r < report->n_rows; r++) {
            const struct report_row *row = &report->rows[r];
            double all = 0;
            for (uint32_t i = 0; row->places && i < model->n_numa_nodes; i++)
                all += (double)row->places[i];
            splitting->sums[r] = all > 0 ? row->value * (double)row->places[node] / all : 0;
        }
        ok = ok && end_column(splitting);
    }
    if (!ok)
        return error_memory(err);
    return splitting->split->n_cells ? 0
                                     : error_set(err, ERR_NOT_FOUND,
                                                 "the database does not know on which NUMA nodes the samples were "
                                                 "taken");
}

/* Makes the cells, once statements have rows. */
static int split_rows(struct splitting *splitting, const struct value_source *values, struct error *err)
{
    struct split *split = splitting->split;
    count_scopes(splitting);
    int code = bys[split->by].is_spread ? split_by_thread(splitting, values, err) : split_by_place(splitting, err);
    return code == 0 ? finish(split, err) : code;
}

int split_variables(const struct report *report, enum split_by by, const struct value_source *values,
                    struct split *split, struct error *err)
{
    *split = (struct split){.by = by, .is_spread = bys[by].is_spread, .key = bys[by].key};
    struct splitting splitting = {.split = split, .model = report->model, .metric = report->metric};
    int code = 0;
    if (!make_room(&splitting, report->n_rows) || !give_variables(&splitting, report))
        code = error_memory(err);
    else if (by == SPLIT_NODE && (report->model->n_cpu_counts == 0 || report->model->n_machines < 2))
        code = by_node(&splitting, report, err);
    else if (split_by_is_place(by))
        code = by_place(&splitting, report, err);
    else
        code = split_rows(&splitting, values, err);
    if (code == 0 && split_by_is_place(by))
        code = finish(split, err);
    splitting_fini(&splitting);
    if (code != 0)
        split_fini(split);
    return code;
}

/* Splits the rows that have been prepared (not ok: there was no memory for that), and frees what that took. */
static int split_prepared(struct splitting *splitting, bool ok, const struct value_source *values, struct error *err)
{
    int code = ok ? split_rows(splitting, values, err) : error_memory(err);
    splitting_fini(splitting);
    if (code != 0)
        split_fini(splitting->split);
    return code;
}

int split_code(const struct code_table *table, enum code_kind kind, enum split_by by, const struct value_source *values,
               struct split *split, struct error *err)
{
    *split = (struct split){.by = by, .is_spread = bys[by].is_spread, .key = bys[by].key};
    struct splitting splitting = {.split = split, .model = table->model, .metric = table->metric};
    if (split_by_is_place(by))
        return error_set(err, ERR_UNSUPPORTED,
                         "where samples were taken is known for variables only: hpcquery vars --by %s", bys[by].name);
    if (by == SPLIT_FUNCTION)
        return error_set(err, ERR_UNSUPPORTED,
                         "functions and lines are not split by function: hpcquery vars --by "
                         "function splits variables");
    bool ok = make_room(&splitting, table->n_rows) && code_table_rows(table, kind, splitting.row_of);
    return split_prepared(&splitting, ok, values, err);
}

/* Each scope counts for the nearest one above it that has a row. */
static bool give_scopes(struct splitting *splitting, const uint32_t *scopes, size_t n_rows)
{
    const struct model *model = splitting->model;
    splitting->above = calloc(n_rows + 1, sizeof *splitting->above);
    for (size_t i = 0; splitting->above && i < n_rows; i++)
        splitting->row_of[scopes[i]] = (uint32_t)i + 1;
    for (size_t i = 1; splitting->above && i < model->n_scopes; i++) {
        uint32_t around = splitting->row_of[model->scopes[i].parent];
        if (splitting->row_of[i])
            splitting->above[splitting->row_of[i] - 1] = around;
        else
            splitting->row_of[i] = around;
    }
    return splitting->above != NULL;
}

int split_scopes(const struct model *model, size_t metric, const uint32_t *scopes, size_t n_rows, enum split_by by,
                 const struct value_source *values, struct split *split, struct error *err)
{
    *split = (struct split){.by = by, .is_spread = bys[by].is_spread, .key = bys[by].key};
    struct splitting splitting = {.split = split, .model = model, .metric = metric};
    if (by != SPLIT_THREAD && by != SPLIT_PROCESS && by != SPLIT_RANK)
        return error_set(err, ERR_UNSUPPORTED,
                         "a tree is split by thread, process or rank only; it shows regions and functions as nodes");
    bool ok = make_room(&splitting, n_rows) && give_scopes(&splitting, scopes, n_rows);
    return split_prepared(&splitting, ok, values, err);
}

int split_join_rows(struct split *split, const uint32_t *row_of, size_t n, struct error *err)
{
    size_t n_kept = 0, n_joined = 0;
    for (size_t i = 0; i < split->n_cells; i++) {
        struct split_cell cell = split->cells[i];
        bool is_sum = cell.row == split->n_rows;
        if (!is_sum && !row_of[cell.row])
            continue;
        cell.row = is_sum ? (uint32_t)n : row_of[cell.row] - 1;
        split->cells[n_kept++] = cell;
    }
    if (n_kept)
        qsort(split->cells, n_kept, sizeof *split->cells, compare_cells);
    for (size_t i = 0; i < n_kept; i++) {
        const struct split_cell cell = split->cells[i];
        if (n_joined && compare_cells(&split->cells[n_joined - 1], &cell) == 0)
            split->cells[n_joined - 1].value += cell.value;
        else
            split->cells[n_joined++] = cell;
    }
    split->n_cells = n_joined;
    split->n_rows = n;
    free(split->first);
    return finish(split, err);
}

void split_fini(struct split *split)
{
    strtab_fini(&split->columns);
    free(split->cells);
    free(split->first);
    *split = (struct split){0};
}

struct split_spread split_spread_of(const struct split *split, size_t row)
{
    struct split_spread spread = {0};
    size_t n = split->columns.n_strings, at = split->first[row];
    double sum = 0;
    for (uint32_t column = 0; column < n; column++) {
        bool has_cell = at < split->first[row + 1] && split->cells[at].column == column;
        double value = has_cell ? split->cells[at++].value : 0;
        spread.n_with_value += value != 0;
        sum += value;
        if (column == 0 || value < spread.least) {
            spread.least = value;
            spread.least_at = column;
        }
        if (column == 0 || value > spread.most) {
            spread.most = value;
            spread.most_at = column;
        }
    }
    spread.mean = n ? sum / (double)n : 0;
    spread.imbalance = spread.mean > 0 ? spread.most / spread.mean : 0;
    return spread;
}
