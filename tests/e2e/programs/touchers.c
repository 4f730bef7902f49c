/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of the same size whose pages are touched first by the main thread, by memset for its caller, by four threads
 * that take a block each, by a parallel region, by read() in the kernel, by the kernel when it maps them, and as huge
 * pages. Threads 1 to 4 touch their blocks in turn. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096L
#define PAGES 2048L
#define BYTES (PAGES * PAGE)
#define THREADS 4
#define HUGE_BYTES (2L << 20)

static char *serial, *cleared, *blocked, *shared, *filled, *populated, *huge;

__attribute__((noinline)) static char *make(int flags, int advice, long align)
{
    char *block =
        mmap(NULL, (size_t)(BYTES + align), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (block == MAP_FAILED)
        abort();
    block += (align - (long)block % (align ? align : 1)) % (align ? align : 1);
    (void)madvise(block, BYTES, advice);
    return block;
}

__attribute__((noinline)) static void touch(char *first, long n_pages)
{
    for (long i = 0; i < n_pages; i++)
        *(volatile char *)(first + i * PAGE) = 1;
}

__attribute__((noinline)) static void init_serial(void)
{
    for (long i = 0; i < PAGES; i++)
        *(volatile char *)(serial + i * PAGE) = 1;
}

__attribute__((noinline)) static void clear_all(char *block)
{
    memset(block, 1, BYTES);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void *touch_block(void *argument)
{
    long part = (long)argument;
    for (long i = part * PAGES / THREADS; i < (part + 1) * PAGES / THREADS; i++)
        *(volatile char *)(blocked + i * PAGE) = 1;
    return NULL;
}

__attribute__((noinline)) static void touch_region(void)
{
#pragma omp parallel for schedule(static) num_threads(THREADS)
    for (long i = 0; i < PAGES; i++)
        *(volatile char *)(shared + i * PAGE) = 1;
}

static void fill(void)
{
    int fd = open("/dev/zero", O_RDONLY);
    for (long done = 0; done < BYTES;) {
        ssize_t n = read(fd, filled + done, (size_t)(BYTES - done));
        if (n <= 0)
            abort();
        done += n;
    }
    (void)close(fd);
}

int main(void)
{
    serial = make(0, MADV_NOHUGEPAGE, 0);
    cleared = make(0, MADV_NOHUGEPAGE, 0);
    blocked = make(0, MADV_NOHUGEPAGE, 0);
    shared = make(0, MADV_NOHUGEPAGE, 0);
    filled = make(0, MADV_NOHUGEPAGE, 0);
    populated = make(MAP_POPULATE, MADV_NORMAL, 0);
    huge = make(0, MADV_HUGEPAGE, HUGE_BYTES);
    init_serial();
    clear_all(cleared);
    for (long i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, touch_block, (void *)i))
            abort();
        (void)pthread_join(thread, NULL);
    }
    touch_region();
    fill();
    touch(populated, PAGES);
    touch(huge, PAGES);
    printf("%ld\n", PAGES);
    return 0;
}
