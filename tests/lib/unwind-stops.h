/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the reasons for which walks end. */
#ifndef LOCUS_TESTS_UNWIND_STOPS_H
#define LOCUS_TESTS_UNWIND_STOPS_H

#include "runtime/unwind/unwind.h"

static inline const char *unwind_stop_name(enum unwind_stop stop)
{
    static const char *const names[UNWIND_STOPS] = {
        [UNWIND_COMPLETE] = "complete",
        [UNWIND_NO_MODULE] = "in no module",
        [UNWIND_NO_TABLE] = "module without table",
        [UNWIND_GAP] = "no rule for the code",
        [UNWIND_BAD_ROW] = "rule not representable",
        [UNWIND_BAD_STACK] = "outside of the stack",
        [UNWIND_BAD_CALLER] = "caller is no call",
        [UNWIND_TOO_DEEP] = "too deep",
        [UNWIND_LOST_REGISTER] = "register lost",
    };
    return (unsigned)stop < UNWIND_STOPS && names[stop] ? names[stop] : "unknown";
}

#endif
