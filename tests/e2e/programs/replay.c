/* SPDX-License-Identifier: BSD-3-Clause */
/* A program whose addresses are known before it runs: static arrays of an executable that is not position-independent,
 * mappings at fixed places, and heap blocks, which lie at the same place in each run without address-space
 * randomisation. Prints them, then switches the sampling on in a function that is on the stack meanwhile. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void hpctoolkit_sampling_start(void) __attribute__((weak));

static char static_small[8192], static_large[1 << 20];

static void say(const char *name, const void *address, size_t n_bytes)
{
    printf("%s 0x%lx %lu\n", name, (unsigned long)(uintptr_t)address, (unsigned long)n_bytes);
}

static __attribute__((noinline)) void start_sampling(void)
{
    if (hpctoolkit_sampling_start)
        hpctoolkit_sampling_start();
    static_small[0]++;
}

int main(void)
{
    char *heap_one = malloc(100000);
    char *heap_two = malloc(3000000);
    char *mapped = mmap((void *)0x200000000000, 1 << 20, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (!heap_one || !heap_two || mapped != (void *)0x200000000000)
        return 1;
    say("static_small", static_small, sizeof static_small);
    say("static_large", static_large, sizeof static_large);
    say("heap_one", heap_one, 100000);
    say("heap_two", heap_two, 3000000);
    say("mapped", mapped, 1 << 20);
    say("code", (const char *)start_sampling, 8);
    (void)fflush(stdout);
    start_sampling();
    free(heap_two);
    free(heap_one);
    return static_small[1] + static_large[1];
}
