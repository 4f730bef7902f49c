/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling/abi/perf-record.h: samples byte by byte in both byte orders, cut off everywhere, with lengths
 * that lie; rings that wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/abi/perf-record.h"

#define IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define BRANCH_HW_INDEX (1u << 17)
#define BRANCH_COUNTERS (1u << 19)
#define FORMAT_LOST (1u << 4)
#define ALL_BITS ((1u << 25) - 1)

/* --- a record written out by hand ----------------------------------------------------------------------------------*/

#define LE2(x) (x) & 255, (x) >> 8 & 255
#define LE4(x) LE2((x)&0xffff), LE2((x) >> 16 & 0xffff)
#define LE8(x) LE4((x)&0xffffffff), LE4((uint64_t)(x) >> 32)
#define BE2(x) (x) >> 8 & 255, (x)&255
#define BE4(x) BE2((x) >> 16 & 0xffff), BE2((x)&0xffff)
#define BE8(x) BE4((uint64_t)(x) >> 32), BE4((x)&0xffffffff)

/* Every field there is, in the order of perf_event_open(2), with a group of two counters, a chain of 3, 12 bytes of raw
 * data, one branch, registers 0, 3 and 63 of the user, a stack of 8 bytes and register 1 at the interrupt. */
#define GOLDEN_BYTES 384
#define GOLDEN(H, D, W)                                                                                                \
    {                                                                                                                  \
        D(9), H(2), H(GOLDEN_BYTES),                                             /* header: sample, user */            \
            W(0x1122334455667788), W(0x401000), D(77), D(78), W(123456789012),   /* identifier ip pid tid time */      \
            W(0x7f0000001238), W(0x1122334455667788), W(99), D(5), D(0),         /* addr id stream cpu */              \
            W(1009), W(2), W(500), W(400), W(11), W(1), W(0), W(22), W(2), W(3), /* period, read group */              \
            W(3), W(0xfffffffffffffe00), W(0x401000), W(0x402000),               /* call chain */                      \
            D(12), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,                        /* raw */                             \
            W(1), W(0xffffffffffffffff), W(0x401100), W(0x401200), W(1),         /* branches: nr, index, entry */      \
            W(2), W(0xa0), W(0xa3), W(0xa63),                                    /* user registers */                  \
            W(8), 1, 2, 3, 4, 5, 6, 7, 8, W(6),                                  /* stack */                           \
            W(0x0003000200000141), W(0x2968100142), W(7),                        /* weights, data_src, transaction */  \
            W(1), W(0xb1), W(0x12345000), W(42), W(4096), W(2097152), /* interrupt registers, phys, cgroup, pages */   \
            W(8), 8, 7, 6, 5, 4, 3, 2, 1                              /* aux */                                        \
    }
static const unsigned char golden_little[] = GOLDEN(LE2, LE4, LE8);
static const unsigned char golden_big[] = GOLDEN(BE2, BE4, BE8);

static struct abi_layout golden_layout(int is_big)
{
    struct abi_layout layout = {
        .sample_type = ALL_BITS & ~PERF_SAMPLE_WEIGHT,
        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
                       PERF_FORMAT_TOTAL_TIME_RUNNING | FORMAT_LOST,
        .branch_sample_type = BRANCH_HW_INDEX,
        .regs_user = 1ull << 63 | 9,
        .regs_intr = 2,
        .is_swapped = is_big != IS_BIG_ENDIAN,
    };
    return layout;
}

static void check_golden(const unsigned char *bytes, int is_big)
{
    struct abi_layout layout = golden_layout(is_big);
    struct abi_sample s;
    assert_true(abi_sample_parse_sig(bytes, GOLDEN_BYTES, &layout, &s));
    assert_int_equal(s.present, layout.sample_type);
    assert_int_equal(s.id, 0x1122334455667788);
    assert_int_equal(s.ip, 0x401000);
    assert_true(s.pid == 77 && s.tid == 78 && s.cpu == 5 && s.stream_id == 99 && s.period == 1009);
    assert_int_equal(s.time_ns, 123456789012);
    assert_int_equal(s.addr, 0x7f0000001238);
    assert_int_equal(s.read.n_bytes, 72);
    assert_int_equal(abi_word_sig(&s.read, 6, layout.is_swapped), 22);
    assert_int_equal(s.callchain.n_bytes, 24);
    assert_int_equal(abi_word_sig(&s.callchain, 0, layout.is_swapped), PERF_CONTEXT_USER);
    assert_int_equal(abi_word_sig(&s.callchain, 2, layout.is_swapped), 0x402000);
    assert_true(s.raw.n_bytes == 12 && s.raw.data[0] == 1 && s.raw.data[11] == 12);
    assert_int_equal(s.branches.n_bytes, 24);
    assert_int_equal(abi_word_sig(&s.branches, 1, layout.is_swapped), 0x401200);
    assert_true(s.regs_user_abi == 2 && s.regs_user.n_bytes == 24 && s.regs_intr_abi == 1 && s.regs_intr.n_bytes == 8);
    assert_int_equal(abi_word_sig(&s.regs_user, 2, layout.is_swapped), 0xa63);
    assert_int_equal(abi_word_sig(&s.regs_intr, 0, layout.is_swapped), 0xb1);
    assert_true(s.stack.n_bytes == 8 && s.stack.data[7] == 8 && s.stack_used_bytes == 6);
    assert_true(s.weight == 0x141 && s.weight2 == 2 && s.weight3 == 3);
    assert_int_equal(s.data_src, 0x2968100142);
    assert_true(s.transaction == 7 && s.phys_addr == 0x12345000 && s.cgroup == 42);
    assert_true(s.data_page_bytes == 4096 && s.code_page_bytes == 2097152);
    assert_true(s.aux.n_bytes == 8 && s.aux.data[7] == 1);
}

static void test_golden(void **state)
{
    (void)state;
    assert_int_equal(sizeof golden_little, GOLDEN_BYTES);
    check_golden(golden_little, 0);
    check_golden(golden_big, 1);
}

static void set_size(unsigned char *record, size_t n_bytes, int is_big)
{
    record[6] = (unsigned char)(is_big ? n_bytes >> 8 : n_bytes);
    record[7] = (unsigned char)(is_big ? n_bytes : n_bytes >> 8);
}

/* A record that ends after n_bytes, in memory that ends there too. */
static unsigned char *cut(const unsigned char *record, size_t n_bytes, int is_big)
{
    unsigned char *copy = malloc(n_bytes ? n_bytes : 1);
    memcpy(copy, record, n_bytes);
    if (n_bytes >= 8)
        set_size(copy, n_bytes, is_big);
    return copy;
}

static void test_truncated(void **state)
{
    (void)state;
    for (int is_big = 0; is_big < 2; is_big++) {
        uint64_t before = 0;
        for (size_t n_bytes = 0; n_bytes < GOLDEN_BYTES; n_bytes++) {
            struct abi_layout layout = golden_layout(is_big);
            struct abi_sample s;
            unsigned char *copy = cut(is_big ? golden_big : golden_little, n_bytes, is_big);
            assert_false(abi_sample_parse_sig(copy, n_bytes, &layout, &s));
            assert_int_equal(s.present & before, before);
            assert_true(s.present & PERF_SAMPLE_REGS_INTR || (!s.regs_intr_abi && !s.regs_intr.n_bytes));
            assert_true(s.present & PERF_SAMPLE_STACK_USER || (!s.stack_used_bytes && !s.stack.n_bytes));
            assert_true(s.present & PERF_SAMPLE_BRANCH_STACK || !s.branches.n_bytes);
            assert_true(s.present & PERF_SAMPLE_RAW || !s.raw.n_bytes);
            assert_true(s.present & PERF_SAMPLE_AUX || !s.aux.n_bytes);
            before = s.present;
            free(copy);
        }
    }
}

static void test_wrong_header(void **state)
{
    (void)state;
    struct abi_layout layout = golden_layout(0);
    struct abi_sample s;
    assert_false(abi_sample_parse_sig(golden_little, GOLDEN_BYTES - 8, &layout, &s));
    assert_false(abi_sample_parse_sig(golden_little, 7, &layout, &s));
    layout.is_swapped = !layout.is_swapped;
    assert_false(abi_sample_parse_sig(golden_little, GOLDEN_BYTES, &layout, &s));
    assert_int_equal(s.present, 0);
}

/* --- records of any layout, from a writer of the test's own --------------------------------------------------------*/

struct writer {
    unsigned char bytes[8192];
    size_t n;
    int is_big;
};

static void put(struct writer *w, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++)
        w->bytes[w->n + i] = (unsigned char)(value >> 8 * (w->is_big ? n_bytes - 1 - i : i));
    w->n += n_bytes;
}

static void put_many(struct writer *w, unsigned n_words, uint64_t first)
{
    for (unsigned i = 0; i < n_words; i++)
        put(w, first + i, 8);
}

/* What the variable parts of a record look like. */
struct form {
    unsigned n_chain, n_raw, n_branches, n_stack, n_aux, n_values, abi_user, abi_intr;
    int is_index_missing;
};

static void put_read(struct writer *w, const struct abi_layout *l, const struct form *f)
{
    unsigned n_values = l->read_format & PERF_FORMAT_GROUP ? f->n_values : 1;
    unsigned n_each = 1 + !!(l->read_format & PERF_FORMAT_ID) + !!(l->read_format & FORMAT_LOST);
    if (l->read_format & PERF_FORMAT_GROUP)
        put(w, n_values, 8);
    put_many(w, __builtin_popcountll(l->read_format & 3) + n_values * n_each, 0x5000);
}

static void put_padded(struct writer *w, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++)
        put(w, i, 1);
    while (w->n % 8)
        put(w, 0xee, 1);
}

static void put_regs(struct writer *w, unsigned abi, uint64_t mask)
{
    put(w, abi, 8);
    put_many(w, abi ? (unsigned)__builtin_popcountll(mask) : 0, 0x6000);
}

static void put_simple(struct writer *w, uint64_t type, uint64_t bit, uint64_t value)
{
    if (type & bit)
        put(w, value, 8);
}

static void put_pair(struct writer *w, uint64_t type, uint64_t bit, uint32_t first, uint32_t second)
{
    if (!(type & bit))
        return;
    put(w, first, 4);
    put(w, second, 4);
}

static void put_branches(struct writer *w, const struct abi_layout *l, const struct form *f)
{
    put(w, f->n_branches, 8);
    if (l->branch_sample_type & BRANCH_HW_INDEX && !f->is_index_missing)
        put(w, UINT64_MAX, 8);
    put_many(w, 3 * f->n_branches, 0x7000);
    if (l->branch_sample_type & BRANCH_COUNTERS)
        put_many(w, f->n_branches, 0x8000);
}

static void put_middle(struct writer *w, const struct abi_layout *l, const struct form *f)
{
    uint64_t type = l->sample_type;
    if (type & PERF_SAMPLE_READ)
        put_read(w, l, f);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        put(w, f->n_chain, 8);
        put_many(w, f->n_chain, 0x9000);
    }
    if (type & PERF_SAMPLE_RAW) {
        put(w, f->n_raw, 4);
        put_padded(w, f->n_raw);
    }
    if (type & PERF_SAMPLE_BRANCH_STACK)
        put_branches(w, l, f);
    if (type & PERF_SAMPLE_REGS_USER)
        put_regs(w, f->abi_user, l->regs_user);
    if (type & PERF_SAMPLE_STACK_USER) {
        put(w, f->n_stack, 8);
        put_padded(w, f->n_stack);
        if (f->n_stack)
            put(w, f->n_stack - 1, 8);
    }
}

static void put_sample(struct writer *w, const struct abi_layout *l, const struct form *f)
{
    uint64_t type = l->sample_type;
    w->n = 0;
    put(w, PERF_RECORD_SAMPLE, 4);
    put(w, 0, 4);
    put_simple(w, type, PERF_SAMPLE_IDENTIFIER, 0x101);
    put_simple(w, type, PERF_SAMPLE_IP, 0x102);
    put_pair(w, type, PERF_SAMPLE_TID, 0x103, 0x104);
    put_simple(w, type, PERF_SAMPLE_TIME, 0x105);
    put_simple(w, type, PERF_SAMPLE_ADDR, 0x106);
    put_simple(w, type, PERF_SAMPLE_ID, 0x101);
    put_simple(w, type, PERF_SAMPLE_STREAM_ID, 0x107);
    put_pair(w, type, PERF_SAMPLE_CPU, 0x108, 0xffffffff);
    put_simple(w, type, PERF_SAMPLE_PERIOD, 0x109);
    put_middle(w, l, f);
    put_simple(w, type, PERF_SAMPLE_WEIGHT, 0x1110000010a);
    put_simple(w, type, PERF_SAMPLE_WEIGHT_STRUCT, 0xc000b0000010a);
    put_simple(w, type, PERF_SAMPLE_DATA_SRC, 0x10d);
    put_simple(w, type, PERF_SAMPLE_TRANSACTION, 0x10e);
    if (type & PERF_SAMPLE_REGS_INTR)
        put_regs(w, f->abi_intr, l->regs_intr);
    put_simple(w, type, PERF_SAMPLE_PHYS_ADDR, 0x10f);
    put_simple(w, type, PERF_SAMPLE_CGROUP, 0x110);
    put_simple(w, type, PERF_SAMPLE_DATA_PAGE_SIZE, 0x111);
    put_simple(w, type, PERF_SAMPLE_CODE_PAGE_SIZE, 0x112);
    if (type & PERF_SAMPLE_AUX) {
        put(w, f->n_aux, 8);
        put_padded(w, f->n_aux);
    }
    set_size(w->bytes, w->n, w->is_big);
}

static void check_simple(const struct abi_sample *s, uint64_t type)
{
    assert_int_equal(s->id, type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER) ? 0x101 : 0);
    assert_int_equal(s->ip, type & PERF_SAMPLE_IP ? 0x102 : 0);
    assert_int_equal(s->pid, type & PERF_SAMPLE_TID ? 0x103 : 0);
    assert_int_equal(s->tid, type & PERF_SAMPLE_TID ? 0x104 : 0);
    assert_int_equal(s->time_ns, type & PERF_SAMPLE_TIME ? 0x105 : 0);
    assert_int_equal(s->addr, type & PERF_SAMPLE_ADDR ? 0x106 : 0);
    assert_int_equal(s->stream_id, type & PERF_SAMPLE_STREAM_ID ? 0x107 : 0);
    assert_int_equal(s->cpu, type & PERF_SAMPLE_CPU ? 0x108 : 0);
    assert_int_equal(s->period, type & PERF_SAMPLE_PERIOD ? 0x109 : 0);
    assert_int_equal(s->weight, type & PERF_SAMPLE_WEIGHT          ? 0x1110000010a
                                : type & PERF_SAMPLE_WEIGHT_STRUCT ? 0x10a
                                                                   : 0);
    assert_int_equal(s->weight2, type & PERF_SAMPLE_WEIGHT_STRUCT ? 0xb : 0);
    assert_int_equal(s->weight3, type & PERF_SAMPLE_WEIGHT_STRUCT ? 0xc : 0);
    assert_int_equal(s->data_src, type & PERF_SAMPLE_DATA_SRC ? 0x10d : 0);
    assert_int_equal(s->transaction, type & PERF_SAMPLE_TRANSACTION ? 0x10e : 0);
    assert_int_equal(s->phys_addr, type & PERF_SAMPLE_PHYS_ADDR ? 0x10f : 0);
    assert_int_equal(s->cgroup, type & PERF_SAMPLE_CGROUP ? 0x110 : 0);
    assert_int_equal(s->data_page_bytes, type & PERF_SAMPLE_DATA_PAGE_SIZE ? 0x111 : 0);
    assert_int_equal(s->code_page_bytes, type & PERF_SAMPLE_CODE_PAGE_SIZE ? 0x112 : 0);
}

static void check_words(const struct abi_bytes *words, size_t n_words, uint64_t first, int is_swapped)
{
    assert_int_equal(words->n_bytes, 8 * n_words);
    if (n_words)
        assert_int_equal(abi_word_sig(words, n_words - 1, is_swapped), first + n_words - 1);
}

static void check_sample(const struct writer *w, const struct abi_layout *l, const struct form *f)
{
    struct abi_sample s;
    uint64_t type = l->sample_type;
    unsigned char *copy = cut(w->bytes, w->n, w->is_big);
    assert_true(abi_sample_parse_sig(copy, w->n, l, &s));
    assert_int_equal(s.present, type);
    check_simple(&s, type);
    check_words(&s.callchain, type & PERF_SAMPLE_CALLCHAIN ? f->n_chain : 0, 0x9000, l->is_swapped);
    check_words(&s.branches, type & PERF_SAMPLE_BRANCH_STACK ? 3 * f->n_branches : 0, 0x7000, l->is_swapped);
    int has_user = type & PERF_SAMPLE_REGS_USER && f->abi_user, has_intr = type & PERF_SAMPLE_REGS_INTR && f->abi_intr;
    check_words(&s.regs_user, has_user ? __builtin_popcountll(l->regs_user) : 0, 0x6000, l->is_swapped);
    check_words(&s.regs_intr, has_intr ? __builtin_popcountll(l->regs_intr) : 0, 0x6000, l->is_swapped);
    assert_int_equal(s.regs_user_abi, has_user ? f->abi_user : 0);
    assert_int_equal(s.regs_intr_abi, has_intr ? f->abi_intr : 0);
    assert_int_equal(s.raw.n_bytes, type & PERF_SAMPLE_RAW ? f->n_raw : 0);
    assert_int_equal(s.stack.n_bytes, type & PERF_SAMPLE_STACK_USER ? f->n_stack : 0);
    assert_int_equal(s.stack_used_bytes, type & PERF_SAMPLE_STACK_USER && f->n_stack ? f->n_stack - 1 : 0);
    assert_int_equal(s.aux.n_bytes, type & PERF_SAMPLE_AUX ? f->n_aux : 0);
    if (s.raw.n_bytes)
        assert_int_equal(s.raw.data[f->n_raw - 1], (unsigned char)(f->n_raw - 1));
    free(copy);
}

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static void test_any_layout(void **state)
{
    (void)state;
    static struct writer w;
    uint64_t random = 88172645463325252;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t r = next_random(&random), q = next_random(&random);
        struct abi_layout l = {.sample_type = i < 26 ? (1u << i) >> 1 : r & ALL_BITS,
                               .read_format = r >> 25 & 31,
                               .branch_sample_type = (r >> 30 & 3) == 3 ? BRANCH_HW_INDEX | BRANCH_COUNTERS
                                                                        : (r >> 30 & 3) << 17 & BRANCH_HW_INDEX,
                               .regs_user = q & next_random(&random),
                               .regs_intr = i % 3 ? q >> 40 : UINT64_MAX};
        struct form f = {r >> 32 & 7,
                         r >> 35 & 63,
                         r >> 41 & 3,
                         8 * (r >> 43 & 7),
                         8 * (r >> 46 & 3),
                         r >> 48 & 3,
                         r >> 50 & 1 ? 2 : r >> 51 & 1,
                         r >> 52 & 1 ? 2 : r >> 53 & 1,
                         0};
        if (l.sample_type & PERF_SAMPLE_WEIGHT)
            l.sample_type &= ~(uint64_t)PERF_SAMPLE_WEIGHT_STRUCT;
        w.is_big = r >> 54 & 1;
        l.is_swapped = w.is_big != IS_BIG_ENDIAN;
        put_sample(&w, &l, &f);
        check_sample(&w, &l, &f);
    }
}

/* A branch stack of no entries comes with its index or, where the hardware gave nothing, without. */
static void test_branch_index(void **state)
{
    (void)state;
    static struct writer w = {.is_big = IS_BIG_ENDIAN};
    struct abi_layout l = {.sample_type = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_REGS_USER,
                           .branch_sample_type = BRANCH_HW_INDEX | BRANCH_COUNTERS,
                           .regs_user = 7};
    for (unsigned abi = 0; abi < 3; abi++)
        for (int is_missing = 0; is_missing < 2; is_missing++) {
            struct form f = {.abi_user = abi, .is_index_missing = is_missing};
            put_sample(&w, &l, &f);
            check_sample(&w, &l, &f);
        }
}

/* Counts and sizes that nothing in the record backs. */
static void test_lying_lengths(void **state)
{
    (void)state;
    static struct writer w = {.is_big = IS_BIG_ENDIAN};
    static const uint64_t bits[] = {PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_STACK_USER,
                                    PERF_SAMPLE_REGS_INTR, PERF_SAMPLE_AUX,          PERF_SAMPLE_READ};
    static const uint64_t lengths[] = {
        9,          1u << 29,          1ull << 32, 1ull << 60, 1ull << 61, (1ull << 61) + 1, UINT64_MAX - 7,
        UINT64_MAX, 0xaaaaaaaaaaaaaab, 1ull << 63};
    for (size_t b = 0; b < sizeof bits / sizeof bits[0]; b++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            struct abi_layout l = {.sample_type = bits[b] | PERF_SAMPLE_IP, .read_format = PERF_FORMAT_GROUP};
            struct abi_sample s;
            put_sample(&w, &l, &(struct form){0});
            w.n = 16;
            put(&w, lengths[i], 8);
            put(&w, 0, 8);
            unsigned char *copy = cut(w.bytes, w.n, w.is_big);
            assert_false(abi_sample_parse_sig(copy, w.n, &l, &s));
            assert_int_equal(s.present, PERF_SAMPLE_IP);
            free(copy);
        }
    for (uint32_t n_bytes = 5; n_bytes; n_bytes <<= 1) {
        struct abi_layout l = {.sample_type = PERF_SAMPLE_RAW};
        struct abi_sample s;
        put_sample(&w, &l, &(struct form){0});
        w.n = 8;
        put(&w, n_bytes | (n_bytes > 4 ? 1u << 31 : 0), 4);
        put(&w, 0, 4);
        set_size(w.bytes, w.n, w.is_big);
        assert_false(abi_sample_parse_sig(w.bytes, w.n, &l, &s));
        assert_true(!s.present && !s.raw.n_bytes);
    }
}

static void test_sample_id(void **state)
{
    (void)state;
    static struct writer w;
    for (int is_big = 0; is_big < 2; is_big++) {
        struct abi_layout l = {.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                              PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER |
                                              PERF_SAMPLE_ADDR,
                               .is_swapped = is_big != IS_BIG_ENDIAN,
                               .has_sample_id_all = true};
        struct abi_sample s;
        w = (struct writer){.is_big = is_big};
        put(&w, PERF_RECORD_LOST, 4);
        put(&w, 0, 4);
        put_many(&w, 2, 0x200);
        put_pair(&w, ~0ull, 1, 3, 4);
        put(&w, 5, 8);
        put(&w, 6, 8);
        put(&w, 7, 8);
        put_pair(&w, ~0ull, 1, 8, 0);
        put(&w, 6, 8);
        set_size(w.bytes, w.n, is_big);
        assert_true(abi_sample_id_parse_sig(w.bytes, w.n, &l, &s));
        assert_true(s.pid == 3 && s.tid == 4 && s.time_ns == 5 && s.id == 6 && s.stream_id == 7 && s.cpu == 8);
        assert_int_equal(s.present, l.sample_type & ~(uint64_t)PERF_SAMPLE_ADDR);
        set_size(w.bytes, 48, is_big);
        assert_false(abi_sample_id_parse_sig(w.bytes, 48, &l, &s));
        l.has_sample_id_all = false;
        assert_false(abi_sample_id_parse_sig(w.bytes, w.n, &l, &s));
    }
}

static void test_layout_of(void **state)
{
    (void)state;
    struct perf_event_attr attr = {.sample_type = 5,
                                   .read_format = 6,
                                   .branch_sample_type = 7,
                                   .sample_regs_user = 8,
                                   .sample_regs_intr = 9,
                                   .sample_id_all = 1};
    struct abi_layout l = abi_layout_of_sig(&attr);
    assert_true(l.sample_type == 5 && l.read_format == 6 && l.branch_sample_type == 7 && l.regs_user == 8 &&
                l.regs_intr == 9 && l.has_sample_id_all && !l.is_swapped);
}

/* --- rings
 * -----------------------------------------------------------------------------------------------------------*/

enum { RING_BYTES = 4096 };

static void ring_write(unsigned char *ring, uint64_t position, const void *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        ring[(position + i) % RING_BYTES] = ((const unsigned char *)bytes)[i];
}

static void put_record(unsigned char *ring, uint64_t position, uint32_t type, uint16_t n_bytes, unsigned char fill)
{
    unsigned char record[RING_BYTES];
    struct perf_event_header header = {.type = type, .size = n_bytes};
    memset(record, fill, sizeof record);
    memcpy(record, &header, sizeof header);
    ring_write(ring, position, record, n_bytes > sizeof header ? n_bytes : sizeof header);
}

static void check_record(const struct perf_event_header *record, uint16_t n_bytes, unsigned char fill)
{
    assert_int_equal(record->size, n_bytes);
    for (uint16_t i = sizeof *record; i < n_bytes; i++)
        assert_int_equal(((const unsigned char *)record)[i], fill);
}

/* Records of every length follow each other around the ring, also past the end of the numbers. */
static void test_ring_wraps(void **state)
{
    (void)state;
    unsigned char *data = malloc(RING_BYTES);
    struct abi_ring ring = {data, RING_BYTES, false};
    uint64_t buffer[RING_BYTES / 8], position = UINT64_MAX - 1000007, random = 4711;
    const struct perf_event_header *record;
    unsigned n_wrapped = 0;
    position &= ~7ull;
    for (unsigned i = 0; i < 20000; i++) {
        uint16_t n_bytes = (uint16_t)(8 + 8 * (next_random(&random) % (i % 100 ? 20 : 511)));
        put_record(data, position, PERF_RECORD_SAMPLE, n_bytes, (unsigned char)i);
        assert_int_equal(abi_ring_record_sig(&ring, position, position + n_bytes, buffer, sizeof buffer, &record),
                         ABI_RECORD);
        check_record(record, n_bytes, (unsigned char)i);
        bool is_copy = (const void *)record == buffer;
        assert_true(is_copy == (position % RING_BYTES + n_bytes > RING_BYTES));
        n_wrapped += is_copy;
        position += n_bytes;
        assert_int_equal(abi_ring_record_sig(&ring, position, position, buffer, sizeof buffer, &record), ABI_EMPTY);
    }
    assert_true(n_wrapped > 200 && position < 1u << 30);
    free(data);
}

/* A ring of a machine of the other byte order: lengths are read swapped, the record itself is left as it is. */
static void test_ring_swapped(void **state)
{
    (void)state;
    unsigned char *data = calloc(1, RING_BYTES);
    struct abi_ring ring = {data, RING_BYTES, true};
    const struct perf_event_header *record;
    uint64_t buffer[8];
    for (uint64_t position = 0; position < 3 * RING_BYTES; position += 40) {
        struct perf_event_header header = {
            .type = __builtin_bswap32(PERF_RECORD_LOST), .misc = __builtin_bswap16(2), .size = __builtin_bswap16(40)};
        unsigned char bytes[40] = {0};
        memcpy(bytes, &header, sizeof header);
        bytes[39] = (unsigned char)position;
        ring_write(data, position, bytes, sizeof bytes);
        assert_int_equal(abi_ring_record_sig(&ring, position, position + 40, buffer, sizeof buffer, &record),
                         ABI_RECORD);
        header = abi_header_sig(record, true);
        assert_true(header.type == PERF_RECORD_LOST && header.misc == 2 && header.size == 40);
        assert_int_equal(((const unsigned char *)record)[39], (unsigned char)position);
    }
    ring.is_swapped = false;
    assert_int_equal(abi_ring_record_sig(&ring, 0, 40, buffer, sizeof buffer, &record), ABI_GARBAGE);
    free(data);
}

static void test_ring_garbage(void **state)
{
    (void)state;
    unsigned char *data = calloc(1, RING_BYTES);
    struct abi_ring ring = {data, RING_BYTES, false};
    uint64_t buffer[8];
    const struct perf_event_header *record = NULL;
    static const uint16_t sizes[] = {0, 1, 7, 9, 12, 72, 0xfff8, 0xffff};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_record(data, 128, PERF_RECORD_SAMPLE, sizes[i] > RING_BYTES ? 8 : sizes[i], 1);
        memcpy(data + 128 + 6, &sizes[i], 2);
        assert_int_equal(abi_ring_record_sig(&ring, 128, 192, buffer, sizeof buffer, &record), ABI_GARBAGE);
        assert_null(record);
    }
    put_record(data, 128, PERF_RECORD_SAMPLE, 64, 1);
    assert_int_equal(abi_ring_record_sig(&ring, 128, 192, buffer, sizeof buffer, &record), ABI_RECORD);
    assert_int_equal(abi_ring_record_sig(&ring, 128, 135, buffer, sizeof buffer, &record), ABI_GARBAGE);
    assert_int_equal(abi_ring_record_sig(&ring, 128, 129 + RING_BYTES, buffer, sizeof buffer, &record), ABI_GARBAGE);
    assert_int_equal(abi_ring_record_sig(&ring, 128, 120, buffer, sizeof buffer, &record), ABI_GARBAGE);
    put_record(data, RING_BYTES - 8, PERF_RECORD_SAMPLE, 72, 1);
    assert_int_equal(abi_ring_record_sig(&ring, RING_BYTES - 8, RING_BYTES + 64, buffer, sizeof buffer, &record),
                     ABI_GARBAGE);
    put_record(data, 4, PERF_RECORD_SAMPLE, 16, 3);
    assert_int_equal(abi_ring_record_sig(&ring, 4, 20, buffer, sizeof buffer, &record), ABI_RECORD);
    check_record(record, 16, 3);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_truncated),    cmocka_unit_test(test_wrong_header),
        cmocka_unit_test(test_any_layout),   cmocka_unit_test(test_branch_index), cmocka_unit_test(test_lying_lengths),
        cmocka_unit_test(test_sample_id),    cmocka_unit_test(test_layout_of),    cmocka_unit_test(test_ring_wraps),
        cmocka_unit_test(test_ring_swapped), cmocka_unit_test(test_ring_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
