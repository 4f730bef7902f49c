/* SPDX-License-Identifier: BSD-3-Clause */
/* The call tree as JSON: a list of nodes, parents first. */
#include <stdlib.h>

#include "export/exporter-list.h"
#include "export/tree-walk.h"
#include "fmt/json.h"

static void put_node(const struct export_job *job, const struct tree_node *node, struct buf *out)
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
    int code = tree_walk(job, 0, &nodes, &n_nodes, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"metric\": ");
    json_put_text(out, job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", tree_total(job));
    buf_printf(out, ",\n\"nodes\": [");
    for (size_t i = 0; i < n_nodes && (job->top == 0 || i < job->top); i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_node(job, &nodes[i], out);
    }
    buf_printf(out, "]}\n");
    free(nodes);
    return 0;
}

const struct exporter export_tree_json = {"tree", "json", write_json};
