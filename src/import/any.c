/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of file kinds: see any.h. */
#include "import/any.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fmt/file.h"

/* A kind of file. begins: its first bytes; suffix: of its name; format: its mark in JSON. The first two may be NULL. */
struct any_row {
    const char *begins, *suffix, *format;
    int (*read)(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err);
    int (*take_json)(struct json_take *take, const json_t *root, struct any_file *file);
    void (*put_text)(const struct any_file *file, struct buf *out);
    void (*put_json)(const struct any_file *file, struct buf *out);
    int (*write)(const struct any_file *file, struct buf *out, struct error *err);
    void (*fini)(struct any_file *file);
};

static int profile_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err)
{
    return hpcrun_read_memory(bytes, len_bytes, name, &file->as.profile, err);
}

static int profile_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return hpcrun_take_json(take, root, &file->as.profile);
}

static void profile_put_text(const struct any_file *file, struct buf *out)
{
    hpcrun_put_text(&file->as.profile, out);
}

static void profile_put_json(const struct any_file *file, struct buf *out)
{
    hpcrun_put_json(&file->as.profile, out);
}

static int profile_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return hpcrun_write(&file->as.profile, out, err);
}

static void profile_fini(struct any_file *file)
{
    hpcrun_fini(&file->as.profile);
}

static int any_trace_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                          struct error *err)
{
    return trace_read_memory(bytes, len_bytes, name, &file->as.trace, err);
}

static int any_trace_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return trace_take_json(take, root, &file->as.trace);
}

static void any_trace_put_text(const struct any_file *file, struct buf *out)
{
    trace_put_text(&file->as.trace, out);
}

static void any_trace_put_json(const struct any_file *file, struct buf *out)
{
    trace_put_json(&file->as.trace, out);
}

static int any_trace_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return trace_write(&file->as.trace, out, err);
}

static void any_trace_fini(struct any_file *file)
{
    trace_fini(&file->as.trace);
}

static int any_events_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                           struct error *err)
{
    return events_read_memory(bytes, len_bytes, name, &file->as.events, err);
}

static int any_events_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return events_take_json(take, root, &file->as.events);
}

static void any_events_put_text(const struct any_file *file, struct buf *out)
{
    events_put_text(&file->as.events, out);
}

static void any_events_put_json(const struct any_file *file, struct buf *out)
{
    events_put_json(&file->as.events, out);
}

static int any_events_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return events_write(&file->as.events, out, err);
}

static void any_events_fini(struct any_file *file)
{
    events_fini(&file->as.events);
}

static int any_sched_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                          struct error *err)
{
    return sched_read_memory(bytes, len_bytes, name, &file->as.sched, err);
}

static int any_sched_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return sched_take_json(take, root, &file->as.sched);
}

static void any_sched_put_text(const struct any_file *file, struct buf *out)
{
    sched_put_text(&file->as.sched, out);
}

static void any_sched_put_json(const struct any_file *file, struct buf *out)
{
    sched_put_json(&file->as.sched, out);
}

static int any_sched_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return sched_write(&file->as.sched, out, err);
}

static void any_sched_fini(struct any_file *file)
{
    sched_fini(&file->as.sched);
}

static int db_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err)
{
    return metric_db_read_memory(bytes, len_bytes, name, &file->as.metric_db, err);
}

static int db_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return metric_db_take_json(take, root, &file->as.metric_db);
}

static void db_put_text(const struct any_file *file, struct buf *out)
{
    metric_db_put_text(&file->as.metric_db, out);
}

static void db_put_json(const struct any_file *file, struct buf *out)
{
    metric_db_put_json(&file->as.metric_db, out);
}

static int db_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return metric_db_write(&file->as.metric_db, out, err);
}

static void db_fini(struct any_file *file)
{
    metric_db_fini(&file->as.metric_db);
}

static int any_log_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err)
{
    return log_read_memory(bytes, len_bytes, name, &file->as.log, err);
}

static int any_log_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    (void)root;
    (void)file;
    return json_take_fail(take, ERR_UNSUPPORTED, "format", "the JSON of a log is a summary: no log is made of it");
}

static void any_log_put_text(const struct any_file *file, struct buf *out)
{
    for (size_t i = 0; i < file->as.log.n_messages; i++)
        buf_printf(out, "%s\n", file->as.log.messages[i]);
    if (file->as.log.n_complete)
        log_write_summary(&file->as.log, out);
}

static void any_log_put_json(const struct any_file *file, struct buf *out)
{
    log_put_json(&file->as.log, out);
}

static int any_log_write(const struct any_file *file, struct buf *out, struct error *err)
{
    (void)err;
    any_log_put_text(file, out);
    return 0;
}

static void any_log_fini(struct any_file *file)
{
    log_fini(&file->as.log);
}

static int any_objects_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                            struct error *err)
{
    return objects_read_memory(bytes, len_bytes, name, &file->as.objects, err);
}

static int any_objects_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return objects_take_json(take, root, &file->as.objects);
}

/* The side file is JSON: it is its own text. */
static void any_objects_put(const struct any_file *file, struct buf *out)
{
    (void)objects_write_memory(&file->as.objects, out, NULL);
}

static int any_objects_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return objects_write_memory(&file->as.objects, out, err);
}

static void any_objects_fini(struct any_file *file)
{
    objects_fini(&file->as.objects);
}

static int any_perf_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                         struct error *err)
{
    int code = perf_data_read_memory(bytes, len_bytes, name, &file->as.perf, err);
    code = code ? code : perf_data_check(&file->as.perf, err);
    if (code)
        perf_data_fini(&file->as.perf);
    return code;
}

static int any_perf_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    (void)root;
    (void)file;
    return json_take_fail(take, ERR_UNSUPPORTED, "format", "files of perf are only read: none is made of their JSON");
}

static void any_perf_put_text(const struct any_file *file, struct buf *out)
{
    perf_data_put_text(&file->as.perf, out);
}

static void any_perf_put_json(const struct any_file *file, struct buf *out)
{
    perf_data_put_json(&file->as.perf, out);
}

static int any_perf_write(const struct any_file *file, struct buf *out, struct error *err)
{
    (void)err;
    buf_append(out, file->as.perf.bytes, file->as.perf.n_bytes);
    return 0;
}

static void any_perf_fini(struct any_file *file)
{
    perf_data_fini(&file->as.perf);
}

static int any_v4_read(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err)
{
    return v4_read_memory(bytes, len_bytes, name, &file->as.v4, err);
}

static int any_v4_take_json(struct json_take *take, const json_t *root, struct any_file *file)
{
    return v4_take_json(take, root, &file->as.v4);
}

static void any_v4_put_text(const struct any_file *file, struct buf *out)
{
    v4_put_text(&file->as.v4, out);
}

static void any_v4_put_json(const struct any_file *file, struct buf *out)
{
    v4_put_json(&file->as.v4, out);
}

static int any_v4_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return v4_write(&file->as.v4, out, err);
}

static void any_v4_fini(struct any_file *file)
{
    v4_fini(&file->as.v4);
}

static const struct any_row rows[] = {
    {"HPCRUN-profile____", NULL, "hpcrun", profile_read, profile_take_json, profile_put_text, profile_put_json,
     profile_write, profile_fini},
    {"HPCRUN-trace______", NULL, "hpctrace", any_trace_read, any_trace_take_json, any_trace_put_text,
     any_trace_put_json, any_trace_write, any_trace_fini},
    {"LOCUS-events______", NULL, "locus-events", any_events_read, any_events_take_json, any_events_put_text,
     any_events_put_json, any_events_write, any_events_fini},
    {SCHED_BEGINS, NULL, "locus-sched", any_sched_read, any_sched_take_json, any_sched_put_text, any_sched_put_json,
     any_sched_write, any_sched_fini},
    {"HPCPROF-metricdb__", NULL, "metric-db", db_read, db_take_json, db_put_text, db_put_json, db_write, db_fini},
    {"{\"format\": \"" OBJECTS_FORMAT "\"", ".objects", OBJECTS_FORMAT, any_objects_read, any_objects_take_json,
     any_objects_put, any_objects_put, any_objects_write, any_objects_fini},
    {PERF_DATA_BEGINS, NULL, "perf-data", any_perf_read, any_perf_take_json, any_perf_put_text, any_perf_put_json,
     any_perf_write, any_perf_fini},
    {PERF_DATA_BEGINS_SWAPPED, NULL, "perf-data", any_perf_read, any_perf_take_json, any_perf_put_text,
     any_perf_put_json, any_perf_write, any_perf_fini},
    {V4_BEGINS, NULL, "v4", any_v4_read, any_v4_take_json, any_v4_put_text, any_v4_put_json, any_v4_write, any_v4_fini},
    {NULL, ".log", "hpcrun-log", any_log_read, any_log_take_json, any_log_put_text, any_log_put_json, any_log_write,
     any_log_fini},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* Files that users hand over by mistake, and why they are not read. */
static const struct {
    const char *begins, *reason;
} refusals[] = {
    {"<?xml", "an XML file (a database's experiment.xml or a program structure), which is text already"},
    {"\x7f"
     "ELF",
     "a program or library, not a measurement"},
};

static bool begins_with(const char *bytes, size_t len_bytes, const char *text)
{
    return len_bytes >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, suffix) == 0;
}

/* By the first bytes, else by the name: logs have no mark, and the side file may have been laid out anew. */
static const struct any_row *row_of(const char *bytes, size_t len_bytes, const char *name)
{
    for (const struct any_row *row = rows; row < rows + N_ROWS; row++)
        if (row->begins && begins_with(bytes, len_bytes, row->begins))
            return row;
    for (const struct any_row *row = rows; row < rows + N_ROWS; row++)
        if (row->suffix && has_suffix(name, row->suffix))
            return row;
    return NULL;
}

static int refuse(const char *bytes, size_t len_bytes, const char *name, struct error *err)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (begins_with(bytes, len_bytes, refusals[i].begins))
            return error_set(err, ERR_UNSUPPORTED, "%.600s: offset 0: this is %s", name, refusals[i].reason);
    for (const struct any_row *row = rows; row < rows + N_ROWS; row++)
        if (row->begins && len_bytes < strlen(row->begins) && memcmp(bytes, row->begins, len_bytes) == 0)
            return error_set(err, ERR_FORMAT, "%.600s: offset %zu: the file is %s", name, len_bytes,
                             len_bytes ? "truncated in its first bytes" : "empty");
    char begin[32] = "";
    for (size_t i = 0; i < len_bytes && i < 8; i++)
        (void)snprintf(begin + 3 * i, sizeof begin - 3 * i, " %02x", (unsigned char)bytes[i]);
    return error_set(err, ERR_FORMAT,
                     "%.600s: offset 0: not a profile, trace, log of samples, file of scheduler records, file of a "
                     "database, side file, log or file of perf: it begins with%s",
                     name, begin);
}

int any_read_memory(const char *bytes, size_t len_bytes, const char *name, struct any_file *file, struct error *err)
{
    const struct any_row *row = row_of(bytes, len_bytes, name);
    if (!row)
        return refuse(bytes, len_bytes, name, err);
    int code = row->read(bytes, len_bytes, name, file, err);
    if (!code)
        file->row = row;
    return code;
}

int any_read(const char *path, struct any_file *file, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = any_read_memory(bytes.data, bytes.len_bytes, path, file, err);
    buf_fini(&bytes);
    return code;
}

static int take_any(struct json_take *take, const json_t *root, struct any_file *file)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    for (const struct any_row *row = rows; format && row < rows + N_ROWS; row++)
        if (strcmp(row->format, format) == 0) {
            if (!row->take_json(take, root, file))
                file->row = row;
            return take->code;
        }
    return json_take_fail(take, ERR_FORMAT, "format", "one of the formats that --json writes is expected");
}

int any_read_json_memory(const char *bytes, size_t len_bytes, const char *name, struct any_file *file,
                         struct error *err)
{
    struct json_take take = {.name = name, .err = err};
    json_t *root = json_take_parse(&take, bytes, len_bytes);
    if (root)
        take_any(&take, root, file);
    json_decref(root);
    return take.code;
}

int any_read_json(const char *path, struct any_file *file, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = any_read_json_memory(bytes.data, bytes.len_bytes, path, file, err);
    buf_fini(&bytes);
    return code;
}

void any_put_text(const struct any_file *file, struct buf *out)
{
    file->row->put_text(file, out);
}

void any_put_json(const struct any_file *file, struct buf *out)
{
    file->row->put_json(file, out);
}

int any_write(const struct any_file *file, struct buf *out, struct error *err)
{
    return file->row->write(file, out, err);
}

void any_fini(struct any_file *file)
{
    if (file->row)
        file->row->fini(file);
    *file = (struct any_file){0};
}
