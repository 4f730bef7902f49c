/* SPDX-License-Identifier: BSD-3-Clause */
/* One loop of the source may have become several in the machine code: a vectorised one and one for the rest, versions
 * for different conditions, iterations peeled off an outer loop with the inner loop in them. They are told by position:
 * written in the same (inlined) function, jumping back from the same line, or having no line that the other has not. */
#include <stdlib.h>

#include "structure/structure-internal.h"

#define PASSES_MAX 16
#define BUDGET 1000000 /* steps spent on comparing the lines of one function's loops */

/* One loop as a candidate. parent: the loop in which it is compared. */
struct candidate {
    uint32_t parent, node, line, loop;
    const char *file;
    bool is_inner; /* compared one loop further out than it lies */
};

uint32_t structure_standing_loop(const struct structure *structure, uint32_t i)
{
    while (i != STRUCTURE_NONE && structure->source[i].merged != i)
        i = structure->source[i].merged;
    return i;
}

static uint32_t parent_of(const struct structure *structure, uint32_t i)
{
    return structure_standing_loop(structure, structure->source[i].parent);
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_keys(const struct candidate *x, const struct candidate *y)
{
    int result = order(x->parent, y->parent);
    result = result ? result : order(x->node, y->node);
    result = result ? result : order((uintptr_t)x->file, (uintptr_t)y->file);
    return result ? result : order(x->line, y->line);
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int result = compare_keys(x, y);
    result = result ? result : y->is_inner - x->is_inner;
    return result ? result : order(x->loop, y->loop);
}

static bool is_around(const struct structure *structure, uint32_t outer, uint32_t inner)
{
    while (inner != STRUCTURE_NONE && inner != outer)
        inner = parent_of(structure, inner);
    return inner == outer;
}

/* Makes loop from a part of loop into. */
static void join(struct structure *structure, uint32_t into, uint32_t from)
{
    struct source_loop *a = &structure->source[into], *b = &structure->source[from];
    b->merged = into;
    if (b->first_line && (!a->first_line || b->first_line < a->first_line))
        a->first_line = b->first_line;
    if (b->last_line > a->last_line)
        a->last_line = b->last_line;
    if (b->vaddr < a->vaddr)
        a->vaddr = b->vaddr;
    a->n_machine += b->n_machine;
    a->is_irreducible |= b->is_irreducible;
}

static size_t list_candidates(const struct structure *structure, struct candidate *list)
{
    size_t n = 0;
    for (uint32_t i = 0; i < structure->n_source; i++) {
        const struct source_loop *loop = &structure->source[i];
        if (loop->merged != i || loop->key_line == 0)
            continue;
        uint32_t parent = parent_of(structure, i);
        struct candidate one = {
            .parent = parent, .node = loop->node, .line = loop->key_line, .loop = i, .file = loop->file};
        list[n++] = one;
        if (parent == STRUCTURE_NONE)
            continue;
        one.parent = parent_of(structure, parent);
        one.is_inner = true;
        list[n++] = one;
    }
    return n;
}

/* Whether candidate b is a copy of candidate a. An inner one took part in the comparison one loop further out: the
 * copy is then what was peeled off the loop between them, so it lies on that loop's lines. */
static bool is_copy(const struct structure *structure, const struct candidate *a, const struct candidate *b)
{
    if (b->is_inner || compare_keys(a, b) != 0)
        return false;
    if (!a->is_inner)
        return true;
    const struct source_loop *copy = &structure->source[b->loop];
    const struct source_loop *outer = &structure->source[parent_of(structure, a->loop)];
    return b->loop != parent_of(structure, a->loop) && outer->node == copy->node && outer->file == copy->file &&
           copy->first_line >= outer->first_line && copy->last_line <= outer->last_line;
}

static bool merge_once(struct structure *structure, struct candidate *list)
{
    size_t n = list_candidates(structure, list);
    bool changed = false;
    qsort(list, n, sizeof *list, compare_candidates);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (i > 0 && compare_keys(&list[first], &list[i]) != 0)
            first = i;
        uint32_t into = list[first].loop, from = list[i].loop;
        if (i == first || !is_copy(structure, &list[first], &list[i]) || structure->source[from].merged != from ||
            structure->source[into].merged != into || is_around(structure, from, into))
            continue;
        join(structure, into, from);
        changed = true;
    }
    return changed;
}

/* A loop directly inside another with the same position of the jump back is the same loop: an iteration that goes on
 * early. */
static bool merge_nested(struct structure *structure)
{
    bool changed = false;
    for (uint32_t i = 0; i < structure->n_source; i++) {
        const struct source_loop *loop = &structure->source[i];
        uint32_t parent = loop->merged == i ? parent_of(structure, i) : STRUCTURE_NONE;
        if (parent == STRUCTURE_NONE || loop->key_line == 0)
            continue;
        const struct source_loop *outer = &structure->source[parent];
        if (outer->node != loop->node || outer->file != loop->file || outer->key_line != loop->key_line ||
            outer->key_column != loop->key_column)
            continue;
        join(structure, parent, i);
        changed = true;
    }
    return changed;
}

/* Whether loop has code on a line, in itself or in loops inside it. */
static bool has_line(const struct structure *structure, uint32_t loop, uint32_t line, size_t *budget)
{
    const struct source_loop *source = &structure->source[loop];
    for (size_t i = 0; i<structure->n_atoms && * budget> 0; i++, (*budget)--) {
        const struct atom *atom = &structure->atoms[i];
        struct line_piece position;
        if (atom->loop != CFG_NONE && !atom->is_carried &&
            structure_project(structure, atom, source->node, &position) && position.line == line &&
            position.file == source->file && is_around(structure, loop, structure_standing_loop(structure, atom->loop)))
            return true;
    }
    return false;
}

/* Whether every line of loop part is one of loop whole. */
static bool has_all_lines(const struct structure *structure, uint32_t whole, uint32_t part, size_t *budget)
{
    const struct source_loop *source = &structure->source[part];
    for (size_t i = 0; i<structure->n_atoms && * budget> 0; i++, (*budget)--) {
        const struct atom *atom = &structure->atoms[i];
        struct line_piece position;
        if (atom->loop != CFG_NONE && !atom->is_carried &&
            is_around(structure, part, structure_standing_loop(structure, atom->loop)) &&
            structure_project(structure, atom, source->node, &position) && position.file == source->file &&
            !has_line(structure, whole, position.line, budget))
            return false;
    }
    return *budget > 0;
}

/* Siblings of which one lies on some of the other's lines: in the source that cannot be two loops. */
static bool merge_covered(struct structure *structure, size_t *budget)
{
    for (uint32_t part = 0; part < structure->n_source; part++)
        for (uint32_t whole = 0; whole<structure->n_source && * budget> 0; whole++, (*budget)--) {
            const struct source_loop *a = &structure->source[whole], *b = &structure->source[part];
            if (part == whole || a->merged != whole || b->merged != part || a->node != b->node || a->file != b->file ||
                !b->first_line || b->first_line < a->first_line || b->last_line > a->last_line ||
                (b->first_line == b->last_line && a->first_line == a->last_line) ||
                parent_of(structure, part) != parent_of(structure, whole) ||
                !has_all_lines(structure, whole, part, budget))
                continue;
            join(structure, whole, part);
            return true;
        }
    return false;
}

void structure_merge_loops(struct structure *structure)
{
    struct candidate *list = calloc(2 * structure->n_source + 1, sizeof *list);
    size_t budget = BUDGET;
    for (int pass = 0; list && pass < PASSES_MAX; pass++) {
        bool changed = merge_nested(structure);
        changed |= merge_once(structure, list);
        if (!changed && !merge_covered(structure, &budget))
            break;
    }
    free(list);
}
