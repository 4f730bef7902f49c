/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the file behind a module of a running process; see companion-module.h. */
#include "companion-module.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "fnbounds/modtab-cache.h"

#define SEGMENTS_MAX 64
#define IMAGE_BYTES_MAX ((uint64_t)1 << 30)

static bool is_it(const struct companion_module *module, const char *path)
{
    uint64_t id;
    return modtab_identify(path, &id, NULL) == 0 && (!module->id || id == module->id);
}

/* The file that is mapped at the start of the module; opening it takes privileges. */
static bool find_mapped(const struct companion_module *module, char found[ARENA_PATH_MAX])
{
    char path[64], line[ARENA_PATH_MAX + 128];
    unsigned long long low, high;
    bool is_found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/maps", (long)module->pid);
    FILE *maps = input_stream(path);
    while (maps && !is_found && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%llx-%llx", &low, &high) != 2 || low > module->start || high <= module->start)
            continue;
        (void)snprintf(found, ARENA_PATH_MAX, "/proc/%ld/map_files/%llx-%llx", (long)module->pid, low, high);
        is_found = is_it(module, found);
        break;
    }
    if (maps)
        (void)fclose(maps);
    return is_found;
}

/* Libraries in memory files are loaded through their descriptor, which often stays open. */
static bool find_open(const struct companion_module *module, char found[ARENA_PATH_MAX])
{
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)module->pid);
    DIR *directory = module->inode ? opendir(path) : NULL;
    bool is_found = false;
    for (const struct dirent *entry; directory && !is_found && (entry = readdir(directory));) {
        (void)snprintf(found, ARENA_PATH_MAX, "%s/%s", path, entry->d_name);
        is_found = entry->d_name[0] != '.' && stat(found, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_ino == module->inode && is_it(module, found);
    }
    if (directory)
        (void)closedir(directory);
    return is_found;
}

/* Copies n_bytes of the process at address to the image at offset. */
static bool copy_memory(int memory, uint64_t address, uint64_t n_bytes, int image, uint64_t offset)
{
    static char buffer[1 << 16];
    while (n_bytes > 0) {
        size_t n_wanted = n_bytes < sizeof buffer ? (size_t)n_bytes : sizeof buffer;
        ssize_t n = pread(memory, buffer, n_wanted, (off_t)address);
        if (n <= 0 || pwrite(image, buffer, (size_t)n, (off_t)offset) != n)
            return false;
        address += (uint64_t)n;
        offset += (uint64_t)n;
        n_bytes -= (uint64_t)n;
    }
    return true;
}

/* Puts the segments that are loaded where the file had them. There are no sections: those are not loaded. */
static bool copy_segments(int memory, uint64_t start, int image)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) segments[SEGMENTS_MAX];
    uint64_t n_bytes = 0, bias = UINT64_MAX;
    if (pread(memory, &head, sizeof head, (off_t)start) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof *segments || head.e_phnum > SEGMENTS_MAX)
        return false;
    size_t n_table = head.e_phnum * sizeof *segments;
    if (pread(memory, segments, n_table, (off_t)(start + head.e_phoff)) != (ssize_t)n_table)
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        if (bias == UINT64_MAX)
            bias = start - (segment->p_vaddr - segment->p_offset % 4096);
        n_bytes += segment->p_filesz;
        if (segment->p_filesz > IMAGE_BYTES_MAX || n_bytes > IMAGE_BYTES_MAX || segment->p_offset > IMAGE_BYTES_MAX ||
            !copy_memory(memory, bias + segment->p_vaddr, segment->p_filesz, image, segment->p_offset))
            return false;
    }
    head.e_shoff = head.e_shnum = head.e_shstrndx = 0;
    return pwrite(image, &head, sizeof head, 0) == sizeof head;
}

static bool make_image(const struct companion_module *module, char found[ARENA_PATH_MAX])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/mem", (long)module->pid);
    int memory = input_open(AT_FDCWD, path, 0, NULL), image = -1;
    if (memory < 0)
        return false;
    image = memfd_create("module", MFD_CLOEXEC);
    bool is_good = image >= 0 && copy_segments(memory, module->start, image);
    (void)close(memory);
    (void)snprintf(found, ARENA_PATH_MAX, "/proc/self/fd/%d", image);
    is_good = is_good && is_it(module, found);
    if (!is_good && image >= 0)
        (void)close(image);
    return is_good;
}

bool companion_module_find(const struct companion_module *module, const char *path, char found[ARENA_PATH_MAX])
{
    bool is_absolute = path[0] == '/'; /* else of a working directory that is not ours */
    int length = snprintf(found, ARENA_PATH_MAX, "%s", path);
    if ((is_absolute || !strcmp(path, MODTAB_VDSO)) && length < ARENA_PATH_MAX && is_it(module, found))
        return true;
    if (!module->pid || !module->id)
        return false;
    length = snprintf(found, ARENA_PATH_MAX, "/proc/%ld/root%s", (long)module->pid, path);
    if (is_absolute && length < ARENA_PATH_MAX && is_it(module, found))
        return true;
    return find_mapped(module, found) || find_open(module, found) || make_image(module, found);
}
