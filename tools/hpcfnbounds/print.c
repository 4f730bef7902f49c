/* SPDX-License-Identifier: BSD-3-Clause */
/* The listings of hpcfnbounds. Functions come with their names, which the tables do not hold. */
#include "print.h"

#include <inttypes.h>
#include <stdlib.h>

static int out_of_memory(const struct modtab_elf *m, struct error *err)
{
    return error_set(err, ERR_MEMORY, "%s: out of memory.", m->path);
}

static bool find_functions(const struct modtab_elf *m, bool discover, struct modtab_vec *funcs)
{
    struct modtab_vec fdes = {0};
    modtab_make_fdes(m, &fdes);
    modtab_make_funcs(m, &fdes, discover, funcs);
    bool good = !fdes.failed && !funcs->failed;
    free(fdes.items);
    return good;
}

/* A name that can stand in a comment and on a line. */
static void put_name(const char *name, FILE *out)
{
    for (const char *c = name ? name : "(no symbol)"; *c; c++)
        if (*c != '\n' && !(c[0] == '*' && c[1] == '/'))
            putc(*c, out);
}

static bool is_relocatable(const struct modtab_elf *m)
{
    return !m->header.is_fixed;
}

int print_functions(const struct modtab_elf *m, bool discover, FILE *out, struct error *err)
{
    struct modtab_vec funcs = {0};
    bool good = find_functions(m, discover, &funcs);
    const struct modtab_range *f = funcs.items;
    for (size_t i = 0; good && i < funcs.n; i++) {
        fprintf(out, "0x%" PRIx64 "    ", f[i].start);
        put_name(f[i].name, out);
        putc('\n', out);
    }
    if (good)
        fprintf(out, "num symbols = %zu, reference offset = 0x%" PRIx64 ", relocatable = %d\n", funcs.n,
                is_relocatable(m) ? m->header.base_vaddr : 0, is_relocatable(m));
    free(funcs.items);
    return good ? 0 : out_of_memory(m, err);
}

int print_functions_c(const struct modtab_elf *m, bool discover, FILE *out, struct error *err)
{
    struct modtab_vec funcs = {0};
    bool good = find_functions(m, discover, &funcs);
    const struct modtab_range *f = funcs.items;
    if (good)
        fprintf(out, "unsigned long hpcrun_nm_addrs[] = {\n");
    for (size_t i = 0; good && i < funcs.n; i++) {
        fprintf(out, "  0x%" PRIx64 ", /* ", f[i].start);
        put_name(f[i].name, out);
        fprintf(out, " */\n");
    }
    if (good)
        fprintf(out,
                "  0x%" PRIx64 " /* end */\n};\nunsigned long hpcrun_nm_addrs_len = %zu;\n"
                "unsigned long hpcrun_reference_offset = 0x%" PRIx64 ";\nint hpcrun_is_relocatable = %d;\n",
                funcs.n ? f[funcs.n - 1].end : 0, funcs.n + 1, is_relocatable(m) ? m->header.base_vaddr : 0,
                is_relocatable(m));
    free(funcs.items);
    return good ? 0 : out_of_memory(m, err);
}

static void put_variables(const struct modtab_vec *syms, const struct buf *strings, uint64_t bytes_min, FILE *out)
{
    const struct modtab_sym *s = syms->items;
    for (size_t i = 0; i < syms->n; i++) {
        const char *mark = s[i].kind == MODTAB_SYM_TLS ? " (thread-local)" : "";
        if (s[i].size_bytes < bytes_min)
            continue;
        fprintf(out, "0x%" PRIx64 "    ", s[i].vaddr);
        put_name(strings->data + s[i].name, out);
        fprintf(out, "%s\n%" PRIu64 "  ", mark, s[i].size_bytes);
        put_name(strings->data + s[i].name, out);
        fprintf(out, "%s\n", mark);
    }
}

int print_variables(const struct modtab_elf *m, uint64_t bytes_min, FILE *out, struct error *err)
{
    struct modtab_vec syms = {0}, tls_syms = {0};
    struct buf strings = {0};
    uint32_t has_symtab;
    modtab_make_syms(m, &syms, &tls_syms, &strings, &has_symtab);
    bool good = !syms.failed && !tls_syms.failed && !strings.failed;
    if (good) {
        put_variables(&syms, &strings, bytes_min, out);
        put_variables(&tls_syms, &strings, bytes_min, out);
    }
    free(syms.items);
    free(tls_syms.items);
    buf_fini(&strings);
    return good ? 0 : out_of_memory(m, err);
}

int print_variables_c(const struct modtab_elf *m, uint64_t bytes_min, bool is_empty, FILE *out, struct error *err)
{
    struct modtab_vec syms = {0}, tls_syms = {0};
    struct buf strings = {0};
    uint32_t has_symtab;
    size_t n = 0;
    if (!is_empty)
        modtab_make_syms(m, &syms, &tls_syms, &strings, &has_symtab);
    bool good = !syms.failed && !tls_syms.failed && !strings.failed;
    const struct modtab_sym *s = syms.items;
    if (good)
        fprintf(out, "unsigned long hpcrun_data_addrs[] = {\n");
    for (size_t i = 0; good && i < syms.n; i++) {
        if (s[i].size_bytes < bytes_min)
            continue;
        fprintf(out, "  0x%" PRIx64 ", %" PRIu64 ", /* ", s[i].vaddr, s[i].size_bytes);
        put_name(strings.data + s[i].name, out);
        fprintf(out, " */\n");
        n++;
    }
    if (good)
        fprintf(out, "  0, 0 /* end */\n};\nunsigned long hpcrun_data_addrs_len = %zu;\n", n);
    free(syms.items);
    free(tls_syms.items);
    buf_fini(&strings);
    return good ? 0 : out_of_memory(m, err);
}

static void put_cfa(const struct modtab_row *row, FILE *out)
{
    static const char *const registers[16] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                              "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    switch (row->kind) {
    case MODTAB_GAP:
        fprintf(out, "no rule");
        break;
    case MODTAB_CFA_DEREF:
        fprintf(out, "cfa=*(%s%+d)%+d", registers[row->reg & 15], row->cfa_offset, row->extra);
        break;
    case MODTAB_CFA_PLT:
        fprintf(out, "cfa=rsp+8+((rip&15)>=%d)*8", row->cfa_offset);
        break;
    case MODTAB_SIGNAL:
        fprintf(out, "signal frame");
        break;
    case MODTAB_END:
        fprintf(out, "outermost");
        break;
    case MODTAB_BAD:
        fprintf(out, "not representable");
        break;
    default:
        fprintf(out, "cfa=%s%+d", registers[row->reg & 15], row->cfa_offset);
    }
    if (row->flags & MODTAB_RA_REG)
        fprintf(out, " ra=%s", registers[row->extra & 15]);
}

static void put_saved(const char *name, int offset, const char *base, FILE *out)
{
    if (base)
        fprintf(out, " %s=*(%s%+d)", name, base, offset);
    else
        fprintf(out, " %s lost", name);
}

static void put_row(const struct modtab_row *row, uint64_t base, FILE *out)
{
    fprintf(out, "0x%" PRIx64 "    ", base + row->pc);
    put_cfa(row, out);
    if (row->flags & (MODTAB_RBP_SAVED | MODTAB_RBP_EXPR | MODTAB_RBP_LOST))
        put_saved("rbp", row->rbp_offset,
                  row->flags & MODTAB_RBP_SAVED  ? "cfa"
                  : row->flags & MODTAB_RBP_EXPR ? "rbp"
                                                 : NULL,
                  out);
    if (row->flags & MODTAB_RBP_REG)
        fprintf(out, " rbp in register %d", row->rbp_offset);
    if (row->flags & (MODTAB_RBX_SAVED | MODTAB_RBX_EXPR | MODTAB_RBX_LOST))
        put_saved("rbx", row->rbx_offset,
                  row->flags & MODTAB_RBX_SAVED  ? "cfa"
                  : row->flags & MODTAB_RBX_EXPR ? "rbp"
                                                 : NULL,
                  out);
    putc('\n', out);
}

/* A row of a machine with a link register: see struct modtab_row. */
static void put_link_row(const struct modtab_row *row, const struct modtab_header *h, FILE *out)
{
    bool is_arm = h->machine == EM_AARCH64;
    const char *fp = is_arm ? "x29" : "r31";
    fprintf(out, "0x%" PRIx64 "    ", h->base_vaddr + row->pc);
    if (row->kind != MODTAB_CFA_RSP && row->kind != MODTAB_CFA_RBP && row->kind != MODTAB_CFA_REG) {
        put_cfa(row, out);
    } else {
        if (row->kind == MODTAB_CFA_RSP)
            fprintf(out, "cfa=%s%+d", is_arm ? "sp" : "r1", row->cfa_offset);
        else
            fprintf(out, "cfa=%c%u%+d", is_arm ? 'x' : 'r', row->reg, row->cfa_offset);
        if (row->flags & MODTAB_LINK_SAVED)
            put_saved("ra", row->rbx_offset * 8, "cfa", out);
        else if (row->flags & MODTAB_RA_REG)
            fprintf(out, " ra=%c%d", is_arm ? 'x' : 'r', row->extra);
        else
            fprintf(out, " ra=%s", is_arm ? "x30" : "lr");
        if (row->flags & (MODTAB_RBP_SAVED | MODTAB_RBP_LOST))
            put_saved(fp, row->rbp_offset * 8, row->flags & MODTAB_RBP_SAVED ? "cfa" : NULL, out);
    }
    putc('\n', out);
}

int print_rows(const struct modtab_elf *m, FILE *out, struct error *err)
{
    struct modtab_vec fdes = {0}, funcs = {0}, rows = {0};
    modtab_make_fdes(m, &fdes);
    modtab_make_funcs(m, &fdes, true, &funcs);
    modtab_make_rows(m, &fdes, &funcs, &rows);
    bool good = !fdes.failed && !funcs.failed && !rows.failed;
    for (size_t i = 0; good && i < rows.n; i++) {
        const struct modtab_row *row = (struct modtab_row *)rows.items + i;
        if (m->header.machine == EM_X86_64)
            put_row(row, m->header.base_vaddr, out);
        else
            put_link_row(row, &m->header, out);
    }
    free(fdes.items);
    free(funcs.items);
    free(rows.items);
    return good ? 0 : out_of_memory(m, err);
}
