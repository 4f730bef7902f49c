/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables for a terminal: the answer in short, the table with the lines that access each variable, and
 * below it what is needed to understand it. */
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "export/advice/advice.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "export/vars-table.h"

#define LINES_SHOWN 3
#define TOUCH_SHARE_MIN 5.0 /* percent of all samples: from here on a row says who touched it first */
#define TOUCHED_LEAST 1     /* percent of all samples at first touches of pages that are told */
#define SCREEN_LINES 38     /* of a screen of 40, on which hpcrun and hpcprof have a line each ... */
#define SCREEN_COLUMNS 100  /* ... of so many columns: as much as that on a narrower one */
#define ROWS_LEAST 3        /* that stay even where notes and advice fill the screen */
#define SCREEN_LEAST 1.0    /* percent of all samples that a row in it has ... */
#define SCREEN_ROWS 3       /* ... unless they are fewer rows */
#define TIGHT_LEAST 3.0     /* percent of a row for which legends are left out */

/* --- where threads waited without a processor (BLOCKTIME), and read and wrote (IO), in lines of the head --- */

#define SHOWN_MOST 3     /* places in the line */
#define SHOWN_PERCENT 5  /* of the whole, at least */
#define PLACES_MOST 256  /* that are told apart: what the program calls */
#define HARDLY_S 0.01    /* of waiting: no line */
#define HARDLY_PART 0.02 /* ... of the CPU time, too */

/* A function that waited, read or wrote, and the line of the program that led there. */
struct place {
    uint32_t callee; /* string id; 0: none is known */
    struct waits_caller caller;
    double value;
};

struct places {
    struct place places[PLACES_MOST];
    size_t n;
    double total;
};

/* The function that a scope lies in, 0: none. */
static uint32_t callee_of(const struct model *model, uint32_t scope)
{
    for (uint32_t at = scope; at; at = model->scopes[at].parent) {
        if (model->scopes[at].role != ROLE_NONE)
            return 0;
        if (model->scopes[at].kind == SCOPE_PROC || model->scopes[at].kind == SCOPE_INLINED)
            return model->scopes[at].name;
    }
    return 0;
}

/* Lines may be unknown, and then all are the same. */
static bool is_same_caller(const struct waits_caller *a, const struct waits_caller *b)
{
    bool is_same_line =
        a->line == b->line || (a->line && b->line && a->line->file == b->line->file && a->line->line == b->line->line);
    return is_same_line &&
           (a->function == b->function || (a->function && b->function && a->function->name == b->function->name &&
                                           a->function->module == b->function->module));
}

static void note(const struct report *report, uint32_t scope, double value, struct places *places)
{
    struct place place = {.callee = callee_of(report->model, scope), .value = value};
    places->total += value;
    if (!place.callee)
        return;
    place.caller = waits_caller_of(report->waits, scope);
    for (size_t i = 0; i < places->n; i++)
        if (places->places[i].callee == place.callee && is_same_caller(&places->places[i].caller, &place.caller)) {
            places->places[i].value += value;
            return;
        }
    if (places->n < PLACES_MOST)
        places->places[places->n++] = place;
}

/* By call path; the data-centric tree repeats the costs. */
static void sum_up(const struct report *report, size_t metric, struct places *places)
{
    const struct model *model = report->model;
    for (uint32_t at = 0; model->own && at < model->n_scopes; at++) {
        double value = model->own[at * model->n_metrics + metric];
        if (model->scopes[at].role == ROLE_DATACENTRIC)
            at = model_subtree_end(model, at) - 1;
        else if (value > 0)
            note(report, at, value, places);
    }
}

/* Puts the places with most, each with its part of the whole. */
static void put_places(const struct model *model, struct places *places, struct buf *text)
{
    for (int shown = 0; shown < SHOWN_MOST; shown++) {
        struct place *most = &places->places[0];
        for (size_t i = 1; i < places->n; i++)
            most = places->places[i].value > most->value ? &places->places[i] : most;
        if (!places->n || 100 * most->value < SHOWN_PERCENT * places->total)
            break;
        buf_printf(text, "; %.0f %% %.120s", 100 * most->value / places->total, model_text(model, most->callee));
        waits_put_caller(model, &most->caller, " called by ", text);
        most->value = 0;
    }
}

static void put_waits(const struct report *report, struct places *places, const struct export_job *job, struct buf *out)
{
    double waited_s = places->total / 1e6, cpu_s = (double)report->model->cpu_time_ns / 1e9;
    struct buf text = {0};
    if (waited_s < HARDLY_S || waited_s < HARDLY_PART * cpu_s)
        return;
    buf_printf(&text, "threads waited %.2f s without a processor", waited_s);
    put_places(report->model, places, &text);
    buf_printf(&text, "; hpcquery tree --metric BLOCKTIME shows all");
    text_labelled(out, job, "waits", text.failed || !text.data ? "" : text.data);
    buf_fini(&text);
}

/* Bytes that were read or written. */
static void put_bytes(const struct report *report, const char *metric, struct places *places,
                      const struct export_job *job, struct buf *out)
{
    char size[16];
    struct buf text = {0};
    bool is_read = text_begins(metric, METRICS_READ);
    text_size((uint64_t)places->total, size);
    buf_printf(&text, "%s", size);
    put_places(report->model, places, &text);
    if (!is_read && !metrics_is_io(report->model->metrics[report->metric].name))
        buf_printf(&text, "; hpcquery vars --metric '%s' shows the files", metric);
    text_labelled(out, job, is_read ? "read" : "written", text.failed || !text.data ? "" : text.data);
    buf_fini(&text);
}

void head_put_calls(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = report->model;
    for (size_t metric = 0; metric < model->n_metrics && report->waits; metric++) {
        const char *name = model->metrics[metric].name;
        struct places places = {0};
        if (!metrics_is_blocked(name) && !metrics_is_io(name))
            continue;
        sum_up(report, metric, &places);
        if (metrics_is_blocked(name))
            put_waits(report, &places, job, out);
        else if (places.total > 0)
            put_bytes(report, name, &places, job, out);
    }
}

/* --- the whole --- */

/* Time in the kernel goes above the table, because it is a share of another total, with a line that says where the
 * table's shares begin. On a screen that is one line, where it matters. */
static void put_kernel(const struct vars_table *table, const struct report *report, struct buf *out)
{
    double all = report_kernel_percent(report), share = report_kernel_alone(report);
    double alone_s = report->system_s - report->system_waiting_s;
    bool is_short = table->job->fits_screen && report->n_rows;
    char words[128], waiting[64] = "";
    if (all <= 0 || (is_short && all < SCREEN_LEAST))
        return;
    if (all - share >= SCREEN_LEAST)
        (void)snprintf(waiting, sizeof waiting, ", and %.2f s for " WAITING_ROW, report->system_waiting_s);
    (void)snprintf(words, sizeof words, "of the CPU time: %.2f s in system calls and page faults%s", alone_s, waiting);
    if (is_short)
        (void)snprintf(words, sizeof words, "%.2f s of the CPU time%s; shares below: of %.2f s", alone_s, waiting,
                       report->user_s);
    vars_table_put_words(table, share, SPECIAL_KERNEL, words, out);
    if (is_short)
        return;
    (void)snprintf(words, sizeof words, "of the CPU time: %.2f s, %s", report->user_s,
                   report->n_rows ? "whose samples are the rows below" : "of which there are no samples");
    vars_table_put_words(table, 100 - all, "user code", words, out);
    buf_append(out, "\n", 1);
}

/* Puts words below a row, wrapped, in at most as many lines as are left. */
static void put_words(const struct vars_table *table, const char *words, size_t *n_left, struct buf *out)
{
    if (!words || !*words || *n_left == 0)
        return;
    buf_printf(out, "%*s", (int)table->indent, "");
    text_style(out, table->job, TEXT_DIM);
    *n_left -= text_wrapped_most(out, table->job, words, table->indent, table->indent, *n_left);
    text_style(out, table->job, TEXT_PLAIN);
}

/* The lines that access the variable: the first one, and more as long as they fit completely. */
static void put_access(const struct vars_table *table, const struct report_row *row, size_t *n_left, struct buf *out)
{
    const struct export_job *job = table->job;
    size_t room = job->columns > table->indent ? job->columns - table->indent : 0;
    struct buf text = {0};
    lines_put_places(table->report, row, &text);
    for (size_t i = 0; i < row->n_lines && i < LINES_SHOWN && row->lines[i].value >= 0.005 * row->value; i++) {
        struct buf place = {0};
        lines_put_place(table->report, row, i, &place);
        bool has_room = text_width(text.data ? text.data : "") + 2 + text_width(place.data ? place.data : "") <= room;
        if (i == 0 || has_room)
            buf_printf(&text, "%s%s", i ? ", " : "", place.data ? place.data : "");
        text.failed = text.failed || place.failed;
        buf_fini(&place);
        if (i > 0 && !has_room)
            break;
    }
    put_words(table, text.data, n_left, out);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
}

/* What the causes mean for a variable, if it matters. On a screen that is said once for all rows, below the table. */
static void put_meaning(const struct vars_table *table, const struct report_row *row, size_t *n_left, struct buf *out)
{
    const char *meaning = vars_table_meaning(table->report, row);
    if (!table->job->fits_screen)
        put_words(table, meaning, n_left, out);
}

/* What a thread waited for, if that were several things of one kind. */
static void put_constructs(const struct vars_table *table, const struct report_row *row, size_t *n_left,
                           struct buf *out)
{
    struct buf text = {0};
    for (size_t i = 0; row->n_constructs > 1 && i < row->n_constructs; i++) {
        double percent = row->value > 0 ? 100 * row->constructs[i].value / row->value : 0;
        if (percent < 0.5 && i > 0)
            break;
        buf_printf(&text, "%s%.0f %% %s", i ? ", " : "", percent, row->constructs[i].name);
    }
    put_words(table, text.data, n_left, out);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
}

/* Sums up the rows from the n-th on, which are not shown: each is smaller than these, whose order is told there. */
static void put_rest(const struct export_job *job, const struct report *report, size_t n, struct buf *out)
{
    double rest = 0;
    char text[128];
    for (size_t i = n; i < report->n_rows; i++)
        rest += report->rows[i].share;
    if (n == report->n_rows)
        return;
    if (report->has_too_few)
        buf_printf(out, "%9s", "");
    else
        buf_printf(out, "%5.1f %%  ", rest);
    (void)snprintf(text, sizeof text, "%zu more (--top 0 shows all)%s", report->n_rows - n,
                   !job->fits_screen || report->has_too_few ? ""
                   : job->by_time                           ? ". Order: by share"
                   : report->has_causes                     ? ". Order: by what may wait for memory, others by share"
                                                            : "");
    text_wrapped(out, job, text, 9, 9);
}

/* The complete allocation path: each function calls the one before it. */
static void put_alloc_path(const struct vars_table *table, const struct report_row *row, size_t *n_left,
                           struct buf *out)
{
    struct leak_frame frames[LEAK_FRAMES_MAX];
    const struct model *model = table->report->model;
    size_t n = table->job->with_paths ? alloc_path_of(table->report, row, frames) : 0;
    struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s", i ? " < " : "allocated by ");
        text_function(&text, model_text(model, frames[i].function));
        if (frames[i].line)
            buf_printf(&text, " %s:%u", path_last(model_text(model, frames[i].file)), frames[i].line);
    }
    put_words(table, text.data, n_left, out);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
}

/* Who touched it first, and who used it, of variables with pages of their own and a share for which that matters; how
 * much of what is no variable was first touches, and of which. */
static void put_touches(const struct vars_table *table, const struct first_touches *touches,
                        const struct report_row *row, size_t *n_left, struct buf *out)
{
    struct buf text = {0};
    bool is_wanted = row->share >= TOUCH_SHARE_MIN || table->job->is_verbose;
    bool is_said = is_wanted && first_touch_matters(touches, row) && first_touch_put_sentence(touches, row, &text);
    if (row->touches && report_is_special(row) && row->causes.first_touch >= TOUCHED_LEAST) {
        buf_printf(&text, "%s%.0f %% of all are first touches of pages, most of ", is_said ? "; " : "",
                   row->causes.first_touch);
        text_short_function(&text, model_variable_name(table->report->model, row->touches));
        is_said = true;
    }
    if (is_said)
        put_words(table, text.data, n_left, out);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
}

static size_t count_lines(const struct buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len_bytes; i++)
        n += text->data[i] == '\n';
    return n;
}

static void put_row(const struct vars_table *table, const struct first_touches *touches, const struct report_row *row,
                    struct buf *out)
{
    struct buf lines = {0};
    vars_table_put_row(table, row, &lines);
    size_t n = count_lines(&lines), n_left = n < SCREEN_ROW_LINES ? SCREEN_ROW_LINES - n : 0;
    n_left = table->job->fits_screen ? n_left : SIZE_MAX;
    put_constructs(table, row, &n_left, &lines);
    put_meaning(table, row, &n_left, &lines);
    put_access(table, row, &n_left, &lines);
    put_touches(table, touches, row, &n_left, &lines);
    put_alloc_path(table, row, &n_left, &lines);
    if (table->job->fits_screen)
        put_words(table, row->advice, &n_left, &lines);
    else
        fields_put_row(table->job, row, table->indent, &lines);
    buf_printf(out, "%s", lines.data ? lines.data : "");
    out->failed = out->failed || lines.failed;
    buf_fini(&lines);
}

/* Appends the head, the table with n of the rows, and what goes below it. */
static int put_table(const struct export_job *job, struct report *report, const struct first_touches *touches, size_t n,
                     struct buf *out, struct error *err)
{
    struct vars_table table;
    struct derived derived = {0};
    int code = derived_of_report(job, report, &derived, err);
    if (code != 0)
        return code;
    vars_table_init(&table, report, job, &derived, n);
    head_put(report, job, out);
    buf_append(out, "\n", 1);
    vars_table_put_titles(&table, out);
    put_kernel(&table, report, out);
    for (size_t i = 0; i < n; i++)
        put_row(&table, touches, &report->rows[i], out);
    put_rest(job, report, n, out);
    foot_put(report, job, n, out);
    derived_fini(&derived);
    return 0;
}

/* The share of the smallest of the first n rows. */
static double least_share(const struct report *report, size_t n)
{
    double least = 100;
    for (size_t i = 0; i < n; i++)
        least = report->rows[i].share < least ? report->rows[i].share : least;
    return least;
}

/* Appends the report with at most that many rows, those with the largest shares; of a report that has to fit a screen
 * with as few as that takes. n_lines: that stand below it. */
static int put_fitting(const struct export_job *job, struct report *report, const struct first_touches *touches,
                       size_t n_lines, struct buf *out, struct error *err)
{
    struct export_job tight = *job;
    size_t top = job->top ? job->top : report->n_rows, n;
    size_t columns = job->columns ? job->columns : 1;
    size_t n_screen = SCREEN_LINES * (columns < SCREEN_COLUMNS ? SCREEN_COLUMNS : columns) / columns;
    size_t n_large = report_count(report, SCREEN_LEAST);
    if (job->fits_screen && !report->has_too_few && top > n_large)
        top = n_large > SCREEN_ROWS ? n_large : SCREEN_ROWS;
    const size_t n_most = top;
    for (;;) {
        struct buf text = {0};
        bool ok = report_choose(report, job->least, top, &n);
        int code = ok ? put_table(&tight, report, touches, n, &text, err) : error_memory(err);
        bool fits = !job->fits_screen || count_lines(&text) + n_lines <= n_screen;
        if (code != 0 || fits || (n <= ROWS_LEAST && tight.is_tight)) {
            buf_append(out, text.data ? text.data : "", text.len_bytes);
            out->failed = out->failed || text.failed;
            buf_fini(&text);
            return code;
        }
        bool is_small = n > SCREEN_ROWS && least_share(report, n) < TIGHT_LEAST;
        top = is_small || tight.is_tight ? n - 1 : n_most; /* without legends there is room for more rows again */
        tight.is_tight |= !is_small;
        buf_fini(&text);
    }
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct prepared prepared;
    struct buf advice = {0};
    int code = prepared_make(job, PREPARED_ORDER | PREPARED_TOUCHES | PREPARED_SHARED_LINES, &prepared, err);
    if (code != 0)
        return code;
    code = advices_put_short(job, &advice, err);
    if (code == 0)
        code = put_fitting(job, &prepared.report, &prepared.touches, count_lines(&advice), out, err);
    if (code == 0 && advice.data)
        buf_append(out, advice.data, advice.len_bytes);
    out->failed = out->failed || advice.failed;
    buf_fini(&advice);
    prepared_fini(&prepared);
    return code;
}

static const struct ask_note notes[] = {
    {ASK_HTML, "A page for a browser in one file: variables with their details, flame graphs, sources (export html)."},
    {ASK_ALL, "Also list variables without samples."},
    {ASK_PATHS, "One row for each allocation path, even where name and site are the same, with the complete path."},
    NOTE_BY_EXTREMES,
    {ASK_FIELDS, "List the fields of each variable; with --csv a table of fields."},
    {0, NULL},
};

static const uint64_t apart[] = {ASK(HTML) | ASK(DERIVE), ASK(CSV) | ASK(FIELDS) | ASK(DERIVE), 0};

const struct report_kind answer_vars = {
    .name = "vars",
    .operands = "DB",
    .summary = "the variables that the samples fell on",
    .manual =
        "vars prints the variables that the samples fell on. A row shows the share of all samples, name, class, "
        "size, number of blocks, where the variable was allocated or declared, on which NUMA nodes the accessing "
        "threads ran, and the lines that access it with the loops around them. Samples without address and "
        "addresses without variable are rows too, so that the shares add up to 100 percent. Where hardware "
        "reported each access, the rows are sorted by latency and show its mean and 95th percentile, the shares "
        "of the cache levels, and of memory of this and of other NUMA nodes. With --fields the fields that its "
        "samples lie in follow each variable: fields of structures, of what was allocated, of local variables. "
        "Without debug information they are offsets.\n\n"
        "The first columns of vars --csv are variable, class, alloc_site, size_bytes, n_blocks, samples, share; "
        "with --fields they are variable, class, alloc_site, field, samples, share. Samples are as counted; values "
        "are estimates of all events, scaled where an event shared its counter. threads_ and processes_ columns "
        "show how the values spread over all threads and all processes: how many have a value, mean, least and "
        "greatest value, standard deviation, and that divided by the mean (cov).",
    .example = "vars --by thread hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(HTML) | ASK(ALL) | ASK(PATHS) | ASK(BY) | ASK(ORDER) | ASK(FIELDS) | ASK(DERIVE) |
               ASK(VERBOSE) | ASK(PROFILES),
    .options_by = ASK_ROWS | ASK(PATHS) | ASK(BY) | ASK(PROFILES),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = notes,
    .apart = apart,
    .forms = {.make = vars_make_answer, .text = write_text, .has_page = true},
    .by_forms = &by_forms,
};
