/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the report of what is still allocated, and the table of regions: see leaks.h. */
#include "analysis/report/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/build/heap-name.h"
#include "analysis/metrics.h"
#include "arena/arena.h"
#include "base/path.h"
#include "fmt/hpcrun.h"

static uint64_t rest_of(uint64_t n, uint64_t n_gone)
{
    return n > n_gone ? n - n_gone : 0;
}

/* Whether the metric is about samples with addresses. */
static bool has_addresses(const struct model *model, size_t metric)
{
    const char *name = model->metrics[metric].name;
    return model->metrics[metric].used_by_data && !model->metrics[metric].hidden &&
           strncmp(name, LEAK_NAMES_PREFIX, strlen(LEAK_NAMES_PREFIX)) != 0;
}

static void add(struct leak_sum *sum, uint64_t n_blocks, uint64_t bytes)
{
    sum->n_blocks += n_blocks;
    sum->bytes += bytes;
}

static int compare_rows(const void *a, const void *b)
{
    const struct leak_row *x = a, *y = b;
    if (x->live_bytes != y->live_bytes)
        return x->live_bytes > y->live_bytes ? -1 : 1;
    if (x->row->size_bytes != y->row->size_bytes)
        return x->row->size_bytes > y->row->size_bytes ? -1 : 1;
    int order = strcmp(x->row->name, y->row->name);
    return order ? order : strcmp(x->row->site, y->row->site);
}

/* Whether samples of any event fell on the blocks of the path. The allocator's own time, which the row leaves out, does
 * not count; it says nothing of events that are no time. */
static bool is_used(const struct leaks *leaks, const struct report_row *row)
{
    const struct model *model = leaks->report.model;
    for (size_t m = 0; m < model->n_metrics; m++) {
        bool is_whole = m != leaks->report.metric && !metrics_is_time(model->metrics[m].name);
        const struct report_row of = {
            .variable = row->variable, .value = row->value, .fraction = is_whole ? 1 : row->fraction};
        if (has_addresses(model, m) && report_value(&leaks->report, &of, m) > 0)
            return true;
    }
    return false;
}

static int add_row(struct leaks *leaks, const struct report_row *row, bool with_unused, struct error *err)
{
    const struct variable *variable = row->variable;
    struct leak_row made = {.row = row};
    uint64_t n_rest = rest_of(variable->n_blocks, variable->n_blocks_freed);
    uint64_t rest_bytes = rest_of(variable->size_bytes, variable->size_freed_bytes);
    made.n_live = leaks->is_at_mark ? variable->n_blocks_marked : n_rest;
    made.live_bytes = leaks->is_at_mark ? variable->size_marked_bytes : rest_bytes;
    add(&leaks->allocated, variable->n_blocks, variable->size_bytes);
    add(&leaks->freed, variable->n_blocks_freed, variable->size_freed_bytes);
    add(&leaks->marked, variable->n_blocks_marked, variable->size_marked_bytes);
    add(&leaks->live, n_rest, rest_bytes);
    if (!made.n_live && (!with_unused || !variable->n_blocks)) /* without blocks: they are small ones, which are not
                                                                * counted */
        return 0;
    if (!vec_reserve(&leaks->rows, &leaks->cap_rows, leaks->n_rows + 1, sizeof *leaks->rows))
        return error_memory(err);
    leaks->rows[leaks->n_rows++] = made;
    if (!made.n_live)
        return 0;
    leaks->share += row->share;
    if (!is_used(leaks, row))
        add(&leaks->unused, made.n_live, made.live_bytes);
    return 0;
}

bool leaks_may_be_unused(const struct model *model, size_t metric, uint64_t least_bytes)
{
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        double value = 0;
        if (!model_is_block(variable) || rest_of(variable->size_bytes, variable->size_freed_bytes) < least_bytes)
            continue;
        for (size_t k = 0; k < variable->n_scopes; k++)
            value += model_value(model, variable->scopes[k], metric);
        if (!(value > 0))
            return true;
    }
    return false;
}

int leaks_make(const struct model *model, size_t metric, bool at_mark, bool with_unused, struct leaks *leaks,
               struct error *err)
{
    *leaks = (struct leaks){.is_at_mark = at_mark, .has_use = has_addresses(model, metric)};
    if (model->min_bytes == UINT64_MAX)
        return error_set(err, ERR_NOT_FOUND,
                         "allocations were not recorded in this measurement; measure with "
                         "hpcrun --leaks, or with an event that yields data addresses");
    if (at_mark && !model->mark_ns)
        return error_set(err, ERR_NOT_FOUND,
                         "no mark was made in this measurement; measure with hpcrun --leaks-at "
                         "SECONDS, or call locus_mark_live() in the program");
    int code = report_make(model, metric, true, true, &leaks->report, err);
    for (size_t i = 0; code == 0 && i < leaks->report.n_rows; i++) {
        const struct variable *variable = leaks->report.rows[i].variable;
        if (model_is_block(variable))
            code = add_row(leaks, &leaks->report.rows[i], with_unused, err);
    }
    if (code != 0)
        leaks_fini(leaks);
    else if (leaks->n_rows)
        qsort(leaks->rows, leaks->n_rows, sizeof *leaks->rows, compare_rows);
    return code;
}

void leaks_fini(struct leaks *leaks)
{
    report_fini(&leaks->report);
    free(leaks->rows);
    memset(leaks, 0, sizeof *leaks);
}

/* All frames of the path as they are in the tree, at most LEAK_FRAMES_MAX. */
static size_t list_frames(const struct model *model, const struct variable *variable, struct leak_frame *frames)
{
    uint32_t file = 0, line = 0, at = variable->n_scopes ? model->scopes[variable->scopes[0]].parent : 0;
    size_t n = 0;
    bool is_ours = true; /* what a pool reports lies below the function that it called */
    for (; at && n < LEAK_FRAMES_MAX; at = model->scopes[at].parent) {
        const struct scope *scope = &model->scopes[at];
        if (scope->role == ROLE_HEAP || scope->role == ROLE_PROGRAM || scope->role == ROLE_THREAD)
            break;
        if (scope->kind == SCOPE_CALL || scope->kind == SCOPE_POSITION) {
            file = scope->file;
            line = scope->line;
        } else if (scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED) {
            is_ours = is_ours && heap_name_is_annotation(model_text(model, scope->name));
            if (!is_ours)
                frames[n++] = (struct leak_frame){scope->name, file, line, scope->module};
        }
    }
    return n;
}

/* Copies frames while there is room; those of native code only if it has names. */
static void copy_frames(const struct model *model, const struct leak_frame *from, size_t n_from,
                        struct leak_frame *frames, size_t max, size_t *n)
{
    for (size_t i = 0; i < n_from && *n < max; i++)
        if (from[i].line || !text_begins(model_text(model, from[i].function), "func_0x"))
            frames[(*n)++] = from[i];
}

size_t leaks_path(const struct report *report, const struct report_row *row, struct leak_frame *frames, size_t max)
{
    const struct model *model = report->model;
    struct leak_frame all[LEAK_FRAMES_MAX];
    size_t n_all = list_frames(model, row->variable, all), n_python = 0, n = 0;
    while (n_python < n_all && strcmp(model_text(model, all[n_python].module), PYTHON_MODULE) == 0)
        n_python++;
    size_t inner = n_all,
           outer = n_all; /* the interpreter's frames lie between: the native ones stand behind Python's */
    for (size_t i = n_python; n_python && i < n_all; i++)
        if (path_is_python(model_text(model, all[i].module))) {
            inner = inner == n_all ? i : inner;
            outer = i + 1;
        }
    if (inner == n_all) {
        n = n_all < max ? n_all : max;
        memcpy(frames, all, n * sizeof *frames);
        return n;
    }
    copy_frames(model, &all[n_python], inner - n_python, frames, max, &n);
    copy_frames(model, all, n_python, frames, max, &n);
    copy_frames(model, &all[outer], n_all - outer, frames, max, &n);
    return n;
}

/* --- regions --- */

/* Splits the table of variables by region: see leaks.h. */

#define NOTHING 1e-9 /* of the total: rounding */

struct region_maker {
    const struct report *report;
    struct region_report *regions;
    uint32_t *region_of; /* [n_scopes] index of the region that the scope lies in */
    double *sums;        /* [n_regions] of one row */
};

/* Index of "<region NAME>" inside the region around; -1 when out of memory. */
static int64_t intern_inner(struct region_report *regions, uint32_t around, const char *title, bool of_phases)
{
    struct buf text = {0};
    const char *outer = regions->names.strings[around];
    size_t len = strlen(title);
    bool is_title = strncmp(title, REGION_TITLE, sizeof REGION_TITLE - 1) == 0 && title[len - 1] == '>';
    size_t skip = of_phases ? sizeof PHASE_TITLE - 1 : sizeof REGION_TITLE - 1;
    buf_printf(&text, "%s%s", outer, *outer ? " > " : "");
    if (is_title)
        buf_append(&text, title + skip, len - skip - 1);
    else
        buf_printf(&text, "%s", title);
    int64_t index = text.failed ? -1 : strtab_intern(&regions->names, text.data);
    buf_fini(&text);
    return index;
}

/* Whether a scope is a region of the program, or a phase of its owner. */
static bool is_region(const struct model *model, const struct scope *scope, bool of_phases)
{
    return scope->role == ROLE_REGION && model_is_phase(model, scope) == of_phases;
}

bool regions_has_any(const struct report *report, bool of_phases)
{
    const struct model *model = report->model;
    size_t i = 1;
    while (i < model->n_scopes && !is_region(model, &model->scopes[i], of_phases))
        i++;
    return i < model->n_scopes;
}

/* Parents come before their children. */
static bool find_regions(struct region_maker *maker, bool of_phases)
{
    const struct model *model = maker->report->model;
    maker->region_of = calloc(model->n_scopes + 1, sizeof *maker->region_of);
    if (!maker->region_of || strtab_intern(&maker->regions->names, "") != 0)
        return false;
    for (size_t i = 1; i < model->n_scopes; i++) {
        const struct scope *scope = &model->scopes[i];
        int64_t region = maker->region_of[scope->parent];
        if (is_region(model, scope, of_phases))
            region = intern_inner(maker->regions, (uint32_t)region, model_text(model, scope->name), of_phases);
        if (region < 0)
            return false;
        maker->region_of[i] = (uint32_t)region;
    }
    return true;
}

static bool make_room(struct region_maker *maker)
{
    struct region_report *regions = maker->regions;
    size_t n = regions->names.n_strings + 1;
    maker->sums = calloc(n, sizeof *maker->sums);
    if (!maker->sums || !vec_reserve(&regions->regions, &regions->cap_regions, n, sizeof *regions->regions))
        return false;
    memset(regions->regions, 0, n * sizeof *regions->regions);
    for (size_t i = 0; i < n; i++)
        regions->regions[i].name = i < n - 1 ? regions->names.strings[i] : REGION_NOT_KNOWN;
    regions->n_regions = n;
    return true;
}

static void sum_scope(struct region_maker *maker, uint32_t scope, double factor)
{
    const struct model *model = maker->report->model;
    maker->sums[maker->region_of[scope]] +=
        factor * model->own[(size_t)scope * model->n_metrics + maker->report->metric];
}

/* Adds the own values of a variable to the regions they lie in, but for those that waited. */
static void sum_variable(struct region_maker *maker, const struct variable *variable, double factor)
{
    const struct report *report = maker->report;
    const struct model *model = report->model;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        for (uint32_t i = variable->scopes[k], end = model_subtree_end(model, i); i < end; i++) {
            double value = model->own[(size_t)i * model->n_metrics + report->metric];
            if (value != 0 && report_wait(report, variable, i) == REPORT_NOT_WAITING)
                sum_scope(maker, i, factor);
        }
    }
}

/* Adds the own values of a subtree to the regions they lie in. */
static void sum_subtree(struct region_maker *maker, uint32_t first, double factor)
{
    for (uint32_t i = first, end = model_subtree_end(maker->report->model, first); i < end; i++)
        sum_scope(maker, i, factor);
}

/* Gives the sums of a row to the regions. */
static bool add_row_to_regions(struct region_maker *maker, const struct report_row *row)
{
    const struct report *report = maker->report;
    bool ok = true;
    for (size_t i = 0; ok && i < maker->regions->n_regions; i++) {
        struct region *region = &maker->regions->regions[i];
        double value = maker->sums[i];
        if (value <= report->total_value * NOTHING)
            continue;
        ok = vec_reserve(&region->rows, &region->cap_rows, region->n_rows + 1, sizeof *region->rows);
        if (!ok)
            break;
        region->rows[region->n_rows++] = (struct region_row){row, value, 100 * value / report->total_value};
        region->value += value;
    }
    memset(maker->sums, 0, maker->regions->n_regions * sizeof *maker->sums);
    return ok;
}

static bool add_rows(struct region_maker *maker)
{
    bool ok = true;
    for (size_t i = 0; ok && i < maker->report->n_rows; i++) {
        const struct report_row *row = &maker->report->rows[i];
        size_t n;
        const struct report_aside *asides = report_asides(maker->report, row->wait, &n);
        if (row->variable)
            sum_variable(maker, row->variable, report_part_fraction(maker->report, row, maker->report->metric));
        for (size_t k = 0; k < n; k++)
            sum_scope(maker, asides[k].scope, 1);
        if (row->variable || row->wait != REPORT_NOT_WAITING)
            ok = add_row_to_regions(maker, row);
    }
    return ok;
}

/* Adds what the ordinary trees have beyond the variables. */
static bool add_rest(struct region_maker *maker)
{
    const struct model *model = maker->report->model;
    for (uint32_t root = model->scopes[0].first_child; root; root = model->scopes[root].next_sibling)
        if (model->scopes[root].role != ROLE_DATACENTRIC)
            sum_subtree(maker, root, 1);
    for (size_t i = 0; i < maker->regions->n_regions; i++)
        maker->sums[i] -= maker->regions->regions[i].value;
    return add_row_to_regions(maker, NULL);
}

/* Adds the samples that were dropped: in which region, nobody knows. */
static bool add_dropped(struct region_maker *maker)
{
    bool ok = true;
    for (size_t i = 0; ok && i < maker->report->n_rows; i++) {
        const struct report_row *row = &maker->report->rows[i];
        maker->sums[maker->regions->n_regions - 1] = row->fate ? row->value : 0;
        ok = !row->fate || add_row_to_regions(maker, row);
    }
    return ok;
}

static int compare_values(double a, double b)
{
    return a > b ? -1 : a < b;
}

static int compare_region_rows(const void *a, const void *b)
{
    const struct region_row *x = a, *y = b;
    int order = compare_values(x->value, y->value);
    return order || !x->row || !y->row ? order : strcmp(x->row->name, y->row->name);
}

static int compare_regions(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    int order = compare_values(x->value, y->value);
    return order ? order : strcmp(x->name, y->name);
}

static void sort(struct region_report *regions, double total)
{
    qsort(regions->regions, regions->n_regions, sizeof *regions->regions, compare_regions);
    while (regions->n_regions && !regions->regions[regions->n_regions - 1].n_rows)
        regions->n_regions--;
    for (size_t i = 0; i < regions->n_regions; i++) {
        struct region *region = &regions->regions[i];
        region->share = 100 * region->value / total;
        qsort(region->rows, region->n_rows, sizeof *region->rows, compare_region_rows);
    }
}

int regions_make(const struct report *report, bool of_phases, struct region_report *regions, struct error *err)
{
    struct region_maker maker = {.report = report, .regions = regions};
    *regions = (struct region_report){0};
    bool ok = find_regions(&maker, of_phases) && make_room(&maker) && add_rows(&maker) && add_rest(&maker) &&
              add_dropped(&maker);
    free(maker.region_of);
    free(maker.sums);
    if (!ok) {
        regions_fini(regions);
        return error_memory(err);
    }
    sort(regions, report->total_value > 0 ? report->total_value : 1);
    return 0;
}

void regions_fini(struct region_report *regions)
{
    for (size_t i = 0; i < regions->n_regions; i++)
        free(regions->regions[i].rows);
    free(regions->regions);
    strtab_fini(&regions->names);
    *regions = (struct region_report){0};
}

bool leaks_is_of_blocks(const char *note)
{
    return strstr(note, "RTLD_DEEPBIND") || strstr(note, "(dlmopen)") || strstr(note, " freed unseen") ||
           strstr(note, " came and went ");
}
