/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions and lines: one pass over the call tree for what they cost, one over the variables for what they touched.
 * And what reports need of splits, beside split.c, which makes them, of code whose data have no name, and of the code
 * that made a variable. */
#include "analysis/report/code-table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/heap-name.h"
#include "base/path.h"
#include "base/spelling.h"
#include "structure/names/assign-name.h"

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

bool code_table_wants(const struct code_table *table, uint32_t function, uint32_t file)
{
    const struct code_functions *only = table->only;
    if (!only)
        return true;
    bool is_named = false;
    for (size_t i = 0; !is_named && i < only->n_names; i++)
        is_named = function == only->names[i];
    return is_named && file == only->file;
}

/* The function around a statement; 0: a profiler's node is nearer, or the table is not about this function. */
static uint32_t function_around(const struct code_table *table, uint32_t scope)
{
    const struct scope *scopes = table->model->scopes;
    while (scope && !is_function(&scopes[scope]))
        scope = scopes[scope].role == ROLE_NONE ? scopes[scope].parent : 0;
    return scope && code_table_wants(table, scopes[scope].name, scopes[scope].file) ? scope : 0;
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

struct code_row *code_table_put(struct code_table *table, enum code_kind kind, const struct code_row *like)
{
    size_t index = slots_put(&table->slots, &kinds[kind], &table->rows, &table->n_rows, &table->cap_rows, like);
    if (index == SLOTS_NONE)
        return NULL;
    struct code_row *row = &table->rows[index];
    if (like->line && (!row->line || like->line < row->line))
        row->line = like->line; /* only of functions: of a line it is the same */
    return row;
}

/* The row of a function's scope, or of a statement in it; added when new. NO_ROW when out of memory. */
static uint32_t row_of(struct code_table *table, enum code_kind kind, uint32_t function, uint32_t statement)
{
    const struct code_row like = row_like(table->model, kind, function, statement);
    const struct code_row *row = code_table_put(table, kind, &like);
    return row ? (uint32_t)(row - table->rows) : NO_ROW;
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

/* Makes the rows from the scopes of the model.  err: ERR_MEMORY */
static int count_scopes(const struct model *model, size_t metric, enum code_kind kind, struct code_table *table,
                        struct error *err)
{
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
    return ok ? 0 : error_memory(err);
}

int code_table_make(const struct model *model, size_t metric, enum code_kind kind, const struct code_functions *only,
                    struct code_table *table, struct error *err)
{
    *table = (struct code_table){.model = model, .metric = metric, .only = only};
    int code =
        model->code ? model->code->fill(model->code, kind, table, err) : count_scopes(model, metric, kind, table, err);
    if (code == 0)
        order_rows(table);
    else
        code_table_fini(table);
    return code;
}

bool code_table_rows(const struct code_table *table, enum code_kind kind, bool of_data, uint32_t *row_of)
{
    const struct model *model = table->model;
    uint32_t root = model_data_root(model), end = root ? model_subtree_end(model, root) : 0;
    bool counts_code = !of_data && has_code(model, table->metric);
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

/* --- splits: names of threads, and how even a row is --- */

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

void split_put_column(const struct model *model, const struct split_naming *naming, enum split_by by, uint32_t number,
                      struct buf *text)
{
    const struct thread *thread = &model->threads[number];
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
    if (by == SPLIT_THREAD && thread->name)
        buf_printf(text, " (%s)", model_text(model, thread->name));
}

void split_put_thread(const struct model *model, const struct split_naming *naming, uint32_t thread, struct buf *out)
{
    split_put_column(model, naming, SPLIT_THREAD, thread, out);
}

size_t split_title_width(const struct split *split, size_t least, size_t most)
{
    size_t width = least;
    for (uint32_t i = 0; i < split->columns.n_strings; i++)
        width = strlen(split->columns.strings[i]) > width ? strlen(split->columns.strings[i]) : width;
    return width < most ? width : most;
}

const char *split_thread_key(const struct split_naming *naming)
{
    return naming->has_one ? "thread" : naming->by_rank ? "rank.thread" : "process.thread";
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

/* --- samples without an address --- */

/* Why much of a program's data may have no name. */

/* How each interpreter runs a program without compiling it. */
static const struct {
    const char *name, *command;
} without_jit[] = {
    {"node", "node --jitless"},       {"nodejs", "nodejs --jitless"}, {"deno", "deno --v8-flags=--jitless"},
    {"d8", "d8 --jitless"},           {"java", "java -Xint"},         {"luajit", "luajit -joff"},
    {"pypy", "pypy --jit off"},       {"ruby", "ruby --disable-jit"}, {"php", "php -d opcache.jit=off"},
    {"julia", "julia --compile=min"},
};

/* Whether text is a version that may follow the name of an interpreter, as in java-17, ruby3.1 and
 * luajit-2.1.0-beta3. */
static bool is_version(const char *text)
{
    text += *text == '-';
    return *text == 0 || isdigit((unsigned char)*text);
}

const char *report_without_jit(const char *program)
{
    for (size_t i = 0; program && i < sizeof without_jit / sizeof *without_jit; i++) {
        size_t len = strlen(without_jit[i].name);
        if (strncmp(program, without_jit[i].name, len) == 0 && is_version(program + len))
            return without_jit[i].command;
    }
    return NULL;
}

/* Whether a statement is in a function that is in no file. */
static bool is_jit(const struct model *model, uint32_t scope)
{
    while (scope && model->scopes[scope].kind != SCOPE_PROC)
        scope = model->scopes[scope].parent;
    const char *module = model_text(model, model->scopes[scope].module);
    return scope && model->scopes[scope].role == ROLE_NONE && (!*module || strcmp(module, "[jit]") == 0);
}

double report_lost_in_jit(const struct report *report)
{
    const struct model *model = report->model;
    double value = 0;
    for (size_t r = 0; r < report->n_rows; r++) {
        const struct variable *variable = report->rows[r].variable;
        for (size_t k = 0; variable && !strcmp(report->rows[r].name, "<address lost>") && k < variable->n_scopes; k++) {
            uint32_t end = model_subtree_end(model, variable->scopes[k]);
            for (uint32_t i = variable->scopes[k] + 1; i < end; i++) {
                double own = model->own[i * model->n_metrics + report->metric];
                value += own != 0 && is_jit(model, i) ? own : 0;
            }
        }
    }
    return report->total_value > 0 ? 100 * value / report->total_value : 0;
}

double report_without_block(const struct report *report)
{
    double share = 0;
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct variable *variable = report->rows[i].variable;
        bool is_mapping = variable && variable->class == CLASS_MMAP;
        share += is_mapping || strcmp(report->rows[i].name, "<no block>") == 0 ? report->rows[i].share : 0;
    }
    return share;
}

/* --- where variables come from, and how they are told apart --- */

bool report_place(const char *name, uint64_t *place)
{
    const char *plus = name;
    char *end = NULL;
    while (plus && (end = NULL, plus = strstr(plus, HEAP_PLACE))) {
        *place = strtoull(plus + 1, &end, 16);
        if (!*end || *end == ' ')
            return true;
        plus++;
    }
    return false;
}

/* A block that is named by its call; and which one that is of those of its function. */
struct report_call {
    const struct variable *variable;
    uint64_t place;
};

struct report_call_rank {
    size_t before, n;
};

static int compare_callers(const struct variable *x, const struct variable *y)
{
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->class < y->class ? -1 : x->class > y->class;
}

static int compare_calls(const void *a, const void *b)
{
    const struct report_call *x = a, *y = b;
    int order = compare_callers(x->variable, y->variable);
    return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

bool report_rank_calls(struct report *report)
{
    struct report_call *calls = calloc(report->n_variables + 1, sizeof *calls);
    size_t n = 0;
    report->calls_of = calloc(report->n_variables + 1, sizeof *report->calls_of);
    for (size_t i = 0; calls && report->calls_of && i < report->n_variables; i++)
        if (report_place(model_text(report->model, report->variables[i].name), &calls[n].place))
            calls[n++].variable = &report->variables[i];
    if (n)
        qsort(calls, n, sizeof *calls, compare_calls);
    for (size_t i = 0, end; calls && i < n; i = end) {
        for (end = i + 1; end < n && compare_callers(calls[i].variable, calls[end].variable) == 0;)
            end++;
        for (size_t k = i, first = i; k < end; k++) {
            first = calls[k].place == calls[first].place ? first : k;
            report->calls_of[calls[k].variable - report->variables] = (struct report_call_rank){first - i, end - i};
        }
    }
    free(calls);
    return calls && report->calls_of;
}

/* Which one of the calls in its function that have blocks allocated the variable, in the order of the machine code:
 * " (call 3 of 21)"; nothing where it is the only one. */
static void put_call(const struct report *report, const struct variable *variable, struct buf *site)
{
    const struct report_call_rank *rank = &report->calls_of[variable - report->variables];
    if (rank->n > 1)
        buf_printf(site, " (call %zu of %zu)", rank->before + 1, rank->n);
}

char *report_site(const struct report *report, const struct variable *variable, uint32_t file_id, uint32_t line)
{
    const struct model *model = report->model;
    struct buf site = {0};
    const char *function = model_text(model, variable->function), *file = model_text(model, file_id);
    const char *name = assign_name_start(function);
    int len = (int)(assign_name_parameters(name) - name);
    if (variable->class == CLASS_UNKNOWN || variable->class == CLASS_UNATTRIBUTED || variable->class == CLASS_FILE ||
        variable->class == CLASS_WAITING)
        return strdup("");
    if (variable->function && line)
        buf_printf(&site, "%.*s (%s:%u)", len, name, path_last(file), line);
    else if (variable->function)
        buf_printf(&site, "%.*s", len, name);
    else if (line)
        buf_printf(&site, "%s:%u", path_last(file), line);
    else
        buf_printf(&site, "%s", model_module_name(model, model_text(model, variable->module)));
    put_call(report, variable, &site);
    if (!site.data || site.failed) {
        buf_fini(&site);
        return site.failed ? NULL : strdup("");
    }
    return site.data;
}

bool report_is_named(const struct report_row *row, const char *name)
{
    size_t n = strlen(row->name);
    return strcmp(row->name, name) == 0 ||
           (row->site && *row->site && strncmp(row->name, name, n) == 0 && strncmp(name + n, " from ", 6) == 0 &&
            strcmp(row->site, name + n + 6) == 0);
}

int report_refuse_variable(const struct report *report, const char *name, struct error *err)
{
    struct buf text = {0};
    size_t n = 0;
    const char **names = calloc(report->n_rows + 1, sizeof *names);
    for (size_t i = 0; names && i < report->n_rows; i++)
        if (report->rows[i].variable && !report_is_special(&report->rows[i]))
            names[n++] = report->rows[i].name;
    if (names)
        spelling_suggest(&text, name, names, n);
    int code = names && !text.failed
                   ? error_set(err, ERR_NOT_FOUND, "no variable is called '%.200s'%.700s", name, text.data)
                   : error_memory(err);
    buf_fini(&text);
    free(names);
    return code;
}
