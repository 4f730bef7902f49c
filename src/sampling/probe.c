/* SPDX-License-Identifier: BSD-3-Clause */
/* Tries an event on this machine and says exactly why it is refused. A seccomp filter may kill the process for a system
 * call, so the trial runs in a forked child; a fixture answers by its rules. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
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

#include "base/clock.h"
#include "base/environment.h"
#include "sampling/machine.h"

#define NOT_TOLD (-99)

enum trial_call { TRIAL_OPEN = 0, TRIAL_RING };

/* What the child found; sent through a pipe. */
struct trial {
    int error; /* 0: it works */
    int call;  /* enum trial_call: the call that failed */
};

struct surroundings {
    int paranoid; /* perf_event_paranoid, or NOT_TOLD if it cannot be read */
    int seccomp;  /* 0 none, 1 strict, 2 filter, -1 not known */
};

/* The number after a key at the start of a line of /proc/self/status. */
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

/* The events that are opened one after the other: the first leads, and the last is being tried. */
struct trial_group {
    const struct perf_event_attr *attrs[SOURCE_EVENTS_MAX];
    unsigned n;
    bool is_of_cpu; /* this one */
    bool is_of_all; /* processes; else of the calling one */
};

/* What a test takes away from this machine is refused as the kernel would. */
static int lacking_error(const struct perf_event_attr *attr)
{
    if (environment_lacks(trial_name(TRIAL_PERF)))
        return EACCES;
    return attr->type == PERF_TYPE_TRACEPOINT && environment_lacks(trial_name(TRIAL_TRACEPOINTS)) ? ENOENT : 0;
}

static int open_event(const struct trial_group *group, unsigned i, int leader)
{
    errno = lacking_error(group->attrs[i]);
    if (errno)
        return -1;
    struct perf_event_attr copy = *group->attrs[i];
    pid_t pid = group->is_of_all ? -1 : 0;
    int cpu = group->is_of_cpu ? sched_getcpu() : -1;
    return (int)syscall(SYS_perf_event_open, &copy, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Opens the events of the group, and the ring of the last one. fds [n]: what has been opened, -1 before the first that
 * is refused. */
static struct trial try_all(const struct trial_group *group, bool with_ring, int fds[SOURCE_EVENTS_MAX])
{
    const struct perf_event_attr *attr = group->attrs[group->n - 1];
    size_t n_bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
    int fd = -1;
    for (unsigned i = 0; i < group->n; i++) {
        fd = fds[i] = open_event(group, i, i ? fds[0] : -1);
        if (fd < 0)
            return (struct trial){errno, TRIAL_OPEN};
    }
    if (!with_ring)
        return (struct trial){0, TRIAL_OPEN};
    if (environment_lacks(trial_name(TRIAL_RINGS)))
        return (struct trial){EPERM, TRIAL_RING};
    int protection = attr->write_backward ? PROT_READ : PROT_READ | PROT_WRITE;
    void *ring = mmap(NULL, n_bytes, protection, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        return (struct trial){errno, TRIAL_RING};
    (void)munmap(ring, n_bytes);
    return (struct trial){0, TRIAL_RING};
}

static struct trial try_here(const struct trial_group *group, bool with_ring)
{
    int fds[SOURCE_EVENTS_MAX];
    for (unsigned i = 0; i < SOURCE_EVENTS_MAX; i++)
        fds[i] = -1;
    struct trial trial = try_all(group, with_ring, fds);
    for (unsigned i = 0; i < group->n; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    return trial;
}

/* In a process of its own, as a sandbox may kill who tries; one with our memory will not do: Linux before 5.16 ends all
 * who share the memory of what it kills so. At the user's limit of processes it is tried here. */
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
    if (child < 0)
        return try_here(group, with_ring);
    (void)waitpid(child, &status, 0);
    if (!is_told && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        trial.error = -SIGSYS;
    return trial;
}

/* How an administrator can permit the call. */
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
        (void)snprintf(text, n, "perf_event_paranoid unknown");
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
        return "open it in a group after the event that the PMU requires as its leader";
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

/* What opens does not always count: a breakpoint, and a ring, have to prove it once. */
static void confirm(enum trial_kind trial, struct source_probe *out)
{
    static struct source_probe results[TRIAL_COUNT];
    static bool is_known[TRIAL_COUNT];
    if (!is_known[trial])
        trial_run(trial, &results[trial]);
    is_known[trial] = true;
    if (results[trial].works)
        return;
    *out = results[trial];
    out->error = ENODEV;
    (void)snprintf(out->fix, sizeof out->fix, "none: this machine or kernel does not do what it offers");
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
        if (!group->is_of_cpu)
            machine_record_open(attr, leader, trial.call == TRIAL_OPEN ? trial.error : 0);
    }
    paranoid_text(&s, paranoid, sizeof paranoid);
    *out = (struct source_probe){.works = trial.error == 0, .error = trial.error};
    if (out->works)
        (void)snprintf(out->reason, sizeof out->reason, "perf_event_open%s succeeded (%s)",
                       with_ring ? " with a ring" : "", paranoid);
    else
        explain(&s, &trial, out);
    if (out->works && !machine_is_fixture() && attr->type == PERF_TYPE_BREAKPOINT)
        confirm(TRIAL_BREAKPOINTS, out);
    if (out->works && !machine_is_fixture() && with_ring)
        confirm(TRIAL_RINGS, out);
}

void source_probe_perf(const struct perf_event_attr *attr, bool with_ring, struct source_probe *out)
{
    const struct trial_group group = {.attrs = {attr}, .n = 1};
    probe_group(&group, with_ring, out);
}

void source_probe_group(const struct perf_event_attr *attr, const struct perf_event_attr *leader, bool with_ring,
                        struct source_probe *out)
{
    const struct trial_group pair = {.attrs = {leader, attr}, .n = 2}, alone = {.attrs = {attr}, .n = 1};
    probe_group(leader ? &pair : &alone, with_ring, out);
}

void source_probe_members(const struct source_event *members, unsigned n, bool with_ring, struct source_probe *out)
{
    struct trial_group group = {.n = n};
    for (unsigned i = 0; i < n && i < SOURCE_EVENTS_MAX; i++)
        group.attrs[i] = &members[i].attr;
    probe_group(&group, with_ring, out);
}

void source_probe_cpu(const struct perf_event_attr *attr, bool is_of_all, struct source_probe *out)
{
    const struct trial_group group = {.attrs = {attr}, .n = 1, .is_of_cpu = true, .is_of_all = is_of_all};
    probe_group(&group, true, out);
}

/* Tries a thread CPU-time timer; reason states the rate that the kernel's tick allows. */
static void source_probe_timer(struct source_probe *out)
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

/* --- clocks --- */

/* The CPU clock of EADDR and CPUTIME; see probe.h. exclude_kernel=1 is what makes it harmless: an overflow can
 * only fire in user mode, so no system call returns EINTR. Ordinary code of the launcher. */

void source_clock_attr(uint64_t period_ns, struct perf_event_attr *attr)
{
    source_attr_init(attr, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    attr->sample_period = period_ns;
}

static void try_perf(struct source_probe *out)
{
    struct perf_event_attr attr;
    source_clock_attr(UINT64_C(1000000), &attr);
    source_probe_perf(&attr, false, out);
}

void source_clock_probe(struct source_probe *out)
{
    struct source_probe timer;
    try_perf(out);
    if (out->works)
        return;
    source_probe_timer(&timer);
    struct source_probe perf = *out;
    out->works = timer.works;
    (void)snprintf(out->reason, sizeof out->reason, "%.240s; instead: %.240s", perf.reason, timer.reason);
}

static void use_timer(struct source_event *event, uint64_t period_ns, const struct source_probe *perf,
                      struct source_plan *plan)
{
    unsigned tick_hz = source_tick_hz();
    uint64_t tick_ns = CLOCK_S_NS / tick_hz;
    event->flags |= SOURCE_TIMER | SOURCE_WEIGHTED;
    event->timer_interval_ns = period_ns > tick_ns ? period_ns : tick_ns;
    event->scale = 1e-3;
    source_plan_warn(plan,
                     "%s: perf is refused here (%s): CPU-time timers, about %" PRIu64
                     " samples per CPU second instead of %" PRIu64 "%s%s.",
                     event->name, perf->reason, CLOCK_S_NS / event->timer_interval_ns, CLOCK_S_NS / period_ns,
                     perf->fix[0] ? "; better: " : "", perf->fix);
}

int source_clock_plan(const struct source_clock *clock, const char *event, const struct source_threshold *threshold,
                      struct source_plan *plan, struct error *err)
{
    struct source_probe perf, timer;
    uint64_t period_ns;
    int status = source_period_ns(event, threshold, clock->default_hz, &period_ns, err);
    if (status != 0)
        return status;
    try_perf(&perf);
    if (!perf.works) {
        source_probe_timer(&timer);
        if (!timer.works)
            return error_set(err, ERR_UNSUPPORTED, "%s cannot be sampled here: %s; %s.", event, perf.reason,
                             timer.reason);
    }
    struct source_event *row = source_plan_add(plan, clock->source, event, clock->metric, err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "%s", clock->description);
    row->flags = clock->flags;
    source_clock_attr(period_ns, &row->attr);
    row->scale = (double)period_ns / 1000;
    if (!perf.works)
        use_timer(row, period_ns, &perf, plan);
    return 0;
}

/* --- events with addresses --- */

/* Functions that the sources of hardware address sampling share; see probe.h. Ordinary code of the launcher. */

#define MAX_RATE_FILE "/proc/sys/kernel/perf_event_max_sample_rate"
#define MAX_RATE_DEFAULT_HZ 100000
#define LARGE_RING_BYTES 65536

void address_attr_init(struct perf_event_attr *attr, uint32_t type)
{
    source_attr_init(attr, type, 0);
    attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                        PERF_SAMPLE_PERIOD | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT;
    attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
}

void address_probe(struct perf_event_attr *attr, struct source_probe *out)
{
    source_probe_perf(attr, true, out);
    if (out->works || out->error != EINVAL || !(attr->sample_type & PERF_SAMPLE_WEIGHT_STRUCT))
        return;
    attr->sample_type ^= PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_WEIGHT;
    source_probe_perf(attr, true, out);
}

void address_set_large(struct source_event *row)
{
    row->flags |= SOURCE_BATCH;
    row->ring_bytes = LARGE_RING_BYTES;
    row->attr.write_backward = 0;
    row->attr.watermark = 1;
    row->attr.wakeup_watermark = LARGE_RING_BYTES / 2;
}

void address_say_rate(const struct address_rate *rate, const struct source_event *row, char *text, size_t n)
{
    if (row->attr.freq)
        (void)snprintf(text, n, "%" PRIu64 " samples a second", (uint64_t)row->attr.sample_freq);
    else
        (void)snprintf(text, n, "one sample every %" PRIu64 " %s", (uint64_t)row->attr.sample_period, rate->unit);
}

struct source_event *address_plan_add(struct source_plan *plan, const char *name, const char *metric,
                                      const struct perf_event_attr *attr, struct error *err)
{
    struct source_event *row = source_plan_add(plan, SOURCE_NUMBER_PMU_ADDR, name, metric, err);
    if (!row)
        return NULL;
    row->attr = *attr;
    row->flags = SOURCE_RING | SOURCE_ADDRESS | SOURCE_DATA_SRC | SOURCE_INTEGER;
    return row;
}

static int set_frequency(const struct address_rate *rate, const char *event, uint64_t hz, struct source_event *row,
                         struct error *err)
{
    long max_hz = machine_read_number(MAX_RATE_FILE, MAX_RATE_DEFAULT_HZ);
    if (rate->is_fixed)
        return error_set(err, ERR_RANGE,
                         "%s: this unit samples at a fixed period only, not at a frequency; write for example "
                         "%s@%" PRIu64 " for one sample every %" PRIu64 " %s.",
                         event, event, rate->period, rate->period, rate->unit);
    if (hz > (uint64_t)max_hz)
        return error_set(err, ERR_RANGE,
                         "%s: more than %ld samples a second are refused here (kernel.perf_event_max_sample_rate).",
                         event, max_hz);
    row->attr.freq = 1;
    row->attr.sample_freq = hz;
    row->flags |= SOURCE_WEIGHTED;
    row->scale = 1;
    return 0;
}

static int set_period(const struct address_rate *rate, const char *event, uint64_t period, struct source_event *row,
                      struct source_plan *plan, struct error *err)
{
    if (period < rate->period_min || period > rate->period_max)
        return error_set(err, ERR_RANGE,
                         "%s: a period of %" PRIu64 " is impossible: this unit takes %" PRIu64 " to %" PRIu64 " %s.",
                         event, period, rate->period_min, rate->period_max, rate->unit);
    uint64_t rounded = period - period % rate->period_step;
    if (rounded != period)
        source_plan_warn(plan, "%.*s counts in steps of %u: a period of %" PRIu64 " becomes %" PRIu64 ".",
                         (int)strcspn(event, ","), event, rate->period_step, period, rounded);
    row->attr.sample_period = rounded;
    row->scale = (double)rounded;
    return 0;
}

int address_set_rate(const struct address_rate *rate, const char *event, const struct source_threshold *threshold,
                     struct source_event *row, struct source_plan *plan, struct error *err)
{
    bool has_frequency = threshold->is_given && threshold->is_frequency;
    int status = source_check_count(event, threshold, err);
    if (status != 0)
        return status;
    if (has_frequency && rate->is_fixed && threshold->is_standard) {
        source_plan_warn(plan, "%.*s does not support frequencies: one sample every %" PRIu64 " %s.",
                         (int)strcspn(event, ","), event, rate->period, rate->unit);
        has_frequency = false;
    } else if (threshold->is_given && !has_frequency) {
        return set_period(rate, event, threshold->value, row, plan, err);
    }
    if (has_frequency || !rate->period)
        return set_frequency(rate, event, has_frequency ? threshold->value : rate->default_hz, row, err);
    return set_period(rate, event, rate->period, row, plan, err);
}
