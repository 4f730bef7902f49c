/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding and copying the runtime's object; see runtime-object.h. */
#include "runtime-object.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/static-program.h"
#include "base/vec.h"

static void own_directory(char *path, size_t n)
{
    ssize_t len = readlink("/proc/self/exe", path, n - 1);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        slash[1] = '\0';
}

int runtime_object_find(char *path, size_t n, struct error *err)
{
    static const char *const places[] = {"libhpcrun-static.o", "../lib/locus/libhpcrun-static.o",
                                         "../lib64/locus/libhpcrun-static.o"};
    char own[PATH_MAX];
    own_directory(own, sizeof own);
    for (size_t i = 0; own[0] && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path, n, "%s%s", own, places[i]);
        if (access(path, R_OK) == 0)
            return 0;
    }
    (void)snprintf(path, n, "%s", LOCUS_RUNTIME_OBJECT);
    if (access(path, R_OK) == 0)
        return 0;
    return error_set(err, ERR_NOT_FOUND,
                     "libhpcrun-static.o is neither in %s%s nor in %s: the installation is incomplete.", own, places[1],
                     LOCUS_RUNTIME_OBJECT);
}

static int read_whole(const char *path, struct buf *bytes, struct error *err)
{
    char part[65536];
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, ERR_IO, "%s cannot be opened: %s.", path, strerror(errno));
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        buf_append(bytes, part, n);
    bool is_whole = !ferror(file);
    (void)fclose(file);
    if (!is_whole || bytes->failed)
        return error_set(err, ERR_IO, "%s cannot be read.", path);
    return 0;
}

static int write_whole(const char *path, const struct buf *bytes, struct error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set(err, ERR_IO, "%s cannot be created: %s.", path, strerror(errno));
    bool is_written = fwrite(bytes->data, 1, bytes->len_bytes, file) == bytes->len_bytes;
    if (fclose(file) != 0 || !is_written)
        return error_set(err, ERR_IO, "%s cannot be written: %s.", path, strerror(errno));
    return 0;
}

static int put_launcher(struct buf *object, const char *path, struct error *err)
{
    char launcher[PATH_MAX + sizeof "hpcrun"];
    own_directory(launcher, PATH_MAX);
    (void)strcat(launcher, "hpcrun");
    char *mark = memmem(object->data, object->len_bytes, STATIC_PROGRAM_MARK, sizeof STATIC_PROGRAM_MARK - 1);
    size_t room = mark ? object->len_bytes - (size_t)(mark - object->data) : 0;
    if (room < sizeof STATIC_PROGRAM_MARK + STATIC_PROGRAM_PATH_BYTES)
        return error_set(err, ERR_FORMAT, "%s is not the runtime's object.", path);
    if (strlen(launcher) >= STATIC_PROGRAM_PATH_BYTES)
        return error_set(err, ERR_RANGE, "%s: this path is too long to be written into programs.", launcher);
    memcpy(mark + sizeof STATIC_PROGRAM_MARK - 1, launcher, strlen(launcher) + 1);
    return 0;
}

int runtime_object_copy(const char *path, const char *copy, struct error *err)
{
    struct buf object = {0};
    int status = read_whole(path, &object, err);
    if (status == 0)
        status = put_launcher(&object, path, err);
    if (status == 0)
        status = write_whole(copy, &object, err);
    buf_fini(&object);
    return status;
}
