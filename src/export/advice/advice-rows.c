/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about rows that are no variables, waiting for threads and locks among them, which line of the program they are
 * from, and code without lines. See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "base/path.h"
#include "database/database.h"
#include "export/text-cells.h"

#define UNEVEN_PART 0.5 /* of what another thread waits: one that waits less has more work than it */
#define THREAD_PART 0.1 /* of the mean of all threads: those with fewer samples say nothing */
#define PLACES_MAX 256  /* different ones of a row */

/* --- where in the program --- */

/* A line of the program whose calls, or itself, took something of a row. */
struct program_line {
    uint32_t function, file, line; /* string ids */
    double value;
};

/* The innermost function of the program around a scope; false when there is none: a thread of a library. */
static bool find_program_line(const struct advices *advices, uint32_t scope, struct program_line *found)
{
    const struct model *model = advices->report->model;
    *found = (struct program_line){0};
    for (uint32_t at = scope; at; at = model->scopes[at].parent) {
        const struct scope *here = &model->scopes[at];
        bool is_function = here->kind == SCOPE_PROC || here->kind == SCOPE_INLINED;
        if (is_function && here->role != ROLE_NONE)
            return false;
        if (is_function && advices->program_of[here->module]) {
            found->function = here->name;
            return true;
        }
        if (is_function)
            found->file = found->line = 0; /* of a function that it calls */
        if (is_function || here->line == 0 || here->kind == SCOPE_LOOP)
            continue;
        found->file = here->file;
        found->line = here->line;
    }
    return false;
}

static bool add_line(struct program_line *lines, size_t *n, const struct program_line *line, double value)
{
    size_t i = 0;
    while (i < *n &&
           !(lines[i].function == line->function && lines[i].file == line->file && lines[i].line == line->line))
        i++;
    if (i == PLACES_MAX)
        return false;
    if (i == *n) {
        lines[i] = *line;
        ++*n;
    }
    lines[i].value += value;
    return true;
}

/* The program's line with most of what a row has below a variable. */
static void add_lines_of(const struct advices *advices, const struct report_row *row, const struct variable *variable,
                         const uint8_t *is_inside, struct program_line *lines, size_t *n)
{
    struct report *report = advices->report; /* its labels of waits are a cache */
    const struct model *model = report->model;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + report->metric];
            struct program_line line;
            if (value != 0 && (!is_inside || is_inside[i]) && report_wait(report, variable, i) == row->wait &&
                find_program_line(advices, i, &line))
                (void)add_line(lines, n, &line, value);
        }
    }
}

bool advice_has_name(const char *function)
{
    return strncmp(function, "0x", 2) != 0 && strncmp(function, "func_0x", 7) != 0;
}

bool advice_put_caller_of(const struct advices *advices, const struct report_row *row, const uint8_t *is_inside,
                          struct buf *out)
{
    const struct report *report = advices->report;
    struct program_line lines[PLACES_MAX];
    size_t n = 0, most = 0;
    double all = 0;
    if (row->variable)
        add_lines_of(advices, row, row->variable, is_inside, lines, &n);
    for (size_t i = 0; row->wait != REPORT_NOT_WAITING && i < report->n_variables; i++)
        if (waits_are_possible(report->waits, &report->variables[i]))
            add_lines_of(advices, row, &report->variables[i], is_inside, lines, &n);
    for (size_t i = 0; i < n; i++) {
        most = lines[i].value > lines[most].value ? i : most;
        all += lines[i].value;
    }
    if (n == 0 || (!lines[most].line && !advice_has_name(model_text(report->model, lines[most].function))) ||
        (is_inside && lines[most].value < ADVICE_PART * all))
        return false;
    text_function(out, model_text(report->model, lines[most].function));
    if (lines[most].line)
        buf_printf(out, " (%s:%u)", path_last(model_text(report->model, lines[most].file)), lines[most].line);
    return true;
}

bool advice_put_caller(const struct advices *advices, const struct report_row *row, struct buf *out)
{
    return advice_put_caller_of(advices, row, NULL, out);
}

const char *advice_touch_cure(const struct variable *variable)
{
    return variable && variable->class == CLASS_FILE ? "map it with MAP_POPULATE, or read it in large pieces"
                                                     : "reuse memory, put it on huge pages, or touch it in parallel";
}

/* --- rows --- */

/* First touches of pages, where the instruction in front of them has no data. True if little else is there. */
static bool advise_on_touches(struct advices *advices, const struct report_row *row)
{
    const struct report *report = advices->report;
    struct buf words = {0}, evidence = {0};
    double touched = row->causes.first_touch, left = row->share - touched;
    if (touched < ADVICE_SHARE_MIN || !row->touches)
        return false;
    text_short_function(&words, model_variable_name(report->model, row->touches));
    buf_printf(&words, " is touched first there: %s", advice_touch_cure(row->touches));
    buf_printf(&evidence,
               "%.0f %% of it is that of first touches of pages, at an instruction that is run again after the kernel "
               "has found one",
               100 * touched / row->share);
    double most = fmin(row->share, touched * (1 + FIRST_TOUCH_DOUBT));
    struct advice *made = words.data ? advice_add(advices, row, "page-touches", most, words.data, &evidence) : NULL;
    if (made)
        made->rank = touched;
    advices->failed |= words.failed;
    buf_fini(&words);
    buf_fini(&evidence);
    return left < ADVICE_SHARE_MIN;
}

/* Where page faults were not sampled and would explain most of a place that stores: that is said in place of advice
 * about its instructions. */
static bool advise_on_uncounted(struct advices *advices, const struct report_row *row, struct code_advice *at)
{
    double touched = first_touch_uncounted(advices->report);
    struct buf words = {0}, evidence = {0};
    if (!at->stores || touched < ADVICE_SHARE_MIN || touched < ADVICE_PART * at->all)
        return false;
    buf_printf(&words,
               "pages may be touched first there, and measuring FAULTS, too, would tell (the default, or -e EADDR -e "
               "FAULTS)");
    buf_printf(&evidence,
               "%llu page faults, which take about %.0f %% of the time in user mode somewhere; %.1f %% of it is spent "
               "at that place, which stores to memory",
               (unsigned long long)advices->report->model->n_page_faults, touched, at->all);
    double most = fmin(at->all, touched * (1 + FIRST_TOUCH_DOUBT));
    struct advice *made = words.data ? advice_add(advices, row, "page-touches", most, words.data, &evidence) : NULL;
    if (made)
        made->is_verified = false;
    advice_set_place(made, &at->place);
    advices->failed |= words.failed;
    buf_fini(&words);
    return true;
}

/* Busy with arithmetic or branches: what the instructions of the loop with most of it are, and what calls it. */
static void advise_on_compute(struct advices *advices, const struct report_row *row)
{
    struct buf words = {0}, evidence = {0};
    if (advise_on_touches(advices, row))
        return;
    buf_printf(&evidence, "%s", special_rows_find(row->name)->means);
    struct code_advice at = advice_on_code(advices, row, row->share >= ADVICE_LARGE_PERCENT, &words, &evidence);
    if (!words.len_bytes)
        buf_printf(&words, "change the code at these lines");
    if (advise_on_uncounted(advices, row, &at))
        buf_fini(&evidence);
    else if (words.data)
        advice_add_of_code(advices, row, "compute", row->share - row->causes.first_touch, words.data, &evidence, &at);
    advices->failed |= words.failed;
    buf_fini(&words);
}

/* Why the data of a large row have no name, and what would name them. */
static const char *words_of(const struct advices *advices, const struct report_row *row,
                            const struct special_row *special)
{
    bool is_large = row->share >= ADVICE_LARGE_PERCENT;
    if (is_large && strcmp(row->name, "<address lost>") == 0)
        return report_lost_in_jit(advices->report) > ADVICE_PART * row->share
                   ? "accesses by code that was generated at run time: run it without JIT, as the head says"
                   : "instructions that overwrite the register of their address: see these lines for the data, or "
                     "measure where the hardware samples addresses";
    if (is_large && strcmp(row->name, "<no block>") == 0)
        return "memory whose allocation was not seen, as of a library's own allocator: do what a note says of it, or "
               "see these lines for the data";
    return special->advice;
}

static void advise_on_calls(struct advices *advices, const struct report_row *row, struct buf *evidence)
{
    struct buf place = {0};
    (void)advice_put_caller(advices, row, &place);
    advice_set_place(advice_add(advices, row, "special", row->share, "make fewer or larger calls", evidence), &place);
}

void advise_on_special(struct advices *advices, const struct report_row *row)
{
    const struct special_row *special = special_rows_find(row->name);
    bool is_nothing = strcmp(special->advice, "Nothing to do.") == 0;
    struct buf evidence = {0};
    if (strcmp(special->name, "<compute>") == 0) {
        advise_on_compute(advices, row);
        return;
    }
    if (strcmp(special->name, ALLOCATOR_ROW) == 0 || strcmp(special->name, WAITS_PROFILER) == 0 || row->is_waiting ||
        (is_nothing && row->share < ADVICE_LARGE_PERCENT))
        return;
    const char *rule = is_nothing ? "unknown" : strcmp(special->name, "<small block>") == 0 ? "threshold" : "special";
    buf_printf(&evidence, "%s%s%s", special->means, *row->site ? ": " : "", row->site);
    if (strcmp(special->name, WAITS_CALL) == 0) {
        advise_on_calls(advices, row, &evidence);
        return;
    }
    struct advice *made = advice_add(advices, row, rule, (double)NAN, words_of(advices, row, special), &evidence);
    if (made && is_nothing)
        made->rank = 0;
}

/* --- waiting for threads --- */

/* Of each thread's time what it waited, in percent: the least and the most of threads that have a good part of the
 * time. n: how many these are. */
struct waited_parts {
    double least, most;
    size_t n;
};

/* Sums up the waiting of each thread [columns], and all of its samples. */
static void add_waiting(const struct report *report, const struct split *split, double *waited, double *all)
{
    for (size_t i = 0; i < split->n_cells; i++) {
        const struct split_cell *cell = &split->cells[i];
        if (cell->row == split->n_rows)
            all[cell->column] += cell->value;
        else if (report->rows[cell->row].is_waiting)
            waited[cell->column] += cell->value;
    }
}

static struct waited_parts parts_of_split(const struct report *report, const struct split *split)
{
    struct waited_parts parts = {.least = 100};
    size_t n = split->columns.n_strings;
    double *waited = calloc(n + 1, sizeof *waited), *all = calloc(n + 1, sizeof *all), sum = 0;
    if (waited && all)
        add_waiting(report, split, waited, all);
    for (size_t i = 0; all && i < n; i++)
        sum += all[i];
    for (size_t i = 0; waited && all && i < n; i++) {
        double part = all[i] > 0 ? 100 * waited[i] / all[i] : 0;
        if (all[i] < THREAD_PART * sum / (double)n)
            continue;
        parts.least = fmin(parts.least, part);
        parts.most = fmax(parts.most, part);
        parts.n++;
    }
    free(waited);
    free(all);
    return parts;
}

/* n 0: it is not known. */
static struct waited_parts waited_by_thread(const struct advices *advices)
{
    struct waited_parts parts = {0};
    struct value_source values = {0};
    struct split split;
    struct error ignored;
    if (!advices->job->directory ||
        database_values_open(advices->job->directory, advices->report->model, &values, &ignored) != 0)
        return parts;
    if (split_variables(advices->report, SPLIT_THREAD, &values, NULL, &split, &ignored) == 0) {
        parts = parts_of_split(advices->report, &split);
        split_fini(&split);
    }
    values_free(&values);
    return parts;
}

/* What to do about what a label of waiting names. */
static const char *remedy(const char *label, const struct waited_parts *parts)
{
    bool is_uneven = parts->n > 1 && parts->least < UNEVEN_PART * parts->most;
    if (strncmp(label, "spin loop", strlen("spin loop")) == 0)
        return "let it sleep until then (a condition variable, a futex), or give it work";
    if (strstr(label, "lock") || strstr(label, "section") || strncmp(label, "mutex", strlen("mutex")) == 0)
        return "hold it for less time, take it less often, or use several";
    if (strstr(label, "idle"))
        return "let more of the program run in parallel, or balance its parallel regions";
    if (strstr(label, "MPI"))
        return is_uneven ? "balance the work of the ranks" : "balance the ranks, or let messages overlap with work";
    return is_uneven ? "balance the work: schedule(dynamic), smaller or equal parts"
                     : "balance the work, or make parallel regions fewer and larger";
}

/* Whether samples in the function are known to wait. */
static bool waits_in(const struct report *report, uint32_t function)
{
    for (size_t i = 0; i < report->n_rows; i++)
        for (size_t k = 0; report->rows[i].is_waiting && k < report->rows[i].n_lines; k++)
            if (report->rows[i].lines[k].function == function)
                return true;
    return false;
}

/* Whether the function takes locks, and waits for them. */
static bool is_of_lock(const struct report *report, uint32_t function)
{
    return strstr(model_text(report->model, function), "lock") && waits_in(report, function);
}

/* Percent of all samples at data of locks that are waited for: a spinning thread pays for the word that it looks at,
 * and for the atomic instruction that comes last. */
static double beside_waiting(const struct report *report)
{
    double sum = 0;
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        for (size_t k = 0; !row->is_waiting && row->value > 0 && k < row->n_lines; k++)
            sum += is_of_lock(report, row->lines[k].function) ? row->lines[k].value / row->value * row->share : 0;
    }
    return sum;
}

/* Lines of a function of the program, from where it takes a lock to where it gives it back. */
struct held {
    uint32_t function, file, first, last; /* string ids; lines */
    uint32_t taken;                       /* the line that takes it */
    bool is_block;                        /* it is held in a block that begins there */
    double most;                          /* value of its costliest statement */
};

/* Extends *held by a statement that waited for the lock. */
static void extend_held(const struct report *report, uint32_t scope, double value, struct held *held)
{
    const struct model *model = report->model;
    struct waits_caller caller = waits_caller_of(report->waits, scope);
    if (!caller.function || !caller.line ||
        (held->function && (held->function != caller.function->name || held->file != caller.line->file)))
        return;
    uint32_t last = caller.line->line;
    if (held->is_block || caller.n_container) { /* as an object does */
        uint32_t at = (uint32_t)(caller.line - model->scopes);
        while (at && model->scopes[at].kind != SCOPE_LOOP && model->scopes[at].kind != SCOPE_PROC)
            at = model->scopes[at].parent;
        last = model->scopes[at].kind == SCOPE_LOOP ? model->scopes[at].end_line : UINT32_MAX;
    }
    held->first = held->function && held->first < caller.line->line ? held->first : caller.line->line;
    held->last = held->function && held->last > last ? held->last : last;
    held->function = caller.function->name;
    held->file = caller.line->file;
    if (value > held->most && !waits_gives_back(report->waits, scope)) {
        held->most = value;
        held->taken = caller.line->line;
    }
}

/* Whether a statement waited for what the wait names; with REPORT_NOT_WAITING, whether it takes a lock, or gives it
 * back, for the function. */
static bool is_at_lock(const struct report *report, const struct variable *variable, uint32_t scope, int64_t wait,
                       uint32_t function)
{
    return wait == REPORT_NOT_WAITING ? function && waits_lock_taker(report->waits, scope) == function
                                      : report_wait(report, variable, scope) == wait;
}

/* Where a lock is held, by what is at it, in the function with the costliest statement. Returns the value of them all,
 * 0 when nothing is known. */
static double find_held(const struct report *report, int64_t wait, uint32_t function, struct held *held)
{
    double sum = 0;
    const struct model *model = report->model;
    for (int is_second = 0; is_second < 2; is_second++)
        for (size_t v = 0; v < report->n_variables; v++)
            for (size_t k = 0; k < report->variables[v].n_scopes; k++) {
                const struct variable *variable = &report->variables[v];
                uint32_t end = model_subtree_end(model, variable->scopes[k]);
                for (uint32_t i = variable->scopes[k] + 1; i < end; i++) {
                    double value = model->own[i * model->n_metrics + report->metric];
                    if (value <= 0 || !is_at_lock(report, variable, i, wait, function))
                        continue;
                    sum += is_second ? value : 0;
                    struct held one = {.is_block = held->is_block};
                    if (!is_second)
                        extend_held(report, i, value, &one);
                    if (!is_second && one.most > held->most)
                        *held = one;
                    if (is_second && held->function)
                        extend_held(report, i, value, held);
                }
            }
    return held->function ? sum : 0;
}

/* Whether a statement is in the held lines, or in what they call. */
static bool is_in_held(const struct model *model, uint32_t scope, const struct held *held)
{
    uint32_t line = 0;
    for (uint32_t at = scope; at; at = model->scopes[at].parent) {
        const struct scope *here = &model->scopes[at];
        if (here->line && here->kind >= SCOPE_POSITION && here->kind != SCOPE_LOOP)
            line = at;
        if ((here->kind == SCOPE_PROC || here->kind == SCOPE_INLINED) && here->name == held->function && line)
            return model->scopes[line].file == held->file && model->scopes[line].line >= held->first &&
                   model->scopes[line].line <= held->last;
    }
    return false;
}

/* Percent of all samples that do not wait themselves, but lie where the lock is held: others wait for these. */
static double in_held(const struct report *report, const struct held *held)
{
    const struct model *model = report->model;
    double sum = 0;
    for (size_t v = 0; v < report->n_variables; v++)
        for (size_t k = 0; k < report->variables[v].n_scopes; k++) {
            const struct variable *variable = &report->variables[v];
            uint32_t end = model_subtree_end(model, variable->scopes[k]);
            for (uint32_t i = variable->scopes[k] + 1; i < end; i++) {
                double value = model->own[i * model->n_metrics + report->metric];
                if (value > 0 && is_in_held(model, i, held) && report_wait(report, variable, i) == REPORT_NOT_WAITING)
                    sum += value;
            }
        }
    return report->total_value > 0 ? 100 * sum / report->total_value : 0;
}

/* Where threads lack processors, those that have one wait for them, whatever the program is like. */
#define BUSY_REMEDY                                                                                                    \
    "for threads that had no processor, as the machine was busy: measure it on a quiet one, or with fewer threads"

/* All that is to be said about waiting. */
struct waiting {
    const struct report_row *at; /* the row with most of it */
    double sum, beside;          /* percent of all samples that wait; that are at the locks, or where they are held */
    struct held held;
    bool is_lock;
};

static struct waiting sum_up_waiting(struct advices *advices)
{
    struct report *report = advices->report;
    struct waiting waiting = {0};
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        waiting.sum += row->is_waiting ? row->share : 0;
        waiting.at = row->is_waiting && (!waiting.at || row->share > waiting.at->share) ? row : waiting.at;
    }
    if (!waiting.at)
        return waiting;
    const char *site = waiting.at->site;
    waiting.is_lock = strstr(site, "lock") || strstr(site, "section") || strncmp(site, "mutex", strlen("mutex")) == 0;
    waiting.held.is_block = strstr(site, "section");
    waiting.beside = beside_waiting(report);
    if (waiting.is_lock && find_held(report, waiting.at->wait, 0, &waiting.held) > 0)
        waiting.beside = fmax(waiting.beside, in_held(report, &waiting.held));
    return waiting;
}

static void put_waiting_place(const struct advices *advices, const struct waiting *waiting, struct buf *place)
{
    const struct report *report = advices->report;
    if (waiting->held.taken) {
        text_function(place, model_text(report->model, waiting->held.function));
        buf_printf(place, " (%s:%u)", path_last(model_text(report->model, waiting->held.file)), waiting->held.taken);
        return;
    }
    bool is_placed = advice_put_caller(advices, waiting->at, place);
    for (size_t i = 0; !is_placed && i < report->n_rows; i++)
        is_placed = report->rows[i].is_waiting && advice_put_caller(advices, &report->rows[i], place);
}

void advise_on_waiting(struct advices *advices, double least)
{
    const struct report *report = advices->report;
    struct buf words = {0}, evidence = {0}, place = {0};
    char label[128];
    struct waiting waiting = sum_up_waiting(advices);
    double user = 1 - report_kernel_percent(report) / 100;
    double kernel = report_kernel_percent(report) - report_kernel_alone(report);
    if (!waiting.at || user * waiting.sum + kernel < least)
        return;
    struct waited_parts parts = waited_by_thread(advices);
    put_waiting_place(advices, &waiting, &place);
    (void)snprintf(label, sizeof label, "%.*s", (int)strcspn(waiting.at->site, ","), waiting.at->site);
    if (waiting.held.taken && strchr(label, ')')) /* the place is named */
        label[strcspn(label, ":")] = 0;
    buf_printf(&words, "%s", label);
    bool is_even = round(parts.least) == round(parts.most);
    if (parts.n > 1 && !waiting.is_lock && is_even)
        buf_printf(&words, ", %.0f %% of each thread's time", parts.most);
    else if (parts.n > 1 && !waiting.is_lock)
        buf_printf(&words, ", %.0f-%.0f %% of each thread's time", parts.least, parts.most);
    double delay = waiting.is_lock ? 0 : model_delay_percent(report->model);
    buf_printf(&words, ": %s", delay >= BUSY_PERCENT ? BUSY_REMEDY : remedy(label, &parts));
    buf_printf(&evidence, "%.1f %% of all samples wait for other threads or ranks, %.1f %% there", waiting.sum,
               waiting.at->share);
    if (delay > 0)
        buf_printf(&evidence, "; for %.0f %% of the time that threads could run they had no processor", delay);
    if (kernel > 0)
        buf_printf(&evidence, "; the kernel takes %.1f %% of the CPU time for it", kernel);
    if (waiting.beside > 0)
        buf_printf(&evidence,
                   waiting.held.taken ? "; %.1f %% more are where the lock is held"
                                      : "; %.1f %% more are at the data of the locks",
                   waiting.beside);
    if (parts.n > 1)
        buf_printf(&evidence, "; each of the %zu threads waits for %.0f to %.0f %% of its time", parts.n, parts.least,
                   parts.most);
    bool is_of_cpu_time = kernel > 0;
    double factor = is_of_cpu_time ? user : 1;
    struct advice *made = words.data
                              ? advice_add(advices, waiting.at, "waiting",
                                           factor * (waiting.sum + waiting.beside) + kernel, words.data, &evidence)
                              : NULL;
    if (made) {
        made->share = factor * waiting.sum + kernel;
        made->is_of_cpu_time = is_of_cpu_time;
        free(made->place); /* in a library */
        made->place = NULL;
    }
    advice_set_place(made, &place);
    advices->failed |= words.failed;
    buf_fini(&words);
}

/* A lock that is free when it is taken, but is taken so often that this takes a good part of the time. */
static void advise_on_lock(struct advices *advices, uint32_t function, const struct lock_taker *taker)
{
    const struct report *report = advices->report;
    const struct report_row *row = NULL;
    struct held held = {0};
    struct buf evidence = {0}, place = {0};
    for (size_t i = 0; i < report->n_rows && !row; i++)
        if (report->rows[i].variable && !report->rows[i].part && report->rows[i].variable->name == taker->name)
            row = &report->rows[i];
    double share = row && report->total_value > 0
                       ? 100 * find_held(report, REPORT_NOT_WAITING, function, &held) / report->total_value
                       : 0;
    if (share < ADVICE_LARGE_PERCENT)
        return;
    double gain = in_held(report, &held);
    buf_printf(&evidence, "%.1f %% of all samples are where the lock is taken and given back, %.1f %% while it is held",
               share, fmax(0, gain - share));
    text_function(&place, model_text(report->model, function));
    buf_printf(&place, " (%s:%u)", path_last(model_text(report->model, held.file)),
               held.taken ? held.taken : held.first);
    struct advice *made =
        advice_add(advices, row, "lock", fmax(gain, share),
                   "a lock: take it less often, as with a copy of the data for each thread", &evidence);
    if (made) {
        made->share = share;
        made->is_verified = true;
    }
    advice_set_place(made, &place);
}

void advise_on_locks(struct advices *advices)
{
    const struct waits *waits = advices->report->waits;
    for (uint32_t i = 1; waits->has_locks && i < advices->report->model->strings.n_strings; i++)
        if (waits->takers[i].name && !waits->takers[i].is_contended)
            advise_on_lock(advices, i, &waits->takers[i]);
}

/* --- debug information --- */

/* Percent of all samples that are at the row's data, in functions without source lines; *function: the one with most of
 * them. */
static double without_lines(const struct report_row *row, uint32_t *function)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < row->n_lines; i++) {
        const struct report_line *line = &row->lines[i];
        if (line->line)
            continue;
        sum += line->value;
        if (line->value > most) {
            most = line->value;
            *function = line->function;
        }
    }
    return row->value > 0 ? sum / row->value * row->share : 0;
}

/* Code without debug information: no source lines, and fewer names. Said once, of the variable that most of it is at.
 */
void advise_on_debug_information(struct advices *advices, double least)
{
    const struct report_row *at = NULL;
    uint32_t function = 0, its = 0;
    double sum = 0, most = 0;
    struct buf evidence = {0};
    for (size_t i = 0; i < advices->report->n_rows; i++) {
        const struct report_row *row = &advices->report->rows[i];
        double share = row->variable && !report_is_special(row) ? without_lines(row, &its) : 0;
        sum += share;
        if (share > most) {
            most = share;
            at = row;
            function = its;
        }
    }
    if (!at || sum < least)
        return;
    const char *name = model_text(advices->report->model, function);
    buf_printf(&evidence, "%.0f %% of all samples are at data in functions without source lines, most of all %s", sum,
               *name ? name : "code without a name");
    struct advice *made = advice_add(advices, at, "debug-info", (double)NAN,
                                     "to learn more (source lines, names of variables and fields), compile with -g, or "
                                     "install the debug package of the library",
                                     &evidence);
    if (made) {
        made->memory = (double)NAN;
        made->rank = -1; /* it comes behind what is about the data */
    }
}
