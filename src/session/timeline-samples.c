/* SPDX-License-Identifier: BSD-3-Clause */
/* Which data tasks worked on when: the time on CPUs belongs to the sample that ends it, as hpcquery sched variables
 * counts it. A stay, and the rest of those before it that had no sample, is tinted up to each sample in it. */
#include <stdlib.h>
#include <string.h>

#include "export/streams/sched-report.h"
#include "session/timeline.h"
#include "streams/schedule.h"

/* A stretch on a CPU. */
struct stretch {
    int64_t from_ns, to_ns;
    int32_t task, sample; /* sample: index, -1: none follows */
    uint16_t cpu;
};

/* A sample, and what it is in each way. */
struct sample {
    int64_t t_ns;
    size_t event;
    int32_t task;
    int32_t keys[TIME_BYS]; /* in the words of the timeline, where the way is by samples */
};

/* The tracks of one way: those of rows. */
struct tracks {
    bool is_made;
    struct level_track *rows; /* [n_rows] */
    struct level_stay *stays;
    struct level_block *blocks;
    struct level_top *tops;
};

struct time_samples {
    struct time_stream *of;
    struct sample *samples; /* [n_samples] by task and time */
    size_t n_samples, cap_samples;
    struct schedule_run *runs; /* [n_runs] by task and time, while stretches are made */
    size_t n_runs, cap_runs;
    struct stretch *stretches; /* [n_stretches] by task and time */
    size_t n_stretches, cap_stretches;
    struct tracks tracks[TIME_BYS];
    bool failed;
};

/* --- samples and stretches, on the clock of levels --- */

static int compare_samples(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void take_run(void *context, const struct schedule_run *run)
{
    struct time_samples *samples = context;
    struct schedule_run own = *run;
    own.from_ns = time_of_levels(samples->of, run->from_ns);
    own.to_ns = time_of_levels(samples->of, run->to_ns);
    if (vec_reserve(&samples->runs, &samples->cap_runs, samples->n_runs + 1, sizeof *samples->runs))
        samples->runs[samples->n_runs++] = own;
    else
        samples->failed = true;
}

static void add_stretch(struct time_samples *samples, struct stretch stretch)
{
    if (stretch.from_ns >= stretch.to_ns)
        return;
    if (vec_reserve(&samples->stretches, &samples->cap_stretches, samples->n_stretches + 1, sizeof *samples->stretches))
        samples->stretches[samples->n_stretches++] = stretch;
    else
        samples->failed = true;
}

/* Goes through the stays and samples of all tasks side by side. */
static void make_stretches(struct time_samples *samples)
{
    size_t at = 0, open = 0; /* open: the first stretch of the task that has no sample yet */
    for (size_t i = 0; i < samples->n_runs && !samples->failed; i++) {
        const struct schedule_run *run = &samples->runs[i];
        int64_t since_ns = run->from_ns;
        if (i && run[-1].task != run->task)
            open = samples->n_stretches;
        while (at < samples->n_samples &&
               (samples->samples[at].task < run->task ||
                (samples->samples[at].task == run->task && samples->samples[at].t_ns < since_ns)))
            at++;
        for (; at < samples->n_samples && samples->samples[at].task == run->task &&
               samples->samples[at].t_ns <= run->to_ns;
             at++) {
            add_stretch(samples, (struct stretch){since_ns, samples->samples[at].t_ns, run->task, -1, run->cpu});
            for (; open < samples->n_stretches; open++)
                samples->stretches[open].sample = (int32_t)at;
            since_ns = samples->samples[at].t_ns;
        }
        add_stretch(samples, (struct stretch){since_ns, run->to_ns, run->task, -1, run->cpu});
    }
}

/* What a sample is: its variable, the function that touched it, whether that was near. */
static void put_word(const struct stream *stream, const struct stream_event *event, enum time_by by, struct buf *out)
{
    const struct stream_type *type = stream_type_of(stream, event->id);
    const char *name = by == TIME_BY_VARIABLE ? "variable" : by == TIME_BY_FUNCTION ? "place" : "metrics";
    stream_put_field(stream, event, stream_field_of(type, name), out);
    if (by == TIME_BY_FUNCTION && out->len_bytes) {
        char *paren = strstr(out->data, " (");
        if (paren)
            *paren = '\0';
    } else if (by == TIME_BY_LOCAL) {
        bool is_far = out->len_bytes && strstr(out->data, "-rmt"),
             is_near = out->len_bytes && (strstr(out->data, "-lcl") || strstr(out->data, "-local"));
        out->len_bytes = 0;
        buf_printf(out, is_far ? "remote memory" : is_near ? "local memory" : "memory or cache not known");
    } else if (by == TIME_BY_VARIABLE && !out->len_bytes) {
        buf_printf(out, "<");
        stream_put_field(stream, event, stream_field_of(type, "class"), out);
        buf_printf(out, ">");
    } else if (!out->len_bytes) {
        buf_printf(out, "<unknown>");
    }
}

/* Takes the samples of a stream. */
static void take_samples(struct time_samples *samples, struct strtab *words)
{
    const struct stream *stream = samples->of->stream;
    int32_t id = stream_find_id(stream, "locus/sample");
    for (size_t i = 0; i < stream->n_events && id != STREAM_ID_NONE && !samples->failed; i++) {
        const struct stream_event *event = &stream->events[i];
        if (event->id != id)
            continue;
        samples->failed =
            !vec_reserve(&samples->samples, &samples->cap_samples, samples->n_samples + 1, sizeof *samples->samples);
        struct sample sample = {.t_ns = time_of_levels(samples->of, event->t_ns), .event = i, .task = event->task};
        for (unsigned by = TIME_BY_VARIABLE; by < TIME_BYS && !samples->failed; by++) {
            struct buf word = {0};
            put_word(stream, event, (enum time_by)by, &word);
            int64_t number = word.data && !word.failed ? strtab_intern(words, word.data) : -1;
            samples->failed |= number < 0 || number >= INT32_MAX;
            sample.keys[by] = (int32_t)number;
            buf_fini(&word);
        }
        if (!samples->failed)
            samples->samples[samples->n_samples++] = sample;
    }
    samples->failed |= samples->n_samples >= INT32_MAX;
}

int time_samples_make(struct time_stream *of, struct strtab *words, struct error *err)
{
    struct time_samples *made = calloc(1, sizeof *made);
    const struct schedule_sink sink = {.run = take_run, .context = made};
    struct schedule sched = {0};
    of->samples = made;
    if (!made)
        return error_memory(err);
    made->of = of;
    take_samples(made, words);
    int code = schedule_analyse(of->stream, NULL, &sink, &sched, err);
    schedule_close(&sched);
    if (made->n_samples)
        qsort(made->samples, made->n_samples, sizeof *made->samples, compare_samples);
    if (made->n_runs)
        qsort(made->runs, made->n_runs, sizeof *made->runs, schedule_compare_runs);
    if (code == 0)
        make_stretches(made);
    free(made->runs);
    made->runs = NULL;
    return code || !made->failed ? code : error_memory(err);
}

void time_samples_free(struct time_samples *samples)
{
    for (unsigned by = 0; samples && by < TIME_BYS; by++) {
        free(samples->tracks[by].rows);
        free(samples->tracks[by].stays);
        free(samples->tracks[by].blocks);
        free(samples->tracks[by].tops);
    }
    if (samples) {
        free(samples->samples);
        free(samples->runs);
        free(samples->stretches);
    }
    free(samples);
}

size_t time_samples_count(const struct time_samples *samples)
{
    return samples->n_samples;
}

/* --- sums --- */

void time_samples_add(const struct time_samples *samples, enum time_by by, int64_t from_ns, int64_t to_ns,
                      struct time_key *keys, struct time_key *none)
{
    for (size_t i = 0; i < samples->n_stretches; i++) {
        const struct stretch *stretch = &samples->stretches[i];
        int64_t begin_ns = stretch->from_ns > from_ns ? stretch->from_ns : from_ns;
        int64_t end_ns = stretch->to_ns < to_ns ? stretch->to_ns : to_ns;
        const struct sample *sample = stretch->sample < 0 ? NULL : &samples->samples[stretch->sample];
        struct time_key *key = sample && sample->t_ns <= to_ns ? &keys[sample->keys[by]] : none;
        key->ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
    }
}

/* --- tracks --- */

/* The rows of a stretch: that of its task, or of its CPU; SIZE_MAX: none. */
static size_t row_of(const struct time_samples *samples, const struct stretch *stretch, bool of_cpu)
{
    return of_cpu ? levels_find(&samples->of->levels, LEVEL_CPU, stretch->cpu)
                  : levels_find(&samples->of->levels, LEVEL_TASK, stretch->task);
}

/* What can be tinted: stretches that a sample ends, which have a row each. */
static size_t row_to_tint(const struct time_samples *samples, size_t i, bool of_cpu)
{
    const struct stretch *stretch = &samples->stretches[i];
    return stretch->sample < 0 || (of_cpu && stretch->cpu == STREAM_NO_CPU) ? SIZE_MAX
                                                                            : row_of(samples, stretch, of_cpu);
}

static int compare_stays(const void *a, const void *b)
{
    const struct level_stay *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* Puts the stays of a row in order, and makes none of them lie over another one. */
static void settle(struct tracks *tracks, size_t row, size_t first_block, size_t first_top)
{
    struct level_track *track = &tracks->rows[row];
    struct level_stay *stays = tracks->stays + (track->stays - tracks->stays);
    int64_t known_ns = INT64_MIN;
    if (track->n)
        qsort(stays, track->n, sizeof *stays, compare_stays);
    for (size_t i = 0; i < track->n; i++) {
        stays[i].from_ns = stays[i].from_ns < known_ns ? known_ns : stays[i].from_ns;
        stays[i].to_ns = stays[i].to_ns < stays[i].from_ns ? stays[i].from_ns : stays[i].to_ns;
        known_ns = stays[i].to_ns;
    }
    level_sum_up(stays, track->n, tracks->blocks + first_block, tracks->tops + first_top);
    track->blocks = tracks->blocks + first_block;
    track->tops = tracks->tops + first_top;
}

/* Makes the tracks of one way from rows that know how many stays they have. */
static int fill_tracks(struct time_samples *samples, enum time_by by, struct tracks *tracks, struct error *err)
{
    size_t n_rows = samples->of->levels.n_rows, n = 0, n_blocks = 0, n_tops = 0;
    for (size_t row = 0; row < n_rows; row++) {
        n_blocks += level_n_blocks(tracks->rows[row].n);
        n_tops += level_n_tops(tracks->rows[row].n);
        n += tracks->rows[row].n;
    }
    tracks->stays = calloc(n + 1, sizeof *tracks->stays);
    tracks->blocks = calloc(n_blocks + 1, sizeof *tracks->blocks);
    tracks->tops = calloc(n_tops + 1, sizeof *tracks->tops);
    if (!tracks->stays || !tracks->blocks || !tracks->tops)
        return error_memory(err);
    n = 0;
    for (size_t row = 0; row < n_rows; row++) {
        tracks->rows[row].stays = tracks->stays + n;
        n += tracks->rows[row].n;
        tracks->rows[row].n = 0;
    }
    for (size_t i = 0; i < 2 * samples->n_stretches; i++) {
        const struct stretch *stretch = &samples->stretches[i / 2];
        size_t row = row_to_tint(samples, i / 2, i % 2);
        if (row == SIZE_MAX)
            continue;
        struct level_track *track = &tracks->rows[row];
        tracks->stays[(size_t)(track->stays - tracks->stays) + track->n++] = (struct level_stay){
            stretch->from_ns, stretch->to_ns, samples->samples[stretch->sample].keys[by], LEVEL_RUNNING, 0, 0};
    }
    n_blocks = n_tops = 0;
    for (size_t row = 0; row < n_rows; row++) {
        settle(tracks, row, n_blocks, n_tops);
        n_blocks += level_n_blocks(tracks->rows[row].n);
        n_tops += level_n_tops(tracks->rows[row].n);
    }
    return 0;
}

int time_samples_track(struct time_samples *samples, enum time_by by, struct error *err)
{
    struct tracks *tracks = &samples->tracks[by];
    if (tracks->is_made)
        return 0;
    tracks->rows = calloc(samples->of->levels.n_rows + 1, sizeof *tracks->rows);
    if (!tracks->rows)
        return error_memory(err);
    for (size_t i = 0; i < 2 * samples->n_stretches; i++) {
        size_t row = row_to_tint(samples, i / 2, i % 2);
        if (row != SIZE_MAX)
            tracks->rows[row].n++;
    }
    int code = fill_tracks(samples, by, tracks, err);
    tracks->is_made = code == 0;
    return code;
}

const struct level_track *time_samples_row(const struct time_samples *samples, enum time_by by, size_t row)
{
    return &samples->tracks[by].rows[row];
}
