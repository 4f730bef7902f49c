/* SPDX-License-Identifier: BSD-3-Clause */
/* What the instructions that accessed a variable waited for: the table of accesses, filled through a hash while side
 * files are read, then sorted; the judgement of one walk through memory, strided or not; the table of walks, and the
 * sums by variable. See causes.h. */
#include "analysis/build/causes.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

static bool is_same(const void *one, const void *other)
{
    const struct node_access *a = one, *b = other;
    return a->node == b->node && a->event == b->event && a->module == b->module && a->vaddr == b->vaddr;
}

static uint64_t hash(const void *item)
{
    const struct node_access *access = item;
    return access->vaddr ^ (uint64_t)access->node << 36 ^ (uint64_t)access->module << 24 ^ access->event;
}

static const struct slots_kind by_instruction = {sizeof(struct node_access), hash, is_same};

bool accesses_add(struct access_table *table, const struct node_access *like, const struct spread *offsets)
{
    if (!slots_reserve(&table->slots, &by_instruction, table->items, table->n) ||
        !vec_reserve(&table->items, &table->capacity, table->n + 1, sizeof *table->items))
        return false;
    size_t index = slots_find(&table->slots, &by_instruction, table->items, like);
    if (index == SLOTS_NONE && table->n == ACCESSES_MAX)
        return true;
    if (index == SLOTS_NONE) {
        index = table->n++;
        table->items[index] = *like;
        table->items[index].n_samples = 0;
        table->items[index].offsets = (struct spread){0};
        slots_add(&table->slots, &by_instruction, table->items, index);
    }
    struct node_access *access = &table->items[index];
    access->n_samples += like->n_samples;
    for (size_t i = 0; i < offsets->n; i++)
        if (!spread_add(&access->offsets, offsets->entries[i].offset, offsets->entries[i].count))
            return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct node_access *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

void accesses_sort(struct access_table *table)
{
    slots_fini(&table->slots);
    if (table->n)
        qsort(table->items, table->n, sizeof *table->items, compare);
    for (size_t i = 0; i < table->n; i++)
        spread_reduce(&table->items[i].offsets);
}

const struct node_access *accesses_of_node(const struct access_table *table, uint32_t node, size_t *n)
{
    size_t low = search_below(table->items, table->n, SEARCH_KEY(struct node_access, node), node);
    for (*n = 0; low + *n < table->n && table->items[low + *n].node == node; (*n)++)
        ;
    return *n ? &table->items[low] : NULL;
}

void accesses_fini(struct access_table *table)
{
    for (size_t i = 0; i < table->n; i++)
        spread_fini(&table->items[i].offsets);
    free(table->items);
    slots_fini(&table->slots);
    *table = (struct access_table){0};
}

/* --- what an access waits for --- */

#define ENTRIES_MAX 300000
#define SPOTS_MAX 1000000
#define PAGE_BYTES 4096
#define WALK_ACCESS_MOST 16 /* bytes: a larger access is one of several elements */

/* The loop of the skid self-test whose load that misses is followed by others that do not, and its consumer later: of
 * its samples, MIXED_SAMPLES_MIN or more, so many percent must be of the load that misses, one instruction behind it.
 */
#define MIXED_LOOP "k2"
#define MIXED_SAMPLES_MIN 20
#define MIXED_PERCENT_MIN 90

#define STRAY_PART 0.02 /* of samples in a slot, below which the walk does not visit it */
#define BINS ((double)(1u << PATTERN_HASH_BITS))
#define CHANCE 1.5 /* standard deviations that may be chance */
/* The same for lines that come back more often than they should: where a few are used all the time, such as the top of
 * a search tree, they come back often though most samples wait for others. */
#define OFTEN_CHANCE 3.0
#define OFTEN_MIN 3 /* and samples, since a deviation says little of one that came back by chance */
/* A sweep keeps its pace at more than this part of its samples; of samples from anywhere a quarter do so by chance.
 * Fewer than FOLLOWED_MIN samples do not tell. */
#define PACED_PART 0.6
#define FOLLOWED_MIN 30

/* The parts of samples that waited, at least or at most where that is said. All were measured on loops with a
 * resident twin (doc/causes.md), and err least there. */

/* Where a line has two accesses, mostly vectors, the work of the second is done while the first waits, and is missing
 * at the second: what waited is this part of what shows, and at least all but WIDE_DONE of it. */
#define WIDE_PART 0.92
#define WIDE_DONE 0.15
/* At data in the second-level cache; at most L2_MOST where sums run side by side, or FAR_MOST in more than TLB_LINES
 * lines, most of which also wait for the second-level TLB: the first reaches 64 pages of 4 KiB on common processors.
 * Lines far apart, SPARSE_TIMES as many bytes as they have, may also take each other's places in the caches, as a power
 * of two between them does: SPARSE_MOST. Links of one chain of computations, during which later lines come, wait less.
 */
#define L2_PART 0.15
#define L2_MOST 0.5
#define FAR_MOST 0.65
#define TLB_LINES 4096
#define SPARSE_MOST 0.85
#define SPARSE_TIMES 8
#define SERIAL_PART 0.1
#define SERIAL_MOST 0.2
/* A list waits from each address to what is loaded there, by the cache that has it, on common processors; in all, at
 * most CHAIN_MOST of its samples do. */
#define L1_CYCLES 4.0
#define L2_CYCLES 15.0
#define CHAIN_MOST 0.8
/* At accesses that miss: the rest a hit takes too. */
#define MISS_PART 0.95
/* At random stores, at least: 0.77 on Zen 5, 0.97 on Intel. */
#define STORED_PART 0.75
/* At strides of a line or more, and at links of a chain of computations, whose lines come from beyond all caches, at
 * least: a link takes 4 cycles, 1.3 ns; a line takes 90 ns or more, and a core has 24 under way at most, so that one
 * comes every 3.7 ns. From a cache that is near they come as fast as the chain takes them. */
#define LINK_PART 0.65

/* Samples of one thread whose lines are judged together. */
struct cause_pool {
    uint64_t id, n, n_bins;
    uint64_t most_lines, all_lines; /* as in struct cause_access; most_lines is a sum, 0: some are not known */
    uint64_t n_followed, n_paced;
    uint64_t flags; /* PATTERN_MIXED and PATTERN_SERIAL of any of its instructions */
    struct cause_caches caches;
};

/* All samples of one walk on one variable. */
struct cause_entry {
    uint32_t node, event, module; /* node: the variable, once they are judged */
    uint64_t walk;                /* identifies the walk: pattern and place of the group, or of the instruction */
    uint64_t pattern;             /* of any of its instructions; its flags are those of all */
    uint64_t n_samples, n_near;   /* n_near: of data known to fit a core's share of the third-level cache */
    uint64_t n_most;              /* of the access with the most samples, whose stride the pattern has */
    uint64_t last_vaddr;          /* of its instructions */
    uint64_t slots[PATTERN_SLOTS];
    struct cause_pool pool;           /* of the last thread added */
    struct cause_footprint footprint; /* of threads with few samples */
    struct cause_sum judged;          /* of threads with enough */
};

static void add_sum(struct cause_sum *to, const struct cause_sum *from)
{
    to->memory += from->memory;
    to->memory_low += from->memory_low;
    to->memory_high += from->memory_high;
    to->memory_least += from->memory_least;
    to->memory_most += from->memory_most;
    to->execution += from->execution;
    to->unverified += from->unverified;
    to->resident += from->resident;
}

static struct cause_sum all_unverified(double n)
{
    return (struct cause_sum){.memory_high = n, .unverified = n};
}

static struct cause_sum all_execution(double n)
{
    return (struct cause_sum){.execution = n};
}

/* The sum for data in the core's own caches, of which a part waits for the second-level cache. */
static struct cause_sum resident(double n, double part, double most)
{
    double memory = n * part;
    return (struct cause_sum){
        .memory = memory, .memory_high = n * most, .execution = n - memory, .resident = n - memory};
}

/* The sum for a chain in the core's own caches: each step waits for the one before, by the latency of the cache that
 * has the line. l1: lines of the first-level cache; all: lines of the walk, HUGE_VAL where they are not known. */
static struct cause_sum resident_chain(double n, double l1, double all)
{
    double hits = all > l1 ? l1 / all : 1, cycles = hits * L1_CYCLES + (1 - hits) * L2_CYCLES;
    double memory = n * (1 - L1_CYCLES / cycles);
    return (struct cause_sum){.memory = memory,
                              .memory_low = memory / 2,
                              .memory_high = n * CHAIN_MOST,
                              .execution = n - memory,
                              .resident = n - memory};
}

/* --- strided walks --- */

static int compare_down(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* Median of sorted values [n], n > 0. */
static double median(const uint64_t *values, unsigned n)
{
    return n % 2 ? (double)values[n / 2] : ((double)values[n / 2 - 1] + (double)values[n / 2]) / 2;
}

/* Slots that are alike but for the first in the line. */
struct contrast {
    unsigned n_slots, n_compared; /* compared: slots that might stand out by chance; of two, the one or the other */
    double n, top, other;         /* samples: all, at the firsts, at each of the others */
};

static double shown_by(const struct contrast *contrast, unsigned n_firsts)
{
    return contrast->top - n_firsts * contrast->other;
}

/* The contrast of every period-th slot from slot first on. */
static struct contrast contrast_of(const uint64_t slots[PATTERN_SLOTS], unsigned first, unsigned period,
                                   unsigned n_slots, unsigned n_firsts)
{
    struct contrast contrast = {.n_slots = n_slots, .n_compared = n_slots == 2 ? 4 : n_slots};
    uint64_t sorted[PATTERN_SLOTS];
    unsigned n = 0;
    for (unsigned i = first; i < PATTERN_SLOTS; i += period) {
        contrast.n += (double)slots[i];
        sorted[n++] = slots[i];
    }
    qsort(sorted, n, sizeof *sorted, compare_down);
    for (unsigned i = 0; i < n_firsts; i++)
        contrast.top += (double)sorted[i];
    contrast.other = median(sorted + n_firsts, n_slots - n_firsts);
    return contrast;
}

/* After so many slots the same instructions visit a line again, or their copies in an unrolled loop, which take as
 * long: the shortest period with n_slots slots that agrees with where samples are. PATTERN_SLOTS where there is none.
 */
static unsigned period_of(const uint64_t slots[PATTERN_SLOTS], unsigned n_slots)
{
    unsigned period = 1;
    for (; period < PATTERN_SLOTS; period *= 2) {
        bool is_visited[PATTERN_SLOTS] = {false};
        unsigned n = 0;
        for (unsigned i = 0; i < PATTERN_SLOTS; i++)
            is_visited[i % period] |= slots[i] > 0;
        for (unsigned i = 0; i < period; i++)
            n += is_visited[i];
        if (n * (PATTERN_SLOTS / period) == n_slots)
            break;
    }
    return period;
}

/* The slots among which the first stands out: those of one place in the period, else all. */
static struct contrast clearest_of(const uint64_t slots[PATTERN_SLOTS], unsigned n_slots, unsigned n_firsts)
{
    unsigned period = n_firsts == 1 ? period_of(slots, n_slots) : PATTERN_SLOTS;
    struct contrast clearest = contrast_of(slots, 0, 1, n_slots, n_firsts);
    if (period == PATTERN_SLOTS || PATTERN_SLOTS / period == n_slots)
        return clearest;
    clearest.top = clearest.other; /* shows nothing: any place does as well */
    for (unsigned i = 0; i < period; i++) {
        struct contrast contrast = contrast_of(slots, i, period, PATTERN_SLOTS / period, 1);
        if (contrast.n > 0 && shown_by(&contrast, 1) >= shown_by(&clearest, 1))
            clearest = contrast;
    }
    clearest.n_compared = 2 * n_slots;
    return clearest;
}

/* Blocks that begin at different places in a line have their samples in different slots: how many times n_slots. */
static unsigned alignments_of(const uint64_t slots[PATTERN_SLOTS], double n, unsigned n_slots)
{
    unsigned n_visited = 0;
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        n_visited += (double)slots[i] > STRAY_PART * n;
    return n_visited > n_slots ? (n_visited + n_slots - 1) / n_slots : 1;
}

struct cause_sum causes_of_contrast(const uint64_t slots[PATTERN_SLOTS], unsigned n_slots, unsigned n_firsts)
{
    double n = 0;
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        n += (double)slots[i];
    unsigned n_alignments = alignments_of(slots, n, n_slots);
    n_slots *= n_alignments;
    n_firsts *= n_alignments;
    if (n < CAUSES_SAMPLES_MIN || n_firsts >= n_slots || n_slots > PATTERN_SLOTS)
        return all_unverified(n);
    struct contrast contrast = clearest_of(slots, n_slots, n_firsts);
    unsigned n_others = contrast.n_slots - n_firsts;
    double shown = shown_by(&contrast, n_firsts), excess = n_slots == 2 ? shown * WIDE_PART : shown;
    double noise = CHANCE * n_firsts * sqrt(2 * contrast.n / contrast.n_slots * log(contrast.n_compared));
    double deviation = sqrt(contrast.top + n_firsts * n_firsts * M_PI_2 * contrast.other / n_others);
    double error = noise + deviation;
    if (shown < noise)
        return (struct cause_sum){.memory_high = noise, .execution = n};
    double low = shown - error - (n_slots == 2 ? shown * WIDE_DONE : 0);
    double high = shown + (n - shown) * shown / n + fmin(error, 2 * deviation);
    return (struct cause_sum){
        .memory = excess, .memory_low = fmax(0, low), .memory_high = fmin(n, high), .execution = n - excess};
}

/* --- other walks --- */

/* Expected number of n samples that meet a line which an earlier one met, when each line is equally likely. */
static double repeated_of(double n, double lines)
{
    return n + lines * expm1(-n / lines);
}

/* Different lines of samples that hit n_bins bins: linear counting. */
static double distinct_of(uint64_t n, uint64_t n_bins)
{
    double free_bins = BINS - (double)n_bins;
    double distinct = BINS * log(BINS / (free_bins > 1 ? free_bins : 1));
    return distinct < (double)n ? distinct : (double)n;
}

double causes_lines(uint64_t n, uint64_t n_bins)
{
    double distinct = distinct_of(n, n_bins), low = distinct, high = distinct;
    if (n == 0 || distinct >= (double)n)
        return HUGE_VAL;
    while (high * -expm1(-(double)n / high) < distinct && high < 1e18)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (middle * -expm1(-(double)n / middle) < distinct)
            low = middle;
        else
            high = middle;
    }
    return high;
}

void causes_add_footprint(struct cause_footprint *sum, uint64_t n, uint64_t n_bins, uint64_t lines)
{
    double expected = repeated_of((double)n, (double)lines), load = ((double)n - expected) / BINS;
    sum->n += n;
    sum->n_repeated += (double)n - distinct_of(n, n_bins);
    sum->n_expected += expected;
    /* of linear counting (Whang, Vander-Zanden, Taylor 1990), and of the number of lines that come back */
    sum->variance += BINS * (expm1(load) - load) + expected;
}

static void add_footprint(struct cause_footprint *to, const struct cause_footprint *from)
{
    to->n += from->n;
    to->n_repeated += from->n_repeated;
    to->n_expected += from->n_expected;
    to->variance += from->variance;
    to->n_large += from->n_large;
    to->n_far += from->n_far;
    to->n_fits += from->n_fits;
    to->n_followed += from->n_followed;
    to->n_paced += from->n_paced;
}

/* Whether chance alone is unlikely to make lines come back this often, or this rarely. */
static bool is_sure(const struct cause_footprint *sum)
{
    double more = sum->n_repeated - sum->n_expected, deviation = sqrt(sum->variance);
    return sum->n >= CAUSES_SAMPLES_MIN && (more > OFTEN_CHANCE * deviation + OFTEN_MIN || more < -CHANCE * deviation);
}

/* The sum for data in the core's own caches, by the lines that are known of them: what is in the first-level cache
 * waits for nothing. */
static struct cause_sum resident_of(const struct cause_footprint *sum, uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    double n = (double)sum->n;
    bool has_lines = sum->lines > 0;
    if (has_lines && sum->lines <= sum->l1_lines)
        return resident(n, 0, 0);
    if (kind != PATTERN_CHAINED && sum->is_sparse)
        return (struct cause_sum){.memory = n / 2, .memory_high = n * SPARSE_MOST, .execution = n / 2};
    if (pattern_is_serial(pattern))
        return resident(n, SERIAL_PART, SERIAL_MOST);
    if (kind != PATTERN_CHAINED)
        return resident(n, L2_PART, has_lines && sum->lines <= TLB_LINES ? L2_MOST : FAR_MOST);
    return has_lines ? resident_chain(n, sum->l1_lines, sum->lines) : resident(n, CHAIN_MOST / 2, CHAIN_MOST);
}

/* Whether the walk sweeps over its data at one speed. */
static bool is_sweep(const struct cause_footprint *sum)
{
    return sum->n_followed >= FOLLOWED_MIN && (double)sum->n_paced > PACED_PART * (double)sum->n_followed;
}

struct cause_sum causes_of_footprint(const struct cause_footprint *sum, uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    bool is_mixed = pattern & PATTERN_MIXED;
    bool is_strided = kind == PATTERN_STRIDED || kind == PATTERN_DERIVED, is_stored = kind == PATTERN_STORED;
    bool is_link = is_mixed && kind != PATTERN_CHAINED, is_far = 2 * sum->n_far > sum->n,
         may_move = kind != PATTERN_CHAINED && 2 * sum->n_fits > sum->n;
    double n = (double)sum->n,
           sure = n * (is_stored               ? STORED_PART
                       : is_strided || is_link ? LINK_PART
                                               : 0.8),
           unverified = is_stored ? n - sure : 0;
    double memory = is_stored ? sure : n * (is_strided ? 1 : MISS_PART);
    bool is_often = sum->n_repeated > sum->n_expected;
    if (!is_sure(sum) || (is_often && 2 * sum->n_large > sum->n && 2 * sum->n_repeated < n))
        return all_unverified(n);
    if (is_often)
        return resident_of(sum, pattern);
    if (may_move || (!is_strided && is_sweep(sum)) || (is_link && (is_strided || !is_far)))
        return all_unverified(n);
    return (struct cause_sum){.memory = memory,
                              .memory_low = sure,
                              .memory_high = n,
                              .execution = n - unverified - memory,
                              .unverified = unverified};
}

/* --- the table --- */

static bool is_same_entry(const void *one, const void *other)
{
    const struct cause_entry *a = one, *b = other;
    return a->node == b->node && a->event == b->event && a->module == b->module && a->walk == b->walk;
}

static uint64_t entry_hash(const void *item)
{
    const struct cause_entry *entry = item;
    return entry->walk ^ (uint64_t)entry->node << 36 ^ (uint64_t)entry->module << 24 ^ entry->event;
}

static const struct slots_kind by_walk = {sizeof(struct cause_entry), entry_hash, is_same_entry};

/* The entry like this one, added when new. *is_full: there is no room for a new one. NULL: full, or out of memory. */
static struct cause_entry *find_entry(struct cause_table *table, const struct cause_entry *like, bool *is_full)
{
    *is_full = false;
    if (!slots_reserve(&table->slots, &by_walk, table->entries, table->n) ||
        !vec_reserve(&table->entries, &table->capacity, table->n + 1, sizeof *table->entries))
        return NULL;
    size_t index = slots_find(&table->slots, &by_walk, table->entries, like);
    *is_full = index == SLOTS_NONE && table->n == ENTRIES_MAX;
    if (*is_full)
        return NULL;
    if (index == SLOTS_NONE) {
        index = table->n++;
        table->entries[index] = *like;
        slots_add(&table->slots, &by_walk, table->entries, index);
    }
    return &table->entries[index];
}

static bool is_same_spot(const void *one, const void *other)
{
    const struct cause_spot *a = one, *b = other;
    return a->node == b->node && a->event == b->event && a->module == b->module && a->vaddr == b->vaddr &&
           a->walk == b->walk;
}

static uint64_t hash_spot(const void *item)
{
    const struct cause_spot *spot = item;
    return spot->vaddr ^ spot->walk << 7 ^ (uint64_t)spot->node << 36 ^ (uint64_t)spot->module << 24 ^ spot->event;
}

static const struct slots_kind by_spot = {sizeof(struct cause_spot), hash_spot, is_same_spot};

/* False when out of memory. */
static bool add_spot(struct cause_table *table, const struct cause_spot *like)
{
    if (!slots_reserve(&table->spot_slots, &by_spot, table->spots, table->n_spots) ||
        !vec_reserve(&table->spots, &table->cap_spots, table->n_spots + 1, sizeof *table->spots))
        return false;
    size_t index = slots_find(&table->spot_slots, &by_spot, table->spots, like);
    if (index != SLOTS_NONE) {
        table->spots[index].n_samples += like->n_samples;
    } else if (table->n_spots < SPOTS_MAX) {
        table->spots[table->n_spots] = *like;
        slots_add(&table->spot_slots, &by_spot, table->spots, table->n_spots++);
    }
    return true;
}

/* The flags of a walk that are those of any of its instructions. */
static uint64_t walk_flags(uint64_t pattern)
{
    return (pattern & PATTERN_MIXED) | (pattern_is_serial(pattern) ? PATTERN_SERIAL : 0);
}

/* The pattern with these flags of walk_flags() instead of its own. */
static uint64_t with_flags(uint64_t pattern, uint64_t flags)
{
    return (pattern & ~walk_flags(pattern)) | flags;
}

/* Judges what the entry's thread has pooled, and begins a new pool. A pool that says nothing alone is judged with those
 * of other threads. */
static void close_pool(struct cause_entry *entry)
{
    struct cause_pool pool = entry->pool;
    uint64_t most_lines =
        pool.most_lines && pool.all_lines && pool.all_lines < pool.most_lines ? pool.all_lines : pool.most_lines;
    bool is_small = most_lines && most_lines <= pool.caches.l2_lines;
    double l1_lines = (double)pool.caches.l1_lines, seen = causes_lines(pool.n, pool.n_bins);
    bool is_first_level =
        (most_lines && most_lines <= pool.caches.l1_lines) || (seen <= 1.1 * l1_lines && most_lines <= TLB_LINES);
    struct cause_footprint own = {.l1_lines = l1_lines};
    entry->pool = (struct cause_pool){.n = 0};
    if (pool.n == 0)
        return;
    /* small: counted as if one line came back each time, so that it speaks for the cache, however few lines came back
     */
    causes_add_footprint(&own, pool.n, is_small ? 1 : pool.n_bins, pool.caches.l2_lines);
    own.n_large = most_lines > pool.caches.l2_lines ? pool.n : 0;
    own.n_far = most_lines > pool.caches.l3_lines ? pool.n : 0;
    own.n_fits = most_lines && !own.n_far ? pool.n : 0;
    own.n_followed = pool.n_followed;
    own.n_paced = pool.n_paced;
    own.is_sparse = most_lines > TLB_LINES && SPARSE_TIMES * seen < (double)most_lines;
    own.lines = is_first_level ? l1_lines : most_lines ? (double)most_lines : seen;
    if (!is_sure(&own)) {
        add_footprint(&entry->footprint, &own);
        return;
    }
    struct cause_sum judged = causes_of_footprint(&own, with_flags(entry->pattern, pool.flags));
    add_sum(&entry->judged, &judged);
}

/* The instructions of one pool may access different parts of the variable: the parts add up. */
static void add_to_pool(struct cause_entry *entry, const struct cause_access *access, const struct cause_caches *caches)
{
    struct cause_pool *pool = &entry->pool;
    if (pool->id != access->pool_id)
        close_pool(entry);
    if (pool->n == 0)
        *pool = (struct cause_pool){.id = access->pool_id, .caches = *caches};
    bool is_known = access->most_lines && (pool->n == 0 || pool->most_lines);
    pool->most_lines = is_known ? pool->most_lines + access->most_lines : 0;
    pool->all_lines = access->all_lines;
    pool->flags |= walk_flags(access->pattern);
    for (unsigned i = 0; i < PATTERN_SLOTS; i++) /* without those for whose lines there was no room */
        pool->n += access->slots[i];
    pool->n_bins += access->n_bins;
    pool->n_followed += access->n_followed;
    pool->n_paced += access->n_paced;
}

/* Whether the data are known to fit a core's share of the third-level cache. */
static bool fits_last_cache(const struct cause_access *access, const struct cause_caches *caches)
{
    return (access->most_lines && access->most_lines <= caches->l3_lines) ||
           (access->all_lines && access->all_lines <= caches->l3_lines);
}

bool causes_add(struct cause_table *table, const struct cause_access *access, const struct cause_caches *caches)
{
    bool has_footprint = pattern_has_footprint(access->pattern), is_full;
    uint64_t kind = (uint64_t)pattern_kind(access->pattern) << 56;
    struct cause_entry like = {.node = access->node,
                               .event = access->event,
                               .module = access->module,
                               .walk = access->vaddr ^ (access->pattern & PATTERN_NO_LINE) ^ kind,
                               .pattern = access->pattern};
    if (pattern_has_contrast(access->pattern))
        like.walk = pattern_walk(access->pattern);
    else if (has_footprint)
        like.walk = pattern_pool(access->pattern) | UINT64_C(1) << 60;
    struct cause_entry *entry = find_entry(table, &like, &is_full);
    if (!entry)
        return is_full;
    entry->n_samples += access->n_samples;
    entry->n_near += fits_last_cache(access, caches) ? access->n_samples : 0;
    entry->last_vaddr = access->vaddr > entry->last_vaddr ? access->vaddr : entry->last_vaddr;
    if (has_footprint && pattern_kind(entry->pattern) < PATTERN_IRREGULAR && access->n_samples > entry->n_most) {
        entry->n_most = access->n_samples;
        entry->pattern = pattern_with_stride(entry->pattern, pattern_stride_bytes(access->pattern));
    }
    entry->pattern |= walk_flags(access->pattern);
    for (unsigned i = 0; access->slots && i < PATTERN_SLOTS; i++)
        entry->slots[i] += access->slots[i];
    if (has_footprint && access->slots)
        add_to_pool(entry, access, caches);
    return add_spot(table, &(struct cause_spot){.node = like.node,
                                                .event = like.event,
                                                .module = like.module,
                                                .vaddr = access->vaddr,
                                                .walk = like.walk,
                                                .n_samples = access->n_samples});
}

void causes_renumber(struct cause_table *table, const uint32_t *index_of)
{
    slots_fini(&table->slots);
    for (size_t i = 0; i < table->n; i++) {
        close_pool(&table->entries[i]);
        table->entries[i].node = index_of[table->entries[i].node];
    }
    slots_fini(&table->spot_slots);
    for (size_t i = 0; i < table->n_spots; i++)
        table->spots[i].node = index_of[table->spots[i].node];
}

void causes_fini(struct cause_table *table)
{
    free(table->entries);
    slots_fini(&table->slots);
    free(table->spots);
    slots_fini(&table->spot_slots);
    *table = (struct cause_table){0};
}

/* --- judging --- */

/* Scales what was found for the samples whose lines are known to all n. */
static struct cause_sum scaled(struct cause_sum sum, double n)
{
    double known = sum.memory + sum.execution + sum.unverified, by = known > 0 ? n / known : 0;
    if (known <= 0)
        return all_unverified(n);
    return (struct cause_sum){.memory = by * sum.memory,
                              .memory_low = by * sum.memory_low,
                              .memory_high = by * sum.memory_high,
                              .execution = by * sum.execution,
                              .unverified = by * sum.unverified,
                              .resident = by * sum.resident};
}

static struct cause_sum judge(const struct cause_entry *entry, bool is_in_order)
{
    double n = (double)entry->n_samples;
    enum pattern_kind kind = pattern_kind(entry->pattern);
    if (kind == PATTERN_FIXED || (kind == PATTERN_FED && is_in_order))
        return all_execution(n);
    if (kind == PATTERN_UNKNOWN || kind == PATTERN_FED || entry->pattern & PATTERN_NO_LINE)
        return all_unverified(n);
    if (pattern_has_contrast(entry->pattern)) {
        struct cause_sum sum =
            causes_of_contrast(entry->slots, pattern_slots(entry->pattern), pattern_firsts(entry->pattern));
        if (2 * entry->n_near > entry->n_samples) /* all that runs beside these short waits may take their time */
            sum.memory_low = fmax(0, sum.memory_low - sum.execution);
        return scaled(sum, n);
    }
    struct cause_sum sum = causes_of_footprint(&entry->footprint, entry->pattern);
    add_sum(&sum, &entry->judged);
    return scaled(sum, n);
}

static int compare_words(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_entries(const void *a, const void *b)
{
    const struct cause_entry *x = a, *y = b;
    int order = compare_words(x->node, y->node);
    order = order ? order : compare_words(x->event, y->event);
    order = order ? order : compare_words(x->module, y->module);
    order = order ? order : compare_words(x->walk, y->walk);
    return order ? order : compare_words(x->n_samples, y->n_samples);
}

/* The order of compare_entries. */
static int compare_spots_by_walk(const void *a, const void *b)
{
    const struct cause_spot *x = a, *y = b;
    int order = compare_words(x->node, y->node);
    order = order ? order : compare_words(x->event, y->event);
    order = order ? order : compare_words(x->module, y->module);
    return order ? order : compare_words(x->walk, y->walk);
}

static int compare_spots(const void *a, const void *b)
{
    const struct cause_spot *x = a, *y = b;
    int order = compare_words(x->node, y->node);
    order = order ? order : compare_words(x->module, y->module);
    order = order ? order : compare_words(x->vaddr, y->vaddr);
    return order ? order : compare_words(x->event, y->event);
}

static void join(struct cause_entry *to, const struct cause_entry *from)
{
    to->n_samples += from->n_samples;
    to->n_near += from->n_near;
    to->last_vaddr = from->last_vaddr > to->last_vaddr ? from->last_vaddr : to->last_vaddr;
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        to->slots[i] += from->slots[i];
    to->pattern |= walk_flags(from->pattern);
    add_footprint(&to->footprint, &from->footprint);
    add_sum(&to->judged, &from->judged);
}

#define VIRTUAL_L3_MOST_KIB 32768 /* of a virtual machine whose caches were not measured */

static void lower(uint64_t *lines, double kib)
{
    uint64_t measured = kib > 0 ? (uint64_t)(kib * 1024 / PATTERN_LINE_BYTES) : 0;
    if (measured && measured < *lines)
        *lines = measured;
}

void causes_caches_measured(struct cause_caches *caches, const char *skid)
{
    json_t *figures = skid ? json_loads(skid, 0, NULL) : NULL;
    const json_t *measured = json_object_get(figures, "caches");
    const json_t *levels = json_object_get(measured, "effective_kib");
    const char *hypervisor = json_string_value(json_object_get(figures, "hypervisor"));
    bool is_virtual = hypervisor && strcmp(hypervisor, "none") != 0 && strcmp(hypervisor, "unknown") != 0;
    lower(&caches->l1_lines, json_number_value(json_array_get(levels, 0)));
    lower(&caches->l2_lines, json_number_value(json_array_get(levels, 1)));
    lower(&caches->l3_lines, json_number_value(json_array_get(levels, 2)));
    lower(&caches->l3_lines, json_number_value(json_object_get(measured, "all_kib")));
    if (!measured && is_virtual)
        lower(&caches->l3_lines, VIRTUAL_L3_MOST_KIB);
    json_decref(figures);
}

bool causes_retire_in_order(const char *skid)
{
    json_t *figures = skid ? json_loads(skid, 0, NULL) : NULL, *kernel;
    bool holds = true;
    size_t i;
    json_array_foreach(json_object_get(figures, "kernels"), i, kernel)
    {
        const char *name = json_string_value(json_object_get(kernel, "name"));
        if (name && strcmp(name, MIXED_LOOP) == 0 &&
            json_number_value(json_object_get(kernel, "samples")) >= MIXED_SAMPLES_MIN)
            holds = json_number_value(json_object_get(kernel, "percent_next")) >= MIXED_PERCENT_MIN;
    }
    json_decref(figures);
    return holds;
}

uint64_t causes_events(const struct cause_table *table, const struct model *model)
{
    uint64_t events = 0;
    for (size_t i = 0; i < table->n; i++)
        if (table->entries[i].pattern && table->entries[i].event < 64 && table->entries[i].event < model->n_events)
            events |= UINT64_C(1) << table->entries[i].event;
    for (uint32_t e = 0; e < 64 && e < model->n_events; e++)
        if (model->events[e].has_data_source)
            events &= ~(UINT64_C(1) << e);
    return events;
}

/* Gives the spots of the entry, from *at on, its verdict; moves *at past them. */
static void set_spot_parts(struct cause_table *table, const struct cause_entry *entry, const struct cause_sum *sum,
                           size_t *at)
{
    double all = sum->memory + sum->execution + sum->unverified;
    for (; *at < table->n_spots; ++*at) {
        struct cause_spot *spot = &table->spots[*at];
        if (spot->node != entry->node || spot->event != entry->event || spot->module != entry->module ||
            spot->walk != entry->walk)
            return;
        double n = all > 0 ? (double)spot->n_samples / all : 0;
        spot->parts[CAUSE_MEMORY] = n * sum->memory;
        spot->parts[CAUSE_EXECUTION] = n * sum->execution;
        spot->parts[CAUSE_UNVERIFIED] = n * sum->unverified;
    }
}

/* Adds the entry's walk, of which sum was found, to its variable. */
static bool add_walk(const struct cause_entry *entry, const struct cause_sum *sum, struct variable *variable)
{
    enum pattern_kind kind = pattern_kind(entry->pattern);
    bool is_strided = kind == PATTERN_STRIDED || kind == PATTERN_DERIVED;
    struct variable_walk walk = {.event = entry->event,
                                 .kind = is_strided ? PATTERN_STRIDED : (uint8_t)kind,
                                 .samples = (double)entry->n_samples,
                                 .memory = sum->memory};
    if (is_strided && !pattern_has_contrast(entry->pattern) && pattern_access_bytes(entry->pattern) <= WALK_ACCESS_MOST)
        walk.stride_bytes = (uint32_t)abs(pattern_stride_bytes(entry->pattern));
    if (walk.stride_bytes > WALK_STRIDE_MOST)
        walk.stride_bytes = WALK_STRIDE_MOST;
    return causes_add_walk(variable, &walk);
}

/* Adds what was found for the entry to the time of its loop. Places of walks count from where the module begins, which
 * is the start of a page. */
static bool add_wait(const struct cause_entry *entry, const struct cause_sum *sum, struct cause_waits *waits)
{
    uint64_t place = pattern_group(entry->pattern);
    enum pattern_kind kind = pattern_kind(entry->pattern);
    const struct cause_wait wait = {.variable = entry->node,
                                    .event = entry->event,
                                    .module = entry->module,
                                    .is_head = pattern_has_footprint(entry->pattern),
                                    .is_stream = pattern_has_contrast(entry->pattern),
                                    .place = place,
                                    .last = place + (entry->last_vaddr - place) % PAGE_BYTES,
                                    .samples = (double)entry->n_samples,
                                    .memory = sum->memory + sum->unverified / 2,
                                    .low = sum->memory_low,
                                    .high = sum->memory_high,
                                    .fed = kind == PATTERN_FED ? sum->execution : 0,
                                    .linked = pattern_is_serial(entry->pattern) ? sum->resident : 0,
                                    .near = sum->memory_high > 0 ? 0 : sum->resident};
    bool has_place = wait.is_head || kind == PATTERN_FED || pattern_has_contrast(entry->pattern);
    return !has_place || cause_waits_add(waits, &wait);
}

/* Judges the entries of one variable and event, from *i on, and adds their sum to the variable; moves *i past them, and
 * *spot past their spots. */
static bool judge_variable(struct cause_table *table, size_t *i, size_t *spot, struct model *model, uint64_t events,
                           bool is_in_order, struct cause_waits *waits)
{
    const struct cause_entry *first = &table->entries[*i];
    bool has_verdict = first->node < model->n_variables && first->event < 64 && events >> first->event & 1, ok = true;
    struct cause_sum all = {0};
    size_t first_wait = waits->n;
    while (*i < table->n && table->entries[*i].node == first->node && table->entries[*i].event == first->event) {
        struct cause_entry *entry = &table->entries[(*i)++];
        while (*i < table->n && is_same_entry(&table->entries[*i], entry))
            join(entry, &table->entries[(*i)++]);
        struct cause_sum sum = judge(entry, is_in_order);
        add_sum(&all, &sum);
        set_spot_parts(table, entry, &sum, spot);
        ok = ok &&
             (!has_verdict || (add_walk(entry, &sum, &model->variables[first->node]) && add_wait(entry, &sum, waits)));
    }
    if (!has_verdict || !ok)
        return ok;
    double total = all.memory + all.execution + all.unverified;
    for (size_t k = first_wait; k < waits->n; k++) {
        struct cause_wait *wait = &waits->items[k];
        wait->late = cause_late(wait->fed, all.memory + all.unverified / 2, total);
        all.memory_high += wait->late;
    }
    all.memory_least = all.memory_low;
    all.memory_most = all.memory_high;
    return causes_add_sum(&model->variables[first->node], first->event, &all);
}

bool causes_apply(struct cause_table *table, struct model *model, const uint32_t *variable_of, size_t n_nodes)
{
    uint64_t events = causes_events(table, model);
    bool ok = true, is_in_order = causes_retire_in_order(model->skid);
    struct cause_waits waits = {0};
    if (events && !is_in_order)
        model_note(model,
                   "On this machine samples after a load that waits also fall on instructions without access (skid "
                   "self-test, loop k2): execution that data only feed cannot be told from waiting, and counts as "
                   "unverified.");
    for (size_t i = 0; i < table->n; i++) {
        struct cause_entry *entry = &table->entries[i];
        close_pool(entry);
        entry->node = entry->node < n_nodes ? variable_of[entry->node] : UINT32_MAX;
    }
    if (table->n)
        qsort(table->entries, table->n, sizeof *table->entries, compare_entries);
    for (size_t i = 0; i < table->n_spots; i++)
        table->spots[i].node = table->spots[i].node < n_nodes ? variable_of[table->spots[i].node] : UINT32_MAX;
    if (table->n_spots)
        qsort(table->spots, table->n_spots, sizeof *table->spots, compare_spots_by_walk);
    for (size_t i = 0, spot = 0; ok && i < table->n;)
        ok = judge_variable(table, &i, &spot, model, events, is_in_order, &waits);
    cause_waits_share(&waits, model);
    cause_waits_fini(&waits);
    if (table->n_spots)
        qsort(table->spots, table->n_spots, sizeof *table->spots, compare_spots);
    return ok;
}

/* For the search of the spots that come before one. */
struct spots_before {
    const struct cause_spot *spots, *like;
};

static bool is_spot_before(const void *context, size_t i)
{
    const struct spots_before *before = context;
    return compare_spots(&before->spots[i], before->like) < 0;
}

void causes_parts(const struct cause_table *table, uint32_t variable, uint32_t event, uint32_t module, uint64_t vaddr,
                  double parts[CAUSE_PARTS])
{
    const struct cause_spot like = {.node = variable, .event = event, .module = module, .vaddr = vaddr};
    const struct spots_before before = {table->spots, &like};
    size_t low = search_where(table->n_spots, is_spot_before, &before);
    double n = 0;
    memset(parts, 0, CAUSE_PARTS * sizeof *parts);
    for (; low < table->n_spots && compare_spots(&table->spots[low], &like) == 0; low++) {
        n += (double)table->spots[low].n_samples;
        for (int k = 0; k < CAUSE_PARTS; k++)
            parts[k] += table->spots[low].parts[k];
    }
    for (int k = 0; n > 0 && k < CAUSE_PARTS; k++)
        parts[k] /= n;
    if (n <= 0)
        parts[CAUSE_UNVERIFIED] = 1;
}

bool causes_are_unknown(const char *name)
{
    return strcmp(name, "<address lost>") == 0 || strcmp(name, "<unknown>") == 0 ||
           strcmp(name, "<not data-centric>") == 0;
}

bool causes_add_sum(struct variable *variable, uint32_t event, const struct cause_sum *sum)
{
    size_t i = 0;
    while (i < variable->n_causes && variable->causes[i].event != event)
        i++;
    if (i == variable->n_causes) {
        if (!vec_reserve(&variable->causes, &variable->cap_causes, i + 1, sizeof *variable->causes))
            return false;
        variable->causes[variable->n_causes++] = (struct variable_cause){.event = event};
    }
    add_sum(&variable->causes[i].sum, sum);
    return true;
}

static size_t find_walk(const struct variable *variable, const struct variable_walk *like)
{
    size_t i = 0;
    while (i < variable->n_walks && (variable->walks[i].event != like->event || variable->walks[i].kind != like->kind ||
                                     variable->walks[i].stride_bytes != like->stride_bytes))
        i++;
    return i;
}

bool causes_add_walk(struct variable *variable, const struct variable_walk *walk)
{
    const struct variable_walk other = {
        .event = walk->event, .kind = PATTERN_UNKNOWN, .samples = walk->samples, .memory = walk->memory};
    size_t i = find_walk(variable, walk);
    if (i == variable->n_walks && i >= WALKS_MAX) {
        walk = &other;
        i = find_walk(variable, walk);
    }
    if (i == variable->n_walks) {
        if (!vec_reserve(&variable->walks, &variable->cap_walks, i + 1, sizeof *variable->walks))
            return false;
        variable->walks[variable->n_walks++] =
            (struct variable_walk){.event = walk->event, .kind = walk->kind, .stride_bytes = walk->stride_bytes};
    }
    variable->walks[i].samples += walk->samples;
    variable->walks[i].memory += walk->memory;
    return true;
}

const struct cause_sum *causes_of(const struct variable *variable, uint32_t event)
{
    for (size_t i = 0; i < variable->n_causes; i++)
        if (variable->causes[i].event == event)
            return &variable->causes[i].sum;
    return NULL;
}
