/* SPDX-License-Identifier: BSD-3-Clause */
/* Topology of the host by hwloc; see topology.h. The file appears whole or not at all: many ranks of a node may write
 * it at the same time. Ordinary code. */
#include "topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fmt/names.h"

void topology_file_name(char *name, size_t n_name)
{
    (void)snprintf(name, n_name, "topology-%08x.xml", names_host_id());
}

static int export_xml(hwloc_topology_t topology, const char *dir, const char *path, struct error *err)
{
    char temporary[4352];
    (void)snprintf(temporary, sizeof temporary, "%s/.topology-%ld.tmp", dir, (long)getpid());
    if (hwloc_topology_export_xml(topology, temporary, 0) != 0)
        return error_set(err, ERR_IO, "hwloc cannot write %s: %s.", temporary, strerror(errno));
    if (rename(temporary, path) == 0)
        return 0;
    (void)error_set(err, ERR_IO, "%s cannot be renamed to %s: %s.", temporary, path, strerror(errno));
    (void)unlink(temporary);
    return ERR_IO;
}

int topology_write(const char *dir, struct error *err)
{
    char name[64], path[4352];
    hwloc_topology_t topology;
    topology_file_name(name, sizeof name);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (access(path, F_OK) == 0)
        return 0;
    if (hwloc_topology_init(&topology) != 0)
        return error_set(err, ERR_UNSUPPORTED, "hwloc cannot be initialised.");
    int status = 0;
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(topology) != 0)
        status = error_set(err, ERR_UNSUPPORTED, "hwloc cannot read the topology of this machine: %s.",
                           strerror(errno));
    else
        status = export_xml(topology, dir, path, err);
    hwloc_topology_destroy(topology);
    return status;
}
