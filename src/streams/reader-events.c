/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of measurement directories of ours with logs of samples (hpcrun -t): each sample is an event locus/sample of
 * its thread. Its bytes are those of a tracepoint with a format of ours, so that the tools that read trace.dat show and
 * filter its fields. A log has no switches: nothing is known of scheduling. Ordinary code. */
#include "streams/readers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "fmt/events.h"
#include "fmt/objects.h"
#include "measurement/names.h"

extern const struct stream_reader stream_reader_events;

#define ID_SAMPLE 30001

/* Where the fields of a sample lie; the texts follow. */
enum {
    TASK_AT = 4,
    OFFSET_AT = 8,
    PATH_NODE_AT = 16,
    VARIABLE_NODE_AT = 20,
    LATENCY_AT = 24,
    VARIABLE_AT = 28,
    CLASS_AT = 32,
    EVENT_AT = 36,
    METRICS_AT = 40,
    INFO_AT = 44,
    TEXTS_AT = 48,
    TEXT_MAX = 700 /* of each text: five of them fit into a page of trace.dat */
};

/* What is not known has no place in info, and is -1, 0 or an empty text in the other fields. */
static const char format[] = "name: sample\n"
                             "ID: 30001\n"
                             "format:\n"
                             "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                             "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
                             "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
                             "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
                             "\n"
                             "\tfield:s64 offset;\toffset:8;\tsize:8;\tsigned:1;\n"
                             "\tfield:u32 path_node;\toffset:16;\tsize:4;\tsigned:0;\n"
                             "\tfield:u32 variable_node;\toffset:20;\tsize:4;\tsigned:0;\n"
                             "\tfield:u32 latency;\toffset:24;\tsize:4;\tsigned:0;\n"
                             "\tfield:__data_loc char[] variable;\toffset:28;\tsize:4;\tsigned:0;\n"
                             "\tfield:__data_loc char[] class;\toffset:32;\tsize:4;\tsigned:0;\n"
                             "\tfield:__data_loc char[] event;\toffset:36;\tsize:4;\tsigned:0;\n"
                             "\tfield:__data_loc char[] metrics;\toffset:40;\tsize:4;\tsigned:0;\n"
                             "\tfield:__data_loc char[] info;\toffset:44;\tsize:4;\tsigned:0;\n"
                             "\n"
                             "print fmt: \"%s\", __get_str(info)\n";

/* The log of one thread. */
struct sample_log {
    const struct names_file *name;
    struct events_file file;
    struct objects_file side; /* empty where it is missing: variables then have no names */
};

static bool events_fits(const struct stream_input *input)
{
    struct names_file *names = NULL;
    struct error ignored;
    size_t n = 0;
    bool fits = input->is_directory && names_list(input->path, "events", &names, &n, &ignored) == 0 && n > 0;
    free(names);
    return fits;
}

/* --- the type --- */

/* Without libtraceevent there are texts, but no fields. */
static int add_type(struct stream *stream, struct error *err)
{
    static const char system[] = "locus";
    struct formats_event event = {{system, sizeof system - 1}, {format, sizeof format - 1}};
    const struct formats_input input = {.path = stream->path,
                                        .is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
                                        .long_bytes = sizeof(long),
                                        .page_bytes = 4096,
                                        .events = &event,
                                        .n_events = 1};
    struct stream_formats *formats = NULL;
    struct error own = {0};
    int code = formats_open(&input, &formats, &own);
    if (code && code != ERR_UNSUPPORTED)
        return error_set(err, code, "%s", own.text);
    code = code ? 0 : stream_take_formats(stream, formats, err);
    return code || stream_add_type(stream, ID_SAMPLE, "locus/sample") ? code : error_memory(err);
}

/* --- events --- */

static void put_at(struct buf *bytes, size_t at, const void *value, size_t n_bytes)
{
    if (!bytes->failed)
        memcpy(bytes->data + at, value, n_bytes);
}

/* Appends a text to the event that begins at start, and notes its place in the field at. */
static void put_text(struct buf *bytes, size_t start, size_t at, const char *text)
{
    size_t n = strnlen(text, TEXT_MAX);
    uint32_t place = (uint32_t)(bytes->len_bytes - start) | (uint32_t)(n + 1) << 16;
    put_at(bytes, start + at, &place, sizeof place);
    buf_append(bytes, text, n);
    buf_append(bytes, "", 1);
}

/* The texts of a sample, one behind the other. */
static void put_texts(const struct sample_log *log, const struct events_record *record, size_t start, struct buf *bytes)
{
    const struct events_access *access = &log->file.accesses[record->access];
    const char *event = log->file.sources[access->source].name, *class = events_class_name(access->class);
    struct buf variable = {0}, metrics = {0}, info = {0};
    objects_put_variable(&log->side, access->variable, &variable);
    events_put_metrics(access->metrics, &metrics);
    if (variable.len_bytes)
        buf_printf(&info, "variable=%.*s ", TEXT_MAX / 2, variable.data);
    if (record->offset != EVENTS_NO_OFFSET)
        buf_printf(&info, "offset=%" PRIu64 " ", record->offset);
    buf_printf(&info, "class=%s event=%.64s path_node=%" PRIu32, class, event, access->node);
    if (record->lat_cycles)
        buf_printf(&info, " latency=%" PRIu32, record->lat_cycles);
    if (metrics.len_bytes)
        buf_printf(&info, " metrics=%s", metrics.data);
    bytes->failed |= variable.failed || metrics.failed || info.failed;
    put_text(bytes, start, VARIABLE_AT, variable.len_bytes ? variable.data : "");
    put_text(bytes, start, CLASS_AT, class);
    put_text(bytes, start, EVENT_AT, event);
    put_text(bytes, start, METRICS_AT, metrics.len_bytes ? metrics.data : "");
    put_text(bytes, start, INFO_AT, info.len_bytes ? info.data : "");
    buf_fini(&variable);
    buf_fini(&metrics);
    buf_fini(&info);
}

/* Appends the bytes of a sample, a multiple of 8. */
static void put_sample(const struct sample_log *log, const struct events_record *record, int32_t task,
                       struct buf *bytes)
{
    static const unsigned char zeros[TEXTS_AT];
    const struct events_access *access = &log->file.accesses[record->access];
    const uint16_t id = ID_SAMPLE;
    int64_t offset = record->offset == EVENTS_NO_OFFSET ? -1 : (int64_t)record->offset;
    size_t start = bytes->len_bytes;
    buf_append(bytes, zeros, sizeof zeros);
    put_at(bytes, start, &id, sizeof id);
    put_at(bytes, start + TASK_AT, &task, sizeof task);
    put_at(bytes, start + OFFSET_AT, &offset, sizeof offset);
    put_at(bytes, start + PATH_NODE_AT, &access->node, sizeof access->node);
    put_at(bytes, start + VARIABLE_NODE_AT, &access->variable, sizeof access->variable);
    put_at(bytes, start + LATENCY_AT, &record->lat_cycles, sizeof record->lat_cycles);
    put_texts(log, record, start, bytes);
    buf_append(bytes, zeros, -bytes->len_bytes % 8);
}

static int add_sample(const struct sample_log *log, const struct events_record *record, int32_t task, struct buf *bytes,
                      struct stream *stream, struct error *err)
{
    size_t start = bytes->len_bytes;
    if (record->t_ns > INT64_MAX)
        return error_set(err, ERR_FORMAT, "%.600s: a sample of process %" PRIu32 " has an impossible time",
                         stream->path, log->name->pid);
    put_sample(log, record, task, bytes);
    struct stream_event *event = bytes->failed ? NULL : stream_add_event(stream);
    if (!event)
        return error_memory(err);
    event->t_ns = (int64_t)record->t_ns;
    event->record = start;
    event->n_bytes = (uint32_t)(bytes->len_bytes - start);
    event->task = task;
    event->id = ID_SAMPLE;
    event->cpu = record->cpu;
    if (event->cpu != STREAM_NO_CPU && event->cpu >= stream->n_cpus)
        stream->n_cpus = event->cpu + 1u;
    return 0;
}

/* --- logs --- */

/* The thread of a log: the side file says which; without one, the first thread has the number of its process. */
static int32_t task_of(const struct sample_log *log)
{
    uint32_t tid = log->side.tid ? log->side.tid : log->name->thread == 0 ? log->name->pid : 0;
    return tid && tid <= INT32_MAX ? (int32_t)tid : STREAM_NO_TASK;
}

static int add_log(const struct sample_log *log, struct buf *bytes, struct stream *stream, struct error *err)
{
    int32_t task = task_of(log), process = log->name->pid <= INT32_MAX ? (int32_t)log->name->pid : STREAM_NO_TASK;
    int code = 0;
    if (!stream->has_wall) {
        stream->has_wall = true;
        stream->wall_ns = log->file.wall_ns;
    }
    if (!stream->host && log->side.host && !(stream->host = strdup(log->side.host)))
        return error_memory(err);
    if (task != STREAM_NO_TASK && !stream_add_task(stream, task, process, log->name->exe))
        return error_memory(err);
    for (size_t i = 0; i < log->file.n_records && !code; i++)
        code = add_sample(log, &log->file.records[i], task, bytes, stream, err);
    return code;
}

static int read_log(const char *directory, const struct names_file *name, struct buf *bytes, struct stream *stream,
                    struct error *err)
{
    struct sample_log log = {.name = name};
    struct names_file side = *name;
    struct error ignored;
    (void)snprintf(side.suffix, sizeof side.suffix, "objects");
    char *path = names_path(directory, name), *side_path = names_path(directory, &side);
    int code = path && side_path ? events_read(path, &log.file, err) : error_memory(err);
    if (!code) {
        (void)objects_read(side_path, &log.side, &ignored);
        objects_sort_variables(&log.side);
        code = add_log(&log, bytes, stream, err);
    }
    events_fini(&log.file);
    objects_fini(&log.side);
    free(path);
    free(side_path);
    return code;
}

static int events_read_all(const struct stream_input *input, const struct stream_options *options,
                           struct stream *stream, struct error *err)
{
    struct names_file *names;
    struct buf bytes = {0};
    size_t n;
    (void)options;
    int code = names_list(input->path, "events", &names, &n, err);
    for (size_t i = 1; i < n && !code; i++)
        if (names[i].host_id != names[0].host_id)
            code = error_set(err, ERR_UNSUPPORTED,
                             "%.600s: logs of several hosts (%08" PRIx32 ", %08" PRIx32
                             "), each with CPUs of its own; give a directory that has those of one",
                             input->path, names[0].host_id, names[i].host_id);
    code = code ? code : add_type(stream, err);
    for (size_t i = 0; i < n && !code; i++)
        code = read_log(input->path, &names[i], &bytes, stream, err);
    free(names);
    stream->bytes = (const unsigned char *)bytes.data;
    stream->n_bytes = bytes.len_bytes;
    stream->tier = STREAM_TIER_NONE;
    stream->clock = STREAM_CLOCK_MONOTONIC;
    stream->clock_text = strdup("mono");
    return code || stream->clock_text ? code : error_memory(err);
}

static void events_close(struct stream *stream)
{
    free((void *)stream->bytes);
}

/* --- texts --- */

/* Of interrupts, preemption and locks nothing is known. */
static int events_put_latency(const struct stream *stream, const struct stream_event *event, struct buf *out,
                              struct error *err)
{
    (void)stream;
    (void)event;
    (void)out;
    (void)err;
    return 0;
}

static int events_put_info(const struct stream *stream, const struct stream_event *event, struct buf *out,
                           struct error *err)
{
    uint32_t place;
    (void)err;
    memcpy(&place, stream->bytes + event->record + INFO_AT, sizeof place);
    printable_put(out, (const char *)stream->bytes + event->record + (place & 0xffff));
    return 0;
}

const struct stream_reader stream_reader_events = {.name = "logs of samples (hpcrun -t)",
                                                   .fits = events_fits,
                                                   .read = events_read_all,
                                                   .close = events_close,
                                                   .put_latency = events_put_latency,
                                                   .put_info = events_put_info};
