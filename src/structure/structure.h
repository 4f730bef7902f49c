/* SPDX-License-Identifier: BSD-3-Clause */
/* Program structure of a load module: its functions, what was inlined into them, their loops by their place in the
 * source, and the line of every instruction. One function is made at a time, when it is asked for; hpcstruct asks for
 * all. Loops are found on x86-64. All addresses are ELF virtual addresses. Ordinary code, untrusted input.
 *
 * The room: structure.c makes a function and may call all others: structure-dwarf.c (lines, inlining),
 * structure-loops.c (loops), and the subrooms elf, cfg, types and names; structure-module.c goes over all functions,
 * listing.c and insn-text.c print code. */
#ifndef LOCUS_STRUCTURE_STRUCTURE_H
#define LOCUS_STRUCTURE_STRUCTURE_H

#include <stdio.h>

#include "base/search.h"
#include "base/vec.h"
#include "structure/cfg/cfg.h"
#include "structure/elf/symbols.h"

enum structure_kind { STRUCTURE_FUNCTION = 0, STRUCTURE_INLINED, STRUCTURE_LOOP };

#define STRUCTURE_NONE UINT32_MAX

/* A scope of a function. Strings are borrowed until symbols_close; NULL = not known. */
struct structure_scope {
    enum structure_kind kind;
    uint32_t parent;       /* index; a parent precedes its children. STRUCTURE_NONE for scope 0, the function itself */
    const char *name;      /* function or inlined function, readable; NULL for loops */
    const char *linkage;   /* its name in the symbol table when that differs */
    const char *file;      /* of its declaration; loop: that it lies in */
    uint32_t line;         /* of its declaration; loop: its first */
    uint32_t end_line;     /* loop: the last line with code in it */
    const char *call_file; /* inlined: position of the call inside the parent function */
    uint32_t call_line, call_column;
    uint64_t vaddr;      /* function: entry; loop: first instruction of its (first) header; inlined: 0 */
    uint32_t n_machine;  /* loop: number of machine loops that it is made of */
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
    struct structure_scope *scopes; /* [n_scopes], scope 0 is the function; the other arrays follow in the same block */
    size_t n_scopes;
    struct structure_span *spans; /* [n_spans] by address, disjoint */
    size_t n_spans;
    struct structure_call *calls; /* [n_calls] by address; only for machines whose loops are found */
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

/* The function that contains vaddr, made when first needed and kept; NULL when none is known or memory ran out. */
const struct structure_function *structure_function_at(struct structure *structure, uint64_t vaddr);

/* Index of the span that holds vaddr, STRUCTURE_NONE when none does; inline, because readers of structure files alone
 * need it too. */
static inline uint32_t structure_span_at(const struct structure_function *function, uint64_t vaddr)
{
    size_t low = search_upto(function->spans, function->n_spans, SEARCH_KEY(struct structure_span, start), vaddr);
    return low > 0 && vaddr < function->spans[low - 1].end ? (uint32_t)low - 1 : STRUCTURE_NONE;
}

/* A loop that lies in others, and what another order of these would change; for machines whose loops are found. */
struct structure_nest {
    enum nest_verdict verdict;
    const struct structure_scope *inner, *outer; /* loops: the innermost one, and the one to be the innermost instead */
    bool is_around;                              /* outer lies right around inner */
    bool is_far; /* the access takes the large steps of the verdict, else a neighbour of it does */
    /* the access: how far it moves in a turn of each of the two, and by how many bytes (see struct nest_access) */
    enum nest_move inner_move, outer_move;
    int64_t inner_bytes, outer_bytes;
};

/* Fills *nest for a sample at vaddr: of the access that it was taken behind. False when that lies in no nest, or when
 * nothing is known. Needs structure_function_at for the same address, whose scopes it refers to. */
bool structure_nest_at(struct structure *structure, uint64_t vaddr, struct structure_nest *nest);

/* Makes the function in [start, end), which has no entry in the debug information; its lines come from the line table
 * if that knows them, its name is that of the symbol at start, if any. Returns false when out of memory. */
bool structure_bare(struct structure *structure, uint64_t start, uint64_t end, struct structure_function *function);

/* Frees a function that is not kept: one of structure_bare, or of a unit. */
void structure_function_fini(struct structure_function *function);

/* --- the whole structure of one load module, made by several threads --- */

struct structure_variable {
    uint64_t start, end;
    const char *name; /* readable */
};

/* One of the threads that made it: its own open files, which own the strings. */
struct structure_worker;

struct structure_module {
    char *path;                           /* canonical */
    struct structure_function *functions; /* [n_functions] by file and entry; those without a file come last */
    size_t n_functions, cap_functions;
    struct structure_variable *variables; /* [n_variables] by name */
    size_t n_variables, cap_variables;
    bool has_debug, knows_loops;
    uint64_t n_loops, n_irreducible, n_unresolved; /* loops of the source; jumps whose targets are not known */
    struct structure_worker *workers;              /* [n_workers] */
    size_t n_workers;
};

struct structure_options {
    unsigned n_jobs;    /* threads, at least 1 */
    uint64_t bytes_min; /* the smallest variable */
};

/* Makes the structure of the module at path. On failure *module is empty.
 * err: ERR_IO, ERR_FORMAT (no ELF file, or one that cannot be loaded), ERR_MEMORY */
int structure_module_load(const char *path, const struct structure_options *options, struct structure_module *module,
                          struct error *err);
void structure_module_fini(struct structure_module *module);

/* The symbols that the first thread opened; valid as long as the module. */
struct symbols *structure_module_symbols(const struct structure_module *module);

#endif
