/* SPDX-License-Identifier: BSD-3-Clause */
/* The side file <profile>.objects (JSON) that travels with each .hpcrun: what the profile format has no place for.
 * It names the variable nodes of the data-centric tree, their blocks and bytes, the CPUs and NUMA nodes their samples
 * were taken on, the classes of their samples, and the fate of every sample of the thread. Layout: FORMAT.md. */
#ifndef LOCUS_FMT_OBJECTS_H
#define LOCUS_FMT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/fate.h"
#include "base/access-pattern.h"
#include "base/error.h"
#include "base/vec.h"
#include "fmt/json.h"

/* --- spreads --- */

/* How samples spread over the offsets of an object: a bounded list of (offset, samples). While it has room it is exact;
 * beyond that, a fair selection of the offsets stands for all of them, and the sum stays right. Ordinary code. */

#define SPREAD_MAX 64 /* offsets that a list keeps */

struct spread_entry {
    uint64_t offset; /* bytes */
    uint64_t count;  /* samples */
};

/* All zero is empty. */
struct spread {
    struct spread_entry *entries; /* [n] with different offsets, in no order */
    size_t n, capacity;
};

/* Adds samples at an offset. False when out of memory. */
bool spread_add(struct spread *spread, uint64_t offset, uint64_t count);

/* Brings the list to SPREAD_MAX entries at most and sorts it by offset. The choice depends on the entries alone. */
void spread_reduce(struct spread *spread);

/* Samples of all entries. */
uint64_t spread_total(const struct spread *spread);

/* Frees the list and makes it empty. */
void spread_fini(struct spread *spread);

/* --- reach --- */

/* Where in a variable the samples of one thread lie, as a summary of fixed size. The runtime keeps it as struct
 * arena_reach; side files and databases hold it as a list of JSON. Ordinary code. */

#define REACH_BINS 64
#define REACH_BLOCKS 4
#define REACH_LINES 8

/* All zero is empty. */
struct reach_sum {
    uint32_t shift;              /* bin i counts the offsets of i << shift to ((i + 1) << shift) - 1 bytes; below 64 */
    uint64_t first, last;        /* lowest and highest offset */
    uint64_t n_steps, n_forward; /* samples at another address than the one before; of them, at a higher one */
    uint64_t n_loads, n_stores; /* by instructions that only read, and that write; the rest of the samples: not known */
    uint64_t bins[REACH_BINS];
    struct reach_block {
        uint64_t address, count; /* count: samples, at most; 0: none */
    } blocks[REACH_BLOCKS];      /* those with most samples, and they first */
};

/* A cache line that was among those with most samples of a thread. */
struct reach_line {
    uint64_t line;                 /* address / 64 */
    uint64_t read_at, written_at;  /* a bit for each byte at which an access began */
    uint64_t n_stores;             /* of the samples in slots */
    uint64_t slots[PATTERN_SLOTS]; /* samples by place in the line */
};

/* What one thread's samples say of a variable. */
struct reach {
    struct reach_sum sum;
    struct reach_line lines[REACH_LINES]; /* [n_lines] most samples first */
    size_t n_lines;
};

/* Samples in all bins; samples of a line. */
uint64_t reach_total(const struct reach_sum *sum);
uint64_t reach_line_total(const struct reach_line *line);

/* Makes the bins at least 2^shift bytes wide. */
void reach_widen(struct reach_sum *sum, uint32_t shift);

/* Adds from, in bins as wide as the wider ones of both; of the blocks, those with most samples stay. */
void reach_merge(struct reach_sum *into, const struct reach_sum *from);

/* Adds samples at a block: the summary of a record is filled block by block and line by line. */
void reach_add_block(struct reach_sum *sum, uint64_t address, uint64_t count);

/* Adds a line; when there are too many, the one with the fewest samples goes. */
void reach_add_line(struct reach *reach, const struct reach_line *line);

/* Appends the summary, or a line, as a list. */
void reach_put(struct buf *out, const struct reach_sum *sum);
void reach_line_put(struct buf *out, const struct reach_line *line);

/* Reads such a list; what does not fit fails as json_take_fail says. */
void reach_take(struct json_take *take, const json_t *list, struct reach_sum *sum);
void reach_line_take(struct json_take *take, const json_t *list, struct reach_line *line);

/* --- the file --- */

struct objects_count {
    uint32_t cpu;
    uint32_t metric; /* index into the profile's metric table */
    uint64_t count;
};

/* Samples that were taken on a CPU and touched a page whose home was asked for. */
struct objects_home {
    uint32_t cpu;
    uint32_t metric; /* index into the profile's metric table */
    uint32_t home; /* number of the memory node, or OBJECTS_NO_HOME: the page was never written, or was released before
                    * the kernel was asked */
    uint64_t count;
};
#define OBJECTS_NO_HOME UINT32_MAX
#define OBJECTS_NODES 64 /* nodes beyond these are not told apart: ARENA_HOMES_MAX of arena/arena.h */

/* The pages of a variable's largest block, as they were found last. */
struct objects_pages {
    uint64_t n_pages;    /* 0: they were not counted */
    uint64_t n_asked;    /* of them, asked for: all, or some, spread evenly */
    uint64_t n_none;     /* of those, without a page */
    uint64_t huge_bytes; /* in huge pages; UINT64_MAX: not known */
    uint64_t n_on[OBJECTS_NODES];
};

/* Samples of one metric, as they were taken: neither multiplied by a period nor scaled. */
struct objects_samples {
    uint32_t metric; /* index into the profile's metric table */
    uint64_t count;
};

#define OBJECTS_LATENCY_BINS 64 /* of struct arena_sketch in arena/arena.h, which says what they hold */

/* The latencies that the hardware reported for samples of one event. Samples without one do not count. */
struct objects_latency {
    uint32_t event; /* index into the side file's events */
    uint64_t n_samples, cycles;
    uint64_t n_remote, remote_cycles;    /* of them, served by another NUMA node */
    uint64_t bins[OBJECTS_LATENCY_BINS]; /* samples; may lack some of n_samples where there was no room */
};

#define OBJECTS_HASHES_MAX 1024 /* that a file has of an access: more samples say enough by themselves */

/* Which cache lines the samples of an access lie in, as far as their addresses are known. */
struct objects_lines {
    uint64_t slots[PATTERN_SLOTS]; /* samples by address % 64 / 4 */
    uint64_t n_bins;     /* of 2^PATTERN_HASH_BITS bins, how many the hashes of the samples' lines (pattern_place) hit,
                          * without those that an earlier access on the variable with the same pool (pattern_pool) hits:
                          * the sum over the pool's accesses is that of the pool. 0 where the pattern does not call for
                          * lines */
    uint64_t n_lines;    /* from the lowest to the highest line ... */
    uint64_t n_spanned;  /* ... of this many samples at least; both 0: not known */
    uint64_t n_followed; /* samples that are known to have followed another one of the same instruction in time ... */
    uint64_t n_paced;    /* ... and those of them that kept its pace: see struct arena_lines in arena/arena.h */
    uint32_t *hashes; /* [n_hashes] of the samples' lines, different ones in order, so that samples of several accesses
                       * can be put together: the upper hash_bits of the hash of pattern_place, PATTERN_HASH_BITS or
                       * PATTERN_FINE_BITS. None where there are many samples, or n_bins does not count them */
    size_t n_hashes;
    uint32_t hash_bits;
};

/* Samples of one event that one instruction took on a variable, on any call path. Where an instruction has several
 * patterns, each is an access. */
struct objects_access {
    uint32_t event;  /* index into the side file's events */
    uint16_t module; /* id in the profile's load map ... */
    uint64_t ip;     /* ... and address of the sample, as in the profile's nodes */
    uint64_t n_samples;
    struct spread offsets; /* of the samples whose place in the variable is known: bytes from the start of the block or
                            * symbol; of stack frames bytes from the address up to the CFA */
    uint64_t pattern; /* how the instruction walks through memory (base/access-pattern.h), 0: not known; version 6 */
    struct objects_lines *lines; /* NULL: none */
};

/* Page faults of one event on a variable by one call path: who touched these pages first. */
struct objects_touch {
    uint32_t event; /* index into the side file's events */
    uint32_t node;  /* absolute id of the profile's node at the end of the path, below the variable's */
    uint64_t n_samples;
    uint64_t n_faults;              /* that the samples stand for */
    uint64_t first_ns;              /* of the first of them, CLOCK_REALTIME; 0 = not known */
    uint64_t low_bytes, high_bytes; /* where they lie in the block or symbol; low > high: not known */
};

/* How each sharing_note begins. */
#define SHARING_NOTE "hpcrun --verify-sharing: "

/* One side of what the watchpoints found about a cache line that two threads of a process used (struct arena_meeting):
 * the side file of each thread has its own. key, the same on both sides, is unique in the process. */
struct objects_meeting {
    uint64_t key;
    uint32_t node;     /* absolute id of the profile's node at the end of the path, below the variable's */
    bool is_watcher;   /* the thread that watched the line and was trapped; else the one whose sample was the reason */
    uint64_t address;  /* of the bytes that it used, or that were watched */
    uint64_t n_bytes;  /* 0: not known */
    uint32_t accesses; /* 1: reads, 2: writes; 0: not known */
    uint64_t n_same, n_beside; /* times that the watcher touched the same bytes, and others of the line */
    uint64_t n_none;           /* watches that did not see both of them there: then there is no other side */
};

/* A variable: the node of the data-centric tree that declares it. */
struct objects_variable {
    uint32_t node;            /* absolute id of the profile's node */
    uint32_t kind;            /* enum var_kind of arena/arena.h */
    char *name;               /* symbol, file or region when the runtime knew it; NULL for heap and stack */
    uint64_t n_blocks, bytes; /* heap and mappings: recorded by this thread; statics: 1 and size */
    uint64_t n_blocks_freed, bytes_freed;
    uint64_t max_block_bytes;                  /* largest block seen; 0 = not known */
    uint64_t min_small_bytes, max_small_bytes; /* of the blocks below the threshold, which are counted nowhere; both 0 =
                                                * none */
    struct objects_count *cpus;                /* [n_cpus] samples by CPU, metric by metric */
    size_t n_cpus;
    uint64_t classes[8];    /* samples of the first address event by enum hit_class */
    uint64_t n_inexact;     /* of them, by a proxy address */
    int64_t *stack_offsets; /* [n_stack_offsets][2]: distance below the CFA in bytes (rounded to 16), samples; before
                             * version 4, and where accesses have no offsets */
    size_t n_stack_offsets;
    struct objects_samples *samples; /* [n_samples] by metric; from version 2 on */
    size_t n_samples;
    struct objects_latency *latencies; /* [n_latencies] by event; from version 2 on */
    size_t n_latencies;
    uint64_t n_blocks_marked, bytes_marked; /* of them, live at the mark; from version 3 on */
    struct objects_access *accesses;        /* [n_accesses]; from version 4 on */
    size_t n_accesses;
    struct objects_home *homes; /* [n_homes] of samples, on machines with several memory nodes */
    size_t n_homes;
    uint64_t n_moved;              /* of these samples, on a page that had another home before */
    struct objects_pages *pages;   /* NULL: not known */
    struct objects_touch *touches; /* [n_touches] where page faults were sampled; older files have none */
    size_t n_touches;
    struct reach *reach;              /* NULL: none */
    struct objects_meeting *meetings; /* [n_meetings] where lines were watched */
    size_t n_meetings;
};

struct objects_event {
    char *metric; /* name of the profile's metric */
    char *name;   /* event as the user wrote it */
    double scale; /* metric value = samples * scale when period-based */
    uint64_t taken, overflows;
    uint64_t fates[FATE_MAX];
    /* from version 2 on */
    uint64_t enabled_ns, running_ns; /* how long it was wanted, and really counted; both 0: not known */
    uint64_t n_throttles;            /* times that the kernel stopped it for the rest of a tick */
    uint64_t n_no_metric;            /* samples whose data source names neither load nor store */
    uint64_t n_truncated;            /* pieces of the AUX area that it was too small for */
    uint64_t n_collisions;           /* pieces of the AUX area in which the hardware dropped samples */
    uint32_t has_data_source;        /* 1: the hardware described each access */
    /* from version 5 on */
    uint32_t has_address;  /* 1: its samples have, or would have, data addresses */
    uint32_t is_user_only; /* 1: time in the kernel gives no samples */
    uint64_t n_spared;     /* periods that samples stand for beyond one each: there were fewer, so that sampling did not
                            * take more than its share; older files have none */
    uint64_t sample_cost_ns; /* what a sample cost then; 0: none was spared */
};

/* A function with samples: [start, end) in the profile's module "[kernel:...]", or "[jit:...]"; or a region of the
 * program in "[region]". */
struct objects_function {
    uint64_t start, end;
    char *name;
};

/* A file of the load map, and which build of it was loaded: modtab_header.id. */
struct objects_module {
    uint64_t id;
    char *path;
};

/* One side file. All zero is empty. */
struct objects_file {
    uint32_t version; /* as read; 0 is written as the newest */
    char *host, *exe;
    char *thread_name; /* that the program gave it; NULL: none, or not known */
    uint32_t pid, tid, thread_id, rank;
    uint64_t start_ns, end_ns, cpu_time_ns;
    char *plan;     /* the launcher's line: which source and why */
    char *skid;     /* figures of the skid self-test as JSON text, NULL when none */
    bool is_skid_json; /* the writer need not look whether they are: in a process of many threads it is done once */
    char *state;    /* "complete", "killed", "checkpoint" */
    char *topology; /* file name of the hwloc XML in the same directory, NULL when none */
    uint64_t n_frames, unwind_stops[16];
    /* from version 3 on: which blocks were recorded; all 0 in older files */
    uint64_t min_bytes;    /* all of at least this size; UINT64_MAX: allocations were not recorded */
    uint64_t sample_bytes; /* smaller ones: one in so many bytes, counted for all of them; 0 = none */
    uint64_t mark_ns;      /* when the mark was made, CLOCK_REALTIME; 0 = never */
    /* from version 5 on */
    uint64_t user_ns, system_ns; /* the two parts of cpu_time_ns; both 0: not known */
    uint64_t delay_ns;           /* beside cpu_time_ns: the thread could run and waited for a CPU; 0: not known */
    uint64_t n_page_faults;      /* by the kernel's count, the profiler's own among them; 0: not known */
    uint64_t unmeasured_ns; /* of the first thread: CPU time of its process in threads that were not measured; 0: none,
                             * or an older file */
    char *note;             /* a sentence for reports, NULL = none */
    char *sharing_note;     /* why threads did not watch cache lines though the user asked for it, NULL = they did,
                             * or nobody asked */
    uint64_t birth; /* when the process began, in clock ticks after its host's boot: with host and pid it identifies the
                     * process, whatever programs it becomes by exec; 0: not known */
    struct objects_event *events; /* [n_events] */
    size_t n_events;
    struct objects_variable *variables; /* [n_variables] */
    size_t n_variables;
    struct { /* placeholder functions: lm_ip in the profile's libhpcrun.so and their names */
        uint64_t ip;
        char *name;
    } * placeholders; /* [n_placeholders] */
    size_t n_placeholders;
    struct objects_function *kernel; /* [n_kernel] by address; none where the kernel hides them */
    size_t n_kernel;
    struct objects_function *jit; /* [n_jit] by address: of code that the program generated and described */
    size_t n_jit;
    struct objects_function *regions; /* [n_regions] by address */
    size_t n_regions;
    struct objects_module *modules; /* [n_modules] with samples, those whose build is known */
    size_t n_modules;
};

/* Reads path; *file must be empty and is left empty on failure.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int objects_read(const char *path, struct objects_file *file, struct error *err);

/* Same from memory; name is used in messages. */
int objects_read_memory(const char *bytes, size_t len_bytes, const char *name, struct objects_file *file,
                        struct error *err);

/* Writes path (temporary name, then rename).  err: ERR_IO, ERR_MEMORY */
int objects_write(const struct objects_file *file, const char *path, struct error *err);

/* Whether figures of the skid self-test are written as the JSON that they are; NULL is not. */
bool objects_skid_is_json(const char *skid);

/* Appends the file's text to out.  err: ERR_MEMORY */
int objects_write_memory(const struct objects_file *file, struct buf *out, struct error *err);

/* Sorts the variables by node, as objects_put_variable needs them. */
void objects_sort_variables(struct objects_file *file);

/* Appends what the file calls the variable of a node: its name, or its kind and the node's number; nothing when it has
 * none. Sets out->failed when out of memory. */
void objects_put_variable(const struct objects_file *file, uint32_t node, struct buf *out);

/* Frees everything and makes the file empty. */
void objects_fini(struct objects_file *file);

/* --- private part --- */

/* What the side file's reader and writer share with each other and with the table of file kinds: the format mark, the
 * names of the kinds of variables (enum var_kind of arena/arena.h), and reading from a JSON tree. */

#define OBJECTS_FORMAT "locus-objects"
/* 1: without samples, latencies, and the times and hardware counters of events; 2: without marks and thresholds; 3:
 * without accesses */
#define OBJECTS_VERSION 6

/* The kind of a name; -1 when there is none. */
int objects_kind_of(const char *name);

/* Reads the side file from its JSON; *file must be empty and is left empty on failure. Returns take->code. */
int objects_take_json(struct json_take *take, const json_t *root, struct objects_file *file);

#endif
