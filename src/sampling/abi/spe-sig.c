/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of Arm's statistical profiling extension, put together to records: see spe.h. Runs in the signal
 * handler. */
#include "sampling/abi/spe.h"

#include "base/sigsafe.h"

enum packet_kind {
    PACKET_GARBAGE = 0,
    PACKET_CUT_OFF, /* it goes on behind the end */
    PACKET_PADDING,
    PACKET_END,
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
    unsigned index; /* of addresses, counters, contexts; class of operations */
    size_t n_bytes;
    uint64_t payload;
};

/* Headers by the bits that name them; an extended header has the same in its second byte. */
static const struct {
    unsigned char mask, value, kind;
} headers[] = {
    {0xff, 0x00, PACKET_PADDING},   {0xff, 0x01, PACKET_END},     {0xff, 0x71, PACKET_TIMESTAMP},
    {0xcf, 0x42, PACKET_EVENTS},    {0xcf, 0x43, PACKET_SOURCE},  {0xfc, 0x64, PACKET_CONTEXT},
    {0xfc, 0x48, PACKET_OPERATION}, {0xf8, 0xb0, PACKET_ADDRESS}, {0xf8, 0x98, PACKET_COUNTER},
};

static enum packet_kind kind_sig(unsigned char header)
{
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if ((header & headers[i].mask) == headers[i].value)
            return headers[i].kind;
    return PACKET_GARBAGE;
}

static unsigned index_sig(enum packet_kind kind, unsigned char header)
{
    return kind == PACKET_ADDRESS || kind == PACKET_COUNTER ? header & 7 : header & 3;
}

static struct packet with_payload_sig(struct packet packet, const unsigned char *data, size_t n_bytes, size_t n_header)
{
    unsigned n_payload = 1u << (data[n_header - 1] >> 4 & 3);
    if (n_bytes < n_header + n_payload)
        return (struct packet){.kind = PACKET_CUT_OFF};
    packet.n_bytes = n_header + n_payload;
    for (unsigned i = 0; i < n_payload; i++)
        packet.payload |= (uint64_t)data[n_header + i] << 8 * i;
    return packet;
}

/* A header of two bytes; 0x00 behind the first was an alignment packet before Armv8.5. */
static struct packet extended_sig(const unsigned char *data, size_t n_bytes)
{
    if (n_bytes < 2)
        return (struct packet){.kind = PACKET_CUT_OFF};
    struct packet packet = {.kind = kind_sig(data[1])};
    if (packet.kind == PACKET_PADDING)
        return (struct packet){.kind = PACKET_PADDING, .n_bytes = 2};
    if (packet.kind != PACKET_ADDRESS && packet.kind != PACKET_COUNTER)
        return (struct packet){.kind = PACKET_GARBAGE, .n_bytes = 1};
    packet.index = (data[0] & 3u) << 3 | index_sig(packet.kind, data[1]);
    return with_payload_sig(packet, data, n_bytes, 2);
}

/* The packet at data; n_bytes is at least 1. */
static struct packet packet_sig(const unsigned char *data, size_t n_bytes)
{
    if ((data[0] & 0xfc) == 0x20)
        return extended_sig(data, n_bytes);
    struct packet packet = {.kind = kind_sig(data[0]), .n_bytes = 1};
    if (packet.kind == PACKET_GARBAGE || packet.kind == PACKET_PADDING || packet.kind == PACKET_END)
        return packet;
    packet.index = index_sig(packet.kind, data[0]);
    return with_payload_sig(packet, data, n_bytes, 1);
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
    if (packet->kind == PACKET_TIMESTAMP) {
        record->timestamp = packet->payload;
        record->has_timestamp = true;
    } else if (packet->kind == PACKET_EVENTS) {
        record->events = (uint32_t)packet->payload;
    } else if (packet->kind == PACKET_SOURCE) {
        record->source = (uint16_t)packet->payload;
        record->has_source = true;
    } else if (packet->kind == PACKET_CONTEXT) {
        record->context = packet->payload;
        record->has_context = true;
    } else if (packet->kind == PACKET_OPERATION) {
        take_operation_sig(packet, record);
    } else if (packet->kind == PACKET_ADDRESS) {
        take_address_sig(packet, record);
    } else if (packet->kind == PACKET_COUNTER) {
        take_counter_sig(packet, record);
    }
}

size_t spe_record_parse_sig(const void *data, size_t n_bytes, struct spe_record *record, uint64_t *n_garbage)
{
    size_t n_used = 0, n_taken = 0, n_lost = 0;
    bool is_torn = false;
    *record = (struct spe_record){0};
    while (n_used < n_bytes) {
        struct packet packet = packet_sig((const unsigned char *)data + n_used, n_bytes - n_used);
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
