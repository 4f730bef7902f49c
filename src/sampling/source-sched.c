/* SPDX-License-Identifier: BSD-3-Clause */
/* SCHED: when the kernel ran the program's threads, and when it let them wait. Nothing is sampled in the program: a
 * process beside the companion records it (src/companion/sched-recorder.c). Here: how much of it the kernel tells us,
 * and why no more; the formats of its tracepoints, which the recorder could not read any more. Ordinary code of the
 * launcher. */
#include "sampling/probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_PID_NAMESPACE "pid:[4026531836]"

/* --- the formats of tracepoints --- */

static bool read_at(int directory, const char *name, char *text, size_t n)
{
    char path[128];
    (void)snprintf(path, sizeof path, "events/sched/%s/format", name);
    int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);
    if (fd >= 0)
        (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 && (size_t)got < n - 1;
}

static bool read_formats(struct source_sched *sched)
{
    static const char *const names[SOURCE_SCHED_FORMATS] = {"sched_switch", "sched_waking", "sched_migrate_task"};
    int directory = trial_open_tracefs();
    bool has_all = directory >= 0;
    for (size_t j = 0; j < SOURCE_SCHED_FORMATS && has_all; j++)
        has_all = read_at(directory, names[j], sched->formats[j], sizeof sched->formats[j]);
    if (directory >= 0)
        (void)close(directory);
    return has_all;
}

/* --- what the kernel allows --- */

/* Ids of threads in tracepoints are those of the first namespace, and a thread of another one cannot be told from the
 * idle one in records of switches. */
static bool sees_all_threads(void)
{
    char name[64];
    ssize_t n = readlink("/proc/self/ns/pid", name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    return strcmp(name, FIRST_PID_NAMESPACE) == 0;
}

static void attr_of_switches(struct perf_event_attr *attr)
{
    source_attr_init(attr, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    attr->sample_id_all = 1;
    attr->context_switch = 1;
    attr->write_backward = 0;
}

static void try_tracepoints(struct source_sched *sched, struct source_probe *out)
{
    struct perf_event_attr attr;
    *out = (struct source_probe){0};
    if (!sees_all_threads()) {
        (void)snprintf(out->reason, sizeof out->reason, "this is not the first namespace of process ids");
        return;
    }
    if (!read_formats(sched)) {
        (void)snprintf(out->reason, sizeof out->reason, "tracefs cannot be read here");
        return;
    }
    const char *id = strstr(sched->formats[0], "\nID: ");
    source_attr_init(&attr, PERF_TYPE_TRACEPOINT, id ? strtoull(id + 5, NULL, 10) : 0);
    attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
    attr.exclude_kernel = attr.exclude_hv = 0;
    attr.sample_period = 1;
    attr.write_backward = 0;
    source_probe_cpu(&attr, true, out);
}

static void try_switches(struct source_probe *out)
{
    struct perf_event_attr attr;
    *out = (struct source_probe){0};
    attr_of_switches(&attr);
    if (sees_all_threads())
        source_probe_cpu(&attr, true, out);
    else
        (void)snprintf(out->reason, sizeof out->reason, "this is not the first namespace of process ids");
}

static void try_own(struct source_probe *out)
{
    struct perf_event_attr attr;
    attr_of_switches(&attr);
    attr.inherit = 1;
    source_probe_cpu(&attr, false, out);
}

static const char *const tiers[] = {
    [SOURCE_SCHED_TRACEPOINTS] = "switches, wake-ups and migrations, from tracepoints of all CPUs",
    [SOURCE_SCHED_SWITCHES] = "switches of all CPUs, without wake-ups",
    [SOURCE_SCHED_OWN] = "when the program's own threads come onto CPUs and leave them",
    [SOURCE_SCHED_NONE] = "totals of threads alone, from /proc",
};

static void add_why(struct source_sched *sched, const char *what, const char *why)
{
    size_t len = strlen(sched->why);
    (void)snprintf(sched->why + len, sizeof sched->why - len, "%s%s: %.200s", len ? "; " : "", what, why);
}

/* The best tier that works, and why better ones do not. */
static void choose(struct source_sched *sched)
{
    struct source_probe found;
    sched->tier = SOURCE_SCHED_TRACEPOINTS;
    try_tracepoints(sched, &found);
    if (found.works)
        return;
    add_why(sched, "tracepoints", found.reason);
    sched->tier = SOURCE_SCHED_SWITCHES;
    try_switches(&found);
    if (found.works)
        return;
    add_why(sched, "switches of all CPUs", found.reason);
    sched->tier = SOURCE_SCHED_OWN;
    try_own(&found);
    if (found.works)
        return;
    add_why(sched, "own threads", found.reason);
    sched->tier = SOURCE_SCHED_NONE;
}

/* A fixture does not say what this needs. */
static void probe(struct source_probe *out)
{
    static struct source_sched sched;
    *out = (struct source_probe){.is_foreign = machine_is_fixture()};
    if (out->is_foreign)
        return;
    sched = (struct source_sched){0};
    choose(&sched);
    out->works = sched.tier != SOURCE_SCHED_NONE;
    (void)snprintf(out->reason, sizeof out->reason, "%s%s%.380s", tiers[sched.tier], sched.why[0] ? "; " : "",
                   sched.why);
    if (sched.tier != SOURCE_SCHED_TRACEPOINTS)
        (void)snprintf(out->fix, sizeof out->fix,
                       "for all of it: run hpcrun as root, or with CAP_PERFMON and a readable tracefs, outside of "
                       "containers");
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    uint64_t all = 0;
    const struct source_term known[] = {{"all", false, &all}, {NULL, false, NULL}};
    int status = source_parse_terms(event, known, err);
    if (status != 0)
        return status;
    if (threshold->is_given && !threshold->is_standard)
        return error_set(err, ERR_RANGE, "%s takes no period: each switch is recorded.", event);
    if (machine_is_fixture())
        return error_set(err, ERR_UNSUPPORTED, "%s: a description of a machine does not say what it needs.", event);
    out->sched = (struct source_sched){0};
    choose(&out->sched);
    out->sched.has_all = all || out->sched.tier == SOURCE_SCHED_SWITCHES;
    if (all && out->sched.tier > SOURCE_SCHED_SWITCHES)
        return error_set(err, ERR_UNSUPPORTED, "%s: threads of other programs cannot be seen here: %.400s.", event,
                         out->sched.why);
    (void)snprintf(out->sched.choice, sizeof out->sched.choice, "sched: %s%s%s", tiers[out->sched.tier],
                   out->sched.why[0] ? "; " : "", out->sched.why);
    return 0;
}

const struct sample_source source_sched = {
    .name = "SCHED",
    .summary =
        "When the kernel runs the program's threads, and when they wait (term: all, those of other programs too)",
    .takes_terms = true,
    .probe = probe,
    .plan = plan,
};
