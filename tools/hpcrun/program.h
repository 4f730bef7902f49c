/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that is to be launched: where it is, and whether it can be executed and measured. Ordinary code. */
#ifndef LOCUS_HPCRUN_PROGRAM_H
#define LOCUS_HPCRUN_PROGRAM_H

#include <stdbool.h>

#include "base/error.h"

#define PROGRAM_PATH_MAX 4096

/* What was found out about a command. */
struct program {
    char path[PROGRAM_PATH_MAX];   /* as it will be executed */
    char binary[PROGRAM_PATH_MAX]; /* the ELF file that runs: itself, or the interpreter of a script; may be empty */
    char loader[PROGRAM_PATH_MAX]; /* its dynamic loader (PT_INTERP), empty when static */
    char sanitizer[64]; /* a sanitizer's library that must be loaded first, empty when none */
    bool is_static;     /* there is no loader: the runtime is inside, or nothing can be measured */
    int exit_status;    /* when it cannot be executed: 127 not found, 126 found but not executable; else 0 */
};

/* Looks for command as execvp(3) does. err: ERR_NOT_FOUND or ERR_IO, with program->exit_status set */
int program_find(const char *command, struct program *program, struct error *err);

/* Whether the program found can be measured; it can be executed in any case.
 * err: ERR_UNSUPPORTED: static (use hpclink), other word size or machine, musl, privileged, sanitizer */
int program_check(struct program *program, struct error *err);

#endif
