/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of log files, the original's and ours: see log.h. */
#include "fmt/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/file.h"
#include "fmt/log-lines.h"

/* A pass over the lines of one log. line is a copy of the current one. */
struct reader {
    const char *name;
    size_t offset; /* of the line, for messages */
    struct log_summary *summary;
    struct error *err;
    int code;
};

static void fail(struct reader *reader, const char *key)
{
    if (!reader->code)
        reader->code = error_set(reader->err, ERR_FORMAT, "%.400s: offset %zu: no number behind '%s'", reader->name,
                                 reader->offset, key);
}

static uint64_t take_word(struct reader *reader, const char *text, const char *key)
{
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *text == '-')
        fail(reader, key);
    return value;
}

static double take_meg(struct reader *reader, const char *text, const char *key)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text)
        fail(reader, key);
    return value;
}

/* Takes every counter of a line; false when the line is none. Keys are looked for from left to right. */
static bool take_counters(struct reader *reader, const char *line)
{
    size_t n_counters;
    const struct log_counter *counters = log_counters(&n_counters);
    const char *rest = line + strspn(line, " ");
    bool is_counter = false;
    for (size_t i = 0; i < n_counters; i++) {
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

/* The number behind "<key>: " among the comma-separated fields of line, 0 when it is not there. */
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
