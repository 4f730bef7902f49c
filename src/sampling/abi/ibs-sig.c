/* SPDX-License-Identifier: BSD-3-Clause */
/* The registers of one IBS op sample: see ibs.h. Runs in the signal handler. */
#include "sampling/abi/ibs.h"

#include "sampling/abi/data-src.h"
#include "base/sigsafe.h"

/* Registers in the order of the raw area, after its capability word. */
enum reg { REG_CTL = 0, REG_RIP, REG_DATA, REG_DATA2, REG_DATA3, REG_LINEAR, REG_PHYSICAL, N_REGS };
enum { N_CAPS_BYTES = 4, CAPS_ZEN4 = 1 << 11 };

enum data_bit { DATA_RIP_INVALID = 38 };
enum data2_bit { DATA2_REMOTE = 4, DATA2_SOURCE_HIGH = 6 };
enum data3_bit {
    DATA3_LOAD = 0,
    DATA3_STORE = 1,
    DATA3_TLB1_MISS = 2,
    DATA3_TLB2_MISS = 3,
    DATA3_DC_MISS = 7,
    DATA3_MISALIGNED = 8,
    DATA3_WRITE_COMBINED = 13,
    DATA3_UNCACHED = 14,
    DATA3_LOCKED = 15,
    DATA3_NO_NEW_BUFFER = 16,
    DATA3_LINEAR_VALID = 17,
    DATA3_PHYSICAL_VALID = 18,
    DATA3_L2_MISS = 20,
    DATA3_PREFETCH = 21,
    DATA3_WIDTH = 22,
    DATA3_LATENCY = 32
};
/* Data sources that mean more than their row in the tables. */
enum { SOURCE_DRAM = 3, SOURCE_IO = 7 };

#define HIT(lvl_value) (DATA_SRC(LVL, LVL_HIT) | DATA_SRC(LVL, lvl_value))
#define REMOTE (1ull << DATA_SRC_REMOTE_SHIFT)
#define HITM DATA_SRC(SNOOP, SNOOP_HITM)

/* Until Zen 3; 2 is any cache of the node, the core's own L3 included, so its state says nothing about another core. */
static const uint64_t level_of_source[8] = {
    [2] = HIT(LVL_CCE1) | DATA_SRC(NUM, NUM_ANY) | REMOTE | DATA_SRC(HOPS, HOPS_0),
    [SOURCE_DRAM] = HIT(LVL_LOC_RAM) | DATA_SRC(NUM, NUM_RAM),
    [4] = HIT(LVL_CCE2) | DATA_SRC(NUM, NUM_ANY) | REMOTE | DATA_SRC(HOPS, HOPS_1) | HITM,
    [SOURCE_IO] = HIT(LVL_IO) | DATA_SRC(NUM, NUM_IO),
};
static const uint64_t level_of_zen4_source[32] = {
    [1] = HIT(LVL_L3) | DATA_SRC(NUM, NUM_L3),
    [2] = HIT(LVL_CCE1) | DATA_SRC(NUM, NUM_ANY) | REMOTE | DATA_SRC(HOPS, HOPS_0) | HITM,
    [SOURCE_DRAM] = HIT(LVL_LOC_RAM) | DATA_SRC(NUM, NUM_RAM),
    [5] = HIT(LVL_CCE2) | DATA_SRC(NUM, NUM_ANY) | REMOTE | DATA_SRC(HOPS, HOPS_1) | HITM,
    [6] = DATA_SRC(LVL, LVL_HIT) | DATA_SRC(NUM, NUM_PMEM),
    [SOURCE_IO] = HIT(LVL_IO) | DATA_SRC(NUM, NUM_IO),
    [8] = DATA_SRC(LVL, LVL_HIT) | DATA_SRC(NUM, NUM_CXL),
};
static const uint64_t level_not_told = DATA_SRC(LVL, LVL_NA) | DATA_SRC(NUM, NUM_NA);

static uint64_t little_endian_sig(const unsigned char *at, unsigned n_bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n_bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static bool bit_sig(uint64_t word, unsigned bit)
{
    return word >> bit & 1;
}

/* Marks a level as remote. Only DRAM and slow memory need it: they have a single row each, and the remote bit decides.
 */
static uint64_t at_node_sig(uint64_t level, const struct ibs_op *op)
{
    if (!op->is_remote || level & REMOTE)
        return level;
    if (op->data_source == SOURCE_DRAM)
        level = HIT(LVL_REM_RAM1) | DATA_SRC(NUM, NUM_RAM);
    else if (op->data_source < 6 || op->data_source == SOURCE_IO)
        return level;
    return level | REMOTE | DATA_SRC(HOPS, HOPS_1);
}

static uint64_t level_sig(const struct ibs_op *op, bool is_zen4, bool has_joined_miss)
{
    if (op->is_uncached && op->data_source != SOURCE_IO)
        return HIT(LVL_UNC) | DATA_SRC(NUM, NUM_UNC);
    if (!op->is_l1_miss)
        return HIT(LVL_L1) | DATA_SRC(NUM, NUM_L1);
    if (!op->is_l2_miss)
        return HIT(LVL_L2) | DATA_SRC(NUM, NUM_L2);
    uint64_t level = is_zen4 ? level_of_zen4_source[op->data_source] : level_of_source[op->data_source];
    if (op->is_load && level)
        return at_node_sig(level, op);
    return has_joined_miss ? HIT(LVL_LFB) | DATA_SRC(NUM, NUM_LFB) : level_not_told;
}

static uint64_t tlb_sig(const struct ibs_op *op)
{
    if (!op->has_address)
        return DATA_SRC(TLB, TLB_NA);
    if (!op->is_dtlb_l1_miss)
        return DATA_SRC(TLB, TLB_HIT) | DATA_SRC(TLB, TLB_L1);
    return DATA_SRC(TLB, TLB_L2) | (op->is_dtlb_l2_miss ? DATA_SRC(TLB, TLB_MISS) : DATA_SRC(TLB, TLB_HIT));
}

static uint64_t data_src_sig(const struct ibs_op *op, bool is_zen4, bool has_joined_miss)
{
    uint64_t rest = DATA_SRC(BLK, BLK_NA) | (op->is_locked ? DATA_SRC(LOCK, LOCKED) : DATA_SRC(LOCK, LOCK_NA));
    if (!op->is_load && !op->is_store)
        return DATA_SRC(OP, OP_NA) | level_not_told | DATA_SRC(SNOOP, SNOOP_NA) | DATA_SRC(LOCK, LOCK_NA) |
               DATA_SRC(TLB, TLB_NA) | DATA_SRC(BLK, BLK_NA);
    uint64_t level = level_sig(op, is_zen4, has_joined_miss);
    return (op->is_load ? DATA_SRC(OP, OP_LOAD) : 0) | (op->is_store ? DATA_SRC(OP, OP_STORE) : 0) | level |
           (level & HITM ? 0 : DATA_SRC(SNOOP, SNOOP_NA)) | tlb_sig(op) | rest;
}

static void take_data3_sig(uint64_t data3, struct ibs_op *op)
{
    unsigned width = (unsigned)(data3 >> DATA3_WIDTH) & 15;
    op->is_load = bit_sig(data3, DATA3_LOAD);
    op->is_store = bit_sig(data3, DATA3_STORE);
    op->is_dtlb_l1_miss = bit_sig(data3, DATA3_TLB1_MISS);
    op->is_dtlb_l2_miss = bit_sig(data3, DATA3_TLB2_MISS);
    op->is_l1_miss = bit_sig(data3, DATA3_DC_MISS);
    op->is_misaligned = bit_sig(data3, DATA3_MISALIGNED);
    op->is_write_combined = bit_sig(data3, DATA3_WRITE_COMBINED);
    op->is_uncached = bit_sig(data3, DATA3_UNCACHED);
    op->is_locked = bit_sig(data3, DATA3_LOCKED);
    op->has_address = bit_sig(data3, DATA3_LINEAR_VALID);
    op->has_phys_address = bit_sig(data3, DATA3_PHYSICAL_VALID);
    op->is_l2_miss = bit_sig(data3, DATA3_L2_MISS);
    op->is_swpf = bit_sig(data3, DATA3_PREFETCH);
    op->width_bytes = width && width <= 7 ? 1u << (width - 1) : 0;
    op->lat_cycles = op->is_load && op->is_l1_miss ? data3 >> DATA3_LATENCY & 0xffff : 0;
}

bool ibs_op_parse_sig(const void *raw, size_t n_bytes, bool is_zen4, struct ibs_op *op)
{
    uint64_t regs[N_REGS];
    *op = (struct ibs_op){0};
    if (n_bytes < N_CAPS_BYTES + sizeof regs)
        return false;
    for (unsigned i = 0; i < N_REGS; i++)
        regs[i] = little_endian_sig((const unsigned char *)raw + N_CAPS_BYTES + 8 * i, 8);
    is_zen4 = is_zen4 || little_endian_sig(raw, N_CAPS_BYTES) & CAPS_ZEN4;
    take_data3_sig(regs[REG_DATA3], op);
    op->rip = regs[REG_RIP];
    op->is_rip_valid = !bit_sig(regs[REG_DATA], DATA_RIP_INVALID);
    op->comp_to_retire_cycles = regs[REG_DATA] & 0xffff;
    op->tag_to_retire_cycles = regs[REG_DATA] >> 16 & 0xffff;
    op->address = op->has_address ? regs[REG_LINEAR] : 0;
    op->phys_address = op->has_phys_address ? regs[REG_PHYSICAL] : 0;
    op->data_source = (unsigned)(regs[REG_DATA2] & 7);
    if (is_zen4)
        op->data_source |= (unsigned)(regs[REG_DATA2] >> DATA2_SOURCE_HIGH & 3) << 3;
    op->is_remote = bit_sig(regs[REG_DATA2], DATA2_REMOTE);
    op->data_src = data_src_sig(op, is_zen4, bit_sig(regs[REG_DATA3], DATA3_NO_NEW_BUFFER));
    return true;
}
