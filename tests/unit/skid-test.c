/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling/skid.h: a real measurement, its cache and its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampling/skid.h"

static struct skid_result measured; /* by the first test */
static bool is_measured;

static uint32_t samples(const struct skid_kernel *kernel)
{
    return kernel->n_at + kernel->n_next + kernel->n_elsewhere;
}

static void test_measure(void **state)
{
    struct error err;
    struct sigaction before, after;
    (void)state;
    sigaction(SIGURG, NULL, &before);
    int code = skid_measure(&measured, &err);
    if (code == ERR_UNSUPPORTED) {
        (void)printf("SKIP: %s\n", err.text);
        return;
    }
    assert_int_equal(code, 0);
    is_measured = true;
    uint32_t n_next = 0, n = 0;
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        (void)printf("%s (%s): %u at, %u next, %u elsewhere\n", skid_kernel_name(k), skid_kernel_text(k),
                     measured.kernels[k].n_at, measured.kernels[k].n_next, measured.kernels[k].n_elsewhere);
        assert_true(samples(&measured.kernels[k]) > 0);
        n_next += k == 2 ? 0 : measured.kernels[k].n_next;
        n += k == 2 ? 0 : samples(&measured.kernels[k]);
    }
    if (measured.rule == SKID_HOLDS)
        assert_true(n >= 20 && n_next * 10 >= n * 9);
    else if (measured.rule == SKID_FAILS)
        assert_true(n >= 20 && n_next * 10 < n * 9);
    else
        assert_true(n < 20);
    sigaction(SIGURG, NULL, &after);
    assert_ptr_equal(before.sa_handler, after.sa_handler);
}

static void make_directory(char *directory)
{
    strcpy(directory, "/tmp/locus-skid-XXXXXX");
    assert_non_null(mkdtemp(directory));
}

static void remove_directory(const char *directory)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
    assert_int_equal(system(command), 0);
}

static void test_cache(void **state)
{
    char directory[64], command[256];
    struct skid_result first, second;
    (void)state;
    if (!is_measured)
        return;
    make_directory(directory);
    assert_int_equal(skid_get(directory, &first, NULL), 0);
    assert_false(first.is_from_cache);
    assert_int_equal(skid_get(directory, &second, NULL), 0);
    assert_true(second.is_from_cache);
    second.is_from_cache = false;
    assert_memory_equal(&first, &second, sizeof first);
    (void)snprintf(command, sizeof command, "sed -i '/^end/d' '%s'/skid-*.txt", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(skid_get(directory, &second, NULL), 0);
    assert_false(second.is_from_cache);
    (void)snprintf(command, sizeof command, "sed -i 's/^kernel /kernel x/' '%s'/skid-*.txt", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(skid_get(directory, &second, NULL), 0);
    assert_false(second.is_from_cache);
    remove_directory(directory);
}

static void test_no_directory(void **state)
{
    struct skid_result result;
    (void)state;
    if (!is_measured)
        return;
    assert_int_equal(skid_get("/proc/version/nowhere", &result, NULL), 0);
    assert_false(result.is_from_cache);
    assert_int_equal(skid_get("/proc/sys/nowhere", &result, NULL), 0);
    assert_false(result.is_from_cache);
}

static void test_one_measures_for_all(void **state)
{
    enum { N = 4 };
    char directory[64];
    (void)state;
    if (!is_measured)
        return;
    make_directory(directory);
    unsigned *n_measured = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < N; i++) {
        if (fork() == 0) {
            struct skid_result result;
            if (skid_get(directory, &result, NULL) != 0)
                _exit(1);
            if (!result.is_from_cache)
                __atomic_fetch_add(n_measured, 1, __ATOMIC_SEQ_CST);
            _exit(0);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    assert_int_equal(*n_measured, 1);
    munmap(n_measured, 4096);
    remove_directory(directory);
}

static void test_json(void **state)
{
    struct skid_result result = {.trigger = "task-clock", .rule = SKID_HOLDS};
    char text[4096];
    (void)state;
    strcpy(result.key.cpu, "A \"quoted\" \\ model");
    result.kernels[1] = (struct skid_kernel){1, 96, 3};
    int n = skid_to_json(&result, text, sizeof text);
    assert_int_equal(n, strlen(text));
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "cpu")), result.key.cpu);
    assert_string_equal(json_string_value(json_object_get(json, "rule")), "holds");
    json_t *kernel = json_array_get(json_object_get(json, "kernels"), 1);
    assert_int_equal(json_integer_value(json_object_get(kernel, "samples")), 100);
    assert_true(json_real_value(json_object_get(kernel, "percent_next")) == 96.0);
    json_decref(json);
    assert_int_equal(skid_to_json(&result, text, 100), -1);
    assert_int_equal(skid_to_json(&result, text, (size_t)n), -1);
    assert_int_equal(skid_to_json(&result, text, (size_t)n + 1), n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measure),      cmocka_unit_test(test_cache),
        cmocka_unit_test(test_no_directory), cmocka_unit_test(test_one_measures_for_all),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
