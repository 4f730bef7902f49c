/* SPDX-License-Identifier: BSD-3-Clause */
/* What the side file's reader and writer share with each other and with the table of file kinds: the format mark, the
 * names of the kinds of variables (enum var_kind of arena/arena.h), and reading from a JSON tree. */
#ifndef LOCUS_FMT_OBJECTS_NAMES_H
#define LOCUS_FMT_OBJECTS_NAMES_H

#include <stdint.h>

#include "fmt/json-take.h"
#include "fmt/objects.h"

#define OBJECTS_FORMAT "locus-objects"
/* 1: without samples, latencies, and the times and hardware counters of events; 2: without marks and thresholds; 3:
 * without accesses */
#define OBJECTS_VERSION 6

/* Name of a kind in files, e.g. "heap"; NULL when there is none. */
const char *objects_kind_name(uint32_t kind);

/* The kind of a name; -1 when there is none. */
int objects_kind_of(const char *name);

/* Reads the side file from its JSON; *file must be empty and is left empty on failure. Returns take->code. */
int objects_take_json(struct json_take *take, const json_t *root, struct objects_file *file);

#endif
