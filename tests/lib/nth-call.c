/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into a tool: of its calls of one kind the n-th fails, or is the last thing that the process does.
 * NTH_CALL=KIND:N:ACTION   KIND memory (malloc and its like, as far as the tool itself calls them: some of the
 * libraries that it uses end the process without memory), change (whatever gives, takes or moves names), file (the
 * other calls that can fail on files, too); ACTION fail or kill. Once it has happened the file NTH_DONE is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { MEMORY, CHANGE, FILES };

static struct {
    atomic_bool is_read;
    bool is_active, kills;
    enum kind kind;
    long n;
    atomic_long n_calls;
    const char *done;
    uintptr_t low, high; /* the tool itself */
} nth;

/* The first object is the program. */
static int take_program(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X)) {
            nth.low = info->dlpi_addr + segment->p_vaddr;
            nth.high = nth.low + segment->p_memsz;
        }
    }
    return 1;
}

static void read_settings(void)
{
    const char *text = getenv("NTH_CALL");
    char kind[16] = "", action[16] = "";
    if (atomic_exchange(&nth.is_read, true))
        return;
    nth.done = getenv("NTH_DONE");
    nth.is_active = text && nth.done && sscanf(text, "%15[a-z]:%ld:%15[a-z]", kind, &nth.n, action) == 3;
    nth.kind = strcmp(kind, "memory") == 0 ? MEMORY : strcmp(kind, "change") == 0 ? CHANGE : FILES;
    nth.kills = strcmp(action, "kill") == 0;
    (void)dl_iterate_phdr(take_program, NULL);
}

__attribute__((constructor)) static void begin(void)
{
    read_settings();
}

/* Whether this call is the one. */
static bool is_nth(enum kind kind)
{
    bool counts = nth.is_active && (kind == nth.kind || (nth.kind == FILES && kind == CHANGE));
    if (!counts || atomic_fetch_add(&nth.n_calls, 1) + 1 != nth.n)
        return false;
    (void)syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, nth.done, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (nth.kills)
        (void)syscall(SYS_kill, getpid(), SIGKILL);
    errno = kind == MEMORY ? ENOMEM : EIO;
    return true;
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

/* Whether this call of the tool is the one. */
static bool is_nth_of(const void *caller)
{
    return (uintptr_t)caller >= nth.low && (uintptr_t)caller < nth.high && is_nth(MEMORY);
}

void *malloc(size_t n)
{
    return is_nth_of(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return is_nth_of(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return is_nth_of(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}

char *strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = is_nth_of(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define PASS(kind, failure, name, ...) return is_nth(kind) ? (failure) : REAL(name)(__VA_ARGS__)

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = mode_of(flags, list);                                                                            \
        va_end(list);                                                                                                  \
        PASS(FILES, -1, name, path, flags, mode);                                                                      \
    }
#define OPENAT(name)                                                                                                   \
    int name(int at, const char *path, int flags, ...)                                                                 \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = mode_of(flags, list);                                                                            \
        va_end(list);                                                                                                  \
        PASS(FILES, -1, name, at, path, flags, mode);                                                                  \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    PASS(CHANGE, -1, renameat2, a, from, b, to, flags);
}

int rename(const char *from, const char *to)
{
    PASS(CHANGE, -1, rename, from, to);
}

int unlinkat(int at, const char *path, int flags)
{
    PASS(CHANGE, -1, unlinkat, at, path, flags);
}

int rmdir(const char *path)
{
    PASS(CHANGE, -1, rmdir, path);
}

int mkdir(const char *path, mode_t mode)
{
    PASS(CHANGE, -1, mkdir, path, mode);
}

ssize_t read(int fd, void *bytes, size_t n)
{
    PASS(FILES, -1, read, fd, bytes, n);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    PASS(FILES, -1, pread, fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    PASS(FILES, -1, write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    PASS(FILES, -1, pwrite, fd, bytes, n, at);
}
