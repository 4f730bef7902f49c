/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements on their way through a directory of this node's own: because the user wants it so (--local), or because
 * the measurement directory does not take them. Moving them on is a worker's job. Ordinary code. */
#include "companion/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "fmt/file.h"
#include "measurement/runs.h"

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

void companion_trouble(struct companion *c, const char *why)
{
    char text[DETOUR_PATH_MAX + 1800];
    if (c->has_said_trouble)
        return;
    c->has_said_trouble = true;
    if (c->detour.path[0])
        (void)snprintf(text, sizeof text,
                       "%s. What does not get there is kept in %s; 'hpcrun --collect %.600s' brings "
                       "it there.",
                       why, c->detour.path, c->setup->dir);
    else
        (void)snprintf(text, sizeof text, "%s, and no other place for the measurements was found.", why);
    companion_log(c, "%s", text);
    if (c->done_fd >= 0)
        (void)!write(c->done_fd, text, strlen(text));
    else if (c->setup->terminal[0])
        c->trouble = strdup(text);
}

/* While the program runs the terminal is its own; and what is no terminal any more, or somebody else's by now, is not
 * written to. */
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

/* Lines of files that take lines go to the end of their namesakes. */
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

int detour_gather(const char *path, const char *target, struct gather_result *result, struct error *err)
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
