/* SPDX-License-Identifier: BSD-3-Clause */
/* The signals that have a handler of ours, what the program wants done with them, and its masks. */
#ifndef LOCUS_RUNTIME_EVENTS_SIGNALS_H
#define LOCUS_RUNTIME_EVENTS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/thread.h"

/* --- actions --- */

/* Takes a signal over from action, the program's. False when there are too many.  ctx: ordinary, at the start */
bool chain_add_sig(int number, const struct sigaction *action);

/* Whether a signal was taken over.  ctx: any */
bool chain_holds_sig(int number);

/* The program's own action for such a signal; false when it was not taken over.  ctx: any */
bool chain_get_sig(int number, struct sigaction *action);

/* The program's own action for such a signal, as set by its sigaction (NULL: not changed); old (may be NULL) gets the
 * one before.  ctx: any */
void chain_set_sig(int number, const struct sigaction *action, struct sigaction *old);

/* Does what the program wants done with a signal, but for default actions.  ctx: signal handler of that signal */
void chain_call_sig(int number, siginfo_t *info, void *context);

/* --- really setting an action (wrap/wrap-signal.c) --- */

/* The real sigaction.  ctx: any */
int wrap_real_sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* The program has set its first alternate stack, or one that is small: what was kept back of its actions is set now.
 * ctx: ordinary */
void wrap_signal_refit(void);

/* --- masks --- */

/* The signal mask of a thread as the program believes it to be, and as it really is. Our signal has to stay
 * deliverable, so a program that blocks it really blocks another one in its place (MASK_STAND_IN). The wish is then
 * kept where all masks are kept, in the kernel: it is saved and restored with sigsetjmp and siglongjmp, contexts,
 * handlers and their masks, threads and children, without our doing.
 *
 * A signal of that number which is not ours and which the program has blocked is held back: really blocked, and sent
 * again, so that it waits where the program looks for it (sigpending, sigwait, signalfd). Until it has been fetched the
 * thread takes no samples.
 *
 * Masks are the kernel's: one word, bit n - 1 for signal n. */

#define EVENTS_SIGNAL SIGURG /* ignored by default: a pending one cannot kill a program after exec */

#define MASK_BIT(number) (UINT64_C(1) << ((number)-1))
#define MASK_OURS MASK_BIT(EVENTS_SIGNAL)
#define MASK_STAND_IN MASK_BIT(SIGSTKFLT)       /* which Linux has never sent */
#define MASK_LIBC (MASK_BIT(32) | MASK_BIT(33)) /* libc's own, for cancellation and setuid */

/* From now on masks are translated; true once that was said.  ctx: ordinary, once; any */
void mask_translate_sig(void);
bool mask_is_translated_sig(void);

/* The mask that the kernel has for the calling thread, and a new one for it.  ctx: any */
uint64_t mask_get_sig(void);
void mask_set_sig(uint64_t real);

/* First word of a set of libc, and the opposite.  ctx: any */
uint64_t mask_of_set_sig(const sigset_t *set);
void mask_to_set_sig(uint64_t mask, sigset_t *set);

/* What the program believes to have blocked where the kernel has real. self: the calling thread's, may be NULL.
 * ctx: any */
uint64_t mask_shown_sig(uint64_t real, const struct thread_state *self);

/* What is to be blocked for a program that wants to block wanted; as the calling thread's mask, when self is not NULL,
 * whose next mask_shown_sig then gives just that.  ctx: any */
uint64_t mask_real_sig(uint64_t wanted, struct thread_state *self);

/* Translates the mask with which a thread began, inherited or given by an attribute. is_first: of a new program, whose
 * mask nobody has translated yet.  ctx: ordinary, calling thread */
void mask_adopt_sig(struct thread_state *self, bool is_first);

/* Whether our signal is really blocked in the calling thread, self, whose mask the kernel has as real, though the
 * program does not want that: a thread that it starts inherits the one without the other.  ctx: any */
bool mask_is_deaf_sig(const struct thread_state *self, uint64_t real);

/* What is done with a signal of our number that is not ours: it is held back, led to the thread that waits for it, or
 * the program's handler is called.  ctx: handler of that signal; self may be NULL */
void mask_take_foreign_sig(struct thread_state *self, siginfo_t *info, ucontext_t *context);

/* The program waits for signals of our number, or is done with it: in between the thread takes no samples and such a
 * signal is really blocked. Returns the mask for mask_end_wait_sig.  ctx: any, calling thread */
uint64_t mask_begin_wait_sig(struct thread_state *self);
void mask_end_wait_sig(struct thread_state *self, uint64_t before);

/* A handler jumps, or the thread is cancelled: a wait does not return any more, and the thread takes samples again.
 * (Where the jump ends within the handler, the wait goes on with our signal deliverable.)  ctx: any, calling thread */
void mask_leave_wait_sig(struct thread_state *self);

/* The thread takes samples again, if it had stopped for a signal that is held back.  ctx: any, calling thread */
void mask_release_sig(struct thread_state *self);

#endif
