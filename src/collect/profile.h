/* SPDX-License-Identifier: BSD-3-Clause */
/* A process on its way from the arena to its files: the columns and threads that were recorded, and for the one thread
 * that is being written its tree and its variables. For the collector's files only. Ordinary code. */
#ifndef LOCUS_COLLECT_PROFILE_H
#define LOCUS_COLLECT_PROFILE_H

#include "base/vec.h"
#include "collect/collect.h"
#include "collect/view.h"
#include "fmt/events.h"
#include "fmt/hpcrun.h"
#include "fmt/objects.h"

/* --- the tree (tree.c) --- */

#define TREE_NONE UINT32_MAX
#define TREE_ROOT 0u
#define TREE_PARTIAL 1u

struct profile_node {
    uint32_t parent; /* TREE_NONE for the root */
    uint16_t module;
    uint16_t type; /* enum hpcrun_node_type */
    uint64_t ip;
    uint32_t variable; /* index + 1 of the variable that it declares */
    uint32_t row;      /* index + 1 of its values; 0: none, as for most nodes that only lead to others */
    bool has_child, is_retained;
};

struct tree {
    struct profile_node *nodes; /* [n_nodes], parents before children */
    size_t n_nodes, cap_nodes;
    uint64_t *values; /* [n_rows][n_metrics] sums in the events' raw units */
    size_t n_rows, cap_values, n_metrics;
    struct slots slots; /* nodes by (parent, module, ip) */
    bool failed;        /* out of memory: the tree is not complete */
};

/* Begins a tree with its root and the root of partial paths. */
void tree_init(struct tree *tree, size_t n_metrics);
void tree_fini(struct tree *tree);

/* The child with this key, added when new; type is OR-ed to its type. TREE_NONE when out of memory, or when parent is
 * TREE_NONE. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint16_t module, uint64_t ip, uint32_t type);

/* Adds value to a metric of the node; does nothing for TREE_NONE or metric < 0. */
void tree_add(struct tree *tree, uint32_t node, int metric, uint64_t value);

/* The node's sums [n_metrics]; NULL when all are 0. Borrowed until the next tree_add. */
const uint64_t *tree_values(const struct tree *tree, uint32_t node);

/* --- the process (collect.c) --- */

enum column_kind {
    COLUMN_SIZE,
    COLUMN_COUNT,
    COLUMN_WEIGHT,
    COLUMN_ALLOCATED,
    COLUMN_FREED,
    COLUMN_LEAKED,
    COLUMN_MARKED,
    COLUMN_MEMORY,        /* samples with one metric of sampling/abi/data-src.h */
    COLUMN_LATENCY,       /* their cycles */
    COLUMN_REMOTE_LATENCY /* the cycles of those that another node served */
};

#define COLUMNS_MAX (ARENA_EVENTS_MAX + 5 + MEM_METRICS + 2)

/* A metric of the profiles. */
struct column {
    enum column_kind kind;
    uint32_t event;
    uint32_t events;                 /* one bit for each event that adds to it */
    char name[64], description[192]; /* copies: the arena may hold anything */
    enum hpcrun_value_format format;
    uint64_t period; /* readers multiply by it; a thread whose events were multiplexed states a longer one */
    double scale;    /* value written = raw sum * scale */
    bool is_frequency;
    uint64_t n_samples; /* of columns that belong to no event */
};

/* What did not fit into context->max_bytes. */
struct left_out {
    uint64_t n_nodes;     /* their callers have their values */
    uint64_t n_variables; /* their group has their values */
    uint64_t n_lists;     /* variables without their CPUs, stack offsets and latencies */
    uint64_t n_trace_records;
    uint64_t n_threads;
};

struct collected_process {
    const struct view *view;
    const struct collect_context *context;
    struct names_file name;
    struct column columns[COLUMNS_MAX];
    size_t n_columns;
    int column_of_event[ARENA_EVENTS_MAX];                            /* -1: nothing of it was recorded */
    int column_of_metric[MEM_METRICS];                                /* -1: no sample has it */
    int latency_column, remote_latency_column;                        /* -1: none */
    int size_column;                                                  /* -1: none */
    int allocated_column, freed_column, leaked_column, marked_column; /* -1: none */
    bool is_skid_json;                                                /* context->skid_json is valid JSON */
    bool is_data_centric;                                             /* some event yields addresses */
    bool has_variables;                                               /* ... or allocations are to be counted */
    int first_address_event;                                          /* -1: none */
    uint64_t n_samples, n_blocks;
    uint64_t n_blocks_live, bytes_live; /* recorded blocks that were not freed so far, or by the end of the process */
    uint64_t bytes_allocated, bytes_freed, bytes_marked;
    uint32_t *threads; /* [n_threads] references of arena_thread */
    size_t n_threads;
    uint32_t *mmap_nodes; /* [n_mmap_nodes] sorted: allocation nodes that stand for mappings */
    size_t n_mmap_nodes;
    uint64_t *sized; /* [n_sized] keys of the static variables whose size an earlier thread's file states */
    size_t n_sized, cap_sized;
    uint32_t taken_extents; /* one bit for each arena_extent that a thread's file has */
    int32_t next_id;        /* of the next profile node */
    size_t n_files;
    size_t n_written_threads; /* the first ones of threads; the others are left out */
    struct left_out left_out;
    uint64_t *logged; /* [n_logged] sorted: reference of the thread << 32 | that of an arena_trace */
    size_t n_logged, cap_logged;
    uint64_t rest_bytes;          /* what is left of context->max_bytes */
    uint64_t rest_recorded_bytes; /* in the arena, of the threads that are still to be written */
};

/* Appends a copy of column under a name; returns its index. */
int process_add_column(struct collected_process *process, const struct column *column, const char *name,
                       const char *description);

/* Rounds a value to the nearest whole number; below 0 it becomes 0, beyond 64 bits UINT64_MAX. */
static inline uint64_t collect_whole(double value)
{
    if (!(value > 0))
        return 0;
    return value < 0x1p63 ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

/* How often the threads of a process watched cache lines, and what kept them from it (--verify-sharing). */
struct watch_counts {
    uint64_t n_watches, n_lost; /* n_lost: results for which there was no room */
    uint32_t n_full, n_refused; /* threads without breakpoints: all are in use; the kernel refuses them, because of */
    int error;                  /* ... this errno */
    bool is_released;           /* the program asked for breakpoints, and got them */
};

/* log.c: what the arena says of that. */
void process_count_watches(const struct collected_process *process, struct watch_counts *counts);

/* --- one thread (tree.c, variables.c) --- */

/* A frame as the arena has it: its node, and where it is in memory. */
struct raw_frame {
    uint32_t ref; /* node */
    uint32_t module;
    uint64_t ip;
};

struct path {
    struct raw_frame *frames; /* [n] innermost first, without the root and the root of partial paths */
    size_t n, capacity;
    bool is_partial;
};

#define KNOWN_PATHS 65536u /* power of two */

/* The tree node for the arena's node ref below base: paths that follow each other share most of their callers. */
struct known_path {
    uint32_t base, ref, node; /* ref 0: nothing */
};

/* What a variable key stands for in this thread's tree. */
struct declaration {
    uint64_t key;
    uint32_t base;     /* node below which access paths go; never TREE_NONE */
    uint32_t variable; /* index, TREE_NONE when there is none */
};

struct access_entry;
struct line_set;

struct collected_variable {
    struct objects_variable row; /* row.node: index in the tree until the file is written */
    size_t cap_cpus, cap_homes, cap_offsets, cap_samples, cap_latencies, cap_accesses, cap_touches, cap_meetings;
};

/* How the counts of one event become what they stand for, in one thread. */
struct weighing {
    double ratio;  /* time enabled / time running, 1 when it was never switched out */
    uint64_t unit; /* what one counted sample is worth: period * ratio, rounded; 1 when samples bring weights */
};

/* A column as one thread has it. */
struct thread_column {
    uint64_t period;
    double scale;
    bool is_multiplexed;
    uint64_t n_samples, total; /* of the ordinary tree; total in raw units */
};

struct collected_thread {
    struct collected_process *process;
    const struct arena_thread *record;
    uint32_t ref;
    struct tree tree;
    struct weighing weighings[ARENA_EVENTS_MAX];
    struct thread_column columns[COLUMNS_MAX];
    struct strtab modules;      /* paths of the load map; the id is index + 1 */
    struct path path, declared; /* scratch */
    struct known_path *known;   /* [KNOWN_PATHS] paths entered lately, NULL until the first */
    uint32_t placed_ref;        /* module reference that was placed last, and the result: */
    uint16_t placed_module;
    uint64_t placed_bias;
    bool is_placed_region;            /* that module is the one of regions */
    uint16_t kernel_module;           /* load-map id of the kernel, 0 until one of its frames is placed */
    uint16_t jit_module;              /* the same for generated code that has names */
    struct objects_function *regions; /* [n_regions] that were placed, by address; names are borrowed */
    size_t n_regions, cap_regions;
    uint32_t data_root;               /* TREE_NONE until the data-centric tree begins */
    struct declaration *declarations; /* [n_declarations] */
    size_t n_declarations, cap_declarations;
    struct slots declaration_slots;       /* by key */
    struct collected_variable *variables; /* [n_variables] */
    size_t n_variables, cap_variables;
    struct access_entry *accesses; /* [n_accesses] of all variables */
    size_t n_accesses, cap_accesses;
    struct slots access_slots;  /* by all members that make an access a different one */
    struct line_set *line_sets; /* [n_line_sets] lines of the accesses whose pattern calls for them */
    size_t n_line_sets, cap_line_sets;
    uint64_t trace_min_ns, trace_max_ns;
};

/* What one hit adds to the columns of its nodes. */
struct hit_values {
    size_t n;
    int columns[MEM_METRICS + 3];
    uint64_t values[MEM_METRICS + 3];
};

/* Sets the thread's weighings and columns from the times its events were enabled and running. */
void thread_weigh(struct collected_thread *thread);

/* Fills thread->path (or another) with the call path of a node; false when the reference names no node. */
bool path_of(const struct view *view, uint32_t ref, enum arena_kind kind, struct path *path);

/* Enters the path below a node; last_type is OR-ed to the type of its last node, which is returned. */
uint32_t path_insert(struct collected_thread *thread, const struct path *path, uint32_t base, uint32_t last_type);

/* Load-map id of a path, 0 for NULL; and the id and address in the module of a run-time address. */
uint16_t thread_module_id(struct collected_thread *thread, const char *path);
void thread_place(struct collected_thread *thread, uint32_t module_ref, uint64_t address, uint16_t *module,
                  uint64_t *ip);

/* The node of a placeholder below parent. */
uint32_t thread_placeholder(struct collected_thread *thread, uint32_t parent, unsigned placeholder, uint32_t type);

/* Name of a placeholder function. */
const char *placeholder_name(unsigned placeholder);

/* Sums the hits of one sample-tree node, the samples by CPU, and the latency histograms. */
void thread_take_node(struct collected_thread *thread, uint32_t ref, const struct arena_node *node);
void thread_take_places(struct collected_thread *thread);
/* The memory nodes of the samples' pages, and of those of large variables (homes.c). After all that declares variables.
 */
void thread_take_homes(struct collected_thread *thread);
void thread_take_sketches(struct collected_thread *thread);

/* Sums the reach of the thread's samples, variable by variable (offsets.c). */
void thread_take_reaches(struct collected_thread *thread);

/* Adds the thread's sides of where threads met at cache lines to their variables (offsets.c). */
void thread_take_meetings(struct collected_thread *thread);

/* --- allocations and variables (variables.c) --- */

/* Sums the blocks of the whole process, path by path: n_blocks to bytes_marked of struct collected_process. */
void process_sum_blocks(struct collected_process *process);

/* Adds the column of sizes, and those of bytes allocated, freed, leaked and live at the mark. */
void process_add_size_column(struct collected_process *process);
void process_add_leak_columns(struct collected_process *process);

/* Sums the allocations of one allocation-tree node. */
void thread_take_allocations(struct collected_thread *thread, uint32_t ref, const struct arena_node *node);

/* The declaration of the variable that a hit names. class matters for VAR_NONE only. Borrowed until the next call; NULL
 * when out of memory. */
const struct declaration *thread_declare(struct collected_thread *thread, uint64_t var, enum hit_class class);

/* The same for a variable that has been declared before; NULL: it has not. */
const struct declaration *thread_declared(const struct collected_thread *thread, uint64_t var);

/* Remembers the region whose name is the arena's string ref, and returns its address in the pseudo module of regions:
 * equal names have the same one in all processes. */
uint64_t thread_place_region(struct collected_thread *thread, uint64_t ref);

/* Writes the side file, of at most max_bytes; *n_bytes becomes its size.  err: ERR_IO, ERR_MEMORY */
int thread_write_objects(const struct collected_thread *thread, const char *path, uint64_t max_bytes, uint64_t *n_bytes,
                         struct error *err);

/* Appends messages that name the allocators of the process. */
void process_write_allocators(const struct collected_process *process, struct buf *out);

/* --- offsets and lines of accesses (offsets.c) --- */

/* Adds a hit of thread->path to the accesses of its variable. */
void thread_describe_offsets(struct collected_thread *thread, uint32_t variable, const struct arena_hit *hit);

/* Adds a hit of page faults by the path that ends at node, n_faults of them, to those of its variable. */
void thread_describe_touch(struct collected_thread *thread, uint32_t variable, const struct arena_hit *hit,
                           uint32_t node, uint64_t n_faults);

/* Brings all lists of offsets to the size that files hold, and counts the lines. */
void thread_finish_offsets(struct collected_thread *thread);

/* Frees what was kept until thread_finish_offsets. */
void thread_free_lines(struct collected_thread *thread);

/* --- the log of samples (events.c) --- */

/* Finds the records of the log: process->logged. False when out of memory. */
bool process_list_logged(struct collected_process *process);

/* Makes the thread's log, in the order of time. Until it is written, its accesses name nodes of the tree by index, and
 * TREE_NONE where there is no variable. Their call paths are marked to keep their ids. False when out of memory. */
bool thread_build_log(struct collected_thread *thread, struct events_file *log);

/* Bytes of a thread's log and trace. */
uint64_t thread_log_bytes(const struct collected_thread *thread, const struct events_file *log);

/* Leaves out every second sample until both files have at most max_bytes, or are empty. */
void thread_bound_log(struct collected_thread *thread, struct events_file *log, uint64_t max_bytes);

/* Writes a log with its nodes' ids, and the trace that is made of it.  err: ERR_IO, ERR_MEMORY */
int thread_write_log(const struct collected_thread *thread, struct events_file *log, const char *log_path,
                     const char *trace_path, struct error *err);

/* --- names and sizes (view.c) --- */

/* The functions of the kernel, or of generated code, on the thread's paths, by address; names are borrowed. False when
 * out of memory. */
bool thread_kernel_functions(const struct collected_thread *thread, struct objects_function **functions,
                             size_t *n_functions);
bool thread_jit_functions(const struct collected_thread *thread, struct objects_function **functions,
                          size_t *n_functions);

/* Decides which threads are written, when the size of all files is limited. */
void process_bound(struct collected_process *process);

/* How many bytes the files of the next thread may take; process_spend subtracts what they took. */
uint64_t process_share(struct collected_process *process, uint32_t thread_ref);
void process_spend(struct collected_process *process, uint64_t n_bytes);

/* Reduces the thread's tree to at most max_nodes; all sums stay. err: ERR_MEMORY */
int thread_bound_tree(struct collected_thread *thread, struct events_file *log, size_t max_nodes, struct error *err);

/* Takes something out of a side file that is too large; false when nothing is left to take. *n_details: 0 at first. */
bool process_bound_side(struct collected_process *process, struct objects_file *file, uint64_t *n_details);

/* --- files (collect.c, log.c) --- */

/* The profile's id of a tree node (positive, whether it is a leaf or not). */
int32_t thread_node_id(const struct collected_thread *thread, uint32_t node);

/* Frees what the variable's row points to. */
void variable_fini(struct collected_variable *variable);

/* Writes the process's log over the claimed one.  err: ERR_IO, ERR_MEMORY */
int process_write_log(struct collected_process *process, struct error *err);

#endif
