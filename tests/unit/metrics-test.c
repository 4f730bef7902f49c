/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived metrics: percentiles from histograms against exact ones, also merged from several; ratios of nothing; which
 * metric counts instructions; names by which users may ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "analysis/metrics.h"
#include "fmt/hpcrun.h"

#define SAMPLES 4000

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static int compare_words(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The value that at least percent of the sorted samples do not exceed. */
static uint64_t exact_percentile(const uint64_t *sorted, size_t n, double percent)
{
    size_t rank = (size_t)ceil((double)n * percent / 100);
    return sorted[rank ? rank - 1 : 0];
}

static void expect_same_bin(const struct latency_sum *latency, const uint64_t *sorted, size_t n, double percent)
{
    uint64_t exact = exact_percentile(sorted, n, percent);
    double estimate = metrics_percentile(latency, percent);
    if (mem_latency_bin_sig(exact) != mem_latency_bin_sig((uint64_t)estimate))
        fail_msg("%g %% of %zu: %g, exactly %llu", percent, n, estimate, (unsigned long long)exact);
}

/* Latencies of all magnitudes, spread over the threads and events of one variable. */
static void test_percentiles(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u, *values = calloc(SAMPLES, sizeof *values);
    assert_non_null(values);
    for (size_t n = 1; n <= SAMPLES; n = n * 3 + 1) {
        struct variable variable = {0};
        struct latency_sum sum = {0};
        for (size_t i = 0; i < n; i++) {
            values[i] = 1 + (next_random(&random) >> 40) % (1u << (1 + next_random(&random) % 22));
            struct variable_latency one = {.event = (uint32_t)(i % 3), .sum = {.n_samples = 1, .cycles = values[i]}};
            one.sum.bins[mem_latency_bin_sig(values[i])] = 1;
            assert_true(metrics_merge_latencies(&variable, &one, 1));
        }
        assert_int_equal(variable.n_latencies, n < 3 ? n : 3);
        metrics_add_latency(variable.latencies, variable.n_latencies, UINT32_MAX, &sum);
        assert_int_equal(sum.n_samples, n);
        qsort(values, n, sizeof *values, compare_words);
        for (double percent = 1; percent <= 100; percent += 0.5)
            expect_same_bin(&sum, values, n, percent);
        struct latency_sum part = {0};
        metrics_add_latency(variable.latencies, variable.n_latencies, 1, &part);
        assert_int_equal(part.n_samples, (n + 1) / 3);
        free(variable.latencies);
    }
    free(values);
    const struct latency_sum none = {0};
    assert_true(isnan(metrics_percentile(&none, 95)));
}

static double derived(const char *name, const struct metric_input *input)
{
    for (size_t i = 0; metrics_row(i); i++)
        if (strcmp(metrics_row(i)->name, name) == 0)
            return metrics_row(i)->value(metrics_row(i), input);
    fail_msg("no derived metric %s", name);
    return 0;
}

static void test_ratios(void **state)
{
    (void)state;
    struct metric_input input = {.counts = {[MEM_LOAD] = 1000,
                                            [MEM_LOAD_L1] = 800,
                                            [MEM_LOAD_L2] = 100,
                                            [MEM_LLC_HIT] = 20,
                                            [MEM_HITM_LOCAL] = 5,
                                            [MEM_DRAM_LOCAL] = 30,
                                            [MEM_DRAM_REMOTE] = 20,
                                            [MEM_REMOTE_HIT] = 6,
                                            [MEM_HITM_REMOTE] = 4},
                                 .latency_cycles = 50000,
                                 .remote_cycles = 20000,
                                 .work = 4000};
    assert_true(derived("l1_percent", &input) == 80);
    assert_true(derived("l2_percent", &input) == 50);
    assert_true(derived("llc_percent", &input) == 25);
    assert_true(derived("llc_misses", &input) == 60);
    assert_true(derived("dram_local_percent", &input) == 50);
    assert_true(derived("remote_percent", &input) == 50);
    assert_true(derived("remote_latency_percent", &input) == 40);
    assert_true(derived("remote_cost", &input) == 5);
    assert_true(derived("dtlb_walk_percent", &input) == 0);
    const struct metric_input nothing = {0};
    for (size_t i = 0; metrics_row(i); i++) {
        double value = metrics_row(i)->value(metrics_row(i), &nothing);
        assert_true(isnan(value) || (value == 0 && strcmp(metrics_row(i)->name, "llc_misses") == 0));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(metrics_row(i)->name, metrics_row(j)->name);
        assert_true(metrics_row(i)->description && (!metrics_row(i)->title || strlen(metrics_row(i)->title) <= 5));
    }
}

static void test_names(void **state)
{
    (void)state;
    const char *const instructions[] = {"instructions",     "instructions:u",     "cpu/instructions/u",
                                        "INST_RETIRED.ANY", "INST_RETIRED:ANY_P", "skx::INST_RETIRED",
                                        "PM_INST_CMPL"};
    const char *const others[] = {"MEM_INST_RETIRED.ALL_LOADS", "mem-loads",
                                  "cpu/mem-loads,ldlat=30/P",   "",
                                  "branch-instructions",        "skx::MEM_INST_RETIRED:ALL_LOADS"};
    char buffer[64], alias[] = "DRAM-miss-to-rmt";
    struct metric metric[2] = {{.name = buffer}, {.name = alias}};
    const struct model model = {.metrics = metric, .n_metrics = 2};
    for (size_t i = 0; i < sizeof instructions / sizeof instructions[0]; i++)
        assert_int_equal(metrics_instructions((strcpy(buffer, instructions[i]), &model)), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(metrics_instructions((strcpy(buffer, others[i]), &model)), -1);
    assert_int_equal(model_choose_metric(&model, "Load-miss-to-rmt-DRAM"), 1);
    assert_int_equal(model_choose_metric(&model, "DRAM-miss-to-rmt"), 1);
    assert_int_equal(model_choose_metric(&model, "Load-miss-to-lcl-DRAM"), -1);
    assert_true(metrics_has_hardware(&model));
    assert_true(metrics_is_access(MEM_LATENCY_NAME) && !metrics_is_access("mem-loads"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
