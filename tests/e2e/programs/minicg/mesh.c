/* SPDX-License-Identifier: BSD-3-Clause */
/* The mesh and the heat sources of minicg. */
#include "minicg.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t random_next(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void require(void *pointer, const char *what)
{
    if (pointer)
        return;
    fprintf(stderr, "minicg: out of memory for %s\n", what);
    exit(1);
}

/* A random permutation of 0..2^(2 * half_bits)-1 without a table: a Feistel network of four rounds. */
static unsigned permute(unsigned value, unsigned half_bits)
{
    unsigned mask = (1u << half_bits) - 1, left = value >> half_bits, right = value & mask;
    for (unsigned round = 1; round <= 4; round++) {
        unsigned mixed = (right + round * 0x9e3779b9u) * 0x85ebca6bu;
        unsigned next = left ^ ((mixed ^ mixed >> 15) * 0xc2b2ae35u >> 16 & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* The inverse of permute. */
static unsigned unpermute(unsigned value, unsigned half_bits)
{
    unsigned mask = (1u << half_bits) - 1, left = value >> half_bits, right = value & mask;
    for (unsigned round = 4; round >= 1; round--) {
        unsigned mixed = (left + round * 0x9e3779b9u) * 0x85ebca6bu;
        unsigned previous = right ^ ((mixed ^ mixed >> 15) * 0xc2b2ae35u >> 16 & mask);
        right = left;
        left = previous;
    }
    return left << half_bits | right;
}

static unsigned half_bits_for(int n_nodes)
{
    unsigned half_bits = 1;
    while (1u << 2 * half_bits < (unsigned)n_nodes)
        half_bits++;
    return half_bits;
}

/* Cells outside the cube, which the permutation of a power of two has too, are walked through. */
static int node_of_cell(int cell, int n_nodes, unsigned half_bits)
{
    unsigned node = permute((unsigned)cell, half_bits);
    while (node >= (unsigned)n_nodes)
        node = permute(node, half_bits);
    return (int)node;
}

static int cell_of_node(int node, int n_nodes, unsigned half_bits)
{
    unsigned cell = unpermute((unsigned)node, half_bits);
    while (cell >= (unsigned)n_nodes)
        cell = unpermute(cell, half_bits);
    return (int)cell;
}

/* The number of the node one step from a cell along an axis, or the node itself beyond a wall. */
static int neighbour_of(const struct mesh *mesh, int cell, int node, int k, unsigned half_bits)
{
    int side = mesh->side;
    int stride = k / 2 == 0 ? side * side : k / 2 == 1 ? side : 1;
    int place = cell / stride % side + (k % 2 ? 1 : -1);
    if (place < 0 || place >= side)
        return node;
    return node_of_cell(cell + (k % 2 ? stride : -stride), mesh->n_nodes, half_bits);
}

static void connect(struct mesh *mesh)
{
    unsigned half_bits = half_bits_for(mesh->n_nodes);
#pragma omp parallel for schedule(static)
    for (int node = 0; node < mesh->n_nodes; node++) {
        int cell = cell_of_node(node, mesh->n_nodes, half_bits);
        for (int k = 0; k < NEIGHBOURS; k++)
            mesh->neighbour[(size_t)node * NEIGHBOURS + (size_t)k] = neighbour_of(mesh, cell, node, k, half_bits);
    }
}

void mesh_build(struct mesh *mesh, int side)
{
    mesh->side = side;
    mesh->n_nodes = side * side * side;
    mesh->neighbour = malloc((size_t)mesh->n_nodes * NEIGHBOURS * sizeof *mesh->neighbour);
    require(mesh->neighbour, "neighbour");
    mesh->material = malloc((size_t)mesh->n_nodes * sizeof *mesh->material);
    require(mesh->material, "material");
    connect(mesh);
    uint64_t seed = 2;
    for (int i = 0; i < mesh->n_nodes; i++)
        mesh->material[i] = (uint16_t)(random_next(&seed) % MATERIALS);
}

void mesh_free(struct mesh *mesh)
{
    free(mesh->neighbour);
    free(mesh->material);
}

/* Block b owns the nodes [b * n / BLOCKS, (b + 1) * n / BLOCKS), so that blocks can be scattered without conflict. */
void sources_build(struct sources *sources, const struct mesh *mesh, int n_particles)
{
    sources->n_particles = n_particles;
    sources->particle_offset = malloc((size_t)n_particles * sizeof *sources->particle_offset);
    require(sources->particle_offset, "particle_offset");
    sources->particle_energy = malloc((size_t)n_particles * sizeof *sources->particle_energy);
    require(sources->particle_energy, "particle_energy");
    uint64_t seed = 3;
    for (int b = 0; b <= BLOCKS; b++) {
        sources->block_start[b] = (int)((int64_t)n_particles * b / BLOCKS);
        sources->first_node[b] = (int)((int64_t)mesh->n_nodes * b / BLOCKS);
    }
    for (int b = 0; b < BLOCKS; b++) {
        int n_nodes = sources->first_node[b + 1] - sources->first_node[b];
        for (int k = sources->block_start[b]; k < sources->block_start[b + 1]; k++) {
            uint64_t bits = random_next(&seed);
            sources->particle_offset[k] = (int)(bits % (uint64_t)n_nodes);
            sources->particle_energy[k] = (float)(bits >> 40) * 1e-8F;
        }
    }
}

void sources_free(struct sources *sources)
{
    free(sources->particle_offset);
    free(sources->particle_energy);
}
