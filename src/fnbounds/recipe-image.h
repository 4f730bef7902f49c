/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a load module by virtual address, from its file or from the mapped vdso. Read-only; every offset of the
 * file is checked, because modules may be damaged or replaced. Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_IMAGE_H
#define LOCUS_FNBOUNDS_RECIPE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct recipe_image {
    const uint8_t *bytes; /* [n_bytes] the ELF file */
    size_t n_bytes;
    bool is_mapped; /* munmap on close */
};

/* Maps path, or finds the own vdso for "[vdso]".  err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED not x86-64 */
int recipe_image_open(struct recipe_image *image, const char *path, struct error *err);

/* Unmaps what recipe_image_open mapped. */
void recipe_image_close(struct recipe_image *image);

/* The file's bytes at ELF virtual address vaddr, NULL when not all n_bytes of them are in one segment of the file.
 * ctx: ordinary code; the result lives until the image is closed. */
const uint8_t *recipe_image_bytes(const struct recipe_image *image, uint64_t vaddr, size_t n_bytes);

#endif
