/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading /proc/self/maps with raw system calls: see module-path.h. Runs in the signal handler, under the lock of the
 * load map. */
#include "runtime/module-path.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "runtime/own-call.h"
#include "base/sigsafe.h"

#define LINE_BYTES_MAX (ARENA_PATH_MAX + 128)
#define DELETED " (deleted)"

static struct {
    char text[2 * LINE_BYTES_MAX]; /* a part of the file; too large for a signal stack */
    char path[ARENA_PATH_MAX];
} maps;

static uint64_t number_sig(const char **at, unsigned base)
{
    uint64_t value = 0;
    for (;; (*at)++) {
        unsigned digit = **at >= '0' && **at <= '9' ? (unsigned)(**at - '0') : (unsigned)(**at | 32) - 'a' + 10;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

static void skip_field_sig(const char **at)
{
    while (**at && **at != ' ')
        (*at)++;
    while (**at == ' ')
        (*at)++;
}

/* The kernel writes a newline in a name as \012, and nothing else so. */
static void path_take_sig(const char *text, struct module_file *file)
{
    size_t n = 0, n_deleted = sizeof DELETED - 1;
    for (; *text && n < sizeof maps.path - 1; text++) {
        bool is_newline = text[0] == '\\' && text[1] == '0' && text[2] == '1' && text[3] == '2';
        maps.path[n++] = is_newline ? '\n' : *text;
        text += is_newline ? 3 : 0;
    }
    file->is_deleted = n > n_deleted && memcmp(maps.path + n - n_deleted, DELETED, n_deleted) == 0;
    maps.path[file->is_deleted ? n - n_deleted : n] = '\0';
    file->path = maps.path;
}

/* One line: low-high flags offset device inode path. True when it holds the address, or lies behind it. */
static bool line_take_sig(const char *line, uintptr_t address, struct module_file *file)
{
    uintptr_t low = number_sig(&line, 16);
    line += *line == '-';
    uintptr_t high = number_sig(&line, 16);
    if (address >= high)
        return false;
    if (address < low)
        return true;
    for (int i = 0; i < 4; i++)
        skip_field_sig(&line);
    file->inode = number_sig(&line, 10);
    skip_field_sig(&line);
    file->low = low;
    file->high = high;
    if (*line == '/')
        path_take_sig(line, file);
    return true;
}

/* Takes the whole lines of the first n bytes of the text; returns how many bytes are left, which it moves to the
 * front. *is_over: the address has been passed. */
static size_t lines_take_sig(size_t n, uintptr_t address, struct module_file *file, bool *is_over)
{
    char *line = maps.text;
    for (char *at = maps.text; !*is_over && at < maps.text + n; at++) {
        if (*at != '\n')
            continue;
        *at = '\0';
        *is_over = line_take_sig(line, address, file);
        line = at + 1;
    }
    size_t n_left = (size_t)(maps.text + n - line);
    memmove(maps.text, line, n_left);
    return n_left;
}

static void maps_search_sig(uintptr_t address, struct module_file *file)
{
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    bool is_over = fd < 0;
    while (!is_over && n < sizeof maps.text) {
        long n_read = own_call_sig(SYS_read, fd, maps.text + n, sizeof maps.text - n);
        if (n_read <= 0)
            break;
        n = lines_take_sig(n + (size_t)n_read, address, file, &is_over);
    }
    if (fd >= 0)
        own_call_sig(SYS_close, fd);
}

void module_path_find_sig(uintptr_t address, const char *loader_name, struct module_file *file)
{
    *file = (struct module_file){0};
    maps_search_sig(address, file);
    size_t n_name = strnlen(loader_name, sizeof maps.path);
    if (file->path || loader_name[0] != '/' || n_name == sizeof maps.path)
        return;
    memcpy(maps.path, loader_name, n_name + 1);
    file->path = maps.path;
}
