/* SPDX-License-Identifier: BSD-3-Clause */
/* Expressions, operations and queries: what they mean where the differential test (tests/golden/frame-ops.py) has
 * nothing to compare with: the table of the query language, line by line; what is refused, and where; chains of a
 * million nodes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame/expression.h"
#include "frame/make.h"
#include "frame/ops.h"
#include "frame/query.h"

static uint32_t add(struct frame_maker *maker, uint32_t parent, const char *name, double time)
{
    uint32_t node = maker_node(maker, parent, &(struct made_node){.kind = FRAME_FUNCTION, .name = name});
    maker_value(maker, 0, node, 0, time);
    return node;
}

static struct frame *made(struct frame_maker *maker)
{
    struct frame *frame = NULL;
    struct error err = {0};
    assert_int_equal(frame_made(maker, &frame, NULL, &err), 0);
    return frame;
}

/* 0 main > 1 a > 2 b > 3 x > 4 c > 5 x;  0 > 6 d (no time) > 7 x;  0 > 8 e > 9 f (inf). Rank 1 has 10 at node 2 alone.
 */
static struct frame *make_tree(void)
{
    struct frame_maker maker;
    maker_init(&maker);
    (void)maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (int64_t rank = 0; rank < 2; rank++)
        (void)maker_profile(&maker, &(struct frame_profile){.name = "p", .rank = rank, .thread = 0});
    uint32_t top = add(&maker, FRAME_NONE, "main", 1), a = add(&maker, top, "a", 2), b = add(&maker, a, "b", 3);
    uint32_t x = add(&maker, b, "x", 4), c = add(&maker, x, "c", 5);
    (void)add(&maker, c, "x", 6);
    uint32_t d = add(&maker, top, "d", NAN);
    (void)add(&maker, d, "x", 8);
    uint32_t e = add(&maker, top, "e", 9);
    (void)add(&maker, e, "f", HUGE_VAL);
    maker_value(&maker, 0, b, 1, 10);
    maker_text(&maker, "class", a, "heap");
    return made(&maker);
}

/* What a query finds, as digits of the node numbers, or its error. */
static void expect_found(const struct frame *frame, const char *query, const char *expected)
{
    char text[1100] = "";
    struct error err = {0};
    bool *found;
    if (query_run(frame, query, NULL, &found, &err) != 0) {
        (void)snprintf(text, sizeof text, "%s", err.text);
    } else {
        size_t n = 0;
        for (uint32_t i = 0; i < frame_n_nodes(frame); i++)
            if (found[i])
                text[n++] = (char)('0' + i);
        text[n] = '\0';
        free(found);
    }
    if (strncmp(text, expected, strlen(expected)) != 0 || (!strstr(expected, "query:") && strcmp(text, expected) != 0))
        fail_msg("%s: '%s' is not '%s'", query, text, expected);
}

struct found_case {
    const char *query, *expected;
};

static void expect_all(const struct found_case *cases, size_t n)
{
    struct frame *frame = make_tree();
    for (size_t i = 0; i < n; i++)
        expect_found(frame, cases[i].query, cases[i].expected);
    frame_close(frame);
}

/* Quantifiers: any start; the union of all paths; "*" goes on beyond the next element's first node; "+" counts a leaf.
 */
static void test_query_quantifiers(void **state)
{
    static const struct found_case cases[] = {
        {"[\".\"]", "0123456789"},
        {"[{\"name\": \"x\"}]", "357"},
        {"[2]", "0123456789"},
        {"[6]", "012345"},
        {"[7]", ""},
        {"[0]", ""},
        {"[[2, {\"name\": \"[ab]\"}]]", "12"},
        {"[[1, {\"name\": \"b\"}]]", "2"},
        {"[\"*\"]", "0123456789"},
        {"[{\"name\": \"main\"}, \"+\", {\"name\": \"x\"}]", "01234567"}, /* at least one between: 7 below 6 */
        {"[{\"name\": \"main\"}, \"*\", {\"name\": \"x\"}]", "0123"
                                                             "4567"},
        {"[\"*\", {\"name\": \"x\"}]", "01234567"},
        {"[{\"name\": \"b\"}, \"*\"]", "2345"},
        {"[{\"name\": \"f\"}, \"*\"]", "9"},
        {"[\"+\"]", "0123456789"},
        {"[{\"name\": \"x\"}, \"+\"]", "345"},
        {"[{\"name\": \"c\"}, \"+\"]", "45"},
        {"[\"*\", \"*\", {\"name\": \"f\"}]", "089"},
        {"[{\"name\": \"a\"}, [\"*\", {\"name\": \"b\"}], {\"name\": \"x\"}]", "123"},
        {"[{\"name\": \"a\"}, [\"*\", {\"name\": \"c\"}], {\"name\": \"x\"}]", ""},
        {"[[70, {\"name\": \"x\"}]]", ""},
        {"[{\"name\": \"b\"}, \"*\", [0, {}], \"*\", \"*\", {\"name\": \"c\"}]", "234"},
        {"[]", "query: there are no elements"},
    };
    (void)state;
    expect_all(cases, sizeof cases / sizeof *cases);
}

/* Conditions of the object form. */
static void test_query_objects(void **state)
{
    static const struct found_case cases[] = {
        {"[{\"name\": \"ma\"}]", ""}, /* the whole text */
        {"[{\"name\": \"ma.*\", \"time\": 1}]", "0"},
        {"[{\"time\": \"> 5\"}]", "25789"}, /* sums over the ranks */
        {"[{\"time\": [\">= 4\", \"<= 6\"]}]", "345"},
        {"[{\"name\": [\"[a-d]\", \"[c-x]\"]}]", "46"}, /* a list: all of its conditions */
        {"[{\"time\": \"< 3\"}]", "01"},
        {"[{\"time\": \"<= 4\"}]", "013"},
        {"[{\"node_id\": 3}]", "3"},
        {"[{\"depth\": [\"> 1\", \"< 4\"]}]", "2379"},
        {"[{\"time\": 2}]", "1"},
        {"[{\"time\": \"== 2\"}]", "1"},
        {"[{\"time\": \"!= 2\"}]", "02345789"},
        {"[{\"time\": \"<> 2\"}]", "02345789"},
        {"[{\"depth\": 1}]", "168"},
        {"[{\"node_id\": \"< 2\"}]", "01"},
        {"[{\"time\": \"== nan\"}]", "6"},
        {"[{\"time\": \"!= np.nan\"}]", "012345789"},
        {"[{\"time\": \"> nan\"}]", ""},
        {"[{\"time\": \"== inf\"}]", "9"},
        {"[{\"time\": \"== np.inf\"}]", "9"},
        {"[{\"time\": \"!= np.inf\"}]", "01234578"},
        {"[{\"time\": null}]", "6"},
        {"[{\"class\": null, \"depth\": 1}]", "68"},
        {"[{\"class\": \"he.p\"}]", "1"},
        {"[{\"time\": {\"any\": \"> 9\"}}]", "29"},
        {"[{\"time\": {\"all\": \"> 2.5\"}}]", "2"}, /* the others have no cost in one profile */
        {"[{\"time\": {\"count\": 2}}]", "2"},
        {"[{\"time\": {\"at least\": [1, \"> 9\"]}}]", "29"},
        {"[{\"time\": {\"at least\": [2, \"> 2\"]}}]", "2"},
        {"[{\"time\": {\"at least\": [2, \"> 5\"]}}]", ""},
        {"[{\"time\": {\"at least\": 2}}]", "query: 'time': at least is a list of a number and a condition"},
        {"[{\"time\": {\"max\": 10}}]", "2"},
        {"[{\"time\": {\"mean\": 6.5}}]", "2"},
        {"[{\"kind\": \"function\", \"leaf\": 1}]", "579"},
        {"[{\"tim\": 2}]", "query: element 1: character 1: there is no column or attribute 'tim'; did you mean 'time'"},
        {"[\".\", {\"time\": \"abc\"}]", "query: 'time' holds numbers"},
        {"[{\"time\": \"> __import__('os')\"}]", "query: 'time' holds numbers"},
        {"[{\"name\": 5}]", "query: 'name' holds texts"},
        {"[{\"name\": \"(\"}]", "query: 'name': character 16: the pattern \"(\" is no regular expression"},
        {"[\"?\"]", "query: element 1: a quantifier is"},
        {"[\"*\", [\"+\"]]", "query: element 2: a list has a quantifier and an object"},
        {"[{\"time\": {\"some\": 1}}]", "query: the condition of 'time' has one of"},
        {"[\"*\",", "query: line 1, character 5:"},
        {"{\"and\": [[\"*\", {\"name\": \"x\"}], [{\"time\": \"> 5\"}]]}", "257"},
        {"{\"or\": [[{\"name\": \"f\"}], [{\"name\": \"e\"}]]}", "89"},
        {"{\"xor\": [[{\"name\": \"x\"}], [{\"time\": \"> 5\"}]]}", "2389"},
        {"{\"not\": [{\"name\": \"x\"}]}", "0124689"},
        {"{\"intersection\": [[{\"name\": \"x\"}], [{\"time\": \"> 5\"}]]}", "57"},
        {"{\"union\": [[{\"name\": \"f\"}], [{\"name\": \"e\"}]]}", "89"},
        {"{\"symdifference\": [[{\"name\": \"x\"}], [{\"time\": \"> 5\"}]]}", "2389"},
        {"{\"nor\": [[\".\"]]}", "query: a set is"},
    };
    (void)state;
    expect_all(cases, sizeof cases / sizeof *cases);
}

/* The text form. */
static void test_query_texts(void **state)
{
    static const struct found_case cases[] = {
        {"MATCH (\".\", p)->(\"*\") WHERE p.\"time\" > 8.5", "234589"},
        {"MATCH (p)", "0123456789"},
        {"match (2, p) where p.name =~ 'a'", ""},
        {"MATCH (p) WHERE p.\"name\" =~ \"m\"", "0"}, /* at the start */
        {"MATCH (p) WHERE p.\"name\" =~ \"ain\"", ""},
        {"MATCH (p) WHERE p.\"name\" = \"x\"", "357"},
        {"MATCH (p) WHERE p.\"time\" = 2", "1"},
        {"MATCH (p) WHERE p.\"time\" < 3 OR p.\"time\" >= 9", "01289"},
        {"MATCH (p) WHERE p.\"time\" <= 4 AND p.\"depth\" > 0", "13"},
        {"MATCH (\"*\", p)->(1)->(q) WHERE p.name = 'main' AND q.node_id = 2", "012"},
        {"MATCH (p) WHERE p.\"name\" STARTS WITH \"m\"", "0"},
        {"MATCH (p) WHERE p.\"name\" ENDS WITH \"in\"", "0"},
        {"MATCH (p) WHERE p.\"name\" CONTAINS \"ai\"", "0"},
        {"MATCH (p) WHERE p.\"class\" IS NONE AND p.depth = 1", "68"},
        {"MATCH (p) WHERE p.\"class\" IS NOT NONE", "1"},
        {"MATCH (p) WHERE p.\"time\" IS NAN", "6"},
        {"MATCH (p) WHERE p.\"time\" IS NOT NAN", "012345789"},
        {"MATCH (p) WHERE p.\"time\" IS INF", "9"},
        {"MATCH (p) WHERE p.\"time\" IS NOT INF AND p IS LEAF", "57"},
        {"MATCH (p) WHERE p IS NOT LEAF", "0123468"},
        {"MATCH (p) WHERE NOT p.time > 5", "0134"}, /* not the missing one */
        {"MATCH (p) WHERE p.name = 'a' OR p.name = 'b' AND p.time < 1", "1"},
        {"MATCH (p) WHERE (p.name = 'a' OR p.name = 'b') AND p.time > 2", "2"},
        {"MATCH (p)->(\"*\")->(q) WHERE p.name = 'a' AND q.name = 'x'", "12345"},
        {"MATCH (\"+\", p)->(q) WHERE p.name = 'main' AND q.time = 9", "08"},
        {"MATCH (p) WHERE any(p.time > 9)", "29"},
        {"MATCH (p) WHERE profiles(p.time > 2) >= 2", "2"},
        {"MATCH (p) WHERE profiles(p.time > 4) = 0", "0136"}, /* the missing one too */
        {"MATCH (p) WHERE highest(p.time) > 3 * mean(p.time)", ""},
        {"{MATCH (p) WHERE p.name = 'x'} AND NOT {MATCH (p) WHERE p.time > 5}", "3"},
        {"{MATCH (p) WHERE p.name = '}'} OR ({MATCH (p) WHERE p.name = 'f'} XOR {MATCH (p) WHERE p.depth = 2})", "27"},
        {"MATCH (p)->(q) WHERE p.name = 'a' OR q.name = 'x'",
         "query: character 38: one condition cannot be about 'p' and 'q'"},
        {"MATCH (p) WHERE q.time > 5", "query: character 17: the pattern has no 'q'"},
        {"MATCH (p) WHERE p.tim > 5",
         "query: character 19: there is no column or attribute 'tim'; did you mean 'time'?"},
        {"MATCH (p) WHERE p.name > 5", "query: character 26: this is a number, where a text is needed"},
        {"MATCH (p) WHERE", "query: character 16: the end comes where a value is expected"},
        {"MATCH (p)->", "query: character 12: '(' is expected here"},
        {"MATCH (\"?\", p)", "query: character 8: a quantifier is"},
        {"MATCH (p)->(p)", "query: character 13: 'p' is the name of two parts"},
        {"MATCH (99999999999999999999)", "query: at most 4096 nodes"},
        {"{MATCH (p)", "query: character 11: '}' is expected here"},
        {"MATCH (p) WHERE p.time > 5 }", "query: character 28: the query should end before this"},
        {"", "query: character 1: {MATCH ...} is expected here"},
    };
    (void)state;
    expect_all(cases, sizeof cases / sizeof *cases);
}

/* The paths of a query as digits, separated by blanks. */
static void expect_paths(const struct frame *frame, const char *query, size_t max, bool is_longest, bool is_cut,
                         const char *expected)
{
    struct query_paths paths = {0};
    struct error err = {0};
    char text[1100] = "";
    size_t n = 0;
    if (query_paths(frame, query, NULL, max, is_longest, &paths, &err) != 0)
        (void)snprintf(text, sizeof text, "%s", err.text);
    for (size_t i = 0; i < paths.n; i++) {
        text[n] = ' ';
        n += i > 0;
        for (size_t k = 0; k < paths.items[i].n; k++)
            text[n++] = (char)('0' + paths.nodes[paths.items[i].first + k]);
        text[n] = '\0';
    }
    if (strcmp(text, expected) != 0 || paths.is_cut != is_cut)
        fail_msg("%s: '%s' is not '%s'%s", query, text, expected, paths.is_cut ? ", and cut" : "");
    query_paths_fini(&paths);
}

static void test_query_paths(void **state)
{
    static const char *const below_a = "[{\"name\": \"a\"}, \"*\", {\"name\": \"x\"}]";
    struct frame *frame = make_tree();
    (void)state;
    expect_paths(frame, below_a, 10, false, false, "123 12345");
    expect_paths(frame, below_a, 10, true, false, "12345");
    expect_paths(frame, below_a, 1, false, true, "123");
    expect_paths(frame, "MATCH (p)->(q) WHERE q.name = 'x'", 10, false, false, "23 45 67");
    expect_paths(frame, "[2, \"+\"]", 2, true, true, "012345 067");
    expect_paths(frame, "[{\"name\": \"nobody\"}]", 10, false, false, "");
    expect_paths(frame, "{MATCH (p)}", 10, false, false,
                 "query: character 1: paths are those of one pattern, not of a set");
    expect_paths(frame, "{\"not\": [2]}", 10, false, false,
                 "query: character 1: paths are those of one pattern, not of a set");
    frame_close(frame);
}

/* What a query selects in one frame it finds in another one, where the numbers are other ones; whatever the names hold.
 */
static void test_query_select(void **state)
{
    static const char *const names[] = {"a \"b\"", "it's {x}", "back\\slash\\", "\xc3\xa9\n", "", "(p) OR", "a \"b\""};
    struct frame *frames[2];
    char *text;
    bool *found;
    struct error err = {0};
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        struct frame_maker maker;
        maker_init(&maker);
        (void)maker_column(&maker, "time", FRAME_EXCLUSIVE);
        uint32_t top = add(&maker, FRAME_NONE, "main", 1);
        for (uint32_t i = 0; i < k; i++)
            (void)add(&maker, top, "more", 1);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            (void)add(&maker, top, names[i], 1);
        frames[k] = made(&maker);
    }
    for (uint32_t node = 2; node < 7; node++) {
        assert_int_equal(query_select(frames[0], &node, 1, QUERY_BY_PATH, &text, &err), 0);
        assert_int_equal(query_run(frames[1], text, NULL, &found, &err), 0);
        for (uint32_t i = 0; i < frame_n_nodes(frames[1]); i++)
            assert_true(found[i] == (i == node + 1));
        free(text);
        free(found);
    }
    const uint32_t twins[] = {7, 1}, one = 1, nobody = 8;
    assert_int_equal(query_select(frames[0], twins, 2, QUERY_BY_PATH, &text, &err), 0);
    assert_null(strstr(text, "node_id"));
    free(text);
    assert_int_equal(query_select(frames[0], &one, 1, QUERY_BY_PATH, &text, &err), 0);
    assert_string_equal(text, "{MATCH (\".\", p) WHERE p.\"node_id\" = 1}");
    free(text);
    assert_int_equal(query_select(frames[0], &nobody, 1, QUERY_BY_PATH, &text, &err), ERR_RANGE);
    assert_int_equal(query_select(frames[0], &one, 0, QUERY_BY_PATH, &text, &err), ERR_RANGE);
    frame_close(frames[0]);
    frame_close(frames[1]);
}

static void test_section(void **state)
{
    struct frame *frame = make_tree(), *result;
    struct error err = {0};
    const double *values;
    uint32_t *profiles;
    size_t n;
    (void)state;
    assert_int_equal(frame_section(frame, "rank = 1", &result, &err), 0);
    assert_true(frame_n_profiles(result) == 1 && frame_profile(result, 0)->rank == 1);
    assert_int_equal(frame_values(result, 0, NULL, &values, &err), 0);
    assert_true(values[2] == 10 && isnan(values[0]));
    frame_close(result);
    assert_int_equal(frame_section(frame, "thread = 0", &result, &err), 0);
    assert_true(frame_n_profiles(result) == 1 && strcmp(frame_profile(result, 0)->name, "thread = 0") == 0);
    assert_int_equal(frame_values(result, 0, NULL, &values, &err), 0);
    assert_true(values[2] == 13);
    frame_close(result);
    assert_int_equal(frame_find_profiles(frame, "rank = 1", &profiles, &n, &err), 0);
    assert_int_equal(frame_values(frame, 0, &(struct frame_view){.profiles = profiles, .n_profiles = n}, &values, &err),
                     0);
    assert_true(n == 1 && profiles[0] == 1 && values[2] == 10);
    free(profiles);
    assert_int_equal(frame_section(frame, "rank = 5", &result, &err), ERR_NOT_FOUND);
    frame_close(frame);
}

/* What expressions refuse, and where. */
static void test_expression_errors(void **state)
{
    static const struct found_case cases[] = {
        {"time >", "character 7: the end comes where a value is expected"},
        {"time > 5 5", "character 10: the expression should end before this"},
        {"tim > 5", "character 1: there is no column or attribute 'tim'; did you mean 'time'"},
        {"'no such' > 5",
         "character 1: there is no column or attribute 'no such'; texts stand in double quotes; there are: 'time'"},
        {"time", "character 1: this is a number, where a condition is needed"},
        {"name > 5", "character 8: this is a number, where a text is needed"},
        {"time = \"a\"", "character 8: this is a text, where a number is needed"},
        {"\"time\" + 1 > 2", "character 1: this is a text, where a number is needed; columns stand in single quotes"},
        {"name + 1 > 2", "character 1: this is a text, where a number is needed"},
        {"time > 1 and 5", "character 14: this is a number, where a condition is needed"},
        {"(time > 1", "character 10: ')' is missing at the end"},
        {"name =~ \"[\"", "character 9: the pattern \"[\" is no regular expression"},
        {"name =~ \"^(?!a)b|c\"",
         "character 9: the pattern \"^(?!a)b|c\" is no regular expression: a look-ahead is of one"},
        {"name =~ \"^(?=[\"", "character 9: the pattern \"^(?=[\" is no regular expression: a look-ahead has no end"},
        {"name =~ \"^(?=[^\"", "character 9: the pattern \"^(?=[^\" is no regular expression: a look-ahead has no end"},
        {"name =~ \"(a)\\1\"", "character 9: the pattern \"(a)\\1\" is no regular expression: references"},
        {"name =~ \"((a{99}){99}){99}\"", "character 9: the pattern"},
        {"name =~ file", "character 9: a pattern between \"...\" is expected here"},
        {"name = \"a", "character 8: nothing closes this \""},
        {"time > 5x", "character 8: '5x...' is no number"},
        {"time ? 5", "character 6: '?' means nothing here"},
        {"foo(time) > 1", "character 1: there is no function 'foo'"},
        {"abs(time, 1) > 1", "character 11: abs has one operand"},
        {"else(time) > 1", "character 10: else needs 2 operands"},
        {"percentile(time, 101) > 1", "character 18: a number from 0 to 100 is needed here"},
        {"any(time) and time > 1", "character 5: this is a number, where a condition is needed"},
        {"time is good", "character 9: missing, none, nan or inf is expected here"},
    };
    struct frame *frame = make_tree();
    struct formula *formula;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        if (expression_compile(frame, cases[i].query, EXPRESSION_CONDITION, &formula, &err) == 0)
            fail_msg("%s was taken", cases[i].query);
        if (strncmp(err.text, cases[i].expected, strlen(cases[i].expected)) != 0)
            fail_msg("%s: '%s' is not '%s'", cases[i].query, err.text, cases[i].expected);
    }
    char deep[3000] = "";
    memset(deep, '(', sizeof deep - 1);
    assert_int_equal(expression_compile(frame, deep, EXPRESSION_CONDITION, &formula, NULL), ERR_USAGE);
    memset(deep, '-', sizeof deep - 1);
    memcpy(deep + sizeof deep - 5, "time", 5);
    assert_int_equal(expression_compile(frame, deep, EXPRESSION_NUMBER, &formula, NULL), 0);
    formula_free(formula);
    frame_close(frame);
}

static double value_of(struct frame *frame, const char *expression, uint32_t node)
{
    struct error err = {0};
    struct frame *with;
    const double *values;
    if (frame_derive(frame, "made", expression, &with, &err) != 0)
        fail_msg("%s: %s", expression, err.text);
    assert_int_equal(frame_values(with, frame_find_column(with, "made", NULL), NULL, &values, &err), 0);
    double value = values[node];
    frame_close(with);
    return value;
}

static void test_expressions(void **state)
{
    struct frame *frame = make_tree();
    (void)state;
    assert_true(value_of(frame, "1 + 2 * 3 - 4 / 2", 0) == 5);
    assert_true(value_of(frame, "-(time) * 2", 1) == -4 && value_of(frame, "- -time", 1) == 2);
    assert_true(isnan(value_of(frame, "time / 0", 1)) && isnan(value_of(frame, "1 / 0 * 0", 1)));
    assert_true(isnan(value_of(frame, "time + 1", 6)) && value_of(frame, "else(time, 1)", 6) == 1);
    assert_true(isnan(value_of(frame, "time != 1", 6)) && isnan(value_of(frame, "not time = 1", 6)));
    assert_true(value_of(frame, "time > 1 or name = \"d\"", 6) == 1 &&
                value_of(frame, "time > 1 and name = \"x\"", 6) == 0);
    assert_true(value_of(frame, "min(3, time, 2)", 3) == 2 && isnan(value_of(frame, "max(3, time)", 6)));
    assert_true(value_of(frame, "children(time)", 0) == 11 && isnan(value_of(frame, "children(time)", 5)));
    assert_true(value_of(frame, "children(time * 2)", 1) == 26);
    assert_true(value_of(frame, "highest(time) - lowest(time)", 2) == 7 && value_of(frame, "count(time)", 2) == 2);
    assert_true(value_of(frame, "percentile(time, 50)", 2) == 6.5 && value_of(frame, "all(time > 5)", 2) == 0);
    assert_true(value_of(frame, "name matches \"ma(?:i)n\" and name =~ \"\\D\"", 0) == 1);
    assert_true(value_of(frame, "name =~ \"[^]a]\"", 1) == 0 && value_of(frame, "name < \"b\"", 1) == 1);
    assert_true(value_of(frame, "class is missing", 0) == 1 && value_of(frame, "'class' = \"heap\"", 1) == 1);
    assert_true(isnan(value_of(frame, "line", 0)) && value_of(frame, "depth + leaf", 5) == 6);
    frame_close(frame);
}

/* A ratio over profiles is that of the sums, and follows its columns into other shapes. */
static void test_ratio(void **state)
{
    struct frame *frame = make_tree(), *with, *flat;
    struct error err = {0};
    const double *values;
    const struct frame_cell *cells;
    size_t n;
    (void)state;
    assert_int_equal(frame_derive(frame, "share", "time / (depth + 1)", &with, &err), 0);
    assert_int_equal(frame_values(with, 1, NULL, &values, &err), 0);
    assert_true(values[2] == 13 / 3.0);
    assert_int_equal(frame_cells(with, 1, 2, &cells, &n, &err), 0);
    assert_true(n == 2 && cells[0].value == 1 && cells[1].value == 10 / 3.0);
    frame_close(frame);
    assert_int_equal(frame_flat(with, &flat, &err), 0);
    frame_close(with);
    assert_int_equal(frame_values(flat, 1, NULL, &values, &err), 0);
    assert_true(frame_n_nodes(flat) == 8 && values[3] == 18 && frame_column_sums(flat, 1) == FRAME_PLAIN);
    frame_close(flat);
}

static struct frame *run(const char *name, struct frame *a, struct frame *b, const char *first, const char *second)
{
    struct frame *frames[] = {a, b}, *result = NULL;
    const char *texts[] = {first, second};
    struct error err = {0};
    if (frame_run(name, frames, b ? 2 : 1, texts, (size_t)(first != NULL) + (second != NULL), &result, &err) != 0)
        fail_msg("%s: %s", name, err.text);
    return result;
}

static void test_compare(void **state)
{
    struct frame *a = make_tree(), *b = run("filter", a, NULL, "name != \"f\" and name != \"e\"", NULL), *result;
    struct error err = {0};
    struct frame_difference *found;
    char why[sizeof err.text];
    bool is_equal;
    size_t n;
    (void)state;
    assert_int_equal(frame_equal(a, a, 0, &is_equal, why, &err), 0);
    assert_true(is_equal && !*why);
    assert_int_equal(frame_equal(a, b, 0, &is_equal, why, &err), 0);
    assert_false(is_equal);
    assert_string_equal(why, "'e' is 1 times in the first, 0 times in the second");
    assert_int_equal(frame_diff(b, a, "time", 1, &result, &found, &n, &err), 0);
    assert_true(n == 2 && isinf(found[0].after) && found[1].before == 0 && found[1].after == 9);
    assert_string_equal(frame_name(result, found[1].node), "e");
    assert_string_equal(frame_column_name(result, 2), "time change");
    free(found);
    frame_close(result);
    assert_int_equal(frame_diff(a, b, "tme", 1, &result, &found, &n, &err), ERR_NOT_FOUND);
    frame_close(a);
    frame_close(b);
}

static void test_stand_out(void **state)
{
    struct frame *frame = make_tree(), *all = run("inclusive", frame, NULL, NULL, NULL);
    struct frame *imbalance = run("imbalance", frame, NULL, "time", NULL);
    struct error err = {0};
    const double *values;
    uint32_t *path, profiles[3];
    size_t n;
    (void)state;
    assert_int_equal(frame_hot_path(all, 1, NULL, 1, 0.5, &path, &n, &err), 0);
    assert_true(n == 5 && path[0] == 1 && path[4] == 5);
    free(path);
    assert_int_equal(frame_hot_path(all, 1, NULL, 1, 0.95, &path, &n, &err), 0);
    assert_true(n == 2 && path[1] == 2); /* 28 of 30 ends the path and belongs to it */
    free(path);
    assert_int_equal(frame_values(imbalance, frame_find_column(imbalance, "time imbalance", NULL), NULL, &values, &err),
                     0);
    assert_true(values[2] == 10 / 6.5 && values[1] == 2 && isnan(values[6])); /* 1: one of two profiles has all */
    size_t outliers = frame_n_attributes(imbalance) - 1;
    assert_string_equal(frame_attribute_name(imbalance, outliers), "outliers");
    assert_string_equal(frame_attribute_text(imbalance, outliers, 2), "p: 10");
    assert_string_equal(frame_attribute_text(imbalance, outliers, 6), "");
    assert_int_equal(frame_outliers(frame, 0, 2, 3, profiles, &n, &err), 0);
    assert_true(n == 2 && profiles[0] == 1 && profiles[1] == 0);
    struct frame *hot = run("hotpath", all, NULL, "time", NULL);
    assert_int_equal(frame_n_nodes(hot), 3);
    assert_string_equal(frame_name(hot, 2), "f");
    assert_int_equal(frame_values(hot, 0, NULL, &values, &err), 0);
    assert_true(values[0] == 1 && values[1] == 9 && isinf(values[2]));
    assert_int_equal(frame_values(hot, 1, NULL, &values, &err), 0);
    assert_true(isinf(values[0]));
    frame_close(hot);
    frame_close(frame);
    frame_close(all);
    frame_close(imbalance);
}

/* Functions of one name: in one library they are one, in two they are two, also where they come from one header. */
static void test_modules(void **state)
{
    static const struct made_node nodes[] = {
        {.kind = FRAME_FUNCTION, .name = "init", .module = "/usr/lib/liba.so"},
        {.kind = FRAME_FUNCTION, .name = "init", .module = "/usr/lib/libb.so"},
        {.kind = FRAME_FUNCTION, .name = "init", .module = "/usr/lib/liba.so"},
        {.kind = FRAME_FUNCTION, .name = "swap", .file = "swap.h", .module = "/usr/lib/liba.so"},
        {.kind = FRAME_FUNCTION, .name = "swap", .file = "swap.h", .module = "/usr/lib/libb.so"},
    };
    struct frame_maker maker;
    struct error err = {0};
    const double *values;
    (void)state;
    maker_init(&maker);
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    uint32_t top = maker_node(&maker, FRAME_NONE, &(struct made_node){.kind = FRAME_FUNCTION, .name = "main"});
    uint32_t other = maker_node(&maker, top, &(struct made_node){.kind = FRAME_FUNCTION, .name = "other"});
    for (uint32_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        maker_value(&maker, time, maker_node(&maker, i == 2 ? other : top, &nodes[i]), 0, 1 << i);
    struct frame *frame = made(&maker), *flat = run("flat", frame, NULL, NULL, NULL);
    assert_int_equal(frame_n_nodes(flat), 6);
    assert_int_equal(frame_values(flat, 0, NULL, &values, &err), 0);
    double of_init = 0, of_swap = 0;
    for (uint32_t i = 0; i < 6; i++) {
        of_init += strcmp(frame_name(flat, i), "init") == 0 && (values[i] == 5 || values[i] == 2);
        of_swap += strcmp(frame_name(flat, i), "swap") == 0 && (values[i] == 8 || values[i] == 16);
    }
    assert_true(of_init == 2 && of_swap == 2);
    frame_close(flat);
    frame_close(frame);
}

/* A ratio is that of the sums at every level: 30 / 6 of the file, not 4 + 7 nor their mean. */
static void test_hierarchy(void **state)
{
    struct frame_maker maker;
    struct error err = {0};
    const double *values;
    (void)state;
    maker_init(&maker);
    size_t cycles = maker_column(&maker, "cycles", FRAME_EXCLUSIVE),
           loads = maker_column(&maker, "loads", FRAME_EXCLUSIVE);
    uint32_t parent = FRAME_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        static const char *const names[] = {"outer", "inner"};
        parent =
            maker_node(&maker, parent, &(struct made_node){.kind = FRAME_FUNCTION, .name = names[i], .file = "/s/a.c"});
        uint32_t line =
            maker_node(&maker, parent, &(struct made_node){.kind = FRAME_LINE, .file = "/s/a.c", .line = 7 + i});
        maker_value(&maker, cycles, line, 0, i ? 14 : 16);
        maker_value(&maker, loads, line, 0, i ? 2 : 4);
    }
    struct frame *frame = made(&maker), *derived = run("derive", frame, NULL, "ratio", "cycles / loads");
    struct frame *levels = run("hierarchy", derived, NULL, "file function line", NULL);
    static const char *const names[] = {"/s/a.c", "outer", "a.c:7", "inner", "a.c:8"};
    static const double ratios[] = {5, 4, 4, 7, 7};
    assert_int_equal(frame_n_nodes(levels), 5);
    assert_int_equal(frame_values(levels, 2, NULL, &values, &err), 0);
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(frame_name(levels, i), names[i]);
        assert_true(values[i] == ratios[i]);
    }
    frame_close(frame);
    frame_close(derived);
    frame_close(levels);
}

static void test_table(void **state)
{
    struct frame *frame = make_tree(), *frames[] = {frame, frame}, *result;
    const char *const texts[] = {"x", "y", "z"};
    struct error err = {0};
    (void)state;
    assert_int_equal(frame_run("filtre", frames, 1, texts, 1, &result, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "there is no operation 'filtre'; did you mean 'filter'?"));
    assert_int_equal(frame_run("filter", frames, 1, texts, 2, &result, &err), ERR_USAGE);
    assert_string_equal(err.text, "filter has the operands: CONDITION");
    assert_int_equal(frame_run("add", frames, 1, texts, 0, &result, &err), ERR_USAGE);
    assert_string_equal(err.text, "add works on 2 profiles, not on 1");
    const char *none = "time > 1e9 and time < 0";
    assert_int_equal(frame_run("filter", frames, 1, &none, 1, &result, &err), ERR_NOT_FOUND);
    assert_string_equal(err.text, "no node is left");
    const char *nobody = "rank > 7";
    assert_int_equal(frame_run("choose", frames, 1, &nobody, 1, &result, &err), ERR_NOT_FOUND);
    assert_int_equal(frame_run("choose", frames, 1, texts, 1, &result, &err), ERR_NOT_FOUND);
    assert_int_equal(frame_run("aggregate", frames, 1, texts, 1, &result, &err), ERR_USAGE);
    assert_int_equal(frame_run("group", frames, 1, texts, 1, &result, &err), ERR_NOT_FOUND);
    assert_int_equal(frame_run("callers", frames, 1, texts, 1, &result, &err), ERR_USAGE);
    const char *levels[] = {"file module", "", "function nothing", "a b c d e f g h i"};
    assert_int_equal(frame_run("hierarchy", frames, 1, levels, 1, &result, &err), ERR_NOT_FOUND);
    assert_string_equal(err.text, "no node has one of the levels 'file module'");
    assert_int_equal(frame_run("hierarchy", frames, 1, levels + 1, 1, &result, &err), ERR_USAGE);
    assert_int_equal(frame_run("hierarchy", frames, 1, levels + 2, 1, &result, &err), ERR_NOT_FOUND);
    assert_int_equal(frame_run("hierarchy", frames, 1, levels + 3, 1, &result, &err), ERR_USAGE);
    assert_int_equal(frame_run("callgraph", frames, 1, texts, 1, &result, &err), ERR_USAGE);
    assert_int_equal(frame_run("derive", frames, 1, texts, 2, &result, &err), ERR_NOT_FOUND);
    frame_close(frame);
}

/* is_even and is_odd call each other, whatever they are called and whoever comes first. */
static void test_circles(void **state)
{
    static const char *const names[][3] = {{"main", "is_even", "is_odd"}, {"main", "z_even", "a_odd"}, {"z", "b", "a"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct frame_maker maker;
        maker_init(&maker);
        (void)maker_column(&maker, "time", FRAME_EXCLUSIVE);
        uint32_t top = add(&maker, FRAME_NONE, names[i][0], 1), even = add(&maker, top, names[i][1], 2);
        uint32_t odd = add(&maker, even, names[i][2], 4), again = add(&maker, odd, names[i][1], 8);
        (void)add(&maker, again, "self", 16);
        struct frame *frame = made(&maker), *graph = run("callgraph", frame, NULL, NULL, NULL);
        struct frame *collapsed = run("callgraph", frame, NULL, "collapsed", NULL);
        const double *values;
        struct error err = {0};
        assert_true(frame_n_nodes(graph) == 4 && frame_attribute_number(graph, 0, 1) == 1);
        assert_true(frame_attribute_number(graph, 0, 2) == 1 && isnan(frame_attribute_number(graph, 0, 3)));
        assert_int_equal(frame_n_nodes(collapsed), 3);
        assert_string_equal(frame_name(collapsed, 1), "<cycle 1>");
        assert_int_equal(frame_values(collapsed, 0, NULL, &values, &err), 0);
        assert_true(values[0] == 1 && values[1] == 14 && values[2] == 16);
        frame_close(frame);
        frame_close(graph);
        frame_close(collapsed);
    }
}

/* No depth is too deep for any operation. */
static void test_chain(void **state)
{
    enum { N = 1000000 };
    struct frame_maker maker;
    const double *values;
    struct error err = {0};
    bool is_equal;
    char *text;
    (void)state;
    maker_init(&maker);
    (void)maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (uint32_t i = 0; i < N; i++)
        (void)add(&maker, i ? i - 1 : FRAME_NONE, i % 2 ? "f" : "g", 1);
    struct frame *frame = made(&maker), *all = run("inclusive", frame, NULL, NULL, NULL);
    static const struct {
        const char *name, *first;
        size_t n;
        double top;
    } cases[] = {{"filter", "name = \"f\"", N / 2, 1},
                 {"query", "MATCH (p)->(\"*\")->(q) WHERE q.depth < 10", 10, 1},
                 {"flat", NULL, 2, N / 2},
                 {"callgraph", NULL, 2, N / 2},
                 {"callgraph", "collapsed", 1, N},
                 {"callers", "3", 6, N / 2},
                 {"group", "name", 2, N / 2},
                 {"hierarchy", "kind function", 3, N},
                 {"exclusive", NULL, N, 1},
                 {"aggregate", "all", N, 1},
                 {"imbalance", "time (inc)", N, N}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct frame *result = run(cases[i].name, all, NULL, cases[i].first, NULL);
        assert_int_equal(frame_values(result, 0, NULL, &values, &err), 0);
        if (frame_n_nodes(result) != cases[i].n || values[0] != cases[i].top)
            fail_msg("%s: %zu nodes, %g", cases[i].name, frame_n_nodes(result), values[0]);
        assert_int_equal(frame_values(result, frame_n_columns(result) - 1, NULL, &values, &err), 0);
        frame_close(result);
    }
    struct frame *sum = run("add", all, all, NULL, NULL), *both = run("union", all, all, NULL, NULL);
    assert_int_equal(frame_values(sum, 1, NULL, &values, &err), 0);
    assert_true(frame_n_nodes(sum) == N && values[0] == 2.0 * N);
    assert_int_equal(frame_values(both, 1, NULL, &values, &err), 0);
    assert_true(frame_n_profiles(both) == 2 && values[0] == 2.0 * N);
    assert_int_equal(frame_equal(sum, sum, 0, &is_equal, NULL, &err), 0);
    assert_true(is_equal);
    struct frame *result;
    assert_int_equal(frame_bottom_up(all, 0, &result, &err), ERR_RANGE);
    struct query_paths paths = {0};
    assert_int_equal(query_paths(frame, "[\"*\", {\"depth\": 999999}]", NULL, 3, true, &paths, &err), 0);
    assert_true(paths.n == 3 && paths.is_cut && paths.items[0].n == N);
    query_paths_fini(&paths);
    assert_int_equal(query_select(frame, (const uint32_t[]){N - 1, 7}, 2, QUERY_BY_PATH, &text, &err), 0);
    assert_non_null(strstr(text, "node_id\" = 999999}"));
    free(text);
    frame_close(frame);
    frame_close(all);
    frame_close(sum);
    frame_close(both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query_quantifiers), cmocka_unit_test(test_query_objects),
        cmocka_unit_test(test_query_texts),       cmocka_unit_test(test_query_paths),
        cmocka_unit_test(test_query_select),      cmocka_unit_test(test_section),
        cmocka_unit_test(test_hierarchy),         cmocka_unit_test(test_expression_errors),
        cmocka_unit_test(test_expressions),       cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_compare),           cmocka_unit_test(test_stand_out),
        cmocka_unit_test(test_modules),           cmocka_unit_test(test_table),
        cmocka_unit_test(test_circles),           cmocka_unit_test(test_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
