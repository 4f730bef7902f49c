/* SPDX-License-Identifier: BSD-3-Clause */
/* Where variables with static storage are declared, from DWARF; collected in one walk when first asked for. */
#include <dwarf.h>
#include <stdlib.h>

#include "structure/symbols-internal.h"

#define WALK_DEPTH_MAX 16

static int compare_variables(const void *a, const void *b)
{
    const struct dwarf_variable *x = a, *y = b;
    if (x->is_tls != y->is_tls)
        return x->is_tls ? 1 : -1;
    return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* The fixed address of a variable, or its offset in the TLS segment; false when it has neither. */
static bool fixed_address(Dwarf_Die *die, uint64_t *at, bool *is_tls)
{
    Dwarf_Attribute attribute, target;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &ops, &n_ops) != 0)
        return false;
    *is_tls = n_ops == 2 && (ops[1].atom == DW_OP_form_tls_address || ops[1].atom == DW_OP_GNU_push_tls_address);
    *at = n_ops ? ops[0].number : 0;
    if (*is_tls)
        return ops[0].atom == DW_OP_const8u || ops[0].atom == DW_OP_const4u || ops[0].atom == DW_OP_addr;
    /* a member of a COMMON block behind its first one */
    bool is_sum = n_ops == 2 && ops[1].atom == DW_OP_plus_uconst;
    uint64_t more = is_sum ? ops[1].number : 0;
    Dwarf_Addr address = 0;
    if (n_ops != 1 && !is_sum)
        return false;
    if ((ops[0].atom == DW_OP_addrx || ops[0].atom == DW_OP_GNU_addr_index) &&
        dwarf_getlocation_attr(&attribute, ops, &target) == 0 && dwarf_formaddr(&target, &address) == 0)
        *at = address;
    else if (ops[0].atom != DW_OP_addr)
        return false;
    *at += more;
    return *at != 0;
}

/* named: the DIE that the variable is named and declared by, die itself except in a Fortran COMMON block. */
static void add_variable(struct symbols *symbols, Dwarf_Die *die, Dwarf_Die *named)
{
    uint64_t address = 0;
    bool is_tls = false;
    int line = 0;
    if (!fixed_address(die, &address, &is_tls) ||
        !vec_reserve(&symbols->variables, &symbols->cap_variables, symbols->n_variables + 1,
                     sizeof *symbols->variables))
        return;
    struct dwarf_variable *variable = &symbols->variables[symbols->n_variables++];
    (void)dwarf_decl_line(named, &line);
    *variable = (struct dwarf_variable){.vaddr = is_tls ? address : address + symbols->dwarf_bias,
                                        .is_tls = is_tls,
                                        .die = *die,
                                        .name = symbols_own_name(symbols, dwarf_diename(named)),
                                        .file = symbols_decl_file(symbols, named),
                                        .line = (uint32_t)line};
}

/* The symbol of a COMMON block begins where its first member does. */
static void add_common(struct symbols *symbols, Dwarf_Die *block)
{
    Dwarf_Die member;
    if (dwarf_child(block, &member) != 0)
        return;
    do {
        if (dwarf_tag(&member) == DW_TAG_variable)
            add_variable(symbols, &member, block);
    } while (dwarf_siblingof(&member, &member) == 0);
}

static void walk(struct symbols *symbols, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
            add_variable(symbols, &die, &die);
            break;
        case DW_TAG_common_block:
            add_common(symbols, &die);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
            walk(symbols, &die, depth + 1);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

size_t symbols_dwarf_variables(struct symbols *symbols)
{
    if (!symbols->variables_indexed) {
        symbols->variables_indexed = true;
        for (size_t i = 0; i < symbols->n_units; i++)
            walk(symbols, &symbols->units[i].scopes, 0);
        if (symbols->n_variables)
            qsort(symbols->variables, symbols->n_variables, sizeof *symbols->variables, compare_variables);
    }
    return symbols->n_variables;
}

bool symbols_variable_before(const struct dwarf_variable *variable, bool tls, uint64_t vaddr)
{
    return variable->is_tls == tls ? variable->vaddr <= vaddr : !variable->is_tls;
}

const struct dwarf_variable *symbols_dwarf_variable(struct symbols *symbols, uint64_t vaddr)
{
    if (symbols_dwarf_variables(symbols) == 0)
        return NULL;
    struct dwarf_variable key = {.vaddr = vaddr};
    return bsearch(&key, symbols->variables, symbols->n_variables, sizeof key, compare_variables);
}
