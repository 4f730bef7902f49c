/* SPDX-License-Identifier: BSD-3-Clause */
/* Log files: the table of counter lines, writing, reading, and adding up many logs. */
#include "fmt/log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fmt/file.h"
#include "fmt/json.h"

#define WORD(line, key, field)                                                                                         \
    {                                                                                                                  \
        line, key, #field, offsetof(struct log_summary, field), false                                                  \
    }
#define MEG(line, key, field)                                                                                          \
    {                                                                                                                  \
        line, key, #field, offsetof(struct log_summary, field), true                                                   \
    }

/* In the order of the lines and of the keys in a line. */
static const struct log_counter counters[] = {
    MEG("MEMORY: segment size:", "segment size: ", segment_meg),
    WORD("MEMORY: segment size:", "num segments: ", memory_segments),
    MEG("MEMORY: segment size:", "total allocation: ", total_meg),
    WORD("MEMORY: segment size:", "reclaims: ", memory_reclaims),
    MEG("MEMORY: total freeable:", "total freeable: ", freeable_meg),
    MEG("MEMORY: total freeable:", "total non-freeable: ", fixed_meg),
    WORD("MEMORY: total freeable:", "malloc failures: ", memory_failures),
    WORD("UNWIND ANOMALIES:", "ANOMALIES: total: ", unwind_samples),
    WORD("UNWIND ANOMALIES:", "errant: ", unwind_errant),
    WORD("UNWIND ANOMALIES:", "total-frames: ", unwind_frames),
    WORD("UNWIND ANOMALIES:", "total-libunwind-fails: ", unwind_failures),
    WORD("accelerator trace records:", "records: ", acc_records),
    WORD("accelerator trace records:", "processed: ", acc_records_processed),
    WORD("accelerator trace records:", "dropped: ", acc_records_dropped),
    WORD("accelerator samples:", "samples: ", acc_samples),
    WORD("accelerator samples:", "recorded: ", acc_samples_recorded),
    WORD("accelerator samples:", "dropped: ", acc_samples_dropped),
    WORD("SAMPLE ANOMALIES:", "blocks: ", blocks),
    WORD("SAMPLE ANOMALIES:", "async: ", blocks_async),
    WORD("SAMPLE ANOMALIES:", "dlopen: ", blocks_dlopen),
    WORD("SAMPLE ANOMALIES:", "errors: ", errors),
    WORD("SAMPLE ANOMALIES:", "segv: ", errors_segv),
    WORD("SAMPLE ANOMALIES:", "soft: ", errors_soft),
    WORD("SUMMARY: samples:", "samples: ", samples),
    WORD("SUMMARY: samples:", "recorded: ", recorded),
    WORD("SUMMARY: samples:", "blocked: ", blocked),
    WORD("SUMMARY: samples:", "errant: ", errant),
    WORD("SUMMARY: samples:", "trolled: ", trolled),
    WORD("SUMMARY: samples:", "yielded: ", yielded),
    WORD("frames:", "frames: ", frames),
    WORD("frames:", "trolled: ", frames_trolled),
    WORD("intervals:", "intervals: ", intervals),
    WORD("intervals:", "suspicious: ", intervals_suspicious),
};

static const struct log_event_field event_fields[] = {
    {"enabled-ns", offsetof(struct log_event, enabled_ns)}, {"running-ns", offsetof(struct log_event, running_ns)},
    {"throttles", offsetof(struct log_event, n_throttles)}, {"no-metric", offsetof(struct log_event, n_no_metric)},
    {"truncated", offsetof(struct log_event, n_truncated)}, {"collisions", offsetof(struct log_event, n_collisions)},
    {"spared", offsetof(struct log_event, n_spared)},
};

#define EVENT_FIELDS (sizeof event_fields / sizeof event_fields[0])

/* The table of them. */
static const struct log_event_field *log_event_fields(size_t *n_fields)
{
    *n_fields = EVENT_FIELDS;
    return event_fields;
}

static uint64_t event_field(const struct log_event *event, size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)event + event_fields[i].offset);
}

struct log_event *log_event_named(struct log_summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->n_events; i++)
        if (strcmp(summary->events[i].name, name) == 0)
            return &summary->events[i];
    if (!vec_reserve(&summary->events, &summary->cap_events, summary->n_events + 1, sizeof *summary->events))
        return NULL;
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    summary->events[summary->n_events].name = copy;
    return &summary->events[summary->n_events++];
}

void log_count_events(struct log_summary *summary)
{
    summary->samples = summary->recorded = summary->blocked = summary->errant = 0;
    for (size_t i = 0; i < summary->n_events; i++) {
        const uint64_t *fates = summary->events[i].fates;
        for (int fate = 0; fate < FATE_TAKEN_MAX; fate++) {
            bool blocked = fate == FATE_DROP_REENTERED || fate == FATE_DROP_NO_THREAD || fate == FATE_DROP_STOPPED ||
                           fate == FATE_DROP_FORKED;
            summary->samples += fates[fate];
            *(fate_is_recorded(fate) ? &summary->recorded
              : blocked              ? &summary->blocked
                                     : &summary->errant) += fates[fate];
        }
    }
    summary->blocks = summary->blocks_async = summary->blocked;
}

static void write_events(const struct log_summary *summary, struct buf *out)
{
    for (size_t i = 0; i < summary->n_events; i++) {
        const struct log_event *event = &summary->events[i];
        buf_printf(out, LOG_EVENT_PREFIX "taken: %" PRIu64 ", overflows: %" PRIu64, event->taken, event->overflows);
        for (int fate = 0; fate < FATE_MAX; fate++)
            if (event->fates[fate])
                buf_printf(out, ", %s: %" PRIu64, fate_row(fate)->name, event->fates[fate]);
        for (size_t k = 0; k < EVENT_FIELDS; k++)
            if (event_field(event, k))
                buf_printf(out, ", %s: %" PRIu64, event_fields[k].key, event_field(event, k));
        buf_printf(out, LOG_EVENT_NAME "%s\n", event->name);
    }
}

void log_write_summary(const struct log_summary *s, struct buf *out)
{
    buf_printf(out,
               "MEMORY: segment size: %.1f meg, num segments: %" PRIu64
               ", total allocation: %.1f meg, reclaims: %" PRIu64 "\n",
               s->segment_meg, s->memory_segments, s->total_meg, s->memory_reclaims);
    buf_printf(out, "MEMORY: total freeable: %.1f meg, total non-freeable: %.1f meg, malloc failures: %" PRIu64 "\n",
               s->freeable_meg, s->fixed_meg, s->memory_failures);
    buf_printf(out,
               "UNWIND ANOMALIES: total: %" PRIu64 " errant: %" PRIu64 ", total-frames: %" PRIu64
               ", total-libunwind-fails: %" PRIu64 "\n",
               s->unwind_samples, s->unwind_errant, s->unwind_frames, s->unwind_failures);
    buf_printf(out,
               "ACC SUMMARY:\n         accelerator trace records: %" PRIu64 " (processed: %" PRIu64
               ", dropped: %" PRIu64 ")\n",
               s->acc_records, s->acc_records_processed, s->acc_records_dropped);
    buf_printf(out, "         accelerator samples: %" PRIu64 " (recorded: %" PRIu64 ", dropped: %" PRIu64 ")\n",
               s->acc_samples, s->acc_samples_recorded, s->acc_samples_dropped);
    write_events(s, out);
    buf_printf(out,
               "SAMPLE ANOMALIES: blocks: %" PRIu64 " (async: %" PRIu64 ", dlopen: %" PRIu64 "), errors: %" PRIu64
               " (segv: %" PRIu64 ", soft: %" PRIu64 ")\n",
               s->blocks, s->blocks_async, s->blocks_dlopen, s->errors, s->errors_segv, s->errors_soft);
    buf_printf(out,
               "SUMMARY: samples: %" PRIu64 " (recorded: %" PRIu64 ", blocked: %" PRIu64 ", errant: %" PRIu64
               ", trolled: %" PRIu64 ", yielded: %" PRIu64 "),\n",
               s->samples, s->recorded, s->blocked, s->errant, s->trolled, s->yielded);
    buf_printf(out,
               "         frames: %" PRIu64 " (trolled: %" PRIu64 ")\n         intervals: %" PRIu64
               " (suspicious: %" PRIu64 ")\n",
               s->frames, s->frames_trolled, s->intervals, s->intervals_suspicious);
}

void log_write_message(struct buf *out, uint32_t pid, int64_t thread, const char *text)
{
    if (thread < 0)
        buf_printf(out, "[%" PRIu32 ", N]: %s\n", pid, text);
    else
        buf_printf(out, "[%" PRIu32 ", %" PRId64 "]: %s\n", pid, thread, text);
}

static int add_events(struct log_summary *total, const struct log_summary *one, struct error *err)
{
    for (size_t i = 0; i < one->n_events; i++) {
        const struct log_event *event = &one->events[i];
        struct log_event *sum = log_event_named(total, event->name);
        if (!sum)
            return error_set(err, ERR_MEMORY, "out of memory while adding up logs");
        sum->taken += event->taken;
        sum->overflows += event->overflows;
        for (int fate = 0; fate < FATE_MAX; fate++)
            sum->fates[fate] += event->fates[fate];
        for (size_t k = 0; k < EVENT_FIELDS; k++)
            *(uint64_t *)(void *)((char *)sum + event_fields[k].offset) += event_field(event, k);
    }
    return 0;
}

int log_add(struct log_summary *total, const struct log_summary *one, struct error *err)
{
    total->n_logs += one->n_logs;
    total->n_complete += one->n_complete;
    double segment_meg = total->segment_meg > one->segment_meg ? total->segment_meg : one->segment_meg;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        const void *from = (const char *)one + counters[i].offset;
        void *to = (char *)total + counters[i].offset;
        if (counters[i].is_meg)
            *(double *)to += *(const double *)from;
        else
            *(uint64_t *)to += *(const uint64_t *)from;
    }
    total->segment_meg = segment_meg;
    return add_events(total, one, err);
}

static void put_event(const struct log_event *event, struct buf *out)
{
    buf_append(out, "{", 1);
    json_put_key(out, "name", 1);
    json_put_text(out, event->name);
    json_put_word_at(out, "taken", event->taken);
    json_put_word_at(out, "overflows", event->overflows);
    for (int fate = 0; fate < FATE_MAX; fate++)
        if (event->fates[fate])
            json_put_word_at(out, fate_row(fate)->name, event->fates[fate]);
    for (size_t k = 0; k < EVENT_FIELDS; k++)
        if (event_field(event, k))
            json_put_word_at(out, event_fields[k].key, event_field(event, k));
    buf_append(out, "}", 1);
}

void log_put_json(const struct log_summary *summary, struct buf *out)
{
    buf_printf(out, "{\"format\": \"hpcrun-log\"");
    json_put_word_at(out, "n_logs", summary->n_logs);
    json_put_word_at(out, "n_complete", summary->n_complete);
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        const void *value = (const char *)summary + counters[i].offset;
        if (counters[i].is_meg)
            json_put_double_at(out, counters[i].field, *(const double *)value);
        else
            json_put_word_at(out, counters[i].field, *(const uint64_t *)value);
    }
    buf_printf(out, ",\n\"events\": [");
    for (size_t i = 0; i < summary->n_events; i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_event(&summary->events[i], out);
    }
    buf_printf(out, "],\n\"messages\": [");
    for (size_t i = 0; i < summary->n_messages; i++) {
        buf_printf(out, i ? ",\n" : "\n");
        json_put_text(out, summary->messages[i]);
    }
    buf_printf(out, "]}\n");
}

void log_fini(struct log_summary *summary)
{
    for (size_t i = 0; i < summary->n_events; i++)
        free(summary->events[i].name);
    free(summary->events);
    for (size_t i = 0; i < summary->n_messages; i++)
        free(summary->messages[i]);
    free(summary->messages);
    *summary = (struct log_summary){0};
}

/* --- reading --- */

/* Reader of log files, of the original and of Locus: see log.h. */

/* A pass over the lines of one log. line is a copy of the current one. */
struct reader {
    const char *name;
    size_t offset; /* of the line, for messages */
    struct log_summary *summary;
    struct error *err;
    int code;
};

static void note_bad_number(struct reader *reader, const char *key)
{
    if (!reader->code)
        reader->code = error_set(reader->err, ERR_FORMAT, "%.400s: offset %zu: no number after '%s'", reader->name,
                                 reader->offset, key);
}

static uint64_t take_word(struct reader *reader, const char *text, const char *key)
{
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *text == '-')
        note_bad_number(reader, key);
    return value;
}

static double take_meg(struct reader *reader, const char *text, const char *key)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text)
        note_bad_number(reader, key);
    return value;
}

/* Takes every counter of a line; false when the line is none. Keys are looked for from left to right. */
static bool take_counters(struct reader *reader, const char *line)
{
    const char *rest = line + strspn(line, " ");
    bool is_counter = false;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        if (strncmp(line + strspn(line, " "), counters[i].line, strlen(counters[i].line)) != 0)
            continue;
        is_counter = true;
        const char *found = strstr(rest, counters[i].key);
        if (!found)
            continue;
        rest = found + strlen(counters[i].key);
        void *field = (char *)reader->summary + counters[i].offset;
        if (counters[i].is_meg)
            *(double *)field = take_meg(reader, rest, counters[i].key);
        else
            *(uint64_t *)field = take_word(reader, rest, counters[i].key);
    }
    if (is_counter && strncmp(line, "SUMMARY: ", 9) == 0)
        reader->summary->n_complete = 1;
    return is_counter;
}

/* The number after "<key>: " among the comma-separated fields of line, 0 when it is not there. */
static uint64_t take_field(struct reader *reader, const char *line, const char *key)
{
    size_t len_bytes = strlen(key);
    for (const char *field = line; field; field = strstr(field, ", ")) {
        field += *field == ',' ? 2 : 0;
        if (strncmp(field, key, len_bytes) == 0 && strncmp(field + len_bytes, ": ", 2) == 0)
            return take_word(reader, field + len_bytes + 2, key);
    }
    return 0;
}

static bool take_event(struct reader *reader, char *line)
{
    char *name = strstr(line, LOG_EVENT_NAME);
    if (strncmp(line, LOG_EVENT_PREFIX, strlen(LOG_EVENT_PREFIX)) != 0 || !name)
        return false;
    *name = '\0';
    line += strlen(LOG_EVENT_PREFIX);
    struct log_event *event = log_event_named(reader->summary, name + strlen(LOG_EVENT_NAME));
    if (!event) {
        reader->code = error_set(reader->err, ERR_MEMORY, "%.400s: out of memory", reader->name);
        return true;
    }
    event->taken += take_field(reader, line, "taken");
    event->overflows += take_field(reader, line, "overflows");
    for (int fate = 0; fate < FATE_MAX; fate++)
        event->fates[fate] += take_field(reader, line, fate_row(fate)->name);
    size_t n_fields;
    const struct log_event_field *fields = log_event_fields(&n_fields);
    for (size_t i = 0; i < n_fields; i++)
        *(uint64_t *)(void *)((char *)event + fields[i].offset) += take_field(reader, line, fields[i].key);
    return true;
}

/* Takes a malloc'ed line. */
static void take_line(struct reader *reader, char *line)
{
    struct log_summary *summary = reader->summary;
    if (!*line || strcmp(line, "ACC SUMMARY:") == 0 || take_counters(reader, line) || take_event(reader, line)) {
        free(line);
        return;
    }
    if (vec_reserve(&summary->messages, &summary->cap_messages, summary->n_messages + 1, sizeof *summary->messages)) {
        summary->messages[summary->n_messages++] = line;
        return;
    }
    free(line);
    reader->code = error_set(reader->err, ERR_MEMORY, "%.400s: out of memory", reader->name);
}

int log_read_memory(const char *bytes, size_t len_bytes, const char *name, struct log_summary *summary,
                    struct error *err)
{
    struct reader reader = {.name = name, .summary = summary, .err = err};
    const char *nul = len_bytes ? memchr(bytes, '\0', len_bytes) : NULL;
    if (nul)
        return error_set(err, ERR_FORMAT, "%.400s: offset %td: not a log: a NUL byte in a text file", name,
                         nul - bytes);
    summary->n_logs = 1;
    while (reader.offset < len_bytes && !reader.code) {
        const char *start = bytes + reader.offset;
        const char *end = memchr(start, '\n', len_bytes - reader.offset);
        size_t line_bytes = end ? (size_t)(end - start) : len_bytes - reader.offset;
        char *line = strndup(start, line_bytes);
        if (line)
            take_line(&reader, line);
        else
            reader.code = error_set(err, ERR_MEMORY, "%.400s: out of memory", name);
        reader.offset += line_bytes + 1;
    }
    if (reader.code)
        log_fini(summary);
    return reader.code;
}

int log_read(const char *path, struct log_summary *summary, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = log_read_memory(bytes.data, bytes.len_bytes, path, summary, err);
    buf_fini(&bytes);
    return code;
}

/* --- the sum of many logs --- */

/* Many logs added up: see log.h. */

static int add_log(struct log_sum *sum, const char *path, struct error *err)
{
    struct log_summary log = {0};
    int code = log_read(path, &log, err);
    if (!code)
        code = log_add(&sum->total, &log, err);
    if (!code && !log.n_complete)
        buf_printf(&sum->incomplete, "    %s\n", path);
    for (size_t i = 0; !code && i < log.n_messages; i++)
        buf_printf(&sum->messages, "    %s: %s\n", path, log.messages[i]);
    log_fini(&log);
    return code;
}

static int is_log(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".log") == 0;
}

static int add_entry(struct log_sum *sum, const char *directory, const char *name, struct error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return error_set(err, ERR_MEMORY, "%.600s: out of memory", directory);
    int code = add_log(sum, path, err);
    free(path);
    return code;
}

static int add_directory(struct log_sum *sum, const char *directory, struct error *err)
{
    struct dirent **entries = NULL;
    int code = 0, n_entries = scandir(directory, &entries, is_log, alphasort);
    if (n_entries < 0)
        return error_set(err, ERR_IO, "%.600s: cannot read the directory: %s", directory, strerror(errno));
    if (!n_entries)
        code = error_set(err, ERR_NOT_FOUND, "%.600s: there are no logs (*.log) in this directory", directory);
    for (int i = 0; i < n_entries; i++) {
        if (!code)
            code = add_entry(sum, directory, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int log_sum_add(struct log_sum *sum, const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_directory(sum, path, err);
    return add_log(sum, path, err);
}

static void put_event_counters(const struct log_event *event, struct buf *out)
{
    buf_printf(out, "EVENT %s\n    %12" PRIu64 "  overflows\n    %12" PRIu64 "  samples taken\n", event->name,
               event->overflows, event->taken);
    for (int fate = 0; fate < FATE_MAX; fate++)
        if (event->fates[fate])
            buf_printf(out, "    %12" PRIu64 "  %s: %s\n", event->fates[fate], fate_row(fate)->name,
                       fate_row(fate)->sentence);
    if (event->n_no_metric)
        buf_printf(out, "    %12" PRIu64 "  of them without metric: the data source names neither load nor store\n",
                   event->n_no_metric);
    if (event->n_throttles)
        buf_printf(out, "    %12" PRIu64 "  times stopped by the kernel for the rest of a tick (throttled)\n",
                   event->n_throttles);
    if (event->n_truncated)
        buf_printf(out, "    %12" PRIu64 "  times the AUX area was too small for what the hardware wrote\n",
                   event->n_truncated);
    if (event->n_collisions)
        buf_printf(out, "    %12" PRIu64 "  pieces of the AUX area in which the hardware gave up samples\n",
                   event->n_collisions);
    if (event->n_spared)
        buf_printf(out, "    %12" PRIu64 "  samples less, so that sampling took no more than its share of the time\n",
                   event->n_spared);
    if (event->running_ns < event->enabled_ns)
        buf_printf(out, "    %11.1f%%  of the time counted: it shared its counter with other events\n",
                   100 * (double)event->running_ns / (double)event->enabled_ns);
}

void log_sum_put_text(const struct log_sum *sum, struct buf *out)
{
    const struct log_summary *total = &sum->total;
    struct log_summary numbers = *total;
    buf_printf(out, "LOGS: %" PRIu64 " (complete: %" PRIu64 ")\n", total->n_logs, total->n_complete);
    if (sum->incomplete.len_bytes)
        buf_printf(out, "Without a summary, because the process still runs or was killed:\n%s", sum->incomplete.data);
    for (size_t i = 0; i < total->n_events; i++)
        put_event_counters(&total->events[i], out);
    numbers.n_events = 0;
    log_write_summary(&numbers, out);
    if (sum->messages.len_bytes)
        buf_printf(out, "MESSAGES:\n%s", sum->messages.data);
    out->failed |= sum->incomplete.failed || sum->messages.failed;
}

void log_sum_fini(struct log_sum *sum)
{
    log_fini(&sum->total);
    buf_fini(&sum->incomplete);
    buf_fini(&sum->messages);
}
