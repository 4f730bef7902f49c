/* SPDX-License-Identifier: BSD-3-Clause */
/* Couplebreak, rule by rule: the names of the tests are the numbers of the rules in doc/streams.md. Streams are made by
 * hand, so that no library that reads formats is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "streams/couplebreak.h"
#include "streams/stream.h"
#include "streams/readers.h"

enum { ID_SWITCH = 314, ID_WAKING = 317, ID_MIGRATE = 320, ID_OTHER = 7, N_MAX = 64 };

/* Bytes of an event: those that all types have, and three numbers. */
struct payload {
    uint16_t common_type;
    uint8_t common_flags, common_preempt_count;
    int32_t common_pid;
    int32_t numbers[3];
};

/* A stream that is being made, and its bytes. */
struct made {
    struct stream *stream;
    struct payload payloads[N_MAX];
    size_t n;
};

static int put_latency(const struct stream *stream, const struct stream_event *event, struct buf *out,
                       struct error *err)
{
    (void)stream;
    (void)err;
    buf_printf(out, "latency of %d", event->id);
    return 0;
}

static int put_info(const struct stream *stream, const struct stream_event *event, struct buf *out, struct error *err)
{
    (void)stream;
    (void)err;
    buf_printf(out, "info of %d", event->id);
    return 0;
}

static const struct stream_reader reader = {.name = "test", .put_latency = put_latency, .put_info = put_info};

static void add_type(struct stream *stream, int32_t id, const char *name, const char *const *fields)
{
    struct stream_type *type = stream_add_type(stream, id, name);
    assert_non_null(type);
    struct stream_field common = {.name = "common_pid", .type = "int", .offset = 4, .n_bytes = 4};
    common.flags = STREAM_FIELD_SIGNED | STREAM_FIELD_COMMON;
    assert_true(stream_add_field(type, &common));
    for (uint32_t i = 0; fields[i]; i++) {
        struct stream_field field = {.name = (char *)fields[i], .type = "int", .n_bytes = 4};
        field.offset = (uint32_t)offsetof(struct payload, numbers) + 4 * i;
        field.flags = STREAM_FIELD_SIGNED;
        assert_true(stream_add_field(type, &field));
    }
}

static struct made *begin(void)
{
    static const char *const switches[] = {"prev_pid", "prev_prio", "next_pid", NULL};
    static const char *const wakings[] = {"pid", "prio", "target_cpu", NULL};
    static const char *const migrations[] = {"pid", "orig_cpu", "dest_cpu", NULL};
    static const char *const others[] = {"value", NULL};
    struct made *made = calloc(1, sizeof *made);
    made->stream = calloc(1, sizeof *made->stream);
    made->stream->reader = &reader;
    made->stream->n_cpus = 4;
    made->stream->bytes = (const unsigned char *)made->payloads;
    made->stream->n_bytes = sizeof made->payloads;
    add_type(made->stream, ID_SWITCH, "sched/sched_switch", switches);
    add_type(made->stream, ID_WAKING, "sched/sched_waking", wakings);
    add_type(made->stream, ID_MIGRATE, "sched/sched_migrate_task", migrations);
    add_type(made->stream, ID_OTHER, "test/other", others);
    assert_true(stream_add_task(made->stream, 5, STREAM_NO_TASK, "five"));
    assert_true(stream_add_task(made->stream, 6, STREAM_NO_TASK, "six"));
    return made;
}

static void add(struct made *made, int32_t id, int64_t t_ns, uint16_t cpu, int32_t task, int32_t a, int32_t b,
                int32_t c)
{
    made->payloads[made->n] = (struct payload){.common_type = (uint16_t)id, .common_pid = task, .numbers = {a, b, c}};
    struct stream_event *event = stream_add_event(made->stream);
    assert_non_null(event);
    event->t_ns = t_ns;
    event->record = made->n++ * sizeof *made->payloads;
    event->task = task;
    event->id = id;
    event->n_bytes = sizeof *made->payloads;
    event->cpu = cpu;
}

static void add_switch(struct made *made, int64_t t_ns, uint16_t cpu, int32_t before, int32_t after)
{
    add(made, ID_SWITCH, t_ns, cpu, before, before, 120, after);
}

static void add_waking(struct made *made, int64_t t_ns, uint16_t cpu, int32_t waker, int32_t woken, int32_t target)
{
    add(made, ID_WAKING, t_ns, cpu, waker, woken, 120, target);
}

/* 5 wakes 6 for CPU 1, where 6 is then switched in; 6 moves to CPU 2; another event. */
static struct made *sample(bool couplebreak)
{
    struct made *made = begin();
    add_waking(made, 100, 0, 5, 6, 3);
    add(made, ID_OTHER, 150, 0, 5, 42, 0, 0);
    add_switch(made, 200, 1, 0, 6);
    add(made, ID_MIGRATE, 300, 1, 6, 6, 1, 2);
    add_switch(made, 400, 2, 0, 6);
    assert_int_equal(stream_finish(made->stream, couplebreak, NULL), 0);
    return made;
}

static void end(struct made *made)
{
    stream_close(made->stream);
    free(made);
}

static const struct stream_event *find(const struct made *made, int32_t id)
{
    struct stream_match match = {.by_id = true, .id = id};
    size_t i = stream_next(made->stream, 0, &match);
    return i == STREAM_NONE ? NULL : &made->stream->events[i];
}

static char *line_of(const struct made *made, const struct stream_event *event)
{
    struct buf out = {0};
    assert_int_equal(stream_put_line(made->stream, 0, event, &out, NULL), 0);
    return out.data;
}

static void c1_off_is_as_if_there_were_no_twins(void **state)
{
    (void)state;
    struct made *off = sample(false), *on = sample(true);
    assert_false(off->stream->couplebreak_on);
    assert_int_equal(off->stream->n_events, off->n);
    size_t k = 0;
    for (size_t i = 0; i < on->stream->n_events; i++) {
        const struct stream_event *event = &on->stream->events[i];
        if (!couplebreak_is_twin(event->id))
            assert_memory_equal(event, &off->stream->events[k++], sizeof *event);
    }
    assert_int_equal(k, off->n);
    end(off);
    end(on);
}

static void c2_one_twin_right_behind_each_origin(void **state)
{
    (void)state;
    struct made *made = sample(true);
    static const int32_t wanted[] = {ID_WAKING,  COUPLEBREAK_WAKING,  ID_OTHER,  ID_SWITCH,         COUPLEBREAK_SWITCH,
                                     ID_MIGRATE, COUPLEBREAK_MIGRATE, ID_SWITCH, COUPLEBREAK_SWITCH};
    assert_int_equal(made->stream->n_events, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < made->stream->n_events; i++) {
        assert_int_equal(made->stream->events[i].id, wanted[i]);
        if (couplebreak_is_twin(wanted[i]))
            assert_int_equal(made->stream->events[i].t_ns, made->stream->events[i - 1].t_ns);
    }
    end(made);
}

static void c3_ids_are_below_all_others(void **state)
{
    (void)state;
    assert_int_equal(COUPLEBREAK_SWITCH, -10000);
    assert_int_equal(COUPLEBREAK_WAKING, -10001);
    assert_int_equal(COUPLEBREAK_MIGRATE, -10002);
}

static void c4_names(void **state)
{
    (void)state;
    assert_string_equal(couplebreak_name(COUPLEBREAK_SWITCH), "couplebreak/sched_switch[target]");
    assert_string_equal(couplebreak_name(COUPLEBREAK_WAKING), "couplebreak/sched_waking[target]");
    assert_string_equal(couplebreak_name(COUPLEBREAK_MIGRATE), "couplebreak/sched_migrate_task[target]");
    assert_null(couplebreak_name(-10003));
    assert_null(couplebreak_name(ID_SWITCH));
}

static void c5_origin(void **state)
{
    (void)state;
    struct made *made = sample(true);
    for (size_t i = 0; i < made->stream->n_events; i++) {
        const struct stream_event *event = &made->stream->events[i];
        const struct stream_event *wanted = couplebreak_is_twin(event->id) ? event - 1 : NULL;
        assert_ptr_equal(couplebreak_origin(made->stream, event), wanted);
    }
    end(made);
}

static void c6_switch_target(void **state)
{
    (void)state;
    struct made *made = begin();
    add_switch(made, 1, 3, 5, 6);
    assert_int_equal(stream_finish(made->stream, true, NULL), 0);
    assert_int_equal(made->stream->events[1].task, 6);
    assert_int_equal(made->stream->events[1].cpu, 3);
    assert_int_equal(made->stream->events[0].task, 5);
    end(made);
}

static void c7_waking_target(void **state)
{
    (void)state;
    struct made *made = begin();
    add_switch(made, 1, 2, 0, 6);
    add_waking(made, 2, 0, 5, 6, 1); /* 6 runs on 3 next, later on 2 */
    add_switch(made, 3, 3, 0, 6);
    add_waking(made, 4, 0, 5, 6, 1); /* on 2 */
    add_switch(made, 5, 2, 0, 6);
    add_waking(made, 6, 0, 5, 6, 1);  /* nowhere any more: the CPU that was meant */
    add_waking(made, 7, 0, 5, 6, -1); /* no such CPU: the one it was recorded on */
    add_waking(made, 8, 0, 5, 6, 4);
    made->stream->events[0].n_bytes = 8; /* too short for its fields */
    add_waking(made, 9, 0, 5, 6, 1);
    made->stream->events[made->n - 1].n_bytes = 8;
    assert_int_equal(stream_finish(made->stream, true, NULL), 0);
    static const uint16_t cpus[] = {2, 3, 3, 2, 2, 1, 0, 0, 0};
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(made->stream->events[2 * i + 1].cpu, cpus[i]);
    assert_int_equal(made->stream->events[1].task, 0);  /* the origin's: next_pid is not there */
    assert_int_equal(made->stream->events[17].task, 5); /* the waker's */
    end(made);
}

static void c8_order_stays(void **state)
{
    (void)state;
    struct made *made = begin();
    add_waking(made, 10, 3, 5, 6, 1); /* its twin goes to CPU 0, and stays behind it */
    add_switch(made, 10, 3, 5, 0);
    add_switch(made, 20, 0, 0, 6);
    assert_int_equal(stream_finish(made->stream, true, NULL), 0);
    for (size_t i = 0; i < 6; i += 2) {
        assert_false(couplebreak_is_twin(made->stream->events[i].id));
        assert_true(couplebreak_is_twin(made->stream->events[i + 1].id));
    }
    assert_int_equal(made->stream->events[1].cpu, 0);
    end(made);
}

static void c9_filters_apply_to_twins(void **state)
{
    (void)state;
    struct made *made = sample(true);
    struct error err;
    struct stream *stream = made->stream;
    for (size_t i = 0; i < stream->n_events; i++)
        assert_int_equal(stream->events[i].visible, 0xff);
    assert_int_equal(stream_filter_add(stream, STREAM_HIDE_EVENT, COUPLEBREAK_SWITCH, NULL), 0);
    assert_int_equal(stream_filter_add(stream, STREAM_HIDE_CPU, 0, NULL), 0);
    assert_int_equal(stream_filter_apply(stream, NULL), 0);
    for (size_t i = 0; i < stream->n_events; i++) {
        const struct stream_event *event = &stream->events[i];
        assert_int_equal(event->visible, event->cpu == 0 ? 0xf8 : event->id == COUPLEBREAK_SWITCH ? 0xfa : 0xff);
    }
    stream_filter_clear(stream, STREAM_HIDE_EVENT);
    stream_filter_clear(stream, STREAM_HIDE_CPU);
    assert_int_equal(stream_filter_add(stream, STREAM_SHOW_TASK, 6, NULL), 0);
    assert_int_equal(stream_filter_mask(stream, STREAM_VISIBLE_TEXT, NULL), 0);
    assert_int_equal(stream_filter_apply(stream, NULL), 0);
    for (size_t i = 0; i < stream->n_events; i++)
        assert_int_equal(stream->events[i].visible, stream->events[i].task == 6 ? 0xff : 0xfe);
    int code = stream_filter_fields(stream, "couplebreak/sched_switch[target]:next_pid == 6", &err);
    assert_int_equal(code, ERR_UNSUPPORTED);
    end(made);
}

static void c10_state(void **state)
{
    (void)state;
    struct made *made = sample(true);
    assert_true(made->stream->couplebreak_on);
    assert_int_equal(made->stream->n_couplebreak_evts, 3);
    assert_int_equal(made->stream->couplebreak_evts_flags, 7);
    end(made);
    made = begin();
    add_waking(made, 1, 0, 5, 6, 1);
    assert_int_equal(stream_finish(made->stream, true, NULL), 0);
    assert_int_equal(made->stream->n_couplebreak_evts, 1);
    assert_int_equal(made->stream->couplebreak_evts_flags, 2);
    end(made);
    made = begin();
    assert_int_equal(stream_finish(made->stream, true, NULL), 0);
    assert_int_equal(made->stream->n_couplebreak_evts, 0);
    assert_int_equal(made->stream->couplebreak_evts_flags, 0);
    end(made);
}

static void c11_getters(void **state)
{
    (void)state;
    struct made *made = sample(true);
    assert_int_equal(couplebreak_origin_id_to_flag_pos(made->stream, ID_SWITCH), 0);
    assert_int_equal(couplebreak_origin_id_to_flag_pos(made->stream, ID_WAKING), 1);
    assert_int_equal(couplebreak_origin_id_to_flag_pos(made->stream, ID_OTHER), -1);
    assert_int_equal(couplebreak_origin_id_to_flag_pos(made->stream, COUPLEBREAK_SWITCH), -1);
    for (int pos = 0; pos < COUPLEBREAK_N; pos++)
        assert_int_equal(couplebreak_id_to_flag_pos(couplebreak_flag_pos_to_id(pos)), pos);
    assert_int_equal(couplebreak_id_to_flag_pos(ID_SWITCH), -1);
    assert_int_equal(couplebreak_flag_pos_to_id(3), STREAM_ID_NONE);
    assert_int_equal(couplebreak_flag_pos_to_id(-1), STREAM_ID_NONE);
    assert_true(couplebreak_is_twin(COUPLEBREAK_MIGRATE));
    assert_false(couplebreak_is_twin(-10003));
    assert_false(couplebreak_is_twin(STREAM_ID_LOST));
    end(made);
}

static void c12_task_by_the_record(void **state)
{
    (void)state;
    struct made *made = sample(true);
    for (size_t i = 0; i < made->stream->n_events; i++) {
        struct stream_event *event = &made->stream->events[i];
        int32_t task = event->task;
        event->task = 77; /* as a consumer may do */
        assert_int_equal(couplebreak_task(made->stream, event), task);
    }
    end(made);
}

static void c13_name_latency_info(void **state)
{
    (void)state;
    struct made *made = sample(true);
    const struct stream_event *twin = find(made, COUPLEBREAK_WAKING);
    struct buf latency = {0}, info = {0};
    assert_string_equal(stream_event_name(made->stream, twin), "couplebreak/sched_waking[target]");
    assert_int_equal(stream_put_latency(made->stream, twin, &latency, NULL), 0);
    assert_int_equal(stream_put_info(made->stream, twin, &info, NULL), 0);
    assert_string_equal(latency.data, "latency of 317");
    assert_string_equal(info.data, "info of 317");
    buf_fini(&latency);
    buf_fini(&info);
    end(made);
}

static void c14_find_event_id(void **state)
{
    (void)state;
    struct made *on = sample(true), *off = sample(false), *none = begin();
    assert_int_equal(stream_finish(none->stream, true, NULL), 0);
    assert_int_equal(stream_find_id(on->stream, "couplebreak/sched_waking[target]"), COUPLEBREAK_WAKING);
    assert_int_equal(stream_find_id(off->stream, "couplebreak/sched_waking[target]"), STREAM_ID_NONE);
    assert_int_equal(stream_find_id(none->stream, "couplebreak/sched_waking[target]"), STREAM_ID_NONE);
    assert_int_equal(stream_find_id(on->stream, "sched/sched_waking"), ID_WAKING);
    assert_int_equal(stream_find_id(off->stream, "sched_waking"), ID_WAKING);
    assert_int_equal(stream_find_id(on->stream, "no/such"), STREAM_ID_NONE);
    end(on);
    end(off);
    end(none);
}

static void c15_ids_of_events_and_of_twins(void **state)
{
    (void)state;
    struct made *on = sample(true), *off = sample(false);
    int32_t ids[COUPLEBREAK_N];
    assert_int_equal(on->stream->n_types, off->stream->n_types);
    for (size_t i = 0; i < on->stream->n_types; i++) {
        assert_true(on->stream->types[i].id >= 0);
        assert_int_equal(on->stream->types[i].n_events, off->stream->types[i].n_events);
    }
    assert_int_equal(couplebreak_ids(on->stream, ids), 3);
    assert_int_equal(ids[0], COUPLEBREAK_SWITCH);
    assert_int_equal(ids[1], COUPLEBREAK_WAKING);
    assert_int_equal(couplebreak_ids(off->stream, ids), 0);
    end(on);
    end(off);
}

static void c16_fields_are_the_origins(void **state)
{
    (void)state;
    struct made *made = sample(true);
    const struct stream_event *twin = find(made, COUPLEBREAK_SWITCH);
    const struct stream_type *type = stream_fields_of(made->stream, twin);
    struct buf text = {0};
    int64_t value = 0;
    assert_int_equal(type->id, ID_SWITCH);
    assert_true(stream_field_number(made->stream, twin, stream_field_of(type, "next_pid"), &value));
    assert_int_equal(value, 6);
    stream_put_field(made->stream, twin, stream_field_of(type, "prev_prio"), &text);
    assert_string_equal(text.data, "120");
    buf_fini(&text);
    end(made);
}

static void c17_line_of_a_twin(void **state)
{
    (void)state;
    struct made *made = sample(true);
    char *line = line_of(made, find(made, COUPLEBREAK_WAKING));
    assert_string_equal(line, "0; 100; six-6; CPU 1; ; couplebreak/sched_waking[target]; origin_task_name=five; "
                              "origin_pid=5; 0xff; "
                              "0; 100; five-5; CPU 0; latency of 317; sched/sched_waking; info of 317; 0xff");
    free(line);
    line = line_of(made, find(made, ID_OTHER));
    assert_string_equal(line, "0; 150; five-5; CPU 0; latency of 7; test/other; info of 7; 0xff");
    free(line);
    end(made);
}

static void c20_owners_of_a_cpu(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct made *made = sample(on);
        int32_t tasks[N_MAX], task;
        size_t n = 0;
        for (size_t i = 0; i < made->stream->n_events; i++)
            if (couplebreak_switch_in(made->stream, &made->stream->events[i], &task)) {
                assert_int_equal(couplebreak_is_twin(made->stream->events[i].id), on);
                tasks[n++] = task;
            }
        assert_int_equal(n, 2);
        assert_int_equal(tasks[0], 6);
        assert_int_equal(tasks[1], 6);
        assert_int_equal(find(made, ID_SWITCH)->task, 0); /* the owner of a switch is the task that leaves */
        end(made);
    }
}

static void c21_migrations(void **state)
{
    (void)state;
    struct made *made = sample(true);
    const struct stream_event *twin = find(made, COUPLEBREAK_MIGRATE);
    assert_int_equal(twin->cpu, 2);
    assert_int_equal(twin->task, 6);
    assert_int_equal(twin[-1].cpu, 1);
    end(made);
}

/* Many tasks and CPUs: the corrected CPU is that of the next switch, found by looking at all that come later. */
static void c22_agrees_with_a_search(void **state)
{
    (void)state;
    struct made *made = begin();
    uint32_t random = 1;
    for (int64_t t = 0; t < N_MAX; t++) {
        random = random * 1664525 + 1013904223;
        uint16_t cpu = random >> 8 & 3;
        int32_t task = (int32_t)(random >> 16 & 7);
        if (random >> 24 & 1)
            add_switch(made, t / 2, cpu, 0, task);
        else
            add_waking(made, t / 2, cpu, 5, task, (int32_t)(random >> 28 & 3));
    }
    assert_int_equal(stream_finish(made->stream, true, NULL), 0);
    const struct stream_event *events = made->stream->events;
    for (size_t i = 0; i < made->stream->n_events; i++) {
        if (events[i].id != COUPLEBREAK_WAKING)
            continue;
        struct stream_match match = {.by_id = true, .by_task = true, .id = COUPLEBREAK_SWITCH, .task = events[i].task};
        size_t next = stream_next(made->stream, i, &match);
        int32_t target = made->payloads[events[i - 1].record / sizeof *made->payloads].numbers[2];
        assert_int_equal(events[i].cpu, next == STREAM_NONE ? target : events[next].cpu);
    }
    end(made);
}

static void search_and_lists(void **state)
{
    (void)state;
    struct made *made = sample(true);
    struct stream_match match = {.by_id = true, .id = COUPLEBREAK_SWITCH};
    size_t *indexes, n;
    assert_int_equal(stream_list(made->stream, &match, &indexes, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(indexes[0], 4);
    assert_int_equal(indexes[1], 8);
    free(indexes);
    assert_int_equal(stream_next(made->stream, 5, &match), 8);
    assert_int_equal(stream_next(made->stream, 9, &match), STREAM_NONE);
    assert_int_equal(stream_previous(made->stream, 8, &match), 4);
    assert_int_equal(stream_previous(made->stream, 4, &match), STREAM_NONE);
    assert_int_equal(stream_previous(made->stream, STREAM_NONE, &match), 8);
    match = (struct stream_match){.by_cpu = true, .by_task = true, .cpu = 2, .task = 6};
    assert_int_equal(stream_next(made->stream, 0, &match), 6);
    assert_int_equal(stream_at(made->stream, 200), 3);
    assert_int_equal(stream_at(made->stream, 201), 5);
    assert_int_equal(stream_at(made->stream, 1000), made->stream->n_events);
    end(made);
}

static void events_are_sorted(void **state)
{
    (void)state;
    struct made *made = begin();
    for (int i = 0; i < 20; i++)
        add(made, ID_OTHER, (i * 7) % 10, (uint16_t)(i % 3), i, 0, 0, 0);
    assert_int_equal(stream_finish(made->stream, false, NULL), 0);
    for (size_t i = 1; i < made->stream->n_events; i++) {
        const struct stream_event *a = &made->stream->events[i - 1], *b = a + 1;
        assert_true(a->t_ns < b->t_ns || (a->t_ns == b->t_ns && a->cpu <= b->cpu));
    }
    end(made);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_off_is_as_if_there_were_no_twins),
        cmocka_unit_test(c2_one_twin_right_behind_each_origin),
        cmocka_unit_test(c3_ids_are_below_all_others),
        cmocka_unit_test(c4_names),
        cmocka_unit_test(c5_origin),
        cmocka_unit_test(c6_switch_target),
        cmocka_unit_test(c7_waking_target),
        cmocka_unit_test(c8_order_stays),
        cmocka_unit_test(c9_filters_apply_to_twins),
        cmocka_unit_test(c10_state),
        cmocka_unit_test(c11_getters),
        cmocka_unit_test(c12_task_by_the_record),
        cmocka_unit_test(c13_name_latency_info),
        cmocka_unit_test(c14_find_event_id),
        cmocka_unit_test(c15_ids_of_events_and_of_twins),
        cmocka_unit_test(c16_fields_are_the_origins),
        cmocka_unit_test(c17_line_of_a_twin),
        cmocka_unit_test(c20_owners_of_a_cpu),
        cmocka_unit_test(c21_migrations),
        cmocka_unit_test(c22_agrees_with_a_search),
        cmocka_unit_test(search_and_lists),
        cmocka_unit_test(events_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
