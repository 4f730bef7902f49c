/* SPDX-License-Identifier: BSD-3-Clause */
/* Which local variable lies where in a stack frame: DWARF places them relative to the function's frame base, which is
 * the CFA, the frame pointer or the stack pointer; all are turned into offsets from the CFA. */
#include <dwarf.h>
#include <stdlib.h>

#include "structure/symbols-internal.h"

#define WALK_DEPTH_MAX 16
#define X86_64_RBP 6
#define X86_64_RSP 7

/* Largest CFA offset from the stack pointer in the function's rows: the one of its body. */
static int64_t stack_pointer_offset(struct symbols *symbols, Dwarf_Addr low, Dwarf_Addr high)
{
    Dwarf_Addr bias = 0;
    int64_t offset = 0;
    Dwarf_CFI *cfi = dwfl_module_eh_cfi(symbols->module, &bias);
    for (Dwarf_Addr at = low + symbols->dwarf_bias, end = high + symbols->dwarf_bias; cfi && at < end;) {
        Dwarf_Frame *frame = NULL;
        Dwarf_Addr start = 0, next = 0;
        Dwarf_Op *ops = NULL;
        size_t n_ops = 0;
        if (dwarf_cfi_addrframe(cfi, at - bias, &frame) != 0)
            break;
        if (dwarf_frame_info(frame, &start, &next, NULL) < 0)
            next = 0;
        if (dwarf_frame_cfa(frame, &ops, &n_ops) == 0 && n_ops == 1 && ops[0].atom == DW_OP_bregx &&
            ops[0].number == X86_64_RSP && (int64_t)ops[0].number2 > offset)
            offset = (int64_t)ops[0].number2;
        free(frame);
        if (next + bias <= at)
            break;
        at = next + bias;
    }
    return offset;
}

/* What to add to a frame-base offset to get an offset from the CFA; false when the frame base is of another kind. */
static bool frame_base_offset(struct symbols *symbols, Dwarf_Die *function, int64_t *offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    Dwarf_Addr low = 0, high = 0;
    if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
        dwarf_getlocation(&attribute, &ops, &n_ops) != 0 || n_ops != 1)
        return false;
    switch (ops[0].atom) {
    case DW_OP_call_frame_cfa:
        *offset = 0;
        return true;
    case DW_OP_reg0 + X86_64_RBP: /* pushed below the return address */
        *offset = -16;
        return true;
    case DW_OP_reg0 + X86_64_RSP:
        if (dwarf_lowpc(function, &low) != 0 || dwarf_highpc(function, &high) != 0)
            return false;
        *offset = -stack_pointer_offset(symbols, low, high);
        return *offset != 0;
    default:
        return false;
    }
}

/* The variable's offset from the frame base, when it has a home in the frame for (part of) its life. */
static bool home_offset(Dwarf_Die *variable, int64_t *offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Addr base = 0, start = 0, end = 0;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    if (!dwarf_attr(variable, DW_AT_location, &attribute))
        return false;
    for (ptrdiff_t next = 0; (next = dwarf_getlocations(&attribute, next, &base, &start, &end, &ops, &n_ops)) > 0;)
        if (n_ops == 1 && ops[0].atom == DW_OP_fbreg) {
            *offset = (int64_t)ops[0].number;
            return true;
        }
    return false;
}

static uint64_t size_of(Dwarf_Die *variable)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    Dwarf_Word size = 0;
    if (!dwarf_attr_integrate(variable, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type) ||
        dwarf_aggregate_size(&type, &size) != 0)
        return 0;
    return size;
}

static void add_variable(struct symbols *symbols, Dwarf_Die *die, int64_t base)
{
    int64_t offset = 0;
    int line = 0;
    if (!home_offset(die, &offset) ||
        !vec_reserve(&symbols->stack, &symbols->cap_stack, symbols->n_stack + 1, sizeof *symbols->stack))
        return;
    (void)dwarf_decl_line(die, &line);
    symbols->stack[symbols->n_stack++] =
        (struct stack_variable){.offset_bytes = base + offset,
                                .size_bytes = size_of(die),
                                .name = symbols_own_name(symbols, dwarf_diename(die)),
                                .file = symbols_decl_file(symbols, die),
                                .line = (uint32_t)line};
}

/* Variables of blocks and of what was inlined live in the same frame. */
static void walk(struct symbols *symbols, Dwarf_Die *parent, int64_t base, unsigned depth)
{
    Dwarf_Die die;
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)
            add_variable(symbols, &die, base);
        else if (tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine)
            walk(symbols, &die, base, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* Bytes that the variable has in the granule that ends at the CFA - distance. A granule holds only the first byte of a
 * variable that begins at its end, but accesses through a pointer to the start of an array are the usual ones: that
 * counts as all of it, unless the other variable is larger. */
static const struct stack_variable *find_in_granule(const struct symbols *symbols, int64_t distance_bytes)
{
    const struct stack_variable *best = NULL, *starts = NULL;
    int64_t best_bytes = 0, last = -distance_bytes + 1, first = last - 16;
    for (size_t i = 0; i < symbols->n_stack; i++) {
        const struct stack_variable *variable = &symbols->stack[i];
        int64_t low = variable->offset_bytes, high = low + (int64_t)variable->size_bytes;
        int64_t common = (high < last ? high : last) - (low > first ? low : first);
        if (!variable->name || common <= 0)
            continue;
        if (low == -distance_bytes)
            starts = variable;
        if (common > best_bytes) {
            best = variable;
            best_bytes = common;
        }
    }
    return starts && starts->size_bytes >= best->size_bytes ? starts : best;
}

bool symbols_stack_at(struct symbols *symbols, uint64_t vaddr, int64_t distance_bytes, struct symbols_data *data)
{
    Dwarf_Die function;
    int64_t base = 0;
    if (!symbols_dwarf_function(symbols, vaddr, &function))
        return false;
    if (symbols->stack_function != dwarf_dieoffset(&function)) {
        symbols->stack_function = dwarf_dieoffset(&function);
        symbols->n_stack = 0;
        if (frame_base_offset(symbols, &function, &base))
            walk(symbols, &function, base, 0);
    }
    const struct stack_variable *best = find_in_granule(symbols, distance_bytes);
    if (best)
        *data = (struct symbols_data){.name = best->name,
                                      .size_bytes = best->size_bytes,
                                      .decl_file = best->file,
                                      .decl_line = best->line};
    return best != NULL;
}
