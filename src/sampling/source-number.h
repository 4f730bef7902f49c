/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of sources and flags of events as they go into struct source_event. They equal SOURCE_x and EVENT_x of
 * arena/arena.h, which this folder must not include; the launcher asserts it where it copies the plan. */
#ifndef LOCUS_SAMPLING_SOURCE_NUMBER_H
#define LOCUS_SAMPLING_SOURCE_NUMBER_H

enum source_number {
    SOURCE_NUMBER_EADDR = 1,
    SOURCE_NUMBER_FAULTS,
    SOURCE_NUMBER_CPUTIME,
    SOURCE_NUMBER_REALTIME,
    SOURCE_NUMBER_MEMLEAK,
    SOURCE_NUMBER_PERF,
    SOURCE_NUMBER_PMU_ADDR
};

#define SOURCE_WEIGHTED 1u  /* the value comes from weights, not from counts */
#define SOURCE_TIMER 2u     /* POSIX timer instead of perf */
#define SOURCE_RING 4u      /* needs a mapped ring */
#define SOURCE_ADDRESS 8u   /* yields data addresses */
#define SOURCE_INTEGER 16u  /* integer in the profile */
#define SOURCE_WALLCLOCK 32u /* timer on CLOCK_MONOTONIC */
#define SOURCE_RING_ONLY 64u /* no signal */
#define SOURCE_DATA_SRC 128u /* records tell level, latency and so on of the access */
#define SOURCE_BATCH 256u    /* large-buffer mode: many records a signal, no call path */
#define SOURCE_AUX 512u      /* records in an AUX area (Arm SPE) */
#define SOURCE_SILENT 1024u  /* leads a group, gives no samples of its own */
#define SOURCE_KERNEL 2048u  /* records carry a kernel call chain */
#define SOURCE_REPLAY 4096u  /* a file takes the place of the kernel and the hardware */
#define SOURCE_SWAPPED 8192u /* SOURCE_REPLAY: from a machine of the other byte order */
#define SOURCE_RECORD 16384u /* the ring of the first thread is copied to a file */

#endif
