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

size_t couplebreak_origin_index(const struct stream *stream, const struct stream_event *event)
{
    const struct stream_event *origin = couplebreak_origin(stream, event);
    return origin ? (size_t)(origin - stream->events) : STREAM_NONE;
}

bool couplebreak_is_on(const struct stream *stream)
{
    return stream->couplebreak_on;
}

int couplebreak_n_types(const struct stream *stream)
{
    return stream->n_couplebreak_evts;
}

uint64_t couplebreak_flags(const struct stream *stream)
{
    return stream->couplebreak_evts_flags;
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

/* --- making twins --- */

/* What is known of each task of a twin, seen from the end of the stream: an open hash table. */
struct targets {
    struct target {
        uint64_t n_twins; /* 0: empty slot */
        int32_t task;
        uint32_t cpu; /* where it is switched in next, + 1; 0: nowhere */
    } * slots;
    size_t n_slots, n_used; /* n_slots: a power of two */
};

static inline struct target *target_slot(const struct targets *table, int32_t task)
{
    size_t i = (uint32_t)task * UINT32_C(2654435761) >> 7;
    for (i &= table->n_slots - 1; table->slots[i].n_twins && table->slots[i].task != task;)
        i = (i + 1) & (table->n_slots - 1);
    return &table->slots[i];
}

/* Doubles the table when it is half full. */
static bool targets_reserve(struct targets *table)
{
    enum { FIRST_SLOTS = 1024 };
    if (table->n_used < table->n_slots / 2)
        return true;
    struct targets larger = {.n_slots = table->n_slots ? 2 * table->n_slots : FIRST_SLOTS, .n_used = table->n_used};
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < table->n_slots; i++)
        if (table->slots[i].n_twins)
            *target_slot(&larger, table->slots[i].task) = table->slots[i];
    free(table->slots);
    *table = larger;
    return true;
}

/* Counts a twin for its task, and gives it the CPU that later switches tell. False when out of memory. */
static inline bool settle(struct targets *table, struct stream_event *twin)
{
    struct target *target = target_slot(table, twin->task);
    bool is_new = target->n_twins++ == 0;
    target->task = twin->task;
    if (twin->id == COUPLEBREAK_SWITCH)
        target->cpu = twin->cpu + 1u;
    else if (twin->id == COUPLEBREAK_WAKING && target->cpu)
        twin->cpu = (uint16_t)(target->cpu - 1);
    table->n_used += is_new;
    return !is_new || targets_reserve(table);
}

/* A kind of twins in the stream, and how the fields of its origins are read without asking for their kind each time. */
struct origin_kind {
    int32_t id; /* STREAM_ID_NONE: the stream has none */
    const struct stream_couple *couple;
    bool is_plain;                     /* its fields are four bytes each, in native order, in stream.bytes */
    uint32_t task_at, cpu_at, n_least; /* is_plain; cpu_at 0: it names no CPU */
};

static bool is_plain_field(const struct stream_field *field)
{
    return field && field->n_bytes == 4 && field->flags & STREAM_FIELD_SIGNED && field->offset <= UINT16_MAX;
}

static struct origin_kind origin_kind_of(const struct stream *stream, int pos)
{
    const struct stream_couple *couple = &stream->couples[pos];
    struct origin_kind kind = {.id = couple->is_known ? couple->id : STREAM_ID_NONE, .couple = couple};
    bool has_bytes = stream->bytes && !(stream->reader && stream->reader->payload) && !stream->is_swapped;
    kind.is_plain = has_bytes && is_plain_field(couple->task) && (!couple->cpu || is_plain_field(couple->cpu));
    if (kind.is_plain) {
        kind.task_at = couple->task->offset;
        kind.cpu_at = couple->cpu ? couple->cpu->offset : 0;
        kind.n_least = (kind.task_at > kind.cpu_at ? kind.task_at : kind.cpu_at) + 4;
    }
    return kind;
}

/* The task and the CPU that an origin names second; a number that is no CPU of the stream is as good as none. */
static inline void read_target(const struct stream *stream, const struct stream_event *origin,
                               const struct origin_kind *kind, struct stream_event *twin)
{
    int32_t task = origin->task, cpu = -1;
    int64_t value;
    if (kind->is_plain && origin->n_bytes >= kind->n_least && origin->record <= stream->n_bytes &&
        origin->n_bytes <= stream->n_bytes - origin->record) {
        const unsigned char *bytes = stream->bytes + origin->record;
        memcpy(&task, bytes + kind->task_at, sizeof task);
        if (kind->cpu_at)
            memcpy(&cpu, bytes + kind->cpu_at, sizeof cpu);
    } else {
        task = target_task(stream, origin, kind->couple);
        cpu = read_field(stream, origin, kind->couple->cpu, &value) && value == (int32_t)value ? (int32_t)value : -1;
    }
    twin->task = task;
    twin->cpu = cpu >= 0 && (uint32_t)cpu < stream->n_cpus ? (uint16_t)cpu : origin->cpu;
}

/* One pass from the last event to the first: moves them apart and writes twins into the gaps, with the CPUs that the
 * twins behind them tell. False when out of memory. */
static bool insert_twins(struct stream *stream, size_t n_twins, struct targets *table)
{
    enum { AHEAD = 24 }; /* events whose bytes are fetched early */
    struct stream_event *events = stream->events;
    struct origin_kind of[COUPLEBREAK_N];
    bool is_done = targets_reserve(table), is_any_plain = false;
    for (int pos = 0; pos < COUPLEBREAK_N; pos++) {
        of[pos] = origin_kind_of(stream, pos);
        is_any_plain |= of[pos].is_plain;
    }
    size_t to = stream->n_events + n_twins;
    for (size_t from = stream->n_events; is_done && from-- > 0;) {
        struct stream_event origin = events[from];
        int pos = origin.id == of[0].id ? 0 : origin.id == of[1].id ? 1 : origin.id == of[2].id ? 2 : COUPLEBREAK_N;
        if (is_any_plain && from >= AHEAD) /* what is asked for lies at the end of most */
            __builtin_prefetch((const void *)((uintptr_t)stream->bytes + events[from - AHEAD].record +
                                              events[from - AHEAD].n_bytes - 8));
        if (pos < COUPLEBREAK_N && origin.id != STREAM_ID_NONE) {
            struct stream_event *twin = &events[--to];
            *twin = (struct stream_event){
                .t_ns = origin.t_ns, .record = to - 1, .id = kinds[pos].id, .visible = STREAM_VISIBLE_ALL};
            read_target(stream, &origin, &of[pos], twin);
            is_done = settle(table, twin);
            stream->couplebreak_evts_flags |= UINT64_C(1) << pos;
        }
        events[--to] = origin;
    }
    stream->n_events += n_twins;
    return is_done;
}

int couplebreak_apply(struct stream *stream, struct error *err)
{
    struct targets table = {0};
    size_t n_twins = 0;
    for (int pos = 0; pos < COUPLEBREAK_N; pos++) {
        const struct stream_couple *couple = &stream->couples[pos];
        const struct stream_type *type = couple->is_known ? stream_type_of(stream, couple->id) : NULL;
        n_twins += type ? type->n_events : 0;
    }
    stream->couplebreak_on = true;
    bool is_done = stream_reserve_events(stream, stream->n_events + n_twins) && insert_twins(stream, n_twins, &table);
    for (size_t i = 0; is_done && i < table.n_slots; i++)
        is_done = !table.slots[i].n_twins || table.slots[i].task == STREAM_NO_TASK ||
                  stream_count_task(stream, table.slots[i].task, table.slots[i].n_twins);
    free(table.slots);
    stream->n_couplebreak_evts = __builtin_popcountll(stream->couplebreak_evts_flags);
    return is_done ? 0 : error_memory(err);
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
