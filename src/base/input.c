/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening files that others may have put there, and making their text safe to print: see input.h. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* No file system gives this errno for a file that exists. */
#define NOT_REGULAR EMEDIUMTYPE

int input_open(int dir_fd, const char *name, int flags, struct stat *info)
{
    struct stat own;
    if (!info)
        info = &own;
    /* opening a device may have an effect, even with O_NONBLOCK; the check that counts is the one below */
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

/* --- text that may be shown --- */

/* Escaping what a terminal would obey: see input.h. */

size_t printable_utf8(const char *text)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80             ? 1
                 : (s[0] & 0xe0) == 0xc0 ? 2
                 : (s[0] & 0xf0) == 0xe0 ? 3
                 : (s[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
    if (len < 2)
        return len;
    uint32_t code = s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

/* Whether a character of len bytes is one of C0, DEL, C1 (U+0080 to U+009F), U+200E, U+200F, U+2028 to U+202E, U+2066
 * to U+2069. */
static bool is_control(const unsigned char *s, size_t len)
{
    if (len == 1)
        return s[0] < ' ' || s[0] == 0x7f;
    if (len == 2)
        return s[0] == 0xc2 && s[1] < 0xa0;
    if (len != 3 || s[0] != 0xe2)
        return false;
    bool turns = s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae));
    return turns || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

void printable_put(struct buf *out, const char *text)
{
    while (text && *text) {
        size_t n_plain = 0;
        while (text[n_plain] >= ' ' && text[n_plain] < 0x7f)
            n_plain++;
        buf_append(out, text, n_plain);
        text += n_plain;
        if (!*text)
            break;
        size_t len = printable_utf8(text), n = len ? len : 1;
        if (len && !is_control((const unsigned char *)text, len))
            buf_append(out, text, len);
        else
            for (size_t i = 0; i < n; i++)
                buf_printf(out, "\\x%02x", (unsigned char)text[i]);
        text += n;
    }
}

size_t printable_chars(const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p += printable_utf8(p))
        n++;
    return n;
}
