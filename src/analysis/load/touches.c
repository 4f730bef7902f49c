/* SPDX-License-Identifier: BSD-3-Clause */
/* Who touched the pages of each variable first, where threads met at its cache lines, and where the samples of each
 * thread lie in it, on the way from the side files into the model: see load.h. */
#include "analysis/load/load.h"

#include <stdlib.h>
#include <string.h>

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

/* --- meetings --- */

static int compare_meetings(const void *a, const void *b)
{
    const struct meeting *x = a, *y = b;
    const uint64_t xs[] = {x->key, x->thread, x->is_watcher}, ys[] = {y->key, y->thread, y->is_watcher};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

int load_sides_apply_meetings(struct load_sides *sides, const struct raw_tree *tree, const struct build_scopes *scopes,
                              struct error *err)
{
    struct model *model = sides->model;
    size_t n_profiles, n_prior = model->n_meetings;
    if (!vec_reserve(&model->meetings, &model->cap_meetings, n_prior + sides->n_meetings + 1, sizeof *model->meetings))
        return error_memory(err);
    uint32_t *thread_of = threads_by_profile(model, &n_profiles);
    if (!thread_of)
        return error_memory(err);
    for (size_t i = 0; i < n_prior; i++) { /* as above */
        model->meetings[i].thread = thread_of[model->meetings[i].thread];
        model->meetings[i].scope = scopes->prior[model->meetings[i].scope];
    }
    for (size_t i = 0; i < sides->n_meetings; i++) {
        struct meeting meeting = sides->meetings[i];
        meeting.variable = meeting.variable < tree->n_nodes ? tree->nodes[meeting.variable].variable : RAW_NONE;
        meeting.thread = meeting.thread < n_profiles ? thread_of[meeting.thread] : PLACE_UNKNOWN;
        meeting.scope = meeting.scope < tree->n_nodes ? scopes->own[meeting.scope] : 0;
        if (meeting.variable != RAW_NONE && meeting.thread != PLACE_UNKNOWN)
            model->meetings[model->n_meetings++] = meeting;
    }
    free(thread_of);
    if (model->n_meetings)
        qsort(model->meetings, model->n_meetings, sizeof *model->meetings, compare_meetings);
    return 0;
}

/* --- where samples lie --- */

/* Adds what is known of single instructions: how they walk, and some offsets. */
static bool add_accesses(struct reach_row *row, const struct objects_variable *from)
{
    for (size_t i = 0; i < from->n_accesses; i++) {
        const struct objects_access *access = &from->accesses[i];
        enum pattern_kind kind = pattern_kind(access->pattern);
        if (kind == PATTERN_STRIDED || kind == PATTERN_DERIVED)
            row->n_strided += access->n_samples;
        if (kind == PATTERN_IRREGULAR || kind == PATTERN_STORED || kind == PATTERN_CHAINED)
            row->n_irregular += access->n_samples;
        for (size_t k = 0; k < access->offsets.n; k++)
            if (!spread_add(&row->offsets, access->offsets.entries[k].offset, access->offsets.entries[k].count))
                return false;
    }
    spread_reduce(&row->offsets);
    return true;
}

bool load_sides_add_reach(struct load_sides *sides, uint32_t node, size_t profile, const struct objects_variable *from)
{
    struct reach_row row = {.variable = node, .thread = (uint32_t)profile};
    if (!from->reach || !reach_total(&from->reach->sum))
        return true;
    row.sum = from->reach->sum;
    row.lines = malloc((from->reach->n_lines + 1) * sizeof *row.lines);
    row.n_lines = row.lines ? from->reach->n_lines : 0;
    if (!row.lines || !add_accesses(&row, from) ||
        !vec_reserve(&sides->reaches, &sides->cap_reaches, sides->n_reaches + 1, sizeof *sides->reaches)) {
        reach_row_fini(&row);
        return false;
    }
    if (row.n_lines)
        memcpy(row.lines, from->reach->lines, row.n_lines * sizeof *row.lines);
    sides->reaches[sides->n_reaches++] = row;
    return true;
}

static int compare_rows(const void *a, const void *b)
{
    const struct reach_row *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Puts a second row of the same thread, from another allocation path of the variable, into the first. False when out of
 * memory. */
static bool merge_row(struct reach_row *into, struct reach_row *from)
{
    struct reach_line *lines = realloc(into->lines, (into->n_lines + from->n_lines + 1) * sizeof *lines);
    if (!lines)
        return false;
    into->lines = lines;
    if (from->n_lines)
        memcpy(lines + into->n_lines, from->lines, from->n_lines * sizeof *lines);
    into->n_lines += from->n_lines;
    into->n_strided += from->n_strided;
    into->n_irregular += from->n_irregular;
    reach_merge(&into->sum, &from->sum);
    for (size_t i = 0; i < from->offsets.n; i++)
        if (!spread_add(&into->offsets, from->offsets.entries[i].offset, from->offsets.entries[i].count))
            return false;
    spread_reduce(&into->offsets);
    return true;
}

/* Whether a row of its variable is one too many. */
static bool is_left_out(const struct model *model, const struct reach_row *kept, size_t n_of_variable,
                        const struct reach_row *row)
{
    return n_of_variable >= REACH_ROWS_MAX &&
           model->threads[kept->thread].process != model->threads[row->thread].process;
}

/* Puts the rows in order, one for each variable and thread. */
static bool merge_rows(struct model *model)
{
    struct reach_row *rows = model->reaches;
    size_t n = 0, first = 0;
    bool ok = true;
    if (model->n_reaches)
        qsort(rows, model->n_reaches, sizeof *rows, compare_rows);
    for (size_t i = 0; i < model->n_reaches; i++) {
        struct reach_row row = rows[i];
        if (n && rows[n - 1].variable != row.variable)
            first = n;
        if (n && compare_rows(&rows[n - 1], &row) == 0)
            ok = merge_row(&rows[n - 1], &row) && ok;
        else if (n == first || !is_left_out(model, &rows[n - 1], n - first, &row)) {
            rows[n++] = row;
            continue;
        }
        reach_row_fini(&row);
    }
    model->n_reaches = n;
    return ok;
}

int load_sides_apply_reaches(struct load_sides *sides, const struct raw_tree *tree, struct error *err)
{
    struct model *model = sides->model;
    size_t n_profiles, n_prior = model->n_reaches;
    if (!vec_reserve(&model->reaches, &model->cap_reaches, n_prior + sides->n_reaches + 1, sizeof *model->reaches))
        return error_memory(err);
    uint32_t *thread_of = threads_by_profile(model, &n_profiles);
    if (!thread_of)
        return error_memory(err);
    for (size_t i = 0; i < n_prior; i++) /* the threads of a database were in the order of their profiles */
        model->reaches[i].thread = thread_of[model->reaches[i].thread];
    for (size_t i = 0; i < sides->n_reaches; i++) {
        struct reach_row row = sides->reaches[i];
        row.variable = row.variable < tree->n_nodes ? tree->nodes[row.variable].variable : RAW_NONE;
        row.thread = row.thread < n_profiles ? thread_of[row.thread] : PLACE_UNKNOWN;
        if (row.variable != RAW_NONE && row.thread != PLACE_UNKNOWN)
            model->reaches[model->n_reaches++] = row;
        else
            reach_row_fini(&row);
    }
    sides->n_reaches = 0;
    free(thread_of);
    return merge_rows(model) ? 0 : error_memory(err);
}
