/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading by a team: the digests below, and how the members' trees become one. A digest is what a member sends about
 * the profiles that it has read, except their nodes and values: the tables at the beginning, the nodes that a side file
 * refers to, the totals; or why a profile is left out. Digests follow each other in a buffer, in the order of the
 * profiles, as bytes of the machines that the team runs on. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_TEAM_H
#define LOCUS_ANALYSIS_LOAD_TEAM_H

#include "analysis/load/ingest.h"
#include "base/workers.h"
#include "fmt/objects.h"

/* A node by its id in the profile and in the store. */
struct digest_node {
    uint32_t id, node;
};

struct digest_epoch {
    const char *head; /* [len_head] a profile without nodes: hpcrun_read_memory */
    size_t len_head;
    const char *nodes; /* [n_nodes] of struct digest_node, not aligned */
    size_t n_nodes;
};

struct digest_total {
    const char *metric;
    double value;
};

/* One digest; everything borrowed from the bytes. */
struct profile_digest {
    size_t number;             /* of the profile */
    int code;                  /* 0, else why it is left out */
    const char *problem;       /* sentence */
    const char *trace_problem; /* why there is no trace; "" when nothing is wrong */
    size_t n_epochs, n_totals;
    const char *epochs, *totals; /* for digest_next_epoch and digest_next_total */
    const char *end;
};

/* Appends one epoch to epochs: the nodes of the variables in side, which may be NULL.  err: ERR_MEMORY, ERR_RANGE */
int digest_put_epoch(struct buf *epochs, const struct hpcrun_profile *head, const struct raw_ids *ids,
                     const struct objects_file *side, struct error *err);

/* Appends a digest: the epochs put before, and the totals of the profile; or the problem when there is one.
 * trace_problem: with code 0 when there is none. */
void digest_put(struct buf *out, size_t number, const struct error *problem, const struct error *trace_problem,
                const struct buf *epochs, size_t n_epochs, const struct ingested *profile,
                const struct strtab *metrics);

/* --- the trees become one --- */

/* Merges the trees of a team's members: each member merges those of some others into its own store and sends the result
 * on, in about log2(n) steps, until the leader has everything; on the way back every member learns what its nodes have
 * become. Ordinary code. */

struct team_tree {
    struct team_branch {
        size_t rank;
        uint32_t *map; /* [n_ids] ids in this member's store by those in the other's; RAW_NONE for none */
        size_t n_ids;
    } branches[64]; /* members whose trees were merged into this one's */
    size_t n_branches;
};

/* Frees the branches. */
void team_tree_fini(struct team_tree *tree);

#endif
