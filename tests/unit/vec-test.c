/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of base/vec.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

static void test_reserve_zeroes_and_grows(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    assert_true(vec_reserve(&items, &capacity, 1, sizeof *items));
    assert_true(capacity >= 1);
    items[0] = 7;
    assert_true(vec_reserve(&items, &capacity, 1000, sizeof *items));
    assert_int_equal(items[0], 7);
    assert_int_equal(items[999], 0);
    assert_false(vec_reserve(&items, &capacity, SIZE_MAX / 2, sizeof *items));
    assert_int_equal(items[0], 7);
    free(items);
}

static void test_buf(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_append(&buf, "ab", 2);
    buf_printf(&buf, "%d", 12);
    assert_string_equal(buf.data, "ab12");
    assert_int_equal(buf.len_bytes, 4);
    buf_fini(&buf);
    assert_null(buf.data);
    buf_printf(&buf, "%s", "");
    assert_string_equal(buf.data, "");
    buf_fini(&buf);
}

/* Whatever the order of names and other conversions, and however long they are, the text is printf's. */
static void test_printf(void **state)
{
    (void)state;
    char word[200];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = 0;
#define EXPECT_PRINTED(...)                                                                                            \
    do {                                                                                                               \
        char wanted[1024];                                                                                             \
        struct buf buf = {0};                                                                                          \
        (void)snprintf(wanted, sizeof wanted, __VA_ARGS__);                                                            \
        buf_printf(&buf, __VA_ARGS__);                                                                                 \
        assert_string_equal(buf.data, wanted);                                                                         \
        assert_int_equal(buf.len_bytes, strlen(wanted));                                                               \
        assert_false(buf.failed);                                                                                      \
        buf_fini(&buf);                                                                                                \
    } while (0)
    EXPECT_PRINTED("plain");
    EXPECT_PRINTED("100 %%");
    EXPECT_PRINTED("%s%s", "a", "");
    EXPECT_PRINTED("a%sb%sc", word, word);
    EXPECT_PRINTED("%s:%u", word, 7u);
    EXPECT_PRINTED("%s %% %s", "x", "y");
    EXPECT_PRINTED("%d%s%-5s|%.3s|%s", 1, "b", "c", word, word);
    EXPECT_PRINTED("[%s] %5.1f %s", "e", 2.25, word);
#undef EXPECT_PRINTED
}

static void test_strtab(void **state)
{
    (void)state;
    struct strtab table = {0};
    assert_int_equal(strtab_find(&table, "x"), -1);
    for (int i = 0; i < 5000; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "s%d", i);
        assert_int_equal(strtab_intern(&table, text), i);
    }
    assert_int_equal(strtab_intern(&table, "s77"), 77);
    assert_int_equal(strtab_find(&table, "s4999"), 4999);
    assert_int_equal(strtab_find(&table, "nope"), -1);
    assert_string_equal(table.strings[123], "s123");
    strtab_fini(&table);
}

/* Texts that differ in one place, wherever it is, and one that fills more than a piece. */
static void test_strtab_lengths(void **state)
{
    (void)state;
    enum { LONGEST = 40 };
    struct strtab table = {0};
    char text[LONGEST + 1], large[200001];
    int64_t n = 0;
    for (size_t len = 0; len <= LONGEST; len++)
        for (size_t at = 0; at <= len; at++) {
            memset(text, 'a', len);
            text[len] = '\0';
            if (at < len)
                text[at] = 'b';
            assert_int_equal(strtab_intern(&table, text), n++);
        }
    memset(large, 'c', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(strtab_intern(&table, large), n);
    assert_int_equal(strtab_intern(&table, "after"), n + 1);
    assert_string_equal(table.strings[n], large);
    assert_string_equal(table.strings[n - 2], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(strtab_find(&table, table.strings[i]), i);
    strtab_fini(&table);
}

struct item {
    uint32_t key, value;
};

/* Only 16 different ones: what the table does about those that meet is the point. */
static uint64_t hash(const void *item)
{
    return ((const struct item *)item)->key % 16;
}

static bool is_same(const void *a, const void *b)
{
    return ((const struct item *)a)->key == ((const struct item *)b)->key;
}

static void test_slots(void **state)
{
    (void)state;
    static const struct slots_kind kind = {sizeof(struct item), hash, is_same};
    struct item items[1000] = {{0}};
    struct slots slots = {0};
    assert_true(slots_find(&slots, &kind, items, &items[0]) == SLOTS_NONE);
    for (uint32_t i = 0; i < 1000; i++) {
        items[i] = (struct item){7 * i, i};
        assert_true(slots_reserve(&slots, &kind, items, i));
        assert_true(slots_find(&slots, &kind, items, &items[i]) == SLOTS_NONE);
        slots_add(&slots, &kind, items, i);
    }
    assert_true(slots.n > 2000 && (slots.n & (slots.n - 1)) == 0);
    for (uint32_t i = 0; i < 7000; i++) {
        const struct item like = {i, 0};
        assert_true(slots_find(&slots, &kind, items, &like) == (i % 7 ? SLOTS_NONE : i / 7));
    }
    slots_fini(&slots);
    assert_true(slots_reserve(&slots, &kind, items, 1000)); /* enters what is there */
    assert_true(slots_find(&slots, &kind, items, &items[999]) == 999);
    slots_fini(&slots);
}

static void test_slots_put(void **state)
{
    (void)state;
    static const struct slots_kind kind = {sizeof(struct item), hash, is_same};
    struct slots slots = {0};
    struct item *items = NULL;
    size_t n = 0, capacity = 0;
    for (uint32_t i = 0; i < 5000; i++) /* each key five times: kept once, where it was put first */
        assert_true(slots_put(&slots, &kind, &items, &n, &capacity, &(struct item){i % 1000, i}) == i % 1000);
    assert_true(n == 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(items[i].key == i && items[i].value == i);
    free(items);
    slots_fini(&slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve_zeroes_and_grows),
        cmocka_unit_test(test_buf),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_strtab),
        cmocka_unit_test(test_strtab_lengths),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_slots_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
