/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of NVTX as regions. A program that uses NVTX has its header's code, which at its first call loads the library
 * that NVTX_INJECTION64_PATH names and hands it tables of pointers; what is put there is called from then on.
 * src: nvtxTypes.h and nvToolsExt.h of NVTX 3 (table and callback numbers, layout of event attributes). */
#include <stddef.h>
#include <stdint.h>

#include "runtime/regions.h"
#include "runtime/wrap.h"

enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { CORE_PUSH_EX = 8, CORE_PUSH = 9, CORE_POP = 11 };
enum { CORE2_PUSH_EX = 4, CORE2_POP = 5, CORE2_REGISTER_STRING = 10 };
enum { MESSAGE_TEXT = 1, MESSAGE_REGISTERED = 3 };

typedef void nvtx_function(void);

struct nvtx_callbacks {
    size_t n_bytes;
    int (*find_table)(uint32_t module, nvtx_function ***table, unsigned *n_entries);
};

struct nvtx_attributes {
    uint16_t version, n_bytes;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message; /* text, or what register_string returned */
};

/* What NVTX wants to know: the level of the range, the outermost being 0. */
static int level(void)
{
    return (int)regions_depth_sig() - 1;
}

static int push(const char *text)
{
    regions_enter(regions_name(text));
    return level();
}

static int push_attributes(const struct nvtx_attributes *attributes)
{
    if (attributes && attributes->message_type == MESSAGE_REGISTERED)
        regions_enter((uint32_t)(uintptr_t)attributes->message);
    else
        regions_enter(attributes && attributes->message_type == MESSAGE_TEXT ? regions_name(attributes->message) : 0);
    return level();
}

static int pop(void)
{
    int left = level();
    regions_leave();
    return left;
}

static int push_in_domain(const void *domain, const struct nvtx_attributes *attributes)
{
    (void)domain; /* one stack of ranges a thread serves all */
    return push_attributes(attributes);
}

static int pop_in_domain(const void *domain)
{
    (void)domain;
    return pop();
}

static const void *register_string(const void *domain, const char *text)
{
    (void)domain;
    return (const void *)(uintptr_t)regions_name(text);
}

static void take(const struct nvtx_callbacks *callbacks, uint32_t module, unsigned index, nvtx_function *function)
{
    nvtx_function ***table = NULL; /* [n_entries] addresses of the pointers to fill */
    unsigned n_entries = 0;
    if (callbacks->find_table(module, (nvtx_function ***)(void *)&table, &n_entries) && table && index < n_entries &&
        table[index])
        *table[index] = function;
}

WRAP_EXPORT int InitializeInjectionNvtx2(const void *(*find_export)(uint32_t id));
WRAP_EXPORT int InitializeInjectionNvtx2(const void *(*find_export)(uint32_t id))
{
    const struct nvtx_callbacks *callbacks = find_export ? find_export(TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->n_bytes < sizeof *callbacks || !callbacks->find_table)
        return 0;
    take(callbacks, MODULE_CORE, CORE_PUSH_EX, (nvtx_function *)push_attributes);
    take(callbacks, MODULE_CORE, CORE_PUSH, (nvtx_function *)push);
    take(callbacks, MODULE_CORE, CORE_POP, (nvtx_function *)pop);
    take(callbacks, MODULE_CORE2, CORE2_PUSH_EX, (nvtx_function *)push_in_domain);
    take(callbacks, MODULE_CORE2, CORE2_POP, (nvtx_function *)pop_in_domain);
    take(callbacks, MODULE_CORE2, CORE2_REGISTER_STRING, (nvtx_function *)register_string);
    return 1;
}
