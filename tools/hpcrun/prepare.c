/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing a launch: library, directory, plan, socket. Ordinary code. */
#include "hpcrun.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
#include "fmt/json.h"
#include "fmt/sched.h"
#include "fnbounds/modtab-cache.h"
#include "measurement/names.h"
#include "measurement/runs.h"
#include "sampling/skid.h"
#include "sampling/source.h"
#include "sampling/probe.h"

/* --- from the plan of src/sampling to the companion's setup in terms of arena/arena.h --- */

/* The two folders state the same numbers apart, so they are compared here. */

_Static_assert((int)SOURCE_NUMBER_EADDR == SOURCE_EADDR && (int)SOURCE_NUMBER_FAULTS == SOURCE_FAULTS &&
                   (int)SOURCE_NUMBER_CPUTIME == SOURCE_CPUTIME && (int)SOURCE_NUMBER_REALTIME == SOURCE_REALTIME &&
                   (int)SOURCE_NUMBER_MEMLEAK == SOURCE_MEMLEAK && (int)SOURCE_NUMBER_PERF == SOURCE_PERF &&
                   (int)SOURCE_NUMBER_PMU_ADDR == SOURCE_PMU_ADDR && (int)SOURCE_NUMBER_BLOCKTIME == SOURCE_BLOCKTIME &&
                   (int)SOURCE_NUMBER_IO_READ == SOURCE_IO_READ && (int)SOURCE_NUMBER_IO_WRITE == SOURCE_IO_WRITE,
               "sources have the same numbers in sampling and arena");
_Static_assert(SOURCE_WEIGHTED == EVENT_WEIGHTED && SOURCE_TIMER == EVENT_TIMER && SOURCE_RING == EVENT_RING &&
                   SOURCE_ADDRESS == EVENT_ADDRESS && SOURCE_INTEGER == EVENT_INTEGER &&
                   SOURCE_WALLCLOCK == EVENT_WALLCLOCK && SOURCE_RING_ONLY == EVENT_RING_ONLY &&
                   SOURCE_DATA_SRC == EVENT_DATA_SRC && SOURCE_BATCH == EVENT_BATCH && SOURCE_AUX == EVENT_AUX &&
                   SOURCE_SILENT == EVENT_SILENT && SOURCE_KERNEL == EVENT_KERNEL && SOURCE_FILE == EVENT_FILE &&
                   SOURCE_CALLS == EVENT_CALLS,
               "flags have the same values in sampling and arena");
_Static_assert(SOURCE_EVENTS_MAX == ARENA_EVENTS_MAX, "a plan fits into an arena");
_Static_assert((int)SOURCE_SCHED_TRACEPOINTS == SCHED_TIER_TRACEPOINTS &&
                   (int)SOURCE_SCHED_SWITCHES == SCHED_TIER_SWITCHES && (int)SOURCE_SCHED_OWN == SCHED_TIER_OWN &&
                   (int)SOURCE_SCHED_NONE == SCHED_TIER_NONE,
               "tiers have the same numbers in sampling and fmt");
_Static_assert(sizeof((struct source_plan *)0)->sched.formats == sizeof((struct companion_setup *)0)->sched.formats,
               "formats fit into a setup");

static void copy_event(const struct source_event *from, struct arena_event *to)
{
    memcpy(to->metric, from->metric, sizeof to->metric);
    memcpy(to->description, from->description, sizeof to->description);
    memcpy(to->name, from->name, sizeof to->name);
    to->source = from->source;
    to->flags = from->flags;
    to->scale = from->scale;
    to->attr = from->attr;
    to->timer_interval_ns = from->timer_interval_ns;
    to->leader = from->leader;
    to->decode = from->decode;
    to->ring_bytes = from->ring_bytes;
    to->aux_bytes = from->aux_bytes;
    memcpy(to->file, from->file, sizeof to->file);
}

static void copy_sched(const struct source_plan *plan, struct companion_sched *to)
{
    int rank = launch_rank();
    to->tier = plan->sched.tier;
    to->has_all = plan->sched.has_all;
    to->rank = rank > 0 ? (uint32_t)rank : 0;
    memcpy(to->why, plan->sched.why, sizeof to->why);
    memcpy(to->formats, plan->sched.formats, sizeof to->formats);
}

/* Probability as a decimal or x/y; 1 when it is neither. */
static double probability(const char *text)
{
    double above = 1, below = 1;
    if (!text || sscanf(text, "%lf/%lf", &above, &below) < 1 || !(below > 0) || !(above > 0) || above > below)
        return 1;
    return above / below;
}

/* A block of n bytes is recorded with probability 1 - exp(-n / sample_bytes), and always from min_bytes on. */
static void set_allocation(const struct source_plan *plan, const struct hpcrun_options *options,
                           struct companion_setup *setup)
{
    const char *part = options->memleak_prob;
    if (!part)
        part = getenv(plan->wants_memleak ? "HPCRUN_MEMLEAK_PROB" : "HPCRUN_DATACENTRIC_PROB");
    double p = probability(part);
    setup->min_bytes = min_bytes_of_environment();
    setup->sample_bytes = options->sample_bytes;
    if (p < 1)
        setup->min_bytes = setup->sample_bytes = (uint64_t)((double)setup->min_bytes / p);
    /* asked for, they are noted without samples as well: a simulator can count what that takes */
    const char *sites = getenv("DATACENTRIC_SMALL_SITES");
    setup->has_small_sites = plan->wants_datacentric || (sites && plan->wants_memleak);
    if (sites && strcmp(sites, "0") == 0)
        setup->has_small_sites = 0;
    /* who asks for all blocks of a size, or for their number, gets them */
    bool is_asked = plan->wants_memleak || getenv(MIN_BYTES_ENV) || p < 1 || setup->sample_bytes;
    setup->raise_most = is_asked || !setup->has_small_sites ? 0 : ARENA_RAISE_BYTES;
    if (!plan->wants_datacentric && !plan->wants_memleak) {
        setup->min_bytes = UINT64_MAX;
        setup->sample_bytes = 0;
    }
}

/* What the runtime need not try, as it does not work here. */
static uint32_t find_lacks(const struct hpcrun_options *options)
{
    struct source_probe probe;
    uint32_t lacks = environment_lacks(trial_name(TRIAL_PERF)) ? ARENA_LACKS_PERF : 0;
    if (!options->watches_per_s)
        return lacks;
    trial_run(TRIAL_BREAKPOINTS, &probe);
    return lacks | (probe.works ? 0 : ARENA_LACKS_BREAKPOINTS);
}

/* Copies events, thresholds of allocations (options and environment) and sizes into *setup. */
static void plan_copy(const struct source_plan *plan, const struct hpcrun_options *options,
                      struct companion_setup *setup)
{
    for (uint32_t i = 0; i < plan->n_events; i++)
        copy_event(&plan->events[i], &setup->events[i]);
    setup->n_events = plan->n_events;
    memcpy(setup->plan, plan->choice, sizeof setup->plan);
    setup->trace = options->trace;
    setup->delay_sampling = options->delay;
    setup->delay_ns = options->delay_ns;
    setup->duration_ns = options->duration_ns;
    setup->start_signal = options->start_signal;
    setup->stop_signal = options->stop_signal;
    setup->lifetime_s = options->lifetime_s;
    setup->fraction = options->part;
    setup->arena_bytes = options->memsize_bytes;
    setup->ahead_bytes = options->low_memsize_bytes;
    setup->max_bytes = options->max_bytes;
    setup->trace_bytes = options->trace_bytes;
    setup->watches_per_s = options->watches_per_s;
    setup->lacks = find_lacks(options);
    setup->deepbind = options->deepbind;
    setup->checkpoint_s = options->checkpoint_s;
    setup->mark_ms = (options->mark_ns + 999999) / 1000000;
    setup->n_jobs = options->jobs_symtab ? (unsigned)strtoul(options->jobs_symtab, NULL, 10) : 0;
    setup->writes_topology = setup->leaves_own_kind = true;
    setup->writes_memleak = plan->wants_memleak;
    copy_sched(plan, &setup->sched);
    set_allocation(plan, options, setup);
}

/* --- the preparations --- */

#define EVENT_LIST_MAX 4096
#define FILE_BYTES_MIN (8u << 20)

/* Splits HPCRUN_EVENT_LIST at blanks and semicolons into items [max]; list is changed. */
static unsigned split_list(char *list, const char **items, unsigned max)
{
    unsigned n = 0;
    char *rest = list;
    for (char *item; n < max && (item = strtok_r(rest, " \t;", &rest));)
        items[n++] = item;
    return n;
}

static bool has_event(const char *const *events, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcasecmp(events[i], name) == 0)
            return true;
    return false;
}

/* Whether the first word of an event is this one. */
static bool begins_with(const char *event, const char *word)
{
    size_t len = strlen(word);
    return len && strncasecmp(event, word, len) == 0 && strchr(",@:", event[len]);
}

/* Whether an event is several, "cycles,instructions", as HPCToolkit writes a group: not the terms of a source or unit.
 */
static bool is_plain_group(const char *event)
{
    const char *comma = strchr(event, ',');
    if (!comma || comma == event || !comma[1] || strpbrk(event, "{/=") || begins_with(event, "mem") ||
        begins_with(event, "datacentric"))
        return false;
    for (const struct sample_source *const *source = source_table(); *source; source++)
        if (begins_with(event, (*source)->name))
            return false;
    return true;
}

/* Writes events that are several as groups, and takes NONE out. *made: what is to be freed behind the plan.
 * err: ERR_NOT_FOUND: nothing is left */
static int settle_events(const char **events, unsigned *n, struct buf *made, struct error *err)
{
    unsigned n_kept = 0, n_given = *n;
    size_t at[HPCRUN_EVENTS_MAX];
    for (unsigned i = 0; i < n_given; i++) {
        if (strcasecmp(events[i], "NONE") == 0)
            continue;
        at[n_kept] = SIZE_MAX;
        if (is_plain_group(events[i])) {
            at[n_kept] = made->len_bytes;
            buf_printf(made, "{%s}", events[i]);
            buf_append(made, "", 1);
        }
        events[n_kept++] = events[i];
    }
    if (made->failed)
        return error_memory(err);
    for (unsigned i = 0; i < n_kept; i++)
        events[i] = at[i] == SIZE_MAX ? events[i] : made->data + at[i];
    *n = n_kept;
    return n_kept || !n_given ? 0 : error_set(err, ERR_NOT_FOUND, "event NONE asks for no measurement");
}

int prepare_plan(const struct hpcrun_options *options, struct source_plan *plan, struct error *err)
{
    const char *events[HPCRUN_EVENTS_MAX];
    char list[EVENT_LIST_MAX] = "";
    unsigned n = options->n_events;
    const char *environment = getenv("HPCRUN_EVENT_LIST");
    const char *count = options->count ? options->count : getenv("HPCRUN_PERF_COUNT");
    memcpy(events, options->events, sizeof events);
    if (n == 0 && environment) {
        (void)snprintf(list, sizeof list, "%s", environment);
        n = split_list(list, events, HPCRUN_EVENTS_MAX);
    }
    struct buf made = {0};
    int status = settle_events(events, &n, &made, err);
    if (options->leaks && n == 0)
        events[n++] = "datacentric";
    if (options->leaks && !has_event(events, n, "MEMLEAK") && n < HPCRUN_EVENTS_MAX)
        events[n++] = "MEMLEAK";
    if (status == 0)
        status = source_plan_events(events, n, count && count[0] ? count : NULL, plan, err);
    buf_fini(&made);
    return status;
}

static int check_preloadable(const char *path, struct error *err)
{
    if (!strpbrk(path, " :"))
        return 0;
    return error_set(err, ERR_UNSUPPORTED,
                     "%s: cannot be preloaded, because blanks and colons separate names there; "
                     "install Locus elsewhere",
                     path);
}

int prepare_library(const char *name, char *path, size_t n, struct error *err)
{
    char own[PATH_MAX], file[PATH_MAX];
    (void)snprintf(file, sizeof file, "%s/%s", LOCUS_LIBRARIES, name);
    if (tool_find_part(".libs/", LOCUS_PREFIX, file, path, n))
        return check_preloadable(path, err);
    tool_directory(own, sizeof own);
    if (!own[0])
        return error_set(
            err, ERR_NOT_FOUND,
            "/proc cannot be read here (it is not mounted, or hidden): hpcrun needs it to find its own parts "
            "and to watch programs; %s is not in %s either",
            name, LOCUS_LIBRARIES);
    return error_set(err, ERR_NOT_FOUND, "%s is neither in %s../lib/locus/ nor in %s: the installation is incomplete",
                     name, own, LOCUS_LIBRARIES);
}

/* Whether a variable says how a run was set up, and is no secret. */
static bool tells_of_run(const char *variable)
{
    static const char *const beginnings[] = {"OMP_",         "GOMP_",         "KMP_",
                                             "MKL_NUM_",     "OPENBLAS_NUM_", "SLURM_JOB_",
                                             "SLURM_NTASKS", "SLURM_NNODES",  "SLURM_CPUS_PER_TASK",
                                             "PBS_JOBID",    "LSB_JOBID",     "HPCRUN_RUN_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return strchr(variable, '=') != NULL;
    return false;
}

/* Notes what is run, for reports that compare runs: the command, where and when, and the environment that sets up
 * threads and jobs; what begins with HPCRUN_RUN_ the user says. Of a program that was there before, only that: hpcrun's
 * own environment is not its. */
static int describe_run(const struct hpcrun_options *options, const char *directory, const struct prepared *prepared,
                        struct error *err)
{
    const struct run *run = &prepared->run;
    char host[256] = "", date[40] = "", here[PATH_MAX] = "", id[PROGRAM_BUILD_ID_MAX];
    struct buf out = {0}, text = {0};
    struct tm when;
    time_t now = time(NULL);
    const char *outer = getenv(LAUNCH_ENV);
    if (run->rank > 0 || (outer && strcmp(outer, run->id) == 0))
        return 0; /* the first rank says it, or the launch that this one is a part of */
    (void)gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &when))
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &when);
    for (size_t i = 0; options->command[i]; i++)
        buf_printf(&text, "%s%s", i ? " " : "", options->command[i]);
    buf_append(&out, "{\"command\": ", 12);
    json_put_text(&out, text.data);
    if (!options->attached)
        json_put_text_at(&out, "directory", getcwd(here, sizeof here) ? here : "");
    json_put_text_at(&out, "host", host);
    json_put_text_at(&out, "date", date);
    program_build_id(&prepared->program, id);
    if (id[0])
        json_put_text_at(&out, "build_id", id);
    for (char **at = environ; *at; at++) {
        bool is_wanted = tells_of_run(*at) && (!options->attached || strncmp(*at, "HPCRUN_RUN_", 11) == 0);
        char *name = is_wanted ? strndup(*at, strcspn(*at, "=")) : NULL;
        if (name)
            json_put_text_at(&out, name, strchr(*at, '=') + 1);
        free(name);
    }
    buf_append(&out, "}", 1);
    int code = out.failed || text.failed ? error_memory(err) : runs_describe(directory, run->id, out.data, err);
    buf_fini(&out);
    buf_fini(&text);
    return code;
}

static int make_directory(const struct hpcrun_options *options, struct prepared *prepared, struct error *err)
{
    const char *wanted = options->output ? options->output : getenv("HPCRUN_OUT_PATH");
    struct stat directory;
    char *name = names_directory(wanted, options->command[0], names_job_id()), *real = NULL;
    if (!name)
        return error_memory(err);
    const struct run_directory how = {.adds = options->appends,
                                      .is_inherited = !options->output && wanted,
                                      .allows_foreign = options->allows_foreign};
    int status = run_directory_make(name, &how, &real, &prepared->run, prepared->note, sizeof prepared->note, err);
    free(name);
    if (status != 0)
        return status;
    (void)snprintf(prepared->setup.dir, sizeof prepared->setup.dir, "%s", real);
    status = describe_run(options, real, prepared, err);
    free(real);
    if (status != 0)
        return status;
    if (stat(prepared->setup.dir, &directory) == 0) {
        prepared->setup.dir_device = directory.st_dev;
        prepared->setup.dir_inode = directory.st_ino;
    }
    return 0;
}

int prepare_left_out(const struct hpcrun_options *options, struct prepared *prepared, int rank, struct error *err)
{
    char why[64];
    int status = make_directory(options, prepared, err);
    if (status != 0)
        return status;
    companion_explain_choice(why, sizeof why, rank);
    companion_index_unmeasured(prepared->setup.dir, names_host_id(), getpid(), prepared->program.path, why);
    return 0;
}

/* Other processes see it, so it has to be absolute. */
static int find_local(const struct hpcrun_options *options, struct companion_setup *setup, struct error *err)
{
    char path[PATH_MAX];
    struct stat status;
    if (!options->local)
        return 0;
    if (!realpath(options->local, path) || stat(path, &status) != 0)
        return error_set(err, ERR_IO, "--local: %s: cannot be used: %s", options->local, strerror(errno));
    if (!S_ISDIR(status.st_mode) || access(path, W_OK | X_OK) != 0)
        return error_set(err, ERR_IO, "--local: %s: cannot be used: %s", options->local,
                         S_ISDIR(status.st_mode) ? "it cannot be written" : "it is not a directory");
    (void)snprintf(setup->local, sizeof setup->local, "%s", path);
    return 0;
}

static bool wants_skid(const struct source_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_events; i++)
        if (plan->events[i].source == SOURCE_EADDR)
            return true;
    return false;
}

/* Where the rule does not hold, the runtime leaves addresses out instead of guessing. */
static void judge_skid(struct prepared *prepared)
{
    struct skid_result result;
    struct error err;
    size_t n = sizeof prepared->plan.warning, len = strlen(prepared->plan.warning);
    if (!wants_skid(&prepared->plan))
        return;
    const char *tables = prepared->setup.tables[0] ? prepared->setup.tables : NULL;
    if (skid_get(tables, &result, &err) != 0) {
        (void)snprintf(prepared->plan.warning + len, n - len, "%sThe skid of this machine is not known: %s",
                       len ? " " : "", err.text);
        return;
    }
    prepared->setup.trust_skid = result.rule == SKID_HOLDS;
    prepared->setup.tick_ns = result.tick_ns;
    (void)skid_to_json(&result, prepared->setup.skid_json, sizeof prepared->setup.skid_json);
    if (result.rule == SKID_FAILS)
        (void)snprintf(prepared->plan.warning + len, n - len,
                       "%sOn this machine interrupted programs do not stop behind the stalled instruction: no software "
                       "addresses (hpcrun --doctor shows the figures).",
                       len ? " " : "");
}

/* A file limit holds for memory files, too. */
static int check_file_limit(struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= FILE_BYTES_MIN)
        return 0;
    return error_set(err, ERR_IO, "the limit of file sizes (ulimit -f, %llu bytes) leaves no room for records",
                     (unsigned long long)limit.rlim_max);
}

int prepare_rest(const struct hpcrun_options *options, struct prepared *prepared, struct error *err)
{
    struct companion_setup *setup = &prepared->setup;
    int status = prepare_library(options->attached ? "libhpcrun-attach.so" : "libhpcrun.so", prepared->library,
                                 sizeof prepared->library, err);
    if (status == 0 && prepared->plan.wants_waits)
        status = prepare_library("libhpcrun-wait.so", prepared->wait_library, sizeof prepared->wait_library, err);
    if (status == 0)
        status = check_file_limit(err);
    if (status == 0)
        status = make_directory(options, prepared, err);
    if (status == 0)
        status = find_local(options, setup, err);
    if (status != 0)
        return status;
    if (modtab_default_cache_dir(setup->tables, sizeof setup->tables, err) != 0)
        return ERR_IO;
    judge_skid(prepared);
    const char *slowed = getenv("LOCUS_TEST_SAMPLE_US"); /* for tests: see struct arena_header */
    setup->test_sample_ns = slowed ? strtoull(slowed, NULL, 10) * 1000 : 0;
    setup->debug = options->debug;
    plan_copy(&prepared->plan, options, setup);
    if (!prepared->program.binary[0] || !realpath(prepared->program.binary, setup->exe))
        setup->exe[0] = '\0';
    (void)snprintf(setup->loader, sizeof setup->loader, "%s", prepared->program.loader);
    (void)snprintf(setup->library, sizeof setup->library, "%s", prepared->library);
    prepared->listen_fd = companion_listen(prepared->socket, err);
    prepared->way_fd = companion_way_open(setup);
    return prepared->listen_fd < 0 ? prepared->listen_fd : 0;
}
