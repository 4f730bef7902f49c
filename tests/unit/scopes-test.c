/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of analysis/build/symbolize.h, the sums of analysis/model.h, and database/database.h: columns, and
 * what is said of a damaged locus.db. */
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
#include "../lib/json-database.h"
#include "fmt/db-variables.h"

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

/* A database with a row of each kind. */
static const char small[] =
    "{'format': 'locus-database', 'version': 1, 'program': '/x/app', 'command': null, 'plan': 'EADDR', 'skid': null,"
    "'topology': null, 'n_numa_nodes': 2, 'cpu_time_ns': 1000000000, 'start_ns': 7, 'end_ns': 300, 'n_killed': 0,"
    "'has_samples': 1, 'n_threads': 1, 'n_frames': 0, 'unwind_stops': [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,5],"
    "'notes': ['a note'], 'runs': ['a run'], 'strings': ['', 'v', 'main', 'a.c', '/x/app', '<datacentric>', 'int', "
    "'.f'],"
    "'metrics': [{'name': 'EADDR (usec)', 'description': null, 'per_sample': 1000, 'hidden': 0, 'period': 1000}],"
    "'processes': [{'exe': 'app', 'host_id': 'h', 'rank': 0, 'pid': 100, 'generation': 0, 'n_threads': 1}],"
    "'threads': [[0, 0]],"
    "'events': [{'metric': 'EADDR (usec)', 'name': 'EADDR', 'scale': 1, 'taken': 200, 'overflows': 200,"
    "'fates': {'named': 190, 'not-delivered': 10}}],"
    "'scopes': [[0,1,0,0,2,3,4,3,'0x10',9], [1,5,0,0,0,3,4,5,'0x20'], [1,6,0,0,0,0,0,0,'0x0'],"
    "[0,1,5,16,5,0,0,0,'0x0'], [4,1,13,4,1,3,4,1,'0x40'], [5,5,0,0,0,3,4,5,'0x20']],"
    "'values': [[2, 0, 3000], [6, 0, 3000]],"
    "'variables': [{'name': 1, 'class': 2, 'function': 0, 'file': 3, 'line': 1, 'module': 4, 'size_bytes': 300,"
    "'n_blocks': 1, 'size_freed_bytes': 0, 'n_blocks_freed': 0, 'max_block_bytes': 300, 'n_inexact': 0,"
    "'scopes': [5], 'parts': [[1,3,2,300,0.5,6,4]], 'part_lines': [[0,2,3,5,90,3,4,6]],"
    "'type': 6, 'type_source': 0, 'element_bytes': 4, 'fields': [[0,1,7,6,0,0,4,190]],"
    "'samples': [190], 'places': [100, 90], 'causes': [[0,1,0,2,3,4,0,0,2]], 'walks': [[0,2,64,190,1.5]]}],"
    "'machines': [{'host_id': 'h', 'cpus': [[0,0,0,0], [1,1,null,1]], 'distances': [10,21,21,10]}],"
    "'cpu_counts': [[0,0,0,1,190]], 'touches': [[0,0,6,2,5,100,0,299]], 'meetings': [[0,0,6,3,1,9,64,8,1,2,3]],"
    "'reaches': [[0,0,100,90,[2,64,128,5,4,3,2,[1,100,2,90],[64,190]],[],[8,190]]], 'home_counts': [[0,0,0,1,1,190]],"
    "'field_counts': [[0,6,0,190]]}";

static void read_small(struct buf *bytes)
{
    struct model model;
    struct error err;
    struct buf text = {0};
    for (const char *c = small; *c; c++)
        buf_append(&text, *c == '\'' ? "\"" : c, 1);
    assert_int_equal(model_init(&model, &err), 0);
    if (json_database_read(text.data, text.len_bytes, "small", &model, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(locus_db_write(&model, bytes, &err), 0);
    buf_fini(&text);
    model_fini(&model);
}

/* What is read can be written, and reads as the same; anything else is one error of this file, at a place, with a
 * reason. */
static void try_damaged(const char *bytes, size_t len_bytes)
{
    struct model model, again;
    struct error err = {0}, other = {0};
    struct db_variables variables;
    struct buf out = {0}, out_again = {0};
    assert_int_equal(model_init(&model, &err), 0);
    int code = locus_db_read(bytes, len_bytes, "small.db", &model, &err);
    int code_of_variables = db_variables_read(bytes, len_bytes, "small.db", &variables, &other);
    if (code_of_variables == 0)
        db_variables_fini(&variables);
    else if (code_of_variables == ERR_MEMORY || strstr(other.text, "memory") || code == 0)
        fail_msg("variables: %s", other.text);
    if (code != 0) {
        bool is_plain = strncmp(err.text, "small.db ", 9) == 0; /* another kind or version of file */
        unsigned place;
        if ((code != ERR_FORMAT && code != ERR_UNSUPPORTED) || strstr(err.text, "memory") || strchr(err.text, '\n') ||
            (!is_plain && (sscanf(err.text, "small.db: offset %u: ", &place) != 1 || place > len_bytes)))
            fail_msg("%s", err.text);
    } else {
        assert_int_equal(locus_db_write(&model, &out, &err), 0);
        assert_int_equal(model_init(&again, &err), 0);
        assert_int_equal(locus_db_read(out.data, out.len_bytes, "again", &again, &err), 0);
        assert_int_equal(locus_db_write(&again, &out_again, &err), 0);
        assert_int_equal(out.len_bytes, out_again.len_bytes);
        assert_memory_equal(out.data, out_again.data, out.len_bytes);
        model_fini(&again);
    }
    buf_fini(&out);
    buf_fini(&out_again);
    model_fini(&model);
}

static void test_damaged(void **state)
{
    (void)state;
    struct buf bytes = {0};
    read_small(&bytes);
    for (size_t at = 0; at < bytes.len_bytes; at++) {
        const unsigned char was = (unsigned char)bytes.data[at];
        const unsigned char others[] = {0, 1, (unsigned char)(was + 1), (unsigned char)(was - 1), 127, 128, 255};
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.data[at] = (char)(was ^ 1u << bit);
            try_damaged(bytes.data, bytes.len_bytes);
        }
        for (size_t i = 0; i < sizeof others; i++) {
            bytes.data[at] = (char)others[i];
            try_damaged(bytes.data, bytes.len_bytes);
        }
        bytes.data[at] = (char)was;
        try_damaged(bytes.data, at);
    }
    try_damaged(bytes.data, bytes.len_bytes);
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_order),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
