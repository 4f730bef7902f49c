/* SPDX-License-Identifier: BSD-3-Clause */
/* Assembles the packets of Arm's statistical profiling extension into records, and turns their data sources into those
 * of perf: see spe.h. Runs in the signal handler. */
#include "sampling/abi/spe.h"

#include <endian.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "base/sigsafe.h"

enum packet_kind {
    PACKET_GARBAGE = 0,
    PACKET_CUT_OFF, /* it continues after the end */
    PACKET_PADDING,
    PACKET_END, /* the kinds after this have a payload */
    PACKET_TIMESTAMP,
    PACKET_EVENTS,
    PACKET_SOURCE,
    PACKET_CONTEXT,
    PACKET_OPERATION,
    PACKET_ADDRESS,
    PACKET_COUNTER
};

enum { INDEX_PC = 0, INDEX_DATA = 2, INDEX_PHYSICAL = 3 };
enum { INDEX_TOTAL = 0, INDEX_ISSUE = 1, INDEX_TRANSLATION = 2 };
enum { CLASS_LOAD_STORE = 1, CLASS_BRANCH = 2 };
/* Bits of a load or store operation's payload. */
enum { OP_STORE = 1, OP_EXTENDED = 2, OP_ATOMIC = 4, OP_EXCLUSIVE = 8 };

struct packet {
    enum packet_kind kind;
    unsigned index; /* of an address, counter or context; class of an operation */
    size_t n_bytes;
    uint64_t payload;
};

/* Kinds by the header byte; an extended header has the same byte second. */
static const unsigned char kinds[256] = {
    [0x00] = PACKET_PADDING,
    [0x01] = PACKET_END,
    [0x42] = PACKET_EVENTS,
    [0x43] = PACKET_SOURCE,
    [0x48 ... 0x4b] = PACKET_OPERATION,
    [0x52] = PACKET_EVENTS,
    [0x53] = PACKET_SOURCE,
    [0x62] = PACKET_EVENTS,
    [0x63] = PACKET_SOURCE,
    [0x64 ... 0x67] = PACKET_CONTEXT,
    [0x71] = PACKET_TIMESTAMP,
    [0x72] = PACKET_EVENTS,
    [0x73] = PACKET_SOURCE,
    [0x98 ... 0x9f] = PACKET_COUNTER,
    [0xb0 ... 0xb7] = PACKET_ADDRESS,
};

static unsigned index_sig(enum packet_kind kind, unsigned char header)
{
    return kind == PACKET_ADDRESS || kind == PACKET_COUNTER ? header & 7 : header & 3;
}

/* 1, 2, 4 or 8 bytes, little-endian. */
static uint64_t payload_sig(const unsigned char *at, unsigned n_bytes)
{
    uint16_t half;
    uint32_t word;
    uint64_t value;
    switch (n_bytes) {
    case 1:
        return at[0];
    case 2:
        memcpy(&half, at, sizeof half);
        return le16toh(half);
    case 4:
        memcpy(&word, at, sizeof word);
        return le32toh(word);
    default:
        memcpy(&value, at, sizeof value);
        return le64toh(value);
    }
}

/* Kind by a header of two bytes; before Armv8.5, 0x00 after the first was an alignment packet. */
static enum packet_kind extended_kind_sig(unsigned char second)
{
    enum packet_kind kind = kinds[second];
    return kind == PACKET_ADDRESS || kind == PACKET_COUNTER || kind == PACKET_PADDING ? kind : PACKET_GARBAGE;
}

/* Decodes the packet at data; n_bytes is at least 1. */
static void packet_sig(const unsigned char *data, size_t n_bytes, struct packet *packet)
{
    size_t n_header = (data[0] & 0xfc) == 0x20 ? 2 : 1;
    *packet = (struct packet){.kind = PACKET_CUT_OFF};
    if (n_bytes < n_header)
        return;
    unsigned char header = data[n_header - 1];
    enum packet_kind kind = n_header == 2 ? extended_kind_sig(header) : (enum packet_kind)kinds[header];
    packet->n_bytes = kind == PACKET_GARBAGE ? 1 : n_header;
    if (kind > PACKET_END) {
        unsigned n_payload = 1u << (header >> 4 & 3);
        if (n_bytes < n_header + n_payload)
            return;
        packet->n_bytes += n_payload;
        packet->payload = payload_sig(data + n_header, n_payload);
        packet->index = index_sig(kind, header) | (n_header == 2 ? (data[0] & 3u) << 3 : 0);
    }
    packet->kind = kind;
}

static uint64_t canonical_sig(uint64_t address)
{
    return (uint64_t)((int64_t)(address << 8) >> 8);
}

static void take_address_sig(const struct packet *packet, struct spe_record *record)
{
    if (packet->index == INDEX_PC) {
        record->pc = canonical_sig(packet->payload);
        record->has_pc = true;
    } else if (packet->index == INDEX_DATA) {
        record->address = canonical_sig(packet->payload);
        record->has_address = true;
    } else if (packet->index == INDEX_PHYSICAL) {
        record->phys_address = packet->payload & ((1ull << 56) - 1);
        record->has_phys_address = true;
    }
}

static void take_counter_sig(const struct packet *packet, struct spe_record *record)
{
    uint16_t cycles = (uint16_t)packet->payload;
    if (packet->index == INDEX_TOTAL)
        record->total_cycles = cycles;
    else if (packet->index == INDEX_ISSUE)
        record->issue_cycles = cycles;
    else if (packet->index == INDEX_TRANSLATION)
        record->translation_cycles = cycles;
}

static void take_operation_sig(const struct packet *packet, struct spe_record *record)
{
    unsigned operation = (unsigned)packet->payload;
    record->is_branch = packet->index == CLASS_BRANCH;
    if (packet->index != CLASS_LOAD_STORE)
        return;
    bool is_extended = (operation & 0xe2) == OP_EXTENDED;
    record->is_store = operation & OP_STORE;
    record->is_load = !record->is_store;
    record->is_atomic = is_extended && operation & OP_ATOMIC;
    record->is_exclusive = is_extended && operation & OP_EXCLUSIVE;
    record->is_simd = (operation & 0xfe) == 0x04 || (operation & 0x0a) == 0x08;
}

static void take_sig(const struct packet *packet, struct spe_record *record)
{
    switch (packet->kind) {
    case PACKET_TIMESTAMP:
        record->timestamp = packet->payload;
        record->has_timestamp = true;
        break;
    case PACKET_EVENTS:
        record->events = (uint32_t)packet->payload;
        break;
    case PACKET_SOURCE:
        record->source = (uint16_t)packet->payload;
        record->has_source = true;
        break;
    case PACKET_CONTEXT:
        record->context = packet->payload;
        record->has_context = true;
        break;
    case PACKET_OPERATION:
        take_operation_sig(packet, record);
        break;
    case PACKET_ADDRESS:
        take_address_sig(packet, record);
        break;
    case PACKET_COUNTER:
        take_counter_sig(packet, record);
        break;
    default:
        break;
    }
}

size_t spe_record_parse_sig(const void *data, size_t n_bytes, struct spe_record *record, uint64_t *n_garbage)
{
    size_t n_used = 0, n_taken = 0, n_lost = 0;
    bool is_torn = false;
    *record = (struct spe_record){0};
    while (n_used < n_bytes) {
        struct packet packet;
        packet_sig((const unsigned char *)data + n_used, n_bytes - n_used, &packet);
        bool is_last = packet.kind == PACKET_END || packet.kind == PACKET_TIMESTAMP;
        if (packet.kind == PACKET_CUT_OFF)
            break;
        n_used += packet.n_bytes;
        if (packet.kind == PACKET_PADDING)
            continue;
        is_torn = is_torn || packet.kind == PACKET_GARBAGE;
        n_taken += packet.n_bytes;
        if (!is_torn)
            take_sig(&packet, record);
        if (is_last && !is_torn) {
            *n_garbage += n_lost;
            return n_used;
        }
        if (is_torn && (is_last || packet.kind == PACKET_GARBAGE)) {
            n_lost += n_taken;
            n_taken = 0;
            *record = (struct spe_record){0};
            is_torn = !is_last;
        }
    }
    *record = (struct spe_record){0};
    return 0;
}

/* --- data sources --- */

/* What an SPE record says about the memory hierarchy, as the kernel's data source word: see spe.h. Apart from the
 * packets because each maker of CPUs has its own numbers. Runs in the signal handler.
 * src: Technical Reference Manuals of Arm Neoverse N1, N2, V1 and V2, "Statistical Profiling Extension, data source
 * packet"; for AmpereOne, the names that its maker uses in Linux. */

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

/* Levels by the number in the packet; 0: no such number. */
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

/* The farthest level comes first: the first one that has an event in the record counts. */
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
