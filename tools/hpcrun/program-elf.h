/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of program.h that reads ELF files. Ordinary code. */
#ifndef LOCUS_HPCRUN_PROGRAM_ELF_H
#define LOCUS_HPCRUN_PROGRAM_ELF_H

#include "program.h"

/* Checks program->binary and fills loader and sanitizer; a file that is not ELF (a script without first line) passes,
 * with binary emptied.  err: ERR_UNSUPPORTED as program_check */
int program_check_elf(struct program *program, struct error *err);

#endif
