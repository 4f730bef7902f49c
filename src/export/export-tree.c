/* SPDX-License-Identifier: BSD-3-Clause */
/* The call tree. It is walked without recursion, since call chains can be very deep. */
#include "export/exporters.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/text-cells.h"
#include "fmt/json.h"

/* One visible node. */
struct tree_node {
    uint32_t scope, parent; /* parent: visible scope, 0 = none */
    uint32_t depth;
    double inclusive, own;         /* own: of the statements in a function or loop */
    uint32_t call_file, call_line; /* where it was called, 0 = not known */
};

struct visible_walk {
    const struct export_job *job;
    double least;
    struct tree_node *stack; /* [n_stack] still to be visited, the next one last */
    size_t n_stack, cap_stack;
    struct tree_node *nodes; /* [n_nodes] result */
    size_t n_nodes, cap_nodes;
};

/* Total that percentages refer to. */
static double tree_total(const struct export_job *job)
{
    uint32_t root = model_data_root(job->model);
    double total = model_value(job->model, 0, job->metric);
    double data = root ? model_value(job->model, root, job->metric) : 0;
    return total > data ? total : data;
}

static bool is_visible(const struct scope *scope)
{
    return scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED || scope->kind == SCOPE_LOOP ||
           scope->kind == SCOPE_LINE;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct tree_node *x = a, *y = b;
    if (x->inclusive != y->inclusive)
        return x->inclusive < y->inclusive ? -1 : 1;
    return x->scope > y->scope ? -1 : x->scope < y->scope;
}

/* Pushes the visible children below scope, which may be a call site or place of the visible node above. */
static bool push_children(struct visible_walk *walk, uint32_t scope, const struct tree_node *above, uint32_t call_file,
                          uint32_t call_line)
{
    const struct model *model = walk->job->model;
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling) {
        const struct scope *child = &model->scopes[i];
        double value = model_value(model, i, walk->job->metric);
        if (value == 0 || value < walk->least)
            continue;
        if (!is_visible(child)) {
            if (!push_children(walk, i, above, child->file, child->line))
                return false;
            continue;
        }
        if (!vec_reserve(&walk->stack, &walk->cap_stack, walk->n_stack + 1, sizeof *walk->stack))
            return false;
        walk->stack[walk->n_stack++] = (struct tree_node){.scope = i,
                                                          .parent = above->scope,
                                                          .depth = above->scope ? above->depth + 1 : 0,
                                                          .inclusive = value,
                                                          .call_file = call_file,
                                                          .call_line = call_line};
    }
    return true;
}

/* Value of the scope's statements, including those in its loops and in parts of it from other files. The recursion is
 * only as deep as these nest in the source. */
static double own_value(const struct visible_walk *walk, uint32_t scope)
{
    const struct model *model = walk->job->model;
    double own = model->own[scope * model->n_metrics + walk->job->metric];
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling)
        if (model_is_lexical(&model->scopes[i]))
            own += own_value(walk, i);
    return own;
}

static bool visit(struct visible_walk *walk, const struct tree_node *node)
{
    size_t first = walk->n_stack;
    if (!push_children(walk, node->scope, node, 0, 0))
        return false;
    if (walk->n_stack > first)
        qsort(&walk->stack[first], walk->n_stack - first, sizeof *walk->stack, compare_nodes);
    return true;
}

/* Lists all visible nodes in depth-first order, siblings by inclusive value, highest first; nodes below least are left
 * out. *nodes is malloc'ed, the caller frees it.  err: ERR_MEMORY */
static int tree_walk(const struct export_job *job, double least, struct tree_node **nodes, size_t *n_nodes,
                     struct error *err)
{
    struct visible_walk walk = {.job = job, .least = least};
    struct tree_node top = {0};
    bool ok = visit(&walk, &top);
    while (ok && walk.n_stack > 0) {
        struct tree_node node = walk.stack[--walk.n_stack];
        node.own = own_value(&walk, node.scope);
        ok = vec_reserve(&walk.nodes, &walk.cap_nodes, walk.n_nodes + 1, sizeof *walk.nodes);
        if (ok) {
            walk.nodes[walk.n_nodes++] = node;
            ok = visit(&walk, &node);
        }
    }
    free(walk.stack);
    *nodes = walk.nodes;
    *n_nodes = walk.n_nodes;
    if (ok)
        return 0;
    free(walk.nodes);
    *nodes = NULL;
    return error_set(err, ERR_MEMORY, "out of memory");
}

/* --- text --- */

/* The call tree for a terminal: percent with and without callees, and indented names. */

#define INDENT_MAX 60
#define LEAST_SHOWN 1.0 /* percent */

static void put_loop(struct buf *text, const char *file, const struct scope *scope)
{
    buf_printf(text, "loop at %s:", file);
    text_lines(text, scope->line, scope->end_line);
}

static void put_node(const struct export_job *job, const struct tree_node *node, double total, struct buf *out)
{
    const struct model *model = job->model;
    const struct scope *scope = &model->scopes[node->scope];
    struct buf text = {0};
    size_t indent = 2 * (size_t)node->depth;
    for (size_t i = 0; i < (indent < INDENT_MAX ? indent : INDENT_MAX); i++)
        buf_append(&text, " ", 1);
    if (indent > INDENT_MAX)
        buf_printf(&text, "[%u] ", node->depth);
    const char *file = path_last(model_text(model, scope->file));
    if (scope->kind == SCOPE_LINE && scope->line)
        buf_printf(&text, "%s:%u", file, scope->line);
    else if (scope->kind == SCOPE_LOOP)
        put_loop(&text, file, scope);
    else
        buf_printf(&text, "%s%s", model_text(model, scope->name), scope->kind == SCOPE_INLINED ? " [inlined]" : "");
    if (scope->kind != SCOPE_LINE && node->call_line)
        buf_printf(&text, "  from %s:%u", path_last(model_text(model, node->call_file)), node->call_line);
    buf_printf(out, "%6.1f %% %6.1f %%  ", 100 * node->inclusive / total, 100 * node->own / total);
    if (scope->kind == SCOPE_LINE)
        text_style(out, job, TEXT_DIM);
    text_cut(out, job, text.data ? text.data : "", job->columns - 19);
    if (scope->kind == SCOPE_LINE)
        text_style(out, job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
    buf_fini(&text);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct tree_node *nodes;
    size_t n_nodes, n;
    double total = tree_total(job), least = job->least < 0 ? LEAST_SHOWN : job->least, shown = total * least / 100;
    int code = tree_walk(job, shown, &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    n = job->top && job->top < n_nodes ? job->top : n_nodes;
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%s: %.15g", job->model->metrics[job->metric].name, total);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "   (nodes below %.2g %% are left out)\n   with     without   what is called\n", least);
    for (size_t i = 0; i < n; i++)
        if (job->model->scopes[nodes[i].scope].kind != SCOPE_LINE || job->model->scopes[nodes[i].scope].line)
            put_node(job, &nodes[i], total > 0 ? total : 1, out);
    if (n < n_nodes)
        buf_printf(out, "%zu more nodes (--top 0 shows all)\n", n_nodes - n);
    free(nodes);
    return 0;
}

const struct exporter export_tree_text = {"tree", "text", write_text};

/* --- CSV --- */

/* The call tree as comma-separated values (RFC 4180): one line per node, parents first. */

static void put_field(struct buf *out, const char *text)
{
    csv_put_quoted(out, text);
    buf_append(out, ",", 1);
}

static const char *kind_name(const struct scope *scope)
{
    if (scope->kind == SCOPE_LINE)
        return "statement";
    if (scope->kind == SCOPE_LOOP)
        return "loop";
    if (scope->role == ROLE_VARIABLE)
        return "variable";
    if (scope->role != ROLE_NONE)
        return "placeholder";
    return scope->kind == SCOPE_INLINED ? "inlined" : "function";
}

static void put_csv_node(const struct export_job *job, const struct tree_node *node, double total, struct buf *out)
{
    const struct model *model = job->model;
    const struct scope *scope = &model->scopes[node->scope];
    buf_printf(out, "%u,%u,%u,%s,", node->scope, node->parent, node->depth, kind_name(scope));
    put_field(out, model_text(model, scope->name));
    put_field(out, model_text(model, scope->file));
    buf_printf(out, "%u,", scope->line);
    put_field(out, model_text(model, scope->module));
    buf_printf(out, "%u,%.15g,%.15g,%.6f,%u\n", node->call_line, node->inclusive, node->own,
               total > 0 ? 100 * node->inclusive / total : 0, scope->end_line);
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct tree_node *nodes;
    size_t n_nodes;
    int code = tree_walk(job, tree_total(job) * job->least / 100, &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    buf_printf(out, "id,parent,depth,kind,name,file,line,module,call_line,inclusive,exclusive,percent,end_line\n");
    for (size_t i = 0; i < n_nodes && (job->top == 0 || i < job->top); i++)
        put_csv_node(job, &nodes[i], tree_total(job), out);
    free(nodes);
    return 0;
}

const struct exporter export_tree_csv = {"tree", "csv", write_csv};

/* --- JSON --- */

/* The call tree as JSON: a list of nodes, parents first. */

static void put_json_node(const struct export_job *job, const struct tree_node *node, struct buf *out)
{
    const struct model *model = job->model;
    const struct scope *scope = &model->scopes[node->scope];
    buf_printf(out, "{\"id\": %u, \"parent\": %u, \"depth\": %u", node->scope, node->parent, node->depth);
    json_put_text_at(out, "kind",
                     scope->kind == SCOPE_LINE   ? "statement"
                     : scope->kind == SCOPE_LOOP ? "loop"
                                                 : "function");
    json_put_word_at(out, "inlined", scope->kind == SCOPE_INLINED);
    json_put_word_at(out, "variable", scope->role == ROLE_VARIABLE);
    json_put_text_at(out, "name", model_text(model, scope->name));
    json_put_text_at(out, "file", model_text(model, scope->file));
    json_put_word_at(out, "line", scope->line);
    json_put_word_at(out, "end_line", scope->end_line);
    json_put_text_at(out, "module", model_text(model, scope->module));
    json_put_word_at(out, "call_line", node->call_line);
    json_put_double_at(out, "inclusive", node->inclusive);
    json_put_double_at(out, "exclusive", node->own);
    buf_printf(out, "}");
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct tree_node *nodes;
    size_t n_nodes;
    int code = tree_walk(job, tree_total(job) * job->least / 100, &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"metric\": ");
    json_put_text(out, job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", tree_total(job));
    buf_printf(out, ",\n\"nodes\": [");
    for (size_t i = 0; i < n_nodes && (job->top == 0 || i < job->top); i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_json_node(job, &nodes[i], out);
    }
    buf_printf(out, "]}\n");
    free(nodes);
    return 0;
}

const struct exporter export_tree_json = {"tree", "json", write_json};
