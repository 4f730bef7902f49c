/* SPDX-License-Identifier: BSD-3-Clause */
/* The exec functions, by which the program becomes another one. If the new program is measured, it reports that itself.
 * If not (a static program, one with more privileges), nobody would, and the process would look as if it had been
 * killed. So the wrappers note the exec in the arena. They touch nothing else: after vfork they run in a child that
 * shares the parent's memory, and they may be called in signal handlers. */
#include <alloca.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/own/process.h"
#include "runtime/process/start.h"
#include "runtime/record/arena-writer.h"
#include "runtime/wrap/wrap.h"

typedef int path_function(const char *, char *const *);
typedef int path_environment_function(const char *, char *const *, char *const *);
typedef int descriptor_function(int, char *const *, char *const *);
typedef int at_function(int, const char *, char *const *, char *const *, int);

static struct {
    path_function *execv, *execvp;
    path_environment_function *execve, *execvpe;
    descriptor_function *fexecve;
    at_function *execveat;
} real;

/* Not done at the first call, because that may be in a child of fork whose loader is locked for ever. */
__attribute__((constructor)) static void find_real(void)
{
    real.execv = (path_function *)wrap_real("execv");
    real.execvp = (path_function *)wrap_real("execvp");
    real.execve = (path_environment_function *)wrap_real("execve");
    real.execvpe = (path_environment_function *)wrap_real("execvpe");
    real.fexecve = (descriptor_function *)wrap_real("fexecve");
    real.execveat = (at_function *)wrap_real("execveat");
}

/* Notes the exec. In a child of vfork, which is not the arena's process, notes in the parent's arena that there is
 * another program. */
static struct arena_header *note_exec(const char *path, struct wrap_signal_state *signals)
{
    bool is_deadly = sandbox_is_deadly_sig();
    struct arena_header *header = process_is_ours_sig() ? arena_header_sig() : NULL;
    wrap_signal_show(signals);
    if (!header)
        return NULL;
    if (header->pid != own_pid_sig()) {
        arena_note_child_sig(is_deadly ? CHILD_SANDBOXED : CHILD_STARTED, own_pid_sig(), path);
        return header;
    }
    size_t len = path ? strnlen(path, sizeof header->replaced_by - 1) : 0;
    if (len)
        memcpy(header->replaced_by, path, len);
    header->replaced_by[len] = '\0';
    atomic_store(&header->is_replaced, is_deadly ? EXEC_UNMEASURED : EXEC_CALLED);
    return header;
}

/* Undoes that after a failed exec: the process goes on as it was. */
static int take_back(struct arena_header *header, const struct wrap_signal_state *signals, int result)
{
    int saved_errno = errno;
    wrap_signal_hide(signals);
    if (header && header->pid != own_pid_sig())
        arena_forget_child_sig(own_pid_sig());
    else if (header)
        atomic_store(&header->is_replaced, EXEC_NONE);
    errno = saved_errno;
    return result;
}

/* The path, or the program's name if there is no path; both may be missing, whatever the library's header says. */
static const char *name_of(const char *path, char *const *arguments)
{
    if (path && path[0])
        return path;
    return arguments ? arguments[0] : NULL;
}

static int no_such_function(void)
{
    errno = ENOSYS;
    return -1;
}

/* A call of exec: what its function takes, and which one it is. */
struct exec_call {
    enum { BY_PATH, BY_NAME, BY_PATH_WITH, BY_NAME_WITH, BY_FD, AT_FD } kind; /* _WITH an environment of its own */
    int fd, flags;
    const char *path;
    char *const *arguments, *const *environment;
};

static int call_real(const struct exec_call *call)
{
    switch (call->kind) {
    case BY_PATH:
        return real.execv(call->path, call->arguments);
    case BY_NAME:
        return real.execvp(call->path, call->arguments);
    case BY_PATH_WITH:
        return real.execve(call->path, call->arguments, call->environment);
    case BY_NAME_WITH:
        return real.execvpe(call->path, call->arguments, call->environment);
    case BY_FD:
        return real.fexecve(call->fd, call->arguments, call->environment);
    default:
        return real.execveat(call->fd, call->path, call->arguments, call->environment, call->flags);
    }
}

static int take_environment(struct exec_call *call, char **environment)
{
    call->environment = environment;
    if (call->kind == BY_PATH)
        call->kind = BY_PATH_WITH;
    else if (call->kind == BY_NAME)
        call->kind = BY_NAME_WITH;
    return call_real(call);
}

/* The filters of a sandbox outlive exec. If they would kill a program in our start, the new program gets an environment
 * without us; it is made on this stack, because a child of vfork must not allocate. */
static int become(struct exec_call call)
{
    struct wrap_signal_state signals;
    struct arena_header *header = note_exec(name_of(call.path, call.arguments), &signals);
    if (!sandbox_is_deadly_sig())
        return take_back(header, &signals, call_real(&call));
    char *const *environment = call.kind == BY_PATH || call.kind == BY_NAME ? environ : call.environment;
    void *room = alloca(environ_room_sig(environment));
    return take_back(header, &signals, take_environment(&call, environ_without_us_sig(environment, room)));
}

WRAP_EXPORT int execv(const char *path, char *const arguments[])
{
    if (!real.execv)
        return no_such_function();
    return become((struct exec_call){.kind = BY_PATH, .path = path, .arguments = arguments});
}

WRAP_EXPORT int execvp(const char *file, char *const arguments[])
{
    if (!real.execvp)
        return no_such_function();
    return become((struct exec_call){.kind = BY_NAME, .path = file, .arguments = arguments});
}

WRAP_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    if (!real.execve)
        return no_such_function();
    return become(
        (struct exec_call){.kind = BY_PATH_WITH, .path = path, .arguments = arguments, .environment = environment});
}

WRAP_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    if (!real.execvpe)
        return no_such_function();
    return become(
        (struct exec_call){.kind = BY_NAME_WITH, .path = file, .arguments = arguments, .environment = environment});
}

WRAP_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    if (!real.fexecve)
        return no_such_function();
    return become((struct exec_call){.kind = BY_FD, .fd = fd, .arguments = arguments, .environment = environment});
}

WRAP_EXPORT int execveat(int fd, const char *path, char *const arguments[], char *const environment[], int flags)
{
    if (!real.execveat)
        return no_such_function();
    return become((struct exec_call){
        .kind = AT_FD, .fd = fd, .flags = flags, .path = path, .arguments = arguments, .environment = environment});
}

/* Number of words after the first, including their NULL; leaves list itself as it is. */
static size_t count_words(const char *first, va_list list)
{
    va_list copy;
    size_t n = 0;
    va_copy(copy, list);
    for (const char *word = first; word; n++)
        word = va_arg(copy, const char *);
    va_end(copy);
    return n;
}

/* Copies the words; words has room for n + 1. */
static void take_words(va_list *list, const char *first, char **words, size_t n)
{
    words[0] = (char *)(uintptr_t)first;
    for (size_t i = 1; i <= n; i++)
        words[i] = va_arg(*list, char *);
}

WRAP_EXPORT int execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    size_t n = count_words(first, list);
    char **words = alloca((n + 1) * sizeof *words);
    take_words(&list, first, words, n);
    va_end(list);
    return execv(path, words);
}

WRAP_EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    size_t n = count_words(first, list);
    char **words = alloca((n + 1) * sizeof *words);
    take_words(&list, first, words, n);
    va_end(list);
    return execvp(file, words);
}

WRAP_EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    size_t n = count_words(first, list);
    char **words = alloca((n + 1) * sizeof *words);
    take_words(&list, first, words, n);
    char **environment = va_arg(list, char **);
    va_end(list);
    return execve(path, words, environment);
}

/* --- processes made without fork --- */

/* Processes made without fork: _Fork and clone run no handlers, so such a child has no arena. It may not be able to ask
 * for one either, because programs that crash call _Fork in signal handlers. The parent notes the child; if the child
 * becomes a program that is measured, that program reports itself. Called by any code of the program. Not in static
 * programs, whose fork calls _Fork by that name. */

typedef pid_t fork_function(void);
typedef int clone_function(int (*)(void *), void *, int, void *, ...);

static struct {
    fork_function *fork, *bare_fork;
    clone_function *clone;
} clones;

/* Not done at the first call, which may be in a signal handler. */
__attribute__((constructor)) static void find_clones(void)
{
    clones.fork = (fork_function *)wrap_real("fork");
    clones.bare_fork = (fork_function *)wrap_real("_Fork");
    clones.clone = (clone_function *)wrap_real("clone");
}

/* Declared under our own name, because older headers do not have it. */
pid_t locus_fork(void) __asm__("_Fork");
WRAP_EXPORT pid_t locus_fork(void)
{
    if (!clones.bare_fork) {
        errno = ENOSYS;
        return -1;
    }
    pid_t child = clones.bare_fork();
    if (child > 0)
        wrap_note_clone(child, 0);
    return child;
}

/* What a fork needs of us the handlers of pthread_atfork do; here is only another try if our helpers were in the way.
 */
WRAP_EXPORT pid_t fork(void)
{
    if (!clones.fork)
        clones.fork = (fork_function *)wrap_real("fork");
    if (!clones.fork) {
        errno = ENOSYS;
        return -1;
    }
    pid_t child = clones.fork();
    return child < 0 && errno == EAGAIN && attach_make_room() ? clones.fork() : child;
}

/* Like libc, takes all optional arguments, whichever are given. The child begins in function. */
WRAP_EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    void *parent_tid = va_arg(list, void *), *tls = va_arg(list, void *), *child_tid = va_arg(list, void *);
    va_end(list);
    if (!clones.clone) {
        errno = ENOSYS;
        return -1;
    }
    int child = clones.clone(function, stack, flags, argument, parent_tid, tls, child_tid);
    if (child > 0)
        wrap_note_clone(child, (unsigned)flags);
    return child;
}

WRAP_EXPORT int locus_clone(int (*)(void *), void *, int, void *, ...) __asm__("__clone")
    __attribute__((alias("clone"), leaf, nothrow));
