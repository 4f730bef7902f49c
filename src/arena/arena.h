/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena: what the runtime records while the program runs, and what the companion reads, live or after the end.
 *
 * One memory file per process, mapped whole by the companion and as far as it is used by the program. It is
 * position-independent: records name each other by references, a reference being the record's byte offset divided by
 * ARENA_UNIT (0 = none). Space is handed out in runs of neighbouring chunks: the first runs of a thread are short,
 * because there may be many thousands of threads. A run belongs to one thread and one kind of record, is filled first
 * and published by a release-store of the used_bytes of its first chunk. Records inside the published length are
 * complete, except for their counters and links, which are single words that change atomically. Native byte order: an
 * arena never leaves its machine.
 *
 *
 *   0                chunk_table_offset        chunk_data_offset
 *   +----------------+-------------------------+---------+---------+---------+---------+---------+-- - -
 *   | arena_header   | arena_chunk [limit]     | chunk 0 | chunk 1 | chunk 2 | chunk 3 | chunk 4 |
 *   | events, log,   | kind, thread, used_bytes| <---- a run of two -> <- another, of three -----> |
 *   | requests       | of each chunk           | records of one kind     records of another kind   |
 *   +----------------+-------------------------+---------+---------+---------+---------+---------+-- - -
 *
 *   a sample:   arena_hit (event, class, count) --var--> what it touched: see enum var_kind
 *                   ^ hits: a list at the node
 *               arena_node (ip, module) --parent--> arena_node --parent--> ... the call path
 *
 * Declarations only; nothing here allocates or locks, so every context may use it. */
#ifndef LOCUS_ARENA_ARENA_H
#define LOCUS_ARENA_ARENA_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "arena/fate.h"
#include "base/access-pattern.h"

#define ARENA_MAGIC "LOCUSAR1" /* 8 bytes, no NUL */
#define ARENA_VERSION 29
#define ARENA_UNIT 8
#define ARENA_CHUNK_BYTES 2048 /* the first records of a thread's tree share a page: each page costs a thread a fault */
#define ARENA_RUN_CHUNKS 32    /* of the longest run */
#define ARENA_RUN_BYTES (ARENA_RUN_CHUNKS * ARENA_CHUNK_BYTES)
#define ARENA_EVENTS_MAX 16
#define ARENA_REQUESTS 1024 /* power of two */
#define ARENA_PATH_MAX 4096
#define ARENA_PLACE_BUCKETS 256
#define ARENA_HOMES_MAX 64    /* memory nodes: pages on others count as of no known home */
#define ARENA_PAGES_MAX 511   /* sampled pages that a thread keeps until the companion takes them */
#define ARENA_DEBUG_RUNS 1024 /* of lines of HPCRUN_DEBUG: 64 MiB */
#define ARENA_EXTENTS 32      /* large variables of a process whose pages are counted */
#define ARENA_PHASES 64       /* names that the owner has given to what the process did from then on */
#define ARENA_PHASE_BYTES 56  /* of one, with its end */

enum arena_kind {
    ARENA_FREE = 0,
    ARENA_THREADS,     /* struct arena_thread */
    ARENA_NODES,       /* struct arena_node of the sample tree: only the owner's handler changes links */
    ARENA_ALLOC_NODES, /* struct arena_node of the allocation tree: only the owner's malloc hooks change links */
    ARENA_HITS,        /* struct arena_hit */
    ARENA_PLACES,      /* struct arena_place */
    ARENA_MODULES,     /* struct arena_module */
    ARENA_STRINGS,     /* struct arena_string */
    ARENA_TRACE,       /* struct arena_trace */
    ARENA_SKETCHES,    /* struct arena_sketch */
    ARENA_OFFSETS,     /* struct arena_offsets */
    ARENA_LINES,       /* struct arena_lines */
    ARENA_SITES,       /* struct arena_site */
    ARENA_PAGES,       /* struct arena_pages */
    ARENA_REACHES,     /* struct arena_reach */
    ARENA_MEETINGS,    /* struct arena_meeting */
    ARENA_DEBUG,       /* struct arena_debug */
    ARENA_KINDS
};

#define ARENA_COMM_BYTES 16 /* a thread's name, as in Linux */

enum arena_state { ARENA_FRESH = 0, ARENA_RUNNING = 1, ARENA_ENDED = 2 };

/* What a variable key names: bits 56-63 of the key. Bits 32-55 are "a", bits 0-31 are "b". */
enum var_kind {
    VAR_NONE = 0,   /* no address was found (see the hit's class) */
    VAR_HEAP = 1,   /* b: reference of the allocation-tree node of its allocation path */
    VAR_MMAP = 2,   /* b: as VAR_HEAP, path of the mmap/shmat/brk call */
    VAR_STATIC = 3, /* a: module id, b: index into the module table's symbols */
    VAR_TLS = 4,    /* a: module id, b: index into the module table's TLS symbols */
    VAR_STACK = 5,  /* own stack; b: sample-tree node of the frame; a: where the hits have no offsets, (CFA - address)
                     * / 16, saturated at 2^24-1, else 0 */
    VAR_STACK_OTHER = 6,  /* another thread's stack; b: reference of its arena_thread */
    VAR_FILE = 7,         /* file mapping; b: reference of an arena_string with the file's name */
    VAR_UNKNOWN = 8,      /* b: enum unknown_reason */
    VAR_KINDS,            /* number of the kinds above, which files have too */
    VAR_SMALL = VAR_KINDS /* small blocks of one site; b: reference of its arena_site */
};

enum unknown_reason {
    UNKNOWN_NO_BLOCK = 0, /* no recorded block, module, stack or mapping holds the address */
    UNKNOWN_FREED,        /* the block had been freed when its sample was resolved */
    UNKNOWN_SMALL_BLOCK,  /* on the heap, in a block below the threshold */
    UNKNOWN_OWN,          /* the profiler's own memory */
    UNKNOWN_KERNEL,       /* kernel half of the address space */
    UNKNOWN_NULL,         /* first page: near a null pointer */
    UNKNOWN_VDSO,         /* vdso, vvar, vsyscall */
    UNKNOWN_UNLOGGED,     /* heap or anonymous mapping in a measurement without allocations (files of perf) */
    UNKNOWN_REASONS
};

/* How the address of a sample was found. */
enum hit_class {
    HIT_MEMORY = 0,      /* operand of the stalled instruction */
    HIT_DEPENDENT = 1,   /* operand of the load that the stalled instruction waited for */
    HIT_COMPUTE = 2,     /* no memory involved: no address */
    HIT_LOST = 3,        /* memory instruction, address not recoverable: no address */
    HIT_SYSCALL = 4,     /* after a system call: no address */
    HIT_PLAIN = 5,       /* source without address */
    HIT_KERNEL_ADDR = 6, /* address delivered by the kernel or the PMU */
    HIT_WAITING = 7,     /* in a loop that only waits for another thread: no address */
    HIT_CLASSES
};

/* hit.event of the two pseudo events on allocation-tree nodes. Their marked_blocks and marked_bytes hold what they had
 * counted at the mark. */
#define HIT_EVENT_ALLOC 255 /* count: blocks recorded, weight: their bytes */
#define HIT_EVENT_FREE 254  /* count: blocks freed, weight: their bytes */
#define HIT_FLAG_INEXACT 1  /* right block, address within it uncertain (proxy) */

/* Key of a variable: kind in bits 56-63, a (24 bits) above b; the functions below take it apart.  ctx: any */
static inline uint64_t var_key(enum var_kind kind, uint32_t a, uint32_t b)
{
    return (uint64_t)kind << 56 | (uint64_t)(a & 0xffffffu) << 32 | b;
}
static inline enum var_kind var_key_kind(uint64_t key)
{
    return (enum var_kind)(key >> 56);
}
static inline uint32_t var_key_a(uint64_t key)
{
    return (uint32_t)(key >> 32) & 0xffffffu;
}
static inline uint32_t var_key_b(uint64_t key)
{
    return (uint32_t)key;
}

/* Call-tree node. The key of a child is (ip, module); children of a node form a splay tree.
 * ip: for the leaf the sampled pc, for callers the return address; absolute (subtract the module's bias). */
struct arena_node {
    uint64_t ip;
    uint32_t parent; /* 0 only for a root */
    uint32_t module; /* reference of an arena_module, 0 = none */
    uint32_t child;  /* root of the splay tree of children */
    uint32_t left, right;
    uint32_t hits;     /* first arena_hit, 0 = none */
    uint32_t flags;    /* NODE_* */
    uint32_t trace_id; /* runtime: 0; free for the reader of a private copy */
};
#define NODE_ROOT                                                                                                      \
    1u                  /* the thread's root; ip: node of the allocation tree of the thread that made it, at which its \
                         * paths go on; 0: none */
#define NODE_PARTIAL 2u /* root of partial unwinds, child of the root with ip 1 */
#define NODE_CREATED                                                                                                   \
    4u /* no frame: paths through here go on, at their root, at node ip of an allocation tree                          \
        * (NODE_NOWHERE: they end) and not where the root says. Of several ones the innermost counts */
#define NODE_NOWHERE UINT64_MAX

/* (call-tree node, event, class, variable, metrics) with its sums. count: samples (or faults, blocks); weight: in the
 * unit of the event (ns, bytes); when the event has a fixed period, the periods that samples stand for beyond one each
 * (then (count + weight) * period is the value).
 * metrics: what the hardware reported about these accesses, one bit for each enum mem_metric of
 * sampling/abi/data-src.h; 0 for events without EVENT_DATA_SRC. latency: core cycles, summed over the samples (not
 * times the period).
 * Where in the variable the samples lie: n_offsets of them have an offset in bytes from the start of their block
 * or symbol, in stack frames from the address down to it from the CFA. The first is first_offset, the next ones lie in
 * the chain of arena_offsets. The chain holds ARENA_OFFSETS_MAX - 1 at most (fewer where the arena ran short); of more
 * samples, each has the same chance of being in it.
 * pattern: how the instruction walks through memory (base/access-pattern.h), 0 = not known. Hits with a pattern keep
 * places (pattern_place) where others keep offsets, and when there are more of them than the chain holds, the lines of
 * all their samples. */
struct arena_hit {
    uint32_t next;  /* next hit of the same node */
    uint8_t event;  /* index into arena_header.events, or HIT_EVENT_* */
    uint8_t class;  /* enum hit_class */
    uint16_t flags; /* HIT_FLAG_* */
    uint64_t var;
    union {
        struct {
            uint32_t metrics;
            uint32_t offsets; /* newest arena_offsets, 0 = none */
        };
        _Atomic uint64_t marked_blocks; /* of HIT_EVENT_ALLOC and HIT_EVENT_FREE: count when the mark was made */
    };
    _Atomic uint64_t count;
    _Atomic uint64_t weight;
    union {
        _Atomic uint64_t latency;
        _Atomic uint64_t marked_bytes; /* of HIT_EVENT_ALLOC and HIT_EVENT_FREE: weight when the mark was made */
        _Atomic uint64_t first_ns; /* of page faults: when the first one was recorded, CLOCK_REALTIME; 0 = not known:
                                    * by EVENT_RING_ONLY they are found long after they happened */
    };
    _Atomic uint64_t first_offset;
    _Atomic uint64_t n_offsets;
    uint64_t pattern;
    uint32_t lines; /* arena_lines, 0 = none */
    uint32_t pad;
};

#define ARENA_OFFSETS_MAX 64 /* of a hit: 1 in itself, then 7, 24 and 32 in its chain */

struct arena_offsets {
    uint32_t next; /* the older one, 0 = none */
    uint32_t n_values;
    _Atomic uint64_t values[];
};

/* Offsets that a chain with this newest record holds together with the hit's own.  ctx: any */
static inline uint32_t arena_offsets_capacity(uint32_t n_newest_values)
{
    return n_newest_values == 32 ? 64 : n_newest_values == 24 ? 32 : n_newest_values == 7 ? 8 : 1;
}

/* Values of the record that makes room for more than capacity offsets; 0 when there must not be more.  ctx: any */
static inline uint32_t arena_offsets_next(uint32_t capacity)
{
    return capacity == 1 ? 7 : capacity == 8 ? 24 : capacity == 32 ? 32 : 0;
}

/* Which cache lines the samples of a hit lie in: counts of their places in the line, in slots of 4 bytes; bits
 * [n_words] by a hash of the line (pattern_place), where the number of lines matters; and the lowest and highest line,
 * as address / 64 (of the samples since the record was made). Of these, n_paced came as many lines after the one
 * before, which was at line, as that had come after its own (step): within an eighth of all lines between the lowest
 * and the highest, which count as a circle. Of samples from anywhere a quarter do by chance, in a walk that sweeps over
 * its data at one speed nearly all. */
struct arena_lines {
    _Atomic uint64_t first_line, last_line;
    _Atomic uint32_t slots[PATTERN_SLOTS];
    uint32_t n_words;
    _Atomic uint32_t n_paced;
    _Atomic uint64_t line;
    _Atomic int64_t step;
    _Atomic uint64_t bits[];
};
#define ARENA_LINES_WORDS (1u << (PATTERN_HASH_BITS - 6))

/* Samples of one thread on one variable by CPU. Chained per thread in ARENA_PLACE_BUCKETS buckets. */
struct arena_place {
    uint32_t next;
    uint16_t cpu;
    uint8_t event;
    uint8_t pad;
    uint64_t var;
    _Atomic uint64_t count;
    _Atomic uint64_t homes[]; /* [HOME_FIRST + n_homes of the header], none where that is 0: see enum place_home.
                               * Written by the companion. What is missing from count was never asked for */
};

/* Of the samples of a place, those whose page ... */
enum place_home {
    HOME_NONE = 0, /* was on no node when the kernel was asked: never written, or released before that */
    HOME_MOVED,    /* had another home when it was asked for before; these are in one of the next as well */
    HOME_FIRST     /* was on node 0; then node 1, and so on */
};

/* Bytes of an arena_place where the header has this n_homes.  ctx: any */
static inline uint32_t arena_place_bytes(uint32_t n_homes)
{
    uint32_t n = n_homes < ARENA_HOMES_MAX ? n_homes : ARENA_HOMES_MAX;
    return (uint32_t)(sizeof(struct arena_place) + (n ? HOME_FIRST + n : 0) * sizeof(uint64_t));
}

/* A sampled address, and the block or symbol that holds it; start and end are 0 where that is not known. */
struct arena_page {
    uint64_t address, start, end;
    uint32_t place; /* of the sample */
    uint32_t pad;
};

/* The last sampled pages of one thread, as a ring: the handler puts them in, and the companion takes them out and asks
 * the kernel on which nodes they are. What finds no room is not asked for. */
struct arena_pages {
    uint32_t next; /* the ring of another thread: a list in the header */
    uint32_t pad;
    _Atomic uint64_t head; /* counts what was put in ... */
    _Atomic uint64_t tail; /* ... and what was taken out */
    struct arena_page pages[ARENA_PAGES_MAX];
};

/* A large block or symbol, and on which nodes its pages were when the companion counted them last. Of very large ones
 * it asks for some pages, spread evenly. */
struct arena_extent {
    uint64_t var; /* 0: this place in the table is free */
    uint64_t start, end;
    uint64_t n_pages;    /* of page_bytes */
    uint64_t huge_bytes; /* in huge pages, of the mapping that holds it; UINT64_MAX: not known */
    uint32_t n_asked;
    uint32_t n_none; /* of those asked for, without a page */
    uint32_t n_on[ARENA_HOMES_MAX];
};

/* Latencies of one thread's samples of one event on one variable, as a histogram of fixed size. Chained per thread in
 * ARENA_SKETCH_BUCKETS hash chains. Bin i counts latencies in core cycles: i for i < 8, above that four bins an octave:
 * bin 4 * (e - 1) + m holds [2^e + m * 2^(e-2), 2^e + (m + 1) * 2^(e-2)) for e >= 3, m = 0..3; the last bin also
 * everything larger. */
#define ARENA_SKETCH_BINS 64
#define ARENA_SKETCH_BUCKETS 64
struct arena_sketch {
    uint32_t next;
    uint8_t event;
    uint8_t pad[3];
    uint64_t var;
    _Atomic uint32_t bins[ARENA_SKETCH_BINS];
};

/* Where the samples of one thread lie in one variable, on any path and of any event: see arena/reach.h. Chained per
 * thread in ARENA_REACH_BUCKETS hash chains. When a block is too large for a record's bins, another record is begun,
 * so that a thread may have several of one variable. */
#define ARENA_REACH_BINS 64
#define ARENA_REACH_BLOCKS 4
#define ARENA_REACH_LINES 8
#define ARENA_REACH_BUCKETS 256
struct arena_reach_line {
    _Atomic uint64_t read_at, written_at;  /* a bit for each byte of the line at which an access began */
    _Atomic uint32_t n_stores;             /* of the samples in slots */
    _Atomic uint16_t slots[PATTERN_SLOTS]; /* samples by place in the line, since it has been in the table; all are
                                            * halved, with n_stores, when one is full */
    uint32_t pad;
};
struct arena_reach {
    uint32_t next;
    uint8_t shift; /* bin i counts offsets of i << shift to ((i + 1) << shift) - 1 bytes */
    uint8_t pad[3];
    uint64_t var;
    _Atomic uint64_t first_offset, last_offset; /* lowest and highest */
    uint64_t before;                            /* address of the latest sample */
    _Atomic uint32_t n_steps, n_forward;        /* samples at another address than the one before; at a higher one */
    _Atomic uint32_t n_loads, n_stores; /* by instructions that only read, and that write; the rest: not known */
    _Atomic uint32_t bins[ARENA_REACH_BINS];
    _Atomic uint64_t blocks[ARENA_REACH_BLOCKS]; /* addresses of the blocks with most samples ... */
    _Atomic uint32_t n_in_blocks[ARENA_REACH_BLOCKS];
    _Atomic uint64_t
        lines[ARENA_REACH_LINES]; /* ... and address / 64 of the cache lines, with upper bounds of theirs */
    _Atomic uint32_t n_in_lines[ARENA_REACH_LINES];
    struct arena_reach_line places[ARENA_REACH_LINES];
};

/* What the watchpoints of a thread found about a cache line that a sample of another thread had used: for a while the
 * bytes of that sample were watched, and other bytes of its line. One record for each pair of places in the code and in
 * the line; with leaf 0 one for the times that this thread did not come there. Chained per thread. */
struct arena_meeting {
    uint32_t next;
    uint32_t other;                   /* arena_thread of the other thread */
    uint32_t leaf, other_leaf;        /* sample-tree nodes: of the access that was trapped, and of the sample */
    uint64_t var, other_var;          /* what the two accesses touched */
    uint64_t address, other_address;  /* address: of the watched bytes, as near as is known */
    uint8_t bytes, other_bytes;       /* sizes; 0: not known */
    uint8_t accesses, other_accesses; /* REACH_* of arena/reach.h; accesses: REACH_WRITES only if reads were not watched
                                       * for, else 0 */
    uint32_t pad;
    _Atomic uint32_t n_same;   /* times that this thread touched the same bytes, ... */
    _Atomic uint32_t n_beside; /* other bytes of the line, while the other one came there again ... */
    _Atomic uint32_t n_none;   /* ... or that one of them was not there */
    uint32_t pad_2;
};
#define ARENA_MEETINGS_MAX 128 /* of a thread */

/* A site that allocates blocks below the threshold. The blocks have no records of their own. */
struct arena_site {
    _Atomic uint64_t path;                 /* VAR_HEAP: the call path, as far as all blocks so far have it in common */
    _Atomic uint32_t min_bytes, max_bytes; /* smallest and largest block */
};

/* Load module as it was mapped; ids are dense from 1 in order of publication. */
struct arena_module {
    uint32_t id;
    uint32_t path;            /* reference of an arena_string: real path, "[vdso]" for the vdso */
    uint64_t start, end;      /* address range of the mapping */
    uint64_t bias;            /* run-time address - ELF virtual address */
    uint64_t table_id;        /* modtab_header.id of its table, 0 = none */
    _Atomic uint32_t sampled; /* 1 once a node refers to it */
    _Atomic uint32_t answer;  /* enum module_answer, by the companion */
    uint64_t inode;           /* of the file that is mapped, 0 = not known */
};
/* What has become of the request for a module's table. */
enum module_answer {
    MODULE_UNANSWERED = 0,
    MODULE_MADE,   /* it is in the cache */
    MODULE_REFUSED /* the file is gone, has been replaced, or is damaged */
};

struct arena_string {
    uint32_t len_bytes; /* without the NUL */
    char text[];        /* NUL-terminated */
};

/* --- the log of samples --- */

/* A sample of the log: its hit says where and what it was. All zero: empty. stamp: when it was taken and its level (see
 * below); written last, and 0 while the rest changes. hit_and_latency: reference of the arena_hit in bits 0-31, core
 * cycles above (0: not known). place: offset in the variable in bits 0-47 (ARENA_TRACE_NO_OFFSET: not known), CPU
 * above.
 *
 * The log has room for so many runs. The samples of a thread are numbered; the level of a number is how many times 2
 * divides it. Once the log is full it has a level too, which rises: samples of a lower level are left out, and their
 * records are free to be written again. So the log holds every second sample of each thread, then every fourth, and
 * so on, evenly over the whole time: readers skip what is below the level. Nothing is moved, nobody waits, and
 * whenever the process is killed, the log is as it should be.
 *
 * Runs of the log are in a list, the newest first. A thread that has filled its run gives it up (chunk.thread = 0), and
 * takes a new one or, where there are no more, the next one of the sweep that nobody has: it then writes over its free
 * records. At the end of the list the level rises, and the sweep begins anew. */
struct arena_trace {
    _Atomic uint64_t stamp;
    _Atomic uint64_t hit_and_latency;
    _Atomic uint64_t place;
};
#define ARENA_TRACE_NO_OFFSET (((uint64_t)1 << 48) - 1)
#define ARENA_TRACE_LEVELS 32
#define ARENA_SWEEP_LEVEL_SHIFT 40
#define ARENA_SWEEP_CLAIMED ((uint64_t)1 << 32)

/* Level of a thread's sample by its number from 0. Threads begin in different places, so that one with few samples has
 * the same chance to be in the log whatever its number.  ctx: any */
static inline unsigned arena_trace_level(uint32_t thread_id, uint64_t number)
{
    uint64_t at = number + ((uint64_t)thread_id * 0x9e3779b97f4a7c15u >> 40);
    unsigned level = at ? (unsigned)__builtin_ctzll(at) : ARENA_TRACE_LEVELS - 1;
    return level < ARENA_TRACE_LEVELS ? level : ARENA_TRACE_LEVELS - 1;
}

/* A stamp, and its two parts. t_ns: CLOCK_MONOTONIC since arena_header.start_mono_ns.  ctx: any */
static inline uint64_t arena_trace_stamp(uint64_t t_ns, unsigned level)
{
    return (t_ns ? t_ns : 1) << 5 | level;
}
static inline uint64_t arena_trace_time(uint64_t stamp)
{
    return stamp >> 5;
}
static inline unsigned arena_trace_stamp_level(uint64_t stamp)
{
    return stamp & (ARENA_TRACE_LEVELS - 1);
}

/* A sampled event, filled by the companion from the launcher's plan before the program sees the arena. */
struct arena_event {
    char metric[64]; /* metric name in the profile, e.g. "EADDR (usec)" */
    char description[192];
    char name[64];               /* as the user wrote it, without @... */
    uint32_t source;             /* enum source_id */
    uint32_t flags;              /* EVENT_* */
    double scale;                /* value in the profile = count * scale, or weight * scale with EVENT_WEIGHTED */
    struct perf_event_attr attr; /* complete; runtime passes it to perf_event_open unchanged */
    uint64_t timer_interval_ns;  /* when EVENT_TIMER: timer_create(CLOCK_THREAD_CPUTIME_ID or MONOTONIC) interval */
    uint32_t leader; /* 1 + index of the event that must be opened before as the leader of its group; 0: none */
    uint32_t decode; /* enum mem_decode of sampling/abi/data-src.h: what the record says about the access; for Arm SPE
                      * also, shifted by EVENT_DECODE_SHIFT, enum spe_sources of sampling/abi/spe.h */
    uint32_t ring_bytes; /* data part of the ring, a power of two pages; 0: one page */
    uint32_t aux_bytes;  /* EVENT_AUX: size of the AUX area */
    char file[256];      /* EVENT_REPLAY: what to replay; EVENT_RECORD: where to record the ring; real path */
};
#define EVENT_WEIGHTED 1u   /* value comes from the hits' weight */
#define EVENT_TIMER 2u      /* POSIX timer instead of perf */
#define EVENT_RING 4u       /* needs a mapped ring: the data address is in the sample record */
#define EVENT_ADDRESS 8u    /* yields data addresses */
#define EVENT_INTEGER 16u   /* value is an integer in the profile */
#define EVENT_WALLCLOCK 32u /* timer on CLOCK_MONOTONIC (REALTIME) */
#define EVENT_RING_ONLY 64u /* no signal: drained from the ring (FAULTS@ring) */
#define EVENT_DATA_SRC 128u /* the record gives level, latency and so on of the access: hits carry metrics */
#define EVENT_BATCH 256u    /* large-buffer mode: many records a signal, no call path, drained by the thread itself */
#define EVENT_AUX 512u      /* records of the hardware in an AUX area (Arm SPE) */
#define EVENT_SILENT 1024u  /* leads a group, gives no samples of its own */
#define EVENT_KERNEL 2048u  /* the record carries a kernel call chain */
#define EVENT_REPLAY 4096u  /* a file takes the place of the kernel and the hardware */
#define EVENT_SWAPPED 8192u /* EVENT_REPLAY: from a machine of the other byte order */
#define EVENT_RECORD 16384u /* what the kernel writes into the ring of the first thread is copied to a file */
#define EVENT_FILE 32768u   /* its hits have no address, but name the file */
#define EVENT_CALLS 65536u  /* wrappers of calls record it: nothing is opened, and nothing is sampled */
#define EVENT_VARIABLE (EVENT_ADDRESS | EVENT_FILE) /* its hits name variables */
#define EVENT_DECODE_SHIFT 8
#define EVENT_DECODE_MASK 255u

enum source_id {
    SOURCE_NONE = 0,
    SOURCE_EADDR,
    SOURCE_FAULTS,
    SOURCE_CPUTIME,
    SOURCE_REALTIME,
    SOURCE_MEMLEAK,
    SOURCE_PERF,     /* any other perf event */
    SOURCE_PMU_ADDR, /* hardware address sampling */
    SOURCE_BLOCKTIME, /* wrappers of calls that wait, and page-ins */
    SOURCE_IO_READ,   /* wrappers of calls that read ... */
    SOURCE_IO_WRITE   /* ... and write files */
};

/* Of enum unwind_stop, what readers of the counts need. */
#define ARENA_STOP_COMPLETE 0
#define ARENA_STOP_NO_TABLE 2

/* So many threads always get a record of their own; later ones continue the record of a thread that has ended, if there
 * is one. */
#define ARENA_THREADS_OWN 256

/* One for each thread that was ever registered; when there are very many, new threads continue the records and trees of
 * threads that have ended. */
struct arena_thread {
    uint32_t id;               /* 0 for the main thread, then dense */
    uint32_t tid;              /* kernel thread id, of the last thread */
    uint64_t start_ns, end_ns; /* CLOCK_REALTIME, of the first and the last thread; end_ns 0 while alive */
    uint32_t root;             /* sample tree; 0: none yet */
    uint32_t partial;          /* its partial root */
    uint32_t alloc_root;       /* allocation tree */
    _Atomic uint32_t n_merged; /* later threads that continued it */
    uint64_t stack_low, stack_high;
    _Atomic uint64_t cpu_time_ns;                    /* thread CPU time used, as of the last update */
    _Atomic uint64_t user_ns, system_ns;             /* its two parts, as the kernel splits it; both 0: not known */
    _Atomic uint64_t delay_ns;                       /* it could run and waited for a CPU; 0: not known */
    _Atomic uint64_t taken[ARENA_EVENTS_MAX];        /* handler entries (or ring records) */
    _Atomic uint64_t overflows[ARENA_EVENTS_MAX];    /* by the kernel's count, 0 = not known (yet) */
    _Atomic uint64_t enabled_ns[ARENA_EVENTS_MAX];   /* how long the event was wanted ... */
    _Atomic uint64_t running_ns[ARENA_EVENTS_MAX];   /* ... and really counted; both 0 = not known */
    _Atomic uint64_t n_throttles[ARENA_EVENTS_MAX];  /* the kernel stopped the event for the rest of a tick */
    _Atomic uint64_t n_no_metric[ARENA_EVENTS_MAX];  /* samples whose data source names neither load nor store */
    _Atomic uint64_t n_truncated[ARENA_EVENTS_MAX];  /* pieces of the AUX area that it was too small for */
    _Atomic uint64_t n_collisions[ARENA_EVENTS_MAX]; /* pieces in which the hardware dropped samples */
    _Atomic uint64_t fates[ARENA_EVENTS_MAX][FATE_MAX];
    _Atomic uint64_t n_untraced;             /* samples that the log should hold and had no room for */
    _Atomic uint64_t unwind_stops[16];       /* by enum unwind_stop */
    _Atomic uint64_t n_frames;               /* frames unwound for samples */
    uint32_t pages;                          /* its arena_pages, 0 = none */
    _Atomic uint32_t n_page_faults;          /* by the kernel's count, at most UINT32_MAX; 0: not known */
    _Atomic uint64_t n_traced;               /* samples that came to the log, whatever became of them */
    uint32_t meetings;                       /* newest arena_meeting, 0 = none */
    uint32_t n_meetings;
    _Atomic uint64_t n_watches;                  /* times that the thread watched a line */
    _Atomic uint64_t n_meetings_lost;            /* what they found and had no room for */
    _Atomic uint64_t n_spared[ARENA_EVENTS_MAX]; /* periods that samples stood for beyond one each, because sampling
                                                  * would have taken more than its share of the time */
    _Atomic uint64_t spared_cost_ns; /* the smallest cost of a sample for which that was so, kernel included */
    _Atomic uint64_t handler_ns;     /* time in the handler ... */
    _Atomic uint64_t entered_ns;     /* ... and CLOCK_MONOTONIC when it was entered, 0 while it does not run */
    char name[ARENA_COMM_BYTES];     /* as the kernel has it, when the thread ended or was looked at; of several threads
                                      * with different ones what these begin with, and "*"; "": not known */
    /* From here on nothing is touched before the thread's first sample: a second page, which short threads never get.
     */
    uint32_t places[ARENA_PLACE_BUCKETS];    /* first arena_place of each bucket */
    uint32_t sketches[ARENA_SKETCH_BUCKETS]; /* first arena_sketch of each bucket */
    uint32_t reaches[ARENA_REACH_BUCKETS];   /* first arena_reach of each bucket */
};

/* --- what HPCRUN_DEBUG asks for --- */

/* What the runtime says of its own work (doc/debugging.md): the launcher reads the variable, the runtime writes lines
 * into the arena, and the process's log has them. Domains are areas of the runtime; level 1 is what happens seldom, or
 * says most. */
enum debug_domain {
    DEBUG_PROCESS = 0, /* start, fork and end of the process and its threads */
    DEBUG_EVENTS,      /* 1: what is opened and closed on each thread; 2: each signal */
    DEBUG_SAMPLE,      /* 1: what became of each sample */
    DEBUG_UNWIND,      /* 1: call paths that end early, and why (enum unwind_stop); 2: all */
    DEBUG_LOADMAP,     /* 1: modules as they come; 2: the search for their tables */
    DEBUG_BLOCKS,      /* 1: blocks of memory that are recorded; 2: their ends, too */
    DEBUG_DOMAINS
};

#define DEBUG_LEVEL_MOST 3
#define DEBUG_LEVEL_BITS 4 /* of each domain in arena_header.debug */

/* NULL behind the last.  ctx: any */
static inline const char *debug_domain_name(int domain)
{
    static const char *const names[] = {"process", "events", "sample", "unwind", "loadmap", "blocks"};
    return domain >= 0 && domain < DEBUG_DOMAINS ? names[domain] : (const char *)0;
}

/* The level of a domain among the levels of all, 0 = off.  ctx: any */
static inline unsigned debug_level(uint64_t levels, enum debug_domain domain)
{
    return (unsigned)(levels >> (DEBUG_LEVEL_BITS * (unsigned)domain)) & ((1u << DEBUG_LEVEL_BITS) - 1);
}

/* A line. */
struct arena_debug {
    uint64_t t_ns;              /* CLOCK_MONOTONIC */
    uint32_t tid;               /* as the kernel counts */
    uint8_t domain;             /* enum debug_domain */
    uint8_t fate;               /* 1 + enum fate, 0 = not of a sample */
    _Atomic uint16_t len_bytes; /* of text; 0: it is being written */
    char text[112];
};

/* What the runtime asks of the companion; answered by files in the table cache or entries in the recipe store. */
enum arena_request_kind { REQUEST_NONE = 0, REQUEST_MODULE = 1, REQUEST_RECIPE = 2 };

/* The program fills an empty slot and posts it; the companion takes it, and empties it or posts it again. */
enum arena_request_state { REQUEST_EMPTY = 0, REQUEST_FILLING, REQUEST_POSTED, REQUEST_TAKEN };

struct arena_request {
    _Atomic uint32_t state; /* enum arena_request_state */
    uint32_t kind;
    uint32_t module; /* reference of an arena_module */
    uint32_t pc;     /* REQUEST_RECIPE: relative to the base_vaddr of the module's table */
};

struct arena_chunk {
    _Atomic uint32_t used_bytes; /* published length of the run that begins here; 0 when none does, or not in use yet */
    uint16_t kind;               /* enum arena_kind */
    uint16_t behind;             /* chunks between the first one of the run and this one */
    _Atomic uint32_t thread;     /* reference of the owning arena_thread, 0 = shared; of the log: who writes to it */
    _Atomic uint32_t next;       /* ARENA_TRACE: 1 + index of the first chunk of the next older run, 0 = none */
};

/* Turns n_chunks chunks (at least one, all handed out to the caller) into an empty run.  ctx: any */
static inline void arena_run_begin(struct arena_chunk *first, uint32_t n_chunks, enum arena_kind kind, uint32_t thread)
{
    for (uint32_t i = 0; i < n_chunks; i++) {
        first[i].kind = (uint16_t)kind;
        first[i].behind = (uint16_t)i;
        atomic_store_explicit(&first[i].thread, thread, memory_order_relaxed);
    }
}

/* Published bytes of the run that begins at first, which has n_chunks chunks of memory, whatever it says.
 * ctx: any */
static inline uint32_t arena_run_used(const struct arena_chunk *first, uint32_t n_chunks)
{
    uint32_t used = __atomic_load_n((const uint32_t *)&first->used_bytes, __ATOMIC_ACQUIRE);
    uint64_t most = (uint64_t)(n_chunks < ARENA_RUN_CHUNKS ? n_chunks : ARENA_RUN_CHUNKS) * ARENA_CHUNK_BYTES;
    return used < most ? used : (uint32_t)most;
}

/* Regions that were used wrongly, or that there was no room for: counted, and harmless. */
enum region_fault {
    REGION_TOO_DEEP = 0, /* entered beyond the depth that is kept: samples go to the innermost region that is kept */
    REGION_NAMELESS,     /* without a name, or no room for one: samples go to the enclosing region */
    REGION_NOT_ENTERED,  /* left without having been entered */
    REGION_LEFT_OPEN,    /* not left when its thread ended */
    REGION_FAULTS
};
#define REGION_MODULE "[region]" /* path of their pseudo module, whose nodes have the reference of a string as ip */

/* The placeholder functions of libhpcrun.so whose names the original tools recognise, by index. */
enum placeholder {
    PLACEHOLDER_ROOT = 0, /* DATACENTRIC */
    PLACEHOLDER_DYNAMIC,  /* DATACENTRIC_Dynamic */
    PLACEHOLDER_STATIC,   /* DATACENTRIC_Static */
    PLACEHOLDER_UNKNOWN,  /* DATACENTRIC_Unknown */
    PLACEHOLDER_ACCESS,   /* DATACENTRIC_MemoryAccess */
    PLACEHOLDER_STACK,    /* DATACENTRIC_Stack (not exported) */
    PLACEHOLDER_TLS,      /* DATACENTRIC_ThreadLocal (not exported) */
    PLACEHOLDER_FILE,     /* DATACENTRIC_FileMapping (not exported) */
    PLACEHOLDER_REASON,   /* first of the not exported DATACENTRIC_Unknown_* and DATACENTRIC_No_* functions: */
    PLACEHOLDER_REASONS = UNKNOWN_REASONS,
    PLACEHOLDER_NO_COMPUTE = PLACEHOLDER_REASON + PLACEHOLDER_REASONS, /* DATACENTRIC_No_Compute */
    PLACEHOLDER_NO_LOST,                                               /* DATACENTRIC_No_AddressLost */
    PLACEHOLDER_NO_SYSCALL,                                            /* DATACENTRIC_No_SystemCall */
    PLACEHOLDER_NO_WAITING,                                            /* DATACENTRIC_No_Waiting */
    PLACEHOLDER_CREATED, /* CREATED_THREAD: between the path to the call that made a thread and the thread's own */
    PLACEHOLDER_MAX
};

/* A child that the process has seen begin, and that the companion may never hear of. */
#define ARENA_CHILDREN 32
enum arena_child_state {
    CHILD_NONE = 0,
    CHILD_NOTING,    /* being filled */
    CHILD_STARTED,   /* it calls exec after vfork: whether it is measured shows when it says HELLO */
    CHILD_UNHEARD,   /* after fork, and the companion did not answer it */
    CHILD_SANDBOXED, /* it is in a sandbox that keeps it from being measured */
    CHILD_CLONED     /* made without fork: only a program that it becomes by exec is measured */
};

struct arena_child {
    _Atomic uint32_t state; /* enum arena_child_state */
    uint32_t pid;           /* as it sees itself */
    char name[248];         /* STARTED, SANDBOXED: the program as it was given to exec */
};

/* A call of exec, which has succeeded when nothing follows it. */
enum arena_exec {
    EXEC_NONE = 0,
    EXEC_CALLED,
    EXEC_UNMEASURED /* in a sandbox that would kill our start-up code: the program starts without our library */
};

/* What becomes of a library that the program loads with RTLD_DEEPBIND or into a namespace of its own, so that it calls
 * a libc's malloc and not ours. */
enum arena_deep {
    DEEP_FOLLOWED = 0, /* its calls are redirected to ours */
    DEEP_UNSEEN,       /* they are not seen */
    DEEP_DROPPED,      /* the flag is taken out of the call */
    DEEP_APART,        /* it is loaded by dlmopen, with a libc of its own: its calls are not seen */
    DEEP_WAYS
};

/* Start of the arena. Chunk table and chunks follow at the stated offsets. */
/* Processes that help the companion count for the user's limit, too. A program that meets it asks for theirs. */
enum arena_room { ROOM_KEPT = 0, ROOM_WANTED, ROOM_GIVEN };

/* The companion has found that the process does nothing but handle its own samples: each thread stops its events. */
enum arena_halt { HALT_NONE = 0, HALT_ASKED };

struct arena_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* sizeof(struct arena_header) of the writer */
    uint64_t size_bytes;   /* of the memfd: the program maps exactly this */
    uint64_t chunk_table_offset;
    uint64_t chunk_data_offset; /* chunk i starts at chunk_data_offset + i * ARENA_CHUNK_BYTES */
    uint32_t chunk_limit;
    _Atomic uint32_t n_chunks; /* handed out so far (may exceed chunk_limit: then full) */
    _Atomic uint32_t state;    /* enum arena_state */
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t uid;
    uint64_t start_ns; /* CLOCK_REALTIME at registration */
    _Atomic uint64_t end_ns;
    _Atomic uint32_t exit_code; /* as passed to exit; only with state ENDED */
    _Atomic uint32_t n_threads; /* ids handed out, in the order in which threads are created */
    _Atomic uint32_t n_modules; /* ids handed out */
    _Atomic uint32_t rank;      /* MPI rank, 0 when there is none */
    uint32_t libhpcrun_module;  /* reference of libhpcrun.so's own arena_module */
    uint32_t trace;             /* 1: record traces */
    uint64_t min_bytes;         /* DATACENTRIC_MIN_BYTES */
    uint64_t sample_bytes;      /* Poisson sampling below it: mean bytes between samples, 0 = off */
    uint32_t n_events;
    uint32_t delay_sampling;               /* 1: wait for hpctoolkit_sampling_start() */
    uint64_t begin_ns, end_of_sampling_ns; /* CLOCK_MONOTONIC: sampling begins, and ends for good; 0: at once, never */
    uint32_t start_signal, stop_signal;    /* signals that start and stop it, 0 = none; when equal, in turn */
    uint32_t lifetime_s;                   /* the process gets SIGALRM after this time, 0 = never */
    _Atomic uint32_t is_sampling;          /* 1 while samples are taken */
    struct arena_event events[ARENA_EVENTS_MAX];
    uint64_t placeholders[PLACEHOLDER_MAX]; /* absolute address of each placeholder function */
    uint32_t trust_skid;                    /* 1: the +1 rule holds on this machine (skid self-test) */
    uint32_t page_bytes;
    _Atomic uint32_t is_replaced;    /* enum arena_exec */
    _Atomic uint32_t n_trace_chunks; /* handed out; no more than trace_chunk_limit, so that traces leave room */
    uint32_t trace_chunk_limit;
    _Atomic uint32_t n_children_lost;            /* children that are known not to have been measured */
    struct arena_child children[ARENA_CHILDREN]; /* taken out by the companion */
    char replaced_by[256];                       /* with is_replaced: the program as it was given to exec */
    char exe[ARENA_PATH_MAX];                    /* real path of the executable */
    char argv0[256];                             /* basename used in file names */
    char tables[ARENA_PATH_MAX];                 /* directory of the module-table cache */
    char open_tables[128];     /* root's directory that other users can read, for programs that change user; empty:
                                * none */
    char left[ARENA_PATH_MAX]; /* where the process leaves a copy of the arena when the companion has died */
    char claimed[512];         /* name of the log that a checkpoint has written, empty: none */
    /* allocation accounting of the whole process */
    _Atomic uint64_t n_blocks_recorded, bytes_recorded, n_blocks_live;
    _Atomic uint32_t n_unopened[ARENA_EVENTS_MAX]; /* threads on which the event could not be opened */
    _Atomic uint32_t n_on_timer[ARENA_EVENTS_MAX]; /* threads on which a timer stands in for it */
    _Atomic uint64_t n_retired_pending_max;        /* page-map retirements that waited at the same time */
    _Atomic uint64_t n_alloc_unrecorded[7];        /* by enum alloc_skip */
    _Atomic uint64_t n_python_lost;                /* blocks whose Python code there was no room to record */
    _Atomic uint64_t n_python_unfit; /* samples whose Python frames did not fit their stack, or had no room */
    _Atomic uint64_t mark_ns;        /* CLOCK_REALTIME of the last mark, 0 = none */
    _Atomic uint64_t n_region_faults[REGION_FAULTS];
    char allocator_owner[4][256]; /* who owns malloc, free, operator new, operator delete, when we do not */
    uint32_t has_small_sites;     /* 1: blocks below min_bytes are known by their sites */
    _Atomic uint32_t has_jitdump; /* 1 once jitdump is complete */
    char jitdump[ARENA_PATH_MAX]; /* the file in which the program describes code that it generates */
    _Atomic uint32_t log_len_bytes;
    char log[16384];            /* the runtime's messages, one per line */
    uint32_t n_homes;           /* memory nodes of the machine, counted up to the highest number; 0: one node only */
    _Atomic uint32_t pages;     /* first of all arena_pages */
    _Atomic int32_t home_errno; /* why the kernel did not say where pages are, 0 = it did */
    uint32_t lacks;             /* ARENA_LACKS_x: what the launcher has tried, and does not work on this machine */
    struct arena_extent extents[ARENA_EXTENTS]; /* by the companion */
    _Atomic uint32_t request_tail;              /* next slot to post */
    struct arena_request requests[ARENA_REQUESTS];
    uint64_t start_mono_ns;            /* CLOCK_MONOTONIC at start_ns */
    _Atomic uint32_t newest_trace_run; /* 1 + index of its first chunk, 0 = none */
    _Atomic uint64_t trace_sweep;  /* level of the log << ARENA_SWEEP_LEVEL_SHIFT | whether a run was claimed since it
                                    * began | 1 + index of the next run to be tried, 0 = none left */
    uint32_t watches_per_s;        /* times a second that each thread may watch a line; 0: it does not */
    _Atomic uint32_t n_watch_full; /* threads without watchpoints, because all are in use ... */
    _Atomic uint32_t n_watch_refused; /* ... or because the kernel refuses them: */
    _Atomic int32_t watch_errno;
    _Atomic uint32_t is_watch_released; /* 1: the program asked for breakpoints, and threads gave up theirs */
    _Atomic uint32_t room;              /* enum arena_room */
    uint64_t tick_ns;                   /* what an empty sample costs on this machine, kernel included; 0: not known */
    uint64_t test_sample_ns;            /* for tests: each sample takes so long */
    _Atomic uint32_t is_halted;         /* enum arena_halt */
    uint32_t halt_pad;
    _Atomic uint64_t unmeasured_ns;     /* CPU time of threads that are not measured; 0: none that is certain */
    uint32_t deepbind;                  /* enum arena_deep: what the launcher wants done */
    _Atomic uint32_t n_deep[DEEP_WAYS]; /* libraries that are loaded so */
    char deep_name[DEEP_WAYS][256];     /* the first of each, as given to dlopen or dlmopen */
    _Atomic uint64_t n_freed_unseen;    /* blocks in whose place another one appeared though no free was seen */
    uint64_t debug;                     /* levels of HPCRUN_DEBUG, by domain */
    _Atomic uint32_t debug_run;         /* 1 + index of the chunk that begins the run for its lines, 0 = none yet */
    _Atomic uint32_t n_debug_runs;      /* begun so far; at most ARENA_DEBUG_RUNS */
    _Atomic uint32_t n_debug_lost;      /* lines that there was no room for */
    _Atomic uint32_t slow_most;         /* the largest slow_least that there was */
    /* What the owner asks for from outside, by the companion; the process reads it with each sample. */
    _Atomic uint32_t is_paused;       /* 1: no samples are taken */
    _Atomic uint32_t slow_least;      /* clocks tick at most 1/2^this as often as the plan says */
    _Atomic uint64_t paused_ns;       /* how long pauses have lasted that are over, by the clock ... */
    _Atomic uint64_t paused_since_ns; /* ... and CLOCK_MONOTONIC when the one that lasts began, 0: there is none */
    _Atomic uint32_t phase;           /* 1 + index of the phase that has begun last, 0: none */
    _Atomic uint32_t n_phases;        /* named so far */
    char phases[ARENA_PHASES][ARENA_PHASE_BYTES];
    uint64_t user_ticks_before, system_ticks_before; /* CPU time of the process before it came, in clock ticks */
    uint64_t raise_most;           /* where blocks come and go too fast, those of malloc below so many bytes may become
                                    * small ones; 0: none */
    _Atomic uint64_t raised_bytes; /* those below so many bytes have; 0: none */
};

/* How long the pause that lasts at now_ns of CLOCK_MONOTONIC has lasted; 0: there is none.  ctx: any */
static inline uint64_t arena_pause_ns(const struct arena_header *header, uint64_t now_ns)
{
    uint64_t since_ns = atomic_load_explicit(&header->paused_since_ns, memory_order_relaxed);
    return since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
}

#define ARENA_RAISE_BYTES 16384 /* raise_most where it is wanted: a note of a larger block costs as much as a record */

#define PHASE_PREFIX "phase: " /* of the names of regions that are phases */

#define ARENA_LACKS_PERF 1u        /* no event of perf is opened */
#define ARENA_LACKS_BREAKPOINTS 2u /* they open, but count nothing; tried where watches_per_s is not 0 */

/* Samples of a lower level are not in the log.  ctx: any */
static inline unsigned arena_trace_min_level(const struct arena_header *header)
{
    uint64_t sweep = __atomic_load_n((const uint64_t *)&header->trace_sweep, __ATOMIC_ACQUIRE);
    return (unsigned)(sweep >> ARENA_SWEEP_LEVEL_SHIFT) & (ARENA_TRACE_LEVELS - 1);
}

/* Why memory of size_bytes is no arena that can be read; NULL: it is one, in which the chunks' table and data begin.
 * ctx: any */
static inline const char *arena_fault(const struct arena_header *header, size_t size_bytes)
{
    if (size_bytes < sizeof *header || memcmp(header->magic, ARENA_MAGIC, sizeof header->magic) != 0)
        return "it is not an arena";
    if (header->version != ARENA_VERSION || header->header_bytes != sizeof *header)
        return "it is an arena of another version";
    if (header->chunk_table_offset % ARENA_UNIT || header->chunk_data_offset % ARENA_UNIT ||
        header->chunk_table_offset > size_bytes || header->chunk_data_offset > size_bytes)
        return "its chunks lie outside of it";
    return NULL;
}

/* Chunks of such an arena that were handed out and lie inside the memory, table entry and data.  ctx: any */
static inline uint32_t arena_count_chunks(const struct arena_header *header, size_t size_bytes)
{
    uint64_t n = __atomic_load_n((const uint32_t *)&header->n_chunks, __ATOMIC_ACQUIRE);
    uint64_t n_entries = (size_bytes - header->chunk_table_offset) / sizeof(struct arena_chunk);
    uint64_t n_data = (size_bytes - header->chunk_data_offset) / ARENA_CHUNK_BYTES;
    n = n < header->chunk_limit ? n : header->chunk_limit;
    n = n < n_entries ? n : n_entries;
    return (uint32_t)(n < n_data ? n : n_data);
}

/* Address of a record; base is where the arena is mapped. ref must not be 0. */
static inline void *arena_at(const void *base, uint32_t ref)
{
    return (char *)(uintptr_t)base + (uint64_t)ref * ARENA_UNIT;
}

/* Reference of a record that lies inside the arena mapped at base; inverse of arena_at.  ctx: any */
static inline uint32_t arena_ref(const void *base, const void *record)
{
    return (uint32_t)((uint64_t)((const char *)record - (const char *)base) / ARENA_UNIT);
}

/* --- marks --- */

/* The mark: which allocations are live at a moment that the user or the program chooses. It is noted in the arena
 * itself, so that the measurement of a killed process has it too. Any context: plain loads and stores. */

/* Notes in a hit of allocations or of frees what it has counted so far.  ctx: any */
static inline void arena_mark_hit(struct arena_hit *hit)
{
    uint64_t n_blocks = atomic_load_explicit(&hit->count, memory_order_relaxed);
    uint64_t n_bytes = atomic_load_explicit(&hit->weight, memory_order_relaxed);
    atomic_store_explicit(&hit->marked_blocks, n_blocks, memory_order_relaxed);
    atomic_store_explicit(&hit->marked_bytes, n_bytes, memory_order_relaxed);
}

/* Marks all hits in n_chunks chunks; the caller has checked that their table and data are there.  ctx: any */
static inline void arena_mark_chunks(const struct arena_chunk *chunks, char *data, uint32_t n_chunks)
{
    for (uint32_t i = 0; i < n_chunks; i++) {
        uint32_t used_bytes = arena_run_used(&chunks[i], n_chunks - i);
        struct arena_hit *hits = (struct arena_hit *)(void *)(data + (uint64_t)i * ARENA_CHUNK_BYTES);
        if (chunks[i].kind != ARENA_HITS)
            continue;
        for (uint32_t k = 0; k < used_bytes / sizeof *hits; k++)
            if (hits[k].event == HIT_EVENT_ALLOC || hits[k].event == HIT_EVENT_FREE)
                arena_mark_hit(&hits[k]);
    }
}

/* Marks all hits of the arena that starts at header; t_ns: now, CLOCK_REALTIME. A later mark replaces an earlier one.
 * Allocations made meanwhile count if their path is marked after them.  ctx: any */
static inline void arena_mark_live(struct arena_header *header, uint64_t t_ns)
{
    struct arena_chunk *chunks = (struct arena_chunk *)(void *)((char *)header + header->chunk_table_offset);
    uint32_t n_chunks = atomic_load_explicit(&header->n_chunks, memory_order_acquire);
    n_chunks = n_chunks < header->chunk_limit ? n_chunks : header->chunk_limit;
    arena_mark_chunks(chunks, (char *)header + header->chunk_data_offset, n_chunks);
    atomic_store_explicit(&header->mark_ns, t_ns, memory_order_release);
}

/* --- the protocol of the companion --- */

/* What the runtime and the companion process say to each other: SOCK_SEQPACKET datagrams over a connection of its own
 * for each conversation. Plain structs, native byte order, same machine and build.
 *
 * The way to the companion is a descriptor that all processes inherit: one end of a socket pair, over which a process
 * sends COMPANION_KNOCK together with one end of a fresh socket pair. The kernel says who sent it. Where the descriptor
 * is gone, because the program has closed all of its descriptors, or where the companion has none left to receive that
 * end with, the process connects to an abstract socket, which exists in the launcher's network namespace only.
 * COMPANION_ENV names both. A process that cannot hold the conversation, or use its result, says so over the way, which
 * takes no descriptor.
 *
 * A process opens a connection, sends HELLO and receives WELCOME with three descriptors (SCM_RIGHTS, in this order):
 * its arena, the recipe store (read-only use), and a pipe to write to after posting a request in the arena. It then
 * closes the connection. At its end it opens another, sends END and waits up to COMPANION_END_WAIT_MS for WRITTEN. The
 * companion watches the process itself with a pidfd, so a killed process loses nothing, and a second HELLO from the
 * same pid (exec) or END finishes the earlier arena of that pid. */

/* Value: NAME or NAME,FD,DEVICE,INODE: the abstract socket's name without the leading NUL; the inherited descriptor and
 * what fstat must say of it, in decimal. */
#define COMPANION_ENV "HPCRUN_COMPANION"
/* What the launcher had used before it became the program, whose clocks go on from there. Value:
 * ,PID,CPU,USER,SYSTEM,FAULTS: its pid, the CPU time of its thread, the two parts of that as the kernel splits it (ns),
 * its page faults. */
#define LAUNCHER_USAGE_ENV "HPCRUN_LAUNCHER_USAGE"
#define COMPANION_FD 940            /* lowest number of the inherited descriptor: away from what programs use */
#define COMPANION_FD_AWAY 256       /* where the limit leaves no such number; below this one there is none */
#define COMPANION_KNOCK 0x4c4f434bu /* uint32_t: with one descriptor, a connection */
#define COMPANION_UNFIT 0x4c4f4355u /* uint32_t, and an errno as int32_t: the sender cannot be measured */
#define COMPANION_PREFIX "locus-"   /* of the names of these sockets */
#define COMPANION_MAGIC 0x4c4f4331u
#define COMPANION_VERSION 4
#define COMPANION_END_WAIT_MS 5000
/* What a process needs to be measured: free descriptors for a conversation, and room for memory, of which we take an
 * eighth, with the reserve. */
#define COMPANION_FDS 4
#define START_ROOM_BYTES ((uint64_t)256 << 20)
#define TIMER_PART 4 /* of the signals that may be pending (RLIMIT_SIGPENDING), one in so many may be a timer's */

enum companion_kind {
    COMPANION_HELLO = 1,
    COMPANION_WELCOME = 2,
    COMPANION_REFUSED = 3, /* text: why; the program then runs without profiling */
    COMPANION_END = 4,
    COMPANION_WRITTEN = 5,
    COMPANION_MODULE = 6, /* text: path; blocks until the module's table is in the cache, answer WRITTEN */
    COMPANION_FORK = 7, /* like HELLO, from a child of fork, which copies what it needs of its parent's arena itself */
    COMPANION_STATUS = 8, /* exit_code: a process id. Answered by STATUS about the process with the next higher one:
                           * pid, size_bytes, text: measurement directory, and its arena, read-only; after the last
                           * process with pid 0 and without an arena. Root may ask too */
    COMPANION_CONTROL = 9 /* exit_code: a process id, 0: all; text: pause, resume, rate N, mark NAME, snapshot. Answered
                           * by WRITTEN with what has happened, or by REFUSED with why not, and exit_code
                           * COMPANION_MISUSED where the text is none of these. For the owner alone */
};
#define COMPANION_MISUSED 2

struct companion_message {
    uint32_t magic;
    uint32_t version;
    uint32_t kind; /* enum companion_kind */
    uint32_t pid;
    int32_t rank;          /* HELLO, FORK, END: MPI rank or -1 */
    int32_t exit_code;     /* END, STATUS; HELLO: 1 when the reason in text is against samples only */
    uint64_t size_bytes;   /* WELCOME: of the arena; HELLO: largest arena wanted, 0 = default (RLIMIT_AS); FORK: of
                            * the parent's arena */
    uint64_t recipe_bytes; /* WELCOME: size of the recipe store; FORK: of the parent's arena in use */
    char text[4096];       /* REFUSED, MODULE; HELLO: why the process should not be measured; else empty */
};

#endif
