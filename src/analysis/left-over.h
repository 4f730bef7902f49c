/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements that never reached their directory because the companion was killed on the way, or because the directory
 * did not take them: where they are, in sentences. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LEFT_OVER_H
#define LOCUS_ANALYSIS_LEFT_OVER_H

#include "analysis/model.h"
#include "base/vec.h"

/* Adds a phrase for each place that the measurement directory says has something for it. */
void left_over_list(const char *directory, struct strtab *phrases);

/* Notes how many processes were not measured, as the indexes of the hosts tell, and why one of them was not. Those that
 * the user left out do not count. */
void left_over_note_unmeasured(const char *directory, struct model *model);

/* What to say besides of a directory without profiles: where on this node something for it was found. text becomes
 * empty when there is nothing. */
void left_over_hint(const char *directory, char *text, size_t n_text);

#endif
