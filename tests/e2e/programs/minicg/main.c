/* SPDX-License-Identifier: BSD-3-Clause */
/* minicg [--side N] [--steps N] [--iterations N] [--truth]: see minicg.h. */
#include "minicg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct options {
    int side, n_steps, n_iterations;
    int truth;
};

/* User mode only: page faults at the start belong to the kernel. */
static double process_user_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
}

static int parse(struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int *number = strcmp(argv[i], "--side") == 0         ? &options->side
                      : strcmp(argv[i], "--steps") == 0      ? &options->n_steps
                      : strcmp(argv[i], "--iterations") == 0 ? &options->n_iterations
                                                             : NULL;
        if (number && i + 1 < argc)
            *number = atoi(argv[++i]);
        else if (strcmp(argv[i], "--truth") == 0)
            options->truth = 1;
        else
            return 0;
    }
    return options->side >= 4 && options->side <= 512 && options->n_steps > 0 && options->n_iterations > 0;
}

static void print_phases(const struct timers *timers, double total_s)
{
    static const char *const names[N_PHASES] = {"material", "sources", "operator", "vectors"};
    double sum_s = 0;
    for (int i = 0; i < N_PHASES; i++) {
        printf("phase %-10s %6.2f s CPU  %5.1f %%\n", names[i], timers->phase_s[i], 100 * timers->phase_s[i] / total_s);
        sum_s += timers->phase_s[i];
    }
    printf("phase %-10s %6.2f s CPU  %5.1f %%\n", "other", total_s - sum_s, 100 * (total_s - sum_s) / total_s);
}

int main(int argc, char **argv)
{
    struct options options = {.side = 160, .n_steps = 4, .n_iterations = 4};
    if (!parse(&options, argc, argv)) {
        fprintf(stderr, "usage: minicg [--side N] [--steps N] [--iterations N] [--truth]\n");
        return 2;
    }
    struct mesh mesh;
    struct sources sources;
    struct state state;
    struct timers timers = {{0}};
    const struct lens clear = {(size_t)-1, (size_t)-1, (size_t)-1};
    mesh_build(&mesh, options.side);
    sources_build(&sources, &mesh, mesh.n_nodes * 4);
    state_build(&state, &mesh);
    for (int step = 0; step < options.n_steps; step++) {
        double residual = solver_step(&mesh, &sources, &state, options.n_iterations, &clear, &timers);
        printf("step %2d  residual %.3e\n", step + 1, residual);
    }
    double total_s = process_user_s();
    print_phases(&timers, total_s);
    if (options.truth)
        truth_print(&mesh, &sources, &state, options.n_iterations, options.n_steps, total_s);
    int n_history = 0;
    const double *history = solver_history(&n_history);
    printf("last residual norm %.6e after %d iterations\n", history[n_history - 1], n_history);
    state_free(&state);
    sources_free(&sources);
    mesh_free(&mesh);
    return 0;
}
