/* SPDX-License-Identifier: BSD-3-Clause */
/* The address space of a process as the mapping records of perf tell it, at one moment: later mappings replace earlier
 * ones, since perf does not record what is unmapped. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PERF_SPACE_H
#define LOCUS_ANALYSIS_PERF_SPACE_H

#include "analysis/perf-files.h"

enum perf_mapping_kind {
    PERF_MAPPING_FILE = 0,
    PERF_MAPPING_ANON,  /* anonymous memory: heap, mappings of the program, zeroed data of modules */
    PERF_MAPPING_STACK, /* of the main thread, or behind a guard page */
    PERF_MAPPING_VDSO,
    PERF_MAPPING_GUARD /* anonymous without any access */
};

struct perf_mapping {
    uint64_t start, end;
    uint64_t bias; /* files: run-time address - ELF virtual address */
    uint32_t file; /* index, of PERF_MAPPING_FILE */
    uint32_t tid;  /* owner of a stack, 0 = not known yet */
    uint8_t kind;  /* enum perf_mapping_kind */
    bool is_new;   /* stack of which no thread has been seen to begin */
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

/* The mapping of the load module whose image holds the address: a mapping of its file, or its zeroed data behind one.
 * NULL when none does. */
const struct perf_mapping *perf_space_module(const struct perf_space *space, const struct perf_files *files,
                                             uint64_t address);

/* A thread begins: the newest stack without one is its. A thread ends: its stack is nobody's. */
void perf_space_begin_thread(struct perf_space *space, uint32_t tid);
void perf_space_end_thread(struct perf_space *space, uint32_t tid);

/* Makes space, which must be empty, a copy of another. False when out of memory. */
bool perf_space_copy(struct perf_space *space, const struct perf_space *from);
void perf_space_fini(struct perf_space *space);

#endif
