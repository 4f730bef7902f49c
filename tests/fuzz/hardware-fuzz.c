/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what hardware writes: any bytes are a stream of SPE packets, and the registers of an IBS
 * sample. Streams must be used up to their last whole record, lost bytes counted once, and levels at most one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/ibs.h"
#include "sampling/abi/spe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

static void check_metrics(uint64_t data_src, int is_memory)
{
    uint32_t metrics = mem_metrics_sig(data_src);
    int n_operations = __builtin_popcount(metrics & (1u << MEM_LOAD | 1u << MEM_STORE));
    check(n_operations == is_memory && !(metrics & 1u << MEM_OTHER_OP), "the operation got lost");
    check(__builtin_popcount(metrics & MEM_LEVEL_METRICS) <= is_memory, "two levels are counted");
}

static void check_stream(const uint8_t *data, size_t n_bytes)
{
    uint64_t n_garbage = 0, sum = 0;
    for (size_t at = 0; at < n_bytes;) {
        struct spe_record record, again;
        uint64_t n_before = n_garbage, n_again = 0;
        size_t n_used = spe_record_parse_sig(data + at, n_bytes - at, &record, &n_garbage);
        check(n_used <= n_bytes - at, "more is used than there is");
        check(n_used || n_garbage == n_before, "garbage is counted although nothing is used");
        if (!n_used)
            break;
        check(n_garbage - n_before < n_used, "garbage is counted twice");
        check(spe_record_parse_sig(data + at, n_used, &again, &n_again) == n_used && again.pc == record.pc &&
                  n_again == n_garbage - n_before,
              "a record depends on what follows it");
        for (unsigned sources = 0; sources <= SPE_SOURCES_AMPERE; sources++)
            check_metrics(spe_data_src_sig(&record, sources), record.is_load || record.is_store);
        check(record.has_address || !record.address, "an address came from nowhere");
        sum += record.timestamp + record.context + record.phys_address;
        at += n_used;
    }
    check(sum != UINT64_MAX || n_bytes, "the compiler may not drop the sum");
}

static void check_registers(const uint8_t *data, size_t n_bytes)
{
    struct ibs_op op;
    for (int is_zen4 = 0; is_zen4 < 2; is_zen4++) {
        bool is_whole = ibs_op_parse_sig(data, n_bytes, is_zen4, &op);
        check(is_whole == (n_bytes >= 60), "the number of registers is not seen");
        check(op.has_address || !op.address, "an address came from nowhere");
        check(!(op.width_bytes & (op.width_bytes - 1)) && op.width_bytes <= 64, "a width is no power of two");
        if (is_whole)
            check_metrics(op.data_src, op.is_load || op.is_store);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    uint8_t *copy = malloc(len_bytes ? len_bytes : 1);
    if (!copy)
        return 0;
    if (len_bytes)
        memcpy(copy, data, len_bytes);
    check_stream(copy, len_bytes);
    check_registers(copy, len_bytes);
    free(copy);
    return 0;
}
