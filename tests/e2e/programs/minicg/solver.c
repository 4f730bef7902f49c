/* SPDX-License-Identifier: BSD-3-Clause */
/* The time step of minicg: material law, sources, and conjugate gradients with a diagonal preconditioner. Each loop
 * belongs to one phase; each thread adds its own CPU time, so that waiting at barriers counts for no phase. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "minicg.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static double capacity_table[(size_t)MATERIALS * TEMPERATURE_BINS];
static double residual_history[MAX_HISTORY];
static int n_history;

static const double conductivity = 0.2;

static double thread_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void charge(struct timers *timers, enum phase phase, double since_s)
{
    double spent_s = thread_cpu_s() - since_s;
#pragma omp atomic
    timers->phase_s[phase] += spent_s;
}

void state_build(struct state *state, const struct mesh *mesh)
{
    size_t n_bytes = (size_t)mesh->n_nodes * sizeof(double);
    state->temperature = malloc(n_bytes);
    require(state->temperature, "temperature");
    state->capacity = malloc(n_bytes);
    require(state->capacity, "capacity");
    state->rhs = malloc(n_bytes);
    require(state->rhs, "rhs");
    state->r = malloc(n_bytes);
    require(state->r, "r");
    state->p = malloc(n_bytes);
    require(state->p, "p");
    state->q = malloc(n_bytes);
    require(state->q, "q");
    state->z = malloc(n_bytes);
    require(state->z, "z");
    state->inv_diag = malloc(n_bytes);
    require(state->inv_diag, "inv_diag");
    for (unsigned i = 0; i < MATERIALS * TEMPERATURE_BINS; i++)
        capacity_table[i] = (double)(i * 2654435761u >> 20) * (TEMPERATURE_BINS / 4096.0);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < mesh->n_nodes; i++) {
        state->temperature[i] = 100.0 + (double)((unsigned)i * 2654435761u % 4096u) * (1.0 / 16.0);
        state->capacity[i] = state->rhs[i] = state->inv_diag[i] = 0.0;
        state->p[i] = state->q[i] = state->r[i] = state->z[i] = 0.0;
    }
}

void state_free(struct state *state)
{
    free(state->temperature);
    free(state->capacity);
    free(state->rhs);
    free(state->r);
    free(state->p);
    free(state->q);
    free(state->z);
    free(state->inv_diag);
}

const double *solver_history(int *n)
{
    *n = n_history;
    return residual_history;
}

/* Heat capacity by material and temperature, found by a fixed-point search in the row of the material; the system
 * matrix is diag(capacity) + conductivity * Laplacian. */
static void update_material(const struct mesh *mesh, struct state *state, const struct lens *lens,
                            struct timers *timers)
{
    const double *temperature = state->temperature;
    double *capacity = state->capacity;
    size_t mask = lens->table;
#pragma omp parallel
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < mesh->n_nodes; i++) {
            size_t row = (size_t)mesh->material[i] * TEMPERATURE_BINS;
            double value = temperature[i] * TEMPERATURE_BINS; /* fine bins: the mesh soon is nearly isothermal */
            for (int k = 0; k < LAW_STEPS; k++) {
                size_t bin = (size_t)(int)value & (TEMPERATURE_BINS - 1);
                value = capacity_table[(row + bin) & mask];
            }
            capacity[i] = 1.0 + value * (1.0 / TEMPERATURE_BINS);
        }
        charge(timers, PHASE_MATERIAL, since_s);
    }
}

/* rhs = capacity * temperature + deposited energy. */
static void deposit_sources(const struct sources *sources, const struct state *state, const struct lens *lens,
                            struct timers *timers)
{
    double *rhs = state->rhs;
    size_t mask = lens->rhs;
#pragma omp parallel
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int b = 0; b < BLOCKS; b++) {
            double *block_rhs = rhs + sources->first_node[b];
            for (int k = sources->block_start[b]; k < sources->block_start[b + 1]; k++)
                block_rhs[(size_t)sources->particle_offset[k] & mask] += sources->particle_energy[k];
        }
        charge(timers, PHASE_SOURCES, since_s);
    }
}

/* q = A p; returns p . q. */
static double apply_operator(const struct mesh *mesh, struct state *state, const struct lens *lens,
                             struct timers *timers)
{
    const double *p = state->p, *capacity = state->capacity;
    double *q = state->q;
    size_t mask = lens->p;
    double dot = 0;
#pragma omp parallel reduction(+ : dot)
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < mesh->n_nodes; i++) {
            const int *neighbour = mesh->neighbour + (size_t)i * NEIGHBOURS;
            double sum = 0;
            for (int k = 0; k < NEIGHBOURS; k++)
                sum += p[(size_t)neighbour[k] & mask];
            double own = p[i];
            q[i] = capacity[i] * own + conductivity * (NEIGHBOURS * own - sum);
            dot += own * q[i];
        }
        charge(timers, PHASE_OPERATOR, since_s);
    }
    return dot;
}

/* r = rhs - A x with x in p, then the first direction; returns r . z. */
static double start_iteration(const struct mesh *mesh, struct state *state, struct timers *timers)
{
    double *r = state->r, *p = state->p, *z = state->z, *inv_diag = state->inv_diag;
    double dot = 0;
#pragma omp parallel reduction(+ : dot)
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < mesh->n_nodes; i++) {
            inv_diag[i] = 1.0 / (state->capacity[i] + NEIGHBOURS * conductivity);
            r[i] = state->rhs[i] - state->q[i];
            p[i] = z[i] = inv_diag[i] * r[i];
            dot += r[i] * z[i];
        }
        charge(timers, PHASE_VECTORS, since_s);
    }
    return dot;
}

static double advance_solution(const struct mesh *mesh, struct state *state, double alpha, struct timers *timers)
{
    double *x = state->temperature, *r = state->r, *z = state->z;
    const double *p = state->p, *q = state->q, *inv_diag = state->inv_diag;
    double dot = 0;
#pragma omp parallel reduction(+ : dot)
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < mesh->n_nodes; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            z[i] = inv_diag[i] * r[i];
            dot += r[i] * z[i];
        }
        charge(timers, PHASE_VECTORS, since_s);
    }
    return dot;
}

static void turn_direction(const struct mesh *mesh, struct state *state, double beta, struct timers *timers)
{
    double *p = state->p;
    const double *z = state->z;
#pragma omp parallel
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < mesh->n_nodes; i++)
            p[i] = z[i] + beta * p[i];
        charge(timers, PHASE_VECTORS, since_s);
    }
}

/* p = temperature, rhs = capacity * temperature: what the first residual needs. */
static void prepare(const struct mesh *mesh, struct state *state, struct timers *timers)
{
#pragma omp parallel
    {
        double since_s = thread_cpu_s();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < mesh->n_nodes; i++) {
            state->p[i] = state->temperature[i];
            state->rhs[i] = state->capacity[i] * state->temperature[i];
        }
        charge(timers, PHASE_VECTORS, since_s);
    }
}

double solver_step(const struct mesh *mesh, const struct sources *sources, struct state *state, int n_iterations,
                   const struct lens *lens, struct timers *timers)
{
    update_material(mesh, state, lens, timers);
    prepare(mesh, state, timers);
    deposit_sources(sources, state, lens, timers);
    (void)apply_operator(mesh, state, lens, timers);
    double rho = start_iteration(mesh, state, timers);
    double first_rho = rho;
    for (int k = 0; k < n_iterations && rho > 0; k++) {
        double alpha = rho / apply_operator(mesh, state, lens, timers);
        double next_rho = advance_solution(mesh, state, alpha, timers);
        turn_direction(mesh, state, next_rho / rho, timers);
        rho = next_rho;
        if (n_history < MAX_HISTORY)
            residual_history[n_history++] = sqrt(rho);
    }
    return first_rho > 0 ? sqrt(rho / first_rho) : 0;
}
