/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of table/table.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>

#include "table/table.h"

static const struct column inner_columns[] = {{"line", NULL, CELL_COUNT}, {"file", NULL, CELL_TEXT | COLUMN_LEFT_OUT}};
static const struct column columns[] = {
    {"name", "name", CELL_TEXT},
    {"share", "share", CELL_PERCENT},
    {"agree", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_4_DIGITS},
    {"bytes", "bytes", CELL_WORD},
    {"address", NULL, CELL_ADDRESS},
    {"took", "took", CELL_SPAN | COLUMN_NO_JSON},
    {"bins", NULL, CELL_WORDS | COLUMN_NO_CSV},
    {"places", NULL, CELL_TABLE | COLUMN_NO_CSV},
};

enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* A row of all that is known, and one of nothing; of the second, one cell is a NAN and one a missing text. */
static void fill(struct table *table)
{
    static const uint64_t bins[] = {3, 0, 1};
    *table = (struct table){.columns = columns, .n_columns = N_COLUMNS};
    table_put_text(table, "a,b");
    table_put_number(table, 12.5);
    table_put_number(table, 0.25);
    table_put_word(table, UINT64_MAX);
    table_put_word(table, 0x40);
    table_put_count(table, 1500);
    table_put_words(table, bins, 3);
    struct table *places = table_put_table(table, inner_columns, 2);
    assert_non_null(places);
    for (int line = 7; line < 9; line++) {
        table_put_count(places, line);
        table_put_text(places, line == 7 ? "x.c" : NULL);
    }
    table_put_text(table, NULL);
    table_put_number(table, NAN);
    for (size_t i = 2; i < N_COLUMNS; i++)
        table_put_absent(table);
    assert_false(table->failed);
    assert_int_equal(table_rows(table), 2);
}

static void expect(void (*print)(const struct table *, struct buf *), const char *expected)
{
    struct table table;
    struct buf out = {0};
    fill(&table);
    print(&table, &out);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
    table_fini(&table);
    assert_int_equal(table_rows(&table), 0);
}

static void test_text(void **state)
{
    (void)state;
    expect(table_print_text, "name   share                 bytes    took\n"
                             "a,b   12.5 %  18446744073709551615  1.5 us\n"
                             "-          -                     -       -\n");
}

static void test_csv(void **state)
{
    (void)state;
    expect(table_print_csv, "name,share,agree,bytes,address,took\n"
                            "\"a,b\",12.500,0.2500,18446744073709551615,0x40,1500\n"
                            ",,,,,\n");
}

static void print_json(const struct table *table, struct buf *out)
{
    table_print_json(table, "\n", out);
}

static void test_json(void **state)
{
    (void)state;
    expect(print_json, "[\n{\"name\": \"a,b\", \"share\": 12.5, \"agree\": 0.25, \"bytes\": \"18446744073709551615\", "
                       "\"address\": 64, \"bins\": [3, 0, 1], "
                       "\"places\": [{\"line\": 7, \"file\": \"x.c\"}, {\"line\": 8}]},\n"
                       "{\"name\": null, \"share\": null, \"bytes\": null, \"address\": null, \"bins\": null, "
                       "\"places\": null}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_csv),
                                       cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
