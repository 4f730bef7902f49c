/* SPDX-License-Identifier: BSD-3-Clause */
/* Files by path and build id, static variables by file and address: see perf-files.h. */
#include "analysis/perf-files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A build id that was recorded must be the file's; a shorter one is padded with zeros. */
static bool is_build(const struct elf_shape *shape, const unsigned char *build_id, size_t n_build_id)
{
    size_t n = shape->n_build_id < n_build_id ? shape->n_build_id : n_build_id;
    if (n_build_id == 0)
        return true;
    if (n == 0 || memcmp(shape->build_id, build_id, n) != 0)
        return false;
    for (size_t i = n; i < n_build_id; i++)
        if (build_id[i])
            return false;
    return true;
}

static void examine(struct perf_file *file, const unsigned char *build_id, size_t n_build_id)
{
    if (file->path[0] != '/')
        return;
    if (access(file->path, R_OK) != 0) {
        file->is_missing = true;
    } else if (elf_shape_read(file->path, &file->shape, NULL) == 0) {
        file->is_elf = is_build(&file->shape, build_id, n_build_id);
        file->is_other = !file->is_elf;
    }
    if (file->is_other) {
        char *shown = NULL;
        if (asprintf(&shown, "%s [another build]", file->path) >= 0) {
            free(file->shown);
            file->shown = shown;
        }
    }
}

int64_t perf_files_find(struct perf_files *files, const char *path, const unsigned char *build_id, size_t n_build_id)
{
    struct buf key = {0};
    buf_printf(&key, "%s ", path);
    for (size_t i = 0; i < n_build_id; i++)
        buf_printf(&key, "%02x", build_id[i]);
    int64_t index = -1;
    size_t n_before = files->keys.n_strings;
    if (!key.failed && vec_reserve(&files->files, &files->cap_files, n_before + 1, sizeof *files->files))
        index = strtab_intern(&files->keys, key.data);
    buf_fini(&key);
    if (index < 0 || (size_t)index < n_before)
        return index;
    struct perf_file *file = &files->files[index];
    *file = (struct perf_file){.path = strdup(path), .shown = strdup(path)};
    if (file->path && file->shown)
        examine(file, build_id, n_build_id);
    return file->path && file->shown ? index : -1;
}

static size_t slot_of(const struct perf_files *files, const uint32_t *slots, size_t n_slots, uint32_t file,
                      uint64_t vaddr)
{
    size_t slot = (size_t)((vaddr ^ (uint64_t)file << 48) * 0x9e3779b97f4a7c15u >> 24) & (n_slots - 1);
    for (; slots[slot]; slot = (slot + 1) & (n_slots - 1)) {
        const struct perf_static *found = &files->statics[slots[slot] - 1];
        if (found->file == file && found->vaddr == vaddr)
            break;
    }
    return slot;
}

static bool grow_slots(struct perf_files *files)
{
    if (files->n_statics * 2 < files->n_slots)
        return true;
    size_t n_slots = files->n_slots ? 2 * files->n_slots : 256;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    for (size_t i = 0; slots && i < files->n_statics; i++)
        slots[slot_of(files, slots, n_slots, files->statics[i].file, files->statics[i].vaddr)] = (uint32_t)i + 1;
    if (!slots)
        return false;
    free(files->slots);
    files->slots = slots;
    files->n_slots = n_slots;
    return true;
}

int64_t perf_files_static(struct perf_files *files, uint32_t index, uint64_t vaddr)
{
    struct perf_file *file = &files->files[index];
    struct symbols_data data = {0};
    if (file->is_elf && !file->tried_symbols) {
        file->tried_symbols = true;
        if (symbols_open(file->path, &file->symbols, NULL) != 0)
            file->symbols = NULL;
    }
    if (!file->symbols || !symbols_data_at(file->symbols, vaddr, &data) || !data.name || !grow_slots(files))
        return -1;
    size_t slot = slot_of(files, files->slots, files->n_slots, index, data.vaddr);
    if (files->slots[slot])
        return files->slots[slot] - 1;
    if (!vec_reserve(&files->statics, &files->cap_statics, files->n_statics + 1, sizeof *files->statics))
        return -1;
    struct perf_static *added = &files->statics[files->n_statics];
    *added = (struct perf_static){
        .vaddr = data.vaddr, .size_bytes = data.size_bytes, .file = index, .name = strdup(data.name)};
    if (!added->name)
        return -1;
    files->slots[slot] = (uint32_t)++files->n_statics;
    return (int64_t)files->n_statics - 1;
}

void perf_files_fini(struct perf_files *files)
{
    for (size_t i = 0; i < files->keys.n_strings; i++) {
        symbols_close(files->files[i].symbols);
        elf_shape_fini(&files->files[i].shape);
        free(files->files[i].path);
        free(files->files[i].shown);
    }
    for (size_t i = 0; i < files->n_statics; i++)
        free(files->statics[i].name);
    free(files->files);
    free(files->statics);
    free(files->slots);
    strtab_fini(&files->keys);
    *files = (struct perf_files){0};
}
