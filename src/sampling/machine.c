/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the launcher reads sysfs and procfs from; see machine.h. */
#include "sampling/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *dir; /* NULL: this machine */
} machine;

int machine_use(const char *dir, struct error *err)
{
    struct stat status;
    char part[PATH_MAX];
    machine.dir = NULL;
    if (!dir)
        return 0;
    if (stat(dir, &status) != 0)
        return error_set(err, ERR_IO, "%s: %s.", dir, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return error_set(err, ERR_IO, "%s describes no machine: it is not a directory.", dir);
    (void)snprintf(part, sizeof part, "%s/sys", dir);
    if (access(part, F_OK) != 0)
        return error_set(err, ERR_IO, "%s describes no machine: it has no directory sys.", dir);
    machine.dir = dir;
    return 0;
}

bool machine_is_fixture(void)
{
    return machine.dir != NULL;
}

bool machine_path(const char *path, char *out, size_t n_out)
{
    int len = snprintf(out, n_out, "%s%s", machine.dir ? machine.dir : "", path);
    return len > 0 && (size_t)len < n_out;
}

bool machine_read(const char *path, char *out, size_t n_out)
{
    char real[PATH_MAX];
    FILE *file = machine_path(path, real, sizeof real) ? fopen(real, "re") : NULL;
    if (!file)
        return false;
    size_t n = fread(out, 1, n_out - 1, file);
    bool is_read = !ferror(file);
    (void)fclose(file);
    if (n > 0 && out[n - 1] == '\n')
        n--;
    out[n] = '\0';
    return is_read;
}

bool machine_exists(const char *path)
{
    char real[PATH_MAX];
    return machine_path(path, real, sizeof real) && access(real, F_OK) == 0;
}

long machine_read_number(const char *path, long fallback)
{
    char text[64], *end;
    if (!machine_read(path, text, sizeof text))
        return fallback;
    long value = strtol(text, &end, 0);
    return end == text ? fallback : value;
}
