/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a module by ELF virtual address, as its file holds them. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_CODE_IMAGE_H
#define LOCUS_STRUCTURE_CODE_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_IMAGE_SEGMENTS_MAX 32

struct code_segment {
    uint64_t vaddr, n_bytes;
    uint64_t n_memory;    /* with what the file does not hold */
    const uint8_t *bytes; /* borrowed from the ELF file */
    bool is_code;
};

struct code_image {
    struct code_segment segments[CODE_IMAGE_SEGMENTS_MAX];
    size_t n_segments;
    uint16_t machine; /* EM_* */
};

/* Finds the loaded segments of an open ELF file; bias is added to the addresses in the file. What reaches beyond the
 * end of the file is cut off. The image borrows from elf. */
void code_image_init(struct code_image *image, Elf *elf, uint64_t bias);

/* The bytes at vaddr, NULL when the file holds none there; *n_bytes gets how many follow in the segment. */
const uint8_t *code_image_bytes(const struct code_image *image, uint64_t vaddr, uint64_t *n_bytes);

/* True when vaddr lies in a segment of code. */
bool code_image_is_code(const struct code_image *image, uint64_t vaddr);

#endif
