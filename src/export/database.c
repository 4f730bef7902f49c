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

#include "export/experiment.h"
#include "export/metric-files.h"
#include "export/v4-export.h"
#include "fmt/file.h"
#include "structure/source-find.h"

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
    int fd = strcmp(name, "metrics") == 0 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
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

/* A complete database in either form; nothing else may hold a directory src that we remove. */
static bool is_database(int directory)
{
    return faccessat(directory, DATABASE_JSON, F_OK, 0) == 0 || faccessat(directory, "experiment.xml", F_OK, 0) == 0;
}

/* Counts the entries of a directory and those that are not files of a database; -1 when it cannot be read. */
static int count_entries(const char *path, int *n_foreign)
{
    DIR *directory = opendir(path);
    int n = 0;
    *n_foreign = 0;
    if (!directory)
        return -1;
    bool has_sources = is_database(dirfd(directory));
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n++;
        *n_foreign += !is_ours(entry->d_name) && !is_metrics(dirfd(directory), entry->d_name) &&
                      !(has_sources && strcmp(entry->d_name, SOURCES_DIRECTORY) == 0);
    }
    (void)closedir(directory);
    return n;
}

static void remove_database(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return;
    sources_remove(dirfd(directory));
    for (struct dirent *entry; (entry = readdir(directory));)
        if (is_ours(entry->d_name))
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    (void)unlinkat(dirfd(directory), "metrics/" METRICS_YAML, 0);
    (void)unlinkat(dirfd(directory), "metrics", AT_REMOVEDIR);
    (void)closedir(directory);
    (void)rmdir(path);
}

/* Refuses to replace what is not a database. */
static int check_target(const char *path, struct error *err)
{
    struct stat info;
    int n_foreign = 0;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? 0 : error_set(err, ERR_IO, "%s cannot be used: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return error_set(err, ERR_IO, "%s exists and is not a directory", path);
    if (count_entries(path, &n_foreign) < 0)
        return error_set(err, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
    if (n_foreign > 0)
        return error_set(err, ERR_IO, "%s exists and holds other files than a database: choose another name", path);
    return 0;
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

int database_check(const char *path, struct error *err)
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

/* Has write fill a directory beside path, which then takes its place. */
static int write_directory(int (*write)(struct model *, const char *older, const char *directory,
                                        const struct database_job *, struct error *),
                           struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    char *temporary = NULL;
    int code = check_target(path, err);
    if (code == 0 && asprintf(&temporary, "%s.new-%d", path, (int)getpid()) < 0)
        return v4_give_up(how->job, error_set(err, ERR_MEMORY, "out of memory"), err);
    if (code == 0 && mkdir(temporary, 0755) != 0)
        code = error_set(err, ERR_IO, "The database directory %s cannot be made: %s", path, strerror(errno));
    if (code != 0) {
        free(temporary);
        return v4_give_up(how->job, code, err);
    }
    code = write(model, path, temporary, how, err);
    if (code == 0) {
        remove_database(path);
        if (rename(temporary, path) != 0)
            code = error_set(err, ERR_IO, "%s cannot be put in place: %s", path, strerror(errno));
    }
    if (code != 0)
        remove_database(temporary);
    free(temporary);
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
