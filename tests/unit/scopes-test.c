/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of analysis/build/symbolize.h, the sums of analysis/model.h, and the columns of database/database.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "analysis/build/build.h"
#include "analysis/build/placeholders.h"
#include "analysis/build/symbolize.h"
#include "database/database.h"

enum { DATA, MAIN, CALL, CALLEE, LINE_LATE, LINE_EARLY, DATA_LINE, N_SCOPES };

/* main { line 3 (1), line 9 (2), call at 5 { callee } } and <datacentric> { line 0 (3) }, added in a bad order. */
static void make_tree(struct model *model, uint32_t ids[N_SCOPES])
{
    struct error err;
    struct scope_builder builder = {.model = model};
    assert_int_equal(model_init(model, &err), 0);
    const struct scope data = {.kind = SCOPE_PROC, .role = ROLE_DATACENTRIC, .name = model_string(model, "<d>")};
    const struct scope function = {.kind = SCOPE_PROC, .name = model_string(model, "main")};
    const struct scope call = {.kind = SCOPE_CALL, .line = 5};
    const struct scope late = {.kind = SCOPE_LINE, .line = 9}, early = {.kind = SCOPE_LINE, .line = 3};
    ids[DATA] = scopes_child(&builder, 0, &data);
    ids[MAIN] = scopes_child(&builder, 0, &function);
    ids[CALL] = scopes_child(&builder, ids[MAIN], &call);
    ids[CALLEE] = scopes_child(&builder, ids[CALL], &function);
    ids[LINE_LATE] = scopes_child(&builder, ids[MAIN], &late);
    ids[LINE_EARLY] = scopes_child(&builder, ids[MAIN], &early);
    ids[DATA_LINE] = scopes_child(&builder, ids[DATA], &early);
    assert_int_equal(scopes_child(&builder, ids[MAIN], &late), ids[LINE_LATE]);
    assert_int_equal(model->n_scopes, 1 + N_SCOPES);
    assert_false(builder.failed);
    scopes_builder_fini(&builder);
}

static void sort_tree(struct model *model, uint32_t ids[N_SCOPES])
{
    struct error err;
    uint32_t *new_of;
    assert_int_equal(scopes_sort(model, &new_of, &err), 0);
    for (int i = 0; i < N_SCOPES; i++)
        ids[i] = new_of[ids[i]];
    free(new_of);
}

static void test_canonical_order(void **state)
{
    (void)state;
    struct model model;
    uint32_t ids[N_SCOPES];
    static const uint32_t expected[N_SCOPES] = {
        [MAIN] = 1, [LINE_EARLY] = 2, [LINE_LATE] = 3, [CALL] = 4, [CALLEE] = 5, [DATA] = 6, [DATA_LINE] = 7};
    make_tree(&model, ids);
    sort_tree(&model, ids);
    assert_memory_equal(ids, expected, sizeof expected);
    assert_int_equal(model.scopes[1].first_child, 2);
    assert_int_equal(model.scopes[1].next_sibling, 6);
    assert_int_equal(model.scopes[6].next_sibling, 0);
    assert_int_equal(model_data_root(&model), 6);
    static const uint32_t ends[N_SCOPES + 1] = {N_SCOPES, 6, 3, 4, 6, 6, 8, 8};
    for (uint32_t i = 0; i < model.n_scopes; i++)
        assert_int_equal(model_subtree_end(&model, i), i ? ends[i] : model.n_scopes);
    model_fini(&model);
}

static void test_sums(void **state)
{
    (void)state;
    struct model model;
    struct error err;
    struct columns columns;
    uint32_t ids[N_SCOPES];
    double exclusive[1 + N_SCOPES];
    make_tree(&model, ids);
    sort_tree(&model, ids);
    model.metrics = calloc(1, sizeof *model.metrics);
    model.own = calloc(model.n_scopes, sizeof *model.own);
    assert_true(model.metrics && model.own);
    model.n_metrics = 1;
    model.metrics[0].name = strdup("EADDR (usec)");
    model.own[ids[LINE_EARLY]] = 1;
    model.own[ids[LINE_LATE]] = 2;
    model.own[ids[DATA_LINE]] = 3;
    assert_int_equal(model_sum(&model, &err), 0);
    assert_true(model_value(&model, 0, 0) == 3 && model_value(&model, ids[MAIN], 0) == 3);
    assert_true(model_value(&model, ids[DATA], 0) == 3 && model_value(&model, ids[CALL], 0) == 0);
    assert_true(model.metrics[0].used_by_data);
    columns_exclusive(&model, model.own, exclusive);
    assert_true(exclusive[ids[MAIN]] == 3 && exclusive[ids[LINE_LATE]] == 2 && exclusive[0] == 0);
    assert_int_equal(columns_make(&model, &columns, &err), 0);
    assert_int_equal(columns.n_pairs, 2);
    assert_string_equal(columns.pairs[0].name, "CPUTIME (usec)");
    assert_string_equal(columns.pairs[1].name, "EADDR (usec)");
    columns_fini(&columns);
    model_fini(&model);
}

static void test_reasons(void **state)
{
    (void)state;
    char reason[32];
    assert_int_equal(placeholders_reason("DATACENTRIC_No_AddressLost", reason, sizeof reason), CLASS_UNATTRIBUTED);
    assert_string_equal(reason, "address lost");
    assert_int_equal(placeholders_reason("DATACENTRIC_Unknown_NoBlock", reason, sizeof reason), CLASS_UNKNOWN);
    assert_string_equal(reason, "no block");
    assert_int_equal(placeholders_code(ROLE_DATACENTRIC), 2);
    assert_string_equal(placeholders_title(ROLE_HEAP), "<heap allocation>");
    assert_null(placeholders_title(ROLE_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_order),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
