/* SPDX-License-Identifier: BSD-3-Clause */
/* From measurement directories to a model: every profile with its side file, merged and symbolized.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_H
#define LOCUS_ANALYSIS_LOAD_H

#include "analysis/model.h"

struct load_options {
    const char *const *search;  /* directories of sources, NULL-terminated, or NULL */
    const char *const *replace; /* "OLD=NEW" path prefixes, NULL-terminated, or NULL */
    int wait_ms;                /* for a measurement that is still being written */
    /* Told about every profile that is left out and why (context, sentence); may be NULL. */
    void (*message)(void *context, const char *sentence);
    void *context;
};

/* Loads paths [n_paths], directories or single profiles, into *model, which model_init made. Profiles that cannot be
 * read are left out and counted in *n_skipped.
 * err: ERR_NOT_FOUND (no profile at all), ERR_IO, ERR_FORMAT (none of them readable), ERR_MEMORY */
int load_measurements(const char *const *paths, size_t n_paths, const struct load_options *options,
                      struct model *model, size_t *n_skipped, struct error *err);

#endif
