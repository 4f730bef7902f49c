/* SPDX-License-Identifier: BSD-3-Clause */
/* Collecting what was left behind; see launch.h. An arena that lies beside half-written files is the better source, so
 * those are made again. Ordinary code. */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "base/input.h"
#include "companion/state.h"
#include "fmt/file.h"

struct recovery {
    char target[DETOUR_PATH_MAX];
    struct gather_result result;
    size_t n_arenas, n_problems;
};

static void complain(struct recovery *recovery, const char *sentence)
{
    recovery->n_problems++;
    (void)fprintf(stderr, "hpcrun: %s%s\n", sentence, sentence[strlen(sentence) - 1] == '.' ? "" : ".");
}

/* What the companion knew, without which names of variables are missing; all zero when it was of another version. */
static struct companion_setup *read_setup(const char *path)
{
    char name[DETOUR_PATH_MAX + 16];
    struct buf bytes = {0};
    struct error err;
    struct companion_setup *setup = calloc(1, sizeof *setup);
    (void)snprintf(name, sizeof name, "%s/" DETOUR_SETUP, path);
    if (!setup || file_read(name, &bytes, &err) != 0)
        return setup;
    const struct detour_setup *saved = (const void *)bytes.data;
    if (bytes.len_bytes == sizeof *saved && saved->size_bytes == sizeof *saved &&
        !strncmp(saved->version, PACKAGE_VERSION, sizeof saved->version))
        *setup = saved->setup;
    buf_fini(&bytes);
    return setup;
}

/* Removes the files beside the arena: a worker was writing them. */
static void remove_files(const char *path)
{
    char name[2 * DETOUR_PATH_MAX];
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, DETOUR_ARENA) != 0)
            (void)unlink(name);
    }
    (void)closedir(dir);
}

/* Files of a checkpoint are replaced. */
static void take_claimed(struct companion_process *process)
{
    char name[sizeof process->arena->claimed + 1];
    struct error err;
    memcpy(name, process->arena->claimed, sizeof process->arena->claimed);
    name[sizeof name - 1] = '\0';
    if (!process->work_dir && name[0] && !strchr(name, '/') && names_parse(name, &process->shared->name, &err) == 0)
        process->shared->has_name = 1;
}

static int write_arena(struct companion *c, struct companion_process *process, struct recovery *recovery)
{
    const struct arena_header *arena = process->arena;
    if (process->size_bytes < sizeof *arena || memcmp(arena->magic, ARENA_MAGIC, sizeof arena->magic) != 0)
        return 0; /* it died before it began */
    bool has_ended = atomic_load(&((struct arena_header *)(uintptr_t)arena)->state) == ARENA_ENDED;
    process->pid = arena->pid;
    process->end_state = has_ended ? "complete" : "killed";
    if (companion_write_prepare(process))
        take_claimed(process);
    if (!process->shared || companion_write_files(c, process, false) != 0) {
        complain(recovery, process->shared ? process->shared->trouble : "Out of memory");
        return -1;
    }
    recovery->n_arenas++;
    return 0;
}

/* Makes files of the arena in the directory of one process. */
static void recover_arena(char *path, const struct companion_setup *setup, struct recovery *recovery)
{
    char name[DETOUR_PATH_MAX + 16];
    struct stat status;
    (void)snprintf(name, sizeof name, "%s/" DETOUR_ARENA, path);
    int fd = input_open(AT_FDCWD, name, O_NOFOLLOW, &status);
    if (fd < 0)
        return;
    struct companion c = {.setup = setup, .host_id = names_host_id(), .is_worker = true};
    struct companion_process process = {.arena_fd = -1, .bell_fd = -1, .map_fd = -1, .dump_fd = -1, .work_dir = path};
    if (status.st_uid == geteuid() && status.st_size > 0) {
        process.size_bytes = (uint64_t)status.st_size;
        process.arena = mmap(NULL, process.size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    }
    (void)close(fd);
    if (!process.arena || process.arena == MAP_FAILED)
        return;
    remove_files(path);
    if (write_arena(&c, &process, recovery) == 0)
        (void)unlink(name);
    (void)munmap(process.arena, process.size_bytes);
    if (process.shared)
        (void)munmap(process.shared, sizeof *process.shared);
}

/* Makes files of an arena that a process has left in the measurement directory. What it says of where else to look is
 * believed: nobody but its user can have made it. */
static void recover_left(struct recovery *recovery, const char *path)
{
    struct stat status;
    struct companion_setup *setup = calloc(1, sizeof *setup);
    int fd = setup ? input_open(AT_FDCWD, path, O_NOFOLLOW, &status) : -1;
    struct companion c = {.setup = setup, .host_id = names_host_id(), .is_worker = true};
    struct companion_process process = {.arena_fd = -1, .bell_fd = -1, .map_fd = -1, .dump_fd = -1};
    if (fd >= 0 && status.st_uid == geteuid() &&
        (size_t)status.st_size >= sizeof *process.arena && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        process.size_bytes = (uint64_t)status.st_size;
        process.arena = mmap(NULL, process.size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    }
    if (process.arena && process.arena != MAP_FAILED) {
        memcpy(setup->dir, recovery->target, sizeof setup->dir);
        memcpy(setup->tables, process.arena->tables, sizeof setup->tables);
        setup->tables[sizeof setup->tables - 1] = '\0';
        process.pid = process.arena->pid;
        companion_strays_take(&c, &process);
        companion_strays_look(&c, INT64_MAX, true);
        if (write_arena(&c, &process, recovery) == 0 && unlink(path) == 0)
            recovery->result.n_processes++;
        (void)munmap(process.arena, process.size_bytes);
    }
    if (process.shared)
        (void)munmap(process.shared, sizeof *process.shared);
    if (fd >= 0)
        (void)close(fd);
    free(setup);
}

static void recover_all_left(struct recovery *recovery)
{
    char path[DETOUR_PATH_MAX + 300];
    DIR *dir = opendir(recovery->target);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        (void)snprintf(path, sizeof path, "%s/%s", recovery->target, entry->d_name);
        if (!strncmp(entry->d_name, DETOUR_LEFT_PREFIX, sizeof DETOUR_LEFT_PREFIX - 1))
            recover_left(recovery, path);
    }
    if (dir)
        (void)closedir(dir);
}

static void recover_arenas(const char *path, struct recovery *recovery)
{
    char name[DETOUR_PATH_MAX];
    struct companion_setup *setup = read_setup(path);
    DIR *dir = setup ? opendir(path) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        int len = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && len < (int)sizeof name)
            recover_arena(name, setup, recovery);
    }
    if (dir)
        (void)closedir(dir);
    free(setup);
}

static int recover_one(void *ctx, const char *path)
{
    struct recovery *recovery = ctx;
    struct error err;
    recover_arenas(path, recovery);
    if (detour_gather(path, recovery->target, &recovery->result, &err) != 0)
        complain(recovery, err.text);
    (void)detour_remove(path, recovery->target);
    return 0;
}

/* The directory may be gone, with files for it still on their way: then it is made again. */
static int find_target(const char *wanted, bool allows_foreign, struct recovery *recovery, struct error *err)
{
    char *real = NULL;
    int status = names_directory_make(wanted, allows_foreign, &real, err);
    if (status == 0)
        (void)snprintf(recovery->target, sizeof recovery->target, "%s", real);
    free(real);
    return status;
}

size_t recover_quietly(const char *dir)
{
    struct recovery recovery = {0};
    if (!detour_count_left(dir))
        return 0;
    (void)snprintf(recovery.target, sizeof recovery.target, "%s", dir);
    recover_all_left(&recovery);
    pending_mark_sweep(dir);
    return recovery.n_arenas;
}

int recover_run(const struct hpcrun_options *options)
{
    struct recovery recovery = {0};
    struct error err;
    char local[PATH_MAX], common[PATH_MAX];
    if (find_target(options->collect, options->allows_foreign, &recovery, &err) != 0) {
        (void)fprintf(stderr, "hpcrun: %s\n", err.text);
        return 1;
    }
    if (!options->local || !realpath(options->local, local))
        local[0] = '\0';
    if (!realpath(detour_default_place(), common))
        common[0] = '\0';
    if (local[0])
        (void)detour_each(local, recovery.target, recover_one, &recovery);
    if (common[0] && strcmp(common, local) != 0)
        (void)detour_each(common, recovery.target, recover_one, &recovery);
    recover_all_left(&recovery);
    pending_mark_sweep(recovery.target);
    if (recovery.result.n_processes || recovery.n_problems)
        (void)printf("%zu processes collected into %s, %zu of them from records that were left behind.\n",
                     recovery.result.n_processes, recovery.target, recovery.n_arenas);
    else
        (void)printf("Nothing on this node is on its way to %s.\n", recovery.target);
    return recovery.n_problems ? 1 : 0;
}
