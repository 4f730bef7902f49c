/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of the libraries: see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    int saved_errno = errno;
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        (void)vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    errno = saved_errno;
    return code;
}

int error_memory(struct error *err)
{
    return error_set(err, ERR_MEMORY, "out of memory");
}
