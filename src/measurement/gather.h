/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving the files of processes from one measurement directory into another: from one on a node's own disk, where they
 * were written, into the one that all nodes share. Names are claimed anew there, so that many may write at once. What
 * was interrupted goes on where it was when it is called again. Ordinary code. */
#ifndef LOCUS_MEASUREMENT_GATHER_H
#define LOCUS_MEASUREMENT_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "measurement/names.h"

struct gather_result {
    size_t n_processes, n_files; /* that were moved whole */
    uint64_t n_bytes;
};

/* Moves the files of all processes in from into to; other files stay. Those of a process are removed from from when all
 * of them are in to, its profiles last. result is added to, on failure, too.
 * err: ERR_IO, ERR_MEMORY (the text names the file; what is there stays as it is) */
int gather_files(const char *from, const char *to, struct gather_result *result, struct error *err);

/* Notes that the files of name in from replace those that stand under claimed in the other directory already.
 * err: ERR_IO, ERR_MEMORY */
int gather_note(const char *from, const struct names_file *name, const struct names_file *claimed, struct error *err);

#endif
