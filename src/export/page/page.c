/* SPDX-License-Identifier: BSD-3-Clause */
/* The page for a browser: one file with everything in it. page.html, page.css and page.js are the same in every page
 * (page-text.sh makes C of them); the data is one JSON text between them, whose parts are written here.
 *
 * Whatever the measured program chose (names, paths, sources) is data: it lies in JSON strings without '<', and the
 * script shows it as text only. The page's policy lets nothing else run, and loads nothing. Ordinary code. */
#include "export/prepared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "analysis/report/patterns.h"
#include "base/input.h"
#include "base/path.h"
#include "database/database.h"
#include "export/text-cells.h"
#include "export/vars-table.h"
#include "fmt/json.h"

#define ONE_LINE 1000000u /* columns of a terminal on which nothing is wrapped */
#define LINES_MAX 40
#define FIELDS_MAX 100
#define THREADS_MAX 64      /* of a row; those with the largest values */
#define THREAD_ROWS_MAX 300 /* rows that tell their threads: each takes some reads */
#define WHOLE_BYTES_MAX (128 << 10)
#define ALL_BYTES_MAX (4 << 20) /* of sources in one page: when there are more, files are not shown whole */
#define AROUND 20               /* lines before and behind one with a value, in files that are not shown whole */
#define DATA_MAX 8
#define ADVICE_MAX 4

/* The parts that are the same in every page: made from the files at build time. Hashes: SHA-256 in base64. */
extern const char page_html[], page_css[], page_js[], page_css_hash[], page_js_hash[];

/* One page being written. */
struct page {
    const struct export_job *job;
    const struct model *model;
    const struct report *report;
    size_t n_rows;       /* of the report, those that are shown */
    struct strtab texts; /* what the data refers to by number */
    uint32_t *node_of;   /* [n_scopes] number in the page's tree, PAGE_NONE = not in it */
    uint32_t *row_of;    /* [n_scopes] row that a variable's scope belongs to, PAGE_NONE = to none */
    struct buf name;     /* of a node, scratch */
    struct buf *out;     /* the JSON text */
};

#define PAGE_NONE UINT32_MAX

/* The number of a text, which is added when new. What is not UTF-8 becomes '?', as in the database's own names, so that
 * a query finds them. Sets out->failed when out of memory. */
static uint32_t text_id(struct page *page, const char *text)
{
    struct buf clean = {0};
    const char *p = text;
    size_t n = 1;
    while (*p && (n = printable_utf8(p)) > 0)
        p += n;
    for (p = *p ? text : ""; *p; p += n ? n : 1) {
        n = printable_utf8(p);
        buf_append(&clean, n ? p : "?", n ? n : 1);
    }
    int64_t number = strtab_intern(&page->texts, clean.data ? clean.data : text);
    page->out->failed = page->out->failed || clean.failed || number < 0;
    buf_fini(&clean);
    return number < 0 ? 0 : (uint32_t)number;
}

/* Appends a number, in at most nine digits; null for what is none. */
static void put_number(struct page *page, double value)
{
    buf_printf(page->out, isfinite(value) ? "%.9g" : "null", value);
}

/* --- the tree --- */

/* A node has the number, the name and the kind that it has in a frame of the database, so that what is chosen in the
 * page can be asked for in a query. */

/* A node that the page has. */
struct kept {
    uint32_t scope, depth;
};

/* One letter for each kind; call sites are lines. */
static const char letters[FRAME_KINDS] = {
    [FRAME_FUNCTION] = 'f', [FRAME_INLINED] = 'i',  [FRAME_LOOP] = 'l',
    [FRAME_LINE] = 's',     [FRAME_VARIABLE] = 'v', [FRAME_GROUP] = 'g',
};

/* The nodes that have a value, in pre-order: the code first. depths [n_scopes]: as in the page. */
static size_t choose_nodes(struct page *page, struct kept *kept)
{
    const struct model *model = page->model;
    uint32_t data = model_data_root(model), data_end = data ? model_subtree_end(model, data) : 0;
    size_t n = 0;
    kept[n++] = (struct kept){0, 0};
    for (int pass = 0; pass < 2; pass++) {
        uint32_t first = pass ? data : 1, end = pass ? data_end : (uint32_t)model->n_scopes;
        for (uint32_t i = first; i < end; i++) {
            uint32_t parent = model->scopes[i].parent;
            if (pass == 0 && data && i == data) {
                i = data_end - 1;
                continue;
            }
            if (model->scopes[i].kind == SCOPE_INSTRUCTION || model_value(model, i, page->report->metric) <= 0 ||
                (i != data && page->node_of[parent] == PAGE_NONE))
                continue;
            page->node_of[i] = (uint32_t)n;
            kept[n++] = (struct kept){i, pass && i == data ? 0 : kept[page->node_of[parent]].depth + 1};
        }
    }
    return n;
}

/* Appends one column of words. */
static void put_column(struct page *page, const char *key, const struct kept *kept, size_t n,
                       uint32_t (*word)(struct page *page, const struct kept *node))
{
    buf_printf(page->out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++)
        buf_printf(page->out, i ? ",%u" : "%u", word(page, &kept[i]));
    buf_append(page->out, "]", 1);
}

static uint32_t depth_of(struct page *page, const struct kept *node)
{
    (void)page;
    return node->depth;
}

static uint32_t id_of(struct page *page, const struct kept *node)
{
    return node->scope ? node->scope : (uint32_t)page->model->n_scopes;
}

static uint32_t name_of(struct page *page, const struct kept *node)
{
    if (node->scope == 0)
        return text_id(page, "main thread");
    node_name(page->model, node->scope, &page->name);
    return text_id(page, page->name.data ? page->name.data : "");
}

static uint32_t file_text_of(struct page *page, const struct kept *node)
{
    const char *file = node->scope ? model_text(page->model, model_file_of(page->model, node->scope)) : "";
    bool is_place = node->scope && frame_kind_is_part(node_kind(&page->model->scopes[node->scope]));
    return text_id(page, *file || !is_place ? file : "<unknown file>");
}

static uint32_t line_of(struct page *page, const struct kept *node)
{
    return page->model->scopes[node->scope].line;
}

/* Appends the tree as columns, in pre-order, without nodes that have no value, and fills node_of. The roots are those
 * of the database's frame: "main thread" with the code, and "<datacentric>". */
static void put_tree(struct page *page)
{
    const struct model *model = page->model;
    struct kept *kept = NULL;
    size_t capacity = 0, n;
    if (!vec_reserve(&kept, &capacity, model->n_scopes + 1, sizeof *kept)) {
        page->out->failed = true;
        return;
    }
    n = choose_nodes(page, kept);
    buf_printf(page->out, "{\"kind\":\"");
    for (size_t i = 0; i < n; i++) {
        enum frame_kind kind = kept[i].scope ? node_kind(&model->scopes[kept[i].scope]) : FRAME_GROUP;
        buf_append(page->out, &letters[kind], 1);
    }
    buf_printf(page->out, "\",\"words\":{");
    for (size_t kind = 0, n_words = 0; kind < FRAME_KINDS; kind++)
        if (letters[kind])
            buf_printf(page->out, "%s\"%c\":\"%s\"", n_words++ ? "," : "", letters[kind],
                       frame_kind_name((enum frame_kind)kind));
    buf_append(page->out, "}", 1);
    put_column(page, "depth", kept, n, depth_of);
    put_column(page, "id", kept, n, id_of);
    put_column(page, "name", kept, n, name_of);
    put_column(page, "file", kept, n, file_text_of);
    put_column(page, "line", kept, n, line_of);
    buf_printf(page->out, ",\"value\":[");
    for (size_t i = 0; i < n; i++) {
        buf_append(page->out, ",", i > 0);
        put_number(page, model_value(model, kept[i].scope, page->report->metric));
    }
    buf_printf(page->out, "]}");
    free(kept);
}

/* --- the rows --- */

/* Variables with all that their details show. */

static void put_text(struct page *page, const char *key, const char *text)
{
    if (text && *text)
        buf_printf(page->out, ",\"%s\":%u", key, text_id(page, text));
}

static void put_value(struct page *page, const char *key, double value)
{
    buf_printf(page->out, ",\"%s\":", key);
    put_number(page, value);
}

/* Puts text that a function appends to a buffer. */
static void put_made(struct page *page, const char *key, struct buf *text)
{
    put_text(page, key, text->data);
    page->out->failed = page->out->failed || text->failed;
    buf_fini(text);
}

static uint32_t function_text(struct page *page, uint32_t function)
{
    struct buf text = {0};
    text_function(&text, model_text(page->model, function));
    uint32_t number = text_id(page, text.data ? text.data : "");
    page->out->failed = page->out->failed || text.failed;
    buf_fini(&text);
    return number;
}

/* Lines that access the row: function, file, line, part of the row, and the loop around. */
static void put_lines(struct page *page, const struct report_row *row)
{
    size_t n = row->n_lines < LINES_MAX ? row->n_lines : LINES_MAX;
    buf_printf(page->out, ",\"lines\":[");
    for (size_t i = 0; i < n; i++) {
        const struct report_line *line = &row->lines[i];
        buf_printf(page->out, "%s[%u,%u,%u,", i ? "," : "", function_text(page, line->function),
                   text_id(page, model_text(page->model, line->file)), line->line);
        put_number(page, row->value > 0 ? line->value / row->value : 0);
        buf_printf(page->out, ",%u,%u]", line->loop.first, line->loop.last);
    }
    buf_append(page->out, "]", 1);
}

/* Fields: name, type, part of the row's samples, offset and size in an element; type 0: none is known. */
static void put_fields(struct page *page, const struct report_row *row)
{
    size_t n = row->n_fields < FIELDS_MAX ? row->n_fields : FIELDS_MAX;
    if (n == 0)
        return;
    buf_printf(page->out, ",\"fields\":[");
    for (size_t i = 0; i < n; i++) {
        const struct report_field *field = &row->fields[i];
        bool is_typed = !(field->flags & FIELD_UNTYPED);
        buf_printf(page->out, "%s[%u,%u,", i ? "," : "", text_id(page, is_typed ? field->name : field->path),
                   text_id(page, is_typed && field->type ? field->type : ""));
        put_number(page, field->fraction);
        buf_printf(page->out, ",%llu,%llu]", (unsigned long long)field->offset_bytes,
                   (unsigned long long)field->size_bytes);
    }
    buf_append(page->out, "]", 1);
}

static void put_places(struct page *page, const struct report_row *row)
{
    uint64_t total = 0;
    for (uint32_t i = 0; row->places && i < page->model->n_numa_nodes; i++)
        total += row->places[i];
    if (total == 0 || page->model->n_numa_nodes < 2)
        return;
    buf_printf(page->out, ",\"numa\":[");
    for (uint32_t i = 0; i < page->model->n_numa_nodes; i++)
        buf_printf(page->out, i ? ",%llu" : "%llu", (unsigned long long)row->places[i]);
    buf_append(page->out, "]", 1);
}

/* The largest value below a limit that is not yet in the list: with so few to list, this is no slower than sorting. */
static void put_largest(struct page *page, const double *values, size_t n)
{
    double before = (double)INFINITY;
    size_t at_before = 0;
    for (size_t k = 0; k < THREADS_MAX; k++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++) {
            bool is_left = values[i] < before || (values[i] == before && i > at_before);
            if (is_left && values[i] > 0 && (best == n || values[i] > values[best]))
                best = i;
        }
        if (best == n)
            return;
        buf_printf(page->out, "%s[%zu,", k ? "," : "", best);
        put_number(page, values[best]);
        buf_append(page->out, "]", 1);
        before = values[best];
        at_before = best;
    }
}

/* How the row's value spreads over threads, and the threads with the most. */
static int put_row_threads(struct page *page, const struct report_row *row, struct error *err)
{
    struct row_statistics threads, processes;
    if (!page->job->values || !row->variable || row->value <= 0)
        return 0;
    int code = thread_values_statistics(page->job->values, page->report, row, &threads, &processes, err);
    if (code != 0 || threads.n < 2)
        return code;
    buf_printf(page->out, ",\"spread\":[%zu,%zu,", threads.n, threads.n_with_value);
    put_number(page, threads.mean);
    buf_append(page->out, ",", 1);
    put_number(page, threads.most);
    buf_append(page->out, ",", 1);
    put_number(page, threads.variation);
    buf_printf(page->out, "],\"threads\":[");
    put_largest(page, thread_values_by_thread(page->job->values), threads.n);
    buf_append(page->out, "]", 1);
    return 0;
}

/* Where the row's subtrees are in the tree of the page. */
static void put_nodes(struct page *page, const struct report_row *row, uint32_t number)
{
    size_t n = 0;
    buf_printf(page->out, ",\"nodes\":[");
    for (size_t i = 0; row->variable && i < row->variable->n_scopes; i++) {
        uint32_t scope = row->variable->scopes[i];
        if (page->row_of[scope] == PAGE_NONE)
            page->row_of[scope] = number;
        if (page->node_of[scope] != PAGE_NONE)
            buf_printf(page->out, n++ ? ",%u" : "%u", page->node_of[scope]);
    }
    buf_append(page->out, "]", 1);
}

/* What the hardware says: the number, and the text of it. */
static void put_row_derived(struct page *page, const struct report_row *row)
{
    size_t n = 0;
    buf_printf(page->out, ",\"derived\":[");
    for (size_t m = 0; metrics_row(m); m++) {
        double value = row->derived ? row->derived[m] : (double)NAN;
        struct buf text = {0};
        if (!metrics_row(m)->title)
            continue;
        buf_printf(&text, metrics_is_beyond(metrics_row(m), value) ? "> " : "");
        text_number(&text, value);
        buf_printf(page->out, n++ ? ",[" : "[");
        put_number(page, value);
        buf_printf(page->out, ",%u]", text_id(page, text.data ? text.data : "-"));
        buf_fini(&text);
    }
    buf_append(page->out, "]", 1);
}

static void put_causes(struct page *page, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    if (!page->report->has_causes || page->report->has_too_few)
        return;
    put_value(page, "memory", sum->memory);
    put_value(page, "execution", sum->execution);
    put_value(page, "unverified", sum->unverified);
    if (report_is_memory_unknown(sum))
        buf_printf(page->out, ",\"unknown\":1");
}

/* What the row is, in words. */
static void put_words(struct page *page, const struct report_row *row)
{
    const struct special_row *special = special_rows_find(row->name);
    struct buf text = {0};
    vars_table_put_origin(page->report, row, &text);
    put_made(page, "origin", &text);
    put_text(page, "meaning", vars_table_meaning(page->report, row));
    if (special) {
        buf_printf(&text, "%s. %s", special->means, special->advice);
        put_made(page, "special", &text);
    }
    put_text(page, "advice", row->advice);
    put_text(page, "type", row->type);
    put_text(page, "by", row->type_source);
}

static int put_row(struct page *page, const struct report_row *row, uint32_t number, struct error *err)
{
    struct buf text = {0};
    bool is_special = report_is_special(row);
    buf_printf(page->out, number ? ",\n{\"name\":%u" : "{\"name\":%u", text_id(page, row->name));
    put_text(page, "class", is_special ? "-" : row->class);
    put_value(page, "share", page->report->has_too_few ? row->samples : row->share);
    put_causes(page, row);
    put_value(page, "samples", row->samples);
    buf_printf(page->out, ",\"bytes\":%llu,\"count\":%llu", (unsigned long long)row->size_bytes,
               (unsigned long long)row->n_blocks);
    vars_table_put_size(row, &text);
    put_made(page, "size", &text);
    vars_table_put_blocks(row, &text);
    put_made(page, "blocks", &text);
    put_words(page, row);
    put_lines(page, row);
    put_fields(page, row);
    put_places(page, row);
    put_nodes(page, row, number);
    if (page->report->is_hardware)
        put_row_derived(page, row);
    int code = number < THREAD_ROWS_MAX ? put_row_threads(page, row, err) : 0;
    buf_append(page->out, "}", 1);
    return code;
}

/* Appends the rows of the report with what their details show, and fills row_of.
 * err: errors of reading the job's values */
static int put_rows(struct page *page, struct error *err)
{
    int code = 0;
    buf_append(page->out, "[", 1);
    for (uint32_t i = 0; code == 0 && i < page->n_rows; i++)
        code = put_row(page, &page->report->rows[i], i, err);
    buf_append(page->out, "]", 1);
    return code;
}

/* --- sources --- */

/* What each line cost and on which data, and the text of the files. */

/* The lines with values, by file. */
struct line_order {
    const struct code_table *table;
    uint32_t *rows;    /* [n_rows] of the table: files by their cost, lines within a file in order */
    double *file_cost; /* [n_strings] */
    size_t bytes_left;
};

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct line_order *order = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct code_row *x = &order->table->rows[i], *y = &order->table->rows[j];
    double cost_x = order->file_cost[x->file], cost_y = order->file_cost[y->file];
    if (x->file != y->file && cost_x != cost_y)
        return cost_x > cost_y ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* [line, function, value, value with what is called there, [[row, value], ...]] */
static void put_line(struct page *page, const struct code_row *row)
{
    const struct model *model = page->model;
    size_t n = 0;
    buf_printf(page->out, "[%u,%u,", row->line, text_id(page, model_text(model, row->function)));
    put_number(page, row->own);
    buf_append(page->out, ",", 1);
    put_number(page, row->inclusive);
    buf_printf(page->out, ",[");
    for (size_t i = 0; i < row->n_data && n < DATA_MAX; i++) {
        const struct variable *variable = &model->variables[row->data[i].variable];
        uint32_t of = variable->n_scopes ? page->row_of[variable->scopes[0]] : PAGE_NONE;
        if (of == PAGE_NONE)
            continue;
        buf_printf(page->out, n++ ? ",[%u," : "[%u,", of);
        put_number(page, row->data[i].value);
        buf_append(page->out, "]", 1);
    }
    buf_printf(page->out, "]]");
}

/* Appends bytes as a JSON string: those that are not UTF-8, and NUL, as '?'. */
static void put_source(struct page *page, char *bytes, size_t n)
{
    struct buf clean = {0};
    for (size_t i = 0, len; i < n; i += len) {
        len = bytes[i] ? printable_utf8(bytes + i) : 0;
        buf_append(&clean, len ? bytes + i : "?", len ? len : 1);
        len = len ? len : 1;
    }
    json_put_text(page->out, clean.data ? clean.data : "");
    page->out->failed = page->out->failed || clean.failed;
    buf_fini(&clean);
}

/* Where line number at + 1 ends, from where line at ends. */
static size_t next_line(const struct buf *text, size_t at)
{
    const char *end = memchr(text->data + at, '\n', text->len_bytes - at);
    return end ? (size_t)(end - text->data) + 1 : text->len_bytes;
}

/* Appends the text in pieces [[first line, text], ...]: all of it, or what is around lines with values [n]. */
static void put_pieces(struct page *page, struct line_order *order, const uint32_t *rows, size_t n, struct buf *text)
{
    bool is_whole = text->len_bytes <= WHOLE_BYTES_MAX && text->len_bytes <= order->bytes_left;
    size_t n_pieces = 0, at = 0, number = 1;
    for (size_t i = 0; i < n && at < text->len_bytes; i++) {
        size_t first = order->table->rows[rows[i]].line, last;
        if (first == 0 && !is_whole)
            continue;
        while (i + 1 < n && order->table->rows[rows[i + 1]].line <= order->table->rows[rows[i]].line + 2 * AROUND)
            i++;
        last = is_whole ? SIZE_MAX : order->table->rows[rows[i]].line + (size_t)AROUND;
        first = is_whole || first <= AROUND ? 1 : first - AROUND;
        for (; number < first && at < text->len_bytes; number++)
            at = next_line(text, at);
        size_t begin = at, first_here = number;
        for (; number <= last && at < text->len_bytes; number++)
            at = next_line(text, at);
        if (at - begin > order->bytes_left || at == begin)
            break;
        order->bytes_left -= at - begin;
        buf_printf(page->out, n_pieces++ ? ",[%zu," : "[%zu,", first_here);
        put_source(page, text->data + begin, at - begin);
        buf_append(page->out, "]", 1);
    }
}

/* One file: its lines with values, then its text. */
static void put_file(struct page *page, struct line_order *order, const uint32_t *rows, size_t n)
{
    const char *file = model_text(page->model, order->table->rows[rows[0]].file);
    struct buf text = {0};
    buf_printf(page->out, "{\"file\":%u,\"value\":", text_id(page, file));
    put_number(page, order->file_cost[order->table->rows[rows[0]].file]);
    buf_printf(page->out, ",\"lines\":[");
    for (size_t i = 0; i < n; i++) {
        buf_append(page->out, ",", i > 0);
        put_line(page, &order->table->rows[rows[i]]);
    }
    buf_printf(page->out, "],\"text\":[");
    if (page->job->directory && *file && sources_read(page->job->directory, file, &text) && text.data)
        put_pieces(page, order, rows, n, &text);
    buf_printf(page->out, "]}");
    buf_fini(&text);
}

static void put_files(struct page *page, struct line_order *order)
{
    const struct code_table *table = order->table;
    buf_append(page->out, "[", 1);
    for (size_t i = 0, end; i < table->n_rows; i = end) {
        for (end = i + 1; end < table->n_rows; end++)
            if (table->rows[order->rows[end]].file != table->rows[order->rows[i]].file)
                break;
        buf_printf(page->out, i ? ",\n" : "");
        put_file(page, order, &order->rows[i], end - i);
    }
    buf_append(page->out, "]", 1);
}

/* Appends what each line cost, and the sources that the database has copies of: short files whole, of long ones what is
 * around the lines with values.  err: ERR_MEMORY */
static int put_sources(struct page *page, struct error *err)
{
    struct code_table table;
    int code = code_table_make(page->model, page->report->metric, CODE_LINE, NULL, &table, err);
    if (code != 0)
        return code;
    struct line_order order = {.table = &table,
                               .rows = calloc(table.n_rows + 1, sizeof *order.rows),
                               .file_cost = calloc(page->model->strings.n_strings + 1, sizeof *order.file_cost),
                               .bytes_left = ALL_BYTES_MAX};
    if (order.rows && order.file_cost) {
        for (uint32_t i = 0; i < table.n_rows; i++) {
            order.rows[i] = i;
            order.file_cost[table.rows[i].file] += table.rows[i].own;
        }
        qsort_r(order.rows, table.n_rows, sizeof *order.rows, compare_rows, &order);
        put_files(page, &order);
    } else {
        code = error_memory(err);
    }
    free(order.rows);
    free(order.file_cost);
    code_table_fini(&table);
    return code;
}

/* --- what stands above and below --- */

/* Turns lines of the text report into pairs: a label and words, or the name of a row and what it means. */
static void put_labelled(struct page *page, const char *key, const char *text)
{
    size_t n_put = 0;
    buf_printf(page->out, ",\n\"%s\":[", key);
    while (text && *text) {
        const char *end = text + strcspn(text, "\n"), *colon = *text == '<' ? strstr(text, ">: ") : NULL;
        size_t len = colon && colon < end ? (size_t)(colon + 1 - text) : TEXT_LABEL_WIDTH;
        size_t n = len < (size_t)(end - text) ? len : (size_t)(end - text);
        char *label = strndup(text, n), *words = strndup(text + n, (size_t)(end - text) - n);
        while (label && *label && label[strlen(label) - 1] == ' ')
            label[strlen(label) - 1] = 0;
        if (end > text && label && words)
            buf_printf(page->out, n_put++ ? ",[%u,%u]" : "[%u,%u]", text_id(page, label),
                       text_id(page, words + strspn(words, ": ")));
        page->out->failed = page->out->failed || !label || !words;
        free(label);
        free(words);
        text = *end ? end + 1 : end;
    }
    buf_append(page->out, "]", 1);
}

/* What became of the samples of each event: [name, taken, [[fate, sentence, samples, was it recorded], ...]]. */
static void put_fates(struct page *page)
{
    buf_printf(page->out, ",\n\"fates\":[");
    for (size_t e = 0; e < page->model->n_events; e++) {
        const struct event_sum *event = &page->model->events[e];
        size_t n = 0;
        buf_printf(page->out, "%s[%u,%llu,[", e ? "," : "", text_id(page, event->metric ? event->metric : event->name),
                   (unsigned long long)event->taken);
        for (int fate = 0; fate < FATE_MAX; fate++)
            if (event->fates[fate])
                buf_printf(page->out, "%s[%u,%u,%llu,%d]", n++ ? "," : "", text_id(page, fate_row(fate)->name),
                           text_id(page, fate_row(fate)->sentence), (unsigned long long)event->fates[fate],
                           fate < FATE_TAKEN_MAX);
        buf_printf(page->out, "]]");
    }
    buf_append(page->out, "]", 1);
}

static void put_threads(struct page *page)
{
    const struct model *model = page->model;
    buf_printf(page->out, ",\n\"threads\":[");
    for (size_t i = 0; i < model->n_threads; i++) {
        const struct process *process = &model->processes[model->threads[i].process];
        struct buf text = {0};
        if (model_count_processes(model) > 1)
            buf_printf(&text, "%s %s %u ", process->exe ? process->exe : "?",
                       model_has_ranks(model) ? "rank" : "process",
                       model_has_ranks(model) ? process->rank : process->pid);
        buf_printf(&text, "thread %u", model->threads[i].thread_id);
        if (model->threads[i].name)
            buf_printf(&text, " (%s)", model_text(model, model->threads[i].name));
        buf_printf(page->out, i ? ",%u" : "%u", text_id(page, text.data ? text.data : ""));
        buf_fini(&text);
    }
    buf_append(page->out, "]", 1);
}

/* Time in the kernel, which is no row of the samples: [share of the CPU time, seconds there, seconds in user code]. */
static void put_kernel(struct page *page)
{
    double share = report_kernel_percent(page->report);
    if (share <= 0)
        return;
    buf_printf(page->out, ",\n\"kernel\":[");
    put_number(page, share);
    buf_append(page->out, ",", 1);
    put_number(page, page->report->system_s);
    buf_append(page->out, ",", 1);
    put_number(page, page->report->user_s);
    buf_append(page->out, "]", 1);
}

/* The titles of the numbers that the hardware gives. */
static void put_derived(struct page *page)
{
    size_t n = 0;
    buf_printf(page->out, ",\n\"derived\":[");
    for (size_t m = 0; page->report->is_hardware && metrics_row(m); m++)
        if (metrics_row(m)->title)
            buf_printf(page->out, n++ ? ",[%u,%u]" : "[%u,%u]", text_id(page, metrics_row(m)->title),
                       text_id(page, metrics_row(m)->description));
    buf_append(page->out, "]", 1);
}

static void put_head(struct page *page)
{
    const struct model *model = page->model;
    const struct report *report = page->report;
    struct export_job wide = *page->job;
    struct buf head = {0}, foot = {0};
    const char *program = model->program ? path_last(model->program) : "?", *name = model->metrics[report->metric].name;
    bool is_time = metrics_is_time(name) || strcmp(name, MEM_LATENCY_NAME) == 0;
    wide.columns = ONE_LINE;
    wide.color = false;
    wide.unicode = true;
    wide.is_verbose = true;
    buf_printf(page->out, "{\"form\":1,\"title\":%u,\"metric\":%u",
               text_id(page, model->command ? model->command : program), text_id(page, name));
    buf_printf(page->out, ",\"time\":%d,\"causes\":%d,\"few\":%d,\"more\":%zu", is_time,
               report->has_causes && !report->has_too_few, report->has_too_few, report->n_rows - page->n_rows);
    head_put(report, &wide, &head);
    put_labelled(page, "head", head.data);
    foot_put(report, &wide, page->n_rows, &foot);
    put_labelled(page, "foot", foot.data);
    page->out->failed = page->out->failed || head.failed || foot.failed;
    buf_fini(&head);
    buf_fini(&foot);
    put_fates(page);
    put_threads(page);
    put_kernel(page);
    put_derived(page);
}

/* Appends what to change, and why: the report that says so, as it is. */
static int put_advice(struct page *page, struct error *err)
{
    struct export_job few = *page->job;
    few.top = ADVICE_MAX;
    few.form = "json";
    buf_printf(page->out, ",\n\"advice\":");
    few.form = "json";
    return report_write(&report_find("advice")->forms, &few, page->out, err);
}

static int put_data(struct page *page, struct error *err)
{
    (void)text_id(page, "");
    put_head(page);
    int code = put_advice(page, err);
    if (code != 0)
        return code;
    buf_printf(page->out, ",\n\"tree\":");
    put_tree(page);
    buf_printf(page->out, ",\n\"rows\":");
    code = put_rows(page, err);
    buf_printf(page->out, ",\n\"files\":");
    if (code == 0)
        code = put_sources(page, err);
    buf_printf(page->out, ",\n\"texts\":[");
    for (size_t i = 0; i < page->texts.n_strings; i++) {
        buf_printf(page->out, i ? ",\n" : "");
        json_put_text(page->out, page->texts.strings[i]);
    }
    buf_printf(page->out, "]}");
    return code;
}

/* --- the whole --- */

/* Appends JSON so that no '<' is in it: all of them are in strings. */
static void put_without_tags(struct buf *out, const struct buf *json)
{
    const char *at = json->data;
    for (const char *tag; at && (tag = strchr(at, '<')); at = tag + 1) {
        buf_append(out, at, (size_t)(tag - at));
        buf_printf(out, "\\u003c");
    }
    buf_printf(out, "%s", at ? at : "{}");
    out->failed = out->failed || json->failed;
}

/* Appends page.html, in which a word between @s stands for each of the other parts. */
static void put_page(struct buf *out, const struct buf *json)
{
    const struct {
        const char *word, *text;
    } parts[] = {{"@css-hash@", page_css_hash},
                 {"@js-hash@", page_js_hash},
                 {"@css@", page_css},
                 {"@js@", page_js},
                 {"@data@", NULL}};
    const char *at = page_html;
    for (const char *mark; (mark = strchr(at, '@'));) {
        size_t i = 0;
        buf_append(out, at, (size_t)(mark - at));
        while (i < sizeof parts / sizeof *parts && strncmp(mark, parts[i].word, strlen(parts[i].word)) != 0)
            i++;
        bool is_word = i < sizeof parts / sizeof *parts;
        at = mark + (is_word ? strlen(parts[i].word) : 1);
        if (!is_word)
            buf_append(out, "@", 1);
        else if (parts[i].text)
            buf_append(out, parts[i].text, strlen(parts[i].text));
        else
            put_without_tags(out, json);
    }
    buf_append(out, at, strlen(at));
}

int write_page(const struct export_job *job, struct buf *out, struct error *err)
{
    struct prepared prepared;
    struct buf json = {0};
    size_t n_scopes = job->model->n_scopes;
    int code = prepared_make(job, PREPARED_ORDER | PREPARED_CHOICE | PREPARED_SHARED_LINES, &prepared, err);
    if (code != 0)
        return code;
    struct page page = {.job = job,
                        .model = job->model,
                        .report = &prepared.report,
                        .n_rows = prepared.n_rows,
                        .node_of = malloc((n_scopes + 1) * sizeof(uint32_t)),
                        .row_of = malloc((n_scopes + 1) * sizeof(uint32_t)),
                        .out = &json};
    if (page.node_of && page.row_of) {
        memset(page.node_of, 0xff, (n_scopes + 1) * sizeof(uint32_t));
        memset(page.row_of, 0xff, (n_scopes + 1) * sizeof(uint32_t));
        page.node_of[0] = 0;
        code = put_data(&page, err);
    } else {
        code = error_memory(err);
    }
    if (code == 0)
        put_page(out, &json);
    free(page.node_of);
    free(page.row_of);
    strtab_fini(&page.texts);
    out->failed |= page.name.failed;
    buf_fini(&page.name);
    buf_fini(&json);
    prepared_fini(&prepared);
    return code;
}
