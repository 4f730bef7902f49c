/* SPDX-License-Identifier: BSD-3-Clause */
/* causes: loops of which it is known how much of their time is waiting for memory. Each has a resident twin: the same
 * code over data that stays in the first-level cache, so that the twin's time is execution and the difference memory.
 *
 * usage: causes LOOP [--truth] [SECONDS]      CPU seconds of the loop itself, default 2.5
 *        causes --list                        names of the loops
 * With --truth original and twins take turns, and the medians over all rounds are printed:
 *     truth: loop LOOP variable VARIABLE memory PERCENT low PERCENT high PERCENT least PERCENT most PERCENT
 *     timer: loop LOOP variable VARIABLE time PERCENT
 * VARIABLE is "all" for what all of them cost, else one or several variables, joined by +, that have a twin together.
 * Half of the rounds lie between low and high. Where one wait hides behind another, what a variable costs depends on
 * which others are resident already: memory is the mean over all orders, least and most are the ends. The second line
 * is printed by programs in parts: the time of the part that works on the variable. Under "hpcrun -ds" turns of the
 * original are sampled that count for the profile alone, so that profile and truth are of the same minutes, and the
 * truth holds no time of the profiler's.
 * Exit status 77: the processor lacks what the loop needs. */
#ifndef LOCUS_TESTS_E2E_CAUSES_H
#define LOCUS_TESTS_E2E_CAUSES_H

#include <stddef.h>
#include <stdint.h>

#include "../kernel.h"

#define CAUSE_GROUPS 3 /* of variables with a twin of their own */
#define CAUSE_PARTS 5
#define CAUSE_THREADS 2
#define CAUSE_ALL (~0u) /* all groups resident */

/* The loops are compiled as they stand, for any of the sizes that they are called with. */
#if defined(__clang__)
#define CAUSE_LOOP __attribute__((noinline))
#else
#define CAUSE_LOOP __attribute__((noipa))
#endif

struct cause_part {
    const char *loop;
    double weight;      /* of its time in the program */
    unsigned group;     /* whose bit makes it resident; CAUSE_GROUPS: it is resident anyway */
    const char *timers; /* the variable that it works on */
};

/* One row of the truth: a loop, or a program in parts. */
struct cause_row {
    const char *name;
    const char *groups[CAUSE_GROUPS + 1];                              /* ended by NULL */
    void (*make)(uint64_t size);                                       /* allocates and fills what the loop needs */
    void (*run)(uint64_t n_turns, unsigned resident, unsigned thread); /* bit g of resident: group g is */
    uint64_t size;                                                     /* of the data, in units of the loop */
    unsigned n_threads;                                                /* 0 and 1: the main thread alone */
    unsigned needs_avx2;
    struct cause_part parts[CAUSE_PARTS + 1]; /* ended by a NULL name; with parts neither make nor run */
};

/* Rows ended by a NULL name, by the file that they are in. */
extern const struct cause_row cause_streams[], cause_irregular[], cause_solvers[], cause_programs[];

/* Results go here, so that no loop is dropped. */
static inline void cause_keep(double result)
{
    __asm__ volatile("" : : "x"(result));
}

static inline void cause_keep_word(uint64_t result)
{
    __asm__ volatile("" : : "r"(result));
}

/* The next of a series that no predictor learns. */
static inline uint64_t cause_random(uint64_t *state)
{
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

/* Numbers around centre, at most spread away. */
void cause_fill(double *numbers, uint64_t n, double centre, double spread);

/* Indexes below n. */
void cause_fill_indexes(uint32_t *indexes, uint64_t n_indexes, uint64_t n);

#endif
