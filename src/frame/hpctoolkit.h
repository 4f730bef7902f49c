/* SPDX-License-Identifier: BSD-3-Clause */
/* What databases of HPCToolkit have in common, in both of their forms: names of metrics, and the nodes that stand for
 * data. Ordinary code; for the readers of this folder. */
#ifndef LOCUS_FRAME_HPCTOOLKIT_H
#define LOCUS_FRAME_HPCTOOLKIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "frame/frame.h"

/* A node of a database. */
struct hpctoolkit_node {
    const char *name;     /* of a procedure, else NULL */
    uint32_t parent;      /* index, less than that of the node; FRAME_NONE for a root */
    enum frame_kind kind; /* by its type alone, until hpctoolkit_find_kinds */
};

/* Finds among the procedures those that are placeholders or variables. False when out of memory. */
bool hpctoolkit_find_kinds(struct hpctoolkit_node *nodes, size_t n);

/* The name of a metric as Hatchet has it, without a suffix: "time" for "CPUTIME (sec)". len: of metric. */
const char *hpctoolkit_metric_name(const char *metric, size_t *len);

/* "file.c:7", "Loop@file.c:7" for a loop: the name of a node that has none of its own. Replaces what out holds. */
void hpctoolkit_place_name(enum frame_kind kind, const char *file, uint32_t line, struct buf *out);

#endif
