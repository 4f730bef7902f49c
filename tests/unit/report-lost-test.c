/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of how a program is told to do without generated code (analysis/report/report.h), and of blocks that only
 * the allocator has touched, which no report of blocks may lose, nor what a variable may save beyond its own samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "analysis/build/build.h"
#include "analysis/report/leaks.h"

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

enum { EADDR, FAULTS, METRICS };
enum { ALLOCATOR, TOUCHED, WORKED, REASON, VARIABLES };

static uint32_t child(struct scope_builder *builder, uint32_t parent, uint8_t kind, uint8_t role, const char *name,
                      const char *module)
{
    const struct scope like = {.kind = kind,
                               .role = role,
                               .name = model_string(builder->model, name),
                               .module = model_string(builder->model, module),
                               .line = kind == SCOPE_PROC ? 0 : 7};
    return scopes_child(builder, parent, &like);
}

/* Adds a variable with code that is accessed by main and by malloc for main; at: the lines of both. */
static void add_variable(struct scope_builder *builder, uint32_t root, struct variable *variable, const char *name,
                         uint32_t at[2])
{
    uint32_t scope = child(builder, root, SCOPE_PROC, ROLE_VARIABLE, name, NULL);
    uint32_t code = child(builder, scope, SCOPE_PROC, ROLE_NONE, "main", "/bin/program");
    uint32_t call = child(builder, code, SCOPE_CALL, ROLE_NONE, NULL, "/bin/program");
    uint32_t entry = child(builder, call, SCOPE_PROC, ROLE_NONE, "malloc", "/lib/libc.so.6");
    uint32_t inner = child(builder, entry, SCOPE_CALL, ROLE_NONE, NULL, "/lib/libc.so.6");
    uint32_t leaf = child(builder, inner, SCOPE_PROC, ROLE_NONE, "_int_malloc", "/lib/libc.so.6");
    at[0] = child(builder, code, SCOPE_LINE, ROLE_NONE, NULL, NULL);
    at[1] = child(builder, leaf, SCOPE_LINE, ROLE_NONE, NULL, NULL);
    *variable = (struct variable){.name = model_string(builder->model, name),
                                  .class = CLASS_HEAP,
                                  .scopes = malloc(sizeof scope),
                                  .n_scopes = 1,
                                  .cap_scopes = 1};
    assert_non_null(variable->scopes);
    variable->scopes[0] = scope;
}

/* Four variables with a sample of time in malloc each; one was also touched, which is no time, and one worked on. The
 * last one is a reason why there is no variable. Numbers of blocks: 10, 20, 30, none. */
static void make_model(struct model *model)
{
    static const char *const names[VARIABLES] = {"allocator", "touched", "worked", "reason"};
    struct error err;
    struct scope_builder builder = {.model = model};
    uint32_t at[VARIABLES][2], *new_of;
    assert_int_equal(model_init(model, &err), 0);
    model->variables = calloc(VARIABLES, sizeof *model->variables);
    model->metrics = calloc(METRICS, sizeof *model->metrics);
    assert_true(model->variables && model->metrics);
    uint32_t data = child(&builder, 0, SCOPE_PROC, ROLE_DATACENTRIC, "<d>", NULL);
    uint32_t heap = child(&builder, data, SCOPE_PROC, ROLE_HEAP, "<heap>", NULL);
    for (uint32_t i = 0; i < VARIABLES; i++) {
        struct variable *variable = &model->variables[model->n_variables++];
        add_variable(&builder, heap, variable, names[i], at[i]);
        variable->n_blocks = i == REASON ? 0 : 10 * (i + 1);
        variable->size_bytes = 100 * variable->n_blocks;
    }
    model->variables[REASON].class = CLASS_UNKNOWN;
    scopes_builder_fini(&builder);
    assert_int_equal(scopes_sort(model, &new_of, &err), 0);
    model->n_metrics = METRICS;
    model->metrics[EADDR].name = strdup("EADDR (usec)");
    model->metrics[FAULTS].name = strdup("FAULTS");
    model->own = calloc(model->n_scopes * METRICS, sizeof *model->own);
    assert_non_null(model->own);
    for (uint32_t i = 0; i < VARIABLES; i++) {
        model->variables[i].scopes[0] = new_of[model->variables[i].scopes[0]];
        model->own[new_of[at[i][1]] * METRICS + EADDR] = 1000;
    }
    model->own[new_of[at[TOUCHED][0]] * METRICS + FAULTS] = 1;
    model->own[new_of[at[WORKED][0]] * METRICS + EADDR] = 1000;
    free(new_of);
    assert_int_equal(model_sum(model, &err), 0);
    model->min_bytes = 1024;
}

static void test_leaks_keep_blocks_of_the_allocator(void **state)
{
    (void)state;
    struct model model;
    struct error err;
    struct leaks leaks;
    make_model(&model);
    assert_int_equal(leaks_make(&model, EADDR, false, false, &leaks, &err), 0);
    assert_int_equal(leaks.n_rows, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(leaks.rows[i].n_live, 30 - 10 * i);
        assert_int_equal(leaks.rows[i].live_bytes, 100 * (30 - 10 * i));
        assert_true(leaks.rows[i].row->value == (i ? 0 : 1000));
    }
    assert_int_equal(leaks.live.n_blocks, 60);
    assert_int_equal(leaks.allocated.n_blocks, 60);
    assert_int_equal(leaks.unused.n_blocks, 10);
    leaks_fini(&leaks);
    model_fini(&model);
}

/* In the table of variables they are there on request only, and what is no variable is not. */
static void test_table_shows_them_on_request(void **state)
{
    (void)state;
    struct model model;
    struct error err;
    struct report report;
    make_model(&model);
    for (unsigned with_unused = 0; with_unused < 2; with_unused++) {
        unsigned n_rows = 0, n_reasons = 0;
        double sum = 0;
        assert_int_equal(report_make(&model, EADDR, with_unused, true, &report, &err), 0);
        for (size_t i = 0; i < report.n_rows; i++) {
            n_rows += report.rows[i].variable != NULL;
            n_reasons += strcmp(report.rows[i].name, "reason") == 0;
            sum += report.rows[i].value;
        }
        assert_int_equal(n_rows, with_unused ? 3 : 1);
        assert_int_equal(n_reasons, 0);
        assert_true(sum == 5000);
        report_fini(&report);
    }
    model_fini(&model);
}

/* Data that fill the last-level cache may cost more than their own samples show. A second thread changes nothing of it
 * while the threads share no line. */
static void test_bound_beyond_the_share(void **state)
{
    (void)state;
    struct model model;
    struct error err;
    struct report report;
    make_model(&model);
    struct variable *worked = &model.variables[WORKED];
    const struct cause_sum sum = {.memory_high = 1000, .memory_most = 1500, .unverified = 1000, .longer = 1};
    model.events = calloc(1, sizeof *model.events);
    worked->causes = calloc(1, sizeof *worked->causes);
    model.reaches = calloc(1, sizeof *model.reaches);
    assert_true(model.events && worked->causes && model.reaches);
    model.events[0] = (struct event_sum){.metric = strdup("EADDR (usec)"), .name = strdup("EADDR"), .scale = 1};
    model.n_events = worked->n_causes = model.n_reaches = 1;
    worked->causes[0].sum = sum;
    model.reaches[0].variable = WORKED;
    for (uint32_t n_threads = 1; n_threads <= 2; n_threads++) {
        model.n_threads = n_threads;
        assert_int_equal(report_make(&model, EADDR, false, false, &report, &err), 0);
        const struct report_row *row = &report.rows[0];
        while (row < report.rows + report.n_rows - 1 && strcmp(row->name, "worked") != 0)
            row++;
        assert_string_equal(row->name, "worked");
        assert_true(row->causes.memory_high <= row->share + 1e-9);
        assert_true(row->causes.memory_most > 1.49 * row->share);
        report_fini(&report);
    }
    model.n_threads = 0; /* there is no list of them */
    model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interpreters), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_leaks_keep_blocks_of_the_allocator),
                                       cmocka_unit_test(test_table_shows_them_on_request),
                                       cmocka_unit_test(test_bound_beyond_the_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
