/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions without an ELF file, by address: those of the running kernel, as /proc/kallsyms lists them, and those that
 * just-in-time compilers make. Ordinary code.
 * src: Documentation/admin-guide/sysctl/kernel.rst (kptr_restrict: to whom the addresses are shown as zeros). */
#ifndef LOCUS_SYMNAMES_SYMNAMES_H
#define LOCUS_SYMNAMES_SYMNAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kernel_names;

/* Reads a list in the format of /proc/kallsyms. NULL when it cannot be read, when it shows no addresses, or when out of
 * memory; kernel_names_free otherwise. */
struct kernel_names *kernel_names_read(const char *path);
void kernel_names_free(struct kernel_names *names);

/* Name of the function that holds address, which is [*start, *end); NULL when none does, or names is NULL. Borrowed. */
const char *kernel_names_find(const struct kernel_names *names, uint64_t address, uint64_t *start, uint64_t *end);

/* --- just-in-time compilers --- */

/* Functions of code that a program generates while it runs, by address, as it writes them down for perf: in a map
 * (/tmp/perf-PID.map) or a jitdump. Neither says how long a function stayed where it was: the one written last counts.
 * Ordinary code.
 * src: tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt of Linux. */

struct jit_names;

/* Empty; NULL when out of memory. jit_names_free accepts NULL. */
struct jit_names *jit_names_new(void);
void jit_names_free(struct jit_names *names);

/* Adds the functions of a map, lines of "START SIZE name" in hexadecimal; lines of another form are skipped, as the
 * last one of a program that was killed may be. Returns the number added.  err: ERR_MEMORY */
int64_t jit_names_add_map(struct jit_names *names, const char *bytes, size_t len_bytes, struct error *err);

/* Adds the functions of a jitdump of either byte order, until its end or its first incomplete record; name is used in
 * messages. Returns the number added.  err: ERR_FORMAT (no jitdump), ERR_UNSUPPORTED (its version), ERR_MEMORY */
int64_t jit_names_add_dump(struct jit_names *names, const char *bytes, size_t len_bytes, const char *name,
                           struct error *err);

/* Sorts what was added; call it before the first search.  err: ERR_MEMORY */
int jit_names_order(struct jit_names *names, struct error *err);

/* Name of the function at address, of which [*start, *end) is a part that no later function covers; NULL when there is
 * none, or names is NULL. Borrowed. */
const char *jit_names_find(const struct jit_names *names, uint64_t address, uint64_t *start, uint64_t *end);

#endif
