/* SPDX-License-Identifier: BSD-3-Clause */
/* See allocator-name.h: by functions that only one allocator has. */
#include "allocator-name.h"

#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"

#define STUB_BYTES 16 /* of an entry of the procedure linkage table */

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
    int fd = input_open(AT_FDCWD, path, 0, NULL);
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

/* The code at an address, NULL when there is none. *n_bytes: as far as its section goes. */
static const unsigned char *code_at(Elf *elf, uint64_t address, size_t *n_bytes)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) || address < header.sh_addr ||
            address - header.sh_addr >= header.sh_size)
            continue;
        const Elf_Data *data = elf_rawdata(section, NULL);
        if (!data || !data->d_buf || address - header.sh_addr >= data->d_size)
            return NULL;
        *n_bytes = data->d_size - (size_t)(address - header.sh_addr);
        return (const unsigned char *)data->d_buf + (address - header.sh_addr);
    }
    return NULL;
}

/* Whether the loader puts the address of the malloc that it finds into the slot at address. */
static bool is_malloc_slot(Elf *elf, uint64_t address)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header, symbols;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        Elf_Scn *table = elf_getscn(elf, header.sh_link);
        Elf_Data *table_data = table && gelf_getshdr(table, &symbols) ? elf_getdata(table, NULL) : NULL;
        size_t n = data && table_data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
        for (size_t i = 0; i < n && i < INT32_MAX; i++) {
            GElf_Rela entry;
            GElf_Sym symbol;
            if (!gelf_getrela(data, (int)i, &entry) || entry.r_offset != address ||
                !gelf_getsym(table_data, (int)GELF_R_SYM(entry.r_info), &symbol))
                continue;
            const char *name = elf_strptr(elf, symbols.sh_link, symbol.st_name);
            return name && strcmp(name, "malloc") == 0;
        }
    }
    return false;
}

static uint64_t after(uint64_t next, const unsigned char *distance)
{
    int32_t value;
    memcpy(&value, distance, sizeof value);
    return next + (uint64_t)(int64_t)value;
}

/* Whether the code at address begins with a jump through malloc's slot: an entry of the procedure linkage table. */
static bool is_malloc_stub(Elf *elf, uint64_t address)
{
    size_t n = 0;
    const unsigned char *code = code_at(elf, address, &n);
    for (size_t i = 0; code && i < STUB_BYTES && i + 6 <= n; i++)
        if (code[i] == 0xff && code[i + 1] == 0x25)
            return is_malloc_slot(elf, after(address + i + 6, code + i + 2));
    return false;
}

/* Whether a call or jump of the function leads there. A byte that only looks like one leads somewhere else. */
static bool calls_malloc(Elf *elf, const GElf_Sym *function)
{
    size_t n = 0;
    uint64_t at = function->st_value;
    const unsigned char *code = code_at(elf, at, &n);
    if (n > function->st_size)
        n = (size_t)function->st_size;
    for (size_t i = 0; code && i + 5 <= n; i++) {
        bool is_direct = code[i] == 0xe8 || code[i] == 0xe9;
        bool is_by_slot = i + 6 <= n && code[i] == 0xff && (code[i + 1] == 0x15 || code[i + 1] == 0x25);
        if (is_direct && is_malloc_stub(elf, after(at + i + 5, code + i + 1)))
            return true;
        if (is_by_slot && is_malloc_slot(elf, after(at + i + 6, code + i + 2)))
            return true;
    }
    return false;
}

static bool find_function(Elf *elf, const char *wanted, GElf_Sym *symbol)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t n = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
        for (size_t i = 0; i < n && i < INT32_MAX; i++) {
            const char *name = gelf_getsym(data, (int)i, symbol) && symbol->st_shndx != SHN_UNDEF
                                   ? elf_strptr(elf, header.sh_link, symbol->st_name)
                                   : NULL;
            if (name && strcmp(name, wanted) == 0)
                return true;
        }
    }
    return false;
}

bool allocator_new_is_malloc(const char *path)
{
    GElf_Ehdr header;
    GElf_Sym function;
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    bool is = elf && gelf_getehdr(elf, &header) && header.e_machine == EM_X86_64 &&
              find_function(elf, "_Znwm", &function) && calls_malloc(elf, &function);
    (void)elf_end(elf);
    if (fd >= 0)
        (void)close(fd);
    return is;
}
