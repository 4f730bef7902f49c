/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory nodes of the samples' pages, and of the pages of large variables, on their way into the model: see load.h.
 */
#include "analysis/load/load.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(HOMES_MAX == OBJECTS_NODES, "the model holds what side files do");

static void add_pages(struct load_sides *sides, uint32_t node, const struct objects_variable *from)
{
    const struct objects_pages none = {.huge_bytes = UINT64_MAX}, *pages = from->pages ? from->pages : &none;
    if (!from->n_moved && !from->pages)
        return;
    if (!vec_reserve(&sides->pages, &sides->cap_pages, sides->n_pages + 1, sizeof *sides->pages)) {
        sides->failed = true;
        return;
    }
    struct variable_pages *into = &sides->pages[sides->n_pages++];
    *into = (struct variable_pages){.variable = node,
                                    .n_moved = from->n_moved,
                                    .n_pages = pages->n_pages,
                                    .n_asked = pages->n_asked,
                                    .n_none = pages->n_none,
                                    .huge_bytes = pages->huge_bytes};
    memcpy(into->n_on, pages->n_on, sizeof into->n_on);
}

void load_sides_add_homes(struct load_sides *sides, uint32_t node, size_t number, const struct objects_variable *from,
                          const int64_t *metrics, size_t n_metrics)
{
    add_pages(sides, node, from);
    for (size_t i = 0; i < from->n_homes; i++) {
        const struct objects_home *home = &from->homes[i];
        if (home->metric >= n_metrics || metrics[home->metric] < 0)
            continue;
        if (!vec_reserve(&sides->homes, &sides->cap_homes, sides->n_homes + 1, sizeof *sides->homes)) {
            sides->failed = true;
            return;
        }
        sides->homes[sides->n_homes++] =
            (struct home_count){.variable = node,
                                .thread = (uint32_t)number,
                                .metric = (uint32_t)metrics[home->metric],
                                .cpu = home->cpu,
                                .home = home->home == OBJECTS_NO_HOME ? PLACE_UNKNOWN : home->home,
                                .n_samples = home->count};
    }
}

static int compare_counts(const void *a, const void *b)
{
    const struct home_count *x = a, *y = b;
    const uint32_t xs[] = {x->variable, x->thread, x->metric, x->cpu, x->home};
    const uint32_t ys[] = {y->variable, y->thread, y->metric, y->cpu, y->home};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

static int compare_pages(const void *a, const void *b)
{
    const struct variable_pages *x = a, *y = b;
    return x->variable < y->variable ? -1 : x->variable > y->variable;
}

/* Puts the counts in order, and adds up those of the same key. */
static void merge_counts(struct model *model)
{
    struct home_count *counts = model->home_counts;
    size_t n = 0;
    if (model->n_home_counts)
        qsort(counts, model->n_home_counts, sizeof *counts, compare_counts);
    for (size_t i = 0; i < model->n_home_counts; i++) {
        if (n && compare_counts(&counts[n - 1], &counts[i]) == 0)
            counts[n - 1].n_samples += counts[i].n_samples;
        else
            counts[n++] = counts[i];
    }
    model->n_home_counts = n;
}

static void add_to(struct variable_pages *into, const struct variable_pages *from)
{
    into->n_moved += from->n_moved;
    into->n_pages += from->n_pages;
    into->n_asked += from->n_asked;
    into->n_none += from->n_none;
    if (from->huge_bytes != UINT64_MAX)
        into->huge_bytes = from->huge_bytes + (into->huge_bytes == UINT64_MAX ? 0 : into->huge_bytes);
    for (size_t i = 0; i < HOMES_MAX; i++)
        into->n_on[i] += from->n_on[i];
}

static void merge_pages(struct model *model)
{
    size_t n = 0;
    if (model->n_pages)
        qsort(model->pages, model->n_pages, sizeof *model->pages, compare_pages);
    for (size_t i = 0; i < model->n_pages; i++) {
        if (n && model->pages[n - 1].variable == model->pages[i].variable)
            add_to(&model->pages[n - 1], &model->pages[i]);
        else
            model->pages[n++] = model->pages[i];
    }
    model->n_pages = n;
}

/* Index of the model's variable that a node stands for, RAW_NONE when there is none. */
static uint32_t variable_of(const struct raw_tree *tree, uint32_t node)
{
    return node < tree->n_nodes ? tree->nodes[node].variable : RAW_NONE;
}

int load_sides_apply_homes(struct load_sides *sides, const struct raw_tree *tree, struct error *err)
{
    struct model *model = sides->model;
    size_t n_profiles, n_prior = model->n_home_counts;
    uint32_t *thread_of = threads_by_profile(model, &n_profiles);
    if (!thread_of ||
        !vec_reserve(&model->home_counts, &model->cap_home_counts, n_prior + sides->n_homes + 1,
                     sizeof *model->home_counts) ||
        !vec_reserve(&model->pages, &model->cap_pages, model->n_pages + sides->n_pages + 1, sizeof *model->pages)) {
        free(thread_of);
        return error_memory(err);
    }
    for (size_t i = 0; i < n_prior; i++) /* the threads of a database were in the order of their profiles */
        model->home_counts[i].thread = thread_of[model->home_counts[i].thread];
    for (size_t i = 0; i < sides->n_homes; i++) {
        struct home_count count = sides->homes[i];
        count.variable = variable_of(tree, count.variable);
        count.thread = count.thread < n_profiles ? thread_of[count.thread] : PLACE_UNKNOWN;
        if (count.variable != RAW_NONE && count.thread != PLACE_UNKNOWN)
            model->home_counts[model->n_home_counts++] = count;
    }
    for (size_t i = 0; i < sides->n_pages; i++) {
        struct variable_pages *into = &model->pages[model->n_pages];
        *into = sides->pages[i];
        into->variable = variable_of(tree, into->variable);
        model->n_pages += into->variable != RAW_NONE;
    }
    free(thread_of);
    merge_counts(model);
    merge_pages(model);
    return 0;
}
