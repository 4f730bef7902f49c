/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of events by name on a described machine: rates, precise levels, groups, kernel frames, tracepoints,
 * breakpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>

#include "machine-files.h"
#include "sampling/probe.h"

#define RULES                                                                                                          \
    "EOPNOTSUPP type=cpu config=0x1cd precise_ip=3\n"                                                                  \
    "ENODATA type=cpu config=0x1cd leader=none\n"                                                                      \
    "EINVAL type=cpu config=0xc0 precise_ip>1\n"                                                                       \
    "ENOENT type=cpu config=0xbad\n"                                                                                   \
    "ok type=cpu\nok type=software\nok type=tracepoint config=316\nok type=breakpoint\n"

static int begin(void **state)
{
    (void)state;
    (void)machine_files_begin();
    machine_files_put("proc/cpuinfo", "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: X");
    machine_files_put("proc/sys/kernel/perf_event_paranoid", "1");
    machine_files_put("proc/sys/kernel/perf_event_max_sample_rate", "5000");
    machine_files_put("opens", RULES);
    machine_files_put_pmu("cpu", "type", "4");
    machine_files_put_pmu("cpu", "format/event", "config:0-7");
    machine_files_put_pmu("cpu", "format/umask", "config:8-15");
    machine_files_put_pmu("cpu", "format/ldlat", "config1:0-15");
    machine_files_put_pmu("cpu", "events/instructions", "event=0xc0");
    machine_files_put_pmu("cpu", "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3");
    machine_files_put_pmu("cpu", "events/mem-loads-aux", "event=0x03,umask=0x82");
    machine_files_put("sys/kernel/tracing/events/sched/sched_switch/id", "316");
    machine_files_put("sys/kernel/tracing/events/sched/sched_waking/id", "317");
    return 0;
}

static int end(void **state)
{
    (void)state;
    machine_files_end();
    return 0;
}

static struct source_plan plan;

static const struct source_event *plan_of(const char *event, const char *count)
{
    struct error err = {0};
    if (source_plan_events(&event, 1, count, &plan, &err) != 0)
        fail_msg("%s: %s", event, err.text);
    return &plan.events[0];
}

static void check_refused(const char *event, const char *count, int code, const char *part)
{
    struct error err = {0};
    assert_int_equal(source_plan_events(&event, 1, count, &plan, &err), code);
    if (!strstr(err.text, part))
        fail_msg("%s: '%s' does not contain '%s'", event, err.text, part);
}

#define FREQUENCY_FIELDS                                                                                               \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

/* With the period in their records, the kernel would sample each of the events that it counts down itself. */
static void test_counted_events_have_no_period_in_their_records(void **state)
{
    static const char *const counted[] = {"page-faults@f300", "minor-faults@100", "FAULTS", "FAULTS@f200",
                                          "FAULTS@100"};
    (void)state;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        assert_int_equal(plan_of(counted[i], NULL)->attr.sample_type & PERF_SAMPLE_PERIOD, 0);
}

static void check_rate(const char *event, const char *count, unsigned is_frequency, uint64_t value)
{
    const struct source_event *row = plan_of(event, count);
    if (row->attr.freq != is_frequency || row->attr.sample_period != value)
        fail_msg("%s: freq=%u, %llu", event, (unsigned)row->attr.freq, (unsigned long long)row->attr.sample_period);
    assert_int_equal(row->attr.sample_type, is_frequency ? FREQUENCY_FIELDS : PERF_SAMPLE_IP);
    assert_int_equal(row->flags, is_frequency ? SOURCE_RING | SOURCE_WEIGHTED : 0);
    assert_true(row->scale == (is_frequency ? 1.0 : (double)value));
}

static void test_rates(void **state)
{
    (void)state;
    check_rate("instructions", NULL, 1, 300);
    check_rate("instructions@100000", NULL, 0, 100000);
    check_rate("instructions@f5000", NULL, 1, 5000);
    check_rate("instructions", "f77", 1, 77);
    check_rate("cpu/instructions,period=9/", NULL, 0, 9);
    check_rate("cpu/instructions,period=9/", "f77", 0, 9);
    check_rate("cpu/instructions,period=9/@10", "f77", 0, 10);
    check_rate("cpu/instructions,freq=99/", NULL, 1, 99);
    check_rate("major-faults", NULL, 0, 1);
    check_refused("instructions@f5001", NULL, ERR_RANGE, "kernel.perf_event_max_sample_rate is 5000");
    check_refused("cpu/instructions,freq=6000/", NULL, ERR_RANGE, "kernel.perf_event_max_sample_rate");
    check_refused("instructions", "f9999", ERR_RANGE, "kernel.perf_event_max_sample_rate");
    check_refused("FAULTS@f5001", NULL, ERR_RANGE, "kernel.perf_event_max_sample_rate");
    machine_files_put("proc/sys/kernel/perf_event_max_sample_rate", "100");
    check_rate("instructions", NULL, 1, 100);
    check_rate("instructions@f100", NULL, 1, 100);
}

static void test_times_are_read_for_counters(void **state)
{
    (void)state;
    assert_int_equal(plan_of("instructions", NULL)->attr.read_format,
                     PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    assert_int_equal(plan_of("r1ab", NULL)->attr.read_format,
                     PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    assert_int_equal(plan_of("page-faults", NULL)->attr.read_format, 0);
}

static void check_precise(const char *event, unsigned level, const char *description)
{
    const struct source_event *row = plan_of(event, NULL);
    assert_int_equal(row->attr.precise_ip, level);
    assert_string_equal(row->description, description);
}

static void test_precision(void **state)
{
    (void)state;
    check_precise("instructions", 0, "perf event instructions");
    check_precise("instructions:p", 1, "perf event instructions:p, precise level 1");
    check_precise("instructions:P", 1, "perf event instructions:P, precise level 1");
    check_precise("r2:P", 3, "perf event r2:P, precise level 3");
    check_refused("instructions:pp", NULL, ERR_UNSUPPORTED,
                  "EINVAL (Invalid argument); perf_event_paranoid 1, but it "
                  "opens at precise level 1; write :P");
    check_refused("instructions:ppp", NULL, ERR_UNSUPPORTED, "precise level 1");
    check_refused("rbad:P", NULL, ERR_UNSUPPORTED, "ENOENT");
    check_refused("mem-loads", NULL, ERR_UNSUPPORTED, "open it in a group after the event");
}

static void test_groups(void **state)
{
    (void)state;
    (void)plan_of("{cpu/mem-loads-aux/,cpu/mem-loads,ldlat=40,name=loads/P@500}:u@1000", NULL);
    assert_int_equal(plan.n_events, 2);
    assert_string_equal(plan.events[0].metric, "cpu/mem-loads-aux/u");
    assert_int_equal(plan.events[0].attr.config, 0x8203);
    assert_int_equal(plan.events[0].attr.sample_period, 1000);
    assert_int_equal(plan.events[0].leader, 0);
    assert_string_equal(plan.events[1].metric, "loads");
    assert_int_equal(plan.events[1].attr.config, 0x1cd);
    assert_int_equal(plan.events[1].attr.config1, 40);
    assert_int_equal(plan.events[1].attr.precise_ip, 2);
    assert_int_equal(plan.events[1].attr.sample_period, 500);
    assert_int_equal(plan.events[1].leader, 1);
    assert_non_null(strstr(plan.events[1].description, ", in a group led by cpu/mem-loads-aux/u"));
    check_refused("{instructions,cpu/mem-loads/ppp}", NULL, ERR_UNSUPPORTED, "in this group: perf_event_open: EOPNOTS");
    check_refused("{instructions,instructions}", NULL, ERR_USAGE, "twice");
    check_refused("{instructions,nothing}", NULL, ERR_USAGE, "there is no event 'nothing'");
    check_refused("{instructions,r1}:S", NULL, ERR_UNSUPPORTED, "modifier S");
}

static void test_second_group_has_its_own_leader(void **state)
{
    static const char *const events[] = {"page-faults", "{r1,r2}", "{r3,r4}"};
    struct error err;
    (void)state;
    assert_int_equal(source_plan_events(events, 3, NULL, &plan, &err), 0);
    assert_int_equal(plan.n_events, 5);
    assert_int_equal(plan.events[2].leader, 2);
    assert_int_equal(plan.events[3].leader, 0);
    assert_int_equal(plan.events[4].leader, 4);
}

static void check_kernel(const char *event, bool is_seen)
{
    const struct source_event *row = plan_of(event, "1000");
    assert_int_equal(row->attr.exclude_kernel, !is_seen);
    assert_int_equal((row->attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0, is_seen);
    assert_int_equal(row->attr.exclude_callchain_user, is_seen);
    assert_int_equal(row->flags, is_seen ? SOURCE_RING | SOURCE_KERNEL : 0);
    assert_int_equal(plan.warning[0] != '\0', is_seen);
}

static void test_kernel_frames(void **state)
{
    (void)state;
    check_kernel("instructions", false);
    check_kernel("instructions:u", false);
    check_kernel("instructions:uk", true);
    check_kernel("cpu/instructions/k", true);
    check_kernel("page-faults", false);
    check_kernel("page-faults:k", true);
    check_kernel("context-switches", true);
    check_kernel("context-switches:u", false);
    check_kernel("sched:sched_switch", true);
}

static void test_tracepoints(void **state)
{
    const struct source_event *row = plan_of("sched:sched_switch", NULL);
    (void)state;
    assert_int_equal(row->attr.type, PERF_TYPE_TRACEPOINT);
    assert_int_equal(row->attr.config, 316);
    assert_int_equal(row->attr.sample_period, 1);
    assert_int_equal(plan_of("sched:sched_switch:u", NULL)->attr.exclude_kernel, 1);
    check_refused("sched:sched_waking", NULL, ERR_UNSUPPORTED, "ENOENT");
    check_refused("sched:sched_swich", NULL, ERR_USAGE, "similar names: sched:sched_switch");
    check_refused("sched:nothing", NULL, ERR_USAGE, "there is no event 'sched:nothing' on this machine; hpcrun -L");
    machine_files_end();
    (void)machine_files_begin();
    check_refused("sched:sched_switch", NULL, ERR_USAGE, "tracefs is not mounted");
}

static void check_breakpoint(const char *event, uint32_t type, uint64_t address, uint64_t n_bytes)
{
    const struct source_event *row = plan_of(event, NULL);
    bool is_data = type != HW_BREAKPOINT_X;
    assert_int_equal(row->attr.type, PERF_TYPE_BREAKPOINT);
    assert_int_equal(row->attr.bp_type, type);
    assert_int_equal(row->attr.bp_addr, address);
    assert_int_equal(row->attr.bp_len, n_bytes);
    assert_int_equal(row->attr.sample_period, 1);
    assert_int_equal(row->attr.exclude_kernel, 1);
    assert_int_equal(row->attr.sample_type, is_data ? PERF_SAMPLE_IP | PERF_SAMPLE_ADDR : PERF_SAMPLE_IP);
    assert_int_equal(row->flags, is_data ? SOURCE_RING | SOURCE_ADDRESS : 0);
    assert_int_equal(plan.wants_datacentric, is_data);
}

static void test_breakpoints(void **state)
{
    (void)state;
    check_breakpoint("mem:0x404040", HW_BREAKPOINT_RW, 0x404040, 4);
    check_breakpoint("mem:4210752:w", HW_BREAKPOINT_W, 4210752, 4);
    check_breakpoint("mem:4210752", HW_BREAKPOINT_RW, 4210752, 4);
    check_breakpoint("mem:0x404040/8:r", HW_BREAKPOINT_R, 0x404040, 8);
    check_breakpoint("mem:0x404041/1:rw", HW_BREAKPOINT_RW, 0x404041, 1);
    check_breakpoint("mem:0x404041:x", HW_BREAKPOINT_X, 0x404041, sizeof(long));
    check_breakpoint("mem:0x404040:w:u", HW_BREAKPOINT_W, 0x404040, 4);
    assert_int_equal(plan_of("mem:0x404040:w@10", NULL)->attr.sample_period, 10);
    check_refused("mem:0x404041", NULL, ERR_RANGE, "not a multiple of its 4 bytes");
    check_refused("mem:0x404040/3", NULL, ERR_RANGE, "1, 2, 4 or 8 bytes");
    check_refused("mem:0x404040/", NULL, ERR_USAGE, "number of bytes");
    check_refused("mem:0x404040:wx", NULL, ERR_USAGE, "x cannot be combined");
    check_refused("mem:0x404040:ww", NULL, ERR_USAGE, "'ww' are not modifiers");
    check_refused("mem:0x404040+", NULL, ERR_USAGE, "'+' is not understood");
    check_refused("mem:main", NULL, ERR_USAGE, "there is no event");
}

static void test_long_names_stay_apart(void **state)
{
    static const char *const events[] = {"cpu/event=0x11,umask=0x22,ldlat=3,config2=0x123456789abcdef,name=/",
                                         "cpu/event=0x11,umask=0x22,ldlat=3,config2=0x123456789abcdee,name=/"};
    struct error err = {0};
    (void)state;
    assert_int_equal(source_plan_events(events, 2, NULL, &plan, &err), 0);
    assert_string_not_equal(plan.events[0].metric, plan.events[1].metric);
    assert_int_equal(strlen(plan.events[0].metric), sizeof plan.events[0].metric - 1);
}

static void test_two_kinds_of_cores(void **state)
{
    (void)state;
    machine_files_put_pmu("cpu_core", "type", "4");
    machine_files_put_pmu("cpu_core", "format/event", "config:0-7");
    machine_files_put_pmu("cpu_core", "events/stalls", "event=0x55");
    machine_files_put_pmu("cpu_atom", "type", "10");
    machine_files_put_pmu("cpu_atom", "format/event", "config:0-7");
    machine_files_put_pmu("cpu_atom", "events/stalls", "event=0x66");
    machine_files_put("opens", "EINVAL type=cpu_atom precise_ip>0\nEINVAL type=hw-cache config&0xf00000000\n"
                               "ok type=cpu_core\nok type=cpu_atom\nok type=software");
    (void)plan_of("stalls:u@1000", NULL);
    assert_int_equal(plan.n_events, 2);
    assert_string_equal(plan.events[0].metric, "stalls:u (cpu_core)");
    assert_int_equal(plan.events[0].attr.type, 4);
    assert_int_equal(plan.events[0].attr.config, 0x55);
    assert_string_equal(plan.events[1].metric, "stalls:u (cpu_atom)");
    assert_int_equal(plan.events[1].attr.type, 10);
    assert_int_equal(plan.events[1].attr.config, 0x66);
    assert_int_equal(plan.events[1].attr.sample_period, 1000);
    assert_int_equal(plan.events[1].leader, 0);
    (void)plan_of("cycles", NULL);
    assert_int_equal(plan.n_events, 2);
    assert_int_equal(plan.events[0].attr.type, PERF_TYPE_HARDWARE);
    assert_int_equal(plan.events[0].attr.config, UINT64_C(4) << 32);
    assert_int_equal(plan.events[1].attr.config, UINT64_C(10) << 32);
    (void)plan_of("stalls:p", NULL);
    assert_int_equal(plan.n_events, 1);
    assert_non_null(strstr(plan.warning, "on the cores of cpu_core only: stalls:p cannot be sampled here"));
    (void)plan_of("cpu_atom/stalls/", NULL);
    assert_int_equal(plan.n_events, 1);
    assert_string_equal(plan.events[0].metric, "cpu_atom/stalls/");
    assert_int_equal(plan_of("page-faults", NULL)->attr.type, PERF_TYPE_SOFTWARE);
    assert_int_equal(plan.n_events, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rates, begin, end),
        cmocka_unit_test_setup_teardown(test_counted_events_have_no_period_in_their_records, begin, end),
        cmocka_unit_test_setup_teardown(test_times_are_read_for_counters, begin, end),
        cmocka_unit_test_setup_teardown(test_precision, begin, end),
        cmocka_unit_test_setup_teardown(test_groups, begin, end),
        cmocka_unit_test_setup_teardown(test_second_group_has_its_own_leader, begin, end),
        cmocka_unit_test_setup_teardown(test_kernel_frames, begin, end),
        cmocka_unit_test_setup_teardown(test_tracepoints, begin, end),
        cmocka_unit_test_setup_teardown(test_breakpoints, begin, end),
        cmocka_unit_test_setup_teardown(test_two_kinds_of_cores, begin, end),
        cmocka_unit_test_setup_teardown(test_long_names_stay_apart, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
