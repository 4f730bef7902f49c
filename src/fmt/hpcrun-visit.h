/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking through a profile of any size without holding it: its tables first, then node by node with the values that
 * are not zero. Ordinary code. */
#ifndef LOCUS_FMT_HPCRUN_VISIT_H
#define LOCUS_FMT_HPCRUN_VISIT_H

#include "fmt/hpcrun.h"

struct hpcrun_value {
    uint32_t metric; /* index */
    uint64_t word;   /* as stored: integer, or double bits by the metric's value format; not 0 */
};

struct hpcrun_visitor {
    void *context;
    /* An epoch begins, of n_nodes nodes; of its own nodes and values head has none that count. Borrowed. */
    int (*epoch)(void *context, const struct hpcrun_profile *head, size_t n_nodes, struct error *err);
    /* The next node. values [n_values] by metric; borrowed. */
    int (*node)(void *context, const struct hpcrun_node *node, const struct hpcrun_value *values, size_t n_values,
                struct error *err);
    /* The epoch is over. */
    int (*end)(void *context, const struct hpcrun_profile *head, struct error *err);
};

/* Visits the profile at path; the visitor's failures end it. Profiles of one epoch in a dense version from 02.10 on
 * take a few hundred kilobytes; others are read as a whole.  err: as hpcrun_read, and the visitor's */
int hpcrun_visit(const char *path, const struct hpcrun_visitor *visitor, struct error *err);

#endif
