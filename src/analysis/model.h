/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the model, the result of an analysis that loaders fill and reports read. What it consists of, and how it
 * is kept, is in fmt/locus-db.h, since a locus.db holds it. Ordinary code. */
#ifndef LOCUS_ANALYSIS_MODEL_H
#define LOCUS_ANALYSIS_MODEL_H

#include "fmt/locus-db.h"

/* Of the time that the threads with samples could run, percent in which they had no CPU: other programs had it, or more
 * threads than CPUs wanted one. 0: not known. */
#define BUSY_PERCENT 10 /* of model_delay_percent: from there on waits for threads say little of the program */
double model_delay_percent(const struct model *model);

/* What all reports call a variable that is not shown by its parts: a stack frame of one local variable is called as
 * that is in the table of variables. */
const char *model_variable_name(const struct model *model, const struct variable *variable);

/* Number of processes: one that called exec counts once, although processes has an entry for each of its programs. */
size_t model_count_processes(const struct model *model);

/* Whether processes are ranks of an MPI program: some has another rank than 0. */
bool model_has_ranks(const struct model *model);

/* Number of threads: the first one of a process that called exec counts once; the others are new ones. */
size_t model_count_threads(const struct model *model);

/* Whether a process has so many threads that later ones may have gone on in the profiles of others
 * (ARENA_THREADS_OWN): then nobody knows their number. */
bool model_has_merged_threads(const struct model *model);

/* The name to show for the module at path: its last part, or, for a program that was started through a link, the name
 * by which it was called, if that was always the same. Valid as long as path and the model. */
const char *model_module_name(const struct model *model, const char *path);

/* Index of the metric called name, -1 when there is none. */
int64_t model_metric(const struct model *model, const char *name);

/* The metric that a report is about: the one called name; for NULL the latency of accesses if hardware measured it,
 * else that of the first event with data addresses. -1 when there is none. */
int64_t model_choose_metric(const struct model *model, const char *name);

/* The first metric, in the order of the events, that has data-centric values (apart from sizes and bytes allocated or
 * freed), else the first that is not a size, else the first. -1 when there is none. */
int64_t model_first_metric(const struct model *model);

/* Computes inclusive from own (zeros when missing).  err: ERR_MEMORY */
int model_sum(struct model *model, struct error *err);
/* Computes inclusive [n_scopes][n_metrics] from own alone. */
void model_sum_inclusive(const struct model *model, const double *own, double *inclusive);

/* Value of a metric below scope, summed over threads; and the same as a number of samples (of mean value if their
 * values differ). */
double model_value(const struct model *model, uint32_t scope, size_t metric);
double model_samples(const struct model *model, size_t metric, double value);

/* Whether a scope has its values by itself, and not from what lies in it: an instruction, or a statement without
 * instructions. Scopes are in their order. */
bool model_has_own(const struct model *model, uint32_t scope);

/* Whether instructions are kept below their statements. */
bool model_has_instructions(const struct model *model);

/* Notes that a module was measured as this build, unless that is noted; false when out of memory. */
bool model_add_build(struct model *model, uint32_t module, uint64_t build);

/* Whether a scope is a part of the function or loop that it lies in: a statement, its instructions, a call site, loop,
 * or place in another file. What it costs without calls is also exclusive cost of the scope above it. */
bool model_is_lexical(const struct scope *scope);

/* Whether it is a function, or one that was inlined, also one that stands for data. */
bool model_is_procedure(const struct scope *scope);

/* Whether a variable stands for blocks of the heap or mappings, which have allocation paths; of NULL: no. */
bool model_is_block(const struct variable *variable);

/* How the titles of regions begin, and those of them that are phases of the owner (PHASE_PREFIX: arena/arena.h). */
#define REGION_TITLE "<region "
#define PHASE_TITLE REGION_TITLE PHASE_PREFIX

/* Whether a scope is a phase. */
bool model_is_phase(const struct model *model, const struct scope *scope);

/* String id of the file of a scope: of a statement, an instruction or a call site that of what it lies in. */
uint32_t model_file_of(const struct model *model, uint32_t scope);

/* First scope after the subtree of a scope. */
uint32_t model_subtree_end(const struct model *model, uint32_t scope);

/* The data-centric root, 0 when there is none. */
uint32_t model_data_root(const struct model *model);

/* "declaration", "template", "new", "sizeof", "accesses"; NULL for TYPE_FROM_NOTHING. */
const char *model_type_source_name(enum type_source source);

/* Adds samples to the variable's field with this event, part, name, offset and flags, which is added when new. index,
 * when not NULL, receives the field's.  err: false when out of memory */
bool model_add_field(struct variable *variable, const struct variable_field *field, uint32_t *index);

/* Puts the counts of fields in order, and adds up those of one field in one scope. */
void model_order_field_counts(struct model *model);

/* Puts the counts of nests in order, and adds up those that are the same but for their samples. */
void model_order_nest_counts(struct model *model);

#endif
