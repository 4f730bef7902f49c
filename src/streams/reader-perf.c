/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of perf.data: tracepoints with their bytes, samples of other events, and, where nobody recorded sched_switch,
 * switches made of the records that the kernel writes when it switches (perf record --switch-events). */
#include "streams/readers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "import/perf-data.h"
#include "streams/schedule.h"

extern const struct stream_reader stream_reader_perf;

/* Bits of stream_event.flags: where record counts from. */
enum { IN_INFLATED = 1, IN_MADE = 2, IS_RECORD = 4 }; /* IS_RECORD: it is the whole record */

/* Ids of events that are no tracepoints. */
enum { ID_SWITCH = 30001, ID_SAMPLES = 30002, ID_MAX = 32767 };

enum { N_NAMED = 4096 };

/* Where a stream's fields lie in samples of each id, from the beginning of the record; 0: they are not there. */
struct sample_places {
    uint64_t id;
    const struct perf_data_event *event; /* NULL: an empty slot */
    int32_t type;                        /* of the stream */
    uint32_t tid, cpu, chain, raw;       /* chain: the length of the call chain, behind which raw is */
    uint32_t n_least;                    /* bytes of the fields before chain and raw */
    bool is_plain;                       /* there is nothing else */
    bool is_tracepoint;
};

enum { N_PLACES = 64 };

struct perf_reader {
    struct perf_data data;
    struct sample_places places[N_PLACES];         /* by the id */
    int32_t switch_id;                             /* of the tracepoint, STREAM_ID_NONE */
    int32_t waking_ids[2];                         /* of tracepoints that tell who is woken, STREAM_ID_NONE */
    const struct stream_field *pids[2], *comms[2]; /* of it: who leaves, who comes */
    int32_t named[N_NAMED];                        /* tasks whose names are known, by the rest of their numbers */
    struct buf made;                               /* records of switches that the file has not */
    struct stream_joining *cpus;                   /* [n_cpus] */
    size_t n_cpus, cap_cpus;
    bool has_tracepoint; /* of sched_switch, with its format */
    bool has_wide;       /* CPU-wide records of switches */
    bool has_own;        /* those of single threads */
    bool has_idle;       /* the idle task has recorded something, which it does only where all tasks do */
    bool has_wakings;
};

static bool perf_fits(const struct stream_input *input)
{
    return !input->is_directory && perf_data_begins(input->head, input->n_head);
}

/* --- what the head says --- */

static enum stream_clock clock_of(int32_t clockid)
{
    static const enum stream_clock clocks[] = {
        [0] = STREAM_CLOCK_WALL, [1] = STREAM_CLOCK_MONOTONIC, [4] = STREAM_CLOCK_RAW, [7] = STREAM_CLOCK_BOOT};
    bool is_known = clockid >= 0 && (size_t)clockid < sizeof clocks / sizeof *clocks;
    return is_known ? clocks[clockid] : STREAM_CLOCK_UNKNOWN;
}

static bool copy_text(char **to, const char *text)
{
    *to = text ? strdup(text) : NULL;
    return !text || *to;
}

static int take_head(const struct perf_data *data, struct stream *stream, struct error *err)
{
    static const char *const texts[] = {"realtime", "monotonic", NULL, NULL, "monotonic_raw", NULL, NULL, "boottime"};
    const struct perf_event_attr *attr = &data->events[0].attr;
    struct buf system = {0};
    stream->clock = attr->use_clockid ? clock_of(attr->clockid) : STREAM_CLOCK_LOCAL;
    bool has_text = attr->use_clockid && attr->clockid >= 0 && attr->clockid < 8;
    bool ok = copy_text(&stream->clock_text, has_text ? texts[attr->clockid] : attr->use_clockid ? NULL : "local");
    if (data->has_clock && attr->use_clockid && data->clockid == attr->clockid) {
        stream->has_wall = true;
        stream->wall_ns = (int64_t)(data->wall_ns - data->clock_ns);
    }
    if (stream->clock == STREAM_CLOCK_WALL)
        stream->has_wall = true;
    stream->cuts_times = true;
    stream->is_swapped = data->is_swapped;
    stream->n_cpus = data->n_possible < STREAM_NO_CPU ? data->n_possible : 0;
    if (data->os_release)
        buf_printf(&system, "Linux %s%s%s", data->os_release, data->arch ? " " : "", data->arch ? data->arch : "");
    stream->system = system.data;
    return ok && !system.failed && copy_text(&stream->host, data->hostname) ? 0 : error_memory(err);
}

/* --- formats --- */

/* A text that follows its length. */
static struct formats_text take_text(struct perf_take *take, unsigned n_length)
{
    uint64_t n_bytes = perf_take_number(take, n_length);
    return (struct formats_text){(const char *)perf_take_bytes(take, n_bytes), take->failed ? 0 : n_bytes};
}

static void skip_text(struct perf_take *take, const char *name)
{
    const char *found = perf_take_string(take);
    take->failed |= !found || strcmp(found, name) != 0;
}

static bool take_systems(struct perf_take *take, struct formats_input *input)
{
    uint64_t n_systems = perf_take_number(take, 4);
    for (uint64_t i = 0; i < n_systems && !take->failed; i++) {
        const char *system = perf_take_string(take);
        uint64_t n_events = perf_take_number(take, 4);
        for (uint64_t j = 0; j < n_events && !take->failed; j++) {
            struct formats_text text = take_text(take, 8);
            if (take->failed)
                break;
            if (!vec_reserve(&input->events, &input->cap_events, input->n_events + 1, sizeof *input->events))
                return false;
            input->events[input->n_events++] = (struct formats_event){{system, strlen(system)}, text};
        }
    }
    return true;
}

/* The tracing data begin as a file of trace-cmd does, with versions of their own (0.5, 0.6). */
static int take_tracing(const struct perf_data *data, struct formats_input *input, struct error *err)
{
    static const char begin[] = "\x17\x08\x44tracing";
    struct perf_take take = {.bytes = data->tracing.bytes, .n_bytes = data->tracing.n_bytes};
    const unsigned char *magic = perf_take_bytes(&take, sizeof begin - 1);
    const char *version = perf_take_string(&take);
    take.failed |= !magic || memcmp(magic, begin, sizeof begin - 1) != 0;
    input->is_big_endian = perf_take_number(&take, 1);
    input->long_bytes = (uint8_t)perf_take_number(&take, 1);
    take.is_swapped = input->is_big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    input->page_bytes = (uint32_t)perf_take_number(&take, 4);
    skip_text(&take, "header_page");
    input->header_page = take_text(&take, 8);
    skip_text(&take, "header_event");
    (void)take_text(&take, 8);
    uint64_t n_ftrace = perf_take_number(&take, 4);
    for (uint64_t i = 0; i < n_ftrace && !take.failed; i++)
        (void)take_text(&take, 8);
    if (!take_systems(&take, input))
        return perf_data_no_memory(data, err);
    input->kernel_symbols = take_text(&take, 4);
    input->printk = take_text(&take, 4);
    if (version && strcmp(version, "0.5") != 0)
        input->tasks = take_text(&take, 8);
    return take.failed ? perf_data_fail(data, data->tracing.offset + take.at,
                                        "the formats of the tracepoints are truncated, or of an unknown kind", err)
                       : 0;
}

static int take_formats(const struct perf_data *data, struct stream *stream, struct error *err)
{
    struct formats_input input = {.path = data->name, .n_cpus = stream->n_cpus};
    struct stream_formats *formats = NULL;
    if (!data->tracing.n_bytes)
        return 0;
    int code = take_tracing(data, &input, err);
    code = code ? code : formats_open(&input, &formats, err);
    code = code ? code : stream_take_formats(stream, formats, err);
    free(input.events);
    return code;
}

/* --- types --- */

/* Names as the kernel's tracing has them: "sched/sched_switch" of "sched:sched_switch". */
static bool add_type(struct stream *stream, int32_t id, const char *prefix, const char *text)
{
    struct buf name = {0};
    buf_printf(&name, "%s%s", prefix, text);
    char *colon = name.data && !*prefix ? strchr(name.data, ':') : NULL;
    if (colon)
        *colon = '/';
    bool ok = !name.failed && stream_add_type(stream, id, name.data);
    buf_fini(&name);
    return ok;
}

static bool is_tracepoint(const struct perf_data_event *event)
{
    return event->attr.type == PERF_TYPE_TRACEPOINT && event->attr.config <= INT32_MAX;
}

static int32_t id_of(const struct perf_data *data, const struct perf_data_event *event)
{
    size_t place = (size_t)(event - data->events);
    return is_tracepoint(event)           ? (int32_t)event->attr.config
           : place <= ID_MAX - ID_SAMPLES ? (int32_t)(ID_SAMPLES + place)
                                          : ID_MAX;
}

static int add_types(struct perf_reader *reader, struct stream *stream, struct error *err)
{
    const struct perf_data *data = &reader->data;
    for (size_t i = 0; i < data->n_events; i++) {
        const struct perf_data_event *event = &data->events[i];
        if (!add_type(stream, id_of(data, event), is_tracepoint(event) ? "" : "perf/", event->name))
            return perf_data_no_memory(data, err);
        const struct stream_type *type = stream_type_of(stream, id_of(data, event));
        if (type && type->n_fields && strcmp(type->name, "sched/sched_switch") == 0)
            reader->has_tracepoint = true;
    }
    const struct stream_type *type = stream_type_of(stream, stream_find_id(stream, "sched/sched_switch"));
    reader->switch_id = reader->has_tracepoint ? type->id : STREAM_ID_NONE;
    for (size_t side = 0; reader->has_tracepoint && side < 2; side++) {
        reader->pids[side] = stream_field_of(type, side ? "next_pid" : "prev_pid");
        reader->comms[side] = stream_field_of(type, side ? "next_comm" : "prev_comm");
    }
    reader->waking_ids[0] = stream_find_id(stream, "sched/sched_waking");
    reader->waking_ids[1] = stream_find_id(stream, "sched/sched_wakeup");
    return 0;
}

/* --- events --- */

static inline uint32_t word_at(const struct perf_data *data, const unsigned char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return data->is_swapped ? __builtin_bswap32(word) : word;
}

static inline struct stream_event *add_event(struct stream *stream, const struct perf_data_record *record, int32_t id,
                                             uint32_t cpu)
{
    struct stream_event *event = stream_add_event(stream);
    if (!event)
        return NULL;
    event->t_ns = (int64_t)record->time_ns;
    event->record = record->offset;
    event->n_bytes = record->n_bytes;
    event->task = STREAM_NO_TASK;
    event->id = id;
    event->cpu = cpu < STREAM_NO_CPU ? (uint16_t)cpu : STREAM_NO_CPU;
    event->flags = record->is_inflated ? IN_INFLATED : 0;
    if (event->cpu != STREAM_NO_CPU && event->cpu >= stream->n_cpus)
        stream->n_cpus = event->cpu + 1u;
    return event;
}

/* A switch names both tasks, which no other record may do. raw: its bytes. */
static bool note_names(struct perf_reader *reader, struct stream *stream, const struct stream_event *event,
                       const unsigned char *raw)
{
    bool ok = true;
    for (size_t side = 0; side < 2 && ok; side++) {
        const struct stream_field *pid = reader->pids[side];
        struct buf name = {0};
        uint32_t task;
        if (!pid || !reader->comms[side] || pid->n_bytes != sizeof task || pid->offset > event->n_bytes ||
            event->n_bytes - pid->offset < sizeof task)
            continue;
        task = word_at(&reader->data, raw + pid->offset);
        if (task == 0 || task > INT32_MAX || reader->named[task % N_NAMED] == (int32_t)task)
            continue;
        stream_put_field(stream, event, reader->comms[side], &name);
        ok = !name.failed && (!name.len_bytes || stream_add_task(stream, (int32_t)task, STREAM_NO_TASK, name.data));
        buf_fini(&name);
        reader->named[task % N_NAMED] = (int32_t)task;
    }
    return ok;
}

/* Adds the event of a sample, whose raw bytes begin at raw. False when out of memory. */
static inline bool put_sample_event(struct perf_reader *reader, struct stream *stream,
                                    const struct perf_data_record *record, const struct sample_places *places,
                                    uint32_t cpu, int32_t task, uint64_t raw, uint32_t n_raw)
{
    struct stream_event *added = add_event(stream, record, places->type, cpu);
    if (!added)
        return false;
    added->task = task;
    reader->has_idle |= task == 0;
    if (!places->is_tracepoint) {
        added->flags |= IS_RECORD;
        return true;
    }
    added->record += raw;
    added->n_bytes = n_raw;
    reader->has_wakings |= added->id == reader->waking_ids[0] || added->id == reader->waking_ids[1];
    return added->id != reader->switch_id ||
           note_names(reader, stream, added, perf_data_bytes(&reader->data, record) + raw);
}

/* Whatever is in a sample. */
static int take_any_sample(struct perf_reader *reader, const struct perf_data_record *record, struct stream *stream,
                           struct error *err)
{
    const struct perf_data *data = &reader->data;
    const struct perf_data_event *event;
    struct abi_sample sample;
    int code = perf_data_sample(data, record, &event, &sample, err);
    if (code)
        return code;
    uint32_t cpu = sample.present & PERF_SAMPLE_CPU ? sample.cpu : UINT32_MAX;
    const struct sample_places places = {.type = id_of(data, event), .is_tracepoint = is_tracepoint(event)};
    uint64_t raw = sample.raw.data ? (uint64_t)(sample.raw.data - perf_data_bytes(data, record)) : 0;
    return put_sample_event(reader, stream, record, &places, cpu,
                            sample.present & PERF_SAMPLE_TID ? (int32_t)sample.tid : STREAM_NO_TASK, raw,
                            (uint32_t)sample.raw.n_bytes)
               ? 0
               : perf_data_no_memory(data, err);
}

static void find_places(const struct perf_data *data, const struct perf_data_event *event, struct sample_places *places)
{
    static const struct {
        uint64_t bit;
        size_t offset; /* in struct sample_places, 0: the stream takes it not */
        uint32_t at;
    } rows[] = {{PERF_SAMPLE_IDENTIFIER, 0, 0},
                {PERF_SAMPLE_IP, 0, 0},
                {PERF_SAMPLE_TID, offsetof(struct sample_places, tid), 4},
                {PERF_SAMPLE_TIME, 0, 0},
                {PERF_SAMPLE_ADDR, 0, 0},
                {PERF_SAMPLE_ID, 0, 0},
                {PERF_SAMPLE_STREAM_ID, 0, 0},
                {PERF_SAMPLE_CPU, offsetof(struct sample_places, cpu), 0},
                {PERF_SAMPLE_PERIOD, 0, 0}};
    uint64_t left = event->layout.sample_type & ~(uint64_t)(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW);
    uint32_t at = 8;
    *places = (struct sample_places){.event = event, .type = id_of(data, event), .is_tracepoint = is_tracepoint(event)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!(left & rows[i].bit))
            continue;
        if (rows[i].offset)
            *(uint32_t *)(void *)((char *)places + rows[i].offset) = at + rows[i].at;
        left &= ~rows[i].bit;
        at += 8;
    }
    places->is_plain = left == 0;
    places->n_least = at;
    if (event->layout.sample_type & PERF_SAMPLE_CALLCHAIN)
        places->chain = at;
    if (event->layout.sample_type & PERF_SAMPLE_RAW)
        places->raw = at;
}

/* The places of the event that a sample names, NULL: it names none. */
static inline const struct sample_places *places_of(struct perf_reader *reader, const struct perf_data_record *record,
                                                    const unsigned char *bytes)
{
    const struct perf_data *data = &reader->data;
    uint32_t id_at = data->n_events > 1 ? data->places.sample_id : 0;
    uint64_t id = 0;
    if (id_at && record->n_bytes < id_at + sizeof id)
        return NULL;
    if (id_at)
        memcpy(&id, bytes + id_at, sizeof id);
    struct sample_places *places = &reader->places[(id ^ id >> 6 ^ id >> 56) % N_PLACES];
    if (places->event && places->id == id)
        return places;
    const struct perf_data_event *event = perf_data_event_of(data, record);
    if (!event)
        return NULL;
    find_places(data, event, places);
    places->id = id;
    return places;
}

/* A sample of which everything that counts is at a known place; the others, and what does not fit, are left to the
 * parser of the kernel's records. */
static int take_sample(struct perf_reader *reader, const struct perf_data_record *record, struct stream *stream,
                       struct error *err)
{
    const struct perf_data *data = &reader->data;
    const unsigned char *bytes = perf_data_bytes(data, record);
    const struct sample_places *places = places_of(reader, record, bytes);
    if (!places || !places->is_plain || record->n_bytes < places->n_least)
        return take_any_sample(reader, record, stream, err);
    uint64_t raw = places->raw, n_chain = 0;
    if (places->chain) {
        if (record->n_bytes < places->chain + 8)
            return take_any_sample(reader, record, stream, err);
        memcpy(&n_chain, bytes + places->chain, sizeof n_chain);
        n_chain = data->is_swapped ? __builtin_bswap64(n_chain) : n_chain;
        if (n_chain > (record->n_bytes - places->chain - 8) / 8)
            return take_any_sample(reader, record, stream, err);
        raw += raw ? 8 + 8 * n_chain : 0;
    }
    uint32_t n_raw = 0;
    if (raw && raw + sizeof n_raw <= record->n_bytes) {
        n_raw = word_at(data, bytes + raw);
        raw += sizeof n_raw;
    } else if (raw) {
        return take_any_sample(reader, record, stream, err);
    }
    if (n_raw > record->n_bytes - raw)
        return take_any_sample(reader, record, stream, err);
    return put_sample_event(reader, stream, record, places,
                            places->cpu ? word_at(data, bytes + places->cpu) : UINT32_MAX,
                            places->tid ? (int32_t)word_at(data, bytes + places->tid) : STREAM_NO_TASK, raw, n_raw)
               ? 0
               : perf_data_no_memory(data, err);
}

static int take_lost(const struct perf_data *data, const struct perf_data_record *record, struct stream *stream,
                     struct error *err)
{
    struct abi_sample trailer;
    perf_data_trailer(data, record, &trailer);
    uint64_t n_lost = perf_data_lost(data, record);
    struct stream_event *event =
        n_lost ? add_event(stream, record, STREAM_ID_LOST, trailer.present & PERF_SAMPLE_CPU ? trailer.cpu : UINT32_MAX)
               : NULL;
    if (n_lost && !event)
        return perf_data_no_memory(data, err);
    if (event)
        event->record = n_lost;
    return 0;
}

static int take_task(const struct perf_data *data, const struct perf_data_record *record, struct stream *stream,
                     struct error *err)
{
    struct perf_data_task task;
    int code = perf_data_task(data, record, &task, err);
    bool is_number = task.tid <= INT32_MAX && task.pid <= INT32_MAX;
    if (code || !is_number)
        return code;
    bool ok =
        stream_add_task(stream, (int32_t)task.tid, (int32_t)task.pid, task.name) &&
        (!task.name || !*task.name || stream_add_name(stream, (int32_t)task.tid, (int64_t)record->time_ns, task.name));
    return ok ? 0 : perf_data_no_memory(data, err);
}

/* --- switches without tracepoint --- */

/* Adds a switch that no record of the file tells whole. misc: as in the record of the thread that leaves. */
static struct stream_event *make_switch(struct perf_reader *reader, struct stream *stream,
                                        const struct perf_data_record *record, uint32_t cpu, int32_t prev, int32_t next,
                                        uint16_t misc)
{
    unsigned char bytes[STREAM_SWITCH_BYTES];
    const struct stream_switch what = {prev, next, misc};
    stream_switch_put(&what, reader->data.is_swapped, bytes);
    struct stream_event *event = add_event(stream, record, ID_SWITCH, cpu);
    if (!event)
        return NULL;
    event->flags = IN_MADE;
    event->record = reader->made.len_bytes;
    event->n_bytes = STREAM_SWITCH_BYTES;
    event->task = prev != STREAM_NO_TASK ? prev : next;
    buf_append(&reader->made, bytes, sizeof bytes);
    return reader->made.failed ? NULL : event;
}

/* CPU-wide: who leaves names who comes, so that of the two records the first is enough. */
static bool take_wide(struct perf_reader *reader, struct stream *stream, const struct perf_data_record *record,
                      const struct perf_data_switch *change, uint32_t cpu, int32_t task, struct stream_joining *joining)
{
    struct stream_event *event = NULL;
    if (change->is_out) {
        event = add_event(stream, record, ID_SWITCH, cpu);
        if (event)
            event->task = task;
        *joining = (struct stream_joining){.is_open = true, .prev = task, .next = (int32_t)change->other_tid};
        return event;
    }
    bool is_known = joining->is_open && joining->next == task && joining->prev == (int32_t)change->other_tid;
    joining->is_open = false;
    return is_known || make_switch(reader, stream, record, cpu, (int32_t)change->other_tid, task, 0);
}

/* Of single threads: a thread that comes right behind one that has left the same CPU makes one switch with it. */
static bool take_own(struct perf_reader *reader, struct stream *stream, const struct perf_data_record *record,
                     const struct perf_data_switch *change, uint32_t cpu, int32_t task, struct stream_joining *joining)
{
    int64_t t_ns = (int64_t)record->time_ns;
    bool is_joined = !change->is_out && joining && joining->is_open && t_ns - joining->t_ns < STREAM_ADJACENT_NS;
    if (is_joined) {
        unsigned char *bytes = (unsigned char *)reader->made.data + stream->events[joining->event].record;
        stream_switch_put_next(bytes, task, reader->data.is_swapped);
    }
    if (joining)
        *joining = (struct stream_joining){.is_open = change->is_out, .t_ns = t_ns, .event = stream->n_events};
    return is_joined || make_switch(reader, stream, record, cpu, change->is_out ? task : STREAM_NO_TASK,
                                    change->is_out ? STREAM_NO_TASK : task, record->misc);
}

static struct stream_joining *joining_of(struct perf_reader *reader, uint32_t cpu)
{
    if (!vec_reserve(&reader->cpus, &reader->cap_cpus, (size_t)cpu + 1, sizeof *reader->cpus))
        return NULL;
    reader->n_cpus = cpu >= reader->n_cpus ? (size_t)cpu + 1 : reader->n_cpus;
    return &reader->cpus[cpu];
}

/* A single thread is recorded until it ends, which is before it leaves its CPU for the last time. */
static int take_exit(struct perf_reader *reader, const struct perf_data_record *record, struct stream *stream,
                     struct error *err)
{
    struct perf_data_task task;
    struct abi_sample trailer;
    int code = perf_data_task(&reader->data, record, &task, err);
    perf_data_trailer(&reader->data, record, &trailer);
    if (code || reader->has_tracepoint || reader->has_wide || !reader->has_own || task.tid > INT32_MAX)
        return code;
    uint32_t cpu = trailer.present & PERF_SAMPLE_CPU ? trailer.cpu : UINT32_MAX;
    return make_switch(reader, stream, record, cpu, (int32_t)task.tid, STREAM_NO_TASK,
                       SCHEDULE_MISC_OUT | SCHEDULE_MISC_GONE)
               ? 0
               : perf_data_no_memory(&reader->data, err);
}

static int take_switch(struct perf_reader *reader, const struct perf_data_record *record, struct stream *stream,
                       struct error *err)
{
    const struct perf_data *data = &reader->data;
    struct perf_data_switch change;
    struct abi_sample trailer;
    int code = perf_data_switch(data, record, &change, err);
    perf_data_trailer(data, record, &trailer);
    if (code || reader->has_tracepoint || change.is_cpu_wide != reader->has_wide)
        return code;
    if (!(trailer.present & PERF_SAMPLE_TID))
        return perf_data_fail_record(data, record, "a record of a switch does not say of which thread", err);
    bool has_cpu = trailer.present & PERF_SAMPLE_CPU && trailer.cpu < STREAM_NO_CPU, is_done;
    uint32_t cpu = has_cpu ? trailer.cpu : UINT32_MAX;
    struct stream_joining *joining = has_cpu ? joining_of(reader, cpu) : NULL;
    if (has_cpu && !joining)
        return perf_data_no_memory(data, err);
    if (change.is_cpu_wide && !joining)
        return perf_data_fail_record(data, record, "a record of a switch does not say on which CPU", err);
    is_done = change.is_cpu_wide ? take_wide(reader, stream, record, &change, cpu, (int32_t)trailer.tid, joining)
                                 : take_own(reader, stream, record, &change, cpu, (int32_t)trailer.tid, joining);
    return is_done ? 0 : perf_data_no_memory(data, err);
}

/* --- the whole file --- */

static int take_record(struct perf_reader *reader, const struct perf_data_record *record, struct stream *stream,
                       struct error *err)
{
    if (record->time_ns > INT64_MAX)
        return perf_data_fail_record(&reader->data, record, "a record has an impossible time", err);
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        return take_sample(reader, record, stream, err);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        return take_lost(&reader->data, record, stream, err);
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
        return take_task(&reader->data, record, stream, err);
    case PERF_RECORD_EXIT:
        return take_exit(reader, record, stream, err);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return take_switch(reader, record, stream, err);
    default:
        return perf_data_check_record(&reader->data, record, err);
    }
}

static void set_tier(const struct perf_reader *reader, struct stream *stream)
{
    stream->is_synthesised = !reader->has_tracepoint && reader->has_own && !reader->has_wide;
    if (reader->has_tracepoint)
        stream->tier = !reader->data.is_system_wide && !reader->has_idle ? STREAM_TIER_OWN
                       : reader->has_wakings                             ? STREAM_TIER_FULL
                                                                         : STREAM_TIER_SWITCHES;
    else
        stream->tier = reader->has_wide ? STREAM_TIER_SWITCHES : reader->has_own ? STREAM_TIER_OWN : STREAM_TIER_NONE;
}

static int take_records(struct perf_reader *reader, struct stream *stream, struct error *err)
{
    struct perf_data *data = &reader->data;
    struct perf_data_walk walk;
    int code = perf_data_walk_open(data, &walk, err);
    if (code)
        return code;
    for (const struct perf_data_record *record; !code && (record = perf_data_walk_next(&walk));)
        code = take_record(reader, record, stream, err);
    int closed = perf_data_walk_close(&walk, err);
    free(data->runs);
    data->runs = NULL;
    data->n_runs = data->cap_runs = 0;
    return code ? code : closed;
}

/* Times of samples are those of a clock already; those of traces of the hardware are not read. */
static int take_note(const struct perf_data *data, struct stream *stream, struct error *err)
{
    if (data->has_time_conv &&
        !(stream->note = strdup("TIME_CONV is not applied: no counts of the processor are read")))
        return error_memory(err);
    return 0;
}

static int perf_read(const struct stream_input *input, const struct stream_options *options, struct stream *stream,
                     struct error *err)
{
    (void)options;
    struct perf_reader *reader = calloc(1, sizeof *reader);
    stream->reader_data = reader;
    if (!reader)
        return error_memory(err);
    struct perf_data *data = &reader->data;
    int code = perf_data_open(input->path, data, err);
    code = code ? code : take_head(data, stream, err);
    code = code ? code : take_formats(data, stream, err);
    code = code ? code : add_types(reader, stream, err);
    if (code)
        return code;
    reader->has_wide = data->has_wide_switches;
    reader->has_own = data->has_switches;
    if (!reader->has_tracepoint && (reader->has_wide || reader->has_own))
        code = stream_switch_add_type(stream, ID_SWITCH, err);
    code = code ? code : take_records(reader, stream, err);
    set_tier(reader, stream);
    return code ? code : take_note(data, stream, err);
}

static void perf_close(struct stream *stream)
{
    struct perf_reader *reader = stream->reader_data;
    if (!reader)
        return;
    perf_data_fini(&reader->data);
    buf_fini(&reader->made);
    free(reader->cpus);
    free(reader);
}

static bool perf_payload(const struct stream *stream, const struct stream_event *event, const unsigned char **bytes,
                         size_t *n_bytes)
{
    const struct perf_reader *reader = stream->reader_data;
    const unsigned char *from = event->flags & IN_MADE       ? (const unsigned char *)reader->made.data
                                : event->flags & IN_INFLATED ? (const unsigned char *)reader->data.inflated.data
                                                             : reader->data.bytes;
    if (!event->n_bytes)
        return false;
    *bytes = from + event->record;
    *n_bytes = event->n_bytes;
    return true;
}

/* --- texts --- */

static void put_sample(const struct abi_sample *sample, struct buf *out)
{
    const struct {
        uint64_t bits, value;
        const char *name;
        bool is_address;
    } parts[] = {{PERF_SAMPLE_IP, sample->ip, "ip", true},
                 {PERF_SAMPLE_ADDR, sample->addr, "addr", true},
                 {PERF_SAMPLE_PERIOD, sample->period, "period", false},
                 {PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, sample->weight, "weight", false}};
    const char *between = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (sample->present & parts[i].bits) {
            buf_printf(out, "%s%s=", between, parts[i].name);
            buf_printf(out, parts[i].is_address ? "0x%" PRIx64 : "%" PRIu64, parts[i].value);
            between = " ";
        }
}

/* Of tracepoints the formats print it. */
static int perf_put_info(const struct stream *stream, const struct stream_event *event, struct buf *out,
                         struct error *err)
{
    const struct perf_reader *reader = stream->reader_data;
    if (event->id == ID_SWITCH && !reader->has_tracepoint) {
        stream_switch_put_info(stream, event, ID_SWITCH, out);
        return 0;
    }
    if (!(event->flags & IS_RECORD))
        return STREAM_ASK_FORMATS;
    const struct perf_data_record record = {.offset = event->record,
                                            .n_bytes = event->n_bytes,
                                            .type = PERF_RECORD_SAMPLE,
                                            .is_inflated = event->flags & IN_INFLATED};
    const struct perf_data_event *of;
    struct abi_sample sample;
    int code = perf_data_sample(&reader->data, &record, &of, &sample, err);
    if (!code)
        put_sample(&sample, out);
    return code;
}

const struct stream_reader stream_reader_perf = {.name = "perf.data",
                                                 .fits = perf_fits,
                                                 .read = perf_read,
                                                 .close = perf_close,
                                                 .payload = perf_payload,
                                                 .put_info = perf_put_info};
