/* SPDX-License-Identifier: BSD-3-Clause */
/* Dealing items out to a team: each has one owner, and nobody gets all of a kind that comes back regularly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/workers.h"

static void test_every_item_once(void **state)
{
    (void)state;
    for (size_t n_ranks = 1; n_ranks < 10; n_ranks++)
        for (size_t n = 0; n < 70; n++) {
            unsigned char owner[70] = {0};
            size_t n_all = 0;
            for (size_t rank = 0; rank < n_ranks; rank++) {
                const struct team team = {.rank = rank, .n_ranks = n_ranks};
                size_t count = team_count(&team, n);
                for (size_t k = 0; k < count; k++) {
                    size_t i = team_item(&team, k);
                    assert_true(i < n);
                    assert_true(k == 0 || i > team_item(&team, k - 1));
                    assert_int_equal(owner[i], 0);
                    assert_int_equal(team_owner(&team, i), rank);
                    owner[i] = 1;
                }
                assert_in_range(count, n / n_ranks, n / n_ranks + 1);
                n_all += count;
            }
            assert_int_equal(n_all, n);
        }
}

/* As the first threads of processes with equally many: these are where the work is. */
static void test_regular_items(void **state)
{
    (void)state;
    for (size_t n_ranks = 2; n_ranks <= 8; n_ranks *= 2)
        for (size_t stride = 2; stride <= 64; stride *= 2) {
            const struct team team = {.n_ranks = n_ranks};
            size_t counts[8] = {0};
            for (size_t i = 0; i < 1000; i++)
                counts[team_owner(&team, i * stride)]++;
            for (size_t rank = 0; rank < n_ranks; rank++)
                assert_in_range(counts[rank], 700 / n_ranks, 1300 / n_ranks);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_item_once), cmocka_unit_test(test_regular_items)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
