/* SPDX-License-Identifier: BSD-3-Clause */
/* The counter lines of a log as a table, for log.c and log-read.c. */
#ifndef LOCUS_FMT_LOG_LINES_H
#define LOCUS_FMT_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define LOG_EVENT_PREFIX "EVENT SUMMARY: "
#define LOG_EVENT_NAME ", name: " /* the last field: an event's name may hold anything but a line end */

/* A further number of an event's line, written when it is not 0; offset of struct log_event. */
struct log_event_field {
    const char *key;
    size_t offset;
};

/* The table of them. */
const struct log_event_field *log_event_fields(size_t *n_fields);

/* One number: found behind key in a line that begins (after blanks) with line; stored at offset of struct log_summary,
 * as a double when is_meg, else as uint64_t. */
struct log_counter {
    const char *line, *key;
    const char *field; /* its name in JSON */
    size_t offset;
    bool is_meg;
};

/* The table, in the order of the lines and of the keys in a line. */
const struct log_counter *log_counters(size_t *n_counters);

#endif
