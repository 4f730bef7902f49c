/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting a database in place. */
#include "export/database.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch.h"
#include "export/experiment.h"
#include "export/metric-files.h"
#include "export/v4-export.h"
#include "fmt/file.h"

#define METRICS_YAML "default.yaml"

/* The files of a database; src is one only beside them. */
static bool is_ours(const char *name)
{
    size_t len = strlen(name);
    for (enum v4_kind kind = V4_META; kind < V4_KINDS; kind++)
        if (strcmp(name, v4_file_name(kind)) == 0)
            return true;
    return strcmp(name, DATABASE_JSON) == 0 || strcmp(name, "experiment.xml") == 0 ||
           (len > 10 && strcmp(name + len - 10, ".metric-db") == 0);
}

/* True for a directory "metrics" that holds nothing but ours. */
static bool is_metrics(int parent, const char *name)
{
    int fd = strcmp(name, "metrics") == 0 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    bool all = directory != NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        all = all && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                      strcmp(entry->d_name, METRICS_YAML) == 0);
    if (directory)
        (void)closedir(directory);
    else if (fd >= 0)
        (void)close(fd);
    return all;
}

/* Links and the like are nobody's files: what they lead to is not ours to replace or remove. */
static bool is_of_kind(int directory, const char *name, mode_t kind)
{
    struct stat info;
    return fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && (info.st_mode & S_IFMT) == kind;
}

/* A complete database in either form; nothing else may hold a directory src that we remove. */
static bool is_database(int directory)
{
    return is_of_kind(directory, DATABASE_JSON, S_IFREG) || is_of_kind(directory, "experiment.xml", S_IFREG);
}

static bool belongs(int directory, const char *name, bool has_sources)
{
    if (is_ours(name))
        return is_of_kind(directory, name, S_IFREG);
    if (strcmp(name, SOURCES_DIRECTORY) == 0)
        return has_sources && is_of_kind(directory, name, S_IFDIR);
    return is_metrics(directory, name);
}

static DIR *open_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory && fd >= 0)
        (void)close(fd);
    return directory;
}

/* Counts the entries of a directory that are not files of a database, and copies the name of the first into foreign
 * [size_bytes]; -1 when it cannot be read. */
static int count_foreign(const char *path, char *foreign, size_t size_bytes)
{
    DIR *directory = open_directory(path);
    int n = 0;
    if (!directory)
        return -1;
    bool has_sources = is_database(dirfd(directory));
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            belongs(dirfd(directory), entry->d_name, has_sources))
            continue;
        if (n++ == 0)
            (void)snprintf(foreign, size_bytes, "%s", entry->d_name);
    }
    (void)closedir(directory);
    return n;
}

/* Removes a database that is under its last name no more; what others have put into it stays, and so does it then. */
static void remove_database(const char *path)
{
    DIR *directory = open_directory(path);
    if (!directory)
        return;
    if (is_of_kind(dirfd(directory), SOURCES_DIRECTORY, S_IFDIR))
        scratch_remove_tree(dirfd(directory), SOURCES_DIRECTORY);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (is_ours(entry->d_name))
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (is_metrics(dirfd(directory), "metrics"))
        scratch_remove_tree(dirfd(directory), "metrics");
    (void)closedir(directory);
    (void)rmdir(path);
}

/* Refuses to replace what is not a database. */
static int check_target(const char *path, struct error *err)
{
    struct stat info;
    char foreign[256] = "";
    if (lstat(path, &info) != 0)
        return errno == ENOENT ? 0 : error_set(err, ERR_IO, "%s cannot be used: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return error_set(err, ERR_IO, "%s exists and is not a directory", path);
    int n_foreign = count_foreign(path, foreign, sizeof foreign);
    if (n_foreign < 0)
        return error_set(err, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
    if (n_foreign > 0)
        return error_set(err, ERR_IO, "%s exists and holds other files than a database (%s): choose another name", path,
                         foreign);
    return 0;
}

/* Where the database goes: path itself, or where a link of this user's or the administrator's at its place leads;
 * malloc'ed. */
static int find_target(const char *path, char **target, struct error *err)
{
    struct stat info;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    *target = strndup(path, len);
    if (!*target)
        return error_set(err, ERR_MEMORY, "out of memory");
    if (lstat(*target, &info) != 0 || !S_ISLNK(info.st_mode))
        return 0;
    char *real = info.st_uid == geteuid() || info.st_uid == 0 ? realpath(*target, NULL) : NULL;
    int code = real
                   ? 0
                   : error_set(err, ERR_IO, "%s is a symbolic link %s", *target,
                               info.st_uid == geteuid() || info.st_uid == 0 ? "that leads nowhere" : "of another user");
    free(*target);
    *target = real;
    return code;
}

char *database_parent(const char *path)
{
    const char *end = path + strlen(path);
    while (end > path + 1 && end[-1] == '/')
        end--;
    while (end > path && end[-1] != '/')
        end--;
    return end == path ? strdup(".") : strndup(path, (size_t)(end - path));
}

static int check_place(const char *path, struct error *err)
{
    int code = check_target(path, err);
    char *parent = code == 0 ? database_parent(path) : NULL;
    if (code == 0 && !parent)
        return error_set(err, ERR_MEMORY, "out of memory");
    if (code == 0 && access(parent, W_OK | X_OK) != 0)
        code = error_set(err, ERR_IO, "The database directory %s cannot be made: %s", path, strerror(errno));
    free(parent);
    return code;
}

int database_check(const char *path, struct error *err)
{
    char *target = NULL;
    int code = find_target(path, &target, err);
    if (code == 0)
        code = check_place(target, err);
    free(target);
    return code;
}

static int write_text(const char *directory, const char *name, const struct buf *text, struct error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    int code = file_write_new(path, text->data, text->len_bytes, err);
    free(path);
    return code;
}

/* older: the database that the new one takes the place of. */
static int copy_sources(const struct model *model, const char *older, const char *directory,
                        const struct database_job *how, struct error *err)
{
    struct source_find *find = how->copies && !how->without_sources ? source_find_new(how->search, how->replace) : NULL;
    int code = 0;
    if (find)
        code = sources_copy(model, find, how->extends ? older : NULL, directory, how->job, how->copies, err);
    source_find_free(find);
    return code;
}

/* The metrics of experiment.xml, and the metric files, which come from one reading of the values. */
static int write_metrics(struct model *model, const struct columns *columns, const char *directory,
                         const struct database_job *how, struct summary *summary, struct error *err)
{
    double *exclusive = calloc(model->n_scopes * model->n_metrics + 1, sizeof *exclusive);
    bool needs_threads = how->xml_metrics != SUMMARY_SUM || !how->without_metric_files;
    int code = exclusive ? summary_init(summary, how->xml_metrics, model, columns, err)
                         : error_set(err, ERR_MEMORY, "out of memory");
    if (code == 0 && needs_threads)
        code = metric_files_write(model, columns, how->source, how->job, how->without_metric_files ? NULL : directory,
                                  summary, err);
    if (code == 0) {
        columns_exclusive(model, model->own, exclusive);
        summary_end(summary, model, columns, exclusive);
    }
    free(exclusive);
    return code;
}

static int write_xml(struct model *model, const char *older, const char *directory, const struct database_job *how,
                     struct error *err)
{
    struct columns columns;
    struct summary summary = {0};
    struct buf text = {0};
    int code = columns_make(model, &columns, err);
    if (code == 0)
        code = copy_sources(model, older, directory, how, err);
    if (code == 0)
        code = write_metrics(model, &columns, directory, how, &summary, err);
    if (code == 0)
        code = experiment_write(model, &columns, &summary, how->title, how->copies, &text, err);
    if (code == 0)
        code = write_text(directory, "experiment.xml", &text, err);
    buf_fini(&text);
    summary_fini(&summary);
    columns_fini(&columns);
    return code;
}

static int write_files(struct model *model, const char *older, const char *directory, const struct database_job *how,
                       struct error *err)
{
    struct buf text = {0};
    int code = copy_sources(model, older, directory, how, err);
    if (code != 0)
        return v4_give_up(how->job, code, err);
    code = v4_export(model, how->source, how->job, directory, how->title, how->copies, err);
    if (code == 0)
        job_begin(how->job, "writing " DATABASE_JSON);
    if (code == 0)
        code = job_goes_on(how->job, err) ? locus_json_write(model, &text, err) : ERR_USAGE;
    if (code == 0)
        code = write_text(directory, DATABASE_JSON, &text, err);
    buf_fini(&text);
    return code;
}

/* Another user can move what lies in such a directory. */
static bool is_parent_foreign(const char *path)
{
    struct stat info;
    char *parent = database_parent(path);
    bool is_known = parent && stat(parent, &info) == 0;
    free(parent);
    bool is_ours_to_move = is_known && (info.st_uid == geteuid() || info.st_uid == 0);
    return !is_ours_to_move || ((info.st_mode & (S_IWGRP | S_IWOTH)) && !(info.st_mode & S_ISVTX));
}

/* A directory beside the target that is being filled. */
struct building {
    char *temporary; /* its path; noted as long as it is there */
    int fd;
    char own[64]; /* its name by way of fd, when the path may come to stand for something else */
};

static int begin_building(const char *target, const struct team *team, struct building *building, struct error *err)
{
    struct stat info;
    *building = (struct building){.fd = -1};
    if (asprintf(&building->temporary, "%s.new-%d", target, (int)getpid()) < 0) {
        building->temporary = NULL;
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    int n_tries = 0;
    for (size_t len = strlen(building->temporary); mkdir(building->temporary, 0755) != 0;) {
        if (errno != EEXIST || ++n_tries == 10)
            return error_set(err, ERR_IO, "The database directory %s cannot be made: %s", target, strerror(errno));
        building->temporary[len - 1] = (char)('a' + n_tries); /* a process of this number was killed */
    }
    scratch_note(building->temporary);
    building->fd = open(building->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (building->fd < 0 || fstat(building->fd, &info) != 0 || info.st_uid != geteuid())
        return error_set(err, ERR_IO, "The database directory %s cannot be made: another user is moving files there",
                         target);
    if (!team_is_several(team) && is_parent_foreign(target))
        (void)snprintf(building->own, sizeof building->own, "/proc/self/fd/%d", building->fd);
    return 0;
}

static void end_building(struct building *building)
{
    if (building->fd >= 0)
        (void)close(building->fd);
    if (building->temporary)
        scratch_forget(building->temporary);
    free(building->temporary);
}

/* For file systems that cannot exchange two names: there is a moment in which the older database has another name. */
static int move_in_place(const char *temporary, const char *target, struct error *err)
{
    char *older = NULL;
    if (asprintf(&older, "%s.old-%d", target, (int)getpid()) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    int code = rename(target, older) == 0 || errno == ENOENT ? 0 : ERR_IO;
    if (code == 0 && rename(temporary, target) != 0) {
        int number = errno;
        (void)rename(older, target);
        errno = number;
        code = ERR_IO;
    }
    if (code != 0)
        (void)error_set(err, code, "%s cannot be put in place: %s", target, strerror(errno));
    else
        remove_database(older);
    free(older);
    return code;
}

/* Gives the complete directory the name of the target, in one step; the older one is removed afterwards. */
static int put_in_place(const char *temporary, const char *target, struct error *err)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, target, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST && renameat2(AT_FDCWD, temporary, AT_FDCWD, target, RENAME_EXCHANGE) == 0) {
        remove_database(temporary);
        return 0;
    }
    if (errno == EINVAL || errno == ENOSYS)
        return move_in_place(temporary, target, err);
    return error_set(err, ERR_IO, "%s cannot be put in place: %s", target, strerror(errno));
}

/* Has write fill a directory beside path, which then takes its place. */
static int write_directory(int (*write)(struct model *, const char *older, const char *directory,
                                        const struct database_job *, struct error *),
                           struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    char *target = NULL;
    struct building building = {.fd = -1};
    int code = find_target(path, &target, err);
    if (code == 0)
        code = check_target(target, err);
    if (code == 0)
        code = begin_building(target, how->job->team, &building, err);
    if (code != 0)
        code = v4_give_up(how->job, code, err);
    else
        code = write(model, target, *building.own ? building.own : building.temporary, how, err);
    if (code == 0)
        code = check_target(target, err);
    if (code == 0)
        code = put_in_place(building.temporary, target, err);
    if (code != 0 && building.fd >= 0)
        scratch_remove(building.temporary);
    end_building(&building);
    free(target);
    return code;
}

int database_write(struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    return write_directory(write_files, model, path, how, err);
}

int database_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err)
{
    return v4_join(model, source, job, err);
}

int database_write_xml(struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    return write_directory(write_xml, model, path, how, err);
}

int database_read(const char *path, struct model *model, struct error *err)
{
    char *name = NULL;
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set(err, ERR_NOT_FOUND, "%s cannot be read: %s", path, strerror(errno));
    if (asprintf(&name, S_ISDIR(info.st_mode) ? "%s/" DATABASE_JSON : "%s", path) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    struct buf text = {0};
    int code = access(name, F_OK) == 0 ? file_read(name, &text, err)
                                       : error_set(err, ERR_NOT_FOUND,
                                                   "%s is not a database: it has no " DATABASE_JSON
                                                   " (hpcprof makes one from a measurement directory)",
                                                   path);
    if (code == 0)
        code = locus_json_read(text.data, text.len_bytes, name, model, err);
    buf_fini(&text);
    free(name);
    return code;
}
