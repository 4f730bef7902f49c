/* SPDX-License-Identifier: BSD-3-Clause */
/* Touches every page of static arrays of known sizes, of a block of the heap and of a mapped file once, in two threads,
 * and then one array often: what measurements of page faults, breakpoints and time must find. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

char first_array[400 * PAGE] __attribute__((aligned(PAGE)));  /* by the main thread */
char second_array[200 * PAGE] __attribute__((aligned(PAGE))); /* by another thread */
int counter __attribute__((aligned(PAGE)));                   /* written 100 times, for a breakpoint */
static volatile char sink;

static __attribute__((noinline)) void touch(char *bytes, size_t n_pages)
{
    for (size_t i = 0; i < n_pages; i++)
        ((volatile char *)bytes)[i * PAGE] = 1;
}

static void *other_thread(void *unused)
{
    touch(second_array, sizeof second_array / PAGE);
    return unused;
}

/* 100 pages of a file, read. */
static void touch_file(const char *path)
{
    int fd = open(path, O_RDONLY);
    const char *bytes = fd < 0 ? MAP_FAILED : mmap(NULL, 100 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED || madvise((void *)(size_t)bytes, 100 * PAGE, MADV_RANDOM) != 0)
        exit(1);
    for (size_t i = 0; i < 100; i++)
        sink = ((const volatile char *)bytes)[i * PAGE];
}

int main(int argc, char **argv)
{
    pthread_t thread;
    volatile int *count = &counter;
    touch(first_array, sizeof first_array / PAGE);
    if (pthread_create(&thread, NULL, other_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    char *block = malloc(300 * PAGE);
    if (!block)
        return 1;
    touch(block, 300);
    free(block);
    if (argc > 1)
        touch_file(argv[1]);
    for (int i = 0; i < 100; i++)
        *count = i;
    for (int round = 0; round < 5000; round++)
        touch(first_array, sizeof first_array / PAGE);
    return 0;
}
