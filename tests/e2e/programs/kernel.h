/* SPDX-License-Identifier: BSD-3-Clause */
/* Frame of the programs whose answer is known by construction. A program either works in phases, one variable each,
 * and its truth is the CPU time of the phases (phase timers); or in one loop over several variables, and its truth is
 * the time saved when one of them is made so small that it stays in the first-level cache (resident).
 *
 * usage: PROGRAM [--truth] [SECONDS]      CPU seconds of the run, default 2.5
 * With --truth lines "truth <variable> <percent>" are printed at the end. */
#ifndef LOCUS_TESTS_E2E_KERNEL_H
#define LOCUS_TESTS_E2E_KERNEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KERNEL_NOINLINE __attribute__((noinline))
#define KERNEL_LINE 64u

/* The profiler's own functions, when it is there: under "hpcrun -ds" only the run itself is sampled, not the filling of
 * the arrays before it. */
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void hpctoolkit_sampling_start(void);
__attribute__((weak)) void hpctoolkit_sampling_stop(void);
#ifdef __cplusplus
}
#endif

static inline void kernel_begin(void)
{
    if (hpctoolkit_sampling_start)
        hpctoolkit_sampling_start();
}

static inline void kernel_end(void)
{
    if (hpctoolkit_sampling_stop)
        hpctoolkit_sampling_stop();
}

struct kernel_options {
    int is_truth;
    double seconds;
};

/* A phase works on one variable until it has used weight / sum of weights of the run's CPU time. */
struct kernel_phase {
    const char *variable;
    uint64_t (*run)(uint64_t n_turns);
    double weight;
    double seconds;
};

static volatile uint64_t kernel_sink; /* results go here, so that no loop is dropped */

static inline double kernel_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline struct kernel_options kernel_options(int argc, char **argv)
{
    struct kernel_options options = {0, 2.5};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--truth") == 0)
            options.is_truth = 1;
        else
            options.seconds = atof(argv[i]);
    }
    if (options.seconds <= 0) {
        (void)fprintf(stderr, "usage: %s [--truth] [SECONDS]\n", argv[0]);
        exit(2);
    }
    return options;
}

static inline void *kernel_check(void *memory)
{
    if (!memory) {
        (void)fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static inline uint64_t kernel_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Lets the phases take turns of about 10 ms until each has had its time. */
static inline void kernel_run_phases(const struct kernel_options *options, struct kernel_phase *phases, unsigned n)
{
    double weights = 0, done = 0;
    for (unsigned p = 0; p < n; p++)
        weights += phases[p].weight;
    while (done < 1) {
        done += 0.01 / options->seconds;
        for (unsigned p = 0; p < n; p++)
            while (phases[p].seconds < done * options->seconds * phases[p].weight / weights) {
                double start = kernel_now();
                kernel_sink += phases[p].run(20000);
                phases[p].seconds += kernel_now() - start;
            }
    }
}

static inline void kernel_print_phases(const struct kernel_phase *phases, unsigned n)
{
    double sum = 0;
    for (unsigned p = 0; p < n; p++)
        sum += phases[p].seconds;
    for (unsigned p = 0; p < n; p++)
        printf("truth %s %.1f\n", phases[p].variable, 100 * phases[p].seconds / sum);
}

/* The whole main function of a program in phases. */
static inline int kernel_phases_main(int argc, char **argv, struct kernel_phase *phases, unsigned n)
{
    struct kernel_options options = kernel_options(argc, argv);
    kernel_begin();
    kernel_run_phases(&options, phases, n);
    kernel_end();
    if (options.is_truth)
        kernel_print_phases(phases, n);
    return 0;
}

enum kernel_method {
    KERNEL_ALONE,     /* each variable made small alone */
    KERNEL_SHARED,    /* two that disturb each other: the mean of what each saves alone and after the other */
    KERNEL_NORMALIZED /* each alone, bandwidth-bound: the savings are shares of their sum, not of the time */
};

/* One loop over several variables; bit i of resident makes variable i small. */
struct kernel_loop {
    uint64_t (*run)(uint64_t n_turns, unsigned resident);
    const char *variables[4]; /* ended by NULL; those with a truth */
    enum kernel_method method;
};

/* Variables that are small in variant v: none, the first, the second, with KERNEL_SHARED both. */
static inline unsigned kernel_resident(const struct kernel_loop *loop, unsigned v)
{
    if (loop->method == KERNEL_SHARED)
        return v;
    return v == 0 ? 0 : 1u << (v - 1);
}

/* Shortest of several runs of each variant, in turns, so that a disturbance does not hit one of them alone. */
static inline void kernel_times(const struct kernel_loop *loop, uint64_t n_turns, unsigned n, double *best)
{
    for (int attempt = 0; attempt < 9; attempt++)
        for (unsigned v = 0; v < n; v++) {
            double start = kernel_now();
            kernel_sink += loop->run(n_turns, kernel_resident(loop, v));
            double seconds = kernel_now() - start;
            best[v] = attempt == 0 || seconds < best[v] ? seconds : best[v];
        }
}

static inline void kernel_print_loop(const struct kernel_loop *loop, uint64_t n_turns)
{
    double best[5] = {0}, saved[5] = {0}, sum = 0;
    unsigned n = 1;
    while (loop->variables[n - 1])
        n++;
    kernel_times(loop, n_turns, loop->method == KERNEL_SHARED ? 4 : n, best);
    for (unsigned v = 1; v < n; v++) {
        saved[v] = best[0] - best[v];
        if (loop->method == KERNEL_SHARED)
            saved[v] = (saved[v] + best[3 - v] - best[3]) / 2;
        saved[v] = saved[v] > 0 ? saved[v] : 0;
        sum += saved[v];
    }
    double whole = loop->method == KERNEL_NORMALIZED ? sum : best[0];
    for (unsigned v = 1; v < n; v++)
        printf("truth %s %.1f\n", loop->variables[v - 1], 100 * saved[v] / whole);
}

/* The whole main function of a program with one loop: the truth comes from a run of its own, because a profile must
 * hold the full loop only. */
static inline int kernel_loop_main(int argc, char **argv, const struct kernel_loop *loop, uint64_t n_turns)
{
    struct kernel_options options = kernel_options(argc, argv);
    double start = kernel_now();
    if (options.is_truth) {
        kernel_print_loop(loop, n_turns);
        return 0;
    }
    kernel_begin();
    while (kernel_now() - start < options.seconds)
        kernel_sink += loop->run(n_turns / 8 ? n_turns / 8 : 1, 0);
    kernel_end();
    return 0;
}

/* A case of a program that shows what a change saves: as it is written [0], and changed [1]. */
struct kernel_case {
    const char *name;
    void (*make[2])(void);    /* NULL: nothing to make */
    uint64_t (*run[2])(void); /* returns the steps */
};

/* The whole main function of a program of such cases. Sets *seconds first; prints the nanoseconds of a step.
 * usage: PROGRAM CASE plain|changed SECONDS */
static inline int kernel_cases_main(int argc, char **argv, const struct kernel_case *cases, size_t n_cases,
                                    double *seconds)
{
    unsigned is_changed = argc == 4 && strcmp(argv[2], "changed") == 0;
    *seconds = argc == 4 ? atof(argv[3]) : 0;
    for (size_t i = 0; *seconds > 0 && i < n_cases; i++) {
        uint64_t n = 0;
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        if (cases[i].make[is_changed])
            cases[i].make[is_changed]();
        double start = kernel_now(), used = 0;
        for (; used < *seconds; used = kernel_now() - start)
            n += cases[i].run[is_changed]();
        printf("%.3f\n", used * 1e9 / (double)n);
        return 0;
    }
    (void)fprintf(stderr, "usage: %s CASE plain|changed SECONDS\n", argv[0]);
    return 2;
}

/* Nodes of one line each, linked to one cycle in random order. */
struct kernel_node {
    uint64_t payload;
    struct kernel_node *next;
    uint64_t rest[6];
};

static inline void kernel_link(struct kernel_node *nodes, uint64_t n)
{
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < n; i++)
        nodes[i] = (struct kernel_node){i, &nodes[i], {0}};
    for (uint64_t i = n - 1; i > 0; i--) {
        uint64_t other = kernel_random(&state) % i;
        struct kernel_node *next = nodes[i].next;
        nodes[i].next = nodes[other].next;
        nodes[other].next = next;
    }
}

static inline void kernel_fill(uint64_t *words, uint64_t n)
{
    uint64_t state = 2463534242u;
    for (uint64_t i = 0; i < n; i++)
        words[i] = kernel_random(&state);
}

/* Random reads, each from where the last one said: latency-bound, n a power of two. */
static inline uint64_t kernel_walk(const uint64_t *words, uint64_t n, uint64_t n_turns)
{
    static uint64_t position;
    uint64_t at = position;
    for (uint64_t i = 0; i < n_turns; i++)
        at = words[(at + i) & (n - 1)];
    position = at;
    return at;
}

#endif
