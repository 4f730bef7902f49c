/* SPDX-License-Identifier: BSD-3-Clause */
/* Every form of operator new and delete, failing ones included. Native and under the recording sink it prints the same;
 * under the sink each block must be seen exactly once. First argument: the number of reports expected for one block
 * (0 where an allocator inside the program takes the calls); second: no-failures, or no-small where small blocks are
 * sampled. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>
#include <dlfcn.h>
#include <pthread.h>

typedef void counts_function(uint64_t counts[4]);

static counts_function *sink_counts;
static uint64_t expected = 1;
static int failures;
static void *reserve;

struct counts {
    uint64_t n[4] = {0, 0, 0, 0};
    counts()
    {
        if (sink_counts)
            sink_counts(n);
    }
};

static void check(bool condition, const char *what)
{
    if (!condition) {
        std::printf("FAILED: %s\n", what);
        failures++;
    }
}

/* One block through allocate and release: reported once, released once, nothing stays entered. */
template <typename Allocate, typename Release> static void pair(const char *what, Allocate allocate, Release release)
{
    counts before;
    void *p = allocate();
    counts between;
    check(p != nullptr, what);
    release(p);
    counts after;
    if (!sink_counts)
        return;
    check(between.n[0] - before.n[0] == expected && between.n[1] == before.n[1], what);
    check(after.n[0] == between.n[0] && after.n[1] - between.n[1] == expected, what);
    check(after.n[3] == 0, what);
}

static void all_forms()
{
    const std::align_val_t wide{256};
    const std::size_t n = 5000;
    pair("new", [&] { return ::operator new(n); }, [](void *p) { ::operator delete(p); });
    pair("new sized", [&] { return ::operator new(n); }, [&](void *p) { ::operator delete(p, n); });
    pair("new nothrow", [&] { return ::operator new(n, std::nothrow); },
         [](void *p) { ::operator delete(p, std::nothrow); });
    pair("new aligned", [&] { return ::operator new(n, wide); }, [&](void *p) { ::operator delete(p, wide); });
    pair("new aligned sized", [&] { return ::operator new(n, wide); }, [&](void *p) { ::operator delete(p, n, wide); });
    pair("new aligned nothrow", [&] { return ::operator new(n, wide, std::nothrow); },
         [&](void *p) { ::operator delete(p, wide, std::nothrow); });
    pair("new[]", [&] { return ::operator new[](n); }, [](void *p) { ::operator delete[](p); });
    pair("new[] sized", [&] { return ::operator new[](n); }, [&](void *p) { ::operator delete[](p, n); });
    pair("new[] nothrow", [&] { return ::operator new[](n, std::nothrow); },
         [](void *p) { ::operator delete[](p, std::nothrow); });
    pair("new[] aligned", [&] { return ::operator new[](n, wide); }, [&](void *p) { ::operator delete[](p, wide); });
    pair("new[] aligned sized", [&] { return ::operator new[](n, wide); },
         [&](void *p) { ::operator delete[](p, n, wide); });
    pair("new[] aligned nothrow", [&] { return ::operator new[](n, wide, std::nothrow); },
         [&](void *p) { ::operator delete[](p, wide, std::nothrow); });
    pair("malloc", [&] { return std::malloc(n); }, [](void *p) { std::free(p); });
    check(reinterpret_cast<uintptr_t>(::operator new(64, wide)) % 256 == 0, "alignment of a small block");
}

static void small_forms()
{
    counts before;
    for (int i = 0; i < 1000; i++) {
        delete new int(i);
        delete[] new char[100];
        ::operator delete(::operator new(16, std::nothrow), std::nothrow);
    }
    counts after;
    check(after.n[0] == before.n[0] && after.n[1] == before.n[1], "small blocks are not reported");
}

__attribute__((noinline)) static bool throws(std::size_t n)
{
    try {
        ::operator delete(::operator new(n));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static void failing()
{
    const std::size_t huge = SIZE_MAX / 4;
    counts before;
    for (int i = 0; i < 3; i++)
        check(throws(huge), "bad_alloc");
    check(::operator new(huge, std::nothrow) == nullptr, "nothrow returns null");
    check(::operator new[](huge, std::align_val_t{64}, std::nothrow) == nullptr, "aligned nothrow returns null");
    counts after;
    check(after.n[0] == before.n[0] && after.n[3] == 0, "a failed new reports nothing and leaves its bracket");
    pair("new after a failure", [] { return ::operator new(6000); }, [](void *p) { ::operator delete(p); });
}

/* Gives the reserve back once, then gives up: what a program does that prepares for the end of memory. */
static void give_up()
{
    std::free(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
}

static void with_new_handler()
{
    reserve = std::malloc(50000);
    counts before;
    std::set_new_handler(give_up);
    check(throws(SIZE_MAX / 4) && !reserve, "the new_handler of the program is called");
    counts after;
    check(!sink_counts || after.n[1] - before.n[1] == expected, "a block freed in the new_handler is released");
}

static void end_thread()
{
    std::set_new_handler(nullptr);
    pthread_exit(nullptr);
}

static void *die_in_new(void *)
{
    std::set_new_handler(end_thread);
    return ::operator new(SIZE_MAX / 4);
}

static void thread_ends_inside_new()
{
    pthread_t thread;
    check(pthread_create(&thread, nullptr, die_in_new, nullptr) == 0, "thread");
    pthread_join(thread, nullptr);
    check(counts().n[3] == 0, "a thread that ends inside operator new leaves its bracket");
}

/* Allocates and frees when its thread ends. */
struct late {
    ~late()
    {
        pair("new in the destructor of a thread_local", [] { return ::operator new(7000); },
             [](void *p) { ::operator delete(p); });
    }
};

static void *use_thread_local(void *)
{
    static thread_local late object;
    return &object;
}

static void thread_local_destructors()
{
    pthread_t thread;
    check(pthread_create(&thread, nullptr, use_thread_local, nullptr) == 0, "thread");
    pthread_join(thread, nullptr);
}

static void after_main()
{
    pair("new in an exit handler", [] { return ::operator new(7000); }, [](void *p) { ::operator delete(p); });
    std::fflush(stdout);
    if (failures)
        std::_Exit(1);
}

int main(int argc, char **argv)
{
    check(dlerror() == nullptr, "no error of the loader is left for the program");
    sink_counts = reinterpret_cast<counts_function *>(dlsym(RTLD_DEFAULT, "alloc_sink_counts"));
    if (argc > 1)
        expected = std::strtoul(argv[1], nullptr, 10);
    const std::string mode = argc > 2 ? argv[2] : "all";
    all_forms();
    if (mode != "no-small")
        small_forms();
    if (mode != "no-failures") {
        failing();
        with_new_handler();
        thread_ends_inside_new();
    }
    thread_local_destructors();
    std::atexit(after_main);
    std::vector<double> grown;
    for (int i = 0; i < 100000; i++)
        grown.push_back(i);
    std::printf("%s %g\n", failures ? "failed" : "fine", grown.back());
    return failures != 0;
}
