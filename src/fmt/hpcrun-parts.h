/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a profile file that the dense and the sparse layout share; used by hpcrun-*.c only.
 * Each function takes its part at the cursor, adds it to the profile and returns in->code. Ordinary code. */
#ifndef LOCUS_FMT_HPCRUN_PARTS_H
#define LOCUS_FMT_HPCRUN_PARTS_H

#include <stdbool.h>

#include "fmt/hpcrun.h"
#include "fmt/wire.h"

#define HPCRUN_MAGIC "HPCRUN-profile____"
#define HPCRUN_EPOCH_MAGIC "EPOCH___"
#define HPCRUN_EPOCH_FLAG_LOGICAL 1u /* nodes carry logical (LUSH) fields */

/* What differs between the versions. */
struct hpcrun_layout {
    const char *version;
    bool sparse;
    bool has_type;   /* nodes begin with node_type */
    bool may_be_old; /* metric entries may lack their last 20 bytes */
};

/* The layout of a version text of five characters, NULL when it is none of ours. */
const struct hpcrun_layout *hpcrun_layout_of(const char *version);

/* Size of a node without its metric values, in bytes. */
size_t hpcrun_node_bytes(const struct hpcrun_layout *layout);

/* Magic, version, byte order and header pairs. The version must have been set. */
int hpcrun_get_header(struct wire_in *in, struct hpcrun_profile *profile);

/* Metric table, load map (both from their count on). */
int hpcrun_get_metrics(struct wire_in *in, struct hpcrun_profile *profile);
int hpcrun_get_modules(struct wire_in *in, struct hpcrun_profile *profile);

/* What comes before the nodes of an epoch of a dense file: epoch header, metric table, load map. */
int hpcrun_get_epoch_head(struct wire_in *in, struct hpcrun_profile *epoch);

/* Decodes one node of a dense file at bytes, without its values; returns where those begin. The caller has checked that
 * the bytes are there. */
const unsigned char *hpcrun_decode_node(const unsigned char *bytes, bool has_type, struct hpcrun_node *node);

/* A whole sparse file (04.00). */
int hpcrun_get_sparse(struct wire_in *in, struct hpcrun_profile *profile);

#endif
