/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples in nests of loops that another order would serve better: what the machine code of each sampled instruction
 * says. Ordinary code. */
#include "analysis/build/build.h"

#include <stdlib.h>

#define PART_LEAST 0.002 /* of all samples: variables with fewer are not looked at */

_Static_assert(NEST_VERDICT_MOST == NEST_TILE && NEST_MOVE_MOST == NEST_UNKNOWN, "as in locus.db");

static bool add_count(struct model *model, const struct cause_spot *spot, const struct code_nest *code)
{
    const struct structure_nest *nest = &code->nest;
    const struct nest_count count = {.variable = spot->node,
                                     .event = spot->event,
                                     .file = code->file,
                                     .line = nest->inner->line,
                                     .end_line = nest->inner->end_line,
                                     .outer_file = code->outer_file,
                                     .outer_line = nest->outer->line,
                                     .verdict = nest->verdict,
                                     .move = nest->inner_move,
                                     .is_around = nest->is_around,
                                     .stride_bytes = (uint64_t)nest->inner_bytes,
                                     .outer_bytes = (uint64_t)nest->outer_bytes,
                                     .n_samples = spot->n_samples};
    if (!vec_reserve(&model->nest_counts, &model->cap_nest_counts, model->n_nest_counts + 1,
                     sizeof *model->nest_counts))
        return false;
    model->nest_counts[model->n_nest_counts++] = count;
    return true;
}

/* Those of one variable, spots [n]: few samples are not worth reading code for. */
static bool apply_to(struct build *build, const struct cause_spot *spots, size_t n, uint64_t all)
{
    uint64_t own = 0;
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        own += spots[i].n_samples;
    if (spots[0].node >= build->model->n_variables || (double)own < PART_LEAST * (double)all)
        return true;
    for (size_t i = 0; ok && i < n; i++) {
        struct code_nest code;
        if (symbolizer_nest(build->symbolizer, spots[i].module, spots[i].vaddr, &code) &&
            code.nest.verdict != NEST_FINE && code.nest.is_far)
            ok = add_count(build->model, &spots[i], &code);
    }
    return ok;
}

void nests_apply(struct build *build)
{
    const struct cause_table *table = build->causes;
    uint64_t all = 0;
    bool ok = true;
    for (size_t i = 0; i < table->n_spots; i++)
        all += table->spots[i].n_samples;
    for (size_t i = 0, end; ok && i < table->n_spots; i = end) {
        for (end = i + 1; end < table->n_spots && table->spots[end].node == table->spots[i].node; end++)
            ;
        ok = apply_to(build, &table->spots[i], end - i, all);
    }
    model_order_nest_counts(build->model);
    build->builder.failed |= !ok;
}
