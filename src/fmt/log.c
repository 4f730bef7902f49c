/* SPDX-License-Identifier: BSD-3-Clause */
/* Log files: writing counters, adding them up, and the table of counter lines that the reader (log-read.c) shares. */
#include "fmt/log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/json-put.h"
#include "fmt/log-lines.h"

#define WORD(line, key, field)                                                                                         \
    {                                                                                                                  \
        line, key, #field, offsetof(struct log_summary, field), false                                                  \
    }
#define MEG(line, key, field)                                                                                          \
    {                                                                                                                  \
        line, key, #field, offsetof(struct log_summary, field), true                                                   \
    }

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

const struct log_counter *log_counters(size_t *n_counters)
{
    *n_counters = sizeof counters / sizeof counters[0];
    return counters;
}

static const struct log_event_field event_fields[] = {
    {"enabled-ns", offsetof(struct log_event, enabled_ns)},
    {"running-ns", offsetof(struct log_event, running_ns)},
    {"throttles", offsetof(struct log_event, n_throttles)},
    {"no-metric", offsetof(struct log_event, n_no_metric)},
    {"truncated", offsetof(struct log_event, n_truncated)},
    {"collisions", offsetof(struct log_event, n_collisions)},
};

#define EVENT_FIELDS (sizeof event_fields / sizeof event_fields[0])

const struct log_event_field *log_event_fields(size_t *n_fields)
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
