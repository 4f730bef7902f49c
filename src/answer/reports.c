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

const char *const about_variable[] = {"variable", NULL}, *const about_code[] = {"function", "file", NULL};

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

/* Whether the form is printed from the answer. */
static bool is_of_answer(const struct report_forms *forms, const char *form)
{
    return forms->make && (strcmp(form, "csv") == 0 || (strcmp(form, "json") == 0 && !forms->json) ||
                           (strcmp(form, "text") == 0 && !forms->text));
}

static report_writer *writer_of(const struct report_forms *forms, const char *form)
{
    return strcmp(form, "text") == 0 ? forms->text : strcmp(form, "json") == 0 ? forms->json : NULL;
}

bool report_has_form(const struct report_forms *forms, const char *form)
{
    return is_of_answer(forms, form) || writer_of(forms, form) || (forms->has_page && strcmp(form, "html") == 0);
}

bool job_shows(const struct export_job *job, double share, size_t n_before)
{
    return (job->top == 0 || n_before < job->top) && (job->least <= 0 || share >= job->least);
}

int report_answer(const struct report_forms *forms, const struct export_job *job, struct answer *answer,
                  struct error *err)
{
    const struct model *model = job->model;
    *answer = (struct answer){.program = model->program, .metric = model->metrics[job->metric].name};
    int code = forms->make(job, answer, err);
    if (code == 0 && (answer->head.failed || answer->rows.failed))
        code = error_memory(err);
    if (code != 0)
        answer_fini(answer);
    return code;
}

static void print_text(const struct answer *answer, struct buf *out)
{
    table_print_text(&answer->rows, out);
    if (answer->rows.n_more)
        buf_printf(out, "%zu more (--top 0 shows all)\n", answer->rows.n_more);
}

void answer_print(const struct answer *answer, const char *form, struct buf *out)
{
    if (strcmp(form, "json") == 0)
        answer_print_json(answer, out);
    else if (strcmp(form, "csv") == 0)
        table_print_csv(&answer->rows, out);
    else
        print_text(answer, out);
}

int report_write(const struct report_forms *forms, const struct export_job *job, struct buf *out, struct error *err)
{
    struct answer answer;
    if (!is_of_answer(forms, job->form))
        return writer_of(forms, job->form)(job, out, err);
    int code = report_answer(forms, job, &answer, err);
    if (code != 0)
        return code;
    answer_print(&answer, job->form, out);
    answer_fini(&answer);
    return 0;
}

/* --- answers --- */

struct table *answer_set_head(struct answer *answer, const struct column *columns, size_t n_columns)
{
    const struct column_list *list = &answer->head_columns;
    answer->head.columns = columns ? columns : list->items;
    answer->head.n_columns = columns ? n_columns : list->n;
    answer->head.failed |= list->failed;
    return &answer->head;
}

void answer_begin(struct answer *answer, const char *name, const struct column *columns, size_t n_columns)
{
    const struct column_list *list = &answer->columns;
    answer->name = name;
    answer->rows = (struct table){.columns = columns ? columns : list->items,
                                  .n_columns = columns ? n_columns : list->n,
                                  .joined = answer->cells.items,
                                  .n_joined = answer->cells.n,
                                  .failed = list->failed || answer->cells.failed};
}

void answer_join(struct answer *answer, const struct column *columns, size_t n_columns)
{
    answer->rows.joined = columns;
    answer->rows.n_joined = n_columns;
}

void answer_fini(struct answer *answer)
{
    table_fini(&answer->head);
    table_fini(&answer->rows);
    column_list_fini(&answer->head_columns);
    column_list_fini(&answer->columns);
    column_list_fini(&answer->cells);
    *answer = (struct answer){0};
}

void answer_print_json(const struct answer *answer, struct buf *out)
{
    buf_printf(out, "{\"program\": ");
    json_put_text(out, answer->program);
    json_put_text_at(out, "metric", answer->metric);
    if (answer->head.n_columns) {
        buf_append(out, ", ", 2);
        table_print_members(&answer->head, out);
    }
    buf_printf(out, ",\n\"%s\": ", answer->name);
    table_print_json(&answer->rows, "\n", out);
    buf_append(out, "}\n", 2);
}

void answer_print_packed(const struct answer *answer, struct buf *out)
{
    struct buf about = {0};
    json_put_key(&about, "program", 1);
    json_put_text(&about, answer->program);
    json_put_text_at(&about, "metric", answer->metric);
    json_put_text_at(&about, "name", answer->name);
    if (answer->head.n_columns) {
        json_put_key(&about, "head", 0);
        buf_append(&about, "{", 1);
        table_print_members(&answer->head, &about);
        buf_append(&about, "}", 1);
    }
    table_print_packed(&answer->rows, &about, out);
    buf_fini(&about);
}
