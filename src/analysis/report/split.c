/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of reports by thread, process, rank, CPU, core, package, NUMA node, region or function: see code-table.h. A
 * statement belongs to one row, or to the parts of a stack frame; its value in each thread goes to these. */
#include "analysis/report/code-table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/cpu-table.h"
#include "arena/arena.h"
#include "base/path.h"
#include "base/search.h"

#define NOTHING 1e-9 /* of a sum of values */

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
    [SPLIT_PHASE] = {"phase", "phase", false},
    [SPLIT_FUNCTION] = {"function", "function", false},
};

static const enum cpu_by cpu_bys[SPLIT_BYS] = {
    [SPLIT_CORE] = CPU_BY_CORE, [SPLIT_PACKAGE] = CPU_BY_PACKAGE, [SPLIT_NODE] = CPU_BY_NODE};

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

/* Samples that were dropped for one reason. */
struct split_drops {
    uint32_t row; /* + 1; 0 = there are none */
    double worth; /* value of one of them */
    double left;  /* of them, whose threads are not known */
};

/* What happens to the value of a statement. */
struct share_of_row {
    double factor;
    uint32_t next; /* the row that gets the next part of it + 1, 0 = none */
};

struct splitting {
    struct split *split;
    const struct model *model;
    size_t metric;
    uint32_t *row_of;                  /* [n_scopes] row + 1; 0: in none */
    struct share_of_row *shares;       /* [n_rows] */
    bool *is_counted;                  /* [n_scopes] part of the sums of the columns */
    size_t n_main;                     /* rows that are no fields: what is in no row is in none of these */
    const struct split_fields *fields; /* NULL: there are none */
    size_t *first_part;                /* [n_scopes + 1] where the parts of each scope begin */
    uint32_t rest;                     /* row + 1 that gets what is counted and in no row; 0 = none */
    double *sums;                      /* [n_rows + 1] of the present column; the last: of all that is counted */
    uint32_t *above; /* [n_rows] row + 1 that the sums of the row are also part of, an earlier one; NULL: none are */
    uint32_t column;
    struct slots slots;                       /* of the cells, when columns change from statement to statement */
    struct places *places;                    /* NULL: columns are no places of code */
    const struct report *report;              /* of variables; NULL: rows are code */
    struct split_drops drops[FATE_TAKEN_MAX]; /* by fate */
    size_t next_drop;                         /* of the model's, which are by thread */
    struct strtab programs;                   /* of the processes ... */
    size_t *n_of_program;                     /* ... and how many were each of them */
};

/* Finds the parts of each scope, which come in the order of scopes. */
static bool index_parts(struct splitting *splitting)
{
    const struct split_fields *fields = splitting->fields;
    size_t n = splitting->model->n_scopes, at = 0;
    if (!fields)
        return true;
    splitting->first_part = calloc(n + 2, sizeof *splitting->first_part);
    for (size_t i = 0; splitting->first_part && i <= n; i++) {
        while (at < fields->n_of_scopes && fields->of_scopes[at].scope < i)
            at++;
        splitting->first_part[i] = at;
    }
    return splitting->first_part != NULL;
}

static bool make_room(struct splitting *splitting, size_t n_rows)
{
    size_t n = splitting->model->n_scopes;
    splitting->n_main = n_rows;
    n_rows += splitting->fields ? splitting->fields->n : 0;
    splitting->split->n_rows = n_rows;
    splitting->row_of = calloc(n + 1, sizeof *splitting->row_of);
    splitting->is_counted = calloc(n + 1, sizeof *splitting->is_counted);
    splitting->shares = calloc(n_rows + 1, sizeof *splitting->shares);
    splitting->sums = calloc(n_rows + 2, sizeof *splitting->sums);
    for (size_t i = 0; splitting->shares && i < n_rows; i++)
        splitting->shares[i].factor = 1;
    return splitting->row_of && splitting->is_counted && splitting->shares && splitting->sums && index_parts(splitting);
}

static void splitting_fini(struct splitting *splitting)
{
    free(splitting->row_of);
    free(splitting->is_counted);
    free(splitting->shares);
    free(splitting->sums);
    free(splitting->above);
    free(splitting->first_part);
    free(splitting->n_of_program);
    strtab_fini(&splitting->programs);
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
    for (size_t i = splitting->fields ? splitting->first_part[scope] : 0;
         splitting->fields && i < splitting->first_part[scope + 1]; i++) {
        const struct split_part *part = &splitting->fields->of_scopes[i];
        splitting->sums[splitting->n_main + part->field] += value * part->fraction;
    }
}

static bool add_cell(struct split *split, uint32_t row, uint32_t column, double value)
{
    if (!vec_reserve(&split->cells, &split->cap_cells, split->n_cells + 1, sizeof *split->cells))
        return false;
    split->cells[split->n_cells++] = (struct split_cell){row, column, value};
    return true;
}

/* Adds the samples of a thread that were dropped, after those of the threads before it. */
static void add_drops(struct splitting *splitting, size_t thread)
{
    const struct model *model = splitting->model;
    for (; splitting->report && splitting->next_drop < model->n_drops &&
           model->drops[splitting->next_drop].thread <= thread;
         splitting->next_drop++) {
        const struct drop_count *drop = &model->drops[splitting->next_drop];
        struct split_drops *drops = &splitting->drops[drop->fate];
        double value = drops->worth * (double)drop->n_samples;
        if (!drops->row || !report_is_of_event(splitting->report, drop->event))
            continue;
        splitting->sums[drops->row - 1] += value;
        splitting->sums[splitting->split->n_rows] += value;
        drops->left -= drops->left < (double)drop->n_samples ? drops->left : (double)drop->n_samples;
    }
}

/* Gives what is counted and in no row to the row that is for that. */
static void add_rest(struct splitting *splitting)
{
    double *sums = splitting->sums, in_rows = 0;
    size_t n_rows = splitting->split->n_rows;
    for (size_t i = 0; i < splitting->n_main; i++)
        in_rows += sums[i];
    if (splitting->rest && sums[n_rows] - in_rows > NOTHING * sums[n_rows])
        sums[splitting->rest - 1] = sums[n_rows] - in_rows;
    if (in_rows > sums[n_rows])
        sums[n_rows] = in_rows;
}

/* The sums of the column become cells. */
static bool end_column(struct splitting *splitting)
{
    struct split *split = splitting->split;
    double *sums = splitting->sums;
    bool ok = true;
    add_rest(splitting);
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

/* Counts the processes that were each program. */
static bool count_programs(struct splitting *splitting)
{
    const struct model *model = splitting->model;
    bool ok = (splitting->n_of_program = calloc(model->n_processes + 1, sizeof *splitting->n_of_program)) != NULL;
    for (size_t i = 0; ok && i < model->n_processes; i++) {
        int64_t program = strtab_intern(&splitting->programs, path_last(model->processes[i].exe));
        ok = program >= 0;
        splitting->n_of_program[ok ? program : 0]++;
    }
    return ok;
}

static size_t count_of_program(const struct splitting *splitting, const char *exe)
{
    int64_t program = strtab_find(&splitting->programs, exe);
    return program < 0 ? 0 : splitting->n_of_program[program];
}

/* Notes which program the column of a thread is about. A process that calls exec has several, whose order is not known:
 * it began as the program of its parent, which began others too, so the one that fewer processes were is taken. */
static void note_program(struct splitting *splitting, const struct process *process, size_t column)
{
    struct split *split = splitting->split;
    const char *exe = path_last(process->exe), *known = split->programs[column];
    bool is_other = known && strcmp(known, exe) != 0;
    if (is_other && split->by == SPLIT_RANK)
        split->programs[column] = "";
    else if (!is_other || count_of_program(splitting, exe) <= count_of_program(splitting, known))
        split->programs[column] = exe;
    split->has_programs = split->has_programs || is_other || (column && strcmp(exe, split->programs[0]) != 0);
}

/* Samples whose threads are not known have a column of their own. */
static bool add_drops_left(struct splitting *splitting)
{
    struct split *split = splitting->split;
    double all = 0;
    for (int fate = 0; fate < FATE_TAKEN_MAX; fate++) {
        const struct split_drops *drops = &splitting->drops[fate];
        if (drops->left > 0)
            splitting->sums[drops->row - 1] += drops->worth * drops->left;
        all += drops->worth * drops->left;
    }
    int64_t column = all > 0 ? strtab_intern(&split->columns, SPLIT_NOT_KNOWN) : 0;
    if (all <= 0 || column < 0)
        return column >= 0;
    splitting->sums[split->n_rows] = all;
    splitting->column = (uint32_t)column;
    if (split->programs)
        split->programs[column] = "";
    return end_column(splitting);
}

/* One column for each thread, process or rank. Threads are in the order of their processes, and these in that of their
 * ranks; what belongs to a column that is not the present one closes that one. */
static int split_by_thread(struct splitting *splitting, const struct value_source *values, struct error *err)
{
    const struct model *model = splitting->model;
    struct split *split = splitting->split;
    const struct split_naming naming = split_naming_of(model);
    int code = 0;
    bool ok = true, is_first = true;
    if (split->by == SPLIT_THREAD)
        split->key = split_thread_key(&naming);
    ok = (split->programs = calloc(model->n_threads + 1, sizeof *split->programs)) && count_programs(splitting);
    for (size_t i = 0; ok && code == 0 && i < model->n_threads; i++) {
        struct buf name = {0};
        if (model->is_left_out && model->is_left_out[i])
            continue;
        split_put_column(model, &naming, split->by, (uint32_t)i, &name);
        int64_t column = name.failed ? -1 : strtab_intern(&split->columns, name.data);
        buf_fini(&name);
        ok = column >= 0 && (is_first || column == splitting->column || end_column(splitting));
        is_first = false;
        splitting->column = (uint32_t)column;
        if (ok) {
            note_program(splitting, &model->processes[model->threads[i].process], (size_t)column);
            code = values->visit(values->self, model->threads[i].profile, take_cells, splitting, err);
            add_drops(splitting, i);
        }
    }
    ok = ok && end_column(splitting) && add_drops_left(splitting);
    return ok || code ? code : error_memory(err);
}

/* --- columns that change from statement to statement --- */

static uint64_t hash_of_cell(const void *item)
{
    const struct split_cell *cell = item;
    return cell->row * UINT64_C(0x9e3779b97f4a7c15) ^ cell->column * UINT64_C(0xc2b2ae3d27d4eb4f);
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
        for (size_t k = splitting->fields ? splitting->first_part[i] : 0;
             ok && value != 0 && splitting->fields && k < splitting->first_part[i + 1]; k++) {
            const struct split_part *part = &splitting->fields->of_scopes[k];
            ok = add_to_cell(splitting, (uint32_t)splitting->n_main + part->field, value * part->fraction);
        }
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

/* Phases are in no other one. */
static int64_t phase_named(struct strtab *names, const char *title)
{
    struct buf text = {0};
    const char *name = title + sizeof PHASE_TITLE - 1;
    buf_printf(&text, "%.*s", (int)strcspn(name, ">"), name);
    int64_t index = text.failed ? -1 : strtab_intern(names, text.data);
    buf_fini(&text);
    return index;
}

/* The column of a scope whose parent has column `around`. */
static int64_t column_of_scope(struct splitting *splitting, const struct scope *scope, uint32_t around)
{
    struct split *split = splitting->split;
    const char *name = model_text(splitting->model, scope->name);
    bool is_phase = model_is_phase(splitting->model, scope);
    if (split->by == SPLIT_REGION)
        return scope->role == ROLE_REGION && !is_phase ? region_inside(&split->columns, around, name) : around;
    if (split->by == SPLIT_PHASE)
        return is_phase ? phase_named(&split->columns, name) : around;
    bool is_function = scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED;
    bool has_name = scope->role == ROLE_PROFILER || (is_function && scope->role == ROLE_NONE);
    return has_name ? strtab_intern(&split->columns, name) : is_function ? 0 : around;
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
        if (row->fate && row->samples > 0)
            splitting->drops[row->fate] =
                (struct split_drops){(uint32_t)r + 1, row->value / row->samples, row->samples};
        if (row->wait != REPORT_NOT_WAITING && (size_t)row->wait < n_waits)
            row_of_wait[row->wait] = (uint32_t)r + 1;
        else if (!row->variable && !row->fate)
            splitting->rest = (uint32_t)r + 1;
        if (!row->variable)
            continue;
        size_t variable = (size_t)(row->variable - report->variables);
        splitting->shares[r] =
            (struct share_of_row){report_part_fraction(report, row, report->metric), row_of[variable]};
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

/* Where rows alone have sums, fields have their fractions of these. */
static void sum_fields(struct splitting *splitting)
{
    const struct split_fields *fields = splitting->fields;
    for (size_t i = 0; fields && i < fields->n_of_rows; i++)
        splitting->sums[splitting->n_main + fields->of_rows[i].field] +=
            fields->of_rows[i].fraction * splitting->sums[fields->of_rows[i].scope];
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
        sum_fields(splitting);
        ok = ok && end_column(splitting);
    }
    if (!ok)
        return error_memory(err);
    return splitting->split->n_cells ? 0
                                     : error_set(err, ERR_NOT_FOUND,
                                                 "the database does not know on which NUMA nodes the samples were "
                                                 "taken");
}

/* --- code by place --- */

/* Places are known by variable and thread alone. So the value of a statement is shared out in the proportions of what
 * its thread took on the variable that it accesses, or on all where it accesses none: exact where a thread stayed. */

struct places {
    struct report report;
    struct cpu_table table;
    struct cpu_cell *cells; /* [table.n_cells] by thread, then by variable */
    size_t *first;          /* [n_threads + 1] where the cells of each thread begin */
    uint32_t *variable_of;  /* [n_scopes] of the report + 1: of what accesses it; 0: none */
    uint32_t thread;        /* whose values come now */
    uint64_t *of_thread;    /* [table.n_rows] its samples */
    uint64_t all_of_thread;
    bool has_unknown; /* there is a column for them */
};

static void places_fini(struct places *places)
{
    report_fini(&places->report);
    cpu_table_fini(&places->table);
    free(places->cells);
    free(places->first);
    free(places->variable_of);
    free(places->of_thread);
}

static int compare_by_thread(const void *a, const void *b)
{
    const struct cpu_cell *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The counts by thread, and the variable that each statement of the tree of data accesses. */
static bool index_places(struct places *places, const struct model *model)
{
    size_t n = places->table.n_cells, at = 0;
    places->cells = calloc(n + 1, sizeof *places->cells);
    places->first = calloc(model->n_threads + 2, sizeof *places->first);
    places->variable_of = calloc(model->n_scopes + 1, sizeof *places->variable_of);
    places->of_thread = calloc(places->table.n_rows + 1, sizeof *places->of_thread);
    if (!places->cells || !places->first || !places->variable_of || !places->of_thread)
        return false;
    if (n) {
        memcpy(places->cells, places->table.cells, n * sizeof *places->cells);
        qsort(places->cells, n, sizeof *places->cells, compare_by_thread);
    }
    for (size_t thread = 0; thread <= model->n_threads; thread++) {
        while (at < n && places->cells[at].thread < thread)
            at++;
        places->first[thread] = at;
    }
    for (size_t v = 0; v < model->n_variables; v++)
        for (size_t k = 0; k < model->variables[v].n_scopes; k++) {
            uint32_t first = model->variables[v].scopes[k], end = model_subtree_end(model, first);
            for (uint32_t i = first; i < end; i++)
                places->variable_of[i] = places->report.variable_of[v] + 1;
        }
    return true;
}

static int places_make(struct places *places, const struct model *model, size_t metric, enum split_by by,
                       struct error *err)
{
    *places = (struct places){0};
    int code = report_make(model, metric, false, false, &places->report, err);
    if (code != 0)
        return code;
    code = cpu_table_make(&places->report, cpu_bys[by], NULL, &places->table, err);
    if (code == 0 && !index_places(places, model))
        code = error_memory(err);
    if (code != 0)
        places_fini(places);
    return code;
}

/* Adds a value to the row in the column of a place. */
static bool add_at_place(struct splitting *splitting, uint32_t row, uint32_t column, double value)
{
    uint32_t n_rows = (uint32_t)splitting->split->n_rows;
    splitting->column = column;
    return add_to_cell(splitting, n_rows, value) && (!row || add_to_cell(splitting, row - 1, value));
}

/* Turns to the values of a thread. */
static void begin_thread(struct places *places, uint32_t thread)
{
    places->thread = thread;
    places->all_of_thread = 0;
    memset(places->of_thread, 0, places->table.n_rows * sizeof *places->of_thread);
    for (size_t i = places->first[thread]; i < places->first[thread + 1]; i++) {
        places->of_thread[places->cells[i].row] += places->cells[i].n_samples;
        places->all_of_thread += places->cells[i].n_samples;
    }
}

static bool is_cell_before(const void *context, size_t i)
{
    const struct cpu_cell *const *range = context; /* the cells, and one of the variable that is looked for */
    return range[0][i].variable < range[1]->variable;
}

/* Shares out a value like all samples of the thread. */
static bool share_out_alike(struct splitting *splitting, uint32_t row, double value)
{
    struct places *places = splitting->places;
    uint32_t n = (uint32_t)places->table.n_rows;
    bool ok = true;
    if (!places->all_of_thread) {
        places->has_unknown = true;
        return add_at_place(splitting, row, n, value);
    }
    for (uint32_t i = 0; ok && i < n; i++)
        if (places->of_thread[i])
            ok = add_at_place(splitting, row, i, value * (double)places->of_thread[i] / (double)places->all_of_thread);
    return ok;
}

/* Shares out the value of a statement of the tree of data. */
static bool share_out(struct splitting *splitting, uint32_t scope, double value)
{
    const struct places *places = splitting->places;
    const struct cpu_cell *cells = &places->cells[places->first[places->thread]],
                          like = {.variable = places->variable_of[scope] - 1};
    size_t n = places->first[places->thread + 1] - places->first[places->thread];
    const struct cpu_cell *const range[] = {cells, &like};
    size_t low = search_where(n, is_cell_before, range), high = low;
    uint64_t all = 0;
    bool ok = true;
    for (; high < n && cells[high].variable == like.variable; high++)
        all += cells[high].n_samples;
    if (!all)
        return share_out_alike(splitting, splitting->row_of[scope], value);
    for (; ok && low < high; low++)
        ok = add_at_place(splitting, splitting->row_of[scope], cells[low].row,
                          value * (double)cells[low].n_samples / (double)all);
    return ok;
}

static int take_places(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    struct splitting *splitting = context;
    for (size_t i = 0; i < n_cells; i++)
        if (cells[i].metric == splitting->metric && splitting->places->variable_of[cells[i].scope] &&
            !share_out(splitting, cells[i].scope, cells[i].value))
            return error_memory(err);
    return 0;
}

/* Adds the values of rows to those that they are part of, and of variables to their fields, column by column. */
static bool sum_columns(struct splitting *splitting)
{
    struct split *split = splitting->split;
    struct split_cell *cells = split->cells;
    size_t n_cells = split->n_cells, n_columns = split->columns.n_strings, at = 0;
    bool ok = true;
    bool has_fields = splitting->fields && splitting->places;
    if (!splitting->above && !has_fields)
        return true;
    split->cells = NULL;
    split->n_cells = split->cap_cells = 0;
    for (size_t i = 0; i < n_cells; i++) /* by column, then by row */
        cells[i] = (struct split_cell){cells[i].column, cells[i].row, cells[i].value};
    if (n_cells)
        qsort(cells, n_cells, sizeof *cells, compare_cells);
    for (uint32_t column = 0; ok && column < n_columns; column++) {
        for (; at < n_cells && cells[at].row == column; at++)
            splitting->sums[cells[at].column] = cells[at].value;
        if (has_fields)
            sum_fields(splitting);
        splitting->column = column;
        ok = end_column(splitting);
    }
    free(cells);
    return ok;
}

/* Names the columns. */
static bool name_places(struct splitting *splitting)
{
    const struct cpu_table *table = &splitting->places->table;
    bool ok = true;
    for (size_t place = 0; ok && place < table->n_rows; place++) {
        struct buf name = {0};
        cpu_table_put_name(table, place, &name);
        ok = !name.failed && strtab_intern(&splitting->split->columns, name.data) == (int64_t)place;
        buf_fini(&name);
    }
    return ok;
}

static int end_places(struct splitting *splitting, struct error *err)
{
    bool ok = true;
    if (splitting->places->has_unknown)
        ok = strtab_intern(&splitting->split->columns, SPLIT_NOT_KNOWN) == (int64_t)splitting->places->table.n_rows;
    return ok && sum_columns(splitting) ? 0 : error_memory(err);
}

/* Splits rows of code, or of the tree of data, whose statements have rows in row_of. */
static int code_by_place(struct splitting *splitting, const struct value_source *values, struct error *err)
{
    const struct model *model = splitting->model;
    int code = name_places(splitting) ? 0 : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < model->n_threads; i++) {
        begin_thread(splitting->places, i);
        code = values->visit(values->self, model->threads[i].profile, take_places, splitting, err);
    }
    code = code == 0 ? end_places(splitting, err) : code;
    return code == 0 ? finish(splitting->split, err) : code;
}

/* Shares out the rows of variables in the proportions of their samples; is_known [n_rows]: those that were. */
static bool variables_by_place(struct splitting *splitting, bool *is_known)
{
    const struct report *report = &splitting->places->report;
    const struct cpu_table *table = &splitting->places->table;
    double *all = calloc(report->n_variables + 1, sizeof *all), *here = calloc(report->n_variables + 1, sizeof *here);
    bool ok = all && here;
    for (size_t i = 0; ok && i < table->n_cells; i++)
        all[table->cells[i].variable] += (double)table->cells[i].n_samples;
    for (size_t place = 0; ok && place < table->n_rows; place++) {
        memset(here, 0, report->n_variables * sizeof *here);
        for (size_t i = table->first[place]; i < table->first[place + 1]; i++)
            here[table->cells[i].variable] += (double)table->cells[i].n_samples;
        for (uint32_t r = 0; ok && r < report->n_rows; r++) {
            const struct report_row *row = &report->rows[r];
            size_t v = row->variable ? (size_t)(row->variable - report->variables) : report->n_variables;
            is_known[r] = all[v] > 0;
            if (here[v] > 0 && row->value != 0)
                ok = add_at_place(splitting, r + 1, (uint32_t)place, row->value * here[v] / all[v]);
        }
    }
    free(all);
    free(here);
    return ok;
}

/* Shares out the other rows, thread by thread, like all samples of the thread on variables. */
static int others_by_place(struct splitting *splitting, const bool *is_known, const struct value_source *values,
                           struct error *err)
{
    const struct model *model = splitting->model;
    int code = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && code == 0 && i < model->n_threads; i++) {
        begin_thread(splitting->places, i);
        code = values->visit(values->self, model->threads[i].profile, take_cells, splitting, err);
        add_drops(splitting, i);
        add_rest(splitting);
        for (uint32_t r = 0; ok && r < splitting->n_main; r++)
            ok = is_known[r] || splitting->sums[r] == 0 || share_out_alike(splitting, r + 1, splitting->sums[r]);
        memset(splitting->sums, 0, (splitting->split->n_rows + 1) * sizeof *splitting->sums);
    }
    for (int fate = 0; ok && fate < FATE_TAKEN_MAX; fate++)
        if (splitting->drops[fate].left > 0) {
            splitting->places->has_unknown = true;
            ok = add_at_place(splitting, splitting->drops[fate].row, (uint32_t)splitting->places->table.n_rows,
                              splitting->drops[fate].worth * splitting->drops[fate].left);
        }
    return ok ? code : error_memory(err);
}

static int by_place(struct splitting *splitting, const struct report *report, const struct value_source *values,
                    struct error *err)
{
    struct places places = {.report = *report};
    bool *is_known = calloc(report->n_rows + 1, sizeof *is_known);
    int code =
        is_known ? cpu_table_make(report, cpu_bys[splitting->split->by], NULL, &places.table, err) : error_memory(err);
    splitting->places = &places;
    if (code == 0 &&
        !(index_places(&places, report->model) && name_places(splitting) && variables_by_place(splitting, is_known)))
        code = error_memory(err);
    if (code == 0)
        code = others_by_place(splitting, is_known, values, err);
    if (code == 0)
        code = end_places(splitting, err);
    splitting->places = NULL;
    places.report = (struct report){0}; /* the caller's */
    places_fini(&places);
    free(is_known);
    return code;
}

/* --- statements of the tree of data, and the same ones in the call tree --- */

static bool is_same_scope(const void *one, const void *other)
{
    const struct scope *a = one, *b = other;
    return a->parent == b->parent && a->kind == b->kind && a->role == b->role && a->name == b->name &&
           a->file == b->file && a->module == b->module && (a->kind == SCOPE_PROC || a->line == b->line) &&
           (a->kind != SCOPE_INSTRUCTION || a->vaddr == b->vaddr);
}

static uint64_t hash_of_scope(const void *item)
{
    const struct scope *scope = item;
    return (scope->parent * UINT64_C(0x9e3779b97f4a7c15) ^ scope->name) * UINT64_C(0xc2b2ae3d27d4eb4f) ^
           ((uint64_t)scope->file << 32 | (scope->kind == SCOPE_PROC ? 0 : scope->line)) * UINT64_C(0xd6e8feb86659fd93);
}

static const struct slots_kind scope_kind = {sizeof(struct scope), hash_of_scope, is_same_scope};

/* Gives each statement that accesses a variable the row of the same call path in the call tree, or of the longest part
 * of it that has one. */
static bool give_accesses(struct splitting *splitting)
{
    const struct model *model = splitting->model;
    struct slots slots = {0};
    uint32_t *code_of = calloc(model->n_scopes + 1, sizeof *code_of);
    bool ok = code_of && slots_reserve(&slots, &scope_kind, model->scopes, model->n_scopes);
    for (size_t v = 0; ok && v < model->n_variables; v++)
        for (size_t k = 0; k < model->variables[v].n_scopes; k++) {
            uint32_t first = model->variables[v].scopes[k], end = model_subtree_end(model, first);
            for (uint32_t i = first + 1; i < end; i++) {
                struct scope like = model->scopes[i];
                if (like.role == ROLE_ACCESS)
                    continue;
                like.parent = code_of[like.parent];
                size_t found = slots_find(&slots, &scope_kind, model->scopes, &like);
                code_of[i] = found == SLOTS_NONE ? like.parent : (uint32_t)found;
                splitting->row_of[i] = splitting->row_of[code_of[i]];
            }
        }
    slots_fini(&slots);
    free(code_of);
    return ok;
}

/* Makes the cells, once statements have rows. */
static int split_rows(struct splitting *splitting, const struct value_source *values, struct error *err)
{
    struct split *split = splitting->split;
    count_scopes(splitting);
    int code = bys[split->by].is_spread ? split_by_thread(splitting, values, err) : split_by_place(splitting, err);
    if (code == 0 && !bys[split->by].is_spread && !(sum_columns(splitting) && add_drops_left(splitting)))
        code = error_memory(err);
    return code == 0 ? finish(split, err) : code;
}

int split_variables(const struct report *report, enum split_by by, const struct value_source *values,
                    const struct split_fields *fields, struct split *split, struct error *err)
{
    *split = (struct split){.by = by, .is_spread = bys[by].is_spread, .key = bys[by].key};
    struct splitting splitting = {
        .split = split, .model = report->model, .metric = report->metric, .fields = fields, .report = report};
    int code = 0;
    if (!make_room(&splitting, report->n_rows) || !give_variables(&splitting, report))
        code = error_memory(err);
    else if (by == SPLIT_NODE && (report->model->n_cpu_counts == 0 || report->model->n_machines == 0))
        code = by_node(&splitting, report, err);
    else if (split_by_is_place(by))
        code = by_place(&splitting, report, values, err);
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
    int code = !ok                 ? error_memory(err)
               : splitting->places ? code_by_place(splitting, values, err)
                                   : split_rows(splitting, values, err);
    splitting_fini(splitting);
    if (splitting->places)
        places_fini(splitting->places);
    if (code != 0)
        split_fini(splitting->split);
    return code;
}

int split_code(const struct code_table *table, enum code_kind kind, enum split_by by, const struct value_source *values,
               struct split *split, struct error *err)
{
    *split = (struct split){.by = by, .is_spread = bys[by].is_spread, .key = bys[by].key};
    struct splitting splitting = {.split = split, .model = table->model, .metric = table->metric};
    struct places places;
    bool by_place = split_by_is_place(by);
    if (by == SPLIT_FUNCTION)
        return error_set(err, ERR_UNSUPPORTED,
                         "functions and lines are not split by function: hpcquery vars --by "
                         "function splits variables");
    int code = by_place ? places_make(&places, table->model, table->metric, by, err) : 0;
    if (code != 0)
        return code;
    splitting.places = by_place ? &places : NULL;
    bool ok = make_room(&splitting, table->n_rows) && code_table_rows(table, kind, by_place, splitting.row_of);
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
    struct places places;
    uint32_t root = model_data_root(model);
    bool of_data = root && n_rows && scopes[0] >= root && scopes[0] < model_subtree_end(model, root);
    int code = split_by_is_place(by) ? places_make(&places, model, metric, by, err) : 0;
    if (code != 0)
        return code;
    splitting.places = split_by_is_place(by) ? &places : NULL;
    bool ok = make_room(&splitting, n_rows) && give_scopes(&splitting, scopes, n_rows);
    if (ok && splitting.places && !of_data)
        ok = give_accesses(&splitting);
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
    free(split->programs);
    free(split->cells);
    free(split->first);
    *split = (struct split){0};
}
