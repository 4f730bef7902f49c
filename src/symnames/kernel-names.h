/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the running kernel by address, as /proc/kallsyms lists them. Ordinary code.
 * src: Documentation/admin-guide/sysctl/kernel.rst (kptr_restrict: to whom the addresses are shown as zeros). */
#ifndef LOCUS_SYMNAMES_KERNEL_NAMES_H
#define LOCUS_SYMNAMES_KERNEL_NAMES_H

#include <stdint.h>

struct kernel_names;

/* Reads a list in the format of /proc/kallsyms. NULL when it cannot be read, when it shows no addresses, or when out of
 * memory; kernel_names_free otherwise. */
struct kernel_names *kernel_names_read(const char *path);
void kernel_names_free(struct kernel_names *names);

/* Name of the function that holds address, which is [*start, *end); NULL when none does, or names is NULL. Borrowed. */
const char *kernel_names_find(const struct kernel_names *names, uint64_t address, uint64_t *start, uint64_t *end);

#endif
