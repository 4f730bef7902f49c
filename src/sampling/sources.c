/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of sample sources: one row per source-x.c. Ordinary code of the launcher. */
#include <stddef.h>

#include "sampling/probe.h"

extern const struct sample_source source_eaddr, source_faults, source_cputime, source_realtime, source_memleak,
    source_blocktime, source_io, source_ibs, source_pebs, source_perf, source_power, source_replay, source_sched,
    source_spe;

const struct sample_source *const *source_table(void)
{
    static const struct sample_source *const table[] = {
        &source_pebs,   &source_ibs,     &source_power,    &source_spe,     &source_eaddr,
        &source_faults, &source_cputime, &source_realtime, &source_memleak, &source_blocktime,
        &source_io,     &source_sched,   &source_perf,     &source_replay,  NULL,
    };
    return table;
}
