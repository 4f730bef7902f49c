/* SPDX-License-Identifier: BSD-3-Clause */
/* From records to accesses: see access.h. Runs in the signal handler. */
#include "runtime/access.h"

#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/ibs.h"
#include "base/sigsafe.h"

#define IBS_CAPS_ZEN4 (1u << 11) /* src: arch/x86/include/asm/amd-ibs.h, IBS_CAPS_ZEN4 */
#define OP_MASK 31u              /* mem_op of a data source */
#define OP_NONE 1u               /* PERF_MEM_OP_NA */
#define LOADS_AND_STORES (1u << MEM_LOAD | 1u << MEM_STORE)

bool access_is_swapped_sig(const struct arena_event *plan)
{
    return plan->flags & EVENT_SWAPPED;
}

/* Without an address, an instruction that neither loads nor stores has none to give. */
static void access_close_sig(struct access *access)
{
    if (!access->has_address && !(access->metrics & LOADS_AND_STORES))
        access->is_no_access = true;
    if (access->is_no_access) {
        access->metrics = 0;
        access->lat_cycles = 0;
    }
}

static void take_ibs_sig(const struct abi_sample *sample, bool is_swapped, struct access *access)
{
    uint32_t capabilities = 0;
    struct ibs_op op;
    if (sample->raw.n_bytes >= sizeof capabilities)
        memcpy(&capabilities, sample->raw.data, sizeof capabilities);
    if (is_swapped || !ibs_op_parse_sig(sample->raw.data, sample->raw.n_bytes, capabilities & IBS_CAPS_ZEN4, &op))
        return;
    uint64_t data_src = sample->data_src;
    if (!(data_src & OP_MASK & ~OP_NONE))
        data_src = op.data_src;
    access->has_address = op.has_address;
    access->address = op.address;
    access->is_no_access = !op.is_load && !op.is_store && !op.is_swpf;
    access->metrics = mem_metrics_sig(data_src);
    if (!access->lat_cycles)
        access->lat_cycles = op.lat_cycles;
}

bool access_of_record_sig(const struct arena_event *plan, const struct ring_record *record, struct access *access)
{
    struct abi_sample sample;
    struct abi_layout layout = abi_layout_of_sig(&plan->attr);
    layout.is_swapped = access_is_swapped_sig(plan);
    if (!abi_sample_parse_sig(record->bytes, record->header.size, &layout, &sample))
        return false;
    unsigned mode = record->header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
    bool has_address = plan->flags & EVENT_ADDRESS && sample.present & PERF_SAMPLE_ADDR;
    *access = (struct access){.has_address = has_address && (sample.addr || !(plan->flags & EVENT_DATA_SRC)),
                              .is_exact = record->header.misc & PERF_RECORD_MISC_EXACT_IP,
                              .is_in_kernel = mode == PERF_RECORD_MISC_KERNEL,
                              .has_cpu = sample.present & PERF_SAMPLE_CPU,
                              .cpu = sample.cpu,
                              .address = sample.addr,
                              .ip = sample.ip,
                              .period = sample.period,
                              .lat_cycles = sample.weight,
                              .callchain = sample.callchain};
    if (!(plan->flags & EVENT_DATA_SRC))
        return true;
    if (sample.present & PERF_SAMPLE_DATA_SRC)
        access->metrics = mem_metrics_sig(sample.data_src);
    if ((plan->decode & EVENT_DECODE_MASK) == MEM_DECODE_IBS_RAW)
        take_ibs_sig(&sample, layout.is_swapped, access);
    access_close_sig(access);
    return true;
}

void access_of_spe_sig(const struct arena_event *plan, const struct spe_record *record, struct access *access)
{
    uint64_t data_src = spe_data_src_sig(record, (enum spe_sources)(plan->decode >> EVENT_DECODE_SHIFT));
    *access = (struct access){.has_address = record->has_address && record->address,
                              .is_exact = true,
                              .is_no_access = !record->is_load && !record->is_store && !record->is_atomic,
                              .address = record->address,
                              .ip = record->pc,
                              .period = plan->attr.sample_period,
                              .lat_cycles = record->total_cycles};
    access->metrics = mem_metrics_sig(data_src);
    access_close_sig(access);
}
