/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal actions: a handler that the program installs for one of our signals is kept aside and called for signals that
 * do not come from us. In its other actions, masks are translated (signals.h), and the request for an alternate stack
 * is kept back as long as the thread has only ours (threads.h). Every function of libc that sets an action is here,
 * because libc's do so without calling the public sigaction. Until the profiler runs, everything is passed through. */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "runtime/events/events.h"
#include "runtime/events/signals.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/process/threads.h"
#include "runtime/wrap/wrap.h"

#define SIGNALS 65
#define UNSHIELDED_TRIES 10000

typedef int action_function(int, const struct sigaction *, struct sigaction *);
typedef sighandler_t signal_function(int, sighandler_t);
typedef int ignore_function(int);
typedef int interrupt_function(int, int);

/* The parts of the program's action that the kernel does not get. */
struct kept_back {
    bool on_stack;       /* SA_ONSTACK */
    bool stand_in, ours; /* whether they are in the program's mask */
};

static struct {
    struct kept_back kept[SIGNALS];
    _Atomic int lock;              /* pid of the process that holds it: a child of fork ignores its parent's */
    _Atomic int n_shown;           /* calls of wrap_signal_show that have set our signal to ignored */
    bool is_interrupting[SIGNALS]; /* siginterrupt, for our signals */
    /* under the lock: calls of system(), whether they are run by our code, and what was set before the first of them */
    int n_systems;
    bool systems_are_ours;
    struct sigaction interrupt, quit;
} actions;

static struct {
    action_function *sigaction;      /* of the next library */
    action_function *libc_sigaction; /* of libc */
    signal_function *signal, *sysv_signal, *sigset;
    ignore_function *sigignore;
    interrupt_function *siginterrupt;
} real;

/* Not done at the first call, which may be in a signal handler. */
__attribute__((constructor)) static void find_real(void)
{
    real.sigaction = (action_function *)wrap_real("sigaction");
    real.libc_sigaction = (action_function *)own_libc_function("sigaction");
    real.signal = (signal_function *)wrap_real("signal");
    real.sysv_signal = (signal_function *)wrap_real("__sysv_signal");
    if (!real.sysv_signal)
        real.sysv_signal = (signal_function *)wrap_real("sysv_signal");
    real.sigset = (signal_function *)wrap_real("sigset");
    real.sigignore = (ignore_function *)wrap_real("sigignore");
    real.siginterrupt = (interrupt_function *)wrap_real("siginterrupt");
}

/* Sets what the program wants. */
static int next_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (!real.sigaction)
        find_real();
    return real.sigaction ? real.sigaction(number, action, old) : -1;
}

/* Our own actions are libc's business alone: a library after us may interpose the function, and not be ready for it. */
int wrap_real_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (!real.libc_sigaction)
        real.libc_sigaction = (action_function *)own_libc_function("sigaction");
    return real.libc_sigaction ? real.libc_sigaction(number, action, old) : next_sigaction(number, action, old);
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

struct actions_lock {
    struct shield shield;
    bool is_locked;
};

/* Takes the lock, shielded. Where shields do nothing, a handler may have interrupted the holder, so this does not wait
 * for ever. */
static struct actions_lock lock_actions(void)
{
    struct actions_lock held = {.is_locked = true};
    shield_raise_sig(&held.shield);
    int own = (int)own_pid_sig(), holder = 0, n_tries = 0;
    while (held.is_locked && !atomic_compare_exchange_weak(&actions.lock, &holder, own)) {
        if (holder == own && held.shield.is_up)
            own_call_sig(SYS_sched_yield);
        holder = holder == own ? 0 : holder;
        held.is_locked = held.shield.is_up || n_tries++ < UNSHIELDED_TRIES;
    }
    return held;
}

static void unlock_actions(const struct actions_lock *held)
{
    if (held->is_locked)
        atomic_store(&actions.lock, 0);
    shield_lower_sig(&held->shield);
}

/* The action for the kernel. In handlers on a small alternate stack our signal is blocked, because no sample fits
 * there. */
static struct sigaction real_action(const struct sigaction *wanted, const struct kept_back *kept)
{
    struct sigaction action = *wanted;
    mask_to_set_sig(mask_real_sig(mask_of_set_sig(&wanted->sa_mask), NULL), &action.sa_mask);
    if (kept->on_stack && !altstack_is_used())
        action.sa_flags &= ~SA_ONSTACK;
    if (kept->on_stack && altstack_is_small())
        sigaddset(&action.sa_mask, EVENTS_SIGNAL);
    return action;
}

/* The action that the program has set if the kernel has this one. */
static void show_action(struct sigaction *action, const struct kept_back *kept)
{
    uint64_t mask = mask_of_set_sig(&action->sa_mask) & ~(MASK_OURS | MASK_STAND_IN);
    mask |= (kept->ours ? MASK_OURS : 0) | (kept->stand_in ? MASK_STAND_IN : 0);
    mask_to_set_sig(mask, &action->sa_mask);
    if (kept->on_stack)
        action->sa_flags |= SA_ONSTACK;
}

static struct kept_back keep(const struct sigaction *action)
{
    uint64_t mask = mask_of_set_sig(&action->sa_mask);
    return (struct kept_back){.on_stack = is_function(action) && action->sa_flags & SA_ONSTACK,
                              .ours = mask & MASK_OURS,
                              .stand_in = mask & MASK_STAND_IN};
}

static bool is_kept(const struct kept_back *kept)
{
    return kept->on_stack || kept->ours || kept->stand_in;
}

/* Sets the action of a signal that has no handler of ours. Nothing is translated if neither the old nor the new action
 * has parts that are kept back. */
static int set_plain(int number, const struct sigaction *action, struct sigaction *old)
{
    struct kept_back *slot = &actions.kept[number], before = *slot, after = action ? keep(action) : before;
    if ((!is_kept(&before) && !is_kept(&after)) || process_is_vfork_child_sig())
        return next_sigaction(number, action, old);
    struct actions_lock held = lock_actions();
    struct sigaction for_kernel;
    before = *slot;
    if (action)
        for_kernel = real_action(action, &after);
    int result = next_sigaction(number, action ? &for_kernel : NULL, old), error = errno;
    if (result == 0 && action)
        *slot = after;
    unlock_actions(&held);
    if (result != 0) /* lowering the shield has restored the old errno */
        errno = error;
    if (result == 0 && old)
        show_action(old, &before);
    return result;
}

void wrap_signal_refit(void)
{
    struct actions_lock held = lock_actions();
    for (int number = 1; number < SIGNALS; number++) {
        struct sigaction action;
        if (!actions.kept[number].on_stack || wrap_real_sigaction(number, NULL, &action) != 0 || !is_function(&action))
            continue;
        show_action(&action, &actions.kept[number]);
        action = real_action(&action, &actions.kept[number]);
        (void)wrap_real_sigaction(number, &action, NULL);
    }
    unlock_actions(&held);
}

/* Sets the program's action for a signal that has a handler of ours. */
static int set_held(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before;
    chain_get_sig(number, &before);
    if (process_is_vfork_child_sig() && action) {
        struct sigaction was;
        int result = next_sigaction(number, action, &was);
        if (result == 0 && old)
            *old = before;
        return result;
    }
    if (number == EVENTS_SIGNAL)
        events_set_action(action, NULL);
    else
        control_set_action(number, action, NULL);
    if (old)
        *old = before;
    return 0;
}

static int set_action(int number, const struct sigaction *action, struct sigaction *old)
{
    if (number <= 0 || number >= SIGNALS || !mask_is_translated_sig())
        return next_sigaction(number, action, old);
    return chain_holds_sig(number) ? set_held(number, action, old) : set_plain(number, action, old);
}

WRAP_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return set_action(number, action, old);
}

/* Other names of libc's sigaction and of its functions below, declared because its headers do not all have them. */
WRAP_EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *old);
WRAP_EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return set_action(number, action, old);
}

/* True when libc's own function may set the action, because nothing of ours is affected. */
static bool is_free(int number)
{
    return number <= 0 || number >= SIGNALS || !mask_is_translated_sig() ||
           (!chain_holds_sig(number) && !is_kept(&actions.kept[number]));
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    if (!(flags & SA_NODEFER))
        sigaddset(&action.sa_mask, number);
    return set_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

static sighandler_t set_restarting(int number, sighandler_t handler)
{
    if (is_free(number))
        return real.signal ? real.signal(number, handler) : SIG_ERR;
    return set_handler(number, handler, actions.is_interrupting[number] ? 0 : SA_RESTART);
}

WRAP_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    return set_restarting(number, handler);
}

WRAP_EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
    return set_restarting(number, handler);
}

WRAP_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler);
WRAP_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return set_restarting(number, handler);
}

static sighandler_t set_once(int number, sighandler_t handler)
{
    if (is_free(number))
        return real.sysv_signal ? real.sysv_signal(number, handler) : SIG_ERR;
    return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

WRAP_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return set_once(number, handler);
}

WRAP_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return set_once(number, handler);
}

WRAP_EXPORT int sigignore(int number)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    if (is_free(number))
        return real.sigignore ? real.sigignore(number) : -1;
    return set_action(number, &action, NULL);
}

/* Also sets the mask: SIG_HOLD blocks the signal, a handler unblocks it. */
WRAP_EXPORT sighandler_t sigset(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler}, old;
    sigset_t set, before;
    if (is_free(number))
        return real.sigset ? real.sigset(number, handler) : SIG_ERR;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    sigemptyset(&set);
    sigemptyset(&before);
    sigaddset(&set, number);
    if (set_action(number, handler == SIG_HOLD ? NULL : &action, &old) != 0)
        return SIG_ERR;
    (void)wrap_mask_change(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
    return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

WRAP_EXPORT int siginterrupt(int number, int interrupts)
{
    struct sigaction action;
    if (is_free(number) || !chain_holds_sig(number))
        return real.siginterrupt ? real.siginterrupt(number, interrupts) : -1;
    actions.is_interrupting[number] = interrupts;
    (void)set_action(number, NULL, &action);
    action.sa_flags = interrupts ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
    return set_action(number, &action, NULL);
}

static void ignore_really(void)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    if (process_is_vfork_child_sig() || atomic_fetch_add(&actions.n_shown, 1) == 0)
        (void)wrap_real_sigaction(EVENTS_SIGNAL, &ignored, NULL);
}

void wrap_signal_show(struct wrap_signal_state *before)
{
    struct sigaction action;
    *before = (struct wrap_signal_state){.mask = 0};
    if (!mask_is_translated_sig())
        return;
    before->mask = mask_get_sig();
    before->has_mask = before->mask & (MASK_OURS | MASK_STAND_IN);
    if (before->has_mask)
        mask_set_sig(mask_shown_sig(before->mask, thread_self_sig()));
    before->is_ignored = chain_get_sig(EVENTS_SIGNAL, &action) && action.sa_handler == SIG_IGN;
    if (before->is_ignored)
        ignore_really();
}

void wrap_signal_hide(const struct wrap_signal_state *before)
{
    struct sigaction action;
    if (before->is_ignored && (process_is_vfork_child_sig() || atomic_fetch_sub(&actions.n_shown, 1) == 1) &&
        chain_get_sig(EVENTS_SIGNAL, &action))
        events_set_action(&action, NULL);
    if (before->has_mask) /* what else the mask has now remains, because a cancelled function does not set it back */
        mask_set_sig((mask_get_sig() & ~(MASK_OURS | MASK_STAND_IN)) | (before->mask & (MASK_OURS | MASK_STAND_IN)));
}

bool wrap_system_begin(bool can_run, sigset_t *defaults)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction action;
    struct actions_lock held = lock_actions();
    bool is_first = actions.n_systems++ == 0;
    if (is_first)
        actions.systems_are_ours = can_run && chain_get_sig(EVENTS_SIGNAL, &action) && action.sa_handler == SIG_IGN;
    bool is_ours = actions.systems_are_ours;
    if (is_first && is_ours) {
        (void)wrap_real_sigaction(SIGINT, &ignored, &actions.interrupt);
        (void)wrap_real_sigaction(SIGQUIT, &ignored, &actions.quit);
    }
    sigemptyset(defaults);
    if (actions.interrupt.sa_handler != SIG_IGN)
        sigaddset(defaults, SIGINT);
    if (actions.quit.sa_handler != SIG_IGN)
        sigaddset(defaults, SIGQUIT);
    unlock_actions(&held);
    return is_ours;
}

void wrap_system_end(void)
{
    struct actions_lock held = lock_actions();
    if (--actions.n_systems == 0 && actions.systems_are_ours) {
        (void)wrap_real_sigaction(SIGINT, &actions.interrupt, NULL);
        (void)wrap_real_sigaction(SIGQUIT, &actions.quit, NULL);
    }
    unlock_actions(&held);
}
