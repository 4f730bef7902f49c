/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and removing directories for temporary files, and the list of those that are there. */
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
        return error_set(err, ERR_IO, "%s cannot be made: %s", path, strerror(errno));
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
