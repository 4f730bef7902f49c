/* SPDX-License-Identifier: BSD-3-Clause */
/* Which names a misspelt one is like, and what a message says of them. */
#include "base/spelling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_distance(void **state)
{
    static const char long_name[SPELLING_MAX_BYTES + 2] = "";
    (void)state;
    assert_int_equal(spelling_distance("time", 4, "time", 4), 0);
    assert_int_equal(spelling_distance("tmie", 4, "TIME", 4), 2);
    assert_int_equal(spelling_distance("", 0, "abc", 3), 3);
    assert_int_equal(spelling_distance("kitten", 6, "sitting", 7), 3);
    assert_true(spelling_distance(long_name, SPELLING_MAX_BYTES + 1, "a", 1) == SIZE_MAX);
}

static void expect(const char *word, const char *const *names, size_t n, const char *expected)
{
    struct buf out = {0};
    spelling_suggest(&out, word, names, n);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
}

static void test_suggest(void **state)
{
    static const char *const names[] = {"loads", "time (inc)", "MEM-Load", "time", "MEM-hitm", "x"};
    const char *many[30];
    for (size_t i = 0; i < 30; i++)
        many[i] = "x";
    (void)state;
    expect("tmie", names, 6, "; did you mean 'time'?");
    expect("time (incl)", names, 6, "; did you mean 'time (inc)' or 'time'?");
    expect("mem_load", names, 6, "; did you mean 'MEM-Load'?");
    expect("mem", names, 6, "; did you mean 'MEM-Load' or 'MEM-hitm'?");
    expect("y", names + 5, 1, "; there are: 'x'");
    expect("cycles", names, 0, "; there are none");
    expect(
        "cycles", many, 26,
        "; there are: 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', "
        "'x', 'x', 'x', 'x', 'x' and 2 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distance), cmocka_unit_test(test_suggest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
