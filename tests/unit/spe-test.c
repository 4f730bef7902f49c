/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling/abi/spe.h: packets byte by byte as the Arm Architecture Reference Manual (DDI 0487, chapter
 * "Statistical Profiling Extension Sample Record") lays them out: header 0b01SS.... or 0b10SS...., SS the binary
 * logarithm of the payload's bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/spe.h"

#define METRIC(metric) (1u << (metric))

/* Two records of a real machine, published with the first Linux support in 2018: a load from 0xffff00000f293bc0 by
 * 0xffff00000815c400, retired, with L1 and TLB access, at time 39395093558; then one of 0xffff00000f293c80. */
static const unsigned char published[] = {
    0x49, 0x00,                                           /* load, general register */
    0xb2, 0xc0, 0x3b, 0x29, 0x0f, 0x00, 0x00, 0xff, 0xff, /* virtual address */
    0xb3, 0xc0, 0xeb, 0x24, 0xfb, 0x00, 0x00, 0x00, 0x80, /* physical address, not secure */
    0x9a, 0x00, 0x00,                                     /* translation latency */
    0x42, 0x16,                                           /* events: retired, L1, TLB */
    0xb0, 0x00, 0xc4, 0x15, 0x08, 0x00, 0x00, 0xff, 0xff, /* pc */
    0x98, 0x00, 0x00,                                     /* total latency */
    0x71, 0x36, 0x6c, 0x21, 0x2c, 0x09, 0x00, 0x00, 0x00, /* timestamp */
};

/* Everything a record can hold, in other widths and with a tagged address, ended by End. */
static const unsigned char rich[] = {
    0x00, 0x00,                                              /* padding */
    0xb0, 0x78, 0x56, 0x34, 0x12, 0xaa, 0xaa, 0x00, 0x80,    /* pc 0xaaaa12345678, EL0, not secure */
    0x65, 0x11, 0x22, 0x33, 0x44,                            /* context of EL2 */
    0x62, 0x06, 0x02, 0x08, 0x00,                            /* events in 4 bytes: 1, 2, 9, 19 */
    0x49, 0x06,                                              /* atomic load: bit 1 extended, bit 2 atomic */
    0x98, 0x2c, 0x01,                                        /* total latency 300 */
    0x99, 0x14, 0x00,                                        /* issue latency 20 */
    0x9a, 0x05, 0x00,                                        /* translation latency 5 */
    0x53, 0x0e, 0x00,                                        /* data source in 2 bytes: DRAM */
    0xb2, 0x40, 0x30, 0x20, 0x10, 0xff, 0xff, 0x00, 0x5a,    /* address 0xffff10203040, tag 0x5a */
    0xb1, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,    /* branch target: not kept */
    0xb4, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,    /* previous branch target: not kept */
    0x21, 0xb7, 1,    2,    3,    4,    5,    6,    7,    8, /* extended header: address 15, unknown, skipped */
    0x20, 0x9b, 0x07, 0x00,                                  /* extended header: counter 3, unknown, skipped */
    0x20, 0x00,                                              /* alignment, of old */
    0x01,                                                    /* end */
};

static struct spe_record parse_all(const unsigned char *bytes, size_t n_bytes)
{
    struct spe_record record;
    uint64_t n_garbage = 0;
    unsigned char *copy = malloc(n_bytes);
    memcpy(copy, bytes, n_bytes);
    assert_int_equal(spe_record_parse_sig(copy, n_bytes, &record, &n_garbage), n_bytes);
    assert_int_equal(n_garbage, 0);
    free(copy);
    return record;
}

static void test_published(void **state)
{
    (void)state;
    struct spe_record r = parse_all(published, sizeof published);
    assert_true(r.has_pc && r.has_address && r.has_phys_address && r.has_timestamp && !r.has_context && !r.has_source);
    assert_int_equal(r.pc, 0xffff00000815c400);
    assert_int_equal(r.address, 0xffff00000f293bc0);
    assert_int_equal(r.phys_address, 0xfb24ebc0);
    assert_int_equal(r.timestamp, 39395093558);
    assert_true(r.is_load && !r.is_store && !r.is_branch && !r.is_atomic && !r.is_simd);
    assert_int_equal(r.events, SPE_EVENT_RETIRED | SPE_EVENT_L1_ACCESS | SPE_EVENT_TLB_ACCESS);
    assert_true(!r.total_cycles && !r.issue_cycles && !r.translation_cycles);
}

static void test_rich(void **state)
{
    (void)state;
    struct spe_record r = parse_all(rich, sizeof rich);
    assert_true(r.has_pc && r.has_address && !r.has_phys_address && !r.has_timestamp && r.has_context && r.has_source);
    assert_int_equal(r.pc, 0xaaaa12345678);
    assert_int_equal(r.address, 0xffff10203040);
    assert_int_equal(r.context, 0x44332211);
    assert_int_equal(r.events, 1 << 1 | 1 << 2 | 1 << 9 | 1 << 19);
    assert_true(r.is_load && r.is_atomic && !r.is_exclusive && !r.is_store);
    assert_true(r.total_cycles == 300 && r.issue_cycles == 20 && r.translation_cycles == 5 && r.source == 0xe);
}

static struct spe_record operation(unsigned char class, unsigned char payload)
{
    unsigned char bytes[] = {(unsigned char)(0x48 | class), payload, 0x01};
    return parse_all(bytes, sizeof bytes);
}

static void test_operations(void **state)
{
    (void)state;
    struct spe_record r = operation(1, 0x01);
    assert_true(r.is_store && !r.is_load && !r.is_atomic && !r.is_simd);
    r = operation(1, 0x04);
    assert_true(r.is_load && r.is_simd);
    r = operation(1, 0x3d);
    assert_true(r.is_store && r.is_simd);
    r = operation(1, 0x0a);
    assert_true(r.is_load && r.is_exclusive && !r.is_atomic && !r.is_simd);
    r = operation(1, 0x10);
    assert_true(r.is_load && !r.is_exclusive && !r.is_atomic && !r.is_simd);
    r = operation(2, 0x02);
    assert_true(r.is_branch && !r.is_load && !r.is_store);
    r = operation(0, 0x01);
    assert_true(!r.is_branch && !r.is_load && !r.is_store);
}

/* Events come in 1, 2, 4 or 8 bytes, a data source in 1 or 2. */
static void test_widths(void **state)
{
    (void)state;
    for (unsigned size = 0; size < 4; size++) {
        unsigned char bytes[10] = {(unsigned char)(0x42 | size << 4), 0x3e};
        bytes[1 + (1u << size)] = 0x01;
        assert_int_equal(parse_all(bytes, 2 + (1u << size)).events, 0x3e);
    }
    const unsigned char one[] = {0x43, 0x0d, 0x01}, two[] = {0x53, 0x0d, 0x12, 0x01};
    assert_int_equal(parse_all(one, sizeof one).source, 0x0d);
    assert_int_equal(parse_all(two, sizeof two).source, 0x120d);
}

static void test_cut_off(void **state)
{
    (void)state;
    for (size_t n_bytes = 0; n_bytes < sizeof rich; n_bytes++) {
        unsigned char *copy = malloc(n_bytes ? n_bytes : 1);
        struct spe_record record;
        uint64_t n_garbage = 0;
        memcpy(copy, rich, n_bytes);
        assert_int_equal(spe_record_parse_sig(copy, n_bytes, &record, &n_garbage), 0);
        assert_true(!n_garbage && !record.has_pc && !record.has_source);
        free(copy);
    }
}

/* A stream begun in the middle, with a byte that is no packet, and with a record cut short by the next. */
static void test_resync(void **state)
{
    (void)state;
    static const unsigned char no_packets[] = {0x02, 0x10, 0x2f, 0x41, 0x4c, 0x68, 0x70, 0x80, 0xa8, 0xff};
    for (size_t g = 0; g < sizeof no_packets; g++) {
        unsigned char stream[sizeof rich + 1 + sizeof published];
        struct spe_record record;
        uint64_t n_garbage = 0;
        size_t at = 26; /* behind the first counter */
        memcpy(stream, rich, at);
        stream[at] = no_packets[g];
        memcpy(stream + at + 1, rich + at, sizeof rich - at);
        memcpy(stream + sizeof rich + 1, published, sizeof published);
        assert_int_equal(spe_record_parse_sig(stream, sizeof stream, &record, &n_garbage), sizeof stream);
        assert_int_equal(record.pc, 0xffff00000815c400);
        assert_true(!record.has_source && !record.has_context && !record.is_atomic);
        /* All of the torn record but its padding: 2 bytes at the start, 2 of the alignment packet. */
        assert_int_equal(n_garbage, sizeof rich + 1 - 4);
    }
}

static void test_stream(void **state)
{
    (void)state;
    unsigned char stream[64 * (sizeof rich + sizeof published)];
    size_t n_bytes = 0, at = 0;
    unsigned n_records = 0;
    uint64_t n_garbage = 0;
    for (unsigned i = 0; i < 64; i++) {
        memcpy(stream + n_bytes, i % 3 ? rich : published, i % 3 ? sizeof rich : sizeof published);
        n_bytes += i % 3 ? sizeof rich : sizeof published;
    }
    while (at < n_bytes) {
        struct spe_record record;
        size_t n_used = spe_record_parse_sig(stream + at, n_bytes - at, &record, &n_garbage);
        assert_int_equal(record.pc, n_records % 3 ? 0xaaaa12345678 : 0xffff00000815c400);
        assert_true(n_used > 0);
        at += n_used;
        n_records++;
    }
    assert_true(n_records == 64 && !n_garbage);
}

static uint32_t load(int source, uint32_t events, enum spe_sources sources)
{
    struct spe_record record = {.is_load = true, .events = events, .has_source = source >= 0};
    record.source = (uint16_t)(source < 0 ? 0 : source);
    return mem_metrics_sig(spe_data_src_sig(&record, sources)) & ~METRIC(MEM_LOAD);
}

static void test_sources(void **state)
{
    (void)state;
    const uint32_t alone = METRIC(MEM_LOAD_EXCLUSIVE), remote = SPE_EVENT_REMOTE;
    static const struct {
        unsigned char neoverse, ampere;
        uint32_t metric;
    } rows[] = {{0x0, 0x8, METRIC(MEM_LOAD_L1)},
                {0x8, 0x9, METRIC(MEM_LOAD_L2)},
                {0x9, 0x0, METRIC(MEM_LLC_HIT)},
                {0xb, 0x3, METRIC(MEM_LLC_HIT)},
                {0xd, 0x5, METRIC(MEM_REMOTE_HIT)}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(load(rows[i].neoverse, 0, SPE_SOURCES_NEOVERSE), rows[i].metric);
        assert_int_equal(load(rows[i].ampere, 0, SPE_SOURCES_AMPERE), rows[i].metric);
    }
    assert_int_equal(load(0xa, 0, SPE_SOURCES_NEOVERSE), METRIC(MEM_LLC_HIT));
    assert_int_equal(load(0xc, 0, SPE_SOURCES_NEOVERSE), METRIC(MEM_LLC_HIT));
    assert_int_equal(load(0xe, 0, SPE_SOURCES_NEOVERSE), METRIC(MEM_DRAM_LOCAL) | alone);
    assert_int_equal(load(0xe, remote, SPE_SOURCES_NEOVERSE), METRIC(MEM_DRAM_REMOTE) | alone);
    assert_int_equal(load(0x7, remote, SPE_SOURCES_AMPERE), METRIC(MEM_DRAM_REMOTE) | alone);
    assert_int_equal(load(0xe, SPE_EVENT_LLC_ACCESS, SPE_SOURCES_COMMON), METRIC(MEM_LLC_HIT));
    assert_int_equal(load(0x1, SPE_EVENT_L1_ACCESS, SPE_SOURCES_NEOVERSE), METRIC(MEM_LOAD_L1));
    assert_int_equal(load(0x100, SPE_EVENT_L1_ACCESS, SPE_SOURCES_NEOVERSE), METRIC(MEM_LOAD_L1));
}

static void test_events(void **state)
{
    (void)state;
    const uint32_t l1 = SPE_EVENT_L1_ACCESS, l1_miss = l1 | SPE_EVENT_L1_REFILL, l2 = l1_miss | SPE_EVENT_L2_ACCESS;
    const uint32_t l3 = l2 | SPE_EVENT_L2_MISS | SPE_EVENT_LLC_ACCESS;
    assert_int_equal(load(-1, 0, SPE_SOURCES_COMMON), 0);
    assert_int_equal(load(-1, l1, SPE_SOURCES_COMMON), METRIC(MEM_LOAD_L1));
    assert_int_equal(load(-1, l1_miss, SPE_SOURCES_COMMON), METRIC(MEM_LOAD_MISS));
    assert_int_equal(load(-1, l2, SPE_SOURCES_COMMON), METRIC(MEM_LOAD_L2));
    assert_int_equal(load(-1, l3, SPE_SOURCES_COMMON), METRIC(MEM_LLC_HIT));
    assert_int_equal(load(-1, l3 | SPE_EVENT_MODIFIED, SPE_SOURCES_COMMON), METRIC(MEM_HITM_LOCAL));
    assert_int_equal(load(-1, l3 | SPE_EVENT_REMOTE, SPE_SOURCES_COMMON), METRIC(MEM_REMOTE_HIT));
    assert_int_equal(load(-1, l3 | SPE_EVENT_REMOTE | SPE_EVENT_MODIFIED, SPE_SOURCES_COMMON), METRIC(MEM_HITM_REMOTE));
    assert_int_equal(load(-1, l3 | SPE_EVENT_LLC_MISS, SPE_SOURCES_COMMON), METRIC(MEM_LOAD_MISS));
    assert_int_equal(load(-1, l1 | SPE_EVENT_TLB_WALK, SPE_SOURCES_COMMON),
                     METRIC(MEM_LOAD_L1) | METRIC(MEM_DTLB_WALK));
    assert_int_equal(load(-1, l1 | SPE_EVENT_TLB_ACCESS, SPE_SOURCES_COMMON), METRIC(MEM_LOAD_L1));
}

static void test_stores_and_others(void **state)
{
    (void)state;
    struct spe_record record = {.is_store = true, .events = SPE_EVENT_L1_ACCESS, .has_source = true, .source = 0xe};
    assert_int_equal(mem_metrics_sig(spe_data_src_sig(&record, SPE_SOURCES_NEOVERSE)),
                     METRIC(MEM_STORE) | METRIC(MEM_STORE_L1_HIT));
    record.events |= SPE_EVENT_L1_REFILL;
    record.is_exclusive = true;
    assert_int_equal(mem_metrics_sig(spe_data_src_sig(&record, SPE_SOURCES_NEOVERSE)),
                     METRIC(MEM_STORE) | METRIC(MEM_STORE_L1_MISS) | METRIC(MEM_LOCKED));
    record.is_store = false;
    record.is_branch = true;
    assert_int_equal(mem_metrics_sig(spe_data_src_sig(&record, SPE_SOURCES_NEOVERSE)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),  cmocka_unit_test(test_rich),
        cmocka_unit_test(test_operations), cmocka_unit_test(test_widths),
        cmocka_unit_test(test_cut_off),    cmocka_unit_test(test_resync),
        cmocka_unit_test(test_stream),     cmocka_unit_test(test_sources),
        cmocka_unit_test(test_events),     cmocka_unit_test(test_stores_and_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
