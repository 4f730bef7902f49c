/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.db and cct.db where they lie in memory: single lists of values are found and checked when somebody asks for
 * them, and nothing is copied. Ordinary code. */
#ifndef LOCUS_FMT_V4_MAP_H
#define LOCUS_FMT_V4_MAP_H

#include "fmt/v4.h"

/* A file. in.code and in.err are those of the last call. */
struct v4_map {
    struct v4_in in;
    struct v4_table lists; /* one for each profile (profile.db), or for each context id (cct.db) */
    unsigned major_bytes, minor_bytes;
};

/* The values of a profile, by context and then metric, or of a context, by metric and then profile. The first of the
 * two is the major id, which an index holds with the place of its first value. */
struct v4_list {
    uint64_t n_values, values, n_indices, indices;
};

/* A stretch of values with the same major id. */
struct v4_run {
    uint32_t major;
    uint64_t from, to; /* values */
};

/* Checks the head and the table of lists of a file in memory, which stays the caller's, like name. kind: V4_PROFILE or
 * V4_CCT.  err: ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (another version) */
int v4_map_open(struct v4_map *map, enum v4_kind kind, const void *bytes, size_t len_bytes, const char *name,
                struct error *err);

/* Identifiers and flags of profile i, without its values; the caller frees profile->ids.
 * err: ERR_FORMAT, ERR_MEMORY */
int v4_map_profile(struct v4_map *map, size_t i, struct v4_profile *profile, struct error *err);

/* List i < lists.n, checked to be in the file.  err: ERR_FORMAT */
int v4_map_list(struct v4_map *map, size_t i, struct v4_list *list, struct error *err);

/* Stretch k < n_indices of a list, checked to be in it.  err: ERR_FORMAT */
int v4_map_run(struct v4_map *map, const struct v4_list *list, uint64_t k, struct v4_run *run, struct error *err);

/* The stretch of a major id, by bisection; empty when there is none.  err: ERR_FORMAT */
int v4_map_find(struct v4_map *map, const struct v4_list *list, uint32_t major, struct v4_run *run, struct error *err);

/* Value i < n_values of a list that v4_map_list has checked, and its minor id. */
uint32_t v4_map_minor(const struct v4_map *map, const struct v4_list *list, uint64_t i);
double v4_map_value(const struct v4_map *map, const struct v4_list *list, uint64_t i);

#endif
