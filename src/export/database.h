/* SPDX-License-Identifier: BSD-3-Clause */
/* A database directory: the version 4 form, and locus.json for our own tools. The XML form for older tools has a
 * directory of its own, because readers take it wherever they see an experiment.xml. Written under a temporary name and
 * put in place when complete. Ordinary code. */
#ifndef LOCUS_EXPORT_DATABASE_H
#define LOCUS_EXPORT_DATABASE_H

#include "analysis/load/values.h"
#include "export/sources.h"
#include "export/summary.h"

#define DATABASE_JSON "locus.json"

/* The directory that path lies in; malloc'ed, NULL when out of memory. */
char *database_parent(const char *path);

/* Whether a database can be written at path, before the work is done for it.  err: ERR_IO */
int database_check(const char *path, struct error *err);

struct database_job {
    const struct job *job;
    const struct value_source *source;
    const char *title;
    const char *const *search, *const *replace; /* where source files are, as in struct load_options */
    bool without_sources;     /* none are copied into it */
    bool extends;                 /* copies of the older database at that place stay, where sources are not found */
    enum summary_kind xml_metrics;
    bool without_metric_files;    /* of the XML form */
    struct source_copies *copies; /* receives which were copied; the caller frees it (sources_fini) */
};

/* Writes the database; an older database of ours at path is replaced, anything else there is refused. The values come
 * from the source; the model's sums over all threads are filled in.
 * err: ERR_IO, ERR_RANGE, ERR_MEMORY, ERR_USAGE (stopped) */
int database_write(struct model *model, const char *path, const struct database_job *how, struct error *err);

/* For the members of a team but the leader: does its part of the leader's database_write, with what load_measurements
 * has left of the model.  err: as database_write */
int database_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err);

/* Writes the XML form into a directory of its own, under the same rules, from a model whose sums are filled in.
 * err: ERR_RANGE (a process with too many threads), ERR_IO, ERR_MEMORY, ERR_USAGE */
int database_write_xml(struct model *model, const char *path, const struct database_job *how, struct error *err);

/* Reads the locus.json of a database into *model, which model_init made; threads come without their values.
 * err: ERR_NOT_FOUND (no database there), ERR_IO, ERR_FORMAT, ERR_MEMORY */
int database_read(const char *path, struct model *model, struct error *err);

/* locus-json-*.c: the text of locus.json, and back; name is used in messages. */
int locus_json_write(const struct model *model, struct buf *out, struct error *err);
int locus_json_read(const char *bytes, size_t len_bytes, const char *name, struct model *model, struct error *err);

#endif
