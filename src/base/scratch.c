/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and removing directories for temporary files, and the list of those that are there; then the temporary file
 * for what does not fit into memory. */
#include "base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTED_MAX = 16, DEPTH_MAX = 256 };

static struct {
    pthread_mutex_t mutex;
    char *paths[NOTED_MAX]; /* NULL: free */
} noted = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void scratch_note(const char *path)
{
    (void)pthread_mutex_lock(&noted.mutex);
    for (size_t i = 0; i < NOTED_MAX; i++)
        if (!noted.paths[i]) {
            noted.paths[i] = strdup(path);
            break;
        }
    (void)pthread_mutex_unlock(&noted.mutex);
}

void scratch_forget(const char *path)
{
    (void)pthread_mutex_lock(&noted.mutex);
    for (size_t i = 0; i < NOTED_MAX; i++)
        if (noted.paths[i] && strcmp(noted.paths[i], path) == 0) {
            free(noted.paths[i]);
            noted.paths[i] = NULL;
        }
    (void)pthread_mutex_unlock(&noted.mutex);
}

int scratch_make(char *path, size_t size_bytes, const char *name, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    int len = snprintf(path, size_bytes, "%s/%s-XXXXXX", parent && *parent ? parent : "/tmp", name);
    if (len < 0 || (size_t)len >= size_bytes)
        return error_set(err, ERR_IO, "the path in TMPDIR is longer than %zu bytes", size_bytes);
    if (!mkdtemp(path))
        return error_set(err, ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
    scratch_note(path);
    return 0;
}

static void remove_inside(int parent, const char *name, unsigned depth)
{
    int fd = depth < DEPTH_MAX ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode))
            remove_inside(fd, entry->d_name, depth + 1);
        else
            (void)unlinkat(fd, entry->d_name, 0);
    }
    if (directory)
        (void)closedir(directory);
    else if (fd >= 0)
        (void)close(fd);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void scratch_remove_tree(int parent, const char *name)
{
    remove_inside(parent, name, 0);
}

void scratch_remove(const char *path)
{
    remove_inside(AT_FDCWD, path, 0);
    scratch_forget(path);
}

void scratch_remove_noted(void)
{
    char other[4200];
    (void)pthread_mutex_lock(&noted.mutex);
    for (size_t i = 0; i < NOTED_MAX; i++) {
        if (!noted.paths[i])
            continue;
        /* under another name, so that threads which still make files in it fail */
        (void)snprintf(other, sizeof other, "%.4000s.gone-%d", noted.paths[i], (int)getpid());
        bool is_moved = rename(noted.paths[i], other) == 0;
        remove_inside(AT_FDCWD, is_moved ? other : noted.paths[i], 0);
        free(noted.paths[i]);
        noted.paths[i] = NULL;
    }
    (void)pthread_mutex_unlock(&noted.mutex);
}

/* --- what does not fit into memory --- */

/* A temporary file, written and read by offset: see scratch.h. */

int spill_open(struct spill *spill, const char *directory, struct error *err)
{
    char name[4200];
    *spill = (struct spill){.fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)};
    if (spill->fd < 0) { /* not every file system has files without a name */
        (void)snprintf(name, sizeof name, "%.4000s/.locus-XXXXXX", directory);
        spill->fd = mkostemp(name, O_CLOEXEC);
        if (spill->fd >= 0)
            (void)unlink(name);
    }
    if (spill->fd < 0)
        return error_set(err, ERR_IO, "A temporary file cannot be made in %.600s: %s", directory, strerror(errno));
    return 0;
}

void spill_close(struct spill *spill)
{
    if (spill->fd >= 0)
        (void)close(spill->fd);
    spill->fd = -1;
}

int spill_write_at(int fd, const char *name, uint64_t offset, const void *bytes, size_t len_bytes, struct error *err)
{
    const char *rest = bytes;
    while (len_bytes) {
        ssize_t n = pwrite(fd, rest, len_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERR_IO, "%.600s: cannot write: %s", name, strerror(errno));
        rest += n;
        offset += (uint64_t)n;
        len_bytes -= (size_t)n;
    }
    return 0;
}

int spill_read_at(int fd, const char *name, uint64_t offset, void *bytes, size_t len_bytes, struct error *err)
{
    char *rest = bytes;
    while (len_bytes) {
        ssize_t n = pread(fd, rest, len_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(err, ERR_IO, "%.600s: cannot read: %s", name,
                             n ? strerror(errno) : "the file is shorter than it was");
        rest += n;
        offset += (uint64_t)n;
        len_bytes -= (size_t)n;
    }
    return 0;
}

int spill_append(struct spill *spill, const void *bytes, size_t len_bytes, struct spill_piece *piece, struct error *err)
{
    piece->offset = __atomic_fetch_add(&spill->len_bytes, len_bytes, __ATOMIC_RELAXED);
    piece->len_bytes = len_bytes;
    return spill_write_at(spill->fd, "the temporary file", piece->offset, bytes, len_bytes, err);
}

int spill_read(const struct spill *spill, uint64_t offset, void *bytes, size_t len_bytes, struct error *err)
{
    return spill_read_at(spill->fd, "the temporary file", offset, bytes, len_bytes, err);
}
