/* SPDX-License-Identifier: BSD-3-Clause */
/* Skid self-test: does an interrupted program counter point right after the instruction that stalled? Software
 * addresses are only as good as this rule. So it is measured once for each combination of processor, microcode, kernel
 * and hypervisor, with loops whose stalling instruction is known. Ordinary code (the launcher). */
#ifndef LOCUS_SAMPLING_SKID_H
#define LOCUS_SAMPLING_SKID_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define SKID_KERNELS 4
#define SKID_TRIGGER_PERF "task-clock"
#define SKID_TRIGGER_TIMER "cpu-timer" /* where perf is refused */
#define SKID_KEY_BYTES 128
#define CACHE_WALKS_MAX 4
#define CACHE_SIZES_MAX 32
#define CACHE_LEVELS 3

/* Decides whether an earlier measurement is still valid. */
struct skid_key {
    char cpu[SKID_KEY_BYTES];        /* model name, family, model, stepping */
    char microcode[SKID_KEY_BYTES];  /* revision, or "unknown" */
    char kernel[SKID_KEY_BYTES];     /* uname release */
    char hypervisor[SKID_KEY_BYTES]; /* vendor signature, or "none" */
};

/* Samples of one loop, by the position of the program counter. */
struct skid_kernel {
    uint32_t n_at;        /* at the stalling instruction itself */
    uint32_t n_next;      /* at the instruction after it */
    uint32_t n_elsewhere; /* at any other instruction of the loop */
};

enum skid_rule {
    SKID_UNKNOWN = 0, /* too few samples, or no self-test for this architecture */
    SKID_HOLDS = 1,   /* >= 90 % of the samples in the loops with loads point right after the load */
    SKID_FAILS = 2
};

/* What the caches do, as measured: the time of a load that depends on the one before, from data of each size in random
 * order. What the processor claims of its caches may be another machine's, or be shared with others. */
struct cache_curve {
    uint32_t n_sizes; /* 0: not measured */
    uint32_t n_cpus;  /* that ran at once for all_ps */
    uint32_t is_huge; /* 1: in huge pages; 0: the times hold misses of the translation buffers */
    struct cache_point {
        uint32_t kib;      /* of data */
        uint32_t alone_ps; /* picoseconds of a load, one processor alone */
        uint32_t all_ps;   /* the same while all processors do so; 0: not measured */
    } sizes[CACHE_SIZES_MAX];
    uint32_t n_walks; /* 0: not measured, as where there are no huge pages */
    struct cache_walk {
        uint32_t kib;               /* of data, in random order */
        uint32_t small_ps, huge_ps; /* of a load that depends on the one before, in pages of 4 KiB and of 2 MiB */
        uint32_t small_apart_ps, huge_apart_ps; /* of loads that do not */
    } walks[CACHE_WALKS_MAX];
    uint32_t tlb_kib; /* memory in pages of the smallest size whose translations are at hand; 0: not known */
};

/* The sizes up to which data are served by each level of the caches, and how fast, worked out from the curve. */
struct cache_effect {
    uint32_t kib[CACHE_LEVELS];          /* one processor alone; 0: not known */
    uint32_t all_kib;                    /* the third level, for each processor while all work; 0: not known */
    uint32_t level_ps[CACHE_LEVELS + 1]; /* of a load from each level, and from memory; 0: not known */
};

struct skid_result {
    struct skid_key key;
    char trigger[32]; /* SKID_TRIGGER_... */
    struct skid_kernel kernels[SKID_KERNELS];
    uint32_t rule;     /* enum skid_rule */
    uint32_t tick_ns;  /* what a sample costs whose handler does nothing, kernel included: the lower quartile; 0: not
                        * known */
    uint32_t touch_ps; /* what the first touch of a page of 4 KiB takes of the time that samples in user mode show; 0:
                        * not known, or next to nothing */
    struct cache_curve caches;
    bool is_from_cache;
};

/* Short name ("k1") and one line of description of a kernel, 0 <= i < SKID_KERNELS; static storage. */
const char *skid_kernel_name(unsigned i);
const char *skid_kernel_text(unsigned i);

/* Runs the loops and measures the caches in child processes (about 1 s of CPU time; nothing changes in the calling
 * process), and judges the counts. The caches are left out where it takes longer.
 * err: ERR_UNSUPPORTED not x86-64, or neither perf nor CPU-time timers work; ERR_IO fork or memory refused */
int skid_measure(struct skid_result *result, struct error *err);

/* Like skid_measure(), but takes the result from cache_dir (NULL: no cache) when it has one for this machine. One
 * process per node measures and the others wait for it; if the directory cannot be written, the result is not kept. */
int skid_get(const char *cache_dir, struct skid_result *result, struct error *err);

/* Reads the text of a cache file; false when it is damaged or belongs to a machine other than key's. */
bool skid_cache_read(FILE *file, const struct skid_key *key, struct skid_result *result);

/* The result as one JSON object in text [n_bytes], percentages with one digit, ended by NUL; returns its length, or -1
 * when it does not fit. */
int skid_to_json(const struct skid_result *result, char *text, size_t n_bytes);

/* --- the caches --- */

/* Fills in the curve, in child processes, with at most an eighth of the memory that is free, also by the limits of
 * control groups. n_sizes stays 0 where that is less than 64 MiB, where memory or processes are refused, or where it
 * takes more than wall_ms: then others use the machine, and what it has is not seen.  ctx: ordinary */
void cache_curve_measure(struct cache_curve *curve, uint32_t wall_ms);

/* Works out the levels; all of *effect is set. A level ends where a load takes the geometric mean of its own time and
 * the next level's; the time of a level is taken at sizes where it serves by what the machine claims of the levels
 * before it. claimed [CACHE_LEVELS]: bytes of each level of the caches, 0 not known (sizes that are common are taken).
 */
void cache_curve_judge(const struct cache_curve *curve, const uint64_t claimed[CACHE_LEVELS],
                       struct cache_effect *effect);

/* What the C library says of this machine's caches, bytes of each level, 0 not known. */
void cache_claims(uint64_t claimed[CACHE_LEVELS]);

/* --- the loops --- */

/* The loops of the skid self-test (skid-kernels.S, x86-64) and the handler that sorts samples into them. */

/* One loop: it lies between from and to; stall and next are the stalling instruction and the one after it. run makes
 * n_turns turns over memory [mask + 64 bytes]; position is passed on from call to call. */
struct skid_loop {
    const char *from, *stall, *next, *to;
    uint64_t (*run)(uint64_t position, uint64_t n_turns, void *memory, uint64_t mask);
};

/* [SKID_KERNELS]; static storage, all NULL where there are none for this architecture. */
const struct skid_loop *skid_loops(void);

/* Starts counting samples of one loop into *kernel (NULL: stop).  ctx: any */
void skid_count_sig(const struct skid_loop *loop, struct skid_kernel *kernel);

/* Signals handled so far.  ctx: any */
uint32_t skid_n_handled_sig(void);

/* The handler (SA_SIGINFO).  ctx: signal handler */
void skid_sample_sig(int signo, siginfo_t *info, void *context);

#endif
