/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/objects.h and of the JSON helpers below it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "fmt/objects.h"

static struct objects_count cpus[] = {{0, 1, 40}, {13, 1, UINT64_MAX}};
static int64_t offsets[] = {-16, 3, 4096, 5};
static struct objects_samples samples[] = {{2, 40}, {7, UINT64_MAX}};
static struct objects_latency latencies[] = {
    {.event = 0, .n_samples = 9, .cycles = 2000, .n_remote = 1, .remote_cycles = 900, .bins = {[1] = 8, [63] = 1}},
    {.event = 1, .n_samples = 1, .cycles = 4}};

static struct spread_entry entries[] = {{0, 3}, {56, UINT64_MAX}};
static uint32_t hashes[] = {0, 5, (1u << PATTERN_FINE_BITS) - 1};
static struct objects_lines lines = {.slots = {[0] = 9, [15] = UINT64_MAX},
                                     .n_bins = 16384,
                                     .n_lines = UINT64_MAX - 1,
                                     .n_spanned = 7,
                                     .n_followed = 6,
                                     .n_paced = 5,
                                     .hashes = hashes,
                                     .n_hashes = 3,
                                     .hash_bits = PATTERN_FINE_BITS};
static struct objects_touch touches[] = {
    {.event = 0,
     .node = 44,
     .n_samples = 3,
     .n_faults = 510,
     .first_ns = UINT64_C(1700000000000000001),
     .high_bytes = 4096},
    {.event = 1, .node = 46, .n_samples = 1, .n_faults = 1, .low_bytes = 1},
};
static struct objects_access accesses[] = {
    {.event = 0, .module = 65535, .ip = 0x401234, .n_samples = 12, .offsets = {.entries = entries, .n = 2}},
    {.event = 1, .module = 1, .ip = UINT64_MAX, .n_samples = 1},
    {.event = 1, .module = 1, .ip = 5, .n_samples = 1, .pattern = UINT64_MAX, .lines = &lines},
    {.event = 1, .module = 1, .ip = 5, .n_samples = 1, .pattern = 1}};

static struct reach reach = {
    .sum = {.shift = 63,
            .first = 8,
            .last = UINT64_MAX,
            .n_steps = 4,
            .n_forward = 3,
            .n_loads = 2,
            .n_stores = UINT64_MAX - 1,
            .bins = {[0] = 7, [63] = UINT64_MAX},
            .blocks = {{0x7f0000000000, 90}, {0x10, 1}}},
    .lines = {{.line = UINT64_MAX >> 6, .read_at = UINT64_MAX, .n_stores = 1, .slots = {[3] = 4, [15] = UINT64_MAX}},
              {.line = 1, .written_at = 1, .slots = {[0] = 2}}},
    .n_lines = 2};

static struct objects_file sample(struct objects_variable *variables, struct objects_event *event)
{
    variables[0] = (struct objects_variable){.node = 77,
                                             .kind = VAR_STATIC,
                                             .name = "grid\"\\\n\xc3\xa9",
                                             .n_blocks = 1,
                                             .bytes = 8388608,
                                             .cpus = cpus,
                                             .n_cpus = 2};
    variables[1] = (struct objects_variable){.node = 79,
                                             .kind = VAR_STACK,
                                             .name = "\xff path",
                                             .n_inexact = 2,
                                             .classes = {1, 2, 3, 4, 5, 6, 7, 8},
                                             .stack_offsets = offsets,
                                             .n_stack_offsets = 2,
                                             .samples = samples,
                                             .n_samples = 2,
                                             .latencies = latencies,
                                             .n_latencies = 2,
                                             .n_blocks_marked = 3,
                                             .bytes_marked = UINT64_MAX - 7,
                                             .accesses = accesses,
                                             .n_accesses = 4,
                                             .touches = touches,
                                             .n_touches = 2,
                                             .reach = &reach,
                                             .max_block_bytes = UINT64_C(1) << 60};
    *event = (struct objects_event){.metric = "EADDR (usec)",
                                    .name = "EADDR@1000",
                                    .scale = 0.1,
                                    .taken = 12,
                                    .overflows = 14,
                                    .fates = {[FATE_NAMED] = 11, [FATE_OWN_FAULT] = 1},
                                    .enabled_ns = UINT64_MAX,
                                    .running_ns = 5,
                                    .n_throttles = 6,
                                    .n_no_metric = 7,
                                    .n_truncated = 8,
                                    .n_collisions = 9,
                                    .has_data_source = 1,
                                    .has_address = 1,
                                    .is_user_only = 1};
    return (struct objects_file){.host = "node1",
                                 .exe = "/bin/app",
                                 .pid = 12,
                                 .tid = 13,
                                 .thread_id = 1,
                                 .rank = 2,
                                 .start_ns = 1594000000123456789u,
                                 .end_ns = 1594000001123456789u,
                                 .cpu_time_ns = 17,
                                 .plan = "EADDR: no PMU here",
                                 .skid = "{\"after\":0.98}",
                                 .state = "complete",
                                 .topology = NULL,
                                 .n_frames = 5,
                                 .unwind_stops = {4, 1},
                                 .min_bytes = 1024,
                                 .sample_bytes = 77,
                                 .mark_ns = UINT64_MAX - 5,
                                 .user_ns = 11,
                                 .system_ns = UINT64_MAX - 9,
                                 .note = "An allocator of its own.",
                                 .sharing_note = SHARING_NOTE "none.",
                                 .events = event,
                                 .n_events = 1,
                                 .variables = variables,
                                 .n_variables = 2};
}

static void check_same(const struct objects_file *file, const struct objects_file *again)
{
    assert_string_equal(again->skid, file->skid);
    assert_string_equal(again->sharing_note, file->sharing_note);
    assert_null(again->topology);
    assert_true(again->start_ns == file->start_ns && again->unwind_stops[1] == 1 && again->rank == 2);
    assert_int_equal(again->n_variables, 2);
    assert_string_equal(again->variables[0].name, file->variables[0].name);
    assert_string_equal(again->variables[1].name, file->variables[1].name);
    assert_true(again->variables[0].kind == VAR_STATIC && again->variables[1].kind == VAR_STACK);
    assert_memory_equal(again->variables[0].cpus, cpus, sizeof cpus);
    assert_memory_equal(again->variables[1].stack_offsets, offsets, sizeof offsets);
    assert_memory_equal(again->variables[1].classes, file->variables[1].classes, sizeof file->variables[1].classes);
    assert_true(again->variables[1].max_block_bytes == UINT64_C(1) << 60);
    assert_int_equal(again->version, 6);
    assert_true(again->user_ns == 11 && again->system_ns == UINT64_MAX - 9);
    assert_string_equal(again->note, "An allocator of its own.");
    assert_true(again->events[0].has_address == 1 && again->events[0].is_user_only == 1);
    assert_int_equal(again->variables[1].n_samples, 2);
    assert_memory_equal(again->variables[1].samples, samples, sizeof samples);
    assert_int_equal(again->variables[1].n_latencies, 2);
    assert_memory_equal(again->variables[1].latencies, latencies, sizeof latencies);
    assert_true(again->variables[1].n_blocks_marked == 3 && again->variables[1].bytes_marked == UINT64_MAX - 7);
    assert_true(again->min_bytes == 1024 && again->sample_bytes == 77 && again->mark_ns == UINT64_MAX - 5);
    assert_int_equal(again->variables[0].n_accesses, 0);
    assert_int_equal(again->variables[0].n_touches, 0);
    assert_int_equal(again->variables[1].n_touches, 2);
    assert_memory_equal(again->variables[1].touches, touches, sizeof touches);
    assert_int_equal(again->variables[1].n_accesses, 4);
    const struct objects_access *access = again->variables[1].accesses;
    assert_true(access[0].module == 65535 && access[0].ip == 0x401234 && access[0].n_samples == 12);
    assert_int_equal(access[0].offsets.n, 2);
    assert_memory_equal(access[0].offsets.entries, entries, sizeof entries);
    assert_true(access[1].event == 1 && access[1].ip == UINT64_MAX && access[1].offsets.n == 0);
    assert_true(!access[1].pattern && !access[1].lines && access[3].pattern == 1 && !access[3].lines);
    assert_true(access[2].pattern == UINT64_MAX && access[2].lines);
    struct objects_lines found = *access[2].lines;
    assert_memory_equal(found.hashes, hashes, sizeof hashes);
    found.hashes = hashes;
    assert_memory_equal(&found, &lines, sizeof lines);
    assert_null(again->variables[0].reach);
    assert_non_null(again->variables[1].reach);
    assert_memory_equal(again->variables[1].reach, &reach, sizeof reach);
    assert_int_equal(again->n_events, 1);
    assert_true(again->events[0].enabled_ns == UINT64_MAX && again->events[0].running_ns == 5);
    assert_true(again->events[0].n_throttles == 6 && again->events[0].n_no_metric == 7);
    assert_true(again->events[0].n_truncated == 8 && again->events[0].n_collisions == 9);
    assert_int_equal(again->events[0].has_data_source, 1);
    assert_true(again->events[0].scale == 0.1);
    assert_memory_equal(again->events[0].fates, file->events[0].fates, sizeof file->events[0].fates);
    assert_int_equal(again->n_placeholders, file->n_placeholders);
    assert_true(again->placeholders[0].ip == UINT64_MAX - 1);
    assert_string_equal(again->placeholders[0].name, "DATACENTRIC");
    assert_int_equal(again->n_kernel, 1);
    assert_true(again->kernel[0].start == UINT64_MAX - 2 && again->kernel[0].end == UINT64_MAX);
    assert_string_equal(again->kernel[0].name, "schedule");
}

static void test_reaches_add_up(void **state)
{
    (void)state;
    struct reach all = {0};
    struct reach_sum wide = {.shift = 10, .first = 3000, .last = 65535, .n_steps = 5, .bins = {[2] = 1, [63] = 2}};
    struct reach_sum narrow = {.shift = 2, .first = 1, .last = 255, .n_steps = 7, .bins = {[0] = 3, [63] = 4}};
    struct reach_sum none = {.shift = 20};
    reach_merge(&all.sum, &none);
    reach_merge(&all.sum, &wide);
    reach_merge(&all.sum, &narrow);
    reach_merge(&all.sum, &none);
    assert_true(all.sum.shift == 10 && all.sum.first == 1 && all.sum.last == 65535 && all.sum.n_steps == 12);
    assert_true(all.sum.bins[0] == 7 && all.sum.bins[2] == 1 && all.sum.bins[63] == 2);
    assert_int_equal(reach_total(&all.sum), 10);
    reach_widen(&all.sum, 16);
    assert_int_equal(all.sum.bins[0], 10);
    for (uint64_t i = 1; i <= 10; i++) {
        struct reach_line line = {.line = i, .slots = {[0] = 2 * i}};
        reach_add_block(&all.sum, i, i);
        reach_add_block(&all.sum, i, 1);
        reach_add_line(&all, &line);
    }
    assert_true(all.sum.blocks[0].address == 10 && all.sum.blocks[0].count == 11 && all.sum.blocks[3].address == 7);
    struct reach_line again = {.line = 4, .slots = {[4] = 100}};
    reach_add_line(&all, &again);
    assert_true(all.n_lines == REACH_LINES && all.lines[0].line == 4 && reach_line_total(&all.lines[0]) == 108);
    assert_true(all.lines[1].line == 10 && all.lines[REACH_LINES - 1].line == 3);
}

static void add_placeholder(struct objects_file *file, char *name)
{
    file->placeholders = calloc(1, sizeof *file->placeholders);
    assert_non_null(file->placeholders);
    file->placeholders[0].ip = UINT64_MAX - 1;
    file->placeholders[0].name = name;
    file->n_placeholders = 1;
}

static void test_round_trip(void **state)
{
    (void)state;
    char dir[] = "/tmp/fmt-objects-test-XXXXXX", path[64], name[] = "DATACENTRIC";
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a.objects", dir);
    struct objects_variable variables[2];
    struct objects_event event;
    struct objects_file file = sample(variables, &event), again = {0};
    struct error err = {0};
    char function[] = "schedule";
    struct objects_function kernel = {UINT64_MAX - 2, UINT64_MAX, function};
    file.kernel = &kernel;
    file.n_kernel = 1;
    add_placeholder(&file, name);
    for (int i = 0; i < 2; i++) /* the second time it is replaced */
        assert_int_equal(objects_write(&file, path, &err), 0);
    assert_int_equal(objects_read(path, &again, &err), 0);
    check_same(&file, &again);
    struct buf once = {0}, twice = {0};
    assert_int_equal(objects_write_memory(&file, &once, &err), 0);
    assert_int_equal(objects_write_memory(&again, &twice, &err), 0);
    assert_string_equal(once.data, twice.data);
    for (size_t len = 0; len + 2 < once.len_bytes; len++) {
        struct objects_file cut = {0};
        assert_int_equal(objects_read_memory(once.data, len, "cut", &cut, &err), ERR_FORMAT);
        assert_null(cut.variables);
    }
    buf_fini(&once);
    buf_fini(&twice);
    free(file.placeholders);
    objects_fini(&again);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* Replaces a word of a good file by another and expects a refusal with these words. */
static void expect_refusal(const char *good, const char *from, const char *to, const char *words)
{
    const char *place = strstr(good, from);
    assert_non_null(place);
    struct buf text = {0};
    buf_append(&text, good, (size_t)(place - good));
    buf_printf(&text, "%s%s", to, place + strlen(from));
    struct objects_file file = {0};
    struct error err = {0};
    assert_int_equal(objects_read_memory(text.data, text.len_bytes, "f.objects", &file, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "f.objects: "));
    assert_non_null(strstr(err.text, words));
    buf_fini(&text);
}

static void test_refusals(void **state)
{
    (void)state;
    struct objects_variable variables[2];
    struct objects_event event;
    struct objects_file file = sample(variables, &event);
    struct buf text = {0};
    assert_int_equal(objects_write_memory(&file, &text, NULL), 0);
    expect_refusal(text.data, "locus-objects", "something", "not a side file");
    expect_refusal(text.data, "\"pid\": 12", "\"pid\": 4294967296", "pid: an integer from 0 to 4294967295");
    expect_refusal(text.data, "\"pid\": 12", "\"pid\": -1", "pid: an integer");
    expect_refusal(text.data, "\"pid\": 12", "\"pid\": \"12x\"", "pid: an integer");
    expect_refusal(text.data, "\"pid\": 12", "\"pid\": 1, \"pid\": 12", "duplicate");
    expect_refusal(text.data, "\"named\"", "\"famed\"", "events[0]: famed");
    expect_refusal(text.data, "\"kind\": \"stack\"", "\"kind\": \"heapless\"", "variables[1]: kind");
    expect_refusal(text.data, "[[1, 8], [63, 1]]", "[[1, 8], [64, 1]]", "variables[1]: latencies");
    expect_refusal(text.data, "[[1, 8], [63, 1]]", "8", "variables[1]: latencies");
    expect_refusal(text.data, "[0, 44, 3,", "[0, 44, \"x\",", "variables[1]: touches");
    expect_refusal(text.data, "\"running_ns\": 5, ", "", "running_ns");
    expect_refusal(text.data, "\"classes\": [1, ", "\"classes\": [", "wrong length");
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_reaches_add_up),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
