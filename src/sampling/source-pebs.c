/* SPDX-License-Identifier: BSD-3-Clause */
/* PEBS: loads with their latency, and stores, by data address, from the hardware of Intel processors. The contents of
 * its records, its events, and the source. See probe.h. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/event.h"
#include "sampling/pmu.h"

#define PRECISE_WITH_TIME 3 /* cores of this level (Skylake on) write time stamps into their records */

/* The kernel's version as major * 1000 + minor; 0 when it is not known. */
static unsigned kernel_version(void)
{
    char release[128];
    unsigned major = 0, minor = 0;
    if (!machine_read("/proc/sys/kernel/osrelease", release, sizeof release) ||
        sscanf(release, "%u.%u", &major, &minor) != 2)
        return 0;
    return major * 1000 + minor;
}

static bool loses_time(const struct pebs_event *event)
{
    return event->max_precise < PRECISE_WITH_TIME;
}

static bool loses_weight(const struct pebs_event *event)
{
    return event->tells_source && kernel_version() < 6000;
}

/* Sets the contents of the event's records: with the weight in this form if records have the data source; in
 * large-buffer mode only fields that the hardware's buffer can hold. */
static void pebs_set_record(struct pebs_event *event, uint64_t weight, bool is_large)
{
    uint64_t type =
        PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
    if (event->tells_source)
        type |= PERF_SAMPLE_DATA_SRC | weight;
    if (is_large)
        type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
    if (is_large && loses_time(event))
        type &= ~(uint64_t)PERF_SAMPLE_TIME;
    if (is_large && loses_weight(event))
        type &= ~(uint64_t)(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
    event->attr.sample_type = type;
}

/* Why the kernel would interrupt for every record even in large-buffer mode (part of a sentence), or NULL when it lets
 * the hardware's buffer fill. left_out receives what the records then lack (part of a sentence, may be empty).
 * src: conditions of large PEBS in the logs of the kernel: fixed period, watermark, no call chain; weights since
 * Linux 6.0 ("Enable large PEBS for PERF_SAMPLE_WEIGHT_TYPE"), time stamps where the hardware writes them */
static const char *pebs_large_obstacle(const struct pebs_event *event, char *left_out, unsigned n_left_out)
{
    bool time = loses_time(event), weight = loses_weight(event);
    (void)snprintf(left_out, n_left_out, "%s%s%s", weight ? "latency (needs Linux 6.0)" : "",
                   weight && time ? ", " : "", time ? "time stamps (need Skylake or newer)" : "");
    if (kernel_version() < 4001)
        return "it does so since Linux 4.1";
    return NULL;
}

/* Period for loads of at least ldlat core cycles, given the period for all loads; shorter because slow loads are rare.
 * src: SampleAfterValue of MEM_TRANS_RETIRED.LOAD_LATENCY_GT_x in Intel's event lists (at 32, where these return to the
 * value for all loads, a value in between) */
static uint64_t pebs_load_period(uint64_t ldlat, uint64_t period)
{
    static const struct {
        uint64_t ldlat, period;
    } rows[] = {{512, 101}, {256, 503}, {128, 1009}, {64, 2003}, {32, 10007}, {16, 20011}, {8, 50021}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ldlat >= rows[i].ldlat)
            return rows[i].period < period ? rows[i].period : period;
    return period;
}

/* --- events of PEBS --- */

/* Finding the events; see probe.h. Ordinary code of the launcher. */

#define LDLAT_DEFAULT 3     /* core cycles, the smallest that the hardware accepts: every load */
#define PERIOD_LOADS 100003 /* primes, so that loops do not resonate; some hundred to thousand samples a second */
#define PERIOD_STORES 1000003
#define MEMBER_BYTES 256
#define MEMBERS_MAX 4
#define CPU_PMUS_MAX 3
#define PRECISE_MAX 3

/* The PMUs of the CPU's cores: cpu, or one for each kind of cores. */
struct core_pmus {
    struct pmu pmus[CPU_PMUS_MAX];
    unsigned n_pmus;
};

/* State of one search. */
struct finder {
    const struct pebs_request *request;
    struct machine_cpu cpu;
    struct core_pmus cores;
    struct pebs_found *found;
    struct source_probe *out;
    unsigned n_described; /* events that some source describes for this CPU ... */
    unsigned n_known;     /* ... that can be encoded, whether they open or not */
    int refusal;          /* errno of the first event that opens at no precise level */
    struct pebs_event refused;
};

/* Adds a sentence for the user. */
__attribute__((format(printf, 2, 3))) static void note(struct finder *finder, const char *format, ...)
{
    char *text = finder->found->complaints;
    size_t n = sizeof finder->found->complaints, len = strlen(text);
    va_list arguments;
    if (len > 0 && len < n - 1)
        text[len++] = ' ';
    va_start(arguments, format);
    (void)vsnprintf(text + len, n - len, format, arguments);
    va_end(arguments);
}

static bool take_pmu(const struct pmu *pmu, void *ctx)
{
    struct core_pmus *cores = ctx;
    if (strcmp(pmu->name, "cpu") != 0 && strncmp(pmu->name, "cpu_", 4) != 0)
        return true;
    cores->pmus[cores->n_pmus++] = *pmu;
    return cores->n_pmus < CPU_PMUS_MAX;
}

/* Copies text with the word LDLAT replaced by the threshold. */
static void set_threshold(const char *text, uint64_t ldlat, char *out, size_t n_out)
{
    const char *at = strstr(text, "LDLAT");
    if (at)
        (void)snprintf(out, n_out, "%.*s%" PRIu64 "%s", (int)(at - text), text, ldlat, at + strlen("LDLAT"));
    else
        (void)snprintf(out, n_out, "%s", text);
}

static void init_attr(struct perf_event_attr *attr, const struct pebs_request *request)
{
    source_attr_init(attr, 0, 0);
    attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr->exclude_guest = 1;
    if (request->wants_large) {
        attr->write_backward = 0;
        attr->watermark = 1;
    }
}

/* Turns the text of an event or group into attributes: the last member samples, the first one leads and counts. */
static int encode(const char *text, const struct pebs_request *request, struct pebs_event *event, struct error *err)
{
    char members[MEMBERS_MAX][MEMBER_BYTES];
    int n = pmu_split_group(text, members, MEMBERS_MAX, err);
    if (n < 1 || n > 2)
        return n < 0 ? n : error_set(err, ERR_USAGE, "%s: a group of two is expected, a leader and the event.", text);
    init_attr(&event->attr, request);
    int status = pmu_encode(members[n - 1], &event->attr, err);
    if (status == 0 && n == 2) {
        source_attr_init(&event->leader, 0, 0);
        status = pmu_encode(members[0], &event->leader, err);
        event->leader.sample_type = 0;
        event->leader.wakeup_events = 0;
        event->leader.write_backward = 0;
        event->leader.exclude_guest = 1;
        event->leader.read_format = event->attr.read_format;
        event->has_leader = true;
        event->attr.disabled = 0; /* it runs as soon as its leader does */
    }
    if (!pmu_event_label(members[n - 1], event->text, sizeof event->text))
        (void)snprintf(event->text, sizeof event->text, "%.*s", (int)sizeof event->text - 1, members[n - 1]);
    return status;
}

/* Opens the event at the highest precise level that the kernel accepts, with the weight in parts or, on older kernels,
 * whole. Level 0 is not tried: without PEBS there are no addresses. Returns 0 or the errno of the lowest level. */
static int open_highest(struct pebs_event *event, const struct pebs_request *request)
{
    static const uint64_t weights[] = {PERF_SAMPLE_WEIGHT_STRUCT, PERF_SAMPLE_WEIGHT};
    int answer = 0;
    unsigned highest = event->attr.precise_ip ? event->attr.precise_ip : PRECISE_MAX;
    for (unsigned level = highest; level > 0; level--)
        for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
            event->attr.precise_ip = level & PRECISE_MAX;
            pebs_set_record(event, weights[i], request->wants_large);
            event->attr.sample_period = event->period;
            answer = machine_try_open(&event->attr, event->has_leader ? &event->leader : NULL);
            event->attr.sample_period = 0;
            if (answer == 0)
                return 0;
        }
    return answer;
}

static void explain_refusal(struct finder *finder)
{
    struct source_probe *out = finder->out;
    struct pebs_event *event = &finder->refused;
    event->attr.sample_period = event->period;
    if (finder->refusal != EOPNOTSUPP) {
        source_probe_group(&event->attr, event->has_leader ? &event->leader : NULL, false, out);
        (void)snprintf(out->reason + strlen(out->reason), sizeof out->reason - strlen(out->reason), " (%s, %s)",
                       event->text, event->origin);
        return;
    }
    (void)snprintf(out->reason, sizeof out->reason,
                   "the PMU of this %s has no PEBS: precise sampling of %s is refused (EOPNOTSUPP), and without it "
                   "there are no addresses",
                   finder->cpu.is_virtual ? "virtual machine" : "machine", event->text);
    (void)snprintf(out->fix, sizeof out->fix, "%s",
                   finder->cpu.is_virtual
                       ? "the hypervisor must pass PEBS through (KVM: Linux 6.0 and an Ice Lake server or newer as "
                         "host, guest CPU like the host's)"
                       : "update the processor's microcode; kernels switch PEBS off where it is known to be broken");
}

/* A described load or store event of one PMU. */
struct candidate {
    char text[2 * MEMBER_BYTES], origin[320];
    uint64_t ldlat, period;
    bool tells_source;
};

static void try_candidate(struct finder *finder, const struct pmu *pmu, const struct candidate *candidate, bool is_load)
{
    char text[sizeof candidate->text];
    struct error err = {0};
    struct pebs_event event = {.is_load = is_load,
                               .tells_source = candidate->tells_source,
                               .period = candidate->period,
                               .max_precise = pmu->max_precise};
    (void)snprintf(event.origin, sizeof event.origin, "%s", candidate->origin);
    finder->n_described++;
    set_threshold(candidate->text, candidate->ldlat, text, sizeof text);
    if (encode(text, finder->request, &event, &err) != 0) {
        note(finder, "%s (%s): %s", text, candidate->origin, err.text);
        return;
    }
    finder->n_known++;
    int answer = open_highest(&event, finder->request);
    if (answer == 0 && finder->found->n_events < PEBS_EVENTS_MAX) {
        finder->found->events[finder->found->n_events++] = event;
    } else if (!finder->refusal) {
        finder->refusal = answer;
        finder->refused = event;
    }
}

/* Tries names of libpfm4 in order of preference. */
static bool known_to_libpfm(bool is_load, struct candidate *candidate)
{
    static const char *const loads[] = {"MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=LDLAT",
                                        "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD:ldlat=LDLAT",
                                        "MEM_INST_RETIRED:LATENCY_ABOVE_THRESHOLD:ldlat=LDLAT", NULL};
    static const char *const stores[] = {"MEM_TRANS_RETIRED:PRECISE_STORE", "MEM_TRANS_RETIRED:STORE_SAMPLE",
                                         "MEM_INST_RETIRED:ALL_STORES", NULL};
    for (const char *const *name = is_load ? loads : stores; *name; name++) {
        char text[MEMBER_BYTES];
        struct error ignored;
        struct perf_event_attr attr = {.size = sizeof attr};
        set_threshold(*name, LDLAT_DEFAULT, text, sizeof text);
        if (pmu_encode(text, &attr, &ignored) != 0)
            continue;
        (void)snprintf(candidate->text, sizeof candidate->text, "%s", *name);
        (void)snprintf(candidate->origin, sizeof candidate->origin, "libpfm4");
        return true;
    }
    return false;
}

static bool known_to_sysfs(const struct pmu *pmu, bool is_load, struct candidate *candidate)
{
    if (!pmu_has(pmu, is_load ? "events/mem-loads" : "events/mem-stores"))
        return false;
    (void)snprintf(candidate->origin, sizeof candidate->origin, "sysfs");
    if (!is_load)
        (void)snprintf(candidate->text, sizeof candidate->text, "%s/mem-stores/", pmu->name);
    else if (pmu_has(pmu, "events/mem-loads-aux"))
        (void)snprintf(candidate->text, sizeof candidate->text, "{%s/mem-loads-aux/,%s/mem-loads,ldlat=LDLAT/}",
                       pmu->name, pmu->name);
    else
        (void)snprintf(candidate->text, sizeof candidate->text, "%s/mem-loads,ldlat=LDLAT/", pmu->name);
    return true;
}

static bool known_to_table(const struct event_row *row, bool is_load, struct candidate *candidate)
{
    const char *text = is_load ? row->load : row->store;
    if (!text[0])
        return false;
    (void)snprintf(candidate->text, sizeof candidate->text, "%s", text);
    (void)snprintf(candidate->origin, sizeof candidate->origin, "%s", row->origin);
    candidate->tells_source = row->tells_source;
    return true;
}

static void find_one(struct finder *finder, const struct pmu *pmu, const struct event_row *row, bool is_load)
{
    const struct pebs_request *request = finder->request;
    uint64_t ldlat = row && row->ldlat ? row->ldlat : LDLAT_DEFAULT;
    struct candidate candidate = {.ldlat = request->ldlat ? request->ldlat : ldlat,
                                  .period = is_load ? PERIOD_LOADS : PERIOD_STORES,
                                  .tells_source = true};
    if (row)
        candidate.period = is_load ? row->load_period : row->store_period;
    if (!known_to_sysfs(pmu, is_load, &candidate) && !(row && known_to_table(row, is_load, &candidate)) &&
        (row || strcmp(pmu->name, "cpu") != 0 || !known_to_libpfm(is_load, &candidate)))
        return;
    if (is_load && request->ldlat && !strstr(candidate.text, "LDLAT"))
        note(finder, "%s (%s) has no latency threshold: ldlat is ignored.", candidate.text, candidate.origin);
    if (is_load && strstr(candidate.text, "LDLAT"))
        candidate.period = pebs_load_period(candidate.ldlat, candidate.period);
    try_candidate(finder, pmu, &candidate, is_load);
}

static void find_all(struct finder *finder)
{
    for (unsigned i = 0; i < finder->cores.n_pmus; i++) {
        struct event_row row;
        const struct pmu *pmu = &finder->cores.pmus[i];
        char complaints[sizeof finder->found->complaints];
        bool has_row = event_table_find(&finder->cpu, pmu->name, &row, complaints, sizeof complaints);
        if (complaints[0] && i == 0)
            note(finder, "%s", complaints);
        if (finder->request->wants_loads)
            find_one(finder, pmu, has_row ? &row : NULL, true);
        if (finder->request->wants_stores)
            find_one(finder, pmu, has_row ? &row : NULL, false);
    }
}

/* True when this is an Intel machine with a PMU and perf events may be opened at all; otherwise sets reason and fix. */
static bool is_worth_trying(struct finder *finder)
{
    struct perf_event_attr clock;
    struct source_probe *out = finder->out;
    if (finder->cpu.vendor != CPU_INTEL) {
        out->is_foreign = true;
        (void)snprintf(out->reason, sizeof out->reason, "PEBS belongs to Intel processors");
        return false;
    }
    if (finder->cores.n_pmus == 0) {
        (void)snprintf(out->reason, sizeof out->reason, "%s (no cpu in /sys/bus/event_source/devices)",
                       finder->cpu.is_virtual ? "this virtual machine has no PMU" : "the kernel offers no PMU");
        (void)snprintf(out->fix, sizeof out->fix, "%s",
                       finder->cpu.is_virtual
                           ? "the hypervisor must offer a virtual PMU with PEBS (KVM: -cpu host,pmu=on, Linux 6.0 and "
                             "an Ice Lake server or newer as host)"
                           : "boot a kernel with CONFIG_PERF_EVENTS that knows this processor");
        return false;
    }
    source_attr_init(&clock, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    clock.sample_period = 1000000;
    source_probe_perf(&clock, false, out);
    return out->works;
}

static void explain_unknown(struct finder *finder)
{
    char path[256];
    struct source_probe *out = finder->out;
    const struct machine_cpu *cpu = &finder->cpu;
    if (finder->n_described) {
        (void)snprintf(out->reason, sizeof out->reason, "the events that are described for this CPU cannot be encoded");
        (void)snprintf(out->fix, sizeof out->fix, "correct the row of the event table");
        return;
    }
    event_table_user_path(path, sizeof path);
    (void)snprintf(out->reason, sizeof out->reason,
                   "no memory event is known for this CPU (%.60s, family %u model %u): its kernel describes none "
                   "(events/mem-loads of the PMU %s), and neither the event table nor libpfm4 has one",
                   cpu->name, cpu->family, cpu->model, finder->cores.pmus[0].name);
    (void)snprintf(out->fix, sizeof out->fix,
                   "a newer kernel, or a row in %s, with the events from the maker's list: intel %u %u %s LOAD STORE 3 "
                   "100003/1000003 source; the head of the installed pmu-events.txt explains the columns",
                   path, cpu->family, cpu->model, finder->cores.pmus[0].name);
}

static void say_what_works(struct finder *finder)
{
    const struct pebs_found *found = finder->found;
    struct source_probe *out = finder->out;
    size_t len = 0;
    for (unsigned i = 0; i < found->n_events && len < sizeof out->reason; i++)
        len += (size_t)snprintf(out->reason + len, sizeof out->reason - len, "%s%s%s (%s, precise level %u)",
                                i ? ", " : "", found->events[i].text,
                                found->events[i].has_leader ? " after its auxiliary event" : "",
                                found->events[i].origin, (unsigned)found->events[i].attr.precise_ip);
    out->works = true;
    out->fix[0] = '\0';
    if (finder->refusal)
        note(finder, "%s (%s) is refused: %s.", finder->refused.text, finder->refused.origin,
             strerrorname_np(finder->refusal));
}

/* Finds the events and tries them, highest precise level first. Sets out->works if at least one opens, else reason and
 * fix. */
static void pebs_events_find(const struct pebs_request *request, struct pebs_found *found, struct source_probe *out)
{
    struct finder finder = {.request = request, .found = found, .out = out};
    *found = (struct pebs_found){0};
    *out = (struct source_probe){0};
    machine_cpu(&finder.cpu);
    pmu_visit(take_pmu, &finder.cores);
    if (!is_worth_trying(&finder))
        return;
    find_all(&finder);
    *out = (struct source_probe){0};
    if (found->n_events)
        say_what_works(&finder);
    else if (finder.n_known)
        explain_refusal(&finder);
    else
        explain_unknown(&finder);
}

/* --- the source --- */

/* PEBS: loads with their latency and stores, by data address, from the hardware of Intel processors. Each sample is an
 * access that really happened, with the level of memory that served it. Two forms: a signal and a call path for each
 * sample, or large buffers, which cost a fraction but have no call paths. Ordinary code of the launcher. */

#define LDLAT_MIN 3 /* core cycles: the least that the hardware accepts */
#define LDLAT_MAX UINT16_MAX
#define LDLAT_NOT_GIVEN UINT64_MAX
#define RING_BYTES 65536 /* large-buffer mode: some 900 records */
#define FREQUENCY_MAX_HZ 100000
#define PERIOD_COSTLY 1000 /* below this, if all accesses count, signals take more time than the program */

static void probe(struct source_probe *out)
{
    const struct pebs_request request = {.wants_loads = true, .wants_stores = true};
    struct pebs_found found;
    pebs_events_find(&request, &found, out);
    if (found.complaints[0]) {
        size_t len = strlen(out->reason);
        (void)snprintf(out->reason + len, sizeof out->reason - len, ". %s", found.complaints);
    }
}

static int take_terms(const char *event, const struct source_threshold *threshold, struct pebs_request *request,
                      struct error *err)
{
    uint64_t ldlat = LDLAT_NOT_GIVEN, loads = 0, stores = 0, large = 0;
    const struct source_term known[] = {{"ldlat", true, &ldlat},
                                        {"loads", false, &loads},
                                        {"stores", false, &stores},
                                        {"large", false, &large},
                                        {NULL, false, NULL}};
    int status = source_parse_terms(event, known, err);
    if (status != 0)
        return status;
    if (ldlat != LDLAT_NOT_GIVEN && (ldlat < LDLAT_MIN || ldlat > LDLAT_MAX))
        return error_set(err, ERR_RANGE, "%s: the latency threshold is a number of core cycles from %d to %d.", event,
                         LDLAT_MIN, LDLAT_MAX);
    if (large && threshold->is_given && threshold->is_frequency)
        return error_set(err, ERR_USAGE,
                         "%s: large buffers need a fixed period, since with a frequency (f%" PRIu64
                         ") the kernel looks at every record: write %s@100003, or leave the frequency out.",
                         event, threshold->value, event);
    request->ldlat = ldlat == LDLAT_NOT_GIVEN ? 0 : ldlat;
    request->wants_loads = loads || !stores;
    request->wants_stores = stores || !loads;
    request->wants_large = large;
    return 0;
}

static int set_rate(const char *name, const struct pebs_event *found, const struct source_threshold *threshold,
                    struct source_event *row, struct error *err)
{
    if (!threshold->is_given || !threshold->is_frequency) {
        row->attr.sample_period = threshold->is_given ? threshold->value : found->period;
        row->scale = (double)row->attr.sample_period;
        return 0;
    }
    long max_hz = machine_read_number("/proc/sys/kernel/perf_event_max_sample_rate", FREQUENCY_MAX_HZ);
    if (threshold->value > (uint64_t)max_hz)
        return error_set(err, ERR_RANGE,
                         "%s: this kernel takes at most %ld samples a second (kernel.perf_event_max_sample_rate).",
                         name, max_hz);
    row->attr.freq = 1;
    row->attr.sample_freq = threshold->value;
    row->flags |= SOURCE_WEIGHTED;
    return 0;
}

static int add_leader(const char *name, const struct pebs_event *found, struct source_plan *out, struct error *err)
{
    char metric[64];
    (void)snprintf(metric, sizeof metric, "leader of %.50s", found->text);
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_PMU_ADDR, name, metric, err);
    if (!row)
        return ERR_RANGE;
    row->flags = SOURCE_SILENT;
    row->attr = found->leader;
    (void)snprintf(row->description, sizeof row->description,
                   "Auxiliary event that this CPU requires for its load latency; it only counts");
    return 0;
}

static void describe(const struct pebs_event *found, struct source_event *row)
{
    const char *weight = found->attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT ? ", latency in parts"
                         : found->attr.sample_type & PERF_SAMPLE_WEIGHT      ? ", latency as a whole"
                                                                             : "";
    (void)snprintf(row->description, sizeof row->description, "%s by data address (%.60s, precise level %u%s)",
                   found->is_load ? "Loads" : "Stores", found->origin, (unsigned)found->attr.precise_ip, weight);
}

static int add_event(const char *name, const struct pebs_event *found, const struct source_threshold *threshold,
                     struct source_plan *out, struct error *err)
{
    uint32_t leader = out->n_events + 1;
    int status = found->has_leader ? add_leader(name, found, out, err) : 0;
    if (status != 0)
        return status;
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_PMU_ADDR, name, found->text, err);
    if (!row)
        return ERR_RANGE;
    row->flags = SOURCE_RING | SOURCE_ADDRESS;
    if (found->tells_source) {
        row->flags |= SOURCE_DATA_SRC;
        row->decode = MEM_DECODE_DATA_SRC;
    }
    row->attr = found->attr;
    row->leader = found->has_leader ? leader : 0;
    if (row->attr.watermark) {
        row->flags |= SOURCE_BATCH;
        row->ring_bytes = RING_BYTES;
        row->attr.wakeup_watermark = RING_BYTES / 2;
    }
    describe(found, row);
    return set_rate(name, found, threshold, row, err);
}

/* Says which form is used, and what it lacks. */
static void say_form(const struct pebs_found *found, struct source_plan *out)
{
    char left_out[96];
    size_t len = strlen(out->choice), n = sizeof out->choice - len;
    if (!found->events[0].attr.watermark) {
        (void)snprintf(out->choice + len, n, "; a signal and a call path for each sample");
        return;
    }
    const char *obstacle = pebs_large_obstacle(&found->events[0], left_out, sizeof left_out);
    if (obstacle)
        (void)snprintf(out->choice + len, n,
                       "; large-buffer mode, no call paths, but the kernel does not let the hardware's buffer fill: %s",
                       obstacle);
    else
        (void)snprintf(out->choice + len, n,
                       "; large-buffer mode: the hardware collects records between interrupts, no call paths%s%s",
                       left_out[0] ? "; left out: " : "", left_out);
}

static void say_choice(const struct pebs_found *found, uint32_t from, struct source_plan *out)
{
    size_t len = (size_t)snprintf(out->choice, sizeof out->choice, "PEBS, ");
    for (uint32_t i = from; i < out->n_events && len < sizeof out->choice; i++) {
        const struct source_event *row = &out->events[i];
        if (row->flags & SOURCE_SILENT)
            continue;
        len += (size_t)snprintf(out->choice + len, sizeof out->choice - len, "%s%s %s %" PRIu64 "%s",
                                len > strlen("PEBS, ") ? ", " : "", row->metric, row->attr.freq ? "at" : "every",
                                (uint64_t)row->attr.sample_period, row->attr.freq ? " a second" : "");
    }
    say_form(found, out);
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    struct pebs_request request = {0};
    struct pebs_found found;
    struct source_probe probed;
    uint32_t from = out->n_events;
    int status = take_terms(event, threshold, &request, err);
    if (status != 0)
        return status;
    pebs_events_find(&request, &found, &probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "%s cannot be sampled here: %s%s%s.%s%s", event, probed.reason,
                         probed.fix[0] ? "; " : "", probed.fix, found.complaints[0] ? " " : "", found.complaints);
    for (unsigned i = 0; status == 0 && i < found.n_events; i++)
        status = add_event(event, &found.events[i], threshold, out, err);
    if (status != 0)
        return status;
    if (found.complaints[0])
        source_plan_warn(out, "%s", found.complaints);
    if (threshold->is_given && !threshold->is_frequency && threshold->value < PERIOD_COSTLY && !request.ldlat)
        source_plan_warn(out,
                         "%s: a sample every %" PRIu64 " accesses costs more than the program itself; the kernel "
                         "will hold samples back.",
                         event, threshold->value);
    say_choice(&found, from, out);
    return 0;
}

const struct sample_source source_pebs = {
    .name = "PEBS",
    .summary = "Loads with latency, and stores, by data address, from Intel hardware (terms: ldlat=N, loads, stores, "
               "large)",
    .datacentric_rank = 100,
    .takes_terms = true,
    .probe = probe,
    .plan = plan,
};
