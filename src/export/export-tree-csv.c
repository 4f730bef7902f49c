/* SPDX-License-Identifier: BSD-3-Clause */
/* The call tree as comma-separated values (RFC 4180): one line a node, parents first. */
#include <stdlib.h>

#include "export/csv-text.h"
#include "export/exporter-list.h"
#include "export/tree-walk.h"

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

static void put_node(const struct export_job *job, const struct tree_node *node, double total, struct buf *out)
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
    int code = tree_walk(job, 0, &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    buf_printf(out, "id,parent,depth,kind,name,file,line,module,call_line,inclusive,exclusive,percent,end_line\n");
    for (size_t i = 0; i < n_nodes && (job->top == 0 || i < job->top); i++)
        put_node(job, &nodes[i], tree_total(job), out);
    free(nodes);
    return 0;
}

const struct exporter export_tree_csv = {"tree", "csv", write_csv};
