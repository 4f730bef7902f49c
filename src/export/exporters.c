/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of exporters. */
#include "export/exporters.h"

#include <string.h>

#include "fmt/json.h"
#include "table/table.h"

extern const struct exporter export_vars_text, export_vars_csv, export_vars_html, export_vars_json, export_html;
extern const struct exporter export_regions_text, export_regions_csv, export_regions_json;
extern const struct exporter export_tree_text, export_tree_csv, export_tree_json;
extern const struct exporter export_datatree_text, export_datatree_csv, export_datatree_json;
extern const struct exporter export_advice_text, export_advice_csv, export_advice_json;
extern const struct exporter export_types_text, export_types_csv, export_types_json;
extern const struct exporter export_database_json;
extern const struct exporter export_functions_text, export_functions_csv, export_functions_json;
extern const struct exporter export_lines_text, export_lines_csv, export_lines_json;
extern const struct exporter export_annotate_text, export_annotate_csv, export_annotate_json;
extern const struct exporter export_instructions_text, export_instructions_csv, export_instructions_json;
extern const struct exporter export_annotate_by_text, export_annotate_by_csv, export_annotate_by_json;
extern const struct exporter export_vars_by_text, export_vars_by_csv, export_vars_by_json;
extern const struct exporter export_functions_by_text, export_functions_by_csv, export_functions_by_json;
extern const struct exporter export_types_by_text, export_types_by_csv, export_types_by_json;
extern const struct exporter export_lines_by_text, export_lines_by_csv, export_lines_by_json;
extern const struct exporter export_cpus_text, export_cpus_csv, export_cpus_json;
extern const struct exporter export_patterns_text, export_patterns_csv, export_patterns_json;
extern const struct exporter export_sharing_text, export_sharing_csv, export_sharing_json;
extern const struct exporter export_leaks_text, export_leaks_csv, export_leaks_json;
extern const struct exporter export_numa_text, export_numa_csv, export_numa_json;
extern const struct exporter export_first_touch_text, export_first_touch_csv, export_first_touch_json;

static const struct exporter *const exporters[] = {
    &export_vars_text,         &export_vars_csv,          &export_vars_json,
    &export_vars_html,         &export_tree_text,         &export_tree_csv,
    &export_tree_json,         &export_leaks_text,        &export_leaks_csv,
    &export_leaks_json,        &export_regions_text,      &export_regions_csv,
    &export_regions_json,      &export_database_json,     &export_functions_text,
    &export_functions_csv,     &export_functions_json,    &export_lines_text,
    &export_lines_csv,         &export_lines_json,        &export_annotate_text,
    &export_annotate_csv,      &export_annotate_json,     &export_vars_by_text,
    &export_vars_by_csv,       &export_vars_by_json,      &export_functions_by_text,
    &export_functions_by_csv,  &export_functions_by_json, &export_lines_by_text,
    &export_lines_by_csv,      &export_lines_by_json,     &export_datatree_text,
    &export_datatree_csv,      &export_datatree_json,     &export_types_text,
    &export_types_csv,         &export_types_json,        &export_html,
    &export_advice_text,       &export_advice_csv,        &export_advice_json,
    &export_types_by_text,     &export_types_by_csv,      &export_types_by_json,
    &export_instructions_text, &export_instructions_csv,  &export_instructions_json,
    &export_cpus_text,         &export_cpus_csv,          &export_cpus_json,
    &export_numa_text,         &export_numa_csv,          &export_numa_json,
    &export_first_touch_text,  &export_first_touch_csv,   &export_first_touch_json,
    &export_patterns_text,     &export_patterns_csv,      &export_patterns_json,
    &export_sharing_text,      &export_sharing_csv,       &export_sharing_json,
    &export_annotate_by_text,  &export_annotate_by_csv,   &export_annotate_by_json,
};

const struct exporter *exporters_find(const char *report, const char *form)
{
    for (size_t i = 0; i < sizeof exporters / sizeof *exporters; i++)
        if (strcmp(exporters[i]->report, report) == 0 && strcmp(exporters[i]->form, form) == 0)
            return exporters[i];
    return NULL;
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

int export_put_table(const struct export_job *job, const char *name, struct table *table, struct buf *out,
                     struct error *err)
{
    if (strcmp(job->form, "json") == 0) {
        buf_printf(out, "{\"program\": ");
        json_put_text(out, job->model->program);
        json_put_key(out, name, 0);
    }
    return export_put_rows(job, table, out, err);
}

int export_put_answer(const struct export_job *job, struct table *head, const char *name, struct table *rows,
                      struct buf *out, struct error *err)
{
    bool is_json = strcmp(job->form, "json") == 0;
    rows->failed |= head->failed;
    if (is_json) {
        buf_append(out, "{", 1);
        table_print_members(head, out);
        buf_printf(out, ",\n\"%s\": ", name);
    }
    table_fini(head);
    int code = export_put_rows(job, rows, out, err);
    buf_append(out, "}\n", is_json ? 2 : 0);
    return code;
}
