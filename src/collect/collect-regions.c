/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of the program in a profile: an address for each name, made from the name itself, so that profiles of many
 * processes agree, and the table by which readers find the names. Ordinary code. */
#include <string.h>

#include "collect/collect-internal.h"

#define ADDRESS_BITS 47 /* as those of a program */

/* Even and not 0: readers look one byte before it, too. */
static uint64_t address_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    hash = (hash ^ hash >> ADDRESS_BITS) & (((uint64_t)1 << ADDRESS_BITS) - 2);
    return hash ? hash : 2;
}

/* Index of the first region at or behind start. */
static size_t find(const struct thread *thread, uint64_t start)
{
    size_t i = 0;
    while (i < thread->n_regions && thread->regions[i].start < start)
        i++;
    return i;
}

uint64_t thread_place_region(struct thread *thread, uint64_t ref)
{
    const char *name = ref <= UINT32_MAX ? view_string(thread->process->view, (uint32_t)ref) : NULL;
    uint64_t address = address_of(name ? name : "");
    size_t at = find(thread, address - 1);
    if (at < thread->n_regions && thread->regions[at].start == address - 1)
        return address;
    if (!vec_reserve(&thread->regions, &thread->cap_regions, thread->n_regions + 1, sizeof *thread->regions)) {
        thread->tree.failed = true;
        return address;
    }
    memmove(thread->regions + at + 1, thread->regions + at, (thread->n_regions - at) * sizeof *thread->regions);
    thread->regions[at] = (struct objects_function){address - 1, address + 1, (char *)(uintptr_t)(name ? name : "?")};
    thread->n_regions++;
    return address;
}
