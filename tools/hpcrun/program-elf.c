/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether an ELF file can be measured by preloading; see program-elf.h. Ordinary code. */
#include "program-elf.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/static-program.h"

/* The file in memory. */
struct image {
    const unsigned char *bytes;
    size_t n_bytes;
};

static bool image_open(const char *path, struct image *image)
{
    struct stat status;
    int fd = input_open(AT_FDCWD, path, 0, &status);
    *image = (struct image){0};
    if (fd < 0)
        return false;
    if (status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED)
            *image = (struct image){bytes, (size_t)status.st_size};
    }
    (void)close(fd);
    return image->bytes != NULL;
}

/* n_bytes at offset, NULL when they lie outside the file. */
static const void *image_at(const struct image *image, uint64_t offset, uint64_t n_bytes)
{
    if (offset > image->n_bytes || n_bytes > image->n_bytes - offset)
        return NULL;
    return image->bytes + offset;
}

static bool is_elf(const struct image *image)
{
    return image->n_bytes >= EI_NIDENT && !memcmp(image->bytes, ELFMAG, SELFMAG);
}

static const Elf64_Phdr *find_segment(const struct image *image, uint32_t type)
{
    const Elf64_Ehdr *header = image_at(image, 0, sizeof *header);
    for (unsigned i = 0; header && i < header->e_phnum; i++) {
        const Elf64_Phdr *segment =
            image_at(image, header->e_phoff + (uint64_t)i * sizeof *segment, sizeof *segment);
        if (segment && segment->p_type == type)
            return segment;
    }
    return NULL;
}

/* Bytes of the file behind a virtual address, up to the end of its segment. */
static const char *at_address(const struct image *image, uint64_t address, uint64_t *n_left)
{
    const Elf64_Ehdr *header = image_at(image, 0, sizeof *header);
    for (unsigned i = 0; header && i < header->e_phnum; i++) {
        const Elf64_Phdr *segment =
            image_at(image, header->e_phoff + (uint64_t)i * sizeof *segment, sizeof *segment);
        if (!segment || segment->p_type != PT_LOAD || address < segment->p_vaddr ||
            address - segment->p_vaddr >= segment->p_filesz)
            continue;
        *n_left = segment->p_filesz - (address - segment->p_vaddr);
        return image_at(image, segment->p_offset + (address - segment->p_vaddr), *n_left);
    }
    return NULL;
}

/* The needed library whose name begins with prefix; NULL when there is none. */
static const char *find_needed(const struct image *image, const char *prefix)
{
    const Elf64_Phdr *dynamic = find_segment(image, PT_DYNAMIC);
    const Elf64_Dyn *rows = dynamic ? image_at(image, dynamic->p_offset, dynamic->p_filesz) : NULL;
    const char *strings = NULL;
    uint64_t n = rows ? dynamic->p_filesz / sizeof *rows : 0, n_strings = 0;
    for (uint64_t i = 0; i < n; i++)
        if (rows[i].d_tag == DT_STRTAB)
            strings = at_address(image, rows[i].d_un.d_ptr, &n_strings);
    for (uint64_t i = 0; strings && i < n; i++) {
        if (rows[i].d_tag != DT_NEEDED || rows[i].d_un.d_val >= n_strings)
            continue;
        const char *name = strings + rows[i].d_un.d_val;
        uint64_t n_left = n_strings - rows[i].d_un.d_val;
        if (memchr(name, '\0', n_left) && !strncmp(name, prefix, strlen(prefix)))
            return name;
    }
    return NULL;
}

static int check_kind(const struct image *image, const char *path, struct error *err)
{
    const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    const Elf64_Ehdr *header = image_at(image, 0, sizeof *header);
#if defined(__x86_64__)
    const unsigned own_machine = EM_X86_64;
#elif defined(__aarch64__)
    const unsigned own_machine = EM_AARCH64;
#elif defined(__powerpc64__)
    const unsigned own_machine = EM_PPC64;
#elif defined(__s390x__)
    const unsigned own_machine = EM_S390;
#else
    const unsigned own_machine = header ? header->e_machine : 0;
#endif
    if (image->bytes[EI_CLASS] != own_class)
        return error_set(err, ERR_UNSUPPORTED, "%s is a %d-bit program and this hpcrun measures %d-bit programs.", path,
                         image->bytes[EI_CLASS] == ELFCLASS64 ? 64 : 32, (int)sizeof(void *) * 8);
    if (!header || header->e_machine != own_machine)
        return error_set(err, ERR_UNSUPPORTED, "%s was built for another kind of machine.", path);
    return 0;
}

static int check_loader(const struct image *image, struct program *program, struct error *err)
{
    const Elf64_Phdr *segment = find_segment(image, PT_INTERP);
    const char *loader = segment ? image_at(image, segment->p_offset, segment->p_filesz) : NULL;
    if (loader && memchr(loader, '\0', segment->p_filesz)) {
        (void)snprintf(program->loader, sizeof program->loader, "%s", loader);
        if (!strstr(loader, "ld-musl"))
            return 0;
        return error_set(err, ERR_UNSUPPORTED, "%s uses the musl C library, which the runtime does not support.",
                         program->binary);
    }
    program->is_static = true;
    if (memmem(image->bytes, image->n_bytes, STATIC_PROGRAM_MARK, sizeof STATIC_PROGRAM_MARK - 1))
        return 0;
    return error_set(err, ERR_UNSUPPORTED,
                     "%s is statically linked: nothing can be preloaded into it; relink it with hpclink.",
                     program->binary);
}

static int check_sanitizer(const struct image *image, struct program *program, struct error *err)
{
    const char *name = find_needed(image, "libasan.so");
    if (name)
        (void)snprintf(program->sanitizer, sizeof program->sanitizer, "%s", name);
    name = find_needed(image, "libtsan.so");
    if (!name)
        name = find_needed(image, "libmsan.so");
    if (!name)
        return 0;
    return error_set(err, ERR_UNSUPPORTED, "%s is built with a sanitizer (%s) that does not work together with "
                                           "sampling.",
                     program->binary, name);
}

int program_check_elf(struct program *program, struct error *err)
{
    struct image image;
    int status = 0;
    if (!image_open(program->binary, &image) || !is_elf(&image)) {
        program->binary[0] = '\0';
    } else {
        status = check_kind(&image, program->binary, err);
        if (status == 0)
            status = check_loader(&image, program, err);
        if (status == 0)
            status = check_sanitizer(&image, program, err);
    }
    if (image.bytes)
        (void)munmap((void *)(uintptr_t)image.bytes, image.n_bytes);
    return status;
}
