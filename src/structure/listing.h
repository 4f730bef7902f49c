/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine code of a load module as text: instruction by instruction, in the syntax of GNU tools (AT&T), with the
 * names of what calls and jumps lead to and of the data at fixed addresses. Code of machines without a disassembler is
 * shown as bytes. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_LISTING_H
#define LOCUS_STRUCTURE_LISTING_H

#include "base/error.h"
#include "base/vec.h"
#include "structure/structure.h"

struct listing;

/* Opens the module at path; listing_close frees it.
 * err: ERR_IO, ERR_FORMAT (no ELF file), ERR_UNSUPPORTED (it is not known where instructions end), ERR_MEMORY */
int listing_open(const char *path, struct listing **listing, struct error *err);
void listing_close(struct listing *listing);

/* As structure_function_at: the function that contains vaddr. Of stripped code it is what the unwind tables call one,
 * without lines. */
const struct structure_function *listing_function(struct listing *listing, uint64_t vaddr);

/* Appends the instruction at vaddr, which lies in a function. Returns its length in bytes; 0: the file has no code
 * there. What is no instruction is one byte. */
unsigned listing_put(struct listing *listing, const struct structure_function *function, uint64_t vaddr,
                     struct buf *out);

/* --- one instruction, with a disassembler: insn-text.c --- */

/* What an instruction refers to by a fixed address; 0: nothing. */
struct insn_reference {
    uint64_t vaddr;
    bool is_code; /* it jumps there, or calls it */
};

struct insn_printer; /* opaque: the disassembler's state */

/* A new printer for x86-64, freed by free(); NULL where the build has no disassembler. False when out of memory. */
bool insn_printer_new(struct insn_printer **printer);

/* Appends the instruction in bytes [n_bytes, at least 1] at vaddr. Returns its length; 0: it is none. */
unsigned insn_printer_put(const struct insn_printer *printer, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                          struct buf *out, struct insn_reference *reference);

#endif
