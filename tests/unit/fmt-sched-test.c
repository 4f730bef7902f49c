/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/sched.h: a file that is recorded, its way through bytes and JSON, every truncation, the limit, and
 * what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fmt/file.h"
#include "fmt/sched.h"

#define TEXT(text) ((char *)(uintptr_t)(text))

static const struct sched_head head = {.tier = SCHED_TIER_TRACEPOINTS,
                                       .wall_ns = -5,
                                       .limit_bytes = 4096,
                                       .n_cpus = 4,
                                       .pid = 4711,
                                       .online = TEXT("0-3"),
                                       .host = TEXT("host"),
                                       .boot_id = TEXT("boot"),
                                       .kernel = TEXT("6.1"),
                                       .why = TEXT("")};

static void add_events(struct sched_writer *writer, unsigned n)
{
    unsigned char payload[SCHED_SWITCH_BYTES];
    for (unsigned i = 0; i < n; i++) {
        const struct sched_switch what = {100 + i, SCHED_NO_TID, SCHED_OUT};
        const struct sched_event event = {
            .t_ns = 1000 + i, .cpu = (uint16_t)(i % 4), .kind = SCHED_SWITCH, .n_bytes = SCHED_SWITCH_BYTES};
        sched_switch_put(&what, payload);
        sched_writer_event(writer, &event, payload);
    }
}

/* A file with every kind of chunk, in *bytes. */
static void record(unsigned n_events, struct buf *bytes)
{
    char path[64];
    struct error err = {0};
    struct sched_writer writer;
    const struct sched_event raw = {.t_ns = 999, .cpu = 3, .kind = SCHED_RAW, .n_bytes = 12};
    (void)snprintf(path, sizeof path, "fmt-sched-test-%ld.sched", (long)getpid());
    (void)unlink(path);
    assert_int_equal(sched_writer_open(&writer, path, &head, &err), 0);
    sched_writer_format(&writer, &(struct sched_format){0x3231, TEXT("sched"), TEXT("sched_switch"), TEXT("name: x")});
    sched_writer_task(&writer, &(struct sched_task){1, 100, 99, true, TEXT("task")});
    sched_writer_event(&writer, &raw, "123456789012");
    add_events(&writer, n_events);
    sched_writer_lost(&writer, &(struct sched_lost){1500, 7, 2});
    sched_writer_total(&writer, &(struct sched_total){.t_ns = 2000, .run_ns = 3, .tid = 100, .has_schedstat = true});
    assert_int_equal(sched_writer_close(&writer, &err), 0);
    assert_int_equal(sched_writer_open(&writer, path, &head, &err), ERR_IO);
    assert_int_equal(file_read(path, bytes, &err), 0);
    (void)unlink(path);
}

static void expect_bytes(struct sched_file *file, const struct buf *bytes)
{
    struct buf again = {0};
    struct error err = {0};
    assert_int_equal(sched_write(file, &again, &err), 0);
    assert_int_equal(again.len_bytes, bytes->len_bytes);
    assert_memory_equal(again.data, bytes->data, bytes->len_bytes);
    buf_fini(&again);
    sched_fini(file);
}

static void test_round_trips(void **state)
{
    (void)state;
    struct buf bytes = {0}, text = {0};
    struct error err = {0};
    struct sched_file file = {0};
    struct sched_switch what;
    record(20, &bytes);
    assert_int_equal(sched_read_memory(bytes.data, bytes.len_bytes, "s", &file, &err), 0);
    assert_int_equal(file.n_events, 21);
    assert_true(file.has_end && file.end.n_events == 21 && file.end.n_lost == 7 && !file.end.n_left_out);
    assert_true(file.head.wall_ns == -5 && file.n_tasks == 1 && file.n_formats == 1 && file.n_totals == 1);
    assert_memory_equal(sched_event_bytes(&file, &file.events[0]), "123456789012", 12);
    assert_true(sched_event_switch(&file, &file.events[20], &what));
    assert_true(what.tid == 119 && what.other == SCHED_NO_TID && what.flags == SCHED_OUT);
    sched_put_text(&file, &text);
    assert_non_null(strstr(text.data, "(time: 1019) (cpu: 3) (out: 119)]"));
    assert_non_null(strstr(text.data, "(event: sched_switch) (bytes: 313233343536373839303132)"));
    text.len_bytes = 0;
    sched_put_json(&file, &text);
    expect_bytes(&file, &bytes);
    struct json_take take = {.name = "j", .err = &err};
    json_t *root = json_take_parse(&take, text.data, text.len_bytes);
    assert_int_equal(sched_take_json(&take, root, &file), 0);
    expect_bytes(&file, &bytes);
    json_decref(root);
    buf_fini(&text);
    buf_fini(&bytes);
}

/* What a killed recorder leaves: whole chunks count, whatever length the file has. */
static void test_truncations(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct error err = {0};
    struct sched_file file = {0};
    size_t n_seen = 0;
    record(20, &bytes);
    for (size_t len = 0; len < bytes.len_bytes; len++) {
        int code = sched_read_memory(bytes.data, len, "s", &file, &err);
        assert_true(code == 0 || (n_seen == 0 && code == ERR_FORMAT && strstr(err.text, "s: offset ")));
        assert_true(!file.has_end && file.n_events >= n_seen);
        n_seen = file.n_events;
        sched_fini(&file);
    }
    assert_int_equal(n_seen, 21);
    buf_fini(&bytes);
}

static void test_limit(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct error err = {0};
    struct sched_file file = {0};
    record(1000, &bytes);
    assert_true(bytes.len_bytes < head.limit_bytes + head.limit_bytes / 8);
    assert_int_equal(sched_read_memory(bytes.data, bytes.len_bytes, "s", &file, &err), 0);
    assert_int_equal(file.end.n_events, 1001);
    assert_int_equal(file.n_events + file.end.n_left_out, 1001);
    assert_true(file.n_events > 100 && file.end.n_left_out > 100);
    assert_int_equal(file.events[file.n_events - 1].t_ns + 1, file.end.t_full_ns);
    sched_fini(&file);
    buf_fini(&bytes);
}

/* Whatever byte is wrong, the reader says so or reads on; it never reads beyond. */
static void test_damage(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct error err = {0};
    struct sched_file file = {0};
    record(20, &bytes);
    for (size_t at = 0; at < bytes.len_bytes; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
            int code = sched_read_memory(bytes.data, bytes.len_bytes, "s", &file, &err);
            assert_true(code == 0 || strstr(err.text, "s: offset "));
            sched_fini(&file);
            bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
        }
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
