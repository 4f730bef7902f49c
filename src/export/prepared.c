/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of a report: see prepared.h. */
#include "export/prepared.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "analysis/report/patterns.h"
#include "export/text-cells.h"

struct chosen {
    double share;
    size_t row;
};

static int compare_chosen(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

bool report_choose(struct report *report, double least, size_t top, size_t *n)
{
    *n = least > 0 ? report_count(report, least) : report->n_rows; /* these are the largest */
    *n = top && top < *n ? top : *n;
    if (*n == report->n_rows)
        return true;
    struct chosen *order = calloc(report->n_rows + 1, sizeof *order);
    struct report_row *others = calloc(report->n_rows + 1, sizeof *others);
    bool *is_chosen = calloc(report->n_rows + 1, 1), ok = order && others && is_chosen;
    size_t n_put = 0, n_others = 0;
    for (size_t i = 0; ok && i < report->n_rows; i++)
        order[i] = (struct chosen){report->rows[i].share, i};
    if (ok)
        qsort(order, report->n_rows, sizeof *order, compare_chosen);
    for (size_t i = 0; ok && i < *n; i++)
        is_chosen[order[i].row] = true;
    for (size_t i = 0; ok && i < report->n_rows; i++)
        if (is_chosen[i])
            report->rows[n_put++] = report->rows[i];
        else
            others[n_others++] = report->rows[i];
    if (n_others)
        memcpy(&report->rows[n_put], others, n_others * sizeof *others);
    free(order);
    free(others);
    free(is_chosen);
    return ok;
}

size_t report_count(const struct report *report, double least)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_rows; i++)
        n += report->rows[i].share >= least;
    return n;
}

int prepared_make(const struct export_job *job, unsigned parts, struct prepared *prepared, struct error *err)
{
    struct report *report = &prepared->report;
    bool with_unused = parts & PREPARED_UNUSED || (job->with_unused && !(parts & PREPARED_USED));
    bool with_paths = job->with_paths && !(parts & PREPARED_BY_SITE);
    *prepared = (struct prepared){0};
    int code = report_make(job->model, job->metric, with_unused, with_paths, report, err);
    if (code != 0)
        return code;
    if (parts & PREPARED_ORDER && !job->by_time)
        report_order_by_memory(report);
    prepared->n_rows = report->n_rows;
    if (parts & PREPARED_CHOICE && !report_choose(report, job->least, job->top, &prepared->n_rows))
        code = error_memory(err);
    prepared->n_left = report->n_rows - prepared->n_rows;
    if (code == 0 && parts & PREPARED_TOUCHES)
        code = first_touches_make(report, &prepared->touches, err);
    if (code == 0 && parts & PREPARED_SHARED_LINES)
        code = shared_lines_mark(report, err);
    if (code == 0 && parts & PREPARED_DERIVED)
        code = derived_of_report(job, report, &prepared->derived, err);
    if (code != 0)
        prepared_fini(prepared);
    return code;
}

void prepared_fini(struct prepared *prepared)
{
    derived_fini(&prepared->derived);
    first_touches_fini(&prepared->touches);
    report_fini(&prepared->report);
}

void split_add_columns(const struct split *split, uint64_t flags, struct column_list *list)
{
    static const struct column columns[] = {
        {"value", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},
        {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
        {"share_of_row", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
        {"program", NULL, CELL_TEXT},
    };
    column_list_make(list, split_by_name(split->by), NULL, CELL_TEXT | flags);
    column_list_add(list, columns, sizeof columns / sizeof *columns - !split->programs);
}

void split_fill_cells(const struct split *split, size_t row, double total, double of_row, struct table *table)
{
    struct table *cells = table_put_table(table, table->joined, table->n_joined);
    for (size_t i = split->first[row]; i < split->first[row + 1]; i++) {
        const struct split_cell *cell = &split->cells[i];
        table_put_text(cells, split->columns.strings[cell->column]);
        table_put_number(cells, cell->value);
        table_put_number(cells, percent_of(cell->value, total));
        table_put_number(cells, percent_of(cell->value, of_row));
        if (split->programs)
            table_put_text(cells, split->programs[cell->column]);
    }
}

void thread_put_cells(const struct model *model, uint32_t number, struct table *table)
{
    const struct thread *thread = &model->threads[number];
    const struct process *process = &model->processes[thread->process];
    table_put_count(table, process->pid);
    table_put_if(table, model_has_ranks(model), process->rank);
    table_put_count(table, thread->thread_id);
    table_put_name(table, model_text(model, thread->name));
}
