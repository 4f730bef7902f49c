/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables for a terminal: the answer in short, the table with the lines that access each variable, and
 * below it what is needed to understand it. */
#include <stdio.h>

#include "base/path.h"
#include "export/advice/advice.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "export/vars-table.h"

#define LINES_SHOWN 3
#define TOUCH_SHARE_MIN 5.0 /* percent of all samples: from here on a row says who touched it first */

/* Time in the kernel goes above the table, because it is a share of another total, with a line that says where the
 * table's shares begin. */
static void put_kernel(const struct vars_table *table, const struct report *report, struct buf *out)
{
    double share = report_kernel_percent(report);
    char words[128];
    if (share <= 0)
        return;
    (void)snprintf(words, sizeof words, "of the CPU time: %.2f s in system calls and page faults", report->system_s);
    vars_table_put_words(table, share, SPECIAL_KERNEL, words, out);
    (void)snprintf(words, sizeof words, "of the CPU time: %.2f s, %s", report->user_s,
                   report->n_rows ? "whose samples are the rows below" : "of which there are no samples");
    vars_table_put_words(table, 100 - share, "user code", words, out);
    buf_append(out, "\n", 1);
}

/* The lines that access the variable: the first one, and more as long as they fit completely. */
static void put_access(const struct vars_table *table, const struct report_row *row, struct buf *out)
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
        buf_fini(&place);
        if (i > 0 && !has_room)
            break;
    }
    if (text.len_bytes) {
        buf_printf(out, "%*s", (int)table->indent, "");
        text_style(out, job, TEXT_DIM);
        text_wrapped(out, job, text.data, table->indent, table->indent);
        text_style(out, job, TEXT_PLAIN);
    }
    buf_fini(&text);
}

/* What the causes mean for a variable, if it matters. */
static void put_meaning(const struct vars_table *table, const struct report_row *row, struct buf *out)
{
    const char *meaning = row->share >= MEANING_PERCENT ? report_meaning(table->report, row) : NULL;
    if (!meaning || table->report->has_too_few)
        return;
    buf_printf(out, "%*s", (int)table->indent, "");
    text_style(out, table->job, TEXT_DIM);
    text_wrapped(out, table->job, meaning, table->indent, table->indent);
    text_style(out, table->job, TEXT_PLAIN);
}

/* Sums up the rows from the n-th on, which are not shown. Where rows are in the order of what waits, one of these may
 * take more time than all that are shown. */
static void put_rest(const struct export_job *job, const struct report *report, size_t n, struct buf *out)
{
    const struct report_row *largest = NULL;
    struct buf text = {0};
    double rest = 0, shown = 0;
    for (size_t i = 0; i < n; i++)
        shown = report->rows[i].share > shown ? report->rows[i].share : shown;
    for (size_t i = n; i < report->n_rows; i++) {
        rest += report->rows[i].share;
        if (report->rows[i].share > (largest ? largest->share : shown))
            largest = &report->rows[i];
    }
    if (n == report->n_rows)
        return;
    if (report->has_too_few)
        buf_printf(out, "%9s", "");
    else
        buf_printf(out, "%5.1f %%  ", rest);
    buf_printf(&text, "%zu more (--top 0 shows all)", report->n_rows - n);
    if (largest && n && report->has_causes && !job->by_time && !report->has_too_few)
        buf_printf(&text, ", of which %s takes %.1f %% (--order time begins with it)", largest->name, largest->share);
    text_wrapped(out, job, text.data ? text.data : "", 9, 9);
    buf_fini(&text);
}

/* The complete allocation path: each function calls the one before it. */
static void put_alloc_path(const struct vars_table *table, const struct report_row *row, struct buf *out)
{
    static struct leak_frame frames[LEAK_FRAMES_MAX];
    const struct model *model = table->report->model;
    bool is_block = row->variable && (row->variable->class == CLASS_HEAP || row->variable->class == CLASS_MMAP);
    size_t n = table->job->with_paths && is_block ? leaks_path(table->report, row, frames, LEAK_FRAMES_MAX) : 0;
    struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s", i ? " < " : "allocated by ");
        text_function(&text, model_text(model, frames[i].function));
        if (frames[i].line)
            buf_printf(&text, " %s:%u", path_last(model_text(model, frames[i].file)), frames[i].line);
    }
    if (n) {
        buf_printf(out, "%*s", (int)table->indent, "");
        text_style(out, table->job, TEXT_DIM);
        text_wrapped(out, table->job, text.data ? text.data : "", table->indent, table->indent);
        text_style(out, table->job, TEXT_PLAIN);
    }
    buf_fini(&text);
}

/* Who touched it first, and who used it, of variables with pages of their own and a share for which that matters. */
static void put_touches(const struct vars_table *table, const struct first_touches *touches,
                        const struct report_row *row, struct buf *out)
{
    struct buf text = {0};
    bool is_wanted = row->share >= TOUCH_SHARE_MIN || table->job->is_verbose;
    if (is_wanted && first_touch_matters(touches, row) && first_touch_put_sentence(touches, row, &text) && text.data) {
        buf_printf(out, "%*s", (int)table->indent, "");
        text_style(out, table->job, TEXT_DIM);
        text_wrapped(out, table->job, text.data, table->indent, table->indent);
        text_style(out, table->job, TEXT_PLAIN);
    }
    buf_fini(&text);
}

static void put_row(const struct vars_table *table, const struct first_touches *touches, const struct report_row *row,
                    struct buf *out)
{
    vars_table_put_row(table, row, out);
    put_meaning(table, row, out);
    put_access(table, row, out);
    put_touches(table, touches, row, out);
    put_alloc_path(table, row, out);
    fields_put_row(table->job, row, table->indent, out);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct vars_table table;
    struct derived derived = {0};
    struct first_touches touches = {0};
    int code = report_make(job->model, job->metric, job->with_unused, job->with_paths, &report, err);
    if (code != 0)
        return code;
    if (!job->by_time)
        report_order_by_memory(&report);
    size_t n_all = report.n_rows, n_first, n;
    report.n_rows = report_keep(&report, job->least); /* only these are chosen from */
    n = report_choose(&report, job->top, &n_first);
    report.n_rows = n_all;
    code = first_touches_make(&report, &touches, err);
    if (code == 0)
        code = shared_lines_mark(&report, job->with_paths, err);
    if (code == 0)
        code = derived_of_report(job, &report, &derived, err);
    if (code != 0) {
        first_touches_fini(&touches);
        report_fini(&report);
        return code;
    }
    vars_table_init(&table, &report, job, &derived, n);
    head_put(&report, job, out);
    buf_append(out, "\n", 1);
    vars_table_put_titles(&table, out);
    put_kernel(&table, &report, out);
    for (size_t i = 0; i < n_first; i++)
        put_row(&table, &touches, &report.rows[i], out);
    put_rest(job, &report, n, out);
    for (size_t i = n_first; i < n; i++)
        put_row(&table, &touches, &report.rows[i], out);
    foot_put(&report, job, n, out);
    code = advices_put_short(job, out, err);
    derived_fini(&derived);
    first_touches_fini(&touches);
    report_fini(&report);
    return code;
}

const struct exporter export_vars_text = {"vars", "text", write_text};
