/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog: the governor of the preloaded library keeps samples from taking more than their share, and this is for
 * the case that it cannot. A process that computes, mostly in the handler of samples, and yet takes none, would go on
 * like that for ever; one rank of some hundred that hangs stops the whole job. Its events are stopped, by itself at the
 * next chance and from here where the kernel lets us, and log, index and report say so. Ordinary code. */
#include "companion/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MS 2000                 /* at least, between two looks at a process, */
#define COMPUTES_NS (CLOCK_S_NS / 2) /* and so much CPU time of it, which may take long on a busy machine */
#define HANDLER_PART 2               /* it was mostly in the handler if that has had one part in so many, */
#define SAMPLES_MOST 2               /* and took no samples if there were no more */
#define LOOKS 3                      /* in a row */
#define STOPPED "its sampling was stopped: it did nothing but handle its own samples"

/* Sums over the threads of a process. */
struct spent {
    uint64_t handler_ns; /* in the handler, by the clock */
    uint64_t n_taken;
};

static uint64_t handler_ns_of(const struct arena_thread *thread, uint64_t now_ns)
{
    uint64_t entered_ns = atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->entered_ns);
    uint64_t handler_ns = atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->handler_ns);
    return handler_ns + (entered_ns && entered_ns < now_ns ? now_ns - entered_ns : 0);
}

static struct spent add_up(const struct companion_process *process)
{
    uint32_t n_chunks = companion_arena_n_chunks(process);
    uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
    struct spent spent = {.n_taken = companion_arena_n_taken(process)};
    for (uint32_t i = 0; i < n_chunks; i++) {
        size_t n;
        const struct arena_thread *threads = companion_arena_threads(process, i, &n);
        for (size_t t = 0; t < n; t++)
            spent.handler_ns += handler_ns_of(&threads[t], now_ns);
    }
    return spent;
}

/* Stops an event of the process if it sends our signal.  fd: of the process */
static void stop_event(int pidfd, int fd)
{
    int own = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    if (own < 0)
        return;
    if (fcntl(own, F_GETSIG) == SIGURG)
        (void)ioctl(own, PERF_EVENT_IOC_DISABLE, 0);
    (void)close(own);
}

/* Needs the right to trace the process; where we have none, it stops its events itself as soon as it gets anywhere. */
static void stop_events(const struct companion_process *process)
{
    char path[64], target[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)process->peer_pid);
    DIR *directory = process->pidfd >= 0 ? opendir(path) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        ssize_t len = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[len < 0 ? 0 : len] = '\0';
        if (strcmp(target, "anon_inode:[perf_event]") == 0)
            stop_event(process->pidfd, (int)strtol(entry->d_name, NULL, 10));
    }
    if (directory)
        (void)closedir(directory);
}

static void halt(const struct companion *c, struct companion_process *process)
{
    process->watchdog.is_halted = true;
    atomic_store(&process->arena->is_halted, HALT_ASKED);
    stop_events(process);
    companion_log(c,
                  "Process %u did nothing but handle its own samples, and took none: its sampling was stopped. Please "
                  "report this.",
                  process->pid);
    companion_index(c, process, STOPPED);
    (void)snprintf(process->end_note, sizeof process->end_note, STOPPED);
}

void companion_watchdog_look(const struct companion *c, struct companion_process *process, int64_t now_ms)
{
    struct companion_watchdog *dog = &process->watchdog;
    uint64_t cpu_ns = companion_times_used(process) - dog->cpu_ns;
    if (dog->is_halted || now_ms - dog->looked_ms < LOOK_MS || (dog->looked_ms && cpu_ns < COMPUTES_NS))
        return;
    struct spent now = add_up(process);
    uint64_t handler_ns = now.handler_ns - dog->handler_ns;
    bool hangs = dog->looked_ms && handler_ns >= cpu_ns / HANDLER_PART && now.n_taken - dog->n_taken <= SAMPLES_MOST;
    dog->n_bad = hangs ? dog->n_bad + 1 : 0;
    dog->looked_ms = now_ms;
    dog->cpu_ns += cpu_ns;
    dog->handler_ns = now.handler_ns;
    dog->n_taken = now.n_taken;
    if (dog->n_bad >= LOOKS)
        halt(c, process);
}
