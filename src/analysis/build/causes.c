/* SPDX-License-Identifier: BSD-3-Clause */
/* What the instructions that accessed a variable waited for: the judgement of one walk through memory, strided or not;
 * the table of walks, filled through a hash while side files are read; and the sums by variable. See causes.h. */
#include "analysis/build/causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

#define ENTRIES_MAX 300000
#define SPOTS_MAX 1000000
#define RESTS_MAX 1000000
#define HASHES_MAX 16000000
#define PAGE_BYTES 4096
#define WALK_ACCESS_MOST 16 /* bytes: a larger access is one of several elements */

#define BINS ((double)(1u << PATTERN_HASH_BITS))
/* The same for lines that come back more often than they should: where a few are used all the time, such as the top of
 * a search tree, they come back often though most samples wait for others. */
#define OFTEN_CHANCE 3.0
#define OFTEN_MIN 3 /* and samples, since a deviation says little of one that came back by chance */
/* A sweep keeps its pace at more than this part of its samples; of samples from anywhere a quarter do so by chance.
 * Fewer than FOLLOWED_MIN samples do not tell. */
#define PACED_PART 0.6
#define FOLLOWED_MIN 30
/* Samples from anywhere in a variable move forward as often as backward; those of two sweeps three quarters of the
 * times, of four five eighths. */
#define DIRECTED_PART 0.1

/* The parts of samples that waited, at least or at most where that is said. All were measured on loops with a
 * resident twin (doc/causes.md), and err least there. */

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
    uint32_t rest;  /* index + 1 of its last cause_rest, 0: none */
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
    struct cause_sum verdict;         /* of all samples */
    uint64_t n_open;                  /* samples that are being judged with those of other walks */
    bool is_settled, is_tried;        /* they have been, or could not be */
};

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

/* --- other walks --- */

#define MET_DEVIATIONS 1.645 /* of the normal distribution, for five per cent beyond */
#define MET_NEVER 2.996      /* ln(1 / 5 %): so many are met at least with that certainty, where none was */

double causes_repeated(double n, double lines)
{
    return n + lines * expm1(-n / lines);
}

double causes_near_most(const struct cause_meetings *met)
{
    /* how many may be expected, where so many were met: chi-squared by Wilson and Hilferty (1931) */
    double seen = met->n_met + 1, root = 1 - 1 / (9 * seen) + MET_DEVIATIONS / (3 * sqrt(seen));
    double most = fmax(MET_NEVER, seen * root * root * root - met->n_chance), n = (double)met->n;
    double threads = met->n_threads ? met->n_threads : 1, low = 0, high = n;
    if (threads * causes_repeated(n / threads, met->lines) <= most)
        return n;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (threads * causes_repeated(middle / threads, met->lines) < most)
            low = middle;
        else
            high = middle;
    }
    return high;
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
    double expected = causes_repeated((double)n, (double)lines), load = ((double)n - expected) / BINS;
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

/* Whether chance alone is unlikely to make lines come back this often. */
static bool comes_often(const struct cause_footprint *sum)
{
    return sum->n_repeated - sum->n_expected > OFTEN_CHANCE * sqrt(sum->variance) + OFTEN_MIN;
}

/* The same, or this rarely. */
static bool is_sure(const struct cause_footprint *sum)
{
    return sum->n >= CAUSES_SAMPLES_MIN &&
           (comes_often(sum) || sum->n_repeated - sum->n_expected < -CAUSES_CHANCE * sqrt(sum->variance));
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

/* Whether lines that do not come back say nothing of the walk. */
static bool is_told_nothing(const struct cause_footprint *sum, uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    bool is_strided = kind == PATTERN_STRIDED || kind == PATTERN_DERIVED, is_far = 2 * sum->n_far > sum->n;
    bool is_link = pattern & PATTERN_MIXED && kind != PATTERN_CHAINED;
    return (kind != PATTERN_CHAINED && 2 * sum->n_fits > sum->n) || (!is_strided && is_sweep(sum)) ||
           (is_link && (is_strided || !is_far));
}

/* The sum for data beyond the core's own caches. */
static struct cause_sum far_of(const struct cause_footprint *sum, uint64_t pattern)
{
    enum pattern_kind kind = pattern_kind(pattern);
    bool is_link = pattern & PATTERN_MIXED && kind != PATTERN_CHAINED;
    bool is_strided = kind == PATTERN_STRIDED || kind == PATTERN_DERIVED, is_stored = kind == PATTERN_STORED;
    double n = (double)sum->n,
           sure = n * (is_stored               ? STORED_PART
                       : is_strided || is_link ? LINK_PART
                                               : 0.8),
           unverified = is_stored ? n - sure : 0;
    double memory = is_stored ? sure : n * (is_strided ? 1 : MISS_PART);
    return (struct cause_sum){.memory = memory,
                              .memory_low = sure,
                              .memory_high = n,
                              .execution = n - unverified - memory,
                              .unverified = unverified};
}

/* What lines say that come back surely more often, or less often, than by chance. */
static struct cause_sum footprint_verdict(const struct cause_footprint *sum, uint64_t pattern)
{
    bool is_often = sum->n_repeated > sum->n_expected;
    if (is_often && 2 * sum->n_large > sum->n && 2 * sum->n_repeated < (double)sum->n)
        return all_unverified((double)sum->n);
    if (is_often)
        return resident_of(sum, pattern);
    return is_told_nothing(sum, pattern) ? all_unverified((double)sum->n) : far_of(sum, pattern);
}

struct cause_sum causes_of_footprint(const struct cause_footprint *sum, uint64_t pattern)
{
    return is_sure(sum) ? footprint_verdict(sum, pattern) : all_unverified((double)sum->n);
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

/* The rest of this index and those after it have been judged. */
static void drop_rests(struct cause_table *table, uint32_t rest)
{
    for (; rest; rest = table->rests[rest - 1].next)
        table->rests[rest - 1].n = 0;
}

/* Judges what the entry's thread has pooled, and begins a new pool. A pool that says nothing alone is judged with those
 * of other threads. */
static void close_pool(struct cause_table *table, struct cause_entry *entry)
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
    cause_sum_add(&entry->judged, &judged);
    drop_rests(table, pool.rest);
}

/* Keeps the lines of an access for those of other walks. False when out of memory. */
static bool keep_rest(struct cause_table *table, struct cause_entry *entry, const struct cause_access *access,
                      uint64_t n, const struct cause_caches *caches)
{
    struct cause_rest rest = {.node = entry->node,
                              .event = entry->event,
                              .module = entry->module,
                              .thread = access->thread,
                              .walk = entry->walk,
                              .n = n,
                              .next = entry->pool.rest,
                              .n_hashes = (uint32_t)access->n_hashes,
                              .first = table->n_hashes,
                              .lines = caches->l2_lines,
                              .hash_bits = (uint8_t)access->hash_bits};
    double part = access->n_steps ? (double)access->n_forward / (double)access->n_steps : 0;
    rest.is_directed = access->n_steps < FOLLOWED_MIN || fabs(part - 0.5) > DIRECTED_PART;
    if (!access->n_hashes || table->n_rests >= RESTS_MAX || table->n_hashes >= HASHES_MAX)
        return true;
    if (!vec_reserve(&table->rests, &table->cap_rests, table->n_rests + 1, sizeof rest) ||
        !vec_reserve(&table->hashes, &table->cap_hashes, table->n_hashes + access->n_hashes, sizeof *table->hashes))
        return false;
    memcpy(table->hashes + table->n_hashes, access->hashes, access->n_hashes * sizeof *access->hashes);
    table->n_hashes += access->n_hashes;
    table->rests[table->n_rests++] = rest;
    entry->pool.rest = (uint32_t)table->n_rests;
    return true;
}

/* The instructions of one pool may access different parts of the variable: the parts add up. False when out of memory.
 */
static bool add_to_pool(struct cause_table *table, struct cause_entry *entry, const struct cause_access *access,
                        const struct cause_caches *caches)
{
    struct cause_pool *pool = &entry->pool;
    uint64_t n = 0;
    if (pool->id != access->pool_id)
        close_pool(table, entry);
    if (pool->n == 0)
        *pool = (struct cause_pool){.id = access->pool_id, .caches = *caches};
    bool is_known = access->most_lines && (pool->n == 0 || pool->most_lines);
    pool->most_lines = is_known ? pool->most_lines + access->most_lines : 0;
    pool->all_lines = access->all_lines;
    pool->flags |= walk_flags(access->pattern);
    for (unsigned i = 0; i < PATTERN_SLOTS; i++) /* without those for whose lines there was no room */
        n += access->slots[i];
    pool->n += n;
    pool->n_bins += access->n_bins;
    pool->n_followed += access->n_followed;
    pool->n_paced += access->n_paced;
    return keep_rest(table, entry, access, n, caches);
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
    if (has_footprint && access->slots && !add_to_pool(table, entry, access, caches))
        return false;
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
        close_pool(table, &table->entries[i]);
        table->entries[i].node = index_of[table->entries[i].node];
    }
    for (size_t i = 0; i < table->n_rests; i++)
        table->rests[i].node = index_of[table->rests[i].node];
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
    free(table->rests);
    free(table->hashes);
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

/* The first-level verdict of contrast, where what runs beside short waits may take their time. */
static struct cause_sum contrast_of_near(struct cause_sum sum, bool is_near)
{
    if (is_near)
        sum.memory_low = fmax(0, sum.memory_low - sum.execution);
    return sum;
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
        return scaled(contrast_of_near(sum, 2 * entry->n_near > entry->n_samples), n);
    }
    struct cause_sum sum = causes_of_footprint(&entry->footprint, entry->pattern);
    cause_sum_add(&sum, &entry->judged);
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
static int compare_rests(const void *a, const void *b)
{
    const struct cause_rest *x = a, *y = b;
    int order = compare_words(x->node, y->node);
    order = order ? order : compare_words(x->event, y->event);
    order = order ? order : compare_words(x->module, y->module);
    return order ? order : compare_words(x->walk, y->walk);
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
    cause_sum_add(&to->judged, &from->judged);
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

bool cause_waits_add(struct cause_waits *waits, const struct cause_wait *wait)
{
    if (!vec_reserve(&waits->items, &waits->capacity, waits->n + 1, sizeof *waits->items))
        return false;
    waits->items[waits->n++] = *wait;
    return true;
}

void cause_waits_fini(struct cause_waits *waits)
{
    free(waits->items);
    *waits = (struct cause_waits){0};
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

/* --- walks that are judged together --- */

/* What one variable and event have. */
struct together {
    struct cause_entry *entries; /* [n] one of each walk */
    size_t n;
    const struct cause_rest *rests; /* [n_rests] in the order of entries */
    size_t n_rests;
    const uint32_t *hashes;
    double n_helped, longer; /* samples that are not verified, which so many times as many samples would verify */
};

#define LONGER_PART 0.5 /* of such samples that a longer measurement is to verify */

/* Notes that n samples would be verified in a measurement that is so many times as long. */
static void note_longer(struct together *all, double n, double longer)
{
    all->n_helped += n;
    all->longer = fmax(all->longer, longer);
}

/* The same of what is put together: as long as lines may come back as seldom as those of data twice as large as the
 * cache, more samples decide. */
static void note_meetings(struct together *all, const struct cause_meetings *met)
{
    double n = (double)met->n, again = met->n_met - met->n_chance;
    double most = causes_repeated(n, 2 * met->lines), near = met->n ? causes_near_most(met) : 0;
    const struct cause_meetings none = {.n = UINT64_C(1) << 40, .n_threads = met->n_threads, .lines = met->lines};
    if (near > LONGER_PART * n && again <= most + CAUSES_CHANCE * sqrt(most + met->n_chance))
        note_longer(all, near, fmax(causes_near_most(&none) / LONGER_PART, CAUSES_SAMPLES_MIN) / n);
}

/* Whether a walk with a footprint leaves samples that others may help to judge. */
static bool has_rest(const struct cause_entry *entry)
{
    const struct cause_footprint *sum = &entry->footprint;
    return pattern_has_footprint(entry->pattern) && pattern_kind(entry->pattern) >= PATTERN_IRREGULAR && sum->n > 0 &&
           !is_sure(sum) && !comes_often(sum) && !is_told_nothing(sum, entry->pattern);
}

/* Puts together what rests in one loop, or, when group is NULL, in all; notes in n_open of each entry how many of its
 * samples take part. False when out of memory. */
static bool meet_rests(const struct together *all, const struct cause_entry *group, struct cause_meetings *met)
{
    struct cause_rest *open = malloc((all->n_rests + 1) * sizeof *open);
    size_t at = 0, n = 0;
    for (size_t i = 0; open && i < all->n; i++) {
        struct cause_entry *entry = &all->entries[i];
        bool is_in = !group ||
                     (group->module == entry->module && pattern_group(group->pattern) == pattern_group(entry->pattern));
        entry->n_open = 0;
        for (; at < all->n_rests && all->rests[at].module == entry->module && all->rests[at].walk == entry->walk; at++)
            if (is_in && !entry->is_settled && all->rests[at].n && !all->rests[at].is_directed && has_rest(entry)) {
                entry->n_open += all->rests[at].n;
                open[n++] = all->rests[at];
            }
    }
    bool ok = open && causes_meet(open, n, all->hashes, met);
    free(open);
    return ok;
}

/* Gives the entries whose samples took part their verdict, when it is one: what may have been near says nothing. */
static void settle(const struct together *all, const struct cause_meetings *met)
{
    double far = met->n >= CAUSES_SAMPLES_MIN ? 1 - causes_near_most(met) / (double)met->n : 0;
    for (size_t i = 0; i < all->n && far > 0; i++) {
        struct cause_entry *entry = &all->entries[i];
        const struct cause_footprint open = {.n = entry->n_open};
        struct cause_sum sum = all_unverified((double)(entry->footprint.n - entry->n_open)), found;
        if (entry->n_open == 0)
            continue;
        found = far_of(&open, entry->pattern);
        cause_sum_add(&sum, &entry->judged);
        sum.memory += far * found.memory;
        sum.memory_low += far * found.memory_low;
        sum.memory_high += found.memory_high;
        sum.execution += far * found.execution;
        sum.unverified += (double)open.n - far * (found.memory + found.execution);
        entry->verdict = scaled(sum, (double)entry->n_samples);
        entry->is_settled = true;
    }
}

/* Lines that come back often enough to say it, though each walk has few samples. */
static void settle_often(struct together *all)
{
    uint64_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < all->n && (pass == 0 || n >= CAUSES_SAMPLES_MIN); i++) {
            struct cause_entry *entry = &all->entries[i];
            const struct cause_footprint *few = &entry->footprint;
            if (!pattern_has_footprint(entry->pattern) || few->n >= CAUSES_SAMPLES_MIN || !comes_often(few))
                continue;
            n += pass == 0 ? few->n : 0;
            if (pass == 0)
                continue;
            struct cause_sum sum = footprint_verdict(few, entry->pattern);
            cause_sum_add(&sum, &entry->judged);
            entry->verdict = scaled(sum, (double)entry->n_samples);
        }
    if (n && n < CAUSES_SAMPLES_MIN)
        note_longer(all, (double)n, CAUSES_SAMPLES_MIN / (double)n);
}

/* Adds samples by slot. Walks downwards enter a line at its last place: they are added as if they went upwards. */
static void add_slots(const struct cause_entry *entry, uint64_t slots[PATTERN_SLOTS])
{
    unsigned width = pattern_access_bytes(entry->pattern) / (PATTERN_LINE_BYTES / PATTERN_SLOTS);
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        slots[pattern_stride_bytes(entry->pattern) < 0 ? (2 * PATTERN_SLOTS - (width ? width : 1) - i) % PATTERN_SLOTS
                                                       : i] += entry->slots[i];
}

/* Whether a walk has too few samples to show at which place of a line it waits. */
static bool has_few_slots(const struct cause_entry *entry, unsigned n_slots, unsigned n_firsts)
{
    uint64_t n = 0;
    if (!pattern_has_contrast(entry->pattern) || pattern_slots(entry->pattern) != n_slots ||
        pattern_firsts(entry->pattern) != n_firsts)
        return false;
    for (unsigned i = 0; i < PATTERN_SLOTS; i++)
        n += entry->slots[i];
    return n < CAUSES_SAMPLES_MIN;
}

/* Strided walks that visit as many places of a line as each other. */
static void settle_contrast(struct together *all, unsigned n_slots, unsigned n_firsts)
{
    uint64_t slots[PATTERN_SLOTS] = {0}, n = 0, n_near = 0;
    for (size_t i = 0; i < all->n; i++)
        if (has_few_slots(&all->entries[i], n_slots, n_firsts)) {
            add_slots(&all->entries[i], slots);
            n += all->entries[i].n_samples;
            n_near += all->entries[i].n_near;
        }
    struct cause_sum sum = contrast_of_near(causes_of_contrast(slots, n_slots, n_firsts), 2 * n_near > n);
    for (size_t i = 0; i < all->n && n >= CAUSES_SAMPLES_MIN; i++)
        if (has_few_slots(&all->entries[i], n_slots, n_firsts))
            all->entries[i].verdict = scaled(sum, (double)all->entries[i].n_samples);
    if (n && n < CAUSES_SAMPLES_MIN)
        note_longer(all, (double)n, CAUSES_SAMPLES_MIN / (double)n);
}

/* Judges by all walks what one alone does not say. False when out of memory. */
static bool judge_together(struct together *all)
{
    struct cause_meetings met = {0};
    settle_often(all);
    for (unsigned n_slots = 2; n_slots <= PATTERN_SLOTS; n_slots++)
        for (unsigned n_firsts = 1; n_firsts <= 8 && n_firsts < n_slots; n_firsts++)
            settle_contrast(all, n_slots, n_firsts);
    if (!meet_rests(all, NULL, &met))
        return false;
    settle(all, &met);
    note_meetings(all, &met);
    if (met.n < CAUSES_SAMPLES_MIN || causes_near_most(&met) < (double)met.n)
        return true;
    for (size_t i = 0; i < all->n; i++) {
        struct cause_entry *entry = &all->entries[i];
        if (entry->is_settled || entry->is_tried || !has_rest(entry))
            continue;
        met = (struct cause_meetings){0};
        if (!meet_rests(all, entry, &met))
            return false;
        for (size_t k = i; k < all->n; k++)
            all->entries[k].is_tried |= all->entries[k].n_open > 0;
        settle(all, &met);
    }
    return true;
}

/* The entries of one variable and event, from *i on, joined where they are of one walk, with their rests, from *rest
 * on, and judged; moves both past them. False when out of memory. */
static bool judge_walks(struct cause_table *table, size_t *i, size_t *rest, bool is_in_order, struct together *all)
{
    struct cause_entry *first = &table->entries[*i], *last = NULL;
    *all = (struct together){
        .entries = first, .rests = table->rests ? table->rests + *rest : NULL, .hashes = table->hashes};
    for (size_t k = *i;
         k < table->n && table->entries[k].node == first->node && table->entries[k].event == first->event; k = ++*i) {
        if (last && is_same_entry(last, &table->entries[k])) {
            join(last, &table->entries[k]);
        } else {
            last = &first[all->n++];
            *last = table->entries[k];
        }
    }
    for (;
         *rest < table->n_rests && table->rests[*rest].node == first->node && table->rests[*rest].event == first->event;
         ++*rest)
        all->n_rests++;
    for (size_t k = 0; k < all->n; k++)
        first[k].verdict = judge(&first[k], is_in_order);
    return judge_together(all);
}

/* Judges the entries of one variable and event, from *i on, and adds their sum to the variable; moves *i past them, and
 * *spot past their spots, and *rest past their rests. */
static bool judge_variable(struct cause_table *table, size_t *i, size_t *spot, size_t *rest, struct model *model,
                           uint64_t events, bool is_in_order, struct cause_waits *waits)
{
    const struct cause_entry *first = &table->entries[*i];
    bool has_verdict = first->node < model->n_variables && first->event < 64 && events >> first->event & 1, ok = true;
    struct cause_sum all = {0};
    struct together walks;
    size_t first_wait = waits->n;
    if (!judge_walks(table, i, rest, is_in_order, &walks))
        return false;
    for (size_t k = 0; ok && k < walks.n; k++) {
        const struct cause_entry *entry = &first[k];
        cause_sum_add(&all, &entry->verdict);
        set_spot_parts(table, entry, &entry->verdict, spot);
        ok = !has_verdict || (add_walk(entry, &entry->verdict, &model->variables[first->node]) &&
                              add_wait(entry, &entry->verdict, waits));
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
    if (walks.n_helped > LONGER_PART * all.unverified && walks.longer > 1)
        all.longer = walks.longer;
    model->n_longer += all.longer > 0;
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
        close_pool(table, entry);
        entry->node = entry->node < n_nodes ? variable_of[entry->node] : UINT32_MAX;
    }
    if (table->n)
        qsort(table->entries, table->n, sizeof *table->entries, compare_entries);
    for (size_t i = 0; i < table->n_spots; i++)
        table->spots[i].node = table->spots[i].node < n_nodes ? variable_of[table->spots[i].node] : UINT32_MAX;
    if (table->n_spots)
        qsort(table->spots, table->n_spots, sizeof *table->spots, compare_spots_by_walk);
    for (size_t i = 0; i < table->n_rests; i++)
        table->rests[i].node = table->rests[i].node < n_nodes ? variable_of[table->rests[i].node] : UINT32_MAX;
    if (table->n_rests)
        qsort(table->rests, table->n_rests, sizeof *table->rests, compare_rests);
    for (size_t i = 0, spot = 0, rest = 0; ok && i < table->n;)
        ok = judge_variable(table, &i, &spot, &rest, model, events, is_in_order, &waits);
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
