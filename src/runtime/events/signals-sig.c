/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own actions for the signals that the runtime handles, and its masks: see signals.h. */
#include "runtime/events/signals.h"

#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/events/events.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

/* --- actions --- */

#define SIGNALS_MAX 3 /* for overflows, to start, to stop */

struct chained {
    int number; /* 0: free */
    struct sigaction program;
};

static struct {
    struct chained signals[SIGNALS_MAX];
} chain;

static struct chained *find_sig(int number)
{
    for (int i = 0; i < SIGNALS_MAX; i++)
        if (chain.signals[i].number == number)
            return &chain.signals[i];
    return NULL;
}

bool chain_add_sig(int number, const struct sigaction *action)
{
    struct chained *chained = find_sig(number);
    if (!chained)
        chained = find_sig(0);
    if (!chained)
        return false;
    *chained = (struct chained){.number = number, .program = *action};
    return true;
}

bool chain_holds_sig(int number)
{
    return number > 0 && find_sig(number);
}

bool chain_get_sig(int number, struct sigaction *action)
{
    const struct chained *chained = number > 0 ? find_sig(number) : NULL;
    if (chained)
        *action = chained->program;
    return chained;
}

void chain_set_sig(int number, const struct sigaction *action, struct sigaction *old)
{
    struct chained *chained = find_sig(number);
    if (chained && old)
        *old = chained->program;
    if (chained && action)
        chained->program = *action;
}

void chain_call_sig(int number, siginfo_t *info, void *context)
{
    struct chained *chained = find_sig(number);
    if (!chained)
        return;
    struct sigaction action = chained->program;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
        return;
    if (action.sa_flags & SA_RESETHAND)
        chained->program.sa_handler = SIG_DFL;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

/* --- masks --- */

/* Masks, and signals with our number that do not come from our events: see signals.h. Also runs in the signal handler.
 */

#define SET_BYTES sizeof(uint64_t)
/* Whether the program wants the stand-in itself blocked matters only when it asks for its mask. A set with the stand-in
 * is nearly always the full set. So another signal that programs never name decides: while it is blocked, the stand-in
 * is shown as blocked, too. */
#define MASK_TELLTALE MASK_BIT(SIGPWR)

enum { EXCEPT = 1, EXCEPT_STAND_IN = 2 }; /* thread_state.mask_exceptions: the exceptions from that rule */

static struct {
    _Atomic bool is_translated;
    _Atomic int waiter; /* thread that waits for a signal with our number, 0 none */
} masks;

void mask_translate_sig(void)
{
    atomic_store(&masks.is_translated, true);
}

bool mask_is_translated_sig(void)
{
    return atomic_load_explicit(&masks.is_translated, memory_order_relaxed);
}

uint64_t mask_get_sig(void)
{
    uint64_t mask = 0;
    own_call_sig(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, SET_BYTES);
    return mask;
}

void mask_set_sig(uint64_t real)
{
    own_call_sig(SYS_rt_sigprocmask, SIG_SETMASK, &real, NULL, SET_BYTES);
}

uint64_t mask_of_set_sig(const sigset_t *set)
{
    uint64_t mask;
    memcpy(&mask, set, sizeof mask);
    return mask;
}

void mask_to_set_sig(uint64_t mask, sigset_t *set)
{
    memcpy(set, &mask, sizeof mask);
}

/* Without a state our signal is never really blocked, except when a signal is held back. */
uint64_t mask_shown_sig(uint64_t real, const struct thread_state *self)
{
    bool ours = real & MASK_STAND_IN || (!self && real & MASK_OURS), stand_in = real & MASK_TELLTALE;
    if (self && self->mask_exceptions & EXCEPT)
        stand_in = self->mask_exceptions & EXCEPT_STAND_IN;
    return (real & ~(MASK_OURS | MASK_STAND_IN)) | (ours ? MASK_OURS : 0) | (stand_in ? MASK_STAND_IN : 0);
}

uint64_t mask_real_sig(uint64_t wanted, struct thread_state *self)
{
    uint64_t real = (wanted & ~(MASK_OURS | MASK_STAND_IN)) | (wanted & MASK_OURS ? MASK_STAND_IN : 0);
    if (!self)
        return real;
    self->mask_exceptions = 0;
    if (mask_shown_sig(real, self) != wanted)
        self->mask_exceptions = (uint8_t)(EXCEPT | (wanted & MASK_STAND_IN ? EXCEPT_STAND_IN : 0));
    return self->lacks_stack_room ? real | MASK_OURS : real;
}

void mask_adopt_sig(struct thread_state *self, bool is_plain)
{
    uint64_t real = mask_get_sig();
    if (is_plain)
        mask_set_sig(mask_real_sig(real, self));
    else if (real & MASK_OURS && !self->lacks_stack_room)
        mask_set_sig(mask_real_sig(mask_shown_sig(real, self) | (self->begins_blocked ? 0 : MASK_OURS), self));
    self->begins_blocked = false;
}

bool mask_blocks_ours_sig(const struct thread_state *self, uint64_t real)
{
    return real & MASK_OURS && !(mask_shown_sig(real, self) & MASK_OURS);
}

/* Whether the program has the signal blocked that is being handled. Our handler leaves the stand-in's bit as it was;
 * our own is set because the handler runs. */
static bool is_blocked_sig(const struct thread_state *self)
{
    return mask_shown_sig(mask_get_sig() & ~MASK_OURS, self) & MASK_OURS;
}

/* A child without an arena of its own still has its parent's state and descriptors. */
static void enable_sig(struct thread_state *self, bool enable)
{
    if (process_is_ours_sig() && !self->ending && (!enable || sample_is_active_sig()))
        events_enable_sig(self, enable);
}

/* False when the thread no longer exists. */
static bool send_again_sig(int thread, siginfo_t *info)
{
    if (thread)
        return own_call_sig(SYS_rt_tgsigqueueinfo, (pid_t)own_pid_sig(), thread, EVENTS_SIGNAL, info) == 0;
    return own_call_sig(SYS_rt_sigqueueinfo, (pid_t)own_pid_sig(), EVENTS_SIGNAL, info) == 0;
}

#define PENDING_MAX 16

/* Only one signal of a number can be pending, for the thread and for the process, so ours would keep out the program's.
 * However fast they come, this has an end. */
void events_clear_pending_sig(void)
{
    const uint64_t set = MASK_OURS;
    const struct timespec at_once = {0};
    siginfo_t info;
    for (int i = 0; i < PENDING_MAX; i++) {
        if (own_call_sig(SYS_rt_sigtimedwait, &set, &info, &at_once, SET_BYTES) != EVENTS_SIGNAL)
            break;
        if (events_is_ours_sig(&info))
            continue;
        (void)send_again_sig((int)own_tid_sig(), &info);
        break;
    }
}

/* Keeps a signal that the program has blocked, as the kernel would: sends it again, with its number blocked from here
 * on; to the process's waiter (sigwait) if there is one. The thread's own events stand still meanwhile, whose signals
 * would have the place of the one that is pending. mask_release_sig ends this. */
static void hold_back_sig(struct thread_state *self, siginfo_t *info, ucontext_t *context)
{
    int thread = info->si_code == SI_TKILL ? (int)own_tid_sig() : 0, waiter = atomic_load(&masks.waiter);
    if (!thread && waiter && send_again_sig(waiter, info))
        return;
    if (self && !self->is_holding) {
        self->is_holding = true;
        enable_sig(self, false);
    }
    events_clear_pending_sig();
    mask_to_set_sig(mask_of_set_sig(&context->uc_sigmask) | MASK_OURS, &context->uc_sigmask);
    (void)send_again_sig(thread, info);
}

void mask_release_sig(struct thread_state *self)
{
    if (!self->is_holding)
        return;
    self->is_holding = false;
    enable_sig(self, true);
}

/* Calls the program's handler with the mask that it was installed with. */
static void call_program_sig(siginfo_t *info, ucontext_t *context)
{
    struct sigaction action;
    if (!chain_get_sig(EVENTS_SIGNAL, &action) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
        return;
    uint64_t wanted = mask_of_set_sig(&action.sa_mask);
    uint64_t real = mask_of_set_sig(&context->uc_sigmask) | mask_real_sig(wanted, NULL);
    if (!(action.sa_flags & SA_NODEFER))
        real |= MASK_OURS | MASK_STAND_IN;
    mask_set_sig(real);
    chain_call_sig(EVENTS_SIGNAL, info, context);
}

void mask_take_foreign_sig(struct thread_state *self, siginfo_t *info, ucontext_t *context)
{
    if (!sandbox_is_entered_sig() && is_blocked_sig(self)) {
        hold_back_sig(self, info, context);
        return;
    }
    if (self && self->is_holding) {
        /* Else one of ours would wait there, and keep out the program's next one. */
        if (!self->lacks_stack_room)
            mask_to_set_sig(mask_of_set_sig(&context->uc_sigmask) & ~MASK_OURS, &context->uc_sigmask);
        mask_release_sig(self);
    }
    call_program_sig(info, context);
}

uint64_t mask_begin_wait_sig(struct thread_state *self)
{
    if (sandbox_is_entered_sig())
        return mask_get_sig();
    uint64_t before = mask_get_sig();
    self->is_waiting = true;
    enable_sig(self, false);
    mask_set_sig(before | MASK_OURS);
    events_clear_pending_sig();
    atomic_store(&masks.waiter, (int)own_tid_sig());
    return before;
}

void mask_end_wait_sig(struct thread_state *self, uint64_t before)
{
    if (sandbox_is_entered_sig())
        return;
    int thread = (int)own_tid_sig();
    atomic_compare_exchange_strong(&masks.waiter, &thread, 0);
    self->is_waiting = self->is_holding = false;
    enable_sig(self, true);
    mask_set_sig(self->lacks_stack_room ? before : before & ~MASK_OURS);
}

void mask_leave_wait_sig(struct thread_state *self)
{
    if (self->is_waiting)
        mask_end_wait_sig(self, mask_get_sig());
}
