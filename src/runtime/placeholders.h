/* SPDX-License-Identifier: BSD-3-Clause */
/* The placeholder functions: empty, but named, so that the original tools recognise the data-centric nodes. */
#ifndef LOCUS_RUNTIME_PLACEHOLDERS_H
#define LOCUS_RUNTIME_PLACEHOLDERS_H

#include <stdint.h>

#include "arena/arena.h"

/* Fills addresses[PLACEHOLDER_MAX] with the functions' run-time addresses.  ctx: ordinary */
void placeholders_fill(uint64_t addresses[PLACEHOLDER_MAX]);

#endif
