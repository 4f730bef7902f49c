/* SPDX-License-Identifier: BSD-3-Clause */
/* Making functions one by one: see structure.h. */
#include "structure/structure.h"

#include <stdlib.h>
#include <string.h>

#include "structure/structure-internal.h"

/* What to call a function that the debug information does not know; only the symbols of its start are asked. */
static const char *name_at(void *context, uint64_t vaddr)
{
    struct symbols *symbols = context;
    const struct elf_symbol *symbol = symbols_elf_find(symbols, ELF_SYMBOL_CODE, vaddr);
    return symbol && symbol->vaddr == vaddr ? symbol->name : NULL;
}

struct structure *structure_new(struct symbols *symbols)
{
    Dwarf_Addr bias = 0;
    struct structure *structure = calloc(1, sizeof *structure);
    if (!structure)
        return NULL;
    structure->symbols = symbols;
    Elf *elf = dwfl_module_getelf(symbols->module, &bias);
    code_image_init(&structure->image, elf, bias);
    if (structure->image.machine != EM_X86_64)
        return structure;
    structure->decoder = cfg_decoder_new();
    structure->returns =
        structure->decoder ? returns_new(elf, &structure->image, structure->decoder, name_at, symbols) : NULL;
    if (!structure->returns) {
        structure_free(structure);
        return NULL;
    }
    return structure;
}

void structure_function_fini(struct structure_function *function)
{
    free(function->scopes);
    *function = (struct structure_function){0};
}

void structure_free(struct structure *structure)
{
    if (!structure)
        return;
    for (size_t i = 0; i < structure->n_owned; i++) {
        structure_function_fini(structure->owned[i]);
        free(structure->owned[i]);
    }
    free(structure->owned);
    free(structure->kept);
    returns_free(structure->returns);
    free(structure->decoder);
    cfg_fini(&structure->cfg);
    loops_fini(&structure->loops);
    free(structure->ranges);
    free(structure->inside);
    free(structure->nodes);
    free(structure->nested);
    free(structure->pieces);
    free(structure->lines);
    free(structure->atoms);
    free(structure->source);
    free(structure->scopes);
    free(structure->spans);
    memo_fini(&structure->places, NULL);
    memo_fini(&structure->paths, NULL);
    memo_fini(&structure->origins, free);
    free(structure);
}

bool structure_knows_loops(const struct structure *structure)
{
    return structure->decoder != NULL;
}

static bool never_returns(void *context, uint64_t callee, bool by_slot, bool by_name)
{
    return returns_never(context, callee, by_slot, by_name);
}

static bool find_loops(struct structure *structure, uint64_t entry)
{
    structure->loops.n = 0;
    if (!structure->decoder)
        return true;
    const struct cfg_module module = {&structure->image, structure->decoder, never_returns, structure->returns};
    return cfg_build(&structure->cfg, &module, structure->ranges, structure->n_ranges, entry) &&
           loops_find(&structure->loops, &structure->cfg);
}

/* Makes the function of structure->ranges; unit and die may be NULL. */
static bool make(struct structure *structure, struct dwarf_unit *unit, Dwarf_Die *die, uint64_t entry,
                 struct structure_function *function)
{
    *function = (struct structure_function){.has_lines = unit != NULL};
    structure->unit = unit ? &unit->die : NULL;
    bool ok = structure_read_inlined(structure, unit, die) && structure_read_lines(structure, unit) &&
              find_loops(structure, entry) && structure_cut_atoms(structure) && structure_name_loops(structure) &&
              structure_join(structure, function);
    if (!ok) {
        structure_function_fini(function);
        return false;
    }
    function->n_unresolved = structure->cfg.n_unresolved;
    if (function->n_scopes)
        function->scopes[0].vaddr = entry;
    return true;
}

static bool add_range(struct structure *structure, uint64_t start, uint64_t end)
{
    if (!vec_reserve(&structure->ranges, &structure->cap_ranges, structure->n_ranges + 1, sizeof *structure->ranges))
        return false;
    structure->ranges[structure->n_ranges++] = (struct cfg_range){start, end};
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct cfg_range *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Fills ranges with the code of a function's DIE: what the module holds of it, sorted and disjoint. */
static bool read_ranges(struct structure *structure, Dwarf_Die *die)
{
    Dwarf_Addr base = 0, low = 0, high = 0;
    uint64_t bias = structure->symbols->dwarf_bias;
    structure->n_ranges = 0;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;)
        /* address 0 is what linkers leave of functions that they threw away */
        if (low > 0 && low < high && code_image_is_code(&structure->image, low + bias) &&
            !add_range(structure, low + bias, high + bias))
            return false;
    if (structure->n_ranges > 1)
        qsort(structure->ranges, structure->n_ranges, sizeof *structure->ranges, compare_ranges);
    size_t n = 0;
    for (size_t i = 0; i < structure->n_ranges; i++) {
        struct cfg_range range = structure->ranges[i];
        if (n > 0 && range.start < structure->ranges[n - 1].end)
            range.start = structure->ranges[n - 1].end;
        if (range.start < range.end)
            structure->ranges[n++] = range;
    }
    structure->n_ranges = n;
    return true;
}

bool structure_make(struct structure *structure, struct dwarf_unit *unit, Dwarf_Die *die,
                    struct structure_function *function)
{
    Dwarf_Addr entry = 0;
    *function = (struct structure_function){0};
    if (!read_ranges(structure, die))
        return false;
    if (structure->n_ranges == 0)
        return true;
    bool has_entry = dwarf_entrypc(die, &entry) == 0 && entry > 0;
    entry = has_entry ? entry + structure->symbols->dwarf_bias : structure->ranges[0].start;
    return make(structure, unit, die, entry, function);
}

bool structure_bare(struct structure *structure, uint64_t start, uint64_t end, struct structure_function *function)
{
    struct dwarf_unit *unit;
    Dwarf_Die die;
    bool has_function = false;
    if (!symbols_dwarf_at(structure->symbols, start, &unit, &die, &has_function))
        unit = NULL;
    structure->n_ranges = 0;
    if (!add_range(structure, start, end) || !make(structure, unit, NULL, start, function))
        return false;
    if (function->n_scopes == 0)
        return true;
    function->scopes[0].name = symbols_own_name(structure->symbols, name_at(structure->symbols, start));
    if (structure->n_lines)
        function->scopes[0].file = structure->lines[0].file;
    return true;
}

/* Number of kept ranges that start at or before vaddr. */
static size_t count_kept(const struct structure *structure, uint64_t vaddr)
{
    size_t low = 0, high = structure->n_kept;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (structure->kept[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void keep_range(struct structure *structure, const struct cfg_range *range, struct structure_function *function)
{
    size_t at = count_kept(structure, range->start);
    if (!vec_reserve(&structure->kept, &structure->cap_kept, structure->n_kept + 1, sizeof *structure->kept))
        return;
    memmove(structure->kept + at + 1, structure->kept + at, (structure->n_kept - at) * sizeof *structure->kept);
    structure->kept[at] = (struct kept_function){range->start, range->end, function};
    structure->n_kept++;
}

/* Takes the function that was made last. */
static const struct structure_function *keep(struct structure *structure, const struct structure_function *made)
{
    struct structure_function *function = malloc(sizeof *function);
    if (!function ||
        !vec_reserve(&structure->owned, &structure->cap_owned, structure->n_owned + 1, sizeof *structure->owned)) {
        free(function);
        return NULL;
    }
    *function = *made;
    structure->owned[structure->n_owned++] = function;
    for (size_t i = 0; i < structure->n_ranges; i++)
        keep_range(structure, &structure->ranges[i], function);
    return function;
}

const struct structure_function *structure_function_at(struct structure *structure, uint64_t vaddr)
{
    size_t n = count_kept(structure, vaddr);
    if (n > 0 && vaddr < structure->kept[n - 1].end)
        return structure->kept[n - 1].function;
    struct structure_function function = {0};
    struct dwarf_unit *unit;
    Dwarf_Die die;
    bool has_function = false, is_made = false;
    if (symbols_dwarf_at(structure->symbols, vaddr, &unit, &die, &has_function) && has_function) {
        is_made = structure_make(structure, unit, &die, &function);
    } else {
        const struct elf_symbol *symbol = symbols_elf_find(structure->symbols, ELF_SYMBOL_CODE, vaddr);
        if (symbol && symbol->size_bytes > 0)
            is_made = structure_bare(structure, symbol->vaddr, symbol->vaddr + symbol->size_bytes, &function);
    }
    if (!is_made || function.n_scopes == 0)
        return NULL;
    const struct structure_function *kept = keep(structure, &function);
    if (!kept)
        structure_function_fini(&function);
    return kept;
}
