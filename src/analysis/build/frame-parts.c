/* SPDX-License-Identifier: BSD-3-Clause */
/* The local variables of a stack frame that samples lie in: of the running function, or of a caller that passed its
 * arrays. A local is named with its function, "main()::grid". */
#include "analysis/build/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/symbolize.h"
#include "structure/names/assign-name.h"
#include "structure/types/locals.h"

#define ONLY_PART 0.98 /* of the samples: then the frame is that local */

/* The part with this name and declaration, added when new; NULL when out of memory. */
static struct variable_part *find_part(struct variable *variable, const struct variable_part *proto)
{
    for (size_t i = 0; i < variable->n_parts; i++) {
        struct variable_part *part = &variable->parts[i];
        if (part->name == proto->name && part->file == proto->file && part->line == proto->line)
            return part;
    }
    if (!vec_reserve(&variable->parts, &variable->cap_parts, variable->n_parts + 1, sizeof *variable->parts))
        return NULL;
    variable->parts[variable->n_parts] = *proto;
    return &variable->parts[variable->n_parts++];
}

static uint32_t local_name(struct build *build, const char *function, const char *name)
{
    char text[400], qualified[200];
    if (!function)
        return model_string(build->model, name);
    (void)assign_name_function(function, qualified, sizeof qualified);
    (void)snprintf(text, sizeof text, "%.190s()::%.190s", qualified, name);
    return model_string(build->model, text);
}

/* The address of an access if it lies in the function that contains vaddr, else 0. */
static uint64_t own_pc(struct build *build, const struct raw_node *node, const struct node_access *access)
{
    const struct code_frame *frames;
    if (!access || access->module != node->module)
        return 0;
    (void)symbolizer_lookup(build->symbolizer, node->module, node->ip - 1, &frames);
    uint64_t low = frames[0].low_vaddr;
    (void)symbolizer_lookup(build->symbolizer, node->module, access->vaddr, &frames);
    return low && frames[0].low_vaddr == low ? access->vaddr : 0;
}

/* Names a place where the compiler keeps a value that is no variable's. */
static void take_spill(struct build *build, const struct raw_node *node, struct frame_spot *spot)
{
    const struct code_frame *frames;
    char text[400], qualified[200];
    (void)symbolizer_lookup(build->symbolizer, node->module, node->ip - 1, &frames);
    (void)assign_name_function(symbolizer_text(build->symbolizer, frames[0].function), qualified, sizeof qualified);
    (void)snprintf(text, sizeof text, "spill slot in %.190s", qualified);
    *spot = (struct frame_spot){.part = {.name = model_string(build->model, text),
                                         .file = frames[0].decl_file,
                                         .line = frames[0].decl_line,
                                         .size_bytes = sizeof(uint64_t)}};
}

bool frame_parts_find(struct build *build, uint32_t index, const struct node_access *access, uint64_t distance_bytes,
                      struct frame_spot *spot)
{
    const struct raw_node *node = &build->tree->nodes[index];
    struct symbols *symbols = symbolizer_symbols(build->symbolizer, node->module);
    if (!symbols || !node->ip || distance_bytes > INT64_MAX)
        return false;
    struct local_spot found;
    const struct local *local =
        locals_at(symbols, node->ip - 1, own_pc(build, node, access), (int64_t)distance_bytes, &found);
    if (found.is_spill)
        take_spill(build, node, spot);
    if (!local)
        return found.is_spill;
    spot->offset_bytes = found.offset_bytes;
    spot->slack_bytes = found.slack_bytes;
    spot->type = local->type;
    spot->part = (struct variable_part){.name = local_name(build, local->function, local->name),
                                        .file = model_string(build->model, local->decl_file),
                                        .line = local->decl_line,
                                        .size_bytes = local->size_bytes};
    return true;
}

static double add_part(struct variable *proto, const struct variable_part *part, double samples)
{
    struct variable_part *found = find_part(proto, part);
    if (found)
        found->fraction += samples;
    return found ? samples : 0;
}

/* Adds samples to a line. */
static void count_line(struct variable *variable, const struct part_line *line)
{
    for (size_t i = 0; i < variable->n_part_lines; i++) {
        struct part_line *known = &variable->part_lines[i];
        if (known->part == line->part && known->function == line->function && known->file == line->file &&
            known->line == line->line && known->loop.first == line->loop.first && known->loop.file == line->loop.file) {
            known->samples += line->samples;
            return;
        }
    }
    if (vec_reserve(&variable->part_lines, &variable->cap_part_lines, variable->n_part_lines + 1, sizeof *line))
        variable->part_lines[variable->n_part_lines++] = *line;
}

/* Finds the line and function of the access. */
static void add_line(struct build *build, struct variable *proto, const struct variable_part *part,
                     const struct node_access *access, uint64_t samples)
{
    const struct code_frame *frames;
    size_t n = symbolizer_lookup(build->symbolizer, access->module, access->vaddr, &frames);
    uint32_t index = 0;
    for (; index < proto->n_parts; index++) {
        const struct variable_part *known = &proto->parts[index];
        if (known->name == part->name && known->file == part->file && known->line == part->line)
            break;
    }
    const struct code_loop *loop = NULL;
    for (size_t i = n; i-- > 0 && !loop;)
        loop = frames[i].loop;
    const struct part_line line = {.part = index,
                                   .function = frames[n - 1].function,
                                   .file = frames[n - 1].file,
                                   .line = frames[n - 1].line,
                                   .loop = loop ? (struct loop_lines){loop->file, loop->line, loop->end_line}
                                                : (struct loop_lines){0},
                                   .samples = samples};
    count_line(proto, &line);
}

/* Samples of the other events on the parts of a frame. */
struct other_samples {
    double *parts; /* [capacity] */
    size_t capacity;
    double total;
};

/* Adds the part of another event's samples, without a share of those of the first event. */
static void add_other(struct variable *proto, const struct variable_part *part, uint64_t samples,
                      struct other_samples *others)
{
    const struct variable_part *found = find_part(proto, part);
    size_t index = found ? (size_t)(found - proto->parts) : 0, before = others->capacity;
    if (!found || !vec_reserve(&others->parts, &others->capacity, index + 1, sizeof *others->parts))
        return;
    for (size_t i = before; i < others->capacity; i++)
        others->parts[i] = 0;
    others->parts[index] += (double)samples;
    others->total += (double)samples;
}

/* Splits the frame by the offsets of the first event with addresses; those of the others say which parts there are. */
static double collect_by_accesses(struct build *build, uint32_t index, struct variable *proto,
                                  struct other_samples *others)
{
    size_t n;
    double total = 0;
    const struct node_access *accesses = accesses_of_node(build->accesses, index, &n);
    uint32_t event = UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        event = accesses[i].event < event ? accesses[i].event : event;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < accesses[i].offsets.n; j++) {
            const struct spread_entry *entry = &accesses[i].offsets.entries[j];
            struct frame_spot spot = {.part = {.name = proto->name, .file = proto->file, .line = proto->line}};
            (void)frame_parts_find(build, index, &accesses[i], entry->offset, &spot);
            if (accesses[i].event != event) {
                add_other(proto, &spot.part, entry->count, others);
                continue;
            }
            total += add_part(proto, &spot.part, (double)entry->count);
            add_line(build, proto, &spot.part, &accesses[i], entry->count);
        }
    return total;
}

/* Splits the frame by granules of 16 bytes. Only older side files, and those made of perf's files, have them. */
static double collect_by_granules(struct build *build, uint32_t index, struct symbols *symbols, struct variable *proto)
{
    size_t n;
    double total = 0;
    const struct side_row *side = variables_side(build, index, &n);
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < side[r].n_stack_offsets; i++) {
            const int64_t *pair = &side[r].stack_offsets[2 * i];
            struct symbols_data data = {0};
            struct variable_part part = {.name = proto->name, .file = proto->file, .line = proto->line};
            if (symbols_stack_at(symbols, build->tree->nodes[index].ip - 1, pair[0], &data))
                part = (struct variable_part){
                    .name = local_name(build, symbolizer_text(build->symbolizer, proto->function), data.name),
                    .file = model_string(build->model, data.decl_file),
                    .line = data.decl_line,
                    .size_bytes = data.size_bytes};
            total += add_part(proto, &part, (double)pair[1]);
        }
    return total;
}

/* Turns a frame whose samples nearly all lie in one variable, those of every event, into that variable. */
static bool take_only_part(struct variable *proto, const struct other_samples *others)
{
    for (size_t i = 0; i < proto->n_parts; i++) {
        const struct variable_part part = proto->parts[i];
        double of_others = i < others->capacity ? others->parts[i] : 0;
        if (part.fraction < ONLY_PART || of_others < ONLY_PART * others->total)
            continue;
        proto->name = part.name;
        proto->file = part.file;
        proto->line = part.line;
        proto->size_bytes = part.size_bytes;
        proto->n_blocks = part.size_bytes > 0;
        free(proto->parts);
        proto->parts = NULL;
        proto->n_parts = proto->cap_parts = 0;
        free(proto->part_lines);
        proto->part_lines = NULL;
        proto->n_part_lines = proto->cap_part_lines = 0;
        return true;
    }
    return false;
}

bool frame_parts_collect(struct build *build, uint32_t index, struct symbols *symbols, struct variable *proto)
{
    struct other_samples others = {0};
    double total = collect_by_accesses(build, index, proto, &others);
    total += collect_by_granules(build, index, symbols, proto);
    for (size_t i = 0; i < proto->n_parts && total > 0; i++)
        proto->parts[i].fraction /= total;
    bool is_one = take_only_part(proto, &others);
    free(others.parts);
    return is_one;
}

/* The number of samples that the shares of the parts refer to; 0 when the lines do not say. */
static double count_samples(const struct variable *variable)
{
    double n = 0;
    for (size_t i = 0; i < variable->n_part_lines; i++)
        n += (double)variable->part_lines[i].samples;
    return n;
}

/* The samples of a part, out of n: rounded, because the share comes from whole numbers. */
static double part_samples(const struct variable_part *part, double n)
{
    double samples = part->fraction * n;
    return samples >= 0 && samples < 9e15 ? (double)(uint64_t)(samples + 0.5) : 0;
}

/* Index of the variable's part that equals another variable's, added without samples when new; UINT32_MAX when out of
 * memory. */
static uint32_t adopt_part(struct variable *variable, const struct variable_part *part)
{
    size_t n_before = variable->n_parts;
    const struct variable_part *found = find_part(variable, part);
    if (!found)
        return UINT32_MAX;
    uint32_t index = (uint32_t)(found - variable->parts);
    if (variable->n_parts > n_before)
        variable->parts[index].fraction = 0;
    return index;
}

static void merge_lines(struct variable *variable, const struct variable *other, const uint32_t *index_of)
{
    for (size_t i = 0; i < other->n_part_lines; i++) {
        struct part_line line = other->part_lines[i];
        line.part = line.part < other->n_parts ? index_of[line.part] : UINT32_MAX;
        if (line.part != UINT32_MAX)
            count_line(variable, &line);
    }
}

void frame_parts_merge(struct variable *variable, const struct variable *other)
{
    double n_own = count_samples(variable), n_other = count_samples(other);
    uint32_t *index_of = calloc(other->n_parts + 1, sizeof *index_of);
    if (!index_of || n_own == 0 || n_other == 0) {
        free(index_of);
        return;
    }
    for (size_t i = 0; i < variable->n_parts; i++)
        variable->parts[i].fraction = part_samples(&variable->parts[i], n_own);
    for (size_t i = 0; i < other->n_parts; i++) {
        index_of[i] = adopt_part(variable, &other->parts[i]);
        if (index_of[i] != UINT32_MAX)
            variable->parts[index_of[i]].fraction += part_samples(&other->parts[i], n_other);
    }
    merge_lines(variable, other, index_of);
    for (size_t i = 0; i < variable->n_parts; i++)
        variable->parts[i].fraction /= n_own + n_other;
    free(index_of);
}
