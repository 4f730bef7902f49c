/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields in the table of variables for a terminal. */
#include "export/vars-fields.h"

#include <stdio.h>
#include <string.h>

#include "export/text-cells.h"

#define FIELDS_SHOWN 12
#define FIELD_MIN 0.005 /* of the row's samples */
#define NAME_WIDTH 34

/* Of a local variable without its function, which is shown beside it. */
static const char *short_name(const char *name)
{
    const char *local = strstr(name, "()::");
    return local && strlen(name) > NAME_WIDTH ? local + 4 : name;
}

void fields_put_summary(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    int n = 0;
    if (!report->has_fields)
        return;
    buf_printf(&text, "%.1f %% of the samples in variables lie in a field or element of known type", report->typed);
    for (int i = 1; i < TYPE_SOURCES; i++)
        if (report->typed_by[i] >= 0.05)
            buf_printf(&text, "%s%s %.1f %%", n++ ? ", " : " (by ", model_type_source_name((enum type_source)i),
                       report->typed_by[i]);
    buf_printf(&text, n ? ")" : "");
    if (report->typed < 99.95)
        buf_printf(&text, ", of the others at most the offset is known");
    text_labelled(out, job, "types", text.data);
    buf_fini(&text);
}

static void put_line(const struct export_job *job, const char *text, size_t indent, struct buf *out)
{
    buf_printf(out, "%*s", (int)indent, "");
    text_style(out, job, TEXT_DIM);
    text_wrapped(out, job, text, indent, indent + 2);
    text_style(out, job, TEXT_PLAIN);
}

static void put_field(const struct export_job *job, const struct report_row *row, const struct report_field *field,
                      size_t indent, struct buf *out)
{
    struct buf text = {0};
    buf_printf(&text, "%5.1f %%  ", 100 * field->fraction);
    bool is_typed = !(field->flags & FIELD_UNTYPED);
    text_cell(&text, job, is_typed ? short_name(field->name) : field->path, NAME_WIDTH, false);
    if (!is_typed)
        buf_printf(&text, "  no type");
    else if (row->element_bytes && field->size_bytes && field->size_bytes < row->element_bytes)
        buf_printf(&text, "  %llu of %llu bytes, %s", (unsigned long long)field->size_bytes,
                   (unsigned long long)row->element_bytes, field->type);
    else
        buf_printf(&text, "  %s", field->type);
    put_line(job, text.data, indent, out);
    buf_fini(&text);
}

void fields_put_row(const struct export_job *job, const struct report_row *row, size_t indent, struct buf *out)
{
    size_t n = 0;
    while (job->with_fields && n < row->n_fields && n < FIELDS_SHOWN && row->fields[n].fraction >= FIELD_MIN)
        put_field(job, row, &row->fields[n++], indent, out);
    if (n && n < row->n_fields) {
        double rest = 0;
        char text[64];
        for (size_t i = n; i < row->n_fields; i++)
            rest += row->fields[i].fraction;
        (void)snprintf(text, sizeof text, "%5.1f %%  %zu more", 100 * rest, row->n_fields - n);
        put_line(job, text, indent, out);
    }
    if (row->advice)
        put_line(job, row->advice, indent, out);
}
