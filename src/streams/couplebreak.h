/* SPDX-License-Identifier: BSD-3-Clause */
/* Couplebreak: an event that concerns two tasks or two CPUs gets a twin, which stands for the second of them. A switch
 * is one of the task that leaves, its twin one of the task that comes; a waking is one of the waker, its twin one of
 * the woken task, on the CPU where it runs next; a migration is recorded where it was decided, its twin lies on the new
 * CPU. Twins are made when a stream is opened, are placed right behind their origins, and have the origins' times,
 * fields and texts. Ordinary code. */
#ifndef LOCUS_STREAMS_COUPLEBREAK_H
#define LOCUS_STREAMS_COUPLEBREAK_H

#include "streams/events.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ids of twins. */
enum couplebreak_id {
    COUPLEBREAK_SWITCH = -10000,  /* of sched/sched_switch: task next_pid, the origin's CPU */
    COUPLEBREAK_WAKING = -10001,  /* of sched/sched_waking: task pid; the CPU of its next switch, else target_cpu */
    COUPLEBREAK_MIGRATE = -10002, /* of sched/sched_migrate_task: task pid, CPU dest_cpu */
    COUPLEBREAK_N = 3
};

/* Whether an id is one of twins that are known here. */
bool couplebreak_is_twin(int32_t id);

/* The origin of a twin; NULL of an event that is none. Borrowed from stream.events. */
const struct stream_event *couplebreak_origin(const struct stream *stream, const struct stream_event *event);

/* The index of the origin of a twin in stream_events; STREAM_NONE of an event that is none. */
size_t couplebreak_origin_index(const struct stream *stream, const struct stream_event *event);

/* What a stream has of twins: whether they were asked for, how many types of them, and which, as a set of bits. */
bool couplebreak_is_on(const struct stream *stream);
int couplebreak_n_types(const struct stream *stream);
uint64_t couplebreak_flags(const struct stream *stream);

/* The bit in couplebreak_flags of a type that has twins in this stream, by the type's own id; of an id of twins;
 * -1 for others. And back: the id of twins by the bit, STREAM_ID_NONE for others. */
int couplebreak_origin_id_to_flag_pos(const struct stream *stream, int32_t id);
int couplebreak_id_to_flag_pos(int32_t id);
int32_t couplebreak_flag_pos_to_id(int pos);

/* The name of an id of twins, such as "couplebreak/sched_switch[target]"; NULL for others. */
const char *couplebreak_name(int32_t id);

/* The ids of the twins that a stream has, ids [COUPLEBREAK_N]; returns how many. */
int couplebreak_ids(const struct stream *stream, int32_t *ids);

/* The task of an event as the recorded bytes have it, whatever a consumer made of event->task: of a twin next_pid or
 * pid, of others common_pid. */
int32_t couplebreak_task(const struct stream *stream, const struct stream_event *event);

/* The rule for consumers that follow which task a CPU runs: whether an event is a switch, seen from the task that
 * comes, and which task that is. With couplebreak on these are the twins; with it off, the switches themselves. */
bool couplebreak_switch_in(const struct stream *stream, const struct stream_event *event, int32_t *task);

#ifdef __cplusplus
}
#endif

#endif
