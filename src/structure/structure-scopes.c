/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining inlined functions and loops into one tree. Both are chains at every address; a loop comes right below the
 * inlined function that it is written in. */
#include <stdlib.h>
#include <string.h>

#include "structure/structure-internal.h"

static uint64_t key_of(uint32_t node, uint32_t loop)
{
    return (uint64_t)node << 32 | (loop + 1u); /* CFG_NONE becomes 0 */
}

/* Where the index + 1 of the scope with this key is kept; NULL when out of memory. */
static const void **place_of(struct structure *structure, uint64_t key)
{
    return memo_of(&structure->places, (const void *)(uintptr_t)(key + 1));
}

static uint32_t find_scope(struct structure *structure, uint64_t key)
{
    const void **place = place_of(structure, key);
    return place && *place ? (uint32_t)((uintptr_t)*place - 1) : STRUCTURE_NONE;
}

static bool add_scope(struct structure *structure, uint64_t key, const struct structure_scope *scope)
{
    const void **place = place_of(structure, key);
    if (!place ||
        !vec_reserve(&structure->scopes, &structure->cap_scopes, structure->n_scopes + 1, sizeof *structure->scopes))
        return false;
    structure->scopes[structure->n_scopes++] = *scope;
    *place = (const void *)(uintptr_t)structure->n_scopes;
    return true;
}

static struct structure_scope loop_scope(const struct source_loop *loop, uint32_t parent)
{
    return (struct structure_scope){.kind = STRUCTURE_LOOP,
                                    .parent = parent,
                                    .file = loop->file,
                                    .line = loop->first_line,
                                    .end_line = loop->last_line,
                                    .vaddr = loop->vaddr,
                                    .n_machine = loop->n_machine,
                                    .is_irreducible = loop->is_irreducible};
}

static struct structure_scope inlined_scope(const struct inline_node *node, uint32_t parent)
{
    return (struct structure_scope){.kind = parent == STRUCTURE_NONE ? STRUCTURE_FUNCTION : STRUCTURE_INLINED,
                                    .parent = parent,
                                    .name = node->name,
                                    .linkage = node->linkage,
                                    .file = node->file,
                                    .line = node->line,
                                    .call_file = node->call_file,
                                    .call_line = node->call_line,
                                    .call_column = node->call_column};
}

/* One step further out from (node, loop). False when that is outside of the function. */
static bool step_out(const struct structure *structure, uint32_t *node, uint32_t *loop)
{
    if (*loop != CFG_NONE && structure->source[*loop].node == *node) {
        *loop = structure_standing_loop(structure, structure->source[*loop].parent);
        return true;
    }
    if (*node == 0)
        return false;
    *node = structure->nodes[*node].parent;
    return true;
}

/* The scope for code of inlined function node in loop, added with all around it. */
static uint32_t scope_of(struct structure *structure, uint32_t node, uint32_t loop)
{
    uint64_t path[256];
    size_t n = 0;
    uint32_t at = find_scope(structure, key_of(node, loop));
    while (at == STRUCTURE_NONE && n < sizeof path / sizeof *path) {
        path[n++] = key_of(node, loop);
        if (!step_out(structure, &node, &loop)) {
            /* scope 0 is the way out of everything; only it has none */
            n -= structure->n_scopes > 0;
            at = structure->n_scopes > 0 ? 0 : STRUCTURE_NONE;
            break;
        }
        at = find_scope(structure, key_of(node, loop));
    }
    while (n > 0) {
        uint64_t key = path[--n];
        uint32_t inner = (uint32_t)(key >> 32), in_loop = (uint32_t)key - 1u;
        bool is_loop = in_loop != CFG_NONE && structure->source[in_loop].node == inner;
        struct structure_scope scope =
            is_loop ? loop_scope(&structure->source[in_loop], at) : inlined_scope(&structure->nodes[inner], at);
        if (!add_scope(structure, key, &scope))
            return STRUCTURE_NONE;
        at = (uint32_t)structure->n_scopes - 1;
    }
    return at;
}

static bool add_span(struct structure *structure, const struct atom *atom, uint32_t scope)
{
    static const struct line_piece unknown;
    const struct line_piece *line = atom->lines == STRUCTURE_NONE ? &unknown : &structure->lines[atom->lines];
    struct structure_span *last = structure->n_spans ? &structure->spans[structure->n_spans - 1] : NULL;
    if (last && last->end == atom->start && last->scope == scope && last->file == line->file &&
        last->line == line->line) {
        last->end = atom->end;
        return true;
    }
    if (structure->n_spans == structure->cap_spans &&
        !vec_reserve(&structure->spans, &structure->cap_spans, structure->n_spans + 1, sizeof *structure->spans))
        return false;
    structure->spans[structure->n_spans++] =
        (struct structure_span){atom->start, atom->end, line->file, line->line, scope};
    return true;
}

/* Copies what has been joined into one block of memory, with the calls behind it. */
static bool hand_over(const struct structure *structure, struct structure_function *function)
{
    size_t scopes_bytes = structure->n_scopes * sizeof *function->scopes;
    size_t spans_bytes = structure->n_spans * sizeof *function->spans;
    if (structure->n_spans == 0)
        return true;
    char *block = malloc(scopes_bytes + spans_bytes + structure_calls_max(structure) * sizeof *function->calls);
    if (!block)
        return false;
    function->scopes = (struct structure_scope *)block;
    function->spans = (struct structure_span *)(block + scopes_bytes);
    function->calls = (struct structure_call *)(block + scopes_bytes + spans_bytes);
    memcpy(function->scopes, structure->scopes, scopes_bytes);
    memcpy(function->spans, structure->spans, spans_bytes);
    function->n_scopes = structure->n_scopes;
    function->n_spans = structure->n_spans;
    structure_take_calls(structure, function);
    return true;
}

bool structure_join(struct structure *structure, struct structure_function *function)
{
    memo_clear(&structure->places);
    structure->n_scopes = structure->n_spans = 0;
    uint32_t node = STRUCTURE_NONE, loop = STRUCTURE_NONE, scope = scope_of(structure, 0, CFG_NONE);
    for (size_t i = 0; scope != STRUCTURE_NONE && i < structure->n_atoms; i++) {
        const struct atom *atom = &structure->atoms[i];
        if (atom->node != node || atom->loop != loop)
            scope = scope_of(structure, atom->node, atom->loop);
        node = atom->node;
        loop = atom->loop;
        if (scope == STRUCTURE_NONE || !add_span(structure, atom, scope))
            return false;
    }
    return scope != STRUCTURE_NONE && hand_over(structure, function);
}
