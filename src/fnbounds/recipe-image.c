/* SPDX-License-Identifier: BSD-3-Clause */
/* ELF segments of a module as plain bytes. */
#include "fnbounds/recipe-image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

#define VDSO_BYTES_MAX 65536

static int check_header(const struct recipe_image *image, const char *path, struct error *err)
{
    Elf64_Ehdr head;
    if (image->n_bytes < sizeof head || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
        return error_set(err, ERR_FORMAT, "%s is not an ELF file", path);
    memcpy(&head, image->bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_X86_64)
        return error_set(err, ERR_UNSUPPORTED, "%s is not x86-64 code", path);
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phoff > image->n_bytes ||
        (image->n_bytes - head.e_phoff) / sizeof(Elf64_Phdr) < head.e_phnum)
        return error_set(err, ERR_FORMAT, "%s: its program headers lie outside the file", path);
    return 0;
}

static int map_file(struct recipe_image *image, const char *path, struct error *err)
{
    struct stat status;
    int fd = input_open(AT_FDCWD, path, 0, &status);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s cannot be opened: %s", path, input_reason(errno));
    void *bytes = MAP_FAILED;
    if (status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int saved = errno;
    close(fd);
    if (bytes == MAP_FAILED)
        return error_set(err, ERR_IO, "%s cannot be mapped: %s", path, strerror(saved));
    *image = (struct recipe_image){.bytes = bytes, .n_bytes = (size_t)status.st_size, .is_mapped = true};
    return 0;
}

/* The kernel maps the whole vdso file; its size is the end of the section headers, which come last. */
static int find_vdso(struct recipe_image *image, struct error *err)
{
    const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    Elf64_Ehdr head;
    if (!bytes)
        return error_set(err, ERR_UNSUPPORTED, "this kernel gives no vdso to this process");
    memcpy(&head, bytes, sizeof head);
    uint64_t end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    if (!head.e_shoff || end > VDSO_BYTES_MAX)
        return error_set(err, ERR_FORMAT, "the vdso has an unexpected layout");
    *image = (struct recipe_image){.bytes = bytes, .n_bytes = (size_t)end};
    return 0;
}

int recipe_image_open(struct recipe_image *image, const char *path, struct error *err)
{
    *image = (struct recipe_image){0};
    int code = strcmp(path, "[vdso]") == 0 ? find_vdso(image, err) : map_file(image, path, err);
    if (code == 0)
        code = check_header(image, path, err);
    if (code != 0)
        recipe_image_close(image);
    return code;
}

void recipe_image_close(struct recipe_image *image)
{
    if (image->is_mapped)
        munmap((void *)(uintptr_t)image->bytes, image->n_bytes);
    *image = (struct recipe_image){0};
}

const uint8_t *recipe_image_bytes(const struct recipe_image *image, uint64_t vaddr, size_t n_bytes)
{
    Elf64_Ehdr head;
    memcpy(&head, image->bytes, sizeof head);
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image->bytes + head.e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type != PT_LOAD || vaddr < segment.p_vaddr || vaddr - segment.p_vaddr >= segment.p_filesz)
            continue;
        uint64_t offset = vaddr - segment.p_vaddr;
        if (n_bytes > segment.p_filesz - offset || segment.p_offset > image->n_bytes ||
            segment.p_filesz > image->n_bytes - segment.p_offset)
            return NULL;
        return image->bytes + segment.p_offset + offset;
    }
    return NULL;
}
