/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the mapping wrappers: mmap, munmap, mremap, shared memory and the break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "alloc-recorder.h"

#define PAGE 4096

__attribute__((noinline)) static char *map_pages(size_t n_pages)
{
    char *p = mmap(NULL, n_pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static void expect_last(const struct recorder *recorder, enum recorder_what what, const void *p, size_t n_bytes)
{
    const struct recorder_event *event = recorder_last(recorder, 0);
    assert_int_equal(event->what, what);
    assert_ptr_equal(event->p, p);
    assert_int_equal(event->n_bytes, n_bytes);
}

static void test_anonymous_mappings(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    char *p = map_pages(8);
    expect_last(recorder, RECORD_ALLOC, p, (size_t)8 * PAGE);
    assert_int_equal(recorder_last(recorder, 0)->kind, ALLOC_MMAP);
    assert_true(recorder_last(recorder, 0)->site.pc > (uintptr_t)map_pages);
    assert_true(recorder_last(recorder, 0)->site.pc < (uintptr_t)map_pages + 512);
    errno = 0;
    assert_int_equal(munmap(p + 2 * PAGE, PAGE - 10), 0);
    expect_last(recorder, RECORD_UNMAPPED, p + 2 * PAGE, PAGE);
    assert_int_equal(errno, 0);
    char *q = mmap64(p + 4 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(q, p + 4 * PAGE);
    expect_last(recorder, RECORD_ALLOC, q, PAGE);
    assert_int_equal(recorder_last(recorder, 1)->what, RECORD_UNMAPPED);
    assert_ptr_equal(recorder_last(recorder, 1)->p, q);
    assert_int_equal(munmap(p, (size_t)8 * PAGE), 0);
    expect_last(recorder, RECORD_UNMAPPED, p, (size_t)8 * PAGE);
}

static void test_refused_calls_cost_no_record(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    char *p = map_pages(2);
    unsigned n_before = recorder->n_events;
    errno = 0;
    assert_int_equal(munmap(p + 1, PAGE), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(munmap(p, 0), -1);
    assert_ptr_equal(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    assert_int_equal(errno, EINVAL);
    assert_ptr_equal(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0), MAP_FAILED);
    assert_int_equal(errno, EBADF);
    assert_int_equal(recorder->n_events, n_before);
    assert_int_equal(munmap(p, (size_t)2 * PAGE), 0);
}

static void test_file_mapping(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    int fd = memfd_create("mapping", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)4 * PAGE), 0);
    char *p = mmap(NULL, (size_t)4 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    expect_last(recorder, RECORD_FILE, p, (size_t)4 * PAGE);
    assert_int_equal(recorder_last(recorder, 0)->fd, fd);
    assert_int_equal(munmap(p, (size_t)4 * PAGE), 0);
    assert_int_equal(close(fd), 0);
}

static void test_mremap(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    char *p = map_pages(5), *wall = mmap(p + 4 * PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(wall, p + 4 * PAGE);
    assert_ptr_equal(mremap(p, (size_t)4 * PAGE, (size_t)8 * PAGE, 0), MAP_FAILED);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RESIZE_FAILED);
    char *q = mremap(p, (size_t)4 * PAGE, (size_t)8 * PAGE, MREMAP_MAYMOVE);
    assert_ptr_not_equal(q, p);
    expect_last(recorder, RECORD_RESIZE_DONE, p, (size_t)8 * PAGE);
    assert_ptr_equal(recorder_last(recorder, 0)->new_p, q);
    /* From the middle of a mapping: the old range goes, a new mapping comes. */
    char *place = map_pages(2);
    char *r = mremap(q + 2 * PAGE, (size_t)2 * PAGE, (size_t)2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    assert_ptr_equal(r, place);
    expect_last(recorder, RECORD_ALLOC, place, (size_t)2 * PAGE);
    expect_last(recorder, RECORD_ALLOC, place, (size_t)2 * PAGE);
    assert_ptr_equal(recorder_last(recorder, 1)->p, q + 2 * PAGE);
    assert_ptr_equal(recorder_last(recorder, 2)->p, place);
    /* Shrinking from the middle. */
    assert_ptr_equal(mremap(q + 4 * PAGE, (size_t)4 * PAGE, PAGE, 0), q + 4 * PAGE);
    expect_last(recorder, RECORD_UNMAPPED, q + 5 * PAGE, (size_t)3 * PAGE);
    assert_int_equal(munmap(q, (size_t)8 * PAGE), 0);
    assert_int_equal(munmap(place, (size_t)2 * PAGE), 0);
    assert_int_equal(munmap(wall, PAGE), 0);
}

static void test_shared_memory(void **state)
{
    (void)state;
    int id = shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600);
    if (id < 0) {
        print_message("SKIP System V shared memory is refused here\n");
        skip();
    }
    struct recorder *recorder = recorder_connect(1024, 0);
    char *p = shmat(id, NULL, 0);
    assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
    expect_last(recorder, RECORD_ALLOC, p, 10000);
    assert_int_equal(recorder_last(recorder, 0)->kind, ALLOC_SHM);
    assert_int_equal(shmdt(p), 0);
    assert_int_equal(recorder_last(recorder, 0)->what, RECORD_RELEASE);
    assert_int_equal(recorder_last(recorder, 0)->kind, ALLOC_SHM);
    unsigned n_before = recorder->n_events;
    assert_int_equal(shmdt(p), -1);
    assert_int_equal(recorder->n_events, n_before);
}

static void test_break(void **state)
{
    (void)state;
    struct recorder *recorder = recorder_connect(1024, 0);
    char *p = sbrk(3 * PAGE);
    if (p == (char *)-1) {
        print_message("SKIP the break cannot be moved here\n");
        skip();
    }
    expect_last(recorder, RECORD_ALLOC, p, (size_t)3 * PAGE);
    assert_int_equal(recorder_last(recorder, 0)->kind, ALLOC_BRK);
    assert_int_equal(brk(p + PAGE), 0);
    expect_last(recorder, RECORD_UNMAPPED, p + PAGE, (size_t)2 * PAGE);
    assert_ptr_equal(sbrk(-PAGE), p + PAGE);
    expect_last(recorder, RECORD_UNMAPPED, p, PAGE);
    assert_ptr_equal(sbrk(0), p);
    assert_int_equal(recorder->n_events, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anonymous_mappings), cmocka_unit_test(test_refused_calls_cost_no_record),
        cmocka_unit_test(test_file_mapping),       cmocka_unit_test(test_mremap),
        cmocka_unit_test(test_shared_memory),      cmocka_unit_test(test_break),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
