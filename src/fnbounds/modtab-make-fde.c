/* SPDX-License-Identifier: BSD-3-Clause */
/* Enumerates the frame description entries of .eh_frame: which ranges of code have unwind information. libdw looks up
 * one address; the list is ours. Encodings: LSB core specification, "DWARF Exception Header Encoding".
 * Ordinary code, untrusted input. */
#include "fnbounds/modtab-make.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

/* The .eh_frame section or the part of a segment that stands for it. */
struct eh_frame {
    const struct modtab_elf *m;
    Elf_Data *data;
    uint64_t vaddr;
};

/* A position in the section's bytes. */
struct cursor {
    const uint8_t *at, *end;
};

static bool get_fixed(struct cursor *c, void *value, size_t n)
{
    if ((size_t)(c->end - c->at) < n)
        return false;
    memcpy(value, c->at, n);
    c->at += n;
    return true;
}

static bool get_leb(struct cursor *c, bool is_signed, uint64_t *value)
{
    unsigned shift = 0;
    *value = 0;
    while (c->at < c->end && shift < 64) {
        uint8_t byte = *c->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if (is_signed && shift < 64 && byte & 0x40)
            *value |= ~(uint64_t)0 << shift;
        return true;
    }
    return false;
}

/* Reads a value in the format of the low 4 bits of a DW_EH_PE encoding. */
static bool get_encoded(struct cursor *c, unsigned format, bool is_64, uint64_t *value)
{
    int16_t s2 = 0;
    int32_t s4 = 0;
    uint16_t u2 = 0;
    uint32_t u4 = 0;
    bool ok;
    switch (format == DW_EH_PE_absptr ? (is_64 ? DW_EH_PE_udata8 : DW_EH_PE_udata4) : format) {
    case DW_EH_PE_uleb128:
        return get_leb(c, false, value);
    case DW_EH_PE_sleb128:
        return get_leb(c, true, value);
    case DW_EH_PE_udata2:
        ok = get_fixed(c, &u2, 2);
        *value = u2;
        return ok;
    case DW_EH_PE_udata4:
        ok = get_fixed(c, &u4, 4);
        *value = u4;
        return ok;
    case DW_EH_PE_sdata2:
        ok = get_fixed(c, &s2, 2);
        *value = (uint64_t)(int64_t)s2;
        return ok;
    case DW_EH_PE_sdata4:
        ok = get_fixed(c, &s4, 4);
        *value = (uint64_t)(int64_t)s4;
        return ok;
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return get_fixed(c, value, 8);
    default:
        return false;
    }
}

/* Encoding of the addresses in the FDEs of a CIE ('R' of its augmentation), -1 when it is not understood. */
static int cie_encoding(const Dwarf_CIE *cie, bool is_64)
{
    const uint8_t *data = cie->augmentation_data;
    struct cursor c = {data, data ? data + cie->augmentation_data_size : data};
    uint64_t ignored;
    uint8_t encoding = 0;
    if (!cie->augmentation || !*cie->augmentation)
        return DW_EH_PE_absptr;
    if (*cie->augmentation != 'z' || !data)
        return -1;
    for (const char *letter = cie->augmentation + 1; *letter; letter++) {
        if (*letter == 'S' || *letter == 'B' || *letter == 'G')
            continue;
        if (!get_fixed(&c, &encoding, 1))
            return -1;
        if (*letter == 'R')
            return encoding;
        if (*letter == 'P' && !get_encoded(&c, encoding & 0x0f, is_64, &ignored))
            return -1;
        if (*letter != 'P' && *letter != 'L')
            return -1;
    }
    return DW_EH_PE_absptr;
}

static int encoding_at(const struct eh_frame *eh, Dwarf_Off cie_offset)
{
    const unsigned char *ident = eh->m->ehdr.e_ident;
    Dwarf_Off next;
    Dwarf_CFI_Entry entry;
    if (dwarf_next_cfi(ident, eh->data, true, cie_offset, &next, &entry) != 0 || !dwarf_cfi_cie_p(&entry))
        return -1;
    return cie_encoding(&entry.cie, ident[EI_CLASS] == ELFCLASS64);
}

static void add_fde(const struct eh_frame *eh, const Dwarf_FDE *fde, int encoding, struct modtab_vec *fdes)
{
    bool is_64 = eh->m->ehdr.e_ident[EI_CLASS] == ELFCLASS64;
    struct cursor c = {fde->start, fde->end};
    uint64_t start, n_bytes, offset = (uint64_t)(fde->start - (const uint8_t *)eh->data->d_buf);
    unsigned base = encoding & 0x70;
    if (encoding < 0 || (base != DW_EH_PE_absptr && base != DW_EH_PE_pcrel) ||
        !get_encoded(&c, encoding & 0x0f, is_64, &start) || !get_encoded(&c, encoding & 0x07, is_64, &n_bytes))
        return;
    if (base == DW_EH_PE_pcrel)
        start += eh->vaddr + offset;
    if (!is_64)
        start = (uint32_t)start;
    const struct modtab_segment *text = modtab_elf_text(eh->m, start);
    if (!text || n_bytes == 0)
        return;
    struct modtab_range range = {.start = start, .end = n_bytes < text->end - start ? start + n_bytes : text->end};
    modtab_vec_push(fdes, &range, sizeof range);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct modtab_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Without section headers: .eh_frame_hdr says where the frames start; they end with a zero word or the segment. */
static bool find_by_segment(struct eh_frame *eh)
{
    const struct modtab_elf *m = eh->m;
    uint8_t hdr[12];
    struct cursor c = {hdr + 4, hdr + sizeof hdr};
    uint64_t vaddr;
    if (!m->eh_frame_hdr_vaddr || modtab_elf_read(m, m->eh_frame_hdr_vaddr, hdr, sizeof hdr) != sizeof hdr ||
        hdr[0] != 1 || (hdr[1] & 0x70) != DW_EH_PE_pcrel ||
        !get_encoded(&c, hdr[1] & 0x0f, m->ehdr.e_ident[EI_CLASS] == ELFCLASS64, &vaddr))
        return false;
    vaddr += m->eh_frame_hdr_vaddr + 4;
    for (size_t i = 0; i < m->n_segments; i++) {
        const struct modtab_segment *s = &m->segments[i];
        if (vaddr < s->start || vaddr - s->start >= s->file_bytes)
            continue;
        uint64_t skip = vaddr - s->start;
        eh->data = elf_getdata_rawchunk(m->elf, (int64_t)(s->file_offset + skip), s->file_bytes - skip, ELF_T_BYTE);
        eh->vaddr = vaddr;
        return eh->data != NULL;
    }
    return false;
}

static bool find_eh_frame(struct eh_frame *eh)
{
    GElf_Shdr shdr;
    Elf_Scn *scn = modtab_elf_section(eh->m, ".eh_frame", &shdr);
    if (!scn)
        return find_by_segment(eh);
    eh->data = shdr.sh_type != SHT_NOBITS ? elf_rawdata(scn, NULL) : NULL;
    eh->vaddr = shdr.sh_addr;
    return eh->data && eh->data->d_buf;
}

void modtab_make_fdes(const struct modtab_elf *m, struct modtab_vec *fdes)
{
    struct eh_frame eh = {.m = m};
    Dwarf_Off at = 0, next = 0, cie_known = (Dwarf_Off)-1;
    Dwarf_CFI_Entry entry;
    int encoding = -1, status;
    unsigned char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    if (m->ehdr.e_ident[EI_DATA] != native || !find_eh_frame(&eh))
        return;
    while ((status = dwarf_next_cfi(m->ehdr.e_ident, eh.data, true, at, &next, &entry)) != 1) {
        if (next <= at)
            break;
        at = next;
        if (status != 0 || dwarf_cfi_cie_p(&entry))
            continue;
        if (entry.fde.CIE_pointer != cie_known)
            encoding = encoding_at(&eh, cie_known = entry.fde.CIE_pointer);
        add_fde(&eh, &entry.fde, encoding, fdes);
    }
    if (fdes->n)
        qsort(fdes->items, fdes->n, sizeof(struct modtab_range), compare_ranges);
}
