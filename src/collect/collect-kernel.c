/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that no file on the machine that reads a profile can name, as far as a thread's tree needs them: those
 * of the kernel, which is another one there or the same at other addresses, and those that the program generated.
 * Ordinary code. */
#include <stdlib.h>

#include "collect/collect-internal.h"

struct list {
    struct objects_function *functions; /* [n] */
    size_t n, capacity;
};

/* Who knows the names. */
struct finder {
    const struct collect_context *context;
    const char *(*find)(const struct collect_context *context, uint64_t address, uint64_t *start, uint64_t *end);
};

static const char *find_kernel(const struct collect_context *context, uint64_t address, uint64_t *start, uint64_t *end)
{
    return context->kernel_function ? context->kernel_function(address, start, end) : NULL;
}

static const char *find_jit(const struct collect_context *context, uint64_t address, uint64_t *start, uint64_t *end)
{
    return context->jit_function ? context->jit_function(context->jit, address, start, end) : NULL;
}

static bool add(struct list *list, const struct finder *finder, uint64_t address)
{
    uint64_t start, end;
    const struct objects_function *last = list->n ? &list->functions[list->n - 1] : NULL;
    if (last && address >= last->start && address < last->end)
        return true;
    const char *name = finder->find(finder->context, address, &start, &end);
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

static bool list_functions(const struct thread *thread, uint16_t module, const struct finder *finder,
                           struct objects_function **functions, size_t *n_functions)
{
    struct list list = {0};
    bool is_complete = true;
    for (size_t i = 0; module && i < thread->tree.n_nodes; i++) {
        const struct tree_node *node = &thread->tree.nodes[i];
        if (node->module != module)
            continue;
        /* callers are return addresses: their calls lie before */
        is_complete &= add(&list, finder, node->ip) && add(&list, finder, node->ip - 1);
    }
    make_unique(&list);
    *functions = list.functions;
    *n_functions = list.n;
    return is_complete;
}

bool thread_kernel_functions(const struct thread *thread, struct objects_function **functions, size_t *n_functions)
{
    const struct finder finder = {thread->process->context, find_kernel};
    return list_functions(thread, thread->kernel_module, &finder, functions, n_functions);
}

bool thread_jit_functions(const struct thread *thread, struct objects_function **functions, size_t *n_functions)
{
    const struct finder finder = {thread->process->context, find_jit};
    return list_functions(thread, thread->jit_module, &finder, functions, n_functions);
}
