/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of a recording, made and used: see parts.h. Places at which reading can begin lie between events of
 * different times, every PLACE_EVENTS or so, behind NEAR_PLACES of them ever farther apart: never while a CPU has lost
 * records before its next event, as a reader tells of these together. */
#include "streams/parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/search.h"
#include "streams/couplebreak.h"
#include "streams/levels.h"

enum { PLACE_EVENTS = 16384, EVENTS_PER_ROW = 32, NEAR_PLACES = 1024 };

/* A place: its first event, and how much is known there. */
struct place {
    uint64_t first;
    int64_t t_ns;                 /* of that event; the one before is earlier */
    uint64_t first_task, n_tasks; /* first: while the index is made, in the arrays of all places */
    uint64_t first_cpu, n_cpus;
    uint64_t n_gaps;
    uint64_t can_end; /* reading can end there, as well */
    uint64_t at, sum; /* of its block: where it begins behind the core, and the sum of its words */
};

struct index_type {
    int64_t id;
    uint64_t n_events;
};

struct index_task {
    int32_t task, process;
    uint64_t n_events;
    uint32_t is_own, has_comm; /* which follows in the texts */
};

/* What an index begins with. Arrays follow in this order, and texts: that is its core, which is looked at whole. Then
 * come blocks, one for each place, which are looked at when they are needed: where CPUs go on, tasks, CPUs. */
struct index_head {
    uint64_t n_core_bytes, core_sum; /* sum: of its words, this one as 0 */
    uint64_t n_events, n_lost, n_lost_places, n_file_cpus;
    int64_t begin_ns, end_ns;
    uint64_t n_places; /* the last one is the end of all */
    uint64_t n_gaps, n_types, n_tasks, n_text_bytes, n_name_bytes;
};

_Static_assert(sizeof(struct place) % 8 == 0 && sizeof(struct schedule_task_stand) % 8 == 0 &&
                   sizeof(struct schedule_cpu_stand) % 8 == 0 && sizeof(struct stream_place) % 8 == 0 &&
                   sizeof(struct index_type) % 8 == 0 && sizeof(struct index_task) % 8 == 0,
               "all parts lie on multiples of eight");

/* --- making --- */

/* A CPU while events are gone through. */
struct making_cpu {
    size_t n_filled; /* of how many places it is known where it goes on */
    uint64_t record; /* of its last event */
    int64_t last_ns; /* of that event, INT64_MIN: none */
    uint64_t lost;   /* with has_lost: before its next event */
    bool has_lost, has_any;
};

struct parts_making {
    const struct stream *stream;
    struct place *places; /* [n_places] */
    size_t n_places, cap_places;
    struct schedule_task_stand *tasks; /* [n_tasks] of all places */
    size_t n_tasks, cap_tasks;
    struct schedule_cpu_stand *cpus; /* [n_cpus] the same */
    size_t n_cpus, cap_cpus;
    struct stream_place *at; /* [n_places * n_file_cpus] */
    size_t cap_at, n_file_cpus;
    struct making_cpu *file_cpus; /* [n_file_cpus] */
    size_t n_losing;              /* of them have lost records before their next event */
    size_t next_place;            /* no place is made before this event */
    size_t n_events;              /* that have been passed */
    int64_t last_ns;              /* of the last one */
    bool failed;
};

struct parts_making *parts_making_new(const struct stream *stream)
{
    bool is_known = stream->reader && stream->reader->read_part && !stream->couplebreak_on && !stream->offset_ns;
    struct parts_making *making = is_known ? calloc(1, sizeof *making) : NULL;
    if (!making)
        return NULL;
    making->stream = stream;
    making->n_file_cpus = stream->n_cpus;
    making->file_cpus = calloc(making->n_file_cpus + 1, sizeof *making->file_cpus);
    making->failed = !making->file_cpus;
    for (size_t i = 0; !making->failed && i < making->n_file_cpus; i++)
        making->file_cpus[i].last_ns = INT64_MIN;
    return making;
}

void parts_making_free(struct parts_making *making)
{
    if (!making)
        return;
    free(making->places);
    free(making->tasks);
    free(making->cpus);
    free(making->at);
    free(making->file_cpus);
    free(making);
}

/* What is known at a place. */
static struct schedule_stand stand_of(const struct parts_making *making, const struct place *place)
{
    return (struct schedule_stand){.tasks = place->n_tasks ? making->tasks + place->first_task : NULL,
                                   .n_tasks = place->n_tasks,
                                   .cpus = place->n_cpus ? making->cpus + place->first_cpu : NULL,
                                   .n_cpus = place->n_cpus};
}

/* Adds the place before event number first. */
static void add_place(struct parts_making *making, const struct schedule *sched, size_t first, int64_t t_ns)
{
    size_t n = making->n_places;
    if (!vec_reserve(&making->places, &making->cap_places, n + 1, sizeof *making->places) ||
        !vec_reserve(&making->tasks, &making->cap_tasks, making->n_tasks + sched->n_tasks, sizeof *making->tasks) ||
        !vec_reserve(&making->cpus, &making->cap_cpus, making->n_cpus + sched->n_cpus, sizeof *making->cpus) ||
        !vec_reserve(&making->at, &making->cap_at, (n + 1) * making->n_file_cpus, sizeof *making->at)) {
        making->failed = true;
        return;
    }
    making->places[n] = (struct place){.first = first,
                                       .t_ns = t_ns,
                                       .first_task = making->n_tasks,
                                       .n_tasks = sched->n_tasks,
                                       .first_cpu = making->n_cpus,
                                       .n_cpus = sched->n_cpus,
                                       .n_gaps = sched->n_gaps,
                                       .can_end = true};
    struct schedule_stand stand = stand_of(making, &making->places[n]);
    schedule_stand_take(sched, &stand);
    making->n_tasks += sched->n_tasks;
    making->n_cpus += sched->n_cpus;
    for (size_t i = 0; i < making->n_file_cpus; i++)
        making->at[n * making->n_file_cpus + i] = (struct stream_place){.record = UINT64_MAX};
    making->n_places++;
    size_t n_rows = EVENTS_PER_ROW * (sched->n_tasks + making->n_file_cpus), n_far = first / NEAR_PLACES;
    n_rows = n_rows > PLACE_EVENTS ? n_rows : PLACE_EVENTS;
    making->next_place = first + (n_rows > n_far ? n_rows : n_far);
}

void parts_making_event(struct parts_making *making, const struct schedule *sched, const struct stream_event *event)
{
    if (!making || making->failed)
        return;
    size_t i = making->n_events++;
    if (i >= making->next_place && making->n_losing == 0 && (i == 0 || making->last_ns < event->t_ns))
        add_place(making, sched, i, event->t_ns);
    making->last_ns = event->t_ns;
    struct making_cpu *cpu = event->cpu < making->n_file_cpus ? &making->file_cpus[event->cpu] : NULL;
    if (!cpu || making->failed) {
        making->failed = true;
        return;
    }
    if (event->id == STREAM_ID_LOST) {
        making->failed |= cpu->has_lost;
        making->n_losing += !cpu->has_lost;
        cpu->has_lost = true;
        cpu->lost = event->record;
        return;
    }
    for (; cpu->n_filled < making->n_places; cpu->n_filled++)
        making->at[cpu->n_filled * making->n_file_cpus + event->cpu] =
            (struct stream_place){event->record, cpu->last_ns, cpu->lost, cpu->has_lost};
    making->failed |= cpu->has_any && event->record <= cpu->record;
    making->n_losing -= cpu->has_lost;
    *cpu = (struct making_cpu){
        .n_filled = cpu->n_filled, .record = event->record, .last_ns = event->t_ns, .has_any = true};
}

void parts_making_piece(struct parts_making *making, const struct schedule *sched, const struct schedule_piece *piece)
{
    for (size_t i = making ? making->n_places : 0; i-- > 0 && making->places[i].t_ns > piece->from_ns;) {
        struct schedule_stand stand = stand_of(making, &making->places[i]);
        making->places[i].can_end &= schedule_stand_piece(sched, &stand, piece);
    }
}

void parts_making_run(struct parts_making *making, const struct schedule *sched, const struct schedule_run *run)
{
    for (size_t i = making ? making->n_places : 0; i-- > 0 && making->places[i].t_ns > run->from_ns;) {
        struct schedule_stand stand = stand_of(making, &making->places[i]);
        making->places[i].can_end &= schedule_stand_run(sched, &stand, run);
    }
}

static void put_array(struct buf *out, const void *items, size_t n, size_t each)
{
    if (n)
        buf_append(out, items, n * each);
}

static void put_to_eight(struct buf *out)
{
    static const char zeros[8];
    buf_append(out, zeros, -out->len_bytes & 7);
}

/* Types that have events, tasks and their names. */
static void put_counts(const struct stream *stream, struct index_head *head, struct buf *out, struct buf *texts)
{
    for (size_t i = 0; i < stream->n_types; i++) {
        const struct index_type type = {stream->types[i].id, stream->types[i].n_events};
        head->n_types += type.n_events > 0;
        put_array(out, &type, type.n_events > 0, sizeof type);
    }
    for (size_t i = 0; i < stream->n_tasks; i++) {
        const struct stream_task *from = &stream->tasks[i];
        const struct index_task task = {from->task, from->process, from->n_events, from->is_own, from->comm != NULL};
        buf_append(out, &task, sizeof task);
        if (from->comm)
            buf_append(texts, from->comm, strlen(from->comm) + 1);
    }
    head->n_tasks = stream->n_tasks;
    put_to_eight(texts);
    head->n_text_bytes = texts->len_bytes;
}

/* The block of a place. */
static void put_block(const struct parts_making *making, struct place *place, size_t i, struct buf *out)
{
    place->at = out->len_bytes;
    const struct schedule_stand stand = stand_of(making, place);
    put_array(out, making->at + i * making->n_file_cpus, making->n_file_cpus, sizeof *making->at);
    put_array(out, stand.tasks, stand.n_tasks, sizeof *stand.tasks);
    put_array(out, stand.cpus, stand.n_cpus, sizeof *stand.cpus);
    place->sum = out->failed ? 0 : levels_sum(out->data + place->at, out->len_bytes - place->at);
}

void parts_making_put(struct parts_making *making, const struct schedule *sched, struct buf *out, struct buf *blocks)
{
    struct buf counts = {0}, texts = {0}, names = {0};
    if (!making || making->failed || making->n_losing || !making->n_events)
        return;
    const struct stream *stream = making->stream;
    add_place(making, sched, making->n_events, making->last_ns);
    struct index_head head = {.n_events = making->n_events,
                              .n_lost = stream->n_lost,
                              .n_lost_places = stream->n_lost_places,
                              .n_file_cpus = making->n_file_cpus,
                              .begin_ns = making->places[0].t_ns,
                              .end_ns = making->last_ns,
                              .n_places = making->n_places,
                              .n_gaps = sched->n_gaps};
    put_counts(stream, &head, &counts, &texts);
    stream_names_put(stream, &names);
    put_to_eight(&names);
    head.n_name_bytes = names.len_bytes;
    for (size_t i = 0; i < making->n_places && !making->failed; i++)
        put_block(making, &making->places[i], i, blocks);
    if (!making->failed && !texts.failed && !names.failed && !counts.failed && !blocks->failed) {
        buf_append(out, &head, sizeof head);
        put_array(out, making->places, making->n_places, sizeof *making->places);
        put_array(out, sched->gaps, sched->n_gaps, sizeof *sched->gaps);
        put_array(out, counts.data, counts.len_bytes, 1);
        put_array(out, texts.data, texts.len_bytes, 1);
        put_array(out, names.data, names.len_bytes, 1);
        head.n_core_bytes = out->len_bytes;
    }
    if (!out->failed && head.n_core_bytes) {
        memcpy(out->data, &head, sizeof head);
        head.core_sum = levels_sum(out->data, head.n_core_bytes);
        memcpy(out->data, &head, sizeof head);
    } else {
        blocks->len_bytes = 0;
    }
    buf_fini(&counts);
    buf_fini(&texts);
    buf_fini(&names);
}

/* --- an index that was read --- */

struct parts_index {
    void *map; /* the file that it lies in */
    size_t n_map;
    const struct index_head *head;
    const struct place *places;
    const int64_t *gaps;
    const struct index_type *types;
    const struct index_task *tasks;
    const char *texts, *names, *blocks;
    size_t n_blocks; /* bytes */
};

/* The next array of an index; NULL: it ends before. */
static void *next_array(char **at, size_t *n_left, uint64_t n, size_t each)
{
    char *array = *at;
    if (!array || n > *n_left / each) {
        *at = NULL;
        return NULL;
    }
    *at += n * each;
    *n_left -= n * each;
    return array;
}

static size_t block_bytes(const struct parts_index *index, const struct place *place)
{
    return index->head->n_file_cpus * sizeof(struct stream_place) +
           place->n_tasks * sizeof(struct schedule_task_stand) + place->n_cpus * sizeof(struct schedule_cpu_stand);
}

/* Whether places stand one behind the other, and their blocks lie in the file. */
static bool places_fit(const struct parts_index *index)
{
    const struct index_head *head = index->head;
    bool ok = head->n_places >= 2 && head->n_events > 0 && index->places[0].first == 0 &&
              index->places[head->n_places - 1].first == head->n_events;
    for (size_t i = 0; ok && i < head->n_places; i++) {
        const struct place *place = &index->places[i];
        ok = place->n_tasks <= index->n_blocks / sizeof(struct schedule_task_stand) && place->n_cpus < STREAM_NO_CPU &&
             place->n_gaps <= head->n_gaps && (i == 0 || place->first > place[-1].first) && place->at % 8 == 0 &&
             place->at <= index->n_blocks && block_bytes(index, place) <= index->n_blocks - place->at;
    }
    return ok;
}

/* Whether the core is what it was; it is not copied, so that the word of the sum is passed over. */
static bool core_is_whole(const char *bytes, size_t n_bytes)
{
    struct index_head head;
    if (n_bytes < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.n_core_bytes < sizeof head || head.n_core_bytes > n_bytes || head.n_core_bytes % 8)
        return false;
    struct buf copy = {0};
    buf_append(&copy, bytes, head.n_core_bytes);
    uint64_t sum = head.core_sum;
    head.core_sum = 0;
    bool is_whole = !copy.failed;
    if (is_whole) {
        memcpy(copy.data, &head, sizeof head);
        is_whole = levels_sum(copy.data, copy.len_bytes) == sum;
    }
    buf_fini(&copy);
    return is_whole;
}

struct parts_index *parts_index_take(void *map, size_t n_map, size_t at)
{
    struct parts_index *index = calloc(1, sizeof *index);
    char *next = (char *)map + at;
    size_t n_left = n_map - at;
    if (!index) {
        (void)munmap(map, n_map);
        return NULL;
    }
    index->map = map;
    index->n_map = n_map;
    if (!core_is_whole(next, n_left)) {
        parts_index_free(index);
        return NULL;
    }
    const struct index_head *head = index->head = next_array(&next, &n_left, 1, sizeof *head);
    index->n_blocks = n_map - at - head->n_core_bytes;
    index->blocks = (char *)map + at + head->n_core_bytes;
    n_left = head->n_core_bytes - sizeof *head;
    index->places = next_array(&next, &n_left, head->n_places, sizeof *index->places);
    index->gaps = next_array(&next, &n_left, head->n_gaps, sizeof *index->gaps);
    index->types = next_array(&next, &n_left, head->n_types, sizeof *index->types);
    index->tasks = next_array(&next, &n_left, head->n_tasks, sizeof *index->tasks);
    index->texts = next_array(&next, &n_left, head->n_text_bytes, 1);
    index->names = next_array(&next, &n_left, head->n_name_bytes, 1);
    if (head->n_file_cpus <= STREAM_NO_CPU && index->names && n_left == 0 && places_fit(index))
        return index;
    parts_index_free(index);
    return NULL;
}

/* Whether a byte of a file is a truth value. */
static bool is_truth(const bool *flag)
{
    unsigned char byte;
    memcpy(&byte, flag, sizeof byte);
    return byte <= 1;
}

/* What is known at a place, and where CPUs go on; false: it is damaged. */
static bool look_at_place(const struct parts_index *index, size_t i, struct schedule_stand *stand,
                          const struct stream_place **at)
{
    const struct place *place = &index->places[i];
    const char *block = index->blocks + place->at;
    *at = (const void *)block;
    stand->tasks = (void *)(uintptr_t)(*at + index->head->n_file_cpus);
    stand->n_tasks = place->n_tasks;
    stand->cpus = (void *)(stand->tasks + place->n_tasks);
    stand->n_cpus = place->n_cpus;
    stand->gaps = index->gaps;
    stand->n_gaps = place->n_gaps;
    bool ok = levels_sum(block, block_bytes(index, place)) == place->sum;
    for (size_t k = 0; ok && k < stand->n_tasks; k++)
        ok = stand->tasks[k].n_gaps <= place->n_gaps && stand->tasks[k].state < SCHEDULE_N_STATES &&
             stand->tasks[k].end_state < SCHEDULE_N_STATES && is_truth(&stand->tasks[k].has_run) &&
             is_truth(&stand->tasks[k].has_end) && is_truth(&stand->tasks[k].is_late);
    for (size_t k = 0; ok && k < stand->n_cpus; k++)
        ok = is_truth(&stand->cpus[k].is_seen) && is_truth(&stand->cpus[k].has_end);
    return ok;
}

void parts_index_free(struct parts_index *index)
{
    if (index)
        (void)munmap(index->map, index->n_map);
    free(index);
}

int64_t parts_index_begin_ns(const struct parts_index *index)
{
    return index->head->begin_ns;
}

/* --- the stream --- */

struct stream_part {
    struct parts_index *index;
    bool *is_filled; /* [n_places - 1] the events from a place to the next one */
    size_t n_filled; /* events */
};

void stream_part_free(struct stream_part *part)
{
    if (!part)
        return;
    parts_index_free(part->index);
    free(part->is_filled);
    free(part);
}

static bool place_is_upto(const void *context, size_t i)
{
    const struct place *const *search = context;
    return search[0][i].t_ns <= search[1]->t_ns;
}

/* The last place whose first event is not behind a time; 0: all are. */
static size_t place_at(const struct parts_index *index, int64_t t_ns)
{
    const struct place like = {.t_ns = t_ns}, *search[] = {index->places, &like};
    size_t behind = search_where(index->head->n_places - 1, place_is_upto, search);
    return behind ? behind - 1 : 0;
}

/* Where reading ends that begins at a place and goes on behind a time. */
static size_t end_place(const struct parts_index *index, size_t begin, int64_t to_ns)
{
    size_t end = begin + 1, n = index->head->n_places - 1;
    while (end < n && !(index->places[end].t_ns > to_ns && index->places[end].can_end))
        end++;
    return end;
}

/* Fills the events from a place to the next one.  err: ERR_FORMAT, ERR_MEMORY */
static int fill(struct stream *stream, size_t place, struct error *err)
{
    struct stream_part *part = stream->part;
    const struct parts_index *index = part->index;
    size_t n_cpus = index->head->n_file_cpus, first = index->places[place].first;
    struct schedule_stand ignored;
    const struct stream_place *from, *to;
    struct stream read = {.path = stream->path, .types = stream->types, .n_types = stream->n_types};
    if (part->is_filled[place])
        return 0;
    if (!look_at_place(index, place, &ignored, &from) || !look_at_place(index, place + 1, &ignored, &to))
        return error_set(err, ERR_FORMAT, "%.600s: its index is damaged", stream->path);
    int code = stream->reader->read_part(stream, from, to, n_cpus, &read, err);
    code = code ? code : stream_sort(&read) ? 0 : error_memory(err);
    if (code == 0 && read.n_events != index->places[place + 1].first - first)
        code = error_set(err, ERR_FORMAT, "%.600s: is not what its index says", stream->path);
    if (code == 0)
        memcpy(stream->events + first, read.events, read.n_events * sizeof *read.events);
    part->is_filled[place] = code == 0;
    part->n_filled += code == 0 ? read.n_events : 0;
    free(read.events);
    return code;
}

/* What is known of all events together. */
static int take_counts(struct stream *stream, const struct parts_index *index, struct error *err)
{
    const struct index_head *head = index->head;
    const char *text = index->texts, *end = text + head->n_text_bytes;
    for (size_t i = 0; i < stream->n_tasks; i++)
        free(stream->tasks[i].comm);
    free(stream->tasks);
    slots_fini(&stream->task_slots);
    stream->n_tasks = 0;
    stream->tasks = calloc(head->n_tasks + 1, sizeof *stream->tasks);
    for (size_t i = 0; stream->tasks && i < head->n_tasks; i++) {
        const struct index_task *task = &index->tasks[i];
        const char *zero = task->has_comm && text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
        stream->tasks[stream->n_tasks++] =
            (struct stream_task){task->task, task->process, zero ? strdup(text) : NULL, task->n_events, task->is_own};
        text = zero ? zero + 1 : text;
    }
    for (size_t i = 0; i < head->n_types; i++) {
        struct stream_type *type = (struct stream_type *)stream_type_of(stream, (int32_t)index->types[i].id);
        if (type)
            type->n_events = index->types[i].n_events;
    }
    stream->n_lost = head->n_lost;
    stream->n_lost_places = head->n_lost_places;
    stream->n_events = stream->cap_events = stream->room_events = head->n_events;
    stream->events = calloc(head->n_events, sizeof *stream->events); /* what is not filled takes no memory */
    if (!stream->tasks || !stream->events)
        return error_memory(err);
    stream->events[0].t_ns = head->begin_ns;
    stream->events[head->n_events - 1].t_ns = head->end_ns;
    return stream_names_take(stream, index->names, head->n_name_bytes) ? 0 : error_memory(err);
}

int stream_open_part(const char *path, struct parts_index *index, int64_t from_ns, int64_t to_ns,
                     struct stream **stream, struct error *err)
{
    struct stream_part *part = calloc(1, sizeof *part);
    if (part) {
        part->index = index;
        part->is_filled = calloc(index->head->n_places, sizeof *part->is_filled);
    }
    if (!part || !part->is_filled) {
        if (!part)
            parts_index_free(index);
        stream_part_free(part);
        return error_memory(err);
    }
    int code = stream_open_empty(path, part, stream, err);
    if (code != 0)
        return code;
    code = !(*stream)->reader->read_part ? error_set(err, ERR_FORMAT, "%.600s: has no parts", path)
                                         : take_counts(*stream, index, err);
    couplebreak_find_origins(*stream);
    struct schedule_stand ignored;
    const struct stream_place *at;
    size_t begin = place_at(index, from_ns), end = end_place(index, begin, to_ns), last = index->head->n_places - 1;
    if (code == 0 && !look_at_place(index, last, &ignored, &at))
        code = error_set(err, ERR_FORMAT, "%.600s: its index is damaged", path);
    for (size_t i = begin; code == 0 && i < end; i++) /* these, and no others, are what a schedule of it needs */
        code = fill(*stream, i, err);
    if (code != 0) {
        stream_close(*stream);
        *stream = NULL;
    }
    return code;
}

static bool place_begins_upto(const void *context, size_t i)
{
    const struct place *const *search = context;
    return search[0][i].first <= search[1]->first;
}

int stream_part_fill(struct stream *stream, size_t at, size_t *end, struct error *err)
{
    const struct parts_index *index = stream->part->index;
    const struct place like = {.first = at}, *search[] = {index->places, &like};
    size_t behind = search_where(index->head->n_places - 1, place_begins_upto, search), place = behind ? behind - 1 : 0;
    *end = index->places[place + 1].first;
    return fill(stream, place, err);
}

void stream_part_rest(struct stream *stream)
{
    enum { FILLED_MOST = 1 << 22, PAGE_BYTES = 1 << 16 }; /* no system has larger ones */
    struct stream_part *part = stream->part;
    if (!part || part->n_filled <= FILLED_MOST)
        return;
    int64_t begin_ns = stream->events[0].t_ns, end_ns = stream->events[stream->n_events - 1].t_ns;
    uintptr_t first = ((uintptr_t)stream->events + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uintptr_t behind = (uintptr_t)(stream->events + stream->n_events) / PAGE_BYTES * PAGE_BYTES;
    (void)madvise((void *)first, behind - first, MADV_DONTNEED);
    memset(part->is_filled, 0, part->index->head->n_places * sizeof *part->is_filled);
    part->n_filled = 0;
    stream->events[0].t_ns = begin_ns;
    stream->events[stream->n_events - 1].t_ns = end_ns;
}

static bool event_is_before(const void *context, size_t i)
{
    const struct stream_event *const *search = context;
    return search[0][i].t_ns < search[1]->t_ns;
}

size_t stream_part_at(const struct stream *stream, int64_t t_ns)
{
    struct stream *own = (struct stream *)(uintptr_t)stream; /* it is the same stream, of which more is known */
    const struct parts_index *index = stream->part->index;
    struct error ignored = {0};
    size_t place = place_at(index, t_ns), n = index->head->n_places - 1;
    for (size_t i = place; i <= place + 1 && i < n; i++)
        if (fill(own, i, &ignored) != 0)
            return stream->n_events;
    size_t first = index->places[place].first, end = index->places[place + 1].first;
    const struct stream_event like = {.t_ns = t_ns}, *search[] = {stream->events + first, &like};
    return first + search_where(end - first, event_is_before, search);
}

size_t stream_part_filled(const struct stream *stream, size_t at)
{
    const struct parts_index *index = stream->part->index;
    size_t place = 0, n = index->head->n_places - 1;
    while (place < n && index->places[place + 1].first <= at)
        place++;
    while (place < n && stream->part->is_filled[place])
        place++;
    return index->places[place].first;
}

bool stream_part_begin(const struct stream *stream, const struct schedule_window *window, struct schedule *sched,
                       size_t *first, size_t *end)
{
    struct stream *own = (struct stream *)(uintptr_t)stream;
    const struct parts_index *index = stream->part->index;
    struct error ignored = {0};
    size_t begin = place_at(index, window->from_ns), last = end_place(index, begin, window->to_ns);
    for (size_t i = begin; i < last; i++)
        if (fill(own, i, &ignored) != 0)
            return false;
    struct schedule_stand stand;
    const struct stream_place *at;
    *first = index->places[begin].first;
    *end = index->places[last].first;
    return look_at_place(index, begin, &stand, &at) && schedule_begin_at(sched, &stand);
}

bool stream_part_end(const struct stream *stream, size_t end, struct schedule *sched)
{
    const struct parts_index *index = stream->part->index;
    size_t last = index->head->n_places - 1, place = 0;
    struct schedule_stand stand, of_all;
    const struct stream_place *at;
    while (place < last && index->places[place].first < end)
        place++;
    if (!look_at_place(index, place, &stand, &at) || !look_at_place(index, last, &of_all, &at))
        return false;
    schedule_end_at(sched, &stand, &of_all);
    return true;
}
