/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading structure files: see structures.h. */
#include "structures.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fmt/file.h"

static int read_one(const char *path, struct structures *structures, struct error *err)
{
    struct structure_file *file = NULL;
    struct buf text = {0};
    int code = file_read(path, &text, err);
    if (code == 0)
        code = structure_file_read(&text, path, &file, err);
    buf_fini(&text);
    if (code != 0)
        return code;
    if (vec_reserve(&structures->files, &structures->capacity, structures->n + 2, sizeof *structures->files)) {
        structures->files[structures->n++] = file;
        return 0;
    }
    structure_file_free(file);
    return error_set(err, ERR_MEMORY, "out of memory");
}

static int is_structure(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 10 && strcmp(entry->d_name + len - 10, ".hpcstruct") == 0;
}

static int read_directory(const char *directory, struct structures *structures, struct error *err)
{
    struct dirent **entries = NULL;
    int n = scandir(directory, &entries, is_structure, alphasort), code = 0;
    if (n < 0)
        return error_set(err, ERR_IO, "%s cannot be read: %s", directory, strerror(errno));
    if (n == 0)
        code = error_set(err, ERR_NOT_FOUND, "%s holds no file that ends in .hpcstruct", directory);
    for (int i = 0; i < n; i++) {
        struct buf path = {0};
        buf_printf(&path, "%s/%s", directory, entries[i]->d_name);
        if (code == 0)
            code = path.failed ? error_set(err, ERR_MEMORY, "out of memory") : read_one(path.data, structures, err);
        buf_fini(&path);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int structures_read(const char *const *paths, size_t n_paths, struct structures *structures, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n_paths; i++) {
        struct stat info;
        bool is_directory = stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode);
        code = is_directory ? read_directory(paths[i], structures, err) : read_one(paths[i], structures, err);
    }
    return code;
}

void structures_fini(struct structures *structures)
{
    for (size_t i = 0; i < structures->n; i++)
        structure_file_free((struct structure_file *)(uintptr_t)(const void *)structures->files[i]);
    free(structures->files);
    *structures = (struct structures){0};
}
