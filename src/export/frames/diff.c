/* SPDX-License-Identifier: BSD-3-Clause */
/* Both profiles become one node for each name and place (frame_match); then they are compared node by node. */
#include "export/frames/forms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/path.h"
#include "export/text-cells.h"
#include "fmt/json.h"
#include "frame/ops.h"

struct side {
    struct frame *flat; /* a node for each name and place */
    double total;
};

struct diff {
    const struct diff_job *job;
    const char *column;
    struct side before, after;
    struct frame *both;
    struct frame_difference *found; /* [n_found] */
    double *noise;                  /* [n_found] NAN: not known */
    size_t n_found;
    double total;            /* that percentages refer to */
    const double *values[2]; /* [n_nodes] before and after, NAN where a side does not have the node */
};

/* --- a node for each name and place --- */

static bool is_of_line(enum frame_kind kind)
{
    return kind == FRAME_LINE || kind == FRAME_INSTRUCTION;
}

/* Whether a node is what samples without a variable are of: "<compute>", "<waiting>". */
static bool is_of_none(const struct frame *frame, uint32_t node, const bool *is_data)
{
    size_t n_parents;
    const uint32_t *parents = frame_parents(frame, node, &n_parents);
    return is_data[node] && n_parents && frame_kind(frame, node) == FRAME_GROUP &&
           strcmp(frame_name(frame, parents[0]), "<unknown attribute>") == 0;
}

/* Marks the nodes that are compared: variables, and what stands for none; or all nodes outside the data-centric tree;
 * or, with lines, those of them that are lines or instructions. */
static bool *choose_nodes(const struct frame *frame, bool variables, bool lines, size_t *n_chosen)
{
    size_t n = frame_n_nodes(frame), n_parents;
    bool *keep = calloc(n + 1, sizeof *keep), *is_data = calloc(n + 1, sizeof *is_data);
    *n_chosen = 0;
    for (uint32_t i = 0; keep && is_data && i < n; i++) {
        const uint32_t *parents = frame_parents(frame, i, &n_parents);
        is_data[i] = n_parents ? parents[0] < i && is_data[parents[0]] : frames_is_data(frame, i);
        keep[i] = variables ? frame_kind(frame, i) == FRAME_VARIABLE || is_of_none(frame, i, is_data)
                            : !is_data[i] && (!lines || is_of_line(frame_kind(frame, i)));
        *n_chosen += keep[i];
    }
    if (!is_data) {
        free(keep);
        keep = NULL;
    }
    free(is_data);
    return keep;
}

/* Ends a step: with code 0, made takes the place of *frame. Returns code. */
static int became(struct frame **frame, struct frame *made, int code)
{
    if (code == 0) {
        frame_close(*frame);
        *frame = made;
    }
    return code;
}

static bool has_instructions(const struct frame *frame)
{
    bool has_some = false;
    for (uint32_t i = 0; !has_some && i < frame_n_nodes(frame); i++)
        has_some = frame_kind(frame, i) == FRAME_INSTRUCTION;
    return has_some;
}

static int flatten(const struct frame *frame, const char *by, struct frame **flat, struct error *err)
{
    bool variables = strcmp(by, "variable") == 0, lines = strcmp(by, "line") == 0;
    struct frame *made = frame_keep(frame), *next = NULL;
    size_t n_chosen;
    bool *keep = choose_nodes(frame, variables, lines, &n_chosen);
    int code = keep ? 0 : error_memory(err);
    if (code == 0 && n_chosen == 0)
        code = error_set(err, ERR_NOT_FOUND, "a profile has no node that is a %s", by);
    if (code == 0 && n_chosen < frame_n_nodes(made)) {
        code = variables ? frame_mask(made, keep, &next, err) : frame_squash(made, keep, &next, err);
        code = became(&made, next, code);
    }
    if (code == 0 && !variables && !lines) {
        code = frame_flat(made, &next, err);
        code = became(&made, next, code);
    }
    if (code == 0 && lines && has_instructions(made)) {
        code = frame_lines(made, &next, err);
        code = became(&made, next, code);
    }
    free(keep);
    if (code != 0)
        frame_close(made);
    else
        *flat = made;
    return code;
}

/* The column that is compared: of variables the one that has all accesses to them. */
static int choose_column(struct diff *diff, struct error *err)
{
    const struct diff_job *job = diff->job;
    size_t column = job->column ? frame_find_column(job->before, job->column, err) : frame_default_column(job->before);
    if (column == SIZE_MAX)
        return job->column ? ERR_NOT_FOUND : error_set(err, ERR_NOT_FOUND, "there is no column to compare");
    bool is_alone = frame_column_sums(job->before, column) == FRAME_EXCLUSIVE;
    size_t pair = frame_column_pair(job->before, column);
    if (strcmp(job->by, "variable") == 0 && is_alone && pair != SIZE_MAX)
        column = pair;
    diff->column = frame_column_name(job->before, column);
    return 0;
}

static int flatten_side(const struct diff *diff, const struct frame *frame, struct side *side, struct error *err)
{
    size_t column = frame_find_column(frame, diff->column, err);
    if (column == SIZE_MAX)
        return ERR_NOT_FOUND;
    struct frame_job of = {.frame = frame_keep(frame)};
    int code = frame_job_total(&of, column, &side->total, err);
    frame_close(of.frame);
    return code ? code : flatten(frame, diff->job->by, &side->flat, err);
}

/* Makes one row of what is about the same function, line or variable. */
static int match_sides(struct diff *diff, struct error *err)
{
    struct frame *rows[2] = {NULL, NULL};
    int code = frame_match(diff->before.flat, diff->after.flat, rows, err);
    code = became(&diff->before.flat, rows[0], code);
    return became(&diff->after.flat, rows[1], code);
}

/* --- noise --- */

#define NORMAL 1.959964 /* standard deviations that 95 of 100 values lie within */
#define MIN_PAIRED 4    /* profiles: how much fewer of them vary says little */

/* The same for a deviation that is estimated with some degrees of freedom, MIN_PAIRED - 1 or more.
 * src: Student, The probable error of a mean, 1908; from five on by E. A. Cornish and R. A. Fisher, 1938 */
static double student(size_t n_degrees)
{
    static const double least[] = {3.182446, 2.776445};
    double n = (double)n_degrees, z = NORMAL, cube = z * z * z;
    if (n_degrees < MIN_PAIRED - 1 + sizeof least / sizeof *least)
        return least[n_degrees - (MIN_PAIRED - 1)];
    return z + (cube + z) / (4 * n) + (5 * cube * z * z + 16 * cube + 3 * z) / (96 * n * n);
}

/* By the number of samples; NAN when it is not known. */
static double noise_of_samples(const struct diff *diff, const struct frame_difference *row)
{
    const double *costs = diff->job->sample_costs;
    if (!(costs[0] > 0 && costs[1] > 0))
        return NAN;
    return NORMAL * sqrt(costs[0] * fabs(row->before) + costs[1] * fabs(row->after));
}

/* How many profiles there are on both sides, when all are. */
static size_t n_paired(const struct diff *diff)
{
    size_t n = frame_n_profiles(diff->both);
    bool are_same = frame_n_profiles(diff->before.flat) == n && frame_n_profiles(diff->after.flat) == n;
    return are_same ? n : 0;
}

/* By the differences of the profiles: what has no value on both sides has not changed. */
static int noise_of_profiles(const struct diff *diff, const struct frame_difference *row, double *noise,
                             struct error *err)
{
    const struct frame_cell *cells;
    size_t n_cells, n = n_paired(diff);
    double sum = 0, squares = 0;
    *noise = NAN;
    int code = n >= MIN_PAIRED ? frame_cells(diff->both, 2, row->node, &cells, &n_cells, err) : 0;
    if (code != 0 || n < MIN_PAIRED)
        return code;
    for (size_t i = 0; i < n_cells; i++)
        sum += cells[i].value;
    double mean = sum / (double)n;
    for (size_t i = 0; i < n_cells; i++)
        squares += (cells[i].value - mean) * (cells[i].value - mean);
    squares += (double)(n - n_cells) * mean * mean;
    *noise = student(n - 1) * sqrt(squares / (double)(n - 1) * (double)n);
    return 0;
}

static int find_noise(struct diff *diff, struct error *err)
{
    int code = 0;
    diff->noise = malloc((diff->n_found + 1) * sizeof *diff->noise);
    if (!diff->noise)
        return error_memory(err);
    for (size_t i = 0; code == 0 && i < diff->n_found; i++) {
        code = noise_of_profiles(diff, &diff->found[i], &diff->noise[i], err);
        diff->noise[i] = fmax(diff->noise[i], noise_of_samples(diff, &diff->found[i]));
    }
    return code;
}

/* Whether a difference may be noise. */
static bool is_noise(const struct diff *diff, size_t row)
{
    return fabs(diff->found[row].after - diff->found[row].before) <= diff->noise[row];
}

/* Keeps the differences beyond the threshold; where only increases are wanted, those alone. */
static void apply_threshold(struct diff *diff)
{
    double least = diff->job->threshold / 100 * diff->total;
    size_t n = 0;
    for (size_t i = 0; i < diff->n_found; i++) {
        double change = diff->found[i].after - diff->found[i].before;
        if ((diff->job->increases ? change : fabs(change)) > least)
            diff->found[n++] = diff->found[i];
    }
    diff->n_found = n;
}

/* Keeps those beyond the noise. */
static void leave_out_noise(struct diff *diff)
{
    size_t n = 0;
    for (size_t i = 0; i < diff->n_found; i++)
        if (!is_noise(diff, i)) {
            diff->noise[n] = diff->noise[i];
            diff->found[n++] = diff->found[i];
        }
    diff->n_found = n;
}

static int compare(struct diff *diff, struct error *err)
{
    int code = choose_column(diff, err);
    if (code == 0)
        code = flatten_side(diff, diff->job->before, &diff->before, err);
    if (code == 0)
        code = flatten_side(diff, diff->job->after, &diff->after, err);
    if (code == 0)
        code = match_sides(diff, err);
    if (code == 0)
        code = frame_diff(diff->before.flat, diff->after.flat, diff->column, 0, &diff->both, &diff->found,
                          &diff->n_found, err);
    for (size_t i = 0; code == 0 && i < 2; i++)
        code = frame_values(diff->both, i, NULL, &diff->values[i], err);
    if (code == 0) {
        diff->total = diff->before.total;
        apply_threshold(diff);
        code = find_noise(diff, err);
    }
    if (code == 0 && diff->job->beyond_noise)
        leave_out_noise(diff);
    return code;
}

/* --- rows --- */

static double percent_of_total(const struct diff *diff, const struct frame_difference *row)
{
    return diff->total > 0 ? 100 * (row->after - row->before) / diff->total : (double)NAN;
}

static void put_cell(struct buf *out, double value, int n_digits)
{
    if (isnan(value))
        buf_printf(out, "%11s", "-");
    else
        buf_printf(out, "%11.*g", n_digits, value);
}

/* Whether the noise of any row is known. */
static bool has_noise(const struct diff *diff)
{
    for (size_t i = 0; i < diff->n_found; i++)
        if (!isnan(diff->noise[i]))
            return true;
    return false;
}

static void put_text_row(const struct diff *diff, size_t i, bool with_noise, struct buf *out)
{
    struct export_job look = {.color = diff->job->color};
    const struct frame_difference *row = &diff->found[i];
    const char *name = frame_name(diff->both, row->node), *file = path_last(frame_file(diff->both, row->node));
    put_cell(out, diff->values[0][row->node], 5);
    buf_printf(out, "  ");
    put_cell(out, diff->values[1][row->node], 5);
    buf_printf(out, "  %+11.5g", row->after - row->before);
    if (diff->total > 0)
        buf_printf(out, "  %+7.1f %%", percent_of_total(diff, row));
    if (with_noise) {
        buf_printf(out, "  ");
        put_cell(out, diff->noise[i], 2);
    }
    buf_printf(out, "  ");
    printable_put(out, *name ? name : "?");
    if (*file && *file != '<' && strcmp(diff->job->by, "line") != 0) {
        text_style(out, &look, TEXT_DIM);
        buf_printf(out, "  ");
        printable_put(out, file);
        if (frame_line(diff->both, row->node))
            buf_printf(out, ":%u", frame_line(diff->both, row->node));
        text_style(out, &look, TEXT_PLAIN);
    }
    buf_printf(out, is_noise(diff, i) ? "  (noise?)\n" : "\n");
}

static void put_text(const struct diff *diff, size_t n, struct buf *out)
{
    printable_put(out, diff->column);
    buf_printf(out, ": %.5g before, %.5g after", diff->before.total, diff->after.total);
    if (diff->total > 0)
        buf_printf(out, " (%+.1f %%)", 100 * (diff->after.total - diff->total) / diff->total);
    const char *verb = diff->job->increases ? "increase" : "differ";
    bool with_noise = has_noise(diff);
    size_t n_noise = 0;
    for (size_t i = 0; i < diff->n_found; i++)
        n_noise += is_noise(diff, i);
    buf_printf(out, "; %zu %s%s %s%s by more than %g %% of what was before", diff->n_found, diff->job->by,
               diff->n_found == 1 ? "" : "s", verb, diff->n_found == 1 ? "s" : "", diff->job->threshold);
    if (n_noise)
        buf_printf(out, ", %zu of them not beyond the noise", n_noise);
    buf_append(out, "\n", 1);
    if (n > 0)
        buf_printf(out, "     before        after       change%s%s  %s\n", diff->total > 0 ? "   of all" : "",
                   with_noise ? "        noise" : "", diff->job->by);
    for (size_t i = 0; i < n; i++)
        put_text_row(diff, i, with_noise, out);
    if (n < diff->n_found)
        buf_printf(out, "%zu more (--top 0 shows all)\n", diff->n_found - n);
}

static void put_number(struct buf *out, double value)
{
    char text[40];
    json_double_text(value, text, sizeof text);
    buf_printf(out, ",%s", isnan(value) ? "" : text);
}

static void put_csv(const struct diff *diff, size_t n, struct buf *out)
{
    buf_printf(out, "name,file,line,module,before,after,change,percent,noise\n");
    for (size_t i = 0; i < n; i++) {
        const struct frame_difference *row = &diff->found[i];
        csv_put_quoted(out, frame_name(diff->both, row->node));
        buf_append(out, ",", 1);
        csv_put_quoted(out, frame_file(diff->both, row->node));
        buf_printf(out, ",%u,", frame_line(diff->both, row->node));
        csv_put_quoted(out, frame_module(diff->both, row->node));
        put_number(out, diff->values[0][row->node]);
        put_number(out, diff->values[1][row->node]);
        put_number(out, row->after - row->before);
        put_number(out, percent_of_total(diff, row));
        put_number(out, diff->noise[i]);
        buf_append(out, "\n", 1);
    }
}

static void put_number_at(struct buf *out, const char *key, double value)
{
    json_put_key(out, key, 0);
    if (isnan(value))
        buf_printf(out, "null");
    else
        json_put_double(out, value);
}

static void put_json(const struct diff *diff, size_t n, struct buf *out)
{
    buf_printf(out, "{\"column\": ");
    json_put_text(out, diff->column);
    json_put_text_at(out, "by", diff->job->by);
    json_put_double_at(out, "threshold", diff->job->threshold);
    json_put_double_at(out, "total_before", diff->before.total);
    json_put_double_at(out, "total_after", diff->after.total);
    json_put_key(out, "differences", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < n; i++) {
        const struct frame_difference *row = &diff->found[i];
        buf_printf(out, i ? ",\n{\"name\": " : "\n{\"name\": ");
        json_put_text(out, frame_name(diff->both, row->node));
        json_put_text_at(out, "file", frame_file(diff->both, row->node));
        json_put_word_at(out, "line", frame_line(diff->both, row->node));
        json_put_text_at(out, "module", frame_module(diff->both, row->node));
        put_number_at(out, "before", diff->values[0][row->node]);
        put_number_at(out, "after", diff->values[1][row->node]);
        put_number_at(out, "change", row->after - row->before);
        put_number_at(out, "percent", percent_of_total(diff, row));
        put_number_at(out, "noise", diff->noise[i]);
        buf_printf(out, "}");
    }
    buf_printf(out, "]}\n");
}

int frames_diff(const struct diff_job *job, struct buf *out, size_t *n_found, struct error *err)
{
    struct diff diff = {.job = job};
    *n_found = 0;
    if (strcmp(job->by, "function") != 0 && strcmp(job->by, "line") != 0 && strcmp(job->by, "variable") != 0)
        return error_set(err, ERR_USAGE, "differences are by function, line or variable, not by '%.100s'", job->by);
    int code = compare(&diff, err);
    if (code == 0) {
        size_t n = job->top && job->top < diff.n_found ? job->top : diff.n_found;
        *n_found = diff.n_found;
        if (strcmp(job->form, "csv") == 0)
            put_csv(&diff, n, out);
        else if (strcmp(job->form, "json") == 0)
            put_json(&diff, n, out);
        else
            put_text(&diff, n, out);
        code = out->failed ? error_memory(err) : 0;
    }
    frame_close(diff.before.flat);
    frame_close(diff.after.flat);
    frame_close(diff.both);
    free(diff.found);
    free(diff.noise);
    return code;
}
