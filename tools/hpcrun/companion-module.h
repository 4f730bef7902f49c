/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the file behind a module of a running process. Its path is the program's word: it may lie below another root,
 * be gone, or be another file by now. Ordinary code, in workers. */
#ifndef LOCUS_HPCRUN_COMPANION_MODULE_H
#define LOCUS_HPCRUN_COMPANION_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena/arena.h"

/* A module as its process tells of it. */
struct companion_module {
    uint64_t id;    /* of its table, 0 = not known: its path has to do */
    uint64_t start; /* where it is mapped */
    uint64_t inode; /* 0 = not known */
    pid_t pid;      /* 0 = of no process */
};

/* Writes to found a name under which this process can open the module, with the right id: the path, the path below the
 * process's root, the file that it has mapped, one that it has open, else an image made of its memory (held open until
 * this process ends). False when there is none.  ctx: ordinary */
bool companion_module_find(const struct companion_module *module, const char *path, char found[ARENA_PATH_MAX]);

#endif
