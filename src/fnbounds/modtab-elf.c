/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols of a stripped file that are kept apart: in the debug file of its build id, or compressed in the section
 * .gnu_debugdata (functions only, as some distributions ship all their libraries). libdwfl finds and unpacks both.
 * Ordinary code; nothing is asked of a network. */
#include "fnbounds/modtab-make.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input.h"
#include "base/path.h"

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo, /* the standard one would also ask servers */
    .section_address = dwfl_offline_section_address,
};

/* The first file other than the module's own that a symbol of the module comes from. */
static Elf *find_other(Dwfl_Module *module)
{
    GElf_Addr bias;
    Elf *own = dwfl_module_getelf(module, &bias);
    int n = own ? dwfl_module_getsymtab(module) : 0;
    for (int i = 1; i < n; i++) {
        GElf_Sym sym;
        GElf_Addr address;
        Elf *elf = NULL;
        if (dwfl_module_getsym_info(module, i, &sym, &address, NULL, &elf, NULL) && elf && elf != own)
            return elf;
    }
    return NULL;
}

bool modtab_debug_exists(const struct modtab_elf *m)
{
    char path[128];
    int n = snprintf(path, sizeof path, "/usr/lib/debug/.build-id/");
    for (uint32_t i = 0; i < m->header.build_id_bytes; i++)
        n += snprintf(path + n, sizeof path - (size_t)n, "%02x%s", m->header.build_id[i], i == 0 ? "/" : "");
    (void)snprintf(path + n, sizeof path - (size_t)n, ".debug");
    return m->header.build_id_bytes > 0 && access(path, R_OK) == 0;
}

void modtab_debug_open(struct modtab_elf *m)
{
    struct modtab_symtab symtab;
    if (m->fd < 0 || m->dwfl || modtab_symtab_open(&symtab, m, SHT_SYMTAB))
        return;
    m->dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = m->dwfl ? dwfl_report_elf(m->dwfl, m->name, m->path, -1, 0, true) : NULL;
    if (m->dwfl)
        (void)dwfl_report_end(m->dwfl, NULL, NULL);
    if (module)
        m->debug_elf = find_other(module);
}

static void modtab_debug_close(struct modtab_elf *m)
{
    if (m->dwfl)
        dwfl_end(m->dwfl);
    m->dwfl = NULL;
    m->debug_elf = NULL;
}

/* --- the ELF file --- */

/* Opens an ELF file for the table maker: headers, segments, identity. Ordinary code. Sections are read on demand (no
 * mapping of the file: a file that shrinks meanwhile must not kill the maker). */

void modtab_vec_push(struct modtab_vec *vec, const void *item, size_t item_bytes)
{
    if (vec->failed || !vec_reserve(&vec->items, &vec->capacity, vec->n + 1, item_bytes)) {
        vec->failed = true;
        return;
    }
    memcpy((char *)vec->items + vec->n++ * item_bytes, item, item_bytes);
}

/* Bytes of the vdso image that the headers say are there. */
static size_t vdso_bytes(const ElfW(Ehdr) * ehdr)
{
    const ElfW(Phdr) *phdr = (const ElfW(Phdr) *)((const char *)ehdr + ehdr->e_phoff);
    size_t n_bytes = ehdr->e_shoff + (size_t)ehdr->e_shnum * ehdr->e_shentsize;
    for (int i = 0; i < ehdr->e_phnum; i++)
        if (phdr[i].p_offset + phdr[i].p_filesz > n_bytes)
            n_bytes = phdr[i].p_offset + phdr[i].p_filesz;
    return n_bytes;
}

static int open_vdso(struct modtab_elf *m, struct error *err)
{
    const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
    if (!ehdr)
        return error_set(err, ERR_NOT_FOUND, "This process has no vdso.");
    m->image_bytes = vdso_bytes(ehdr);
    m->image = malloc(m->image_bytes);
    if (!m->image)
        return error_set(err, ERR_MEMORY, "Out of memory for the vdso (%zu bytes).", m->image_bytes);
    memcpy(m->image, ehdr, m->image_bytes);
    m->elf = elf_memory(m->image, m->image_bytes);
    strcpy(m->path, MODTAB_VDSO);
    return 0;
}

static int open_file(struct modtab_elf *m, const char *path, struct error *err)
{
    char canonical[PATH_MAX];
    struct stat status;
    if (!realpath(path, canonical)) {
        /* links in /proc may lead to files that have no name any more */
        if (stat(path, &status) != 0)
            return error_set(err, ERR_IO, "%s: cannot be read: %s.", path, strerror(errno));
        (void)snprintf(canonical, sizeof canonical, "%s", path);
    }
    if (strlen(canonical) >= sizeof m->path)
        return error_set(err, ERR_RANGE, "%s: the path is longer than %zu bytes.", canonical, sizeof m->path - 1);
    strcpy(m->path, canonical);
    m->fd = input_open(AT_FDCWD, canonical, 0, NULL);
    if (m->fd < 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s.", canonical, input_reason(errno));
    m->elf = elf_begin(m->fd, ELF_C_READ, NULL);
    return 0;
}

static void read_segment(struct modtab_elf *m, const GElf_Phdr *phdr)
{
    struct modtab_header *h = &m->header;
    if (phdr->p_type == PT_TLS) {
        h->tls_vaddr = phdr->p_vaddr;
        h->tls_bytes = phdr->p_memsz;
        h->tls_align = phdr->p_align;
    }
    if (phdr->p_type == PT_GNU_EH_FRAME)
        m->eh_frame_hdr_vaddr = phdr->p_vaddr;
    uint64_t end;
    if (phdr->p_type != PT_LOAD || m->n_segments == MODTAB_SEGMENTS_MAX ||
        __builtin_add_overflow(phdr->p_vaddr, phdr->p_memsz, &end))
        return;
    m->segments[m->n_segments++] =
        (struct modtab_segment){phdr->p_vaddr, end, phdr->p_offset,
                                phdr->p_filesz < phdr->p_memsz ? phdr->p_filesz : phdr->p_memsz, phdr->p_flags & PF_X};
    uint64_t base = phdr->p_vaddr & ~(uint64_t)4095;
    if (m->n_segments == 1 || base < h->base_vaddr)
        h->base_vaddr = base;
    if (end > h->end_vaddr)
        h->end_vaddr = end;
}

static void read_build_id(struct modtab_elf *m, const GElf_Phdr *phdr)
{
    Elf_Data *data = elf_getdata_rawchunk(m->elf, (int64_t)phdr->p_offset, phdr->p_filesz,
                                          phdr->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    GElf_Nhdr note;
    size_t name, desc;
    for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0;) {
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || note.n_descsz == 0 ||
            memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
            continue;
        const uint8_t *build_id = (const uint8_t *)data->d_buf + desc;
        m->header.id = modtab_id_of_build_id(build_id, note.n_descsz);
        m->header.build_id_bytes =
            (uint32_t)(note.n_descsz < sizeof m->header.build_id ? note.n_descsz : sizeof m->header.build_id);
        memcpy(m->header.build_id, build_id, m->header.build_id_bytes);
        return;
    }
}

static int read_segments(struct modtab_elf *m, struct error *err)
{
    size_t n;
    GElf_Phdr phdr;
    if (elf_getphdrnum(m->elf, &n) != 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!gelf_getphdr(m->elf, (int)i, &phdr))
            continue;
        read_segment(m, &phdr);
        if (phdr.p_type == PT_NOTE && !m->header.id)
            read_build_id(m, &phdr);
    }
    if (!m->n_segments)
        return error_set(err, ERR_FORMAT, "%s: the ELF file has no segment that is loaded.", m->path);
    return 0;
}

static void add_code(struct modtab_elf *m, uint64_t start, uint64_t end)
{
    const struct modtab_segment *text = modtab_elf_text(m, start);
    if (text && end > start && m->n_code < MODTAB_SEGMENTS_MAX)
        m->code[m->n_code++] = (struct modtab_segment){.start = start, .end = end < text->end ? end : text->end};
}

static void read_code(struct modtab_elf *m)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;
    while ((scn = elf_nextscn(m->elf, scn)))
        if (gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR && shdr.sh_flags & SHF_ALLOC &&
            shdr.sh_type != SHT_NOBITS)
            add_code(m, shdr.sh_addr, shdr.sh_addr + shdr.sh_size);
    bool has_sections = m->n_code > 0;
    for (size_t i = 0; i < m->n_segments && !has_sections; i++)
        if (m->segments[i].is_text)
            add_code(m, m->segments[i].start, m->segments[i].end);
}

static void read_name(struct modtab_elf *m)
{
    const char *name = path_last(m->path);
    GElf_Shdr shdr;
    GElf_Dyn dyn;
    Elf_Scn *scn = modtab_elf_section(m, ".dynamic", &shdr);
    Elf_Data *data = scn && shdr.sh_type == SHT_DYNAMIC ? elf_getdata(scn, NULL) : NULL;
    for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
        const char *soname = dyn.d_tag == DT_SONAME ? elf_strptr(m->elf, shdr.sh_link, dyn.d_un.d_val) : NULL;
        if (soname && *soname)
            name = soname;
    }
    memcpy(m->name, name, strnlen(name, sizeof m->name - 1));
}

static int read_headers(struct modtab_elf *m, struct error *err)
{
    if (!m->elf || elf_kind(m->elf) != ELF_K_ELF || !gelf_getehdr(m->elf, &m->ehdr))
        return error_set(err, ERR_FORMAT, "%s: not an ELF file.", m->path);
    if (m->ehdr.e_type != ET_EXEC && m->ehdr.e_type != ET_DYN)
        return error_set(err, ERR_FORMAT, "%s: neither an executable nor a shared object (ELF type %u).", m->path,
                         (unsigned)m->ehdr.e_type);
    int status = read_segments(m, err);
    if (status != 0)
        return status;
    struct stat st;
    if (!m->header.id && m->fd >= 0 && fstat(m->fd, &st) == 0)
        m->header.id = modtab_id_of_file(st.st_ino, (uint64_t)st.st_size, clock_ns_of(&st.st_mtim));
    if (!m->header.id)
        m->header.id = modtab_id_of_file(0, m->image_bytes, 0);
    m->header.machine = m->ehdr.e_machine;
    m->header.is_fixed = m->ehdr.e_type == ET_EXEC;
    memcpy(m->header.path, m->path, sizeof m->header.path);
    read_code(m);
    read_name(m);
    return 0;
}

int modtab_elf_open(struct modtab_elf *m, const char *path, struct error *err)
{
    memset(m, 0, sizeof *m);
    m->fd = -1;
    elf_version(EV_CURRENT);
    int status = strcmp(path, MODTAB_VDSO) == 0 ? open_vdso(m, err) : open_file(m, path, err);
    if (status == 0)
        status = read_headers(m, err);
    if (status != 0)
        modtab_elf_close(m);
    return status;
}

void modtab_elf_close(struct modtab_elf *m)
{
    modtab_debug_close(m);
    elf_end(m->elf);
    if (m->fd >= 0)
        close(m->fd);
    free(m->image);
    m->elf = NULL;
    m->image = NULL;
    m->fd = -1;
}

const char *modtab_elf_section_name(const struct modtab_elf *m, const GElf_Shdr *shdr)
{
    size_t strings;
    const char *name = elf_getshdrstrndx(m->elf, &strings) == 0 ? elf_strptr(m->elf, strings, shdr->sh_name) : NULL;
    return name ? name : "";
}

Elf_Scn *modtab_elf_section(const struct modtab_elf *m, const char *name, GElf_Shdr *shdr)
{
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(m->elf, scn)))
        if (gelf_getshdr(scn, shdr) && strcmp(modtab_elf_section_name(m, shdr), name) == 0)
            return scn;
    return NULL;
}

const struct modtab_segment *modtab_elf_text(const struct modtab_elf *m, uint64_t vaddr)
{
    for (size_t i = 0; i < m->n_segments; i++)
        if (m->segments[i].is_text && vaddr >= m->segments[i].start && vaddr < m->segments[i].end)
            return &m->segments[i];
    return NULL;
}

const struct modtab_segment *modtab_elf_code(const struct modtab_elf *m, uint64_t vaddr)
{
    for (size_t i = 0; i < m->n_code; i++)
        if (vaddr >= m->code[i].start && vaddr < m->code[i].end)
            return &m->code[i];
    return NULL;
}

size_t modtab_elf_read(const struct modtab_elf *m, uint64_t vaddr, void *bytes, size_t n)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        const struct modtab_segment *s = &m->segments[i];
        if (vaddr < s->start || vaddr - s->start >= s->file_bytes)
            continue;
        uint64_t offset = s->file_offset + (vaddr - s->start);
        if (n > s->file_bytes - (vaddr - s->start))
            n = s->file_bytes - (vaddr - s->start);
        if (m->fd >= 0) {
            ssize_t n_read = pread(m->fd, bytes, n, (off_t)offset);
            return n_read < 0 ? 0 : (size_t)n_read;
        }
        if (offset >= m->image_bytes || n > m->image_bytes - offset)
            return 0;
        memcpy(bytes, m->image + offset, n);
        return n;
    }
    return 0;
}

static bool open_symtab(struct modtab_symtab *t, Elf *elf, uint32_t type)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;
    while ((scn = elf_nextscn(elf, scn)))
        if (gelf_getshdr(scn, &shdr) && shdr.sh_type == type)
            break;
    *t = (struct modtab_symtab){.elf = elf, .data = scn ? elf_getdata(scn, NULL) : NULL};
    size_t sym_bytes = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    if (!t->data || !t->data->d_buf || !sym_bytes)
        return false;
    t->n = t->data->d_size / sym_bytes;
    t->strings = shdr.sh_link;
    return t->n > 0;
}

bool modtab_symtab_open(struct modtab_symtab *t, const struct modtab_elf *m, uint32_t type)
{
    if (open_symtab(t, m->elf, type))
        return true;
    return type == SHT_SYMTAB && m->debug_elf && open_symtab(t, m->debug_elf, type);
}

bool modtab_symtab_has_data(const struct modtab_symtab *t)
{
    GElf_Sym sym;
    for (size_t i = 1; i < t->n; i++)
        if (gelf_getsym(t->data, (int)i, &sym) && GELF_ST_TYPE(sym.st_info) == STT_OBJECT)
            return true;
    return false;
}

bool modtab_symtab_get(const struct modtab_symtab *t, size_t i, GElf_Sym *sym, const char **name)
{
    if (!gelf_getsym(t->data, (int)i, sym) || sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
        sym->st_shndx == SHN_COMMON)
        return false;
    *name = elf_strptr(t->elf, t->strings, sym->st_name);
    return *name != NULL;
}

/* --- frame descriptions --- */

/* Which ranges of code have some, and the unwind rows of the common ones on x86-64, without libdw. Ordinary code,
 * untrusted input. */

/* --- their list --- */

/* Enumerates the frame description entries of .eh_frame: which ranges of code have unwind information. libdw can only
 * look up one address, so the list is made here. Encodings: LSB core specification, "DWARF Exception Header Encoding".
 * Ordinary code, untrusted input. */

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
    struct modtab_fde found = {.range.start = start,
                               .range.end = n_bytes < text->end - start ? start + n_bytes : text->end,
                               .program = c.at,
                               .program_end = c.end,
                               .cie_offset = fde->CIE_pointer};
    modtab_vec_push(fdes, &found, sizeof found);
}

static int compare_fdes(const void *a, const void *b)
{
    const struct modtab_range *x = &((const struct modtab_fde *)a)->range, *y = &((const struct modtab_fde *)b)->range;
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
        qsort(fdes->items, fdes->n, sizeof(struct modtab_fde), compare_fdes);
}

/* --- their rows --- */

/* Rows of frame description entries as compilers write them for x86-64: the CFA is a register and an offset, the return
 * address lies below it, rbp and rbx are unchanged or saved. libdw runs an entry's program from its start for every
 * row, and keeps entries in trees; here all rows of an entry come from one run. Whatever else an entry says is left to
 * libdw. src: DWARF 5, 6.4.2; LSB core specification, "Call Frame Information Extensions" */

enum { RBX = 3, RBP = 6, RSP = 7, RA = 16 };

#define STATES_MAX 8 /* that are remembered at the same time */

/* Offset from the CFA at which the caller's register lies; 0: it is unchanged. */
struct frame_state {
    uint64_t cfa_reg;
    int64_t cfa_offset, rbp, rbx, ra;
};

/* A run of an entry's program. */
struct frame_run {
    const struct modtab_cie *cie; /* NULL: of the CIE's own program */
    struct cursor at;
    struct frame_state now, kept[STATES_MAX];
    unsigned n_kept;
    uint64_t loc; /* the state's first address */
};

struct modtab_cie {
    uint64_t offset;
    bool is_known, is_common; /* is_common: the entries with it may be run here */
    bool has_data;            /* they have augmentation data */
    uint64_t code_align;
    int64_t data_align;
    struct frame_state first;
};

struct modtab_frames {
    struct eh_frame eh;
    struct modtab_cie cie; /* the last one */
};

struct modtab_frames *modtab_frames_open(const struct modtab_elf *m, bool *is_failed)
{
    struct modtab_frames *frames = calloc(1, sizeof *frames);
    *is_failed |= !frames;
    if (!frames)
        return NULL;
    frames->eh.m = m;
    if (m->ehdr.e_machine == EM_X86_64 && m->ehdr.e_ident[EI_CLASS] == ELFCLASS64 && find_eh_frame(&frames->eh))
        return frames;
    free(frames);
    return NULL;
}

void modtab_frames_close(struct modtab_frames *frames)
{
    free(frames);
}

static int64_t *saved_at(struct frame_state *state, uint64_t reg)
{
    return reg == RBX ? &state->rbx : reg == RBP ? &state->rbp : reg == RA ? &state->ra : NULL;
}

/* The register is saved at factor * data_align from the CFA. What happens to registers that rows do not know does not
 * matter; a rule for the stack pointer does. */
static bool save(struct frame_run *run, uint64_t reg, int64_t factor, int64_t data_align)
{
    int64_t *at = saved_at(&run->now, reg), offset;
    if (reg == RSP || __builtin_mul_overflow(factor, data_align, &offset) || (at && !offset))
        return false;
    if (at)
        *at = offset;
    return true;
}

static bool restore(struct frame_run *run, uint64_t reg)
{
    int64_t *at = saved_at(&run->now, reg);
    struct frame_state first = run->cie ? run->cie->first : (struct frame_state){0};
    if (at)
        *at = *saved_at(&first, reg);
    return run->cie && reg != RSP;
}

static bool set_cfa(struct frame_run *run, uint64_t reg, int64_t offset)
{
    run->now.cfa_reg = reg;
    run->now.cfa_offset = offset;
    return reg < RA && offset == (int32_t)offset;
}

static bool keep(struct frame_run *run)
{
    if (run->n_kept == STATES_MAX)
        return false;
    run->kept[run->n_kept++] = run->now;
    return true;
}

static bool take_kept(struct frame_run *run)
{
    if (!run->n_kept)
        return false;
    run->now = run->kept[--run->n_kept];
    return true;
}

/* The instructions without operands in their first byte, but for those that move the location. False: not understood.
 */
static bool apply(struct frame_run *run, uint8_t opcode, int64_t data_align)
{
    uint64_t a = 0, b = 0;
    switch (opcode) {
    case DW_CFA_nop:
        return true;
    case DW_CFA_GNU_args_size:
        return get_leb(&run->at, false, &a);
    case DW_CFA_def_cfa:
        return get_leb(&run->at, false, &a) && get_leb(&run->at, false, &b) && set_cfa(run, a, (int64_t)b);
    case DW_CFA_def_cfa_register:
        return get_leb(&run->at, false, &a) && set_cfa(run, a, run->now.cfa_offset);
    case DW_CFA_def_cfa_offset:
        return get_leb(&run->at, false, &a) && set_cfa(run, run->now.cfa_reg, (int64_t)a);
    case DW_CFA_offset_extended:
        return get_leb(&run->at, false, &a) && get_leb(&run->at, false, &b) && save(run, a, (int64_t)b, data_align);
    case DW_CFA_restore_extended:
        return get_leb(&run->at, false, &a) && restore(run, a);
    case DW_CFA_remember_state:
        return keep(run);
    case DW_CFA_restore_state:
        return take_kept(run);
    default:
        return false;
    }
}

/* Runs the program up to the next instruction that moves the location, and takes that: *step is by how much, 0 at the
 * program's end. False: not understood. */
static bool run_row(struct frame_run *run, uint64_t code_align, int64_t data_align, uint64_t *step)
{
    *step = 0;
    while (run->at.at < run->at.end && !*step) {
        uint8_t byte = *run->at.at++, low = byte & 0x3f, step1 = 0;
        uint16_t step2 = 0;
        uint32_t step4 = 0;
        uint64_t offset;
        bool is_known = true;
        if (byte >> 6 == DW_CFA_advance_loc >> 6)
            step4 = low;
        else if (byte >> 6 == DW_CFA_offset >> 6)
            is_known = get_leb(&run->at, false, &offset) && save(run, low, (int64_t)offset, data_align);
        else if (byte >> 6 == DW_CFA_restore >> 6)
            is_known = restore(run, low);
        else if (byte == DW_CFA_advance_loc1)
            is_known = get_fixed(&run->at, &step1, sizeof step1);
        else if (byte == DW_CFA_advance_loc2)
            is_known = get_fixed(&run->at, &step2, sizeof step2);
        else if (byte == DW_CFA_advance_loc4)
            is_known = get_fixed(&run->at, &step4, sizeof step4);
        else
            is_known = apply(run, byte, data_align);
        if (!is_known)
            return false;
        *step = ((uint64_t)step1 + step2 + step4) * code_align;
    }
    return true;
}

/* Reads the CIE of an entry, unless it is the last one; false when its entries are left to libdw. */
static bool find_cie(struct modtab_frames *frames, uint64_t offset)
{
    struct modtab_cie *cie = &frames->cie;
    Dwarf_Off next;
    Dwarf_CFI_Entry entry;
    uint64_t step;
    if (cie->is_known && cie->offset == offset)
        return cie->is_common;
    *cie = (struct modtab_cie){.offset = offset, .is_known = true};
    if (dwarf_next_cfi(frames->eh.m->ehdr.e_ident, frames->eh.data, true, offset, &next, &entry) != 0 ||
        !dwarf_cfi_cie_p(&entry))
        return false;
    const char *augmentation = entry.cie.augmentation;
    struct frame_run run = {.at = {entry.cie.initial_instructions, entry.cie.initial_instructions_end}};
    cie->has_data = *augmentation == 'z';
    cie->code_align = entry.cie.code_alignment_factor;
    cie->data_align = entry.cie.data_alignment_factor;
    cie->is_common = (cie->has_data || !*augmentation) && !strchr(augmentation, 'S') && cie->code_align == 1 &&
                     entry.cie.return_address_register == RA &&
                     run_row(&run, cie->code_align, cie->data_align, &step) && !step && !run.n_kept;
    cie->first = run.now;
    return cie->is_common;
}

static bool put_saved(int64_t offset, uint8_t flag, int16_t *out, struct modtab_row *row)
{
    if (offset < INT16_MIN || offset > INT16_MAX)
        return false;
    *out = (int16_t)offset;
    row->flags |= offset ? flag : 0;
    return true;
}

static bool row_of_state(const struct frame_state *state, struct modtab_row *row)
{
    *row = (struct modtab_row){.kind = state->cfa_reg == RSP   ? MODTAB_CFA_RSP
                                       : state->cfa_reg == RBP ? MODTAB_CFA_RBP
                                       : state->cfa_reg == RBX ? MODTAB_CFA_RBX
                                                               : MODTAB_CFA_REG,
                               .reg = (uint8_t)state->cfa_reg,
                               .cfa_offset = (int32_t)state->cfa_offset};
    return state->ra == -8 && put_saved(state->rbp, MODTAB_RBP_SAVED, &row->rbp_offset, row) &&
           put_saved(state->rbx, MODTAB_RBX_SAVED, &row->rbx_offset, row);
}

unsigned modtab_frame_rows(struct modtab_frames *frames, const struct modtab_fde *fde,
                           struct modtab_frame_row rows[MODTAB_FRAME_ROWS_MAX])
{
    uint64_t n_data, step = 1;
    unsigned n = 0;
    if (!find_cie(frames, fde->cie_offset))
        return 0;
    const struct modtab_cie *cie = &frames->cie;
    struct frame_run run = {
        .cie = cie, .at = {fde->program, fde->program_end}, .now = cie->first, .loc = fde->range.start};
    if (cie->has_data) {
        if (!get_leb(&run.at, false, &n_data) || n_data > (uint64_t)(run.at.end - run.at.at))
            return 0;
        run.at.at += n_data;
    }
    for (; step && run.loc < fde->range.end; run.loc += step) {
        if (n == MODTAB_FRAME_ROWS_MAX || !run_row(&run, cie->code_align, cie->data_align, &step) ||
            !row_of_state(&run.now, &rows[n].row))
            return 0;
        rows[n++].start = run.loc;
    }
    return n;
}
