/* SPDX-License-Identifier: BSD-3-Clause */
/* From offsets to fields: every place where samples lie in a variable becomes the field that its type has there. What
 * has no type keeps its offset, so that the samples of the fields add up to those whose place is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build.h"
#include "analysis/heap-type.h"
#include "structure/types-path.h"

#define OFFSETS_SHOWN 32 /* different offsets of one variable without type */
#define UNTYPED_NAME "<offset %+lld>"

struct typed_node {
    uint32_t node;
    uint64_t block_bytes; /* mean, 0 = not known */
    struct heap_type type;
};

/* Whose fields are being made. */
struct target {
    struct build *build;
    struct variable *variable;
    const struct access *access;
    uint32_t part;
    const char *before, *at; /* source lines of the instruction before the sample and of its own; NULL: not known */
};

/* Mean size of the blocks of a node over all threads. */
static uint64_t block_bytes(const struct build *build, uint32_t node)
{
    size_t n;
    uint64_t bytes = 0, blocks = 0, small = 0; /* small: of blocks without a record that are all of one size */
    const struct side_row *rows = variables_side(build, node, &n);
    for (size_t i = 0; i < n; i++) {
        bytes += rows[i].bytes;
        blocks += rows[i].n_blocks;
        if (rows[i].min_small_bytes == rows[i].max_small_bytes)
            small = rows[i].max_small_bytes;
    }
    return blocks ? bytes / blocks : small;
}

void fields_note_site(struct build *build, uint32_t node, const struct path_frame *path, const struct heap_name *name)
{
    if (!vec_reserve(&build->typed, &build->cap_typed, build->n_typed + 1, sizeof *build->typed))
        return;
    struct typed_node *typed = &build->typed[build->n_typed++];
    *typed = (struct typed_node){.node = node, .block_bytes = block_bytes(build, node)};
    if (!symbolizer_is_python(build->symbolizer, path[name->site].module))
        heap_type_find(build->symbolizer, build->source, path, name, typed->block_bytes, &typed->type);
}

/* Heap nodes were noted in the order of their index. */
static struct typed_node *find_typed(const struct build *build, uint32_t node)
{
    size_t low = 0, high = build->n_typed;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (build->typed[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < build->n_typed && build->typed[low].node == node ? &build->typed[low] : NULL;
}

static const char *line_of(const struct build *build, const struct access *access, uint64_t vaddr)
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

static void add_untyped(const struct target *target, int64_t offset, uint64_t samples)
{
    struct variable_field field = {
        .event = target->access->event, .part = target->part, .flags = FIELD_UNTYPED, .samples = samples};
    char name[64];
    (void)snprintf(name, sizeof name, UNTYPED_NAME, (long long)offset);
    field.name = model_string(target->build->model, name);
    field.offset_bytes = (uint64_t)offset;
    (void)model_add_field(target->variable, &field);
}

/* A path to a member of the one structure that a pointer points to. */
static const char *pointer_path(const struct target *target, const struct type_spot *spot, char *text, size_t size)
{
    bool is_block = target->variable->class == CLASS_HEAP || target->variable->class == CLASS_MMAP;
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
    (void)model_add_field(target->variable, &field);
}

/* Spots of one object, with the source lines tried where fields share a place: first that of the access. */
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
    if (type->tail && size) {
        if (offset < size) {
            find_spot(target, type->symbols, type->type, offset, spot);
            return;
        }
        struct type_spot inner;
        types_spot_in_block(type->symbols, type->tail, 0, 0, offset - size, target->before, &inner);
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

/* Index of the part, FIELD_NO_PART where the variable is that local; false when it is neither. */
static bool part_index(const struct variable *variable, const struct variable_part *part, uint32_t *index)
{
    *index = FIELD_NO_PART;
    for (size_t i = 0; i < variable->n_parts; i++)
        if (variable->parts[i].name == part->name && variable->parts[i].file == part->file &&
            variable->parts[i].line == part->line)
            *index = (uint32_t)i;
    return *index != FIELD_NO_PART || (variable->n_parts == 0 && variable->name == part->name);
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
            struct variable_part frame = {.name = 0};
            (void)part_index(target->variable, &frame, &target->part);
            add_untyped(target, -(int64_t)offsets->entries[i].offset, count);
            continue;
        }
        set_type(target, symbols, found.type, TYPE_FROM_DECLARATION);
        find_spot(target, symbols, found.type, found.offset_bytes == UINT64_MAX ? 0 : found.offset_bytes, &spot);
        if (spot.kind == SPOT_NONE)
            add_untyped(target, (int64_t)found.offset_bytes, count);
        else
            add_spot(target, symbols, &spot, count);
    }
}

/* Where many offsets without type are known, they say nothing one by one. */
static void join_untyped(struct model *model, struct variable *variable)
{
    size_t n_untyped = 0, n = 0;
    for (size_t i = 0; i < variable->n_fields; i++)
        n_untyped += (variable->fields[i].flags & FIELD_UNTYPED) != 0;
    if (n_untyped <= OFFSETS_SHOWN)
        return;
    struct variable_field *fields = variable->fields;
    size_t n_fields = variable->n_fields;
    variable->fields = NULL;
    variable->n_fields = variable->cap_fields = 0;
    for (; n < n_fields; n++) {
        if (fields[n].flags & FIELD_UNTYPED) {
            fields[n].name = model_string(model, "<many offsets>");
            fields[n].offset_bytes = 0;
        }
        (void)model_add_field(variable, &fields[n]);
    }
    free(fields);
}

static void apply_node(struct build *build, uint32_t node, const struct access *accesses, size_t n)
{
    if (node >= build->tree->n_nodes || build->tree->nodes[node].variable == RAW_NONE)
        return;
    const struct raw_node *raw = &build->tree->nodes[node];
    struct target target = {.build = build, .variable = &build->model->variables[raw->variable]};
    struct symbols *symbols = symbolizer_symbols(build->symbolizer, raw->module);
    bool is_heap = target.variable->class == CLASS_HEAP || target.variable->class == CLASS_MMAP;
    struct typed_node *typed = is_heap ? find_typed(build, node) : NULL;
    if (typed && !typed->type.type)
        heap_type_by_accesses(build->symbolizer, build->source, accesses, n, typed->block_bytes, &typed->type);
    for (size_t i = 0; i < n; i++) {
        target.access = &accesses[i];
        target.part = FIELD_NO_PART;
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
    for (size_t i = 0; i < build->accesses->n;) {
        size_t n = 0;
        uint32_t node = build->accesses->items[i].node;
        const struct access *accesses = accesses_of_node(build->accesses, node, &n);
        apply_node(build, node, accesses, n);
        i += n;
    }
    for (size_t i = 0; i < build->model->n_variables; i++)
        join_untyped(build->model, &build->model->variables[i]);
    free(build->typed);
    build->typed = NULL;
}
