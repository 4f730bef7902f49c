/* SPDX-License-Identifier: BSD-3-Clause */
/* What hpcrun says of a machine without measuring: its events, what would be sampled, what works. Ordinary code. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/vec.h"
#include "fnbounds/modtab-cache.h"
#include "hpcrun.h"
#include "sampling/event.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"
#include "sampling/probe.h"
#include "import/topology.h"
#include "sampling/skid.h"
#include "sampling/source.h"

/* --- -L: the list of events --- */

#define NAME_COLUMNS 34
#define LEGEND "+ opens on this machine, - does not, * not as it stands: see the number in brackets\n"

struct printer {
    FILE *out;
    char title[320]; /* of the section that has not printed anything yet; empty: it has */
    bool has_legend;
    struct strtab reasons;
};

static void print_section(const char *title, void *ctx)
{
    struct printer *printer = ctx;
    (void)snprintf(printer->title, sizeof printer->title, "%s", title);
}

/* A section without events has no title either. */
static void print_title(struct printer *printer)
{
    if (printer->title[0] && !printer->has_legend)
        (void)fprintf(printer->out, LEGEND);
    printer->has_legend = true;
    if (printer->title[0])
        (void)fprintf(printer->out, "\n%s:\n", printer->title);
    printer->title[0] = '\0';
}

static void print_note(const char *text, void *ctx)
{
    struct printer *printer = ctx;
    print_title(printer);
    (void)fprintf(printer->out, "    %s\n", text);
}

static int64_t note_reason(struct printer *printer, const struct source_probe *probe)
{
    char text[sizeof probe->reason + sizeof probe->fix + 16];
    (void)snprintf(text, sizeof text, "%s%s%s", probe->reason, probe->fix[0] ? "; fix: " : "", probe->fix);
    return strtab_intern(&printer->reasons, text);
}

static void print_event(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                        void *ctx)
{
    static const char letters[] = {[EVENT_OPENS] = '+', [EVENT_REFUSED] = '-', [EVENT_INCOMPLETE] = '*'};
    struct printer *printer = ctx;
    print_title(printer);
    (void)fprintf(printer->out, "  %c %-*s%s%s", letters[mark], summary[0] ? NAME_COLUMNS : 0, name,
                  summary[0] ? " " : "", summary);
    if (mark != EVENT_OPENS)
        (void)fprintf(printer->out, " [%lld]", (long long)note_reason(printer, why) + 1);
    (void)fputc('\n', printer->out);
}

static void skip_text(const char *text, void *ctx)
{
    (void)text;
    (void)ctx;
}

static void print_name(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                       void *ctx)
{
    (void)summary;
    (void)why;
    if (mark == EVENT_OPENS)
        (void)fprintf(ctx, "%s\n", name);
}

int list_event_names(FILE *out)
{
    static const char *const everything[] = {NULL};
    const struct event_lister lister = {skip_text, print_name, skip_text, out};
    (void)event_list(everything, &lister);
    return fflush(out) != 0;
}

unsigned list_events(const char *const *patterns, FILE *out)
{
    struct printer printer = {.out = out};
    const struct event_lister lister = {print_section, print_event, print_note, &printer};
    unsigned n = event_list(patterns, &lister);
    for (size_t i = 0; i < printer.reasons.n_strings; i++)
        (void)fprintf(out, "%s[%zu] %s\n", i ? "" : "\n", i + 1, printer.reasons.strings[i]);
    strtab_fini(&printer.reasons);
    return n;
}

/* --- --print-plan: the resolved plan as text --- */

struct bit_name {
    uint64_t bit;
    const char *name;
};

#define SAMPLE(name)                                                                                                   \
    {                                                                                                                  \
        PERF_SAMPLE_##name, #name                                                                                      \
    }
#define READ(name)                                                                                                     \
    {                                                                                                                  \
        PERF_FORMAT_##name, #name                                                                                      \
    }
#define OWN(name)                                                                                                      \
    {                                                                                                                  \
        SOURCE_##name, #name                                                                                           \
    }

static const struct bit_name *bits_of(const char *field)
{
    static const struct bit_name sample[] = {
        SAMPLE(IP),
        SAMPLE(TID),
        SAMPLE(TIME),
        SAMPLE(ADDR),
        SAMPLE(READ),
        SAMPLE(CALLCHAIN),
        SAMPLE(ID),
        SAMPLE(CPU),
        SAMPLE(PERIOD),
        SAMPLE(STREAM_ID),
        SAMPLE(RAW),
        SAMPLE(BRANCH_STACK),
        SAMPLE(REGS_USER),
        SAMPLE(STACK_USER),
        SAMPLE(WEIGHT),
        SAMPLE(DATA_SRC),
        SAMPLE(IDENTIFIER),
        SAMPLE(TRANSACTION),
        SAMPLE(REGS_INTR),
        SAMPLE(PHYS_ADDR),
        SAMPLE(AUX),
        SAMPLE(CGROUP),
        SAMPLE(DATA_PAGE_SIZE),
        SAMPLE(CODE_PAGE_SIZE),
        SAMPLE(WEIGHT_STRUCT),
        {0, NULL},
    };
    static const struct bit_name read[] = {
        READ(TOTAL_TIME_ENABLED), READ(TOTAL_TIME_RUNNING), READ(ID), READ(GROUP), READ(LOST), {0, NULL},
    };
    static const struct bit_name own[] = {
        OWN(WEIGHTED), OWN(TIMER), OWN(RING), OWN(ADDRESS), OWN(INTEGER), OWN(WALLCLOCK), OWN(RING_ONLY),
        OWN(DATA_SRC), OWN(BATCH), OWN(AUX),  OWN(SILENT),  OWN(KERNEL),  {0, NULL},
    };
    static const struct bit_name none[] = {{0, NULL}};
    return !strcmp(field, "sample_type")   ? sample
           : !strcmp(field, "read_format") ? read
           : !strcmp(field, "flags")       ? own
                                           : none;
}

static void print_value(FILE *out, const char *name, uint64_t value, bool is_hex)
{
    const char *separator = " # ";
    (void)fprintf(out, is_hex ? "%s=%#" PRIx64 : "%s=%" PRIu64, name, value);
    for (const struct bit_name *row = bits_of(name); row->name; row++)
        if (value & row->bit) {
            (void)fprintf(out, "%s%s", separator, row->name);
            separator = " ";
        }
    (void)fputc('\n', out);
}

static const char *source_name(uint32_t source)
{
    static const char *const names[] = {
        [SOURCE_NUMBER_EADDR] = "EADDR",
        [SOURCE_NUMBER_FAULTS] = "FAULTS",
        [SOURCE_NUMBER_CPUTIME] = "CPUTIME",
        [SOURCE_NUMBER_REALTIME] = "REALTIME",
        [SOURCE_NUMBER_MEMLEAK] = "MEMLEAK",
        [SOURCE_NUMBER_PERF] = "any perf event",
        [SOURCE_NUMBER_PMU_ADDR] = "addresses from the PMU",
        [SOURCE_NUMBER_BLOCKTIME] = "BLOCKTIME",
        [SOURCE_NUMBER_IO_READ] = "IO",
        [SOURCE_NUMBER_IO_WRITE] = "IO",
    };
    return source < sizeof names / sizeof *names && names[source] ? names[source] : "unknown";
}

static void print_own(FILE *out, const struct source_event *event)
{
    (void)fprintf(out, "metric=%s\ndescription=%s\nname=%s\n", event->metric, event->description, event->name);
    (void)fprintf(out, "source=%" PRIu32 " # %s\n", event->source, source_name(event->source));
    print_value(out, "flags", event->flags, true);
    (void)fprintf(out, "scale=%.17g\n", event->scale);
    print_value(out, "timer_interval_ns", event->timer_interval_ns, false);
    print_value(out, "leader", event->leader, false);
    print_value(out, "decode", event->decode, false);
    print_value(out, "ring_bytes", event->ring_bytes, false);
    print_value(out, "aux_bytes", event->aux_bytes, false);
}

static void print_planned_event(FILE *out, const struct source_event *event)
{
    struct attr_field fields[ATTR_FIELDS_MAX];
    print_own(out, event);
    unsigned n = attr_fields(&event->attr, fields);
    for (unsigned i = 0; i < n; i++)
        print_value(out, fields[i].name, fields[i].value, fields[i].is_hex);
}

int plan_print(const struct hpcrun_options *options, FILE *out, struct error *err)
{
    static struct source_plan plan;
    int status = prepare_plan(options, &plan, err);
    if (status != 0)
        return status;
    (void)fprintf(out, "choice=%s\nwarning=%s\n", plan.choice, plan.warning);
    if (plan.sched.tier)
        (void)fprintf(out, "sched=%s\n", plan.sched.choice);
    for (uint32_t i = 0; i < plan.n_events; i++) {
        (void)fprintf(out, "\n[event %" PRIu32 "]\n", i + 1);
        print_planned_event(out, &plan.events[i]);
    }
    return 0;
}

/* --- --doctor: what works here --- */

static void print_result(FILE *out, const char *name, bool works, const char *reason, const char *fix)
{
    (void)fprintf(out, "%-12s %s: %s\n", name, works ? "works" : "does not work", reason);
    if (fix && fix[0])
        (void)fprintf(out, "%-12s fix: %s\n", "", fix);
}

static bool print_sources(FILE *out)
{
    bool has_addresses = false, has_hardware = false;
    for (const struct sample_source *const *row = source_table(); *row; row++) {
        struct source_probe probe;
        (*row)->probe(&probe);
        has_hardware |= !probe.is_foreign && (*row)->datacentric_rank >= SOURCE_RANK_HARDWARE;
        if (probe.is_foreign)
            continue;
        print_result(out, (*row)->name[0] ? (*row)->name : "PMU", probe.works, probe.reason, probe.fix);
        has_addresses |= probe.works && (*row)->datacentric_rank > 0;
    }
    if (!has_hardware)
        print_result(out, "hardware", false, "no address sampling is known for this processor",
                     "none; addresses are worked out in software (EADDR)");
    return has_addresses;
}

static bool count_file(const char *name, const char *text, void *ctx)
{
    (void)name;
    (void)text;
    ++*(unsigned *)ctx;
    return true;
}

static bool print_pmu(const struct pmu *pmu, void *ctx)
{
    FILE *out = ctx;
    unsigned n_events = 0, n_terms = 0;
    pmu_visit_events(pmu, count_file, &n_events);
    pmu_visit_terms(pmu, count_file, &n_terms);
    (void)fprintf(out, "%-12s   %s: type %u, %u event%s, %u term%s", "", pmu->name, pmu->type, n_events,
                  n_events == 1 ? "" : "s", n_terms, n_terms == 1 ? "" : "s");
    if (pmu->max_precise)
        (void)fprintf(out, ", precise up to level %u", pmu->max_precise);
    (void)fprintf(out, "%s%s\n", pmu->cpus[0] ? ", CPUs " : "", pmu->cpus);
    return true;
}

static void print_pmus(FILE *out)
{
    (void)fprintf(out, "%-12s as the kernel describes them (hpcrun -L lists their events)\n", "PMUs");
    pmu_visit(print_pmu, out);
}

static void print_kernel(FILE *out, unsigned i, const struct skid_kernel *kernel)
{
    unsigned n = kernel->n_at + kernel->n_next + kernel->n_elsewhere;
    if (n)
        (void)fprintf(out,
                      "%-12s   %s: %.1f %% right behind the stalled instruction, %.1f %% at it, of %u samples "
                      "(%s)\n",
                      "", skid_kernel_name(i), 100.0 * kernel->n_next / n, 100.0 * kernel->n_at / n, n,
                      skid_kernel_text(i));
}

static void print_size(FILE *out, const char *before, double kib)
{
    if (kib >= 1024)
        (void)fprintf(out, "%s%.*f MiB", before, kib < 10240, kib / 1024);
    else
        (void)fprintf(out, "%s%.0f KiB", before, kib);
}

/* What hwloc says, where it differs from what was measured by more than a factor of two; of the third level a core's
 * share is compared. */
static void print_claims(FILE *out, const struct cache_effect *effect)
{
    struct topology topology = {0};
    struct error err;
    bool differs = false;
    if (topology_read_here(&topology, &err) != 0)
        return;
    const double said[CACHE_LEVELS] = {(double)topology.l1_bytes / 1024, (double)topology.l2_bytes / 1024,
                                       (double)topology.l3_bytes / 1024};
    for (unsigned i = 0; i < CACHE_LEVELS; i++) {
        double kib = i == CACHE_LEVELS - 1 && effect->all_kib ? effect->all_kib : effect->kib[i];
        differs |= kib > 0 && said[i] > 0 && (kib > 2 * said[i] || said[i] > 2 * kib);
    }
    if (differs) {
        (void)fprintf(out, "%-12s   hwloc says", "");
        for (unsigned i = 0; i < CACHE_LEVELS; i++)
            print_size(out, i ? ", " : " ", said[i]);
        (void)fprintf(out, " for each core: the smaller counts\n");
    }
    topology_fini(&topology);
}

static void print_curve(FILE *out, const struct cache_curve *curve)
{
    (void)fprintf(out, "%-12s   ns a load, alone%s:", "", curve->n_cpus ? "/all CPUs at once" : "");
    for (uint32_t i = 0; i < curve->n_sizes; i++) {
        const struct cache_point *point = &curve->sizes[i];
        if (i % 8 == 0)
            (void)fprintf(out, "\n%-12s    ", "");
        print_size(out, " ", point->kib);
        (void)fprintf(out, " %.1f", point->alone_ps / 1000.0);
        if (point->all_ps)
            (void)fprintf(out, "/%.1f", point->all_ps / 1000.0);
    }
    (void)fprintf(out, "\n");
}

/* The levels of the caches, and the curve that they were found in. */
static void print_caches(FILE *out, const struct cache_curve *curve)
{
    uint64_t claimed[CACHE_LEVELS];
    struct cache_effect effect;
    if (!curve->n_sizes) {
        print_result(out, "caches", false,
                     "not measured: memory is short or refused, or others used the machine all the time", "");
        return;
    }
    cache_claims(claimed);
    cache_curve_judge(curve, claimed, &effect);
    (void)fprintf(out, "%-12s measured:", "caches");
    for (unsigned i = 0; i < CACHE_LEVELS; i++) {
        if (!effect.kib[i])
            continue;
        print_size(out, " up to ", effect.kib[i]);
        (void)fprintf(out, " %.1f ns,", effect.level_ps[i] / 1000.0);
    }
    (void)fprintf(out, " memory %.0f ns\n", effect.level_ps[CACHE_LEVELS] / 1000.0);
    if (effect.all_kib) {
        print_size(out, "               of the third level ", effect.all_kib);
        (void)fprintf(out, " for each of %u CPUs while all work\n", curve->n_cpus);
    }
    if (curve->tlb_kib) {
        print_size(out, "               translations at hand for ", curve->tlb_kib);
        (void)fprintf(out, " in pages of 4 KiB%s\n", curve->is_huge ? "" : "; there are no huge pages here");
    }
    print_claims(out, &effect);
    print_curve(out, curve);
}

static void print_skid(FILE *out, const char *cache)
{
    static const char *const verdicts[] = {
        [SKID_UNKNOWN] = "too few samples to judge",
        [SKID_HOLDS] = "interrupted programs stop right behind the stalled instruction",
        [SKID_FAILS] = "interrupted programs do not stop right behind the stalled instruction: no software addresses",
    };
    struct skid_result result;
    struct error err;
    if (skid_get(cache, &result, &err) != 0) {
        print_result(out, "skid", false, err.text, "");
        return;
    }
    print_result(out, "skid", result.rule == SKID_HOLDS, verdicts[result.rule <= SKID_FAILS ? result.rule : 0], "");
    (void)fprintf(out, "%-12s   %s, microcode %s, kernel %s, hypervisor %s%s\n", "", result.key.cpu,
                  result.key.microcode, result.key.kernel, result.key.hypervisor,
                  result.is_from_cache ? " (measured earlier)" : "");
    if (result.tick_ns)
        (void)fprintf(out, "%-12s   a sample costs %.1f us before anything is done with it\n", "",
                      (double)result.tick_ns / 1e3);
    if (result.touch_ps)
        (void)fprintf(out, "%-12s   the first touch of a page takes %.2f us of the time in user mode\n", "",
                      (double)result.touch_ps / 1e6);
    for (unsigned i = 0; i < SKID_KERNELS; i++)
        print_kernel(out, i, &result.kernels[i]);
    print_caches(out, &result.caches);
}

static void print_installation(FILE *out, const char *cache, const struct error *cache_error)
{
    char library[PROGRAM_PATH_MAX], socket[COMPANION_NAME_MAX];
    struct error err;
    int status = prepare_library("libhpcrun.so", library, sizeof library, &err);
    print_result(out, "library", status == 0, status == 0 ? library : err.text, "");
    print_result(out, "cache", cache[0] != '\0', cache[0] ? cache : cache_error->text, "");
    int fd = companion_listen(socket, &err);
    print_result(out, "companion", fd >= 0, fd < 0 ? err.text : "sockets", "");
    if (fd >= 0)
        (void)close(fd);
}

/* The line of one trial; whether it works. */
static bool print_trial(FILE *out, enum trial_kind trial)
{
    struct source_probe probe;
    char text[sizeof probe.reason + 96];
    trial_run(trial, &probe);
    (void)snprintf(text, sizeof text, "%s (%s)", probe.reason, trial_use(trial));
    if (!probe.is_foreign)
        print_result(out, trial_name(trial), probe.works, text, "");
    return probe.works;
}

static void print_trials(FILE *out)
{
    for (unsigned i = 0; i < TRIAL_COUNT; i++)
        (void)print_trial(out, (enum trial_kind)i);
}

int doctor_try(const char *name, FILE *out)
{
    enum trial_kind trial = trial_find(name);
    return trial == TRIAL_COUNT ? 2 : !print_trial(out, trial);
}

/* How call paths are found, as configure chose, and the limits of libunwind. */
static void print_unwinder(FILE *out)
{
    bool is_own = strcmp(UNWINDER, "own") == 0;
    (void)fprintf(out, "%-12s %s\n", "call paths",
                  is_own ? "walked by tables of our own" : "walked by libunwind, where it is installed (libunwind8):");
    if (is_own)
        return;
    (void)fprintf(out, "%-12s   some microseconds and two system calls a sample, more than 4 KiB of its stack;\n", "");
    (void)fprintf(out, "%-12s   code without unwind information ends a path; no static programs (hpclink)\n", "");
}

/* Leaves out what a fixture does not describe, and takes nothing from the machine that hpcrun runs on. */
static void print_machine(FILE *out)
{
    struct utsname name;
    struct machine_cpu cpu;
    char release[128] = "";
    machine_cpu(&cpu);
    if (!machine_is_fixture() && uname(&name) == 0)
        (void)fprintf(out, "%s, Linux %s", name.machine, name.release);
    else if (machine_read("/proc/sys/kernel/osrelease", release, sizeof release))
        (void)fprintf(out, "a described machine, Linux %s", release);
    else
        (void)fprintf(out, "a described machine");
    (void)fprintf(out, "%s%s%s\n", cpu.name[0] ? ", " : "", cpu.name, cpu.is_virtual ? " (virtual machine)" : "");
}

int doctor_print(FILE *out)
{
    char cache[PROGRAM_PATH_MAX] = "";
    struct error cache_error = {0};
    if (modtab_default_cache_dir(cache, sizeof cache, &cache_error) != 0)
        cache[0] = '\0';
    print_machine(out);
    bool has_addresses = print_sources(out);
    print_pmus(out);
    if (machine_is_fixture())
        return has_addresses ? 0 : 1;
    print_skid(out, cache[0] ? cache : NULL);
    print_installation(out, cache, &cache_error);
    print_trials(out);
    print_unwinder(out);
    return has_addresses ? 0 : 1;
}
