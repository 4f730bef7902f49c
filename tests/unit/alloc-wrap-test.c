/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the malloc family's wrappers, linked into the test itself: what is reported, what is not, and that
 * every call behaves as the C library's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc-recorder.h"
#include "alloc-wrap/hook.h"

#define TOO_MUCH ((size_t)PTRDIFF_MAX + 1)

static volatile size_t keep; /* the optimiser must not see through the sizes */

static size_t opaque(size_t n)
{
    keep = n;
    return keep;
}

/* The C library's own function, behind our back. */
static void *native(const char *name)
{
    void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
    void *function = dlsym(libc, name);
    assert_non_null(function);
    dlclose(libc);
    return function;
}

/* The look-ups of the first call, some of which fail, leave nothing for the program's dlerror. */
static void test_start_leaves_no_dlerror(void **state)
{
    (void)state;
    free(malloc(opaque(10)));
    assert_null(dlerror());
    assert_null(dlsym(RTLD_DEFAULT, "no_such_function"));
    assert_non_null(dlerror());
}

__attribute__((noinline)) static void *call_malloc(size_t n, struct alloc_site *expected)
{
    void *p = malloc(n);
    expected->fp = (uintptr_t)__builtin_frame_address(0);
    return p;
}

static void test_large_block_is_reported_with_its_caller(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    struct alloc_site expected;
    errno = 0;
    void *p = call_malloc(opaque(1024), &expected);
    assert_int_equal(errno, 0);
    assert_int_equal(recorder->n_events, 1);
    const struct recorder_event *event = recorder_last(recorder, 0);
    assert_int_equal(event->what, RECORD_ALLOC);
    assert_int_equal(event->kind, ALLOC_HEAP);
    assert_ptr_equal(event->p, p);
    assert_int_equal(event->n_bytes, 1024);
    assert_true(event->weight == 1);
    assert_true(event->site.pc > (uintptr_t)call_malloc && event->site.pc < (uintptr_t)call_malloc + 512);
    assert_true(event->site.fp == expected.fp);
    assert_true(event->site.sp <= expected.fp && event->site.sp + 256 > expected.fp);
    free(p);
    assert_int_equal(recorder->n_events, 2);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RELEASE);
    assert_int_equal(errno, 0);
    assert_int_equal(recorder->n_inside, 0);
    assert_int_equal(recorder->n_entered, 2);
}

static void test_small_blocks_pass_silently(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    void *blocks[] = {malloc(opaque(1023)), malloc(opaque(0)), calloc(opaque(31), 33), memalign(64, opaque(100))};
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(blocks[i]);
        free(blocks[i]);
    }
    free(realloc(malloc(opaque(10)), opaque(1000)));
    free(NULL);
    assert_int_equal(recorder->n_events, 0);
    assert_int_equal(recorder->n_entered, 0);
}

static void test_every_aligned_form(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    void *blocks[6] = {memalign(256, opaque(2048)), aligned_alloc(512, opaque(2048)), valloc(opaque(2048)),
                       pvalloc(opaque(5000)), calloc(opaque(64), 32)};
    assert_int_equal(posix_memalign(&blocks[5], 1024, opaque(2048)), 0);
    assert_int_equal(recorder->n_events, 6);
    assert_int_equal((uintptr_t)blocks[0] % 256, 0);
    assert_int_equal((uintptr_t)blocks[1] % 512, 0);
    assert_int_equal((uintptr_t)blocks[2] % (uintptr_t)getpagesize(), 0);
    assert_int_equal((uintptr_t)blocks[5] % 1024, 0);
    assert_int_equal(recorder_last(recorder, 2)->n_bytes, 5000);
    for (size_t i = 0; i < 6; i++) {
        assert_ptr_equal(recorder->events[i].p, blocks[i]);
        assert_true(malloc_usable_size(blocks[i]) >= recorder->events[i].n_bytes);
        free(blocks[i]);
    }
    assert_int_equal(recorder->n_events, 12);
    assert_int_equal(recorder->n_inside, 0);
}

static void test_blocks_are_not_enlarged(void **state)
{
    (void)state;
    recorder_connect(1024, 0);
    void *(*native_malloc)(size_t) = native("malloc");
    size_t (*native_usable)(void *) = native("malloc_usable_size");
    for (size_t n = 1; n < 300000; n = n * 3 / 2 + 1) {
        void *p = malloc(n), *q = native_malloc(n);
        assert_int_equal(malloc_usable_size(p), native_usable(p));
        /* The heap's state differs between two calls by a split remainder of at most one header. */
        assert_true(malloc_usable_size(p) <= native_usable(q) + 2 * sizeof(size_t));
        free(p);
        free(q);
    }
}

static void test_failures_report_nothing_and_say_enomem(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    void *p = (void *)8;
    errno = 0;
    assert_null(malloc(opaque(TOO_MUCH)));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(calloc(opaque(SIZE_MAX / 2), opaque(3)));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(calloc(opaque(TOO_MUCH), opaque(1)));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(reallocarray(NULL, opaque(SIZE_MAX / 2), opaque(3)));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(aligned_alloc(64, opaque(TOO_MUCH)));
    assert_int_equal(errno, ENOMEM);
    errno = 5;
    assert_int_equal(posix_memalign(&p, 24, opaque(4096)), EINVAL);
    assert_int_equal(posix_memalign(&p, 64, opaque(TOO_MUCH)), ENOMEM);
    assert_ptr_equal(p, (void *)8);
    assert_int_equal(recorder->n_events, 0);
    assert_int_equal(recorder->n_inside, 0);
    assert_int_equal(recorder->n_entered, 5);
}

static void test_realloc_moves_the_record(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    char *p = realloc(NULL, opaque(2000));
    memset(p, 7, 2000);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_ALLOC);
    char *q = realloc(p, opaque(400000));
    assert_int_equal(q[1999], 7);
    const struct recorder_event *done = recorder_last(recorder, 0);
    assert_int_equal(recorder_last(recorder, 1)->what, RECORD_RESIZE_BEGIN);
    assert_int_equal(done->what, RECORD_RESIZE_DONE);
    assert_true(done->p == (void *)recorder_last(recorder, 1)->p && done->new_p == q && done->n_bytes == 400000);
    q = reallocarray(q, opaque(10), 50); /* below the threshold: the old record ends, no new one comes */
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RESIZE_DONE);
    unsigned n_before = recorder->n_events;
    free(q);
    assert_int_equal(recorder->n_events, n_before);
    q = realloc(malloc(opaque(10)), opaque(3000)); /* grows over the threshold */
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_ALLOC);
    assert_int_equal(recorder_last(recorder, 0)->n_bytes, 3000);
    assert_null(realloc(q, opaque(0)));
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RELEASE);
    assert_int_equal(recorder->n_inside, 0);
}

/* A raised threshold: smaller blocks of malloc are not reported, in whatever way they are made; those that have a
 * record keep it until they end; a mapping of that size still gets one. */
static void test_raised_threshold(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    void *before = malloc(opaque(2000)), *resized = malloc(opaque(2000));
    alloc_wrap_raise(8192);
    alloc_wrap_raise(4096); /* never lower again */
    unsigned n_before = recorder->n_events;
    free(malloc(opaque(2000)));
    free(calloc(2, opaque(4000)));
    free(realloc(malloc(opaque(1500)), opaque(8000)));
    void *aligned = NULL;
    assert_int_equal(posix_memalign(&aligned, 64, opaque(8000)), 0);
    free(aligned);
    assert_int_equal(recorder->n_events, n_before);
    resized = realloc(resized, opaque(3000)); /* the old record ends, no new one comes */
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RESIZE_DONE);
    assert_null(recorder_last(recorder, 0)->site.pc);
    n_before = recorder->n_events;
    free(resized);
    assert_int_equal(recorder->n_events, n_before);
    free(before);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RELEASE);
    free(malloc(opaque(8192)));
    assert_int_equal(recorder->n_events, n_before + 3);
    void *mapped = mmap(NULL, opaque(4096), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_ALLOC);
    assert_int_equal(munmap(mapped, opaque(4096)), 0);
    assert_int_equal(recorder->n_inside, 0);
    (void)recorder_connect(1024, 0); /* as at the start */
}

static void test_failed_realloc_keeps_the_record(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    char *volatile p = malloc(opaque(2000)); /* volatile: the compiler takes a block given to realloc for freed */
    p[0] = 3;
    errno = 0;
    assert_null(realloc(p, opaque(TOO_MUCH)));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RESIZE_FAILED);
    assert_ptr_equal(recorder_last(recorder, 0)->p, p);
    unsigned n_before = recorder->n_events;
    errno = 0;
    assert_null(reallocarray(p, opaque(SIZE_MAX / 2), opaque(3)));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(recorder->n_events, n_before);
    assert_int_equal(p[0], 3);
    free(p);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RELEASE);
    assert_int_equal(recorder->n_inside, 0);
}

static void allocate_and_free_inside(void)
{
    void *p = malloc(opaque(5000));
    assert_non_null(p);
    free(p);
    free(realloc(NULL, opaque(5000)));
    free(malloc(opaque(8)));
}

static void on_signal(int number)
{
    (void)number;
    allocate_and_free_inside();
}

static void raise_inside(void)
{
    (void)raise(SIGUSR1);
}

/* A signal handler of the program that allocates while the sink works: forwarded and counted, no recursion. */
static void test_reentered_by_a_signal_handler(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    struct sigaction action = {.sa_handler = on_signal}, old;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    recorder->during_alloc = raise_inside;
    void *p = malloc(opaque(2048));
    recorder->during_alloc = NULL;
    assert_int_equal(recorder->n_events, 1);
    assert_int_equal(recorder->n_skipped[ALLOC_SKIP_REENTERED], 2);
    free(p);
    assert_int_equal(recorder->n_events, 2);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* A handler that interrupts a real malloc: new blocks are counted only, but what ends is taken from the records. */
static void test_interrupted_inside_a_real_function(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    void *p = malloc(opaque(2000));
    alloc_thread_hook()->nest = ALLOC_NEST_ALLOC;
    p = realloc(p, opaque(300000));
    free(malloc(opaque(5000)));
    free(p);
    assert_int_equal(alloc_thread_hook()->nest, ALLOC_NEST_ALLOC);
    alloc_thread_hook()->nest = ALLOC_NEST_NONE;
    assert_int_equal(recorder->n_events, 4);
    assert_int_equal(recorder->events[1].what, RECORD_RESIZE_BEGIN);
    assert_int_equal(recorder->events[2].what, RECORD_RESIZE_DONE);
    assert_int_equal(recorder->events[3].what, RECORD_RELEASE);
    assert_int_equal(recorder->n_skipped[ALLOC_SKIP_REENTERED], 1);
    assert_int_equal(recorder->n_inside, 0);
    assert_int_equal(recorder->n_entered, 1);
}

static void test_guard_and_not_ready_forward_plainly(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    alloc_wrap_guard_enter();
    alloc_wrap_guard_enter();
    alloc_wrap_guard_leave();
    free(malloc(opaque(4096)));
    alloc_wrap_guard_leave();
    recorder->not_ready = true;
    errno = 5;
    free(malloc(opaque(4096)));
    free(realloc(malloc(opaque(4096)), opaque(9000)));
    assert_int_equal(errno, 5);
    assert_int_equal(recorder->n_events, 0);
    assert_int_equal(recorder->n_entered, 0);
    recorder->not_ready = false;
    free(malloc(opaque(4096)));
    assert_int_equal(recorder->n_events, 2);
}

static void test_without_sink(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    void *p = malloc(opaque(4096));
    alloc_wrap_connect(NULL, 0, 0);
    p = realloc(p, opaque(8192));
    assert_non_null(p);
    free(p);
    free(calloc(opaque(1000), 10));
    assert_int_equal(recorder->n_events, 1);
}

static void allocate_at_thread_end(void *key_value)
{
    (void)key_value;
    free(malloc(opaque(7777)));
}

static void *thread_main(void *key)
{
    assert_int_equal(pthread_setspecific(*(pthread_key_t *)key, key), 0);
    return NULL;
}

static void test_thread_local_destructors_are_seen(void **state)
{
    (void)state;
    pthread_key_t key;
    pthread_t thread;
    assert_int_equal(pthread_key_create(&key, allocate_at_thread_end), 0);
    struct recorder *recorder = recorder_connect(4096, 0);
    assert_int_equal(pthread_create(&thread, NULL, thread_main, &key), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(recorder->n_events >= 2);
    unsigned n_found = 0;
    for (unsigned i = 0; i < recorder->n_events; i++)
        n_found += recorder->events[i].n_bytes == 7777;
    assert_int_equal(n_found, 1);
    assert_int_equal(pthread_key_delete(key), 0);
}

/* Return value and errno of one call with unusual arguments, through a malloc-like function. */
static void test_edge_cases_are_as_native(void **state)
{
    (void)state;
    recorder_connect(1024, 0);
    static const size_t sizes[] = {0, 1, 1023, 1024, 1u << 20, TOO_MUCH - 1, TOO_MUCH, SIZE_MAX - 4096, SIZE_MAX};
    static const size_t alignments[] = {0, 1, 3, 8, 24, 64, 4096, SIZE_MAX / 2 + 1};
    int (*native_posix)(void **, size_t, size_t) = native("posix_memalign");
    void *(*native_aligned)(size_t, size_t) = native("aligned_alloc");
    void *(*native_realloc)(void *, size_t) = native("realloc");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; k < sizeof alignments / sizeof *alignments; k++) {
            void *p = NULL, *q = NULL;
            assert_int_equal(posix_memalign(&p, alignments[k], opaque(sizes[i])),
                             native_posix(&q, alignments[k], sizes[i]));
            assert_int_equal(p != NULL, q != NULL);
            free(p);
            free(q);
            errno = 0;
            p = aligned_alloc(alignments[k], opaque(sizes[i]));
            int ours = errno;
            errno = 0;
            q = native_aligned(alignments[k], sizes[i]);
            assert_int_equal(ours, errno);
            assert_int_equal(p != NULL, q != NULL);
            free(p);
            free(q);
        }
        void *volatile p = malloc(opaque(64)), *volatile q = malloc(opaque(64));
        errno = 0;
        void *p_new = realloc(p, opaque(sizes[i]));
        int ours = errno;
        errno = 0;
        void *q_new = native_realloc(q, sizes[i]);
        assert_int_equal(ours, errno);
        assert_int_equal(p_new != NULL, q_new != NULL);
        free(p_new || !sizes[i] ? p_new : p);
        free(q_new || !sizes[i] ? q_new : q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_leaves_no_dlerror),
        cmocka_unit_test(test_large_block_is_reported_with_its_caller),
        cmocka_unit_test(test_small_blocks_pass_silently),
        cmocka_unit_test(test_every_aligned_form),
        cmocka_unit_test(test_blocks_are_not_enlarged),
        cmocka_unit_test(test_failures_report_nothing_and_say_enomem),
        cmocka_unit_test(test_realloc_moves_the_record),
        cmocka_unit_test(test_raised_threshold),
        cmocka_unit_test(test_failed_realloc_keeps_the_record),
        cmocka_unit_test(test_reentered_by_a_signal_handler),
        cmocka_unit_test(test_interrupted_inside_a_real_function),
        cmocka_unit_test(test_guard_and_not_ready_forward_plainly),
        cmocka_unit_test(test_without_sink),
        cmocka_unit_test(test_thread_local_destructors_are_seen),
        cmocka_unit_test(test_edge_cases_are_as_native),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
