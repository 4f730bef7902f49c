/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists in the format of /proc/kallsyms: what holds an address, where it ends, and lists that show nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "symnames/symnames.h"

static struct kernel_names *read_text(const char *text)
{
    char path[] = "kallsyms-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    struct kernel_names *names = kernel_names_read(path);
    (void)unlink(path);
    return names;
}

static void expect(const struct kernel_names *names, uint64_t address, const char *name, uint64_t start, uint64_t end)
{
    uint64_t found_start = 0, found_end = 0;
    const char *found = kernel_names_find(names, address, &found_start, &found_end);
    assert_non_null(found);
    assert_string_equal(found, name);
    assert_int_equal(found_start, start);
    assert_int_equal(found_end, end);
}

static void test_functions(void **state)
{
    (void)state;
    uint64_t start, end;
    struct kernel_names *names = read_text("0000000000000010 A per_cpu\n"
                                           "ffffffff81000000 T first\n"
                                           "ffffffff81000000 t alias\n"
                                           "ffffffff81000400 D data\n"
                                           "ffffffff81000100 t second\n"
                                           "ffffffff81000200 D at_once\n"
                                           "ffffffff81000200 W third\n"
                                           "ffffffffc0000000 t last\t[module]\n");
    assert_non_null(names);
    expect(names, 0xffffffff81000000, "first", 0xffffffff81000000, 0xffffffff81000100);
    expect(names, 0xffffffff810000ff, "first", 0xffffffff81000000, 0xffffffff81000100);
    expect(names, 0xffffffff81000100, "second", 0xffffffff81000100, 0xffffffff81000200);
    expect(names, 0xffffffff810003ff, "third", 0xffffffff81000200, 0xffffffff81000400);
    expect(names, 0xffffffffc0000001, "last", 0xffffffffc0000000, 0xffffffffc0100000);
    assert_null(kernel_names_find(names, 0xffffffff81000400, &start, &end));
    assert_null(kernel_names_find(names, 0xffffffffc0100000, &start, &end));
    assert_null(kernel_names_find(names, 8, &start, &end));
    kernel_names_free(names);
}

static void test_nothing(void **state)
{
    (void)state;
    uint64_t start, end;
    assert_null(read_text("0000000000000000 T first\n0000000000000000 t second\n"));
    assert_null(read_text("no list of symbols\n"));
    assert_null(kernel_names_read("does-not-exist"));
    assert_null(kernel_names_find(NULL, 0xffffffff81000000, &start, &end));
    kernel_names_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
