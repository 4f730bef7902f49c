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
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { NOTED_MAX = 16, DEPTH_MAX = 256, TRIES = 8 };

static struct {
    pthread_mutex_t mutex;
    char *paths[NOTED_MAX]; /* NULL: free */
    int locks[NOTED_MAX];   /* descriptors that say that we are alive, -1: none */
} noted = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* lock_fd: is closed when the path is forgotten. */
static void note(const char *path, int lock_fd)
{
    (void)pthread_mutex_lock(&noted.mutex);
    for (size_t i = 0; i < NOTED_MAX; i++)
        if (!noted.paths[i]) {
            noted.paths[i] = strdup(path);
            noted.locks[i] = lock_fd;
            break;
        }
    (void)pthread_mutex_unlock(&noted.mutex);
}

static void forget_at(size_t i)
{
    free(noted.paths[i]);
    noted.paths[i] = NULL;
    if (noted.locks[i] >= 0)
        (void)close(noted.locks[i]);
}

void scratch_note(const char *path)
{
    note(path, -1);
}

void scratch_forget(const char *path)
{
    (void)pthread_mutex_lock(&noted.mutex);
    for (size_t i = 0; i < NOTED_MAX; i++)
        if (noted.paths[i] && strcmp(noted.paths[i], path) == 0)
            forget_at(i);
    (void)pthread_mutex_unlock(&noted.mutex);
}

static const char *parent_directory(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && *parent ? parent : "/tmp";
}

/* A number of this host, which may share the directory with others, whose processes we do not see. */
static unsigned host_number(void)
{
    struct utsname host;
    unsigned number = 2166136261u; /* FNV-1a */
    (void)uname(&host);
    for (const char *p = host.nodename; *p; p++)
        number = (number ^ (unsigned char)*p) * 16777619u;
    return number;
}

static bool is_same_file(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* Says that the directory is in use, for as long as we live. false: it is being cleared. Where there are no locks,
 * nobody clears it. */
static bool lock(const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_ours = *fd >= 0 ? (flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && is_same_file(*fd, path)
                            : errno != ENOENT;
    if (!is_ours && *fd >= 0)
        (void)close(*fd);
    return is_ours;
}

int scratch_make(char *path, size_t size_bytes, const char *name, struct error *err)
{
    int fd;
    for (int i = 0; i < TRIES; i++) {
        int len = snprintf(path, size_bytes, "%s/%s-%08x-XXXXXX", parent_directory(), name, host_number());
        if (len < 0 || (size_t)len >= size_bytes)
            return error_set(err, ERR_IO, "the path in TMPDIR is longer than %zu bytes", size_bytes);
        if (!mkdtemp(path))
            return error_set(err, ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
        if (!lock(path, &fd))
            continue;
        note(path, fd);
        return 0;
    }
    return error_set(err, ERR_IO, "%s: is removed by somebody else", path);
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

/* Whether nobody uses a directory of ours any more; it has another name then, so that what its owner has left at work
 * finds nothing to write into. */
static bool take_dead(int parent, char *name, size_t size_bytes)
{
    char other[300];
    struct stat info;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_dead = fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0;
    (void)snprintf(other, sizeof other, "%.200s.gone", name);
    if (is_dead && !strstr(name, ".gone") && renameat(parent, name, parent, other) == 0)
        (void)snprintf(name, size_bytes, "%s", other);
    if (fd >= 0)
        (void)close(fd);
    return is_dead;
}

void scratch_sweep(const char *name)
{
    char begin[64], found[300];
    DIR *directory = opendir(parent_directory());
    int len = snprintf(begin, sizeof begin, "%s-%08x-", name, host_number());
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (strncmp(entry->d_name, begin, (size_t)len) != 0)
            continue;
        (void)snprintf(found, sizeof found, "%s", entry->d_name);
        if (take_dead(dirfd(directory), found, sizeof found))
            remove_inside(dirfd(directory), found, 0);
    }
    if (directory)
        (void)closedir(directory);
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
        forget_at(i);
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
