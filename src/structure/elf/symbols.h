/* SPDX-License-Identifier: BSD-3-Clause */
/* What the debug information and symbol tables of one load module say about addresses: function, inlined functions,
 * file and line for code; variable for data. All addresses are ELF virtual addresses. Without debug information the
 * symbols are all there is, without symbols the ranges of the unwind tables. Ordinary code. */
#ifndef LOCUS_STRUCTURE_ELF_SYMBOLS_H
#define LOCUS_STRUCTURE_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SYMBOLS_FRAMES_MAX 64

struct symbols;

/* One function that an address lies in. Strings are borrowed until symbols_close; NULL = not known. */
struct symbols_frame {
    const char *function;  /* readable name */
    const char *decl_file; /* where the function is declared */
    uint32_t decl_line;
    const char *file; /* position inside this function: of the address for the innermost, else of the inlined call */
    uint32_t line, column;
    uint64_t low_vaddr; /* entry of the function; 0 for inlined ones */
    uint64_t die;       /* offset of its DIE in the module's .debug_info, 0 = none */
};

/* One variable with static storage. */
struct symbols_data {
    const char *name; /* readable */
    uint64_t vaddr, size_bytes;
    const char *decl_file; /* NULL without debug information */
    uint32_t decl_line;
};

/* Opens a module (and its separate debug file, found by build id). The caller closes it.
 * err: ERR_IO or ERR_FORMAT when the file cannot be read as ELF */
int symbols_open(const char *path, struct symbols **symbols, struct error *err);
void symbols_close(struct symbols *symbols);

/* 1 when the module has DWARF line or function information. */
bool symbols_has_debug(const struct symbols *symbols);

/* Whether vaddr (of the module, not of the process) lies in the first section of that name. The answer for the last
 * name is kept.  ctx: ordinary */
bool symbols_is_in_section(struct symbols *symbols, uint64_t vaddr, const char *name);

/* Fills frames [SYMBOLS_FRAMES_MAX], outermost first: the function that contains vaddr, then what was inlined into it
 * there. Returns their number, 0 when the module has no code at vaddr. */
size_t symbols_lookup(struct symbols *symbols, uint64_t vaddr, struct symbols_frame *frames);

/* Whether the function at this DIE offset (struct symbols_frame) returns a pointer: 1 yes, 0 no, -1 not known. */
int symbols_returns_pointer(struct symbols *symbols, uint64_t die);

/* The variable that contains vaddr or, _tls, the offset in the module's TLS segment. Among aliases: global, then the
 * longest, then the first by name. Returns false when there is none. */
bool symbols_data_at(struct symbols *symbols, uint64_t vaddr, struct symbols_data *data);
bool symbols_tls_at(struct symbols *symbols, uint64_t offset, struct symbols_data *data);

/* --- names in readable form --- */

/* The demangler of the C++ runtime library is loaded when it is first needed, so that the tools also run where there is
 * none; names then stay mangled. */

/* Readable form of a mangled C++ or Rust name (beginning with "_Z"), Rust's without the hash at its end; malloc'ed, the
 * caller frees it. NULL when the name is not mangled, cannot be demangled, or the C++ runtime library is missing. */
char *demangle_name(const char *name);

/* The name of a variable or procedure of a Fortran module, "fields::parts", from its symbol, "__fields_MOD_parts";
 * malloc'ed, the caller frees it. NULL when it is none. */
char *demangle_module_name(const char *name);

#endif
