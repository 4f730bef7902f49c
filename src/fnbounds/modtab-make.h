/* SPDX-License-Identifier: BSD-3-Clause */
/* How a module table is made, step by step: the ELF file, its functions, unwind rows and data symbols, the file. Inside
 * of fnbounds only (and hpcfnbounds, which prints the steps). Ordinary code in one of our processes, never in the
 * profiled program; the input is not trusted: every value from it is checked before use. */
#ifndef LOCUS_FNBOUNDS_MODTAB_MAKE_H
#define LOCUS_FNBOUNDS_MODTAB_MAKE_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "fnbounds/modtab.h"

#define MODTAB_SEGMENTS_MAX 32

/* A growing array, items of one type; all zero is empty. */
struct modtab_vec {
    void *items;
    size_t n, capacity;
    bool failed; /* an append ran out of memory */
};

/* Appends a copy of one item of item_bytes; sets failed when out of memory. */
void modtab_vec_push(struct modtab_vec *vec, const void *item, size_t item_bytes);

/* A loaded segment. */
struct modtab_segment {
    uint64_t start, end; /* vaddr, memory size */
    uint64_t file_offset, file_bytes;
    bool is_text;
};

/* One open ELF file. */
struct modtab_elf {
    Elf *elf;
    struct Dwfl *dwfl; /* holds debug_elf, may be NULL */
    Elf *debug_elf;    /* symbols of a stripped file that are kept apart, NULL when there are none */
    int fd;            /* -1: image */
    char *image;       /* copy of the vdso, NULL for files */
    size_t image_bytes;
    char path[1024]; /* canonical */
    GElf_Ehdr ehdr;
    struct modtab_segment segments[MODTAB_SEGMENTS_MAX];
    size_t n_segments;
    struct modtab_segment code[MODTAB_SEGMENTS_MAX]; /* sections of code; without section headers the segments */
    size_t n_code;
    uint64_t eh_frame_hdr_vaddr; /* PT_GNU_EH_FRAME, 0 when there is none */
    struct modtab_header header; /* id, addresses, TLS, machine, build id, path filled by modtab_elf_open */
    char name[256];              /* soname, else the last part of the path */
};

/* Opens the ELF file at path (or MODTAB_VDSO) and reads its headers. On failure there is nothing to close.
 * err: ERR_IO, ERR_FORMAT (not an executable or shared object), ERR_MEMORY */
int modtab_elf_open(struct modtab_elf *m, const char *path, struct error *err);
void modtab_elf_close(struct modtab_elf *m);

/* The section called name, NULL when there is none; *shdr is filled. */
Elf_Scn *modtab_elf_section(const struct modtab_elf *m, const char *name, GElf_Shdr *shdr);

/* Name of a section, "" when it has none. */
const char *modtab_elf_section_name(const struct modtab_elf *m, const GElf_Shdr *shdr);

/* The segment of code that holds vaddr, NULL when none does. */
const struct modtab_segment *modtab_elf_text(const struct modtab_elf *m, uint64_t vaddr);

/* The section of code that holds vaddr (without section headers the segment), NULL when none does. */
const struct modtab_segment *modtab_elf_code(const struct modtab_elf *m, uint64_t vaddr);

/* Reads up to n bytes of file contents at vaddr; returns how many were read. */
size_t modtab_elf_read(const struct modtab_elf *m, uint64_t vaddr, void *bytes, size_t n);

/* For a file without .symtab: finds its symbols in the debug file of its build id or in its .gnu_debugdata and keeps
 * them in m->debug_elf, for modtab_symtab_open; without such symbols nothing happens. Takes a few ms. */
void modtab_debug_open(struct modtab_elf *m);

/* Whether a debug file for the build id of m is installed below /usr/lib/debug. */
bool modtab_debug_exists(const struct modtab_elf *m);

/* One symbol table of a file. */
struct modtab_symtab {
    Elf *elf;
    Elf_Data *data;
    size_t n;       /* symbols */
    size_t strings; /* section index of its strings */
};

/* Opens the table of type SHT_SYMTAB (of the file, else of m->debug_elf) or SHT_DYNSYM; false when there is none. */
bool modtab_symtab_open(struct modtab_symtab *t, const struct modtab_elf *m, uint32_t type);

/* Whether a table also names data: .gnu_debugdata does not. */
bool modtab_symtab_has_data(const struct modtab_symtab *t);

/* Symbol i; false when it is not defined in this file or malformed. *name is never NULL then, without version
 * suffix handling, valid while the file is open. */
bool modtab_symtab_get(const struct modtab_symtab *t, size_t i, GElf_Sym *sym, const char **name);

/* A range of code as found: [start, end) vaddr; end == start: size unknown. name: borrowed from the file, NULL for
 * code without symbol. */
struct modtab_range {
    uint64_t start, end;
    const char *name;
    bool is_global;
};

/* A frame description entry. */
struct modtab_fde {
    struct modtab_range range;
    const uint8_t *program, *program_end; /* from its augmentation data on; valid while the file is open */
    uint64_t cie_offset;                  /* in the section */
};

/* All frame description entries (struct modtab_fde), sorted by start; those outside of code are left out. */
void modtab_make_fdes(const struct modtab_elf *m, struct modtab_vec *fdes);

#define MODTAB_FRAME_ROWS_MAX 256 /* of one entry; those with more are left to libdw */

struct modtab_frame_row {
    uint64_t start; /* vaddr; it holds up to the next one, or the entry's end */
    struct modtab_row row;
};

struct modtab_frames; /* reads entries of one file, opaque */

/* Opens the reader; NULL where rows come from libdw alone (no x86-64 code, no section), and when out of memory, which
 * sets *is_failed. */
struct modtab_frames *modtab_frames_open(const struct modtab_elf *m, bool *is_failed);
void modtab_frames_close(struct modtab_frames *frames);

/* The rows of an entry; returns their number, 0 when the entry says something that compilers do not commonly write. */
unsigned modtab_frame_rows(struct modtab_frames *frames, const struct modtab_fde *fde,
                           struct modtab_frame_row rows[MODTAB_FRAME_ROWS_MAX]);

/* The functions (struct modtab_range), sorted, not overlapping. discover: add code that neither symbol nor unwind
 * information covers. */
void modtab_make_funcs(const struct modtab_elf *m, const struct modtab_vec *fdes, bool discover,
                       struct modtab_vec *funcs);

/* The unwind rows (struct modtab_row) of the FDEs (struct modtab_fde), and by the code itself of functions (struct
 * modtab_range) without any; none for a machine whose rows are not known. */
void modtab_make_rows(const struct modtab_elf *m, const struct modtab_vec *fdes, const struct modtab_vec *funcs,
                      struct modtab_vec *rows);

/* The data symbols and regions, and the TLS symbols (struct modtab_sym), names into *strings. *has_symtab: whether
 * .symtab was there. */
void modtab_make_syms(const struct modtab_elf *m, struct modtab_vec *syms, struct modtab_vec *tls_syms,
                      struct buf *strings, uint32_t *has_symtab);

/* Makes the whole table in memory: *table [n_bytes], malloc'ed, owned by the caller.
 * err: ERR_MEMORY */
int modtab_make_table(const struct modtab_elf *m, char **table, size_t *n_bytes, struct error *err);

/* --- rules --- */

/* One register's rule in a row of call frame information, in the few forms that unwind rows can say; and the rows of
 * machines with a link register. Inside of fnbounds. */

enum modtab_rule_kind {
    MODTAB_RULE_SAME,
    MODTAB_RULE_LOST,
    MODTAB_RULE_CFA,     /* saved at CFA + value */
    MODTAB_RULE_IN_REG,  /* in register value */
    MODTAB_RULE_RBP_EXPR /* saved at *(rbp + value) */
};

struct modtab_rule {
    enum modtab_rule_kind kind;
    int64_t value;
};

/* DWARF columns of the return address. */
enum { MODTAB_LINK_AARCH64 = 30, MODTAB_LINK_PPC64 = 65 };

/* --- heights from code --- */

/* Where the caller's frame is, worked out from x86-64 code itself: how each instruction moves the stack pointer and
 * copies of it, and where it puts the caller's rbp and rbx. For assembly without unwind information. Ordinary code. */

#define HEIGHT_UNKNOWN INT32_MIN

/* Before an instruction. Heights are CFA - register, HEIGHT_UNKNOWN when the register holds something else; slots are
 * address - CFA of the caller's value, 0: still in the register, HEIGHT_UNKNOWN: lost. */
struct height {
    int32_t rsp, rbp, rbx;
    int32_t other;      /* height of one more register */
    uint32_t other_reg; /* x86 number */
    int32_t rbp_slot, rbx_slot;
};

/* Where control goes after an instruction. */
struct height_flow {
    uint32_t n_bytes; /* length; 0: not an instruction */
    bool falls_through;
    bool has_target;
    bool is_table_jump; /* an indirect jump: its targets are somewhere in the function */
    int64_t target;     /* relative to the instruction's start */
};

/* Where control and frame are at the entry of a function. */
struct height height_at_entry(void);

/* Applies the instruction at code [n] to *h.  ctx: ordinary code */
struct height_flow height_step(const uint8_t *code, size_t n, struct height *h);

/* Keeps in *h what *other agrees with; true when that changed *h. */
bool height_meet(struct height *h, const struct height *other);

/* The unwind row of a height (without pc); MODTAB_BAD when the CFA is not known. */
struct modtab_row height_row(const struct height *h);

#endif
