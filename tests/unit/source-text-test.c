/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of structure/names/source-text.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "structure/names/source-text.h"

static char directory[] = "/tmp/source-text-test.XXXXXX";
static char path[64];

static const char text[] = "int f(void)\n"
                           "{\n"
                           "    double *a = // here\n"
                           "        malloc(n *\n"
                           "               2); b = 1;\n"
                           "    puts(\"//\"); /* end */\n"
                           "    fill(/* the, last */ a, '\"', \"/*\", /* one */ b); /* x */ // y\n"
                           "    /* only */\n"
                           "}\n"
                           "last";

static int make_file(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    (void)snprintf(path, sizeof path, "%s/x.c", directory);
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    (void)fputs(text, file);
    return fclose(file);
}

static int remove_file(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(directory);
}

static void test_lines(void **state)
{
    (void)state;
    struct source_text *source = source_text_new(NULL, NULL);
    assert_string_equal(source_text_line(source, path, 1), "int f(void)");
    assert_string_equal(source_text_line(source, path, 10), "last");
    assert_null(source_text_line(source, path, 11));
    assert_null(source_text_line(source, path, 0));
    assert_null(source_text_line(source, "/does/not/exist.c", 1));
    assert_null(source_text_line(source, NULL, 1));
    source_text_free(source);
}

static void check_statement(uint32_t line, uint32_t column, const char *expected, const char *at)
{
    struct source_text *source = source_text_new(NULL, NULL);
    struct buf statement = {0};
    size_t offset = 0;
    assert_true(source_text_statement(source, path, line, column, &statement, &offset));
    assert_string_equal(statement.data, expected);
    assert_ptr_equal(statement.data + offset, strstr(statement.data, at));
    buf_fini(&statement);
    source_text_free(source);
}

static void test_statements(void **state)
{
    (void)state;
    static const char joined[] = "double *a = malloc(n * 2); b = 1; ";
    check_statement(4, 9, joined, "malloc");
    check_statement(3, 5, joined, "double");
    check_statement(5, 20, joined, "b = 1");
    check_statement(7, 26, "fill(                a, ' ', \"  \",           b); ", "a, '");
    check_statement(6, 0, "puts(\"  \"); ", "puts");
}

static void test_found_elsewhere(void **state)
{
    (void)state;
    char rule[96];
    (void)snprintf(rule, sizeof rule, "/old/place=%s", directory);
    const char *const search[] = {"/does/not/exist", directory, NULL}, *const replace[] = {"/a=/b", rule, NULL};
    struct source_text *by_search = source_text_new(search, NULL), *by_rule = source_text_new(NULL, replace);
    assert_string_equal(source_text_line(by_search, "/gone/tree/src/x.c", 10), "last");
    assert_null(source_text_line(by_search, "/gone/tree/src/y.c", 10));
    assert_string_equal(source_text_line(by_rule, "/old/place/x.c", 10), "last");
    assert_null(source_text_line(by_rule, "/other/place/x.c", 8));
    source_text_free(by_search);
    source_text_free(by_rule);
}

/* Whatever a name says, it leads to no file outside of the directory that is searched. */
static void test_inside(void **state)
{
    (void)state;
    char below[64], rule[96];
    (void)snprintf(below, sizeof below, "%s/below", directory);
    (void)snprintf(rule, sizeof rule, "/old=%s", below);
    assert_int_equal(mkdir(below, 0755), 0);
    const char *const search[] = {below, NULL}, *const replace[] = {rule, NULL};
    struct source_text *source = source_text_new(search, replace);
    assert_null(source_text_line(source, "/gone/../x.c", 1));
    assert_null(source_text_line(source, "../x.c", 1));
    assert_null(source_text_line(source, "/gone/a/../../../x.c", 1));
    assert_null(source_text_line(source, "/old/../x.c", 1));
    assert_null(source_text_line(source, "/dev/zero", 1));
    assert_int_equal(symlink("../x.c", strcat(below, "/x.c")), 0);
    below[strlen(below) - 4] = '\0';
    assert_null(source_text_line(source, "/gone/x.c", 1));
    source_text_free(source);
    assert_int_equal(unlink(strcat(below, "/x.c")), 0);
    below[strlen(below) - 4] = '\0';
    assert_int_equal(rmdir(below), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_found_elsewhere),
        cmocka_unit_test(test_inside),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
