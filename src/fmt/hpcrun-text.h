/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles as text and as JSON, for people and for tests. Ordinary code. */
#ifndef LOCUS_FMT_HPCRUN_TEXT_H
#define LOCUS_FMT_HPCRUN_TEXT_H

#include "base/vec.h"
#include "fmt/hpcrun.h"
#include "fmt/json-take.h"

/* Appends the profile in the line shapes of HPCToolkit's own dump; what that leaves out follows in lines of the same
 * kind, when it is not zero. Sets out->failed when out of memory. */
void hpcrun_put_text(const struct hpcrun_profile *profile, struct buf *out);

/* Appends the profile as JSON from which the same file can be made again. */
void hpcrun_put_json(const struct hpcrun_profile *profile, struct buf *out);

/* Makes a profile of such JSON; *profile must be empty and is left empty on failure. Returns take->code. */
int hpcrun_take_json(struct json_take *take, const json_t *root, struct hpcrun_profile *profile);

#endif
