/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of one thread: where each is declared in the data-centric tree, and its row of the side file.
 * Ordinary code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect-internal.h"

static uint32_t data_root(struct thread *thread)
{
    if (thread->data_root == TREE_NONE)
        thread->data_root = thread_placeholder(thread, TREE_ROOT, PLACEHOLDER_ROOT, HPCRUN_NODE_ROOT);
    return thread->data_root;
}

/* The variable that the node declares, added when it is the first; TREE_NONE when out of memory. */
static uint32_t variable_at(struct thread *thread, uint32_t node, enum var_kind kind)
{
    if (node == TREE_NONE)
        return TREE_NONE;
    uint32_t known = thread->tree.nodes[node].variable;
    if (known)
        return known - 1;
    if (!vec_reserve(&thread->variables, &thread->cap_variables, thread->n_variables + 1, sizeof *thread->variables)) {
        thread->tree.failed = true;
        return TREE_NONE;
    }
    thread->variables[thread->n_variables] = (struct variable){.row = {.node = node, .kind = kind}};
    thread->tree.nodes[node].variable = (uint32_t)++thread->n_variables;
    return (uint32_t)thread->n_variables - 1;
}

static void name_variable(struct thread *thread, uint32_t variable, const char *name)
{
    if (variable == TREE_NONE || !name || thread->variables[variable].row.name)
        return;
    thread->variables[variable].row.name = strdup(name);
    if (!thread->variables[variable].row.name)
        thread->tree.failed = true;
}

static struct declaration declare_reason(struct thread *thread, unsigned placeholder, enum var_kind kind)
{
    uint32_t unknown =
        thread_placeholder(thread, data_root(thread), PLACEHOLDER_UNKNOWN, HPCRUN_NODE_UNKNOWN_ATTRIBUTE);
    uint32_t node = thread_placeholder(thread, unknown, placeholder, HPCRUN_NODE_UNKNOWN_ATTRIBUTE);
    return (struct declaration){.base = node, .variable = variable_at(thread, node, kind)};
}

static struct declaration declare_lost(struct thread *thread)
{
    return declare_reason(thread, PLACEHOLDER_REASON + UNKNOWN_NO_BLOCK, VAR_UNKNOWN);
}

/* The sizes of the blocks that have no record. */
static void note_small(struct thread *thread, uint32_t variable, const struct arena_site *site)
{
    if (variable == TREE_NONE)
        return;
    struct objects_variable *row = &thread->variables[variable].row;
    uint32_t least = __atomic_load_n((const uint32_t *)&site->min_bytes, __ATOMIC_RELAXED);
    uint32_t most = __atomic_load_n((const uint32_t *)&site->max_bytes, __ATOMIC_RELAXED);
    if (!row->max_small_bytes || least < row->min_small_bytes)
        row->min_small_bytes = least;
    if (most > row->max_small_bytes)
        row->max_small_bytes = most;
    if (most > row->max_block_bytes)
        row->max_block_bytes = most;
}

static struct declaration declare_heap(struct thread *thread, uint64_t var)
{
    if (!path_of(thread->process->view, var_key_b(var), ARENA_ALLOC_NODES, &thread->declared) || !thread->declared.n)
        return declare_lost(thread);
    uint32_t dynamic = thread_placeholder(thread, data_root(thread), PLACEHOLDER_DYNAMIC, 0);
    uint32_t node = path_insert(thread, &thread->declared, dynamic, HPCRUN_NODE_ALLOCATION);
    return (struct declaration){.base = thread_placeholder(thread, node, PLACEHOLDER_ACCESS, HPCRUN_NODE_MEMACCESS),
                                .variable = variable_at(thread, node, var_key_kind(var))};
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The size of a static variable is written once for a process, so that sums over threads are right. */
static void size_once(struct thread *thread, uint32_t node, uint64_t var, uint64_t size_bytes)
{
    struct process *process = thread->process;
    if (process->n_sized && bsearch(&var, process->sized, process->n_sized, sizeof var, compare_keys))
        return;
    if (!vec_reserve(&process->sized, &process->cap_sized, process->n_sized + 1, sizeof var)) {
        thread->tree.failed = true;
        return;
    }
    size_t at = process->n_sized++;
    for (; at > 0 && process->sized[at - 1] > var; at--)
        process->sized[at] = process->sized[at - 1];
    process->sized[at] = var;
    tree_add(&thread->tree, node, process->size_column, size_bytes);
}

static struct declaration declare_static(struct thread *thread, uint64_t var)
{
    bool is_tls = var_key_kind(var) == VAR_TLS;
    const struct collect_context *context = thread->process->context;
    const struct view_module *module = view_module_with_id(thread->process->view, var_key_a(var));
    uint64_t vaddr = 0, size_bytes = 0;
    const char *name = NULL;
    if (module && context->symbol)
        name = context->symbol(context->ctx, module->table_id, var_key_b(var), is_tls, &vaddr, &size_bytes);
    if (!module || (!name && !is_tls))
        return declare_lost(thread);
    uint32_t group = thread_placeholder(thread, data_root(thread), is_tls ? PLACEHOLDER_TLS : PLACEHOLDER_STATIC, 0);
    uint32_t node = tree_child(&thread->tree, group, thread_module_id(thread, module->path), (name ? vaddr : 0) + 1,
                               HPCRUN_NODE_GLOBAL_VARIABLE);
    uint32_t variable = variable_at(thread, node, var_key_kind(var));
    name_variable(thread, variable, name);
    if (name && variable != TREE_NONE) {
        struct objects_variable *row = &thread->variables[variable].row;
        row->n_blocks = 1;
        row->bytes = row->max_block_bytes = size_bytes;
        size_once(thread, node, var, size_bytes);
    }
    return (struct declaration){.base = node, .variable = variable};
}

/* Address that stands for the function of a frame, such that the address - 1 lies inside: the function's start + 1, or
 * else the return address; an interrupted pc has no children and is moved by one. */
static uint64_t frame_address(struct thread *thread, const struct arena_node *frame)
{
    const struct collect_context *context = thread->process->context;
    const struct view_module *module = view_module_at(thread->process->view, frame->module);
    uint64_t start, address = frame->ip + (frame->child ? 0 : 1);
    if (module && context->function &&
        context->function(context->ctx, module->table_id, address - 1 - module->bias, &start))
        return start + module->bias + 1;
    return address;
}

static struct declaration declare_stack(struct thread *thread, uint64_t var)
{
    struct arena_node frame;
    const void *record = view_record(thread->process->view, var_key_b(var), ARENA_NODES, sizeof frame);
    if (!record)
        return declare_lost(thread);
    memcpy(&frame, record, sizeof frame);
    uint16_t module;
    uint64_t ip;
    thread_place(thread, frame.module, frame_address(thread, &frame), &module, &ip);
    uint32_t group = thread_placeholder(thread, data_root(thread), PLACEHOLDER_STACK, 0);
    uint32_t node = tree_child(&thread->tree, group, module, ip, 0);
    return (struct declaration){.base = node, .variable = variable_at(thread, node, VAR_STACK)};
}

static struct declaration declare_other_stack(struct thread *thread, uint64_t var)
{
    char name[64];
    const struct arena_thread *other = view_record(thread->process->view, var_key_b(var), ARENA_THREADS, sizeof *other);
    if (!other)
        return declare_lost(thread);
    uint32_t group = thread_placeholder(thread, data_root(thread), PLACEHOLDER_STACK, 0);
    uint32_t node = tree_child(&thread->tree, group, 0, (uint64_t)other->id + 1, 0);
    uint32_t variable = variable_at(thread, node, VAR_STACK_OTHER);
    (void)snprintf(name, sizeof name, "stack of thread %u", other->id);
    name_variable(thread, variable, name);
    return (struct declaration){.base = node, .variable = variable};
}

static struct declaration declare_file(struct thread *thread, uint64_t var)
{
    const char *path = view_string(thread->process->view, var_key_b(var));
    if (!path || !*path)
        return declare_lost(thread);
    uint32_t group = thread_placeholder(thread, data_root(thread), PLACEHOLDER_FILE, 0);
    uint32_t node = tree_child(&thread->tree, group, thread_module_id(thread, path), 1, HPCRUN_NODE_GLOBAL_VARIABLE);
    uint32_t variable = variable_at(thread, node, VAR_FILE);
    name_variable(thread, variable, path);
    return (struct declaration){.base = node, .variable = variable};
}

static struct declaration declare_none(struct thread *thread, enum hit_class class)
{
    if (class == HIT_COMPUTE)
        return declare_reason(thread, PLACEHOLDER_NO_COMPUTE, VAR_NONE);
    if (class == HIT_WAITING)
        return declare_reason(thread, PLACEHOLDER_NO_WAITING, VAR_NONE);
    if (class == HIT_SYSCALL)
        return declare_reason(thread, PLACEHOLDER_NO_SYSCALL, VAR_NONE);
    return declare_reason(thread, PLACEHOLDER_NO_LOST, VAR_NONE);
}

static struct declaration declare(struct thread *thread, uint64_t var, enum hit_class class)
{
    switch (var_key_kind(var)) {
    case VAR_NONE:
        return declare_none(thread, class);
    case VAR_HEAP:
    case VAR_MMAP:
        return declare_heap(thread, var);
    case VAR_STATIC:
    case VAR_TLS:
        return declare_static(thread, var);
    case VAR_STACK:
        return declare_stack(thread, var);
    case VAR_STACK_OTHER:
        return declare_other_stack(thread, var);
    case VAR_FILE:
        return declare_file(thread, var);
    case VAR_UNKNOWN:
        if (var_key_b(var) < UNKNOWN_REASONS)
            return declare_reason(thread, PLACEHOLDER_REASON + var_key_b(var), VAR_UNKNOWN);
        return declare_lost(thread);
    default:
        return declare_lost(thread);
    }
}

static struct declaration *find_slot(struct declaration *slots, size_t n_slots, uint64_t key)
{
    size_t slot = (size_t)(key * 0x9e3779b97f4a7c15u >> 24) & (n_slots - 1);
    while (slots[slot].base != TREE_NONE && slots[slot].key != key)
        slot = (slot + 1) & (n_slots - 1);
    return &slots[slot];
}

static bool grow_declarations(struct thread *thread)
{
    if (thread->n_declarations * 2 < thread->n_slots)
        return true;
    size_t n_slots = thread->n_slots ? thread->n_slots * 2 : 256;
    struct declaration *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < n_slots; i++)
        slots[i].base = TREE_NONE;
    for (size_t i = 0; i < thread->n_slots; i++)
        if (thread->declarations[i].base != TREE_NONE)
            *find_slot(slots, n_slots, thread->declarations[i].key) = thread->declarations[i];
    free(thread->declarations);
    thread->declarations = slots;
    thread->n_slots = n_slots;
    return true;
}

/* Keys of one declaration: the offset in a frame and, where there is no variable, the class make the difference. */
static uint64_t declaration_key(uint64_t var, enum hit_class class)
{
    if (var_key_kind(var) == VAR_STACK)
        return var_key(VAR_STACK, 0, var_key_b(var));
    if (var_key_kind(var) == VAR_NONE)
        return var_key(VAR_NONE, 0, (uint32_t) class);
    return var;
}

const struct declaration *thread_declare(struct thread *thread, uint64_t var, enum hit_class class)
{
    uint64_t key = declaration_key(var, class), of = key;
    const struct arena_site *site = NULL;
    if (!grow_declarations(thread)) {
        thread->tree.failed = true;
        return NULL;
    }
    struct declaration *slot = find_slot(thread->declarations, thread->n_slots, key);
    if (slot->base != TREE_NONE)
        return slot;
    if (var_key_kind(key) == VAR_SMALL)
        of = view_heap_of_site(thread->process->view, key, &site);
    struct declaration made = declare(thread, of, class);
    if (made.base == TREE_NONE)
        return NULL;
    if (site)
        note_small(thread, made.variable, site);
    made.key = key;
    *slot = made;
    thread->n_declarations++;
    return slot;
}
