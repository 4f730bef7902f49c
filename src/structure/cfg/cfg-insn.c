/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding with Zydis. The few operands that matter are read from the encoding, which is much faster than decoding
 * all. */
#include "structure/cfg/cfg.h"

#include <stdlib.h>
#include <Zydis/Zydis.h>

struct cfg_decoder {
    ZydisDecoder zydis;
    ZydisDecoder full; /* operands, too */
};

struct cfg_decoder *cfg_decoder_new(void)
{
    struct cfg_decoder *decoder = malloc(sizeof *decoder);
    if (decoder &&
        (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
         !ZYAN_SUCCESS(ZydisDecoderInit(&decoder->full, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
         !ZYAN_SUCCESS(ZydisDecoderEnableMode(&decoder->zydis, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)))) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

/* Target of a direct jump or call, 0 for an indirect one. */
static uint64_t direct_target(const ZydisDecodedInstruction *head, uint64_t vaddr)
{
    for (unsigned i = 0; i < 2; i++)
        if (head->raw.imm[i].size && head->raw.imm[i].is_relative)
            return vaddr + head->length + (uint64_t)head->raw.imm[i].value.s;
    return 0;
}

/* Address in a memory operand without registers that change: pc-relative, or the start of a table of 8-byte entries
 * that a register indexes; else 0. */
static uint64_t memory_address(const ZydisDecodedInstruction *head, uint64_t vaddr)
{
    if (!(head->attributes & ZYDIS_ATTRIB_HAS_MODRM) || head->raw.modrm.mod != 0)
        return 0;
    if (head->raw.modrm.rm == 5)
        return vaddr + head->length + (uint64_t)head->raw.disp.value;
    bool is_table = head->raw.modrm.rm == 4 && head->raw.sib.base == 5 && head->raw.sib.scale == 3;
    return is_table ? (uint64_t)head->raw.disp.value : 0;
}

static bool is_pc_relative(const ZydisDecodedInstruction *head)
{
    return head->raw.modrm.mod == 0 && head->raw.modrm.rm == 5;
}

/* A jump or call: direct, through a word at a fixed address, or through anything else. */
static void set_transfer(const ZydisDecodedInstruction *head, struct cfg_insn *insn, enum cfg_insn_kind direct,
                         enum cfg_insn_kind indirect)
{
    insn->value = direct_target(head, insn->vaddr);
    insn->kind = (uint8_t)(insn->value ? direct : indirect);
    if (insn->value)
        return;
    insn->value = memory_address(head, insn->vaddr);
    insn->by_slot = insn->value && is_pc_relative(head);
    if (insn->by_slot)
        insn->kind = (uint8_t)direct;
}

static void set_kind(const ZydisDecodedInstruction *head, struct cfg_insn *insn)
{
    switch (head->mnemonic) {
    case ZYDIS_MNEMONIC_JB ... ZYDIS_MNEMONIC_JLE:
    case ZYDIS_MNEMONIC_JNB ... ZYDIS_MNEMONIC_JZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_XBEGIN:
        insn->kind = CFG_BRANCH;
        insn->value = direct_target(head, insn->vaddr);
        break;
    case ZYDIS_MNEMONIC_JMP:
        set_transfer(head, insn, CFG_JUMP, CFG_INDIRECT);
        break;
    case ZYDIS_MNEMONIC_CALL:
        set_transfer(head, insn, CFG_CALL, CFG_CALL);
        if (!insn->by_slot && !direct_target(head, insn->vaddr))
            insn->value = 0;
        break;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
        insn->kind = CFG_RETURN;
        break;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
        insn->kind = CFG_END;
        break;
    case ZYDIS_MNEMONIC_LEA:
        insn->value = memory_address(head, insn->vaddr);
        insn->kind = insn->value ? CFG_LEA : CFG_PLAIN;
        break;
    case ZYDIS_MNEMONIC_MOV:
        insn->value = is_pc_relative(head) ? 0 : memory_address(head, insn->vaddr);
        insn->kind = insn->value ? CFG_LEA : CFG_PLAIN;
        break;
    case ZYDIS_MNEMONIC_CMP:
        insn->kind = head->raw.imm[0].size ? CFG_COMPARE : CFG_PLAIN;
        insn->value = head->raw.imm[0].value.u;
        break;
    default:
        break;
    }
}

void cfg_decode_any(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                    struct cfg_insn *insn)
{
    ZydisDecoderContext context;
    ZydisDecodedInstruction head;
    *insn = (struct cfg_insn){.vaddr = vaddr, .len_bytes = 1, .kind = CFG_END};
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder->zydis, &context, bytes, n_bytes, &head)))
        return;
    insn->len_bytes = head.length;
    insn->kind = CFG_PLAIN;
    set_kind(&head, insn);
}

void cfg_decode(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                struct cfg_insn *insn)
{
    if (!cfg_decode_usual(bytes, n_bytes, vaddr, insn))
        cfg_decode_any(decoder, bytes, n_bytes, vaddr, insn);
}

/* --- effects --- */

/* Number of a general register, of whatever width; CFG_RIP; else CFG_NOWHERE. */
static uint8_t number_of(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
        return CFG_RIP;
    return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? (uint8_t)ZydisRegisterGetId(whole) : CFG_NOWHERE;
}

static uint16_t bit_of(ZydisRegister reg)
{
    uint8_t number = number_of(reg);
    return number < 16 ? (uint16_t)(1u << number) : 0;
}

static void set_memory(const ZydisDecodedOperand *operand, uint64_t next_vaddr, struct cfg_effect *effect)
{
    const ZydisDecodedOperandMem *mem = &operand->mem;
    bool is_vector = mem->type == ZYDIS_MEMOP_TYPE_VSIB;
    effect->base = mem->base == ZYDIS_REGISTER_NONE ? CFG_NOWHERE : number_of(mem->base);
    effect->index = mem->index == ZYDIS_REGISTER_NONE || is_vector ? CFG_NOWHERE : number_of(mem->index);
    effect->index_scale = mem->scale;
    effect->disp =
        (mem->disp.has_displacement ? mem->disp.value : 0) + (effect->base == CFG_RIP ? (int64_t)next_vaddr : 0);
    effect->size_bytes = (uint16_t)(operand->size / 8);
    effect->is_read = operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    effect->is_written = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    effect->is_scattered = is_vector || mem->segment == ZYDIS_REGISTER_FS || mem->segment == ZYDIS_REGISTER_GS;
}

/* Registers and memory that the instruction uses, whatever it does with them. */
static void set_uses(const ZydisDecodedInstruction *head, const ZydisDecodedOperand *operands, uint64_t next_vaddr,
                     struct cfg_effect *effect)
{
    for (unsigned i = 0; i < head->operand_count; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            bool is_read = operand->actions & (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE);
            effect->reads |= is_read ? bit_of(operand->reg.value) : 0;
            effect->writes |= operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? bit_of(operand->reg.value) : 0;
        } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            bool is_access = operand->actions & (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_MASK_WRITE);
            effect->reads |= bit_of(operand->mem.base) | bit_of(operand->mem.index);
            if (operand->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN && is_access && !effect->size_bytes)
                set_memory(operand, next_vaddr, effect);
        }
    }
    effect->writes &= (uint16_t) ~(1u << CFG_RSP); /* it comes back where it was within a loop */
}

/* Where an operand of whole registers or of memory is read from or written to; CFG_NOWHERE for others. */
static uint8_t place_of(const ZydisDecodedOperand *operand)
{
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return CFG_MEMORY;
    bool is_whole = operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->size >= 32;
    return is_whole ? number_of(operand->reg.value) : CFG_NOWHERE;
}

/* to = a + sign * b, b in a place or a constant. */
static void set_sum(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b, int sign, struct cfg_effect *effect)
{
    effect->a = a ? place_of(a) : CFG_NOWHERE;
    bool is_constant = b && b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    effect->b = !b || is_constant ? CFG_NOWHERE : place_of(b);
    effect->scale = sign;
    effect->value = is_constant ? sign * b->imm.value.s : 0;
    effect->is_known = (!a || effect->a != CFG_NOWHERE) && (!b || is_constant || effect->b != CFG_NOWHERE);
}

static void set_scaled(const ZydisDecodedOperand *factor, int64_t scale, struct cfg_effect *effect)
{
    effect->b = place_of(factor);
    effect->scale = scale;
    effect->is_known = effect->b != CFG_NOWHERE;
}

static void set_lea(const ZydisDecodedOperandMem *mem, uint64_t next_vaddr, struct cfg_effect *effect)
{
    effect->a = mem->base == ZYDIS_REGISTER_NONE ? CFG_NOWHERE : number_of(mem->base);
    effect->b = mem->index == ZYDIS_REGISTER_NONE ? CFG_NOWHERE : number_of(mem->index);
    effect->scale = mem->scale;
    effect->value = mem->disp.has_displacement ? mem->disp.value : 0;
    if (effect->a == CFG_RIP) {
        effect->a = CFG_NOWHERE;
        effect->value += (int64_t)next_vaddr;
    }
    effect->is_known = true;
}

static void set_product(const ZydisDecodedInstruction *head, const ZydisDecodedOperand *operands,
                        struct cfg_effect *effect)
{
    if (head->operand_count_visible == 3 && operands[2].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        set_scaled(&operands[1], operands[2].imm.value.s, effect);
    } else if (head->operand_count_visible == 2) {
        set_sum(&operands[0], &operands[1], 1, effect);
        effect->is_product = true;
    }
}

static bool is_zeroed(const ZydisDecodedOperand *operands)
{
    return operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[0].reg.value == operands[1].reg.value;
}

/* The sum that the instruction writes to its first operand, or compares with 0. */
static void set_result(const ZydisDecodedInstruction *head, const ZydisDecodedOperand *operands, uint64_t next_vaddr,
                       struct cfg_effect *effect)
{
    switch (head->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVZX:
        set_sum(NULL, &operands[1], 1, effect);
        break;
    case ZYDIS_MNEMONIC_LEA:
        set_lea(&operands[1].mem, next_vaddr, effect);
        break;
    case ZYDIS_MNEMONIC_ADD:
        set_sum(&operands[0], &operands[1], 1, effect);
        break;
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_SUB:
        effect->is_known = is_zeroed(operands);
        if (!effect->is_known)
            set_sum(&operands[0], &operands[1], -1, effect);
        break;
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
        set_sum(&operands[0], NULL, 1, effect);
        effect->value = head->mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
        break;
    case ZYDIS_MNEMONIC_NEG:
        set_scaled(&operands[0], -1, effect);
        break;
    case ZYDIS_MNEMONIC_TEST:
        set_sum(&operands[0], NULL, 1, effect);
        effect->is_known = effect->is_known && is_zeroed(operands);
        break;
    case ZYDIS_MNEMONIC_SHL:
        if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[1].imm.value.u < 32)
            set_scaled(&operands[0], INT64_C(1) << operands[1].imm.value.u, effect);
        break;
    case ZYDIS_MNEMONIC_IMUL:
        set_product(head, operands, effect);
        break;
    case ZYDIS_MNEMONIC_XOR:
        effect->is_known = is_zeroed(operands);
        break;
    default:
        break;
    }
}

void cfg_decode_effect(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                       struct cfg_effect *effect)
{
    ZydisDecodedInstruction head;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    *effect = (struct cfg_effect){.to = CFG_NOWHERE, .a = CFG_NOWHERE, .b = CFG_NOWHERE, .base = CFG_NOWHERE};
    effect->index = CFG_NOWHERE;
    effect->scale = 1;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder->full, bytes, n_bytes, &head, operands)))
        return;
    if (head.meta.category == ZYDIS_CATEGORY_CALL) {
        effect->writes = CFG_CALL_WRITES;
        return;
    }
    if (head.meta.category == ZYDIS_CATEGORY_NOP || head.meta.category == ZYDIS_CATEGORY_WIDENOP)
        return;
    set_uses(&head, operands, vaddr + head.length, effect);
    set_result(&head, operands, vaddr + head.length, effect);
    effect->is_equality = head.mnemonic == ZYDIS_MNEMONIC_JZ || head.mnemonic == ZYDIS_MNEMONIC_JNZ;
    bool is_test = head.mnemonic == ZYDIS_MNEMONIC_CMP || head.mnemonic == ZYDIS_MNEMONIC_TEST;
    effect->is_tested = is_test || (head.cpu_flags && head.cpu_flags->modified & ZYDIS_CPUFLAG_ZF);
    if (!effect->is_known || is_test || effect->writes & ~bit_of(operands[0].reg.value))
        effect->is_known = effect->is_known && is_test;
    else
        effect->to = place_of(&operands[0]);
    if (effect->to < 16)
        effect->writes = 0;
    effect->is_known = effect->is_known && (is_test || effect->to != CFG_NOWHERE);
}
