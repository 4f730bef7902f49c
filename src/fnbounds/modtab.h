/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of one load module: what the runtime must know about it, computed outside the program (libelf, libdw) and
 * mapped read-only. One file per module in the table cache, named <id as 16 hex digits>.lmt, written under a temporary
 * name and renamed, so that a reader sees it whole or not at all. Native byte order; all offsets are in bytes from the
 * start of the file; all addresses are ELF virtual addresses (subtract the load bias first).
 *
 * Declarations and lookups only; the inline functions are signal-safe.
 *
 * The room: modtab-make.c may call all others for a table: modtab-elf.c reads the file, modtab-rows.c (with
 * modtab-height.c) makes unwind rows; modtab-cache.c keeps tables, modtab-check-sig.c judges one that is mapped.
 * Recipes are made by recipe-make.c, which goes through recipe-rules.c, -flow.c, -value.c, -stride.c, -insn.c and
 * -skim.c, and evaluated in the program by recipe-eval-sig.c. */
#ifndef LOCUS_FNBOUNDS_MODTAB_H
#define LOCUS_FNBOUNDS_MODTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/search.h"

#define MODTAB_MAGIC "LOCUSLM1"
#define MODTAB_VERSION 8
#define MODTAB_VDSO "[vdso]" /* stands for a path: the vdso of the calling process */

/* Function or other range of code, sorted by start, not overlapping: symbols, .eh_frame, PLT, .init/.fini. */
struct modtab_func {
    uint32_t start, end; /* relative to base_vaddr */
};

/* Unwind row: how to find the caller from any pc in [row.pc, next row.pc). Sorted by pc (relative to base_vaddr). The
 * return address is at CFA - 8 unless kind says otherwise.
 *
 * The names are those of x86-64. In modules of a machine with a link register (Arm: x30, POWER: lr) rsp is its stack
 * pointer (sp, r1) and rbp its frame pointer (x29, r31); the return address is at CFA + 8 * rbx_offset when
 * MODTAB_LINK_SAVED, in DWARF register extra when MODTAB_RA_REG, else still in the link register; rbp_offset also
 * counts in words of 8 bytes, and of the kinds only GAP, CFA_RSP, CFA_RBP, CFA_REG, SIGNAL, END and BAD occur. */
struct modtab_row {
    uint32_t pc;
    int32_t cfa_offset; /* CFA = register + cfa_offset, or see kind */
    int16_t rbp_offset; /* saved rbp at CFA + rbp_offset when MODTAB_RBP_SAVED */
    int16_t rbx_offset; /* saved rbx at CFA + rbx_offset when MODTAB_RBX_SAVED */
    uint8_t kind;       /* enum modtab_row_kind */
    uint8_t reg;        /* DWARF register number for MODTAB_CFA_REG and _DEREF */
    uint8_t flags;      /* MODTAB_RBP_SAVED ... */
    int8_t extra;       /* kind-specific */
};

enum modtab_row_kind {
    MODTAB_GAP = 0,       /* no unwind information: not a function, or assembly without CFI */
    MODTAB_CFA_RSP = 1,   /* CFA = rsp + cfa_offset */
    MODTAB_CFA_RBP = 2,   /* CFA = rbp + cfa_offset */
    MODTAB_CFA_RBX = 3,   /* CFA = rbx + cfa_offset */
    MODTAB_CFA_REG = 4,   /* CFA = DWARF register reg + cfa_offset (leaf frame only: needs live registers) */
    MODTAB_CFA_DEREF = 5, /* CFA = *(register reg + cfa_offset) + extra */
    MODTAB_CFA_PLT = 6,   /* PLT expression: rsp + 8 + ((rip & 15) >= cfa_offset ? 8 : 0) */
    MODTAB_SIGNAL = 7,    /* signal return trampoline: ucontext at rsp */
    MODTAB_END = 8,       /* outermost frame: return address undefined (_start, clone) */
    MODTAB_BAD = 9        /* rule not representable: stop and count */
};

#define MODTAB_RBP_SAVED 1u /* rbp at CFA + rbp_offset; otherwise unchanged */
#define MODTAB_RBX_SAVED 2u
#define MODTAB_LINK_SAVED 2u /* with a link register, instead of MODTAB_RBX_SAVED */
#define MODTAB_RBP_LOST 4u   /* rbp cannot be restored */
#define MODTAB_RBX_LOST 8u
#define MODTAB_RA_REG 16u   /* return address is in DWARF register extra (leaf frame only) */
#define MODTAB_RBP_EXPR 32u /* saved at *(rbp + rbp_offset) (realigned stacks: DW_CFA_expression breg6) */
#define MODTAB_RBX_EXPR 64u /* rbx saved at *(rbp + rbx_offset) */
#define MODTAB_RBP_REG 128u /* rbp is in DWARF register rbp_offset (leaf frame only) */

enum modtab_sym_kind {
    MODTAB_SYM_OBJECT = 0, /* STT_OBJECT or STT_COMMON */
    MODTAB_SYM_REGION = 1, /* part of a section that no symbol covers: name is "libfoo.so.1 .bss" */
    MODTAB_SYM_TLS = 2     /* STT_TLS: vaddr is the offset in the module's TLS segment */
};

struct modtab_sym {
    uint64_t vaddr;
    uint64_t size_bytes;
    uint32_t name; /* offset into the strings */
    uint32_t kind; /* enum modtab_sym_kind */
};

struct modtab_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint64_t id;         /* first 8 bytes of the build id (big-endian), or a hash of path, size and mtime; never 0 */
    uint64_t base_vaddr; /* page-aligned vaddr of the first PT_LOAD */
    uint64_t end_vaddr;  /* end of the last PT_LOAD */
    uint64_t tls_vaddr, tls_bytes, tls_align; /* PT_TLS, 0 when there is none */
    uint64_t funcs_offset, n_funcs;
    uint64_t rows_offset, n_rows;
    uint64_t syms_offset, n_syms;         /* sorted by vaddr, not overlapping (aliases: global, longest, name) */
    uint64_t tls_syms_offset, n_tls_syms; /* sorted by offset */
    uint64_t strings_offset, strings_bytes;
    uint32_t machine;    /* e_machine */
    uint32_t is_fixed;   /* 1: ET_EXEC, not relocatable */
    uint32_t has_symtab; /* 1: .symtab was there, 0: only .dynsym */
    uint32_t build_id_bytes;
    uint8_t build_id[32];
    char path[1024]; /* of the file it was made from */
};

/* Id of a module with the build id [n] (the descriptor of its NT_GNU_BUILD_ID note): the first 8 bytes, big-endian;
 * of a shorter one a hash. Never 0.  ctx: any */
static inline uint64_t modtab_id_of_build_id(const uint8_t *build_id, uint64_t n)
{
    uint64_t id = 0;
    if (n < 8)
        id = bytes_hash(BYTES_HASH_START, build_id, n);
    else
        for (int i = 0; i < 8; i++)
            id = id << 8 | build_id[i];
    return id ? id : 1;
}

/* Id of a module without build id: a hash of the file's inode, its size and its time of modification (st_mtim in ns);
 * its path is not reliable. Never 0.  ctx: any */
static inline uint64_t modtab_id_of_file(uint64_t inode, uint64_t size_bytes, uint64_t mtime_ns)
{
    uint64_t id = bytes_hash(BYTES_HASH_START, &inode, sizeof inode);
    id = bytes_hash(id, &size_bytes, sizeof size_bytes);
    id = bytes_hash(id, &mtime_ns, sizeof mtime_ns);
    return id ? id : 1;
}

/* The arrays and strings of a mapped table, borrowed from it.  ctx: any */
static inline const struct modtab_func *modtab_funcs(const struct modtab_header *t)
{
    return (const struct modtab_func *)((const char *)t + t->funcs_offset);
}
static inline const struct modtab_row *modtab_rows(const struct modtab_header *t)
{
    return (const struct modtab_row *)((const char *)t + t->rows_offset);
}
static inline const struct modtab_sym *modtab_syms(const struct modtab_header *t)
{
    return (const struct modtab_sym *)((const char *)t + t->syms_offset);
}
static inline const struct modtab_sym *modtab_tls_syms(const struct modtab_header *t)
{
    return (const struct modtab_sym *)((const char *)t + t->tls_syms_offset);
}
static inline const char *modtab_string(const struct modtab_header *t, uint32_t offset)
{
    return (const char *)t + t->strings_offset + offset;
}

/* Checks the header, the bounds of all parts and the symbols of a table of n_bytes before it is used; NULL when it is
 * good, else what is wrong ("it ..."). A good table can be searched safely whatever its rows say.  ctx: any */
const char *modtab_check_sig(const struct modtab_header *t, uint64_t n_bytes);

/* Checks the order and kinds of rows and functions of a table that modtab_check_sig has passed (reads all of it);
 * NULL when good.  ctx: any */
const char *modtab_check_code_sig(const struct modtab_header *t);

/* Row that covers vaddr, NULL when it lies before the first one or outside the module.  ctx: any */
static inline const struct modtab_row *modtab_find_row(const struct modtab_header *t, uint64_t vaddr)
{
    const struct modtab_row *rows = modtab_rows(t);
    if (vaddr < t->base_vaddr || vaddr >= t->end_vaddr || vaddr - t->base_vaddr > UINT32_MAX)
        return NULL;
    uint32_t pc = (uint32_t)(vaddr - t->base_vaddr);
    size_t low = search_upto(rows, t->n_rows, SEARCH_KEY(struct modtab_row, pc), pc);
    return low ? &rows[low - 1] : NULL;
}

/* Index of the function that contains vaddr, -1 when there is none.  ctx: any */
static inline int64_t modtab_find_func(const struct modtab_header *t, uint64_t vaddr)
{
    const struct modtab_func *funcs = modtab_funcs(t);
    if (vaddr < t->base_vaddr || vaddr >= t->end_vaddr || vaddr - t->base_vaddr > UINT32_MAX)
        return -1;
    uint32_t pc = (uint32_t)(vaddr - t->base_vaddr);
    size_t low = search_upto(funcs, t->n_funcs, SEARCH_KEY(struct modtab_func, start), pc);
    return low && pc < funcs[low - 1].end ? (int64_t)low - 1 : -1;
}

/* Index in syms [n] (sorted, not overlapping) of the one that contains address, -1 when there is none.  ctx: any */
static inline int64_t modtab_find_sym(const struct modtab_sym *syms, uint64_t n, uint64_t address)
{
    size_t low = search_upto(syms, n, SEARCH_KEY(struct modtab_sym, vaddr), address);
    return low && address - syms[low - 1].vaddr < syms[low - 1].size_bytes ? (int64_t)low - 1 : -1;
}

#endif
