/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of export/text-cells.h and export/vars-table.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "export/text-cells.h"
#include "export/vars-table.h"

static const struct export_job plain = {.columns = 100}, wide = {.columns = 100, .unicode = true};

static void expect(struct buf *out, const char *expected)
{
    assert_string_equal(out->data, expected);
    buf_fini(out);
}

static void test_cells(void **state)
{
    (void)state;
    struct buf out = {0};
    text_cell(&out, &plain, "abc", 5, false);
    text_cell(&out, &plain, "abc", 5, true);
    expect(&out, "abc    abc");
    text_cell(&out, &plain, "abcdef", 5, false);
    text_cell(&out, &wide, "abcdef", 5, false);
    expect(&out, "abc..abcd\xe2\x80\xa6");
    text_cell(&out, &wide, "\xc3\xa9\xc3\xa9", 3, true);
    expect(&out, " \xc3\xa9\xc3\xa9");
    text_cut(&out, &plain, "a\tb\033c\xff", 15);
    expect(&out, "a\\x09b\\x1bc\\xff");
    text_cut(&out, &plain, "\xc2\x9b\xe2\x80\xae\xc3\xa9", 99);
    expect(&out, "\\xc2\\x9b\\xe2\\x80\\xae\xc3\xa9");
    text_cut(&out, &plain, "abc", 3);
    expect(&out, "abc");
}

static void test_functions(void **state)
{
    (void)state;
    struct buf out = {0};
    text_function(&out, "int a::(anonymous namespace)::Grid<int>::fill(b::Row*) [clone .part.0]");
    expect(&out, "a::(anonymous namespace)::Grid::fill");
    text_function(&out, "func_0x1f780 [libgomp.so.1]");
    expect(&out, "func_0x1f780 [libgomp.so.1]");
    text_function(&out, "0xb46 [vdso]");
    expect(&out, "0xb46 [vdso]");
    text_function(&out, "main._omp_fn.0");
    expect(&out, "main._omp_fn.0");
}

static void check_origin(const char *origin, const char *expected)
{
    struct buf out = {0};
    text_origin(&out, origin);
    assert_string_equal(out.data, expected);
    buf_fini(&out);
}

static void check_short(const char *name, const char *expected)
{
    struct buf out = {0};
    text_short_name(&out, name);
    assert_string_equal(out.data ? out.data : "", expected);
    buf_fini(&out);
}

static void test_short_names(void **state)
{
    (void)state;
    check_short("Generator<int, std::pair<int, NodeWeight<int, int> > >::rng", "Generator::rng");
    check_short("std::vector<std::pair<int, double>, std::allocator<std::pair<int, double> > > cells (nodes)",
                "std::vector cells (nodes)");
    check_short("<compute>", "<compute>");
    check_short("Matrix::operator<", "Matrix::operator<");
    check_short("Matrix<double>::operator<<(a)", "Matrix::operator<<(a)");
    check_short("Matrix<double>::operator->", "Matrix::operator->");
    check_short("note_uses > func_0x10 [app]", "note_uses > func_0x10 [app]");
    check_short("Table<(N > 4)>::row", "Table::row");
    check_short("x<y", "x<y");
    check_short("state->p", "state->p");
    check_short("/home/me/model.bin", "model.bin");
    check_short("<module> (<frozen stat>:147)", "<module> (<frozen stat>:147)");
    check_short("outer.<locals>.inner", "outer.<locals>.inner");
    check_short("/tmp/a<b>c, std::allocator<b>", "a<b>c, std::allocator<b>");
}

static void check_short_function(const char *name, const char *expected)
{
    struct buf out = {0};
    text_short_function(&out, name);
    assert_string_equal(out.data ? out.data : "", expected);
    buf_fini(&out);
}

static void test_short_functions(void **state)
{
    (void)state;
    check_short_function("Builder<int, int, true>::make(pvector<Edge<int, int> > const&, bool)", "Builder::make");
    check_short_function("Table<double>::row", "Table::row");
    check_short_function("main thread", "main thread");
    check_short_function("func_0x10 [app]", "func_0x10 [app]");
    check_short_function("a node (of another tool)", "a node (of another tool)");
    check_short_function("/tmp/Foo<int>::bar(1).dat", "Foo<int>::bar(1).dat");
    check_short_function("/tmp/of (1)/a<b>c", "a<b>c");
    check_short_function("", "");
}

static void test_origins(void **state)
{
    (void)state;
    check_origin("Array<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, "
                 "std::allocator<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > > "
                 ">::nil_rep()::nr",
                 "Array<std::string>::nil_rep()::nr");
    check_origin("std::map<int, std::vector<int, std::allocator<int> >, std::less<int>, "
                 "std::allocator<std::pair<int const, std::vector<int, std::allocator<int> > > > >::at",
                 "std::map<int, std::vector<int>>::at");
    check_origin("run<int, std::lesser<int> >", "run<int, std::lesser<int> >");
    check_origin("x, std::allocator<", "x, std::allocator<");
    check_origin("solve (grid.cc:12)", "solve (grid.cc:12)");
}

static void test_bars(void **state)
{
    (void)state;
    struct buf out = {0};
    text_bar(&out, &plain, 50, 8);
    expect(&out, "####    ");
    text_bar(&out, &plain, 1000, 4);
    expect(&out, "####");
    text_bar(&out, &plain, -3, 4);
    expect(&out, "    ");
    text_bar(&out, &wide, 50, 3);
    expect(&out, "\xe2\x96\x88\xe2\x96\x8c ");
}

static void check_size(uint64_t bytes, const char *expected)
{
    char text[16];
    text_size(bytes, text);
    assert_string_equal(text, expected);
}

static void test_sizes(void **state)
{
    (void)state;
    check_size(0, "-");
    check_size(1023, "1023 B");
    check_size(1536, "1.5 KiB");
    check_size((1 << 20) - 4, "1.0 MiB");
    check_size((1 << 20) - 64, "1023.9 KiB");
    check_size(UINT64_C(64) << 20, "64.0 MiB");
    check_size(UINT64_MAX, "16.0 EiB");
}

static void test_skid(void **state)
{
    (void)state;
    struct buf out = {0};
    skid_text(&out, "{\"rule\": \"holds\", \"kernels\": [{\"samples\": 10, \"percent_next\": 100.0}, "
                    "{\"samples\": 30, \"percent_next\": 90.0}]}");
    expect(&out, "rule holds: 92 % of 40 samples lay on the next instruction (worst loop: 90 %)");
    skid_text(&out, "not measured");
    expect(&out, "not measured");
    skid_text(&out, "{}");
    expect(&out, "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),           cmocka_unit_test(test_functions), cmocka_unit_test(test_short_names),
        cmocka_unit_test(test_short_functions), cmocka_unit_test(test_origins),   cmocka_unit_test(test_bars),
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_skid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
