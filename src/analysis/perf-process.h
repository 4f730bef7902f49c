/* SPDX-License-Identifier: BSD-3-Clause */
/* A process in a file of perf while its records are gone through: its address space now, and the arena that its samples
 * go into. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PERF_PROCESS_H
#define LOCUS_ANALYSIS_PERF_PROCESS_H

#include "analysis/perf-arena.h"
#include "analysis/perf-space.h"

/* A file as it lies in the process; in the arena. */
struct perf_loaded {
    uint64_t bias;
    uint32_t file;
    uint32_t module, id; /* reference and number of the load module */
    uint32_t string;     /* reference of its name, 0 until needed */
};

struct perf_process {
    uint32_t pid;
    bool has_arena, is_named;
    struct perf_space space;
    struct perf_arena arena;
    struct perf_loaded *loaded; /* [n_loaded] */
    size_t n_loaded, cap_loaded;
    uint64_t first_ns, last_ns; /* of the samples, by perf's clock */
    char exe[ARENA_PATH_MAX];   /* path of the program, or only its name */
};

/* Where a data address lies. */
struct perf_place {
    uint64_t var;     /* key (arena/arena.h) */
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
struct perf_place perf_process_data(struct perf_process *process, struct perf_files *files, uint64_t address,
                                    uint32_t tid);

/* Frees everything and makes it empty. */
void perf_process_fini(struct perf_process *process);

#endif
