/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: fails the n-th call (FAIL_AT) of one function of libc (FAIL_CALL) with FAIL_ERRNO in each process
 * that runs the program FAIL_IN (its short name), as it fails when the machine has no more of something, and says so in
 * the file FAIL_MARK. Processes of fork go on counting on their own. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
    const char *call;
    long at, n;
    int errnum;
    bool is_ready;
} failing;

static bool fails(const char *call)
{
    if (!failing.is_ready) {
        const char *name = getenv("FAIL_IN"), *at = getenv("FAIL_AT"), *number = getenv("FAIL_ERRNO");
        failing.is_ready = true;
        if (name && at && strcmp(name, program_invocation_short_name) == 0) {
            failing.call = getenv("FAIL_CALL");
            failing.at = strtol(at, NULL, 10);
            failing.errnum = number ? (int)strtol(number, NULL, 10) : ENOMEM;
        }
    }
    if (!failing.call || strcmp(failing.call, call) != 0 || ++failing.n != failing.at)
        return false;
    const char *path = getenv("FAIL_MARK");
    long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        (void)syscall(SYS_write, fd, "failed\n", 7);
        (void)syscall(SYS_close, fd);
    }
    errno = failing.errnum;
    return true;
}

#define FAILING(type, name, parameters, arguments, failure) \
    type name parameters; \
    type name parameters \
    { \
        static type(*real) parameters; \
        if (!real) \
            *(void **)&real = dlsym(RTLD_NEXT, #name); \
        return fails(#name) ? failure : real arguments; \
    }

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

void *malloc(size_t n)
{
    return fails("malloc") ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    return fails("calloc") ? NULL : __libc_calloc(n, each);
}

void *realloc(void *old, size_t n)
{
    return fails("realloc") ? NULL : __libc_realloc(old, n);
}

FAILING(void *, mmap, (void *at, size_t n, int p, int f, int fd, off_t o), (at, n, p, f, fd, o), MAP_FAILED)
FAILING(int, open, (const char *path, int flags, mode_t mode), (path, flags, mode), -1)
FAILING(int, openat, (int fd, const char *path, int flags, mode_t mode), (fd, path, flags, mode), -1)
FAILING(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
FAILING(int, socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds), -1)
FAILING(int, listen, (int fd, int n), (fd, n), -1)
FAILING(int, accept4, (int fd, __SOCKADDR_ARG a, socklen_t *n, int flags), (fd, a, n, flags), -1)
FAILING(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), -1)
FAILING(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), -1)
FAILING(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
FAILING(int, ftruncate, (int fd, off_t n), (fd, n), -1)
FAILING(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), -1)
FAILING(int, pipe2, (int fds[2], int flags), (fds, flags), -1)
FAILING(int, dup2, (int from, int to), (from, to), -1)
FAILING(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
FAILING(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), -1)
FAILING(pid_t, fork, (void), (), -1)
FAILING(int, setenv, (const char *name, const char *value, int over), (name, value, over), -1)
FAILING(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), -1)
FAILING(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), -1)
FAILING(int, poll, (void *fds, unsigned long n, int ms), (fds, n, ms), -1)
FAILING(int, rename, (const char *from, const char *to), (from, to), -1)
FAILING(int, renameat, (int fd, const char *from, int to_fd, const char *to), (fd, from, to_fd, to), -1)
