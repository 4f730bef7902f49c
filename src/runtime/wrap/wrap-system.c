/* SPDX-License-Identifier: BSD-3-Clause */
/* system(). The shell inherits ignored signals. If the program ignores our signal, it must really be ignored while the
 * shell is made, and no thread takes samples in that time. libc's system() is over only when the command is, so for
 * such a program this file does what libc's does, and the signal is ignored only until the shell runs. Ordinary code of
 * the program's threads. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <paths.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/events/signals.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/thread.h"
#include "runtime/wrap/wrap.h"

#define STATUS_NO_SHELL (127 << 8) /* as if the shell had ended with _exit(127) */

typedef int system_function(const char *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const *, char *const *);

/* libc's waitpid, also in a program that defines one of its own; a cancellation point. */
extern pid_t __waitpid(pid_t pid, int *status, int options);

static struct {
    system_function *system;
    spawn_function *posix_spawn;
    bool has_dashes; /* libc's system() puts -- before the command */
} real;

/* Not done at the first call, because that may be in a child of fork whose loader is locked for ever. */
__attribute__((constructor)) static void find_real(void)
{
    real.system = (system_function *)wrap_real("system");
    real.posix_spawn = (spawn_function *)wrap_real("posix_spawn");
    real.has_dashes = strverscmp(gnu_get_libc_version(), "2.38") >= 0;
}

static void leave_libc(void *before)
{
    wrap_signal_hide(before);
    wrap_system_end();
}

static int run_by_libc(const char *command)
{
    struct wrap_signal_state before;
    int result;
    wrap_signal_show(&before);
    pthread_cleanup_push(leave_libc, &before);
    result = real.system(command);
    pthread_cleanup_pop(0);
    int saved_errno = errno;
    leave_libc(&before);
    errno = saved_errno;
    return result;
}

/* Makes the shell and returns 0 or the error's number. mask: the program's, for the shell. */
static int start_shell(pid_t *shell, const char *command, uint64_t mask, const sigset_t *defaults)
{
    char *with_dashes[] = {(char *)"sh", (char *)"-c", (char *)"--", (char *)(uintptr_t)command, NULL};
    char *without[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)command, NULL};
    struct wrap_signal_state before;
    posix_spawnattr_t attributes;
    sigset_t set;
    sigemptyset(&set);
    mask_to_set_sig(mask, &set);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &set);
    posix_spawnattr_setsigdefault(&attributes, defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    wrap_signal_show(&before);
    int result =
        real.posix_spawn(shell, _PATH_BSHELL, NULL, &attributes, real.has_dashes ? with_dashes : without, environ);
    wrap_signal_hide(&before);
    posix_spawnattr_destroy(&attributes);
    return result;
}

static int wait_for(pid_t shell)
{
    int status = -1;
    pid_t ended;
    do {
        ended = __waitpid(shell, &status, 0);
    } while (ended < 0 && errno == EINTR);
    return ended == shell ? status : -1;
}

/* The thread is cancelled while it waits. Like libc's, leaves SIGCHLD blocked. */
static void cancel_shell(void *context)
{
    const pid_t *shell = context;
    int state;
    own_call_sig(SYS_kill, *shell, SIGKILL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    (void)wait_for(*shell);
    pthread_setcancelstate(state, NULL);
    wrap_system_end();
}

static int run(const char *command, const sigset_t *defaults)
{
    uint64_t mask = mask_get_sig();
    pid_t shell;
    int status, saved_errno = errno;
    mask_set_sig(mask | MASK_BIT(SIGCHLD));
    int error = start_shell(&shell, command, mask_shown_sig(mask, thread_self_sig()), defaults);
    if (error) {
        status = STATUS_NO_SHELL;
    } else {
        errno = saved_errno;
        pthread_cleanup_push(cancel_shell, &shell);
        status = wait_for(shell);
        pthread_cleanup_pop(0);
        error = errno;
    }
    wrap_system_end();
    mask_set_sig(mask);
    errno = error;
    return status;
}

WRAP_EXPORT int system(const char *command)
{
    sigset_t defaults;
    if (!mask_is_translated_sig() || process_is_vfork_child_sig())
        return real.system(command);
    bool can_run = real.posix_spawn && !sandbox_is_entered_sig();
    if (!wrap_system_begin(can_run, &defaults))
        return run_by_libc(command);
    return command ? run(command, &defaults) : run("exit 0", &defaults) == 0;
}
