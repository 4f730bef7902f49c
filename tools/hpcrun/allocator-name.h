/* SPDX-License-Identifier: BSD-3-Clause */
/* Which allocator is linked into an executable. Ordinary code. */
#ifndef LOCUS_HPCRUN_ALLOCATOR_NAME_H
#define LOCUS_HPCRUN_ALLOCATOR_NAME_H

/* Name of the allocator that the ELF file's symbols show, NULL when they show none that is known; static storage. */
const char *allocator_name(const char *path);

#endif
