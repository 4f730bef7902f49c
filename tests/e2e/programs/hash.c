/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookups in a chained hash table, each key made from the last answer, so that the times of the two structures add up:
 * one bucket and on average two cold nodes for every lookup. */
#include "kernel.h"

#define N_BUCKETS (UINT64_C(1) << 21)
#define N_NODES (UINT64_C(1) << 22)
#define N_HOT_BUCKETS 64
#define N_HOT_NODES 8

struct entry {
    uint64_t key;
    struct entry *next;
    uint64_t value[6];
};

/* A cache line each, so that no cache holds them all, even when the nodes leave it alone. */
struct bucket {
    struct entry *first;
    char unused[KERNEL_LINE - sizeof(struct entry *)];
};

static struct bucket *buckets;
static struct entry *nodes;
static struct bucket *shapes; /* like buckets, with chains of the same lengths made of few nodes */
static struct entry hot_nodes[N_HOT_NODES];
static struct bucket bases[N_HOT_BUCKETS]; /* all point to the first node: few buckets, and nodes chosen by the key */

/* Walks the chain of a key that is not in it to the end; the chain begins at a bucket's node or, where spread is not 0,
 * somewhere behind it. From a random node on a chain has on average as many nodes as a random chain. */
static KERNEL_NOINLINE uint64_t lookup(const struct bucket *heads, uint64_t mask, uint64_t spread, uint64_t key)
{
    uint64_t answer = 1, hash = key * 0x9e3779b97f4a7c15u;
    const struct entry *e = heads[hash >> 40 & mask].first;
    for (e = e ? e + (hash >> 20 & spread) : NULL; e; e = e->next) {
        if (e->key == key)
            return e->value[0];
        answer += e->key;
    }
    return answer;
}

/* Bit 0: nodes small; bit 1: buckets small. */
static uint64_t run(uint64_t n_turns, unsigned resident)
{
    static uint64_t key = 1;
    const struct bucket *heads = resident == 2 ? bases : resident ? shapes : buckets;
    uint64_t mask = resident & 2 ? N_HOT_BUCKETS - 1 : N_BUCKETS - 1;
    uint64_t spread = resident == 2 ? N_NODES - 1 : 0;
    for (uint64_t i = 0; i < n_turns; i++) {
        uint64_t answer = lookup(heads, mask, spread, key);
        key = (key + (answer & 1)) * 2862933555777941757u + 3037000493u;
        key &= ~(UINT64_C(1) << 63);
    }
    return key;
}

static void insert(struct entry *entry, uint64_t random)
{
    struct entry **head = &buckets[random >> 20 & (N_BUCKETS - 1)].first;
    *entry = (struct entry){random | UINT64_C(1) << 63, *head, {random}};
    *head = entry;
}

static void make_shapes(void)
{
    for (unsigned b = 0; b < N_HOT_BUCKETS; b++)
        bases[b].first = nodes;
    for (unsigned h = 0; h < N_HOT_NODES; h++)
        hot_nodes[h] = (struct entry){UINT64_C(1) << 63 | h, h ? &hot_nodes[h - 1] : NULL, {h}};
    for (uint64_t b = 0; b < N_BUCKETS; b++) {
        unsigned length = 0;
        for (const struct entry *e = buckets[b].first; e && length < N_HOT_NODES; e = e->next)
            length++;
        shapes[b].first = length ? &hot_nodes[length - 1] : NULL;
    }
}

int main(int argc, char **argv)
{
    static const struct kernel_loop loop = {run, {"nodes", "buckets", NULL}, KERNEL_SHARED};
    uint64_t state = 362436069u;
    buckets = kernel_check(calloc(N_BUCKETS, sizeof *buckets));
    shapes = kernel_check(calloc(N_BUCKETS, sizeof *shapes));
    nodes = kernel_check(malloc(N_NODES * sizeof *nodes));
    for (uint64_t i = 0; i < N_NODES; i++)
        insert(&nodes[i], kernel_random(&state));
    make_shapes();
    return kernel_loop_main(argc, argv, &loop, 1000000);
}
