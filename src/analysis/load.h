/* SPDX-License-Identifier: BSD-3-Clause */
/* From measurement directories to a model: every profile with its side file, merged and symbolized.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_H
#define LOCUS_ANALYSIS_LOAD_H

#include "analysis/values.h"
#include "base/workers.h"

struct structure_file;

struct load_options {
    const char *const *search;  /* directories of sources, NULL-terminated, or NULL */
    const char *const *replace; /* "OLD=NEW" path prefixes, NULL-terminated, or NULL */
    const struct structure_file *const *structures; /* NULL-terminated, or NULL; in place of modules */
    int wait_ms;                /* for a measurement that is still being written */
    const struct job *job;
    struct value_source *older; /* of the database that the model was read from and that is extended; NULL = none */
    size_t *n_known;            /* receives the number of profiles that it has already; may be NULL */
    /* Told about every profile that is left out and why (context, sentence); may be NULL. */
    void (*message)(void *context, const char *sentence);
    void *context;
};

/* Loads paths [n_paths], directories or single profiles, into *model, which model_init made (or a database was
 * read into; *older goes over to *values then): all but the values, of
 * which *values is the source (values_free). own and inclusive are made by whoever sums them up. Profiles that cannot
 * be read are left out and counted in *n_skipped. The result does not depend on the number of threads.
 * err: ERR_NOT_FOUND (no profile at all), ERR_IO, ERR_FORMAT (none of them readable), ERR_USAGE (stopped),
 * ERR_MEMORY */
int load_measurements(const char *const *paths, size_t n_paths, const struct load_options *options,
                      struct model *model, struct value_source *values, size_t *n_skipped, struct error *err);

#endif
