/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of the source files that the tree of a database names, in its directory src. Ordinary code. */
#ifndef LOCUS_EXPORT_SOURCES_H
#define LOCUS_EXPORT_SOURCES_H

#include "analysis/model.h"
#include "base/workers.h"
#include "structure/source-find.h"

#define SOURCES_DIRECTORY "src"

struct source_copies {
    bool *is_copied; /* [n_strings] by string id of the file's name; NULL: none */
    size_t n_copied, n_missing;
    struct buf missing; /* names of the first files that are missing */
    uint64_t n_bytes;
};

/* Copies what find finds of the files of scopes into directory/src, each at its own path below that. older: a database
 * whose copies stand for files that are not found, NULL = none. Files that cannot be read, or are larger than sources
 * are, count as missing.  err: ERR_IO, ERR_MEMORY, ERR_USAGE (stopped) */
int sources_copy(const struct model *model, struct source_find *find, const char *older, const char *directory,
                 const struct job *job, struct source_copies *copies, struct error *err);
void sources_fini(struct source_copies *copies);

/* Appends the name that a database gives a file: that of its copy, relative to the database and with prefix before it,
 * or the file's own. copies: NULL = there are none. */
void sources_name(const struct source_copies *copies, const struct model *model, uint32_t file, const char *prefix,
                  struct buf *out);

#endif
