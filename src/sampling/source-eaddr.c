/* SPDX-License-Identifier: BSD-3-Clause */
/* EADDR: data addresses found in software. It uses a task-clock event in user mode only (so no system call is ever
 * interrupted); the handler computes the address from the stalled instruction. Where perf is refused, a thread CPU-time
 * timer takes samples: fewer, each weighted by the CPU time since the last. Ordinary code of the launcher. */
#include <stdio.h>

#include "sampling/machine.h"
#include "sampling/probe.h"

#define DEFAULT_HZ 1000

#define NOT_X86 "software addresses are worked out of x86-64 instructions only"

static bool is_x86(void)
{
    struct machine_cpu cpu;
    machine_cpu(&cpu);
    if (machine_is_fixture())
        return cpu.vendor != CPU_POWER && cpu.vendor != CPU_ARM;
#ifdef __x86_64__
    return true;
#else
    return false;
#endif
}

static void probe(struct source_probe *out)
{
    if (is_x86())
        source_clock_probe(out);
    else
        *out = (struct source_probe){.reason = NOT_X86, .fix = "none on this architecture; FAULTS and CPUTIME work"};
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    static const struct source_clock clock = {
        .source = SOURCE_NUMBER_EADDR,
        .flags = SOURCE_ADDRESS,
        .metric = "EADDR (usec)",
        .description = "CPU time stalled at instructions, by the data address they used (worked out in software)",
        .default_hz = DEFAULT_HZ,
    };
    if (!is_x86())
        return error_set(err, ERR_UNSUPPORTED, "%s: " NOT_X86 ".", event);
    return source_clock_plan(&clock, event, threshold, out, err);
}

const struct sample_source source_eaddr = {
    .name = "EADDR",
    .summary = "CPU time by data address, worked out in software from the stalled instruction (no PMU needed)",
    .datacentric_rank = 10,
    .probe = probe,
    .plan = plan,
};
