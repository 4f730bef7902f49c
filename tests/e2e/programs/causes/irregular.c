/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that are read and written at random. The index is masked; the twin's mask leaves a part of the table that
 * stays in the first-level cache. Index lists are walked in order, and their twin takes the first chunk every time,
 * with a shift that is another one each time, so that it leads to other elements each time as well. */
#include "causes.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define CHUNK UINT64_C(2048)          /* indexes of 8 KB */
#define N_INDEXES (UINT64_C(1) << 24) /* of 64 MB */
#define RESIDENT_MASK UINT64_C(1023)  /* 8 KB of words */
#define MEGA (UINT64_C(1) << 20)

static uint64_t table_mask; /* of the row's table */

static uint64_t mask_of(unsigned resident)
{
    return resident & 1 && table_mask > RESIDENT_MASK ? RESIDENT_MASK : table_mask;
}

static const uint32_t *chunk_of(const uint32_t *indexes, uint64_t *turn, unsigned resident)
{
    return indexes + (resident & 2 ? 0 : (*turn)++ % (N_INDEXES / CHUNK) * CHUNK);
}

/* --- sum of numbers that a list names --- */

static double *picked;
static uint32_t *picks;

static CAUSE_LOOP double pick_sum(const double *x, const uint32_t *ix, uint64_t n, uint64_t shift, uint64_t mask,
                                  double sum)
{
    for (uint64_t i = 0; i < n; i++)
        sum += x[(ix[i] + shift) & mask];
    return sum;
}

static void make_picked(uint64_t size)
{
    picked = kernel_check(malloc(size * sizeof *picked));
    picks = kernel_check(malloc(N_INDEXES * sizeof *picks));
    cause_fill(picked, size, 1, 0.5);
    cause_fill_indexes(picks, N_INDEXES, size);
    table_mask = size - 1;
}

static void run_picked(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t turn, shift = 1;
    double sum = 0;
    (void)thread;
    for (uint64_t i = 0; i < n_turns; i++)
        sum = pick_sum(picked, chunk_of(picks, &turn, resident), CHUNK, cause_random(&shift) >> 32, mask_of(resident),
                       sum);
    cause_keep(sum);
}

/* --- pointers, each in the node before --- */

static struct kernel_node *nodes, *near_nodes;

static CAUSE_LOOP struct kernel_node *chase(struct kernel_node *node, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        node = node->next;
    return node;
}

static void make_nodes(uint64_t size)
{
    nodes = kernel_check(malloc(size * sizeof *nodes));
    near_nodes = kernel_check(malloc(128 * sizeof *near_nodes));
    kernel_link(nodes, size);
    kernel_link(near_nodes, 128);
}

static void run_nodes(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static struct kernel_node *at[2];
    unsigned is_near = resident & 1;
    (void)thread;
    if (!at[is_near])
        at[is_near] = is_near ? near_nodes : nodes;
    at[is_near] = chase(at[is_near], n_turns * 1000);
}

/* --- updates at random --- */

static uint64_t *table;

static CAUSE_LOOP uint64_t update(uint64_t *words, uint64_t mask, uint64_t n, uint64_t seed)
{
    for (uint64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        words[seed >> 36 & mask] ^= seed;
    }
    return seed;
}

static CAUSE_LOOP uint64_t store(uint64_t *words, uint64_t mask, uint64_t n, uint64_t seed)
{
    for (uint64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        words[seed >> 36 & mask] = seed;
    }
    return seed;
}

static void make_table(uint64_t size)
{
    table = kernel_check(malloc(size * sizeof *table));
    memset(table, 1, size * sizeof *table);
    table_mask = size - 1;
}

static void run_updates(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t seed = 1;
    (void)thread;
    seed = update(table, mask_of(resident), n_turns * 1000, seed);
}

static uint64_t *targets;

static void make_targets(uint64_t size)
{
    targets = kernel_check(malloc(size * sizeof *targets));
    memset(targets, 1, size * sizeof *targets);
    table_mask = size - 1;
}

static void run_stores(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t seed = 1;
    (void)thread;
    seed = store(targets, mask_of(resident), n_turns * 1000, seed);
}

/* --- a histogram --- */

static uint64_t *bins;
static uint32_t *keys;

static CAUSE_LOOP void count(uint64_t *counts, const uint32_t *values, uint64_t n, uint64_t shift, uint64_t mask)
{
    for (uint64_t i = 0; i < n; i++)
        counts[(values[i] + shift) & mask]++;
}

static void make_bins(uint64_t size)
{
    bins = kernel_check(malloc(size * sizeof *bins));
    keys = kernel_check(malloc(N_INDEXES * sizeof *keys));
    memset(bins, 1, size * sizeof *bins); /* of zeros, compilers make calloc, and the loop would fault its pages in */
    cause_fill_indexes(keys, N_INDEXES, size);
    table_mask = size - 1;
}

static void run_bins(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t turn, shift = 1;
    (void)thread;
    for (uint64_t i = 0; i < n_turns; i++)
        count(bins, chunk_of(keys, &turn, resident), CHUNK, cause_random(&shift) >> 32, mask_of(resident));
}

/* --- gathers: the list of positions stays in the cache, and is shifted --- */

#define N_POSITIONS UINT64_C(1024)
static uint32_t *gathered, *positions;

#ifdef __x86_64__
__attribute__((target("avx2"))) static CAUSE_LOOP uint64_t gather(const uint32_t *words, const uint32_t *list,
                                                                  uint64_t n, uint32_t shift, uint32_t mask)
{
    __m256i sum = _mm256_setzero_si256(), masks = _mm256_set1_epi32((int)mask), moved = _mm256_set1_epi32((int)shift);
    for (uint64_t i = 0; i < n; i += 8) {
        __m256i index = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(list + i)), moved);
        index = _mm256_and_si256(index, masks);
        sum = _mm256_add_epi32(sum, _mm256_i32gather_epi32((const int *)words, index, 4));
    }
    return (uint64_t)_mm256_extract_epi64(sum, 0);
}
#else
static uint64_t gather(const uint32_t *words, const uint32_t *list, uint64_t n, uint32_t shift, uint32_t mask)
{
    return words[(list[n - 1] + shift) & mask];
}
#endif

static void make_gathered(uint64_t size)
{
    gathered = kernel_check(malloc(size * sizeof *gathered));
    positions = kernel_check(malloc(N_POSITIONS * sizeof *positions));
    memset(gathered, 1, size * sizeof *gathered);
    cause_fill_indexes(positions, N_POSITIONS, UINT32_MAX);
    table_mask = size - 1;
}

static void run_gathered(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t shift = 1;
    uint64_t sum = 0;
    (void)thread;
    for (uint64_t i = 0; i < n_turns; i++)
        sum += gather(gathered, positions, N_POSITIONS, (uint32_t)(cause_random(&shift) >> 32),
                      (uint32_t)mask_of(resident));
    cause_keep_word(sum);
}

/* --- binary search: entry i of the sorted table stands for 8 i + its number, so that a masked table is sorted, too,
 * and takes as many steps --- */

static uint64_t *sorted;

static CAUSE_LOOP uint64_t search(const uint64_t *entries, uint64_t mask, uint64_t n, uint64_t key)
{
    uint64_t low = 0, high = n;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (key < 8 * middle + entries[middle & mask])
            high = middle;
        else
            low = middle;
    }
    return low;
}

static void make_sorted(uint64_t size)
{
    sorted = kernel_check(malloc(size * sizeof *sorted));
    kernel_fill(sorted, size);
    for (uint64_t i = 0; i < size; i++)
        sorted[i] &= 7;
    table_mask = size - 1;
}

static void run_sorted(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t seed = 1;
    uint64_t sum = 0, n = table_mask + 1;
    (void)thread;
    for (uint64_t i = 0; i < n_turns * 10; i++)
        sum += search(sorted, mask_of(resident), n, (cause_random(&seed) >> 20) % (8 * n));
    cause_keep_word(sum);
}

/* --- a hash table with chains; the twin is a small one that is as full --- */

struct entry {
    uint64_t key, value;
    struct entry *next;
    uint64_t rest[5];
};

static struct entry *entries, *few_entries;
static struct entry **buckets, **few_buckets;

static uint64_t hash_of(uint64_t key)
{
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

static void fill_hash(struct entry **heads, struct entry *chained, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        heads[i] = NULL;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t head = hash_of(hash_of(i)) & (n - 1);
        chained[i] = (struct entry){.key = hash_of(i), .value = i, .next = heads[head]};
        heads[head] = &chained[i];
    }
}

static CAUSE_LOOP uint64_t look_up(struct entry *const *heads, uint64_t mask, uint64_t n, uint64_t seed)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = hash_of(cause_random(&seed) >> 36 & mask);
        const struct entry *entry = heads[hash_of(key) & mask];
        while (entry && entry->key != key)
            entry = entry->next;
        sum += entry ? entry->value : 0;
    }
    return sum ^ seed;
}

static void make_hash(uint64_t size)
{
    entries = kernel_check(malloc(size * sizeof *entries));
    buckets = kernel_check(malloc(size * sizeof *buckets));
    few_entries = kernel_check(malloc(128 * sizeof *few_entries));
    few_buckets = kernel_check(malloc(128 * sizeof *few_buckets));
    fill_hash(buckets, entries, size);
    fill_hash(few_buckets, few_entries, 128);
    table_mask = size - 1;
}

static void run_hash(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t seed = 1;
    (void)thread;
    seed =
        resident ? look_up(few_buckets, 127, n_turns * 100, seed) : look_up(buckets, table_mask, n_turns * 100, seed);
}

const struct cause_row cause_irregular[] = {
    {.name = "indexed_256m", .groups = {"picked", "picks"}, .make = make_picked, .run = run_picked, .size = 32 * MEGA},
    {.name = "indexed_128k", .groups = {"picked", "picks"}, .make = make_picked, .run = run_picked, .size = MEGA / 64},
    {.name = "chase", .groups = {"nodes"}, .make = make_nodes, .run = run_nodes, .size = 4 * MEGA},
    {.name = "gups", .groups = {"table"}, .make = make_table, .run = run_updates, .size = 32 * MEGA},
    {.name = "gups_8k", .groups = {"table"}, .make = make_table, .run = run_updates, .size = MEGA / 1024},
    {.name = "gather",
     .groups = {"gathered"},
     .make = make_gathered,
     .run = run_gathered,
     .size = 64 * MEGA,
     .needs_avx2 = 1},
    {.name = "gather_8k",
     .groups = {"gathered"},
     .make = make_gathered,
     .run = run_gathered,
     .size = MEGA / 512,
     .needs_avx2 = 1},
    {.name = "histogram", .groups = {"bins", "keys"}, .make = make_bins, .run = run_bins, .size = 32 * MEGA},
    {.name = "histogram_8k", .groups = {"bins", "keys"}, .make = make_bins, .run = run_bins, .size = MEGA / 1024},
    {.name = "random_store", .groups = {"targets"}, .make = make_targets, .run = run_stores, .size = 32 * MEGA},
    {.name = "binary_search", .groups = {"sorted"}, .make = make_sorted, .run = run_sorted, .size = 32 * MEGA},
    {.name = "hash", .groups = {"entries+buckets"}, .make = make_hash, .run = run_hash, .size = 2 * MEGA},
    {.name = NULL},
};
