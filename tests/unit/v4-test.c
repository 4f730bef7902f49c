/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 files written, read and written again: the same bytes; cut anywhere or out of order: refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fmt/v4.h"

/* A file on the stack, so never to be freed. */
static void check_file(const struct v4_file *file)
{
    struct buf first = {0}, second = {0};
    struct v4_file again = {0};
    struct error err = {0};
    assert_int_equal(v4_write(file, &first, &err), 0);
    assert_int_equal(v4_read_memory(first.data, first.len_bytes, "x.db", &again, &err), 0);
    assert_int_equal(again.kind, file->kind);
    assert_int_equal(v4_write(&again, &second, &err), 0);
    assert_int_equal(first.len_bytes, second.len_bytes);
    assert_memory_equal(first.data, second.data, first.len_bytes);
    v4_fini(&again);
    for (size_t len = 0; len < first.len_bytes; len++) {
        assert_int_not_equal(v4_read_memory(first.data, len, "x.db", &again, &err), 0);
        assert_non_null(strstr(err.text, "x.db: offset "));
        assert_null(again.bytes);
    }
    buf_fini(&first);
    buf_fini(&second);
}

static void meta_comes_back(void **state)
{
    (void)state;
    const char *kinds[] = {"SUMMARY", "NODE", "", NULL};
    struct v4_scope scopes[] = {{"function", V4_SCOPE_TRANSITIVE, 0}, {"execution", V4_SCOPE_EXECUTION, 255}};
    struct v4_instance instances[] = {{1, 0}, {2, 1}, {0, 65535}};
    struct v4_summary summaries[] = {{2, "$$", 1, 7}, {0, NULL, 0, 0}};
    struct v4_metric metrics[] = {{"CPUTIME (sec)", instances, summaries, 3, 2}, {"other", NULL, NULL, 0, 0}};
    struct v4_path modules[] = {{"/bin/a", 0}}, files[] = {{"a.c", 1}, {"/bin/a", 2}};
    struct v4_function functions[] = {{"main", 1, 2, UINT64_MAX, 7, 1}, {NULL, 0, 0, 0, 0, 0}};
    struct v4_entry entries[] = {{"main thread", 1, V4_ENTRY_MAIN, 0, 1}, {NULL, 9, V4_ENTRY_THREAD, 1, 0}};
    struct v4_context contexts[] = {
        {.ctx_id = 2, .first_child = 1, .n_children = 2, .function = 1, .flags = 1, .relation = V4_CALL},
        {.ctx_id = 3, .parent = 1, .file = 2, .line = 70000, .module = 1, .offset = 5, .flags = 6, .lexical = V4_LOOP},
        {.ctx_id = 4, .parent = 1, .propagation = 0x8001, .lexical = V4_INSTRUCTION},
    };
    struct v4_file file = {.kind = V4_META};
    file.meta = (struct v4_meta){"title", "", kinds, scopes, metrics, modules, files, functions, entries, contexts,
                                 4, 2, 2, 1, 2, 2, 2, 3};
    check_file(&file);
    check_file(&(struct v4_file){.kind = V4_META});
}

static void values_come_back(void **state)
{
    (void)state;
    struct v4_cell cells[] = {{0, 1, 0.5}, {3, 0, -1e300}, {3, 1, 2}, {9, 0, 4}};
    struct v4_cell turned[] = {{1, 0, 0.5}, {7, 0, 3}, {2, 5, 1}};
    struct v4_id ids[] = {{1, 1, 2, 3}, {3, 0, 1, UINT64_MAX}};
    struct v4_profile profiles[] = {{NULL, 0, 1, cells, 1}, {ids, 2, 0, cells, 4}, {ids, 1, 0, NULL, 0}};
    struct v4_block blocks[] = {{NULL, 0}, {turned, 3}, {NULL, 0}};
    struct v4_event events[] = {{10, 3}, {11, 0}, {UINT64_MAX, 9}};
    struct v4_trace traces[] = {{1, events, 3}, {2, events, 0}, {3, events, 1}};
    check_file(&(struct v4_file){.kind = V4_PROFILE, .profiles = profiles, .n_profiles = 3});
    check_file(&(struct v4_file){.kind = V4_CCT, .blocks = blocks, .n_blocks = 3});
    check_file(&(struct v4_file){.kind = V4_TRACE, .traces = traces, .n_traces = 3, .min_time_ns = 10,
                                 .max_time_ns = UINT64_MAX});
}

static void disorder_is_refused(void **state)
{
    (void)state;
    struct v4_cell cells[] = {{3, 1, 1}, {3, 1, 2}};
    struct v4_profile profile = {.cells = cells, .n_cells = 2};
    struct v4_block block = {cells, 2};
    struct v4_file files[] = {{.kind = V4_PROFILE, .profiles = &profile, .n_profiles = 1},
                              {.kind = V4_CCT, .blocks = &block, .n_blocks = 1}};
    for (size_t i = 0; i < 2; i++) {
        struct buf out = {0};
        struct error err = {0};
        assert_int_equal(v4_write(&files[i], &out, &err), ERR_RANGE);
        assert_non_null(strstr(err.text, "ascending"));
        buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meta_comes_back),
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(disorder_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
