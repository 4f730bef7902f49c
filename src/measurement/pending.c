/* SPDX-License-Identifier: BSD-3-Clause */
/* The marker of a measurement directory that is still being written; see pending.h. The text is for people and for
 * readers on the same host: "running <program>" or "writing <program>". Ordinary code. */
#include "measurement/pending.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
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
    /* What stands there is of an earlier process with our number, or a trap. */
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

/* A marker made on another host cannot be asked for its lock or its program: only its word counts. */
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
        if (is_stale && removes)
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
