// SPDX-License-Identifier: BSD-3-Clause
// alloc-callers WAY N SIZE: N pairs of an allocation and its release, to be counted by instructions. WAY: malloc from
// one place; wrapper2, wrapper10, from one place which so many functions call; new; new2, from a place with two
// callers.
#include <cstdlib>
#include <cstring>
#include <new>

namespace
{

void *volatile escape;

__attribute__((noipa)) void *checked_malloc(size_t n_bytes)
{
    void *p = malloc(n_bytes);
    if (!p)
        abort();
    return p;
}

template <int Number> __attribute__((noipa)) void through_wrapper(size_t n_bytes)
{
    escape = checked_malloc(n_bytes);
    free(escape);
}

__attribute__((noipa)) void by_malloc(size_t n_bytes)
{
    escape = malloc(n_bytes);
    free(escape);
}

__attribute__((noipa)) void by_new(size_t n_bytes)
{
    escape = ::operator new(n_bytes);
    ::operator delete(escape);
}

template <int Number> __attribute__((noipa)) void through_function(size_t n_bytes)
{
    by_new(n_bytes);
    escape = nullptr; // no tail call
}

struct way {
    const char *name;
    unsigned n_callers;
    void (*callers[10])(size_t n_bytes);
};

const way ways[] = {
    {"malloc", 1, {by_malloc}},
    {"wrapper2", 2, {through_wrapper<0>, through_wrapper<1>}},
    {"wrapper10",
     10,
     {through_wrapper<0>, through_wrapper<1>, through_wrapper<2>, through_wrapper<3>, through_wrapper<4>,
      through_wrapper<5>, through_wrapper<6>, through_wrapper<7>, through_wrapper<8>, through_wrapper<9>}},
    {"new", 1, {by_new}},
    {"new2", 2, {through_function<0>, through_function<1>}},
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    /* Away from the block that libstdc++ keeps for exceptions, which has a record: the release of a block beside it
     * looks twice. */
    for (int i = 0; i < 200; i++)
        escape = malloc(900);
    for (const way &way : ways)
        if (strcmp(way.name, argv[1]) == 0) {
            const size_t n_bytes = static_cast<size_t>(atol(argv[3]));
            for (long i = 0, n = atol(argv[2]); i < n; i++)
                way.callers[i % way.n_callers](n_bytes);
            return 0;
        }
    return 2;
}
