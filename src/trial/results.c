/* SPDX-License-Identifier: BSD-3-Clause */
/* What came of a trial: the figures, the words, and the file that keeps them. See trial.h. */
#include "trial/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fmt/file.h"

#define CERTAIN_LEAST 0.93 /* of an interval that is narrower than the range */
#define WORTH 0.03         /* a smaller difference is none, as in advice */
#define RESULTS_FILE "results.tsv"
#define RESULTS_FIRST "locus-trials 1"
#define RESULTS_BYTES_MAX (16u << 20)
#define MIB 1048576.0

/* --- the actions, and what the record says of them --- */

static void put_share(const struct trial_effect *effect, struct buf *text);
static void put_nodes(const struct trial_effect *effect, struct buf *text);
static void put_apart(const struct trial_effect *effect, struct buf *text);
static void put_next(const struct trial_effect *effect, struct buf *text);
static void put_offsets(const struct trial_effect *effect, struct buf *text);
static void put_touched(const struct trial_effect *effect, struct buf *text);

static const struct {
    const char *name;
    bool is_for_statics;
    void (*put)(const struct trial_effect *effect, struct buf *text);
} kinds[] = {
    {"huge-pages", true, put_share},         {"interleave", true, put_nodes}, {"bind-to-users", true, put_nodes},
    {"first-touch-spread", true, put_nodes}, {"pad", false, put_apart},       {"pool", false, put_next},
    {"offset", false, put_offsets},          {"prefault", true, put_touched},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static size_t kind_of(const char *name)
{
    size_t i = 0;
    while (i < KINDS && strcmp(kinds[i].name, name) != 0)
        i++;
    return i;
}

bool trial_is_action(const char *name)
{
    return kind_of(name) < KINDS;
}

bool trial_is_for_statics(const char *name)
{
    size_t i = kind_of(name);
    return i < KINDS && kinds[i].is_for_statics;
}

static void put_share(const struct trial_effect *effect, struct buf *text)
{
    double seen = (double)effect->seen_bytes, huge = (double)effect->huge_bytes;
    if (!effect->n_looks || seen <= 0)
        buf_printf(text, "; whether they were on huge pages is not known");
    else if (huge <= 0)
        buf_printf(text, "; none of it was on huge pages: the kernel had none, or "
                         "/sys/kernel/mm/transparent_hugepage/enabled forbids them");
    else
        buf_printf(text, "; %.0f %% of the memory was on huge pages", 100 * fmin(1, huge / seen));
}

static void put_nodes(const struct trial_effect *effect, struct buf *text)
{
    double all = (double)effect->n_pages;
    if (all <= 0)
        buf_printf(text, "; on which nodes is not known");
    for (unsigned i = 0, n = 0; all > 0 && i < TRIAL_NODES_MAX; i++)
        if (effect->n_on[i])
            buf_printf(text, "%s node %u: %.0f %%", n++ ? "," : "; of its pages on", i,
                       100 * (double)effect->n_on[i] / all);
    if (all > 0 && effect->n_wanted < effect->n_pages)
        buf_printf(text, "; %.0f %% of these where they should be", 100 * (double)effect->n_wanted / all);
}

/* A part of the blocks. */
static void put_part(const struct trial_effect *effect, uint64_t n, const char *words, struct buf *text)
{
    buf_printf(text, "; %.0f %% of them %s", 100 * fmin(1, (double)n / fmax(1, (double)effect->n_blocks)), words);
}

static void put_apart(const struct trial_effect *effect, struct buf *text)
{
    put_part(effect, effect->n_apart, "with cache lines of their own", text);
}

static void put_next(const struct trial_effect *effect, struct buf *text)
{
    put_part(effect, effect->n_next, "right behind the one before", text);
}

static void put_offsets(const struct trial_effect *effect, struct buf *text)
{
    put_part(effect, effect->n_apart, "away from the boundary of a page", text);
}

static void put_touched(const struct trial_effect *effect, struct buf *text)
{
    buf_printf(text, "; %.0f pages were there before they were used", (double)effect->n_touched);
}

bool trial_describe_effect(const struct trial_effect *effect, unsigned n_runs, struct trial_result *result)
{
    struct buf text = {0};
    double runs = n_runs ? n_runs : 1;
    size_t kind = kind_of(result->action);
    bool is_done = effect->n_blocks > 0;
    if (!effect->n_processes)
        buf_printf(&text, "no process of the program read what to do: it is static, or starts without the environment");
    else if (!effect->n_places)
        buf_printf(&text, "no module of the program has the places that were measured");
    else if (!is_done && effect->n_plain)
        buf_printf(&text, "its %.0f blocks are too small for it, or there was no room", (double)effect->n_plain / runs);
    else if (!is_done)
        buf_printf(&text, "the program made none of its blocks in these runs");
    else
        buf_printf(&text, "%.0f block%s of %.1f MiB in all", (double)effect->n_blocks / runs,
                   effect->n_blocks == (uint64_t)runs ? "" : "s", (double)effect->n_bytes / runs / MIB);
    struct trial_effect one = *effect; /* of a run, on average */
    one.n_touched = (uint64_t)((double)one.n_touched / runs);
    if (is_done && kind < KINDS)
        kinds[kind].put(&one, &text);
    if (is_done && effect->n_plain)
        buf_printf(&text, "; %.0f others stayed as they were", (double)effect->n_plain / runs);
    if (effect->n_refused)
        buf_printf(&text, "; the kernel refused %.0f calls: %s", (double)effect->n_refused,
                   strerror((int)effect->refused_as));
    free(result->effect);
    result->effect = text.data;
    return is_done;
}

/* --- figures --- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Probability that the median lies between the k-th value from either end (from 0). */
static double certainty_of(unsigned n, unsigned k)
{
    double term = pow(0.5, n), below = 0;
    for (unsigned i = 0; i <= k; i++) {
        below += term;
        term *= (double)(n - i) / (i + 1);
    }
    return 1 - 2 * below;
}

double trial_median(double *values, unsigned n)
{
    if (!n)
        return (double)NAN;
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void trial_measure(double *ratios, unsigned n, struct trial_result *result)
{
    unsigned k = 0;
    result->n_pairs = n;
    if (!n)
        return;
    result->ratio = trial_median(ratios, n);
    while (n > 2 * (k + 1) && certainty_of(n, k + 1) >= CERTAIN_LEAST)
        k++;
    result->low = ratios[k];
    result->high = ratios[n - 1 - k];
    result->certainty = 100 * certainty_of(n, k);
}

enum trial_verdict trial_judge(const struct trial_result *result)
{
    if (result->high < 1 && result->ratio <= 1 - WORTH)
        return TRIAL_WORTH_IT;
    return result->low > 1 && result->ratio >= 1 + WORTH ? TRIAL_WORSE : TRIAL_NO_DIFFERENCE;
}

const char *trial_verdict_name(enum trial_verdict verdict)
{
    static const char *const names[TRIAL_VERDICTS] = {"worth it", "no difference", "worse", "no effect", "failed"};
    return verdict < TRIAL_VERDICTS ? names[verdict] : "";
}

/* --- words --- */

static bool is_measured(const struct trial_result *result)
{
    return result->n_pairs && result->verdict <= TRIAL_WORSE;
}

void trial_put_short(const struct trial_result *result, struct buf *out)
{
    if (is_measured(result))
        buf_printf(out, "%.2f of the %s (%.2f-%.2f), ", result->ratio, result->metric, result->low, result->high);
    buf_printf(out, "%s", trial_verdict_name(result->verdict));
}

void trial_put(const struct trial_result *result, struct buf *out)
{
    buf_printf(out, "%s: %s", result->action, result->variable);
    if (*result->site && strcmp(result->site, result->variable) != 0)
        buf_printf(out, "  %s", result->site);
    buf_printf(out, "\n");
    if (!isnan(result->predicted))
        buf_printf(out, "  predicted  it gains at most %.1f %% of the time: not below %.2f\n", result->predicted,
                   1 - fmin(100, result->predicted) / 100);
    if (is_measured(result)) {
        bool is_time = strstr(result->metric, "time") != NULL;
        buf_printf(out, "  measured   %.2f of the %s (%.2f-%.2f: its median, with %.0f %% certainty by %u pairs)\n",
                   result->ratio, result->metric, result->low, result->high, result->certainty, result->n_pairs);
        buf_printf(out,
                   is_time ? "             %.3f s as it is, %.3f s with it\n"
                           : "             %.6g as it is, %.6g with it\n",
                   result->base, result->with);
    }
    buf_printf(out, "  effect     %s\n", result->effect ? result->effect : "not known");
    buf_printf(out, "  verdict    %s\n", trial_verdict_name(result->verdict));
    if (result->note && *result->note)
        buf_printf(out, "  note       %s\n", result->note);
}

/* --- the file --- */

static void free_result(struct trial_result *result)
{
    char *const texts[] = {result->action, result->variable, result->site,
                           result->metric, result->effect,   result->note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

void trial_results_fini(struct trial_results *results)
{
    for (size_t i = 0; i < results->n; i++)
        free_result(&results->items[i]);
    free(results->items);
    *results = (struct trial_results){0};
}

void trial_wish_fini(struct trial_wish *wish)
{
    free(wish->action);
    free(wish->argument);
    free(wish->variable);
    free(wish->site);
    free(wish->places);
}

/* A text as one field of a line. */
static void put_field(const char *text, struct buf *out)
{
    for (const char *at = text ? text : ""; *at; at++)
        buf_append(out, *at == '\t' || *at == '\n' ? " " : at, 1);
    buf_append(out, "\t", 1);
}

int trial_results_write(const char *directory, const struct trial_results *results, struct error *err)
{
    struct buf text = {0}, path = {0};
    buf_printf(&text, RESULTS_FIRST "\n");
    for (size_t i = 0; i < results->n; i++) {
        const struct trial_result *result = &results->items[i];
        put_field(result->action, &text);
        put_field(result->variable, &text);
        put_field(result->site, &text);
        put_field(result->metric, &text);
        put_field(result->effect, &text);
        put_field(result->note, &text);
        buf_printf(&text, "%s\t%u\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\t%.17g\n",
                   trial_verdict_name(result->verdict), result->n_pairs, result->predicted, result->ratio, result->low,
                   result->high, result->certainty, result->base, result->with);
    }
    buf_printf(&path, "%s/" RESULTS_FILE, directory);
    int code = path.failed || text.failed ? error_memory(err) : file_replace(path.data, text.data, text.len_bytes, err);
    buf_fini(&path);
    buf_fini(&text);
    return code;
}

/* The next field of a line, malloc'ed; NULL: there is none, or no memory. */
static char *take_field(char **at)
{
    char *field = *at ? strsep(at, "\t") : NULL;
    return field ? strdup(field) : NULL;
}

static double take_number(char **at)
{
    char *field = *at ? strsep(at, "\t") : NULL;
    return field ? plain_number(field, NULL) : (double)NAN;
}

static enum trial_verdict verdict_named(const char *name)
{
    enum trial_verdict verdict = 0;
    while (verdict < TRIAL_VERDICTS && strcmp(trial_verdict_name(verdict), name) != 0)
        verdict++;
    return verdict;
}

static bool take_result(char *line, struct trial_results *results)
{
    if (!vec_reserve(&results->items, &results->capacity, results->n + 1, sizeof *results->items))
        return false;
    struct trial_result *result = &results->items[results->n++];
    *result = (struct trial_result){0};
    char **const texts[] = {&result->action, &result->variable, &result->site,
                            &result->metric, &result->effect,   &result->note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = take_field(&line);
    char *verdict = line ? strsep(&line, "\t") : NULL;
    double *const numbers[] = {&result->predicted, &result->ratio, &result->low, &result->high,
                               &result->certainty, &result->base,  &result->with};
    double n_pairs = take_number(&line);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = take_number(&line);
    if (!result->note || !verdict || !(n_pairs >= 0 && n_pairs <= TRIAL_PAIRS_MAX))
        return false;
    result->verdict = verdict_named(verdict);
    result->n_pairs = (unsigned)n_pairs;
    return result->verdict < TRIAL_VERDICTS;
}

static int take_results(char *text, const char *path, struct trial_results *results, struct error *err)
{
    char *line = strsep(&text, "\n");
    if (strcmp(line, RESULTS_FIRST) != 0)
        return error_set(err, ERR_FORMAT, "%s: not the results of a trial", path);
    for (size_t n = 2; (line = strsep(&text, "\n")); n++)
        if (*line && !take_result(line, results))
            return error_set(err, ERR_FORMAT, "%s: line %zu is damaged", path, n);
    return 0;
}

int trial_results_read(const char *database, struct trial_results *results, struct error *err)
{
    struct buf path = {0}, text = {0};
    *results = (struct trial_results){0};
    buf_printf(&path, "%s/" TRIAL_DIRECTORY "/" RESULTS_FILE, database);
    bool is_missing = path.data && access(path.data, F_OK) != 0;
    int code = path.failed ? error_memory(err) : is_missing ? 0 : file_read(path.data, &text, err);
    if (code == 0 && text.len_bytes > RESULTS_BYTES_MAX)
        code = error_set(err, ERR_RANGE, "%s: larger than %u bytes", path.data, RESULTS_BYTES_MAX);
    if (code == 0 && text.len_bytes)
        code = take_results(text.data, path.data, results, err);
    if (code != 0)
        trial_results_fini(results);
    buf_fini(&path);
    buf_fini(&text);
    return code;
}
