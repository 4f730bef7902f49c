/* SPDX-License-Identifier: BSD-3-Clause */
/* What the targets that read measurements and databases share: files out of an input, and what is done with a model. */
#ifndef LOCUS_FUZZ_DATABASE_TRY_H
#define LOCUS_FUZZ_DATABASE_TRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/load/values.h"
#include "base/workers.h"

/* Takes the next part, behind its length (u16, little-endian), off the input; one that is not empty becomes a file of
 * the scratch directory. */
void database_put_part(const char *name, const uint8_t **data, size_t *len_bytes);

/* The three parts of a measurement: profile, side file and log. */
void database_put_measurement(const uint8_t **data, size_t *len_bytes);

/* Tells the model in all forms. */
void database_report(const struct model *model);

/* Whether an input goes all the way: one in eight, because writing takes far longer than reading; without a fuzzer all
 * do. */
bool database_goes_on(const uint8_t *data, size_t len_bytes);

/* Writes the model into the scratch directory and, what is written, reads and reports again. */
void database_write_again(struct model *model, const struct job *job, const struct value_source *values);

#endif
