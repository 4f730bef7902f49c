/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variable DWARF gives for a place at a pc, with members of what it points to. See alloc-name-internal.h. */
#include "structure/alloc-name-internal.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_STEPS_MAX 32

static Dwarf_Addr to_dwarf(const struct symbols *symbols, uint64_t vaddr)
{
    return vaddr - symbols->dwarf_bias;
}

bool alloc_place_of_register(struct symbols *symbols, uint64_t vaddr, int reg, int64_t *offset)
{
    Dwarf_Addr bias = 0;
    Dwarf_CFI *cfi = dwfl_module_eh_cfi(symbols->module, &bias);
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    bool is_known = false;
    if (!cfi || dwarf_cfi_addrframe(cfi, vaddr - bias, &frame) != 0)
        return false;
    if (dwarf_frame_cfa(frame, &ops, &n_ops) == 0 && n_ops == 1) {
        int base = -1;
        int64_t distance = (int64_t)ops[0].number;
        if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
            base = ops[0].atom - DW_OP_breg0;
        } else if (ops[0].atom == DW_OP_bregx) {
            base = (int)ops[0].number;
            distance = (int64_t)ops[0].number2;
        }
        is_known = base == reg;
        if (is_known)
            *offset -= distance;
    }
    free(frame);
    return is_known;
}

/* Type of a DIE with typedefs and qualifiers removed; false when it has none. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, type))
        return false;
    for (int i = 0; i < TYPE_STEPS_MAX; i++) {
        int tag = dwarf_tag(type);
        if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type &&
            tag != DW_TAG_restrict_type && tag != DW_TAG_atomic_type)
            return true;
        Dwarf_Die inner;
        if (!dwarf_attr(type, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &inner))
            return false;
        *type = inner;
    }
    return false;
}

static bool is_pointer(Dwarf_Die *type)
{
    int tag = dwarf_tag(type);
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

/* Name of the member at offset of a structure, "a.b" for nested ones; false when there is none. */
static bool member_name(Dwarf_Die *structure, int64_t offset, char *name, size_t size_bytes, int steps)
{
    Dwarf_Die child;
    if (steps > 8 || dwarf_child(structure, &child) != 0)
        return false;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word at = 0, size = 0;
        Dwarf_Die type;
        int tag = dwarf_tag(&child);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || !type_of(&child, &type))
            continue;
        if (dwarf_attr(&child, DW_AT_data_member_location, &attribute))
            dwarf_formudata(&attribute, &at);
        if (dwarf_aggregate_size(&type, &size) != 0)
            size = 8;
        if (offset < (int64_t)at || offset >= (int64_t)(at + size))
            continue;
        const char *own = dwarf_diename(&child);
        char inner[200];
        int type_tag = dwarf_tag(&type);
        bool is_nested = type_tag == DW_TAG_structure_type || type_tag == DW_TAG_class_type;
        bool has_inner = is_nested && member_name(&type, offset - (int64_t)at, inner, sizeof inner, steps + 1);
        if (has_inner && inner[0] == '_') /* an implementation's private member: the object itself is meant */
            has_inner = false;
        if (own && has_inner)
            (void)snprintf(name, size_bytes, "%.100s.%.100s", own, inner);
        else if (own || has_inner)
            (void)snprintf(name, size_bytes, "%s", own ? own : inner);
        else
            return false;
        return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

/* Name for a pointer to the block, stored where variable points to. */
static bool pointed_name(Dwarf_Die *variable, int64_t member_offset, bool indexed, char *name, size_t size_bytes)
{
    Dwarf_Die pointer, target;
    const char *own = dwarf_diename(variable);
    if (!own || !type_of(variable, &pointer))
        return false;
    if (!is_pointer(&pointer) && dwarf_tag(&pointer) != DW_TAG_array_type)
        return false;
    bool is_array = dwarf_tag(&pointer) == DW_TAG_array_type;
    if (!type_of(&pointer, &target)) {
        (void)snprintf(name, size_bytes, "%s[]", own);
        return true;
    }
    int tag = dwarf_tag(&target);
    char member[256];
    if ((tag == DW_TAG_structure_type || tag == DW_TAG_class_type) &&
        member_name(&target, member_offset, member, sizeof member, 0)) {
        (void)snprintf(name, size_bytes, is_array || indexed ? "%.200s[].%.200s" : "%.200s->%.200s", own, member);
        return true;
    }
    (void)snprintf(name, size_bytes, "%s[]", own);
    return true;
}

/* CFA-relative offset of frame-base-relative locations in the innermost function of scopes. */
static bool frame_base_offset(struct symbols *symbols, Dwarf_Die *scopes, int n_scopes, uint64_t vaddr, int64_t *base)
{
    for (int i = 0; i < n_scopes; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Op *ops = NULL;
        size_t n_ops = 0;
        if (dwarf_tag(&scopes[i]) != DW_TAG_subprogram || !dwarf_attr(&scopes[i], DW_AT_frame_base, &attribute))
            continue;
        if (dwarf_getlocation_addr(&attribute, to_dwarf(symbols, vaddr), &ops, &n_ops, 1) != 1 || n_ops < 1)
            return false;
        *base = 0;
        if (ops[0].atom == DW_OP_call_frame_cfa)
            return true;
        if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
            return alloc_place_of_register(symbols, vaddr, ops[0].atom - DW_OP_reg0, base);
        if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
            *base = (int64_t)ops[0].number;
            return alloc_place_of_register(symbols, vaddr, ops[0].atom - DW_OP_breg0, base);
        }
        return false;
    }
    return false;
}

/* What one lookup needs of its scopes. */
struct lookup {
    struct symbols *symbols;
    uint64_t vaddr;
    const struct place *place;
    bool has_frame_base;
    int64_t frame_base;
};

/* The address that an operation of a location pushes, directly or from .debug_addr; false when it is another one. */
static bool static_address(Dwarf_Attribute *location, const Dwarf_Op *op, uint64_t *address)
{
    Dwarf_Attribute target;
    Dwarf_Addr found = op->number;
    bool is_indexed = op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index;
    if (is_indexed && (dwarf_getlocation_attr(location, op, &target) != 0 || dwarf_formaddr(&target, &found) != 0))
        return false;
    *address = found;
    return is_indexed || op->atom == DW_OP_addr;
}

/* Offset of the static place within the variable, which the compiler may have split into pieces; -1 when it is not
 * there. */
static int64_t offset_in_static(const struct lookup *lookup, Dwarf_Attribute *location, const Dwarf_Op *ops,
                                size_t n_ops, uint64_t size_bytes)
{
    uint64_t place = (uint64_t)lookup->place->offset - lookup->symbols->dwarf_bias, offset = 0, start;
    if (n_ops == 1)
        return static_address(location, ops, &start) && place - start < size_bytes ? (int64_t)(place - start) : -1;
    for (size_t i = 0; i < n_ops; i++) {
        if (ops[i].atom != DW_OP_piece)
            continue;
        if (i > 0 && static_address(location, &ops[i - 1], &start) && place - start < ops[i].number)
            return (int64_t)(offset + (place - start));
        offset += ops[i].number;
    }
    return -1;
}

/* Offset of the place within the variable, -1 when the variable is not there. */
static int64_t offset_in(const struct lookup *lookup, Dwarf_Die *variable)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    Dwarf_Die type;
    Dwarf_Word size = 8;
    int64_t at;
    if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute) ||
        dwarf_getlocation_addr(&attribute, to_dwarf(lookup->symbols, lookup->vaddr), &ops, &n_ops, 1) != 1 || n_ops < 1)
        return -1;
    if (lookup->place->kind == PLACE_REGISTER)
        return n_ops == 1 && ops[0].atom == DW_OP_reg0 + lookup->place->reg ? 0 : -1;
    if (type_of(variable, &type) && dwarf_aggregate_size(&type, &size) != 0)
        size = 8;
    if (lookup->place->kind == PLACE_STATIC)
        return offset_in_static(lookup, &attribute, ops, n_ops, size);
    if (lookup->place->kind == PLACE_STACK && ops[0].atom == DW_OP_fbreg && lookup->has_frame_base)
        at = lookup->frame_base + (int64_t)ops[0].number;
    else
        return -1;
    int64_t offset = lookup->place->offset - at;
    return offset >= 0 && offset < (int64_t)size ? offset : -1;
}

/* Name of the variable itself; with the member where the place is inside a structure. */
static bool direct_name(Dwarf_Die *variable, int64_t offset, char *name, size_t size_bytes)
{
    Dwarf_Die type;
    char member[256];
    const char *own = dwarf_diename(variable);
    if (!own)
        return false;
    bool is_structure = type_of(variable, &type) &&
                        (dwarf_tag(&type) == DW_TAG_structure_type || dwarf_tag(&type) == DW_TAG_class_type);
    if (is_structure && member_name(&type, offset, member, sizeof member, 0) && member[0] != '_')
        (void)snprintf(name, size_bytes, "%.100s.%.100s", own, member);
    else if (type_of(variable, &type) && dwarf_tag(&type) == DW_TAG_array_type)
        (void)snprintf(name, size_bytes, "%s[]", own);
    else
        (void)snprintf(name, size_bytes, "%s", own);
    return true;
}

static int depth_of_scope(Dwarf_Die *scopes, int n_scopes, int index)
{
    int depth = 0;
    for (int i = index; i < n_scopes; i++)
        depth += dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
    return depth;
}

bool alloc_variable_at(struct symbols *symbols, uint64_t vaddr, const struct place *place, int64_t member_offset,
                       bool indexed, char *name, size_t size_bytes, int *depth)
{
    Dwarf_Die *unit = symbols_dwarf_unit(symbols, vaddr), *scopes = NULL;
    if (!unit)
        return false;
    int n_scopes = dwarf_getscopes(unit, to_dwarf(symbols, vaddr), &scopes);
    struct lookup lookup = {.symbols = symbols, .vaddr = vaddr, .place = place};
    if (n_scopes > 0)
        lookup.has_frame_base = frame_base_offset(symbols, scopes, n_scopes, vaddr, &lookup.frame_base);
    bool is_found = false;
    for (int i = 0; i < n_scopes && !is_found; i++) {
        Dwarf_Die child;
        if (dwarf_child(&scopes[i], &child) != 0)
            continue;
        do {
            int tag = dwarf_tag(&child);
            if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter)
                continue;
            int64_t offset = offset_in(&lookup, &child);
            if (offset < 0)
                continue;
            is_found = member_offset < 0 ? direct_name(&child, offset, name, size_bytes)
                                         : pointed_name(&child, member_offset, indexed, name, size_bytes);
        } while (!is_found && dwarf_siblingof(&child, &child) == 0);
        if (is_found)
            *depth = depth_of_scope(scopes, n_scopes, i);
    }
    free(scopes);
    return is_found;
}

bool alloc_returns_pointer(struct symbols *symbols, uint64_t vaddr)
{
    Dwarf_Die *scopes = NULL, type;
    Dwarf_Die *unit = symbols_dwarf_unit(symbols, vaddr);
    bool returns = !unit; /* without debug information the return register is all there is */
    int n_scopes = unit ? dwarf_getscopes(unit, to_dwarf(symbols, vaddr), &scopes) : 0;
    for (int i = 0; i < n_scopes; i++) {
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
            returns = type_of(&scopes[i], &type) ? is_pointer(&type) : dwarf_hasattr_integrate(&scopes[i], DW_AT_type);
    }
    free(scopes);
    return returns;
}
