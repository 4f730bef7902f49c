/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas made by hand, record by record, and the files that the collector makes of them. */
#ifndef LOCUS_TESTS_ARENA_MAKER_H
#define LOCUS_TESTS_ARENA_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "arena/arena.h"
#include "collect/collect.h"
#include "fmt/hpcrun.h"
#include "fmt/objects.h"

#define CHUNKS 1024
#define RUN 8 /* chunks; a record of a thread has four */
#define APP_BIAS 0x555500000000u
#define LIB_BIAS 0x7fff00000000u

/* The events of make_arena, in order. */
enum { EADDR, FAULTS, CPUTIME };

struct maker {
    char *base;
    size_t size_bytes;
    struct arena_header *header;
    struct arena_chunk *table;
    uint32_t app, lib; /* modules */
    char dir[64];
    struct names_file name;
    struct collect_result result;
};

/* main -> work -> leaf, sampled; main -> make, an allocation path. */
struct paths {
    struct arena_thread *thread;
    uint32_t ref, main, work, leaf, alloc;
};

/* Space for one record in the last chunk of the thread and kind, published at once. */
void *make_record(struct maker *maker, uint32_t thread, enum arena_kind kind, size_t len_bytes, uint32_t *ref);

uint32_t make_string(struct maker *maker, const char *text);
uint32_t make_module(struct maker *maker, uint32_t id, const char *path, uint64_t bias);
uint32_t make_node(struct maker *maker, uint32_t thread, enum arena_kind kind, uint32_t parent, uint64_t ip,
                   uint32_t module);
struct arena_hit *make_hit(struct maker *maker, uint32_t thread, uint32_t node, unsigned event, enum hit_class class,
                           uint64_t var, uint64_t count, uint64_t weight);
struct arena_thread *make_thread(struct maker *maker, uint32_t id, uint32_t *ref);
void make_place(struct maker *maker, uint32_t thread, uint64_t var, unsigned event, unsigned cpu, uint64_t count);

/* A sample of the log, on CPU 3 with a latency of 7 cycles. */
void make_trace(struct maker *maker, struct arena_thread *thread, uint32_t thread_ref, const struct arena_hit *hit,
                uint64_t t_ns, uint64_t offset);

void make_event(struct maker *maker, const char *metric, const char *name, uint32_t source, uint32_t flags,
                double scale);

/* An arena with three events, three modules and an own directory for the files; free_arena removes both. */
void make_arena(struct maker *maker);
void remove_directory(const char *directory);
void free_arena(struct maker *maker);

/* The paths of a new thread with this id. */
struct paths make_paths(struct maker *maker, uint32_t id);

/* Counts n samples of the event as taken and named. */
void take(struct paths *p, unsigned event, uint64_t n);

/* Symbols are known of the module with id 1 only: "grid" at 0x9000 + 0x100 * index, thread-local "counter". */
struct collect_context context_of(const struct maker *maker);
void collect(struct maker *maker, const struct collect_context *context);

/* What was written for a thread; read_ fail the test when it is not readable. */
char *path_of_file(const struct maker *maker, unsigned thread, const char *suffix);
struct hpcrun_profile read_profile(const struct maker *maker, unsigned thread);
struct objects_file read_objects(const struct maker *maker, unsigned thread);

/* Index of a metric, -1 when there is none. */
int find_metric(const struct hpcrun_profile *profile, const char *name);

/* Index of the child of a node (by index) with the module's path and address, and of the child that is a placeholder;
 * fails when there is none. */
size_t child(const struct hpcrun_profile *profile, size_t parent, const char *module, uint64_t ip);
size_t placeholder(const struct hpcrun_profile *profile, size_t parent, unsigned index);

/* A node's value as readers get it, times the period. */
double value(const struct hpcrun_profile *profile, size_t node, const char *metric);

/* Sums of a metric over the data-centric tree and over everything else; parents precede their children. */
void totals(const struct hpcrun_profile *profile, const char *metric, double *data, double *code);

/* The variable of a kind and, unless it is NULL, a name; fails when there is none. */
const struct objects_variable *variable_of(const struct objects_file *file, unsigned kind, const char *name);

#endif
