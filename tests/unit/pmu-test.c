/* SPDX-License-Identifier: BSD-3-Clause */
/* Described machines, formats of PMUs, terms, modifiers, groups, and which answer an opens file gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine-files.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"
#include "sampling/probe.h"

static int begin(void **state)
{
    (void)state;
    (void)machine_files_begin();
    machine_files_put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
                                      "model name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\nstepping\t: 4\n"
                                      "flags\t\t: fpu pti ht\n");
    machine_files_put_pmu("cpu", "type", "4");
    machine_files_put_pmu("cpu", "caps/max_precise", "2");
    machine_files_put_pmu("cpu", "format/event", "config:0-7,32-35");
    machine_files_put_pmu("cpu", "format/umask", "config:8-15");
    machine_files_put_pmu("cpu", "format/edge", "config:18");
    machine_files_put_pmu("cpu", "format/ldlat", "config1:0-15");
    machine_files_put_pmu("cpu", "format/wide", "config2:0-63");
    machine_files_put_pmu("cpu", "format/torn", "config:8-");
    machine_files_put_pmu("cpu", "format/later", "config9:0-3");
    machine_files_put_pmu("cpu", "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3");
    machine_files_put_pmu("cpu", "events/needs", "event=0x1,umask=?");
    machine_files_put_pmu("cpu", "events/mem-loads.scale", "2.5");
    machine_files_put_pmu("cpu", "events/mem-loads.unit", "MiB");
    machine_files_put_pmu("arm_spe_0", "type", "9");
    machine_files_put_pmu("arm_spe_0", "cpumask", "0-3");
    machine_files_put_pmu("arm_spe_0", "format/load_filter", "config:33");
    return 0;
}

static int end(void **state)
{
    (void)state;
    machine_files_end();
    return 0;
}

static struct perf_event_attr encode(const char *event)
{
    struct perf_event_attr attr;
    struct error err = {0};
    source_attr_init(&attr, 77, 0xdead);
    int status = pmu_encode(event, &attr, &err);
    if (status != 0)
        fail_msg("%s: %s", event, err.text);
    return attr;
}

static void check_refused(const char *event, int code, const char *part)
{
    struct perf_event_attr attr, before;
    struct error err = {0};
    source_attr_init(&attr, 77, 0xdead);
    before = attr;
    assert_int_equal(pmu_encode(event, &attr, &err), code);
    if (!strstr(err.text, part))
        fail_msg("%s: '%s' does not contain '%s'", event, err.text, part);
    assert_memory_equal(&attr, &before, sizeof attr);
}

static void check_words(const char *event, uint32_t type, uint64_t config, uint64_t config1, uint64_t config2)
{
    struct perf_event_attr attr = encode(event);
    if (attr.type != type || attr.config != config || attr.config1 != config1 || attr.config2 != config2)
        fail_msg("%s: type %u config %#llx config1 %#llx config2 %#llx", event, attr.type,
                 (unsigned long long)attr.config, (unsigned long long)attr.config1, (unsigned long long)attr.config2);
}

static void test_formats(void **state)
{
    (void)state;
    check_words("cpu/event=0xab/", 4, 0xab, 0, 0);
    check_words("cpu/event=0xfab,umask=0x12,edge/", 4, 0xf000412ab, 0, 0);
    check_words("cpu/edge=1,edge=0/", 4, 0, 0, 0);
    check_words("cpu/wide=0xffffffffffffffff/", 4, 0, 0, UINT64_MAX);
    check_words("cpu/config=0x1000000001,config1=0x2,config2=3/", 4, 0x1000000001, 2, 3);
    check_words("cpu//", 4, 0, 0, 0);
    check_words("arm_spe_0/load_filter=1/", 9, UINT64_C(1) << 33, 0, 0);
    check_words("arm_spe/load_filter/", 9, UINT64_C(1) << 33, 0, 0);
}

static void test_named_events(void **state)
{
    (void)state;
    check_words("mem-loads", 4, 0x1cd, 3, 0);
    check_words("cpu/mem-loads/", 4, 0x1cd, 3, 0);
    check_words("cpu/mem-loads,ldlat=30/", 4, 0x1cd, 30, 0);
    check_words("cpu/ldlat=30,mem-loads/", 4, 0x1cd, 30, 0);
    check_words("cpu/mem-loads,ldlat=30,umask=2,ldlat=31/", 4, 0x2cd, 31, 0);
    check_words("cpu/needs,umask=7/", 4, 0x701, 0, 0);
    check_words("r1a8", 4, 0x1a8, 0, 0);
    check_words("perf_raw::r34340401E0", 4, 0x34340401e0, 0, 0);
    check_words("page-faults", 1, 2, 0, 0);
}

static void test_periods_and_labels(void **state)
{
    char label[64];
    struct perf_event_attr attr = encode("cpu/event=1,period=5000,name=mine/");
    (void)state;
    assert_int_equal(attr.sample_period, 5000);
    assert_int_equal(attr.freq, 0);
    attr = encode("cpu/event=1,freq=99/u");
    assert_int_equal(attr.sample_freq, 99);
    assert_int_equal(attr.freq, 1);
    assert_true(pmu_event_label("cpu/event=1,name=mine/p", label, sizeof label));
    assert_string_equal(label, "mine");
    assert_false(pmu_event_label("cpu/event=1/", label, sizeof label));
    assert_false(pmu_event_label("mem-loads", label, sizeof label));
}

static void test_refusals(void **state)
{
    (void)state;
    check_refused("cpu/ldlat=65536/", ERR_RANGE, "ldlat=65536/ does not fit into config1:0-15: at most 65535");
    check_refused("cpu/event=0x1000/", ERR_RANGE, "config:0-7,32-35: at most 4095");
    check_refused("cpu/edge=2/", ERR_RANGE, "config:18: at most 1");
    check_refused("cpu/ldlat=99999999999999999999/", ERR_RANGE, "more than 64 bits");
    check_refused("cpu/lat=3/", ERR_USAGE,
                  "'lat'; similar names: later, ldlat; its terms: edge, event, later, ldlat, "
                  "torn, umask, wide");
    check_refused("cpu/mem-lods/", ERR_USAGE, "similar names: mem-loads; its terms");
    check_refused("cycles,instructions", ERR_USAGE, "give -e for each");
    check_refused("cycls", ERR_USAGE, "similar names: perf::CYCLES");
    check_refused("cpu/ldlat=x/", ERR_USAGE, "'x' is not a number");
    check_refused("cpu/ldlat=-1/", ERR_USAGE, "'-1' is not a number");
    check_refused("cpu/mem-loads.scale/", ERR_USAGE, "mem-loads.scale");
    check_refused("cpu/needs/", ERR_USAGE, "umask=NUMBER");
    check_refused("cpu/torn=1/", ERR_FORMAT, "config:8-");
    check_refused("cpu/later=1/", ERR_UNSUPPORTED, "config9");
    check_refused("ibs_op//", ERR_USAGE, "there is no PMU 'ibs_op' on this machine; it has: arm_spe_0, cpu");
    check_refused("mem-load", ERR_USAGE, "similar names: mem-loads");
    check_refused("../cpu/type", ERR_USAGE, "no");
    check_refused("r123456789abcdef01", ERR_USAGE, "there is no event");
}

/* Letters: user, kernel, hypervisor, host, guest, idle not excluded; then precise, pinned, exclusive, read. */
static void check_modifiers(const char *event, const char *expected)
{
    char text[64];
    struct perf_event_attr attr = encode(event);
    (void)snprintf(
        text, sizeof text, "%s%s%s%s%s%s precise=%u%s%s%s", attr.exclude_user ? "" : "u",
        attr.exclude_kernel ? "" : "k", attr.exclude_hv ? "" : "h", attr.exclude_host ? "" : "H",
        attr.exclude_guest ? "" : "G", attr.exclude_idle ? "" : "i", (unsigned)attr.precise_ip,
        attr.pinned ? " pinned" : "", attr.exclusive ? " exclusive" : "",
        attr.read_format == (PERF_FORMAT_GROUP | PERF_FORMAT_ID) && attr.sample_type & PERF_SAMPLE_READ ? " read" : "");
    if (strcmp(text, expected) != 0)
        fail_msg("%s: '%s' instead of '%s'", event, text, expected);
}

static void test_modifiers(void **state)
{
    (void)state;
    check_modifiers("mem-loads", "uHGi precise=0");
    check_modifiers("mem-loads:u", "uHGi precise=0");
    check_modifiers("mem-loads:k", "kHGi precise=0");
    check_modifiers("mem-loads:uk", "ukHGi precise=0");
    check_modifiers("mem-loads:ukh", "ukhHGi precise=0");
    check_modifiers("mem-loads:p", "uHGi precise=1");
    check_modifiers("mem-loads:pp", "uHGi precise=2");
    check_modifiers("mem-loads:ppp", "uHGi precise=3");
    check_modifiers("mem-loads:P", "uHGi precise=2");
    check_modifiers("mem-loads:upp", "uHGi precise=2");
    check_modifiers("mem-loads:u:pp", "uHGi precise=2");
    check_modifiers("mem-loads:G", "uGi precise=0");
    check_modifiers("mem-loads:H", "uHi precise=0");
    check_modifiers("mem-loads:GH", "uHGi precise=0");
    check_modifiers("mem-loads:I", "uHG precise=0");
    check_modifiers("mem-loads:kDeS", "kHGi precise=0 pinned exclusive read");
    check_modifiers("cpu/mem-loads,ldlat=4/ppu", "uHGi precise=2");
    check_modifiers("cpu/mem-loads/:P", "uHGi precise=2");
    check_modifiers("r1a8:k", "kHGi precise=0");
    check_modifiers("arm_spe//P", "uHGi precise=3");
    assert_true(pmu_wants_highest_precision("cpu/mem-loads/P"));
    assert_true(pmu_wants_highest_precision("r1:uP"));
    assert_false(pmu_wants_highest_precision("cpu/mem-loads/p"));
    assert_false(pmu_wants_highest_precision("skx::PM_P"));
    check_refused("mem-loads:uu", ERR_USAGE, "'uu'");
    check_refused("mem-loads:pppp", ERR_USAGE, "'pppp'");
    check_refused("mem-loads:pP", ERR_USAGE, "'pP'");
    check_refused("mem-loads:", ERR_USAGE, "there is no event");
    check_refused("cpu/mem-loads/z", ERR_USAGE, "'z' are not modifiers");
}

/* Names of the fixture's CPU, not of the one that the test runs on. */
static void test_libpfm4_for_the_fixture(void **state)
{
    struct perf_event_attr attr;
    struct error err;
    (void)state;
    source_attr_init(&attr, 0, 0);
    if (pmu_encode("skx::INST_RETIRED:ANY_P", &attr, &err) != 0) {
        printf("SKIP: this libpfm4 does not know Skylake-SP\n");
        skip();
    }
    check_words("skx::MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=30", 4, 0x1cd, 30, 0);
    check_words("MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=30", 4, 0x1cd, 30, 0);
    check_modifiers("INST_RETIRED:ANY_P:upp", "uHGi precise=2");
    check_modifiers("INST_RETIRED:ANY_P:k:p", "kHGi precise=1");
    check_words("cycles", 0, 0, 0, 0);
    check_words("PAPI_TOT_CYC", 0, 0, 0, 0);
    check_words("papi::papi_tot_ins", 0, 1, 0, 0);
    check_words("PAPI_BR_MSP", 0, 5, 0, 0);
    check_words("PAPI_L1_LDM", 3, 0x10000, 0, 0); /* L1D, read, miss */
    check_words("PAPI_TLB_DM", 3, 0x10003, 0, 0);
    check_words("PAPI_BR_CN", 4, 0x1c4, 0, 0); /* BR_INST_RETIRED:COND */
    check_words("PAPI_L2_TCM", 4, 0x3f24, 0, 0);
    check_refused("PAPI_L1_TCM", ERR_USAGE,
                  "PAPI_L1_TCM is several events here, which are sampled one by one: -e PAPI_L1_DCM -e PAPI_L1_ICM. "
                  "hpcquery makes it of them: --derive \"PAPI_L1_TCM = 'PAPI_L1_DCM' + 'PAPI_L1_ICM'\"");
    check_refused("papi::PAPI_BR_PRC", ERR_USAGE, " = 'BR_INST_RETIRED:COND' - 'BR_MISP_RETIRED:COND'\"");
    check_refused("PAPI_FP_OPS", ERR_USAGE,
                  " + 16 * 'FP_ARITH_INST_RETIRED:512B_PACKED_SINGLE'\""); /* the longest: it has its end */
    check_refused("PAPI_NOTHING", ERR_USAGE, "there is no event");
    check_refused("INST_RETIRE", ERR_USAGE, "similar names: skx::INST_RETIRED");
    check_refused("RETIRED_SSE_AVX_FLOPS", ERR_USAGE, "there is no event");
}

static void check_group(const char *event, const char *expected)
{
    char members[8][256], text[2048] = "";
    struct error err = {0};
    int n = pmu_split_group(event, members, 8, &err);
    if (n < 0)
        fail_msg("%s: %s", event, err.text);
    for (int i = 0; i < n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.255s", i ? " | " : "", members[i]);
    assert_string_equal(text, expected);
}

static void test_groups(void **state)
{
    static const char *const refused[] = {"{a,b", "{a,,b}", "{}", "{a,{b}}", "{a}x", "{a}:z", "{1,2,3,4,5,6,7,8,9}"};
    char members[8][256];
    struct error err;
    (void)state;
    check_group("cycles", "cycles");
    check_group("{a,b}", "a | b");
    check_group("{a}", "a");
    check_group("{a:p,cpu/x,y=1/,c}:u", "a:p:u | cpu/x,y=1/u | c:u");
    check_group("{cpu/mem-loads-aux/,cpu/mem-loads,ldlat=30/P}", "cpu/mem-loads-aux/ | cpu/mem-loads,ldlat=30/P");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        err.text[0] = '\0';
        assert_int_equal(pmu_split_group(refused[i], members, 8, &err), ERR_USAGE);
        assert_string_not_equal(err.text, "");
    }
}

static int try_open(const char *event, unsigned precise, const struct perf_event_attr *leader)
{
    struct perf_event_attr attr = encode(event);
    attr.precise_ip = precise & 3;
    return machine_try_open(&attr, leader);
}

static void test_rules(void **state)
{
    struct perf_event_attr leader = encode("cpu/event=3/");
    (void)state;
    assert_int_equal(try_open("mem-loads", 0, NULL), ENOENT);
    machine_files_put("opens", "# comment\n\nEINVAL type=cpu precise_ip>2 # too precise\n"
                               "EOPNOTSUPP type=cpu precise_ip!=0 config1<4\n"
                               "ENODATA type=cpu config=0x1cd leader=none\n"
                               "EBUSY type=cpu config=0x1cd leader.config=4\n"
                               "ok\ttype=cpu config=0x1cd leader.config=3\n"
                               "EACCES exclude_kernel=0\n"
                               "ok type=arm_spe_0 config&0x200000000\n"
                               "ok type=software");
    assert_int_equal(try_open("mem-loads", 3, NULL), EINVAL);
    assert_int_equal(try_open("mem-loads", 2, NULL), EOPNOTSUPP);
    assert_int_equal(try_open("cpu/mem-loads,ldlat=9/", 2, NULL), ENODATA);
    assert_int_equal(try_open("cpu/mem-loads,ldlat=9/", 2, &leader), 0);
    leader.config = 4;
    assert_int_equal(try_open("cpu/mem-loads,ldlat=9/", 2, &leader), EBUSY);
    assert_int_equal(try_open("page-faults:k", 0, NULL), EACCES);
    assert_int_equal(try_open("page-faults:u", 0, NULL), 0);
    assert_int_equal(try_open("arm_spe/load_filter/", 0, NULL), 0);
    assert_int_equal(try_open("arm_spe//", 0, NULL), ENOENT);
    machine_files_put("opens", "EWHAT type=cpu");
    assert_int_equal(try_open("mem-loads", 0, NULL), EINVAL);
    machine_files_put("opens", "ok no_such_field=1");
    assert_int_equal(try_open("mem-loads", 0, NULL), EINVAL);
}

static void test_probe_by_rules(void **state)
{
    struct perf_event_attr attr = encode("mem-loads");
    struct source_probe probe;
    (void)state;
    machine_files_put("proc/sys/kernel/perf_event_paranoid", "2");
    machine_files_put("opens", "EACCES exclude_kernel=0\nok type=cpu precise_ip=2\nEINVAL type=cpu");
    source_probe_perf(&attr, true, &probe);
    assert_false(probe.works);
    assert_string_equal(probe.reason, "perf_event_open: EINVAL (Invalid argument); perf_event_paranoid 2");
    attr.precise_ip = 2;
    source_probe_perf(&attr, true, &probe);
    assert_true(probe.works);
    attr.exclude_kernel = 0;
    source_probe_perf(&attr, true, &probe);
    assert_false(probe.works);
    assert_non_null(strstr(probe.fix, "perf_event_paranoid=1"));
}

static void test_files(void **state)
{
    struct pmu pmu;
    char text[8];
    (void)state;
    assert_true(machine_is_fixture());
    assert_true(pmu_find("arm_spe_0", &pmu));
    assert_string_equal(pmu.cpus, "0-3");
    assert_false(pmu_find("arm_spe", &pmu));
    assert_false(pmu_find("../cpu", &pmu));
    assert_true(pmu_find("cpu", &pmu));
    assert_int_equal(pmu.max_precise, 2);
    assert_true(pmu_has(&pmu, "events/mem-loads"));
    assert_false(pmu_has(&pmu, "format/swfilt"));
    assert_true(pmu_read(&pmu, "events/mem-loads", text, sizeof text));
    assert_string_equal(text, "event=0");
    assert_int_equal(machine_read_number("/sys/bus/event_source/devices/arm_spe_0/type", -1), 9);
    assert_int_equal(machine_read_number("/sys/nothing", -7), -7);
    assert_false(machine_exists("/proc/self/status"));
}

static bool add_name(const char *name, const char *rest, void *ctx)
{
    (void)strcat(strcat(strcat(ctx, name), rest), ";");
    return true;
}

static bool add_pmu(const struct pmu *pmu, void *ctx)
{
    return add_name(pmu->name, "", ctx);
}

static void test_visits(void **state)
{
    char text[1024] = "";
    struct pmu pmu;
    (void)state;
    pmu_visit(add_pmu, text);
    assert_string_equal(text, "arm_spe_0;cpu;");
    assert_true(pmu_find("cpu", &pmu));
    text[0] = '\0';
    pmu_visit_events(&pmu, add_name, text);
    assert_string_equal(text, "mem-loadsevent=0xcd,umask=0x1,ldlat=3;needsevent=0x1,umask=?;");
}

static void check_cpu(const char *cpuinfo, int vendor, const char *name, unsigned family, unsigned model)
{
    struct machine_cpu cpu;
    machine_files_put("proc/cpuinfo", cpuinfo);
    machine_cpu(&cpu);
    assert_int_equal(cpu.vendor, vendor);
    assert_string_equal(cpu.name, name);
    assert_int_equal(cpu.family, family);
    assert_int_equal(cpu.model, model);
}

static void test_cpus(void **state)
{
    struct machine_cpu cpu;
    (void)state;
    machine_cpu(&cpu);
    assert_int_equal(cpu.vendor, CPU_INTEL);
    assert_int_equal(cpu.stepping, 4);
    assert_false(cpu.is_virtual);
    assert_false(cpu.has_kpti);
    machine_files_put("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI");
    check_cpu("vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name: EPYC\nflags\t\t: a hypervisor b",
              CPU_AMD, "EPYC", 26, 2);
    machine_cpu(&cpu);
    assert_true(cpu.is_virtual);
    assert_true(cpu.has_kpti);
    check_cpu("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800\n"
              "revision\t: 2.2 (pvr 004e 1202)",
              CPU_POWER, "POWER9", 0, 0);
    machine_cpu(&cpu);
    assert_int_equal(cpu.pvr, 0x4e);
    check_cpu("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c", CPU_ARM,
              "Arm Neoverse N1", 0, 0);
    check_cpu("CPU implementer\t: 0x41\nCPU part\t: 0xfff", CPU_ARM, "Arm implementer 0x41 part 0xfff", 0, 0);
    check_cpu("model name\t: something", CPU_UNKNOWN, "", 0, 0);
}

static void test_fields(void **state)
{
    struct perf_event_attr attr = {.type = 9, .freq = 1, .sample_freq = 7, .config1 = 5, .sigtrap = 1};
    struct attr_field fields[ATTR_FIELDS_MAX];
    uint64_t value = 0;
    (void)state;
    unsigned n = attr_fields(&attr, fields);
    assert_true(n > 50);
    assert_string_equal(fields[0].name, "type");
    assert_string_equal(fields[3].name, "sample_freq");
    assert_true(attr_field_get(&attr, "sample_period", &value));
    assert_int_equal(value, 7);
    assert_true(attr_field_get(&attr, "bp_addr", &value));
    assert_int_equal(value, 5);
    assert_true(attr_field_get(&attr, "freq", &value) && value == 1);
    assert_true(attr_field_get(&attr, "sigtrap", &value) && value == 1);
    assert_false(attr_field_get(&attr, "nonsense", &value));
}

static void test_no_machine(void **state)
{
    struct error err = {0};
    (void)state;
    assert_int_equal(machine_use("/no/such/directory", &err), ERR_IO);
    assert_non_null(strstr(err.text, "/no/such/directory"));
    assert_int_equal(machine_use("/dev/null", &err), ERR_IO);
    assert_int_equal(machine_use("/usr/bin", &err), ERR_IO);
    assert_false(machine_is_fixture());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_formats, begin, end),
        cmocka_unit_test_setup_teardown(test_named_events, begin, end),
        cmocka_unit_test_setup_teardown(test_periods_and_labels, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_modifiers, begin, end),
        cmocka_unit_test_setup_teardown(test_libpfm4_for_the_fixture, begin, end),
        cmocka_unit_test_setup_teardown(test_groups, begin, end),
        cmocka_unit_test_setup_teardown(test_rules, begin, end),
        cmocka_unit_test_setup_teardown(test_probe_by_rules, begin, end),
        cmocka_unit_test_setup_teardown(test_files, begin, end),
        cmocka_unit_test_setup_teardown(test_visits, begin, end),
        cmocka_unit_test_setup_teardown(test_cpus, begin, end),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_no_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
