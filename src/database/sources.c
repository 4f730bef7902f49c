/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies source files: see database.h. */
#include "database/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

#define FILE_BYTES_MAX (16 << 20)
#define ALL_BYTES_MAX (UINT64_C(1) << 30)

enum { MISSING_NAMED_MAX = 3 };

struct copying {
    const char *directory; /* of the database */
    struct source_finder *find;
    const char *older;
    struct source_copies *copies;
};

/* Where a file's copy is, relative to the database. */
static void put_place(const char *name, struct buf *out)
{
    struct buf plain = {0};
    source_path_normalize(name, &plain);
    if (!plain.failed && plain.data)
        buf_printf(out, SOURCES_DIRECTORY "/%s", plain.data + (*plain.data == '/'));
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

/* Makes the directories that path needs after its first skip bytes; false when one of the names is taken. */
static bool make_parents(char *path, size_t skip)
{
    for (char *slash = strchr(path + skip, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bool is_there = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        if (!is_there)
            return false;
    }
    return true;
}

/* Copies from one descriptor to another; returns the number of bytes, -1 when that fails. */
static int64_t copy_bytes(int from, int to)
{
    char chunk[65536];
    int64_t n_bytes = 0;
    for (;;) {
        ssize_t n = read(from, chunk, sizeof chunk);
        if (n <= 0)
            return n < 0 ? -1 : n_bytes;
        for (ssize_t done = 0, step; done < n; done += step) {
            step = write(to, chunk + done, (size_t)(n - done));
            if (step < 0)
                return -1;
        }
        n_bytes += n;
        if (n_bytes > FILE_BYTES_MAX) {
            errno = EFBIG;
            return -1;
        }
    }
}

/* Copies the open file from to path. Returns 1 when the copy exists, 0 when this file cannot be copied. */
static int copy_to(struct copying *copying, int from, char *path, struct error *err)
{
    struct stat info;
    bool is_fit = fstat(from, &info) == 0 && info.st_size <= FILE_BYTES_MAX &&
                  copying->copies->n_bytes + (uint64_t)info.st_size <= ALL_BYTES_MAX;
    if (!is_fit || !make_parents(path, strlen(copying->directory) + 1))
        return 0;
    /* only those who may read the file may read the copy, whose group may be another one */
    mode_t mode = info.st_mode & (info.st_gid == getegid() ? 0640 : 0600);
    if ((info.st_mode & 0044) == 0044)
        mode |= 0044;
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode | S_IWUSR);
    if (to < 0)
        return errno == EEXIST; /* the same file under another name */
    int64_t n_bytes = copy_bytes(from, to);
    int reason = n_bytes < 0 ? errno : 0;
    if (close(to) != 0 && reason == 0)
        reason = errno;
    if (reason == 0) {
        copying->copies->n_bytes += (uint64_t)n_bytes;
        return 1;
    }
    (void)unlink(path);
    bool is_full = reason == ENOSPC || reason == EDQUOT;
    return is_full ? error_set(err, ERR_IO, "%s: cannot be written: %s", path, strerror(reason)) : 0;
}

/* Opens the copy in an older database. */
static int open_older(const char *older, const char *place)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%s", older, place);
    int fd = path.failed ? -1 : input_open(AT_FDCWD, path.data, O_NOFOLLOW, NULL);
    buf_fini(&path);
    return fd;
}

/* Opens the copy of a file. */
static int open_copy(const char *directory, const char *name)
{
    struct buf place = {0};
    put_place(name, &place);
    int fd = place.failed || !place.data ? -1 : open_older(directory, place.data);
    buf_fini(&place);
    return fd;
}

/* Opens the file that a profile without copies names. */
static int open_original(const char *name)
{
    static const char *const here[] = {".", NULL};
    struct source_finder *find = source_finder_new(here, NULL);
    int fd = find ? source_finder_open(find, name) : -1;
    source_finder_free(find);
    return fd;
}

bool sources_read(const char *directory, const char *name, struct buf *text)
{
    char chunk[65536];
    ssize_t n = 0;
    int fd = directory ? open_copy(directory, name) : open_original(name);
    if (fd < 0)
        return false;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 && text->len_bytes <= FILE_BYTES_MAX)
        buf_append(text, chunk, (size_t)n);
    (void)close(fd);
    return n == 0 && !text->failed;
}

static int copy_one(struct copying *copying, const char *name, struct error *err)
{
    struct buf place = {0}, path = {0};
    put_place(name, &place);
    int code = 0, from = place.failed ? -1 : source_finder_open(copying->find, name);
    if (from < 0 && copying->older && !place.failed)
        from = open_older(copying->older, place.data);
    buf_printf(&path, "%s/%s", copying->directory, place.data ? place.data : "");
    if (place.failed || path.failed)
        code = error_memory(err);
    else if (from >= 0)
        code = copy_to(copying, from, path.data, err);
    if (from >= 0)
        (void)close(from);
    buf_fini(&place);
    buf_fini(&path);
    return code;
}

/* Whether name is a file's: "" and texts such as <unknown file> are not. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && name[0] != '<' && name[0] != '[' && name[len - 1] != '/';
}

/* Adds a name to the list of missing files, for a terminal: without control characters. */
static void put_missing(const char *name, struct buf *out)
{
    if (out->len_bytes)
        buf_append(out, ", ", 2);
    for (; *name; name++)
        buf_append(out, (unsigned char)*name < ' ' || *name == 0x7f ? "?" : name, 1);
}

static int copy_named(struct copying *copying, const struct model *model, uint32_t file, struct error *err)
{
    struct source_copies *copies = copying->copies;
    const char *name = model_text(model, file);
    int code = copy_one(copying, name, err);
    if (code > 0) {
        copies->is_copied[file] = true;
        copies->n_copied++;
    } else if (code == 0) {
        if (copies->n_missing++ < MISSING_NAMED_MAX)
            put_missing(name, &copies->missing);
    }
    return code < 0 ? code : 0;
}

/* Lists the owners of the programs that name the files; is_listed [number of strings] is all false, before and
 * after. */
static bool list_owners(const struct model *model, bool *is_listed, struct program_owner *owners, size_t *n_owners)
{
    bool are_few = true;
    for (size_t i = 1; i < model->n_scopes; i++) {
        uint32_t module = model->scopes[i].module;
        if (!is_listed[module] && model_text(model, module)[0] == '/')
            are_few = program_owner_add(model_text(model, module), owners, n_owners) && are_few;
        is_listed[module] = true;
    }
    for (size_t i = 0; i < model->strings.n_strings; i++)
        is_listed[i] = false;
    return are_few;
}

int sources_copy(const struct model *model, struct source_finder *find, const char *older, const char *directory,
                 const struct job *job, struct source_copies *copies, struct error *err)
{
    bool *is_named = calloc(model->strings.n_strings, sizeof *is_named);
    struct copying copying = {directory, find, older, copies};
    struct program_owner owners[PROGRAM_OWNERS_MAX];
    size_t n_owners = 0;
    int code = 0;
    sources_fini(copies);
    copies->is_copied = calloc(model->strings.n_strings, sizeof *copies->is_copied);
    if (!is_named || !copies->is_copied)
        code = error_memory(err);
    bool are_few = code == 0 && list_owners(model, is_named, owners, &n_owners);
    source_finder_limit(find, owners, n_owners);
    for (size_t i = 1; code == 0 && i < model->n_scopes; i++)
        is_named[model->scopes[i].file] = true;
    job_begin(job, "copying sources");
    for (uint32_t i = 0; code == 0 && are_few && i < model->strings.n_strings; i++) {
        if (!is_named[i] || !is_name(model_text(model, i)))
            continue;
        code = job_goes_on(job, err) ? copy_named(&copying, model, i, err) : ERR_USAGE;
    }
    free(is_named);
    return code;
}

void sources_fini(struct source_copies *copies)
{
    free(copies->is_copied);
    buf_fini(&copies->missing);
    *copies = (struct source_copies){0};
}

void sources_name(const struct source_copies *copies, const struct model *model, uint32_t file, const char *prefix,
                  struct buf *out)
{
    const char *name = model_text(model, file);
    if (!copies || !copies->is_copied || !copies->is_copied[file]) {
        buf_printf(out, "%s", name);
        return;
    }
    buf_printf(out, "%s", prefix);
    put_place(name, out);
}
