/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/log.h: our text comes back, logs of the original's form are understood, sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "fmt/log.h"

static const char foreign[] =
    "[19, N]: SYSTEM_SERVER: warning: memory usage: 87 Meg\n"
    "MEMORY: segment size: 4.5 meg, num segments: 6, total allocation: 24.0 meg, reclaims: 3\n"
    "MEMORY: total freeable: 0.1 meg, total non-freeable: 0.9 meg, malloc failures: 2\n"
    "UNWIND ANOMALIES: total: 14559 errant: 1, total-frames: 40586, total-libunwind-fails: 5\n"
    "ACC SUMMARY:\n"
    "         accelerator trace records: 11 (processed: 12, dropped: 13)\n"
    "         accelerator samples: 14 (recorded: 15, dropped: 16)\n"
    "SAMPLE ANOMALIES: blocks: 1044 (async: 1040, dlopen: 4), errors: 7 (segv: 5, soft: 2)\n"
    "SUMMARY: samples: 14559 (recorded: 13515, blocked: 1044, errant: 8, trolled: 9, yielded: 10),\n"
    "         frames: 40586 (trolled: 17)\n"
    "         intervals: 328 (suspicious: 18)\n";

static void test_foreign(void **state)
{
    (void)state;
    struct log_summary log = {0};
    struct error err = {0};
    assert_int_equal(log_read_memory(foreign, sizeof foreign - 1, "x.log", &log, &err), 0);
    assert_true(log.n_complete == 1 && log.n_messages == 1);
    assert_string_equal(log.messages[0], "[19, N]: SYSTEM_SERVER: warning: memory usage: 87 Meg");
    assert_true(log.segment_meg == 4.5 && log.memory_segments == 6 && log.total_meg == 24 && log.memory_reclaims == 3);
    assert_true(log.unwind_samples == 14559 && log.unwind_errant == 1 && log.unwind_failures == 5);
    assert_true(log.acc_records == 11 && log.acc_records_dropped == 13 && log.acc_samples_dropped == 16);
    assert_true(log.blocks == 1044 && log.blocks_async == 1040 && log.blocks_dlopen == 4 && log.errors_soft == 2);
    assert_true(log.samples == 14559 && log.recorded == 13515 && log.errant == 8 && log.yielded == 10);
    assert_true(log.frames == 40586 && log.frames_trolled == 17 && log.intervals_suspicious == 18);
    struct buf text = {0};
    log_write_message(&text, 19, -1, "SYSTEM_SERVER: warning: memory usage: 87 Meg");
    log_write_summary(&log, &text);
    assert_string_equal(text.data, foreign);
    buf_fini(&text);
    log_fini(&log);
}

static void test_events_and_sums(void **state)
{
    (void)state;
    struct log_summary log = {.n_logs = 1, .n_complete = 1, .segment_meg = 2}, again = {0}, total = {0};
    struct error err = {0};
    struct log_event *event = log_event_named(&log, "cycles, name: x, taken: 5");
    event->taken = 100;
    event->overflows = 120;
    event->fates[FATE_NAMED] = 60;
    event->fates[FATE_NO_ADDRESS_COMPUTE] = 20;
    event->fates[FATE_DROP_REENTERED] = 15;
    event->fates[FATE_DROP_ARENA_FULL] = 5;
    event->fates[FATE_NOT_DELIVERED] = 20;
    event->enabled_ns = 9;
    event->running_ns = 8;
    event->n_throttles = 7;
    event->n_no_metric = 6;
    event->n_truncated = 5;
    event->n_collisions = 4;
    log_count_events(&log);
    assert_true(log.samples == 100 && log.recorded == 80 && log.blocked == 15 && log.errant == 5);
    struct buf text = {0};
    log_write_message(&text, 7, 2, "hello");
    log_write_summary(&log, &text);
    assert_non_null(strstr(text.data, "[7, 2]: hello\n"));
    assert_int_equal(log_read_memory(text.data, text.len_bytes, "y.log", &again, &err), 0);
    assert_true(again.n_events == 1 && again.n_messages == 1 && again.samples == 100);
    assert_memory_equal(again.events[0].fates, log.events[0].fates, sizeof log.events[0].fates);
    for (int i = 0; i < 3; i++)
        assert_int_equal(log_add(&total, &again, &err), 0);
    assert_true(total.n_logs == 3 && total.n_complete == 3 && total.recorded == 240 && total.segment_meg == 2);
    assert_true(total.events[0].enabled_ns == 27 && total.events[0].running_ns == 24);
    assert_true(total.events[0].n_throttles == 21 && total.events[0].n_no_metric == 18);
    assert_true(total.events[0].n_truncated == 15 && total.events[0].n_collisions == 12);
    assert_true(total.events[0].overflows == 360 && total.events[0].fates[FATE_NAMED] == 180);
    buf_fini(&text);
    log_fini(&log);
    log_fini(&again);
    log_fini(&total);
}

static void test_bad(void **state)
{
    (void)state;
    struct log_summary log = {0};
    struct error err = {0};
    assert_int_equal(log_read_memory("SUMMARY: samples: many\n", 23, "z.log", &log, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "z.log: offset 0"));
    assert_int_equal(log_read_memory("a\n\0b", 4, "z.log", &log, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "offset 2"));
    assert_int_equal(log_read_memory("", 0, "z.log", &log, &err), 0);
    assert_true(log.n_logs == 1 && log.n_complete == 0);
    log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_events_and_sums),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
