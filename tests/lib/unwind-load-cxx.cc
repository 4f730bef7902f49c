// SPDX-License-Identifier: BSD-3-Clause
// C++ workload for the unwinder's oracle test.
#include "unwind-load.h"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{
volatile long sink;

struct guard {
    ~guard()
    {
        sink = sink + 1;
    }
};

__attribute__((noinline)) int thrower(int depth)
{
    guard g;
    if (depth == 0)
        throw std::runtime_error("deep");
    return thrower(depth - 1) + 1;
}

__attribute__((noinline)) long containers(int n)
{
    std::map<std::string, std::vector<int>> words;
    for (int i = 0; i < n; i++)
        words["word" + std::to_string(i * 31 % 17)].push_back(i);
    long sum = 0;
    for (const auto &word : words)
        sum += static_cast<long>(word.second.size() * word.first.size());
    return sum;
}
} // namespace

extern "C" void unwind_load_cxx(int n)
{
    for (int i = 0; i < n; i++) {
        sink = sink + containers(8);
        try {
            sink = sink + thrower(4 + i % 3);
        } catch (const std::exception &e) {
            sink = sink + e.what()[0];
        }
    }
}
