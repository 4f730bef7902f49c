/* SPDX-License-Identifier: BSD-3-Clause */
/* The values and traces of the threads of a database of ours, so that it can be extended without its measurements.
 * Ordinary code. */
#ifndef LOCUS_EXPORT_DATABASE_VALUES_H
#define LOCUS_EXPORT_DATABASE_VALUES_H

#include "analysis/load/values.h"

/* Makes a source over the files in directory, from whose locus.json the model was read; profiles are counted as there.
 * err: ERR_IO, ERR_FORMAT (damaged, or of another database), ERR_UNSUPPORTED (made before databases could be extended),
 * ERR_MEMORY */
int database_values_open(const char *directory, const struct model *model, struct value_source *source,
                         struct error *err);

#endif
