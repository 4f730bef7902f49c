/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into hpcrun, and so into its companion: a directory as a troubled file system shows it. Files are made in
 * TROUBLE_DIR only once the file TROUBLE_GATE exists (a server that does not answer), and once TROUBLE_QUOTA exists
 * writing to them fails with EDQUOT. Markers (.writing-*, .detour-*) are spared. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int open_function(const char *, int, ...);
typedef ssize_t write_function(int, const void *, size_t);

static bool is_troubled(const char *path)
{
    const char *directory = getenv("TROUBLE_DIR");
    size_t len = directory ? strlen(directory) : 0;
    return len && path && !strncmp(path, directory, len) && path[len] == '/' &&
           strncmp(path + len + 1, ".writing-", 9) != 0 && strncmp(path + len + 1, ".detour-", 8) != 0 &&
           strncmp(path + len + 1, ".runs", 5) != 0;
}

static bool exists(const char *variable)
{
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}

static void wait_at_gate(void)
{
    const struct timespec step = {.tv_nsec = 20000000};
    while (getenv("TROUBLE_GATE") && !exists("TROUBLE_GATE"))
        nanosleep(&step, NULL);
}

static int open_by(const char *name, const char *path, int flags, mode_t mode)
{
    open_function *real = (open_function *)dlsym(RTLD_NEXT, name);
    if (flags & O_CREAT && is_troubled(path))
        wait_at_gate();
    return real(path, flags, mode);
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & O_CREAT ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_by("open", path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_by("open64", path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t n_bytes)
{
    char link[64], path[4096];
    write_function *real = (write_function *)dlsym(RTLD_NEXT, "write");
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    if (is_troubled(path) && exists("TROUBLE_QUOTA")) {
        errno = EDQUOT;
        return -1;
    }
    return real(fd, bytes, n_bytes);
}
