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

struct skid_result {
    struct skid_key key;
    char trigger[32]; /* SKID_TRIGGER_... */
    struct skid_kernel kernels[SKID_KERNELS];
    uint32_t rule;    /* enum skid_rule */
    uint32_t tick_ns; /* what a sample costs whose handler does nothing, kernel included: the lower quartile; 0: not
                       * known */
    bool is_from_cache;
};

/* Short name ("k1") and one line of description of a kernel, 0 <= i < SKID_KERNELS; static storage. */
const char *skid_kernel_name(unsigned i);
const char *skid_kernel_text(unsigned i);

/* Runs the loops in a child process (about 0.2 s of CPU time; nothing changes in the calling process) and judges the
 * counts.
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
