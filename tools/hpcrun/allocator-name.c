/* SPDX-License-Identifier: BSD-3-Clause */
/* See allocator-name.h: by functions that only one allocator has. */
#include "allocator-name.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *function, *name;
} rows[] = {
    {"mallctl", "jemalloc"},
    {"je_mallctl", "jemalloc"},
    {"tc_version", "tcmalloc"},
    {"TCMalloc_Internal_GetHeapSizeHardLimit", "tcmalloc"},
    {"mi_version", "mimalloc"},
    {"mi_malloc", "mimalloc"},
    {"scalable_malloc", "TBB's scalable allocator"},
    {"memkind_malloc", "memkind"},
    {"rpmalloc_initialize", "rpmalloc"},
};

/* The row of a symbol table's first function that tells; NULL when none does. */
static const char *search_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; i < n && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        const char *name = gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF
                               ? elf_strptr(elf, header->sh_link, symbol.st_name)
                               : NULL;
        for (size_t k = 0; name && k < sizeof rows / sizeof rows[0]; k++)
            if (strcmp(name, rows[k].function) == 0)
                return rows[k].name;
    }
    return NULL;
}

const char *allocator_name(const char *path)
{
    const char *found = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    for (Elf_Scn *section = NULL; elf && !found && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
            found = search_table(elf, section, &header);
    }
    (void)elf_end(elf);
    if (fd >= 0)
        (void)close(fd);
    return found;
}
