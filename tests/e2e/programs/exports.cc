// SPDX-License-Identifier: BSD-3-Clause
// Threads whose functions and data have the names of C++: templates, lambdas, operators, an anonymous namespace, and
// recursion. The forms of other tools must carry them. Usage: exports [SECONDS]
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

namespace {

struct particle {
    double position, speed;
    std::uint32_t cell, next;
};

double table[1 << 20]; // 8 MiB

template <typename T, std::size_t N> struct field {
    std::vector<T> cells = std::vector<T>(N);

    __attribute__((noinline)) T operator()(std::size_t i) const
    {
        return cells[(i * 2654435761U) % N];
    }
};

template <typename F> __attribute__((noinline)) double repeated(std::size_t n, F &&work)
{
    double sum = 0;
    for (std::size_t i = 0; i < n; i++)
        sum += work(i);
    return sum;
}

// Follows a chain, calling itself at every 64th step.
__attribute__((noinline)) double walk(const std::vector<particle> &all, std::uint32_t at, int depth)
{
    double sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += all[at].position;
        at = all[at].next;
    }
    if (depth > 0)
        sum += walk(all, at, depth - 1);
    return sum;
}

double cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double work_for(double seconds)
{
    constexpr std::size_t n_particles = 1 << 18;
    std::vector<particle> particles(n_particles);
    field<double, 1 << 20> potential;
    for (std::size_t i = 0; i < n_particles; i++)
        particles[i].next = static_cast<std::uint32_t>((i * 48271 + 11) % n_particles);
    double sum = 0, end = cpu_seconds() + seconds;
    while (cpu_seconds() < end) {
        sum += repeated(20000, [](std::size_t i) { return table[(i * 1103515245 + 12345) % (1 << 20)]; });
        sum += repeated(20000, [&](std::size_t i) { return potential(i); });
        sum += walk(particles, 1, 40);
    }
    return sum;
}

} // namespace

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? std::atof(argv[1]) : 1, sums[2];
    for (std::size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i] = seconds;
    std::thread other([&] { sums[0] = work_for(seconds); });
    sums[1] = work_for(seconds);
    other.join();
    return sums[0] + sums[1] < 0;
}
