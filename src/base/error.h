/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of the libraries: a negative code for the program, one sentence for the person.
 * Ordinary code only; signal-context files return false/NULL and count instead. */
#ifndef LOCUS_BASE_ERROR_H
#define LOCUS_BASE_ERROR_H

enum error_code {
    ERR_NONE = 0,
    ERR_IO = -1,          /* the operating system refused */
    ERR_FORMAT = -2,      /* the input is not what it says it is */
    ERR_MEMORY = -3,      /* out of memory */
    ERR_RANGE = -4,       /* a value is outside what the format or the call allows */
    ERR_USAGE = -5,       /* what the user wrote cannot be understood */
    ERR_UNSUPPORTED = -6, /* understood, but not possible on this machine or for this file */
    ERR_NOT_FOUND = -7    /* what was asked for does not exist */
};

/* One failure. text holds a complete sentence without a final newline: file, offset and reason. */
struct error {
    int code; /* enum error_code */
    char text[1024];
};

/* Fills *err (which may be NULL) from a printf format and returns code, so that callers can write
 * `return error_set(err, ERR_FORMAT, ...)`. code: enum error_code.
 * ctx: ordinary code (allocates nothing, but uses stdio formatting). errno is preserved. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* error_set with ERR_MEMORY and "out of memory".  ctx: as error_set */
int error_memory(struct error *err);

#endif
