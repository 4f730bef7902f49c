/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a place for the table cache that this user can write to, also with a read-only or missing home.
 * Ordinary code. */
#include "fnbounds/modtab-cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Creates dir and its parents; true when it is a directory in which files can be created. */
static bool is_usable(char *dir)
{
    char probe[4096];
    for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(dir, 0700);
        *slash = '/';
    }
    (void)mkdir(dir, 0700);
    int n = snprintf(probe, sizeof probe, "%s/.probe-XXXXXX", dir);
    if (n < 0 || (size_t)n >= sizeof probe)
        return false;
    int fd = mkstemp(probe);
    if (fd < 0)
        return false;
    close(fd);
    unlink(probe);
    return true;
}

/* In a directory that everybody can write to: it must be ours, no link, and closed to others. */
static bool is_ours(const char *dir)
{
    struct stat st;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* Whether base, or what there is of it, is this user's (or root's, who may let us write there): files of ours do not
 * appear in another user's home, as they would with root's rights and that user's environment. */
static bool may_make(const char *base)
{
    char path[4096];
    struct stat st;
    if (snprintf(path, sizeof path, "%s", base) >= (int)sizeof path)
        return false;
    while (stat(path, &st) != 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || !slash)
            return false;
        slash[slash == path] = '\0';
    }
    return st.st_uid == geteuid() || st.st_uid == 0;
}

/* A cache of another user could hold tables that mislead; a link to a place of our own is ours. */
static bool is_own_cache(const char *dir)
{
    struct stat st;
    return lstat(dir, &st) == 0 && st.st_uid == geteuid() && stat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && !(st.st_mode & 022);
}

static bool try_home(char *dir, size_t n, const char *base, const char *below)
{
    if (!base || *base != '/' || !may_make(base))
        return false;
    int length = snprintf(dir, n, "%s%s/locus", base, below);
    return length > 0 && (size_t)length < n && is_usable(dir) && is_own_cache(dir);
}

static bool try_public(char *dir, size_t n, const char *base)
{
    int length = snprintf(dir, n, "%s/locus-%u", base, (unsigned)geteuid());
    if (length < 0 || (size_t)length >= n)
        return false;
    (void)mkdir(dir, 0700);
    return is_ours(dir) && is_usable(dir);
}

int modtab_default_cache_dir(char *dir, size_t n, struct error *err)
{
    if (try_home(dir, n, getenv("XDG_CACHE_HOME"), "") || try_home(dir, n, getenv("HOME"), "/.cache") ||
        try_public(dir, n, "/tmp") || try_public(dir, n, "/var/tmp") || try_public(dir, n, "/dev/shm"))
        return 0;
    return error_set(err, ERR_IO,
                     "No directory for the table cache can be written to: neither $XDG_CACHE_HOME/locus, "
                     "~/.cache/locus, nor locus-%u in /tmp, /var/tmp or /dev/shm.",
                     (unsigned)geteuid());
}
