/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/trace.h and fmt/metric-db.h: round trips, every truncation, the streaming writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fmt/file.h"
#include "fmt/metric-db.h"
#include "fmt/trace.h"

static struct trace_record records[] = {{1594000000123456789u, 13, 4}, {1594000000123456999u, 27, TRACE_NO_METRIC}};

static void check_trace(const char *version, uint64_t flags, size_t expected_bytes)
{
    struct trace_file trace = {.flags = flags, .records = records, .n_records = 2}, again = {0};
    struct buf bytes = {0}, twice = {0};
    struct error err = {0};
    memcpy(trace.version, version, sizeof trace.version);
    assert_int_equal(trace_write(&trace, &bytes, &err), 0);
    assert_int_equal(bytes.len_bytes, expected_bytes);
    assert_int_equal(trace_read_memory(bytes.data, bytes.len_bytes, "t", &again, &err), 0);
    assert_int_equal(again.n_records, 2);
    assert_true(again.records[0].time == records[0].time && again.records[1].node == 27);
    assert_int_equal(again.records[0].metric, flags & TRACE_FLAG_DATACENTRIC ? 4 : TRACE_NO_METRIC);
    assert_int_equal(trace_write(&again, &twice, &err), 0);
    assert_int_equal(twice.len_bytes, bytes.len_bytes);
    assert_memory_equal(twice.data, bytes.data, bytes.len_bytes);
    trace_fini(&again);
    size_t record_bytes = flags & TRACE_FLAG_DATACENTRIC ? 16 : 12;
    size_t header_bytes = expected_bytes - 2 * record_bytes;
    for (size_t len = 0; len < bytes.len_bytes; len++) {
        int code = trace_read_memory(bytes.data, len, "t", &again, &err);
        bool whole = len >= header_bytes && (len - header_bytes) % record_bytes == 0;
        assert_int_equal(code, whole ? 0 : ERR_FORMAT);
        trace_fini(&again);
    }
    buf_fini(&bytes);
    buf_fini(&twice);
}

static void test_trace_round_trip(void **state)
{
    (void)state;
    check_trace("01.00", 0, 24 + 24);
    check_trace("01.01", 0, 32 + 24);
    check_trace("01.01", TRACE_FLAG_DATACENTRIC, 32 + 32);
    check_trace("01.01", TRACE_FLAG_LCA, 32 + 24);
}

static void test_trace_refusals(void **state)
{
    (void)state;
    struct trace_file trace = {.version = "01.00", .flags = TRACE_FLAG_DATACENTRIC};
    struct buf out = {0};
    struct error err = {0};
    assert_int_equal(trace_write(&trace, &out, &err), ERR_RANGE);
    memcpy(trace.version, "01.02", 6);
    assert_int_equal(trace_write(&trace, &out, &err), ERR_UNSUPPORTED);
    assert_int_equal(trace_read_memory("HPCRUN-trace______01.07b", 24, "t", &trace, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "01.07"));
    assert_int_equal(trace_read_memory("HPCRUN-trace______01.00l", 24, "t", &trace, &err), ERR_FORMAT);
    buf_fini(&out);
}

static void test_trace_writer(void **state)
{
    (void)state;
    enum { N_RECORDS = 10000 };
    char dir[] = "/tmp/fmt-trace-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a.hpctrace", dir);
    struct trace_writer writer;
    struct error err = {0};
    assert_int_equal(trace_writer_open(&writer, path, TRACE_FLAG_DATACENTRIC, &err), 0);
    for (uint32_t i = 0; i < N_RECORDS; i++) {
        struct trace_record record = {1000 + i, 2 * i + 1, i % 5};
        assert_int_equal(trace_writer_add(&writer, &record, &err), 0);
    }
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(trace_writer_close(&writer, &err), 0);
    struct trace_file trace = {0};
    assert_int_equal(trace_read(path, &trace, &err), 0);
    assert_int_equal(trace.n_records, N_RECORDS);
    assert_true(trace.records[9999].time == 10999 && trace.records[9999].metric == 4);
    trace_fini(&trace);
    assert_int_equal(trace_writer_open(&writer, path, 0, &err), 0);
    assert_int_equal(trace_writer_close(&writer, &err), ERR_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(trace_writer_open(&writer, path, 0, &err), 0);
    trace_writer_abandon(&writer);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(trace_writer_open(&writer, path, 0, &err), ERR_IO);
}

static void test_metric_db(void **state)
{
    (void)state;
    double values[6] = {1.5, -0.0, INFINITY, NAN, 1e-300, 3};
    struct metric_db db = {.n_nodes = 3, .n_metrics = 2, .values = values}, again = {0};
    struct buf bytes = {0};
    struct error err = {0};
    assert_int_equal(metric_db_write(&db, &bytes, &err), 0);
    assert_int_equal(bytes.len_bytes, 32 + 8 * 6);
    assert_memory_equal(bytes.data + 24, "\0\0\0\3\0\0\0\2\x3f\xf8\0", 11);
    assert_int_equal(metric_db_read_memory(bytes.data, bytes.len_bytes, "m", &again, &err), 0);
    assert_true(again.n_nodes == 3 && again.n_metrics == 2);
    assert_memory_equal(again.values, values, sizeof values);
    metric_db_fini(&again);
    for (size_t len = 0; len < bytes.len_bytes; len++)
        assert_int_equal(metric_db_read_memory(bytes.data, len, "m", &again, &err), ERR_FORMAT);
    buf_append(&bytes, "x", 1);
    assert_int_equal(metric_db_read_memory(bytes.data, bytes.len_bytes, "m", &again, &err), ERR_FORMAT);
    memset(bytes.data + 24, 0xff, 8);
    assert_int_equal(metric_db_read_memory(bytes.data, bytes.len_bytes, "m", &again, &err), ERR_FORMAT);
    buf_fini(&bytes);
}

static void test_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/fmt-file-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/f", dir);
    struct error err = {0};
    struct buf bytes = {0};
    assert_int_equal(file_write_new(path, "one", 3, &err), 0);
    assert_int_equal(file_write_new(path, "two", 3, &err), ERR_IO);
    assert_int_equal(file_read(path, &bytes, &err), 0);
    assert_string_equal(bytes.data, "one");
    buf_fini(&bytes);
    assert_int_equal(file_replace(path, "", 0, &err), 0);
    assert_int_equal(file_read(path, &bytes, &err), 0);
    assert_int_equal(bytes.len_bytes, 0);
    buf_fini(&bytes);
    assert_int_equal(file_read("/dev/zero", &bytes, &err), ERR_IO);
    assert_int_equal(file_write_new("/dev/full/x", "", 0, &err), ERR_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_round_trip),
        cmocka_unit_test(test_trace_refusals),
        cmocka_unit_test(test_trace_writer),
        cmocka_unit_test(test_metric_db),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
