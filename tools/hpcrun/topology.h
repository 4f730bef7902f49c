/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's topology as hwloc XML beside the measurements, so that reports can say which CPU belongs to which NUMA
 * node long after the run, on another machine. Ordinary code. */
#ifndef LOCUS_HPCRUN_TOPOLOGY_H
#define LOCUS_HPCRUN_TOPOLOGY_H

#include <stddef.h>

#include "base/error.h"

/* File name (without directory) of this host's topology: "topology-<hostid>.xml". */
void topology_file_name(char *name, size_t n_name);

/* Writes the whole machine, disallowed CPUs and nodes included (the allowed sets are kept in the XML), into dir, once
 * per host: an existing file is left alone.  err: ERR_IO, ERR_UNSUPPORTED (hwloc cannot see this machine) */
int topology_write(const char *dir, struct error *err);

#endif
