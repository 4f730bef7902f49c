/* SPDX-License-Identifier: BSD-3-Clause */
/* From the loops of the machine code to those of the source: the (inlined) function that each is written in, and its
 * lines. A loop is written in the innermost function that contains all of its instructions but for a few that the
 * compiler has moved into it. */
#include "structure/structure-make.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

/* --- machine loops that are one loop of the source --- */

/* A loop of the source may become several in the machine code: a vectorised one and one for the rest, versions for
 * different conditions, iterations peeled off an outer loop with the inner loop in them. They are recognised by
 * position: they are written in the same (inlined) function and jump back from the same line, or one has only lines
 * that the other has too. */

#define PASSES_MAX 16
#define BUDGET 1000000 /* steps for comparing the lines of one function's loops */

/* One loop as a candidate. parent: the loop in which it is compared. */
struct candidate {
    uint32_t parent, node, line, loop;
    const char *file;
    bool is_inner; /* compared one loop further out than it is */
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

/* Whether candidate b is a copy of candidate a. An inner candidate is compared one loop further out: the copy was then
 * peeled off the loop between them, so it lies on that loop's lines. */
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

/* A loop directly inside another that jumps back from the same position is the same loop: a "continue". */
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

/* Position of an atom as seen in the inlined function node around it: its own line, or that of the call. False when
 * not known. */
static bool structure_project(const struct structure *structure, const struct atom *atom, uint32_t node,
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

/* Whether every line of loop part is also a line of loop whole. */
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

/* Joins siblings of which one has only lines of the other: in the source these cannot be two loops. */
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

/* Joins the machine loops that are one source loop. */
static void structure_merge_loops(struct structure *structure)
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

/* --- where a loop is written --- */

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

static const struct atom *atom_at(const struct structure *structure, uint64_t vaddr)
{
    size_t low = search_upto(structure->atoms, structure->n_atoms, SEARCH_KEY(struct atom, start), vaddr);
    return low > 0 && vaddr < structure->atoms[low - 1].end ? &structure->atoms[low - 1] : NULL;
}

/* True when node lies in outer or is it. */
static bool is_below(const struct structure *structure, uint32_t node, uint32_t outer)
{
    while (node != STRUCTURE_NONE && structure->nodes[node].depth > structure->nodes[outer].depth)
        node = structure->nodes[node].parent;
    return node == outer;
}

/* The edge as a jump back: its loop, CFG_NONE when it is none. */
static uint32_t loop_of_edge(const struct structure *structure, uint64_t edge)
{
    const struct loops *loops = &structure->loops;
    uint32_t from = (uint32_t)(edge >> 32), to = (uint32_t)edge, loop = loops->loop_of[to];
    /* a header is in no loop inside its own */
    bool is_back =
        loop != CFG_NONE && loops->items[loop].header == to && loops_contain(loops, loop, loops->loop_of[from]);
    return is_back ? loop : CFG_NONE;
}

/* Whether a jump back of the loop, as far as its place is known, lies in a function that is inlined below outer; and no
 * other one elsewhere. */
static bool is_closed_below(const struct structure *structure, uint32_t loop, uint32_t outer)
{
    const struct cfg *cfg = &structure->cfg;
    bool is_closed = false;
    for (size_t e = 0; e < cfg->n_edges; e++) {
        if (loop_of_edge(structure, cfg->edges[e]) != loop)
            continue;
        const struct cfg_block *block = &cfg->blocks[(uint32_t)(cfg->edges[e] >> 32)];
        const struct atom *atom = atom_at(structure, block->last);
        if (!atom || atom->is_carried)
            continue;
        if (!is_below(structure, atom->node, outer))
            return false;
        is_closed = true;
    }
    return is_closed;
}

/* The bytes of the loop's instructions by function, inlined ones below it included; returns all of them. */
static uint64_t weigh_nodes(const struct structure *structure, uint32_t loop, uint64_t *bytes)
{
    memset(bytes, 0, structure->n_nodes * sizeof *bytes);
    for (size_t i = 0; i < structure->n_atoms; i++) {
        const struct atom *atom = &structure->atoms[i];
        if (atom->loop != CFG_NONE && loops_contain(&structure->loops, loop, atom->loop))
            bytes[atom->node] += atom->end - atom->start;
    }
    for (size_t i = structure->n_nodes; i-- > 1;)
        bytes[structure->nodes[i].parent] += bytes[i];
    return structure->n_nodes ? bytes[0] : 0;
}

/* Whether the loops inside the loop are all written below node. */
static bool has_inner_below(const struct structure *structure, uint32_t loop, uint32_t node)
{
    for (uint32_t i = loop + 1; i < structure->n_source; i++)
        if (structure->source[i].node != STRUCTURE_NONE && loops_contain(&structure->loops, loop, i) &&
            !is_below(structure, structure->source[i].node, node))
            return false;
    return true;
}

/* Compilers move an instruction of the caller among those of an inlined loop, or join it with one of them, and then one
 * instruction would lift the loop into the caller. So a loop belongs further in: where most of its instructions are and
 * it jumps back. The jump keeps a loop that calls an inlined function in every turn out of that. */
static void sink_nodes(struct structure *structure)
{
    size_t budget = BUDGET;
    uint64_t *bytes = structure->n_nodes > 1 ? malloc(structure->n_nodes * sizeof *bytes) : NULL;
    for (uint32_t i = (uint32_t)structure->n_source; bytes && i-- > 0;) {
        struct source_loop *loop = &structure->source[i];
        size_t work = structure->n_atoms + structure->n_nodes + structure->n_source;
        if (loop->node == STRUCTURE_NONE || budget < work)
            continue;
        budget -= work;
        uint64_t all = weigh_nodes(structure, i, bytes);
        for (uint32_t node = loop->node + 1; node < structure->n_nodes; node++)
            if (structure->nodes[node].parent == loop->node && 2 * bytes[node] > all &&
                has_inner_below(structure, i, node) && is_closed_below(structure, i, node))
                loop->node = node;
    }
    free(bytes);
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
    sink_nodes(structure);
}

/* A block that is only a jump without row: its line is that of the conditional jump before it, often the end of an
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

/* Where a loop is left by a test on the line of an unconditional jump back, both are the loop's head. */
static void find_tests(struct structure *structure, uint64_t edge)
{
    const struct loops *loops = &structure->loops;
    const struct cfg_block *block = &structure->cfg.blocks[(uint32_t)(edge >> 32)];
    const struct atom *atom = atom_at(structure, block->last);
    if (!atom || atom->is_carried ||
        structure->cfg.insns[cfg_find_insn(&structure->cfg, block->last)].kind != CFG_BRANCH)
        return;
    for (uint32_t at = loops->loop_of[(uint32_t)(edge >> 32)];
         at != CFG_NONE && !loops_contain(loops, at, loops->loop_of[(uint32_t)edge]); at = loops->items[at].parent) {
        struct source_loop *loop = &structure->source[at];
        struct line_piece position;
        if (structure_project(structure, atom, loop->node, &position) && position.line == loop->key_line &&
            position.file == loop->file)
            loop->is_tested = true;
    }
}

static void find_keys(struct structure *structure)
{
    const struct cfg *cfg = &structure->cfg;
    for (size_t e = 0; e < cfg->n_edges; e++) {
        uint32_t loop = loop_of_edge(structure, cfg->edges[e]);
        if (loop != CFG_NONE)
            set_key(structure, loop, (uint32_t)(cfg->edges[e] >> 32));
    }
    for (size_t e = 0; e < cfg->n_edges; e++)
        find_tests(structure, cfg->edges[e]);
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

/* Sets the line where the loop begins. A conditional jump back has the line of the loop's head, and lines above that
 * were moved in from outside; if it is on the last line, the loop tests at its end, and all lines are its own. Any
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

/* Whether the two are written in one function of one file, so that their lines can be compared. */
static bool is_beside(const struct source_loop *a, const struct source_loop *b)
{
    return a->node == b->node && a->file == b->file;
}

/* Corrects where nested loops begin: on one line, those around others have no lines above it that they could test at
 * the end of; and no loop begins above the one around it. */
static void fit_nests(struct structure *structure)
{
    struct source_loop *source = structure->source;
    for (size_t i = 0; i < structure->n_source; i++) {
        struct source_loop *loop = &source[i], *outer = loop->parent == STRUCTURE_NONE ? NULL : &source[loop->parent];
        if (outer && is_beside(outer, loop) && outer->key_line && outer->key_line == loop->key_line)
            outer->first_line = outer->key_line;
    }
    for (size_t i = 0; i < structure->n_source; i++) {
        struct source_loop *loop = &source[i], *outer = loop->parent == STRUCTURE_NONE ? NULL : &source[loop->parent];
        if (outer && is_beside(outer, loop) && loop->first_line < outer->first_line &&
            outer->first_line <= loop->key_line)
            loop->first_line = outer->first_line;
    }
}

/* The innermost loop of the source around an atom. What was moved into a loop from outside its function is outside. */
static uint32_t loop_around(const struct structure *structure, const struct atom *atom)
{
    uint32_t loop = structure_standing_loop(structure, atom->loop);
    while (loop != STRUCTURE_NONE && !is_below(structure, atom->node, structure->source[loop].node))
        loop = parent_of(structure, loop);
    return loop;
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
    fit_nests(structure);
    structure_merge_loops(structure);
    for (size_t i = 0; i < structure->n_atoms; i++)
        structure->atoms[i].loop = loop_around(structure, &structure->atoms[i]);
    return true;
}
