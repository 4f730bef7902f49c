/* SPDX-License-Identifier: BSD-3-Clause */
/* The version 4 form of a database: meta.db, profile.db, cct.db and metrics/default.yaml. The data-centric tree is
 * below an entry point of its own. Ordinary code. */
#ifndef LOCUS_EXPORT_V4_EXPORT_H
#define LOCUS_EXPORT_V4_EXPORT_H

#include "export/columns.h"
#include "fmt/v4.h"

/* Metric ids of column pair k: V4_ID_FUNCTION + 2 k and V4_ID_EXECUTION + 2 k. */
enum { V4_ID_FUNCTION = 0, V4_ID_EXECUTION = 1, V4_IDS_PER_METRIC = 2 };

/* Names that identify a profile, as v4_meta.kinds numbers them. */
enum { V4_ID_NODE = 1, V4_ID_RANK = 2, V4_ID_THREAD = 3 };

/* Writes the files into directory.
 * err: ERR_IO, ERR_RANGE (more metrics or contexts than the format holds), ERR_MEMORY */
int v4_export(const struct model *model, const struct columns *columns, const char *directory, const char *title,
              struct error *err);

/* Its parts. Contexts have the numbers of scopes, the entry point of code the number after the last one; 0 is the
 * whole. texts owns what *file borrows; v4_fini and strtab_fini free all.  err: ERR_RANGE, ERR_MEMORY */
int v4_export_meta(const struct model *model, const struct columns *columns, const char *title, struct strtab *texts,
                   struct v4_file *file, struct error *err);
/* profiles: the summary, then one for each thread; blocks: the same values without the summary's, by context. */
int v4_export_values(const struct model *model, const struct columns *columns, struct v4_file *profiles,
                     struct v4_file *blocks, struct error *err);
/* Appends metrics/default.yaml: how viewers present the metrics. */
void v4_export_yaml(const struct v4_meta *meta, struct buf *out);

/* A column pair's name and scale in this form: readers take "CPUTIME (sec)" for time. */
const char *v4_export_name(const struct column_pair *pair);
double v4_export_scale(const struct column_pair *pair);

#endif
