/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the table of variables: what makes two nodes of the data-centric tree the same variable, and how it is
 * named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build.h"
#include "analysis/heap-name.h"
#include "analysis/metrics.h"
#include "analysis/roles.h"
#include "arena/arena.h"
#include "structure/assign-name.h"

const struct side_row *variables_side(const struct build *build, uint32_t node, size_t *n)
{
    size_t low = 0, high = build->sides->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (build->sides->rows[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    for (*n = 0; low + *n < build->sides->n && build->sides->rows[low + *n].node == node; (*n)++)
        ;
    return *n ? &build->sides->rows[low] : NULL;
}

static const struct side_row *find_side(const struct build *build, uint32_t node)
{
    size_t n;
    return variables_side(build, node, &n);
}

/* The row with this key, added as a copy of proto when new; the parts of proto are taken over. RAW_NONE when out of
 * memory. */
static uint32_t find_or_add(struct build *build, const char *key, const struct variable *proto)
{
    struct model *model = build->model;
    if (!vec_reserve(&model->variables, &model->cap_variables, model->n_variables + 1, sizeof *model->variables))
        return RAW_NONE;
    int64_t index = strtab_intern(&build->keys, key);
    if (index < 0)
        return RAW_NONE;
    if ((size_t)index == model->n_variables) {
        model->variables[model->n_variables++] = *proto;
    } else {
        frame_parts_merge(&model->variables[index], proto);
        free(proto->parts);
        free(proto->part_lines);
    }
    return (uint32_t)index;
}

static void add_scope(struct build *build, struct variable *variable, uint32_t scope)
{
    for (size_t i = 0; i < variable->n_scopes; i++)
        if (variable->scopes[i] == scope)
            return;
    if (vec_reserve(&variable->scopes, &variable->cap_scopes, variable->n_scopes + 1, sizeof *variable->scopes))
        variable->scopes[variable->n_scopes++] = scope;
    else
        build->builder.failed = true;
}

/* Makes the variable's scope below parent and ties row and scope together. */
static uint32_t finish(struct build *build, uint32_t row, uint32_t parent, enum scope_role role, uint32_t node_type)
{
    if (row == RAW_NONE) {
        build->builder.failed = true;
        return 0;
    }
    struct variable *variable = &build->model->variables[row];
    struct scope scope = {.kind = SCOPE_PROC,
                          .role = (uint8_t)role,
                          .node_type = (uint16_t)node_type,
                          .name = variable->name,
                          .file = variable->file ? variable->file : model_string(build->model, "<unknown file>"),
                          .module = variable->module,
                          .line = variable->line};
    uint32_t index = scopes_child(&build->builder, parent, &scope);
    add_scope(build, variable, index);
    return index;
}

/* Appends the functions of one node of an allocation path, innermost first. */
static void push_frames(struct build *build, const struct raw_node *node, struct path_frame **path, size_t *n,
                        size_t *capacity)
{
    const struct code_frame *frames;
    uint64_t vaddr = node->ip ? node->ip - 1 : 0;
    size_t n_frames = symbolizer_lookup(build->symbolizer, node->module, vaddr, &frames);
    if (!vec_reserve(path, capacity, *n + n_frames, sizeof **path)) {
        build->builder.failed = true;
        return;
    }
    for (size_t i = n_frames; i-- > 0;)
        (*path)[(*n)++] =
            (struct path_frame){.code = frames[i], .module = node->module, .vaddr = vaddr, .inlined = i > 0};
}

/* Key of a heap variable: its name, and its path with recursion cut out, so that a list built recursively is one. */
static void append_path_key(const struct path_frame *path, size_t n, struct buf *key)
{
    uint32_t *kept = calloc(2 * n + 2, sizeof *kept); /* (function, line) outermost first */
    size_t n_kept = 0;
    for (size_t i = n; kept && i-- > 0;) {
        for (size_t j = 0; j < n_kept; j++)
            if (kept[2 * j] == path[i].code.function)
                n_kept = j;
        kept[2 * n_kept] = path[i].code.function;
        kept[2 * n_kept++ + 1] = path[i].code.line;
    }
    for (size_t i = 0; kept && i < n_kept; i++)
        buf_printf(key, "/%x:%x", kept[2 * i], kept[2 * i + 1]);
    free(kept);
}

static bool is_small_only(const struct side_row *side)
{
    return side && side->kind == VAR_HEAP && !side->n_blocks && side->max_small_bytes;
}

/* Blocks that have no record, and no variable that they belong to, are known by their size and place. Sizes that differ
 * are given roughly, so that the paths to one place do not fall apart by them. */
static void name_small(const struct build *build, const struct side_row *side, const struct code_frame *site,
                       struct heap_name *name)
{
    const char *function = model_text(build->model, site->function), *file = model_text(build->model, site->file);
    const char *slash = strrchr(file, '/');
    char sizes[40], place[88];
    uint64_t rounded = 16;
    while (rounded < side->max_small_bytes)
        rounded *= 2;
    if (side->min_small_bytes == side->max_small_bytes)
        (void)snprintf(sizes, sizeof sizes, "%llu B", (unsigned long long)side->max_small_bytes);
    else
        (void)snprintf(sizes, sizeof sizes, "up to %llu B", (unsigned long long)rounded);
    if (site->line)
        (void)snprintf(place, sizeof place, "%.70s:%u", slash ? slash + 1 : file, site->line);
    else
        (void)snprintf(place, sizeof place, "%.80s", function);
    (void)snprintf(name->name, sizeof name->name, "blocks of %s from %s", sizes, place);
}

/* Adds the allocation path's last node as code, then the variable below its call. */
static uint32_t add_heap(struct build *build, uint32_t index, uint32_t parent)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    const struct raw_node *nodes = build->tree->nodes;
    for (uint32_t up = index; nodes[up].role != ROLE_HEAP && up != 0; up = nodes[up].parent)
        push_frames(build, &nodes[up], &path, &n, &capacity);
    if (n == 0)
        return finish(build, RAW_NONE, parent, ROLE_VARIABLE, 0);
    struct heap_name name;
    struct buf key = {0};
    heap_name_find(build->symbolizer, build->source, path, n, &name);
    const struct side_row *side = find_side(build, index);
    const struct code_frame *site = &path[name.site].code;
    if (is_small_only(side) && !name.is_variable)
        name_small(build, side, site, &name);
    struct variable proto = {.name = model_string(build->model, name.name),
                             .function = site->function,
                             .file = site->file,
                             .line = site->line,
                             .module =
                                 model_string(build->model, symbolizer_path(build->symbolizer, path[name.site].module)),
                             .class = side && side->kind == VAR_MMAP ? CLASS_MMAP : CLASS_HEAP};
    buf_printf(&key, "%d/%s", proto.class, name.name);
    append_path_key(path, n, &key);
    uint32_t row = key.data ? find_or_add(build, key.data, &proto) : RAW_NONE;
    buf_fini(&key);
    fields_note_site(build, index, path, &name);
    free(path);
    const struct raw_node *node = &nodes[index];
    const struct code_frame *frames;
    size_t n_frames = symbolizer_lookup(build->symbolizer, node->module, node->ip - 1, &frames);
    uint32_t at = scopes_add_frames(&build->builder, parent, frames, n_frames,
                                    model_string(build->model, symbolizer_path(build->symbolizer, node->module)));
    struct scope call = {.kind = SCOPE_CALL,
                         .file = frames[n_frames - 1].file,
                         .line = frames[n_frames - 1].line,
                         .vaddr = node->ip - 1};
    build->tree->nodes[index].variable = row;
    return finish(build, row, scopes_child(&build->builder, at, &call), ROLE_VARIABLE, HPCRUN_NODE_ALLOCATION);
}

/* Name and declaration of a static or thread-local variable; what the module does not tell, the side file may. */
static void describe_static(struct build *build, uint32_t index, struct variable *proto)
{
    const struct raw_node *node = &build->tree->nodes[index];
    const struct side_row *side = find_side(build, index);
    struct symbols_data data = {0};
    if (symbolizer_data_at(build->symbolizer, node->module, proto->class == CLASS_TLS, node->ip - 1, &data)) {
        proto->name = model_string(build->model, data.name);
        proto->file = model_string(build->model, data.decl_file);
        proto->line = data.decl_line;
        proto->size_bytes = data.size_bytes;
        proto->n_blocks = 1;
    } else {
        char name[400];
        const char *path = symbolizer_path(build->symbolizer, node->module), *slash = strrchr(path, '/');
        (void)snprintf(name, sizeof name, "0x%llx [%.300s]", (unsigned long long)(node->ip - 1),
                       slash ? slash + 1 : path);
        proto->name = side && side->name ? side->name : model_string(build->model, name);
    }
}

static void describe_stack(struct build *build, uint32_t index, struct variable *proto)
{
    const struct raw_node *node = &build->tree->nodes[index];
    const struct code_frame *frames;
    char name[160], qualified[160];
    const struct side_row *side = find_side(build, index);
    if (side && side->name) {
        proto->name = side->name;
        return;
    }
    (void)symbolizer_lookup(build->symbolizer, node->module, node->ip ? node->ip - 1 : 0, &frames);
    proto->function = frames[0].function;
    proto->file = frames[0].decl_file;
    proto->line = frames[0].decl_line;
    const char *function = symbolizer_text(build->symbolizer, frames[0].function);
    (void)assign_name_function(function, qualified, sizeof qualified);
    (void)snprintf(name, sizeof name, "stack of %.140s", *qualified ? qualified : function);
    proto->name = model_string(build->model, name);
    struct symbols *symbols = symbolizer_symbols(build->symbolizer, node->module);
    if (symbols && node->ip)
        (void)frame_parts_collect(build, index, symbols, proto);
}

static uint32_t add_by_address(struct build *build, uint32_t index, uint32_t parent, enum variable_class class)
{
    const struct raw_node *node = &build->tree->nodes[index];
    const char *path = symbolizer_path(build->symbolizer, node->module);
    struct variable proto = {.class = (uint8_t) class, .module = model_string(build->model, path)};
    char key[512];
    if (class == CLASS_STACK)
        describe_stack(build, index, &proto);
    else if (class == CLASS_FILE)
        proto.name = model_string(build->model, *path ? path : "<unknown file mapping>");
    else
        describe_static(build, index, &proto);
    (void)snprintf(key, sizeof key, "%d/%x/%x/%x/%x", class, proto.name, proto.module, proto.file, proto.line);
    uint32_t row = find_or_add(build, key, &proto);
    build->tree->nodes[index].variable = row;
    return finish(build, row, parent, ROLE_VARIABLE, node->type ? node->type : HPCRUN_NODE_GLOBAL_VARIABLE);
}

static uint32_t add_reason(struct build *build, const char *placeholder, uint32_t parent, uint32_t *out_row)
{
    char reason[128], key[160], title[132];
    enum variable_class class = CLASS_UNKNOWN;
    if (placeholder)
        class = roles_reason(placeholder, reason, sizeof reason);
    else
        (void)snprintf(reason, sizeof reason, "unknown");
    (void)snprintf(key, sizeof key, "%d/%s", class, reason);
    (void)snprintf(title, sizeof title, "<%.120s>", reason);
    struct variable proto = {.class = (uint8_t) class, .name = model_string(build->model, title)};
    uint32_t row = find_or_add(build, key, &proto);
    *out_row = row;
    return finish(build, row, parent, ROLE_REASON, HPCRUN_NODE_UNKNOWN_ATTRIBUTE);
}

uint32_t variables_add(struct build *build, uint32_t index, uint32_t parent)
{
    struct raw_node *node = &build->tree->nodes[index];
    if (node->role == ROLE_REASON) {
        const char *name = symbolizer_placeholder(build->symbolizer, node->module, node->ip);
        return add_reason(build, name, parent, &node->variable);
    }
    switch (build->tree->nodes[node->parent].role) {
    case ROLE_STATIC:
        return add_by_address(build, index, parent, CLASS_STATIC);
    case ROLE_TLS:
        return add_by_address(build, index, parent, CLASS_TLS);
    case ROLE_STACK:
        return add_by_address(build, index, parent, CLASS_STACK);
    case ROLE_FILE:
        return add_by_address(build, index, parent, CLASS_FILE);
    default:
        return add_heap(build, index, parent);
    }
}

uint32_t variables_add_unknown(struct build *build, uint32_t parent)
{
    uint32_t row;
    return add_reason(build, NULL, parent, &row);
}

static void add_places(struct build *build, struct variable *variable, const struct side_row *side)
{
    const struct model *model = build->model;
    size_t n = model->n_metrics * model->n_numa_nodes;
    if (side->n_places == 0 || n == 0)
        return;
    if (!variable->places)
        variable->places = calloc(n, sizeof *variable->places);
    for (size_t i = 0; variable->places && i < side->n_places; i++) {
        const struct side_place *place = &side->places[i];
        if (place->metric < model->n_metrics && place->numa_node < model->n_numa_nodes)
            variable->places[place->metric * model->n_numa_nodes + place->numa_node] += place->count;
    }
}

static void add_samples(const struct model *model, struct variable *variable, const struct side_row *side)
{
    if (side->n_samples && !variable->samples)
        variable->samples = calloc(model->n_metrics, sizeof *variable->samples);
    for (size_t i = 0; variable->samples && i < side->n_samples; i++)
        if (side->samples[i].metric < model->n_metrics)
            variable->samples[side->samples[i].metric] += side->samples[i].count;
}

void variables_apply_sides(struct build *build)
{
    for (size_t i = 0; i < build->sides->n; i++) {
        const struct side_row *side = &build->sides->rows[i];
        uint32_t row = side->node < build->tree->n_nodes ? build->tree->nodes[side->node].variable : RAW_NONE;
        if (row == RAW_NONE)
            continue;
        struct variable *variable = &build->model->variables[row];
        bool one_block =
            variable->class == CLASS_STATIC || variable->class == CLASS_TLS || variable->class == CLASS_STACK;
        if (one_block && side->most_bytes > variable->size_bytes)
            variable->size_bytes = side->most_bytes;
        if (one_block) {
            variable->n_blocks = variable->size_bytes > 0;
        } else {
            variable->size_bytes += side->bytes;
            variable->n_blocks += side->n_blocks;
        }
        variable->size_freed_bytes += side->bytes_freed;
        variable->n_blocks_freed += side->n_blocks_freed;
        variable->n_inexact += side->n_inexact;
        variable->n_blocks_marked += side->n_blocks_marked;
        variable->size_marked_bytes += side->bytes_marked;
        if (side->max_block_bytes > variable->max_block_bytes)
            variable->max_block_bytes = side->max_block_bytes;
        add_places(build, variable, side);
        add_samples(build->model, variable, side);
        (void)metrics_merge_latencies(variable, side->latencies, side->n_latencies);
    }
}
