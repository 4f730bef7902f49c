/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces what reads x86-64 code where the build has no Zydis, which is packaged for little-endian machines only:
 * cfg-insn.c, with the usual encodings alone, so that loops around others are missed; alloc-name.c, which then leaves
 * naming to the source text; insn-text.c, so that code of x86-64 is not listed; and frame-slots.c, so that only debug
 * information tells about the slots of a frame. Modules of other machines lose nothing. Ordinary code. */
#include <stdlib.h>

#include "structure/cfg/cfg.h"
#include "structure/listing.h"
#include "structure/names/alloc-name.h"
#include "structure/types/locals.h"

struct cfg_decoder {
    int unused;
};

struct cfg_decoder *cfg_decoder_new(void)
{
    return calloc(1, sizeof(struct cfg_decoder));
}

void cfg_decode_any(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                    struct cfg_insn *insn)
{
    (void)decoder;
    (void)bytes;
    (void)n_bytes;
    *insn = (struct cfg_insn){.vaddr = vaddr, .len_bytes = 1, .kind = CFG_END};
}

void cfg_decode(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                struct cfg_insn *insn)
{
    if (!cfg_decode_usual(bytes, n_bytes, vaddr, insn))
        cfg_decode_any(decoder, bytes, n_bytes, vaddr, insn);
}

void cfg_decode_effect(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                       struct cfg_effect *effect)
{
    (void)decoder;
    (void)bytes;
    (void)n_bytes;
    (void)vaddr;
    *effect = (struct cfg_effect){
        .to = CFG_NOWHERE, .a = CFG_NOWHERE, .b = CFG_NOWHERE, .base = CFG_NOWHERE, .index = CFG_NOWHERE};
}

bool insn_printer_new(struct insn_printer **printer)
{
    *printer = NULL;
    return true;
}

unsigned insn_printer_put(const struct insn_printer *printer, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                          struct buf *out, struct insn_reference *reference)
{
    (void)printer;
    (void)bytes;
    (void)n_bytes;
    (void)vaddr;
    (void)out;
    (void)reference;
    return 0;
}

enum alloc_name_result alloc_name_find(struct symbols *symbols, uint64_t return_vaddr, enum alloc_name_value value,
                                       struct alloc_name *out)
{
    (void)symbols;
    (void)return_vaddr;
    (void)value;
    (void)out;
    return ALLOC_NAME_UNKNOWN;
}

enum frame_slot_use frame_slots_find(struct symbols *symbols, uint64_t vaddr, const struct local *locals, size_t n,
                                     int64_t cfa_offset, size_t *index, uint64_t *offset_bytes)
{
    (void)symbols;
    (void)vaddr;
    (void)locals;
    (void)n;
    (void)cfa_offset;
    (void)index;
    (void)offset_bytes;
    return SLOT_NONE;
}

void frame_bases_find(struct symbols *symbols, uint64_t vaddr, struct frame_bases *bases)
{
    (void)symbols;
    (void)vaddr;
    *bases = (struct frame_bases){.is_realigned = false};
}
