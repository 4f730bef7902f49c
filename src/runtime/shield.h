/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds all signals off while code of ours that seldom runs has a lock or has changed half of something: a handler of
 * the program may fork, exit, end the thread or never return, and would find our work undone for ever. Signals 32 and
 * 33, which libc keeps for itself, are among them, so no asynchronous cancellation comes in between either. For the
 * other kind, code of ours in the program calls no function of libc that is a cancellation point; it makes the system
 * calls itself (tests/meta/symbols.py looks). Shields nest. They keep errno as well: the program finds the value that
 * it had, whatever failed behind the shield. In a sandbox (sandbox.h) that is all they do. The hooks in malloc, which
 * run too often for two system calls, have no shield: see objmap-internal.h for what their locks do instead. */
#ifndef LOCUS_RUNTIME_SHIELD_H
#define LOCUS_RUNTIME_SHIELD_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
