/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress and stopping: see progress.h. */
#include "progress.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "base/scratch.h"

#define INTERVAL_NS 100000000

/* How long a signal waits for the work to end by itself. */
#define GRACE_NS 400000000

static struct {
    volatile sig_atomic_t signal;
    sem_t arrived;
    bool with_times, is_shown;
    const char *phase;
    long long phase_begin_ns, shown_ns;
} progress;

static long long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void take_signal(int number)
{
    int saved = errno;
    progress.signal = number;
    (void)sem_post(&progress.arrived);
    errno = saved;
}

static _Noreturn void die(int number)
{
    sigset_t one;
    (void)signal(number, SIG_DFL);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, number);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    (void)kill(getpid(), number);
    _exit(128 + number);
}

/* The work looks for signals between its steps. When one of them takes long, for example because a file server does not
 * answer, or when another signal comes, this thread ends the process, and leaves nothing half-made. */
static void *end_at_once(void *unused)
{
    struct timespec end;
    while (sem_wait(&progress.arrived) != 0)
        ;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += GRACE_NS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (sem_timedwait(&progress.arrived, &end) != 0 && errno == EINTR)
        ;
    scratch_remove_noted();
    die(progress.signal);
    return unused;
}

void progress_begin(bool with_times)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action, old;
    pthread_t watcher;
    memset(&action, 0, sizeof action);
    action.sa_handler = take_signal;
    action.sa_flags = SA_RESTART;
    bool is_watched = sem_init(&progress.arrived, 0, 0) == 0 && pthread_create(&watcher, NULL, end_at_once, NULL) == 0;
    if (is_watched)
        (void)pthread_detach(watcher);
    else
        action.sa_flags |= (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    progress.with_times = with_times;
    progress.phase = "";
    progress.phase_begin_ns = now_ns();
}

static void end_phase(const char *next)
{
    long long now = now_ns();
    progress_end();
    if (progress.with_times)
        (void)printf("%8.3f s %s\n", (double)(now - progress.phase_begin_ns) * 1e-9,
                     *progress.phase ? progress.phase : "listing profiles");
    progress.phase = next;
    progress.phase_begin_ns = now;
}

void progress_show(void *context, const char *phase, size_t n_done, size_t n_tasks)
{
    (void)context;
    if (strcmp(phase, progress.phase) != 0)
        end_phase(phase);
    if (!isatty(STDERR_FILENO))
        return;
    long long now = now_ns();
    if (n_done < n_tasks && now - progress.shown_ns < INTERVAL_NS)
        return;
    progress.shown_ns = now;
    progress.is_shown = true;
    (void)fprintf(stderr, "\r\033[K%s: %zu of %zu", phase, n_done, n_tasks);
}

bool progress_stopped(void *context)
{
    (void)context;
    return progress.signal != 0;
}

void progress_end(void)
{
    if (progress.is_shown)
        (void)fprintf(stderr, "\r\033[K");
    progress.is_shown = false;
}

void progress_tell(const char *tool, const char *what, const char *sentence)
{
    struct buf text = {0};
    printable_put(&text, sentence);
    (void)fprintf(stderr, "%s%s%s.\n", tool, what, text.data ? text.data : "?");
    buf_fini(&text);
}

void progress_die_if_stopped(void)
{
    if (progress.signal)
        die(progress.signal);
}
