/* SPDX-License-Identifier: BSD-3-Clause */
/* Periods, frequencies and terms of the sources of hardware addresses on the machines that have them, and the size of
 * AUX areas. The whole attributes are compared by tests/golden/machines.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "../lib/unpacked.h"
#include "sampling/machine.h"
#include "sampling/probe.h"
#include "sampling/source.h"

/* machine: the name of a text, or TEXT/NAME of one with several. */
static void use(const char *machine)
{
    static char dir[PATH_MAX], table[PATH_MAX];
    char name[128];
    const char *in = strchrnul(machine, '/');
    struct error err = {0};
    const char *source = getenv("LOCUS_SRCDIR");
    (void)snprintf(name, sizeof name, "machines/%.*s", (int)(in - machine), machine);
    unpacked_golden(name, dir);
    (void)snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "%s", in);
    if (machine_use(dir, &err) != 0)
        fail_msg("%s", err.text);
    (void)snprintf(table, sizeof table, "%s/src/sampling/pmu-events.txt", source ? source : ".");
    (void)setenv("HPCRUN_PMU_TABLE", table, 1);
}

static int plan(const char *event, const char *count, struct source_plan *plan, struct error *err)
{
    *err = (struct error){0};
    return source_plan_events(&event, 1, count, plan, err);
}

/* The plan must be refused with this code and a sentence that says why. */
static void refuses(const char *machine, const char *event, int code, const char *why)
{
    struct source_plan found;
    struct error err;
    use(machine);
    int status = plan(event, NULL, &found, &err);
    if (status != code || !strstr(err.text, why))
        fail_msg("%s on %s: status %d (%s), not %d with '%s'", event, machine, status, err.text, code, why);
}

/* period: sample_period, or with f the frequency; warning: a part of the plan's warning, "" for none. */
static void gives(const char *machine, const char *event, const char *count, uint64_t period, bool is_frequency,
                  const char *warning)
{
    struct source_plan found;
    struct error err;
    use(machine);
    if (plan(event, count, &found, &err) != 0)
        fail_msg("%s on %s: %s", event, machine, err.text);
    const struct source_event *row = &found.events[0];
    assert_int_equal(row->attr.freq, is_frequency);
    assert_int_equal(is_frequency ? row->attr.sample_freq : row->attr.sample_period, period);
    assert_true(is_frequency ? row->scale == 1 : row->scale == (double)period);
    assert_int_equal((row->flags & 1) != 0, is_frequency);
    if (warning[0] ? !strstr(found.warning, warning) : found.warning[0] != '\0')
        fail_msg("%s on %s warns: '%s', not '%s'", event, machine, found.warning, warning);
}

static void test_ibs_rates(void **state)
{
    (void)state;
    gives("zen4", "IBS", NULL, 2000000, false, "");
    gives("zen4", "ibs@160", NULL, 160, false, "");
    gives("zen4", "IBS@100001", NULL, 100000, false, "steps of 16");
    gives("zen4", "IBS@f1000", NULL, 1000, true, "");
    gives("zen4", "IBS", "500000", 500000, false, "");
    gives("zen4", "IBS,l3missonly", NULL, 128000, false, "");
    gives("zen5", "IBS,ldlat=128", NULL, 128000, false, "");
    refuses("zen4", "IBS@128", ERR_RANGE, "144");
    refuses("zen4", "IBS@f100001", ERR_RANGE, "perf_event_max_sample_rate");
}

static void test_ibs_terms(void **state)
{
    struct source_plan found;
    struct error err;
    (void)state;
    use("zen5");
    assert_int_equal(plan("IBS,ldlat=256,l3missonly", NULL, &found, &err), 0);
    assert_int_equal(found.events[0].attr.config, 1ull << 19 | 1ull << 16);
    assert_int_equal(found.events[0].attr.config1, 256);
    assert_int_equal(found.events[0].attr.config2, 1);
    assert_int_equal(plan("IBS,large@100000", NULL, &found, &err), 0);
    assert_int_equal(found.events[0].attr.write_backward, 0);
    assert_int_equal(found.events[0].attr.watermark, 1);
    assert_int_equal(found.events[0].attr.wakeup_watermark, found.events[0].ring_bytes / 2);
    refuses("zen5", "IBS,ldlat=127", ERR_RANGE, "128 to 2048");
    refuses("zen5", "IBS,ldlat=2049", ERR_RANGE, "128 to 2048");
    refuses("zen5", "IBS,ldlat", ERR_USAGE, "ldlat");
    refuses("zen5", "IBS,rand_en", ERR_USAGE, "l3missonly");
    refuses("zen4", "IBS,ldlat=128", ERR_UNSUPPORTED, "Zen 5");
    refuses("zen2", "IBS,l3missonly", ERR_UNSUPPORTED, "Zen 4");
}

static void test_spe_rates(void **state)
{
    (void)state;
    gives("neoverse-n1", "SPE", NULL, 4096, false, "");
    gives("neoverse-n1", "SPE@1024", NULL, 1024, false, "");
    gives("neoverse-n1", "SPE@5000", NULL, 4864, false, "steps of 256");
    gives("neoverse-n1", "SPE", "f300", 4096, false, "does not support frequencies");
    refuses("neoverse-n1", "SPE@768", ERR_RANGE, "1024");
    refuses("neoverse-n1", "SPE@4294967296", ERR_RANGE, "4294967040");
    refuses("neoverse-n1", "SPE@f300", ERR_RANGE, "fixed period");
    refuses("made-up-two-spe", "SPE@1024", ERR_RANGE, "2048");
}

static void test_spe_terms(void **state)
{
    struct source_plan found;
    struct error err;
    (void)state;
    use("neoverse-v2");
    assert_int_equal(plan("SPE,min_latency=40,event_filter=0x8", NULL, &found, &err), 0);
    assert_int_equal(found.events[0].attr.config2, 40);
    assert_int_equal(found.events[0].attr.config1, 8);
#ifdef PERF_ATTR_SIZE_VER8
    assert_int_equal(plan("SPE,inv_event_filter=0x20", NULL, &found, &err), 0);
    assert_int_equal(found.events[0].attr.config3, 0x20);
#else
    refuses("neoverse-v2", "SPE,inv_event_filter=0x20", ERR_UNSUPPORTED, "config3");
#endif
    refuses("neoverse-v2", "SPE,min_latency=4096", ERR_RANGE, "min_latency");
    refuses("neoverse-n1", "SPE,inv_event_filter=2", ERR_UNSUPPORTED, "inv_event_filter");
}

static void test_two_units(void **state)
{
    struct source_plan found;
    struct error err;
    (void)state;
    use("made-up-two-spe");
    assert_int_equal(plan("SPE", NULL, &found, &err), 0);
    assert_int_equal(found.n_events, 2);
    assert_string_equal(found.events[0].metric, "SPE (arm_spe_0)");
    assert_string_equal(found.events[1].metric, "SPE (arm_spe_1)");
    assert_int_not_equal(found.events[0].attr.type, found.events[1].attr.type);
}

static void test_marked(void **state)
{
    struct source_plan kernel, table;
    struct error err;
    (void)state;
    gives("power9", "MRK", NULL, 1000, true, "");
    gives("power10", "MRK@100003", NULL, 100003, false, "");
    refuses("power9", "MRK@99", ERR_RANGE, "100");
    refuses("situations/power9-lpar", "MRK", ERR_UNSUPPORTED, "PMU");
    use("power9");
    assert_int_equal(plan("MRK", NULL, &kernel, &err), 0);
    use("situations/power9-old-kernel");
    assert_int_equal(plan("MRK", NULL, &table, &err), 0);
    assert_int_equal(kernel.n_events, 2);
    assert_int_equal(table.n_events, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(kernel.events[i].attr.config, table.events[i].attr.config);
        assert_string_equal(kernel.events[i].metric, table.events[i].metric);
    }
    assert_string_equal(kernel.events[0].metric, "PM_MRK_INST_CMPL/0x34340");
}

/* Elsewhere each of them says whose it is. */
static void test_foreign(void **state)
{
    (void)state;
    refuses("power9", "IBS", ERR_UNSUPPORTED, "AMD");
    refuses("zen4", "SPE", ERR_UNSUPPORTED, "Arm");
    refuses("neoverse-n1", "MRK", ERR_UNSUPPORTED, "POWER");
}

static struct aux_size choose(struct aux_limits limits)
{
    struct aux_size size;
    limits.n_areas = limits.n_areas ? limits.n_areas : 1;
    aux_size_choose(&limits, &size);
    return size;
}

static void test_aux_size(void **state)
{
    (void)state;
    struct aux_size size =
        choose((struct aux_limits){.page_bytes = 4096, .n_cpus = 8, .mlock_kb = 516, .memlock_bytes = 65536});
    assert_int_equal(size.aux_bytes, 32 * 4096);
    assert_int_equal(size.ring_bytes, 4096);
    assert_int_equal(size.n_threads, (8 * 516 + 64) / (128 + 16));
    /* 1 MiB for each of 80 threads would be more than 80 x 576 KiB. */
    size = choose((struct aux_limits){.page_bytes = 65536, .n_cpus = 80, .mlock_kb = 576, .memlock_bytes = 8 << 20});
    assert_int_equal(size.aux_bytes, 256 << 10);
    assert_true(size.n_threads >= 80);
    size = choose((struct aux_limits){
        .page_bytes = 65536, .n_cpus = 80, .mlock_kb = 576, .memlock_bytes = 65536, .is_unlimited = true});
    assert_int_equal(size.aux_bytes, 1 << 20);
    assert_true(size.n_threads == UINT64_MAX);
    size = choose((struct aux_limits){
        .page_bytes = 4096, .n_cpus = 4, .mlock_kb = 516, .memlock_bytes = 65536, .hardware_bytes = 65536});
    assert_int_equal(size.aux_bytes, 65536);
    size = choose((struct aux_limits){.page_bytes = 4096, .n_cpus = 2, .mlock_kb = 0, .memlock_bytes = 65536});
    assert_int_equal(size.aux_bytes, 16384);
    assert_int_equal(size.n_threads, 2);
    size = choose(
        (struct aux_limits){.page_bytes = 4096, .n_cpus = 1, .n_areas = 2, .mlock_kb = 0, .memlock_bytes = 32768});
    assert_int_equal(size.aux_bytes, 0);
    assert_int_equal(size.needed_bytes, 2 * (16384 + 8192) + 8192);
}

static void test_aux_limits(void **state)
{
    struct aux_limits limits;
    (void)state;
    use("neoverse-n1");
    aux_limits_read(&limits);
    assert_int_equal(limits.page_bytes, 65536);
    assert_int_equal(limits.n_cpus, 80);
    assert_int_equal(limits.mlock_kb, 576);
    assert_int_equal(limits.memlock_bytes, 8388608);
    assert_false(limits.is_unlimited);
    use("situations/zen2-per-cpu");
    aux_limits_read(&limits);
    assert_int_equal(limits.n_cpus, 256);
    assert_true(limits.is_unlimited);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ibs_rates), cmocka_unit_test(test_ibs_terms), cmocka_unit_test(test_spe_rates),
        cmocka_unit_test(test_spe_terms), cmocka_unit_test(test_two_units), cmocka_unit_test(test_marked),
        cmocka_unit_test(test_foreign),   cmocka_unit_test(test_aux_size),  cmocka_unit_test(test_aux_limits),
    };
    return cmocka_run_group_tests(tests, NULL, unpacked_remove);
}
