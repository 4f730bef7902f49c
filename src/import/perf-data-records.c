/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of a perf.data file: one pass that finds them, those inside compressed ones included, and what lies in
 * order of time. perf writes the rings of the CPUs one after the other, so that the file is in no order; a walk merges
 * them. */
#include "import/perf-data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES_MIN 8
#define UPDATE_NAME 2
#define ALL_THREADS UINT64_MAX /* in a map of threads */

struct scan {
    struct perf_data *data;
    struct perf_inflate *inflate;
    uint64_t last_ns; /* of the record before: those of perf itself have no time */
    bool is_run_open; /* the record before is of the same span */
};

static struct perf_take take_of(const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_take take = {.bytes = perf_data_bytes(data, record), .is_swapped = data->is_swapped};
    take.n_bytes = record->n_bytes;
    take.at = RECORD_BYTES_MIN;
    return take;
}

/* In a pipe, perf describes the events in records that come first. */
static int take_attr(struct perf_data *data, const struct perf_data_record *record, struct error *err)
{
    struct perf_take take = take_of(data, record), size = take;
    size.at += 4;
    uint64_t n_bytes = perf_take_number(&size, 4);
    struct perf_data_event *event = perf_data_add_event(data, &take, n_bytes ? n_bytes : 64);
    if (!event)
        return take.failed ? perf_data_fail_record(data, record, "the event does not fit into its record", err)
                           : perf_data_no_memory(data, err);
    while (take.n_bytes - take.at >= 8)
        if (!perf_data_add_id(data, event, perf_take_number(&take, 8)))
            return perf_data_no_memory(data, err);
    return 0;
}

static int take_update(struct perf_data *data, const struct perf_data_record *record, struct error *err)
{
    struct perf_take take = take_of(data, record);
    uint64_t what = perf_take_number(&take, 8);
    struct perf_data_event *event = perf_data_event_with_id(data, perf_take_number(&take, 8));
    const char *name = what == UPDATE_NAME && event ? perf_take_string(&take) : NULL;
    if (!name)
        return 0;
    free(event->name);
    event->name = strdup(name);
    return event->name ? 0 : perf_data_no_memory(data, err);
}

static int take_feature(struct perf_data *data, const struct perf_data_record *record, struct error *err)
{
    struct perf_take take = take_of(data, record);
    unsigned feature = (unsigned)perf_take_number(&take, 8);
    struct perf_take inner = {.bytes = take.bytes + take.at,
                              .n_bytes = take.failed ? 0 : take.n_bytes - take.at,
                              .is_swapped = data->is_swapped};
    return perf_data_take_feature(data, feature, &inner, record->offset, err);
}

/* Bytes that follow the record without being part of it. */
static uint64_t payload_bytes(const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_take take = take_of(data, record);
    if (record->type == PERF_DATA_AUXTRACE)
        return perf_take_number(&take, 8);
    return record->type == PERF_DATA_TRACING_DATA ? perf_take_number(&take, 4) : 0;
}

static int act_on(struct scan *scan, const struct perf_data_record *record, struct error *err)
{
    struct perf_data *data = scan->data;
    struct perf_take take = take_of(data, record);
    switch (record->type) {
    case PERF_DATA_ATTR:
        return take_attr(data, record, err);
    case PERF_DATA_EVENT_UPDATE:
        return take_update(data, record, err);
    case PERF_DATA_FEATURE:
        return take_feature(data, record, err);
    case PERF_DATA_TRACING_DATA:
        if (!record->is_inflated && !data->tracing.bytes)
            data->tracing = (struct perf_data_tracing){take.bytes + record->n_bytes, payload_bytes(data, record),
                                                       record->offset + record->n_bytes};
        return 0;
    case PERF_DATA_BUILD_ID:
        take.at = 0;
        return perf_data_take_build_id(data, &take, record->offset, err);
    case PERF_DATA_COMPRESSED:
    case PERF_DATA_COMPRESSED2:
        if (record->is_inflated)
            return perf_data_fail_record(data, record, "a compressed record lies in a compressed record", err);
        if (!scan->inflate && !(scan->inflate = perf_inflate_new()))
            return perf_data_no_memory(data, err);
        return perf_inflate(scan->inflate, data, record, err);
    case PERF_DATA_THREAD_MAP:
        data->is_system_wide |= perf_take_number(&take, 8) == 1 && perf_take_number(&take, 8) == ALL_THREADS;
        return 0;
    case PERF_DATA_TIME_CONV:
        data->has_time_conv = true;
        return 0;
    case PERF_RECORD_SWITCH:
        data->has_switches = true;
        return 0;
    case PERF_RECORD_SWITCH_CPU_WIDE:
        data->has_wide_switches = true;
        return 0;
    case PERF_RECORD_THROTTLE:
        data->n_throttles++;
        return 0;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        data->n_lost += perf_data_lost(data, record);
        return 0;
    default:
        return 0;
    }
}

/* The time of a record; for one without a time, that of the record before. */
static uint64_t time_slowly(const struct perf_data *data, const struct perf_data_record *record, uint64_t last_ns)
{
    struct abi_sample fields = {0};
    if (record->type == PERF_RECORD_SAMPLE) {
        const struct perf_data_event *event = perf_data_event_of(data, record);
        struct perf_take take = take_of(data, record);
        uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
        if (!event || !(event->layout.sample_type & PERF_SAMPLE_TIME))
            return 0;
        take.at += 8 * (size_t)__builtin_popcountll(event->layout.sample_type & before);
        return take.at <= take.n_bytes ? perf_take_number(&take, 8) : 0;
    }
    if (record->type >= PERF_DATA_ATTR)
        return last_ns;
    perf_data_trailer(data, record, &fields);
    return fields.present & PERF_SAMPLE_TIME ? fields.time_ns : last_ns;
}

static inline uint64_t long_at(const struct perf_data *data, const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return data->is_swapped ? __builtin_bswap64(value) : value;
}

/* The same, without asking for the event where all have it at the same place. */
static inline uint64_t time_of(const struct perf_data *data, const struct perf_data_record *record, uint64_t last_ns)
{
    const struct perf_data_places *places = &data->places;
    const unsigned char *bytes = perf_data_bytes(data, record);
    if (record->type == PERF_RECORD_SAMPLE && places->sample_time)
        return record->n_bytes >= places->sample_time + 8 ? long_at(data, bytes + places->sample_time) : 0;
    if (record->type < PERF_DATA_ATTR && record->type != PERF_RECORD_SAMPLE && places->trailer_time)
        return record->n_bytes >= RECORD_BYTES_MIN + places->n_trailer
                   ? long_at(data, bytes + record->n_bytes - places->trailer_time)
                   : last_ns;
    return time_slowly(data, record, last_ns);
}

/* Takes the header of the record at record->offset, of which n_left bytes are there; false when it does not fit. */
static inline bool take_header(const struct perf_data *data, uint64_t n_left, struct perf_data_record *record)
{
    if (n_left < RECORD_BYTES_MIN)
        return false;
    uint64_t word;
    memcpy(&word, perf_data_bytes(data, record), sizeof word);
    struct perf_event_header header;
    memcpy(&header, &word, sizeof header);
    uint32_t type = data->is_swapped ? __builtin_bswap32(header.type) : header.type;
    record->type = type > UINT16_MAX ? UINT16_MAX : (uint16_t)type;
    record->misc = data->is_swapped ? __builtin_bswap16(header.misc) : header.misc;
    record->n_bytes = data->is_swapped ? __builtin_bswap16(header.size) : header.size;
    return record->n_bytes <= n_left;
}

/* Adds a record to the run of the one before, or begins one.  err: ERR_MEMORY */
static int note_run(struct scan *scan, const struct perf_data_record *record, uint64_t end, struct error *err)
{
    struct perf_data *data = scan->data;
    if (!scan->is_run_open || record->time_ns < scan->last_ns) {
        if (data->n_runs >= UINT32_MAX ||
            !vec_reserve(&data->runs, &data->cap_runs, data->n_runs + 1, sizeof *data->runs))
            return perf_data_no_memory(data, err);
        data->runs[data->n_runs++] = (struct perf_data_run){
            .time_ns = record->time_ns, .offset = record->offset, .is_inflated = record->is_inflated};
        scan->is_run_open = true;
    }
    data->runs[data->n_runs - 1].end = end;
    data->n_records++;
    scan->last_ns = record->time_ns;
    return 0;
}

/* All records of a span; what follows the last whole one is an error unless perf was killed. */
static int scan_span(struct scan *scan, uint64_t origin, uint64_t n_bytes, bool is_inflated, struct error *err)
{
    struct perf_data *data = scan->data;
    int code = 0;
    scan->is_run_open = false;
    scan->last_ns = 0;
    for (uint64_t at = 0, payload = 0; at < n_bytes && !code; payload = 0) {
        struct perf_data_record record = {.offset = origin + at, .is_inflated = is_inflated};
        bool is_whole = take_header(data, n_bytes - at, &record);
        if (n_bytes - at >= RECORD_BYTES_MIN && record.n_bytes < RECORD_BYTES_MIN)
            return perf_data_fail_record(data, &record, "a record has an impossible length", err);
        if (is_whole && record.type != PERF_RECORD_SAMPLE)
            payload = payload_bytes(data, &record);
        if (!is_whole || payload > n_bytes - at - record.n_bytes) {
            data->n_unfinished_bytes += data->is_unfinished ? n_bytes - at : 0;
            return data->is_unfinished ? 0
                                       : perf_data_fail_record(data, &record, "a record reaches beyond the end", err);
        }
        if (record.type != PERF_RECORD_SAMPLE)
            code = act_on(scan, &record, err);
        record.time_ns = time_of(data, &record, scan->last_ns);
        at += record.n_bytes + payload;
        code = code ? code : note_run(scan, &record, origin + at, err);
    }
    return code;
}

/* --- in the order of time --- */

/* A run that is being gone through: its next record, at an index of cursors; and the records that are left. */
struct perf_walk_key {
    uint64_t time_ns;
    uint32_t run, cursor;
};

struct perf_walk_place {
    struct perf_data_record record;
    uint64_t end;
};

static inline bool comes_before(const struct perf_walk_key *a, const struct perf_walk_key *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->run < b->run;
}

static inline void sift_down(struct perf_data_walk *walk)
{
    struct perf_walk_key moved = walk->heap[0];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < walk->n_heap; i = child) {
        child += child + 1 < walk->n_heap && comes_before(&walk->heap[child + 1], &walk->heap[child]);
        if (!comes_before(&walk->heap[child], &moved))
            break;
        walk->heap[i] = walk->heap[child];
    }
    walk->heap[i] = moved;
}

static void sift_up(struct perf_data_walk *walk, size_t i)
{
    struct perf_walk_key moved = walk->heap[i];
    for (; i > 0 && comes_before(&moved, &walk->heap[(i - 1) / 2]); i = (i - 1) / 2)
        walk->heap[i] = walk->heap[(i - 1) / 2];
    walk->heap[i] = moved;
}

/* Takes the next run in. Places behind n_heap hold cursors that are free. False when out of memory. */
static bool begin_run(struct perf_data_walk *walk)
{
    const struct perf_data *data = walk->data;
    uint32_t number = walk->order[walk->next_run++];
    const struct perf_data_run *run = &data->runs[number];
    if (walk->n_heap == walk->n_cursors) {
        if (!vec_reserve(&walk->heap, &walk->cap_heap, walk->n_cursors + 1, sizeof *walk->heap) ||
            !vec_reserve(&walk->cursors, &walk->cap_cursors, walk->n_cursors + 1, sizeof *walk->cursors))
            return false;
        walk->heap[walk->n_cursors].cursor = (uint32_t)walk->n_cursors;
        walk->n_cursors++;
    }
    struct perf_walk_key *key = &walk->heap[walk->n_heap];
    struct perf_walk_place *place = &walk->cursors[key->cursor];
    key->time_ns = run->time_ns;
    key->run = number;
    *place = (struct perf_walk_place){
        .record = {.time_ns = run->time_ns, .offset = run->offset, .is_inflated = run->is_inflated}, .end = run->end};
    (void)take_header(data, run->end - run->offset, &place->record);
    sift_up(walk, walk->n_heap++);
    return true;
}

/* Goes from the record at the top to the next one of its run. */
static inline void advance(struct perf_data_walk *walk)
{
    const struct perf_data *data = walk->data;
    struct perf_walk_key *top = &walk->heap[0];
    struct perf_walk_place *place = &walk->cursors[top->cursor];
    struct perf_data_record *record = &place->record;
    uint64_t payload = record->type == PERF_RECORD_SAMPLE ? 0 : payload_bytes(data, record);
    record->offset += record->n_bytes + payload;
    /* the file was whole when it was scanned; whatever somebody makes of it now, nothing beyond the run is read */
    if (record->offset < place->end && take_header(data, place->end - record->offset, record) &&
        record->n_bytes >= RECORD_BYTES_MIN) {
        record->time_ns = time_of(data, record, record->time_ns);
        top->time_ns = record->time_ns;
    } else {
        struct perf_walk_key ended = *top;
        *top = walk->heap[--walk->n_heap];
        walk->heap[walk->n_heap] = ended;
    }
    if (walk->n_heap)
        sift_down(walk);
}

static int compare_runs(const void *a, const void *b, void *context)
{
    const struct perf_data *data = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (data->runs[x].time_ns != data->runs[y].time_ns)
        return data->runs[x].time_ns < data->runs[y].time_ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

int perf_data_walk_open(const struct perf_data *data, struct perf_data_walk *walk, struct error *err)
{
    *walk = (struct perf_data_walk){.data = data, .order = calloc(data->n_runs + 1, sizeof *walk->order)};
    if (!walk->order)
        return perf_data_no_memory(data, err);
    for (size_t i = 0; i < data->n_runs; i++)
        walk->order[i] = (uint32_t)i;
    if (data->n_runs)
        qsort_r(walk->order, data->n_runs, sizeof *walk->order, compare_runs, (void *)data);
    return 0;
}

const struct perf_data_record *perf_data_walk_next(struct perf_data_walk *walk)
{
    const struct perf_data *data = walk->data;
    if (walk->has_taken)
        advance(walk);
    while (walk->next_run < data->n_runs && !walk->failed) {
        const struct perf_walk_key next = {.time_ns = data->runs[walk->order[walk->next_run]].time_ns,
                                           .run = walk->order[walk->next_run]};
        if (walk->n_heap && !comes_before(&next, &walk->heap[0]))
            break;
        walk->failed = !begin_run(walk);
    }
    walk->has_taken = walk->n_heap && !walk->failed;
    return walk->has_taken ? &walk->cursors[walk->heap[0].cursor].record : NULL;
}

int perf_data_walk_close(struct perf_data_walk *walk, struct error *err)
{
    const struct perf_data *data = walk->data;
    bool failed = walk->failed;
    free(walk->heap);
    free(walk->cursors);
    free(walk->order);
    *walk = (struct perf_data_walk){0};
    return failed ? perf_data_no_memory(data, err) : 0;
}

int perf_data_check_record(const struct perf_data *data, const struct perf_data_record *record, struct error *err)
{
    const struct perf_data_event *event;
    struct abi_sample sample;
    struct perf_data_mmap mapping;
    struct perf_data_task task;
    struct perf_data_switch change;
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        return perf_data_sample(data, record, &event, &sample, err);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return perf_data_mmap(data, record, &mapping, err);
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return perf_data_task(data, record, &task, err);
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return perf_data_switch(data, record, &change, err);
    default:
        return 0;
    }
}

int perf_data_check(const struct perf_data *data, struct error *err)
{
    struct perf_data_walk walk;
    int code = perf_data_walk_open(data, &walk, err);
    if (code)
        return code;
    for (const struct perf_data_record *record; !code && (record = perf_data_walk_next(&walk));)
        code = perf_data_check_record(data, record, err);
    int closed = perf_data_walk_close(&walk, err);
    return code ? code : closed;
}

int perf_data_scan(struct perf_data *data, uint64_t offset, uint64_t n_bytes, struct error *err)
{
    struct scan scan = {.data = data};
    int code = scan_span(&scan, offset, n_bytes, false, err);
    if (!code && data->inflated.len_bytes)
        code = scan_span(&scan, 0, data->inflated.len_bytes, true, err);
    perf_inflate_free(scan.inflate);
    if (!code && data->is_pipe && !perf_data_name_events(data))
        code = perf_data_no_memory(data, err);
    return code;
}

/* --- fields of a sample --- */

/* Records of a perf.data file taken apart. Samples are left to the parser of the kernel's records. */

#define HEADER_BYTES 8
#define MISC_MMAP_DATA 0x2000
#define MISC_COMM_EXEC 0x2000
#define MISC_MMAP_BUILD_ID 0x4000
#define MISC_SWITCH_OUT 0x2000
#define MISC_SWITCH_OUT_PREEMPT 0x4000

const unsigned char *perf_data_bytes(const struct perf_data *data, const struct perf_data_record *record)
{
    const unsigned char *bytes = record->is_inflated ? (const unsigned char *)data->inflated.data : data->bytes;
    return bytes + record->offset;
}

/* The fields after the header; those of a trailer are left out when there is one. */
static struct perf_take fields_of(const struct perf_data *data, const struct perf_data_record *record)
{
    return (struct perf_take){.bytes = perf_data_bytes(data, record),
                              .n_bytes = record->n_bytes,
                              .at = HEADER_BYTES,
                              .is_swapped = data->is_swapped};
}

/* Position of the id in a sample, or from the end of another record; 0: it has none. All events of a file agree. */
static size_t id_position(const struct abi_layout *layout, bool is_sample)
{
    uint64_t type = layout->sample_type, behind = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    if (type & PERF_SAMPLE_IDENTIFIER)
        return HEADER_BYTES;
    if (!(type & PERF_SAMPLE_ID))
        return 0;
    return HEADER_BYTES + 8 * (size_t)__builtin_popcountll(type & (is_sample ? before : behind));
}

const struct perf_data_event *perf_data_event_of(const struct perf_data *data, const struct perf_data_record *record)
{
    if (data->n_events <= 1)
        return data->events;
    const struct abi_layout *first = &data->events[0].layout;
    bool is_sample = record->type == PERF_RECORD_SAMPLE;
    size_t position = id_position(first, is_sample);
    if (!position || (!is_sample && !first->has_sample_id_all))
        return &data->events[0];
    struct perf_take take = fields_of(data, record);
    if (position > record->n_bytes - HEADER_BYTES + (is_sample ? 0 : HEADER_BYTES))
        return NULL;
    take.at = is_sample ? position : record->n_bytes - position;
    uint64_t id = perf_take_number(&take, 8);
    return id || is_sample ? perf_data_event_with_id(data, id) : &data->events[0];
}

int perf_data_sample(const struct perf_data *data, const struct perf_data_record *record,
                     const struct perf_data_event **event, struct abi_sample *sample, struct error *err)
{
    *event = perf_data_event_of(data, record);
    if (!*event)
        return perf_data_fail_record(data, record, "a sample names an event that the file does not", err);
    if (!abi_sample_parse_sig(perf_data_bytes(data, record), record->n_bytes, &(*event)->layout, sample))
        return perf_data_fail_record(data, record, "the fields of a sample do not fit into its record", err);
    if (!(sample->present & PERF_SAMPLE_PERIOD))
        sample->period = (*event)->attr.freq ? 1 : (*event)->attr.sample_period;
    return 0;
}

void perf_data_trailer(const struct perf_data *data, const struct perf_data_record *record, struct abi_sample *out)
{
    bool is_same = data->n_events && data->places.n_trailer != UINT32_MAX;
    const struct perf_data_event *event = is_same ? data->events : perf_data_event_of(data, record);
    *out = (struct abi_sample){0};
    if (event)
        (void)abi_sample_id_parse_sig(perf_data_bytes(data, record), record->n_bytes, &event->layout, out);
}

/* Device, inode and generation, or instead of them the build id. */
static void take_identity(struct perf_take *take, bool is_build_id, struct perf_data_mmap *mapping)
{
    if (!is_build_id) {
        (void)perf_take_bytes(take, 24);
        return;
    }
    uint8_t n_bytes = (uint8_t)perf_take_number(take, 1);
    (void)perf_take_bytes(take, 3);
    mapping->build_id = perf_take_bytes(take, 20);
    mapping->n_build_id = n_bytes <= 20 ? n_bytes : 20;
}

int perf_data_mmap(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_mmap *mmap,
                   struct error *err)
{
    struct perf_take take = fields_of(data, record);
    *mmap = (struct perf_data_mmap){.is_data = record->misc & MISC_MMAP_DATA};
    mmap->pid = (uint32_t)perf_take_number(&take, 4);
    mmap->tid = (uint32_t)perf_take_number(&take, 4);
    mmap->start = perf_take_number(&take, 8);
    mmap->n_bytes = perf_take_number(&take, 8);
    mmap->file_offset = perf_take_number(&take, 8);
    if (record->type == PERF_RECORD_MMAP2) {
        take_identity(&take, record->misc & MISC_MMAP_BUILD_ID, mmap);
        mmap->protection = (uint32_t)perf_take_number(&take, 4);
        mmap->has_protection = true;
        (void)perf_take_number(&take, 4);
    }
    mmap->path = perf_take_string(&take);
    return take.failed ? perf_data_fail_record(data, record, "a mapping does not fit into its record", err) : 0;
}

int perf_data_task(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_task *task,
                   struct error *err)
{
    struct perf_take take = fields_of(data, record);
    bool is_comm = record->type == PERF_RECORD_COMM;
    *task = (struct perf_data_task){.is_exec = is_comm && record->misc & MISC_COMM_EXEC};
    task->pid = (uint32_t)perf_take_number(&take, 4);
    if (!is_comm)
        task->parent_pid = (uint32_t)perf_take_number(&take, 4);
    task->tid = (uint32_t)perf_take_number(&take, 4);
    if (is_comm)
        task->name = perf_take_string(&take);
    else
        task->parent_tid = (uint32_t)perf_take_number(&take, 4);
    return take.failed ? perf_data_fail_record(data, record, "a task does not fit into its record", err) : 0;
}

int perf_data_switch(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_switch *out,
                     struct error *err)
{
    struct perf_take take = fields_of(data, record);
    *out = (struct perf_data_switch){.is_out = record->misc & MISC_SWITCH_OUT,
                                     .is_preempted = record->misc & MISC_SWITCH_OUT_PREEMPT,
                                     .is_cpu_wide = record->type == PERF_RECORD_SWITCH_CPU_WIDE};
    if (out->is_cpu_wide) {
        out->other_pid = (uint32_t)perf_take_number(&take, 4);
        out->other_tid = (uint32_t)perf_take_number(&take, 4);
    }
    return take.failed ? perf_data_fail_record(data, record, "a switch does not fit into its record", err) : 0;
}

uint64_t perf_data_lost(const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_take take = fields_of(data, record);
    if (record->type == PERF_RECORD_LOST)
        (void)perf_take_number(&take, 8);
    return perf_take_number(&take, 8);
}

const char *perf_data_type_name(unsigned type, char text[static 32])
{
    static const char *const kernel[] = {NULL,           "MMAP",
                                         "LOST",         "COMM",
                                         "EXIT",         "THROTTLE",
                                         "UNTHROTTLE",   "FORK",
                                         "READ",         "SAMPLE",
                                         "MMAP2",        "AUX",
                                         "ITRACE_START", "LOST_SAMPLES",
                                         "SWITCH",       "SWITCH_CPU_WIDE",
                                         "NAMESPACES",   "KSYMBOL",
                                         "BPF_EVENT",    "CGROUP",
                                         "TEXT_POKE",    "AUX_OUTPUT_HW_ID"};
    static const char *const user[] = {"ATTR",      "EVENT_TYPE",    "TRACING_DATA", "BUILD_ID",       "FINISHED_ROUND",
                                       "ID_INDEX",  "AUXTRACE_INFO", "AUXTRACE",     "AUXTRACE_ERROR", "THREAD_MAP",
                                       "CPU_MAP",   "STAT_CONFIG",   "STAT",         "STAT_ROUND",     "EVENT_UPDATE",
                                       "TIME_CONV", "FEATURE",       "COMPRESSED",   "FINISHED_INIT",  "COMPRESSED2"};
    if (type > 0 && type < sizeof kernel / sizeof kernel[0])
        return kernel[type];
    if (type >= PERF_DATA_ATTR && type - PERF_DATA_ATTR < sizeof user / sizeof user[0])
        return user[type - PERF_DATA_ATTR];
    (void)snprintf(text, 32, "RECORD %u", type);
    return text;
}

/* --- numbers, strings and messages --- */

/* Numbers and strings of a perf.data file in either byte order, and the messages about it. */

const unsigned char *perf_take_bytes(struct perf_take *take, uint64_t n_bytes)
{
    if (take->failed || n_bytes > take->n_bytes - take->at) {
        take->failed = true;
        return NULL;
    }
    const unsigned char *bytes = take->bytes + take->at;
    take->at += n_bytes;
    return bytes;
}

uint64_t perf_take_number(struct perf_take *take, unsigned n_bytes)
{
    const unsigned char *bytes = perf_take_bytes(take, n_bytes);
    uint16_t half;
    uint32_t word;
    uint64_t two_words;
    if (!bytes)
        return 0;
    switch (n_bytes) {
    case 8:
        memcpy(&two_words, bytes, 8);
        return take->is_swapped ? __builtin_bswap64(two_words) : two_words;
    case 4:
        memcpy(&word, bytes, 4);
        return take->is_swapped ? __builtin_bswap32(word) : word;
    case 2:
        memcpy(&half, bytes, 2);
        return take->is_swapped ? __builtin_bswap16(half) : half;
    default:
        return bytes[0];
    }
}

const char *perf_take_string(struct perf_take *take)
{
    const unsigned char *begin = take->bytes + take->at;
    const unsigned char *end = take->failed ? NULL : memchr(begin, 0, take->n_bytes - take->at);
    if (!end) {
        take->failed = true;
        return NULL;
    }
    take->at += (size_t)(end - begin) + 1;
    return (const char *)begin;
}

int perf_data_fail(const struct perf_data *data, uint64_t offset, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: offset %" PRIu64 ": %s", data->name, offset, reason);
}

int perf_data_fail_record(const struct perf_data *data, const struct perf_data_record *record, const char *reason,
                          struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: %s %" PRIu64 ": %s", data->name,
                     record->is_inflated ? "offset in the decompressed records" : "offset", record->offset, reason);
}

int perf_data_no_memory(const struct perf_data *data, struct error *err)
{
    return error_set(err, ERR_MEMORY, "%.600s: out of memory", data->name);
}
