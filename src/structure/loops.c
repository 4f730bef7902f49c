/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of Tarjan's strongly connected components: each round finds the loops of one depth in all loops of the depth
 * before, with their headers taken out. */
#include "structure/loops.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Working arrays, [n_blocks] each. */
struct search {
    struct loops *loops;
    const struct cfg *cfg;
    uint32_t *reached;     /* distance rank from the entry, CFG_NONE: not reached */
    uint32_t *index, *low; /* Tarjan's numbers, 0: not visited in this round */
    uint32_t *stack, *path, *next_edge;
    uint32_t *done; /* 1: a header, or in no further loop */
    uint32_t n_stack, counter;
    uint32_t first_new; /* first loop of this round */
    uint32_t depth;
};

void loops_fini(struct loops *loops)
{
    free(loops->items);
    free(loops->loop_of);
    free(loops->scratch);
    *loops = (struct loops){0};
}

bool loops_reach(const struct loops *loops, uint32_t block)
{
    return loops->scratch[block] != CFG_NONE;
}

bool loops_contain(const struct loops *loops, uint32_t outer, uint32_t inner)
{
    while (inner != CFG_NONE && inner != outer)
        inner = loops->items[inner].parent;
    return inner == outer;
}

static uint32_t edge_to(const struct search *s, uint32_t edge)
{
    return (uint32_t)s->cfg->edges[edge];
}

/* Ranks the blocks that the entry reaches, breadth first. */
static void rank_reached(struct search *s)
{
    uint32_t n = 0;
    for (size_t b = 0; b < s->cfg->n_blocks; b++)
        s->reached[b] = CFG_NONE;
    s->reached[s->cfg->entry] = 0;
    s->stack[n++] = s->cfg->entry;
    for (uint32_t at = 0; at < n; at++)
        for (uint32_t e = s->cfg->first[s->stack[at]]; e < s->cfg->first[s->stack[at] + 1]; e++) {
            uint32_t to = edge_to(s, e);
            if (s->reached[to] != CFG_NONE)
                continue;
            s->reached[to] = n;
            s->stack[n++] = to;
        }
}

static bool loops_back(const struct search *s, uint32_t block)
{
    for (uint32_t e = s->cfg->first[block]; e < s->cfg->first[block + 1]; e++)
        if (edge_to(s, e) == block)
            return true;
    return false;
}

/* Takes the component whose root is block off the stack: a loop, or one block that is in no further one. */
static bool take_component(struct search *s, uint32_t block)
{
    struct loops *loops = s->loops;
    bool is_single = s->stack[s->n_stack - 1] == block;
    if (is_single && !loops_back(s, block)) {
        s->done[block] = 1;
        s->n_stack--;
        return true;
    }
    if (!vec_reserve(&loops->items, &loops->capacity, loops->n + 1, sizeof *loops->items))
        return false;
    uint32_t loop = (uint32_t)loops->n++, member;
    loops->items[loop] =
        (struct loop){.parent = loops->loop_of[block], .header = CFG_NONE, .depth = s->depth, .is_irreducible = false};
    do {
        member = s->stack[--s->n_stack];
        loops->loop_of[member] = loop;
    } while (member != block);
    return true;
}

static void visit(struct search *s, uint32_t block, uint32_t *n_path)
{
    s->index[block] = s->low[block] = ++s->counter;
    s->stack[s->n_stack++] = block;
    s->next_edge[block] = s->cfg->first[block];
    s->path[(*n_path)++] = block;
}

/* Tarjan's walk from start over the blocks of its region. on the stack: visited, and its loop_of is still the region's.
 */
static bool walk(struct search *s, uint32_t start)
{
    uint32_t n_path = 0, region = s->loops->loop_of[start];
    visit(s, start, &n_path);
    while (n_path > 0) {
        uint32_t block = s->path[n_path - 1];
        if (s->next_edge[block] < s->cfg->first[block + 1]) {
            uint32_t to = edge_to(s, s->next_edge[block]++);
            if (s->done[to] || s->loops->loop_of[to] != region)
                continue;
            if (!s->index[to])
                visit(s, to, &n_path);
            else if (s->index[to] < s->low[block])
                s->low[block] = s->index[to];
            continue;
        }
        n_path--;
        if (n_path > 0 && s->low[block] < s->low[s->path[n_path - 1]])
            s->low[s->path[n_path - 1]] = s->low[block];
        if (s->low[block] == s->index[block] && !take_component(s, block))
            return false;
    }
    return true;
}

/* Block is an entry of the new loop it is in: by a way from the function's entry, or only by an unknown one. */
static void add_entry(struct search *s, uint32_t block, bool is_reached)
{
    struct loop *loop = &s->loops->items[s->loops->loop_of[block]];
    if (loop->header == block || (!is_reached && loop->header != CFG_NONE))
        return;
    bool had_reached = loop->header != CFG_NONE && s->reached[loop->header] != CFG_NONE;
    loop->is_irreducible = had_reached && is_reached;
    if (!had_reached || s->reached[block] < s->reached[loop->header])
        loop->header = block;
}

static bool is_new(const struct search *s, uint32_t block)
{
    uint32_t loop = s->loops->loop_of[block];
    return loop != CFG_NONE && loop >= s->first_new;
}

/* Gives the loops of this round their headers. */
static void choose_headers(struct search *s)
{
    const struct cfg *cfg = s->cfg;
    if (is_new(s, cfg->entry))
        add_entry(s, cfg->entry, true);
    for (int is_reached = 1; is_reached >= 0; is_reached--)
        for (size_t e = 0; e < cfg->n_edges; e++) {
            uint32_t from = (uint32_t)(cfg->edges[e] >> 32), to = (uint32_t)cfg->edges[e];
            if (is_new(s, to) && s->loops->loop_of[from] != s->loops->loop_of[to] &&
                (s->reached[from] != CFG_NONE) == is_reached)
                add_entry(s, to, is_reached);
        }
    for (uint32_t b = 0; b < cfg->n_blocks; b++)
        if (is_new(s, b) && s->loops->items[s->loops->loop_of[b]].header == CFG_NONE)
            s->loops->items[s->loops->loop_of[b]].header = b;
    for (size_t i = s->first_new; i < s->loops->n; i++)
        s->done[s->loops->items[i].header] = 1;
}

static bool run_rounds(struct search *s)
{
    uint32_t n = (uint32_t)s->cfg->n_blocks;
    for (s->depth = 0; s->depth < LOOPS_DEPTH_MAX; s->depth++) {
        s->first_new = (uint32_t)s->loops->n;
        s->counter = s->n_stack = 0;
        memset(s->index, 0, n * sizeof *s->index);
        for (uint32_t b = 0; b < n; b++)
            if (!s->index[b] && !s->done[b] && !is_new(s, b) && !walk(s, b))
                return false;
        if (s->loops->n == s->first_new)
            break;
        choose_headers(s);
    }
    return true;
}

bool loops_find(struct loops *loops, const struct cfg *cfg)
{
    size_t n = cfg->n_blocks;
    loops->n = 0;
    if (!vec_reserve(&loops->loop_of, &loops->cap_loop_of, n + 1, sizeof *loops->loop_of) ||
        !vec_reserve(&loops->scratch, &loops->cap_scratch, 7 * n + 1, sizeof *loops->scratch))
        return false;
    for (size_t b = 0; b < n; b++)
        loops->loop_of[b] = CFG_NONE;
    if (n == 0)
        return true;
    uint32_t *at = loops->scratch;
    struct search s = {.loops = loops,
                       .cfg = cfg,
                       .reached = at,
                       .index = at + n,
                       .low = at + 2 * n,
                       .stack = at + 3 * n,
                       .path = at + 4 * n,
                       .next_edge = at + 5 * n,
                       .done = at + 6 * n};
    memset(s.done, 0, n * sizeof *s.done);
    rank_reached(&s);
    return run_rounds(&s);
}
