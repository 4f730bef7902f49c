/* SPDX-License-Identifier: BSD-3-Clause */
/* Structure files: written from the structure of a module, and read back, whether hpcstruct or HPCToolkit wrote them.
 * They hold what structure.h tells about a module, without the module. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_XML_STRUCTURE_FILE_H
#define LOCUS_STRUCTURE_XML_STRUCTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/vec.h"
#include "structure/structure.h"

struct structure_file;

/* Reads the text of a file, which is changed in the process and not needed afterwards; name is for messages. Takes a
 * few times the text's length in memory. The caller frees the result with structure_file_free.
 * err: ERR_FORMAT (file, offset, reason), ERR_MEMORY */
int structure_file_read(struct buf *text, const char *name, struct structure_file **file, struct error *err);
void structure_file_free(struct structure_file *file);

/* Number of the load module with this path in the file; SIZE_MAX when there is none. If the file names a module by a
 * relative path, only the last components are compared. */
size_t structure_file_module(const struct structure_file *file, const char *path);

/* The function of a module that contains vaddr; NULL when none does. Its strings live as long as the file. */
const struct structure_function *structure_file_function_at(const struct structure_file *file, size_t module,
                                                            uint64_t vaddr);

/* As symbols_lookup (structure/elf/symbols.h). */
size_t structure_file_lookup(const struct structure_file *file, size_t module, uint64_t vaddr,
                             struct symbols_frame *frames);

/* The variable of a module that contains vaddr; false when none does. */
bool structure_file_data_at(const struct structure_file *file, size_t module, uint64_t vaddr,
                            struct symbols_data *data);

/* A prefix of paths, and what is written instead. */
struct xml_replacement {
    const char *old_prefix, *new_prefix;
};

/* How a structure file is written. */
struct structure_output {
    FILE *out;
    const struct xml_replacement *replacements; /* [n_replacements] */
    size_t n_replacements;
    bool with_types; /* with types, and locals with their places, in elements that are not HPCToolkit's */
};

/* Writes the module as a structure file (doc/FORMAT.md).
 * err: ERR_IO when it cannot be written, ERR_MEMORY */
int structure_module_write(const struct structure_module *module, const struct structure_output *output,
                           struct error *err);

#endif
