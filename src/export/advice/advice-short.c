/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of advice behind a report, a line or two each: see advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/text-cells.h"

#define SHORT_LEAST 3   /* pieces of advice behind a report, if there are so many that are worth it ... */
#define SHORT_MOST 8    /* ... and at most, one for each large row */
#define SHORT_CHARS 180 /* of such a piece: two lines of a terminal of 100 columns */
#define SHORT_NAME 48   /* of these, the row's name */
#define JOINED_MOST 7   /* pieces that say the same as one */
#define JOINED_SHOWN 2  /* of these are named */
#define WITHIN_PART 0.9 /* of a piece's place that is called from another one: it is part of that */
#define ENOUGH_SAMPLES 1000
#define PROGRAM_LEAST 0.001 /* of the time: a part of less is noise */

/* Whether it says what to change about data, and that may be worth it. */
static bool is_worth_it(const struct advice *advice)
{
    static const char *const aside[] = {"not-worth-it", "resident", "execution", "compute",
                                        "unknown",      "special",  "leak",      "debug-info"};
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (strcmp(advice->rule, aside[i]) == 0)
            return false;
    return isnan(advice->gain) || advice->gain >= ADVICE_WORTH_PERCENT;
}

/* Whether it answers for a large row, by itself. */
static bool is_answer(const struct advices *advices, const struct advice *advice)
{
    bool is_aside = strcmp(advice->rule, "not-worth-it") == 0 || strcmp(advice->rule, "leak") == 0 ||
                    strcmp(advice->rule, "debug-info") == 0;
    return advices->report->has_causes && advice->share >= ADVICE_LARGE_PERCENT && !is_aside;
}

/* Whether another piece says the same: the row of the kernel of system calls, and blocks that are made anew of their
 * page faults. */
static bool is_said(const struct advices *advices, const struct advice *advice)
{
    bool is_call = strcmp(advice->name, WAITS_CALL) == 0,
         is_fault = strcmp(advice->rule, "page-faults") == 0 || strcmp(advice->rule, "page-touches") == 0;
    for (size_t i = 0; i < advices->n_items; i++) {
        const struct advice *other = &advices->items[i];
        if ((is_call && strcmp(other->rule, "system-calls") == 0) ||
            (is_fault && strcmp(other->rule, "churn") == 0 && other->variable == advice->variable))
            return true;
    }
    return false;
}

static bool is_of_python(const struct advice *advice)
{
    return strcmp(advice->rule, "interpreter") == 0;
}

/* Whether it is about the instructions at a place, whatever data they work on. */
static bool is_about_code(const struct advice *advice)
{
    return strcmp(advice->rule, "resident") == 0 || strcmp(advice->rule, "execution") == 0 ||
           strcmp(advice->rule, "compute") == 0 || is_of_python(advice);
}

static bool is_same_row(const struct advice *a, const struct advice *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->class, b->class) == 0 && strcmp(a->site, b->site) == 0;
}

static bool is_of_loops(const struct advice *advice)
{
    return text_begins(advice->rule, "loop-");
}

/* Whether two pieces say the same of one place: they become one. Advice about the order of loops names its place, and
 * is the same for all arrays of the nest, whatever is known of each. */
static bool says_same(const struct advice *a, const struct advice *b)
{
    if (is_of_loops(a) || (is_of_python(a) && !(a->place && *a->place)))
        return strcmp(a->rule, b->rule) == 0 && strcmp(a->words, b->words) == 0;
    bool is_same_place = a->place && b->place && *a->place && strcmp(a->place, b->place) == 0;
    if (isnan(a->gain) || isnan(b->gain) || !is_same_place)
        return false;
    return is_about_code(a)
               ? is_about_code(b)
               : strcmp(a->words, b->words) == 0 && strcmp(a->rule, b->rule) == 0 && a->is_verified == b->is_verified;
}

/* A piece that is shown, and what others are part of it. */
struct piece {
    const struct advice *advice;
    const struct advice *joined[JOINED_MOST]; /* [n_joined] */
    size_t n_joined;
    double gain, verified, rank; /* verified: of the gain */
};

/* Joins a piece to one that is shown already; false when none says the same. */
static bool join(struct piece *pieces, size_t n, const struct advice *advice)
{
    for (size_t i = 0; i < n; i++)
        if (says_same(pieces[i].advice, advice) && pieces[i].n_joined < JOINED_MOST) {
            pieces[i].joined[pieces[i].n_joined++] = advice;
            pieces[i].gain =
                is_about_code(advice) ? fmax(pieces[i].gain, advice->gain) : fmin(100, pieces[i].gain + advice->gain);
            pieces[i].verified += advice->is_verified ? advice->gain : 0;
            pieces[i].rank += advice->rank;
            return true;
        }
    return false;
}

/* Joins a piece to one that is shown already, or makes it one; false when there is no room. */
static bool take(struct piece *pieces, size_t *n, const struct advice *advice)
{
    if (join(pieces, *n, advice))
        return true;
    if (*n == SHORT_MOST)
        return false;
    pieces[(*n)++] = (struct piece){.advice = advice,
                                    .gain = advice->gain,
                                    .verified = advice->is_verified ? advice->gain : 0,
                                    .rank = advice->rank};
    return true;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return x->advice < y->advice ? -1 : x->advice > y->advice;
}

/* Whether it says why nothing can be said. */
static bool is_without_answer(const struct advice *advice)
{
    return strcmp(advice->rule, "unknown") == 0 || (strcmp(advice->rule, "special") == 0 && isnan(advice->gain));
}

/* Moves pieces that have no answer behind the last one that has one, and gains as much as their share may. */
static void sort_answers_first(struct piece *pieces, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        struct piece piece = pieces[i];
        size_t last = i;
        double share = piece.advice->share;
        for (size_t k = i + 1; k < n && is_without_answer(piece.advice); k++)
            if (!is_without_answer(pieces[k].advice) && pieces[k].gain >= share)
                last = k;
        memmove(&pieces[i], &pieces[i + 1], (last - i) * sizeof *pieces);
        pieces[last] = piece;
    }
}

/* Whether nearly all that a piece is about is called from another's place: that loop is what can be changed. */
static bool is_within(struct advices *advices, const struct advice *piece, const struct advice *around,
                      uint8_t *is_inside)
{
    return is_about_code(piece) && is_about_code(around) && piece->spot.kind != SPOT_NONE &&
           (around->spot.kind == SPOT_LOOP || around->spot.kind == SPOT_LINE) && around->gain > piece->gain &&
           code_spot_part(advices, &piece->spot, &around->spot, is_inside) > WITHIN_PART;
}

/* Joins pieces about code that is called from the place of another one to that. Returns their number. */
static size_t join_within(struct advices *advices, struct piece *pieces, size_t n)
{
    uint8_t *is_inside = calloc(advices->report->model->n_scopes + 1, sizeof *is_inside);
    advices->failed |= !is_inside;
    for (size_t i = 0; is_inside && i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const struct piece *within = &pieces[k];
            if (k == i || pieces[i].n_joined + within->n_joined >= JOINED_MOST ||
                !is_within(advices, within->advice, pieces[i].advice, is_inside))
                continue;
            pieces[i].joined[pieces[i].n_joined++] = within->advice;
            for (size_t j = 0; j < within->n_joined; j++)
                pieces[i].joined[pieces[i].n_joined++] = within->joined[j];
            pieces[i].rank += within->rank;
            memmove(&pieces[k], &pieces[k + 1], (n - k - 1) * sizeof *pieces);
            n--;
            i -= k < i ? 1 : 0;
            k--;
        }
    free(is_inside);
    return n;
}

/* pieces [SHORT_MOST]: the first piece about each large row; then others that are worth it, while these are few.
 * Returns their number. is_chosen [n_items], all false. */
static size_t choose(struct advices *advices, bool *is_chosen, struct piece *pieces)
{
    const struct advice *items = advices->items;
    size_t n = 0;
    for (size_t i = 0; i < advices->n_items; i++) {
        bool is_wanted = is_answer(advices, &items[i]) && !is_said(advices, &items[i]);
        for (size_t k = 0; is_wanted && k < i; k++)
            is_wanted = !is_chosen[k] || !is_same_row(&items[k], &items[i]);
        is_chosen[i] = is_wanted && take(pieces, &n, &items[i]);
    }
    for (size_t i = 0; i < advices->n_items; i++) /* smaller arrays of the nest gain by it, too */
        is_chosen[i] = is_chosen[i] || (is_of_loops(&items[i]) && join(pieces, n, &items[i]));
    n = join_within(advices, pieces, n);
    for (size_t i = 0; i < advices->n_items && n < SHORT_LEAST; i++)
        if (!is_chosen[i] && is_worth_it(&items[i]) && !is_said(advices, &items[i]))
            (void)take(pieces, &n, &items[i]);
    if (n)
        qsort(pieces, n, sizeof *pieces, compare_pieces);
    sort_answers_first(pieces, n);
    return n;
}

/* Appends words that stand within a sentence: a sentence of its own loses its capital letter and full stop, and what is
 * known of instructions stands by itself. */
static void put_words(const char *words, struct buf *out)
{
    size_t n = strlen(words), len = strlen(ADVICE_ARITHMETIC ": ");
    bool is_sentence = n > 1 && words[n - 1] == '.' && words[0] >= 'A' && words[0] <= 'Z' && words[1] >= 'a';
    if (is_sentence)
        buf_printf(out, "%c%.*s", words[0] - 'A' + 'a', (int)n - 2, words + 1);
    else
        buf_printf(out, "%s", words + (strncmp(words, ADVICE_ARITHMETIC ": ", len) == 0 ? len : 0));
}

/* Appends where: " in loop a.c:12-14", " at a.c:12", " in solve (a.c:12)", " in std::sort". */
static void put_place(const char *place, struct buf *out)
{
    const char *colon = strrchr(place, ':');
    bool is_line = colon && colon[1] >= '0' && colon[1] <= '9' && !strchr(place, ' ');
    buf_printf(out, " %s %s", is_line ? "at" : "in", place);
}

double advice_program_part(const struct advices *advices, bool is_of_cpu_time)
{
    double profiler = 0, user = is_of_cpu_time ? 1 - report_kernel_percent(advices->report) / 100 : 1;
    for (const struct report_row *row = advices->report->rows; row < advices->report->rows + advices->report->n_rows;
         row++)
        profiler += report_aside(row) == REPORT_PROFILER ? row->share / 100 : 0;
    return fmax(PROGRAM_LEAST, 1 - user * profiler);
}

/* Appends how much a piece may gain, in parentheses. Where the kernel has a large part of the CPU time, all of them are
 * parts of that. */
static void put_bound(const struct advices *advices, const struct piece *piece, struct buf *out)
{
    const struct advice *advice = piece->advice;
    double kernel = report_kernel_percent(advices->report);
    bool is_of_all = advice->is_of_cpu_time || kernel >= ADVICE_LARGE_PERCENT;
    double program = advice_program_part(advices, false), of_all = advice_program_part(advices, true);
    double factor = is_of_all && !advice->is_of_cpu_time ? (1 - kernel / 100) * program / of_all : 1;
    const char *of = is_of_all ? "CPU time" : "time";
    bool is_verified =
        piece->n_joined && !is_about_code(advice) ? piece->verified > ADVICE_PART * piece->gain : advice->is_verified;
    if (!isnan(advice->gain))
        buf_printf(out, " (at most %.1f %% of the %s%s)", factor * piece->gain, of,
                   is_verified ? "" : ", not verified");
    else if (strcmp(advice->rule, "leak") != 0)
        buf_printf(out, " (%.1f %% of the %s)", factor * advice->share / program, of);
}

/* What a row is called in advice about code: constants of the compiler's, and slots where it puts values aside, are
 * nobody's variables, but execution of the loop that uses them. */
static const char *name_of(const struct advice *advice)
{
    size_t n = strlen(advice->name), len = strlen(" .rodata");
    if (is_of_python(advice))
        return "Python";
    bool is_constant = n > len && strcmp(advice->name + n - len, " .rodata") == 0;
    bool is_slot = strncmp(advice->name, "spill slot in ", strlen("spill slot in ")) == 0;
    return is_about_code(advice) && (is_constant || is_slot) ? "<compute>" : advice->name;
}

/* Appends a name, without its module where that is too long. */
static void put_name(const struct export_job *job, const char *name, size_t most, struct buf *text)
{
    struct buf short_name = {0};
    text_short_name(&short_name, name);
    char *shown = short_name.data;
    char *module = shown && shown[strlen(shown) - 1] == ']' ? strstr(shown, " [") : NULL;
    if (module && text_width(shown) > most)
        *module = 0;
    text_cut(text, job, shown ? shown : "", most);
    text->failed = text->failed || short_name.failed;
    buf_fini(&short_name);
}

/* Appends what a piece is about: the names of its rows, each once. */
static void put_subject(const struct advices *advices, const struct piece *piece, struct buf *text)
{
    const struct export_job *job = advices->job;
    const char *names[JOINED_MOST + 1];
    size_t n = 0;
    for (size_t i = 0; i <= piece->n_joined; i++) {
        const char *name = name_of(i ? piece->joined[i - 1] : piece->advice);
        size_t k = 0;
        while (k < n && strcmp(names[k], name) != 0)
            k++;
        names[k] = name;
        n = k == n ? n + 1 : n;
    }
    for (size_t i = 0; i < n && i <= JOINED_SHOWN; i++) {
        buf_printf(text, "%s", i ? ", " : "");
        put_name(job, names[i], i ? SHORT_NAME / 2 : SHORT_NAME, text);
    }
    if (n > JOINED_SHOWN + 1)
        buf_printf(text, " and %zu more", n - JOINED_SHOWN - 1);
    if (advices->n_programs > 1 && piece->advice->programs &&
        strcmp(piece->advice->programs, path_last(text_program_name(job))) != 0)
        buf_printf(text, " (%s)", piece->advice->programs);
}

/* How many lines of a width the text takes. */
static size_t count_lines(const char *text, size_t width)
{
    size_t n = 0;
    for (const char *rest = text; *rest; n++) {
        char *line = text_take_line(&rest, width);
        if (!line)
            break;
        free(line);
    }
    return n;
}

/* Whether the piece's words mean its place: "a is touched first there". */
static bool needs_place(const struct advice *advice)
{
    return strstr(advice->words, " there") != NULL;
}

/* One piece: about what, where, what to do, at most how much. The place is left out where it would take another line
 * and neither the largest piece (label) nor the words need it. */
static void put_piece(const struct advices *advices, const struct piece *piece, const char *label, struct buf *out)
{
    const struct advice *advice = piece->advice;
    struct buf with = {0}, without = {0}, rest = {0};
    size_t columns = advices->job->columns,
           width = columns > 2 * TEXT_LABEL_WIDTH ? columns - TEXT_LABEL_WIDTH : columns;
    put_subject(advices, piece, &with);
    buf_append(&without, with.data ? with.data : "", with.len_bytes);
    buf_printf(&rest, ": ");
    put_words(advice->words, &rest);
    put_bound(advices, piece, &rest);
    const struct trial_result *result = advice_tried(&advices->tried, advice);
    if (result) {
        buf_printf(&rest, "; tried: ");
        trial_put_short(result, &rest);
    }
    if (advice->place && *advice->place)
        put_place(advice->place, &with);
    buf_append(&with, rest.data ? rest.data : "", rest.len_bytes);
    buf_append(&without, rest.data ? rest.data : "", rest.len_bytes);
    if (with.data && without.data) {
        size_t n_most = (SHORT_CHARS + width - 1) / width;
        n_most += *label || needs_place(advice) ? 1 : 0;
        text_labelled(out, advices->job, label, count_lines(with.data, width) <= n_most ? with.data : without.data);
    }
    buf_fini(&with);
    buf_fini(&without);
    buf_fini(&rest);
}

/* Says why there is no advice, and what would give some. */
static void put_none(const struct advices *advices, struct buf *out)
{
    const struct report *report = advices->report;
    double taken = report->event ? (double)report->event->taken : 0;
    char text[160];
    if (!report->has_too_few)
        (void)snprintf(text, sizeof text, "none: no row has %.0f %% of the time", ADVICE_LARGE_PERCENT);
    else if (taken > 0 && report->sampled_s > 0)
        (void)snprintf(text, sizeof text,
                       "none: there are too few samples; about %.1f s of CPU time at this rate has enough",
                       report->sampled_s / taken * ENOUGH_SAMPLES);
    else
        (void)snprintf(text, sizeof text, "none: there are too few samples");
    buf_append(out, "\n", 1);
    text_labelled(out, advices->job, "advice", text);
}

int advices_put_short(const struct export_job *job, struct buf *out, struct error *err)
{
    struct export_job as_usual = *job;
    struct advices advices;
    as_usual.least = -1;
    int code = advices_make(&as_usual, &advices, err);
    if (code != 0)
        return code;
    bool is_use = !advices.report->is_leaks && strcmp(job->model->metrics[job->metric].name, FAULTS_METRIC) != 0;
    bool *is_chosen = calloc(advices.n_items + 1, sizeof *is_chosen);
    struct piece pieces[SHORT_MOST];
    size_t n = is_chosen && is_use ? choose(&advices, is_chosen, pieces) : 0;
    if (n)
        buf_append(out, "\n", 1);
    for (size_t i = 0; i < n; i++)
        put_piece(&advices, &pieces[i], i ? "" : "advice", out);
    if (n)
        text_labelled(out, job, "", "hpcquery advice says why, and what else there is");
    else if (is_use && (advices.report->has_causes || advices.report->has_too_few))
        put_none(&advices, out);
    free(is_chosen);
    advices_fini(&advices);
    return is_chosen ? 0 : error_memory(err);
}
