/* SPDX-License-Identifier: BSD-3-Clause */
/* The part that depends on how the runtime got into the program, for a static program that hpclink made: the linker's
 * --wrap names the real functions, and the profiler's code lies in a section of its own. Takes the place of
 * link-preloaded.c. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/environment.h"
#include "runtime/own/own-call.h"
#include "runtime/process/start.h"
#include "runtime/record/loadmap.h"
#include "runtime/wrap/wrap.h"

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
    ROW(prlimit)                                                                                                       \
    ROW(prlimit64)                                                                                                     \
    ROW(pselect)                                                                                                       \
    ROW(pthread_create)                                                                                                \
    ROW(pthread_sigmask)                                                                                               \
    ROW(setrlimit)                                                                                                     \
    ROW(setrlimit64)                                                                                                   \
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

void *own_libc_function(const char *name)
{
    return wrap_real(name);
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

/* libc registers the handler that runs the destructors before it calls our constructor. */
void process_at_exit_last(void (*function)(void))
{
    (void)function;
}

/* --- a static program that was started alone --- */

/* A static program that was started alone, without hpcrun, but with HPCRUN_EVENT_LIST or HPCRUN_OUT_PATH set: it
 * replaces itself by hpcrun with the same process id, which starts it again with a companion. So there is only one way
 * to measure and to write files, and nothing is lost when such a program is killed. Ordinary code, before all
 * constructors. */

#define PID_DIGITS 12
#define OWN_ARGUMENTS_MAX 12

static struct {
    volatile char text[sizeof STATIC_PROGRAM_MARK - 1 + STATIC_PROGRAM_PATH_BYTES];
} launcher = {STATIC_PROGRAM_MARK};

static bool is_set(const char *name)
{
    const char *value = process_environment(name);
    return value && value[0];
}

static void put_number(char *out, unsigned long n)
{
    char digits[PID_DIGITS];
    int n_digits = 0;
    do
        digits[n_digits++] = (char)('0' + n % 10);
    while ((n /= 10) && n_digits < PID_DIGITS - 1);
    while (n_digits)
        *out++ = digits[--n_digits];
    *out = '\0';
}

/* If nothing can be measured, the launcher starts the program unmeasured; the program must not start the launcher again
 * then. The launcher was this process before its exec or, where it stays, is its parent. */
static bool was_launched(void)
{
    char own[PID_DIGITS], parent[PID_DIGITS];
    const char *by = process_environment(STATIC_PROGRAM_ENV);
    put_number(own, (unsigned long)(pid_t)own_pid_sig());
    put_number(parent, (unsigned long)getppid());
    return by && (!strcmp(by, own) || !strcmp(by, parent));
}

/* The name that the program was called by if that leads to its file, so that it sees the same name again; else the file
 * itself. */
static char *own_name(char *called)
{
    static char path[STATIC_PROGRAM_PATH_BYTES];
    struct stat by_name, itself;
    if (called && strchr(called, '/') && stat(called, &by_name) == 0 && stat("/proc/self/exe", &itself) == 0 &&
        by_name.st_ino == itself.st_ino && by_name.st_dev == itself.st_dev)
        return called;
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    path[len < 0 ? 0 : len] = '\0';
    return path;
}

/* hpcrun itself reads events, directory and period from the environment; for the rest it has options. */
static size_t put_options(char **command)
{
    static char name[] = "hpcrun", trace[] = "-t", delay[] = "-ds", fraction[] = "-f", end[] = "--";
    size_t n = 0;
    command[n++] = name;
    if (is_set("HPCRUN_TRACE"))
        command[n++] = trace;
    if (is_set("HPCRUN_DELAY_SAMPLING"))
        command[n++] = delay;
    if (is_set("HPCRUN_PROCESS_FRACTION")) {
        command[n++] = fraction;
        command[n++] = (char *)(uintptr_t)process_environment("HPCRUN_PROCESS_FRACTION");
    }
    command[n++] = end;
    return n;
}

static void say(const char *text)
{
    (void)own_call_sig(SYS_write, STDERR_FILENO, text, strlen(text));
}

static void execute_launcher(const char *path, char **command)
{
    char pid[PID_DIGITS];
    put_number(pid, (unsigned long)(pid_t)own_pid_sig());
    if (setenv(STATIC_PROGRAM_ENV, pid, 1) == 0) {
        (void)execv(path, command);
        (void)execvp("hpcrun", command);
    }
    say("hpcrun: HPCRUN_EVENT_LIST or HPCRUN_OUT_PATH asks for a measurement, but hpcrun is neither at ");
    say(path);
    say(" nor in PATH: ");
    say("the program runs without being measured.\n");
}

void process_find_launcher(int argc, char **arguments)
{
    if (is_set(COMPANION_ENV) || !(is_set("HPCRUN_EVENT_LIST") || is_set("HPCRUN_OUT_PATH")) || was_launched() ||
        getauxval(AT_SECURE))
        return;
    char **command = calloc((size_t)argc + OWN_ARGUMENTS_MAX, sizeof *command);
    if (!command)
        return;
    size_t n = put_options(command);
    command[n++] = own_name(argc > 0 ? arguments[0] : NULL);
    for (int i = 1; i < argc; i++)
        command[n++] = arguments[i];
    execute_launcher((const char *)launcher.text + sizeof STATIC_PROGRAM_MARK - 1, command);
    free(command);
}
