/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings that were open together, and how each was looked at, in a JSON file (doc/FORMAT.md). What can be computed
 * again is not in it. Ordinary code. */
#ifndef LOCUS_STREAMS_RECORDINGS_H
#define LOCUS_STREAMS_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "streams/topology.h"

/* A stream; its number is its index. */
struct recording {
    char *file;
    bool has_couplebreak;
    enum topology_view view;
    char *topology; /* path of the XML, NULL: none */
};

/* All zero is empty. */
struct recordings {
    struct recording *streams; /* [n_streams] */
    size_t n_streams, capacity;
};

/* Appends a stream; the texts are copied, topology may be NULL.  err: ERR_MEMORY */
int recordings_add(struct recordings *recordings, const char *file, bool has_couplebreak, enum topology_view view,
                   const char *topology, struct error *err);

/* Writes it to path; a session that is there is replaced in one step, anything else is not. Paths become absolute.
 * err: ERR_IO (a file of the session is missing, too), ERR_MEMORY */
int recordings_write(const char *path, const struct recordings *recordings, struct error *err);

/* Reads it; *recordings must be empty and is left empty on failure. A topology whose file is gone, or whose stream is
 * not there, is left out; what is missing is off.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int recordings_read(const char *path, struct recordings *recordings, struct error *err);
void recordings_fini(struct recordings *recordings);

#endif
