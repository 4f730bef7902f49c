/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for recipe-insn.c and modtab-height.c where the build has no disassembler (Zydis is packaged for
 * little-endian machines only). Nothing decodes as an instruction, so x86-64 files have neither recipes nor rows for
 * assembly without unwind information; files of other machines lack nothing. Ordinary code. */
#include <stdlib.h>

#include "fnbounds/modtab-make.h"
#include "fnbounds/recipe-make.h"

struct insn_decoder {
    int unused;
};

struct insn_decoder *insn_decoder_open(void)
{
    return calloc(1, sizeof(struct insn_decoder));
}

void insn_decoder_close(struct insn_decoder *decoder)
{
    free(decoder);
}

void insn_decode(const struct insn_decoder *decoder, const uint8_t *bytes, size_t n_bytes, uint32_t pc,
                 struct insn *out)
{
    (void)decoder;
    (void)bytes;
    (void)n_bytes;
    *out = (struct insn){.pc = pc, .target = INSN_NONE, .table = INSN_NONE, .len_bytes = 1, .kind = INSN_STOP};
}

struct height height_at_entry(void)
{
    return (struct height){HEIGHT_UNKNOWN, HEIGHT_UNKNOWN, HEIGHT_UNKNOWN, HEIGHT_UNKNOWN, 0,
                           HEIGHT_UNKNOWN, HEIGHT_UNKNOWN};
}

struct height_flow height_step(const uint8_t *code, size_t n, struct height *h)
{
    (void)code;
    (void)n;
    (void)h;
    return (struct height_flow){0};
}

bool height_meet(struct height *h, const struct height *other)
{
    (void)h;
    (void)other;
    return false;
}

struct modtab_row height_row(const struct height *h)
{
    (void)h;
    return (struct modtab_row){.kind = MODTAB_BAD};
}
