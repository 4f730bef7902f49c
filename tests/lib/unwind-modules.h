/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests and benchmarks of the unwinder: the modules of this process with their tables, and the calling thread's
 * stack. Stands in for the load map. */
#ifndef LOCUS_TESTS_UNWIND_MODULES_H
#define LOCUS_TESTS_UNWIND_MODULES_H

#include <ucontext.h>

#include "base/error.h"
#include "runtime/unwind/unwind.h"

/* Makes and maps the tables of all modules that are loaded now, in cache_dir. */
int unwind_modules_load(const char *cache_dir, struct error *err);

/* Replaces the table of the module whose path ends in name by that of the file at path; false when there is none. */
bool unwind_modules_replace(const char *cache_dir, const char *name, const char *path);

/* Module of a code address (unwind_find_module).  ctx: signal handler */
const struct unwind_module *unwind_modules_find(uintptr_t pc);

/* Bounds of the calling thread's stack, without alternate stack. */
struct unwind_bounds unwind_stack_bounds(void);

/* The start of a walk from an interrupted context.  ctx: signal handler */
struct unwind_start unwind_start_of(const ucontext_t *context);

#endif
