/* SPDX-License-Identifier: BSD-3-Clause */
/* Databases that tests write as text: what `hpcquery export json` prints, edited or made up. Ordinary code. */
#ifndef LOCUS_TESTS_JSON_DATABASE_H
#define LOCUS_TESTS_JSON_DATABASE_H

#include "analysis/model.h"

/* Reads the text into *model, which model_init made; name is for messages. Every index is checked.
 * err: ERR_FORMAT (what and where), ERR_UNSUPPORTED, ERR_MEMORY */
int json_database_read(const char *text, size_t len_bytes, const char *name, struct model *model, struct error *err);

#endif
