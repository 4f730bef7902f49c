/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fields of rows and the lines that others modify say about their layout: see report_add_advice in report.h.
 */
#include "analysis/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAYOUT_SHARE 2.0   /* percent of all samples that a row must have */
#define LAYOUT_SAMPLES 20  /* and its samples */
#define LAYOUT_BYTES 32768 /* and its size: smaller ones stay in the first-level cache however they are laid out */
#define HOT_PART 0.8       /* of the row's samples that the hot fields must have ... */
#define HOT_UNITS 3        /* ... which are so many at most, before what their loops use is added ... */
#define HOT_BYTES 0.5      /* ... and so much of an element in the end */
#define WHOLE_BYTES 32     /* a member that has members of its own stays whole up to this size */
#define USES_PART 0.05     /* of a loop's samples: that it uses hot fields ... */
#define ALONG_PART 0.02    /* ... and that it uses others along with these */
#define TOUCHED_PART 0.5   /* of a line's samples, that are first touches of pages: the line fills the row */
#define LEFT_LEAST 0.02    /* of the row's samples, without these */
#define TOUCHED_TOLD 0.01  /* of the row's samples left out: that is said */
#define LINE_BYTES 64
#define UNITS_MAX 48
#define LOOPS_MAX 256
#define NAMES_SHOWN 5

/* What stays whole: a field, or a small member with the fields in it. */
struct unit {
    const char *name; /* the path within an element: ".pos"; not ended */
    size_t n_name;
    uint64_t low, high; /* its bytes */
    double fraction;
    bool is_hot;
};

/* A loop that uses the row's elements, or a function without one. */
struct use {
    uint32_t file, line, name; /* of the scope */
    double n[UNITS_MAX], sum;
};

struct layout {
    const struct report *report;
    const struct report_row *row;
    struct unit units[UNITS_MAX];
    size_t n_units;
    double touched;   /* fraction of the row's samples that was left out, as they are first touches of pages */
    struct use *uses; /* [n_uses] */
    size_t n_uses, capacity;
};

/* Whether the field is one of an array of structures: "[].x", "(:)%x". */
static bool is_in_element(const char *path, uint32_t flags)
{
    return !flags && (strncmp(path, "[].", 3) == 0 || strncmp(path, "(:)%", 4) == 0);
}

/* Length of a path within an element, which is not empty, without the last member, 0 when it has only one: of ".vel.x"
 * that of ".vel". */
static size_t parent_length(const char *path)
{
    size_t n = 0;
    for (size_t i = 1; path[i]; i++)
        n = path[i] == '.' || path[i] == '%' ? i : n;
    return n;
}

/* Length of a path without the subscripts at its end. */
static size_t bare_length(const char *path)
{
    size_t n = strlen(path);
    while (n > 2 && (path[n - 1] == ']' || path[n - 1] == ')')) {
        char begin = path[n - 1] == ']' ? '[' : '(';
        while (n > 1 && path[n - 1] != begin)
            n--;
        n--;
    }
    return n;
}

/* The bytes that the fields below a member have, from the first to the last one. */
static uint64_t extent_of(const struct report_row *row, const char *path, size_t n)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < row->n_fields; i++) {
        const struct report_field *field = &row->fields[i];
        if (strncmp(report_path_in_element(field->path, field->flags), path, n) != 0)
            continue;
        low = field->offset_bytes < low ? field->offset_bytes : low;
        high = field->offset_bytes + field->size_bytes > high ? field->offset_bytes + field->size_bytes : high;
    }
    return high > low ? high - low : 0;
}

/* Index of the unit that a path within an element belongs to; n_units when there is none yet. */
static size_t find_unit(const struct layout *layout, const char *path)
{
    size_t i = 0, n = strlen(path);
    for (; i < layout->n_units; i++) {
        const struct unit *unit = &layout->units[i];
        bool is_below = n >= unit->n_name && strncmp(path, unit->name, unit->n_name) == 0;
        if (is_below && (!path[unit->n_name] || strchr(".%[(", path[unit->n_name])))
            break;
    }
    return i;
}

/* Whether two members of a unit are the halves of a number: then a half that no sample fell on is there all the same.
 */
static bool is_half(const char *path)
{
    static const char *const halves[] = {"r", "i", "re", "im", "real", "imag"};
    const char *name = path + parent_length(path) + 1;
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        if (strcmp(name, halves[i]) == 0)
            return true;
    return false;
}

/* Adds a field to its unit. False when it is no member of an element, or there are too many. */
static bool add_field(struct layout *layout, const struct report_field *field)
{
    const char *path = report_path_in_element(field->path, field->flags);
    if (!is_in_element(field->path, field->flags) || layout->n_units == UNITS_MAX)
        return false;
    size_t n_parent = parent_length(path), at = find_unit(layout, path);
    struct unit *unit = &layout->units[at];
    bool is_whole = n_parent && extent_of(layout->row, path, n_parent + 1) <= WHOLE_BYTES;
    if (at == layout->n_units) {
        *unit = (struct unit){.name = path, .n_name = is_whole ? n_parent : bare_length(path), .low = UINT64_MAX};
        layout->n_units++;
    }
    uint64_t high = field->offset_bytes + field->size_bytes;
    unit->low = field->offset_bytes < unit->low ? field->offset_bytes : unit->low;
    unit->high = high > unit->high ? high : unit->high;
    if (is_whole && is_half(path) && unit->high - unit->low == field->size_bytes)
        unit->high = unit->low + 2 * field->size_bytes;
    unit->fraction += field->fraction;
    return true;
}

static int compare_units(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    if (x->fraction != y->fraction)
        return x->fraction > y->fraction ? -1 : 1;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* --- which loops use what --- */

/* The loop around a scope, or the function. */
static const struct scope *place_of(const struct model *model, uint32_t scope)
{
    while (scope && model->scopes[scope].kind != SCOPE_LOOP && model->scopes[scope].kind != SCOPE_PROC)
        scope = model->scopes[scope].parent;
    return &model->scopes[scope];
}

/* The use at a place, added when new; NULL when there are too many, or out of memory. */
static struct use *find_use(struct layout *layout, const struct scope *place)
{
    size_t i = 0;
    while (i < layout->n_uses && !(layout->uses[i].file == place->file && layout->uses[i].line == place->line &&
                                   layout->uses[i].name == place->name))
        i++;
    if (i == LOOPS_MAX || !vec_reserve(&layout->uses, &layout->capacity, i + 1, sizeof *layout->uses))
        return NULL;
    if (i == layout->n_uses)
        layout->uses[layout->n_uses++] = (struct use){.file = place->file, .line = place->line, .name = place->name};
    return &layout->uses[i];
}

/* Whether most of the row's samples at the line of a statement are first touches of pages. What fills a structure
 * writes all its fields once, and such samples lie where pages begin: they say nothing about how fields are used. */
static bool is_filled_at(const struct report_row *row, const struct scope *statement)
{
    double share = 0, touched = 0;
    if (row->causes.first_touch <= 0)
        return false;
    for (size_t i = 0; i < row->n_lines; i++) {
        const struct report_line *line = &row->lines[i];
        if (line->file != statement->file || line->line != statement->line)
            continue;
        share += line->value / row->value * row->share;
        touched += line->touched;
    }
    return touched > TOUCHED_PART * share;
}

/* Adds up the samples of each loop on each unit. */
static void add_uses(struct layout *layout, uint32_t event)
{
    const struct model *model = layout->report->model;
    const struct report_row *row = layout->row;
    uint32_t part = row->part ? (uint32_t)(row->part - row->variable->parts) : FIELD_NO_PART;
    uint32_t variable = (uint32_t)(row->variable - layout->report->variables);
    double sum = 0;
    for (size_t i = 0; i < row->n_fields; i++)
        sum += row->fields[i].samples;
    for (size_t i = 0; i < model->n_field_counts; i++) {
        const struct field_count *count = &model->field_counts[i];
        const struct variable_field *field = &model->variables[count->variable].fields[count->field];
        if (layout->report->variable_of[count->variable] != variable || field->event != event || field->part != part)
            continue;
        size_t unit = find_unit(layout, report_path_in_element(model_text(model, field->name), field->flags));
        if (is_filled_at(row, &model->scopes[count->scope])) {
            layout->touched += (double)count->n_samples / sum;
            if (unit < layout->n_units)
                layout->units[unit].fraction -= (double)count->n_samples / sum;
            continue;
        }
        struct use *use = unit < layout->n_units ? find_use(layout, place_of(model, count->scope)) : NULL;
        if (!use)
            continue;
        use->n[unit] += (double)count->n_samples;
        use->sum += (double)count->n_samples;
    }
}

/* What is left of the row without first touches counts as all of it. False when nothing is. */
static bool leave_out_touched(struct layout *layout)
{
    double left = 1 - layout->touched;
    for (size_t i = 0; i < layout->n_units && left > 0; i++)
        layout->units[i].fraction = fmax(0, layout->units[i].fraction) / left;
    return left > LEFT_LEAST;
}

/* What a loop uses along with hot units is hot. */
static void join_used(struct layout *layout)
{
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (size_t i = 0; i < layout->n_uses; i++) {
            const struct use *use = &layout->uses[i];
            double hot = 0;
            for (size_t k = 0; k < layout->n_units; k++)
                hot += layout->units[k].is_hot ? use->n[k] : 0;
            for (size_t k = 0; hot >= USES_PART * use->sum && k < layout->n_units; k++)
                if (!layout->units[k].is_hot && use->n[k] > 1 && use->n[k] >= ALONG_PART * use->sum)
                    layout->units[k].is_hot = has_changed = true;
        }
    }
}

/* --- the sentence --- */

/* The first units, by samples, that have HOT_PART of them; false when they are too many. */
static bool choose_hot(struct layout *layout)
{
    double sum = 0;
    qsort(layout->units, layout->n_units, sizeof *layout->units, compare_units);
    for (size_t i = 0; i < layout->n_units && i < HOT_UNITS && sum < HOT_PART; i++) {
        layout->units[i].is_hot = true;
        sum += layout->units[i].fraction;
    }
    return sum >= HOT_PART;
}

/* Appends the names of the hot units, "a, b and c". */
static void put_names(const struct layout *layout, size_t n_hot, struct buf *text)
{
    size_t n = 0, n_shown = n_hot > NAMES_SHOWN ? NAMES_SHOWN - 1 : n_hot;
    for (size_t i = 0; i < layout->n_units && n < n_shown; i++) {
        if (!layout->units[i].is_hot)
            continue;
        n++;
        buf_printf(text, "%s%.*s",
                   n == 1       ? ""
                   : n == n_hot ? " and "
                                : ", ",
                   (int)layout->units[i].n_name, layout->units[i].name);
    }
    if (n < n_hot)
        buf_printf(text, " and %zu more", n_hot - n);
}

/* The bytes of all lines that the hot units of an element lie in, if that begins with a line. */
static uint64_t line_bytes(const struct layout *layout)
{
    uint64_t n = 0;
    for (uint64_t line = 0; line * LINE_BYTES < layout->row->element_bytes; line++) {
        bool is_used = false;
        for (size_t i = 0; i < layout->n_units; i++)
            is_used |= layout->units[i].is_hot && layout->units[i].low < (line + 1) * LINE_BYTES &&
                       layout->units[i].high > line * LINE_BYTES;
        n += is_used;
    }
    return n * LINE_BYTES;
}

static bool put_advice(const struct layout *layout, struct report_row *row)
{
    struct buf text = {0};
    size_t n_hot = 0;
    uint64_t bytes = 0, lines = line_bytes(layout);
    double fraction = 0;
    for (size_t i = 0; i < layout->n_units; i++) {
        const struct unit *unit = &layout->units[i];
        n_hot += unit->is_hot;
        bytes += unit->is_hot ? unit->high - unit->low : 0;
        fraction += unit->is_hot ? unit->fraction : 0;
    }
    if ((double)bytes > HOT_BYTES * (double)row->element_bytes)
        return true;
    lines = lines > row->element_bytes ? row->element_bytes : lines;
    buf_printf(&text, "%.0f %% of it%s in ", 100 * fraction,
               layout->touched >= TOUCHED_TOLD ? ", first touches of pages aside," : "");
    put_names(layout, n_hot, &text);
    buf_printf(&text, ", %llu of %llu bytes: keep ", (unsigned long long)bytes, (unsigned long long)row->element_bytes);
    put_names(layout, n_hot, &text);
    buf_printf(&text, "%s: of %llu bytes fetched its loops use %llu",
               n_hot == 1 ? " in an array of its own" : " together, apart from the rest", (unsigned long long)lines,
               (unsigned long long)bytes);
    row->advice = text.data;
    row->hot_bytes = bytes;
    return !text.failed;
}

/* False when out of memory. */
static bool advise_on_fields(const struct report *report, struct report_row *row, uint32_t event)
{
    struct layout layout = {.report = report, .row = row};
    bool ok = true;
    if (row->share - row->causes.first_touch < LAYOUT_SHARE || row->samples < LAYOUT_SAMPLES ||
        row->size_bytes < LAYOUT_BYTES || !row->element_bytes)
        return true;
    for (size_t i = 0; i < row->n_fields; i++)
        (void)add_field(&layout, &row->fields[i]);
    add_uses(&layout, event);
    if (leave_out_touched(&layout) && choose_hot(&layout)) {
        join_used(&layout);
        ok = put_advice(&layout, row);
    }
    free(layout.uses);
    return ok;
}

/* What the hardware says about shared lines, where the fields of a row give no advice. False when out of memory. */
static bool advise_on_modified(const struct report *report, struct report_row *row)
{
    double loads, modified = report_is_seen_modified(report, row, &loads);
    struct buf text = {0};
    if (!(modified > 0) || row->advice)
        return true;
    buf_printf(&text,
               "%.0f %% of its loads found their line modified in another core's cache: give what each thread writes "
               "cache lines of its own (hpcquery sharing)",
               100 * modified / loads);
    row->advice = text.data;
    row->advises_on_lines = true;
    return !text.failed;
}

int report_add_advice(struct report *report, struct error *err)
{
    uint32_t event = report_event_of_fields(report);
    for (size_t i = 0; i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        bool ok = event == UINT32_MAX || !row->variable || advise_on_fields(report, row, event);
        if (!ok || (report->has_hardware && !advise_on_modified(report, row)))
            return error_memory(err);
    }
    return 0;
}
