/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables about streams: see stream-table.h. */
#include "export/streams/stream-table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "export/text-cells.h"
#include "fmt/json.h"
#include "streams/schedule.h"

/* --- filling --- */

static void put_cell(struct stream_table *table, struct table_cell cell)
{
    if (table->failed || !vec_reserve(&table->cells, &table->cap_cells, table->n_cells + 1, sizeof *table->cells)) {
        table->failed = true;
        free(cell.text);
        return;
    }
    table->cells[table->n_cells++] = cell;
}

void table_put_text(struct stream_table *table, const char *text)
{
    char *copy = strdup(text);
    table->failed |= !copy;
    put_cell(table, (struct table_cell){.is_known = true, .text = copy});
}

void table_put_number(struct stream_table *table, int64_t number)
{
    put_cell(table, (struct table_cell){.is_known = true, .number = number});
}

void table_put_share(struct stream_table *table, double percent)
{
    put_cell(table, (struct table_cell){.is_known = true, .share = percent});
}

void table_put_absent(struct stream_table *table)
{
    put_cell(table, (struct table_cell){.is_known = false});
}

void table_put_if(struct stream_table *table, bool is_known, int64_t number)
{
    put_cell(table, (struct table_cell){.is_known = is_known, .number = number});
}

size_t table_rows(const struct stream_table *table)
{
    return table->n_cells / table->n_columns;
}

void table_fini(struct stream_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i].text);
    free(table->cells);
    *table = (struct stream_table){0};
}

/* --- numbers --- */

void span_put(struct buf *out, int64_t ns)
{
    if (ns < 1000 && ns > -1000)
        buf_printf(out, "%" PRId64 " ns", ns);
    else if (ns < 1000000 && ns > -1000000)
        buf_printf(out, "%.1f us", (double)ns * 1e-3);
    else if (ns < 1000000000 && ns > -1000000000)
        buf_printf(out, "%.3f ms", (double)ns * 1e-6);
    else
        buf_printf(out, "%.3f s", (double)ns * 1e-9);
}

void time_put(struct buf *out, int64_t t_ns)
{
    uint64_t size_ns = t_ns < 0 ? -(uint64_t)t_ns : (uint64_t)t_ns;
    buf_printf(out, "%s%" PRIu64 ".%06" PRIu64, t_ns < 0 ? "-" : "", size_ns / 1000000000, size_ns / 1000 % 1000000);
}

void ticks_put(struct buf *out, int64_t from_ns, int64_t to_ns, size_t n_slices)
{
    enum { APART = 16 }; /* slices between times at least */
    int64_t step_ns = (int64_t)((double)(to_ns - from_ns) * APART / (double)n_slices);
    int n_digits = 0;
    for (int64_t unit_ns = 1000000000; n_digits < 9 && step_ns < 10 * unit_ns; unit_ns /= 10)
        n_digits++;
    for (size_t i = 0; i < n_slices && !out->failed;) {
        size_t before = out->len_bytes;
        buf_printf(out, "|+%.*f", n_digits, (double)schedule_slice_ns(from_ns, to_ns, n_slices, i) * 1e-9);
        size_t len = out->len_bytes - before;
        if (i + len > n_slices) {
            out->len_bytes = before;
            break;
        }
        buf_printf(out, "%*s", len < APART ? (int)(APART - len) : 1, "");
        i += len < APART ? APART : len + 1;
    }
    buf_printf(out, " s\n");
}

/* --- text --- */

static void put_text_cell(const struct table_cell *cell, enum cell_kind kind, struct buf *out)
{
    if (!cell->is_known)
        buf_append(out, "-", 1);
    else if (kind == CELL_TEXT)
        printable_put(out, cell->text);
    else if (kind == CELL_SPAN)
        span_put(out, cell->number);
    else if (kind == CELL_TIME)
        time_put(out, cell->number);
    else if (kind == CELL_SHARE)
        buf_printf(out, "%.1f %%", cell->share);
    else
        buf_printf(out, "%" PRId64, cell->number);
}

/* Appends text in a column of so many characters; nothing follows the last one. */
static void put_padded(struct buf *out, const char *text, size_t width, bool is_right, bool is_last)
{
    size_t used = text_width(text), n_blanks = used < width ? width - used : 0;
    buf_printf(out, "%*s%s", is_right ? (int)n_blanks : 0, "", text);
    if (!is_last)
        buf_printf(out, "%*s  ", is_right ? 0 : (int)n_blanks, "");
}

/* Column of the last title that is shown. */
static size_t last_shown(const struct stream_table *table)
{
    size_t last = 0;
    for (size_t i = 0; i < table->n_columns; i++)
        last = table->columns[i].title ? i : last;
    return last;
}

static bool make_widths(const struct stream_table *table, size_t *widths)
{
    struct buf text = {0};
    for (size_t i = 0; i < table->n_columns; i++)
        widths[i] = table->columns[i].title ? strlen(table->columns[i].title) : 0;
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        if (!table->columns[column].title)
            continue;
        text.len_bytes = 0;
        put_text_cell(&table->cells[i], table->columns[column].kind, &text);
        size_t width = text.len_bytes ? text_width(text.data) : 0;
        widths[column] = width > widths[column] ? width : widths[column];
    }
    bool ok = !text.failed;
    buf_fini(&text);
    return ok;
}

void table_print_text(const struct stream_table *table, struct buf *out)
{
    size_t *widths = calloc(table->n_columns, sizeof *widths), last = last_shown(table);
    struct buf text = {0};
    if (!widths || !make_widths(table, widths)) {
        out->failed = true;
        free(widths);
        return;
    }
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].title)
            put_padded(out, table->columns[i].title, widths[i], table->columns[i].kind != CELL_TEXT, i == last);
    buf_append(out, "\n", 1);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        text.len_bytes = 0;
        buf_append(&text, "", 0);
        if (table->columns[column].title) {
            put_text_cell(&table->cells[i], table->columns[column].kind, &text);
            put_padded(out, text.len_bytes ? text.data : "", widths[column], table->columns[column].kind != CELL_TEXT,
                       column == last);
        }
        if (column + 1 == table->n_columns)
            buf_append(out, "\n", 1);
    }
    out->failed |= text.failed;
    buf_fini(&text);
    free(widths);
}

/* --- CSV and JSON --- */

void table_print_csv(const struct stream_table *table, struct buf *out)
{
    for (size_t i = 0; i < table->n_columns; i++)
        buf_printf(out, "%s%s", i ? "," : "", table->columns[i].key);
    buf_append(out, "\n", 1);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        const struct table_cell *cell = &table->cells[i];
        if (column)
            buf_append(out, ",", 1);
        if (cell->is_known && table->columns[column].kind == CELL_TEXT)
            csv_put_text(out, cell->text);
        else if (cell->is_known && table->columns[column].kind == CELL_SHARE)
            buf_printf(out, "%.3f", cell->share);
        else if (cell->is_known)
            buf_printf(out, "%" PRId64, cell->number);
        if (column + 1 == table->n_columns)
            buf_append(out, "\n", 1);
    }
}

void table_print_json(const struct stream_table *table, struct buf *out)
{
    buf_append(out, "[", 1);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        const struct table_cell *cell = &table->cells[i];
        if (column == 0)
            buf_printf(out, "%s\n  {", i ? "," : "");
        json_put_key(out, table->columns[column].key, column == 0);
        if (!cell->is_known)
            buf_printf(out, "null");
        else if (table->columns[column].kind == CELL_TEXT)
            json_put_text(out, cell->text);
        else if (table->columns[column].kind == CELL_SHARE)
            json_put_double(out, cell->share);
        else
            buf_printf(out, "%" PRId64, cell->number);
        if (column + 1 == table->n_columns)
            buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}
