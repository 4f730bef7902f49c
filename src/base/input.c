/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening what others may have put there: see input.h. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* No file system gives this number for a file that it has. */
#define NOT_REGULAR EMEDIUMTYPE

int input_open(int dir_fd, const char *name, int flags, struct stat *info)
{
    struct stat own;
    if (!info)
        info = &own;
    /* a device may act when it is opened, and some do in spite of O_NONBLOCK; judged again below, where it counts */
    if (fstatat(dir_fd, name, info, 0) == 0 && !S_ISREG(info->st_mode)) {
        errno = NOT_REGULAR;
        return -1;
    }
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (fd < 0)
        return -1;
    bool is_known = fstat(fd, info) == 0;
    if (is_known && S_ISREG(info->st_mode))
        return fd;
    int number = is_known ? NOT_REGULAR : errno;
    (void)close(fd);
    errno = number;
    return -1;
}

FILE *input_stream(const char *name)
{
    int fd = input_open(AT_FDCWD, name, 0, NULL);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        (void)close(fd);
    return file;
}

const char *input_reason(int number)
{
    return number == NOT_REGULAR ? "not a regular file" : strerror(number);
}
