/* SPDX-License-Identifier: BSD-3-Clause */
/* What the linker says of traced symbols: which files refer to the allocation functions, and which defines malloc. */
#ifndef LOCUS_HPCLINK_REFERENCES_H
#define LOCUS_HPCLINK_REFERENCES_H

#include "base/vec.h"

struct references {
    unsigned n_callers;      /* references from other files than the C library's own */
    char definer[1024];      /* of malloc; empty when the linker did not say */
};

/* Whether name is an allocation function whose callers count. */
bool references_counts(const char *name);

/* Splits the linker's output: the lines of --trace-symbol fill *references, all others are appended to rest. */
void references_read(const char *output, struct references *references, struct buf *rest);

#endif
