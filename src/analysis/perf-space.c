/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings of a process in order of address: see perf-space.h. */
#include "analysis/perf-space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static uint8_t kind_of(const struct perf_data_mmap *record)
{
    static const char *const files_in_memory[] = {"/dev/zero", "/anon_hugepage", "/memfd:", "/SYSV"};
    if (begins_with(record->path, "[stack"))
        return PERF_MAPPING_STACK;
    if (begins_with(record->path, "[vdso") || begins_with(record->path, "[vvar") ||
        begins_with(record->path, "[vsyscall") || begins_with(record->path, "[uprobes"))
        return PERF_MAPPING_VDSO;
    if (begins_with(record->path, "//anon") || record->path[0] == '[' || !record->path[0])
        return record->has_protection && record->protection == PROT_NONE ? PERF_MAPPING_GUARD : PERF_MAPPING_ANON;
    for (size_t i = 0; i < sizeof files_in_memory / sizeof files_in_memory[0]; i++)
        if (begins_with(record->path, files_in_memory[i]))
            return PERF_MAPPING_ANON;
    return PERF_MAPPING_FILE;
}

/* The number of mappings that end at or below the address. */
static size_t count_below(const struct perf_space *space, uint64_t address)
{
    size_t low = 0, high = space->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (space->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts one mapping in the place of [start, end); what it covers partly is cut, or split in two. */
static bool replace(struct perf_space *space, const struct perf_mapping *mapping)
{
    if (!vec_reserve(&space->mappings, &space->capacity, space->n + 2, sizeof *space->mappings))
        return false;
    struct perf_mapping *all = space->mappings;
    size_t first = count_below(space, mapping->start), last = first;
    struct perf_mapping pieces[3];
    size_t n_pieces = 0;
    while (last < space->n && all[last].start < mapping->end)
        last++;
    if (first < last && all[first].start < mapping->start) {
        pieces[n_pieces] = all[first];
        pieces[n_pieces++].end = mapping->start;
    }
    pieces[n_pieces++] = *mapping;
    if (first < last && all[last - 1].end > mapping->end) {
        pieces[n_pieces] = all[last - 1];
        pieces[n_pieces++].start = mapping->end;
    }
    memmove(all + first + n_pieces, all + last, (space->n - last) * sizeof *all);
    memcpy(all + first, pieces, n_pieces * sizeof *all);
    space->n = space->n - (last - first) + n_pieces;
    return true;
}

/* Files without segments of a program are mapped as they are. */
static uint64_t bias_of(const struct perf_space *space, const struct perf_file *shape, uint32_t file,
                        const struct perf_data_mmap *record)
{
    uint64_t known = 0, bias = record->start - record->file_offset;
    for (size_t i = 0; i < space->n && !known; i++)
        if (space->mappings[i].kind == PERF_MAPPING_FILE && space->mappings[i].file == file)
            known = space->mappings[i].bias;
    uint32_t protection = record->has_protection ? record->protection : record->is_data ? 0u : PROT_READ | PROT_EXEC;
    if (shape->is_elf)
        (void)elf_shape_bias(&shape->shape, record->start, record->file_offset, protection, known, &bias);
    return bias;
}

bool perf_space_map(struct perf_space *space, const struct perf_files *files, const struct perf_data_mmap *record,
                    int64_t file)
{
    struct perf_mapping mapping = {
        .start = record->start, .end = record->start + record->n_bytes, .kind = kind_of(record)};
    if (record->n_bytes == 0 || mapping.end < mapping.start)
        return true;
    if (mapping.kind == PERF_MAPPING_FILE && file >= 0) {
        mapping.file = (uint32_t)file;
        mapping.bias = bias_of(space, &files->files[file], mapping.file, record);
    } else if (mapping.kind == PERF_MAPPING_FILE) {
        mapping.kind = PERF_MAPPING_ANON;
    }
    /* What becomes accessible inside memory without access, but for its first page, is the stack of a thread. */
    const struct perf_mapping *guard = mapping.kind == PERF_MAPPING_ANON ? perf_space_at(space, mapping.start) : NULL;
    if (guard && guard->kind == PERF_MAPPING_GUARD && guard->start < mapping.start && guard->end == mapping.end) {
        mapping.kind = PERF_MAPPING_STACK;
        mapping.is_new = true;
    } else if (mapping.kind == PERF_MAPPING_STACK) {
        mapping.tid = record->pid;
    }
    return replace(space, &mapping);
}

struct perf_mapping *perf_space_at(const struct perf_space *space, uint64_t address)
{
    size_t i = count_below(space, address);
    return i < space->n && space->mappings[i].start <= address ? &space->mappings[i] : NULL;
}

const struct perf_mapping *perf_space_module(const struct perf_space *space, const struct perf_files *files,
                                             uint64_t address)
{
    size_t i = count_below(space, address);
    const struct perf_mapping *all = space->mappings;
    if (i < space->n && all[i].start <= address && all[i].kind != PERF_MAPPING_ANON)
        return all[i].kind == PERF_MAPPING_FILE ? &all[i] : NULL;
    while (i > 0 && all[i - 1].kind != PERF_MAPPING_FILE)
        i--;
    if (i == 0 || !files->files[all[i - 1].file].is_elf)
        return NULL;
    return address - all[i - 1].bias < files->files[all[i - 1].file].shape.end_vaddr ? &all[i - 1] : NULL;
}

void perf_space_begin_thread(struct perf_space *space, uint32_t tid)
{
    for (size_t i = 0; i < space->n; i++)
        if (space->mappings[i].is_new) {
            space->mappings[i].is_new = false;
            space->mappings[i].tid = tid;
        }
}

void perf_space_end_thread(struct perf_space *space, uint32_t tid)
{
    for (size_t i = 0; i < space->n; i++)
        if (space->mappings[i].tid == tid)
            space->mappings[i].tid = 0;
}

bool perf_space_copy(struct perf_space *space, const struct perf_space *from)
{
    if (!vec_reserve(&space->mappings, &space->capacity, from->n + 1, sizeof *space->mappings))
        return false;
    if (from->n)
        memcpy(space->mappings, from->mappings, from->n * sizeof *from->mappings);
    space->n = from->n;
    return true;
}

void perf_space_fini(struct perf_space *space)
{
    free(space->mappings);
    *space = (struct perf_space){0};
}
