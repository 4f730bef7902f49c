/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the tree of contexts in meta.db, breadth first and without recursion: siblings lie next to each other in the
 * file, and the list of contexts read so far is the queue of those whose children come next. */
#include <stdlib.h>
#include <string.h>

#include "fmt/v4-wire.h"

enum { SECTION_TREE = 3, CONTEXT_BYTES = 32, ENTRY_BYTES = 32 };

struct reading {
    struct v4_in *in;
    const struct v4_table *modules, *files, *functions;
    size_t capacity, n_max; /* contexts; no file holds more than n_max */
    uint64_t *places;       /* [cap_places] where each context is */
    size_t cap_places;
};

/* Takes the fields that the flags say are there. */
static void read_flex(const struct reading *reading, uint64_t at, uint64_t n_words, struct v4_context *context)
{
    static const unsigned n_of[] = {[V4_HAS_FUNCTION] = 1, [V4_HAS_SOURCE] = 2, [V4_HAS_POINT] = 2};
    struct v4_in *in = reading->in;
    unsigned n_needed = 0;
    for (unsigned bit = 1; bit <= V4_HAS_POINT; bit *= 2)
        n_needed += context->flags & bit ? n_of[bit] : 0;
    if (!in->code && n_needed > n_words)
        v4_fail(in, at, ERR_FORMAT, "a context has %u words of fields, its flags need %u", (unsigned)n_words, n_needed);
    at += CONTEXT_BYTES;
    if (context->flags & V4_HAS_FUNCTION) {
        context->function = v4_get_index(in, v4_get(in, at, 8), reading->functions, "the function of a context");
        at += 8;
    }
    if (context->flags & V4_HAS_SOURCE) {
        context->file = v4_get_index(in, v4_get(in, at, 8), reading->files, "the file of a context");
        context->line = (uint32_t)v4_get(in, at + 8, 4);
        at += 16;
    }
    if (context->flags & V4_HAS_POINT) {
        context->module = v4_get_index(in, v4_get(in, at, 8), reading->modules, "the module of a context");
        context->offset = v4_get(in, at + 8, 8);
    }
}

static bool make_room(struct reading *reading, uint64_t at)
{
    struct v4_in *in = reading->in;
    struct v4_meta *meta = &in->file->meta;
    if (meta->n_contexts >= reading->n_max)
        v4_fail(in, at, ERR_FORMAT, "there are more contexts than the file has room for: some are their own parents");
    else if (!vec_reserve(&meta->contexts, &reading->capacity, meta->n_contexts + 1, sizeof *meta->contexts) ||
             !vec_reserve(&reading->places, &reading->cap_places, meta->n_contexts + 1, sizeof *reading->places))
        v4_fail(in, at, ERR_MEMORY, "out of memory for %zu contexts", meta->n_contexts);
    return !in->code;
}

/* Reads the contexts in len_bytes at place, children of parent. */
static uint32_t read_list(struct reading *reading, uint64_t place, uint64_t len_bytes, uint32_t parent)
{
    struct v4_in *in = reading->in;
    struct v4_meta *meta = &in->file->meta;
    uint32_t n = 0;
    if (!v4_has(in, place, len_bytes, 1, "the children of a context"))
        return 0;
    for (uint64_t at = place, end = place + len_bytes; !in->code && at < end; n++) {
        uint64_t n_words = v4_get(in, at + 23, 1), n_bytes = CONTEXT_BYTES + 8 * n_words;
        if (n_bytes > end - at)
            v4_fail(in, at, ERR_FORMAT, "a context of %u bytes is longer than its list", (unsigned)n_bytes);
        if (in->code || !make_room(reading, at))
            break;
        struct v4_context *context = &meta->contexts[meta->n_contexts];
        *context = (struct v4_context){.ctx_id = (uint32_t)v4_get(in, at + 16, 4), .parent = parent};
        context->flags = (uint8_t)v4_get(in, at + 20, 1);
        context->relation = (uint8_t)v4_get(in, at + 21, 1);
        context->lexical = (uint8_t)v4_get(in, at + 22, 1);
        context->propagation = (uint16_t)v4_get(in, at + 24, 2);
        read_flex(reading, at, n_words, context);
        reading->places[meta->n_contexts++] = at;
        at += n_bytes;
    }
    return n;
}

static void read_entries(struct reading *reading)
{
    struct v4_in *in = reading->in;
    struct v4_meta *meta = &in->file->meta;
    struct v4_section section = v4_get_section(in, SECTION_TREE, 11, "Context Tree");
    uint64_t list = v4_get(in, section.offset, 8), n = v4_get(in, section.offset + 8, 2);
    uint64_t stride = v4_get(in, section.offset + 10, 1);
    reading->n_max = in->len_bytes / CONTEXT_BYTES;
    if (!in->code && n && stride < ENTRY_BYTES)
        v4_fail(in, section.offset + 10, ERR_FORMAT, "entry points of %u bytes, at least 32 are needed",
                (unsigned)stride);
    if (v4_has(in, list, n, stride, "entry points"))
        meta->entries = v4_alloc(in, n, sizeof *meta->entries);
    meta->n_entries = meta->entries ? n : 0;
    for (size_t i = 0; i < meta->n_entries; i++) {
        uint64_t at = list + i * stride;
        struct v4_entry *entry = &meta->entries[i];
        entry->ctx_id = (uint32_t)v4_get(in, at + 16, 4);
        entry->kind = (uint16_t)v4_get(in, at + 20, 2);
        entry->name = v4_get_text(in, v4_get(in, at + 24, 8), "the name of an entry point");
        entry->first_child = (uint32_t)meta->n_contexts;
        entry->n_children = read_list(reading, v4_get(in, at + 8, 8), v4_get(in, at, 8), 0);
    }
}

void v4_read_tree(struct v4_in *in, const struct v4_table *modules, const struct v4_table *files,
                  const struct v4_table *functions)
{
    struct v4_meta *meta = &in->file->meta;
    struct reading reading = {.in = in, .modules = modules, .files = files, .functions = functions};
    read_entries(&reading);
    for (size_t i = 0; !in->code && i < meta->n_contexts; i++) {
        uint64_t at = reading.places[i];
        uint32_t first = (uint32_t)meta->n_contexts;
        uint32_t n = read_list(&reading, v4_get(in, at + 8, 8), v4_get(in, at, 8), (uint32_t)i + 1);
        meta->contexts[i].first_child = first;
        meta->contexts[i].n_children = n;
    }
    free(reading.places);
}
