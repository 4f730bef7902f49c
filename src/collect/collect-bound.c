/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a bounded size: each thread gets a share of what its process may write, by what it recorded, and a tree that
 * is too large for it keeps the nodes that cost most; values of the others go to their callers, so that no sum changes.
 * Everything left out is counted. Ordinary code. */
#include <stdlib.h>

#include "collect/collect-internal.h"
#include "fmt/trace.h"

#define LOG_BYTES ((uint64_t)48 << 10)  /* at most: messages are bounded, counters are few */
#define THREAD_BYTES ((uint64_t)16 << 10) /* what the files of a thread take that recorded next to nothing */
#define NODES_MIN 16u

/* A node and what it and all below it cost, as a part of all. */
struct cost {
    uint32_t node;
    double part;
};

/* Published bytes of the thread, which its files grow with. */
static uint64_t recorded_bytes(const struct view *view, uint32_t thread_ref)
{
    uint64_t sum = THREAD_BYTES;
    uint32_t low = 0, high = view->n_sorted;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (view->sorted[middle].thread < thread_ref)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < view->n_sorted && view->sorted[low].thread == thread_ref; low++)
        sum += view->sorted[low].used_bytes;
    return sum;
}

void process_bound(struct process *process)
{
    uint64_t max_bytes = process->context->max_bytes;
    process->n_written_threads = process->n_threads;
    if (!max_bytes)
        return;
    process->rest_bytes = max_bytes > LOG_BYTES ? max_bytes - LOG_BYTES : 0;
    size_t n_fit = (size_t)(process->rest_bytes / THREAD_BYTES);
    if (process->n_written_threads > n_fit)
        process->n_written_threads = n_fit ? n_fit : 1;
    process->left_out.n_threads = process->n_threads - process->n_written_threads;
    for (size_t i = 0; i < process->n_written_threads; i++)
        process->rest_recorded_bytes += recorded_bytes(process->view, process->threads[i]);
}

uint64_t process_share(struct process *process, uint32_t thread_ref)
{
    if (!process->context->max_bytes)
        return UINT64_MAX;
    uint64_t recorded = recorded_bytes(process->view, thread_ref);
    if (!process->rest_recorded_bytes)
        return process->rest_bytes;
    double share = (double)process->rest_bytes * ((double)recorded / (double)process->rest_recorded_bytes);
    process->rest_recorded_bytes -= recorded < process->rest_recorded_bytes ? recorded : process->rest_recorded_bytes;
    return share < (double)process->rest_bytes ? (uint64_t)share : process->rest_bytes;
}

void process_spend(struct process *process, uint64_t n_bytes)
{
    process->rest_bytes -= n_bytes < process->rest_bytes ? n_bytes : process->rest_bytes;
}

/* The part of all values of a node that is largest in any column, children included; parents precede children. */
static bool add_up(const struct tree *tree, struct cost *costs)
{
    double *totals = calloc(tree->n_metrics + 1, sizeof *totals);
    if (!totals)
        return false;
    for (size_t i = 0; i < tree->n_rows * tree->n_metrics; i++)
        totals[i % tree->n_metrics] += (double)tree->values[i];
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        costs[i] = (struct cost){.node = i};
    for (uint32_t i = (uint32_t)tree->n_nodes; i-- > 0;) {
        const uint64_t *values = tree_values(tree, i);
        for (size_t m = 0; values && m < tree->n_metrics; m++)
            costs[i].part += values[m] ? (double)values[m] / totals[m] : 0;
        if (i != TREE_ROOT)
            costs[tree->nodes[i].parent].part += costs[i].part;
    }
    free(totals);
    return true;
}

static int compare_costs(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;
    if (x->part != y->part)
        return x->part > y->part ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The new index of each node: its own when it stays, else that of the caller that takes its values. */
static uint32_t *choose(const struct thread *thread, size_t n_keep)
{
    const struct tree *tree = &thread->tree;
    struct cost *costs = malloc(tree->n_nodes * sizeof *costs);
    uint32_t *to = calloc(tree->n_nodes, sizeof *to);
    if (!costs || !to || !add_up(tree, costs)) {
        free(costs);
        free(to);
        return NULL;
    }
    /* Without these the values of one tree would fall into the other. */
    costs[TREE_ROOT].part = costs[TREE_PARTIAL].part = 1e300;
    if (thread->data_root != TREE_NONE)
        costs[thread->data_root].part = 1e300;
    qsort(costs, tree->n_nodes, sizeof *costs, compare_costs);
    for (size_t i = 0; i < n_keep; i++)
        to[costs[i].node] = 1;
    free(costs);
    uint32_t n = 0;
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        to[i] = to[i] ? n++ : to[tree->nodes[i].parent];
    return to;
}

static bool fold_tree(struct tree *tree, const uint32_t *to)
{
    struct tree folded = {.n_metrics = tree->n_metrics, .n_slots = tree->n_slots, .slots = tree->slots};
    tree->slots = NULL;
    bool has_room = true;
    for (uint32_t i = 0; i < tree->n_nodes && has_room; i++) {
        bool is_kept = to[i] == folded.n_nodes;
        const struct tree_node *from = &tree->nodes[i];
        if (is_kept) {
            has_room = vec_reserve(&folded.nodes, &folded.cap_nodes, folded.n_nodes + 1, sizeof *folded.nodes);
            if (!has_room)
                break;
            struct tree_node *node = &folded.nodes[folded.n_nodes++];
            *node = *from;
            node->parent = i == TREE_ROOT ? 0 : to[from->parent];
            node->row = 0;
            node->has_child = false;
            folded.nodes[node->parent].has_child |= i != TREE_ROOT;
        } else {
            folded.nodes[to[i]].type |= from->type & (HPCRUN_NODE_LEAF | HPCRUN_NODE_MEMACCESS);
            folded.nodes[to[i]].is_retained |= from->is_retained;
        }
        const uint64_t *values = tree_values(tree, i);
        for (size_t m = 0; values && m < tree->n_metrics; m++)
            tree_add(&folded, to[i], (int)m, values[m]);
    }
    folded.failed = tree->failed || folded.failed || !has_room;
    tree_fini(tree);
    *tree = folded;
    return !tree->failed;
}

/* A variable whose node is gone is one of its group, whose sums still have it. */
static void fold_variables(struct thread *thread, const uint32_t *to)
{
    size_t n = 0;
    for (size_t i = 0; i < thread->n_variables; i++) {
        struct variable *variable = &thread->variables[i];
        uint32_t node = to[variable->row.node];
        if (thread->tree.nodes[node].variable != i + 1) {
            variable_fini(variable);
            continue;
        }
        variable->row.node = node;
        thread->tree.nodes[node].variable = (uint32_t)n + 1;
        thread->variables[n++] = *variable;
    }
    thread->process->left_out.n_variables += thread->n_variables - n;
    thread->n_variables = n;
}

int thread_bound_tree(struct thread *thread, struct trace_file *trace, size_t max_nodes, struct error *err)
{
    size_t n_nodes = thread->tree.n_nodes, n_keep = max_nodes > NODES_MIN ? max_nodes : NODES_MIN;
    if (n_nodes <= n_keep)
        return 0;
    uint32_t *to = choose(thread, n_keep);
    if (!to || !fold_tree(&thread->tree, to)) {
        free(to);
        return error_set(err, ERR_MEMORY, "Out of memory while the profile of a thread was made smaller.");
    }
    fold_variables(thread, to);
    if (thread->data_root != TREE_NONE)
        thread->data_root = to[thread->data_root];
    for (size_t i = 0; i < trace->n_records; i++)
        trace->records[i].node = to[trace->records[i].node];
    thread->process->left_out.n_nodes += n_nodes - n_keep;
    free(to);
    return 0;
}

void thread_bound_trace(struct thread *thread, struct trace_file *trace, size_t max_records)
{
    if (trace->n_records <= max_records)
        return;
    thread->process->left_out.n_trace_records += trace->n_records - max_records;
    trace->n_records = max_records;
    if (max_records)
        thread->trace_max_ns = trace->records[max_records - 1].time;
}

static uint64_t n_described(const struct objects_variable *variable)
{
    uint64_t n = variable->n_blocks ? 1 : 0;
    for (size_t i = 0; i < variable->n_samples; i++)
        n += variable->samples[i].count;
    return n;
}

static int compare_described(const void *a, const void *b)
{
    uint64_t x = n_described(a), y = n_described(b);
    return x > y ? -1 : x < y;
}

bool process_bound_side(struct process *process, struct objects_file *file, uint64_t *n_details)
{
    if (!file->n_variables)
        return false;
    if (!*n_details) {
        /* First the lists, whose sums stay. */
        for (size_t i = 0; i < file->n_variables; i++) {
            file->variables[i].n_cpus = file->variables[i].n_stack_offsets = file->variables[i].n_latencies = 0;
            file->variables[i].n_accesses = 0;
        }
        *n_details = file->n_variables;
        process->left_out.n_lists += file->n_variables;
        return true;
    }
    qsort(file->variables, file->n_variables, sizeof *file->variables, compare_described);
    size_t n_keep = file->n_variables / 2;
    process->left_out.n_variables += file->n_variables - n_keep;
    file->n_variables = n_keep;
    return true;
}
