/* SPDX-License-Identifier: BSD-3-Clause */
/* Where every field of the records that processes share lies: see tests/meta/layout.py, which writes this. After a
 * change that is meant, MODTAB_VERSION or the store's magic goes up as well. */
#include <stddef.h>

#include "fnbounds/modtab.h"
#include "fnbounds/recipe.h"

#define HINT ": if it is meant, run tests/meta/layout.py --write"
#define SIZE(record, bytes) _Static_assert(sizeof(struct record) == (bytes), "size of " #record HINT)
#define FIELD(record, field, bytes)                                                                                    \
    _Static_assert(offsetof(struct record, field) == (bytes), "place of " #field " in " #record HINT)

SIZE(modtab_func, 8);
FIELD(modtab_func, start, 0);
FIELD(modtab_func, end, 4);
SIZE(modtab_row, 16);
FIELD(modtab_row, pc, 0);
FIELD(modtab_row, cfa_offset, 4);
FIELD(modtab_row, rbp_offset, 8);
FIELD(modtab_row, rbx_offset, 10);
FIELD(modtab_row, kind, 12);
FIELD(modtab_row, reg, 13);
FIELD(modtab_row, flags, 14);
FIELD(modtab_row, extra, 15);
SIZE(modtab_sym, 24);
FIELD(modtab_sym, vaddr, 0);
FIELD(modtab_sym, size_bytes, 8);
FIELD(modtab_sym, name, 16);
FIELD(modtab_sym, kind, 20);
SIZE(modtab_header, 1224);
FIELD(modtab_header, magic, 0);
FIELD(modtab_header, version, 8);
FIELD(modtab_header, header_bytes, 12);
FIELD(modtab_header, file_bytes, 16);
FIELD(modtab_header, id, 24);
FIELD(modtab_header, base_vaddr, 32);
FIELD(modtab_header, end_vaddr, 40);
FIELD(modtab_header, tls_vaddr, 48);
FIELD(modtab_header, tls_bytes, 56);
FIELD(modtab_header, tls_align, 64);
FIELD(modtab_header, funcs_offset, 72);
FIELD(modtab_header, n_funcs, 80);
FIELD(modtab_header, rows_offset, 88);
FIELD(modtab_header, n_rows, 96);
FIELD(modtab_header, syms_offset, 104);
FIELD(modtab_header, n_syms, 112);
FIELD(modtab_header, tls_syms_offset, 120);
FIELD(modtab_header, n_tls_syms, 128);
FIELD(modtab_header, strings_offset, 136);
FIELD(modtab_header, strings_bytes, 144);
FIELD(modtab_header, machine, 152);
FIELD(modtab_header, is_fixed, 156);
FIELD(modtab_header, has_symtab, 160);
FIELD(modtab_header, build_id_bytes, 164);
FIELD(modtab_header, build_id, 168);
FIELD(modtab_header, path, 200);
SIZE(recipe_operand, 12);
FIELD(recipe_operand, base, 0);
FIELD(recipe_operand, index, 1);
FIELD(recipe_operand, scale, 2);
FIELD(recipe_operand, flags, 3);
FIELD(recipe_operand, disp, 4);
FIELD(recipe_operand, size_bytes, 8);
FIELD(recipe_operand, offset, 10);
SIZE(recipe_field, 12);
FIELD(recipe_field, first, 0);
FIELD(recipe_field, n_bits, 4);
FIELD(recipe_field, is_shifted, 8);
SIZE(recipe, 48);
FIELD(recipe, pc, 0);
FIELD(recipe, class, 4);
FIELD(recipe, n_operands, 5);
FIELD(recipe, entry, 6);
FIELD(recipe, operands, 8);
FIELD(recipe, guard_value, 32);
FIELD(recipe, guard_reg, 36);
FIELD(recipe, guard_other, 37);
FIELD(recipe, step, 38);
FIELD(recipe, step_scale, 39);
FIELD(recipe, pattern_low, 40);
FIELD(recipe, pattern_high, 44);
SIZE(recipe_block, 16);
FIELD(recipe_block, module_id, 0);
FIELD(recipe_block, pc, 8);
FIELD(recipe_block, n_recipes, 12);
FIELD(recipe_block, recipes, 16);
SIZE(recipe_slot, 16);
FIELD(recipe_slot, module_id, 0);
FIELD(recipe_slot, pc, 8);
FIELD(recipe_slot, block, 12);
SIZE(recipe_store, 40);
FIELD(recipe_store, magic, 0);
FIELD(recipe_store, size_bytes, 8);
FIELD(recipe_store, n_slots, 16);
FIELD(recipe_store, n_used, 20);
FIELD(recipe_store, slots_offset, 24);
FIELD(recipe_store, next_offset, 32);
