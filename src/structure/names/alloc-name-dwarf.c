/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the variable that DWARF gives for a place at a pc, and members of what it points to: see alloc-name.h. */
#include "structure/names/alloc-name.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure/types/types-dwarf.h"

#define TYPE_STEPS_MAX 32

static Dwarf_Addr to_dwarf(const struct symbols *symbols, uint64_t vaddr)
{
    return vaddr - symbols->dwarf_bias;
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

/* The variable's name, "module::name" for one in a Fortran module. False when the program's author gave it no name. */
static bool own_name(Dwarf_Die *variable, char *name, size_t size_bytes)
{
    Dwarf_Attribute attribute;
    const char *own = dwarf_diename(variable);
    const char *linkage =
        dwarf_attr_integrate(variable, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
    if (!own || strncmp(own, "__", 2) == 0)
        return false;
    char *of_module = linkage ? demangle_module_name(linkage) : NULL;
    (void)snprintf(name, size_bytes, "%s", of_module ? of_module : own);
    free(of_module);
    return true;
}

/* What stands between an object and its member, and after an array whose element is meant. */
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

/* Whether a member is internal to the C++ library: the object itself is meant then. */
static bool is_of_library(const char *member)
{
    return strncmp(member, "_M_", 3) == 0 || strncmp(member, "__", 2) == 0 || strncmp(member, "_vptr", 5) == 0;
}

/* Whether code outside the class cannot name the member, or by the usual signs does not. */
static bool is_hidden(Dwarf_Die *structure, Dwarf_Die *member)
{
    Dwarf_Attribute attribute;
    Dwarf_Word access = dwarf_tag(structure) == DW_TAG_class_type ? DW_ACCESS_private : DW_ACCESS_public;
    const char *own = dwarf_diename(member);
    if (dwarf_attr(member, DW_AT_accessibility, &attribute))
        dwarf_formudata(&attribute, &access);
    return access != DW_ACCESS_public || own[0] == '_' || own[strlen(own) - 1] == '_' || strncmp(own, "m_", 2) == 0;
}

/* The first type argument of a template, without pointers and arrays; false when the structure is no template. */
static bool argument_of(Dwarf_Die *structure, Dwarf_Die *argument)
{
    Dwarf_Die child, inner;
    if (!is_structure(structure) || dwarf_child(structure, &child) != 0)
        return false;
    while (dwarf_tag(&child) != DW_TAG_template_type_parameter)
        if (dwarf_siblingof(&child, &child) != 0)
            return false;
    if (!type_of(&child, argument))
        return false;
    for (int i = 0; i < TYPE_STEPS_MAX && (is_pointer(argument) || dwarf_tag(argument) == DW_TAG_array_type) &&
                    type_of(argument, &inner);
         i++)
        *argument = inner;
    return true;
}

/* Whether a template keeps elements of its type argument in a member of this type. */
static bool is_storage(Dwarf_Die *structure, Dwarf_Die *type)
{
    Dwarf_Die argument, element;
    if (!argument_of(structure, &argument))
        return false;
    if (is_pointer(type) ? !type_of(type, &element) : !argument_of(type, &element))
        return false;
    const char *a = dwarf_diename(&argument), *b = dwarf_diename(&element);
    return argument.addr == element.addr || (a && b && strcmp(a, b) == 0);
}

/* Whether the object is a container and this hidden member an internal of it: the elements (Matrix<double>, View<double
 * *>), or a record of them. */
static bool is_internal(Dwarf_Die *structure, Dwarf_Die *member, Dwarf_Die *type)
{
    Dwarf_Die child, other, target;
    if (!is_hidden(structure, member) || is_storage(structure, type))
        return is_hidden(structure, member);
    bool is_record = is_pointer(type) && type_of(type, &target) && is_structure(&target);
    if (!is_record || dwarf_child(structure, &child) != 0)
        return false;
    do {
        if (dwarf_tag(&child) == DW_TAG_member && type_of(&child, &other) && is_storage(structure, &other))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

/* Adds a member, joined by sign to what is spelled so far. A hidden one is named with its class: "Solver::v_". */
static void spell_one(Dwarf_Die *structure, Dwarf_Die *member, bool is_kept, const char *sign, struct alloc_name *out)
{
    char text[sizeof out->text];
    const char *own = dwarf_diename(member), *of = dwarf_diename(structure);
    bool is_fixed = !is_kept && of && is_hidden(structure, member);
    if (!is_fixed && !out->is_open) {
        (void)snprintf(text, sizeof text, "%.120s%s%.120s", out->text, sign, own);
    } else {
        size_t len = of ? strcspn(of, "<") : 0;
        (void)snprintf(text, sizeof text, "%.*s%s%.120s", (int)(len < 100 ? len : 100), of ? of : "", of ? "::" : "",
                       own);
        if (out->is_open && !is_kept) {
            size_t used = strlen(out->member);
            (void)snprintf(out->member + used, sizeof out->member - used, ".%s", own);
        }
    }
    out->is_open &= !is_fixed;
    memcpy(out->text, text, sizeof text);
}

/* Whether the structure has this name, ignoring template arguments. */
static bool is_of_class(Dwarf_Die *structure, const char *name)
{
    const char *own = dwarf_diename(structure);
    size_t len = own ? strcspn(own, "<") : 0;
    return name && len && strcspn(name, "<") == len && strncmp(own, name, len) == 0;
}

/* Adds the member at offset of a structure and, within it, the members that lie there; false when there is none. */
static bool spell_member(Dwarf_Die *structure, int64_t offset, const char *sign, struct alloc_name *out, int steps)
{
    Dwarf_Die child;
    if (is_of_class(structure, out->of_class))
        return true;
    if (steps > 8 || dwarf_child(structure, &child) != 0)
        return false;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word at = 0, size = 0;
        Dwarf_Die type, element;
        int tag = dwarf_tag(&child);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(&child, DW_AT_external) ||
            !type_of(&child, &type))
            continue;
        if (dwarf_attr(&child, DW_AT_data_member_location, &attribute))
            dwarf_formudata(&attribute, &at);
        if (dwarf_aggregate_size(&type, &size) != 0)
            size = 8;
        if (offset < (int64_t)at || offset >= (int64_t)(at + size))
            continue;
        const char *own = tag == DW_TAG_member ? dwarf_diename(&child) : NULL;
        bool is_kept = own && !is_fortran(structure) && is_internal(structure, &child, &type);
        offset -= (int64_t)at;
        if (own && is_of_library(own))
            return true;
        if (own && (!is_kept || out->is_open))
            spell_one(structure, &child, is_kept, sign, out);
        if (is_kept)
            return true;
        bool is_array = dwarf_tag(&type) == DW_TAG_array_type && !is_fortran(structure);
        if (is_array && type_of(&type, &element) && is_structure(&element) &&
            dwarf_aggregate_size(&element, &size) == 0 && size) {
            type = element;
            offset %= (int64_t)size;
        }
        if (is_array)
            (void)strncat(out->text, "[]", sizeof out->text - strlen(out->text) - 1);
        if (is_structure(&type))
            (void)spell_member(&type, offset, own ? member_sign(structure) : sign, out, steps + 1);
        return own || is_structure(&type);
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

/* Replaces the record that gfortran makes of a polymorphic variable by the type of its object. */
static bool enter_object(Dwarf_Die *record)
{
    Dwarf_Die child, pointer;
    const char *own = is_structure(record) && is_fortran(record) ? dwarf_diename(record) : NULL;
    return own && strncmp(own, "__class_", 8) == 0 && dwarf_child(record, &child) == 0 && type_of(&child, &pointer) &&
           is_pointer(&pointer) && type_of(&pointer, record);
}

/* Name for a pointer to the block, stored where variable points to. */
static bool pointed_name(Dwarf_Die *variable, int64_t member_offset, bool indexed, struct alloc_name *out)
{
    Dwarf_Die pointer, target;
    if (!own_name(variable, out->text, sizeof out->text) || !type_of(variable, &pointer))
        return false;
    if (!is_pointer(&pointer) && dwarf_tag(&pointer) != DW_TAG_array_type)
        return false;
    bool has_element = dwarf_tag(&pointer) == DW_TAG_array_type || indexed, has_target = type_of(&pointer, &target);
    if (has_target && strcmp(out->text, "this") == 0) {
        if (is_of_class(&target, out->of_class))
            return false; /* it is the name of this object that is wanted */
        out->is_open = true;
        return is_structure(&target) && spell_member(&target, member_offset, "->", out, 0);
    }
    struct alloc_name element = *out;
    const char *sign = has_element || is_fortran(variable) ? member_sign(variable) : "->";
    if (has_element)
        (void)strncat(element.text, element_sign(variable), sizeof element.text - strlen(element.text) - 1);
    if (has_target && is_structure(&target) && spell_member(&target, member_offset, sign, &element, 0))
        *out = element;
    else if (!is_fortran(variable))
        (void)strncat(out->text, "[]", sizeof out->text - strlen(out->text) - 1);
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
            return symbols_cfa_offset(symbols, vaddr, ops[0].atom - DW_OP_reg0, base);
        if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
            *base = (int64_t)ops[0].number;
            return symbols_cfa_offset(symbols, vaddr, ops[0].atom - DW_OP_breg0, base);
        }
        return false;
    }
    return false;
}

/* What one lookup needs of its scopes. */
struct lookup {
    struct symbols *symbols;
    uint64_t vaddr;
    const struct value_place *place;
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

/* Offset of the static place in the variable, which the compiler may have split into pieces; -1 when it is not in
 * it. */
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

/* Where the wanted place lies in a variable. */
struct spot {
    int64_t offset;    /* in the variable */
    bool is_reference; /* the place holds the variable's address, plus offset */
    bool is_inner;     /* as in value_place */
};

/* Whether the place is a register that holds the variable, a part of it, or its address. */
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

/* Whether the place is in the frame, and the variable is there or is pointed to from there. */
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

/* Name of the variable itself, with the member if the place is inside a structure. */
static bool direct_name(Dwarf_Die *variable, int64_t offset, struct alloc_name *out)
{
    Dwarf_Die type, element;
    Dwarf_Word size = 0;
    if (!own_name(variable, out->text, sizeof out->text) || strcmp(out->text, "this") == 0)
        return false;
    bool has_type = type_of(variable, &type), is_array = has_type && dwarf_tag(&type) == DW_TAG_array_type;
    bool is_direct = is_array && !dwarf_hasattr(&type, DW_AT_data_location);
    if (is_direct && type_of(&type, &element) && is_structure(&element) && dwarf_aggregate_size(&element, &size) == 0 &&
        size) {
        type = element;
        offset %= (int64_t)size;
    }
    if (is_array && (is_direct || !is_fortran(variable)) && (!is_fortran(variable) || size))
        (void)strncat(out->text, element_sign(variable), sizeof out->text - strlen(out->text) - 1);
    if (has_type && is_structure(&type))
        (void)spell_member(&type, offset, member_sign(variable), out, 0);
    return true;
}

/* Numbers shorter than an address cannot hold one. */
static bool can_hold_pointer(Dwarf_Die *variable)
{
    Dwarf_Die type;
    Dwarf_Word size;
    return !type_of(variable, &type) || dwarf_tag(&type) != DW_TAG_base_type ||
           dwarf_aggregate_size(&type, &size) != 0 || size >= sizeof(uint64_t);
}

/* Name for a member of the object of a polymorphic variable, to which the spot points. */
static bool name_of_inner(Dwarf_Die *variable, const struct spot *spot, int64_t member_offset, struct alloc_name *out)
{
    Dwarf_Die type, target;
    if (spot->offset != 0 || !type_of(variable, &type))
        return false;
    if (!spot->is_reference && is_pointer(&type) && type_of(&type, &target))
        type = target;
    else if (!spot->is_reference)
        return false;
    return enter_object(&type) && own_name(variable, out->text, sizeof out->text) &&
           spell_member(&type, member_offset, "%", out, 0);
}

/* Name for the block: its address is at the spot, or (member_offset >= 0) in a member of what the spot points to. */
static bool name_spot(Dwarf_Die *variable, const struct spot *spot, int64_t member_offset, bool indexed,
                      struct alloc_name *out)
{
    *out = (struct alloc_name){.of_class = out->of_class};
    if (!can_hold_pointer(variable))
        return false;
    if (spot->is_inner)
        return name_of_inner(variable, spot, member_offset, out);
    if (member_offset < 0 && !spot->is_reference)
        return direct_name(variable, spot->offset, out);
    if (member_offset < 0) { /* the block is the variable: an array of variable length */
        Dwarf_Die type;
        return spot->offset == 0 && type_of(variable, &type) && dwarf_tag(&type) == DW_TAG_array_type &&
               own_name(variable, out->text, sizeof out->text);
    }
    if (spot->is_reference)
        return direct_name(variable, spot->offset + member_offset, out);
    return spot->offset == 0 && pointed_name(variable, member_offset, indexed, out);
}

/* Whether the scope belongs to the C++ library: its variables mean nothing to the program's author. */
static bool is_library_scope(Dwarf_Die *scope)
{
    static const char *const prefixes[] = {"_ZNSt", "_ZNKSt",    "_ZSt",      "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
                                           "_ZNSa", "_ZN5boost", "_ZN5Eigen", "_ZN6Kokkos"};
    Dwarf_Attribute attribute;
    int tag = dwarf_tag(scope);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
        return false;
    const char *linkage =
        dwarf_attr_integrate(scope, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
    for (size_t i = 0; linkage && i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(linkage, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static int depth_of_scope(Dwarf_Die *scopes, int n_scopes, int index)
{
    int depth = 0;
    for (int i = index; i < n_scopes; i++)
        depth += dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
    return depth;
}

/* Names a variable with static storage that no scope around the code declares, such as one of a module that the code
 * uses. */
static bool name_static(struct symbols *symbols, const struct value_place *place, int64_t member_offset, bool indexed,
                        struct alloc_name *out)
{
    uint64_t vaddr = (uint64_t)place->offset, start;
    const char *own;
    struct symbols_data data;
    if (types_of_static(symbols, vaddr, false, &start, &own)) {
        const struct dwarf_variable *variable = symbols_dwarf_variable(symbols, start);
        struct spot spot = {.offset = (int64_t)(vaddr - start), .is_inner = place->is_inner};
        Dwarf_Die die = variable ? variable->die : (Dwarf_Die){0};
        if (variable && name_spot(&die, &spot, member_offset, indexed, out))
            return true;
    }
    *out = (struct alloc_name){.of_class = out->of_class};
    if (member_offset >= 0 || !symbols_data_at(symbols, vaddr, &data))
        return false;
    (void)snprintf(out->text, sizeof out->text, "%s", data.name);
    return true;
}

/* Names the first variable of a block that is at the place. */
static bool name_in_scope(const struct lookup *lookup, Dwarf_Die *scope, int64_t member_offset, bool indexed,
                          struct alloc_name *out)
{
    Dwarf_Die child;
    if (dwarf_child(scope, &child) != 0)
        return false;
    do {
        struct spot spot;
        int tag = dwarf_tag(&child);
        bool is_found = (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) && find_spot(lookup, &child, &spot);
        if (is_found)
            spot.is_inner = lookup->place->is_inner;
        if (is_found && name_spot(&child, &spot, member_offset, indexed, out))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

bool alloc_variable_at(struct symbols *symbols, uint64_t vaddr, const struct value_place *place, int64_t member_offset,
                       bool indexed, struct alloc_name *out, int *depth)
{
    Dwarf_Die scopes[TYPES_SCOPES_MAX];
    int n_scopes = types_scopes(symbols, vaddr, scopes); /* dwarf_getscopes does not search Fortran modules */
    bool is_inside = false;                              /* of a function of the C++ library */
    struct lookup lookup = {.symbols = symbols, .vaddr = vaddr, .place = place};
    if (n_scopes > 0)
        lookup.has_frame_base = frame_base_offset(symbols, scopes, n_scopes, vaddr, &lookup.frame_base);
    for (int i = n_scopes; i-- > 0;) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram)
            is_inside = is_library_scope(&scopes[i]);
        if (!is_inside && name_in_scope(&lookup, &scopes[i], member_offset, indexed, out)) {
            *depth = depth_of_scope(scopes, n_scopes, i);
            return true;
        }
    }
    *depth = 0;
    return place->kind == PLACE_STATIC && name_static(symbols, place, member_offset, indexed, out);
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

/* The member of a class with this name, and the class that declares it. */
static bool find_member(Dwarf_Die *structure, const char *name, Dwarf_Die *of, Dwarf_Die *member, int steps)
{
    Dwarf_Die child, base;
    if (steps > 8 || dwarf_child(structure, &child) != 0)
        return false;
    do {
        int tag = dwarf_tag(&child);
        const char *own = dwarf_diename(&child);
        if (tag == DW_TAG_member && own && strcmp(own, name) == 0) {
            *of = *structure;
            *member = child;
            return true;
        }
        if (tag == DW_TAG_inheritance && type_of(&child, &base) && find_member(&base, name, of, member, steps + 1))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

bool alloc_name_of_member(struct symbols *symbols, uint64_t function_die, const char *name, struct alloc_name *out)
{
    Dwarf_Die structure, of, member, type;
    if (!types_class_of(symbols, function_die, &structure) || !find_member(&structure, name, &of, &member, 0) ||
        !type_of(&member, &type))
        return false;
    *out = (struct alloc_name){.is_open = true, .of_class = out->of_class};
    spell_one(&of, &member, is_internal(&of, &member, &type), "", out);
    return true;
}

/* Whether the compiler has added a parameter. gfortran also marks arrays of assumed shape, which are in the source. */
static bool is_added(Dwarf_Die *parameter)
{
    const char *name = dwarf_diename(parameter);
    return dwarf_hasattr_integrate(parameter, DW_AT_artificial) &&
           (!name || *name == '_' || *name == '.' || strcmp(name, "this") == 0);
}

int alloc_name_parameter(struct symbols *symbols, uint64_t function_die, const char *name, bool *is_reference,
                         bool *is_pointer)
{
    Dwarf_Die function, origin, child, type;
    Dwarf_Attribute attribute;
    int index = 0;
    if (!symbols->dwarf || !function_die || !dwarf_offdie(symbols->dwarf, function_die, &function))
        return -1;
    if (dwarf_attr(&function, DW_AT_abstract_origin, &attribute) && dwarf_formref_die(&attribute, &origin))
        function = origin; /* an instance leaves out unused parameters */
    if (dwarf_child(&function, &child) != 0)
        return -1;
    do {
        const char *own = dwarf_diename(&child);
        if (dwarf_tag(&child) != DW_TAG_formal_parameter || is_added(&child))
            continue;
        if (own && strcmp(own, name) == 0) {
            bool has_type = type_of(&child, &type);
            *is_reference = has_type && (dwarf_tag(&type) == DW_TAG_reference_type ||
                                         dwarf_tag(&type) == DW_TAG_rvalue_reference_type);
            *is_pointer = has_type && dwarf_tag(&type) == DW_TAG_pointer_type;
            return index;
        }
        index++;
    } while (dwarf_siblingof(&child, &child) == 0);
    return -1;
}

bool alloc_name_of_class(struct symbols *symbols, uint64_t function_die, const char *class, struct alloc_name *out)
{
    Dwarf_Die structure, child, type, found;
    unsigned n = 0;
    if (!types_class_of(symbols, function_die, &structure) || dwarf_child(&structure, &child) != 0)
        return false;
    do {
        if (dwarf_tag(&child) == DW_TAG_member && dwarf_diename(&child) && !dwarf_hasattr(&child, DW_AT_external) &&
            type_of(&child, &type) && is_of_class(&type, class)) {
            found = child;
            n++;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
    if (n != 1)
        return false;
    *out = (struct alloc_name){.is_open = true, .of_class = out->of_class};
    spell_one(&structure, &found, false, "", out);
    return true;
}

static bool has_base(Dwarf_Die *structure, const char *name, int steps)
{
    Dwarf_Die child, base;
    if (steps > 8 || dwarf_child(structure, &child) != 0)
        return false;
    do {
        if (dwarf_tag(&child) == DW_TAG_inheritance && type_of(&child, &base) &&
            (is_of_class(&base, name) || has_base(&base, name, steps + 1)))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

bool alloc_name_is_base(struct symbols *symbols, uint64_t function_die, const char *base)
{
    Dwarf_Die structure;
    return types_class_of(symbols, function_die, &structure) && has_base(&structure, base, 0);
}
