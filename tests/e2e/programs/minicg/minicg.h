/* SPDX-License-Identifier: BSD-3-Clause */
/* minicg: implicit heat conduction on an unstructured mesh, solved by preconditioned conjugate gradients with OpenMP.
 * A mini-app whose costly variables are known: the nodes are numbered at random, as mesh generators leave them, so
 * that the operator gathers p from all over memory, the material law looks up a big table at random, and heat sources
 * scatter into rhs. Everything else streams. */
#ifndef MINICG_H
#define MINICG_H

#include <stddef.h>
#include <stdint.h>

enum { NEIGHBOURS = 6, BLOCKS = 8, MATERIALS = 4096, TEMPERATURE_BINS = 1024, LAW_STEPS = 4, MAX_HISTORY = 4096 };

/* A cube of side^3 cells whose nodes carry random numbers. */
struct mesh {
    int side;
    int n_nodes;
    int *neighbour;     /* [n_nodes][NEIGHBOURS], the node itself beyond a wall */
    uint16_t *material; /* [n_nodes] < MATERIALS */
};

/* Heat sources: particles that leave their energy at a node, grouped by blocks of nodes. */
struct sources {
    int n_particles;
    int first_node[BLOCKS + 1];
    int block_start[BLOCKS + 1];
    int *particle_offset;   /* [n_particles], from first_node of the block */
    float *particle_energy; /* [n_particles] */
};

/* Unknowns and work vectors of the solver, all [n_nodes]. */
struct state {
    double *temperature, *capacity, *rhs, *r, *p, *q, *z, *inv_diag;
};

/* Index masks that shrink what a phase touches at random to something that fits the first-level cache; ~0 changes
 * nothing. The instructions are the same either way, so that the difference in time is what the array costs. */
struct lens {
    size_t p, table, rhs;
};

enum phase { PHASE_MATERIAL, PHASE_SOURCES, PHASE_OPERATOR, PHASE_VECTORS, N_PHASES };

/* CPU seconds of all threads in each phase. */
struct timers {
    double phase_s[N_PHASES];
};

/* Builds the mesh; ends the program when memory is short. */
void mesh_build(struct mesh *mesh, int side);
void mesh_free(struct mesh *mesh);

/* Spreads n_particles over the mesh. */
void sources_build(struct sources *sources, const struct mesh *mesh, int n_particles);
void sources_free(struct sources *sources);

/* Allocates and initialises the vectors, and fills the material table. */
void state_build(struct state *state, const struct mesh *mesh);
void state_free(struct state *state);

/* One time step: material law, sources, then n_iterations of CG. Returns the residual norm relative to the rhs. */
double solver_step(const struct mesh *mesh, const struct sources *sources, struct state *state, int n_iterations,
                   const struct lens *lens, struct timers *timers);

/* The residual norms so far, [*n]. */
const double *solver_history(int *n);

/* Prints what share of the user CPU time total_s so far each array at random cost, as CSV, found by running the phases
 * of one more step with the array made resident in the first-level cache. */
void truth_print(const struct mesh *mesh, const struct sources *sources, struct state *state, int n_iterations,
                 int n_steps, double total_s);

/* The next of a reproducible series of random numbers. */
uint64_t random_next(uint64_t *state);

/* Ends the program when pointer is NULL. Not a malloc that cannot fail, so that each array is allocated where it
 * belongs. */
void require(void *pointer, const char *what);

#endif
