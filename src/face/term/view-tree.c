/* SPDX-License-Identifier: BSD-3-Clause */
/* What called what: from above, from below, and who accesses which data. Only what is opened has rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "face/term/screen.h"

static const struct view_column columns[] = {
    {NULL, "with", 7, true, false},
    {NULL, "own", 7, true, false},
    {NULL, "", 8, false, false},
    {NULL, "what is called", 0, false, true},
};

#define NO_NODE UINT32_MAX
#define LEAST_NODE 0.05   /* percent of the total: what would be shown as 0.0 is summed up below its parent */
#define LEAST_SUMMED 0.01 /* ... from below, where many small ones may be a large one together */

/* A node of the tree that is shown. */
struct node {
    uint32_t parent, first, next; /* NO_NODE: none */
    uint32_t of;                  /* a row of the table, whose name it has */
    uint32_t depth;
    double value, own;
    bool is_open;
};

struct tree {
    const struct table *table;
    struct node *nodes; /* [n] */
    size_t n, cap;
    uint32_t first; /* of the roots */
    double total;
    /* From below: what the nodes stand for are found when they are opened. */
    bool is_from_below;
    const double *parents, *values, *owns; /* [rows] of the table */
    double *numbers;                       /* that these are in */
    uint32_t *keys;                        /* [rows] what a row is: the same for each call of a function */
    unsigned char *is_function, *is_line;  /* [rows] */
    struct strtab names;
    size_t n_rows;
};

static void close_tree(void *own)
{
    struct tree *tree = own;
    free(tree->nodes);
    free(tree->numbers);
    free(tree->keys);
    free(tree->is_function);
    free(tree->is_line);
    strtab_fini(&tree->names);
    free(tree);
}

static const char *mode_of(const struct screen *screen)
{
    return look_get(&screen->now, LOOK_GRAPH);
}

static bool is_kind(const struct tree *tree, size_t row, const char *kind)
{
    return strcmp(cell_text(tree->table, row, "kind"), kind) == 0;
}

/* --- the table as arrays --- */

static bool read_table(struct tree *tree)
{
    size_t n = tree->n_rows = rows_of(tree->table);
    tree->numbers = calloc(3 * n + 1, sizeof *tree->numbers);
    tree->keys = calloc(n + 1, sizeof *tree->keys);
    tree->is_function = calloc(n + 1, 1);
    tree->is_line = calloc(n + 1, 1);
    if (!tree->numbers || !tree->keys || !tree->is_function || !tree->is_line)
        return false;
    tree->parents = tree->numbers;
    tree->values = tree->numbers + n;
    tree->owns = tree->numbers + 2 * n;
    bool ok = n == 0 || (table_get_numbers(tree->table, column_of(tree->table, "parent"), 0, n, tree->numbers) &&
                         table_get_numbers(tree->table, column_of(tree->table, "value"), 0, n, tree->numbers + n) &&
                         table_get_numbers(tree->table, column_of(tree->table, "own"), 0, n, tree->numbers + 2 * n));
    size_t kind = column_of(tree->table, "kind"), name = column_of(tree->table, "name"),
           module = column_of(tree->table, "module");
    struct buf key = {0};
    for (size_t i = 0; ok && i < n; i++) {
        const char *texts[3] = {"", "", ""};
        (void)table_get_texts(tree->table, kind, i, 1, &texts[0]);
        tree->is_line[i] = texts[0] && strcmp(texts[0], "line") == 0;
        if (!tree->is_from_below) /* nobody asks by name */
            continue;
        (void)table_get_texts(tree->table, name, i, 1, &texts[1]);
        (void)table_get_texts(tree->table, module, i, 1, &texts[2]);
        tree->is_function[i] = texts[0] && (strcmp(texts[0], "function") == 0 || strncmp(texts[0], "inlined", 7) == 0);
        key.len_bytes = 0;
        buf_printf(&key, "%s %s", texts[1] ? texts[1] : "", tree->is_function[i] && texts[2] ? texts[2] : "");
        int64_t id = key.data ? strtab_intern(&tree->names, key.data) : -1;
        ok = id >= 0;
        tree->keys[i] = (uint32_t)id;
    }
    buf_fini(&key);
    return ok;
}

/* --- nodes --- */

static uint32_t add_node(struct tree *tree, uint32_t parent, uint32_t of, double value, double own)
{
    if (!vec_reserve(&tree->nodes, &tree->cap, tree->n + 1, sizeof *tree->nodes))
        return NO_NODE;
    uint32_t depth = parent == NO_NODE ? 0 : tree->nodes[parent].depth + 1;
    tree->nodes[tree->n] = (struct node){parent, NO_NODE, NO_NODE, of, depth, value, own, false};
    return (uint32_t)tree->n++;
}

static uint32_t *first_of(struct tree *tree, uint32_t parent)
{
    return parent == NO_NODE ? &tree->first : &tree->nodes[parent].first;
}

/* What qsort orders: nodes with what they cost. */
struct ordered {
    uint32_t node;
    double value;
};

static int compare_values(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    int order = (x->value < y->value) - (x->value > y->value);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

/* Puts nodes from..n-1 below a parent, the largest first. */
static bool link_nodes(struct tree *tree, uint32_t parent, size_t from)
{
    size_t n = tree->n - from;
    struct ordered *order = malloc((n + 1) * sizeof *order);
    if (!order)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ordered){(uint32_t)(from + i), tree->nodes[from + i].value};
    qsort(order, n, sizeof *order, compare_values);
    uint32_t *at = first_of(tree, parent);
    for (size_t i = 0; i < n; i++) {
        *at = order[i].node;
        at = &tree->nodes[order[i].node].next;
    }
    *at = NO_NODE;
    free(order);
    return true;
}

/* Whether a row is a node of its own: a line is where it costs something itself. */
static bool is_shown(const struct tree *tree, size_t row)
{
    return !tree->is_line[row] || tree->owns[row] > 0;
}

/* From above: adds the rows below a row, those of what is not shown in its place. */
static bool open_above(struct tree *tree, uint32_t parent, size_t row)
{
    size_t from = tree->n;
    bool ok = true;
    for (size_t i = row + 1; ok && i < tree->n_rows && tree->parents[i] >= (double)row; i++) {
        size_t above = (size_t)tree->parents[i];
        while (above != row && above > row && !is_shown(tree, above))
            above = (size_t)tree->parents[above];
        if (above == row && is_shown(tree, i))
            ok = add_node(tree, parent, (uint32_t)i, tree->values[i], tree->owns[i]) != NO_NODE;
    }
    return ok && link_nodes(tree, parent, from);
}

/* --- from below --- */

/* The next function above a row, NO_NODE: there is none. */
static uint32_t caller_of(const struct tree *tree, size_t row)
{
    double above = tree->parents[row];
    while (above >= 0 && !tree->is_function[(size_t)above])
        above = tree->parents[(size_t)above];
    return above >= 0 ? (uint32_t)above : NO_NODE;
}

/* The function whose own cost a row's is. */
static uint32_t function_of(const struct tree *tree, size_t row)
{
    return tree->is_function[row] ? (uint32_t)row : caller_of(tree, row);
}

/* The row `depth` functions above that of a cost, NO_NODE; all keys on the way are those of a node and its parents. */
static uint32_t climb(const struct tree *tree, size_t row, uint32_t node)
{
    uint32_t at = function_of(tree, row);
    enum { DEEPEST = 4096 };
    uint32_t path[DEEPEST], n = 0;
    for (uint32_t i = node; i != NO_NODE && n < DEEPEST; i = tree->nodes[i].parent)
        path[n++] = i;
    while (n > 0 && at != NO_NODE) {
        if (tree->keys[at] != tree->keys[tree->nodes[path[n - 1]].of])
            return NO_NODE;
        at = caller_of(tree, at);
        n--;
    }
    return n == 0 ? at : NO_NODE;
}

/* Adds a node for each name of those that called a node, NO_NODE: for each function. */
static bool open_below(struct tree *tree, uint32_t parent)
{
    size_t from = tree->n;
    uint32_t *made = malloc((tree->names.n_strings + 1) * sizeof *made);
    bool ok = made != NULL;
    for (size_t i = 0; ok && i < tree->names.n_strings; i++)
        made[i] = NO_NODE;
    for (size_t i = 0; ok && i < tree->n_rows; i++) {
        if (!(tree->owns[i] > 0))
            continue;
        uint32_t at = climb(tree, i, parent);
        if (at == NO_NODE)
            continue;
        uint32_t *node = &made[tree->keys[at]];
        if (*node == NO_NODE) {
            *node = add_node(tree, parent, at, 0, 0);
            ok = *node != NO_NODE;
        }
        if (ok) {
            tree->nodes[*node].value += tree->owns[i];
            tree->nodes[*node].own += parent == NO_NODE ? tree->owns[i] : 0;
        }
    }
    free(made);
    return ok && link_nodes(tree, parent, from);
}

/* --- the view --- */

static bool open_node(struct tree *tree, uint32_t node)
{
    struct node *at = &tree->nodes[node];
    bool is_new = at->first == NO_NODE;
    at->is_open = true;
    return !is_new || (tree->is_from_below ? open_below(tree, node) : open_above(tree, node, at->of));
}

/* Opens nodes from the roots on as long as one of them has most of its parent. */
static void open_hot(struct tree *tree)
{
    enum { DEEP = 40 };
    uint32_t at = tree->first;
    double most = tree->total;
    for (int i = 0; i < DEEP && at != NO_NODE && tree->nodes[at].value >= most / 2; i++) {
        most = tree->nodes[at].value;
        if (!open_node(tree, at))
            break;
        at = tree->nodes[at].first;
    }
}

static bool open_roots(struct tree *tree)
{
    bool ok = true;
    tree->first = NO_NODE;
    if (tree->is_from_below)
        return open_below(tree, NO_NODE);
    for (size_t i = 0; ok && i < tree->n_rows; i++)
        if (isnan(tree->parents[i]))
            ok = add_node(tree, NO_NODE, (uint32_t)i, tree->values[i], tree->owns[i]) != NO_NODE;
    return ok && link_nodes(tree, NO_NODE, 0);
}

static int open_tree(struct screen *screen, struct error *err)
{
    bool is_data = strcmp(mode_of(screen), "data") == 0, is_from_below = strcmp(mode_of(screen), "bottom-up") == 0;
    const struct request request = {.report = "nodes",
                                    .tree = is_data ? "data" : "code",
                                    .least = is_from_below ? LEAST_SUMMED : LEAST_NODE,
                                    .has_least = true};
    const struct answer *answer = ask(screen, &request, err);
    struct tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return error_memory(err);
    screen->pane.own = tree;
    screen->pane.close = close_tree;
    if (!answer)
        return err->code;
    tree->table = answer_rows(answer);
    tree->total = cell_number(answer_head(answer), 0, "total");
    tree->is_from_below = is_from_below;
    if (!read_table(tree) || !open_roots(tree))
        return error_memory(err);
    if (!tree->n)
        return error_set(err, ERR_NOT_FOUND,
                         is_data ? "There is no tree of data: nothing was sampled at data." : "There is no tree.");
    if (!tree->is_from_below)
        open_hot(tree);
    (void)snprintf(screen->pane.note, sizeof screen->pane.note, "%s (t: another one)",
                   is_data               ? "data"
                   : tree->is_from_below ? "from below"
                                         : "from above");
    return 0;
}

static bool is_kept(struct screen *screen, uint32_t node)
{
    const char *filter = look_get(&screen->now, LOOK_FILTER);
    return !*filter || pane_has(screen, node, filter);
}

static void arrange(struct screen *screen)
{
    struct tree *tree = screen->pane.own;
    uint32_t at = tree && !*screen->pane.why && tree->n ? tree->first : NO_NODE;
    while (at != NO_NODE) {
        if (is_kept(screen, at) && !pane_add(&screen->pane, at))
            return;
        if (tree->nodes[at].is_open && tree->nodes[at].first != NO_NODE) {
            at = tree->nodes[at].first;
            continue;
        }
        while (at != NO_NODE && tree->nodes[at].next == NO_NODE)
            at = tree->nodes[at].parent;
        if (at != NO_NODE)
            at = tree->nodes[at].next;
    }
}

/* What a row is called. */
static void put_name(const struct tree *tree, size_t row, struct buf *out)
{
    const char *file = cell_text(tree->table, row, "file"), *name = cell_text(tree->table, row, "name");
    double line = cell_number(tree->table, row, "line");
    char place[512];
    if (is_kind(tree, row, "loop") && *file)
        buf_printf(out, "loop %s", place_text(file, line, place, sizeof place));
    else
        buf_printf(out, "%s", *name ? name : cell_text(tree->table, row, "kind"));
    if (strncmp(cell_text(tree->table, row, "kind"), "inlined", 7) == 0)
        buf_printf(out, " [inlined]");
}

static bool may_open(const struct tree *tree, const struct node *node)
{
    if (tree->is_from_below)
        return node->first != NO_NODE || !node->is_open;
    return node->of + 1 < tree->n_rows && tree->parents[node->of + 1] == (double)node->of;
}

static void put_cell(struct screen *screen, size_t row, size_t column, struct line *line)
{
    const struct tree *tree = screen->pane.own;
    const struct node *node = &tree->nodes[row];
    struct buf name = {0};
    char text[NUMBER_BYTES];
    if (column == 0) {
        line_put_right(line, TONE_STRONG, percent_text(100 * node->value / tree->total, text), columns[0].width);
    } else if (column == 1 && node->own > 0) {
        line_put_right(line, TONE_PLAIN, percent_text(100 * node->own / tree->total, text), columns[1].width);
    } else if (column == 2) {
        line_put_bar(line, (double[]){node->value / tree->total}, (enum tone[]){TONE_MEMORY}, 1, columns[2].width);
    } else if (column == 3) {
        unsigned indent = node->depth > 60 ? 60 : node->depth;
        line_to(line, line->at + indent);
        line_put(line, TONE_DIM, !may_open(tree, node) ? "  " : node->is_open ? "- " : "+ ");
        put_name(tree, node->of, &name);
        line_put_in(line, TONE_PLAIN, name.data ? name.data : "", line->width - line->at);
        buf_fini(&name);
    }
}

static void put_words(struct screen *screen, size_t row, struct buf *out)
{
    const struct tree *tree = screen->pane.own;
    put_name(tree, tree->nodes[row].of, out);
}

static void tell(struct screen *screen, size_t row, struct lines *lines)
{
    const struct tree *tree = screen->pane.own;
    const struct node *node = &tree->nodes[row];
    struct buf name = {0};
    char text[512], number[NUMBER_BYTES];
    put_name(tree, node->of, &name);
    lines_wrap(lines, TONE_STRONG, 0, name.data ? name.data : "");
    lines_label(lines, "kind", cell_text(tree->table, node->of, "kind"));
    lines_label(lines, tree->is_from_below && node->depth ? "of the cost" : "with calls",
                percent_text(100 * node->value / tree->total, number));
    lines_label(lines, "", short_text(node->value, number));
    if (node->own > 0)
        lines_label(lines, "own", percent_text(100 * node->own / tree->total, number));
    if (*cell_text(tree->table, node->of, "file") && *cell_text(tree->table, node->of, "file") != '<')
        lines_label(lines, "where",
                    place_text(cell_text(tree->table, node->of, "file"), cell_number(tree->table, node->of, "line"),
                               text, sizeof text));
    lines_label(lines, "module", cell_text(tree->table, node->of, "module"));
    name.len_bytes = 0;
    for (uint32_t at = node->parent; at != NO_NODE; at = tree->nodes[at].parent) {
        if (name.len_bytes)
            buf_printf(&name, " < ");
        put_name(tree, tree->nodes[at].of, &name);
    }
    lines_label(lines, tree->is_from_below ? "calls" : "called by", name.len_bytes ? name.data : "");
    buf_fini(&name);
}

static void put_item(struct screen *screen, size_t row, struct buf *out)
{
    const struct tree *tree = screen->pane.own;
    buf_printf(out, "%s", cell_text(tree->table, tree->nodes[row].of, "item"));
}

/* Opens or closes the node under the cursor; on a closed one Left goes to its parent. */
static void toggle(struct screen *screen, bool opens)
{
    struct tree *tree = screen->pane.own;
    size_t row = pane_row(screen);
    if (row == SIZE_MAX)
        return;
    uint32_t to = (uint32_t)row;
    if (opens)
        (void)open_node(tree, to);
    else if (tree->nodes[row].is_open)
        tree->nodes[row].is_open = false;
    else if (tree->nodes[row].parent != NO_NODE)
        to = tree->nodes[row].parent;
    pane_arrange(screen);
    for (size_t i = 0; i < screen->pane.n; i++)
        if (screen->pane.rows[i] == to)
            pane_move(screen, i);
}

static bool take_key(struct screen *screen, int key)
{
    static const char *const modes[] = {"", "bottom-up", "data"};
    const struct tree *tree = screen->pane.own;
    size_t row = pane_row(screen), at = 0;
    if (key == 't') {
        while (at < 2 && strcmp(modes[at], mode_of(screen)) != 0)
            at++;
        go_set(screen, LOOK_GRAPH, modes[(at + 1) % 3]);
        return true;
    }
    if (row == SIZE_MAX || (key != KEYS_LEFT && key != KEYS_RIGHT && key != KEYS_ENTER && key != ' '))
        return false;
    toggle(screen, key == KEYS_RIGHT || (key != KEYS_LEFT && !tree->nodes[row].is_open));
    return true;
}

/* --- in a newer session --- */

/* Names from the root on: numbers of nodes are others there. */
static void put_place(struct screen *screen, size_t row, struct buf *out)
{
    const struct tree *tree = screen->pane.own;
    const struct node *node = &tree->nodes[row];
    if (node->parent != NO_NODE)
        put_place(screen, node->parent, out);
    buf_printf(out, "\n");
    put_name(tree, node->of, out);
}

static void keep_open(struct screen *screen, struct strtab *places)
{
    const struct tree *tree = screen->pane.own;
    struct buf place = {0};
    for (size_t i = 0; tree && i < tree->n; i++) {
        place.len_bytes = 0;
        if (tree->nodes[i].is_open)
            put_place(screen, i, &place);
        if (place.len_bytes && place.data)
            (void)strtab_intern(places, place.data);
    }
    buf_fini(&place);
}

static void reopen(struct screen *screen, const struct strtab *places)
{
    struct tree *tree = screen->pane.own;
    struct buf place = {0};
    for (size_t i = 0; i < tree->n; i++) { /* what is opened comes behind */
        place.len_bytes = 0;
        put_place(screen, i, &place);
        tree->nodes[i].is_open = false;
        if (place.data && strtab_find(places, place.data) >= 0)
            (void)open_node(tree, (uint32_t)i);
    }
    buf_fini(&place);
}

static void put_command(struct screen *screen, struct buf *out)
{
    const char *metric = look_get(&screen->now, LOOK_METRIC);
    if (strcmp(mode_of(screen), "bottom-up") != 0) {
        request_put_words(screen,
                          &(struct request){.report = strcmp(mode_of(screen), "data") == 0 ? "datatree" : "tree"}, out);
        return;
    }
    buf_printf(out, " callers --tree=code");
    if (*metric) {
        buf_printf(out, " --metric");
        word_put(out, metric);
    }
}

const struct view view_tree = {
    .name = "tree",
    .title = "Tree",
    .is_of_code = true,
    .columns = columns,
    .n_columns = sizeof columns / sizeof *columns,
    .keys = "Right Left  open, close\nt  from above, from below, data",
    .open = open_tree,
    .cell = put_cell,
    .words = put_words,
    .detail = tell,
    .item = put_item,
    .arrange = arrange,
    .key = take_key,
    .keep = keep_open,
    .reopen = reopen,
    .place = put_place,
    .command = put_command,
};
