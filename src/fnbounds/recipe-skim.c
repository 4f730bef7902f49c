/* SPDX-License-Identifier: BSD-3-Clause */
/* A quick look at one x86-64 instruction: its length, where control goes, and whether it may move the frame. Most of a
 * sampled function is only stepped over, and this takes a tenth of the disassembler's time. It knows the common
 * encodings (Intel SDM volume 2, appendix A) and leaves all others to the disassembler. */
#include "fnbounds/recipe-make.h"

#include <string.h>

/* What follows an opcode, and what the instruction does with control. */
enum form {
    F_OTHER = 0, /* left to the disassembler */
    F_BARE,      /* nothing */
    F_MODRM,
    F_MODRM_BYTE, /* and an 8-bit constant */
    F_MODRM_WORD, /* and one of 32 bits, 16 with an operand size prefix */
    F_BYTE,
    F_WORD,
    F_WHOLE, /* a constant as wide as the operand */
    F_MOVE,  /* MODRM_BYTE or _WORD, valid with /0 */
    F_SHIFT, /* MODRM, valid but with /6 */
    F_UNARY, /* /0 with a constant, /2 to /7 without */
    F_STEP,  /* inc and dec: /0 and /1; 0xff also push, /6 */
    F_LEA,
    F_JCC_BYTE,
    F_JMP_BYTE,
    F_JCC_WORD,
    F_JMP_WORD,
    F_CALL,
    F_RET,
    F_NOP,
    F_BITS /* MODRM_BYTE, /4 to /7 */
};

static const uint8_t one_byte[256] = {
    [0x50 ... 0x5f] = F_BARE,
    [0x63] = F_MODRM,
    [0x68] = F_WORD,
    [0x69] = F_MODRM_WORD,
    [0x6a] = F_BYTE,
    [0x6b] = F_MODRM_BYTE,
    [0x70 ... 0x7f] = F_JCC_BYTE,
    [0x80] = F_MODRM_BYTE,
    [0x81] = F_MODRM_WORD,
    [0x83] = F_MODRM_BYTE,
    [0x84 ... 0x8b] = F_MODRM,
    [0x8d] = F_LEA,
    [0x98 ... 0x99] = F_BARE,
    [0xa8] = F_BYTE,
    [0xa9] = F_WORD,
    [0xb0 ... 0xb7] = F_BYTE,
    [0xb8 ... 0xbf] = F_WHOLE,
    [0xc0 ... 0xc1] = F_SHIFT,
    [0xc3] = F_RET,
    [0xc6 ... 0xc7] = F_MOVE,
    [0xc9] = F_BARE,
    [0xd0 ... 0xd3] = F_SHIFT,
    [0xe8] = F_CALL,
    [0xe9] = F_JMP_WORD,
    [0xeb] = F_JMP_BYTE,
    [0xf6 ... 0xf7] = F_UNARY,
    [0xfe ... 0xff] = F_STEP,
};

/* Prefixes with which an opcode of two bytes is of that form. */
enum prefixes { P_NONE = 1, P_66 = 2, P_F3 = 4, P_F2 = 8, P_INT = P_NONE | P_66, P_ALL = 15 };

struct two_byte {
    uint8_t form, prefixes; /* enum form, enum prefixes */
};

static const struct two_byte two_byte[256] = {
    [0x10 ... 0x11] = {F_MODRM, P_ALL},
    [0x14 ... 0x15] = {F_MODRM, P_INT},
    [0x1f] = {F_NOP, P_INT},
    [0x28 ... 0x29] = {F_MODRM, P_INT},
    [0x2a] = {F_MODRM, P_F3 | P_F2},
    [0x2c ... 0x2d] = {F_MODRM, P_F3 | P_F2},
    [0x2e ... 0x2f] = {F_MODRM, P_INT},
    [0x40 ... 0x4f] = {F_MODRM, P_INT},
    [0x51] = {F_MODRM, P_ALL},
    [0x54 ... 0x57] = {F_MODRM, P_INT},
    [0x58 ... 0x59] = {F_MODRM, P_ALL},
    [0x5a] = {F_MODRM, P_ALL},
    [0x5c ... 0x5f] = {F_MODRM, P_ALL},
    [0x60 ... 0x6e] = {F_MODRM, P_66},
    [0x6f] = {F_MODRM, P_66 | P_F3},
    [0x70] = {F_MODRM_BYTE, P_66 | P_F3 | P_F2},
    [0x74 ... 0x76] = {F_MODRM, P_66},
    [0x7e ... 0x7f] = {F_MODRM, P_66 | P_F3},
    [0x80 ... 0x8f] = {F_JCC_WORD, P_NONE},
    [0x90 ... 0x9f] = {F_MODRM, P_NONE},
    [0xa3] = {F_MODRM, P_INT},
    [0xa4] = {F_MODRM_BYTE, P_INT},
    [0xa5] = {F_MODRM, P_INT},
    [0xab] = {F_MODRM, P_INT},
    [0xac] = {F_MODRM_BYTE, P_INT},
    [0xad] = {F_MODRM, P_INT},
    [0xaf] = {F_MODRM, P_INT},
    [0xb3] = {F_MODRM, P_INT},
    [0xb6 ... 0xb7] = {F_MODRM, P_INT},
    [0xba] = {F_BITS, P_INT},
    [0xbb] = {F_MODRM, P_INT},
    [0xbe ... 0xbf] = {F_MODRM, P_INT},
    [0xc6] = {F_MODRM_BYTE, P_INT},
    [0xc8 ... 0xcf] = {F_BARE, P_NONE},
    [0xd1 ... 0xd5] = {F_MODRM, P_66},
    [0xd8 ... 0xdf] = {F_MODRM, P_66},
    [0xe0 ... 0xe5] = {F_MODRM, P_66},
    [0xe8 ... 0xef] = {F_MODRM, P_66},
    [0xf1 ... 0xf6] = {F_MODRM, P_66},
    [0xf8 ... 0xfe] = {F_MODRM, P_66},
};

struct bytes {
    const uint8_t *at;
    size_t n, used;   /* used > n: it does not end here */
    uint8_t prefixes; /* enum prefixes, P_NONE for none */
    bool has_rex_w;
};

static uint8_t next(struct bytes *bytes)
{
    if (bytes->used < bytes->n)
        return bytes->at[bytes->used++];
    bytes->used = bytes->n + 1;
    return 0;
}

/* Reads the prefixes and returns the byte behind them; 0x0f or one of enum form's opcodes when they are common ones. */
static uint8_t read_prefixes(struct bytes *bytes)
{
    uint8_t byte = next(bytes);
    for (unsigned n = 0; n < 4; n++, byte = next(bytes)) {
        uint8_t prefix = byte == 0x66 ? P_66 : byte == 0xf3 ? P_F3 : byte == 0xf2 ? P_F2 : 0;
        if (!prefix && byte != 0x64 && byte != 0x65)
            break;
        bytes->prefixes |= prefix;
    }
    if (byte >> 4 == 4) {
        bytes->has_rex_w = byte & 8;
        byte = next(bytes);
    }
    if (!bytes->prefixes)
        bytes->prefixes = P_NONE;
    return byte;
}

/* Steps over the operand's bytes and returns the first one. */
static uint8_t read_modrm(struct bytes *bytes)
{
    uint8_t modrm = next(bytes), mod = modrm >> 6, rm = modrm & 7, base = rm;
    if (mod == 3)
        return modrm;
    if (rm == 4)
        base = next(bytes) & 7;
    if (mod == 1)
        bytes->used += 1;
    else if (mod == 2 || base == 5)
        bytes->used += 4;
    return modrm;
}

static size_t word_bytes(const struct bytes *bytes)
{
    return bytes->prefixes & P_66 && !bytes->has_rex_w ? 2 : 4;
}

/* Steps over a branch's distance and sets its kind and target. */
static void set_branch(struct bytes *bytes, enum insn_kind kind, size_t n_bytes, struct insn *out)
{
    size_t at = bytes->used;
    int32_t distance = 0;
    bytes->used += n_bytes;
    if (bytes->used > bytes->n || bytes->prefixes != P_NONE)
        return;
    if (n_bytes == 1)
        distance = (int8_t)bytes->at[at];
    else
        memcpy(&distance, bytes->at + at, sizeof distance);
    out->kind = (uint8_t)kind;
    out->target = out->pc + (uint32_t)bytes->used + (uint32_t)distance;
}

/* Steps over what follows the opcode; false when the disassembler must decide. */
static bool read_operands(struct bytes *bytes, enum form form, uint8_t opcode, struct insn *out)
{
    bool is_wide = opcode & 1;
    uint8_t modrm = 0, reg;
    if ((form >= F_MODRM && form <= F_MODRM_WORD) || (form >= F_MOVE && form <= F_LEA) || form >= F_NOP)
        modrm = read_modrm(bytes);
    reg = modrm >> 3 & 7;
    switch (form) {
    case F_BARE:
    case F_MODRM:
        return true;
    case F_MODRM_BYTE:
    case F_BYTE:
        bytes->used += 1;
        return true;
    case F_MODRM_WORD:
    case F_WORD:
        bytes->used += word_bytes(bytes);
        return true;
    case F_WHOLE:
        bytes->used += bytes->has_rex_w ? 8 : word_bytes(bytes);
        return true;
    case F_MOVE:
        bytes->used += is_wide ? word_bytes(bytes) : 1;
        return reg == 0;
    case F_SHIFT:
        bytes->used += opcode < 0xd0;
        return reg != 6;
    case F_UNARY:
        bytes->used += reg ? 0 : is_wide ? word_bytes(bytes) : 1;
        return reg != 1;
    case F_STEP:
        return reg < 2 || (reg == 6 && is_wide);
    case F_LEA: /* an address relative to the instruction may be a jump table's */
        return modrm >> 6 != 3 && (modrm & 0xc7) != 5;
    case F_JCC_BYTE:
        set_branch(bytes, INSN_JCC, 1, out);
        return out->kind == INSN_JCC;
    case F_JMP_BYTE:
        set_branch(bytes, INSN_JMP, 1, out);
        return out->kind == INSN_JMP;
    case F_JCC_WORD:
        set_branch(bytes, INSN_JCC, 4, out);
        return out->kind == INSN_JCC;
    case F_JMP_WORD:
        set_branch(bytes, INSN_JMP, 4, out);
        return out->kind == INSN_JMP;
    case F_CALL:
        set_branch(bytes, INSN_CALL, 4, out);
        return out->kind == INSN_CALL;
    case F_RET:
        out->kind = INSN_RET;
        return bytes->prefixes == P_NONE;
    case F_NOP:
        out->kind = INSN_NOP;
        return reg == 0;
    case F_BITS:
        bytes->used += 1;
        return reg >= 4;
    case F_OTHER:
    default:
        return false;
    }
}

/* The fields that hold of any skimmed instruction. The others stay as they are: most of a function is only skimmed, and
 * clearing them would take as long as reading the code. */
static void begin(struct insn *out, uint32_t pc)
{
    out->pc = pc;
    out->target = out->table = INSN_NONE;
    out->len_bytes = out->n_operands = out->n_effects = 0;
    out->kind = INSN_PLAIN;
    out->is_skimmed = true;
    out->is_pause = out->is_slow = out->is_fusible = out->is_compare_exchange = false;
}

bool insn_skim(const uint8_t *code, size_t n_bytes, uint32_t pc, struct insn *out)
{
    struct bytes bytes = {.at = code, .n = n_bytes};
    uint8_t opcode = read_prefixes(&bytes);
    enum form form = (enum form)one_byte[opcode];
    begin(out, pc);
    if (opcode == 0x0f) {
        opcode = next(&bytes);
        bool is_known = bytes.prefixes & two_byte[opcode].prefixes && !(bytes.prefixes & (bytes.prefixes - 1));
        form = is_known ? (enum form)two_byte[opcode].form : F_OTHER;
    } else if (bytes.prefixes & (P_F3 | P_F2)) {
        return false;
    } else if (opcode < 0x40) { /* eight groups of arithmetic, of six encodings each */
        static const uint8_t group[8] = {F_MODRM, F_MODRM, F_MODRM, F_MODRM, F_BYTE, F_WORD, F_OTHER, F_OTHER};
        form = (enum form)group[opcode & 7];
    }
    if (!read_operands(&bytes, form, opcode, out) || bytes.used > n_bytes || bytes.used > INSN_BYTES_MAX)
        return false;
    out->len_bytes = (uint8_t)bytes.used;
    return true;
}

/* --- the frame --- */

#define RM_ONLY 1u /* the operand's other field belongs to the opcode */
#define BYTES 2u   /* its registers are of 8 bits */
#define READS 4u   /* it writes no register */
#define IN_CODE 8u /* the register is in the opcode */
#define MOVES 16u  /* it pushes or pops */

/* How opcodes that insn_skim knows write general registers. */
static uint8_t writing_of(uint8_t opcode)
{
    uint8_t bytes = opcode & 1 ? 0 : BYTES;
    if (opcode < 0x40)
        return (opcode & 7) > 3 || opcode >> 3 == 7 ? READS : bytes;
    if ((opcode >= 0x50 && opcode < 0x60) || opcode == 0x68 || opcode == 0x6a || opcode == 0xc9)
        return MOVES;
    if (opcode >= 0xb0 && opcode < 0xc0)
        return IN_CODE | (opcode < 0xb8 ? BYTES : 0);
    if (opcode == 0x63 || opcode == 0x69 || opcode == 0x6b || opcode == 0x8d)
        return 0;
    if (opcode >= 0x86 && opcode <= 0x8b)
        return bytes;
    bool is_group = (opcode >= 0x80 && opcode <= 0x83) || (opcode >= 0xc0 && opcode <= 0xc1) ||
                    (opcode >= 0xc6 && opcode <= 0xc7) || (opcode >= 0xd0 && opcode <= 0xd3) || opcode >= 0xf6;
    return is_group ? RM_ONLY | (opcode == 0x83 ? 0 : bytes) : READS;
}

static uint8_t writing_of_two(uint8_t opcode)
{
    bool is_vector = opcode < 0x2c || opcode == 0x2e || opcode == 0x2f || (opcode >= 0x51 && opcode <= 0x76) ||
                     opcode == 0x7f || opcode == 0xa3 || opcode == 0xc6 || opcode >= 0xd0;
    if (is_vector || (opcode >= 0x80 && opcode < 0x90))
        return READS;
    if (opcode >= 0xc8 && opcode <= 0xcf)
        return IN_CODE;
    return opcode >= 0x90 && opcode <= 0x9f ? RM_ONLY | BYTES : opcode == 0xba ? RM_ONLY : 0;
}

/* rbx, rsp and rbp; without a prefix, number 7 of 8 bits is the second byte of rbx. */
static bool is_of_frame(unsigned reg, bool is_bh)
{
    return (reg >= 3 && reg <= 5) || (is_bh && reg == 7);
}

bool insn_may_move_frame(const uint8_t *code, size_t n_bytes)
{
    struct bytes bytes = {.at = code, .n = n_bytes};
    uint8_t opcode = read_prefixes(&bytes), rex = 0, writing;
    if (bytes.used >= 2 && code[bytes.used - 2] >> 4 == 4)
        rex = code[bytes.used - 2];
    bool is_two = opcode == 0x0f, is_push = opcode == 0xff;
    if (is_two)
        opcode = next(&bytes);
    writing = is_two ? writing_of_two(opcode) : writing_of(opcode);
    if (writing & (READS | MOVES))
        return writing & MOVES;
    bool is_bh = writing & BYTES && !rex;
    if (writing & IN_CODE)
        return is_of_frame((opcode & 7u) | (rex & 1u) << 3, is_bh);
    uint8_t modrm = next(&bytes), reg = modrm >> 3 & 7;
    bool is_register = modrm >> 6 == 3;
    return (is_push && reg == 6) || (is_register && is_of_frame((modrm & 7u) | (rex & 1u) << 3, is_bh)) ||
           (!(writing & RM_ONLY) && is_of_frame(reg | (rex & 4u) << 1, is_bh));
}
