/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables at the end of locus.db, each with its name and length: see locus-db.c. doc/FORMAT.md has them. */
#include "fmt/locus-db.h"

#include <stdlib.h>
#include <string.h>

/* Behind the model lie tables with names and lengths. A table is there if it has rows. */

/* A core, package or node: 0 when not known, else its number + 1. */
static void pass_place(struct pass *pass, uint32_t *place)
{
    uint32_t number = *place + 1;
    pass_32(pass, &number, UINT32_MAX, "place of a CPU");
    *place = number - 1;
}

static void pass_machines(struct pass *pass, struct model *model)
{
    model->n_machines = pass_list(pass, &model->machines, model->n_machines, sizeof *model->machines, "hosts");
    for (size_t i = 0; i < model->n_machines && pass->code == 0; i++) {
        struct machine *machine = &model->machines[i];
        pass_text(pass, &machine->host_id, "host");
        if (pass->code == 0 && !machine->host_id)
            pass_refuse(pass, "host", "it has no name");
        machine->n_cpus = pass_list(pass, &machine->cpus, machine->n_cpus, sizeof *machine->cpus, "CPUs");
        for (size_t k = 0; k < machine->n_cpus && pass->code == 0; k++) {
            struct machine_cpu *cpu = &machine->cpus[k];
            pass_32(pass, &cpu->cpu, PLACE_UNKNOWN - 1, "CPU");
            if (k && pass->code == 0 && cpu->cpu <= cpu[-1].cpu)
                pass_refuse(pass, "CPU", "the numbers do not ascend");
            pass_place(pass, &cpu->core);
            pass_place(pass, &cpu->package);
            pass_place(pass, &cpu->node);
        }
    }
}

/* The distances between the memory nodes of the machines, in their order. */
static void pass_distances(struct pass *pass, struct model *model)
{
    uint32_t n_machines = (uint32_t)model->n_machines;
    pass_32(pass, &n_machines, model->n_machines, "machines with distances");
    for (size_t i = 0; i < n_machines && pass->code == 0; i++) {
        struct machine *machine = &model->machines[i];
        size_t n = (size_t)machine->n_distances * machine->n_distances;
        n = pass_list(pass, &machine->distances, n, sizeof *machine->distances, "distances");
        pass_32(pass, &machine->n_distances, HOMES_MAX, "nodes with distances");
        if (pass->code == 0 && n != (size_t)machine->n_distances * machine->n_distances)
            pass_refuse(pass, "distances", "they are no square");
        for (size_t k = 0; k < n && pass->code == 0; k++)
            pass_32(pass, &machine->distances[k], UINT32_MAX, "distance");
    }
}

/* The variable of an entry, as how much further on it is than *before, that of the entry before; it becomes *before. */
static void pass_next_variable(struct pass *pass, const struct model *model, uint32_t *variable, uint32_t *before,
                               const char *what)
{
    uint32_t further = *variable - *before;
    pass_32(pass, &further, model->n_variables - 1 - *before, what);
    *variable = *before += further;
}

static void pass_cpu_counts(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    size_t n = model->n_cpu_counts =
        pass_list(pass, &model->cpu_counts, model->n_cpu_counts, sizeof *model->cpu_counts, "counts by CPU");
    if (n && (!model->n_variables || !model->n_metrics || !model->has_thread_list || !model->n_threads))
        pass_refuse(pass, "counts by CPU", "there are no variables, metrics or threads");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct cpu_count *count = &model->cpu_counts[i];
        pass_next_variable(pass, model, &count->variable, &variable, "variable of a count by CPU");
        pass_32(pass, &count->thread, model->n_threads - 1, "thread of a count by CPU");
        pass_32(pass, &count->metric, model->n_metrics - 1, "metric of a count by CPU");
        pass_32(pass, &count->cpu, UINT32_MAX, "CPU of a count");
        pass_64(pass, &count->n_samples, "count by CPU");
    }
}

static void pass_home_counts(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    size_t n = model->n_home_counts =
        pass_list(pass, &model->home_counts, model->n_home_counts, sizeof *model->home_counts, "counts by home");
    if (n && (!model->n_variables || !model->n_metrics || !model->has_thread_list || !model->n_threads))
        pass_refuse(pass, "counts by home", "there are no variables, metrics or threads");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct home_count *count = &model->home_counts[i];
        uint32_t home = count->home + 1;
        pass_next_variable(pass, model, &count->variable, &variable, "variable of a count by home");
        pass_32(pass, &count->thread, model->n_threads - 1, "thread of a count by home");
        pass_32(pass, &count->metric, model->n_metrics - 1, "metric of a count by home");
        pass_32(pass, &count->cpu, UINT32_MAX, "CPU of a count by home");
        pass_32(pass, &home, HOMES_MAX, "home of a count");
        count->home = home - 1;
        pass_64(pass, &count->n_samples, "count by home");
    }
}

static void pass_pages(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    model->n_pages = pass_list(pass, &model->pages, model->n_pages, sizeof *model->pages, "pages");
    if (model->n_pages && !model->n_variables)
        pass_refuse(pass, "pages", "there are no variables");
    for (size_t i = 0; i < model->n_pages && pass->code == 0; i++) {
        struct variable_pages *pages = &model->pages[i];
        uint32_t n_nodes = HOMES_MAX;
        uint64_t huge = pages->huge_bytes + 1;
        uint64_t *words[] = {&pages->n_moved, &pages->n_pages, &pages->n_asked, &pages->n_none, &huge};
        pass_next_variable(pass, model, &pages->variable, &variable, "variable of pages");
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            pass_64(pass, words[k], "pages");
        pages->huge_bytes = huge - 1;
        while (n_nodes && !pages->n_on[n_nodes - 1])
            n_nodes--;
        pass_32(pass, &n_nodes, HOMES_MAX, "nodes of pages");
        for (size_t k = 0; k < n_nodes; k++)
            pass_64(pass, &pages->n_on[k], "pages of a node");
    }
}

struct table {
    const char *name;
    size_t n_at;                                 /* where in the model its number of rows is */
    bool (*is_there)(const struct model *model); /* NULL: if it has rows */
    void (*pass)(struct pass *pass, struct model *model);
};

static void pass_meetings(struct pass *pass, struct model *model)
{
    size_t n = model->n_meetings =
        pass_list(pass, &model->meetings, model->n_meetings, sizeof *model->meetings, "meetings");
    if (n && (!model->n_variables || !model->has_thread_list || !model->n_threads))
        pass_refuse(pass, "meetings", "there are no variables or threads");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct meeting *meeting = &model->meetings[i];
        uint64_t *const words[] = {&meeting->key,    &meeting->address,  &meeting->n_bytes,
                                   &meeting->n_same, &meeting->n_beside, &meeting->n_none};
        pass_32(pass, &meeting->variable, model->n_variables - 1, "variable of a meeting");
        pass_32(pass, &meeting->thread, model->n_threads - 1, "thread of a meeting");
        pass_32(pass, &meeting->scope, model->n_scopes - 1, "scope of a meeting");
        pass_32(pass, &meeting->accesses, 3, "meeting");
        pass_bool(pass, &meeting->is_watcher, "meeting");
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            pass_64(pass, words[k], "meeting");
    }
}

static void pass_touches(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    size_t n = model->n_touches = pass_list(pass, &model->touches, model->n_touches, sizeof *model->touches, "touches");
    if (n && (!model->n_variables || !model->has_thread_list || !model->n_threads))
        pass_refuse(pass, "touches", "there are no variables or threads");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct touch *touch = &model->touches[i];
        bool has_place = touch->low_bytes <= touch->high_bytes;
        pass_next_variable(pass, model, &touch->variable, &variable, "variable of a touch");
        pass_32(pass, &touch->thread, model->n_threads - 1, "thread of a touch");
        pass_32(pass, &touch->scope, model->n_scopes - 1, "scope of a touch");
        pass_64(pass, &touch->n_samples, "touch");
        pass_64(pass, &touch->n_faults, "touch");
        pass_64(pass, &touch->first_ns, "touch");
        pass_bool(pass, &has_place, "touch");
        if (has_place) {
            pass_64(pass, &touch->low_bytes, "touch");
            pass_64(pass, &touch->high_bytes, "touch");
        } else {
            touch->low_bytes = 1;
            touch->high_bytes = 0;
        }
    }
}

/* Only the bins and blocks that have samples. */
static void pass_reach_sum(struct pass *pass, struct reach_sum *sum)
{
    uint64_t *words[] = {&sum->first, &sum->last, &sum->n_steps, &sum->n_forward, &sum->n_loads, &sum->n_stores};
    uint64_t n_bins = 0, n_blocks = 0;
    pass_32(pass, &sum->shift, 63, "width of bins");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        pass_64(pass, words[i], "reach");
    for (size_t i = 0; pass->out && i < REACH_BINS; i++)
        n_bins += sum->bins[i] != 0;
    n_bins = pass_number(pass, n_bins, REACH_BINS, "bins");
    for (uint32_t k = 0, bin = 0; k < n_bins && pass->code == 0; k++, bin++) {
        while (pass->out && !sum->bins[bin])
            bin++;
        pass_32(pass, &bin, REACH_BINS - 1, "bin");
        pass_64(pass, &sum->bins[bin], "samples in a bin");
    }
    while (pass->out && n_blocks < REACH_BLOCKS && sum->blocks[n_blocks].count)
        n_blocks++;
    n_blocks = pass_number(pass, n_blocks, REACH_BLOCKS, "blocks");
    for (size_t i = 0; i < n_blocks && pass->code == 0; i++) {
        pass_64(pass, &sum->blocks[i].address, "block");
        pass_64(pass, &sum->blocks[i].count, "samples in a block");
    }
}

static void pass_reach_row(struct pass *pass, const struct model *model, struct reach_row *row)
{
    pass_32(pass, &row->thread, model->n_threads - 1, "thread of a reach");
    pass_64(pass, &row->n_strided, "reach");
    pass_64(pass, &row->n_irregular, "reach");
    pass_reach_sum(pass, &row->sum);
    row->n_lines = pass_list(pass, &row->lines, row->n_lines, sizeof *row->lines, "lines of a reach");
    for (size_t i = 0; i < row->n_lines && pass->code == 0; i++) {
        struct reach_line *line = &row->lines[i];
        uint64_t *words[] = {&line->line, &line->read_at, &line->written_at, &line->n_stores};
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            pass_64(pass, words[k], "line of a reach");
        for (size_t k = 0; k < PATTERN_SLOTS; k++)
            pass_64(pass, &line->slots[k], "line of a reach");
    }
    struct spread *offsets = &row->offsets;
    offsets->n = pass_list(pass, &offsets->entries, offsets->n, sizeof *offsets->entries, "offsets of a reach");
    offsets->capacity = offsets->n;
    for (size_t i = 0; i < offsets->n && pass->code == 0; i++) {
        pass_64(pass, &offsets->entries[i].offset, "offset of a reach");
        pass_64(pass, &offsets->entries[i].count, "offset of a reach");
    }
}

static void pass_reaches(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    size_t n = model->n_reaches = pass_list(pass, &model->reaches, model->n_reaches, sizeof *model->reaches, "reaches");
    if (n && (!model->n_variables || !model->has_thread_list || !model->n_threads))
        pass_refuse(pass, "reaches", "there are no variables or threads");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct reach_row *row = &model->reaches[i];
        pass_next_variable(pass, model, &row->variable, &variable, "variable of a reach");
        pass_reach_row(pass, model, row);
    }
}

static void pass_field_counts(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    size_t n = model->n_field_counts =
        pass_list(pass, &model->field_counts, model->n_field_counts, sizeof *model->field_counts, "counts of fields");
    if (n && !model->n_variables)
        pass_refuse(pass, "counts of fields", "there are no variables");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct field_count *count = &model->field_counts[i];
        pass_next_variable(pass, model, &count->variable, &variable, "variable of a count of fields");
        pass_32(pass, &count->scope, model->n_scopes - 1, "scope of a count of fields");
        if (!model->variables[variable].n_fields)
            pass_refuse(pass, "counts of fields", "the variable has no fields");
        else
            pass_32(pass, &count->field, model->variables[variable].n_fields - 1, "field of a count");
        pass_64(pass, &count->n_samples, "count of a field");
    }
}

static void pass_nest_counts(struct pass *pass, struct model *model)
{
    uint32_t variable = 0;
    size_t n = model->n_nest_counts =
        pass_list(pass, &model->nest_counts, model->n_nest_counts, sizeof *model->nest_counts, "counts of nests");
    if (n && !model->n_variables)
        pass_refuse(pass, "counts of nests", "there are no variables");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct nest_count *count = &model->nest_counts[i];
        uint32_t *words[] = {&count->line, &count->end_line, &count->outer_line};
        pass_next_variable(pass, model, &count->variable, &variable, "variable of a nest");
        pass_event_index(pass, model, &count->event);
        pass_string(pass, model, &count->file, "file of a nest");
        pass_string(pass, model, &count->outer_file, "file of a nest");
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            pass_32(pass, words[k], UINT32_MAX, "line of a nest");
        pass_32(pass, &count->verdict, NEST_VERDICT_MOST, "verdict of a nest");
        pass_32(pass, &count->move, NEST_MOVE_MOST, "walk of a nest");
        pass_32(pass, &count->is_around, 1, "order of a nest");
        pass_64(pass, &count->stride_bytes, "stride of a nest");
        pass_64(pass, &count->outer_bytes, "stride of a nest");
        pass_64(pass, &count->n_samples, "count of a nest");
    }
}

static void pass_drops(struct pass *pass, struct model *model)
{
    size_t n = model->n_drops = pass_list(pass, &model->drops, model->n_drops, sizeof *model->drops, "drops");
    if (n && (!model->n_events || !model->has_thread_list || !model->n_threads))
        pass_refuse(pass, "drops", "there are no events or threads");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        struct drop_count *drop = &model->drops[i];
        char *name = pass->out ? (char *)(uintptr_t)fate_row((int)drop->fate)->name : NULL;
        pass_32(pass, &drop->thread, model->n_threads - 1, "thread of drops");
        pass_32(pass, &drop->event, model->n_events - 1, "event of drops");
        pass_text(pass, &name, "fate of drops");
        pass_64(pass, &drop->n_samples, "drops");
        if (pass->out)
            continue;
        drop->fate = model_drop_named(name);
        if (drop->fate == FATE_MAX) /* as above: what this version does not know */
            *drop = (struct drop_count){.fate = FATE_DROP_REENTERED};
        free(name);
    }
}

static bool has_distances(const struct model *model)
{
    for (size_t i = 0; i < model->n_machines; i++)
        if (model->machines[i].n_distances > 1)
            return true;
    return false;
}

static bool has_spared(const struct model *model)
{
    for (size_t i = 0; i < model->n_events; i++)
        if (model->events[i].n_spared)
            return true;
    return false;
}

/* One row for each event. */
static void pass_spared(struct pass *pass, struct model *model)
{
    uint64_t n = pass_number(pass, model->n_events, model->n_events, "spared periods");
    if (pass->code == 0 && n != model->n_events)
        pass_refuse(pass, "spared periods", "there is not one row for each event");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        pass_64(pass, &model->events[i].n_spared, "spared periods");
        pass_64(pass, &model->events[i].sample_cost_ns, "cost of a sample");
    }
}

static void pass_longer(struct pass *pass, struct model *model)
{
    for (size_t v = 0; v < model->n_variables && pass->code == 0; v++)
        for (size_t i = 0; i < model->variables[v].n_causes && pass->code == 0; i++)
            pass_double(pass, &model->variables[v].causes[i].sum.longer, "longer measurement");
    model->n_longer = model->n_longer ? model->n_longer : 1;
}

static bool has_thread_names(const struct model *model)
{
    for (size_t i = 0; model->has_thread_list && i < model->n_threads; i++)
        if (model->threads[i].name)
            return true;
    return false;
}

/* One row for each thread. */
static void pass_thread_names(struct pass *pass, struct model *model)
{
    uint64_t n = pass_number(pass, model->n_threads, model->n_threads, "names of threads");
    if (pass->code == 0 && (n != model->n_threads || !model->has_thread_list))
        pass_refuse(pass, "names of threads", "there is not one row for each thread");
    for (size_t i = 0; i < n && pass->code == 0; i++)
        pass_string(pass, model, &model->threads[i].name, "name of a thread");
}

/* Beside the head, which older readers read as it was. */
static void pass_unmeasured(struct pass *pass, struct model *model)
{
    pass_64(pass, &model->unmeasured_ns, "CPU time that was not measured");
}

static void pass_delay(struct pass *pass, struct model *model)
{
    pass_64(pass, &model->delay_ns, "time that threads waited for a CPU");
}

static void pass_page_faults(struct pass *pass, struct model *model)
{
    pass_64(pass, &model->n_page_faults, "page faults");
}

static const struct table tables[] = {
    {"machines", offsetof(struct model, n_machines), NULL, pass_machines},
    {"distances", offsetof(struct model, n_machines), has_distances, pass_distances},
    {"cpu_counts", offsetof(struct model, n_cpu_counts), NULL, pass_cpu_counts},
    {"touches", offsetof(struct model, n_touches), NULL, pass_touches},
    {"meetings", offsetof(struct model, n_meetings), NULL, pass_meetings},
    {"reaches", offsetof(struct model, n_reaches), NULL, pass_reaches},
    {"home_counts", offsetof(struct model, n_home_counts), NULL, pass_home_counts},
    {"pages", offsetof(struct model, n_pages), NULL, pass_pages},
    {"field_counts", offsetof(struct model, n_field_counts), NULL, pass_field_counts},
    {"nests", offsetof(struct model, n_nest_counts), NULL, pass_nest_counts},
    {"drops", offsetof(struct model, n_drops), NULL, pass_drops},
    {"spared", offsetof(struct model, n_events), has_spared, pass_spared},
    {"longer", offsetof(struct model, n_longer), NULL, pass_longer},
    {"unmeasured", offsetof(struct model, unmeasured_ns), NULL, pass_unmeasured},
    {"delay", offsetof(struct model, delay_ns), NULL, pass_delay},
    {"page_faults", offsetof(struct model, n_page_faults), NULL, pass_page_faults},
    {"thread_names", offsetof(struct model, n_threads), has_thread_names, pass_thread_names},
};
#define N_TABLES (sizeof tables / sizeof *tables)

static bool is_there(const struct table *table, const struct model *model)
{
    size_t n;
    memcpy(&n, (const char *)model + table->n_at, sizeof n);
    return n > 0 && (!table->is_there || table->is_there(model));
}

static void put_tables(struct pass *pass, struct model *model)
{
    uint64_t n = 0;
    for (size_t i = 0; i < N_TABLES; i++)
        n += is_there(&tables[i], model);
    pass_put(pass->out, n);
    for (size_t i = 0; i < N_TABLES && pass->code == 0; i++) {
        struct buf bytes = {0};
        struct pass inner = *pass;
        char *name = (char *)(uintptr_t)tables[i].name;
        if (!is_there(&tables[i], model))
            continue;
        inner.out = &bytes;
        tables[i].pass(&inner, model);
        pass->code = inner.code;
        pass_text(pass, &name, "table");
        pass_put(pass->out, bytes.len_bytes);
        buf_append(pass->out, bytes.data, bytes.len_bytes);
        pass->out->failed |= bytes.failed;
        buf_fini(&bytes);
    }
}

/* Reads one table, or skips it if this version does not know it; seen [N_TABLES]: it was there before. */
static void take_table(struct pass *pass, struct model *model, bool *seen)
{
    char *name = NULL;
    pass_text(pass, &name, "table");
    uint64_t len = pass_take(pass, "length of a table");
    if (pass->code == 0 && len > pass->len - pass->at)
        pass_refuse(pass, "length of a table", "the table is longer than the file");
    size_t end = pass->at + (size_t)len, len_file = pass->len;
    for (size_t i = 0; i < N_TABLES && name && pass->code == 0; i++) {
        if (strcmp(tables[i].name, name) != 0)
            continue;
        if (seen[i])
            pass_refuse(pass, name, "the table is there twice");
        seen[i] = true;
        pass->len = end;
        if (pass->code == 0)
            tables[i].pass(pass, model);
        if (pass->code == 0 && pass->at != end)
            pass_refuse(pass, name, "the table goes on");
    }
    pass->len = len_file;
    pass->at = pass->code ? pass->at : end;
    free(name);
}

void pass_tables(struct pass *pass, struct model *model)
{
    bool seen[N_TABLES] = {false};
    if (pass->out) {
        put_tables(pass, model);
        return;
    }
    uint64_t n = pass_take(pass, "tables");
    for (uint64_t i = 0; i < n && pass->code == 0; i++)
        take_table(pass, model, seen);
}
