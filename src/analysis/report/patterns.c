/* SPDX-License-Identifier: BSD-3-Clause */
/* How threads use variables: see patterns.h, which has the rules. */
#include "analysis/report/patterns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "structure/cfg/cfg.h"

#define NO_ROW UINT32_MAX
#define AGREES 0.5
#define BLOCKS_AGREE 0.8
#define OWNS 0.9
#define ENTRIES_MIN 24  /* exact offsets for an agreement by them */
#define STEP_LEAST 256  /* bytes of an instruction's stride: unrolled loops make smaller ones of dense walks ... */
#define STEP_ELEMENTS 2 /* ... and of a walk along one field */

const char *use_class_name(enum use_class class)
{
    static const char *const names[USE_CLASSES] = {"too few samples",   "single owner",    "blocked by thread",
                                                   "interleaved",       "streaming",       "random",
                                                   "shared read-write", "shared read-only"};
    return names[class];
}

const char *use_confidence_name(enum use_confidence confidence)
{
    static const char *const names[] = {"low", "medium", "high"};
    return names[confidence];
}

/* --- threads --- */

/* The report's rows of data by scope, NO_ROW for none: [n_scopes], to be freed; NULL when out of memory. */
static uint32_t *rows_by_scope(const struct report *report)
{
    size_t n = report->model->n_scopes;
    uint32_t *row_of = malloc((n + 1) * sizeof *row_of);
    for (size_t i = 0; row_of && i < n; i++)
        row_of[i] = NO_ROW;
    for (uint32_t r = 0; row_of && r < report->n_rows; r++) {
        const struct variable *variable = report->rows[r].is_waiting ? NULL : report->rows[r].variable;
        bool is_data = variable && variable->class < CLASS_UNATTRIBUTED;
        for (size_t i = 0; is_data && i < variable->n_scopes; i++)
            if (row_of[variable->scopes[i]] == NO_ROW)
                row_of[variable->scopes[i]] = r;
    }
    return row_of;
}

static int compare_threads(const void *a, const void *b)
{
    const struct pattern_thread *x = a, *y = b;
    const uint32_t xs[] = {x->row, x->process, x->thread}, ys[] = {y->row, y->process, y->thread};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

/* Adds up the parts of one thread that are of several allocation paths. */
static void merge_threads(struct patterns *patterns)
{
    struct pattern_thread *threads = patterns->threads;
    size_t n = 0;
    if (patterns->n_threads)
        qsort(threads, patterns->n_threads, sizeof *threads, compare_threads);
    for (size_t i = 0; i < patterns->n_threads; i++) {
        if (!n || compare_threads(&threads[n - 1], &threads[i]) != 0) {
            threads[n++] = threads[i];
            continue;
        }
        threads[n - 1].n_samples += threads[i].n_samples;
        threads[n - 1].n_strided += threads[i].n_strided;
        threads[n - 1].n_irregular += threads[i].n_irregular;
        reach_merge(&threads[n - 1].sum, &threads[i].sum);
    }
    patterns->n_threads = n;
}

static bool take_threads(struct patterns *patterns, const uint32_t *row_of)
{
    const struct model *model = patterns->report->model;
    if (!vec_reserve(&patterns->threads, &patterns->cap_threads, model->n_reaches + 1, sizeof *patterns->threads))
        return false;
    for (size_t i = 0; i < model->n_reaches; i++) {
        const struct reach_row *from = &model->reaches[i];
        const struct variable *variable = &model->variables[from->variable];
        struct pattern_thread thread = {.row = variable->n_scopes ? row_of[variable->scopes[0]] : NO_ROW,
                                        .process = model->threads[from->thread].process,
                                        .thread = from->thread,
                                        .n_samples = reach_total(&from->sum),
                                        .n_strided = from->n_strided,
                                        .n_irregular = from->n_irregular,
                                        .sum = from->sum,
                                        .from = from};
        if (thread.row != NO_ROW && thread.n_samples)
            patterns->threads[patterns->n_threads++] = thread;
    }
    merge_threads(patterns);
    return true;
}

/* --- agreement --- */

/* Pairs of samples of one process: in one bin, and all; of them, those of one thread. */
struct agreement {
    double in_bin, in_bin_same, all, all_same;
};

static double agreement(const struct agreement *pairs)
{
    double q = pairs->all > 0 ? pairs->all_same / pairs->all : 1;
    return pairs->in_bin > 0 && q < 1 ? (pairs->in_bin_same / pairs->in_bin - q) / (1 - q) : NAN;
}

static double pairs_of(double n)
{
    return n * (n - 1);
}

/* The threads of one process that count, as a table of counts by bin. */
struct table {
    double *counts; /* [n_threads][n_bins] */
    size_t n_threads, n_bins;
};

static void add_table(struct agreement *pairs, const struct table *table)
{
    double all = 0;
    for (size_t bin = 0; bin < table->n_bins; bin++) {
        double n = 0;
        for (size_t t = 0; t < table->n_threads; t++) {
            double count = table->counts[t * table->n_bins + bin];
            pairs->in_bin_same += pairs_of(count);
            n += count;
        }
        pairs->in_bin += pairs_of(n);
        all += n;
    }
    for (size_t t = 0; t < table->n_threads; t++) {
        double n = 0;
        for (size_t bin = 0; bin < table->n_bins; bin++)
            n += table->counts[t * table->n_bins + bin];
        pairs->all_same += pairs_of(n);
    }
    pairs->all += pairs_of(all);
}

/* The end of the threads of the process that threads[at] is of, within the row. */
static size_t process_end(const struct patterns *patterns, const struct pattern_row *row, size_t at)
{
    size_t end = at;
    while (end < row->first + row->n && patterns->threads[end].process == patterns->threads[at].process)
        end++;
    return end;
}

/* How samples are sorted into bins. */
struct sorting {
    size_t n_bins;
    enum { BY_BIN, BY_BLOCK, BY_RANGE, BY_CHUNK } by;
    uint64_t low, period; /* BY_RANGE: lowest offset and length; BY_CHUNK: period */
};

static void sort_offsets(const struct sorting *sorting, const struct pattern_thread *thread, double *counts)
{
    const struct spread *offsets = &thread->from->offsets;
    for (size_t i = 0; i < offsets->n; i++) {
        uint64_t at = offsets->entries[i].offset;
        at = sorting->by == BY_CHUNK ? at % sorting->period : at - sorting->low;
        if (at < sorting->period)
            counts[(size_t)((double)at * (double)sorting->n_bins / (double)sorting->period)]++;
    }
}

/* blocks [REACH_BLOCKS * threads]: those of the process so far. */
static void sort_blocks(const struct pattern_thread *thread, uint64_t *blocks, double *counts)
{
    for (size_t i = 0; i < REACH_BLOCKS && thread->sum.blocks[i].count; i++) {
        size_t at = 0;
        while (blocks[at] && blocks[at] != thread->sum.blocks[i].address)
            at++;
        blocks[at] = thread->sum.blocks[i].address;
        counts[at] += (double)thread->sum.blocks[i].count;
    }
}

/* The agreement of a row's threads that count; NAN when it is not known, or out of memory. */
static double agreement_by(const struct patterns *patterns, const struct pattern_row *row, struct sorting sorting)
{
    struct agreement pairs = {0};
    if (sorting.by == BY_BLOCK)
        sorting.n_bins = REACH_BLOCKS * row->n;
    double *counts = calloc(row->n * sorting.n_bins + 1, sizeof *counts);
    uint64_t *blocks = calloc(REACH_BLOCKS * row->n + 1, sizeof *blocks);
    for (size_t at = row->first, end; counts && blocks && at < row->first + row->n; at = end) {
        struct table table = {.counts = counts, .n_bins = sorting.n_bins};
        end = process_end(patterns, row, at);
        memset(counts, 0, (end - at) * sorting.n_bins * sizeof *counts);
        memset(blocks, 0, REACH_BLOCKS * row->n * sizeof *blocks);
        for (size_t i = at; i < end; i++) {
            const struct pattern_thread *thread = &patterns->threads[i];
            double *of_thread = &counts[table.n_threads * sorting.n_bins];
            if (!thread->counts)
                continue;
            table.n_threads++;
            for (size_t bin = 0; sorting.by == BY_BIN && bin < REACH_BINS; bin++)
                of_thread[bin] = (double)thread->sum.bins[bin];
            if (sorting.by == BY_BLOCK)
                sort_blocks(thread, blocks, of_thread);
            else if (sorting.by != BY_BIN)
                sort_offsets(&sorting, thread, of_thread);
        }
        add_table(&pairs, &table);
    }
    free(counts);
    free(blocks);
    return agreement(&pairs);
}

/* --- a variable --- */

/* Makes all bins equally wide, and sums up. */
static void sum_row(struct patterns *patterns, struct pattern_row *row)
{
    uint32_t shift = 0;
    double owned = 0;
    row->first_offset = UINT64_MAX;
    for (size_t i = row->first; i < row->first + row->n; i++) {
        struct pattern_thread *thread = &patterns->threads[i];
        shift = thread->sum.shift > shift ? thread->sum.shift : shift;
        row->n_samples += thread->n_samples;
        row->n_loads += thread->sum.n_loads;
        row->n_stores += thread->sum.n_stores;
        row->first_offset = thread->sum.first < row->first_offset ? thread->sum.first : row->first_offset;
        row->last_offset = thread->sum.last > row->last_offset ? thread->sum.last : row->last_offset;
    }
    for (size_t at = row->first, end; at < row->first + row->n; at = end) {
        uint64_t most = 0;
        end = process_end(patterns, row, at);
        for (size_t i = at; i < end; i++) {
            struct pattern_thread *thread = &patterns->threads[i];
            thread->counts = 4 * thread->n_samples * row->n >= row->n_samples;
            row->n_counting += thread->counts;
            reach_widen(&thread->sum, shift);
            most = thread->n_samples > most ? thread->n_samples : most;
        }
        owned += (double)most;
    }
    row->owner = row->n_samples ? owned / (double)row->n_samples : 0;
}

/* The most threads that count in one process. */
static size_t team_of(const struct patterns *patterns, const struct pattern_row *row)
{
    size_t most = 0;
    for (size_t at = row->first, end; at < row->first + row->n; at = end) {
        size_t n = 0;
        end = process_end(patterns, row, at);
        for (size_t i = at; i < end; i++)
            n += patterns->threads[i].counts;
        most = n > most ? n : most;
    }
    return most;
}

/* How often the thread with most samples changes from one used bin to the next, in the first process with several
 * threads. */
static size_t count_changes(const struct patterns *patterns, const struct pattern_row *row)
{
    size_t n = 0, last = SIZE_MAX;
    size_t at = row->first, end = process_end(patterns, row, at);
    while (end - at < 2 && end < row->first + row->n) {
        at = end;
        end = process_end(patterns, row, at);
    }
    for (size_t bin = 0; bin < REACH_BINS; bin++) {
        size_t owner = SIZE_MAX;
        uint64_t most = 0;
        for (size_t i = at; i < end; i++)
            if (patterns->threads[i].counts && patterns->threads[i].sum.bins[bin] > most) {
                most = patterns->threads[i].sum.bins[bin];
                owner = i;
            }
        if (owner == SIZE_MAX)
            continue;
        n += last != SIZE_MAX && owner != last;
        last = owner;
    }
    return n;
}

static size_t n_offsets(const struct patterns *patterns, const struct pattern_row *row)
{
    size_t n = 0;
    for (size_t i = row->first; i < row->first + row->n; i++)
        n += patterns->threads[i].counts ? patterns->threads[i].from->offsets.n : 0;
    return n;
}

static double better(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static void find_places(const struct patterns *patterns, struct pattern_row *row)
{
    uint64_t span = row->last_offset - row->first_offset + 1;
    uint64_t width = UINT64_C(1) << patterns->threads[row->first].sum.shift;
    row->by_block = agreement_by(patterns, row, (struct sorting){.by = BY_BLOCK});
    row->by_place = agreement_by(patterns, row, (struct sorting){.by = BY_BIN, .n_bins = REACH_BINS});
    if (span / width < REACH_BINS / 16 && n_offsets(patterns, row) >= ENTRIES_MIN)
        row->by_place =
            better(row->by_place, agreement_by(patterns, row,
                                               (struct sorting){.by = BY_RANGE,
                                                                .n_bins = span < REACH_BINS ? span : REACH_BINS,
                                                                .low = row->first_offset,
                                                                .period = span}));
    row->n_changes = count_changes(patterns, row);
}

static void try_chunk(const struct patterns *patterns, struct pattern_row *row, size_t n_threads, uint64_t chunk)
{
    const struct sorting sorting = {.by = BY_CHUNK, .n_bins = 4 * n_threads, .period = n_threads * chunk};
    uint64_t span = row->last_offset - row->first_offset + 1;
    if (!chunk || 2 * n_threads * chunk > span)
        return;
    double found = agreement_by(patterns, row, sorting);
    if (!isnan(found) && (isnan(row->by_chunk) || found > row->by_chunk + 0.02)) {
        row->by_chunk = found;
        row->chunk_bytes = chunk;
    }
}

static void find_chunk(const struct patterns *patterns, struct pattern_row *row)
{
    size_t n_threads = team_of(patterns, row);
    uint64_t element = row->row->element_bytes;
    row->by_chunk = NAN;
    if (n_threads < 2 || n_offsets(patterns, row) < ENTRIES_MIN)
        return;
    for (uint64_t chunk = 4; chunk <= 64; chunk += 4)
        try_chunk(patterns, row, n_threads, chunk);
    for (uint64_t chunk = 72; chunk <= 512; chunk += 8)
        try_chunk(patterns, row, n_threads, chunk);
    for (uint64_t k = 1; element && k <= 16; k++)
        try_chunk(patterns, row, n_threads, k * element);
    for (uint64_t chunk = 1024; chunk <= (row->last_offset - row->first_offset) / n_threads / 2; chunk *= 2)
        try_chunk(patterns, row, n_threads, chunk);
}

/* The order of the samples, and how far it is from being another one, in percent. */
static enum use_order order_of(const struct patterns *patterns, const struct pattern_row *row, double *margin)
{
    double strided = 0, irregular = 0, steps = 0, forward = 0;
    for (size_t i = row->first; i < row->first + row->n; i++) {
        const struct pattern_thread *thread = &patterns->threads[i];
        if (!thread->counts)
            continue;
        double n = (double)thread->sum.n_steps, up = (double)thread->sum.n_forward;
        strided += (double)thread->n_strided;
        irregular += (double)thread->n_irregular;
        steps += n;
        forward += up;
    }
    *margin = 0;
    if (2 * (strided + irregular) >= (double)row->n_samples) {
        double part = strided / (strided + irregular);
        *margin = part >= 0.8 ? part - 0.8 : 0.3 - part;
        return part >= 0.8 ? ORDER_FORWARD : part <= 0.3 ? ORDER_RANDOM : ORDER_UNKNOWN;
    }
    double part = steps >= 32 ? fmax(forward, steps - forward) / steps : 0;
    *margin = part >= 0.8 ? part - 0.8 : 0.65 - part;
    return part >= 0.8 ? ORDER_FORWARD : part >= 0.5 && part <= 0.65 ? ORDER_RANDOM : ORDER_UNKNOWN;
}

/* The step that most of the variable's samples are of, by the nests of their loops; 0: there is none. */
static uint64_t step_by_nests(const struct patterns *patterns, const struct variable *variable)
{
    const struct report *report = patterns->report;
    const struct model *model = report->model;
    double all = 0, most = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < model->n_nest_counts; i++) {
        const struct nest_count *count = &model->nest_counts[i];
        if (!report_is_of_event(report, count->event) || count->move != NEST_CONSTANT ||
            &report->variables[report->variable_of[count->variable]] != variable)
            continue;
        all += (double)count->n_samples;
        if ((double)count->n_samples > most) {
            most = (double)count->n_samples;
            bytes = count->stride_bytes;
        }
    }
    return 2 * all >= (double)report_samples_of(report, variable) ? bytes : 0;
}

bool patterns_is_far(const struct variable_walk *walk, uint64_t element_bytes)
{
    return walk->kind == PATTERN_STRIDED && walk->stride_bytes >= STEP_LEAST &&
           walk->stride_bytes >= STEP_ELEMENTS * element_bytes;
}

/* Sets the row's step: by the nests of its loops, or by the strides of the instructions. */
static void set_step(const struct patterns *patterns, struct pattern_row *row)
{
    const struct report *report = patterns->report;
    const struct variable *variable = row->row->variable;
    const struct variable_walk *most = NULL;
    double all = 0, far = 0;
    row->step_bytes = step_by_nests(patterns, variable);
    for (size_t i = 0; i < variable->n_walks && !row->step_bytes; i++) {
        const struct variable_walk *walk = &variable->walks[i];
        if (!report_is_of_event(report, walk->event) || walk->kind != PATTERN_STRIDED)
            continue;
        all += walk->samples;
        if (!patterns_is_far(walk, row->row->element_bytes))
            continue;
        far += walk->samples;
        most = !most || walk->samples > most->samples ? walk : most;
    }
    if (most && far > all / 2) {
        row->step_bytes = most->stride_bytes;
        row->is_least = pattern_is_least(most->stride_bytes);
    }
}

/* Whether the threads write, as far as the sampled instructions say. */
static bool is_written(const struct patterns *patterns, const struct pattern_row *row, double *margin)
{
    double loads = 0, stores = 0;
    for (size_t i = row->first; i < row->first + row->n; i++) {
        const struct pattern_thread *thread = &patterns->threads[i];
        loads += thread->counts ? (double)thread->sum.n_loads : 0;
        stores += thread->counts ? (double)thread->sum.n_stores : 0;
    }
    *margin = stores > 0 ? stores / (loads + stores) - 0.01 : (loads / (double)row->n_samples - 0.5) / 5;
    return stores >= 3 && stores >= 0.01 * (loads + stores);
}

/* The class of what several threads use all over. */
static enum use_class shared_class(const struct patterns *patterns, const struct pattern_row *row, double order_margin,
                                   double *margin)
{
    bool is_large = row->last_offset - row->first_offset >= USE_LARGE_BYTES;
    *margin = order_margin;
    if (is_large && row->order == ORDER_FORWARD)
        return USE_STREAMING;
    if (is_large && row->order == ORDER_RANDOM)
        return USE_RANDOM;
    return is_written(patterns, row, margin) ? USE_READ_WRITE : USE_READ_ONLY;
}

/* Decides; *margin: how clearly, as a part. */
static enum use_class decide(const struct patterns *patterns, struct pattern_row *row, double *margin)
{
    double order_margin;
    *margin = 0;
    row->order = order_of(patterns, row, &order_margin);
    if (row->order == ORDER_FORWARD && row->row->variable)
        set_step(patterns, row);
    if (row->n_samples < USE_SAMPLES_MIN || row->n_samples < USE_THREAD_SAMPLES_MIN * row->n_counting)
        return USE_TOO_FEW;
    bool is_own = row->row->variable && row->row->variable->class == CLASS_TLS;
    *margin = is_own ? 1 : row->owner - OWNS;
    if (is_own || row->owner >= OWNS)
        return USE_SINGLE;
    find_places(patterns, row);
    *margin = row->by_block - BLOCKS_AGREE;
    if (row->by_block >= BLOCKS_AGREE)
        return USE_SINGLE;
    *margin = (row->by_place - AGREES) / 2;
    if (row->by_place >= AGREES)
        return row->n_changes <= 2 * row->n_counting ? USE_BLOCKED : USE_INTERLEAVED;
    find_chunk(patterns, row);
    *margin = (row->by_chunk - AGREES) / 2;
    if (row->by_chunk >= AGREES)
        return USE_INTERLEAVED;
    return shared_class(patterns, row, order_margin, margin);
}

static void classify(struct patterns *patterns, struct pattern_row *row)
{
    double margin;
    row->by_place = row->by_chunk = row->by_block = NAN;
    sum_row(patterns, row);
    row->class = decide(patterns, row, &margin);
    if (row->class == USE_TOO_FEW || row->n_samples < 2 * USE_SAMPLES_MIN || margin < 0.05)
        row->confidence = CONFIDENCE_LOW;
    else
        row->confidence = margin >= 0.1 && row->n_samples >= 8 * USE_SAMPLES_MIN ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
}

static bool make_rows(struct patterns *patterns)
{
    patterns->rows = calloc(patterns->n_threads + 1, sizeof *patterns->rows);
    for (size_t i = 0; patterns->rows && i < patterns->n_threads;) {
        struct pattern_row *row = &patterns->rows[patterns->n_rows++];
        *row = (struct pattern_row){.row = &patterns->report->rows[patterns->threads[i].row], .first = i};
        while (i < patterns->n_threads && patterns->threads[i].row == patterns->threads[row->first].row)
            i++;
        row->n = i - row->first;
        classify(patterns, row);
    }
    return patterns->rows;
}

/* --- all of it --- */

int patterns_of_report(const struct report *report, struct patterns *patterns, struct error *err)
{
    *patterns = (struct patterns){.report = report};
    uint32_t *row_of = rows_by_scope(report);
    bool ok = row_of && take_threads(patterns, row_of) && make_rows(patterns) && shared_lines_find(patterns);
    free(row_of);
    if (ok)
        return 0;
    patterns_fini(patterns);
    return error_memory(err);
}

int patterns_make(const struct model *model, size_t metric, bool with_paths, struct patterns *patterns,
                  struct error *err)
{
    struct report *report = malloc(sizeof *report);
    *patterns = (struct patterns){0};
    int code = report ? report_make(model, metric, false, with_paths, report, err) : error_memory(err);
    if (code != 0) {
        free(report);
        return code;
    }
    code = patterns_of_report(report, patterns, err);
    patterns->made = report;
    if (code != 0)
        patterns_fini(patterns);
    return code;
}

/* Whether a variable of the report, or a part of one, has this name. */
static bool has_variable(const struct report *report, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < report->n_rows && !found; i++)
        found =
            report_is_named(&report->rows[i], name) ||
            (report->rows[i].part && strcmp(model_variable_name(report->model, report->rows[i].variable), name) == 0);
    return found;
}

int patterns_make_of(const struct model *model, size_t metric, bool with_paths, const char *variable,
                     struct patterns *patterns, struct error *err)
{
    int code = patterns_make(model, metric, with_paths, patterns, err);
    if (code != 0 || !variable || has_variable(patterns->report, variable))
        return code;
    code = report_refuse_variable(patterns->report, variable, err);
    patterns_fini(patterns);
    return code;
}

int patterns_refuse_variable(struct patterns *patterns, const char *name, struct error *err)
{
    patterns_fini(patterns);
    return error_set(err, ERR_NOT_FOUND, "no variable '%s' has places in memory that were sampled", name);
}

void patterns_fini(struct patterns *patterns)
{
    if (patterns->made)
        report_fini(patterns->made);
    free(patterns->made);
    free(patterns->threads);
    free(patterns->rows);
    free(patterns->lines);
    *patterns = (struct patterns){0};
}
