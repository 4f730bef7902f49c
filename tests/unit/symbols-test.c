/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of structure/elf/symbols.h: the test program looks itself up, so every answer is known here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "structure/elf/symbols.h"
#include "structure/types/locals.h"

int table_of_test[2000];
static int hidden_table[500];
static _Thread_local volatile int thread_table[300];
static volatile int sink;

static inline __attribute__((always_inline)) int inlined_leaf(int x)
{
    void *here = __builtin_return_address(0);
    sink = x + (here != NULL);
    return sink;
}

enum { CALL_LINE = __LINE__ + 5, LINES_TO_ARRAYS = 95 };

/* Calls through a volatile pointer so that the return address is known to lie in this function. */
static __attribute__((noinline)) uintptr_t outer_function(uintptr_t (*volatile where)(void))
{
    uintptr_t at = where();
    return at + (uintptr_t)(inlined_leaf((int)at) & 0);
}

static __attribute__((noinline)) uintptr_t return_address(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

static int first_module(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1;
}

static uintptr_t load_bias(void)
{
    uintptr_t bias = 0;
    (void)dl_iterate_phdr(first_module, &bias);
    return bias;
}

static int open_self(void **state)
{
    struct error err;
    struct symbols *symbols = NULL;
    if (symbols_open("/proc/self/exe", &symbols, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    *state = symbols;
    return 0;
}

static int close_self(void **state)
{
    symbols_close(*state);
    return 0;
}

static void test_function_and_line(void **state)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    uintptr_t at = outer_function(return_address);
    assert_true(symbols_has_debug(*state));
    assert_true(symbols_lookup(*state, at - 1 - load_bias(), frames) >= 1);
    assert_string_equal(frames[0].function, "outer_function");
    assert_int_equal(frames[0].line, CALL_LINE);
    assert_int_equal(frames[0].decl_line, CALL_LINE - 2);
    assert_non_null(strstr(frames[0].file, "tests/unit/symbols-test.c"));
    assert_ptr_equal(frames[0].file, frames[0].decl_file);
    assert_int_equal(frames[0].low_vaddr, (uintptr_t)outer_function - load_bias());
}

static void test_inlined_function(void **state)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    uintptr_t start = (uintptr_t)outer_function - load_bias();
    int seen = 0;
    for (uintptr_t at = start; at < start + 200 && !seen; at++) {
        size_t n = symbols_lookup(*state, at, frames);
        if (n == 0 || strcmp(frames[0].function, "outer_function") != 0)
            break;
        if (n == 2) {
            seen = 1;
            assert_string_equal(frames[1].function, "inlined_leaf");
            assert_int_equal(frames[0].line, CALL_LINE + 1);
            assert_true(frames[1].line >= CALL_LINE - 10 && frames[1].line < CALL_LINE - 4);
            assert_int_equal(frames[1].low_vaddr, 0);
        }
    }
    assert_int_equal(seen, 1);
}

static void test_data(void **state)
{
    struct symbols_data data;
    uintptr_t bias = load_bias();
    assert_true(symbols_data_at(*state, (uintptr_t)&table_of_test[1999] - bias, &data));
    assert_string_equal(data.name, "table_of_test");
    assert_int_equal(data.size_bytes, sizeof table_of_test);
    assert_non_null(data.decl_file);
    assert_true(symbols_data_at(*state, (uintptr_t)&hidden_table[3] - bias, &data));
    assert_string_equal(data.name, "hidden_table");
    assert_true(symbols_tls_at(*state, 4, &data));
    assert_string_equal(data.name, "thread_table");
    thread_table[sink & 1] = 1;
    assert_false(symbols_data_at(*state, (uintptr_t)outer_function - bias, &data));
}

/* Fills places with a distance below the CFA for the middle of each array. */
static __attribute__((noinline, no_sanitize("address"))) void
frame_with_arrays(volatile char *(*volatile keep)(volatile char *), int64_t distances[2])
{
    volatile char large_array[4000], small_array[200];
    char *cfa = __builtin_dwarf_cfa();
    distances[0] = (cfa - (char *)(uintptr_t)keep(large_array + 2000)) / 16 * 16;
    distances[1] = (cfa - (char *)(uintptr_t)keep(small_array + 100)) / 16 * 16;
}

static volatile char *same(volatile char *p)
{
    return p;
}

static void test_stack(void **state)
{
    struct symbols_data data;
    int64_t distances[2];
    uint64_t function = (uintptr_t)frame_with_arrays - load_bias();
    frame_with_arrays(same, distances);
    assert_true(symbols_stack_at(*state, function, distances[0], &data));
    assert_string_equal(data.name, "large_array");
    assert_int_equal(data.size_bytes, 4000);
    assert_true(symbols_stack_at(*state, function, distances[1], &data));
    assert_string_equal(data.name, "small_array");
    assert_int_equal(data.decl_line, CALL_LINE + LINES_TO_ARRAYS);
    assert_false(symbols_stack_at(*state, function, 1 << 20, &data));
    assert_false(symbols_stack_at(*state, 0x7fffffff0000, distances[0], &data));
}

static void test_not_code(void **state)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    assert_int_equal(symbols_lookup(*state, 0x7fffffff0000, frames), 0);
    assert_int_equal(symbols_lookup(*state, (uintptr_t)&table_of_test[0] - load_bias(), frames), 0);
}

/* As _init of a stripped library: a function without a size, alone in its section, and another one far behind. */
__asm__(".pushsection .aaa_early,\"ax\",%progbits\n.globl code_without_size\n.type code_without_size,%function\n"
        "code_without_size: .zero 16\n.popsection\n"
        ".pushsection .aab_late,\"ax\",%progbits\n.balign 256\n.globl code_with_size\n.type code_with_size,%function\n"
        "code_with_size: .zero 64\n.size code_with_size,64\n.popsection\n");
extern const char code_without_size[], code_with_size[];

static void test_without_size(void **state)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    uint64_t at = (uintptr_t)code_without_size - load_bias(), next = (uintptr_t)code_with_size - load_bias();
    assert_true(at + 16 < next && next < at + 1024);
    assert_int_equal(symbols_lookup(*state, at + 15, frames), 1);
    assert_string_equal(frames[0].function, "code_without_size");
    size_t n = symbols_lookup(*state, at + 16, frames);
    assert_true(n == 0 || !frames[0].function || strcmp(frames[0].function, "code_without_size") != 0);
    assert_int_equal(symbols_lookup(*state, next, frames), 1);
    assert_string_equal(frames[0].function, "code_with_size");
}

static void test_refused_files(void **state)
{
    (void)state;
    struct error err;
    struct symbols *symbols = NULL;
    assert_int_equal(symbols_open("/does/not/exist", &symbols, &err), ERR_IO);
    assert_non_null(strstr(err.text, "/does/not/exist"));
    assert_int_equal(symbols_open("/proc/self/status", &symbols, &err), ERR_FORMAT);
    assert_null(symbols);
}

static void test_demangle(void **state)
{
    (void)state;
    assert_null(demangle_name("main"));
    assert_null(demangle_module_name("main"));
    assert_null(demangle_module_name("__MOD_"));
    char *name = demangle_module_name("__kernels_MOD_scatter._omp_fn.0");
    assert_string_equal(name, "kernels::scatter._omp_fn.0");
    free(name);
    name = demangle_name("_ZN1a1bEi");
    if (!name) {
        print_message("SKIP: no C++ runtime library to demangle with\n");
        return;
    }
    assert_string_equal(name, "a::b(int)");
    free(name);
    name = demangle_name("_ZN4grid4main17h086b0cfd890a8ea9E");
    assert_string_equal(name, "grid::main");
    free(name);
}

/* The linker's stub for a function of another module has its name; this program calls getpid through one. */
static void test_stub(void **state)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    uint64_t found = 0;
    for (uint64_t vaddr = 0x1000; vaddr < 0x100000 && !found; vaddr += 8)
        if (symbols_lookup(*state, vaddr, frames) && frames[0].function &&
            strcmp(frames[0].function, "getpid@plt") == 0)
            found = vaddr;
    assert_true(getpid() > 0);
    assert_true(found);
    assert_true(symbols_lookup(*state, found + 6, frames) == 1);
    assert_string_equal(frames[0].function, "getpid@plt");
    assert_int_equal(frames[0].low_vaddr, found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stub),
        cmocka_unit_test(test_function_and_line),
        cmocka_unit_test(test_inlined_function),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_not_code),
        cmocka_unit_test(test_without_size),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_demangle),
    };
    return cmocka_run_group_tests(tests, open_self, close_self);
}
