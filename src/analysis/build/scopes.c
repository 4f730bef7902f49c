/* SPDX-License-Identifier: BSD-3-Clause */
/* The source-level tree: scopes are found or added, then put into their canonical order. */
#include "analysis/build/symbolize.h"

#include <stdlib.h>
#include <string.h>

/* Functions are compared without their lines, which may differ; variables with them, since they may share a name. */
static bool compares_line(const struct scope *scope)
{
    return scope->kind != SCOPE_PROC || scope->role == ROLE_VARIABLE;
}

/* Instructions, and calls where these are kept. */
static bool compares_address(const struct scope *scope)
{
    return scope->kind == SCOPE_INSTRUCTION || (scope->kind == SCOPE_CALL && scope->module);
}

static bool same_scope(const struct scope *a, const struct scope *b)
{
    return a->kind == b->kind && a->role == b->role && a->name == b->name && a->file == b->file &&
           a->module == b->module && (!compares_line(a) || a->line == b->line) &&
           (!compares_address(a) || a->vaddr == b->vaddr);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

static size_t slot_of(const struct scope_builder *builder, uint32_t parent, const struct scope *proto)
{
    uint64_t hash = mix(mix(mix(parent, proto->name), (uint64_t)proto->file << 8 | proto->kind), proto->module);
    if (compares_line(proto))
        hash = mix(hash, proto->line);
    if (compares_address(proto))
        hash = mix(hash, proto->vaddr);
    size_t slot = (size_t)(hash >> 16) & (builder->n_slots - 1);
    for (; builder->slots[slot]; slot = (slot + 1) & (builder->n_slots - 1)) {
        const struct scope *scope = &builder->model->scopes[builder->slots[slot] - 1];
        if (scope->parent == parent && same_scope(scope, proto))
            break;
    }
    return slot;
}

static bool grow_slots(struct scope_builder *builder)
{
    struct model *model = builder->model;
    if (model->n_scopes * 2 < builder->n_slots)
        return true;
    size_t n_slots = builder->n_slots ? builder->n_slots * 2 : 4096;
    while (n_slots < 2 * model->n_scopes + 2) /* the scopes of an older database are already there */
        n_slots *= 2;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(builder->slots);
    builder->slots = slots;
    builder->n_slots = n_slots;
    for (size_t i = 1; i < model->n_scopes; i++)
        slots[slot_of(builder, model->scopes[i].parent, &model->scopes[i])] = (uint32_t)i + 1;
    return true;
}

uint32_t scopes_child(struct scope_builder *builder, uint32_t parent, const struct scope *proto)
{
    struct model *model = builder->model;
    if (builder->failed || !grow_slots(builder) ||
        !vec_reserve(&model->scopes, &model->cap_scopes, model->n_scopes + 1, sizeof *model->scopes)) {
        builder->failed = true;
        return 0;
    }
    size_t slot = slot_of(builder, parent, proto);
    if (builder->slots[slot]) {
        /* the lowest address and line, whatever the order */
        struct scope *known = &model->scopes[builder->slots[slot] - 1];
        if (proto->vaddr < known->vaddr || (proto->vaddr == known->vaddr && proto->line < known->line)) {
            known->vaddr = proto->vaddr;
            known->line = proto->line;
        }
        if (proto->end_line > known->end_line)
            known->end_line = proto->end_line;
        known->node_type |= proto->node_type;
        return builder->slots[slot] - 1;
    }
    uint32_t index = (uint32_t)model->n_scopes++;
    model->scopes[index] = *proto;
    model->scopes[index].parent = parent;
    builder->slots[slot] = index + 1;
    return index;
}

/* Returns where code of new_file belongs, inside a scope of *file: that scope, or a position in it if the files differ.
 * *file becomes new_file. */
static uint32_t add_position(struct scope_builder *builder, uint32_t at, uint32_t new_file, uint32_t module_name,
                             uint32_t *file)
{
    const struct scope position = {.kind = SCOPE_POSITION, .file = new_file, .module = module_name};
    if (new_file == *file)
        return at;
    *file = new_file;
    return scopes_child(builder, at, &position);
}

/* Adds the loops of one function, the outermost first. */
static uint32_t add_loops(struct scope_builder *builder, uint32_t at, const struct code_loop *loop,
                          uint32_t module_name, uint32_t *file)
{
    if (!loop)
        return at;
    at = add_loops(builder, at, loop->outer, module_name, file);
    const struct scope scope = {.kind = SCOPE_LOOP,
                                .file = loop->file,
                                .line = loop->line,
                                .end_line = loop->end_line,
                                .module = module_name,
                                .vaddr = loop->vaddr};
    at = add_position(builder, at, loop->file, module_name, file);
    return scopes_child(builder, at, &scope);
}

uint32_t scopes_add_frames(struct scope_builder *builder, uint32_t parent, const struct code_frame *frames, size_t n,
                           uint32_t module_name)
{
    struct scope function = {.kind = SCOPE_PROC,
                             .name = frames[0].function,
                             .file = frames[0].decl_file,
                             .line = frames[0].decl_line,
                             .module = module_name,
                             .vaddr = frames[0].low_vaddr};
    uint32_t at = scopes_child(builder, parent, &function), file = frames[0].decl_file;
    at = add_loops(builder, at, frames[0].loop, module_name, &file);
    for (size_t i = 1; i < n; i++) {
        struct scope position = {.kind = SCOPE_POSITION, .file = frames[i - 1].file, .line = frames[i - 1].line};
        position.module = module_name;
        at = scopes_child(builder, at, &position);
        struct scope inlined = {.kind = SCOPE_INLINED,
                                .name = frames[i].function,
                                .file = frames[i].decl_file,
                                .line = frames[i].decl_line,
                                .module = module_name};
        at = scopes_child(builder, at, &inlined);
        file = frames[i].decl_file;
        at = add_loops(builder, at, frames[i].loop, module_name, &file);
    }
    return add_position(builder, at, frames[n - 1].file, module_name, &file);
}

void scopes_builder_fini(struct scope_builder *builder)
{
    free(builder->slots);
    builder->slots = NULL;
}

static int kind_rank(const struct scope *scope)
{
    static const int ranks[] = {[SCOPE_TOP] = 0,  [SCOPE_PROC] = 4, [SCOPE_INLINED] = 2, [SCOPE_POSITION] = 2,
                                [SCOPE_CALL] = 3, [SCOPE_LINE] = 1, [SCOPE_LOOP] = 2,    [SCOPE_INSTRUCTION] = 1};
    return ranks[scope->kind];
}

/* Statements come before all other children, whatever their role. */
static int role_rank(const struct scope *scope)
{
    if (scope->kind == SCOPE_LINE)
        return -1;
    if (scope->role == ROLE_NONE || scope->role == ROLE_VARIABLE)
        return ROLE_PARTIAL;
    return scope->role;
}

static int compare_text(const struct model *model, uint32_t a, uint32_t b)
{
    return a == b ? 0 : strcmp(model_text(model, a), model_text(model, b));
}

static int compare_scopes(const void *a, const void *b, void *context)
{
    const struct model *model = context;
    const struct scope *x = &model->scopes[*(const uint32_t *)a], *y = &model->scopes[*(const uint32_t *)b];
    int order = (x->parent > y->parent) - (x->parent < y->parent);
    if (order == 0) /* statements come first */
        order = (x->kind != SCOPE_LINE) - (y->kind != SCOPE_LINE);
    if (order == 0)
        order = role_rank(x) - role_rank(y);
    if (order == 0)
        order = kind_rank(x) - kind_rank(y);
    if (order == 0 && x->kind != SCOPE_PROC)
        order = (x->line > y->line) - (x->line < y->line);
    if (order == 0 && compares_address(x) && compares_address(y))
        order = (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
    if (order == 0)
        order = compare_text(model, x->name, y->name);
    if (order == 0)
        order = compare_text(model, x->file, y->file);
    return order ? order : compare_text(model, x->module, y->module);
}

/* first [n + 2]: start of each parent's children in the list sorted by parent. */
static void fill_first(const struct model *model, const uint32_t *sorted, uint32_t *first)
{
    size_t n = model->n_scopes, at = 0;
    for (size_t parent = 0; parent <= n; parent++) {
        while (at < n - 1 && model->scopes[sorted[at]].parent < parent)
            at++;
        first[parent] = (uint32_t)at;
    }
}

/* Walks in pre-order; new_of[old] = new index. stack [n]. */
static void number_scopes(const uint32_t *sorted, const uint32_t *first, uint32_t *stack, uint32_t *new_of)
{
    size_t depth = 0;
    uint32_t next = 0;
    stack[depth++] = 0;
    while (depth > 0) {
        uint32_t old = stack[--depth];
        new_of[old] = next++;
        for (uint32_t i = first[old + 1]; i-- > first[old];)
            stack[depth++] = sorted[i];
    }
}

static void move_scopes(struct model *model, struct scope *moved, const uint32_t *new_of)
{
    for (size_t i = 0; i < model->n_scopes; i++) {
        moved[new_of[i]] = model->scopes[i];
        moved[new_of[i]].parent = new_of[model->scopes[i].parent];
    }
    memcpy(model->scopes, moved, model->n_scopes * sizeof *moved);
    model_link_scopes(model);
}

int scopes_sort(struct model *model, uint32_t **renumber, struct error *err)
{
    size_t n = model->n_scopes;
    uint32_t *sorted = calloc(n, sizeof *sorted), *first = calloc(n + 2, sizeof *first);
    uint32_t *stack = calloc(n + 1, sizeof *stack), *new_of = calloc(n, sizeof *new_of);
    struct scope *moved = calloc(n, sizeof *moved);
    bool ok = sorted && first && stack && new_of && moved;
    if (ok) {
        for (uint32_t i = 1; i < n; i++)
            sorted[i - 1] = i;
        if (n > 2)
            qsort_r(sorted, n - 1, sizeof *sorted, compare_scopes, model);
        fill_first(model, sorted, first);
        number_scopes(sorted, first, stack, new_of);
        move_scopes(model, moved, new_of);
    }
    free(sorted);
    free(first);
    free(stack);
    free(moved);
    *renumber = ok ? new_of : NULL;
    if (ok)
        return 0;
    free(new_of);
    return error_set(err, ERR_MEMORY, "out of memory while sorting the call tree");
}
