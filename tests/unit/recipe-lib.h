/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes for code of the running test program itself. */
#ifndef LOCUS_TESTS_RECIPE_LIB_H
#define LOCUS_TESTS_RECIPE_LIB_H

#include "fnbounds/modtab.h"
#include "fnbounds/recipe-make.h"

/* A module table with one function [start, end) of the running executable. */
struct recipe_lib_table {
    struct modtab_header header;
    struct modtab_func func;
};

/* Fills the table for code of this executable; returns the load bias. */
uint64_t recipe_lib_table(struct recipe_lib_table *table, const void *start, const void *end);

/* The recipe at pc of the function [start, end) of this executable, made in a fresh store; class 255 when there is
 * none. Fails the program when the maker refuses. */
struct recipe recipe_lib_at(const void *start, const void *end, const void *pc);

/* The same with the recipe of the loop's entry at this pc; its class is 255 when there is none. */
struct recipe recipe_lib_pair(const void *start, const void *end, const void *pc, struct recipe *entry);

#endif
