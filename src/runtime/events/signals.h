/* SPDX-License-Identifier: BSD-3-Clause */
/* The signals that the runtime handles, what the program wants done with them, and the program's signal masks. */
#ifndef LOCUS_RUNTIME_EVENTS_SIGNALS_H
#define LOCUS_RUNTIME_EVENTS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/thread.h"

/* --- actions --- */

/* Takes over a signal whose action of the program is action. False when there are too many.  ctx: ordinary, at the
 * start */
bool chain_add_sig(int number, const struct sigaction *action);

/* Whether a signal was taken over.  ctx: any */
bool chain_holds_sig(int number);

/* Gets the program's own action for such a signal; false when it was not taken over.  ctx: any */
bool chain_get_sig(int number, struct sigaction *action);

/* Sets the program's own action for such a signal (NULL: not changed); old (may be NULL) gets the one before.  ctx: any
 */
void chain_set_sig(int number, const struct sigaction *action, struct sigaction *old);

/* Does what the program wants done with a signal, except default actions.  ctx: signal handler of that signal */
void chain_call_sig(int number, siginfo_t *info, void *context);

/* --- really setting an action (wrap/wrap-signal.c) --- */

/* The real sigaction.  ctx: any */
int wrap_real_sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* The program has set its first alternate stack, or a small one: now sets the parts of its actions that were kept back.
 * ctx: ordinary */
void wrap_signal_refit(void);

/* --- masks --- */

/* The signal mask of a thread as the program believes it to be, and as it really is. Our signal has to stay
 * deliverable, so when a program blocks it, another signal (MASK_STAND_IN) is blocked in its place. The program's wish
 * is then stored where all masks are, in the kernel: sigsetjmp and siglongjmp, contexts, handlers and their masks,
 * threads and children save and restore it without our help.
 *
 * A signal with our number that does not come from our events, and that the program has blocked, is held back: it is
 * really blocked and sent again, so that it is pending where the program looks for it (sigpending, sigwait, signalfd).
 * Until the program has fetched it, the thread takes no samples.
 *
 * Masks have the kernel's form: one word, bit n - 1 for signal n. */

#define EVENTS_SIGNAL SIGURG /* ignored by default: a pending one cannot kill a program after exec */

#define MASK_BIT(number) (UINT64_C(1) << ((number)-1))
#define MASK_OURS MASK_BIT(EVENTS_SIGNAL)
#define MASK_STAND_IN MASK_BIT(SIGSTKFLT)       /* Linux has never sent it */
#define MASK_LIBC (MASK_BIT(32) | MASK_BIT(33)) /* libc's own, for cancellation and setuid */

/* Removes signals from our events that are pending for this thread, which has them blocked; the program's own stay.
 * ctx: any */
void events_clear_pending_sig(void);

/* _translate: from now on masks are translated. The other: whether they are.  ctx: ordinary, once; any */
void mask_translate_sig(void);
bool mask_is_translated_sig(void);

/* The calling thread's mask in the kernel: _get reads it, _set sets it.  ctx: any */
uint64_t mask_get_sig(void);
void mask_set_sig(uint64_t real);

/* First word of libc's sigset_t, and the opposite.  ctx: any */
uint64_t mask_of_set_sig(const sigset_t *set);
void mask_to_set_sig(uint64_t mask, sigset_t *set);

/* The mask that the program is shown when the kernel has the mask real. self: the calling thread's, may be NULL.
 * ctx: any */
uint64_t mask_shown_sig(uint64_t real, const struct thread_state *self);

/* The mask for the kernel when the program wants the mask wanted. If self is not NULL, it is for the calling thread,
 * and the next mask_shown_sig then gives exactly wanted.  ctx: any */
uint64_t mask_real_sig(uint64_t wanted, struct thread_state *self);

/* Translates the mask with which a thread began. is_plain: it is as the program wants it and has not been translated
 * yet, because the thread is the first of a new program or its attribute gave the mask.  ctx: ordinary, calling thread
 */
void mask_adopt_sig(struct thread_state *self, bool is_plain);

/* Whether our signal is really blocked in the calling thread, self, whose mask in the kernel is real, although the
 * program does not want that. A thread that it starts inherits the real mask but not the reason for it.  ctx: any */
bool mask_blocks_ours_sig(const struct thread_state *self, uint64_t real);

/* Handles a signal with our number that does not come from our events: holds it back, passes it to the thread that
 * waits for it, or calls the program's handler.  ctx: handler of that signal; self may be NULL */
void mask_take_foreign_sig(struct thread_state *self, siginfo_t *info, ucontext_t *context);

/* The program begins or ends a wait for signals with our number: in between the thread takes no samples, and the signal
 * is really blocked. Returns the mask for mask_end_wait_sig.  ctx: any, calling thread */
uint64_t mask_begin_wait_sig(struct thread_state *self);
void mask_end_wait_sig(struct thread_state *self, uint64_t before);

/* A wait will not return any more, because a handler jumps or the thread is cancelled: the thread takes samples again.
 * (If the jump ends within the handler, the wait goes on with our signal deliverable.)  ctx: any, calling thread */
void mask_leave_wait_sig(struct thread_state *self);

/* The thread takes samples again, if it had stopped for a signal that is held back.  ctx: any, calling thread */
void mask_release_sig(struct thread_state *self);

#endif
