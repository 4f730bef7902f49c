/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements that perf took alone: a perf.data file becomes a measurement directory of ours, as if hpcrun had written
 * it, so that everything behind works on it unchanged. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PERF_IMPORT_H
#define LOCUS_ANALYSIS_PERF_IMPORT_H

#include "analysis/model.h"

/* True when the file at path begins as a perf.data file does; false also when it cannot be read. */
bool perf_import_is_file(const char *path);

/* Writes the profiles and side files of all processes in the file at path into directory, which must exist. What a
 * reader of the report should know goes into the model's notes.
 * err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED, ERR_NOT_FOUND (no samples), ERR_MEMORY */
int perf_import(const char *path, const char *directory, struct model *model, struct error *err);

#endif
