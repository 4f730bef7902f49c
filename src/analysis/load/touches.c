/* SPDX-License-Identifier: BSD-3-Clause */
/* Who touched the pages of each variable first, on the way from the side files into the model: see load.h. */
#include "analysis/load/load.h"

#include <stdlib.h>

static int compare_touches(const void *a, const void *b)
{
    const struct touch *x = a, *y = b;
    const uint32_t xs[] = {x->variable, x->thread, x->scope}, ys[] = {y->variable, y->thread, y->scope};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

static bool has_place(const struct touch *touch)
{
    return touch->low_bytes <= touch->high_bytes;
}

static void add_touch(struct touch *into, const struct touch *from)
{
    into->n_samples += from->n_samples;
    into->n_faults += from->n_faults;
    if (from->first_ns && (!into->first_ns || from->first_ns < into->first_ns))
        into->first_ns = from->first_ns;
    if (!has_place(from))
        return;
    if (!has_place(into) || from->low_bytes < into->low_bytes)
        into->low_bytes = from->low_bytes;
    if (from->high_bytes > into->high_bytes)
        into->high_bytes = from->high_bytes;
}

/* Puts the touches in order, and adds up those of one place: the paths to it differ in instructions alone. */
static void merge_touches(struct model *model)
{
    struct touch *touches = model->touches;
    size_t n = 0;
    if (model->n_touches)
        qsort(touches, model->n_touches, sizeof *touches, compare_touches);
    for (size_t i = 0; i < model->n_touches; i++) {
        if (n && compare_touches(&touches[n - 1], &touches[i]) == 0)
            add_touch(&touches[n - 1], &touches[i]);
        else
            touches[n++] = touches[i];
    }
    model->n_touches = n;
}

int load_sides_apply_touches(struct load_sides *sides, const struct raw_tree *tree, const struct build_scopes *scopes,
                             struct error *err)
{
    struct model *model = sides->model;
    size_t n_profiles, n_prior = model->n_touches;
    if (!vec_reserve(&model->touches, &model->cap_touches, n_prior + sides->n_touches + 1, sizeof *model->touches))
        return error_memory(err);
    uint32_t *thread_of = threads_by_profile(model, &n_profiles);
    if (!thread_of)
        return error_memory(err);
    for (size_t i = 0; i < n_prior; i++) { /* the threads of a database were in the order of their profiles */
        model->touches[i].thread = thread_of[model->touches[i].thread];
        model->touches[i].scope = scopes->prior[model->touches[i].scope];
    }
    for (size_t i = 0; i < sides->n_touches; i++) {
        struct touch touch = sides->touches[i];
        touch.variable = touch.variable < tree->n_nodes ? tree->nodes[touch.variable].variable : RAW_NONE;
        touch.thread = touch.thread < n_profiles ? thread_of[touch.thread] : PLACE_UNKNOWN;
        touch.scope = touch.scope < tree->n_nodes ? scopes->own[touch.scope] : 0;
        if (touch.variable != RAW_NONE && touch.thread != PLACE_UNKNOWN)
            model->touches[model->n_touches++] = touch;
    }
    free(thread_of);
    merge_touches(model);
    return 0;
}
