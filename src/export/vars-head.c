/* SPDX-License-Identifier: BSD-3-Clause */
/* The head and foot of the table of variables on a terminal, and the figures of the skid self-test: see
 * vars-table.h. */
#include "export/vars-table.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/build/causes.h"
#include "analysis/metrics.h"
#include "analysis/report/first-touch.h"
#include "analysis/report/leaks.h"
#include "analysis/report/report.h"
#include "arena/arena.h"
#include "base/path.h"
#include "export/text-cells.h"

#define TOUCHES_PERCENT 5 /* of the time, that first touches take: less is not said */

/* Sums up the samples of all kernels of the self-test, and those on the instruction after the stalled one. */
static void sum_kernels(const json_t *kernels, double *samples, double *next, double *worst)
{
    size_t i;
    json_t *kernel;
    *samples = *next = 0;
    *worst = 100;
    json_array_foreach(kernels, i, kernel)
    {
        double n = json_number_value(json_object_get(kernel, "samples"));
        double percent = json_number_value(json_object_get(kernel, "percent_next"));
        *samples += n;
        *next += n * percent / 100;
        if (n > 0 && percent < *worst)
            *worst = percent;
    }
}

void skid_text(struct buf *out, const char *json)
{
    double samples, next, worst;
    json_t *figures = json_loads(json, 0, NULL);
    const char *rule = json_string_value(json_object_get(figures, "rule"));
    const json_t *kernels = json_object_get(figures, "kernels");
    if (!rule || !json_is_array(kernels)) {
        buf_printf(out, "%s", json);
        json_decref(figures);
        return;
    }
    sum_kernels(kernels, &samples, &next, &worst);
    buf_printf(out, "rule %s", rule);
    if (samples > 0)
        buf_printf(out, ": %.0f %% of %.0f samples lay on the next instruction (worst loop: %.0f %%)",
                   100 * next / samples, samples, worst);
    if (!causes_retire_in_order(json))
        buf_printf(out, "; instructions without access seem to wait, too");
    json_decref(figures);
}

/* Whether the figures say that the rule holds; false for text of another form. */
static bool skid_holds(const char *json)
{
    json_t *figures = json_loads(json, 0, NULL);
    const char *rule = json_string_value(json_object_get(figures, "rule"));
    bool holds = rule && strcmp(rule, "holds") == 0;
    json_decref(figures);
    return holds;
}

/* --- the head --- */

/* Head and foot of the table of variables. */

#define MEANING_PERCENT 5.0 /* of the samples */
#define REGIONS_SHOWN 8
#define REGION_WIDTH 40
#define NAMES_SHOWN 4
#define NOTES_SHOWN 3
#define NOTE_LINES 3 /* of a note on a screen; of a longer one its first sentence */
#define PROFILER_PERCENT 2.0
#define TIGHT_PERCENT 10.0 /* where a screen is full: smaller rows get no words about what they were spent on */
#define PROFILER_MOST 10.0 /* of the CPU time: more is a warning */
#define HIDDEN_PERCENT 10.0
#define COVERED_LEAST 0.7 /* of the time used: from this on down the head says what the samples stand for */
#define CHANCE_DEVIATIONS 4
#define LOSS_PERCENT 1.0 /* of the samples: from this on the head says what was lost, and the foot how */

/* Frees what was put into out; if a part of it is missing, so it is of out. */
static void drop(struct buf *text, struct buf *out)
{
    out->failed = out->failed || text->failed;
    buf_fini(text);
}

/* The programs of the processes, if there are several. */
static void put_programs(const struct export_job *job, struct buf *text)
{
    const struct model *model = job->model;
    struct buf names = {0};
    size_t n = text_programs(job, &names);
    if (model->n_processes > model_count_processes(model)) /* a forked copy of a program is no other one */
        buf_printf(text, " that ran %zu programs", n > 1 ? n : model->n_processes);
    if (n > 1)
        buf_printf(text, " (%s)", names.data ? names.data : "");
    buf_fini(&names);
}

/* How many threads a condition chose: the numbers below are about them. */
static void put_chosen(const struct model *model, struct buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i <= model->n_threads; i++)
        n += !model->is_left_out[i];
    buf_printf(text, ", of which %zu %s chosen", n, n == 1 ? "is" : "are");
}

static void put_program(const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    struct buf text = {0};
    buf_printf(&text, "%s: ", text_program_name(job));
    if (model->runs.n_strings > 1)
        buf_printf(&text, "%zu runs, ", model->runs.n_strings);
    size_t n_processes = model_count_processes(model);
    buf_printf(&text, "%zu process%s", n_processes, n_processes == 1 ? "" : "es");
    put_programs(job, &text);
    size_t n_threads = model_count_threads(model);
    buf_printf(&text, ", %s%zu thread%s", model_has_merged_threads(model) ? "at least " : "", n_threads,
               n_threads == 1 ? "" : "s");
    if (model->is_left_out)
        put_chosen(model, &text);
    if (model->cpu_time_ns)
        buf_printf(&text, ", %.2f s of CPU time", (double)model->cpu_time_ns / 1e9);
    text_labelled(out, job, "program", text.data ? text.data : "");
    drop(&text, out);
}

/* The source in a phrase: the plan up to the first event, without its reasons in parentheses. */
static void put_source(const char *plan, struct buf *text)
{
    static const char by_default[] = "datacentric: ";
    int depth = 0;
    if (strncmp(plan, by_default, strlen(by_default)) == 0)
        plan += strlen(by_default);
    for (const char *p = plan; *p && (*p != ';' || depth); p++) {
        bool opens = *p == '(' || (*p == ' ' && p[1] == '(');
        if (depth == 0 && !opens)
            buf_append(text, p, 1);
        depth += *p == '(' ? 1 : *p == ')' && depth > 0 ? -1 : 0;
    }
}

/* Appends the source, on a screen only if there is room in the line: hpcrun has said it, and -v does. */
static void put_plan(const struct export_job *job, struct buf *text)
{
    struct buf source = {0};
    put_source(job->model->plan, &source);
    size_t width =
        TEXT_LABEL_WIDTH + text_width(text->data ? text->data : "") + 2 + text_width(source.data ? source.data : "");
    if (source.data && (!job->fits_screen || width <= job->columns))
        buf_printf(text, "; %s", source.data);
    text->failed = text->failed || source.failed;
    buf_fini(&source);
}

/* What hpcrun --unsafe-attach has noted in the plan: since when, and what that means for blocks. */
static void put_attached(const struct export_job *job, struct buf *out)
{
    static const char begins[] = "; attached to ";
    const char *noted = job->model->plan ? strstr(job->model->plan, begins) : NULL;
    if (noted)
        text_labelled(out, job, "attached", noted + strlen("; attached "));
}

/* The share of the samples that are the profiler's own work. */
static double profiler_share(const struct report *report)
{
    double share = 0;
    for (size_t i = 0; i < report->n_rows; i++)
        share += strcmp(report->rows[i].name, WAITS_PROFILER) == 0 ? report->rows[i].share : 0;
    return share;
}

/* Whether the profiler took so much that a warning says so. */
static bool is_disturbed(const struct report *report)
{
    double parts[REPORT_CAUSES];
    report_time_causes(report, parts);
    return !report->has_too_few && parts[REPORT_PROFILER] >= PROFILER_MOST;
}

static void put_samples(const struct report *report, const struct export_job *job, struct buf *out)
{
    const char *metric = report->model->metrics[report->metric].name;
    struct buf text = {0};
    if (report->is_leaks) {
        buf_printf(&text, "%.0f of %s", report->total_value, metric);
        text_labelled(out, job, "bytes", text.data ? text.data : "");
        drop(&text, out);
        return;
    }
    buf_printf(&text, "%.0f %s %s: ", report->total_samples, metrics_is_access(metric) ? "with" : "of", metric);
    if (report->has_too_few)
        buf_printf(&text, "too few for shares, which take at least %d", REPORT_SAMPLES_MIN);
    else if (metrics_is_blocked(metric))
        buf_printf(&text, "each wait is measured, and no data are looked up");
    else if (metrics_is_io(metric))
        buf_printf(&text, "each call is measured");
    else if (report->no_access > 0)
        buf_printf(&text,
                   "%.1f %% are operations without access; of the others address found for %.1f %%, variable named "
                   "for %.1f %%",
                   report->no_access, report->recovered, report->named);
    else
        buf_printf(&text, "address found for %.1f %%, variable named for %.1f %%", report->recovered, report->named);
    if (!report->has_too_few && profiler_share(report) >= PROFILER_PERCENT && !is_disturbed(report))
        buf_printf(&text, "; %.1f %% are the profiler's own work", profiler_share(report));
    if (job->model->plan)
        put_plan(job, &text);
    text_labelled(out, job, "samples", text.data ? text.data : "");
    drop(&text, out);
}

/* Whole percents of parts that add up to 100: what rounding leaves goes to those that lost most by it. */
static void round_percents(const double *parts, size_t n, int *percents)
{
    int rest = 100;
    for (size_t i = 0; i < n; i++) {
        percents[i] = (int)floor(parts[i]);
        rest -= percents[i];
    }
    for (; rest > 0 && rest <= (int)n; rest--) {
        size_t most = 0;
        for (size_t i = 1; i < n; i++)
            most = parts[i] - percents[i] > parts[most] - percents[most] ? i : most;
        percents[most]++;
    }
}

/* Puts what the time was spent on, the largest part first. The parts add up to all CPU time. */
static void put_causes(const struct report *report, const struct export_job *job, struct buf *out)
{
    double parts[REPORT_CAUSES], of_samples = 1;
    int percents[REPORT_CAUSES];
    bool is_put[REPORT_CAUSES] = {false};
    struct buf text = {0};
    if (!report->has_causes || report->has_too_few)
        return;
    report_time_causes(report, parts);
    round_percents(parts, REPORT_CAUSES, percents);
    if (report->is_user_only && report->user_s + report->system_s > 0)
        of_samples = report->user_s / (report->user_s + report->system_s);
    for (int n = 0; n < REPORT_CAUSES; n++) {
        enum report_cause most = REPORT_CAUSES;
        for (enum report_cause cause = 0; cause < REPORT_CAUSES; cause++)
            if (!is_put[cause] && (most == REPORT_CAUSES || parts[cause] > parts[most]))
                most = cause;
        is_put[most] = true;
        bool is_memory = most == REPORT_MEMORY, is_unknown = is_memory && report_is_memory_unknown(&report->causes);
        bool is_usual = is_memory || most == REPORT_EXECUTION || most == REPORT_UNVERIFIED;
        if (percents[most] == 0 && !is_usual)
            continue;
        buf_printf(&text, "%s%s", text.len_bytes ? ", " : "", report_cause_words(most));
        if (!is_unknown)
            buf_printf(&text, " %d %%", percents[most]);
        if (is_memory)
            buf_printf(&text, is_unknown ? " unknown (%.0f-%.0f %%)" : " (%.0f-%.0f)",
                       floor(of_samples * report->causes.memory_low), ceil(of_samples * report->causes.memory_high));
    }
    text_labelled(out, job, "causes", text.data ? text.data : "");
    drop(&text, out);
}

static double percent(uint64_t n, const struct event_sum *event)
{
    double all = (double)event->taken + (double)event->fates[FATE_NOT_DELIVERED];
    return all > 0 ? 100 * (double)n / all : 0;
}

/* Number of samples that were taken but not recorded, or were never delivered. */
static uint64_t count_lost(const struct event_sum *event)
{
    uint64_t n = event->fates[FATE_NOT_DELIVERED];
    for (int fate = 0; fate < FATE_TAKEN_MAX; fate++)
        n += fate_is_recorded(fate) ? 0 : event->fates[fate];
    return n;
}

/* Puts how much time the samples stand for if that is far from the time that was used, further than chance explains. */
static void put_coverage(const struct report *report, struct buf *text)
{
    double used_s = report->user_s + (report->is_user_only ? 0 : report->system_s), sampled_s = report->sampled_s;
    double more_s = fmax(used_s, sampled_s), less_s = fmin(used_s, sampled_s);
    double n = report->event ? (double)report->event->taken : 0;
    if (report->event && metrics_is_blocked(report->event->metric))
        return; /* it is time without a processor */
    double chance_s = n > 0 ? CHANCE_DEVIATIONS * sqrt(more_s * sampled_s / n) : 0;
    if (less_s > 0 && less_s < COVERED_LEAST * more_s && more_s - less_s > chance_s)
        buf_printf(text, "; the samples stand for %.2f s, %.0f %% of the %.2f s of CPU time%s", sampled_s,
                   100 * sampled_s / used_s, used_s, report->is_user_only ? " in user mode" : "");
}

/* Whether a note says that the owner of a process let its clocks tick less often (collect/variables.c). */
static bool is_slowed_by_owner(const struct model *model)
{
    for (size_t i = 0; i < model->n_notes; i++)
        if (strstr(model->notes[i], ": its owner had its clocks tick 1/"))
            return true;
    return false;
}

#define SLOWED_LEAST 1.25

/* Puts how much more slowly than was asked for the program was sampled, and why. */
static void put_slowed(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct event_sum *event = report->event;
    double factor = event && event->taken ? 1 + (double)event->n_spared / (double)event->taken : 1;
    struct buf text = {0};
    if (factor < SLOWED_LEAST)
        return;
    bool is_by_owner = is_slowed_by_owner(report->model);
    buf_printf(&text, "sampled at %.0f %% of the rate, %s", 100 / factor,
               is_by_owner ? "which its owner lowered from outside" : "so that this takes no more than its share");
    if (is_by_owner)
        buf_printf(&text, " (hpcrun --control)");
    else if (event->sample_cost_ns >= 10000000)
        buf_printf(&text, ": a sample costs %.0f ms on this machine", (double)event->sample_cost_ns / 1e6);
    else if (event->sample_cost_ns)
        buf_printf(&text, ": a sample costs %.0f us on this machine", (double)event->sample_cost_ns / 1e3);
    text_labelled(out, job, "rate", text.data ? text.data : "");
    drop(&text, out);
}

/* Warns where the profiler takes much of the time, and says what lowers that: notes on small blocks and records of
 * large ones, not the rate of samples. */
static void put_disturbed(const struct report *report, const struct export_job *job, struct buf *out)
{
    double parts[REPORT_CAUSES];
    struct buf text = {0};
    if (!is_disturbed(report))
        return;
    report_time_causes(report, parts);
    buf_printf(&text,
               "the profiler took %.0f %% of the CPU time; what advice gains is a share of the rest. "
               "DATACENTRIC_SMALL_SITES=0 lowers it most (small blocks are one row then), else a larger "
               "DATACENTRIC_MIN_BYTES",
               parts[REPORT_PROFILER]);
    text_labelled(out, job, "warning", text.data ? text.data : "");
    drop(&text, out);
}

/* Whether a note says that the measurement goes on (analysis/load/profile-list.c). */
static bool is_partial_note(const char *note)
{
    return strstr(note, " still runs: this is what it had saved so far") != NULL;
}

static bool is_partial(const struct model *model)
{
    for (size_t i = 0; i < model->n_notes; i++)
        if (is_partial_note(model->notes[i]))
            return true;
    return false;
}

/* Whether a note says that its owner paused it (collect/variables.c). */
static bool is_paused_note(const char *note)
{
    return strstr(note, ": its sampling was paused from outside for ") != NULL;
}

/* Puts what the numbers leave out. */
static void put_missing(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct event_sum *event = report->event;
    double cpu_s = report->user_s + report->system_s;
    struct buf text = {0};
    if (report->is_user_only && cpu_s > 0 && (!report->has_causes || report->has_too_few))
        buf_printf(&text, "; time in the kernel: %.2f s, %.0f %% of the CPU time", report->system_s,
                   100 * report->system_s / cpu_s);
    put_coverage(report, &text);
    if (event && percent(event->fates[FATE_IN_KERNEL], event) >= LOSS_PERCENT)
        buf_printf(&text, "; %llu samples in the kernel", (unsigned long long)event->fates[FATE_IN_KERNEL]);
    if (event && percent(count_lost(event), event) >= LOSS_PERCENT)
        buf_printf(&text, "; %.1f %% of the samples, which were lost", percent(count_lost(event), event));
    if (report->model->n_killed)
        buf_printf(&text, "; the last moments of %u thread%s %s", report->model->n_killed,
                   report->model->n_killed == 1 ? "" : "s",
                   is_partial(report->model)      ? "that may still run"
                   : report->model->n_killed == 1 ? "that was killed"
                                                  : "that were killed");
    if (text.len_bytes)
        text_labelled(out, job, "left out", text.data + 2);
    drop(&text, out);
}

/* Puts the CPU time of threads that no sample can be of. */
static void put_unmeasured(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = report->model;
    double all_ns = (double)model->cpu_time_ns + (double)model->unmeasured_ns;
    struct buf text = {0};
    if (!model->unmeasured_ns || report->is_leaks)
        return;
    buf_printf(&text,
               "<unmeasured threads> used %.2f s, %.0f %% of the CPU time: the program made them without libc, or "
               "they are the kernel's (io_uring). No row has any of that",
               (double)model->unmeasured_ns / 1e9, 100 * (double)model->unmeasured_ns / all_ns);
    text_labelled(out, job, "not seen", text.data ? text.data : "");
    drop(&text, out);
}

/* Puts that the machine was busy, where threads wait for each other: such waits grow by what one of them lacks. */
static void put_busy(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = report->model;
    char text[240];
    if (model->n_threads < 2 || report->is_leaks || model_delay_percent(model) < BUSY_PERCENT)
        return;
    (void)snprintf(text, sizeof text,
                   "its threads could run, but had no processor, for %.2f s beside their %.2f s of CPU time: other "
                   "programs had it, or there are more threads than processors",
                   (double)model->delay_ns / 1e9, (double)model->cpu_time_ns / 1e9);
    text_labelled(out, job, "busy", text);
}

/* Puts what first touches take, where page faults were not sampled: it is in other causes then. */
static void put_touches(const struct report *report, const struct export_job *job, struct buf *out)
{
    double share = first_touch_uncounted(report);
    char text[240];
    if (report->has_too_few || share < TOUCHES_PERCENT)
        return;
    (void)snprintf(text, sizeof text,
                   "%llu page faults take about %.0f %% of the time in user mode, here as execution or memory: with "
                   "FAULTS, as by default, rows say where",
                   (unsigned long long)report->model->n_page_faults, share);
    text_labelled(out, job, "touches", text);
}

/* Whether the note is about an allocator that we do not see and that hides much: then it goes into the head. */
static bool is_head_note(const struct report *report, const char *note)
{
    if (is_partial_note(note) || is_paused_note(note))
        return true;
    return strstr(note, ", where calls are not seen: ") && !report->has_too_few &&
           report_without_block(report) >= HIDDEN_PERCENT;
}

/* Puts why much of the data has no name, and what to do about it. */
static void put_hidden(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = report->model;
    double lost = report->has_too_few ? 0 : report_lost_in_jit(report);
    struct buf text = {0};
    if (lost >= HIDDEN_PERCENT) {
        const char *command = report_without_jit(model->program ? path_last(model->program) : NULL);
        buf_printf(&text,
                   "the data of %.1f %% of the samples: accesses by code that the program made as it ran (JIT), which "
                   "is in no file to be analysed. ",
                   lost);
        if (command)
            buf_printf(&text, "%s avoids this but is slower", command);
        else
            buf_printf(&text, "Run it without JIT if it can, or on a machine whose hardware samples addresses");
        text_labelled(out, job, "lost", text.data ? text.data : "");
    }
    for (size_t i = 0; i < model->n_notes; i++)
        if (is_head_note(report, model->notes[i]))
            text_labelled(out, job,
                          is_partial_note(model->notes[i])  ? "partial"
                          : is_paused_note(model->notes[i]) ? "paused"
                                                            : "hidden",
                          model->notes[i]);
    drop(&text, out);
}

/* If the program marks regions, or its owner phases: how much of the metric each has. */
static void put_regions(const struct report *report, const struct export_job *job, bool of_phases, struct buf *out)
{
    struct region_report regions;
    struct error err;
    struct buf text = {0};
    if (!regions_has_any(report, of_phases) || regions_make(report, of_phases, &regions, &err) != 0)
        return;
    for (size_t i = 0; regions.names.n_strings > 1 && i < regions.n_regions && i < REGIONS_SHOWN; i++) {
        const char *name = regions.regions[i].name;
        if (regions.regions[i].share < 0.05)
            break;
        buf_printf(&text, "%s", i ? ", " : "");
        bool is_known = strcmp(name, REGION_NOT_KNOWN) != 0;
        text_cut(&text, job, !is_known ? "not known" : *name ? name : "outside", REGION_WIDTH);
        buf_printf(&text, " %.1f %%", regions.regions[i].share);
    }
    if (regions.n_regions > REGIONS_SHOWN)
        buf_printf(&text, ", %zu more (--by %s)", regions.n_regions - REGIONS_SHOWN, of_phases ? "phase" : "region");
    if (text.len_bytes)
        text_labelled(out, job, of_phases ? "phases" : "regions", text.data);
    drop(&text, out);
    regions_fini(&regions);
}

void head_put(const struct report *report, const struct export_job *job, struct buf *out)
{
    put_program(job, out);
    put_attached(job, out);
    put_samples(report, job, out);
    put_slowed(report, job, out);
    put_causes(report, job, out);
    head_put_calls(report, job, out);
    put_disturbed(report, job, out);
    put_missing(report, job, out);
    put_unmeasured(report, job, out);
    put_busy(report, job, out);
    put_touches(report, job, out);
    put_hidden(report, job, out);
    put_regions(report, job, false, out);
    put_regions(report, job, true, out);
    hardware_put_summary(report, job, out);
}

/* Puts the machine, and what 100 % is: the part of the CPU time that the samples stand for. */
static void put_times(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = report->model;
    double cpu_s = report->user_s + report->system_s;
    struct buf text = {0};
    if (model->topology)
        text_labelled(out, job, "machine", model->topology);
    if (cpu_s > 0)
        buf_printf(&text, "%.2f s of CPU time in user mode, %.2f s in the kernel", report->user_s, report->system_s);
    if (report->sampled_s > 0 && cpu_s > 0)
        buf_printf(&text, "%sthe samples stand for %.2f s, %.0f %% of the CPU time%s", text.len_bytes ? "; " : "",
                   report->sampled_s, report->sampled_s < cpu_s ? 100 * report->sampled_s / cpu_s : 100,
                   report->is_user_only ? ", and are taken in user mode only" : "");
    if (text.len_bytes)
        text_labelled(out, job, "time", text.data);
    drop(&text, out);
}

/* Puts shares by class, which show many small variables as a whole. */
static void put_classes(const struct report *report, const struct export_job *job, struct buf *out)
{
    double shares[CLASS_COUNT] = {0};
    struct buf text = {0};
    for (size_t i = 0; i < report->n_rows && !report->has_too_few; i++) {
        const struct report_row *row = &report->rows[i];
        bool is_aside = row->wait != REPORT_NOT_WAITING;
        enum variable_class other = row->is_waiting ? CLASS_WAITING : is_aside ? CLASS_UNKNOWN : CLASS_UNATTRIBUTED;
        shares[row->variable ? row->variable->class : row->fate ? CLASS_DROPPED : other] += row->share;
    }
    for (int i = 0; i < CLASS_COUNT; i++)
        if (shares[i] >= 0.05)
            buf_printf(&text, "%s%s %.1f %%", text.len_bytes ? ", " : "", model_class_name((enum variable_class)i),
                       shares[i]);
    if (text.len_bytes)
        text_labelled(out, job, "classes", text.data);
    drop(&text, out);
}

static void put_fates(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    for (int i = 0; report->event && i < FATE_MAX; i++)
        if (report->event->fates[i])
            buf_printf(&text, "%s%llu %s", text.len_bytes ? ", " : "", (unsigned long long)report->event->fates[i],
                       fate_row(i)->name);
    hardware_put_counters(report, &text);
    if (text.len_bytes)
        text_labelled(out, job, "fates", text.data);
    drop(&text, out);
}

static void put_skid(const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    if (job->model->skid)
        skid_text(&text, job->model->skid);
    if (text.len_bytes)
        text_labelled(out, job, "skid test", text.data);
    drop(&text, out);
}

/* Puts how it was measured, for -v. */
static void put_method(const struct report *report, const struct export_job *job, struct buf *out)
{
    if (job->model->program)
        text_labelled(out, job, "path", job->model->program);
    if (job->model->plan)
        text_labelled(out, job, "source", job->model->plan);
    put_times(report, job, out);
    put_classes(report, job, out);
    put_fates(report, job, out);
    fields_put_summary(report, job, out);
    put_skid(job, out);
}

/* Whether something about the samples has to be said even without -v. */
static bool has_trouble(const struct report *report)
{
    const struct event_sum *event = report->event;
    return event && (percent(count_lost(event), event) >= LOSS_PERCENT || event->n_throttles || event->n_truncated ||
                     event->n_collisions || event->running_ns < event->enabled_ns);
}

const char *vars_table_meaning(const struct report *report, const struct report_row *row)
{
    return row->share >= MEANING_PERCENT && !report->has_too_few ? report_meaning(report, row) : NULL;
}

/* Puts one line for each kind of special row that is shown. */
static void put_legend(const struct report *report, const struct export_job *job, size_t n_rows, struct buf *out)
{
    for (size_t i = 0; special_rows_at(i); i++) {
        const struct special_row *special = special_rows_at(i);
        bool is_kernel = strcmp(special->name, SPECIAL_KERNEL) == 0;
        bool is_shown = is_kernel && report_kernel_percent(report) > 0;
        struct buf text = {0};
        for (size_t r = 0; !is_kernel && !is_shown && r < n_rows; r++)
            is_shown = strcmp(report->rows[r].name, special->name) == 0;
        if (!is_shown || job->is_tight)
            continue;
        buf_printf(&text, "%s: %s. %s", special->name, special->means, special->advice);
        if (job->fits_screen && text.data && text_width(text.data) > job->columns) { /* then what it means, alone */
            drop(&text, out);
            buf_printf(&text, "%s: %s", special->name, special->means);
        }
        text_wrapped(out, job, text.data ? text.data : "", 0, 2);
        drop(&text, out);
    }
}

/* The same, where the screen is full of large rows alone. */
static const char *meaning_shown(const struct report *report, const struct export_job *job,
                                 const struct report_row *row)
{
    return job->is_tight && row->share < TIGHT_PERCENT ? NULL : vars_table_meaning(report, row);
}

/* Puts what the causes mean for rows, each meaning once for all rows that it holds for. With -v, and where there are no
 * shares, that stands at the rows or nowhere. */
static void put_meanings(const struct report *report, const struct export_job *job, size_t n_rows, struct buf *out)
{
    for (size_t i = 0; job->fits_screen && i < n_rows; i++) {
        const char *meaning = meaning_shown(report, job, &report->rows[i]);
        bool is_told = false;
        struct buf text = {0};
        for (size_t k = 0; k < i; k++)
            is_told |= meaning && meaning_shown(report, job, &report->rows[k]) == meaning;
        if (!meaning || is_told)
            continue;
        size_t n = 0;
        for (size_t k = i; k < n_rows; k++)
            if (meaning_shown(report, job, &report->rows[k]) == meaning && n++ < NAMES_SHOWN) {
                buf_printf(&text, "%s", n > 1 ? ", " : "");
                text_short_name(&text, report->rows[k].name);
            }
        if (n > NAMES_SHOWN)
            buf_printf(&text, " and %zu more", n - NAMES_SHOWN);
        buf_printf(&text, ": %s", meaning);
        text_wrapped(out, job, text.data ? text.data : "", 0, 2);
        drop(&text, out);
    }
}

/* Puts how many call paths lack callers because a table was not there yet, as it is in the next run. */
static void put_short_paths(const struct model *model, const struct export_job *job, struct buf *out)
{
    double n = (double)model->unwind_stops[ARENA_STOP_NO_TABLE], all = 0;
    char text[256];
    for (size_t i = 0; i < sizeof model->unwind_stops / sizeof *model->unwind_stops; i++)
        all += (double)model->unwind_stops[i];
    /* Where no path is complete, it is not for want of time. */
    if (100 * n < LOSS_PERCENT * all || n <= 0 || !model->unwind_stops[ARENA_STOP_COMPLETE])
        return;
    (void)snprintf(text, sizeof text,
                   "%.0f %% of the call paths lack callers, because the tables for walking them were still being made; "
                   "so may those of blocks. The tables are kept: run it again for complete paths.",
                   100 * n / all);
    text_labelled(out, job, "note", text);
}

/* Puts what the size of blocks that were freed again means, if a row has it. */
static void put_size_legend(const struct report *report, const struct export_job *job, size_t n_rows, struct buf *out)
{
    size_t i = 0;
    struct buf text = {0};
    while (i < n_rows && !report_is_turned_over(&report->rows[i]))
        i++;
    if (i == n_rows)
        return;
    vars_table_put_size(&report->rows[i], &text);
    buf_append(&text, " ", 1);
    vars_table_put_blocks(&report->rows[i], &text);
    buf_printf(&text, ": so many blocks of that mean size, nearly all freed again");
    text_labelled(out, job, "size", text.data ? text.data : "");
    drop(&text, out);
}

/* Puts that nothing can be known about nodes, where that is so. */
static void put_nodes(const struct report *report, const struct export_job *job, struct buf *out)
{
    if (job->model->n_numa_nodes == 1 && !job->is_tight)
        text_labelled(out, job, "NUMA",
                      report->has_hardware && report->all.latency.n_remote
                          ? "the machine shows one node, but its hardware reports accesses to others"
                          : "the machine has one node: near and far memory cannot be seen here");
}

/* Puts a note, on a screen as far as there is room for whole sentences. */
static void put_note(const struct export_job *job, const char *note, struct buf *out)
{
    size_t room = job->columns > 2 * TEXT_LABEL_WIDTH ? job->columns - TEXT_LABEL_WIDTH : job->columns;
    const char *end = strstr(note, ". ");
    char first[400];
    (void)snprintf(first, sizeof first, "%.*s", end ? (int)(end + 1 - note) : (int)strlen(note), note);
    text_labelled(out, job, "note", job->fits_screen && text_width(note) > NOTE_LINES * room ? first : note);
}

/* Puts the notes that are not in the head; on a screen a few of them. */
static void put_notes(const struct report *report, const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    size_t n = 0;
    char text[64];
    for (size_t i = 0; i < model->n_notes; i++) {
        if (is_head_note(report, model->notes[i]) || (n++ >= NOTES_SHOWN && job->fits_screen))
            continue;
        put_note(job, model->notes[i], out);
    }
    (void)snprintf(text, sizeof text, "%zu more (-v shows all)", n - NOTES_SHOWN);
    if (job->fits_screen && n > NOTES_SHOWN)
        text_labelled(out, job, "notes", text);
}

void foot_put(const struct report *report, const struct export_job *job, size_t n_rows, struct buf *out)
{
    const struct model *model = job->model;
    struct buf text = {0};
    put_legend(report, job, n_rows, &text);
    put_meanings(report, job, n_rows, &text);
    hardware_put_legend(report, job, &text);
    put_size_legend(report, job, n_rows, &text);
    put_nodes(report, job, &text);
    put_short_paths(model, job, &text);
    put_notes(report, job, &text);
    if (job->is_verbose) {
        put_method(report, job, &text);
    } else {
        if (has_trouble(report))
            put_fates(report, job, &text);
        if (model->skid && !skid_holds(model->skid))
            put_skid(job, &text);
    }
    if (text.len_bytes)
        buf_printf(out, "\n%s", text.data);
    drop(&text, out);
}
