/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes made past fork: _Fork and clone run no handlers, so such a child has no arena, and may be no place to ask
 * for one, as _Fork is called in signal handlers of programs that crash. The parent names it; where the child becomes a
 * program that is measured, that one speaks for itself. Any code of the program's. Not in static programs, whose fork
 * calls _Fork by that name. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/wrap.h"

typedef pid_t fork_function(void);
typedef int clone_function(int (*)(void *), void *, int, void *, ...);

static struct {
    fork_function *fork;
    clone_function *clone;
} real;

/* Not at the first call, which may come in a signal handler. */
__attribute__((constructor)) static void find_real(void)
{
    real.fork = (fork_function *)wrap_real("_Fork");
    real.clone = (clone_function *)wrap_real("clone");
}

/* Under a name of ours, as older headers have none. */
pid_t locus_fork(void) __asm__("_Fork");
WRAP_EXPORT pid_t locus_fork(void)
{
    if (!real.fork) {
        errno = ENOSYS;
        return -1;
    }
    pid_t child = real.fork();
    if (child > 0)
        wrap_note_clone(child, 0);
    return child;
}

/* As libc does, all arguments are taken, whichever there are. The child begins in function. */
WRAP_EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    void *parent_tid = va_arg(list, void *), *tls = va_arg(list, void *), *child_tid = va_arg(list, void *);
    va_end(list);
    if (!real.clone) {
        errno = ENOSYS;
        return -1;
    }
    int child = real.clone(function, stack, flags, argument, parent_tid, tls, child_tid);
    if (child > 0)
        wrap_note_clone(child, (unsigned)flags);
    return child;
}

WRAP_EXPORT int locus_clone(int (*)(void *), void *, int, void *, ...) __asm__("__clone")
    __attribute__((alias("clone"), leaf, nothrow));
