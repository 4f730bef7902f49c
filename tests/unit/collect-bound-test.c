/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a bounded size: whatever a process recorded, they stay below the limit, their sums are those of the
 * unbounded files, what costs most is still there, and the log says what is not. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "arena-maker.h"
#include "fmt/events.h"
#include "fmt/log.h"
#include "fmt/trace.h"

#define MAX_BYTES ((uint64_t)256 << 10)
#define FUNCTIONS 60
#define LEAVES 60
#define TRACED 6000

/* main -> 60 functions -> 60 leaves each, all different, on 60 variables; the last leaf costs most. */
static void make_wide(struct maker *maker, unsigned id)
{
    struct paths p = make_paths(maker, id);
    uint32_t leaf = p.leaf;
    const struct arena_hit *hit = NULL;
    uint64_t n_taken = 0;
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        uint32_t function = make_node(maker, p.ref, ARENA_NODES, p.main, APP_BIAS + 0x10000 * (f + 1), maker->app);
        uint32_t block = make_node(maker, p.ref, ARENA_ALLOC_NODES, p.alloc, APP_BIAS + 0x100 * (f + 1), maker->app);
        (void)make_hit(maker, p.ref, block, HIT_EVENT_ALLOC, 0, 0, 1, 4096);
        for (unsigned l = 0; l < LEAVES; l++) {
            bool is_hot = f == FUNCTIONS - 1 && l == LEAVES - 1;
            uint64_t count = is_hot ? 100000 : 1 + l % 3;
            leaf = make_node(maker, p.ref, ARENA_NODES, function, APP_BIAS + 0x10000 * (f + 1) + l, maker->app);
            hit = make_hit(maker, p.ref, leaf, EADDR, HIT_MEMORY, var_key(VAR_HEAP, 0, block), count, 0);
            n_taken += count;
            if (l % 2 == 0)
                make_place(maker, p.ref, var_key(VAR_HEAP, 0, block), EADDR, l, count);
        }
    }
    for (uint64_t i = 0; i < TRACED; i++)
        make_trace(maker, p.thread, p.ref, hit, 5000 + i, i);
    take(&p, EADDR, n_taken);
}

static uint64_t size_of_files(const char *directory)
{
    uint64_t sum = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        struct stat status;
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
            sum += (uint64_t)status.st_size;
    }
    (void)closedir(dir);
    return sum;
}

/* A message of the process's log that begins so; fails when there is none. */
static void expect_message(const struct maker *maker, const char *part, bool is_expected)
{
    struct log_summary summary = {0};
    struct error err;
    bool is_there = false;
    char *path = path_of_file(maker, 0, "log");
    assert_int_equal(log_read(path, &summary, &err), 0);
    for (size_t i = 0; i < summary.n_messages; i++)
        is_there |= strstr(summary.messages[i], part) != NULL;
    assert_int_equal(is_there, is_expected);
    log_fini(&summary);
    free(path);
}

static void make_measurement(struct maker *maker, uint64_t max_bytes)
{
    make_arena(maker);
    maker->header->trace = 1;
    make_wide(maker, 0);
    make_wide(maker, 1);
    struct collect_context context = context_of(maker);
    context.max_bytes = max_bytes;
    collect(maker, &context);
}

static double hottest(const struct hpcrun_profile *profile)
{
    double most = 0;
    for (size_t i = 0; i < profile->n_nodes; i++)
        if (value(profile, i, "EADDR (usec)") > most)
            most = value(profile, i, "EADDR (usec)");
    return most;
}

static void test_sums_stay(void **state)
{
    static const char *const metrics[] = {"EADDR (usec)", "Size (byte)"};
    (void)state;
    struct maker free_one, bounded;
    make_measurement(&free_one, 0);
    make_measurement(&bounded, MAX_BYTES);
    assert_true(size_of_files(free_one.dir) > 2 * MAX_BYTES);
    assert_true(size_of_files(bounded.dir) <= MAX_BYTES);
    assert_true(size_of_files(bounded.dir) > MAX_BYTES / 2);
    expect_message(&bounded, "left out, because the files of a process may have 262144 bytes", true);
    expect_message(&bounded, "nodes of call paths", true);
    expect_message(&bounded, "samples of the log", true);
    expect_message(&free_one, "left out", false);
    for (unsigned thread = 0; thread < 2; thread++) {
        struct hpcrun_profile whole = read_profile(&free_one, thread), part = read_profile(&bounded, thread);
        assert_true(part.n_nodes < whole.n_nodes / 2);
        for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
            double data[2], code[2];
            totals(&whole, metrics[m], &data[0], &code[0]);
            totals(&part, metrics[m], &data[1], &code[1]);
            assert_true(data[0] == data[1] && code[0] == code[1]);
            assert_true(data[0] > 0);
        }
        assert_true(hottest(&whole) == hottest(&part));
        hpcrun_fini(&whole);
        hpcrun_fini(&part);
    }
    free_arena(&free_one);
    free_arena(&bounded);
}

/* Every so manieth sample is there, from the first to the last, in both files. */
static void test_log_is_thinned(void **state)
{
    (void)state;
    struct maker maker;
    struct error err;
    make_measurement(&maker, MAX_BYTES);
    for (unsigned thread = 0; thread < 2; thread++) {
        struct trace_file trace = {0};
        struct events_file log = {0};
        char text[32], *path = path_of_file(&maker, thread, "hpctrace");
        struct hpcrun_profile profile = read_profile(&maker, thread);
        assert_int_equal(trace_read(path, &trace, &err), 0);
        assert_true(trace.n_records > 10 && trace.n_records < TRACED);
        free(path);
        path = path_of_file(&maker, thread, "events");
        assert_int_equal(events_read(path, &log, &err), 0);
        assert_int_equal(log.n_records, trace.n_records);
        assert_int_equal(log.n_samples, TRACED);
        assert_int_equal(log.n_records, (TRACED + log.stride - 1) / log.stride);
        assert_int_equal(events_thinned(&log), TRACED - log.n_records);
        for (size_t i = 0; i < trace.n_records; i++) {
            assert_int_equal(trace.records[i].time, 5000 + i * log.stride);
            assert_int_equal(log.records[i].offset, i * log.stride);
            size_t node = 0;
            while (node < profile.n_nodes && (uint32_t)abs(profile.nodes[node].id) != trace.records[i].node)
                node++;
            assert_true(node < profile.n_nodes);
        }
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)trace.records[trace.n_records - 1].time);
        assert_string_equal(hpcrun_pair_value(&profile, "trace-max-time"), text);
        trace_fini(&trace);
        events_fini(&log);
        hpcrun_fini(&profile);
        free(path);
    }
    free_arena(&maker);
}

/* Too many threads even for their heads: the first ones are written, and have the samples of the others. */
static void test_threads_are_left_out(void **state)
{
    (void)state;
    struct maker maker;
    uint64_t n_taken = 0, n_dropped = 0;
    make_arena(&maker);
    for (unsigned id = 0; id < 16; id++) {
        struct paths p = make_paths(&maker, id);
        (void)make_hit(&maker, p.ref, p.leaf, EADDR, HIT_LOST, 0, 10, 0);
        take(&p, EADDR, 10);
    }
    struct collect_context context = context_of(&maker);
    context.max_bytes = MAX_BYTES;
    collect(&maker, &context);
    assert_true(size_of_files(maker.dir) <= MAX_BYTES);
    expect_message(&maker, "threads, whose samples count as dropped-max-size", true);
    for (unsigned thread = 0; thread < 13; thread++) {
        struct objects_file file = read_objects(&maker, thread);
        n_taken += file.events[EADDR].taken;
        n_dropped += file.events[EADDR].fates[FATE_DROP_MAX_SIZE];
        objects_fini(&file);
    }
    assert_int_equal(n_taken, 160);
    assert_int_equal(n_dropped, 30);
    free_arena(&maker);
}

/* Variables are less than their values: the lists go first, then whole rows. */
static void test_side_file_is_bounded(void **state)
{
    (void)state;
    struct maker maker;
    make_measurement(&maker, MAX_BYTES);
    struct objects_file file = read_objects(&maker, 0);
    assert_true(file.n_variables > 0 && file.n_variables < FUNCTIONS + 2);
    bool is_hot = false;
    for (size_t i = 0; i < file.n_variables; i++)
        for (size_t k = 0; k < file.variables[i].n_samples; k++)
            is_hot |= file.variables[i].samples[k].count >= 100000;
    assert_true(is_hot);
    objects_fini(&file);
    free_arena(&maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_stay),
        cmocka_unit_test(test_log_is_thinned),
        cmocka_unit_test(test_threads_are_left_out),
        cmocka_unit_test(test_side_file_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
