/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process and thread a profile is of, and their order. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PROCESSES_H
#define LOCUS_ANALYSIS_PROCESSES_H

#include "analysis/model.h"
#include "fmt/hpcrun.h"
#include "measurement/names.h"

/* The identity of a profile: by its file name, else by its header. */
void processes_identify(const char *path, const struct hpcrun_profile *profile, struct names_file *id);

#define PROCESS_KEY_BYTES 400

/* What makes a process one: key [PROCESS_KEY_BYTES]. */
void processes_key(const struct process *process, char *key);

/* Index of the process in a measurement directory, added when new, with keys as its index; -1 when out of memory. */
int64_t processes_find(struct model *model, struct strtab *keys, const struct names_file *id, uint32_t directory);

/* Puts processes and threads in order and numbers the threads of each process from 0.  err: ERR_MEMORY */
int processes_order(struct model *model, struct error *err);

/* Sets the model's program, which the report is named after: of the process with the most samples. sums [n_processes]
 * of values of the metric of reports. */
void processes_choose_program(struct model *model, const double *sums);

#endif
