/* SPDX-License-Identifier: BSD-3-Clause */
/* Jump tables as compilers for x86-64 make them: 4-byte offsets from the table's own start in position-independent
 * code, 8-byte addresses otherwise. An address that the code loads before the jump is tried as a table: its entries
 * count as long as they lead to instructions of this function, and not beyond the bound that a comparison tells. */
#include <string.h>

#include "base/vec.h"
#include "structure/cfg-internal.h"

#define NEAR_INSNS 32
#define BOUND_INSNS 16
#define ENTRIES_MAX 65536
#define TRIES_MAX 10000000 /* instructions looked at for far addresses in one function */

static bool add_target(struct cfg_targets *targets, uint32_t insn)
{
    if (!vec_reserve(&targets->items, &targets->capacity, targets->n + 1, sizeof *targets->items))
        return false;
    targets->items[targets->n++] = insn;
    return true;
}

/* Number of entries by the comparison before the jump that a conditional jump follows; ENTRIES_MAX: not told. */
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

bool cfg_table_find(struct cfg *cfg, const struct code_image *image, uint32_t jump, struct cfg_targets *targets)
{
    size_t bound = find_bound(cfg, jump);
    targets->n = 0;
    if (cfg->insns[jump].value)
        return read_table(cfg, image, cfg->insns[jump].value, 8, bound, targets);
    /* the address is mostly loaded right before; optimisation may have moved it to anywhere in the function */
    for (uint32_t i = jump, n = 0; i-- > 0 && n < NEAR_INSNS; n++)
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
