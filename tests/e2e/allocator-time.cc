/* SPDX-License-Identifier: BSD-3-Clause */
/* Spends its time inside the allocator (churn), or in blocks that the allocator fills and copies for it (blocks); or
 * makes blocks that it neither touches nor frees (keep). */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned churn(int turns)
{
    static void *live[512];
    unsigned x = 1, sum = 0;
    for (int i = 0; i < turns; i++) {
        x = x * 1664525u + 1013904223u;
        void *&p = live[x >> 8 & 511];
        free(p);
        p = malloc(1100 + (x >> 20)); /* too large for the thread's cache: chunks are split and joined */
        sum += p != nullptr;
    }
    return sum;
}

__attribute__((noinline)) static unsigned grow(int turns)
{
    unsigned sum = 0;
    for (int i = 0; i < turns; i++) {
        std::vector<void *> all;
        for (int k = 0; k < 4; k++)
            all.push_back(&all);
        sum += static_cast<unsigned>(all.size());
    }
    return sum;
}

__attribute__((noinline)) static unsigned blocks(int turns)
{
    unsigned sum = 0;
    for (int i = 0; i < turns; i++) {
        char *p = static_cast<char *>(calloc(1, 100000 + 64 * (i & 7)));
        if (!p)
            return 0;
        sum += static_cast<unsigned>(*static_cast<volatile char *>(p + (i & 65535)));
        free(p);
    }
    return sum;
}

/* One function for each size. Blocks come one by one and in no order of the sizes. */
#define KEEP(n_bytes)                                                                                                  \
    __attribute__((noinline)) static unsigned keep##n_bytes()                                                          \
    {                                                                                                                  \
        void *p = malloc(n_bytes);                                                                                     \
        __asm__ volatile("" : : "r"(p) : "memory");                                                                    \
        return p != nullptr;                                                                                           \
    }
KEEP(40)
KEEP(100)
KEEP(500)
KEEP(2000)
KEEP(3000)
KEEP(6000)

__attribute__((noinline)) static unsigned keep(int turns)
{
    unsigned sum = 0;
    for (int i = 0; i < turns; i++)
        sum += keep40() + keep100() + keep500() + keep2000() + keep3000() + keep6000();
    return sum;
}

int main(int argc, char **argv)
{
    bool is_churn = argc > 1 && !strcmp(argv[1], "churn"), is_keep = argc > 1 && !strcmp(argv[1], "keep");
    sink = is_churn ? churn(6000000) + grow(2000000) : is_keep ? keep(20000) : blocks(150000);
    printf("%d\n", argc);
    return 0;
}
