/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of base/search.h, against counting one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/search.h"

struct item {
    char before;
    uint64_t wide;
    uint32_t narrow;
};

#define ITEMS_MAX 40

static bool is_wide_below(const void *context, size_t i)
{
    const struct item *const *pair = context;
    return pair[0][i].wide < pair[1]->wide;
}

/* Every length, with keys that come several times: each value around them. */
static void test_counts(void **state)
{
    (void)state;
    struct item items[ITEMS_MAX];
    for (size_t i = 0; i < ITEMS_MAX; i++)
        items[i] = (struct item){.wide = UINT64_C(0x100000000) + i / 3 * 2, .narrow = (uint32_t)(i / 3 * 2)};
    for (size_t n = 0; n <= ITEMS_MAX; n++) {
        for (uint32_t value = 0; value < ITEMS_MAX; value++) {
            struct item like = {.wide = UINT64_C(0x100000000) + value};
            size_t below = 0, upto = 0;
            for (size_t i = 0; i < n; i++) {
                below += items[i].narrow < value;
                upto += items[i].narrow <= value;
            }
            assert_int_equal(search_below(items, n, SEARCH_KEY(struct item, narrow), value), below);
            assert_int_equal(search_upto(items, n, SEARCH_KEY(struct item, narrow), value), upto);
            assert_int_equal(search_below(items, n, SEARCH_KEY(struct item, wide), like.wide), below);
            assert_int_equal(search_upto(items, n, SEARCH_KEY(struct item, wide), like.wide), upto);
            assert_int_equal(search_where(n, is_wide_below, (const struct item *[]){items, &like}), below);
        }
    }
}

static void test_ends(void **state)
{
    (void)state;
    const struct item items[] = {{.wide = 0, .narrow = 0}, {.wide = UINT64_MAX, .narrow = UINT32_MAX}};
    assert_int_equal(search_below(items, 2, SEARCH_KEY(struct item, wide), 0), 0);
    assert_int_equal(search_upto(items, 2, SEARCH_KEY(struct item, wide), 0), 1);
    assert_int_equal(search_below(items, 2, SEARCH_KEY(struct item, wide), UINT64_MAX), 1);
    assert_int_equal(search_upto(items, 2, SEARCH_KEY(struct item, wide), UINT64_MAX), 2);
    assert_int_equal(search_upto(items, 2, SEARCH_KEY(struct item, narrow), UINT32_MAX), 2);
    assert_int_equal(search_upto(items, 2, SEARCH_KEY(struct item, narrow), UINT64_MAX), 2);
    assert_int_equal(search_below(NULL, 0, SEARCH_KEY(struct item, wide), 1), 0);
    assert_int_equal(search_upto(NULL, 0, SEARCH_KEY(struct item, wide), UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
