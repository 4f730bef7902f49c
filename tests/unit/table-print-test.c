/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of table/table.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

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

/* Columns of a list: an object with another one in it, whose members have places of their own in CSV, and a table on
 * lines of its own. Of the second row the inner object is not known, of the third the outer one. */
static void fill_objects(struct table *table, struct column_list *list)
{
    static const struct column first[] = {{"name", "name", CELL_TEXT | COLUMN_QUOTED},
                                          {"loop", NULL, CELL_OBJECT | COLUMN_MEMBERS(4)}};
    static const struct column rest[] = {{"lines", NULL, CELL_TABLE | COLUMN_LINES},
                                         {"fields", NULL, CELL_TABLE | COLUMN_INDENTED}};
    char key[] = "a\"b,";
    *list = (struct column_list){0};
    column_list_add(list, first, 2);
    column_list_make(list, "is_hot", NULL, CELL_FLAG | COLUMN_PLACE(2));
    column_list_make(list, "of", "not in text", CELL_OBJECT | COLUMN_LEFT_OUT | COLUMN_MEMBERS(2));
    column_list_make(list, key, NULL, CELL_NUMBER);
    column_list_make(list, "mean", "of:mean", CELL_COUNT | COLUMN_CSV_TITLE | COLUMN_PLACE(1));
    key[0] = 'x';
    column_list_add(list, rest, 2);
    assert_false(list->failed);
    *table = (struct table){.columns = list->items, .n_columns = list->n};
    for (int i = 0; i < 3; i++) {
        struct buf text = {0};
        buf_printf(&text, "n%d", i);
        table_put_made(table, &text);
        if (i < 2)
            table_put_flag(table, true);
        else
            table_put_absent(table);
        table_put_flag(table, i == 0);
        if (i == 0)
            table_put_flag(table, true);
        else
            table_put_absent(table);
        table_put_number(table, 1.5);
        table_put_count(table, 7);
        for (int k = 0; k < 2 && i == 0; k++) {
            struct table *inner = table_put_table(table, inner_columns, 2);
            table_put_count(inner, 1);
            table_put_text(inner, "x.c");
        }
        if (i > 0)
            table_put_absents(table, 2);
    }
    assert_int_equal(table_rows(table), 3);
}

static void expect_objects(void (*print)(const struct table *, struct buf *), const char *expected)
{
    struct column_list list;
    struct table table;
    struct buf out = {0};
    fill_objects(&table, &list);
    print(&table, &out);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
    table_fini(&table);
    column_list_fini(&list);
}

static void test_objects(void **state)
{
    (void)state;
    expect_objects(table_print_text, "name\nn0\nn1\nn2\n");
    expect_objects(table_print_csv, "name,\"a\"\"b,\",of:mean,is_hot\n"
                                    "\"n0\",1.500,7,1\n\"n1\",1.500,7,0\n\"n2\",1.500,7,0\n");
    expect_objects(print_json,
                   "[\n{\"name\": \"n0\", \"loop\": {\"is_hot\": true, \"of\": {\"a\\\"b,\": 1.5, \"mean\": 7}}, "
                   "\"lines\": [\n{\"line\": 1, \"file\": \"x.c\"}],\n"
                   "  \"fields\": [\n    {\"line\": 1, \"file\": \"x.c\"}]},\n"
                   "{\"name\": \"n1\", \"loop\": {\"is_hot\": false}, \"lines\": null,\n  \"fields\": null},\n"
                   "{\"name\": \"n2\", \"loop\": null, \"lines\": null,\n  \"fields\": null}]");
}

/* Tables in cells: joined, whose rows become lines with the row around them, and rows that follow their row. */
static void test_nested(void **state)
{
    static const struct column list[] = {{"value", NULL, CELL_COUNT}};
    static const struct column pairs[] = {{"from", NULL, CELL_COUNT}, {"to", NULL, CELL_COUNT}};
    static const struct column outer[] = {{"name", NULL, CELL_TEXT},
                                          {"pairs", NULL, CELL_TABLE | COLUMN_JOINED | COLUMN_BARE},
                                          {"list", NULL, CELL_TABLE | COLUMN_BARE},
                                          {"last", NULL, CELL_COUNT | COLUMN_NO_JSON}};
    static const struct column tree[] = {{"line", NULL, CELL_COUNT}, {"rows", NULL, CELL_TABLE | COLUMN_FOLLOWS}};
    struct table table = TABLE_JOINED(outer, pairs), above = TABLE_OF(tree);
    struct buf csv = {0}, json = {0}, members = {0}, lines = {0};
    struct column outer_only[4];
    (void)state;
    memcpy(outer_only, outer, sizeof outer);
    for (int n = 2; n >= 0; n -= 2) {
        table_put_text(&table, n ? "two" : "none");
        struct table *inner = table_put_table(&table, COLUMNS(pairs));
        for (int i = 0; i < n; i++) {
            table_put_count(inner, i);
            table_put_if(inner, i > 0, 10 * i);
        }
        inner = table_put_table(&table, COLUMNS(list));
        for (int i = 0; i < n; i++)
            table_put_count(inner, i);
        table_put_count(&table, 7);
    }
    table_put_absents(&table, 4);
    table_print_csv(&table, &csv);
    assert_string_equal(csv.data, "name,from,to,last\ntwo,0,,7\ntwo,1,10,7\nnone,,,7\n,,,\n");
    table_print_json(&table, "\n", &json);
    assert_string_equal(json.data, "[\n{\"name\": \"two\", \"pairs\": [[0, null], [1, 10]], \"list\": [0, 1]},\n"
                                   "{\"name\": \"none\", \"pairs\": [], \"list\": []},\n"
                                   "{\"name\": null, \"pairs\": null, \"list\": null}]");
    table_print_members(&table, &members);
    assert_string_equal(members.data, "\"name\": \"two\", \"pairs\": [[0, null], [1, 10]], \"list\": [0, 1]");
    for (int i = 1; i < 3; i++) {
        table_put_count(&above, i);
        struct table *below = table_put_table(&above, COLUMNS(tree));
        table_put_count(below, 10 * i);
        table_put_absent(below);
    }
    outer_only[1].kind |= COLUMN_NO_EMPTY;
    table.columns = outer_only;
    table_print_csv(&table, &lines);
    table_print_csv(&above, &lines);
    assert_string_equal(lines.data, "name,from,to,last\ntwo,0,,7\ntwo,1,10,7\n,,,\nline\n1\n10\n2\n20\n");
    struct buf *const all[] = {&csv, &json, &members, &lines};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_fini(all[i]);
    table_fini(&table);
    table_fini(&above);
}

/* --- packed --- */

/* Columns of all types, and three rows: nothing is known of the second one. */
static const struct column packed_columns[] = {
    {"same", "same", CELL_TEXT},
    {"text", NULL, CELL_TEXT},
    {"flag", NULL, CELL_FLAG},
    {"small", NULL, CELL_COUNT},
    {"wide", NULL, CELL_COUNT},
    {"huge", NULL, CELL_WORD},
    {"cost", NULL, CELL_NUMBER},
    {"real", NULL, CELL_PERCENT},
    {"of", NULL, CELL_OBJECT | COLUMN_MEMBERS(1)},
    {"member", NULL, CELL_COUNT},
    {"csv", NULL, CELL_TEXT | COLUMN_NO_JSON},
    {"item", NULL, CELL_TEXT | COLUMN_PACKED},
};

static void fill_packed(struct table *table)
{
    for (int row = 0; row < 3; row++) {
        bool is_known = row != 1;
        table_put_text(table, "s");
        table_put_text(table, !is_known ? NULL : row ? "\377b" : "a");
        table_put_if(table, is_known, row > 0);
        table_put_if(table, is_known, row ? 258 : 257);
        table_put_if(table, is_known, row ? 1LL << 40 : -1);
        table_put_word_if(table, is_known, row ? UINT64_MAX : 1);
        table_put_number(table, is_known ? row ? 7.5 : 2.5 : (double)NAN);
        table_put_number(table, is_known ? row ? 3.14159 : 0.3 : (double)NAN);
        table_put_if(table, is_known, true);
        table_put_count(table, 5); /* of the second row: absent, as its object is */
        table_put_text(table, "left out");
        table_put_text(table, row ? "line:b" : "line:a");
    }
}

/* What the data of a column should be, in planes of its bytes; n is a multiple of 8. */
static const unsigned char *expect_bytes(const unsigned char *at, const char *bytes, size_t n)
{
    assert_memory_equal(at, bytes, n);
    return at + n;
}

static void test_packed(void **state)
{
    static const char header[] =
        "{\"about\": 1,\n\"rows\":3,\"more\":4,\"texts\":6,\"text_bytes\":46,\"columns\":["
        "{\"key\": \"same\", \"title\": \"same\", \"kind\": \"text\",\"type\":\"same\",\"value\":\"s\"},\n"
        "{\"key\": \"text\", \"kind\": \"text\",\"type\":\"text\",\"delta\":true},\n"
        "{\"key\": \"flag\", \"kind\": \"flag\",\"type\":\"u8\"},\n"
        "{\"key\": \"small\", \"kind\": \"count\",\"type\":\"u32\",\"delta\":true},\n"
        "{\"key\": \"wide\", \"kind\": \"count\",\"type\":\"f64\"},\n"
        "{\"key\": \"huge\", \"kind\": \"word\",\"type\":\"json\",\"delta\":true},\n"
        "{\"key\": \"cost\", \"kind\": \"number\",\"type\":\"scaled\",\"scale\":2.5,\"delta\":true},\n"
        "{\"key\": \"real\", \"kind\": \"percent\",\"type\":\"f64\"},\n"
        "{\"key\": \"of.member\", \"kind\": \"count\",\"type\":\"u32\",\"delta\":true},\n"
        "{\"key\": \"item\", \"kind\": \"text\",\"type\":\"text\"}]}";
    struct table table = TABLE_OF(packed_columns);
    struct buf about = {0}, out = {0};
    (void)state;
    fill_packed(&table);
    table.n_more = 4;
    buf_printf(&about, "\"about\": 1");
    table_print_packed(&table, &about, &out);
    const unsigned char *at = (const unsigned char *)out.data + 8;
    size_t n_header = (unsigned char)out.data[4] + 256 * (size_t)(unsigned char)out.data[5];
    assert_memory_equal(out.data, "LOC1", 4);
    assert_int_equal(n_header % 8, 0);
    assert_memory_equal(at, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < n_header; i++)
        assert_int_equal(at[i], ' ');
    at = expect_bytes(at + n_header, "\0\1\4\0\0\0\0\0\0\0\0\0\0\0\0\0", 16); /* 0, absent, 1 */
    at = expect_bytes(at, "\0\377\1\0\0\0\0\0", 8);
    at = expect_bytes(at, "\2\3\6\2\2\2\0\0\0\0\0\0\0\0\0\0", 16);
    at = expect_bytes(at, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\360\370\160\277\177\102", 24); /* -1, NAN, 2^40 */
    at = expect_bytes(at, "\4\5\10\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    at = expect_bytes(at, "\2\3\10\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    at = expect_bytes(at, "\63\0\156\63\0\206\63\0\33\63\0\360\63\0\371\63\0\41\323\370\11\77\177\100", 24);
    at = expect_bytes(at, "\12\13\14\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    at = expect_bytes(at, "\4\5\5\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    at = expect_bytes(at,
                      "a\0\357\277\275b\0"
                      "1\0\"18446744073709551615\"\0line:a\0line:b",
                      46);
    assert_ptr_equal(at, out.data + out.len_bytes);
    buf_fini(&about);
    buf_fini(&out);
    table_fini(&table);
}

/* Numbers that rise by about the same are packed as differences; tables without rows have columns. */
static void test_packed_differences(void **state)
{
    static const struct column list[] = {{"n", NULL, CELL_COUNT}};
    struct table table = TABLE_OF(list);
    struct buf about = {0}, out = {0};
    (void)state;
    table_print_packed(&table, &about, &out);
    assert_non_null(strstr(out.data + 8, "{\"key\": \"n\", \"kind\": \"count\",\"type\":\"same\",\"value\":null}"));
    buf_fini(&out);
    for (int i = 0; i < 8; i++)
        table_put_count(&table, 1000 - 3 * i);
    table_print_packed(&table, &about, &out);
    assert_non_null(strstr(out.data + 8, "\"type\":\"u32\",\"delta\":true}"));
    const unsigned char *data = (const unsigned char *)out.data + out.len_bytes - 32;
    expect_bytes(data, "\320\5\5\5\5\5\5\5\7\0\0\0\0\0\0\0", 16); /* 1000 and -3 each, times two */
    buf_fini(&about);
    buf_fini(&out);
    table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_csv),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_objects),
                                       cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_packed),
                                       cmocka_unit_test(test_packed_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
