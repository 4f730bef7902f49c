/* SPDX-License-Identifier: BSD-3-Clause */
/* A plugin for deepbind-host.c. OWN: with an allocator of its own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN
static char arena[64 << 20] __attribute__((aligned(64)));
static size_t used;

void *malloc(size_t n_bytes)
{
    void *p = arena + used;
    used += (n_bytes + 63) & ~(size_t)63;
    return used <= sizeof arena ? p : NULL;
}

void free(void *p)
{
    (void)p;
}
#endif

double *plug_make(size_t n);
char *plug_name(void);
void plug_take(void *p);

double *plug_make(size_t n)
{
    double *field = malloc(n * sizeof *field);
    for (size_t i = 0; field && i < n; i++)
        field[i] = (double)i;
    return field;
}

char *plug_name(void)
{
    char *text = malloc(2000);
    if (!text)
        return NULL;
    memset(text, 0, 2000);
#ifdef OWN
    strcpy(text, (uintptr_t)text - (uintptr_t)arena < sizeof arena ? "mine" : "not mine");
#else
    strcpy(text, "libc's");
#endif
    return text;
}

void plug_take(void *p)
{
    free(p);
}
