/* SPDX-License-Identifier: BSD-3-Clause */
/* The instructions that accessed the variables of the merged tree: where in them their samples lie, and what these
 * waited for. The tables grow with the tree and its instructions, not with the number of files. Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_CAUSES_H
#define LOCUS_ANALYSIS_BUILD_CAUSES_H

#include "analysis/model.h"
#include "base/access-pattern.h"
#include "base/vec.h"
#include "fmt/objects.h"

/* Samples of one event by one instruction on the variable of one node of the merged tree. */
struct node_access {
    uint32_t node, event; /* merged tree; model */
    uint32_t module;      /* symbolizer id */
    uint64_t vaddr;       /* of the sample */
    uint64_t n_samples;
    struct spread offsets; /* as in struct objects_access */
};

#define ACCESSES_MAX 1000000

/* All zero is empty. */
struct access_table {
    struct node_access *items; /* [n]; accesses_sort puts them in order of node */
    size_t n, capacity;
    struct slots slots; /* by their keys; freed by accesses_sort */
};

/* Adds samples and their offsets to the entry with the key of this one (whose own offsets are ignored). New entries
 * beyond ACCESSES_MAX are left out: their samples have no place. False when out of memory. */
bool accesses_add(struct access_table *table, const struct node_access *like, const struct spread *offsets);

/* Sorts by node, instruction and event; nothing can be added afterwards. */
void accesses_sort(struct access_table *table);

/* The accesses of a node [*n], after accesses_sort; NULL when there are none. */
const struct node_access *accesses_of_node(const struct access_table *table, uint32_t node, size_t *n);

/* Frees everything and makes the table empty. */
void accesses_fini(struct access_table *table);

/* --- causes of time --- */

/* Time at data is not time for data: which samples at a variable waited for memory, which were execution that its data
 * only feed, and which cannot be told apart. Judged for each instruction by how it walks through memory and by the
 * lines of its samples (base/access-pattern.h), summed by variable. Ordinary code. */

#define CAUSES_SAMPLES_MIN 100 /* of a walk, or of those that are put together: fewer say nothing */
#define CAUSES_CHANCE 1.5      /* standard deviations that may be chance */

/* Number of lines in the caches that each core has to itself, and in its share of the third-level cache. */
struct cause_caches {
    uint64_t l1_lines, l2_lines, l3_lines;
};

/* Makes each level as small as it was measured with the skid self-test (skid: its figures as JSON text, NULL when there
 * are none): a virtual machine has what the processor claims, but not for itself. Where the caches were not measured,
 * the third level of a virtual machine is taken to be at most 32 MiB. Others who share a cache only make it smaller. */
void causes_caches_measured(struct cause_caches *caches, const char *skid);

/* Assumed when the topology has no caches: 32 KiB, 512 KiB and 4 MiB. */
#define CAUSES_L1_LINES 512
#define CAUSES_L2_LINES 8192
#define CAUSES_L3_LINES 65536

/* A strided walk: samples by slot of their lines, of which n_slots are visited and n_firsts can be the first in a line.
 * Memory is the excess of the firsts over the others, because time spent waiting for a line falls on its first element
 * and all other time on all elements alike, or at least on those at the same place in a turn of the loop. Waiting also
 * lengthens what is computed meanwhile, so the upper end of the interval is higher. Where a line has two slots, some of
 * the second's work is done while the first waits: the excess is reduced by as much. Blocks that begin at different
 * places in a line visit a multiple of n_slots, each with firsts of its own. */
struct cause_sum causes_of_contrast(const uint64_t slots[PATTERN_SLOTS], unsigned n_slots, unsigned n_firsts);

/* Any other walk: how many of 2^PATTERN_HASH_BITS bins the lines of n samples hit; summed over threads as long as each
 * thread alone has too few. All zero is empty. */
struct cause_footprint {
    uint64_t n;
    double n_repeated;            /* samples whose line was met before, by the bins */
    double n_expected, variance;  /* the same if the data were just as large as the cache; and its variance */
    uint64_t n_large;             /* samples of data known to be larger than a core's second-level cache */
    uint64_t n_far;               /* ... or than its share of the third-level cache */
    uint64_t n_fits;              /* ... or known to be no larger */
    uint64_t n_followed, n_paced; /* as in struct objects_lines */
    double l1_lines, lines;       /* of one thread: lines of its first-level cache, and of its data, 0 = not known */
    bool is_sparse;               /* ... these lie far apart */
};

/* Adds a thread's samples. lines: number of lines in the cache. */
void causes_add_footprint(struct cause_footprint *sum, uint64_t n, uint64_t n_bins, uint64_t lines);

/* Memory when lines came back less often than they would in the cache, not verified when that may be chance. Data that
 * fit the third-level cache are soon used again, often while they are still in a nearer one, as the grid of a stencil
 * is whose rows are used one after the other: they are not verified, unless the walk is a list's. Nor are data of any
 * size that are swept over at one speed, unless by strides: a list in the order in which its nodes lie is prefetched as
 * a stream is, and a tile that moves stays near. In a strided walk (kind), lines that were prefetched and lines that
 * were waited for look alike. A store retires before its line has arrived: what follows it waited for room in the store
 * buffer, and a part is not verified. A link of a chain of computations (PATTERN_MIXED) keeps retirement waiting as
 * well: it is not verified, unless its line must come from beyond all caches. Data known to be larger than the
 * second-level cache are in it only where half of the samples meet lines again. What comes back may still have waited
 * for the second-level cache; a link of one chain (PATTERN_SERIAL) hardly, since later lines come during the
 * computations of earlier ones. pattern: kind and flags count. */
struct cause_sum causes_of_footprint(const struct cause_footprint *sum, uint64_t pattern);

/* Number of different lines N that n samples with n_bins different bins come from, when each is equally likely:
 * d = N (1 - exp(-n / N)), where d follows from the bins by linear counting; HUGE_VAL when no line came twice. */
double causes_lines(uint64_t n, uint64_t n_bins);

/* Samples of one event of one thread at a variable by one instruction. */
struct cause_access {
    uint32_t node, event, module; /* store id, then merged tree; model; symbolizer id */
    uint64_t vaddr;               /* of the sample */
    uint64_t pattern;
    uint64_t n_samples;
    uint64_t pool_id;      /* identifies its pool of bins (objects_lines.n_bins): number of the variable in the thread's
                            * file */
    const uint64_t *slots; /* [PATTERN_SLOTS], NULL: not known */
    uint64_t n_bins;
    uint64_t n_followed, n_paced; /* as in struct objects_lines */
    uint64_t most_lines;          /* the data of this instruction have at most this many; 0: not known */
    uint64_t all_lines;           /* the variable has this many; 0: not known */
    uint32_t thread;              /* numbers the thread's file: lines of one thread can be put together */
    const uint32_t *hashes;       /* [n_hashes], as in struct objects_lines */
    size_t n_hashes;
    uint32_t hash_bits;
    uint64_t n_steps, n_forward; /* of the variable in the thread, as in struct reach_sum */
};

struct cause_entry;

/* --- lines that are put together --- */

/* Real programs spread their samples over many instructions. What a walk cannot say alone, the walks of one variable
 * say together: of all of them, else of those of one loop. Lines count as met again whichever of the instructions met
 * them before, thread by thread. Where nothing comes back, that is evidence, too: of n samples that found their lines
 * in a cache of N lines, n^2 / 2N meet a line again, or more if some lines are used more than others; so as many as
 * nearly always meet one, and do not, are in more than a cache holds. But nobody knows which ones: the others may have
 * found theirs near. Walks whose lines tell nothing (sweeps, links of chains, what fits the third-level cache) stay
 * out, and so do variables whose samples move in one direction. */

/* Lines of the samples of one instruction, in one walk of one thread. */
struct cause_rest {
    uint32_t node, event, module; /* as in struct cause_access; node: the variable, once judged */
    uint32_t thread;
    uint64_t walk;
    uint64_t n;        /* samples; 0: the thread alone has said enough */
    uint32_t next;     /* index + 1 of another one of the same pool of bins */
    uint32_t n_hashes; /* from hashes[first] of the table on */
    size_t first;
    uint64_t lines;    /* of the second-level cache */
    uint8_t hash_bits; /* as in struct objects_lines */
    bool is_directed;  /* samples of the variable move in one direction, or it is not known where they move */
};

/* What samples met together. All zero is empty. */
struct cause_meetings {
    uint64_t n; /* samples */
    uint32_t n_threads;
    double n_met;    /* lines that had been met before, as far as their hashes tell */
    double n_chance; /* as many would seem to be, if none was */
    double lines;    /* in the cache */
};

/* Samples n, of which a line was met before: how many, when each of the lines is equally likely. */
double causes_repeated(double n, double lines);

/* How many of the samples may have found their lines in the cache, with 95 % certainty at most: x that come from
 * as many lines as it holds meet causes_repeated(x) again, in threads with a cache each no fewer than if all have
 * alike. */
double causes_near_most(const struct cause_meetings *met);

/* Puts together the lines of rests [n], whose hashes lie in hashes, and sorts rests by thread. False when out of
 * memory.
 */
bool causes_meet(struct cause_rest *rests, size_t n, const uint32_t *hashes, struct cause_meetings *met);

enum cause_part { CAUSE_MEMORY, CAUSE_EXECUTION, CAUSE_UNVERIFIED, CAUSE_PARTS };

/* Samples of one event by one instruction in one of its walks on one variable. */
struct cause_spot {
    uint32_t node, event, module; /* as in struct cause_access; node: the variable, once judged */
    uint64_t vaddr, walk;
    uint64_t n_samples;
    double parts[CAUSE_PARTS]; /* of n_samples, once judged */
};

/* All zero is empty. */
struct cause_table {
    struct cause_entry *entries; /* [n] by variable, event and walk */
    size_t n, capacity;
    struct slots slots;
    struct cause_spot *spots; /* [n_spots]; by variable, module, address and event once judged */
    size_t n_spots, cap_spots;
    struct slots spot_slots;
    struct cause_rest *rests; /* [n_rests]; in the order of entries once judged */
    size_t n_rests, cap_rests;
    uint32_t *hashes; /* [n_hashes] */
    size_t n_hashes, cap_hashes;
};

/* Adds what a thread's file says. False when out of memory; new entries beyond 300,000 are left out, and so not
 * verified. */
bool causes_add(struct cause_table *table, const struct cause_access *access, const struct cause_caches *caches);

/* What was found for one variable by one walk, or for instructions without access that it feeds; in samples. */
struct cause_wait {
    uint32_t variable, event, module;
    bool is_head;   /* place is the head of the walk's loop, else an instruction in that */
    bool is_stream; /* lines one after the other, several elements in each */
    uint64_t place; /* in the module, as are the places of walks */
    uint64_t last;  /* of its instructions that have samples */
    double samples, low, high;
    double memory; /* of the samples, those that waited for memory, and half of those that may have */
    double fed;    /* of the samples, execution that the data only feed */
    double late;   /* of these, so many may have waited, by what is known of the variable alone */
    double linked; /* of the samples, execution at links of one chain, at data in the second-level cache */
    double near;   /* of the samples, execution at data in the first-level cache, whose places may come from a stream */
};

/* All zero is empty. */
struct cause_waits {
    struct cause_wait *items; /* [n] */
    size_t n, capacity;
};

/* False when out of memory. */
bool cause_waits_add(struct cause_waits *waits, const struct cause_wait *wait);

/* How many of fed samples, at instructions without access, may have waited for memory, in a loop where memory of total
 * samples did. Arithmetic behind a late line runs alone; half of it would otherwise have run beside earlier work. */
double cause_late(double fed, double memory, double total);

/* Widens memory_high where a loop waits for other data than those that feed its arithmetic, or for a stream beside the
 * links of a chain; and of a stream, in a loop that also uses data in the first-level cache, both its ends: that work
 * is late like arithmetic, or fills the waits. Then widens memory_least and memory_most of the variables, which begin
 * as memory_low and memory_high. A sample shows only the oldest wait. Other waits of the same loop are hidden behind
 * it: they would show if the data of the first were resident, and they took some of the miss buffers and caches that
 * the first needed. Waits that hide each other by chance hide as often as they are hidden. So a variable's hidden waits
 * are at most those of its own that show, and at most half of the others' that show; and at most half of its own may be
 * due to others. */
void cause_waits_share(struct cause_waits *waits, struct model *model);

/* Frees everything and makes the list empty. */
void cause_waits_fini(struct cause_waits *waits);

/* Replaces the store's ids of nodes by those of the merged tree: index_of[id]. */
void causes_renumber(struct cause_table *table, const uint32_t *index_of);

/* Bit set of the model's events (the first 64) for which the walk of some instruction is known and the hardware says
 * nothing. */
uint64_t causes_events(const struct cause_table *table, const struct model *model);

/* After causes_apply: how the samples of an event by an instruction on a variable were spent, each part as a fraction
 * of 1. What no file mentions is not verified. */
void causes_parts(const struct cause_table *table, uint32_t variable, uint32_t event, uint32_t module, uint64_t vaddr,
                  double parts[CAUSE_PARTS]);

/* Whether samples in no variable, with this name, may have waited for memory: arithmetic and spinning do not, but a
 * lost address may have been any. */
bool causes_are_unknown(const char *name);

/* Judges all entries and adds the sums to the variables: variable_of[node] [n_nodes], UINT32_MAX for none. Events about
 * which the hardware says something are left out: its verdict stands. False when out of memory. */
bool causes_apply(struct cause_table *table, struct model *model, const uint32_t *variable_of, size_t n_nodes);

/* Whether instructions without access never seem to wait on this machine. One loop of the skid self-test computes with
 * a load that waits, among loads that do not; on such machines nearly all samples lie right after that load. True when
 * that was not measured. skid: the figures as JSON text, NULL when there are none. */
bool causes_retire_in_order(const char *skid);

/* Frees everything and makes the table empty. */
void causes_fini(struct cause_table *table);

/* Adds each part. */
void cause_sum_add(struct cause_sum *to, const struct cause_sum *from);

/* Adds to the sums that a variable has for an event; false when out of memory. */
bool causes_add_sum(struct variable *variable, uint32_t event, const struct cause_sum *sum);

/* Adds to what a variable has of the walk's event, kind and stride; false when out of memory. */
bool causes_add_walk(struct variable *variable, const struct variable_walk *walk);

/* The variable's sums for an event; NULL when it has none. */
const struct cause_sum *causes_of(const struct variable *variable, uint32_t event);

#endif
