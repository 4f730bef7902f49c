/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of how a program is told to do without generated code (analysis/report/report.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analysis/report/report.h"

static void test_interpreters(void **state)
{
    (void)state;
    assert_string_equal(report_without_jit("java"), "java -Xint");
    assert_string_equal(report_without_jit("java-17"), "java -Xint");
    assert_string_equal(report_without_jit("ruby3.1"), "ruby --disable-jit");
    assert_string_equal(report_without_jit("luajit-2.1.0-beta3"), "luajit -joff");
    assert_string_equal(report_without_jit("nodejs"), "nodejs --jitless");
    assert_string_equal(report_without_jit("d8"), "d8 --jitless");
}

/* A name that merely begins like that of an interpreter is another program's. */
static void test_others(void **state)
{
    (void)state;
    static const char *const names[] = {"javac", "d8x", "nodemon", "denote", "java-config", "phpize", "rubyfmt", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(report_without_jit(names[i]));
    assert_null(report_without_jit(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interpreters), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
