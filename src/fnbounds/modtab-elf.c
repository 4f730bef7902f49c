/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols of a stripped file that are kept apart: in the debug file of its build id, or compressed in the section
 * .gnu_debugdata (functions only, as some distributions ship all their libraries). libdwfl finds and unpacks both.
 * Ordinary code; nothing is asked of a network. */
#include "fnbounds/modtab-make.h"

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
