/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/objects.h: exact while there is room, fair beyond it, and always right in the sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fmt/objects.h"

static void test_exact(void **state)
{
    (void)state;
    struct spread spread = {0};
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(spread_add(&spread, 8 * (7 - i % 8), i % 2 + 1));
    spread_reduce(&spread);
    assert_int_equal(spread.n, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(spread.entries[i].offset, 8 * i);
        assert_int_equal(spread.entries[i].count, i % 2 ? 125 : 250);
    }
    assert_int_equal(spread_total(&spread), 1500);
    spread_fini(&spread);
}

/* An array of structures of 24 bytes: every third sample in the first field, the others in the last. */
static void test_fair(void **state)
{
    (void)state;
    struct spread spread = {0};
    uint64_t first = 0;
    for (uint64_t i = 0; i < 30000; i++)
        assert_true(spread_add(&spread, 24 * i + (i % 3 ? 16 : 0), 1));
    spread_reduce(&spread);
    assert_true(spread.n <= SPREAD_MAX);
    assert_int_equal(spread_total(&spread), 30000);
    for (size_t i = 0; i < spread.n; i++) {
        assert_true(spread.entries[i].offset % 24 == 0 || spread.entries[i].offset % 24 == 16);
        first += spread.entries[i].offset % 24 == 0 ? spread.entries[i].count : 0;
        if (i > 0)
            assert_true(spread.entries[i].offset > spread.entries[i - 1].offset);
    }
    assert_in_range(first, 2000, 19000);
    spread_fini(&spread);
}

/* One offset that has most of the samples keeps them. */
static void test_weights(void **state)
{
    (void)state;
    struct spread spread = {0};
    assert_true(spread_add(&spread, 7, 90000));
    for (uint64_t i = 0; i < 100; i++)
        assert_true(spread_add(&spread, 1000 + i, 100));
    spread_reduce(&spread);
    assert_int_equal(spread_total(&spread), 100000);
    assert_int_equal(spread.entries[0].offset, 7);
    assert_in_range(spread.entries[0].count, 88000, 92000);
    spread_fini(&spread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_fair),
        cmocka_unit_test(test_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
