/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of module tables: its place, which is one that this user can write to even with a read-only or missing
 * home, and how tables get into it. Ordinary code. */
#include "fnbounds/modtab-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "fnbounds/modtab-make.h"

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

/* Whether base, or what there is of it, is this user's (or root's, who may let us write there): our files must not
 * appear in another user's home, as they would when root runs with that user's environment. */
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

/* A cache of another user could hold misleading tables; a link to a directory of our own counts as ours. */
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

/* --- the cache --- */

/* The cache of module tables: look, else lock, look again, make, write under a temporary name, rename. Works without
 * the lock where the file system has none; then a module may be made twice, with the same result. */

#define LOCK_WAIT_MAX_NS 30000000000
#define LOCK_POLL_MAX_NS 50000000

int modtab_cache_path(char *out, size_t n, const char *cache_dir, uint64_t id, struct error *err)
{
    int length = snprintf(out, n, "%s/%016llx.lmt", cache_dir, (unsigned long long)id);
    if (length < 0 || (size_t)length >= n)
        return error_set(err, ERR_RANGE, "%s: the name of the cache directory is too long.", cache_dir);
    return 0;
}

static int map_file(int fd, const char *path, const struct modtab_header **table, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_set(err, ERR_IO, "%s: %s.", path, strerror(errno));
    if ((uint64_t)st.st_size < sizeof **table)
        return error_set(err, ERR_FORMAT, "%s: %lld bytes are too few for a module table.", path,
                         (long long)st.st_size);
    void *mapped = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED)
        return error_set(err, ERR_IO, "%s: cannot be mapped: %s.", path, strerror(errno));
    const char *wrong = modtab_check_sig(mapped, (uint64_t)st.st_size);
    if (wrong) {
        munmap(mapped, (size_t)st.st_size);
        return error_set(err, ERR_FORMAT, "%s: cannot be used, %s.", path, wrong);
    }
    *table = mapped;
    return 0;
}

int modtab_map(const char *cache_dir, uint64_t id, const struct modtab_header **table, struct error *err)
{
    char path[PATH_MAX];
    *table = NULL;
    int status = modtab_cache_path(path, sizeof path, cache_dir, id, err);
    if (status != 0)
        return status;
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    if (fd < 0)
        return error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s.", path, input_reason(errno));
    status = map_file(fd, path, table, err);
    close(fd);
    if (status == 0 && (*table)->id != id) {
        modtab_unmap(*table);
        *table = NULL;
        return error_set(err, ERR_FORMAT, "%s: is the table of another module.", path);
    }
    return status;
}

void modtab_unmap(const struct modtab_header *table)
{
    if (table)
        munmap((void *)(uintptr_t)table, table->file_bytes);
}

/* Whether the cache holds a table that serves this file. */
static bool is_cached(const struct modtab_elf *m, const char *cache_dir)
{
    const struct modtab_header *t;
    struct modtab_symtab symtab;
    if (modtab_map(cache_dir, m->header.id, &t, NULL) != 0)
        return false;
    bool good = !modtab_check_code_sig(t) && t->base_vaddr == m->header.base_vaddr &&
                t->end_vaddr == m->header.end_vaddr && t->machine == m->header.machine &&
                (t->has_symtab || (!modtab_symtab_open(&symtab, m, SHT_SYMTAB) && !modtab_debug_exists(m)));
    modtab_unmap(t);
    return good;
}

/* Waits for a lock on fd, with pauses and for a limited time. */
static void wait_lock(int fd)
{
    long long pause_ns = 500000, waited_ns = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
           waited_ns < LOCK_WAIT_MAX_NS) {
        struct timespec pause = {.tv_nsec = pause_ns};
        (void)nanosleep(&pause, NULL);
        waited_ns += pause_ns;
        pause_ns = 2 * pause_ns < LOCK_POLL_MAX_NS ? 2 * pause_ns : LOCK_POLL_MAX_NS;
    }
}

/* Locks one of 256 lock files by id; -1 when that is not possible here. The file may belong to another user. */
static int lock_module(const char *cache_dir, uint64_t id)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/lock-%02x", cache_dir, (unsigned)(id & 255));
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0)
        fd = input_open(AT_FDCWD, path, O_NOFOLLOW, NULL);
    if (fd >= 0)
        wait_lock(fd);
    return fd;
}

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t n_written = write(fd, bytes, n);
        if (n_written < 0 && errno == EINTR)
            continue;
        if (n_written <= 0)
            return n_written < 0 ? errno : ENOSPC;
        bytes += n_written;
        n -= (size_t)n_written;
    }
    return 0;
}

static int write_table(const char *cache_dir, uint64_t id, const char *table, size_t n, struct error *err)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    int status = modtab_cache_path(path, sizeof path, cache_dir, id, err);
    if (status != 0)
        return status;
    int length = snprintf(temporary, sizeof temporary, "%s/.table-XXXXXX", cache_dir);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return error_set(err, ERR_RANGE, "%s: the name of the cache directory is too long.", cache_dir);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s: no file can be created there: %s.", cache_dir, strerror(errno));
    int failed = write_all(fd, table, n);
    if (fchmod(fd, 0644) != 0 && !failed)
        failed = errno;
    if (close(fd) != 0 && !failed)
        failed = errno;
    if (!failed && rename(temporary, path) != 0)
        failed = errno;
    if (!failed)
        return 0;
    (void)unlink(temporary);
    return error_set(err, ERR_IO, "%s: cannot be written: %s.", path, strerror(failed));
}

static int make_locked(struct modtab_elf *m, const char *cache_dir, struct error *err)
{
    char *table;
    size_t n_bytes = 0;
    if (is_cached(m, cache_dir))
        return 0;
    modtab_debug_open(m);
    int status = modtab_make_table(m, &table, &n_bytes, err);
    if (status == 0)
        status = write_table(cache_dir, m->header.id, table, n_bytes, err);
    free(table);
    return status;
}

static int create_dir(const char *cache_dir, struct error *err)
{
    char path[PATH_MAX];
    struct stat st;
    size_t n = strlen(cache_dir);
    if (n == 0 || n >= sizeof path)
        return error_set(err, ERR_RANGE, "The name of the cache directory is empty or too long.");
    memcpy(path, cache_dir, n + 1);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && (errno != EEXIST || stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
        return error_set(err, ERR_IO, "%s: cannot be created as cache directory: %s.", cache_dir, strerror(errno));
    return 0;
}

int modtab_identify(const char *path, uint64_t *id, struct error *err)
{
    struct modtab_elf *m = malloc(sizeof *m);
    if (!m)
        return error_set(err, ERR_MEMORY, "%s: out of memory.", path);
    int status = modtab_elf_open(m, path, err);
    if (status == 0) {
        *id = m->header.id;
        modtab_elf_close(m);
    }
    free(m);
    return status;
}

int modtab_make(const char *path, const char *cache_dir, uint64_t *id, struct error *err)
{
    struct modtab_elf *m = malloc(sizeof *m);
    if (!m)
        return error_set(err, ERR_MEMORY, "%s: out of memory.", path);
    int status = modtab_elf_open(m, path, err);
    if (status != 0) {
        free(m);
        return status;
    }
    if (id)
        *id = m->header.id;
    if (!is_cached(m, cache_dir)) {
        status = create_dir(cache_dir, err);
        int lock = status == 0 ? lock_module(cache_dir, m->header.id) : -1;
        if (status == 0)
            status = make_locked(m, cache_dir, err);
        if (lock >= 0)
            close(lock);
    }
    modtab_elf_close(m);
    free(m);
    return status;
}
