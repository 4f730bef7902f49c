/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: shape, values by view, groups and sums, of trees, of graphs with shared nodes, of cycles and of long chains.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame/make.h"

static uint32_t add(struct frame_maker *maker, uint32_t parent, const char *name)
{
    return maker_node(maker, parent, &(struct made_node){.kind = FRAME_FUNCTION, .name = name, .file = "a.c"});
}

static struct frame *made(struct frame_maker *maker)
{
    struct frame *frame = NULL;
    struct error err = {0};
    assert_int_equal(frame_made(maker, &frame, NULL, &err), 0);
    return frame;
}

/* main > (a > (b, c), d), two profiles; b has a value in one of them, c in none. */
static struct frame *make_tree(void)
{
    struct frame_maker maker;
    maker_init(&maker);
    uint32_t top = add(&maker, FRAME_NONE, "main"), a = add(&maker, top, "a");
    uint32_t b = add(&maker, a, "b"), c = add(&maker, a, "c"), d = add(&maker, top, "d");
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (int64_t rank = 0; rank < 2; rank++)
        (void)maker_profile(&maker, &(struct frame_profile){.name = "p", .rank = rank, .thread = 0});
    maker_value(&maker, time, d, 0, 8);
    maker_value(&maker, time, top, 0, 1);
    maker_value(&maker, time, a, 1, 4);
    maker_value(&maker, time, a, 0, 2);
    maker_value(&maker, time, b, 1, 16);
    maker_value(&maker, time, d, 0, 0.5); /* one more, of the same place */
    maker_text(&maker, "class", c, "heap");
    maker_number(&maker, "bytes", b, 64);
    return made(&maker);
}

static double value(struct frame *frame, size_t column, const struct frame_view *view, uint32_t node)
{
    const double *values;
    struct error err = {0};
    assert_int_equal(frame_values(frame, column, view, &values, &err), 0);
    return values[node];
}

static void test_tree(void **state)
{
    struct frame *frame = make_tree();
    size_t n;
    (void)state;
    assert_int_equal(frame_n_nodes(frame), 5);
    assert_true(frame_is_tree(frame));
    assert_string_equal(frame_name(frame, 4), "d");
    assert_int_equal(*frame_roots(frame, &n), 0);
    assert_int_equal(n, 1);
    const uint32_t *children = frame_children(frame, 0, &n);
    assert_true(n == 2 && children[0] == 1 && children[1] == 4);
    assert_int_equal(*frame_parents(frame, 3, &n), 1);
    static const uint32_t post_order[] = {2, 3, 1, 4, 0}, depths[] = {0, 1, 2, 2, 1};
    assert_memory_equal(frame_post_order(frame), post_order, sizeof post_order);
    assert_memory_equal(frame_depths(frame), depths, sizeof depths);
    assert_int_equal(graph_subtree_end(frame->graph, 1), 4);
    assert_string_equal(frame_attribute_text(frame, 0, 3), "heap");
    assert_true(frame_attribute_number(frame, 1, 2) == 64 && isnan(frame_attribute_number(frame, 1, 0)));
    assert_string_equal(frame_identity(frame, 1), "function\x1f"
                                                  "a\x1f"
                                                  "a.c");
    frame_close(frame);
}

static void test_views(void **state)
{
    struct frame *frame = make_tree();
    const uint32_t second[] = {1};
    const struct frame_view of_second = {.profiles = second, .n_profiles = 1}, mean = {.aggregate = FRAME_MEAN},
                            count = {.aggregate = FRAME_COUNT}, std = {.aggregate = FRAME_STD},
                            median = {.aggregate = FRAME_PERCENTILE, .percentile = 50};
    (void)state;
    assert_true(value(frame, 0, NULL, 1) == 6 && value(frame, 0, NULL, 4) == 8.5);
    assert_true(isnan(value(frame, 0, NULL, 3)));
    assert_true(value(frame, 0, &of_second, 1) == 4 && isnan(value(frame, 0, &of_second, 0)));
    assert_true(value(frame, 0, &mean, 1) == 3 && value(frame, 0, &mean, 2) == 8);
    assert_true(value(frame, 0, &std, 1) == 1 && value(frame, 0, &median, 1) == 3);
    assert_true(value(frame, 0, &count, 1) == 2 && isnan(value(frame, 0, &count, 3)));
    frame_close(frame);
}

static void test_sums(void **state)
{
    struct frame *frame = make_tree();
    struct error err = {0};
    const struct frame_view most = {.aggregate = FRAME_MAX};
    const struct frame_cell *cells;
    size_t n;
    (void)state;
    struct frame_column *inclusive = column_inclusive(frame->columns[0], frame->graph, "time (inc)");
    assert_int_equal(frame_add_column(frame, inclusive, &err), 0);
    assert_true(value(frame, 1, NULL, 0) == 31.5 && value(frame, 1, NULL, 1) == 22 && isnan(value(frame, 1, NULL, 3)));
    assert_true(value(frame, 1, &most, 0) == 20 && value(frame, 1, &most, 1) == 20);
    assert_int_equal(frame_cells(frame, 1, 0, &cells, &n, &err), 0);
    assert_true(n == 2 && cells[0].value == 11.5 && cells[1].value == 20);
    assert_int_equal(frame_column_pair(frame, 0), 1);
    assert_int_equal(frame_column_pair(frame, 1), 0);
    assert_int_equal(frame_add_column(frame, column_exclusive(inclusive, frame->graph, "own"), &err), 0);
    assert_true(value(frame, 2, NULL, 1) == 6 && value(frame, 2, NULL, 4) == 8.5);
    frame_close(frame);
}

static void test_groups(void **state)
{
    struct frame *frame = make_tree();
    static const uint32_t group_of[] = {0, 1, 1, FRAME_NONE, 0};
    const struct frame_view least = {.aggregate = FRAME_MIN};
    const double *values;
    struct error err = {0};
    (void)state;
    struct node_groups *groups = groups_of(group_of, 5, 2);
    struct frame_column *column = column_grouped(frame->columns[0], groups);
    groups_drop(groups);
    assert_int_equal(column_values(column, NULL, &values, &err), 0);
    assert_true(values[0] == 9.5 && values[1] == 22);
    assert_int_equal(column_values(column, &least, &values, &err), 0);
    assert_true(values[0] == 0 && values[1] == 2); /* the first group has nothing in the second profile */
    frame_close(frame);
    column_drop(column);
}

/* Every node counts once below a node, whatever number of ways lead to it, also round a cycle. */
static void test_graph(void **state)
{
    struct frame_maker maker;
    struct error err = {0};
    size_t n;
    (void)state;
    maker_init(&maker);
    uint32_t shared = add(&maker, FRAME_NONE, "shared"), top = add(&maker, FRAME_NONE, "main");
    uint32_t a = add(&maker, top, "a"), b = add(&maker, top, "b");
    maker_edge(&maker, a, shared);
    maker_edge(&maker, b, shared);
    maker_edge(&maker, b, shared);
    maker_edge(&maker, shared, b);
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (uint32_t node = 0; node < 4; node++)
        maker_value(&maker, time, node, 0, 1 << node);
    struct frame *frame = made(&maker);
    assert_false(frame_is_tree(frame));
    assert_string_equal(frame_name(frame, 0), "main");
    assert_string_equal(frame_name(frame, 2), "shared");
    (void)frame_parents(frame, 2, &n);
    assert_int_equal(n, 2);
    assert_int_equal(frame_add_column(frame, column_inclusive(frame->columns[0], frame->graph, "all"), &err), 0);
    assert_true(value(frame, 1, NULL, 0) == 15 && value(frame, 1, NULL, 1) == 13 && value(frame, 1, NULL, 2) == 9);
    const struct frame_cell *cells;
    assert_int_equal(frame_cells(frame, 1, 3, &cells, &n, &err), 0);
    assert_true(n == 1 && cells->value == 9);
    frame_close(frame);
}

/* A cycle that nothing leads into begins at its first node. */
static void test_cycle_alone(void **state)
{
    struct frame_maker maker;
    size_t n;
    (void)state;
    maker_init(&maker);
    uint32_t one = add(&maker, FRAME_NONE, "one"), two = add(&maker, one, "two");
    maker_edge(&maker, two, one);
    struct frame *frame = made(&maker);
    assert_int_equal(*frame_roots(frame, &n), 0);
    assert_int_equal(n, 1);
    assert_false(frame_is_tree(frame));
    assert_int_equal(frame_post_order(frame)[0], 1);
    frame_close(frame);
}

/* No depth is too deep. */
static void test_chain(void **state)
{
    enum { N = 1000000 };
    struct frame_maker maker;
    struct error err = {0};
    (void)state;
    maker_init(&maker);
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t node = add(&maker, i ? i - 1 : FRAME_NONE, "f");
        maker_value(&maker, time, node, 0, 1);
    }
    struct frame *frame = made(&maker);
    assert_int_equal(frame_add_column(frame, column_inclusive(frame->columns[0], frame->graph, "all"), &err), 0);
    assert_true(value(frame, 1, NULL, 0) == N && frame_post_order(frame)[0] == N - 1);
    assert_int_equal(frame_depths(frame)[N - 1], N - 1);
    frame_close(frame);
}

/* A circle of any size is summed up once, with what it calls; a walk from each of its nodes would not end in an hour.
 */
static void test_large_circle(void **state)
{
    enum { N = 300000 };
    struct frame_maker maker;
    struct error err = {0};
    const struct frame_cell *cells;
    uint32_t node = FRAME_NONE, first = FRAME_NONE;
    size_t n;
    (void)state;
    maker_init(&maker);
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (uint32_t i = 0; i < N; i++) {
        node = add(&maker, node, "f");
        first = i ? first : node;
        maker_value(&maker, time, node, 0, 1);
    }
    uint32_t leaf = add(&maker, node, "leaf");
    maker_value(&maker, time, leaf, 0, 5);
    maker_edge(&maker, first, leaf);
    maker_edge(&maker, node, first);
    struct frame *frame = made(&maker);
    assert_int_equal(frame_add_column(frame, column_inclusive(frame->columns[0], frame->graph, "all"), &err), 0);
    for (uint32_t i = 0; i <= N; i++) {
        double expected = *frame_name(frame, i) == 'l' ? 5 : N + 5;
        assert_int_equal(frame_cells(frame, 1, i, &cells, &n, &err), 0);
        assert_true(n == 1 && cells->value == expected && value(frame, 1, NULL, i) == expected);
    }
    frame_close(frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),   cmocka_unit_test(test_views),        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_graph),        cmocka_unit_test(test_cycle_alone),
        cmocka_unit_test(test_chain),  cmocka_unit_test(test_large_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
