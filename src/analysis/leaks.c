/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the report of what is still allocated: see leaks.h. */
#include "analysis/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/heap-name.h"
#include "fmt/columns.h"

static uint64_t rest_of(uint64_t n, uint64_t n_gone)
{
    return n > n_gone ? n - n_gone : 0;
}

/* Whether the metric is about samples with addresses. */
static bool tells_use(const struct model *model, size_t metric)
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

/* Whether samples of any event fell on the blocks of the path. */
static bool is_used(const struct leaks *leaks, const struct report_row *row)
{
    const struct model *model = leaks->report.model;
    for (size_t m = 0; m < model->n_metrics; m++)
        if (tells_use(model, m) && report_value(&leaks->report, row, m) > 0)
            return true;
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
    if (!made.n_live && (!with_unused || !variable->n_blocks)) /* without blocks: of small ones, which nobody counts */
        return 0;
    if (!vec_reserve(&leaks->rows, &leaks->cap_rows, leaks->n_rows + 1, sizeof *leaks->rows))
        return error_set(err, ERR_MEMORY, "out of memory");
    leaks->rows[leaks->n_rows++] = made;
    if (!made.n_live)
        return 0;
    leaks->share += row->share;
    if (!is_used(leaks, row))
        add(&leaks->unused, made.n_live, made.live_bytes);
    return 0;
}

int leaks_make(const struct model *model, size_t metric, bool at_mark, bool with_unused, struct leaks *leaks,
               struct error *err)
{
    *leaks = (struct leaks){.is_at_mark = at_mark, .has_use = tells_use(model, metric)};
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
        if (variable && (variable->class == CLASS_HEAP || variable->class == CLASS_MMAP))
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

size_t leaks_path(const struct leaks *leaks, const struct leak_row *row, struct leak_frame *frames, size_t max)
{
    const struct model *model = leaks->report.model;
    const struct variable *variable = row->row->variable;
    uint32_t file = 0, line = 0, at = variable->n_scopes ? model->scopes[variable->scopes[0]].parent : 0;
    size_t n = 0;
    bool is_ours = true; /* what a pool tells lies below the function that it told */
    for (; at && n < max; at = model->scopes[at].parent) {
        const struct scope *scope = &model->scopes[at];
        if (scope->role == ROLE_HEAP || scope->role == ROLE_PROGRAM || scope->role == ROLE_THREAD)
            break;
        if (scope->kind == SCOPE_CALL || scope->kind == SCOPE_PLACE) {
            file = scope->file;
            line = scope->line;
        } else if (scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED) {
            is_ours = is_ours && heap_name_is_annotation(model_text(model, scope->name));
            if (!is_ours)
                frames[n++] = (struct leak_frame){.function = scope->name, .file = file, .line = line};
        }
    }
    return n;
}
