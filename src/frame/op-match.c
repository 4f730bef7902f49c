/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rows of two flat frames are about the same thing. Names alone would add up what only has the same name, such as
 * the static functions "init" of two files or libraries; names and places alone would not find what was moved. So the
 * nearest places of each name are brought together first, and what is left of a name on both sides in the end. A lambda
 * has its line in its name, which changes when the file does: those that are left of a place follow each other as
 * before. */
#include "frame/ops.h"

#include <stdlib.h>
#include <string.h>

#include "frame/op-shape.h"

/* How many folders and files at the end of a path must be the same, step by step; 0: the whole path. */
static const unsigned tails[] = {0, 3, 2, 1};

struct entry {
    const char *name, *place, *library; /* library: ends len characters further on */
    int len;
    uint32_t line; /* in the name; 0: none */
    uint32_t side, node;
};

/* The entries of a name that have the same place, library and line. */
struct placed {
    const char *place, *library;
    int len;
    uint32_t line;
    size_t first, end;
    unsigned sides; /* a bit for each side that has it */
};

struct matching {
    struct frame *const *frames; /* [2] */
    struct entry *entries;       /* [n_entries] in order of names and places */
    size_t n_entries;
    struct placed *left; /* [n_left] of one name, not brought together yet */
    size_t n_left;
    uint32_t *keys[2]; /* [n_nodes] text of what a node is, in the frame's own texts */
};

/* Where the line ends that a name has at a place, as in "{lambda at a.cc:7}"; the place itself where there is none. */
static const char *line_end(const char *at)
{
    size_t n = *at == ':' ? strspn(at + 1, "0123456789") : 0;
    return n && at[n + 1] == '}' ? at + n + 1 : at;
}

/* Compares names without the lines in them. */
static int compare_names(const char *a, const char *b)
{
    for (;; a++, b++) {
        a = line_end(a);
        b = line_end(b);
        if (*a != *b || !*a)
            return (unsigned char)*a - (unsigned char)*b;
    }
}

static uint32_t line_in(const char *name)
{
    for (; *name; name++)
        if (line_end(name) != name)
            return (uint32_t)strtoul(name + 1, NULL, 10);
    return 0;
}

static int compare_libraries(const char *a, int len_a, const char *b, int len_b)
{
    int order = strncmp(a, b, (size_t)(len_a < len_b ? len_a : len_b));
    return order ? order : len_a - len_b;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = compare_names(x->name, y->name);
    order = order ? order : strcmp(x->place, y->place);
    order = order ? order : compare_libraries(x->library, x->len, y->library, y->len);
    if (order || x->line != y->line)
        return order ? order : x->line < y->line ? -1 : 1;
    order = (int)x->side - (int)y->side;
    return order ? order : x->node < y->node ? -1 : x->node > y->node;
}

/* The last n parts of a path; 0: all of it. */
static const char *tail_of(const char *path, unsigned n)
{
    const char *at = n ? path + strlen(path) : path;
    while (at > path && (at[-1] != '/' || --n))
        at--;
    return at;
}

/* Where two places belong, with n parts of their paths: lines are what follows then. */
static int compare_ends(const struct placed *x, const struct placed *y, unsigned n)
{
    int order = strcmp(tail_of(x->place, n), tail_of(y->place, n));
    return order ? order : compare_libraries(x->library, x->len, y->library, y->len);
}

static int compare_tails(const void *a, const void *b, void *n)
{
    const struct placed *x = a, *y = b;
    int order = compare_ends(x, y, *(const unsigned *)n);
    if (order || x->line != y->line)
        return order ? order : x->line < y->line ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Gives all nodes of places [n] the same key, the first one's name and place. False when out of memory. */
static bool bring_together(struct matching *matching, const struct placed *places, size_t n)
{
    const struct entry *first = &matching->entries[places->first];
    struct buf text = {0};
    int64_t ids[2] = {-1, -1};
    buf_printf(&text, "%s\x1f%s\x1f%.*s", first->name, first->place, first->len, first->library);
    for (int side = 0; side < 2 && !text.failed; side++)
        ids[side] = strtab_intern(&matching->frames[side]->nodes->strings->table, text.data);
    buf_fini(&text);
    if (ids[0] < 0 || ids[1] < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = places[i].first; k < places[i].end; k++) {
            const struct entry *entry = &matching->entries[k];
            matching->keys[entry->side][entry->node] = (uint32_t)ids[entry->side];
        }
    return true;
}

/* Brings together the places that end alike and are on both sides; the others are left. */
static bool match_tails(struct matching *matching, unsigned n_parts)
{
    size_t n_left = 0;
    bool ok = true;
    if (matching->n_left)
        qsort_r(matching->left, matching->n_left, sizeof *matching->left, compare_tails, &n_parts);
    for (size_t i = 0, end; ok && i < matching->n_left; i = end) {
        unsigned sides = 0;
        const struct placed *at = &matching->left[i];
        for (end = i; end < matching->n_left && compare_ends(at, &matching->left[end], n_parts) == 0 &&
                      matching->left[end].line == at->line;
             end++)
            sides |= matching->left[end].sides;
        if (sides == 3)
            ok = bring_together(matching, &matching->left[i], end - i);
        for (size_t k = i; sides != 3 && k < end; k++)
            matching->left[n_left++] = matching->left[k];
    }
    matching->n_left = n_left;
    return ok;
}

/* Brings together the lines that are left of one file, in their order, where both sides have as many. */
static bool match_moved(struct matching *matching)
{
    const unsigned n_parts = 1;
    size_t n_left = 0;
    bool ok = true;
    if (matching->n_left)
        qsort_r(matching->left, matching->n_left, sizeof *matching->left, compare_tails, (void *)(uintptr_t)&n_parts);
    for (size_t i = 0, end; ok && i < matching->n_left; i = end) {
        size_t n_of[2] = {0, 0};
        for (end = i; end < matching->n_left && compare_ends(&matching->left[i], &matching->left[end], n_parts) == 0;
             end++)
            n_of[matching->left[end].sides == 2]++;
        bool are_pairs = matching->left[i].line && n_of[0] == n_of[1];
        for (size_t k = i, other = i, n = 0; are_pairs && ok && n < n_of[0]; n++, k++, other++) {
            while (matching->left[k].sides == 2)
                k++;
            while (matching->left[other].sides != 2)
                other++;
            const struct placed pair[] = {matching->left[k], matching->left[other]};
            ok = bring_together(matching, pair, 2);
        }
        for (size_t k = i; !are_pairs && k < end; k++)
            matching->left[n_left++] = matching->left[k];
    }
    matching->n_left = n_left;
    return ok;
}

/* Matches the entries [first, end) of one name. */
static bool match_name(struct matching *matching, size_t first, size_t end)
{
    unsigned sides = 0;
    bool ok = true;
    matching->n_left = 0;
    for (size_t i = first; i < end; i++) {
        const struct entry *entry = &matching->entries[i];
        struct placed *last = matching->n_left ? &matching->left[matching->n_left - 1] : NULL;
        bool is_same = last && strcmp(last->place, entry->place) == 0 && last->line == entry->line &&
                       compare_libraries(last->library, last->len, entry->library, entry->len) == 0;
        if (!is_same) {
            last = &matching->left[matching->n_left++];
            *last = (struct placed){entry->place, entry->library, entry->len, entry->line, i, i, 0};
        }
        last->end = i + 1;
        last->sides |= 1u << entry->side;
    }
    for (size_t i = 0; ok && i < sizeof tails / sizeof *tails; i++)
        ok = match_tails(matching, tails[i]);
    ok = ok && match_moved(matching);
    for (size_t i = 0; i < matching->n_left; i++)
        sides |= matching->left[i].sides;
    if (ok && sides == 3)
        return bring_together(matching, matching->left, matching->n_left);
    for (size_t i = 0; ok && i < matching->n_left; i++)
        ok = bring_together(matching, &matching->left[i], 1);
    return ok;
}

static bool matching_init(struct matching *matching, struct frame *const *frames)
{
    size_t n = frame_n_nodes(frames[0]) + frame_n_nodes(frames[1]);
    *matching = (struct matching){.frames = frames,
                                  .entries = malloc((n + 1) * sizeof *matching->entries),
                                  .left = malloc((n + 1) * sizeof *matching->left)};
    for (uint32_t side = 0; side < 2; side++) {
        size_t n_nodes = frame_n_nodes(frames[side]);
        matching->keys[side] = malloc((n_nodes + 1) * sizeof(uint32_t));
        for (uint32_t i = 0; matching->entries && i < n_nodes; i++) {
            const char *file = frame_file(frames[side], i);
            const char *module = frame_module(frames[side], i), *place = *file ? file : module;
            const char *name = frame_name(frames[side], i);
            struct entry *entry = &matching->entries[matching->n_entries++];
            *entry = (struct entry){.name = name, .place = place, .line = line_in(name), .side = side, .node = i};
            entry->library =
                made_node_library(frame_kind_is_part(frame_kind(frames[side], i)) ? "" : module, &entry->len);
        }
    }
    return matching->entries && matching->left && matching->keys[0] && matching->keys[1];
}

int frame_match(const struct frame *a, const struct frame *b, struct frame **results, struct error *err)
{
    struct frame *const frames[2] = {frame_keep(a), frame_keep(b)};
    struct matching matching;
    bool ok = matching_init(&matching, frames);
    if (ok && matching.n_entries)
        qsort(matching.entries, matching.n_entries, sizeof *matching.entries, compare_entries);
    for (size_t i = 0, end; ok && i < matching.n_entries; i = end) {
        for (end = i + 1; end < matching.n_entries; end++)
            if (compare_names(matching.entries[i].name, matching.entries[end].name) != 0)
                break;
        ok = match_name(&matching, i, end);
    }
    int code = ok ? shape_group(a, matching.keys[0], a->nodes->names, NULL, &results[0], err) : error_memory(err);
    if (code == 0) {
        code = shape_group(b, matching.keys[1], b->nodes->names, NULL, &results[1], err);
        if (code != 0)
            frame_close(results[0]);
    }
    free(matching.entries);
    free(matching.left);
    for (int side = 0; side < 2; side++) {
        free(matching.keys[side]);
        frame_close(frames[side]);
    }
    return code;
}
