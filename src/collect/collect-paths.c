/* SPDX-License-Identifier: BSD-3-Clause */
/* From nodes of the arena to paths of a profile's tree: call paths, load-map ids, placeholders. Ordinary code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect-internal.h"

#define PATH_FRAMES_MAX 16384 /* deeper than any unwinder goes */

/* In the order of enum placeholder. */
static const char *const placeholder_names[PLACEHOLDER_MAX] = {
    [PLACEHOLDER_ROOT] = "DATACENTRIC",
    [PLACEHOLDER_DYNAMIC] = "DATACENTRIC_Dynamic",
    [PLACEHOLDER_STATIC] = "DATACENTRIC_Static",
    [PLACEHOLDER_UNKNOWN] = "DATACENTRIC_Unknown",
    [PLACEHOLDER_ACCESS] = "DATACENTRIC_MemoryAccess",
    [PLACEHOLDER_STACK] = "DATACENTRIC_Stack",
    [PLACEHOLDER_TLS] = "DATACENTRIC_ThreadLocal",
    [PLACEHOLDER_FILE] = "DATACENTRIC_FileMapping",
    [PLACEHOLDER_REASON + UNKNOWN_NO_BLOCK] = "DATACENTRIC_Unknown_NoBlock",
    [PLACEHOLDER_REASON + UNKNOWN_FREED] = "DATACENTRIC_Unknown_Freed",
    [PLACEHOLDER_REASON + UNKNOWN_SMALL_BLOCK] = "DATACENTRIC_Unknown_SmallBlock",
    [PLACEHOLDER_REASON + UNKNOWN_OWN] = "DATACENTRIC_Unknown_Profiler",
    [PLACEHOLDER_REASON + UNKNOWN_KERNEL] = "DATACENTRIC_Unknown_Kernel",
    [PLACEHOLDER_REASON + UNKNOWN_NULL] = "DATACENTRIC_Unknown_Null",
    [PLACEHOLDER_REASON + UNKNOWN_VDSO] = "DATACENTRIC_Unknown_Vdso",
    [PLACEHOLDER_REASON + UNKNOWN_UNLOGGED] = "DATACENTRIC_Unknown_HeapWithoutAllocationLog",
    [PLACEHOLDER_NO_COMPUTE] = "DATACENTRIC_No_Compute",
    [PLACEHOLDER_NO_LOST] = "DATACENTRIC_No_AddressLost",
    [PLACEHOLDER_NO_SYSCALL] = "DATACENTRIC_No_SystemCall",
    [PLACEHOLDER_NO_WAITING] = "DATACENTRIC_No_Waiting",
};

const char *placeholder_name(unsigned placeholder)
{
    return placeholder < PLACEHOLDER_MAX ? placeholder_names[placeholder] : NULL;
}

bool path_of(const struct view *view, uint32_t ref, enum arena_kind kind, struct path *path)
{
    struct arena_node node;
    path->n = 0;
    path->is_partial = false;
    for (bool is_first = true;; is_first = false) {
        const void *record = view_record(view, ref, kind, sizeof node);
        if (!record) {
            /* The way up is broken: what was found is still a path, but not a whole one. */
            path->is_partial = true;
            return !is_first;
        }
        memcpy(&node, record, sizeof node);
        if (node.flags & NODE_ROOT)
            return true;
        if (node.flags & NODE_PARTIAL) {
            path->is_partial = true;
        } else {
            if (!vec_reserve(&path->frames, &path->capacity, path->n + 1, sizeof *path->frames))
                return false;
            path->frames[path->n++] = (struct path_frame){ref, node.module, node.ip};
        }
        /* A parent is older than its child: this ends, whatever the memory holds. */
        if (node.parent >= ref || path->n >= PATH_FRAMES_MAX)
            node.parent = 0;
        ref = node.parent;
    }
}

uint16_t thread_module_id(struct thread *thread, const char *path)
{
    if (!path)
        return 0;
    int64_t index = strtab_intern(&thread->modules, path);
    if (index < 0 || index >= UINT16_MAX - 1) {
        thread->tree.failed = true;
        return 0;
    }
    return (uint16_t)(index + 1);
}

/* Each start of each machine has its kernel's functions elsewhere: "[kernel]" becomes "[kernel:<which>]". */
static uint16_t kernel_module_id(struct thread *thread, const char *path)
{
    char text[80];
    const char *kernel = thread->process->context->kernel;
    (void)snprintf(text, sizeof text, "[kernel:%.64s]", kernel ? kernel : "");
    thread->kernel_module = thread_module_id(thread, kernel ? text : path);
    return thread->kernel_module;
}

/* Code outside all modules that the program has described; each process has its own at these addresses. */
static uint16_t jit_module_id(struct thread *thread, uint64_t address)
{
    const struct collect_context *context = thread->process->context;
    const struct arena_header *header = thread->process->view->header;
    uint64_t start, end;
    char text[96];
    if (!context->jit_function || (!context->jit_function(context->jit, address, &start, &end) &&
                                   !context->jit_function(context->jit, address - 1, &start, &end)))
        return 0;
    (void)snprintf(text, sizeof text, "[jit:%08x-%u-%llx]", context->host_id, header->pid,
                   (unsigned long long)header->start_ns);
    if (!thread->jit_module)
        thread->jit_module = thread_module_id(thread, text);
    return thread->jit_module;
}

void thread_place(struct thread *thread, uint32_t module_ref, uint64_t address, uint16_t *module, uint64_t *ip)
{
    if (!module_ref || thread->placed_ref != module_ref) {
        const struct view_module *found = view_module_at(thread->process->view, module_ref);
        bool is_kernel = found && found->path && strcmp(found->path, "[kernel]") == 0;
        thread->placed_module = is_kernel ? kernel_module_id(thread, found->path)
                                : found   ? thread_module_id(thread, found->path)
                                          : jit_module_id(thread, address);
        thread->placed_bias = found ? found->bias : 0;
        thread->placed_ref = module_ref;
        thread->is_placed_region = found && found->path &&
                                   (strcmp(found->path, REGION_MODULE) == 0 || strcmp(found->path, PYTHON_MODULE) == 0);
    }
    *module = thread->placed_module;
    *ip = thread->is_placed_region ? thread_place_region(thread, address) : address - thread->placed_bias;
}

static struct known_path *known_slot(struct thread *thread, uint32_t base, uint32_t ref)
{
    uint64_t hash = ((uint64_t)base << 32 | ref) * 0x9e3779b97f4a7c15u;
    return &thread->known[hash >> 48 & (KNOWN_PATHS - 1)];
}

/* The number of frames, from the innermost on, that are not known to be in the tree below base; *node: the last one
 * that is known. */
static size_t count_unknown(struct thread *thread, const struct path *path, uint32_t base, uint32_t *node)
{
    *node = base;
    if (!thread->known)
        thread->known = calloc(KNOWN_PATHS, sizeof *thread->known);
    if (!thread->known)
        return path->n;
    for (size_t i = 0; i < path->n; i++) {
        const struct known_path *known = known_slot(thread, base, path->frames[i].ref);
        if (known->ref == path->frames[i].ref && known->base == base) {
            *node = known->node;
            return i;
        }
    }
    return path->n;
}

uint32_t path_insert(struct thread *thread, const struct path *path, uint32_t base, uint32_t last_type)
{
    uint32_t node;
    if (base == TREE_NONE)
        return TREE_NONE;
    for (size_t i = count_unknown(thread, path, base, &node); i-- > 0 && node != TREE_NONE;) {
        uint16_t module;
        uint64_t ip;
        const struct path_frame *frame = &path->frames[i];
        thread_place(thread, frame->module, frame->ip, &module, &ip);
        node = tree_child(&thread->tree, node, module, ip, 0);
        if (thread->known && node != TREE_NONE)
            *known_slot(thread, base, frame->ref) = (struct known_path){base, frame->ref, node};
    }
    if (node != TREE_NONE && path->n)
        thread->tree.nodes[node].type |= (uint16_t)last_type;
    return node;
}

uint32_t thread_placeholder(struct thread *thread, uint32_t parent, unsigned placeholder, uint32_t type)
{
    const struct arena_header *header = thread->process->view->header;
    uint64_t address = header->placeholders[placeholder], ip;
    uint16_t module;
    /* Without an address (the process died before it wrote them) a number that no code has keeps them apart. */
    thread_place(thread, address ? header->libhpcrun_module : 0, address ? address : 16 + placeholder, &module, &ip);
    return tree_child(&thread->tree, parent, module, ip + 1, type);
}
