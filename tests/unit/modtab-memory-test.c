/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation of the table maker fails once: each time the answer is "out of memory", no table is left in the
 * cache, and a later try succeeds. The linker sends the allocations of our code here (--wrap); those inside libelf and
 * libdw are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>

#include "fnbounds/modtab-cache.h"

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n_items, size_t item_bytes);
void *__real_realloc(void *block, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n_items, size_t item_bytes);
void *__wrap_realloc(void *block, size_t n_bytes);

static struct {
    long countdown; /* the allocation that reaches 0 fails; negative: none does */
} failing = {-1};

static int fails_now(void)
{
    return failing.countdown >= 0 && failing.countdown-- == 0;
}

void *__wrap_malloc(size_t n_bytes)
{
    return fails_now() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n_items, size_t item_bytes)
{
    return fails_now() ? NULL : __real_calloc(n_items, item_bytes);
}

void *__wrap_realloc(void *block, size_t n_bytes)
{
    return fails_now() ? NULL : __real_realloc(block, n_bytes);
}

/* path: a file, or the vdso, which takes another way into memory. Returns how many allocations there were. */
static long sweep(const char *path, const char *dir)
{
    const struct modtab_header *table = NULL;
    struct error err;
    uint64_t id = 0;
    long n = 0;
    for (;; n++) {
        failing.countdown = n;
        int status = modtab_make(path, dir, &id, &err);
        int has_failed = failing.countdown < 0;
        failing.countdown = -1;
        if (!has_failed) {
            assert_int_equal(status, 0);
            break;
        }
        assert_int_equal(status, ERR_MEMORY);
        if (id)
            assert_int_equal(modtab_map(dir, id, &table, &err), ERR_NOT_FOUND);
    }
    assert_int_equal(modtab_map(dir, id, &table, &err), 0);
    assert_true(table->n_funcs > 0);
    modtab_unmap(table);
    return n;
}

static void test_sweep(void **state)
{
    (void)state;
    char dir[] = "/tmp/modtab-memory-XXXXXX", command[64];
    assert_non_null(mkdtemp(dir));
    assert_true(sweep("/proc/self/exe", dir) > 10);
    if (modtab_make(MODTAB_VDSO, dir, NULL, NULL) == 0) {
        (void)snprintf(command, sizeof command, "rm -f %s/*.lmt", dir);
        assert_int_equal(system(command), 0);
        assert_true(sweep(MODTAB_VDSO, dir) > 10);
    }
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sweep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
