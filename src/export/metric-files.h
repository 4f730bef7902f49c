/* SPDX-License-Identifier: BSD-3-Clause */
/* The .metric-db files beside experiment.xml: one per thread of a rectangle of processes and threads.
 * Ordinary code. */
#ifndef LOCUS_EXPORT_METRIC_FILES_H
#define LOCUS_EXPORT_METRIC_FILES_H

#include "analysis/load/values.h"
#include "base/workers.h"
#include "export/summary.h"

#define METRIC_FILES_THREADS_MAX 500 /* from here on readers take threads for GPU streams */

/* Writes "1.<exe>-RANK-THREAD-HOST-PID-G.metric-db" files into directory. Ranks are dense numbers of the processes, in
 * the model's order; threads that a process does not have, but another has, get a file of zeros. Every thread is added
 * to *summary. directory: NULL = only that.
 * err: ERR_RANGE (too many threads or values), ERR_IO, ERR_MEMORY, ERR_USAGE (stopped) */
int metric_files_write(const struct model *model, const struct columns *columns, const struct value_source *source,
                       const struct job *job, const char *directory, struct summary *summary, struct error *err);

#endif
