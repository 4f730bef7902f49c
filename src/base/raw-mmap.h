/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap as a system call, without the C library's function, which the runtime interposes. Inline, any context. */
#ifndef LOCUS_BASE_RAW_MMAP_H
#define LOCUS_BASE_RAW_MMAP_H

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As mmap(2), but the result is -1 with errno set, or the address. The system call of IBM Z takes its arguments in
 * memory.  ctx: any */
static inline long raw_mmap(const void *address, size_t len_bytes, int protection, int flags, int fd, long offset)
{
#ifdef __s390x__
    const unsigned long arguments[6] = {(unsigned long)address, len_bytes,         (unsigned long)protection,
                                        (unsigned long)flags,   (unsigned long)fd, (unsigned long)offset};
    return syscall(SYS_mmap, arguments);
#else
    return syscall(SYS_mmap, address, len_bytes, protection, flags, fd, offset);
#endif
}

#endif
