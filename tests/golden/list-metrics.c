/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the tables of doc/METRICS.md: not what somebody remembers of the decoders but what they answer, for every
 * place that data can come from. Each table begins with a line "## NAME". */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "analysis/metrics.h"
#include "analysis/report/report.h"
#include "fmt/hpcrun.h"
#include "sampling/abi/data-src.h"
#include "sampling/abi/ibs.h"
#include "sampling/abi/spe.h"

#define BIT(metric) (1u << (metric))
#define REMOTE (1ull << DATA_SRC_REMOTE_SHIFT)
#define HITM DATA_SRC(SNOOP, SNOOP_HITM)

/* What goes without saying in the tables of levels. */
static const uint32_t unsaid = BIT(MEM_LOAD) | BIT(MEM_STORE) | BIT(MEM_LOAD_SHARED) | BIT(MEM_LOAD_EXCLUSIVE);

static const char *const level_names[16] = {
    [DATA_SRC_NUM_L1] = "L1",   [DATA_SRC_NUM_L2] = "L2",         [DATA_SRC_NUM_L3] = "L3",
    [DATA_SRC_NUM_L4] = "L4",   [DATA_SRC_NUM_MHB] = "L2_MHB",    [DATA_SRC_NUM_MSC] = "MSC",
    [DATA_SRC_NUM_L0] = "L0",   [DATA_SRC_NUM_UNC] = "UNC",       [DATA_SRC_NUM_CXL] = "CXL",
    [DATA_SRC_NUM_IO] = "IO",   [DATA_SRC_NUM_ANY] = "ANY_CACHE", [DATA_SRC_NUM_LFB] = "LFB",
    [DATA_SRC_NUM_RAM] = "RAM", [DATA_SRC_NUM_PMEM] = "PMEM",
};

static void write_metrics(uint32_t metrics)
{
    const char *between = "";
    metrics &= ~unsaid;
    if (!metrics)
        printf("-");
    for (unsigned i = 0; i < MEM_METRICS; i++)
        if (metrics & BIT(i)) {
            printf("%s`%s`", between, mem_metric_row(i)->name);
            between = ", ";
        }
}

/* One cell: without word of a modified line, and with it where that makes a difference. */
static void write_cell(uint64_t data_src)
{
    uint32_t plain = mem_metrics_sig(data_src), modified = mem_metrics_sig(data_src | HITM);
    printf(" | ");
    write_metrics(plain);
    if ((plain & ~unsaid) != (modified & ~unsaid)) {
        printf("; HITM: ");
        write_metrics(modified);
    }
}

static void write_names(void)
{
    printf("## names\n| metric | also known as | counts |\n|---|---|---|\n");
    for (unsigned i = 0; i < MEM_METRICS; i++) {
        const struct mem_metric_row *row = mem_metric_row(i);
        printf("| `%s` | %s%s%s | %s%s |\n", row->name, row->alias ? "`" : "", row->alias ? row->alias : "",
               row->alias ? "`" : "", row->description, row->is_original ? "" : " (not in the original)");
    }
    printf("| `%s` |  | core cycles from issue to data, summed (not in the original) |\n", MEM_LATENCY_NAME);
    printf("| `%s` |  | of them, those of accesses that another NUMA node served (not in the original) |\n",
           MEM_REMOTE_LATENCY_NAME);
}

static void write_derived(void)
{
    const struct metric_derived *row;
    printf("## derived\n| column in CSV and JSON | table of variables | |\n|---|---|---|\n");
    for (size_t i = 0; (row = metrics_row(i)); i++)
        printf("| `%s` | %s | %s |\n", row->name, row->title ? row->title : "", row->description);
}

static void write_levels(void)
{
    printf("## levels\n| `mem_lvl_num` | loads, near | another core of the node | another node | stores |\n"
           "|---|---|---|---|---|\n");
    for (unsigned i = 1; i < 15; i++) {
        uint64_t load = DATA_SRC(OP, OP_LOAD) | DATA_SRC(LVL, LVL_HIT) | (uint64_t)i << DATA_SRC_NUM_SHIFT;
        printf("| %s", level_names[i]);
        write_cell(load);
        write_cell(load | REMOTE | DATA_SRC(HOPS, HOPS_0));
        write_cell(load | REMOTE | DATA_SRC(HOPS, HOPS_1));
        write_cell(DATA_SRC(OP, OP_STORE) | (load & ~DATA_SRC(OP, OP_LOAD)));
        printf(" |\n");
    }
}

static void write_bits(void)
{
    static const char *const names[] = {"L1",       "LFB",      "L2",       "L3", "LOC_RAM", "REM_RAM1",
                                        "REM_RAM2", "REM_CCE1", "REM_CCE2", "IO", "UNC"};
    printf("## bits\n| `mem_lvl`, HIT and | loads | with snoop HIT | stores | stores, MISS instead of HIT |\n"
           "|---|---|---|---|---|\n");
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t bit = (uint64_t)DATA_SRC_LVL_L1 << i << DATA_SRC_LVL_SHIFT, hit = bit | DATA_SRC(LVL, LVL_HIT);
        printf("| %s", names[i]);
        write_cell(DATA_SRC(OP, OP_LOAD) | hit);
        write_cell(DATA_SRC(OP, OP_LOAD) | hit | DATA_SRC(SNOOP, SNOOP_HIT));
        write_cell(DATA_SRC(OP, OP_STORE) | hit);
        write_cell(DATA_SRC(OP, OP_STORE) | bit | DATA_SRC(LVL, LVL_MISS));
        printf(" |\n");
    }
}

/* A load that missed both caches of its core, in AMD's registers. */
static uint32_t ibs_metrics(unsigned source, bool is_remote, bool is_zen4)
{
    unsigned char raw[60] = {0};
    struct ibs_op op;
    raw[4 + 3 * 8] = (unsigned char)((source & 7) | (source >> 3 & 3) << 6 | (is_remote ? 16 : 0));
    raw[4 + 4 * 8] = 0x81;
    raw[4 + 4 * 8 + 2] = 0x10;
    return ibs_op_parse_sig(raw, sizeof raw, is_zen4, &op) ? mem_metrics_sig(op.data_src) : 0;
}

static void write_ibs(void)
{
    printf("## ibs\n| data source | until Zen 3 | from Zen 4 | from Zen 4, remote node |\n|---|---|---|---|\n");
    for (unsigned source = 1; source < 13; source++) {
        if (!((ibs_metrics(source, false, true) | (source < 8 ? ibs_metrics(source, false, false) : 0)) & ~unsaid))
            continue;
        printf("| %u | ", source);
        write_metrics(source < 8 ? ibs_metrics(source, false, false) : 0);
        printf(" | ");
        write_metrics(ibs_metrics(source, false, true));
        printf(" | ");
        write_metrics(ibs_metrics(source, true, true));
        printf(" |\n");
    }
}

static void write_spe(void)
{
    printf("## spe\n| data source | Neoverse | AmpereOne |\n|---|---|---|\n");
    for (unsigned source = 0; source < 16; source++) {
        struct spe_record record = {.is_load = true, .has_source = true, .source = (uint16_t)source};
        uint32_t neoverse = mem_metrics_sig(spe_data_src_sig(&record, SPE_SOURCES_NEOVERSE));
        uint32_t ampere = mem_metrics_sig(spe_data_src_sig(&record, SPE_SOURCES_AMPERE));
        if (!((neoverse | ampere) & ~unsaid))
            continue;
        printf("| %u | ", source);
        write_metrics(neoverse);
        printf(" | ");
        write_metrics(ampere);
        printf(" |\n");
    }
}

static void write_special_rows(void)
{
    printf("## special_rows\n| row | what it is | what to do |\n|---|---|---|\n");
    for (size_t i = 0; special_rows_at(i); i++) {
        const struct special_row *row = special_rows_at(i);
        printf("| `%s` | %s | %s |\n", row->name, row->means, row->advice);
    }
}

int main(void)
{
    write_names();
    write_derived();
    write_levels();
    write_bits();
    write_ibs();
    write_spe();
    write_special_rows();
    return 0;
}
