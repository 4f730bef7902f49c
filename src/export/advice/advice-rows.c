/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about rows that are no variables, and which line of the program they are from. See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <string.h>

#include "base/path.h"
#include "export/text-cells.h"

#define PLACES_MAX 256 /* different ones of a row */

/* --- where in the program --- */

/* A line of the program whose calls, or itself, took something of a row. */
struct program_line {
    uint32_t function, file, line; /* string ids */
    double value;
};

/* The innermost function of the program around a scope; false when there is none: a thread of a library. */
static bool find_program_line(const struct advices *advices, uint32_t scope, struct program_line *found)
{
    const struct model *model = advices->report.model;
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
    struct report *report = (struct report *)(uintptr_t)&advices->report; /* its labels of waits are a cache */
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
    const struct report *report = &advices->report;
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

/* --- rows --- */

/* Busy with arithmetic or branches: what the instructions of the loop with most of it are, and what calls it. */
static void advise_on_compute(struct advices *advices, const struct report_row *row)
{
    struct buf words = {0}, evidence = {0};
    if (row->causes.first_touch > ADVICE_PART * row->share) {
        buf_printf(&evidence, "%.0f %% of it is that of first touches of pages",
                   100 * row->causes.first_touch / row->share);
        (void)advice_add(advices, row, "page-touches", row->causes.first_touch,
                         "pages are touched first there: reuse memory, put it on huge pages, or touch it in parallel",
                         &evidence);
        return;
    }
    buf_printf(&evidence, "%s", special_rows_find(row->name)->means);
    struct code_advice at = advice_on_code(advices, row, row->share >= ADVICE_LARGE_PERCENT, &words, &evidence);
    if (!words.len_bytes)
        buf_printf(&words, "change the code at these lines");
    if (words.data)
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
        return report_lost_in_jit(&advices->report) > ADVICE_PART * row->share
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
    if (strcmp(special->name, "<system call>") == 0) {
        advise_on_calls(advices, row, &evidence);
        return;
    }
    struct advice *made = advice_add(advices, row, rule, (double)NAN, words_of(advices, row, special), &evidence);
    if (made && is_nothing)
        made->rank = 0;
}
