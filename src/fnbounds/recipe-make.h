/* SPDX-License-Identifier: BSD-3-Clause */
/* Making recipes: decodes functions of one load module and publishes their recipes in a recipe store. Ordinary code,
 * outside the profiled program (companion, linker tool, tests). */
#ifndef LOCUS_FNBOUNDS_RECIPE_MAKE_H
#define LOCUS_FNBOUNDS_RECIPE_MAKE_H

#include "base/error.h"
#include "fnbounds/modtab.h"
#include "fnbounds/recipe.h"

#define RECIPE_VDSO "[vdso]"

/* Lays out an empty store in zeroed memory [size_bytes], 8-byte aligned, with n_slots slots (a power of two).
 * err: ERR_RANGE when the slots do not fit or a number is not usable. */
int recipe_store_init(void *memory, size_t size_bytes, uint32_t n_slots);

/* Publishes that function number func of a module has no recipes and will get none, unless it has some. Nothing happens
 * when the store is full.  ctx: the store's one writer */
void recipe_store_refuse(struct recipe_store *store, uint64_t module_id, uint32_t func);

struct recipe_maker; /* one load module, opaque */

/* Opens the code of the module that table describes, at elf_path or, for RECIPE_VDSO, the calling process's own vdso.
 * table is borrowed until recipe_maker_close(). The caller closes *maker.
 * err: ERR_IO, ERR_FORMAT not an ELF file or damaged, ERR_UNSUPPORTED not x86-64, ERR_MEMORY */
int recipe_maker_open(const struct modtab_header *table, const char *elf_path, struct recipe_maker **maker,
                      struct error *err);

/* Decodes function number func of the module's table and publishes the recipes of all its instructions in the store,
 * unless they are there already. One writer at a time; readers need no lock. Time linear in the function's size.
 * err: ERR_RANGE no such function, or the store is full; ERR_NOT_FOUND the file holds no code there; ERR_MEMORY */
int recipe_maker_func(struct recipe_maker *maker, struct recipe_store *store, uint32_t func, struct error *err);

/* Closes the maker (NULL allowed). What it has published stays. */
void recipe_maker_close(struct recipe_maker *maker);

#endif
