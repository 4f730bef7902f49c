/* SPDX-License-Identifier: BSD-3-Clause */
/* A C++ module for a C program, opened with RTLD_LOCAL: operator new is known in this module's scope only. */
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

extern "C" int plugin_work(int n)
{
    std::map<int, std::string> names;
    std::vector<std::unique_ptr<double[]>> blocks;
    for (int i = 0; i < n; i++) {
        names[i] = std::to_string(i) + " is a number whose text does not fit in the string itself";
        blocks.emplace_back(new double[1000 + i]);
        blocks.back()[0] = i;
    }
    double sum = 0;
    for (auto &block : blocks)
        sum += block[0];
    return static_cast<int>(sum) + static_cast<int>(names[n - 1].size());
}

extern "C" int plugin_fail(void)
{
    int n_caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            std::vector<char> too_large(SIZE_MAX / 4);
            n_caught -= static_cast<int>(too_large.size());
        } catch (const std::bad_alloc &) {
            n_caught++;
        }
    }
    struct alignas(256) wide {
        char bytes[4096];
    };
    auto p = std::make_unique<wide>();
    return reinterpret_cast<uintptr_t>(p.get()) % 256 ? -1 : n_caught;
}
