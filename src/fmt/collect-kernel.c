/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the kernel that a thread's tree needs: the machine that reads the profile has another kernel, or the
 * same at other addresses. Ordinary code. */
#include <stdlib.h>

#include "fmt/collect-internal.h"

struct list {
    struct objects_function *functions; /* [n] */
    size_t n, capacity;
};

static bool add(struct list *list, const struct collect_context *context, uint64_t address)
{
    uint64_t start, end;
    const struct objects_function *last = list->n ? &list->functions[list->n - 1] : NULL;
    if (last && address >= last->start && address < last->end)
        return true;
    const char *name = context->kernel_function(address, &start, &end);
    if (!name)
        return true;
    if (!vec_reserve(&list->functions, &list->capacity, list->n + 1, sizeof *list->functions))
        return false;
    list->functions[list->n++] = (struct objects_function){start, end, (char *)(uintptr_t)name};
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct objects_function *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void make_unique(struct list *list)
{
    size_t n = 0;
    if (list->n)
        qsort(list->functions, list->n, sizeof *list->functions, compare);
    for (size_t i = 0; i < list->n; i++)
        if (n == 0 || list->functions[n - 1].start != list->functions[i].start)
            list->functions[n++] = list->functions[i];
    list->n = n;
}

bool thread_kernel_functions(const struct thread *thread, struct objects_function **functions, size_t *n_functions)
{
    struct list list = {0};
    const struct collect_context *context = thread->process->context;
    bool is_complete = true;
    for (size_t i = 0; context->kernel_function && thread->kernel_module && i < thread->tree.n_nodes; i++) {
        const struct tree_node *node = &thread->tree.nodes[i];
        if (node->module != thread->kernel_module)
            continue;
        /* callers are return addresses: their calls lie before */
        is_complete &= add(&list, context, node->ip) && add(&list, context, node->ip - 1);
    }
    make_unique(&list);
    *functions = list.functions;
    *n_functions = list.n;
    return is_complete;
}
