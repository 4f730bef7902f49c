/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory files: sparse, sized once and sealed against resizing, so that neither side can make the other's mapping
 * fault. Apart because arenas and the recipe store both need them. Ordinary code. */
#include "companion-state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "fnbounds/recipe-make.h"

#define STORE_BYTES ((uint64_t)256 << 20)
#define STORE_BYTES_MIN ((uint64_t)4 << 20)
#define STORE_SLOTS (64u << 10)
#define PROBE_BYTES 4096

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/* A file limit also holds for memory files and would raise SIGXFSZ (ignored here) and EFBIG. */
static bool fits_file_limit(uint64_t size_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size_bytes;
}

int companion_memory_create(const char *name, uint64_t size_bytes)
{
    if (!fits_file_limit(size_bytes)) {
        errno = EFBIG;
        return -1;
    }
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)size_bytes) != 0) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return fd;
}

int companion_memory_create_file(const char *path, uint64_t size_bytes)
{
    if (!fits_file_limit(size_bytes)) {
        errno = EFBIG;
        return -1;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    /* Memory must be there before the program touches it, which not every file system can promise. */
    if (ftruncate(fd, (off_t)size_bytes) == 0 && fallocate(fd, 0, 0, PROBE_BYTES) == 0)
        return fd;
    int saved = errno;
    (void)close(fd);
    (void)unlink(path);
    errno = saved;
    return -1;
}

int companion_memory_reopen(int fd)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return input_open(AT_FDCWD, path, 0, NULL);
}

/* Whether everybody can get into the directory. */
static bool is_open_to_all(const char *path)
{
    struct stat status;
    char *real = realpath(path, NULL);
    bool is_open = real != NULL;
    for (char *slash = real ? strchr(real + 1, '/') : NULL; slash && is_open; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        is_open = stat(real, &status) == 0 && status.st_mode & S_IXOTH;
        *slash = '/';
    }
    is_open = is_open && stat(real, &status) == 0 && S_ISDIR(status.st_mode) && status.st_mode & S_IXOTH;
    free(real);
    return is_open;
}

void companion_tables_open(struct companion *c)
{
    const char *place = detour_default_place();
    if (!c->setup->tables[0] || geteuid() != 0)
        return;
    if (strlen(place) > sizeof c->foreign_tables - sizeof "/locus-tables-XXXXXX" || !is_open_to_all(place))
        place = "/tmp";
    (void)snprintf(c->foreign_tables, sizeof c->foreign_tables, "%.*s/locus-tables-XXXXXX",
                   (int)(sizeof c->foreign_tables - sizeof "/locus-tables-XXXXXX"), place);
    if (mkdtemp(c->foreign_tables) && chmod(c->foreign_tables, 0755) == 0)
        return;
    companion_log(c, "Programs that become another user will lose their addresses: %s: %s.", c->foreign_tables,
                  strerror(errno));
    c->foreign_tables[0] = '\0';
}

void companion_tables_close(struct companion *c)
{
    char path[sizeof c->foreign_tables + 260];
    DIR *dir = c->foreign_tables[0] ? opendir(c->foreign_tables) : NULL;
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        (void)snprintf(path, sizeof path, "%s/%.255s", c->foreign_tables, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    (void)rmdir(c->foreign_tables);
}

static bool store_map(struct companion_store *store)
{
    store->base = mmap(NULL, store->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, store->fd, 0);
    if (store->base == MAP_FAILED)
        return false;
    store->read_fd = companion_memory_reopen(store->fd);
    return store->read_fd >= 0;
}

bool companion_store_open(struct companion *c)
{
    struct companion_store *store = &c->store;
    store->fd = store->read_fd = -1;
    for (store->size_bytes = STORE_BYTES; store->size_bytes >= STORE_BYTES_MIN; store->size_bytes /= 4) {
        store->fd = companion_memory_create("locus-recipes", store->size_bytes);
        if (store->fd >= 0 && store_map(store))
            break;
        if (store->fd >= 0)
            (void)close(store->fd);
        store->fd = -1;
    }
    if (store->fd < 0) {
        companion_log(c, "The recipe store cannot be created: %s.", strerror(errno));
        return false;
    }
    uint32_t n_slots = store->size_bytes >= ((uint64_t)64 << 20) ? STORE_SLOTS : STORE_SLOTS / 16;
    return recipe_store_init(store->base, store->size_bytes, n_slots) == 0;
}
