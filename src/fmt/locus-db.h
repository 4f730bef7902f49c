/* SPDX-License-Identifier: BSD-3-Clause */
/* What a locus.db holds: the model, which an analysis makes and reports read, and frames in part; how it is kept in
 * memory, written and read. Ordinary code. */
#ifndef LOCUS_FMT_LOCUS_DB_H
#define LOCUS_FMT_LOCUS_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/fate.h"
#include "base/error.h"
#include "base/vec.h"
#include "fmt/objects.h"

enum scope_kind {
    SCOPE_TOP = 0,    /* scope 0, above all roots */
    SCOPE_PROC,       /* a function that was called; also variables and placeholders */
    SCOPE_INLINED,    /* a function inlined into its parent */
    SCOPE_POSITION,   /* position in the parent where something was inlined, or in another file */
    SCOPE_CALL,       /* call site: a line, or, where it has a module, one instruction */
    SCOPE_LINE,       /* statement: it has values of its own, unless the instructions in it have them */
    SCOPE_LOOP,       /* a loop; line is its first, end_line its last */
    SCOPE_INSTRUCTION /* in a statement; file and line are those of the statement */
};

/* What a scope stands for if it is not simply code. */
enum scope_role {
    ROLE_NONE = 0,
    ROLE_PROGRAM, /* <program root> */
    ROLE_THREAD,  /* <thread root> */
    ROLE_PARTIAL, /* <partial call paths> */
    ROLE_IDLE,
    ROLE_DATACENTRIC, /* root of the data-centric tree: repeats the costs of the other roots */
    ROLE_HEAP,
    ROLE_STATIC,
    ROLE_TLS,
    ROLE_STACK,
    ROLE_FILE,
    ROLE_UNKNOWN,
    ROLE_REASON,   /* below ROLE_UNKNOWN: why */
    ROLE_VARIABLE, /* a variable: its parent gives the class */
    ROLE_ACCESS,   /* between a heap variable and the paths that access it */
    ROLE_REGION,   /* of the program, above the call paths of its samples */
    ROLE_PROFILER, /* in place of all functions of the profiler's own */
    ROLE_COUNT
};

/* Where a loop is in the source. */
struct loop_lines {
    uint32_t file;        /* string id */
    uint32_t first, last; /* first 0: there is no loop; last 0: not known */
};

/* Node of the source-level tree. Scopes are in canonical pre-order: a parent precedes its children, statements precede
 * other children. Links are indexes; 0 = none, since scope 0 is no scope's child. */
struct scope {
    uint32_t parent, first_child, next_sibling;
    uint32_t end;                /* the first scope behind its subtree: model_subtree_end */
    uint32_t name, file, module; /* ids in model.strings, 0 = "" */
    uint32_t line;               /* 0 = not known */
    uint32_t end_line;  /* LOOP: its last, 0 = not known. CALL of a module: bytes of the instruction, 0 = none */
    uint16_t node_type; /* enum hpcrun_node_type bits, for PROC */
    uint8_t kind, role;
    uint64_t vaddr; /* CALL: return address - 1, PROC: entry, LOOP: header; of the first one merged. INSTRUCTION. Of a
                     * variable: a static one's own address, a block's return address of the call that made it; 0: not
                     * known */
};

struct metric {
    char *name, *description;
    double per_sample;   /* value of one sample; 0 when samples have different weights */
    double period;       /* the same, from the profiles */
    uint64_t n_samples;  /* from the profiles; 0 = not known */
    bool is_integer;     /* counts of fixed value */
    bool hidden;         /* not shown by default: sizes */
    bool used_by_data;   /* has values below ROLE_DATACENTRIC */
    bool is_multiplexed; /* in some thread its counter was shared: values are scaled */
};

/* Value of one statement in one thread, already multiplied by the metric's period. */
struct cell {
    uint32_t scope, metric;
    double value;
};

struct process {
    char *exe, *host_id;
    char *path; /* of the program; NULL = not known */
    uint32_t rank, pid, generation;
    uint32_t n_threads;
    uint32_t directory; /* of its measurement, counted from 0: runs are never mixed up */
    uint64_t birth;     /* as in struct objects_file: a process that calls exec is here once for each program */
};

#define NUMA_NODES_MAX 1024 /* as in Linux */

struct thread {
    uint32_t process;
    uint32_t id;        /* dense within the process, from 0 */
    uint32_t thread_id; /* as in the profile */
    uint32_t name;      /* string id: given by the program, or 0 */
    size_t profile;     /* number in the order of loading: values.h */
};

enum variable_class {
    CLASS_HEAP = 0,
    CLASS_MMAP,
    CLASS_STATIC,
    CLASS_TLS,
    CLASS_STACK,
    CLASS_FILE, /* the last one that says which memory it is */
    CLASS_UNKNOWN,
    CLASS_UNATTRIBUTED,
    CLASS_WAITING, /* for other threads or processes, in loops */
    CLASS_DROPPED, /* samples that were taken but not recorded; for rows, never for variables */
    CLASS_COUNT
};

#define LATENCY_BINS 64 /* as in the side files */

/* Latencies of the samples for which the hardware gave one. */
struct latency_sum {
    uint64_t n_samples, cycles;
    uint64_t n_remote, remote_cycles; /* those served by another NUMA node */
    uint64_t bins[LATENCY_BINS];      /* histogram: struct arena_sketch in arena/arena.h */
};

struct variable_latency {
    uint32_t event; /* index into the model's events */
    struct latency_sum sum;
};

/* What samples at data were spent on, in samples: memory + execution + unverified is all of them. memory_low and
 * memory_high: the interval that memory lies in, unverified ones included. memory_least and memory_most: what these
 * data cost may lie between, because waits for other data of the same loops hide some of theirs, or are hidden by them;
 * such parts belong to one variable or the other, so that these two do not add up. */
struct cause_sum {
    double memory, memory_low, memory_high, memory_least, memory_most;
    double execution, unverified;
    double resident;    /* of execution: found in the caches that each core has to itself */
    double first_touch; /* in reports only, and then a part of all like the first three: first touches of pages */
    double longer; /* how many times as long a measurement at the same rate would verify most of what is unverified;
                    * 0: nothing is, or a longer one would not. It does not add up */
};

struct variable_cause {
    uint32_t event; /* index into the model's events */
    struct cause_sum sum;
};

/* Samples of one event by all walks of one kind and stride through a variable. What else an unrolled loop reads of a
 * line, and what one instruction reads of several elements, lies within a stride: such walks count as of stride 0. */
struct variable_walk {
    uint32_t event;        /* index into the model's events */
    uint8_t kind;          /* enum pattern_kind; PATTERN_DERIVED counts as PATTERN_STRIDED */
    uint32_t stride_bytes; /* of PATTERN_STRIDED, in either direction, at most WALK_STRIDE_MOST; 0: another one;
                            * where pattern_is_least() holds, that or more */
    double samples;
    double memory; /* of samples: waited for memory */
};
#define WALK_STRIDE_MOST INT16_MAX /* stands for longer ones too: patterns have no more */
#define WALKS_MAX 64               /* of a variable; what has no room counts as PATTERN_UNKNOWN, stride 0 */

/* Part of a stack frame: one local variable. */
struct variable_part {
    uint32_t name, file, line;
    uint32_t type;          /* string id: of an element; 0 = not known */
    uint64_t element_bytes; /* 0 = not known */
    uint64_t size_bytes;
    double fraction; /* of the frame's samples of the first event with addresses; the parts add up to 1 */
};

/* How the type of a variable's elements is known. */
enum type_source {
    TYPE_FROM_NOTHING = 0,
    TYPE_FROM_DECLARATION, /* of the variable, or of the pointer that the block was assigned to */
    TYPE_FROM_TEMPLATE,    /* what the allocator of a container was made for */
    TYPE_FROM_NEW,         /* new-expression */
    TYPE_FROM_SIZEOF,      /* sizeof in the allocating statement */
    TYPE_FROM_ACCESSES,    /* what most accesses use it as */
    TYPE_SOURCES
};

/* Samples of one event on one field of a variable. */
struct variable_field {
    uint32_t event; /* index into the model's events */
    uint32_t part;  /* index into the variable's parts, FIELD_NO_PART = of the variable as a whole */
    uint32_t name;  /* string id: path relative to the variable, "[].vel.x"; "" = the variable is a scalar */
    uint32_t type;  /* string id, 0 = not known */
    uint32_t flags; /* FIELD_* */
    uint64_t offset_bytes, size_bytes; /* within an element: subscripts count as 0 */
    uint64_t samples;
};
/* Samples of the first event with addresses that a line took on a part. */
struct part_line {
    uint32_t part;                 /* index into the variable's parts */
    uint32_t function, file, line; /* string ids */
    struct loop_lines loop;        /* around it */
    uint64_t samples;
};
/* Samples on one field that the instructions of a statement took, or one instruction where these are kept. Where
 * several call paths end at the same instructions, each of their scopes has the samples of all: how the fields share a
 * scope. */
struct field_count {
    uint32_t variable, scope; /* indexes into the model's lists; scope: below one of the variable's */
    uint32_t field;           /* index into the variable's fields */
    uint64_t n_samples;
};
/* Samples of one event on one variable at an access in a nest whose loops another order would serve better: the loop
 * that is the innermost one now, and the one that should be it. By machine code alone (structure_nest_at). */
struct nest_count {
    uint32_t variable, event;           /* indexes into the model's lists */
    uint32_t file, line, end_line;      /* of the innermost loop; string id */
    uint32_t outer_file, outer_line;    /* of the other one */
    uint32_t verdict;                   /* enum nest_verdict, never NEST_FINE */
    uint32_t move;                      /* enum nest_move: of the access, in a turn of the innermost loop */
    uint32_t is_around;                 /* 1: the other loop is right around the innermost one */
    uint64_t stride_bytes, outer_bytes; /* from one place to the next in either loop; 0: not known */
    uint64_t n_samples;
};
#define NEST_VERDICT_MOST 2 /* NEST_TILE and NEST_UNKNOWN of structure/cfg/cfg.h */
#define NEST_MOVE_MOST 3
#define FIELD_NO_PART UINT32_MAX
#define FIELD_UNTYPED 1u /* only an offset, or a range of offsets, is known */
#define FIELD_PADDING 2u /* between the fields */

struct variable {
    uint32_t name;                 /* string id */
    uint32_t function, file, line; /* allocation site or declaration; string ids, 0 = not known */
    uint32_t module;               /* string id */
    uint8_t class;                 /* enum variable_class */
    uint64_t size_bytes, n_blocks, size_freed_bytes, n_blocks_freed, max_block_bytes;
    uint64_t n_blocks_marked, size_marked_bytes; /* live at the mark */
    uint64_t n_inexact;                          /* samples located by a proxy address */
    uint32_t *scopes;                            /* [n_scopes] its subtrees: one per allocation path */
    size_t n_scopes, cap_scopes;
    struct variable_part *parts; /* [n_parts] local variables of a stack frame, where there are several */
    size_t n_parts, cap_parts;
    struct part_line *part_lines; /* [n_part_lines] */
    size_t n_part_lines, cap_part_lines;
    uint64_t *places;  /* [n_metrics][n_numa_nodes] samples by NUMA node of the CPU; NULL = none known */
    uint64_t *samples; /* [n_metrics] as counted, not multiplied or scaled; NULL = not known */
    struct variable_latency *latencies; /* [n_latencies] by event */
    size_t n_latencies, cap_latencies;
    struct variable_cause *causes; /* [n_causes] by event: those whose addresses were computed in software */
    size_t n_causes, cap_causes;
    struct variable_walk *walks; /* [n_walks] of the events of causes; none in databases of version 1 */
    size_t n_walks, cap_walks;
    uint32_t type;                 /* string id: of an element, e.g. "struct particle"; 0 = not known */
    uint8_t type_source;           /* enum type_source */
    uint64_t element_bytes;        /* size of an element, 0 = not known */
    struct variable_field *fields; /* [n_fields] */
    size_t n_fields, cap_fields;
};

/* Where a CPU of a host is. CPUs and nodes have the numbers of the operating system, cores and packages hwloc's logical
 * ones, which count over the whole host, as those of lscpu. */
struct machine_cpu {
    uint32_t cpu, core, package, node; /* PLACE_UNKNOWN: not known */
};
#define PLACE_UNKNOWN UINT32_MAX /* TOPOLOGY_UNKNOWN of import/topology.h */

/* A host whose topology is known. */
struct machine {
    char *host_id;            /* as in struct process */
    struct machine_cpu *cpus; /* [n_cpus] by number, owned */
    size_t n_cpus;
    uint32_t *distances; /* [n_distances][n_distances] from the CPUs of a memory node to another one, as the firmware
                          * tells them: 10 is its own; 0: not known. Owned */
    uint32_t n_distances;
};

/* Samples of one metric that a thread took on a variable while it ran on a CPU of its process's host. */
struct cpu_count {
    uint32_t variable, thread, metric; /* indexes into the model's lists */
    uint32_t cpu;
    uint64_t n_samples; /* as counted, not multiplied or scaled */
};

/* Page faults of a thread at one place of the code on a variable: there it was the first to touch these pages. */
struct touch {
    uint32_t variable, thread, scope; /* indexes into the model's lists; scope: below one of the variable's */
    uint64_t n_samples;               /* faults that were sampled ... */
    uint64_t n_faults;                /* ... and those that they stand for */
    uint64_t first_ns;                /* of the first of them, since 1970; 0 = not known */
    uint64_t low_bytes, high_bytes;   /* where they lie in the block or symbol; low > high: not known */
};
#define FAULTS_METRIC "FAULTS" /* what they are samples of */

/* Samples of one event that a thread took, and that were dropped for one reason. */
struct drop_count {
    uint32_t thread, event; /* indexes into the model's lists */
    uint32_t fate;          /* from FATE_DROP_REENTERED, below FATE_TAKEN_MAX */
    uint64_t n_samples;
};

/* One side of what watchpoints found about a cache line (struct objects_meeting). The other side is of the same process
 * and has the same key. */
struct meeting {
    uint32_t variable, thread, scope; /* indexes into the model's lists; scope: below one of the variable's */
    bool is_watcher;
    uint32_t accesses;
    uint64_t key, address, n_bytes;
    uint64_t n_same, n_beside, n_none;
};

/* Where one thread's samples lie in a variable: struct reach of fmt/objects.h. */
struct reach_row {
    uint32_t variable, thread; /* indexes into the model's lists */
    uint64_t n_strided,
        n_irregular; /* samples of instructions that walk so in their loops; few of hardware's are known */
    struct reach_sum sum;
    struct reach_line *lines; /* [n_lines] owned */
    size_t n_lines;
    struct spread offsets; /* some of them, exactly; owned */
};
#define REACH_ROWS_MAX 256 /* of a variable; with more threads, whole processes are left out */

/* The same of the samples whose page's home is known: the memory node that the page was on. */
struct home_count {
    uint32_t variable, thread, metric;
    uint32_t cpu;
    uint32_t home; /* PLACE_UNKNOWN: the page was never written, or was released before the kernel was asked */
    uint64_t n_samples;
};

#define HOMES_MAX 64 /* memory nodes: as in the side files */

/* Where the pages of a variable are: of its largest block in each process, as they were found last. */
struct variable_pages {
    uint32_t variable;
    uint64_t n_moved;         /* samples on a page that had another home before */
    uint64_t n_pages;         /* 0: they were not counted */
    uint64_t n_asked, n_none; /* of the pages, asked for; of these, without memory */
    uint64_t huge_bytes;      /* in huge pages; UINT64_MAX: not known */
    uint64_t n_on[HOMES_MAX]; /* of those asked for, by node */
};

/* A module with instructions whose build is known. A database that was extended may have several of one module. */
struct module_build {
    uint32_t module; /* string id of its path */
    uint64_t build;  /* modtab_header.id of fnbounds/modtab.h; 0: several */
};

/* Sums over all threads for one event. */
struct event_sum {
    char *metric, *name;
    double scale;
    uint64_t taken, overflows;
    uint64_t fates[FATE_MAX];
    /* as in struct objects_event */
    uint64_t enabled_ns, running_ns, n_throttles, n_no_metric, n_truncated, n_collisions;
    bool has_data_source;              /* the hardware described each access */
    bool has_address;                  /* its samples have, or would have, data addresses */
    bool is_user_only;                 /* time in the kernel gave no samples */
    uint64_t n_spared, sample_cost_ns; /* as in struct objects_event; the larger cost */
};

struct model {
    struct strtab strings; /* id 0 is "" */
    struct strtab runs;    /* ids of the measured launches; empty = not known */
    struct scope *scopes;  /* [n_scopes], scope 0 is SCOPE_TOP */
    size_t n_scopes, cap_scopes;
    struct metric *metrics; /* [n_metrics] */
    size_t n_metrics, cap_metrics;
    double *own;               /* [n_scopes][n_metrics] sums over threads; only statements have any */
    double *inclusive;         /* [n_scopes][n_metrics]; scope 0 leaves out the data-centric root */
    struct process *processes; /* [n_processes] sorted by rank, host, pid, generation */
    size_t n_processes, cap_processes;
    struct thread *threads; /* [n_threads] sorted by process, id */
    size_t n_threads, cap_threads;
    struct variable *variables; /* [n_variables] */
    size_t n_variables, cap_variables;
    struct event_sum *events; /* [n_events] */
    size_t n_events, cap_events;
    struct module_build *builds; /* [n_builds]; none without instructions */
    size_t n_builds, cap_builds;
    struct machine *machines; /* [n_machines] by host id; none in databases of version 5 and earlier */
    size_t n_machines, cap_machines;
    struct cpu_count *cpu_counts; /* [n_cpu_counts] by variable, thread, metric, CPU; none as above */
    size_t n_cpu_counts, cap_cpu_counts;
    struct touch *touches; /* [n_touches] by variable, thread, scope; only where page faults were sampled */
    size_t n_touches, cap_touches;
    size_t n_longer;          /* sums of causes that say how long a measurement would verify more, or 1 */
    struct meeting *meetings; /* [n_meetings] by key; only where lines were watched */
    size_t n_meetings, cap_meetings;
    struct reach_row *reaches; /* [n_reaches] by variable, thread; none in older databases */
    size_t n_reaches, cap_reaches;
    struct field_count *field_counts; /* [n_field_counts] by variable, scope, field; none in older databases */
    size_t n_field_counts, cap_field_counts;
    struct nest_count *nest_counts; /* [n_nest_counts] by variable, event and place; none in older databases */
    size_t n_nest_counts, cap_nest_counts;
    struct home_count *home_counts; /* [n_home_counts] by variable, thread, metric, CPU, home; none where each machine
                                     * has one memory node */
    size_t n_home_counts, cap_home_counts;
    struct drop_count *drops; /* [n_drops] by thread, event, fate; none in older databases */
    size_t n_drops, cap_drops;
    struct variable_pages *pages; /* [n_pages] by variable: those that something is known of */
    size_t n_pages, cap_pages;
    uint32_t n_numa_nodes;                 /* of the host's topology; 0 = not known */
    char *topology;                        /* one line, NULL = not known */
    char *program, *command, *plan, *skid; /* NULL = not known */
    uint64_t cpu_time_ns, start_ns, end_ns;
    uint64_t user_ns, system_ns;               /* parts of the CPU time; both 0: not known */
    uint64_t unmeasured_ns;                    /* CPU time of threads that were not measured, beside cpu_time_ns */
    uint64_t delay_ns;                         /* threads with samples could run and waited for a CPU; 0: not known */
    uint64_t n_page_faults;                    /* by the kernel's count, the profiler's own too; 0: not known */
    uint64_t min_bytes, sample_bytes, mark_ns; /* as in struct objects_file; the largest */
    bool has_samples;                          /* the variables' samples are those of all threads */
    bool has_thread_list;                      /* threads is filled; older databases do not have it */
    uint32_t n_killed;                         /* threads whose process was killed */
    uint64_t n_frames, unwind_stops[16];
    char **notes; /* [n_notes] sentences for the reader of a report */
    size_t n_notes, cap_notes;
    const struct code_source *code; /* analysis/report/code-table.h: where rows of code come from, where there are no
                                     * scopes; NULL: from these. In no file; borrowed */
    bool *is_left_out;              /* [n_threads] its values are in no sum; NULL: of no thread. In no file */
    bool names_in_full;             /* things are named so that nothing that comes later changes it. In no file */
    struct kept_reports *kept;      /* analysis/report/report.h: reports that were made of it; NULL: none are kept. In
                                     * no file; whoever keeps them frees them */
};

/* Frees what a row owns. */
void reach_row_fini(struct reach_row *row);

/* Makes *model empty and valid.  err: ERR_MEMORY */
int model_init(struct model *model, struct error *err);
void model_fini(struct model *model);

/* Sets the capacities of the lists to their lengths, so that a model that was read can grow. */
void model_set_capacities(struct model *model);

/* Id of text in model->strings; 0 for NULL, "" or out of memory. */
uint32_t model_string(struct model *model, const char *text);
const char *model_text(const struct model *model, uint32_t id);

/* Appends a sentence to the notes unless it is already there. */
void model_note(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The fate of dropped samples with this name (of fate_row), FATE_MAX when there is none or it is NULL. */
uint32_t model_drop_named(const char *name);

/* How the samples on a variable fall on its parts and fields, for all who split it. A frame's samples are those of its
 * parts: where a variable has parts, a field of the whole shares nothing. Counts of fields are in the order of
 * variable, scope and field; those of one scope on one variable end before model_counts_end. */
bool variable_shares_field(const struct variable *variable, const struct variable_field *field);
size_t model_counts_end(const struct model *model, size_t first);

/* The fraction of a frame's samples of an event that fell on a part; below 0: none on its parts is known. */
double variable_part_fraction(const struct variable *variable, uint32_t part, uint32_t event);

/* Whether a scope that was read may be where it is, behind its parent: instructions lie in statements, and nothing lies
 * in instructions. */
bool model_scope_fits(const struct model *model, uint32_t scope);

/* "heap", "mmap", "static", "thread-local", "stack", "file", "unknown", "unattributed". */
const char *model_class_name(enum variable_class class);

/* Sets first_child, next_sibling and end from parent, for scopes that are in order. */
void model_link_scopes(struct model *model);

/* --- the file --- */

#define DATABASE_FILE "locus.db"

/* The version that is written, and the only one that is read. The file ends with tables, each with its name and its
 * length: readers skip those that they do not know, so that a new table needs no new version. */
#define DB_VERSION 7

/* What is wanted of a file. The rest is gone through and checked as far as that needs, but not kept. */
enum db_part {
    DB_ALL = 0,  /* with own; inclusive is left to the reader (model_sum) */
    DB_VARIABLES /* no scopes (n_scopes counts them) and no values: for who has the tree from the files beside it */
};

/* From a model to the bytes of locus.db, and back into a model that model_init made; name is for messages. Reading
 * takes a small multiple of the file's length of memory, whatever it holds.  err: ERR_FORMAT (with the offset),
 * ERR_UNSUPPORTED (another version, and what to do), ERR_MEMORY; the model can then be freed only */
int locus_db_write(const struct model *model, struct buf *out, struct error *err);
int locus_db_read(const char *bytes, size_t len_bytes, const char *name, enum db_part wanted, struct model *model,
                  struct error *err);
bool locus_db_is(const char *bytes, size_t len_bytes);

/* --- private part --- */

/* Where writing or reading is. The first failure is remembered; after it, nothing is read or written. */
struct pass {
    struct buf *out;           /* writing; NULL: reading */
    const unsigned char *data; /* [len] of the whole file */
    size_t at, len;
    const char *name;
    enum db_part wanted;
    struct error *err;
    int code;
};

/* Each of these writes what it is given, or reads it there. what: names the field in messages. A number that is read is
 * at most most, an id or index within the model. */
void pass_64(struct pass *pass, uint64_t *value, const char *what);
void pass_32(struct pass *pass, uint32_t *value, uint64_t most, const char *what);
void pass_bool(struct pass *pass, bool *value, const char *what);
void pass_double(struct pass *pass, double *value, const char *what);
void pass_text(struct pass *pass, char **text, const char *what); /* malloc'ed when read; NULL: there is none */
void pass_string(struct pass *pass, const struct model *model, uint32_t *id, const char *what);
void pass_event_index(struct pass *pass, const struct model *model, uint32_t *event);
/* The number itself, which is value when writing. */
uint64_t pass_number(struct pass *pass, uint64_t value, uint64_t most, const char *what);
/* The length of a list: n when writing. When reading, *items gets as many zeroed items, malloc'ed. */
size_t pass_list(struct pass *pass, void *items, size_t n, size_t item_bytes, const char *what);

/* One direction alone. */
void pass_put(struct buf *out, uint64_t value);
uint64_t pass_take(struct pass *pass, const char *what);

/* Remembers that the file is damaged at this place, unless something failed before. */
void pass_refuse(struct pass *pass, const char *what, const char *why);

/* locus-tables.c: the tables behind the model. */
void pass_tables(struct pass *pass, struct model *model);

#endif
