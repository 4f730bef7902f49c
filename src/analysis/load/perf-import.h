/* SPDX-License-Identifier: BSD-3-Clause */
/* Imports measurements of perf: a perf.data file becomes a measurement directory as hpcrun would have written it, so
 * that everything that follows works on it unchanged. Ordinary code. */
#ifndef LOCUS_ANALYSIS_LOAD_PERF_IMPORT_H
#define LOCUS_ANALYSIS_LOAD_PERF_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/model.h"
#include "arena/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "import/perf-data.h"
#include "structure/elf/elf-file.h"
#include "structure/elf/symbols.h"

/* True when the file at path begins as a perf.data file does; false also when it cannot be read. */
bool perf_import_is_file(const char *path);

/* Writes the profiles and side files of all processes in the file at path into directory, which must exist. Adds notes
 * for the reader of the report to the model.
 * err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED, ERR_NOT_FOUND (no samples), ERR_MEMORY */
int perf_import(const char *path, const char *directory, struct model *model, struct error *err);

/* --- files of a process --- */

/* The files that were mapped during a measurement of perf: which of them are here and the same build, and what their
 * symbols say about data. Ordinary code. */

struct perf_file {
    char *path;
    char *shown; /* name for the profiles: the path, marked when the file here is another build */
    struct elf_shape shape;
    struct symbols *symbols;
    bool is_elf;   /* readable here, and of the recorded build if one was recorded */
    bool is_other; /* here, but of another build */
    bool is_missing;
    bool tried_symbols;
};

/* A variable with static storage that samples touched. */
struct perf_static {
    uint64_t vaddr, size_bytes;
    uint32_t file; /* index */
    char *name;
};

/* All zero is empty. */
struct perf_files {
    struct strtab keys;      /* path and build id; index = file */
    struct perf_file *files; /* [keys.n_strings] */
    size_t cap_files;
    struct perf_static *statics; /* [n_statics] */
    size_t n_statics, cap_statics;
    struct slots slots; /* of the variables, by file and address */
    int64_t kernel;     /* index + 1 of the kernel, 0 until first needed */
};

/* Index of the file at path with this build id (n_build_id 0: not recorded); -1 when out of memory. */
int64_t perf_files_find(struct perf_files *files, const char *path, const unsigned char *build_id, size_t n_build_id);

/* Frees everything and makes it empty. */
void perf_files_fini(struct perf_files *files);

/* --- its address space --- */

/* The address space of a process at one moment, from the mapping records of perf: later mappings replace earlier ones,
 * since perf does not record unmapping. Ordinary code. */

enum perf_mapping_kind {
    PERF_MAPPING_FILE = 0,
    PERF_MAPPING_ANON,  /* anonymous memory: heap, mappings of the program, zeroed data of modules */
    PERF_MAPPING_STACK, /* of the main thread, or after a guard page */
    PERF_MAPPING_VDSO,
    PERF_MAPPING_GUARD /* anonymous without any access */
};

struct perf_mapping {
    uint64_t start, end;
    uint64_t bias; /* files: run-time address - ELF virtual address */
    uint32_t file; /* index, of PERF_MAPPING_FILE */
    uint32_t tid;  /* owner of a stack, 0 = not known yet */
    uint8_t kind;  /* enum perf_mapping_kind */
    bool is_new;   /* a stack whose thread was not seen to begin */
};

/* All zero is empty. */
struct perf_space {
    struct perf_mapping *mappings; /* [n] sorted, without overlaps */
    size_t n, capacity;
};

/* Adds a mapping record; file: index from perf_files_find where it names a file. False when out of memory. */
bool perf_space_map(struct perf_space *space, const struct perf_files *files, const struct perf_data_mmap *record,
                    int64_t file);

/* The mapping that holds an address; NULL when none does. Borrowed until the next change. */
struct perf_mapping *perf_space_at(const struct perf_space *space, uint64_t address);

/* A thread begins: it owns the newest stack without an owner. A thread ends: its stack has no owner. */
void perf_space_begin_thread(struct perf_space *space, uint32_t tid);
void perf_space_end_thread(struct perf_space *space, uint32_t tid);

/* Makes space, which must be empty, a copy of another. False when out of memory. */
bool perf_space_copy(struct perf_space *space, const struct perf_space *from);
void perf_space_fini(struct perf_space *space);

/* --- what it becomes --- */

/* An arena (arena/arena.h) made from a file instead of by a running program: the records of one process, which the
 * collector then turns into profiles like any other. Ordinary code. */

/* A thread under construction. */
struct perf_arena_thread {
    uint32_t tid, ref, n_open[ARENA_KINDS]; /* n_open: chunk + 1 that is being filled, by kind */
};

struct perf_arena_child {
    uint64_t ip;
    uint32_t parent, module, node;
};

/* All zero is empty. */
struct perf_arena {
    char *base; /* mapped, size_bytes; the header comes first */
    uint64_t size_bytes;
    struct perf_arena_thread *threads; /* [n_threads] in order of their ids */
    size_t n_threads, cap_threads;
    uint32_t n_open_shared[ARENA_KINDS];
    struct perf_arena_child *children; /* [n_children] the call-path nodes */
    size_t n_children, cap_children;
    struct slots slots; /* of the children, by parent, module and address */
    bool is_full;       /* something could not be recorded: out of memory or of ids */
};

/* Begins the arena of a process.  err: ERR_MEMORY */
int perf_arena_init(struct perf_arena *arena, uint32_t pid, struct error *err);
void perf_arena_fini(struct perf_arena *arena);

/* Its header, where the caller fills in what it knows about the process. */
struct arena_header *perf_arena_header(const struct perf_arena *arena);

/* The thread with this kernel id, added when new; index into arena->threads. Thread 0 is the first one added. */
size_t perf_arena_thread(struct perf_arena *arena, uint32_t tid);
struct arena_thread *perf_arena_thread_record(const struct perf_arena *arena, size_t thread);

/* References of a new load module and a new string; 0 when full. *id: the module's number. */
uint32_t perf_arena_module(struct perf_arena *arena, const char *path, uint64_t bias, uint64_t table_id, uint32_t *id);
uint32_t perf_arena_string(struct perf_arena *arena, const char *text);

/* The child of a node with this address; parent 0: the thread's root. 0 when full. */
uint32_t perf_arena_node(struct perf_arena *arena, size_t thread, uint32_t parent, uint32_t module, uint64_t ip);

/* The thread's root of partial call paths. */
uint32_t perf_arena_partial(const struct perf_arena *arena, size_t thread);

/* Adds a sample of weight to the hit at a node that is like this one, and its latency (core cycles), if any, to the
 * histogram. The sample has an offset if like has one. */
void perf_arena_hit(struct perf_arena *arena, size_t thread, uint32_t node, const struct arena_hit *like,
                    uint64_t weight, uint64_t lat_cycles);

/* Adds a sample of an event on a variable to those of a CPU. */
void perf_arena_place(struct perf_arena *arena, size_t thread, uint8_t event, uint64_t var, uint16_t cpu);

/* --- a process --- */

/* A process in a perf file during the pass over its records: its current address space, and the arena that its samples
 * go into. Ordinary code. */

/* A file as it is mapped in the process, and its load module in the arena. */
struct perf_loaded {
    uint64_t bias;
    uint32_t file;
    uint32_t module, id; /* reference and number of the load module */
    uint32_t string;     /* reference of its name, 0 until needed */
};

struct perf_thread_name {
    uint32_t tid;
    char name[ARENA_COMM_BYTES];
};

struct perf_process {
    uint32_t pid;
    bool has_arena, is_named;
    struct perf_space space;
    struct perf_arena arena;
    struct perf_loaded *loaded; /* [n_loaded] */
    size_t n_loaded, cap_loaded;
    struct perf_thread_name *names; /* [n_names] of threads: the last one with a tid holds */
    size_t n_names, cap_names;
    uint64_t first_ns, last_ns; /* of the samples, by perf's clock */
    char exe[ARENA_PATH_MAX];   /* path of the program, or only its name */
};

/* What lies at a data address. */
struct perf_target {
    uint64_t var; /* key (arena/arena.h) */
    bool has_offset;
    uint64_t offset;  /* bytes from the start of the variable */
    uint8_t class;    /* enum hit_class */
    uint8_t fate;     /* enum fate */
    bool is_unlogged; /* in the heap or in anonymous memory */
};

/* Begins the arena of the process; events and times are the caller's.  err: ERR_MEMORY */
int perf_process_begin(struct perf_process *process, struct error *err);

/* The load module that holds a code address; NULL when none does. is_kernel: the kernel. Borrowed until the next call.
 */
struct perf_loaded *perf_process_code(struct perf_process *process, struct perf_files *files, uint64_t ip,
                                      bool is_kernel);

/* The variable at a data address that thread tid touched. */
struct perf_target perf_process_data(struct perf_process *process, struct perf_files *files, uint64_t address,
                                     uint32_t tid);

/* Frees everything and makes it empty. */
void perf_process_fini(struct perf_process *process);

#endif
