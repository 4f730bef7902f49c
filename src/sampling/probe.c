/* SPDX-License-Identifier: BSD-3-Clause */
/* Trying an event on this machine, and saying exactly why it is refused. A seccomp filter may answer a system call by
 * killing, so the trial runs in a forked child; a fixture answers by its rules. Ordinary code of the launcher. */
#include "sampling/plan-parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sampling/machine.h"

#define NOT_TOLD (-99)

enum trial_call { TRIAL_OPEN = 0, TRIAL_RING };

/* What the child found; sent through a pipe. */
struct trial {
    int error; /* 0: it works */
    int call;  /* enum trial_call: the call that failed */
};

struct surroundings {
    int paranoid; /* perf_event_paranoid, or NOT_TOLD */
    int seccomp;  /* 0 none, 1 strict, 2 filter, -1 not known */
};

/* The number behind a key at the start of a line of /proc/self/status. */
static int read_status(const char *key, int fallback)
{
    char text[4096];
    const char *line = machine_read("/proc/self/status", text, sizeof text) ? text : NULL;
    for (; line; line = strchr(line, '\n'), line += line != NULL)
        if (!strncmp(line, key, strlen(key)))
            return (int)strtol(line + strlen(key), NULL, 10);
    return fallback;
}

static struct surroundings look_around(void)
{
    return (struct surroundings){
        .paranoid = (int)machine_read_number("/proc/sys/kernel/perf_event_paranoid", NOT_TOLD),
        .seccomp = read_status("Seccomp:", -1),
    };
}

static int open_event(const struct perf_event_attr *attr, int group)
{
    struct perf_event_attr copy = *attr;
    return (int)syscall(SYS_perf_event_open, &copy, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

/* The events that are opened one after the other; the first leads, the last is the one that is tried. */
struct trial_group {
    const struct perf_event_attr *attrs[SOURCE_EVENTS_MAX];
    unsigned n;
};

static struct trial try_here(const struct trial_group *group, bool with_ring)
{
    const struct perf_event_attr *attr = group->attrs[group->n - 1];
    int leader = -1, fd = -1;
    for (unsigned i = 0; i < group->n; i++) {
        fd = open_event(group->attrs[i], leader);
        if (fd < 0)
            return (struct trial){errno, TRIAL_OPEN};
        leader = leader < 0 ? fd : leader;
    }
    if (!with_ring)
        return (struct trial){0, TRIAL_OPEN};
    int protection = attr->write_backward ? PROT_READ : PROT_READ | PROT_WRITE;
    void *ring = mmap(NULL, 2 * (size_t)sysconf(_SC_PAGESIZE), protection, MAP_SHARED, fd, 0);
    return (struct trial){ring == MAP_FAILED ? errno : 0, TRIAL_RING};
}

static struct trial try_in_child(const struct trial_group *group, bool with_ring)
{
    struct trial trial = {ENOSYS, TRIAL_OPEN};
    int fds[2], status = 0;
    if (pipe(fds) != 0)
        return (struct trial){errno, TRIAL_OPEN};
    pid_t child = fork();
    if (child == 0) {
        struct trial result = try_here(group, with_ring);
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

/* How an administrator lets the call through. */
static const char *permission_fix(const struct surroundings *s, int error)
{
    if (s->seccomp == 2 && (error == EPERM || error == ENOSYS || error == -SIGSYS))
        return "allow perf_event_open in the seccomp filter of this container, for example docker run "
               "--cap-add=PERFMON or --security-opt seccomp=unconfined";
    if (s->paranoid > 2)
        return "as root: sysctl kernel.perf_event_paranoid=2";
    if (error == ENOSYS)
        return "use a kernel built with CONFIG_PERF_EVENTS";
    if (s->paranoid > 1)
        return "as root: sysctl kernel.perf_event_paranoid=1, or grant CAP_PERFMON";
    return "ask for CAP_PERFMON";
}

static void paranoid_text(const struct surroundings *s, char *text, size_t n)
{
    if (s->paranoid == NOT_TOLD)
        (void)snprintf(text, n, "perf_event_paranoid not told");
    else
        (void)snprintf(text, n, "perf_event_paranoid %d", s->paranoid);
}

static const char *open_fix(const struct surroundings *s, int error)
{
    switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        return "none: this machine or kernel does not offer the event";
    case EINVAL:
        return "none: this kernel or PMU does not take the event with these attributes";
    case ENODATA:
        return "open it in a group behind the event that the PMU wants as its leader";
    case EBUSY:
        return "stop the other user of this PMU or hardware (perf, the NMI watchdog, another profiler)";
    case ENOSPC:
        return "use fewer breakpoints at a time: the CPU has no more registers for them";
    default:
        return permission_fix(s, error);
    }
}

static void explain_fix(const struct surroundings *s, const struct trial *trial, struct source_probe *out)
{
    struct rlimit limit = {0};
    if (trial->error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        (void)snprintf(out->fix, sizeof out->fix, "raise the limit of open files (ulimit -n, now %llu)",
                       (unsigned long long)limit.rlim_cur);
    else if (trial->call == TRIAL_RING && getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
        (void)snprintf(out->fix, sizeof out->fix,
                       "raise kernel.perf_event_mlock_kb or ulimit -l (now %llu KiB): the ring of one page needs it",
                       (unsigned long long)limit.rlim_cur / 1024);
    else
        (void)snprintf(out->fix, sizeof out->fix, "%s", open_fix(s, trial->error));
}

static void explain(const struct surroundings *s, const struct trial *trial, struct source_probe *out)
{
    char call[64] = "perf_event_open", seccomp[32] = "", cause[96], paranoid[40];
    paranoid_text(s, paranoid, sizeof paranoid);
    if (trial->call == TRIAL_RING)
        (void)snprintf(call, sizeof call, "mmap of the event's ring");
    if (s->seccomp > 0)
        (void)snprintf(seccomp, sizeof seccomp, ", seccomp mode %d", s->seccomp);
    if (trial->error == -SIGSYS)
        (void)snprintf(cause, sizeof cause, "the process is killed by a seccomp filter (SIGSYS)");
    else
        (void)snprintf(cause, sizeof cause, "%s (%s)", strerrorname_np(trial->error), strerror(trial->error));
    (void)snprintf(out->reason, sizeof out->reason, "%s: %s; %s%s", call, cause, paranoid, seccomp);
    explain_fix(s, trial, out);
}

static void probe_group(const struct trial_group *group, bool with_ring, struct source_probe *out)
{
    const struct perf_event_attr *attr = group->attrs[group->n - 1], *leader = group->n > 1 ? group->attrs[0] : NULL;
    struct surroundings s = look_around();
    char paranoid[40];
    struct trial trial = {0, TRIAL_OPEN};
    if (machine_is_fixture()) {
        trial.error = machine_try_open(attr, leader);
    } else {
        trial = try_in_child(group, with_ring);
        machine_record_open(attr, leader, trial.call == TRIAL_OPEN ? trial.error : 0);
    }
    paranoid_text(&s, paranoid, sizeof paranoid);
    *out = (struct source_probe){.works = trial.error == 0, .error = trial.error};
    if (out->works)
        (void)snprintf(out->reason, sizeof out->reason, "perf_event_open%s succeeded (%s)",
                       with_ring ? " with a ring" : "", paranoid);
    else
        explain(&s, &trial, out);
}

void source_probe_perf(const struct perf_event_attr *attr, bool with_ring, struct source_probe *out)
{
    const struct trial_group group = {{attr}, 1};
    probe_group(&group, with_ring, out);
}

void source_probe_group(const struct perf_event_attr *attr, const struct perf_event_attr *leader, bool with_ring,
                        struct source_probe *out)
{
    const struct trial_group pair = {{leader, attr}, 2}, alone = {{attr}, 1};
    probe_group(leader ? &pair : &alone, with_ring, out);
}

void source_probe_members(const struct source_event *members, unsigned n, bool with_ring, struct source_probe *out)
{
    struct trial_group group = {.n = n};
    for (unsigned i = 0; i < n && i < SOURCE_EVENTS_MAX; i++)
        group.attrs[i] = &members[i].attr;
    probe_group(&group, with_ring, out);
}

void source_probe_timer(struct source_probe *out)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    *out = (struct source_probe){.works = machine_is_fixture()};
    if (!out->works && timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0)
        out->works = timer_delete(timer) == 0;
    if (out->works) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "CPU-time timer, at most %u samples per CPU second (the kernel's tick)", source_tick_hz());
    } else {
        (void)snprintf(out->reason, sizeof out->reason, "timer_create(CLOCK_THREAD_CPUTIME_ID): %s (%s)",
                       strerrorname_np(errno), strerror(errno));
    }
}
