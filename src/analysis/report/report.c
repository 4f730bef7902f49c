/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the table of variables: see report.h. */
#include "analysis/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/causes.h"
#include "base/bytes.h"
#include "base/path.h"
#include "base/search.h"
#include "fmt/hpcrun.h"

#define NOTHING 1e-9   /* of a sum of values */
#define FREED_PART 0.9 /* of the blocks */
#define CONSTRUCTS_NAMED 3

static uint32_t function_of(const struct model *model, uint32_t scope)
{
    while (scope && model->scopes[scope].kind != SCOPE_PROC && model->scopes[scope].kind != SCOPE_INLINED)
        scope = model->scopes[scope].parent;
    return model->scopes[scope].name;
}

/* The innermost loop around a scope, in the function that was called. */
static struct loop_lines loop_of(const struct model *model, uint32_t scope)
{
    while (scope && model->scopes[scope].kind != SCOPE_PROC && model->scopes[scope].kind != SCOPE_LOOP)
        scope = model->scopes[scope].parent;
    const struct scope *found = &model->scopes[scope];
    bool is_loop = scope && found->kind == SCOPE_LOOP;
    return is_loop ? (struct loop_lines){found->file, found->line, found->end_line} : (struct loop_lines){0};
}

static uint64_t hash_line(const void *item)
{
    const struct report_line *line = item;
    uint64_t hash = bytes_mix(bytes_mix(0, line->function), line->file);
    return bytes_mix(bytes_mix(bytes_mix(hash, line->line), line->loop.file), line->loop.first);
}

static bool is_same_line(const void *a, const void *b)
{
    const struct report_line *x = a, *y = b;
    return x->function == y->function && x->file == y->file && x->line == y->line && x->loop.file == y->loop.file &&
           x->loop.first == y->loop.first;
}

static const struct slots_kind line_kind = {sizeof(struct report_line), hash_line, is_same_line};

/* The row's line equal to these, found through keys, added when new; NULL when out of memory. */
static struct report_line *find_line(struct report_row *row, struct slots *keys, uint32_t function,
                                     const struct scope *scope, struct loop_lines loop)
{
    const struct report_line like = {.function = function, .file = scope->file, .line = scope->line, .loop = loop};
    size_t index = slots_put(keys, &line_kind, &row->lines, &row->n_lines, &row->cap_lines, &like);
    return index == SLOTS_NONE ? NULL : &row->lines[index];
}

static int compare_lines(const void *a, const void *b)
{
    const struct report_line *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* The label of what samples of a statement waited for. */
static int64_t label_of(const struct report *report, const struct variable *variable, uint32_t scope)
{
    return report->waits && waits_are_possible(report->waits, variable) ? waits_label(report->waits, variable, scope)
                                                                        : REPORT_NOT_WAITING;
}

int64_t report_wait(const struct report *report, const struct variable *variable, uint32_t scope)
{
    int64_t label = label_of(report, variable, scope);
    return label == REPORT_NOT_WAITING ? label : waits_kind(report->waits, label);
}

/* Where a statement without a line was called from Python code: what is around it there, without a line of its own, is
 * a library of Python's such as numpy, of whose functions the program's author knows nothing. Else the statement. */
static uint32_t python_caller_of(const struct model *model, uint32_t scope)
{
    uint32_t at = scope, function;
    while (at && (model->scopes[at].line == 0 || model->scopes[at].kind == SCOPE_PROC))
        at = model->scopes[at].parent;
    for (function = at; function && model->scopes[function].kind != SCOPE_PROC;)
        function = model->scopes[function].parent;
    return at && strcmp(model_text(model, model->scopes[function].module), PYTHON_MODULE) == 0 ? at : scope;
}

/* Adds a statement to the row's lines. What reads or writes a file is the program's line that called the C library.
 * False when out of memory. */
static bool add_statement(const struct report *report, uint32_t scope, struct slots *keys, struct report_row *row)
{
    const struct model *model = report->model;
    bool is_io = report->waits && metrics_is_io(model->metrics[report->metric].name);
    struct waits_caller caller = is_io ? waits_caller_of(report->waits, scope) : (struct waits_caller){0};
    uint32_t at = caller.line ? (uint32_t)(caller.line - model->scopes) : python_caller_of(model, scope);
    struct report_line *line = find_line(row, keys, function_of(model, at), &model->scopes[at], loop_of(model, at));
    if (line)
        line->value += model->own[scope * model->n_metrics + report->metric];
    return line != NULL;
}

/* Adds the statements of a variable that did not wait to the row's lines. */
static bool collect_variable(struct report *report, const struct variable *variable, struct slots *keys,
                             struct report_row *row)
{
    const struct model *model = report->model;
    bool ok = true;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; ok && i < end; i++) {
            double value = model->own[i * model->n_metrics + report->metric];
            if (value != 0 && report_wait(report, variable, i) == REPORT_NOT_WAITING)
                ok = add_statement(report, i, keys, row);
        }
    }
    return ok;
}

static int collect_lines(struct report *report, struct report_row *row, int64_t wait, struct error *err)
{
    struct slots keys = {0};
    bool ok = true;
    if (row->variable)
        ok = collect_variable(report, row->variable, &keys, row);
    size_t n;
    const struct report_aside *asides = report_asides(report, wait, &n);
    for (size_t i = 0; ok && i < n; i++)
        ok = add_statement(report, asides[i].scope, &keys, row);
    slots_fini(&keys);
    if (row->n_lines)
        qsort(row->lines, row->n_lines, sizeof *row->lines, compare_lines);
    return ok ? 0 : error_memory(err);
}

/* What the row says about its variable, or about the part of it. */
static bool describe_row(const struct report *report, struct report_row *row)
{
    const struct model *model = report->model;
    const struct variable *variable = row->variable;
    const struct variable_part *part = row->part;
    row->class = model_class_name(variable ? variable->class : CLASS_UNATTRIBUTED);
    row->name = "<not data-centric>";
    if (variable) {
        row->name = model_text(model, part ? part->name : variable->name);
        row->size_bytes = part ? part->size_bytes : variable->size_bytes;
        row->n_blocks = part ? part->size_bytes > 0 : variable->n_blocks;
        row->site =
            report_site(report, variable, part ? part->file : variable->file, part ? part->line : variable->line);
        if (variable->places && model->n_numa_nodes && !part)
            row->places = &variable->places[report->metric * model->n_numa_nodes];
    } else {
        row->site = strdup("");
    }
    return row->site != NULL;
}

/* The event whose samples a metric is made of: the metric's own, or that of the one it is a part of; UINT32_MAX: none.
 */
static uint32_t event_of_metric(const struct model *model, size_t metric)
{
    for (uint32_t e = 0; e < model->n_events; e++) {
        int64_t whole = model_metric(model, model->events[e].metric);
        if (whole == (int64_t)metric)
            return e;
        for (int k = 0; whole >= 0 && k < CAUSE_PARTS; k++)
            if (cause_metrics_part(model, (size_t)whole, (enum cause_part)k) == (int64_t)metric)
                return e;
    }
    return UINT32_MAX;
}

double report_part_fraction(const struct report *report, const struct report_row *row, size_t metric)
{
    const struct model *model = report->model;
    bool is_first = (int64_t)metric == model_first_metric(model);
    uint32_t event = row->part && !is_first ? event_of_metric(model, metric) : UINT32_MAX;
    double fraction = event == UINT32_MAX
                          ? -1
                          : variable_part_fraction(row->variable, (uint32_t)(row->part - row->variable->parts), event);
    return !row->part ? 1 : fraction >= 0 ? fraction : row->part->fraction;
}

double report_value(const struct report *report, const struct report_row *row, size_t metric)
{
    double value = 0;
    if (metric == report->metric)
        return row->value;
    for (size_t i = 0; row->variable && i < row->variable->n_scopes; i++)
        value += model_value(report->model, row->variable->scopes[i], metric);
    return row->fraction * value * report_part_fraction(report, row, metric);
}

double report_samples(const struct report *report, const struct report_row *row, size_t metric)
{
    if (!row->variable || !row->variable->samples || !report->model->has_samples ||
        report->model->metrics[metric].hidden)
        return model_samples(report->model, metric, report_value(report, row, metric));
    double samples = row->fraction * (double)row->variable->samples[metric];
    if (samples <= 0) /* not counted: the metric is a part of another one */
        return model_samples(report->model, metric, report_value(report, row, metric));
    return samples * report_part_fraction(report, row, metric);
}

/* The variable of the model that is one of the report alone. */
static uint32_t index_in_model(const struct report *report, const struct variable *variable)
{
    uint32_t i = 0;
    while (i < report->model->n_variables && report->variable_of[i] != (uint32_t)(variable - report->variables))
        i++;
    return i;
}

/* The samples of an event that are counted in the scope of counts[first], on all parts and on one; returns where those
 * of the next scope begin. */
static size_t count_scope(const struct model *model, size_t first, uint32_t event, uint32_t part, double *all,
                          double *here)
{
    const struct field_count *counts = model->field_counts;
    const struct variable *variable = &model->variables[counts[first].variable];
    size_t end = model_counts_end(model, first);
    *all = *here = 0;
    for (size_t i = first; i < end; i++) {
        const struct variable_field *field = &variable->fields[counts[i].field];
        if (field->event != event || !variable_shares_field(variable, field))
            continue;
        *all += (double)counts[i].n_samples;
        *here += field->part == part ? (double)counts[i].n_samples : 0;
    }
    return end;
}

/* The lines of a part in a metric that is not the first: as the samples of its event are counted in each scope. */
static int collect_counted_lines(const struct report *report, struct report_row *row, uint32_t event, struct error *err)
{
    const struct model *model = report->model;
    uint32_t variable = index_in_model(report, row->variable), part = (uint32_t)(row->part - row->variable->parts);
    size_t i =
        search_below(model->field_counts, model->n_field_counts, SEARCH_KEY(struct field_count, variable), variable);
    struct slots keys = {0};
    double sum = 0, all, here;
    bool ok = true;
    while (ok && i < model->n_field_counts && model->field_counts[i].variable == variable) {
        uint32_t scope = model->field_counts[i].scope;
        double value = model->own[scope * model->n_metrics + report->metric];
        i = count_scope(model, i, event, part, &all, &here);
        if (value == 0 || here <= 0 || report_wait(report, row->variable, scope) != REPORT_NOT_WAITING)
            continue;
        struct report_line *line =
            find_line(row, &keys, function_of(model, scope), &model->scopes[scope], loop_of(model, scope));
        ok = line != NULL;
        if (line)
            line->value += value * here / all;
        sum += value * here / all;
    }
    slots_fini(&keys);
    for (size_t k = 0; k < row->n_lines && sum > 0; k++)
        row->lines[k].value *= row->value / sum;
    if (row->n_lines)
        qsort(row->lines, row->n_lines, sizeof *row->lines, compare_lines);
    return ok ? 0 : error_memory(err);
}

/* The lines of a part, each by its share of the part's samples. */
static int collect_part_lines(struct report_row *row, struct error *err)
{
    const struct variable *variable = row->variable;
    uint32_t part = (uint32_t)(row->part - variable->parts);
    double total = 0;
    for (size_t i = 0; i < variable->n_part_lines; i++)
        total += variable->part_lines[i].part == part ? (double)variable->part_lines[i].samples : 0;
    for (size_t i = 0; i < variable->n_part_lines; i++) {
        const struct part_line *line = &variable->part_lines[i];
        if (line->part != part)
            continue;
        if (!vec_reserve(&row->lines, &row->cap_lines, row->n_lines + 1, sizeof *row->lines))
            return error_memory(err);
        row->lines[row->n_lines++] = (struct report_line){.function = line->function,
                                                          .file = line->file,
                                                          .line = line->line,
                                                          .loop = line->loop,
                                                          .value = row->value * (double)line->samples / total};
    }
    if (row->n_lines)
        qsort(row->lines, row->n_lines, sizeof *row->lines, compare_lines);
    return 0;
}

/* Appends a row like another; NULL when out of memory. */
static struct report_row *new_row(struct report *report, const struct report_row *like)
{
    if (!vec_reserve(&report->rows, &report->cap_rows, report->n_rows + 1, sizeof *report->rows))
        return NULL;
    struct report_row *row = &report->rows[report->n_rows++];
    *row = *like;
    row->share = report->total_value > 0 ? 100 * row->value / report->total_value : 0;
    return row;
}

static int add_row(struct report *report, const struct variable *variable, const struct variable_part *part,
                   double value, double fraction, struct error *err)
{
    const struct report_row like = {
        .variable = variable, .part = part, .value = value, .fraction = fraction, .wait = REPORT_NOT_WAITING};
    struct report_row *row = new_row(report, &like);
    if (!row)
        return error_memory(err);
    row->n_paths = variable ? variable->n_scopes : 0;
    row->samples = report_samples(report, row, report->metric);
    report->total_samples += row->samples;
    if (!describe_row(report, row))
        return error_memory(err);
    if (part && (int64_t)report->metric == model_first_metric(report->model))
        return collect_part_lines(row, err);
    if (part)
        return collect_counted_lines(report, row, event_of_metric(report->model, report->metric), err);
    return variable ? collect_lines(report, row, REPORT_NOT_WAITING, err) : 0;
}

/* Adds a row, or one for each part, where the parts of the metric's own samples are known. */
static int add_variable(struct report *report, const struct variable *variable, double value, double fraction,
                        struct error *err)
{
    const struct model *model = report->model;
    uint32_t event = event_of_metric(model, report->metric);
    bool is_first = (int64_t)report->metric == model_first_metric(model), is_split = variable->n_parts > 0;
    if (is_split && !is_first)
        is_split = event != UINT32_MAX && variable_part_fraction(variable, 0, event) >= 0;
    int code = is_split ? 0 : add_row(report, variable, NULL, value, fraction, err);
    for (size_t i = 0; is_split && code == 0 && i < variable->n_parts; i++) {
        const struct report_row like = {.variable = variable, .part = &variable->parts[i]};
        code = add_row(report, variable, &variable->parts[i],
                       value * report_part_fraction(report, &like, report->metric), fraction, err);
    }
    return code;
}

/* Adds a row for samples that are in no variable. */
static int add_other(struct report *report, const struct report_row *like, const char *site, int64_t wait,
                     struct error *err)
{
    struct report_row *row = new_row(report, like);
    if (!row || !(row->site = strdup(site)))
        return error_memory(err);
    row->wait = wait;
    report->total_samples += row->samples;
    return wait == REPORT_NOT_WAITING ? 0 : collect_lines(report, row, wait, err);
}

/* Sets aside the samples that waited on a variable, and returns their value; -1 when out of memory. */
static double take_waits(struct report *report, const struct variable *variable)
{
    const struct model *model = report->model;
    double sum = 0;
    bool is_call = waits_is_call(report->waits, variable);
    if (!waits_are_possible(report->waits, variable))
        return 0;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + report->metric];
            int64_t wait = value == 0 ? REPORT_NOT_WAITING : label_of(report, variable, i);
            size_t n = report->waits->labels.n_strings;
            if (wait == REPORT_NOT_WAITING)
                continue;
            if (!vec_reserve(&report->waiting, &report->cap_waiting, n, sizeof *report->waiting))
                return -1;
            for (; report->n_waiting < n; report->n_waiting++)
                report->waiting[report->n_waiting] = 0;
            if (!vec_reserve(&report->asides, &report->cap_asides, report->n_asides + 1, sizeof *report->asides))
                return -1;
            report->asides[report->n_asides++] = (struct report_aside){wait, i};
            report->waiting[wait] += value;
            report->calls_waiting += is_call && *report->waits->labels.strings[wait] != '<' ? value : 0;
            sum += value;
        }
    }
    return sum;
}

static int compare_constructs(const void *a, const void *b)
{
    const struct report_construct *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* What a row waited for, by the labels of its kind. *library: the library of them all, else what they have in common.
 * False when out of memory. */
static bool add_constructs(const struct report *report, int64_t kind, struct report_row *row, const char **library,
                           size_t *len)
{
    char *const *labels = report->waits->labels.strings;
    row->constructs = calloc(report->n_waiting, sizeof *row->constructs);
    *library = labels[kind];
    *len = strcspn(labels[kind], ":");
    for (size_t i = 0; row->constructs && i < report->n_waiting; i++) {
        if (waits_kind(report->waits, (int64_t)i) != kind)
            continue;
        row->constructs[row->n_constructs++] = (struct report_construct){labels[i], report->waiting[i]};
        if (strncmp(labels[i], *library, *len + 1) != 0) {
            *library = waits_family(labels[i]);
            *len = strlen(*library);
        }
    }
    for (size_t i = 0; i < row->n_constructs; i++) {
        struct report_construct *construct = &row->constructs[i];
        bool is_told = strncmp(construct->name, *library, *len) == 0 && construct->name[*len] == ':';
        construct->name += is_told ? *len + 2 : 0;
    }
    if (row->n_constructs)
        qsort(row->constructs, row->n_constructs, sizeof *row->constructs, compare_constructs);
    return row->constructs != NULL;
}

/* Adds the row of a kind of waiting: "libgomp: barrier, end of parallel". */
static int add_kind(struct report *report, int64_t kind, struct report_row *like, struct error *err)
{
    const char *library = NULL;
    size_t len = 0;
    struct buf site = {0};
    like->value = 0;
    if (!add_constructs(report, kind, like, &library, &len)) {
        free(like->constructs);
        return error_memory(err);
    }
    buf_printf(&site, "%.*s: ", (int)len, library);
    for (size_t i = 0; i < like->n_constructs; i++) {
        like->value += like->constructs[i].value;
        if (i < CONSTRUCTS_NAMED)
            buf_printf(&site, "%s%s", i ? ", " : "", like->constructs[i].name);
    }
    if (like->n_constructs > CONSTRUCTS_NAMED)
        buf_printf(&site, " and %zu more", like->n_constructs - CONSTRUCTS_NAMED);
    like->samples = model_samples(report->model, report->metric, like->value);
    size_t n = report->n_rows;
    int code = site.failed ? error_memory(err) : add_other(report, like, site.data, kind, err);
    if (report->n_rows == n)
        free(like->constructs);
    buf_fini(&site);
    return code;
}

static int compare_asides(const void *a, const void *b)
{
    const struct report_aside *x = a, *y = b;
    if (x->wait != y->wait)
        return x->wait < y->wait ? -1 : 1;
    return x->scope < y->scope ? -1 : x->scope > y->scope;
}

/* Once all labels are known. */
static void sort_asides(struct report *report)
{
    for (size_t i = 0; i < report->n_asides; i++)
        report->asides[i].wait = waits_kind(report->waits, report->asides[i].wait);
    if (report->n_asides)
        qsort(report->asides, report->n_asides, sizeof *report->asides, compare_asides);
}

/* Adds rows for what was set aside: one for each kind of waiting, one for each line that called the allocator, and one
 * for the profiler. */
static int add_waits(struct report *report, struct error *err)
{
    int code = 0;
    sort_asides(report);
    for (size_t i = 0; code == 0 && i < report->n_waiting; i++) {
        const char *label = report->waits->labels.strings[i];
        bool is_profiler = strcmp(label, WAITS_PROFILER) == 0;
        bool is_allocator = strncmp(label, WAITS_ALLOCATOR, strlen(WAITS_ALLOCATOR)) == 0;
        bool is_waiting = !is_profiler && !is_allocator;
        struct report_row like = {.name = is_profiler    ? WAITS_PROFILER
                                          : is_allocator ? ALLOCATOR_ROW
                                                         : WAITING_ROW,
                                  .class = model_class_name(is_waiting ? CLASS_WAITING : CLASS_UNKNOWN),
                                  .is_waiting = is_waiting,
                                  .value = report->waiting[i],
                                  .samples = model_samples(report->model, report->metric, report->waiting[i]),
                                  .fraction = 1};
        if (is_waiting && waits_kind(report->waits, (int64_t)i) == (int64_t)i)
            code = add_kind(report, (int64_t)i, &like, err);
        else if (!is_waiting && report->waiting[i] > 0)
            code = add_other(report, &like, is_profiler ? "" : label + strlen(WAITS_ALLOCATOR), (int64_t)i, err);
    }
    return code;
}

/* The samples of the metric's own event that were taken and dropped. */
static uint64_t count_dropped(const struct event_sum *event)
{
    uint64_t n = 0;
    for (int fate = FATE_DROP_REENTERED; event && fate < FATE_TAKEN_MAX; fate++)
        n += event->fates[fate];
    return n;
}

/* The mean value of one sample in the metric. */
static double value_of_sample(const struct report *report, double recorded_value)
{
    const struct event_sum *event = report->event;
    uint64_t n_recorded = event->taken - count_dropped(event);
    return n_recorded && recorded_value > 0 ? recorded_value / (double)n_recorded : event->scale;
}

static int add_drops(struct report *report, double worth, struct error *err)
{
    static const char *const names[FATE_TAKEN_MAX] = {
        [FATE_DROP_REENTERED] = "<dropped: reentered>",   [FATE_DROP_NO_THREAD] = "<dropped: no thread>",
        [FATE_DROP_ARENA_FULL] = "<dropped: arena full>", [FATE_DROP_NO_RECIPE] = "<dropped: no recipe>",
        [FATE_DROP_RAW_FULL] = "<dropped: raw full>",     [FATE_DROP_STOPPED] = "<dropped: stopped>",
        [FATE_DROP_FORKED] = "<dropped: forked>",         [FATE_DROP_BAD_RECORD] = "<dropped: bad record>",
        [FATE_DROP_MAX_SIZE] = "<dropped: max size>",
    };
    int code = 0;
    for (int fate = FATE_DROP_REENTERED; code == 0 && fate < FATE_TAKEN_MAX; fate++) {
        uint64_t n = report->event ? report->event->fates[fate] : 0;
        struct report_row like = {.name = names[fate] ? names[fate] : "<dropped>",
                                  .class = model_class_name(CLASS_DROPPED),
                                  .value = worth * (double)n,
                                  .samples = (double)n,
                                  .fate = fate,
                                  .fraction = 1};
        if (n)
            code = add_other(report, &like, fate_row(fate)->sentence, REPORT_NOT_WAITING, err);
    }
    return code;
}

/* Adds the samples by NUMA node of one variable to those of another. */
static bool merge_places(const struct model *model, struct variable *into, const struct variable *from)
{
    size_t n = model->n_metrics * model->n_numa_nodes;
    if (!from->places)
        return true;
    if (!into->places)
        into->places = calloc(n, sizeof *into->places);
    for (size_t i = 0; into->places && i < n; i++)
        into->places[i] += from->places[i];
    return into->places != NULL;
}

static bool merge_samples(const struct model *model, struct variable *into, const struct variable *from)
{
    if (!from->samples)
        return true;
    if (!into->samples)
        into->samples = calloc(model->n_metrics, sizeof *into->samples);
    for (size_t i = 0; into->samples && i < model->n_metrics; i++)
        into->samples[i] += from->samples[i];
    return into->samples != NULL;
}

static bool merge_variable(const struct model *model, struct variable *into, const struct variable *from)
{
    if (!vec_reserve(&into->scopes, &into->cap_scopes, into->n_scopes + from->n_scopes, sizeof *into->scopes))
        return false;
    memcpy(into->scopes + into->n_scopes, from->scopes, from->n_scopes * sizeof *from->scopes);
    into->n_scopes += from->n_scopes;
    into->size_bytes += from->size_bytes;
    into->n_blocks += from->n_blocks;
    into->size_freed_bytes += from->size_freed_bytes;
    into->n_blocks_freed += from->n_blocks_freed;
    into->n_inexact += from->n_inexact;
    into->n_blocks_marked += from->n_blocks_marked;
    into->size_marked_bytes += from->size_marked_bytes;
    if (from->max_block_bytes > into->max_block_bytes)
        into->max_block_bytes = from->max_block_bytes;
    for (size_t i = 0; i < from->n_causes; i++)
        if (!causes_add_sum(into, from->causes[i].event, &from->causes[i].sum))
            return false;
    for (size_t i = 0; i < from->n_walks; i++)
        if (!causes_add_walk(into, &from->walks[i]))
            return false;
    return merge_places(model, into, from) && merge_samples(model, into, from) &&
           metrics_merge_latencies(into, from->latencies, from->n_latencies) && report_merge_fields(into, from);
}

/* Tells blocks of one function apart by their size, if their lines are not known: 1 + the binary logarithm of the mean
 * size, rounded down. 0: the line or the place is known, or there are no blocks. */
static unsigned size_class(const struct variable *variable, const char *name)
{
    uint64_t place;
    if (variable->line || !variable->n_blocks || report_place(name, &place))
        return 0;
    unsigned class = 1;
    for (double mean = (double)variable->size_bytes / (double)variable->n_blocks; mean >= 2; mean /= 2)
        class ++;
    return class;
}

/* What variables of the model have in common that are one of the report. */
struct merged {
    uint64_t words[5];
};

static uint64_t hash_merged(const void *item)
{
    const struct merged *merged = item;
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof merged->words / sizeof *merged->words; i++)
        hash = bytes_mix(hash, merged->words[i]);
    return hash;
}

static bool is_same_merged(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct merged)) == 0;
}

static const struct slots_kind merged_kind = {sizeof(struct merged), hash_merged, is_same_merged};

struct merging {
    struct slots slots;
    struct merged *items; /* [n] of each variable of the report */
    size_t n, capacity;
};

/* The report's variable for one of the model: one with the same site, or a new one. */
static struct variable *find_variable(struct report *report, struct merging *merging, const struct variable *from,
                                      size_t index, bool with_paths)
{
    bool is_heap = model_is_block(from);
    unsigned class = is_heap ? size_class(from, model_text(report->model, from->name)) : 0;
    const struct merged like = {{(uint64_t)from->class << 32 | class, (uint64_t)from->name << 32 | from->function,
                                 (uint64_t)from->file << 32 | from->line, from->module,
                                 is_heap && !with_paths ? 0 : index + 1}};
    size_t known = slots_put(&merging->slots, &merged_kind, &merging->items, &merging->n, &merging->capacity, &like);
    if (known == SLOTS_NONE || !vec_reserve(&report->variables, &report->cap_variables, known + 1, sizeof *from))
        return NULL;
    struct variable *into = &report->variables[known];
    if (known == report->n_variables) {
        report->n_variables++;
        *into = (struct variable){.name = from->name,
                                  .function = from->function,
                                  .file = from->file,
                                  .line = from->line,
                                  .module = from->module,
                                  .class = from->class,
                                  .parts = from->parts,
                                  .n_parts = from->n_parts,
                                  .part_lines = from->part_lines,
                                  .n_part_lines = from->n_part_lines};
    }
    return into;
}

struct path_order {
    const struct model *model;
    size_t metric;
    int64_t size_metric; /* -1: there is none */
};

static int compare_paths(const void *a, const void *b, void *context)
{
    const struct path_order *order = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double difference = model_value(order->model, x, order->metric) - model_value(order->model, y, order->metric);
    if (difference == 0 && order->size_metric >= 0)
        difference = model_value(order->model, x, (size_t)order->size_metric) -
                     model_value(order->model, y, (size_t)order->size_metric);
    if (difference != 0)
        return difference > 0 ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Puts the allocation path with the highest value first; where there are no samples, the one with the most bytes. */
static void order_paths(const struct report *report, const struct variable *variable)
{
    struct path_order order = {report->model, report->metric, model_metric(report->model, SIZE_NAME)};
    if (variable->n_scopes > 1)
        qsort_r(variable->scopes, variable->n_scopes, sizeof *variable->scopes, compare_paths, &order);
}

/* Fills the report's variables from the model's. */
static int merge_variables(struct report *report, bool with_paths, struct error *err)
{
    struct merging merging = {0};
    report->variable_of = calloc(report->model->n_variables + 1, sizeof *report->variable_of);
    bool ok = report->variable_of != NULL;
    for (size_t i = 0; ok && i < report->model->n_variables; i++) {
        const struct variable *from = &report->model->variables[i];
        struct variable *into = find_variable(report, &merging, from, i, with_paths);
        ok = into && merge_variable(report->model, into, from);
        report->variable_of[i] = into ? (uint32_t)(into - report->variables) : 0;
    }
    slots_fini(&merging.slots);
    free(merging.items);
    for (size_t i = 0; ok && i < report->n_variables; i++) {
        report_place_accesses(report, &report->variables[i]);
        order_paths(report, &report->variables[i]);
    }
    ok = ok && report_rank_calls(report);
    return ok ? 0 : error_memory(err);
}

static double variable_value(const struct model *model, const struct variable *variable, size_t metric)
{
    double value = 0;
    for (size_t i = 0; i < variable->n_scopes; i++)
        value += model_value(model, variable->scopes[i], metric);
    return value;
}

/* Whether the hardware counted accesses to the variable. A report about latency keeps such a variable even if no access
 * has a latency: on many machines stores have none. */
static bool has_accesses(const struct report *report, const struct variable *variable)
{
    const struct model *model = report->model;
    if (!metrics_is_access(model->metrics[report->metric].name))
        return false;
    for (size_t i = 0; i < model->n_events; i++) {
        int64_t metric = model->events[i].has_data_source ? model_metric(model, model->events[i].metric) : -1;
        if (metric >= 0 && variable_value(model, variable, (size_t)metric) != 0)
            return true;
    }
    return false;
}

static int compare_rows(const void *a, const void *b)
{
    const struct report_row *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->site, y->site);
}

/* Shares of samples whose address was found, and whose variable is known. Hardware that samples all operations takes
 * some that access no memory: those are not failures. */
static void set_quality(struct report *report)
{
    double lost = 0, unknown = 0;
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct variable *variable = report->rows[i].variable;
        if (!variable || variable->class == CLASS_WAITING || variable->class == CLASS_UNATTRIBUTED)
            lost += report->rows[i].share;
        else if (variable->class == CLASS_UNKNOWN)
            unknown += report->rows[i].share;
    }
    report->recovered = 100 - lost;
    report->named = 100 - lost - unknown;
    if (report->event && report->event->taken) {
        const uint64_t *fates = report->event->fates;
        double taken = (double)(report->event->taken - fates[FATE_NO_ADDRESS_NO_ACCESS]);
        report->no_access = 100 - 100 * taken / (double)report->event->taken;
        if (taken <= 0)
            return;
        report->recovered = 100 * (double)(fates[FATE_NAMED] + fates[FATE_UNKNOWN_DATA]) / taken;
        report->named = 100 * (double)fates[FATE_NAMED] / taken;
    }
}

/* Adds a row for the samples on a variable that did not wait. Blocks whose samples were all set aside, as the
 * allocator's own work, are there all the same. *covered grows by the variable's whole value. */
static int add_not_waiting(struct report *report, const struct variable *variable, bool with_unused, double *covered,
                           struct error *err)
{
    double value = variable_value(report->model, variable, report->metric), waited = take_waits(report, variable);
    if (waited < 0)
        return error_memory(err);
    report->calls += waits_is_call(report->waits, variable) ? value : 0;
    double worked = value - waited > value * NOTHING ? value - waited : 0;
    bool has_blocks = model_is_block(variable) && variable->n_blocks;
    bool is_unused = with_unused && (waited == 0 || has_blocks);
    bool is_wanted = worked != 0 || is_unused || has_accesses(report, variable);
    *covered += value;
    return is_wanted ? add_variable(report, variable, worked, value > 0 ? worked / value : 1, err) : 0;
}

/* All rows: variables, waiting, what is in no variable, dropped samples. */
static int add_rows(struct report *report, bool with_unused, struct error *err)
{
    const struct model *model = report->model;
    uint32_t root = model_data_root(model);
    double data = root ? model_value(model, root, report->metric) : 0, covered = 0, worth = 0;
    double recorded = model_value(model, 0, report->metric);
    int code = 0;
    if (data > recorded)
        recorded = data;
    if (report->event)
        worth = value_of_sample(report, recorded);
    report->total_value = recorded + worth * (double)count_dropped(report->event);
    for (size_t i = 0; code == 0 && i < report->n_variables; i++)
        code = add_not_waiting(report, &report->variables[i], with_unused, &covered, err);
    if (code == 0)
        code = add_waits(report, err);
    if (code == 0 && recorded - covered > recorded * NOTHING)
        code = add_row(report, NULL, NULL, recorded - covered, 1, err);
    return code == 0 ? add_drops(report, worth, err) : code;
}

bool report_is_special(const struct report_row *row)
{
    const struct variable *variable = row->variable;
    return !variable || variable->class == CLASS_UNKNOWN || variable->class == CLASS_UNATTRIBUTED ||
           variable->class == CLASS_WAITING || row->is_waiting;
}

bool report_is_turned_over(const struct report_row *row)
{
    bool is_several = row->variable && !row->part && row->n_blocks > 1;
    return is_several && (double)row->variable->n_blocks_freed >= FREED_PART * (double)row->n_blocks;
}

bool report_find_twins(char *const *texts, size_t n, bool *is_twin)
{
    struct strtab known = {0};
    size_t *first = calloc(n + 1, sizeof *first); /* of the texts: which one it was first */
    bool ok = first != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        size_t n_known = known.n_strings;
        int64_t index = strtab_intern(&known, texts[i] ? texts[i] : "");
        ok = index >= 0;
        if (ok && known.n_strings > n_known)
            first[index] = i;
        else if (ok)
            is_twin[i] = is_twin[first[index]] = true;
    }
    strtab_fini(&known);
    free(first);
    return ok;
}

/* Marks the rows that share their names. */
static int mark_twins(struct report *report, struct error *err)
{
    char **names = calloc(report->n_rows + 1, sizeof *names);
    bool *is_twin = calloc(report->n_rows + 1, sizeof *is_twin), ok = names && is_twin;
    for (size_t i = 0; ok && i < report->n_rows; i++)
        names[i] = (char *)(uintptr_t)report->rows[i].name; /* is only read */
    ok = ok && report_find_twins(names, report->n_rows, is_twin);
    for (size_t i = 0; ok && i < report->n_rows; i++)
        report->rows[i].is_twin = is_twin[i] || report->model->names_in_full;
    free(names);
    free(is_twin);
    return ok ? 0 : error_memory(err);
}

enum { KEPT_MOST = 4 };

struct kept_reports {
    struct kept_report {
        struct report *report; /* NULL: none */
        size_t metric;
        bool with_unused, with_paths;
    } items[KEPT_MOST];
    size_t next; /* which one gives way */
};

/* The waits of a metric, with the tables of names that a report which is kept has. */
static int make_waits(struct report *report, struct error *err)
{
    const struct model *model = report->model;
    bool is_time = metrics_is_time(model->metrics[report->metric].name);
    for (size_t i = 0; model->kept && i < KEPT_MOST; i++) {
        const struct report *other = model->kept->items[i].report;
        if (other && other->waits->is_time == is_time)
            return waits_like(&report->waits, other->waits, err);
    }
    return waits_new(&report->waits, model, is_time, err);
}

static int make_anew(const struct model *model, size_t metric, bool with_unused, bool with_paths, struct report *report,
                     struct error *err)
{
    *report = (struct report){.model = model, .metric = metric};
    for (size_t i = 0; i < model->n_events; i++)
        if (strcmp(model->events[i].metric, model->metrics[metric].name) == 0)
            report->event = &model->events[i];
    int code = merge_variables(report, with_paths, err);
    if (code == 0)
        code = make_waits(report, err);
    if (code == 0)
        code = add_rows(report, with_unused, err);
    report_set_times(report);
    if (code == 0)
        code = report_add_fields(report, err);
    if (code == 0)
        code = report_add_hardware(report, err);
    if (code == 0)
        code = mark_twins(report, err);
    if (code == 0) {
        if (report->n_rows)
            qsort(report->rows, report->n_rows, sizeof *report->rows, compare_rows);
        set_quality(report);
        code = report_add_causes(report, err);
    }
    if (code == 0)
        code = report_add_advice(report, err);
    if (code != 0)
        report_fini(report);
    return code;
}

/* --- reports that are kept --- */

struct kept_reports *kept_reports_new(void)
{
    return calloc(1, sizeof(struct kept_reports));
}

static void let_go(struct report *whole)
{
    if (!whole || --whole->n_users > 0)
        return;
    report_fini(whole);
    free(whole);
}

void kept_reports_free(struct kept_reports *kept)
{
    for (size_t i = 0; kept && i < KEPT_MOST; i++)
        let_go(kept->items[i].report);
    free(kept);
}

/* A report with rows of its own, in whatever order, and the rest in common with one that is kept. */
static int take_of(struct report *whole, struct report *report, struct error *err)
{
    struct report_row *rows = malloc((whole->n_rows + 1) * sizeof *rows);
    if (!rows)
        return error_memory(err);
    if (whole->n_rows)
        memcpy(rows, whole->rows, whole->n_rows * sizeof *rows);
    *report = *whole;
    report->event = whole->event == &whole->events ? &report->events : whole->event;
    report->rows = rows;
    report->cap_rows = whole->n_rows + 1;
    report->whole = whole;
    whole->n_users++;
    return 0;
}

int report_make(const struct model *model, size_t metric, bool with_unused, bool with_paths, struct report *report,
                struct error *err)
{
    struct kept_reports *kept = model->kept;
    *report = (struct report){0};
    if (!kept)
        return make_anew(model, metric, with_unused, with_paths, report, err);
    for (size_t i = 0; i < KEPT_MOST; i++)
        if (kept->items[i].report && kept->items[i].metric == metric && kept->items[i].with_unused == with_unused &&
            kept->items[i].with_paths == with_paths)
            return take_of(kept->items[i].report, report, err);
    struct report *made = calloc(1, sizeof *made);
    int code = made ? make_anew(model, metric, with_unused, with_paths, made, err) : error_memory(err);
    if (code != 0) {
        free(made);
        return code;
    }
    made->n_users = 1;
    let_go(kept->items[kept->next].report);
    kept->items[kept->next] = (struct kept_report){made, metric, with_unused, with_paths};
    kept->next = (kept->next + 1) % KEPT_MOST;
    return take_of(made, report, err);
}

void report_fini(struct report *report)
{
    if (report->whole) { /* which has the rest */
        free(report->rows);
        let_go(report->whole);
        *report = (struct report){0};
        return;
    }
    for (size_t i = 0; i < report->n_rows; i++) {
        free(report->rows[i].site);
        free(report->rows[i].lines);
        free(report->rows[i].derived);
        free(report->rows[i].constructs);
        for (size_t f = 0; f < report->rows[i].n_fields; f++)
            free(report->rows[i].fields[f].name);
        free(report->rows[i].fields);
        free(report->rows[i].advice);
    }
    free(report->rows);
    for (size_t i = 0; i < report->n_variables; i++) {
        free(report->variables[i].scopes);
        free(report->variables[i].places);
        free(report->variables[i].samples);
        free(report->variables[i].latencies);
        free(report->variables[i].causes);
        free(report->variables[i].walks);
        free(report->variables[i].fields);
    }
    free(report->variables);
    free(report->variable_of);
    free(report->calls_of);
    free(report->derived);
    free(report->waiting);
    free(report->asides);
    waits_free(report->waits);
    memset(report, 0, sizeof *report);
}
