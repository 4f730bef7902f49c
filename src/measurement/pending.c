/* SPDX-License-Identifier: BSD-3-Clause */
/* The marker of a measurement directory that is still being written, and detours, where files wait elsewhere; see
 * pending.h. The marker's text is for people and for readers on the same host: "running <program>" or "writing
 * <program>". Ordinary code. */
#include "measurement/pending.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input.h"
#include "base/path.h"
#include "base/process.h"
#include "measurement/names.h"

#define MARK_PREFIX ".writing-"
#define STEP_MS 20

static void mark_write(const struct pending_mark *mark)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%s %ld\n", mark->is_writing ? "writing" : "running", (long)mark->program);
    if (pwrite(mark->fd, text, (size_t)len, 0) == len)
        (void)!ftruncate(mark->fd, len);
}

int pending_mark_open(struct pending_mark *mark, const char *dir, pid_t program, struct error *err)
{
    (void)snprintf(mark->path, sizeof mark->path, "%s/" MARK_PREFIX "%08x-%ld", dir, names_host_id(), (long)getpid());
    mark->fd = open(mark->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    /* What is there belongs to an earlier process with our pid, or is a trap. */
    if (mark->fd < 0 && errno == EEXIST && unlink(mark->path) == 0)
        mark->fd = open(mark->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (mark->fd < 0)
        return error_set(err, ERR_IO, "The marker %s cannot be created: %s.", mark->path, strerror(errno));
    (void)flock(mark->fd, LOCK_EX | LOCK_NB);
    mark->is_writing = false;
    mark->program = program;
    mark_write(mark);
    return 0;
}

void pending_mark_set(struct pending_mark *mark, bool is_writing, pid_t program)
{
    if (mark->fd < 0 || (mark->is_writing == is_writing && mark->program == program))
        return;
    mark->is_writing = is_writing;
    mark->program = program;
    mark_write(mark);
}

void pending_mark_close(struct pending_mark *mark)
{
    if (mark->fd < 0)
        return;
    (void)unlink(mark->path);
    (void)close(mark->fd);
    mark->fd = -1;
}

/* Neither the lock nor the program of a marker from another host can be checked: only its text counts. */
static enum pending_state mark_state(int dir_fd, const char *name, uint32_t own_host)
{
    char text[64] = "", word[16] = "";
    long program = 0;
    unsigned host = 0;
    int fd = input_open(dir_fd, name, O_NOFOLLOW, NULL);
    if (fd < 0)
        return PENDING_NONE;
    bool is_stale = flock(fd, LOCK_SH | LOCK_NB) == 0;
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    (void)sscanf(name, MARK_PREFIX "%x", &host);
    (void)sscanf(text, "%15s %ld", word, &program);
    bool is_here = host == own_host;
    if (is_here && is_stale)
        return PENDING_NONE;
    if (!strcmp(word, "writing"))
        return PENDING_WRITING;
    if (is_here && program > 0 && kill((pid_t)program, 0) != 0 && errno == ESRCH)
        return PENDING_WRITING;
    return PENDING_RUNNING;
}

uint64_t pending_begun_ns(const char *path)
{
    uint64_t first_ns = 0, at_ns;
    struct stat info;
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, MARK_PREFIX, sizeof MARK_PREFIX - 1) != 0 ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        at_ns = (uint64_t)info.st_mtim.tv_sec * CLOCK_S_NS + (uint64_t)info.st_mtim.tv_nsec;
        if (!first_ns || at_ns < first_ns)
            first_ns = at_ns;
    }
    if (dir)
        (void)closedir(dir);
    return first_ns;
}

#define CLOCKS_DIFFER_S 60 /* a file server's clock may go behind ours */

/* Whether the program that the marker in fd names still runs, and is no later one with its number. */
static bool program_runs(int fd, pid_t program)
{
    struct proc_stat process;
    struct stat marker;
    if (program <= 0 || !proc_stat_read(program, &process) || proc_stat_has_ended(&process) || fstat(fd, &marker) != 0)
        return false;
    double age_s =
        (double)clock_now_ns(CLOCK_BOOTTIME) / CLOCK_S_NS - (double)process.start / (double)sysconf(_SC_CLK_TCK);
    return (double)clock_now_ns(CLOCK_REALTIME) / CLOCK_S_NS - age_s < (double)marker.st_mtim.tv_sec + CLOCKS_DIFFER_S;
}

static pid_t read_program(int fd)
{
    char text[64] = "";
    long program = 0;
    (void)!pread(fd, text, sizeof text - 1, 0);
    (void)sscanf(text, "%*15s %ld", &program);
    return (pid_t)program;
}

/* What a marker says of its owner, the companion process of that number; false: nothing is wrong with that, or there is
 * no program any more. */
static bool is_in_trouble(int fd, pid_t companion, struct pending_trouble *trouble)
{
    struct proc_stat process;
    pid_t program = read_program(fd);
    *trouble = (struct pending_trouble){companion, program, flock(fd, LOCK_SH | LOCK_NB) == 0};
    if (trouble->is_dead)
        return program_runs(fd, program);
    return proc_stat_read(companion, &process) && (process.state == 'T' || process.state == 't');
}

bool pending_find_trouble(const char *path, struct pending_trouble *trouble)
{
    struct pending_trouble found;
    bool has = false;
    DIR *dir = opendir(path);
    *trouble = (struct pending_trouble){0};
    for (const struct dirent *entry; dir && !trouble->is_dead && (entry = readdir(dir));) {
        unsigned host = 0;
        long companion = 0;
        int fd = sscanf(entry->d_name, MARK_PREFIX "%x-%ld", &host, &companion) == 2 && host == names_host_id()
                     ? input_open(dirfd(dir), entry->d_name, O_NOFOLLOW, NULL)
                     : -1;
        if (fd >= 0 && is_in_trouble(fd, (pid_t)companion, &found)) {
            *trouble = found;
            has = true;
        }
        if (fd >= 0)
            (void)close(fd);
    }
    if (dir)
        (void)closedir(dir);
    return has;
}

/* Visits the markers of this host whose owners have died; returns their number. */
static unsigned sweep(const char *path, bool removes)
{
    char prefix[32];
    unsigned n = 0;
    int prefix_len = snprintf(prefix, sizeof prefix, MARK_PREFIX "%08x-", names_host_id());
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, prefix, (size_t)prefix_len) != 0)
            continue;
        int fd = input_open(dirfd(dir), entry->d_name, O_NOFOLLOW, NULL);
        bool is_stale = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
        n += is_stale;
        if (is_stale && removes && !program_runs(fd, read_program(fd)))
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        if (fd >= 0)
            (void)close(fd);
    }
    (void)closedir(dir);
    return n;
}

void pending_mark_sweep(const char *path)
{
    (void)sweep(path, true);
}

bool pending_has_stale(const char *path)
{
    return sweep(path, false) > 0;
}

static enum pending_state dir_state(const char *path, uint32_t own_host)
{
    enum pending_state worst = PENDING_NONE;
    DIR *dir = opendir(path);
    if (!dir)
        return PENDING_NONE;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, MARK_PREFIX, sizeof MARK_PREFIX - 1) != 0)
            continue;
        enum pending_state state = mark_state(dirfd(dir), entry->d_name, own_host);
        if (state > worst)
            worst = state;
    }
    (void)closedir(dir);
    return worst;
}

enum pending_state pending_wait(const char *dir, int timeout_ms)
{
    uint32_t own_host = names_host_id();
    for (int waited_ms = 0;; waited_ms += STEP_MS) {
        enum pending_state state = dir_state(dir, own_host);
        if (state != PENDING_WRITING || waited_ms >= timeout_ms)
            return state;
        const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
        (void)nanosleep(&step, NULL);
    }
}

/* --- copies --- */

#define COPY_NOTE "/.copy-of"

int pending_copy_note(const char *from, const char *to, struct error *err)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s" COPY_NOTE, to);
    if (symlink(from, path) == 0 || errno == EEXIST)
        return 0;
    return error_set(err, ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
}

bool pending_is_copy(const char *dir, char *from, size_t n_from)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s" COPY_NOTE, dir);
    ssize_t n = readlink(path, from, n_from - 1);
    from[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool pending_share(const char *old, const char *new)
{
    return linkat(AT_FDCWD, old, AT_FDCWD, new, AT_SYMLINK_FOLLOW) == 0 || (errno != EEXIST && symlink(old, new) == 0);
}

size_t pending_copy_rest(const char *from, const char *to,
                         bool (*is_left_out)(const struct names_file *file, const void *context), const void *context)
{
    char old[PATH_MAX], new[PATH_MAX];
    struct names_file file;
    struct error ignored;
    size_t n = 0;
    DIR *dir = opendir(from);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        bool is_topology = text_begins(entry->d_name, "topology-");
        if (entry->d_name[0] == '.' ||
            (!is_topology && (names_parse(entry->d_name, &file, &ignored) != 0 || is_left_out(&file, context))))
            continue;
        (void)snprintf(old, sizeof old, "%.3800s/%s", from, entry->d_name);
        (void)snprintf(new, sizeof new, "%.3800s/%s", to, entry->d_name);
        n += pending_share(old, new) && !is_topology && strcmp(file.suffix, "hpcrun") == 0;
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

/* --- files that wait elsewhere --- */

/* Detour directories; see pending.h. */

#define DETOUR_PREFIX "locus-detour-"
#define POINTER_PREFIX ".detour-"
#define OWNER "target"

const char *detour_default_place(void)
{
    const char *place = getenv("TMPDIR");
    return place && place[0] == '/' ? place : "/tmp";
}

static bool join(char path[DETOUR_PATH_MAX], const char *directory, const char *name)
{
    return snprintf(path, DETOUR_PATH_MAX, "%s/%s", directory, name) < DETOUR_PATH_MAX;
}

static bool write_text(int fd, const char *text)
{
    size_t len = strlen(text);
    return write(fd, text, len) == (ssize_t)len;
}

void detour_point(struct detour *detour)
{
    if (!detour->path[0] || detour->pointer[0])
        return;
    char host[256] = "", text[DETOUR_PATH_MAX + 260];
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(text, sizeof text, "%s:%s", host, detour->path);
    (void)snprintf(detour->pointer, sizeof detour->pointer, "%.4200s/" POINTER_PREFIX "%08x-%ld", detour->target,
                   names_host_id(), (long)getpid());
    (void)unlink(detour->pointer);
    if (symlink(text, detour->pointer) != 0)
        detour->pointer[0] = '\0';
}

int detour_open(struct detour *detour, const char *place, const char *target, struct error *err)
{
    char owner[DETOUR_PATH_MAX];
    *detour = (struct detour){.lock_fd = -1};
    if (!join(detour->path, place, DETOUR_PREFIX "XXXXXX") || !mkdtemp(detour->path)) {
        detour->path[0] = '\0';
        return error_set(err, ERR_IO, "A directory for files that are moved later cannot be made in %.600s: %s.", place,
                         strerror(errno));
    }
    if (join(owner, detour->path, OWNER))
        detour->lock_fd = open(owner, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (detour->lock_fd < 0 || flock(detour->lock_fd, LOCK_EX | LOCK_NB) != 0 || !write_text(detour->lock_fd, target)) {
        int code = error_set(err, ERR_IO, "%.600s: cannot be written: %s.", detour->path, strerror(errno));
        if (detour->lock_fd >= 0)
            (void)close(detour->lock_fd);
        (void)unlink(owner);
        (void)rmdir(detour->path);
        detour->path[0] = '\0';
        return code;
    }
    (void)snprintf(detour->target, sizeof detour->target, "%s", target);
    return 0;
}

/* Whether nothing but our own notes is left in it. */
static bool is_used_up(const char *path)
{
    bool is_empty = true;
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (const struct dirent *entry; is_empty && (entry = readdir(dir));)
        is_empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, OWNER) ||
                   !strcmp(entry->d_name, DETOUR_SETUP);
    (void)closedir(dir);
    return is_empty;
}

static bool remove_used_up(const char *path)
{
    char name[DETOUR_PATH_MAX];
    if (!is_used_up(path))
        return false;
    if (join(name, path, DETOUR_SETUP))
        (void)unlink(name);
    if (join(name, path, OWNER))
        (void)unlink(name);
    return rmdir(path) == 0;
}

void detour_unpoint(struct detour *detour)
{
    if (!detour->pointer[0] || !is_used_up(detour->path))
        return;
    (void)unlink(detour->pointer);
    detour->pointer[0] = '\0';
}

void detour_close(struct detour *detour)
{
    if (!detour->path[0])
        return;
    detour_unpoint(detour);
    (void)remove_used_up(detour->path);
    (void)close(detour->lock_fd);
    *detour = (struct detour){.lock_fd = -1};
}

static bool read_text(int fd, char *text, size_t n_text)
{
    ssize_t n = fd >= 0 ? pread(fd, text, n_text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return n > 0;
}

bool detour_target(const char *path, char target[DETOUR_PATH_MAX])
{
    char owner[DETOUR_PATH_MAX];
    int fd = join(owner, path, OWNER) ? input_open(AT_FDCWD, owner, O_NOFOLLOW, NULL) : -1;
    bool is_known = read_text(fd, target, DETOUR_PATH_MAX);
    if (fd >= 0)
        (void)close(fd);
    return is_known && target[0] == '/';
}

/* Visits the directory under its lock when it belongs to target and its companion is dead. */
static int visit_one(const char *path, const char *target, int (*visit)(void *ctx, const char *path), void *ctx)
{
    char owner[DETOUR_PATH_MAX], belongs[DETOUR_PATH_MAX];
    int result = 0;
    struct stat status;
    /* A place like /tmp is everybody's. */
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return 0;
    if (!detour_target(path, belongs) || (target && strcmp(belongs, target) != 0) || !join(owner, path, OWNER))
        return 0;
    int fd = input_open(AT_FDCWD, owner, O_NOFOLLOW, NULL);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        result = visit(ctx, path);
    (void)close(fd);
    return result;
}

int detour_each(const char *place, const char *target, int (*visit)(void *ctx, const char *path), void *ctx)
{
    char path[DETOUR_PATH_MAX];
    int result = visit_one(place, NULL, visit, ctx);
    DIR *dir = opendir(place);
    if (!dir)
        return result;
    for (const struct dirent *entry; result == 0 && (entry = readdir(dir));)
        if (!strncmp(entry->d_name, DETOUR_PREFIX, sizeof DETOUR_PREFIX - 1) && join(path, place, entry->d_name))
            result = visit_one(path, target, visit, ctx);
    (void)closedir(dir);
    return result;
}

static bool read_pointer(const char *path, char text[DETOUR_PATH_MAX])
{
    ssize_t n = readlink(path, text, DETOUR_PATH_MAX - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void remove_pointers(const char *directory, const char *detour_path)
{
    char path[DETOUR_PATH_MAX], text[DETOUR_PATH_MAX];
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, POINTER_PREFIX, sizeof POINTER_PREFIX - 1) != 0 ||
            !join(path, directory, entry->d_name))
            continue;
        const char *colon = read_pointer(path, text) ? strchr(text, ':') : NULL;
        if (colon && strcmp(colon + 1, detour_path) == 0)
            (void)unlink(path);
    }
    (void)closedir(dir);
}

bool detour_remove(const char *path, const char *target)
{
    if (!remove_used_up(path))
        return false;
    remove_pointers(target, path);
    return true;
}

unsigned detour_count_left(const char *directory)
{
    unsigned n = 0;
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        n += !strncmp(entry->d_name, DETOUR_LEFT_PREFIX, sizeof DETOUR_LEFT_PREFIX - 1);
    if (dir)
        (void)closedir(dir);
    return n;
}

void detour_each_pointer(const char *directory, void (*visit)(void *ctx, const char *place), void *ctx)
{
    char path[DETOUR_PATH_MAX], text[DETOUR_PATH_MAX];
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, POINTER_PREFIX, sizeof POINTER_PREFIX - 1) != 0 ||
            !join(path, directory, entry->d_name))
            continue;
        if (read_pointer(path, text))
            visit(ctx, text);
    }
    (void)closedir(dir);
}
