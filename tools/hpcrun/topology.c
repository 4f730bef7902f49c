/* SPDX-License-Identifier: BSD-3-Clause */
/* Topology of the host by hwloc; see topology.h. The file appears whole or not at all: many ranks of a node may write
 * it at the same time. Ordinary code. */
#include "topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fmt/file.h"
#include "measurement/names.h"

void topology_file_name(char *name, size_t n_name)
{
    (void)snprintf(name, n_name, "topology-%08x.xml", names_host_id());
}

/* By way of memory: on a full disk half a file would be left under its name. */
static int export_xml(hwloc_topology_t topology, const char *path, struct error *err)
{
    char *text = NULL;
    int len = 0;
    if (hwloc_topology_export_xmlbuffer(topology, &text, &len, 0) != 0)
        return error_set(err, ERR_UNSUPPORTED, "hwloc cannot describe the topology of this machine: %s.",
                         strerror(errno));
    size_t n_bytes = len > 0 ? strnlen(text, (size_t)len) : 0;
    int status = file_replace(path, text, n_bytes, err);
    hwloc_free_xmlbuffer(topology, text);
    return status;
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
        status = export_xml(topology, path, err);
    hwloc_topology_destroy(topology);
    return status;
}
