/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's own functions of libc against libc's, which the loader finds after those of this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/own/own-call.h"
#define ROUNDS 20000
#define BYTES 96

/* libc's function of this name, and ours, without what the compiler knows of it. */
#define LIBC(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define OURS(name) ((__typeof__(&(name)))hide((void *)(name)))

__attribute__((noinline)) static void *hide(void *function)
{
    __asm__ volatile("" : "+r"(function));
    return function;
}

/* Bytes of which many are alike, so that texts and parts of them meet. */
static void fill(char *bytes, size_t n, int kinds)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(rand() % kinds == 0 ? 0x80 + rand() % 3 : 'a' + rand() % kinds);
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void test_memory(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char a[BYTES], b[BYTES];
        size_t n = (size_t)rand() % (BYTES / 2), to = (size_t)rand() % (BYTES / 2), from = (size_t)rand() % (BYTES / 2);
        fill(a, sizeof a, 3);
        LIBC(memcpy)(b, a, sizeof b);
        assert_ptr_equal(OURS(memmove)(a + to, a + from, n), a + to);
        LIBC(memmove)(b + to, b + from, n);
        assert_int_equal(LIBC(memcmp)(a, b, sizeof a), 0);
        int byte = rand();
        assert_ptr_equal(OURS(memset)(a + to, byte, n), a + to);
        LIBC(memset)(b + to, byte, n);
        assert_int_equal(LIBC(memcmp)(a, b, sizeof a), 0);
        fill(b, sizeof b, 3);
        assert_ptr_equal(OURS(memcpy)(a + to, b + from, n), a + to);
        assert_int_equal(LIBC(memcmp)(a + to, b + from, n), 0);
        size_t few = n % 4;
        assert_int_equal(sign(OURS(memcmp)(a, b, few)), sign(LIBC(memcmp)(a, b, few)));
        assert_ptr_equal(OURS(memmem)(a, to, b, few), LIBC(memmem)(a, to, b, few));
    }
}

static void test_text(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char a[BYTES], b[8], copy[BYTES], copied[BYTES];
        fill(a, sizeof a, 3);
        fill(b, sizeof b, 3);
        a[(size_t)rand() % sizeof a] = a[sizeof a - 1] = '\0';
        b[(size_t)rand() % 4] = b[sizeof b - 1] = '\0';
        size_t n = (size_t)rand() % sizeof a;
        assert_int_equal(OURS(strlen)(a), LIBC(strlen)(a));
        assert_int_equal(OURS(strnlen)(a, n), LIBC(strnlen)(a, n));
        assert_int_equal(sign(OURS(strcmp)(a, b)), sign(LIBC(strcmp)(a, b)));
        assert_int_equal(OURS(strcmp)(a, a), 0);
        assert_int_equal(sign(OURS(strncmp)(a, b, n % 4)), sign(LIBC(strncmp)(a, b, n % 4)));
        assert_int_equal(OURS(strcspn)(a, b), LIBC(strcspn)(a, b));
        assert_ptr_equal(OURS(strstr)(a, b), LIBC(strstr)(a, b));
        assert_ptr_equal(OURS(strrchr)(a, b[0]), LIBC(strrchr)(a, b[0]));
        LIBC(memset)(copy, 'x', sizeof copy);
        LIBC(memset)(copied, 'x', sizeof copied);
        OURS(strncpy)(copy, a, n);
        LIBC(strncpy)(copied, a, n);
        assert_int_equal(LIBC(memcmp)(copy, copied, sizeof copy), 0);
    }
}

static void test_definitions(void **state)
{
    static const char *const names[] = {"getauxval", "dlsym", "sigaction", "__cxa_atexit", "pthread_attr_destroy"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ptr_equal(own_libc_function(names[i]), dlsym(RTLD_NEXT, names[i]));
    assert_null(own_libc_function("no such function"));
    assert_null(own_libc_function("memcpy_of_another_world"));
    assert_int_equal(OURS(getauxval)(AT_PAGESZ), LIBC(sysconf)(_SC_PAGESIZE));
}

static void *fail_in_libc(void *argument)
{
    errno = 0;
    (void)LIBC(close)(-1); /* sets the errno that libc has */
    assert_int_equal(*OURS(__errno_location)(), EBADF);
    assert_ptr_equal(OURS(__errno_location)(), LIBC(__errno_location)());
    return argument;
}

static void test_errno(void **state)
{
    pthread_t thread;
    (void)state;
    fail_in_libc(NULL);
    assert_int_equal(pthread_create(&thread, NULL, fail_in_libc, NULL), 0);
    pthread_join(thread, NULL);
}

static uint64_t kernel_ns(clockid_t clock)
{
    struct timespec now;
    assert_int_equal(own_call_sig(SYS_clock_gettime, clock, &now), 0);
    return clock_ns_of(&now);
}

/* The kernel's clock may be a tick of a counter behind the vdso's, so a microsecond is left to both. */
static void test_clock(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct timespec now;
        uint64_t before = kernel_ns(CLOCK_MONOTONIC);
        assert_int_equal(OURS(clock_gettime)(CLOCK_MONOTONIC, &now), 0);
        uint64_t after = kernel_ns(CLOCK_MONOTONIC);
        assert_in_range(clock_ns_of(&now), before - CLOCK_US_NS, after + CLOCK_US_NS);
    }
    struct timespec now;
    assert_int_equal(OURS(clock_gettime)(0x7fffffff, &now), -1);
    assert_int_equal(errno, EINVAL);
}

static void test_processor(void **state)
{
    cpu_set_t allowed, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(OURS(sched_getcpu)(), cpu);
    }
    assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory), cmocka_unit_test(test_text),  cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_errno),  cmocka_unit_test(test_clock), cmocka_unit_test(test_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
