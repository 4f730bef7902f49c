// SPDX-License-Identifier: BSD-3-Clause
// Phases of equal length, each of which reads one field of one variable at random places: vectors of structures, arrays
// from new-expressions with and without destructors, derived classes behind their base, members of objects, templates.
// usage: fields-cxx [SECONDS]      CPU seconds of each phase, default 0.15
#include <memory>
#include <vector>

#include "kernel.h"

namespace {

constexpr uint64_t n_items = UINT64_C(1) << 15;
constexpr int n_turns = 4096;
double seconds = 0.15;

struct vector3 {
    double x, y, z;
};

struct particle {
    vector3 position, velocity;
    double mass;
    int id, kind;
};

class counted {
public:
    ~counted() { kernel_sink = kernel_sink + alive; }
    long alive = 0, hits = 0, misses = 0;
};

struct shape {
    virtual ~shape() = default;
    long corners = 0;
};

struct box : shape {
    double sizes[3][n_items] = {};
    long used[n_items] = {};
};

template <class T>
class grid {
public:
    explicit grid(uint64_t n) : data_(new T[n]()) {}
    ~grid() { delete[] data_; }
    const T &at(uint64_t i) const { return data_[i]; }

private:
    T *data_;
};

// Reads value(i), which is 0, at random places i until the phase is over.
template <class F>
inline __attribute__((always_inline)) void walk(F value)
{
    double end = kernel_now() + seconds;
    uint64_t i = 0;
    while (kernel_now() < end)
        for (int turn = 0; turn < n_turns; turn++)
            i = (i * 5 + 12345 + static_cast<uint64_t>(value(i))) & (n_items - 1);
    kernel_sink = kernel_sink + i;
}

KERNEL_NOINLINE void walk_particles(const std::vector<particle> &particles)
{
    walk([&](uint64_t i) { return particles[i].mass; });
}

KERNEL_NOINLINE void walk_counted(const counted *counters)
{
    walk([=](uint64_t i) { return counters[i].hits; });
}

KERNEL_NOINLINE void walk_box(const shape *base)
{
    const box *b = static_cast<const box *>(base);
    walk([=](uint64_t i) { return b->used[i]; });
}

KERNEL_NOINLINE void walk_grid(const grid<vector3> &cells)
{
    walk([&](uint64_t i) { return cells.at(i).y; });
}

KERNEL_NOINLINE void walk_owned(const std::unique_ptr<vector3[]> &owned)
{
    walk([&](uint64_t i) { return owned[i].x; });
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = atof(argv[1]);
    std::vector<particle> particles(n_items);
    counted *counters = new counted[n_items];
    shape *base = new box;
    grid<vector3> cells(n_items);
    std::unique_ptr<vector3[]> owned(new vector3[n_items]());
    kernel_begin();
    walk_particles(particles);
    walk_counted(counters);
    walk_box(base);
    walk_grid(cells);
    walk_owned(owned);
    kernel_end();
    delete base;
    delete[] counters;
    return 0;
}
