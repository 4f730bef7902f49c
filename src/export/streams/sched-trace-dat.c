/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream as trace.dat, for KernelShark and trace-cmd. Events whose format the recording holds keep their bytes and
 * their format; all others become events with the text that is shown for them. Twins are written when the stream has
 * them, under names that the readers' parsers take. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "export/streams/sched-report.h"
#include "fmt/trace-dat.h"
#include "streams/couplebreak.h"
#include "streams/formats.h"

#define FIRST_OWN_ID 30001 /* kernels number their events from below */

enum payload_kind { PAYLOAD_RAW, PAYLOAD_TEXT, PAYLOAD_TWIN };

/* Where the text of an event of ours begins, and the numbers of a twin: behind the fields that all events have. */
enum { COMMON_BYTES = 8, TEXT_OFFSET = 12, TWIN_BYTES = 16 };

/* A type of the stream, and what it is in the file. */
struct written_type {
    int32_t id; /* in the stream */
    int file_id;
    enum payload_kind kind;
    uint32_t n_fixed; /* PAYLOAD_RAW: bytes up to the end of the last field; 0: they differ */
    char *system, *text;
};

struct dat_writing {
    const struct sched_job *job;
    struct stream *stream;
    struct written_type *types; /* [n_types] */
    size_t n_types;
    int next_id;
    size_t *by_cpu; /* [first[n_cpus]] indexes of events, CPU by CPU */
    size_t *first;  /* [n_cpus + 1] where in by_cpu each CPU begins */
    struct trace_dat_writer writer;
};

/* --- types --- */

static bool is_used(const struct dat_writing *writing, int id)
{
    for (size_t i = 0; i < writing->stream->n_types; i++)
        if (writing->stream->types[i].id == id)
            return true;
    return false;
}

static int own_id(struct dat_writing *writing)
{
    while (is_used(writing, writing->next_id))
        writing->next_id++;
    return writing->next_id++;
}

/* The format of an event of ours: fields and what is printed. */
static void put_format(struct buf *out, const char *name, int id, const char *fields, const char *print)
{
    buf_printf(out, "name: ");
    for (const char *at = name; *at; at++) {
        char c = isalnum((unsigned char)*at) ? *at : '_';
        buf_append(out, &c, 1);
    }
    buf_printf(out,
               "\nID: %d\nformat:\n"
               "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
               "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
               "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
               "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n%s\nprint fmt: %s\n",
               id, fields, print);
}

/* Adds the type with a format of ours; name: "system/name". False when out of memory. */
static bool add_own(struct dat_writing *writing, int32_t id, const char *name, enum payload_kind kind)
{
    static const char text_fields[] = "\tfield:__data_loc char[] info;\toffset:8;\tsize:4;\tsigned:0;\n";
    static const char twin_fields[] = "\tfield:int origin_pid;\toffset:8;\tsize:4;\tsigned:1;\n"
                                      "\tfield:int origin_cpu;\toffset:12;\tsize:4;\tsigned:1;\n";
    const char *slash = strchr(name, '/');
    struct buf text = {0};
    struct written_type *type = &writing->types[writing->n_types++];
    *type = (struct written_type){.id = id, .kind = kind, .file_id = own_id(writing)};
    if (kind == PAYLOAD_TWIN)
        put_format(&text, slash ? slash + 1 : name, type->file_id, twin_fields,
                   "\"origin_pid=%d origin_cpu=%d\", REC->origin_pid, REC->origin_cpu");
    else
        put_format(&text, slash ? slash + 1 : name, type->file_id, text_fields, "\"%s\", __get_str(info)");
    type->system = slash ? strndup(name, (size_t)(slash - name)) : strdup("locus");
    type->text = text.failed ? NULL : text.data;
    return type->system && type->text;
}

static uint32_t fixed_bytes(const struct stream_type *type)
{
    uint32_t end = 0;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct stream_field *field = &type->fields[i];
        if (field->flags & STREAM_FIELD_DYNAMIC)
            return 0;
        end = field->offset + field->n_bytes > end ? field->offset + field->n_bytes : end;
    }
    return end;
}

static bool add_type(struct dat_writing *writing, const struct stream_type *from)
{
    const struct stream *stream = writing->stream;
    const char *slash = strchr(from->name, '/');
    const char *text = stream->formats && slash ? formats_text_of(stream->formats, from->name) : NULL;
    if (!text || stream->is_swapped || from->id <= 0 || from->id > TRACE_DAT_ID_MAX || !from->n_fields)
        return add_own(writing, from->id, from->name, PAYLOAD_TEXT);
    struct written_type *type = &writing->types[writing->n_types++];
    *type = (struct written_type){.id = from->id,
                                  .file_id = from->id,
                                  .kind = PAYLOAD_RAW,
                                  .n_fixed = fixed_bytes(from),
                                  .system = strndup(from->name, (size_t)(slash - from->name)),
                                  .text = strdup(text)};
    return type->system && type->text;
}

static bool add_twins(struct dat_writing *writing)
{
    static const char *const names[] = {"couplebreak/sched_switch_target", "couplebreak/sched_waking_target",
                                        "couplebreak/sched_migrate_task_target"};
    int32_t ids[COUPLEBREAK_N];
    int n = couplebreak_ids(writing->stream, ids);
    bool is_done = true;
    for (int i = 0; i < n && is_done; i++)
        is_done = add_own(writing, ids[i], names[couplebreak_id_to_flag_pos(ids[i])], PAYLOAD_TWIN);
    return is_done;
}

static int by_system(const void *a, const void *b)
{
    const struct written_type *x = a, *y = b;
    int order = strcmp(x->system, y->system);
    return order ? order : (x->file_id > y->file_id) - (x->file_id < y->file_id);
}

/* Types without events are left out, but for those of scheduling, which readers look for. */
static int make_types(struct dat_writing *writing, struct error *err)
{
    const struct stream *stream = writing->stream;
    writing->next_id = FIRST_OWN_ID;
    writing->types = calloc(stream->n_types + COUPLEBREAK_N + 1, sizeof *writing->types);
    bool is_done = writing->types != NULL;
    for (size_t i = 0; i < stream->n_types && is_done; i++)
        if (stream->types[i].n_events || strncmp(stream->types[i].name, "sched/", 6) == 0)
            is_done = add_type(writing, &stream->types[i]);
    is_done = is_done && add_twins(writing);
    if (is_done && stream->n_lost_places)
        is_done = add_own(writing, STREAM_ID_LOST, "locus/lost", PAYLOAD_TEXT);
    if (is_done)
        qsort(writing->types, writing->n_types, sizeof *writing->types, by_system);
    return is_done ? 0 : error_memory(err);
}

static const struct written_type *type_of(const struct dat_writing *writing, int32_t id)
{
    for (size_t i = 0; i < writing->n_types; i++)
        if (writing->types[i].id == id)
            return &writing->types[i];
    return NULL;
}

/* --- events --- */

static bool is_wanted(const struct dat_writing *writing, const struct stream_event *event)
{
    const struct sched_job *job = writing->job;
    const struct stream *stream = writing->stream;
    return event->visible & STREAM_VISIBLE_TEXT && event->cpu < stream->n_cpus && event->t_ns >= job->window.from_ns &&
           event->t_ns <= job->window.to_ns && sched_wants_cpu(job, event->cpu) &&
           (!job->tasks || sched_wants_task(job, stream, event->task)) &&
           (!job->events || sched_wants_event(job, stream_event_name(stream, event)));
}

/* Which events each CPU has, in the order of time. */
static int sort_by_cpu(struct dat_writing *writing, struct error *err)
{
    const struct stream *stream = writing->stream;
    writing->first = calloc((size_t)stream->n_cpus + 2, sizeof *writing->first);
    writing->by_cpu = calloc(stream->n_events + 1, sizeof *writing->by_cpu);
    if (!writing->first || !writing->by_cpu)
        return error_memory(err);
    size_t *next = writing->first + 1;
    for (size_t i = 0; i < stream->n_events; i++)
        if (is_wanted(writing, &stream->events[i]))
            next[stream->events[i].cpu + 1]++;
    for (uint32_t cpu = 0; cpu < stream->n_cpus; cpu++)
        next[cpu + 1] += next[cpu];
    for (size_t i = 0; i < stream->n_events; i++)
        if (is_wanted(writing, &stream->events[i]))
            writing->by_cpu[next[stream->events[i].cpu]++] = i;
    return 0;
}

static void put_common(unsigned char *payload, int id, int32_t task)
{
    uint16_t type = (uint16_t)id;
    memcpy(payload, &type, sizeof type);
    memcpy(payload + 4, &task, sizeof task);
}

/* An event of ours with a text. */
static int add_text(struct dat_writing *writing, uint64_t t_ns, const struct written_type *type, int32_t task,
                    const struct buf *text, struct error *err)
{
    unsigned char payload[TRACE_DAT_PAYLOAD_MAX] = {0};
    size_t n = text->len_bytes < sizeof payload - TEXT_OFFSET - 1 ? text->len_bytes : sizeof payload - TEXT_OFFSET - 1;
    uint32_t place = TEXT_OFFSET | (uint32_t)(n + 1) << 16;
    put_common(payload, type->file_id, task);
    memcpy(payload + COMMON_BYTES, &place, sizeof place);
    if (n)
        memcpy(payload + TEXT_OFFSET, text->data, n);
    return text->failed ? error_memory(err)
                        : trace_dat_add(&writing->writer, t_ns, payload, (uint32_t)(TEXT_OFFSET + n + 1), err);
}

static int add_twin(struct dat_writing *writing, uint64_t t_ns, const struct written_type *type,
                    const struct stream_event *event, struct error *err)
{
    unsigned char payload[TWIN_BYTES] = {0};
    const struct stream_event *origin = couplebreak_origin(writing->stream, event);
    const int32_t numbers[] = {origin->task, origin->cpu};
    put_common(payload, type->file_id, event->task);
    memcpy(payload + COMMON_BYTES, numbers, sizeof numbers);
    return trace_dat_add(&writing->writer, t_ns, payload, sizeof payload, err);
}

static int add_event(struct dat_writing *writing, const struct stream_event *event, struct error *err)
{
    const struct written_type *type = type_of(writing, event->id);
    uint64_t t_ns = (uint64_t)(event->t_ns - writing->stream->offset_ns);
    const unsigned char *bytes;
    size_t n_bytes;
    if (event->id == STREAM_ID_LOST) {
        trace_dat_lost(&writing->writer, event->record);
        return 0;
    }
    if (!type)
        return error_set(err, ERR_FORMAT, "%.600s: an event of type %d, which the recording does not describe",
                         writing->stream->path, (int)event->id);
    if (type->kind == PAYLOAD_TWIN)
        return add_twin(writing, t_ns, type, event, err);
    if (type->kind == PAYLOAD_RAW && stream_event_bytes(writing->stream, event, &bytes, &n_bytes))
        return trace_dat_add(&writing->writer, t_ns, bytes,
                             (uint32_t)(type->n_fixed && type->n_fixed < n_bytes ? type->n_fixed : n_bytes), err);
    struct buf text = {0};
    int code = stream_put_info(writing->stream, event, &text, err);
    code = code ? code : add_text(writing, t_ns, type, event->task, &text, err);
    buf_fini(&text);
    return code;
}

/* What was lost behind the last event of a CPU has none that readers would show it with. */
static int add_last_lost(struct dat_writing *writing, const struct stream_event *event, struct error *err)
{
    struct buf text = {0};
    if (event->record)
        buf_printf(&text, "%llu events were lost", (unsigned long long)event->record);
    else
        buf_printf(&text, "events were lost");
    int code = add_text(writing, (uint64_t)(event->t_ns - writing->stream->offset_ns), type_of(writing, STREAM_ID_LOST),
                        0, &text, err);
    buf_fini(&text);
    return code;
}

static int add_cpu(struct dat_writing *writing, uint32_t cpu, struct error *err)
{
    const struct stream_event *events = writing->stream->events, *last = NULL;
    int code = trace_dat_cpu(&writing->writer, cpu, err);
    for (size_t i = writing->first[cpu]; i < writing->first[cpu + 1] && code == 0; i++) {
        last = &events[writing->by_cpu[i]];
        code = add_event(writing, last, err);
    }
    return code == 0 && last && last->id == STREAM_ID_LOST ? add_last_lost(writing, last, err) : code;
}

/* --- the file --- */

static int begin_file(struct dat_writing *writing, struct buf *out, struct error *err)
{
    const struct stream *stream = writing->stream;
    struct trace_dat_format *formats = calloc(writing->n_types + 1, sizeof *formats);
    struct trace_dat_task *tasks = calloc(stream->n_tasks + 1, sizeof *tasks);
    size_t n_tasks = 0;
    for (size_t i = 0; formats && i < writing->n_types; i++)
        formats[i] = (struct trace_dat_format){writing->types[i].system, writing->types[i].text};
    for (size_t i = 0; tasks && i < stream->n_tasks; i++)
        if (stream->tasks[i].task > 0 && stream->tasks[i].comm && stream->tasks[i].comm[0] != '<')
            tasks[n_tasks++] = (struct trace_dat_task){stream->tasks[i].task, stream->tasks[i].comm};
    const struct trace_dat_head head = {.n_cpus = stream->n_cpus,
                                        .formats = formats,
                                        .n_formats = writing->n_types,
                                        .tasks = tasks,
                                        .n_tasks = n_tasks,
                                        .clock = stream->clock_text ? stream->clock_text : "local",
                                        .uname = stream->system,
                                        .trace_id = stream->trace_id};
    int code = formats && tasks ? trace_dat_begin(&writing->writer, out, &head, err) : error_memory(err);
    free(formats);
    free(tasks);
    return code;
}

static void writing_fini(struct dat_writing *writing)
{
    for (size_t i = 0; i < writing->n_types; i++) {
        free(writing->types[i].system);
        free(writing->types[i].text);
    }
    free(writing->types);
    free(writing->by_cpu);
    free(writing->first);
}

int sched_write_trace_dat(const struct sched_job *job, struct buf *out, struct error *err)
{
    if (job->n_streams != 1)
        return error_set(err, ERR_USAGE, "a trace.dat holds one recording: give one");
    struct dat_writing writing = {.job = job, .stream = job->streams[0].stream};
    int code = make_types(&writing, err);
    code = code ? code : sort_by_cpu(&writing, err);
    code = code ? code : begin_file(&writing, out, err);
    for (uint32_t cpu = 0; cpu < writing.stream->n_cpus && code == 0; cpu++)
        code = add_cpu(&writing, cpu, err);
    int ended = writing.writer.out ? trace_dat_end(&writing.writer, code ? NULL : err) : 0;
    writing_fini(&writing);
    return code ? code : ended;
}
