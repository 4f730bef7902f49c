/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of a team's members become one: each member merges those of some others into its own store and hands all
 * on, in about log2(n) steps, until the leader has everything; the other way round every member learns what its nodes
 * have become. Ordinary code. */
#ifndef LOCUS_ANALYSIS_TEAM_TREE_H
#define LOCUS_ANALYSIS_TEAM_TREE_H

#include "analysis/ingest.h"
#include "base/workers.h"

struct team_tree {
    struct team_branch {
        size_t rank;
        uint32_t *map; /* [n_ids] ids in this member's store by those in the other's; RAW_NONE for none */
        size_t n_ids;
    } branches[64]; /* members whose trees were merged into this one's */
    size_t n_branches;
};

/* Collective: merges store, what ingest knows of metrics, and digests of all members. Members whose tree has gone to
 * another keep an empty digests.  err: ERR_MEMORY, ERR_USAGE (another failed) */
int team_tree_gather(const struct team *team, struct ingest *ingest, struct buf *digests, struct team_tree *tree,
                     struct error *err);

/* Collective: the leader's scopes [n_scopes], by id in its store, become every member's own, malloc'ed.
 * err: ERR_MEMORY, ERR_USAGE */
int team_tree_return(const struct team *team, const struct team_tree *tree, uint32_t **scopes, size_t *n_scopes,
                     struct error *err);

/* Frees the branches. */
void team_tree_fini(struct team_tree *tree);

#endif
