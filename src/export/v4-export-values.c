/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the version 4 form: those of each thread that are not zero, by profile and by context. */
#include "export/v4-export.h"

#include <stdlib.h>
#include <string.h>

/* One thread's values, dense. */
struct dense {
    double *own, *inclusive, *exclusive; /* [n_scopes][n_metrics] */
};

static bool is_lexical(const struct scope *scope)
{
    return scope->kind == SCOPE_LINE || scope->kind == SCOPE_CALL || scope->kind == SCOPE_PLACE;
}

/* What is in the function itself: a scope's own value and those of the lines and positions in it. */
static void sum_exclusive(const struct model *model, const double *own, double *exclusive)
{
    size_t n = model->n_metrics;
    memcpy(exclusive, own, model->n_scopes * n * sizeof *exclusive);
    for (size_t i = model->n_scopes - 1; i > 0; i--)
        for (size_t m = 0; m < n && is_lexical(&model->scopes[i]) && model->scopes[i].parent; m++)
            exclusive[model->scopes[i].parent * n + m] += exclusive[i * n + m];
}

/* The values of context i, of which there are n_scopes + 1, in metric order; NULL counts them only. */
static size_t take_context(const struct model *model, const struct columns *columns, const struct dense *dense,
                           uint32_t i, struct v4_cell *cells)
{
    uint32_t row = i == model->n_scopes ? 0 : i;
    size_t n = 0;
    for (size_t k = 0; k < columns->n_pairs; k++) {
        size_t at = row * model->n_metrics + columns->pairs[k].metric;
        double scale = v4_export_scale(&columns->pairs[k]);
        const double values[] = {[V4_ID_FUNCTION] = row ? dense->exclusive[at] : 0,
                                 [V4_ID_EXECUTION] = dense->inclusive[at]};
        for (size_t s = 0; s < V4_IDS_PER_METRIC; s++)
            if (values[s] != 0) {
                if (cells)
                    cells[n] = (struct v4_cell){i, (uint16_t)(V4_IDS_PER_METRIC * k + s), values[s] * scale};
                n++;
            }
    }
    return n;
}

static int take_profile(const struct model *model, const struct columns *columns, struct dense *dense,
                        const double *own, struct v4_profile *profile, struct error *err)
{
    size_t n = 0;
    model_sum_inclusive(model, own, dense->inclusive);
    sum_exclusive(model, own, dense->exclusive);
    for (uint32_t i = 0; i <= model->n_scopes; i++)
        n += take_context(model, columns, dense, i, NULL);
    profile->cells = calloc(n + 1, sizeof *profile->cells);
    if (!profile->cells)
        return error_set(err, ERR_MEMORY, "out of memory for %zu values", n);
    for (uint32_t i = 0; i <= model->n_scopes; i++)
        profile->n_cells += take_context(model, columns, dense, i, profile->cells + profile->n_cells);
    return 0;
}

static int set_ids(const struct model *model, const struct thread *thread, struct v4_profile *profile,
                   struct error *err)
{
    const struct process *process = &model->processes[thread->process];
    profile->ids = calloc(3, sizeof *profile->ids);
    if (!profile->ids)
        return error_set(err, ERR_MEMORY, "out of memory");
    profile->n_ids = 3;
    profile->ids[0] = (struct v4_id){V4_ID_NODE, 1, 0, process->host_id ? strtoull(process->host_id, NULL, 16) : 0};
    profile->ids[1] = (struct v4_id){V4_ID_RANK, 0, thread->process, process->rank};
    profile->ids[2] = (struct v4_id){V4_ID_THREAD, 0, thread->id, thread->thread_id};
    return 0;
}

static int take_threads(const struct model *model, const struct columns *columns, struct dense *dense,
                        struct v4_file *profiles, struct error *err)
{
    size_t n = model->n_metrics;
    int code = take_profile(model, columns, dense, model->own, &profiles->profiles[0], err);
    profiles->profiles[0].flags = 1;
    for (size_t t = 0; code == 0 && t < model->n_threads; t++) {
        const struct thread *thread = &model->threads[t];
        memset(dense->own, 0, model->n_scopes * n * sizeof *dense->own);
        for (size_t i = 0; i < thread->n_cells; i++)
            dense->own[thread->cells[i].scope * n + thread->cells[i].metric] += thread->cells[i].value;
        code = set_ids(model, thread, &profiles->profiles[t + 1], err);
        if (code == 0)
            code = take_profile(model, columns, dense, dense->own, &profiles->profiles[t + 1], err);
    }
    return code;
}

static int compare_cells(const void *a, const void *b)
{
    const struct v4_cell *x = a, *y = b;
    if (x->metric_id != y->metric_id)
        return x->metric_id < y->metric_id ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The threads' values by context. */
static int turn(const struct v4_file *profiles, struct v4_file *blocks, struct error *err)
{
    for (size_t p = 1; p < profiles->n_profiles; p++)
        for (size_t i = 0; i < profiles->profiles[p].n_cells; i++)
            blocks->blocks[profiles->profiles[p].cells[i].id].n_cells++;
    for (size_t c = 0; c < blocks->n_blocks; c++) {
        struct v4_block *block = &blocks->blocks[c];
        block->cells = block->n_cells ? calloc(block->n_cells, sizeof *block->cells) : NULL;
        if (block->n_cells && !block->cells)
            return error_set(err, ERR_MEMORY, "out of memory for %zu values", block->n_cells);
        block->n_cells = 0;
    }
    for (uint32_t p = 1; p < profiles->n_profiles; p++)
        for (size_t i = 0; i < profiles->profiles[p].n_cells; i++) {
            const struct v4_cell *cell = &profiles->profiles[p].cells[i];
            struct v4_block *block = &blocks->blocks[cell->id];
            block->cells[block->n_cells++] = (struct v4_cell){p, cell->metric_id, cell->value};
        }
    for (size_t c = 0; c < blocks->n_blocks; c++)
        if (blocks->blocks[c].n_cells)
            qsort(blocks->blocks[c].cells, blocks->blocks[c].n_cells, sizeof(struct v4_cell), compare_cells);
    return 0;
}

int v4_export_values(const struct model *model, const struct columns *columns, struct v4_file *profiles,
                     struct v4_file *blocks, struct error *err)
{
    size_t n = model->n_scopes * model->n_metrics + 1;
    struct dense dense = {calloc(n, sizeof(double)), calloc(n, sizeof(double)), calloc(n, sizeof(double))};
    int code = 0;
    profiles->profiles = calloc(model->n_threads + 1, sizeof *profiles->profiles);
    blocks->blocks = calloc(model->n_scopes + 1, sizeof *blocks->blocks);
    profiles->n_profiles = profiles->profiles ? model->n_threads + 1 : 0;
    blocks->n_blocks = blocks->blocks ? model->n_scopes + 1 : 0;
    if (!dense.own || !dense.inclusive || !dense.exclusive || !profiles->profiles || !blocks->blocks)
        code = error_set(err, ERR_MEMORY, "out of memory for the values of %zu threads", model->n_threads);
    if (code == 0)
        code = take_threads(model, columns, &dense, profiles, err);
    if (code == 0)
        code = turn(profiles, blocks, err);
    free(dense.own);
    free(dense.inclusive);
    free(dense.exclusive);
    return code;
}
