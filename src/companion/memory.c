/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory files: sparse, sized once and sealed against resizing, so that neither side can make the other's mapping
 * fault: for arenas (whose layout is arena/arena.h's) and for the recipe store. Then what stands in for files: images
 * of modules whose files are gone, and tables for the processes of other users. Ordinary code. */
#include "companion/state.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
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

/* Creates, sizes and seals a memory file. Returns a descriptor or -1 with errno set. */
static int companion_memory_create(const char *name, uint64_t size_bytes)
{
    if (!fits_file_limit(size_bytes)) {
        errno = EFBIG;
        return -1;
    }
    if (environment_lacks("memfd")) {
        errno = ENOSYS;
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

/* Same as a file at path; not sealed. */
static int companion_memory_create_file(const char *path, uint64_t size_bytes)
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

/* --- the image of a module whose file is gone --- */

#define SEGMENTS_MAX 64
#define IMAGE_BYTES_MAX ((uint64_t)1 << 30)

/* Copies n_bytes of the process at address to the image at offset. */
static bool copy_memory(int memory, uint64_t address, uint64_t n_bytes, int image, uint64_t offset)
{
    static char buffer[1 << 16];
    while (n_bytes > 0) {
        size_t n_wanted = n_bytes < sizeof buffer ? (size_t)n_bytes : sizeof buffer;
        ssize_t n = pread(memory, buffer, n_wanted, (off_t)address);
        if (n <= 0 || pwrite(image, buffer, (size_t)n, (off_t)offset) != n)
            return false;
        address += (uint64_t)n;
        offset += (uint64_t)n;
        n_bytes -= (uint64_t)n;
    }
    return true;
}

/* Puts the segments that are loaded where the file had them. There are no sections: those are not loaded. */
static bool copy_segments(int memory, uint64_t start, int image)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) segments[SEGMENTS_MAX];
    uint64_t n_bytes = 0, bias = UINT64_MAX;
    if (pread(memory, &head, sizeof head, (off_t)start) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof *segments || head.e_phnum > SEGMENTS_MAX)
        return false;
    size_t n_table = head.e_phnum * sizeof *segments;
    if (pread(memory, segments, n_table, (off_t)(start + head.e_phoff)) != (ssize_t)n_table)
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        if (bias == UINT64_MAX)
            bias = start - (segment->p_vaddr - segment->p_offset % 4096);
        n_bytes += segment->p_filesz;
        if (segment->p_filesz > IMAGE_BYTES_MAX || n_bytes > IMAGE_BYTES_MAX || segment->p_offset > IMAGE_BYTES_MAX ||
            !copy_memory(memory, bias + segment->p_vaddr, segment->p_filesz, image, segment->p_offset))
            return false;
    }
    head.e_shoff = head.e_shnum = head.e_shstrndx = 0;
    return pwrite(image, &head, sizeof head, 0) == sizeof head;
}

int companion_memory_image(pid_t pid, uint64_t start)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    int memory = input_open(AT_FDCWD, path, 0, NULL);
    if (memory < 0)
        return -1;
    int image = memfd_create("module", MFD_CLOEXEC);
    if (image >= 0 && !copy_segments(memory, start, image)) {
        (void)close(image);
        image = -1;
    }
    (void)close(memory);
    return image;
}

/* --- tables for the processes of other users --- */

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

#define TABLES_PREFIX "locus-tables-"
#define STALE_S 60 /* a directory that is locked by nobody is left alone for so long: it may just have been made */

static void remove_tables(const char *directory)
{
    char path[sizeof((struct companion *)0)->foreign_tables + 260];
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        (void)snprintf(path, sizeof path, "%s/%.255s", directory, entry->d_name);
        (void)unlink(path);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(directory);
}

/* Removes the directory if it was made by a companion that has been killed: a live one holds its lock. */
static void remove_stale(const char *directory)
{
    struct stat status;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && time(NULL) - status.st_mtime > STALE_S &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_tables(directory);
    (void)close(fd);
}

static void remove_all_stale(const char *place)
{
    char path[sizeof((struct companion *)0)->foreign_tables];
    DIR *dir = opendir(place);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, TABLES_PREFIX, strlen(TABLES_PREFIX)) == 0 &&
            snprintf(path, sizeof path, "%s/%s", place, entry->d_name) < (int)sizeof path)
            remove_stale(path);
    if (dir)
        (void)closedir(dir);
}

/* Tells a running program: the first letter comes last, because it may be reading the name. */
static void tell_tables(const struct companion *c, struct arena_header *arena)
{
    memcpy(arena->open_tables + 1, c->foreign_tables + 1, sizeof arena->open_tables - 1);
    __atomic_store_n(&arena->open_tables[0], c->foreign_tables[0], __ATOMIC_RELEASE);
}

static bool tables_open(struct companion *c)
{
    const char *place = detour_default_place();
    if (strlen(place) > sizeof c->foreign_tables - sizeof "/" TABLES_PREFIX "XXXXXX" || !is_open_to_all(place))
        place = "/tmp";
    remove_all_stale(place);
    (void)snprintf(c->foreign_tables, sizeof c->foreign_tables, "%.*s/" TABLES_PREFIX "XXXXXX",
                   (int)(sizeof c->foreign_tables - sizeof "/" TABLES_PREFIX "XXXXXX"), place);
    if (mkdtemp(c->foreign_tables) && chmod(c->foreign_tables, 0755) == 0) {
        c->foreign_fd = open(c->foreign_tables, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)flock(c->foreign_fd, LOCK_SH);
        return true;
    }
    companion_log(c, "Programs that become another user will lose their addresses: %s: %s.", c->foreign_tables,
                  strerror(errno));
    c->foreign_tables[0] = '\0';
    return false;
}

void companion_tables_need(struct companion *c)
{
    if (c->has_needed_tables || !c->setup->tables[0] || geteuid() != 0)
        return;
    c->has_needed_tables = true;
    if (!tables_open(c))
        return;
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->arena)
            tell_tables(c, p->arena);
}

void companion_tables_close(struct companion *c)
{
    if (!c->foreign_tables[0])
        return;
    remove_tables(c->foreign_tables);
    (void)close(c->foreign_fd);
}

/* --- the store of recipes --- */

static bool store_map(struct companion_store *store)
{
    store->base = mmap(NULL, store->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, store->fd, 0);
    if (store->base == MAP_FAILED)
        return false;
    store->read_fd = companion_memory_reopen(store->fd);
    return store->read_fd >= 0;
}

bool companion_store_open(struct companion *c, struct error *err)
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
        (void)error_set(err, ERR_IO, "memory files cannot be made (memfd_create): %s%s", strerror(errno),
                        errno == EPERM || errno == ENOSYS ? "; allow memfd_create in the seccomp filter of this "
                                                            "container"
                                                          : "");
        return false;
    }
    uint32_t n_slots = store->size_bytes >= ((uint64_t)64 << 20) ? STORE_SLOTS : STORE_SLOTS / 16;
    return recipe_store_init(store->base, store->size_bytes, n_slots) == 0;
}

/* --- arenas: creating one with its header, keeping memory allocated ahead of what is in use --- */

#define ARENA_BYTES_DEFAULT ((uint64_t)1 << 30)
#define ARENA_BYTES_LIMITED ((uint64_t)64 << 20) /* under RLIMIT_AS */
#define ARENA_BYTES_MIN ((uint64_t)4 << 20)
#define AHEAD_BYTES_DEFAULT ((uint64_t)1 << 20)
#define PAGE_BYTES 4096u

struct arena_chunk *companion_arena_table(const struct companion_process *process)
{
    return (struct arena_chunk *)(void *)((char *)process->arena + process->table_offset);
}

char *companion_arena_data(const struct companion_process *process, uint32_t chunk)
{
    return (char *)process->arena + process->data_offset + (uint64_t)chunk * ARENA_CHUNK_BYTES;
}

uint32_t companion_arena_n_chunks(const struct companion_process *process)
{
    uint32_t n = atomic_load_explicit(&process->arena->n_chunks, memory_order_acquire);
    return n < process->chunk_limit ? n : process->chunk_limit;
}

static uint64_t wanted_size(const struct companion *c, uint64_t wanted_bytes)
{
    struct rlimit limit;
    uint64_t size = c->setup->arena_bytes ? c->setup->arena_bytes : ARENA_BYTES_DEFAULT;
    if (wanted_bytes && wanted_bytes < size)
        size = wanted_bytes;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > ARENA_BYTES_LIMITED)
        size = ARENA_BYTES_LIMITED;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur)
        size = limit.rlim_cur;
    if (size < ARENA_BYTES_MIN)
        size = ARENA_BYTES_MIN;
    return size / PAGE_BYTES * PAGE_BYTES;
}

/* The first chunk begins on a page, so that a thread's first records are on as few pages as they can be. */
static void layout(struct companion_process *process, uint64_t size_bytes)
{
    struct arena_header *arena = process->arena;
    uint64_t table = (sizeof *arena + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    uint64_t n = (size_bytes - table) / (ARENA_CHUNK_BYTES + sizeof(struct arena_chunk));
    uint64_t data = table + n * sizeof(struct arena_chunk);
    data = (data + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    process->chunk_limit = (uint32_t)((size_bytes - data) / ARENA_CHUNK_BYTES);
    process->table_offset = table;
    process->data_offset = data;
    arena->size_bytes = size_bytes;
    arena->chunk_table_offset = table;
    arena->chunk_data_offset = data;
    arena->chunk_limit = process->chunk_limit;
}

/* The log leaves room for the records that hold sums, and in the files for the profiles. */
static void set_trace_limit(struct arena_header *arena, const struct companion_setup *setup)
{
    uint64_t n_chunks = setup->trace_bytes / ARENA_CHUNK_BYTES, n_files = setup->max_bytes / 2 / ARENA_CHUNK_BYTES;
    arena->trace_chunk_limit = arena->chunk_limit / 2;
    if (n_chunks && n_chunks < arena->trace_chunk_limit)
        arena->trace_chunk_limit = (uint32_t)n_chunks;
    if (n_files && n_files < arena->trace_chunk_limit)
        arena->trace_chunk_limit = (uint32_t)n_files;
}

static void fill_header(const struct companion *c, struct companion_process *process)
{
    struct arena_header *arena = process->arena;
    const struct companion_setup *setup = c->setup;
    arena->version = ARENA_VERSION;
    arena->header_bytes = sizeof *arena;
    arena->pid = process->pid;
    arena->uid = geteuid();
    arena->start_ns = clock_now_ns(CLOCK_REALTIME);
    arena->user_ticks_before = process->at_start.user_ticks;
    arena->system_ticks_before = process->at_start.system_ticks;
    arena->trace = setup->trace;
    arena->watches_per_s = setup->watches_per_s;
    arena->lacks = setup->lacks;
    arena->deepbind = setup->deepbind;
    arena->delay_sampling = setup->delay_sampling;
    arena->begin_ns = setup->delay_ns ? c->start_ns + setup->delay_ns : 0;
    arena->end_of_sampling_ns = setup->duration_ns ? c->start_ns + setup->delay_ns + setup->duration_ns : 0;
    arena->start_signal = setup->start_signal;
    arena->stop_signal = setup->stop_signal;
    arena->lifetime_s = setup->lifetime_s;
    arena->trust_skid = setup->trust_skid;
    arena->tick_ns = setup->tick_ns;
    arena->test_sample_ns = setup->test_sample_ns;
    arena->debug = setup->debug;
    arena->min_bytes = setup->min_bytes;
    arena->sample_bytes = setup->sample_bytes;
    arena->raise_most = setup->raise_most;
    arena->has_small_sites = setup->has_small_sites;
    arena->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    process->page_bytes = arena->page_bytes;
    process->n_homes = arena->n_homes = c->n_homes;
    arena->n_events = setup->n_events;
    memcpy(arena->events, setup->events, sizeof arena->events);
    if (!process->is_foreign)
        memcpy(arena->tables, setup->tables, sizeof arena->tables);
    memcpy(arena->open_tables, c->foreign_tables, sizeof arena->open_tables);
    (void)snprintf(process->left, sizeof process->left, DETOUR_LEFT_PREFIX "%08x-%u-%llx", c->host_id, process->pid,
                   (unsigned long long)arena->start_ns);
    (void)snprintf(arena->left, sizeof arena->left, "%.3900s/%s", setup->dir, process->left);
    set_trace_limit(arena, setup);
    memcpy(arena->magic, ARENA_MAGIC, sizeof arena->magic);
}

/* In the process's own directory the arena outlives everything that dies; elsewhere it is memory. */
static int create_memory(struct companion_process *process, uint64_t size_bytes)
{
    char path[DETOUR_PATH_MAX + 48];
    process->is_arena_file = false;
    if (process->work_dir) {
        (void)snprintf(path, sizeof path, "%s/" DETOUR_ARENA, process->work_dir);
        int fd = companion_memory_create_file(path, size_bytes);
        process->is_arena_file = fd >= 0;
        if (fd >= 0)
            return fd;
    }
    return companion_memory_create("locus-arena", size_bytes);
}

static int arena_map(struct companion_process *process, uint64_t size_bytes)
{
    process->arena_fd = create_memory(process, size_bytes);
    if (process->arena_fd < 0)
        return -1;
    void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, process->arena_fd, 0);
    if (base == MAP_FAILED) {
        (void)close(process->arena_fd);
        process->arena_fd = -1;
        return -1;
    }
    process->arena = base;
    process->size_bytes = size_bytes;
    return 0;
}

/* A pipe that is read and written through one descriptor: there is no other end that could be lost. Its inode is
 * unique, so that the program can tell it from any file that gets its number later. */
static int bell_open(void)
{
    char path[64];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return fd;
}

int companion_arena_create(const struct companion *c, struct companion_process *process, uint64_t wanted_bytes,
                           struct error *err)
{
    uint64_t size = wanted_size(c, wanted_bytes);
    process->bell_fd = bell_open();
    if (process->bell_fd < 0)
        return error_set(err, ERR_IO, "A pipe cannot be made: %s.", strerror(errno));
    while (arena_map(process, size) != 0) {
        size = size / 4 / PAGE_BYTES * PAGE_BYTES;
        if (size < ARENA_BYTES_MIN)
            return error_set(err, ERR_MEMORY, "An arena of %llu bytes cannot be created: %s.",
                             (unsigned long long)ARENA_BYTES_MIN, strerror(errno));
    }
    layout(process, size);
    fill_header(c, process);
    if (posix_fallocate(process->arena_fd, 0, (off_t)process->table_offset) != 0)
        return error_set(err, ERR_MEMORY, "There is no memory for an arena.");
    (void)companion_arena_back(c, process);
    return 0;
}

/* Chunks that are in use, or will be at once. */
static uint32_t n_chunks_expected(const struct companion_process *process)
{
    uint32_t n = companion_arena_n_chunks(process);
    uint64_t awaited = process->awaited_bytes > process->data_offset
                           ? (process->awaited_bytes - process->data_offset) / ARENA_CHUNK_BYTES
                           : 0;
    if (awaited > process->chunk_limit)
        awaited = process->chunk_limit;
    return awaited > n ? (uint32_t)awaited : n;
}

static bool back_range(const struct companion_process *process, uint64_t from, uint64_t to)
{
    return fallocate(process->arena_fd, 0, (off_t)from, (off_t)(to - from)) == 0;
}

/* Allocates the memory of the chunks up to number n, and that of their places in the table. */
static bool back_chunks(const struct companion_process *process, uint32_t n)
{
    uint64_t table = process->table_offset, data = process->data_offset, first = process->n_chunks_backed;
    return back_range(process, table + first * sizeof(struct arena_chunk), table + n * sizeof(struct arena_chunk)) &&
           back_range(process, data + first * ARENA_CHUNK_BYTES, data + (uint64_t)n * ARENA_CHUNK_BYTES);
}

bool companion_arena_back(const struct companion *c, struct companion_process *process)
{
    uint64_t ahead = (c->setup->ahead_bytes ? c->setup->ahead_bytes : AHEAD_BYTES_DEFAULT) / ARENA_CHUNK_BYTES;
    uint32_t used = n_chunks_expected(process);
    if (ahead < used / 4)
        ahead = used / 4;
    uint64_t wanted = used + ahead < process->chunk_limit ? used + ahead : process->chunk_limit;
    bool is_enough = process->n_chunks_backed >= used + ahead - ahead / 4;
    if (is_enough || process->n_chunks_backed >= wanted)
        return false;
    if (!back_chunks(process, (uint32_t)wanted)) {
        /* A hole that cannot be filled would kill the program on its first touch: the arena ends before it. */
        int problem = errno;
        used = companion_arena_n_chunks(process);
        process->chunk_limit = process->n_chunks_backed > used ? process->n_chunks_backed : used;
        process->arena->chunk_limit = process->chunk_limit;
        companion_log(c, "No memory for more than %u chunks of process %u: %s.", process->chunk_limit, process->pid,
                      strerror(problem));
        return false;
    }
    process->n_chunks_backed = (uint32_t)wanted;
    return true;
}

struct arena_thread *companion_arena_threads(const struct companion_process *process, uint32_t chunk, size_t *n)
{
    uint32_t n_chunks = companion_arena_n_chunks(process);
    const struct arena_chunk *first = &companion_arena_table(process)[chunk];
    bool has_threads = chunk < n_chunks && first->kind == ARENA_THREADS;
    *n = has_threads ? arena_run_used(first, n_chunks - chunk) / sizeof(struct arena_thread) : 0;
    return (struct arena_thread *)(void *)companion_arena_data(process, chunk);
}

uint64_t companion_arena_n_taken(const struct companion_process *process)
{
    uint64_t n_taken = 0;
    uint32_t n_chunks = companion_arena_n_chunks(process);
    for (uint32_t i = 0; i < n_chunks; i++) {
        size_t n;
        const struct arena_thread *threads = companion_arena_threads(process, i, &n);
        for (size_t t = 0; t < n; t++)
            for (uint32_t e = 0; e < ARENA_EVENTS_MAX; e++)
                n_taken += atomic_load_explicit(&threads[t].taken[e], memory_order_relaxed);
    }
    return n_taken;
}

void companion_arena_close(struct companion_process *process)
{
    if (process->arena)
        (void)munmap(process->arena, process->size_bytes);
    if (process->arena_fd >= 0)
        (void)close(process->arena_fd);
    if (process->bell_fd >= 0)
        (void)close(process->bell_fd);
    process->arena = NULL;
    process->arena_fd = process->bell_fd = -1;
}
