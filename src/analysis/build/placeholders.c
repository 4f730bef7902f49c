/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognises placeholders, and functions of allocators: see placeholders.h. */
#include "analysis/build/placeholders.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

static const struct {
    const char *function;
    enum scope_role role;
} by_name[] = {
    {"DATACENTRIC", ROLE_DATACENTRIC},         {"DATACENTRIC_Dynamic", ROLE_HEAP},
    {"DATACENTRIC_Static", ROLE_STATIC},       {"DATACENTRIC_Unknown", ROLE_UNKNOWN},
    {"DATACENTRIC_MemoryAccess", ROLE_ACCESS}, {"DATACENTRIC_Stack", ROLE_STACK},
    {"DATACENTRIC_ThreadLocal", ROLE_TLS},     {"DATACENTRIC_FileMapping", ROLE_FILE},
};

static const struct {
    const char *title;
    int code;
} shown[ROLE_COUNT] = {
    [ROLE_PROGRAM] = {"<program root>", 1},
    [ROLE_THREAD] = {"<thread root>", 1},
    [ROLE_PARTIAL] = {"<partial call paths>", 1},
    [ROLE_IDLE] = {"<no activity>", 1},
    [ROLE_DATACENTRIC] = {"<datacentric>", 2},
    [ROLE_HEAP] = {"<heap allocation>", 1},
    [ROLE_STATIC] = {"<static variable>", 1},
    [ROLE_TLS] = {"<thread-local variable>", 1},
    [ROLE_STACK] = {"<stack variable>", 1},
    [ROLE_FILE] = {"<file mapping>", 1},
    [ROLE_UNKNOWN] = {"<unknown attribute>", 1},
    [ROLE_ACCESS] = {"<memory access call-path>", 1},
    [ROLE_REGION] = {"<region>", 1},
    [ROLE_PROFILER] = {"<profiler>", 1},
};

const char *placeholders_title(enum scope_role role)
{
    return role < ROLE_COUNT ? shown[role].title : NULL;
}

int placeholders_code(enum scope_role role)
{
    return role < ROLE_COUNT ? shown[role].code : 0;
}

/* The role of a placeholder by its name; ROLE_NONE when the name is not one of ours. */
static enum scope_role role_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
        if (strcmp(by_name[i].function, name) == 0)
            return by_name[i].role;
    return strncmp(name, "DATACENTRIC_", 12) == 0 ? ROLE_REASON : ROLE_NONE;
}

/* The role of a placeholder of a version 4 file, which names them by eight characters in the address. */
static enum scope_role role_by_text(uint64_t ip)
{
    char text[9] = "";
    for (int i = 0; i < 8; i++)
        text[i] = (char)(ip >> (56 - 8 * i));
    if (strcmp(text, "^Partial") == 0)
        return ROLE_PARTIAL;
    if (strcmp(text, "| Main  ") == 0)
        return ROLE_PROGRAM;
    if (strcmp(text, "| Thread") == 0)
        return ROLE_THREAD;
    return strcmp(text, "NoActvty") == 0 ? ROLE_IDLE : ROLE_NONE;
}

/* The role by node types alone, for profiles whose runtime library is not on this machine. */
static enum scope_role role_by_shape(const struct raw_tree *tree, uint32_t index, uint32_t first_typed)
{
    const struct raw_node *node = &tree->nodes[index], *parent = &tree->nodes[node->parent];
    if (node->type & HPCRUN_NODE_ROOT)
        return ROLE_DATACENTRIC;
    if (parent->role == ROLE_DATACENTRIC) {
        if (node->type & HPCRUN_NODE_UNKNOWN_ATTRIBUTE)
            return ROLE_UNKNOWN;
        return first_typed & HPCRUN_NODE_GLOBAL_VARIABLE ? ROLE_STATIC : ROLE_HEAP;
    }
    if (parent->role == ROLE_VARIABLE && parent->type & HPCRUN_NODE_ALLOCATION && node->type & HPCRUN_NODE_MEMACCESS)
        return ROLE_ACCESS;
    return ROLE_NONE;
}

/* The role that follows from the node's parent: variables. */
static enum scope_role role_by_parent(const struct raw_tree *tree, const struct symbolizer *symbolizer, uint32_t index)
{
    const struct raw_node *node = &tree->nodes[index];
    switch (tree->nodes[node->parent].role) {
    case ROLE_STATIC:
    case ROLE_TLS:
    case ROLE_STACK:
    case ROLE_FILE:
        return ROLE_VARIABLE;
    default:
        break;
    }
    /* below <heap allocation> and above an access separator: the last frame of the allocation path. Where Python's
     * frames were read for only some blocks of a native path, they go on below the variable of the others. */
    for (uint32_t up = node->parent; up != RAW_NONE; up = tree->nodes[up].parent) {
        enum scope_role role = (enum scope_role)tree->nodes[up].role;
        if (role == ROLE_HEAP)
            return node->type & HPCRUN_NODE_ALLOCATION ? ROLE_VARIABLE : ROLE_NONE;
        if (role != ROLE_NONE && !(role == ROLE_VARIABLE && symbolizer_is_python(symbolizer, node->module)))
            return ROLE_NONE;
    }
    return ROLE_NONE;
}

static enum scope_role role_of(const struct raw_tree *tree, struct symbolizer *symbolizer, uint32_t index,
                               uint32_t child_types)
{
    const struct raw_node *node = &tree->nodes[index];
    if (symbolizer_is_region(symbolizer, node->module))
        return ROLE_REGION;
    if (node->module == 0 && node->parent == 0 && node->ip == 1)
        return ROLE_PARTIAL;
    if (node->module == 0 && tree->nodes[node->parent].role != ROLE_STACK) /* the stack of a thread has no module */
        return role_by_text(node->ip);
    const char *name = symbolizer_placeholder(symbolizer, node->module, node->ip);
    enum scope_role role = name ? role_by_name(name) : ROLE_NONE;
    if (role == ROLE_NONE && tree->nodes[node->parent].in_data)
        role = role_by_parent(tree, symbolizer, index);
    if (role == ROLE_NONE && (node->type & HPCRUN_NODE_ROOT || tree->nodes[node->parent].in_data))
        role = role_by_shape(tree, index, child_types);
    return role;
}

/* For each child of the data-centric root: the node types of its children, OR-ed, by index of that child. */
static uint32_t types_of_children(const struct raw_tree *tree, uint32_t parent)
{
    uint32_t types = 0;
    for (size_t i = parent + 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == parent)
            types |= tree->nodes[i].type;
    return types;
}

void placeholders_assign(struct raw_tree *tree, struct symbolizer *symbolizer)
{
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        struct raw_node *node = &tree->nodes[i];
        bool below_root = tree->nodes[node->parent].role == ROLE_DATACENTRIC;
        node->role = (uint8_t)role_of(tree, symbolizer, i, below_root ? types_of_children(tree, i) : 0);
        node->in_data = node->role == ROLE_DATACENTRIC || tree->nodes[node->parent].in_data;
    }
}

enum variable_class placeholders_reason(const char *placeholder, char *reason, size_t size)
{
    static const char *const prefixes[] = {"DATACENTRIC_No_", "DATACENTRIC_Unknown_", "DATACENTRIC_"};
    size_t kind = 0, len = 0;
    while (kind < 2 && strncmp(placeholder, prefixes[kind], strlen(prefixes[kind])) != 0)
        kind++;
    for (const char *p = placeholder + strlen(prefixes[kind]); *p && len + 2 < size; p++) {
        if (isupper((unsigned char)*p) && len > 0)
            reason[len++] = ' ';
        reason[len++] = (char)tolower((unsigned char)*p);
    }
    reason[len] = 0;
    if (strcmp(reason, "waiting") == 0)
        return CLASS_WAITING;
    return kind == 0 ? CLASS_UNATTRIBUTED : CLASS_UNKNOWN;
}

/* --- what a function is to an allocator --- */

/* What the C library's allocator exports, and functions inside it, which also static programs have. */
static const char *const entries[] = {"malloc",        "free",           "calloc", "realloc", "cfree",       "memalign",
                                      "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "reallocarray"};
static const char *const inner[] = {"_int_malloc",   "_int_free",      "_int_realloc",   "_int_memalign",
                                    "sysmalloc",     "systrim",        "heap_trim",      "malloc_consolidate",
                                    "unlink_chunk",  "sysmalloc_mmap", "arena_get2",     "tcache_init.part",
                                    "free_perturb",  "alloc_perturb",  "__libc_malloc",  "__libc_free",
                                    "__libc_calloc", "__libc_realloc", "__libc_memalign"};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (*name == *names[i] && strcmp(name, names[i]) == 0)
            return true;
    return false;
}

const char *allocator_bare_name(const char *name, size_t *n)
{
    const char *start = name;
    *n = strcspn(name, "(<");
    for (size_t i = 0; i < *n; i++)
        if (name[i] == ' ' && !text_begins(start, "operator"))
            start = name + i + 1;
    *n -= (size_t)(start - name);
    return start;
}

enum allocator_role allocator_role_of(const char *name)
{
    size_t n;
    const char *bare = allocator_bare_name(name, &n);
    if (is_one_of(name, entries, sizeof entries / sizeof *entries))
        return ALLOCATOR_ENTRY;
    if (is_one_of(name, inner, sizeof inner / sizeof *inner))
        return ALLOCATOR_INNER;
    if (text_begins(name, "mem") || text_begins(name, "__mem"))
        return ALLOCATOR_BLOCK;
    bool is_library = text_begins(bare, "std::") || text_begins(bare, "__gnu_cxx::") ||
                      text_begins(bare, "operator new") || text_begins(bare, "operator delete");
    return is_library ? ALLOCATOR_LIBRARY : ALLOCATOR_NONE;
}

bool allocator_grows(const char *name)
{
    static const char *const parts[] = {"_M_realloc",     "_M_default_append", "_M_range_insert",
                                        "_M_fill_insert", "_M_mutate",         "::reserve"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}
