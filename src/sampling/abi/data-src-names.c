/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the metrics of data-src.h: those of the original code, with the names of its documentation as aliases. */
#include <stddef.h>

#include "sampling/abi/data-src.h"

static const struct mem_metric_row rows[MEM_METRICS] = {
    [MEM_LOAD] = {"MEM-Load", NULL, "loads, read-modify-writes included", true},
    [MEM_LOAD_LFB] = {"MEM-Load-FBhit", NULL, "loads of a line that was already on its way (fill buffer)", true},
    [MEM_LOAD_L1] = {"MEM-Load-L1hit", NULL, "loads served by the core's L1 (or L0) cache", true},
    [MEM_LOAD_L2] = {"MEM-Load-L2hit", NULL, "loads served by the core's L2 cache", true},
    [MEM_LLC_HIT] = {"MEM-LLC-hit", NULL,
                     "loads served by a cache beyond the core's own on this NUMA node, unmodified by another core",
                     true},
    [MEM_HITM_LOCAL] = {"MEM-hitm-local", NULL, "loads of a line that another core of this NUMA node had modified",
                        true},
    [MEM_HITM_REMOTE] = {"MEM-hitm-rmt", NULL, "loads of a line that a core of another NUMA node had modified", true},
    [MEM_REMOTE_HIT] = {"MEM-rmt-hit", NULL, "loads served by a cache of another NUMA node, unmodified", true},
    [MEM_DRAM_LOCAL] = {"DRAM-miss-to-lcl", "Load-miss-to-lcl-DRAM", "loads served by memory of this NUMA node", true},
    [MEM_DRAM_REMOTE] = {"DRAM-miss-to-rmt", "Load-miss-to-rmt-DRAM", "loads served by memory of another NUMA node",
                         true},
    [MEM_LOAD_MISS] = {"MEM-Load-miss", NULL, "loads that missed the cache level that the hardware reports", true},
    [MEM_LOAD_IO] = {"MEM-Load I/O Address", "Load I/O Address", "loads from addresses of devices", true},
    [MEM_LOAD_SHARED] = {"MEM-Load MESI State Shared", "Load MESI State Shared",
                         "loads served by memory while another cache held the line", true},
    [MEM_LOAD_UNCACHED] = {"MEM-Load Uncache", "Load Uncache", "loads from uncached memory", true},
    [MEM_LOAD_EXCLUSIVE] = {"MEM-Load Exclusive", "Load Exclusive",
                            "loads served by memory without word of another cache that held the line", true},
    [MEM_STORE] = {"MEM-Store", NULL, "stores", true},
    [MEM_STORE_L1_HIT] = {"MEM-Store-L1hit", NULL, "stores that found their line in the L1 cache", true},
    [MEM_STORE_L1_MISS] = {"MEM-Store-L1miss", NULL, "stores that did not find their line in the L1 cache", true},
    [MEM_STORE_UNCACHED] = {"MEM-Store-Uncache", NULL, "stores to uncached memory", true},
    [MEM_DTLB_WALK] = {"MEM-dTLB-walk", NULL, "accesses that missed the last data TLB: the page tables were read",
                       false},
    [MEM_LOCKED] = {"MEM-Locked", NULL, "atomic accesses", false},
    [MEM_PMEM] = {"MEM-PMEM", NULL, "accesses served by persistent memory; loads also count as memory of their node",
                  false},
    [MEM_CXL] = {"MEM-CXL", NULL, "accesses served by CXL memory; loads also count as memory of their node", false},
    [MEM_BLOCKED_DATA] = {"MEM-Blocked-data", NULL,
                          "loads that waited because the data of an earlier store could not be forwarded", false},
    [MEM_BLOCKED_ADDR] = {"MEM-Blocked-addr", NULL, "loads that waited because of an address conflict", false},
    [MEM_OTHER_OP] = {"MEM-Other", NULL, "prefetches, instruction fetches and accesses of an unknown operation", false},
};

const struct mem_metric_row *mem_metric_row(enum mem_metric metric)
{
    return (unsigned)metric < MEM_METRICS ? &rows[metric] : NULL;
}
