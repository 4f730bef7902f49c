/* SPDX-License-Identifier: BSD-3-Clause */
/* What only viewers ask: what the database is, its nodes, its sources, and how far its figures can be trusted. They are
 * asked and answered as reports are, but are no verbs of hpcquery, which says the same in other reports. */
#include "config.h"

#include "session/questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/path.h"
#include "database/database.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "export/vars-table.h"

#define ONE_LINE 1000000u /* columns of a terminal on which nothing is wrapped */
#define WHOLE_BYTES_MAX (128 << 10)
#define AROUND 20 /* lines before and behind one with a value, in files that are not shown whole */

static const struct column word_columns[] = {{"word", NULL, CELL_TEXT}};
static const struct column label_columns[] = {{"label", NULL, CELL_TEXT}, {"words", NULL, CELL_TEXT}};

/* --- lines above and below the table of variables --- */

/* Turns lines of the text report into pairs: a label and words, or the name of a row and what it means. */
static void put_labelled(const struct buf *lines, struct table *table)
{
    const char *text = lines->data;
    while (text && *text) {
        const char *end = text + strcspn(text, "\n"), *colon = *text == '<' ? strstr(text, ">: ") : NULL;
        size_t len = colon && colon < end ? (size_t)(colon + 1 - text) : TEXT_LABEL_WIDTH;
        size_t n = len < (size_t)(end - text) ? len : (size_t)(end - text);
        struct buf label = {0}, words = {0};
        const char *rest = text + n + strspn(text + n, ": ");
        size_t n_label = n;
        while (n_label && text[n_label - 1] == ' ')
            n_label--;
        buf_append(&label, text, n_label);
        buf_append(&words, rest, rest < end ? (size_t)(end - rest) : 0);
        if (end > text) {
            table_put_made(table, &label);
            table_put_made(table, &words);
        }
        buf_fini(&label);
        buf_fini(&words);
        text = *end ? end + 1 : end;
    }
    if (lines->failed)
        table_fail(table);
}

/* The job of a report on a screen of any width that says everything. */
static struct export_job wide_job(const struct export_job *job)
{
    struct export_job wide = *job;
    wide.columns = ONE_LINE;
    wide.unicode = true;
    wide.is_verbose = true;
    wide.least = -1;
    return wide;
}

/* --- session --- */

static const struct column session_columns[] = {
    {"report", NULL, CELL_TEXT},
    {"summary", NULL, CELL_TEXT},
    {"by", NULL, CELL_TABLE | COLUMN_BARE},
    {"takes", NULL, CELL_TABLE | COLUMN_BARE},
};

static const struct column session_head[] = {
    {"version", NULL, CELL_TEXT}, {"command", NULL, CELL_TEXT},  {"path", NULL, CELL_TEXT},
    {"lines", NULL, CELL_TABLE},  {"metrics", NULL, CELL_TABLE}, {"notes", NULL, CELL_TABLE},
    {"kinds", NULL, CELL_TABLE},  {"threads", NULL, CELL_TABLE}, {"frame_columns", NULL, CELL_TABLE},
};

static const struct column metric_columns[] = {{"name", NULL, CELL_TEXT}, {"description", NULL, CELL_TEXT}};
static const struct column note_columns[] = {{"text", NULL, CELL_TEXT}};
static const struct column kind_columns[] = {{"name", NULL, CELL_TEXT}, {"means", NULL, CELL_TEXT}};
static const struct column thread_columns[] = {
    {"number", NULL, CELL_COUNT}, {"name", NULL, CELL_TEXT},    {"process", NULL, CELL_COUNT},
    {"rank", NULL, CELL_COUNT},   {"thread", NULL, CELL_COUNT}, {"program", NULL, CELL_TEXT},
};
static const struct column frame_columns[] = {{"name", NULL, CELL_TEXT}, {"sums", NULL, CELL_TEXT}};

/* What can be asked. */
static void fill_reports(struct table *rows)
{
    for (size_t i = 0; session_report(i); i++) {
        table_put_text(rows, session_report(i));
        table_put_text(rows, session_report_summary(i));
        struct table *words = table_put_table(rows, COLUMNS(word_columns));
        for (size_t k = 0; session_report_by(i, k); k++)
            table_put_text(words, session_report_by(i, k));
        words = table_put_table(rows, COLUMNS(word_columns));
        for (size_t k = 0; session_key(k); k++)
            if (session_report_takes(i, k))
                table_put_text(words, session_key(k));
    }
}

static void fill_threads(const struct model *model, struct table *table)
{
    bool has_ranks = model_has_ranks(model);
    for (size_t i = 0; i < model->n_threads; i++) {
        const struct thread *thread = &model->threads[i];
        const struct process *process = &model->processes[thread->process];
        table_put_count(table, (int64_t)i);
        table_put_name(table, model_text(model, thread->name));
        table_put_count(table, process->pid);
        table_put_if(table, has_ranks, process->rank);
        table_put_count(table, thread->thread_id);
        table_put_text(table, process->exe ? path_last(process->exe) : NULL);
    }
}

/* The columns of the database's frame that are not hidden. */
static int fill_frame_columns(const struct model *model, struct table *table, struct error *err)
{
    struct columns columns = {0};
    int code = columns_make(model, &columns, err);
    for (size_t i = 0; code == 0 && i < 2 * columns.n_pairs; i++) {
        const struct column_pair *pair = &columns.pairs[i / 2];
        struct buf name = {0};
        if (model->metrics[pair->metric].hidden)
            continue;
        buf_printf(&name, "%s%s", strncmp(pair->name, "CPUTIME (", 9) == 0 ? "time" : pair->name,
                   i % 2 ? " (inc)" : "");
        table_put_made(table, &name);
        table_put_borrowed(table, i % 2 ? "inclusive" : "exclusive");
    }
    columns_fini(&columns);
    return code;
}

static int fill_head_lines(const struct export_job *job, struct table *table, struct error *err)
{
    struct export_job wide = wide_job(job);
    struct prepared prepared;
    struct buf text = {0};
    int code = prepared_make(&wide, PREPARED_ORDER | PREPARED_CHOICE | PREPARED_SHARED_LINES, &prepared, err);
    if (code != 0)
        return code;
    head_put(&prepared.report, &wide, &text);
    put_labelled(&text, table);
    buf_fini(&text);
    prepared_fini(&prepared);
    return 0;
}

static int make_session(const struct asked *asked, struct answer *answer, struct error *err)
{
    const struct model *model = asked->job->model;
    answer_begin(answer, "reports", COLUMNS(session_columns));
    fill_reports(&answer->rows);
    struct table *head = answer_set_head(answer, COLUMNS(session_head)), *inner;
    table_put_text(head, PACKAGE_VERSION);
    table_put_text(head, model->command);
    table_put_text(head, asked->path);
    int code = fill_head_lines(asked->job, table_put_table(head, COLUMNS(label_columns)), err);
    inner = table_put_table(head, COLUMNS(metric_columns));
    for (size_t m = 0; m < model->n_metrics; m++)
        if (!model->metrics[m].hidden) {
            table_put_text(inner, model->metrics[m].name);
            table_put_text(inner, model->metrics[m].description);
        }
    inner = table_put_table(head, COLUMNS(note_columns));
    for (size_t i = 0; i < model->n_notes; i++)
        table_put_text(inner, model->notes[i]);
    inner = table_put_table(head, COLUMNS(kind_columns));
    for (size_t i = 0; item_kind_at(i); i++) {
        table_put_text(inner, item_kind_at(i)->name);
        table_put_text(inner, item_kind_at(i)->means);
    }
    fill_threads(model, table_put_table(head, COLUMNS(thread_columns)));
    inner = table_put_table(head, COLUMNS(frame_columns));
    return code ? code : fill_frame_columns(model, inner, err);
}

/* --- nodes --- */

/* A row: a node of the trees, or with scope NODE_SMALL those below its parent that are too small. */
struct node_row {
    uint32_t scope, parent; /* parent: a row; NODE_NONE: it is a root */
    double value;
    size_t n_small;
};

#define NODE_NONE UINT32_MAX
#define NODE_SMALL (UINT32_MAX - 1)

/* A node whose subtree is being listed, and what is folded below it. */
struct open_node {
    uint32_t row, end; /* the first scope behind the subtree */
    double small;
    size_t n_small;
};

struct node_walk {
    const struct model *model;
    size_t metric;
    double least; /* value; what has less is folded */
    struct node_row *rows;
    size_t n, cap;
    struct open_node *open; /* [n_open] from the root on */
    size_t n_open, cap_open;
};

static bool add_row(struct node_walk *walk, struct node_row row)
{
    bool ok = vec_reserve(&walk->rows, &walk->cap, walk->n + 1, sizeof *walk->rows);
    if (ok)
        walk->rows[walk->n++] = row;
    return ok;
}

/* Closes the open nodes that end before a scope; what is folded below them becomes a row each. */
static bool close_nodes(struct node_walk *walk, uint32_t scope)
{
    bool ok = true;
    while (ok && walk->n_open && walk->open[walk->n_open - 1].end <= scope) {
        const struct open_node *last = &walk->open[--walk->n_open];
        if (last->n_small)
            ok = add_row(walk, (struct node_row){NODE_SMALL, last->row, last->small, last->n_small});
    }
    return ok;
}

static bool open_node(struct node_walk *walk, uint32_t scope, uint32_t end)
{
    uint32_t row = (uint32_t)walk->n;
    uint32_t parent = walk->n_open ? walk->open[walk->n_open - 1].row : NODE_NONE;
    bool ok = vec_reserve(&walk->open, &walk->cap_open, walk->n_open + 1, sizeof *walk->open) &&
              add_row(walk, (struct node_row){scope, parent, model_value(walk->model, scope, walk->metric), 0});
    if (ok)
        walk->open[walk->n_open++] = (struct open_node){row, end, 0, 0};
    return ok;
}

/* Lists a tree from its root on, without a subtree that is apart from it (0: there is none). */
static bool walk_tree(struct node_walk *walk, uint32_t root, uint32_t end, uint32_t apart)
{
    bool ok = open_node(walk, root, end);
    for (uint32_t i = root + 1; ok && i < end; i++) {
        double value = model_value(walk->model, i, walk->metric);
        ok = close_nodes(walk, i);
        if (ok && value > 0 && value >= walk->least && i != apart && walk->model->scopes[i].kind != SCOPE_INSTRUCTION) {
            ok = open_node(walk, i, model_subtree_end(walk->model, i));
            continue;
        }
        if (i != apart && value > 0 && walk->model->scopes[i].kind != SCOPE_INSTRUCTION && ok) {
            walk->open[walk->n_open - 1].small += value;
            walk->open[walk->n_open - 1].n_small++;
        }
        i = model_subtree_end(walk->model, i) - 1;
    }
    return ok && close_nodes(walk, end);
}

/* What a scope costs by itself: its own, or that of its instructions. */
static double own_value(const struct model *model, uint32_t scope, size_t metric)
{
    double own = model->own[scope * model->n_metrics + metric];
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling)
        own += model->scopes[i].kind == SCOPE_INSTRUCTION ? model->own[i * model->n_metrics + metric] : 0;
    return own;
}

/* What is needed to say which thing a node is. */
struct node_items {
    struct items *items;
    const struct report *report;
    const struct item_kind *kinds[5];
    const struct item_list *lists[5];
    uint32_t *row_of; /* [n_scopes] 1 + the row of the report whose variable the scope is; 0: none */
};

enum { IS_VARIABLE, IS_FUNCTION, IS_LINE, IS_LOOP, IS_REGION };

static int node_items_init(struct node_items *of, struct items *items, struct error *err)
{
    static const char *const names[] = {"variable", "function", "line", "loop", "region"};
    *of = (struct node_items){.items = items};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        of->kinds[i] = item_kind_find(names[i]);
        if (!(of->lists[i] = items_list(items, of->kinds[i], err)))
            return err->code;
    }
    of->report = items_report(items, err);
    of->row_of = calloc(items->model->n_scopes + 1, sizeof *of->row_of);
    if (!of->report || !of->row_of)
        return error_memory(err);
    for (size_t i = 0; i < of->report->n_rows; i++) {
        const struct variable *variable = of->report->rows[i].variable;
        for (size_t k = 0; variable && k < variable->n_scopes; k++)
            if (!of->row_of[variable->scopes[k]])
                of->row_of[variable->scopes[k]] = (uint32_t)i + 1;
    }
    return 0;
}

/* Puts the identity of the thing that a node is, if it is one of the database's things. */
static void put_item(const struct node_items *of, uint32_t scope, struct table *table)
{
    const struct scope *at = &of->items->model->scopes[scope];
    struct buf text = {0};
    int what = at->role == ROLE_VARIABLE ? IS_VARIABLE
               : at->role == ROLE_REGION ? IS_REGION
               : at->kind == SCOPE_LOOP  ? IS_LOOP
               : model_is_procedure(at)  ? IS_FUNCTION
                                         : IS_LINE;
    buf_printf(&text, "%s:", of->kinds[what]->name);
    size_t len = text.len_bytes;
    if (what == IS_VARIABLE && of->row_of[scope])
        item_put_row(&of->report->rows[of->row_of[scope] - 1], &text);
    else if (what == IS_REGION)
        buf_printf(&text, "%s", model_text(of->items->model, at->name));
    else if (what == IS_FUNCTION && at->role == ROLE_NONE)
        item_put_function(of->items, at->name, at->file, at->module, &text);
    else if ((what == IS_LINE || what == IS_LOOP) && at->line)
        item_put_line(of->items, model_file_of(of->items->model, scope), at->line, &text);
    if (text.failed)
        table_fail(table);
    if (text.len_bytes > len && !text.failed && item_list_find(of->lists[what], text.data + len) != ITEM_NONE) {
        table_put_made(table, &text);
    } else {
        table_put_absent(table);
        buf_fini(&text);
    }
}

const struct column node_columns[NODE_COLUMNS] = {
    {"parent", NULL, CELL_COUNT}, {"node", NULL, CELL_COUNT}, {"kind", NULL, CELL_TEXT},   {"name", NULL, CELL_TEXT},
    {"file", NULL, CELL_TEXT},    {"line", NULL, CELL_COUNT}, {"module", NULL, CELL_TEXT}, {"value", NULL, CELL_NUMBER},
    {"own", NULL, CELL_NUMBER},   {"item", NULL, CELL_TEXT},
};

void node_put_small(struct table *table, uint32_t parent, size_t n, double value)
{
    struct buf name = {0};
    table_put_count(table, parent);
    table_put_absent(table);
    table_put_borrowed(table, "small");
    buf_printf(&name, "%zu small", n);
    table_put_made(table, &name);
    table_put_absents(table, 3);
    table_put_number(table, value);
    table_put_absents(table, 2);
}

/* A node has the number, the kind and the name that it has in a frame of the database. */
static void fill_node(const struct node_items *of, size_t metric, const struct node_row *row, struct buf *scratch,
                      struct table *table)
{
    const struct model *model = of->items->model;
    const struct scope *at = &model->scopes[row->scope];
    const char *file = row->scope ? model_text(model, model_file_of(model, row->scope)) : "";
    enum frame_kind kind = row->scope ? node_kind(at) : FRAME_GROUP;
    table_put_if(table, row->parent != NODE_NONE, row->parent);
    table_put_count(table, row->scope ? row->scope : (int64_t)model->n_scopes);
    table_put_borrowed(table, frame_kind_name(kind));
    if (row->scope == 0) {
        table_put_borrowed(table, "main thread");
    } else if (model_is_procedure(at)) {
        table_put_borrowed(table, model_text(model, at->name));
    } else {
        node_name(model, row->scope, scratch);
        table_put_text(table, scratch->data);
    }
    table_put_borrowed(table, *file ? file : frame_kind_is_part(kind) ? "<unknown file>" : NULL);
    table_put_if(table, at->line > 0, at->line);
    table_put_borrowed(table, *model_text(model, at->module) ? model_text(model, at->module) : NULL);
    table_put_number(table, row->value);
    table_put_number(table, own_value(model, row->scope, metric));
    if (row->scope)
        put_item(of, row->scope, table);
    else
        table_put_absent(table);
}

static const struct column node_head[] = {{"total", NULL, CELL_NUMBER}};

/* Which of the two trees are wanted.  err: ERR_USAGE */
static int choose_trees(const char *tree, bool *has_code, bool *has_data, struct error *err)
{
    *has_code = !tree || strcmp(tree, "data") != 0;
    *has_data = !tree || strcmp(tree, "code") != 0;
    if (tree && strcmp(tree, "both") != 0 && *has_code && *has_data)
        return error_set(err, ERR_USAGE, "--tree takes code, data or both");
    return 0;
}

static int make_nodes(const struct asked *asked, struct answer *answer, struct error *err)
{
    const struct model *model = asked->job->model;
    uint32_t data = model_data_root(model);
    double total = model_value(model, 0, asked->job->metric);
    struct node_walk walk = {.model = model, .metric = asked->job->metric};
    struct node_items of = {0};
    struct buf scratch = {0};
    bool has_code, has_data, ok = true;
    int code = choose_trees(asked->tree, &has_code, &has_data, err);
    if (code == 0)
        code = node_items_init(&of, asked->job->items, err);
    walk.least = asked->job->least > 0 ? total * asked->job->least / 100 : 0;
    if (code == 0 && has_code)
        ok = walk_tree(&walk, 0, (uint32_t)model->n_scopes, data);
    if (code == 0 && ok && has_data && data)
        ok = walk_tree(&walk, data, model_subtree_end(model, data), 0);
    if (!ok)
        code = error_memory(err);
    answer_begin(answer, "nodes", COLUMNS(node_columns));
    table_put_number(answer_set_head(answer, COLUMNS(node_head)), total);
    for (size_t i = 0; code == 0 && i < walk.n; i++)
        if (walk.rows[i].scope == NODE_SMALL)
            node_put_small(&answer->rows, walk.rows[i].parent, walk.rows[i].n_small, walk.rows[i].value);
        else
            fill_node(&of, walk.metric, &walk.rows[i], &scratch, &answer->rows);
    answer->rows.failed |= scratch.failed;
    free(walk.rows);
    free(walk.open);
    free(of.row_of);
    buf_fini(&scratch);
    return code;
}

/* --- source --- */

static const struct column source_columns[] = {{"first", NULL, CELL_COUNT}, {"text", NULL, CELL_TEXT}};
static const struct column source_head[] = {{"file", NULL, CELL_TEXT}, {"lines", NULL, CELL_COUNT}};

static int compare_lines(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The lines of a file that have values, in order; malloc'ed, *n of them. NULL on an error. */
static uint32_t *lines_of(struct items *items, uint32_t file, size_t *n, struct error *err)
{
    const struct code_table *table = items_lines(items, err);
    uint32_t *lines = table ? calloc(table->n_rows + 1, sizeof *lines) : NULL;
    *n = 0;
    for (size_t i = 0; lines && i < table->n_rows; i++)
        if (table->rows[i].file == file && table->rows[i].line)
            lines[(*n)++] = table->rows[i].line;
    if (lines)
        qsort(lines, *n, sizeof *lines, compare_lines);
    else
        (void)error_memory(err);
    return lines;
}

/* Puts lines as a row; bytes that are not UTF-8, and NUL, as '?'. */
static void put_piece(struct table *table, size_t first, const char *bytes, size_t n)
{
    struct buf clean = {0};
    for (size_t i = 0, len; i < n; i += len) {
        len = bytes[i] ? printable_utf8(bytes + i) : 0;
        buf_append(&clean, len ? bytes + i : "?", len ? len : 1);
        len = len ? len : 1;
    }
    table_put_count(table, (int64_t)first);
    table_put_made(table, &clean);
}

/* Where line number at + 1 ends, from where line at ends. */
static size_t next_line(const struct buf *text, size_t at)
{
    const char *end = memchr(text->data + at, '\n', text->len_bytes - at);
    return end ? (size_t)(end - text->data) + 1 : text->len_bytes;
}

/* Puts what is around lines with values [n]. */
static void put_pieces(struct table *table, const struct buf *text, const uint32_t *lines, size_t n)
{
    size_t at = 0, number = 1;
    for (size_t i = 0; i < n && at < text->len_bytes; i++) {
        size_t first = lines[i] <= AROUND ? 1 : lines[i] - AROUND;
        while (i + 1 < n && lines[i + 1] <= lines[i] + 2 * AROUND)
            i++;
        for (; number < first && at < text->len_bytes; number++)
            at = next_line(text, at);
        size_t begin = at, first_here = number;
        for (; number <= (size_t)lines[i] + AROUND && at < text->len_bytes; number++)
            at = next_line(text, at);
        if (at > begin)
            put_piece(table, first_here, text->data + begin, at - begin);
    }
}

/* The string id of a file that a scope is in, or where there are no scopes, a line; 0: there is none, or *err says why.
 */
static uint32_t find_file(struct items *items, const char *name, struct error *err)
{
    const struct model *model = items->model;
    const struct code_table *table = model->code ? items_lines(items, err) : NULL;
    int64_t id = strtab_find(&model->strings, name);
    size_t i = 0, n = table ? table->n_rows : model->n_scopes;
    while (id > 0 && i < n && (table ? table->rows[i].file : model->scopes[i].file) != id)
        i++;
    return id > 0 && i < n ? (uint32_t)id : 0;
}

static int refuse_file(const struct export_job *job, bool is_named, struct error *err)
{
    const char *what = job->model->code ? "file" : "database";
    if (!is_named)
        return error_set(err, ERR_NOT_FOUND, "the %s names no file '%.300s'; hpcquery lines lists those that it does",
                         what, job->subject);
    if (job->model->code)
        return error_set(err, ERR_NOT_FOUND, "there is no file '%.300s' here that can be read", job->subject);
    return error_set(err, ERR_NOT_FOUND,
                     "the database has no copy of '%.300s'; hpcprof copies the sources that it finds where it runs, "
                     "or below a directory that -I names",
                     job->subject);
}

/* Whether a file comes with the system: of such ones nobody reads more than what was used. */
static bool is_of_system(const char *file)
{
    return strncmp(file, "/usr/include/", 13) == 0 || strncmp(file, "/usr/lib/gcc/", 13) == 0;
}

static int make_source(const struct asked *asked, struct answer *answer, struct error *err)
{
    const struct export_job *job = asked->job;
    uint32_t file = find_file(asked->job->items, job->subject, err);
    struct buf text = {0};
    size_t n = 0, n_lines = 0;
    if (!file || !sources_read(job->directory, job->subject, &text) || !text.data) {
        buf_fini(&text);
        return refuse_file(job, file != 0, err);
    }
    bool is_whole = job->with_unused || (text.len_bytes <= WHOLE_BYTES_MAX && !is_of_system(job->subject));
    uint32_t *lines = is_whole ? NULL : lines_of(asked->job->items, file, &n, err);
    answer_begin(answer, "pieces", COLUMNS(source_columns));
    for (size_t at = 0; at < text.len_bytes; at = next_line(&text, at))
        n_lines++;
    struct table *head = answer_set_head(answer, COLUMNS(source_head));
    table_put_text(head, job->subject);
    table_put_count(head, (int64_t)n_lines);
    if (is_whole && text.len_bytes)
        put_piece(&answer->rows, 1, text.data, text.len_bytes);
    else if (lines)
        put_pieces(&answer->rows, &text, lines, n);
    buf_fini(&text);
    free(lines);
    return is_whole || lines ? 0 : err->code;
}

/* --- trust --- */

static const struct column trust_columns[] = {
    {"event", NULL, CELL_TEXT},       {"fate", NULL, CELL_TEXT},    {"samples", NULL, CELL_WORD},
    {"is_recorded", NULL, CELL_FLAG}, {"meaning", NULL, CELL_TEXT},
};

static const struct column trust_head[] = {
    {"taken", NULL, CELL_WORD},
    {"total_samples", NULL, CELL_NUMBER},
    {"named_percent", NULL, CELL_PERCENT},
    {"no_access_percent", NULL, CELL_PERCENT},
    {"recovered_percent", NULL, CELL_PERCENT},
    {"user_s", NULL, CELL_NUMBER},
    {"system_s", NULL, CELL_NUMBER},
    {"sampled_s", NULL, CELL_NUMBER},
    {"unmeasured_s", NULL, CELL_NUMBER},
    {"has_too_few_samples", NULL, CELL_FLAG},
    {"foot", NULL, CELL_TABLE},
};

static void fill_fates(const struct model *model, struct table *table)
{
    for (size_t e = 0; e < model->n_events; e++) {
        const struct event_sum *event = &model->events[e];
        for (int fate = 0; fate < FATE_MAX; fate++) {
            if (!event->fates[fate])
                continue;
            table_put_text(table, event->metric ? event->metric : event->name);
            table_put_text(table, fate_row(fate)->name);
            table_put_word(table, event->fates[fate]);
            table_put_flag(table, fate < FATE_TAKEN_MAX);
            table_put_text(table, fate_row(fate)->sentence);
        }
    }
}

/* A number of seconds; 0: it is not known. */
static void put_seconds(struct table *table, double s)
{
    table_put_number(table, s > 0 ? s : (double)NAN);
}

static int make_trust(const struct asked *asked, struct answer *answer, struct error *err)
{
    const struct model *model = asked->job->model;
    struct export_job wide = wide_job(asked->job);
    struct prepared prepared;
    struct buf foot = {0};
    int code = prepared_make(&wide, PREPARED_ORDER | PREPARED_CHOICE | PREPARED_SHARED_LINES, &prepared, err);
    if (code != 0)
        return code;
    const struct report *report = &prepared.report;
    answer_begin(answer, "fates", COLUMNS(trust_columns));
    fill_fates(model, &answer->rows);
    struct table *head = answer_set_head(answer, COLUMNS(trust_head));
    table_put_word_if(head, report->event, report->event ? report->event->taken : 0);
    table_put_number(head, report->total_samples);
    table_put_number(head, report->named);
    table_put_number(head, report->no_access);
    table_put_number(head, report->recovered);
    put_seconds(head, report->user_s);
    put_seconds(head, report->system_s);
    put_seconds(head, report->sampled_s);
    put_seconds(head, (double)model->unmeasured_ns / 1e9);
    table_put_flag(head, report->has_too_few);
    foot_put(report, &wide, prepared.n_rows, &foot);
    put_labelled(&foot, table_put_table(head, COLUMNS(label_columns)));
    buf_fini(&foot);
    prepared_fini(&prepared);
    return 0;
}

/* --- the list --- */

static const struct question {
    struct report_kind kind;
    int (*make)(const struct asked *asked, struct answer *answer, struct error *err);
} questions[] = {
    {{.name = "session", .operands = "DB", .options = ASK(METRIC)}, make_session},
    {{.name = "nodes", .operands = "DB", .options = ASK(METRIC) | ASK(MIN) | ASK(TREE) | ASK(PROFILES)}, make_nodes},
    {{.name = "source", .operands = "FILE DB", .options = ASK(METRIC) | ASK(ALL)}, make_source},
    {{.name = "trust", .operands = "DB", .options = ASK(METRIC)}, make_trust},
};

#define N_QUESTIONS (sizeof questions / sizeof *questions)

const struct report_kind *question_find(const char *name)
{
    for (size_t i = 0; i < N_QUESTIONS; i++)
        if (strcmp(questions[i].kind.name, name) == 0)
            return &questions[i].kind;
    return NULL;
}

int question_answer(const struct asked *asked, struct answer *answer, struct error *err)
{
    const struct model *model = asked->job->model;
    size_t i = 0;
    while (strcmp(questions[i].kind.name, asked->job->report) != 0)
        i++;
    *answer = (struct answer){.program = model->program, .metric = model->metrics[asked->job->metric].name};
    int code = questions[i].make(asked, answer, err);
    if (code == 0 && (answer->head.failed || answer->rows.failed))
        code = error_memory(err);
    if (code != 0)
        answer_fini(answer);
    return code;
}
