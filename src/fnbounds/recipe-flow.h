/* SPDX-License-Identifier: BSD-3-Clause */
/* Control flow of one function: its instructions in address order and, for each, where control may come from.
 * Predecessors decide which instruction a sampled pc waited for. Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_FLOW_H
#define LOCUS_FNBOUNDS_RECIPE_FLOW_H

#include "fnbounds/recipe-insn.h"

#define FLOW_PREDS_MAX 8

/* Bytes of a module in memory: [pc, pc + n_bytes), pc relative to base_vaddr; NULL when the file does not hold them. */
struct flow_image {
    const uint8_t *(*bytes)(const void *image, uint64_t pc, size_t n_bytes);
    const void *image;
};

/* One function, decoded. All zero is empty; reused from function to function, freed by flow_fini(). */
struct flow {
    uint32_t start, end; /* relative to base_vaddr */
    struct insn *insns;  /* [n_insns] */
    size_t n_insns, capacity;
    uint32_t *first_source; /* [n_insns + 1] index into sources of the jumps to each instruction */
    size_t first_capacity;
    uint32_t *sources; /* [n_sources] index of the jump */
    size_t n_sources, sources_capacity;
    uint32_t last_indirect; /* the function's only indirect jump, INSN_NONE when there is none or several */
    uint32_t n_indirect;
    uint64_t *patterns; /* [n_insns] how they walk through memory, by stride_build(); NULL before the first time */
    size_t patterns_capacity;
};

/* Decodes bytes [end - start] of one function and finds its branch targets, jump tables included where the table is
 * found in the image; fills insn.pred: round the loop at a loop head, else the fallthrough, else the nearest jump.
 * err: none, returns false when out of memory. */
bool flow_build(struct flow *flow, const struct insn_decoder *decoder, const struct flow_image *image,
                const uint8_t *bytes, uint32_t start, uint32_t end);

/* Frees what flow_build made, also after it failed. */
void flow_fini(struct flow *flow);

/* Index of the instruction at pc (relative to base_vaddr), INSN_NONE when pc is no boundary of this function. */
uint32_t flow_find(const struct flow *flow, uint32_t pc);

/* True when control can go from instruction i to i + 1. */
bool flow_falls_through(const struct flow *flow, uint32_t i);

/* True when instruction i is the target of a jump inside the function. */
bool flow_is_target(const struct flow *flow, uint32_t i);

/* The instructions that may have run right before instruction i: those on the way round the innermost loop when i is
 * the head of one, else the fallthrough and all jumps. Returns their number (<= FLOW_PREDS_MAX), 0 when unknown. */
unsigned flow_preds(const struct flow *flow, uint32_t i, uint32_t preds[FLOW_PREDS_MAX]);

/* True when instruction i lies in a loop that only waits: a short one without calls in which every turn pauses
 * (PAUSE). */
bool flow_is_waiting(const struct flow *flow, uint32_t i);

/* When instruction i is the head of a loop that is entered in one way only: the instruction before the entry, and the
 * jump round its innermost loop; else INSN_NONE. */
uint32_t flow_loop_entry(const struct flow *flow, uint32_t i, uint32_t *back_edge);

#endif
