/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of x86-64 instructions by Zydis, in the form that objdump and perf print: see listing.h. */
#include "structure/listing.h"

#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>

#define TEXT_BYTES 256
#define MNEMONIC_WIDTH 6 /* as in objdump */

struct insn_printer {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
};

/* --- mnemonics --- */

/* The names of conditions in the disassembler, and those that GNU tools print. */
static const struct {
    const char *zydis, *gnu;
} conditions[] = {{"nbe", "a"}, {"nb", "ae"}, {"nle", "g"}, {"nl", "ge"}, {"nz", "ne"}, {"z", "e"}};

/* The names of what widens the accumulator. */
static const struct {
    const char *zydis, *gnu;
} widenings[] = {{"cbw", "cbtw"}, {"cwde", "cwtl"}, {"cdqe", "cltq"},
                 {"cwd", "cwtd"}, {"cdq", "cltd"},  {"cqo", "cqto"}};

/* Appends a mnemonic, with the condition that it ends in, by its usual name. */
static void put_mnemonic(struct buf *out, const char *name)
{
    static const char *const conditional[] = {"j", "set", "cmov"};
    for (size_t i = 0; i < sizeof conditional / sizeof *conditional; i++) {
        size_t len = strlen(conditional[i]);
        for (size_t k = 0; strncmp(name, conditional[i], len) == 0 && k < sizeof conditions / sizeof *conditions; k++)
            if (strcmp(name + len, conditions[k].zydis) == 0) {
                buf_printf(out, "%s%s", conditional[i], conditions[k].gnu);
                return;
            }
    }
    for (size_t i = 0; i < sizeof widenings / sizeof *widenings; i++)
        if (strcmp(name, widenings[i].zydis) == 0)
            name = widenings[i].gnu;
    buf_printf(out, "%s", name);
}

static char letter_of(unsigned n_bits)
{
    return n_bits == 8 ? 'b' : n_bits == 16 ? 'w' : n_bits == 32 ? 'l' : n_bits == 64 ? 'q' : 0;
}

static bool extends_value(const ZydisDecodedInstruction *head)
{
    return head->mnemonic == ZYDIS_MNEMONIC_MOVZX || head->mnemonic == ZYDIS_MNEMONIC_MOVSX ||
           head->mnemonic == ZYDIS_MNEMONIC_MOVSXD;
}

/* The letters for sizes that AT&T syntax has behind a mnemonic: of what is extended both, else where no register tells
 * the size. */
static void put_sizes(struct buf *out, const ZydisDecodedInstruction *head, const ZydisDecodedOperand *operands)
{
    bool has_memory = false, has_register = false;
    for (size_t i = 0; i < head->operand_count_visible; i++) {
        has_memory |= operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
        has_register |= operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER;
    }
    if (extends_value(head))
        buf_printf(out, "%c%c", letter_of(operands[1].size), letter_of(operands[0].size));
    else if (has_memory && !has_register && head->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE &&
             letter_of(operands[0].size))
        buf_printf(out, "%c", letter_of(operands[0].size));
}

/* Appends the first words of an instruction, its prefixes and its mnemonic, in the usual form. Returns what is left of
 * the text: the operands. */
static const char *put_head(struct buf *out, const char *text, const ZydisDecodedInstruction *head,
                            const ZydisDecodedOperand *operands)
{
    const char *name = ZydisMnemonicGetString(head->mnemonic), *word = text;
    bool extends = extends_value(head);
    size_t len = name ? strlen(name) : 0, begin = out->len_bytes;
    while (strncmp(word, name ? name : "", len) != 0 && strchr(word, ' '))
        word = strchr(word, ' ') + 1;
    buf_printf(out, "%.*s", (int)(word - text), text);
    put_mnemonic(out, extends ? head->mnemonic == ZYDIS_MNEMONIC_MOVZX ? "movz" : "movs" : name ? name : word);
    put_sizes(out, head, operands);
    word += strcspn(word, " ");
    size_t n_put = out->len_bytes - begin;
    if (*word && n_put < MNEMONIC_WIDTH)
        buf_printf(out, "%*s", (int)(MNEMONIC_WIDTH - n_put), "");
    return word;
}

/* --- instructions --- */

static bool set_form(ZydisFormatter *formatter)
{
    static const struct {
        ZydisFormatterProperty property;
        ZyanUPointer value;
    } forms[] = {{ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE},
                 {ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE},
                 {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED},
                 {ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED},
                 {ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED},
                 {ZYDIS_FORMATTER_PROP_IMM_SIGNEDNESS, ZYDIS_SIGNEDNESS_UNSIGNED}};
    bool ok = ZYAN_SUCCESS(ZydisFormatterInit(formatter, ZYDIS_FORMATTER_STYLE_ATT));
    for (size_t i = 0; ok && i < sizeof forms / sizeof *forms; i++)
        ok = ZYAN_SUCCESS(ZydisFormatterSetProperty(formatter, forms[i].property, forms[i].value));
    return ok;
}

bool insn_printer_new(struct insn_printer **printer)
{
    struct insn_printer *made = malloc(sizeof *made);
    *printer = NULL;
    if (!made || !ZYAN_SUCCESS(ZydisDecoderInit(&made->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !set_form(&made->formatter)) {
        free(made);
        return false;
    }
    *printer = made;
    return true;
}

/* The first operand with a fixed address. */
static struct insn_reference find_reference(const ZydisDecodedInstruction *head, const ZydisDecodedOperand *operands,
                                            uint64_t vaddr)
{
    struct insn_reference reference = {0};
    for (size_t i = 0; i < head->operand_count_visible && !reference.vaddr; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        bool is_relative = operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative;
        bool is_memory = operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RIP;
        ZyanU64 address = 0;
        if ((is_relative || is_memory) && ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(head, operand, vaddr, &address)))
            reference = (struct insn_reference){address, is_relative};
    }
    return reference;
}

unsigned insn_printer_put(const struct insn_printer *printer, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                          struct buf *out, struct insn_reference *reference)
{
    ZydisDecodedInstruction head;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char text[TEXT_BYTES];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&printer->decoder, bytes, n_bytes, &head, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&printer->formatter, &head, operands, head.operand_count_visible,
                                                      text, sizeof text, vaddr, NULL)))
        return 0;
    bool is_indirect = (head.mnemonic == ZYDIS_MNEMONIC_CALL || head.mnemonic == ZYDIS_MNEMONIC_JMP) &&
                       operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
    bool is_nop = head.mnemonic == ZYDIS_MNEMONIC_NOP; /* its operands only make it longer */
    const char *rest = is_nop ? "" : put_head(out, text, &head, operands);
    if (is_nop)
        buf_printf(out, "nop");
    if (*rest)
        buf_printf(out, is_indirect ? " *" : " ");
    for (const char *at = *rest ? rest + 1 : rest; *at; at++)
        if (*at != ' ' || at[-1] != ',')
            buf_append(out, at, 1);
    *reference = find_reference(&head, operands, vaddr);
    return head.length;
}
