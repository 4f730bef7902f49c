/* SPDX-License-Identifier: BSD-3-Clause */
/* How threads use variables, and which cache lines they share: for a terminal, as CSV and as JSON. */
#include "analysis/report/code-table.h"
#include "analysis/report/first-touch.h"
#include "analysis/report/patterns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define CALLERS_MOST 5 /* of an access, in text */
#define JSON_PATH_MOST 256

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static bool is_shown(const struct export_job *job, const struct pattern_row *row)
{
    return job->subject ? strcmp(row->row->name, job->subject) == 0 : row->row->share >= job->least;
}

static const char *order_words(const struct pattern_row *row)
{
    static const char *const words[] = {"not known", "in order", "irregular"};
    return row->step_bytes ? "in steps" : words[row->order];
}

/* --- text --- */

static void put_evidence(const struct pattern_row *row, struct buf *out)
{
    uint64_t known = row->n_loads + row->n_stores;
    buf_printf(out, "%llu samples of %zu thread%s", (unsigned long long)row->n_samples, row->n, row->n == 1 ? "" : "s");
    if (row->n > 1)
        buf_printf(out, ", %.0f %% of one", 100 * row->owner);
    if (known)
        buf_printf(out, "; %.0f %% stores", percent(row->n_stores, known));
    if (row->order != ORDER_UNKNOWN)
        buf_printf(out, "; %s", order_words(row));
    if (row->step_bytes)
        buf_printf(out, " of %s%llu bytes", row->is_least ? "at least " : "", (unsigned long long)row->step_bytes);
    if (row->by_block >= 0.8)
        buf_printf(out, "; blocks agree %.2f", row->by_block);
    else if (!isnan(row->by_place))
        buf_printf(out, "; places agree %.2f", row->by_place);
    if (row->by_chunk > 0.3)
        buf_printf(out, "; chunks of %llu B agree %.2f", (unsigned long long)row->chunk_bytes, row->by_chunk);
}

static void put_row(const struct export_job *job, const struct pattern_row *row, struct buf *out)
{
    struct buf text = {0};
    buf_printf(out, "%5.1f %%  ", row->row->share);
    text_cell(out, job, row->row->name, 24, false);
    buf_printf(out, "  ");
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, use_class_name(row->class), 18, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "%-10s", use_confidence_name(row->confidence));
    put_evidence(row, &text);
    text_wrapped(out, job, text.data ? text.data : "", 63, 63);
    buf_fini(&text);
}

/* A line of the map: the thread's samples by place, each cell as dark as its part of the fullest cell. */
static void put_map_line(const struct patterns *patterns, const struct pattern_thread *thread, size_t n_bins,
                         uint64_t most, struct buf *out)
{
    static const char shades[] = " .:-=+*#%@";
    const struct model *model = patterns->report.model;
    const struct split_naming naming = split_naming_of(model);
    struct buf name = {0};
    split_put_thread(model, &naming, thread->thread, &name);
    buf_printf(out, "  %-8s |", name.data ? name.data : "");
    buf_fini(&name);
    for (size_t bin = 0; bin < n_bins; bin++) {
        uint64_t n = thread->sum.bins[bin];
        buf_printf(out, "%c", n ? shades[1 + (size_t)(8 * (double)n / (double)most)] : ' ');
    }
    buf_printf(out, "| %llu\n", (unsigned long long)thread->n_samples);
}

static void put_map(const struct patterns *patterns, const struct pattern_row *row, struct buf *out)
{
    char size[16];
    size_t n_bins = 0;
    uint64_t most = 1;
    for (size_t i = row->first; i < row->first + row->n; i++)
        for (size_t bin = 0; bin < REACH_BINS; bin++) {
            uint64_t n = patterns->threads[i].sum.bins[bin];
            most = n > most ? n : most;
            n_bins = n && bin >= n_bins ? bin + 1 : n_bins;
        }
    text_size(UINT64_C(1) << patterns->threads[row->first].sum.shift, size);
    const struct split_naming naming = split_naming_of(patterns->report.model);
    buf_printf(out, "\n  %s, places from the start of the block (%s each), samples\n", split_thread_key(&naming), size);
    for (size_t i = row->first; i < row->first + row->n; i++)
        put_map_line(patterns, &patterns->threads[i], n_bins, most, out);
}

/* Whether samples lie in variables that others can share, and whether the place of one of them is known. */
static bool has_sampled(const struct report *report, bool *has_exact)
{
    bool has_samples = false;
    *has_exact = false;
    for (size_t i = 0; i < report->model->n_variables; i++) {
        const struct variable *variable = &report->model->variables[i];
        uint64_t n = report_samples_of(report, variable);
        if (!n || variable->class == CLASS_STACK || variable->class >= CLASS_UNKNOWN)
            continue;
        has_samples = true;
        *has_exact |= n > report_inexact_samples_of(report, variable);
    }
    return has_samples;
}

/* Why there is nothing to say. */
static const char *why_none(const struct report *report)
{
    const struct model *model = report->model;
    bool has_address = false, has_exact, has_samples = has_sampled(report, &has_exact);
    for (size_t i = 0; i < model->n_events; i++)
        has_address |= model->events[i].has_address;
    if (!has_address)
        return "The measurement has no event with data addresses, such as datacentric.";
    if (has_samples && !has_exact)
        return "Where in variables the samples lie is not known: each instruction that was sampled there overwrites a "
               "register that its address came from, such as one that follows a list.";
    if (!model->n_reaches && (has_samples || !model->has_samples))
        return "Where in variables the samples lie is not known: the measurement or the database was made by an older "
               "version.";
    return "No sample of this metric lies in a variable, other than in threads' own stacks.";
}

static int no_variable(const struct export_job *job, struct patterns *patterns, struct error *err)
{
    patterns_fini(patterns);
    return error_set(err, ERR_NOT_FOUND, "no variable '%s' has places in memory that were sampled", job->subject);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    size_t n = 0, n_left = 0;
    int code = patterns_make(job->model, job->metric, job->with_paths, &patterns, err);
    if (code != 0)
        return code;
    if (!patterns.n_rows)
        text_labelled(out, job, "note", why_none(&patterns.report));
    else
        buf_printf(out, "  share  variable                  used as           confidence because\n");
    for (size_t i = 0; i < patterns.n_rows; i++) {
        if (!is_shown(job, &patterns.rows[i]))
            continue;
        if (!job->subject && job->top && n == job->top) {
            n_left++;
            continue;
        }
        n++;
        put_row(job, &patterns.rows[i], out);
        if (job->subject)
            put_map(&patterns, &patterns.rows[i], out);
    }
    if (job->subject && !n)
        return no_variable(job, &patterns, err);
    if (n_left)
        buf_printf(out, "%zu more variables (--top 0 shows all)\n", n_left);
    if (patterns.n_lines && !job->subject)
        buf_printf(out, "\n%zu cache line%s of several threads: hpcquery sharing shows %s\n", patterns.n_lines,
                   patterns.n_lines == 1 ? "" : "s", patterns.n_lines == 1 ? "it" : "them");
    patterns_fini(&patterns);
    return 0;
}

const struct exporter export_patterns_text = {"patterns", "text", write_text};

/* --- CSV --- */

static void put_csv_number(struct buf *out, double value)
{
    if (isnan(value))
        buf_printf(out, ",");
    else
        buf_printf(out, ",%.4f", value);
}

/* One row for a variable. */
static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    int code = patterns_make(job->model, job->metric, job->with_paths, &patterns, err);
    if (code != 0)
        return code;
    buf_printf(out, "variable,class,alloc_site,share,used_as,confidence,samples,threads,loads,stores,order,"
                    "first_offset,last_offset,owner,by_block,by_place,by_chunk,chunk_bytes\n");
    for (size_t i = 0; i < patterns.n_rows; i++) {
        const struct pattern_row *row = &patterns.rows[i];
        if (!is_shown(job, row))
            continue;
        csv_put_text(out, row->row->name);
        buf_printf(out, ",%s,", row->row->class);
        csv_put_text(out, row->row->site ? row->row->site : "");
        buf_printf(out, ",%.6f,%s,%s,%llu,%zu,%llu,%llu,%s,%llu,%llu", row->row->share, use_class_name(row->class),
                   use_confidence_name(row->confidence), (unsigned long long)row->n_samples, row->n,
                   (unsigned long long)row->n_loads, (unsigned long long)row->n_stores, order_words(row),
                   (unsigned long long)row->first_offset, (unsigned long long)row->last_offset);
        put_csv_number(out, row->owner);
        put_csv_number(out, row->by_block);
        put_csv_number(out, row->by_place);
        put_csv_number(out, row->by_chunk);
        buf_printf(out, ",%llu\n", (unsigned long long)row->chunk_bytes);
    }
    patterns_fini(&patterns);
    return 0;
}

const struct exporter export_patterns_csv = {"patterns", "csv", write_csv};

/* --- JSON --- */

static void put_json_threads(const struct patterns *patterns, const struct pattern_row *row, struct buf *out)
{
    const struct model *model = patterns->report.model;
    json_put_key(out, "threads", 0);
    for (size_t i = row->first; i < row->first + row->n; i++) {
        const struct pattern_thread *thread = &patterns->threads[i];
        buf_printf(out, "%s{\"process\": %u, \"thread\": %u", i == row->first ? "[" : ", ",
                   model->processes[thread->process].pid, model->threads[thread->thread].thread_id);
        if (model_has_ranks(model))
            json_put_word_at(out, "rank", model->processes[thread->process].rank);
        json_put_word_at(out, "samples", thread->n_samples);
        json_put_word_at(out, "loads", thread->sum.n_loads);
        json_put_word_at(out, "stores", thread->sum.n_stores);
        json_put_key(out, "bins", 0);
        json_put_words(out, thread->sum.bins, REACH_BINS);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_json_row(const struct patterns *patterns, const struct pattern_row *row, struct buf *out)
{
    buf_printf(out, "{\"variable\": ");
    json_put_text(out, row->row->name);
    json_put_text_at(out, "class", row->row->class);
    json_put_text_at(out, "alloc_site", row->row->site);
    json_put_double_at(out, "share", row->row->share);
    json_put_text_at(out, "used_as", use_class_name(row->class));
    json_put_text_at(out, "confidence", use_confidence_name(row->confidence));
    json_put_word_at(out, "samples", row->n_samples);
    json_put_word_at(out, "loads", row->n_loads);
    json_put_word_at(out, "stores", row->n_stores);
    json_put_text_at(out, "order", order_words(row));
    if (row->step_bytes)
        json_put_word_at(out, "step_bytes", row->step_bytes);
    json_put_word_at(out, "first_offset", row->first_offset);
    json_put_word_at(out, "last_offset", row->last_offset);
    json_put_double_at(out, "owner", row->owner);
    if (!isnan(row->by_block))
        json_put_double_at(out, "by_block", row->by_block);
    if (!isnan(row->by_place))
        json_put_double_at(out, "by_place", row->by_place);
    if (!isnan(row->by_chunk)) {
        json_put_double_at(out, "by_chunk", row->by_chunk);
        json_put_word_at(out, "chunk_bytes", row->chunk_bytes);
    }
    json_put_word_at(out, "bin_bytes", UINT64_C(1) << patterns->threads[row->first].sum.shift);
    put_json_threads(patterns, row, out);
    buf_append(out, "}", 1);
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    size_t n = 0;
    int code = patterns_make(job->model, job->metric, job->with_paths, &patterns, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_key(out, "variables", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < patterns.n_rows; i++) {
        if (!is_shown(job, &patterns.rows[i]))
            continue;
        buf_printf(out, n++ ? ",\n" : "\n");
        put_json_row(&patterns, &patterns.rows[i], out);
    }
    buf_printf(out, "]}\n");
    patterns_fini(&patterns);
    return 0;
}

const struct exporter export_patterns_json = {"patterns", "json", write_json};

/* --- lines --- */

/* The cache lines that several threads use. */

static const char *name_of(const struct patterns *patterns, uint32_t row)
{
    return patterns->report.rows[row].name;
}

static bool is_line_shown(const struct export_job *job, const struct patterns *patterns, const struct shared_line *line)
{
    return !job->subject || strcmp(name_of(patterns, line->row), job->subject) == 0 ||
           strcmp(name_of(patterns, line->other_row), job->subject) == 0;
}

/* "reads", for one side of a meeting. */
static const char *access_words(uint32_t accesses)
{
    static const char *const words[] = {"uses", "reads", "writes", "reads and writes"};
    return words[accesses & 3];
}

/* "count_words (patterns.c:120)" */
static void put_place(const struct model *model, const struct touch_place *place, struct buf *out)
{
    const char *function = model_text(model, place->function);
    buf_printf(out, "%s", *function ? function : "unknown code");
    if (place->line)
        buf_printf(out, " (%s:%u)", path_last(model_text(model, place->file)), place->line);
}

/* "thread 0.1 writes words + 8 in count_words (patterns.c:120), called by run (patterns.c:141)" */
static void put_side(const struct patterns *patterns, const struct line_side *side, struct buf *out)
{
    const struct model *model = patterns->report.model;
    const struct split_naming naming = split_naming_of(model);
    struct touch_place places[CALLERS_MOST + 1];
    if (side->row == UINT32_MAX) {
        buf_printf(out, "an access that is not known");
        return;
    }
    buf_printf(out, "thread ");
    split_put_thread(model, &naming, side->thread, out);
    buf_printf(out, " %s %s", access_words(side->accesses), name_of(patterns, side->row));
    if (side->offset_bytes != UINT64_MAX)
        buf_printf(out, " + %llu", (unsigned long long)side->offset_bytes);
    if (side->field)
        buf_printf(out, " (%s)", side->field);
    size_t n = touch_path_of(model, side->scope, places, CALLERS_MOST + 1);
    for (size_t i = 0; i < n && i <= CALLERS_MOST; i++) {
        buf_printf(out, "%s", i == 0 ? " in " : i == 1 ? ", called by " : ", ");
        put_place(model, &places[i], out);
    }
    if (n > CALLERS_MOST + 1)
        buf_printf(out, ", and %zu more", n - CALLERS_MOST - 1);
}

/* What watchpoints found, and the two accesses that met most often. */
static void put_verdict(const struct export_job *job, const struct patterns *patterns, const struct shared_line *line,
                        struct buf *out)
{
    struct buf text = {0};
    buf_printf(out, "%10s", "");
    if (line->verdict == VERDICT_NOT_VERIFIED) {
        buf_printf(out, "not verified: too few watches that saw both threads there, or that saw one of them away\n");
        return;
    }
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, line_verdict_name(line->verdict), 24, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(&text,
               "verified: %llu traps at the same bytes, %llu beside them, %llu watches that did not see both threads",
               (unsigned long long)line->n_same, (unsigned long long)line->n_beside, (unsigned long long)line->n_none);
    if (line->n_most) {
        buf_printf(&text, "; ");
        put_side(patterns, &line->sides[0], &text);
        buf_printf(&text, ", ");
        put_side(patterns, &line->sides[1], &text);
    }
    text_wrapped(out, job, text.data ? text.data : "", 34, 34);
    buf_fini(&text);
}

static void put_line(const struct export_job *job, const struct patterns *patterns, const struct shared_line *line,
                     struct buf *out)
{
    if (line->is_candidate) {
        buf_printf(out, "%8llu  ", (unsigned long long)line->n_samples);
        text_style(out, job, TEXT_BOLD);
        text_cell(out, job, line_sharing_name(line->sharing), 24, false);
        text_style(out, job, TEXT_PLAIN);
        if (!isnan(line->in_common))
            buf_printf(out, "%4zu threads, %zu write; %3.0f %% stores; same places %.2f; ", line->n_threads,
                       line->n_writers, percent(line->n_stores, line->n_samples), line->in_common);
        if (line->is_seen_modified)
            buf_printf(out, "found modified by the hardware; %s", line->line == LINE_ALL ? "lines of " : "");
    } else {
        buf_printf(out, "%8s  %-24s", "few", "no candidate");
    }
    buf_printf(out, "%s", name_of(patterns, line->row));
    if (line->offset_bytes != UINT64_MAX)
        buf_printf(out, " + %llu", (unsigned long long)line->offset_bytes);
    if (line->other_row != line->row)
        buf_printf(out, " and %s", name_of(patterns, line->other_row));
    buf_append(out, "\n", 1);
    if (patterns->is_watched && line->line != LINE_ALL)
        put_verdict(job, patterns, line, out);
}

/* Why lines were not watched though the user asked for it; false: they were, or nobody asked. */
static bool put_sharing_notes(const struct export_job *job, struct buf *out)
{
    bool is_any = false;
    for (size_t i = 0; i < job->model->n_notes; i++) {
        const char *note = job->model->notes[i];
        if (strncmp(note, SHARING_NOTE, strlen(SHARING_NOTE)) != 0)
            continue;
        text_labelled(out, job, "note", note);
        is_any = true;
    }
    return is_any;
}

static int write_lines_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    size_t n = 0, n_left = 0;
    int code = patterns_make(job->model, job->metric, job->with_paths, &patterns, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < patterns.n_lines; i++) {
        if (!is_line_shown(job, &patterns, &patterns.lines[i]))
            continue;
        if (job->top && n == job->top) {
            n_left++;
            continue;
        }
        if (!n++)
            buf_printf(out, " samples  candidate for\n");
        put_line(job, &patterns, &patterns.lines[i], out);
    }
    if (n_left)
        buf_printf(out, "%zu more lines (--top 0 shows all)\n", n_left);
    bool is_noted = put_sharing_notes(job, out);
    text_labelled(out, job, "note",
                  !n ? "No cache line with enough samples was used by several threads of which one writes."
                  : patterns.is_watched
                      ? "Verified by watchpoints: threads on two processors used the line within 20 milliseconds."
                  : is_noted ? "Candidates: whether the threads used a line at the same time is not known."
                             : "Candidates: whether the threads used a line at the same time is not known; hpcrun "
                               "--verify-sharing finds out.");
    patterns_fini(&patterns);
    return 0;
}

const struct exporter export_sharing_text = {"sharing", "text", write_lines_text};

static int write_lines_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    int code = patterns_make(job->model, job->metric, job->with_paths, &patterns, err);
    if (code != 0)
        return code;
    buf_printf(out, "variable,other_variable,process,line_address,offset,sharing,samples,stores,threads,writers,"
                    "same_places,seen_modified,verified,same_traps,beside_traps,no_traps,sample_place,trap_place\n");
    for (size_t i = 0; i < patterns.n_lines; i++) {
        const struct shared_line *line = &patterns.lines[i];
        if (!is_line_shown(job, &patterns, line))
            continue;
        csv_put_text(out, name_of(&patterns, line->row));
        buf_printf(out, ",");
        csv_put_text(out, line->other_row == line->row ? "" : name_of(&patterns, line->other_row));
        buf_printf(out, ",%u,", line->process);
        if (line->line != LINE_ALL)
            buf_printf(out, "0x%llx", (unsigned long long)(line->line * PATTERN_LINE_BYTES));
        buf_append(out, ",", 1);
        if (line->offset_bytes != UINT64_MAX)
            buf_printf(out, "%llu", (unsigned long long)line->offset_bytes);
        buf_printf(out, ",%s,%llu,%llu,%zu,%zu", line->is_candidate ? line_sharing_name(line->sharing) : "no candidate",
                   (unsigned long long)line->n_samples, (unsigned long long)line->n_stores, line->n_threads,
                   line->n_writers);
        put_csv_number(out, line->in_common);
        buf_printf(out, ",%d,%s,%llu,%llu,%llu", line->is_seen_modified, line_verdict_name(line->verdict),
                   (unsigned long long)line->n_same, (unsigned long long)line->n_beside,
                   (unsigned long long)line->n_none);
        for (int side = 0; side < 2; side++) {
            struct buf text = {0};
            if (line->n_most)
                put_side(&patterns, &line->sides[side], &text);
            buf_append(out, ",", 1);
            csv_put_text(out, text.data ? text.data : "");
            buf_fini(&text);
        }
        buf_append(out, "\n", 1);
    }
    patterns_fini(&patterns);
    return 0;
}

const struct exporter export_sharing_csv = {"sharing", "csv", write_lines_csv};

/* The keys of a place. */
static void put_json_place(const struct model *model, const struct touch_place *place, struct buf *out)
{
    buf_printf(out, "\"function\": ");
    json_put_text(out, model_text(model, place->function));
    json_put_text_at(out, "file", model_text(model, place->file));
    json_put_word_at(out, "line", place->line);
}

/* The place of an access, and the path of calls that led there, innermost first. */
static void put_json_path(const struct model *model, uint32_t scope, struct buf *out)
{
    struct touch_place places[JSON_PATH_MOST];
    size_t n = touch_path_of(model, scope, places, JSON_PATH_MOST);
    buf_append(out, ", ", 2);
    put_json_place(model, &places[0], out);
    json_put_key(out, "called_by", 0);
    buf_append(out, "[", 1);
    for (size_t i = 1; i < n && i < JSON_PATH_MOST; i++) {
        buf_printf(out, i > 1 ? ", {" : "{");
        put_json_place(model, &places[i], out);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_json_verdict(const struct patterns *patterns, const struct shared_line *line, struct buf *out)
{
    const struct model *model = patterns->report.model;
    json_put_text_at(out, "verified", line_verdict_name(line->verdict));
    json_put_word_at(out, "same_traps", line->n_same);
    json_put_word_at(out, "beside_traps", line->n_beside);
    json_put_word_at(out, "no_traps", line->n_none);
    json_put_key(out, "accesses", 0);
    buf_append(out, "[", 1);
    for (int i = 0; line->n_most && i < 2; i++) {
        const struct line_side *side = &line->sides[i];
        if (side->row == UINT32_MAX)
            continue;
        buf_printf(out, out->data[out->len_bytes - 1] == '[' ? "{\"variable\": " : ", {\"variable\": ");
        json_put_text(out, name_of(patterns, side->row));
        json_put_text_at(out, "field", side->field);
        json_put_text_at(out, "from", i ? "watchpoint" : "sample");
        json_put_word_at(out, "process", model->processes[model->threads[side->thread].process].pid);
        if (model_has_ranks(model))
            json_put_word_at(out, "rank", model->processes[model->threads[side->thread].process].rank);
        json_put_word_at(out, "thread", model->threads[side->thread].thread_id);
        json_put_text_at(out, "access", access_words(side->accesses));
        json_put_word_at(out, "address", side->address);
        json_put_word_at(out, "bytes", side->n_bytes);
        if (side->offset_bytes != UINT64_MAX)
            json_put_word_at(out, "offset", side->offset_bytes);
        put_json_path(model, side->scope, out);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static int write_lines_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct patterns patterns;
    size_t n = 0;
    int code = patterns_make(job->model, job->metric, job->with_paths, &patterns, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_key(out, "lines", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < patterns.n_lines; i++) {
        const struct shared_line *line = &patterns.lines[i];
        if (!is_line_shown(job, &patterns, line))
            continue;
        buf_printf(out, n++ ? ",\n{\"variable\": " : "\n{\"variable\": ");
        json_put_text(out, name_of(&patterns, line->row));
        json_put_text_at(out, "other_variable",
                         line->other_row == line->row ? NULL : name_of(&patterns, line->other_row));
        json_put_word_at(out, "process", line->process);
        if (line->line != LINE_ALL)
            json_put_word_at(out, "line_address", line->line * PATTERN_LINE_BYTES);
        if (line->offset_bytes != UINT64_MAX)
            json_put_word_at(out, "offset", line->offset_bytes);
        json_put_text_at(out, "sharing", line->is_candidate ? line_sharing_name(line->sharing) : "no candidate");
        json_put_word_at(out, "samples", line->n_samples);
        json_put_word_at(out, "stores", line->n_stores);
        json_put_word_at(out, "threads", line->n_threads);
        json_put_word_at(out, "writers", line->n_writers);
        if (!isnan(line->in_common))
            json_put_double_at(out, "same_places", line->in_common);
        json_put_word_at(out, "seen_modified", line->is_seen_modified);
        put_json_verdict(&patterns, line, out);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "],\n\"notes\": [");
    n = 0;
    for (size_t i = 0; i < job->model->n_notes; i++) {
        if (strncmp(job->model->notes[i], SHARING_NOTE, strlen(SHARING_NOTE)) != 0)
            continue;
        buf_printf(out, n++ ? ", " : "");
        json_put_text(out, job->model->notes[i]);
    }
    buf_printf(out, "]}\n");
    patterns_fini(&patterns);
    return 0;
}

const struct exporter export_sharing_json = {"sharing", "json", write_lines_json};
