/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the collector (collect.h): the checked view of an arena, the tree under construction, and what is known of
 * the process and of the thread that is being written. Nobody outside collect*.c includes it. */
#ifndef LOCUS_COLLECT_COLLECT_INTERNAL_H
#define LOCUS_COLLECT_COLLECT_INTERNAL_H

#include "arena/arena.h"
#include "base/vec.h"
#include "collect/collect.h"
#include "fmt/hpcrun.h"
#include "fmt/objects.h"

/* The nearest whole number of a value; less than nothing becomes 0, what no word holds the largest. */
static inline uint64_t collect_whole(double value)
{
    if (!(value > 0))
        return 0;
    return value < 0x1p63 ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

/* --- view.c: the arena, checked --- */

struct view_chunk {
    uint32_t index; /* position in the arena */
    uint32_t thread;
    uint32_t used_bytes; /* of the run that begins here, as published when the view was made: later records do not
                          * exist for us */
    uint16_t kind;
    uint16_t behind; /* chunks since the first one of the run */
};

struct view_module {
    uint32_t ref;
    uint32_t id;
    const char *path; /* in the arena */
    uint64_t bias, table_id, inode;
};

struct view {
    const char *base;
    const struct arena_header *header;
    uint64_t data_offset;
    uint32_t n_events;
    struct view_chunk *chunks; /* [n_chunks] by position */
    struct view_chunk *sorted; /* [n_sorted] runs by thread, kind, position */
    uint32_t n_chunks, n_sorted;
    struct view_module *modules; /* [n_modules] by ref */
    size_t n_modules;
};

/* Makes a view of a mapped arena.  err: ERR_FORMAT, ERR_MEMORY */
int view_open(struct view *view, const void *arena, size_t size_bytes, struct error *err);
void view_close(struct view *view);

/* The record that ref names when it lies wholly in the published part of a run of that kind, else NULL. */
const void *view_record(const struct view *view, uint32_t ref, enum arena_kind kind, size_t len_bytes);

/* A string record's text when it is whole, else NULL. */
const char *view_string(const struct view *view, uint32_t ref);

/* The module of a reference, or of an id; NULL when there is none. */
const struct view_module *view_module_at(const struct view *view, uint32_t ref);
const struct view_module *view_module_with_id(const struct view *view, uint32_t id);

/* Walks the records of one thread and kind (thread 0: of all threads). Start with all zero but the first three. */
struct record_walk {
    enum arena_kind kind;
    uint32_t thread;
    uint32_t record_bytes;
    uint32_t chunk, offset; /* position */
    uint32_t ref;           /* of the record that was returned */
};

/* The next record, complete as published; NULL at the end. */
const void *view_next(const struct view *view, struct record_walk *walk);

/* Copy of the hit at ref, which must be older than newer (0: no condition); false at the end of the list. */
bool view_hit(const struct view *view, uint32_t ref, uint32_t newer, struct arena_hit *hit);

/* What a variable of VAR_SMALL is: VAR_HEAP with the call path of the site, as far as it is known by now. Where the
 * record is broken an unknown small block, and *site is NULL. */
uint64_t view_heap_of_site(const struct view *view, uint64_t var, const struct arena_site **site);

/* --- tree.c: the profile's tree --- */

#define TREE_NONE UINT32_MAX
#define TREE_ROOT 0u
#define TREE_PARTIAL 1u

struct profile_node {
    uint32_t parent; /* TREE_NONE for the root */
    uint16_t module;
    uint16_t type; /* enum hpcrun_node_type */
    uint64_t ip;
    uint32_t variable; /* index + 1 of the variable that it declares */
    uint32_t row;      /* index + 1 of its values; 0: none, as most nodes that only lead to others */
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

/* The child with this key, added when new; type is OR-ed to its type. TREE_NONE when out of memory or parent is it. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint16_t module, uint64_t ip, uint32_t type);

/* Adds value to a metric of the node; does nothing for TREE_NONE or metric < 0. */
void tree_add(struct tree *tree, uint32_t node, int metric, uint64_t value);

/* The node's sums [n_metrics]; NULL when all are 0. Borrowed until the next tree_add. */
const uint64_t *tree_values(const struct tree *tree, uint32_t node);

/* --- collect.c: what all threads share --- */

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

struct trace_file;

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
    uint64_t n_nodes;     /* whose values their callers have */
    uint64_t n_variables; /* whose values their group has */
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
    bool is_data_centric;                                             /* some event yields addresses */
    bool has_variables;                                               /* ... or allocations are to be counted */
    int first_address_event;                                          /* -1: none */
    uint64_t n_samples, n_blocks;
    uint64_t n_blocks_live, bytes_live; /* of the blocks recorded: not freed so far, or at the end of the process */
    uint64_t bytes_allocated, bytes_freed, bytes_marked;
    uint32_t *threads; /* [n_threads] references of arena_thread */
    size_t n_threads;
    uint32_t *mmap_nodes; /* [n_mmap_nodes] sorted: allocation nodes that stand for mappings */
    size_t n_mmap_nodes;
    uint64_t *sized; /* [n_sized] keys of the static variables whose size an earlier thread's file states */
    size_t n_sized, cap_sized;
    int32_t next_id; /* of the next profile node */
    size_t n_files;
    size_t n_written_threads; /* the first ones of threads; the others are left out */
    struct left_out left_out;
    uint64_t rest_bytes;          /* of context->max_bytes */
    uint64_t rest_recorded_bytes; /* in the arena, of the threads that are still to be written */
};

/* Appends a copy of column under a name; returns its index. */
int process_add_column(struct collected_process *process, const struct column *column, const char *name,
                       const char *description);

/* --- tree.c and variables.c: one thread --- */

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

/* The tree node for the arena's node ref below base; callers of one path are mostly those of the next ones. */
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
    size_t cap_cpus, cap_offsets, cap_samples, cap_latencies, cap_accesses;
};

/* How the counts of one event are brought to what they stand for, in one thread. */
struct weighing {
    double ratio;  /* time enabled / time running, 1 when it was never switched out */
    uint64_t unit; /* what one counted sample is worth: period * ratio, rounded; 1 when samples bring weights */
};

/* What becomes of a column in one thread. */
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
    uint32_t placed_ref;        /* module reference that was placed last, and what came of it */
    uint16_t placed_module;
    uint64_t placed_bias;
    bool is_placed_region;            /* that module is the one of regions */
    uint16_t kernel_module;           /* load-map id of the kernel, 0 until one of its frames is placed */
    uint16_t jit_module;              /* the same of generated code that has names */
    struct objects_function *regions; /* [n_regions] that were placed, by address; names are borrowed */
    size_t n_regions, cap_regions;
    uint32_t data_root;               /* TREE_NONE until the data-centric tree begins */
    struct declaration *declarations; /* [n_declarations] */
    size_t n_declarations, cap_declarations;
    struct slots declaration_slots;       /* by key */
    struct collected_variable *variables; /* [n_variables] */
    size_t n_variables, cap_variables;
    struct access_entry *accesses; /* [n_accesses] those of all variables */
    size_t n_accesses, cap_accesses;
    struct slots access_slots;  /* by what they are of */
    struct line_set *line_sets; /* [n_line_sets] the lines of the accesses that call for them */
    size_t n_line_sets, cap_line_sets;
    uint64_t trace_min_ns, trace_max_ns;
};

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

/* The declaration of the variable that a hit names. class matters for VAR_NONE only. Borrowed until the next call; NULL
 * when out of memory. */
const struct declaration *thread_declare(struct collected_thread *thread, uint64_t var, enum hit_class class);

/* Sums the hits of one sample-tree node, and the records of places. */
void thread_take_node(struct collected_thread *thread, uint32_t ref, const struct arena_node *node);
void thread_take_places(struct collected_thread *thread);

/* --- variables.c --- */

/* Sums the blocks of the whole process, path by path: n_blocks to bytes_marked of struct collected_process. */
void process_sum_blocks(struct collected_process *process);

/* Adds the column of sizes, and those of bytes allocated, freed, leaked and live at the mark. */
void process_add_size_column(struct collected_process *process);
void process_add_leak_columns(struct collected_process *process);

/* Sums the allocations of one allocation-tree node. */
void thread_take_allocations(struct collected_thread *thread, uint32_t ref, const struct arena_node *node);

/* --- tree.c --- */

/* What one hit adds to the columns of its nodes. */
struct hit_values {
    size_t n;
    int columns[MEM_METRICS + 3];
    uint64_t values[MEM_METRICS + 3];
};

/* Sets the thread's weighings and columns from the times its events were enabled and running. */
void thread_weigh(struct collected_thread *thread);

/* --- tree.c --- */

/* Adds the thread's latency histograms to the variables. */
void thread_take_sketches(struct collected_thread *thread);

/* --- offsets.c --- */

/* Adds a hit of thread->path to the accesses of its variable. */
void thread_describe_offsets(struct collected_thread *thread, uint32_t variable, const struct arena_hit *hit);

/* Brings all lists of offsets to the size that files hold, and counts the lines. */
void thread_finish_offsets(struct collected_thread *thread);

/* Frees what was kept until thread_finish_offsets. */
void thread_free_lines(struct collected_thread *thread);

/* --- view.c --- */

/* The functions of the kernel, or of generated code, on the thread's paths, by address; names are borrowed. False when
 * out of memory. */
bool thread_kernel_functions(const struct collected_thread *thread, struct objects_function **functions,
                             size_t *n_functions);
bool thread_jit_functions(const struct collected_thread *thread, struct objects_function **functions,
                          size_t *n_functions);

/* --- view.c --- */

/* Decides which threads are written, when the size of all files is limited. */
void process_bound(struct collected_process *process);

/* What the files of the next thread may take; process_spend says what they did. */
uint64_t process_share(struct collected_process *process, uint32_t thread_ref);
void process_spend(struct collected_process *process, uint64_t n_bytes);

/* Makes the thread's tree one of at most max_nodes; all sums stay. err: ERR_MEMORY */
int thread_bound_tree(struct collected_thread *thread, struct trace_file *trace, size_t max_nodes, struct error *err);

/* Cuts off the end of a trace. */
void thread_bound_trace(struct collected_thread *thread, struct trace_file *trace, size_t max_records);

/* Takes something out of a side file that is too large; false when nothing is left to take. *n_details: 0 at first. */
bool process_bound_side(struct collected_process *process, struct objects_file *file, uint64_t *n_details);

/* --- variables.c --- */

/* Appends messages that name the allocators of the process. */
void process_write_allocators(const struct collected_process *process, struct buf *out);

/* --- variables.c --- */

/* The address in the pseudo module of regions of the one whose name the arena's string ref is: the same for equal names
 * in all processes. Remembers the name. */
uint64_t thread_place_region(struct collected_thread *thread, uint64_t ref);

/* --- collect.c, variables.c, log.c --- */

/* The profile's id of a tree node (positive, whether it is a leaf or not). */
int32_t thread_node_id(const struct collected_thread *thread, uint32_t node);

/* Writes the side file, of at most max_bytes; *n_bytes becomes its size.  err: ERR_IO, ERR_MEMORY */
int thread_write_objects(const struct collected_thread *thread, const char *path, uint64_t max_bytes, uint64_t *n_bytes,
                         struct error *err);

/* Frees what the variable's row points to. */
void variable_fini(struct collected_variable *variable);

/* Writes the process's log over the claimed one.  err: ERR_IO, ERR_MEMORY */
int process_write_log(struct collected_process *process, struct error *err);

#endif
