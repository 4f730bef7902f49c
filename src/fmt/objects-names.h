/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of the side file: its format mark and the names of the kinds of variables (enum var_kind of fmt/arena.h). */
#ifndef LOCUS_FMT_OBJECTS_NAMES_H
#define LOCUS_FMT_OBJECTS_NAMES_H

#include <stdint.h>

#define OBJECTS_FORMAT "locus-objects"
#define OBJECTS_VERSION 1

/* Name of a kind in files, e.g. "heap"; NULL when there is none. */
const char *objects_kind_name(uint32_t kind);

/* The kind of a name; -1 when there is none. */
int objects_kind_of(const char *name);

#endif
