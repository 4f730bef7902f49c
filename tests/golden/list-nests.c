/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what is known of the nests of loops in an ELF file: "function verdict inner-line outer-line far|near
 * inner-move inner-bytes outer-move outer-bytes", one line for each access that a sample could be charged to. For
 * nests.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fnbounds/modtab-make.h"
#include "structure/structure.h"

static void print_nests(struct structure *structure, const GElf_Sym *symbol, const char *name)
{
    static const char *const verdicts[] = {"fine", "swap", "tile"};
    static const char *const moves[] = {"constant", "varied", "rows", "unknown"};
    char last[500] = "", line[500];
    struct structure_nest nest;
    if (!structure_function_at(structure, symbol->st_value))
        return;
    for (uint64_t at = symbol->st_value; at < symbol->st_value + symbol->st_size; at++) {
        if (!structure_nest_at(structure, at, &nest))
            continue;
        (void)snprintf(line, sizeof line, "%s %s %u %u %s %s %lld %s %lld\n", name, verdicts[nest.verdict],
                       nest.inner->line, nest.outer->line, nest.is_far ? "far" : "near", moves[nest.inner_move],
                       (long long)nest.inner_bytes, moves[nest.outer_move], (long long)nest.outer_bytes);
        if (strcmp(line, last) != 0)
            fputs(line, stdout);
        memcpy(last, line, sizeof last);
    }
}

int main(int argc, char **argv)
{
    struct modtab_elf elf;
    struct modtab_symtab table;
    struct symbols *symbols = NULL;
    struct error err;
    if (argc != 2)
        return 2;
    if (modtab_elf_open(&elf, argv[1], &err) != 0 || symbols_open(argv[1], &symbols, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct structure *structure = structure_new(symbols);
    for (size_t i = 0; structure && modtab_symtab_open(&table, &elf, SHT_SYMTAB) && i < table.n; i++) {
        GElf_Sym symbol;
        const char *name;
        if (modtab_symtab_get(&table, i, &symbol, &name) && GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
            print_nests(structure, &symbol, name);
    }
    structure_free(structure);
    symbols_close(symbols);
    modtab_elf_close(&elf);
    return 0;
}
