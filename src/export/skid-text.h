/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the skid self-test in one line. Ordinary code. */
#ifndef LOCUS_EXPORT_SKID_TEXT_H
#define LOCUS_EXPORT_SKID_TEXT_H

#include "base/vec.h"

/* Appends what the JSON text of a profile's skid figures says; text of another form is appended as it is. */
void skid_text(struct buf *out, const char *json);

/* Whether they say that the rule holds; false for text of another form. */
bool skid_holds(const char *json);

#endif
