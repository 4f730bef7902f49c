/* SPDX-License-Identifier: BSD-3-Clause */
/* The one door by which the runtime enters the kernel. A seccomp filter may answer a system call that it does not
 * expect by killing. So once the program has entered a sandbox, its filters are asked here before each call of ours,
 * and what they would not simply allow is not made. tests/meta/symbols.py sees that no code of ours takes another way.
 * What the program's own calls need goes on as they would without us. */
#ifndef LOCUS_RUNTIME_OWN_CALL_H
#define LOCUS_RUNTIME_OWN_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* As syscall(2); -1 with errno ENOSYS where the sandbox would not allow it.  ctx: any */
long own_call_sig(long number, ...);

/* As raw_mmap of base, and refused in the same way.  ctx: any */
long own_mmap_sig(const void *address, size_t len_bytes, int protection, int flags, int fd, long offset);

/* The time of a clock of ours in ns; those of CPU time, which the kernel keeps to itself, are 0 where it must not be
 * asked. errno is kept, here and below.  ctx: any */
uint64_t own_clock_ns_sig(clockid_t clock);

/* Process and thread number. Where the kernel must not be asked, the first is that of the process that owns the arena,
 * and the second 0.  ctx: any */
uint32_t own_pid_sig(void);
uint32_t own_tid_sig(void);

#endif
