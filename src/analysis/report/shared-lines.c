/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache lines that several threads use: what the samples say, and what watchpoints found: see patterns.h, which has
 * the rules. */
#include "analysis/report/patterns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SAMPLES_MIN 16
#define THREAD_SAMPLES_MIN 3
#define STORES_MIN 2
#define PART_MIN 0.05
#define STORES_PART_MIN 0.005 /* few: see the class shared read-write */
#define MUCH_PERCENT 30.0     /* of a variable's samples, on lines that threads share ... */
#define MUCH_SAMPLES 32       /* ... and these */

const char *line_sharing_name(enum line_sharing sharing)
{
    static const char *const names[] = {"false sharing", "true sharing", "true and false sharing", "shared"};
    return names[sharing];
}

const char *line_verdict_name(enum line_verdict verdict)
{
    static const char *const names[] = {"not verified", "none", "true sharing", "false sharing",
                                        "true and false sharing"};
    return names[verdict];
}

/* A thread's samples of one variable on one line. */
struct use {
    uint32_t process, thread, row;
    uint64_t line, n_samples;
    const struct reach_line *from;
};

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    const uint64_t xs[] = {x->process, x->line, x->thread, x->row}, ys[] = {y->process, y->line, y->thread, y->row};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

static bool writes(const struct use *use)
{
    uint64_t n = use->from->n_stores;
    return n >= STORES_MIN && (double)n >= STORES_PART_MIN * (double)use->n_samples;
}

/* What two threads have in common. */
static double in_common(const struct use *a, const struct use *b)
{
    uint64_t bytes = (a->from->read_at | a->from->written_at) & (b->from->read_at | b->from->written_at);
    double sum = 0;
    for (unsigned slot = 0; slot < PATTERN_SLOTS; slot++)
        if (bytes >> 4 * slot & 15)
            sum += fmin((double)a->from->slots[slot] / (double)a->n_samples,
                        (double)b->from->slots[slot] / (double)b->n_samples);
    return sum;
}

/* Leaves the uses of the threads that count; returns their number. */
static size_t keep_threads(struct use *uses, size_t n)
{
    uint64_t all = 0;
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        all += uses[i].n_samples;
    for (size_t i = 0; i < n; i++)
        if (uses[i].n_samples >= THREAD_SAMPLES_MIN && (double)uses[i].n_samples >= PART_MIN * (double)all)
            uses[n_kept++] = uses[i];
    return n_kept;
}

/* Adds the i-th of a line's uses; those of a thread lie together, one for each variable. */
static void add_use(struct shared_line *line, const struct use *uses, size_t i)
{
    const struct use *use = &uses[i];
    bool is_first = i == 0 || uses[i - 1].thread != use->thread, has_written = false;
    for (size_t k = i; k > 0 && uses[k - 1].thread == use->thread; k--)
        has_written = has_written || writes(&uses[k - 1]);
    line->n_samples += use->n_samples;
    line->n_own += use->row == line->row ? use->n_samples : 0;
    line->n_stores += use->from->n_stores;
    line->n_threads += is_first;
    line->n_writers += writes(use) && !has_written;
    if (use->row != line->row)
        line->other_row = use->row;
}

/* Whether the hardware saw another core's writes to the lines of a variable. */
static bool is_seen_modified(const struct patterns *patterns, uint32_t row)
{
    double loads;
    return report_is_seen_modified(patterns->report, &patterns->report->rows[row], &loads);
}

/* Judges a line; false when it is no candidate. Where the hardware says that somebody writes, it does not matter that
 * no sample says who: many events are of loads alone. */
static bool judge(const struct patterns *patterns, const struct use *uses, size_t n, struct shared_line *line)
{
    double weights = 0, sum = 0;
    const struct use *most = &uses[0];
    for (size_t i = 0; i < n; i++)
        most = uses[i].n_samples > most->n_samples ? &uses[i] : most;
    *line =
        (struct shared_line){.process = uses->process, .line = uses->line, .row = most->row, .other_row = most->row};
    line->is_seen_modified = is_seen_modified(patterns, most->row);
    for (size_t i = 0; i < n; i++) {
        add_use(line, uses, i);
        for (size_t k = 0; k < i; k++) {
            double weight = (double)uses[i].n_samples * (double)uses[k].n_samples;
            bool is_written = writes(&uses[i]) || writes(&uses[k]) || line->is_seen_modified;
            if (uses[i].thread == uses[k].thread || !is_written)
                continue;
            weights += weight;
            sum += weight * in_common(&uses[i], &uses[k]);
        }
    }
    bool is_compared = weights > 0 && line->n_threads > 1;
    if ((!is_compared && !line->is_seen_modified) || line->n_samples < LINE_SAMPLES_MIN)
        return false;
    line->is_candidate = true;
    if (!is_compared) {
        line->in_common = (double)NAN;
        line->sharing = SHARING_SEEN;
        return true;
    }
    line->in_common = sum / weights;
    line->sharing = line->in_common < 0.3 ? SHARING_FALSE : line->in_common > 0.7 ? SHARING_TRUE : SHARING_BOTH;
    return true;
}

static int compare_lines(const void *a, const void *b)
{
    const struct shared_line *x = a, *y = b;
    if (x->is_candidate != y->is_candidate)
        return x->is_candidate ? -1 : 1;
    if (x->n_samples != y->n_samples)
        return x->n_samples > y->n_samples ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Where an address lies in the block of the variable that has most samples and holds it; UINT64_MAX: in none. */
static uint64_t offset_of(const struct patterns *patterns, uint32_t process, uint32_t row, uint64_t address)
{
    for (size_t i = 0; i < patterns->n_threads; i++) {
        const struct pattern_thread *thread = &patterns->threads[i];
        if (thread->row != row || thread->process != process)
            continue;
        for (size_t k = 0; k < REACH_BLOCKS && thread->sum.blocks[k].count; k++) {
            uint64_t block = thread->sum.blocks[k].address;
            if (address + PATTERN_LINE_BYTES > block && address <= block + thread->sum.last)
                return address > block ? address - block : 0;
        }
    }
    return UINT64_MAX;
}

/* The report's rows by variable of the model, UINT32_MAX for none: to be freed; NULL when out of memory. */
static uint32_t *rows_by_variable(const struct report *report)
{
    uint32_t *of_merged = malloc((report->n_variables + 1) * sizeof *of_merged);
    uint32_t *rows = malloc((report->model->n_variables + 1) * sizeof *rows);
    for (size_t i = 0; of_merged && i < report->n_variables; i++)
        of_merged[i] = UINT32_MAX;
    for (uint32_t r = 0; of_merged && r < report->n_rows; r++) {
        const struct variable *variable = report->rows[r].is_waiting ? NULL : report->rows[r].variable;
        size_t at = variable ? (size_t)(variable - report->variables) : report->n_variables;
        if (at < report->n_variables && of_merged[at] == UINT32_MAX)
            of_merged[at] = r;
    }
    for (size_t i = 0; of_merged && rows && i < report->model->n_variables; i++)
        rows[i] = of_merged[report->variable_of[i]];
    free(of_merged);
    return rows;
}

/* The uses of all lines; a variable of several allocation paths has those of all of them. False when out of memory. */
static bool take_uses(const struct patterns *patterns, const uint32_t *rows, struct use **uses, size_t *n_uses)
{
    const struct model *model = patterns->report->model;
    size_t capacity = 0;
    *n_uses = 0;
    for (size_t i = 0; i < model->n_reaches; i++) {
        const struct reach_row *from = &model->reaches[i];
        uint32_t row = rows[from->variable];
        if (!vec_reserve(uses, &capacity, *n_uses + from->n_lines + 1, sizeof **uses))
            return false;
        for (size_t k = 0; row != UINT32_MAX && k < from->n_lines; k++)
            (*uses)[(*n_uses)++] = (struct use){.process = model->threads[from->thread].process,
                                                .thread = from->thread,
                                                .row = row,
                                                .line = from->lines[k].line,
                                                .n_samples = reach_line_total(&from->lines[k]),
                                                .from = &from->lines[k]};
    }
    return true;
}

/* Finds the candidates, once the rows are there. False when out of memory. */
static bool find_candidates(struct patterns *patterns)
{
    struct use *uses = NULL;
    size_t n_uses = 0;
    uint32_t *rows = rows_by_variable(patterns->report);
    bool ok = rows && take_uses(patterns, rows, &uses, &n_uses);
    if (ok && n_uses)
        qsort(uses, n_uses, sizeof *uses, compare_uses);
    for (size_t at = 0, end; ok && at < n_uses; at = end) {
        struct shared_line line;
        for (end = at + 1; end < n_uses && uses[end].line == uses[at].line && uses[end].process == uses[at].process;)
            end++;
        size_t n = keep_threads(&uses[at], end - at);
        if (!n || !judge(patterns, &uses[at], n, &line))
            continue;
        line.offset_bytes = offset_of(patterns, line.process, line.row, line.line * PATTERN_LINE_BYTES);
        ok = vec_reserve(&patterns->lines, &patterns->cap_lines, patterns->n_lines + 1, sizeof *patterns->lines);
        if (ok)
            patterns->lines[patterns->n_lines++] = line;
    }
    free(uses);
    free(rows);
    return ok;
}

/* --- what watchpoints found --- */

#define TRAPS_MIN 2
#define NONE_MIN 4

/* Both sides of a meeting, as far as they are known: that of the sample, and that of the watchpoint. */
struct pair {
    uint32_t process;
    uint64_t key;
    const struct meeting *sides[2];
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* The meetings of the model, put together: [*n], to be freed; NULL when out of memory. */
static struct pair *make_pairs(const struct model *model, size_t *n)
{
    struct pair *pairs = calloc(model->n_meetings + 1, sizeof *pairs);
    *n = 0;
    for (size_t i = 0; pairs && i < model->n_meetings; i++) {
        const struct meeting *meeting = &model->meetings[i];
        pairs[i] = (struct pair){.process = model->threads[meeting->thread].process, .key = meeting->key};
        pairs[i].sides[meeting->is_watcher] = meeting;
    }
    if (pairs && model->n_meetings)
        qsort(pairs, model->n_meetings, sizeof *pairs, compare_pairs);
    for (size_t i = 0; pairs && i < model->n_meetings; i++) {
        struct pair pair = pairs[i];
        if (*n && compare_pairs(&pairs[*n - 1], &pair) == 0) {
            for (int side = 0; side < 2; side++)
                pairs[*n - 1].sides[side] = pair.sides[side] ? pair.sides[side] : pairs[*n - 1].sides[side];
            continue;
        }
        pairs[(*n)++] = pair;
    }
    return pairs;
}

/* The line of a pair among the candidates and those that were added; added when there was a trap. NULL: none. */
static struct shared_line *line_of(struct patterns *patterns, const struct pair *pair, uint64_t address, uint32_t row)
{
    uint64_t line = address / PATTERN_LINE_BYTES;
    const struct meeting *any = pair->sides[1] ? pair->sides[1] : pair->sides[0];
    for (size_t i = 0; i < patterns->n_lines; i++)
        if (patterns->lines[i].process == pair->process && patterns->lines[i].line == line)
            return &patterns->lines[i];
    if (row == UINT32_MAX || !(any->n_same + any->n_beside) ||
        !vec_reserve(&patterns->lines, &patterns->cap_lines, patterns->n_lines + 1, sizeof *patterns->lines))
        return NULL;
    patterns->lines[patterns->n_lines] =
        (struct shared_line){.process = pair->process,
                             .line = line,
                             .row = row,
                             .other_row = row,
                             .in_common = (double)NAN,
                             .offset_bytes = offset_of(patterns, pair->process, row, line * PATTERN_LINE_BYTES)};
    return &patterns->lines[patterns->n_lines++];
}

static const char *field_at(const struct report_row *row, uint64_t offset)
{
    uint64_t at = row->element_bytes ? offset % row->element_bytes : offset;
    for (size_t i = 0; i < row->n_fields && offset != UINT64_MAX; i++)
        if (row->fields[i].name && row->fields[i].path && strchr(row->fields[i].path, '.') &&
            at >= row->fields[i].offset_bytes && at < row->fields[i].offset_bytes + row->fields[i].size_bytes)
            return row->fields[i].name;
    return NULL;
}

static void take_side(const struct patterns *patterns, const struct meeting *meeting, const uint32_t *rows,
                      struct line_side *side)
{
    const struct model *model = patterns->report->model;
    *side = (struct line_side){.row = UINT32_MAX, .offset_bytes = UINT64_MAX};
    if (!meeting)
        return;
    side->row = rows[meeting->variable];
    side->thread = meeting->thread;
    side->accesses = meeting->accesses;
    side->address = meeting->address;
    side->n_bytes = meeting->n_bytes;
    side->scope = meeting->scope;
    if (side->row == UINT32_MAX)
        return;
    side->offset_bytes = offset_of(patterns, model->threads[meeting->thread].process, side->row, meeting->address);
    side->field = field_at(&patterns->report->rows[side->row], side->offset_bytes);
}

static void add_pair(struct patterns *patterns, const struct pair *pair, const uint32_t *rows)
{
    const struct meeting *any = pair->sides[1] ? pair->sides[1] : pair->sides[0];
    struct shared_line *line = line_of(patterns, pair, any->address, rows[any->variable]);
    if (!line)
        return;
    line->n_same += any->n_same;
    line->n_beside += any->n_beside;
    line->n_none += any->n_none;
    if (any->n_same + any->n_beside <= line->n_most)
        return;
    line->n_most = any->n_same + any->n_beside;
    for (int i = 0; i < 2; i++)
        take_side(patterns, pair->sides[i], rows, &line->sides[i]);
}

static void conclude(struct shared_line *line)
{
    uint64_t n_traps = line->n_same + line->n_beside;
    if (n_traps < TRAPS_MIN)
        line->verdict = !n_traps && line->n_none >= NONE_MIN ? VERDICT_NONE : VERDICT_NOT_VERIFIED;
    else if ((double)line->n_same > 0.7 * (double)n_traps)
        line->verdict = VERDICT_TRUE;
    else
        line->verdict = (double)line->n_same < 0.3 * (double)n_traps ? VERDICT_FALSE : VERDICT_BOTH;
}

/* Adds what watchpoints found, for candidates and for other lines. False when out of memory. */
static bool verify(struct patterns *patterns)
{
    size_t n_pairs;
    struct pair *pairs = make_pairs(patterns->report->model, &n_pairs);
    uint32_t *rows = rows_by_variable(patterns->report);
    bool ok = pairs && rows;
    for (size_t i = 0; ok && i < n_pairs; i++)
        add_pair(patterns, &pairs[i], rows);
    for (size_t i = 0; ok && i < patterns->n_lines; i++)
        conclude(&patterns->lines[i]);
    patterns->is_watched = ok && n_pairs;
    free(pairs);
    free(rows);
    return ok;
}

static bool has_line(const struct patterns *patterns, uint32_t row)
{
    for (size_t i = 0; i < patterns->n_lines; i++)
        if (patterns->lines[i].row == row || patterns->lines[i].other_row == row)
            return true;
    return false;
}

/* Adds the variables that the hardware saw being shared, and of which no line stands out. False when out of memory. */
static bool add_seen(struct patterns *patterns)
{
    double loads;
    for (uint32_t r = 0; r < patterns->report->n_rows; r++) {
        const struct report_row *row = &patterns->report->rows[r];
        double modified = row->variable ? report_is_seen_modified(patterns->report, row, &loads) : 0;
        if (!(modified > 0) || has_line(patterns, r))
            continue;
        if (!vec_reserve(&patterns->lines, &patterns->cap_lines, patterns->n_lines + 1, sizeof *patterns->lines))
            return false;
        patterns->lines[patterns->n_lines++] = (struct shared_line){.line = LINE_ALL,
                                                                    .row = r,
                                                                    .other_row = r,
                                                                    .sharing = SHARING_SEEN,
                                                                    .in_common = (double)NAN,
                                                                    .n_samples = (uint64_t)modified,
                                                                    .offset_bytes = UINT64_MAX,
                                                                    .is_candidate = true,
                                                                    .is_seen_modified = true};
    }
    return true;
}

bool shared_lines_find(struct patterns *patterns)
{
    bool ok = find_candidates(patterns) && verify(patterns) && add_seen(patterns);
    if (ok && patterns->n_lines)
        qsort(patterns->lines, patterns->n_lines, sizeof *patterns->lines, compare_lines);
    return ok;
}

/* --- variables with such lines --- */

/* How threads share the line, as far as is known: not if watchpoints found otherwise, nor where they use the same bytes
 * and one of them writes. SHARING_SEEN: in no way that is known. */
static enum line_sharing sharing_of(const struct shared_line *line)
{
    enum line_sharing sharing = line->sharing;
    if (!line->is_candidate || line->verdict == VERDICT_NONE)
        return SHARING_SEEN;
    if (sharing == SHARING_BOTH && (line->verdict == VERDICT_TRUE || line->verdict == VERDICT_FALSE))
        sharing = line->verdict == VERDICT_TRUE ? SHARING_TRUE : SHARING_FALSE;
    bool is_otherwise = (sharing == SHARING_FALSE && line->verdict == VERDICT_TRUE) ||
                        (sharing == SHARING_TRUE && (line->verdict == VERDICT_FALSE || line->n_writers < 2));
    return is_otherwise ? SHARING_SEEN : sharing;
}

/* Whether threads read what one of them writes, at the same bytes, as far as is known. */
static bool is_of_one_writer(const struct shared_line *line)
{
    bool is_other = line->verdict == VERDICT_NONE || line->verdict == VERDICT_FALSE;
    return line->is_candidate && line->sharing == SHARING_TRUE && line->n_writers < 2 && !is_other;
}

bool shared_lines_part(const struct patterns *patterns, const struct pattern_row *row, enum line_sharing sharing,
                       struct shared_part *part)
{
    double n_samples = 0, n_own = 0;
    *part = (struct shared_part){0};
    for (size_t i = 0; i < patterns->n_lines; i++) {
        const struct shared_line *line = &patterns->lines[i];
        enum line_sharing found = sharing_of(line);
        bool is_such = sharing == SHARING_SEEN ? is_of_one_writer(line)
                                               : found == sharing || (sharing == SHARING_BOTH && found != SHARING_SEEN);
        if (!is_such || &patterns->report->rows[line->row] != row->row)
            continue;
        part->n_lines++;
        part->n_verified += line->verdict != VERDICT_NOT_VERIFIED;
        part->n_threads = line->n_threads > part->n_threads ? line->n_threads : part->n_threads;
        n_samples += (double)line->n_samples;
        n_own += (double)line->n_own;
    }
    part->percent = row->n_samples ? 100 * n_own / (double)row->n_samples : 0;
    return n_samples >= MUCH_SAMPLES && part->percent >= MUCH_PERCENT;
}

/* The rows of one variable, or of one of its allocation paths: the reports number these alike. */
static void mark_rows(struct report *report, const struct pattern_row *from, const bool shared[LINE_SHARINGS])
{
    ptrdiff_t variable = from->row->variable - report->variables;
    for (size_t i = 0; i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        if (row->variable && !row->part && !row->is_waiting && row->variable - report->variables == variable)
            memcpy(row->is_shared, shared, sizeof row->is_shared);
    }
}

int shared_lines_mark(struct report *report, struct error *err)
{
    struct patterns patterns;
    if (!report->has_causes || !report->model->n_reaches || report->model->n_threads < 2)
        return 0;
    int code = patterns_of_report(report, &patterns, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < patterns.n_rows; i++) {
        struct shared_part part;
        bool shared[LINE_SHARINGS], is_any = false;
        for (int sharing = 0; sharing < LINE_SHARINGS; sharing++) {
            shared[sharing] = shared_lines_part(&patterns, &patterns.rows[i], (enum line_sharing)sharing, &part);
            is_any = is_any || shared[sharing];
        }
        if (is_any)
            mark_rows(report, &patterns.rows[i], shared);
    }
    patterns_fini(&patterns);
    return 0;
}

/* --- what they may cost --- */

/* Samples of each row [n_rows] in the records, and of these, those on lines that threads share and one of them writes.
 * False when out of memory. */
static bool count_shared(const struct patterns *patterns, double *all, double *shared)
{
    const struct model *model = patterns->report->model;
    uint32_t *rows = rows_by_variable(patterns->report);
    for (size_t i = 0; rows && i < model->n_reaches; i++)
        if (rows[model->reaches[i].variable] != UINT32_MAX)
            all[rows[model->reaches[i].variable]] += (double)reach_total(&model->reaches[i].sum);
    for (size_t i = 0; rows && i < patterns->n_lines; i++) {
        const struct shared_line *line = &patterns->lines[i];
        if (!line->is_candidate || line->verdict == VERDICT_NONE)
            continue;
        shared[line->row] += (double)line->n_own;
        shared[line->other_row] += (double)(line->n_samples - line->n_own);
    }
    free(rows);
    return rows;
}

/* Takes so many percent of all samples out of what is known not to wait: a line that another core has just written is
 * no more in this one's caches, wherever its samples say that it comes from. A bound that lies beyond the row's share,
 * as that of data which fill the last-level cache does, stays there. */
static void open_interval(struct cause_sum *sum, double share, double percent)
{
    double open = fmin(sum->execution, percent);
    sum->execution -= open;
    sum->resident = fmin(sum->resident, sum->execution);
    sum->unverified += open;
    sum->memory_high = fmax(sum->memory_high, fmin(share, sum->memory_high + open));
    sum->memory_most = fmax(sum->memory_most, fmin(share, sum->memory_most + open));
}

int shared_lines_add_causes(struct report *report, struct error *err)
{
    struct patterns view = {.report = report};
    if (!report->model->n_reaches || report->model->n_threads < 2)
        return 0;
    double *all = calloc(report->n_rows + 1, sizeof *all), *shared = calloc(report->n_rows + 1, sizeof *shared);
    bool ok = all && shared && find_candidates(&view) && verify(&view) && count_shared(&view, all, shared);
    for (size_t i = 0; ok && i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        row->on_shared_lines = all[i] > 0 ? row->share * fmin(1, shared[i] / all[i]) : 0;
        open_interval(&row->causes, row->share, row->on_shared_lines);
    }
    free(view.lines);
    free(all);
    free(shared);
    return ok ? 0 : error_memory(err);
}
