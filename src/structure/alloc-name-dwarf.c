/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variable DWARF gives for a place at a pc, with members of what it points to. See alloc-name-internal.h. */
#include "structure/alloc-name-internal.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure/demangle.h"
#include "structure/types-internal.h"

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

static bool is_fortran(Dwarf_Die *die)
{
    return types_language(die) & TYPE_IS_FORTRAN;
}

/* The variable's name; of one in a Fortran module "module::name". False when it has none that the program's author
 * gave it. */
static bool own_name(Dwarf_Die *variable, char *name, size_t size_bytes)
{
    Dwarf_Attribute attribute;
    const char *own = dwarf_diename(variable);
    const char *linkage =
        dwarf_attr_integrate(variable, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
    if (!own || strncmp(own, "__", 2) == 0)
        return false;
    char *of_module = linkage ? demangle_module_variable(linkage) : NULL;
    (void)snprintf(name, size_bytes, "%s", of_module ? of_module : own);
    free(of_module);
    return true;
}

/* What stands between an object and its member, and behind an array whose element is meant. */
static const char *member_sign(Dwarf_Die *die)
{
    return is_fortran(die) ? "%" : ".";
}

static const char *element_sign(Dwarf_Die *die)
{
    return is_fortran(die) ? "(:)" : "[]";
}

static bool is_structure(Dwarf_Die *type)
{
    int tag = dwarf_tag(type);
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
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
        bool has_inner =
            is_structure(&type) && member_name(&type, offset - (int64_t)at, inner, sizeof inner, steps + 1);
        if (has_inner && inner[0] == '_') /* an implementation's private member: the object itself is meant */
            has_inner = false;
        if (own && has_inner)
            (void)snprintf(name, size_bytes, "%.100s%s%.100s", own, member_sign(structure), inner);
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
    char own[256];
    if (!own_name(variable, own, sizeof own) || !type_of(variable, &pointer))
        return false;
    if (!is_pointer(&pointer) && dwarf_tag(&pointer) != DW_TAG_array_type)
        return false;
    bool is_array = dwarf_tag(&pointer) == DW_TAG_array_type;
    char member[256];
    if (type_of(&pointer, &target) && is_structure(&target) &&
        member_name(&target, member_offset, member, sizeof member, 0)) {
        bool has_element = is_array || indexed;
        const char *sign = has_element || is_fortran(variable) ? member_sign(variable) : "->";
        (void)snprintf(name, size_bytes, "%.200s%s%s%.200s", own, has_element ? element_sign(variable) : "", sign,
                       member);
        return true;
    }
    (void)snprintf(name, size_bytes, "%s%s", own, is_fortran(variable) ? "" : "[]");
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

/* Where the place that is looked for lies in a variable. */
struct spot {
    int64_t offset;    /* in the variable */
    bool is_reference; /* the place holds the variable's address, plus offset */
};

/* The place is a register that holds the variable, a part of it, or its address. */
static bool find_register(const struct lookup *lookup, const Dwarf_Op *ops, size_t n_ops, struct spot *spot)
{
    int reg = lookup->place->reg;
    int64_t offset = 0;
    if (n_ops == 1 && ops[0].atom == DW_OP_breg0 + reg) {
        *spot = (struct spot){.offset = -(int64_t)ops[0].number, .is_reference = true};
        return true;
    }
    for (size_t i = 0; i < n_ops; i++) {
        if (ops[i].atom == DW_OP_reg0 + reg && (n_ops == 1 || (i + 1 < n_ops && ops[i + 1].atom == DW_OP_piece))) {
            *spot = (struct spot){.offset = offset};
            return true;
        }
        offset += ops[i].atom == DW_OP_piece ? (int64_t)ops[i].number : 0;
    }
    return false;
}

/* The place is in the frame: the variable is there, or what is there points to it. */
static bool find_in_frame(const struct lookup *lookup, const Dwarf_Op *ops, size_t n_ops, uint64_t size_bytes,
                          struct spot *spot)
{
    int64_t offset = 0;
    if (!lookup->has_frame_base)
        return false;
    bool is_reference = n_ops == 2 && ops[1].atom == DW_OP_deref;
    for (size_t i = 0; i < n_ops; i++) {
        bool is_piece = i + 1 < n_ops && ops[i + 1].atom == DW_OP_piece;
        int64_t size = is_piece ? (int64_t)ops[i + 1].number : is_reference ? 1 : (int64_t)size_bytes;
        int64_t within = lookup->place->offset - lookup->frame_base - (int64_t)ops[i].number;
        if (ops[i].atom == DW_OP_fbreg && within >= 0 && within < size && (i == 0 || is_piece)) {
            *spot = (struct spot){.offset = is_reference ? 0 : offset + within, .is_reference = is_reference};
            return true;
        }
        offset += ops[i].atom == DW_OP_piece ? (int64_t)ops[i].number : 0;
    }
    return false;
}

/* Where the place lies in the variable; false when it does not. */
static bool find_spot(const struct lookup *lookup, Dwarf_Die *variable, struct spot *spot)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    Dwarf_Die type;
    Dwarf_Word size = 8;
    if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute) ||
        dwarf_getlocation_addr(&attribute, to_dwarf(lookup->symbols, lookup->vaddr), &ops, &n_ops, 1) != 1 || n_ops < 1)
        return false;
    if (lookup->place->kind == PLACE_REGISTER)
        return find_register(lookup, ops, n_ops, spot);
    if (type_of(variable, &type) && dwarf_aggregate_size(&type, &size) != 0)
        size = 8;
    if (lookup->place->kind == PLACE_STACK)
        return find_in_frame(lookup, ops, n_ops, size, spot);
    *spot = (struct spot){.offset = offset_in_static(lookup, &attribute, ops, n_ops, size)};
    return spot->offset >= 0;
}

/* Name of the variable itself; with the member where the place is inside a structure. */
static bool direct_name(Dwarf_Die *variable, int64_t offset, char *name, size_t size_bytes)
{
    Dwarf_Die type, element;
    Dwarf_Word size = 0;
    char member[256], own[256];
    if (!own_name(variable, own, sizeof own))
        return false;
    bool has_type = type_of(variable, &type), is_array = has_type && dwarf_tag(&type) == DW_TAG_array_type;
    if (is_array && type_of(&type, &element) && is_structure(&element) && dwarf_aggregate_size(&element, &size) == 0 &&
        size && !dwarf_hasattr(&type, DW_AT_data_location)) {
        type = element;
        offset %= (int64_t)size;
    }
    if (has_type && is_structure(&type) && member_name(&type, offset, member, sizeof member, 0) && member[0] != '_')
        (void)snprintf(name, size_bytes, "%.100s%s%s%.100s", own, is_array ? element_sign(variable) : "",
                       member_sign(variable), member);
    else
        (void)snprintf(name, size_bytes, "%s%s", own, is_array && !is_fortran(variable) ? "[]" : "");
    return true;
}

/* Name for the block: its address is at the spot, or (member_offset >= 0) in a member of what the spot points to. */
static bool name_spot(Dwarf_Die *variable, const struct spot *spot, int64_t member_offset, bool indexed, char *name,
                      size_t size_bytes)
{
    if (member_offset < 0 && !spot->is_reference)
        return direct_name(variable, spot->offset, name, size_bytes);
    if (member_offset < 0) { /* the block is the variable: an array of variable length */
        Dwarf_Die type;
        return spot->offset == 0 && type_of(variable, &type) && dwarf_tag(&type) == DW_TAG_array_type &&
               own_name(variable, name, size_bytes);
    }
    if (spot->is_reference)
        return direct_name(variable, spot->offset + member_offset, name, size_bytes);
    return spot->offset == 0 && pointed_name(variable, member_offset, indexed, name, size_bytes);
}

static int depth_of_scope(Dwarf_Die *scopes, int n_scopes, int index)
{
    int depth = 0;
    for (int i = index; i < n_scopes; i++)
        depth += dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
    return depth;
}

/* A variable with static storage that no scope around the code declares: of a module that it uses. */
static bool name_static(struct symbols *symbols, const struct place *place, int64_t member_offset, bool indexed,
                        char *name, size_t size_bytes)
{
    uint64_t vaddr = (uint64_t)place->offset, start;
    const char *own;
    struct symbols_data data;
    if (types_of_static(symbols, vaddr, false, &start, &own)) {
        const struct dwarf_variable *variable = symbols_dwarf_variable(symbols, start);
        struct spot spot = {.offset = (int64_t)(vaddr - start)};
        Dwarf_Die die = variable ? variable->die : (Dwarf_Die){0};
        if (variable && name_spot(&die, &spot, member_offset, indexed, name, size_bytes))
            return true;
    }
    if (member_offset >= 0 || !symbols_data_at(symbols, vaddr, &data))
        return false;
    (void)snprintf(name, size_bytes, "%s", data.name);
    return true;
}

bool alloc_variable_at(struct symbols *symbols, uint64_t vaddr, const struct place *place, int64_t member_offset,
                       bool indexed, char *name, size_t size_bytes, int *depth)
{
    Dwarf_Die scopes[TYPES_SCOPES_MAX];
    int n_scopes = types_scopes(symbols, vaddr, scopes); /* dwarf_getscopes looks into no module of Fortran */
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
            struct spot spot;
            is_found =
                find_spot(&lookup, &child, &spot) && name_spot(&child, &spot, member_offset, indexed, name, size_bytes);
        } while (!is_found && dwarf_siblingof(&child, &child) == 0);
        if (is_found)
            *depth = depth_of_scope(scopes, n_scopes, i);
    }
    if (is_found || place->kind != PLACE_STATIC)
        return is_found;
    *depth = 0;
    return name_static(symbols, place, member_offset, indexed, name, size_bytes);
}

bool alloc_returns_pointer(struct symbols *symbols, uint64_t vaddr)
{
    Dwarf_Die scopes[TYPES_SCOPES_MAX], type;
    int n_scopes = types_scopes(symbols, vaddr, scopes);
    bool returns = n_scopes == 0; /* without debug information the return register is all there is */
    for (int i = 0; i < n_scopes; i++) {
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
            returns = type_of(&scopes[i], &type) ? is_pointer(&type) : dwarf_hasattr_integrate(&scopes[i], DW_AT_type);
    }
    return returns;
}
