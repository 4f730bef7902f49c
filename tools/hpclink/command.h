/* SPDX-License-Identifier: BSD-3-Clause */
/* A command line under construction, and running it. */
#ifndef LOCUS_HPCLINK_COMMAND_H
#define LOCUS_HPCLINK_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/vec.h"

/* All zero is empty. The words are copies, owned. */
struct command {
    char **words; /* NULL-terminated as soon as there is one */
    size_t n_words, capacity;
    bool failed; /* out of memory */
};

/* Appends a word: format and arguments as of printf. */
void command_add(struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends an option of the linker, with or without a value that belongs to it ("" for none), in the form in which a
 * compiler passes it on, or bare when the command is the linker. */
void command_add_linker(struct command *command, bool is_linker, const char *option, const char *value);

/* Runs it and waits. output: takes what it writes to both streams, NULL: they are ours. Returns its exit status (128 +
 * signal), or a negative code when it could not be run.  err: ERR_NOT_FOUND, ERR_IO, ERR_MEMORY */
int command_run(const struct command *command, struct buf *output, struct error *err);

/* Prints it on standard error, one line. */
void command_print(const struct command *command);

/* Frees the words and makes the command empty. */
void command_fini(struct command *command);

#endif
