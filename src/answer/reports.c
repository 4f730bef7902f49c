/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of reports, and how each comes in its forms. */
#include <string.h>

#include "answer/answer.h"
#include "fmt/json.h"
#include "table/table.h"

#define REPORTS(ROW)                                                                                                   \
    ROW(answer_vars)                                                                                                   \
    ROW(answer_functions)                                                                                              \
    ROW(answer_lines)                                                                                                  \
    ROW(answer_annotate)                                                                                               \
    ROW(answer_types)                                                                                                  \
    ROW(answer_tree)                                                                                                   \
    ROW(answer_datatree)                                                                                               \
    ROW(answer_advice)                                                                                                 \
    ROW(answer_leaks)                                                                                                  \
    ROW(answer_cpus)                                                                                                   \
    ROW(answer_numa)                                                                                                   \
    ROW(answer_first_touch)                                                                                            \
    ROW(answer_patterns)                                                                                               \
    ROW(answer_sharing)                                                                                                \
    ROW(answer_alignment)                                                                                              \
    ROW(answer_items)

#define DECLARE(name) extern const struct report_kind name;
#define ADDRESS(name) &name,

REPORTS(DECLARE)

static const struct report_kind *const all[] = {REPORTS(ADDRESS)};

const struct report_kind *const *reports(size_t *n)
{
    *n = sizeof all / sizeof *all;
    return all;
}

const struct report_kind *report_find(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

const struct report_forms *report_forms_of(const struct report_kind *kind, bool is_split, bool with_instructions)
{
    return is_split && kind->by_forms                      ? kind->by_forms
           : with_instructions && kind->instructions_forms ? kind->instructions_forms
                                                           : &kind->forms;
}

static report_writer *writer_of(const struct report_forms *forms, const char *form)
{
    return strcmp(form, "text") == 0   ? forms->text
           : strcmp(form, "csv") == 0  ? forms->csv
           : strcmp(form, "json") == 0 ? forms->json
           : strcmp(form, "html") == 0 ? forms->html
                                       : NULL;
}

bool report_has_form(const struct report_forms *forms, const char *form)
{
    return writer_of(forms, form) != NULL;
}

bool job_shows(const struct export_job *job, double share, size_t n_before)
{
    return (job->top == 0 || n_before < job->top) && (job->least <= 0 || share >= job->least);
}

int report_write(const struct report_forms *forms, const struct export_job *job, struct buf *out, struct error *err)
{
    return writer_of(forms, job->form)(job, out, err);
}

int export_put_rows(const struct export_job *job, struct table *table, struct buf *out, struct error *err)
{
    if (strcmp(job->form, "json") == 0)
        table_print_json(table, "\n", out);
    else
        table_print_csv(table, out);
    int code = table->failed ? error_memory(err) : 0;
    table_fini(table);
    return code;
}

const char *export_metric(const struct export_job *job)
{
    return job->model->metrics[job->metric].name;
}

int export_put_answer(const struct export_job *job, const char *metric, struct table *head, const char *name,
                      struct table *rows, struct buf *out, struct error *err)
{
    bool is_json = strcmp(job->form, "json") == 0;
    if (is_json) {
        buf_printf(out, "{\"program\": ");
        json_put_text(out, job->model->program);
        json_put_text_at(out, "metric", metric);
        buf_append(out, ", ", head ? 2 : 0);
        if (head)
            table_print_members(head, out);
        buf_printf(out, ",\n\"%s\": ", name);
    }
    if (head) {
        rows->failed |= head->failed;
        table_fini(head);
    }
    int code = export_put_rows(job, rows, out, err);
    buf_append(out, "}\n", is_json ? 2 : 0);
    return code;
}
