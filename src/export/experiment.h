/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment.xml: metrics, names and the tree, in HPCToolkit's experiment format 2.2. Ordinary code. */
#ifndef LOCUS_EXPORT_EXPERIMENT_H
#define LOCUS_EXPORT_EXPERIMENT_H

#include "export/columns.h"

/* Appends the document to out; title: the database's name. Scope i has the id i + 1, which is also its row in the
 * metric files.  err: ERR_MEMORY */
int experiment_write(const struct model *model, const struct columns *columns, const char *title, struct buf *out,
                     struct error *err);

#endif
