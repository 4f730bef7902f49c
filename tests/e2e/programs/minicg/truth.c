/* SPDX-License-Identifier: BSD-3-Clause */
/* What the arrays of minicg cost, measured without a profiler: each phase that touches one array at random is run
 * again with that array made resident in the first-level cache; the difference in CPU time is the array's. */
#include "minicg.h"

#include <stdio.h>

enum { REPEATS = 3, RESIDENT_MASK = 1023 };

static double smallest(const double *values_s, int n)
{
    double least = values_s[0];
    for (int i = 1; i < n; i++)
        least = values_s[i] < least ? values_s[i] : least;
    return least;
}

/* CPU seconds of a phase in one step under the lens; the least of several. */
static double phase_s(const struct mesh *mesh, const struct sources *sources, struct state *state, int n_iterations,
                      const struct lens *lens, enum phase phase)
{
    double spent_s[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        struct timers timers = {{0}};
        (void)solver_step(mesh, sources, state, n_iterations, lens, &timers);
        spent_s[i] = timers.phase_s[phase];
    }
    return smallest(spent_s, REPEATS);
}

static void print_share(const char *array, const char *class, double full_s, double resident_s, int n_steps,
                        double total_s)
{
    printf("%s,%s,%.1f,%.1f\n", array, class, 100 * (full_s - resident_s) * n_steps / total_s,
           100 * full_s * n_steps / total_s);
}

void truth_print(const struct mesh *mesh, const struct sources *sources, struct state *state, int n_iterations,
                 int n_steps, double total_s)
{
    static const struct {
        const char *array, *class;
        enum phase phase;
        struct lens lens;
    } cases[] = {
        {"p", "heap", PHASE_OPERATOR, {RESIDENT_MASK, (size_t)-1, (size_t)-1}},
        {"capacity_table", "static", PHASE_MATERIAL, {(size_t)-1, RESIDENT_MASK, (size_t)-1}},
        {"rhs", "heap", PHASE_SOURCES, {(size_t)-1, (size_t)-1, RESIDENT_MASK}},
    };
    static const struct lens clear = {(size_t)-1, (size_t)-1, (size_t)-1};
    printf("variable,class,share,phase_share\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double full_s = phase_s(mesh, sources, state, n_iterations, &clear, cases[i].phase);
        double resident_s = phase_s(mesh, sources, state, n_iterations, &cases[i].lens, cases[i].phase);
        print_share(cases[i].array, cases[i].class, full_s, resident_s, n_steps, total_s);
    }
}
