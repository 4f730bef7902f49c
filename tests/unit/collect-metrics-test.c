/* SPDX-License-Identifier: BSD-3-Clause */
/* Hardware samples from arenas made by hand to files: every metric exactly, in both trees, with periods that differ,
 * counters that were shared and events that bring weights; the side file keeps what was really counted. */
#include <stdio.h>
#include <string.h>

#include "arena-maker.h"
#include "fmt/hpcrun.h"
#include "fmt/log.h"

enum { LOADS = CPUTIME + 1, STORES, FREQUENT };

#define BIT(metric) (1u << (metric))

static struct arena_hit *make_access(struct maker *maker, const struct paths *p, unsigned event, uint64_t var,
                                     uint32_t metrics, uint64_t count, uint64_t latency)
{
    struct arena_hit *hit = make_hit(maker, p->ref, p->leaf, event, HIT_KERNEL_ADDR, var, count, 0);
    hit->metrics = metrics;
    atomic_store(&hit->latency, latency);
    return hit;
}

static void make_sketch(struct maker *maker, const struct paths *p, unsigned event, uint64_t var, unsigned bin,
                        uint32_t count)
{
    uint32_t ref;
    struct arena_sketch *sketch = make_record(maker, p->ref, ARENA_SKETCHES, sizeof *sketch, &ref);
    sketch->event = (uint8_t)event;
    sketch->var = var;
    atomic_store(&sketch->bins[bin], count);
}

static void make_events(struct maker *maker)
{
    uint32_t flags = EVENT_ADDRESS | EVENT_INTEGER | EVENT_DATA_SRC;
    make_arena(maker);
    make_event(maker, "mem-loads", "mem-loads", SOURCE_PMU_ADDR, flags, 1000);
    make_event(maker, "mem-stores", "mem-stores", SOURCE_PMU_ADDR, flags, 1500);
    make_event(maker, "ibs_op", "ibs_op", SOURCE_PMU_ADDR, flags | EVENT_WEIGHTED, 1);
    maker->header->events[FREQUENT].attr.freq = 1;
}

/* Two threads load and store a heap block and a static variable; the second one's loads were counted a third of the
 * time. */
static void make_accesses(struct maker *maker, struct paths p[2])
{
    make_events(maker);
    p[0] = make_paths(maker, 0);
    p[1] = make_paths(maker, 1);
    uint64_t heap = var_key(VAR_HEAP, 0, p[0].alloc), grid = var_key(VAR_STATIC, 1, 2);
    (void)make_hit(maker, p[0].ref, p[0].alloc, HIT_EVENT_ALLOC, 0, 0, 4, 8192);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t load = BIT(MEM_LOAD), store = BIT(MEM_STORE);
        (void)make_access(maker, &p[i], LOADS, heap, load | BIT(MEM_LOAD_L1), 40, 200);
        (void)make_access(maker, &p[i], LOADS, heap, load | BIT(MEM_DRAM_REMOTE) | BIT(MEM_LOAD_EXCLUSIVE), 5, 4000);
        (void)make_access(maker, &p[i], LOADS, grid, load | BIT(MEM_DRAM_LOCAL) | BIT(MEM_LOCKED), 7, 2100);
        (void)make_access(maker, &p[i], LOADS, 0, 0, 3, 0); /* nothing told, not even an address */
        (void)make_access(maker, &p[i], STORES, grid, store | BIT(MEM_STORE_L1_HIT) | BIT(MEM_LOCKED), 2, 0);
        (void)make_hit(maker, p[i].ref, p[i].leaf, FAULTS, HIT_KERNEL_ADDR, heap, 9, 0);
        make_sketch(maker, &p[i], LOADS, heap, 5, 40);
        make_sketch(maker, &p[i], LOADS, heap, 35, 5);
        make_sketch(maker, &p[i], LOADS, grid, 29, 7);
        make_sketch(maker, &p[i], LOADS, grid, 0, 99); /* no latency told */
        take(&p[i], LOADS, 55);
        take(&p[i], STORES, 2);
        atomic_store(&p[i].thread->enabled_ns[LOADS], 3000);
        atomic_store(&p[i].thread->running_ns[LOADS], i ? 1000 : 3000);
        atomic_store(&p[i].thread->n_throttles[LOADS], i);
        atomic_store(&p[i].thread->n_no_metric[LOADS], 3);
        atomic_store(&p[i].thread->n_truncated[LOADS], 4);
        atomic_store(&p[i].thread->n_collisions[LOADS], 5);
    }
}

/* The value word and the period that the profile states. */
static void expect_raw(const struct hpcrun_profile *profile, size_t node, const char *metric, uint64_t raw,
                       uint64_t period)
{
    int m = find_metric(profile, metric);
    if (m < 0)
        fail_msg("no metric %s", metric);
    if (profile->values[node * profile->n_metrics + (size_t)m] != raw || profile->metrics[m].period != period)
        fail_msg("%s is %llu x %llu", metric,
                 (unsigned long long)profile->values[node * profile->n_metrics + (size_t)m],
                 (unsigned long long)profile->metrics[m].period);
    assert_int_equal(profile->metrics[m].flags[2], HPCRUN_VALUE_INT);
}

static size_t ordinary_leaf(const struct hpcrun_profile *profile, size_t base)
{
    size_t work = child(profile, child(profile, base, "/bin/app", 0x1105), "/bin/app", 0x1205);
    return child(profile, work, "/bin/app", 0x1310);
}

static size_t heap_leaf(const struct hpcrun_profile *profile)
{
    size_t dynamic = placeholder(profile, placeholder(profile, 0, PLACEHOLDER_ROOT), PLACEHOLDER_DYNAMIC);
    size_t heap = child(profile, child(profile, dynamic, "/bin/app", 0x1105), "/bin/app", 0x1420);
    return ordinary_leaf(profile, placeholder(profile, heap, PLACEHOLDER_ACCESS));
}

static size_t grid_leaf(const struct hpcrun_profile *profile)
{
    size_t root = placeholder(profile, 0, PLACEHOLDER_ROOT);
    return ordinary_leaf(profile, child(profile, placeholder(profile, root, PLACEHOLDER_STATIC), "/bin/app", 0x9201));
}

static const char *name_of(enum mem_metric metric)
{
    return mem_metric_row(metric)->name;
}

/* Both trees hold the same sum of every metric that is no size. */
static void expect_equal_trees(const struct hpcrun_profile *profile)
{
    for (size_t m = 0; m < profile->n_metrics; m++) {
        double data, code;
        totals(profile, profile->metrics[m].name, &data, &code);
        if (strcmp(profile->metrics[m].name, "Size (byte)") != 0 && (data != code || code <= 0))
            fail_msg("%s: %f of data, %f of code", profile->metrics[m].name, data, code);
    }
}

static void expect_profile(const struct hpcrun_profile *profile, uint64_t loads)
{
    size_t leaf = ordinary_leaf(profile, 0), heap = heap_leaf(profile), grid = grid_leaf(profile);
    uint64_t unit = loads == 1000 ? 500 : 1500; /* what 1000 and 1500, or 3000 and 1500 have in common */
    expect_raw(profile, leaf, "mem-loads", 55, loads);
    expect_raw(profile, leaf, name_of(MEM_LOAD), 52, loads);
    expect_raw(profile, heap, name_of(MEM_LOAD), 45, loads);
    expect_raw(profile, grid, name_of(MEM_LOAD), 7, loads);
    expect_raw(profile, heap, name_of(MEM_LOAD_L1), 40, loads);
    expect_raw(profile, heap, name_of(MEM_DRAM_REMOTE), 5, loads);
    expect_raw(profile, heap, name_of(MEM_LOAD_EXCLUSIVE), 5, loads);
    expect_raw(profile, grid, name_of(MEM_DRAM_LOCAL), 7, loads);
    expect_raw(profile, leaf, name_of(MEM_STORE), 2, 1500);
    expect_raw(profile, leaf, name_of(MEM_STORE_L1_HIT), 2, 1500);
    expect_raw(profile, leaf, name_of(MEM_LOCKED), 7 * loads / unit + 2 * 1500 / unit, unit);
    expect_raw(profile, leaf, MEM_LATENCY_NAME, 6300, loads);
    expect_raw(profile, heap, MEM_LATENCY_NAME, 4200, loads);
    expect_raw(profile, heap, MEM_REMOTE_LATENCY_NAME, 4000, loads);
    expect_raw(profile, leaf, "FAULTS", 9, 1);
    assert_int_equal(profile->n_metrics, 14);
    assert_true(find_metric(profile, name_of(MEM_HITM_REMOTE)) < 0 && find_metric(profile, "EADDR (usec)") < 0);
    expect_equal_trees(profile);
}

static void test_counts(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_accesses(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    for (unsigned thread = 0; thread < 2; thread++) {
        struct hpcrun_profile profile = read_profile(&maker, thread);
        expect_profile(&profile, thread ? 3000 : 1000);
        const char *const shared[] = {"mem-loads", "MEM-Load", "MEM-Locked", MEM_LATENCY_NAME};
        for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
            assert_int_equal(profile.metrics[find_metric(&profile, shared[i])].is_multiplexed, thread);
        assert_int_equal(profile.metrics[find_metric(&profile, "MEM-Store")].is_multiplexed, 0);
        assert_int_equal(profile.metrics[find_metric(&profile, "mem-loads")].n_samples, 55);
        assert_int_equal(profile.metrics[find_metric(&profile, "MEM-Locked")].n_samples, 9);
        assert_true(profile.metrics[find_metric(&profile, "mem-loads")].mean_period == (thread ? 3000 : 1000));
        const char *description = profile.metrics[find_metric(&profile, "DRAM-miss-to-rmt")].description;
        assert_non_null(strstr(description, "Load-miss-to-rmt-DRAM: "));
        hpcrun_fini(&profile);
    }
    free_arena(&maker);
}

static uint64_t samples_of(const struct objects_variable *variable, const struct hpcrun_profile *profile,
                           const char *metric)
{
    for (size_t i = 0; i < variable->n_samples; i++)
        if ((int)variable->samples[i].metric == find_metric(profile, metric))
            return variable->samples[i].count;
    return 0;
}

/* The second thread's side file: counts are not scaled there. */
static void test_side_file(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_accesses(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct hpcrun_profile profile = read_profile(&maker, 1);
    struct objects_file file = read_objects(&maker, 1);
    const struct objects_variable *heap = variable_of(&file, VAR_HEAP, NULL);
    const struct objects_variable *grid = variable_of(&file, VAR_STATIC, "grid");
    assert_int_equal(samples_of(heap, &profile, "mem-loads"), 45);
    assert_int_equal(samples_of(heap, &profile, "MEM-Load-L1hit"), 40);
    assert_int_equal(samples_of(heap, &profile, "FAULTS"), 9);
    assert_int_equal(samples_of(heap, &profile, "MEM-Store"), 0);
    assert_int_equal(samples_of(grid, &profile, "MEM-Locked"), 9);
    assert_int_equal(samples_of(grid, &profile, MEM_LATENCY_NAME), 7);
    assert_int_equal(samples_of(variable_of(&file, VAR_NONE, NULL), &profile, "mem-loads"), 3);
    assert_int_equal(heap->n_latencies, 1);
    const struct objects_latency *latency = heap->latencies;
    assert_true(latency->event == LOADS && latency->n_samples == 45 && latency->cycles == 4200);
    assert_true(latency->n_remote == 5 && latency->remote_cycles == 4000);
    assert_true(latency->bins[5] == 40 && latency->bins[35] == 5 && latency->bins[6] == 0);
    assert_true(grid->n_latencies == 1 && grid->latencies[0].bins[29] == 7 && grid->latencies[0].bins[0] == 0);
    const struct objects_event *event = &file.events[LOADS];
    assert_true(event->enabled_ns == 3000 && event->running_ns == 1000 && event->n_throttles == 1);
    assert_true(event->n_truncated == 4 && event->n_collisions == 5);
    assert_true(event->n_no_metric == 3 && event->has_data_source && !file.events[FAULTS].has_data_source);
    hpcrun_fini(&profile);
    objects_fini(&file);
    free_arena(&maker);
}

static void test_log(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    struct log_summary summary = {0};
    struct error error = {0};
    make_accesses(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    char *path = path_of_file(&maker, 0, "log");
    assert_int_equal(log_read(path, &summary, &error), 0);
    const struct log_event *event = log_event_named(&summary, "mem-loads");
    assert_true(event->enabled_ns == 6000 && event->running_ns == 4000);
    assert_true(event->n_throttles == 1 && event->n_no_metric == 6 && event->taken == 110);
    assert_true(event->n_truncated == 8 && event->n_collisions == 10);
    log_fini(&summary);
    free(path);
    free_arena(&maker);
}

/* Samples that bring weights: metrics are sums of weights, latency is times the mean weight, and all of it is scaled
 * when the counter was shared. */
static void test_weights(void **state)
{
    (void)state;
    struct maker maker;
    make_events(&maker);
    struct paths p = make_paths(&maker, 0);
    uint64_t grid = var_key(VAR_STATIC, 1, 2);
    struct arena_hit *hit = make_access(&maker, &p, FREQUENT, grid, BIT(MEM_LOAD) | BIT(MEM_REMOTE_HIT), 4, 1000);
    atomic_store(&hit->weight, 10000);
    hit = make_access(&maker, &p, FREQUENT, grid, BIT(MEM_STORE), 2, 0);
    atomic_store(&hit->weight, 333);
    take(&p, FREQUENT, 6);
    atomic_store(&p.thread->enabled_ns[FREQUENT], 3000);
    atomic_store(&p.thread->running_ns[FREQUENT], 2000);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct hpcrun_profile profile = read_profile(&maker, 0);
    size_t leaf = ordinary_leaf(&profile, 0);
    expect_raw(&profile, leaf, "ibs_op", 15500, 1); /* 15000 and 499.5 */
    expect_raw(&profile, leaf, "MEM-Load", 15000, 1);
    expect_raw(&profile, leaf, "MEM-rmt-hit", 15000, 1);
    expect_raw(&profile, leaf, "MEM-Store", 500, 1);
    expect_raw(&profile, leaf, MEM_LATENCY_NAME, 3750000, 1); /* 1000 cycles, each sample for 2500 * 1.5 ops */
    expect_raw(&profile, leaf, MEM_REMOTE_LATENCY_NAME, 3750000, 1);
    int m = find_metric(&profile, "ibs_op");
    assert_true(profile.metrics[m].is_frequency && profile.metrics[m].is_multiplexed);
    assert_true(profile.metrics[m].mean_period > 2583 && profile.metrics[m].mean_period < 2584);
    expect_equal_trees(&profile);
    struct objects_file file = read_objects(&maker, 0);
    assert_int_equal(samples_of(variable_of(&file, VAR_STATIC, "grid"), &profile, "ibs_op"), 6);
    objects_fini(&file);
    hpcrun_fini(&profile);
    free_arena(&maker);
}

/* Only events that tell about their accesses have these metrics, whatever their hits hold. */
static void test_other_events(void **state)
{
    (void)state;
    struct maker maker;
    make_events(&maker);
    struct paths p = make_paths(&maker, 0);
    (void)make_access(&maker, &p, FAULTS, var_key(VAR_STATIC, 1, 2), 0xffffffff, 4, 1000);
    (void)make_access(&maker, &p, LOADS, var_key(VAR_STATIC, 1, 2), 0xf8000000, 4, 0);
    take(&p, FAULTS, 4);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct hpcrun_profile profile = read_profile(&maker, 0);
    assert_int_equal(profile.n_metrics, 3);
    struct objects_file file = read_objects(&maker, 0);
    assert_int_equal(variable_of(&file, VAR_STATIC, "grid")->n_latencies, 0);
    objects_fini(&file);
    hpcrun_fini(&profile);
    free_arena(&maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),  cmocka_unit_test(test_side_file),    cmocka_unit_test(test_log),
        cmocka_unit_test(test_weights), cmocka_unit_test(test_other_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
