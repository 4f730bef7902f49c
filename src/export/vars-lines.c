/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of source that access a variable. */
#include "export/vars-lines.h"

#include "export/text-cells.h"

void lines_put_places(const struct report *report, const struct report_row *row, struct buf *text)
{
    uint64_t total = 0;
    for (uint32_t i = 0; row->places && i < report->model->n_numa_nodes; i++)
        total += row->places[i];
    if (total == 0 || report->model->n_numa_nodes < 2)
        return;
    buf_printf(text, "NUMA node");
    for (uint32_t i = 0; i < report->model->n_numa_nodes; i++) {
        double share = 100 * (double)row->places[i] / (double)total;
        if (share >= 0.5)
            buf_printf(text, " %u: %.0f %%", i, share);
    }
    buf_printf(text, "   ");
}

/* " in loop 77-79", with the file where that is another one than the line's; not again for the next line in it. */
static void put_loop(const struct report *report, const struct report_row *row, size_t i, struct buf *text)
{
    const struct report_line *line = &row->lines[i];
    bool is_told = i > 0 && line[-1].loop.first == line->loop.first && line[-1].loop.file == line->loop.file;
    if (!line->loop.first || is_told)
        return;
    buf_printf(text, " in loop ");
    if (line->loop.file != line->file)
        buf_printf(text, "%s:", text_base(model_text(report->model, line->loop.file)));
    text_lines(text, line->loop.first, line->loop.last);
}

void lines_put_place(const struct report *report, const struct report_row *row, size_t i, struct buf *text)
{
    const struct report_line *line = &row->lines[i];
    if (!report->has_too_few)
        buf_printf(text, "%.0f %% ", 100 * line->value / row->value);
    text_function(text, model_text(report->model, line->function));
    if (line->line)
        buf_printf(text, " %s:%u", text_base(model_text(report->model, line->file)), line->line);
    put_loop(report, row, i, text);
}
