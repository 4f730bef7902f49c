/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation of the readers fails once: each time the answer is "out of memory", and nothing is lost or left. The
 * linker sends the allocations of our code here (--wrap); those inside other libraries are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/unpacked.h"
#include "fmt/file.h"
#include "import/any.h"

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n_items, size_t item_bytes);
void *__real_realloc(void *block, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n_items, size_t item_bytes);
void *__wrap_realloc(void *block, size_t n_bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max_bytes);

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

char *__wrap_strndup(const char *text, size_t max_bytes)
{
    size_t len_bytes = strnlen(text, max_bytes);
    char *copy = __wrap_malloc(len_bytes + 1);
    if (copy) {
        memcpy(copy, text, len_bytes);
        copy[len_bytes] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, SIZE_MAX);
}

static struct buf input(const char *name)
{
    char dir[PATH_MAX], path[PATH_MAX + 128];
    struct buf bytes = {0};
    unpacked_golden("formats", dir);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(file_read(path, &bytes, NULL), 0);
    return bytes;
}

typedef int reader(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err);

static void sweep(reader *read, const struct buf *bytes, const char *name)
{
    int code = ERR_MEMORY;
    long n_failures = 0;
    for (; code != 0; n_failures++) {
        struct any_file file = {0};
        struct error err = {0};
        failing.countdown = n_failures;
        code = read(bytes->data, bytes->len_bytes, name, &file, &err);
        failing.countdown = -1;
        if (code) {
            assert_int_equal(code, ERR_MEMORY);
            assert_non_null(strstr(err.text, "memory"));
            assert_null(file.row);
        }
        any_fini(&file);
    }
    assert_true(n_failures > 1);
}

/* Reads the file and its JSON under all failures, then writes it under all failures. */
static void sweep_file(const char *name)
{
    struct buf bytes = input(name), json = {0}, out = {0};
    struct any_file file = {0};
    assert_int_equal(any_read_memory(bytes.data, bytes.len_bytes, name, &file, NULL), 0);
    any_put_json(&file, &json);
    sweep(any_read_memory, &bytes, name);
    if (!strstr(name, ".log"))
        sweep(any_read_json_memory, &json, name);
    for (long n = 0; !strstr(name, "04.00"); n++) {
        failing.countdown = n;
        int code = any_write(&file, &out, NULL);
        failing.countdown = -1;
        int failed = code || out.failed;
        assert_true(code == 0 || code == ERR_MEMORY);
        buf_fini(&out);
        if (!failed)
            break;
    }
    any_fini(&file);
    buf_fini(&bytes);
    buf_fini(&json);
}

static void test_profiles(void **state)
{
    (void)state;
    sweep_file("profile-03.10-epochs/input.hpcrun");
    sweep_file("profile-02.00/input.hpcrun");
    sweep_file("profile-02.00-before-2017/input.hpcrun");
    sweep_file("profile-04.00/input.hpcrun");
}

static void test_others(void **state)
{
    (void)state;
    sweep_file("trace-01.01-datacentric/input.hpctrace");
    sweep_file("events/input.events");
    sweep_file("metric-db/input.metric-db");
    sweep_file("log/input.log");
    sweep_file("objects/input.objects");
    sweep_file("objects-2/input.objects");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_profiles), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, unpacked_remove);
}
