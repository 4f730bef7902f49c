/* SPDX-License-Identifier: BSD-3-Clause */
/* Program headers, build id, and the bytes of loaded segments: see elf-file.h. */
#include "structure/elf/elf-file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/input.h"
#include "base/vec.h"

#define PAGE_MASK UINT64_C(4095) /* the smallest page: mappings begin at its multiples */

static bool add_segment(struct elf_shape *shape, const GElf_Phdr *header)
{
    if (!vec_reserve(&shape->segments, &shape->cap_segments, shape->n_segments + 1, sizeof *shape->segments))
        return false;
    shape->segments[shape->n_segments++] = (struct elf_segment){
        .offset = header->p_offset,
        .vaddr = header->p_vaddr,
        .file_bytes = header->p_filesz,
        .memory_bytes = header->p_memsz,
        .protection = (header->p_flags & PF_R ? PROT_READ : 0u) | (header->p_flags & PF_W ? PROT_WRITE : 0u) |
                      (header->p_flags & PF_X ? PROT_EXEC : 0u)};
    if (header->p_vaddr + header->p_memsz > shape->end_vaddr)
        shape->end_vaddr = header->p_vaddr + header->p_memsz;
    return true;
}

static void read_notes(Elf *elf, const GElf_Phdr *header, struct elf_shape *shape)
{
    Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_NHDR);
    GElf_Nhdr note;
    size_t name = 0, text = 0;
    for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &text)) > 0;) {
        const char *bytes = data->d_buf;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(bytes + name, "GNU", 4) == 0 &&
            note.n_descsz <= sizeof shape->build_id) {
            memcpy(shape->build_id, bytes + text, note.n_descsz);
            shape->n_build_id = note.n_descsz;
        }
    }
}

static bool read_headers(Elf *elf, struct elf_shape *shape)
{
    size_t n_headers = 0;
    if (elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n_headers) != 0)
        return false;
    for (size_t i = 0; i < n_headers; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header))
            return false;
        if (header.p_type == PT_LOAD && !add_segment(shape, &header))
            return false;
        if (header.p_type == PT_NOTE)
            read_notes(elf, &header, shape);
    }
    return true;
}

int elf_shape_read(const char *path, struct elf_shape *shape, struct error *err)
{
    (void)elf_version(EV_CURRENT);
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    if (fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot be read: %s", path, input_reason(errno));
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    bool is_read = elf && read_headers(elf, shape);
    (void)elf_end(elf);
    (void)close(fd);
    if (is_read)
        return 0;
    elf_shape_fini(shape);
    return error_set(err, ERR_FORMAT, "%.600s is not an ELF file", path);
}

bool elf_shape_bias(const struct elf_shape *shape, uint64_t start, uint64_t file_offset, uint32_t protection,
                    uint64_t known_bias, uint64_t *bias)
{
    int best = -1;
    for (size_t i = 0; i < shape->n_segments; i++) {
        const struct elf_segment *segment = &shape->segments[i];
        uint64_t begin = segment->offset & ~PAGE_MASK, here = start - file_offset + segment->offset - segment->vaddr;
        if (file_offset < begin || file_offset >= segment->offset + segment->file_bytes)
            continue;
        int score = known_bias && here == known_bias ? 2 : segment->protection == protection;
        if (score > best) {
            best = score;
            *bias = here;
        }
    }
    return best >= 0;
}

void elf_shape_fini(struct elf_shape *shape)
{
    free(shape->segments);
    *shape = (struct elf_shape){0};
}

/* --- the bytes of loaded segments --- */

static void image_add_segment(struct code_image *image, const GElf_Phdr *header, const char *file, size_t file_bytes,
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
            image_add_segment(image, &header, file, file_bytes, bias);
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
