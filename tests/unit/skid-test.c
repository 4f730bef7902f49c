/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of sampling/skid.h: a real measurement, its cache and its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
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
    assert_null(json_object_get(json, "caches"));
    assert_null(json_object_get(json, "first_touch_ns"));
    json_decref(json);
    result.touch_ps = 6250500;
    (void)skid_to_json(&result, text, sizeof text);
    json = json_loads(text, 0, NULL);
    assert_true(fabs(json_real_value(json_object_get(json, "first_touch_ns")) - 6250.5) < 0.01);
    json_decref(json);
    result.touch_ps = UINT32_MAX;
    result.caches = (struct cache_curve){.n_sizes = CACHE_SIZES_MAX, .n_walks = CACHE_WALKS_MAX};
    for (uint32_t i = 0; i < CACHE_WALKS_MAX; i++)
        result.caches.walks[i] = (struct cache_walk){1 + i, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < CACHE_SIZES_MAX; i++)
        result.caches.sizes[i] = (struct cache_point){16 + i, UINT32_MAX, UINT32_MAX};
    n = skid_to_json(&result, text, sizeof text);
    json = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json, "caches"), "alone_ns")), CACHE_SIZES_MAX);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json, "caches"), "walks")), CACHE_WALKS_MAX);
    json_decref(json);
    assert_int_equal(skid_to_json(&result, text, 100), -1);
    assert_int_equal(skid_to_json(&result, text, (size_t)n), -1);
    assert_int_equal(skid_to_json(&result, text, (size_t)n + 1), n);
}

/* A machine by construction: first, second and third level of so many KiB, then memory. A cache that is smaller than
 * the data holds a part of them, and its loads take its time, the others the next one's. */
struct machine {
    double kib[CACHE_LEVELS];
    double ps[CACHE_LEVELS + 1];
};

static uint32_t load_ps(const struct machine *machine, double kib)
{
    double ps = 0, left = 1;
    for (unsigned i = 0; i < CACHE_LEVELS; i++) {
        double held = machine->kib[i] < kib ? machine->kib[i] / kib : 1;
        ps += (held - (1 - left)) * machine->ps[i];
        left = 1 - held;
    }
    return (uint32_t)(ps + left * machine->ps[CACHE_LEVELS]);
}

static struct cache_curve curve_of(const struct machine *alone, const struct machine *all)
{
    struct cache_curve curve = {.n_cpus = 2, .is_huge = 1};
    for (uint32_t kib = 16; kib <= 262144; kib = kib & (kib - 1) ? kib / 3 * 4 : kib < 32768 ? kib / 2 * 3 : kib * 2)
        curve.sizes[curve.n_sizes++] =
            (struct cache_point){kib, load_ps(alone, kib), kib >= 512 && kib <= 32768 ? load_ps(all, kib) : 0};
    return curve;
}

static bool is_near(uint32_t found, double wanted)
{
    bool is = found > wanted / 1.7 && found < wanted * 1.7;
    if (!is)
        (void)printf("%u instead of %.0f\n", found, wanted);
    return is;
}

/* The processor claims 508 MiB for each core, the guest gets 12; alone or with others. */
static void test_levels(void **state)
{
    static const struct machine machines[][2] = {
        {{{32, 1024, 12288}, {1200, 4000, 19000, 185000}}, {{32, 1024, 6144}, {1200, 4000, 22000, 200000}}},
        {{{48, 2048, 32768}, {1200, 5000, 25000, 110000}}, {{48, 2048, 4096}, {1200, 5000, 30000, 150000}}},
        {{{32, 512, 16384}, {1000, 3000, 12000, 80000}}, {{32, 512, 16384}, {1000, 3000, 12000, 80000}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const struct machine *alone = &machines[i][0], *all = &machines[i][1];
        const uint64_t claimed[CACHE_LEVELS] = {(uint64_t)alone->kib[0] << 10, (uint64_t)alone->kib[1] << 10,
                                                508 << 20};
        struct cache_curve curve = curve_of(alone, all);
        struct cache_effect effect;
        cache_curve_judge(&curve, claimed, &effect);
        for (unsigned level = 0; level < CACHE_LEVELS; level++)
            assert_true(is_near(effect.kib[level], alone->kib[level]));
        assert_true(is_near(effect.all_kib, all->kib[2]));
        assert_true(is_near(effect.level_ps[CACHE_LEVELS], alone->ps[CACHE_LEVELS]));
        curve.sizes[6].alone_ps *= 20; /* somebody else had the processor */
        cache_curve_judge(&curve, claimed, &effect);
        assert_true(is_near(effect.kib[2], alone->kib[2]));
    }
}

/* Where everything that was tried is as fast as the third level, memory and the end of the cache are not known. */
static void test_levels_without_end(void **state)
{
    static const struct machine machine = {{32, 1024, 1e9}, {1200, 4000, 19000, 185000}};
    const uint64_t claimed[CACHE_LEVELS] = {32 << 10, 1 << 20, 0};
    struct cache_curve curve = curve_of(&machine, &machine), none = {0};
    struct cache_effect effect;
    (void)state;
    cache_curve_judge(&curve, claimed, &effect);
    assert_int_equal(effect.kib[2], 0);
    assert_int_equal(effect.all_kib, 0);
    cache_curve_judge(&none, claimed, &effect);
    assert_int_equal(effect.kib[0] + effect.kib[1] + effect.kib[2] + effect.all_kib, 0);
}

/* What can be said of any machine: larger data are not served faster, but for disturbances. Where others use the caches
 * all the time, a level may not be seen at the first try. */
static void test_real_curve(void **state)
{
    enum { TRIES = 4 };
    struct cache_curve curve;
    uint64_t claimed[CACHE_LEVELS];
    struct cache_effect effect;
    (void)state;
    cache_claims(claimed);
    for (int i = 0; i == 0 || (i < TRIES && !effect.kib[0]); i++) {
        cache_curve_measure(&curve, 20000);
        if (!curve.n_sizes) {
            (void)printf("SKIP: the caches cannot be measured here\n");
            return;
        }
        cache_curve_judge(&curve, claimed, &effect);
        (void)printf("levels: %u, %u, %u KiB, %u for each of %u\n", effect.kib[0], effect.kib[1], effect.kib[2],
                     effect.all_kib, curve.n_cpus);
    }
    assert_true(curve.sizes[0].kib == 16 && curve.sizes[curve.n_sizes - 1].kib == 262144);
    assert_true(curve.sizes[0].alone_ps * 2 < curve.sizes[curve.n_sizes - 1].alone_ps);
    assert_true(effect.kib[0] >= 8 && effect.kib[0] < 1024);
    assert_true(curve.is_huge || !curve.n_walks);
    for (uint32_t i = 0; i < curve.n_walks; i++)
        assert_true(curve.walks[i].small_ps > 1000 && curve.walks[i].huge_ps > 1000 && curve.walks[i].small_apart_ps &&
                    curve.walks[i].huge_apart_ps);
    cache_curve_measure(&curve, 0);
    assert_int_equal(curve.n_sizes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_no_directory),
        cmocka_unit_test(test_one_measures_for_all),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_levels_without_end),
        cmocka_unit_test(test_real_curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
