/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment.xml: metrics, names and the tree, in HPCToolkit's experiment format 2.2. Ordinary code. */
#ifndef LOCUS_EXPORT_EXPERIMENT_H
#define LOCUS_EXPORT_EXPERIMENT_H

#include "export/sources.h"
#include "export/summary.h"

/* Appends the document to out; title: the database's name; copies: of source files, NULL = none.
 * Scope i has the id i + 1, which is also its row in the metric files.  err: ERR_MEMORY */
int experiment_write(const struct model *model, const struct columns *columns, const struct summary *summary,
                     const char *title, const struct source_copies *copies, struct buf *out, struct error *err);

#endif
