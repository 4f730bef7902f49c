/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks of ITT as regions: what its static library looks up in the library that INTEL_LIBITTNOTIFY64 names. Apart from
 * regions.c because the layouts are somebody else's: the public header ittnotify.h has them. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/regions.h"
#include "runtime/own-call.h"
#include "runtime/wrap.h"

#define STRINGS_MAX 4096

struct itt_domain {
    volatile int is_enabled;
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct itt_domain *next;
};

struct itt_string {
    const char *text;
    void *wide_text;
    int extra1; /* the collector's: the reference of the name, 0 not looked up yet */
    void *extra2;
    struct itt_string *next;
};

/* Passed by value. */
struct itt_id {
    uint64_t words[3];
};

static struct {
    _Atomic uint32_t n_strings;
    struct itt_string *_Atomic strings; /* [STRINGS_MAX] */
} itt;

WRAP_EXPORT struct itt_domain *__itt_domain_create(const char *name);
WRAP_EXPORT struct itt_domain *__itt_domain_create(const char *name)
{
    static struct itt_domain all = {.is_enabled = 1, .name = ""};
    (void)name; /* one stack of tasks a thread serves all */
    return &all;
}

static struct itt_string *strings_map(void)
{
    struct itt_string *strings = itt.strings, *none = NULL;
    size_t n_bytes = STRINGS_MAX * sizeof *strings;
    if (strings)
        return strings;
    strings = (struct itt_string *)own_mmap_sig(NULL, n_bytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if ((uintptr_t)strings >= (uintptr_t)-4095)
        return NULL;
    if (atomic_compare_exchange_strong(&itt.strings, &none, strings))
        return strings;
    own_call_sig(SYS_munmap, strings, n_bytes);
    return none;
}

/* Two threads may get handles of their own for one name: they mean the same. */
static struct itt_string *string_of(uint32_t name)
{
    struct itt_string *strings = strings_map();
    uint32_t n = atomic_load(&itt.n_strings);
    for (uint32_t i = 0; strings && i < n && i < STRINGS_MAX; i++)
        if ((uint32_t)strings[i].extra1 == name)
            return &strings[i];
    uint32_t at = strings && n < STRINGS_MAX ? atomic_fetch_add(&itt.n_strings, 1) : STRINGS_MAX;
    if (at >= STRINGS_MAX)
        return NULL;
    const struct arena_string *copy = arena_record_sig(name);
    strings[at].text = copy->text;
    strings[at].extra1 = (int)name;
    return &strings[at];
}

WRAP_EXPORT struct itt_string *__itt_string_handle_create(const char *text);
WRAP_EXPORT struct itt_string *__itt_string_handle_create(const char *text)
{
    static struct itt_string nameless = {.text = ""};
    uint32_t name = regions_name(text);
    struct itt_string *string = name ? string_of(name) : NULL;
    return string ? string : &nameless;
}

WRAP_EXPORT void __itt_task_begin(const struct itt_domain *domain, struct itt_id task, struct itt_id parent,
                                  struct itt_string *name);
WRAP_EXPORT void __itt_task_begin(const struct itt_domain *domain, struct itt_id task, struct itt_id parent,
                                  struct itt_string *name)
{
    (void)domain;
    (void)task;
    (void)parent;
    /* Some versions of the static library make the handles themselves. */
    if (name && !name->extra1)
        name->extra1 = (int)regions_name(name->text);
    regions_enter(name ? (uint32_t)name->extra1 : 0);
}

WRAP_EXPORT void __itt_task_end(const struct itt_domain *domain);
WRAP_EXPORT void __itt_task_end(const struct itt_domain *domain)
{
    (void)domain;
    regions_leave();
}
