/* SPDX-License-Identifier: BSD-3-Clause */
/* The mappings, files and addresses of a process: see perf-import.h. */
#include "analysis/load/perf-import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/path.h"
#include "base/search.h"
#include "fnbounds/modtab.h"

static uint8_t kind_of(const struct perf_data_mmap *record)
{
    static const char *const files_in_memory[] = {"/dev/zero", "/anon_hugepage", "/memfd:", "/SYSV"};
    if (text_begins(record->path, "[stack"))
        return PERF_MAPPING_STACK;
    if (text_begins(record->path, "[vdso") || text_begins(record->path, "[vvar") ||
        text_begins(record->path, "[vsyscall") || text_begins(record->path, "[uprobes"))
        return PERF_MAPPING_VDSO;
    if (text_begins(record->path, "//anon") || record->path[0] == '[' || !record->path[0])
        return record->has_protection && record->protection == PROT_NONE ? PERF_MAPPING_GUARD : PERF_MAPPING_ANON;
    for (size_t i = 0; i < sizeof files_in_memory / sizeof files_in_memory[0]; i++)
        if (text_begins(record->path, files_in_memory[i]))
            return PERF_MAPPING_ANON;
    return PERF_MAPPING_FILE;
}

/* The number of mappings that end at or below the address. */
static size_t count_below(const struct perf_space *space, uint64_t address)
{
    return search_upto(space->mappings, space->n, SEARCH_KEY(struct perf_mapping, end), address);
}

/* Puts a mapping in place of what was there; mappings that it covers partly are cut, or split in two. */
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

/* The load bias of a mapping; without program segments, start minus file offset. number: the file's. */
static uint64_t bias_of(const struct perf_space *space, const struct perf_file *file, uint32_t number,
                        const struct perf_data_mmap *record)
{
    uint64_t known = 0, bias = record->start - record->file_offset;
    for (size_t i = 0; i < space->n && !known; i++)
        if (space->mappings[i].kind == PERF_MAPPING_FILE && space->mappings[i].file == number)
            known = space->mappings[i].bias;
    uint32_t protection = record->has_protection ? record->protection : record->is_data ? 0u : PROT_READ | PROT_EXEC;
    if (file->is_elf)
        (void)elf_shape_bias(&file->shape, record->start, record->file_offset, protection, known, &bias);
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
    /* a guard mapping that becomes accessible, except its first page, is the stack of a thread */
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

/* The mapping of the load module whose image contains the address: a mapping of its file, or of its zeroed data after
 * one. NULL when none does. */
static const struct perf_mapping *perf_space_module(const struct perf_space *space, const struct perf_files *files,
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

/* --- its files --- */

/* Files by path and build id, static variables by file and address: see perf-import.h. */

/* Whether the recorded build id is the file's; a shorter one is padded with zeros. */
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

static uint64_t hash_static(const void *item)
{
    const struct perf_static *of = item;
    return of->vaddr ^ (uint64_t)of->file << 48;
}

static bool is_same_static(const void *a, const void *b)
{
    const struct perf_static *x = a, *y = b;
    return x->file == y->file && x->vaddr == y->vaddr;
}

static const struct slots_kind by_file = {sizeof(struct perf_static), hash_static, is_same_static};

/* Index of the static variable at vaddr of a file; -1 when there is none. */
static int64_t perf_files_static(struct perf_files *files, uint32_t index, uint64_t vaddr)
{
    struct perf_file *file = &files->files[index];
    struct symbols_data data = {0};
    if (file->is_elf && !file->tried_symbols) {
        file->tried_symbols = true;
        if (symbols_open(file->path, &file->symbols, NULL) != 0)
            file->symbols = NULL;
    }
    if (!file->symbols || !symbols_data_at(file->symbols, vaddr, &data) || !data.name)
        return -1;
    struct perf_static added = {.vaddr = data.vaddr, .size_bytes = data.size_bytes, .file = index};
    size_t known = slots_find(&files->slots, &by_file, files->statics, &added);
    if (known != SLOTS_NONE)
        return (int64_t)known;
    if (!slots_reserve(&files->slots, &by_file, files->statics, files->n_statics) ||
        !vec_reserve(&files->statics, &files->cap_statics, files->n_statics + 1, sizeof *files->statics) ||
        !(added.name = strdup(data.name)))
        return -1;
    files->statics[files->n_statics] = added;
    slots_add(&files->slots, &by_file, files->statics, files->n_statics++);
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
    slots_fini(&files->slots);
    strtab_fini(&files->keys);
    *files = (struct perf_files){0};
}

/* --- the process --- */

/* The addresses of a process in a perf file: see perf-import.h. */

#define PAGE_BYTES 4096
#define KERNEL_HALF (UINT64_C(1) << 63)
#define STACK_BYTES_MAX (UINT64_C(8) << 20)
#define PLACEHOLDER_STEP 16

/* Adds the placeholder functions, in a library that was never loaded: side files give their names. */
static bool put_placeholders(struct perf_process *process)
{
    uint32_t id;
    struct arena_header *header = perf_arena_header(&process->arena);
    header->libhpcrun_module = perf_arena_module(&process->arena, "libhpcrun.so (perf)", 0, 0, &id);
    for (unsigned i = 0; i < PLACEHOLDER_MAX; i++)
        header->placeholders[i] = (i + 1) * PLACEHOLDER_STEP;
    return header->libhpcrun_module;
}

int perf_process_begin(struct perf_process *process, struct error *err)
{
    int code = perf_arena_init(&process->arena, process->pid, err);
    if (code)
        return code;
    process->has_arena = true;
    struct arena_header *header = perf_arena_header(&process->arena);
    if (!put_placeholders(process) || perf_arena_thread(&process->arena, process->pid) == SIZE_MAX)
        return error_set(err, ERR_MEMORY, "out of memory for the samples of process %u", process->pid);
    memcpy(header->exe, process->exe, sizeof header->exe);
    return 0;
}

static struct perf_loaded *find_loaded(struct perf_process *process, const struct perf_files *files, uint32_t file,
                                       uint64_t bias)
{
    for (size_t i = process->n_loaded; i-- > 0;)
        if (process->loaded[i].file == file && process->loaded[i].bias == bias)
            return &process->loaded[i];
    if (!vec_reserve(&process->loaded, &process->cap_loaded, process->n_loaded + 1, sizeof *process->loaded))
        return NULL;
    struct perf_loaded *loaded = &process->loaded[process->n_loaded];
    *loaded = (struct perf_loaded){.bias = bias, .file = file};
    const struct perf_file *of = &files->files[file];
    /* identifies the build for later readers of the files; any number except 0 if there is no build id */
    uint64_t table_id =
        of->is_elf && of->shape.n_build_id ? modtab_id_of_build_id(of->shape.build_id, of->shape.n_build_id) : file + 1;
    loaded->module = perf_arena_module(&process->arena, of->shown, bias, table_id, &loaded->id);
    if (!loaded->module)
        return NULL;
    process->n_loaded++;
    return loaded;
}

struct perf_loaded *perf_process_code(struct perf_process *process, struct perf_files *files, uint64_t ip,
                                      bool is_kernel)
{
    if (is_kernel && files->kernel == 0)
        files->kernel = perf_files_find(files, "[kernel.kallsyms]", NULL, 0) + 1;
    if (is_kernel)
        return files->kernel ? find_loaded(process, files, (uint32_t)(files->kernel - 1), 0) : NULL;
    const struct perf_mapping *mapping = perf_space_at(&process->space, ip);
    if (mapping && mapping->kind == PERF_MAPPING_FILE)
        return find_loaded(process, files, mapping->file, mapping->bias);
    if (!mapping || mapping->kind != PERF_MAPPING_VDSO)
        return NULL;
    int64_t file = perf_files_find(files, "[vdso]", NULL, 0);
    return file < 0 ? NULL : find_loaded(process, files, (uint32_t)file, mapping->start);
}

static struct perf_target unknown(enum unknown_reason reason)
{
    return (struct perf_target){.var = var_key(VAR_UNKNOWN, 0, reason),
                                .class = HIT_KERNEL_ADDR,
                                .fate = FATE_UNKNOWN_DATA,
                                .is_unlogged = reason == UNKNOWN_UNLOGGED};
}

static struct perf_target named(uint64_t var)
{
    return (struct perf_target){.var = var, .class = HIT_KERNEL_ADDR, .fate = FATE_NAMED};
}

/* A stack whose thread was not seen to begin belongs to the first thread that touches it. */
static struct perf_target on_stack(struct perf_process *process, struct perf_mapping *mapping, uint32_t tid)
{
    if (!mapping->tid)
        mapping->tid = tid;
    size_t owner = perf_arena_thread(&process->arena, mapping->tid);
    if (owner == SIZE_MAX)
        return unknown(UNKNOWN_NO_BLOCK);
    return named(var_key(VAR_STACK_OTHER, 0, process->arena.threads[owner].ref));
}

static struct perf_target in_module(struct perf_process *process, struct perf_files *files,
                                    const struct perf_mapping *mapping, uint64_t address)
{
    struct perf_loaded *loaded = find_loaded(process, files, mapping->file, mapping->bias);
    int64_t variable = loaded ? perf_files_static(files, mapping->file, address - mapping->bias) : -1;
    if (variable >= 0) {
        struct perf_target target = named(var_key(VAR_STATIC, loaded->id, (uint32_t)variable));
        target.has_offset = true;
        target.offset = address - mapping->bias - files->statics[variable].vaddr;
        return target;
    }
    if (loaded && !loaded->string)
        loaded->string = perf_arena_string(&process->arena, files->files[mapping->file].shown);
    return loaded && loaded->string ? named(var_key(VAR_FILE, 0, loaded->string)) : unknown(UNKNOWN_NO_BLOCK);
}

/* The stack grows down to the touched address, so an address not far below it is in the stack too. */
static struct perf_mapping *stack_above(const struct perf_space *space, uint64_t address)
{
    for (size_t i = 0; i < space->n; i++)
        if (space->mappings[i].start > address)
            return space->mappings[i].kind == PERF_MAPPING_STACK && space->mappings[i].start - address < STACK_BYTES_MAX
                       ? &space->mappings[i]
                       : NULL;
    return NULL;
}

struct perf_target perf_process_data(struct perf_process *process, struct perf_files *files, uint64_t address,
                                     uint32_t tid)
{
    if (address == 0)
        return (struct perf_target){.var = var_key(VAR_NONE, 0, 0), .class = HIT_LOST, .fate = FATE_NO_ADDRESS_LOST};
    if (address < PAGE_BYTES)
        return unknown(UNKNOWN_NULL);
    if (address >= KERNEL_HALF)
        return unknown(UNKNOWN_KERNEL);
    struct perf_mapping *mapping = perf_space_at(&process->space, address);
    if (!mapping)
        mapping = stack_above(&process->space, address);
    if (mapping && mapping->kind == PERF_MAPPING_STACK)
        return on_stack(process, mapping, tid);
    if (mapping && mapping->kind == PERF_MAPPING_VDSO)
        return unknown(UNKNOWN_VDSO);
    const struct perf_mapping *module = perf_space_module(&process->space, files, address);
    if (module)
        return in_module(process, files, module, address);
    return unknown(mapping && mapping->kind == PERF_MAPPING_ANON ? UNKNOWN_UNLOGGED : UNKNOWN_NO_BLOCK);
}

void perf_process_fini(struct perf_process *process)
{
    perf_space_fini(&process->space);
    perf_arena_fini(&process->arena);
    free(process->loaded);
    free(process->names);
    *process = (struct perf_process){0};
}
