/* SPDX-License-Identifier: BSD-3-Clause */
/* Detours: measurements that are written to another directory first (measurement/pending.h), because the user asked for
 * that (--local), or because the measurement directory does not take them. Workers move them on. Then the recovery of
 * interrupted measurements (companion_collect): arenas that were left behind become files, and whatever lies elsewhere
 * is collected. Ordinary code. */
#include "config.h"

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

#include "base/input.h"
#include "companion/state.h"
#include "fmt/file.h"
#include "measurement/runs.h"

/* What lies beside the arenas, in native byte order: only the same build reads it, on the same machine. */
struct detour_setup {
    char version[32];
    uint64_t size_bytes; /* sizeof(struct detour_setup) */
    struct companion_setup setup;
};

bool companion_detour_start(struct companion *c, const char *place)
{
    struct error err;
    char path[DETOUR_PATH_MAX + 16];
    if (c->detour.path[0])
        return true;
    if (detour_open(&c->detour, place, c->setup->dir, &err) != 0) {
        companion_log(c, "%s", err.text);
        return false;
    }
    struct detour_setup saved = {.version = PACKAGE_VERSION, .size_bytes = sizeof saved, .setup = *c->setup};
    (void)snprintf(path, sizeof path, "%s/" DETOUR_SETUP, c->detour.path);
    (void)file_replace(path, &saved, sizeof saved, &err);
    return true;
}

bool companion_detour_process(struct companion *c, struct companion_process *process)
{
    char path[DETOUR_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/%u-%u", c->detour.path, process->pid, ++c->n_detours);
    detour_point(&c->detour);
    if (mkdir(path, 0700) == 0)
        process->work_dir = strdup(path);
    return process->work_dir != NULL;
}

void companion_detour_leave(struct companion_process *process)
{
    char path[DETOUR_PATH_MAX + 300];
    DIR *dir = process->work_dir ? opendir(process->work_dir) : NULL;
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        (void)snprintf(path, sizeof path, "%s/%s", process->work_dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    (void)rmdir(process->work_dir);
    free(process->work_dir);
    process->work_dir = NULL;
}

void companion_detour_drop_arena(const struct companion_process *process)
{
    char path[DETOUR_PATH_MAX + 48];
    if (!process->work_dir)
        return;
    (void)snprintf(path, sizeof path, "%s/" DETOUR_ARENA, process->work_dir);
    (void)unlink(path);
}

void companion_drop_left(const struct companion *c, const struct companion_process *process)
{
    char path[DETOUR_PATH_MAX + 80];
    (void)snprintf(path, sizeof path, "%s/%s", companion_dir(c), process->left);
    if (process->left[0])
        (void)unlink(path);
}

/* Each text after the first begins a line of its own. */
void companion_say(struct companion *c, const char *text)
{
    struct buf all = {0};
    const char *before = c->trouble ? c->trouble : "";
    bool is_first = c->done_fd >= 0 ? !c->has_said : !*before;
    buf_printf(&all, "%s%s%s", c->done_fd >= 0 ? "" : before, is_first ? "" : "\nhpcrun: ", text);
    if (c->done_fd >= 0) {
        (void)!write(c->done_fd, all.data, all.len_bytes);
    } else if (c->setup->terminal[0]) {
        free(c->trouble);
        c->trouble = strdup(all.data ? all.data : text);
    }
    c->has_said = true;
    buf_fini(&all);
}

void companion_trouble(struct companion *c, const char *why)
{
    char text[DETOUR_PATH_MAX + 1800];
    if (c->has_said_trouble)
        return;
    c->has_said_trouble = true;
    if (c->detour.path[0])
        (void)snprintf(text, sizeof text,
                       "%s. Files that do not get there are kept in %s; 'hpcrun --collect %.600s' "
                       "moves them there.",
                       why, c->detour.path, c->setup->dir);
    else
        (void)snprintf(text, sizeof text, "%s, and no other place for the measurements was found.", why);
    companion_log(c, "%s", text);
    companion_say(c, text);
}

/* While the program runs, the terminal belongs to it. Nothing is written to a path that is not a terminal any more, or
 * that belongs to somebody else by now. */
void companion_tell(struct companion *c)
{
    char text[DETOUR_PATH_MAX + 1900];
    struct stat status;
    if (!c->trouble || c->is_launched)
        return;
    (void)snprintf(text, sizeof text, "hpcrun: %s\r\n", c->trouble);
    int fd = open(c->setup->terminal, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && isatty(fd) && fstat(fd, &status) == 0 && status.st_uid == geteuid())
        (void)!write(fd, text, strlen(text));
    if (fd >= 0)
        (void)close(fd);
    free(c->trouble);
    c->trouble = NULL;
}

/* Files of lines are appended to the files of the same name. */
static bool append_file(const char *from, const char *to)
{
    struct buf text = {0};
    struct error err;
    if (file_read(from, &text, &err) != 0)
        return false;
    int fd = file_open_lines(to);
    bool is_done = fd >= 0 && write(fd, text.data, text.len_bytes) == (ssize_t)text.len_bytes;
    if (fd >= 0)
        (void)close(fd);
    buf_fini(&text);
    return is_done;
}

static int gather_entry(const char *path, const char *name, const char *target, struct gather_result *result,
                        struct error *err)
{
    char from[DETOUR_PATH_MAX + 300], to[DETOUR_PATH_MAX + 300];
    struct stat status;
    (void)snprintf(from, sizeof from, "%s/%s", path, name);
    (void)snprintf(to, sizeof to, "%s/%s", target, name);
    bool has_lines = !strncmp(name, "index-", 6) || !strncmp(name, "companion-", 10);
    if (has_lines)
        return append_file(from, to) ? unlink(from)
                                     : error_set(err, ERR_IO, "%.600s: cannot write: %s", to, strerror(errno));
    if (name[0] == '.' || stat(from, &status) != 0 || !S_ISDIR(status.st_mode))
        return 0;
    int code = gather_files(from, target, result, err);
    if (!code)
        (void)rmdir(from);
    return code;
}

/* Moves everything in the detour directory at path into target, files of lines too.  err: ERR_IO, ERR_MEMORY */
static int detour_gather(const char *path, const char *target, struct gather_result *result, struct error *err)
{
    int code = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return error_set(err, ERR_IO, "%.600s: cannot read: %s", path, strerror(errno));
    for (const struct dirent *entry; !code && (entry = readdir(dir));)
        code = gather_entry(path, entry->d_name, target, result, err);
    (void)closedir(dir);
    return code;
}

int companion_detour_note(const struct companion_process *process, const struct names_file *name, struct error *err)
{
    const struct process_shared *shared = process->shared;
    bool is_elsewhere = process->work_dir && !process->writes_past && shared->has_name && !shared->is_name_local;
    return is_elsewhere ? gather_note(process->work_dir, name, &shared->name, err) : 0;
}

int companion_detour_gather(const struct companion *c, const struct companion_process *process)
{
    struct error err;
    struct gather_result result = {0};
    if (gather_files(process->work_dir, companion_dir(c), &result, &err) == 0)
        return 0;
    (void)snprintf(process->shared->trouble, sizeof process->shared->trouble, "%s", err.text);
    return 1;
}

void companion_detour_end(struct companion *c)
{
    struct error err;
    struct gather_result result = {0};
    if (!c->detour.path[0])
        return;
    pending_mark_set(&c->mark, true, 0);
    (void)detour_gather(c->detour.path, companion_dir(c), &result, &err);
    (void)detour_close(&c->detour);
}

/* --- collecting what was left behind --- */

/* An arena that lies beside half-written files is the better source, so those are made again. */

struct recovery {
    char target[DETOUR_PATH_MAX];
    struct gather_result result;
    size_t n_arenas, n_problems;
    void (*tell)(const char *sentence);
};

static void complain(struct recovery *recovery, const char *sentence)
{
    recovery->n_problems++;
    recovery->tell(sentence);
}

/* What the companion knew; without it, names of variables are missing. All zero when the companion was of another
 * version. */
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

/* Makes files of an arena that a process has left in the measurement directory. The paths in it are trusted: nobody but
 * its user can have made it. */
static void recover_left(struct recovery *recovery, const char *path)
{
    struct stat status;
    struct companion_setup *setup = calloc(1, sizeof *setup);
    int fd = setup ? input_open(AT_FDCWD, path, O_NOFOLLOW, &status) : -1;
    struct companion c = {.setup = setup, .host_id = names_host_id(), .is_worker = true};
    struct companion_process process = {.arena_fd = -1, .bell_fd = -1, .map_fd = -1, .dump_fd = -1};
    if (fd >= 0 && status.st_uid == geteuid() && (size_t)status.st_size >= sizeof *process.arena &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
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

size_t companion_collect_left(const char *dir, void (*tell)(const char *sentence))
{
    struct recovery recovery = {.tell = tell};
    if (!detour_count_left(dir))
        return 0;
    (void)snprintf(recovery.target, sizeof recovery.target, "%s", dir);
    recover_all_left(&recovery);
    pending_mark_sweep(dir);
    return recovery.n_arenas;
}

int companion_collect(const char *dir, const char *place, bool allows_foreign, void (*tell)(const char *sentence),
                      struct companion_collected *collected, struct error *err)
{
    struct recovery recovery = {.tell = tell};
    char local[PATH_MAX], common[PATH_MAX];
    int code = find_target(dir, allows_foreign, &recovery, err);
    if (code != 0)
        return code;
    if (!place || !realpath(place, local))
        local[0] = '\0';
    if (!realpath(detour_default_place(), common))
        common[0] = '\0';
    if (local[0])
        (void)detour_each(local, recovery.target, recover_one, &recovery);
    if (common[0] && strcmp(common, local) != 0)
        (void)detour_each(common, recovery.target, recover_one, &recovery);
    recover_all_left(&recovery);
    pending_mark_sweep(recovery.target);
    *collected = (struct companion_collected){
        .n_processes = recovery.result.n_processes, .n_arenas = recovery.n_arenas, .n_problems = recovery.n_problems};
    (void)snprintf(collected->dir, sizeof collected->dir, "%s", recovery.target);
    return 0;
}
