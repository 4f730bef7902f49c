/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking the tree without recursion: call chains can be very deep. */
#include "export/tree-walk.h"

#include <stdlib.h>

struct walk {
    const struct export_job *job;
    double least;
    struct tree_node *stack; /* [n_stack] still to be visited, next one last */
    size_t n_stack, cap_stack;
    struct tree_node *nodes; /* [n_nodes] result */
    size_t n_nodes, cap_nodes;
};

double tree_total(const struct export_job *job)
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
static bool push_children(struct walk *walk, uint32_t scope, const struct tree_node *above, uint32_t call_file,
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

/* The scope's statements, those in its loops included. Loops nest only as deeply as in the source. */
static double own_value(const struct walk *walk, uint32_t scope)
{
    const struct model *model = walk->job->model;
    double own = model->own[scope * model->n_metrics + walk->job->metric];
    for (uint32_t i = model->scopes[scope].first_child; i; i = model->scopes[i].next_sibling)
        if (model->scopes[i].kind == SCOPE_LINE || model->scopes[i].kind == SCOPE_LOOP)
            own += own_value(walk, i);
    return own;
}

static bool visit(struct walk *walk, const struct tree_node *node)
{
    size_t first = walk->n_stack;
    if (!push_children(walk, node->scope, node, 0, 0))
        return false;
    if (walk->n_stack > first)
        qsort(&walk->stack[first], walk->n_stack - first, sizeof *walk->stack, compare_nodes);
    return true;
}

int tree_walk(const struct export_job *job, double least, struct tree_node **nodes, size_t *n_nodes, struct error *err)
{
    struct walk walk = {.job = job, .least = least};
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
