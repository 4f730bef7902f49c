/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of union perf_mem_data_src as shifts and values, for those who take such a word apart and those who make
 * one. Our own names, so that what newer kernels tell is known with any kernel headers.
 * src: include/uapi/linux/perf_event.h of Linux 6.18. */
#ifndef LOCUS_SAMPLING_ABI_DATA_SRC_BITS_H
#define LOCUS_SAMPLING_ABI_DATA_SRC_BITS_H

#include <stdint.h>

enum data_src_shift {
    DATA_SRC_OP_SHIFT = 0,
    DATA_SRC_LVL_SHIFT = 5,
    DATA_SRC_SNOOP_SHIFT = 19,
    DATA_SRC_LOCK_SHIFT = 24,
    DATA_SRC_TLB_SHIFT = 26,
    DATA_SRC_NUM_SHIFT = 33, /* mem_lvl_num */
    DATA_SRC_REMOTE_SHIFT = 37,
    DATA_SRC_SNOOPX_SHIFT = 38,
    DATA_SRC_BLK_SHIFT = 40,
    DATA_SRC_HOPS_SHIFT = 43
};
#define DATA_SRC_KNOWN ((1ull << 46) - 1) /* the bits above are reserved */

/* A value of a field at its place in the word: DATA_SRC(OP, OP_LOAD) | DATA_SRC(NUM, NUM_L1). */
#define DATA_SRC(field, value) ((uint64_t)DATA_SRC_##value << DATA_SRC_##field##_SHIFT)

/* Bit 0 of the fields op, lvl, snoop, lock, tlb and blk: the hardware does not tell. */
enum data_src_op {
    DATA_SRC_OP_NA = 1,
    DATA_SRC_OP_LOAD = 2,
    DATA_SRC_OP_STORE = 4,
    DATA_SRC_OP_PREFETCH = 8,
    DATA_SRC_OP_EXEC = 0x10
};
enum data_src_lvl {
    DATA_SRC_LVL_NA = 1,
    DATA_SRC_LVL_HIT = 2,
    DATA_SRC_LVL_MISS = 4,
    DATA_SRC_LVL_L1 = 8,
    DATA_SRC_LVL_LFB = 0x10,
    DATA_SRC_LVL_L2 = 0x20,
    DATA_SRC_LVL_L3 = 0x40,
    DATA_SRC_LVL_LOC_RAM = 0x80,
    DATA_SRC_LVL_REM_RAM1 = 0x100,
    DATA_SRC_LVL_REM_RAM2 = 0x200,
    DATA_SRC_LVL_CCE1 = 0x400, /* cache of another chip or node, 1 hop */
    DATA_SRC_LVL_CCE2 = 0x800,
    DATA_SRC_LVL_IO = 0x1000,
    DATA_SRC_LVL_UNC = 0x2000
};
enum data_src_snoop {
    DATA_SRC_SNOOP_NA = 1,
    DATA_SRC_SNOOP_NONE = 2,
    DATA_SRC_SNOOP_HIT = 4,
    DATA_SRC_SNOOP_MISS = 8,
    DATA_SRC_SNOOP_HITM = 0x10
};
enum data_src_lock { DATA_SRC_LOCK_NA = 1, DATA_SRC_LOCKED = 2 };
enum data_src_tlb {
    DATA_SRC_TLB_NA = 1,
    DATA_SRC_TLB_HIT = 2,
    DATA_SRC_TLB_MISS = 4,
    DATA_SRC_TLB_L1 = 8,
    DATA_SRC_TLB_L2 = 0x10,
    DATA_SRC_TLB_WALKER = 0x20,
    DATA_SRC_TLB_OS = 0x40
};
enum data_src_num {
    DATA_SRC_NUM_L1 = 1,
    DATA_SRC_NUM_L2 = 2,
    DATA_SRC_NUM_L3 = 3,
    DATA_SRC_NUM_L4 = 4,
    DATA_SRC_NUM_MHB = 5, /* L2 miss handling buffer */
    DATA_SRC_NUM_MSC = 6, /* memory-side cache */
    DATA_SRC_NUM_L0 = 7,
    DATA_SRC_NUM_UNC = 8,
    DATA_SRC_NUM_CXL = 9,
    DATA_SRC_NUM_IO = 0xa,
    DATA_SRC_NUM_ANY = 0xb, /* some cache */
    DATA_SRC_NUM_LFB = 0xc,
    DATA_SRC_NUM_RAM = 0xd,
    DATA_SRC_NUM_PMEM = 0xe,
    DATA_SRC_NUM_NA = 0xf
};
enum data_src_snoopx { DATA_SRC_SNOOPX_FWD = 1, DATA_SRC_SNOOPX_PEER = 2 };
enum data_src_blk { DATA_SRC_BLK_NA = 1, DATA_SRC_BLK_DATA = 2, DATA_SRC_BLK_ADDR = 4 };
enum data_src_hops {
    DATA_SRC_HOPS_0 = 1, /* another core of the node */
    DATA_SRC_HOPS_1 = 2, /* another node of the socket */
    DATA_SRC_HOPS_2 = 3, /* another socket */
    DATA_SRC_HOPS_3 = 4  /* another board */
};

#endif
