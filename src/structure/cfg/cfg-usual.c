/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes the encodings that nearly all compiled code is made of by two tables, which is much faster than a whole
 * disassembler. The disassembler gets the rest: the tables only hold what it surely decodes the same way. Ordinary
 * code. */
#include <string.h>

#include "structure/cfg/cfg.h"

#define INSN_BYTES_MAX 15
#define ANY 0xff /* every value of the register field of ModRM */

enum prefix {
    NO_PREFIX = 1,
    PREFIX_66 = 2,
    PREFIX_F3 = 4,
    PREFIX_F2 = 8,
    WORDS = NO_PREFIX | PREFIX_66, /* numbers of all sizes; vectors of both kinds of floating-point numbers */
    SCALAR = PREFIX_F3 | PREFIX_F2 /* single floating-point numbers */
};

enum form { FORM_PLAIN, FORM_MOVE, FORM_ADDRESS, FORM_COMPARE, FORM_BRANCH, FORM_JUMP, FORM_CALL, FORM_RETURN };

/* Size in bytes of the constant at the end of an instruction. */
enum constant { CONSTANT_0, CONSTANT_1, CONSTANT_4 /* 2 after 66 */, CONSTANT_8 /* without REX.W as CONSTANT_4 */ };

/* What the tables say about an opcode; all zero: nothing. */
struct usual {
    uint8_t prefixes; /* enum prefix: those that may stand before it */
    uint8_t regs;     /* bit of each register field that it may have; 0: it has no ModRM */
    uint8_t constant;
    uint8_t form;
};

static const struct usual one_byte[256] = {
    [0x00 ... 0x03] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x04] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x05] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x08 ... 0x0b] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x0c] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x0d] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x10 ... 0x13] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x14] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x15] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x18 ... 0x1b] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x1c] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x1d] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x20 ... 0x23] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x24] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x25] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x28 ... 0x2b] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x2c] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x2d] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x30 ... 0x33] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x34] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0x35] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0x38 ... 0x3b] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x3c] = {NO_PREFIX, 0, CONSTANT_1, FORM_COMPARE},
    [0x3d] = {NO_PREFIX, 0, CONSTANT_4, FORM_COMPARE},
    [0x50 ... 0x5f] = {WORDS, 0, CONSTANT_0, FORM_PLAIN},
    [0x63] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x68] = {NO_PREFIX, 0, CONSTANT_4, FORM_PLAIN},
    [0x69] = {WORDS, ANY, CONSTANT_4, FORM_PLAIN},
    [0x6a] = {NO_PREFIX, 0, CONSTANT_1, FORM_PLAIN},
    [0x6b] = {WORDS, ANY, CONSTANT_1, FORM_PLAIN},
    [0x70 ... 0x7f] = {NO_PREFIX, 0, CONSTANT_1, FORM_BRANCH},
    [0x80] = {WORDS, ANY, CONSTANT_1, FORM_COMPARE},
    [0x81] = {WORDS, ANY, CONSTANT_4, FORM_COMPARE},
    [0x83] = {WORDS, ANY, CONSTANT_1, FORM_COMPARE},
    [0x84 ... 0x87] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x88 ... 0x8b] = {WORDS, ANY, CONSTANT_0, FORM_MOVE},
    [0x8d] = {WORDS, ANY, CONSTANT_0, FORM_ADDRESS},
    [0x90] = {WORDS, 0, CONSTANT_0, FORM_PLAIN},
    [0x98 ... 0x99] = {WORDS, 0, CONSTANT_0, FORM_PLAIN},
    [0xa4 ... 0xa5] = {WORDS | PREFIX_F3, 0, CONSTANT_0, FORM_PLAIN},
    [0xa8] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0xa9] = {WORDS, 0, CONSTANT_4, FORM_PLAIN},
    [0xaa ... 0xab] = {WORDS | PREFIX_F3, 0, CONSTANT_0, FORM_PLAIN},
    [0xb0 ... 0xb7] = {WORDS, 0, CONSTANT_1, FORM_PLAIN},
    [0xb8 ... 0xbf] = {WORDS, 0, CONSTANT_8, FORM_PLAIN},
    [0xc0 ... 0xc1] = {WORDS, ANY, CONSTANT_1, FORM_PLAIN},
    [0xc3] = {NO_PREFIX | PREFIX_F3, 0, CONSTANT_0, FORM_RETURN},
    [0xc6] = {WORDS, 1, CONSTANT_1, FORM_MOVE},
    [0xc7] = {WORDS, 1, CONSTANT_4, FORM_MOVE},
    [0xc9] = {NO_PREFIX, 0, CONSTANT_0, FORM_PLAIN},
    [0xd0 ... 0xd3] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xe8] = {NO_PREFIX, 0, CONSTANT_4, FORM_CALL},
    [0xe9] = {NO_PREFIX, 0, CONSTANT_4, FORM_JUMP},
    [0xeb] = {NO_PREFIX, 0, CONSTANT_1, FORM_JUMP},
    /* of these groups test has a constant, the others have none */
    [0xf6 ... 0xf7] = {WORDS, 0xfc, CONSTANT_0, FORM_PLAIN},
    [0xfe] = {NO_PREFIX, 3, CONSTANT_0, FORM_PLAIN},
    [0xff] = {WORDS, 0x43, CONSTANT_0, FORM_PLAIN},
};

/* The opcodes after 0f. */
static const struct usual two_bytes[256] = {
    [0x10 ... 0x11] = {WORDS | SCALAR, ANY, CONSTANT_0, FORM_PLAIN},
    [0x14] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x1f] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x28 ... 0x29] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x2a] = {SCALAR, ANY, CONSTANT_0, FORM_PLAIN},
    [0x2c ... 0x2d] = {SCALAR, ANY, CONSTANT_0, FORM_PLAIN},
    [0x2e ... 0x2f] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x40 ... 0x4f] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x51] = {WORDS | SCALAR, ANY, CONSTANT_0, FORM_PLAIN},
    [0x54 ... 0x57] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0x58 ... 0x5a] = {WORDS | SCALAR, ANY, CONSTANT_0, FORM_PLAIN},
    [0x5c ... 0x5f] = {WORDS | SCALAR, ANY, CONSTANT_0, FORM_PLAIN},
    [0x60 ... 0x6e] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0x6f] = {PREFIX_66 | PREFIX_F3, ANY, CONSTANT_0, FORM_PLAIN},
    [0x70] = {PREFIX_66, ANY, CONSTANT_1, FORM_PLAIN},
    [0x74 ... 0x76] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0x7e ... 0x7f] = {PREFIX_66 | PREFIX_F3, ANY, CONSTANT_0, FORM_PLAIN},
    [0x80 ... 0x8f] = {NO_PREFIX, 0, CONSTANT_4, FORM_BRANCH},
    [0x90 ... 0x9f] = {NO_PREFIX, ANY, CONSTANT_0, FORM_PLAIN},
    [0xa3] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xa4] = {WORDS, ANY, CONSTANT_1, FORM_PLAIN},
    [0xa5] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xab] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xac] = {WORDS, ANY, CONSTANT_1, FORM_PLAIN},
    [0xad] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xaf] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xb3] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xb6 ... 0xb7] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xba] = {WORDS, 0xf0, CONSTANT_1, FORM_PLAIN},
    [0xbb] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xbe ... 0xbf] = {WORDS, ANY, CONSTANT_0, FORM_PLAIN},
    [0xc6] = {WORDS, ANY, CONSTANT_1, FORM_PLAIN},
    [0xc8 ... 0xcf] = {NO_PREFIX, 0, CONSTANT_0, FORM_PLAIN},
    [0xd4] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xd6] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xdb] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xdf] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xeb] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xef] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xfa ... 0xfb] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
    [0xfe] = {PREFIX_66, ANY, CONSTANT_0, FORM_PLAIN},
};

/* Length of ModRM with its SIB byte and displacement. */
static unsigned modrm_bytes(const uint8_t *at)
{
    unsigned mod = *at >> 6, rm = *at & 7, n = 1 + (rm == 4);
    switch (mod) {
    case 0:
        return n + (rm == 5 || (rm == 4 && (at[1] & 7) == 5) ? 4 : 0);
    case 1:
        return n + 1;
    case 2:
        return n + 4;
    default:
        return 1;
    }
}

static unsigned constant_bytes(unsigned constant, bool is_short, bool is_long)
{
    if (constant == CONSTANT_8 && is_long)
        return 8;
    return constant < CONSTANT_4 ? constant : is_short && !is_long ? 2 : 4;
}

static int64_t read_constant(const uint8_t *at, unsigned n_bytes)
{
    int32_t word;
    int16_t half;
    if (n_bytes == 1)
        return (int8_t)*at;
    if (n_bytes == 2) {
        memcpy(&half, at, sizeof half);
        return half;
    }
    memcpy(&word, at, sizeof word);
    return word;
}

/* Fills in what a form says; constant: the n bytes at the end of the instruction; modrm: where ModRM would be. False
 * when the disassembler is needed. */
static bool take_form(const struct usual *usual, const uint8_t *modrm, const uint8_t *constant, unsigned n,
                      struct cfg_insn *insn)
{
    static const uint8_t jumps[] = {
        [FORM_BRANCH] = CFG_BRANCH, [FORM_JUMP] = CFG_JUMP, [FORM_CALL] = CFG_CALL, [FORM_RETURN] = CFG_RETURN};
    bool is_table = *modrm >> 6 == 0 && (*modrm & 7) == 4 && modrm[1] >> 6 == 3 && (modrm[1] & 7) == 5;
    switch (usual->form) {
    case FORM_MOVE:
        return !is_table;
    case FORM_ADDRESS:
        if (*modrm >> 6 == 0 && (*modrm & 7) == 5)
            insn->value = insn->vaddr + insn->len_bytes + (uint64_t)read_constant(modrm + 1, 4);
        insn->kind = insn->value ? CFG_LEA : CFG_PLAIN;
        return !is_table && *modrm >> 6 != 3;
    case FORM_COMPARE:
        if (usual->regs && (*modrm >> 3 & 7) != 7)
            return true;
        insn->kind = CFG_COMPARE;
        insn->value = (uint64_t)read_constant(constant, n);
        return true;
    case FORM_BRANCH:
    case FORM_JUMP:
    case FORM_CALL:
        insn->value = insn->vaddr + insn->len_bytes + (uint64_t)read_constant(constant, n);
        insn->kind = jumps[usual->form];
        return insn->value != 0;
    case FORM_RETURN:
        insn->kind = CFG_RETURN;
        return true;
    default:
        return true;
    }
}

bool cfg_decode_usual(const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr, struct cfg_insn *insn)
{
    if (n_bytes <= INSN_BYTES_MAX)
        return false;
    const uint8_t *at = bytes;
    unsigned prefix = *at == 0x66 ? PREFIX_66 : *at == 0xf3 ? PREFIX_F3 : *at == 0xf2 ? PREFIX_F2 : NO_PREFIX;
    at += prefix != NO_PREFIX;
    unsigned rex = (*at & 0xf0) == 0x40 ? *at++ : 0;
    bool is_two = *at == 0x0f;
    at += is_two;
    const struct usual *usual = is_two ? &two_bytes[*at] : &one_byte[*at];
    const uint8_t *modrm = ++at;
    if (!(usual->prefixes & prefix))
        return false;
    if (usual->regs) {
        if (!(usual->regs >> (*modrm >> 3 & 7) & 1))
            return false;
        at += modrm_bytes(modrm);
    }
    unsigned n = constant_bytes(usual->constant, prefix == PREFIX_66, rex & 8);
    *insn = (struct cfg_insn){.vaddr = vaddr, .len_bytes = (uint8_t)(at + n - bytes), .kind = CFG_PLAIN};
    return take_form(usual, modrm, at, n, insn);
}
