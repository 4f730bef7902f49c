/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a measurement of perf saw mapped: which of them are here, are the same build, and what their symbols
 * say about data. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PERF_FILES_H
#define LOCUS_ANALYSIS_PERF_FILES_H

#include "base/vec.h"
#include "import/perf-data.h"
#include "structure/elf-shape.h"
#include "structure/symbols.h"

struct perf_file {
    char *path;
    char *shown; /* as profiles name it: the path, marked when the file here is another build */
    struct elf_shape shape;
    struct symbols *symbols;
    bool is_elf;   /* readable here, of the recorded build as far as one was recorded */
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
    uint32_t *slots; /* [n_slots] hash of (file, vaddr); index + 1, 0 empty */
    size_t n_slots;
    int64_t kernel; /* index + 1 of the kernel, 0 until it is asked for */
};

/* Index of the file at path with this build id (n_build_id 0: not recorded); -1 when out of memory. */
int64_t perf_files_find(struct perf_files *files, const char *path, const unsigned char *build_id, size_t n_build_id);

/* Index of the static variable at vaddr of a file; -1 when there is none. */
int64_t perf_files_static(struct perf_files *files, uint32_t file, uint64_t vaddr);

/* Frees everything and makes it empty. */
void perf_files_fini(struct perf_files *files);

#endif
