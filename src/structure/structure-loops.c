/* SPDX-License-Identifier: BSD-3-Clause */
/* From the loops of the machine code to those of the source: in which (inlined) function each is written, and on which
 * lines. A loop is written in the innermost function that all of its instructions lie in. */
#include "structure/structure-internal.h"

static uint32_t common_node(const struct structure *structure, uint32_t a, uint32_t b)
{
    const struct inline_node *nodes = structure->nodes;
    if (a == STRUCTURE_NONE || b == STRUCTURE_NONE)
        return a == STRUCTURE_NONE ? b : a;
    while (a != b) {
        if (nodes[a].depth >= nodes[b].depth)
            a = nodes[a].parent;
        else
            b = nodes[b].parent;
    }
    return a;
}

bool structure_project(const struct structure *structure, const struct atom *atom, uint32_t node,
                       struct line_piece *position)
{
    uint32_t at = atom->node;
    if (at == node) {
        if (atom->lines == STRUCTURE_NONE)
            return false;
        *position = structure->lines[atom->lines];
        return position->line > 0;
    }
    while (at != STRUCTURE_NONE && structure->nodes[at].parent != node)
        at = structure->nodes[at].parent;
    if (at == STRUCTURE_NONE)
        return false;
    const struct inline_node *inner = &structure->nodes[at];
    *position = (struct line_piece){.file = inner->call_file, .line = inner->call_line, .column = inner->call_column};
    return position->line > 0;
}

static const struct atom *atom_at(const struct structure *structure, uint64_t vaddr)
{
    size_t low = 0, high = structure->n_atoms;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (structure->atoms[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && vaddr < structure->atoms[low - 1].end ? &structure->atoms[low - 1] : NULL;
}

static void find_nodes(struct structure *structure)
{
    struct source_loop *source = structure->source;
    for (size_t i = 0; i < structure->n_atoms; i++) {
        const struct atom *atom = &structure->atoms[i];
        if (atom->loop != CFG_NONE)
            source[atom->loop].node = common_node(structure, source[atom->loop].node, atom->node);
    }
    for (size_t i = structure->n_source; i-- > 0;)
        if (source[i].parent != STRUCTURE_NONE)
            source[source[i].parent].node = common_node(structure, source[source[i].parent].node, source[i].node);
}

/* A block of nothing but a jump without row: its line is that of the conditional jump before it, often the end of an
 * inner loop. */
static bool is_bare_jump(const struct structure *structure, const struct cfg_block *block, const struct atom *atom)
{
    return block->start == block->last && atom->lines != STRUCTURE_NONE &&
           structure->lines[atom->lines].start < block->start &&
           structure->cfg.insns[cfg_find_insn(&structure->cfg, block->last)].kind == CFG_JUMP;
}

/* The position of the jump back to the header; of several the first in the source. */
static void set_key(struct structure *structure, uint32_t i, uint32_t from)
{
    const struct cfg_block *block = &structure->cfg.blocks[from];
    uint64_t last = block->last;
    struct source_loop *loop = &structure->source[i];
    struct line_piece position;
    const struct atom *atom = atom_at(structure, last);
    if (!atom || atom->is_carried || is_bare_jump(structure, block, atom) ||
        !structure_project(structure, atom, loop->node, &position))
        return;
    if (loop->key_line && position.line >= loop->key_line)
        return;
    loop->file = position.file;
    loop->key_line = position.line;
    loop->key_column = position.column;
    loop->is_tested = structure->cfg.insns[cfg_find_insn(&structure->cfg, last)].kind == CFG_BRANCH;
}

static void find_keys(struct structure *structure)
{
    const struct cfg *cfg = &structure->cfg;
    const struct loops *loops = &structure->loops;
    for (size_t e = 0; e < cfg->n_edges; e++) {
        uint32_t from = (uint32_t)(cfg->edges[e] >> 32), to = (uint32_t)cfg->edges[e];
        /* a header lies in no loop inside its own */
        uint32_t loop = loops->loop_of[to];
        if (loop != CFG_NONE && loops->items[loop].header == to && loops_contain(loops, loop, loops->loop_of[from]))
            set_key(structure, loop, from);
    }
    for (uint32_t i = 0; i < structure->n_source; i++) {
        struct source_loop *loop = &structure->source[i];
        const struct atom *top = atom_at(structure, loop->vaddr);
        struct line_piece position;
        if (!top || top->is_carried || !structure_project(structure, top, loop->node, &position))
            continue;
        if (!loop->key_line) {
            loop->file = position.file;
            loop->key_line = position.line;
            loop->key_column = position.column;
        }
        if (position.file == loop->file)
            loop->top_line = position.line;
    }
}

/* Widens the lines of all loops around each atom. */
static void widen(struct structure *structure)
{
    for (size_t i = 0; i < structure->n_atoms; i++) {
        const struct atom *atom = &structure->atoms[i];
        for (uint32_t at = atom->is_carried ? CFG_NONE : atom->loop; at != CFG_NONE;
             at = structure->source[at].parent) {
            struct source_loop *loop = &structure->source[at];
            struct line_piece position;
            if (!structure_project(structure, atom, loop->node, &position) || position.file != loop->file)
                continue;
            if (!loop->first_line || position.line < loop->first_line)
                loop->first_line = position.line;
            if (position.line > loop->last_line)
                loop->last_line = position.line;
        }
    }
}

/* Where the loop begins. A conditional jump back carries the line of the loop's head, and lines above it were moved in
 * from outside; from the last line it belongs to a loop that tests at its end, of which all lines are its own. Any
 * other jump back leads up to the head. */
static void set_first_line(struct source_loop *loop)
{
    if (loop->first_line == 0)
        loop->first_line = loop->last_line = loop->key_line;
    if (loop->key_line == 0 || loop->key_line >= loop->last_line)
        return;
    bool is_below = !loop->is_tested && loop->top_line && loop->top_line < loop->key_line;
    loop->first_line = is_below ? loop->top_line : loop->key_line;
}

bool structure_name_loops(struct structure *structure)
{
    const struct loops *loops = &structure->loops;
    structure->n_source = loops->n;
    if (loops->n == 0)
        return true;
    if (!vec_reserve(&structure->source, &structure->cap_source, loops->n, sizeof *structure->source))
        return false;
    for (uint32_t i = 0; i < loops->n; i++)
        structure->source[i] = (struct source_loop){.parent = loops->items[i].parent,
                                                    .merged = i,
                                                    .node = STRUCTURE_NONE,
                                                    .n_machine = 1,
                                                    .depth = loops->items[i].depth,
                                                    .is_irreducible = loops->items[i].is_irreducible,
                                                    .vaddr = structure->cfg.blocks[loops->items[i].header].start};
    find_nodes(structure);
    for (uint32_t i = 0; i < loops->n; i++)
        if (structure->source[i].node == STRUCTURE_NONE)
            structure->source[i].node = 0;
    find_keys(structure);
    widen(structure);
    for (size_t i = 0; i < structure->n_source; i++)
        set_first_line(&structure->source[i]);
    structure_merge_loops(structure);
    for (size_t i = 0; i < structure->n_atoms; i++)
        if (structure->atoms[i].loop != CFG_NONE)
            structure->atoms[i].loop = structure_standing_loop(structure, structure->atoms[i].loop);
    return true;
}
