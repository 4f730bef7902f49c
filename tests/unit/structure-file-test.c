/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of structure/xml/structure-file.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "structure/xml/structure-file.h"

/* f, with a call inlined in a loop, and what overlaps; the second module is named by a relative path. */
static const char text[] =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE HPCToolkitStructure [\n<!ELEMENT LM (F)*>\n]>\n<!-- <LM n=\"no\"/> -->\n"
    "<HPCToolkitStructure i='0'><LM i='2' n='/opt/a&amp;b' v='{}'>\n"
    "<F i='3' n='&lt;unknown file&gt;'><V i='4' n='table' v='{[0x5000-0x5400)}'/></F>\n"
    "<F i='5' n='/src/&#x41;.c'>"
    "<P i='6' n='f&lt;int&gt;' ln='_f' l='10' v='{[0x100-0x101)}'>"
    "<S i='7' l='11' v='{[0x100-0x110) [0x130-0x140)}'/><S i='8' l='12' v='{[0x108-0x118)}'/>"
    "<L i='9' l='20-25' f='/src/l.c' v='{[0x118-0x119)}' m='2' ir='1'>"
    "<A i='10' l='21' f='/src/A.c' n='' v='{}'><A i='11' l='3' f='/src/g.h' n='g'>"
    "<S i='12' l='4' v='{[0x118-0x120)}'/></A></A></L></P>"
    "<T d='1'><M n='x'/></T></F></LM>"
    "<LM i='13' n='./rel'><F i='14' n='[rel]'><P i='15' n='h'><S i='16' l='0' v='{[0x1-0x2)}'/></P></F></LM>"
    "</HPCToolkitStructure>\n";

static int read_text(const char *content, struct structure_file **file, struct error *err)
{
    struct buf copy = {0};
    buf_append(&copy, content, strlen(content));
    int code = structure_file_read(&copy, "x.hpcstruct", file, err);
    buf_fini(&copy);
    return code;
}

static void check_frame(const struct symbols_frame *frame, const char *function, const char *file, uint32_t line)
{
    assert_string_equal(frame->function, function);
    assert_string_equal(frame->file, file);
    assert_int_equal(frame->line, line);
}

static void test_lookup(void **state)
{
    (void)state;
    struct structure_file *file = NULL;
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    assert_int_equal(read_text(text, &file, NULL), 0);
    assert_int_equal(structure_file_module(file, "/opt/a&b"), 0);
    assert_int_equal(structure_file_lookup(file, 0, 0x10f, frames), 1);
    check_frame(&frames[0], "f<int>", "/src/A.c", 11); /* what came first stays */
    assert_int_equal(frames[0].decl_line, 10);
    assert_int_equal(frames[0].low_vaddr, 0x100);
    assert_int_equal(structure_file_lookup(file, 0, 0x110, frames), 1);
    check_frame(&frames[0], "f<int>", "/src/A.c", 12);
    assert_int_equal(structure_file_lookup(file, 0, 0x11f, frames), 2);
    check_frame(&frames[0], "f<int>", "/src/A.c", 21);
    check_frame(&frames[1], "g", "/src/g.h", 4);
    assert_int_equal(frames[1].decl_line, 3);
    assert_int_equal(structure_file_lookup(file, 0, 0x120, frames), 0);
    assert_int_equal(structure_file_lookup(file, 0, 0x13f, frames), 1);
    const struct structure_function *function = structure_file_function_at(file, 0, 0x118);
    const struct structure_scope *loop = &function->scopes[1];
    assert_true(loop->kind == STRUCTURE_LOOP && loop->line == 20 && loop->end_line == 25 && loop->is_irreducible);
    assert_string_equal(loop->file, "/src/l.c");
    structure_file_free(file);
}

static void test_modules(void **state)
{
    (void)state;
    struct structure_file *file = NULL;
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct symbols_data data;
    assert_int_equal(read_text(text, &file, NULL), 0);
    assert_int_equal(structure_file_module(file, "/home/ada/rel"), 1);
    assert_true(structure_file_module(file, "/other/a&b") == SIZE_MAX);
    assert_int_equal(structure_file_lookup(file, 1, 1, frames), 1);
    assert_null(frames[0].file);
    assert_true(structure_file_data_at(file, 0, 0x53ff, &data));
    assert_string_equal(data.name, "table");
    assert_int_equal(data.size_bytes, 0x400);
    assert_false(structure_file_data_at(file, 0, 0x5400, &data));
    structure_file_free(file);
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "text",      "<a/>",         "<LM n='x'",
                                      "<LM n='x'>", "<LM n=x/>", "<LM n='x/>",   "<LM n>",
                                      "<!-- <LM/>", "<LM 'x'/>", "< LM n='x'/>", "<LM n='x'><F></LM>"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct structure_file *file = NULL;
        struct error err = {0};
        assert_int_equal(read_text(bad[i], &file, &err), ERR_FORMAT);
        assert_null(file);
        assert_non_null(strstr(err.text, "x.hpcstruct"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
