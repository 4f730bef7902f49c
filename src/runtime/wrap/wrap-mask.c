/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal masks, waiting for signals, and functions of libc that start processes, which inherit masks: see signals.h
 * (system: wrap-system.c). All functions that change a mask are here, because libc's do so without calling the public
 * sigprocmask. A mask that applies only while the thread sleeps (ppoll, sigsuspend) may really block our signal,
 * because no sample comes in that time, unless samples of sleeping threads are wanted (wall-clock time). If it lets the
 * signal in, it also has to let in the stand-in, or what comes would look blocked. */
#include <alloca.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wordexp.h>

#include "runtime/events/signals.h"
#include "runtime/own/process.h"
#include "runtime/process/start.h"
#include "runtime/record/arena-writer.h"
#include "runtime/wrap/wrap.h"

#define FAULTS (MASK_BIT(SIGSEGV) | MASK_BIT(SIGBUS) | MASK_BIT(SIGFPE) | MASK_BIT(SIGILL))

typedef int mask_function(int, const sigset_t *, sigset_t *);
typedef int suspend_function(const sigset_t *);
typedef int ppoll_function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
typedef int pselect_function(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
typedef int epoll_pwait_function(int, struct epoll_event *, int, int, const sigset_t *);
typedef void jump_function(struct __jmp_buf_tag *, int);
typedef int wait_function(const sigset_t *, int *);
typedef int wait_info_function(const sigset_t *, siginfo_t *);
typedef int wait_timed_function(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const *, char *const *);
typedef FILE *popen_function(const char *, const char *);
typedef int wordexp_function(const char *, wordexp_t *, int);

static struct {
    mask_function *sigprocmask, *pthread_sigmask;
    suspend_function *sigsuspend;
    ppoll_function *ppoll;
    pselect_function *pselect;
    epoll_pwait_function *epoll_pwait;
    jump_function *longjmp, *longjmp_bsd, *siglongjmp, *longjmp_checked;
    wait_function *sigwait;
    wait_info_function *sigwaitinfo;
    wait_timed_function *sigtimedwait;
    spawn_function *posix_spawn, *posix_spawnp;
    popen_function *popen;
    wordexp_function *wordexp;
} real;

/* Not done at the first call, which may be in a signal handler. */
__attribute__((constructor)) static void find_real(void)
{
    real.sigprocmask = (mask_function *)wrap_real("sigprocmask");
    real.pthread_sigmask = (mask_function *)wrap_real("pthread_sigmask");
    real.sigsuspend = (suspend_function *)wrap_real("sigsuspend");
    real.ppoll = (ppoll_function *)wrap_real("ppoll");
    real.pselect = (pselect_function *)wrap_real("pselect");
    real.epoll_pwait = (epoll_pwait_function *)wrap_real("epoll_pwait");
    real.longjmp = (jump_function *)wrap_real("longjmp");
    real.longjmp_bsd = (jump_function *)wrap_real("_longjmp");
    real.siglongjmp = (jump_function *)wrap_real("siglongjmp");
    real.longjmp_checked = (jump_function *)wrap_real("__longjmp_chk");
    real.sigwait = (wait_function *)wrap_real("sigwait");
    real.sigwaitinfo = (wait_info_function *)wrap_real("sigwaitinfo");
    real.sigtimedwait = (wait_timed_function *)wrap_real("sigtimedwait");
    real.posix_spawn = (spawn_function *)wrap_real("posix_spawn");
    real.posix_spawnp = (spawn_function *)wrap_real("posix_spawnp");
    real.popen = (popen_function *)wrap_real("popen");
    real.wordexp = (wordexp_function *)wrap_real("wordexp");
}

/* The program's mask after its call. */
static uint64_t apply(int how, uint64_t shown, uint64_t word)
{
    if (how == SIG_SETMASK)
        return word;
    return how == SIG_BLOCK ? shown | word : shown & ~word;
}

int wrap_mask_change(int how, const sigset_t *set, sigset_t *old)
{
    bool is_translated = mask_is_translated_sig();
    struct thread_state *self = is_translated ? thread_self_sig() : NULL;
    uint64_t real_mask = mask_get_sig(), shown = is_translated ? mask_shown_sig(real_mask, self) : real_mask;
    if (set && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
        return EINVAL;
    if (set) {
        uint64_t word = mask_of_set_sig(set) & ~MASK_LIBC;
        /* code that leaves a handler by a jump unblocks its signal, and with it ours */
        bool keeps =
            real_mask & MASK_OURS && how != SIG_SETMASK && !(how == SIG_UNBLOCK && word & (FAULTS | MASK_OURS));
        if (self && !keeps)
            mask_release_sig(self);
        uint64_t wanted = apply(how, shown, word);
        mask_set_sig(is_translated ? mask_real_sig(wanted, self) | (keeps ? MASK_OURS : 0) : wanted);
    }
    if (old)
        mask_to_set_sig(shown, old);
    return 0;
}

static int change_mask(int how, const sigset_t *set, sigset_t *old)
{
    int code = wrap_mask_change(how, set, old);
    if (code)
        errno = code;
    return code ? -1 : 0;
}

/* Whether we may change masks: in a sandbox that forbids it, the program gets its filter's answer. */
static bool is_ours_to_change(void)
{
    static const long question[6] = {SIG_BLOCK, 0, 0, sizeof(uint64_t)};
    return mask_is_translated_sig() && sandbox_allows_sig(SYS_rt_sigprocmask, question);
}

WRAP_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    if (!is_ours_to_change() && real.sigprocmask)
        return real.sigprocmask(how, set, old);
    return change_mask(how, set, old);
}

WRAP_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    if (!is_ours_to_change() && real.pthread_sigmask)
        return real.pthread_sigmask(how, set, old);
    return wrap_mask_change(how, set, old);
}

static int change_one(int how, int number)
{
    sigset_t set;
    sigemptyset(&set);
    return sigaddset(&set, number) == 0 ? change_mask(how, &set, NULL) : -1;
}

WRAP_EXPORT int sighold(int number)
{
    return change_one(SIG_BLOCK, number);
}

WRAP_EXPORT int sigrelse(int number)
{
    return change_one(SIG_UNBLOCK, number);
}

/* The masks of 4.2 BSD, which have the first 32 signals. */
static int change_word(int how, int word)
{
    sigset_t set, old;
    sigemptyset(&set);
    mask_to_set_sig((uint32_t)word, &set);
    return change_mask(how, &set, &old) == 0 ? (int)(uint32_t)mask_of_set_sig(&old) : -1;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
WRAP_EXPORT int sigblock(int word)
{
    return change_word(SIG_BLOCK, word);
}

WRAP_EXPORT int sigsetmask(int word)
{
    return change_word(SIG_SETMASK, word);
}

WRAP_EXPORT int siggetmask(void)
{
    return change_word(SIG_BLOCK, 0);
}
#pragma GCC diagnostic pop

/* The mask for a sleep: see the top of this file. */
static const sigset_t *for_sleep(const sigset_t *set, sigset_t *copy)
{
    const struct arena_header *header = mask_is_translated_sig() ? arena_header_sig() : NULL;
    if (!header || !set)
        return set;
    uint64_t word = mask_of_set_sig(set);
    bool is_translated = !(word & MASK_OURS);
    for (unsigned i = 0; i < header->n_events; i++)
        is_translated |= (header->events[i].flags & EVENT_WALLCLOCK) != 0;
    if (!is_translated)
        return set;
    *copy = *set;
    mask_to_set_sig(mask_real_sig(word, NULL), copy);
    return copy;
}

WRAP_EXPORT int sigsuspend(const sigset_t *set)
{
    sigset_t copy;
    return real.sigsuspend(for_sleep(set, &copy));
}

static int pause_without(int number)
{
    sigset_t set;
    sigemptyset(&set);
    mask_to_set_sig(mask_shown_sig(mask_get_sig(), thread_self_sig()), &set);
    return sigdelset(&set, number) == 0 ? sigsuspend(&set) : -1;
}

WRAP_EXPORT int __xpg_sigpause(int number);
WRAP_EXPORT int __xpg_sigpause(int number)
{
    return pause_without(number);
}

static int pause_with(int word)
{
    sigset_t set;
    sigemptyset(&set);
    mask_to_set_sig((uint32_t)word, &set);
    return sigsuspend(&set);
}

/* sigpause has two meanings: the header gives X/Open's another name. */
WRAP_EXPORT int __sigpause(int word_or_number, int is_number);
WRAP_EXPORT int __sigpause(int word_or_number, int is_number)
{
    return is_number ? pause_without(word_or_number) : pause_with(word_or_number);
}

int locus_sigpause(int word) __asm__("sigpause");
WRAP_EXPORT int locus_sigpause(int word)
{
    return pause_with(word);
}

WRAP_EXPORT int ppoll(struct pollfd *fds, nfds_t n_fds, const struct timespec *timeout, const sigset_t *set)
{
    sigset_t copy;
    return real.ppoll(fds, n_fds, timeout, for_sleep(set, &copy));
}

WRAP_EXPORT int pselect(int n, fd_set *read_fds, fd_set *write_fds, fd_set *except_fds, const struct timespec *timeout,
                        const sigset_t *set)
{
    sigset_t copy;
    return real.pselect(n, read_fds, write_fds, except_fds, timeout, for_sleep(set, &copy));
}

WRAP_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *set)
{
    sigset_t copy;
    return real.epoll_pwait(fd, events, n, timeout, for_sleep(set, &copy));
}

/* The calling thread's state if its wait for these signals has to be prepared, else NULL. */
static struct thread_state *waiter_for(const sigset_t *set)
{
    return mask_is_translated_sig() && set && mask_of_set_sig(set) & MASK_OURS ? thread_self_sig() : NULL;
}

static void end_wait(struct thread_state *self, uint64_t before)
{
    int saved_errno = errno;
    mask_end_wait_sig(self, before);
    errno = saved_errno;
}

/* The thread is cancelled while it waits, and already has the mask that it will end with. */
static void cancel_wait(void *self)
{
    mask_leave_wait_sig(self);
}

WRAP_EXPORT int sigwait(const sigset_t *set, int *number)
{
    struct thread_state *self = waiter_for(set);
    int result;
    if (!self)
        return real.sigwait(set, number);
    uint64_t before = mask_begin_wait_sig(self);
    pthread_cleanup_push(cancel_wait, self);
    result = real.sigwait(set, number);
    pthread_cleanup_pop(0);
    end_wait(self, before);
    return result;
}

WRAP_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    struct thread_state *self = waiter_for(set);
    int result;
    if (!self)
        return real.sigwaitinfo(set, info);
    uint64_t before = mask_begin_wait_sig(self);
    pthread_cleanup_push(cancel_wait, self);
    result = real.sigwaitinfo(set, info);
    pthread_cleanup_pop(0);
    end_wait(self, before);
    return result;
}

WRAP_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    struct thread_state *self = waiter_for(set);
    int result;
    if (!self)
        return real.sigtimedwait(set, info, timeout);
    uint64_t before = mask_begin_wait_sig(self);
    pthread_cleanup_push(cancel_wait, self);
    result = real.sigtimedwait(set, info, timeout);
    pthread_cleanup_pop(0);
    end_wait(self, before);
    return result;
}

/* A handler may leave the wait for ever by a jump. The functions are declared under their names in the library, because
 * with checks on the header maps all of them to the checked one. */
static void jump(jump_function *function, struct __jmp_buf_tag *place, int value) __attribute__((noreturn));

static void jump(jump_function *function, struct __jmp_buf_tag *place, int value)
{
    struct thread_state *self = mask_is_translated_sig() ? thread_self_sig() : NULL;
    if (self)
        mask_leave_wait_sig(self);
    for (;;)
        function(place, value);
}

void locus_longjmp(struct __jmp_buf_tag *place, int value) __asm__("longjmp") __attribute__((noreturn));
WRAP_EXPORT void locus_longjmp(struct __jmp_buf_tag *place, int value)
{
    jump(real.longjmp, place, value);
}

void locus_longjmp_bsd(struct __jmp_buf_tag *place, int value) __asm__("_longjmp") __attribute__((noreturn));
WRAP_EXPORT void locus_longjmp_bsd(struct __jmp_buf_tag *place, int value)
{
    jump(real.longjmp_bsd, place, value);
}

void locus_siglongjmp(struct __jmp_buf_tag *place, int value) __asm__("siglongjmp") __attribute__((noreturn));
WRAP_EXPORT void locus_siglongjmp(struct __jmp_buf_tag *place, int value)
{
    jump(real.siglongjmp, place, value);
}

void locus_longjmp_checked(struct __jmp_buf_tag *place, int value) __asm__("__longjmp_chk") __attribute__((noreturn));
WRAP_EXPORT void locus_longjmp_checked(struct __jmp_buf_tag *place, int value)
{
    jump(real.longjmp_checked, place, value);
}

void wrap_note_clone(int pid, uint64_t flags)
{
    int saved_errno = errno;
    if (!(flags & CLONE_VM) && process_is_ours_sig() && !process_is_vfork_child_sig() &&
        arena_note_child_sig(CHILD_CLONED, (uint32_t)pid, NULL))
        arena_ring_sig();
    errno = saved_errno;
}

/* Notes a child. Whether it is measured shows when it sends HELLO; if it does not, nobody else would know of it. libc
 * itself calls exec in the child, so this is done afterwards. */
static void note_spawned(pid_t pid, const char *path, pid_t *child)
{
    if (child)
        *child = pid;
    enum arena_child_state state = sandbox_is_deadly_sig() ? CHILD_SANDBOXED : CHILD_STARTED;
    if (process_is_ours_sig() && arena_note_child_sig(state, (uint32_t)pid, path))
        arena_ring_sig();
}

/* Both forms of posix_spawn; call is the real function, which is no cancellation point. */
static int spawn(spawn_function *call, pid_t *child, const char *path, const posix_spawn_file_actions_t *file_actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    struct wrap_signal_state before;
    wrap_signal_show(&before);
    if (sandbox_is_deadly_sig())
        environment = environ_without_us_sig(environment, alloca(environ_room_sig(environment)));
    pid_t pid;
    int result = call(&pid, path, file_actions, attributes, arguments, environment);
    if (result == EAGAIN && attach_make_room())
        result = call(&pid, path, file_actions, attributes, arguments, environment);
    wrap_signal_hide(&before);
    if (result == 0)
        note_spawned(pid, path, child);
    return result;
}

WRAP_EXPORT int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *file_actions,
                            const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    return spawn(real.posix_spawn, child, path, file_actions, attributes, arguments, environment);
}

WRAP_EXPORT int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *file_actions,
                             const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    return spawn(real.posix_spawnp, child, file, file_actions, attributes, arguments, environment);
}

/* The thread is cancelled in a function that starts a process. */
static void cancel_start(void *before)
{
    wrap_signal_hide(before);
}

WRAP_EXPORT FILE *popen(const char *command, const char *type)
{
    struct wrap_signal_state before;
    FILE *result;
    wrap_signal_show(&before);
    pthread_cleanup_push(cancel_start, &before);
    result = real.popen(command, type);
    pthread_cleanup_pop(0);
    int saved_errno = errno;
    wrap_signal_hide(&before);
    errno = saved_errno;
    return result;
}

WRAP_EXPORT int wordexp(const char *words, wordexp_t *result, int flags)
{
    struct wrap_signal_state before;
    int code;
    wrap_signal_show(&before);
    pthread_cleanup_push(cancel_start, &before);
    code = real.wordexp(words, result, flags);
    pthread_cleanup_pop(0);
    wrap_signal_hide(&before);
    return code;
}
