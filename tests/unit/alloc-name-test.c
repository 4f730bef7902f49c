/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of structure/names/alloc-name.h: this program allocates in many ways and asks for the names of its own
 * variables. Built without and with optimisation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <elf.h>

#include "structure/names/alloc-name.h"

#if defined(UNOPTIMISED) && defined(__clang__)
#pragma clang optimize off
#elif defined(UNOPTIMISED)
#pragma GCC optimize("O0")
#endif

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

extern const char __ehdr_start[];

static uintptr_t last_return; /* address behind the last allocation call */
static volatile size_t block_bytes = 64;
static void *volatile sink;

/* Stands for malloc: notes where it was called from. */
static KEEP void *take(size_t n_bytes)
{
    last_return = (uintptr_t)__builtin_return_address(0);
    return malloc(n_bytes);
}

struct vector {
    double *values;
    size_t n;
};

struct solver {
    int rank;
    struct vector residual;
    double **rows;
};

static double *global_array;
static double *table_of_arrays[4];
static struct solver global_solver;

static struct symbols *own;

static const char *name_of_last(void)
{
    static struct alloc_name name;
    enum alloc_name_result result =
        alloc_name_find(own, last_return - (uintptr_t)__ehdr_start, ALLOC_NAME_RETURN_VALUE, &name);
    if (result == ALLOC_NAME_RETURNED)
        return "(returned)";
    return result == ALLOC_NAME_FOUND ? name.text : "(unknown)";
}

static KEEP void use(void *p)
{
    sink = p;
    free(p);
}

static KEEP void make_local(void)
{
    double *a = take(block_bytes);
    a[0] = 1;
    use(a);
}

static KEEP void make_global(void)
{
    global_array = take(block_bytes);
}

static KEEP void make_element(int i)
{
    table_of_arrays[i] = take(block_bytes);
}

static KEEP void make_member(struct solver *s)
{
    s->rows = take(block_bytes);
}

static KEEP void make_nested_member(struct solver *s)
{
    s->residual.values = take(block_bytes);
}

static KEEP void make_global_member(void)
{
    global_solver.residual.values = take(block_bytes);
}

static KEEP void make_row(struct solver *s, int i)
{
    s->rows[i] = take(block_bytes);
}

static KEEP void *wrapper(size_t n_bytes)
{
    void *p = take(n_bytes);
    if (!p)
        abort();
    return p;
}

static KEEP void make_two_on_a_line(uintptr_t *first)
{
    double *left = take(block_bytes);
    *first = last_return;
    double *right = take(block_bytes);
    left[0] = right[0] = 2;
    use(left);
    use(right);
}

static KEEP void make_ignored(void)
{
    if (!take(block_bytes))
        abort();
}

static void test_local(void **state)
{
    (void)state;
    make_local();
    assert_string_equal(name_of_last(), "a");
}

static void test_globals(void **state)
{
    (void)state;
    make_global();
    assert_string_equal(name_of_last(), "global_array");
    sink = global_array;
    make_global_member();
    assert_string_equal(name_of_last(), "global_solver.residual.values");
    sink = global_solver.residual.values;
    make_element(2);
    assert_string_equal(name_of_last(), "table_of_arrays[]");
    sink = table_of_arrays[block_bytes / 32];
}

static void test_members(void **state)
{
    (void)state;
    static double *rows[8];
    struct solver solver = {.rank = 1};
    make_member(&solver);
    assert_string_equal(name_of_last(), "s->rows");
    make_nested_member(&solver);
    assert_string_equal(name_of_last(), "s->residual.values");
    sink = solver.rows;
    solver.rows = rows;
    sink = solver.residual.values;
    make_row(&solver, 3);
    sink = rows[block_bytes / 16];
    assert_string_equal(name_of_last(), "s->rows[]");
}

static void test_wrapper_returns(void **state)
{
    (void)state;
    use(wrapper(block_bytes));
    assert_string_equal(name_of_last(), "(returned)");
}

static void test_two_on_a_line(void **state)
{
    (void)state;
    uintptr_t first = 0;
    make_two_on_a_line(&first);
    assert_string_equal(name_of_last(), "right");
    last_return = first;
    assert_string_equal(name_of_last(), "left");
}

static void test_ignored_result(void **state)
{
    (void)state;
    make_ignored();
    assert_string_equal(name_of_last(), "(unknown)");
}

static void test_nonsense_address(void **state)
{
    (void)state;
    struct alloc_name name;
    assert_int_equal(alloc_name_find(own, 1, ALLOC_NAME_RETURN_VALUE, &name), ALLOC_NAME_UNKNOWN);
    assert_int_equal(alloc_name_find(own, UINT64_MAX, ALLOC_NAME_FIRST_ARGUMENT, &name), ALLOC_NAME_UNKNOWN);
}

int main(void)
{
#ifndef __x86_64__
    printf("SKIP: machine code is followed on x86-64 only; elsewhere the source text gives the names\n");
    return 77;
#endif
    struct error err;
    if (symbols_open("/proc/self/exe", &own, &err) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_globals),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_wrapper_returns),
        cmocka_unit_test(test_two_on_a_line),
        cmocka_unit_test(test_ignored_result),
        cmocka_unit_test(test_nonsense_address),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    symbols_close(own);
    return failed;
}
