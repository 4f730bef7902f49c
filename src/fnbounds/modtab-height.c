/* SPDX-License-Identifier: BSD-3-Clause */
/* What one instruction does to the frame. Only the forms that prologues, epilogues and stack alignment are made of are
 * understood; any other write to a register makes its height unknown. Ordinary code. */
#include "fnbounds/modtab-make.h"

#include <Zydis/Zydis.h>
#include <string.h>

enum { X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R11 = 11, X86_NONE = 255 };

struct insn {
    ZydisDecodedInstruction head;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static const ZydisDecoder *decoder(void)
{
    static ZydisDecoder decoder;
    static bool is_ready;
    if (!is_ready)
        is_ready = ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
    return &decoder;
}

struct height height_at_entry(void)
{
    return (struct height){
        .rsp = 8, .rbp = HEIGHT_UNKNOWN, .rbx = HEIGHT_UNKNOWN, .other = HEIGHT_UNKNOWN, .other_reg = X86_NONE};
}

/* Number of the 64-bit register that holds reg, X86_NONE when it is none of the general ones. */
static unsigned number_of(ZydisRegister reg)
{
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15 ? (unsigned)(full - ZYDIS_REGISTER_RAX) : X86_NONE;
}

static unsigned register_of(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(o->reg.value) : X86_NONE;
}

static bool is_full_register(const ZydisDecodedOperand *o)
{
    return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->size == 64 && register_of(o) != X86_NONE;
}

static int32_t height_of(const struct height *h, unsigned reg)
{
    return reg == X86_RSP                    ? h->rsp
           : reg == X86_RBP                  ? h->rbp
           : reg == X86_RBX                  ? h->rbx
           : reg < 16 && reg == h->other_reg ? h->other
                                             : HEIGHT_UNKNOWN;
}

static int32_t shifted(int32_t height, int64_t by)
{
    int64_t sum = (int64_t)height + by;
    return height == HEIGHT_UNKNOWN || sum < -(1 << 30) || sum > 1 << 30 ? HEIGHT_UNKNOWN : (int32_t)sum;
}

/* A register gets a new value of this height; the caller's value in it is gone unless it has been saved. */
static void set_height(struct height *h, unsigned reg, int32_t height)
{
    if (reg == X86_RSP) {
        h->rsp = height;
    } else if (reg == X86_RBP) {
        h->rbp = height;
        h->rbp_slot = h->rbp_slot == 0 ? HEIGHT_UNKNOWN : h->rbp_slot;
    } else if (reg == X86_RBX) {
        h->rbx = height;
        h->rbx_slot = h->rbx_slot == 0 ? HEIGHT_UNKNOWN : h->rbx_slot;
    } else if (reg < 16 && (height != HEIGHT_UNKNOWN || reg == h->other_reg)) {
        h->other = height;
        h->other_reg = height == HEIGHT_UNKNOWN ? X86_NONE : reg;
    }
}

/* reg is stored at slot (relative to the CFA). */
static void store(struct height *h, unsigned reg, int32_t slot)
{
    if (reg == X86_RBP && h->rbp_slot == 0 && slot != 0)
        h->rbp_slot = slot;
    if (reg == X86_RBX && h->rbx_slot == 0 && slot != 0)
        h->rbx_slot = slot;
}

/* reg is loaded from slot. */
static void load(struct height *h, unsigned reg, int32_t slot)
{
    bool is_rbp = reg == X86_RBP && slot != HEIGHT_UNKNOWN && h->rbp_slot == slot;
    bool is_rbx = reg == X86_RBX && slot != HEIGHT_UNKNOWN && h->rbx_slot == slot;
    set_height(h, reg, HEIGHT_UNKNOWN);
    if (is_rbp)
        h->rbp_slot = 0;
    if (is_rbx)
        h->rbx_slot = 0;
}

/* Slot that a memory operand of the form [register + displacement] means; HEIGHT_UNKNOWN for others. */
static int32_t slot_of(const struct height *h, const ZydisDecodedOperand *o)
{
    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.index != ZYDIS_REGISTER_NONE ||
        o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS)
        return HEIGHT_UNKNOWN;
    int32_t height = height_of(h, number_of(o->mem.base));
    return height == HEIGHT_UNKNOWN ? height : shifted(-height, o->mem.disp.value);
}

static void push(struct height *h, const struct insn *i)
{
    h->rsp = shifted(h->rsp, i->head.operand_width == 16 ? 2 : 8);
    if (h->rsp != HEIGHT_UNKNOWN && i->head.operand_width == 64)
        store(h, register_of(&i->operands[0]), -h->rsp);
}

static void pop(struct height *h, const struct insn *i)
{
    int32_t slot = h->rsp == HEIGHT_UNKNOWN ? h->rsp : -h->rsp;
    h->rsp = shifted(h->rsp, i->head.operand_width == 16 ? -2 : -8);
    if (register_of(&i->operands[0]) != X86_NONE)
        load(h, register_of(&i->operands[0]), slot);
}

static void leave(struct height *h)
{
    int32_t slot = h->rbp == HEIGHT_UNKNOWN ? h->rbp : -h->rbp;
    h->rsp = shifted(h->rbp, -8);
    load(h, X86_RBP, slot);
}

static void mov(struct height *h, const ZydisDecodedOperand *to, const ZydisDecodedOperand *from)
{
    if (is_full_register(to) && is_full_register(from))
        set_height(h, register_of(to), height_of(h, register_of(from)));
    else if (is_full_register(to))
        load(h, register_of(to), slot_of(h, from));
    else if (to->type == ZYDIS_OPERAND_TYPE_MEMORY && is_full_register(from))
        store(h, register_of(from), slot_of(h, to) == HEIGHT_UNKNOWN ? 0 : slot_of(h, to));
    else if (register_of(to) != X86_NONE)
        set_height(h, register_of(to), HEIGHT_UNKNOWN);
}

static void lea(struct height *h, const ZydisDecodedOperand *to, const ZydisDecodedOperand *from)
{
    int32_t slot = slot_of(h, from);
    set_height(h, register_of(to), slot == HEIGHT_UNKNOWN || to->size != 64 ? HEIGHT_UNKNOWN : -slot);
}

static void write_registers(struct height *h, const struct insn *i)
{
    for (unsigned k = 0; k < i->head.operand_count; k++)
        if (i->operands[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            set_height(h, register_of(&i->operands[k]), HEIGHT_UNKNOWN);
}

/* What a called function may change: all but the callee-saved registers. */
static void call(struct height *h)
{
    uint32_t reg = h->other_reg;
    if (reg <= X86_RDX || reg == X86_RSI || reg == X86_RDI || (reg >= X86_R8 && reg <= X86_R11))
        set_height(h, reg, HEIGHT_UNKNOWN);
}

static void apply(struct height *h, const struct insn *i)
{
    const ZydisDecodedOperand *o = i->operands;
    bool has_immediate = i->head.operand_count > 1 && o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && is_full_register(o);
    switch (i->head.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHFQ:
        push(h, i);
        break;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPFQ:
        pop(h, i);
        break;
    case ZYDIS_MNEMONIC_LEAVE:
        leave(h);
        break;
    case ZYDIS_MNEMONIC_MOV:
        mov(h, &o[0], &o[1]);
        break;
    case ZYDIS_MNEMONIC_LEA:
        lea(h, &o[0], &o[1]);
        break;
    case ZYDIS_MNEMONIC_CALL:
        call(h);
        break;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_ADD:
        if (has_immediate) {
            int64_t by = i->head.mnemonic == ZYDIS_MNEMONIC_SUB ? o[1].imm.value.s : -o[1].imm.value.s;
            set_height(h, register_of(o), shifted(height_of(h, register_of(o)), by));
            break;
        }
        write_registers(h, i);
        break;
    default:
        write_registers(h, i);
    }
}

static struct height_flow flow_of(const struct insn *i)
{
    struct height_flow flow = {.n_bytes = i->head.length, .falls_through = true};
    const ZydisDecodedOperand *o = &i->operands[0];
    bool is_relative = i->head.operand_count > 0 && o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative;
    switch (i->head.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
        flow.has_target = is_relative;
        flow.target = is_relative ? o->imm.value.s + i->head.length : 0;
        flow.falls_through = i->head.meta.category == ZYDIS_CATEGORY_COND_BR;
        flow.is_table_jump = !is_relative;
        break;
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSRET:
        flow.falls_through = false;
        break;
    default:
        flow.falls_through = i->head.mnemonic != ZYDIS_MNEMONIC_UD2 && i->head.mnemonic != ZYDIS_MNEMONIC_HLT &&
                             i->head.mnemonic != ZYDIS_MNEMONIC_INT3;
    }
    return flow;
}

struct height_flow height_step(const uint8_t *code, size_t n, struct height *h)
{
    struct insn i;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder(), code, n, &i.head, i.operands)))
        return (struct height_flow){0};
    apply(h, &i);
    return flow_of(&i);
}

bool height_meet(struct height *h, const struct height *other)
{
    struct height old = *h;
    h->rsp = h->rsp == other->rsp ? h->rsp : HEIGHT_UNKNOWN;
    h->rbp = h->rbp == other->rbp ? h->rbp : HEIGHT_UNKNOWN;
    h->rbx = h->rbx == other->rbx ? h->rbx : HEIGHT_UNKNOWN;
    if (h->other != other->other || h->other_reg != other->other_reg) {
        h->other = HEIGHT_UNKNOWN;
        h->other_reg = X86_NONE;
    }
    h->rbp_slot = h->rbp_slot == other->rbp_slot ? h->rbp_slot : HEIGHT_UNKNOWN;
    h->rbx_slot = h->rbx_slot == other->rbx_slot ? h->rbx_slot : HEIGHT_UNKNOWN;
    return memcmp(&old, h, sizeof old) != 0;
}

static int16_t put_slot(int32_t slot, uint8_t saved, uint8_t lost, uint8_t *flags)
{
    if (slot == 0)
        return 0;
    *flags |= slot >= INT16_MIN && slot <= INT16_MAX ? saved : lost;
    return slot >= INT16_MIN && slot <= INT16_MAX ? (int16_t)slot : 0;
}

struct modtab_row height_row(const struct height *h)
{
    static const uint8_t dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    struct modtab_row row = {.kind = MODTAB_BAD};
    if (h->rsp != HEIGHT_UNKNOWN && h->rsp > 0)
        row = (struct modtab_row){.kind = MODTAB_CFA_RSP, .reg = dwarf[X86_RSP], .cfa_offset = h->rsp};
    else if (h->rsp != HEIGHT_UNKNOWN)
        return row;
    else if (h->rbp != HEIGHT_UNKNOWN)
        row = (struct modtab_row){.kind = MODTAB_CFA_RBP, .reg = dwarf[X86_RBP], .cfa_offset = h->rbp};
    else if (h->rbx != HEIGHT_UNKNOWN)
        row = (struct modtab_row){.kind = MODTAB_CFA_RBX, .reg = dwarf[X86_RBX], .cfa_offset = h->rbx};
    else if (h->other != HEIGHT_UNKNOWN)
        row = (struct modtab_row){.kind = MODTAB_CFA_REG, .reg = dwarf[h->other_reg & 15], .cfa_offset = h->other};
    else
        return row;
    row.rbp_offset = put_slot(h->rbp_slot, MODTAB_RBP_SAVED, MODTAB_RBP_LOST, &row.flags);
    row.rbx_offset = put_slot(h->rbx_slot, MODTAB_RBX_SAVED, MODTAB_RBX_LOST, &row.flags);
    return row;
}
