/* SPDX-License-Identifier: BSD-3-Clause */
/* What hpcfnbounds prints of one module. */
#ifndef LOCUS_TOOLS_HPCFNBOUNDS_PRINT_H
#define LOCUS_TOOLS_HPCFNBOUNDS_PRINT_H

#include <stdio.h>

#include "fnbounds/modtab-make.h"

/* Functions, one line each: "0xADDRESS    name"; then the line "num symbols = N, reference offset = 0x..,
 * relocatable = 0|1" of HPCToolkit. discover: also code without symbol and unwind information. Addresses are those of
 * the file.  err: ERR_MEMORY */
int print_functions(const struct modtab_elf *m, bool discover, FILE *out, struct error *err);

/* The function starts as a C array, for programs that are linked with it.  err: ERR_MEMORY */
int print_functions_c(const struct modtab_elf *m, bool discover, FILE *out, struct error *err);

/* Variables of at least bytes_min, two lines each: "0xADDRESS    name" and "SIZE  name"; thread-local ones with their
 * offset in the module's block and the name marked.  err: ERR_MEMORY */
int print_variables(const struct modtab_elf *m, uint64_t bytes_min, FILE *out, struct error *err);

/* The same variables as a C array of address and size, without thread-local ones, for programs that are linked with it.
 * is_empty: an array without any.  err: ERR_MEMORY */
int print_variables_c(const struct modtab_elf *m, uint64_t bytes_min, bool is_empty, FILE *out, struct error *err);

/* Unwind rows, one line each: address and rule.  err: ERR_MEMORY */
int print_rows(const struct modtab_elf *m, FILE *out, struct error *err);

#endif
