/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded segments of an ELF file: see code-image.h. */
#include "structure/code-image.h"

static void add_segment(struct code_image *image, const GElf_Phdr *header, const char *file, size_t file_bytes,
                        uint64_t bias)
{
    if (header->p_type != PT_LOAD || image->n_segments >= CODE_IMAGE_SEGMENTS_MAX)
        return;
    uint64_t n_bytes = header->p_filesz, rest = header->p_offset < file_bytes ? file_bytes - header->p_offset : 0;
    if (n_bytes > rest)
        n_bytes = rest;
    image->segments[image->n_segments++] =
        (struct code_segment){.vaddr = header->p_vaddr + bias,
                              .n_bytes = n_bytes,
                              .n_memory = header->p_memsz,
                              .bytes = (const uint8_t *)file + (rest ? header->p_offset : 0),
                              .is_code = header->p_flags & PF_X};
}

void code_image_init(struct code_image *image, Elf *elf, uint64_t bias)
{
    GElf_Ehdr ehdr;
    size_t n_headers = 0, file_bytes = 0;
    *image = (struct code_image){0};
    const char *file = elf ? elf_rawfile(elf, &file_bytes) : NULL;
    if (!file || !gelf_getehdr(elf, &ehdr) || elf_getphdrnum(elf, &n_headers) != 0)
        return;
    image->machine = ehdr.e_machine;
    for (size_t i = 0; i < n_headers; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header))
            add_segment(image, &header, file, file_bytes, bias);
    }
}

static const struct code_segment *find_segment(const struct code_image *image, uint64_t vaddr)
{
    for (size_t i = 0; i < image->n_segments; i++)
        if (vaddr - image->segments[i].vaddr < image->segments[i].n_bytes)
            return &image->segments[i];
    return NULL;
}

const uint8_t *code_image_bytes(const struct code_image *image, uint64_t vaddr, uint64_t *n_bytes)
{
    const struct code_segment *segment = find_segment(image, vaddr);
    if (!segment)
        return NULL;
    *n_bytes = segment->n_bytes - (vaddr - segment->vaddr);
    return segment->bytes + (vaddr - segment->vaddr);
}

bool code_image_is_code(const struct code_image *image, uint64_t vaddr)
{
    for (size_t i = 0; i < image->n_segments; i++)
        if (vaddr - image->segments[i].vaddr < image->segments[i].n_memory)
            return image->segments[i].is_code;
    return false;
}
