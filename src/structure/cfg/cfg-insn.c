/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding with Zydis. The few operands that matter are read from the encoding, which is much faster than decoding
 * all. */
#include "structure/cfg/cfg.h"

#include <stdlib.h>
#include <Zydis/Zydis.h>

struct cfg_decoder {
    ZydisDecoder zydis;
};

struct cfg_decoder *cfg_decoder_new(void)
{
    struct cfg_decoder *decoder = malloc(sizeof *decoder);
    if (decoder &&
        (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
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
