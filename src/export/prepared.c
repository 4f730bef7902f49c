/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of a report: see prepared.h. */
#include "export/prepared.h"

#include "analysis/report/patterns.h"
#include "analysis/report/report.h"

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
    if (code == 0 && parts & PREPARED_TOUCHES)
        code = first_touches_make(report, &prepared->touches, err);
    if (code == 0 && parts & PREPARED_SHARED_LINES)
        code = shared_lines_mark(report, job->with_paths, err);
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
