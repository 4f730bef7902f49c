/* SPDX-License-Identifier: BSD-3-Clause */
/* Beside the judgement of causes: one strided walk; lines that are put together where a part of them says too little;
 * waits of the same loop, which sorting by their places in the code brings together; the table of accesses, filled
 * through a hash while side files are read; the sums by variable; and what the self-test says of samples.
 * See causes.h. */
#include "analysis/build/causes.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

/* --- strided walks --- */

#define STRAY_PART 0.02 /* of samples in a slot, below which the walk does not visit it */
/* The parts were measured on loops with a resident twin, too. Where a line has two accesses, mostly vectors, the work
 * of the second is done while the first waits, and is missing at the second: what waited is this part of what shows,
 * and at least all but WIDE_DONE of it. */
#define WIDE_PART 0.92
#define WIDE_DONE 0.15

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
        return (struct cause_sum){.memory_high = n, .unverified = n};
    struct contrast contrast = clearest_of(slots, n_slots, n_firsts);
    unsigned n_others = contrast.n_slots - n_firsts;
    double shown = shown_by(&contrast, n_firsts), excess = n_slots == 2 ? shown * WIDE_PART : shown;
    double noise = CAUSES_CHANCE * n_firsts * sqrt(2 * contrast.n / contrast.n_slots * log(contrast.n_compared));
    double deviation = sqrt(contrast.top + n_firsts * n_firsts * M_PI_2 * contrast.other / n_others);
    double error = noise + deviation;
    if (shown < noise)
        return (struct cause_sum){.memory_high = noise, .execution = n};
    double low = shown - error - (n_slots == 2 ? shown * WIDE_DONE : 0);
    double high = shown + (n - shown) * shown / n + fmin(error, 2 * deviation);
    return (struct cause_sum){
        .memory = excess, .memory_low = fmax(0, low), .memory_high = fmin(n, high), .execution = n - excess};
}

/* --- lines that are put together --- */

static int compare_hashes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Sorts and leaves one of each; returns how many there are. */
static size_t make_unique(uint32_t *hashes, size_t n)
{
    size_t n_kept = 0;
    if (n)
        qsort(hashes, n, sizeof *hashes, compare_hashes);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || hashes[i] != hashes[n_kept - 1])
            hashes[n_kept++] = hashes[i];
    return n_kept;
}

/* Sorted hashes of two kinds: bins of the first that are in the second, too. */
static size_t count_shared(const uint32_t *fine, size_t n_fine, const uint32_t *bins, size_t n_bins)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < n_fine; i++) {
        uint32_t bin = fine[i] >> (PATTERN_FINE_BITS - PATTERN_HASH_BITS);
        while (at < n_bins && bins[at] < bin)
            at++;
        n += at < n_bins && bins[at] == bin;
    }
    return n;
}

/* Adds what the samples of one thread met: rests [n]. scratch: as large as all their hashes. */
static void meet_thread(const struct cause_rest *rests, size_t n, const uint32_t *hashes, uint32_t *scratch,
                        struct cause_meetings *met)
{
    static const double fine_bins = 1u << PATTERN_FINE_BITS, bins = 1u << PATTERN_HASH_BITS;
    uint64_t n_samples[2] = {0};
    size_t n_listed[2] = {0}, at = 0;
    for (int is_fine = 1; is_fine >= 0; is_fine--) {
        for (size_t i = 0; i < n; i++) {
            if ((rests[i].hash_bits == PATTERN_FINE_BITS) != is_fine)
                continue;
            n_samples[is_fine] += rests[i].n;
            memcpy(scratch + at + n_listed[is_fine], hashes + rests[i].first, rests[i].n_hashes * sizeof *hashes);
            n_listed[is_fine] += rests[i].n_hashes;
        }
        n_listed[is_fine] = make_unique(scratch + at, n_listed[is_fine]);
        at += n_listed[is_fine];
    }
    double few = (double)n_samples[1], many = (double)n_samples[0];
    met->n += n_samples[0] + n_samples[1];
    met->n_threads += n_samples[0] + n_samples[1] > 0;
    met->n_met += few - (double)n_listed[1] + many - (double)n_listed[0] +
                  (double)count_shared(scratch, n_listed[1], scratch + n_listed[1], n_listed[0]);
    met->n_chance += causes_repeated(few, fine_bins) + causes_repeated(many, bins) + few * many / bins;
}

static int compare_threads(const void *a, const void *b)
{
    const struct cause_rest *x = a, *y = b;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

bool causes_meet(struct cause_rest *rests, size_t n, const uint32_t *hashes, struct cause_meetings *met)
{
    size_t n_hashes = 0;
    for (size_t i = 0; i < n; i++) {
        n_hashes += rests[i].n_hashes;
        met->lines = fmax(met->lines, (double)rests[i].lines);
    }
    uint32_t *scratch = malloc((n_hashes + 1) * sizeof *scratch);
    if (!scratch)
        return false;
    if (n)
        qsort(rests, n, sizeof *rests, compare_threads);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && rests[end].thread == rests[i].thread; end++)
            continue;
        meet_thread(rests + i, end - i, hashes, scratch, met);
    }
    free(scratch);
    return true;
}

/* --- waits of the same loop --- */

#define GAP_BYTES 64 /* between instructions of a loop that have samples */
#define FED_PART 0.5 /* of the samples at instructions without access, at most this part waited for what they use */
/* Of the samples at data in the first-level cache, whose places a stream may tell, or at links of a chain, so many more
 * may have waited for the stream; or the work fills so much of the stream's waits that these save nothing. */
#define WORK_PART 0.25

static int compare_words(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_places(const void *a, const void *b)
{
    const struct cause_wait *x = a, *y = b;
    int order = compare_words(x->event, y->event);
    order = order ? order : compare_words(x->module, y->module);
    order = order ? order : compare_words(x->place, y->place);
    order = order ? order : compare_words(!x->is_head, !y->is_head);
    return order ? order : compare_words(x->variable, y->variable);
}

static int compare_variables(const void *a, const void *b)
{
    const struct cause_wait *x = a, *y = b;
    return compare_words(x->variable, y->variable);
}

static bool is_near(const struct cause_wait *head, uint64_t last, const struct cause_wait *wait)
{
    return head->is_head && (wait->is_head ? wait->place == head->place : wait->place <= last + GAP_BYTES);
}

/* Where the loop that begins at first ends among the waits: it has those with the same head, and the instructions
 * behind them up to a gap or the next head. */
static size_t end_of_loop(const struct cause_waits *waits, size_t first)
{
    const struct cause_wait *items = waits->items, *head = &items[first];
    uint64_t last = head->last;
    size_t end = first + 1;
    for (; end < waits->n && items[end].event == head->event && items[end].module == head->module &&
           is_near(head, last, &items[end]);
         end++)
        last = items[end].last > last ? items[end].last : last;
    return end;
}

static double late_part(double memory, double total)
{
    return fmin(1, total > 0 ? 2 * memory / total : 0);
}

double cause_late(double fed, double memory, double total)
{
    return FED_PART * fed * late_part(memory, total);
}

/* Adds to the interval of a variable's sum: late samples above it, and early ones below. */
static void add_late(struct variable *variable, uint32_t event, double late, double early)
{
    for (size_t i = 0; i < variable->n_causes; i++)
        if (variable->causes[i].event == event) {
            struct cause_sum *sum = &variable->causes[i].sum;
            sum->memory_high += late;
            sum->memory_most += late;
            sum->memory_low = fmax(0, sum->memory_low - early);
            sum->memory_least = fmax(0, sum->memory_least - early);
        }
}

static void widen(struct variable *variable, uint32_t event, double hidden, double hiding)
{
    for (size_t i = 0; i < variable->n_causes; i++)
        if (variable->causes[i].event == event) {
            variable->causes[i].sum.memory_most += hidden;
            variable->causes[i].sum.memory_least = fmax(0, variable->causes[i].sum.memory_least - hiding);
        }
}

/* Widens the intervals of the streams of one variable, its waits [n], beside work at data in the first-level cache:
 * near samples of the loop. */
static void widen_streams(const struct cause_wait *items, size_t n, double near, struct model *model)
{
    double low = 0, high = 0, samples = 0;
    for (size_t i = 0; i < n; i++) {
        near -= items[i].near;
        low += items[i].is_stream ? items[i].low : 0;
        high += items[i].is_stream ? items[i].high : 0;
        samples += items[i].is_stream ? items[i].samples : 0;
    }
    double work = WORK_PART * fmax(0, near) * late_part(high, samples);
    add_late(&model->variables[items[0].variable], items[0].event, work, fmin(low, work));
}

/* Widens what the variables of one loop cost: waits [n]. */
static void share_loop(struct cause_wait *items, size_t n, struct model *model)
{
    double all_high = 0, memory = 0, streamed = 0, total = 0, near = 0;
    qsort(items, n, sizeof *items, compare_variables);
    for (size_t i = 0; i < n; i++) {
        all_high += items[i].high;
        memory += items[i].memory;
        streamed += items[i].is_stream ? items[i].memory : 0;
        total += items[i].samples;
        near += items[i].near;
    }
    for (size_t i = 0; i < n; i++) { /* what arithmetic waits for, as far as its variable's sum does not have it */
        double late = fmax(0, cause_late(items[i].fed, memory, total) - items[i].late);
        double linked = WORK_PART * items[i].linked * late_part(streamed, total);
        add_late(&model->variables[items[i].variable], items[i].event, late + linked, 0);
    }
    for (size_t i = 0, end; i < n; i = end) {
        double low = 0, high = 0;
        for (end = i; end < n && items[end].variable == items[i].variable; end++) {
            low += items[end].low;
            high += items[end].high;
        }
        double others = all_high - high;
        widen_streams(items + i, end - i, near, model);
        widen(&model->variables[items[i].variable], items[i].event, fmin(high, others / 2), fmin(low / 2, others));
    }
}

void cause_waits_share(struct cause_waits *waits, struct model *model)
{
    if (waits->n)
        qsort(waits->items, waits->n, sizeof *waits->items, compare_places);
    for (size_t i = 0, end; i < waits->n; i = end) {
        end = end_of_loop(waits, i);
        share_loop(waits->items + i, end - i, model);
    }
}

/* --- the table of accesses --- */

static bool is_same_access(const void *one, const void *other)
{
    const struct node_access *a = one, *b = other;
    return a->node == b->node && a->event == b->event && a->module == b->module && a->vaddr == b->vaddr;
}

static uint64_t hash_access(const void *item)
{
    const struct node_access *access = item;
    return access->vaddr ^ (uint64_t)access->node << 36 ^ (uint64_t)access->module << 24 ^ access->event;
}

static const struct slots_kind by_instruction = {sizeof(struct node_access), hash_access, is_same_access};

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

static int compare_accesses(const void *a, const void *b)
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
        qsort(table->items, table->n, sizeof *table->items, compare_accesses);
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

/* --- sums by variable --- */

void cause_sum_add(struct cause_sum *to, const struct cause_sum *from)
{
    to->memory += from->memory;
    to->memory_low += from->memory_low;
    to->memory_high += from->memory_high;
    to->memory_least += from->memory_least;
    to->memory_most += from->memory_most;
    to->execution += from->execution;
    to->unverified += from->unverified;
    to->resident += from->resident;
    to->longer = from->longer > to->longer ? from->longer : to->longer;
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
    cause_sum_add(&variable->causes[i].sum, sum);
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

/* --- what the self-test says --- */

/* The loop of the skid self-test whose load that misses is followed by others that do not, and its consumer later: of
 * its samples, MIXED_SAMPLES_MIN or more, so many percent must be of the load that misses, one instruction behind it.
 */
#define MIXED_LOOP "k2"
#define MIXED_SAMPLES_MIN 20
#define MIXED_PERCENT_MIN 90

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
