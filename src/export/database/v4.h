/* SPDX-License-Identifier: BSD-3-Clause */
/* The version 4 form of a database: meta.db, profile.db, cct.db and metrics/default.yaml. The data-centric tree is
 * below an entry point of its own. Ordinary code. */
#ifndef LOCUS_EXPORT_V4_EXPORT_H
#define LOCUS_EXPORT_V4_EXPORT_H

#include "analysis/load/values.h"
#include "export/columns.h"
#include "export/sources.h"
#include "fmt/v4.h"

/* Metric ids of column pair k: V4_ID_FUNCTION + 2 k and V4_ID_EXECUTION + 2 k. */
enum { V4_ID_FUNCTION = 0, V4_ID_EXECUTION = 1, V4_IDS_PER_METRIC = 2 };

/* Names that identify a profile, as v4_meta.kinds numbers them. */
enum { V4_ID_NODE = 1, V4_ID_RANK = 2, V4_ID_THREAD = 3 };

/* Statistics over all profiles; the id of statistic s of instance id i is i + s * (number of instance ids). COUNT is
 * that of profiles with a value, SQUARES the sum of the squares. */
enum v4_statistic { V4_SUM = 0, V4_MIN, V4_MAX, V4_COUNT, V4_SQUARES, V4_STATISTICS };

/* Writes the files into directory, all values from source, and fills in the sums over all threads: the model's own and
 * inclusive values, and what a sample is worth. copies: of source files, made already; NULL = none.
 * err: ERR_IO, ERR_RANGE (more metrics or contexts than the format holds), ERR_MEMORY, ERR_USAGE (stopped) */
int v4_export(struct model *model, const struct value_source *source, const struct job *job, const char *directory,
              const char *title, const struct source_copies *copies, struct error *err);

/* For the members of a team but the leader: does its part of the leader's v4_export, with what load_measurements has
 * left of the model.  err: as v4_export */
int v4_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err);

/* When the leader fails before v4_export: tells the others, who wait in v4_join. Returns code. */
int v4_give_up(const struct job *job, int code, struct error *err);

/* Its parts. Contexts have the numbers of scopes, the entry point of code the number after the last one; 0 is the
 * whole. texts owns what *file borrows; v4_fini and strtab_fini free all.  err: ERR_RANGE, ERR_MEMORY */
int v4_export_meta(const struct model *model, const struct columns *columns, const char *title,
                   const struct source_copies *copies, struct strtab *texts, struct v4_file *file, struct error *err);
/* trace.db, where some thread has a trace. */
int v4_export_traces(const struct model *model, const struct value_source *source, const struct job *job,
                     const char *directory, struct error *err);
/* Appends metrics/default.yaml: how viewers present the metrics. */
void v4_export_yaml(const struct v4_meta *meta, struct buf *out);

/* A column pair's name and scale in this form: readers take "CPUTIME (sec)" for time. */
const char *v4_export_name(const struct column_pair *pair);
double v4_export_scale(const struct column_pair *pair);

#endif
