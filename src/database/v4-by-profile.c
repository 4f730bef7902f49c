/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.db: the values of each thread. Only contexts that the thread was in are held in memory. */
#include <stdlib.h>
#include <string.h>

#include "database/v4.h"

enum { VALUE_BYTES = 10, INDEX_BYTES = 12 };

/* What one worker makes: the contexts of one profile, in ascending order. */
struct profile_maker {
    struct v4_values *values;
    uint64_t *touched; /* [n_words] bit by scope */
    uint32_t *ranks;   /* [n_words] bits set before the word */
    uint32_t *scopes;  /* [n_scopes] that are touched */
    size_t n_scopes, cap_scopes;
    double *exclusive, *inclusive; /* [n_scopes][n_metrics] */
    double *direct;                /* the same, without the values of loops in a scope */
    size_t cap_exclusive, cap_inclusive, cap_direct;
    char *bytes, *index; /* of the profile */
    size_t cap_bytes, cap_index, n_values, n_indices;
};

struct profile_makers {
    struct v4_values *values;
    struct profile_maker *all; /* [job->n_threads] */
    struct v4_baton baton;
};

static size_t count_words(const struct profile_maker *maker)
{
    return maker->values->model->n_scopes / 64 + 1;
}

/* Marks the scopes of the cells and all scopes above them. */
static int mark(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    (void)err;
    struct profile_maker *maker = context;
    const struct scope *scopes = maker->values->model->scopes;
    for (size_t i = 0; i < n_cells; i++) {
        uint32_t at = cells[i].scope;
        while (!(maker->touched[at / 64] >> at % 64 & 1)) {
            maker->touched[at / 64] |= UINT64_C(1) << at % 64;
            at = scopes[at].parent;
        }
    }
    return 0;
}

static size_t rank_of(const struct profile_maker *maker, uint32_t scope)
{
    uint64_t below = maker->touched[scope / 64] & ((UINT64_C(1) << scope % 64) - 1);
    return maker->ranks[scope / 64] + (size_t)__builtin_popcountll(below);
}

/* Lists the marked scopes and makes zeroed room for their values. */
static int list_scopes(struct profile_maker *maker, struct error *err)
{
    size_t n_metrics = maker->values->model->n_metrics, n = 0;
    for (size_t w = 0; w < count_words(maker); w++) {
        maker->ranks[w] = (uint32_t)n;
        n += (size_t)__builtin_popcountll(maker->touched[w]);
    }
    maker->n_scopes = 0;
    if (!vec_reserve(&maker->scopes, &maker->cap_scopes, n + 1, sizeof *maker->scopes) ||
        !vec_reserve(&maker->exclusive, &maker->cap_exclusive, n * n_metrics + 1, sizeof(double)) ||
        !vec_reserve(&maker->inclusive, &maker->cap_inclusive, n * n_metrics + 1, sizeof(double)) ||
        !vec_reserve(&maker->direct, &maker->cap_direct, n * n_metrics + 1, sizeof(double)))
        return error_set(err, ERR_MEMORY, "out of memory for the values of %zu contexts", n);
    for (size_t w = 0; w < count_words(maker); w++)
        for (uint64_t bits = maker->touched[w]; bits; bits &= bits - 1)
            maker->scopes[maker->n_scopes++] = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(bits);
    memset(maker->exclusive, 0, n * n_metrics * sizeof(double));
    return 0;
}

static int add(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    (void)err;
    struct profile_maker *maker = context;
    size_t n_metrics = maker->values->model->n_metrics;
    for (size_t i = 0; i < n_cells; i++)
        maker->exclusive[rank_of(maker, cells[i].scope) * n_metrics + cells[i].metric] += cells[i].value;
    return 0;
}

/* Sums up inclusive values, of everything below, except that the total leaves out the data-centric tree; and exclusive
 * ones, of the lines and positions in a function. */
static void sum_up(struct profile_maker *maker)
{
    const struct scope *scopes = maker->values->model->scopes;
    size_t n = maker->values->model->n_metrics;
    memcpy(maker->inclusive, maker->exclusive, maker->n_scopes * n * sizeof(double));
    memcpy(maker->direct, maker->exclusive, maker->n_scopes * n * sizeof(double));
    for (size_t i = maker->n_scopes; i-- > 1;) {
        const struct scope *scope = &scopes[maker->scopes[i]];
        size_t above = rank_of(maker, scope->parent);
        for (size_t m = 0; scope->role != ROLE_DATACENTRIC && m < n; m++)
            maker->inclusive[above * n + m] += maker->inclusive[i * n + m];
        for (size_t m = 0; model_is_lexical(scope) && scope->parent && m < n; m++) {
            maker->exclusive[above * n + m] += maker->exclusive[i * n + m];
            maker->direct[above * n + m] += scope->kind == SCOPE_LOOP ? 0 : maker->direct[i * n + m];
        }
    }
}

static char *put_value(char *p, uint16_t id, double value)
{
    memcpy(p, &id, 2);
    memcpy(p + 2, &value, 8);
    return p + VALUE_BYTES;
}

static void note_word(const struct v4_layout *layout, uint32_t context, size_t word, uint64_t bits)
{
    uint64_t *present = &layout->present[context * layout->n_words + word];
    if ((__atomic_load_n(present, __ATOMIC_RELAXED) & bits) != bits)
        (void)__atomic_fetch_or(present, bits, __ATOMIC_RELAXED);
}

/* Records for the team which ids the context has, in ascending order. */
static void record_ids(const struct v4_values *values, uint32_t context, const char *at, const char *end)
{
    size_t word = 0;
    uint64_t bits = 0;
    for (; at < end; at += VALUE_BYTES) {
        uint16_t id;
        memcpy(&id, at, 2);
        if (id / 64 != word) {
            note_word(&values->layout, context, word, bits);
            word = id / 64;
            bits = 0;
        }
        bits |= UINT64_C(1) << id % 64;
    }
    note_word(&values->layout, context, word, bits);
}

/* Puts the values of row i as those of context id. */
static void put_row(struct profile_maker *maker, size_t i, uint32_t id)
{
    const struct v4_values *values = maker->values;
    size_t n = values->model->n_metrics, n_before = maker->n_values;
    const double *exclusive = &maker->exclusive[i * n], *inclusive = &maker->inclusive[i * n];
    bool is_loop = values->model->scopes[maker->scopes[i]].kind == SCOPE_LOOP;
    char *p = maker->bytes + VALUE_BYTES * maker->n_values;
    for (size_t k = 0; k < values->columns->n_pairs; k++) {
        uint32_t m = values->metrics[k];
        uint16_t first = (uint16_t)(V4_IDS_PER_METRIC * k);
        if (is_loop && exclusive[m] != 0)
            p = put_value(p, (uint16_t)(first + V4_ID_LEXICAL), maker->direct[i * n + m] * values->scales[k]);
        if (exclusive[m] != 0 && maker->scopes[i])
            p = put_value(p, (uint16_t)(first + V4_ID_FUNCTION), exclusive[m] * values->scales[k]);
        if (inclusive[m] != 0)
            p = put_value(p, (uint16_t)(first + V4_ID_EXECUTION), inclusive[m] * values->scales[k]);
    }
    maker->n_values = (size_t)(p - maker->bytes) / VALUE_BYTES;
    if (maker->n_values == n_before)
        return;
    uint64_t start = n_before;
    char *index = maker->index + INDEX_BYTES * maker->n_indices++;
    memcpy(index, &id, 4);
    memcpy(index + 4, &start, 8);
    (void)__atomic_fetch_add(&values->n_values[id], maker->n_values - n_before, __ATOMIC_RELAXED);
    if (values->layout.present)
        record_ids(values, id, maker->bytes + VALUE_BYTES * n_before, p);
}

/* Fills the maker's bytes with the profile of thread t. */
static int make_profile(struct profile_maker *maker, size_t t, struct error *err)
{
    const struct v4_values *values = maker->values;
    memset(maker->touched, 0, count_words(maker) * sizeof *maker->touched);
    maker->touched[0] = 1;
    size_t profile = values->model->threads[t].profile;
    int code = values->source->visit(values->source->self, profile, mark, maker, err);
    if (code == 0)
        code = list_scopes(maker, err);
    if (code == 0)
        code = values->source->visit(values->source->self, profile, add, maker, err);
    if (code != 0)
        return code;
    sum_up(maker);
    maker->n_values = maker->n_indices = 0;
    size_t n_most = (maker->n_scopes + 1) * values->n_ids;
    size_t len_index = (maker->n_scopes + 1) * INDEX_BYTES + 8;
    if (!vec_reserve(&maker->bytes, &maker->cap_bytes, n_most * VALUE_BYTES + 8 + len_index, 1) ||
        !vec_reserve(&maker->index, &maker->cap_index, len_index, 1))
        return error_set(err, ERR_MEMORY, "out of memory for %zu values", n_most);
    for (size_t i = 0; i < maker->n_scopes; i++)
        put_row(maker, i, maker->scopes[i]);
    put_row(maker, 0, values->n_contexts - 1); /* the entry point of all code */
    return 0;
}

/* Pads with zeros to a multiple of 8 bytes; returns the new length. */
static size_t padded(char *bytes, size_t len_bytes)
{
    memset(bytes + len_bytes, 0, -len_bytes % 8);
    return len_bytes + -len_bytes % 8;
}

/* In the profile's turn: takes its place in the file, and says where the next one begins. */
static int take_place(struct profile_makers *makers, size_t len_bytes, uint64_t *place, struct error *err)
{
    struct v4_values *values = makers->values;
    if (makers->baton.mine)
        return v4_baton_take(&makers->baton, len_bytes, place, err);
    *place = values->profile_end;
    values->profile_end += len_bytes;
    return 0;
}

static int write_profile(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    struct profile_makers *makers = context;
    struct profile_maker *maker = &makers->all[worker];
    struct v4_values *values = maker->values;
    size_t t = makers->baton.mine ? makers->baton.mine[i] : i;
    int code = make_profile(maker, t, err);
    if (code != 0)
        return code;
    size_t len_values = padded(maker->bytes, maker->n_values * VALUE_BYTES);
    size_t len_index = padded(maker->index, maker->n_indices * INDEX_BYTES);
    uint64_t at = 0;
    /* one write, because others wait for the file meanwhile */
    memcpy(maker->bytes + len_values, maker->index, len_index);
    if (!workers_turn(workers, i))
        return error_set(err, ERR_USAGE, "interrupted");
    code = take_place(makers, len_values + len_index, &at, err);
    if (code != 0)
        return code;
    values->places[t + 1] = (struct v4_place){
        .n_values = maker->n_values, .values = at, .indices = at + len_values, .n_indices = (uint32_t)maker->n_indices};
    workers_turned(workers, i);
    return spill_write_at(values->profile_fd, values->profile_path, at, maker->bytes, len_values + len_index, err);
}

static void set_ids(const struct model *model, const struct thread *thread, struct v4_profile *profile)
{
    const struct process *process = &model->processes[thread->process];
    profile->n_ids = 3;
    profile->ids[0] = (struct v4_id){V4_ID_NODE, 1, 0, process->host_id ? strtoull(process->host_id, NULL, 16) : 0};
    profile->ids[1] = model_has_ranks(model)
                          ? (struct v4_id){V4_ID_RANK, 0, thread->process, process->rank}
                          : (struct v4_id){V4_ID_RANK, V4_ID_IS_PROCESS, thread->process, process->pid};
    profile->ids[2] = (struct v4_id){V4_ID_THREAD, 0, thread->id, thread->thread_id};
}

/* Makes the beginning of the file, with its table still empty. */
static int make_head(struct v4_values *values, struct error *err)
{
    const struct model *model = values->model;
    size_t n = model->n_threads + 1;
    struct v4_file file = {.kind = V4_PROFILE, .n_profiles = n};
    struct v4_id *ids = calloc(3 * n, sizeof *ids);
    file.profiles = calloc(n, sizeof *file.profiles);
    int code = ids && file.profiles ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        file.profiles[i].ids = &ids[3 * i];
        file.profiles[i].flags = i == 0;
        if (i > 0)
            set_ids(model, &model->threads[i - 1], &file.profiles[i]);
    }
    if (code == 0)
        code = v4_write(&file, &values->head, err);
    free(file.profiles);
    free(ids);
    return code;
}

static int make_makers(struct profile_makers *makers, struct error *err)
{
    struct v4_values *values = makers->values;
    makers->all = calloc(values->job->n_threads, sizeof *makers->all);
    bool ok = makers->all != NULL;
    for (size_t i = 0; ok && i < values->job->n_threads; i++) {
        struct profile_maker *maker = &makers->all[i];
        maker->values = values;
        maker->touched = calloc(count_words(maker), sizeof *maker->touched);
        maker->ranks = calloc(count_words(maker), sizeof *maker->ranks);
        ok = maker->touched && maker->ranks;
    }
    return ok ? 0 : error_memory(err);
}

static void free_makers(struct profile_makers *makers)
{
    for (size_t i = 0; makers->all && i < makers->values->job->n_threads; i++) {
        struct profile_maker *maker = &makers->all[i];
        void *owned[] = {maker->touched,   maker->ranks,  maker->scopes, maker->exclusive,
                         maker->inclusive, maker->direct, maker->bytes,  maker->index};
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            free(owned[k]);
    }
    free(makers->all);
}

/* In a team a turn waits for messages, and not every MPI lets any thread receive them. */
static int write_profiles(struct profile_makers *makers, struct error *err)
{
    const struct v4_values *values = makers->values;
    struct job job = *values->job;
    bool is_team = team_is_several(job.team);
    struct workers workers = {.job = &job,
                              .phase = "writing values by profile",
                              .n_tasks = is_team ? makers->baton.n_mine : values->model->n_threads,
                              .task = write_profile,
                              .context = makers};
    if (is_team && !job.team->any_thread)
        job.n_threads = 1;
    int code = workers_run(&workers, err);
    if (is_team)
        v4_baton_drop(&makers->baton);
    return code;
}

int v4_values_by_profile(struct v4_values *values, struct error *err)
{
    struct profile_makers makers = {.values = values};
    bool is_team = team_is_several(values->job->team);
    int code = team_leads(values->job->team) ? make_head(values, err) : 0;
    if (code == 0) {
        values->profile_end = values->head.len_bytes ? values->head.len_bytes - 8 : 0; /* without the mark at its end */
        code = make_makers(&makers, err);
    }
    if (is_team)
        code = team_agree(values->job->team, code, err);
    if (code == 0 && is_team)
        code = v4_baton_init(&makers.baton, values, err);
    if (code == 0)
        code = write_profiles(&makers, err);
    if (is_team)
        code = team_agree(values->job->team, code, err);
    if (is_team && code == 0)
        code = v4_team_profiles(values, err);
    free_makers(&makers);
    v4_baton_fini(&makers.baton);
    return code;
}
