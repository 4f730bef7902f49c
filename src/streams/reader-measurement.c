/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of measurements of ours: a directory with logs of samples (hpcrun -t), scheduler records (hpcrun -e sched) or
 * both, or a file of scheduler records with the logs of its launch that lie beside it. Each sample is an event
 * locus/sample of its thread, with bytes as those of a tracepoint with a format of ours, so that the tools that read
 * trace.dat show and filter its fields. Scheduler records are tracepoints of the kernel, or become switches. All have
 * the clock of their host. Ordinary code. */
#include "streams/readers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "fmt/events.h"
#include "fmt/hpcrun.h"
#include "fmt/objects.h"
#include "fmt/sched.h"
#include "measurement/names.h"
#include "measurement/pending.h"
#include "streams/schedule.h"

extern const struct stream_reader stream_reader_measurement, stream_reader_sched;

enum { ID_SAMPLE = 30001, ID_SWITCH = 30002, WAIT_MS = 60000 };

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
    PLACE_AT = 48,
    TEXTS_AT = 56,
    TEXT_MAX = 640 /* of each text: six of them fit into a page of trace.dat */
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
                             "\tfield:__data_loc char[] place;\toffset:48;\tsize:4;\tsigned:0;\n"
                             "\n"
                             "print fmt: \"%s\", __get_str(info)\n";

/* The log of one thread. */
struct sample_log {
    const struct names_file *name;
    struct events_file file;
    struct objects_file side;         /* empty where it is missing: variables then have no names */
    struct hpcrun_profile profile;    /* empty where it is missing: then nodes have no places */
    struct node_place *places;        /* [profile.n_nodes] by id */
    const struct stream_namer *namer; /* NULL: there is none */
    char *profile_name;               /* of its file */
};

/* A node of the profile. */
struct node_place {
    uint32_t id;
    uint32_t node; /* index */
};

static bool has_files(const char *directory, const char *suffix)
{
    struct names_file *names = NULL;
    struct error ignored;
    size_t n = 0;
    bool has_any = names_list(directory, suffix, &names, &n, &ignored) == 0 && n > 0;
    free(names);
    return has_any;
}

static bool measurement_fits(const struct stream_input *input)
{
    return input->is_directory && (has_files(input->path, "events") || has_files(input->path, "sched"));
}

/* --- types --- */

static int add_format(struct formats_input *input, const char *system, const char *text, struct error *err)
{
    if (!vec_reserve(&input->events, &input->cap_events, input->n_events + 1, sizeof *input->events))
        return error_memory(err);
    input->events[input->n_events++] = (struct formats_event){{system, strlen(system)}, {text, strlen(text)}};
    return 0;
}

/* The types of samples (with_samples) and of scheduler records. Without libtraceevent samples have texts, but no
 * fields, and tracepoints cannot be read. */
static int add_types(struct stream *stream, bool with_samples, const struct sched_file *sched, struct error *err)
{
    struct formats_input input = {.path = stream->path,
                                  .is_big_endian = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != stream->is_swapped,
                                  .long_bytes = sizeof(long),
                                  .page_bytes = 4096,
                                  .n_cpus = sched->head.n_cpus};
    struct stream_formats *formats = NULL;
    struct error own = {0};
    int code = with_samples ? add_format(&input, "locus", format, err) : 0;
    for (size_t i = 0; i < sched->n_formats && !code; i++)
        code = add_format(&input, sched->formats[i].system, sched->formats[i].text, err);
    if (!code && input.n_events) {
        code = formats_open(&input, &formats, &own);
        bool is_needed = sched->n_formats > 0 || code != ERR_UNSUPPORTED;
        code = !code ? stream_take_formats(stream, formats, err) : is_needed ? error_set(err, code, "%s", own.text) : 0;
    }
    free(input.events);
    if (!code && with_samples && !stream_add_type(stream, ID_SAMPLE, "locus/sample"))
        code = error_memory(err);
    bool is_raw = sched->head.tier == SCHED_TIER_TRACEPOINTS || sched->head.tier == SCHED_TIER_NONE;
    return !code && sched->head.online && !is_raw ? stream_switch_add_type(stream, ID_SWITCH, err) : code;
}

/* --- scheduler records --- */

/* Whether the host had the other byte order: its tracepoints' numbers are among the formats only then. */
static bool is_swapped(const struct sched_file *file)
{
    for (size_t i = 0; i < file->n_events; i++) {
        uint16_t id;
        if (file->events[i].kind != SCHED_RAW)
            continue;
        memcpy(&id, sched_event_bytes(file, &file->events[i]), sizeof id);
        for (size_t j = 0; j < file->n_formats; j++)
            if (file->formats[j].id == id)
                return false;
        id = __builtin_bswap16(id);
        for (size_t j = 0; j < file->n_formats; j++)
            if (file->formats[j].id == id)
                return true;
    }
    return false;
}

static bool copy_text(char **to, const char *text)
{
    *to = text && *text ? strdup(text) : NULL;
    return !text || !*text || *to;
}

/* A number for the boot of the host: recordings with the same one have one clock. */
static uint64_t id_of(const char *boot_id)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *boot_id; boot_id++)
        hash = (hash ^ (unsigned char)*boot_id) * UINT64_C(1099511628211);
    return hash;
}

/* why_unfinished: of a file without an end. */
static int take_head(const struct sched_file *file, const char *why_unfinished, struct stream *stream,
                     struct error *err)
{
    static const enum stream_tier tiers[] = {[SCHED_TIER_TRACEPOINTS] = STREAM_TIER_PROGRAM,
                                             [SCHED_TIER_SWITCHES] = STREAM_TIER_SWITCHES,
                                             [SCHED_TIER_OWN] = STREAM_TIER_OWN,
                                             [SCHED_TIER_NONE] = STREAM_TIER_NONE};
    const struct sched_head *head = &file->head;
    struct buf note = {0}, system = {0};
    stream->tier = tiers[head->tier];
    if (head->tier == SCHED_TIER_TRACEPOINTS && head->has_all)
        stream->tier = STREAM_TIER_FULL;
    stream->is_synthesised = head->tier == SCHED_TIER_OWN;
    stream->launcher = "hpcrun";
    stream->is_swapped = is_swapped(file);
    stream->n_cpus = head->n_cpus;
    stream->has_wall = true;
    stream->wall_ns = head->wall_ns;
    stream->trace_id = head->boot_id[0] ? id_of(head->boot_id) : 0;
    buf_printf(&system, "Linux %s", head->kernel);
    if (head->why[0])
        buf_printf(&note, "no better: %s", head->why);
    if (file->end.n_left_out || file->end.t_full_ns)
        buf_printf(&note, "%sthe file was full (%" PRIu64 " left out)", note.len_bytes ? "; " : "",
                   file->end.n_left_out);
    if (!file->has_end)
        buf_printf(&note, "%s%s", note.len_bytes ? "; " : "", why_unfinished);
    stream->note = note.data;
    stream->system = system.data;
    return !note.failed && !system.failed && copy_text(&stream->host, head->host) &&
                   copy_text(&stream->online, head->online)
               ? 0
               : error_memory(err);
}

static int32_t task_of_tid(uint32_t tid)
{
    return tid <= INT32_MAX ? (int32_t)tid : STREAM_NO_TASK;
}

static int take_threads(const struct sched_file *file, struct stream *stream, struct error *err)
{
    for (size_t i = 0; i < file->n_tasks; i++) {
        const struct sched_task *from = &file->tasks[i];
        int32_t task = task_of_tid(from->tid);
        if (task == STREAM_NO_TASK)
            continue;
        int32_t process = from->pid ? task_of_tid(from->pid) : STREAM_NO_TASK;
        if (!stream_add_task(stream, task, process, from->comm[0] ? from->comm : NULL) ||
            (from->comm[0] && from->t_ns <= INT64_MAX &&
             !stream_add_name(stream, task, (int64_t)from->t_ns, from->comm)) ||
            (from->is_own && !stream_add_own(stream, task)))
            return error_memory(err);
    }
    return 0;
}

static uint64_t total_hash(const void *item)
{
    return (uint32_t)((const struct stream_total *)item)->task * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool total_is_same(const void *a, const void *b)
{
    return ((const struct stream_total *)a)->task == ((const struct stream_total *)b)->task;
}

/* The last total of each thread. */
static int take_totals(const struct sched_file *file, struct stream *stream, struct error *err)
{
    static const struct slots_kind kind = {sizeof(struct stream_total), total_hash, total_is_same};
    struct slots slots = {0};
    bool ok = true;
    for (size_t i = file->n_totals; i-- > 0 && ok;) {
        const struct sched_total *from = &file->totals[i];
        bool is_known = from->has_schedstat && from->run_ns <= INT64_MAX && from->wait_ns <= INT64_MAX;
        const struct stream_total total = {.task = task_of_tid(from->tid),
                                           .t_ns = (int64_t)(from->t_ns & INT64_MAX),
                                           .run_ns = is_known ? (int64_t)from->run_ns : -1,
                                           .wait_ns = is_known ? (int64_t)from->wait_ns : -1,
                                           .n_runs = from->n_slices,
                                           .n_voluntary = from->n_voluntary,
                                           .n_involuntary = from->n_involuntary,
                                           .cpu = from->cpu};
        ok = slots_put(&slots, &kind, &stream->totals, &stream->n_totals, &stream->cap_totals, &total) != SLOTS_NONE;
    }
    slots_fini(&slots);
    return ok ? 0 : error_memory(err);
}

static struct stream_event *add_event(struct stream *stream, uint64_t t_ns, uint16_t cpu, int32_t id)
{
    struct stream_event *event = stream_add_event(stream);
    if (!event)
        return NULL;
    event->t_ns = (int64_t)t_ns;
    event->record = 0;
    event->n_bytes = 0;
    event->task = STREAM_NO_TASK;
    event->id = id;
    event->cpu = cpu;
    return event;
}

/* A tracepoint's event keeps its bytes. */
static bool add_point(const struct sched_file *file, const struct sched_event *from, struct buf *bytes,
                      struct stream *stream)
{
    const unsigned char *raw = sched_event_bytes(file, from);
    struct stream_event *event = add_event(stream, from->t_ns, from->cpu, 0);
    uint16_t id;
    uint32_t task;
    memcpy(&id, raw, sizeof id);
    memcpy(&task, raw + TASK_AT, sizeof task);
    if (!event)
        return false;
    event->id = stream->is_swapped ? __builtin_bswap16(id) : id;
    if (event->id == ID_SAMPLE || event->id == ID_SWITCH)
        event->id = 0; /* no kernel's, and bytes of ours mean something else */
    event->task = task_of_tid(stream->is_swapped ? __builtin_bswap32(task) : task);
    event->record = bytes->len_bytes;
    event->n_bytes = from->n_bytes;
    buf_append(bytes, raw, from->n_bytes);
    return !bytes->failed;
}

/* A switch, with one side where nobody knows the other; joining NULL: none is joined. */
static bool add_switch(const struct sched_file *file, const struct sched_event *from, struct stream_joining *joining,
                       struct buf *bytes, struct stream *stream)
{
    struct sched_switch what = {0};
    unsigned char made[STREAM_SWITCH_BYTES];
    (void)sched_event_switch(file, from, &what);
    bool is_out = what.flags & SCHED_OUT;
    int32_t own = task_of_tid(what.tid), other = task_of_tid(what.other);
    if (joining && !is_out && joining->is_open && from->t_ns - (uint64_t)joining->t_ns < STREAM_ADJACENT_NS) {
        joining->is_open = false;
        stream_switch_put_next((unsigned char *)bytes->data + stream->events[joining->event].record, own, false);
        return true;
    }
    const struct stream_switch one = {.prev = is_out ? own : other,
                                      .next = is_out ? other : own,
                                      .misc = (uint16_t)((is_out ? SCHEDULE_MISC_OUT : 0) |
                                                         (what.flags & SCHED_PREEMPT ? SCHEDULE_MISC_PREEMPTED : 0) |
                                                         (what.flags & SCHED_GONE ? SCHEDULE_MISC_GONE : 0))};
    if (joining)
        *joining = (struct stream_joining){.is_open = is_out, .t_ns = (int64_t)from->t_ns, .event = stream->n_events};
    struct stream_event *event = add_event(stream, from->t_ns, from->cpu, ID_SWITCH);
    if (!event)
        return false;
    event->task = one.prev != STREAM_NO_TASK ? one.prev : one.next;
    event->record = bytes->len_bytes;
    event->n_bytes = STREAM_SWITCH_BYTES;
    stream_switch_put(&one, stream->is_swapped, made);
    buf_append(bytes, made, sizeof made);
    return !bytes->failed;
}

static int compare_events(const void *a, const void *b)
{
    const struct sched_event *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Where records are missing, and from where on nothing more was recorded. */
static bool add_losses(const struct sched_file *file, struct stream *stream)
{
    for (size_t i = 0; i < file->n_lost; i++) {
        uint64_t t_ns = file->lost[i].t_ns <= INT64_MAX ? file->lost[i].t_ns : INT64_MAX;
        struct stream_event *event = add_event(stream, t_ns, file->lost[i].cpu, STREAM_ID_LOST);
        if (!event)
            return false;
        event->record = file->lost[i].n;
    }
    uint64_t last_ns = file->n_events ? file->events[file->n_events - 1].t_ns : 0;
    bool is_cut = file->n_events && (file->end.t_full_ns || !file->has_end);
    uint64_t end_ns =
        file->end.t_full_ns > last_ns && file->end.t_full_ns <= INT64_MAX ? file->end.t_full_ns : last_ns + 1;
    for (uint32_t cpu = 0; is_cut && cpu < file->head.n_cpus; cpu++)
        if (!add_event(stream, end_ns, (uint16_t)cpu, STREAM_ID_LOST))
            return false;
    return true;
}

/* Tracepoints are of the first tier, switches of the next two. */
static int check_event(const struct sched_file *file, const struct sched_event *event, const struct stream *stream,
                       struct error *err)
{
    bool has_points = file->head.tier == SCHED_TIER_TRACEPOINTS, has_any = file->head.tier != SCHED_TIER_NONE;
    if (event->t_ns > INT64_MAX)
        return error_set(err, ERR_FORMAT, "%.600s: a scheduler record has an impossible time", stream->path);
    if (!has_any || (event->kind == SCHED_RAW) != has_points)
        return error_set(err, ERR_FORMAT, "%.600s: a scheduler record of kind %u in a file of tier %u", stream->path,
                         event->kind, file->head.tier);
    return 0;
}

static int take_events(struct sched_file *file, struct buf *bytes, struct stream *stream, struct error *err)
{
    bool joins = file->head.tier == SCHED_TIER_OWN, ok = true;
    struct stream_joining *cpus = joins ? calloc(file->head.n_cpus + 1u, sizeof *cpus) : NULL;
    if (joins && !cpus)
        return error_memory(err);
    if (file->n_events)
        qsort(file->events, file->n_events, sizeof *file->events, compare_events);
    int code = 0;
    for (size_t i = 0; i < file->n_events && ok && !code; i++) {
        const struct sched_event *from = &file->events[i];
        code = check_event(file, from, stream, err);
        if (!code)
            ok = from->kind == SCHED_RAW ? add_point(file, from, bytes, stream)
                                         : add_switch(file, from, joins ? &cpus[from->cpu] : NULL, bytes, stream);
    }
    free(cpus);
    return code ? code : ok && add_losses(file, stream) ? 0 : error_memory(err);
}

static int take_sched(struct sched_file *file, struct buf *bytes, struct stream *stream, struct error *err)
{
    int code = take_threads(file, stream, err);
    code = code ? code : take_totals(file, stream, err);
    return code ? code : take_events(file, bytes, stream, err);
}

static int finish_stream(struct stream *stream, struct buf *bytes, int code, struct error *err)
{
    stream->bytes = (const unsigned char *)bytes->data;
    stream->n_bytes = bytes->len_bytes;
    stream->clock = STREAM_CLOCK_MONOTONIC;
    stream->clock_text = strdup("mono");
    return code || stream->clock_text ? code : error_memory(err);
}

static bool sched_fits(const struct stream_input *input)
{
    size_t n = sizeof SCHED_BEGINS - 1;
    return !input->is_directory && input->n_head >= n && memcmp(input->head, SCHED_BEGINS, n) == 0;
}

/* --- samples --- */

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

static int compare_places(const void *a, const void *b)
{
    const struct node_place *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Reads the profile that a log belongs to; false when out of memory. */
static bool read_places(const char *path, struct sample_log *log)
{
    struct error ignored;
    if (hpcrun_read(path, &log->profile, &ignored) != 0)
        return true;
    size_t n = log->profile.n_nodes;
    log->places = calloc(n + 1, sizeof *log->places);
    for (size_t i = 0; log->places && i < n; i++) {
        int64_t id = log->profile.nodes[i].id;
        log->places[i] = (struct node_place){(uint32_t)(id < 0 ? -id : id), (uint32_t)i};
    }
    if (log->places && n)
        qsort(log->places, n, sizeof *log->places, compare_places);
    return log->places;
}

/* Appends where the code of a node lies, "app+0x1269"; nothing when that is not known. */
static void put_place(const struct sample_log *log, uint32_t id, struct buf *out)
{
    if (log->namer && log->namer->put_place(log->namer->context, log->profile_name, id, out))
        return;
    const struct node_place like = {.id = id};
    const struct node_place *found =
        log->places ? bsearch(&like, log->places, log->profile.n_nodes, sizeof like, compare_places) : NULL;
    const struct hpcrun_node *node = found ? &log->profile.nodes[found->node] : NULL;
    for (size_t i = 0; node && i < log->profile.n_modules; i++)
        if (log->profile.modules[i].id == node->module) {
            buf_printf(out, "%.300s+%#" PRIx64, path_last(log->profile.modules[i].path), node->ip);
            return;
        }
}

/* Appends the name of a variable: of blocks, which have none, where they were allocated. Each thread's profile has
 * numbers of its own, the place is that of all. node: where it was touched. */
static void put_variable(const struct sample_log *log, uint32_t id, uint32_t node, struct buf *out)
{
    struct buf place = {0};
    if (log->namer && log->namer->put_variable(log->namer->context, log->profile_name, id, node, out))
        return;
    objects_put_variable(&log->side, id, out);
    if (out->len_bytes > 6 && strncmp(out->data, "block ", 6) == 0)
        put_place(log, id, &place);
    if (place.len_bytes) {
        out->len_bytes = 0;
        buf_printf(out, "block at %s", place.data);
    }
    out->failed |= place.failed;
    buf_fini(&place);
}

/* The texts of a sample, one behind the other. */
static void put_texts(const struct sample_log *log, const struct events_record *record, size_t start, struct buf *bytes)
{
    const struct events_access *access = &log->file.accesses[record->access];
    const char *event = log->file.sources[access->source].name, *class = events_class_name(access->class);
    struct buf variable = {0}, metrics = {0}, info = {0}, place = {0};
    put_variable(log, access->variable, access->node, &variable);
    put_place(log, access->node, &place);
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
    if (place.len_bytes)
        buf_printf(&info, " place=%s", place.data);
    bytes->failed |= variable.failed || metrics.failed || info.failed || place.failed;
    put_text(bytes, start, VARIABLE_AT, variable.len_bytes ? variable.data : "");
    put_text(bytes, start, CLASS_AT, class);
    put_text(bytes, start, EVENT_AT, event);
    put_text(bytes, start, METRICS_AT, metrics.len_bytes ? metrics.data : "");
    put_text(bytes, start, INFO_AT, info.len_bytes ? info.data : "");
    put_text(bytes, start, PLACE_AT, place.len_bytes ? place.data : "");
    buf_fini(&place);
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
    if (task != STREAM_NO_TASK &&
        (!stream_add_task(stream, task, process, log->name->exe) || !stream_add_own(stream, task)))
        return error_memory(err);
    for (size_t i = 0; i < log->file.n_records && !code; i++)
        code = add_sample(log, &log->file.records[i], task, bytes, stream, err);
    return code;
}

static int read_log(const char *directory, const struct names_file *name, const struct stream_namer *namer,
                    struct buf *bytes, struct stream *stream, struct error *err)
{
    struct sample_log log = {.name = name, .namer = namer};
    struct names_file side = *name, profile = *name;
    struct error ignored;
    (void)snprintf(side.suffix, sizeof side.suffix, "objects");
    (void)snprintf(profile.suffix, sizeof profile.suffix, "hpcrun");
    char *path = names_path(directory, name), *side_path = names_path(directory, &side);
    char *profile_path = names_path(directory, &profile);
    log.profile_name = names_path(NULL, &profile);
    bool has_names = path && side_path && profile_path && log.profile_name;
    int code = has_names ? events_read(path, &log.file, err) : error_memory(err);
    if (!code && !read_places(profile_path, &log))
        code = error_memory(err);
    if (!code) {
        (void)objects_read(side_path, &log.side, &ignored);
        objects_sort_variables(&log.side);
        code = add_log(&log, bytes, stream, err);
    }
    events_fini(&log.file);
    objects_fini(&log.side);
    hpcrun_fini(&log.profile);
    free(log.places);
    free(log.profile_name);
    free(path);
    free(side_path);
    free(profile_path);
    return code;
}

/* All files of a directory must be of one host; suffix: of files.  err: ERR_UNSUPPORTED, as names_list */
static int list_files(const char *directory, const char *suffix, struct names_file **files, size_t *n,
                      struct error *err)
{
    int code = names_list(directory, suffix, files, n, err);
    for (size_t i = 1; !code && i < *n; i++)
        if ((*files)[i].host_id != (*files)[0].host_id)
            code = error_set(err, ERR_UNSUPPORTED,
                             "%.600s: logs of several hosts (%08" PRIx32 ", %08" PRIx32
                             "), each with CPUs of its own; give a directory that has those of one",
                             directory, (*files)[0].host_id, (*files)[i].host_id);
    return code;
}

/* The scheduler records of a directory, of one launch. */
static int read_records(const char *directory, const struct names_file *files, size_t n, struct sched_file *file,
                        struct error *err)
{
    char *path = n ? names_path(directory, &files[0]) : NULL;
    int code = !n || path ? 0 : error_memory(err);
    if (!code && n > 1)
        code = error_set(err, ERR_UNSUPPORTED,
                         "%.600s: scheduler records of %zu launches, which are not joined, because launches at the "
                         "same time record the same switches; give one of its .sched files, such as %.600s",
                         directory, n, path);
    else if (!code && n)
        code = sched_read(path, file, err);
    free(path);
    return code;
}

/* What is opened: logs [n_logs] of a directory, and scheduler records, empty where there are none. */
struct measurement {
    const char *directory;
    const char *why_unfinished; /* of records without an end */
    struct names_file *logs;
    size_t n_logs;
    struct sched_file file;
};

/* Lets names be looked up; false, with a note, when they cannot. */
static bool open_names(const struct measurement *opened, const struct stream_namer *namer, struct stream *stream,
                       struct error *err)
{
    struct error why = {0};
    struct buf note = {0};
    if (!namer || !opened->n_logs)
        return false;
    if (namer->open(namer->context, opened->directory, &why) == 0)
        return true;
    buf_printf(&note, "%s%snames are addresses: %s", stream->note ? stream->note : "", stream->note ? "; " : "",
               why.text);
    if (note.failed) {
        (void)error_memory(err);
        buf_fini(&note);
        return false;
    }
    free(stream->note);
    stream->note = note.data;
    return false;
}

/* The topology of the host that the files are of, if it is there. */
static int find_topology(const char *directory, const struct names_file *file, struct stream *stream, struct error *err)
{
    struct buf path = {0};
    buf_printf(&path, "%s/topology-%08" PRIx32 ".xml", directory, file->host_id);
    if (path.failed) {
        buf_fini(&path);
        return error_memory(err);
    }
    if (access(path.data, R_OK) == 0)
        stream->topology = path.data;
    else
        buf_fini(&path);
    return 0;
}

/* Fills the stream, and frees what is opened; code: of what came before. */
static int fill(struct measurement *opened, int code, const struct stream_namer *namer, struct stream *stream,
                struct error *err)
{
    struct buf bytes = {0};
    bool has_records = opened->file.head.online;
    stream->tier = STREAM_TIER_NONE;
    stream->kind = has_records && opened->n_logs ? "samples and scheduler records"
                   : has_records                 ? stream_reader_sched.name
                                                 : stream_reader_measurement.name;
    if (!code && has_records)
        code = take_head(&opened->file, opened->why_unfinished, stream, err);
    code = code ? code : add_types(stream, opened->n_logs > 0, &opened->file, err);
    namer = !code && open_names(opened, namer, stream, err) ? namer : NULL;
    for (size_t i = 0; i < opened->n_logs && !code; i++)
        code = read_log(opened->directory, &opened->logs[i], namer, &bytes, stream, err);
    code = code || !has_records ? code : take_sched(&opened->file, &bytes, stream, err);
    free(opened->logs);
    sched_fini(&opened->file);
    return finish_stream(stream, &bytes, code, err);
}

static int measurement_read(const struct stream_input *input, const struct stream_options *options,
                            struct stream *stream, struct error *err)
{
    struct measurement opened = {.directory = input->path};
    struct names_file *records = NULL;
    size_t n_records = 0;
    bool is_over = pending_wait(input->path, WAIT_MS) == PENDING_NONE;
    opened.why_unfinished = is_over ? "the recorder was killed" : "the program still runs";
    int code = list_files(input->path, "events", &opened.logs, &opened.n_logs, err);
    code = code ? code : list_files(input->path, "sched", &records, &n_records, err);
    code = code ? code : read_records(input->path, records, n_records, &opened.file, err);
    if (!code && (opened.n_logs || n_records))
        code = find_topology(input->path, opened.n_logs ? &opened.logs[0] : &records[0], stream, err);
    free(records);
    return fill(&opened, code, options->namer, stream, err);
}

static bool is_of_launch(const struct sched_file *file, uint32_t pid)
{
    for (size_t i = 0; i < file->n_tasks; i++)
        if (file->tasks[i].is_own && file->tasks[i].tid == pid)
            return true;
    return false;
}

/* The logs beside a file of scheduler records that are of its launch; none where that is not known. */
static void find_logs(const char *path, struct measurement *opened)
{
    struct names_file own;
    struct error ignored;
    size_t n = 0;
    if (names_parse(path, &own, &ignored) != 0 ||
        names_list(opened->directory, "events", &opened->logs, &n, &ignored) != 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (opened->logs[i].host_id == own.host_id && is_of_launch(&opened->file, opened->logs[i].pid))
            opened->logs[opened->n_logs++] = opened->logs[i];
}

static int sched_read_file(const struct stream_input *input, const struct stream_options *options,
                           struct stream *stream, struct error *err)
{
    struct names_file own;
    struct error ignored;
    struct measurement opened = {.why_unfinished = "it has no end: the program still runs, or the recorder was killed"};
    char *path = strdup(input->path), *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    opened.directory = slash ? path : ".";
    int code = path ? sched_read(input->path, &opened.file, err) : error_memory(err);
    if (!code)
        find_logs(input->path, &opened);
    if (!code && names_parse(input->path, &own, &ignored) == 0)
        code = find_topology(opened.directory, &own, stream, err);
    code = fill(&opened, code, options->namer, stream, err);
    free(path);
    return code;
}

static void measurement_close(struct stream *stream)
{
    free((void *)stream->bytes);
}

/* --- texts --- */

/* Of interrupts, preemption and locks only tracepoints know something. */
static int measurement_put_latency(const struct stream *stream, const struct stream_event *event, struct buf *out,
                                   struct error *err)
{
    (void)stream;
    (void)out;
    (void)err;
    return event->id == ID_SAMPLE || event->id == ID_SWITCH ? 0 : STREAM_ASK_FORMATS;
}

static int measurement_put_info(const struct stream *stream, const struct stream_event *event, struct buf *out,
                                struct error *err)
{
    uint32_t place;
    (void)err;
    if (event->id == ID_SWITCH)
        stream_switch_put_info(stream, event, ID_SWITCH, out);
    if (event->id != ID_SAMPLE)
        return event->id == ID_SWITCH ? 0 : STREAM_ASK_FORMATS;
    memcpy(&place, stream->bytes + event->record + INFO_AT, sizeof place);
    printable_put(out, (const char *)stream->bytes + event->record + (place & 0xffff));
    return 0;
}

const struct stream_reader stream_reader_measurement = {.name = "logs of samples (hpcrun -t)",
                                                        .fits = measurement_fits,
                                                        .read = measurement_read,
                                                        .close = measurement_close,
                                                        .put_latency = measurement_put_latency,
                                                        .put_info = measurement_put_info};

const struct stream_reader stream_reader_sched = {.name = "scheduler records (hpcrun -e sched)",
                                                  .fits = sched_fits,
                                                  .read = sched_read_file,
                                                  .close = measurement_close,
                                                  .put_latency = measurement_put_latency,
                                                  .put_info = measurement_put_info};
