/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a version 4 database written by a team: see v4-values.h. The length of everything is worked out before
 * what comes behind it is written, so the bytes are those that one process would write. */
#include <stdlib.h>
#include <string.h>

#include "export/v4-export.h"
#include "export/v4-values.h"

enum { VALUE_BYTES = 10, INDEX_BYTES = 12, CELL_BYTES = 12, METRIC_BYTES = 10 };

#define NO_PLACE UINT64_MAX

static uint64_t round_up(uint64_t n_bytes)
{
    return (n_bytes + 7) / 8 * 8;
}

/* The sizes of all profiles, from the members that have written them. */
static int share_sizes(struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    size_t n = values->model->n_threads + 1;
    int64_t *sizes = calloc(2 * n, sizeof *sizes);
    int code = team_agree(team, sizes ? 0 : error_set(err, ERR_MEMORY, "out of memory"), err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        sizes[2 * i] = (int64_t)values->places[i].n_values;
        sizes[2 * i + 1] = values->places[i].n_indices;
    }
    if (code == 0)
        team->combine(team, sizes, 2 * n, TEAM_SUM);
    for (size_t i = 0; code == 0 && i < n; i++) {
        values->places[i].n_values = (uint64_t)sizes[2 * i];
        values->places[i].n_indices = (uint32_t)sizes[2 * i + 1];
    }
    free(sizes);
    return code;
}

static size_t owner_of(const struct v4_values *values, size_t t)
{
    return team_owner(values->job->team, values->model->threads[t].profile);
}

int v4_baton_init(struct v4_baton *baton, struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    size_t n = values->model->n_threads;
    *baton = (struct v4_baton){.values = values, .mine = calloc(n + 1, sizeof *baton->mine)};
    for (size_t t = 0; baton->mine && t < n; t++)
        if (owner_of(values, t) == team->rank)
            baton->mine[baton->n_mine++] = t;
    int64_t start = (int64_t)values->profile_end; /* only the leader knows it, the others have 0 */
    team->combine(team, &start, 1, TEAM_SUM);
    values->profile_end = baton->end = (uint64_t)start;
    return team_agree(team, baton->mine ? 0 : error_set(err, ERR_MEMORY, "out of memory"), err);
}

void v4_baton_fini(struct v4_baton *baton)
{
    free(baton->mine);
}

/* Where thread t's profile begins; NO_PLACE when that will not be known. */
static uint64_t receive_place(const struct v4_baton *baton, size_t t)
{
    const struct team *team = baton->values->job->team;
    uint64_t place = baton->end;
    if (t == 0 || owner_of(baton->values, t - 1) == team->rank)
        return place;
    struct buf message = {0};
    team->receive(team, owner_of(baton->values, t - 1), &message);
    memcpy(&place, message.data, sizeof place);
    buf_fini(&message);
    return place;
}

static void send_place(struct v4_baton *baton, size_t t, uint64_t place)
{
    const struct team *team = baton->values->job->team;
    baton->end = place;
    baton->n_done++;
    if (t + 1 < baton->values->model->n_threads && owner_of(baton->values, t + 1) != team->rank)
        team->send(team, owner_of(baton->values, t + 1), &place, sizeof place);
}

int v4_baton_take(struct v4_baton *baton, size_t len_bytes, uint64_t *place, struct error *err)
{
    size_t t = baton->mine[baton->n_done];
    *place = receive_place(baton, t);
    send_place(baton, t, *place == NO_PLACE ? NO_PLACE : *place + len_bytes);
    return *place == NO_PLACE ? error_set(err, ERR_USAGE, TEAM_ENDED) : 0;
}

void v4_baton_drop(struct v4_baton *baton)
{
    while (baton->n_done < baton->n_mine) {
        size_t t = baton->mine[baton->n_done];
        (void)receive_place(baton, t);
        send_place(baton, t, NO_PLACE);
    }
}

static void place_profiles(struct v4_values *values)
{
    for (size_t i = 1; i <= values->model->n_threads; i++) {
        struct v4_place *place = &values->places[i];
        place->values = values->profile_end;
        place->indices = place->values + round_up(VALUE_BYTES * place->n_values);
        values->profile_end = place->indices + round_up((uint64_t)INDEX_BYTES * place->n_indices);
    }
}

int v4_team_profiles(struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    int code = share_sizes(values, err);
    if (code != 0)
        return code;
    struct v4_layout *layout = &values->layout;
    team->combine(team, (int64_t *)(void *)values->n_values, values->n_contexts, TEAM_SUM);
    team->combine(team, (int64_t *)(void *)layout->present, values->n_contexts * layout->n_words, TEAM_OR);
    place_profiles(values);
    return 0;
}

struct v4_lengths v4_team_lengths(const struct v4_values *values, uint32_t first, uint32_t end)
{
    const struct v4_layout *layout = &values->layout;
    struct v4_lengths lengths = {0};
    for (uint32_t c = first; c < end; c++) {
        uint64_t n_metrics = 0;
        if (values->n_values[c] == 0)
            continue;
        for (size_t w = 0; w < layout->n_words; w++)
            n_metrics += (uint64_t)__builtin_popcountll(layout->present[c * layout->n_words + w]);
        lengths.n_bytes += round_up(CELL_BYTES * values->n_values[c]) + round_up(METRIC_BYTES * n_metrics);
        lengths.n_summary += V4_STATISTICS * n_metrics;
        lengths.n_contexts++;
    }
    return lengths;
}

void v4_team_divide(struct v4_values *values)
{
    const struct team *team = values->job->team;
    uint64_t n_all = 0, n = 0;
    values->layout.first = 0;
    values->layout.end = values->n_contexts;
    if (!team_is_several(team))
        return;
    values->layout.end = 0;
    for (uint32_t c = 0; c < values->n_contexts; c++)
        n_all += values->n_values[c] + 1;
    for (uint32_t c = 0; c < values->n_contexts; c++) {
        size_t rank = (size_t)((double)n / (double)n_all * (double)team->n_ranks);
        n += values->n_values[c] + 1;
        if (rank < team->rank)
            values->layout.first = c + 1;
        if (rank <= team->rank)
            values->layout.end = c + 1;
    }
}

/* The contexts of member rank: as v4_team_divide has found them there. */
static int take_own(struct v4_values *values, size_t rank, struct error *err)
{
    const struct team *team = values->job->team;
    struct model *model = values->model;
    struct buf message = {0};
    uint32_t first = 0;
    team->receive(team, rank, &message);
    if (message.failed || message.len_bytes < 4)
        return error_set(err, ERR_MEMORY, "out of memory for the sums of another process");
    memcpy(&first, message.data, 4);
    memcpy(model->own + first * model->n_metrics, message.data + 4, message.len_bytes - 4);
    buf_fini(&message);
    return 0;
}

int v4_team_own(struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    const struct model *model = values->model;
    int code = 0;
    if (team_leads(team)) {
        for (size_t rank = 1; rank < team->n_ranks; rank++) {
            int failed = take_own(values, rank, err);
            code = code ? code : failed;
        }
        return team_agree(team, code, err);
    }
    struct buf message = {0};
    uint32_t first = values->layout.first, end = values->layout.end;
    if (end > model->n_scopes)
        end = (uint32_t)model->n_scopes;
    buf_append(&message, &first, 4);
    if (first < end)
        buf_append(&message, model->own + first * model->n_metrics,
                   (size_t)(end - first) * model->n_metrics * sizeof(double));
    team->send(team, 0, message.data, message.failed ? 0 : message.len_bytes);
    buf_fini(&message);
    return team_agree(team, 0, err);
}
