/* SPDX-License-Identifier: BSD-3-Clause */
/* Which allocator is linked into an executable, and whether it is one. Ordinary code. */
#ifndef LOCUS_HPCRUN_ALLOCATOR_NAME_H
#define LOCUS_HPCRUN_ALLOCATOR_NAME_H

#include <stdbool.h>

/* Name of the allocator that the ELF file's symbols show, NULL when they show none that is known; static storage. */
const char *allocator_name(const char *path);

/* Whether the operator new that the ELF file exports calls the malloc that the file imports, as that of a static
 * libstdc++ does; false where that cannot be told (other processors than x86-64). */
bool allocator_new_is_malloc(const char *path);

#endif
