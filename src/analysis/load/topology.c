/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a captured topology with hwloc, in a child process that may fail. */
#include "analysis/load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/model.h"
#include "fmt/file.h"

enum { PARSE_S = 20, CPUS_MAX = 1 << 20, TEXT_BYTES_MAX = 256 << 20 };

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

/* A cache that several cores share holds the data of all of them: only caches of one core count. */
static uint64_t cache_bytes(hwloc_topology_t machine, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(machine, type, 0);
    return cache && hwloc_get_nbobjs_inside_cpuset_by_type(machine, cache->cpuset, HWLOC_OBJ_CORE) <= 1
               ? cache->attr->cache.size
               : 0;
}

/* A core's share of a cache: what lies beyond it, others may push out. */
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
    return above ? above->logical_index : PLACE_UNKNOWN;
}

static int fill(hwloc_topology_t machine, struct topology *topology)
{
    hwloc_obj_t cpu = NULL;
    topology->l1_bytes = cache_bytes(machine, HWLOC_OBJ_L1CACHE);
    topology->l2_bytes = cache_bytes(machine, HWLOC_OBJ_L2CACHE);
    topology->l3_bytes = share_bytes(machine, HWLOC_OBJ_L3CACHE);
    while ((cpu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, cpu)))
        if (cpu->os_index >= topology->n_cpus && cpu->os_index < CPUS_MAX)
            topology->n_cpus = cpu->os_index + 1;
    topology->cpus = malloc((topology->n_cpus + 1) * sizeof *topology->cpus);
    if (!topology->cpus)
        return -1;
    memset(topology->cpus, 0xff, (topology->n_cpus + 1) * sizeof *topology->cpus); /* PLACE_UNKNOWN */
    while ((cpu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, cpu))) {
        int node = cpu->nodeset ? hwloc_bitmap_first(cpu->nodeset) : -1;
        if (cpu->os_index >= topology->n_cpus)
            continue;
        topology->cpus[cpu->os_index] =
            (struct machine_cpu){.cpu = cpu->os_index,
                                 .core = number_above(machine, HWLOC_OBJ_CORE, cpu),
                                 .package = number_above(machine, HWLOC_OBJ_PACKAGE, cpu),
                                 .node = node < 0 || node >= NUMA_NODES_MAX ? PLACE_UNKNOWN : (uint32_t)node};
        if (node >= 0 && node < NUMA_NODES_MAX && (uint32_t)node >= topology->n_nodes)
            topology->n_nodes = (uint32_t)node + 1;
    }
    return 0;
}

/* What the child sends through the pipe: this, then the CPUs [n_cpus]. */
struct parsed_topology {
    uint64_t l1_bytes, l2_bytes, l3_bytes;
    int32_t code;
    uint32_t n_cpus, n_nodes, unused;
    char summary[sizeof((struct topology *)NULL)->summary];
};
_Static_assert(sizeof(struct parsed_topology) == 296, "answers have no padding that could leak or differ");

/* hwloc trusts what it reads: damaged text makes it overrun its own arrays, or loop. */
static int parse(const char *text, size_t len_bytes, struct topology *topology)
{
    hwloc_topology_t machine;
    if (hwloc_topology_init(&machine) != 0)
        return ERR_MEMORY;
    if (hwloc_topology_set_xmlbuffer(machine, text, (int)len_bytes) != 0 ||
        hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(machine) != 0)
        return ERR_FORMAT;
    int code = fill(machine, topology) == 0 ? 0 : ERR_MEMORY;
    if (code == 0)
        describe(machine, topology);
    return code; /* the process ends: nothing is torn down */
}

static void put_all(int fd, const void *bytes, size_t len_bytes)
{
    const char *rest = bytes;
    for (ssize_t n; len_bytes > 0; rest += n, len_bytes -= (size_t)n) {
        n = write(fd, rest, len_bytes);
        if (n < 0 && errno == EINTR)
            n = 0;
        if (n < 0)
            return;
    }
}

/* The child: without core dump, without output on the terminal, and with a limit on its time. */
static _Noreturn void parse_apart(const struct buf *text, int out_fd)
{
    static const struct rlimit no_core = {0, 0}, cpu = {PARSE_S, PARSE_S};
    struct topology topology = {0};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd >= 0) {
        (void)dup2(null_fd, STDOUT_FILENO);
        (void)dup2(null_fd, STDERR_FILENO);
    }
    struct parsed_topology answer = {.code = parse(text->data, text->len_bytes + 1, &topology)};
    answer.n_cpus = topology.n_cpus;
    answer.n_nodes = topology.n_nodes;
    answer.l1_bytes = topology.l1_bytes;
    answer.l2_bytes = topology.l2_bytes;
    answer.l3_bytes = topology.l3_bytes;
    memcpy(answer.summary, topology.summary, sizeof answer.summary);
    put_all(out_fd, &answer, sizeof answer);
    if (answer.code == 0)
        put_all(out_fd, topology.cpus, topology.n_cpus * sizeof *topology.cpus);
    for (;;)
        (void)raise(SIGKILL); /* not exit(): the exit handlers are the parent's */
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False when fewer bytes came than expected, or too late. */
static bool take_all(int fd, void *bytes, size_t len_bytes, int64_t end_ms)
{
    char *at = bytes;
    while (len_bytes > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left_ms = end_ms - now_ms();
        int n_ready = left_ms > 0 ? poll(&ready, 1, (int)left_ms) : 0;
        if (n_ready < 0 && errno == EINTR)
            continue;
        ssize_t n = n_ready > 0 ? read(fd, at, len_bytes) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len_bytes -= (size_t)n;
    }
    return true;
}

static int take_answer(int fd, const char *path, struct topology *topology, struct error *err)
{
    struct parsed_topology answer;
    int64_t end_ms = now_ms() + PARSE_S * 1000;
    if (!take_all(fd, &answer, sizeof answer, end_ms) || answer.code == ERR_FORMAT || answer.n_cpus > CPUS_MAX ||
        answer.n_nodes > NUMA_NODES_MAX)
        return error_set(err, ERR_FORMAT, "%s is not a topology that hwloc can read", path);
    topology->cpus = answer.code == 0 ? malloc((answer.n_cpus + 1) * sizeof *topology->cpus) : NULL;
    if (!topology->cpus)
        return error_set(err, ERR_MEMORY, "out of memory while reading %s", path);
    if (!take_all(fd, topology->cpus, answer.n_cpus * sizeof *topology->cpus, end_ms)) {
        topology_fini(topology);
        return error_set(err, ERR_FORMAT, "%s is not a topology that hwloc can read", path);
    }
    topology->n_cpus = answer.n_cpus;
    topology->n_nodes = answer.n_nodes;
    topology->l1_bytes = answer.l1_bytes;
    topology->l2_bytes = answer.l2_bytes;
    topology->l3_bytes = answer.l3_bytes;
    answer.summary[sizeof answer.summary - 1] = '\0';
    memcpy(topology->summary, answer.summary, sizeof topology->summary);
    return 0;
}

/* Lets a child process parse text, so that a crash does no harm here. */
static int parse_in_child(const struct buf *text, const char *path, struct topology *topology, struct error *err)
{
    int fds[2], ignored;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    pid_t child = fork();
    if (child == 0)
        parse_apart(text, fds[1]);
    int code = child > 0 ? 0 : error_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    (void)close(fds[1]);
    if (code == 0)
        code = take_answer(fds[0], path, topology, err);
    (void)close(fds[0]);
    if (child > 0)
        (void)kill(child, SIGKILL);
    while (child > 0 && waitpid(child, &ignored, 0) < 0 && errno == EINTR)
        ;
    return code;
}

int topology_read(const char *path, struct topology *topology, struct error *err)
{
    struct buf text = {0};
    memset(topology, 0, sizeof *topology);
    int code = file_read(path, &text, err);
    if (code == 0 && text.len_bytes > TEXT_BYTES_MAX)
        code = error_set(err, ERR_FORMAT, "%s is not a topology that hwloc can read", path);
    if (code == 0)
        code = parse_in_child(&text, path, topology, err);
    buf_fini(&text);
    return code;
}

void topology_fini(struct topology *topology)
{
    free(topology->cpus);
    memset(topology, 0, sizeof *topology);
}

uint32_t topology_node(const struct topology *topology, uint32_t cpu)
{
    return cpu < topology->n_cpus ? topology->cpus[cpu].node : PLACE_UNKNOWN;
}
