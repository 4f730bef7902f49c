/* SPDX-License-Identifier: BSD-3-Clause */
/* The event table: which row wins, how CPUs of all makers are matched, what is complained of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampling/event.h"

static const struct machine_cpu intel = {.vendor = CPU_INTEL, .family = 6, .model = 250};

static int set_up(void **state)
{
    static char dir[] = "/tmp/locus-event-table-XXXXXX";
    *state = mkdtemp(dir);
    return setenv("XDG_CONFIG_HOME", dir, 1);
}

static int tear_down(void **state)
{
    char path[300];
    static const char *const names[] = {"locus/pmu-events.txt", "locus", "rows", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", (char *)*state, names[i]);
        (void)remove(path);
    }
    return 0;
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/locus", dir);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    if (!strcmp(name, "rows"))
        assert_int_equal(setenv("HPCRUN_PMU_TABLE", path, 1), 0);
}

static void test_last_row_wins(void **state)
{
    struct event_row row;
    char complaints[512];
    assert_false(event_table_find(&intel, "cpu", &row, complaints, sizeof complaints));
    write_file(*state, "locus/pmu-events.txt",
               "# mine\n"
               "intel 0x6 240-249,250 cpu r1c5 - - 5003 address\n"
               "intel 6 250 cpu_core r3c5 - - 5003 address\n"
               "intel 6 * cpu {r1,cpu/config=0x2,config1=LDLAT/} r2c5 12 7/9 source note of several words\n");
    assert_true(event_table_find(&intel, "cpu", &row, complaints, sizeof complaints));
    assert_string_equal(complaints, "");
    assert_string_equal(row.load, "{r1,cpu/config=0x2,config1=LDLAT/}");
    assert_string_equal(row.store, "r2c5");
    assert_int_equal(row.ldlat, 12);
    assert_int_equal(row.load_period, 7);
    assert_int_equal(row.store_period, 9);
    assert_true(row.tells_source);
    assert_non_null(strstr(row.origin, "locus/pmu-events.txt:4"));
    write_file(*state, "rows", "intel 6 250 cpu - r4c5 - 11 address\n");
    assert_true(event_table_find(&intel, "cpu", &row, complaints, sizeof complaints));
    assert_string_equal(row.load, "");
    assert_string_equal(row.store, "r4c5");
    assert_int_equal(row.ldlat, 0);
    assert_int_equal(row.store_period, 11);
    assert_false(row.tells_source);
    assert_true(event_table_find(&intel, "cpu_core", &row, complaints, sizeof complaints));
    assert_string_equal(row.load, "r3c5");
    assert_false(event_table_find(&intel, "cpu_atom", &row, complaints, sizeof complaints));
}

static void test_other_makers(void **state)
{
    static const struct machine_cpu power = {.vendor = CPU_POWER, .pvr = 0x4e, .model = 77};
    static const struct machine_cpu arm = {.vendor = CPU_ARM, .implementer = 0x41, .part = 0xd4f};
    struct event_row row;
    char complaints[512];
    write_file(*state, "rows",
               "power 0x4e * cpu r1 - - 5003 address\r\n"
               "ARM 0x41 0xd4f armv8_pmuv3_0 r2 - - 5003 address\n");
    assert_true(event_table_find(&power, "cpu", &row, complaints, sizeof complaints));
    assert_string_equal(row.load, "r1");
    assert_true(event_table_find(&arm, "armv8_pmuv3_0", &row, complaints, sizeof complaints));
    assert_string_equal(row.load, "r2");
    assert_string_equal(complaints, "");
}

static void test_bad_rows(void **state)
{
    static const char *const bad[] = {
        "intel 6 250 cpu r1 - - 5003",
        "via 6 250 cpu r1 - - 5003 address",
        "intel six 250 cpu r1 - - 5003 address",
        "intel 6 250- cpu r1 - - 5003 address",
        "intel 6 250, cpu r1 - - 5003 address",
        "intel 6 9-8 cpu r1 - - 5003 address",
        "intel 6 250 cpu - - - 5003 address",
        "intel 6 250 cpu r1 - 3 5003 address",
        "intel 6 250 cpu rLDLAT - - 5003 address",
        "intel 6 250 cpu rLDLAT - 65536 5003 address",
        "intel 6 250 cpu rLDLAT - 0 5003 address",
        "intel 6 250 cpu r1 - - 0 address",
        "intel 6 250 cpu r1 - - 5/ address",
        "intel 6 250 cpu r1 - - 5/6/7 address",
        "intel 6 250 cpu r1 - - -5 address",
        "intel 6 250 cpu r1 - - 5003 all",
    };
    struct event_row row;
    char complaints[512], text[32 * 64] = "";
    (void)unsetenv("XDG_CONFIG_HOME");
    assert_int_equal(setenv("HOME", "/nonexistent", 1), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(*state, "rows", bad[i]);
        if (event_table_find(&intel, "cpu", &row, complaints, sizeof complaints))
            fail_msg("'%s' was taken", bad[i]);
        if (!strstr(complaints, "/rows:1: '") || !strstr(complaints, "; the row is left out."))
            fail_msg("'%s': '%s'", bad[i], complaints);
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", bad[i]);
    }
    write_file(*state, "rows", text);
    assert_false(event_table_find(&intel, "cpu", &row, complaints, sizeof complaints));
    assert_string_equal(complaints + strlen(complaints) - strlen(" More rows are left out."),
                        " More rows are left out.");
    assert_int_equal(setenv("HPCRUN_PMU_TABLE", *state, 1), 0);
    assert_false(event_table_find(&intel, "cpu", &row, complaints, sizeof complaints));
    assert_non_null(strstr(complaints, ": Is a directory."));
    assert_int_equal(setenv("HPCRUN_PMU_TABLE", "/nonexistent/table", 1), 0);
    assert_false(event_table_find(&intel, "cpu", &row, complaints, sizeof complaints));
    assert_string_equal(complaints, "HPCRUN_PMU_TABLE=/nonexistent/table: No such file or directory.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_row_wins),
        cmocka_unit_test(test_other_makers),
        cmocka_unit_test(test_bad_rows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
