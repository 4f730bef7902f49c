/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/locus-db.h: models with random numbers everywhere read as they were written, and a damaged file is
 * one clear error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/json-database.h"
#include "base/access-pattern.h"

enum { STRINGS = 9, RUNS = 40 };

static uint64_t state;

/* A number of random length, never 0. */
static uint64_t number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> (state & 63) | 1;
}

static uint32_t below(uint64_t n)
{
    return (uint32_t)((number() * UINT64_C(0x9e3779b97f4a7c15) >> 20) % n);
}

static uint32_t number_32(void)
{
    return (uint32_t)number() | 1;
}

static double value(void)
{
    return (double)number() / (1 + below(1000));
}

static char *text(void)
{
    char *made;
    assert_true(asprintf(&made, "text %#jx", (uintmax_t)number()) > 0);
    return made;
}

static void fill(uint64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        numbers[i] = number();
}

/* A list of one to four zeroed items. */
static void *list(size_t *n, size_t item_bytes)
{
    *n = 1 + below(4);
    void *made = calloc(*n, item_bytes);
    assert_non_null(made);
    return made;
}

/* --- a random model --- */

static void make_head(struct model *model)
{
    char **texts[] = {&model->program, &model->command, &model->plan, &model->skid, &model->topology};
    uint64_t *words[] = {&model->cpu_time_ns, &model->user_ns,       &model->system_ns,    &model->start_ns,
                         &model->end_ns,      &model->min_bytes,     &model->sample_bytes, &model->mark_ns,
                         &model->n_frames,    &model->unmeasured_ns, &model->delay_ns,     &model->n_page_faults};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = below(3) ? text() : NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        *words[i] = number();
    fill(model->unwind_stops, sizeof model->unwind_stops / sizeof *model->unwind_stops);
    model->n_numa_nodes = 2;
    model->n_killed = number_32();
    model->has_samples = below(2);
    model->has_thread_list = true;
    for (size_t i = 0; i < STRINGS; i++) {
        char *one = text();
        (void)model_string(model, one);
        model_note(model, "%s!", one);
        assert_true(strtab_intern(&model->runs, one) >= 0);
        free(one);
    }
}

static uint32_t string(const struct model *model)
{
    return below(model->strings.n_strings);
}

static void make_runs(struct model *model)
{
    model->metrics = list(&model->n_metrics, sizeof *model->metrics);
    for (size_t i = 0; i < model->n_metrics; i++)
        model->metrics[i] =
            (struct metric){text(), text(), value(), value(), number(), below(2), below(2), 0, below(2)};
    model->processes = list(&model->n_processes, sizeof *model->processes);
    for (size_t i = 0; i < model->n_processes; i++)
        model->processes[i] = (struct process){.exe = text(),
                                               .host_id = text(),
                                               .rank = number_32(),
                                               .pid = number_32(),
                                               .generation = number_32(),
                                               .n_threads = number_32(),
                                               .directory = number_32(),
                                               .birth = number()};
    model->threads = list(&model->n_threads, sizeof *model->threads);
    for (size_t i = 0; i < model->n_threads; i++)
        model->threads[i] = (struct thread){
            .process = below(model->n_processes), .thread_id = number_32(), .name = string(model), .profile = i};
    model->events = list(&model->n_events, sizeof *model->events);
    for (size_t i = 0; i < model->n_events; i++) {
        struct event_sum *event = &model->events[i];
        *event = (struct event_sum){.metric = text(),
                                    .name = text(),
                                    .scale = value(),
                                    .taken = number(),
                                    .overflows = number(),
                                    .enabled_ns = number(),
                                    .running_ns = number(),
                                    .n_throttles = number(),
                                    .n_no_metric = number(),
                                    .n_truncated = number(),
                                    .n_collisions = number(),
                                    .has_data_source = below(2),
                                    .has_address = below(2),
                                    .is_user_only = below(2),
                                    .n_spared = number(),
                                    .sample_cost_ns = number()};
        event->fates[below(FATE_MAX)] = number();
    }
}

/* Scopes after scope 0, in an order where parents come first, and some values. */
static void make_tree(struct model *model)
{
    model->n_scopes = 2 + below(12);
    assert_true(vec_reserve(&model->scopes, &model->cap_scopes, model->n_scopes, sizeof *model->scopes));
    for (uint32_t i = 1; i < model->n_scopes; i++) {
        uint32_t parent = below(i);
        while (model->scopes[parent].kind == SCOPE_INSTRUCTION)
            parent--;
        bool is_in_line = model->scopes[parent].kind == SCOPE_LINE;
        model->scopes[i] = (struct scope){.parent = parent,
                                          .name = string(model),
                                          .file = string(model),
                                          .module = string(model),
                                          .line = number_32(),
                                          .end_line = number_32(),
                                          .node_type = (uint16_t)number(),
                                          .role = (uint8_t)below(ROLE_COUNT),
                                          .kind = (uint8_t)(is_in_line ? SCOPE_INSTRUCTION : below(SCOPE_INSTRUCTION)),
                                          .vaddr = number()};
    }
    model_link_scopes(model);
    assert_non_null(model->own = calloc(model->n_scopes * model->n_metrics, sizeof *model->own));
    for (size_t i = 0; i < model->n_scopes * model->n_metrics; i++)
        model->own[i] = below(3) ? value() : 0;
}

static void make_sums(const struct model *model, struct variable *variable)
{
    variable->latencies = list(&variable->n_latencies, sizeof *variable->latencies);
    for (size_t i = 0; i < variable->n_latencies; i++) {
        struct latency_sum *sum = &variable->latencies[i].sum;
        variable->latencies[i].event = below(model->n_events);
        *sum = (struct latency_sum){number(), number(), number(), number(), {0}};
        fill(sum->bins, LATENCY_BINS);
    }
    variable->causes = list(&variable->n_causes, sizeof *variable->causes);
    for (size_t i = 0; i < variable->n_causes; i++)
        variable->causes[i] = (struct variable_cause){
            below(model->n_events),
            {value(), value(), value(), value(), value(), value(), value(), value(), 0, value()}};
    variable->walks = list(&variable->n_walks, sizeof *variable->walks);
    for (size_t i = 0; i < variable->n_walks; i++)
        variable->walks[i] = (struct variable_walk){below(model->n_events), (uint8_t)below(PATTERN_CHAINED + 1),
                                                    below(WALK_STRIDE_MOST + 1), value(), value()};
    assert_non_null(variable->samples = calloc(model->n_metrics, sizeof(uint64_t)));
    fill(variable->samples, model->n_metrics);
    assert_non_null(variable->places = calloc(model->n_metrics * model->n_numa_nodes, sizeof(uint64_t)));
    fill(variable->places, model->n_metrics * model->n_numa_nodes);
}

static void make_parts(const struct model *model, struct variable *variable)
{
    variable->scopes = list(&variable->n_scopes, sizeof *variable->scopes);
    for (size_t i = 0; i < variable->n_scopes; i++)
        variable->scopes[i] = below(model->n_scopes);
    variable->parts = list(&variable->n_parts, sizeof *variable->parts);
    for (size_t i = 0; i < variable->n_parts; i++)
        variable->parts[i] = (struct variable_part){string(model), string(model), number_32(),         string(model),
                                                    number(),      number(),      1.0 / (1 + below(9))};
    variable->part_lines = list(&variable->n_part_lines, sizeof *variable->part_lines);
    for (size_t i = 0; i < variable->n_part_lines; i++)
        variable->part_lines[i] = (struct part_line){below(variable->n_parts),
                                                     string(model),
                                                     string(model),
                                                     number_32(),
                                                     {string(model), number_32(), number_32()},
                                                     number()};
    variable->fields = list(&variable->n_fields, sizeof *variable->fields);
    for (size_t i = 0; i < variable->n_fields; i++)
        variable->fields[i] = (struct variable_field){below(model->n_events),
                                                      below(2) ? below(variable->n_parts) : FIELD_NO_PART,
                                                      string(model),
                                                      string(model),
                                                      number_32(),
                                                      number(),
                                                      number(),
                                                      number()};
}

static void make_variables(struct model *model)
{
    model->variables = list(&model->n_variables, sizeof *model->variables);
    for (size_t i = 0; i < model->n_variables; i++) {
        struct variable *variable = &model->variables[i];
        *variable = (struct variable){.name = string(model),
                                      .function = string(model),
                                      .file = string(model),
                                      .line = number_32(),
                                      .module = string(model),
                                      .class = (uint8_t)below(CLASS_COUNT),
                                      .size_bytes = number(),
                                      .n_blocks = number(),
                                      .size_freed_bytes = number(),
                                      .n_blocks_freed = number(),
                                      .max_block_bytes = number(),
                                      .n_blocks_marked = number(),
                                      .size_marked_bytes = number(),
                                      .n_inexact = number(),
                                      .type = string(model),
                                      .type_source = (uint8_t)below(TYPE_SOURCES),
                                      .element_bytes = number()};
        make_parts(model, variable);
        make_sums(model, variable);
    }
    model->n_longer = 1;
}

static void make_machines(struct model *model)
{
    model->machines = list(&model->n_machines, sizeof *model->machines);
    for (size_t i = 0; i < model->n_machines; i++) {
        struct machine *machine = &model->machines[i];
        machine->host_id = text();
        machine->cpus = list(&machine->n_cpus, sizeof *machine->cpus);
        for (uint32_t k = 0; k < machine->n_cpus; k++)
            machine->cpus[k] =
                (struct machine_cpu){k * 9 + below(9), number_32(), below(2) ? PLACE_UNKNOWN : 0, below(64)};
        machine->n_distances = 2;
        assert_non_null(machine->distances = calloc(4, sizeof *machine->distances));
        for (size_t k = 0; k < 4; k++)
            machine->distances[k] = number_32();
    }
}

static void make_reach(const struct model *model, struct reach_row *row)
{
    *row = (struct reach_row){.variable = (uint32_t)model->n_variables - 1,
                              .thread = below(model->n_threads),
                              .n_strided = number(),
                              .n_irregular = number(),
                              .sum = {.shift = below(64),
                                      .first = number(),
                                      .last = number(),
                                      .n_steps = number(),
                                      .n_forward = number(),
                                      .n_loads = number(),
                                      .n_stores = number()}};
    row->sum.bins[below(REACH_BINS)] = number();
    for (size_t i = 0; i < REACH_BLOCKS; i++) {
        row->sum.blocks[i].address = number();
        row->sum.blocks[i].count = number();
    }
    row->lines = list(&row->n_lines, sizeof *row->lines);
    for (size_t i = 0; i < row->n_lines; i++) {
        row->lines[i] = (struct reach_line){number(), number(), number(), number(), {0}};
        fill(row->lines[i].slots, PATTERN_SLOTS);
    }
    row->offsets.entries = list(&row->offsets.n, sizeof *row->offsets.entries);
    row->offsets.capacity = row->offsets.n;
    for (size_t i = 0; i < row->offsets.n; i++)
        row->offsets.entries[i] = (struct spread_entry){number(), number()};
}

/* Rows of counts; variables ascend, so all of a table are of the last one but for the first row. */
static void make_counts(struct model *model)
{
    const uint32_t last = (uint32_t)model->n_variables - 1;
    const struct variable *variable = &model->variables[last];
    model->cpu_counts = list(&model->n_cpu_counts, sizeof *model->cpu_counts);
    for (size_t i = 0; i < model->n_cpu_counts; i++)
        model->cpu_counts[i] =
            (struct cpu_count){i ? last : 0, below(model->n_threads), below(model->n_metrics), number_32(), number()};
    model->home_counts = list(&model->n_home_counts, sizeof *model->home_counts);
    for (size_t i = 0; i < model->n_home_counts; i++)
        model->home_counts[i] = (struct home_count){i ? last : 0,
                                                    below(model->n_threads),
                                                    below(model->n_metrics),
                                                    number_32(),
                                                    below(2) ? below(HOMES_MAX) : PLACE_UNKNOWN,
                                                    number()};
    model->touches = list(&model->n_touches, sizeof *model->touches);
    for (size_t i = 0; i < model->n_touches; i++) {
        uint64_t low = number() >> 1;
        model->touches[i] =
            (struct touch){i ? last : 0, below(model->n_threads), below(model->n_scopes), number(), number(), number(),
                           low,          low + below(1000)};
    }
    model->field_counts = list(&model->n_field_counts, sizeof *model->field_counts);
    for (size_t i = 0; i < model->n_field_counts; i++)
        model->field_counts[i] =
            (struct field_count){last, below(model->n_scopes), below(variable->n_fields), number()};
    model->nest_counts = list(&model->n_nest_counts, sizeof *model->nest_counts);
    for (size_t i = 0; i < model->n_nest_counts; i++)
        model->nest_counts[i] = (struct nest_count){i ? last : 0,
                                                    below(model->n_events),
                                                    string(model),
                                                    number_32(),
                                                    number_32(),
                                                    string(model),
                                                    number_32(),
                                                    below(NEST_VERDICT_MOST + 1),
                                                    below(NEST_MOVE_MOST + 1),
                                                    below(2),
                                                    number(),
                                                    number(),
                                                    number()};
}

static void make_tables(struct model *model)
{
    model->builds = list(&model->n_builds, sizeof *model->builds);
    for (size_t i = 0; i < model->n_builds; i++)
        model->builds[i] = (struct module_build){string(model), number()};
    model->drops = list(&model->n_drops, sizeof *model->drops);
    for (size_t i = 0; i < model->n_drops; i++)
        model->drops[i] =
            (struct drop_count){below(model->n_threads), below(model->n_events),
                                FATE_DROP_REENTERED + below(FATE_TAKEN_MAX - FATE_DROP_REENTERED), number()};
    model->pages = list(&model->n_pages, sizeof *model->pages);
    for (size_t i = 0; i < model->n_pages; i++) {
        model->pages[i] = (struct variable_pages){.variable = (uint32_t)model->n_variables - 1,
                                                  .n_moved = number(),
                                                  .n_pages = number(),
                                                  .n_asked = number(),
                                                  .n_none = number(),
                                                  .huge_bytes = below(2) ? number() : UINT64_MAX};
        fill(model->pages[i].n_on, 1 + below(HOMES_MAX));
    }
    model->meetings = list(&model->n_meetings, sizeof *model->meetings);
    for (size_t i = 0; i < model->n_meetings; i++)
        model->meetings[i] = (struct meeting){below(model->n_variables),
                                              below(model->n_threads),
                                              below(model->n_scopes),
                                              below(2),
                                              below(4),
                                              number(),
                                              number(),
                                              number(),
                                              number(),
                                              number(),
                                              number()};
    model->reaches = list(&model->n_reaches, sizeof *model->reaches);
    for (size_t i = 0; i < model->n_reaches; i++)
        make_reach(model, &model->reaches[i]);
}

/* --- comparing --- */

#define NO_POINTER SIZE_MAX

/* The items of two lists are the same but for pointers, whose offsets are given. */
static void same_items(const void *one, size_t n_one, const void *other, size_t n_other, size_t item_bytes,
                       const size_t *pointers)
{
    unsigned char x[4096], y[sizeof x];
    assert_int_equal(n_one, n_other);
    assert_true(item_bytes <= sizeof x);
    for (size_t i = 0; i < n_one; i++) {
        memcpy(x, (const char *)one + i * item_bytes, item_bytes);
        memcpy(y, (const char *)other + i * item_bytes, item_bytes);
        for (size_t k = 0; pointers && pointers[k] != NO_POINTER; k++) {
            memset(x + pointers[k], 0, sizeof(void *));
            memset(y + pointers[k], 0, sizeof(void *));
        }
        assert_memory_equal(x, y, item_bytes);
    }
}

#define SAME(a, b, member)                                                                                             \
    same_items((a)->member, (a)->n_##member, (b)->member, (b)->n_##member, sizeof *(a)->member, NULL)
#define SAME_BUT(a, b, member, ...)                                                                                    \
    same_items((a)->member, (a)->n_##member, (b)->member, (b)->n_##member, sizeof *(a)->member,                        \
               (const size_t[]){__VA_ARGS__, NO_POINTER})

static void same_text(const char *one, const char *other)
{
    assert_true((one == NULL) == (other == NULL));
    if (one)
        assert_string_equal(one, other);
}

static void same_texts(const struct strtab *one, const struct strtab *other)
{
    assert_int_equal(one->n_strings, other->n_strings);
    for (size_t i = 0; i < one->n_strings; i++)
        assert_string_equal(one->strings[i], other->strings[i]);
}

static void same_variables(const struct model *one, const struct model *other)
{
    assert_int_equal(one->n_variables, other->n_variables);
    for (size_t i = 0; i < one->n_variables; i++) {
        const struct variable *x = &one->variables[i], *y = &other->variables[i];
        struct variable plain[2] = {*x, *y};
        for (size_t k = 0; k < 2; k++) { /* what is no list */
            struct variable *v = &plain[k];
            v->scopes = NULL, v->parts = NULL, v->part_lines = NULL, v->places = v->samples = NULL;
            v->latencies = NULL, v->causes = NULL, v->walks = NULL, v->fields = NULL;
            v->cap_scopes = v->cap_parts = v->cap_part_lines = v->cap_latencies = v->cap_causes = v->cap_walks =
                v->cap_fields = 0;
        }
        assert_memory_equal(&plain[0], &plain[1], sizeof plain[0]);
        SAME(x, y, scopes);
        SAME(x, y, parts);
        SAME(x, y, part_lines);
        SAME(x, y, latencies);
        SAME(x, y, causes);
        SAME(x, y, walks);
        SAME(x, y, fields);
        assert_memory_equal(x->samples, y->samples, one->n_metrics * sizeof *x->samples);
        assert_memory_equal(x->places, y->places, one->n_metrics * one->n_numa_nodes * sizeof *x->places);
    }
}

static void same_rows(const struct model *one, const struct model *other)
{
    SAME_BUT(one, other, metrics, offsetof(struct metric, name), offsetof(struct metric, description));
    for (size_t i = 0; i < one->n_metrics; i++) {
        same_text(one->metrics[i].name, other->metrics[i].name);
        same_text(one->metrics[i].description, other->metrics[i].description);
    }
    SAME_BUT(one, other, processes, offsetof(struct process, exe), offsetof(struct process, host_id));
    for (size_t i = 0; i < one->n_processes; i++) {
        same_text(one->processes[i].exe, other->processes[i].exe);
        same_text(one->processes[i].host_id, other->processes[i].host_id);
    }
    SAME_BUT(one, other, events, offsetof(struct event_sum, metric), offsetof(struct event_sum, name));
    for (size_t i = 0; i < one->n_events; i++) {
        same_text(one->events[i].metric, other->events[i].metric);
        same_text(one->events[i].name, other->events[i].name);
    }
    SAME_BUT(one, other, machines, offsetof(struct machine, host_id), offsetof(struct machine, cpus),
             offsetof(struct machine, distances));
    for (size_t i = 0; i < one->n_machines; i++) {
        same_text(one->machines[i].host_id, other->machines[i].host_id);
        SAME(&one->machines[i], &other->machines[i], cpus);
        assert_memory_equal(one->machines[i].distances, other->machines[i].distances, 4 * sizeof(uint32_t));
    }
    SAME_BUT(one, other, reaches, offsetof(struct reach_row, lines), offsetof(struct reach_row, offsets.entries));
    for (size_t i = 0; i < one->n_reaches; i++) {
        SAME(&one->reaches[i], &other->reaches[i], lines);
        assert_memory_equal(one->reaches[i].offsets.entries, other->reaches[i].offsets.entries,
                            one->reaches[i].offsets.n * sizeof *one->reaches[i].offsets.entries);
    }
}

/* The head, from n_numa_nodes on. */
static void same_head(const struct model *one, const struct model *other)
{
    const size_t from = offsetof(struct model, cpu_time_ns), to = offsetof(struct model, notes);
    assert_memory_equal((const char *)one + from, (const char *)other + from, to - from);
    assert_int_equal(one->n_numa_nodes, other->n_numa_nodes);
    same_text(one->topology, other->topology);
    same_text(one->program, other->program);
    same_text(one->command, other->command);
    same_text(one->plan, other->plan);
    same_text(one->skid, other->skid);
    same_texts(&one->strings, &other->strings);
    same_texts(&one->runs, &other->runs);
    assert_int_equal(one->n_notes, other->n_notes);
    for (size_t i = 0; i < one->n_notes; i++)
        assert_string_equal(one->notes[i], other->notes[i]);
}

static void same_model(const struct model *one, const struct model *other)
{
    same_head(one, other);
    same_rows(one, other);
    SAME(one, other, threads);
    SAME(one, other, scopes);
    assert_memory_equal(one->own, other->own, one->n_scopes * one->n_metrics * sizeof *one->own);
    same_variables(one, other);
    SAME(one, other, builds);
    SAME(one, other, cpu_counts);
    SAME(one, other, home_counts);
    SAME(one, other, touches);
    SAME(one, other, meetings);
    SAME(one, other, field_counts);
    SAME(one, other, nest_counts);
    SAME(one, other, drops);
    SAME(one, other, pages);
}

/* What frames want of a file is what all of it holds. */
static void same_part(const struct model *one, const struct model *other)
{
    same_texts(&one->strings, &other->strings);
    same_variables(one, other);
    SAME(one, other, field_counts);
    SAME(one, other, threads);
    assert_int_equal(one->n_scopes, other->n_scopes);
    assert_null(other->own);
}

static void test_round_trip(void **context)
{
    (void)context;
    for (uint64_t run = 1; run <= RUNS; run++) {
        struct model model, read, part;
        struct error err;
        struct buf bytes = {0};
        state = run * UINT64_C(0x9e3779b97f4a7c15);
        assert_int_equal(model_init(&model, &err) | model_init(&read, &err) | model_init(&part, &err), 0);
        make_head(&model);
        make_runs(&model);
        make_tree(&model);
        make_variables(&model);
        make_machines(&model);
        make_counts(&model);
        make_tables(&model);
        assert_int_equal(locus_db_write(&model, &bytes, &err), 0);
        if (locus_db_read(bytes.data, bytes.len_bytes, "random", DB_ALL, &read, &err) != 0 ||
            locus_db_read(bytes.data, bytes.len_bytes, "random", DB_VARIABLES, &part, &err) != 0)
            fail_msg("%s", err.text);
        same_model(&model, &read);
        same_part(&model, &part);
        model_fini(&model);
        model_fini(&read);
        model_fini(&part);
        buf_fini(&bytes);
    }
}

/* --- damage --- */

/* A database with a row of each kind. */
static const char small[] =
    "{'format': 'locus-database', 'version': 1, 'program': '/x/app', 'command': null, 'plan': 'EADDR', 'skid': null,"
    "'topology': null, 'n_numa_nodes': 2, 'cpu_time_ns': 1000000000, 'start_ns': 7, 'end_ns': 300, 'n_killed': 0,"
    "'has_samples': 1, 'n_threads': 1, 'n_frames': 0, 'unwind_stops': [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,5],"
    "'notes': ['a note'], 'runs': ['a run'], 'strings': ['', 'v', 'main', 'a.c', '/x/app', '<datacentric>', 'int', "
    "'.f'],"
    "'metrics': [{'name': 'EADDR (usec)', 'description': null, 'per_sample': 1000, 'hidden': 0, 'period': 1000}],"
    "'processes': [{'exe': 'app', 'host_id': 'h', 'rank': 0, 'pid': 100, 'generation': 0, 'n_threads': 1}],"
    "'threads': [[0, 0]],"
    "'events': [{'metric': 'EADDR (usec)', 'name': 'EADDR', 'scale': 1, 'taken': 200, 'overflows': 200,"
    "'fates': {'named': 190, 'not-delivered': 10}}],"
    "'scopes': [[0,1,0,0,2,3,4,3,'0x10',9], [1,5,0,0,0,3,4,5,'0x20'], [1,6,0,0,0,0,0,0,'0x0'],"
    "[0,1,5,16,5,0,0,0,'0x0'], [4,1,13,4,1,3,4,1,'0x40'], [5,5,0,0,0,3,4,5,'0x20']],"
    "'values': [[2, 0, 3000], [6, 0, 3000]],"
    "'variables': [{'name': 1, 'class': 2, 'function': 0, 'file': 3, 'line': 1, 'module': 4, 'size_bytes': 300,"
    "'n_blocks': 1, 'size_freed_bytes': 0, 'n_blocks_freed': 0, 'max_block_bytes': 300, 'n_inexact': 0,"
    "'scopes': [5], 'parts': [[1,3,2,300,0.5,6,4]], 'part_lines': [[0,2,3,5,90,3,4,6]],"
    "'type': 6, 'type_source': 0, 'element_bytes': 4, 'fields': [[0,1,7,6,0,0,4,190]],"
    "'samples': [190], 'places': [100, 90], 'causes': [[0,1,0,2,3,4,0,0,2]], 'walks': [[0,2,64,190,1.5]]}],"
    "'machines': [{'host_id': 'h', 'cpus': [[0,0,0,0], [1,1,null,1]], 'distances': [10,21,21,10]}],"
    "'cpu_counts': [[0,0,0,1,190]], 'touches': [[0,0,6,2,5,100,0,299]], 'meetings': [[0,0,6,3,1,9,64,8,1,2,3]],"
    "'reaches': [[0,0,100,90,[2,64,128,5,4,3,2,[1,100,2,90],[64,190]],[],[8,190]]], 'home_counts': [[0,0,0,1,1,190]],"
    "'field_counts': [[0,6,0,190]]}";

static void read_small(struct buf *bytes)
{
    struct model model;
    struct error err;
    struct buf text = {0};
    for (const char *c = small; *c; c++)
        buf_append(&text, *c == '\'' ? "\"" : c, 1);
    assert_int_equal(model_init(&model, &err), 0);
    if (json_database_read(text.data, text.len_bytes, "small", &model, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(locus_db_write(&model, bytes, &err), 0);
    buf_fini(&text);
    model_fini(&model);
}

/* What is read can be written, and reads as the same; anything else is one error of this file, at a place, with a
 * reason. */
static void try_damaged(const char *bytes, size_t len_bytes)
{
    struct model model, again;
    struct error err = {0}, other = {0};
    struct model variables;
    struct buf out = {0}, out_again = {0};
    assert_int_equal(model_init(&model, &err), 0);
    assert_int_equal(model_init(&variables, &err), 0);
    int code = locus_db_read(bytes, len_bytes, "small.db", DB_ALL, &model, &err);
    int code_of_variables = locus_db_read(bytes, len_bytes, "small.db", DB_VARIABLES, &variables, &other);
    model_fini(&variables);
    if (code_of_variables != 0 && (code_of_variables == ERR_MEMORY || strstr(other.text, "memory") || code == 0))
        fail_msg("variables: %s", other.text);
    if (code != 0) {
        bool is_plain = strncmp(err.text, "small.db ", 9) == 0; /* another kind or version of file */
        unsigned place;
        if ((code != ERR_FORMAT && code != ERR_UNSUPPORTED) || strstr(err.text, "memory") || strchr(err.text, '\n') ||
            (!is_plain && (sscanf(err.text, "small.db: offset %u: ", &place) != 1 || place > len_bytes)))
            fail_msg("%s", err.text);
    } else {
        assert_int_equal(locus_db_write(&model, &out, &err), 0);
        assert_int_equal(model_init(&again, &err), 0);
        assert_int_equal(locus_db_read(out.data, out.len_bytes, "again", DB_ALL, &again, &err), 0);
        assert_int_equal(locus_db_write(&again, &out_again, &err), 0);
        assert_int_equal(out.len_bytes, out_again.len_bytes);
        assert_memory_equal(out.data, out_again.data, out.len_bytes);
        model_fini(&again);
    }
    buf_fini(&out);
    buf_fini(&out_again);
    model_fini(&model);
}

static void test_damaged(void **context)
{
    (void)context;
    struct buf bytes = {0};
    read_small(&bytes);
    for (size_t at = 0; at < bytes.len_bytes; at++) {
        const unsigned char was = (unsigned char)bytes.data[at];
        const unsigned char others[] = {0, 1, (unsigned char)(was + 1), (unsigned char)(was - 1), 127, 128, 255};
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.data[at] = (char)(was ^ 1u << bit);
            try_damaged(bytes.data, bytes.len_bytes);
        }
        for (size_t i = 0; i < sizeof others; i++) {
            bytes.data[at] = (char)others[i];
            try_damaged(bytes.data, bytes.len_bytes);
        }
        bytes.data[at] = (char)was;
        try_damaged(bytes.data, at);
    }
    try_damaged(bytes.data, bytes.len_bytes);
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
