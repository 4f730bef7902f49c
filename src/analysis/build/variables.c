/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of the model and their fields. Fields first: every offset in a variable at which samples lie becomes
 * the field that its type has there; without a type it stays an offset, so that the samples of the fields add up to
 * those whose offset is known. Then the variables: which nodes are the same one, and what it is called. */
#include "analysis/build/build.h"
#include "analysis/build/placeholders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/heap-name.h"
#include "analysis/metrics.h"
#include "arena/arena.h"
#include "base/path.h"
#include "base/search.h"
#include "structure/names/assign-name.h"
#include "structure/types/types.h"

#define OFFSETS_SHOWN 32 /* different offsets of one variable without type */
#define UNTYPED_NAME "<offset %+lld>"

struct typed_node {
    uint32_t node;
    uint64_t block_bytes; /* mean, 0 = not known */
    struct heap_type type;
};

/* A node with values of its own below that of a variable, and its scope. */
struct leaf {
    uint32_t variable_node, module;
    uint64_t ip;
    uint32_t scope;
};

/* The variable whose fields are being made. */
struct target {
    struct build *build;
    struct variable *variable;
    const struct node_access *access;
    const struct leaf *leaves; /* [n_leaves] where the instruction of the access is the end of a path */
    size_t n_leaves;
    uint32_t part;
    const char *before, *at; /* source lines of the instruction before the sample and of its own; NULL: not known */
};

/* Mean size of the blocks of a node over all threads. */
static uint64_t block_bytes(const struct build *build, uint32_t node)
{
    size_t n;
    uint64_t bytes = 0, blocks = 0, small = 0; /* small: size of blocks without a record that all have one size */
    const struct side_row *rows = variables_side(build, node, &n);
    for (size_t i = 0; i < n; i++) {
        bytes += rows[i].bytes;
        blocks += rows[i].n_blocks;
        if (rows[i].min_small_bytes == rows[i].max_small_bytes)
            small = rows[i].max_small_bytes;
    }
    return blocks ? bytes / blocks : small;
}

/* Keeps what the allocation site of a heap node says about its blocks. path: from its innermost frame; the block is
 * called name. */
static void fields_add_site(struct build *build, uint32_t node, const struct path_frame *path,
                            const struct heap_name *name)
{
    if (!vec_reserve(&build->typed, &build->cap_typed, build->n_typed + 1, sizeof *build->typed))
        return;
    struct typed_node *typed = &build->typed[build->n_typed++];
    *typed = (struct typed_node){.node = node, .block_bytes = block_bytes(build, node)};
    if (!symbolizer_is_python(build->symbolizer, path[name->site].module))
        heap_type_find(build->symbolizer, build->source, path, name, typed->block_bytes, &typed->type);
}

/* Heap nodes were added in the order of their index. */
static struct typed_node *find_typed(const struct build *build, uint32_t node)
{
    size_t low = search_below(build->typed, build->n_typed, SEARCH_KEY(struct typed_node, node), node);
    return low < build->n_typed && build->typed[low].node == node ? &build->typed[low] : NULL;
}

static const char *line_of(const struct build *build, const struct node_access *access, uint64_t vaddr)
{
    const struct code_frame *frames;
    size_t n = symbolizer_lookup(build->symbolizer, access->module, vaddr, &frames);
    const struct code_frame *inner = &frames[n - 1];
    return inner->line ? source_text_line(build->source, symbolizer_text(build->symbolizer, inner->file), inner->line)
                       : NULL;
}

static bool is_shared(const struct type_spot *spot)
{
    return spot->kind == SPOT_FIELD && strstr(spot->path, ".<") && strchr(spot->path, '|');
}

/* Adds samples to a field, and counts them in the scopes of the access. */
static void count_field(const struct target *target, const struct variable_field *field)
{
    struct model *model = target->build->model;
    struct field_count count = {.variable = (uint32_t)(target->variable - model->variables),
                                .n_samples = field->samples};
    bool ok = model_add_field(target->variable, field, &count.field);
    for (size_t i = 0; ok && i < target->n_leaves; i++) {
        count.scope = target->leaves[i].scope;
        ok = vec_reserve(&model->field_counts, &model->cap_field_counts, model->n_field_counts + 1,
                         sizeof *model->field_counts);
        if (ok)
            model->field_counts[model->n_field_counts++] = count;
    }
    target->build->builder.failed |= !ok;
}

static void add_untyped(const struct target *target, int64_t offset, uint64_t samples)
{
    struct variable_field field = {
        .event = target->access->event, .part = target->part, .flags = FIELD_UNTYPED, .samples = samples};
    char name[64];
    (void)snprintf(name, sizeof name, UNTYPED_NAME, (long long)offset);
    field.name = model_string(target->build->model, name);
    field.offset_bytes = (uint64_t)offset;
    count_field(target, &field);
}

/* A path to a member of the one structure that a pointer points to. */
static const char *pointer_path(const struct target *target, const struct type_spot *spot, char *text, size_t size)
{
    bool is_block = model_is_block(target->variable);
    if (!is_block || spot->path[0] != '.')
        return spot->path;
    (void)snprintf(text, size, "->%s", spot->path + 1);
    return text;
}

static void add_spot(const struct target *target, struct symbols *symbols, const struct type_spot *spot,
                     uint64_t samples)
{
    char text[TYPES_PATH_BYTES + 2];
    struct model *model = target->build->model;
    struct variable_field field = {.event = target->access->event,
                                   .part = target->part,
                                   .name = model_string(model, pointer_path(target, spot, text, sizeof text)),
                                   .flags = spot->kind == SPOT_PADDING ? FIELD_PADDING : 0,
                                   .offset_bytes = spot->offset_bytes,
                                   .size_bytes = spot->size_bytes,
                                   .samples = samples};
    if (spot->kind != SPOT_PADDING)
        field.type = model_string(model, types_spell(symbols, spot->type, text, sizeof text));
    count_field(target, &field);
}

/* The field at an offset; where fields share a place, the source lines decide, that of the access first. */
static void find_spot(const struct target *target, struct symbols *symbols, uint32_t type, uint64_t offset,
                      struct type_spot *spot)
{
    types_spot(symbols, type, offset, target->before, spot);
    if (is_shared(spot) && target->at)
        types_spot(symbols, type, offset, target->at, spot);
}

static void find_spot_in_block(const struct target *target, const struct typed_node *typed, uint64_t offset,
                               struct type_spot *spot)
{
    const struct heap_type *type = &typed->type;
    uint64_t size = types_size(type->symbols, type->type);
    if (type->trailing_type && size) {
        if (offset < size) {
            find_spot(target, type->symbols, type->type, offset, spot);
            return;
        }
        struct type_spot inner;
        types_spot_in_block(type->symbols, type->trailing_type, 0, 0, offset - size, target->before, &inner);
        *spot = inner;
        (void)snprintf(spot->path, sizeof spot->path, ".(tail)%.*s", TYPES_PATH_BYTES - 16, inner.path);
        return;
    }
    types_spot_in_block(type->symbols, type->type, typed->block_bytes, type->header_bytes, offset, target->before,
                        spot);
    if (is_shared(spot) && target->at)
        types_spot_in_block(type->symbols, type->type, typed->block_bytes, type->header_bytes, offset, target->at,
                            spot);
}

static void add_heap_offsets(struct target *target, const struct typed_node *typed)
{
    const struct spread *offsets = &target->access->offsets;
    for (size_t i = 0; i < offsets->n; i++) {
        struct type_spot spot = {.kind = SPOT_NONE};
        if (typed && typed->type.symbols)
            find_spot_in_block(target, typed, offsets->entries[i].offset, &spot);
        if (spot.kind == SPOT_NONE)
            add_untyped(target, (int64_t)offsets->entries[i].offset, offsets->entries[i].count);
        else
            add_spot(target, typed->type.symbols, &spot, offsets->entries[i].count);
    }
}

static void set_type(struct target *target, struct symbols *symbols, uint32_t type, enum type_source source)
{
    char text[256];
    struct variable *variable = target->variable;
    struct variable_part *part = target->part == FIELD_NO_PART ? NULL : &variable->parts[target->part];
    uint32_t element = types_element(symbols, type), name;
    name = model_string(target->build->model, types_spell(symbols, element, text, sizeof text));
    if (!variable->type_source)
        variable->type_source = (uint8_t)source;
    if (part && !part->type) {
        part->type = name;
        part->element_bytes = types_size(symbols, element);
    } else if (!part && !variable->type) {
        variable->type = name;
        variable->element_bytes = types_size(symbols, element);
    }
}

/* A static variable: the symbol begins at start; a COMMON block holds several variables. */
static void add_static_offsets(struct target *target, struct symbols *symbols, uint64_t start)
{
    const struct spread *offsets = &target->access->offsets;
    bool is_tls = target->variable->class == CLASS_TLS;
    for (size_t i = 0; i < offsets->n; i++) {
        struct type_spot spot = {.kind = SPOT_NONE}, inner;
        uint64_t vaddr = start + offsets->entries[i].offset, first = 0;
        const char *name = NULL;
        uint32_t type = symbols ? types_of_static(symbols, vaddr, is_tls, &first, &name) : 0;
        if (type)
            find_spot(target, symbols, type, vaddr - first, &spot);
        bool is_other = type && name && strcmp(name, model_text(target->build->model, target->variable->name)) != 0 &&
                        types_size(symbols, type) < target->variable->size_bytes;
        if (type && !is_other)
            set_type(target, symbols, type, TYPE_FROM_DECLARATION);
        if (is_other && spot.kind != SPOT_NONE) { /* of a COMMON block */
            inner = spot;
            (void)snprintf(spot.path, sizeof spot.path, "/%.80s%.*s", name, TYPES_PATH_BYTES - 90, inner.path);
            spot.offset_bytes += first - start;
            spot.kind = SPOT_FIELD;
        }
        if (spot.kind == SPOT_NONE)
            add_untyped(target, (int64_t)offsets->entries[i].offset, offsets->entries[i].count);
        else
            add_spot(target, symbols, &spot, offsets->entries[i].count);
    }
}

/* Index of the part, FIELD_NO_PART if the variable itself is that local; false when it is neither. */
static bool part_index(const struct variable *variable, const struct variable_part *part, uint32_t *index)
{
    *index = FIELD_NO_PART;
    for (size_t i = 0; i < variable->n_parts; i++)
        if (variable->parts[i].name == part->name && variable->parts[i].file == part->file &&
            variable->parts[i].line == part->line)
            *index = (uint32_t)i;
    return *index != FIELD_NO_PART || (variable->n_parts == 0 && variable->name == part->name);
}

/* The field of a local variable, SPOT_NONE where the offset is not known well enough. */
static void find_local_spot(const struct target *target, struct symbols *symbols, const struct frame_spot *found,
                            struct type_spot *spot)
{
    bool is_known = found->offset_bytes != UINT64_MAX;
    find_spot(target, symbols, found->type, is_known ? found->offset_bytes : 0, spot);
    if (!is_known && strchr(spot->path, '.'))
        spot->kind = SPOT_NONE;
    for (uint64_t more = 16; more <= found->slack_bytes && spot->kind != SPOT_NONE; more += 16) {
        struct type_spot other = {.kind = SPOT_NONE};
        find_spot(target, symbols, found->type, found->offset_bytes + more, &other);
        if (other.kind != spot->kind || strcmp(other.path, spot->path) != 0)
            spot->kind = SPOT_NONE;
    }
}

static void add_stack_offsets(struct target *target, struct symbols *symbols, uint32_t node)
{
    const struct spread *offsets = &target->access->offsets;
    for (size_t i = 0; i < offsets->n; i++) {
        uint64_t count = offsets->entries[i].count;
        struct frame_spot found = {.type = 0};
        struct type_spot spot = {.kind = SPOT_NONE};
        bool is_found = frame_parts_find(target->build, node, target->access, offsets->entries[i].offset, &found) &&
                        part_index(target->variable, &found.part, &target->part);
        if (!is_found) {
            const struct variable *variable = target->variable; /* its rest is a part as well */
            struct variable_part frame = {.name = variable->name, .file = variable->file, .line = variable->line};
            (void)part_index(target->variable, &frame, &target->part);
            add_untyped(target, -(int64_t)offsets->entries[i].offset, count);
            continue;
        }
        set_type(target, symbols, found.type, TYPE_FROM_DECLARATION);
        find_local_spot(target, symbols, &found, &spot);
        bool is_exact = found.offset_bytes != UINT64_MAX && !found.slack_bytes;
        if (spot.kind == SPOT_NONE)
            add_untyped(target, (int64_t)(is_exact ? found.offset_bytes : -offsets->entries[i].offset), count);
        else
            add_spot(target, symbols, &spot, count);
    }
}

/* Joins offsets without type if there are many: one by one they say nothing. The counts [first, end) of its fields
 * follow. */
static bool join_untyped(struct model *model, struct variable *variable, size_t first, size_t end)
{
    size_t n_untyped = 0;
    bool ok = true;
    for (size_t i = 0; i < variable->n_fields; i++)
        n_untyped += (variable->fields[i].flags & FIELD_UNTYPED) != 0;
    if (n_untyped <= OFFSETS_SHOWN)
        return true;
    struct variable_field *fields = variable->fields;
    size_t n_fields = variable->n_fields;
    uint32_t *new_of = calloc(n_fields, sizeof *new_of);
    if (!new_of)
        return false;
    variable->fields = NULL;
    variable->n_fields = variable->cap_fields = 0;
    for (size_t i = 0; ok && i < n_fields; i++) {
        if (fields[i].flags & FIELD_UNTYPED) {
            fields[i].name = model_string(model, "<many offsets>");
            fields[i].offset_bytes = 0;
        }
        ok = model_add_field(variable, &fields[i], &new_of[i]);
    }
    for (size_t i = first; i < end; i++)
        model->field_counts[i].field = new_of[model->field_counts[i].field];
    free(new_of);
    free(fields);
    return ok;
}

static int compare_leaves(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    const uint64_t xs[] = {x->variable_node, x->module, x->ip, x->scope},
                   ys[] = {y->variable_node, y->module, y->ip, y->scope};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

/* The leaves below all variables, each scope once. False when out of memory. */
static bool list_leaves(const struct build *build, struct leaf **leaves, size_t *n_leaves)
{
    const struct raw_tree *tree = build->tree;
    uint32_t *around = malloc((tree->n_nodes + 1) * sizeof *around);
    size_t capacity = 0, n = 0;
    bool ok = around;
    *leaves = NULL;
    for (uint32_t i = 0; ok && i < tree->n_nodes; i++) {
        const struct raw_node *node = &tree->nodes[i];
        bool is_own = node->role == ROLE_VARIABLE || node->role == ROLE_REASON;
        around[i] = is_own ? i : i ? around[node->parent] : RAW_NONE;
        if (around[i] == RAW_NONE || is_own || !node->has_values || !node->own)
            continue;
        ok = vec_reserve(leaves, &capacity, n + 1, sizeof **leaves);
        if (ok)
            (*leaves)[n++] = (struct leaf){around[i], node->module, node->ip, node->own};
    }
    free(around);
    if (n)
        qsort(*leaves, n, sizeof **leaves, compare_leaves);
    *n_leaves = 0;
    for (size_t i = 0; i < n; i++)
        if (!*n_leaves || compare_leaves(&(*leaves)[*n_leaves - 1], &(*leaves)[i]) != 0)
            (*leaves)[(*n_leaves)++] = (*leaves)[i];
    return ok;
}

static bool is_leaf_before(const void *context, size_t i)
{
    const struct leaf *const *range = context; /* all leaves, and one like those that are looked for */
    return compare_leaves(&range[0][i], range[1]) < 0;
}

/* The leaves [n_leaves] of an access, out of all [n]. */
static void find_leaves(struct target *target, const struct leaf *leaves, size_t n)
{
    const struct node_access *access = target->access;
    struct leaf like = {access->node, access->module, access->vaddr, 0};
    const struct leaf *const range[] = {leaves, &like};
    size_t low = search_where(n, is_leaf_before, range), high = low;
    while (high < n && leaves[high].variable_node == like.variable_node && leaves[high].module == like.module &&
           leaves[high].ip == like.ip)
        high++;
    target->leaves = leaves ? leaves + low : NULL;
    target->n_leaves = high - low;
}

static void apply_node(struct build *build, uint32_t node, const struct node_access *accesses, size_t n,
                       const struct leaf *leaves, size_t n_leaves)
{
    if (node >= build->tree->n_nodes || build->tree->nodes[node].variable == RAW_NONE)
        return;
    const struct raw_node *raw = &build->tree->nodes[node];
    struct target target = {.build = build, .variable = &build->model->variables[raw->variable]};
    struct symbols *symbols = symbolizer_symbols(build->symbolizer, raw->module);
    if (target.variable->class == CLASS_UNATTRIBUTED) /* constants */
        return;
    bool is_heap = model_is_block(target.variable);
    struct typed_node *typed = is_heap ? find_typed(build, node) : NULL;
    if (typed && !typed->type.type)
        heap_type_by_accesses(build->symbolizer, build->source, accesses, n, typed->block_bytes, &typed->type);
    for (size_t i = 0; i < n; i++) {
        target.access = &accesses[i];
        target.part = FIELD_NO_PART;
        find_leaves(&target, leaves, n_leaves);
        target.before = line_of(build, &accesses[i], accesses[i].vaddr - 1);
        target.at = line_of(build, &accesses[i], accesses[i].vaddr);
        if (is_heap) {
            if (typed && typed->type.type)
                set_type(&target, typed->type.symbols, typed->type.type, typed->type.source);
            add_heap_offsets(&target, typed);
        } else if (target.variable->class == CLASS_STACK) {
            add_stack_offsets(&target, symbols, node);
        } else {
            add_static_offsets(&target, symbols, raw->ip - 1);
        }
    }
}

void fields_apply(struct build *build)
{
    struct model *model = build->model;
    struct leaf *leaves;
    size_t n_leaves, at = 0;
    bool ok = list_leaves(build, &leaves, &n_leaves);
    for (size_t i = 0; ok && i < build->accesses->n;) {
        size_t n = 0;
        uint32_t node = build->accesses->items[i].node;
        const struct node_access *accesses = accesses_of_node(build->accesses, node, &n);
        apply_node(build, node, accesses, n, leaves, n_leaves);
        i += n;
    }
    free(leaves);
    model_order_field_counts(model);
    for (size_t i = 0; ok && i < model->n_variables; i++) {
        size_t first = at;
        while (at < model->n_field_counts && model->field_counts[at].variable == i)
            at++;
        ok = join_untyped(model, &model->variables[i], first, at);
    }
    build->builder.failed |= !ok;
    free(build->typed);
    build->typed = NULL;
}

/* --- variables of the model --- */

/* The rows of the table of variables: when two nodes of the data-centric tree are the same variable, and what it is
 * called. */

const struct side_row *variables_side(const struct build *build, uint32_t node, size_t *n)
{
    size_t low = search_below(build->sides->rows, build->sides->n, SEARCH_KEY(struct side_row, node), node);
    for (*n = 0; low + *n < build->sides->n && build->sides->rows[low + *n].node == node; (*n)++)
        ;
    return *n ? &build->sides->rows[low] : NULL;
}

static const struct side_row *find_side(const struct build *build, uint32_t node)
{
    size_t n;
    return variables_side(build, node, &n);
}

/* The row with this key, added as a copy of proto when new; takes the parts of proto. RAW_NONE when out of memory. */
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

/* Makes the variable's scope below parent and links row and scope. vaddr: as in struct scope. */
static uint32_t finish(struct build *build, uint32_t row, uint32_t parent, enum scope_role role, uint32_t node_type,
                       uint64_t vaddr)
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
                          .line = variable->line,
                          .vaddr = vaddr};
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
    size_t n_frames = symbolizer_lookup_any(build->symbolizer, node->module, vaddr, &frames);
    if (!vec_reserve(path, capacity, *n + n_frames, sizeof **path)) {
        build->builder.failed = true;
        return;
    }
    for (size_t i = n_frames; i-- > 0;)
        (*path)[(*n)++] =
            (struct path_frame){.code = frames[i], .module = node->module, .vaddr = vaddr, .inlined = i > 0};
}

/* Key of a heap variable: its name, and its path with recursion removed, so that a list built recursively is one
 * variable. */
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

/* Names blocks that have no record and no variable by their size and place. If sizes differ they are rounded, so that
 * they do not split the paths to one place. */
static void name_small(const struct build *build, const struct side_row *side, const struct code_frame *site,
                       struct heap_name *name)
{
    const char *function = model_text(build->model, site->function), *file = model_text(build->model, site->file);
    char sizes[40], place[88];
    uint64_t rounded = 16;
    while (rounded < side->max_small_bytes)
        rounded *= 2;
    if (side->min_small_bytes == side->max_small_bytes)
        (void)snprintf(sizes, sizeof sizes, "%llu B", (unsigned long long)side->max_small_bytes);
    else
        (void)snprintf(sizes, sizeof sizes, "up to %llu B", (unsigned long long)rounded);
    if (site->line)
        (void)snprintf(place, sizeof place, "%.70s:%u", path_last(file), site->line);
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
        return finish(build, RAW_NONE, parent, ROLE_VARIABLE, 0, 0);
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
    const char *of_python = proto.class == CLASS_MMAP && side->n_blocks && side->bytes % side->n_blocks == 0
                                ? heap_python_memory(build->symbolizer, path, side->bytes / side->n_blocks)
                                : NULL;
    if (of_python)
        proto.name = model_string(build->model, of_python);
    buf_printf(&key, "%d/%s", proto.class, of_python ? of_python : name.name);
    if (!of_python)
        append_path_key(path, n, &key);
    uint32_t row = key.data ? find_or_add(build, key.data, &proto) : RAW_NONE;
    buf_fini(&key);
    fields_add_site(build, index, path, &name);
    free(path);
    const struct raw_node *node = &nodes[index];
    const struct code_frame *frames;
    if (symbolizer_is_runtime(build->symbolizer, node->module)) {
        build->tree->nodes[index].variable = row;
        return finish(build, row, parent, ROLE_VARIABLE, HPCRUN_NODE_ALLOCATION, 0);
    }
    size_t n_frames = symbolizer_lookup(build->symbolizer, node->module, node->ip - 1, &frames);
    uint32_t at = scopes_add_frames(&build->builder, parent, frames, n_frames,
                                    model_string(build->model, symbolizer_path(build->symbolizer, node->module)));
    uint32_t call = build_add_call(build, node->module, at, &frames[n_frames - 1], node->ip - 1);
    build->tree->nodes[index].variable = row;
    return finish(build, row, call, ROLE_VARIABLE, HPCRUN_NODE_ALLOCATION, node->ip);
}

/* The name in a side file: that of a section, "app .bss", begins with the file of the module. */
static uint32_t name_of_side(struct build *build, uint32_t module, uint32_t side_name)
{
    char name[400];
    const char *base = path_last(symbolizer_path(build->symbolizer, module));
    const char *shown = symbolizer_name(build->symbolizer, module), *text = model_text(build->model, side_name);
    size_t len = strlen(base);
    if (strcmp(base, shown) == 0 || strncmp(text, base, len) != 0 || strncmp(text + len, " .", 2) != 0)
        return side_name;
    (void)snprintf(name, sizeof name, "%.300s%.80s", shown, text + len);
    return model_string(build->model, name);
}

/* Name and declaration of a static or thread-local variable, from the module, else from the side file. */
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
        const char *module = symbolizer_name(build->symbolizer, node->module);
        if (proto->class == CLASS_TLS && node->ip <= 1) /* an offset, not an address: 0 says nothing */
            (void)snprintf(name, sizeof name, "thread-local data [%.300s]", module);
        else
            (void)snprintf(name, sizeof name, "0x%llx [%.300s]", (unsigned long long)(node->ip - 1), module);
        proto->name =
            side && side->name ? name_of_side(build, node->module, side->name) : model_string(build->model, name);
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
    bool is_readable = *assign_name_parameters(function) == '('; /* "func_0x6a43 [app]" is a name as it stands */
    const char *blank = strncmp(function, "0x", 2) == 0 ? strchr(function, ' ') : NULL; /* "0x6a43 [app]" is none */
    if (blank)
        (void)snprintf(name, sizeof name, "stack of unknown function%.130s", blank);
    else
        (void)snprintf(name, sizeof name, "stack of %.140s", is_readable && *qualified ? qualified : function);
    proto->name = model_string(build->model, name);
    struct symbols *symbols = symbolizer_symbols(build->symbolizer, node->module);
    if (symbols && node->ip)
        (void)frame_parts_collect(build, index, symbols, proto);
}

static uint32_t add_reason(struct build *build, const char *placeholder, uint32_t parent, uint32_t *out_row)
{
    char reason[128], key[160], title[132];
    enum variable_class class = CLASS_UNKNOWN;
    if (placeholder)
        class = placeholders_reason(placeholder, reason, sizeof reason);
    else
        (void)snprintf(reason, sizeof reason, "unknown");
    (void)snprintf(key, sizeof key, "%d/%s", class, reason);
    (void)snprintf(title, sizeof title, "<%.120s>", reason);
    struct variable proto = {.class = (uint8_t) class, .name = model_string(build->model, title)};
    uint32_t row = find_or_add(build, key, &proto);
    *out_row = row;
    return finish(build, row, parent, ROLE_REASON, HPCRUN_NODE_UNKNOWN_ATTRIBUTE, 0);
}

/* What lies in a variable, but is none of the program's data: a reason of that name instead. */
static uint32_t add_as_reason(struct build *build, uint32_t index, uint32_t parent, const char *placeholder)
{
    const struct model *model = build->model;
    struct scope unknown = {.kind = SCOPE_PROC,
                            .role = ROLE_UNKNOWN,
                            .node_type = HPCRUN_NODE_UNKNOWN_ATTRIBUTE,
                            .name = model_string(build->model, placeholders_title(ROLE_UNKNOWN)),
                            .file = model->scopes[parent].file,
                            .module = model->scopes[parent].module};
    parent = scopes_child(&build->builder, model->scopes[parent].parent, &unknown);
    return add_reason(build, placeholder, parent, &build->tree->nodes[index].variable);
}

#define CONSTANTS_SECTION " .rodata"
#define CONSTANTS_BYTES 32768

/* Whether a static variable is what compilers put aside as constants: a section of them without symbols, so small that
 * the first-level cache keeps it. Their time is that of the code that uses them. */
static bool is_constants(const struct build *build, uint32_t index, const struct variable *proto)
{
    const char *section = strrchr(model_text(build->model, proto->name), ' ');
    const struct side_row *side = find_side(build, index);
    bool is_named = section && strncmp(section, CONSTANTS_SECTION, strlen(CONSTANTS_SECTION)) == 0;
    return is_named && side && side->most_bytes > 0 && side->most_bytes <= CONSTANTS_BYTES;
}

#define OWN_SECTION "locus_text" /* in a static program that hpclink has made: the profiler's code */

/* Whether the function whose frame holds the variable is the profiler's. */
static bool is_own_frame(const struct build *build, const struct raw_node *node)
{
    struct symbols *symbols = symbolizer_symbols(build->symbolizer, node->module);
    return symbols && node->ip && symbols_is_in_section(symbols, node->ip, OWN_SECTION);
}

static uint32_t add_by_address(struct build *build, uint32_t index, uint32_t parent, enum variable_class class)
{
    const struct raw_node *node = &build->tree->nodes[index];
    const char *path = symbolizer_path(build->symbolizer, node->module);
    struct variable proto = {.class = (uint8_t) class, .module = model_string(build->model, path)};
    char key[512];
    if (symbolizer_is_runtime(build->symbolizer, node->module) || (class == CLASS_STACK && is_own_frame(build, node)))
        return add_as_reason(build, index, parent, "DATACENTRIC_Unknown_Profiler");
    if (class == CLASS_STACK)
        describe_stack(build, index, &proto);
    else if (class == CLASS_FILE)
        proto.name = model_string(build->model, *path ? path : "<unknown file mapping>");
    else
        describe_static(build, index, &proto);
    if (class == CLASS_STATIC && is_constants(build, index, &proto))
        return add_as_reason(build, index, parent, "DATACENTRIC_No_Compute");
    (void)snprintf(key, sizeof key, "%d/%x/%x/%x/%x", class, proto.name, proto.module, proto.file, proto.line);
    uint32_t row = find_or_add(build, key, &proto);
    build->tree->nodes[index].variable = row;
    uint64_t vaddr = class == CLASS_STATIC && node->ip ? node->ip - 1 : 0;
    return finish(build, row, parent, ROLE_VARIABLE, node->type ? node->type : HPCRUN_NODE_GLOBAL_VARIABLE, vaddr);
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
        } else if (variable->class < CLASS_UNKNOWN) {
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
