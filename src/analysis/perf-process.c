/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of a process in a file of perf: see perf-process.h. */
#include "analysis/perf-process.h"

#include <stdlib.h>
#include <string.h>

#include "fnbounds/modtab.h"

#define PAGE_BYTES 4096
#define KERNEL_HALF (UINT64_C(1) << 63)
#define STACK_BYTES_MAX (UINT64_C(8) << 20)
#define PLACEHOLDER_STEP 16

/* The placeholder functions of a library that was never loaded: side files tell their names. */
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
        return error_set(err, ERR_MEMORY, "Out of memory for the samples of process %u", process->pid);
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
    /* Which build it is, for whoever reads the files later; else any number but 0. */
    uint64_t table_id = of->is_elf && of->shape.n_build_id
                            ? modtab_id_of_build_id(of->shape.build_id, of->shape.n_build_id)
                            : file + 1;
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

static struct perf_place unknown(enum unknown_reason reason)
{
    return (struct perf_place){.var = var_key(VAR_UNKNOWN, 0, reason),
                               .class = HIT_KERNEL_ADDR,
                               .fate = FATE_UNKNOWN_DATA,
                               .is_unlogged = reason == UNKNOWN_UNLOGGED};
}

static struct perf_place named(uint64_t var)
{
    return (struct perf_place){.var = var, .class = HIT_KERNEL_ADDR, .fate = FATE_NAMED};
}

/* A stack whose thread was not seen to begin is that of the first thread that touches it. */
static struct perf_place on_stack(struct perf_process *process, struct perf_mapping *mapping, uint32_t tid)
{
    if (!mapping->tid)
        mapping->tid = tid;
    size_t owner = perf_arena_thread(&process->arena, mapping->tid);
    if (owner == SIZE_MAX)
        return unknown(UNKNOWN_NO_BLOCK);
    return named(var_key(VAR_STACK_OTHER, 0, process->arena.threads[owner].ref));
}

static struct perf_place in_module(struct perf_process *process, struct perf_files *files,
                                   const struct perf_mapping *mapping, uint64_t address)
{
    struct perf_loaded *loaded = find_loaded(process, files, mapping->file, mapping->bias);
    int64_t variable = loaded ? perf_files_static(files, mapping->file, address - mapping->bias) : -1;
    if (variable >= 0) {
        struct perf_place place = named(var_key(VAR_STATIC, loaded->id, (uint32_t)variable));
        place.has_offset = true;
        place.offset = address - mapping->bias - files->statics[variable].vaddr;
        return place;
    }
    if (loaded && !loaded->string)
        loaded->string = perf_arena_string(&process->arena, files->files[mapping->file].shown);
    return loaded && loaded->string ? named(var_key(VAR_FILE, 0, loaded->string)) : unknown(UNKNOWN_NO_BLOCK);
}

/* The stack grows down to what was touched: what lies not far below it is the stack, too. */
static struct perf_mapping *stack_above(const struct perf_space *space, uint64_t address)
{
    for (size_t i = 0; i < space->n; i++)
        if (space->mappings[i].start > address)
            return space->mappings[i].kind == PERF_MAPPING_STACK && space->mappings[i].start - address < STACK_BYTES_MAX
                       ? &space->mappings[i]
                       : NULL;
    return NULL;
}

struct perf_place perf_process_data(struct perf_process *process, struct perf_files *files, uint64_t address,
                                    uint32_t tid)
{
    if (address == 0)
        return (struct perf_place){.var = var_key(VAR_NONE, 0, 0), .class = HIT_LOST, .fate = FATE_NO_ADDRESS_LOST};
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
    *process = (struct perf_process){0};
}
