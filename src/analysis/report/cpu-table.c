/* SPDX-License-Identifier: BSD-3-Clause */
/* From the counts by thread and CPU to rows: one pass over the counts, then rows and cells are put in order. */
#include "analysis/report/cpu-table.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

/* What is known of the processes and CPUs while the counts are gone through. */
struct making {
    struct cpu_table *table;
    const struct report *report;
    bool *is_metric;      /* [n_metrics] its samples count */
    bool *is_wanted;      /* [n_variables of the report] */
    uint32_t *host_of;    /* [n_processes] index into the table's hosts */
    uint32_t *machine_of; /* [n hosts] 1 + index into the model's machines, 0: none */
    struct slots rows, cells;
};

static uint64_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
    return (a * UINT64_C(0x9e3779b97f4a7c15) ^ b) * UINT64_C(0xc2b2ae3d27d4eb4f) + c * UINT64_C(0xd6e8feb86659fd93);
}

static uint64_t hash_of_row(const void *item)
{
    const struct cpu_row *row = item;
    return mixed(row->host, row->place, 0);
}

static bool is_same_row(const void *one, const void *other)
{
    const struct cpu_row *a = one, *b = other;
    return a->host == b->host && a->place == b->place;
}

static uint64_t hash_of_cell(const void *item)
{
    const struct cpu_cell *cell = item;
    return mixed(cell->row, cell->thread, cell->variable);
}

static bool is_same_cell(const void *one, const void *other)
{
    const struct cpu_cell *a = one, *b = other;
    return a->row == b->row && a->thread == b->thread && a->variable == b->variable;
}

static const struct slots_kind row_kind = {sizeof(struct cpu_row), hash_of_row, is_same_row};
static const struct slots_kind cell_kind = {sizeof(struct cpu_cell), hash_of_cell, is_same_cell};

/* --- hosts and metrics --- */

static bool find_hosts(struct making *making)
{
    const struct model *model = making->report->model;
    struct strtab *hosts = &making->table->hosts;
    making->host_of = calloc(model->n_processes + 1, sizeof *making->host_of);
    making->machine_of = calloc(model->n_processes + 1, sizeof *making->machine_of);
    if (!making->host_of || !making->machine_of)
        return false;
    for (size_t i = 0; i < model->n_processes; i++) {
        int64_t host = strtab_intern(hosts, model->processes[i].host_id);
        if (host < 0)
            return false;
        making->host_of[i] = (uint32_t)host;
    }
    for (uint32_t i = 0; i < model->n_machines; i++) {
        int64_t host = strtab_find(hosts, model->machines[i].host_id);
        if (host >= 0)
            making->machine_of[host] = i + 1;
    }
    return true;
}

static bool find_metrics(struct making *making)
{
    const struct model *model = making->report->model;
    bool is_access = metrics_is_access(model->metrics[making->report->metric].name);
    making->is_metric = calloc(model->n_metrics + 1, sizeof *making->is_metric);
    if (!making->is_metric)
        return false;
    making->is_metric[making->report->metric] = true;
    for (size_t i = 0; is_access && i < model->n_events; i++) {
        int64_t metric = model->events[i].has_data_source ? model_metric(model, model->events[i].metric) : -1;
        if (metric >= 0)
            making->is_metric[metric] = true;
    }
    return true;
}

static int choose_variables(struct making *making, const char *name, struct error *err)
{
    const struct report *report = making->report;
    bool is_found = !name;
    making->is_wanted = calloc(report->n_variables + 1, sizeof *making->is_wanted);
    if (!making->is_wanted)
        return error_memory(err);
    for (size_t i = 0; i < report->n_variables; i++)
        making->is_wanted[i] = !name || strcmp(model_variable_name(report->model, &report->variables[i]), name) == 0;
    for (size_t i = 0; name && i < report->n_rows; i++) /* also by what tells it from others of its name */
        if (report->rows[i].variable && report_is_named(&report->rows[i], name))
            making->is_wanted[report->rows[i].variable - report->variables] = true;
    for (size_t i = 0; i < report->n_variables; i++)
        is_found |= making->is_wanted[i];
    return is_found ? 0 : report_refuse_variable(report, name, err);
}

/* --- counts become cells --- */

static bool is_cpu_before(const void *context, size_t i)
{
    const struct machine_cpu *const *range = context; /* the CPUs, and one with the number that is looked for */
    return range[0][i].cpu < range[1]->cpu;
}

/* Where a CPU of a host is, as far as its topology says. */
static struct machine_cpu cpu_at(const struct making *making, uint32_t host, uint32_t cpu)
{
    struct machine_cpu at = {cpu, PLACE_UNKNOWN, PLACE_UNKNOWN, PLACE_UNKNOWN};
    uint32_t number = making->machine_of[host];
    const struct machine *machine = number ? &making->report->model->machines[number - 1] : NULL;
    if (!machine)
        return at;
    const struct machine_cpu *const range[] = {machine->cpus, &at};
    size_t i = search_where(machine->n_cpus, is_cpu_before, range);
    return i < machine->n_cpus && machine->cpus[i].cpu == cpu ? machine->cpus[i] : at;
}

static uint32_t place_of(enum cpu_by by, const struct machine_cpu *at)
{
    const uint32_t places[CPU_BYS] = {at->cpu, at->core, at->package, at->node};
    return places[by];
}

/* A place that is not the same for all is not known for them together. */
static void forget_unless_same(uint32_t *place, uint32_t other)
{
    if (*place != other)
        *place = PLACE_UNKNOWN;
}

/* The row that a CPU belongs to, added when new; SLOTS_NONE when out of memory. */
static size_t row_of_cpu(struct making *making, uint32_t host, const struct machine_cpu *at)
{
    struct cpu_table *table = making->table;
    const struct cpu_row like = {.host = host, .place = place_of(table->by, at), .at = *at};
    size_t index = slots_put(&making->rows, &row_kind, &table->rows, &table->n_rows, &table->cap_rows, &like);
    if (index == SLOTS_NONE)
        return index;
    struct machine_cpu *common = &table->rows[index].at;
    forget_unless_same(&common->cpu, at->cpu);
    forget_unless_same(&common->core, at->core);
    forget_unless_same(&common->package, at->package);
    forget_unless_same(&common->node, at->node);
    return index;
}

static bool add_count(struct making *making, const struct cpu_count *count)
{
    struct cpu_table *table = making->table;
    const struct model *model = making->report->model;
    uint32_t variable = making->report->variable_of[count->variable];
    uint32_t host = making->host_of[model->threads[count->thread].process];
    if (!making->is_metric[count->metric] || !making->is_wanted[variable] || count->n_samples == 0)
        return true;
    const struct machine_cpu at = cpu_at(making, host, count->cpu);
    size_t row = row_of_cpu(making, host, &at);
    if (row == SLOTS_NONE)
        return false;
    const struct cpu_cell like = {.row = (uint32_t)row, .thread = count->thread, .variable = variable};
    size_t cell = slots_put(&making->cells, &cell_kind, &table->cells, &table->n_cells, &table->cap_cells, &like);
    if (cell == SLOTS_NONE)
        return false;
    table->cells[cell].n_samples += count->n_samples;
    table->rows[row].n_samples += count->n_samples;
    table->n_samples += count->n_samples;
    return true;
}

/* Packages and nodes that nobody used are rows too: that is what one looks for. */
static bool add_places(struct making *making)
{
    const struct model *model = making->report->model;
    bool ok = true;
    for (size_t host = 0; making->table->by >= CPU_BY_PACKAGE && host < making->table->hosts.n_strings; host++) {
        uint32_t number = making->machine_of[host];
        const struct machine *machine = number ? &model->machines[number - 1] : NULL;
        for (size_t i = 0; ok && machine && i < machine->n_cpus; i++)
            if (place_of(making->table->by, &machine->cpus[i]) != PLACE_UNKNOWN)
                ok = row_of_cpu(making, (uint32_t)host, &machine->cpus[i]) != SLOTS_NONE;
    }
    return ok;
}

/* --- the order --- */

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct cpu_table *table = context;
    const struct cpu_row *x = &table->rows[*(const uint32_t *)a], *y = &table->rows[*(const uint32_t *)b];
    if (x->host != y->host)
        return strcmp(table->hosts.strings[x->host], table->hosts.strings[y->host]);
    return x->place < y->place ? -1 : x->place > y->place;
}

static int compare_cells(const void *a, const void *b)
{
    const struct cpu_cell *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->variable < y->variable ? -1 : x->variable > y->variable;
}

/* new_of [n_rows]: the new number of each row. */
static bool order_rows(struct cpu_table *table, uint32_t *order, uint32_t *new_of)
{
    struct cpu_row *sorted = calloc(table->n_rows + 1, sizeof *sorted);
    if (!sorted)
        return false;
    for (uint32_t i = 0; i < table->n_rows; i++)
        order[i] = i;
    if (table->n_rows > 1)
        qsort_r(order, table->n_rows, sizeof *order, compare_rows, table);
    for (uint32_t i = 0; i < table->n_rows; i++) {
        sorted[i] = table->rows[order[i]];
        new_of[order[i]] = i;
    }
    free(table->rows);
    table->rows = sorted;
    table->cap_rows = table->n_rows + 1;
    return true;
}

/* Puts rows and cells in order. */
static bool order_all(struct cpu_table *table)
{
    uint32_t *order = calloc(table->n_rows + 1, sizeof *order), *new_of = calloc(table->n_rows + 1, sizeof *new_of);
    table->first = calloc(table->n_rows + 1, sizeof *table->first);
    bool ok = order && new_of && table->first && order_rows(table, order, new_of);
    for (size_t i = 0; ok && i < table->n_cells; i++)
        table->cells[i].row = new_of[table->cells[i].row];
    if (ok && table->n_cells)
        qsort(table->cells, table->n_cells, sizeof *table->cells, compare_cells);
    for (size_t i = 0, row = 0; ok && row <= table->n_rows; row++) {
        table->first[row] = i;
        for (; row < table->n_rows && i < table->n_cells && table->cells[i].row == row; i++)
            table->rows[row].n_threads +=
                i == table->first[row] || table->cells[i].thread != table->cells[i - 1].thread;
    }
    free(order);
    free(new_of);
    return ok;
}

/* Fails when there is nothing to show. */
static int judge(const struct cpu_table *table, const char *variable, struct error *err)
{
    bool is_known = table->by == CPU_BY_CPU;
    if (table->n_samples == 0 && variable)
        return error_set(err, ERR_NOT_FOUND, "no sample of this metric is known to have been taken on '%s'", variable);
    if (table->n_samples == 0)
        return error_set(err, ERR_NOT_FOUND,
                         "the database does not know on which CPUs the samples of this metric were taken");
    for (size_t i = 0; !is_known && i < table->n_rows; i++)
        is_known = table->rows[i].place != PLACE_UNKNOWN;
    return is_known ? 0
                    : error_set(err, ERR_NOT_FOUND,
                                "the database does not know in which cores, packages and NUMA nodes the CPUs are; "
                                "--by cpu");
}

int cpu_table_make(const struct report *report, enum cpu_by by, const char *variable, struct cpu_table *table,
                   struct error *err)
{
    const struct model *model = report->model;
    *table = (struct cpu_table){.by = by};
    struct making making = {.table = table, .report = report};
    int code = choose_variables(&making, variable, err);
    bool ok = code != 0 || (find_hosts(&making) && find_metrics(&making) && add_places(&making));
    for (size_t i = 0; code == 0 && ok && i < model->n_cpu_counts; i++)
        ok = add_count(&making, &model->cpu_counts[i]);
    ok = ok && (code != 0 || order_all(table));
    if (!ok)
        code = error_memory(err);
    if (code == 0)
        code = judge(table, variable, err);
    free(making.is_metric);
    free(making.is_wanted);
    free(making.host_of);
    free(making.machine_of);
    slots_fini(&making.rows);
    slots_fini(&making.cells);
    if (code != 0)
        cpu_table_fini(table);
    return code;
}

void cpu_table_fini(struct cpu_table *table)
{
    strtab_fini(&table->hosts);
    free(table->rows);
    free(table->cells);
    free(table->first);
    *table = (struct cpu_table){0};
}

void cpu_table_put_name(const struct cpu_table *table, size_t row, struct buf *out)
{
    if (table->rows[row].place == PLACE_UNKNOWN)
        buf_printf(out, "?");
    else
        buf_printf(out, "%u", table->rows[row].place);
    if (table->hosts.n_strings > 1)
        buf_printf(out, "@%s", table->hosts.strings[table->rows[row].host]);
}
