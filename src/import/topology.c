/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a machine as plain tables: see topology.h. A child process fills them with hwloc and sends them, and
 * every number in them is checked here. */
#include "import/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/vec.h"
#include "fmt/file.h"

enum { PARSE_S = 20, TEXT_BYTES_MAX = 256 << 20, ANSWER_BYTES_MAX = 512 << 20 };

/* --- in the child --- */

/* The head of the answer; cpus, nodes, locals, offline and distances follow. */
struct answer_head {
    uint64_t l1_bytes, l2_bytes, l3_bytes;
    uint32_t n_cpus, n_nodes, n_locals, n_offline, n_cores, n_packages, n_distances, unused;
    char summary[sizeof((struct topology *)NULL)->summary];
};
_Static_assert(sizeof(struct answer_head) == 312 && sizeof(struct topology_cpu) == 28 &&
                   sizeof(struct topology_node) == 48,
               "answers have no padding that could leak or differ");

static void describe(hwloc_topology_t machine, struct answer_head *head)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    int n_nodes = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE);
    int n_cores = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE);
    int n_cpus = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU);
    (void)snprintf(head->summary, sizeof head->summary, "%d NUMA node%s, %d core%s, %d CPU%s%s%.150s", n_nodes,
                   n_nodes == 1 ? "" : "s", n_cores, n_cores == 1 ? "" : "s", n_cpus, n_cpus == 1 ? "" : "s",
                   model ? ", " : "", model ? model : "");
}

/* A cache that several cores share holds the data of all of them: only caches of one core count. */
static uint64_t cache_bytes(hwloc_topology_t machine, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(machine, type, 0);
    return cache && hwloc_get_nbobjs_inside_cpuset_by_type(machine, cache->cpuset, HWLOC_OBJ_CORE) <= 1
               ? cache->attr->cache.size
               : 0;
}

/* A core's share of a cache. Other cores may evict what exceeds it. */
static uint64_t share_bytes(hwloc_topology_t machine, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(machine, type, 0);
    int n_cores = cache ? hwloc_get_nbobjs_inside_cpuset_by_type(machine, cache->cpuset, HWLOC_OBJ_CORE) : 0;
    return cache ? cache->attr->cache.size / (uint64_t)(n_cores > 1 ? n_cores : 1) : 0;
}

/* The logical number of the core or package that a CPU is in. */
static uint32_t number_above(hwloc_topology_t machine, hwloc_obj_type_t type, hwloc_obj_t cpu)
{
    hwloc_obj_t above = hwloc_get_ancestor_obj_by_type(machine, type, cpu);
    return above ? above->logical_index : TOPOLOGY_UNKNOWN;
}

static uint32_t count_of(hwloc_topology_t machine, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(machine, type);
    return n > 0 ? (uint32_t)n : 0;
}

/* Nodes hang beside the tree: which ones are local to a CPU, its own set says. Those of the nodes may contradict the
 * tree in a file that was edited. */
static void put_locals(hwloc_topology_t machine, hwloc_obj_t from, struct topology_cpu *cpu, struct buf *locals)
{
    cpu->first_local = (uint32_t)(locals->len_bytes / sizeof(uint32_t));
    cpu->node = TOPOLOGY_UNKNOWN;
    for (int os = from->nodeset ? hwloc_bitmap_first(from->nodeset) : -1; os >= 0 && os < TOPOLOGY_NODES_MAX;
         os = hwloc_bitmap_next(from->nodeset, os)) {
        hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(machine, (unsigned)os);
        if (!node)
            continue;
        uint32_t number = node->logical_index;
        buf_append(locals, &number, sizeof number);
        if (cpu->n_local++ == 0)
            cpu->node = number;
    }
}

static void put_cpus(hwloc_topology_t machine, struct answer_head *head, struct buf *cpus, struct buf *locals)
{
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(machine);
    hwloc_obj_t from = NULL;
    head->n_cores = count_of(machine, HWLOC_OBJ_CORE);
    head->n_packages = count_of(machine, HWLOC_OBJ_PACKAGE);
    while ((from = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, from))) {
        struct topology_cpu cpu = {.os = from->os_index,
                                   .core = number_above(machine, HWLOC_OBJ_CORE, from),
                                   .package = number_above(machine, HWLOC_OBJ_PACKAGE, from),
                                   .is_allowed = !allowed || hwloc_bitmap_isset(allowed, from->os_index)};
        if (cpu.os >= TOPOLOGY_CPUS_MAX)
            continue;
        put_locals(machine, from, &cpu, locals);
        buf_append(cpus, &cpu, sizeof cpu);
        head->n_cpus++;
    }
    head->n_locals = (uint32_t)(locals->len_bytes / sizeof(uint32_t));
}

static void put_nodes(hwloc_topology_t machine, struct answer_head *head, struct buf *nodes)
{
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_nodeset(machine);
    hwloc_obj_t from = NULL;
    while ((from = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, from))) {
        struct topology_node node = {.os = from->os_index,
                                     .package = TOPOLOGY_UNKNOWN,
                                     .memory_bytes = from->attr ? from->attr->numanode.local_memory : 0,
                                     .is_allowed = !allowed || hwloc_bitmap_isset(allowed, from->os_index)};
        if (from->subtype)
            (void)snprintf(node.kind, sizeof node.kind, "%s", from->subtype);
        buf_append(nodes, &node, sizeof node);
        head->n_nodes++;
    }
}

/* The CPUs that the machine has and does not use. */
static void put_offline(hwloc_topology_t machine, struct answer_head *head, struct buf *offline)
{
    hwloc_obj_t root = hwloc_get_root_obj(machine);
    if (!root->complete_cpuset || !root->cpuset || hwloc_bitmap_weight(root->complete_cpuset) < 0)
        return;
    for (int os = hwloc_bitmap_first(root->complete_cpuset); os >= 0 && os < TOPOLOGY_CPUS_MAX;
         os = hwloc_bitmap_next(root->complete_cpuset, os))
        if (!hwloc_bitmap_isset(root->cpuset, (unsigned)os)) {
            uint32_t number = (uint32_t)os;
            buf_append(offline, &number, sizeof number);
            head->n_offline++;
        }
}

/* The distances between the nodes, if they are known. */
static void put_distances(hwloc_topology_t machine, struct answer_head *head, struct buf *distances)
{
    struct hwloc_distances_s *found = NULL;
    uint32_t matrix[TOPOLOGY_DISTANCES_MAX][TOPOLOGY_DISTANCES_MAX] = {{0}}, n = 0;
    unsigned n_found = 1;
    if (hwloc_distances_get_by_type(machine, HWLOC_OBJ_NUMANODE, &n_found, &found, HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                    0) != 0 ||
        n_found == 0)
        return;
    for (unsigned i = 0; i < found->nbobjs; i++)
        for (unsigned k = 0; k < found->nbobjs; k++) {
            uint64_t value = found->values[(size_t)i * found->nbobjs + k];
            hwloc_obj_t from = found->objs[i], to = found->objs[k];
            if (!from || !to || from->os_index >= TOPOLOGY_DISTANCES_MAX || to->os_index >= TOPOLOGY_DISTANCES_MAX)
                continue;
            matrix[from->os_index][to->os_index] = value < UINT32_MAX ? (uint32_t)value : 0;
            n = from->os_index >= n ? from->os_index + 1 : n;
        }
    for (uint32_t i = 0; i < n; i++)
        buf_append(distances, matrix[i], n * sizeof matrix[i][0]);
    head->n_distances = n;
}

/* input: the XML (struct buf), NULL for this machine. */
static int ask_hwloc(const void *input, struct buf *answer)
{
    const struct buf *text = input;
    struct answer_head head = {0};
    struct buf cpus = {0}, nodes = {0}, locals = {0}, offline = {0}, distances = {0};
    hwloc_topology_t machine;
    if (hwloc_topology_init(&machine) != 0)
        return ERR_MEMORY;
    if ((text && hwloc_topology_set_xmlbuffer(machine, text->data, (int)text->len_bytes + 1) != 0) ||
        hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(machine) != 0)
        return ERR_FORMAT;
    describe(machine, &head);
    head.l1_bytes = cache_bytes(machine, HWLOC_OBJ_L1CACHE);
    head.l2_bytes = cache_bytes(machine, HWLOC_OBJ_L2CACHE);
    head.l3_bytes = share_bytes(machine, HWLOC_OBJ_L3CACHE);
    put_cpus(machine, &head, &cpus, &locals);
    put_nodes(machine, &head, &nodes);
    put_offline(machine, &head, &offline);
    put_distances(machine, &head, &distances);
    const struct buf *parts[] = {&cpus, &nodes, &locals, &offline, &distances};
    buf_append(answer, &head, sizeof head);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buf_append(answer, parts[i]->data, parts[i]->len_bytes);
        answer->failed |= parts[i]->failed;
    }
    return 0;
}

/* --- in the parent --- */

/* A part of the answer, copied; false when it is shorter than it says, or memory is out (then *items is NULL). */
static bool take_part(const struct buf *answer, size_t *offset, uint32_t n, size_t item_bytes, void *items)
{
    size_t len_bytes = (size_t)n * item_bytes;
    void *copy = len_bytes <= answer->len_bytes - *offset ? malloc(len_bytes + item_bytes) : NULL;
    *(void **)items = copy;
    if (!copy)
        return false;
    memcpy(copy, answer->data + *offset, len_bytes);
    *offset += len_bytes;
    return true;
}

static bool is_number(uint32_t number, uint32_t n)
{
    return number < n || number == TOPOLOGY_UNKNOWN;
}

static bool is_cpu_valid(const struct topology *topology, const struct topology_cpu *cpu)
{
    return cpu->os < TOPOLOGY_CPUS_MAX && is_number(cpu->core, topology->n_cores) &&
           is_number(cpu->package, topology->n_packages) && is_number(cpu->node, topology->n_nodes) &&
           cpu->first_local <= topology->n_locals && cpu->n_local <= topology->n_locals - cpu->first_local;
}

/* Whether every number in the tables is one of them. */
static bool is_valid(const struct topology *topology)
{
    bool ok = topology->n_cpus > 0 && topology->n_nodes <= TOPOLOGY_NODES_MAX;
    for (uint32_t i = 0; ok && i < topology->n_locals; i++)
        ok = topology->locals[i] < topology->n_nodes;
    for (uint32_t i = 0; ok && i < topology->n_offline; i++)
        ok = topology->offline[i] < TOPOLOGY_CPUS_MAX;
    for (uint32_t i = 0; ok && i < topology->n_nodes; i++)
        ok = memchr(topology->nodes[i].kind, '\0', sizeof topology->nodes[i].kind) != NULL;
    for (uint32_t i = 0; ok && i < topology->n_cpus; i++)
        ok = is_cpu_valid(topology, &topology->cpus[i]);
    return ok;
}

/* What follows from the tables: CPUs by OS number, and what each node is local to. */
static bool finish(struct topology *topology)
{
    for (uint32_t i = 0; i < topology->n_cpus; i++)
        if (topology->cpus[i].os >= topology->n_os)
            topology->n_os = topology->cpus[i].os + 1;
    topology->by_os = malloc((topology->n_os + 1) * sizeof *topology->by_os);
    if (!topology->by_os)
        return false;
    memset(topology->by_os, 0xff, (topology->n_os + 1) * sizeof *topology->by_os); /* TOPOLOGY_UNKNOWN */
    for (uint32_t i = 0; i < topology->n_cpus; i++) {
        const struct topology_cpu *cpu = &topology->cpus[i];
        topology->by_os[cpu->os] = i;
        if (cpu->node != TOPOLOGY_UNKNOWN)
            topology->nodes[cpu->node].n_cpus++;
        for (uint32_t local = 0; local < cpu->n_local; local++) {
            struct topology_node *node = &topology->nodes[topology->locals[cpu->first_local + local]];
            node->package = node->n_local++ == 0 || node->package == cpu->package ? cpu->package : TOPOLOGY_UNKNOWN;
        }
    }
    return true;
}

/* Fills *topology from the answer; on failure it may be filled in part. */
static int take_tables(const struct buf *answer, struct topology *topology, struct error *err)
{
    struct answer_head head;
    size_t offset = sizeof head;
    if (answer->len_bytes < sizeof head)
        return error_set(err, ERR_FORMAT, "the answer is too short");
    memcpy(&head, answer->data, sizeof head);
    *topology = (struct topology){.n_cpus = head.n_cpus,
                                  .n_nodes = head.n_nodes,
                                  .n_locals = head.n_locals,
                                  .n_offline = head.n_offline,
                                  .n_cores = head.n_cores,
                                  .n_packages = head.n_packages,
                                  .n_distances = head.n_distances,
                                  .l1_bytes = head.l1_bytes,
                                  .l2_bytes = head.l2_bytes,
                                  .l3_bytes = head.l3_bytes};
    memcpy(topology->summary, head.summary, sizeof topology->summary);
    topology->summary[sizeof topology->summary - 1] = '\0';
    if (head.n_distances > TOPOLOGY_DISTANCES_MAX ||
        !take_part(answer, &offset, head.n_cpus, sizeof *topology->cpus, &topology->cpus) ||
        !take_part(answer, &offset, head.n_nodes, sizeof *topology->nodes, &topology->nodes) ||
        !take_part(answer, &offset, head.n_locals, sizeof *topology->locals, &topology->locals) ||
        !take_part(answer, &offset, head.n_offline, sizeof *topology->offline, &topology->offline) ||
        !take_part(answer, &offset, head.n_distances * head.n_distances, sizeof *topology->distances,
                   &topology->distances) ||
        !is_valid(topology))
        return error_set(err, ERR_FORMAT, "the answer has wrong numbers");
    return finish(topology) ? 0 : error_memory(err);
}

static int read_apart(const struct buf *text, struct topology *topology, struct error *err)
{
    struct buf answer = {0};
    int code = apart_run(ask_hwloc, text, PARSE_S, ANSWER_BYTES_MAX, &answer, err);
    if (code == 0)
        code = take_tables(&answer, topology, err);
    if (code != 0)
        topology_fini(topology);
    buf_fini(&answer);
    return code;
}

int topology_read(const char *path, struct topology *topology, struct error *err)
{
    struct buf text = {0};
    struct error why = {0};
    memset(topology, 0, sizeof *topology);
    int code = file_read(path, &text, err);
    if (code != 0)
        return code;
    code = text.len_bytes <= TEXT_BYTES_MAX ? read_apart(&text, topology, &why) : ERR_FORMAT;
    if (code == ERR_FORMAT)
        (void)error_set(err, code, "%s is not a topology that hwloc can read", path);
    else if (code != 0)
        (void)error_set(err, code, "%s: cannot be read: %s", path, why.text);
    buf_fini(&text);
    return code;
}

int topology_read_here(struct topology *topology, struct error *err)
{
    struct error why = {0};
    memset(topology, 0, sizeof *topology);
    int code = read_apart(NULL, topology, &why);
    if (code == ERR_FORMAT)
        return error_set(err, ERR_UNSUPPORTED, "hwloc cannot describe the topology of this machine");
    return code == 0 ? 0 : error_set(err, code, "the topology of this machine cannot be read: %s", why.text);
}

void topology_fini(struct topology *topology)
{
    free(topology->cpus);
    free(topology->nodes);
    free(topology->locals);
    free(topology->offline);
    free(topology->by_os);
    free(topology->distances);
    memset(topology, 0, sizeof *topology);
}

const struct topology_cpu *topology_find(const struct topology *topology, uint32_t os)
{
    uint32_t i = os < topology->n_os ? topology->by_os[os] : TOPOLOGY_UNKNOWN;
    return i == TOPOLOGY_UNKNOWN ? NULL : &topology->cpus[i];
}

uint32_t topology_node(const struct topology *topology, uint32_t os)
{
    const struct topology_cpu *cpu = topology_find(topology, os);
    return cpu && cpu->node != TOPOLOGY_UNKNOWN ? topology->nodes[cpu->node].os : TOPOLOGY_UNKNOWN;
}

uint32_t topology_count_os_nodes(const struct topology *topology)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].n_cpus > 0 && topology->nodes[i].os >= n)
            n = topology->nodes[i].os + 1;
    return n;
}
