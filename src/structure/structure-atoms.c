/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting a function's code at every border of its three descriptions: inlined functions, lines, blocks of loops. */
#include "structure/structure-internal.h"

/* Where each description stands while the code is walked in the order of addresses. */
struct cursor {
    size_t line, block;
    size_t carried; /* block + 1 whose code up to its first own row has its line from elsewhere */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The line piece that holds at, and how far that is so. */
static uint32_t line_at(const struct structure *structure, struct cursor *cursor, uint64_t at, uint64_t *end)
{
    while (cursor->line < structure->n_lines && structure->lines[cursor->line].end <= at)
        cursor->line++;
    if (cursor->line == structure->n_lines)
        return STRUCTURE_NONE;
    const struct line_piece *line = &structure->lines[cursor->line];
    *end = least(*end, at < line->start ? line->start : line->end);
    return at < line->start ? STRUCTURE_NONE : (uint32_t)cursor->line;
}

/* True when nothing runs on from the code before a block into it: no edge leads there, or that code is padding. */
static bool is_apart(const struct structure *structure, size_t block)
{
    const struct cfg *cfg = &structure->cfg;
    if (block == 0 || !loops_reach(&structure->loops, (uint32_t)block - 1) ||
        cfg->blocks[block - 1].end != cfg->blocks[block].start)
        return true;
    for (uint32_t e = cfg->first[block - 1]; e < cfg->first[block]; e++)
        if ((uint32_t)cfg->edges[e] == block)
            return false;
    return true;
}

/* Compilers give no row to some instructions; at the start of a block these get the row of whatever lies before. */
static bool is_carried(const struct structure *structure, struct cursor *cursor, const struct atom *atom)
{
    if (atom->loop == CFG_NONE || atom->lines == STRUCTURE_NONE)
        return false;
    const struct cfg_block *block = &structure->cfg.blocks[cursor->block];
    if (structure->lines[atom->lines].start >= block->start)
        return false;
    if (atom->start == block->start && is_apart(structure, cursor->block))
        cursor->carried = cursor->block + 1;
    return cursor->carried == cursor->block + 1;
}

/* The machine loop of the block that holds at, and how far that is so. */
static uint32_t loop_at(const struct structure *structure, struct cursor *cursor, uint64_t at, uint64_t *end)
{
    const struct cfg *cfg = &structure->cfg;
    if (structure->loops.n == 0)
        return CFG_NONE;
    while (cursor->block < cfg->n_blocks && cfg->blocks[cursor->block].end <= at)
        cursor->block++;
    if (cursor->block == cfg->n_blocks)
        return CFG_NONE;
    const struct cfg_block *block = &cfg->blocks[cursor->block];
    *end = least(*end, at < block->start ? block->start : block->end);
    /* the last instruction is apart: where it jumps back its line tells of the loop */
    if (at >= block->start && at < block->last)
        *end = least(*end, block->last);
    return at < block->start ? CFG_NONE : structure->loops.loop_of[cursor->block];
}

static bool cut_piece(struct structure *structure, struct cursor *cursor, const struct inline_piece *piece)
{
    for (uint64_t at = piece->start; at < piece->end;) {
        struct atom atom = {.start = at, .end = piece->end, .node = piece->node};
        atom.lines = line_at(structure, cursor, at, &atom.end);
        atom.loop = loop_at(structure, cursor, at, &atom.end);
        atom.is_carried = is_carried(structure, cursor, &atom);
        if (structure->n_atoms == structure->cap_atoms &&
            !vec_reserve(&structure->atoms, &structure->cap_atoms, structure->n_atoms + 1, sizeof *structure->atoms))
            return false;
        structure->atoms[structure->n_atoms++] = atom;
        at = atom.end;
    }
    return true;
}

bool structure_cut_atoms(struct structure *structure)
{
    struct cursor cursor = {0};
    structure->n_atoms = 0;
    for (size_t i = 0; i < structure->n_pieces; i++)
        if (!cut_piece(structure, &cursor, &structure->pieces[i]))
            return false;
    return true;
}
