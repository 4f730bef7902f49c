/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding a function, cutting it into blocks, and linking them: see cfg.h. */
#include "structure/cfg.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "structure/cfg-internal.h"

#define NEAR_INSNS 16

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
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cfg->insns[middle].vaddr < vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < cfg->n_insns && cfg->insns[low].vaddr == vaddr ? (uint32_t)low : CFG_NONE;
}

uint32_t cfg_find_insn(const struct cfg *cfg, uint64_t vaddr)
{
    return find_between(cfg, 0, cfg->n_insns, vaddr);
}

/* As cfg_find_insn, for where instruction from leads: most often it is near. */
static uint32_t find_target(const struct cfg *cfg, size_t from, uint64_t vaddr)
{
    const struct cfg_insn *insns = cfg->insns;
    size_t low = from, high = from;
    for (size_t step = NEAR_INSNS; low > 0 && insns[low].vaddr > vaddr; step *= 4) {
        high = low;
        low -= step < low ? step : low;
    }
    for (size_t step = NEAR_INSNS; high < cfg->n_insns && insns[high].vaddr < vaddr; step *= 4) {
        low = high;
        high += step < cfg->n_insns - high ? step : cfg->n_insns - high;
    }
    return find_between(cfg, low, high, vaddr);
}

uint32_t cfg_find_block(const struct cfg *cfg, uint64_t vaddr)
{
    size_t low = 0, high = cfg->n_blocks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cfg->blocks[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
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

/* What follows a call that never returns is not reached from it, so it is the target of some jump, if it is code at
 * all: calls before such targets are looked at more closely. */
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

/* Sorts the edges [begin, end) of one block and drops what is there twice. */
static void settle_block(struct cfg *cfg, size_t begin)
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

/* Makes edges between blocks of the jumps between instructions, which are sorted by where they come from, and of the
 * ways on into the next block; fills first. */
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
            settle_block(cfg, begin);
    }
    cfg->first[cfg->n_blocks] = (uint32_t)cfg->n_edges;
    return true;
}

/* A way round leads back somewhere. */
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
