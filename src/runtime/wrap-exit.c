/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of a process that run no destructors: _exit and its kin. The measurement is finished first. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/process.h"
#include "runtime/wrap.h"

static void leave(int status) __attribute__((noreturn));

static void leave(int status)
{
    process_end(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

WRAP_EXPORT void _exit(int status)
{
    leave(status);
}

WRAP_EXPORT void _Exit(int status)
{
    leave(status);
}
