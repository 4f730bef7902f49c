/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that are lost, kept, freed late or by somebody else, in known numbers; each in a function of its own. The last
 * argument chooses how the process ends. The kept array is worked on all the time, the lost ones are not touched. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/locus.h"

#define KEPT_BYTES (8u << 20)

static unsigned char *kept;
static void *passed[10];
static volatile unsigned sum;

__attribute__((noinline)) static void lose(void)
{
    for (int i = 0; i < 7; i++) {
        void *lost = malloc(3000);
        __asm__ volatile("" : : "r"(lost) : "memory");
    }
}

/* Ten blocks, of which another thread frees six. */
__attribute__((noinline)) static void *free_some(void *unused)
{
    for (int i = 0; i < 6; i++)
        free(passed[i]);
    return unused;
}

__attribute__((noinline)) static void pass(void)
{
    pthread_t thread;
    for (int i = 0; i < 10; i++)
        passed[i] = malloc(5000);
    pthread_create(&thread, NULL, free_some, NULL);
    pthread_join(thread, NULL);
}

/* One block that grows four times: the last size stays. */
__attribute__((noinline)) static void grow(void)
{
    static char *grown;
    grown = malloc(2000);
    for (int i = 1; i <= 4; i++) {
        char *larger = realloc(grown, 2000 + 50000 * (size_t)i);
        grown = larger;
    }
}

/* 5000 blocks below the usual threshold, of which every fifth stays. */
__attribute__((noinline)) static void make_small(void)
{
    static char *small[5000];
    for (int i = 0; i < 5000; i++)
        small[i] = malloc(200);
    for (int i = 0; i < 5000; i++)
        if (i % 5)
            free(small[i]);
}

/* Four mappings: one stays, one is unmapped, one loses its middle, one its end. */
__attribute__((noinline)) static void map(void)
{
    char *mapped[4];
    size_t page = (size_t)getpagesize();
    for (int i = 0; i < 4; i++)
        mapped[i] = mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(mapped[1], 16 * page);
    munmap(mapped[2] + 4 * page, 5 * page);
    munmap(mapped[3] + 13 * page, 3 * page);
}

/* Three blocks of a pool, one goes back. */
__attribute__((noinline)) static void hand_out(void)
{
    static char *slab;
    slab = malloc(1 << 20);
    for (int i = 0; i < 3; i++)
        locus_pool_alloc(slab + 100000 * i, 90000);
    locus_pool_free(slab + 100000);
}

/* Live at the mark, freed before the end. */
__attribute__((noinline)) static void *hold(void)
{
    char *held = malloc(123456);
    return held;
}

__attribute__((noinline)) static void work(double seconds)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        unsigned at = 1;
        for (int i = 0; i < 200000; i++) {
            /* Each place depends on what the last one held, so that no processor can look ahead. */
            at = at * 1664525u + 1013904223u + (unsigned char)kept[at % KEPT_BYTES]++;
            sum += at;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
}

/* The child frees three blocks of its parent, loses two of its own, and works on the parent's array. */
__attribute__((noinline)) static void fork_child(double seconds)
{
    pid_t child = fork();
    if (child == 0) {
        for (int i = 6; i < 9; i++)
            free(passed[i]);
        for (int i = 0; i < 2; i++) {
            void *own = malloc(7777);
            __asm__ volatile("" : : "r"(own) : "memory");
        }
        work(seconds);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *end = argc > 1 ? argv[1] : "exit";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
    kept = malloc(KEPT_BYTES);
    lose();
    pass();
    grow();
    make_small();
    map();
    hand_out();
    void *held = hold();
    if (strcmp(end, "mark") == 0)
        locus_mark_live();
    work(seconds);
    free(held);
    if (strcmp(end, "fork") == 0)
        fork_child(seconds);
    if (strcmp(end, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(end, "_exit") == 0)
        _exit(0);
    return 0;
}
