/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of whole functions and their predecessor lists (compressed rows: jumps sorted by target). */
#include "fnbounds/recipe-make.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

#define WAITING_INSNS_MAX 32 /* of a loop that waits: longer ones do other work too */
#define RETRY_INSNS_MAX 32   /* from where an exchange that failed is tried again to the exchange */
#define RETRY_TAIL_MAX 5     /* from the exchange to the jump back, and where that lies apart */

uint32_t flow_find(const struct flow *flow, uint32_t pc)
{
    if (pc < flow->start || pc >= flow->end)
        return INSN_NONE;
    uint32_t i = flow->marks[(pc - flow->start) / FLOW_MARK_BYTES];
    while (i < flow->n_insns && flow->insns[i].pc < pc)
        i++;
    return i < flow->n_insns && flow->insns[i].pc == pc ? i : INSN_NONE;
}

bool flow_is_target(const struct flow *flow, uint32_t i)
{
    return flow->first_source[i] != flow->first_source[i + 1];
}

static bool decode_all(struct flow *flow, const struct insn_decoder *decoder, const uint8_t *bytes)
{
    uint32_t n_bytes = flow->end - flow->start;
    flow->n_insns = 0;
    flow->n_indirect = flow->n_pauses = flow->n_exchanges = 0;
    flow->last_indirect = INSN_NONE;
    uint32_t n_marks = 0;
    if (!vec_reserve(&flow->insns, &flow->capacity, n_bytes / 4 + (size_t)1, sizeof *flow->insns) ||
        !vec_reserve(&flow->marks, &flow->marks_capacity, n_bytes / FLOW_MARK_BYTES + (size_t)1, sizeof *flow->marks))
        return false;
    for (uint32_t offset = 0; offset < n_bytes;) {
        if (flow->n_insns == flow->capacity &&
            !vec_reserve(&flow->insns, &flow->capacity, flow->n_insns + 1, sizeof *flow->insns))
            return false;
        while (n_marks <= offset / FLOW_MARK_BYTES)
            flow->marks[n_marks++] = (uint32_t)flow->n_insns;
        struct insn *insn = &flow->insns[flow->n_insns];
        if (!insn_skim(bytes + offset, n_bytes - offset, flow->start + offset, insn))
            insn_decode(decoder, bytes + offset, n_bytes - offset, flow->start + offset, insn);
        flow->n_pauses += insn->is_pause;
        flow->n_exchanges += insn->is_compare_exchange;
        if (insn->kind == INSN_JMP_INDIRECT)
            flow->last_indirect = flow->n_indirect++ ? INSN_NONE : (uint32_t)flow->n_insns;
        offset += insn->len_bytes;
        flow->n_insns++;
    }
    while (n_marks <= n_bytes / FLOW_MARK_BYTES)
        flow->marks[n_marks++] = (uint32_t)flow->n_insns;
    return true;
}

/* A jump inside the function: from, to as indexes. */
struct edge {
    uint32_t from, to;
};

struct edges {
    struct edge *items;
    size_t n, capacity;
};

static bool add_edge(struct edges *edges, uint32_t from, uint32_t to)
{
    if (!vec_reserve(&edges->items, &edges->capacity, edges->n + 1, sizeof *edges->items))
        return false;
    edges->items[edges->n++] = (struct edge){from, to};
    return true;
}

/* Whether only plain instructions, and n_jumps conditional jumps at most, lie between two instructions. */
static bool is_plain_way(const struct flow *flow, uint32_t first, uint32_t end, unsigned n_jumps)
{
    bool is_plain = end - first <= RETRY_TAIL_MAX;
    for (uint32_t i = first; is_plain && i < end; i++) {
        uint8_t kind = flow->insns[i].kind;
        is_plain = kind == INSN_PLAIN || kind == INSN_NOP || (kind == INSN_JCC && n_jumps > 0);
        n_jumps -= kind == INSN_JCC && n_jumps > 0;
    }
    return is_plain;
}

/* Whether a jump back tries a compare and exchange again that has failed: right behind it, or in a block of its own to
 * which the exchange's jump leads. Such a loop rarely takes a second turn: control comes from before it. */
static bool is_retry(const struct flow *flow, uint32_t from, uint32_t to)
{
    if (!flow->n_exchanges || to > from)
        return false;
    for (uint32_t k = to; k < flow->n_insns && k < to + RETRY_INSNS_MAX; k++) {
        if (!flow->insns[k].is_compare_exchange || k + 1 >= flow->n_insns)
            continue;
        if (k < from && is_plain_way(flow, k + 1, from, 1))
            return true;
        const struct insn *jump = &flow->insns[k + 1];
        uint32_t apart =
            jump->kind == INSN_JCC && jump->target != INSN_NONE ? flow_find(flow, jump->target) : INSN_NONE;
        if (apart != INSN_NONE && apart <= from && is_plain_way(flow, apart, from, 0))
            return true;
    }
    return false;
}

static bool add_direct_jumps(const struct flow *flow, struct edges *edges)
{
    for (uint32_t i = 0; i < flow->n_insns; i++) {
        const struct insn *insn = &flow->insns[i];
        if (insn->target == INSN_NONE || insn->kind == INSN_CALL)
            continue;
        uint32_t to = flow_find(flow, insn->target);
        if (to != INSN_NONE && !is_retry(flow, i, to) && !add_edge(edges, i, to))
            return false;
    }
    return true;
}

/* The last indirect jump within reach after the table's address was loaded. */
static uint32_t find_jump_after(const struct flow *flow, uint32_t i)
{
    for (uint32_t j = i; j < flow->n_insns && j < i + 24; j++)
        if (flow->insns[j].kind == INSN_JMP_INDIRECT)
            return j;
    return INSN_NONE;
}

/* Table of 32-bit offsets relative to itself, as compilers make them for position-independent code: entries count as
 * long as they lead to instructions of this function. */
static bool add_table(const struct flow *flow, const struct flow_image *image, uint32_t jump, uint32_t table,
                      struct edges *edges)
{
    for (uint32_t n = 0; n < 4096; n++) {
        const uint8_t *entry = image->bytes(image->image, (uint64_t)table + n * 4, 4);
        if (!entry)
            return true;
        int32_t offset;
        memcpy(&offset, entry, sizeof offset);
        uint32_t to = flow_find(flow, table + (uint32_t)offset);
        if (to == INSN_NONE)
            return true;
        if (!add_edge(edges, jump, to))
            return false;
    }
    return true;
}

/* Every pc-relative lea in a function with indirect jumps may be the address of a jump table; what it points at
 * decides. Tables of absolute pointers (position-dependent code) are not read: their targets have no predecessor. */
static bool add_table_jumps(const struct flow *flow, const struct flow_image *image, struct edges *edges)
{
    if (!flow->n_indirect)
        return true;
    for (uint32_t i = 0; i < flow->n_insns; i++) {
        const struct insn *insn = &flow->insns[i];
        if (insn->table == INSN_NONE)
            continue;
        uint32_t jump = flow->n_indirect == 1 ? flow->last_indirect : find_jump_after(flow, i);
        if (jump != INSN_NONE && !add_table(flow, image, jump, insn->table, edges))
            return false;
    }
    return true;
}

static bool sort_edges(struct flow *flow, const struct edges *edges)
{
    if (!vec_reserve(&flow->first_source, &flow->first_capacity, flow->n_insns + 2, sizeof *flow->first_source) ||
        !vec_reserve(&flow->sources, &flow->sources_capacity, edges->n + 1, sizeof *flow->sources))
        return false;
    uint32_t *first = flow->first_source;
    memset(first, 0, (flow->n_insns + 2) * sizeof *first);
    for (size_t e = 0; e < edges->n; e++)
        first[edges->items[e].to + 2]++;
    for (size_t i = 2; i < flow->n_insns + 2; i++)
        first[i] += first[i - 1];
    for (size_t e = 0; e < edges->n; e++)
        flow->sources[first[edges->items[e].to + 1]++] = edges->items[e].from;
    flow->n_sources = edges->n;
    return true;
}

/* Jumps to i from i itself or from after it go round a loop: the smallest distance is the innermost loop. */
static uint32_t innermost_back_edge(const struct flow *flow, uint32_t i)
{
    uint32_t nearest = INSN_NONE;
    for (uint32_t s = flow->first_source[i]; s < flow->first_source[i + 1]; s++) {
        uint32_t from = flow->sources[s];
        if (from >= i && from < nearest && flow->insns[from].kind != INSN_JMP_INDIRECT)
            nearest = from;
    }
    return nearest;
}

static uint32_t nearest_jump(const struct flow *flow, uint32_t i)
{
    uint32_t nearest = INSN_NONE, nearest_distance = INSN_NONE;
    for (uint32_t s = flow->first_source[i]; s < flow->first_source[i + 1]; s++) {
        uint32_t from = flow->sources[s];
        uint32_t distance = from < i ? i - from : from - i;
        if (distance < nearest_distance) {
            nearest = from;
            nearest_distance = distance;
        }
    }
    return nearest;
}

uint32_t flow_pred(const struct flow *flow, uint32_t i)
{
    uint32_t pred = innermost_back_edge(flow, i);
    if (pred != INSN_NONE)
        return pred;
    if (i && flow_falls_through(flow, i - 1))
        return i - 1;
    pred = nearest_jump(flow, i);
    return pred == INSN_NONE && i ? flow->last_indirect : pred;
}

void flow_decode(const struct flow *flow, uint32_t i)
{
    struct insn *insn = &flow->insns[i];
    uint32_t offset = insn->pc - flow->start;
    insn_decode(flow->decoder, flow->bytes + offset, flow->end - insn->pc, insn->pc, insn);
}

bool flow_build(struct flow *flow, const struct insn_decoder *decoder, const struct flow_image *image,
                const uint8_t *bytes, uint32_t start, uint32_t end)
{
    struct edges edges = {0};
    flow->start = start;
    flow->end = end;
    flow->decoder = decoder;
    flow->bytes = bytes;
    bool ok = decode_all(flow, decoder, bytes) && add_direct_jumps(flow, &edges) &&
              add_table_jumps(flow, image, &edges) && sort_edges(flow, &edges);
    free(edges.items);
    return ok;
}

void flow_fini(struct flow *flow)
{
    free(flow->insns);
    free(flow->first_source);
    free(flow->sources);
    free(flow->marks);
    free(flow->block_of);
    free(flow->blocks);
    stride_end(flow);
    *flow = (struct flow){0};
}

unsigned flow_preds(const struct flow *flow, uint32_t i, uint32_t preds[FLOW_PREDS_MAX])
{
    unsigned n = 0;
    uint32_t back_edge = innermost_back_edge(flow, i);
    bool is_loop_head = back_edge != INSN_NONE;
    if (is_loop_head)
        preds[n++] = back_edge;
    else if (i && flow_falls_through(flow, i - 1))
        preds[n++] = i - 1;
    for (uint32_t s = flow->first_source[i]; s < flow->first_source[i + 1] && n < FLOW_PREDS_MAX; s++) {
        uint32_t from = flow->sources[s];
        if (from != back_edge && (from >= i) == is_loop_head)
            preds[n++] = from;
    }
    if (!n && flow->last_indirect != INSN_NONE && i)
        preds[n++] = flow->last_indirect;
    return n;
}

/* Whether the loop from its head to the jump back pauses at p in every turn and calls nothing. */
static bool is_waiting_loop(const struct flow *flow, uint32_t head, uint32_t p, uint32_t back)
{
    for (uint32_t i = head; i <= back; i++) {
        const struct insn *insn = &flow->insns[i];
        if (insn->kind != INSN_PLAIN && insn->kind != INSN_NOP && insn->kind != INSN_JCC && insn->kind != INSN_JMP)
            return false;
        uint32_t to = i < p && insn->target != INSN_NONE ? flow_find(flow, insn->target) : INSN_NONE;
        if (to != INSN_NONE && to > p && to <= back)
            return false;
    }
    return true;
}

/* The innermost loop around p: its head and its jump back; false when there is none that is short. */
static bool loop_around(const struct flow *flow, uint32_t p, uint32_t *head, uint32_t *back)
{
    bool is_found = false;
    *head = *back = p;
    for (uint32_t j = p + 1; j < flow->n_insns && j < p + WAITING_INSNS_MAX; j++) {
        const struct insn *insn = &flow->insns[j];
        bool is_jump = insn->target != INSN_NONE && (insn->kind == INSN_JCC || insn->kind == INSN_JMP);
        uint32_t to = is_jump && insn->target <= flow->insns[p].pc ? flow_find(flow, insn->target) : INSN_NONE;
        if (to == INSN_NONE || j - to >= WAITING_INSNS_MAX || (is_found && j - to >= *back - *head))
            continue;
        *head = to;
        *back = j;
        is_found = true;
    }
    return is_found;
}

bool flow_is_waiting(const struct flow *flow, uint32_t i)
{
    uint32_t first = i > WAITING_INSNS_MAX ? i - WAITING_INSNS_MAX : 0, head = 0, back = 0;
    for (uint32_t p = first; flow->n_pauses && p < flow->n_insns && p < i + WAITING_INSNS_MAX; p++)
        if (flow->insns[p].is_pause && loop_around(flow, p, &head, &back) && i >= head && i <= back &&
            is_waiting_loop(flow, head, p, back))
            return true;
    return false;
}

uint32_t flow_loop_entry(const struct flow *flow, uint32_t i, uint32_t *back_edge)
{
    uint32_t entry = INSN_NONE;
    *back_edge = innermost_back_edge(flow, i);
    if (*back_edge == INSN_NONE)
        return INSN_NONE;
    if (i && flow_falls_through(flow, i - 1))
        entry = i - 1;
    for (uint32_t s = flow->first_source[i]; s < flow->first_source[i + 1]; s++) {
        if (flow->sources[s] >= i)
            continue;
        if (entry != INSN_NONE)
            return INSN_NONE;
        entry = flow->sources[s];
    }
    return entry;
}

/* --- order --- */

/* Which instructions come before others on every path: dominators of basic blocks, by the method of Lengauer and
 * Tarjan with path compression (ACM TOPLAS 1 (1979) 121), so that functions of a million jumps take no longer for each.
 */

/* Arrays of the method, each [n_blocks]; all but the first by the number of a block in a depth-first walk. */
struct walk {
    const struct flow *flow;
    uint32_t *number; /* [n_blocks] by block; INSN_NONE: nothing leads there from the start */
    uint32_t *block, *parent, *semi, *label, *ancestor, *idom, *bucket, *next_in_bucket, *stack;
    uint32_t *first_jump, *jumps; /* [n_blocks + 2], [n_sources]: blocks to which the jump at the end of each goes */
    uint32_t *starts;             /* [n_blocks + 1] first instruction of each */
    uint32_t n_blocks, n_reached;
};

#define WALK_ARRAYS 12 /* of n_blocks + 2 words */

static bool is_block_start(const struct flow *flow, uint32_t i)
{
    return i == 0 || flow_is_target(flow, i) || flow->insns[i - 1].kind == INSN_JCC || !flow_falls_through(flow, i - 1);
}

static uint32_t number_blocks(struct flow *flow)
{
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < flow->n_insns; i++) {
        n_blocks += is_block_start(flow, i);
        flow->block_of[i] = n_blocks - 1;
    }
    return n_blocks;
}

static bool walk_init(struct walk *walk, const struct flow *flow)
{
    size_t n = walk->n_blocks + (size_t)2;
    uint32_t *words = malloc((WALK_ARRAYS * n + flow->n_sources) * sizeof *words);
    uint32_t **arrays[WALK_ARRAYS] = {&walk->number, &walk->block,      &walk->parent, &walk->semi,
                                      &walk->label,  &walk->ancestor,   &walk->idom,   &walk->bucket,
                                      &walk->stack,  &walk->first_jump, &walk->starts, &walk->next_in_bucket};
    if (!words)
        return false;
    for (unsigned a = 0; a < WALK_ARRAYS; a++)
        *arrays[a] = words + a * n;
    walk->jumps = words + WALK_ARRAYS * n;
    walk->flow = flow;
    memset(walk->number, 0xff, n * sizeof *words);
    memset(walk->bucket, 0xff, n * sizeof *words);
    memset(walk->ancestor, 0xff, n * sizeof *words);
    memset(walk->first_jump, 0, n * sizeof *words);
    return true;
}

/* Turns the lists of what leads to each instruction into lists of where each block leads. */
static void list_jumps(const struct walk *walk)
{
    const struct flow *flow = walk->flow;
    for (uint32_t i = 0; i < flow->n_insns; i++)
        if (i == 0 || flow->block_of[i] != flow->block_of[i - 1])
            walk->starts[flow->block_of[i]] = i;
    walk->starts[walk->n_blocks] = (uint32_t)flow->n_insns;
    for (size_t s = 0; s < flow->n_sources; s++)
        walk->first_jump[flow->block_of[flow->sources[s]] + 2]++;
    for (uint32_t b = 2; b < walk->n_blocks + 2; b++)
        walk->first_jump[b] += walk->first_jump[b - 1];
    for (uint32_t b = 0; b < walk->n_blocks; b++)
        for (uint32_t s = flow->first_source[walk->starts[b]]; s < flow->first_source[walk->starts[b] + 1]; s++)
            walk->jumps[walk->first_jump[flow->block_of[flow->sources[s]] + 1]++] = b;
}

static void reach(struct walk *walk, uint32_t block, uint32_t parent)
{
    uint32_t v = walk->n_reached;
    if (walk->number[block] != INSN_NONE)
        return;
    walk->n_reached++;
    walk->number[block] = walk->semi[v] = walk->label[v] = v;
    walk->block[v] = block;
    walk->parent[v] = parent;
}

/* Numbers the blocks in depth-first order from the function's start. The arrays of dominators are not in use yet:
 * bucket [v] is the next jump of v that is to be followed, idom [v] whether its fall-through has been. */
static void number_reached(struct walk *walk)
{
    uint32_t depth = 0;
    reach(walk, 0, 0);
    walk->stack[depth++] = 0;
    walk->bucket[0] = walk->first_jump[0];
    walk->idom[0] = false;
    while (depth > 0) {
        uint32_t v = walk->stack[depth - 1], block = walk->block[v], to;
        if (!walk->idom[v]) {
            walk->idom[v] = true;
            to = block + 1;
            if (to == walk->n_blocks || !flow_falls_through(walk->flow, walk->starts[to] - 1))
                continue;
        } else if (walk->bucket[v] < walk->first_jump[block + 1]) {
            to = walk->jumps[walk->bucket[v]++];
        } else {
            walk->bucket[v] = INSN_NONE;
            depth--;
            continue;
        }
        uint32_t next = walk->n_reached;
        reach(walk, to, v);
        if (walk->n_reached == next)
            continue;
        walk->stack[depth++] = next;
        walk->bucket[next] = walk->first_jump[to];
        walk->idom[next] = false;
    }
}

/* The block with the smallest semidominator on the way from v up to the root of its tree. */
static uint32_t evaluate(const struct walk *walk, uint32_t v)
{
    uint32_t depth = 0;
    if (walk->ancestor[v] == INSN_NONE)
        return v;
    for (uint32_t u = v; walk->ancestor[walk->ancestor[u]] != INSN_NONE; u = walk->ancestor[u])
        walk->stack[depth++] = u;
    while (depth > 0) {
        uint32_t u = walk->stack[--depth], above = walk->ancestor[u];
        if (walk->semi[walk->label[above]] < walk->semi[walk->label[u]])
            walk->label[u] = walk->label[above];
        walk->ancestor[u] = walk->ancestor[above];
    }
    return walk->label[v];
}

static void take_pred(const struct walk *walk, uint32_t v, uint32_t insn)
{
    uint32_t from = walk->number[walk->flow->block_of[insn]];
    if (from == INSN_NONE)
        return;
    uint32_t semi = walk->semi[evaluate(walk, from)];
    if (semi < walk->semi[v])
        walk->semi[v] = semi;
}

static void find_dominators(const struct walk *walk)
{
    const struct flow *flow = walk->flow;
    for (uint32_t v = walk->n_reached - 1; v > 0; v--) {
        uint32_t start = walk->starts[walk->block[v]], parent = walk->parent[v];
        if (start && flow_falls_through(flow, start - 1))
            take_pred(walk, v, start - 1);
        for (uint32_t s = flow->first_source[start]; s < flow->first_source[start + 1]; s++)
            take_pred(walk, v, flow->sources[s]);
        walk->next_in_bucket[v] = walk->bucket[walk->semi[v]];
        walk->bucket[walk->semi[v]] = v;
        walk->ancestor[v] = parent;
        for (uint32_t w = walk->bucket[parent]; w != INSN_NONE; w = walk->next_in_bucket[w]) {
            uint32_t u = evaluate(walk, w);
            walk->idom[w] = walk->semi[u] < walk->semi[w] ? u : parent;
        }
        walk->bucket[parent] = INSN_NONE;
    }
    for (uint32_t v = 1; v < walk->n_reached; v++)
        if (walk->idom[v] != walk->semi[v])
            walk->idom[v] = walk->idom[walk->idom[v]];
}

/* Gives each block its span in the tree of dominators: a block's span encloses those of all that it dominates. */
static void fill_order(struct flow *flow, const struct walk *walk)
{
    uint32_t *size = walk->semi, *next = walk->label;
    for (uint32_t v = 0; v < walk->n_reached; v++)
        size[v] = 1;
    for (uint32_t v = walk->n_reached - 1; v > 0; v--)
        size[walk->idom[v]] += size[v];
    for (uint32_t b = 0; b <= walk->n_blocks; b++)
        flow->blocks[b] = (struct flow_block){walk->starts[b], INSN_NONE, INSN_NONE, INSN_NONE};
    for (uint32_t v = 0, first = 0; v < walk->n_reached; v++) {
        if (v) {
            first = next[walk->idom[v]];
            next[walk->idom[v]] += size[v];
        }
        next[v] = first + 1;
        struct flow_block *block = &flow->blocks[walk->block[v]];
        block->first = first;
        block->end = first + size[v];
        block->dominator = v ? walk->block[walk->idom[v]] : INSN_NONE;
    }
}

bool flow_find_order(struct flow *flow)
{
    struct walk walk = {0};
    if (!vec_reserve(&flow->block_of, &flow->block_of_capacity, flow->n_insns + 1, sizeof *flow->block_of))
        return false;
    walk.n_blocks = number_blocks(flow);
    if (!vec_reserve(&flow->blocks, &flow->blocks_capacity, walk.n_blocks + (size_t)1, sizeof *flow->blocks) ||
        !walk_init(&walk, flow))
        return false;
    list_jumps(&walk);
    number_reached(&walk);
    find_dominators(&walk);
    fill_order(flow, &walk);
    flow->n_blocks = walk.n_blocks;
    free(walk.number);
    return true;
}

bool flow_is_always_before(const struct flow *flow, uint32_t head, uint32_t block)
{
    const struct flow_block *a = &flow->blocks[head], *b = &flow->blocks[block];
    return b->first == INSN_NONE || (a->first != INSN_NONE && a->first <= b->first && b->first < a->end);
}

/* --- guards --- */

/* Telling the first pass of a loop from the later ones: see recipe-make.h. */

#define ENTRY_STEPS_MAX 16

/* True when every write of reg between head and back_edge adds a constant of one sign, and there is one. */
static bool is_counted(const struct flow *flow, uint32_t head, uint32_t back_edge, uint8_t reg)
{
    int sign = 0;
    for (uint32_t i = head; i <= back_edge; i++) {
        const struct insn *insn = flow_insn(flow, i);
        if (!(insn->writes & INSN_BIT(reg)))
            continue;
        const struct insn_effect *effect = NULL;
        for (unsigned e = 0; e < insn->n_effects; e++)
            if (insn->effects[e].kind == EFFECT_ADD && insn->effects[e].reg == reg)
                effect = &insn->effects[e];
        if (!effect || effect->source != RECIPE_NO_REG || !effect->value)
            return false;
        int step = effect->value > 0 ? 1 : -1;
        if (sign && step != sign)
            return false;
        sign = step;
    }
    return sign != 0;
}

static bool is_written(const struct flow *flow, uint32_t head, uint32_t back_edge, uint8_t reg)
{
    for (uint32_t i = head; i <= back_edge; i++)
        if (flow_insn(flow, i)->writes & INSN_BIT(reg))
            return true;
    return false;
}

bool recipe_guard_find(const struct flow *flow, uint32_t head, uint32_t back_edge, uint32_t entry,
                       struct recipe_guard *guard)
{
    uint64_t written = 0; /* between the current instruction and the head */
    uint32_t i = entry;
    for (unsigned step = 0; step < ENTRY_STEPS_MAX && i != INSN_NONE && i < head; step++) {
        const struct insn *insn = flow_insn(flow, i);
        for (unsigned e = 0; e < insn->n_effects; e++) {
            const struct insn_effect *effect = &insn->effects[e];
            bool is_copy = effect->kind == EFFECT_COPY && !effect->value && effect->source < 16 &&
                           !(written & INSN_BIT(effect->source)) && effect->source != effect->reg &&
                           !is_written(flow, head, back_edge, effect->source);
            if ((effect->kind != EFFECT_CONSTANT && !is_copy) || written & INSN_BIT(effect->reg) ||
                !is_counted(flow, head, back_edge, effect->reg))
                continue;
            *guard = (struct recipe_guard){.reg = effect->reg,
                                           .other = is_copy ? effect->source : RECIPE_NO_REG,
                                           .value = (uint32_t)effect->value};
            return true;
        }
        written |= insn->writes;
        if (insn->kind != INSN_PLAIN && insn->kind != INSN_NOP)
            written |= insn->kind == INSN_JCC || insn->kind == INSN_JMP ? 0 : UINT64_MAX;
        i = flow_is_target(flow, i) ? INSN_NONE : flow_pred(flow, i);
    }
    return false;
}
