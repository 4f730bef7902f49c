/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding a function, cutting it into blocks, linking them, and finding the loops: see cfg.h. */
#include "structure/cfg/cfg.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

/* --- jump tables as compilers for x86-64 make them --- */

/* 4-byte offsets from the table's own start in position-independent code, 8-byte addresses otherwise. An address that
 * the code loads before the jump is tried as a table: its entries count as long as they lead to instructions of this
 * function, and only up to the bound of a comparison before the jump. */

#define TABLE_INSNS_BACK 32
#define BOUND_INSNS 16
#define ENTRIES_MAX 65536
#define TRIES_MAX 10000000 /* instructions examined for far addresses in one function */

/* The targets of a jump table: indexes of instructions. */
struct cfg_targets {
    uint32_t *items; /* [n] */
    size_t n, capacity;
};

static bool add_target(struct cfg_targets *targets, uint32_t insn)
{
    if (!vec_reserve(&targets->items, &targets->capacity, targets->n + 1, sizeof *targets->items))
        return false;
    targets->items[targets->n++] = insn;
    return true;
}

/* Number of entries, from a comparison and conditional jump before the jump; ENTRIES_MAX: not known. */
static size_t find_bound(const struct cfg *cfg, uint32_t jump)
{
    for (uint32_t i = jump, n = 0; i-- > 0 && n < BOUND_INSNS; n++) {
        if (cfg->insns[i].kind >= CFG_JUMP)
            break;
        if (cfg->insns[i].kind != CFG_COMPARE)
            continue;
        for (uint32_t j = i + 1; j < jump && j < i + 4; j++)
            if (cfg->insns[j].kind == CFG_BRANCH)
                return cfg->insns[i].value < ENTRIES_MAX ? (size_t)cfg->insns[i].value + 1 : ENTRIES_MAX;
    }
    return ENTRIES_MAX;
}

/* Reads a table of entries of width bytes (4: offsets from table, 8: addresses). */
static bool read_table(const struct cfg *cfg, const struct code_image *image, uint64_t table, unsigned width,
                       size_t bound, struct cfg_targets *targets)
{
    uint64_t n_bytes = 0;
    const uint8_t *bytes = code_image_bytes(image, table, &n_bytes);
    targets->n = 0;
    for (size_t i = 0; bytes && i < bound && (i + 1) * width <= n_bytes; i++) {
        uint64_t address = 0;
        int32_t offset = 0;
        if (width == 4)
            memcpy(&offset, bytes + i * 4, sizeof offset);
        else
            memcpy(&address, bytes + i * 8, sizeof address);
        uint32_t insn = cfg_find_insn(cfg, width == 4 ? table + (uint64_t)(int64_t)offset : address);
        if (insn == CFG_NONE)
            break;
        if (!add_target(targets, insn))
            return false;
    }
    return true;
}

/* Tries the address as a table of either width. */
static bool try_table(const struct cfg *cfg, const struct code_image *image, uint64_t table, size_t bound,
                      struct cfg_targets *targets)
{
    if (!read_table(cfg, image, table, 4, bound, targets))
        return false;
    return targets->n > 0 || read_table(cfg, image, table, 8, bound, targets);
}

/* Finds the table of the indirect jump insns[jump] and fills targets; none found: n is 0.
 * Returns false when out of memory. */
static bool cfg_table_find(struct cfg *cfg, const struct code_image *image, uint32_t jump, struct cfg_targets *targets)
{
    size_t bound = find_bound(cfg, jump);
    targets->n = 0;
    if (cfg->insns[jump].value)
        return read_table(cfg, image, cfg->insns[jump].value, 8, bound, targets);
    /* most often the address is loaded right before; optimisation may have moved the load anywhere in the function */
    for (uint32_t i = jump, n = 0; i-- > 0 && n < TABLE_INSNS_BACK; n++)
        if (cfg->insns[i].kind == CFG_LEA) {
            if (!try_table(cfg, image, cfg->insns[i].value, bound, targets))
                return false;
            if (targets->n > 0)
                return true;
        }
    for (uint32_t i = 0; i < cfg->n_insns && cfg->n_tries < TRIES_MAX; i++)
        if (cfg->n_tries++, cfg->insns[i].kind == CFG_LEA) {
            if (!try_table(cfg, image, cfg->insns[i].value, bound, targets))
                return false;
            if (targets->n > 0)
                return true;
        }
    return true;
}

/* --- blocks and jumps --- */

#define FIRST_STEP_INSNS 16

void cfg_fini(struct cfg *cfg)
{
    free(cfg->insns);
    free(cfg->transfers);
    free(cfg->block_of);
    free(cfg->blocks);
    free(cfg->edges);
    free(cfg->jumps);
    free(cfg->first);
    *cfg = (struct cfg){0};
}

/* As cfg_find_insn, among [low, high). */
static uint32_t find_between(const struct cfg *cfg, size_t low, size_t high, uint64_t vaddr)
{
    if (low < high)
        low += search_below(&cfg->insns[low], high - low, SEARCH_KEY(struct cfg_insn, vaddr), vaddr);
    return low < cfg->n_insns && cfg->insns[low].vaddr == vaddr ? (uint32_t)low : CFG_NONE;
}

uint32_t cfg_find_insn(const struct cfg *cfg, uint64_t vaddr)
{
    return find_between(cfg, 0, cfg->n_insns, vaddr);
}

/* As cfg_find_insn, for the target of instruction from, which is usually near. */
static uint32_t find_target(const struct cfg *cfg, size_t from, uint64_t vaddr)
{
    const struct cfg_insn *insns = cfg->insns;
    size_t low = from, high = from;
    for (size_t step = FIRST_STEP_INSNS; low > 0 && insns[low].vaddr > vaddr; step *= 4) {
        high = low;
        low -= step < low ? step : low;
    }
    for (size_t step = FIRST_STEP_INSNS; high < cfg->n_insns && insns[high].vaddr < vaddr; step *= 4) {
        low = high;
        high += step < cfg->n_insns - high ? step : cfg->n_insns - high;
    }
    return find_between(cfg, low, high, vaddr);
}

/* The block that holds vaddr, CFG_NONE when none does. */
static uint32_t cfg_find_block(const struct cfg *cfg, uint64_t vaddr)
{
    size_t low = search_upto(cfg->blocks, cfg->n_blocks, SEARCH_KEY(struct cfg_block, start), vaddr);
    return low > 0 && vaddr < cfg->blocks[low - 1].end ? (uint32_t)low - 1 : CFG_NONE;
}

static bool decode_range(struct cfg *cfg, const struct cfg_module *module, const struct cfg_range *range)
{
    uint64_t n_there = 0, n_bytes;
    const uint8_t *bytes = code_image_bytes(module->image, range->start, &n_there);
    if (!bytes || range->end <= range->start)
        return true;
    n_bytes = n_there < range->end - range->start ? n_there : range->end - range->start;
    for (uint64_t at = 0; at < n_bytes && cfg->n_insns < CFG_INSNS_MAX;) {
        if (cfg->n_insns == cfg->cap_insns &&
            !vec_reserve(&cfg->insns, &cfg->cap_insns, cfg->n_insns + 1, sizeof *cfg->insns))
            return false;
        struct cfg_insn *insn = &cfg->insns[cfg->n_insns++];
        cfg_decode(module->decoder, bytes + at, n_there - at, range->start + at, insn);
        if (insn->len_bytes > n_bytes - at)
            cfg_decode(module->decoder, bytes + at, n_bytes - at, range->start + at, insn);
        insn->is_call = insn->kind == CFG_CALL;
        if (insn->kind >= CFG_CALL) {
            if (cfg->n_transfers == cfg->cap_transfers &&
                !vec_reserve(&cfg->transfers, &cfg->cap_transfers, cfg->n_transfers + 1, sizeof *cfg->transfers))
                return false;
            cfg->transfers[cfg->n_transfers++] = (uint32_t)cfg->n_insns - 1;
        }
        if (insn->kind == CFG_CALL && insn->value &&
            module->never_returns(module->context, insn->value, insn->by_slot, true))
            insn->kind = CFG_END;
        at += insn->len_bytes;
    }
    return true;
}

static bool ends_block(const struct cfg_insn *insn)
{
    return insn->kind >= CFG_BRANCH;
}

static bool falls_through(const struct cfg *cfg, size_t i)
{
    const struct cfg_insn *insn = &cfg->insns[i];
    if (ends_block(insn) && insn->kind != CFG_BRANCH)
        return false;
    return i + 1 < cfg->n_insns && cfg->insns[i + 1].vaddr == insn->vaddr + insn->len_bytes;
}

static bool add_edge(struct cfg *cfg, size_t from, uint32_t to)
{
    if (cfg->n_edges == cfg->cap_edges &&
        !vec_reserve(&cfg->edges, &cfg->cap_edges, cfg->n_edges + 1, sizeof *cfg->edges))
        return false;
    cfg->edges[cfg->n_edges++] = (uint64_t)from << 32 | to;
    return true;
}

static bool add_jump(struct cfg *cfg, size_t from, uint32_t to)
{
    if (cfg->n_jumps == cfg->cap_jumps &&
        !vec_reserve(&cfg->jumps, &cfg->cap_jumps, cfg->n_jumps + 1, sizeof *cfg->jumps))
        return false;
    cfg->jumps[cfg->n_jumps++] = (uint64_t)from << 32 | to;
    return true;
}

/* All jumps, between instructions. */
static bool add_jumps(struct cfg *cfg, const struct cfg_module *module)
{
    struct cfg_targets targets = {0};
    bool ok = true;
    for (size_t t = 0; ok && t < cfg->n_transfers; t++) {
        uint32_t i = cfg->transfers[t], to = CFG_NONE;
        const struct cfg_insn *insn = &cfg->insns[i];
        if (insn->kind == CFG_BRANCH || (insn->kind == CFG_JUMP && !insn->by_slot))
            to = find_target(cfg, i, insn->value);
        if (to != CFG_NONE)
            ok = add_jump(cfg, i, to);
        if (insn->kind != CFG_INDIRECT)
            continue;
        ok = cfg_table_find(cfg, module->image, i, &targets);
        for (size_t k = 0; ok && k < targets.n; k++)
            ok = add_jump(cfg, i, targets.items[k]);
        cfg->n_tables += targets.n > 0;
        cfg->n_unresolved += targets.n == 0;
    }
    free(targets.items);
    return ok;
}

/* What follows a call that never returns is not reached from it, so it must be the target of some jump, if it is code
 * at all: calls before such targets are examined more closely. */
static void end_calls(struct cfg *cfg, const struct cfg_module *module)
{
    for (size_t t = 0; t < cfg->n_transfers; t++) {
        uint32_t i = cfg->transfers[t];
        struct cfg_insn *insn = &cfg->insns[i];
        if (insn->kind == CFG_CALL && insn->value && (i + 1 == cfg->n_insns || cfg->block_of[i + 1]) &&
            module->never_returns(module->context, insn->value, insn->by_slot, false))
            insn->kind = CFG_END;
    }
}

/* Fills block_of and blocks. */
static bool cut_blocks(struct cfg *cfg, const struct cfg_module *module)
{
    if (!vec_reserve(&cfg->block_of, &cfg->cap_block_of, cfg->n_insns + 1, sizeof *cfg->block_of))
        return false;
    memset(cfg->block_of, 0, cfg->n_insns * sizeof *cfg->block_of);
    for (size_t e = 0; e < cfg->n_jumps; e++)
        cfg->block_of[(uint32_t)cfg->jumps[e]] = 1;
    end_calls(cfg, module);
    cfg->n_blocks = 0;
    for (size_t i = 0; i < cfg->n_insns; i++) {
        const struct cfg_insn *insn = &cfg->insns[i];
        bool is_gap = i > 0 && insn[-1].vaddr + insn[-1].len_bytes != insn->vaddr;
        if (i == 0 || cfg->block_of[i] || is_gap || ends_block(insn - 1)) {
            if (cfg->n_blocks == cfg->cap_blocks &&
                !vec_reserve(&cfg->blocks, &cfg->cap_blocks, cfg->n_blocks + 1, sizeof *cfg->blocks))
                return false;
            cfg->blocks[cfg->n_blocks++].start = insn->vaddr;
        }
        cfg->block_of[i] = (uint32_t)cfg->n_blocks - 1;
        cfg->blocks[cfg->n_blocks - 1].last = insn->vaddr;
        cfg->blocks[cfg->n_blocks - 1].end = insn->vaddr + insn->len_bytes;
    }
    return true;
}

static int compare_edges(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the edges of one block, which begin at index begin, and drops duplicates. */
static void sort_block_edges(struct cfg *cfg, size_t begin)
{
    size_t n = begin;
    if (cfg->n_edges - begin == 2 && cfg->edges[begin] > cfg->edges[begin + 1]) {
        uint64_t edge = cfg->edges[begin];
        cfg->edges[begin] = cfg->edges[begin + 1];
        cfg->edges[begin + 1] = edge;
    } else if (cfg->n_edges - begin > 2) {
        qsort(cfg->edges + begin, cfg->n_edges - begin, sizeof *cfg->edges, compare_edges);
    }
    for (size_t e = begin; e < cfg->n_edges; e++)
        if (n == begin || cfg->edges[n - 1] != cfg->edges[e])
            cfg->edges[n++] = cfg->edges[e];
    cfg->n_edges = n;
}

/* Makes edges between blocks from the jumps between instructions, which are sorted by origin, and from the steps into
 * the next block; fills first. */
static bool link_blocks(struct cfg *cfg)
{
    cfg->n_edges = 0;
    if (!vec_reserve(&cfg->first, &cfg->cap_first, cfg->n_blocks + 1, sizeof *cfg->first))
        return false;
    size_t jump = 0, begin = 0;
    for (size_t i = 0; i < cfg->n_insns; i++) {
        uint32_t block = cfg->block_of[i];
        if (i == 0 || block != cfg->block_of[i - 1])
            cfg->first[block] = (uint32_t)(begin = cfg->n_edges);
        for (; jump < cfg->n_jumps && cfg->jumps[jump] >> 32 == i; jump++)
            if (!add_edge(cfg, block, cfg->block_of[(uint32_t)cfg->jumps[jump]]))
                return false;
        bool is_last = i + 1 == cfg->n_insns || cfg->block_of[i + 1] != block;
        if (is_last && falls_through(cfg, i) && !add_edge(cfg, block, block + 1))
            return false;
        if (is_last)
            sort_block_edges(cfg, begin);
    }
    cfg->first[cfg->n_blocks] = (uint32_t)cfg->n_edges;
    return true;
}

/* Whether some edge leads back. */
static bool has_jump_back(const struct cfg *cfg)
{
    for (size_t i = 0; i < cfg->n_jumps; i++)
        if ((uint32_t)cfg->jumps[i] <= cfg->jumps[i] >> 32)
            return true;
    return false;
}

bool cfg_build(struct cfg *cfg, const struct cfg_module *module, const struct cfg_range *ranges, size_t n_ranges,
               uint64_t entry)
{
    cfg->n_insns = cfg->n_transfers = cfg->n_blocks = cfg->n_edges = cfg->n_jumps = 0;
    cfg->n_unresolved = cfg->n_tables = 0;
    cfg->n_tries = 0;
    for (size_t i = 0; i < n_ranges; i++)
        if (!decode_range(cfg, module, &ranges[i]))
            return false;
    if (!add_jumps(cfg, module))
        return false;
    if (!has_jump_back(cfg))
        return true;
    if (!cut_blocks(cfg, module) || !link_blocks(cfg))
        return false;
    uint32_t block = cfg_find_block(cfg, entry);
    cfg->entry = block == CFG_NONE ? 0 : block;
    return true;
}

/* --- loops --- */

/* Rounds of Tarjan's strongly connected components: each round finds the loops of one depth in all loops of the depth
 * before, with their headers taken out. */

/* Working arrays, [n_blocks] each. */
struct loop_search {
    struct loops *loops;
    const struct cfg *cfg;
    uint32_t *reached;     /* distance rank from the entry, CFG_NONE: not reached */
    uint32_t *index, *low; /* Tarjan's numbers, 0: not visited in this round */
    uint32_t *stack, *path, *next_edge;
    uint32_t *done; /* 1: a header, or in no deeper loop */
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

static uint32_t edge_to(const struct loop_search *s, uint32_t edge)
{
    return (uint32_t)s->cfg->edges[edge];
}

/* Ranks the blocks that the entry reaches, breadth first. */
static void rank_reached(struct loop_search *s)
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

static bool loops_back(const struct loop_search *s, uint32_t block)
{
    for (uint32_t e = s->cfg->first[block]; e < s->cfg->first[block + 1]; e++)
        if (edge_to(s, e) == block)
            return true;
    return false;
}

/* Takes the component whose root is block off the stack: a loop, or a single block in no deeper loop. */
static bool take_component(struct loop_search *s, uint32_t block)
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

static void visit(struct loop_search *s, uint32_t block, uint32_t *n_path)
{
    s->index[block] = s->low[block] = ++s->counter;
    s->stack[s->n_stack++] = block;
    s->next_edge[block] = s->cfg->first[block];
    s->path[(*n_path)++] = block;
}

/* Tarjan's walk from start over the blocks of its region. A block is on the stack when it was visited and its loop_of
 * is still that of the region. */
static bool visit_region(struct loop_search *s, uint32_t start)
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

/* Records that block is an entry of the new loop it is in: on a path from the function's entry (is_reached), or only on
 * an unknown one. */
static void add_entry(struct loop_search *s, uint32_t block, bool is_reached)
{
    struct loop *loop = &s->loops->items[s->loops->loop_of[block]];
    if (loop->header == block || (!is_reached && loop->header != CFG_NONE))
        return;
    bool had_reached = loop->header != CFG_NONE && s->reached[loop->header] != CFG_NONE;
    loop->is_irreducible = had_reached && is_reached;
    if (!had_reached || s->reached[block] < s->reached[loop->header])
        loop->header = block;
}

static bool is_new(const struct loop_search *s, uint32_t block)
{
    uint32_t loop = s->loops->loop_of[block];
    return loop != CFG_NONE && loop >= s->first_new;
}

/* Gives the loops of this round their headers. */
static void choose_headers(struct loop_search *s)
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

static bool run_rounds(struct loop_search *s)
{
    uint32_t n = (uint32_t)s->cfg->n_blocks;
    for (s->depth = 0; s->depth < LOOPS_DEPTH_MAX; s->depth++) {
        s->first_new = (uint32_t)s->loops->n;
        s->counter = s->n_stack = 0;
        memset(s->index, 0, n * sizeof *s->index);
        for (uint32_t b = 0; b < n; b++)
            if (!s->index[b] && !s->done[b] && !is_new(s, b) && !visit_region(s, b))
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
    struct loop_search s = {.loops = loops,
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
