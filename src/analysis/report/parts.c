/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a report: rows that are no variables, causes, fields, and what the hardware says. See report.h. */
#include "analysis/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/causes.h"
#include "analysis/metrics.h"
#include "analysis/report/code-table.h"
#include "analysis/report/patterns.h"
#include "base/bytes.h"
#include "base/search.h"

#define MODIFIED_PERCENT 10.0 /* of its loads, in another core's cache and modified there ... */
#define MODIFIED_SAMPLES 20   /* ... and its samples */

static const struct special_row rows[] = {
    {SPECIAL_KERNEL, "an address of the kernel", "CPU time in system calls and page faults, which gives no samples",
     "See strace -c -f for the calls."},
    {"<compute>", "no data waited for", "busy with arithmetic or branches, not waiting for data",
     "Change the code at these lines."},
    {WAITING_ROW, NULL, "a thread waited for another one", "Balance the work of threads, or of processes."},
    {WAITS_CALL, "return from the kernel", "on the way back from a system call: part of the kernel's time",
     "Make fewer or larger calls."},
    {"<address lost>", "an access, address unknown", "an access whose address register had changed already",
     "See the lines for its data."},
    {"<small block>", "small, allocated unseen", "small blocks of unknown origin, and what allocators keep beside them",
     "If it is much, see that DATACENTRIC_SMALL_SITES is not 0."},
    {"<no block>", "memory of no recorded block", "memory of no recorded allocation",
     "If a note names an allocator, do what it says."},
    {"<freed>", "blocks that had been freed", "memory of a block that had been freed",
     "Look for a use after free (-fsanitize=address)."},
    {"<null>", "an address near zero", "an address in the first page, for example of a prefetch", "Nothing to do."},
    {"<vdso>", "data that the kernel lends", "data that the kernel lends for its clocks",
     "Ask for the time less often."},
    {"<heap without allocation log>", "a heap that was not followed", "a heap whose allocations were not followed",
     "Measure with hpcrun; link static programs by hpclink."},
    {"<unknown>", "no reason is known", "the profile does not say why no variable was found", "Nothing to do."},
    {"<not data-centric>", "not looked up", "samples for which no data was looked up",
     "hpcquery tree shows their call paths."},
    {ALLOCATOR_ROW, "the allocator itself", "the allocator's work on what it keeps beside and between blocks",
     "Allocate less often: reserve() for containers that grow, buffers that are used again, an arena for small "
     "blocks."},
    {"<profiler>", "the profiler itself", "the profiler's own work and memory",
     "Where most blocks are small, switch off the notes on small blocks (DATACENTRIC_SMALL_SITES=0); else record "
     "fewer blocks (a larger DATACENTRIC_MIN_BYTES)."},
    {"<dropped: reentered>", NULL, "samples that came while the profiler was at work",
     "Record fewer blocks: a larger DATACENTRIC_MIN_BYTES."},
    {"<dropped: no thread>", NULL, "samples on threads that the profiler did not see start", "Nothing to do."},
    {"<dropped: arena full>", NULL, "samples for which there was no memory left", "Run with a larger --memsize."},
    {"<dropped: no recipe>", NULL, "samples in code that was not analysed in time", "Run again: the analysis is kept."},
    {"<dropped: raw full>", NULL, "samples that came faster than their code was analysed",
     "Run again: the analysis is kept."},
    {"<dropped: stopped>", NULL, "samples that came while sampling was switched off", "Nothing to do."},
    {"<dropped: forked>", NULL, "samples in a new process, before it was measured", "Nothing to do."},
    {"<dropped: bad record>", NULL, "samples whose record by the kernel makes no sense",
     "If they are many, report the kernel's version."},
    {"<dropped: max size>", NULL, "samples of threads whose files became too large", "Run with a larger --max-size."},
};

const struct special_row *special_rows_at(size_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

const struct special_row *special_rows_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* --- times --- */

#define KERNEL_MIN 0.005 /* of the CPU time */
#define TICK_S 0.004     /* of kernels that account by ticks, mostly */
#define DEVIATIONS 2     /* within which nearly all errors of counting are */
#define CALL_MOST 20     /* times as long as its way back is a short call: 9 of locks, 18 of writes to files */

/* CPU time in the kernel. What the kernel says itself is mostly counted at its ticks, and a tick in step with the clock
 * of the samples meets the delivery of one each time: a loop without system calls got up to a fifth. But that clock
 * runs in the kernel as well, without giving samples there. So what no sample stands for was the kernel's, or was lost.
 * Of that no more is taken than the kernel says, with the error of so many ticks. */
static double kernel_s(const struct report *report, double reported_s, double cpu_s)
{
    const struct event_sum *event = report->event;
    double n_ticks = cpu_s / TICK_S, part = cpu_s > 0 ? fmin(1, reported_s / cpu_s) : 0;
    double error_s = DEVIATIONS * TICK_S * sqrt(fmax(1, n_ticks * part * (1 - part)));
    double lost_s = report->sampled_s / (double)event->taken * (double)event->fates[FATE_NOT_DELIVERED];
    double rest_s = cpu_s - report->sampled_s - lost_s;
    return fmax(0, fmin(rest_s, reported_s + error_s));
}

void report_set_times(struct report *report)
{
    const struct model *model = report->model;
    const char *name = model->metrics[report->metric].name;
    report->is_leaks = strncmp(name, LEAK_NAMES_PREFIX, strlen(LEAK_NAMES_PREFIX)) == 0;
    bool is_sampled = !report->is_leaks && !metrics_is_blocked(name) && !metrics_is_io(name);
    report->has_too_few = report->event && is_sampled && report->event->taken < REPORT_SAMPLES_MIN;
    if (!metrics_is_time(name) || !report->event)
        return;
    report->sampled_s = report->total_value / 1e6;
    report->is_user_only = report->event->is_user_only;
    report->system_s = (double)model->system_ns / 1e9;
    double reported_s = (double)model->user_ns / 1e9 + report->system_s, cpu_s = reported_s;
    /* a process that was killed reports too little CPU time: it used at least what was sampled */
    if (model->n_killed && reported_s < report->sampled_s)
        cpu_s = report->sampled_s;
    if (report->is_user_only && report->event->taken && reported_s > 0)
        report->system_s = kernel_s(report, report->system_s, cpu_s);
    report->user_s = cpu_s - report->system_s;
    if (report->is_user_only && report->calls_waiting > 0)
        report->system_waiting_s = fmin(report->calls_waiting / report->calls * report->system_s,
                                        CALL_MOST * report->calls_waiting / report->total_value * report->sampled_s);
}

double report_kernel_percent(const struct report *report)
{
    double cpu_s = report->user_s + report->system_s;
    bool is_worth = report->is_user_only && cpu_s > 0 && report->system_s >= KERNEL_MIN * cpu_s;
    return is_worth ? 100 * report->system_s / cpu_s : 0;
}

double report_kernel_alone(const struct report *report)
{
    double percent = report_kernel_percent(report);
    return percent > 0 ? percent * (1 - report->system_waiting_s / report->system_s) : 0;
}

double report_kernel_least(const struct report *report)
{
    double part = report_kernel_alone(report) / 100;
    if (part <= 0 || report->sampled_s <= 0)
        return 0;
    double n = (double)report->event->taken * (report->user_s + report->system_s) / report->sampled_s;
    return 100 * fmax(0, part - DEVIATIONS * sqrt(part * (1 - part) / n));
}

/* --- causes --- */

/* What the rows of a report were spent on, and their order by that: see causes.h. */

#define RESIDENT_PART 0.5
#define LONGER_MOST 1000                         /* times as long: beyond that a measurement is not worth a thought */
#define UNTOLD_SAMPLES (10 * CAUSES_SAMPLES_MIN) /* of a variable: enough to tell how often its lines come back */
#define UNKNOWN_PART 0.25                        /* of the time: with less unverified, memory is known ... */
#define UNKNOWN_TIMES 4.0                        /* ... and where it is not more than so many times memory */

/* Samples without variable. */
static struct cause_sum cause_of_other(const struct report_row *row)
{
    if (row->fate || causes_are_unknown(row->name))
        return (struct cause_sum){.memory_high = 1, .memory_most = 1, .unverified = 1};
    return (struct cause_sum){.execution = 1};
}

/* The parts of a row, as fractions of 1; what no file mentions is not verified. */
static struct cause_sum parts_of(const struct report *report, const struct report_row *row, uint32_t event)
{
    const struct variable *variable = row->variable;
    const struct cause_sum *sum = variable ? causes_of(variable, event) : NULL;
    if (row->is_waiting || row->fate || !variable || variable->class == CLASS_UNATTRIBUTED ||
        variable->class == CLASS_WAITING)
        return cause_of_other(row);
    double known = sum ? sum->memory + sum->execution + sum->unverified : 0, all = known;
    if (report->model->has_samples && variable->samples && (double)variable->samples[report->metric] > known)
        all = (double)variable->samples[report->metric];
    if (!sum || all <= 0)
        return (struct cause_sum){.memory_high = 1, .memory_most = 1, .unverified = 1};
    return (struct cause_sum){.memory = sum->memory / all,
                              .memory_low = sum->memory_low / all,
                              .memory_high = (sum->memory_high + all - known) / all,
                              .memory_least = sum->memory_least / all,
                              .memory_most = (sum->memory_most + all - known) / all,
                              .execution = sum->execution / all,
                              .unverified = (sum->unverified + all - known) / all,
                              .resident = sum->resident / all,
                              .longer = sum->longer};
}

static bool knows_causes(const struct report *report, uint32_t event)
{
    for (size_t i = 0; i < report->model->n_variables; i++)
        if (causes_of(&report->model->variables[i], event))
            return true;
    return false;
}

int report_add_causes(struct report *report, struct error *err)
{
    const struct model *model = report->model;
    bool is_own = model->n_events && report->event >= model->events && report->event < model->events + model->n_events;
    uint32_t event = is_own ? (uint32_t)(report->event - model->events) : 0;
    struct cause_sum *all = &report->causes;
    if (!is_own || report->is_hardware || !knows_causes(report, event))
        return 0;
    report->has_causes = true;
    for (size_t i = 0; i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        struct cause_sum part = parts_of(report, row, event), *sum = &row->causes;
        *sum = (struct cause_sum){.memory = row->share * part.memory,
                                  .memory_low = row->share * part.memory_low,
                                  .memory_high = row->share * part.memory_high,
                                  .memory_least = row->share * part.memory_least,
                                  .memory_most = row->share * part.memory_most,
                                  .execution = row->share * part.execution,
                                  .unverified = row->share * part.unverified,
                                  .resident = row->share * part.resident,
                                  .longer = part.longer};
    }
    int code = shared_lines_add_causes(report, err);
    if (code != 0 || (code = first_touch_add_causes(report, err)) != 0)
        return code;
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct cause_sum *sum = &report->rows[i].causes;
        all->memory += sum->memory;
        all->memory_low += sum->memory_low;
        all->memory_high += sum->memory_high;
        all->execution += sum->execution;
        all->unverified += sum->unverified;
        all->first_touch += sum->first_touch;
        all->resident += sum->resident;
    }
    all->memory_least = all->memory_low; /* what a variable saves at another's cost is the sum's own */
    all->memory_most = all->memory_high;
    return 0;
}

double report_more_seconds(const struct report *report, const struct report_row *row)
{
    double longer = row->causes.longer;
    return report->has_causes && longer > 1 && longer < LONGER_MOST ? (longer - 1) * report->sampled_s : 0;
}

bool report_is_memory_unknown(const struct cause_sum *sum)
{
    double all = sum->memory + sum->execution + sum->unverified;
    return sum->unverified > UNKNOWN_PART * all && sum->unverified > UNKNOWN_TIMES * sum->memory;
}

static const struct {
    const char *words, *name;
} cause_texts[REPORT_CAUSES] = {
    [REPORT_MEMORY] = {"waiting for memory", "memory"},
    [REPORT_EXECUTION] = {"execution", "execution"},
    [REPORT_THREADS] = {"waiting for threads", "threads"},
    [REPORT_KERNEL] = {"kernel", "kernel"},
    [REPORT_ALLOCATOR] = {"allocator", "allocator"},
    [REPORT_PROFILER] = {"profiler", "profiler"},
    [REPORT_UNVERIFIED] = {"unverified", "unverified"},
    [REPORT_FIRST_TOUCH] = {"first touches of pages", "first_touch"},
};

const char *report_cause_words(enum report_cause cause)
{
    return cause_texts[cause].words;
}

const char *report_cause_name(enum report_cause cause)
{
    return cause_texts[cause].name;
}

enum report_cause report_aside(const struct report_row *row)
{
    bool is_no_place = report_is_special(row);
    return row->is_waiting                                          ? REPORT_THREADS
           : row->variable && row->variable->class == CLASS_WAITING ? REPORT_THREADS
           : is_no_place && strcmp(row->name, SPECIAL_KERNEL) == 0  ? REPORT_KERNEL
           : is_no_place && strcmp(row->name, WAITS_CALL) == 0      ? REPORT_KERNEL
           : is_no_place && strcmp(row->name, ALLOCATOR_ROW) == 0   ? REPORT_ALLOCATOR
           : is_no_place && strcmp(row->name, WAITS_PROFILER) == 0  ? REPORT_PROFILER
                                                                    : REPORT_CAUSES;
}

/* How much of a row went into a cause, percent of all samples. */
static double part_of(const struct report_row *row, enum report_cause cause)
{
    enum report_cause aside = report_aside(row);
    if (aside != REPORT_CAUSES && cause != REPORT_FIRST_TOUCH)
        return aside == cause ? row->share - row->causes.first_touch : 0;
    return cause == REPORT_MEMORY        ? row->causes.memory
           : cause == REPORT_EXECUTION   ? row->causes.execution
           : cause == REPORT_UNVERIFIED  ? row->causes.unverified
           : cause == REPORT_FIRST_TOUCH ? row->causes.first_touch
                                         : 0;
}

void report_time_causes(const struct report *report, double percents[REPORT_CAUSES])
{
    double cpu_s = report->user_s + report->system_s;
    double kernel = report->is_user_only && cpu_s > 0 ? 100 * report->system_s / cpu_s : 0;
    double waiting = kernel > 0 ? 100 * report->system_waiting_s / cpu_s : 0;
    for (enum report_cause cause = 0; cause < REPORT_CAUSES; cause++) {
        percents[cause] = 0;
        for (size_t i = 0; report->has_causes && i < report->n_rows; i++)
            percents[cause] += part_of(&report->rows[i], cause) * (1 - kernel / 100);
    }
    percents[REPORT_KERNEL] += report->has_causes ? kernel - waiting : 0;
    percents[REPORT_THREADS] += report->has_causes ? waiting : 0;
}

/* The time at a row that may be gained by changing something there. */
static double at_stake(const struct report_row *row)
{
    return report_is_special(row) ? row->share : row->causes.memory + row->causes.unverified + row->causes.first_touch;
}

static int compare_rows(const void *a, const void *b)
{
    const struct report_row *x = a, *y = b;
    double x_waits = at_stake(x), y_waits = at_stake(y);
    if (x_waits != y_waits)
        return x_waits > y_waits ? -1 : 1;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->site, y->site);
}

void report_order_by_memory(struct report *report)
{
    double percents[REPORT_CAUSES];
    enum report_cause most = REPORT_MEMORY;
    size_t first = 0;
    if (!report->has_causes || !report->n_rows)
        return;
    qsort(report->rows, report->n_rows, sizeof *report->rows, compare_rows);
    report_time_causes(report, percents);
    for (enum report_cause cause = 0; cause < REPORT_CAUSES; cause++)
        most = percents[cause] > percents[most] ? cause : most;
    for (size_t i = 0; i < report->n_rows; i++)
        first = part_of(&report->rows[i], most) > part_of(&report->rows[first], most) ? i : first;
    struct report_row row = report->rows[first];
    memmove(&report->rows[1], &report->rows[0], first * sizeof row);
    report->rows[0] = row;
}

const struct report_aside *report_asides(const struct report *report, int64_t wait, size_t *n)
{
    const struct search_key key = SEARCH_KEY(struct report_aside, wait);
    if (wait == REPORT_NOT_WAITING) {
        *n = 0;
        return NULL;
    }
    size_t first = search_below(report->asides, report->n_asides, key, (uint64_t)wait);
    *n = search_below(report->asides, report->n_asides, key, (uint64_t)wait + 1) - first;
    return report->asides + first;
}

bool report_is_of_event(const struct report *report, uint32_t event)
{
    const struct event_sum *of = &report->model->events[event];
    return report->event == of || (report->event == &report->events && of->has_data_source);
}

uint64_t report_samples_of(const struct report *report, const struct variable *variable)
{
    return report->model->has_samples && variable->samples ? variable->samples[report->metric] : 0;
}

uint64_t report_inexact_samples_of(const struct report *report, const struct variable *variable)
{
    const struct model *model = report->model;
    size_t first = 0;
    while (first < model->n_events && !model->events[first].has_address)
        first++;
    return first < model->n_events && report->event == &model->events[first] ? variable->n_inexact : 0;
}

/* Why most of the time at a variable is not verified. */
static const char *why_unverified(const struct report *report, const struct variable *variable)
{
    double n = (double)report_samples_of(report, variable), n_untold = 0;
    uint32_t event = (uint32_t)(report->event - report->model->events);
    for (size_t i = 0; i < variable->n_walks; i++) {
        const struct variable_walk *walk = &variable->walks[i];
        if (walk->event == event && (walk->kind == PATTERN_UNKNOWN || walk->kind == PATTERN_FED))
            n_untold += walk->samples;
    }
    if (n > 0 && (double)report_inexact_samples_of(report, variable) > RESIDENT_PART * n)
        return "not verified: no exact addresses, since the instructions overwrite a register of their own address";
    if (n > 0 && n < CAUSES_SAMPLES_MIN)
        return "not verified: too few samples to judge the footprint; measure longer";
    if (n > 0 && n_untold > RESIDENT_PART * n)
        return "not verified: how most of the instructions walk through memory is not known";
    if (n > UNTOLD_SAMPLES)
        return "not verified: the samples do not show whether its lines were near when they were used";
    return "not verified: too few repeated cache lines at each instruction to judge the footprint; measure longer";
}

const char *report_meaning(const struct report *report, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    const struct variable *variable = row->variable;
    bool is_data = variable && variable->class != CLASS_UNATTRIBUTED && variable->class != CLASS_WAITING;
    if (!report->has_causes || !is_data || row->share <= 0)
        return NULL;
    if (row->is_shared[SHARING_FALSE])
        return "its cache lines may go from core to core: threads use different bytes of them (hpcquery sharing)";
    if (row->is_shared[SHARING_TRUE])
        return "its cache lines may go from core to core: several threads write the same bytes (hpcquery sharing)";
    if (row->is_shared[SHARING_BOTH])
        return "its cache lines may go from core to core: threads use the same bytes of them, and different ones "
               "(hpcquery sharing)";
    if (row->on_shared_lines > RESIDENT_PART * row->share)
        return "its cache lines may go from core to core: threads share them, and one writes (hpcquery sharing)";
    if (report_is_memory_unknown(sum))
        return why_unverified(report, variable);
    if (sum->resident > RESIDENT_PART * row->share)
        return "resident in the core's caches: change the arithmetic, not the data";
    if (sum->execution > RESIDENT_PART * row->share)
        return "execution that the data only feed: change the arithmetic, not the data";
    if (sum->unverified > RESIDENT_PART * row->share)
        return why_unverified(report, variable);
    return NULL;
}

/* --- fields --- */

/* The fields of the rows of the table of variables: how the samples of a row are distributed over them, how many have a
 * type at all. */

uint32_t report_event_of_fields(const struct report *report)
{
    const struct model *model = report->model;
    uint32_t first = UINT32_MAX;
    for (size_t v = 0; v < report->n_variables; v++)
        for (size_t i = 0; i < report->variables[v].n_fields; i++) {
            uint32_t event = report->variables[v].fields[i].event;
            if (event >= model->n_events)
                continue;
            if (strcmp(model->events[event].metric, model->metrics[report->metric].name) == 0)
                return event;
            first = event < first ? event : first;
        }
    return first;
}

static bool is_of_row(const struct report_row *row, const struct variable_field *field)
{
    uint32_t part = row->part ? (uint32_t)(row->part - row->variable->parts) : FIELD_NO_PART;
    return field->part == part;
}

static int compare_fields(const void *a, const void *b)
{
    const struct report_field *x = a, *y = b;
    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    if (x->offset_bytes != y->offset_bytes)
        return x->offset_bytes < y->offset_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool add_field(const struct report *report, struct report_row *row, const struct variable_field *from)
{
    if (!vec_reserve(&row->fields, &row->cap_fields, row->n_fields + 1, sizeof *row->fields))
        return false;
    struct report_field *field = &row->fields[row->n_fields];
    const char *path = model_text(report->model, from->name);
    *field = (struct report_field){.path = path,
                                   .type = model_text(report->model, from->type),
                                   .flags = from->flags,
                                   .offset_bytes = from->offset_bytes,
                                   .size_bytes = from->size_bytes,
                                   .samples = (double)from->samples};
    if (asprintf(&field->name, "%s%s%s", row->name, from->flags & FIELD_UNTYPED ? " " : "", path) < 0)
        return false;
    row->n_fields++;
    return true;
}

static bool fill_row(const struct report *report, uint32_t event, struct report_row *row)
{
    const struct variable *variable = row->variable;
    double total = 0;
    row->type = model_text(report->model, row->part ? row->part->type : variable->type);
    row->element_bytes = row->part ? row->part->element_bytes : variable->element_bytes;
    row->type_source = model_type_source_name((enum type_source)variable->type_source);
    for (size_t i = 0; i < variable->n_fields; i++)
        if (variable->fields[i].event == event && is_of_row(row, &variable->fields[i])) {
            if (!add_field(report, row, &variable->fields[i]))
                return false;
            total += (double)variable->fields[i].samples;
        }
    for (size_t i = 0; i < row->n_fields; i++) {
        row->fields[i].fraction = row->fields[i].samples / total;
        row->fields[i].share = row->share * row->fields[i].fraction;
    }
    if (row->n_fields)
        qsort(row->fields, row->n_fields, sizeof *row->fields, compare_fields);
    return true;
}

static bool is_data(const struct variable *variable)
{
    return variable && (variable->class <= CLASS_STACK);
}

int report_add_fields(struct report *report, struct error *err)
{
    uint32_t event = report_event_of_fields(report);
    double in_data = 0;
    if (event == UINT32_MAX)
        return 0;
    report->has_fields = true;
    for (size_t i = 0; i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        if (!row->variable)
            continue;
        if (!fill_row(report, event, row))
            return error_memory(err);
        in_data += is_data(row->variable) ? row->share : 0;
        for (size_t f = 0; f < row->n_fields; f++)
            if (!(row->fields[f].flags & FIELD_UNTYPED)) {
                report->typed += row->fields[f].share;
                report->typed_by[row->variable->type_source] += row->fields[f].share;
            }
    }
    report->typed = in_data > 0 ? 100 * report->typed / in_data : 0;
    for (int i = 0; i < TYPE_SOURCES; i++)
        report->typed_by[i] = in_data > 0 ? 100 * report->typed_by[i] / in_data : 0;
    return 0;
}

const char *report_path_in_element(const char *path, uint32_t flags)
{
    while (!(flags & FIELD_UNTYPED) && (*path == '[' || *path == '(')) {
        const char *end = strchr(path, *path == '[' ? ']' : ')');
        if (!end)
            break;
        path = end + 1;
    }
    return path;
}

bool report_merge_fields(struct variable *into, const struct variable *from)
{
    if (!into->type) {
        into->type = from->type;
        into->type_source = from->type_source;
        into->element_bytes = from->element_bytes;
    }
    for (size_t i = 0; i < from->n_fields; i++)
        if (!model_add_field(into, &from->fields[i], NULL))
            return false;
    return true;
}

/* --- what the hardware says --- */

/* The hardware's part of the table of variables: derived metrics for each row and for all accesses together, and the
 * events that they come from. */

static size_t count_rows(void)
{
    size_t n = 0;
    while (metrics_row(n))
        n++;
    return n;
}

/* The event whose latencies a report about this metric shows: its own, else all events. */
static uint32_t latency_event(const struct report *report)
{
    const struct model *model = report->model;
    for (uint32_t i = 0; i < model->n_events; i++)
        if (model->events[i].has_data_source &&
            strcmp(model->events[i].metric, model->metrics[report->metric].name) == 0)
            return i;
    return UINT32_MAX;
}

/* Sums up all events that describe their accesses. */
static void sum_events(struct report *report)
{
    const struct model *model = report->model;
    struct event_sum *sum = &report->events;
    *sum = (struct event_sum){.metric = model->metrics[report->metric].name};
    for (size_t i = 0; i < model->n_events; i++) {
        const struct event_sum *event = &model->events[i];
        if (!event->has_data_source)
            continue;
        sum->taken += event->taken;
        sum->overflows += event->overflows;
        sum->enabled_ns += event->enabled_ns;
        sum->running_ns += event->running_ns;
        sum->n_throttles += event->n_throttles;
        sum->n_no_metric += event->n_no_metric;
        sum->n_truncated += event->n_truncated;
        sum->n_collisions += event->n_collisions;
        sum->n_spared += event->n_spared;
        sum->sample_cost_ns = event->sample_cost_ns > sum->sample_cost_ns ? event->sample_cost_ns : sum->sample_cost_ns;
        sum->has_data_source = true;
        for (int fate = 0; fate < FATE_MAX; fate++)
            sum->fates[fate] += event->fates[fate];
    }
    if (sum->has_data_source)
        report->event = sum;
}

/* All derived metrics [n], malloc'ed. */
static double *derive(const struct metric_input *input, size_t n)
{
    double *values = calloc(n, sizeof *values);
    for (size_t i = 0; values && i < n; i++)
        values[i] = metrics_row(i)->value(metrics_row(i), input);
    return values;
}

/* What every row needs. */
struct derived_inputs {
    struct metric_columns columns;
    uint32_t event;
    size_t n_derived;
};

static bool fill_hardware(const struct report *report, struct report_row *row, const struct derived_inputs *inputs)
{
    struct metric_input input = {.work = report->all.work};
    if (!row->variable || row->part)
        return true;
    metrics_fill(report->model, &inputs->columns, row->variable->scopes, row->variable->n_scopes, &input);
    metrics_add_latency(row->variable->latencies, row->variable->n_latencies, inputs->event, &input.latency);
    row->derived = derive(&input, inputs->n_derived);
    return row->derived != NULL;
}

/* The costs of the program, from the code trees, since the data-centric tree repeats them. */
static void fill_all(struct report *report, const struct derived_inputs *inputs)
{
    const struct model *model = report->model;
    const uint32_t top = 0;
    int64_t instructions = metrics_instructions(model);
    metrics_fill(model, &inputs->columns, &top, 1, &report->all);
    report->is_work_counted = instructions >= 0;
    report->all.work = instructions >= 0 ? model_value(model, 0, (size_t)instructions) : report->all.counts[MEM_LOAD];
    for (size_t i = 0; i < model->n_variables; i++)
        metrics_add_latency(model->variables[i].latencies, model->variables[i].n_latencies, inputs->event,
                            &report->all.latency);
}

void report_place_accesses(const struct report *report, struct variable *variable)
{
    const struct model *model = report->model;
    size_t n = model->n_numa_nodes;
    if (!variable->places || !metrics_is_access(model->metrics[report->metric].name))
        return;
    for (size_t i = 0; i < model->n_events; i++) {
        int64_t metric = model->events[i].has_data_source ? model_metric(model, model->events[i].metric) : -1;
        for (size_t node = 0; metric >= 0 && node < n; node++)
            variable->places[report->metric * n + node] += variable->places[(size_t)metric * n + node];
    }
}

/* The row's samples in a metric of that name, 0 when there is none. */
static double samples_named(const struct report *report, const struct report_row *row, const char *name)
{
    int64_t metric = model_metric(report->model, name);
    return metric < 0 ? 0 : report_samples(report, row, (size_t)metric);
}

double report_is_seen_modified(const struct report *report, const struct report_row *row, double *loads)
{
    *loads = report->has_hardware && !row->part && !report_is_special(row) ? samples_named(report, row, "MEM-Load") : 0;
    if (!(*loads > 0))
        return 0;
    double modified = samples_named(report, row, "MEM-hitm-local") + samples_named(report, row, "MEM-hitm-rmt");
    return modified >= MODIFIED_SAMPLES && 100 * modified >= MODIFIED_PERCENT * *loads ? modified : 0;
}

int report_add_hardware(struct report *report, struct error *err)
{
    const struct model *model = report->model;
    bool is_access = metrics_is_access(model->metrics[report->metric].name), ok = true;
    report->has_hardware = metrics_has_hardware(model);
    if (is_access)
        sum_events(report);
    if (!report->has_hardware)
        return 0;
    report->is_hardware = is_access || (report->event && report->event->has_data_source);
    struct derived_inputs inputs = {.event = latency_event(report), .n_derived = count_rows()};
    metrics_columns(model, &inputs.columns);
    fill_all(report, &inputs);
    report->derived = derive(&report->all, inputs.n_derived);
    ok = report->derived != NULL;
    for (size_t i = 0; ok && i < report->n_rows; i++)
        ok = fill_hardware(report, &report->rows[i], &inputs);
    return ok ? 0 : error_memory(err);
}

/* --- types, split --- */

/* Rows of types and of their fields, for what splits a report by threads, places or code: fields have their share of
 * each scope, as locus.db counts it. */

struct type_maker {
    const struct report *report;
    struct split_types *types;
    struct split_fields parts; /* how the fields are split */
    struct slots known_fields;
};

static uint64_t hash_of_split_type(const void *item)
{
    const struct split_type *type = item;
    return bytes_hash_text(BYTES_HASH_START ^ type->element_bytes, type->name);
}

static bool is_same_split_type(const void *one, const void *other)
{
    const struct split_type *a = one, *b = other;
    return a->element_bytes == b->element_bytes && strcmp(a->name, b->name) == 0;
}

static const struct slots_kind type_kind = {sizeof(struct split_type), hash_of_split_type, is_same_split_type};

static int compare_split_types(const void *a, const void *b)
{
    const struct split_type *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The type of the row of the report, or its name where it is no variable, with its value added, 1 + its number; 0 when
 * out of memory. */
static uint32_t add_to_type(struct type_maker *maker, struct slots *slots, const struct report_row *row)
{
    bool is_data = !report_is_special(row), is_known = is_data && row->type && *row->type;
    const struct split_type like = {.name = is_known  ? row->type
                                            : is_data ? ""
                                                      : row->name,
                                    .element_bytes = is_known ? row->element_bytes : 0,
                                    .is_special = !is_data,
                                    .number = maker->types->n};
    size_t index = slots_put(slots, &type_kind, &maker->types->types, &maker->types->n, &maker->types->capacity, &like);
    if (index == SLOTS_NONE)
        return 0;
    maker->types->types[index].value += row->value;
    return (uint32_t)index + 1;
}

/* The type that each row of the report counts for [n_rows], 1 + its number by value. */
static bool find_types(struct type_maker *maker, uint32_t *type_of)
{
    struct slots slots = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < maker->report->n_rows; i++) {
        type_of[i] = add_to_type(maker, &slots, &maker->report->rows[i]);
        ok = type_of[i] != 0;
    }
    slots_fini(&slots);
    if (maker->types->n)
        qsort(maker->types->types, maker->types->n, sizeof *maker->types->types, compare_split_types);
    uint32_t *place_of = calloc(maker->types->n + 1, sizeof *place_of);
    for (size_t i = 0; place_of && i < maker->types->n; i++)
        place_of[maker->types->types[i].number] = (uint32_t)i + 1;
    for (size_t i = 0; ok && place_of && i < maker->report->n_rows; i++)
        type_of[i] = place_of[type_of[i] - 1];
    ok = ok && place_of;
    free(place_of);
    return ok;
}

/* --- fields of types --- */

static uint64_t hash_of_split_field(const void *item)
{
    const struct split_field *field = item;
    return bytes_hash_text(BYTES_HASH_START ^ field->type, field->path) + field->offset_bytes + field->flags;
}

static bool is_same_split_field(const void *one, const void *other)
{
    const struct split_field *a = one, *b = other;
    return a->type == b->type && a->flags == b->flags && a->offset_bytes == b->offset_bytes &&
           strcmp(a->path, b->path) == 0;
}

static const struct slots_kind field_kind = {sizeof(struct split_field), hash_of_split_field, is_same_split_field};

/* Index of a field of the type, added when new; SLOTS_NONE when out of memory. */
static size_t find_field(struct type_maker *maker, uint32_t type, const char *path, uint32_t flags,
                         uint64_t offset_bytes)
{
    const struct split_field like = {
        .type = type, .flags = flags, .path = report_path_in_element(path, flags), .offset_bytes = offset_bytes};
    return slots_put(&maker->known_fields, &field_kind, &maker->types->fields, &maker->types->n_fields,
                     &maker->types->cap_fields, &like);
}

static bool add_part(struct split_part **parts, size_t *n, size_t *capacity, uint32_t scope, size_t field,
                     double fraction)
{
    if (field == SLOTS_NONE || !vec_reserve(parts, capacity, *n + 1, sizeof **parts))
        return false;
    (*parts)[(*n)++] = (struct split_part){scope, (uint32_t)field, fraction};
    return true;
}

/* The fields of a row of the report, which is of a type. */
static bool add_fields_of_row(struct type_maker *maker, uint32_t row, uint32_t type)
{
    const struct report_row *of = &maker->report->rows[row];
    bool ok = true;
    for (size_t i = 0; ok && i < of->n_fields; i++) {
        const struct report_field *field = &of->fields[i];
        size_t index = find_field(maker, type, field->path, field->flags, field->offset_bytes);
        ok = add_part(&maker->parts.of_rows, &maker->parts.n_of_rows, &maker->parts.cap_of_rows, row, index,
                      field->fraction);
        if (ok)
            maker->types->fields[index].value += of->value * field->fraction;
    }
    return ok;
}

/* The row of the report for a part of a variable of the model, 1 + its index; 0: none. first_of: the first row of
 * each variable of the report; next_of: the next one of each row; all + 1. */
static uint32_t row_of_part(const struct type_maker *maker, const uint32_t *first_of, const uint32_t *next_of,
                            uint32_t variable, uint32_t part)
{
    uint32_t row = first_of[maker->report->variable_of[variable]];
    for (; row; row = next_of[row - 1]) {
        const struct report_row *of = &maker->report->rows[row - 1];
        if (!of->part || (uint32_t)(of->part - of->variable->parts) == part)
            return row;
    }
    return 0;
}

/* How the fields share the scopes from counts[first] on, which are one; *end: the count behind it. */
static bool add_fields_of_scope(struct type_maker *maker, const uint32_t *type_of, const uint32_t *first_of,
                                const uint32_t *next_of, uint32_t event, size_t first, size_t *end)
{
    const struct model *model = maker->report->model;
    const struct field_count *counts = model->field_counts, *at = &counts[first];
    const struct variable *variable = &model->variables[at->variable];
    double all = 0;
    bool ok = true;
    *end = model_counts_end(model, first);
    for (size_t i = first; i < *end; i++) {
        const struct variable_field *field = &variable->fields[counts[i].field];
        bool is_shared = field->event == event && variable_shares_field(variable, field);
        all += is_shared ? (double)counts[i].n_samples : 0;
    }
    if (report_wait(maker->report, &maker->report->variables[maker->report->variable_of[at->variable]], at->scope) !=
        REPORT_NOT_WAITING)
        return true;
    for (size_t i = first; ok && i < *end; i++) {
        const struct variable_field *field = &variable->fields[counts[i].field];
        bool is_shared = field->event == event && variable_shares_field(variable, field);
        uint32_t row = is_shared ? row_of_part(maker, first_of, next_of, at->variable, field->part) : 0;
        if (!row || report_is_special(&maker->report->rows[row - 1]) || all <= 0)
            continue;
        size_t index =
            find_field(maker, type_of[row - 1] - 1, model_text(model, field->name), field->flags, field->offset_bytes);
        ok = add_part(&maker->parts.of_scopes, &maker->parts.n_of_scopes, &maker->parts.cap_of_scopes, at->scope, index,
                      (double)counts[i].n_samples / all);
    }
    return ok;
}

static int compare_parts(const void *a, const void *b)
{
    const struct split_part *x = a, *y = b;
    if (x->scope != y->scope)
        return x->scope < y->scope ? -1 : 1;
    return x->field < y->field ? -1 : x->field > y->field;
}

/* Finds the fields of the types, and how they share scopes and rows. Older databases do not know that. */
static bool find_fields(struct type_maker *maker, const uint32_t *type_of)
{
    const struct report *report = maker->report;
    uint32_t event = report_event_of_fields(report);
    uint32_t *first_of = calloc(report->n_variables + 1, sizeof *first_of);
    uint32_t *next_of = calloc(report->n_rows + 1, sizeof *next_of);
    bool ok = first_of && next_of;
    for (uint32_t i = 0; ok && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        if (!row->variable)
            continue;
        next_of[i] = first_of[row->variable - report->variables];
        first_of[row->variable - report->variables] = i + 1;
        if (report->model->n_field_counts && !report_is_special(row))
            ok = add_fields_of_row(maker, i, type_of[i] - 1);
    }
    for (size_t i = 0, end; ok && event != UINT32_MAX && i < report->model->n_field_counts; i = end)
        ok = add_fields_of_scope(maker, type_of, first_of, next_of, event, i, &end);
    if (maker->parts.n_of_scopes)
        qsort(maker->parts.of_scopes, maker->parts.n_of_scopes, sizeof *maker->parts.of_scopes, compare_parts);
    maker->parts.n = maker->types->n_fields;
    free(first_of);
    free(next_of);
    return ok;
}

static int compare_fields_of(const void *a, const void *b, void *context)
{
    const struct split_field *fields = context, *x = &fields[*(const uint32_t *)a], *y = &fields[*(const uint32_t *)b];
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->offset_bytes != y->offset_bytes ? (x->offset_bytes < y->offset_bytes ? -1 : 1) : strcmp(x->path, y->path);
}

/* Puts the fields into the order in which they are shown; row_of [n_rows + n_fields] receives where the rows of the
 * split go, 1 + index: those of the report into types, and fields behind these. */
static bool order_rows(struct type_maker *maker, const uint32_t *type_of, uint32_t *row_of)
{
    size_t n = maker->types->n_fields, n_rows = maker->report->n_rows;
    uint32_t *order = calloc(n + 1, sizeof *order);
    struct split_field *fields = calloc(n + 1, sizeof *fields);
    bool ok = order && fields;
    for (uint32_t i = 0; ok && i < n; i++)
        order[i] = i;
    if (ok && n)
        qsort_r(order, n, sizeof *order, compare_fields_of, maker->types->fields);
    for (size_t i = 0; ok && i < n_rows; i++)
        row_of[i] = type_of[i];
    for (size_t i = 0; ok && i < n; i++) {
        fields[i] = maker->types->fields[order[i]];
        row_of[n_rows + order[i]] = (uint32_t)(maker->types->n + i) + 1;
    }
    free(order);
    if (ok) {
        free(maker->types->fields);
        maker->types->fields = fields;
    }
    return ok;
}

/* Where statements are split, the values of the fields are what they have of these. */
static void sum_fields(const struct split *split, size_t n_rows, struct split_types *types)
{
    for (size_t i = 0; i < types->n_fields; i++)
        types->fields[i].value = 0;
    for (size_t i = 0; i < split->n_cells; i++) {
        const struct split_cell *cell = &split->cells[i];
        if (cell->row >= n_rows && cell->row < split->n_rows)
            types->fields[cell->row - n_rows].value += cell->value;
    }
}

int split_types_make(const struct report *report, enum split_by by, const struct value_source *values,
                     struct split_types *types, struct split *split, struct error *err)
{
    struct type_maker maker = {.report = report, .types = types};
    uint32_t *type_of = calloc(report->n_rows + 1, sizeof *type_of), *row_of = NULL;
    *types = (struct split_types){0};
    *split = (struct split){0};
    bool ok = type_of && find_types(&maker, type_of) && find_fields(&maker, type_of) &&
              (row_of = calloc(report->n_rows + types->n_fields + 1, sizeof *row_of));
    int code = ok ? split_variables(report, by, values, &maker.parts, split, err) : error_memory(err);
    if (code == 0 && !split_by_is_place(by))
        sum_fields(split, report->n_rows, types);
    if (code == 0 && !order_rows(&maker, type_of, row_of))
        code = error_memory(err);
    if (code == 0)
        code = split_join_rows(split, row_of, types->n + types->n_fields, err);
    free(type_of);
    free(row_of);
    free(maker.parts.of_scopes);
    free(maker.parts.of_rows);
    slots_fini(&maker.known_fields);
    if (code != 0) {
        split_types_fini(types);
        split_fini(split);
    }
    return code;
}

void split_types_fini(struct split_types *types)
{
    free(types->types);
    free(types->fields);
    *types = (struct split_types){0};
}
