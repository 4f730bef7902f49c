/* SPDX-License-Identifier: BSD-3-Clause */
/* The call tree for a terminal: percent with and without what is called, indented names. */
#include <stdlib.h>
#include <string.h>

#include "export/exporter-list.h"
#include "export/text-cells.h"
#include "export/tree-walk.h"

#define INDENT_MAX 60

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
    const char *file = text_base(model_text(model, scope->file));
    if (scope->kind == SCOPE_LINE && scope->line)
        buf_printf(&text, "%s:%u", file, scope->line);
    else if (scope->kind == SCOPE_LOOP)
        put_loop(&text, file, scope);
    else
        buf_printf(&text, "%s%s", model_text(model, scope->name), scope->kind == SCOPE_INLINED ? " [inlined]" : "");
    if (scope->kind != SCOPE_LINE && node->call_line)
        buf_printf(&text, "  from %s:%u", text_base(model_text(model, node->call_file)), node->call_line);
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
    double total = tree_total(job), shown = total * job->threshold / 100;
    int code = tree_walk(job, shown, &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    n = job->top && job->top < n_nodes ? job->top : n_nodes;
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%s: %.15g", job->model->metrics[job->metric].name, total);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "   (nodes below %.2g %% are left out)\n   with     without   what is called\n", job->threshold);
    for (size_t i = 0; i < n; i++)
        if (job->model->scopes[nodes[i].scope].kind != SCOPE_LINE || job->model->scopes[nodes[i].scope].line)
            put_node(job, &nodes[i], total > 0 ? total : 1, out);
    if (n < n_nodes)
        buf_printf(out, "%zu more nodes (--top 0 shows all)\n", n_nodes - n);
    free(nodes);
    return 0;
}

const struct exporter export_tree_text = {"tree", "text", write_text};
