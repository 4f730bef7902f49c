/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the readers of maps and jitdumps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "base/vec.h"
#include "symnames/symnames.h"

static struct jit_names *names_of_map(const char *text, int64_t n_expected)
{
    struct error err;
    struct jit_names *names = jit_names_new();
    assert_non_null(names);
    assert_int_equal(jit_names_add_map(names, text, strlen(text), &err), n_expected);
    assert_int_equal(jit_names_order(names, &err), 0);
    return names;
}

/* The function at address is text (NULL: none), its part there [start, end). */
static void check(const struct jit_names *names, uint64_t address, const char *text, uint64_t start, uint64_t end)
{
    uint64_t low = 0, high = 0;
    const char *found = jit_names_find(names, address, &low, &high);
    if (!text) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found, text);
    assert_true(low == start && high == end);
}

static void test_map(void **state)
{
    (void)state;
    struct jit_names *names = names_of_map("1000 10 first\n"
                                           "0x2000 0x20 LazyCompile:~f with blanks app.js:3\r\n"
                                           "no line\n"
                                           "3000 name_without_size\n"
                                           "4000 0 empty\n"
                                           "5000 10 \n"
                                           "ffffffffffffffff 10 beyond\n"
                                           "11112222333344445 10 too_long\n"
                                           "6000 10 cut off",
                                           2);
    check(names, 0xfff, NULL, 0, 0);
    check(names, 0x1000, "first", 0x1000, 0x1010);
    check(names, 0x100f, "first", 0x1000, 0x1010);
    check(names, 0x1010, NULL, 0, 0);
    check(names, 0x201f, "LazyCompile:~f with blanks app.js:3", 0x2000, 0x2020);
    check(names, 0x6000, NULL, 0, 0);
    jit_names_free(names);
    names = names_of_map("", 0);
    check(names, 0, NULL, 0, 0);
    check(NULL, 0, NULL, 0, 0);
    jit_names_free(names);
}

/* What was written later is what is there. */
static void test_reuse(void **state)
{
    (void)state;
    struct jit_names *names = names_of_map("1000 100 old\n"
                                           "1040 20 inside\n"
                                           "1800 100 left\n"
                                           "1880 100 right\n"
                                           "2000 10 gone\n"
                                           "2000 10 new\n"
                                           "3000 100 large\n"
                                           "2f00 1000 larger\n",
                                           8);
    check(names, 0x1000, "old", 0x1000, 0x1040);
    check(names, 0x1040, "inside", 0x1040, 0x1060);
    check(names, 0x1060, "old", 0x1060, 0x1100);
    check(names, 0x187f, "left", 0x1800, 0x1880);
    check(names, 0x1880, "right", 0x1880, 0x1980);
    check(names, 0x2000, "new", 0x2000, 0x2010);
    check(names, 0x3050, "larger", 0x2f00, 0x3f00);
    jit_names_free(names);
}

/* Against the rule itself: the last line that covers an address. */
static void test_many(void **state)
{
    (void)state;
    enum { N = 3000, SPACE = 20000 };
    static uint32_t last[SPACE];
    struct buf text = {0};
    struct error err;
    struct jit_names *names = jit_names_new();
    srand(5);
    memset(last, 0, sizeof last);
    for (uint32_t i = 1; i <= N; i++) {
        uint32_t start = (uint32_t)rand() % SPACE, size = 1 + (uint32_t)rand() % (i % 10 ? 40 : 2000);
        buf_printf(&text, "%x %x f%u\n", start, size, i);
        for (uint32_t at = start; at < start + size && at < SPACE; at++)
            last[at] = i;
    }
    assert_int_equal(jit_names_add_map(names, text.data, text.len_bytes, &err), N);
    assert_int_equal(jit_names_order(names, &err), 0);
    for (uint32_t at = 0; at < SPACE; at++) {
        char name[16];
        uint64_t start, end;
        const char *found = jit_names_find(names, at, &start, &end);
        (void)snprintf(name, sizeof name, "f%u", last[at]);
        assert_true(found ? strcmp(found, name) == 0 && start <= at && at < end : last[at] == 0);
    }
    jit_names_free(names);
    buf_fini(&text);
}

struct writer {
    struct buf bytes;
    bool is_swapped;
};

static void put(struct writer *writer, uint64_t value, size_t n_bytes)
{
    uint32_t half = writer->is_swapped ? __builtin_bswap32((uint32_t)value) : (uint32_t)value;
    uint64_t whole = writer->is_swapped ? __builtin_bswap64(value) : value;
    buf_append(&writer->bytes, n_bytes == 4 ? (const void *)&half : (const void *)&whole, n_bytes);
}

static void put_head(struct writer *writer)
{
    static const uint64_t words[] = {0x4a695444, 1, 40, 62, 0, 77};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        put(writer, words[i], 4);
    put(writer, 123456789, 8);
    put(writer, 0, 8);
}

static void put_record(struct writer *writer, uint32_t kind, const uint64_t *words, size_t n, const char *tail,
                       size_t n_tail)
{
    put(writer, kind, 4);
    put(writer, 16 + 8 + 8 * n + n_tail, 4);
    put(writer, 5, 8);
    put(writer, 77, 4);
    put(writer, 78, 4);
    for (size_t i = 0; i < n; i++)
        put(writer, words[i], 8);
    buf_append(&writer->bytes, tail, n_tail);
}

static void check_dump(bool is_swapped)
{
    struct writer writer = {.is_swapped = is_swapped};
    struct error err;
    static const char tail[] = "a function\0code", unended[] = {'x', 'y'};
    static const uint64_t load[] = {0x1000, 0x1000, 16, 9}, move[] = {0x5000, 0x1000, 0x5000, 16, 9},
                          stranger[] = {0x6000, 0x1000, 0x6000, 16, 8}, other[] = {0x7000, 0x7000, 16, 10};
    put_head(&writer);
    put_record(&writer, 0, load, 4, tail, sizeof tail - 1);
    put_record(&writer, 4, load, 3, tail, 8);
    put_record(&writer, 1, move, 5, NULL, 0);
    put_record(&writer, 1, stranger, 5, NULL, 0);
    put_record(&writer, 0, other, 4, unended, sizeof unended);
    size_t n_whole = writer.bytes.len_bytes;
    put_record(&writer, 0, other, 4, tail, sizeof tail - 1);
    for (size_t n = writer.bytes.len_bytes; n >= 40; n--) {
        struct jit_names *names = jit_names_new();
        int64_t n_added = jit_names_add_dump(names, writer.bytes.data, n, "a.dump", &err);
        assert_true(n_added >= 0);
        assert_int_equal(jit_names_order(names, &err), 0);
        if (n == writer.bytes.len_bytes)
            check(names, 0x7000, "a function", 0x7000, 0x7010);
        if (n == n_whole) {
            assert_int_equal(n_added, 2);
            check(names, 0x1005, "a function", 0x1000, 0x1010);
            check(names, 0x500f, "a function", 0x5000, 0x5010);
            check(names, 0x6000, NULL, 0, 0);
            check(names, 0x7000, NULL, 0, 0);
        }
        jit_names_free(names);
    }
    buf_fini(&writer.bytes);
}

static void test_dump(void **state)
{
    (void)state;
    check_dump(false);
    check_dump(true);
}

static void test_no_dump(void **state)
{
    (void)state;
    struct error err;
    struct writer writer = {0};
    struct jit_names *names = jit_names_new();
    put_head(&writer);
    assert_int_equal(jit_names_add_dump(names, writer.bytes.data, 39, "short", &err), ERR_FORMAT);
    writer.bytes.data[4] = 2;
    assert_int_equal(jit_names_add_dump(names, writer.bytes.data, 40, "later", &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "later: offset 4"));
    writer.bytes.data[0] = 'x';
    assert_int_equal(jit_names_add_dump(names, writer.bytes.data, 40, "other", &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "other: offset 0"));
    jit_names_free(names);
    buf_fini(&writer.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),  cmocka_unit_test(test_reuse),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_dump), cmocka_unit_test(test_no_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
