/* SPDX-License-Identifier: BSD-3-Clause */
/* From addresses to code, and notes about what is missing for that: the packages that hold a module's files, read from
 * dpkg's lists (one text file for each package, one path a line); modules, their functions and loops, each address
 * looked up once; the notes about stripped programs (note_bare), unreadable files and other builds. See symbolize.h. */
#include "analysis/build/symbolize.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arena/arena.h"
#include "base/input.h"
#include "base/path.h"
#include "base/search.h"
#include "fnbounds/modtab.h"
#include "structure/elf/elf-file.h"

#define LINE_BYTES 4096

/* Where /lib is a link to /usr/lib, packages may still list files in /lib. */
static const char *without_usr(const char *path)
{
    return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

/* Sets the package of each wanted file in a list; returns how many there were. */
static size_t read_list(FILE *list, const char *package, size_t len, struct package_file *files, size_t n)
{
    char line[LINE_BYTES];
    size_t n_found = 0;
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        const char *path = without_usr(line);
        for (size_t i = 0; i < n; i++) {
            if (files[i].name[0] || strcmp(path, without_usr(files[i].path)) != 0)
                continue;
            (void)snprintf(files[i].name, sizeof files[i].name, "%.*s", (int)len, package);
            n_found++;
        }
    }
    return n_found;
}

/* Fills the package names of files [n] from the lists NAME.list or NAME:ARCHITECTURE.list in a directory; without
 * readable lists they stay empty. /usr/lib and /lib count as the same. */
static void packages_find(const char *directory, struct package_file *files, size_t n)
{
    DIR *entries = n ? opendir(directory) : NULL;
    size_t n_left = n;
    for (size_t i = 0; i < n; i++)
        files[i].name[0] = 0;
    for (struct dirent *entry; entries && n_left > 0 && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        size_t len = strlen(name);
        if (len <= 5 || strcmp(name + len - 5, ".list") != 0)
            continue;
        int fd = input_open(dirfd(entries), name, 0, NULL);
        FILE *list = fd >= 0 ? fdopen(fd, "r") : NULL;
        size_t end = strcspn(name, ":");
        if (list)
            n_left -= read_list(list, name, end < len - 5 ? end : len - 5, files, n);
        if (list)
            (void)fclose(list);
    }
    if (entries)
        (void)closedir(entries);
}

/* --- addresses to code --- */

/* Modules by path, and a table of all addresses looked up so far. */

struct placeholder_name {
    uint64_t ip;
    char *name;
};

struct named_function {
    uint64_t start, end;
    uint32_t name; /* string id of the model */
};

struct code_module {
    char *path;
    const char *shown; /* NULL until it is asked for; as long as the model */
    uint64_t build;    /* the build that was measured, 0 = not known */
    bool is_mixed;     /* several builds were measured */
    bool is_foreign;   /* the file on this machine is another build */
    bool is_noted;     /* the model knows its builds */
    bool tried, is_runtime, is_kernel, is_jit, is_region, is_python, looked_up;
    struct named_function *functions; /* [n_functions] of a kernel, of generated code, or regions, by address */
    size_t n_functions, cap_functions;
    struct symbols *symbols;
    struct structure *structure;           /* NULL until loops are needed */
    const struct structure_file *file;     /* the one that describes the module, NULL = none */
    size_t in_file;                        /* its number in that file */
    double n_samples;                      /* as far as they were counted */
    struct placeholder_name *placeholders; /* [n_placeholders] */
    size_t n_placeholders, cap_placeholders;
};

struct position {
    uint64_t vaddr;
    uint32_t module;   /* 0 = empty slot */
    uint32_t first, n; /* frames */
    uint8_t call_bytes;
    bool has_call_bytes; /* it has been asked for */
};

/* What the code behind a call does with what it yields. */
struct named_call {
    uint32_t module;
    uint8_t value, result; /* enum alloc_name_value, alloc_name_result */
    uint64_t return_vaddr;
    struct alloc_name *name; /* of results FOUND */
};

struct symbolizer {
    struct model *model;
    const struct structure_file *const *files; /* NULL-terminated, or NULL */
    struct strtab paths;                       /* module id = index + 1 */
    struct code_module *modules;               /* [paths.n_strings] */
    size_t cap_modules;
    struct position *slots; /* [n_slots] open addressing */
    size_t n_slots, n_used;
    struct code_frame *frames; /* [n_frames] pool */
    size_t n_frames, cap_frames;
    struct code_loop **loops; /* [n_loops] */
    size_t n_loops, cap_loops;
    struct named_call *calls; /* [n_calls] */
    size_t n_calls, cap_calls;
    struct slots call_slots;
    double n_samples; /* of all modules, as far as they were counted */
};

struct symbolizer *symbolizer_new(struct model *model)
{
    struct symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (symbolizer)
        symbolizer->model = model;
    return symbolizer;
}

static void free_module(struct code_module *module)
{
    structure_free(module->structure);
    symbols_close(module->symbols);
    free(module->functions);
    for (size_t i = 0; i < module->n_placeholders; i++)
        free(module->placeholders[i].name);
    free(module->placeholders);
}

void symbolizer_free(struct symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->paths.n_strings; i++)
        free_module(&symbolizer->modules[i]);
    free(symbolizer->modules);
    strtab_fini(&symbolizer->paths);
    free(symbolizer->slots);
    free(symbolizer->frames);
    for (size_t i = 0; i < symbolizer->n_loops; i++)
        free(symbolizer->loops[i]);
    free(symbolizer->loops);
    for (size_t i = 0; i < symbolizer->n_calls; i++)
        free(symbolizer->calls[i].name);
    free(symbolizer->calls);
    slots_fini(&symbolizer->call_slots);
    free(symbolizer);
}

void symbolizer_use_files(struct symbolizer *symbolizer, const struct structure_file *const *files)
{
    symbolizer->files = files;
}

static void find_file(const struct symbolizer *symbolizer, struct code_module *module)
{
    for (size_t i = 0; !module->file && symbolizer->files && symbolizer->files[i]; i++) {
        module->in_file = structure_file_module(symbolizer->files[i], module->path);
        if (module->in_file != SIZE_MAX)
            module->file = symbolizer->files[i];
    }
}

uint32_t symbolizer_module(struct symbolizer *symbolizer, const char *path)
{
    if (!vec_reserve(&symbolizer->modules, &symbolizer->cap_modules, symbolizer->paths.n_strings + 1,
                     sizeof *symbolizer->modules))
        return 0;
    int64_t id = strtab_intern(&symbolizer->paths, path);
    if (id < 0)
        return 0;
    struct code_module *module = &symbolizer->modules[id];
    module->path = symbolizer->paths.strings[id];
    find_file(symbolizer, module);
    module->is_runtime = strncmp(path_last(path), "libhpcrun", 9) == 0;
    module->is_kernel = strcmp(path, "[kernel]") == 0 || strncmp(path, "[kernel:", 8) == 0;
    module->is_jit = strncmp(path, "[jit:", 5) == 0;
    module->is_region = strcmp(path, "[region]") == 0;
    module->is_python = strcmp(path, PYTHON_MODULE) == 0;
    return (uint32_t)id + 1;
}

const char *symbolizer_name(struct symbolizer *symbolizer, uint32_t module)
{
    const char *path = symbolizer_path(symbolizer, module);
    struct code_module *known = module ? &symbolizer->modules[module - 1] : NULL;
    if (known && !known->shown)
        known->shown = model_module_name(symbolizer->model, path);
    return known ? known->shown : path;
}

const char *symbolizer_path(const struct symbolizer *symbolizer, uint32_t module)
{
    if (symbolizer_is_kernel(symbolizer, module))
        return "[kernel]";
    if (symbolizer_is_jit(symbolizer, module))
        return "[jit]";
    return module ? symbolizer->modules[module - 1].path : "";
}

bool symbolizer_is_kernel(const struct symbolizer *symbolizer, uint32_t module)
{
    return module && symbolizer->modules[module - 1].is_kernel;
}

bool symbolizer_is_jit(const struct symbolizer *symbolizer, uint32_t module)
{
    return module && symbolizer->modules[module - 1].is_jit;
}

bool symbolizer_is_python(const struct symbolizer *symbolizer, uint32_t module)
{
    return module && symbolizer->modules[module - 1].is_python;
}

bool symbolizer_is_region(const struct symbolizer *symbolizer, uint32_t module)
{
    return module && symbolizer->modules[module - 1].is_region;
}

bool symbolizer_is_runtime(const struct symbolizer *symbolizer, uint32_t module)
{
    return module && symbolizer->modules[module - 1].is_runtime;
}

void symbolizer_expect(struct symbolizer *symbolizer, uint32_t id, uint64_t build)
{
    struct code_module *module = id && build ? &symbolizer->modules[id - 1] : NULL;
    if (!module)
        return;
    module->is_mixed = module->is_mixed || (module->build && module->build != build);
    module->build = build;
}

void symbolizer_note_build(struct symbolizer *symbolizer, uint32_t id)
{
    struct code_module *module = &symbolizer->modules[id - 1];
    bool is_known = module->is_mixed || module->build;
    uint32_t path = module->is_noted || !is_known ? 0 : model_string(symbolizer->model, module->path);
    module->is_noted = true;
    if (path)
        (void)model_add_build(symbolizer->model, path, module->is_mixed ? 0 : module->build);
}

/* Files without a build id cannot be told apart. */
bool symbolizer_is_build(const char *path, uint64_t build)
{
    struct elf_shape shape = {0};
    if (elf_shape_read(path, &shape, NULL) != 0)
        return true;
    bool is_same = !shape.n_build_id || modtab_id_of_build_id(shape.build_id, shape.n_build_id) == build;
    elf_shape_fini(&shape);
    return is_same;
}

/* Whether the file that is there now is the one that was measured, where that is known. */
static bool is_same_build(const struct code_module *module)
{
    return !module->build || symbolizer_is_build(module->path, module->is_mixed ? 0 : module->build);
}

struct symbols *symbolizer_symbols(struct symbolizer *symbolizer, uint32_t id)
{
    if (id == 0)
        return NULL;
    struct code_module *module = &symbolizer->modules[id - 1];
    if (!module->tried) {
        module->tried = true;
        module->is_foreign = module->path[0] == '/' && !is_same_build(module);
        if (module->path[0] == '/' && !module->is_foreign && symbols_open(module->path, &module->symbols, NULL) != 0)
            module->symbols = NULL;
    }
    return module->symbols;
}

bool symbolizer_data_at(struct symbolizer *symbolizer, uint32_t module, bool is_tls, uint64_t vaddr,
                        struct symbols_data *data)
{
    struct symbols *symbols = symbolizer_symbols(symbolizer, module);
    if (symbols)
        return is_tls ? symbols_tls_at(symbols, vaddr, data) : symbols_data_at(symbols, vaddr, data);
    const struct code_module *known = module ? &symbolizer->modules[module - 1] : NULL;
    return known && known->file && !is_tls && structure_file_data_at(known->file, known->in_file, vaddr, data);
}

void symbolizer_add_placeholder(struct symbolizer *symbolizer, uint32_t id, uint64_t ip, const char *name)
{
    struct code_module *module = &symbolizer->modules[id - 1];
    for (size_t i = 0; i < module->n_placeholders; i++)
        if (module->placeholders[i].ip == ip)
            return;
    if (!vec_reserve(&module->placeholders, &module->cap_placeholders, module->n_placeholders + 1,
                     sizeof *module->placeholders))
        return;
    module->placeholders[module->n_placeholders++] = (struct placeholder_name){ip, strdup(name)};
}

const char *symbolizer_placeholder(struct symbolizer *symbolizer, uint32_t id, uint64_t ip)
{
    struct code_module *module = id ? &symbolizer->modules[id - 1] : NULL;
    if (!module || (!module->is_runtime && !module->n_placeholders))
        return NULL;
    for (size_t i = 0; i < module->n_placeholders; i++)
        if (module->placeholders[i].ip == ip)
            return module->placeholders[i].name;
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct symbols *symbols = module->n_placeholders ? NULL : symbolizer_symbols(symbolizer, id);
    if (!symbols || symbols_lookup(symbols, ip - 1, frames) == 0 || frames[0].low_vaddr != ip - 1 ||
        !frames[0].function || strncmp(frames[0].function, "DATACENTRIC", 11) != 0)
        return NULL;
    return frames[0].function;
}

static uint64_t hash_call(const void *item)
{
    const struct named_call *call = item;
    return (call->return_vaddr ^ (uint64_t)call->module << 48 ^ (uint64_t)call->value << 47) * 0x9e3779b97f4a7c15u;
}

static bool is_same_call(const void *one, const void *other)
{
    const struct named_call *a = one, *b = other;
    return a->module == b->module && a->value == b->value && a->return_vaddr == b->return_vaddr;
}

enum alloc_name_result symbolizer_alloc_name(struct symbolizer *symbolizer, uint32_t module, uint64_t return_vaddr,
                                             enum alloc_name_value value, struct alloc_name *out)
{
    static const struct slots_kind by_call = {sizeof(struct named_call), hash_call, is_same_call};
    struct named_call call = {.module = module, .value = (uint8_t)value, .return_vaddr = return_vaddr};
    struct symbols *symbols = symbolizer_symbols(symbolizer, module);
    if (!symbols)
        return ALLOC_NAME_UNKNOWN;
    bool has_room =
        slots_reserve(&symbolizer->call_slots, &by_call, symbolizer->calls, symbolizer->n_calls) &&
        vec_reserve(&symbolizer->calls, &symbolizer->cap_calls, symbolizer->n_calls + 1, sizeof *symbolizer->calls);
    size_t known = has_room ? slots_find(&symbolizer->call_slots, &by_call, symbolizer->calls, &call) : SLOTS_NONE;
    if (known != SLOTS_NONE) {
        if (symbolizer->calls[known].name)
            *out = *symbolizer->calls[known].name;
        return (enum alloc_name_result)symbolizer->calls[known].result;
    }
    enum alloc_name_result result = alloc_name_find(symbols, return_vaddr, value, out);
    call.result = (uint8_t)result;
    call.name = result == ALLOC_NAME_FOUND ? malloc(sizeof *call.name) : NULL;
    if (call.name)
        *call.name = *out;
    if (has_room && (call.name || result != ALLOC_NAME_FOUND)) {
        symbolizer->calls[symbolizer->n_calls] = call;
        slots_add(&symbolizer->call_slots, &by_call, symbolizer->calls, symbolizer->n_calls++);
    } else {
        free(call.name);
    }
    return result;
}

/* Number of functions that start at or before vaddr. */
static size_t count_until(const struct code_module *module, uint64_t vaddr)
{
    return search_upto(module->functions, module->n_functions, SEARCH_KEY(struct named_function, start), vaddr);
}

void symbolizer_add_function(struct symbolizer *symbolizer, uint32_t id, uint64_t start, uint64_t end, const char *name)
{
    struct code_module *module = &symbolizer->modules[id - 1];
    size_t at = count_until(module, start);
    if ((at > 0 && module->functions[at - 1].start == start) ||
        !vec_reserve(&module->functions, &module->cap_functions, module->n_functions + 1, sizeof *module->functions))
        return;
    memmove(module->functions + at + 1, module->functions + at, (module->n_functions - at) * sizeof *module->functions);
    module->functions[at] = (struct named_function){start, end, model_string(symbolizer->model, name)};
    module->n_functions++;
}

static size_t find_function(const struct symbolizer *symbolizer, uint32_t id, uint64_t vaddr,
                            struct symbols_frame *frame)
{
    const struct code_module *module = &symbolizer->modules[id - 1];
    size_t n = count_until(module, vaddr);
    if (n == 0 || vaddr >= module->functions[n - 1].end)
        return 0;
    frame->function = model_text(symbolizer->model, module->functions[n - 1].name);
    frame->low_vaddr = module->functions[n - 1].start;
    return 1;
}

static size_t slot_of(const struct position *slots, size_t n_slots, uint32_t module, uint64_t vaddr)
{
    uint64_t hash = (vaddr ^ (uint64_t)module << 48) * 0x9e3779b97f4a7c15u;
    size_t slot = (size_t)(hash >> 20) & (n_slots - 1);
    while (slots[slot].module && (slots[slot].module != module || slots[slot].vaddr != vaddr))
        slot = (slot + 1) & (n_slots - 1);
    return slot;
}

static bool grow_slots(struct symbolizer *symbolizer)
{
    if (symbolizer->n_used * 2 < symbolizer->n_slots)
        return true;
    size_t n = symbolizer->n_slots ? symbolizer->n_slots * 2 : 1024;
    struct position *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < symbolizer->n_slots; i++)
        if (symbolizer->slots[i].module)
            slots[slot_of(slots, n, symbolizer->slots[i].module, symbolizer->slots[i].vaddr)] = symbolizer->slots[i];
    free(symbolizer->slots);
    symbolizer->slots = slots;
    symbolizer->n_slots = n;
    return true;
}

static uint32_t unknown_file(struct symbolizer *symbolizer, uint32_t module)
{
    char text[512];
    const char *base = symbolizer_name(symbolizer, module);
    (void)snprintf(text, sizeof text, *base == '[' ? "<unknown file> %.400s" : "<unknown file> [%.400s]", base);
    return model_string(symbolizer->model, text);
}

/* How the name of a function is known. */
enum name_kind {
    NAME_GIVEN,    /* by symbols or debug information, or not at all */
    NAME_OF_RANGE, /* by the range of the unwind tables that it is */
    NAME_NONE      /* the module was read, and says nothing of this code: all such code of a module is one function */
};

static enum name_kind kind_of_name(const struct symbols *symbols, const struct symbols_frame *frame)
{
    if (frame->function)
        return strncmp(frame->function, "func_0x", 7) == 0 ? NAME_OF_RANGE : NAME_GIVEN;
    return symbols ? NAME_NONE : NAME_GIVEN;
}

/* Fills in names that the debug information lacks. */
static void complete_frame(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr, enum name_kind kind,
                           struct code_frame *frame)
{
    char text[600], where[520];
    const char *base = module ? symbolizer_name(symbolizer, module) : "unknown module";
    (void)snprintf(where, sizeof where, *base == '[' ? "%.500s" : "[%.500s]", base);
    if (kind == NAME_NONE || (!frame->function && !vaddr))
        (void)snprintf(text, sizeof text, CODE_WITHOUT_SYMBOLS "%s", where);
    else if (!frame->function)
        (void)snprintf(text, sizeof text, "0x%llx %s", (unsigned long long)vaddr, where);
    else if (kind == NAME_OF_RANGE)
        (void)snprintf(text, sizeof text, "%.64s %s", model_text(symbolizer->model, frame->function), where);
    frame->named = frame->function && kind == NAME_GIVEN;
    if (!frame->named)
        frame->function = model_string(symbolizer->model, text);
    if (!frame->decl_file)
        frame->decl_file = frame->file ? frame->file : unknown_file(symbolizer, module);
    if (!frame->file)
        frame->file = frame->decl_file;
}

static struct code_frame import_frame(struct model *model, const struct symbols_frame *from)
{
    return (struct code_frame){.function = model_string(model, from->function),
                               .decl_file = model_string(model, from->decl_file),
                               .decl_line = from->decl_line,
                               .file = model_string(model, from->file),
                               .line = from->line,
                               .column = from->column,
                               .low_vaddr = from->low_vaddr,
                               .die = from->die};
}

static const struct code_loop *add_loop(struct symbolizer *symbolizer, const struct structure_scope *scope,
                                        const struct code_loop *outer)
{
    struct code_loop *loop = malloc(sizeof *loop);
    if (!loop ||
        !vec_reserve(&symbolizer->loops, &symbolizer->cap_loops, symbolizer->n_loops + 1, sizeof *symbolizer->loops)) {
        free(loop);
        return outer;
    }
    *loop = (struct code_loop){.outer = outer,
                               .file = model_string(symbolizer->model, scope->file),
                               .line = scope->line,
                               .end_line = scope->end_line,
                               .vaddr = scope->vaddr};
    return symbolizer->loops[symbolizer->n_loops++] = loop;
}

/* Gives the scope's loops, outermost first, to the frames [n] of the functions that they are in. Returns the number of
 * inlined functions around the scope, itself included. */
static size_t set_loops(struct symbolizer *symbolizer, const struct structure_function *function, uint32_t index,
                        struct code_frame *frames, size_t n)
{
    const struct structure_scope *scope = &function->scopes[index];
    if (scope->parent == STRUCTURE_NONE)
        return 0;
    size_t depth = set_loops(symbolizer, function, scope->parent, frames, n);
    if (scope->kind == STRUCTURE_LOOP && scope->line > 0 && depth < n)
        frames[depth].loop = add_loop(symbolizer, scope, frames[depth].loop);
    return depth + (scope->kind == STRUCTURE_INLINED);
}

static const struct structure_function *find_structure(struct code_module *module, uint64_t vaddr)
{
    if (module->file)
        return structure_file_function_at(module->file, module->in_file, vaddr);
    if (!module->symbols || !symbols_has_debug(module->symbols))
        return NULL;
    if (!module->structure)
        module->structure = structure_new(module->symbols);
    return module->structure ? structure_function_at(module->structure, vaddr) : NULL;
}

/* Finds the loops around vaddr for its frames [n]. */
static void find_loops(struct symbolizer *symbolizer, uint32_t id, uint64_t vaddr, struct code_frame *frames, size_t n)
{
    const struct structure_function *function = id ? find_structure(&symbolizer->modules[id - 1], vaddr) : NULL;
    uint32_t span = function ? structure_span_at(function, vaddr) : STRUCTURE_NONE;
    if (span != STRUCTURE_NONE)
        (void)set_loops(symbolizer, function, function->spans[span].scope, frames, n);
}

bool symbolizer_nest(struct symbolizer *symbolizer, uint32_t id, uint64_t vaddr, struct code_nest *nest)
{
    struct code_module *module = id ? &symbolizer->modules[id - 1] : NULL;
    if (!module || !symbolizer_symbols(symbolizer, id) || !find_structure(module, vaddr) || !module->structure ||
        !structure_nest_at(module->structure, vaddr, &nest->nest) || !nest->nest.inner->line)
        return false;
    nest->file = model_string(symbolizer->model, nest->nest.inner->file);
    nest->outer_file = model_string(symbolizer->model, nest->nest.outer->file);
    return true;
}

/* Splits the "FUNCTION\nFILE\nLINE\nFIRST" of a Python frame, in text; measurements of before have no FIRST. */
static void split_python(struct symbols_frame *frame, char *text, size_t size)
{
    (void)snprintf(text, size, "%s", frame->function);
    char *file = strchr(text, '\n'), *line = file ? strchr(file + 1, '\n') : NULL;
    if (!line)
        return;
    *file++ = 0;
    *line++ = 0;
    frame->function = text;
    frame->file = frame->decl_file = file;
    frame->line = frame->decl_line = (uint32_t)strtoul(line, &line, 10);
    if (*line == '\n')
        frame->decl_line = (uint32_t)strtoul(line + 1, NULL, 10);
}

/* Looks the address up in the module and appends its frames to the pool; returns their number, at least 1. */
static uint32_t make_frames(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr)
{
    char text[512];
    struct symbols_frame found[SYMBOLS_FRAMES_MAX] = {{0}};
    const struct code_module *known = module ? &symbolizer->modules[module - 1] : NULL;
    size_t n = known && known->file ? structure_file_lookup(known->file, known->in_file, vaddr, found) : 0;
    struct symbols *symbols = n == 0 ? symbolizer_symbols(symbolizer, module) : NULL;
    if (symbols)
        n = symbols_lookup(symbols, vaddr, found);
    bool is_code = n > 0;
    if (known && (known->is_kernel || known->is_jit || known->is_region || known->is_python))
        n = find_function(symbolizer, module, vaddr, found);
    if (n == 1 && known && known->is_python)
        split_python(found, text, sizeof text);
    if (module)
        symbolizer->modules[module - 1].looked_up = true;
    if (n == 0)
        n = 1;
    if (!vec_reserve(&symbolizer->frames, &symbolizer->cap_frames, symbolizer->n_frames + n,
                     sizeof *symbolizer->frames))
        return 0;
    for (size_t i = 0; i < n; i++) {
        struct code_frame frame = import_frame(symbolizer->model, &found[i]);
        complete_frame(symbolizer, module, vaddr, kind_of_name(is_code ? symbols : NULL, &found[i]), &frame);
        symbolizer->frames[symbolizer->n_frames++] = frame;
    }
    find_loops(symbolizer, module, vaddr, &symbolizer->frames[symbolizer->n_frames - n], n);
    return (uint32_t)n;
}

static const struct code_frame nothing;

size_t symbolizer_lookup(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr,
                         const struct code_frame **frames)
{
    *frames = &nothing;
    return symbolizer_is_runtime(symbolizer, module) ? 1 : symbolizer_lookup_any(symbolizer, module, vaddr, frames);
}

size_t symbolizer_lookup_any(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr,
                             const struct code_frame **frames)
{
    *frames = &nothing;
    if (!grow_slots(symbolizer))
        return 1;
    /* module 0 (no module) is stored under an id of its own, because 0 marks an empty slot */
    uint32_t key = module ? module : UINT32_MAX;
    struct position *position = &symbolizer->slots[slot_of(symbolizer->slots, symbolizer->n_slots, key, vaddr)];
    if (!position->module) {
        uint32_t first = (uint32_t)symbolizer->n_frames;
        uint32_t n = make_frames(symbolizer, module, vaddr);
        if (n == 0)
            return 1;
        *position = (struct position){.vaddr = vaddr, .module = key, .first = first, .n = n};
        symbolizer->n_used++;
    }
    *frames = &symbolizer->frames[position->first];
    return position->n;
}

unsigned symbolizer_call_bytes(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr)
{
    const struct code_frame *frames;
    (void)symbolizer_lookup_any(symbolizer, module, vaddr, &frames);
    struct position *position =
        symbolizer->n_slots ? &symbolizer->slots[slot_of(symbolizer->slots, symbolizer->n_slots, module, vaddr)] : NULL;
    struct symbols *symbols = module ? symbolizer_symbols(symbolizer, module) : NULL;
    if (!position || position->module != module || !symbols)
        return 0;
    if (!position->has_call_bytes)
        position->call_bytes = (uint8_t)call_bytes(symbols, vaddr + 1);
    position->has_call_bytes = true;
    return position->call_bytes;
}

const char *symbolizer_text(const struct symbolizer *symbolizer, uint32_t id)
{
    return model_text(symbolizer->model, id);
}

#define NAMES_NOTED 12
#define BARE_NAMED 2   /* modules without debug information */
#define BARE_LEAST 1.0 /* percent of the samples that these have */

/* The last parts of the paths of modules, each once. */
struct name_list {
    struct strtab names;
    uint32_t *n_files; /* [names.n_strings] */
    size_t cap_files;
    struct strtab files; /* by device and inode: one file may have several paths */
};

static void append_name(struct name_list *list, const struct code_module *module)
{
    struct stat status;
    char key[64];
    size_t n_files = list->files.n_strings, n = list->names.n_strings;
    if (stat(module->path, &status) == 0) {
        (void)snprintf(key, sizeof key, "%llu:%llu", (unsigned long long)status.st_dev,
                       (unsigned long long)status.st_ino);
        if (strtab_intern(&list->files, key) < (int64_t)n_files)
            return;
    }
    int64_t name = strtab_intern(&list->names, path_last(module->path));
    if (name < 0 || !vec_reserve(&list->n_files, &list->cap_files, list->names.n_strings, sizeof *list->n_files))
        return;
    if (list->names.n_strings > n)
        list->n_files[name] = 0;
    list->n_files[name]++;
}

/* Writes a sentence with the names, and frees the list. */
static void note_names(struct model *model, const char *what, struct name_list *list)
{
    struct buf text = {0};
    size_t n = list->names.n_strings;
    for (size_t i = 0; i < n && i < NAMES_NOTED; i++) {
        buf_printf(&text, "%s%s", i ? ", " : "", list->names.strings[i]);
        if (list->n_files[i] > 1)
            buf_printf(&text, " (%u files)", list->n_files[i]);
    }
    if (n > NAMES_NOTED)
        buf_printf(&text, " and %zu more", n - NAMES_NOTED);
    if (n && what)
        model_note(model, "%s: %s.", what, text.data ? text.data : "");
    buf_fini(&text);
    strtab_fini(&list->names);
    strtab_fini(&list->files);
    free(list->n_files);
}

/* A module without debug information, and its part of the samples. */
struct bare_module {
    const struct code_module *module;
    const char *package; /* that it is of, "" = none */
    double share;        /* percent of the samples whose causes were judged; 0: not known */
};

static int compare_bare(const void *a, const void *b)
{
    const struct bare_module *x = a, *y = b;
    return x->share > y->share ? -1 : x->share < y->share;
}

/* Puts the modules with most of the samples first, and drops those with hardly any, if it is known which have them.
 * Returns how many are left. */
static size_t order_bare(struct bare_module *bare, size_t n, double all)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        bare[i].share = all > 0 ? 100 * bare[i].module->n_samples / all : 0;
        if (all <= 0 || bare[i].share >= BARE_LEAST)
            bare[n_left++] = bare[i];
    }
    if (n_left)
        qsort(bare, n_left, sizeof *bare, compare_bare);
    return n_left;
}

/* Whether a file below /etc/apt names the archive. */
static bool is_in_file(const char *path, const char *archive)
{
    char line[LINE_BYTES];
    FILE *file = input_stream(path);
    bool is_found = false;
    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = *line != '#' && strstr(line, archive);
    if (file)
        (void)fclose(file);
    return is_found;
}

/* The archive of Debian's packages of debug information, if this is a Debian whose apt does not know it; else NULL. */
static const char *missing_archive(void)
{
    static const char archive[] = "debian-debug";
    char path[400];
    bool is_found = !is_in_file("/etc/os-release", "ID=debian") || is_in_file("/etc/apt/sources.list", archive);
    DIR *parts = opendir("/etc/apt/sources.list.d");
    for (const struct dirent *entry; parts && !is_found && (entry = readdir(parts));) {
        (void)snprintf(path, sizeof path, "/etc/apt/sources.list.d/%.255s", entry->d_name);
        is_found = entry->d_name[0] != '.' && is_in_file(path, archive);
    }
    if (parts)
        (void)closedir(parts);
    return is_found ? NULL : "deb.debian.org/debian-debug";
}

/* Appends the first modules, with their parts of the samples, and how many more there are. */
static void put_bare(const struct bare_module *bare, size_t n, bool is_packaged, struct buf *text)
{
    size_t n_put = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_again = false; /* under another path */
        for (size_t k = 0; k < i; k++)
            is_again |= strcmp(path_last(bare[k].module->path), path_last(bare[i].module->path)) == 0;
        if (is_again || is_packaged != (*bare[i].package != 0) || n_put++ >= BARE_NAMED)
            continue;
        buf_printf(text, "%s%s", n_put > 1 ? ", " : "", path_last(bare[i].module->path));
        if (bare[i].share >= 0.5)
            buf_printf(text, " (%.0f %%)", bare[i].share);
    }
    if (n_put > BARE_NAMED)
        buf_printf(text, " and %zu more", n_put - BARE_NAMED);
}

/* The note about modules of packages: which packages to install for those with the most samples. */
static void note_packaged(struct model *model, const struct bare_module *bare, size_t n)
{
    struct buf names = {0}, packages = {0};
    struct strtab known = {0};
    bool needs_archive = false;
    for (size_t i = 0; i < n && known.n_strings < BARE_NAMED; i++) {
        size_t n_known = known.n_strings;
        bool is_libc = strcmp(bare[i].package, "libc6") == 0; /* its package has another name, in the main archive */
        if (*bare[i].package && strtab_intern(&known, bare[i].package) == (int64_t)n_known) {
            buf_printf(&packages, " %s-%s", bare[i].package, is_libc ? "dbg" : "dbgsym");
            needs_archive |= !is_libc;
        }
    }
    put_bare(bare, n, true, &names);
    const char *archive = needs_archive ? missing_archive() : NULL;
    if (known.n_strings)
        model_note(model, "Without debug information: %s: apt install%s%s%s%s.", names.data, packages.data,
                   archive ? " (from " : "", archive ? archive : "", archive ? ", which apt's sources lack here)" : "");
    strtab_fini(&known);
    buf_fini(&names);
    buf_fini(&packages);
}

/* Writes the notes about stripped modules (without debug information). For those of packages they say which packages
 * to install, for all others that -g is needed. */
static void note_bare(struct model *model, struct bare_module *bare, size_t n)
{
    struct buf names = {0};
    struct package_file *files = calloc(n + 1, sizeof *files);
    for (size_t i = 0; files && i < n; i++)
        files[i].path = bare[i].module->path;
    if (files)
        packages_find(PACKAGES_DIRECTORY, files, n);
    for (size_t i = 0; i < n; i++)
        bare[i].package = files ? files[i].name : "";
    note_packaged(model, bare, n);
    put_bare(bare, n, false, &names);
    if (names.data)
        model_note(model, "Without debug information (compile with -g for lines and inlining): %s.", names.data);
    buf_fini(&names);
    free(files);
}

void symbolizer_count(struct symbolizer *symbolizer, uint32_t id, double n_samples)
{
    symbolizer->n_samples += n_samples;
    if (id)
        symbolizer->modules[id - 1].n_samples += n_samples;
}

void symbolizer_note_missing(struct symbolizer *symbolizer)
{
    struct name_list absent = {0}, foreign = {0};
    struct bare_module *bare = calloc(symbolizer->paths.n_strings + 1, sizeof *bare);
    size_t n_bare = 0;
    bool is_kernel_nameless = false;
    for (size_t i = 0; i < symbolizer->paths.n_strings; i++) {
        const struct code_module *module = &symbolizer->modules[i];
        is_kernel_nameless |= module->is_kernel && module->looked_up && module->n_functions == 0;
        if (!module->looked_up || module->path[0] != '/' || module->file)
            continue;
        if (module->is_foreign)
            append_name(&foreign, module);
        else if (!module->symbols)
            append_name(&absent, module);
        else if (bare && !symbols_has_debug(module->symbols))
            bare[n_bare++].module = module;
    }
    note_names(symbolizer->model, "Another build than the one that was measured, so functions are shown by address",
               &foreign);
    note_names(symbolizer->model, "Not readable here, so functions are shown by address", &absent);
    if (bare)
        note_bare(symbolizer->model, bare, order_bare(bare, n_bare, symbolizer->n_samples));
    free(bare);
    if (is_kernel_nameless)
        model_note(symbolizer->model, "The kernel hid the addresses of its functions from the measurement (sysctl "
                                      "kernel.kptr_restrict), so they are shown by address.");
}
