/* SPDX-License-Identifier: BSD-3-Clause */
/* Never run: symbolize.py compiles it and makes profiles whose addresses lie in it. It searches the comments. */
#include <stdlib.h>

static char table_static[4096];
char table_global[2048];
static _Thread_local char table_thread[1024];
double *field, **rows;
struct box {
    double *inside;
} box;

__attribute__((noinline)) static void *grab(size_t n)
{
    return malloc(n); /* in grab */
}

__attribute__((noinline)) static void *must_alloc(size_t n)
{
    void *block = malloc(n); /* in must_alloc */
    if (!block)
        abort();
    return block;
}

static inline __attribute__((always_inline)) int touch(volatile char *at)
{
    return at[0]++; /* access inlined */
}

__attribute__((noinline)) static int reader(volatile char *at)
{
    int sum = 0;
    sum += touch(at); /* call of touch */
    return sum + at[1]; /* access in reader */
}

__attribute__((noinline)) static void setup(size_t n)
{
    field = malloc(n); /* allocates field */
    double *local = grab(n); /* allocates local */
    box.inside = must_alloc(n); /* allocates box.inside */
    local[0] = 1;
    reader((volatile char *)local); /* reads local */
}

int main(void)
{
    setup(4096); /* call of setup */
    return reader(table_static) + reader(table_global) + reader(table_thread);
}
