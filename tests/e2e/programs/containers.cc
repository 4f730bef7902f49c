/* SPDX-License-Identifier: BSD-3-Clause */
/* C++: a vector and an array of objects from new[]. */

#include <vector>

#include "kernel.h"

namespace
{
const uint64_t N = UINT64_C(1) << 22;

struct particle {
    double position[3];
    double velocity[3];
    uint64_t next;
    double mass;
};

std::vector<uint64_t> *numbers;
particle *particles;
uint64_t at_particle;

KERNEL_NOINLINE uint64_t walk_numbers(uint64_t n_turns)
{
    static uint64_t position;
    uint64_t at = position;
    const std::vector<uint64_t> &words = *numbers;
    for (uint64_t i = 0; i < n_turns; i++)
        at = words[(at + i) & (N - 1)];
    position = at;
    return at;
}

KERNEL_NOINLINE uint64_t walk_particles(uint64_t n_turns)
{
    for (uint64_t i = 0; i < n_turns; i++) {
        particle &one = particles[(at_particle + i) & (N / 8 - 1)];
        one.position[0] += one.velocity[0];
        at_particle = one.next;
    }
    return at_particle;
}
} // namespace

int main(int argc, char **argv)
{
    kernel_phase phases[] = {{"numbers", walk_numbers, 65, 0}, {"particles", walk_particles, 35, 0}};
    std::vector<uint64_t> storage(N);
    numbers = &storage;
    kernel_fill(storage.data(), N);
    particles = new particle[N / 8];
    uint64_t state = 123456789;
    for (uint64_t i = 0; i < N / 8; i++)
        particles[i] = particle{{0, 0, 0}, {1, 1, 1}, kernel_random(&state), 1};
    int status = kernel_phases_main(argc, argv, phases, 2);
    delete[] particles;
    return status;
}
