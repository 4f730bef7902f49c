/* SPDX-License-Identifier: BSD-3-Clause */
/* What an SPE record says of the memory hierarchy, as the kernel's word for it: see spe.h. Apart from the packets
 * because each maker of CPUs has numbers of its own. Runs in the signal handler.
 * src: Technical Reference Manuals of Arm Neoverse N1, N2, V1 and V2, "Statistical Profiling Extension, data source
 * packet"; for AmpereOne the names that its maker gave them in Linux. */
#include "sampling/abi/spe.h"

#include "sampling/abi/data-src-bits.h"
#include "base/sigsafe.h"

#define HIT(lvl_value) (DATA_SRC(LVL, LVL_HIT) | DATA_SRC(LVL, lvl_value))
#define MISS(lvl_value) (DATA_SRC(LVL, LVL_MISS) | DATA_SRC(LVL, lvl_value))
#define REMOTE (1ull << DATA_SRC_REMOTE_SHIFT)

#define LEVEL_L1 (HIT(LVL_L1) | DATA_SRC(NUM, NUM_L1) | DATA_SRC(SNOOP, SNOOP_NONE))
#define LEVEL_L2 (HIT(LVL_L2) | DATA_SRC(NUM, NUM_L2) | DATA_SRC(SNOOP, SNOOP_NONE))
#define LEVEL_OTHER_CORE (HIT(LVL_L2) | DATA_SRC(NUM, NUM_L2) | DATA_SRC(SNOOPX, SNOOPX_PEER))
#define LEVEL_CLUSTER (HIT(LVL_L3) | DATA_SRC(NUM, NUM_L3) | DATA_SRC(SNOOPX, SNOOPX_PEER))
#define LEVEL_SYSTEM_CACHE (HIT(LVL_L3) | DATA_SRC(NUM, NUM_L3) | DATA_SRC(SNOOP, SNOOP_HIT))
#define LEVEL_OTHER_CHIP (HIT(LVL_CCE1) | DATA_SRC(NUM, NUM_ANY) | REMOTE | DATA_SRC(SNOOPX, SNOOPX_PEER))
#define LEVEL_DRAM (HIT(LVL_LOC_RAM) | DATA_SRC(NUM, NUM_RAM) | DATA_SRC(SNOOP, SNOOP_NONE))

/* By the number in the packet; 0: no such number. */
static const uint64_t levels[][16] = {
    [SPE_SOURCES_NEOVERSE] = {[0x0] = LEVEL_L1,
                              [0x8] = LEVEL_L2,
                              [0x9] = LEVEL_OTHER_CORE,
                              [0xa] = LEVEL_CLUSTER,
                              [0xb] = LEVEL_SYSTEM_CACHE,
                              [0xc] = LEVEL_CLUSTER,
                              [0xd] = LEVEL_OTHER_CHIP,
                              [0xe] = LEVEL_DRAM},
    [SPE_SOURCES_AMPERE] = {[0x0] = LEVEL_OTHER_CORE,
                            [0x3] = LEVEL_SYSTEM_CACHE,
                            [0x5] = LEVEL_OTHER_CHIP,
                            [0x7] = LEVEL_DRAM,
                            [0x8] = LEVEL_L1,
                            [0x9] = LEVEL_L2},
};

/* The farthest level of which the record has an event comes first. */
static const struct {
    uint32_t event;
    uint64_t level;
} levels_by_event[] = {
    {SPE_EVENT_LLC_MISS, MISS(LVL_L3) | DATA_SRC(NUM, NUM_L3)},
    {SPE_EVENT_LLC_ACCESS, HIT(LVL_L3) | DATA_SRC(NUM, NUM_L3)},
    {SPE_EVENT_L2_MISS, MISS(LVL_L2) | DATA_SRC(NUM, NUM_L2)},
    {SPE_EVENT_L2_ACCESS, HIT(LVL_L2) | DATA_SRC(NUM, NUM_L2)},
    {SPE_EVENT_L1_REFILL, MISS(LVL_L1) | DATA_SRC(NUM, NUM_L1)},
    {SPE_EVENT_L1_ACCESS, HIT(LVL_L1) | DATA_SRC(NUM, NUM_L1)},
};

static uint64_t level_by_source_sig(const struct spe_record *record, enum spe_sources sources)
{
    if (!record->is_load || !record->has_source || record->source > 15 || sources == SPE_SOURCES_COMMON ||
        sources > SPE_SOURCES_AMPERE)
        return 0;
    uint64_t level = levels[sources][record->source];
    bool is_far_memory = level == LEVEL_DRAM && record->events & SPE_EVENT_REMOTE;
    return is_far_memory ? HIT(LVL_REM_RAM1) | DATA_SRC(NUM, NUM_RAM) | DATA_SRC(SNOOP, SNOOP_NONE) | REMOTE : level;
}

static uint64_t snoop_by_events_sig(uint32_t events)
{
    if (events & SPE_EVENT_MODIFIED)
        return DATA_SRC(SNOOP, SNOOP_HITM);
    return events & SPE_EVENT_SNOOPED ? DATA_SRC(SNOOP, SNOOP_HIT) : DATA_SRC(SNOOP, SNOOP_NA);
}

static uint64_t level_by_events_sig(uint32_t events)
{
    uint64_t level = DATA_SRC(LVL, LVL_NA) | DATA_SRC(NUM, NUM_NA);
    for (size_t i = 0; i < sizeof levels_by_event / sizeof levels_by_event[0]; i++)
        if (events & levels_by_event[i].event) {
            level = levels_by_event[i].level;
            break;
        }
    return level | snoop_by_events_sig(events) | (events & SPE_EVENT_REMOTE ? REMOTE : 0);
}

static uint64_t tlb_sig(uint32_t events)
{
    if (events & SPE_EVENT_TLB_WALK)
        return DATA_SRC(TLB, TLB_WALKER) | DATA_SRC(TLB, TLB_MISS);
    return events & SPE_EVENT_TLB_ACCESS ? DATA_SRC(TLB, TLB_WALKER) | DATA_SRC(TLB, TLB_HIT) : DATA_SRC(TLB, TLB_NA);
}

uint64_t spe_data_src_sig(const struct spe_record *record, enum spe_sources sources)
{
    uint64_t untold = DATA_SRC(BLK, BLK_NA);
    if (!record->is_load && !record->is_store)
        return untold | DATA_SRC(OP, OP_NA) | DATA_SRC(LVL, LVL_NA) | DATA_SRC(SNOOP, SNOOP_NA) |
               DATA_SRC(LOCK, LOCK_NA) | DATA_SRC(TLB, TLB_NA) | DATA_SRC(NUM, NUM_NA);
    uint64_t level = level_by_source_sig(record, sources);
    bool is_locked = record->is_atomic || record->is_exclusive;
    return untold | (record->is_load ? DATA_SRC(OP, OP_LOAD) : DATA_SRC(OP, OP_STORE)) |
           (level ? level : level_by_events_sig(record->events)) | tlb_sig(record->events) |
           (is_locked ? DATA_SRC(LOCK, LOCKED) : DATA_SRC(LOCK, LOCK_NA));
}
