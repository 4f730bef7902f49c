/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a captured topology with hwloc. */
#include "analysis/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/model.h"

static void describe(hwloc_topology_t machine, struct topology *topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    int n_nodes = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
    int n_cores = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE);
    int n_cpus = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU);
    (void)snprintf(topology->summary, sizeof topology->summary, "%d NUMA node%s, %d core%s, %d CPU%s%s%.150s", n_nodes,
                   n_nodes == 1 ? "" : "s", n_cores, n_cores == 1 ? "" : "s", n_cpus, n_cpus == 1 ? "" : "s",
                   model ? ", " : "", model ? model : "");
}

static int fill(hwloc_topology_t machine, struct topology *topology)
{
    hwloc_obj_t cpu = NULL;
    while ((cpu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, cpu)))
        if (cpu->os_index >= topology->n_cpus && cpu->os_index < 1u << 20)
            topology->n_cpus = cpu->os_index + 1;
    topology->node_of = malloc((topology->n_cpus + 1) * sizeof *topology->node_of);
    if (!topology->node_of)
        return -1;
    for (uint32_t i = 0; i < topology->n_cpus; i++)
        topology->node_of[i] = UINT32_MAX;
    while ((cpu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, cpu))) {
        int node = cpu->nodeset ? hwloc_bitmap_first(cpu->nodeset) : -1;
        if (node < 0 || node >= NUMA_NODES_MAX || cpu->os_index >= topology->n_cpus)
            continue;
        topology->node_of[cpu->os_index] = (uint32_t)node;
        if ((uint32_t)node >= topology->n_nodes)
            topology->n_nodes = (uint32_t)node + 1;
    }
    return 0;
}

int topology_read(const char *path, struct topology *topology, struct error *err)
{
    hwloc_topology_t machine;
    memset(topology, 0, sizeof *topology);
    /* hwloc loads all its plugins before it looks. */
    if (access(path, R_OK) != 0)
        return error_set(err, ERR_IO, "%s cannot be read (%s)", path, strerror(errno));
    if (hwloc_topology_init(&machine) != 0)
        return error_set(err, ERR_MEMORY, "out of memory while reading %s", path);
    int code = 0;
    if (hwloc_topology_set_xml(machine, path) != 0 ||
        hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(machine) != 0)
        code = error_set(err, ERR_FORMAT, "%s is not a topology that hwloc can read", path);
    else if (fill(machine, topology) != 0)
        code = error_set(err, ERR_MEMORY, "out of memory while reading %s", path);
    else
        describe(machine, topology);
    hwloc_topology_destroy(machine);
    return code;
}

void topology_fini(struct topology *topology)
{
    free(topology->node_of);
    memset(topology, 0, sizeof *topology);
}

uint32_t topology_node(const struct topology *topology, uint32_t cpu)
{
    return cpu < topology->n_cpus ? topology->node_of[cpu] : UINT32_MAX;
}
