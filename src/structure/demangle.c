/* SPDX-License-Identifier: BSD-3-Clause */
/* Demangling through libstdc++, loaded on demand. */
#include "structure/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangle_function(const char *, char *, size_t *, int *);

static struct {
    pthread_once_t once;
    demangle_function *function;
} state = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&state.function, &symbol, sizeof symbol);
}

static demangle_function *demangler(void)
{
    (void)pthread_once(&state.once, load);
    return state.function;
}

/* Names of Rust are made like those of C++ and end in a hash as the last component, "::h0123456789abcdef". */
static void drop_hash(char *readable)
{
    size_t len = strlen(readable), len_hash = strlen("::h") + 16;
    char *hash = len > len_hash ? readable + len - len_hash : NULL;
    if (hash && strncmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16)
        *hash = 0;
}

char *demangle_name(const char *name)
{
    int status = 0;
    if (strncmp(name, "_Z", 2) != 0 || !demangler())
        return NULL;
    char *readable = demangler()(name, NULL, NULL, &status);
    if (readable)
        drop_hash(readable);
    return readable;
}

char *demangle_module_name(const char *name)
{
    const char *sign = strncmp(name, "__", 2) == 0 ? strstr(name + 2, "_MOD_") : NULL;
    size_t len = sign ? (size_t)(sign - name) - 2 : 0;
    if (len == 0 || !sign[strlen("_MOD_")])
        return NULL;
    char *readable = malloc(strlen(name) + 1);
    if (!readable)
        return NULL;
    memcpy(readable, name + 2, len);
    memcpy(readable + len, "::", 2);
    strcpy(readable + len + 2, sign + strlen("_MOD_"));
    return readable;
}
