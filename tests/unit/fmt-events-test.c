/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/events.h: round trips through bytes and JSON, every truncation, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "fmt/events.h"

static struct events_source sources[] = {{1, (char *)(uintptr_t) "EADDR@1000"},
                                         {EVENTS_NO_METRIC, (char *)(uintptr_t) "FAULTS"}};
static struct events_access accesses[] = {
    {.node = 13, .variable = 22},
    {.node = 27, .variable = 46, .metrics = 1u << 25, .source = 1, .class = 7, .flags = 1}};
static struct events_record records[] = {
    {.t_ns = 5, .access = 1, .lat_cycles = UINT32_MAX, .offset = 8192, .cpu = 65535},
    {.t_ns = UINT64_MAX, .access = 0, .offset = EVENTS_NO_OFFSET}};

static struct events_file sample_file(void)
{
    return (struct events_file){.version = EVENTS_VERSION,
                                .wall_ns = 1594000000123456789,
                                .wall_at_end_ns = -1,
                                .stride = 8,
                                .n_samples = 100,
                                .n_lost = 3,
                                .sources = sources,
                                .accesses = accesses,
                                .records = records,
                                .n_sources = 2,
                                .n_accesses = 2,
                                .n_records = 2};
}

static void expect_same(struct events_file *again, const struct buf *bytes)
{
    struct buf twice = {0};
    struct error err = {0};
    assert_int_equal(again->n_records, 2);
    assert_int_equal(events_thinned(again), 95);
    assert_true(again->wall_at_end_ns == -1 && again->records[0].offset == 8192 && again->records[0].cpu == 65535);
    assert_string_equal(again->sources[1].name, "FAULTS");
    assert_true(again->accesses[1].metrics == 1u << 25 && again->accesses[1].flags == EVENTS_INEXACT);
    assert_int_equal(events_write(again, &twice, &err), 0);
    assert_int_equal(twice.len_bytes, bytes->len_bytes);
    assert_memory_equal(twice.data, bytes->data, bytes->len_bytes);
    buf_fini(&twice);
    events_fini(again);
}

static void test_round_trips(void **state)
{
    (void)state;
    struct events_file file = sample_file(), again = {0};
    struct buf bytes = {0}, text = {0};
    struct error err = {0};
    assert_int_equal(events_write(&file, &bytes, &err), 0);
    assert_int_equal(events_read_memory(bytes.data, bytes.len_bytes, "e", &again, &err), 0);
    expect_same(&again, &bytes);
    events_put_json(&file, &text);
    struct json_take take = {.name = "j", .err = &err};
    json_t *root = json_take_parse(&take, text.data, text.len_bytes);
    assert_int_equal(events_take_json(&take, root, &again), 0);
    expect_same(&again, &bytes);
    json_decref(root);
    buf_fini(&text);
    for (size_t len = 0; len < bytes.len_bytes; len++) {
        assert_int_equal(events_read_memory(bytes.data, len, "e", &again, &err), ERR_FORMAT);
        assert_non_null(strstr(err.text, "e: offset "));
        assert_null(again.records);
    }
    buf_fini(&bytes);
}

/* Byte `at` of the file becomes value: it is refused with these words. */
static void expect_refusal(const struct buf *bytes, size_t at, char value, int code, const char *words)
{
    struct events_file file = {0};
    struct error err = {0};
    char old = bytes->data[at];
    bytes->data[at] = value;
    assert_int_equal(events_read_memory(bytes->data, bytes->len_bytes, "e", &file, &err), code);
    assert_non_null(strstr(err.text, words));
    bytes->data[at] = old;
}

static void test_refusals(void **state)
{
    (void)state;
    struct events_file file = sample_file(), again = {0};
    struct buf bytes = {0};
    struct error err = {0};
    assert_int_equal(events_write(&file, &bytes, &err), 0);
    size_t access = bytes.len_bytes - 2 * 24 - 2 * 16, record = bytes.len_bytes - 2 * 24;
    expect_refusal(&bytes, 0, 'H', ERR_FORMAT, "not a log of samples");
    expect_refusal(&bytes, 19, '7', ERR_UNSUPPORTED, "version '07.00'");
    expect_refusal(&bytes, 23, 'l', ERR_FORMAT, "byte order 0x6c");
    expect_refusal(&bytes, 47, 6, ERR_FORMAT, "stride 6 is not a power of two");
    expect_refusal(&bytes, 66, 2, ERR_RANGE, "514 events are more than 256");
    expect_refusal(&bytes, 68, 0x7f, ERR_FORMAT, "accesses");
    expect_refusal(&bytes, 72, 0x7f, ERR_FORMAT, "samples");
    expect_refusal(&bytes, access + 12, 2, ERR_FORMAT, "access 0 names event 2 of 2");
    expect_refusal(&bytes, access + 13, 8, ERR_FORMAT, "unknown class");
    expect_refusal(&bytes, access + 15, 2, ERR_FORMAT, "unknown class");
    expect_refusal(&bytes, record + 11, 2, ERR_FORMAT, "sample 0 names access 2 of 2");
    buf_append(&bytes, "x", 1);
    assert_int_equal(events_read_memory(bytes.data, bytes.len_bytes, "e", &again, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "1 bytes follow the last sample"));
    buf_fini(&bytes);
    records[0].offset = EVENTS_NO_OFFSET + 1;
    assert_int_equal(events_write(&file, &bytes, &err), ERR_RANGE);
    records[0].offset = 8192;
    buf_fini(&bytes);
    assert_int_equal(events_read("/nowhere/x.events", &again, &err), ERR_IO);
}

/* Two hosts whose monotonic clocks have nothing in common: the same moments are the same on the axis of all. */
static void test_one_axis(void **state)
{
    (void)state;
    struct events_file a = {.wall_ns = 1594000000000000000}, b = {.wall_ns = 1593999999000000000};
    const struct events_record at_a = {.t_ns = 7000000123}, at_b = {.t_ns = 8000000123},
                               later_at_b = {.t_ns = 8000000124};
    assert_true(events_wall_ns(&a, &at_a) == events_wall_ns(&b, &at_b));
    assert_true(events_wall_ns(&a, &at_a) + 1 == events_wall_ns(&b, &later_at_b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_one_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
