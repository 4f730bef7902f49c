/* SPDX-License-Identifier: BSD-3-Clause */
/* Log files (.log): messages of one process and, at its end, its counters, in the original's text, so that its
 * summarizer reads them; the fates of the samples of each event follow in lines of our own. Layout: FORMAT.md. Ordinary
 * code. */
#ifndef LOCUS_FMT_LOG_H
#define LOCUS_FMT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/fate.h"
#include "base/error.h"
#include "base/vec.h"

/* Counters of one event, over all threads of the process. */
struct log_event {
    char *name;
    uint64_t taken, overflows;
    uint64_t fates[FATE_MAX];
    uint64_t enabled_ns, running_ns; /* how long it was wanted, and really counted; both 0: not known */
    uint64_t n_throttles;            /* times that the kernel stopped it for the rest of a tick */
    uint64_t n_no_metric;            /* samples whose data source names neither load nor store */
    uint64_t n_truncated;            /* pieces of the AUX area that it was too small for */
    uint64_t n_collisions;           /* pieces of the AUX area in which the hardware dropped samples */
    uint64_t n_spared;               /* periods that samples stand for beyond one each */
};

/* What the counter lines hold. Samples, recorded, blocked and errant follow from the events when there are any
 * (log_count_events); the original's own logs give them directly. */
struct log_summary {
    uint64_t n_logs, n_complete; /* logs added up, and how many of them have a SUMMARY */
    uint64_t memory_segments, memory_reclaims, memory_failures;
    double segment_meg, total_meg, freeable_meg, fixed_meg; /* 2^20 bytes */
    uint64_t unwind_samples, unwind_errant, unwind_frames, unwind_failures;
    uint64_t acc_records, acc_records_processed, acc_records_dropped;
    uint64_t acc_samples, acc_samples_recorded, acc_samples_dropped;
    uint64_t blocks, blocks_async, blocks_dlopen, errors, errors_segv, errors_soft;
    uint64_t samples, recorded, blocked, errant, trolled, yielded;
    uint64_t frames, frames_trolled, intervals, intervals_suspicious;
    struct log_event *events; /* [n_events] */
    size_t n_events, cap_events;
    char **messages; /* [n_messages] the other lines, without their ends */
    size_t n_messages, cap_messages;
};

/* The counters of an event by name, added when new; NULL when out of memory. Borrowed until the next call. */
struct log_event *log_event_named(struct log_summary *summary, const char *name);

/* Sets samples, recorded, blocked, errant and blocks from the fates of the events: blocked = arrived inside the
 * profiler, on an unregistered thread, at a stop or in a forked child; errant = the other drops. */
void log_count_events(struct log_summary *summary);

/* Appends the counter lines of a process's end to out (not the messages). Sets out->failed when out of memory. */
void log_write_summary(const struct log_summary *summary, struct buf *out);

/* Appends a message line in the original's form "[PID, THREAD]: text"; thread < 0 is written as N. */
void log_write_message(struct buf *out, uint32_t pid, int64_t thread, const char *text);

/* Reads a log; *summary must be empty and is left empty on failure. Lines that are no counters become messages, a log
 * without counters (killed, or not yet ended) has n_complete 0. _memory: name is used in messages.
 * err: ERR_IO, ERR_FORMAT (a NUL byte: not a text; a counter that is no number), ERR_MEMORY */
int log_read(const char *path, struct log_summary *summary, struct error *err);
int log_read_memory(const char *bytes, size_t len_bytes, const char *name, struct log_summary *summary,
                    struct error *err);

/* Adds the counters of one log to total (segment_meg: the largest); messages are not taken.  err: ERR_MEMORY */
int log_add(struct log_summary *total, const struct log_summary *one, struct error *err);

/* Appends the summary as JSON. */
void log_put_json(const struct log_summary *summary, struct buf *out);

/* Frees everything and makes the summary empty. */
void log_fini(struct log_summary *summary);

/* --- the sum of many logs --- */

/* Many logs added up: the counters and messages of all processes of a measurement directory. Ordinary code. */

/* Logs added up. All zero is empty. */
struct log_sum {
    struct log_summary total;
    struct buf incomplete; /* one line per log without a SUMMARY: its path */
    struct buf messages;   /* one line per message: path of the log, then the message */
};

/* Adds every *.log of the directory path, in the order of their names, or the log path.
 * err: ERR_NOT_FOUND (a directory without logs), else as log_read */
int log_sum_add(struct log_sum *sum, const char *path, struct error *err);

/* Appends the sums as text; events that lost samples say how many and why. */
void log_sum_put_text(const struct log_sum *sum, struct buf *out);

/* Frees everything and makes the sum empty. */
void log_sum_fini(struct log_sum *sum);

/* --- private part --- */

/* The counter lines of a log as a table. */

#define LOG_EVENT_PREFIX "EVENT SUMMARY: "
#define LOG_EVENT_NAME ", name: " /* the last field: an event's name may hold anything but a line end */

/* A further number of an event's line, written when it is not 0; offset of struct log_event. */
struct log_event_field {
    const char *key;
    size_t offset;
};

/* One number: found after key in a line that begins (after blanks) with line; stored at offset of struct log_summary,
 * as a double when is_meg, else as uint64_t. */
struct log_counter {
    const char *line, *key;
    const char *field; /* its name in JSON */
    size_t offset;
    bool is_meg;
};

#endif
