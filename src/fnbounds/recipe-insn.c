/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of one x86-64 instruction with Zydis into struct insn: operands, registers and undoable changes. */
#include "fnbounds/recipe-make.h"

#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>

struct insn_decoder {
    ZydisDecoder zydis;
};

/* An instruction as the disassembler sees it. */
struct decoded {
    const ZydisDecodedInstruction *head;
    const ZydisDecodedOperand *operands; /* [n] */
    unsigned n;
};

struct insn_decoder *insn_decoder_open(void)
{
    struct insn_decoder *decoder = malloc(sizeof *decoder);
    if (decoder && !ZYAN_SUCCESS(ZydisDecoderInit(&decoder->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

void insn_decoder_close(struct insn_decoder *decoder)
{
    free(decoder);
}

/* Bit number of a register in reads/writes and, for general and vector registers, its number in operands. */
static uint8_t reg_number(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole == ZYDIS_REGISTER_NONE)
        whole = reg;
    unsigned id = (unsigned)ZydisRegisterGetId(whole);
    switch (ZydisRegisterGetClass(whole)) {
    case ZYDIS_REGCLASS_GPR64:
        return (uint8_t)id;
    case ZYDIS_REGCLASS_ZMM:
        return (uint8_t)(RECIPE_VEC + id);
    case ZYDIS_REGCLASS_FLAGS:
        return 16;
    case ZYDIS_REGCLASS_MASK:
        return (uint8_t)(17 + id);
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
        return 25;
    default:
        return RECIPE_NO_REG;
    }
}

static uint64_t reg_bit(ZydisRegister reg)
{
    uint8_t number = reg_number(reg);
    return number == RECIPE_NO_REG ? 0 : INSN_BIT(number);
}

static bool is_zero_idiom(const struct decoded *d)
{
    switch (d->head->mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_VXORPD:
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VPXORD:
    case ZYDIS_MNEMONIC_VPXORQ:
        break;
    default:
        return false;
    }
    unsigned last = d->head->operand_count_visible;
    if (last < 2 || d->operands[last - 1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        d->operands[last - 2].type != ZYDIS_OPERAND_TYPE_REGISTER)
        return false;
    return d->operands[last - 1].reg.value == d->operands[last - 2].reg.value;
}

static bool is_no_access(const struct decoded *d)
{
    switch (d->head->meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE:
        return true;
    default:
        return d->head->mnemonic == ZYDIS_MNEMONIC_INVLPG || d->head->mnemonic == ZYDIS_MNEMONIC_CLFLUSH;
    }
}

static bool has_index32(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_VGATHERDPS:
    case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VPGATHERDD:
    case ZYDIS_MNEMONIC_VPGATHERDQ:
    case ZYDIS_MNEMONIC_VSCATTERDPS:
    case ZYDIS_MNEMONIC_VSCATTERDPD:
    case ZYDIS_MNEMONIC_VPSCATTERDD:
    case ZYDIS_MNEMONIC_VPSCATTERDQ:
        return true;
    default:
        return false;
    }
}

/* An address the recipe can express: full registers, no exotic segment. The displacement is relative to the pc. */
static void add_operand(const struct decoded *d, const ZydisDecodedOperand *from, struct insn *out)
{
    const ZydisDecodedOperandMem *mem = &from->mem;
    struct recipe_operand *to = &out->operands[out->n_operands];
    int64_t disp = mem->disp.has_displacement ? mem->disp.value : 0;
    *to = (struct recipe_operand){.base = RECIPE_NO_REG, .index = RECIPE_NO_REG};
    if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP) {
        to->base = RECIPE_RIP;
        disp += d->head->length;
    } else if (mem->base != ZYDIS_REGISTER_NONE) {
        to->base = reg_number(mem->base);
    }
    if (mem->index != ZYDIS_REGISTER_NONE) {
        to->index = reg_number(mem->index);
        to->scale = mem->scale;
        to->flags |= mem->type == ZYDIS_MEMOP_TYPE_VSIB && has_index32(d->head->mnemonic) ? RECIPE_OP_INDEX32 : 0;
    }
    if (from->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        to->flags |= RECIPE_OP_READ;
    if (from->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        to->flags |= RECIPE_OP_WRITE;
    if (mem->segment == ZYDIS_REGISTER_FS)
        to->flags |= RECIPE_OP_FS;
    if (mem->segment == ZYDIS_REGISTER_GS)
        to->flags |= RECIPE_OP_GS;
    if (d->head->address_width == 32)
        to->flags |= RECIPE_OP_ADDR32;
    if (d->head->mnemonic == ZYDIS_MNEMONIC_XLAT)
        to->flags |= RECIPE_OP_INEXACT;
    if (d->head->mnemonic == ZYDIS_MNEMONIC_LEAVE)
        to->flags |= RECIPE_OP_STACK;
    to->disp = (int32_t)disp;
    to->size_bytes = (uint16_t)(from->size / 8);
    out->n_operands++;
}

static bool is_access(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           (operand->mem.type == ZYDIS_MEMOP_TYPE_MEM || operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB) &&
           operand->actions & (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_MASK_WRITE);
}

/* Explicit operands first; an implicit stack slot only where nothing else is accessed (push of a memory operand waits
 * for that operand, not for the stack). */
static void add_operands(const struct decoded *d, struct insn *out)
{
    if (is_no_access(d))
        return;
    bool is_string = d->head->meta.category == ZYDIS_CATEGORY_STRINGOP;
    for (unsigned i = 0; i < d->n && out->n_operands < 2; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];
        if (is_access(operand) && (is_string || operand->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
                                   operand->mem.base != ZYDIS_REGISTER_RSP))
            add_operand(d, operand, out);
    }
    for (unsigned i = 0; i < d->n && !out->n_operands; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];
        if (!is_access(operand))
            continue;
        add_operand(d, operand, out);
        out->operands[0].flags |= RECIPE_OP_STACK;
        if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            out->operands[0].disp = -(int32_t)out->operands[0].size_bytes;
    }
}

static void add_registers(const struct decoded *d, struct insn *out)
{
    bool is_zero = is_zero_idiom(d);
    for (unsigned i = 0; i < d->n; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            uint64_t bit = reg_bit(operand->reg.value);
            if (operand->actions & (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE) && !is_zero)
                out->reads |= bit;
            if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                out->writes |= bit;
        } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
            out->reads |= reg_bit(operand->mem.base) | reg_bit(operand->mem.index);
        }
    }
}

static struct insn_effect *new_effect(struct insn *out, enum insn_effect_kind kind, uint8_t reg)
{
    struct insn_effect *effect = &out->effects[out->n_effects++];
    *effect = (struct insn_effect){
        .kind = (uint8_t)kind, .reg = reg, .source = RECIPE_NO_REG, .other = RECIPE_NO_REG, .scale = 1};
    return effect;
}

static void add_constant(struct insn *out, uint8_t reg, int64_t value)
{
    if (value == (int32_t)value)
        new_effect(out, EFFECT_ADD, reg)->value = (int32_t)value;
}

/* add/sub reg, imm or reg: 32-bit forms count as 64-bit ones (an index that wraps is out of bounds anyway). */
static void add_sum(const struct decoded *d, struct insn *out, int sign)
{
    uint8_t reg = reg_number(d->operands[0].reg.value);
    const ZydisDecodedOperand *operand = &d->operands[1];
    if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        add_constant(out, reg, sign * operand->imm.value.s);
    } else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER && d->operands[0].size == 64 &&
               reg_number(operand->reg.value) != reg) {
        struct insn_effect *effect = new_effect(out, EFFECT_ADD, reg);
        effect->source = reg_number(operand->reg.value);
        effect->scale = (int8_t)sign;
    }
}

static void add_scale(struct insn *out, uint8_t reg, uint8_t other, int64_t scale, int64_t value)
{
    if (scale < 1 || scale > INT8_MAX || value != (int32_t)value)
        return;
    struct insn_effect *effect = new_effect(out, EFFECT_SCALE, reg);
    effect->other = other;
    effect->scale = (int8_t)scale;
    effect->value = (int32_t)value;
}

static void add_extension(const struct decoded *d, struct insn *out, unsigned from)
{
    if (d->operands[from].type == ZYDIS_OPERAND_TYPE_REGISTER && d->operands[from].size == 32)
        new_effect(out, EFFECT_EXTEND, reg_number(d->operands[0].reg.value))->other =
            reg_number(d->operands[from].reg.value);
}

/* shl and imul with a constant, of whole registers. */
static void add_product(const struct decoded *d, struct insn *out)
{
    const ZydisDecodedOperand *constant = &d->operands[d->head->operand_count_visible - 1];
    const ZydisDecodedOperand *factor = &d->operands[d->head->operand_count_visible - 2];
    if (constant->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || factor->type != ZYDIS_OPERAND_TYPE_REGISTER ||
        d->operands[0].size != 64)
        return;
    int64_t value = constant->imm.value.s;
    if (d->head->mnemonic != ZYDIS_MNEMONIC_IMUL)
        value = value >= 0 && value < 7 ? 1 << value : 0;
    add_scale(out, reg_number(d->operands[0].reg.value), reg_number(factor->reg.value), value, 0);
}

static void add_field(struct insn *out, uint8_t reg, uint8_t source, struct recipe_field field)
{
    struct insn_effect *effect = new_effect(out, EFFECT_FIELD, reg);
    effect->source = source;
    effect->value = recipe_field_pack(field);
}

/* shr of a register by a constant. */
static void add_shift(const struct decoded *d, struct insn *out, uint8_t reg)
{
    uint64_t first = d->operands[1].imm.value.u;
    unsigned n_bits = d->operands[0].size;
    if (d->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && first > 0 && first < n_bits)
        add_field(out, reg, reg, (struct recipe_field){(unsigned)first, n_bits - (unsigned)first, true});
}

/* movzx from the lowest bits of a register. */
static void add_low(const struct decoded *d, struct insn *out, uint8_t reg)
{
    const ZydisDecodedOperand *from = &d->operands[1];
    if (from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
        (from->reg.value < ZYDIS_REGISTER_AH || from->reg.value > ZYDIS_REGISTER_BH))
        add_field(out, reg, reg_number(from->reg.value), (struct recipe_field){0, from->size, false});
}

static void add_lea(const struct decoded *d, struct insn *out)
{
    const ZydisDecodedOperandMem *mem = &d->operands[1].mem;
    uint8_t reg = reg_number(d->operands[0].reg.value);
    int64_t value = mem->disp.has_displacement ? mem->disp.value : 0;
    if (mem->base == ZYDIS_REGISTER_RIP)
        out->table = (uint32_t)(out->pc + out->len_bytes + (uint64_t)value);
    if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP || value != (int32_t)value)
        return;
    if ((mem->base == ZYDIS_REGISTER_NONE || mem->base == mem->index) && mem->index != ZYDIS_REGISTER_NONE) {
        if (d->operands[0].size == 64)
            add_scale(out, reg, reg_number(mem->index), mem->scale + (mem->base == mem->index), value);
        return;
    }
    if (mem->base == ZYDIS_REGISTER_NONE)
        return;
    uint8_t base = reg_number(mem->base);
    uint8_t index = mem->index == ZYDIS_REGISTER_NONE ? RECIPE_NO_REG : reg_number(mem->index);
    uint8_t scale = index == RECIPE_NO_REG ? 1 : mem->scale;
    if (scale == 1 && index == reg) {
        index = base;
        base = reg;
    }
    if (d->operands[0].size != 64 && base != reg) {
        if (index == RECIPE_NO_REG && d->operands[0].size == 32) {
            struct insn_effect *narrow = new_effect(out, EFFECT_NARROW, reg);
            narrow->source = base;
            narrow->value = (int32_t)value;
        }
        return;
    }
    if (index == reg)
        return;
    bool is_in_place = base == reg;
    struct insn_effect *effect = new_effect(out,
                                            is_in_place              ? EFFECT_ADD
                                            : index == RECIPE_NO_REG ? EFFECT_COPY
                                                                     : EFFECT_SUM,
                                            reg);
    effect->source = is_in_place ? index : base;
    effect->other = is_in_place ? RECIPE_NO_REG : index;
    effect->scale = (int8_t)scale;
    effect->value = (int32_t)value;
}

/* and of two whole registers, or with a constant whose bits are neighbours. */
static void add_mask(const struct decoded *d, struct insn *out, uint8_t reg)
{
    if (d->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        uint64_t mask = (uint64_t)d->operands[1].imm.value.s;
        mask &= d->operands[0].size == 64 ? UINT64_MAX : UINT32_MAX;
        unsigned first = mask ? (unsigned)__builtin_ctzll(mask) : 0, n_bits = (unsigned)__builtin_popcountll(mask);
        if (mask && mask >> first == UINT64_MAX >> (64 - n_bits))
            add_field(out, reg, reg, (struct recipe_field){first, n_bits, false});
    } else if (d->operands[0].size == 64 && d->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
               reg_number(d->operands[1].reg.value) != reg)
        new_effect(out, EFFECT_MASK, reg)->source = reg_number(d->operands[1].reg.value);
}

/* reg = value, of a 32- or 64-bit register. */
static void add_value(struct insn *out, uint8_t reg, int64_t value)
{
    if (value == (int32_t)value || value == (uint32_t)value)
        new_effect(out, EFFECT_CONSTANT, reg)->value = (int32_t)value;
}

static void add_mov(const struct decoded *d, struct insn *out)
{
    uint8_t reg = reg_number(d->operands[0].reg.value);
    if (d->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        add_value(out, reg, d->operands[1].imm.value.s);
        return;
    }
    if (d->operands[0].size != 64) {
        add_extension(d, out, 1);
        return;
    }
    if (d->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER && reg_number(d->operands[1].reg.value) < 16)
        new_effect(out, EFFECT_COPY, reg)->source = reg_number(d->operands[1].reg.value);
    else if (d->operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY && out->n_operands == 1)
        new_effect(out, EFFECT_LOAD, reg);
}

/* mov of a whole general register to memory. */
static void add_store(const struct decoded *d, struct insn *out)
{
    if (d->head->mnemonic == ZYDIS_MNEMONIC_MOV && out->n_operands == 1 && out->operands[0].size_bytes == 8 &&
        d->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER && reg_number(d->operands[1].reg.value) < 16)
        new_effect(out, EFFECT_STORE, RECIPE_NO_REG)->source = reg_number(d->operands[1].reg.value);
}

static bool writes_gpr(const struct decoded *d)
{
    return d->n && d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && d->operands[0].size >= 32 &&
           reg_number(d->operands[0].reg.value) < 16;
}

static void add_register_effect(const struct decoded *d, struct insn *out)
{
    if (!writes_gpr(d)) {
        add_store(d, out);
        return;
    }
    uint8_t reg = reg_number(d->operands[0].reg.value);
    if (is_zero_idiom(d)) {
        add_value(out, reg, 0);
        return;
    }
    switch (d->head->mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
        add_sum(d, out, 1);
        break;
    case ZYDIS_MNEMONIC_SUB:
        add_sum(d, out, -1);
        break;
    case ZYDIS_MNEMONIC_INC:
        add_constant(out, reg, 1);
        break;
    case ZYDIS_MNEMONIC_DEC:
        add_constant(out, reg, -1);
        break;
    case ZYDIS_MNEMONIC_LEA:
        add_lea(d, out);
        break;
    case ZYDIS_MNEMONIC_MOV:
        add_mov(d, out);
        break;
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_CDQE:
        add_extension(d, out, 1);
        break;
    case ZYDIS_MNEMONIC_AND:
        add_mask(d, out, reg);
        break;
    case ZYDIS_MNEMONIC_SHR:
        add_shift(d, out, reg);
        break;
    case ZYDIS_MNEMONIC_MOVZX:
        add_low(d, out, reg);
        break;
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_IMUL:
        add_product(d, out);
        break;
    default:
        break;
    }
}

/* Implicit changes: stack pointer and the pointers of single string operations. */
static void add_implicit_effects(const struct decoded *d, struct insn *out)
{
    int32_t size = d->head->operand_width / 8;
    switch (d->head->meta.category) {
    case ZYDIS_CATEGORY_PUSH:
        add_constant(out, RECIPE_RSP, -size);
        break;
    case ZYDIS_CATEGORY_POP:
        add_constant(out, RECIPE_RSP, size);
        if (writes_gpr(d) && out->operands[0].base == RECIPE_RSP)
            new_effect(out, EFFECT_LOAD, reg_number(d->operands[0].reg.value));
        break;
    case ZYDIS_CATEGORY_STRINGOP:
        for (unsigned i = 0; i < out->n_operands && out->kind != INSN_REP; i++)
            add_constant(out, out->operands[i].base, out->operands[i].size_bytes);
        break;
    default:
        if (d->head->mnemonic == ZYDIS_MNEMONIC_LEAVE) {
            struct insn_effect *effect = new_effect(out, EFFECT_COPY, RECIPE_RSP);
            effect->source = RECIPE_RBP;
            effect->value = 8;
        }
        break;
    }
}

static enum insn_kind branch_kind(const struct decoded *d)
{
    bool is_direct = d->n && d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    switch (d->head->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        return INSN_JCC;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return is_direct ? INSN_JMP : INSN_JMP_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
        return INSN_CALL;
    case ZYDIS_CATEGORY_RET:
        return INSN_RET;
    case ZYDIS_CATEGORY_SYSCALL:
        return INSN_SYSCALL;
    default:
        return INSN_PLAIN;
    }
}

static enum insn_kind kind_of(const struct decoded *d)
{
    switch (d->head->mnemonic) {
    case ZYDIS_MNEMONIC_ENDBR32:
    case ZYDIS_MNEMONIC_ENDBR64:
        return INSN_NOP;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
        return INSN_STOP;
    case ZYDIS_MNEMONIC_INT:
        return INSN_SYSCALL;
    default:
        break;
    }
    if (d->head->meta.category == ZYDIS_CATEGORY_NOP || d->head->meta.category == ZYDIS_CATEGORY_WIDENOP)
        return INSN_NOP;
    if (d->head->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) &&
        d->head->meta.category == ZYDIS_CATEGORY_STRINGOP)
        return INSN_REP;
    return branch_kind(d);
}

static bool is_fusible(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
        return true;
    default:
        return false;
    }
}

/* Arithmetic of three cycles or more on every processor of the last years. */
static bool is_compare_exchange(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_CMPXCHG || mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B ||
           mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B;
}

static bool is_slow(const struct decoded *d)
{
    switch (d->head->mnemonic) {
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL:
    case ZYDIS_MNEMONIC_IDIV:
    case ZYDIS_MNEMONIC_DIV:
        return true;
    default:
        break;
    }
    bool is_move = d->head->meta.category == ZYDIS_CATEGORY_DATAXFER;
    return !is_move && d->n > 1 && d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           (d->operands[1].element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
            d->operands[1].element_type == ZYDIS_ELEMENT_TYPE_FLOAT64);
}

/* Direct branch target; addresses outside 32 bits belong to another module anyway. */
static void set_target(const struct decoded *d, struct insn *out)
{
    if (out->kind != INSN_JCC && out->kind != INSN_JMP && out->kind != INSN_CALL)
        return;
    for (unsigned i = 0; i < d->n; i++)
        if (d->operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && d->operands[i].imm.is_relative)
            out->target = (uint32_t)(out->pc + d->head->length + (uint64_t)d->operands[i].imm.value.s);
}

void insn_decode(const struct insn_decoder *decoder, const uint8_t *bytes, size_t n_bytes, uint32_t pc,
                 struct insn *out)
{
    ZydisDecoderContext context;
    ZydisDecodedInstruction head;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    *out = (struct insn){.pc = pc, .target = INSN_NONE, .table = INSN_NONE};
    out->len_bytes = 1;
    out->kind = INSN_STOP;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder->zydis, &context, bytes, n_bytes, &head)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder->zydis, &context, &head, operands, head.operand_count)))
        return;
    struct decoded d = {&head, operands, head.operand_count};
    out->len_bytes = head.length;
    out->kind = (uint8_t)kind_of(&d);
    out->is_pause = head.mnemonic == ZYDIS_MNEMONIC_PAUSE;
    out->is_fusible = is_fusible(head.mnemonic);
    out->is_slow = is_slow(&d);
    out->is_compare_exchange = is_compare_exchange(head.mnemonic);
    set_target(&d, out);
    if (out->kind == INSN_NOP || out->kind == INSN_STOP)
        return;
    add_operands(&d, out);
    add_registers(&d, out);
    if (out->kind == INSN_CALL) {
        out->writes |= INSN_CALL_CLOBBERS;
        out->writes &= ~INSN_BIT(RECIPE_RSP);
        out->reads = 0;
        return;
    }
    add_implicit_effects(&d, out);
    if (out->n_effects == 0)
        add_register_effect(&d, out);
}
