/* SPDX-License-Identifier: BSD-3-Clause */
/* Twins of events that concern two tasks or two CPUs: made, corrected and asked for. */
#include "streams/couplebreak.h"

#include <stdlib.h>
#include <string.h>

#include "streams/readers.h"

/* The kinds of twins, by the bit that stands for them. */
static const struct {
    int32_t id;
    const char *name, *origin, *task_field, *cpu_field;
} kinds[COUPLEBREAK_N] = {
    {COUPLEBREAK_SWITCH, "couplebreak/sched_switch[target]", "sched/sched_switch", "next_pid", NULL},
    {COUPLEBREAK_WAKING, "couplebreak/sched_waking[target]", "sched/sched_waking", "pid", "target_cpu"},
    {COUPLEBREAK_MIGRATE, "couplebreak/sched_migrate_task[target]", "sched/sched_migrate_task", "pid", "dest_cpu"},
};
enum { SWITCH };

int couplebreak_id_to_flag_pos(int32_t id)
{
    for (int pos = 0; pos < COUPLEBREAK_N; pos++)
        if (kinds[pos].id == id)
            return pos;
    return -1;
}

int32_t couplebreak_flag_pos_to_id(int pos)
{
    return pos >= 0 && pos < COUPLEBREAK_N ? kinds[pos].id : STREAM_ID_NONE;
}

bool couplebreak_is_twin(int32_t id)
{
    return id <= COUPLEBREAK_SWITCH && couplebreak_id_to_flag_pos(id) >= 0;
}

const char *couplebreak_name(int32_t id)
{
    int pos = couplebreak_id_to_flag_pos(id);
    return pos < 0 ? NULL : kinds[pos].name;
}

int couplebreak_origin_id_to_flag_pos(const struct stream *stream, int32_t id)
{
    for (int pos = 0; pos < COUPLEBREAK_N; pos++)
        if (stream->couples[pos].is_known && stream->couples[pos].id == id)
            return pos;
    return -1;
}

int couplebreak_ids(const struct stream *stream, int32_t *ids)
{
    int n = 0;
    for (int pos = 0; pos < COUPLEBREAK_N; pos++)
        if (stream->couplebreak_evts_flags >> pos & 1)
            ids[n++] = kinds[pos].id;
    return n;
}

const struct stream_event *couplebreak_origin(const struct stream *stream, const struct stream_event *event)
{
    return couplebreak_is_twin(event->id) ? &stream->events[event->record] : NULL;
}

void couplebreak_find_origins(struct stream *stream)
{
    for (int pos = 0; pos < COUPLEBREAK_N; pos++) {
        const struct stream_type *type = stream->types;
        size_t n = stream->n_types;
        while (n > 0 && strcmp(type->name, kinds[pos].origin) != 0) {
            type++;
            n--;
        }
        if (n > 0)
            stream->couples[pos] =
                (struct stream_couple){true, type->id, stream_field_of(type, kinds[pos].task_field),
                                       kinds[pos].cpu_field ? stream_field_of(type, kinds[pos].cpu_field) : NULL};
    }
}

/* The number in a field that may be missing. */
static bool read_field(const struct stream *stream, const struct stream_event *event, const struct stream_field *field,
                       int64_t *value)
{
    return field && stream_field_number(stream, event, field, value);
}

static int32_t target_task(const struct stream *stream, const struct stream_event *origin,
                           const struct stream_couple *couple)
{
    int64_t value;
    return read_field(stream, origin, couple->task, &value) ? (int32_t)value : origin->task;
}

/* A number that is no CPU of the stream is as good as none. */
static uint16_t target_cpu(const struct stream *stream, const struct stream_event *origin,
                           const struct stream_couple *couple)
{
    int64_t value;
    return read_field(stream, origin, couple->cpu, &value) && value >= 0 && value < stream->n_cpus ? (uint16_t)value
                                                                                                   : origin->cpu;
}

/* --- making twins --- */

/* Where each task is switched in next, seen from the end of the stream: an open hash table. */
struct next_cpus {
    struct next_cpu {
        int32_t task;
        uint32_t cpu; /* + 1; 0: empty slot */
    } * slots;
    size_t n_slots, n_used; /* n_slots: a power of two */
};

static struct next_cpu *next_cpu_slot(const struct next_cpus *table, int32_t task)
{
    size_t i = (uint32_t)task * UINT32_C(2654435761) >> 7;
    for (i &= table->n_slots - 1; table->slots[i].cpu && table->slots[i].task != task;)
        i = (i + 1) & (table->n_slots - 1);
    return &table->slots[i];
}

/* Doubles the table when it is half full. */
static bool next_cpus_reserve(struct next_cpus *table)
{
    enum { FIRST_SLOTS = 1024 };
    if (table->n_used < table->n_slots / 2)
        return true;
    struct next_cpus larger = {.n_slots = table->n_slots ? 2 * table->n_slots : FIRST_SLOTS, .n_used = table->n_used};
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < table->n_slots; i++)
        if (table->slots[i].cpu)
            *next_cpu_slot(&larger, table->slots[i].task) = table->slots[i];
    free(table->slots);
    *table = larger;
    return true;
}

/* The CPU of a twin where later switches tell it, and what it tells about earlier wakings. False when out of memory. */
static bool correct_cpu(struct next_cpus *table, struct stream_event *twin)
{
    if (twin->id == COUPLEBREAK_SWITCH) {
        if (!next_cpus_reserve(table))
            return false;
        struct next_cpu *slot = next_cpu_slot(table, twin->task);
        table->n_used += slot->cpu == 0;
        *slot = (struct next_cpu){twin->task, twin->cpu + 1u};
    } else if (twin->id == COUPLEBREAK_WAKING && table->n_slots) {
        const struct next_cpu *slot = next_cpu_slot(table, twin->task);
        if (slot->cpu)
            twin->cpu = (uint16_t)(slot->cpu - 1);
    }
    return true;
}

/* One pass from the last event to the first: moves them apart and writes twins into the gaps, with the CPUs that the
 * twins behind them tell. False when out of memory. */
static bool insert_twins(struct stream *stream, size_t n_twins)
{
    struct stream_event *events = stream->events;
    struct next_cpus table = {0};
    bool is_done = true;
    size_t to = stream->n_events + n_twins;
    for (size_t from = stream->n_events; is_done && from-- > 0;) {
        struct stream_event origin = events[from];
        int pos = couplebreak_origin_id_to_flag_pos(stream, origin.id);
        if (pos >= 0) {
            const struct stream_couple *couple = &stream->couples[pos];
            to--;
            events[to] = (struct stream_event){.t_ns = origin.t_ns,
                                               .record = to - 1,
                                               .task = target_task(stream, &origin, couple),
                                               .id = kinds[pos].id,
                                               .cpu = target_cpu(stream, &origin, couple),
                                               .visible = STREAM_VISIBLE_ALL};
            is_done = correct_cpu(&table, &events[to]);
            stream->couplebreak_evts_flags |= UINT64_C(1) << pos;
        }
        events[--to] = origin;
    }
    free(table.slots);
    stream->n_events += n_twins;
    return is_done;
}

int couplebreak_apply(struct stream *stream, struct error *err)
{
    size_t n_twins = 0;
    for (size_t i = 0; i < stream->n_events; i++)
        n_twins += couplebreak_origin_id_to_flag_pos(stream, stream->events[i].id) >= 0;
    if (n_twins > stream->cap_events - stream->n_events) {
        struct stream_event *events = realloc(stream->events, (stream->n_events + n_twins) * sizeof *events);
        if (!events)
            return error_memory(err);
        stream->events = events;
        stream->cap_events = stream->n_events + n_twins;
    }
    stream->couplebreak_on = true;
    if (!insert_twins(stream, n_twins))
        return error_memory(err);
    stream->n_couplebreak_evts = __builtin_popcountll(stream->couplebreak_evts_flags);
    return 0;
}

/* --- for consumers --- */

int32_t couplebreak_task(const struct stream *stream, const struct stream_event *event)
{
    const struct stream_event *origin = couplebreak_origin(stream, event);
    if (origin)
        return target_task(stream, origin, &stream->couples[couplebreak_id_to_flag_pos(event->id)]);
    const struct stream_type *type = stream_fields_of(stream, event);
    const struct stream_field *field = type ? stream_field_of(type, "common_pid") : NULL;
    int64_t value;
    return read_field(stream, event, field, &value) ? (int32_t)value : event->task;
}

bool couplebreak_switch_in(const struct stream *stream, const struct stream_event *event, int32_t *task)
{
    if (stream->couplebreak_on) {
        *task = event->task;
        return event->id == COUPLEBREAK_SWITCH;
    }
    const struct stream_couple *couple = &stream->couples[SWITCH];
    if (!couple->is_known || event->id != couple->id)
        return false;
    *task = target_task(stream, event, couple);
    return true;
}
