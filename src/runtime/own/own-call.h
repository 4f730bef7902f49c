/* SPDX-License-Identifier: BSD-3-Clause */
/* How the runtime enters the kernel, and whose process it is in when it does. */
#ifndef LOCUS_RUNTIME_OWN_OWN_CALL_H
#define LOCUS_RUNTIME_OWN_OWN_CALL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* --- the door --- */

/* The one door by which the runtime enters the kernel. A seccomp filter may answer a system call that it does not
 * expect by killing. So once the program has entered a sandbox, its filters are asked here before each call of ours,
 * and what they would not simply allow is not made. tests/meta/symbols.py sees that no code of ours takes another way.
 * What the program's own calls need goes on as they would without us. */

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

/* --- shields --- */

/* Holds all signals off while code of ours that seldom runs has a lock or has changed half of something: a handler of
 * the program may fork, exit, end the thread or never return, and would find our work undone for ever. Signals 32 and
 * 33, which libc keeps for itself, are among them, so no asynchronous cancellation comes in between either. For the
 * other kind, code of ours in the program calls no function of libc that is a cancellation point; it makes the system
 * calls itself (tests/meta/symbols.py looks). Shields nest. They keep errno as well: the program finds the value that
 * it had, whatever failed behind the shield. In a sandbox that is all they do. The hooks in malloc, which
 * run too often for two system calls, have no shield: see objmap.h for what their locks do instead. */

/* The signals that the thread blocked before, as the kernel has them, and its errno. */
struct shield {
    uint64_t blocked;
    int saved_errno;
    bool is_up;
};

/* From here on no signal interrupts the calling thread, but for what its own instructions raise.  ctx: any */
void shield_raise_sig(struct shield *shield);

/* The mask and errno are again what they were; signals that came meanwhile are handled before this returns.  ctx: any
 */
void shield_lower_sig(const struct shield *shield);

/* --- sandboxes --- */

/* Whether the program has entered a sandbox, and what its filters allow. A seccomp filter may answer a system call that
 * it does not expect by killing, so from then on the runtime makes none that the filters would not allow,
 * and does without the usual ones: no events for new threads, no farewell to the companion, which sees the end by
 * itself. */

/* True once the program has installed a filter (or was about to).  ctx: any */
bool sandbox_is_entered_sig(void);

/* The program is about to install a filter, which is copied; NULL: nobody knows which, and nothing is allowed.
 * ctx: any */
void sandbox_enter_sig(const struct sock_fprog *filter);

/* From now on the processor's clock must not be read, as that ends the program: times stay as they are. Seccomp's
 * strict mode takes it away, and PR_SET_TSC.  ctx: any */
void sandbox_stop_clocks_sig(void);

/* Whether the kernel would look at the program's filter at all.  ctx: any */
bool sandbox_is_filter_sig(const struct sock_fprog *filter);

/* Whether this filter allows a system call, whose arguments are all 0.  ctx: any */
bool sandbox_would_allow_sig(const struct sock_fprog *filter, long number);

/* Whether this filter would end a program for a system call that the start of the runtime makes.  ctx: any */
bool sandbox_would_end_start_sig(const struct sock_fprog *filter);

/* The program has installed such a filter. It outlives exec: what the program becomes must not be measured. Kept also
 * where no arena is ours, as in a child of a raw clone.  ctx: any */
void sandbox_set_deadly_sig(void);
bool sandbox_is_deadly_sig(void);

/* Whether all filters allow a system call with these arguments; true outside of a sandbox.  ctx: any */
bool sandbox_allows_sig(long number, const long arguments[6]);

/* --- descriptors out of the program's way --- */

/* The runtime's own file descriptors: out of the way of the program's, within its limit, which is never changed; and
 * never taken for ours when the program has closed them and opened something else under their numbers. */

enum descriptor_use {
    DESCRIPTOR_EVENT = 0, /* one or more a thread: in the upper half of what the soft limit allows */
    DESCRIPTOR_WAY = 1    /* one or two a process: above the lowest quarter */
};

/* Moves fd to a number out of the program's way, close-on-exec; returns it. Where none is left for this use, or the
 * limit is so low that the program would miss any number, fd is closed and the result is -1; so for fd -1.  ctx: any */
int descriptors_move_up_sig(int fd, enum descriptor_use use);

/* Identity of a perf event behind its descriptor, 0 when fd is no perf event.  ctx: any */
uint64_t descriptors_event_id_sig(int fd);

#endif
