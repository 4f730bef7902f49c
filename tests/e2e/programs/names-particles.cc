/* SPDX-License-Identifier: BSD-3-Clause */
/* Particles in cells: containers that are members of members, OpenMP. The names are checked as in names-containers.cc. */
#include <cstdint>
#include <cstdio>
#include <memory>
#include <unordered_map>
#include <vector>

struct Particles {
    std::vector<double> x, y, vx;
    std::vector<std::uint32_t> cell;
    explicit Particles(std::size_t n) : x(n), y(n + 1), vx(n + 2, 0.5), cell(n + 3)
    {
    }
};

struct Field {
    std::vector<double> potential;
    std::unique_ptr<double[]> charge;
    explicit Field(std::size_t n) : potential(n), charge(new double[n + 1]())
    {
    }
};

struct Weight {
    double value;
    char name[480];
};

class Simulation
{
    /* @block 160000 Simulation::particles_.x
     * @block 160008 Simulation::particles_.y
     * @block 160016 Simulation::particles_.vx
     * @block 80012 Simulation::particles_.cell
     * @block 240000 Simulation::field_.potential
     * @block 240008 Simulation::field_.charge
     * @block 504 Simulation::weights_ (nodes)
     * @block 16232 Simulation::weights_ (buckets)
     * @block 480000 row */
    Particles particles_;
    Field field_;
    std::unordered_map<std::uint32_t, Weight> weights_;
    std::vector<std::vector<double>> history_;

  public:
    explicit Simulation(std::size_t n) : particles_(n), field_(n + 10000)
    {
        weights_.reserve(2000);
        for (std::uint32_t c = 0; c < 1500; c++)
            weights_[c * 2654435761u].value = c;
        history_.resize(2);
        for (auto &row : history_)
            row.resize(60000);
    }
    void deposit()
    {
#pragma omp parallel for
        for (std::size_t i = 0; i < particles_.x.size(); i++) {
            particles_.cell[i] = static_cast<std::uint32_t>(i * 7 % 30000);
            particles_.vx[i] += particles_.x[i] + particles_.y[i];
            history_[1][i] = field_.potential[i];
        }
        for (std::size_t i = 0; i < particles_.x.size(); i++)
            field_.charge[particles_.cell[i]] += 1;
    }
    double weigh(std::uint32_t salt) const
    {
        double s = field_.charge[7] + history_[1][3];
#pragma omp parallel for reduction(+ : s)
        for (std::uint32_t c = 0; c < 1500; c++) {
            auto found = weights_.find((c ^ salt) * 2654435761u);
            if (found != weights_.end())
                s += found->second.value;
        }
        return s;
    }
};

int main(int argc, char **)
{
    auto simulation = std::make_unique<Simulation>(19999 + argc);
    simulation->deposit();
    std::printf("simulation(1) = %g\n", simulation->weigh(1)); // @block 4096 main (names-particles.cc:84)
}
