/* SPDX-License-Identifier: BSD-3-Clause */
/* How an ELF file is laid out in memory, and which build it is: what is needed to place mapped files. Ordinary code. */
#ifndef LOCUS_STRUCTURE_ELF_SHAPE_H
#define LOCUS_STRUCTURE_ELF_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct elf_segment {
    uint64_t offset, vaddr, file_bytes, memory_bytes;
    uint32_t protection; /* PROT_* */
};

/* All zero is empty. */
struct elf_shape {
    struct elf_segment *segments; /* [n_segments] of type LOAD */
    size_t n_segments, cap_segments;
    uint64_t end_vaddr; /* behind the last byte in memory, .bss included */
    unsigned char build_id[64];
    size_t n_build_id; /* 0: it has none */
};

/* Reads the shape of a file; *shape must be empty and is left empty on failure.
 * err: ERR_IO, ERR_FORMAT (no ELF file) */
int elf_shape_read(const char *path, struct elf_shape *shape, struct error *err);

/* The difference between run-time and ELF virtual addresses when the file is mapped at start from file_offset on with
 * that protection (PROT_*; 0: not known). Pages that two segments share belong to the one that gives known_bias (0:
 * none), else to the one of this protection. False when no segment holds the offset. */
bool elf_shape_bias(const struct elf_shape *shape, uint64_t start, uint64_t file_offset, uint32_t protection,
                    uint64_t known_bias, uint64_t *bias);

/* Frees everything and makes the shape empty. */
void elf_shape_fini(struct elf_shape *shape);

#endif
