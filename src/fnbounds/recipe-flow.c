/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of whole functions and their predecessor lists (compressed rows: jumps sorted by target). */
#include "fnbounds/recipe-make.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

#define WAITING_INSNS_MAX 32 /* of a loop that waits: longer ones do other work too */

uint32_t flow_find(const struct flow *flow, uint32_t pc)
{
    size_t low = search_below(flow->insns, flow->n_insns, SEARCH_KEY(struct insn, pc), pc);
    return low < flow->n_insns && flow->insns[low].pc == pc ? (uint32_t)low : INSN_NONE;
}

bool flow_is_target(const struct flow *flow, uint32_t i)
{
    return flow->first_source[i] != flow->first_source[i + 1];
}

static bool decode_all(struct flow *flow, const struct insn_decoder *decoder, const uint8_t *bytes)
{
    uint32_t n_bytes = flow->end - flow->start;
    flow->n_insns = 0;
    flow->n_indirect = 0;
    flow->last_indirect = INSN_NONE;
    for (uint32_t offset = 0; offset < n_bytes;) {
        if (!vec_reserve(&flow->insns, &flow->capacity, flow->n_insns + 1, sizeof *flow->insns))
            return false;
        struct insn *insn = &flow->insns[flow->n_insns];
        insn_decode(decoder, bytes + offset, n_bytes - offset, flow->start + offset, insn);
        if (insn->kind == INSN_JMP_INDIRECT)
            flow->last_indirect = flow->n_indirect++ ? INSN_NONE : (uint32_t)flow->n_insns;
        offset += insn->len_bytes;
        flow->n_insns++;
    }
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

static bool add_direct_jumps(const struct flow *flow, struct edges *edges)
{
    for (uint32_t i = 0; i < flow->n_insns; i++) {
        const struct insn *insn = &flow->insns[i];
        if (insn->target == INSN_NONE || insn->kind == INSN_CALL)
            continue;
        uint32_t to = flow_find(flow, insn->target);
        if (to != INSN_NONE && !add_edge(edges, i, to))
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

static uint32_t choose_pred(const struct flow *flow, uint32_t i)
{
    uint32_t pred = innermost_back_edge(flow, i);
    if (pred != INSN_NONE)
        return pred;
    if (i && flow_falls_through(flow, i - 1))
        return i - 1;
    pred = nearest_jump(flow, i);
    return pred == INSN_NONE && i ? flow->last_indirect : pred;
}

bool flow_build(struct flow *flow, const struct insn_decoder *decoder, const struct flow_image *image,
                const uint8_t *bytes, uint32_t start, uint32_t end)
{
    struct edges edges = {0};
    flow->start = start;
    flow->end = end;
    bool ok = decode_all(flow, decoder, bytes) && add_direct_jumps(flow, &edges) &&
              add_table_jumps(flow, image, &edges) && sort_edges(flow, &edges);
    free(edges.items);
    for (uint32_t i = 0; ok && i < flow->n_insns; i++)
        flow->insns[i].pred = choose_pred(flow, i);
    return ok;
}

void flow_fini(struct flow *flow)
{
    free(flow->insns);
    free(flow->first_source);
    free(flow->sources);
    free(flow->patterns);
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
    for (uint32_t p = first; p < flow->n_insns && p < i + WAITING_INSNS_MAX; p++)
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

/* --- guards --- */

/* Telling the first pass of a loop from the later ones: see recipe-make.h. */

#define ENTRY_STEPS_MAX 16

/* True when every write of reg between head and back_edge adds a constant of one sign, and there is one. */
static bool is_counted(const struct flow *flow, uint32_t head, uint32_t back_edge, uint8_t reg)
{
    int sign = 0;
    for (uint32_t i = head; i <= back_edge; i++) {
        const struct insn *insn = &flow->insns[i];
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
        if (flow->insns[i].writes & INSN_BIT(reg))
            return true;
    return false;
}

bool recipe_guard_find(const struct flow *flow, uint32_t head, uint32_t back_edge, uint32_t entry,
                       struct recipe_guard *guard)
{
    uint64_t written = 0; /* between the current instruction and the head */
    uint32_t i = entry;
    for (unsigned step = 0; step < ENTRY_STEPS_MAX && i != INSN_NONE && i < head; step++) {
        const struct insn *insn = &flow->insns[i];
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
        i = flow_is_target(flow, i) ? INSN_NONE : insn->pred;
    }
    return false;
}
