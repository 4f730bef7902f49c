/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and removing directories for temporary files. */
#include "base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int scratch_make(char *path, size_t size_bytes, const char *name, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    int len = snprintf(path, size_bytes, "%s/%s-XXXXXX", parent && *parent ? parent : "/tmp", name);
    if (len < 0 || (size_t)len >= size_bytes)
        return error_set(err, ERR_IO, "the path in TMPDIR is longer than %zu bytes", size_bytes);
    return mkdtemp(path) ? 0 : error_set(err, ERR_IO, "%s cannot be made: %s", path, strerror(errno));
}

void scratch_remove(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}
