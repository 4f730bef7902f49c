/* SPDX-License-Identifier: BSD-3-Clause */
/* What the elements of containers point to is no block of the container's own, and maps that operator[] fills. The
 * names are checked as in names-containers.cc. */
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

template <int n> struct blob {
    long v;
    char bytes[n - 8];
};

/* What compilers must not leave out. */
static void keep(const volatile void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

struct Sim {
    std::vector<std::unique_ptr<blob<1008>>> nodes;
    std::vector<std::unique_ptr<blob<1016>>> made;
    std::vector<blob<1024> *> raw;
    std::list<std::shared_ptr<blob<1040>>> shared;
    std::map<int, blob<1048> *> mapped;
    std::map<int, blob<1104>> bins;
    std::unordered_map<int, blob<1200>> table;
    std::vector<std::map<int, blob<1304>>> levels;
    std::vector<std::unique_ptr<blob<300000>>> large;
    blob<1032> **rows;
};

class Owner
{
    std::vector<std::unique_ptr<blob<1056>>> parts_;

  public:
    void fill(int n)
    {
        for (int i = 0; i < n; i++)
            parts_.push_back(std::make_unique<blob<1056>>());
    }
    const void *data() const
    {
        return parts_.data();
    }
};

static void add(std::vector<blob<1064> *> &out)
{
    out.push_back(new blob<1064>());
}

int main(int argc, char **)
{
    /* @block 1008 sim.nodes[]
     * @block 2400 sim.nodes
     * @block 1016 sim.made[]
     * @block 2408 sim.made
     * @block 1024 sim.raw[]
     * @block 2416 sim.raw
     * @block 1032 sim.rows[i]
     * @block 2424 sim.rows
     * @block 1040 sim.shared[]
     * @block 1048 sim.mapped[]
     * @block 300000 sim.large[]
     * @type sim.large[] blob<300000> */
    Sim sim;
    Owner owner;
    int n = 300 + argc - 1;
    sim.nodes.reserve(n);
    sim.made.reserve(n + 1);
    sim.raw.reserve(n + 2);
    sim.rows = (blob<1032> **)malloc((n + 3) * sizeof *sim.rows);
    for (int i = 0; i < 3; i++)
        sim.large.push_back(std::make_unique<blob<300000>>());
    for (int i = 0; i < n; i++) {
        sim.nodes.emplace_back(new blob<1008>());
        sim.made.push_back(std::make_unique<blob<1016>>());
        sim.raw.push_back(new blob<1024>());
        sim.rows[i] = (blob<1032> *)malloc(sizeof *sim.rows[i]);
        sim.shared.push_back(std::shared_ptr<blob<1040>>(new blob<1040>()));
        sim.mapped.emplace(i, new blob<1048>());
    }
    /* @block 1144 sim.bins (nodes)
     * @block 1216 sim.table (nodes)
     * @block 1344 sim.levels[2] (nodes) */
    long x = 0;
    sim.levels.resize(n);
    for (int i = 0; i < n; i++) {
        sim.bins[i % 7].v += 1;
        x += sim.table[sim.bins[i % 3].v].v;
        x -= sim.levels[2][int(sim.raw[i]->v)].v;
    }
    /* @block 1056 Owner::parts_[]
     * @block 1064 pointers[]
     * @block 1072 direct
     * @block 1080 list_of_text */
    std::vector<blob<1064> *> pointers;
    owner.fill(n);
    for (int i = 0; i < n; i++)
        add(pointers);
    std::unique_ptr<blob<1072>> direct(new blob<1072>());
    std::vector<char> list_of_text(1080);
    keep(owner.data());
    keep(pointers.data());
    keep(direct.get());
    keep(list_of_text.data());
    printf("%ld\n", sim.nodes[1]->v + sim.made[1]->v + sim.raw[1]->v + sim.large[2]->v + (long)sim.shared.size() + x);
}
