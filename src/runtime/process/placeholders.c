/* SPDX-License-Identifier: BSD-3-Clause */
/* The placeholder functions, see start.h. The first five are exported under the names that the original tools
 * look for; the others are only in .symtab. Each is at least two bytes long, because nodes store address + 1. */
#include "runtime/process/start.h"

#define PLACEHOLDER_BODY __asm__ volatile("nop\n\tnop\n\tnop")
#define EXPORTED __attribute__((visibility("default"), noinline, used))
#define KEPT __attribute__((visibility("hidden"), noinline, used))

EXPORTED void DATACENTRIC(void);
EXPORTED void DATACENTRIC_Dynamic(void);
EXPORTED void DATACENTRIC_Static(void);
EXPORTED void DATACENTRIC_Unknown(void);
EXPORTED void DATACENTRIC_MemoryAccess(void);
KEPT void DATACENTRIC_Stack(void);
KEPT void DATACENTRIC_ThreadLocal(void);
KEPT void DATACENTRIC_FileMapping(void);
KEPT void DATACENTRIC_Unknown_NoBlock(void);
KEPT void DATACENTRIC_Unknown_Freed(void);
KEPT void DATACENTRIC_Unknown_SmallBlock(void);
KEPT void DATACENTRIC_Unknown_Profiler(void);
KEPT void DATACENTRIC_Unknown_Kernel(void);
KEPT void DATACENTRIC_Unknown_Null(void);
KEPT void DATACENTRIC_Unknown_Vdso(void);
KEPT void DATACENTRIC_Unknown_HeapWithoutAllocationLog(void);
KEPT void DATACENTRIC_No_Compute(void);
KEPT void DATACENTRIC_No_AddressLost(void);
KEPT void DATACENTRIC_No_SystemCall(void);
KEPT void DATACENTRIC_No_Waiting(void);
KEPT void CREATED_THREAD(void);

void DATACENTRIC(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Dynamic(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Static(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_MemoryAccess(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Stack(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_ThreadLocal(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_FileMapping(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_NoBlock(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_Freed(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_SmallBlock(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_Profiler(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_Kernel(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_Null(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_Vdso(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_Unknown_HeapWithoutAllocationLog(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_No_Compute(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_No_AddressLost(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_No_SystemCall(void)
{
    PLACEHOLDER_BODY;
}

void DATACENTRIC_No_Waiting(void)
{
    PLACEHOLDER_BODY;
}

void CREATED_THREAD(void)
{
    PLACEHOLDER_BODY;
}

void placeholders_fill(uint64_t addresses[PLACEHOLDER_MAX])
{
    static void (*const functions[PLACEHOLDER_MAX])(void) = {
        [PLACEHOLDER_ROOT] = DATACENTRIC,
        [PLACEHOLDER_DYNAMIC] = DATACENTRIC_Dynamic,
        [PLACEHOLDER_STATIC] = DATACENTRIC_Static,
        [PLACEHOLDER_UNKNOWN] = DATACENTRIC_Unknown,
        [PLACEHOLDER_ACCESS] = DATACENTRIC_MemoryAccess,
        [PLACEHOLDER_STACK] = DATACENTRIC_Stack,
        [PLACEHOLDER_TLS] = DATACENTRIC_ThreadLocal,
        [PLACEHOLDER_FILE] = DATACENTRIC_FileMapping,
        [PLACEHOLDER_REASON + UNKNOWN_NO_BLOCK] = DATACENTRIC_Unknown_NoBlock,
        [PLACEHOLDER_REASON + UNKNOWN_FREED] = DATACENTRIC_Unknown_Freed,
        [PLACEHOLDER_REASON + UNKNOWN_SMALL_BLOCK] = DATACENTRIC_Unknown_SmallBlock,
        [PLACEHOLDER_REASON + UNKNOWN_OWN] = DATACENTRIC_Unknown_Profiler,
        [PLACEHOLDER_REASON + UNKNOWN_KERNEL] = DATACENTRIC_Unknown_Kernel,
        [PLACEHOLDER_REASON + UNKNOWN_NULL] = DATACENTRIC_Unknown_Null,
        [PLACEHOLDER_REASON + UNKNOWN_VDSO] = DATACENTRIC_Unknown_Vdso,
        [PLACEHOLDER_REASON + UNKNOWN_UNLOGGED] = DATACENTRIC_Unknown_HeapWithoutAllocationLog,
        [PLACEHOLDER_NO_COMPUTE] = DATACENTRIC_No_Compute,
        [PLACEHOLDER_NO_LOST] = DATACENTRIC_No_AddressLost,
        [PLACEHOLDER_NO_SYSCALL] = DATACENTRIC_No_SystemCall,
        [PLACEHOLDER_NO_WAITING] = DATACENTRIC_No_Waiting,
        [PLACEHOLDER_CREATED] = CREATED_THREAD,
    };
    for (int i = 0; i < PLACEHOLDER_MAX; i++)
        addresses[i] = (uint64_t)(uintptr_t)functions[i];
}
