/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole files: see file.h. */
#include "fmt/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"

#define UNSIZED_BYTES_MAX ((size_t)64 << 20)
#define READ_BYTES_MAX (UINT64_C(1) << 36)

static int fail_at(const char *path, const char *verb, struct error *err)
{
    return error_set(err, ERR_IO, "%.600s: cannot %s: %s", path, verb, strerror(errno));
}

/* Reads what the file held when it was opened: a file that keeps growing would have no end. Files of /proc have no
 * size. */
static int read_all(int fd, const char *path, size_t size_bytes, struct buf *bytes, struct error *err)
{
    size_t limit_bytes = size_bytes ? size_bytes : UNSIZED_BYTES_MAX;
    while (bytes->len_bytes < limit_bytes) {
        if (bytes->capacity - bytes->len_bytes < 2 &&
            !vec_reserve(&bytes->data, &bytes->capacity, bytes->len_bytes + 4096, 1))
            return error_set(err, ERR_MEMORY, "%.600s: out of memory after %zu bytes", path, bytes->len_bytes);
        size_t room = bytes->capacity - bytes->len_bytes - 1, rest = limit_bytes - bytes->len_bytes;
        ssize_t n_read = read(fd, bytes->data + bytes->len_bytes, room < rest ? room : rest);
        if (n_read == 0)
            return 0;
        if (n_read < 0 && errno != EINTR)
            return fail_at(path, "read", err);
        if (n_read > 0)
            bytes->len_bytes += (size_t)n_read;
    }
    return 0;
}

int file_read(const char *path, struct buf *bytes, struct error *err)
{
    struct stat info;
    int fd = input_open(AT_FDCWD, path, 0, &info);
    if (fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot be read: %s", path, input_reason(errno));
    size_t size_bytes = (size_t)info.st_size;
    if (size_bytes > READ_BYTES_MAX) {
        (void)close(fd);
        return error_set(err, ERR_RANGE, "%.600s: larger than %" PRIu64 " bytes", path, READ_BYTES_MAX);
    }
    bytes->capacity = size_bytes + 4096; /* exact, not doubled and zeroed: profiles can be large */
    bytes->data = malloc(bytes->capacity);
    int code = bytes->data ? read_all(fd, path, size_bytes, bytes, err)
                           : error_set(err, ERR_MEMORY, "%.600s: out of memory for %zu bytes", path, size_bytes);
    close(fd);
    if (code)
        buf_fini(bytes);
    else
        bytes->data[bytes->len_bytes] = '\0';
    return code;
}

/* Whether the file is one that we could have made ourselves. */
static bool is_own_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 1;
}

int file_open_lines(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd >= 0 && !is_own_file(fd)) {
        (void)close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* A temporary name in the directory of path that no other process uses; malloc'ed. */
static char *temporary_name(const char *path)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint64_t)time(NULL);
    const char *slash = strrchr(path, '/');
    int dir_len = slash ? (int)(slash - path) + 1 : 0;
    char *name = NULL;
    int len = asprintf(&name, "%.*s.tmp-%d-%016" PRIx64, dir_len, path, (int)getpid(), number);
    return len < 0 ? NULL : name;
}

int file_begin(const char *path, char **temporary, int *fd, struct error *err)
{
    *temporary = temporary_name(path);
    if (!*temporary)
        return error_set(err, ERR_MEMORY, "%.600s: out of memory", path);
    *fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (*fd >= 0)
        return 0;
    free(*temporary);
    *temporary = NULL;
    return fail_at(path, "create", err);
}

int file_append(int fd, const char *path, const void *bytes, size_t len_bytes, struct error *err)
{
    const char *rest = bytes;
    while (len_bytes) {
        ssize_t n_written = write(fd, rest, len_bytes);
        if (n_written < 0 && errno == EINTR)
            continue;
        if (n_written < 0)
            return fail_at(path, "write", err);
        rest += n_written;
        len_bytes -= (size_t)n_written;
    }
    return 0;
}

void file_abandon(int *fd, char **temporary)
{
    if (!*temporary)
        return;
    if (*fd >= 0)
        (void)close(*fd);
    (void)unlink(*temporary);
    free(*temporary);
    *temporary = NULL;
    *fd = -1;
}

/* Gives the temporary its name. When path exists already this fails with EEXIST, in one step on every file system:
 * those without such a rename have hard links. */
static bool publish(const char *temporary, const char *path)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    return link(temporary, path) == 0 && unlink(temporary) == 0;
}

static int finish(int *fd, char **temporary, const char *path, bool replace, struct error *err)
{
    int code = close(*fd) == 0 ? 0 : fail_at(path, "write", err);
    *fd = -1;
    if (!code && !(replace ? rename(*temporary, path) == 0 : publish(*temporary, path)))
        code = fail_at(path, replace ? "replace" : "create", err);
    int saved_errno = errno;
    if (code)
        (void)unlink(*temporary);
    free(*temporary);
    *temporary = NULL;
    errno = saved_errno;
    return code;
}

int file_end(int *fd, char **temporary, const char *path, struct error *err)
{
    return finish(fd, temporary, path, false, err);
}

int file_end_replacing(int *fd, char **temporary, const char *path, struct error *err)
{
    return finish(fd, temporary, path, true, err);
}

static int write_named(const char *path, const void *bytes, size_t len_bytes, bool replace, struct error *err)
{
    char *temporary = NULL;
    int fd = -1, code = file_begin(path, &temporary, &fd, err);
    if (code)
        return code;
    code = file_append(fd, path, bytes, len_bytes, err);
    if (!code)
        return finish(&fd, &temporary, path, replace, err);
    file_abandon(&fd, &temporary);
    return code;
}

int file_write_new(const char *path, const void *bytes, size_t len_bytes, struct error *err)
{
    return write_named(path, bytes, len_bytes, false, err);
}

int file_replace(const char *path, const void *bytes, size_t len_bytes, struct error *err)
{
    return write_named(path, bytes, len_bytes, true, err);
}

/* --- fields of files --- */

/* Bounds-checked big-endian fields: see file.h. */

int wire_fail(struct wire_in *in, int code, const char *format, ...)
{
    if (in->code)
        return in->code;
    char reason[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    in->code = error_set(in->err, code, "%.400s: offset %zu: %s", in->name, in->offset, reason);
    return in->code;
}

bool wire_has(struct wire_in *in, uint64_t n_bytes, const char *what)
{
    if (in->code)
        return false;
    size_t left_bytes = in->len_bytes - in->offset;
    if (n_bytes <= left_bytes)
        return true;
    wire_fail(in, ERR_FORMAT, "the file is truncated in %s: %" PRIu64 " bytes needed, %zu left", what, n_bytes,
              left_bytes);
    return false;
}

bool wire_has_items(struct wire_in *in, uint64_t n_items, uint64_t item_bytes, const char *what)
{
    if (in->code)
        return false;
    size_t left_bytes = in->len_bytes - in->offset;
    if (n_items <= left_bytes / item_bytes)
        return true;
    wire_fail(in, ERR_FORMAT,
              "the file is truncated or its count is wrong in %s: %" PRIu64 " entries of at least %" PRIu64
              " bytes announced, %zu bytes left",
              what, n_items, item_bytes, left_bytes);
    return false;
}

uint64_t wire_get(struct wire_in *in, unsigned n_bytes, const char *what)
{
    if (!wire_has(in, n_bytes, what))
        return 0;
    uint64_t value = bytes_get_be(in->bytes + in->offset, n_bytes);
    in->offset += n_bytes;
    return value;
}

void wire_get_bytes(struct wire_in *in, void *out, size_t n_bytes, const char *what)
{
    if (!wire_has(in, n_bytes, what))
        return;
    memcpy(out, in->bytes + in->offset, n_bytes);
    in->offset += n_bytes;
}

char *wire_get_text(struct wire_in *in, const char *what)
{
    uint64_t len_bytes = wire_get(in, 4, what);
    if (!wire_has(in, len_bytes, what))
        return NULL;
    if (len_bytes && memchr(in->bytes + in->offset, '\0', len_bytes)) {
        wire_fail(in, ERR_FORMAT, "a string of %s holds a NUL byte", what);
        return NULL;
    }
    char *text = malloc(len_bytes + 1);
    if (!text) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return NULL;
    }
    wire_get_bytes(in, text, len_bytes, what);
    text[len_bytes] = '\0';
    return text;
}

bool wire_accept(struct wire_in *in, const char *text)
{
    size_t len_bytes = strlen(text);
    if (in->code || in->len_bytes - in->offset < len_bytes || memcmp(in->bytes + in->offset, text, len_bytes) != 0)
        return false;
    in->offset += len_bytes;
    return true;
}

void wire_put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    unsigned char bytes[8];
    bytes_put_be(bytes, value, n_bytes);
    buf_append(out, bytes, n_bytes);
}

void wire_put_text(struct buf *out, const char *text)
{
    size_t len_bytes = text ? strlen(text) : 0;
    wire_put(out, len_bytes, 4);
    buf_append(out, text, len_bytes);
}

char *wire_put_room(struct buf *out, size_t n_bytes)
{
    if (out->failed || !vec_reserve(&out->data, &out->capacity, out->len_bytes + n_bytes + 1, 1)) {
        out->failed = true;
        return NULL;
    }
    char *room = out->data + out->len_bytes;
    out->len_bytes += n_bytes;
    out->data[out->len_bytes] = '\0';
    return room;
}
