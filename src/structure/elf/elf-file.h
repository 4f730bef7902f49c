/* SPDX-License-Identifier: BSD-3-Clause */
/* An ELF file: its layout in memory and its build id, which placing mapped files needs, and its bytes by virtual
 * address. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_ELF_ELF_FILE_H
#define LOCUS_STRUCTURE_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct Elf; /* libelf's */

struct elf_segment {
    uint64_t offset, vaddr, file_bytes, memory_bytes;
    uint32_t protection; /* PROT_* */
};

/* All zero is empty. */
struct elf_shape {
    struct elf_segment *segments; /* [n_segments] of type LOAD */
    size_t n_segments, cap_segments;
    uint64_t end_vaddr; /* after the last byte in memory, .bss included */
    unsigned char build_id[64];
    size_t n_build_id; /* 0: it has none */
};

/* Reads the shape of a file; *shape must be empty and is left empty on failure.
 * err: ERR_IO, ERR_FORMAT (no ELF file) */
int elf_shape_read(const char *path, struct elf_shape *shape, struct error *err);

/* The difference between run-time and ELF virtual addresses when the file is mapped at start from file_offset on with
 * this protection (PROT_*; 0: not known). A page that two segments share belongs to the one that gives known_bias (0:
 * none), else to the one with this protection. False when no segment holds the offset. */
bool elf_shape_bias(const struct elf_shape *shape, uint64_t start, uint64_t file_offset, uint32_t protection,
                    uint64_t known_bias, uint64_t *bias);

/* Frees everything and makes the shape empty. */
void elf_shape_fini(struct elf_shape *shape);

/* --- the bytes by ELF virtual address, as the file holds them --- */

#define CODE_IMAGE_SEGMENTS_MAX 32

struct code_segment {
    uint64_t vaddr, n_bytes;
    uint64_t n_memory;    /* including what the file does not hold */
    const uint8_t *bytes; /* borrowed from the ELF file */
    bool is_code;
};

struct code_image {
    struct code_segment segments[CODE_IMAGE_SEGMENTS_MAX];
    size_t n_segments;
    uint16_t machine; /* EM_* */
};

/* Finds the loaded segments of an open ELF file; bias is added to the addresses in the file. Segments are cut off at
 * the end of the file. The image borrows from elf. */
void code_image_init(struct code_image *image, struct Elf *elf, uint64_t bias);

/* The bytes at vaddr, NULL when the file holds none there; *n_bytes gets their number up to the end of the segment. */
const uint8_t *code_image_bytes(const struct code_image *image, uint64_t vaddr, uint64_t *n_bytes);

/* True when vaddr lies in a segment of code. */
bool code_image_is_code(const struct code_image *image, uint64_t vaddr);

#endif
