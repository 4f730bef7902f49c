/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples by type and field, over all variables whose elements are of that type, and those at no variable, as text,
 * CSV and JSON. */
#include "analysis/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "table/table.h"

#define NAME_WIDTH 34
#define VARIABLES_SHOWN 3
#define FIELD_SHARE_MIN 0.05 /* percent: anything less would be printed as 0.0 */

/* A field of a type, whatever variable it is in. */
struct type_field {
    const char *path; /* within an element: ".vel.x" */
    const char *type;
    uint32_t flags;                    /* FIELD_* */
    uint64_t offset_bytes, size_bytes; /* offset: modulo 2^64, as what is untyped may lie before the type */
    double samples, share;
};

struct type_row {
    const char *type; /* "" = not known */
    bool is_special;  /* no variables: the type is the name of the rows */
    uint64_t element_bytes;
    double samples, share, value;   /* of all variables of the type; share: percent of all samples */
    const struct report_row **rows; /* [n_rows] of the report, as that orders them */
    size_t n_rows, cap_rows;
    struct type_field *fields; /* [n_fields] by samples, most first */
    size_t n_fields, cap_fields;
};

struct types {
    struct prepared prepared;
    struct type_row *types; /* [n_types] by share, highest first */
    size_t n_types, cap_types;
    size_t n_left;
    double rest; /* share of the types that are left out */
    struct derived derived;
};

static void types_fini(struct types *types)
{
    for (size_t i = 0; i < types->n_types; i++) {
        free(types->types[i].rows);
        free(types->types[i].fields);
    }
    free(types->types);
    derived_fini(&types->derived);
    prepared_fini(&types->prepared);
}

static uint64_t hash_of_type(const void *item)
{
    const struct type_row *row = item;
    return bytes_hash_text(BYTES_HASH_START, row->type) + row->element_bytes;
}

static bool is_same_type(const void *one, const void *other)
{
    const struct type_row *a = one, *b = other;
    return a->element_bytes == b->element_bytes && strcmp(a->type, b->type) == 0;
}

static uint64_t hash_of_field(const void *item)
{
    const struct type_field *field = item;
    return bytes_hash_text(BYTES_HASH_START, field->path) + field->offset_bytes + ((uint64_t)field->flags << 32);
}

static bool is_same_field(const void *one, const void *other)
{
    const struct type_field *a = one, *b = other;
    return a->flags == b->flags && a->offset_bytes == b->offset_bytes && strcmp(a->path, b->path) == 0;
}

static const struct slots_kind type_kind = {sizeof(struct type_row), hash_of_type, is_same_type};
static const struct slots_kind field_kind = {sizeof(struct type_field), hash_of_field, is_same_field};

/* The type's row for a row of the report; NULL when out of memory. */
static struct type_row *find_type(struct types *types, struct slots *slots, const struct report_row *row)
{
    bool is_data = !report_is_special(row), is_known = is_data && row->type && *row->type;
    const struct type_row like = {.type = is_known  ? row->type
                                          : is_data ? ""
                                                    : row->name,
                                  .is_special = !is_data,
                                  .element_bytes = is_known ? row->element_bytes : 0};
    size_t index = slots_put(slots, &type_kind, &types->types, &types->n_types, &types->cap_types, &like);
    return index == SLOTS_NONE ? NULL : &types->types[index];
}

static bool add_row(struct type_row *type, const struct report_row *row)
{
    if (!vec_reserve(&type->rows, &type->cap_rows, type->n_rows + 1, sizeof *type->rows))
        return false;
    type->rows[type->n_rows++] = row;
    type->samples += row->samples;
    type->share += row->share;
    type->value += row->value;
    return true;
}

static int compare_fields(const void *a, const void *b)
{
    const struct type_field *x = a, *y = b;
    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    if (x->offset_bytes != y->offset_bytes)
        return x->offset_bytes < y->offset_bytes ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Adds the fields of all rows of a type. */
static bool add_fields(struct type_row *type)
{
    struct slots slots = {0};
    bool ok = true;
    for (size_t r = 0; ok && r < type->n_rows; r++)
        for (size_t f = 0; ok && f < type->rows[r]->n_fields; f++) {
            const struct report_field *from = &type->rows[r]->fields[f];
            const struct type_field like = {.path = report_path_in_element(from->path, from->flags),
                                            .type = from->type,
                                            .flags = from->flags,
                                            .offset_bytes = from->offset_bytes,
                                            .size_bytes = from->size_bytes};
            size_t index = slots_put(&slots, &field_kind, &type->fields, &type->n_fields, &type->cap_fields, &like);
            ok = index != SLOTS_NONE;
            if (ok) {
                type->fields[index].samples += from->samples;
                type->fields[index].share += from->share;
            }
        }
    slots_fini(&slots);
    if (type->n_fields)
        qsort(type->fields, type->n_fields, sizeof *type->fields, compare_fields);
    return ok;
}

static int compare_types(const void *a, const void *b)
{
    const struct type_row *x = a, *y = b;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    int order = strcmp(x->type, y->type);
    return order ? order : x->element_bytes < y->element_bytes ? -1 : x->element_bytes > y->element_bytes;
}

/* Leaves out types below the least part, and all but the first ones. */
static void leave_out(struct types *types, const struct export_job *job)
{
    size_t n = 0, n_all = types->n_types;
    for (size_t i = 0; i < n_all; i++) {
        struct type_row *type = &types->types[i];
        if (job_shows(job, type->share, n)) {
            types->types[n++] = *type;
            continue;
        }
        types->rest += type->share;
        types->n_left++;
        free(type->rows);
        free(type->fields);
    }
    types->n_types = n;
}

static double metric_of_type(const void *context, size_t row, size_t metric, bool is_inclusive)
{
    const struct types *types = context;
    const struct type_row *type = &types->types[row];
    double value = 0;
    (void)is_inclusive;
    for (size_t i = 0; i < type->n_rows; i++)
        value += report_value(&types->prepared.report, type->rows[i], metric);
    return value;
}

static int types_make(struct types *types, const struct export_job *job, struct error *err)
{
    *types = (struct types){0};
    struct slots slots = {0};
    int code = prepared_make(job, PREPARED_BY_SITE, &types->prepared, err);
    if (code != 0)
        return code;
    bool ok = true;
    for (size_t i = 0; ok && i < types->prepared.report.n_rows; i++) {
        const struct report_row *row = &types->prepared.report.rows[i];
        struct type_row *type = find_type(types, &slots, row);
        ok = type && add_row(type, row);
    }
    slots_fini(&slots);
    for (size_t i = 0; ok && i < types->n_types; i++)
        ok = types->types[i].is_special || add_fields(&types->types[i]);
    if (types->n_types)
        qsort(types->types, types->n_types, sizeof *types->types, compare_types);
    leave_out(types, job);
    code = ok ? derived_make(job, types->n_types, metric_of_type, types, &types->derived, err) : error_memory(err);
    if (code != 0)
        types_fini(types);
    return code;
}

static size_t n_variables(const struct type_row *type)
{
    return type->is_special ? 0 : type->n_rows;
}

/* The variables of a type, with where they come from when others have the same name. */
static void put_names(const struct type_row *type, size_t most, const char *between, struct buf *names)
{
    for (size_t i = 0; i < n_variables(type) && i < most; i++) {
        const struct report_row *row = type->rows[i];
        buf_printf(names, "%s%s", i ? between : "", row->name);
        if (row->is_twin && *row->site)
            buf_printf(names, " from %s", row->site);
    }
}

/* --- text --- */

static void put_bytes(uint64_t bytes, struct buf *out)
{
    if (bytes)
        buf_printf(out, "%8llu  ", (unsigned long long)bytes);
    else
        buf_printf(out, "%8s  ", "-");
}

static void put_type(const struct export_job *job, const struct types *types, size_t i, struct buf *out)
{
    const struct type_row *type = &types->types[i];
    size_t used = NAME_WIDTH + 30 + derived_width(&types->derived);
    struct buf names = {0};
    put_names(type, VARIABLES_SHOWN, ", ", &names);
    if (n_variables(type) > VARIABLES_SHOWN)
        buf_printf(&names, " and %zu more", type->n_rows - VARIABLES_SHOWN);
    buf_printf(out, "%5.1f %%  ", type->share);
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, *type->type ? type->type : "type not known", NAME_WIDTH, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  %8s", "");
    put_bytes(type->element_bytes, out);
    derived_put_cells(&types->derived, i, out);
    text_cut(out, job, names.data ? names.data : "", job->columns > used ? job->columns - used : 1);
    text_end_line(out);
    buf_fini(&names);
}

/* The fields of a type; nothing where an element has no fields. */
static void put_type_fields(const struct export_job *job, const struct type_row *type, size_t of_derived,
                            struct buf *out)
{
    size_t used = NAME_WIDTH + 30 + of_derived;
    for (size_t i = 0; i < type->n_fields && *type->type; i++) {
        const struct type_field *field = &type->fields[i];
        if (field->share < FIELD_SHARE_MIN || field->share < job->least || !*field->path)
            continue;
        buf_printf(out, "%7.1f %%  ", field->share);
        text_cell(out, job, field->path, NAME_WIDTH - 2, false);
        buf_printf(out, "  %8lld", (long long)field->offset_bytes);
        put_bytes(field->size_bytes, out);
        buf_printf(out, "%*s", (int)of_derived, "");
        text_cut(out, job, field->flags & FIELD_PADDING ? "padding" : field->type,
                 job->columns > used ? job->columns - used : 1);
        text_end_line(out);
    }
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct types types;
    const struct model *model = job->model;
    int code = types_make(&types, job, err);
    if (code != 0)
        return code;
    text_program(out, job);
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "\n  share  %-*s  %8s%8s  ", NAME_WIDTH, "type and fields", "offset", "bytes");
    derived_put_titles(&types.derived, job, out);
    buf_printf(out, "variables\n");
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < types.n_types; i++) {
        put_type(job, &types, i, out);
        put_type_fields(job, &types.types[i], derived_width(&types.derived), out);
    }
    if (types.n_left)
        buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", types.rest, types.n_left);
    types_fini(&types);
    return 0;
}

/* --- CSV and JSON --- */

/* Of types and of their fields, whose rows follow in CSV. */
static const struct column first_columns[] = {
    {"type", NULL, CELL_TEXT},
    {"field", NULL, CELL_TEXT | COLUMN_LEFT_OUT},
    {"field_type", NULL, CELL_TEXT | COLUMN_LEFT_OUT},
    {"offset_bytes", NULL, CELL_COUNT | COLUMN_LEFT_OUT},
    {"size_bytes", NULL, CELL_WORD},
    {"typed", NULL, CELL_FLAG},
    {"samples", NULL, CELL_NUMBER | COLUMN_ALL_DIGITS},
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"n_variables", NULL, CELL_COUNT | COLUMN_LEFT_OUT},
    {"variables", NULL, CELL_TEXT | COLUMN_NO_JSON},
    {"value", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_ALL_DIGITS},
};

static const struct column last_columns[] = {
    {"variables", NULL, CELL_TABLE | COLUMN_BARE | COLUMN_LEFT_OUT},
    {"fields", NULL, CELL_TABLE | COLUMN_INDENTED | COLUMN_FOLLOWS | COLUMN_LEFT_OUT},
};

static const struct column name_columns[] = {{"variable", NULL, CELL_TEXT}};

static const struct column head_columns[] = {
    {"total_samples", NULL, CELL_NUMBER},
};

static void fill_field(struct table *table, const struct types *types, const struct type_row *type,
                       const struct type_field *field)
{
    table_put_name(table, type->type);
    table_put_text(table, *field->path ? field->path : "(all)");
    table_put_name(table, field->type);
    table_put_count(table, (int64_t)field->offset_bytes);
    table_put_word(table, field->size_bytes);
    table_put_flag(table, !(field->flags & FIELD_UNTYPED));
    table_put_number(table, field->samples);
    table_put_number(table, field->share);
    table_put_absents(table, 3);
    derived_put_row(&types->derived, SIZE_MAX, table);
    table_put_absents(table, 2);
}

static void fill_type(struct table *table, const struct types *types, size_t number)
{
    const struct type_row *type = &types->types[number];
    struct buf names = {0};
    put_names(type, type->n_rows, "; ", &names);
    table_put_name(table, type->type);
    table_put_absents(table, 3);
    table_put_word_if(table, type->element_bytes > 0, type->element_bytes);
    table_put_flag(table, *type->type && !type->is_special);
    table_put_number(table, type->samples);
    table_put_number(table, type->share);
    table_put_count(table, (int64_t)n_variables(type));
    table_put_made(table, &names);
    table_put_number(table, type->value);
    derived_put_row(&types->derived, number, table);
    struct table *inner = table_put_table(table, COLUMNS(name_columns));
    for (size_t i = 0; i < n_variables(type); i++)
        table_put_text(inner, type->rows[i]->name);
    inner = table_put_table(table, table->columns, table->n_columns);
    for (size_t i = 0; i < type->n_fields; i++)
        fill_field(inner, types, type, &type->fields[i]);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct types types;
    int code = types_make(&types, job, err);
    if (code != 0)
        return code;
    column_list_add(&answer->columns, COLUMNS(first_columns));
    derived_add_columns(&types.derived, &answer->columns);
    column_list_add(&answer->columns, COLUMNS(last_columns));
    answer_begin(answer, "types", NULL, 0);
    answer->rows.n_more = types.n_left;
    table_put_number(answer_set_head(answer, COLUMNS(head_columns)), types.prepared.report.total_samples);
    for (size_t i = 0; i < types.n_types; i++)
        fill_type(&answer->rows, &types, i);
    types_fini(&types);
    return 0;
}

static const struct ask_note notes[] = {
    {ASK_ALL, "Also list types without samples."},
    NOTE_BY_EXTREMES,
    {0, NULL},
};

const struct report_kind answer_types = {
    .name = "types",
    .operands = "DB",
    .summary = "the samples in variables by the type of their elements and by field",
    .manual = "types prints the samples in variables by the type of their elements and by field, over all variables of "
              "the type.",
    .example = "types --by function hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(ALL) | ASK(BY) | ASK(DERIVE),
    .options_by = ASK_ROWS | ASK(BY),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = notes,
    .forms = {.make = make_answer, .text = write_text},
    .by_forms = &by_forms,
};
