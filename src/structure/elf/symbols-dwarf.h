/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of struct symbols, for the files of src/structure that read DWARF or ELF themselves. They are not in
 * symbols.h, so that only this folder is compiled against libdw. */
#ifndef LOCUS_STRUCTURE_ELF_SYMBOLS_DWARF_H
#define LOCUS_STRUCTURE_ELF_SYMBOLS_DWARF_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "base/vec.h"
#include "structure/elf/symbols.h"

/* STUB: the linker's, through which a function of another module is called. */
enum elf_symbol_kind { ELF_SYMBOL_CODE, ELF_SYMBOL_DATA, ELF_SYMBOL_TLS, ELF_SYMBOL_STUB, ELF_SYMBOL_KINDS };

struct elf_symbol {
    uint64_t vaddr, size_bytes;
    uint64_t end;     /* of its section: code without a size does not reach beyond */
    const char *name; /* borrowed from the ELF file */
    uint8_t bind;
};

/* Symbols of one kind, sorted by address, best alias first among equal addresses. */
struct elf_symbols {
    struct elf_symbol *items; /* [n] */
    size_t n, capacity;
    uint64_t max_size_bytes;
};

struct dwarf_range {
    uint64_t low, high;
    size_t unit;   /* index into units */
    Dwarf_Die die; /* function ranges: its DIE */
};

struct dwarf_unit {
    Dwarf_Die die;    /* with the line table: the skeleton for split DWARF */
    Dwarf_Die scopes; /* with the functions */
    bool indexed;
    struct dwarf_range *functions; /* [n_functions] sorted by low */
    size_t n_functions, cap_functions;
};

struct dwarf_variable {
    uint64_t vaddr;
    const char *name; /* DW_AT_name, may be NULL */
    const char *file;
    uint32_t line;
    Dwarf_Die die; /* of the member itself in a COMMON block */
    bool is_tls;   /* vaddr is an offset in the TLS segment */
};

/* An entry that others lie in: a namespace, class, function or block. */
struct dwarf_scope {
    uint64_t place; /* in memory, by which they are sorted */
    Dwarf_Die die;
    size_t parent; /* index + 1; 0: the unit */
};

struct modtab_range;
struct types;
struct locals;
struct frame_slots;

struct symbols {
    char *path;
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf *dwarf;          /* NULL without debug information */
    Dwarf_Addr dwarf_bias; /* vaddr = DWARF address + dwarf_bias */
    struct elf_symbols elf[ELF_SYMBOL_KINDS];
    struct dwarf_unit *units; /* [n_units] */
    size_t n_units, cap_units;
    struct dwarf_range *ranges; /* [n_ranges] of the units, sorted by low */
    size_t n_ranges, cap_ranges;
    bool unwind_indexed;
    struct modtab_range *ranges_unwind; /* [n_ranges_unwind] sorted */
    size_t n_ranges_unwind;
    bool variables_indexed;
    struct dwarf_variable *variables; /* [n_variables] sorted by vaddr */
    size_t n_variables, cap_variables;
    /* what files above this folder keep here until symbols_close, NULL until first needed, and how to free it */
    struct types *types;
    void (*types_free)(struct types *types);
    struct locals *locals; /* of the last function asked for */
    void (*locals_free)(struct locals *locals);
    struct frame_slots *slots;
    void (*slots_free)(struct frame_slots *slots);
    const void *scopes_of;      /* libdw's unit that the scopes are of, NULL: none yet */
    struct dwarf_scope *scopes; /* [n_scopes] */
    size_t n_scopes, cap_scopes;
    const char *section;                 /* the last one that was asked for, NULL: none yet ... */
    uint64_t section_low, section_bytes; /* ... and where it lies; 0 bytes: the module has none of that name */
    struct strtab strings;               /* owns every string returned */
    const char *path_raw, *path_owned;   /* the last path of libdw's and its owned copy, NULL: none yet */
};

/* symbols.c: an owned copy of text, demangled or with the path simplified; NULL for NULL or out of memory. */
const char *symbols_own_name(struct symbols *symbols, const char *name);
const char *symbols_own_path(struct symbols *symbols, const char *path);

/* symbols.c: the symbol of a kind that contains vaddr; NULL when none does. */
const struct elf_symbol *symbols_elf_find(const struct symbols *symbols, enum elf_symbol_kind kind, uint64_t vaddr);

/* symbols.c: the range of code in the unwind tables that contains vaddr, for stripped code; false when none does. */
bool symbols_unwind_range(struct symbols *symbols, uint64_t vaddr, uint64_t *start, uint64_t *end);

#define SYMBOLS_SCOPES_MAX 64 /* one in the other */

/* symbols-dwarf.c: fills scopes with the entry and what it lies in, from the inside out, without the unit; returns how
 * many. */
int symbols_scopes_around(struct symbols *symbols, Dwarf_Die *die, Dwarf_Die scopes[SYMBOLS_SCOPES_MAX]);

/* symbols-dwarf.c */
void symbols_dwarf_load(struct symbols *symbols);
void symbols_dwarf_free(struct symbols *symbols);
/* Owned path of a file as the line table of a unit names it: relative to the directory of the compilation. */
const char *symbols_own_file(struct symbols *symbols, Dwarf_Die *unit, const char *path);
/* Owned path of the file that declares die; unlike dwarf_decl_file it knows that file 0 of version 5 is a file. */
const char *symbols_decl_file(struct symbols *symbols, Dwarf_Die *die);
/* Number of the rows [n] of a line table that lie at or before address (a DWARF address). */
size_t symbols_rows_upto(Dwarf_Lines *lines, size_t n, uint64_t address);
/* The function that contains vaddr; false when none is known. */
bool symbols_dwarf_function(struct symbols *symbols, uint64_t vaddr, Dwarf_Die *function);
/* The unit that holds vaddr, with its functions indexed, and the function in it, if any; false when there is no
 * unit. */
bool symbols_dwarf_at(struct symbols *symbols, uint64_t vaddr, struct dwarf_unit **unit, Dwarf_Die *function,
                      bool *has_function);
/* Fills name, declaration and DIE of a function. Returns its linkage name as libdw keeps it, NULL when it has none. */
const char *symbols_dwarf_describe(struct symbols *symbols, Dwarf_Die *die, struct symbols_frame *frame);
/* The block or inlined function directly in parent that contains vaddr; false when there is none. */
bool symbols_dwarf_inner(const struct symbols *symbols, Dwarf_Die *parent, uint64_t vaddr, Dwarf_Die *inner);
size_t symbols_dwarf_lookup(struct symbols *symbols, uint64_t vaddr, struct symbols_frame *frames);

/* Distance of a register-relative address from the CFA at vaddr: *offset becomes CFA-relative when reg is the stack or
 * frame pointer and the unwind rule at vaddr is based on it. False when the distance is not known. */
bool symbols_cfa_offset(struct symbols *symbols, uint64_t vaddr, int reg, int64_t *offset);

/* symbols-dwarf.c: declaration of the variable at exactly vaddr, NULL when not known. */
const struct dwarf_variable *symbols_dwarf_variable(struct symbols *symbols, uint64_t vaddr);
/* The last variable, thread-local or not, that begins at or before vaddr; NULL when there is none. */
const struct dwarf_variable *symbols_dwarf_variable_upto(struct symbols *symbols, bool tls, uint64_t vaddr);

#endif
