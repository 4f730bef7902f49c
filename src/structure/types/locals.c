/* SPDX-License-Identifier: BSD-3-Clause */
/* Where each local variable lies: DWARF gives places relative to the function's frame base (the CFA, the frame pointer
 * or the stack pointer) or to registers; where possible all are turned into offsets from the CFA. */
#include "structure/types/locals.h"

#include <dwarf.h>
#include <stdlib.h>

#include "structure/types/types-dwarf.h"

#define WALK_DEPTH_MAX 16

struct locals {
    const void *function; /* address of the DIE, NULL = none */
    struct local *items;  /* [n] */
    size_t n, capacity;
};

/* One walk over a function. */
struct frame_walk {
    struct symbols *symbols;
    struct locals *locals;
    Dwarf_Attribute frame_base;
    bool has_frame_base, has_bases;
    struct frame_bases bases; /* if has_bases */
};

static void locals_clear(struct locals *locals)
{
    for (size_t i = 0; i < locals->n; i++)
        free(locals->items[i].places);
    locals->n = 0;
}

static void locals_free(struct locals *locals)
{
    if (!locals)
        return;
    locals_clear(locals);
    free(locals->items);
    free(locals);
}

/* A register plus offset as a place, seen from vaddr. */
static void place_by_register(struct symbols *symbols, uint64_t vaddr, int reg, int64_t offset,
                              struct local_place *place)
{
    place->kind = LOCAL_MEMORY;
    place->reg = reg;
    place->offset = offset;
    if (symbols_cfa_offset(symbols, vaddr, reg, &place->offset))
        place->kind = LOCAL_FRAME;
}

static bool is_breg(int atom)
{
    return atom >= DW_OP_breg0 && atom <= DW_OP_breg31;
}

/* The frame base itself as a place. */
static void place_frame_base(const struct frame_walk *walk, uint64_t vaddr, struct local_place *place)
{
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    Dwarf_Attribute attribute = walk->frame_base;
    place->kind = LOCAL_UNKNOWN;
    if (!walk->has_frame_base ||
        dwarf_getlocation_addr(&attribute, vaddr - walk->symbols->dwarf_bias, &ops, &n_ops, 1) != 1 || n_ops != 1)
        return;
    if (ops[0].atom == DW_OP_call_frame_cfa) {
        place->kind = LOCAL_FRAME;
        place->offset = 0;
    } else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
        place_by_register(walk->symbols, vaddr, ops[0].atom - DW_OP_reg0, 0, place);
    } else if (is_breg(ops[0].atom)) {
        place_by_register(walk->symbols, vaddr, ops[0].atom - DW_OP_breg0, (int64_t)ops[0].number, place);
    }
}

/* The place in memory that the first operation gives; false when it gives none. */
static bool place_memory(const struct frame_walk *walk, uint64_t vaddr, const Dwarf_Op *op, struct local_place *place)
{
    if (op->atom == DW_OP_fbreg) {
        place_frame_base(walk, vaddr, place);
        place->offset += (int64_t)op->number;
    } else if (is_breg(op->atom)) {
        place_by_register(walk->symbols, vaddr, op->atom - DW_OP_breg0, (int64_t)op->number, place);
    } else if (op->atom == DW_OP_bregx) {
        place_by_register(walk->symbols, vaddr, (int)op->number, (int64_t)op->number2, place);
    } else if (op->atom == DW_OP_call_frame_cfa) {
        place->kind = LOCAL_FRAME;
    } else if (op->atom == DW_OP_addr) {
        place->kind = LOCAL_STATIC;
        place->offset = (int64_t)(op->number + walk->symbols->dwarf_bias);
    } else {
        return false;
    }
    return true;
}

/* A register plus offset where the stack pointer was realigned. */
static void place_by_base(struct frame_walk *walk, uint64_t vaddr, struct local_place *place)
{
    if (place->reg < 0 || place->reg >= FRAME_BASES)
        return;
    if (!walk->has_bases)
        frame_bases_find(walk->symbols, vaddr, &walk->bases);
    walk->has_bases = true;
    const struct frame_base *base = &walk->bases.bases[place->reg];
    place->is_realigned = walk->bases.is_realigned && base->is_known;
    place->realigned_offset = place->offset - base->distance_bytes;
    place->slack_bytes = walk->bases.slack_bytes;
}

/* An offset from the CFA, rounded down to a multiple of a large power of two, less a constant: gcc's description of
 * what it addresses by a realigned stack pointer. The CFA itself is a multiple of 16. */
static void place_rounded(const Dwarf_Op *ops, size_t n_ops, struct local_place *place)
{
    bool is_less =
        n_ops == 5 && ops[4].atom == DW_OP_minus && ops[3].atom >= DW_OP_const1u && ops[3].atom <= DW_OP_consts;
    int64_t mask = n_ops >= 3 ? (int64_t)ops[1].number : 0;
    if ((n_ops != 3 && !is_less) || ops[2].atom != DW_OP_and || ops[1].atom < DW_OP_const1u ||
        ops[1].atom > DW_OP_consts || mask > -16 || mask < -(1 << 20) || (-mask & (-mask - 1)))
        return;
    int64_t first = place->offset & -16, last = (place->offset + mask + 1 + 15) & -16;
    place->is_realigned = true;
    place->realigned_offset = first - (is_less ? (int64_t)ops[3].number : 0);
    place->slack_bytes = first - last;
}

/* vaddr: an address where the expression is valid and the frame is set up. */
static void place_of(struct frame_walk *walk, uint64_t vaddr, const Dwarf_Op *ops, size_t n_ops,
                     struct local_place *place)
{
    int last = n_ops ? ops[n_ops - 1].atom : 0;
    place->kind = LOCAL_UNKNOWN;
    if (n_ops == 0)
        return;
    if (ops[0].atom == DW_OP_entry_value || ops[0].atom == DW_OP_GNU_entry_value) {
        bool is_plain = n_ops == 2 && last == DW_OP_stack_value;
        place->kind = is_plain ? LOCAL_ENTRY : LOCAL_VALUE;
    } else if (last == DW_OP_stack_value || ops[0].atom == DW_OP_implicit_value) {
        place->kind = LOCAL_VALUE;
    } else if (n_ops == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
        place->kind = LOCAL_REGISTER;
        place->reg = ops[0].atom - DW_OP_reg0;
    } else if (n_ops == 1 && ops[0].atom == DW_OP_regx) {
        place->kind = LOCAL_REGISTER;
        place->reg = (int)ops[0].number;
    } else if (place_memory(walk, vaddr, &ops[0], place)) {
        if (n_ops == 2 && last == DW_OP_plus_uconst)
            place->offset += (int64_t)ops[1].number;
        else if (n_ops == 2 && last == DW_OP_deref && place->kind == LOCAL_FRAME)
            place->kind = LOCAL_INDIRECT;
        else if (n_ops != 1) {
            if (place->kind == LOCAL_FRAME)
                place_rounded(ops, n_ops, place);
            place->kind = LOCAL_UNKNOWN;
        }
        if (place->kind == LOCAL_MEMORY)
            place_by_base(walk, vaddr, place);
    }
}

/* The register of an entry value is nested in an expression of its own. */
static void fill_entry(Dwarf_Attribute *attribute, const Dwarf_Op *op, struct local_place *place)
{
    Dwarf_Attribute nested;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    place->kind = LOCAL_VALUE;
    if (dwarf_getlocation_attr(attribute, op, &nested) == 0 && dwarf_getlocation(&nested, &ops, &n_ops) == 0 &&
        n_ops == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
        place->kind = LOCAL_ENTRY;
        place->reg = ops[0].atom - DW_OP_reg0;
    }
}

static void add_places(struct frame_walk *walk, Dwarf_Die *die, struct local *local)
{
    Dwarf_Attribute attribute;
    Dwarf_Addr base = 0, start = 0, end = 0, bias = walk->symbols->dwarf_bias;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0, capacity = 0;
    if (!dwarf_attr(die, DW_AT_location, &attribute))
        return;
    for (ptrdiff_t next = 0; local->n_places < LOCALS_PLACES_MAX &&
                             (next = dwarf_getlocations(&attribute, next, &base, &start, &end, &ops, &n_ops)) > 0;) {
        bool is_everywhere = start == 0 && end == (Dwarf_Addr)-1;
        if (!vec_reserve(&local->places, &capacity, local->n_places + 1, sizeof *local->places))
            return;
        struct local_place *place = &local->places[local->n_places++];
        *place = (struct local_place){.low = is_everywhere ? local->low : start + bias,
                                      .high = is_everywhere ? local->high : end + bias,
                                      .is_listed = !is_everywhere};
        /* a place that is valid everywhere is evaluated where the frame is set up */
        place_of(walk, is_everywhere ? local->inside : place->low, ops, n_ops, place);
        if (place->kind == LOCAL_ENTRY)
            fill_entry(&attribute, &ops[0], place);
    }
}

static void add_local(struct frame_walk *walk, Dwarf_Die *die, const struct local *block)
{
    struct locals *locals = walk->locals;
    struct symbols *symbols = walk->symbols;
    int line = 0;
    if (locals->n >= LOCALS_MAX || !vec_reserve(&locals->items, &locals->capacity, locals->n + 1, sizeof(struct local)))
        return;
    struct local *local = &locals->items[locals->n++];
    *local = *block;
    local->name = symbols_own_name(symbols, dwarf_diename(die));
    local->type = types_enter_of(symbols, die);
    local->size_bytes = types_size(symbols, local->type);
    local->flags = (dwarf_tag(die) == DW_TAG_formal_parameter ? LOCAL_IS_PARAMETER : 0) |
                   (dwarf_hasattr_integrate(die, DW_AT_artificial) ? LOCAL_IS_ARTIFICIAL : 0);
    if (dwarf_decl_line(die, &line) == 0)
        local->decl_line = (uint32_t)line;
    local->decl_file = symbols_decl_file(symbols, die);
    add_places(walk, die, local);
}

/* The range from the first to the last address of a block; a block without addresses gets that of the block around
 * it. */
static void narrow(const struct frame_walk *walk, Dwarf_Die *die, struct local *block)
{
    Dwarf_Addr base = 0, start = 0, end = 0, low = UINT64_MAX, high = 0, largest = 0, bias = walk->symbols->dwarf_bias;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &start, &end)) > 0;) {
        low = start < low ? start : low;
        high = end > high ? end : high;
        if (end > start && end - start > largest) {
            largest = end - start;
            block->inside = start + largest / 2 + bias;
        }
    }
    if (low >= high)
        return;
    block->low = low + bias;
    block->high = high + bias;
}

/* Variables of blocks and of inlined functions live in the same frame. */
static void walk_block(struct frame_walk *walk, Dwarf_Die *parent, const struct local *around, unsigned depth)
{
    Dwarf_Die die;
    struct local block = *around;
    narrow(walk, parent, &block);
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        struct local inner = block;
        if (tag == DW_TAG_inlined_subroutine)
            inner.function = symbols_own_name(walk->symbols, dwarf_diename(&die));
        if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)
            add_local(walk, &die, &block);
        else if (tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine)
            walk_block(walk, &die, &inner, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

size_t locals_of_function(struct symbols *symbols, uint64_t vaddr, const struct local **list)
{
    Dwarf_Die function;
    if (!symbols->locals)
        symbols->locals = calloc(1, sizeof *symbols->locals);
    symbols->locals_free = locals_free;
    if (!symbols->locals || !symbols_dwarf_function(symbols, vaddr, &function))
        return 0;
    struct locals *locals = symbols->locals;
    if (locals->function != function.addr) {
        struct frame_walk walk = {.symbols = symbols, .locals = locals};
        struct local outer = {.function = symbols_own_name(symbols, dwarf_diename(&function))};
        walk.has_frame_base = dwarf_attr_integrate(&function, DW_AT_frame_base, &walk.frame_base) != NULL;
        locals_clear(locals);
        locals->function = function.addr;
        walk_block(&walk, &function, &outer, 0);
    }
    *list = locals->items;
    return locals->n;
}

/* Whether a place in the frame is valid at pc, or at the instruction before it; pc 0: at any. */
static bool holds(const struct local_place *place, uint64_t pc)
{
    return (place->kind == LOCAL_FRAME || place->is_realigned) &&
           (!pc || !place->is_listed || (pc > place->low && pc <= place->high) ||
            (pc >= place->low && pc < place->high));
}

/* What is asked for: an address in the frame, if that lies slack_bytes lower than it could. */
struct frame_point {
    int64_t cfa_offset, slack_bytes;
    uint64_t pc;
};

/* Whether the local contains the address; *offset_bytes is where. */
static bool contains(const struct local *local, const struct frame_point *at, uint64_t pc, uint64_t *offset_bytes)
{
    for (size_t i = 0; i < local->n_places; i++) {
        const struct local_place *place = &local->places[i];
        int64_t slack = at->slack_bytes < place->slack_bytes ? at->slack_bytes : place->slack_bytes;
        int64_t low = place->is_realigned ? place->realigned_offset - slack : place->offset;
        *offset_bytes = (uint64_t)at->cfa_offset - (uint64_t)low;
        if (holds(place, pc) && at->cfa_offset >= low && *offset_bytes < (local->size_bytes ? local->size_bytes : 1))
            return true;
    }
    return false;
}

/* True when an access at pc rather means a than b: the one whose block contains the pc, else the larger one. */
static bool is_better(const struct local *a, const struct local *b, uint64_t pc)
{
    bool a_holds = pc >= a->low && pc < a->high, b_holds = b && pc >= b->low && pc < b->high;
    if (!b || (pc && a_holds != b_holds))
        return !b || a_holds;
    bool a_named = a->name && !(a->flags & LOCAL_IS_ARTIFICIAL), b_named = b->name && !(b->flags & LOCAL_IS_ARTIFICIAL);
    if (a_named != b_named)
        return a_named;
    return a->size_bytes > b->size_bytes;
}

/* The variable there at one slack; *is_shared says that one lies there at some time. */
static const struct local *local_there(const struct local *locals, size_t n, const struct frame_point *at,
                                       uint64_t *offset_bytes, bool *is_shared)
{
    const struct local *best = NULL;
    uint64_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        *is_shared |= contains(&locals[i], at, 0, &offset);
        if (contains(&locals[i], at, at->pc, &offset) && is_better(&locals[i], best, at->pc)) {
            best = &locals[i];
            *offset_bytes = offset;
        }
    }
    return best;
}

static int64_t largest_slack(const struct local *locals, size_t n)
{
    int64_t slack = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < locals[i].n_places; j++)
            slack = locals[i].places[j].slack_bytes > slack ? locals[i].places[j].slack_bytes : slack;
    return slack;
}

/* The only variable whose data lie where a word of the frame points; NULL when there are none or several. */
static const struct local *only_indirect(const struct local *locals, size_t n)
{
    const struct local *found = NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < locals[i].n_places; j++)
            if (locals[i].places[j].kind == LOCAL_INDIRECT && locals[i].name && found != &locals[i]) {
                if (found)
                    return NULL;
                found = &locals[i];
            }
    return found;
}

/* The only array of unknown length to which a register points; NULL when there are none or several. */
static const struct local *only_dynamic(struct symbols *symbols, const struct local *locals, size_t n)
{
    const struct local *found = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct local *local = &locals[i];
        bool is_dynamic = false;
        for (size_t j = 0; j < local->n_places; j++)
            is_dynamic |= local->places[j].kind == LOCAL_MEMORY && !local->places[j].is_realigned;
        if (!is_dynamic || !local->name || local->size_bytes || local->flags ||
            types_element(symbols, local->type) == local->type)
            continue;
        if (found)
            return NULL;
        found = local;
    }
    return found;
}

/* The variable whose value the function's code stores at CFA + cfa_offset. A place that the code accesses but that is
 * no variable's holds a spilled value. */
static const struct local *local_by_code(struct symbols *symbols, uint64_t vaddr, uint64_t pc, int64_t cfa_offset,
                                         struct local_spot *spot)
{
    const struct local *locals = NULL;
    size_t n = locals_of_function(symbols, vaddr, &locals), index = 0;
    enum frame_slot_use use = frame_slots_find(symbols, vaddr, locals, n, cfa_offset, &index, &spot->offset_bytes);
    spot->is_spill = use == SLOT_VALUE && pc;
    if (use == SLOT_LOCAL)
        return &locals[index];
    spot->offset_bytes = UINT64_MAX;
    return use == SLOT_NONE ? only_dynamic(symbols, locals, n) : NULL;
}

const struct local *locals_at(struct symbols *symbols, uint64_t vaddr, uint64_t pc, int64_t distance_bytes,
                              struct local_spot *spot)
{
    const struct local *locals = NULL, *best = NULL;
    size_t n = locals_of_function(symbols, vaddr, &locals);
    bool is_shared = false;
    *spot = (struct local_spot){.offset_bytes = UINT64_MAX};
    struct frame_point at = {.cfa_offset = -distance_bytes, .pc = pc};
    for (int64_t slack = largest_slack(locals, n); at.slack_bytes <= slack; at.slack_bytes += 16) {
        uint64_t offset = 0;
        const struct local *there = local_there(locals, n, &at, &offset, &is_shared);
        if (best && there && there != best)
            return NULL;
        if (there && !best)
            spot->offset_bytes = offset;
        if (there)
            spot->slack_bytes = offset - spot->offset_bytes;
        best = there ? there : best;
    }
    spot->is_spill = is_shared && !best;
    if (spot->is_spill || (best && !best->name))
        return NULL;
    best = best ? best : only_indirect(locals, n);
    return best ? best : local_by_code(symbols, vaddr, pc, -distance_bytes, spot);
}

/* Number of bytes of a variable in [first, last). */
static int64_t common_bytes(const struct local *local, const struct local_place *place, int64_t first, int64_t last)
{
    int64_t low = place->offset, high = low + (int64_t)local->size_bytes;
    return (high < last ? high : last) - (low > first ? low : first);
}

/* A granule contains only the first byte of a variable that begins at its end. But most accesses go through a pointer
 * to the start of an array, so that byte counts as the whole variable, unless the other variable is larger. */
bool symbols_stack_at(struct symbols *symbols, uint64_t vaddr, int64_t distance_bytes, struct symbols_data *data)
{
    const struct local *locals = NULL, *best = NULL, *starts = NULL;
    int64_t best_bytes = 0, last = -distance_bytes + 1, first = last - 16;
    size_t n = locals_of_function(symbols, vaddr, &locals);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; locals[i].name && j < locals[i].n_places; j++) {
            const struct local_place *place = &locals[i].places[j];
            int64_t common = place->kind == LOCAL_FRAME ? common_bytes(&locals[i], place, first, last) : 0;
            if (common > 0 && place->offset == -distance_bytes)
                starts = &locals[i];
            if (common > best_bytes) {
                best = &locals[i];
                best_bytes = common;
            }
        }
    if (starts && starts->size_bytes >= best->size_bytes)
        best = starts;
    if (best)
        *data = (struct symbols_data){.name = best->name,
                                      .size_bytes = best->size_bytes,
                                      .decl_file = best->decl_file,
                                      .decl_line = best->decl_line};
    return best != NULL;
}
