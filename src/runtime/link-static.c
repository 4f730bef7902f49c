/* SPDX-License-Identifier: BSD-3-Clause */
/* What depends on how the runtime came into the program, for a static program that hpclink made: the linker's --wrap
 * names the real functions, and a section holds the profiler's code. Takes the place of link-preloaded.c. */
#include <string.h>

#include "runtime/loadmap.h"
#include "runtime/wrap.h"

#define FUNCTION_ROWS(ROW)                                                                                             \
    ROW(__longjmp_chk)                                                                                                 \
    ROW(__sigpause)                                                                                                    \
    ROW(__sysv_signal)                                                                                                 \
    ROW(__xpg_sigpause)                                                                                                \
    ROW(_longjmp)                                                                                                      \
    ROW(bsd_signal)                                                                                                    \
    ROW(epoll_pwait)                                                                                                   \
    ROW(longjmp)                                                                                                       \
    ROW(mlockall)                                                                                                      \
    ROW(munlockall)                                                                                                    \
    ROW(popen)                                                                                                         \
    ROW(posix_spawn)                                                                                                   \
    ROW(posix_spawnp)                                                                                                  \
    ROW(ppoll)                                                                                                         \
    ROW(prctl)                                                                                                         \
    ROW(pselect)                                                                                                       \
    ROW(pthread_create)                                                                                                \
    ROW(pthread_sigmask)                                                                                               \
    ROW(sigaction)                                                                                                     \
    ROW(sigaltstack)                                                                                                   \
    ROW(sigblock)                                                                                                      \
    ROW(siggetmask)                                                                                                    \
    ROW(sighold)                                                                                                       \
    ROW(sigignore)                                                                                                     \
    ROW(siginterrupt)                                                                                                  \
    ROW(siglongjmp)                                                                                                    \
    ROW(signal)                                                                                                        \
    ROW(sigpause)                                                                                                      \
    ROW(sigprocmask)                                                                                                   \
    ROW(sigrelse)                                                                                                      \
    ROW(sigset)                                                                                                        \
    ROW(sigsetmask)                                                                                                    \
    ROW(sigsuspend)                                                                                                    \
    ROW(sigtimedwait)                                                                                                  \
    ROW(sigwait)                                                                                                       \
    ROW(sigwaitinfo)                                                                                                   \
    ROW(ssignal)                                                                                                       \
    ROW(syscall)                                                                                                       \
    ROW(system)                                                                                                        \
    ROW(sysv_signal)                                                                                                   \
    ROW(thrd_create)                                                                                                   \
    ROW(wordexp)

#define DECLARE_FUNCTION(name) extern void __real_##name(void) __attribute__((weak));
FUNCTION_ROWS(DECLARE_FUNCTION)
#define FUNCTION_ROW(name) {#name, __real_##name},

/* Set by the linker around the section that the build makes of the runtime's code. */
extern const char __start_locus_text[] __attribute__((visibility("hidden")));
extern const char __stop_locus_text[] __attribute__((visibility("hidden")));

void *wrap_real(const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } rows[] = {FUNCTION_ROWS(FUNCTION_ROW)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return (void *)rows[i].function;
    return NULL;
}

void wrap_own_image(uintptr_t *low, uintptr_t *high)
{
    *low = *high = 0;
}

struct loadmap_own loadmap_own_code(void)
{
    return (struct loadmap_own){.address = (uintptr_t)loadmap_own_code,
                                .code_start = (uintptr_t)__start_locus_text,
                                .code_end = (uintptr_t)__stop_locus_text};
}
