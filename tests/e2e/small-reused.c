/* SPDX-License-Identifier: BSD-3-Clause */
/* Two libraries, LIB_first.so and LIB_second.so, are loaded one after the other at the same addresses, in turns, and
 * allocate small blocks by the same instructions: NAME_make, and NAME_copy by way of strdup. The blocks are walked.
 * Built as a library with -DNAME=first and -DNAME=second. usage: small-reused TURNS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#ifdef NAME
void PASTE(NAME, _make)(char **to, const char *text);
void PASTE(NAME, _make)(char **to, const char *text)
{
    *to = malloc(strlen(text) + 1);
    strcpy(*to, text);
}

void PASTE(NAME, _copy)(char **to, const char *text);
void PASTE(NAME, _copy)(char **to, const char *text)
{
    *to = strdup(text);
    to[0][0] = 'c';
}
#else
#define N 4000
#define BYTES 200

typedef void fill_function(char **, const char *);

static struct {
    char *made[N], *copied[N];
} first, second;

static fill_function *find(void *library, const char *name, const char *what)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s_%s", name, what);
    return (fill_function *)dlsym(library, symbol);
}

/* A function for each library, so that the names of its blocks tell which one it was. Returns where its code lay. */
#define DEFINE_FILL(name)                                                                                              \
    static __attribute__((noinline)) fill_function *name##_fill(const char *text)                                      \
    {                                                                                                                  \
        void *library = dlopen("./lib_" #name ".so", RTLD_NOW);                                                        \
        fill_function *make = find(library, #name, "make"), *copy = find(library, #name, "copy");                      \
        for (int i = 0; i < N; i++) {                                                                                  \
            free(name.made[i]);                                                                                        \
            free(name.copied[i]);                                                                                      \
            make(&name.made[i], text);                                                                                 \
            copy(&name.copied[i], text);                                                                               \
        }                                                                                                              \
        dlclose(library);                                                                                              \
        return make;                                                                                                   \
    }

DEFINE_FILL(first)
DEFINE_FILL(second)

static __attribute__((noinline)) unsigned long walk(char **blocks)
{
    unsigned long sum = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < BYTES; k += 8)
            sum += (unsigned char)blocks[i][k]++;
    return sum;
}

int main(int argc, char **argv)
{
    char text[BYTES] = {0};
    unsigned long sum = 0;
    memset(text, 'x', sizeof text - 1);
    for (int turn = 0; turn < (argc > 1 ? atoi(argv[1]) : 1); turn++)
        if (first_fill(text) != second_fill(text))
            return 77;
    for (int i = 0; i < 1500; i++)
        sum += walk(first.made) + walk(first.copied) + walk(second.made) + walk(second.copied);
    printf("%lu\n", sum);
    return 0;
}
#endif
