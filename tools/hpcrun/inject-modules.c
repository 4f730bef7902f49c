/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a running program has mapped, and the functions in them. */
#include "inject.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"

static struct inject_module *add(struct inject_modules *modules, const char *path)
{
    struct inject_module *last = modules->n ? &modules->modules[modules->n - 1] : NULL;
    if (last && strcmp(last->path, path) == 0)
        return last;
    struct inject_module *more = realloc(modules->modules, (modules->n + 1) * sizeof *more);
    if (!more)
        return NULL;
    modules->modules = more;
    more += modules->n++;
    memset(more, 0, sizeof *more);
    (void)snprintf(more->path, sizeof more->path, "%s", path);
    return more;
}

static int take_line(struct inject_modules *modules, char *line, struct error *err)
{
    unsigned long long low, high;
    char access[8];
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %n", &low, &high, access, &at) < 3 || !at)
        return 0;
    if (!line[at]) /* memory without a file may lie in the middle of a module */
        return 0;
    struct inject_module *module = add(modules, line + at);
    if (!module)
        return error_memory(err);
    module->low = module->low ? module->low : low;
    module->high = high;
    if (access[2] == 'x') {
        module->code_low = module->code_low ? module->code_low : low;
        module->code_high = high;
    }
    return 0;
}

int inject_modules_read(pid_t pid, struct inject_modules *modules, struct error *err)
{
    char path[64];
    char *line = NULL;
    size_t n_line = 0;
    int status = 0;
    *modules = (struct inject_modules){0};
    (void)snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    FILE *file = input_stream(path);
    if (!file)
        return error_set(err, ERR_IO, "process %ld cannot be looked at: %m", (long)pid);
    while (status == 0 && getline(&line, &n_line, file) > 0)
        status = take_line(modules, line, err);
    free(line);
    (void)fclose(file);
    return status;
}

void inject_modules_fini(struct inject_modules *modules)
{
    free(modules->modules);
    *modules = (struct inject_modules){0};
}

const struct inject_module *inject_module_named(const struct inject_modules *modules, const char *const *words,
                                                size_t n_words)
{
    for (size_t i = 0; i < modules->n; i++)
        for (size_t k = 0; k < n_words; k++)
            if (modules->modules[i].code_high &&
                strncmp(path_last(modules->modules[i].path), words[k], strlen(words[k])) == 0)
                return &modules->modules[i];
    return NULL;
}

const struct inject_module *inject_libc(const struct inject_modules *modules)
{
    static const char *const words[] = {"libc.so.6", "libc-2."};
    return inject_module_named(modules, words, sizeof words / sizeof *words);
}

const struct inject_module *inject_loader(const struct inject_modules *modules)
{
    static const char *const words[] = {"ld-linux", "ld-2.", "ld64.so", "ld.so"};
    return inject_module_named(modules, words, sizeof words / sizeof *words);
}

/* Value of a defined symbol in the table of what a file exports, 0: none. */
static uint64_t find_symbol(Elf *elf, const char *name)
{
    uint64_t found = 0;
    for (Elf_Scn *section = NULL; !found && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || !header.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (size_t i = 0; data && !found && i < header.sh_size / header.sh_entsize; i++) {
            GElf_Sym symbol;
            const char *text = gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF
                                   ? elf_strptr(elf, header.sh_link, symbol.st_name)
                                   : NULL;
            bool is_function = GELF_ST_TYPE(symbol.st_info) == STT_FUNC;
            found = text && is_function && strcmp(text, name) == 0 ? symbol.st_value : 0;
        }
    }
    return found;
}

uint64_t inject_function(const struct inject_module *module, const char *name)
{
    int fd = input_open(AT_FDCWD, module->path, 0, NULL);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    GElf_Ehdr header;
    uint64_t value = elf ? find_symbol(elf, name) : 0;
    bool moves = elf && gelf_getehdr(elf, &header) && header.e_type == ET_DYN;
    if (elf)
        (void)elf_end(elf);
    if (fd >= 0)
        (void)close(fd);
    return value ? value + (moves ? module->low : 0) : 0;
}
