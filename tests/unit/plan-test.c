/* SPDX-License-Identifier: BSD-3-Clause */
/* Event names, thresholds, plans, and the exact perf_event_attr of each software source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampling/event.h"
#include "sampling/probe.h"

static void check_event(const char *text, const char *name, int is_given, int is_frequency, uint64_t value)
{
    char found[64];
    struct source_threshold threshold;
    struct error err;
    assert_int_equal(source_parse_event(text, found, sizeof found, &threshold, &err), 0);
    assert_string_equal(found, name);
    assert_int_equal(threshold.is_given, is_given);
    assert_int_equal(threshold.is_frequency, is_frequency);
    assert_int_equal(threshold.value, value);
}

static void check_time(const char *text, const char *name, uint64_t value)
{
    char found[64];
    struct source_threshold threshold;
    struct error err;
    check_event(text, name, 1, 0, value);
    assert_int_equal(source_parse_event(text, found, sizeof found, &threshold, &err), 0);
    assert_true(threshold.is_time);
}

static void test_events(void **state)
{
    (void)state;
    check_event("EADDR", "EADDR", 0, 0, 0);
    check_event("EADDR@1000000", "EADDR", 1, 0, 1000000);
    check_time("EADDR@1ns", "EADDR", 1);
    check_time("EADDR@500us", "EADDR", 500000);
    check_time("EADDR:2MS", "EADDR", 2000000);
    check_time("perf::task-clock@3s", "perf::task-clock", UINT64_C(3000000000));
    check_event("eaddr@f500", "eaddr", 1, 1, 500);
    check_event("FAULTS@ring", "FAULTS@ring", 0, 0, 0);
    check_event("cpu-clock:f99", "cpu-clock", 1, 1, 99);
    check_event("perf::page-faults", "perf::page-faults", 0, 0, 0);
    check_event("skl::EVENT:UMASK:u", "skl::EVENT:UMASK:u", 0, 0, 0);
    check_event("perf::page-faults@7", "perf::page-faults", 1, 0, 7);
}

static void test_bad_events(void **state)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"", ERR_USAGE},           {"@5", ERR_USAGE},         {"EADDR@", ERR_USAGE},
        {"EADDR@f", ERR_USAGE},    {"EADDR@5x", ERR_USAGE},   {"EADDR@-5", ERR_USAGE},
        {"EADDR@0", ERR_RANGE},    {"EADDR@f0", ERR_RANGE},   {"EADDR@99999999999999999999999", ERR_RANGE},
        {"EADDR@us", ERR_USAGE},   {"EADDR@f5ms", ERR_USAGE}, {"EADDR@9999999999s", ERR_RANGE},
        {"EADDR@5 us", ERR_USAGE}, {"EADDR@0ms", ERR_RANGE},  {"EADDR@5uss", ERR_USAGE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        struct source_threshold threshold;
        struct error err = {0};
        assert_int_equal(source_parse_event(cases[i].text, name, sizeof name, &threshold, &err), cases[i].code);
        assert_string_not_equal(err.text, "");
    }
}

static void test_terms(void **state)
{
    uint64_t ldlat = 3, large = 0;
    const struct source_term known[] = {{"ldlat", true, &ldlat}, {"large", false, &large}, {NULL, false, NULL}};
    static const char *const bad[] = {"X,", "X,larger", "X,large=1", "X,ldlat", "X,ldlat=", "X,ldlat=3x", "X,ldlat=-3"};
    struct error err = {0};
    (void)state;
    assert_int_equal(source_parse_terms("X", known, &err), 0);
    assert_int_equal(ldlat, 3);
    assert_int_equal(source_parse_terms("X,ldlat=0x1e,large", known, &err), 0);
    assert_int_equal(ldlat, 30);
    assert_int_equal(large, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(source_parse_terms(bad[i], known, &err), ERR_USAGE);
    const char *const events[] = {"CPUTIME,large"};
    struct source_plan plan;
    assert_int_equal(source_plan_events(events, 1, NULL, &plan, &err), ERR_USAGE);
    assert_string_equal(err.text, "CPUTIME,large: CPUTIME takes no terms.");
}

static void dump_attr(const struct source_event *event, char *text, size_t n)
{
    const struct perf_event_attr *a = &event->attr;
    (void)snprintf(text, n,
                   "%s source=%u flags=%u scale=%g size=%s type=%u config=%llu period=%llu freq=%u sample_type=%#llx "
                   "disabled=%u inherit=%u xuser=%u xkernel=%u xhv=%u wakeup=%u backward=%u precise=%u read=%llu",
                   event->metric, event->source, event->flags, event->scale, a->size == sizeof *a ? "whole" : "wrong",
                   a->type, (unsigned long long)a->config, (unsigned long long)a->sample_period, (unsigned)a->freq,
                   (unsigned long long)a->sample_type, (unsigned)a->disabled, (unsigned)a->inherit,
                   (unsigned)a->exclude_user, (unsigned)a->exclude_kernel, (unsigned)a->exclude_hv, a->wakeup_events,
                   (unsigned)a->write_backward, (unsigned)a->precise_ip, (unsigned long long)a->read_format);
}

/* Skips when this machine refuses perf: there is no perf plan to look at then. */
static void need_perf(void)
{
    struct source_probe probe;
    struct perf_event_attr attr;
    source_clock_attr(1000000, &attr);
    source_probe_perf(&attr, true, &probe);
    if (probe.works)
        return;
    printf("SKIP: %s\n", probe.reason);
    skip();
}

static void need_software_addresses(void)
{
#ifndef __x86_64__
    printf("SKIP: software addresses are for x86-64 only\n");
    skip();
#endif
}

static void check_attr(const char *event, const char *expected)
{
    char text[1024];
    struct source_plan plan;
    struct error err = {0};
    int status = source_plan_events(&event, 1, NULL, &plan, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(status, 0);
    assert_int_equal(plan.n_events, 1);
    dump_attr(&plan.events[0], text, sizeof text);
    assert_string_equal(text, expected);
}

#define COMMON "disabled=1 inherit=0 xuser=0 xkernel=1 xhv=1 wakeup=1"

static void test_attrs(void **state)
{
    (void)state;
    need_perf();
#ifdef __x86_64__
    check_attr("EADDR", "EADDR (usec) source=1 flags=8 scale=1000 size=whole type=1 config=1 period=1000000 freq=0 "
                        "sample_type=0x1 " COMMON " backward=1 precise=0 read=0");
    check_attr("EADDR@f500", "EADDR (usec) source=1 flags=8 scale=2000 size=whole type=1 config=1 period=2000000 "
                             "freq=0 sample_type=0x1 " COMMON " backward=1 precise=0 read=0");
#endif
    check_attr("cputime@400", "CPUTIME (usec) source=3 flags=0 scale=400 size=whole type=1 config=1 period=400000 "
                              "freq=0 sample_type=0x1 " COMMON " backward=1 precise=0 read=0");
    check_attr("FAULTS", "FAULTS source=2 flags=13 scale=1 size=whole type=1 config=2 period=500 freq=1 "
                         "sample_type=0x8f " COMMON " backward=1 precise=0 read=0");
    check_attr("FAULTS@ring", "FAULTS source=2 flags=92 scale=1 size=whole type=1 config=2 period=1 freq=0 "
                              "sample_type=0x89 disabled=1 inherit=0 xuser=0 xkernel=1 xhv=1 wakeup=0 backward=0 "
                              "precise=0 read=0");
    check_attr("minor-faults@16", "minor-faults source=6 flags=0 scale=16 size=whole type=1 config=5 period=16 freq=0 "
                                  "sample_type=0x1 " COMMON " backward=1 precise=0 read=0");
    check_attr("perf::PAGE-FAULTS", "perf::PAGE-FAULTS source=6 flags=5 scale=1 size=whole type=1 config=2 period=300 "
                                    "freq=1 sample_type=0x8f " COMMON " backward=1 precise=0 read=0");
}

static int plan_of(const char *const *events, unsigned n, const char *count, struct source_plan *plan,
                   struct error *err)
{
    memset(err, 0, sizeof *err);
    return source_plan_events(events, n, count, plan, err);
}

/* Every page fault: those that are counted when they are done, in two events of one metric. */
static void test_every_fault(void **state)
{
    static const char *const event = "FAULTS@1";
    static const char *const expected[] = {
        "FAULTS source=2 flags=12 scale=1 size=whole type=1 config=5 period=1 freq=0 "
        "sample_type=0x8f " COMMON " backward=1 precise=0 read=0",
        "FAULTS source=2 flags=12 scale=1 size=whole type=1 config=6 period=1 freq=0 "
        "sample_type=0x8f " COMMON " backward=1 precise=0 read=0"};
    char text[1024];
    struct source_plan plan;
    struct error err;
    (void)state;
    need_perf();
    assert_int_equal(plan_of(&event, 1, NULL, &plan, &err), 0);
    assert_int_equal(plan.n_events, 2);
    for (int i = 0; i < 2; i++) {
        dump_attr(&plan.events[i], text, sizeof text);
        assert_string_equal(text, expected[i]);
    }
    assert_string_equal(plan.events[0].name, "FAULTS");
    assert_string_equal(plan.events[1].name, "FAULTS (major)");
}

static void test_datacentric_is_the_default(void **state)
{
    struct source_plan plan;
    struct error err;
    (void)state;
    need_software_addresses();
    need_perf();
    assert_int_equal(plan_of(NULL, 0, NULL, &plan, &err), 0);
    assert_int_equal(plan.n_events, 2);
    assert_string_equal(plan.events[0].metric, "EADDR (usec)");
    assert_string_equal(plan.events[1].metric, "FAULTS");
    assert_true(plan.wants_datacentric);
    assert_non_null(strstr(plan.choice, "EADDR"));
    assert_null(strchr(plan.choice, '\n'));
    assert_string_equal(plan.warning, "");
    assert_int_equal(plan_of(NULL, 0, "f200", &plan, &err), 0);
    assert_int_equal(plan.events[0].attr.sample_period, 5000000);
    assert_int_equal(plan.events[1].attr.sample_freq, 500);
}

static void test_several_events(void **state)
{
    static const char *const events[] = {"CPUTIME", "MEMLEAK", "REALTIME@f50"};
    struct source_plan plan;
    struct error err;
    (void)state;
    need_perf();
    assert_int_equal(plan_of(events, 3, "f250", &plan, &err), 0);
    assert_int_equal(plan.n_events, 3);
    assert_int_equal(plan.events[0].attr.sample_period, 4000000);
    assert_true(plan.wants_memleak);
    assert_false(plan.wants_datacentric);
    assert_int_equal(plan.events[2].timer_interval_ns, 20000000);
    assert_int_equal(plan.events[2].flags, SOURCE_TIMER | SOURCE_WALLCLOCK);
    assert_non_null(strstr(plan.warning, "EINTR"));
}

/* The first event of this metric in a plan of two words; no more than it and its pair may be there. */
static const struct source_event *event_of(const char *first, const char *second, const char *metric,
                                           struct source_plan *plan)
{
    const char *const events[] = {first, second};
    const struct source_event *found = NULL;
    struct error err;
    assert_int_equal(plan_of(events, 2, NULL, plan, &err), 0);
    for (uint32_t i = 0; i < plan->n_events; i++)
        if (!strcmp(plan->events[i].metric, metric)) {
            assert_true(!found || (found == &plan->events[i - 1] && strstr(plan->events[i].name, "(major)")));
            found = found ? found : &plan->events[i];
        }
    assert_non_null(found);
    return found;
}

/* The later word on an event counts, whatever datacentric brings along. */
static void test_same_event_again(void **state)
{
    static const char *const group[] = {"{task-clock,task-clock}"};
    struct source_plan plan;
    struct error err;
    (void)state;
    need_perf();
    assert_int_equal(event_of("CPUTIME", "cputime@f10", "CPUTIME (usec)", &plan)->attr.sample_period, 100000000);
    assert_int_equal(event_of("cputime@f10", "CPUTIME@f100", "CPUTIME (usec)", &plan)->attr.sample_period, 10000000);
    assert_int_equal(event_of("datacentric", "FAULTS@1", "FAULTS", &plan)->attr.sample_period, 1);
    assert_false(event_of("datacentric", "FAULTS@1", "FAULTS", &plan)->attr.freq);
    assert_int_equal(plan.n_events, 3);
    assert_int_equal(event_of("FAULTS@1", "datacentric", "FAULTS", &plan)->attr.sample_period, 1);
    assert_int_equal(plan.n_events, 3);
    assert_true(event_of("FAULTS@1", "FAULTS", "FAULTS", &plan)->attr.freq);
    assert_int_equal(plan.n_events, 1);
    assert_int_equal(event_of("FAULTS@1", "FAULTS@2", "FAULTS", &plan)->attr.sample_period, 2);
    assert_int_equal(plan.n_events, 2);
    assert_int_equal(plan.events[1].attr.sample_period, 2);
    assert_true(event_of("FAULTS@1", "FAULTS@ring", "FAULTS", &plan)->flags & SOURCE_RING_ONLY);
    assert_int_equal(plan.n_events, 1);
    assert_true(event_of("datacentric", "FAULTS", "FAULTS", &plan)->attr.freq);
    assert_int_equal(event_of("datacentric", "EADDR@f10", "EADDR (usec)", &plan)->attr.sample_period, 100000000);
    assert_string_equal(plan.events[0].name, "EADDR");
    assert_int_equal(plan_of(group, 1, NULL, &plan, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "twice"));
}

static void check_refused(const char *event, const char *count, int code, const char *part)
{
    struct source_plan plan;
    struct error err;
    assert_int_equal(plan_of(&event, 1, count, &plan, &err), code);
    if (!strstr(err.text, part))
        fail_msg("'%s' does not contain '%s'", err.text, part);
}

static void test_refusals(void **state)
{
    (void)state;
    check_refused("EADR", NULL, ERR_USAGE, "EADDR");
    check_refused("contextswitches", NULL, ERR_USAGE, "context-switches");
    check_refused("zzzzzzzzzzzz", NULL, ERR_USAGE, "there is no event 'zzzzzzzzzzzz'");
    check_refused("CPUTIME@50", NULL, ERR_RANGE,
                  "a period of 50 us is too short: a clock takes 200 us (5000 samples a");
    check_refused("CPUTIME@199999ns", NULL, ERR_RANGE, "write for example CPUTIME@1000, CPUTIME@1ms or CPUTIME@f1000");
    check_refused("CPUTIME@f5001", NULL, ERR_RANGE, "too short");
    check_refused("CPUTIME@1001s", NULL, ERR_RANGE, "a period of 1001 s is too long");
    check_refused("CPUTIME@4000000000000000000", NULL, ERR_RANGE, "too long");
    check_refused("CPUTIME", "199", ERR_RANGE, "too short");
    check_refused("REALTIME@100us", NULL, ERR_RANGE, "a period of 100 us is too short");
    check_refused("CPUTIME", "fx", ERR_USAGE, "-c");
    check_refused("MEMLEAK@5", NULL, ERR_RANGE, "takes no period");
}

static void test_refusals_of_perf(void **state)
{
    (void)state;
    need_perf();
    check_refused("task-clock@1000", NULL, ERR_RANGE, "a number without a unit is nanoseconds here");
    check_refused("cpu-clock@199999", NULL, ERR_RANGE, "write for example cpu-clock@1000000, cpu-clock@1ms");
    check_refused("cpu-clock@f5001", NULL, ERR_RANGE, "too short");
    check_refused("{page-faults@1,task-clock@1000}", NULL, ERR_RANGE, "too short");
    check_refused("page-faults@2ms", NULL, ERR_USAGE, "counts events, not time");
    check_refused("FAULTS", "2ms", ERR_USAGE, "FAULTS counts events, not time");
}

/* A bare number behind one of our clocks is microseconds, as HPCToolkit's; perf's clocks keep perf's unit. */
static void test_units(void **state)
{
    static const struct {
        const char *event, *count;
        uint64_t period_ns;
        bool needs_x86;
    } cases[] = {
        {"CPUTIME@5000", NULL, 5000000, false},
        {"CPUTIME@200", NULL, 200000, false},
        {"CPUTIME@f5000", NULL, 200000, false},
        {"CPUTIME@250000ns", NULL, 250000, false},
        {"CPUTIME@1000s", NULL, UINT64_C(1000000000000), false},
        {"CPUTIME", "3000", 3000000, false},
        {"CPUTIME", "3ms", 3000000, false},
        {"EADDR@20000", NULL, 20000000, true},
        {"datacentric@500", NULL, 500000, true},
        {"datacentric", "2ms", 2000000, true},
        {"task-clock@200000", NULL, 200000, false},
        {"cpu-clock@2ms", NULL, 2000000, false},
        {"task-clock", "2ms", 2000000, false},
    };
    (void)state;
    need_perf();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct source_plan plan;
        struct error err;
#ifndef __x86_64__
        if (cases[i].needs_x86)
            continue;
#endif
        if (plan_of(&cases[i].event, 1, cases[i].count, &plan, &err) != 0)
            fail_msg("%s: %s", cases[i].event, err.text);
        assert_int_equal(plan.events[0].attr.sample_period, cases[i].period_ns);
    }
    const char *const wallclock[] = {"REALTIME@5000"};
    struct source_plan plan;
    struct error err;
    assert_int_equal(plan_of(wallclock, 1, NULL, &plan, &err), 0);
    assert_int_equal(plan.events[0].timer_interval_ns, 5000000);
    assert_float_equal(plan.events[0].scale, 5000, 0);
}

static void test_near_names(void **state)
{
    char text[256];
    (void)state;
    assert_int_equal(near_name_distance("kitten", "sitting", 5), 3);
    assert_int_equal(near_name_distance("", "abc", 5), 3);
    assert_int_equal(near_name_distance("ABC", "abc", 5), 0);
    assert_int_equal(near_name_distance("abcdef", "uvwxyz", 2), 3);
    near_name_list("FAULT", text, sizeof text);
    assert_non_null(strstr(text, "FAULTS"));
    near_name_list("NOPE", text, sizeof text);
    assert_string_equal(text, ""); /* SPE is half another name */
    near_name_list("x", text, sizeof text);
    assert_null(strstr(text, "datacentric"));
}

static void test_probes_tell_why_not(void **state)
{
    struct perf_event_attr attr;
    struct source_probe probe;
    (void)state;
    source_attr_init(&attr, 0x7ffffff0, 0);
    source_probe_perf(&attr, false, &probe);
    assert_false(probe.works);
    assert_non_null(strstr(probe.reason, "perf_event_open: E"));
    assert_non_null(strstr(probe.reason, "perf_event_paranoid"));
    assert_string_not_equal(probe.fix, "");
    for (const struct sample_source *const *source = source_table(); *source; source++) {
        (*source)->probe(&probe);
        assert_string_not_equal(probe.reason, "");
        assert_string_not_equal((*source)->summary, "");
    }
}

static bool refuse_call(uint32_t number, uint32_t action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a child whose perf_event_open is refused: status 0 when the plan is a timer and the warning says why. */
static int plan_under_refusal(uint32_t action, const char *expected)
{
    static const char *const clock[] = {"CPUTIME"};
    static const char *const faults[] = {"FAULTS"};
    struct source_plan plan;
    struct error err;
    if (!refuse_call(SYS_perf_event_open, action))
        return 77;
    if (plan_of(clock, 1, NULL, &plan, &err) != 0 || !(plan.events[0].flags & SOURCE_TIMER) ||
        !(plan.events[0].flags & SOURCE_WEIGHTED) || plan.events[0].timer_interval_ns < 1000000)
        return 1;
    if (!strstr(plan.warning, expected) || !strstr(plan.warning, "seccomp"))
        return 2;
    if (plan_of(faults, 1, NULL, &plan, &err) != ERR_UNSUPPORTED || !strstr(err.text, "seccomp"))
        return 3;
    if (plan_of(NULL, 0, NULL, &plan, &err) != 0 || !plan.wants_datacentric || !strstr(plan.choice, "FAULTS cannot"))
        return 4;
    return 0;
}

/* In a child that cannot fork: status 0 when an event with its ring works, and leaves nothing open. */
static int try_without_fork(uint32_t action, const char *unused)
{
    struct source_probe probe;
    struct perf_event_attr attr;
    int before = dup(0), after;
    (void)unused;
    close(before);
    if (!refuse_call(SYS_clone, action) || fork() >= 0)
        return 77;
    source_clock_attr(1000000, &attr);
    source_probe_perf(&attr, true, &probe);
    after = dup(0); /* the lowest free number */
    return probe.works && after == before ? 0 : 1;
}

static void check_child(int (*run)(uint32_t, const char *), uint32_t action, const char *expected)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(run(action, expected));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("SKIP: seccomp filters cannot be installed here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void test_timers_where_perf_is_refused(void **state)
{
    (void)state;
    need_software_addresses();
    need_perf();
    check_child(plan_under_refusal, SECCOMP_RET_ERRNO | 1, "EPERM");
    check_child(plan_under_refusal, SECCOMP_RET_ERRNO | 38, "ENOSYS");
    check_child(plan_under_refusal, SECCOMP_RET_KILL_PROCESS, "SIGSYS");
}

static void test_nothing_stays_open(void **state)
{
    (void)state;
    need_perf();
    check_child(try_without_fork, SECCOMP_RET_ERRNO | EAGAIN, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_bad_events),
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_attrs),
        cmocka_unit_test(test_every_fault),
        cmocka_unit_test(test_datacentric_is_the_default),
        cmocka_unit_test(test_several_events),
        cmocka_unit_test(test_same_event_again),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refusals_of_perf),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_near_names),
        cmocka_unit_test(test_probes_tell_why_not),
        cmocka_unit_test(test_nothing_stays_open),
        cmocka_unit_test(test_timers_where_perf_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
