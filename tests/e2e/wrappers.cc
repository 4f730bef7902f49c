// SPDX-License-Identifier: BSD-3-Clause
// Memory through allocator objects as C++ libraries have them: a handle whose inline method calls a virtual one of a
// strategy, which calls a resource, which calls malloc; also through an adaptor for containers of the standard library.
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace umpire {
namespace alloc {
struct MallocAllocator {
    __attribute__((noinline)) void *allocate(std::size_t bytes)
    {
        void *ret = ::malloc(bytes);
        if (ret == nullptr)
            throw std::bad_alloc();
        return ret;
    }
    void deallocate(void *ptr) { ::free(ptr); }
};
}

namespace strategy {
class AllocationStrategy {
  public:
    virtual ~AllocationStrategy() = default;
    virtual void *allocate(std::size_t bytes) = 0;
    virtual void deallocate(void *ptr) = 0;
    __attribute__((noinline)) void *allocate_internal(std::size_t bytes)
    {
        void *ptr = allocate(bytes);
        n_bytes += bytes;
        return ptr;
    }
    std::size_t n_bytes = 0;
};
}

namespace resource {
template <typename A> class DefaultMemoryResource : public strategy::AllocationStrategy {
  public:
    __attribute__((noinline)) void *allocate(std::size_t bytes) override
    {
        void *ptr = m_allocator.allocate(bytes);
        return ptr;
    }
    void deallocate(void *ptr) override { m_allocator.deallocate(ptr); }

  private:
    A m_allocator;
};
}

class Allocator {
  public:
    explicit Allocator(strategy::AllocationStrategy *strategy) : m_strategy(strategy) {}
    inline void *allocate(std::size_t bytes)
    {
        void *ret = nullptr;
        if (bytes == 0)
            return ret;
        ret = m_strategy->allocate_internal(bytes);
        return ret;
    }
    void deallocate(void *ptr) { m_strategy->deallocate(ptr); }

  private:
    strategy::AllocationStrategy *m_strategy;
};

template <typename T> class TypedAllocator {
  public:
    typedef T value_type;
    explicit TypedAllocator(Allocator allocator) : m_allocator(allocator) {}
    template <typename U> TypedAllocator(const TypedAllocator<U> &other) : m_allocator(other.m_allocator) {}
    T *allocate(std::size_t size) { return static_cast<T *>(m_allocator.allocate(sizeof(T) * size)); }
    void deallocate(T *ptr, std::size_t) { m_allocator.deallocate(ptr); }
    Allocator m_allocator;
    bool operator==(const TypedAllocator &) const { return true; }
    bool operator!=(const TypedAllocator &) const { return false; }
};
}

struct Mesh {
    double *density = nullptr;
    double *energy = nullptr;
    __attribute__((noinline)) void make(umpire::Allocator &allocator, std::size_t n)
    {
        density = static_cast<double *>(allocator.allocate(n * sizeof(double)));
        energy = static_cast<double *>(allocator.allocate(n * sizeof(double)));
    }
};

static volatile double sum;

int main()
{
    const std::size_t n = 40000;
    umpire::resource::DefaultMemoryResource<umpire::alloc::MallocAllocator> host;
    umpire::Allocator allocator(&host);
    Mesh mesh;
    mesh.make(allocator, n);
    double *pressure = static_cast<double *>(allocator.allocate(n * sizeof(double)));
    std::vector<double, umpire::TypedAllocator<double>> velocity(n, 1.0, umpire::TypedAllocator<double>(allocator));
    for (std::size_t i = 0; i < n; i++) {
        mesh.density[i] = mesh.energy[i] = pressure[i] = double(i);
        sum = sum + velocity[i] + pressure[i];
    }
    return 0;
}
