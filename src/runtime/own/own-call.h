/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls of the runtime: how it makes them, what a seccomp sandbox allows, functions of libc, shields against
 * signals, and its file descriptors.
 *
 * The room: the base of the runtime: nothing here calls another room. own-call-sig.c makes all system calls, zone-sig.c
 * has our memory, own-libc.c the functions of libc, arch-CPU-sig.c the processor. */
#ifndef LOCUS_RUNTIME_OWN_OWN_CALL_H
#define LOCUS_RUNTIME_OWN_OWN_CALL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* --- system calls --- */

/* All system calls of the runtime go through these functions. A seccomp filter may kill the process for a system call
 * that it does not expect. So once the program has entered a sandbox, its filters are asked here before each call of
 * the runtime, and a call that they would not simply allow is not made. tests/meta/symbols.py checks that the runtime
 * makes no system call in another way. The program's own calls are made as they would be without us. */

/* As syscall(2); -1 with errno ENOSYS where the sandbox would not allow it.  ctx: any */
long own_call_sig(long number, ...);

/* As raw_mmap of base; refused in a sandbox like own_call_sig.  ctx: any */
long own_mmap_sig(const void *address, size_t len_bytes, int protection, int flags, int fd, long offset);

/* The time of a clock that the runtime uses, in ns. CPU time, which only the kernel knows, is 0 where the kernel must
 * not be asked. errno is kept, here and below.  ctx: any */
uint64_t own_clock_ns_sig(clockid_t clock);

/* Ids of the process and the thread. Where the kernel must not be asked, these are the pid of the process that owns the
 * arena, and 0.  ctx: any */
uint32_t own_pid_sig(void);
uint32_t own_tid_sig(void);

/* --- libc --- */

/* The functions of libc as the runtime calls them. Another preloaded library may interpose any of them, and our code
 * runs before that library's constructor: its function would work with what has not been set up. So the preloaded
 * library imports none of them. own-libc.c has hidden functions of the same names instead: those that touch memory only
 * are written out there, system calls are made here, and the rest calls libc's own definition, which is found in the
 * loader's list of objects without asking the loader. What the program calls is forwarded to the next library in the
 * loader's order, as ever (wrap_real). A static program has no other libraries: its linker chooses. */

/* Address of the C library's own definition of a function, whoever interposes it; NULL when it has none that can be
 * called as it is (it chooses some, such as memcpy, by the processor). In a static program: the real function, where
 * one is known (see wrap_real).  ctx: any, takes no lock; src: gABI, "Hash Table", and the loader of glibc for the
 * other kind of table, DT_GNU_HASH */
void *own_libc_function(const char *name);

/* --- shields --- */

/* A shield blocks all signals while the runtime holds a lock or is halfway through a change, in code that seldom runs.
 * Without it a handler of the program could fork, exit, end the thread or never return, and our work would stay half
 * done for ever. Signals 32 and 33, which libc keeps for itself, are blocked too, so asynchronous cancellation cannot
 * interrupt either. Deferred cancellation cannot happen, because the runtime calls no function of libc that is a
 * cancellation point; it makes the system calls itself (tests/meta/symbols.py checks this). Shields nest. They also
 * keep errno: the program finds the value that it had, whatever failed under the shield. In a sandbox that is all they
 * do. The hooks in malloc run too often for two system calls and have no shield: see objmap.h for what their locks do
 * instead. */

/* The signals that the thread blocked before, as the kernel has them, and its errno. */
struct shield {
    uint64_t blocked;
    int saved_errno;
    bool is_up;
};

/* From here on no signal interrupts the calling thread, except one that its own instructions raise.  ctx: any */
void shield_raise_sig(struct shield *shield);

/* Restores the mask and errno; signals that arrived in the meantime are handled before this returns.  ctx: any */
void shield_lower_sig(const struct shield *shield);

/* --- sandboxes --- */

/* Whether the program has entered a sandbox, and what its filters allow. From then on the runtime makes no system call
 * that the filters would not allow, and does without some of the usual ones: it opens no events for new threads, and it
 * sends no END to the companion, which notices the end by itself. */

/* True once the program has installed a filter (or was about to).  ctx: any */
bool sandbox_is_entered_sig(void);

/* The program is about to install a filter, which is copied. NULL: the filter is not known, and nothing is allowed.
 * ctx: any */
void sandbox_enter_sig(const struct sock_fprog *filter);

/* From now on the processor's clock must not be read, because that would end the program: times stay as they are.
 * Seccomp's strict mode and PR_SET_TSC forbid it.  ctx: any */
void sandbox_stop_clocks_sig(void);

/* Whether the kernel would accept this as a filter at all.  ctx: any */
bool sandbox_is_filter_sig(const struct sock_fprog *filter);

/* Whether this filter allows a system call whose arguments are all 0.  ctx: any */
bool sandbox_would_allow_sig(const struct sock_fprog *filter, long number);

/* Whether this filter would end a program for a system call that the start of the runtime makes.  ctx: any */
bool sandbox_would_end_start_sig(const struct sock_fprog *filter);

/* The program has installed such a filter. It outlives exec, so the next program must not be measured. Remembered even
 * where we own no arena, as in a child of a raw clone.  ctx: any */
void sandbox_set_deadly_sig(void);
bool sandbox_is_deadly_sig(void);

/* Whether all filters allow a system call with these arguments; true outside of a sandbox.  ctx: any */
bool sandbox_allows_sig(long number, const long arguments[6]);

/* --- the runtime's file descriptors --- */

/* The runtime's file descriptors have numbers that the program is unlikely to use, within its limit, which is never
 * changed. When the program has closed one and opened something else under its number, the runtime notices. */

enum descriptor_use {
    DESCRIPTOR_EVENT = 0, /* one or more per thread: in the upper half of what the soft limit allows */
    DESCRIPTOR_WAY = 1    /* one or two per process: above the lowest quarter */
};

/* Moves fd to a number that the program is unlikely to use, with close-on-exec, and returns the number. Where none is
 * left for this use, or the limit is so low that the program may need every number, fd is closed and the result is -1;
 * it is also -1 for fd -1.  ctx: any */
int descriptors_move_up_sig(int fd, enum descriptor_use use);

/* Identity of a perf event behind its descriptor, 0 when fd is not a perf event.  ctx: any */
uint64_t descriptors_event_id_sig(int fd);

/* Gets what the kernel calls an open file of the program, its path or a name like "pipe:[123]", cut to n - 1 bytes and
 * NUL-terminated; false when it is not known.  ctx: any */
bool descriptors_path_sig(int fd, char *path, size_t n);

#endif
