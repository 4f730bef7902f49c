/* SPDX-License-Identifier: BSD-3-Clause */
/* deepbind-host LIBRARY now|lazy|apart: opens the plugin three times with RTLD_DEEPBIND, or once in a namespace of its
 * own, and walks an array that it has made.
 * Blocks are freed on the other side of the border than they were made. Prints what the plugin says of its malloc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile double sink;

/* n: a power of two. Each step waits for the load of the one before: what a step costs is that load, on any machine. */
__attribute__((noinline)) static double walk(const double *at, size_t n, int turns)
{
    double sum = 0;
    unsigned x = 1;
    for (int i = 0; i < turns; i++) {
        double value = at[(x >> 8) & (n - 1)];
        sum += value;
        x = (x + (unsigned)(int)value) * 1664525u + 1013904223u;
    }
    return sum;
}

int main(int argc, char **argv)
{
    size_t n = 1 << 20;
    int mode = (argc > 2 && !strcmp(argv[2], "lazy") ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL | RTLD_DEEPBIND;
    bool is_apart = argc > 2 && !strcmp(argv[2], "apart");
    for (int k = 0; argc > 1 && k < (is_apart ? 1 : 3); k++) {
        void *handle = is_apart ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], mode);
        if (!handle) {
            puts(dlerror());
            return 1;
        }
        double *(*make)(size_t) = (double *(*)(size_t))dlsym(handle, "plug_make");
        char *(*name)(void) = (char *(*)(void))dlsym(handle, "plug_name");
        void (*take)(void *) = (void (*)(void *))dlsym(handle, "plug_take");
        const char *pending = dlerror();
        double *field = make(n);
        sink = walk(field, n, 1500000);
        char *text = name();
        printf("%s %s\n", text, pending ? pending : "-");
        take(text);
        take(field);
        if (!is_apart) /* where it has another libc */
            take(malloc(100000));
        (void)dlclose(handle);
    }
    return 0;
}
