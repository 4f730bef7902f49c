/* SPDX-License-Identifier: BSD-3-Clause */
/* Program structure of a load module: its functions, what was inlined into them, the loops of their machine code under
 * the names of the source loops, and the line of every instruction. One function is made at a time, when it is asked
 * for; hpcstruct asks for all. Loops are found on x86-64. All addresses are ELF virtual addresses. Ordinary code,
 * untrusted input. */
#ifndef LOCUS_STRUCTURE_STRUCTURE_H
#define LOCUS_STRUCTURE_STRUCTURE_H

#include "structure/symbols.h"

enum structure_kind { STRUCTURE_FUNCTION = 0, STRUCTURE_INLINED, STRUCTURE_LOOP };

#define STRUCTURE_NONE UINT32_MAX

/* A scope of a function. Strings are borrowed until symbols_close; NULL = not known. */
struct structure_scope {
    enum structure_kind kind;
    uint32_t parent;       /* index; a parent precedes its children. STRUCTURE_NONE for scope 0, the function itself */
    const char *name;      /* function or inlined function, readable; NULL for loops */
    const char *linkage;   /* its name in the symbol table when that differs */
    const char *file;      /* of its declaration; loop: in which it lies */
    uint32_t line;         /* of its declaration; loop: its first */
    uint32_t end_line;     /* loop: the last line with code in it */
    const char *call_file; /* inlined: position of the call inside the parent function */
    uint32_t call_line, call_column;
    uint64_t vaddr;      /* function: entry; loop: first instruction of its (first) header; inlined: 0 */
    uint32_t n_machine;  /* loop: of how many machine loops it is made */
    bool is_irreducible; /* loop: one of them can be entered in several ways */
};

/* Instructions [start, end) that belong to one line of one scope. */
struct structure_span {
    uint64_t start, end;
    const char *file; /* NULL = not known */
    uint32_t line;
    uint32_t scope;
};

/* A call instruction [start, end), which lies in one span. */
struct structure_call {
    uint64_t start, end;
    uint64_t target; /* the address that it calls, 0 = not known before the program runs */
};

struct structure_function {
    struct structure_scope *scopes; /* [n_scopes], scope 0 is the function; the other arrays lie behind them */
    size_t n_scopes;
    struct structure_span *spans; /* [n_spans] by address, disjoint */
    size_t n_spans;
    struct structure_call *calls; /* [n_calls] by address; on machines whose loops are found */
    size_t n_calls;
    bool has_lines;        /* it has debug information */
    unsigned n_unresolved; /* indirect jumps whose targets are not known: loops through them are missed */
};

struct structure;

/* Reads structure from an open module, which is borrowed. NULL when out of memory. */
struct structure *structure_new(struct symbols *symbols);
void structure_free(struct structure *structure);

/* True when loops are found in modules of this machine. */
bool structure_knows_loops(const struct structure *structure);

/* The function that contains vaddr, made when first asked for and kept; NULL when none is known or memory ran out. */
const struct structure_function *structure_function_at(struct structure *structure, uint64_t vaddr);

/* Index of the span that holds vaddr, STRUCTURE_NONE when none does. */
uint32_t structure_span_at(const struct structure_function *function, uint64_t vaddr);

/* Number of compilation units, for structure_unit. */
size_t structure_n_units(const struct structure *structure);

/* Makes every function of unit i and hands each to take, which owns it then (structure_function_fini).
 * Returns false when out of memory. */
bool structure_unit(struct structure *structure, size_t i, void (*take)(void *context, struct structure_function *),
                    void *context);

/* Makes the function in [start, end) that has no entry in the debug information; its lines come from the line table
 * when that knows them, its name is that of the symbol at start, if any. Returns false when out of memory. */
bool structure_bare(struct structure *structure, uint64_t start, uint64_t end, struct structure_function *function);

/* Frees a function that structure_unit or structure_bare made. */
void structure_function_fini(struct structure_function *function);

#endif
