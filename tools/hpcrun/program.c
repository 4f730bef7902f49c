/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding a command, and whether it can be measured by preloading. Ordinary code. */
#include "hpcrun.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/input.h"
#include "structure/elf/elf-file.h"

/* --- its ELF file --- */

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
        const Elf64_Phdr *segment = image_at(image, header->e_phoff + (uint64_t)i * sizeof *segment, sizeof *segment);
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
        const Elf64_Phdr *segment = image_at(image, header->e_phoff + (uint64_t)i * sizeof *segment, sizeof *segment);
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
        return error_set(err, ERR_UNSUPPORTED, "%s: is a %d-bit program and this hpcrun measures %d-bit programs", path,
                         image->bytes[EI_CLASS] == ELFCLASS64 ? 64 : 32, (int)sizeof(void *) * 8);
    if (!header || header->e_machine != own_machine)
        return error_set(err, ERR_UNSUPPORTED, "%s: was built for another kind of machine", path);
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
        return error_set(err, ERR_UNSUPPORTED, "%s: uses the musl C library, which the runtime does not support",
                         program->binary);
    }
    program->is_static = true;
    if (memmem(image->bytes, image->n_bytes, STATIC_PROGRAM_MARK, sizeof STATIC_PROGRAM_MARK - 1))
        return 0;
    return error_set(err, ERR_UNSUPPORTED,
                     "%s: is statically linked: nothing can be preloaded into it; relink it with hpclink",
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
    return error_set(err, ERR_UNSUPPORTED,
                     "%s: is built with a sanitizer (%s) that does not work together with "
                     "sampling",
                     program->binary, name);
}

/* Checks program->binary and fills loader and sanitizer; a file that is not ELF (a script without first line) passes,
 * with binary emptied.  err: ERR_UNSUPPORTED as program_check */
static int program_check_elf(struct program *program, struct error *err)
{
    struct image image;
    int status = 0;
    if (!image_open(program->binary, &image) || !is_elf(&image)) {
        program->binary[0] = '\0';
    } else {
        program->is_ia32 = image.bytes[EI_CLASS] == ELFCLASS32 && sizeof(void *) == 8;
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

/* --- the command --- */

#define SCRIPT_DEPTH_MAX 4

static int try_path(const char *path, struct error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return error_set(err, errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_IO, "%s: cannot be run: %s",
                         path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return error_set(err, ERR_IO, "%s: cannot be run: it is a directory", path);
    if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0)
        return error_set(err, ERR_IO, "%s: cannot be run: it is not executable", path);
    return 0;
}

static int search_path(const char *command, struct program *program, struct error *err)
{
    const char *part = getenv("PATH");
    int status = error_set(err, ERR_NOT_FOUND, "%s: there is no such command in PATH", command);
    for (part = part ? part : "/bin:/usr/bin"; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        struct error tried;
        size_t len = strcspn(part, ":");
        (void)snprintf(program->path, sizeof program->path, "%.*s%s%s", (int)len, part, len ? "/" : "./", command);
        int code = try_path(program->path, &tried);
        if (code == 0)
            return 0;
        if (code == ERR_IO && status == ERR_NOT_FOUND)
            status = error_set(err, code, "%s", tried.text);
    }
    return status;
}

int program_find(const char *command, struct program *program, struct error *err)
{
    int status;
    *program = (struct program){0};
    if (strchr(command, '/')) {
        (void)snprintf(program->path, sizeof program->path, "%s", command);
        status = try_path(command, err);
    } else {
        status = search_path(command, program, err);
    }
    if (status != 0)
        program->exit_status = status == ERR_NOT_FOUND ? 127 : 126;
    return status;
}

/* The interpreter named by a script's first line; false when path is no such script. */
static bool read_interpreter(const char *path, char interpreter[PROGRAM_PATH_MAX])
{
    char line[256] = "";
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, line, sizeof line - 1);
    (void)close(fd);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    const char *name = line + 2 + strspn(line + 2, " \t");
    (void)snprintf(interpreter, PROGRAM_PATH_MAX, "%.*s", (int)strcspn(name, " \t\n"), name);
    return true;
}

/* The kernel ignores LD_PRELOAD where it raises privileges. */
static bool raises_privileges(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    if ((status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
        (status.st_mode & S_ISGID && status.st_gid != getegid()))
        return true;
    return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

int program_check(struct program *program, struct error *err)
{
    char next[PROGRAM_PATH_MAX];
    (void)snprintf(program->binary, sizeof program->binary, "%s", program->path);
    for (int depth = 0; depth < SCRIPT_DEPTH_MAX && read_interpreter(program->binary, next); depth++)
        memcpy(program->binary, next, sizeof next);
    if (raises_privileges(program->binary))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: runs with raised privileges (set-user-id or capabilities): nothing can be preloaded into "
                         "it; measure it as its owner",
                         program->binary);
    return program_check_elf(program, err);
}

void program_build_id(const struct program *program, char id[PROGRAM_BUILD_ID_MAX])
{
    struct elf_shape shape = {0};
    struct error ignored;
    id[0] = '\0';
    if (!program->binary[0] || elf_shape_read(program->binary, &shape, &ignored) != 0)
        return;
    for (size_t i = 0; i < shape.n_build_id && 2 * i + 3 <= PROGRAM_BUILD_ID_MAX; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", shape.build_id[i]);
    elf_shape_fini(&shape);
}
