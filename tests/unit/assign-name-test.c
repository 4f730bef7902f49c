/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of structure/names/assign-name.h: one row per kind of statement that allocates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "structure/names/assign-name.h"

struct row {
    const char *statement, *callee;
    size_t offset;
    const char *name; /* NULL = none, "return" = ASSIGN_RETURN */
};

static const struct row rows[] = {
    {"a = malloc(n);", "malloc", 0, "a"},
    {"double *a = (double*)calloc(n, sizeof(double));", "calloc", 0, "a"},
    {"double **rows = (double **) malloc(n * sizeof *rows);", "malloc", 0, "rows"},
    {"s->field = malloc(n);", "malloc", 0, "s->field"},
    {"s.inner.x = xmalloc(n);", "xmalloc", 0, "s.inner.x"},
    {"grid[i] = malloc(n * sizeof(double));", "malloc", 0, "grid[i]"},
    {"if ((p = malloc(n)) == NULL) {", "malloc", 0, "p"},
    {"if (!(buf = malloc(n))) return -1;", "malloc", 0, "buf"},
    {"for (i = 0; i < n; i++) row[i] = malloc(m);", "malloc", 30, "row[i]"},
    {"*out = malloc(n);", "malloc", 0, "*out"},
    {"(*out)->data = malloc(n);", "malloc", 0, "(*out)->data"},
    {"a = malloc(n); b = malloc(n);", "malloc", 4, "a"},
    {"a = malloc(n); b = malloc(n);", "malloc", 19, "b"},
    {"double *x = malloc(n), *y = malloc(n);", "malloc", 11, "x"},
    {"double *x = malloc(n), *y = malloc(n);", "malloc", 28, "y"},
    {"return malloc(n);", "malloc", 0, "return"},
    {"return (double *)hypre_CAlloc(n, 8);", "hypre_CAlloc", 0, "return"},
    {"use(malloc(n));", "malloc", 0, NULL},
    {"T *p = new T[n];", "operator new[](unsigned long)", 0, "p"},
    {"auto list = new Node(3);", "operator new(unsigned long)", 0, "list"},
    {"this->data_ = new double[n];", "operator new[](unsigned long)", 0, "this->data_"},
    {"std::unique_ptr<double[]> p(new double[n]);", "operator new[](unsigned long)", 0, "p"},
    {"holder.reset(new double[n]);", "operator new[](unsigned long)", 0, "holder"},
    {"std::vector<double> v(n);", "vector", 0, "v"},
    {"std::vector<double> v(n, 1.0);", NULL, 20, "v"},
    {"std::vector<std::vector<int>> table;", NULL, 0, "table"},
    {"v.push_back(x);", "push_back", 0, "v"},
    {"grid->cells.resize(n * m);", "resize", 0, "grid->cells"},
    {"counts[key] = 1;", "operator[]", 0, "counts[key]"},
    {"sim.bins[key(i)] += 1;", "operator[]", 15, "sim.bins[key(i)]"},
    {"x = table[row[i].key].v;", "operator[]", 20, "table[row[i].key]"},
    {"x = table[row[i].key].v;", "operator[]", 15, "row[i]"},
    {"x = table[row[i].key].v;", "operator[]", 4, "table[row[i].key]"},
    {"auto m = std::make_shared<Mesh>(n);", "make_shared", 0, "m"},
    {"x = pool->alloc(n);", "alloc", 0, "x"},
    {"ALLOCATE (temp(nx,ny), stat=ierr)", NULL, 0, "temp"},
    {"allocate(x(n))", NULL, 0, "x"},
    {"allocate(mesh%cells(n), mesh%faces(m))", NULL, 0, "mesh%cells"},
    {"10 allocate(x(n))", NULL, 0, "x"},
    {"if (.not. allocated(x)) allocate(x(n), stat=ierr)", NULL, 0, "x"},
    {"call f(n); allocate(y(n))", NULL, 0, "y"},
    {"density = static_cast<double *>(allocator.allocate(n * sizeof(double)));", "allocate", 0, "density"},
    {"double *p = pool->allocate(n);", "allocate", 0, "p"},
    {"x = (double *)allocate(n);", "allocate", 0, "x"},
    {"return allocate(n);", "allocate", 0, "return"},
    {"T *q = umpire::Allocator::allocate(n);", "allocate", 0, "q"},
    {"call random_number(r)", "random_number", 0, NULL},
    {"REAL(r_knd), DIMENSION(nang,4) :: hv, fxhv", NULL, 0, "hv|fxhv"},
    {"real(wp) :: automatic(n + 11)", NULL, 0, "automatic"},
    {"real(8), dimension(2:n) :: a(0:n, m), b ! c, d", "malloc", 0, "a|b"},
    {"double precision, dimension(n) :: work", NULL, 0, "work"},
    {"integer, dimension(n) :: a, b, c, d", NULL, 0, NULL},
    {"real::v(n)", NULL, 0, "v"},
    {"real::Grid v(n);", NULL, 0, "v"},
    {"", "malloc", 0, NULL},
    {"malloc(n);", "malloc", 0, NULL},
    {"((((", "malloc", 0, NULL},
    {"a)]) = malloc(n", "malloc", 0, NULL},
};

static void test_passed_objects(void **state)
{
    (void)state;
    static const struct row calls[] = {
        {"call electrons%setup(n); call ions%setup(n/2)", "setup", 27, "electrons"},
        {"call electrons%setup(n); call ions%setup(n/2)", "setup", 50, "ions"},
        {"call sim%blocks(i)%Setup(f(n))", "setup", 0, "sim%blocks(:)"},
        {"call blocks(i + 1)%init", "block_init", 0, "blocks(:)"},
        {"x = a%total(b%n)", "total", 0, "a"},
        {"call setup(self%p)", "setup", 0, NULL},
        {"x = self%p(i)", "setup", 0, NULL},
        {"call )%init", "setup", 0, NULL},
        {"%", "", 0, NULL},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char name[64];
        bool is_found =
            assign_name_passed_object(calls[i].statement, calls[i].callee, calls[i].offset, name, sizeof name);
        assert_string_equal(is_found ? name : "-", calls[i].name ? calls[i].name : "-");
    }
}

static void test_statements(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64] = "";
        enum assign_kind kind = assign_name_find(rows[i].statement, rows[i].callee, rows[i].offset, name, sizeof name);
        const char *got = kind == ASSIGN_NAME ? name : kind == ASSIGN_RETURN ? "return" : "-";
        if (strcmp(got, rows[i].name ? rows[i].name : "-") != 0)
            fail_msg("%s: got %s, not %s", rows[i].statement, got, rows[i].name ? rows[i].name : "no name");
    }
}

/* Commas in template arguments and in literals part no arguments; those between comparisons do. */
static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *statement;
        size_t index;
        const char *argument; /* NULL: none */
    } cases[] = {
        {"fill(a, b);", 1, "b"},
        {"fill(a, b);", 2, NULL},
        {"fill(std::map<int, double>(), p);", 1, "p"},
        {"fill(std::map<int, std::pair<int, int>>{}, p);", 1, "p"},
        {"fill(convert<int, double>(x), &p);", 1, "&p"},
        {"fill<int, double>(a, p);", 1, "p"},
        {"fill<std::function<void(int, int)>>(a, p);", 1, "p"},
        {"fill(a < b, c > d, p);", 2, "p"},
        {"fill(a < b, p);", 1, "p"},
        {"fill(a<b, p);", 1, "p"},
        {"fill(1<<n, p, m>>(2));", 1, "p"},
        {"fill(s->n, p);", 1, "p"},
        {"fill(\"a, b\", p);", 1, "p"},
        {"fill(\"a\\\", (b\", p);", 1, "p"},
        {"fill(L\"(\", p);", 1, "p"},
        {"fill(',', p);", 1, "p"},
        {"fill('\\'', p);", 1, "p"},
        {"fill(u8'(', p);", 1, "p"},
        {"fill(1'000'000, p);", 1, "p"},
        {"fill(R\"x(a, \")x\", p);", 1, "p"},
        {"fill([&](int i, int j) { return i, j; }, p);", 1, "p"},
        {"refill(a, b);", 1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char argument[64] = "";
        bool is_found = assign_name_argument(cases[i].statement, "fill", 0, cases[i].index, argument, sizeof argument);
        if (is_found != (cases[i].argument != NULL) || (is_found && strcmp(argument, cases[i].argument) != 0))
            fail_msg("%s: got '%s'", cases[i].statement, argument);
    }
}

static void test_fortran_objects(void **state)
{
    (void)state;
    char name[64];
    const char *statement = "allocate(a(n), b(0:n+1,2), c, stat=ierr)";
    assert_true(assign_name_fortran(statement, 1, name, sizeof name));
    assert_string_equal(name, "b");
    assert_true(assign_name_fortran(statement, 2, name, sizeof name));
    assert_string_equal(name, "c");
    assert_false(assign_name_fortran(statement, 3, name, sizeof name));
    assert_false(assign_name_fortran(statement, 4, name, sizeof name));
    assert_true(assign_name_fortran("allocate(real(8) :: d(n)); if (.not. allocated(e)) allocate (m(i)%e(n))", 1, name,
                                    sizeof name));
    assert_string_equal(name, "m(:)%e");
    assert_true(assign_name_is_same("fields::rho", "Rho"));
    assert_false(assign_name_is_same("mesh%rho", "rho"));
    assert_false(assign_name_fortran("deallocate(a)", 0, name, sizeof name));
    assert_false(assign_name_fortran("p = my_allocate(n)", 0, name, sizeof name));
}

static void test_returns(void **state)
{
    (void)state;
    assert_true(assign_name_returns("    return p;", "p"));
    assert_true(assign_name_returns("return (double *)p;", "p"));
    assert_true(assign_name_returns("return (p);", "p"));
    assert_false(assign_name_returns("return p->next;", "p"));
    assert_false(assign_name_returns("return pp;", "p"));
    assert_false(assign_name_returns("returned = p;", "p"));
    assert_false(assign_name_returns("p = 0;", "p"));
}

static void test_stores(void **state)
{
    (void)state;
    char pointer[8];
    assert_true(assign_name_stores("    *out = p;", "p", pointer, sizeof pointer));
    assert_string_equal(pointer, "out");
    assert_true(assign_name_stores("*o=(void *)p;", "p", pointer, sizeof pointer));
    assert_string_equal(pointer, "o");
    assert_false(assign_name_stores("*out == p;", "p", pointer, sizeof pointer));
    assert_false(assign_name_stores("*out = p->next;", "p", pointer, sizeof pointer));
    assert_false(assign_name_stores("*out = pp;", "p", pointer, sizeof pointer));
    assert_false(assign_name_stores("out = p;", "p", pointer, sizeof pointer));
    assert_false(assign_name_stores("*much_too_long = p;", "p", pointer, sizeof pointer));
    assert_false(assign_name_stores("*", "p", pointer, sizeof pointer));
}

static void test_function_names(void **state)
{
    (void)state;
    char text[128];
    assert_string_equal(assign_name_function("malloc", text, sizeof text), "malloc");
    assert_string_equal(
        assign_name_function("std::vector<int, std::allocator<int> >::resize(unsigned long)", text, sizeof text),
        "resize");
    assert_string_equal(text, "std::vector::resize");
    assert_string_equal(assign_name_function("void std::f<int>(int)", text, sizeof text), "f");
    assert_string_equal(text, "std::f");
    (void)assign_name_function("operator new[](unsigned long)", text, sizeof text);
    assert_string_equal(text, "operator new[]");
    (void)assign_name_function("Mesh::operator()(int)", text, sizeof text);
    assert_string_equal(text, "Mesh::operator()");
    assert_string_equal(assign_name_function("int a::(anonymous namespace)::Grid::fill(b::(anonymous namespace)::Row*)",
                                             text, sizeof text),
                        "fill");
    assert_string_equal(text, "a::(anonymous namespace)::Grid::fill");
    (void)assign_name_function("main::{lambda(unsigned int)#2}::operator()(unsigned int) const", text, sizeof text);
    assert_string_equal(text, "main::{lambda(unsigned int)#2}::operator()");
    (void)assign_name_function("int f(char) const::Local::g(int)", text, sizeof text);
    assert_string_equal(text, "f::Local::g");
    (void)assign_name_function("f()::{lambda(", text, 8);
    assert_string_equal(text, "f::{lam");
}

static void test_parameters(void **state)
{
    (void)state;
    assert_string_equal(assign_name_start("int ns::driver<double, Box&>(Box const&)"),
                        "ns::driver<double, Box&>(Box const&)");
    assert_string_equal(assign_name_start("void (anonymous namespace)::fill<int>(int*)"),
                        "(anonymous namespace)::fill<int>(int*)");
    assert_string_equal(assign_name_start("unsigned long ns::Mesh::operator()<int>(int)"),
                        "ns::Mesh::operator()<int>(int)");
    assert_string_equal(assign_name_start("operator new[](unsigned long)"), "operator new[](unsigned long)");
    assert_string_equal(assign_name_start("main"), "main");
    assert_string_equal(assign_name_parameters("std::f<void (*)(int)>(int)"), "(int)");
    assert_string_equal(assign_name_parameters("(anonymous namespace)::f(char)"), "(char)");
    assert_string_equal(assign_name_parameters("Mesh::operator()(int) const"), "(int) const");
    assert_string_equal(assign_name_parameters("Mesh::operator()(int)::{lambda(char)#1}::operator()(char) const"),
                        "(char) const");
    assert_string_equal(assign_name_parameters("{lambda at mesh.cc:12}::operator()"), "");
    assert_string_equal(assign_name_parameters("main"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_stores),
        cmocka_unit_test(test_statements),      cmocka_unit_test(test_passed_objects),
        cmocka_unit_test(test_fortran_objects), cmocka_unit_test(test_returns),
        cmocka_unit_test(test_function_names),  cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
