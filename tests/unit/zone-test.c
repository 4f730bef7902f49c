/* SPDX-License-Identifier: BSD-3-Clause */
/* The zone: what is mapped of a file, how it grows, what stops it, and what is taken for the profiler's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/own/zone.h"

#define MIB ((uint64_t)1 << 20)
#define FILE_BYTES (64 * MIB)

static int memory_file(unsigned char byte)
{
    int fd = memfd_create("zone-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)FILE_BYTES), 0);
    for (uint64_t at = 0; at < FILE_BYTES; at += MIB)
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    return fd;
}

static bool is_mapped(const void *p)
{
    unsigned char resident;
    return mincore((void *)((uintptr_t)p & ~(uintptr_t)4095), 1, &resident) == 0;
}

static bool is_in_zone(const void *p)
{
    uintptr_t low, high;
    zone_range_sig(&low, &high);
    return (uintptr_t)p >= low && (uintptr_t)p < high;
}

/* A file is mapped as far as it is reached, and what lies behind that is free. */
static void test_grows(void **state)
{
    (void)state;
    int fd = memory_file(7);
    const unsigned char *base = zone_share_sig(ZONE_ARENA, fd, FILE_BYTES, PROT_READ | PROT_WRITE, 0);
    assert_non_null(base);
    close(fd);
    if (!is_in_zone(base))
        skip();
    assert_int_equal(base[0], 7);
    assert_false(is_mapped(base + 8 * MIB));
    assert_true(zone_reach_sig(ZONE_ARENA, 20 * MIB));
    assert_int_equal(base[19 * MIB], 7);
    assert_false(is_mapped(base + 30 * MIB));
    assert_false(zone_reach_sig(ZONE_ARENA, FILE_BYTES + 1));
    assert_true(zone_reach_sig(ZONE_ARENA, FILE_BYTES));
    assert_int_equal(base[63 * MIB], 7);
    assert_false(is_mapped(base + FILE_BYTES));
}

/* Another file takes its place, as far as the first was mapped, and no further. */
static void test_replaced(void **state)
{
    (void)state;
    int first = memory_file(1), second = memory_file(2);
    unsigned char *base = zone_share_sig(ZONE_RECIPES, first, FILE_BYTES, PROT_READ | PROT_WRITE, 0);
    assert_non_null(base);
    if (!is_in_zone(base))
        skip();
    assert_true(zone_reach_sig(ZONE_RECIPES, 5 * MIB));
    assert_ptr_equal(zone_share_sig(ZONE_RECIPES, second, FILE_BYTES, PROT_READ | PROT_WRITE, 0), base);
    assert_int_equal(base[4 * MIB], 2);
    assert_false(is_mapped(base + 20 * MIB));
    assert_true(zone_reach_sig(ZONE_RECIPES, 21 * MIB));
    assert_int_equal(base[20 * MIB], 2);
    close(first);
    close(second);
}

/* A file that cannot be mapped: nothing is there of the earlier one, but who still writes to its place is not ended. */
static void test_not_replaced(void **state)
{
    (void)state;
    int fd = memory_file(4);
    unsigned char *base = zone_share_sig(ZONE_ARENA, fd, FILE_BYTES, PROT_READ | PROT_WRITE, 2 * MIB);
    assert_non_null(base);
    errno = EDOM;
    assert_null(zone_share_sig(ZONE_ARENA, -1, FILE_BYTES, PROT_READ | PROT_WRITE, 0));
    assert_int_equal(errno, EDOM);
    assert_true(zone_reach_sig(ZONE_ARENA, MIB));
    assert_int_equal(base[MIB], 0);
    base[MIB] = 5;
    close(fd);
}

/* Where something else lies in the way, or a limit, the answer is no, and yes when that is gone. */
static void test_hindered(void **state)
{
    (void)state;
    int fd = memory_file(3);
    unsigned char *base = zone_share_sig(ZONE_RECIPES, fd, FILE_BYTES, PROT_READ, 6 * MIB);
    assert_non_null(base);
    close(fd);
    if (!is_in_zone(base))
        skip();
    void *obstacle = mmap(base + 40 * MIB, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_true(obstacle != MAP_FAILED);
    assert_true(zone_reach_sig(ZONE_RECIPES, 39 * MIB + MIB / 2));
    assert_false(zone_reach_sig(ZONE_RECIPES, 41 * MIB));
    assert_int_equal(base[39 * MIB], 3);
    munmap(obstacle, 65536);
    struct rlimit before, limit;
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = MIB;
    setrlimit(RLIMIT_AS, &limit);
    if (getenv("LOCUS_EMULATED"))
        print_message("SKIP (part): qemu-user sets no limit of address space\n");
    else
        assert_false(zone_reach_sig(ZONE_RECIPES, 41 * MIB));
    setrlimit(RLIMIT_AS, &before);
    assert_true(zone_reach_sig(ZONE_RECIPES, 41 * MIB));
    assert_int_equal(base[40 * MIB], 3);
}

static void test_private(void **state)
{
    (void)state;
    unsigned char *one = zone_pages_sig(100000), *two = zone_pages_sig(5000);
    assert_non_null(one);
    assert_non_null(two);
    memset(one, 1, 100000);
    assert_int_equal(two[0] + two[4999], 0);
    zone_set_locking_sig(true);
    unsigned char *three = zone_pages_sig(200000);
    assert_non_null(three);
    assert_int_equal(three[0] + three[199999], 0);
    three[199999] = 1;
    zone_set_locking_sig(false);
    zone_reach_all_sig();
    assert_true(!is_in_zone(one) || (is_in_zone(two) && is_in_zone(three)));
}

/* Pieces of the size of a large page begin at a multiple of it, and others still follow them. */
static void test_large(void **state)
{
    (void)state;
    unsigned char *before = zone_pages_sig(5000), *large = zone_large_sig(), *after = zone_pages_sig(5000);
    if (!is_in_zone(before))
        skip();
    assert_non_null(large);
    assert_non_null(after);
    assert_int_equal((uintptr_t)large % ZONE_LARGE_BYTES, 0);
    memset(large, 1, ZONE_LARGE_BYTES);
    memset(before, 2, 5000);
    memset(after, 3, 5000);
    assert_int_equal(large[0] + large[ZONE_LARGE_BYTES - 1], 2);
    zone_set_locking_sig(true); /* a large page would be locked whole */
    assert_null(zone_large_sig());
    assert_non_null(zone_pages_sig(5000));
    zone_set_locking_sig(false);
    assert_non_null(zone_large_sig());
}

static int n_said;

static void count_words(const char *text)
{
    n_said += text != NULL;
}

static uint64_t space_bytes(void)
{
    unsigned long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &n_pages), 1);
    fclose(file);
    return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Under a limit: the reserve is used first, then what the program does not need. */
static void test_limited(void **state)
{
    struct rlimit before, limit;
    (void)state;
    if (getenv("LOCUS_EMULATED"))
        skip(); /* qemu-user sets no limit of address space */
    zone_begin_sig((size_t)sysconf(_SC_PAGESIZE), count_words);
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = space_bytes() + ZONE_LEFT_BYTES + 16 * MIB;
    setrlimit(RLIMIT_AS, &limit);
    zone_reserve_sig();
    uint64_t with_reserve = space_bytes();
    assert_in_range(limit.rlim_cur - with_reserve, ZONE_LEFT_BYTES + 7 * MIB, ZONE_LEFT_BYTES + 9 * MIB);
    for (int i = 0; i < 7; i++)
        assert_non_null(zone_pages_sig(MIB));
    assert_in_range(space_bytes(), with_reserve - MIB, with_reserve + MIB);
    assert_true(zone_leaves_room_sig(ZONE_LEFT_BYTES));
    assert_false(zone_leaves_room_sig(ZONE_LEFT_BYTES + 16 * MIB));
    errno = EDOM;
    assert_null(zone_pages_sig(12 * MIB));
    assert_int_equal(errno, EDOM);
    assert_non_null(zone_pages_sig(4 * MIB));
    assert_null(zone_pages_sig(12 * MIB));
    assert_int_equal(n_said, 1);
    setrlimit(RLIMIT_AS, &before);
    assert_non_null(zone_pages_sig(12 * MIB));
}

/* Requests that are refused again and again are not all asked for, and it ends when there is room. */
static void test_refused_often(void **state)
{
    struct rlimit before, limit;
    int n_tries = 0;
    (void)state;
    if (getenv("LOCUS_EMULATED"))
        skip();
    zone_begin_sig((size_t)sysconf(_SC_PAGESIZE), NULL);
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = space_bytes() + MIB;
    setrlimit(RLIMIT_AS, &limit);
    for (int i = 0; i < 100000; i++)
        assert_null(zone_pages_sig(2 * MIB));
    setrlimit(RLIMIT_AS, &before);
    while (n_tries < 5000 && !zone_pages_sig(2 * MIB))
        n_tries++;
    assert_in_range(n_tries, 0, 4097);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),        cmocka_unit_test(test_replaced),      cmocka_unit_test(test_hindered),
        cmocka_unit_test(test_not_replaced), cmocka_unit_test(test_private),       cmocka_unit_test(test_large),
        cmocka_unit_test(test_limited),      cmocka_unit_test(test_refused_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
