/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling by bytes and of the bootstrap arena. Fixed seeds: the figures are the same in every run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "alloc-recorder.h"
#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"

static void test_weight_is_the_inverse_probability(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 16, 100, 1023, 4096, 100000, 10000000};
    struct sampling sampling;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sampling_seed_hook(&sampling, 42, 4096);
        double weight = 0;
        for (int tries = 0; tries < 10000000 && weight == 0; tries++)
            weight = sampling_weight_hook(&sampling, 4096, sizes[i]);
        double expected = -1 / expm1(-(double)sizes[i] / 4096);
        assert_true(fabs(weight - expected) <= 1e-9 * expected);
    }
    sampling_seed_hook(&sampling, 42, 4096);
    for (int tries = 0; tries < 100000; tries++)
        assert_true(sampling_weight_hook(&sampling, 4096, 0) == 0);
}

/* Per size: sum of weights against the true number of blocks, within four standard deviations of the estimator. */
static void test_weights_are_unbiased(void **state)
{
    (void)state;
    enum { SIZES = 5, N = 400000 };
    static const size_t sizes[SIZES] = {8, 64, 200, 512, 1000};
    double estimate[SIZES] = {0};
    struct sampling sampling;
    sampling_seed_hook(&sampling, 1, 4096);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < SIZES; k++)
            estimate[k] += sampling_weight_hook(&sampling, 4096, sizes[k]);
    for (int k = 0; k < SIZES; k++) {
        double p = -expm1(-(double)sizes[k] / 4096);
        double deviation = sqrt(N * (1 - p) / p);
        assert_true(fabs(estimate[k] - N) < 4 * deviation);
    }
}

static void test_distances_are_exponential(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct sampling sampling;
    double sum = 0, square_sum = 0;
    unsigned n_long = 0;
    sampling_seed_hook(&sampling, 7, 1000);
    for (int i = 0; i < N; i++) {
        double distance = sampling.until_bytes;
        assert_true(distance > 0);
        sum += distance;
        square_sum += distance * distance;
        n_long += distance > 1000 * log(2);
        (void)sampling_weight_hook(&sampling, 1000, (size_t)distance + 1);
    }
    assert_true(fabs(sum / N - 1000) < 4 * 1000 / sqrt(N));
    assert_true(fabs(square_sum / N - 2e6) < 4 * 2e6 * sqrt(5.0 / N));
    assert_true(fabs(n_long - N / 2.0) < 4 * sqrt(N / 4.0));
}

/* Through the wrappers, realloc included: the weights of the live blocks estimate their number. */
static void test_wrappers_sample_below_the_threshold(void **state)
{
    (void)state;
    enum { N = 20000, EVERY = 500 };
    struct recorder *recorder = recorder_connect(1024, 1);
    void *p = malloc(100);
    assert_int_equal(recorder->n_events, 1); /* mean distance 1 byte: everything is taken */
    assert_true(recorder_last(recorder, 0)->weight == 1);
    p = realloc(p, 200);
    assert_int_equal(recorder->n_events, 4);
    assert_int_equal(recorder_last(recorder, 1)->what, RECORD_RESIZE_DONE);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_ALLOC);
    assert_int_equal(recorder_last(recorder, 0)->n_bytes, 200);
    free(p);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RELEASE);
    recorder = recorder_connect(1024, 2000);
    sampling_seed_hook(&alloc_thread_hook()->sampling, 3, 2000);
    for (int i = 0; i < N; i++)
        free(malloc((size_t)(i % EVERY) + 1));
    assert_true(fabs(recorder->weight_sum - N) < 0.2 * N);
    assert_int_equal(recorder->n_inside, 0);
    alloc_wrap_connect(NULL, 0, 0);
}

static void test_boot_arena(void **state)
{
    (void)state;
    recorder_connect(1024, 0);
    char *p = boot_memalign_hook(256, 1000);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 256, 0);
    assert_true(boot_owns_hook(p));
    assert_int_equal(malloc_usable_size(p), 1000);
    strcpy(p, "kept");
    char *q = boot_realloc_hook(p, 2000);
    assert_string_equal(q, "kept");
    assert_null(boot_memalign_hook(24, 8));
    assert_int_equal(errno, EINVAL);
    assert_null(boot_calloc_hook(SIZE_MAX / 2, 3));
    assert_int_equal(errno, ENOMEM);
    /* The wrappers know these blocks for ever. */
    free(q);
    p = realloc(p, 5000);
    assert_false(boot_owns_hook(p));
    assert_string_equal(p, "kept");
    free(p);
}

/* The only memory that this part allocates: every request up to the last is served apart, the rest is refused. */
static void test_boot_arena_runs_out(void **state)
{
    (void)state;
    char *last = NULL;
    unsigned n_blocks = 0;
    for (char *p; (p = boot_calloc_hook(10, 100)) != NULL; last = p, n_blocks++) {
        assert_true(boot_owns_hook(p) && boot_owns_hook(p + 999));
        assert_true(!last || p >= last + 1000);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(p[i], 0);
        memset(p, 1, 1000);
    }
    assert_true(n_blocks > 40);
    assert_int_equal(errno, ENOMEM);
    assert_null(boot_malloc_hook(2000));
    assert_null(boot_realloc_hook(last, 2000));
    assert_int_equal(last[999], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight_is_the_inverse_probability),
        cmocka_unit_test(test_weights_are_unbiased),
        cmocka_unit_test(test_distances_are_exponential),
        cmocka_unit_test(test_wrappers_sample_below_the_threshold),
        cmocka_unit_test(test_boot_arena),
        cmocka_unit_test(test_boot_arena_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
