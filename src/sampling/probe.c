/* SPDX-License-Identifier: BSD-3-Clause */
/* Trying an event on this machine, and saying exactly why it is refused. A seccomp filter may answer a system call by
 * killing, so the trial runs in a forked child. Ordinary code of the launcher. */
#include "sampling/plan-parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum trial_call { TRIAL_OPEN = 0, TRIAL_RING };

/* What the child found; sent through a pipe. */
struct trial {
    int error; /* 0: it works */
    int call;  /* enum trial_call: the call that failed */
};

struct surroundings {
    int paranoid; /* perf_event_paranoid, -99 when there is none */
    int seccomp;  /* 0 none, 1 strict, 2 filter, -1 not known */
};

static int read_number(const char *path, const char *key, int fallback)
{
    char line[256];
    int value = fallback;
    size_t n_key = strlen(key);
    FILE *file = fopen(path, "re");
    if (!file)
        return fallback;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, n_key) && sscanf(line + n_key, "%d", &value) == 1)
            break;
    (void)fclose(file);
    return value;
}

static struct surroundings look_around(void)
{
    return (struct surroundings){
        .paranoid = read_number("/proc/sys/kernel/perf_event_paranoid", "", -99),
        .seccomp = read_number("/proc/self/status", "Seccomp:", -1),
    };
}

static struct trial try_here(const struct perf_event_attr *attr, bool with_ring)
{
    struct perf_event_attr copy = *attr;
    int fd = (int)syscall(SYS_perf_event_open, &copy, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return (struct trial){errno, TRIAL_OPEN};
    if (!with_ring)
        return (struct trial){0, TRIAL_OPEN};
    int protection = copy.write_backward ? PROT_READ : PROT_READ | PROT_WRITE;
    void *ring = mmap(NULL, 2 * (size_t)sysconf(_SC_PAGESIZE), protection, MAP_SHARED, fd, 0);
    return (struct trial){ring == MAP_FAILED ? errno : 0, TRIAL_RING};
}

static struct trial try_in_child(const struct perf_event_attr *attr, bool with_ring)
{
    struct trial trial = {ENOSYS, TRIAL_OPEN};
    int fds[2], status = 0;
    if (pipe(fds) != 0)
        return (struct trial){errno, TRIAL_OPEN};
    pid_t child = fork();
    if (child == 0) {
        struct trial result = try_here(attr, with_ring);
        (void)!write(fds[1], &result, sizeof result);
        (void)syscall(SYS_exit_group, 0);
    }
    (void)close(fds[1]);
    bool is_told = child > 0 && read(fds[0], &trial, sizeof trial) == (ssize_t)sizeof trial;
    (void)close(fds[0]);
    if (child > 0)
        (void)waitpid(child, &status, 0);
    if (!is_told && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        trial.error = -SIGSYS;
    return trial;
}

static void explain_permission(const struct surroundings *s, int error, struct source_probe *out)
{
    size_t n = sizeof out->fix;
    if (s->seccomp == 2 && (error == EPERM || error == ENOSYS || error == -SIGSYS))
        (void)snprintf(out->fix, n, "allow perf_event_open in the seccomp filter of this container, for example "
                                    "docker run --cap-add=PERFMON or --security-opt seccomp=unconfined");
    else if (s->paranoid > 2)
        (void)snprintf(out->fix, n, "as root: sysctl kernel.perf_event_paranoid=2");
    else if (error == ENOSYS)
        (void)snprintf(out->fix, n, "use a kernel built with CONFIG_PERF_EVENTS");
    else if (s->paranoid > 1)
        (void)snprintf(out->fix, n, "as root: sysctl kernel.perf_event_paranoid=1, or grant CAP_PERFMON");
    else
        (void)snprintf(out->fix, n, "ask for CAP_PERFMON");
}

static void explain(const struct surroundings *s, const struct trial *trial, struct source_probe *out)
{
    struct rlimit limit = {0};
    char call[64] = "perf_event_open", seccomp[32] = "", cause[96];
    if (trial->call == TRIAL_RING)
        (void)snprintf(call, sizeof call, "mmap of the event's ring");
    if (s->seccomp > 0)
        (void)snprintf(seccomp, sizeof seccomp, ", seccomp mode %d", s->seccomp);
    if (trial->error == -SIGSYS)
        (void)snprintf(cause, sizeof cause, "the process is killed by a seccomp filter (SIGSYS)");
    else
        (void)snprintf(cause, sizeof cause, "%s (%s)", strerrorname_np(trial->error), strerror(trial->error));
    (void)snprintf(out->reason, sizeof out->reason, "%s: %s; perf_event_paranoid %d%s", call, cause, s->paranoid,
                   seccomp);
    if (trial->error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        (void)snprintf(out->fix, sizeof out->fix, "raise the limit of open files (ulimit -n, now %llu)",
                       (unsigned long long)limit.rlim_cur);
    else if (trial->call == TRIAL_RING && getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
        (void)snprintf(out->fix, sizeof out->fix,
                       "raise kernel.perf_event_mlock_kb or ulimit -l (now %llu KiB): the ring of one page needs it",
                       (unsigned long long)limit.rlim_cur / 1024);
    else if (trial->error == ENOENT || trial->error == EOPNOTSUPP || trial->error == ENODEV)
        (void)snprintf(out->fix, sizeof out->fix, "none: this machine or kernel does not offer the event");
    else
        explain_permission(s, trial->error, out);
}

void source_probe_perf(const struct perf_event_attr *attr, bool with_ring, struct source_probe *out)
{
    struct surroundings s = look_around();
    struct trial trial = try_in_child(attr, with_ring);
    *out = (struct source_probe){.works = trial.error == 0};
    if (out->works)
        (void)snprintf(out->reason, sizeof out->reason, "perf_event_open%s succeeded (perf_event_paranoid %d)",
                       with_ring ? " with a ring" : "", s.paranoid);
    else
        explain(&s, &trial, out);
}

void source_probe_timer(struct source_probe *out)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    *out = (struct source_probe){.works = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0};
    if (out->works) {
        (void)timer_delete(timer);
        (void)snprintf(out->reason, sizeof out->reason,
                       "CPU-time timer, at most %u samples per CPU second (the kernel's tick)", source_tick_hz());
    } else {
        (void)snprintf(out->reason, sizeof out->reason, "timer_create(CLOCK_THREAD_CPUTIME_ID): %s (%s)",
                       strerrorname_np(errno), strerror(errno));
    }
}
