/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the CPUs and the memory of a machine are: cores, packages, NUMA nodes and caches, from the XML that hwloc
 * writes or from the machine itself, as plain tables. hwloc trusts what it reads, so a child process asks it. Ordinary
 * code. */
#ifndef LOCUS_IMPORT_TOPOLOGY_H
#define LOCUS_IMPORT_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLOGY_UNKNOWN UINT32_MAX
#define TOPOLOGY_NODES_MAX 1024     /* as in Linux */
#define TOPOLOGY_CPUS_MAX (1 << 20) /* numbers of CPUs are below */
#define TOPOLOGY_DISTANCES_MAX 64   /* distances are known of nodes whose OS number is below */

/* A CPU (hwloc calls it PU). core, package and node are hwloc's logical numbers, which count over the whole machine;
 * TOPOLOGY_UNKNOWN: none. */
struct topology_cpu {
    uint32_t os; /* its number in the operating system */
    uint32_t core, package;
    uint32_t node;                 /* of its local nodes the one with the lowest OS number */
    uint32_t first_local, n_local; /* all its local nodes, by OS number: from topology.locals[first_local] on */
    uint32_t is_allowed;           /* 0: outside of the cgroup in which the topology was captured */
};

/* A NUMA node. One without CPUs (memory of devices, CXL) is a place for data all the same. */
struct topology_node {
    uint32_t os;
    uint32_t package;      /* of all CPUs that it is local to; TOPOLOGY_UNKNOWN: several, or none */
    uint32_t n_cpus;       /* CPUs whose node it is ... */
    uint32_t n_local;      /* ... and those that it is local to: with nested nodes, more */
    uint64_t memory_bytes; /* 0: not known */
    uint32_t is_allowed, unused;
    char kind[16]; /* "DRAM", "HBM", ... as newer versions of hwloc say; empty: not known */
};

struct topology {
    struct topology_cpu *cpus;   /* [n_cpus] by hwloc's logical number */
    struct topology_node *nodes; /* [n_nodes] by hwloc's logical number */
    uint32_t *locals;            /* [n_locals] logical numbers of nodes */
    uint32_t *offline;           /* [n_offline] OS numbers of CPUs that the machine has, but had switched off */
    uint32_t *by_os;             /* [n_os] index in cpus by OS number; TOPOLOGY_UNKNOWN: no such CPU */
    uint32_t *distances;         /* [n_distances][n_distances] by OS number of the nodes, from one to another, as the
                                  * firmware tells them: 10 is a node's own, 0 not known */
    uint32_t n_cpus, n_nodes, n_locals, n_offline, n_os, n_distances;
    uint32_t n_cores, n_packages;
    uint64_t l1_bytes, l2_bytes; /* of the data caches that the first core has to itself; 0: not known */
    uint64_t l3_bytes;           /* a core's share of the first third-level cache; 0: not known */
    char summary[256];           /* "2 NUMA nodes, 32 cores, 64 CPUs, Intel ..." */
};

/* Reads the XML at path; *topology must be empty (all zero) and is left empty on failure. Text that crashes hwloc, or
 * keeps it busy for 20 s, counts as unreadable.  err: ERR_FORMAT, ERR_IO, ERR_MEMORY */
int topology_read(const char *path, struct topology *topology, struct error *err);

/* The same for this machine, CPUs outside of our own cgroup included.  err: ERR_UNSUPPORTED (hwloc cannot see it),
 * ERR_IO, ERR_MEMORY */
int topology_read_here(struct topology *topology, struct error *err);

/* Frees the tables and makes it empty. */
void topology_fini(struct topology *topology);

/* A CPU by its OS number, NULL when there is none. Borrowed. */
const struct topology_cpu *topology_find(const struct topology *topology, uint32_t os);

/* OS number of the node of the CPU with this OS number, TOPOLOGY_UNKNOWN when not known. */
uint32_t topology_node(const struct topology *topology, uint32_t os);

/* One more than the highest OS number of a node that CPUs are in. */
uint32_t topology_count_os_nodes(const struct topology *topology);

#ifdef __cplusplus
}
#endif

#endif
