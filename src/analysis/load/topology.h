/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NUMA node each CPU of a host belongs to, and how large caches are, from the hwloc XML in the measurement
 * directory. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_TOPOLOGY_H
#define LOCUS_ANALYSIS_LOAD_TOPOLOGY_H

#include <stdint.h>

#include "base/error.h"

struct topology {
    uint32_t *node_of; /* [n_cpus] operating-system index of the node, UINT32_MAX where there is no such CPU */
    uint32_t n_cpus;
    uint32_t n_nodes;  /* highest node index + 1 */
    uint64_t l1_bytes, l2_bytes; /* of the data caches that the first core has for itself; 0: not known */
    char summary[256]; /* "2 NUMA nodes, 32 cores, 64 CPUs, Intel ..." */
};

/* Reads path; *topology must be empty (all zero) and is left empty on failure. A child process parses it: text that
 * crashes the parser, or keeps it from ending for 20 s, is one that cannot be read.
 * err: ERR_FORMAT, ERR_IO, ERR_MEMORY */
int topology_read(const char *path, struct topology *topology, struct error *err);
void topology_fini(struct topology *topology);

/* Node of a CPU, UINT32_MAX when not known. */
uint32_t topology_node(const struct topology *topology, uint32_t cpu);

#endif
