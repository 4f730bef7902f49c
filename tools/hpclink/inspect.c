/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading symbol tables with libelf; see inspect.h. */
#include "inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static bool read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct inspected *inspected)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; data && i < n; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
            continue;
        int type = GELF_ST_TYPE(symbol.st_info);
        if (type != STT_FUNC && type != STT_GNU_IFUNC)
            continue;
        bool is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name && strtab_intern(is_local ? &inspected->locals : &inspected->names, name) < 0)
            return false;
    }
    return true;
}

static int read_elf(Elf *elf, const char *path, struct inspected *inspected, struct error *err)
{
    size_t n_segments = 0;
    bool has_table = false;
    (void)elf_getphdrnum(elf, &n_segments);
    for (size_t i = 0; i < n_segments; i++) {
        GElf_Phdr segment;
        inspected->has_loader |= gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_INTERP;
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
            continue;
        has_table = true;
        if (!read_symbols(elf, section, &header, inspected))
            return error_set(err, ERR_MEMORY, "Out of memory.");
    }
    if (!has_table)
        return error_set(err, ERR_NOT_FOUND, "%s has no symbol table.", path);
    return 0;
}

int inspect_file(const char *path, struct inspected *inspected, struct error *err)
{
    *inspected = (struct inspected){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s cannot be opened: %s.", path, strerror(errno));
    (void)elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    int status;
    if (!elf || elf_kind(elf) != ELF_K_ELF)
        status = error_set(err, ERR_FORMAT, "%s is not an ELF file.", path);
    else
        status = read_elf(elf, path, inspected, err);
    (void)elf_end(elf);
    (void)close(fd);
    return status;
}

bool inspect_defines(const struct inspected *inspected, const char *name)
{
    return strtab_find(&inspected->names, name) >= 0;
}

bool inspect_contains(const struct inspected *inspected, const char *name)
{
    return inspect_defines(inspected, name) || strtab_find(&inspected->locals, name) >= 0;
}

void inspect_fini(struct inspected *inspected)
{
    strtab_fini(&inspected->names);
    strtab_fini(&inspected->locals);
}
