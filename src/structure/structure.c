/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes functions one by one: see structure.h. */
#include "structure/structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "structure/structure-make.h"

/* --- values found before, by pointer --- */

/* libdw returns the same string or DIE many times. */

#define CLEARED_MAX 256 /* a larger table is freed and made anew instead of being cleared for each use */

static struct memo *find_slot(struct memo *slots, size_t n_slots, const void *key)
{
    size_t slot = (size_t)(((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 20) & (n_slots - 1);
    while (slots[slot].key && slots[slot].key != key)
        slot = (slot + 1) & (n_slots - 1);
    return &slots[slot];
}

static bool grow(struct memo_table *table)
{
    size_t n = table->n_slots ? table->n_slots * 2 : 64;
    struct memo *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < table->n_slots; i++)
        if (table->slots[i].key)
            *find_slot(slots, n, table->slots[i].key) = table->slots[i];
    free(table->slots);
    table->slots = slots;
    table->n_slots = n;
    return true;
}

const void **memo_of(struct memo_table *table, const void *key)
{
    if (table->n_used * 2 >= table->n_slots && !grow(table))
        return NULL;
    struct memo *memo = find_slot(table->slots, table->n_slots, key);
    table->n_used += memo->key == NULL;
    memo->key = key;
    return &memo->value;
}

static void memo_fini(struct memo_table *table, void (*free_value)(void *))
{
    for (size_t i = 0; free_value && i < table->n_slots; i++)
        free_value((void *)(uintptr_t)table->slots[i].value);
    free(table->slots);
    *table = (struct memo_table){0};
}

static void memo_clear(struct memo_table *table)
{
    if (table->n_slots > CLEARED_MAX)
        memo_fini(table, NULL);
    else if (table->n_used)
        memset(table->slots, 0, table->n_slots * sizeof *table->slots);
    table->n_used = 0;
}

/* --- atoms: the code between two borders --- */

/* A function's code is cut at every border of its three descriptions: inlined functions, lines, and blocks of loops. */

/* The position in each description during a walk over the code in address order. */
struct cursor {
    size_t line, block;
    size_t carried; /* block + 1 whose code before its first own row has its line from elsewhere */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The line piece that contains at; lowers *end to where that changes. */
static uint32_t line_at(const struct structure *structure, struct cursor *cursor, uint64_t at, uint64_t *end)
{
    while (cursor->line < structure->n_lines && structure->lines[cursor->line].end <= at)
        cursor->line++;
    if (cursor->line == structure->n_lines)
        return STRUCTURE_NONE;
    const struct line_piece *line = &structure->lines[cursor->line];
    *end = least(*end, at < line->start ? line->start : line->end);
    return at < line->start ? STRUCTURE_NONE : (uint32_t)cursor->line;
}

/* True when execution does not run into a block from the code before it: no edge leads there, or that code is
 * padding. */
static bool is_apart(const struct structure *structure, size_t block)
{
    const struct cfg *cfg = &structure->cfg;
    if (block == 0 || !loops_reach(&structure->loops, (uint32_t)block - 1) ||
        cfg->blocks[block - 1].end != cfg->blocks[block].start)
        return true;
    for (uint32_t e = cfg->first[block - 1]; e < cfg->first[block]; e++)
        if ((uint32_t)cfg->edges[e] == block)
            return false;
    return true;
}

/* Compilers give some instructions no row; at the start of a block these get the row of whatever lies before. */
static bool is_carried(const struct structure *structure, struct cursor *cursor, const struct atom *atom)
{
    if (atom->loop == CFG_NONE || atom->lines == STRUCTURE_NONE)
        return false;
    const struct cfg_block *block = &structure->cfg.blocks[cursor->block];
    if (structure->lines[atom->lines].start >= block->start)
        return false;
    if (atom->start == block->start && is_apart(structure, cursor->block))
        cursor->carried = cursor->block + 1;
    return cursor->carried == cursor->block + 1;
}

/* The machine loop of the block that contains at; lowers *end to where that changes. */
static uint32_t loop_at(const struct structure *structure, struct cursor *cursor, uint64_t at, uint64_t *end)
{
    const struct cfg *cfg = &structure->cfg;
    if (structure->loops.n == 0)
        return CFG_NONE;
    while (cursor->block < cfg->n_blocks && cfg->blocks[cursor->block].end <= at)
        cursor->block++;
    if (cursor->block == cfg->n_blocks)
        return CFG_NONE;
    const struct cfg_block *block = &cfg->blocks[cursor->block];
    *end = least(*end, at < block->start ? block->start : block->end);
    /* the last instruction is separate: if it jumps back, its line says where the loop is */
    if (at >= block->start && at < block->last)
        *end = least(*end, block->last);
    return at < block->start ? CFG_NONE : structure->loops.loop_of[cursor->block];
}

static bool cut_piece(struct structure *structure, struct cursor *cursor, const struct inline_piece *piece)
{
    for (uint64_t at = piece->start; at < piece->end;) {
        struct atom atom = {.start = at, .end = piece->end, .node = piece->node};
        atom.lines = line_at(structure, cursor, at, &atom.end);
        atom.loop = loop_at(structure, cursor, at, &atom.end);
        atom.is_carried = is_carried(structure, cursor, &atom);
        if (structure->n_atoms == structure->cap_atoms &&
            !vec_reserve(&structure->atoms, &structure->cap_atoms, structure->n_atoms + 1, sizeof *structure->atoms))
            return false;
        structure->atoms[structure->n_atoms++] = atom;
        at = atom.end;
    }
    return true;
}

/* structure.c: fills atoms from pieces, lines and blocks. False when out of memory. */
static bool structure_cut_atoms(struct structure *structure)
{
    struct cursor cursor = {0};
    structure->n_atoms = 0;
    for (size_t i = 0; i < structure->n_pieces; i++)
        if (!cut_piece(structure, &cursor, &structure->pieces[i]))
            return false;
    return true;
}

/* --- call instructions, from the decoded code in which the loops are found --- */

static size_t structure_calls_max(const struct structure *structure)
{
    size_t n = 0;
    for (size_t t = 0; t < structure->cfg.n_transfers; t++)
        n += structure->cfg.insns[structure->cfg.transfers[t]].is_call;
    return n;
}

/* structure.c: fills the calls of a function that has its spans and room for all calls there may be. */
static void structure_take_calls(const struct structure *structure, struct structure_function *function)
{
    const struct cfg *cfg = &structure->cfg;
    size_t s = 0;
    for (size_t t = 0; t < cfg->n_transfers; t++) {
        const struct cfg_insn *insn = &cfg->insns[cfg->transfers[t]];
        if (!insn->is_call)
            continue;
        while (s < function->n_spans && function->spans[s].end <= insn->vaddr)
            s++;
        if (s == function->n_spans)
            return;
        /* an instruction with a border inside is not one that the compiler made */
        if (insn->vaddr >= function->spans[s].start && insn->vaddr + insn->len_bytes <= function->spans[s].end)
            function->calls[function->n_calls++] =
                (struct structure_call){insn->vaddr, insn->vaddr + insn->len_bytes, insn->by_slot ? 0 : insn->value};
    }
}

/* --- inlined functions and loops joined into one tree --- */

/* At every address both form a chain; a loop comes right below the inlined function that it is written in. */

static uint64_t key_of(uint32_t node, uint32_t loop)
{
    return (uint64_t)node << 32 | (loop + 1u); /* CFG_NONE becomes 0 */
}

/* Where the index + 1 of the scope with this key is stored; NULL when out of memory. */
static const void **place_of(struct structure *structure, uint64_t key)
{
    return memo_of(&structure->places, (const void *)(uintptr_t)(key + 1));
}

static uint32_t find_scope(struct structure *structure, uint64_t key)
{
    const void **place = place_of(structure, key);
    return place && *place ? (uint32_t)((uintptr_t)*place - 1) : STRUCTURE_NONE;
}

static bool add_scope(struct structure *structure, uint64_t key, const struct structure_scope *scope)
{
    const void **place = place_of(structure, key);
    if (!place ||
        !vec_reserve(&structure->scopes, &structure->cap_scopes, structure->n_scopes + 1, sizeof *structure->scopes))
        return false;
    structure->scopes[structure->n_scopes++] = *scope;
    *place = (const void *)(uintptr_t)structure->n_scopes;
    return true;
}

static struct structure_scope loop_scope(const struct source_loop *loop, uint32_t parent)
{
    return (struct structure_scope){.kind = STRUCTURE_LOOP,
                                    .parent = parent,
                                    .file = loop->file,
                                    .line = loop->first_line,
                                    .end_line = loop->last_line,
                                    .vaddr = loop->vaddr,
                                    .n_machine = loop->n_machine,
                                    .is_irreducible = loop->is_irreducible};
}

static struct structure_scope inlined_scope(const struct inline_node *node, uint32_t parent)
{
    return (struct structure_scope){.kind = parent == STRUCTURE_NONE ? STRUCTURE_FUNCTION : STRUCTURE_INLINED,
                                    .parent = parent,
                                    .name = node->name,
                                    .linkage = node->linkage,
                                    .file = node->file,
                                    .line = node->line,
                                    .call_file = node->call_file,
                                    .call_line = node->call_line,
                                    .call_column = node->call_column};
}

/* One step further out from (node, loop). False when that is outside the function. */
static bool step_out(const struct structure *structure, uint32_t *node, uint32_t *loop)
{
    if (*loop != CFG_NONE && structure->source[*loop].node == *node) {
        *loop = structure_standing_loop(structure, structure->source[*loop].parent);
        return true;
    }
    if (*node == 0)
        return false;
    *node = structure->nodes[*node].parent;
    return true;
}

/* The scope for code of inlined function node in loop; it and all scopes around it are added when missing. */
static uint32_t scope_of(struct structure *structure, uint32_t node, uint32_t loop)
{
    uint64_t path[256];
    size_t n = 0;
    uint32_t at = find_scope(structure, key_of(node, loop));
    while (at == STRUCTURE_NONE && n < sizeof path / sizeof *path) {
        path[n++] = key_of(node, loop);
        if (!step_out(structure, &node, &loop)) {
            /* every chain ends at scope 0, which is added only once */
            n -= structure->n_scopes > 0;
            at = structure->n_scopes > 0 ? 0 : STRUCTURE_NONE;
            break;
        }
        at = find_scope(structure, key_of(node, loop));
    }
    while (n > 0) {
        uint64_t key = path[--n];
        uint32_t inner = (uint32_t)(key >> 32), in_loop = (uint32_t)key - 1u;
        bool is_loop = in_loop != CFG_NONE && structure->source[in_loop].node == inner;
        struct structure_scope scope =
            is_loop ? loop_scope(&structure->source[in_loop], at) : inlined_scope(&structure->nodes[inner], at);
        if (!add_scope(structure, key, &scope))
            return STRUCTURE_NONE;
        at = (uint32_t)structure->n_scopes - 1;
    }
    return at;
}

static bool add_span(struct structure *structure, const struct atom *atom, uint32_t scope)
{
    static const struct line_piece unknown;
    const struct line_piece *line = atom->lines == STRUCTURE_NONE ? &unknown : &structure->lines[atom->lines];
    struct structure_span *last = structure->n_spans ? &structure->spans[structure->n_spans - 1] : NULL;
    if (last && last->end == atom->start && last->scope == scope && last->file == line->file &&
        last->line == line->line) {
        last->end = atom->end;
        return true;
    }
    if (structure->n_spans == structure->cap_spans &&
        !vec_reserve(&structure->spans, &structure->cap_spans, structure->n_spans + 1, sizeof *structure->spans))
        return false;
    structure->spans[structure->n_spans++] =
        (struct structure_span){atom->start, atom->end, line->file, line->line, scope};
    return true;
}

/* Copies the joined scopes and spans into one block of memory, followed by the calls. */
static bool copy_result(const struct structure *structure, struct structure_function *function)
{
    size_t scopes_bytes = structure->n_scopes * sizeof *function->scopes;
    size_t spans_bytes = structure->n_spans * sizeof *function->spans;
    if (structure->n_spans == 0)
        return true;
    char *block = malloc(scopes_bytes + spans_bytes + structure_calls_max(structure) * sizeof *function->calls);
    if (!block)
        return false;
    function->scopes = (struct structure_scope *)block;
    function->spans = (struct structure_span *)(block + scopes_bytes);
    function->calls = (struct structure_call *)(block + scopes_bytes + spans_bytes);
    memcpy(function->scopes, structure->scopes, scopes_bytes);
    memcpy(function->spans, structure->spans, spans_bytes);
    function->n_scopes = structure->n_scopes;
    function->n_spans = structure->n_spans;
    structure_take_calls(structure, function);
    return true;
}

/* structure.c: joins all into scopes and spans. False when out of memory. */
static bool structure_join(struct structure *structure, struct structure_function *function)
{
    memo_clear(&structure->places);
    structure->n_scopes = structure->n_spans = 0;
    uint32_t node = STRUCTURE_NONE, loop = STRUCTURE_NONE, scope = scope_of(structure, 0, CFG_NONE);
    for (size_t i = 0; scope != STRUCTURE_NONE && i < structure->n_atoms; i++) {
        const struct atom *atom = &structure->atoms[i];
        if (atom->node != node || atom->loop != loop)
            scope = scope_of(structure, atom->node, atom->loop);
        node = atom->node;
        loop = atom->loop;
        if (scope == STRUCTURE_NONE || !add_span(structure, atom, scope))
            return false;
    }
    return scope != STRUCTURE_NONE && copy_result(structure, function);
}

/* --- one function --- */

/* The name of the function that begins at vaddr, from the symbols alone. */
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
    nests_fini(&structure->nests);
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
    structure->nests_of = NULL;
    if (!structure->decoder)
        return true;
    const struct cfg_module module = {&structure->image, structure->decoder, never_returns, structure->returns};
    return cfg_build(&structure->cfg, &module, structure->ranges, structure->n_ranges, entry) &&
           loops_find(&structure->loops, &structure->cfg);
}

/* Makes the function of structure->ranges; unit and die may be NULL. */
static bool make_function(struct structure *structure, struct dwarf_unit *unit, Dwarf_Die *die, uint64_t entry,
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

/* Fills ranges with the code of a function's DIE: the ranges that the module contains, sorted and disjoint. */
static bool read_ranges(struct structure *structure, Dwarf_Die *die)
{
    Dwarf_Addr base = 0, low = 0, high = 0;
    uint64_t bias = structure->symbols->dwarf_bias;
    structure->n_ranges = 0;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;)
        /* linkers leave address 0 for functions that they discarded */
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
    return make_function(structure, unit, die, entry, function);
}

bool structure_bare(struct structure *structure, uint64_t start, uint64_t end, struct structure_function *function)
{
    struct dwarf_unit *unit;
    Dwarf_Die die;
    bool has_function = false;
    if (!symbols_dwarf_at(structure->symbols, start, &unit, &die, &has_function))
        unit = NULL;
    structure->n_ranges = 0;
    if (!add_range(structure, start, end) || !make_function(structure, unit, NULL, start, function))
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
    return search_upto(structure->kept, structure->n_kept, SEARCH_KEY(struct kept_function, start), vaddr);
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

/* Keeps the function that was just made. */
static const struct structure_function *keep_function(struct structure *structure,
                                                      const struct structure_function *made)
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
    const struct structure_function *kept = keep_function(structure, &function);
    if (!kept)
        structure_function_fini(&function);
    return kept;
}

/* --- nests of loops --- */

#define BACK_MAX 24 /* instructions from a sample to the access that it waited for */

/* The graph, loops and nests of a kept function; those of the last one that was asked for are still there. */
static bool find_nests(struct structure *structure, const struct structure_function *function)
{
    if (structure->nests_of == function)
        return true;
    structure->n_ranges = 0;
    for (size_t i = 0; i < structure->n_kept; i++)
        if (structure->kept[i].function == function &&
            !add_range(structure, structure->kept[i].start, structure->kept[i].end))
            return false;
    nests_fini(&structure->nests);
    if (!find_loops(structure, function->scopes[0].vaddr) ||
        !nests_find(&structure->nests, &structure->cfg, &structure->loops, &structure->image, structure->decoder))
        return false;
    structure->nests_of = function;
    return true;
}

/* The instruction before this one: at the head of a loop, that of the loop's end. CFG_NONE: none is known. */
static uint32_t insn_before(const struct structure *structure, uint32_t insn)
{
    const struct cfg *cfg = &structure->cfg;
    uint32_t block = cfg->block_of[insn], loop = structure->loops.loop_of[block], found = CFG_NONE;
    if (cfg->insns[insn].vaddr != cfg->blocks[block].start)
        return insn - 1;
    for (size_t e = 0; e < cfg->n_edges; e++) {
        uint32_t from = (uint32_t)(cfg->edges[e] >> 32);
        bool is_inside = loop != CFG_NONE && loops_contain(&structure->loops, loop, structure->loops.loop_of[from]);
        if ((uint32_t)cfg->edges[e] == block && (found == CFG_NONE || is_inside))
            found = from;
    }
    return found == CFG_NONE ? CFG_NONE : cfg_find_insn(cfg, cfg->blocks[found].last);
}

static const struct nest_access *access_of(const struct structure *structure, uint64_t vaddr)
{
    const struct nests *nests = &structure->nests;
    size_t low = search_upto(nests->accesses, nests->n_accesses, SEARCH_KEY(struct nest_access, vaddr), vaddr);
    return low > 0 && nests->accesses[low - 1].vaddr == vaddr ? &nests->accesses[low - 1] : NULL;
}

/* The access in a nest that a sample at vaddr was taken behind, or whose value the instruction there waited for. */
static const struct nest_access *access_before(const struct structure *structure, uint64_t vaddr)
{
    uint32_t insn = structure->cfg.n_blocks ? cfg_find_insn(&structure->cfg, vaddr) : CFG_NONE;
    const struct nest_access *access = NULL;
    for (unsigned n = 0; n < BACK_MAX && insn != CFG_NONE && !access; n++) {
        insn = insn_before(structure, insn);
        access = insn == CFG_NONE ? NULL : access_of(structure, structure->cfg.insns[insn].vaddr);
    }
    return access;
}

/* The loop of the source that a machine loop is; NULL when it is not known. */
static const struct structure_scope *source_loop_of(const struct structure *structure,
                                                    const struct structure_function *function, uint32_t loop)
{
    uint64_t head = structure->cfg.blocks[structure->loops.items[loop].header].start;
    for (size_t i = 0; i < function->n_scopes; i++)
        if (function->scopes[i].kind == STRUCTURE_LOOP && function->scopes[i].vaddr == head)
            return &function->scopes[i];
    uint32_t span = structure_span_at(function, head);
    uint32_t scope = span == STRUCTURE_NONE ? STRUCTURE_NONE : function->spans[span].scope;
    while (scope != STRUCTURE_NONE && function->scopes[scope].kind != STRUCTURE_LOOP)
        scope = function->scopes[scope].parent;
    return scope == STRUCTURE_NONE ? NULL : &function->scopes[scope];
}

/* Whether another loop around this one or in it is the same loop of the source: then its lines are not its own. */
static bool is_merged(const struct structure *structure, const struct structure_function *function, uint32_t loop,
                      const struct structure_scope *scope)
{
    const struct loops *loops = &structure->loops;
    for (uint32_t i = 0; i < loops->n; i++)
        if (i != loop && (loops_contain(loops, i, loop) || loops_contain(loops, loop, i)) &&
            source_loop_of(structure, function, i) == scope)
            return true;
    return false;
}

bool structure_nest_at(struct structure *structure, uint64_t vaddr, struct structure_nest *nest)
{
    size_t n = count_kept(structure, vaddr);
    if (n == 0 || vaddr >= structure->kept[n - 1].end || !structure->decoder)
        return false;
    const struct structure_function *function = structure->kept[n - 1].function;
    const struct nest_access *access = find_nests(structure, function) ? access_before(structure, vaddr) : NULL;
    if (!access || access->n_levels < 2)
        return false;
    const struct nest *found = &structure->nests.of_loop[access->loop];
    unsigned level = found->verdict == NEST_FINE ? 1 : found->level;
    uint32_t outer = found->verdict == NEST_FINE ? structure->loops.items[access->loop].parent : found->outer;
    *nest = (struct structure_nest){.verdict = (enum nest_verdict)found->verdict,
                                    .inner = source_loop_of(structure, function, access->loop),
                                    .outer = source_loop_of(structure, function, outer),
                                    .is_around = level == 1,
                                    .is_far = access->is_far,
                                    .inner_move = (enum nest_move)access->kinds[0],
                                    .outer_move = (enum nest_move)access->kinds[level],
                                    .inner_bytes = access->bytes[0],
                                    .outer_bytes = access->bytes[level]};
    return nest->inner && nest->outer && !is_merged(structure, function, access->loop, nest->inner) &&
           !is_merged(structure, function, outer, nest->outer);
}
