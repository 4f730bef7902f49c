/* SPDX-License-Identifier: BSD-3-Clause */
/* All functions of a module; several threads share its units. */
#include "structure/structure.h"

#include <dwarf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "fnbounds/modtab-make.h"
#include "structure/structure-make.h"

/* --- the functions of a unit --- */

/* One walk visits each entry once, as part of the function that it lies in. */

#define WALK_DEPTH_MAX 64

/* One walk over a unit. */
struct unit_walk {
    struct structure *structure;
    struct dwarf_unit *unit;
    void (*take)(void *context, struct structure_function *function);
    void *context;
    bool is_c; /* structures hold no functions */
};

static bool walk_scope(struct unit_walk *walk, Dwarf_Die *die, unsigned depth);

static bool walk_children(struct unit_walk *walk, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return true;
    do
        if (!walk_scope(walk, &die, depth))
            return false;
    while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

/* Makes a function that has code, then those inside it. */
static bool walk_function(struct unit_walk *walk, Dwarf_Die *die, unsigned depth)
{
    struct structure *structure = walk->structure;
    struct structure_function function;
    structure->n_inside = 0;
    if (!structure_make(structure, walk->unit, die, &function))
        return false;
    if (function.n_scopes)
        walk->take(walk->context, &function);
    size_t n = depth < WALK_DEPTH_MAX ? structure->n_inside : 0;
    if (n == 0)
        return true;
    Dwarf_Die *inside = malloc(n * sizeof *inside);
    bool ok = inside != NULL;
    if (ok)
        memcpy(inside, structure->inside, n * sizeof *inside);
    for (size_t i = 0; ok && i < n; i++)
        ok = walk_scope(walk, &inside[i], depth + 1);
    free(inside);
    return ok;
}

/* Makes the functions inside an entry that may hold some. */
static bool walk_scope(struct unit_walk *walk, Dwarf_Die *die, unsigned depth)
{
    Dwarf_Addr base = 0, low = 0, high = 0;
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        if (dwarf_ranges(die, 0, &base, &low, &high) > 0)
            return walk_function(walk, die, depth);
        return walk_children(walk, die, depth + 1);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return walk->is_c || walk_children(walk, die, depth + 1);
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_lexical_block:
        return walk_children(walk, die, depth + 1);
    default:
        return true;
    }
}

static bool is_c(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
        return true;
    default:
        return false;
    }
}

/* Number of compilation units, for structure_unit. */
static size_t structure_n_units(const struct structure *structure)
{
    return structure->symbols->n_units;
}

/* Makes every function of unit i and passes each to take, which owns it then (structure_function_fini).
 * Returns false when out of memory. */
static bool structure_unit(struct structure *structure, size_t i, void (*take)(void *, struct structure_function *),
                           void *context)
{
    struct dwarf_unit *unit = &structure->symbols->units[i];
    struct unit_walk walk = {structure, unit, take, context, is_c(&unit->scopes)};
    return walk_children(&walk, &unit->scopes, 0);
}

/* --- the units of a module --- */

/* The DWARF library is not thread-safe, so each thread opens the file for itself. */

struct structure_worker {
    const char *path;
    struct symbols *symbols;
    struct structure *structure;
    atomic_size_t *next_unit;
    pthread_t thread;
    bool is_running, failed;
    struct structure_function *functions; /* [n_functions] */
    size_t n_functions, cap_functions;
};

static void take_function(void *context, struct structure_function *function)
{
    struct structure_worker *worker = context;
    if (function->n_spans == 0 || worker->failed ||
        !vec_reserve(&worker->functions, &worker->cap_functions, worker->n_functions + 1, sizeof *function)) {
        worker->failed |= function->n_spans > 0;
        structure_function_fini(function);
        return;
    }
    worker->functions[worker->n_functions++] = *function;
}

static void *work(void *context)
{
    struct structure_worker *worker = context;
    if (!worker->symbols && symbols_open(worker->path, &worker->symbols, NULL) != 0)
        return NULL; /* the others do its work */
    if (!worker->structure)
        worker->structure = structure_new(worker->symbols);
    if (!worker->structure) {
        worker->failed = true;
        return NULL;
    }
    size_t n = structure_n_units(worker->structure);
    for (size_t i = 0; !worker->failed && (i = atomic_fetch_add(worker->next_unit, 1)) < n;)
        if (!structure_unit(worker->structure, i, take_function, worker))
            worker->failed = true;
    return NULL;
}

/* The first worker is this thread. */
static bool run_workers(struct structure_module *module, const struct structure_options *options,
                        struct symbols *symbols)
{
    size_t n_units = symbols->n_units, n = options->n_jobs;
    atomic_size_t next_unit = 0;
    n = n > n_units ? n_units : n;
    n = n == 0 ? 1 : n;
    module->workers = calloc(n, sizeof *module->workers);
    if (!module->workers) {
        symbols_close(symbols);
        return false;
    }
    module->n_workers = n;
    module->workers[0].symbols = symbols;
    for (size_t i = n; i-- > 0;) {
        struct structure_worker *worker = &module->workers[i];
        worker->path = module->path;
        worker->next_unit = &next_unit;
        if (i == 0)
            (void)work(worker);
        else
            worker->is_running = pthread_create(&worker->thread, NULL, work, worker) == 0;
    }
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        if (module->workers[i].is_running)
            (void)pthread_join(module->workers[i].thread, NULL);
        ok &= !module->workers[i].failed;
    }
    return ok && module->workers[0].structure;
}

static bool collect(struct structure_module *module)
{
    for (size_t w = 0; w < module->n_workers; w++) {
        struct structure_worker *worker = &module->workers[w];
        if (!vec_reserve(&module->functions, &module->cap_functions, module->n_functions + worker->n_functions + 1,
                         sizeof *module->functions))
            return false;
        if (worker->n_functions)
            memcpy(module->functions + module->n_functions, worker->functions,
                   worker->n_functions * sizeof *worker->functions);
        module->n_functions += worker->n_functions;
        worker->n_functions = 0;
    }
    return true;
}

static int compare_entries(const void *a, const void *b)
{
    const struct structure_function *x = a, *y = b;
    if (x->spans[0].start != y->spans[0].start)
        return x->spans[0].start < y->spans[0].start ? -1 : 1;
    const char *left = x->scopes[0].name, *right = y->scopes[0].name;
    return strcmp(left ? left : "", right ? right : "");
}

/* Keeps one of several functions with the same start: linkers fold identical functions. */
static void drop_doubles(struct structure_module *module)
{
    size_t n = 0;
    if (module->n_functions > 1)
        qsort(module->functions, module->n_functions, sizeof *module->functions, compare_entries);
    for (size_t i = 0; i < module->n_functions; i++) {
        struct structure_function *function = &module->functions[i];
        if (n > 0 && module->functions[n - 1].spans[0].start == function->spans[0].start)
            structure_function_fini(function);
        else
            module->functions[n++] = *function;
    }
    module->n_functions = n;
}

static bool add_covered(struct modtab_vec *covered, const struct structure_function *function)
{
    for (size_t i = 0; i < function->n_spans; i++) {
        const struct structure_span *span = &function->spans[i];
        struct cfg_range *last = covered->n ? (struct cfg_range *)covered->items + covered->n - 1 : NULL;
        if (last && last->end == span->start) {
            last->end = span->end;
            continue;
        }
        const struct cfg_range range = {span->start, span->end};
        modtab_vec_push(covered, &range, sizeof range);
    }
    return !covered->failed;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct cfg_range *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* True when the code is only what assemblers fill gaps with: nop of any length, int3, zeros. */
static bool is_padding(const struct structure *structure, uint64_t start, uint64_t end)
{
    uint64_t n_bytes = 0;
    const uint8_t *bytes = code_image_bytes(&structure->image, start, &n_bytes);
    static const uint8_t filler[] = {0x00, 0x0f, 0x1f, 0x2e, 0x40, 0x44, 0x66, 0x80, 0x84, 0x90, 0xcc};
    for (uint64_t i = 0; bytes && i < n_bytes && i < end - start; i++)
        if (!memchr(filler, bytes[i], sizeof filler))
            return false;
    return true;
}

/* Adds a function for [start, end), cut off at the first covered range. */
static bool add_bare(struct structure_module *module, const struct modtab_vec *covered,
                     const struct modtab_range *found, uint64_t end)
{
    struct structure *structure = module->workers[0].structure;
    uint64_t start = found->start;
    const struct cfg_range *ranges = covered->items;
    size_t low = search_upto(ranges, covered->n, SEARCH_KEY(struct cfg_range, end), start);
    if (low < covered->n && ranges[low].start < end)
        end = ranges[low].start;
    struct structure_function function;
    if (start >= end || (!found->name && is_padding(structure, start, end)))
        return true;
    if (!vec_reserve(&module->functions, &module->cap_functions, module->n_functions + 1, sizeof function) ||
        !structure_bare(structure, start, end, &function))
        return false;
    if (function.n_spans)
        module->functions[module->n_functions++] = function;
    else
        structure_function_fini(&function);
    return true;
}

/* Adds the code that the debug information does not know: from symbols, from unwind tables, then what remains. */
static bool add_bare_functions(struct structure_module *module)
{
    struct modtab_elf elf;
    struct modtab_vec covered = {0}, fdes = {0}, functions = {0};
    bool ok = true;
    if (modtab_elf_open(&elf, module->path, NULL) != 0)
        return true;
    for (size_t i = 0; ok && i < module->n_functions; i++)
        ok = add_covered(&covered, &module->functions[i]);
    if (covered.n)
        qsort(covered.items, covered.n, sizeof(struct cfg_range), compare_ranges);
    modtab_make_fdes(&elf, &fdes);
    modtab_make_funcs(&elf, &fdes, true, &functions);
    const struct modtab_range *found = functions.items;
    for (size_t i = 0; ok && i < functions.n; i++) {
        uint64_t end = found[i].end > found[i].start ? found[i].end
                       : i + 1 < functions.n         ? found[i + 1].start
                                                     : found[i].start + 1;
        ok = add_bare(module, &covered, &found[i], end);
    }
    ok &= !fdes.failed && !functions.failed;
    free(covered.items);
    free(fdes.items);
    free(functions.items);
    modtab_elf_close(&elf);
    return ok;
}

static int compare_variables(const void *a, const void *b)
{
    const struct structure_variable *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->start > y->start) - (x->start < y->start);
}

/* The name in the source: readable, and without the number that compilers append to the name of a static variable in a
 * function. */
static const char *variable_name(struct symbols *symbols, const struct elf_symbol *symbol)
{
    char name[256];
    size_t len = strlen(symbol->name), digits = len;
    while (digits > 0 && symbol->name[digits - 1] >= '0' && symbol->name[digits - 1] <= '9')
        digits--;
    if (symbol->bind != STB_LOCAL || digits == len || digits < 2 || symbol->name[digits - 1] != '.' ||
        len >= sizeof name)
        return symbols_own_name(symbols, symbol->name);
    memcpy(name, symbol->name, digits - 1);
    name[digits - 1] = 0;
    return symbols_own_name(symbols, name);
}

static bool add_variables(struct structure_module *module, struct symbols *symbols, uint64_t bytes_min)
{
    const struct elf_symbols *list = &symbols->elf[ELF_SYMBOL_DATA];
    for (size_t i = 0; i < list->n; i++) {
        const struct elf_symbol *symbol = &list->items[i];
        if (symbol->vaddr == 0 || symbol->size_bytes < bytes_min || symbol->size_bytes > UINT64_MAX - symbol->vaddr ||
            (i > 0 && list->items[i - 1].vaddr == symbol->vaddr))
            continue;
        const char *name = variable_name(symbols, symbol);
        if (!vec_reserve(&module->variables, &module->cap_variables, module->n_variables + 1,
                         sizeof *module->variables))
            return false;
        module->variables[module->n_variables++] =
            (struct structure_variable){symbol->vaddr, symbol->vaddr + symbol->size_bytes, name ? name : symbol->name};
    }
    if (module->n_variables > 1)
        qsort(module->variables, module->n_variables, sizeof *module->variables, compare_variables);
    return true;
}

static int compare_functions(const void *a, const void *b)
{
    const struct structure_function *x = a, *y = b;
    const char *left = x->scopes[0].file, *right = y->scopes[0].file;
    int order = !left - !right;
    if (order == 0 && left != right)
        order = strcmp(left, right);
    return order ? order : compare_entries(a, b);
}

static void count(struct structure_module *module)
{
    for (size_t i = 0; i < module->n_functions; i++) {
        const struct structure_function *function = &module->functions[i];
        module->n_unresolved += function->n_unresolved;
        for (size_t s = 0; s < function->n_scopes; s++) {
            module->n_loops += function->scopes[s].kind == STRUCTURE_LOOP;
            module->n_irreducible += function->scopes[s].is_irreducible;
        }
    }
}

int structure_module_load(const char *path, const struct structure_options *options, struct structure_module *module,
                          struct error *err)
{
    struct symbols *symbols = NULL;
    *module = (struct structure_module){0};
    int code = symbols_open(path, &symbols, err);
    if (code != 0)
        return code;
    module->path = realpath(path, NULL);
    if (!module->path)
        symbols_close(symbols);
    bool ok = module->path && run_workers(module, options, symbols) && collect(module);
    if (ok) {
        drop_doubles(module);
        ok = add_bare_functions(module) && add_variables(module, symbols, options->bytes_min);
    }
    if (!ok) {
        structure_module_fini(module);
        return error_set(err, ERR_MEMORY, "%s: out of memory while its structure is made", path);
    }
    module->has_debug = symbols_has_debug(symbols);
    module->knows_loops = structure_knows_loops(module->workers[0].structure);
    if (module->n_functions > 1)
        qsort(module->functions, module->n_functions, sizeof *module->functions, compare_functions);
    count(module);
    return 0;
}

struct symbols *structure_module_symbols(const struct structure_module *module)
{
    return module->workers[0].symbols;
}

void structure_module_fini(struct structure_module *module)
{
    for (size_t i = 0; i < module->n_functions; i++)
        structure_function_fini(&module->functions[i]);
    for (size_t w = 0; w < module->n_workers; w++) {
        struct structure_worker *worker = &module->workers[w];
        for (size_t i = 0; i < worker->n_functions; i++)
            structure_function_fini(&worker->functions[i]);
        free(worker->functions);
        structure_free(worker->structure);
        symbols_close(worker->symbols);
    }
    free(module->workers);
    free(module->functions);
    free(module->variables);
    free(module->path);
    *module = (struct structure_module){0};
}
