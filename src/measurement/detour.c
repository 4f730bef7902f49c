/* SPDX-License-Identifier: BSD-3-Clause */
/* Detour directories; see detour.h. Ordinary code. */
#include "measurement/detour.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "measurement/names.h"

#define DETOUR_PREFIX "locus-detour-"
#define POINTER_PREFIX ".detour-"
#define OWNER "target"

const char *detour_default_place(void)
{
    const char *place = getenv("TMPDIR");
    return place && place[0] == '/' ? place : "/tmp";
}

static bool join(char path[DETOUR_PATH_MAX], const char *directory, const char *name)
{
    return snprintf(path, DETOUR_PATH_MAX, "%s/%s", directory, name) < DETOUR_PATH_MAX;
}

static bool write_text(int fd, const char *text)
{
    size_t len = strlen(text);
    return write(fd, text, len) == (ssize_t)len;
}

void detour_point(struct detour *detour)
{
    if (!detour->path[0] || detour->pointer[0])
        return;
    char host[256] = "", text[DETOUR_PATH_MAX + 260];
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(text, sizeof text, "%s:%s", host, detour->path);
    (void)snprintf(detour->pointer, sizeof detour->pointer, "%.4200s/" POINTER_PREFIX "%08x-%ld", detour->target,
                   names_host_id(), (long)getpid());
    (void)unlink(detour->pointer);
    if (symlink(text, detour->pointer) != 0)
        detour->pointer[0] = '\0';
}

int detour_open(struct detour *detour, const char *place, const char *target, struct error *err)
{
    char owner[DETOUR_PATH_MAX];
    *detour = (struct detour){.lock_fd = -1};
    if (!join(detour->path, place, DETOUR_PREFIX "XXXXXX") || !mkdtemp(detour->path)) {
        detour->path[0] = '\0';
        return error_set(err, ERR_IO, "No directory for files on their way can be made in %.600s: %s.", place,
                         strerror(errno));
    }
    if (join(owner, detour->path, OWNER))
        detour->lock_fd = open(owner, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (detour->lock_fd < 0 || flock(detour->lock_fd, LOCK_EX | LOCK_NB) != 0 || !write_text(detour->lock_fd, target)) {
        int code = error_set(err, ERR_IO, "%.600s cannot be written: %s.", detour->path, strerror(errno));
        if (detour->lock_fd >= 0)
            (void)close(detour->lock_fd);
        (void)unlink(owner);
        (void)rmdir(detour->path);
        detour->path[0] = '\0';
        return code;
    }
    (void)snprintf(detour->target, sizeof detour->target, "%s", target);
    return 0;
}

/* Nothing but our own notes is left in it. */
static bool is_used_up(const char *path)
{
    bool is_empty = true;
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (const struct dirent *entry; is_empty && (entry = readdir(dir));)
        is_empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, OWNER) ||
                   !strcmp(entry->d_name, DETOUR_SETUP);
    (void)closedir(dir);
    return is_empty;
}

static bool remove_used_up(const char *path)
{
    char name[DETOUR_PATH_MAX];
    if (!is_used_up(path))
        return false;
    if (join(name, path, DETOUR_SETUP))
        (void)unlink(name);
    if (join(name, path, OWNER))
        (void)unlink(name);
    return rmdir(path) == 0;
}

void detour_unpoint(struct detour *detour)
{
    if (!detour->pointer[0] || !is_used_up(detour->path))
        return;
    (void)unlink(detour->pointer);
    detour->pointer[0] = '\0';
}

void detour_close(struct detour *detour)
{
    if (!detour->path[0])
        return;
    detour_unpoint(detour);
    (void)remove_used_up(detour->path);
    (void)close(detour->lock_fd);
    *detour = (struct detour){.lock_fd = -1};
}

static bool read_text(int fd, char *text, size_t n_text)
{
    ssize_t n = fd >= 0 ? pread(fd, text, n_text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return n > 0;
}

bool detour_target(const char *path, char target[DETOUR_PATH_MAX])
{
    char owner[DETOUR_PATH_MAX];
    int fd = join(owner, path, OWNER) ? input_open(AT_FDCWD, owner, O_NOFOLLOW, NULL) : -1;
    bool is_known = read_text(fd, target, DETOUR_PATH_MAX);
    if (fd >= 0)
        (void)close(fd);
    return is_known && target[0] == '/';
}

/* Visits the directory under its lock, when it belongs there and its companion is dead. */
static int visit_one(const char *path, const char *target, int (*visit)(void *ctx, const char *path), void *ctx)
{
    char owner[DETOUR_PATH_MAX], belongs[DETOUR_PATH_MAX];
    int result = 0;
    struct stat status;
    /* A place like /tmp is everybody's. */
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return 0;
    if (!detour_target(path, belongs) || (target && strcmp(belongs, target) != 0) || !join(owner, path, OWNER))
        return 0;
    int fd = input_open(AT_FDCWD, owner, O_NOFOLLOW, NULL);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        result = visit(ctx, path);
    (void)close(fd);
    return result;
}

int detour_each(const char *place, const char *target, int (*visit)(void *ctx, const char *path), void *ctx)
{
    char path[DETOUR_PATH_MAX];
    int result = visit_one(place, NULL, visit, ctx);
    DIR *dir = opendir(place);
    if (!dir)
        return result;
    for (const struct dirent *entry; result == 0 && (entry = readdir(dir));)
        if (!strncmp(entry->d_name, DETOUR_PREFIX, sizeof DETOUR_PREFIX - 1) && join(path, place, entry->d_name))
            result = visit_one(path, target, visit, ctx);
    (void)closedir(dir);
    return result;
}

static bool read_pointer(const char *path, char text[DETOUR_PATH_MAX])
{
    ssize_t n = readlink(path, text, DETOUR_PATH_MAX - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void remove_pointers(const char *directory, const char *detour_path)
{
    char path[DETOUR_PATH_MAX], text[DETOUR_PATH_MAX];
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, POINTER_PREFIX, sizeof POINTER_PREFIX - 1) != 0 ||
            !join(path, directory, entry->d_name))
            continue;
        const char *colon = read_pointer(path, text) ? strchr(text, ':') : NULL;
        if (colon && strcmp(colon + 1, detour_path) == 0)
            (void)unlink(path);
    }
    (void)closedir(dir);
}

bool detour_remove(const char *path, const char *target)
{
    if (!remove_used_up(path))
        return false;
    remove_pointers(target, path);
    return true;
}

unsigned detour_count_left(const char *directory)
{
    unsigned n = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        n += !strncmp(entry->d_name, DETOUR_LEFT_PREFIX, sizeof DETOUR_LEFT_PREFIX - 1);
    if (dir)
        (void)closedir(dir);
    return n;
}

void detour_each_pointer(const char *directory, void (*visit)(void *ctx, const char *place), void *ctx)
{
    char path[DETOUR_PATH_MAX], text[DETOUR_PATH_MAX];
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, POINTER_PREFIX, sizeof POINTER_PREFIX - 1) != 0 ||
            !join(path, directory, entry->d_name))
            continue;
        if (read_pointer(path, text))
            visit(ctx, text);
    }
    (void)closedir(dir);
}
