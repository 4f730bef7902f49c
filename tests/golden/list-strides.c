/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints how the instructions of an ELF file walk through memory: for each pc whose sample is charged to an operand of
 * the instruction before, "function class kind stride slots firsts bytes flags group
 * pc step-scale step-accesses". Flags: p proxy, m mixed,
 * n no line. For strides.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "fnbounds/modtab-make.h"
#include "fnbounds/recipe-make.h"

#define STORE_BYTES (64u << 20)

static void print_recipe(const char *name, const struct recipe *recipe)
{
    static const char *const kinds[] = {"unknown",   "fixed", "strided", "derived",
                                        "irregular", "fed",   "stored",  "chained"};
    uint64_t pattern = (uint64_t)recipe->pattern_high << 32 | recipe->pattern_low;
    if (recipe->class > RECIPE_DEPENDENT)
        return;
    printf("%s %s %s %d %u %u %u %s%s%s%s- %x %x %d %u\n", name,
           recipe->class == RECIPE_MEMORY ? "memory" : "dependent", kinds[pattern_kind(pattern)],
           pattern_stride_bytes(pattern), pattern_slots(pattern), pattern_firsts(pattern),
           pattern_access_bytes(pattern), pattern & PATTERN_PROXY ? "p" : "", pattern & PATTERN_MIXED ? "m" : "",
           pattern_is_serial(pattern) ? "s" : "", pattern & PATTERN_NO_LINE ? "n" : "", pattern_group(pattern),
           recipe->pc, recipe->step_scale, 1u << recipe->step / 16);
}

/* The recipes of the function that begins at a symbol. */
static void print_symbol(const struct modtab_header *table, const struct recipe_store *store,
                         struct recipe_maker *maker, uint64_t vaddr, const char *name)
{
    struct error err;
    int64_t func = modtab_find_func(table, vaddr);
    const struct modtab_func *range = func < 0 ? NULL : &modtab_funcs(table)[func];
    for (uint32_t pc = range ? range->start : 0; range && pc < range->end; pc++)
        if (recipe_maker_place(maker, (struct recipe_store *)store, pc, &err) == 0)
            print_recipe(name, recipe_find_block(store, table->id, pc)->recipes);
}

int main(int argc, char **argv)
{
    struct modtab_elf elf;
    struct modtab_symtab symbols;
    struct recipe_maker *maker;
    struct error err;
    char *table;
    size_t n_bytes;
    struct recipe_store *store = calloc(1, STORE_BYTES);
    if (argc != 2 || !store || recipe_store_init(store, STORE_BYTES, 1 << 17) != 0)
        return 2;
    if (modtab_elf_open(&elf, argv[1], &err) != 0 || modtab_make_table(&elf, &table, &n_bytes, &err) != 0 ||
        recipe_maker_open((const struct modtab_header *)(const void *)table, argv[1], &maker, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (size_t i = 0; modtab_symtab_open(&symbols, &elf, SHT_SYMTAB) && i < symbols.n; i++) {
        GElf_Sym symbol;
        const char *name;
        if (modtab_symtab_get(&symbols, i, &symbol, &name) && GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
            print_symbol((const struct modtab_header *)(const void *)table, store, maker, symbol.st_value, name);
    }
    recipe_maker_close(maker);
    modtab_elf_close(&elf);
    free(table);
    free(store);
    return 0;
}
